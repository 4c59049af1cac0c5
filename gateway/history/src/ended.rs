//! Ended rows: orders with their fills, closed positions and remembered requests that have left memory.
//!
//! | File | Holds |
//! |---|---|
//! | `rows.rs` | keys and values as bytes |
//! | `manifest.rs` | what is known of the rows as a whole, and how it survives a crash |
//! | `holes.rs` | users with missing rows |
//! | `course.rs` | whether the rows are those of the log |
//! | `writer.rs` | a move: rows into the keyspaces, durably, and the manifest last |
//! | `cutting.rs` | the oldest days: hidden, and removed later |
//! | `check.rs` | the check of every row |
//! | `names.rs` | names of ended orders, for filters |
//! | `rebuild.rs` | a new store from what others still have |
//! | `reader.rs` | rows of a user: look-ups and scans from the newest |
//! | `fills.rs` | fills with their orders, by a scan of both |
//!
//! They are in the database of the prices, which the job of the history opens beside the rest of a start, and opens again
//! after a failure. So an [`EndedStore`] says what it is now: being opened, open, or not to be used. Reads and writes hold
//! the open database for one look-up, one piece of a scan, or one move; nothing waits for an opening.

mod check;
mod course;
mod cutting;
mod fills;
mod holes;
mod manifest;
mod names;
mod reader;
mod rebuild;
mod rows;
#[cfg(test)]
mod testing;
mod writer;

pub(crate) use check::{Check, Counted, count};
pub use course::{CrcOf, Upto};
pub use cutting::{FreeBytes, Room};
use holes::{Hole, Holes};
pub(crate) use manifest::{Manifest, row_hash};
pub use reader::{EndedOf, EndedReader};
pub(crate) use rebuild::rebuild;
pub use rebuild::{CutRows, Rebuilt, Sources, UserRows};
pub use rows::id_hash;
pub use writer::EndedWriter;

use crate::store::{FOLDER, Space, Spaces, Store, StoreError};
use engine::id::UserId;
use engine::time::{Timestamp, UtcDay};
use host::job::JobWaker;
use host::thread::spawn_spare;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::{Duration, Instant};

/// How long [`EndedStore::withdraw`] waits for reads, and looks.
const WITHDRAW_WITHIN: Duration = Duration::from_millis(100);
const WITHDRAW_STEP: Duration = Duration::from_millis(1);

/// The ended rows of a history. Copies are the same store.
#[derive(Clone)]
pub struct EndedStore {
    state: Arc<RwLock<State>>,
    /// Readers pass over rows that ended before this day.
    shown_from: Arc<AtomicU32>,
    /// Something could not be made durable: what was written before it may be lost with a power cut.
    failed_sync: Arc<AtomicBool>,
    /// A write has found no room since the database was opened: this is why it takes no writes now, if it does not.
    was_full: Arc<AtomicBool>,
    /// What the rows are compared with when they are opened.
    crc_of: Arc<OnceLock<CrcOf>>,
    /// The database is to be opened again: a failed merge has left files.
    is_wanted_again: Arc<AtomicBool>,
    /// The job that opens it; `None`: there is none.
    waker: Option<JobWaker>,
    /// What that job is to start on a thread of its own.
    spare: Arc<Mutex<Option<SpareWork>>>,
}

/// Work of a thread that the server can do without.
type SpareWork = Box<dyn FnOnce() + Send>;

/// What an [`EndedStore`] is now.
enum State {
    Opening,
    Open(Arc<Opened>),
    Unusable(Arc<StoreError>),
}

/// The open tables, and what is known of them.
pub(crate) struct Opened {
    pub spaces: Spaces,
    manifest: Mutex<Option<Arc<Manifest>>>,
    holes: Holes,
}

impl Opened {
    pub fn new(spaces: Spaces) -> Result<Opened, StoreError> {
        let manifest = Manifest::of(&spaces)?.map(Arc::new);
        let holes = Holes::read(&spaces)?;
        Ok(Opened { spaces, manifest: Mutex::new(manifest), holes })
    }

    /// What is missing of a user.
    pub fn hole_of(&self, user: UserId) -> Option<Hole> {
        let kept_from = || self.manifest().map_or(UtcDay(0), |manifest| manifest.kept_from);
        if self.holes.is_empty() { None } else { self.holes.of(user, kept_from()) }
    }

    /// `None` if nothing was moved yet.
    pub fn manifest(&self) -> Option<Arc<Manifest>> {
        self.manifest.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set_manifest(&self, manifest: Manifest) {
        *self.manifest.lock().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(manifest));
    }
}

impl EndedStore {
    /// One that is being opened.
    pub(crate) fn opening() -> EndedStore {
        EndedStore {
            state: Arc::new(RwLock::new(State::Opening)),
            shown_from: Arc::default(),
            failed_sync: Arc::default(),
            was_full: Arc::default(),
            crc_of: Arc::default(),
            is_wanted_again: Arc::default(),
            waker: None,
            spare: Arc::default(),
        }
    }

    /// The job that opens the tables is woken by this.
    pub(crate) fn waking(self, waker: JobWaker) -> EndedStore {
        EndedStore { waker: Some(waker), ..self }
    }

    /// Asks the job for another opening of the database, which removes files that nothing names.
    fn open_again(&self) {
        if let Some(waker) = &self.waker {
            self.is_wanted_again.store(true, Ordering::Relaxed);
            waker.wake();
        }
    }

    /// Starts work on a thread of its own. A thread inherits the priority of the one that starts it, and moves have a low one:
    /// so the job starts it, if there is one.
    ///
    /// # Errors
    /// The system's, if there is no job and no thread can be created.
    fn spawn(&self, work: SpareWork) -> io::Result<()> {
        *self.spare.lock().unwrap_or_else(PoisonError::into_inner) = Some(work);
        match &self.waker {
            Some(waker) => waker.wake(),
            None => self.start_spare()?,
        }
        Ok(())
    }

    /// Starts the work that waits for a thread.
    ///
    /// # Errors
    /// The system's, if no thread can be created; the work is then dropped.
    pub(crate) fn start_spare(&self) -> io::Result<()> {
        let work = self.spare.lock().unwrap_or_else(PoisonError::into_inner).take();
        work.map_or(Ok(()), |work| spawn_spare("history-merge", work, || {}).map(drop))
    }

    /// Whether that was asked for since the last opening.
    pub(crate) fn is_wanted_again(&self) -> bool {
        self.is_wanted_again.load(Ordering::Relaxed)
    }

    /// One that does not exist.
    pub fn missing() -> EndedStore {
        let store = EndedStore::opening();
        store.publish(Err(StoreError::Missing));
        store
    }

    /// Opens the ended rows in the folder of a history, of a stopped server. `cache_bytes` of what was read stay in memory.
    ///
    /// # Errors
    /// [`StoreError::Missing`] if there is no store, another [`StoreError`] if it cannot be used.
    pub fn open(folder: &Path, cache_bytes: u64) -> Result<EndedStore, StoreError> {
        if !folder.join(FOLDER).try_exists()? {
            return Err(StoreError::Missing);
        }
        let store = EndedStore::opening();
        let opened = Opened::new(Store::open_existing(folder, cache_bytes)?.spaces()?)?;
        store.show(opened)?;
        Ok(store)
    }

    /// From now on these tables are read.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] if they are not those of the log.
    fn show(&self, opened: Opened) -> Result<(), StoreError> {
        if let Some(manifest) = opened.manifest() {
            self.is_of_the_log(&manifest)?;
            self.hide_before(manifest.kept_from);
            // It is durable: a merge may remove what it leaves out.
            opened.spaces.remove_before(manifest.kept_from);
        }
        self.set(State::Open(Arc::new(opened)));
        Ok(())
    }

    /// From now on readers pass over rows whose orders and positions ended before this day. The latest day counts.
    pub fn hide_before(&self, day: UtcDay) {
        // Who sees that rows are passed over sees what was published about the cut before.
        self.shown_from.fetch_max(day.0, Ordering::Release);
    }

    /// The first day that readers do not pass over; day 0: they pass over none.
    pub fn shown_from(&self) -> UtcDay {
        UtcDay(self.shown_from.load(Ordering::Acquire))
    }

    /// The first day of which rows are there and are shown; `None`: of no day, or it is not open.
    pub fn first_day(&self) -> Option<UtcDay> {
        let manifest = self.opened().ok()?.manifest()?;
        let first = manifest.days.keys().next()?;
        Some((*first).max(self.shown_from()))
    }

    /// A sync of the database has failed: this process moves nothing any more, also when it was opened again.
    pub(crate) fn note_failed_sync(&self) {
        self.failed_sync.store(true, Ordering::Relaxed);
    }

    fn has_failed_sync(&self) -> bool {
        self.failed_sync.load(Ordering::Relaxed)
    }

    /// A write to the database has found no room on the disk.
    pub(crate) fn note_full(&self) {
        self.was_full.store(true, Ordering::Relaxed);
    }

    fn was_full(&self) -> bool {
        self.was_full.load(Ordering::Relaxed)
    }

    /// Reads the rows that belong to this log.
    pub fn reader(&self, log: u128) -> EndedReader {
        EndedReader::new(self.clone(), log)
    }

    /// Writes rows of this log. One at a time.
    pub fn writer(&self, log: u128) -> EndedWriter {
        EndedWriter::new(self.clone(), log)
    }

    /// The LSN up to which rows are there; 0 if nothing was moved yet.
    ///
    /// # Errors
    /// [`StoreError::Opening`], [`StoreError::Unusable`].
    pub fn upto(&self) -> Result<u64, StoreError> {
        Ok(self.opened()?.manifest().map_or(0, |manifest| manifest.upto))
    }

    /// The tables with the bytes of their files; none while it is not open.
    pub fn sizes(&self) -> Vec<(&'static str, u64)> {
        let Ok(opened) = self.opened() else { return Vec::new() };
        Space::ALL.into_iter().map(|space| (space.name(), opened.spaces.size(space).bytes)).collect()
    }

    /// Users some of whose rows are missing since the store was rebuilt, with the newest time in rows that had left. Empty if
    /// it is whole, or not open.
    pub fn holes(&self) -> BTreeMap<UserId, Timestamp> {
        let Ok(opened) = self.opened() else { return BTreeMap::new() };
        let kept_from = opened.manifest().map_or(UtcDay(0), |manifest| manifest.kept_from);
        opened.holes.kept(kept_from).map(|(user, hole)| (user, hole.at)).collect()
    }

    /// Compares the rows with a log that ends at LSN `end`, and with a state from which the rows up to LSN `needed` have
    /// left; 0: none have.
    ///
    /// # Errors
    /// [`StoreError::Missing`], [`StoreError::Foreign`], [`StoreError::Behind`] and [`StoreError::Ahead`] if they do not fit;
    /// [`StoreError::Opening`] and [`StoreError::Unusable`] if that is not known.
    pub fn fits(&self, log: u128, needed: u64, end: u64) -> Result<(), StoreError> {
        let Some(manifest) = self.opened()?.manifest() else {
            return if needed == 0 { Ok(()) } else { Err(StoreError::Missing) };
        };
        if manifest.log != log {
            return Err(StoreError::Foreign);
        }
        if manifest.upto < needed {
            return Err(StoreError::Behind { upto: manifest.upto, needed });
        }
        match manifest.newest_lsn() {
            upto if upto > end => Err(StoreError::Ahead { upto, end }),
            _ => Ok(()),
        }
    }

    /// The open tables. They must be dropped soon.
    fn opened(&self) -> Result<Arc<Opened>, StoreError> {
        match &*self.state.read().unwrap_or_else(PoisonError::into_inner) {
            State::Opening => Err(StoreError::Opening),
            State::Open(opened) => Ok(opened.clone()),
            State::Unusable(why) => Err(StoreError::Unusable(why.clone())),
        }
    }

    fn set(&self, state: State) {
        *self.state.write().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// It was opened, or cannot be used.
    pub(crate) fn publish(&self, spaces: Result<Spaces, StoreError>) {
        self.was_full.store(false, Ordering::Relaxed);
        self.is_wanted_again.store(false, Ordering::Relaxed);
        let shown = spaces.and_then(Opened::new).and_then(|opened| self.show(opened));
        shown.unwrap_or_else(|error| self.set(State::Unusable(Arc::new(error))));
    }

    /// Closes the tables, so that the database can be opened again: until then it is being opened. `false` if a move or a
    /// merge goes on; then they stay open.
    pub(crate) fn withdraw(&self) -> bool {
        let before =
            std::mem::replace(&mut *self.state.write().unwrap_or_else(PoisonError::into_inner), State::Opening);
        let State::Open(opened) = before else { return true };
        let started = Instant::now();
        while Arc::strong_count(&opened) > 1 {
            if started.elapsed() >= WITHDRAW_WITHIN {
                self.set(State::Open(opened));
                return false;
            }
            std::thread::sleep(WITHDRAW_STEP);
        }
        true
    }
}

#[cfg(test)]
mod tests;
