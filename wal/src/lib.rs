//! A write-ahead log of opaque records in memory-mapped segments.
//!
//! ```text
//!   append ──► mapping of the open segment ──(kernel)──► file ──(Syncer: msync)──► device
//!        │                                                            │
//!        └─ mark `appended`: survives the death of the process        └─ mark `synced`: survives loss of power
//! ```
//!
//! # Files of a directory
//!
//! | Name | What it is |
//! |---|---|
//! | `lock` | locked for the life of the owning process; its id and epoch inside |
//! | `epoch` | identity and instance of the directory, the current epoch, and an LSN that is known to be synced |
//! | `00000000000000000001.wal` | a segment; the name is the first LSN it holds |
//! | `00000007.spare` | a zeroed segment in reserve; with a header: in use and not yet renamed |
//! | `00000000000000000900.snapshot` | one opaque blob that replaces all records up to that LSN |
//! | `*.making` | not finished; removed at the next start |
//! | `*.lost` | set aside when an operator accepted a loss; never touched again |
//!
//! Other names are ignored. There is no manifest.
//!
//! A start keeps as many spares as the options want and removes the others. A spare that is not all zeros is removed
//! and counted ([`Recovered::spares_dirty`]); it held no promised record. A start refuses, and changes nothing, when
//! one of these names belongs to something other than a plain file ([`Error::Place`]), or when a spare's name belongs
//! to a copy of a segment, to a segment of another directory or to one of a newer format ([`Error::Format`]). It also
//! refuses when, after the end of the log, a file with the name of a snapshot does not begin with a snapshot header of
//! this log.
//!
//! # Promises
//!
//! - Records are dense, whole or absent, and come back in order, byte for byte.
//! - Records up to `synced` survive any crash. If one is missing, recovery refuses ([`Error::Lost`]).
//! - Records up to `appended` survive any death of the process alone.
//! - An append fails in one way, [`Full`], and [`Log::room`] reports that beforehand unless spares are removed in between.
//!   It makes no system call, except to wake a sleeping sync thread, and one when it moves to the next segment.
//! - A spare that is removed while the log runs takes no record: it is skipped and replaced.
//! - A failed sync is final for this process: it is not retried, and [`Marks::is_poisoned`] reports it.
//! - No record in a file that was removed counts as synced: that is a failed sync, and the error names the file
//!   ([`PlaceFault::Removed`]).
//! - The directory is looked up once, when it is opened. If it is moved while its log is open, the log moves with it, and
//!   files made under the old name are never touched.
//!
//! # Life of a log
//!
//! [`Dir::open`] → [`Dir::newest_snapshot`] → [`Dir::recover`] → [`Recovery::next`] until `None` → [`Recovery::finish`]
//! → [`Dir::start`] → [`Log`] (append), [`Syncer`] and [`Preparer`] (each with a `turn`), [`Marks`] (watermarks).
//! Nothing here starts a thread, reads a clock or an environment variable.
//!
//! ```
//! # fn main() -> Result<(), wal::Error> {
//! # let storage = wal::fault::Faults::new(1); // A server: wal::Files::open(path)?
//! use wal::{Dir, Kind, Options, Running};
//!
//! let dir = Dir::open(storage, Options { segment_bytes: 1 << 20, ..Options::default() })?;
//! let snapshot = dir.newest_snapshot()?; // Its bytes: dir.snapshots().open(lsn)
//! let mut recovery = dir.recover(snapshot.as_ref(), false)?;
//! while let Some(entry) = recovery.next()? {
//!     let _replay = (entry.lsn, entry.owner, entry.payload);
//! }
//! let recovered = recovery.finish()?;
//! let Running { mut log, mut syncer, mut preparer, mut snapshots, marks, .. } =
//!     dir.start(recovered, 1_700_000_000_000_000, Box::new(|_synced| { /* wake waiting threads */ }))?;
//! preparer.turn()?; // on another thread
//!
//! let lsn = log.append(Kind::Mutations, 1, 42, 1_700_000_000_000_001, b"facts")?;
//! assert!(marks.appended() == lsn && marks.synced() < lsn);
//! syncer.turn()?; // on the sync thread, with `wait` when idle
//! assert!(marks.synced() == lsn);
//!
//! let mut writer = snapshots.create(lsn, log.last_crc())?;
//! std::io::Write::write_all(&mut writer, b"state").expect("room");
//! snapshots.commit(writer, [0; 32])?;
//! if let Some(covered) = snapshots.covered()? {
//!     preparer.recycle(covered)?;
//! }
//!
//! log.append_clean_stop(1_700_000_000_000_002)?;
//! syncer.finish()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Map
//!
//! `record` bytes of one record · `segment` one file · `names` file names · `epoch` the epoch file · `contents` the
//! files in a directory · `dir` lock and options · `start` starting a log in its directory · `log` append · `sync`
//! making durable · `prepare` segments in reserve · `scan` reading, and what the end means · `trailing` bytes after the
//! end · `chain` the checksum of one record · `recover` after a crash · `reload` reading files from the device again for
//! it · `snapshot` blobs · `storage` the interface to the file system · `fault` a file system in memory that crashes and
//! fails · `sys` system calls.
//!
//! # Out of scope
//!
//! Any meaning of a payload; replication; several writers; reading while appending through the mapping; encryption. A
//! payload into which strangers can put arbitrary bytes could hold a forged record. Recovery looks for records after a
//! torn one, and a forged record could make it refuse. Keep such bytes out of payloads, or encode them.

mod atomic;
mod beginning;
mod chain;
mod contents;
mod dir;
mod epoch;
mod error;
pub mod fault;
mod files;
mod log;
mod marks;
mod names;
mod planted;
mod prepare;
pub mod record;
mod recover;
mod reload;
mod scan;
pub mod segment;
mod snapshot;
mod start;
pub mod storage;
mod sync;
mod sys;
#[cfg(test)]
mod tests;
mod trailing;

use std::fmt;
use std::sync::Arc;

pub use chain::record_crc;
pub use contents::{SegmentFile, sealed_lsn, segments};
pub use dir::{Dir, Options};
pub use epoch::{Origin, adopt, origin};
pub use error::{Error, Fault, Full, Loss, PlaceFault};
pub use files::Files;
pub use log::Log;
pub use marks::Marks;
pub use names::{segment_name, snapshot_name};
pub use prepare::{Prepared, Preparer};
pub use record::{Kind, MAX_PAYLOAD_BYTES, MAX_RECORD_BYTES};
pub use recover::{Recovered, Recovery};
pub use scan::{Entry, Scan, Tail};
pub use snapshot::{Snapshot, SnapshotReader, SnapshotWriter, Snapshots};
pub use start::Running;
pub use storage::{Storage, StoredFile};
pub use sync::{LEFT_TURNS_MAX, Progress, Syncer, Waker};
pub use sys::take_short_slice;

/// Advice to the kernel about memory that does not belong to a log. It is here because only this package may use
/// `unsafe`.
pub mod memory {
    pub use crate::sys::{populate, prefer_large_pages, prefer_small_pages};
}

/// Number of a record: dense, from 1. 0 stands for "before the first".
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lsn(pub u64);

impl Lsn {
    /// Before the first record.
    pub const ZERO: Lsn = Lsn(0);

    /// The next LSN.
    #[inline]
    pub const fn next(self) -> Lsn {
        Lsn(self.0 + 1)
    }

    /// The LSN before this one; [`Lsn::ZERO`] for [`Lsn::ZERO`].
    #[inline]
    pub const fn before(self) -> Lsn {
        Lsn(self.0.saturating_sub(1))
    }
}

impl fmt::Display for Lsn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A point in the code at which a test may end the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Point {
    /// Nothing of the record has been stored.
    BeforeAppend,
    /// The record is in the mapping and counted as appended.
    AfterAppend,
    /// Before the files of a group are synced.
    BeforeSync,
    /// The files are synced; no thread has been notified.
    AfterSync,
    /// A spare has been taken for the open segment; its header is not stored.
    Roll,
    /// Part of a snapshot has been written.
    SnapshotWrite,
    /// Before a finished file gets its name.
    Rename,
    /// Before a file is removed.
    Remove,
    /// Before the epoch file is written.
    EpochWrite,
    /// Before recovery changes anything, and between its changes.
    Recovery,
}

impl Point {
    /// All of them.
    pub const ALL: [Point; 10] = [
        Point::BeforeAppend,
        Point::AfterAppend,
        Point::BeforeSync,
        Point::AfterSync,
        Point::Roll,
        Point::SnapshotWrite,
        Point::Rename,
        Point::Remove,
        Point::EpochWrite,
        Point::Recovery,
    ];

    /// The name that a test uses for it.
    pub fn name(self) -> &'static str {
        match self {
            Point::BeforeAppend => "before-append",
            Point::AfterAppend => "after-append",
            Point::BeforeSync => "before-sync",
            Point::AfterSync => "after-sync",
            Point::Roll => "roll",
            Point::SnapshotWrite => "snapshot-write",
            Point::Rename => "rename",
            Point::Remove => "remove",
            Point::EpochWrite => "epoch-write",
            Point::Recovery => "recovery",
        }
    }
}

/// Called at each [`Point`] that is passed; for crash tests. Unset it costs one predictable branch.
#[derive(Clone, Default)]
pub struct Points(Option<Arc<dyn Fn(Point) + Send + Sync>>);

impl Points {
    /// Calls `passed` at every point, on the thread that passes it.
    pub fn new(passed: impl Fn(Point) + Send + Sync + 'static) -> Points {
        Points(Some(Arc::new(passed)))
    }

    #[inline]
    pub(crate) fn pass(&self, point: Point) {
        if let Some(passed) = &self.0 {
            passed(point);
        }
    }
}

impl fmt::Debug for Points {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "Points(set)" } else { "Points(unset)" })
    }
}
