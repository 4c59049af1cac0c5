//! A log read back: frames alone, and replayed to the whole state; compared with a plain read and checksum of the same
//! bytes.

use crate::floor::Floor;
use crate::journal::{Journal, options};
use crate::report::{ONE_BY_ONE, Report, Size, timed};
use crate::world::{Out, World, steps};
use engine::id::OrderId;
use engine::mutation::codec;
use journal::recover;
use std::cell::RefCell;
use std::hint::black_box;
use std::path::Path;
use wal::{Files, Lsn, Scan};

const ROUNDS: usize = 5;
/// Reading and checksumming makes 2 GB a second and more from a warm cache; below a quarter of that the core was
/// shared.
const READ_FLOOR: Floor = Floor { of: "bytes read and checksummed", least: 5e8 };

pub fn run(size: Size, report: &mut Report) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let log = place.path().join("log");
    let segment_bytes = size.pick(1 << 20, 64 << 20);
    let (commands, users) = size.pick((2_000, 10), (1_000_000, 1_000));
    let live = write(&log, segment_bytes, commands, users);
    report.computed(live);

    let (mut frames_ratios, mut state_ratios, mut read_rates) = (Vec::new(), Vec::new(), Vec::new());
    let (mut bytes, mut records, mut least) = (0, 0, f64::MAX);
    for _ in 0..size.pick(1, ROUNDS) {
        let (frames, (end, count)) = timed(|| scan(&log));
        let (bare, _) = timed(|| checksum(&log));
        let (state, recovery) = timed(|| recover::recover(&log, options(segment_bytes), 1).expect("a sound log"));
        assert_eq!(recover::digest(&recovery.state), live, "the log comes back complete");
        assert!(recovery.report.records >= commands as u64, "every command left its record");
        (bytes, records) = (end, count);
        // The reference reads whole files with their zeroed rest, so its rate is reported and not its time.
        let bare = bare * bytes as f64 / files_bytes(&log) as f64;
        read_rates.push(bytes as f64 / bare);
        frames_ratios.push(bare / frames);
        state_ratios.push(bare / state);
        least = least.min(state);
    }
    let facts = facts(&log);
    report.computed(facts.to_le_bytes());
    report.figure("records", records as f64, "");
    report.figure("log", bytes as f64, "bytes");
    report.figure("to the whole state, least of the rounds", least, "s");
    report.figure("that is", records as f64 / least, "records a second");
    report.figure("and", facts as f64 / least, "facts a second");
    report.figure("and", bytes as f64 / least, "bytes a second");
    report.ratio_above(&[(&READ_FLOOR, &read_rates)], "whole state: rate beside read and checksum", state_ratios);
    report.ratio_above(&[(&READ_FLOOR, &read_rates)], "frames alone: rate beside read and checksum", frames_ratios);
    report.rate_note(ONE_BY_ONE);
    report.durability("the log was synced; reading it needs no promise");
    report.note("stream", format!("{commands} commands of {users} users, 5 rest : 4 cancel : 1 fills"));
    report.not_included("a cold page cache, a snapshot, starting the server after it");
}

/// Writes the log of a stream of commands; returns the digest of the live state.
fn write(log: &Path, segment_bytes: u64, commands: usize, users: usize) -> [u8; 32] {
    let journal = RefCell::new(Journal::create(log, segment_bytes));
    let mut record = |owner: engine::id::UserId, now: engine::time::Timestamp, payload: &[u8]| {
        journal.borrow_mut().append(codec::VERSION, owner.0, now.0, payload);
    };
    let markets = 64;
    let mut world = World::new(markets, &mut record);
    let mut out = Out::new(record);
    world.add_traders(users, &mut out);
    out.orders = vec![OrderId(0); commands];
    for (index, step) in steps(commands, users, markets).into_iter().enumerate() {
        let envelope = world.envelope(index, step, &out.orders);
        world.take(envelope, &mut out);
    }
    assert_eq!(out.refused, 0, "every command has an effect");
    drop(out);
    journal.into_inner().end();
    world.digest()
}

/// Every record, checked and skipped: bytes up to the end of the log, and number of records.
fn scan(log: &Path) -> (u64, u64) {
    let storage = Files::open_existing(log).expect("a log");
    let mut scan = Scan::open(&storage, Lsn::ZERO).expect("a sound log");
    let (mut bytes, mut count) = (0, 0);
    while let Some(entry) = scan.next().expect("a sound log") {
        bytes += wal::record::slot_bytes(black_box(entry.payload).len()) as u64;
        count += 1;
    }
    (bytes, count)
}

fn facts(log: &Path) -> u64 {
    let storage = Files::open_existing(log).expect("a log");
    let mut scan = Scan::open(&storage, Lsn::ZERO).expect("a sound log");
    let mut count = 0;
    while let Some(entry) = scan.next().expect("a sound log") {
        if entry.kind == wal::Kind::Mutations && entry.owner != 0 {
            let facts = codec::decode::<engine::mutation::Mutation>(entry.version, entry.payload);
            count += facts.expect("our own version").count() as u64;
        }
    }
    count
}

fn files(log: &Path) -> Vec<std::path::PathBuf> {
    let entries = std::fs::read_dir(log).expect("the log's directory").map(|entry| entry.expect("a file").path());
    let mut files: Vec<_> = entries.filter(|path| path.extension().is_some_and(|end| end == "wal")).collect();
    files.sort();
    files
}

fn files_bytes(log: &Path) -> u64 {
    files(log).iter().map(|path| path.metadata().expect("a file").len()).sum()
}

/// The reference: every file read into one buffer and checksummed as a whole.
fn checksum(log: &Path) -> u32 {
    let mut buffer = Vec::new();
    files(log).iter().fold(0, |crc, path| {
        buffer.clear();
        let mut file = std::fs::File::open(path).expect("a file");
        std::io::Read::read_to_end(&mut file, &mut buffer).expect("a file can be read");
        crc32c::crc32c_append(crc, &buffer)
    })
}
