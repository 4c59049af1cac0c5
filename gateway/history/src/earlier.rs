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
//! after a return to it are added. Files are removed when everything is durable in the store. A damaged file gets another
//! name then, and stays for the operator to look at; what is sound of it is taken over once. An empty store, as at the first start, is not asked.

use crate::row::{About, BATCH_ROWS, MARKETS_MAX, Row, fold_hour, key, minutes_of, slot, write_candle};
use crate::store::{Batch, Store, StoreError, Table};
use engine::amount::Qty;
use engine::book::candles::{Candle, Mid};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Added to the name of a damaged file.
const DAMAGED: &str = ".damaged";
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
const NOT_A_BLOCK: &str = "not a complete block of the price history";
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

/// Removes the files that could not be read.
///
/// # Errors
/// The system's.
pub fn remove_rest(folder: &Path) -> io::Result<()> {
    Files::of(folder)?.all().try_for_each(fs::remove_file)
}

/// A block that was read.
struct Block {
    rows: BTreeMap<u32, Vec<Row>>,
    /// Markets that are left out, because they are damaged.
    damaged: u32,
}

/// Moves the rows of earlier files into the store, and removes the files.
///
/// # Errors
/// [`StoreError`]; then all the files are still there.
pub fn take_over(folder: &Path, store: &mut Store) -> Result<(), StoreError> {
    let Some(mut moving) = Move::begin(folder, store)? else { return Ok(()) };
    loop {
        match moving.step(store)? {
            Step::Again => {}
            Step::Wait => store.wait()?,
            Step::Over => return Ok(()),
        }
    }
}

/// What follows a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The next one.
    Again,
    /// The next one, as soon as the store can be written to.
    Wait,
    /// There is nothing left to do.
    Over,
}

/// A row on its way into the store.
struct Moved {
    table: Table,
    market: u32,
    time: u32,
    candle: Candle,
    /// The store may have it.
    may_be_there: bool,
}

/// The move, in steps of a file that is read, or of a batch that is written.
pub struct Move {
    /// What the store knows until the end, so that a crash repeats everything.
    known: About,
    /// What it knows then.
    about: About,
    /// The store was empty.
    is_fresh: bool,
    /// Rows of the trail.
    open: BTreeMap<(u32, u32), Candle>,
    /// Blocks to read. The trail may have rows that belong to one of them.
    minutes: VecDeque<(u32, PathBuf)>,
    /// The hours of all of them.
    folded: BTreeSet<u32>,
    /// Blocks by day, read after the others: their rows may be folded from those.
    hours: VecDeque<(u32, PathBuf)>,
    /// What was read and is not written yet.
    rows: std::vec::IntoIter<Moved>,
    moved: usize,
    done: Done,
}

/// Files that were read.
#[derive(Default)]
struct Done {
    /// They are in the store as a whole.
    whole: Vec<PathBuf>,
    /// What is sound of them is in the store.
    damaged: Vec<PathBuf>,
}

impl Move {
    /// Reads the trail and the heads of the blocks. `None`: there are no files.
    ///
    /// # Errors
    /// [`StoreError`].
    pub fn begin(folder: &Path, store: &Store) -> Result<Option<Move>, StoreError> {
        let files = Files::of(folder)?;
        if files.all().next().is_none() {
            return Ok(None);
        }
        // What is sound, and which frames of the trail are in it.
        let mut done = Done::default();
        let mut sound = |of: &BTreeMap<u32, PathBuf>| -> BTreeMap<u32, u64> {
            let head = |(number, path): (&u32, &PathBuf)| Some((*number, read_head(path, &mut done)?.through));
            of.iter().filter_map(head).collect()
        };
        let (blocks, days) = (sound(&files.minutes), sound(&files.hours));
        let open =
            files.trail.iter().flat_map(|trail| read_trail(trail, &blocks, &mut done)).collect::<BTreeMap<_, _>>();
        let newest = [
            open.keys().map(|(_, minute)| *minute).max(),
            blocks.keys().max().map(|hour| *minutes_of(*hour).end()),
            days.keys().max().map(|day| day.saturating_mul(24 * 60).saturating_add(24 * 60 - 1)),
        ];
        let known = store.known.clone();
        let mut about = known.clone();
        about.newest = newest.into_iter().flatten().chain(about.newest).max();
        let newest_hour = about.newest.unwrap_or(0) / 60;
        about.keep_from(newest_hour);
        about.unsealed.extend(open.keys().map(|(_, minute)| minute / 60));
        let mut is_fresh = true;
        for table in Table::PRICES {
            is_fresh &= store.scan(table, [0; 8]..=[0xff; 8]).next().transpose()?.is_none();
        }
        let row = |((market, minute), candle): (&(u32, u32), &Candle)| {
            let (market, time, candle) = (*market, *minute, *candle);
            Moved { table: Table::Minutes, market, time, candle, may_be_there: !is_fresh }
        };
        let rows = open.iter().map(row).collect::<Vec<_>>().into_iter();
        let queue = |of: &BTreeMap<u32, u64>, files: BTreeMap<u32, PathBuf>| {
            files.into_iter().filter(|(number, _)| of.contains_key(number)).collect::<VecDeque<_>>()
        };
        let (minutes, hours) = (queue(&blocks, files.minutes), queue(&days, files.hours));
        let folded = blocks.into_keys().collect();
        Ok(Some(Move { known, about, is_fresh, open, minutes, folded, hours, rows, moved: 0, done }))
    }

    /// Does a bounded part of the work, unless the store cannot be written to for now.
    ///
    /// # Errors
    /// [`StoreError`]; then all the files are still there.
    pub fn step(&mut self, store: &mut Store) -> Result<Step, StoreError> {
        if store.is_busy() {
            return Ok(Step::Wait);
        }
        let rows: Vec<Moved> = self.rows.by_ref().take(BATCH_ROWS).collect();
        if !rows.is_empty() {
            let mut batch = Batch::default();
            for Moved { table, market, time, candle, may_be_there } in rows {
                let key = key(market, time);
                if market < MARKETS_MAX && !(may_be_there && store.has(table, key)?) {
                    batch.put(table, key, write_candle(&candle));
                }
            }
            self.moved += batch.len();
            // Written before the next rows are compared with what the store has: the newest state of a row comes first.
            store.write(batch, self.known.clone())?;
        } else if let Some((hour, path)) = self.minutes.pop_front() {
            self.read_minutes(hour, path);
        } else if let Some((day, path)) = self.hours.pop_front() {
            self.read_hours(day, path);
        } else {
            self.end(store)?;
            return Ok(Step::Over);
        }
        Ok(Step::Again)
    }

    fn read_minutes(&mut self, hour: u32, path: PathBuf) {
        let Some(block) = read_file(&path) else { return };
        let (may_be_there, is_open) = (!self.is_fresh, self.about.unsealed.contains(&hour));
        let mut found = Vec::new();
        for (market, rows) in &block.rows {
            let market = *market;
            for row in rows.iter().filter(|_| hour >= self.about.minutes_from || is_open) {
                let time = hour.saturating_mul(60).saturating_add(u32::from(row.slot));
                if may_be_there || !self.open.contains_key(&(market, time)) {
                    found.push(Moved { table: Table::Minutes, market, time, candle: row.candle, may_be_there });
                }
            }
            // An open hour is folded when it is sealed.
            if let Some(candle) = fold_hour(rows).filter(|_| hour >= self.about.hours_from && !is_open) {
                found.push(Moved { table: Table::Hours, market, time: hour, candle, may_be_there });
            }
        }
        self.read(found, block, path);
    }

    fn read_hours(&mut self, day: u32, path: PathBuf) {
        let Some(block) = read_file(&path) else { return };
        let mut found = Vec::new();
        for (market, rows) in &block.rows {
            for row in rows {
                let (market, hour) = (*market, day.saturating_mul(24).saturating_add(u32::from(row.slot)));
                if hour >= self.about.hours_from && !self.about.unsealed.contains(&hour) {
                    let may_be_there = !self.is_fresh || self.folded.contains(&hour);
                    found.push(Moved { table: Table::Hours, market, time: hour, candle: row.candle, may_be_there });
                }
            }
        }
        self.read(found, block, path);
    }

    fn read(&mut self, found: Vec<Moved>, block: Block, path: PathBuf) {
        self.rows = found.into_iter();
        let done = if block.damaged == 0 { &mut self.done.whole } else { &mut self.done.damaged };
        done.push(path);
    }

    /// Makes everything durable, and removes the files, but for damaged ones: those are renamed.
    fn end(&mut self, store: &mut Store) -> Result<(), StoreError> {
        store.write(Batch::default(), self.about.clone())?;
        store.sync()?;
        self.done.whole.iter().try_for_each(fs::remove_file)?;
        for path in &self.done.damaged {
            let mut name = path.clone().into_os_string();
            name.push(DAMAGED);
            fs::rename(path, name)?;
        }
        if self.moved > 0 {
            let (rows, files) = (self.moved, self.done.whole.len());
            tracing::info!(rows, files, "the price history was moved into the store");
        }
        Ok(())
    }
}

/// The rows of the trail that are in no block. The file is added to `done`.
fn read_trail(path: &Path, blocks: &BTreeMap<u32, u64>, done: &mut Done) -> BTreeMap<(u32, u32), Candle> {
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
        done.whole.push(path.to_owned());
    } else {
        done.damaged.push(path.to_owned());
        log_damage(path, &format!("{} bytes at its end cannot be read", rest.len()));
    }
    rows
}

/// The head of the block in a file; `None` if nothing of it is sound, which is logged. Then the file is added to `done`,
/// unless it cannot be read.
fn read_head(path: &Path, done: &mut Done) -> Option<Head> {
    let read = || -> io::Result<Option<Head>> {
        let (mut file, mut bytes) = (File::open(path)?, Vec::new());
        file.by_ref().take(INDEX_AT as u64).read_to_end(&mut bytes)?;
        Ok(head(&bytes, file.metadata()?.len()))
    };
    let why = match read() {
        Ok(Some(head)) => return Some(head),
        Ok(None) => {
            done.damaged.push(path.to_owned());
            NOT_A_BLOCK.to_owned()
        }
        Err(error) => error.to_string(),
    };
    log_damage(path, &why);
    None
}

/// The block in a file; `None` if nothing of it is sound. Damage is logged.
fn read_file(path: &Path) -> Option<Block> {
    let (block, why) = match fs::read(path).as_deref().map(read_block) {
        Ok(Some(block)) if block.damaged == 0 => return Some(block),
        Ok(Some(block)) => {
            let why = format!("{} of its markets are damaged", block.damaged);
            (Some(block), why)
        }
        Ok(None) => (None, NOT_A_BLOCK.to_owned()),
        Err(error) => (None, error.to_string()),
    };
    log_damage(path, &why);
    block
}

fn log_damage(path: &Path, why: &str) {
    tracing::warn!(why, file = %path.display(), "a file of the earlier price history is damaged; what is not sound of it is \
        left out, and the file stays");
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

/// The head of a block.
struct Head {
    /// Seconds of a slot.
    slot: u32,
    /// Frames of the trail up to this one are in the block, as far as they belong to its hour.
    through: u64,
    markets: usize,
    rows: usize,
    /// Where its rows are.
    rows_at: usize,
}

/// The head of a block with that many bytes, from at least the first [`INDEX_AT`] of them.
fn head(bytes: &[u8], length: u64) -> Option<Head> {
    let head = bytes.get(..INDEX_AT)?;
    let sound = head.starts_with(MAGIC) && crc(&[&head[..BLOCK_HEAD_BYTES]]) == word(head, BLOCK_HEAD_BYTES);
    let through = u64::from(word(head, 16)) | u64::from(word(head, 20)) << 32;
    let (markets, rows) = (word(head, 24) as usize, word(head, 28) as usize);
    let rows_at = markets.checked_mul(INDEX_ENTRY_BYTES)?.checked_add(INDEX_AT + 4)?;
    let whole = rows.checked_mul(ROW_BYTES)?.checked_add(rows_at)?;
    (sound && length == whole as u64).then_some(Head { slot: word(head, 8), through, markets, rows, rows_at })
}

/// The rows of a block, by market; `None` if it is not a whole one.
fn read_block(bytes: &[u8]) -> Option<Block> {
    let Head { slot: slot_secs, markets, rows, rows_at, .. } = head(bytes, bytes.len() as u64)?;
    let mut block = Block { rows: BTreeMap::new(), damaged: 0 };
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
        let slots = if slot_secs == 60 { 60 } else { 24 };
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
