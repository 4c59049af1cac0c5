//! Full disks and recovery from them, reported room, recycling, snapshots and their damage, failing syncs.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::{Call, Faults, Rng};
use crate::tests::{append, put_changed, snapshot, start, tiny};
use crate::{Dir, Error, Fault, Full, Kind, Lsn, Options, Point, Points, Prepared, Progress, Running, sealed_lsn};

fn append_until_full(running: &mut Running<Faults>) -> u64 {
    let mut bytes = 0;
    while running.log.append(Kind::Mutations, 0, 0, 0, &[1; 72]).is_ok() {
        bytes += 128;
    }
    bytes
}

#[test]
fn a_full_disk_is_reported_and_temporary() {
    let world = Faults::new(1);
    let (mut running, _) = start(&world, false).expect("new");
    world.set_capacity(Some(10_000));
    assert_eq!(running.preparer.turn().expect("no error"), Prepared::One);
    assert_eq!(running.preparer.turn().expect("no error"), Prepared::Enough);
    let promised = running.log.room(128);
    let taken = append_until_full(&mut running);
    assert!(taken >= promised && taken < promised + 4096, "promised {promised}, took {taken}");
    let last = running.log.last_lsn();
    assert_eq!(running.log.append(Kind::Mutations, 0, 0, 0, &[1; 72]), Err(Full), "and nothing was written");
    assert_eq!((running.log.last_lsn(), running.marks.appended()), (last, last));
    // A small record may still fit where a larger one did not: the reserve for urgent records.
    assert!(running.log.room(56) <= 128);
    // Appended records are synced and named although the disk is full.
    assert_eq!(running.syncer.turn().expect("no error"), Progress::Synced(last));
    assert!(
        matches!(running.preparer.turn().expect("no error"), Prepared::DiskFull { free_bytes } if free_bytes < 4096)
    );
    assert!(!world.names().iter().any(|name| name.ends_with(".making")), "no unfinished file takes room");
    // A snapshot fails without harm.
    let mut writer = running.snapshots.create(last, running.log.last_crc()).expect("an empty file");
    let failed = writer.write_all(&[0; 400_000]).map_err(Error::io("write", "snapshot"));
    assert!(failed.expect_err("no room").is_full());
    drop(writer);
    world.set_capacity(None);
    assert_eq!(running.preparer.turn().expect("no error"), Prepared::One);
    running.log.append(Kind::Mutations, 0, 0, 0, &[1; 72]).expect("room again");
    running.syncer.turn().expect("no error");
    world.kill();
    let (running, found) = start(&world, false).expect("whole");
    assert_eq!(found.last().expect("records").0, last.next());
    drop(running);
}

#[test]
fn a_reserve_of_the_disk_is_left_alone() {
    let world = Faults::new(2);
    let options = Options { reserve_bytes: 50_000, ..tiny() };
    let dir = Dir::open(world.clone(), options).expect("open");
    let recovered = dir.recover(None, false).expect("new").finish().expect("new");
    let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("start");
    world.set_capacity(Some(55_000));
    assert!(matches!(running.preparer.turn(), Ok(Prepared::DiskFull { .. })));
    world.set_capacity(Some(60_000));
    assert_eq!(running.preparer.turn().expect("no error"), Prepared::One);
}

/// A start does not wait for existing spares unless its own first record needs one. None is created again.
#[test]
fn spares_of_the_previous_process_are_taken_in_the_next_turns() {
    for is_full in [false, true] {
        let world = Faults::new(8);
        let (mut running, _) = start(&world, false).expect("new");
        append(&mut running, b"one");
        while is_full && running.log.append(Kind::Mutations, 0, 0, 0, &[]).is_ok() {}
        assert_eq!(running.preparer.turn().expect("room"), Prepared::One);
        running.syncer.turn().expect("no failure");
        let names = world.names();
        world.kill();
        let (mut running, _) = start(&world, false).expect("whole");
        assert_eq!((running.marks.spares_ready(), world.names()), (0, names.clone()), "full: {is_full}");
        if !is_full {
            assert_eq!(running.preparer.turn().expect("room"), Prepared::One);
            assert_eq!((running.marks.spares_ready(), world.names()), (1, names), "it is the same file");
        }
    }
    println!("starts: 2 cases");
}

/// Without a free block on the disk the start gives up a spare for its epoch file. The segment still has room.
#[test]
fn a_start_on_a_full_disk_gives_up_a_spare() {
    let is_spare = |name: &String| name.ends_with(".spare");
    for count in [0, 1] {
        let world = Faults::new(9);
        let (mut running, _) = start(&world, false).expect("new");
        let (lsn, ..) = append(&mut running, b"one");
        (0..count).for_each(|_| assert_eq!(running.preparer.turn().expect("room"), Prepared::One));
        running.syncer.turn().expect("no failure");
        let spares = world.names().iter().filter(|name| is_spare(name)).count();
        world.kill();
        let used = world.names().iter().filter_map(|name| world.contents(name)).map(|bytes| bytes.len() as u64).sum();
        world.set_capacity(Some(used));
        match start(&world, false) {
            Ok((mut running, found)) => {
                assert!(count > 0 && found.last().is_some_and(|(last, ..)| *last >= lsn));
                assert_eq!(world.names().iter().filter(|name| is_spare(name)).count(), spares - 1);
                append(&mut running, b"two");
            }
            Err(error) => {
                assert!(count == 0 && error.is_full(), "{count} spares: {error}");
                world.kill();
                world.set_capacity(None);
                start(&world, false).expect("it is whole nevertheless");
            }
        }
    }
    println!("starts on a full disk: 2 cases");
}

/// However often a step towards a spare fails, there is one file, and the spare exists when the step succeeds.
#[test]
fn a_spare_that_fails_repeatedly_takes_no_more_room() {
    let calls = [Call::Create, Call::Write, Call::Sync, Call::Rename, Call::SyncDirectory, Call::Map];
    for call in calls {
        let world = Faults::new(6);
        let (mut running, _) = start(&world, false).expect("new");
        let before = world.names().len();
        for attempt in 1..=5 {
            world.fail(call, 0, libc::ENOMEM);
            assert!(matches!(running.preparer.turn(), Err(Error::Io { .. })), "{call:?}: attempt {attempt}");
            assert!(world.names().len() <= before + 1, "{call:?}: attempt {attempt}: {:?}", world.names());
        }
        assert_eq!(running.preparer.turn().expect("no error"), Prepared::One, "{call:?}");
        assert_eq!(running.preparer.turn().expect("no error"), Prepared::Enough, "{call:?}");
        let names = world.names();
        assert!(
            names.len() == before + 1 && !names.iter().any(|name| name.ends_with(".making")),
            "{call:?}: {names:?}"
        );
        // It is a segment like any other after that.
        append_until_full(&mut running);
        running.syncer.turn().expect("no error");
        let last = running.log.last_lsn();
        world.crash();
        drop(running);
        let (_, found) = start(&world, false).expect("whole");
        assert_eq!(found.last().expect("records").0, last, "{call:?}");
    }
    println!("failing spares: {} cases", calls.len());
}

#[test]
fn reported_room_is_always_available() {
    let seed = 0x7003;
    println!("seed {seed:#x}");
    let mut rng = Rng::new(seed);
    let cases = 300;
    for _ in 0..cases {
        let world = Faults::new(rng.next());
        let (mut running, _) = start(&world, false).expect("new");
        for _ in 0..rng.below(40) {
            let _ = running.log.append(Kind::Mutations, 0, 0, 0, &vec![1; rng.below(600) as usize]);
            if rng.below(4) == 0 {
                running.preparer.turn().expect("no error");
            }
        }
        let payload_max = rng.below(900) as usize;
        let record_max = crate::record::slot_bytes(payload_max);
        let mut room = running.log.room(record_max);
        loop {
            let payload = vec![1; rng.below(payload_max as u64 + 1) as usize];
            let slot = crate::record::slot_bytes(payload.len()) as u64;
            if slot > room {
                break;
            }
            running.log.append(Kind::Mutations, 0, 0, 0, &payload).expect("the room was reported");
            room -= slot;
        }
    }
    println!("reports of room: {cases}");
}

#[test]
fn the_largest_payload_fits_and_a_larger_one_panics() {
    let world = Faults::new(3);
    let (mut running, _) = start(&world, false).expect("new");
    let largest = running.log.payload_bytes_max();
    assert_eq!(largest, 4096 - 64 - 56);
    append(&mut running, &vec![1; largest]);
    let larger = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = running.log.append(Kind::Mutations, 0, 0, 0, &vec![1; largest + 1]);
    }));
    assert!(larger.is_err());
}

#[test]
fn a_hanging_sync_holds_the_segments_back() {
    // No thread syncs: segments fill the queue up to its bound, then the log is full, and nothing breaks.
    let world = Faults::new(4);
    let (mut running, _) = start(&world, false).expect("new");
    let mut rolled = 0;
    for _ in 0..100 {
        if running.preparer.turn().expect("no error") == Prepared::One {
            rolled += 1;
        }
        append_until_full(&mut running);
    }
    println!("segments before the bound: {rolled}");
    assert_eq!(rolled, u64::from(crate::sync::OPENED_MAX));
    running.syncer.turn().expect("no error");
    assert_eq!(running.preparer.turn().expect("no error"), Prepared::One);
}

#[test]
fn a_failed_sync_is_final() {
    for call in [Call::Sync, Call::Rename, Call::SyncDirectory] {
        let world = Faults::new(5);
        let reported = Arc::new(AtomicU64::new(0));
        let dir = Dir::open(world.clone(), tiny()).expect("open");
        let recovered = dir.recover(None, false).expect("new").finish().expect("new");
        let counter = reported.clone();
        let waker = move |_| {
            counter.fetch_add(1, Ordering::Relaxed);
        };
        let mut running = dir.start(recovered, 1, Box::new(waker)).expect("start");
        running.preparer.turn().expect("no error");
        append_until_full(&mut running);
        let synced = running.marks.synced();
        world.fail(call, 0, libc::EIO);
        assert!(matches!(running.syncer.turn(), Err(Error::Io { .. })), "{call:?}");
        assert!(running.marks.is_poisoned() && running.log.room(0) == 0, "{call:?}");
        assert_eq!(
            (running.marks.synced(), reported.load(Ordering::Relaxed)),
            (synced, 1),
            "{call:?}: waiters are notified"
        );
        let syncs = world.calls(Call::Sync);
        assert!(matches!(running.syncer.turn(), Err(Error::Poisoned)), "{call:?}");
        assert_eq!(world.calls(Call::Sync), syncs, "{call:?}: nothing is retried");
    }
}

/// The kernel forgets that pages did not reach the device. A recovery that trusted its cache would promise them.
#[test]
fn cached_pages_of_a_failed_sync_are_not_trusted() {
    let world = Faults::new(6);
    let (mut running, _) = start(&world, false).expect("new");
    append(&mut running, b"safe");
    running.syncer.turn().expect("no failure");
    append(&mut running, b"only in memory");
    world.fail(Call::Sync, 0, libc::EIO);
    running.syncer.turn().expect_err("it fails");
    world.kill();
    let (_, found) = start(&world, false).expect("whole");
    assert_eq!(found.last().expect("records").2, b"safe");
    world.crash();
    let (_, again) = start(&world, false).expect("whole");
    assert_eq!(again[..found.len()], found);
}

/// The same far after the header, in a file that is read again during the replay; and in the header itself, of a spare
/// that became a segment in memory only.
#[test]
fn files_reloaded_during_the_replay_are_not_trusted_before() {
    let options = |segment_bytes| Options { segment_bytes, ..tiny() };
    // Bytes of a segment, of a record, how many are safe, and which sync fails: that of a file after the one before it.
    let rows = [("far after", 4 << 20, 100_000, 30, 0), ("in the header", 4_096, 3_000, 1, 1)];
    for (name, segment_bytes, record_bytes, safe, failing) in rows {
        let world = Faults::new(9);
        let again = || -> Result<(Running<Faults>, Vec<_>), Error> {
            let dir = Dir::open(world.clone(), options(segment_bytes))?;
            let (facts, recovered) = crate::tests::recover(&dir, false)?;
            Ok((dir.start(recovered, 1, Box::new(|_| {}))?, facts))
        };
        let (mut running, _) = again().expect("new");
        (0..safe).for_each(|_| _ = append(&mut running, &vec![1; record_bytes]));
        running.syncer.turn().expect("no failure");
        append(&mut running, &vec![2; record_bytes]);
        world.fail(Call::Sync, failing, libc::EIO);
        running.syncer.turn().expect_err("it fails");
        world.kill();
        let (mut running, found) = again().expect("whole");
        assert_eq!(found.iter().filter(|fact| fact.1 == Kind::Mutations).count(), safe, "{name}");
        append(&mut running, &vec![3; record_bytes]);
        running.syncer.turn().expect("no failure");
        world.crash();
        let (_, kept) = again().expect("whole");
        let payloads = kept.iter().filter(|fact| fact.1 == Kind::Mutations).map(|fact| fact.2[0]);
        assert!(payloads.eq(std::iter::repeat_n(1, safe).chain([3])), "{name}");
    }
    println!("failed syncs: {} cases", rows.len());
}

/// However many spares exist, they are read one after the other, and unwanted ones are removed.
#[test]
fn many_leftover_spares_are_taken_or_removed() {
    let world = Faults::new(10);
    let (mut running, _) = start(&world, false).expect("new");
    append(&mut running, b"one");
    running.syncer.turn().expect("no failure");
    world.kill();
    let count = 200;
    for number in 0..count {
        // Some hold foreign bytes.
        let byte = u8::from(number % 7 == 0);
        world.put(&format!("{:08}.spare", 1_000 + number), &[byte; 4_096]);
    }
    let (mut running, found) = start(&world, false).expect("whole");
    assert_eq!(found.last().expect("records").2, b"one");
    assert_eq!(running.preparer.turn().expect("room"), Prepared::One);
    let left = world.names().iter().filter(|name| name.ends_with(".spare")).count();
    assert_eq!((left, running.marks.spares_ready()), (1, 1));
    println!("spares: {count}");
}

#[test]
fn segments_below_the_older_snapshot_are_recycled() {
    let world = Faults::new(7);
    let (mut running, _) = start(&world, false).expect("new");
    let mut recycled = 0;
    for round in 0..12u8 {
        for number in 0..20 {
            append(&mut running, &[number; 300]);
        }
        running.syncer.turn().expect("no failure");
        snapshot(&mut running, 0);
        match running.snapshots.covered().expect("no error") {
            None => assert_eq!(round, 0),
            Some(covered) => recycled += running.preparer.recycle(covered).expect("no error"),
        }
        assert!(running.snapshots.list().expect("no error").len() <= 2);
    }
    let names = world.names();
    println!("segments recycled: {recycled}");
    assert!(recycled > 10 && names.len() < 14, "{names:?}");
    assert!(sealed_lsn(&world).expect("no error") > Lsn(100));
    // Either of the two snapshots is enough for a start.
    let newest = running.snapshots.newest().expect("no error").expect("two");
    let last = running.log.last_lsn();
    world.kill();
    put_changed(&world, &format!("{:020}.snapshot", newest.lsn.0), |bytes| bytes[70] ^= 1);
    let (running, found) = start(&world, false).expect("the older one");
    assert_eq!((found[0].0 <= newest.lsn, found.last().expect("records").0), (true, last));
    drop(running);
    // Without both, the records they cover are missing.
    world.kill();
    let names: Vec<String> = world.names().into_iter().filter(|name| name.ends_with(".snapshot")).collect();
    names.iter().for_each(|name| drop(world.take(name)));
    assert!(matches!(start(&world, false), Err(Error::Format { fault: Fault::Order { .. }, .. })));
}

#[test]
fn a_snapshot_streams_and_all_damage_is_detected() {
    let world = Faults::new(8);
    let (mut running, _) = start(&world, false).expect("new");
    running.syncer.turn().expect("no failure");
    let mut rng = Rng::new(0x5a_0001);
    for blob_bytes in [0usize, 1, 1000, 262_143, 262_144, 262_145, 600_000] {
        append(&mut running, b"one more");
        running.syncer.turn().expect("no failure");
        let blob: Vec<u8> = (0..blob_bytes).map(|_| rng.next() as u8).collect();
        let lsn = running.marks.synced();
        let mut writer = running.snapshots.create(lsn, running.log.last_crc()).expect("room");
        for part in blob.chunks(1 + rng.below(100_000) as usize) {
            writer.write_all(part).expect("room");
        }
        let made = running.snapshots.commit(writer, [3; 32]).expect("room");
        assert_eq!((made.lsn, made.bytes, made.digest), (lsn, blob_bytes as u64, [3; 32]));
        let mut read = Vec::new();
        running.snapshots.open(lsn).expect("whole").read_to_end(&mut read).expect("whole");
        assert!(read == blob);
    }
    let older = running.snapshots.list().expect("two")[0];
    append(&mut running, b"the last");
    running.syncer.turn().expect("no failure");
    snapshot(&mut running, 0);
    let newest = running.marks.synced();
    let name = format!("{:020}.snapshot", newest.0);
    let whole = world.contents(&name).expect("there");
    let mut cases = 0;
    let mut check = |bytes: &[u8]| {
        world.put(&name, bytes);
        assert!(matches!(running.snapshots.verify(newest), Err(Error::Format { .. })));
        let mut read = Vec::new();
        let opened = running.snapshots.open(newest).map_err(drop);
        assert!(opened.is_err() || opened.is_ok_and(|mut reader| reader.read_to_end(&mut read).is_err()));
        cases += 1;
    };
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << (at % 8);
        check(&bytes);
        check(&whole[..at]);
    }
    let mut longer = whole.clone();
    longer.push(0);
    check(&longer);
    println!("damaged snapshots: {cases}");
    assert!(cases > 300);
    world.put(&name, &longer);
    let before = running.snapshots.newest().expect("no error").expect("one is whole");
    assert!(before.lsn < newest && before.lsn >= older);
}

#[test]
fn every_point_is_passed() {
    let passed: Arc<[AtomicU64; Point::ALL.len()]> = Arc::default();
    let counter = passed.clone();
    let points = Points::new(move |point| {
        let index = Point::ALL.iter().position(|one| *one == point).expect("listed");
        counter[index].fetch_add(1, Ordering::Relaxed);
    });
    let world = Faults::new(9);
    let options = Options { points, ..tiny() };
    let dir = Dir::open(world, options).expect("open");
    let recovered = dir.recover(None, false).expect("new").finish().expect("new");
    let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("start");
    for _ in 0..3 {
        for _ in 0..30 {
            append(&mut running, &[1; 300]);
        }
        running.syncer.turn().expect("no failure");
        snapshot(&mut running, 0);
    }
    running.preparer.recycle(running.snapshots.covered().expect("no error").expect("two")).expect("no error");
    for (point, count) in Point::ALL.iter().zip(passed.iter()) {
        let count = count.load(Ordering::Relaxed);
        println!("{}: {count}", point.name());
        // A new log has nothing to recover.
        assert!(count > 0 || *point == Point::Recovery, "{} was never passed", point.name());
    }
}
