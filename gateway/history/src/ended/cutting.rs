//! The oldest days of the history.
//!
//! ```text
//! fact in the log ─► readers pass over the rows ─► manifest without them, durably ─► merges remove them
//! ```
//!
//! A merge that happens by itself may come late: tables of old rows are seldom merged. So when a sixteenth of all rows is
//! before the cut, or room is wanted, each keyspace is merged as a whole, one after the other, on a thread of its own. Each
//! merge needs as much room again as the keyspace, and begins when there is that much. The manifest says when all are over; a
//! start repeats what was interrupted.
//!
//! The engine has one thread, which waits for such a merge with its own merges of that keyspace. Moves go on meanwhile. So the
//! next merge begins when that thread has caught up, and none of them has a low priority.
//!
//! The engine keeps what a failed merge has written until the database is opened again, so that is asked for.

use super::manifest::Manifest;
use super::{EndedStore, EndedWriter, Opened};
use crate::store::{Space, StoreError};
use engine::time::UtcDay;
use std::fmt::Display;
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

/// Rows are removed when they are at least this part of all.
const UNSWEPT_PART: u64 = 16;
/// How long a merge without room waits before it looks again.
const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(if cfg!(test) { 0 } else { 10 });

/// The room that rows take on the disk, by the day on which they ended; about, as it will be when all rows before the cut
/// are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Room {
    /// Bytes of what is never removed.
    stays: u64,
    /// Days that are kept, ascending, with their bytes.
    days: Vec<(UtcDay, u64)>,
}

impl Room {
    /// The first day to keep so that the rows take at most `bytes_max`. `None`: all of them do.
    pub fn first_day_within(&self, bytes_max: u64) -> Option<UtcDay> {
        let mut bytes = self.stays;
        for (day, of) in self.days.iter().rev() {
            bytes = bytes.saturating_add(*of);
            if bytes > bytes_max {
                return Some(UtcDay(day.0.saturating_add(1)));
            }
        }
        None
    }
}

/// Bytes that merges may take of the disk at this moment.
pub type FreeBytes = Box<dyn Fn() -> u64 + Send>;

/// A removal that goes on.
pub(super) struct Sweeping {
    /// Rows before this day are removed.
    day: UtcDay,
    /// How many were known when it began.
    rows: u64,
    /// Keyspaces that are not merged yet, the next one last.
    left: Vec<Space>,
    /// The merge that goes on: whether it was made, or passed over since another merge had files of the keyspace.
    merge: Option<Receiver<Result<bool, StoreError>>>,
    /// There was no room: since when.
    waits: Option<Instant>,
    /// That was logged.
    noted: bool,
}

impl Sweeping {
    /// The next merge cannot begin now, for this reason.
    fn wait(&mut self, why: &dyn Display) {
        self.waits = Some(Instant::now());
        if !std::mem::replace(&mut self.noted, true) {
            tracing::warn!(%why, "what was cut of the history stays on the disk until its tables can be merged");
        }
    }
}

impl EndedStore {
    /// The room that rows take.
    ///
    /// # Errors
    /// [`StoreError::Opening`], [`StoreError::Unusable`].
    pub fn room(&self) -> Result<Room, StoreError> {
        let opened = self.opened()?;
        let Some(manifest) = opened.manifest() else { return Ok(Room::default()) };
        let spaces = &opened.spaces;
        let sizes = Space::ALL.map(|space| (spaces.size(space).bytes, spaces.rows_at_most(space).max(1)));
        let bytes_of = |space: Space, rows: u64| {
            let (bytes, most) = sizes[space as usize];
            (u128::from(bytes) * u128::from(rows) / u128::from(most)) as u64
        };
        let stays = Space::ALL.into_iter().filter(|space| !space.is_cut()).map(|space| sizes[space as usize].0).sum();
        let cut = || Space::ALL.into_iter().filter(|space| space.is_cut());
        let days = manifest.days.iter();
        let days = days.map(|(day, of)| (*day, cut().map(|space| bytes_of(space, of[space as usize].rows)).sum()));
        Ok(Room { stays, days: days.collect() })
    }
}

impl EndedWriter {
    /// From now on rows whose orders and positions ended before `day` are neither read nor compared, and merges remove
    /// them; hashes of signed orders stay. Returns how many orders that concerns. A repeated call, and one with an earlier
    /// day, changes nothing.
    ///
    /// # Errors
    /// [`StoreError::Busy`], [`StoreError::Opening`]: readers pass over the rows, and a later call does the rest.
    /// [`StoreError::Unusable`], [`StoreError::Foreign`]: the same. After any other error this writer answers
    /// [`StoreError::Refused`].
    pub fn cut(&mut self, day: UtcDay) -> Result<u64, StoreError> {
        self.store.hide_before(day);
        let opened = self.writable()?;
        let Some(manifest) = opened.manifest().filter(|manifest| manifest.kept_from < day) else { return Ok(0) };
        if opened.spaces.is_busy() {
            return Err(StoreError::Busy);
        }
        let mut manifest = Manifest::clone(&manifest);
        let before = manifest.total(Space::Orders).rows;
        manifest.cut(day)?;
        let orders = before - manifest.total(Space::Orders).rows;
        self.set(&opened, manifest)?;
        opened.spaces.remove_before(day);
        Ok(orders)
    }

    /// A merge waits until there are as many free bytes as its keyspace has.
    pub fn within(mut self, free: FreeBytes) -> EndedWriter {
        self.free = Some(free);
        self
    }

    /// Removes rows before the cut, if they are many, or any if the files of all rows take more than `bytes_max`. Must be
    /// called now and then. Returns whether a removal has ended since the last call.
    ///
    /// # Errors
    /// [`StoreError`]: the removal failed, and is not tried again.
    pub fn tend(&mut self, bytes_max: Option<u64>) -> Result<bool, StoreError> {
        let Ok(opened) = self.writable() else { return Ok(false) };
        let Some(manifest) = opened.manifest() else { return Ok(false) };
        let is_idle = self.sweeping.is_none() && self.swept.is_none() && !self.gave_up;
        if is_idle && manifest.unswept > 0 && is_due(&opened, &manifest, bytes_max) {
            let left = Space::ALL.into_iter().rev().filter(|space| space.is_cut()).collect();
            let (day, rows) = (manifest.kept_from, manifest.unswept);
            self.sweeping = Some(Sweeping { day, rows, left, merge: None, waits: None, noted: false });
        }
        let mut has_ended = false;
        if self.sweeping.is_some() {
            if !self.merge_next(&opened)? {
                return Ok(false);
            }
            self.swept = self.sweeping.take().map(|sweeping| (sweeping.day, sweeping.rows));
            has_ended = true;
        }
        if let Some((day, rows)) = self.swept
            && !opened.spaces.is_busy()
        {
            let mut manifest = Manifest::clone(&manifest);
            manifest.swept_to = manifest.swept_to.max(day);
            manifest.unswept = manifest.unswept.saturating_sub(rows);
            self.set(&opened, manifest)?;
            self.swept = None;
        }
        Ok(has_ended)
    }

    /// Goes on with a removal: notes a merge that has ended, and begins the next one when there is room for it and the engine
    /// has caught up with what waited for the one before. Returns whether all keyspaces are merged.
    fn merge_next(&mut self, opened: &Opened) -> Result<bool, StoreError> {
        let Some(sweeping) = &mut self.sweeping else { return Ok(true) };
        if let Some(merge) = &sweeping.merge {
            let merged = match merge.try_recv() {
                Err(TryRecvError::Empty) => return Ok(false),
                // It panicked.
                Err(TryRecvError::Disconnected) => Err(StoreError::Damaged("its files do not fit together".to_owned())),
                Ok(merged) => merged,
            };
            sweeping.merge = None;
            match merged {
                Ok(true) => _ = sweeping.left.pop(),
                // Again.
                Ok(false) | Err(StoreError::Opening) => {}
                Err(error) => {
                    // What it has written stays on the disk until then.
                    self.store.open_again();
                    if !error.is_full() {
                        (self.sweeping, self.gave_up) = (None, true);
                        return Err(error);
                    }
                    sweeping.wait(&error);
                }
            }
        }
        let Some(space) = sweeping.left.last().copied() else { return Ok(true) };
        let waits = sweeping.waits.is_some_and(|since| since.elapsed() < LOOK_AGAIN_AFTER);
        if waits || self.store.is_wanted_again() || opened.spaces.is_behind() {
            return Ok(false);
        }
        let (needed, free) = (opened.spaces.size(space).bytes, self.free.as_ref().map_or(u64::MAX, |free| free()));
        if free < needed {
            sweeping.wait(&format_args!("{} needs {needed} bytes, and {free} are free", space.name()));
            return Ok(false);
        }
        sweeping.waits = None;
        let (store, (ended, over)) = (self.store.clone(), sync_channel(1));
        // Of normal priority: the engine's own merges of the keyspace wait for it.
        let merge = move || {
            let merged = store.opened().and_then(|opened| opened.spaces.merge_all_of(space));
            // The writer may have gone.
            let _ = ended.send(merged);
        };
        // The sender is dropped by a panic, and if there is no thread.
        sweeping.merge = Some(over);
        self.store.spawn(Box::new(merge)).unwrap_or_else(|error| tracing::debug!(%error, "no thread for a merge"));
        Ok(false)
    }

    /// Replaces the manifest, durably.
    fn set(&mut self, opened: &Opened, manifest: Manifest) -> Result<(), StoreError> {
        let put = opened.spaces.put_about(&manifest.write());
        let written = put.and_then(|()| self.sync(&opened.spaces, "cutting"));
        written.map_err(|error| self.failed(error))?;
        opened.set_manifest(manifest);
        Ok(())
    }
}

/// Whether rows before the cut are many, or room is wanted.
fn is_due(opened: &Opened, manifest: &Manifest, bytes_max: Option<u64>) -> bool {
    let kept: u64 = Space::ALL.into_iter().map(|space| manifest.total(space).rows).sum();
    let is_part = manifest.unswept.saturating_mul(UNSWEPT_PART) >= kept.saturating_add(manifest.unswept);
    let bytes = || Space::ALL.into_iter().map(|space| opened.spaces.size(space).bytes).sum::<u64>();
    is_part || bytes_max.is_some_and(|most| bytes() > most)
}

#[cfg(test)]
mod tests;
