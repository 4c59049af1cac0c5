//! The file under a Parquet writer: it digests what is written, and has a bound.

use crate::error::Error;
use parquet::errors::ParquetError;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file that is being written.
pub(crate) struct Sink {
    file: File,
    digest: Sha256,
    bytes: u64,
    /// A write beyond it fails with [`io::ErrorKind::FileTooLarge`].
    pub(crate) bytes_max: u64,
}

impl Sink {
    /// An empty file that takes at most `bytes_max`.
    pub(crate) fn new(file: File, bytes_max: u64) -> Sink {
        Sink { file, digest: Sha256::new(), bytes: 0, bytes_max }
    }

    /// Bytes written, and their SHA-256.
    pub(crate) fn written(&self) -> (u64, [u8; 32]) {
        (self.bytes, self.digest.clone().finalize().into())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if bytes.len() as u64 > self.bytes_max.saturating_sub(self.bytes) {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let written = self.file.write(bytes)?;
        self.digest.update(&bytes[..written]);
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// A failure of the library's writer; one of the system keeps its kind.
pub(crate) fn failed(path: &Path, error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error.to_string()),
    };
    Error::Io(path.to_owned(), error)
}

pub(crate) fn after_failure(path: &Path) -> Error {
    Error::Io(path.to_owned(), io::Error::other("an earlier write failed"))
}
