//! The prices: the open hours in memory, and all rows in the tables of the store.
//!
//! An hour is open until two later ones have begun. The rows that change in it are in memory, and each change is
//! written to the table by minute. Then the hour is sealed: its minutes are folded into a row by hour, everything is
//! made durable, and the memory is free. Minutes are kept for seven days, hours for two years; readers pass over older
//! rows from the moment at which they are too old, and a merge of tables removes them.
//!
//! Memory is bounded by the open hours, the cache and the memory tables of the store. Nothing here may stop a server: a
//! store that cannot be opened is left as it is, and the prices are then kept in memory alone; rows that cannot be
//! written stay in memory while there is room for them, and are then dropped. What was written can be read meanwhile.

use super::earlier;
use super::ended::EndedStore;
use super::row::{
    About, BATCH_ROWS, Key, MARKETS_MAX, Row, UNSEALED_MAX, fold_hour, key, minutes_of, read_candle, slot, write_candle,
};
use super::store::{Batch, Store, StoreError, Table, Value};
use ahash::AHashSet;
use engine::amount::Qty;
use engine::book::candles::{Bucket, Candle, Grid, Mid};
use engine::id::Outcome;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Hours that are open at a time.
const OPEN_HOURS: usize = 2;
/// Most open hours in memory if none can be sealed.
const OPEN_HOURS_MAX: usize = 4;
/// Memory for what is read while prices are set back.
const SET_BACK_CACHE_BYTES: u64 = 8 << 20;
/// A store whose writing has failed is opened again after this long.
const OPEN_AGAIN_AFTER: Duration = Duration::from_secs(10);

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
    /// Some of the data could not be read, or there is no store.
    pub broken: bool,
}

/// Rows by market, those of each sorted by minute.
type Rows = BTreeMap<u32, Vec<Row>>;

/// The prices.
pub struct Prices {
    /// `None`: only the open hours are kept, in memory.
    tables: Option<Tables>,
    /// What is known of the prices, those in memory included.
    about: About,
    /// Rows of open hours that have changed since they are open, and the other rows of their market and hour.
    open: BTreeMap<u32, Rows>,
    /// Hours with rows in the store that are not in memory.
    partial: BTreeSet<u32>,
    /// Rows that the store lacks or has in an older state: market, minute.
    unwritten: AHashSet<(u32, u32)>,
    /// The last price of each market.
    last: BTreeMap<u32, Mid>,
    /// Shares filled, by outcome, in markets without a price: for the next row of each.
    waiting: BTreeMap<u32, [Qty; 2]>,
    /// The last attempt to write failed; logged once.
    failing: bool,
}

/// The tables of a directory.
struct Tables {
    folder: PathBuf,
    cache_bytes: u64,
    /// The ended rows, which are in the same database.
    ended: EndedStore,
    /// `None`: it could not be opened again.
    store: Option<Store>,
    /// When writing failed. The store is then only read, until it is opened again.
    failed: Option<Instant>,
    /// A read failed; logged once.
    unreadable: Cell<bool>,
}

impl Tables {
    /// Notes what cannot be read.
    fn note<T>(&self, read: Result<T, StoreError>) -> Option<T> {
        let noted = read.inspect_err(|error| {
            if !self.unreadable.replace(true) {
                tracing::warn!(%error, "a part of the price history cannot be read; charts lack it");
            }
        });
        noted.ok()
    }

    /// Rows of a market with a time in the range. `None` if some of them cannot be read.
    fn read(&self, table: Table, market: u32, times: RangeInclusive<u32>) -> Option<Vec<(u32, Candle)>> {
        if times.is_empty() {
            return Some(Vec::new());
        }
        let store = self.store.as_ref()?;
        let rows = store.scan(table, key(market, *times.start())..=key(market, *times.end()));
        let rows = rows.map(|row| row.and_then(|(_, time, value)| Ok((time, candle(&value)?))));
        self.note(rows.collect())
    }

    /// The rows of a market and hour. `None` if some of them cannot be read.
    fn minutes(&self, market: u32, hour: u32) -> Option<Vec<Row>> {
        let rows = self.read(Table::Minutes, market, minutes_of(hour))?;
        Some(rows.into_iter().map(|(minute, candle)| Row { slot: (minute % 60) as u16, candle }).collect())
    }

    /// The store, opened again if writing failed some time ago.
    fn writable(&mut self) -> Result<&mut Store, StoreError> {
        if let Some(failed) = self.failed {
            if failed.elapsed() < OPEN_AGAIN_AFTER {
                return Err(StoreError::Busy);
            }
            self.open_again()?;
        }
        self.store.as_mut().ok_or(StoreError::Busy)
    }

    /// Opens the store again.
    fn open_again(&mut self) -> Result<(), StoreError> {
        // Also if the opening fails.
        self.failed = Some(Instant::now());
        // Closed first: nothing opens it twice. Ended rows that are being written keep it open.
        if !self.ended.withdraw() {
            return Err(StoreError::Busy);
        }
        self.store = None;
        let store = Store::open_existing(&self.folder, self.cache_bytes)?;
        self.ended.publish(store.spaces());
        self.store = Some(store);
        self.failed = None;
        Ok(())
    }

    /// Makes everything durable that was written to the store.
    fn synced(&mut self) -> Result<(), StoreError> {
        let ended = self.ended.clone();
        self.attempt(|store| sync(store, &ended))
    }

    /// Writes to the store, which is only read for some time if that fails.
    fn attempt(&mut self, write: impl FnOnce(&mut Store) -> Result<(), StoreError>) -> Result<(), StoreError> {
        // Rows would be encoded for nothing.
        let store = self.writable()?;
        let written = if store.is_busy() { Err(StoreError::Busy) } else { write(store) };
        if written.as_ref().is_err_and(|error| !matches!(error, StoreError::Busy)) {
            self.failed = Some(Instant::now());
        }
        if written.as_ref().is_err_and(StoreError::is_full) {
            self.ended.note_full();
        }
        written
    }
}

/// # Errors
/// [`StoreError::Damaged`] for bytes that no candle has.
pub fn candle(value: &[u8]) -> Result<Candle, StoreError> {
    read_candle(value).ok_or_else(|| StoreError::Damaged("a price that cannot be read".to_owned()))
}

impl Prices {
    /// No prices, which are kept only in memory.
    pub fn in_memory() -> Prices {
        Prices {
            tables: None,
            about: About::default(),
            open: BTreeMap::new(),
            partial: BTreeSet::new(),
            unwritten: AHashSet::new(),
            last: BTreeMap::new(),
            waiting: BTreeMap::new(),
            failing: false,
        }
    }

    /// The prices of a store in that folder.
    pub fn of(store: Store, folder: PathBuf, cache_bytes: u64, ended: EndedStore) -> Prices {
        let about = store.known.clone();
        let partial = about.unsealed.clone();
        let (store, unreadable) = (Some(store), Cell::default());
        let tables = Tables { folder, cache_bytes, ended, store, failed: None, unreadable };
        Prices { tables: Some(tables), about, partial, ..Prices::in_memory() }
    }

    /// Adds minutes from the feed: each continues the row of its minute.
    pub fn add(&mut self, minutes: &[MinuteCandle]) {
        for added in minutes.iter().filter(|added| added.market < MARKETS_MAX) {
            self.last.insert(added.market, added.candle.close);
            let mut candle = added.candle;
            let waited = self.waiting.remove(&added.market).unwrap_or_default();
            candle.volume.iter_mut().zip(waited).for_each(|(volume, waited)| add(volume, waited));
            let slot = (added.minute % 60) as u16;
            let rows = self.rows(added.market, added.minute);
            match rows.binary_search_by_key(&slot, |row| row.slot) {
                Ok(at) => rows[at].candle.join(&candle),
                Err(at) => rows.insert(at, Row { slot, candle }),
            }
            self.unwritten.insert((added.market, added.minute));
        }
    }

    /// Adds shares filled on this server. A market without a price has no row for them: they wait in memory for its
    /// next row.
    pub fn fill(&mut self, market: u32, outcome: Outcome, shares: Qty, minute: u32) {
        if market >= MARKETS_MAX {
            return;
        }
        let Some(last) = self.last_of(market) else {
            return add(&mut self.waiting.entry(market).or_default()[outcome as usize], shares);
        };
        let rows = self.rows(market, minute);
        let candle = slot(rows, (minute % 60) as u16, Candle::at(last));
        add(&mut candle.volume[outcome as usize], shares);
        self.unwritten.insert((market, minute));
    }

    /// The last price of a market; after a start that of its newest row.
    fn last_of(&mut self, market: u32) -> Option<Mid> {
        if let Some(last) = self.last.get(&market) {
            return Some(*last);
        }
        let tables = self.tables.as_ref()?;
        let from = self.about.minutes_from.saturating_mul(60);
        let mut rows = tables.store.as_ref()?.scan(Table::Minutes, key(market, from)..=key(market, u32::MAX));
        let newest = rows.next_back()?.and_then(|(.., value)| candle(&value));
        let newest = tables.note(newest)?;
        self.last.insert(market, newest.close);
        Some(newest.close)
    }

    /// The rows of a market in the hour of that minute, which is open from now on.
    fn rows(&mut self, market: u32, minute: u32) -> &mut Vec<Row> {
        let hour = minute / 60;
        self.about.unsealed.insert(hour);
        // At most the newest minute of the store: there can be no rows of later hours.
        let may_be_stored = self.about.newest.is_some_and(|newest| hour <= newest / 60);
        self.about.newest = self.about.newest.max(Some(minute));
        let (tables, partial) = (self.tables.as_ref().filter(|_| may_be_stored), &mut self.partial);
        self.open.entry(hour).or_default().entry(market).or_insert_with(|| {
            let Some(tables) = tables else { return Vec::new() };
            tables.minutes(market, hour).unwrap_or_else(|| {
                partial.insert(hour);
                Vec::new()
            })
        })
    }

    /// The newest minute with any data; all minutes before it count as known.
    pub fn newest(&self) -> Option<u32> {
        self.about.newest
    }

    /// Number of rows that the store lacks.
    pub fn unwritten(&self) -> usize {
        self.unwritten.len()
    }

    /// Whether there are hours that are over and not sealed.
    pub fn has_ended_hours(&self) -> bool {
        self.about.unsealed.len() > OPEN_HOURS
    }

    /// Seals hours that are over, and writes the open rows that have changed. Rows that cannot be written are tried again
    /// the next time.
    pub fn write(&mut self) {
        self.settle();
        let Some(tables) = &mut self.tables else { return self.unwritten.clear() };
        if self.unwritten.is_empty() {
            return;
        }
        let written = write_rows(tables, &self.open, &self.unwritten, &self.about);
        if written.is_ok() {
            self.unwritten.clear();
        }
        self.written(written);
    }

    /// Opens the store again if a failed merge of ended rows has left files, which an opening removes. Returns whether that
    /// is still to be done.
    pub fn open_again(&mut self) -> bool {
        let Some(tables) = self.tables.as_mut().filter(|tables| tables.ended.is_wanted_again()) else { return false };
        let opened = if tables.failed.is_none() { tables.open_again() } else { tables.writable().map(drop) };
        let is_left = opened.is_err();
        if !matches!(opened, Err(StoreError::Busy)) {
            self.written(opened);
        }
        is_left
    }

    /// Writes the remaining rows, durably.
    pub fn end(&mut self) {
        self.write();
        if let Some(tables) = &mut self.tables {
            let synced = tables.synced();
            self.written(synced);
        }
    }

    /// Logs that writing fails, and that it works again.
    fn written(&mut self, written: Result<(), StoreError>) {
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
        while self.has_ended_hours() {
            let oldest = *self.about.unsealed.first().expect("there are several");
            let sealed = if self.tables.is_some() { self.seal(oldest) } else { Ok(()) };
            let has_failed = sealed.is_err();
            self.written(sealed);
            if has_failed {
                return self.bound();
            }
            self.about.unsealed.remove(&oldest);
            self.partial.remove(&oldest);
            self.forget(oldest);
        }
    }

    /// Drops hours from memory that are too many, after those before them could not be sealed.
    fn bound(&mut self) {
        while self.open.len() > OPEN_HOURS_MAX
            && let Some(hour) = self.open.keys().next().copied()
        {
            // Some of its minutes may have been written.
            self.partial.insert(hour);
            self.forget(hour);
        }
        while self.about.unsealed.len() > UNSEALED_MAX / 2 {
            self.about.unsealed.pop_first();
        }
    }

    /// Removes an hour from memory.
    fn forget(&mut self, hour: u32) {
        self.open.remove(&hour);
        self.unwritten.retain(|(_, minute)| minute / 60 != hour);
    }

    /// Writes the rows by hour of an hour that is over, and makes everything durable.
    fn seal(&mut self, hour: u32) -> Result<(), StoreError> {
        let Some(tables) = &mut self.tables else { return Ok(()) };
        write_rows(tables, &self.open, &self.unwritten, &self.about)?;
        self.unwritten.clear();
        let mut rows = self.open.get(&hour).cloned().unwrap_or_default();
        if self.partial.contains(&hour) {
            let mut damages = Vec::new();
            rows.extend(stored_rows(tables.writable()?, hour, |damage| damages.push(damage))?);
            damages.into_iter().for_each(|damage| _ = tables.note::<()>(Err(damage)));
        }
        let newest = self.about.newest.unwrap_or(0) / 60;
        let mut about = self.about.clone();
        about.unsealed.remove(&hour);
        about.keep_from(newest);
        let folded = rows.into_iter().filter_map(|(market, rows)| Some((key(market, hour), fold_hour(&rows)?)));
        let ended = tables.ended.clone();
        tables.attempt(|store| {
            put_all(store, Table::Hours, folded, &self.about)?;
            store.write(Batch::default(), about.clone())?;
            sync(store, &ended)?;
            store.settle()
        })?;
        (self.about.minutes_from, self.about.hours_from) = (about.minutes_from, about.hours_from);
        Ok(())
    }

    /// The data of a market with a start within `secs` (Unix). The reader folds it into stretches of `step` seconds, so
    /// hours are used where whole hours are enough.
    pub fn find(&self, market: u32, secs: RangeInclusive<u64>, step: u64) -> StoredPrices {
        let is_stored = self.tables.as_ref().is_some_and(|tables| tables.store.is_some());
        let mut found = StoredPrices { buckets: Vec::new(), broken: !is_stored };
        // The market's clock has not reached the start: there is no data yet, and the range is empty.
        if secs.is_empty() {
            return found;
        }
        let time_of = |secs: u64, unit: u64| u32::try_from(secs / unit).unwrap_or(u32::MAX);
        let (first_minute, last_minute) = (time_of(*secs.start(), 60), time_of(*secs.end(), 60));
        let (first_hour, last_hour) = (first_minute / 60, last_minute / 60);
        let About { newest, minutes_from, hours_from, unsealed } = &self.about;
        // The day that goes on is read by minute, so that the first hour of a query may be a part of one.
        let today = newest.unwrap_or(0) / 60 / 24 * 24;
        let whole_hours = step.is_multiple_of(Grid::HOUR.secs());
        let minutes_from = if whole_hours { today.max(*minutes_from) } else { *minutes_from };
        let is_by_minute = |hour: u32| hour >= minutes_from || unsealed.contains(&hour);
        let mut rows: BTreeMap<u64, Candle> = BTreeMap::new();
        if let Some(tables) = self.tables.as_ref().filter(|_| is_stored) {
            let from = unsealed.first().map_or(minutes_from, |hour| minutes_from.min(*hour));
            let minutes = first_minute.max(from.saturating_mul(60))..=last_minute;
            let hours = first_hour.max(*hours_from)..=last_hour.min(minutes_from.saturating_sub(1));
            for (table, times, unit) in [(Table::Minutes, minutes, 60), (Table::Hours, hours, Grid::HOUR.secs())] {
                let stored = tables.read(table, market, times);
                found.broken |= stored.is_none();
                let hour_of = |time: u32| if table == Table::Minutes { time / 60 } else { time };
                let stored = stored.into_iter().flatten();
                let stored = stored.filter(|(time, _)| is_by_minute(hour_of(*time)) == (table == Table::Minutes));
                rows.extend(stored.map(|(time, candle)| (u64::from(time) * unit, candle)));
            }
        }
        for (hour, open) in self.open.range(first_hour..=last_hour) {
            let start = u64::from(*hour) * Grid::HOUR.secs();
            let open = open.get(&market).into_iter().flatten();
            rows.extend(open.map(|row| (start + u64::from(row.slot) * 60, row.candle)));
        }
        let rows = rows.into_iter().filter(|(start, _)| secs.contains(start));
        found.buckets = rows.map(|(start, candle)| Bucket { start, candle }).collect();
        found
    }
}

/// Makes everything durable; after a failure no ended row moves any more.
fn sync(store: &Store, ended: &EndedStore) -> Result<(), StoreError> {
    store.sync().inspect_err(|_| ended.note_failed_sync())
}

/// Writes rows of open hours, and what is known with them.
fn write_rows(
    tables: &mut Tables,
    open: &BTreeMap<u32, Rows>,
    unwritten: &AHashSet<(u32, u32)>,
    about: &About,
) -> Result<(), StoreError> {
    let rows = unwritten.iter().filter_map(|(market, minute)| {
        let (rows, slot) = (open.get(&(minute / 60))?.get(market)?, (minute % 60) as u16);
        Some((key(*market, *minute), rows[rows.binary_search_by_key(&slot, |row| row.slot).ok()?].candle))
    });
    tables.attempt(|store| put_all(store, Table::Minutes, rows, about))
}

/// Writes rows in batches.
///
/// # Errors
/// As [`Store::write`]; the first batches may have been written.
pub fn put_all(
    store: &mut Store,
    table: Table,
    rows: impl IntoIterator<Item = (Key, Candle)>,
    about: &About,
) -> Result<(), StoreError> {
    let mut batch = Batch::default();
    for (key, candle) in rows {
        batch.put(table, key, write_candle(&candle));
        if batch.len() >= BATCH_ROWS {
            store.write(std::mem::take(&mut batch), about.clone())?;
        }
    }
    if batch.len() > 0 { store.write(batch, about.clone()) } else { Ok(()) }
}

/// The rows of all markets in an hour, from the store. Markets with damaged rows are left out, and the damage is noted.
///
/// # Errors
/// As [`Store::scan`], for errors of other kinds.
fn stored_rows(store: &Store, hour: u32, mut damage: impl FnMut(StoreError)) -> Result<Rows, StoreError> {
    let (mut found, mut market) = (Rows::new(), 0);
    let minutes = minutes_of(hour);
    loop {
        // The first row of this market in the hour or after it, else the first row of a later market.
        let next = store.scan(Table::Minutes, key(market, *minutes.start())..=[0xff; 8]).next().transpose();
        let (of, minute, _) = match next {
            Ok(Some(row)) => row,
            Ok(None) => return Ok(found),
            Err(error @ StoreError::Damaged(_)) => {
                damage(error);
                return Ok(found);
            }
            Err(error) => return Err(error),
        };
        if minute < *minutes.start() {
            market = of;
            continue;
        }
        if minutes.contains(&minute) {
            let rows = store.scan(Table::Minutes, key(of, *minutes.start())..=key(of, *minutes.end()));
            let row = |(_, minute, value): (u32, u32, Value)| row_of(minute, &value);
            match rows.map(|found| found.and_then(row)).collect() {
                Ok(rows) => _ = found.insert(of, rows),
                Err(error @ StoreError::Damaged(_)) => damage(error),
                Err(error) => return Err(error),
            }
        }
        let Some(next) = of.checked_add(1) else { return Ok(found) };
        market = next;
    }
}

fn row_of(minute: u32, value: &[u8]) -> Result<Row, StoreError> {
    Ok(Row { slot: (minute % 60) as u16, candle: candle(value)? })
}

/// Removes everything later than that second from the prices of a stopped server: it was recorded with a wrong clock.
/// Does nothing if the folder does not exist.
///
/// # Errors
/// [`StoreError`]. A repeated call continues.
pub fn set_back(folder: &Path, secs: u64) -> Result<(), StoreError> {
    if !folder.is_dir() {
        return Ok(());
    }
    let minute = u32::try_from(secs / 60).unwrap_or(u32::MAX);
    let hour = minute / 60;
    let mut store = Store::open(folder, SET_BACK_CACHE_BYTES)?;
    earlier::take_over(folder, &mut store)?;
    // Where the minutes of the hour that goes on are gone, because the clock was far ahead, its row by hour remains.
    let is_refolded = hour >= store.known.minutes_from;
    let mut about = store.known.clone();
    about.newest = about.newest.map(|newest| newest.min(minute));
    about.minutes_from = about.minutes_from.min(hour.saturating_add(1));
    about.hours_from = about.hours_from.min(hour);
    about.unsealed.retain(|of| *of <= hour);
    let hours_after = if is_refolded { Some(hour) } else { hour.checked_add(1) };
    for (table, first) in [(Table::Minutes, minute.checked_add(1)), (Table::Hours, hours_after)] {
        let mut market = Some(0);
        while let Some(of) = market
            && let Some(first) = first
            && let Some(row) = store.scan(table, key(of, 0)..=[0xff; 8]).next()
        {
            let (of, ..) = row?;
            remove_all(&mut store, table, key(of, first)..=key(of, u32::MAX), &about)?;
            market = of.checked_add(1);
        }
    }
    if is_refolded {
        let rows = stored_rows(&store, hour, |_| {})?.into_iter();
        let folded = rows.filter_map(|(market, rows)| Some((key(market, hour), fold_hour(&rows)?)));
        put_all(&mut store, Table::Hours, folded, &about)?;
    }
    store.write(Batch::default(), about)?;
    store.sync()?;
    // What is left of the earlier format is damaged, and its sound rows would come again.
    Ok(earlier::remove_rest(folder)?)
}

fn remove_all(store: &mut Store, table: Table, keys: RangeInclusive<Key>, about: &About) -> Result<(), StoreError> {
    loop {
        let mut batch = Batch::default();
        for row in store.scan(table, keys.clone()).take(BATCH_ROWS) {
            let (market, time, _) = row?;
            batch.remove(table, key(market, time));
        }
        if batch.len() == 0 {
            return Ok(());
        }
        store.wait()?;
        store.write(batch, about.clone())?;
    }
}

fn add(volume: &mut Qty, shares: Qty) {
    volume.0 = volume.0.saturating_add(shares.0);
}

#[cfg(test)]
mod tests;
