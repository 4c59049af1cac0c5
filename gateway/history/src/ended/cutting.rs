//! The oldest days of the history.
//!
//! ```text
//! fact in the log ─► readers pass over the rows ─► manifest without them, durably ─► merges remove them
//! ```
//!
//! A merge that happens by itself may come late: tables of old rows are seldom merged. So when a sixteenth of all rows is
//! before the cut, or room is wanted, each keyspace is merged as a whole, one after the other, on a thread of its own with
//! low priority. The manifest says when that is over; a start repeats what was interrupted.

use super::manifest::Manifest;
use super::{EndedStore, EndedWriter, Opened};
use crate::store::{Space, StoreError};
use engine::time::UtcDay;
use host::thread::{lower_priority, spawn_spare};
use std::sync::mpsc::{Receiver, TryRecvError, sync_channel};

/// Rows are removed when they are at least this part of all.
const UNSWEPT_PART: u64 = 16;

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

/// A removal that goes on.
pub(super) struct Sweeping {
    /// Rows before this day are removed.
    day: UtcDay,
    /// How many were known when it began.
    rows: u64,
    /// Keyspaces that were not merged, since another merge had files of them.
    over: Receiver<Result<Vec<Space>, StoreError>>,
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

    /// Merges these keyspaces, and returns those that were passed over. The tables are let go in between.
    fn sweep(&self, spaces: Vec<Space>) -> Result<Vec<Space>, StoreError> {
        let mut left = Vec::new();
        for space in spaces {
            if !self.opened()?.spaces.merge_all_of(space)? {
                left.push(space);
            }
        }
        Ok(left)
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

    /// Removes rows before the cut, if they are many, or any if the files of all rows take more than `bytes_max`. Must be
    /// called now and then. Returns whether a removal has ended since the last call.
    ///
    /// # Errors
    /// [`StoreError`]: the removal failed, and is not tried again.
    pub fn tend(&mut self, bytes_max: Option<u64>) -> Result<bool, StoreError> {
        let Ok(opened) = self.writable() else { return Ok(false) };
        let Some(manifest) = opened.manifest() else { return Ok(false) };
        let mut has_ended = false;
        if let Some(sweeping) = &self.sweeping {
            match sweeping.over.try_recv() {
                Err(TryRecvError::Empty) => return Ok(false),
                Ok(Ok(left)) if left.is_empty() => {}
                Ok(Ok(left)) => {
                    let (day, rows) = (sweeping.day, sweeping.rows);
                    self.sweep(day, rows, left)?;
                    return Ok(false);
                }
                Ok(Err(error)) => return Err(self.give_up(error)),
                // It panicked.
                Err(TryRecvError::Disconnected) => {
                    return Err(self.give_up(StoreError::Damaged("its files do not fit together".to_owned())));
                }
            }
            self.swept = self.sweeping.take().map(|sweeping| (sweeping.day, sweeping.rows));
            has_ended = true;
        }
        if let Some((day, rows)) = self.swept {
            if !opened.spaces.is_busy() {
                let mut manifest = Manifest::clone(&manifest);
                manifest.swept_to = manifest.swept_to.max(day);
                manifest.unswept = manifest.unswept.saturating_sub(rows);
                self.set(&opened, manifest)?;
                self.swept = None;
            }
            return Ok(has_ended);
        }
        if manifest.unswept > 0 && !self.gave_up && is_due(&opened, &manifest, bytes_max) {
            let spaces = Space::ALL.into_iter().filter(|space| space.is_cut()).collect();
            self.sweep(manifest.kept_from, manifest.unswept, spaces)?;
        }
        Ok(has_ended)
    }

    fn give_up(&mut self, error: StoreError) -> StoreError {
        (self.sweeping, self.gave_up) = (None, true);
        error
    }

    fn sweep(&mut self, day: UtcDay, rows: u64, spaces: Vec<Space>) -> Result<(), StoreError> {
        let (store, (ended, over)) = (self.store.clone(), sync_channel(1));
        let body = move || {
            lower_priority();
            // The writer may have gone.
            let _ = ended.send(store.sweep(spaces));
        };
        // The sender is dropped by a panic.
        spawn_spare("history-merge", body, || {})?;
        self.sweeping = Some(Sweeping { day, rows, over });
        Ok(())
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
