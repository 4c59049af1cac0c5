//! Making records durable: one thread, descriptors of its own, never a byte of the log's mapping.
//!
//! ```text
//!   Log     append 7 8 9 ───── 10 11 12 13 ───── 14 …          appended ──►
//!   Syncer         └─── sync ────┘└───── sync ─────┘           synced   ──►     (a slow sync makes the next group larger)
//! ```
//!
//! A turn looks where the log stands, syncs the files that hold records up to there, in their order, and then says how far
//! it got. A segment taken into use since the last turn gets its name here: after its own sync, so that a name means a
//! durable header, and after the sync of the one before it. Taking a spare is thereby free of system calls for the appender,
//! and whatever lies behind a named segment is known to have been synced.
//!
//! **Only the range that was appended is synced**, by `msync`, which takes its addresses from the log's mapping. `fdatasync`
//! would also write, and thereby cool, every page that was touched ahead: measured on 64 MiB of them, 40 ms in the first
//! sync of a segment, and then six times the time for each append that meets a cold page.
//!
//! A file that somebody removed takes stores and syncs like any other. So each is asked for its name behind its sync, before
//! anything in it counts as synced, and one that has none is an error as well.
//!
//! Any error is final. After a failed sync the kernel may call pages clean that never reached the device; a second try would
//! then succeed and lie.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::mpsc::Receiver;
use std::thread::{self, Thread};
use std::time::Duration;

use crate::dir::{Identity, segment_name, write_identity};
use crate::error::{Error, PlaceFault};
use crate::storage::{Files, Storage, StoredFile};
use crate::{Lsn, Point, Points, sys};

/// Told after every sync how far it got, and once more when the log is poisoned. Runs on the sync thread: short, please.
pub type Waker = Box<dyn Fn(Lsn) + Send>;

/// Most segments that are taken into use and not yet seen by the [`Syncer`], spares included. The bound of both hand-offs.
pub(crate) const OPENED_MAX: u32 = 16;

/// The watermarks of a log; clones read the same ones.
#[derive(Clone)]
pub struct Marks(Arc<Shared>);

struct Shared {
    appended: Line<Appended>,
    synced: Line<Synced>,
    /// Set once, never cleared.
    poisoned: AtomicBool,
    /// The sync thread sleeps or is about to.
    asleep: Line<AtomicBool>,
    sleeper: OnceLock<Thread>,
    /// Whether the sync thread can make this process's other threads pass a barrier; if not, each append passes one itself.
    has_remote_barrier: bool,
    spares_ready: AtomicU32,
    opened_pending: AtomicU32,
}

/// Written by the log only, together.
struct Appended {
    lsn: AtomicU64,
    /// Bytes behind the last record, counted over all segments of this life.
    position: AtomicU64,
    /// The end of the open segment, counted likewise.
    end: AtomicU64,
}

/// Written by the sync thread only.
struct Synced {
    lsn: AtomicU64,
    /// Bytes known to be durable, counted as [`Appended::position`] is.
    position: AtomicU64,
}

/// A cache line (two, for the neighbour that the hardware fetches along) of its own.
#[repr(align(128))]
struct Line<T>(T);

impl Marks {
    pub(crate) fn new(last_lsn: Lsn, position: u64) -> Marks {
        Marks(Arc::new(Shared {
            appended: Line(Appended {
                lsn: AtomicU64::new(last_lsn.0),
                position: AtomicU64::new(position),
                end: AtomicU64::new(position),
            }),
            synced: Line(Synced { lsn: AtomicU64::new(last_lsn.0), position: AtomicU64::new(position) }),
            poisoned: AtomicBool::new(false),
            asleep: Line(AtomicBool::new(false)),
            sleeper: OnceLock::new(),
            has_remote_barrier: sys::register_barrier(),
            spares_ready: AtomicU32::new(0),
            opened_pending: AtomicU32::new(0),
        }))
    }

    /// The last record in the mapping: survives the death of the process.
    #[inline]
    pub fn appended(&self) -> Lsn {
        // Pairs with the Release in `set_appended`: who sees the LSN sees the record's bytes in the file.
        Lsn(self.0.appended.0.lsn.load(Ordering::Acquire))
    }

    /// The last record covered by a successful sync: survives loss of power.
    #[inline]
    pub fn synced(&self) -> Lsn {
        // Pairs with the Release in `Syncer::turn`.
        Lsn(self.0.synced.0.lsn.load(Ordering::Acquire))
    }

    /// Bytes of log that loss of power would take now, the unused ends of segments among them. A figure for people: both
    /// ends may move while it is read.
    pub fn unsynced_bytes(&self) -> u64 {
        let synced = self.0.synced.0.position.load(Ordering::Relaxed);
        self.0.appended.0.position.load(Ordering::Relaxed).saturating_sub(synced)
    }

    /// Whether a sync failed. Then nothing appended and not yet synced will ever be known to be safe, and the process must end.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.0.poisoned.load(Ordering::Acquire)
    }

    /// Makes the log refuse everything from now on: for a broken invariant found elsewhere. Cannot be taken back.
    pub fn poison(&self) {
        self.0.poisoned.store(true, Ordering::Release);
    }

    /// Ends the sleep of the sync thread ([`Syncer::wait`]) although there is nothing to sync, for instance to stop it.
    pub fn wake(&self) {
        // The swap lets one of several callers pay for the wake-up; the token of `unpark` stays if the sleeper is not asleep yet.
        if self.0.asleep.0.swap(false, Ordering::AcqRel)
            && let Some(sleeper) = self.0.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// Counts a record as appended and wakes the sync thread if it sleeps.
    #[inline]
    pub(crate) fn set_appended(&self, lsn: Lsn, position: u64) {
        // The position first: who sees the LSN sees a position at or behind the record's end.
        self.0.appended.0.position.store(position, Ordering::Relaxed);
        self.0.appended.0.lsn.store(lsn.0, Ordering::Release);
        // The store above must not pass the load below, or both sides could miss each other: we see "awake", it sees "nothing
        // new" and falls asleep. The sleeper's remote barrier sees to that; only without one is it our turn.
        if !self.0.has_remote_barrier {
            fence(Ordering::SeqCst);
        }
        if self.0.asleep.0.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Prepared segments that no record has come to yet.
    pub fn spares_ready(&self) -> u32 {
        // Pairs with the Release in `add_spare`: a counted spare is in the queue.
        self.0.spares_ready.load(Ordering::Acquire)
    }

    /// Bytes behind the last record, counted over all segments of this life.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.0.appended.0.position.load(Ordering::Relaxed)
    }

    /// Bytes behind the last record to the end of the open segment. Looked at while the log appends it may be that of the
    /// segment before.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.0.appended.0.end.load(Ordering::Relaxed).saturating_sub(self.appended_bytes())
    }

    /// A segment was opened that ends there.
    pub(crate) fn set_end(&self, end: u64) {
        self.0.appended.0.end.store(end, Ordering::Relaxed);
    }

    pub(crate) fn opened_pending(&self) -> u32 {
        self.0.opened_pending.load(Ordering::Acquire)
    }

    pub(crate) fn add_spare(&self) {
        self.0.spares_ready.fetch_add(1, Ordering::Release);
    }

    /// A spare is not to be used after all.
    pub(crate) fn withdraw_spare(&self) {
        self.0.spares_ready.fetch_sub(1, Ordering::AcqRel);
    }

    /// A spare became the open segment. In this order, so that the sum of both never looks smaller than it is.
    pub(crate) fn spare_opened(&self) {
        self.0.opened_pending.fetch_add(1, Ordering::AcqRel);
        self.0.spares_ready.fetch_sub(1, Ordering::AcqRel);
    }
}

impl fmt::Debug for Marks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Marks(appended {}, synced {}, poisoned {})", self.appended(), self.synced(), self.is_poisoned())
    }
}

/// A segment that was taken into use.
pub(crate) struct Opened<S: Storage> {
    pub file: S::File,
    /// Its name as a spare.
    pub name: String,
    pub first_lsn: Lsn,
    /// Position of its first byte.
    pub base: u64,
    pub bytes: u64,
    /// The mapping of the segment before, which is full: it goes with the file of its syncs, not on the appending thread.
    pub sealed: S::Map,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to sync.
    Idle,
    /// Everything up to this LSN is durable now.
    Synced(Lsn),
}

/// Syncs the log. Owned by one thread; steppable, for tests, with [`Syncer::turn`].
pub struct Syncer<S: Storage = Files> {
    storage: S,
    marks: Marks,
    opened: Receiver<Opened<S>>,
    /// Segments that may hold unsynced records, in their order. The last one is open, or will be.
    open: VecDeque<OpenFile<S>>,
    identity: Identity,
    waker: Waker,
    points: Points,
    _lock: Arc<S::Lock>,
}

pub(crate) struct OpenFile<S: Storage> {
    pub file: S::File,
    pub name: String,
    pub is_named: bool,
    pub first_lsn: Lsn,
    /// Position of its first byte.
    pub base: u64,
    pub bytes: u64,
    /// Everything in it before this offset is durable.
    pub synced_to: u64,
}

impl<S: Storage> Syncer<S> {
    #[allow(clippy::too_many_arguments)] // One caller, which has them all by these names.
    pub(crate) fn new(
        storage: S,
        lock: Arc<S::Lock>,
        marks: Marks,
        opened: Receiver<Opened<S>>,
        open: OpenFile<S>,
        identity: Identity,
        waker: Waker,
        points: Points,
    ) -> Syncer<S> {
        let open = VecDeque::from([open]);
        Syncer { storage, marks, opened, open, identity, waker, points, _lock: lock }
    }

    /// Syncs what has been appended by now, publishes it, and calls the waker.
    ///
    /// # Errors
    /// Any error poisons the log for good; every later turn answers [`Error::Poisoned`].
    pub fn turn(&mut self) -> Result<Progress, Error> {
        if self.marks.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let target = self.marks.appended();
        if target == self.marks.synced() {
            return Ok(Progress::Idle);
        }
        self.sync_to(target).inspect_err(|_| self.give_up())?;
        Ok(Progress::Synced(target))
    }

    /// The last turn of an orderly stop: syncs everything and raises the floor in the epoch file, so that a segment lost
    /// while the log is at rest will be missed.
    ///
    /// # Errors
    /// As [`Syncer::turn`].
    pub fn finish(mut self) -> Result<Lsn, Error> {
        self.turn()?;
        let synced = self.marks.synced();
        self.raise_floor(synced).inspect_err(|_| self.give_up())?;
        Ok(synced)
    }

    /// Sleeps until something has been appended, [`Marks::wake`] is called, or the time is over. Returns at once when there
    /// is something to sync. May return early.
    ///
    /// # Panics
    /// When called from two different threads in the life of a log.
    pub fn wait(&self, at_most: Duration) {
        let shared = &self.marks.0;
        let sleeper = shared.sleeper.get_or_init(thread::current);
        assert!(sleeper.id() == thread::current().id(), "one thread syncs a log for all its life");
        shared.asleep.0.store(true, Ordering::Relaxed);
        // From here on every append sees `asleep`, or we see what it appended: see `Marks::set_appended`.
        if shared.has_remote_barrier {
            sys::barrier_on_all_threads();
        }
        fence(Ordering::SeqCst);
        if self.marks.appended() == self.marks.synced() && !self.marks.is_poisoned() {
            thread::park_timeout(at_most);
        }
        shared.asleep.0.store(false, Ordering::Relaxed);
    }

    fn sync_to(&mut self, target: Lsn) -> Result<(), Error> {
        // A segment is queued before its first record counts as appended, so all that hold records up to `target` are here.
        while let Ok(opened) = self.opened.try_recv() {
            self.marks.0.opened_pending.fetch_sub(1, Ordering::AcqRel);
            let Opened { file, name, first_lsn, base, bytes, sealed } = opened;
            drop(sealed);
            self.open.push_back(OpenFile { file, name, is_named: false, first_lsn, base, bytes, synced_to: 0 });
        }
        // Read after `appended`, and so at or behind the end of record `target`.
        let position = self.marks.0.appended.0.position.load(Ordering::Relaxed);
        self.points.pass(Point::BeforeSync);
        let (mut named_count, mut reached) = (0, 0);
        for segment in self.open.iter_mut().take_while(|segment| segment.first_lsn <= target) {
            let to = segment.bytes.min(position - segment.base);
            if to > segment.synced_to {
                segment.file.sync_range(segment.synced_to, to).map_err(Error::io("sync", &segment.name))?;
                segment.synced_to = to;
            }
            // A sync of a file that was removed succeeds, and nothing of it comes back.
            if !segment.file.has_name().map_err(Error::io("look at", &segment.name))? {
                return Err(Error::Place { file: segment.name.clone(), fault: PlaceFault::Removed });
            }
            reached = segment.base + segment.synced_to;
            if !segment.is_named {
                self.points.pass(Point::Rename);
                let name = segment_name(segment.first_lsn);
                self.storage.rename(&segment.name, &name).map_err(Error::io("rename", &segment.name))?;
                (segment.name, segment.is_named) = (name, true);
                named_count += 1;
            }
        }
        if named_count > 0 {
            let place = || self.storage.place();
            self.storage.sync_directory().map_err(|error| Error::io("sync", &place())(error))?;
        }
        self.points.pass(Point::AfterSync);
        self.marks.0.synced.0.position.store(reached, Ordering::Relaxed);
        let before = self.marks.0.synced.0.lsn.swap(target.0, Ordering::Release);
        assert!(before < target.0, "the synced mark only rises: from {before} to {target}");
        (self.waker)(target);
        // Sealed and covered: a later segment was synced in the same pass.
        while self.open.get(1).is_some_and(|second| second.first_lsn <= target) {
            self.open.pop_front();
        }
        if named_count > 0 {
            self.raise_floor(target)?;
        }
        Ok(())
    }

    fn raise_floor(&mut self, synced: Lsn) -> Result<(), Error> {
        self.identity.floor = synced;
        match write_identity(&self.storage, &self.identity, &self.points) {
            // A full disk must not end the process. A low floor is right as well, it only sees less.
            Err(error) if error.is_full() => Ok(()),
            done => done,
        }
    }

    fn give_up(&self) {
        self.marks.poison();
        (self.waker)(self.marks.synced());
    }
}
