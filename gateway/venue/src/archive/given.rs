//! Files that a user gives to an import: plain ones, whose length is known before they are read.

use super::markets;
use archive::row::Condition;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Take};
use std::path::Path;

/// Opens a plain file: no link, device, pipe or folder. It is read only up to the length that it has now.
///
/// # Errors
/// It is not a plain file, has more bytes, or cannot be opened.
pub(super) fn open(path: &Path, bytes_max: u64) -> io::Result<Take<File>> {
    let file = archive::plain_file(path)?;
    let bytes = file.metadata()?.len();
    match bytes > bytes_max {
        true => Err(io::Error::other(format!("larger than {bytes_max} bytes"))),
        false => Ok(file.take(bytes)),
    }
}

/// Market ids of a plain file: one a line ([`markets::read_ids`]).
///
/// # Errors
/// The file is not a plain one, cannot be read or is too large, or a line is not an id; the text names it.
pub fn ids(path: &Path) -> Result<HashSet<Condition>, String> {
    open(path, u64::MAX).map_err(|error| format!("{}: {error}", path.display()))?;
    markets::read_ids(path)
}
