//! Making records durable: one thread, own descriptors, no access to the bytes of the log's mapping.
//!
//! ```text
//!   Log     append 7 8 9 ───── 10 11 12 13 ───── 14 …          appended ──►
//!   Syncer         └─── sync ────┘└───── sync ─────┘           synced   ──►     (a slow sync makes the next group larger)
//! ```
//!
//! A turn reads how far the log has appended, syncs the files that hold records up to there, in order, and then
//! publishes how far it got. A segment taken into use since the last turn is named here: after its own sync, so that a
//! name proves a durable header, and after the sync of the one before it. Taking a spare therefore needs no system call
//! by the appender, and everything before a named segment is known to be synced.
//!
//! **Only the range that was appended is synced**, by `msync`, which takes its addresses from the log's mapping. `fdatasync`
//! would also write, and so cool, every page that was touched ahead: measured on 64 MiB of them, 40 ms in the first
//! sync of a segment, and then six times the time for each append that meets a cold page.
//!
//! A file that was removed takes stores and syncs like any other. So the name of each file is checked after its sync,
//! before anything in it counts as synced; a missing name is an error as well.
//!
//! Any error is final. After a failed sync the kernel may call pages clean that never reached the device; a second try
//! would then succeed although the data is lost.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::epoch::{Identity, write_identity};
use crate::error::{Error, PlaceFault};
use crate::files::Files;
use crate::names::segment_name;
use crate::segment::PAGE_BYTES;
use crate::storage::{Storage, StoredFile};
use crate::{Lsn, Marks, Point, Points};

/// Called after every sync with the LSN it reached, and once more when the log is poisoned. Runs on the sync thread and
/// must be short.
pub type Waker = Box<dyn Fn(Lsn) + Send>;

/// Most segments in use and not yet seen by the [`Syncer`], spares included. The bound of both queues.
pub(crate) const OPENED_MAX: u32 = 16;

/// A segment that was taken into use.
pub(crate) struct Opened<S: Storage> {
    pub file: S::File,
    /// Its name as a spare.
    pub name: String,
    pub first_lsn: Lsn,
    /// Position of its first byte.
    pub base: u64,
    pub bytes: u64,
    /// The full mapping of the segment before. It is dropped by the sync thread and not by the appending one.
    pub sealed: S::Map,
}

/// What a turn did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There was nothing to sync.
    Idle,
    /// Everything up to this LSN is durable now.
    Synced(Lsn),
    /// Only from [`Syncer::turn_of_full_pages`]: unsynced records are in the page that is being appended to, which was
    /// left alone.
    Left,
}

/// Turns of full pages after which a partly filled page is synced as well.
pub const LEFT_TURNS_MAX: u32 = 16;

/// Records that a turn of full pages has not published.
#[derive(Clone, Copy)]
struct Left {
    lsn: Lsn,
    /// The end of the last of them.
    position: u64,
    /// Turns since.
    turns: u32,
    /// The newest record at the last turn.
    seen: Lsn,
}

/// Syncs the log. Owned by one thread; steppable, for tests, with [`Syncer::turn`].
pub struct Syncer<S: Storage = Files> {
    storage: S,
    marks: Marks,
    opened: Receiver<Opened<S>>,
    /// Segments that may hold unsynced records, in order. The last one is open, or will be.
    open: VecDeque<OpenFile<S>>,
    identity: Identity,
    waker: Waker,
    points: Points,
    left: Option<Left>,
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
    #[allow(clippy::too_many_arguments)] // One caller, which has them all under these names.
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
        Syncer { storage, marks, opened, open, identity, waker, points, left: None, _lock: lock }
    }

    /// Syncs what has been appended so far, publishes it, and calls the waker.
    ///
    /// # Errors
    /// Any error poisons the log permanently; every later turn returns [`Error::Poisoned`].
    pub fn turn(&mut self) -> Result<Progress, Error> {
        if self.marks.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let target = self.marks.appended();
        if target == self.marks.synced() {
            return Ok(Progress::Idle);
        }
        self.left = None;
        // Read after `appended`, and so at or after the end of record `target`.
        let position = self.marks.appended_bytes();
        self.sync_to(target, position, target).inspect_err(|_| self.give_up())?;
        Ok(Progress::Synced(target))
    }

    /// As [`Syncer::turn`], for a log whose syncs no client waits for: syncs only full pages, as long as records keep
    /// coming.
    ///
    /// Write-back holds the lock of a page until the device has room for the write, and makes the page read-only; an
    /// append to that page waits for both. A full page gets no append, so the appender never waits for the device.
    /// Records count as synced once their pages are full. When the log is idle for a turn, or after [`LEFT_TURNS_MAX`]
    /// turns, the last page is synced as well.
    ///
    /// # Errors
    /// As [`Syncer::turn`].
    pub fn turn_of_full_pages(&mut self) -> Result<Progress, Error> {
        if self.marks.is_poisoned() {
            return Err(Error::Poisoned);
        }
        let appended = self.marks.appended();
        if appended == self.marks.synced() {
            return Ok(Progress::Idle);
        }
        // Read after `appended`, and so at or after the end of that record.
        let position = self.marks.appended_bytes();
        let fresh = Left { lsn: appended, position, turns: 0, seen: appended };
        let Some(left) = self.left else {
            self.left = Some(fresh);
            return Ok(Progress::Left);
        };
        if left.seen == appended || left.turns >= LEFT_TURNS_MAX {
            return self.turn();
        }
        let full_to = position / PAGE_BYTES as u64 * PAGE_BYTES as u64;
        if left.position > full_to {
            self.left = Some(Left { turns: left.turns + 1, seen: appended, ..left });
            return Ok(Progress::Left);
        }
        self.sync_to(appended, full_to, left.lsn).inspect_err(|_| self.give_up())?;
        self.left = Some(fresh);
        Ok(Progress::Synced(left.lsn))
    }

    /// The last turn of a clean stop: syncs everything and raises the floor in the epoch file, so that a segment lost
    /// while the log is not running is detected.
    ///
    /// # Errors
    /// As [`Syncer::turn`].
    pub fn finish(mut self) -> Result<Lsn, Error> {
        self.turn()?;
        let synced = self.marks.synced();
        self.raise_floor(synced).inspect_err(|_| self.give_up())?;
        Ok(synced)
    }

    /// Sleeps until something has been appended, [`Marks::wake`] is called, or the time is over. Returns immediately
    /// when there is something to sync. May return early.
    ///
    /// # Panics
    /// When called from two different threads in the life of a log.
    pub fn wait(&self, at_most: Duration) {
        self.marks.sleep(at_most);
    }

    /// Syncs what is before `position` of the files that hold records up to `target`, and publishes `covered`, whose
    /// records are before `position`.
    fn sync_to(&mut self, target: Lsn, position: u64, covered: Lsn) -> Result<(), Error> {
        // A segment is queued before its first record counts as appended, so all that hold records up to `target` are here.
        while let Ok(opened) = self.opened.try_recv() {
            self.marks.opened_seen();
            let Opened { file, name, first_lsn, base, bytes, sealed } = opened;
            drop(sealed);
            self.open.push_back(OpenFile { file, name, is_named: false, first_lsn, base, bytes, synced_to: 0 });
        }
        self.points.pass(Point::BeforeSync);
        let (mut named_count, mut reached) = (0, 0);
        for segment in self.open.iter_mut().take_while(|segment| segment.first_lsn <= target) {
            let to = segment.bytes.min(position.saturating_sub(segment.base));
            if to == 0 {
                // Not even its header is to be synced yet, and a name proves a durable header.
                break;
            }
            if to > segment.synced_to {
                segment.file.sync_range(segment.synced_to, to).map_err(Error::io("sync", &segment.name))?;
                segment.synced_to = to;
            }
            // A sync of a removed file succeeds, but its data is lost.
            if !segment.file.has_name().map_err(Error::io("stat", &segment.name))? {
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
        self.marks.set_synced(covered, reached);
        (self.waker)(covered);
        // Sealed and covered: a later segment was synced in the same pass.
        while self.open.get(1).is_some_and(|second| second.is_named && second.first_lsn <= target) {
            self.open.pop_front();
        }
        if named_count > 0 {
            self.raise_floor(covered)?;
        }
        Ok(())
    }

    fn raise_floor(&mut self, synced: Lsn) -> Result<(), Error> {
        self.identity.floor = synced;
        match write_identity(&self.storage, &self.identity, &self.points) {
            // A full disk must not end the process. A low floor is also correct; it only detects less.
            Err(error) if error.is_full() => Ok(()),
            done => done,
        }
    }

    fn give_up(&self) {
        self.marks.poison();
        (self.waker)(self.marks.synced());
    }
}
