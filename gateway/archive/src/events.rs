//! Events as Parquet with seven columns, one row an event: the form of exports for tools that fold no books
//! (gateway/docs/simulation.md §7).
//!
//! | Column | Type | Null |
//! |---|---|---|
//! | `ts` | timestamp[ms, UTC] | never; the time of receipt |
//! | `token_id`, `event` | string | never |
//! | `side` | string `BUY`, `SELL` | for books and changes of the grid |
//! | `price`, `size` | decimal(9,4), decimal(18,6) | for books and changes of the grid |
//! | `hash` | string | always: hours do not keep the hash of a book |
//!
//! A row group is gathered in memory, so that each column is written in one piece.

use crate::error::{Error, Named, Refusal};
use crate::files;
use crate::row::{Event, Row, SIZE_MAX, is_price, is_token};
use crate::sink::{Sink, after_failure, failed};
use crate::write::{Written, base_properties, side_name};
use bytes::Bytes;
use engine::amount::{Price, Qty};
use engine::book::BookSide;
use engine::time::{MILLISECOND, Timestamp};
use parquet::basic::{Encoding, LogicalType, Repetition, TimeUnit, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{ColumnPath, Type, TypePtr};
use std::path::Path;
use std::sync::Arc;

/// Rows of a row group: some 20 MiB until they are written.
const GROUP_ROWS: usize = 131_072;

const TS: usize = 0;
const TOKEN: usize = 1;
const EVENT: usize = 2;
const SIDE: usize = 3;
const PRICE: usize = 4;
const SIZE: usize = 5;
const NAMES: [&str; 7] = ["ts", "token_id", "event", "side", "price", "size", "hash"];
/// Columns before this one are never null.
const REQUIRED: usize = SIDE;

/// Writes `NAME.making`; [`EventWriter::finish`] renames it to NAME. A writer that is dropped before removes its file.
pub struct EventWriter {
    making: files::Making,
    /// `None` after a failure.
    writer: Option<SerializedFileWriter<Sink>>,
    waiting: Waiting,
    last: Option<(Arc<str>, Timestamp)>,
    rows: u64,
    row_groups: u32,
}

/// Rows that are not written yet, by column.
#[derive(Default)]
struct Waiting {
    times: Vec<i64>,
    tokens: Vec<ByteArray>,
    events: Vec<ByteArray>,
    /// For each row 1 if it has side, price and size, else 0.
    levels: Vec<i16>,
    sides: Vec<ByteArray>,
    prices: Vec<i32>,
    sizes: Vec<i64>,
    /// The token of the last row: equal ones share their bytes.
    token: Option<(Arc<str>, ByteArray)>,
}

impl EventWriter {
    /// Creates `path` with `.making` appended; one that a crash left is replaced. `source`: SHA-256 of what the file is
    /// made of, for the metadata `papertape.source`. A write beyond `bytes_max` fails with
    /// [`std::io::ErrorKind::FileTooLarge`].
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path, source: [u8; 32], bytes_max: u64) -> Result<EventWriter, Error> {
        let making = files::Making::create(path)?;
        let sink = Sink::new(making.file().try_clone().of(path)?, bytes_max);
        let writer = writer(sink, source).map_err(|error| failed(path, error))?;
        Ok(EventWriter {
            making,
            writer: Some(writer),
            waiting: Waiting::default(),
            last: None,
            rows: 0,
            row_groups: 0,
        })
    }

    /// Adds the event of a row. Rows come in the order of (token, receipt).
    ///
    /// # Errors
    /// Refused: another order, or a value that the columns cannot hold; nothing was added then. The system's: the
    /// writer cannot continue.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        self.check(row).of(self.making.path())?;
        match &mut self.last {
            Some((token, received)) if **token == *row.token => *received = row.received,
            last => *last = Some((row.token.clone(), row.received)),
        }
        self.waiting.push(row);
        self.rows += 1;
        if self.waiting.times.len() == GROUP_ROWS { self.end_group() } else { Ok(()) }
    }

    fn check(&self, row: &Row) -> Result<(), Refusal> {
        let is_before = |(token, received): &(Arc<str>, Timestamp)| (&*row.token, row.received) < (&**token, *received);
        if self.last.as_ref().is_some_and(is_before) {
            return Err(Refusal::new(format!("row {} is before its predecessor", self.rows)));
        }
        let is_level = level_of(row).is_none_or(|(_, price, size)| is_price(price) && size <= SIZE_MAX);
        if is_level && is_token(row.token.as_bytes()) && row.received.0.is_multiple_of(MILLISECOND) {
            return Ok(());
        }
        Err(Refusal::new(format!("row {} does not fit the columns", self.rows)))
    }

    /// Writes the footer, syncs the file, renames it, and syncs the folder.
    ///
    /// # Errors
    /// The system's; the file keeps its `.making` name until the writer is dropped.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.end_group()?;
        let path = self.making.path().to_owned();
        let mut writer = self.writer.take().ok_or_else(|| after_failure(&path))?;
        writer.finish().map_err(|error| failed(&path, error))?;
        let (bytes, sha256) = writer.inner().written();
        self.making.finish()?;
        Ok(Written { bytes, sha256, rows: self.rows, row_groups: self.row_groups })
    }

    fn end_group(&mut self) -> Result<(), Error> {
        if self.waiting.times.is_empty() {
            return Ok(());
        }
        let path = self.making.path();
        // A row group that was written in part is of no use: the writer is gone then.
        let mut writer = self.writer.take().ok_or_else(|| after_failure(path))?;
        self.waiting.write(&mut writer).map_err(|error| failed(path, error))?;
        self.writer = Some(writer);
        self.waiting.clear();
        self.row_groups += 1;
        Ok(())
    }
}

/// Side, price and size of an event that has them; the side is the book's, or that of the taker of a trade.
fn level_of(row: &Row) -> Option<(bool, Price, Qty)> {
    match &row.event {
        Event::PriceChange { price, size, side, .. } => Some((*side == BookSide::Bid, *price, *size)),
        Event::LastTradePrice { price, size, taker_buys, .. } => Some((*taker_buys, *price, *size)),
        Event::Book { .. } | Event::TickSizeChange { .. } => None,
    }
}

impl Waiting {
    fn push(&mut self, row: &Row) {
        let name = |name: &'static str| ByteArray::from(Bytes::from_static(name.as_bytes()));
        let token = match &self.token {
            Some((of, value)) if **of == *row.token => value.clone(),
            _ => {
                let value = ByteArray::from(row.token.as_bytes().to_vec());
                self.token.insert((row.token.clone(), value)).1.clone()
            }
        };
        self.times.push(row.received.millis() as i64);
        self.tokens.push(token);
        self.events.push(name(row.event.kind().name()));
        let level = level_of(row);
        self.levels.push(level.is_some().into());
        if let Some((is_buy, price, size)) = level {
            self.sides.push(name(side_name(is_buy)));
            self.prices.push(price.0.into());
            self.sizes.push(size.0 as i64);
        }
    }

    /// Writes the rows as one row group.
    fn write(&self, writer: &mut SerializedFileWriter<Sink>) -> Result<(), ParquetError> {
        let nothing = vec![0; self.times.len()];
        let mut group = writer.next_row_group()?;
        let mut number = 0;
        while let Some(mut column) = group.next_column()? {
            match column.untyped() {
                ColumnWriter::Int64ColumnWriter(column) if number == TS => {
                    column.write_batch(&self.times, None, None)?;
                }
                ColumnWriter::Int64ColumnWriter(column) => {
                    column.write_batch(&self.sizes, Some(&self.levels), None)?;
                }
                ColumnWriter::Int32ColumnWriter(column) => {
                    column.write_batch(&self.prices, Some(&self.levels), None)?;
                }
                ColumnWriter::ByteArrayColumnWriter(column) => {
                    let (values, levels) = match number {
                        TOKEN => (&*self.tokens, None),
                        EVENT => (&*self.events, None),
                        SIDE => (&*self.sides, Some(&*self.levels)),
                        _ => (&[][..], Some(&*nothing)),
                    };
                    column.write_batch(values, levels, None)?;
                }
                _ => return Err(ParquetError::General("the schema has no other types".to_owned())),
            }
            column.close()?;
            number += 1;
        }
        group.close()?;
        Ok(())
    }

    fn clear(&mut self) {
        self.times.clear();
        self.tokens.clear();
        self.events.clear();
        self.levels.clear();
        self.sides.clear();
        self.prices.clear();
        self.sizes.clear();
    }
}

fn writer(sink: Sink, source: [u8; 32]) -> Result<SerializedFileWriter<Sink>, ParquetError> {
    let ts = ColumnPath::from(NAMES[TS]);
    let properties = base_properties(Some(source), [TOKEN, TS])?
        .set_column_dictionary_enabled(ts.clone(), false)
        .set_column_encoding(ts, Encoding::DELTA_BINARY_PACKED);
    SerializedFileWriter::new(sink, message()?, Arc::new(properties.build()))
}

/// The seven columns.
fn message() -> Result<TypePtr, ParquetError> {
    let column = |number: usize| {
        let physical = match number {
            TS | SIZE => PhysicalType::INT64,
            PRICE => PhysicalType::INT32,
            _ => PhysicalType::BYTE_ARRAY,
        };
        let repetition = if number < REQUIRED { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let builder = Type::primitive_type_builder(NAMES[number], physical).with_repetition(repetition);
        let decimal = |precision, scale| Some(LogicalType::decimal(scale, precision));
        let builder = match number {
            TS => builder.with_logical_type(Some(LogicalType::timestamp(true, TimeUnit::MILLIS))),
            PRICE => builder.with_logical_type(decimal(9, 4)).with_precision(9).with_scale(4),
            SIZE => builder.with_logical_type(decimal(18, 6)).with_precision(18).with_scale(6),
            _ => builder.with_logical_type(Some(LogicalType::String)),
        };
        builder.build().map(Arc::new)
    };
    let fields: Result<Vec<TypePtr>, _> = (0..NAMES.len()).map(column).collect();
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?))
}

/// Reading of such files, for tests.
#[cfg(any(test, feature = "testing"))]
pub mod testing {
    use super::{EVENT, NAMES, PRICE, REQUIRED, SIDE, SIZE, TOKEN, TS, level_of};
    use crate::error::{Error, Named};
    use crate::parquet_file::columns::{Columns, NULL, Wanted};
    use crate::parquet_file::source::Source;
    use crate::row::Row;
    use crate::write::side_name;
    use std::path::Path;

    /// `ts` in milliseconds, token, event; side, price in 10⁻⁴ and size in 10⁻⁶, if there are any; hash.
    pub type EventRow = (i64, String, String, Option<(String, i64, i64)>, Option<String>);

    /// The row of an event.
    pub fn event_row(row: &Row) -> EventRow {
        let level = level_of(row)
            .map(|(is_buy, price, size)| (side_name(is_buy).to_owned(), i64::from(price.0), size.0 as i64));
        (row.received.millis() as i64, row.token.to_string(), row.event.kind().name().to_owned(), level, None)
    }

    /// All rows of a file.
    ///
    /// # Errors
    /// It is damaged.
    ///
    /// # Panics
    /// If its columns have other names.
    pub fn read(path: &Path) -> Result<Vec<EventRow>, Error> {
        let columns = Columns::open(Source::open(path).of(path)?).of(path)?;
        let names: Vec<_> = columns.footer.columns.iter().map(|column| column.path().string()).collect();
        assert_eq!(names, NAMES);
        let wanted = |column: usize| Wanted {
            leaf: column,
            column,
            is_text: !matches!(column, TS | PRICE | SIZE),
            is_required: column < REQUIRED,
        };
        let mut batches = columns.batches((0..NAMES.len()).map(wanted).collect(), 0..columns.footer.rows);
        let mut rows = Vec::new();
        while batches.next().of(path)? {
            let batch = batches.batch();
            for row in 0..batch.rows {
                let text =
                    |column: usize| batch.texts(column).of(row).map(|text| String::from_utf8_lossy(text).into_owned());
                let number = |column: usize| Some(batch.numbers(column)[row]).filter(|number| *number != NULL);
                let level = text(SIDE).zip(number(PRICE)).zip(number(SIZE));
                rows.push((
                    batch.numbers(TS)[row],
                    text(TOKEN).unwrap_or_default(),
                    text(EVENT).unwrap_or_default(),
                    level.map(|((side, price), size)| (side, price, size)),
                    text(NAMES.len() - 1),
                ));
            }
        }
        Ok(rows)
    }
}

#[cfg(test)]
mod tests {
    use super::testing::{event_row, read};
    use super::*;
    use crate::files::{Step, crash, making_path};
    use crate::testing::{Chance, condition, row};
    use std::io;

    const BYTES_MAX: u64 = 1 << 30;

    /// Rows of one market in file order.
    fn rows_of(seed: u64, count: usize) -> Vec<Row> {
        let mut chance = Chance::seeded(seed);
        let mut rows: Vec<Row> = (0..count).map(|_| row(&mut chance, 1, 3_600_000)).collect();
        rows.iter_mut().for_each(|row| row.market = condition(0));
        rows.sort_by(|one, other| (&one.token, one.received).cmp(&(&other.token, other.received)));
        rows
    }

    fn write(path: &Path, rows: &[Row], bytes_max: u64) -> Result<Written, Error> {
        let mut writer = EventWriter::create(path, [7; 32], bytes_max)?;
        rows.iter().try_for_each(|row| writer.push(row))?;
        writer.finish()
    }

    #[test]
    fn events_are_read_back() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.parquet");
        // None, one, and more than a row group and a batch of a reader.
        let mut all = 0;
        for (count, groups) in [(0, 0), (1, 1), (5_000, 1), (GROUP_ROWS, 1), (GROUP_ROWS + 1, 2)] {
            let rows = rows_of(70, count);
            let written = write(&path, &rows, BYTES_MAX).expect("written");
            let expected: Vec<_> = rows.iter().map(event_row).collect();
            assert!(read(&path).expect("a sound file") == expected, "{count} rows");
            let bytes = std::fs::read(&path).expect("the file");
            assert_eq!((written.rows, written.row_groups), (count as u64, groups));
            assert_eq!((written.bytes, written.sha256), (bytes.len() as u64, files::digest(&path).expect("read").0));
            all += count;
        }
        println!("events: {all} rows");
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.parquet");
        let rows = rows_of(71, 200);
        let found = rows.iter().find(|row| row.event.kind() == crate::row::Kind::PriceChange).expect("a change");
        let change = Row { token: "5".into(), ..found.clone() };
        let with = |of: (u16, u64)| {
            let event = Event::LastTradePrice {
                price: Price(of.0),
                size: Qty(of.1),
                taker_buys: true,
                fee_rate_bps: None,
                transaction_hash: None,
            };
            Row { event, ..change.clone() }
        };
        let earlier = Row { received: Timestamp(change.received.0 - MILLISECOND), ..change.clone() };
        let token = |token: &str| Row { token: token.into(), ..change.clone() };
        let cases = [
            earlier,
            Row { received: Timestamp(change.received.0 + 1), ..change.clone() },
            token("4"),
            token(""),
            token("99x"),
            with((0, 1)),
            with((10_000, 1)),
            with((5_000, SIZE_MAX.0 + 1)),
        ];
        for wrong in &cases {
            let mut writer = EventWriter::create(&path, [7; 32], BYTES_MAX).expect("created");
            writer.push(&change).expect("fits");
            assert!(matches!(writer.push(wrong), Err(Error::Refused(..))), "{wrong:?}");
            // The writer continues.
            assert_eq!(writer.finish().expect("written").rows, 1);
        }
        println!("refused events: {} cases", cases.len());
    }

    #[test]
    fn a_file_beyond_its_bound_is_not_made() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.parquet");
        let rows = rows_of(72, 2_000);
        let bytes = write(&path, &rows, BYTES_MAX).expect("written").bytes;
        std::fs::remove_file(&path).expect("it is there");
        let mut cases = 0;
        for bytes_max in [0, 3, 4, bytes / 2, bytes - 1] {
            let Err(Error::Io(_, error)) = write(&path, &rows, bytes_max) else { panic!("{bytes_max} of {bytes}") };
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{bytes_max} of {bytes}");
            assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0, "nothing is left");
            cases += 1;
        }
        assert_eq!(write(&path, &rows, bytes).expect("it fits").bytes, bytes);
        println!("bounds: {} cases", cases + 1);
    }

    #[test]
    fn a_kill_leaves_the_whole_file_or_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("events.parquet");
        let rows = rows_of(73, 500);
        let expected: Vec<_> = rows.iter().map(event_row).collect();
        let steps = [Step::Synced, Step::Renamed, Step::FolderSynced];
        for (number, step) in steps.into_iter().enumerate() {
            crash::after(Some(number as u32));
            let killed = write(&path, &rows, BYTES_MAX);
            crash::after(None);
            assert!(killed.is_err(), "{step:?}");
            assert_eq!(path.exists(), step != Step::Synced, "{step:?}");
            assert_eq!(making_path(&path).exists(), step == Step::Synced, "{step:?}");
            if path.exists() {
                assert!(read(&path).expect("whole") == expected, "{step:?}");
            }
            // What was left is replaced.
            write(&path, &rows, BYTES_MAX).expect("written");
            assert!(read(&path).expect("whole") == expected && !making_path(&path).exists(), "{step:?}");
            std::fs::remove_file(&path).expect("it is there");
        }
        println!("kills: {} cases", steps.len());
    }
}
