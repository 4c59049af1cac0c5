//! The directory of a log: its lock and the options of the log.

use std::sync::Arc;

use crate::Points;
use crate::epoch::{Identity, read_identity};
use crate::error::Error;
use crate::files::Files;
use crate::segment::{DEFAULT_SEGMENT_BYTES, MAX_SEGMENT_BYTES, MIN_SEGMENT_BYTES};
use crate::snapshot::{Snapshot, Snapshots};
use crate::storage::{DirectoryLock, Storage};

/// The options of a log. All of them may change between two starts.
#[derive(Debug, Clone)]
pub struct Options {
    /// Length of new segments: a multiple of 4 KiB from [`MIN_SEGMENT_BYTES`] to [`MAX_SEGMENT_BYTES`].
    pub segment_bytes: u64,
    /// Prepared segments to keep ready, 1 to 8.
    pub spares_count: u32,
    /// Free bytes of the disk that new segments do not take.
    pub reserve_bytes: u64,
    /// Crash points, for tests.
    pub points: Points,
}

/// Upper bound of [`Options::spares_count`].
pub const SPARES_MAX: u32 = 8;

impl Default for Options {
    fn default() -> Options {
        Options {
            segment_bytes: DEFAULT_SEGMENT_BYTES,
            spares_count: 2,
            reserve_bytes: 256 << 20,
            points: Points::default(),
        }
    }
}

/// A directory owned by this process, before its log is started.
pub struct Dir<S: Storage = Files> {
    pub(crate) storage: S,
    pub(crate) lock: Arc<S::Lock>,
    pub(crate) options: Options,
    /// `None` in a directory without a log.
    pub(crate) identity: Option<Identity>,
}

impl<S: Storage> Dir<S> {
    /// Locks the directory and reads its epoch file. Writes only the lock file.
    ///
    /// # Errors
    /// [`Error::Locked`] with the owner's process id; [`Error::Format`] for a damaged or newer epoch file, or when it is
    /// missing beside segments or snapshots.
    ///
    /// # Panics
    /// When the options are out of their bounds.
    pub fn open(storage: S, options: Options) -> Result<Dir<S>, Error> {
        assert!(
            (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&options.segment_bytes)
                && options.segment_bytes.is_multiple_of(4096),
            "a segment has a multiple of 4096 bytes from {MIN_SEGMENT_BYTES} to {MAX_SEGMENT_BYTES}, not {}",
            options.segment_bytes
        );
        assert!(
            (1..=SPARES_MAX).contains(&options.spares_count),
            "the number of spares is from 1 to {SPARES_MAX}, not {}",
            options.spares_count
        );
        let lock = Arc::new(storage.lock()?);
        let describe = format!("pid {}\n", std::process::id());
        lock.describe(&describe).map_err(Error::io("write", crate::storage::LOCK_NAME))?;
        let identity = read_identity(&storage)?;
        Ok(Dir { storage, lock, options, identity })
    }

    /// The newest whole snapshot, read once from end to end to verify it. Damaged ones are skipped: the one before and
    /// the log since then hold the same state.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::Format`] when a snapshot is of a newer format.
    pub fn newest_snapshot(&self) -> Result<Option<Snapshot>, Error> {
        self.snapshots().newest()
    }

    /// The snapshots of this directory.
    pub fn snapshots(&self) -> Snapshots<S> {
        let id = self.identity.map_or([0; 16], |identity| identity.id);
        Snapshots::new(self.storage.clone(), id, self.options.points.clone())
    }
}
