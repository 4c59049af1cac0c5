//! Why a store cannot be used.

use std::fmt;
use std::io;
use std::sync::Arc;

/// Why the store cannot be used.
#[derive(Debug)]
pub enum StoreError {
    /// The system's.
    Io(io::Error),
    /// The files are not those of a whole store.
    Damaged(String),
    /// As [`StoreError::Damaged`], and it may be that a journal has a hole or wrong bytes.
    Journal(String),
    /// Written by a later program.
    Later(String),
    /// Another process has it open.
    InUse,
    /// Writing is refused for now: the engine does not keep up.
    Busy,
    /// An earlier write of its database has failed: nothing is written until it is opened again.
    Closed,
    /// It is not open yet.
    Opening,
    /// It could not be opened, for this reason.
    Unusable(Arc<StoreError>),
    /// There are no ended rows, where some must be.
    Missing,
    /// Its ended rows are those of another log, or of a copy of it that went on by itself.
    Foreign,
    /// Its ended rows end at an LSN before the one that is needed.
    Behind { upto: u64, needed: u64 },
    /// Its ended rows are of a later LSN than the one that is there, or asked for.
    Ahead { upto: u64, end: u64 },
    /// What was to be read is not wanted any more.
    GivenUp,
    /// Rows that were moved up to this LSN are missing since it was rebuilt.
    Incomplete { upto: u64 },
    /// What is to be stored is not in memory, or has not ended.
    NotEnded(String),
    /// An earlier write failed, for this reason: this process writes no ended rows any more.
    Refused(Arc<str>),
}

impl StoreError {
    /// Whether rows are missing permanently, while others can be read.
    pub fn is_lost(&self) -> bool {
        matches!(self, StoreError::Incomplete { .. })
    }

    /// Whether the disk, or its quota, has no room. A later attempt may find some.
    pub fn is_full(&self) -> bool {
        matches!(self, StoreError::Io(error) if is_full(error))
    }
}

/// The same of an error of the system.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io(error) => error.fmt(f),
            StoreError::Damaged(why) | StoreError::Journal(why) => write!(f, "it is damaged: {why}"),
            StoreError::Later(what) => write!(f, "it was written by a later program: {what}"),
            StoreError::InUse => f.write_str("it is in use by another process"),
            StoreError::Busy => f.write_str("tables are not written to disk fast enough"),
            StoreError::Closed => f.write_str("an earlier write failed"),
            StoreError::Opening => f.write_str("it is not open yet"),
            StoreError::Unusable(why) => write!(f, "it cannot be used: {why}"),
            StoreError::Missing => f.write_str("its ended rows are missing"),
            StoreError::Foreign => {
                f.write_str("its ended rows are those of another log, or of another copy of this one")
            }
            StoreError::Behind { upto, needed } => {
                write!(f, "its ended rows end at LSN {upto}, and those up to {needed} are needed")
            }
            StoreError::Ahead { upto, end } => {
                write!(f, "its ended rows are of LSN {upto}, which is after {end}")
            }
            StoreError::GivenUp => f.write_str("given up: what was to be read or written is not wanted any more"),
            StoreError::Incomplete { upto } => {
                write!(f, "rows that left memory up to LSN {upto} are missing since it was rebuilt")
            }
            StoreError::NotEnded(what) => write!(f, "{what} cannot be stored: it is not in memory, or has not ended"),
            StoreError::Refused(why) => write!(f, "no ended rows are written after a failure: {why}"),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for io::Error {
    fn from(error: StoreError) -> io::Error {
        match error {
            StoreError::Io(error) => error,
            error => io::Error::other(error),
        }
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> StoreError {
        StoreError::Io(error)
    }
}

impl From<fjall::Error> for StoreError {
    fn from(error: fjall::Error) -> StoreError {
        match error {
            fjall::Error::Io(error) | fjall::Error::Storage(fjall::LsmError::Io(error))
                if error.kind() != io::ErrorKind::UnexpectedEof =>
            {
                StoreError::Io(error)
            }
            fjall::Error::Poisoned => StoreError::Closed,
            fjall::Error::Locked => StoreError::InUse,
            fjall::Error::JournalRecovery(why) => StoreError::Journal(format!("{why} of a journal")),
            error => StoreError::Damaged(error.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_is_distinguished() {
        const ENOSPC: i32 = 28;
        const EDQUOT: i32 = 122;
        const EIO: i32 = 5;
        let io = |errno| io::Error::from_raw_os_error(errno);
        let cases = [
            (StoreError::from(fjall::Error::Io(io(ENOSPC))), true),
            (StoreError::from(fjall::Error::Storage(fjall::LsmError::Io(io(ENOSPC)))), true),
            (StoreError::from(fjall::Error::Io(io(EDQUOT))), true),
            (StoreError::from(fjall::Error::Io(io(EIO))), false),
            (StoreError::from(fjall::Error::Poisoned), false),
            (StoreError::Busy, false),
            (StoreError::Damaged("no space left on device".to_owned()), false),
        ];
        for (error, is_full) in &cases {
            assert_eq!(error.is_full(), *is_full, "{error}");
        }
        println!("full disks: {} cases", cases.len());
    }
}
