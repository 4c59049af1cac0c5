//! The bytes of a file: on disk or in memory.

use super::footer::PAGE_BYTES_MAX;
use super::vet;
use crate::error::Refusal;
use bytes::Bytes;
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;

/// Bytes read at a time where the length of a page header is not known.
const HEADER_BYTES: usize = 1 << 10;
/// Longest header of a page: the statistics in it may hold a least and a greatest value.
const HEADER_BYTES_MAX: u64 = 1 << 20;

/// Where bytes are read from, by position.
#[derive(Clone)]
pub(crate) enum Source {
    Disk(Arc<File>, u64),
    Memory(Bytes),
}

/// A source for the library's reader.
pub(super) struct Chunks {
    source: Source,
    /// Where headers of pages are, which are checked before the library allocates by them.
    headers: Headers,
}

/// Which reads of the library begin with the header of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Headers {
    /// None.
    Nowhere,
    /// Reads of whole ranges: the page index states where pages are.
    InRanges,
    /// Reads without an end: pages are found by their headers.
    InStreams,
}

/// Reads a source from a position on.
pub(super) struct Stream {
    source: Source,
    at: u64,
    /// Whether the header of a page at `at` has been checked, or there is none.
    is_checked: bool,
}

impl Source {
    /// Opens a plain file: no link, device or folder.
    pub(crate) fn open(path: &Path) -> io::Result<Source> {
        let file = plain_file(path)?;
        let len = file.metadata()?.len();
        Ok(Source::Disk(Arc::new(file), len))
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

    /// For the library.
    pub(super) fn chunks(&self, headers: Headers) -> Chunks {
        Chunks { source: self.clone(), headers }
    }
}

impl Stream {
    fn check_header(&self) -> Result<(), Refusal> {
        // Most headers are short.
        let left = self.source.len().saturating_sub(self.at);
        let read = |len: u64| self.source.read(self.at, left.min(len));
        if vet::page_header(&read(HEADER_BYTES as u64)?, PAGE_BYTES_MAX).is_ok() {
            return Ok(());
        }
        vet::page_header(&read(HEADER_BYTES_MAX)?, PAGE_BYTES_MAX).map_err(|refusal| refusal.at_byte(self.at))
    }
}

impl Length for Chunks {
    fn len(&self) -> u64 {
        self.source.len()
    }
}

impl ChunkReader for Chunks {
    type T = BufReader<Stream>;

    /// The library asks for a reader at the start of a page's data, too, and then does not read from it.
    fn get_read(&self, start: u64) -> parquet::errors::Result<BufReader<Stream>> {
        let is_checked = self.headers != Headers::InStreams;
        let stream = Stream { source: self.source.clone(), at: start, is_checked };
        Ok(BufReader::with_capacity(HEADER_BYTES, stream))
    }

    fn get_bytes(&self, start: u64, length: usize) -> parquet::errors::Result<Bytes> {
        let bytes = self.source.read(start, length as u64).map_err(external)?;
        if self.headers == Headers::InRanges {
            vet::page_header(&bytes, PAGE_BYTES_MAX).map_err(|refusal| external(refusal.at_byte(start)))?;
        }
        Ok(bytes)
    }
}

impl Read for Stream {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !std::mem::replace(&mut self.is_checked, true) {
            self.check_header().map_err(io::Error::other)?;
        }
        let read = match &self.source {
            Source::Disk(file, _) => file.read_at(into, self.at)?,
            Source::Memory(bytes) => {
                let rest = usize::try_from(self.at).ok().and_then(|at| bytes.get(at..)).unwrap_or_default();
                let len = rest.len().min(into.len());
                into[..len].copy_from_slice(&rest[..len]);
                len
            }
        };
        self.at += read as u64;
        Ok(read)
    }
}

fn external(refusal: Refusal) -> ParquetError {
    ParquetError::External(refusal.into())
}

/// Opens a file that is neither a link nor a device, and does not block on a pipe.
///
/// # Errors
/// The system's; it is not a plain file.
pub fn plain_file(path: &Path) -> io::Result<File> {
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
