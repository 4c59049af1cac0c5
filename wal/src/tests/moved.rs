//! A directory that is moved while its log is open, with another log created under its old name: the first continues
//! where it is, and the second is left alone.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::Path;

use crate::segment::MIN_SEGMENT_BYTES;
use crate::tests::files::{append, options, place, start};
use crate::{Dir, Error, Files, Kind, Prepared, Running};

/// Names and contents of all files.
fn contents(path: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(path).expect("list").map(|entry| entry.expect("entry"));
    entries
        .map(|entry| (entry.file_name().into_string().expect("text"), fs::read(entry.path()).expect("read")))
        .collect()
}

fn append_some(running: &mut Running, expected: &mut Vec<Vec<u8>>, count: usize) {
    for _ in 0..count {
        let payload = format!("record {}", expected.len()).repeat(20).into_bytes();
        append(running, &payload);
        expected.push(payload);
    }
}

fn sync(running: &mut Running) {
    running.syncer.turn().expect("sync");
}

fn snapshot(running: &mut Running) {
    sync(running);
    let writer = running.snapshots.create(running.marks.synced(), running.log.last_crc());
    let mut writer = writer.expect("snapshot");
    writer.write_all(b"state").expect("snapshot");
    running.snapshots.commit(writer, [1; 32]).expect("snapshot");
}

fn prepare(running: &mut Running) {
    while running.preparer.turn().expect("prepare") == Prepared::One {}
}

/// All records that the directory still has.
fn recorded(path: &Path) -> Vec<Vec<u8>> {
    let storage = Files::open_existing(path).expect("directory");
    let mut scan = crate::Scan::open_all(&storage).expect("a log");
    let mut found = Vec::new();
    while let Some(entry) = scan.next().expect("record") {
        if entry.kind == Kind::Mutations {
            found.push(entry.payload.to_vec());
        }
    }
    found
}

#[test]
fn a_moved_log_continues_in_its_directory() {
    type Change = fn(&mut Running, &mut Vec<Vec<u8>>);
    // Done before the directory is moved, and after it.
    let table: [(&str, Change, Change); 8] = [
        ("nothing", |_, _| {}, |_, _| {}),
        ("a record", |_, _| {}, |running, expected| append_some(running, expected, 1)),
        (
            "the next segments, of spares from before",
            |running, _| prepare(running),
            |running, expected| {
                while running.marks.spares_ready() > 0 {
                    append_some(running, expected, 1);
                }
                sync(running);
            },
        ),
        ("the next segments, of spares from after", |_, _| {}, |running, expected| append_some(running, expected, 30)),
        ("spares that are not used", |_, _| {}, |running, _| prepare(running)),
        ("a snapshot", |_, _| {}, |running, _| snapshot(running)),
        (
            "segments released",
            |running, expected| {
                for _ in 0..2 {
                    append_some(running, expected, 30);
                    snapshot(running);
                }
            },
            |running, _| {
                let covered = running.snapshots.covered().expect("snapshots").expect("two of them");
                assert!(running.preparer.recycle(covered).expect("recycle") > 1);
            },
        ),
        (
            "a clean stop",
            |_, _| {},
            |running, expected| {
                append_some(running, expected, 1);
                running.log.append_clean_stop(9).expect("room");
            },
        ),
    ];
    for (what, before, behind) in &table {
        let (parent, path) = place();
        let away = parent.path().join("away");
        let mut expected = Vec::new();
        let (mut running, _) = start(&path, options(MIN_SEGMENT_BYTES));
        append_some(&mut running, &mut expected, 5);
        before(&mut running, &mut expected);
        sync(&mut running);
        fs::rename(&path, &away).expect("moved");

        let mut theirs = Vec::new();
        let (mut other, _) = start(&path, options(MIN_SEGMENT_BYTES));
        append_some(&mut other, &mut theirs, 15);
        prepare(&mut other);
        sync(&mut other);
        drop(other);
        let kept = contents(&path);

        behind(&mut running, &mut expected);
        let second = Dir::open(Files::open(&away).expect("directory"), options(MIN_SEGMENT_BYTES));
        assert!(matches!(second, Err(Error::Locked { .. })), "{what}: the lock moves too");
        let Running { log, syncer, preparer, snapshots, .. } = running;
        syncer.finish().unwrap_or_else(|error| panic!("{what}: {error}"));
        drop((log, preparer, snapshots));
        let now = contents(&path);
        let differs = |name: &&String| kept.get(*name) != now.get(*name);
        let changed: Vec<_> = kept.keys().chain(now.keys()).filter(differs).collect();
        assert!(changed.is_empty(), "{what}: of the other log {changed:?} were changed");

        // Released segments are covered by a snapshot; after it no record is missing, and none is in the other log.
        let found = recorded(&away);
        assert!(!found.is_empty() && expected.ends_with(&found), "{what}: {} of {}", found.len(), expected.len());
        assert!(found.len() == expected.len() || *what == "segments released", "{what}");
        start(&away, options(MIN_SEGMENT_BYTES));
        let (_, found) = start(&path, options(MIN_SEGMENT_BYTES));
        assert_eq!(found.iter().filter(|(kind, _)| *kind == Kind::Mutations).count(), theirs.len(), "{what}");
    }
    println!("directories moved: {} cases", table.len());
}
