//! Files, and the directory, that are removed while their log is open: a removed spare is harmless, and any other
//! removal is reported before one more record counts as synced.

use std::fs;

use crate::fault::Faults;
use crate::tests::files::{place, unlocked};
use crate::tests::tiny;
use crate::{Dir, Error, Files, Full, Kind, Lsn, Options, PlaceFault, Prepared, Running, Storage};

const SPARES_COUNT: u32 = 3;

fn start<S: Storage>(storage: S) -> (Running<S>, Vec<Vec<u8>>) {
    let open = || Dir::open(storage.clone(), Options { spares_count: SPARES_COUNT, ..tiny() });
    let dir = unlocked(open).expect("open");
    let mut recovery = dir.recover(None, false).expect("recover");
    let mut found = Vec::new();
    while let Some(entry) = recovery.next().expect("record") {
        if entry.kind == Kind::Mutations {
            found.push(entry.payload.to_vec());
        }
    }
    let recovered = recovery.finish().expect("finish");
    (dir.start(recovered, 1, Box::new(|_| {})).expect("start"), found)
}

fn prepare<S: Storage>(running: &mut Running<S>) {
    while running.preparer.turn().expect("prepare") == Prepared::One {}
}

/// A storage, how a file of it and all of it are removed from outside, and how its process dies.
struct Place<S> {
    storage: S,
    remove: Box<dyn Fn(&str)>,
    remove_all: Box<dyn Fn()>,
    kill: Box<dyn Fn()>,
    _parent: Option<tempfile::TempDir>,
}

fn in_memory() -> Place<Faults> {
    let world = Faults::new(1);
    let (removing, emptied, killed) = (world.clone(), world.clone(), world.clone());
    Place {
        storage: world,
        remove: Box::new(move |name| drop(removing.take(name).expect("it was there"))),
        remove_all: Box::new(move || emptied.take_directory()),
        kill: Box::new(move || killed.kill()),
        _parent: None,
    }
}

fn on_disk() -> Place<Files> {
    let (parent, path) = place();
    let storage = Files::open(&path).expect("directory");
    let all = path.clone();
    let remove = move |name: &str| fs::remove_file(path.join(name)).expect("it was there");
    let remove_all = move || fs::remove_dir_all(&all).expect("it was there");
    let kill = Box::new(|| {});
    Place { storage, remove: Box::new(remove), remove_all: Box::new(remove_all), kill, _parent: Some(parent) }
}

fn names<S: Storage>(storage: &S, ending: &str) -> Vec<String> {
    let listed = storage.list().expect("listed").into_iter().map(|(name, _)| name);
    let mut names: Vec<String> = listed.filter(|name| name.ends_with(ending)).collect();
    names.sort();
    names
}

/// What was removed of three spares in their order, whether the preparer runs before the log needs them, and how many
/// spares the log then takes before it is full.
const REMOVED: [(&str, &[usize], bool, u32); 8] = [
    ("none", &[], false, 3),
    ("the next one", &[0], false, 2),
    ("one in the middle", &[1], false, 2),
    ("the last one", &[2], false, 2),
    ("all but the last", &[0, 1], false, 1),
    ("all", &[0, 1, 2], false, 0),
    ("all, and it is detected", &[0, 1, 2], true, 3),
    ("two, and it is detected", &[1, 2], true, 3),
];

fn check_spares<S: Storage>(place: impl Fn() -> Place<S>) {
    for (what, removed, is_seen, takes) in REMOVED {
        let Place { storage, remove, kill, _parent, .. } = place();
        let (mut running, _) = start(storage.clone());
        prepare(&mut running);
        let spares = names(&storage, ".spare");
        assert_eq!(spares.len(), SPARES_COUNT as usize, "{what}");
        removed.iter().for_each(|index| remove(&spares[*index]));
        if is_seen {
            prepare(&mut running);
            assert_eq!(names(&storage, ".spare").len(), SPARES_COUNT as usize, "{what}: new ones");
        }
        let mut expected: Vec<Vec<u8>> = Vec::new();
        let append = |running: &mut Running<S>, expected: &mut Vec<Vec<u8>>| {
            let payload = format!("record {}", expected.len()).repeat(100).into_bytes();
            running.log.append(Kind::Mutations, 1, 2, 3, &payload).inspect(|_| expected.push(payload))
        };
        while append(&mut running, &mut expected).is_ok() {}
        let segments = expected.len().div_ceil(4) as u32;
        assert_eq!((segments, running.marks.spares_ready()), (takes + 1, 0), "{what}: {} records", expected.len());
        assert_eq!(append(&mut running, &mut expected), Err::<Lsn, _>(Full), "{what}");
        running.syncer.turn().unwrap_or_else(|error| panic!("{what}: {error}"));
        // And it continues.
        prepare(&mut running);
        assert_eq!(running.marks.spares_ready(), SPARES_COUNT, "{what}: as many as before");
        append(&mut running, &mut expected).expect("room again");
        kill();
        drop(running);
        let (_, found) = start(storage);
        assert_eq!(found, expected, "{what}");
    }
    println!("spares removed: {} cases", REMOVED.len());
}

#[test]
fn a_removed_spare_takes_no_record() {
    check_spares(in_memory);
    check_spares(on_disk);
}

/// Removing each spare that is made fills neither the queue nor the disk.
#[test]
fn spares_that_are_always_removed_are_made_a_bounded_number_of_times() {
    let world = Faults::new(1);
    let (mut running, _) = start(world.clone());
    let mut made = 0;
    for _ in 0..100 {
        while running.preparer.turn().expect("prepare") == Prepared::One {
            made += 1;
        }
        names(&world, ".spare").iter().for_each(|name| drop(world.take(name)));
    }
    println!("spares made: {made}");
    assert_eq!((made, running.marks.spares_ready()), (16, 0));
}

/// What is removed, and what is done next: no record in it may count as synced, and the error names what was removed.
fn check_removals<S: Storage>(place: impl Fn() -> Place<S>) {
    const OPEN: &str = "00000000000000000001.wal";
    type Step<S> = fn(&mut Running<S>);
    let append: Step<S> = |running| assert!(running.log.append(Kind::Mutations, 1, 2, 3, b"late").is_ok());
    let roll: Step<S> = |running| while running.log.append(Kind::Mutations, 1, 2, 3, &[7; 900]).is_ok() {};
    let nothing: Step<S> = |_| {};
    // Before the removal, what is removed (`None`: the directory), and after it.
    type Row<S> = (&'static str, Step<S>, Option<&'static str>, Step<S>);
    let table: [Row<S>; 6] = [
        ("the open segment", nothing, Some(OPEN), append),
        ("the open segment, with a record in it", append, Some(OPEN), nothing),
        ("the open segment, and others follow", append, Some(OPEN), roll),
        ("a spare that is in use and has no name yet", roll, Some("00000002.spare"), nothing),
        ("the directory", nothing, None, append),
        ("the directory, with a record in it", append, None, nothing),
    ];
    for (what, before, removed, behind) in &table {
        let Place { storage, remove, remove_all, _parent, .. } = place();
        let (mut running, _) = start(storage);
        prepare(&mut running);
        running.syncer.turn().expect("all is there");
        before(&mut running);
        let synced = running.marks.synced();
        match removed {
            Some(name) => remove(name),
            None => remove_all(),
        }
        behind(&mut running);
        let expected = removed.unwrap_or(OPEN);
        match running.syncer.turn() {
            Err(Error::Place { file, fault: PlaceFault::Removed }) => assert_eq!(file, expected, "{what}"),
            other => panic!("{what}: {other:?}"),
        }
        assert_eq!((running.marks.synced(), running.marks.is_poisoned()), (synced, true), "{what}");
        assert!(matches!(running.syncer.turn(), Err(Error::Poisoned)), "{what}: permanently");
    }
    println!("removals that a sync detects: {} cases", table.len());

    type Attempt<S> = fn(&mut Running<S>) -> Result<(), Error>;
    let table: [(&str, Attempt<S>); 4] = [
        ("a turn of spares", |running| running.preparer.turn().map(drop)),
        ("segments released", |running| running.preparer.recycle(Lsn(1)).map(drop)),
        ("a snapshot", |running| running.snapshots.create(Lsn(1), 0).map(drop)),
        ("a check of snapshots", |running| running.snapshots.covered().map(drop)),
    ];
    for (what, call) in &table {
        let Place { storage, remove_all, _parent, .. } = place();
        let (mut running, _) = start(storage);
        prepare(&mut running);
        running.syncer.turn().expect("all is there");
        remove_all();
        match call(&mut running) {
            Err(Error::Place { fault: PlaceFault::DirectoryRemoved, .. }) => {}
            other => panic!("{what}: {other:?}"),
        }
    }
    println!("calls in a removed directory: {} cases", table.len());
}

#[test]
fn nothing_that_was_removed_counts_as_synced() {
    check_removals(in_memory);
    check_removals(on_disk);
}
