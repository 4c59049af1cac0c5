//! One file of the log: a fixed size, a header, then records; zero-filled, and mapped by the one thread that appends.
//!
//! ```text
//!   0       8         12    16             32       40          48             52         56      64
//!   | magic | version | crc | directory id | number | first LSN | previous crc | reserved | bytes | records … zeros |
//! ```
//!
//! The header is stored when the segment is taken into use and is durable before the first record in it counts as
//! synced (see `sync`). `previous crc` is the checksum of the record before the first one.
//!
//! **Why zeros, and why by 4 KiB writes.** Zeros over the whole length leave no hole that a full disk turns into
//! SIGBUS, and no unwritten extent whose conversion costs a journal commit in every sync. Larger writes make the kernel
//! keep larger pages, and then each sync of one record writes a megabyte.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::sync::Arc;

use memmap2::{Advice, MmapOptions, MmapRaw, UncheckedAdvice};

use crate::error::{Error, Fault};
use crate::storage::{SegmentMap, StoredFile};
use crate::{Lsn, sys};

/// Bytes of a segment before its first record.
pub const SEGMENT_HEADER_BYTES: usize = 64;

/// Size of a segment unless configured otherwise.
pub const DEFAULT_SEGMENT_BYTES: u64 = 64 << 20;

/// Smallest segment: one page, for tests.
pub const MIN_SEGMENT_BYTES: u64 = 4096;

/// Largest segment.
pub const MAX_SEGMENT_BYTES: u64 = 1 << 30;

/// Version of segment header and record header together.
pub const FORMAT_VERSION: u32 = 1;

pub(crate) const PAGE_BYTES: usize = 4096;

/// Bytes of a line of the processor's caches.
#[cfg(target_arch = "x86_64")]
const LINE_BYTES: usize = 64;

/// After this many consecutive bytes the processor prefetches what follows without advice.
#[cfg(target_arch = "x86_64")]
const EXPECTED_BYTES_MAX: usize = 512;

const MAGIC: [u8; 8] = *b"WALSEGM\n";

/// The header of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHeader {
    /// The directory it belongs to.
    pub directory_id: [u8; 16],
    /// Its position among the segments of this directory, dense from 1.
    pub number: u64,
    /// LSN of its first record.
    pub first_lsn: Lsn,
    /// Checksum of record `first_lsn` − 1; 0 when there is none.
    pub previous_crc: u32,
    /// Length of the file.
    pub bytes: u64,
}

impl SegmentHeader {
    /// The header as it is stored.
    pub fn encode(&self) -> [u8; SEGMENT_HEADER_BYTES] {
        let mut bytes = [0; SEGMENT_HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&FORMAT_VERSION.to_le_bytes());
        bytes[16..32].copy_from_slice(&self.directory_id);
        bytes[32..40].copy_from_slice(&self.number.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.first_lsn.0.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.previous_crc.to_le_bytes());
        bytes[56..64].copy_from_slice(&self.bytes.to_le_bytes());
        let crc = header_crc(&bytes);
        bytes[12..16].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Decodes a stored header. The version is checked before the checksum: a newer format may keep the checksum
    /// elsewhere.
    pub fn decode(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> Result<SegmentHeader, Fault> {
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let u64_at = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"));
        if bytes[0..8] != MAGIC {
            return Err(Fault::Magic);
        }
        let version = u32_at(8);
        if version != FORMAT_VERSION {
            return Err(Fault::Version { found: version, known: FORMAT_VERSION });
        }
        let (expected, found) = (u32_at(12), header_crc(bytes));
        if expected != found {
            return Err(Fault::Checksum { expected, found });
        }
        let header = SegmentHeader {
            directory_id: bytes[16..32].try_into().expect("sixteen bytes"),
            number: u64_at(32),
            first_lsn: Lsn(u64_at(40)),
            previous_crc: u32_at(48),
            bytes: u64_at(56),
        };
        let possible = u32_at(52) == 0
            && header.number > 0
            && header.first_lsn > Lsn::ZERO
            && (MIN_SEGMENT_BYTES..=MAX_SEGMENT_BYTES).contains(&header.bytes);
        if possible { Ok(header) } else { Err(Fault::Structure) }
    }
}

fn header_crc(bytes: &[u8; SEGMENT_HEADER_BYTES]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[0..12]), &bytes[16..])
}

/// Bytes that are sent to the device together when a file is filled. A concurrent sync of the log waits for one such
/// piece and not for a whole segment, which took tens of milliseconds.
const FILL_PIECE_BYTES: u64 = 1 << 20;

/// Bytes of a file that are filled, or of a mapping that are touched, in one step: some 100 µs of a core.
pub(crate) const STEP_BYTES: u64 = 64 << 10;

/// Fills the first `bytes` of a file with zeros and makes them durable. Calls `done` with the number of bytes after
/// each step.
///
/// # Errors
/// [`Error::Io`]; [`Error::is_full`] distinguishes a full disk.
pub(crate) fn fill_with_zeros<F: StoredFile>(
    file: &F,
    name: &str,
    bytes: u64,
    mut done: impl FnMut(u64),
) -> Result<(), Error> {
    file.reserve(bytes).map_err(Error::io("reserve", name))?;
    let mut at = 0;
    while at < bytes {
        let step = (bytes - at).min(PAGE_BYTES as u64);
        file.write_at(&ZEROS[..step as usize], at).map_err(Error::io("fill", name))?;
        at += step;
        if at.is_multiple_of(FILL_PIECE_BYTES) {
            file.write_back(at - FILL_PIECE_BYTES, at).map_err(Error::io("fill", name))?;
        }
        if at.is_multiple_of(STEP_BYTES) {
            done(STEP_BYTES);
        }
    }
    file.sync().map_err(Error::io("sync", name))
}

pub(crate) static ZEROS: [u8; PAGE_BYTES] = [0; PAGE_BYTES];

/// The mapping of a segment in a real directory.
#[derive(Debug)]
pub struct FileMap(Arc<MmapRaw>);

impl FileMap {
    /// Maps the first `bytes` of `file`, shared and writable.
    ///
    /// # Errors
    /// Those of mmap(2).
    pub fn new(file: &File, bytes: u64) -> io::Result<FileMap> {
        sys::install_fault_handler();
        let bytes = usize::try_from(bytes).map_err(|_| io::Error::from(io::ErrorKind::FileTooLarge))?;
        let map = MmapOptions::new().len(bytes).map_raw(file)?;
        // Without readahead around a fault the kernel brings in single pages: see the module's comment on large ones.
        // Advice only.
        let _ = map.advise(Advice::Random);
        Ok(FileMap(Arc::new(map)))
    }

    /// The same mapping for the thread that syncs it.
    pub(crate) fn view(&self) -> FileView {
        FileView(self.0.clone())
    }

    #[inline]
    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the slice is a whole mapping that lives as long as `self`, and its bytes are initialized: they are
        // those of a file. It is sound as long as the file is not changed otherwise while the slice exists, and not
        // shortened.
        // - Changed: the directory is locked for this process (`Storage::lock`), its files are readable and writable only by
        //   this user, and in this process exactly one `Log` owns the `FileMap` of a segment; views access no bytes. The sync
        //   thread and the readers have their own descriptors and do not write; preparing and recycling end before a mapping
        //   begins.
        // - Shortened: no code of this crate does it. If another process does, the access raises SIGBUS, whose handler
        //   (installed above) ends the process.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr(), self.0.len()) }
    }
}

impl SegmentMap for FileMap {
    #[inline]
    fn write<R>(&mut self, at: usize, bytes: usize, write: impl FnOnce(&mut [u8]) -> R) -> R {
        write(&mut self.bytes()[at..at + bytes])
    }

    #[inline]
    fn expect(&mut self, at: usize, bytes: usize) {
        #[cfg(target_arch = "x86_64")]
        for line in (at..at + bytes.min(EXPECTED_BYTES_MAX)).step_by(LINE_BYTES) {
            let place: *const i8 = self.0.as_ptr().wrapping_add(line).cast();
            // SAFETY: a prefetch of any address is sound: it neither faults nor changes what is stored.
            unsafe { std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_ET0 }>(place) };
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (at, bytes);
    }

    fn touch(&mut self, from: usize, to: usize) {
        let base = self.0.as_ptr() as usize;
        // All in one call if the kernel has it: that takes two thirds of the time.
        if to.is_multiple_of(PAGE_BYTES) && to <= self.0.len() {
            let pages = base + from / PAGE_BYTES * PAGE_BYTES..base + to;
            if sys::populate(&pages).is_ok() {
                return;
            }
        }
        for page in self.bytes()[from..to].chunks_mut(PAGE_BYTES) {
            let first: *mut u8 = &raw mut page[0];
            // SAFETY: `first` points into a slice that is borrowed mutably here. Volatile, because storing back what was
            // read is exactly what a compiler would leave out, and the store is what makes the kernel prepare the page.
            unsafe { first.write_volatile(first.read_volatile()) };
        }
    }
}

/// A mapping that is synced and never accessed.
#[derive(Debug)]
pub(crate) struct FileView(Arc<MmapRaw>);

impl FileView {
    /// Maps a whole file, for syncing. No thread appends through this mapping.
    pub fn of(file: &File) -> io::Result<FileView> {
        MmapOptions::new().map_raw_read_only(file).map(|map| FileView(Arc::new(map)))
    }

    /// msync(MS_SYNC): fdatasync of the bytes `from..to`, device cache included.
    ///
    /// # Errors
    /// Those of msync(2).
    pub fn sync(&self, from: usize, to: usize) -> io::Result<()> {
        let first = from / PAGE_BYTES * PAGE_BYTES;
        if to - first > PAGE_BYTES {
            // Write-back makes each page read-only in every mapping and invalidates it on every core, one page at a
            // time: on two cores and 33 pages that took a fifth of the whole sync. For pages that were taken out of the
            // mapping together there is nothing to do. Only the last page is stored to again; it faults once, as it
            // would if it had become read-only. Advice only.
            //
            // SAFETY: the mapping is shared and backed by a file, so stored bytes stay in the page cache, and the next
            // access finds them there. The pages are inside the mapping, which `self` keeps alive.
            let _ = unsafe { self.0.unchecked_advise_range(UncheckedAdvice::DontNeed, first, to - first) };
        }
        self.0.flush_range(from, to - from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header() -> SegmentHeader {
        SegmentHeader {
            directory_id: *b"0123456789abcdef",
            number: 3,
            first_lsn: Lsn(41),
            previous_crc: 0x0102_0304,
            bytes: 4096,
        }
    }

    /// Version 1 of the segment header, byte by byte.
    #[test]
    fn golden_bytes() {
        #[rustfmt::skip]
        let golden: [u8; 64] = [
            b'W', b'A', b'L', b'S', b'E', b'G', b'M', b'\n',
            1, 0, 0, 0,
            0x49, 0xec, 0xa4, 0xd2,
            b'0', b'1', b'2', b'3', b'4', b'5', b'6', b'7', b'8', b'9', b'a', b'b', b'c', b'd', b'e', b'f',
            3, 0, 0, 0, 0, 0, 0, 0,
            41, 0, 0, 0, 0, 0, 0, 0,
            4, 3, 2, 1,
            0, 0, 0, 0,
            0, 16, 0, 0, 0, 0, 0, 0,
        ];
        assert_eq!(header().encode(), golden);
        assert_eq!(SegmentHeader::decode(&golden), Ok(header()));
    }

    #[test]
    fn each_changed_bit_is_refused() {
        let whole = header().encode();
        for bit in 0..whole.len() * 8 {
            let mut bytes = whole;
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(SegmentHeader::decode(&bytes).is_err(), "bit {bit} changed and was not detected");
        }
        println!("damaged headers: {}", whole.len() * 8);
    }

    #[test]
    fn other_versions_are_refused_by_number() {
        for found in [0, FORMAT_VERSION + 1, u32::MAX] {
            let mut bytes = header().encode();
            bytes[8..12].copy_from_slice(&found.to_le_bytes());
            assert_eq!(SegmentHeader::decode(&bytes), Err(Fault::Version { found, known: FORMAT_VERSION }));
        }
    }

    #[test]
    fn impossible_fields_are_refused_even_with_a_right_checksum() {
        for change in [
            SegmentHeader { number: 0, ..header() },
            SegmentHeader { first_lsn: Lsn::ZERO, ..header() },
            SegmentHeader { bytes: MIN_SEGMENT_BYTES - 1, ..header() },
            SegmentHeader { bytes: MAX_SEGMENT_BYTES + 1, ..header() },
        ] {
            assert_eq!(SegmentHeader::decode(&change.encode()), Err(Fault::Structure));
        }
    }

    /// Taking pages out of the mapping loses nothing, and all of it can be stored to again.
    #[test]
    fn what_was_synced_stays_in_the_mapping_and_in_the_file() {
        let file = tempfile::tempfile().expect("temporary file");
        let bytes = 5 * PAGE_BYTES;
        file.set_len(bytes as u64).expect("grow");
        let mut map = FileMap::new(&file, bytes as u64).expect("map");
        map.touch(0, bytes);
        let mut expected = vec![0u8; bytes];
        let mut cases = 0;
        let ranges = [(64, 128), (128, 4096), (100, 4097), (4000, 9000), (9000, 12_288), (12_288, 20_480), (0, 20_480)];
        for (mark, (from, to)) in (1..).zip(ranges) {
            map.write(from, to - from, |slot| slot.fill(mark));
            expected[from..to].fill(mark);
            map.view().sync(from, to).expect("sync");
            // After what was synced, and in the last page of it.
            let (at, end) = (to - 1, (to + 99).min(bytes));
            map.write(at, end - at, |slot| slot.fill(mark + 100));
            expected[at..end].fill(mark + 100);
            map.expect(end, bytes);
            let mut seen = vec![0; bytes];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut seen, 0).expect("read");
            assert!(seen == expected, "in the file after {from}..{to}");
            map.write(0, bytes, |slot| assert!(slot == expected, "in the mapping after {from}..{to}"));
            cases += 1;
        }
        println!("ranges synced: {cases}");
    }

    #[test]
    fn what_is_stored_in_a_mapping_is_in_the_file() {
        let file = tempfile::tempfile().expect("temporary file");
        file.set_len(8192).expect("grow");
        let mut map = FileMap::new(&file, 8192).expect("map");
        map.touch(0, 8192);
        map.write(4090, 12, |bytes| bytes.copy_from_slice(b"over an edge"));
        let mut seen = [0; 12];
        std::os::unix::fs::FileExt::read_exact_at(&file, &mut seen, 4090).expect("read");
        assert_eq!(&seen, b"over an edge");
    }
}
