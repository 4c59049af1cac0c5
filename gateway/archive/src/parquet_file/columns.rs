//! Columns of a range of rows, decoded in batches by the library. Numbers are `i64`.

use super::footer::{Footer, PAGE_BYTES_MAX, RowGroup};
use super::pages::Pages;
use super::source::{Headers, Source};
use crate::error::Refusal;
use parquet::basic::{LogicalType, TimeUnit, Type};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::schema::types::ColumnDescriptor;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A null in a column of numbers.
pub(crate) const NULL: i64 = i64::MIN;
/// A number that is not exact in the unit of its column, or does not fit.
pub(crate) const BAD: i64 = i64::MIN + 1;
/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 4_096;
/// A batch ends early when this many bytes were decoded for it: its texts keep their pages in memory.
const BATCH_BYTES_MAX: u64 = PAGE_BYTES_MAX;
/// Rows that are read at a time where a row group has more decoded bytes than that.
const STEP_ROWS: usize = 64;

/// A column as its reader wants it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted {
    /// Position in the footer.
    pub(crate) leaf: usize,
    /// Position in a batch.
    pub(crate) column: usize,
    pub(crate) is_text: bool,
    pub(crate) is_required: bool,
}

/// Some rows of some columns.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub(crate) first_row: u64,
    pub(crate) rows: usize,
    numbers: Vec<Vec<i64>>,
    texts: Vec<Texts>,
}

/// Texts of a column in a batch.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// Those that are not null. Equal texts of one dictionary share their bytes.
    values: Vec<ByteArray>,
    /// Position of each row's text in `values`; empty if no row is null.
    positions: Vec<u32>,
}

/// Which rows of a column are null.
#[derive(Clone, Copy)]
enum Nulls<'a> {
    No,
    /// All of this many.
    All(usize),
    /// By their definition levels.
    Some(&'a [i16]),
}

/// Definition level of a value that is not null, in a column that is not nested. A damaged file may have others.
const PRESENT: i16 = 1;
/// Position of a null.
const NO_TEXT: u32 = u32::MAX;

/// The columns of a file.
pub(crate) struct Columns {
    pub(crate) source: Source,
    pub(crate) footer: Footer,
}

/// Reads batches of a range of rows.
pub(crate) struct Batches<'a> {
    columns: &'a Columns,
    wanted: Vec<Wanted>,
    rows: Range<u64>,
    /// The row group that is open, and the end of the wanted rows in it.
    group: Option<(usize, u64)>,
    readers: Vec<ColumnReader>,
    /// Rows that are read at a time.
    step_rows: usize,
    /// Bytes that were decoded.
    decoded: Arc<AtomicU64>,
    /// Definition levels of the last column read.
    levels: Vec<i16>,
    scratch: Scratch,
    batch: Batch,
}

/// Values as the library decodes them.
#[derive(Default)]
struct Scratch {
    narrow: Vec<i32>,
    wide: Vec<i64>,
    bytes: Vec<ByteArray>,
    fixed: Vec<parquet::data_type::FixedLenByteArray>,
}

impl Texts {
    /// The text of a row; `None` for a null.
    #[inline]
    pub(crate) fn of(&self, row: usize) -> Option<&[u8]> {
        self.array(row).map(ByteArray::data)
    }

    /// The same with its bytes, which it shares with equal texts of its dictionary.
    #[inline]
    pub(crate) fn array(&self, row: usize) -> Option<&ByteArray> {
        let at = match self.positions.get(row) {
            Some(&NO_TEXT) => return None,
            Some(at) => *at as usize,
            None => row,
        };
        Some(&self.values[at])
    }

    fn clear(&mut self) {
        self.values.clear();
        self.positions.clear();
    }

    /// Adds the positions of rows after `before` others, whose values begin at `first`.
    fn place(&mut self, nulls: Nulls<'_>, first: usize, before: usize) {
        let Texts { values, positions } = self;
        if !matches!(nulls, Nulls::No) && positions.is_empty() {
            positions.extend(0..before as u32);
        }
        let levels = match nulls {
            Nulls::No => {
                // No row was null before, either, or all have positions.
                if !positions.is_empty() {
                    positions.extend(first as u32..values.len() as u32);
                }
                return;
            }
            Nulls::All(rows) => return positions.resize(before + rows, NO_TEXT),
            Nulls::Some(levels) => levels,
        };
        let mut next = first as u32;
        positions.extend(levels.iter().map(|level| match *level {
            PRESENT => {
                next += 1;
                next - 1
            }
            _ => NO_TEXT,
        }));
    }
}

impl Batch {
    pub(crate) fn numbers(&self, column: usize) -> &[i64] {
        &self.numbers[column]
    }

    pub(crate) fn texts(&self, column: usize) -> &Texts {
        &self.texts[column]
    }

    fn clear(&mut self, columns: usize) {
        self.rows = 0;
        self.numbers.resize_with(columns, Vec::new);
        self.texts.resize_with(columns, Texts::default);
        self.numbers.iter_mut().for_each(Vec::clear);
        self.texts.iter_mut().for_each(Texts::clear);
    }
}

impl Columns {
    pub(crate) fn open(source: Source) -> Result<Columns, Refusal> {
        let footer = guarded(|| Footer::read(&source))?;
        Ok(Columns { source, footer })
    }

    /// Batches of these columns in these rows, which are within the file.
    pub(crate) fn batches(&self, wanted: Vec<Wanted>, rows: Range<u64>) -> Batches<'_> {
        Batches {
            columns: self,
            wanted,
            rows: rows.start..rows.end.min(self.footer.rows),
            group: None,
            readers: Vec::new(),
            step_rows: STEP_ROWS,
            decoded: Arc::default(),
            levels: Vec::new(),
            scratch: Scratch::default(),
            batch: Batch::default(),
        }
    }

    /// A reader of one column from the start of a row group. It adds the bytes that it decodes to `decoded`.
    fn reader(&self, group: usize, leaf: usize, decoded: &Arc<AtomicU64>) -> Result<ColumnReader, ParquetError> {
        let (chunk, rows) = (self.footer.chunk(group, leaf), self.footer.row_groups[group].rows);
        let pages = self.footer.pages(group, leaf).map(<[_]>::to_vec);
        let headers = if pages.is_some() { Headers::InRanges } else { Headers::InStreams };
        let source = Arc::new(self.source.chunks(headers));
        let pages = SerializedPageReader::new(source, chunk, rows as usize, pages)?;
        let column = self.footer.columns[leaf].clone();
        let is_nullable = column.max_def_level() > 0;
        let pages = Pages::new(pages, self.footer.decoded_bytes(group, leaf), is_nullable, decoded.clone());
        Ok(get_column_reader(column, Box::new(pages)))
    }
}

impl Batches<'_> {
    /// The rows of the last call of [`Batches::next`].
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Decodes the next rows, which are of one row group, into the batch. `false`: there are no more.
    pub(crate) fn next(&mut self) -> Result<bool, Refusal> {
        guarded(|| self.read())
    }

    fn read(&mut self) -> Result<bool, Refusal> {
        let columns = self.wanted.iter().map(|wanted| wanted.column + 1).max().unwrap_or(0);
        self.batch.clear(columns);
        if self.rows.is_empty() {
            return Ok(false);
        }
        let (number, end) = match self.group {
            Some((number, end)) if self.rows.start < end => (number, end),
            _ => self.open_group()?,
        };
        let most = (end - self.rows.start).min(BATCH_ROWS as u64) as usize;
        let begun = self.decoded.load(Ordering::Relaxed);
        let mut rows = 0;
        while rows < most && self.decoded.load(Ordering::Relaxed) - begun < BATCH_BYTES_MAX {
            let count = self.step_rows.min(most - rows);
            for at in 0..self.wanted.len() {
                self.fill_column(number, at, rows, count)?;
            }
            rows += count;
        }
        (self.batch.first_row, self.batch.rows) = (self.rows.start, rows);
        self.rows.start += rows as u64;
        Ok(true)
    }

    /// Reads the next values of one column after `before` rows of the batch, with the place of a failure.
    fn fill_column(&mut self, group: usize, at: usize, before: usize, count: usize) -> Result<(), Refusal> {
        let Wanted { leaf, is_required, .. } = self.wanted[at];
        let has_null = self.fill(at, before, count).map_err(|error| self.columns.footer.failed(group, leaf, error))?;
        if has_null && is_required {
            let name = self.columns.footer.columns[leaf].name();
            return Err(Refusal::new(format!("row group {group}, column {name}: a value is null")));
        }
        Ok(())
    }

    /// Opens the row group of the next row, at that row.
    fn open_group(&mut self) -> Result<(usize, u64), Refusal> {
        let groups = &self.columns.footer.row_groups;
        let number = groups.partition_point(|group| group.first_row + group.rows <= self.rows.start);
        let RowGroup { rows, first_row } = groups[number];
        let skipped = (self.rows.start - first_row) as usize;
        self.readers.clear();
        let decoded = self.wanted.iter().map(|wanted| self.columns.footer.decoded_bytes(number, wanted.leaf)).sum();
        self.step_rows = if BATCH_BYTES_MAX < decoded { STEP_ROWS } else { BATCH_ROWS };
        for wanted in &self.wanted {
            let opened = self.columns.reader(number, wanted.leaf, &self.decoded).and_then(|mut reader| {
                if skipped > 0 && skip(&mut reader, skipped)? < skipped {
                    return Err(ParquetError::EOF("the column ends before its last row".to_owned()));
                }
                Ok(reader)
            });
            let reader = opened.map_err(|error| self.columns.footer.failed(number, wanted.leaf, error))?;
            self.readers.push(reader);
        }
        let group = (number, (first_row + rows).min(self.rows.end));
        self.group = Some(group);
        Ok(group)
    }

    /// Reads the next values of one column after `before` rows of the batch; returns whether one is null.
    fn fill(&mut self, at: usize, before: usize, count: usize) -> Result<bool, ParquetError> {
        let Wanted { leaf, column, is_text, .. } = self.wanted[at];
        let description = &self.columns.footer.columns[leaf];
        let is_nullable = description.max_def_level() > 0;
        let (levels, Scratch { narrow, wide, bytes, fixed }) = (&mut self.levels, &mut self.scratch);
        levels.clear();
        let nulls = is_nullable.then_some(&mut *levels);
        let texts = &mut self.batch.texts[column].values;
        let first_text = texts.len();
        let (rows, values, _) = match &mut self.readers[at] {
            ColumnReader::Int32ColumnReader(reader) => {
                narrow.clear();
                reader.read_records(count, nulls, None, narrow)?
            }
            ColumnReader::Int64ColumnReader(reader) => {
                wide.clear();
                reader.read_records(count, nulls, None, wide)?
            }
            ColumnReader::ByteArrayColumnReader(reader) => {
                bytes.clear();
                reader.read_records(count, nulls, None, if is_text { texts } else { bytes })?
            }
            ColumnReader::FixedLenByteArrayColumnReader(reader) => {
                fixed.clear();
                let read = reader.read_records(count, nulls, None, fixed)?;
                if is_text {
                    texts.extend(fixed.drain(..).map(ByteArray::from));
                }
                read
            }
            _ => return Err(ParquetError::General("the column has another type".to_owned())),
        };
        if rows < count {
            return Err(ParquetError::EOF("the column ends before its last row".to_owned()));
        }
        let nulls = match values {
            0 => Nulls::All(count),
            _ if values < count => Nulls::Some(levels),
            _ => Nulls::No,
        };
        let has_null = values < count;
        if is_text {
            self.batch.texts[column].place(nulls, first_text, before);
            return Ok(has_null);
        }
        let numbers = &mut self.batch.numbers[column];
        let per_milli = per_milli(description);
        match description.physical_type() {
            Type::INT32 => spread(nulls, narrow.iter().map(|value| i64::from(*value)), numbers),
            Type::INT64 if per_milli > 1 => {
                let exact = |value: &i64| if value % per_milli == 0 { value / per_milli } else { BAD };
                spread(nulls, wide.iter().map(exact), numbers);
            }
            Type::INT64 => spread(nulls, wide.iter().copied(), numbers),
            Type::BYTE_ARRAY => spread(nulls, bytes.iter().map(|value| decimal(value.data())), numbers),
            _ => spread(nulls, fixed.iter().map(|value| decimal(value.data())), numbers),
        }
        Ok(has_null)
    }
}

/// Passes over rows.
fn skip(reader: &mut ColumnReader, rows: usize) -> Result<usize, ParquetError> {
    match reader {
        ColumnReader::Int32ColumnReader(reader) => reader.skip_records(rows),
        ColumnReader::Int64ColumnReader(reader) => reader.skip_records(rows),
        ColumnReader::ByteArrayColumnReader(reader) => reader.skip_records(rows),
        ColumnReader::FixedLenByteArrayColumnReader(reader) => reader.skip_records(rows),
        _ => Err(ParquetError::General("the column has another type".to_owned())),
    }
}

/// Appends numbers, with nulls where rows have none.
fn spread(nulls: Nulls<'_>, mut values: impl Iterator<Item = i64>, out: &mut Vec<i64>) {
    match nulls {
        Nulls::No => out.extend(values),
        Nulls::All(rows) => out.resize(out.len() + rows, NULL),
        Nulls::Some(levels) => out.extend(levels.iter().map(|level| match *level {
            PRESENT => values.next().unwrap_or(NULL),
            _ => NULL,
        })),
    }
}

/// Units of a column of times in a millisecond.
fn per_milli(column: &ColumnDescriptor) -> i64 {
    match column.logical_type_ref() {
        Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::MICROS => 1_000,
        Some(LogicalType::Timestamp(time)) if time.unit == TimeUnit::NANOS => 1_000_000,
        _ => 1,
    }
}

/// Calls the library. A panic of it is a refusal: its input is the only cause.
fn guarded<T>(read: impl FnOnce() -> Result<T, Refusal>) -> Result<T, Refusal> {
    // What a panic leaves half done is not used again: the error ends the reading.
    catch_unwind(AssertUnwindSafe(read))
        .unwrap_or_else(|_| Err(Refusal::new("the Parquet library failed on this file")))
}

/// A decimal as big-endian bytes.
fn decimal(bytes: &[u8]) -> i64 {
    let Some(first) = bytes.first() else { return BAD };
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let (front, back) = bytes.split_at(bytes.len().saturating_sub(8));
    let mut word = [fill; 8];
    word[8 - back.len()..].copy_from_slice(back);
    let fits = front.iter().all(|byte| *byte == fill) && (front.is_empty() || back[0] & 0x80 == fill & 0x80);
    if fits { i64::from_be_bytes(word) } else { BAD }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_width() {
        let cases: [(&[u8], i64); 9] = [
            (&[], BAD),
            (&[1], 1),
            (&[0xff], -1),
            (&[0x27, 0x10], 10_000),
            (&[0, 0, 0, 0x27, 0x10], 10_000),
            (&[0xff, 0xff, 0xff, 0xfe], -2),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 256),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0], BAD),
            (&[0, 0x80, 0, 0, 0, 0, 0, 0, 0], BAD),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decimal(bytes), expected, "{bytes:?}");
        }
        println!("decimals: {} cases", cases.len());
    }
}
