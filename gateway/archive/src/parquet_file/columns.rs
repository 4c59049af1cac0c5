//! Columns of a range of rows, decoded in batches. Numbers are `i64`; texts are ids of a table, so that a text of a
//! dictionary is the same id in all of its rows.

use super::decode::{Delta, Hybrid};
use super::footer::{Chunk, Column, Footer, Logical, PAGE_BYTES_MAX, Physical, Unit};
use super::page::{DictionaryPage, Encoding, Page, Pages, Unpacker};
use super::source::Source;
use crate::error::Refusal;
use ahash::AHashMap;
use bytes::Bytes;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

/// A null in a column of numbers.
pub(crate) const NULL: i64 = i64::MIN;
/// A number that is not exact in the unit of its column, or does not fit.
pub(crate) const BAD: i64 = i64::MIN + 1;
/// A null in a column of texts.
pub(crate) const NO_TEXT: u32 = u32::MAX;
/// Rows of a batch.
pub(crate) const BATCH_ROWS: usize = 4_096;

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

/// Texts of a column.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// One for each row of the batch.
    pub(crate) ids: Vec<u32>,
    /// Changes when ids below `lasting` get other texts.
    pub(crate) generation: u32,
    /// Ids of the dictionary are below this number; the others are of this batch only.
    pub(crate) lasting: u32,
    spans: Vec<Span>,
    buffers: Vec<Bytes>,
    lasting_buffers: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    buffer: u32,
    start: u32,
    len: u32,
}

/// The columns of a file, and where their pages are.
pub(crate) struct Columns {
    pub(crate) source: Source,
    pub(crate) footer: Footer,
    /// By row group and leaf.
    pages: Mutex<AHashMap<(u32, u32), Arc<Pages>>>,
}

/// Reads batches of a range of rows.
pub(crate) struct Batches<'a> {
    columns: &'a Columns,
    wanted: Vec<Wanted>,
    rows: Range<u64>,
    /// The row group that is open, and the end of the wanted rows in it.
    group: Option<(usize, u64)>,
    streams: Vec<Stream>,
    unpacker: Unpacker,
    scratch: Scratch,
    batch: Batch,
}

/// One column of one row group.
struct Stream {
    chunk: Chunk,
    column: Column,
    pages: Arc<Pages>,
    next_page: usize,
    /// Values of a dictionary of numbers; `None` until a page needs it.
    dictionary: Option<Vec<i64>>,
    has_texts: bool,
    page: Option<OpenPage>,
}

struct OpenPage {
    left: u64,
    levels: Option<Hybrid>,
    values: Decoder,
    at: u64,
}

enum Decoder {
    Empty,
    Plain { bytes: Bytes, at: usize },
    Dictionary(Hybrid),
    Delta(Delta),
    Lengths { lengths: Delta, bytes: Bytes, at: usize },
}

#[derive(Default)]
struct Scratch {
    levels: Vec<u32>,
    ids: Vec<u32>,
    numbers: Vec<i64>,
}

impl Texts {
    /// The text of an id.
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        let Span { buffer, start, len } = self.spans[id as usize];
        &self.buffers[buffer as usize][start as usize..(start + len) as usize]
    }

    /// The text of a row; `None` for a null.
    pub(crate) fn of(&self, row: usize) -> Option<&[u8]> {
        let id = self.ids[row];
        (id != NO_TEXT).then(|| self.get(id))
    }

    fn buffer(&mut self, bytes: Bytes) -> u32 {
        self.buffers.push(bytes);
        (self.buffers.len() - 1) as u32
    }

    fn push(&mut self, buffer: u32, start: usize, len: usize) -> u32 {
        self.spans.push(Span { buffer, start: start as u32, len: len as u32 });
        (self.spans.len() - 1) as u32
    }

    /// Forgets the texts of the last batch, or all of them.
    fn clear(&mut self, with_lasting: bool) {
        self.ids.clear();
        if with_lasting {
            self.lasting = 0;
            self.lasting_buffers = 0;
            self.generation += 1;
        }
        self.spans.truncate(self.lasting as usize);
        self.buffers.truncate(self.lasting_buffers);
    }
}

impl Batch {
    pub(crate) fn numbers(&self, column: usize) -> &[i64] {
        &self.numbers[column]
    }

    pub(crate) fn texts(&self, column: usize) -> &Texts {
        &self.texts[column]
    }

    fn clear(&mut self, columns: usize, with_lasting: bool) {
        self.numbers.resize_with(columns, Vec::new);
        self.texts.resize_with(columns, Texts::default);
        self.numbers.iter_mut().for_each(Vec::clear);
        self.texts.iter_mut().for_each(|texts| texts.clear(with_lasting));
    }
}

impl Columns {
    pub(crate) fn open(source: Source) -> Result<Columns, Refusal> {
        let footer = Footer::read(&source)?;
        Ok(Columns { source, footer, pages: Mutex::default() })
    }

    fn pages(&self, group: usize, leaf: usize) -> Result<Arc<Pages>, Refusal> {
        let key = (group as u32, leaf as u32);
        if let Some(pages) = self.pages.lock().get(&key) {
            return Ok(pages.clone());
        }
        let of = &self.footer.row_groups[group];
        let pages = Arc::new(Pages::find(&self.source, &of.chunks[leaf], of.rows)?);
        self.pages.lock().insert(key, pages.clone());
        Ok(pages)
    }

    /// Batches of these columns in these rows, which are within the file.
    pub(crate) fn batches(&self, wanted: Vec<Wanted>, rows: Range<u64>) -> Batches<'_> {
        let rows = rows.start..rows.end.min(self.footer.rows);
        let (unpacker, scratch, batch) = (Unpacker::default(), Scratch::default(), Batch::default());
        Batches { columns: self, wanted, rows, group: None, streams: Vec::new(), unpacker, scratch, batch }
    }
}

impl Batches<'_> {
    /// The rows of the last call of [`Batches::next`].
    pub(crate) fn batch(&self) -> &Batch {
        &self.batch
    }

    /// Decodes the next rows, which are of one row group, into the batch. `false`: there are no more.
    pub(crate) fn next(&mut self) -> Result<bool, Refusal> {
        let columns = self.wanted.iter().map(|wanted| wanted.column + 1).max().unwrap_or(0);
        let is_open = self.group.is_some_and(|(_, end)| self.rows.start < end);
        self.batch.clear(columns, !is_open);
        if self.rows.is_empty() {
            self.batch.rows = 0;
            return Ok(false);
        }
        if !is_open {
            self.open_group()?;
        }
        let Some((number, end)) = self.group else { return Ok(false) };
        let batch = &mut self.batch;
        let count = (end - self.rows.start).min(BATCH_ROWS as u64) as usize;
        batch.first_row = self.rows.start;
        batch.rows = count;
        for (wanted, stream) in self.wanted.iter().zip(&mut self.streams) {
            let unpacker = &mut self.unpacker;
            let filled = if wanted.is_text {
                let texts = &mut batch.texts[wanted.column];
                stream.texts(&self.columns.source, count, texts, unpacker, &mut self.scratch)
            } else {
                let numbers = &mut batch.numbers[wanted.column];
                stream.numbers(&self.columns.source, count, numbers, unpacker, &mut self.scratch)
            };
            let has_null = filled.map_err(|refusal| {
                let reason = format!("row group {number}, column {}: {}", stream.column.name, refusal.reason);
                Refusal { offset: refusal.offset, reason }
            })?;
            if has_null && wanted.is_required {
                let reason = format!("row group {number}, column {}: a value is null", stream.column.name);
                return Err(Refusal::new(reason));
            }
        }
        self.rows.start += count as u64;
        Ok(true)
    }

    /// Opens the row group of the next row, at that row.
    fn open_group(&mut self) -> Result<(), Refusal> {
        let groups = &self.columns.footer.row_groups;
        let number = groups.partition_point(|group| group.first_row + group.rows <= self.rows.start);
        let group = &groups[number];
        let first = self.rows.start - group.first_row;
        self.streams.clear();
        for wanted in &self.wanted {
            let pages = self.columns.pages(number, wanted.leaf)?;
            let next_page = pages.places.partition_point(|place| place.first_row + place.rows <= first);
            let skipped = pages.places.get(next_page).map_or(0, |place| first - place.first_row);
            let mut stream = Stream {
                chunk: group.chunks[wanted.leaf].clone(),
                column: self.columns.footer.columns[wanted.leaf].clone(),
                pages,
                next_page,
                dictionary: None,
                has_texts: false,
                page: None,
            };
            stream.skip(&self.columns.source, skipped, wanted.is_text, &mut self.unpacker, &mut self.scratch)?;
            self.streams.push(stream);
        }
        self.group = Some((number, (group.first_row + group.rows).min(self.rows.end)));
        Ok(())
    }
}

impl Stream {
    /// Passes over values at the start of a page.
    fn skip(
        &mut self,
        source: &Source,
        mut count: u64,
        is_text: bool,
        unpacker: &mut Unpacker,
        scratch: &mut Scratch,
    ) -> Result<(), Refusal> {
        let (mut numbers, mut texts) = (Vec::new(), Texts::default());
        while count > 0 {
            let step = count.min(BATCH_ROWS as u64) as usize;
            if is_text {
                texts.clear(false);
                self.texts(source, step, &mut texts, unpacker, scratch)?;
            } else {
                numbers.clear();
                self.numbers(source, step, &mut numbers, unpacker, scratch)?;
            }
            count -= step as u64;
        }
        // The dictionary is in the table that was just dropped.
        self.has_texts = false;
        Ok(())
    }

    /// Opens the next page that has rows.
    fn open_page(&mut self, source: &Source, unpacker: &mut Unpacker) -> Result<(), Refusal> {
        let Some(place) = self.pages.places.get(self.next_page).copied() else {
            return Err(Refusal::at(self.chunk.end, "the column ends before its last row"));
        };
        self.next_page += 1;
        let page = Page::read(source, &self.chunk, &self.column, place, unpacker)?;
        let fail = |refusal: Refusal| refusal.at_byte(place.at);
        let bytes = page.values;
        let is_number = matches!(self.column.physical, Physical::Int32 | Physical::Int64);
        let values = match page.encoding {
            _ if bytes.is_empty() => Decoder::Empty,
            Encoding::Plain => Decoder::Plain { bytes, at: 0 },
            Encoding::Dictionary => Decoder::Dictionary(Hybrid::new(bytes.slice(1..), bytes[0]).map_err(fail)?),
            Encoding::Delta if is_number => Decoder::Delta(Delta::new(bytes).map_err(fail)?),
            Encoding::DeltaLengths if !is_number => lengths(bytes).map_err(fail)?,
            Encoding::DeltaTexts if !is_number => prefixed(bytes).map_err(fail)?,
            other => return Err(Refusal::at(place.at, format!("the encoding {other:?} does not fit the column"))),
        };
        let levels = page.levels.map(|levels| Hybrid::new(levels, 1)).transpose().map_err(fail)?;
        self.page = Some(OpenPage { left: page.rows, levels, values, at: place.at });
        Ok(())
    }

    /// Appends the next numbers; returns whether one is null.
    fn numbers(
        &mut self,
        source: &Source,
        count: usize,
        out: &mut Vec<i64>,
        unpacker: &mut Unpacker,
        scratch: &mut Scratch,
    ) -> Result<bool, Refusal> {
        let (mut wanted, mut has_null, first) = (count, false, out.len());
        while wanted > 0 {
            let Some(page) = self.page.as_mut().filter(|page| page.left > 0) else {
                self.open_page(source, unpacker)?;
                continue;
            };
            if matches!(page.values, Decoder::Dictionary(_)) && self.dictionary.is_none() {
                let (bytes, count) = dictionary(source, &self.chunk, &self.pages, unpacker)?;
                self.dictionary = Some(number_dictionary(&self.column, bytes, count)?);
                continue;
            }
            let step = wanted.min(usize::try_from(page.left).unwrap_or(usize::MAX));
            let at = page.at;
            let fail = |refusal: Refusal| refusal.at_byte(at);
            let there = page.present(step, &mut scratch.levels).map_err(fail)?;
            let dictionary = self.dictionary.as_deref().unwrap_or_default();
            if there == step {
                page.values.numbers(&self.column, there, dictionary, out, &mut scratch.ids).map_err(fail)?;
            } else {
                has_null = true;
                scratch.numbers.clear();
                let (numbers, ids) = (&mut scratch.numbers, &mut scratch.ids);
                page.values.numbers(&self.column, there, dictionary, numbers, ids).map_err(fail)?;
                let mut values = scratch.numbers.iter();
                out.extend(scratch.levels.iter().map(|level| match level {
                    0 => NULL,
                    _ => values.next().copied().unwrap_or(NULL),
                }));
            }
            page.left -= step as u64;
            wanted -= step;
        }
        if let Logical::Timestamp { unit, .. } = self.column.logical
            && unit != Unit::Millis
        {
            let per_milli = if unit == Unit::Micros { 1_000 } else { 1_000_000 };
            for value in out[first..].iter_mut().filter(|value| **value != NULL) {
                *value = if *value % per_milli == 0 { *value / per_milli } else { BAD };
            }
        }
        Ok(has_null)
    }

    /// Appends the next texts; returns whether one is null.
    fn texts(
        &mut self,
        source: &Source,
        count: usize,
        out: &mut Texts,
        unpacker: &mut Unpacker,
        scratch: &mut Scratch,
    ) -> Result<bool, Refusal> {
        if !self.has_texts {
            self.has_texts = true;
            // Whether or not a page refers to it: the ids of the dictionary are the first ones.
            if self.pages.dictionary.is_some() {
                let (bytes, count) = dictionary(source, &self.chunk, &self.pages, unpacker)?;
                text_dictionary(&self.column, bytes, count, out)?;
            }
            out.lasting = out.spans.len() as u32;
            out.lasting_buffers = out.buffers.len();
        }
        let (mut wanted, mut has_null) = (count, false);
        while wanted > 0 {
            let Some(page) = self.page.as_mut().filter(|page| page.left > 0) else {
                self.open_page(source, unpacker)?;
                continue;
            };
            let step = wanted.min(usize::try_from(page.left).unwrap_or(usize::MAX));
            let at = page.at;
            let fail = |refusal: Refusal| refusal.at_byte(at);
            let there = page.present(step, &mut scratch.levels).map_err(fail)?;
            let first = out.ids.len();
            page.values.texts(&self.column, there, out).map_err(fail)?;
            if there < step {
                has_null = true;
                scratch.ids.clear();
                scratch.ids.extend_from_slice(&out.ids[first..]);
                out.ids.truncate(first);
                let mut ids = scratch.ids.iter();
                out.ids.extend(scratch.levels.iter().map(|level| match level {
                    0 => NO_TEXT,
                    _ => ids.next().copied().unwrap_or(NO_TEXT),
                }));
            }
            page.left -= step as u64;
            wanted -= step;
        }
        Ok(has_null)
    }
}

impl OpenPage {
    /// How many of the next values are not null; `levels` says which.
    fn present(&mut self, count: usize, levels: &mut Vec<u32>) -> Result<usize, Refusal> {
        let Some(reader) = &mut self.levels else { return Ok(count) };
        levels.clear();
        reader.read(count, levels)?;
        Ok(levels.iter().filter(|level| **level != 0).count())
    }
}

impl Decoder {
    fn numbers(
        &mut self,
        column: &Column,
        count: usize,
        dictionary: &[i64],
        out: &mut Vec<i64>,
        ids: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        match self {
            _ if count == 0 => Ok(()),
            Decoder::Empty => Err(early()),
            Decoder::Dictionary(hybrid) => {
                ids.clear();
                hybrid.read(count, ids)?;
                for id in ids.iter() {
                    out.push(*dictionary.get(*id as usize).ok_or_else(|| not_in_dictionary(*id))?);
                }
                Ok(())
            }
            Decoder::Delta(delta) => {
                let is_narrow = column.physical == Physical::Int32;
                delta.read(count, |value| out.push(if is_narrow { i64::from(value as i32) } else { value }))
            }
            Decoder::Plain { bytes, at } => match column.physical {
                Physical::Int32 => {
                    let values = taken(bytes, at, count, 4)?;
                    out.extend(values.as_chunks::<4>().0.iter().map(|four| i64::from(i32::from_le_bytes(*four))));
                    Ok(())
                }
                Physical::Int64 => {
                    let values = taken(bytes, at, count, 8)?;
                    out.extend(values.as_chunks::<8>().0.iter().map(|eight| i64::from_le_bytes(*eight)));
                    Ok(())
                }
                _ => plain_texts(column, bytes, at, count, |start, len| out.push(decimal(&bytes[start..start + len]))),
            },
            Decoder::Lengths { lengths, bytes, at } => {
                length_texts(lengths, bytes, at, count, |start, len| out.push(decimal(&bytes[start..start + len])))
            }
        }
    }

    fn texts(&mut self, column: &Column, count: usize, out: &mut Texts) -> Result<(), Refusal> {
        match self {
            _ if count == 0 => Ok(()),
            Decoder::Empty | Decoder::Delta(_) => Err(early()),
            Decoder::Dictionary(hybrid) => {
                let first = out.ids.len();
                hybrid.read(count, &mut out.ids)?;
                match out.ids[first..].iter().max() {
                    Some(most) if *most >= out.lasting => Err(not_in_dictionary(*most)),
                    _ => Ok(()),
                }
            }
            Decoder::Plain { bytes, at } => {
                let buffer = out.buffer(bytes.clone());
                plain_texts(column, bytes, at, count, |start, len| {
                    let id = out.push(buffer, start, len);
                    out.ids.push(id);
                })
            }
            Decoder::Lengths { lengths, bytes, at } => {
                let buffer = out.buffer(bytes.clone());
                length_texts(lengths, bytes, at, count, |start, len| {
                    let id = out.push(buffer, start, len);
                    out.ids.push(id);
                })
            }
        }
    }
}

fn early() -> Refusal {
    Refusal::new("a page ends before its last value")
}

fn not_in_dictionary(id: u32) -> Refusal {
    Refusal::new(format!("value {id} is not in the dictionary"))
}

/// The next `count` values of `width` bytes.
fn taken<'a>(bytes: &'a [u8], at: &mut usize, count: usize, width: usize) -> Result<&'a [u8], Refusal> {
    let end = count.checked_mul(width).and_then(|len| at.checked_add(len)).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(early)?;
    let values = &bytes[*at..end];
    *at = end;
    Ok(values)
}

/// Positions of the next plain texts.
fn plain_texts(
    column: &Column,
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    mut each: impl FnMut(usize, usize),
) -> Result<(), Refusal> {
    if column.physical == Physical::Fixed {
        let (width, first) = (column.width as usize, *at);
        taken(bytes, at, count, width)?;
        (0..count).for_each(|number| each(first + number * width, width));
        return Ok(());
    }
    for _ in 0..count {
        let head = taken(bytes, at, 1, 4)?;
        let (start, len) = (*at, u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize);
        taken(bytes, at, len, 1)?;
        each(start, len);
    }
    Ok(())
}

/// Positions of the next texts, whose lengths are apart.
fn length_texts(
    lengths: &mut Delta,
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    mut each: impl FnMut(usize, usize),
) -> Result<(), Refusal> {
    let mut is_within = true;
    lengths.read(count, |len| {
        let end = usize::try_from(len as i32).ok().and_then(|len| at.checked_add(len));
        match end.filter(|end| is_within && *end <= bytes.len()) {
            Some(end) => {
                each(*at, end - *at);
                *at = end;
            }
            None => is_within = false,
        }
    })?;
    if is_within { Ok(()) } else { Err(early()) }
}

/// Texts after their lengths.
fn lengths(bytes: Bytes) -> Result<Decoder, Refusal> {
    let mut passed = Delta::new(bytes.clone())?;
    pass(&mut passed)?;
    let at = passed.end();
    Ok(Decoder::Lengths { lengths: Delta::new(bytes.clone())?, bytes, at })
}

/// Reads all values to find the end. Each takes at least a byte later, so there are not more than a page has bytes.
fn pass(delta: &mut Delta) -> Result<(), Refusal> {
    if delta.left() > PAGE_BYTES_MAX {
        return Err(early());
    }
    delta.read(delta.left() as usize, |_| {})
}

/// Texts that share a prefix with the one before; they are put together here, within the bound of a page.
fn prefixed(bytes: Bytes) -> Result<Decoder, Refusal> {
    let mut prefixes = Delta::new(bytes.clone())?;
    pass(&mut prefixes)?;
    let suffixes_at = prefixes.end();
    let mut prefixes = Delta::new(bytes.clone())?;
    let rest = bytes.slice(suffixes_at..);
    let mut suffixes = Delta::new(rest.clone())?;
    pass(&mut suffixes)?;
    let mut at = suffixes.end();
    let mut suffixes = Delta::new(rest.clone())?;
    // Texts as in plain pages: their length in four bytes first.
    let (mut whole, mut last): (Vec<u8>, Range<usize>) = (Vec::new(), 0..0);
    for _ in 0..prefixes.left() {
        let (mut prefix, mut suffix) = (0, 0);
        prefixes.read(1, |len| prefix = len)?;
        suffixes.read(1, |len| suffix = len)?;
        let (Ok(prefix), Ok(suffix)) = (usize::try_from(prefix), usize::try_from(suffix)) else { return Err(early()) };
        if prefix > last.len() || suffix > rest.len() - at {
            return Err(early());
        }
        let len = prefix + suffix;
        if whole.len() + 4 + len > PAGE_BYTES_MAX as usize {
            return Err(Refusal::new(format!("a page has more than {PAGE_BYTES_MAX} bytes decoded")));
        }
        whole.extend_from_slice(&(len as u32).to_le_bytes());
        let start = whole.len();
        whole.extend_from_within(last.start..last.start + prefix);
        whole.extend_from_slice(&rest[at..at + suffix]);
        at += suffix;
        last = start..whole.len();
    }
    Ok(Decoder::Plain { bytes: whole.into(), at: 0 })
}

fn dictionary(
    source: &Source,
    chunk: &Chunk,
    pages: &Pages,
    unpacker: &mut Unpacker,
) -> Result<(Bytes, u64), Refusal> {
    let at = pages.dictionary.ok_or_else(|| Refusal::at(chunk.start, "a dictionary is missing"))?;
    let DictionaryPage { values, count } = DictionaryPage::read(source, chunk, at, unpacker)?;
    Ok((values, count))
}

/// The values of a dictionary. Its count is bounded by its bytes as the values are read.
fn number_dictionary(column: &Column, bytes: Bytes, count: u64) -> Result<Vec<i64>, Refusal> {
    let mut values = Vec::new();
    let count = usize::try_from(count).map_err(|_| early())?;
    Decoder::Plain { bytes, at: 0 }.numbers(column, count, &[], &mut values, &mut Vec::new())?;
    Ok(values)
}

fn text_dictionary(column: &Column, bytes: Bytes, count: u64, out: &mut Texts) -> Result<(), Refusal> {
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len()).ok_or_else(early)?;
    let buffer = out.buffer(bytes.clone());
    plain_texts(column, &bytes, &mut 0, count, |start, len| {
        out.push(buffer, start, len);
    })
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
