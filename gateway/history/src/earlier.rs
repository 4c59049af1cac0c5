//! Takes over the files of the earlier format of the price history, which programs before the store wrote. Read only.
//!
//! ```text
//! trail            rows of the open hours, in order of arrival
//!                  length u32 │ crc u32 of the rest │ sequence u64 │ rows: market u32, minute u32, row 24
//! minutes-<hour>   an hour that is over, by minute; hours-<day>: a day that is over, by hour
//!                  magic 8 │ slot seconds u32 │ first slot u32 │ through u64 │ markets u32 │ rows u32
//!                  │ crc u32 of these 32 bytes │ markets × (first row u32, crc u32 of market, first row, end, rows)
//!                  │ rows u32 │ rows × 24
//! ```
//!
//! A row is a slot, four prices of two bytes and two volumes of seven. Rows of the trail replace earlier ones, and rows
//! of frames up to `through` that the block of their hour has.
//!
//! A row that the store has stays: so a crash in the middle repeats the work, and rows that an earlier program wrote
//! after a return to it are added. Files are removed when everything is durable in the store. A damaged file stays for
//! the operator to look at; what is sound of it is taken over.

use crate::row::{
    About, BATCH_ROWS, MARKETS_MAX, MINUTES_KEPT_HOURS, Row, fold_hour, key, minutes_of, slot, write_candle,
};
use crate::store::{Batch, Store, StoreError, Table};
use engine::amount::Qty;
use engine::book::candles::{Candle, Mid};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const TRAIL: &str = "trail";
const MINUTES: &str = "minutes-";
const HOURS: &str = "hours-";
const MAGIC: &[u8] = b"PTHIST02";
/// Bytes of a row: slot, four prices, two volumes of seven bytes.
const ROW_BYTES: usize = 24;
const ENTRY_BYTES: usize = 8 + ROW_BYTES;
/// Bytes of the head of a frame, and of its number.
const FRAME_HEAD_BYTES: usize = 8;
const SEQUENCE_BYTES: usize = 8;
const FRAME_BYTES_MAX: usize = SEQUENCE_BYTES + 4_096 * ENTRY_BYTES;
const BLOCK_HEAD_BYTES: usize = 32;
const INDEX_AT: usize = BLOCK_HEAD_BYTES + 4;
/// Bytes of a market in the index of a block.
const INDEX_ENTRY_BYTES: usize = 8;

/// Whether a file of the history's folder has the name of one of the earlier format.
pub fn is_earlier(name: &str) -> bool {
    name == TRAIL || numbered(name, MINUTES).is_some() || numbered(name, HOURS).is_some()
}

fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

/// The files of the earlier format in a folder.
#[derive(Default)]
struct Files {
    trail: Option<PathBuf>,
    /// By hour, and by day.
    minutes: BTreeMap<u32, PathBuf>,
    hours: BTreeMap<u32, PathBuf>,
}

impl Files {
    fn of(folder: &Path) -> io::Result<Files> {
        let mut files = Files::default();
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name == TRAIL {
                files.trail = Some(path);
            } else if let Some(hour) = numbered(name, MINUTES) {
                files.minutes.insert(hour, path);
            } else if let Some(day) = numbered(name, HOURS) {
                files.hours.insert(day, path);
            } else if name.ends_with(".new") {
                // A block that was never complete.
                let _ = fs::remove_file(&path);
            }
        }
        Ok(files)
    }

    fn all(&self) -> impl Iterator<Item = &PathBuf> {
        self.trail.iter().chain(self.minutes.values()).chain(self.hours.values())
    }
}

/// Removes the files that were not taken over as a whole.
///
/// # Errors
/// The system's.
pub fn remove_rest(folder: &Path) -> io::Result<()> {
    Files::of(folder)?.all().try_for_each(fs::remove_file)
}

/// A block that was read.
struct Block {
    /// Frames of the trail up to this one are in it, as far as they belong to its hour.
    through: u64,
    rows: BTreeMap<u32, Vec<Row>>,
    /// Markets that are left out, because they are damaged.
    damaged: u32,
}

/// Moves the rows of earlier files into the store, and removes the files.
///
/// # Errors
/// [`StoreError`]; then all the files are still there.
pub fn take_over(folder: &Path, store: &mut Store) -> Result<(), StoreError> {
    let files = Files::of(folder)?;
    if files.all().next().is_none() {
        return Ok(());
    }
    let mut moving = Moving { store, batch: Batch::default(), rows: 0, done: Vec::new() };
    moving.run(&files)?;
    let (rows, done) = (moving.rows, moving.done);
    store.sync()?;
    for path in &done {
        fs::remove_file(path)?;
    }
    if rows > 0 {
        tracing::info!(rows, files = done.len(), "the price history was moved into the store");
    }
    Ok(())
}

/// The move.
struct Moving<'a> {
    store: &'a mut Store,
    batch: Batch,
    rows: u64,
    /// Files that are in the store as a whole.
    done: Vec<PathBuf>,
}

impl Moving<'_> {
    fn run(&mut self, files: &Files) -> Result<(), StoreError> {
        // What is sound, and which frames of the trail are in it. Blocks of a week may not fit into memory.
        let sound = |of: &BTreeMap<u32, PathBuf>| -> BTreeMap<u32, u64> {
            of.iter().filter_map(|(number, path)| Some((*number, read_file(path, true)?.through))).collect()
        };
        let (blocks, days) = (sound(&files.minutes), sound(&files.hours));
        let open = match &files.trail {
            Some(trail) => self.trail(trail, &blocks),
            None => BTreeMap::new(),
        };
        let newest = [
            open.keys().map(|(_, minute)| *minute).max(),
            blocks.keys().max().map(|hour| *minutes_of(*hour).end()),
            days.keys().max().map(|day| day.saturating_mul(24 * 60).saturating_add(24 * 60 - 1)),
        ];
        let mut about = self.store.known.clone();
        about.newest = newest.into_iter().flatten().chain(about.newest).max();
        let newest_hour = about.newest.unwrap_or(0) / 60;
        about.minutes_from = about.minutes_from.max(newest_hour.saturating_sub(MINUTES_KEPT_HOURS));
        let open_hours: BTreeSet<u32> = open.keys().map(|(_, minute)| minute / 60).collect();
        about.unsealed.extend(&open_hours);
        // Until the end the store knows what it knew, so that a crash repeats everything.
        let known = self.store.known.clone();
        for ((market, minute), candle) in &open {
            self.put(Table::Minutes, *market, *minute, candle, &known)?;
        }
        // Written before the next rows are compared with what the store has: the newest state of a row comes first.
        self.write(known.clone())?;
        for hour in blocks.keys() {
            let Some(block) = read_file(&files.minutes[hour], false) else { continue };
            for (market, rows) in &block.rows {
                for row in rows.iter().filter(|_| *hour >= about.minutes_from || open_hours.contains(hour)) {
                    let minute = hour.saturating_mul(60).saturating_add(u32::from(row.slot));
                    self.put(Table::Minutes, *market, minute, &row.candle, &known)?;
                }
                // An open hour is folded when it is sealed.
                if let Some(folded) = fold_hour(rows).filter(|_| !open_hours.contains(hour)) {
                    self.put(Table::Hours, *market, *hour, &folded, &known)?;
                }
            }
            self.is_done(&files.minutes[hour], &block);
        }
        self.write(known.clone())?;
        for day in days.keys() {
            let path = &files.hours[day];
            let Some(block) = read_file(path, false) else { continue };
            for (market, rows) in &block.rows {
                for row in rows {
                    let hour = day.saturating_mul(24).saturating_add(u32::from(row.slot));
                    if !open_hours.contains(&hour) {
                        self.put(Table::Hours, *market, hour, &row.candle, &known)?;
                    }
                }
            }
            self.is_done(path, &block);
        }
        self.write(about)
    }

    /// Adds a row that the store lacks.
    fn put(&mut self, table: Table, market: u32, time: u32, candle: &Candle, known: &About) -> Result<(), StoreError> {
        let key = key(market, time);
        if market < MARKETS_MAX && !self.store.has(table, key)? {
            self.batch.put(table, key, write_candle(candle));
            self.rows += 1;
        }
        if self.batch.len() < BATCH_ROWS { Ok(()) } else { self.write(known.clone()) }
    }

    /// Writes what is in the batch, as soon as the store takes it.
    fn write(&mut self, about: About) -> Result<(), StoreError> {
        self.store.wait()?;
        self.store.write(std::mem::take(&mut self.batch), about)
    }

    fn is_done(&mut self, path: &Path, block: &Block) {
        if block.damaged == 0 {
            self.done.push(path.to_owned());
        }
    }

    /// The rows of the trail that are in no block.
    fn trail(&mut self, path: &Path, blocks: &BTreeMap<u32, u64>) -> BTreeMap<(u32, u32), Candle> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) => {
                log_damage(path, &error.to_string());
                return BTreeMap::new();
            }
        };
        let (mut rows, mut at, mut sequence) = (BTreeMap::new(), 0, 0);
        while let Some((number, entries, next)) = frame(&bytes, at).filter(|(number, ..)| *number > sequence) {
            for entry in entries.chunks_exact(ENTRY_BYTES) {
                let (market, minute) = (word(entry, 0), word(entry, 4));
                let is_in_block = blocks.get(&(minute / 60)).is_some_and(|through| number <= *through);
                if !is_in_block && market < MARKETS_MAX {
                    rows.insert((market, minute), read_row(&entry[8..]).candle);
                }
            }
            (at, sequence) = (next, number);
        }
        let rest = &bytes[at..];
        if rest.is_empty() || is_half_a_frame(rest) || at > 0 && rest.iter().all(|byte| *byte == 0) {
            // A crash may leave an incomplete last frame.
            self.done.push(path.to_owned());
        } else {
            log_damage(path, &format!("{} bytes at its end cannot be read", rest.len()));
        }
        rows
    }
}

/// The block in a file; `None` if nothing of it is sound. With `logs` its damage is logged.
fn read_file(path: &Path, logs: bool) -> Option<Block> {
    let (block, why) = match fs::read(path).as_deref().map(read_block) {
        Ok(Some(block)) if block.damaged == 0 => return Some(block),
        Ok(Some(block)) => {
            let why = format!("{} of its markets are damaged", block.damaged);
            (Some(block), why)
        }
        Ok(None) => (None, "not a complete block of the price history".to_owned()),
        Err(error) => (None, error.to_string()),
    };
    if logs {
        log_damage(path, &why);
    }
    block
}

fn log_damage(path: &Path, why: &str) {
    tracing::warn!(why, file = %path.display(), "a damaged file of the earlier price history is left out, and stays");
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// CRC-32 of these parts, one after the other.
fn crc(parts: &[&[u8]]) -> u32 {
    let mut crc = flate2::Crc::new();
    parts.iter().for_each(|part| crc.update(part));
    crc.sum()
}

/// Reads [`ROW_BYTES`]. Prices outside of their bounds are brought into them: no candle may be refused later.
fn read_row(bytes: &[u8]) -> Row {
    let number = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
    let mid = |at: usize| Mid(number(at)).min(Mid::ONE);
    let volume = |at: usize| {
        let mut wide = [0; 8];
        wide[..7].copy_from_slice(&bytes[at..at + 7]);
        Qty(u64::from_le_bytes(wide))
    };
    let (open, close) = (mid(2), mid(8));
    let (high, low) = (mid(4).max(open).max(close), mid(6).min(open).min(close));
    Row { slot: number(0), candle: Candle { open, high, low, close, volume: [volume(10), volume(17)] } }
}

/// The frame at `at`: its number, its entries, and the offset of the next one.
fn frame(bytes: &[u8], at: usize) -> Option<(u64, &[u8], usize)> {
    let head = bytes.get(at..at + FRAME_HEAD_BYTES)?;
    let length = word(head, 0) as usize;
    let sound =
        length > SEQUENCE_BYTES && length <= FRAME_BYTES_MAX && (length - SEQUENCE_BYTES).is_multiple_of(ENTRY_BYTES);
    let next = at + FRAME_HEAD_BYTES + length;
    let body = bytes.get(at + FRAME_HEAD_BYTES..next).filter(|_| sound)?;
    if crc(&[body]) != word(head, 4) {
        return None;
    }
    let (sequence, entries) = body.split_at(SEQUENCE_BYTES);
    Some((u64::from_le_bytes(sequence.try_into().ok()?), entries, next))
}

/// Whether a frame begins there that is longer than the rest of the file, as a kill leaves it.
fn is_half_a_frame(rest: &[u8]) -> bool {
    let length = rest.first_chunk().map(|length| u32::from_le_bytes(*length) as usize);
    length.is_none_or(|length| length <= FRAME_BYTES_MAX && rest.len() < FRAME_HEAD_BYTES + length)
}

/// The rows of a block, by market; `None` if it is not a whole one.
fn read_block(bytes: &[u8]) -> Option<Block> {
    let head = bytes.get(..INDEX_AT)?;
    let sound = head.starts_with(MAGIC) && crc(&[&head[..BLOCK_HEAD_BYTES]]) == word(head, BLOCK_HEAD_BYTES);
    let through = u64::from(word(head, 16)) | u64::from(word(head, 20)) << 32;
    let (markets, rows) = (word(head, 24) as usize, word(head, 28) as usize);
    let rows_at = markets.checked_mul(INDEX_ENTRY_BYTES)?.checked_add(INDEX_AT + 4)?;
    let length = rows.checked_mul(ROW_BYTES)?.checked_add(rows_at)?;
    if !sound || bytes.len() != length {
        return None;
    }
    let mut block = Block { through, rows: BTreeMap::new(), damaged: 0 };
    for market in 0..markets {
        let index = &bytes[INDEX_AT + market * INDEX_ENTRY_BYTES..rows_at];
        // Its first row, its checksum, and the first row of the next market.
        let (from, sum, to) = (word(index, 0), word(index, 4), word(index, 8));
        let ends = from <= to && to as usize <= rows;
        let own = &bytes[rows_at..].get(from as usize * ROW_BYTES..to as usize * ROW_BYTES);
        let market = market as u32;
        let own = own.filter(|own| {
            let parts: [&[u8]; 4] = [&market.to_le_bytes(), &from.to_le_bytes(), &to.to_le_bytes(), own];
            ends && crc(&parts) == sum
        });
        let mut found = Vec::new();
        let slots = if word(head, 8) == 60 { 60 } else { 24 };
        let rows = own.unwrap_or_default().chunks_exact(ROW_BYTES).map(read_row);
        for row in rows.filter(|row| row.slot < slots) {
            *slot(&mut found, row.slot, row.candle) = row.candle;
        }
        match own {
            Some([]) => {}
            Some(_) => _ = block.rows.insert(market, found),
            None => block.damaged += 1,
        }
    }
    Some(block)
}

#[cfg(test)]
mod tests;
