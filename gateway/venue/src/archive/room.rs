//! Room on the disk: with less of it no hour is made (gateway/docs/archive-tools.md §2).

use super::seal::SealError;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Free bytes beside those that the log keeps for itself.
const BESIDE_LOG_BYTES: u64 = 1 << 30;

/// Free bytes of the disk of a folder.
type Measure = dyn Fn(&Path) -> io::Result<u64> + Send + Sync;

/// How many bytes stay free on the disk of an archive.
#[derive(Clone)]
pub struct Room {
    needed: u64,
    measure: Arc<Measure>,
}

impl Room {
    /// On a disk whose log keeps `reserve_bytes` free (`journal.reserve_bytes`).
    pub fn beside_log(reserve_bytes: u64) -> Room {
        Room::of(reserve_bytes.saturating_add(BESIDE_LOG_BYTES))
    }

    /// On a disk of which this number of bytes stays free.
    pub fn of(needed: u64) -> Room {
        Room::measured(needed, free_bytes)
    }

    /// The same, as a function counts them.
    pub fn measured(needed: u64, measure: impl Fn(&Path) -> io::Result<u64> + Send + Sync + 'static) -> Room {
        Room { needed, measure: Arc::new(measure) }
    }

    /// Free bytes below which nothing is made.
    pub fn needed(&self) -> u64 {
        self.needed
    }

    /// Whether there is room on the disk of this folder.
    ///
    /// # Errors
    /// There is none ([`SealError::NoRoom`]); the system's.
    pub fn check(&self, folder: &Path) -> Result<(), SealError> {
        let free = (self.measure)(folder).map_err(|error| SealError::Io(folder.to_owned(), error))?;
        match free < self.needed {
            true => Err(SealError::NoRoom { folder: folder.to_owned(), free, needed: self.needed }),
            false => Ok(()),
        }
    }
}

/// Free bytes of the disk of a folder.
fn free_bytes(folder: &Path) -> io::Result<u64> {
    let stat = rustix::fs::statvfs(folder)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
