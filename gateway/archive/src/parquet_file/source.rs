//! The bytes of a file: on disk or in memory.

use crate::error::Refusal;
use bytes::Bytes;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Where bytes are read from, by position.
pub(crate) enum Source {
    Disk(File, u64),
    Memory(Bytes),
}

impl Source {
    /// Opens a plain file: no link, device or folder.
    pub(crate) fn open(path: &Path) -> io::Result<Source> {
        let file = plain_file(path)?;
        let len = file.metadata()?.len();
        Ok(Source::Disk(file, len))
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Source::Disk(_, len) => *len,
            Source::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// Some bytes; a range beyond the end is refused before allocation.
    pub(crate) fn read(&self, at: u64, len: u64) -> Result<Bytes, Refusal> {
        if at.checked_add(len).is_none_or(|end| end > self.len()) {
            return Err(Refusal::at(at, format!("{len} bytes go beyond the end of the file")));
        }
        match self {
            Source::Disk(file, _) => {
                let mut bytes = vec![0; len as usize];
                file.read_exact_at(&mut bytes, at)
                    .map_err(|error| Refusal::at(at, format!("{len} bytes cannot be read: {error}")))?;
                Ok(bytes.into())
            }
            Source::Memory(bytes) => Ok(bytes.slice(at as usize..(at + len) as usize)),
        }
    }
}

/// Opens a file that is neither a link nor a device, and does not block on a pipe.
pub(crate) fn plain_file(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()) {
        Err(rustix::io::Errno::LOOP) => return Err(io::Error::other("is a link, not a plain file")),
        opened => File::from(opened?),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("is not a plain file"));
    }
    Ok(file)
}
