//! Reading of hours as Parquet: ours, and those of other writers.

use crate::error::{Error, Named, Refusal};
use crate::files;
use crate::fold::Change;
use crate::levels;
use crate::parquet_file::columns::{Batch, Batches, Columns, Texts};
pub use crate::parquet_file::footer::FILE_BYTES_MAX;
use crate::parquet_file::source::Source;
use crate::row::{Condition, Event, Kind, Row, SIZE_MAX, is_price, is_token};
use crate::schema::{self, Layout};
use ahash::AHashMap;
use bytes::Bytes;
use engine::amount::{Price, Qty, TickSize};
use engine::book::BookSide;
use engine::time::Timestamp;
use parquet::data_type::ByteArray;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The last millisecond of the year 9999: later times are not read.
pub(crate) const MILLIS_MAX: i64 = 253_402_300_799_999;
/// Longest transaction hash.
const HASH_BYTES_MAX: usize = 256;
/// At most one row in this number may be unreadable.
const UNREADABLE_ONE_IN: u64 = 100;
/// Columns that change books.
const CHANGE_COLUMNS: [usize; 10] = [
    schema::RECEIVED,
    schema::SOURCE,
    schema::EVENT,
    schema::BIDS,
    schema::ASKS,
    schema::PRICE,
    schema::SIZE,
    schema::SIDE,
    schema::BEST_BID,
    schema::BEST_ASK,
];
/// Key of the digest of the source in the metadata.
pub(crate) const SOURCE_KEY: &str = "papertape.source";

/// An open Parquet file with the columns of an hour. Sizes and columns have been checked; rows are read on demand, from
/// any number of threads.
pub struct HourFile {
    path: PathBuf,
    columns: Columns,
    layout: Layout,
    /// Whether rows were asked for.
    is_read: AtomicBool,
}

/// Rows of a file in file order.
pub struct Rows<'a> {
    file: &'a HourFile,
    batches: Batches<'a>,
    /// The next row of the batch.
    at: usize,
    ids: IdReader,
    events: EventReader,
    findings: Findings,
    last: Option<(Condition, Arc<str>, Timestamp)>,
    is_whole: bool,
    has_ended: bool,
}

/// Findings about the rows read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Rows read, unreadable ones included.
    pub rows: u64,
    /// Rows that hold no valid event. They are skipped; if they are more than 1 % of a file, the file is refused.
    pub unreadable: u64,
    /// Levels of readable books that were left out, because their price or size is finer than the scale.
    pub levels_dropped: u64,
    /// Whether a row was before its predecessor in (market, token, receipt).
    pub unsorted: bool,
}

/// Reads market and token of rows from batches.
#[derive(Default)]
pub(crate) struct IdReader {
    markets: Cache<Option<Condition>>,
    tokens: Cache<Option<Arc<str>>>,
}

/// Reads events from batches.
#[derive(Default)]
pub(crate) struct EventReader {
    pub(crate) levels_dropped: u64,
}

/// A row as a fold sees it.
pub(crate) struct Read<'a> {
    pub(crate) received: Timestamp,
    pub(crate) source: Timestamp,
    /// `None`: the row is not about the book.
    pub(crate) change: Option<Change<'a>>,
}

/// What the texts of a column mean. Rows in order repeat few texts, in long stretches.
struct Cache<T> {
    values: AHashMap<Box<[u8]>, T>,
    /// The last text and its meaning; `None` before the first. The text keeps its bytes in memory, so no other text has
    /// their address meanwhile.
    last: Option<(ByteArray, T)>,
}

/// Texts that a cache keeps; beyond, it starts again.
const CACHED_MAX: usize = 65_536;

impl HourFile {
    /// Opens a plain file; links and devices are refused.
    ///
    /// # Errors
    /// Refused: it is not a complete Parquet file; a size is beyond its bound (gateway/docs/archive.md §6); columns
    /// differ from those of an hour, with their names.
    pub fn open(path: &Path) -> Result<HourFile, Error> {
        let source = Source::open(path).of(path)?;
        HourFile::of_source(path, source).of(path)
    }

    /// The same of a file in memory; `name` occurs in errors.
    ///
    /// # Errors
    /// As [`HourFile::open`].
    pub fn of_bytes(name: &str, bytes: Vec<u8>) -> Result<HourFile, Error> {
        let path = Path::new(name);
        HourFile::of_source(path, Source::Memory(Bytes::from(bytes))).of(path)
    }

    fn of_source(path: &Path, source: Source) -> Result<HourFile, Refusal> {
        let columns = Columns::open(source)?;
        let layout = Layout::of(&columns.footer)?;
        Ok(HourFile { path: path.to_owned(), columns, layout, is_read: AtomicBool::new(false) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of the file.
    pub fn bytes(&self) -> u64 {
        self.columns.source.len()
    }

    pub fn row_count(&self) -> u64 {
        self.columns.footer.rows
    }

    /// Number of the first row of each row group.
    pub fn row_groups(&self) -> impl ExactSizeIterator<Item = u64> {
        self.columns.footer.row_groups.iter().map(|group| group.first_row)
    }

    /// The program that wrote the file, as the file states it.
    pub fn created_by(&self) -> Option<&str> {
        self.columns.footer.created_by()
    }

    /// Names of columns that are not part of an hour; they are ignored.
    pub fn extra_columns(&self) -> &[String] {
        &self.layout.extra
    }

    /// The value of `papertape.source`, if it is a SHA-256.
    pub fn source(&self) -> Option<[u8; 32]> {
        self.columns.footer.value(SOURCE_KEY).and_then(files::unhex)
    }

    /// The rows with these numbers, in file order. Rows without a valid event are skipped and counted.
    pub fn rows(&self, range: Range<u64>) -> Rows<'_> {
        let all: Vec<usize> = (0..schema::COLUMNS).collect();
        Rows {
            is_whole: range.start == 0 && range.end >= self.row_count(),
            file: self,
            batches: self.batches(&all, range),
            at: 0,
            ids: IdReader::default(),
            events: EventReader::default(),
            findings: Findings::default(),
            last: None,
            has_ended: false,
        }
    }

    /// All rows.
    pub fn all_rows(&self) -> Rows<'_> {
        self.rows(0..self.row_count())
    }

    /// Whether rows were asked for since the file was opened.
    pub(crate) fn is_read(&self) -> bool {
        self.is_read.load(Ordering::Relaxed)
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.columns.footer.memory() + size_of::<HourFile>()
    }

    /// Hands out what the rows with these numbers do to books, in file order: number, receipt, time of the venue, change.
    /// Ids, fees, hashes and price grids are not decoded. Rows that change nothing or hold no valid event are skipped.
    ///
    /// # Errors
    /// A damaged page; those of `each`.
    pub fn changes(
        &self,
        range: Range<u64>,
        mut each: impl FnMut(u64, Timestamp, Timestamp, Change<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let (mut batches, mut events) = (self.batches(&CHANGE_COLUMNS, range), EventReader::default());
        let (mut bids, mut asks) = (Vec::new(), Vec::new());
        while batches.next().map_err(|refusal| self.refused(refusal))? {
            let batch = batches.batch();
            for at in 0..batch.rows {
                if let Some(Read { received, source, change: Some(change) }) =
                    events.read(batch, at, &mut bids, &mut asks)
                {
                    each(batch.first_row + at as u64, received, source, change)?;
                }
            }
        }
        Ok(())
    }

    pub(crate) fn batches(&self, columns: &[usize], range: Range<u64>) -> Batches<'_> {
        self.is_read.store(true, Ordering::Relaxed);
        self.columns.batches(self.layout.wanted(columns), range)
    }

    /// A failure as one of this file.
    pub(crate) fn refused(&self, refusal: Refusal) -> Error {
        Error::Refused(self.path.clone(), refusal)
    }
}

impl Rows<'_> {
    pub fn findings(&self) -> Findings {
        Findings { levels_dropped: self.events.levels_dropped, ..self.findings }
    }

    /// The next row; at the end `None`.
    fn read(&mut self) -> Result<Option<(u64, Row)>, Refusal> {
        loop {
            if self.at == self.batches.batch().rows {
                self.at = 0;
                if !self.batches.next()? {
                    self.findings.check(self.is_whole)?;
                    return Ok(None);
                }
            }
            let (batch, at) = (self.batches.batch(), self.at);
            self.at += 1;
            self.findings.rows += 1;
            let Some(row) = row(&mut self.ids, &mut self.events, batch, at) else {
                self.findings.unreadable += 1;
                continue;
            };
            let is_before = |(market, token, received): &(Condition, Arc<str>, Timestamp)| {
                (row.market, &*row.token, row.received) < (*market, &**token, *received)
            };
            self.findings.unsorted |= self.last.as_ref().is_some_and(is_before);
            self.last = Some((row.market, row.token.clone(), row.received));
            return Ok(Some((batch.first_row + at as u64, row)));
        }
    }
}

impl Findings {
    /// # Errors
    /// More than 1 % of the rows of a whole file are unreadable.
    pub(crate) fn check(&self, is_whole: bool) -> Result<(), Refusal> {
        if is_whole && self.unreadable > self.rows / UNREADABLE_ONE_IN {
            return Err(Refusal::new(format!("{} of {} rows are unreadable", self.unreadable, self.rows)));
        }
        Ok(())
    }
}

impl Iterator for Rows<'_> {
    /// The row's number, and the row. An error is the last item: a damaged page, or too many unreadable rows.
    type Item = Result<(u64, Row), Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.has_ended {
            return None;
        }
        let read = self.read();
        self.has_ended = !matches!(read, Ok(Some(_)));
        read.map_err(|refusal| self.file.refused(refusal)).transpose()
    }
}

/// A row; `None`: it holds no valid event.
fn row(ids: &mut IdReader, events: &mut EventReader, batch: &Batch, at: usize) -> Option<Row> {
    let received = time(batch.numbers(schema::RECEIVED)[at])?;
    let source = time(batch.numbers(schema::SOURCE)[at])?;
    let (market, token) = ids.of(batch, at)?;
    Some(Row { received, source, market: *market, token: token.clone(), event: events.event(batch, at)? })
}

impl IdReader {
    /// Market and token of a row; `None`: one of them is not an id.
    #[inline]
    pub(crate) fn of(&mut self, batch: &Batch, at: usize) -> Option<(&Condition, &Arc<str>)> {
        let token = |text: &[u8]| is_token(text).then(|| String::from_utf8_lossy(text).into());
        let market = self.markets.of(batch.texts(schema::MARKET), at, Condition::parse_bytes)?.as_ref()?;
        Some((market, self.tokens.of(batch.texts(schema::TOKEN), at, token)?.as_ref()?))
    }
}

/// The kind of a row's event.
fn kind(batch: &Batch, at: usize) -> Option<Kind> {
    Kind::parse(batch.texts(schema::EVENT).of(at)?)
}

fn side(batch: &Batch, at: usize) -> Option<BookSide> {
    match batch.texts(schema::SIDE).of(at)? {
        b"BUY" => Some(BookSide::Bid),
        b"SELL" => Some(BookSide::Ask),
        _ => None,
    }
}

/// Whether the row states a new price grid.
pub(crate) fn has_tick(batch: &Batch, at: usize) -> bool {
    tick(batch.numbers(schema::NEW_TICK)[at]).is_some()
}

/// Price, size and side of a change or a trade.
fn level(batch: &Batch, at: usize) -> Option<(Price, Qty, BookSide)> {
    let price = price_of(batch.numbers(schema::PRICE)[at])?;
    Some((price, size(batch.numbers(schema::SIZE)[at])?, side(batch, at)?))
}

impl EventReader {
    /// Reads both sides of a book row; `None` when one is not a list of levels, or both are missing.
    fn book(
        &mut self,
        batch: &Batch,
        at: usize,
        bids: &mut Vec<(Price, Qty)>,
        asks: &mut Vec<(Price, Qty)>,
    ) -> Option<()> {
        let texts = [batch.texts(schema::BIDS).of(at), batch.texts(schema::ASKS).of(at)];
        if texts == [None, None] {
            return None;
        }
        // An empty side may be null.
        let dropped = levels::read(texts[0].unwrap_or(b"[]"), bids)? + levels::read(texts[1].unwrap_or(b"[]"), asks)?;
        self.levels_dropped += u64::from(dropped);
        Some(())
    }

    /// Times and change of a row, from all columns but those of ids, fees, hashes and ticks; `None`: it holds no valid
    /// event. Levels are put into `bids` and `asks`.
    pub(crate) fn read<'a>(
        &mut self,
        batch: &Batch,
        at: usize,
        bids: &'a mut Vec<(Price, Qty)>,
        asks: &'a mut Vec<(Price, Qty)>,
    ) -> Option<Read<'a>> {
        let received = time(batch.numbers(schema::RECEIVED)[at])?;
        let source = time(batch.numbers(schema::SOURCE)[at])?;
        let change = match kind(batch, at)? {
            Kind::Book => {
                self.book(batch, at, bids, asks)?;
                Some(Change::Book { bids, asks })
            }
            Kind::PriceChange => {
                let (price, size, side) = level(batch, at)?;
                let stated = [schema::BEST_BID, schema::BEST_ASK].map(|column| price_of(batch.numbers(column)[at]));
                Some(Change::Level { side, price, size, stated })
            }
            Kind::LastTradePrice => level(batch, at).map(|_| Some(Change::Trade))?,
            Kind::TickSizeChange => None,
        };
        Some(Read { received, source, change })
    }

    fn event(&mut self, batch: &Batch, at: usize) -> Option<Event> {
        let number = |column: usize| batch.numbers(column)[at];
        Some(match kind(batch, at)? {
            Kind::Book => {
                let (mut bids, mut asks) = (Vec::new(), Vec::new());
                self.book(batch, at, &mut bids, &mut asks)?;
                Event::Book { bids, asks }
            }
            Kind::PriceChange => {
                let (price, size, side) = level(batch, at)?;
                let [best_bid, best_ask] = [schema::BEST_BID, schema::BEST_ASK].map(|column| price_of(number(column)));
                Event::PriceChange { price, size, side, best_bid, best_ask }
            }
            Kind::LastTradePrice => {
                let (price, size, side) = level(batch, at)?;
                let hash = batch.texts(schema::HASH).of(at).filter(|hash| hash.len() <= HASH_BYTES_MAX);
                Event::LastTradePrice {
                    price,
                    size,
                    taker_buys: side == BookSide::Bid,
                    fee_rate_bps: u16::try_from(number(schema::FEE_RATE)).ok(),
                    transaction_hash: hash.and_then(|hash| std::str::from_utf8(hash).ok()).map(Arc::from),
                }
            }
            Kind::TickSizeChange => {
                Event::TickSizeChange { old: tick(number(schema::OLD_TICK)), new: tick(number(schema::NEW_TICK))? }
            }
        })
    }
}

impl<T> Default for Cache<T> {
    fn default() -> Cache<T> {
        Cache { values: AHashMap::new(), last: None }
    }
}

impl<T: Clone> Cache<T> {
    /// The meaning of the text of a row; `None` for a null.
    #[inline]
    fn of(&mut self, texts: &Texts, at: usize, read: impl Fn(&[u8]) -> T) -> Option<&T> {
        let text = texts.array(at)?;
        // Equal texts of one dictionary are the same bytes in memory.
        let is_last = self.last.as_ref().is_some_and(|(last, _)| std::ptr::eq(last.data(), text.data()));
        if !is_last {
            self.look_up(text, read);
        }
        self.last.as_ref().map(|(_, value)| value)
    }

    fn look_up(&mut self, text: &ByteArray, read: impl Fn(&[u8]) -> T) {
        let bytes = text.data();
        if let Some((last, _)) = &mut self.last
            && last.data() == bytes
        {
            *last = text.clone();
            return;
        }
        let value = match self.values.get(bytes) {
            Some(value) => value.clone(),
            None => {
                if self.values.len() >= CACHED_MAX {
                    self.values.clear();
                }
                let value = read(bytes);
                self.values.insert(bytes.into(), value.clone());
                value
            }
        };
        self.last = Some((text.clone(), value));
    }
}

/// A time in milliseconds.
fn time(millis: i64) -> Option<Timestamp> {
    (0..=MILLIS_MAX).contains(&millis).then(|| Timestamp::from_millis(millis as u64))
}

/// A price of a level. Of best prices, the placeholders 0 and 1 are an empty side.
fn price_of(value: i64) -> Option<Price> {
    u16::try_from(value).ok().map(Price).filter(|price| is_price(*price))
}

fn size(value: i64) -> Option<Qty> {
    u64::try_from(value).ok().map(Qty).filter(|size| *size <= SIZE_MAX)
}

fn tick(value: i64) -> Option<TickSize> {
    u16::try_from(value).ok().filter(|tick| (1..=10_000).contains(tick)).map(TickSize)
}

#[cfg(test)]
mod tests;
