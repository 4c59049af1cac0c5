//! Files that somebody put there under the name of a snapshot that never was.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::fault::Faults;
use crate::segment::MIN_SEGMENT_BYTES;
use crate::tests::files::{append, options, place, start};
use crate::tests::{self, put_changed};
use crate::{Dir, Error, Fault, Files, Lsn, Scan, Storage};

const STRANGER: &str = "00000000000000999999.snapshot";

/// How reading the log ends: with a word about which file, and whether it is that records are gone.
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
fn what_only_has_a_snapshots_name_proves_no_record() {
    type Change = fn(&Faults, &str);
    let table: [(&str, Change, Option<Fault>); 8] = [
        ("nothing", |_, _| {}, None),
        ("an empty file", |w, _| w.put(STRANGER, &[]), Some(Fault::Structure)),
        ("a few bytes", |w, _| w.put(STRANGER, &[1; 7]), Some(Fault::Structure)),
        ("other bytes", |w, _| w.put(STRANGER, &[1; 700]), Some(Fault::Magic)),
        ("a cut head", |w, of| w.put(STRANGER, &w.contents(of).expect("there")[..40]), Some(Fault::Structure)),
        (
            "another directory's",
            |w, _| {
                let (other, of, _) = sample(9);
                w.put(STRANGER, &other.contents(&of).expect("there"));
            },
            Some(Fault::Foreign),
        ),
        ("one below the end", |w, _| w.put("00000000000000000003.snapshot", &[]), None),
        ("the newest one damaged behind its head", |w, of| put_changed(w, of, |bytes| bytes[60] ^= 1), None),
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
                    assert_eq!((file.as_str(), &fault), (STRANGER, expected), "{what}");
                }
                (found, _) => panic!("{what}: {found:?}"),
            }
        }
        assert_eq!(world.names(), before, "{what}: nothing was changed");
        world.kill();
        let (running, _) = tests::start(&world, true).unwrap_or_else(|error| panic!("{what}, at a word: {error}"));
        assert!(running.log.last_lsn() > last, "{what}: all that was there is there");
    }
    println!("snapshots that are none: {} cases", table.len());
}

#[test]
fn what_is_no_plain_file_proves_no_record() {
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
        make(&path.join(STRANGER));
        match scanned(&Files::open_existing(&path).expect("directory")) {
            Err(Error::Place { file, .. }) => assert_eq!(file, STRANGER, "{what}"),
            found => panic!("{what}: {found:?}"),
        }
    }
    println!("things with a snapshot's name: {} cases", table.len());
}
