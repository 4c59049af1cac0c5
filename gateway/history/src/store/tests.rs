use super::journal::{BATCH_END, DAMAGED};
use super::*;
use crate::files::{is_store_file, store_files};
use crate::row::{key, write_candle};
use crate::testing::{contents, copy_running};
use engine::book::candles::{Candle, Mid};
use std::collections::BTreeMap;

const CACHE_BYTES: u64 = 1 << 20;
/// Rows of a batch of these tests: more than a page of the journal.
const ROWS: u32 = 200;
const PAGE: usize = 4_096;

fn open(folder: &Path) -> Store {
    Store::open(folder, CACHE_BYTES).expect("a sound store")
}

/// Writes the n-th batch.
fn write(store: &mut Store, number: u32) {
    let mut batch = Batch::default();
    for row in 0..ROWS {
        batch.put(Table::Minutes, key(row, number), write_candle(&Candle::at(Mid(number as u16))));
    }
    let about = About { newest: Some(number), ..About::default() };
    store.write(batch, about).expect("written");
}

/// Checks that the store has the first batches as a whole and nothing else, and returns how many.
fn batches(store: &Store, what: &str) -> u32 {
    let mut found: BTreeMap<u32, u32> = BTreeMap::new();
    for row in store.scan(Table::Minutes, [0; 8]..=[0xff; 8]) {
        let (_, number, value) = row.expect(what);
        assert_eq!(&value[..], &write_candle(&Candle::at(Mid(number as u16)))[..], "{what}");
        *found.entry(number).or_default() += 1;
    }
    let count = found.len() as u32;
    assert!(found.iter().zip(0..).all(|((number, rows), expected)| (*number, *rows) == (expected, ROWS)), "{what}");
    assert_eq!(store.known.newest, count.checked_sub(1), "{what}");
    count
}

fn journal_of(folder: &Path) -> PathBuf {
    newest_journal(&folder.join(FOLDER)).expect("a folder").expect("a journal")
}

/// A store with batches that are durable, and batches that only the kernel has: its folder, and the bytes of its journal
/// that are durable and that there are.
fn half_synced(durable: u32, all: u32) -> (tempfile::TempDir, usize, Vec<u8>) {
    let (place, left) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let mut store = open(place.path());
    (0..durable).for_each(|number| write(&mut store, number));
    store.sync().expect("synced");
    let end = |journal: &Path| end_of_batches(&File::open(journal).expect("it is there")).expect("readable") as usize;
    let synced = end(&journal_of(place.path()));
    (durable..all).for_each(|number| write(&mut store, number));
    copy_running(place.path(), left.path());
    let journal = journal_of(left.path());
    let bytes = fs::read(&journal).expect("readable");
    let length = end(&journal);
    (left, synced, bytes[..length].to_vec())
}

#[test]
fn a_kill_loses_nothing_that_was_written() {
    let place = tempfile::tempdir().expect("a folder");
    let mut store = open(place.path());
    let mut cases = 0;
    for number in 0..8 {
        write(&mut store, number);
        if number == 4 {
            store.settle().expect("written to tables");
        }
        let left = tempfile::tempdir().expect("a folder");
        copy_running(place.path(), left.path());
        assert_eq!(batches(&open(left.path()), "a kill"), number + 1);
        // Also of a process that has done nothing but start after a kill.
        let again = tempfile::tempdir().expect("a folder");
        copy_running(left.path(), again.path());
        assert_eq!(batches(&open(again.path()), "two kills"), number + 1);
        cases += 2;
    }
    println!("kills: {cases} cases");
}

/// The journal ends anywhere: what is before that, in whole batches, is there.
#[test]
fn a_torn_journal_loses_the_torn_batch_only() {
    let (place, _, bytes) = half_synced(0, 3);
    let journal = journal_of(place.path());
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, BATCH_END).map(|at| at + BATCH_END.len()).collect();
    let mut cases = 0;
    for length in (0..=bytes.len()).step_by(61).chain(ends.iter().flat_map(|end| [*end, end - 1])) {
        fs::write(&journal, &bytes[..length]).expect("written");
        let expected = ends.iter().filter(|end| **end <= length).count() as u32;
        assert_eq!(batches(&open(place.path()), "torn"), expected, "{length} bytes");
        cases += 1;
    }
    println!("torn journals: {cases} cases");
    assert!(cases > 100);
}

/// A power cut loses any of the pages that were not made durable: those that were are there, in whole batches.
#[test]
fn a_power_cut_loses_nothing_that_was_synced() {
    let (place, synced, bytes) = half_synced(3, 9);
    let journal = journal_of(place.path());
    let pages = bytes.len().div_ceil(PAGE);
    let (first, mut cases, mut refused) = (synced.div_ceil(PAGE), 0, 0);
    assert!(pages - first >= 8, "{pages} pages");
    for lost in 0..1u32 << (pages - first).min(8) {
        let mut left = bytes.clone();
        for page in (first..pages).filter(|page| lost >> (page - first) & 1 == 1) {
            let end = left.len().min((page + 1) * PAGE);
            left[page * PAGE..end].fill(0);
        }
        fs::write(&journal, &left).expect("written");
        refused += u32::from(Store::open_at(&place.path().join(FOLDER), CACHE_BYTES).is_err());
        fs::write(&journal, &left).expect("written");
        let found = batches(&open(place.path()), "a power cut");
        assert!((3..=9).contains(&found) && (lost > 0 || found == 9), "{lost:b}: {found}");
        assert!(!journal.with_extension(DAMAGED).exists());
        cases += 1;
    }
    println!("power cuts: {cases} cases, {refused} of them refused by the engine as they were");
    assert!(refused > 0, "the journal was cut");
}

/// Flipped bits: a prefix of the batches is there.
#[test]
fn a_damaged_journal_is_cut_before_the_damage() {
    let (place, _, bytes) = half_synced(0, 4);
    let journal = journal_of(place.path());
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, BATCH_END).map(|at| at + BATCH_END.len()).collect();
    let mut cases = 0;
    // The number of a batch, after its kind and the count of its rows, has no checksum.
    let starts = ends.iter().chain([&0]).map(|start| start + 5..start + 13);
    let numbers: Vec<usize> = starts.flatten().collect();
    for at in (0..bytes.len()).step_by(89).chain(0..60).filter(|at| !numbers.contains(at)) {
        let mut left = bytes.clone();
        left[at] ^= 0x04;
        fs::write(&journal, &left).expect("written");
        let before = ends.iter().filter(|end| **end <= at).count() as u32;
        let store = open(place.path());
        let found = batches(&store, "a flipped bit");
        assert_eq!(found, before, "byte {at}");
        cases += 1;
    }
    println!("damaged journals: {cases} cases");
}

/// A crash while a damaged journal is cut, at any point of that: no batch is lost that either journal has.
#[test]
fn an_interrupted_cut_loses_nothing() {
    let (place, _, bytes) = half_synced(0, 3);
    let journal = journal_of(place.path());
    let whole = journal.with_extension(DAMAGED);
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, BATCH_END).map(|at| at + BATCH_END.len()).collect();
    let zeros = vec![0; bytes.len()];
    type Case<'a> = (&'a str, Option<&'a [u8]>, &'a [u8], u32);
    let cases: [Case<'_>; 8] = [
        ("before the first trial", None, &bytes, 3),
        ("an empty trial", Some(&[]), &bytes, 3),
        ("a trial", Some(&bytes[..ends[1]]), &bytes, 3),
        ("a torn trial", Some(&bytes[..ends[1] + 7]), &bytes, 3),
        ("a trial whose bytes a power cut lost", Some(&zeros), &bytes, 3),
        ("a half copy", Some(&bytes), &bytes[..ends[1] - 9], 3),
        ("an empty copy", Some(&bytes), &[], 3),
        ("a copy whose bytes a power cut lost", Some(&bytes), &zeros, 3),
    ];
    for (what, counts, other, expected) in cases {
        let _ = fs::remove_file(&journal);
        counts.into_iter().for_each(|bytes| fs::write(&journal, bytes).expect("written"));
        fs::write(&whole, other).expect("written");
        assert_eq!(batches(&open(place.path()), what), expected, "{what}");
        assert!(!whole.exists(), "{what}");
    }
    // A copy that is left after success: the newer batches count, and not those that were cut.
    let mut damaged = bytes.clone();
    damaged[ends[0] + 60] ^= 0x04;
    fs::write(&journal, &damaged).expect("written");
    let mut store = open(place.path());
    assert_eq!(batches(&store, "cut"), 1);
    (1..6).for_each(|number| write(&mut store, number));
    store.sync().expect("synced");
    drop(store);
    fs::write(&whole, &damaged).expect("written");
    assert_eq!(batches(&open(place.path()), "a copy that is left after success"), 6);
    assert!(!whole.exists());
    // And a kill while the store is made.
    let fresh = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(fresh.path().join(MAKING).join("keyspaces")).expect("a folder");
    fs::write(fresh.path().join(MAKING).join("0.jnl"), b"half").expect("written");
    assert_eq!(batches(&open(fresh.path()), "an interrupted creation"), 0);
    assert!(!fresh.path().join(MAKING).exists());
    println!("interrupted cuts: {} cases", cases.len() + 2);
}

/// Damage elsewhere: the journal stays the file that it was, and is not even copied.
#[test]
fn a_sound_journal_is_not_cut() {
    use std::os::unix::fs::MetadataExt as _;
    let (place, _, bytes) = half_synced(0, 3);
    let journal = journal_of(place.path());
    fs::write(&journal, &bytes).expect("written");
    let file = fs::metadata(&journal).expect("it is there").ino();
    let current = place.path().join(FOLDER).join(KEYSPACES).join("1").join(CURRENT);
    fs::write(&current, b"noise").expect("written");
    for start in 0..3 {
        let refused = Store::open(place.path(), CACHE_BYTES).err();
        assert!(matches!(refused, Some(StoreError::Damaged(_))), "start {start}: {refused:?}");
        assert_eq!(fs::metadata(&journal).expect("it is there").ino(), file, "start {start}");
        assert_eq!(fs::read(&journal).expect("readable"), bytes, "start {start}");
    }
    // A damaged journal that is not the newest one: cutting the newest does not help.
    let place = tempfile::tempdir().expect("a folder");
    let (older, _, mut damaged) = half_synced(0, 2);
    crate::testing::copy(older.path(), place.path());
    damaged[60] ^= 0x04;
    let journal = journal_of(place.path());
    fs::write(&journal, &damaged).expect("written");
    let newest = journal.with_file_name("7.jnl");
    fs::write(&newest, &bytes).expect("written");
    let file = fs::metadata(&newest).expect("it is there").ino();
    let refused = Store::open(place.path(), CACHE_BYTES).err();
    assert!(matches!(refused, Some(StoreError::Damaged(_))), "{refused:?}");
    assert_eq!(fs::metadata(&newest).expect("it is there").ino(), file);
    assert_eq!(fs::read(&newest).expect("readable"), bytes);
    println!("journals that are not cut: 4 cases");
}

/// What the engine removes from the end of any journal is known.
#[test]
fn what_is_cut_off_each_journal_is_counted() {
    let (place, _, bytes) = half_synced(0, 4);
    let ends: Vec<usize> = memchr::memmem::find_iter(&bytes, BATCH_END).map(|at| at + BATCH_END.len()).collect();
    // As after a memory table was written to disk: the first two batches are in a sealed journal.
    let (sealed, newest) = bytes.split_at(ends[1]);
    let (first, second) = (ends[0], ends[2] - ends[1]);
    let (journal, of_batch) = (journal_of(place.path()), |from: usize, to: usize| (to - from) as u64);
    let next = journal.with_file_name("1.jnl");
    // What is damaged in the sealed journal, and in the newest: a tag, at which the engine cuts, or a checksum, at which it
    // refuses the newest.
    let cases: [(Option<usize>, Option<usize>, u64); 5] = [
        (None, None, 0),
        (Some(first), None, of_batch(first, sealed.len())),
        (None, Some(second), of_batch(second, newest.len())),
        (None, Some(second + 60), of_batch(second, newest.len())),
        (Some(0), Some(60), bytes.len() as u64),
    ];
    for (in_sealed, in_newest, expected) in cases {
        let case = tempfile::tempdir().expect("a folder");
        crate::testing::copy(place.path(), case.path());
        for (path, bytes, damaged) in [(&journal, sealed, in_sealed), (&next, newest, in_newest)] {
            let mut bytes = bytes.to_vec();
            damaged.into_iter().for_each(|at| bytes[at] ^= 0x60);
            let name = path.file_name().expect("a name");
            fs::write(case.path().join(FOLDER).join(name), bytes).expect("written");
        }
        assert_eq!(open(case.path()).cut_bytes, expected, "{in_sealed:?}, {in_newest:?}");
        assert_eq!(open(case.path()).cut_bytes, 0, "it is whole from then on");
    }
    println!("bytes that are cut: {} cases", cases.len());
}

/// Rows go to sorted files while the store is written to, and come back from there; a second process is refused.
#[test]
fn sorted_files_have_the_newest_state_of_each_row() {
    let place = tempfile::tempdir().expect("a folder");
    let mut store = open(place.path());
    assert!(matches!(Store::open(place.path(), CACHE_BYTES), Err(StoreError::InUse)));
    for round in 0..40u16 {
        let mut batch = Batch::default();
        for market in 0..2_000 {
            batch.put(Table::Minutes, key(market, u32::from(round / 10)), write_candle(&Candle::at(Mid(round))));
        }
        batch.remove(Table::Minutes, key(2_000, 0));
        store.wait().expect("it keeps up");
        store.write(batch, About { newest: Some(3), ..About::default() }).expect("written");
        if round % 4 == 3 {
            store.settle().expect("written to tables");
        }
    }
    let check = |store: &Store, what: &str| {
        let rows: Vec<_> = store.scan(Table::Minutes, [0; 8]..=[0xff; 8]).map(|row| row.expect(what)).collect();
        assert_eq!(rows.len(), 8_000, "{what}");
        for (market, minute, value) in rows {
            let newest = Candle::at(Mid(minute as u16 * 10 + 9));
            assert_eq!(&value[..], &write_candle(&newest)[..], "{what}, market {market}");
        }
    };
    check(&store, "while it is written");
    store.merge().expect("merged");
    check(&store, "merged");
    assert!(store.size(Table::Minutes).files > 0 && store.size(Table::Minutes).bytes > 0);
    drop(store);
    check(&open(place.path()), "opened again");
    println!("sorted files: 24000 rows");
}

/// Rows that are not kept any more are removed when that is durable, and not before.
#[test]
fn what_is_not_kept_stays_until_that_is_durable() {
    let place = tempfile::tempdir().expect("a folder");
    let mut store = open(place.path());
    let minutes = [60, 119, 120, 200];
    let first_left = |store: &Store| {
        store.merge().expect("merged");
        let rows: Vec<u32> = store.scan(Table::Minutes, [0; 8]..=[0xff; 8]).map(|row| row.expect("sound").1).collect();
        rows[0]
    };
    let put = |store: &mut Store, minutes_from: u32, unsealed: &[u32]| {
        let mut batch = Batch::default();
        minutes.iter().for_each(|minute| batch.put(Table::Minutes, key(1, *minute), write_candle(&Candle::at(Mid(1)))));
        let unsealed = unsealed.iter().copied().collect();
        store.write(batch, About { minutes_from, unsealed, ..About::default() }).expect("written");
    };
    // The first hour that is kept, an hour that is not folded, whether it is durable, and the first minute that is left.
    let cases: [(u32, &[u32], bool, u32); 6] = [
        (2, &[], false, 60),
        (2, &[1], true, 60),
        (2, &[], true, 120),
        (3, &[], false, 120),
        (1, &[], false, 60),
        (3, &[], true, 200),
    ];
    for (minutes_from, unsealed, is_durable, expected) in cases {
        put(&mut store, minutes_from, unsealed);
        if is_durable {
            store.sync().expect("synced");
        }
        assert_eq!(first_left(&store), expected, "hours from {minutes_from}, {unsealed:?}, durable: {is_durable}");
    }
    println!("rows that are not kept: {} cases", cases.len());
}

/// The files of a store that is written to meanwhile are those of one moment.
#[test]
fn a_copy_of_a_running_store_is_whole() {
    let place = tempfile::tempdir().expect("a folder");
    let mut store = open(place.path());
    let mut cases = 0;
    for number in 0..30 {
        write(&mut store, number);
        if number % 3 == 2 {
            store.settle().expect("written to tables");
        }
        let files = store_files(place.path()).expect("readable");
        for file in &files {
            assert!(is_store_file(&file.name) && file.bytes < 1 << 20, "{} has {} bytes", file.name, file.bytes);
        }
        let copied = tempfile::tempdir().expect("a folder");
        copy_running(place.path(), copied.path());
        assert_eq!(batches(&Store::open_existing(copied.path(), CACHE_BYTES).expect("a store"), "a copy"), number + 1);
        cases += 1;
    }
    // Every file of a stopped store is among them.
    drop(store);
    let names: Vec<String> = store_files(place.path()).expect("readable").into_iter().map(|file| file.name).collect();
    assert_eq!(contents(place.path()).into_keys().filter(|name| !names.contains(name)).count(), 0);
    assert!(store_files(&place.path().join("none")).expect("no store").is_empty());
    println!("copies of a running store: {cases} cases");
}

/// A data directory that was removed under a running process does not come back.
#[test]
fn no_folder_is_made_above_the_store() {
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path().join("data");
    assert!(Store::open(&data.join("history"), CACHE_BYTES).is_err());
    assert!(!data.exists());
    fs::create_dir(&data).expect("room");
    for turn in ["a new folder", "the same folder"] {
        drop(Store::open(&data.join("history"), CACHE_BYTES).expect(turn));
    }
    println!("folders above the store: {} cases", 3);
}
