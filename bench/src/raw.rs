//! The device without a log: a file that was zero-filled by 4 KiB writes, and `pwrite` and `fdatasync` on it.

use crate::floor::Floor;
use crate::report::{nanoseconds, timed};
use hdrhistogram::Histogram;
use std::fs::File;
use std::os::unix::fs::FileExt;
use tempfile::TempDir;

/// Below it the device, or the core that waits for it, was busy: a quiet machine of the kind for which the goals were
/// set makes 7,600 and more.
pub const SYNC_FLOOR: Floor = Floor { of: "raw write of 4 KiB and fdatasync", least: 5_000.0 };

const BLOCK_BYTES: u64 = 4_096;
/// Syncs of one measurement of the device.
const PROBE_SYNCS: u64 = 200;

/// The file; removed when dropped.
pub struct Raw {
    _place: TempDir,
    file: File,
    bytes: u64,
    /// Offset of the next write; wraps around.
    at: u64,
}

impl Raw {
    /// A file of `bytes`, filled and synced.
    pub fn filled(bytes: u64) -> Raw {
        let place = tempfile::tempdir().expect("a temporary directory");
        let file = File::create_new(place.path().join("raw")).expect("a new file");
        for block in 0..bytes / BLOCK_BYTES {
            file.write_all_at(&[0; BLOCK_BYTES as usize], block * BLOCK_BYTES).expect("room on the disk");
        }
        file.sync_all().expect("the disk syncs");
        Raw { _place: place, file, bytes, at: 0 }
    }

    /// Writes after the last write, and syncs.
    pub fn commit(&mut self, bytes: &[u8]) {
        if self.at + bytes.len() as u64 > self.bytes {
            self.at = 0;
        }
        self.file.write_all_at(bytes, self.at).expect("room in the file");
        self.file.sync_data().expect("the disk syncs");
        self.at += bytes.len() as u64;
    }

    /// Durable writes of 4 KiB a second, now: the rate that [`SYNC_FLOOR`] judges.
    pub fn probe(&mut self) -> f64 {
        self.probe_into(&mut nanoseconds())
    }

    /// The same, and the duration of each.
    pub fn probe_into(&mut self, nanos: &mut Histogram<u64>) -> f64 {
        let (seconds, ()) = timed(|| {
            for _ in 0..PROBE_SYNCS {
                let (took, ()) = timed(|| self.commit(&[0x5a; BLOCK_BYTES as usize]));
                nanos.saturating_record((took * 1e9) as u64);
            }
        });
        PROBE_SYNCS as f64 / seconds
    }
}

/// Runs `work` on a thread of its own that requests a scheduler slice of 100 us, like the sync thread of a server:
/// without it, a thread that sleeps in a sync waits for a whole tick when the cores are busy. Threads that `work`
/// starts inherit it, those of peers too. Returns the result of `work`, and whether the kernel accepted the slice.
pub fn with_short_slice<T: Send>(work: impl FnOnce() -> T + Send) -> (T, &'static str) {
    std::thread::scope(|threads| {
        let thread = threads.spawn(|| {
            let slice = if wal::take_short_slice() { "100 us, for peers too" } else { "the kernel's own" };
            (work(), slice)
        });
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
