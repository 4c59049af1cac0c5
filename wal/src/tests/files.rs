//! The log over real files: what a death of the process leaves, who may own a directory, and what a sync costs the device.

use std::fs;

use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Tail;
use crate::segment::MIN_SEGMENT_BYTES;
use crate::{Dir, Error, Fault, Files, Full, Kind, Lsn, Options, PlaceFault, Running, Scan};

fn options(segment_bytes: u64) -> Options {
    Options { segment_bytes, reserve_bytes: 0, ..Options::default() }
}

/// A directory inside of a temporary one, which does not exist yet.
fn place() -> (tempfile::TempDir, PathBuf) {
    let parent = tempfile::tempdir().expect("temporary directory");
    let path = parent.path().join("log");
    (parent, path)
}

fn start(path: &Path, options: Options) -> (Running, Vec<(Kind, Vec<u8>)>) {
    let dir = Dir::open(Files::open(path).expect("directory"), options).expect("open");
    let snapshot = dir.newest_snapshot().expect("snapshots");
    let mut recovery = dir.recover(snapshot.as_ref(), false).expect("recover");
    let mut found = Vec::new();
    while let Some(entry) = recovery.next().expect("record") {
        found.push((entry.kind, entry.payload.to_vec()));
    }
    let recovered = recovery.finish().expect("finish");
    (dir.start(recovered, 1, Box::new(|_| {})).expect("start"), found)
}

/// Appends, preparing and syncing on this thread when there is no room.
fn append(running: &mut Running, payload: &[u8]) -> Lsn {
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
        // Other lives end without a sync: the files hold what was stored all the same.
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
fn a_second_start_names_the_first() {
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
    assert!(Dir::open(Files::open(&path).expect("directory"), options(MIN_SEGMENT_BYTES)).is_ok());
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
    println!("files looked at: {files}");
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

    // Inside: a link, a pipe or an open mode in place of a file of ours.
    drop(start(&path, options(MIN_SEGMENT_BYTES)));
    let epoch = path.join("epoch");
    let aside = path.join("aside");
    let refused = || Dir::open(Files::open(&path).expect("directory"), options(MIN_SEGMENT_BYTES)).err();
    fs::set_permissions(&epoch, fs::Permissions::from_mode(0o644)).expect("mode");
    assert!(matches!(refused(), Some(Error::Io { .. })));
    fs::set_permissions(&epoch, fs::Permissions::from_mode(0o600)).expect("mode");
    fs::rename(&epoch, &aside).expect("rename");
    symlink(&aside, &epoch).expect("link");
    assert!(matches!(refused(), Some(Error::Io { .. })));
    fs::remove_file(&epoch).expect("remove");
    assert!(Command::new("mkfifo").arg(&epoch).status().expect("mkfifo").success());
    assert!(matches!(refused(), Some(Error::Io { .. })));
    fs::remove_file(&epoch).expect("remove");
    // Without its epoch file a directory with segments is no new one.
    let dir = Dir::open(Files::open(&path).expect("directory"), options(MIN_SEGMENT_BYTES)).expect("open");
    let missing = dir.recover(None, false);
    assert!(matches!(missing, Err(Error::Format { fault: Fault::Missing, .. })));
    drop((missing, dir));
    fs::rename(&aside, &epoch).expect("rename");
    drop(start(&path, options(MIN_SEGMENT_BYTES)));
}
