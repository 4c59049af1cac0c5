//! Hours that are replaced, or turn out to be damaged, while they are read.

use super::*;

/// Findings about an hour that cross each other, and that cross its replacement.
#[test]
fn findings_that_cross() {
    type Find = fn(&Store, &Arc<HourEntry>);
    let reads: Find = |store, entry| drop(store.tokens(entry, &condition(1)));
    let compares: Find = |store, entry| store.checker.check(entry);
    let finders = [("a read", reads), ("the comparison", compares)];
    let states = |store: &Store| -> Vec<Verdict> {
        let states = store.hours(VENUE, &condition(1), Hour(HOUR)..Hour(HOUR + 1));
        states.iter().map(|state| state.verdict).collect()
    };
    let mut cases = 0;
    for (first_name, first) in finders {
        for (second_name, second) in finders {
            let case = format!("{first_name}, then {second_name}");
            let folder = tempfile::tempdir().expect("a folder");
            let maker = open(folder.path(), 64 << 20);
            let lock = maker.lock().expect("the lock");
            let made = |millis: u64| simple(&maker, &lock, HOUR, &[book_row(1, HOUR, millis)]);
            made(1_000);
            let index = index_path(&parquet_path(folder.path(), VENUE, Hour(HOUR)));
            let damage = || {
                let good = fs::read(&index).expect("read");
                fs::write(&index, &good[..good.len() - 7]).expect("written");
            };
            damage();
            // Both find damage: the first finding stays, and is one change.
            let store = open(folder.path(), 64 << 20);
            let entry = store.hour(VENUE, Hour(HOUR)).expect("an hour");
            let before = store.version();
            first(&store, &entry);
            let reason = entry.sidecar().expect_err("quarantined").reason;
            second(&store, &entry);
            assert_eq!(entry.sidecar().expect_err("quarantined").reason, reason, "{case}");
            assert_eq!((store.version(), states(&store)), (before + 1, vec![Verdict::Quarantined]), "{case}");
            assert!(find(&store, 1, HOUR, 5_000).is_none(), "{case}");
            // Another process replaces the hour: what was found is of the files before, and so is what is found late.
            made(2_000);
            first(&store, &entry);
            store.refresh().expect("listed");
            second(&store, &entry);
            assert_eq!(states(&store), [Verdict::Valid], "{case}: replaced after a finding");
            assert_eq!(find(&store, 1, HOUR, 5_000).map(|book| book.last_message), millis(2_000), "{case}");
            // The hour is replaced when it is listed and its sidecar is read, and its files are not open.
            let store = open(folder.path(), 64 << 20);
            let entry = store.hour(VENUE, Hour(HOUR)).expect("an hour");
            entry.sidecar().expect("a sidecar");
            made(3_000);
            first(&store, &entry);
            second(&store, &entry);
            assert_eq!(states(&store), [Verdict::Valid], "{case}: replaced before a finding");
            assert_eq!(find(&store, 1, HOUR, 5_000).map(|book| book.last_message), millis(3_000), "{case}");
            // The same without a finding before: the read that meets the other files has the book of them.
            let store = open(folder.path(), 64 << 20);
            store.hour(VENUE, Hour(HOUR)).expect("an hour").sidecar().expect("a sidecar");
            made(4_000);
            assert_eq!(find(&store, 1, HOUR, 5_000).map(|book| book.last_message), millis(4_000), "{case}");
            // Damage after the list: the first finding lists the hour again, the second one is about what is listed.
            let store = open(folder.path(), 64 << 20);
            let current = || store.hour(VENUE, Hour(HOUR)).expect("an hour");
            current().sidecar().expect("a sidecar");
            damage();
            reads(&store, &current());
            first(&store, &current());
            assert!(current().sidecar().is_err(), "{case}: damaged after the list");
            assert_eq!(states(&store), [Verdict::Quarantined], "{case}: damaged after the list");
            cases += 5;
        }
    }
    println!("findings that cross: {cases} cases");
}

/// An hour turns out to be damaged, or is replaced, while the next one needs its books.
#[test]
fn books_of_an_hour_that_changes_meanwhile() {
    let folder = tempfile::tempdir().expect("a folder");
    let maker = open(folder.path(), 64 << 20);
    let lock = maker.lock().expect("the lock");
    // The market 1 is silent in the second hour.
    simple(&maker, &lock, HOUR, &[book_row(1, HOUR, 1_000)]);
    simple(&maker, &lock, HOUR + 1, &[book_row(2, HOUR + 1, 1_000)]);
    let store = open(folder.path(), 64 << 20);
    let listed = |hour: u32| store.hour(VENUE, Hour(hour)).expect("an hour").sidecar().is_ok();
    assert!(listed(HOUR) && listed(HOUR + 1));
    simple(&maker, &lock, HOUR, &[book_row(1, HOUR, 2_000)]);
    assert_eq!(find(&store, 1, HOUR + 1, 5_000).map(|book| book.last_message), millis(2_000), "replaced");
    // Damaged, and not known to be.
    let index = index_path(&parquet_path(folder.path(), VENUE, Hour(HOUR)));
    let good = fs::read(&index).expect("read");
    fs::write(&index, &good[..good.len() - 7]).expect("written");
    drop((maker, lock));
    let store = open(folder.path(), 64 << 20);
    let lock = store.lock().expect("the lock");
    assert!(store.hour(VENUE, Hour(HOUR)).expect("an hour").sidecar().is_ok());
    let made = simple(&store, &lock, HOUR + 1, &[book_row(1, HOUR + 1, 3_000)]);
    assert_eq!(made.checks.carried_tokens, 0, "nothing is carried out of a damaged hour");
    assert!(store.hour(VENUE, Hour(HOUR)).expect("an hour").sidecar().is_err(), "it is quarantined");
    assert!(find(&store, 1, HOUR + 1, 5_000).is_some());
    println!("hours that change meanwhile: 2 cases");
}
