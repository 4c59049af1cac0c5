//! What is known of the ended rows as a whole: up to which LSN they are there, how many rows each keyspace has, and the
//! sum of their hashes, by the day on which their orders and positions ended. It is one row of the table `about`, and the
//! last that a move writes.
//!
//! A move first notes what it will add to each keyspace, with the first row of that; then it adds. An ingestion is whole
//! or absent after a crash, so a keyspace that has the first row has the whole addition. So the sums are
//! right whenever a process ends, and no row counts twice.
//!
//! Rows of days before a cut do not count: they are there, or were removed. So an addition is known by a row of its last
//! day. Hashes of signed orders are never removed.
//!
//! ```text
//! about       `ended`     version │ log u128 │ LSN, checksum of its record │ first day kept, day up to which rows were
//!                         removed, rows that were not │ hashes before the cut: rows, sum u64
//!                         │ days: day, of each keyspace: rows, sum u64 │ a row of the newest addition to each
//!                         │ move that has begun: LSN, checksum, of each keyspace: days of rows added and of rows
//!                         replaced, a row │ interrupted moves: LSN, checksum
//! ```

use super::course::Upto;
use crate::row::{read_leb, write_leb};
use crate::store::{Space, Spaces, StoreError};
use engine::time::UtcDay;
use std::collections::BTreeMap;

/// Version of a [`Manifest`].
const VERSION: u8 = 1;
/// LSNs of interrupted moves that are remembered.
const INTERRUPTED_MAX: usize = 1_024;
/// Most bytes of a key.
const KEY_BYTES_MAX: usize = 64;
const SPACES: usize = Space::ALL.len();

/// Rows and the sum of their hashes modulo 2⁶⁴.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    pub rows: u64,
    pub sum: u64,
}

/// A row, to tell whether an ingestion is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub key: Vec<u8>,
    /// [`row_hash`].
    pub hash: u64,
    /// When its order or position ended.
    pub day: UtcDay,
}

/// Rows by the day on which their orders or positions ended.
pub type Days = BTreeMap<UtcDay, Total>;

/// What a move adds to one keyspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Addition {
    pub added: Days,
    /// Rows in whose place others are.
    pub replaced: Days,
    /// One of the last day. `None`: nothing is written there.
    pub probe: Option<Probe>,
}

/// A move that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moving {
    pub upto: Upto,
    /// As in [`Space::ALL`].
    pub additions: [Addition; SPACES],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Manifest {
    /// The log that the rows belong to.
    pub log: u128,
    /// Rows that ended up to this LSN and were to move are there.
    pub upto: u64,
    /// The checksum of its record in the log; `None`: not known.
    pub crc: Option<u32>,
    /// The first day that is kept: other rows may be there or not, and do not count. Day 0: all are kept.
    pub kept_from: UtcDay,
    /// Rows that ended before this day were removed.
    pub swept_to: UtcDay,
    /// Rows that ended between these two days, about.
    pub unswept: u64,
    /// Hashes of signed orders that ended before the first day.
    pub hashes: Total,
    /// The others, as in [`Space::ALL`].
    pub days: BTreeMap<UtcDay, [Total; SPACES]>,
    /// A row of the newest addition to each keyspace.
    pub newest: [Option<Probe>; SPACES],
    pub moving: Option<Moving>,
    /// Moves that did not end, by their LSN, with the checksum of its record: some keyspaces have their rows.
    pub interrupted: BTreeMap<u64, Option<u32>>,
}

/// The hash of a row in a sum. It is the same in every build.
pub fn row_hash(key: &[u8], value: &[u8]) -> u64 {
    let checks = u64::from(crc32c::crc32c(key)) << 32 | u64::from(crc32c::crc32c(value));
    // Mixed (SplitMix64): sums of checksums alone would be equal if rows had swapped their values.
    let mixed = (checks ^ checks >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Total {
    /// Adds a row.
    pub fn add(&mut self, hash: u64) {
        self.rows += 1;
        self.sum = self.sum.wrapping_add(hash);
    }

    /// `None` if there are more rows than numbers.
    fn join(&mut self, other: Total) -> Option<()> {
        self.rows = self.rows.checked_add(other.rows)?;
        self.sum = self.sum.wrapping_add(other.sum);
        Some(())
    }

    /// `None` if there are fewer rows.
    fn leave(&mut self, other: Total) -> Option<()> {
        self.rows = self.rows.checked_sub(other.rows)?;
        self.sum = self.sum.wrapping_sub(other.sum);
        Some(())
    }
}

impl Addition {
    /// Adds a row, in the place of another if there is one.
    pub fn add(&mut self, key: &[u8], hash: u64, day: UtcDay, replaced: Option<(u64, UtcDay)>) {
        self.added.entry(day).or_default().add(hash);
        if let Some((hash, day)) = replaced {
            self.replaced.entry(day).or_default().add(hash);
        }
        if self.probe.as_ref().is_none_or(|probe| probe.day < day) {
            self.probe = Some(Probe { key: key.to_vec(), hash, day });
        }
    }
}

impl Manifest {
    /// That of a store without rows.
    pub fn new(log: u128) -> Manifest {
        Manifest {
            log,
            upto: 0,
            crc: None,
            kept_from: UtcDay(0),
            swept_to: UtcDay(0),
            unswept: 0,
            hashes: Total::default(),
            days: BTreeMap::new(),
            newest: Default::default(),
            moving: None,
            interrupted: BTreeMap::new(),
        }
    }

    /// Reads it from a store, and checks that it fits the tables. `None` without ended rows.
    ///
    /// # Errors
    /// As [`Manifest::known`] and [`Manifest::fits`].
    pub fn of(spaces: &Spaces) -> Result<Option<Manifest>, StoreError> {
        let known = Manifest::known(spaces)?;
        known.iter().try_for_each(|manifest| manifest.fits(spaces))?;
        Ok(known)
    }

    /// Reads it from a store. A move that was interrupted is counted as far as it came. `None` without ended rows.
    ///
    /// # Errors
    /// [`StoreError`]: a later version, or damage.
    pub fn known(spaces: &Spaces) -> Result<Option<Manifest>, StoreError> {
        let Some(bytes) = spaces.about()? else {
            return match Space::ALL.iter().find(|space| spaces.rows_at_most(**space) > 0) {
                None => Ok(None),
                Some(space) => Err(StoreError::Damaged(format!("{} has rows, and nothing says which", space.name()))),
            };
        };
        let mut manifest = Manifest::read(&bytes)?;
        manifest.settle(spaces)?;
        Ok(Some(manifest))
    }

    /// Compares it with the tables, as far as that does not need to read them: no keyspace has fewer rows, and a row of the
    /// newest addition to each is there.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if they differ.
    pub fn fits(&self, spaces: &Spaces) -> Result<(), StoreError> {
        for (space, probe) in Space::ALL.into_iter().zip(&self.newest) {
            let (most, rows) = (spaces.rows_at_most(space), self.total(space).rows);
            if most < rows {
                let why = format!("{} has at most {most} of {rows} rows", space.name());
                return Err(StoreError::Damaged(why));
            }
            let probe = probe.as_ref().filter(|probe| self.keeps(space, probe.day));
            let is_there = probe.map_or(Ok(true), |probe| probe.is_in(spaces, space))?;
            if !is_there {
                return Err(StoreError::Damaged(format!("{} lacks its newest rows", space.name())));
            }
        }
        Ok(())
    }

    /// Ends a move that was interrupted: what it added counts.
    fn settle(&mut self, spaces: &Spaces) -> Result<(), StoreError> {
        let Some(moving) = self.moving.take() else { return Ok(()) };
        for (space, addition) in Space::ALL.into_iter().zip(moving.additions) {
            // Of an addition that was cut some rows may be there.
            if let Some(probe) = &addition.probe
                && (!self.keeps(space, probe.day) || probe.is_in(spaces, space)?)
            {
                self.add(space, addition)?;
                self.interrupted.insert(moving.upto.lsn, moving.upto.crc);
            }
        }
        while self.interrupted.len() > INTERRUPTED_MAX {
            self.interrupted.pop_first();
        }
        Ok(())
    }

    /// Whether rows of that day stay.
    pub fn keeps(&self, space: Space, day: UtcDay) -> bool {
        day >= self.kept_from || !space.is_cut()
    }

    /// The rows of a keyspace that count.
    pub fn total(&self, space: Space) -> Total {
        let mut total = if space.is_cut() { Total::default() } else { self.hashes };
        for of in self.days.values() {
            // Counts of a sum that fitted when they were added.
            total.rows = total.rows.saturating_add(of[space as usize].rows);
            total.sum = total.sum.wrapping_add(of[space as usize].sum);
        }
        total
    }

    /// From now on rows that ended before a day do not count; they may be removed when this is durable.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if there are too many rows to count.
    pub fn cut(&mut self, day: UtcDay) -> Result<(), StoreError> {
        let kept = self.days.split_off(&day);
        for of in std::mem::replace(&mut self.days, kept).into_values() {
            for space in Space::ALL {
                let total = of[space as usize];
                match space.is_cut() {
                    true => self.unswept = self.unswept.saturating_add(total.rows),
                    false => self.hashes.join(total).ok_or_else(too_many)?,
                }
            }
        }
        self.kept_from = self.kept_from.max(day);
        Ok(())
    }

    /// Counts what was added to a keyspace.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if there are too many rows to count, or fewer than were replaced.
    pub fn add(&mut self, space: Space, addition: Addition) -> Result<(), StoreError> {
        for (day, total) in addition.added {
            match self.of_day(space, day) {
                Some(of) => of.join(total).ok_or_else(too_many)?,
                // It left memory after its day was cut.
                None => self.unswept = self.unswept.saturating_add(total.rows),
            }
        }
        for (day, total) in addition.replaced {
            match self.of_day(space, day) {
                Some(of) => of.leave(total).ok_or_else(too_many)?,
                None => self.unswept = self.unswept.saturating_sub(total.rows),
            }
        }
        self.days.retain(|_, of| *of != [Total::default(); SPACES]);
        if addition.probe.is_some() {
            self.newest[space as usize] = addition.probe;
        }
        Ok(())
    }

    /// Counts a row of a store that is being filled.
    pub fn note(&mut self, space: Space, key: &[u8], hash: u64, day: UtcDay) {
        self.of_day(space, day).into_iter().for_each(|of| of.add(hash));
        let newest = &mut self.newest[space as usize];
        if newest.as_ref().is_none_or(|newest| newest.day < day) {
            *newest = Some(Probe { key: key.to_vec(), hash, day });
        }
    }

    /// What counts of a day; `None`: nothing does.
    fn of_day(&mut self, space: Space, day: UtcDay) -> Option<&mut Total> {
        match (day >= self.kept_from, space.is_cut()) {
            (true, _) => Some(&mut self.days.entry(day).or_default()[space as usize]),
            (false, false) => Some(&mut self.hashes),
            (false, true) => None,
        }
    }

    /// The state after the move that has begun.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] if there are too many rows to count.
    pub fn end(&mut self) -> Result<(), StoreError> {
        let Some(moving) = self.moving.take() else { return Ok(()) };
        (self.upto, self.crc) = (moving.upto.lsn, moving.upto.crc);
        Space::ALL.into_iter().zip(moving.additions).try_for_each(|(space, addition)| self.add(space, addition))
    }

    /// The LSN before which no move may come.
    pub fn newest_lsn(&self) -> u64 {
        self.upto.max(self.interrupted.last_key_value().map_or(0, |(lsn, _)| *lsn))
    }

    pub fn write(&self) -> Vec<u8> {
        let Manifest { log, upto, crc, kept_from, swept_to, unswept, hashes, days, newest, moving, interrupted } = self;
        let mut out = vec![VERSION];
        out.extend_from_slice(&log.to_le_bytes());
        put_upto(Upto { lsn: *upto, crc: *crc }, &mut out);
        for number in [kept_from.0.into(), swept_to.0.into(), *unswept] {
            write_leb(number, &mut out);
        }
        put_total(hashes, &mut out);
        write_leb(days.len() as u64, &mut out);
        for (day, totals) in days {
            write_leb(day.0.into(), &mut out);
            totals.iter().for_each(|total| put_total(total, &mut out));
        }
        newest.iter().for_each(|probe| put_probe(probe.as_ref(), &mut out));
        out.push(moving.is_some().into());
        if let Some(Moving { upto, additions }) = moving {
            put_upto(*upto, &mut out);
            for Addition { added, replaced, probe } in additions {
                put_days(added, &mut out);
                put_days(replaced, &mut out);
                put_probe(probe.as_ref(), &mut out);
            }
        }
        write_leb(interrupted.len() as u64, &mut out);
        interrupted.iter().for_each(|(lsn, crc)| put_upto(Upto { lsn: *lsn, crc: *crc }, &mut out));
        out
    }

    /// # Errors
    /// [`StoreError::Later`] for a later version, [`StoreError::Damaged`] for other bytes that [`Manifest::write`] does not
    /// write.
    pub fn read(bytes: &[u8]) -> Result<Manifest, StoreError> {
        match bytes.first() {
            Some(&version) if version > VERSION => {
                return Err(StoreError::Later(format!("version {version} of its ended rows")));
            }
            _ => {}
        }
        let manifest = bytes.split_first().and_then(|(_, mut rest)| {
            let manifest = take(&mut rest)?;
            rest.is_empty().then_some(manifest)
        });
        let manifest = manifest.filter(|manifest| manifest.write() == bytes);
        manifest.ok_or_else(|| StoreError::Damaged("what is known of its ended rows cannot be read".to_owned()))
    }
}

impl Probe {
    /// Whether the row is there as it was written.
    fn is_in(&self, spaces: &Spaces, space: Space) -> Result<bool, StoreError> {
        let found = spaces.get(space, &self.key)?;
        Ok(found.is_some_and(|value| row_hash(&self.key, &value) == self.hash))
    }
}

/// The checksum is 0 if it is not known, else one more than it is.
fn put_upto(Upto { lsn, crc }: Upto, out: &mut Vec<u8>) {
    write_leb(lsn, out);
    write_leb(crc.map_or(0, |crc| u64::from(crc) + 1), out);
}

fn put_total(total: &Total, out: &mut Vec<u8>) {
    write_leb(total.rows, out);
    out.extend_from_slice(&total.sum.to_le_bytes());
}

/// Zero without one, which no key has as its length.
fn put_probe(probe: Option<&Probe>, out: &mut Vec<u8>) {
    let Some(Probe { key, hash, day }) = probe else { return out.push(0) };
    write_leb(key.len() as u64, out);
    out.extend_from_slice(key);
    out.extend_from_slice(&hash.to_le_bytes());
    write_leb(day.0.into(), out);
}

fn put_days(days: &Days, out: &mut Vec<u8>) {
    write_leb(days.len() as u64, out);
    for (day, total) in days {
        write_leb(day.0.into(), out);
        put_total(total, out);
    }
}

fn take(rest: &mut &[u8]) -> Option<Manifest> {
    let log = u128::from_le_bytes(*split(rest, 16)?.first_chunk()?);
    let Upto { lsn, crc } = take_upto(rest)?;
    let mut manifest = Manifest { upto: lsn, crc, ..Manifest::new(log) };
    (manifest.kept_from, manifest.swept_to) = (take_day(rest)?, take_day(rest)?);
    (manifest.unswept, manifest.hashes) = (read_leb(rest)?, take_total(rest)?);
    for _ in 0..read_leb(rest)? {
        let (day, mut totals) = (take_day(rest)?, [Total::default(); SPACES]);
        for total in &mut totals {
            *total = take_total(rest)?;
        }
        manifest.days.insert(day, totals);
    }
    for probe in &mut manifest.newest {
        *probe = take_probe(rest)?;
    }
    if split(rest, 1)? == [1] {
        let mut moving = Moving { upto: take_upto(rest)?, additions: Default::default() };
        for addition in &mut moving.additions {
            *addition = Addition { added: take_days(rest)?, replaced: take_days(rest)?, probe: take_probe(rest)? };
        }
        manifest.moving = Some(moving);
    }
    let count = read_leb(rest)?;
    for _ in 0..count {
        let Upto { lsn, crc } = take_upto(rest)?;
        manifest.interrupted.insert(lsn, crc);
    }
    Some(manifest)
}

fn take_upto(rest: &mut &[u8]) -> Option<Upto> {
    let lsn = read_leb(rest)?;
    let crc = match read_leb(rest)? {
        0 => None,
        more => Some(u32::try_from(more - 1).ok()?),
    };
    Some(Upto { lsn, crc })
}

fn take_total(rest: &mut &[u8]) -> Option<Total> {
    Some(Total { rows: read_leb(rest)?, sum: take_u64(rest)? })
}

fn take_probe(rest: &mut &[u8]) -> Option<Option<Probe>> {
    let length = usize::try_from(read_leb(rest)?).ok().filter(|length| *length <= KEY_BYTES_MAX)?;
    if length == 0 {
        return Some(None);
    }
    let key = split(rest, length)?.to_vec();
    Some(Some(Probe { key, hash: take_u64(rest)?, day: take_day(rest)? }))
}

fn take_days(rest: &mut &[u8]) -> Option<Days> {
    let mut days = Days::new();
    for _ in 0..read_leb(rest)? {
        days.insert(take_day(rest)?, take_total(rest)?);
    }
    Some(days)
}

fn take_day(rest: &mut &[u8]) -> Option<UtcDay> {
    Some(UtcDay(u32::try_from(read_leb(rest)?).ok()?))
}

fn too_many() -> StoreError {
    StoreError::Damaged("its rows cannot be counted".to_owned())
}

fn take_u64(rest: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(*split(rest, 8)?.first_chunk()?))
}

fn split<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

#[cfg(test)]
mod tests;
