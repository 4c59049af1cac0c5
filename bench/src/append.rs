//! Cost of an append without a sync, compared with a loop that only copies and checksums into an equally prepared
//! mapping, and with a log that returns for each record.

use crate::floor::Floor;
use crate::journal::{Journal, PAYLOAD, RECORD_BYTES, read_back};
use crate::peers;
use crate::report::{ONE_BY_ONE, Report, Size, median, timed};
use std::hint::black_box;
use tempfile::TempDir;
use wal::segment::FileMap;
use wal::storage::SegmentMap;

const ROUNDS: usize = 9;
/// Records of a round.
const TURNS: u64 = 200;

/// A core of the kind for which the goals were set makes 36 million; below a third of that the core was shared.
const LOOP_FLOOR: Floor = Floor { of: "bare copy and checksum", least: 12_000_000.0 };

pub fn run(size: Size, report: &mut Report) {
    let count = size.pick(1_000, 400_000);
    let mut beside = Beside { loops: Vec::new(), peers: vec![Vec::new(); peers::APPEND.len()], rates: Vec::new() };
    let mut least = f64::MAX;
    for _ in 0..size.pick(1, ROUNDS) {
        let place = tempfile::tempdir().expect("a temporary directory");
        // The loop's file first: the creation of the log's spares separates it from the measurement, like the log's own
        // files.
        let mut bare = Bare::warm(count as usize);
        let directory = place.path().join("log");
        let mut log = Journal::create(&directory, size.pick(1 << 20, 64 << 20));
        // In short alternating intervals, of which the median counts: an interval with a shared core is an outlier.
        let (mut ours, mut loops) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            let numbers = turn * count / TURNS..(turn + 1) * count / TURNS;
            let (seconds, ()) = timed(|| {
                for number in numbers.clone() {
                    black_box(log.append_one(black_box(number)));
                }
            });
            ours.push(seconds);
            loops.push(timed(|| numbers.for_each(|number| bare.append(black_box(number)))).0);
        }
        let (ours, loops) = (TURNS as f64 * median(&ours), TURNS as f64 * median(&loops));
        let appended = log.running.marks.appended().0;
        assert_eq!(appended, count + 1, "every append is counted, the start's own record too");
        beside.loops.push(loops / ours);
        beside.rates.push(count as f64 / loops);
        least = least.min(ours * 1e9 / count as f64);
        if report.with_peers() {
            for (peer, ratios) in peers::APPEND.iter().zip(&mut beside.peers) {
                let fewer = (count / 10).max(TURNS);
                let theirs = TURNS as f64 * median(&(peer.append)(&place.path().join(peer.name), fewer, TURNS));
                ratios.push((theirs / fewer as f64) / (ours / count as f64));
            }
        }
        log.end();
        let (kept, digest) = read_back(&directory);
        assert_eq!(kept, count, "every record is read back");
        report.computed(digest);
    }
    report.figure("append of 128 bytes, least of the rounds", least, "ns");
    report.figure("that is", 1e9 / least, "records a second");
    let Beside { loops, peers, rates } = beside;
    report.ratio_above(&[(&LOOP_FLOOR, &rates)], "rate beside bare copy and checksum", loops);
    for (peer, ratios) in peers::APPEND.iter().zip(peers).filter(|(_, ratios)| !ratios.is_empty()) {
        report.ratio_above(&[(&LOOP_FLOOR, &rates)], &format!("rate beside {}", peer.name), ratios);
    }
    report
        .note("bare loop", "into a warm mapping of a file, as the log: 120 bytes copied, their crc32c, length and crc");
    report.durability("process: in the mapping, not synced");
    report.rate_note(ONE_BY_ONE);
    report.not_included("any sync, encoding the facts, preparing segments");
}

/// Ratios of the rounds, and the loop's own rates.
struct Beside {
    loops: Vec<f64>,
    peers: Vec<Vec<f64>>,
    rates: Vec<f64>,
}

/// The reference: a file prepared like a segment, with only the copy and the checksum.
struct Bare {
    map: FileMap,
    at: usize,
    record: [u8; RECORD_BYTES - 8],
    _place: TempDir,
}

impl Bare {
    fn warm(count: usize) -> Bare {
        let place = tempfile::tempdir().expect("a temporary directory");
        let bytes = (count as u64 * RECORD_BYTES as u64).next_multiple_of(4_096);
        let file = std::fs::File::options().read(true).write(true).create_new(true).open(place.path().join("bare"));
        let file = file.expect("a new file");
        for page in 0..bytes / 4_096 {
            std::os::unix::fs::FileExt::write_all_at(&file, &[0; 4_096], page * 4_096).expect("room on the disk");
        }
        file.sync_all().expect("the disk syncs");
        let mut map = FileMap::new(&file, bytes).expect("a mapping");
        map.touch(0, bytes as usize);
        let mut record = [0; RECORD_BYTES - 8];
        record[RECORD_BYTES - 8 - PAYLOAD.len()..].copy_from_slice(&PAYLOAD);
        Bare { map, at: 0, record, _place: place }
    }

    #[inline]
    fn append(&mut self, number: u64) {
        self.record[..8].copy_from_slice(&number.to_le_bytes());
        let record = &self.record;
        self.map.write(self.at, RECORD_BYTES, |slot| {
            slot[8..].copy_from_slice(black_box(record));
            let crc = crc32c::crc32c(&slot[8..]);
            slot[..4].copy_from_slice(&(RECORD_BYTES as u32).to_le_bytes());
            slot[4..8].copy_from_slice(&crc.to_le_bytes());
        });
        self.at += RECORD_BYTES;
    }
}
