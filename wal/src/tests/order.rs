//! Segments that are missing, too many, doubled, renamed, or foreign; files of another version.

use crate::fault::Faults;
use crate::record::slot_bytes;
use crate::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use crate::tests::{append, put_changed, recover, snapshot, start, tiny};
use crate::{Dir, Error, Fault, Kind, Lsn, Options, Scan, Tail, sealed_lsn, segments};

/// Five full segments and an open one, stopped cleanly. Returns the names of the segments.
fn sample_of(seed: u64) -> (Faults, Vec<String>) {
    let world = Faults::new(seed);
    let (mut running, _) = start(&world, false).expect("new");
    for number in 0..60u8 {
        append(&mut running, &[number; 300]);
        running.syncer.turn().expect("no failure");
    }
    running.log.append_clean_stop(4).expect("room");
    running.syncer.finish().expect("no failure");
    world.kill();
    let names: Vec<String> = world.names().into_iter().filter(|name| name.ends_with(".wal")).collect();
    assert!(names.len() >= 6, "{names:?}");
    (world, names)
}

fn refusal(world: &Faults) -> Option<Error> {
    let dir = Dir::open(world.clone(), tiny());
    dir.and_then(|dir| recover(&dir, false)).err()
}

#[test]
fn an_undamaged_log_is_accepted() {
    let (world, names) = sample_of(1);
    assert!(refusal(&world).is_none());
    let listed = segments(&world).expect("readable");
    assert_eq!(listed.iter().map(|segment| &segment.name).collect::<Vec<_>>(), names.iter().collect::<Vec<_>>());
    assert_eq!(sealed_lsn(&world).expect("readable"), listed.last().expect("several").first_lsn.before());
}

/// Unsynced is what was appended since the last sync, across the ends of segments.
#[test]
fn unsynced_bytes_rise_with_appends_and_end_with_a_sync() {
    let world = Faults::new(9);
    let (mut running, _) = start(&world, false).expect("new");
    let mut cases = 0;
    for group in 1..40u64 {
        running.syncer.turn().expect("no failure");
        assert_eq!(running.marks.unsynced_bytes(), 0, "all {} are synced", running.log.last_lsn());
        for count in 1..=group % 4 {
            append(&mut running, &[1; 300]);
            let (at_least, bytes) = (count * slot_bytes(300) as u64, running.marks.unsynced_bytes());
            // A full segment wastes less than one record, and begins with a header.
            let rolled = bytes - at_least;
            assert!(rolled <= (SEGMENT_HEADER_BYTES + slot_bytes(300)) as u64, "{count} records are {bytes} bytes");
            cases += 1;
        }
        cases += 1;
    }
    println!("unsynced bytes: {cases} cases");
}

#[test]
fn missing_segments_are_detected_anywhere() {
    let (sample, names) = sample_of(2);
    for (index, name) in names.iter().enumerate() {
        let world = sample.copy(3);
        world.take(name);
        let refused = refusal(&world).unwrap_or_else(|| panic!("{name} is missing and that was not detected"));
        match refused {
            Error::Format { fault: Fault::Order { .. }, .. } if index == 0 => {}
            Error::Lost(loss) if index > 0 => assert!(loss.lsn.0 > 1 && loss.synced >= loss.lsn, "{loss:?}"),
            error => panic!("{name}: {error}"),
        }
    }
    // All of them, and all at the end of the log.
    for left in 0..names.len() - 1 {
        let world = sample.copy(4);
        names[left..].iter().for_each(|name| {
            world.take(name);
        });
        assert!(refusal(&world).is_some(), "only {left} segments are left and that was not detected");
    }
    println!("missing segments: {}", names.len() * 2 - 1);
}

#[test]
fn misplaced_files_are_refused() {
    let (sample, names) = sample_of(5);
    let (other, other_names) = sample_of(6);
    let check = |what: &str, change: &dyn Fn(&Faults), expected: &dyn Fn(&Fault) -> bool| {
        let world = sample.copy(7);
        change(&world);
        match refusal(&world) {
            Some(Error::Format { fault, .. }) if expected(&fault) => {}
            Some(error) => panic!("{what}: refused as {error:?}"),
            None => panic!("{what}: accepted"),
        }
    };
    let copy = |world: &Faults, from: &str, to: &str| world.put(to, &world.contents(from).expect("there"));
    check("copy under a new name", &|world| copy(world, &names[1], "00000000000000000999.wal"), &|fault| {
        matches!(fault, Fault::Name { .. } | Fault::Order { .. })
    });
    check("copy as a spare", &|world| copy(world, &names[1], "00000099.spare"), &|fault| {
        matches!(fault, Fault::Copy { .. })
    });
    check("copy over the next", &|world| copy(world, &names[1], &names[2]), &|fault| {
        matches!(fault, Fault::Name { .. })
    });
    check(
        "two swapped",
        &|world| {
            let one = world.take(&names[1]).expect("there");
            copy(world, &names[2], &names[1]);
            world.put(&names[2], &one);
        },
        &|fault| matches!(fault, Fault::Name { .. }),
    );
    check(
        "another directory's",
        &|world| world.put(&names[2], &other.contents(&other_names[2]).expect("there")),
        &|fault| matches!(fault, Fault::Foreign),
    );
    check(
        "another directory's epoch",
        &|world| world.put("epoch", &other.contents("epoch").expect("there")),
        &|fault| matches!(fault, Fault::Foreign),
    );
    check("empty", &|world| world.put(&names[2], &[]), &|fault| matches!(fault, Fault::Length { .. }));
    check("all zeros", &|world| world.put(&names[2], &[0; 4096]), &|fault| matches!(fault, Fault::Magic));
    check("no epoch", &|world| assert!(world.take("epoch").is_some()), &|fault| matches!(fault, Fault::Missing));
    check("a wrong number", &|world| change_header(world, &names[2], |header| header.number += 1), &|fault| {
        matches!(fault, Fault::Order { .. })
    });
    check(
        "another log before it",
        &|world| change_header(world, &names[2], |header| header.previous_crc ^= 1),
        &|fault| matches!(fault, Fault::Chain { .. }),
    );
}

fn change_header(world: &Faults, name: &str, change: impl FnOnce(&mut SegmentHeader)) {
    put_changed(world, name, |bytes| {
        let mut header = SegmentHeader::decode(bytes.first_chunk().expect("long enough")).expect("whole");
        change(&mut header);
        bytes[..64].copy_from_slice(&header.encode());
    });
}

#[test]
fn other_versions_are_refused_by_number() {
    let (sample, names) = sample_of(8);
    let mut cases = 0;
    for name in [&names[0], &names[3], "epoch"] {
        let newest = if name == "epoch" { 2 } else { 1 };
        for version in [0u32, newest + 1] {
            let world = sample.copy(9);
            put_changed(&world, name, |bytes| {
                bytes[8..12].copy_from_slice(&version.to_le_bytes());
                let crc = crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..bytes.len().min(64)]);
                bytes[12..16].copy_from_slice(&crc.to_le_bytes());
            });
            match refusal(&world) {
                Some(Error::Format { fault: Fault::Version { found, known }, .. })
                    if (found, known) == (version, newest) =>
                {
                    cases += 1
                }
                other => panic!("{name} in version {version}: {other:?}"),
            }
            // Even the override does not allow a downgrade.
            world.kill();
            assert!(start(&world, true).is_err());
        }
    }
    println!("other versions: {cases}");
}

#[test]
fn an_old_epoch_file_is_refused() {
    let world = Faults::new(10);
    drop(start(&world, false).expect("new"));
    world.kill();
    let old = world.contents("epoch").expect("there");
    drop(start(&world, false).expect("second"));
    world.kill();
    world.put("epoch", &old);
    assert!(matches!(refusal(&world), Some(Error::Format { fault: Fault::Epoch { found: 2, .. }, .. })));
}

#[test]
fn a_snapshot_of_another_log_is_refused() {
    let world = Faults::new(11);
    let (mut running, _) = start(&world, false).expect("new");
    append(&mut running, b"one");
    append(&mut running, b"two");
    running.syncer.turn().expect("no failure");
    snapshot(&mut running, 1);
    world.kill();
    assert!(matches!(refusal(&world), Some(Error::Format { fault: Fault::Chain { .. }, .. })));
}

#[test]
fn reading_a_running_log_stops_at_the_mark() {
    let world = Faults::new(12);
    let (mut running, _) = start(&world, false).expect("new");
    let mut read = Lsn::ZERO;
    let mut crc = 0;
    for number in 0..200u8 {
        append(&mut running, &[number; 200]);
        if number % 7 == 0 {
            running.syncer.turn().expect("no failure");
            let synced = running.marks.synced();
            let mut scan = Scan::open(&world, read).expect("log").after_crc(crc).until(synced);
            while let Some(entry) = scan.next().expect("record") {
                assert_eq!(entry.lsn, read.next());
                (read, crc) = (entry.lsn, entry.crc);
            }
            assert_eq!((read, scan.tail()), (synced, Some(Tail::Clean)));
        }
    }
    // All of it, unnamed segments and unsynced records included.
    let mut scan = Scan::open_all(&world).expect("log");
    while scan.next().expect("record").is_some() {}
    assert_eq!(scan.last_lsn(), running.log.last_lsn());
    // A mark that is not reached is a loss.
    let mut scan = Scan::open(&world, Lsn::ZERO).expect("log").until(running.log.last_lsn().next());
    let lost = loop {
        match scan.next() {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the log ended before the mark"),
            Err(error) => break error,
        }
    };
    assert!(matches!(lost, Error::Lost(loss) if loss.lsn == running.log.last_lsn().next()));
}

/// Records longer than a block of the reader, with every length of padding.
#[test]
fn records_longer_than_a_block_are_read_back() {
    let block = crate::trailing::BLOCK_BYTES;
    let lengths = (0..10).map(|more| block - 60 + more).chain([300_000, 300_001, 316_164, 1_000_003, 3]);
    let options = Options { segment_bytes: 4 << 20, spares_count: 2, reserve_bytes: 0, ..Options::default() };
    let mut cases = 0;
    for length in lengths {
        let world = Faults::new(3);
        let open = || Dir::open(world.clone(), options.clone()).expect("open");
        let dir = open();
        let (_, recovered) = recover(&dir, false).expect("new");
        let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("room");
        let facts: Vec<_> =
            [7, length, 0, length + 5, 9].into_iter().map(|length| append(&mut running, &vec![0xA5; length])).collect();
        running.syncer.turn().expect("no error");
        drop(running);
        world.kill();
        let (found, _) = recover(&open(), false).expect("whole");
        let found: Vec<_> = found.into_iter().filter(|(_, kind, _)| *kind == Kind::Mutations).collect();
        assert!(found == facts, "records of {length} bytes come back unchanged");
        cases += 1;
    }
    println!("long records: {cases} cases");
}
