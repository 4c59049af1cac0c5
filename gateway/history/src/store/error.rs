//! Why a store cannot be used.

use std::fmt;
use std::io;

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
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Io(error) => error.fmt(f),
            StoreError::Damaged(why) | StoreError::Journal(why) => write!(f, "it is damaged: {why}"),
            StoreError::Later(what) => write!(f, "it was written by a later program: {what}"),
            StoreError::InUse => f.write_str("it is in use by another process"),
            StoreError::Busy => f.write_str("tables are not written to disk fast enough"),
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
            fjall::Error::Poisoned => StoreError::Io(io::Error::other("an earlier write failed")),
            fjall::Error::Locked => StoreError::InUse,
            fjall::Error::JournalRecovery(why) => StoreError::Journal(format!("{why} of a journal")),
            error => StoreError::Damaged(error.to_string()),
        }
    }
}
