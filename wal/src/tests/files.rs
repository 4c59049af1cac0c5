//! The log over real files: what the death of a process leaves, who may own a directory, and what a sync costs the
//! device.

use std::fs;
use std::io::{BufRead, BufReader, Write};

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use crate::Tail;
use crate::fault::Rng;
use crate::segment::MIN_SEGMENT_BYTES;
use crate::{Dir, Error, Fault, Files, Full, Kind, Lsn, Options, PlaceFault, Point, Points, Prepared, Progress};
use crate::{Running, Scan};

pub(super) fn options(segment_bytes: u64) -> Options {
    Options { segment_bytes, reserve_bytes: 0, ..Options::default() }
}

/// A directory inside a temporary one. It does not exist yet.
pub(super) fn place() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("temporary directory");
    let path = parent.path().join("log");
    (parent, path)
}

/// Repeats an opening while the lock is held, for a minute at most. A directory whose owner has gone may be locked for a
/// moment: other tests start programs, and between fork and exec a child holds every lock of its parent.
pub(super) fn unlocked<T>(mut open: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 0..6_000 {
        match open() {
            Err(Error::Locked { .. }) => thread::sleep(Duration::from_millis(10)),
            opened => return opened,
        }
    }
    open()
}

fn opened(path: &Path, options: &Options) -> Result<Dir<Files>, Error> {
    unlocked(|| Dir::open(Files::open(path)?, options.clone()))
}

pub(super) fn start(path: &Path, options: Options) -> (Running, Vec<(Kind, Vec<u8>)>) {
    let dir = opened(path, &options).expect("open");
    let snapshot = dir.newest_snapshot().expect("snapshots");
    let mut recovery = dir.recover(snapshot.as_ref(), false).expect("recover");
    let mut found = Vec::new();
    while let Some(entry) = recovery.next().expect("record") {
        found.push((entry.kind, entry.payload.to_vec()));
    }
    let recovered = recovery.finish().expect("finish");
    (dir.start(recovered, 1, Box::new(|_| {})).expect("start"), found)
}

/// Appends; prepares and syncs on this thread if there is no room.
pub(super) fn append(running: &mut Running, payload: &[u8]) -> Lsn {
    loop {
        match running.log.append(Kind::Mutations, 1, 5, 7, payload) {
            Ok(lsn) => return lsn,
            Err(Full) => {
                running.preparer.turn().expect("prepare");
                running.syncer.turn().expect("sync");
            }
        }
    }
}

#[test]
fn records_come_back_over_rolls_and_restarts() {
    let (_parent, path) = place();
    let mut expected = Vec::new();
    for life in 0..4u32 {
        let (mut running, found) = start(&path, options(MIN_SEGMENT_BYTES));
        assert_eq!(found, expected, "life {life}");
        assert_eq!(running.epoch, life + 1);
        expected.push((Kind::EpochStart, Vec::new()));
        for number in 0..200u32 {
            let payload = format!("record {number} of life {life}").into_bytes();
            append(&mut running, &payload);
            expected.push((Kind::Mutations, payload));
        }
        if life == 2 {
            running.log.append_clean_stop(9).expect("room");
            expected.push((Kind::CleanStop, Vec::new()));
            let last = running.log.last_lsn();
            assert_eq!(running.syncer.finish().expect("sync"), last);
        }
        // Other lives end without a sync: the files hold all stored records nevertheless.
    }
    let mut scan = Scan::open(&Files::open_existing(&path).expect("directory"), Lsn::ZERO).expect("scan");
    let mut lsn = Lsn::ZERO;
    while let Some(entry) = scan.next().expect("record") {
        lsn = lsn.next();
        assert_eq!((entry.lsn, &entry.kind), (lsn, &expected[lsn.0 as usize - 1].0));
    }
    assert_eq!((lsn.0 as usize, scan.tail()), (expected.len(), Some(Tail::Clean)));
}

#[test]
fn a_second_start_reports_the_owner() {
    let (_parent, path) = place();
    let (running, _) = start(&path, options(MIN_SEGMENT_BYTES));
    let second = Dir::open(Files::open(&path).expect("directory"), options(MIN_SEGMENT_BYTES));
    assert!(matches!(second, Err(Error::Locked { pid }) if pid == std::process::id()));
    let text = fs::read_to_string(path.join("lock")).expect("lock file");
    assert_eq!(text, format!("pid {}\nepoch 1\n", std::process::id()));
    // The lock lives as long as any part of the log.
    let Running { log, syncer, preparer, .. } = running;
    drop((log, syncer));
    assert!(Dir::open(Files::open(&path).expect("directory"), options(MIN_SEGMENT_BYTES)).is_err());
    drop(preparer);
    assert!(opened(&path, &options(MIN_SEGMENT_BYTES)).is_ok(), "the lock is released with the last part");
}

/// The tests that open a directory again do not depend on what others start meanwhile.
#[test]
fn a_lock_of_a_moment_is_waited_for() {
    let (_parent, path) = place();
    let open = || Dir::open(Files::open(&path)?, options(MIN_SEGMENT_BYTES));
    let mut held = Some(open().expect("a new directory"));
    let mut tries = 0;
    let opened = unlocked(|| {
        tries += 1;
        held = held.take().filter(|_| tries < 3);
        open()
    });
    assert!(opened.is_ok() && tries >= 3, "{tries}");
    // Another error ends it.
    let refused = unlocked(|| Dir::open(Files::open_existing(path.join("none"))?, options(MIN_SEGMENT_BYTES)));
    assert!(matches!(refused, Err(Error::Io { .. })));
}

#[test]
fn directory_and_files_are_for_their_owner_only() {
    let (_parent, path) = place();
    let (mut running, _) = start(&path, options(MIN_SEGMENT_BYTES));
    for _ in 0..100 {
        append(&mut running, &[1; 100]);
    }
    running.syncer.turn().expect("sync");
    let writer = running.snapshots.create(Lsn(1), 0).expect("snapshot");
    running.snapshots.commit(writer, [0; 32]).expect("snapshot");
    assert_eq!(fs::metadata(&path).expect("directory").mode() & 0o777, 0o700);
    let mut files = 0;
    for entry in fs::read_dir(&path).expect("list") {
        let entry = entry.expect("entry");
        assert_eq!(entry.metadata().expect("file").mode() & 0o777, 0o600, "{:?}", entry.file_name());
        files += 1;
    }
    println!("files checked: {files}");
    assert!(files > 5);
}

#[test]
fn places_that_cannot_be_trusted_are_refused() {
    let (parent, path) = place();
    let fault = |path: &Path| match Files::open(path) {
        Err(Error::Place { fault, .. }) => Some(fault),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    assert_eq!(fault(&path), None);
    let link = parent.path().join("link");
    symlink(&path, &link).expect("link");
    assert_eq!(fault(&link), Some(PlaceFault::SymbolicLink));
    let file = parent.path().join("file");
    fs::write(&file, "").expect("file");
    assert_eq!(fault(&file), Some(PlaceFault::Type));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o750)).expect("mode");
    assert_eq!(fault(&path), Some(PlaceFault::Mode(0o750)));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).expect("mode");
    assert!(matches!(Files::open_existing(parent.path().join("none")), Err(Error::Io { .. })));

    // Inside: a link, a pipe or an open mode in place of a file of the log.
    drop(start(&path, options(MIN_SEGMENT_BYTES)));
    let epoch = path.join("epoch");
    let aside = path.join("aside");
    let refused = || match opened(&path, &options(MIN_SEGMENT_BYTES)) {
        Err(Error::Place { file, fault }) if file == "epoch" => Some(fault),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    };
    fs::set_permissions(&epoch, fs::Permissions::from_mode(0o644)).expect("mode");
    assert_eq!(refused(), Some(PlaceFault::Mode(0o644)));
    fs::set_permissions(&epoch, fs::Permissions::from_mode(0o600)).expect("mode");
    fs::rename(&epoch, &aside).expect("rename");
    symlink(&aside, &epoch).expect("link");
    assert_eq!(refused(), Some(PlaceFault::SymbolicLink));
    fs::remove_file(&epoch).expect("remove");
    assert!(Command::new("mkfifo").arg(&epoch).status().expect("mkfifo").success());
    assert_eq!(refused(), Some(PlaceFault::NotPlain));
    fs::remove_file(&epoch).expect("remove");
    // Without its epoch file a directory with segments is not a new one.
    let dir = opened(&path, &options(MIN_SEGMENT_BYTES)).expect("open");
    let missing = dir.recover(None, false);
    assert!(matches!(missing, Err(Error::Format { fault: Fault::Missing, .. })));
    drop((missing, dir));
    fs::rename(&aside, &epoch).expect("rename");
    drop(start(&path, options(MIN_SEGMENT_BYTES)));
}

/// Parameters of the child below, in its environment: directory, point and count of its death, seed.
const CHILD: [&str; 4] = ["WAL_DIR", "WAL_POINT", "WAL_COUNT", "WAL_SEED"];

/// In place of a point: the child appends until it is killed.
const NEVER: &str = "never";

/// Records within which a child passes its point.
const RECORDS: usize = 5_000;

fn payload_of(number: u64) -> Vec<u8> {
    let mut rng = Rng::new(number);
    (0..rng.below(700)).map(|_| rng.next() as u8).collect()
}

/// The process that dies: appends numbered records, prints them, syncs, takes snapshots, recycles, until its point is
/// passed or it is killed. By hand, in an existing directory:
/// `WAL_DIR=… WAL_POINT=… WAL_COUNT=1 WAL_SEED=1 cargo test -p wal --lib child -- --ignored --nocapture`
#[test]
#[ignore = "ends in the middle; started by the tests below"]
fn child() {
    let [path, point, count, seed] = CHILD.map(|name| std::env::var(name).expect("set by the parent"));
    // However late its parent reads: a number of records would end it before the kill.
    let records = if point == NEVER { usize::MAX } else { RECORDS };
    let left = AtomicU64::new(count.parse().expect("a number"));
    let points = Points::new(move |passed| {
        if passed.name() == point && left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // No destructor runs, nothing is flushed.
            std::process::abort();
        }
    });
    let mut rng = Rng::new(seed.parse().expect("a number"));
    let options = Options { points, ..options(MIN_SEGMENT_BYTES) };
    let (mut running, _) = start(Path::new(&path), options);
    let mut stdout = std::io::stdout();
    for _ in 0..records {
        let number = running.log.last_lsn().next().0;
        let lsn = append(&mut running, &payload_of(number));
        assert_eq!(lsn.0, running.log.last_lsn().0);
        // Not println: the test harness would capture it.
        writeln!(stdout, "acked {lsn}").and_then(|()| stdout.flush()).expect("the parent reads");
        match rng.below(40) {
            0..10 => drop(running.syncer.turn().expect("sync")),
            10..12 => {
                running.syncer.turn().expect("sync");
                let writer = running.snapshots.create(running.marks.synced(), running.log.last_crc());
                let mut writer = writer.expect("snapshot");
                writer.write_all(&payload_of(number)).expect("snapshot");
                running.snapshots.commit(writer, [1; 32]).expect("snapshot");
                if let Some(covered) = running.snapshots.covered().expect("snapshots") {
                    running.preparer.recycle(covered).expect("recycle");
                }
            }
            _ => {}
        }
    }
}

/// Runs a child until it dies (or kills it after `kill_after` lines) and returns the last LSN that it reported as
/// appended.
fn run_child(path: &Path, point: &str, count: u64, seed: u64, kill_after: Option<u64>) -> Option<Lsn> {
    let mut child = Command::new(std::env::current_exe().expect("path of this test"))
        .args(["--exact", "tests::files::child", "--ignored", "--nocapture"])
        .envs(CHILD.into_iter().zip([path.to_str().expect("text"), point, &count.to_string(), &seed.to_string()]))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("spawn");
    let mut acked = None;
    let mut lines = 0;
    for line in BufReader::new(child.stdout.take().expect("piped")).lines() {
        let line = line.expect("text");
        let Some(lsn) = line.strip_prefix("acked ") else { continue };
        // The last line may be cut in the middle of its number; the child's death writes no newline.
        acked = Some(Lsn(lsn.parse().expect("a number")));
        lines += 1;
        if kill_after == Some(lines) {
            child.kill().expect("SIGKILL");
        }
    }
    let status = child.wait().expect("wait");
    // By its own hand or its parent's: one that failed in another way would prove nothing.
    let signal = if kill_after.is_some() { libc::SIGKILL } else { libc::SIGABRT };
    assert_eq!(status.signal(), Some(signal), "the child had to die at {point} × {count}: {status}");
    acked
}

/// All acknowledged records are there, in order and unchanged, and no others.
fn check_after_death(path: &Path, acked: Option<Lsn>, what: &str) {
    let dir = opened(path, &options(MIN_SEGMENT_BYTES)).expect("open");
    let snapshot = dir.newest_snapshot().expect("snapshots");
    let mut recovery = dir.recover(snapshot.as_ref(), false).expect("recover");
    let mut next = snapshot.map_or(Lsn::ZERO, |snapshot| snapshot.lsn).next();
    while let Some(entry) = recovery.next().unwrap_or_else(|error| panic!("{what}: {error}")) {
        assert_eq!(entry.lsn, next, "{what}");
        if entry.kind == Kind::Mutations {
            assert_eq!(entry.payload, payload_of(entry.lsn.0), "{what}: LSN {next}");
        }
        next = next.next();
    }
    // Only read: the next child repairs it, and may die in the middle of that.
    let last = next.before();
    assert!(acked.is_none_or(|acked| last >= acked), "{what}: acknowledged {acked:?}, found {last}");
}

#[test]
fn death_at_every_point_loses_nothing_acknowledged() {
    let seed = 0xdead_0001;
    println!("seed {seed:#x}");
    let mut rng = Rng::new(seed);
    let mut deaths = 0;
    for point in Point::ALL {
        // One directory for several deaths: each starts where the one before died.
        let (_parent, path) = place();
        if point == Point::Recovery {
            run_child(&path, "after-append", 30, 1, None);
        }
        for _ in 0..4 {
            let count_max = match point {
                Point::BeforeAppend | Point::AfterAppend => 60,
                Point::Recovery => 2,
                _ => 3,
            };
            let count = 1 + rng.below(count_max);
            let acked = run_child(&path, point.name(), count, rng.next() >> 1, None);
            check_after_death(&path, acked, &format!("{} × {count}", point.name()));
            deaths += 1;
        }
    }
    println!("deaths at points: {deaths}");
    assert_eq!(deaths, 40);
}

#[test]
fn a_kill_at_any_moment_loses_nothing_acknowledged() {
    let seed = 0xdead_0002;
    println!("seed {seed:#x}");
    let mut rng = Rng::new(seed);
    let (_parent, path) = place();
    let kills = 12;
    for kill in 0..kills {
        let acked = run_child(&path, NEVER, 1, rng.next() >> 1, Some(1 + rng.below(200)));
        check_after_death(&path, acked, &format!("kill {kill}"));
    }
    println!("kills: {kills}");
}

/// A lost wake-up would leave the sync thread asleep for ever, and this test with it.
#[test]
fn the_sync_thread_sleeps_and_is_never_left_asleep() {
    let (_parent, path) = place();
    let (running, _) = start(&path, options(1 << 20));
    let Running { mut log, mut syncer, mut preparer, marks, .. } = running;
    let seed = 0x51ee_0001;
    println!("seed {seed:#x}");
    let mut rng = Rng::new(seed);
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        let sync_thread = scope.spawn(|| {
            crate::take_short_slice();
            while !stopped.load(Ordering::Acquire) {
                if syncer.turn().expect("sync") == Progress::Idle {
                    syncer.wait(Duration::from_secs(3600));
                }
            }
        });
        let rounds = 3_000;
        for _ in 0..rounds {
            for _ in 0..1 + rng.below(3) {
                while log.append(Kind::Mutations, 1, 0, 0, &[5; 100]).is_err() {
                    preparer.turn().expect("prepare");
                }
            }
            while marks.synced() < log.last_lsn() {
                thread::yield_now();
            }
            // The test must hit the moment at which it falls asleep.
            for _ in 0..rng.below(3_000) {
                std::hint::spin_loop();
            }
        }
        stopped.store(true, Ordering::Release);
        while !sync_thread.is_finished() {
            marks.wake();
            thread::yield_now();
        }
        println!("wake-ups: {rounds}");
    });
    assert_eq!(marks.synced(), log.last_lsn());
}

/// Bytes written to the device of this directory so far, by all processes.
fn device_bytes(path: &Path) -> Option<u64> {
    let device = fs::metadata(path).ok()?.dev();
    let (major, minor) = ((device >> 8) & 0xfff, (device & 0xff) | ((device >> 12) & 0xfff00));
    let stat = fs::read_to_string(format!("/sys/dev/block/{major}:{minor}/stat")).ok()?;
    // Field 7: sectors of 512 bytes written.
    stat.split_whitespace().nth(6)?.parse::<u64>().ok().map(|sectors| sectors * 512)
}

/// Bytes of pages that this thread made dirty so far, without those of other threads.
fn dirtied_bytes() -> Option<u64> {
    let text = fs::read_to_string("/proc/thread-self/io").ok()?;
    text.lines().find_map(|line| line.strip_prefix("write_bytes: "))?.parse().ok()
}

#[test]
fn a_synced_record_writes_one_page() {
    const BYTES_MAX: u64 = 4_608;
    let (_parent, path) = place();
    let mut options = options(1 << 20);
    options.spares_count = 8;
    crate::take_short_slice();
    for life in ["new", "reopened", "reopened, in a spare of before"] {
        let (mut running, _) = start(&path, options.clone());
        while running.preparer.turn().expect("prepare") == Prepared::One {}
        if life.ends_with("before") {
            while running.log.room(0) >= 8 << 20 {
                running.log.append(Kind::Padding, 1, 0, 0, &[0; 4000]).expect("room");
            }
        }
        running.syncer.turn().expect("sync");
        if device_bytes(&path).is_none() {
            println!("SKIPPED: the device of {} shows no statistics", path.display());
            return;
        }
        let (mut best, mut dirtied) = (u64::MAX, u64::MAX);
        // Other processes write to the device too, and in bursts: the quietest of many short rounds is the log's own
        // share.
        for _ in 0..25 {
            let before = (device_bytes(&path).expect("as above"), dirtied_bytes());
            let records = 30;
            for _ in 0..records {
                running.log.append(Kind::Mutations, 1, 0, 0, &[3; 72]).expect("room");
                running.syncer.turn().expect("sync");
            }
            best = best.min((device_bytes(&path).expect("as above") - before.0) / records);
            if let (Some(before), Some(after)) = (before.1, dirtied_bytes()) {
                dirtied = dirtied.min((after - before) / records);
            }
        }
        println!("{life}: {best} bytes on the device and {dirtied} bytes of pages for each synced record of 128");
        // Without its own count the log's share cannot be distinguished.
        if best > BYTES_MAX && (dirtied <= BYTES_MAX || dirtied == u64::MAX) {
            println!("SKIPPED: other processes write to this device all the time");
            continue;
        }
        assert!(best <= BYTES_MAX, "{life}: {best} bytes for a record");
    }
}

/// The reason for the rule of 4 KiB writes: the same stores into a file that was filled a megabyte at a time.
#[test]
fn a_segment_filled_in_large_writes_would_write_more() {
    use crate::storage::{SegmentMap, Storage, StoredFile};
    let (_parent, path) = place();
    let storage = Files::open(&path).expect("directory");
    let file = storage.create("control").expect("file");
    for at in 0..4 {
        file.write_at(&vec![0; 1 << 20], at << 20).expect("fill");
    }
    file.sync().expect("sync");
    let mut map = storage.map(&file, 4 << 20).expect("map");
    let before = dirtied_bytes();
    for at in 0..20 {
        map.write(at * 128, 128, |bytes| bytes.fill(3));
        file.sync_range(0, 4096).expect("sync");
    }
    match (before, dirtied_bytes()) {
        (Some(before), Some(after)) if (after - before) / 20 > 4_608 => {
            println!("filled in large writes: {} bytes of pages for each record", (after - before) / 20);
        }
        _ => println!("SKIPPED: this kernel keeps small pages anyway, or does not report them"),
    }
}
