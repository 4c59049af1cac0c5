//! The time index beside an hour's Parquet file: which rows each token has, and its folded book at some of them
//! (*anchors*), so that the book at an instant needs few rows.
//!
//! All numbers are little-endian; times are milliseconds since the start of the hour, signed, as a file may hold rows of
//! up to five seconds around it.
//!
//! | Part | Bytes | Holds |
//! |---|---|---|
//! | header | 128 | magic `PTAPEIDX`, version (u32, 1), hour (u32, since 1970), SHA-256 of the Parquet file, its rows (u64), tokens, markets and anchors (u32 each), 0 (u32), bytes of the states (u64), SHA-256 of the Parquet file of the hour before or 0, 16 bytes 0 |
//! | tokens | 72 each | ascending by market and text: text (39 bytes, two digits each: digit + 1, 0 after the end), 0 (u8), market (u32), first and last row (u32), their times (i32), first anchor (u32), anchors (u32), books among its rows (u32) |
//! | markets | 32 each | ids, ascending |
//! | anchors | 24 each | by token and row: row before which it is (u32), receipt of the last row in it (i32; the least i32: none of this hour), position and length of its state (u64, u32), kind (u32: 0 opening, 1 inner, 2 end) |
//! | states | | [`Folded`] books as bytes |
//! | checksums | 4 each | CRC-32C of each 64 KiB of all bytes before, then that of these checksums |
//!
//! An opening anchor is the book that an earlier hour ended with. Inner anchors are at each 65,536 rows of a token (more
//! rarely if its state has more than 16 KiB, in proportion), after 16 MiB of book texts, when the rows since the last one
//! take a reader 32 MiB, and where a row group begins.
//! Each token has an end anchor: the opening of later hours.

mod build;

#[cfg(test)]
pub(crate) use build::fault;
pub(crate) use build::prepare;
pub use build::{Builder, Built, Carried, Made, NoCarry, check_received};

use crate::error::{Error, Named, Refusal};
use crate::fold::Folded;
use crate::parquet_file::footer::ROWS_MAX;
use crate::parquet_file::source::Source;
use crate::row::{Condition, TOKEN_DIGITS_MAX};
use bytes::Bytes;
use engine::time::Timestamp;
use std::ops::Range;
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 8] = b"PTAPEIDX";
const VERSION: u32 = 1;
const HEADER_LEN: usize = 128;
const TOKEN_LEN: usize = 72;
const PACKED_LEN: usize = TOKEN_DIGITS_MAX / 2;
const MARKET_LEN: usize = 32;
const ANCHOR_LEN: usize = 24;
const BLOCK_LEN: usize = 64 << 10;
/// Bounds of an index.
pub(crate) const TOKENS_MAX: usize = 1_000_000;
const STATES_BYTES_MAX: u64 = 8 << 30;
/// Longest state: two full sides.
const STATE_LEN_MAX: usize = 1 << 20;
/// The time of an opening anchor.
const BEFORE: i32 = i32::MIN;

/// An open time index. Tokens and anchors are in memory; states are read on demand.
pub struct TimeIndex {
    path: PathBuf,
    source: Source,
    header: Header,
    /// Tokens, markets and anchors as in the file.
    tables: Bytes,
    checksums: Vec<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    hour: u32,
    parquet: [u8; 32],
    rows: u64,
    tokens: u32,
    markets: u32,
    anchors: u32,
    states_len: u64,
    previous: [u8; 32],
}

/// A token's rows in the hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenRows {
    /// Position in the table.
    pub number: usize,
    pub market: Condition,
    pub token: String,
    /// Rows of the file; all rows in it are this token's.
    pub rows: Range<u64>,
    /// Receipt of the first and the last row.
    pub first: Timestamp,
    pub last: Timestamp,
    /// How many of the rows are whole books.
    pub books: u64,
    anchors: Range<u32>,
}

/// A place in a token's rows at which its folded book is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// The first row that is not in it.
    pub row: u64,
    /// Receipt of the last row in it; `None`: it has no row of this hour.
    pub through: Option<Timestamp>,
    pub kind: AnchorKind,
    at: u64,
    len: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnchorKind {
    /// The book that an earlier hour ended with.
    Opening,
    Inner,
    End,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].try_into().map(u32::from_le_bytes).unwrap_or_default()
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..at + 8].try_into().map(u64::from_le_bytes).unwrap_or_default()
}

fn digest_at(bytes: &[u8], at: usize) -> [u8; 32] {
    bytes[at..at + 32].try_into().unwrap_or_default()
}

/// A token as digits of 4 bits, in the order of the texts. `None` for other texts.
fn packed(token: &str) -> Option<[u8; PACKED_LEN]> {
    let mut packed = [0; PACKED_LEN];
    if token.len() > TOKEN_DIGITS_MAX {
        return None;
    }
    for (at, digit) in token.bytes().enumerate() {
        let digit = digit.is_ascii_digit().then(|| digit - b'0' + 1)?;
        packed[at / 2] |= if at % 2 == 0 { digit << 4 } else { digit };
    }
    Some(packed)
}

fn unpacked(packed: &[u8]) -> Option<String> {
    let digits: Vec<u8> = packed.iter().flat_map(|byte| [byte >> 4, byte & 15]).collect();
    let len = digits.iter().position(|digit| *digit == 0).unwrap_or(digits.len());
    let is_text =
        len > 0 && digits[..len].iter().all(|digit| *digit <= 10) && digits[len..].iter().all(|digit| *digit == 0);
    is_text.then(|| digits[..len].iter().map(|digit| char::from(b'0' + digit - 1)).collect())
}

impl Header {
    fn write(&self) -> [u8; HEADER_LEN] {
        let mut bytes = [0; HEADER_LEN];
        bytes[..8].copy_from_slice(MAGIC);
        for (at, number) in [(8, VERSION), (12, self.hour), (56, self.tokens), (60, self.markets), (64, self.anchors)] {
            bytes[at..at + 4].copy_from_slice(&number.to_le_bytes());
        }
        bytes[16..48].copy_from_slice(&self.parquet);
        bytes[48..56].copy_from_slice(&self.rows.to_le_bytes());
        bytes[72..80].copy_from_slice(&self.states_len.to_le_bytes());
        bytes[80..112].copy_from_slice(&self.previous);
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Header, Refusal> {
        if bytes.len() != HEADER_LEN || bytes[..8] != MAGIC[..] {
            return Err(Refusal::at(0, "the file is not a time index"));
        }
        let version = u32_at(bytes, 8);
        if version != VERSION {
            return Err(Refusal::at(8, format!("the index has version {version}, not {VERSION}")));
        }
        let header = Header {
            hour: u32_at(bytes, 12),
            parquet: digest_at(bytes, 16),
            rows: u64_at(bytes, 48),
            tokens: u32_at(bytes, 56),
            markets: u32_at(bytes, 60),
            anchors: u32_at(bytes, 64),
            states_len: u64_at(bytes, 72),
            previous: digest_at(bytes, 80),
        };
        let is_sane = header.tokens as usize <= TOKENS_MAX
            && header.markets <= header.tokens
            && header.rows <= ROWS_MAX
            && u64::from(header.anchors) <= header.rows.saturating_mul(2) + 1
            && header.states_len <= STATES_BYTES_MAX;
        if !is_sane {
            return Err(Refusal::at(48, "the counts of the index are beyond their bounds"));
        }
        Ok(header)
    }

    fn tables_len(&self) -> usize {
        self.tokens as usize * TOKEN_LEN + self.markets as usize * MARKET_LEN + self.anchors as usize * ANCHOR_LEN
    }

    /// Bytes before the checksums.
    fn body_len(&self) -> u64 {
        (HEADER_LEN + self.tables_len()) as u64 + self.states_len
    }

    fn blocks(&self) -> u64 {
        self.body_len().div_ceil(BLOCK_LEN as u64)
    }

    fn file_len(&self) -> u64 {
        self.body_len() + (self.blocks() + 1) * 4
    }
}

impl TimeIndex {
    /// Opens an index and checks its tables.
    ///
    /// # Errors
    /// Refused: another version, a size that does not fit, a wrong checksum, tables out of order.
    pub fn open(path: &Path) -> Result<TimeIndex, Error> {
        let source = Source::open(path).of(path)?;
        TimeIndex::of_source(path, source).of(path)
    }

    /// The same of an index in memory; `name` occurs in errors.
    ///
    /// # Errors
    /// As [`TimeIndex::open`].
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<TimeIndex, Error> {
        let path = Path::new(name);
        TimeIndex::of_source(path, Source::Memory(bytes.into())).of(path)
    }

    /// Whether a market has rows, without reading the whole tables.
    ///
    /// # Errors
    /// As [`TimeIndex::open`], for the parts that are read.
    pub fn probe(path: &Path, market: &Condition) -> Result<bool, Error> {
        let source = Source::open(path).of(path)?;
        TimeIndex::head(path, source).and_then(|index| index.probe_market(market)).of(path)
    }

    fn probe_market(&self, market: &Condition) -> Result<bool, Refusal> {
        let table = (HEADER_LEN + self.token_count() * TOKEN_LEN) as u64;
        let (mut low, mut high) = (0, self.market_count());
        while low < high {
            let middle = low.midpoint(high);
            let bytes = self.checked(table + (middle * MARKET_LEN) as u64, MARKET_LEN)?;
            match bytes[..].cmp(&market.0[..]) {
                std::cmp::Ordering::Equal => return Ok(true),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Ok(false)
    }

    fn of_source(path: &Path, source: Source) -> Result<TimeIndex, Refusal> {
        let mut index = TimeIndex::head(path, source)?;
        // The header again, under its checksum.
        let head = index.checked(0, HEADER_LEN + index.header.tables_len())?;
        if Header::read(&head[..HEADER_LEN])? != index.header {
            return Err(Refusal::at(0, "the file changes while it is read"));
        }
        index.tables = head.slice(HEADER_LEN..);
        index.check_tables()?;
        Ok(index)
    }

    /// Header and checksums.
    fn head(path: &Path, source: Source) -> Result<TimeIndex, Refusal> {
        let len = source.len();
        if len < HEADER_LEN as u64 {
            return Err(Refusal::new(format!("the index has {len} bytes: it is truncated")));
        }
        let header = Header::read(&source.read(0, HEADER_LEN as u64)?)?;
        if header.file_len() != len {
            return Err(Refusal::new(format!("the index has {len} bytes, not {}", header.file_len())));
        }
        let bytes = source.read(header.body_len(), len - header.body_len())?;
        let (sums, own) = bytes.split_at(bytes.len() - 4);
        if crc32c::crc32c(sums) != u32_at(own, 0) {
            return Err(Refusal::at(header.body_len(), "the checksums of the index are damaged"));
        }
        let checksums = sums.as_chunks::<4>().0.iter().map(|sum| u32::from_le_bytes(*sum)).collect();
        Ok(TimeIndex { path: path.to_owned(), source, header, tables: Bytes::new(), checksums })
    }

    /// Some bytes before the checksums, after the checksums of their blocks were compared.
    fn checked(&self, at: u64, len: usize) -> Result<Bytes, Refusal> {
        let block = BLOCK_LEN as u64;
        let (first, end) = (at / block, (at + len as u64).div_ceil(block));
        let start = first * block;
        let bytes = self.source.read(start, (end * block).min(self.header.body_len()) - start)?;
        for (number, chunk) in bytes.chunks(BLOCK_LEN).enumerate() {
            if self.checksums.get(first as usize + number) != Some(&crc32c::crc32c(chunk)) {
                let at = start + (number * BLOCK_LEN) as u64;
                return Err(Refusal::at(at, "a checksum of the index is wrong"));
            }
        }
        let skipped = (at - start) as usize;
        Ok(bytes.slice(skipped..skipped + len))
    }

    fn check_tables(&self) -> Result<(), Refusal> {
        let wrong = |number: usize, what: &str| {
            Err(Refusal::at((HEADER_LEN + number * TOKEN_LEN) as u64, format!("token {number} of the index: {what}")))
        };
        let (mut row, mut anchor, mut last) = (0, 0, None);
        for number in 0..self.token_count() {
            let entry = self.entry(number);
            let key = (u32_at(entry, 40), &entry[..PACKED_LEN]);
            if last.is_some_and(|last| last >= key) || key.0 >= self.header.markets {
                return wrong(number, "it is out of order");
            }
            last = Some(key);
            if unpacked(&entry[..PACKED_LEN]).is_none() {
                return wrong(number, "its id is not digits");
            }
            let (first_row, last_row) = (u32_at(entry, 44), u32_at(entry, 48));
            if u64::from(first_row) < row || first_row > last_row || u64::from(last_row) >= self.header.rows {
                return wrong(number, "its rows are out of order");
            }
            row = u64::from(last_row) + 1;
            let (first, count) = (u32_at(entry, 60), u32_at(entry, 64));
            let end = first.checked_add(count).filter(|end| count > 0 && *end <= self.header.anchors);
            let Some(end) = end.filter(|_| first == anchor) else {
                return wrong(number, "its anchors are out of order");
            };
            anchor = end;
            let mut before = u64::from(first_row);
            for at in first..end {
                match self.anchor(at) {
                    Ok(anchor) if anchor.row >= before && anchor.row <= row => before = anchor.row,
                    _ => return wrong(number, "an anchor is out of place"),
                }
            }
        }
        if anchor != self.header.anchors {
            return Err(Refusal::new("the index has anchors of no token"));
        }
        let markets: Vec<&[u8]> = (0..self.header.markets as usize).map(|number| self.market_bytes(number)).collect();
        if !markets.is_sorted_by(|one, next| one < next) {
            return Err(Refusal::new("the markets of the index are out of order"));
        }
        Ok(())
    }

    fn entry(&self, number: usize) -> &[u8] {
        &self.tables[number * TOKEN_LEN..(number + 1) * TOKEN_LEN]
    }

    fn market_bytes(&self, number: usize) -> &[u8] {
        let at = self.token_count() * TOKEN_LEN + number * MARKET_LEN;
        &self.tables[at..at + MARKET_LEN]
    }

    fn anchor(&self, number: u32) -> Result<Anchor, Refusal> {
        let tables = self.token_count() * TOKEN_LEN + self.header.markets as usize * MARKET_LEN;
        let bytes = &self.tables[tables + number as usize * ANCHOR_LEN..][..ANCHOR_LEN];
        let through = u32_at(bytes, 4) as i32;
        let (at, len) = (u64_at(bytes, 8), u32_at(bytes, 16));
        let kind = match u32_at(bytes, 20) {
            0 => AnchorKind::Opening,
            1 => AnchorKind::Inner,
            2 => AnchorKind::End,
            _ => return Err(Refusal::new("an anchor is of no kind")),
        };
        let fits = at.checked_add(len.into()).is_some_and(|end| end <= self.header.states_len);
        if !fits || len as usize > STATE_LEN_MAX || (through == BEFORE) != (kind == AnchorKind::Opening) {
            return Err(Refusal::new("the state of an anchor is out of place"));
        }
        let through = (through != BEFORE).then(|| self.time(through));
        Ok(Anchor { row: u32_at(bytes, 0).into(), through, kind, at, len })
    }

    fn time(&self, millis: i32) -> Timestamp {
        let start = Timestamp::of_hour(self.header.hour).millis() as i64;
        Timestamp::from_millis((start + i64::from(millis)).max(0) as u64)
    }

    /// The hour, counted from 1970.
    pub fn hour(&self) -> u32 {
        self.header.hour
    }

    /// SHA-256 of the Parquet file that it is an index of.
    pub fn parquet(&self) -> [u8; 32] {
        self.header.parquet
    }

    /// SHA-256 of the Parquet file of the hour before, from which books were carried; zeros: none.
    pub fn previous(&self) -> [u8; 32] {
        self.header.previous
    }

    pub fn row_count(&self) -> u64 {
        self.header.rows
    }

    pub fn token_count(&self) -> usize {
        self.header.tokens as usize
    }

    pub fn market_count(&self) -> usize {
        self.header.markets as usize
    }

    pub fn anchor_count(&self) -> usize {
        self.header.anchors as usize
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.tables.len() + self.checksums.len() * 4 + size_of::<TimeIndex>()
    }

    /// The markets, ascending.
    pub fn markets(&self) -> impl ExactSizeIterator<Item = Condition> + '_ {
        (0..self.market_count()).map(|number| Condition(digest_at(self.market_bytes(number), 0)))
    }

    /// All tokens, in file order.
    pub fn tokens(&self) -> impl ExactSizeIterator<Item = TokenRows> + '_ {
        (0..self.token_count()).map(|number| self.token_rows(number))
    }

    /// The tokens of a market that have rows, ascending.
    pub fn tokens_of(&self, market: &Condition) -> Vec<TokenRows> {
        let Some(market) = self.market(market) else { return Vec::new() };
        let first = self.position(|entry| u32_at(entry, 40) < market);
        let end = self.position(|entry| u32_at(entry, 40) <= market);
        (first..end).map(|number| self.token_rows(number)).collect()
    }

    /// A token of a market; `None`: it has no row.
    pub fn token(&self, market: &Condition, token: &str) -> Option<TokenRows> {
        let key = (self.market(market)?, packed(token)?);
        let of = |entry: &[u8]| (u32_at(entry, 40), entry[..PACKED_LEN].try_into().unwrap_or([0; PACKED_LEN]));
        let number = self.position(|entry| of(entry) < key);
        (number < self.token_count() && of(self.entry(number)) == key).then(|| self.token_rows(number))
    }

    /// Whether a market has rows.
    pub fn has_market(&self, market: &Condition) -> bool {
        self.market(market).is_some()
    }

    fn market(&self, market: &Condition) -> Option<u32> {
        let (mut low, mut high) = (0, self.market_count());
        while low < high {
            let middle = low.midpoint(high);
            match self.market_bytes(middle).cmp(&market.0) {
                std::cmp::Ordering::Equal => return Some(middle as u32),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }

    /// The first entry for which `is_before` is false.
    fn position(&self, is_before: impl Fn(&[u8]) -> bool) -> usize {
        let (mut low, mut high) = (0, self.token_count());
        while low < high {
            let middle = low.midpoint(high);
            if is_before(self.entry(middle)) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }

    fn token_rows(&self, number: usize) -> TokenRows {
        let entry = self.entry(number);
        let (first, count) = (u32_at(entry, 60), u32_at(entry, 64));
        TokenRows {
            number,
            market: Condition(digest_at(self.market_bytes(u32_at(entry, 40) as usize), 0)),
            token: unpacked(&entry[..PACKED_LEN]).unwrap_or_default(),
            rows: u32_at(entry, 44).into()..u64::from(u32_at(entry, 48)) + 1,
            first: self.time(u32_at(entry, 52) as i32),
            last: self.time(u32_at(entry, 56) as i32),
            books: u32_at(entry, 68).into(),
            anchors: first..first + count,
        }
    }

    /// The anchors of a token, by row. The last one is its end.
    pub fn anchors(&self, token: &TokenRows) -> Result<Vec<Anchor>, Error> {
        token.anchors.clone().map(|number| self.anchor(number)).collect::<Result<_, _>>().of(&self.path)
    }

    /// The folded book of an anchor.
    ///
    /// # Errors
    /// Refused: a checksum is wrong, or the bytes are not a book.
    pub fn state(&self, anchor: &Anchor) -> Result<Folded, Error> {
        let at = (HEADER_LEN + self.header.tables_len()) as u64 + anchor.at;
        let bytes = self.checked(at, anchor.len as usize).of(&self.path)?;
        let refusal = || Refusal::at(at, "the state of an anchor is damaged");
        Folded::read(&bytes).ok_or_else(refusal).of(&self.path)
    }

    /// The book of a token at the end of the hour; `None`: it has no row.
    ///
    /// # Errors
    /// As [`TimeIndex::state`].
    pub fn end_state(&self, market: &Condition, token: &str) -> Result<Option<Folded>, Error> {
        let Some(token) = self.token(market, token) else { return Ok(None) };
        let last = self.anchors(&token)?.pop();
        last.filter(|anchor| anchor.kind == AnchorKind::End).map(|anchor| self.state(&anchor)).transpose()
    }

    /// The book of a token that an earlier hour ended with; `None`: it has no row, or began without a book.
    ///
    /// # Errors
    /// As [`TimeIndex::state`].
    pub fn opening_state(&self, market: &Condition, token: &str) -> Result<Option<Folded>, Error> {
        let Some(token) = self.token(market, token) else { return Ok(None) };
        let first = self.anchors(&token)?.first().copied();
        first.filter(|anchor| anchor.kind == AnchorKind::Opening).map(|anchor| self.state(&anchor)).transpose()
    }

    /// Checks every block and every state.
    ///
    /// # Errors
    /// The first that is damaged.
    pub fn verify(&self) -> Result<(), Error> {
        let body = self.header.body_len();
        let mut at = 0;
        while at < body {
            let len = (body - at).min(BLOCK_LEN as u64);
            self.checked(at, len as usize).of(&self.path)?;
            at += len;
        }
        for number in 0..self.header.anchors {
            self.state(&self.anchor(number).of(&self.path)?)?;
        }
        Ok(())
    }
}

/// Bytes with the header of an index, with right checksums: for tests of what they protect. `None`: the header is not
/// one, or there are too few bytes.
#[cfg(any(test, feature = "testing"))]
pub fn resummed(bytes: &[u8]) -> Option<Vec<u8>> {
    let header = Header::read(bytes.get(..HEADER_LEN)?).ok()?;
    let mut body = bytes.get(..usize::try_from(header.body_len()).ok()?)?.to_vec();
    let sums: Vec<u8> = body.chunks(BLOCK_LEN).flat_map(|block| crc32c::crc32c(block).to_le_bytes()).collect();
    body.extend_from_slice(&sums);
    body.extend_from_slice(&crc32c::crc32c(&sums).to_le_bytes());
    Some(body)
}

#[cfg(test)]
mod tests;
