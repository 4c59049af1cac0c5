//! Events that end a backup of a running server before its first byte.

use super::*;
use ::history::{Fills, History};
use engine::shard::replay::State;
use host::job::{Job, Next, RunningJob, Work as _};
use journal::checkpoint::{Keeper, write_snapshot};
use journal::digests::Digests;
use journal::recover::recover;
use journal::spares::{Covered, Spares};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use wal::{Kind, Options};

const SEGMENT_BYTES: u64 = 1 << 20;
const RECORD_BYTES: usize = 64 << 10;
const RECORDS: u64 = 60;

/// A server's log of several segments, with the keeper of its snapshots.
struct Place {
    running: Running,
    keeper: Option<RunningJob>,
    _place: tempfile::TempDir,
}

impl Place {
    fn new() -> Place {
        let place = tempfile::tempdir().expect("a temporary folder");
        let directory = place.path().join("log");
        let options = Options { segment_bytes: SEGMENT_BYTES, spares_count: 2, reserve_bytes: 0, ..Options::default() };
        let recovery = recover(&directory, options, 1).expect("a new directory");
        let started = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let wal::Running { mut log, mut syncer, preparer, mut snapshots, marks, .. } = started;
        let covered = Covered::default();
        let mut spares = Spares::new(preparer, covered.clone());
        let payload = vec![0; RECORD_BYTES];
        for time in 2..RECORDS {
            while spares.turn().expect("room on the disk") {}
            log.append(Kind::Padding, 1, 1, time, &payload).expect("there is room");
            syncer.turn().expect("the disk is there");
        }
        let storage = Files::open_existing(&directory).expect("it was made");
        let mut scan = Scan::open_all(&storage).expect("it can be read");
        let crc = scan.next().expect("it is sound").expect("the first record").crc;
        write_snapshot(engine::format::Formats::Newest, &mut snapshots, &State::new(1), Lsn(1), crc)
            .expect("room on the disk");
        let (digests, requests) = Digests::channel();
        let keeper = Keeper::new(storage, snapshots, marks.clone(), 99, covered.clone()).answering(requests);
        let stop = Stop::new();
        let keeper = Job::new("keeper", Duration::from_millis(250), move || keeper).start(&stop).expect("a thread");
        let keeper = Some(keeper);
        Place {
            running: Running { directory, marks, covered, digests, ended: EndedStore::missing(), stop },
            keeper,
            _place: place,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(keeper) = self.keeper.take() {
            keeper.stop();
            keeper.join();
        }
    }
}

/// At any point of the planning at which the peer leaves or the disk fills up, the planning ends and no segment stays
/// pinned.
#[test]
fn planning_ends_when_the_peer_leaves_or_the_room_is_wanted() {
    let place = Place::new();
    let asked = Arc::new(AtomicUsize::new(0));
    // Plans a backup during which an event happens at the n-th check whether it goes on.
    let plan = |at: usize, happens: fn(&Covered) -> bool| {
        asked.store(0, Ordering::Relaxed);
        let (asks, covered) = (Arc::clone(&asked), place.running.covered.clone());
        let stays = move || asks.fetch_add(1, Ordering::Relaxed) + 1 < at || happens(&covered);
        Source::live(&place.running, false, Timestamp(1), stays)
    };
    let source = plan(usize::MAX, |_| true).expect("a whole log");
    let all = asked.load(Ordering::Relaxed);
    assert!(all > 10 && source.files.len() > 3, "{all} checks, {} files", source.files.len());
    drop(source);
    let leaves: fn(&Covered) -> bool = |_| false;
    let fills: fn(&Covered) -> bool = |covered| {
        covered.want_room();
        true
    };
    let mut cases = 0;
    for (happens, expected) in [(leaves, "the peer has left"), (fills, "the disk is full, and orders need the room")] {
        for at in 1..all {
            let given_up = plan(at, happens).err();
            let Some(BackupError::GivenUp(why)) = &given_up else { panic!("check {at}: {given_up:?}") };
            assert_eq!(why.to_string(), expected, "check {at}");
            // After the peer has left there is one more check, only for the reason.
            assert!(asked.load(Ordering::Relaxed) <= at + 2, "planning went on after check {at}");
            assert!(!place.running.covered.pin().is_wanted(), "nothing stays pinned");
            cases += 1;
        }
    }
    place.running.stop.set();
    let stopped = plan(usize::MAX, |_| true).err();
    assert!(matches!(&stopped, Some(BackupError::GivenUp(_))), "{stopped:?}");
    println!("ends of planning: {} cases", cases + 1);
}

/// The price history cannot be read: the backup has everything else, and says so.
#[test]
fn a_damaged_history_is_left_out() {
    let live = Place::new();
    let place = tempfile::tempdir().expect("a temporary folder");
    let stopped = place.path().join("log");
    {
        let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
        let recovery = recover(&stopped, options, 1).expect("a log");
        // It has the lock of the directory until the end of this block.
        let started = recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
        let wal::Running { mut log, syncer, .. } = started;
        log.append(Kind::Padding, 1, 1, 2, &[0; 8]).expect("there is room");
        syncer.finish().expect("the disk is there");
    }
    // Files of its store, and whether it can be read.
    let stores: [(&[&str], bool); 4] = [
        (&["version", "0.jnl", "keyspaces/0/current", "keyspaces/0/v0", "keyspaces/0/tables/1"], true),
        (&["version", "0.jnl", "keyspaces/0/v0"], false),
        (&["version", "0.jnl", "keyspaces/notes.txt"], false),
        (&["version", "0.jnl"], false),
    ];
    let mut cases = 0;
    for (names, is_whole) in stores {
        for directory in [&stopped, &live.running.directory] {
            let history = directory.join("history");
            for name in names {
                let path = history.join("store").join(name);
                fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
                fs::write(path, name).expect("written");
            }
            let source = match directory == &stopped {
                true => Source::stopped(directory, false, Timestamp(1)),
                false => Source::live(&live.running, false, Timestamp(1), || true),
            };
            let out = place.path().join(format!("out-{cases}"));
            let manifest = source.and_then(|source| source.copy(Folder::begin(&out).expect("a new folder")));
            let manifest = manifest.expect("the log is sound");
            let copied = manifest.files.iter().filter(|file| file.name.starts_with("history/")).count();
            assert_eq!(
                (copied, manifest.history_left_out.is_none()),
                (if is_whole { 5 } else { 0 }, is_whole),
                "{names:?}"
            );
            let written = fs::read(out.join(MANIFEST)).expect("the last file");
            assert_eq!(serde_json::from_slice::<Manifest>(&written).expect("JSON"), manifest);
            fs::remove_dir_all(history).expect("it was made");
            cases += 1;
        }
    }
    println!("histories of backups: {cases} cases");
}

/// A backup right after a start waits until the job has opened the history store, unless the peer leaves.
#[test]
fn a_history_that_is_being_opened_is_waited_for() {
    let mut place = Place::new();
    let folder = place.running.directory.join("history");
    let mut cases = 0;
    for stays in [true, false] {
        let (history, _recorder, _reader) =
            History::open(Some(folder.clone()), CACHE_BYTES, Arc::default(), Fills::default());
        let ended = history.ended();
        place.running.ended = ended.clone();
        let (asked, job) = (AtomicUsize::new(0), Mutex::new(history));
        let goes_on = move || {
            if asked.fetch_add(1, Ordering::Relaxed) == 2 && stays {
                let mut job = job.lock().expect("not poisoned");
                while job.take_turn(&Stop::new()).expect("it never fails") != Next::Sleep {}
            }
            stays
        };
        let held = Held::pinned(&place.running, goes_on);
        assert!(matches!(ended.upto(), Err(StoreError::Opening)));
        let waited = wait_until_open(&ended, &held);
        assert_eq!(matches!(waited, Err(BackupError::GivenUp(_))), !stays, "{waited:?}");
        assert_eq!(matches!(ended.upto(), Ok(0)), stays);
        cases += 2;
    }
    println!("histories that are being opened: {cases} cases");
}

#[test]
fn only_leftovers_of_an_interrupted_backup_are_removed() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let (out, making) = (place.path().join("out"), place.path().join("out.making"));
    let folders: [(&[&str], bool); 8] = [
        (&[], true),
        (&["00000000000000000001.wal"], true),
        (&["00000000000000000001.wal", "history/trail", "venue_kinds", "manifest.json"], true),
        (&["notes.txt"], false),
        (&["00000000000000000001.wal", "notes.txt"], false),
        (&["history/notes.txt"], false),
        (&["history/history/trail"], false),
        (&["folder/00000000000000000001.wal"], false),
    ];
    for (names, goes) in folders {
        fs::create_dir(&making).expect("a folder");
        for name in names {
            let path = making.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, name).expect("written");
        }
        let begun = Folder::begin(&out);
        assert_eq!(begun.is_ok(), goes, "{names:?}");
        assert_eq!(names.iter().filter(|name| making.join(name).exists()).count(), if goes { 0 } else { names.len() });
        drop(begun);
        let _ = fs::remove_dir_all(&making);
    }
    let files: [(&[u8], bool); 5] = [
        (b"", true),
        (b"00000000000000000001.wal\0\0", true),
        (b"history/trail\0", true),
        (b"What I want to keep.", false),
        (&[0; 512], false),
    ];
    for (bytes, goes) in files {
        fs::write(&making, bytes).expect("written");
        let begun = TarFile::begin(&out);
        assert_eq!(begun.is_ok(), goes, "{bytes:?}");
        assert!(goes || fs::read(&making).expect("it is there") == bytes);
        drop(begun);
        let _ = fs::remove_file(&making);
    }
    println!("existing files: {} cases", folders.len() + files.len());
}
