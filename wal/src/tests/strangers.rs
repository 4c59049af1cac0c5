//! Foreign files with the name of a snapshot that never existed.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::contents::read_contents;
use crate::epoch::read_identity;
use crate::fault::{Call, Faults};
use crate::segment::MIN_SEGMENT_BYTES;
use crate::tests::files::{append, options, place, start};
use crate::tests::{self, put_changed};
use crate::{Dir, Error, Fault, Files, Lsn, Scan, Storage};

const FOREIGN: &str = "00000000000000999999.snapshot";

/// How reading the log ends: with an error that names a file, or because records are missing.
fn scanned<S: Storage>(storage: &S) -> Result<Lsn, Error> {
    let mut scan = Scan::open_all(storage)?;
    while scan.next()?.is_some() {}
    Ok(scan.last_lsn())
}

/// A log whose newest snapshot is at its last record.
fn sample(seed: u64) -> (Faults, String, Lsn) {
    let world = Faults::new(seed);
    let (mut running, _) = tests::start(&world, false).expect("new");
    for number in 0..10 {
        tests::append(&mut running, &[number; 300]);
        running.syncer.turn().expect("no failure");
    }
    tests::snapshot(&mut running, 0);
    let last = running.log.last_lsn();
    world.kill();
    (world, crate::snapshot_name(last), last)
}

#[test]
fn a_file_with_only_a_snapshots_name_proves_no_record() {
    type Change = fn(&Faults, &str);
    let table: [(&str, Change, Option<Fault>); 8] = [
        ("nothing", |_, _| {}, None),
        ("an empty file", |w, _| w.put(FOREIGN, &[]), Some(Fault::Structure)),
        ("a few bytes", |w, _| w.put(FOREIGN, &[1; 7]), Some(Fault::Structure)),
        ("other bytes", |w, _| w.put(FOREIGN, &[1; 700]), Some(Fault::Magic)),
        ("a cut head", |w, of| w.put(FOREIGN, &w.contents(of).expect("there")[..40]), Some(Fault::Structure)),
        (
            "another directory's",
            |w, _| {
                let (other, of, _) = sample(9);
                w.put(FOREIGN, &other.contents(&of).expect("there"));
            },
            Some(Fault::Foreign),
        ),
        ("one below the end", |w, _| w.put("00000000000000000003.snapshot", &[]), None),
        ("the newest one damaged after its head", |w, of| put_changed(w, of, |bytes| bytes[60] ^= 1), None),
    ];
    for (what, change, expected) in &table {
        let (world, newest, last) = sample(8);
        change(&world, &newest);
        let before = world.names();
        let found = [
            scanned(&world),
            Dir::open(world.clone(), tests::tiny())
                .and_then(|dir| tests::recover(&dir, false))
                .map(|(_, recovered)| recovered.last_lsn),
        ];
        for found in found {
            match (found, expected) {
                (Ok(found), None) => assert_eq!(found, last, "{what}"),
                (Err(Error::Format { file, fault }), Some(expected)) => {
                    assert_eq!((file.as_str(), &fault), (FOREIGN, expected), "{what}");
                }
                (found, _) => panic!("{what}: {found:?}"),
            }
        }
        assert_eq!(world.names(), before, "{what}: nothing was changed");
        world.kill();
        let (running, _) =
            tests::start(&world, true).unwrap_or_else(|error| panic!("{what}, with the override: {error}"));
        assert!(running.log.last_lsn() > last, "{what}: no record is lost");
    }
    println!("files that are not snapshots: {} cases", table.len());
}

/// A running log removes older snapshots while a tool reads them; a file that cannot be read is an error.
#[test]
fn a_snapshot_may_vanish_while_it_is_read() {
    const EIO: i32 = 5;
    let (world, _, _) = sample(8);
    for (gone, failure, is_ok) in [(None, None, true), (Some(Lsn(999)), None, true), (None, Some(EIO), false)] {
        let identity = read_identity(&world).expect("readable").expect("there");
        let mut contents = read_contents(&world, Some(&identity.id)).expect("readable");
        contents.snapshots.extend(gone);
        failure.into_iter().for_each(|errno| world.fail(Call::Open, 0, errno));
        let opened = Scan::over(world.clone(), identity, contents, Lsn::ZERO, None, false);
        assert_eq!(opened.is_ok(), is_ok, "{gone:?} {failure:?}");
    }
}

#[test]
fn anything_but_a_plain_file_proves_no_record() {
    type Make = fn(&Path);
    let table: [(&str, Make); 2] = [
        ("a directory", |at| fs::create_dir(at).expect("made")),
        ("a pipe", |at| assert!(Command::new("mkfifo").arg(at).status().expect("mkfifo").success())),
    ];
    for (what, make) in &table {
        let (_parent, path) = place();
        let (mut running, _) = start(&path, options(MIN_SEGMENT_BYTES));
        append(&mut running, b"record");
        running.syncer.turn().expect("sync");
        drop(running);
        make(&path.join(FOREIGN));
        match scanned(&Files::open_existing(&path).expect("directory")) {
            Err(Error::Place { file, .. }) => assert_eq!(file, FOREIGN, "{what}"),
            found => panic!("{what}: {found:?}"),
        }
    }
    println!("things with a snapshot's name: {} cases", table.len());
}

/// Tools read what a start reads, without starting: first the lock file, then the log if there is one.
#[test]
fn a_starts_reads_are_possible_without_a_start() {
    type Change = fn(&Path);
    /// What exists → the last record, no log, or the file that the refusal names.
    type Row = (&'static str, bool, Change, Result<Option<u64>, &'static str>);
    let table: [Row; 6] = [
        ("an empty directory", false, |_| {}, Ok(None)),
        ("a log", true, |_| {}, Ok(Some(4))),
        ("a log without a lock file", true, |at| fs::remove_file(at.join("lock")).expect("removed"), Ok(Some(4))),
        ("a directory for a lock file", false, |at| fs::create_dir(at.join("lock")).expect("made"), Err("lock")),
        (
            "a link for a lock file",
            true,
            |at| {
                fs::remove_file(at.join("lock")).expect("removed");
                symlink("epoch", at.join("lock")).expect("made");
            },
            Err("lock"),
        ),
        ("no epoch file", true, |at| fs::remove_file(at.join("epoch")).expect("removed"), Err("epoch")),
    ];
    for (what, has_log, change, expected) in &table {
        let (_parent, path) = place();
        drop(Files::open(&path).expect("directory"));
        if *has_log {
            let (mut running, _) = start(&path, options(MIN_SEGMENT_BYTES));
            (2..=4).for_each(|lsn| assert_eq!(append(&mut running, b"record"), Lsn(lsn)));
        }
        change(&path);
        let storage = Files::open_existing(&path).expect("directory");
        let found = Scan::of_start(&storage, None).map(|scan| {
            scan.map(|mut scan| {
                let mut last = (Lsn::ZERO, 0, 0);
                while let Some(entry) = scan.next().expect("whole") {
                    last = (entry.lsn, entry.crc, entry.time);
                }
                assert_eq!((scan.last_lsn(), scan.last_crc(), scan.last_time()), last, "{what}");
                last.0.0
            })
        });
        match (&found, expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{what}"),
            (Err(error), Err(name)) => assert!(error.to_string().contains(name), "{what}: {error}"),
            _ => panic!("{what}: {found:?}"),
        }
    }
    println!("what a start would read: {} cases", table.len());
}
