//! The log: what an append costs, and how many groups a second become durable.

use crate::report::{Report, Size, nanoseconds, timed};
use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::time::Instant;
use wal::{Dir, Files, Kind, Options, Running};

const PAYLOAD_BYTES: usize = 72;
/// 56 bytes of header and 72 of payload.
const RECORD_BYTES: usize = 128;
const ROUNDS: usize = 5;

fn start(segment_bytes: u64) -> (tempfile::TempDir, Running<Files>) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let options = Options { segment_bytes, spares_count: 2, reserve_bytes: 0, ..Options::default() };
    let dir =
        Dir::open(Files::open(place.path().join("log")).expect("a new directory"), options).expect("nobody has it");
    let recovered = dir.recover(None, false).expect("an empty directory").finish().expect("nothing to read");
    let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("room for a log");
    while running.preparer.turn().expect("room for spares") == wal::Prepared::One {}
    (place, running)
}

/// Appends of 128 bytes with checksum, beside a loop that only copies and checksums.
pub fn append(size: Size, report: &mut Report) {
    let count = size.pick(1_000, 400_000);
    let (mut ratios, mut least) = (Vec::new(), f64::MAX);
    for _ in 0..size.pick(1, ROUNDS) {
        let (_place, mut running) = start(size.pick(1 << 20, 64 << 20));
        let payload = [0x5a; PAYLOAD_BYTES];
        let (ours, ()) = timed(|| {
            for number in 0..count {
                let appended = running.log.append(Kind::Mutations, 1, number, number, black_box(&payload));
                appended.expect("the segment holds them all");
            }
        });
        let mut room = vec![1_u8; (count as usize + 1) * RECORD_BYTES];
        let (bare, ()) = timed(|| {
            for slot in room.chunks_exact_mut(RECORD_BYTES).take(count as usize) {
                slot[..PAYLOAD_BYTES].copy_from_slice(black_box(&payload));
                let crc = crc32c::crc32c(&slot[4..]);
                slot[..4].copy_from_slice(&crc.to_le_bytes());
            }
        });
        black_box(&room);
        assert_eq!(running.marks.appended().0, count + 1, "every append is counted, the start's own record too");
        ratios.push(bare / ours);
        least = least.min(ours * 1e9 / count as f64);
    }
    report.computed(count.to_le_bytes());
    report.figure("append of 128 bytes, least of the rounds", least, "ns");
    report.figure("that is", 1e9 / least, "records a second");
    report.ratio("rate beside bare copy and checksum", ratios);
    report.durability("process: in the mapping, not synced");
    report.not_included("any sync, encoding the record, preparing segments");
}

/// Groups of appends made durable, beside raw `pwrite` and `fdatasync` of the same bytes.
pub fn durable(size: Size, report: &mut Report) {
    for group in [1_u64, 64, 1_024] {
        let syncs = size.pick(3, if group == 1_024 { 400 } else { 1_500 });
        let mut ratios = Vec::new();
        let mut histogram = nanoseconds();
        for _ in 0..size.pick(1, ROUNDS) {
            let file_bytes = size.pick(4 << 20, 64 << 20);
            let ours = durable_log(group, syncs, file_bytes, &mut histogram);
            let raw = durable_raw(group, syncs, file_bytes);
            ratios.push(raw / ours);
        }
        report.computed((group * syncs).to_le_bytes());
        report.ratio(&format!("{group} a commit: rate beside raw"), ratios);
        report.percentiles(&format!("{group} a commit"), &histogram);
    }
    report.durability("power: every group is covered by fdatasync before the next begins");
    report.not_included("encoding the record, whoever waits, a device that acknowledges too early");
}

fn durable_log(group: u64, syncs: u64, file_bytes: u64, histogram: &mut hdrhistogram::Histogram<u64>) -> f64 {
    let (_place, mut running) = start(file_bytes);
    let payload = [0x5a; PAYLOAD_BYTES];
    let (seconds, ()) = timed(|| {
        for sync in 0..syncs {
            let begun = Instant::now();
            for number in 0..group {
                let appended = running.log.append(Kind::Mutations, 1, number, sync, &payload);
                appended.expect("the segments hold them all");
            }
            running.syncer.turn().expect("the disk syncs");
            histogram.saturating_record(begun.elapsed().as_nanos() as u64);
        }
    });
    seconds
}

fn durable_raw(group: u64, syncs: u64, file_bytes: u64) -> f64 {
    let place = tempfile::tempdir().expect("a temporary directory");
    let file = File::create_new(place.path().join("raw")).expect("a new file");
    for page in 0..file_bytes / 4_096 {
        file.write_all_at(&[0; 4_096], page * 4_096).expect("room on the disk");
    }
    file.sync_all().expect("the disk syncs");
    let bytes = vec![0x5a; group as usize * RECORD_BYTES];
    let (seconds, ()) = timed(|| {
        for sync in 0..syncs {
            let at = sync * bytes.len() as u64 % (file_bytes / 2);
            file.write_all_at(&bytes, at).expect("room in the file");
            file.sync_data().expect("the disk syncs");
        }
    });
    seconds
}
