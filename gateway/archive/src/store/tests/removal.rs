//! Hours that retention removes, and kills at any step of a life of hours.

use super::*;
use crate::files::crash;

#[test]
fn old_hours_are_removed_but_not_those_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { keep_days: 1, cache_bytes: 10, ..Settings::default() };
    let store = Arc::new(Store::open(folder.path(), settings).expect("opened"));
    let lock = store.lock().expect("the lock");
    assert!(open(folder.path(), 1_000).lock().is_err(), "one process makes hours");
    for number in 0..30 {
        simple(&store, &lock, HOUR + number, &[book_row(1, HOUR + number, 1_000)]);
    }
    let cache = folder.path().join(CACHE);
    fs::create_dir_all(&cache).expect("a folder");
    fs::write(cache.join("old"), "123456789").expect("written");
    fs::write(cache.join("new"), "123456789").expect("written");
    store.pin(VENUE, Hour(HOUR + 1)).expect("pinned");
    for (venue, hour) in [(VENUE, Hour(1)), ("../../x", Hour(HOUR))] {
        assert!(store.pin(venue, hour).is_err() && store.unpin(venue, hour).is_err());
    }
    // Another process pins one after the hours were listed.
    let pin = names::pin_path(&parquet_path(folder.path(), VENUE, Hour(HOUR + 3)));
    fs::write(&pin, "").expect("written");
    let hold = store.hold([(VENUE.to_owned(), Hour(HOUR + 2))]);
    let left = || store.all(VENUE).iter().map(|entry| entry.hour.0 - HOUR).collect::<Vec<u32>>();
    // A day before: hours 0 to 3 are older.
    let now = Timestamp::of_hour(HOUR + 28);
    let done = store.retain(&lock, now).expect("removed");
    assert_eq!(done.hours.len(), 1);
    assert_eq!(done.cache_files, 1);
    assert!(left().iter().copied().eq([1, 2].into_iter().chain(3..30)));
    drop(hold);
    fs::remove_file(pin).expect("removed");
    store.unpin(VENUE, Hour(HOUR + 1)).expect("unpinned");
    assert_eq!(store.retain(&lock, now).expect("removed").hours.len(), 3);
    assert!(left().iter().copied().eq(4..30));
    drop((lock, store));
    // By bytes, the oldest first.
    let bytes_max = open(folder.path(), 1_000).bytes() / 2;
    let store = Store::open(folder.path(), Settings { bytes_max, ..Settings::default() }).expect("opened");
    let lock = store.lock().expect("the lock");
    store.retain(&lock, now).expect("removed");
    let left: Vec<u32> = store.all(VENUE).iter().map(|entry| entry.hour.0 - HOUR).collect();
    assert!(left.iter().copied().eq(30 - left.len() as u32..30) && (12..=13).contains(&left.len()), "{left:?}");
    assert!(store.bytes() <= bytes_max);
    assert_eq!(store.verify(Hour(0)..Hour(u32::MAX), None).expect("verified"), [], "the chain begins later");
    println!("removed hours: 17 cases");
}

/// Steps of a life of hours: made in order and out of order, replaced, pinned, removed.
fn life(root: &Path) -> Result<(), Error> {
    let store = Store::open(root, Settings { keep_days: 1, ..Settings::default() })?;
    let lock = store.lock()?;
    store.recover(&lock)?;
    let now = Timestamp::of_hour(HOUR + 27);
    for (hour, seed) in [(HOUR, 1), (HOUR + 4, 2), (HOUR + 3, 3), (HOUR + 4, 4)] {
        let rows = rows_of(seed, hour, &[speaks(1, 0, 40), speaks(2, 1, 20)]);
        // What a build does: an hour that is there stays.
        let entry = store
            .hour(VENUE, Hour(hour))
            .filter(|entry| entry.sidecar().is_ok_and(|sidecar| sidecar.sealed_at >= seed));
        if entry.is_none() {
            let sidecar = Sidecar { sealed_at: seed, ..sidecar_of(&rows) };
            make(&store, &lock, hour, &rows, sidecar, HourFacts::default())?;
        }
    }
    // An index that was lost.
    let lost = index_path(&parquet_path(root, VENUE, Hour(HOUR + 3)));
    fs::remove_file(&lost).of(&lost)?;
    store.refresh()?;
    store.mend(&lock)?;
    store.pin(VENUE, Hour(HOUR + 3))?;
    store.retain(&lock, now)?;
    store.unpin(VENUE, Hour(HOUR + 3))
}

/// A kill after each step of each file: after recovery every hour is whole or not there, the chain is unbroken, and the
/// work that is done again ends with the same files.
#[test]
fn a_kill_at_any_step_leaves_whole_hours() {
    let whole = tempfile::tempdir().expect("a folder");
    life(whole.path()).expect("no kill");
    let expected = files_of(whole.path());
    assert!(expected.keys().all(|path| !path.to_str().is_some_and(|path| path.ends_with(".making"))));
    let mut kills = 0;
    let mut was_there = false;
    loop {
        let folder = tempfile::tempdir().expect("a folder");
        crash::after(Some(kills));
        let ended = life(folder.path());
        crash::after(None);
        if ended.is_ok() {
            break;
        }
        kills += 1;
        let store = open(folder.path(), 1 << 20);
        let lock = store.lock().expect("the lock");
        store.recover(&lock).expect("recovered");
        let left = files_of(folder.path());
        let stray = left.keys().filter(|path| path.to_str().is_some_and(|path| path.ends_with(".making"))).count();
        assert_eq!(stray, 0, "kill {kills}");
        for finding in store.verify(Hour(0)..Hour(u32::MAX), Some(&mut NoRaw)).expect("verified") {
            // Only the oldest hour, which retention removes.
            let expected = (Hour(HOUR), "the sidecar is missing");
            assert_eq!((finding.hour, finding.problem.as_str()), expected, "kill {kills}: {finding:?}");
        }
        // An hour that is replaced is there at every moment.
        let is_there = store.hour(VENUE, Hour(HOUR + 4)).is_some_and(|entry| entry.sidecar().is_ok());
        assert!(is_there || !was_there, "kill {kills}: the hour is lost");
        was_there |= is_there;
        drop((lock, store));
        life(folder.path()).expect("done again");
        let found = files_of(folder.path());
        let names = |files: &BTreeMap<PathBuf, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
        assert_eq!(names(&found), names(&expected), "kill {kills}");
        let differing: Vec<&PathBuf> =
            expected.iter().filter(|(path, bytes)| found[*path] != **bytes).map(|of| of.0).collect();
        assert!(differing.is_empty(), "kill {kills}: {differing:?}");
    }
    assert!(kills > 30, "{kills}");
    println!("kills: {kills} cases");
}
