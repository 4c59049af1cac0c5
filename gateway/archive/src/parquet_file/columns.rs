//! Columns of a range of rows, decoded in batches. Numbers are `i64`; texts are ids of a table, so that a text of a
//! dictionary is the same id in all of its rows.

use super::decode::Hybrid;
use super::footer::{Chunk, Column, Footer, Logical, Unit};
use super::page::{DictionaryPage, Page, Pages, Unpacker};
use super::source::Source;
use super::values::{BAD, Decoder, NO_TEXT, NULL, Texts, number_dictionary, text_dictionary};
use crate::error::Refusal;
use ahash::AHashMap;
use bytes::Bytes;
use parking_lot::Mutex;
use std::ops::Range;
use std::sync::Arc;

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

#[derive(Default)]
struct Scratch {
    levels: Vec<u32>,
    ids: Vec<u32>,
    numbers: Vec<i64>,
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
        let values = Decoder::new(&self.column, page.encoding, page.values).map_err(fail)?;
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
            out.keep();
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

fn dictionary(source: &Source, chunk: &Chunk, pages: &Pages, unpacker: &mut Unpacker) -> Result<(Bytes, u64), Refusal> {
    let at = pages.dictionary.ok_or_else(|| Refusal::at(chunk.start, "a dictionary is missing"))?;
    let DictionaryPage { values, count } = DictionaryPage::read(source, chunk, at, unpacker)?;
    Ok((values, count))
}
