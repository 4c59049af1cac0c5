//! Why a file cannot be used.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A failure of an operation on the archive.
#[derive(Debug)]
pub enum Error {
    /// The operating system's, and the file.
    Io(PathBuf, io::Error),
    /// The file is damaged, foreign or too large.
    Refused(PathBuf, Refusal),
}

/// What is wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Where in the file, in bytes; `None` where no single byte is wrong.
    pub offset: Option<u64>,
    pub reason: String,
    /// Nothing is wrong but the order of the rows.
    is_of_order: bool,
}

/// Names the file of a failure.
pub(crate) trait Named<T> {
    fn of(self, path: &Path) -> Result<T, Error>;
}

impl<T> Named<T> for io::Result<T> {
    fn of(self, path: &Path) -> Result<T, Error> {
        self.map_err(|error| Error::Io(path.to_owned(), error))
    }
}

impl<T> Named<T> for Result<T, Refusal> {
    fn of(self, path: &Path) -> Result<T, Error> {
        self.map_err(|refusal| Error::Refused(path.to_owned(), refusal))
    }
}

impl Refusal {
    pub(crate) fn new(reason: impl Into<String>) -> Refusal {
        Refusal { offset: None, reason: reason.into(), is_of_order: false }
    }

    pub(crate) fn at(offset: u64, reason: impl Into<String>) -> Refusal {
        Refusal { offset: Some(offset), ..Refusal::new(reason) }
    }

    /// Rows have to be sorted.
    pub(crate) fn of_order(reason: impl Into<String>) -> Refusal {
        Refusal { is_of_order: true, ..Refusal::new(reason) }
    }

    /// Whether the file is whole but for the order of its rows.
    pub fn is_of_order(&self) -> bool {
        self.is_of_order
    }

    /// The same refusal with a position, if it has none.
    pub(crate) fn at_byte(self, offset: u64) -> Refusal {
        self.at_byte_of(Some(offset))
    }

    /// The same refusal with a position, if it has none and there is one.
    pub(crate) fn at_byte_of(mut self, offset: Option<u64>) -> Refusal {
        self.offset = self.offset.or(offset);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.offset {
            Some(offset) => write!(out, "at byte {offset}: {}", self.reason),
            None => out.write_str(&self.reason),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Io(path, error) => write!(out, "{}: {error}", path.display()),
            Error::Refused(path, refusal) => write!(out, "{}: {refusal}", path.display()),
        }
    }
}

impl From<Error> for io::Error {
    /// The same kind as the system's error; `InvalidData` for a refusal. The text names the file.
    fn from(error: Error) -> io::Error {
        let kind = match &error {
            Error::Io(_, error) => error.kind(),
            Error::Refused(..) => io::ErrorKind::InvalidData,
        };
        io::Error::new(kind, error)
    }
}

impl std::error::Error for Refusal {}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io(_, error) => Some(error),
            Error::Refused(_, refusal) => Some(refusal),
        }
    }
}
