//! Records read back without decoding: our scan as recovery does it, which finds the end and verifies that nothing
//! follows it; a bare loop over a mapping of the same files that checks each record's checksum; and another log that
//! reads its own files. Each time includes opening.

use crate::floor::Floor;
use crate::journal::{Journal, RECORD_BYTES};
use crate::peers;
use crate::report::{ONE_BY_ONE, Report, Size, timed};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use wal::segment::{FileMap, SEGMENT_HEADER_BYTES};
use wal::storage::SegmentMap;
use wal::{Files, Lsn, Scan};

const ROUNDS: usize = 9;

/// A core of the kind for which the goals were set makes 31 million and more; below a third of that the core was
/// shared.
const SCAN_FLOOR: Floor = Floor { of: "bare scan", least: 10_000_000.0 };

pub fn run(size: Size, report: &mut Report) {
    let count = size.pick(2_000, 1_000_000);
    let place = tempfile::tempdir().expect("a temporary directory");
    let log = place.path().join("log");
    let segment_bytes = size.pick(1 << 20, 64 << 20);
    let mut journal = Journal::create(&log, segment_bytes);
    for owner in 0..count {
        journal.append(1, owner, 1, &crate::journal::PAYLOAD);
    }
    journal.end();
    let peers: Vec<_> = peers::READ.iter().filter(|_| report.with_peers()).collect();
    for peer in &peers {
        (peer.write)(&place.path().join(peer.name), count);
    }

    let (mut judged_rates, mut known_rates, mut bare_rates) = (Vec::new(), Vec::new(), Vec::new());
    let (mut judged_ratios, mut known_ratios) = (Vec::new(), Vec::new());
    // Including those of the start and the stop.
    let end = Lsn(count + 2);
    let mut beside = vec![Vec::new(); peers.len()];
    for _ in 0..size.pick(1, ROUNDS) {
        let (judged, (records, owners)) = timed(|| scan(&log, None));
        let (known, until) = timed(|| scan(&log, Some(end)));
        let (bare, seen) = timed(|| bare(&log));
        assert_eq!([(records, owners); 2], [until, seen], "all see the same records");
        assert_eq!(records, end.0, "every record is read");
        let rate = |seconds: f64| records as f64 / seconds;
        judged_rates.push(rate(judged));
        known_rates.push(rate(known));
        bare_rates.push(rate(bare));
        judged_ratios.push(bare / judged);
        known_ratios.push(bare / known);
        for (peer, ratios) in peers.iter().zip(&mut beside) {
            let (theirs, read) = timed(|| (peer.read)(&place.path().join(peer.name)));
            assert_eq!(read, count, "the log has them all");
            ratios.push((theirs / count as f64) / (judged / records as f64));
        }
        report.computed(owners.to_le_bytes());
    }
    report.middle("records of 128 bytes, with a verdict on the end", &judged_rates, "a second");
    report.middle("the same up to a known end", &known_rates, "a second");
    report.ratio_above(&[(&SCAN_FLOOR, &bare_rates)], "beside a bare scan", judged_ratios);
    report.ratio_above(&[(&SCAN_FLOOR, &bare_rates)], "up to a known end, beside a bare scan", known_ratios);
    for (peer, ratios) in peers.iter().zip(beside) {
        report.ratio_above(&[(&SCAN_FLOOR, &bare_rates)], &format!("beside {}", peer.name), ratios);
    }
    report
        .note("bare scan", "of a mapping made for it: length, crc32c of the rest, owner; no order, no chain, no epoch");
    report.rate_note(ONE_BY_ONE);
    report.durability("the log was synced; reading it needs no promise");
    report.not_included("a cold page cache, decoding, any state");
}

/// Records, and the sum of their owners. Without an `end` it finds the end and verifies that nothing follows it.
fn scan(log: &Path, end: Option<Lsn>) -> (u64, u64) {
    let storage = Files::open_existing(log).expect("a log");
    let mut scan = Scan::open(&storage, Lsn::ZERO).expect("a sound log");
    if let Some(end) = end {
        scan = scan.until(end);
    }
    let (mut count, mut owners) = (0, 0);
    while let Some(entry) = scan.next().expect("a sound log") {
        owners += black_box(entry.owner);
        count += 1;
    }
    (count, owners)
}

/// The same, by hand.
fn bare(log: &Path) -> (u64, u64) {
    let (mut count, mut owners) = (0, 0);
    for path in files(log) {
        let file = std::fs::File::options().read(true).write(true).open(path).expect("a file");
        let bytes = file.metadata().expect("a file").len();
        let mut map = FileMap::new(&file, bytes).expect("a mapping");
        map.write(SEGMENT_HEADER_BYTES, bytes as usize - SEGMENT_HEADER_BYTES, |mut left| {
            while left.len() >= RECORD_BYTES / 2 {
                let field = |at: usize| u32::from_le_bytes(left[at..at + 4].try_into().expect("four bytes"));
                let (length, crc) = (field(0) as usize, field(4));
                if length == 0 {
                    break;
                }
                let whole = crc32c::crc32c_append(crc32c::crc32c(&left[..4]), &left[8..length]);
                assert_eq!(whole, crc, "a sound log");
                owners += black_box(u64::from_le_bytes(left[32..40].try_into().expect("eight bytes")));
                count += 1;
                left = &mut left[length.next_multiple_of(8)..];
            }
        });
    }
    (count, owners)
}

/// Segments in their order.
fn files(log: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(log).expect("the log's directory").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "wal")).collect();
    files.sort();
    files
}
