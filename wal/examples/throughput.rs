//! What the log adds to the bare work: ratios to hand-written loops, taken interleaved in one run.
//!
//! `cargo run --release -p wal --example throughput -- DIRECTORY`
//!
//! Figures for orientation; published ones come from `bench`.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use wal::record::{self, HEADER_BYTES};
use wal::segment::FileMap;
use wal::storage::SegmentMap;
use wal::{Dir, Files, Kind, Lsn, Options, Progress, Running, Scan};

const ROUNDS: usize = 15;
const SEGMENT_BYTES: u64 = 32 << 20;

fn main() {
    let place = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from).join("wal-throughput");
    let _ = fs::remove_dir_all(&place);
    fs::create_dir(&place).expect("directory");
    println!("cores {}", std::thread::available_parallelism().map_or(0, |cores| cores.get()));
    for payload_bytes in [72, 128] {
        append_and_scan(&place, payload_bytes);
    }
    durable(&place);
    fs::remove_dir_all(&place).expect("clean up");
}

fn start(path: &Path, segment_bytes: u64) -> Running {
    let options = Options { segment_bytes, spares_count: 1, ..Options::default() };
    let dir = Dir::open(Files::open(path).expect("directory"), options).expect("open");
    let recovered = dir.recover(None, false).expect("recover").finish().expect("finish");
    dir.start(recovered, 0, Box::new(|_| {})).expect("start")
}

/// Appends without a sync into one warm segment, and reads them back; compared with the same bytes by hand.
fn append_and_scan(place: &Path, payload_bytes: usize) {
    let payload = vec![7u8; payload_bytes];
    let slot_bytes = record::slot_bytes(payload_bytes);
    let count = (SEGMENT_BYTES as usize - 4096) / slot_bytes;
    let (mut bare, mut ours, mut bare_scan, mut our_scan) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for round in 0..ROUNDS {
        let path = place.join("bare");
        let file = prepared_file(&path);
        let mut map = FileMap::new(&file, SEGMENT_BYTES).expect("map");
        map.touch(0, SEGMENT_BYTES as usize);
        let begin = Instant::now();
        black_box(bare_append(&mut map, slot_bytes, count, &payload));
        bare.push(rate(count, begin));
        drop(map);
        let begin = Instant::now();
        black_box(bare_read(&file, slot_bytes, count));
        bare_scan.push(rate(count, begin));
        fs::remove_file(&path).expect("remove");

        let path = place.join(format!("log-{round}"));
        let mut running = start(&path, SEGMENT_BYTES);
        let begin = Instant::now();
        for number in 0..count {
            running.log.append(Kind::Mutations, 1, number as u64, 1, &payload).expect("room");
        }
        ours.push(rate(count, begin));
        running.syncer.turn().expect("sync");
        drop(running);
        let storage = Files::open(&path).expect("directory");
        let mut scan = Scan::open(&storage, Lsn::ZERO).expect("scan").until(Lsn(count as u64));
        let begin = Instant::now();
        let mut sum = 0;
        while let Some(entry) = scan.next().expect("record") {
            sum ^= entry.owner;
        }
        our_scan.push(rate(count, begin));
        black_box(sum);
        fs::remove_dir_all(&path).expect("remove");
    }
    println!(
        "record of {slot_bytes} B ({payload_bytes} B payload), {count} records, {ROUNDS} rounds, M records/s, median \
         [min-max]"
    );
    report("append, bare memcpy+crc32c", &bare, &bare);
    report("append, log", &ours, &bare);
    report("read, bare pread+crc32c", &bare_scan, &bare_scan);
    report("read, log", &our_scan, &bare_scan);
}

fn prepared_file(path: &Path) -> File {
    let file = File::options().read(true).write(true).create(true).truncate(true).open(path).expect("file");
    for at in (0..SEGMENT_BYTES).step_by(4096) {
        file.write_all_at(&[0; 4096], at).expect("fill");
    }
    file.sync_all().expect("sync");
    file
}

/// The least that stores the same bytes: header fields, payload, checksum over both.
fn bare_append(map: &mut FileMap, slot_bytes: usize, count: usize, payload: &[u8]) -> u32 {
    let length = HEADER_BYTES + payload.len();
    map.write(0, slot_bytes * count, |bytes| {
        let mut crc = 0u32;
        for (number, slot) in bytes.chunks_exact_mut(slot_bytes).enumerate() {
            slot[0..4].copy_from_slice(&(length as u32).to_le_bytes());
            slot[8..16].copy_from_slice(&(number as u64).to_le_bytes());
            slot[16..24].copy_from_slice(&0u64.to_le_bytes());
            slot[24..32].copy_from_slice(&1u64.to_le_bytes());
            slot[32..40].copy_from_slice(&(number as u64).to_le_bytes());
            slot[40..44].copy_from_slice(&1u32.to_le_bytes());
            slot[44..48].copy_from_slice(&crc.to_le_bytes());
            slot[48..56].copy_from_slice(&[1, 0, 1, 0, 0, 0, 0, 0]);
            slot[HEADER_BYTES..length].copy_from_slice(payload);
            crc = crc32c::crc32c(&slot[8..length]);
            slot[4..8].copy_from_slice(&crc.to_le_bytes());
        }
        crc
    })
}

/// The least that reads and checks them: blocks, checksum, one field.
fn bare_read(file: &File, slot_bytes: usize, count: usize) -> u64 {
    let mut block = vec![0; (256 << 10) / slot_bytes * slot_bytes];
    let (mut offset, mut sum, mut left) = (0, 0, count);
    while left > 0 {
        let bytes = file.read_at(&mut block, offset).expect("read");
        offset += bytes as u64;
        let mut at = 0;
        while left > 0 && at < bytes {
            let slot = &block[at..];
            let length = u32::from_le_bytes(slot[0..4].try_into().expect("four")) as usize;
            let crc = u32::from_le_bytes(slot[4..8].try_into().expect("four"));
            assert!(crc32c::crc32c(&slot[8..length]) == crc);
            sum ^= u64::from_le_bytes(slot[32..40].try_into().expect("eight"));
            at += length.next_multiple_of(8);
            left -= 1;
        }
    }
    sum
}

/// One record (and 64, and 1 024) per sync on one thread, compared with writes of the same bytes into a prepared file.
fn durable(place: &Path) {
    wal::take_short_slice();
    for per_sync in [1, 64, 1024] {
        let (mut bare, mut ours) = (Vec::new(), Vec::new());
        let path = place.join("bare");
        let file = prepared_file(&path);
        let log_path = place.join("log");
        let payload = [7u8; 72];
        let bytes = vec![7u8; 128 * per_sync];
        let mut at = 0;
        for _ in 0..ROUNDS {
            // Made before the clock starts: in a server another thread does it.
            let mut running = start(&log_path, 10 * SEGMENT_BYTES);
            let begin = Instant::now();
            let mut count = 0;
            while begin.elapsed() < Duration::from_millis(200) {
                file.write_all_at(&bytes, at).expect("write");
                file.sync_data().expect("sync");
                at = (at + bytes.len() as u64) % (SEGMENT_BYTES - bytes.len() as u64);
                count += per_sync;
            }
            bare.push(rate(count, begin));
            let begin = Instant::now();
            let mut count = 0;
            while begin.elapsed() < Duration::from_millis(200) {
                for _ in 0..per_sync {
                    running.log.append(Kind::Mutations, 1, 0, 1, &payload).expect("room");
                }
                assert!(matches!(running.syncer.turn().expect("sync"), Progress::Synced(_)));
                count += per_sync;
            }
            ours.push(rate(count, begin));
            drop(running);
            fs::remove_dir_all(&log_path).expect("remove");
        }
        println!("durable, {per_sync} records of 128 B per sync, M records/s, median [min-max]");
        report("raw pwrite+fdatasync", &bare, &bare);
        report("log", &ours, &bare);
        fs::remove_file(&path).expect("remove");
    }
}

fn rate(count: usize, begin: Instant) -> f64 {
    count as f64 / begin.elapsed().as_secs_f64() / 1e6
}

fn report(what: &str, rates: &[f64], reference: &[f64]) {
    let middle = |rates: &[f64]| {
        let mut sorted = rates.to_vec();
        sorted.sort_by(f64::total_cmp);
        (sorted[0], sorted[sorted.len() / 2], sorted[sorted.len() - 1])
    };
    let (low, median, high) = middle(rates);
    let ratios: Vec<f64> = rates.iter().zip(reference).map(|(ours, bare)| ours / bare).collect();
    let (ratio_low, ratio, ratio_high) = middle(&ratios);
    println!("  {what:<28} {median:>8.4} [{low:.4}-{high:.4}]   ratio {ratio:.3} [{ratio_low:.3}-{ratio_high:.3}]");
}
