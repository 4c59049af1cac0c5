//! What stays: recovery after a kill, pins, and the removal of old hours.

use super::{CACHE, HourEntry, Lock, Store, entries, folders, index_path, names, sidecar_path};
use crate::error::{Error, Named, Refusal};
use crate::files::{self, Making, is_making};
use crate::index::TimeIndex;
use crate::sidecar::{Piece, Sidecar};
use engine::backtest::Hour;
use engine::time::Timestamp;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

const HOURS_PER_DAY: u32 = 24;
/// The folder of what a venue said about its markets; who makes hours writes it.
const MARKETS: &str = "markets";

/// Hours that a reader uses: they are not removed until it is dropped.
pub struct Hold {
    store: Arc<Store>,
    hours: Vec<(String, Hour)>,
}

/// What a removal did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    pub hours: Vec<(String, Hour)>,
    pub cache_files: u64,
    /// Bytes of both.
    pub bytes: u64,
}

impl Drop for Hold {
    fn drop(&mut self) {
        let mut held = self.store.held.lock();
        for key in &self.hours {
            if let Some(users) = held.get_mut(key) {
                *users -= 1;
                if *users == 0 {
                    held.remove(key);
                }
            }
        }
    }
}

impl Store {
    /// Ends what a kill interrupted: an hour whose new files are all on disk gets them, other files that are half made are
    /// removed, and hours whose index was being replaced are repaired. Returns the number of removed files.
    ///
    /// # Errors
    /// The system's.
    pub fn recover(&self, lock: &Lock) -> Result<u64, Error> {
        let mut removed = 0;
        let mut doubtful = Vec::new();
        for entry in entries(&self.root)? {
            let name = entry.file_name();
            let Some(venue) = name.to_str().filter(|name| names::is_venue(name)) else { continue };
            for making in making_files(&self.root.join(venue).join(MARKETS))? {
                files::remove(&making)?;
                removed += 1;
            }
            for year in folders(&self.root.join(venue))? {
                for month in folders(&year)? {
                    for day in folders(&month)? {
                        self.end_renames(venue, &day)?;
                        for making in making_files(&day)? {
                            // A sidecar that was replaced: the index may be the new one already.
                            let of = making.with_extension("").with_extension(names::PARQUET);
                            doubtful.extend(hour_of(venue, &of).map(|hour| (venue.to_owned(), hour)));
                            files::remove(&making)?;
                            removed += 1;
                        }
                    }
                }
            }
        }
        for making in making_files(&self.root.join(CACHE))? {
            files::remove(&making)?;
            removed += 1;
        }
        self.refresh()?;
        doubtful.sort();
        doubtful.dedup();
        for (venue, hour) in doubtful {
            if let Some(entry) = self.hour(&venue, hour).filter(|entry| entry.sidecar().is_ok()) {
                self.repair_if_sound(lock, &entry)?;
            }
        }
        self.mend(lock)?;
        self.relink_all(lock)?;
        Ok(removed)
    }

    /// Makes the missing and damaged indexes of hours again that have a good sidecar, and chains the hours after them.
    /// Returns the number of hours. Damage inside of an index is known once a read or the comparison of digests found it.
    ///
    /// # Errors
    /// The system's. An hour whose Parquet file is damaged, too, stays quarantined.
    pub fn mend(&self, lock: &Lock) -> Result<u64, Error> {
        let mut mended = 0;
        for venue in self.venues() {
            for entry in self.all(&venue) {
                let Ok(sidecar) = entry.stated() else { continue };
                let is_whole = entry.stamps[1].is_some_and(|(_, bytes, _)| bytes == sidecar.index.bytes);
                let opens = || {
                    let has_index = &entry.found.has_index;
                    let opens = has_index.load(Relaxed) || TimeIndex::open(&index_path(&entry.path)).is_ok();
                    has_index.store(opens, Relaxed);
                    opens
                };
                if is_whole && entry.sidecar().is_ok() && opens() {
                    continue;
                }
                // Nothing changes if the damage is in the other file.
                if self.repair_if_sound(lock, &entry)? {
                    mended += 1;
                    self.relink(lock, &venue, entry.hour)?;
                }
            }
        }
        Ok(mended)
    }

    /// Repairs an hour. One whose Parquet file is damaged becomes quarantined, and nothing changes.
    fn repair_if_sound(&self, lock: &Lock, entry: &HourEntry) -> Result<bool, Error> {
        match self.noting(entry, self.repair(lock, entry, true)) {
            Err(Error::Refused(..)) => Ok(false),
            repaired => repaired,
        }
    }

    /// Ends the renaming of hours whose new files are all on disk: a sidecar under its name for the time being states
    /// their digests.
    fn end_renames(&self, venue: &str, day: &Path) -> Result<(), Error> {
        for making in making_files(day)? {
            let path = making.with_extension("");
            let parquet = path.with_extension(names::PARQUET);
            let Some(hour) = hour_of(venue, &parquet).filter(|_| path == sidecar_path(&parquet)) else { continue };
            let Ok(sidecar) = Sidecar::read(&making) else { continue };
            if (sidecar.venue.as_str(), &sidecar.hour) != (venue, &hour.to_string()) {
                continue;
            }
            let index = index_path(&parquet);
            let places =
                [(&parquet, &sidecar.parquet), (&index, &sidecar.index)].map(|(path, piece)| of_piece(path, piece));
            let [Some(parquet), Some(index)] = places else { continue };
            self.rename(venue, hour, parquet, index, Making::left(&path)?)?;
        }
        Ok(())
    }

    /// Chains every hour to the one before: a kill may have come before that.
    fn relink_all(&self, lock: &Lock) -> Result<(), Error> {
        for venue in self.venues() {
            for entry in self.all(&venue) {
                let Ok(sidecar) = entry.sidecar() else { continue };
                let previous = self.previous_digest(&venue, entry.hour);
                if previous.is_some() && sidecar.previous != previous {
                    self.repair_if_sound(lock, &entry)?;
                }
            }
        }
        Ok(())
    }

    /// Keeps an hour from being removed, until [`Store::unpin`].
    ///
    /// # Errors
    /// The hour is not there; the system's.
    pub fn pin(&self, venue: &str, hour: Hour) -> Result<(), Error> {
        let pin = self.pin_of(venue, hour)?;
        let held = self.held.lock();
        files::write(&pin, b"")?;
        drop(held);
        self.refresh_hour(venue, hour).map(drop)
    }

    /// # Errors
    /// As [`Store::pin`].
    pub fn unpin(&self, venue: &str, hour: Hour) -> Result<(), Error> {
        files::remove(&self.pin_of(venue, hour)?)?;
        self.refresh_hour(venue, hour).map(drop)
    }

    /// The file that pins an hour of the archive.
    fn pin_of(&self, venue: &str, hour: Hour) -> Result<PathBuf, Error> {
        let refusal = || Refusal::new(format!("the hour {hour} of {venue} is not in the archive"));
        let entry = self.hour(venue, hour).ok_or_else(refusal).of(&self.root)?;
        Ok(names::pin_path(&entry.path))
    }

    /// Keeps these hours until the value is dropped.
    pub fn hold(self: &Arc<Store>, hours: impl IntoIterator<Item = (String, Hour)>) -> Hold {
        let hours: Vec<(String, Hour)> = hours.into_iter().collect();
        let mut held = self.held.lock();
        hours.iter().for_each(|key| *held.entry(key.clone()).or_default() += 1);
        drop(held);
        Hold { store: self.clone(), hours }
    }

    /// Whether an hour may go: it has no pin, and no reader of this process holds it.
    pub fn is_free(&self, venue: &str, hour: Hour) -> bool {
        let is_pinned = self.hour(venue, hour).is_some_and(|entry| entry.is_pinned);
        !is_pinned && !self.held.lock().contains_key(&(venue.to_owned(), hour))
    }

    /// Removes the oldest files of the cache beyond its bound, then hours older than `keep_days`, then the oldest hours
    /// while all have more than `bytes_max`. Pinned hours and hours in use stay.
    ///
    /// # Errors
    /// The system's.
    pub fn retain(&self, _lock: &Lock, now: Timestamp) -> Result<Retention, Error> {
        let mut done = Retention::default();
        self.trim_cache(&mut done)?;
        let settings = self.settings;
        if settings.keep_days > 0 {
            let first = Hour::of(now).0.saturating_sub(settings.keep_days.saturating_mul(HOURS_PER_DAY));
            for entry in self.by_age().into_iter().filter(|entry| entry.hour.0 < first) {
                self.remove(&entry, &mut done)?;
            }
        }
        if settings.bytes_max > 0 {
            let mut bytes = self.bytes();
            for entry in self.by_age() {
                if bytes <= settings.bytes_max {
                    break;
                }
                if self.remove(&entry, &mut done)? {
                    bytes -= entry.bytes;
                }
            }
        }
        Ok(done)
    }

    /// All hours, the oldest first.
    fn by_age(&self) -> Vec<Arc<HourEntry>> {
        let mut all: Vec<Arc<HourEntry>> = self.venues().iter().flat_map(|venue| self.all(venue)).collect();
        all.sort_by_key(|entry| entry.hour);
        all
    }

    /// Removes an hour, unless it is pinned or in use. Its sidecar goes first: without it the rest counts for nothing, and
    /// is removed by the next call after a kill. Returns whether it is gone.
    fn remove(&self, entry: &HourEntry, done: &mut Retention) -> Result<bool, Error> {
        // No reader begins to use it between the look and the removal. Another process may have pinned it since it was listed.
        let held = self.held.lock();
        if held.contains_key(&(entry.venue.clone(), entry.hour)) || names::pin_path(&entry.path).exists() {
            return Ok(false);
        }
        files::remove(&sidecar_path(&entry.path))?;
        self.refresh_hour(&entry.venue, entry.hour)?;
        drop(held);
        files::remove(&index_path(&entry.path))?;
        files::remove(&entry.path)?;
        files::sync_folder_of(&entry.path)?;
        self.refresh_hour(&entry.venue, entry.hour)?;
        done.hours.push((entry.venue.clone(), entry.hour));
        done.bytes += entry.bytes;
        // The folder of a day without hours.
        for folder in entry.path.ancestors().skip(1).take(3) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
        Ok(true)
    }

    fn trim_cache(&self, done: &mut Retention) -> Result<(), Error> {
        let removed = files::trim(&self.root.join(CACHE), self.settings.cache_bytes, |_| true)?;
        done.cache_files += removed.len() as u64;
        done.bytes += removed.iter().sum::<u64>();
        Ok(())
    }
}

/// The hour of a Parquet file of a venue, by its name.
fn hour_of(venue: &str, parquet: &Path) -> Option<Hour> {
    names::hour_of_name(venue, parquet.file_name()?.to_str()?)
}

/// Where a file is that a sidecar states: under its name for the time being, or (`Some(None)`) under its own. `None`: it
/// is not there.
fn of_piece(path: &Path, piece: &Piece) -> Option<Option<Making>> {
    let is_it = |path: &Path| {
        files::digest(path)
            .is_ok_and(|(digest, bytes)| (crate::hex(&digest), bytes) == (piece.sha256.clone(), piece.bytes))
    };
    match is_it(&files::making_path(path)) {
        true => Making::left(path).ok().map(Some),
        false => is_it(path).then_some(None),
    }
}

fn making_files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    Ok(entries(folder)?.into_iter().map(|entry| entry.path()).filter(|path| is_making(path)).collect())
}
