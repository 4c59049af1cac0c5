//! The block of a segment that is being read.

use std::io;

use super::Scan;
use crate::error::Error;
use crate::names::segment_name;
use crate::record::{ALIGN_BYTES, MAX_RECORD_BYTES};
use crate::segment::SEGMENT_HEADER_BYTES;
use crate::storage::{Storage, StoredFile};
use crate::trailing::BLOCK_BYTES;

impl<S: Storage> Scan<S> {
    /// Continues at the first record of a segment.
    pub(super) fn open_segment(&mut self, index: usize) -> Result<(), Error> {
        let segment = &mut self.segments[index];
        self.reloads.wait_for(&segment.name);
        let mut file = self.storage.open_to_read(&segment.name);
        if !segment.is_named && file.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            // In a running log it may have been renamed in the meantime.
            (segment.name, segment.is_named) = (segment_name(segment.first_lsn), true);
            file = self.storage.open_to_read(&segment.name);
        }
        let file = file.map_err(Error::io("open", &segment.name))?;
        self.file_bytes = segment.bytes;
        self.index = index;
        self.file = Some(file);
        (self.block_at, self.at, self.filled) = (SEGMENT_HEADER_BYTES as u64, 0, 0);
        self.looked_again_at = None;
        self.refill()
    }

    /// Moves the rest of the block to its start and reads after it.
    pub(super) fn refill(&mut self) -> Result<(), Error> {
        let file = self.file.as_ref().expect("a segment is open while records are read");
        self.block_at += self.at as u64;
        self.at = 0;
        let left = self.file_bytes.saturating_sub(self.block_at);
        // The rest of the block is read again, because it may have been cut in the middle of an append. A record longer
        // than a block needs a longer one.
        let wanted = match self.block.first_chunk::<4>().filter(|_| self.filled > 0) {
            Some(_) => BLOCK_BYTES.max(self.claimed_bytes_at_start()),
            None => BLOCK_BYTES,
        };
        let bytes = left.min(wanted as u64) as usize;
        if self.block.len() < bytes {
            self.block.resize(bytes, 0);
        }
        let name = &self.segments[self.index].name;
        self.filled = file.read_at(&mut self.block[..bytes], self.block_at).map_err(Error::io("read", name))?;
        // A record may claim more than a block; then all of it is read in one call.
        let claimed = self.claimed_bytes_at_start();
        if claimed > self.filled && left > self.filled as u64 {
            let bytes = left.min(claimed.max(BLOCK_BYTES) as u64) as usize;
            if self.block.len() < bytes {
                self.block.resize(bytes, 0);
            }
            self.filled = file.read_at(&mut self.block[..bytes], self.block_at).map_err(Error::io("read", name))?;
        }
        Ok(())
    }

    /// The length that the first record of the block claims, if it is possible, else 0.
    fn claimed_bytes_at_start(&self) -> usize {
        let length =
            self.block[..self.filled].first_chunk::<4>().map_or(0, |bytes| u32::from_le_bytes(*bytes)) as usize;
        // With its padding, since the next record begins after that.
        if length <= MAX_RECORD_BYTES { length.next_multiple_of(ALIGN_BYTES) } else { 0 }
    }
}
