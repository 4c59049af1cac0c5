//! Making of a time index from the rows of an hour in file order.

use super::{
    ANCHOR_LEN, AnchorKind, BEFORE, BLOCK_LEN, Header, PACKED_LEN, STATE_LEN_MAX, TOKEN_LEN, TOKENS_MAX, packed,
};
use crate::book::{SEGMENT_BYTES, growth};
use crate::checks::{self, Checks};
use crate::error::{Error, Named, Refusal};
use crate::files::{self, Making};
use crate::fold::{Change, Folded};
use crate::levels::LEVEL_BYTES_MAX;
use crate::read::{self, EventReader, HourFile, IdReader, Read};
use crate::row::{Condition, Row};
use crate::schema::COLUMNS;
use engine::time::Timestamp;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Rows of a token between two anchors, for a state of at most [`STATE_BYTES`].
const ANCHOR_ROWS: u64 = if cfg!(test) { 512 } else { 65_536 };
const STATE_BYTES: u64 = 16 << 10;
/// Bytes of book texts between two anchors: what a reader decodes at most.
const ANCHOR_TEXT_BYTES: usize = 16 << 20;
/// Rows may be this far outside of the hour, in milliseconds.
const OUTSIDE_MS: i64 = 5_000;
const HOUR_MS: i64 = 3_600_000;

/// Books that earlier hours ended with.
pub trait Carried {
    /// SHA-256 of the Parquet file of the hour before; zeros: none.
    fn previous(&self) -> [u8; 32] {
        [0; 32]
    }

    /// The book of a token at the start of the hour; `None`: unknown.
    ///
    /// # Errors
    /// An earlier index cannot be read.
    fn carried(&self, market: &Condition, token: &str) -> Result<Option<Folded>, Error>;
}

/// No earlier hour.
pub struct NoCarry;

/// Takes rows, and writes the index.
pub struct Builder<'a> {
    carried: &'a dyn Carried,
    making: Making,
    /// States until the tables before them are known.
    states: BufWriter<File>,
    states_len: u64,
    hour: u32,
    tokens: Vec<u8>,
    markets: Vec<Condition>,
    anchors: Vec<u8>,
    anchor_count: u32,
    token: Option<Token>,
    next_row: u64,
    carried_tokens: u64,
    scratch: Vec<u8>,
    /// A row without valid ids came after the last row.
    is_interrupted: bool,
    checks: Checks,
    /// The anchor that the planted fault delays.
    #[cfg(test)]
    late: Option<(u64, i32)>,
}

/// The token of the last row.
struct Token {
    name: Arc<str>,
    folded: Folded,
    first_row: u64,
    last_row: u64,
    first: i32,
    last: i32,
    first_anchor: u32,
    books: u32,
    /// Since the last anchor: rows, bytes of book texts, events, and the memory of a reader that has them all.
    rows: u64,
    text_bytes: usize,
    events: usize,
    segment_bytes: usize,
    /// Rows after which the next anchor is due.
    due: u64,
}

/// A finished index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Built {
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub tokens: u64,
    pub markets: u64,
    pub anchors: u64,
    /// Tokens whose book was carried from an earlier hour.
    pub carried_tokens: u64,
}

/// Checks that a row may be in the file of an hour.
///
/// # Errors
/// It was received more than five seconds before or after the hour.
pub fn check_received(hour: u32, number: u64, received: Timestamp) -> Result<(), Refusal> {
    let at = received.millis() as i64 - Timestamp::of_hour(hour).millis() as i64;
    if (-OUTSIDE_MS..HOUR_MS + OUTSIDE_MS).contains(&at) {
        return Ok(());
    }
    Err(Refusal::new(format!(
        "row {number} was received {at} ms after the start of its hour, more than 5 s outside of the hour"
    )))
}

/// Why a row cannot be added.
enum Wrong {
    Row(Refusal),
    Failed(Error),
}

impl Wrong {
    /// The failure of a row of this file.
    fn of(self, path: &Path) -> Error {
        match self {
            Wrong::Row(refusal) => Error::Refused(path.to_owned(), refusal),
            Wrong::Failed(error) => error,
        }
    }
}

impl From<Error> for Wrong {
    fn from(error: Error) -> Wrong {
        Wrong::Failed(error)
    }
}

/// A finished index under its name for the time being, and what was found while it was made.
pub struct Made {
    pub(crate) making: Making,
    pub built: Built,
    /// About rows alone; none, if the rows were not read from a file.
    pub read: read::Findings,
    /// About rows compared with each other.
    pub checks: checks::Findings,
}

impl Carried for NoCarry {
    fn carried(&self, _: &Condition, _: &str) -> Result<Option<Folded>, Error> {
        Ok(None)
    }
}

/// Makes the index `path` of a Parquet file in order, whose digest is known, under its name for the time being. `None`:
/// `is_stopped` became true.
///
/// # Errors
/// Refused, with the name of the Parquet file: damaged pages, unreadable rows beyond 1 %, rows out of order or outside of
/// the hour. The system's.
pub(crate) fn prepare(
    path: &Path,
    hour: u32,
    file: &HourFile,
    parquet: [u8; 32],
    carried: &dyn Carried,
    is_stopped: &dyn Fn() -> bool,
) -> Result<Option<Made>, Error> {
    let mut builder = Builder::create(path, hour, carried)?;
    let Some(read) = builder.push_file(file, is_stopped)? else { return Ok(None) };
    let made = builder.prepare(parquet, file.row_count())?;
    Ok(Some(Made { read, ..made }))
}

impl<'a> Builder<'a> {
    /// Creates the index file under its name for the time being.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, hour: u32, carried: &'a dyn Carried) -> Result<Builder<'a>, Error> {
        let making = Making::create(path)?;
        let states = files::unnamed(&states_path(path))?;
        Ok(Builder {
            carried,
            making,
            states: BufWriter::new(states),
            states_len: 0,
            hour,
            tokens: Vec::new(),
            markets: Vec::new(),
            anchors: Vec::new(),
            anchor_count: 0,
            token: None,
            next_row: 0,
            carried_tokens: 0,
            scratch: Vec::new(),
            is_interrupted: false,
            checks: Checks::new(hour),
            #[cfg(test)]
            late: None,
        })
    }

    /// Adds the row with this number. `begins_group`: a row group begins with it.
    ///
    /// # Errors
    /// Refused: out of order, or outside of the hour. The system's.
    pub fn push(&mut self, number: u64, begins_group: bool, row: &Row) -> Result<(), Error> {
        let entered = self.enter(number, begins_group, row.received, &row.market, &row.token);
        entered.map_err(|wrong| wrong.of(self.making.path()))?;
        self.change(number, row.received, row.source, Change::of(&row.event))
    }

    /// Adds all rows of a file; `None`: `is_stopped` became true. Rows that hold no valid event are left out, as when the
    /// file is read.
    pub(super) fn push_file(
        &mut self,
        file: &HourFile,
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<Option<read::Findings>, Error> {
        let columns: Vec<usize> = (0..COLUMNS).collect();
        let groups: Vec<u64> = file.row_groups().collect();
        let mut batches = file.batches(&columns, 0..u64::MAX);
        let (mut ids, mut events, mut findings) =
            (IdReader::default(), EventReader::default(), read::Findings::default());
        let (mut bids, mut asks) = (Vec::new(), Vec::new());
        let mut last_group = None;
        while batches.next().map_err(|refusal| file.refused(refusal))? {
            if is_stopped() {
                return Ok(None);
            }
            let batch = batches.batch();
            let group = groups.partition_point(|first| *first <= batch.first_row);
            let mut begins_group = last_group != Some(group);
            last_group = Some(group);
            findings.rows += batch.rows as u64;
            for at in 0..batch.rows {
                let Some((market, token)) = ids.of(batch, at) else {
                    findings.unreadable += 1;
                    self.is_interrupted = true;
                    continue;
                };
                let Some(Read { received, source, change }) = events.read(batch, at, &mut bids, &mut asks) else {
                    findings.unreadable += 1;
                    continue;
                };
                if change.is_none() && !read::has_tick(batch, at) {
                    findings.unreadable += 1;
                    continue;
                }
                let number = batch.first_row + at as u64;
                let entered = self.enter(number, begins_group, received, market, token);
                entered.map_err(|wrong| wrong.of(file.path()))?;
                begins_group = false;
                self.change(number, received, source, change)?;
            }
        }
        findings.levels_dropped = events.levels_dropped;
        findings.check(true).map_err(|refusal| file.refused(refusal))?;
        Ok(Some(findings))
    }

    /// Goes to the token of a row, and writes the anchors that are due before it.
    fn enter(
        &mut self,
        number: u64,
        begins_group: bool,
        received: Timestamp,
        market: &Condition,
        token: &Arc<str>,
    ) -> Result<(), Wrong> {
        let refused = |what: String| Err(Wrong::Row(Refusal::new(what)));
        let unordered = |what: String| Err(Wrong::Row(Refusal::of_order(what)));
        if number < self.next_row {
            return refused(format!("row {number} comes after row {}", self.next_row));
        }
        check_received(self.hour, number, received).map_err(Wrong::Row)?;
        let at = received.millis() as i64 - Timestamp::of_hour(self.hour).millis() as i64;
        self.next_row = number + 1;
        let is_same_market = self.markets.last() == Some(market);
        let current =
            self.token.as_ref().filter(|of| is_same_market && (Arc::ptr_eq(&of.name, token) || of.name == *token));
        if let Some(of) = current {
            if i64::from(of.last) > at {
                return unordered(format!("row {number} was received before its predecessor"));
            }
            if std::mem::take(&mut self.is_interrupted) {
                return unordered(format!("a row without valid ids is before row {number}, among those of its token"));
            }
            return Ok(self.anchor_if_due(number, begins_group)?);
        }
        self.is_interrupted = false;
        let is_next = match self.markets.last() {
            Some(last) if last == market => self.token.as_ref().is_none_or(|of| of.name < *token),
            Some(last) => last < market,
            None => true,
        };
        if !is_next {
            return unordered(format!("row {number} is out of order: token {token} of {market}"));
        }
        if self.tokens.len() / TOKEN_LEN >= TOKENS_MAX {
            return refused(format!("the hour has more than {TOKENS_MAX} tokens"));
        }
        self.end_token()?;
        if !is_same_market {
            self.markets.push(*market);
        }
        let carried = self.carried.carried(market, token)?.filter(Folded::is_known);
        self.checks.begin_token(market, carried.is_some());
        let first_anchor = self.anchor_count;
        if let Some(folded) = &carried {
            self.carried_tokens += 1;
            self.anchor(number, BEFORE, AnchorKind::Opening, folded)?;
        }
        self.token = Some(Token {
            name: token.clone(),
            folded: carried.unwrap_or_default(),
            first_row: number,
            last_row: number,
            first: at as i32,
            last: at as i32,
            first_anchor,
            books: 0,
            rows: 0,
            text_bytes: 0,
            events: 0,
            segment_bytes: 0,
            due: ANCHOR_ROWS,
        });
        Ok(())
    }

    fn anchor_if_due(&mut self, number: u64, begins_group: bool) -> Result<(), Error> {
        let Some(token) = &mut self.token else { return Ok(()) };
        let is_full = token.text_bytes >= ANCHOR_TEXT_BYTES || token.segment_bytes >= SEGMENT_BYTES;
        if !begins_group && token.rows < token.due && !is_full {
            return Ok(());
        }
        self.scratch.clear();
        token.folded.write(&mut self.scratch);
        // A large state is written more rarely, in proportion.
        let due = ANCHOR_ROWS.saturating_mul((self.scratch.len() as u64).div_ceil(STATE_BYTES).max(1));
        if !begins_group && !is_full && token.rows < due {
            token.due = due;
            return Ok(());
        }
        token.rows = 0;
        token.text_bytes = 0;
        token.events = 0;
        token.segment_bytes = 0;
        token.due = ANCHOR_ROWS;
        let through = token.last;
        #[cfg(test)]
        if fault::IS_LATE.get() {
            self.late = Some((number, through));
            return Ok(());
        }
        self.put_anchor(number, through, AnchorKind::Inner)
    }

    /// Applies the row that was entered last.
    fn change(
        &mut self,
        number: u64,
        received: Timestamp,
        source: Timestamp,
        change: Option<Change<'_>>,
    ) -> Result<(), Error> {
        let Some(token) = &mut self.token else { return Ok(()) };
        self.checks.before(received, &token.folded);
        self.checks.note(received, change.as_ref());
        token.last_row = number;
        token.last = (received.millis() as i64 - Timestamp::of_hour(self.hour).millis() as i64) as i32;
        token.rows += 1;
        if let Some(change) = change {
            if let Change::Book { bids, asks } = change {
                token.books += 1;
                token.text_bytes += (bids.len() + asks.len()) * LEVEL_BYTES_MAX;
            }
            token.segment_bytes += growth(token.events, &token.folded, &change);
            token.events += 1;
            token.folded.change(received.millis(), source.millis(), change);
        }
        #[cfg(test)]
        if let (Some((row, through)), Some(token)) = (self.late.take(), &self.token) {
            let folded = token.folded.clone();
            self.anchor(row, through, AnchorKind::Inner, &folded)?;
        }
        Ok(())
    }

    /// Writes a state.
    fn anchor(&mut self, row: u64, through: i32, kind: AnchorKind, folded: &Folded) -> Result<(), Error> {
        self.scratch.clear();
        folded.write(&mut self.scratch);
        self.put_anchor(row, through, kind)
    }

    /// Writes the state in the scratch buffer.
    fn put_anchor(&mut self, row: u64, through: i32, kind: AnchorKind) -> Result<(), Error> {
        let state = &self.scratch;
        if state.len() > STATE_LEN_MAX {
            let refusal = Refusal::new(format!("the book before row {row} has {} bytes", state.len()));
            return Err(Error::Refused(self.making.path().to_owned(), refusal));
        }
        self.states.write_all(state).of(self.making.path())?;
        let mut entry = [0; ANCHOR_LEN];
        entry[..4].copy_from_slice(&(row as u32).to_le_bytes());
        entry[4..8].copy_from_slice(&through.to_le_bytes());
        entry[8..16].copy_from_slice(&self.states_len.to_le_bytes());
        entry[16..20].copy_from_slice(&(state.len() as u32).to_le_bytes());
        entry[20..24].copy_from_slice(&(kind as u32).to_le_bytes());
        self.anchors.extend_from_slice(&entry);
        self.anchor_count += 1;
        self.states_len += state.len() as u64;
        Ok(())
    }

    fn end_token(&mut self) -> Result<(), Error> {
        let Some(token) = self.token.take() else { return Ok(()) };
        self.checks.end_token(&token.folded);
        let last_row = token.last_row;
        self.anchor(last_row + 1, token.last, AnchorKind::End, &token.folded)?;
        let refusal = || Refusal::new(format!("token {} is not digits", token.name));
        let text = packed(&token.name).ok_or_else(refusal).of(self.making.path())?;
        let mut entry = [0; TOKEN_LEN];
        entry[..PACKED_LEN].copy_from_slice(&text);
        let numbers = [
            (self.markets.len() - 1) as u32,
            token.first_row as u32,
            last_row as u32,
            token.first as u32,
            token.last as u32,
            token.first_anchor,
            self.anchor_count - token.first_anchor,
            token.books,
        ];
        for (number, place) in numbers.iter().zip(entry[40..].chunks_exact_mut(4)) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        self.tokens.extend_from_slice(&entry);
        Ok(())
    }

    /// Writes the file, syncs it, renames it, and syncs the folder. `parquet` and `rows` are of the Parquet file.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(self, parquet: [u8; 32], rows: u64) -> Result<Built, Error> {
        let made = self.prepare(parquet, rows)?;
        made.making.finish()?;
        Ok(made.built)
    }

    /// Writes the file under its name for the time being.
    pub(crate) fn prepare(mut self, parquet: [u8; 32], rows: u64) -> Result<Made, Error> {
        self.end_token()?;
        let path = self.making.path().to_owned();
        let header = Header {
            hour: self.hour,
            parquet,
            rows,
            tokens: (self.tokens.len() / TOKEN_LEN) as u32,
            markets: self.markets.len() as u32,
            anchors: self.anchor_count,
            states_len: self.states_len,
            previous: self.carried.previous(),
        };
        let mut states = self.states.into_inner().map_err(io::IntoInnerError::into_error).of(&path)?;
        let mut out = Summed::new(BufWriter::new(self.making.file()));
        let written = (|| {
            states.rewind()?;
            out.write_all(&header.write())?;
            out.write_all(&self.tokens)?;
            self.markets.iter().try_for_each(|market| out.write_all(&market.0))?;
            out.write_all(&self.anchors)?;
            io::copy(&mut states, &mut out)?;
            out.finish()
        })();
        let (bytes, sha256) = written.of(&path)?;
        let built = Built {
            bytes,
            sha256,
            tokens: header.tokens.into(),
            markets: header.markets.into(),
            anchors: header.anchors.into(),
            carried_tokens: self.carried_tokens,
        };
        Ok(Made { making: self.making, built, read: read::Findings::default(), checks: self.checks.finish() })
    }
}

/// Computes the checksum of each block and the digest of the file while it is written.
struct Summed<W> {
    inner: W,
    digest: Sha256,
    bytes: u64,
    sums: Vec<u8>,
    sum: u32,
    in_block: usize,
}

impl<W: Write> Summed<W> {
    fn new(inner: W) -> Summed<W> {
        Summed { inner, digest: Sha256::new(), bytes: 0, sums: Vec::new(), sum: 0, in_block: 0 }
    }

    /// Appends the checksums; returns the bytes and the digest of the file.
    fn finish(mut self) -> io::Result<(u64, [u8; 32])> {
        if self.in_block > 0 {
            self.sums.extend_from_slice(&self.sum.to_le_bytes());
        }
        let own = crc32c::crc32c(&self.sums).to_le_bytes();
        for bytes in [&self.sums[..], &own] {
            self.inner.write_all(bytes)?;
            self.digest.update(bytes);
            self.bytes += bytes.len() as u64;
        }
        self.inner.flush()?;
        Ok((self.bytes, self.digest.finalize().into()))
    }
}

impl<W: Write> Write for Summed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let bytes = &bytes[..bytes.len().min(BLOCK_LEN - self.in_block)];
        self.inner.write_all(bytes)?;
        self.digest.update(bytes);
        self.bytes += bytes.len() as u64;
        self.sum = crc32c::crc32c_append(self.sum, bytes);
        self.in_block += bytes.len();
        if self.in_block == BLOCK_LEN {
            self.sums.extend_from_slice(&self.sum.to_le_bytes());
            (self.sum, self.in_block) = (0, 0);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn states_path(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".states");
    files::making_path(Path::new(&name))
}

/// A fault for the test that must find it: an inner anchor has one more row than it states.
#[cfg(test)]
pub(crate) mod fault {
    use std::cell::Cell;

    thread_local! {
        pub(crate) static IS_LATE: Cell<bool> = const { Cell::new(false) };
    }
}
