//! Bytes that the device writes for one durable record: counted by the device itself, over whole segments, including
//! their preparation and their directory entries.

use crate::journal::{Journal, RECORD_BYTES, read_back};
use crate::raw::with_short_slice;
use crate::report::{ONE_BY_ONE, Report, Size};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The device also counts writes of other programs, so the least of the rounds counts.
const ROUNDS: usize = 5;
/// Small segments: each round prepares, opens and seals several.
const SEGMENT_BYTES: u64 = 1 << 20;
const SECTOR_BYTES: u64 = 512;

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let (commits, rounds) = (size.pick(50, 10_000), size.pick(1, ROUNDS));
    report.rate_note(ONE_BY_ONE);
    report.durability("power: every record is covered by a sync before the next begins");
    report.not_included("writes inside of the device");
    let device = Device::under(place.path());
    let written_bytes = || device.as_ref().map_or(0, Device::written_bytes);
    let directory = place.path().join("log");
    let (counted, slice) = with_short_slice(|| {
        let mut log = Journal::create(&directory, SEGMENT_BYTES);
        let counted: Vec<_> = (0..rounds)
            .map(|_| {
                let before = (written_bytes(), caused_bytes());
                for _ in 0..commits {
                    log.commit(1);
                    log.prepare();
                }
                let each = |before: u64, after: u64| (after - before) as f64 / commits as f64;
                (each(before.0, written_bytes()), each(before.1, caused_bytes()))
            })
            .collect();
        log.end();
        counted
    });
    let (kept, digest) = read_back(&directory);
    assert_eq!(kept, (rounds * commits) as u64, "every record is read back");
    report.computed(digest);
    let (written, own): (Vec<_>, Vec<_>) = counted.into_iter().unzip();
    let what = |who: &str| format!("a durable record of {RECORD_BYTES} bytes, {who}");
    if device.is_some() {
        let least = written.iter().copied().fold(f64::MAX, f64::min);
        report.figure(&what("the device, least of the rounds"), least, "bytes");
        report.middle(&what("the device, with writes of other programs"), &written, "bytes");
    } else {
        report.note("the device", "the file system of the log is on no block device with a counter");
    }
    report.middle(&what("this process by the kernel's account"), &own, "bytes");
    report.note("slice of the thread", slice);
}

/// The block device of a path.
pub struct Device(PathBuf);

impl Device {
    /// `None` if its file system is on no block device with a counter.
    pub fn under(place: &Path) -> Option<Device> {
        let number = fs::metadata(place).ok()?.dev();
        let device = Device(stat_of(number));
        device.0.exists().then_some(device)
    }

    /// Since it was attached.
    pub fn written_bytes(&self) -> u64 {
        let stat = fs::read_to_string(&self.0).expect("the device still exists");
        sectors_written(&stat).expect("a device counts its sectors") * SECTOR_BYTES
    }
}

/// The statistics file of a device, from its number as stat(2) returns it (makedev(3)).
fn stat_of(number: u64) -> PathBuf {
    let major = (number >> 8 & 0xfff) | (number >> 32 & 0xffff_f000);
    let minor = (number & 0xff) | (number >> 12 & 0xffff_ff00);
    PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"))
}

/// Field 7 of a device's statistics.
fn sectors_written(stat: &str) -> Option<u64> {
    stat.split_whitespace().nth(6)?.parse().ok()
}

/// Bytes that this process caused the kernel to write, in whole pages; 0 where the kernel does not report it.
pub fn caused_bytes() -> u64 {
    let account = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = account.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_found_by_its_number_and_counts() {
        let numbers = [
            (0xfe00, "/sys/dev/block/254:0/stat"),
            (0x0801, "/sys/dev/block/8:1/stat"),
            (0x10_0000_0000_0005, "/sys/dev/block/1048576:5/stat"),
            (0x1234_5678, "/sys/dev/block/1110:74616/stat"),
        ];
        for (number, path) in numbers {
            assert_eq!(stat_of(number), Path::new(path), "{number:#x}");
        }
        let stats =
            [("1 2 3 4 5 6 7 8 9 10 11\n", Some(7)), ("  1   2 3 4 5 6 70", Some(70)), ("1 2 3", None), ("", None)];
        for (stat, sectors) in stats {
            assert_eq!(sectors_written(stat), sectors, "{stat:?}");
        }
        println!("devices: {} cases", numbers.len() + stats.len());
    }
}
