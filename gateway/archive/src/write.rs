//! Writing of an hour as Parquet: the sixteen columns, ZSTD 9, row groups of 1,048,576 rows, pages of at most 20,000
//! rows with a page index and checksums (gateway/docs/archive.md §2).
//!
//! All columns of a row group are encoded as rows arrive, so that a row group takes its compressed size in memory.

mod pages;

use crate::error::{Error, Named, Refusal};
use crate::files;
use crate::levels;
use crate::read::{HourFile, SOURCE_KEY};
use crate::row::{Condition, Event, Kind, LEVELS_BYTES_MAX, Row, SIZE_MAX, is_price, is_token};
use crate::schema::{self, COLUMNS};
use crate::sink::{Sink, after_failure, failed};
use bytes::Bytes;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::time::{MILLISECOND, Timestamp};
use pages::Pages;
use parking_lot::Mutex;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::{ColumnWriter, get_column_writer};
use parquet::data_type::{ByteArray, FixedLenByteArray};
use parquet::errors::ParquetError;
use parquet::file::metadata::{KeyValue, SortingColumn};
use parquet::file::properties::{
    EnabledStatistics, WriterProperties, WriterPropertiesBuilder, WriterPropertiesPtr, WriterVersion,
};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, SchemaDescriptor};
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group and of a page.
pub const ROW_GROUP_ROWS: u64 = 1_048_576;
pub(crate) const PAGE_ROWS: usize = 20_000;
/// Rows that are encoded together; a page is a multiple of it.
const STEP_ROWS: usize = 1_000;
/// A row group ends early when its texts have this many bytes: a reader accepts 1 GiB.
const ROW_GROUP_TEXT_MAX: u64 = 512 << 20;
/// Texts of rows that are not encoded yet.
const WAITING_TEXT_MAX: usize = 4 << 20;
const ZSTD_LEVEL: i32 = 9;
/// A column with more distinct values than that in a row group is plain from there on.
const DICTIONARY_BYTES: usize = 4 << 20;

/// Writes `NAME.making`; [`HourWriter::finish`] renames it to NAME. A writer that is dropped before removes its file.
/// [`HourWriter::prepare`] leaves the renaming to [`Store::complete`](crate::store::Store::complete).
pub struct HourWriter {
    making: files::Making,
    /// `None` after a failure.
    writer: Option<SerializedFileWriter<Sink>>,
    /// Of all columns, and of the market: the library writes dictionaries of fixed-size values in pages of version 2
    /// only.
    properties: [WriterPropertiesPtr; 2],
    schema: SchemaDescriptor,
    group: Option<Group>,
    waiting: Waiting,
    rows: u64,
    row_groups: u32,
    group_rows: u64,
    group_text: u64,
    counts: [u64; Kind::ALL.len()],
    last: Option<(Condition, Arc<str>, Timestamp)>,
}

/// What a finished file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub rows: u64,
    pub row_groups: u32,
}

/// A Parquet file that is whole and synced, and has its name for the time being. Dropped, it is removed.
#[derive(Debug)]
pub struct Prepared {
    pub(crate) making: files::Making,
    written: Written,
}

/// The open columns of a row group.
struct Group {
    columns: Vec<(ColumnWriter<'static>, Arc<Mutex<Vec<u8>>>)>,
}

/// Rows that are not encoded yet, by column.
#[derive(Default)]
struct Waiting {
    rows: usize,
    text_bytes: usize,
    numbers: [Numbers; COLUMNS],
    texts: [TextValues; COLUMNS],
    market: Option<(Condition, FixedLenByteArray)>,
    markets: Vec<FixedLenByteArray>,
    token: Option<(Arc<str>, ByteArray)>,
    names: Vec<(&'static str, ByteArray)>,
    scratch: Vec<u8>,
}

#[derive(Default)]
struct Numbers {
    values: Vec<i64>,
    levels: Vec<i16>,
}

#[derive(Default)]
struct TextValues {
    values: Vec<ByteArray>,
    levels: Vec<i16>,
}

impl Prepared {
    /// A link to a Parquet file, or a copy of it, that is to become the file of an hour.
    ///
    /// # Errors
    /// The file is not a complete Parquet hour; the system's.
    pub fn of_file(from: &Path, path: &Path, is_linked: bool) -> Result<Prepared, Error> {
        let making = files::Making::of_file(from, path, is_linked)?;
        let (sha256, bytes) = files::digest(making.making())?;
        let file = HourFile::open(making.making())?;
        let (rows, row_groups) = (file.row_count(), file.row_groups().len() as u32);
        Ok(Prepared { making, written: Written { bytes, sha256, rows, row_groups } })
    }

    pub fn written(&self) -> Written {
        self.written
    }

    /// Opens the file.
    ///
    /// # Errors
    /// As [`HourFile::open`].
    pub fn open(&self) -> Result<HourFile, Error> {
        HourFile::open(self.making.making())
    }
}

impl HourWriter {
    /// Creates `path` with `.making` appended; one that a crash left is replaced. `source`: SHA-256 of what the hour is
    /// made of, for the metadata `papertape.source`.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, source: Option<[u8; 32]>) -> Result<HourWriter, Error> {
        HourWriter::create_with(path, source, |properties| properties)
    }

    /// The same with other properties, as other writers have them.
    pub(crate) fn create_with(
        path: &Path,
        source: Option<[u8; 32]>,
        change: impl Fn(WriterPropertiesBuilder) -> WriterPropertiesBuilder,
    ) -> Result<HourWriter, Error> {
        let making = files::Making::create(path)?;
        let sink = Sink::new(making.file().try_clone().of(path)?, u64::MAX);
        let schema = schema::message().map_err(|error| failed(path, error))?;
        let of = |version| {
            let properties = properties(source, version).map_err(|error| failed(path, error))?;
            Ok::<_, Error>(Arc::new(change(properties).build()))
        };
        let properties = [of(WriterVersion::PARQUET_1_0)?, of(WriterVersion::PARQUET_2_0)?];
        let writer = SerializedFileWriter::new(sink, schema.clone(), properties[0].clone());
        Ok(HourWriter {
            writer: Some(writer.map_err(|error| failed(path, error))?),
            making,
            properties,
            schema: SchemaDescriptor::new(schema),
            group: None,
            waiting: Waiting::default(),
            rows: 0,
            row_groups: 0,
            group_rows: 0,
            group_text: 0,
            counts: [0; Kind::ALL.len()],
            last: None,
        })
    }

    /// The same file with a bound: a write beyond it fails with [`std::io::ErrorKind::FileTooLarge`].
    #[must_use]
    pub fn at_most(mut self, bytes: u64) -> HourWriter {
        if let Some(writer) = &mut self.writer {
            writer.inner_mut().bytes_max = bytes;
        }
        self
    }

    /// Adds a row. Rows come in file order: (market, token, receipt).
    ///
    /// # Errors
    /// Refused: another order, or a value that the columns cannot hold; nothing was added then. The system's: the
    /// writer cannot continue.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.check(row).of(self.making.path())?;
        if self.last.as_ref().is_none_or(|(market, token, _)| *market != row.market || **token != *row.token) {
            self.last = Some((row.market, row.token.clone(), row.received));
        } else if let Some((_, _, received)) = &mut self.last {
            *received = row.received;
        }
        let text = self.waiting.push(row);
        self.group_text += text as u64;
        self.group_rows += 1;
        self.rows += 1;
        self.counts[row.event.kind() as usize] += 1;
        let ends_group = self.group_rows == ROW_GROUP_ROWS || self.group_text >= ROW_GROUP_TEXT_MAX;
        if ends_group || self.waiting.rows == STEP_ROWS || self.waiting.text_bytes >= WAITING_TEXT_MAX {
            self.encode()?;
        }
        if ends_group {
            self.end_group()?;
        }
        Ok(())
    }

    fn check(&self, row: &Row) -> Result<(), Refusal> {
        let key = |(market, token, received): &(Condition, Arc<str>, Timestamp)| {
            (row.market, &*row.token, row.received) < (*market, &**token, *received)
        };
        if self.last.as_ref().is_some_and(key) {
            return Err(Refusal::new(format!("row {} is before its predecessor", self.rows)));
        }
        let is_level = |(price, size): &(Price, Qty)| is_price(*price) && *size <= SIZE_MAX;
        let fits = is_token(row.token.as_bytes())
            && row.received.0.is_multiple_of(MILLISECOND)
            && row.source.0.is_multiple_of(MILLISECOND)
            && match &row.event {
                Event::Book { bids, asks } => {
                    let fits = |side: &Vec<(Price, Qty)>| {
                        side.len() * levels::LEVEL_BYTES_MAX < LEVELS_BYTES_MAX && side.iter().all(is_level)
                    };
                    fits(bids) && fits(asks)
                }
                Event::PriceChange { price, size, .. } | Event::LastTradePrice { price, size, .. } => {
                    is_level(&(*price, *size))
                }
                Event::TickSizeChange { old, new } => {
                    old.iter().chain([new]).all(|tick| (1..=10_000).contains(&tick.0))
                }
            };
        if fits { Ok(()) } else { Err(Refusal::new(format!("row {} does not fit the columns", self.rows))) }
    }

    /// Rows so far, by kind: the index is the position in [`Kind::ALL`].
    pub fn counts(&self) -> [u64; Kind::ALL.len()] {
        self.counts
    }

    /// Number of the next row.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Whether the next row begins a row group.
    pub fn is_at_row_group(&self) -> bool {
        self.group_rows == 0
    }

    /// Writes the footer, syncs the file, renames it, and syncs the folder.
    ///
    /// # Errors
    /// The system's; the file keeps its `.making` name until the writer is dropped.
    pub fn finish(self) -> Result<Written, Error> {
        let Prepared { making, written } = self.prepare()?;
        making.finish()?;
        Ok(written)
    }

    /// Writes the footer and syncs the file, which keeps its `.making` name.
    ///
    /// # Errors
    /// The system's.
    pub fn prepare(mut self) -> Result<Prepared, Error> {
        self.encode()?;
        self.end_group()?;
        let path = self.making.path().to_owned();
        let mut writer = self.writer.take().ok_or_else(|| after_failure(&path))?;
        writer.finish().map_err(|error| failed(&path, error))?;
        let (bytes, sha256) = writer.inner().written();
        self.making.sync()?;
        let written = Written { bytes, sha256, rows: self.rows, row_groups: self.row_groups };
        Ok(Prepared { making: self.making, written })
    }

    /// Encodes the waiting rows.
    fn encode(&mut self) -> Result<(), Error> {
        if self.waiting.rows == 0 {
            return Ok(());
        }
        let path = self.making.path();
        let group = self.group.get_or_insert_with(|| Group::new(&self.schema, &self.properties));
        group.write(&mut self.waiting).map_err(|error| failed(path, error))
    }

    fn end_group(&mut self) -> Result<(), Error> {
        let Some(group) = self.group.take() else { return Ok(()) };
        let path = self.making.path();
        // A row group that was written in part is of no use: the writer is gone then.
        let mut writer = self.writer.take().ok_or_else(|| after_failure(path))?;
        group.splice(&mut writer).map_err(|error| failed(path, error))?;
        self.writer = Some(writer);
        self.row_groups += 1;
        self.group_rows = 0;
        self.group_text = 0;
        Ok(())
    }
}

impl Group {
    fn new(schema: &SchemaDescriptor, properties: &[WriterPropertiesPtr; 2]) -> Group {
        let column = |number: usize| {
            let pages = Arc::new(Mutex::new(Vec::new()));
            let sink = Pages::new(pages.clone());
            let properties = properties[usize::from(number == schema::MARKET)].clone();
            (get_column_writer(schema.column(number), properties, Box::new(sink)), pages)
        };
        Group { columns: (0..COLUMNS).map(column).collect() }
    }

    fn write(&mut self, waiting: &mut Waiting) -> parquet::errors::Result<()> {
        for (number, (column, _)) in self.columns.iter_mut().enumerate() {
            let is_nullable = number >= schema::REQUIRED;
            let (numbers, texts) = (&waiting.numbers[number], &waiting.texts[number]);
            let number_levels = is_nullable.then_some(numbers.levels.as_slice());
            let text_levels = is_nullable.then_some(texts.levels.as_slice());
            match column {
                ColumnWriter::Int64ColumnWriter(column) => {
                    column.write_batch(&numbers.values, number_levels, None)?;
                }
                ColumnWriter::Int32ColumnWriter(column) => {
                    let values: Vec<i32> = numbers.values.iter().map(|value| *value as i32).collect();
                    column.write_batch(&values, number_levels, None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(column) => {
                    column.write_batch(&texts.values, text_levels, None)?;
                }
                ColumnWriter::FixedLenByteArrayColumnWriter(column) => {
                    column.write_batch(&waiting.markets, None, None)?;
                }
                _ => return Err(ParquetError::General("the schema has no other types".to_owned())),
            }
        }
        waiting.clear();
        Ok(())
    }

    /// Appends the columns to the file as one row group.
    fn splice(self, writer: &mut SerializedFileWriter<Sink>) -> parquet::errors::Result<()> {
        let mut group = writer.next_row_group()?;
        for (column, pages) in self.columns {
            let closed = column.close()?;
            let pages = Bytes::from(std::mem::take(&mut *pages.lock()));
            group.append_column(&pages, closed)?;
        }
        group.close()?;
        Ok(())
    }
}

impl Waiting {
    /// Adds a row; returns the bytes of its texts.
    fn push(&mut self, row: &Row) -> usize {
        let before = self.text_bytes;
        self.rows += 1;
        self.numbers[schema::RECEIVED].values.push(row.received.millis() as i64);
        self.numbers[schema::SOURCE].values.push(row.source.millis() as i64);
        self.push_ids(row);
        let kind = self.name(row.event.kind().name());
        self.texts[schema::EVENT].values.push(kind);
        let mut event = Columns::default();
        match &row.event {
            Event::Book { bids, asks } => {
                event.bids = Some(self.levels(bids));
                event.asks = Some(self.levels(asks));
            }
            Event::PriceChange { price, size, side, best_bid, best_ask } => {
                event.price = Some(price.0.into());
                event.size = Some(size.0 as i64);
                event.side = Some(self.name(side_name(*side == BookSide::Bid)));
                event.best_bid = best_bid.map(|price| price.0.into());
                event.best_ask = best_ask.map(|price| price.0.into());
            }
            Event::LastTradePrice { price, size, taker_buys, fee_rate_bps, transaction_hash } => {
                event.price = Some(price.0.into());
                event.size = Some(size.0 as i64);
                event.side = Some(self.name(side_name(*taker_buys)));
                event.fee_rate = fee_rate_bps.map(i64::from);
                event.hash = transaction_hash.as_ref().map(|hash| {
                    self.text_bytes += hash.len();
                    ByteArray::from(hash.as_bytes().to_vec())
                });
            }
            Event::TickSizeChange { old, new } => {
                event.old_tick = old.map(|tick| tick.0.into());
                event.new_tick = Some(new.0.into());
            }
        }
        for (column, value) in [
            (schema::PRICE, event.price),
            (schema::SIZE, event.size),
            (schema::BEST_BID, event.best_bid),
            (schema::BEST_ASK, event.best_ask),
            (schema::FEE_RATE, event.fee_rate),
            (schema::OLD_TICK, event.old_tick),
            (schema::NEW_TICK, event.new_tick),
        ] {
            let numbers = &mut self.numbers[column];
            numbers.levels.push(value.is_some().into());
            numbers.values.extend(value);
        }
        for (column, value) in [
            (schema::BIDS, event.bids),
            (schema::ASKS, event.asks),
            (schema::SIDE, event.side),
            (schema::HASH, event.hash),
        ] {
            let texts = &mut self.texts[column];
            texts.levels.push(value.is_some().into());
            texts.values.extend(value);
        }
        self.text_bytes - before
    }

    /// Market and token; equal ones share their bytes.
    fn push_ids(&mut self, row: &Row) {
        let market = match &self.market {
            Some((of, value)) if *of == row.market => value.clone(),
            _ => {
                let value = FixedLenByteArray::from(row.market.text().to_vec());
                self.market.insert((row.market, value)).1.clone()
            }
        };
        self.markets.push(market);
        let token = match &self.token {
            Some((of, value)) if **of == *row.token => value.clone(),
            _ => {
                let value = ByteArray::from(row.token.as_bytes().to_vec());
                self.token.insert((row.token.clone(), value)).1.clone()
            }
        };
        self.texts[schema::TOKEN].values.push(token);
    }

    /// One of the few fixed texts.
    fn name(&mut self, name: &'static str) -> ByteArray {
        if let Some((_, value)) = self.names.iter().find(|(of, _)| *of == name) {
            return value.clone();
        }
        let value = ByteArray::from(name);
        self.names.push((name, value.clone()));
        value
    }

    fn levels(&mut self, levels: &[(Price, Qty)]) -> ByteArray {
        self.scratch.clear();
        levels::write(levels, &mut self.scratch);
        self.text_bytes += self.scratch.len();
        ByteArray::from(self.scratch.clone())
    }

    fn clear(&mut self) {
        self.rows = 0;
        self.text_bytes = 0;
        self.markets.clear();
        for numbers in &mut self.numbers {
            numbers.values.clear();
            numbers.levels.clear();
        }
        for texts in &mut self.texts {
            texts.values.clear();
            texts.levels.clear();
        }
    }
}

/// The nullable columns of one row.
#[derive(Default)]
struct Columns {
    bids: Option<ByteArray>,
    asks: Option<ByteArray>,
    price: Option<i64>,
    size: Option<i64>,
    side: Option<ByteArray>,
    best_bid: Option<i64>,
    best_ask: Option<i64>,
    fee_rate: Option<i64>,
    hash: Option<ByteArray>,
    old_tick: Option<i64>,
    new_tick: Option<i64>,
}

pub(crate) fn side_name(is_buy: bool) -> &'static str {
    if is_buy { "BUY" } else { "SELL" }
}

/// What all files have, sorted by these columns.
pub(crate) fn base_properties<const N: usize>(
    source: Option<[u8; 32]>,
    sorted: [usize; N],
) -> parquet::errors::Result<WriterPropertiesBuilder> {
    let sorted =
        sorted.map(|column| SortingColumn { column_idx: column as i32, descending: false, nulls_first: false });
    let source = source.map(|digest| files::hex(&digest));
    let metadata = source.map(|source| vec![KeyValue::new(SOURCE_KEY.to_owned(), source)]);
    Ok(WriterProperties::builder()
        .set_encoding(Encoding::PLAIN)
        .set_dictionary_page_size_limit(DICTIONARY_BYTES)
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_max_row_group_row_count(None)
        .set_data_page_row_count_limit(PAGE_ROWS)
        .set_write_batch_size(STEP_ROWS)
        .set_sorting_columns(Some(sorted.into()))
        // Ids are longer than the default of 64 bytes. pyarrow ends its process at a cut bound of a fixed-size id.
        .set_statistics_truncate_length(None)
        .set_column_index_truncate_length(None)
        .set_key_value_metadata(metadata)
        .set_created_by(concat!("papertape ", env!("CARGO_PKG_VERSION")).to_owned()))
}

fn properties(source: Option<[u8; 32]>, version: WriterVersion) -> parquet::errors::Result<WriterPropertiesBuilder> {
    let sorted = [schema::MARKET, schema::TOKEN, schema::RECEIVED];
    let mut builder = base_properties(source, sorted)?.set_writer_version(version);
    for (number, (name, _)) in schema::TABLE.into_iter().enumerate() {
        let path = ColumnPath::from(name);
        if matches!(number, schema::RECEIVED | schema::SOURCE | schema::FEE_RATE) {
            builder = builder
                .set_column_dictionary_enabled(path.clone(), false)
                .set_column_encoding(path.clone(), Encoding::DELTA_BINARY_PACKED);
        }
        // Bounds of long texts help no query.
        if matches!(number, schema::BIDS | schema::ASKS | schema::HASH) {
            builder = builder.set_column_statistics_enabled(path, EnabledStatistics::None);
        }
    }
    Ok(builder)
}
