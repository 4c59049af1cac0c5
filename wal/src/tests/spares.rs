//! Spares that a start finds: which of them it reads, keeps, removes or refuses, and what it reports.

use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::process::Command;
use std::sync::mpsc;
use std::time::Duration;
use std::{fs, thread};

use crate::fault::{Call, Faults};
use crate::record::slot_bytes;
use crate::segment::SegmentHeader;
use crate::tests::files::unlocked;
use crate::tests::{append, put_changed, recover, snapshot};
use crate::{Dir, Error, Fault, Files, Lsn, Options, PlaceFault, Recovered, Running, Scan};

const SEGMENT_BYTES: usize = 1 << 20;
const FIRST: &str = "00000000000000000001.wal";

fn options() -> Options {
    Options { segment_bytes: SEGMENT_BYTES as u64, spares_count: 2, reserve_bytes: 0, ..Options::default() }
}

fn start(world: &Faults) -> Running<Faults> {
    let dir = Dir::open(world.clone(), options()).expect("open");
    let (_, recovered) = recover(&dir, false).expect("whole");
    dir.start(recovered, 1, Box::new(|_| {})).expect("start")
}

fn recovered(world: &Faults) -> Result<Recovered<Faults>, Error> {
    let dir = Dir::open(world.clone(), options())?;
    recover(&dir, false).map(|(_, recovered)| recovered)
}

fn spare(number: usize) -> String {
    format!("{number:08}.spare")
}

/// LSN 1 is the start; 2 to 5 are synced, and 6 to 9 prove that; nothing after 5 is synced. Three spares. Second: the
/// offset of each record by its LSN.
fn sample() -> (Faults, Vec<usize>) {
    let world = Faults::new(1);
    let mut running = start(&world);
    for number in 2..=9u8 {
        append(&mut running, &[number; 64]);
        if number == 5 {
            running.syncer.turn().expect("no failure");
        }
    }
    world.kill();
    let mut places = vec![0];
    let mut scan = Scan::open_all(&world).expect("log");
    while let Some(entry) = scan.next().expect("record") {
        places.push(entry.offset as usize);
    }
    (101..=103).for_each(|number| world.put(&spare(number), &[0; SEGMENT_BYTES]));
    (world, places)
}

/// The expected result of a start.
#[derive(Debug, PartialEq)]
enum Outcome {
    /// It continues after this LSN. Bytes cut from a torn tail; dirty spares; the numbers of the kept ones.
    Goes(u64, u64, u32, Vec<usize>),
    /// Promised records are gone from this LSN on.
    Lost(u64),
}

/// Of three spares the first two are wanted, unless one of them is unusable.
#[test]
fn spares_are_kept_removed_or_used_as_proof() {
    use Outcome::{Goes, Lost};
    type Change = fn(&Faults, &[usize]);
    const HEAD: usize = 4_096;
    const FAR: usize = 900_000;
    /// Bytes of record 9, which proves that 5 was synced, in a spare.
    fn prove(world: &Faults, places: &[usize], number: usize, at: usize) {
        let record = world.contents(FIRST).expect("there")[places[9]..][..slot_bytes(64)].to_vec();
        put_changed(world, &spare(number), |bytes| bytes[at..at + record.len()].copy_from_slice(&record));
    }
    fn dirty(world: &Faults, number: usize, at: usize) {
        put_changed(world, &spare(number), |bytes| bytes[at] = 1);
    }
    /// Removes all of the log after record 4, without a trace.
    fn gone(world: &Faults, places: &[usize]) {
        put_changed(world, FIRST, |bytes| bytes[places[5]..].fill(0));
    }
    /// The same, but a part of record 5 remains.
    fn torn(world: &Faults, places: &[usize]) {
        put_changed(world, FIRST, |bytes| bytes[places[5] + 40..].fill(0));
    }
    let table: [(&str, Change, Outcome); 17] = [
        ("too many", |_, _| {}, Goes(9, 0, 0, vec![101, 102])),
        ("a wanted one is dirty", |w, _| dirty(w, 101, FAR), Goes(9, 0, 1, vec![102, 103])),
        ("both are", |w, _| (101..=102).for_each(|n| dirty(w, n, 0)), Goes(9, 0, 2, vec![103])),
        ("dirty in the head of one too many", |w, _| dirty(w, 103, HEAD), Goes(9, 0, 1, vec![101, 102])),
        ("dirty far after the head of one too many", |w, _| dirty(w, 103, FAR), Goes(9, 0, 0, vec![101, 102])),
        ("another length", |w, _| w.put(&spare(101), &[0; 4_096]), Goes(9, 0, 0, vec![102, 103])),
        ("empty", |w, _| w.put(&spare(101), &[]), Goes(9, 0, 0, vec![102, 103])),
        ("a torn tail", |w, p| put_changed(w, FIRST, |b| b[p[9] + 60] ^= 1), Goes(8, 120, 0, vec![101, 102])),
        (
            "a torn tail and a dirty spare",
            |w, p| {
                put_changed(w, FIRST, |b| b[p[9] + 60] ^= 1);
                dirty(w, 103, FAR);
            },
            Goes(8, 120, 1, vec![101, 102]),
        ),
        ("records gone, and no proof", |w, p| gone(w, p), Goes(4, 0, 0, vec![101, 102])),
        (
            "a proof in a wanted spare",
            |w, p| {
                prove(w, p, 102, FAR);
                gone(w, p)
            },
            Lost(5),
        ),
        (
            "a proof in the head of one too many",
            |w, p| {
                prove(w, p, 103, HEAD);
                gone(w, p)
            },
            Lost(5),
        ),
        (
            "a proof far after the head, a torn tail",
            |w, p| {
                prove(w, p, 103, FAR);
                torn(w, p)
            },
            Lost(5),
        ),
        (
            "a proof far after the head, a dirty spare",
            |w, p| {
                dirty(w, 101, 7);
                prove(w, p, 103, FAR);
                gone(w, p);
            },
            Lost(5),
        ),
        // The limit of the check: `reload` has the reason.
        (
            "a proof far after the head, nothing torn",
            |w, p| {
                prove(w, p, 103, FAR);
                gone(w, p)
            },
            Goes(4, 0, 0, vec![101, 102]),
        ),
        (
            "a proof in one of another length",
            |w, p| {
                w.put(&spare(101), &[0; 65_536]);
                prove(w, p, 101, HEAD);
                gone(w, p);
            },
            Lost(5),
        ),
        ("a proof of existing records", |w, p| prove(w, p, 103, HEAD), Goes(9, 0, 1, vec![101, 102])),
    ];
    let cases = table.len();
    for (what, change, expected) in table {
        let (world, places) = sample();
        change(&world, &places);
        let found = match recovered(&world) {
            Ok(Recovered { last_lsn, bytes_cut, spares_dirty, .. }) => {
                let kept = world.names().into_iter().filter_map(|name| name.strip_suffix(".spare")?.parse().ok());
                Goes(last_lsn.0, bytes_cut, spares_dirty, kept.collect())
            }
            Err(Error::Lost(loss)) => Lost(loss.lsn.0),
            Err(error) => panic!("{what}: {error}"),
        };
        assert_eq!(found, expected, "{what}");
        if let Goes(last, ..) = expected {
            world.kill();
            let again = recovered(&world).expect("it was repaired");
            assert_eq!((again.last_lsn.0, again.bytes_cut, again.spares_dirty), (last, 0, 0), "{what}, again");
        }
    }
    println!("spares: {cases} cases");
}

/// A dirty spare does not hide or fake a clean stop.
#[test]
fn a_clean_stop_is_detected_with_a_dirty_spare() {
    for is_dirty in [false, true] {
        let world = Faults::new(2);
        let mut running = start(&world);
        running.log.append_clean_stop(5).expect("room");
        running.syncer.finish().expect("no failure");
        world.kill();
        world.put(&spare(101), &[u8::from(is_dirty); SEGMENT_BYTES]);
        let recovered = recovered(&world).expect("whole");
        assert_eq!((recovered.clean_stop, recovered.spares_dirty), (true, u32::from(is_dirty)));
    }
    println!("clean stops: 2 cases");
}

/// Of an unwanted spare a start reads header and head, however many there are. Records of a killed process are found
/// among them, in a segment that had no name yet.
#[test]
fn unwanted_spares_cost_two_reads_each() {
    let reads = |too_many: usize| {
        let world = Faults::new(3);
        let mut running = start(&world);
        append(&mut running, &[1; 64]);
        running.syncer.turn().expect("no failure");
        running.preparer.turn().expect("room");
        // Into the spare, and never synced.
        let long = vec![2; SEGMENT_BYTES / 3];
        let last = (0..4).map(|_| append(&mut running, &long).0).last().expect("several");
        world.kill();
        (0..too_many + 2).for_each(|number| world.put(&spare(101 + number), &[0; SEGMENT_BYTES]));
        let before = world.calls(Call::Read);
        assert_eq!(recovered(&world).expect("whole").last_lsn, last, "{too_many} too many");
        let left = world.names().into_iter().filter(|name| name.ends_with(".spare")).count();
        assert_eq!(left, 2, "{too_many} too many");
        world.calls(Call::Read) - before
    };
    let (none, some) = (reads(0), reads(50));
    println!("reads of a start: {none} with the wanted spares, {some} with 50 more");
    assert_eq!(some - none, 2 * 50);
}

/// A segment under a spare's name is refused, and the error names that file.
#[test]
fn segments_under_a_spares_name_are_refused() {
    // Several segments in the smallest size; the last one open.
    let small = || Options { segment_bytes: 4_096, spares_count: 1, reserve_bytes: 0, ..Options::default() };
    let log = |seed, with_snapshot: bool| {
        let world = Faults::new(seed);
        let dir = Dir::open(world.clone(), small()).expect("open");
        let (_, recovered) = recover(&dir, false).expect("new");
        let mut running = dir.start(recovered, 1, Box::new(|_| {})).expect("start");
        for number in 0..60u8 {
            append(&mut running, &[number; 300]);
            running.syncer.turn().expect("no failure");
        }
        if with_snapshot {
            snapshot(&mut running, 0);
        }
        world.kill();
        let names = world.names().into_iter().filter(|name| name.ends_with(".wal")).collect::<Vec<_>>();
        (world, names)
    };
    let mut cases = 0;
    let mut check = |what: &str, world: &Faults, name: &str, expected: &dyn Fn(&Fault) -> bool| {
        let before = world.names();
        let error = Dir::open(world.clone(), small()).and_then(|dir| recover(&dir, false)).err();
        let message = error.as_ref().map(ToString::to_string);
        match error {
            Some(Error::Format { file, fault }) if file == name && expected(&fault) => {}
            _ => panic!("{what}: {message:?}"),
        }
        assert_eq!(world.names(), before, "{what}: nothing was changed");
        cases += 1;
    };
    // A snapshot covers all but the last segments: then the others are not read, and only their order is checked.
    for with_snapshot in [false, true] {
        let (sample, names) = log(4, with_snapshot);
        for (of, number) in names.iter().flat_map(|of| [(of, 0), (of, 99)]) {
            let world = sample.copy(5);
            world.put(&spare(number), &world.contents(of).expect("there"));
            check(&format!("a copy of {of}"), &world, &spare(number), &|fault| {
                *fault == Fault::Copy { of: of.clone() }
            });
        }
    }
    let (world, names) = log(6, false);
    world.put(&spare(99), &log(7, false).0.contents(&names[1]).expect("the same name"));
    check("another directory's", &world, &spare(99), &|fault| *fault == Fault::Foreign);
    let (world, names) = log(8, false);
    let mut newer =
        SegmentHeader::decode(world.contents(&names[1]).expect("there").first_chunk().expect("long enough"))
            .expect("whole")
            .encode();
    newer[8] += 1;
    world.put(&spare(99), &newer);
    check("a newer program's", &world, &spare(99), &|fault| matches!(fault, Fault::Version { found: 2, .. }));

    let copy = Error::Format { file: spare(99), fault: Fault::Copy { of: FIRST.to_owned() } };
    assert_eq!(
        copy.to_string(),
        "00000099.spare: has the name of a spare and holds a copy of 00000000000000000001.wal, which is intact; \
         move the copy out of the log's directory"
    );
    println!("files under a spare's name: {cases} cases");
    assert!(cases > 20);
}

/// A directory, a pipe, a socket or a link with a name of the log: the start reports which and what to do, and does not
/// block.
#[test]
fn anything_but_a_plain_file_is_refused() {
    let names = ["00000007.spare", "00000007.making", "00000000000000000009.wal", "00000000000000000001.snapshot"];
    type Make = fn(&std::path::Path);
    let kinds: [(&str, Make, PlaceFault); 4] = [
        ("directory", |at| fs::create_dir(at).expect("made"), PlaceFault::NotPlain),
        (
            "pipe",
            |at| assert!(Command::new("mkfifo").arg(at).status().expect("mkfifo").success()),
            PlaceFault::NotPlain,
        ),
        ("socket", |at| drop(UnixListener::bind(at).expect("made")), PlaceFault::NotPlain),
        ("link", |at| symlink("nowhere", at).expect("made"), PlaceFault::SymbolicLink),
    ];
    let mut cases = 0;
    for name in names {
        for (kind, make, expected) in kinds {
            // Unfinished files are removed unread; only a directory cannot be.
            let expected = (!name.ends_with(".making") || kind == "directory").then_some(expected);
            let parent = tempfile::tempdir().expect("temporary directory");
            let path = parent.path().join("log");
            let (done, outcome) = mpsc::channel();
            thread::spawn(move || {
                let small = || Options { segment_bytes: 4_096, reserve_bytes: 0, ..Options::default() };
                let again = |path: &std::path::Path| {
                    let dir = unlocked(|| Dir::open(Files::open(path)?, small()))?;
                    let snapshot = dir.newest_snapshot()?;
                    let recovered = dir.recover(snapshot.as_ref(), false)?.finish()?;
                    dir.start(recovered, 1, Box::new(|_| {})).map(drop)
                };
                again(&path).expect("new");
                make(&path.join(name));
                let _ = done.send(again(&path));
            });
            let outcome = outcome.recv_timeout(Duration::from_secs(60)).expect("it does not block");
            match (&outcome, expected) {
                (Err(Error::Place { file, fault }), Some(expected)) if file == name && *fault == expected => {}
                (Ok(()), None) => {}
                _ => panic!("a {kind} {name}: {outcome:?}"),
            }
            cases += 1;
        }
        // The file system in memory agrees.
        let (world, _) = sample();
        let before = world.names();
        world.put_directory(name);
        let outcome = Dir::open(world.clone(), options()).and_then(|dir| recover(&dir, false)).err();
        match outcome {
            Some(Error::Place { file, fault: PlaceFault::NotPlain }) if file == name => {}
            _ => panic!("a directory {name} in memory: {outcome:?}"),
        }
        assert_eq!(world.names().len(), before.len() + 1, "nothing was changed");
        cases += 1;
    }
    let message = Error::Place { file: names[0].to_owned(), fault: PlaceFault::NotPlain }.to_string();
    assert!(
        message.starts_with("00000007.spare: is a directory, a pipe") && message.ends_with("directory"),
        "{message}"
    );
    println!("not plain files: {cases} cases");
}

/// A refusal because of a loss names what is lost, where, and what to do.
#[test]
fn a_refusal_for_lost_records_names_a_remedy() {
    let (world, places) = sample();
    put_changed(&world, FIRST, |bytes| bytes[places[4] + 60] ^= 1);
    let Err(Error::Lost(loss)) = recovered(&world) else { panic!("record 4 was promised") };
    assert_eq!((loss.lsn, loss.synced), (Lsn(4), Lsn(5)));
    let message = Error::Lost(loss).to_string();
    for words in [FIRST, "2 records (LSN 4 to 5) cannot be replayed", "nothing was changed", "put it back", "one copy"]
    {
        assert!(message.contains(words), "{words:?} is not in {message:?}");
    }
}
