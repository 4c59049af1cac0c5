//! The price history as a set of files (`history/` in the data directory), and the part of it that is in memory.
//!
//! ```text
//! trail              rows of the open hours, in order of arrival
//! minutes-<hour>       a block for each hour that is over, by minute; the last seven days
//! hours-<day>          a block for each day that is over, by hour; two years
//! ```
//!
//! An hour is open, in memory, until two later ones have begun; then it is sealed into its block and the trail is
//! restarted. Memory is bounded by the open hours. Nothing here may stop a server: files that cannot be read are left
//! out and logged once; rows that cannot be written stay in memory while there is room for them, and are then dropped.

use super::block::{self, Block, Row, Rows};
use super::trail::{Entry, Trail};
use ahash::AHashSet;
use engine::amount::Qty;
use engine::book::candles::{Bucket, Candle, Grid, Mid, fold};
use engine::id::Outcome;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::RangeInclusive;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

/// Hours that are open at a time.
const OPEN_HOURS: usize = 2;
/// Most open hours if none can be sealed.
const OPEN_HOURS_MAX: usize = 4;
/// How long minutes and hours are kept.
const MINUTES_KEPT_HOURS: u32 = 7 * 24;
const HOURS_KEPT_DAYS: u32 = 730;
/// A trail that exceeds its live rows by this much is restarted.
const TRAIL_SLACK_BYTES: u64 = 16 << 20;
const TRAIL_FACTOR: u64 = 4;
/// Bound of the market numbers of this server.
const MARKETS_MAX: u32 = 1 << 22;
const HOUR_SECS: u32 = 3_600;
/// File name of the trail.
const TRAIL: &str = "trail";

/// The candle of a market's first outcome in one minute (since 1970), or in a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MinuteCandle {
    pub market: u32,
    pub minute: u32,
    pub candle: Candle,
}

/// The result of a query.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredPrices {
    /// Oldest first: minutes, and hours where minutes are not kept any more.
    pub buckets: Vec<Bucket>,
    /// Some of the data could not be read, or there are no files.
    pub broken: bool,
}

/// The history.
pub struct Store {
    /// `None`: there is no directory; only the open hours are kept.
    directory: Option<Directory>,
    open: BTreeMap<u32, Rows>,
    /// Rows that the trail lacks or has in an older state: market, minute.
    unwritten: AHashSet<(u32, u32)>,
    /// The last price of each market.
    last: BTreeMap<u32, Mid>,
    /// Shares filled, by outcome, in markets without a price: for the next row of each.
    waiting: BTreeMap<u32, [Qty; 2]>,
    /// The last attempt to write failed; logged once.
    failing: bool,
}

/// The directory and its files.
struct Directory {
    dir: PathBuf,
    trail: Trail,
    /// Hours with a block by minute; days with a block by hour.
    minutes: BTreeSet<u32>,
    hours: BTreeSet<u32>,
    /// Days whose block by hour is older than one of their blocks by minute.
    outdated: BTreeSet<u32>,
    damaged: Damaged,
}

/// Blocks that are known to be damaged, so that each is logged once.
#[derive(Default)]
struct Damaged(RefCell<BTreeSet<PathBuf>>);

impl Damaged {
    fn log_once(&self, path: &Path, why: &dyn std::fmt::Display) {
        if self.0.borrow_mut().insert(path.to_owned()) {
            tracing::warn!(%why, file = %path.display(), "a damaged file is left out of the price history");
        }
    }

    /// The rows of a market, `None` if they cannot be read.
    fn rows(&self, path: &Path, market: u32) -> Option<Vec<Row>> {
        let rows = Block::open(path).and_then(|block| block.rows(market));
        rows.map_err(|error| self.log_once(path, &error)).ok()
    }

    /// The rows of all undamaged markets.
    ///
    /// # Errors
    /// The system's.
    fn all(&self, path: &Path) -> io::Result<Rows> {
        match Block::open(path).and_then(|block| block.all()) {
            Ok((rows, 0)) => Ok(rows),
            Ok((rows, markets)) => {
                self.log_once(path, &format_args!("{markets} of its markets are damaged"));
                Ok(rows)
            }
            Err(error) if block::is_damage(&error) => {
                self.log_once(path, &error);
                Ok(Rows::new())
            }
            Err(error) => Err(error),
        }
    }
}

impl Store {
    /// Opens the history of a directory, which is created if needed. Without a usable directory, the history is kept
    /// only in memory.
    pub fn open(dir: Option<&Path>) -> Store {
        let mut store = Store {
            directory: None,
            open: BTreeMap::new(),
            unwritten: AHashSet::new(),
            last: BTreeMap::new(),
            waiting: BTreeMap::new(),
            failing: false,
        };
        if let Some(dir) = dir {
            match store.read(dir) {
                Ok(directory) => store.directory = Some(directory),
                Err(error) => {
                    tracing::warn!(%error, dir = %dir.display(), "the price history is kept only in memory: its \
                        directory cannot be used")
                }
            }
        }
        store.settle();
        store
    }

    fn read(&mut self, dir: &Path) -> io::Result<Directory> {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        let (mut minutes, mut hours, mut outdated) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let damaged = Damaged::default();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let numbered = |prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
            if name.ends_with(".new") {
                let _ = std::fs::remove_file(&path);
            } else if let Some(hour) = numbered("minutes-") {
                match Block::open(&path) {
                    Ok(block) => _ = minutes.insert(hour, block.head.through),
                    Err(error) => damaged.log_once(&path, &error),
                }
            } else if let Some(day) = numbered("hours-") {
                match Block::open(&path) {
                    Ok(_) => _ = hours.insert(day),
                    Err(error) => {
                        damaged.log_once(&path, &error);
                        outdated.insert(day);
                    }
                }
            }
        }
        let left_out = damaged.0.borrow().len();
        if left_out > 0 && minutes.is_empty() && hours.is_empty() {
            tracing::warn!(left_out, dir = %dir.display(), "no file of the price history can be read: charts begin \
                with this start");
        }
        let open = &mut self.open;
        let mut trail = Trail::open(&dir.join(TRAIL), |frame, entry| {
            let hour = entry.minute / 60;
            let sealed = minutes.get(&hour).is_some_and(|through| frame <= *through);
            if !sealed && entry.market < MARKETS_MAX {
                let rows = open.entry(hour).or_default().entry(entry.market).or_default();
                *slot(rows, entry.row.slot, entry.row.candle) = entry.row.candle;
            }
        })?;
        trail.not_before(minutes.values().copied().max().unwrap_or(0));
        let minutes: BTreeSet<u32> = minutes.into_keys().collect();
        // An hour that was opened again: its block has the rest of its rows.
        for (hour, rows) in open.iter_mut().filter(|(hour, _)| minutes.contains(hour)) {
            match damaged.all(&minutes_path(dir, *hour)) {
                Ok(sealed) => merge(rows, sealed),
                Err(error) => {
                    tracing::warn!(%error, hour, "an hour of the price history cannot be read; charts lack it")
                }
            }
        }
        for rows in open.values() {
            self.last.extend(rows.iter().filter_map(|(market, rows)| Some((*market, rows.last()?.candle.close))));
        }
        Ok(Directory { dir: dir.to_owned(), trail, minutes, hours, outdated, damaged })
    }

    /// Adds minutes from the feed: each continues the row of its minute.
    pub fn add(&mut self, minutes: &[MinuteCandle]) {
        for added in minutes.iter().filter(|added| added.market < MARKETS_MAX) {
            self.last.insert(added.market, added.candle.close);
            let row = (added.minute % 60) as u16;
            let mut candle = added.candle;
            let waited = self.waiting.remove(&added.market).unwrap_or_default();
            candle.volume.iter_mut().zip(waited).for_each(|(volume, waited)| add(volume, waited));
            let rows = self.hour(added.minute / 60).entry(added.market).or_default();
            match rows.binary_search_by_key(&row, |row| row.slot) {
                Ok(at) => rows[at].candle.join(&candle),
                Err(at) => rows.insert(at, Row { slot: row, candle }),
            }
            self.unwritten.insert((added.market, added.minute));
        }
        self.settle();
    }

    /// Adds shares filled on this server. A market without a price has no row for them: they wait in memory for its
    /// next row.
    pub fn fill(&mut self, market: u32, outcome: Outcome, shares: Qty, minute: u32) {
        if market >= MARKETS_MAX {
            return;
        }
        let Some(last) = self.last.get(&market).copied() else {
            return add(&mut self.waiting.entry(market).or_default()[outcome as usize], shares);
        };
        let rows = self.hour(minute / 60).entry(market).or_default();
        let candle = slot(rows, (minute % 60) as u16, Candle::at(last));
        add(&mut candle.volume[outcome as usize], shares);
        self.unwritten.insert((market, minute));
        self.settle();
    }

    /// The rows of an hour, which is open from now on.
    fn hour(&mut self, hour: u32) -> &mut Rows {
        let directory = &self.directory;
        self.open.entry(hour).or_insert_with(|| {
            let Some(directory) = directory.as_ref().filter(|directory| directory.minutes.contains(&hour)) else {
                return Rows::new();
            };
            let sealed = directory.damaged.all(&minutes_path(&directory.dir, hour));
            sealed.unwrap_or_else(|error| {
                tracing::warn!(%error, hour, "an hour of the price history cannot be read; charts lack it");
                Rows::new()
            })
        })
    }

    /// The newest minute with any data; all minutes before it count as known.
    pub fn newest(&self) -> Option<u32> {
        let end_of_hour = |hour: u32| hour.saturating_mul(60).saturating_add(59);
        let rows = |(hour, rows): (&u32, &Rows)| {
            let slot = rows.values().filter_map(|rows| rows.last()).map(|row| u32::from(row.slot)).max()?;
            Some(hour.saturating_mul(60).saturating_add(slot))
        };
        let open = self.open.iter().filter_map(rows).max();
        let directory = self.directory.as_ref();
        let minutes = directory.and_then(|directory| directory.minutes.last().copied()).map(end_of_hour);
        let hours = directory.and_then(|directory| directory.hours.last().copied());
        let hours = hours.map(|day| end_of_hour(day.saturating_mul(24).saturating_add(23)));
        open.max(minutes).max(hours)
    }

    /// Number of rows that the trail lacks.
    pub fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Writes the open rows that have changed. Rows that cannot be written are tried again the next time.
    pub fn write(&mut self) {
        let Some(directory) = &mut self.directory else { return self.unwritten.clear() };
        if self.unwritten.is_empty() {
            return;
        }
        let rows: u64 = self.open.values().flat_map(BTreeMap::values).map(|rows| rows.len() as u64).sum();
        let written = if directory.trail.bytes() > TRAIL_SLACK_BYTES + TRAIL_FACTOR * rows * block::ROW_BYTES as u64 {
            directory.trail.restart(&entries(&self.open))
        } else {
            let open = &self.open;
            let changed = self.unwritten.iter().filter_map(|(market, minute)| {
                let (rows, at) = (open.get(&(minute / 60))?.get(market)?, (minute % 60) as u16);
                let row = rows[rows.binary_search_by_key(&at, |row| row.slot).ok()?];
                Some(Entry { market: *market, minute: *minute, row })
            });
            directory.trail.append(&changed.collect::<Vec<_>>())
        };
        if written.is_ok() {
            self.unwritten.clear();
        }
        self.written(written);
    }

    /// Logs that writing fails, and that it works again.
    fn written(&mut self, written: io::Result<()>) {
        match &written {
            Ok(()) if self.failing => tracing::info!("the price history can be written again"),
            Err(error) if !self.failing => {
                tracing::warn!(%error, "the price history cannot be written; it is kept in memory and tried again")
            }
            _ => {}
        }
        self.failing = written.is_err();
    }

    /// Seals hours that are over, down to the number that stays open.
    fn settle(&mut self) {
        while self.open.len() > OPEN_HOURS {
            let oldest = *self.open.keys().next().expect("there are several");
            let sealed = match &mut self.directory {
                Some(directory) => directory.seal(oldest, &self.open),
                None => Ok(()),
            };
            let failed = sealed.is_err();
            self.written(sealed);
            if failed && self.open.len() <= OPEN_HOURS_MAX {
                return;
            }
            self.open.remove(&oldest);
            self.unwritten.retain(|(_, minute)| minute / 60 != oldest);
        }
    }

    /// The data of a market with a start within `secs` (Unix). The reader folds it into stretches of `step` seconds, so
    /// hours are used where whole hours are enough.
    pub fn find(&self, market: u32, secs: RangeInclusive<u64>, step: u64) -> StoredPrices {
        let mut found = StoredPrices { buckets: Vec::new(), broken: self.directory.is_none() };
        // The market's clock has not reached the start: there is no data yet, and the range is empty.
        if secs.is_empty() {
            return found;
        }
        let day_of = |secs: u64| u32::try_from(secs / 86_400).unwrap_or(u32::MAX);
        let days = day_of(*secs.start())..=day_of(*secs.end());
        let mut known: BTreeSet<u32> = self.open.keys().map(|hour| hour / 24).collect();
        if let Some(directory) = &self.directory {
            known.extend(directory.minutes.iter().map(|hour| hour / 24));
            known.extend(&directory.hours);
        }
        for day in known.range(days) {
            self.find_day(market, *day, step.is_multiple_of(u64::from(HOUR_SECS)), &mut found);
        }
        found.buckets.retain(|bucket| secs.contains(&bucket.start));
        found
    }

    fn find_day(&self, market: u32, day: u32, hours_do: bool, found: &mut StoredPrices) {
        let mut by_hour: Option<Vec<Row>> = None;
        let directory = self.directory.as_ref();
        let has_hours = directory.is_some_and(|directory| directory.hours.contains(&day));
        let current = has_hours && directory.is_some_and(|directory| !directory.outdated.contains(&day));
        for hour in day.saturating_mul(24)..day.saturating_add(1).saturating_mul(24) {
            if let Some(rows) = self.open.get(&hour) {
                extend(found, rows.get(&market).map_or(&[], Vec::as_slice), hour, 60);
                continue;
            }
            let Some(directory) = directory else { continue };
            if directory.minutes.contains(&hour) && !(hours_do && current) {
                match directory.damaged.rows(&minutes_path(&directory.dir, hour), market) {
                    Some(rows) => extend(found, &rows, hour, 60),
                    None => found.broken = true,
                }
            } else if has_hours {
                let rows = by_hour.get_or_insert_with(|| {
                    let read = directory.damaged.rows(&hours_path(&directory.dir, day), market);
                    found.broken |= read.is_none();
                    read.unwrap_or_default()
                });
                if let Some(row) = rows.iter().find(|row| u32::from(row.slot) == hour % 24) {
                    extend(found, &[Row { slot: 0, ..*row }], hour, 60);
                }
            }
        }
    }
}

impl Directory {
    /// Writes the block of an hour and restarts the trail with the other open hours.
    fn seal(&mut self, hour: u32, open: &BTreeMap<u32, Rows>) -> io::Result<()> {
        let through = self.trail.sequence();
        block::write(&minutes_path(&self.dir, hour), 60, hour.saturating_mul(60), through, &open[&hour])?;
        self.minutes.insert(hour);
        self.outdated.insert(hour / 24);
        let rest: BTreeMap<u32, Rows> =
            open.iter().filter(|(other, _)| **other != hour).map(|(other, rows)| (*other, rows.clone())).collect();
        self.trail.restart(&entries(&rest))?;
        let newest = open.keys().chain(&self.minutes).max().copied().unwrap_or(hour);
        self.fold_days(newest / 24);
        self.forget(newest);
        Ok(())
    }

    /// Writes the blocks by hour of days before `today` that have none, or an outdated one.
    fn fold_days(&mut self, today: u32) {
        let by_minute: BTreeSet<u32> = self.minutes.iter().map(|hour| hour / 24).collect();
        let due = |day: &&u32| **day < today && (self.outdated.contains(day) || !self.hours.contains(day));
        let due: Vec<u32> = by_minute.iter().filter(due).copied().collect();
        for day in due {
            match self.fold_day(day) {
                Ok(()) => {
                    self.hours.insert(day);
                    self.outdated.remove(&day);
                }
                Err(error) => {
                    tracing::warn!(%error, day, "a day of the price history cannot be folded into hours; it is tried \
                        again")
                }
            }
        }
    }

    fn fold_day(&self, day: u32) -> io::Result<()> {
        let path = hours_path(&self.dir, day);
        // Hours whose minutes are gone or damaged stay as they were folded before.
        let mut rows = if self.hours.contains(&day) { self.damaged.all(&path)? } else { Rows::new() };
        for hour in self.minutes.range(day * 24..(day + 1) * 24) {
            for (market, minutes) in self.damaged.all(&minutes_path(&self.dir, *hour))? {
                let buckets = minutes.iter().map(|row| Bucket { start: u64::from(row.slot) * 60, candle: row.candle });
                if let Some(whole) = fold(buckets, Grid::HOUR).first() {
                    *slot(rows.entry(market).or_default(), (hour % 24) as u16, whole.candle) = whole.candle;
                }
            }
        }
        block::write(&path, HOUR_SECS, day * 24, 0, &rows)
    }

    /// Removes what is older than the kept range.
    fn forget(&mut self, newest: u32) {
        let oldest = newest.saturating_sub(MINUTES_KEPT_HOURS);
        let (hours, outdated, dir) = (&self.hours, &self.outdated, &self.dir);
        self.minutes.retain(|hour| {
            let folded = hours.contains(&(hour / 24)) && !outdated.contains(&(hour / 24));
            let kept = *hour >= oldest || !folded;
            kept || std::fs::remove_file(minutes_path(dir, *hour)).is_err()
        });
        let oldest = (newest / 24).saturating_sub(HOURS_KEPT_DAYS);
        self.hours.retain(|day| *day >= oldest || std::fs::remove_file(hours_path(dir, *day)).is_err());
    }
}

/// Removes everything later than that second from the history of a stopped server: it was recorded with a wrong clock.
/// Does nothing if the folder does not exist.
///
/// # Errors
/// The system's. A repeated call continues.
pub fn set_back(dir: &Path, secs: u64) -> io::Result<()> {
    if !dir.is_dir() {
        return Ok(());
    }
    let minute = u32::try_from(secs / 60).unwrap_or(u32::MAX);
    let (hour, day) = (minute / 60, minute / 60 / 24);
    let mut rest = BTreeMap::new();
    let mut is_later = false;
    let mut trail = Trail::open(&dir.join(TRAIL), |_, entry| {
        if entry.minute <= minute {
            rest.insert((entry.market, entry.minute), entry);
        } else {
            is_later = true;
        }
    })?;
    let mut through = 0;
    for entry in std::fs::read_dir(dir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let numbered = |prefix: &str| name.strip_prefix(prefix)?.parse::<u32>().ok();
        let (of_hour, of_day) = (numbered("minutes-"), numbered("hours-"));
        if of_hour.is_some() {
            // Frames of the trail continue after those that any block names.
            through = Block::open(&path).map_or(through, |block| through.max(block.head.through));
        }
        if of_hour.is_some_and(|of| of > hour) || of_day.is_some_and(|of| of > day) {
            std::fs::remove_file(&path)?;
        } else if of_hour == Some(hour) {
            cut_block(&path, (minute % 60) as u16)?;
        } else if of_day == Some(day) {
            cut_block(&path, (hour % 24) as u16)?;
        }
    }
    if is_later {
        trail.not_before(through);
        trail.restart(&rest.into_values().collect::<Vec<_>>())?;
    }
    Ok(())
}

/// Keeps only the rows of a block up to that slot. A damaged block is left unchanged.
fn cut_block(path: &Path, last: u16) -> io::Result<()> {
    let Ok((head, mut rows)) = Block::open(path).and_then(|block| Ok((block.head, block.all()?.0))) else {
        return Ok(());
    };
    rows.values_mut().for_each(|rows| rows.retain(|row| row.slot <= last));
    rows.retain(|_, rows| !rows.is_empty());
    block::write(path, head.slot_secs, head.first, head.through, &rows)
}

fn minutes_path(dir: &Path, hour: u32) -> PathBuf {
    dir.join(format!("minutes-{hour}"))
}

fn hours_path(dir: &Path, day: u32) -> PathBuf {
    dir.join(format!("hours-{day}"))
}

fn add(volume: &mut Qty, shares: Qty) {
    volume.0 = volume.0.saturating_add(shares.0);
}

/// The candle of a slot; a missing one is created as `fresh`.
fn slot(rows: &mut Vec<Row>, slot: u16, fresh: Candle) -> &mut Candle {
    let at = match rows.binary_search_by_key(&slot, |row| row.slot) {
        Ok(at) => at,
        Err(at) => {
            rows.insert(at, Row { slot, candle: fresh });
            at
        }
    };
    &mut rows[at].candle
}

/// Adds the rows of a block that are not in `rows`.
fn merge(rows: &mut Rows, sealed: Rows) {
    for (market, sealed) in sealed {
        let rows = rows.entry(market).or_default();
        for row in sealed {
            slot(rows, row.slot, row.candle);
        }
    }
}

/// Every row of these hours.
fn entries(open: &BTreeMap<u32, Rows>) -> Vec<Entry> {
    let of_hour = |(hour, rows): (&u32, &Rows)| {
        let hour = *hour;
        let entry = move |market: u32, row: &Row| Entry { market, minute: hour * 60 + u32::from(row.slot), row: *row };
        rows.iter().flat_map(|(market, rows)| rows.iter().map(move |row| entry(*market, row))).collect::<Vec<_>>()
    };
    open.iter().flat_map(of_hour).collect()
}

/// Adds rows of an hour, `slot_secs` apart, to the result.
fn extend(found: &mut StoredPrices, rows: &[Row], hour: u32, slot_secs: u64) {
    let start = u64::from(hour) * u64::from(HOUR_SECS);
    let bucket = |row: &Row| Bucket { start: start + u64::from(row.slot) * slot_secs, candle: row.candle };
    found.buckets.extend(rows.iter().map(bucket));
}

#[cfg(test)]
mod tests;
