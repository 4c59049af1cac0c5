//! How far a log has come: appended, synced, poisoned; and the sleep of the sync thread, which an append ends.
//!
//! ```text
//! log:    bytes ; position (Relaxed) ; lsn (Release) ; [fence] ; is the sync thread asleep? wake it
//! sync:   asleep := true ; barrier on all threads, or fence ; lsn = synced? sleep
//! ```
//!
//! A thread that reads an LSN also sees the bytes and the position of its record. If an append and the start of a sleep
//! meet, at least one of them sees the other.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use crate::atomic::{Arc, AtomicBool, AtomicU32, AtomicU64, Ordering, Thread, fence, thread};
use crate::{Lsn, sys};

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
    /// Whether the sync thread can make the process's other threads pass a barrier; if not, each append executes one.
    has_remote_barrier: bool,
    spares_ready: AtomicU32,
    opened_pending: AtomicU32,
}

/// Written only by the log, together.
struct Appended {
    lsn: AtomicU64,
    /// Bytes up to the end of the last record, counted over all segments since the start.
    position: AtomicU64,
    /// Bytes up to the end of the open segment, counted likewise.
    end: AtomicU64,
}

/// Written by the sync thread only.
struct Synced {
    lsn: AtomicU64,
    /// Bytes known to be durable, counted as [`Appended::position`] is.
    position: AtomicU64,
}

/// A cache line of its own (two, since the hardware also fetches the neighbour).
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
        // Pairs with the Release in `set_appended`: a thread that sees the LSN sees the record's bytes in the file.
        Lsn(self.0.appended.0.lsn.load(Ordering::Acquire))
    }

    /// The last record covered by a successful sync: survives loss of power.
    #[inline]
    pub fn synced(&self) -> Lsn {
        // Pairs with the Release in `set_synced`.
        Lsn(self.0.synced.0.lsn.load(Ordering::Acquire))
    }

    /// Bytes of log that a loss of power would lose now, including unused ends of segments. Approximate: both ends may
    /// move while it is read.
    pub fn unsynced_bytes(&self) -> u64 {
        let synced = self.0.synced.0.position.load(Ordering::Relaxed);
        self.0.appended.0.position.load(Ordering::Relaxed).saturating_sub(synced)
    }

    /// Whether a sync failed. Then nothing that is appended and not yet synced will be known to be safe, and the
    /// process must end.
    #[inline]
    pub fn is_poisoned(&self) -> bool {
        self.0.poisoned.load(Ordering::Acquire)
    }

    /// Makes the log refuse everything from now on: for a broken invariant found elsewhere. Cannot be undone.
    pub fn poison(&self) {
        self.0.poisoned.store(true, Ordering::Release);
    }

    /// Ends the sleep of the sync thread ([`Syncer::wait`](crate::Syncer::wait)) although there is nothing to sync, for
    /// instance to stop it.
    pub fn wake(&self) {
        // The swap makes only one of several callers pay for the wake-up; the token of `unpark` remains if the sleeper
        // is not asleep yet.
        if self.0.asleep.0.swap(false, Ordering::AcqRel)
            && let Some(sleeper) = self.0.sleeper.get()
        {
            sleeper.unpark();
        }
    }

    /// The sync thread sleeps until a record is appended, [`Marks::wake`] is called, or the time is over. Returns
    /// immediately if there is something to sync. May return early.
    ///
    /// # Panics
    /// When called from two different threads in the life of a log.
    pub(crate) fn sleep(&self, at_most: Duration) {
        let shared = &self.0;
        let sleeper = shared.sleeper.get_or_init(thread::current);
        assert!(sleeper.id() == thread::current().id(), "only one thread may sync a log");
        shared.asleep.0.store(true, Ordering::Relaxed);
        // From here on either an append sees `asleep`, or this thread sees what it appended: see `set_appended`.
        if shared.has_remote_barrier {
            sys::barrier_on_all_threads();
        }
        fence(Ordering::SeqCst);
        if self.appended() == self.synced() && !self.is_poisoned() {
            thread::park_timeout(at_most);
        }
        shared.asleep.0.store(false, Ordering::Relaxed);
    }

    /// Counts a record as appended and wakes the sync thread if it sleeps.
    #[inline]
    pub(crate) fn set_appended(&self, lsn: Lsn, position: u64) {
        // The position first: a thread that sees the LSN sees a position at or after the record's end.
        self.0.appended.0.position.store(position, Ordering::Relaxed);
        self.0.appended.0.lsn.store(lsn.0, Ordering::Release);
        // The store above must not pass the load below, or both sides could miss each other: this thread reads "awake",
        // and the sync thread reads "nothing new" and falls asleep. The sleeper's remote barrier prevents that; without
        // one, this fence does.
        if !self.0.has_remote_barrier {
            fence(Ordering::SeqCst);
        }
        if self.0.asleep.0.load(Ordering::Relaxed) {
            self.wake();
        }
    }

    /// Counts everything up to `lsn`, whose bytes end at or before `position`, as durable. Only for the sync thread.
    pub(crate) fn set_synced(&self, lsn: Lsn, position: u64) {
        self.0.synced.0.position.store(position, Ordering::Relaxed);
        let before = self.0.synced.0.lsn.swap(lsn.0, Ordering::Release);
        assert!(before < lsn.0, "the synced mark only rises: from {before} to {lsn}");
    }

    /// Spares that the log has not used yet.
    pub fn spares_ready(&self) -> u32 {
        // Pairs with the Release in `add_spare`: a counted spare is in the queue.
        self.0.spares_ready.load(Ordering::Acquire)
    }

    /// Bytes up to the end of the last record, counted over all segments since the start.
    pub(crate) fn appended_bytes(&self) -> u64 {
        self.0.appended.0.position.load(Ordering::Relaxed)
    }

    /// Bytes from the end of the last record to the end of the open segment. While the log appends, the end may still
    /// be that of the previous segment.
    pub(crate) fn open_bytes(&self) -> u64 {
        self.0.appended.0.end.load(Ordering::Relaxed).saturating_sub(self.appended_bytes())
    }

    /// Records the end of the segment that was opened.
    pub(crate) fn set_end(&self, end: u64) {
        self.0.appended.0.end.store(end, Ordering::Relaxed);
    }

    pub(crate) fn opened_pending(&self) -> u32 {
        self.0.opened_pending.load(Ordering::Acquire)
    }

    /// The sync thread has received an opened segment.
    pub(crate) fn opened_seen(&self) {
        self.0.opened_pending.fetch_sub(1, Ordering::AcqRel);
    }

    pub(crate) fn add_spare(&self) {
        self.0.spares_ready.fetch_add(1, Ordering::Release);
    }

    /// Uncounts a spare that must not be used.
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
