//! Files of a data directory, as a start reads them, damaged in any way.

use engine::format::Formats;
use engine::id::UserId;
use engine::market::mutation::MarketMutation;
use engine::mutation::{Mutation, codec};
use engine::shard::replay::{State, fold};
use engine::shard::snapshot as states;
use std::cell::RefCell;
use std::io::Read;
use wal::fault::Faults;
use wal::record::{decode, encode, slot_bytes};
use wal::{Dir, Kind, Lsn, Options, Recovery, Scan};

const SEGMENT: &str = "00000000000000000001.wal";
const SEGMENT_BYTES: u64 = 8_192;

/// An accepted record is encoded to the same bytes.
pub fn record(bytes: &[u8]) {
    let Ok(record) = decode(bytes) else { return };
    let mut slot = vec![0; slot_bytes(record.payload.len())];
    let crc = encode(&mut slot, &record.header, record.payload);
    let length = bytes.len().min(slot.len());
    assert_eq!(crc, record.crc);
    let used = wal::record::HEADER_BYTES + record.payload.len();
    assert_eq!(&slot[..used.min(length)], &bytes[..used.min(length)]);
}

/// Decoded facts are encoded to the same bytes, for users and for markets, in every format.
pub fn facts(bytes: &[u8]) {
    fn again<F: codec::Fact>(version: u16, bytes: &[u8]) {
        let facts: Result<Vec<F>, _> = codec::decode::<F>(version, bytes).expect("a known format").collect();
        let mut count = 0;
        let each = codec::each::<F>(version, bytes, |_| count += 1);
        assert_eq!(facts.is_ok(), each.is_ok(), "both decoders agree");
        if let Ok(facts) = facts {
            assert_eq!(facts.len(), count);
            let mut out = Vec::new();
            codec::encode(version, &facts, &mut out);
            assert_eq!(out, bytes, "facts are encoded to other bytes");
        }
    }
    for version in codec::VERSION_FIRST..=codec::VERSION {
        again::<Mutation>(version, bytes);
        again::<MarketMutation>(version, bytes);
    }
}

/// A decoded snapshot equals that of its state.
pub fn snapshot(bytes: &[u8]) {
    let Ok(state) = states::read(&mut &bytes[..], 1) else { return };
    let users: Vec<_> = state.users.iter().collect();
    let mut out = Vec::new();
    let newest = u16::from_le_bytes([bytes[0], bytes[1]]) == states::VERSION;
    let formats = if newest { Formats::Newest } else { Formats::Previous };
    states::write(formats, &state.markets, &users, &mut out).expect("writing to memory succeeds");
    assert_eq!(out, bytes, "a state is encoded to other bytes");
}

thread_local! {
    /// A directory with one small segment, a few records and a clean stop.
    static SOUND: RefCell<Faults> = RefCell::new(sound());
}

fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES, spares_count: 1, reserve_bytes: 0, ..Options::default() }
}

fn sound() -> Faults {
    let disk = Faults::new(1);
    let dir = Dir::open(disk.clone(), options()).expect("an empty directory");
    let recovered = dir.recover(None, false).and_then(Recovery::finish).expect("nothing to recover");
    let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("room");
    for number in 0..5_u8 {
        running.log.append(Kind::Mutations, codec::VERSION, 1, u64::from(number), &[number; 40]).expect("room");
    }
    drop(running);
    disk.kill();
    disk
}

fn sound_file(name: &str) -> Vec<u8> {
    SOUND.with_borrow(|disk| disk.contents(name)).expect("a file of a directory")
}

/// A start on the intact directory with one file replaced: it starts or refuses, and its records are dense.
fn start_with(name: &str, bytes: &[u8]) {
    let disk = SOUND.with_borrow(|disk| disk.copy(2));
    disk.put(name, bytes);
    if let Ok(mut scan) = Scan::open_all(&disk) {
        let mut last = Lsn(0);
        while let Ok(Some(entry)) = scan.next() {
            assert!(last == Lsn(0) || entry.lsn == Lsn(last.0 + 1), "LSNs are dense: {} after {}", entry.lsn.0, last.0);
            last = entry.lsn;
        }
    }
    let Ok(dir) = Dir::open(disk, options()) else { return };
    let Ok(snapshot) = dir.newest_snapshot() else { return };
    let Ok(mut recovery) = dir.recover(snapshot.as_ref(), false) else { return };
    while let Ok(Some(_)) = recovery.next() {}
    let _ = recovery.finish();
}

pub fn segment(bytes: &[u8]) {
    // A segment has its length for any content; other lengths are tried unchanged.
    let mut whole = bytes.to_vec();
    if bytes.len() < SEGMENT_BYTES as usize {
        whole.resize(SEGMENT_BYTES as usize, 0);
    }
    start_with(SEGMENT, &whole);
    start_with(SEGMENT, bytes);
}

pub fn epoch(bytes: &[u8]) {
    start_with("epoch", bytes);
}

/// Target, name and bytes of the first files of these corpora.
pub fn sound_files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let mut segment = sound_file(SEGMENT);
    let end = segment.iter().rposition(|byte| *byte != 0).expect("records") + 1;
    segment.truncate(end);
    let record = segment[wal::segment::SEGMENT_HEADER_BYTES..].to_vec();
    let mut files = vec![
        ("segment", "five-records", segment),
        ("epoch", "first", sound_file("epoch")),
        ("record", "first", record),
    ];
    files.extend(golden_files());
    files
}

/// The first record with each kind of fact of the golden log, and the state after the log as a snapshot.
fn golden_files() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let packed = include_bytes!("../../crash/golden/2026-11-23/stopped/data/00000000000000000001.wal.gz");
    let mut log = Vec::new();
    flate2::read::GzDecoder::new(&packed[..]).read_to_end(&mut log).expect("it is gzip");
    let (mut files, mut at) = (Vec::new(), wal::segment::SEGMENT_HEADER_BYTES);
    let mut state = State::new(1);
    const NAMES: [&str; 24] = [
        "01", "02", "03", "04", "05", "06", "07", "08", "09", "10", "11", "12", "13", "14", "15", "16", "17", "18",
        "19", "20", "21", "22", "23", "24",
    ];
    let mut shapes = std::collections::BTreeSet::new();
    while let Ok(record) = decode(&log[at..]) {
        at += slot_bytes(record.payload.len());
        if record.header.kind != Kind::Mutations {
            continue;
        }
        fold(&mut state, UserId(record.header.owner), record.header.version, record.payload).expect("golden facts");
        // The first four bytes are the first fact's number.
        let shape = (record.header.owner == 0, record.payload.first_chunk::<4>().copied());
        if shapes.insert(shape) && files.len() < NAMES.len() {
            files.push(("facts", NAMES[files.len()], record.payload.to_vec()));
        }
    }
    let users: Vec<_> = state.users.iter().collect();
    let mut snapshot = Vec::new();
    states::write(Formats::Previous, &state.markets, &users, &mut snapshot).expect("writing to memory succeeds");
    files.push(("snapshot", "golden", snapshot));
    files
}
