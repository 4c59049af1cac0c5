use super::*;
use crate::ended::testing::{
    CACHE_BYTES, LOG, Placed, World, all_agree, copied, create, days, fail_at, kept, kills, open, sound, world_of_days,
};
use crate::ended::{Counted, count};
use crate::testing::copy;
use engine::departed::{Departed as _, Leaving};
use engine::time::HOUR;
use host::job::{Next, Work as _};
use host::thread::Stop;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Compares everything that is read with the whole state, filtered by the day; and the hashes of cut orders, which stay.
fn agrees(world: &World, store: &EndedStore, left: &[Leaving], day: UtcDay, upto: u64, what: &str) -> usize {
    let reader = store.reader(LOG);
    let shown = kept(world, left, day);
    let mut cases = all_agree(world, |user| reader.of(user, upto), &shown, what);
    for (all, shown) in left.iter().zip(&shown) {
        let (user, of) = (world.users.get(all.user).expect("a user"), reader.of(all.user, upto));
        assert_eq!(of.kept_from(), store.shown_from(), "{what}");
        for order in all.orders.iter().filter(|id| !shown.orders.contains(id)).filter_map(|id| user.order(*id)) {
            let Some(hash) = order.terms.order_hash() else { continue };
            let newest =
                all.orders.iter().filter(|id| user.order(**id).and_then(|of| of.terms.order_hash()) == Some(hash));
            assert_eq!(of.signed_order(hash).expect("readable"), newest.max().copied(), "{what}");
            cases += 1;
        }
    }
    cases
}

/// Removes what is before the cut.
fn sweep(writer: &mut EndedWriter) {
    while !writer.tend(Some(0)).expect("merged") {
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn counted(store: &EndedStore) -> [Counted; Space::ALL.len()] {
    let opened = store.opened().expect("open");
    let manifest = opened.manifest();
    Space::ALL.map(|space| count(&opened.spaces, space, manifest.as_deref()).expect("readable"))
}

/// Moves and cuts in turn: answers are those of the whole state without the days that were cut, before rows are removed,
/// afterwards, and after starts.
#[test]
fn what_is_cut_is_hidden_and_then_removed() {
    let (mut cases, mut removed) = (0, 0);
    for seed in 1..=4 {
        let place = tempfile::tempdir().expect("a folder");
        let mut world = world_of_days(seed, 3, 90, 3 * HOUR);
        let (first, last) = days(&world);
        assert!(last.0 > first.0 + 8, "days are many: {first:?} to {last:?}");
        let mut store = create(place.path());
        let mut writer = store.writer(LOG);
        let mut left: Vec<Leaving> = Vec::new();
        for (round, part) in [50, 60, 100].into_iter().enumerate() {
            let lsn = 10 * (round as u64 + 1);
            let cut = store.shown_from();
            // Some of them ended before the cut.
            let now = world.some(part);
            writer.write(&world.users, &now, lsn).expect("written");
            left.extend(now);
            cases += agrees(&world, &store, &left, cut, lsn, "after a move");
            let day = UtcDay(first.0 + (last.0 - first.0) * (round as u32 + 1) / 4);
            let before = counted(&store);
            let orders = writer.cut(day).expect("cut");
            assert!(orders > 0 && orders == before[0].rows - counted(&store)[0].rows, "{orders}");
            // Again, and an earlier one.
            assert_eq!([day, first].map(|day| writer.cut(day).expect("nothing to do")), [0, 0]);
            cases += agrees(&world, &store, &left, day, lsn, "cut");
            if round == 1 {
                drop((writer, store));
                sound(place.path(), "cut");
                store = open(place.path());
                writer = store.writer(LOG);
                assert_eq!(store.shown_from(), day, "it is known after a start");
                cases += agrees(&world, &store, &left, day, lsn, "cut, opened again");
            }
            let before = counted(&store);
            assert!(before[0].cut_rows >= orders);
            sweep(&mut writer);
            for ((space, before), after) in Space::ALL.into_iter().zip(before).zip(counted(&store)) {
                assert_eq!(after, Counted { cut_rows: 0, ..before }, "{}", space.name());
                removed += before.cut_rows;
            }
            cases += agrees(&world, &store, &left, day, lsn, "removed");
            let manifest = store.opened().expect("open").manifest().expect("rows");
            assert_eq!((manifest.swept_to, manifest.unswept), (day, 0));
        }
        // Everything again, at the end: rows before the cut come back to the tables, and are hidden.
        writer.write(&world.users, &world.all(), 40).expect("written");
        let day = store.shown_from();
        cases += agrees(&world, &store, &world.all(), day, 40, "moved again");
        drop((writer, store));
        sound(place.path(), "moved again");
        let store = open(place.path());
        store.opened().expect("open").spaces.merge().expect("merged");
        cases += agrees(&world, &store, &world.all(), day, 40, "merged");
        drop(store);
        sound(place.path(), "merged");
    }
    println!("cuts of the history: {cases} cases, {removed} rows removed");
    assert!(cases > 20_000 && removed > 1_000);
}

/// A kill between any two steps: of a move whose rows are then cut, and of a removal.
#[test]
fn a_kill_during_a_cut_changes_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world_of_days(7, 3, 60, 3 * HOUR);
    let (first, last) = days(&world);
    let day = UtcDay(first.0 + (last.0 - first.0) / 2);
    let store = create(place.path());
    let some = world.some(50);
    store.writer(LOG).write(&world.users, &some, 10).expect("written");
    let mut writer = store.writer(LOG);
    let mut copies = kills(place.path(), &mut writer, |writer| {
        writer.write(&world.users, &world.all(), 20).expect("written");
    });
    writer.cut(day).expect("cut");
    copies.push(("cut".to_owned(), copied(place.path())));
    for space in Space::ALL.into_iter().filter(|space| space.is_cut()) {
        assert!(store.opened().expect("open").spaces.merge_all_of(space).expect("merged"));
        copies.push((format!("merged {}", space.name()), copied(place.path())));
    }
    drop((writer, store));
    let (mut cases, all) = (0, world.all());
    for (step, of) in &copies {
        // Cut before the move is repeated, or after it; then everything is the same.
        for cut_first in [true, false] {
            let left = tempfile::tempdir().expect("a folder");
            copy(of.path(), left.path());
            sound(left.path(), step);
            let store = open(left.path());
            let mut writer = store.writer(LOG);
            if cut_first {
                writer.cut(day).expect("cut");
                sweep_if_any(&mut writer);
                cases += match store.upto().expect("open") {
                    20 => agrees(&world, &store, &all, day, 20, step),
                    _ => agrees(&world, &store, &some, day, 10, step),
                };
            }
            writer.write(&world.users, &all, 30).expect("repeated");
            writer.cut(day).expect("cut");
            cases += agrees(&world, &store, &all, day, 30, step);
            drop((writer, store));
            sound(left.path(), step);
            let store = open(left.path());
            sweep_if_any(&mut store.writer(LOG));
            cases += agrees(&world, &store, &all, day, 30, step);
            let manifest = store.opened().expect("open").manifest().expect("rows");
            let expected: usize = kept(&world, &all, day).iter().map(|leaving| leaving.orders.len()).sum();
            assert_eq!(manifest.total(Space::Orders).rows, expected as u64, "{step}");
            drop((manifest, store));
            sound(left.path(), step);
        }
    }
    println!("kills around a cut: {} copies, {cases} cases", copies.len());
    assert!(copies.len() >= 17);
}

fn sweep_if_any(writer: &mut EndedWriter) {
    let opened = writer.writable().expect("open");
    if opened.manifest().is_some_and(|manifest| manifest.unswept > 0) {
        drop(opened);
        sweep(writer);
    }
}

/// Merges that the engine passes over, as another merge has some of the files: they are repeated until every row before the
/// cut is removed, and only then the removal has ended.
#[test]
fn a_merge_that_is_passed_over_is_repeated() {
    let mut cases = 0;
    for passed_over in [0, 1, 2, 5, 6, 11] {
        let place = tempfile::tempdir().expect("a folder");
        let world = world_of_days(10, 3, 60, 3 * HOUR);
        let (first, last) = days(&world);
        let day = UtcDay(u32::midpoint(first.0, last.0));
        let store = create(place.path());
        let mut writer = store.writer(LOG);
        writer.write(&world.users, &world.all(), 5).expect("written");
        assert!(writer.cut(day).expect("cut") > 0);
        let before = counted(&store);
        store.opened().expect("open").spaces.skipped.store(passed_over, Ordering::Relaxed);
        sweep(&mut writer);
        for ((space, before), after) in Space::ALL.into_iter().zip(before).zip(counted(&store)) {
            assert_eq!(after, Counted { cut_rows: 0, ..before }, "{}, {passed_over} passed over", space.name());
        }
        let manifest = store.opened().expect("open").manifest().expect("rows");
        assert_eq!((manifest.swept_to, manifest.unswept), (day, 0));
        cases += agrees(&world, &store, &world.all(), day, 5, "removed");
    }
    println!("merges that are passed over: {cases} cases");
}

/// What cannot be cut now is hidden all the same, and cut later.
#[test]
fn a_busy_store_is_cut_later() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world_of_days(8, 2, 40, 6 * HOUR);
    let (first, last) = days(&world);
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let store = create(place.path());
    let mut writer = store.writer(LOG);
    assert_eq!(writer.cut(first).expect("without rows there is nothing to note"), 0);
    writer.write(&world.users, &world.all(), 5).expect("written");
    let held = store.opened().expect("open").spaces.is_held.clone();
    held.store(true, Ordering::Relaxed);
    assert!(matches!(writer.cut(day), Err(StoreError::Busy)));
    let cases = agrees(&world, &store, &world.all(), day, 5, "busy");
    held.store(false, Ordering::Relaxed);
    assert!(writer.cut(day).expect("cut") > 0);
    // Another log's writer changes nothing.
    assert!(matches!(store.writer(LOG + 1).cut(last), Err(StoreError::Foreign)));
    assert_eq!(store.opened().expect("open").manifest().expect("rows").kept_from, day);
    println!("cuts of a busy store: {cases} cases");
}

#[test]
fn the_first_day_follows_from_the_room() {
    let room = Room { stays: 100, days: [3, 4, 9].map(|day| (UtcDay(day), 50)).to_vec() };
    let cases = [
        (u64::MAX, None),
        (250, None),
        (249, Some(4)),
        (200, Some(4)),
        (199, Some(5)),
        (150, Some(5)),
        (149, Some(10)),
        (0, Some(10)),
    ];
    for (most, expected) in cases {
        assert_eq!(room.first_day_within(most), expected.map(UtcDay), "{most}");
    }
    assert_eq!(Room::default().first_day_within(0), None);
    // Of a store: less when days were cut, before and after their removal.
    let place = tempfile::tempdir().expect("a folder");
    let world = world_of_days(9, 3, 80, 3 * HOUR);
    let (first, last) = days(&world);
    let store = create(place.path());
    assert_eq!(store.room().expect("open"), Room::default());
    let mut writer = store.writer(LOG);
    writer.write(&world.users, &world.all(), 5).expect("written");
    let bytes = |room: &Room| room.stays + room.days.iter().map(|(_, bytes)| bytes).sum::<u64>();
    let whole = store.room().expect("open");
    assert_eq!((whole.days[0].0, whole.days.last().map(|(day, _)| *day)), (first, Some(last)));
    let most = bytes(&whole) * 2 / 3;
    let day = whole.first_day_within(most).expect("less than all");
    assert!(first < day && day < last, "{day:?} of {first:?} to {last:?}");
    writer.cut(day).expect("cut");
    assert!(bytes(&store.room().expect("open")) <= most);
    println!("days by room: {} cases", cases.len() + 4);
}

/// Merges wait for room. What one has written that found none goes with the next opening of the database, which the job makes
/// although nothing else is to be written; then the merge is made.
#[test]
fn a_removal_waits_for_room_and_leaves_nothing_behind() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world_of_days(10, 3, 60, 3 * HOUR);
    let (first, last) = days(&world);
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let (mut history, _recorder, _reader) =
        crate::History::open(Some(place.path().to_owned()), CACHE_BYTES, Arc::default(), crate::Fills::default());
    let mut turn = || history.take_turn(&Stop::new()).expect("it never fails");
    while turn() != Next::Sleep {}
    let (store, free) = (history.ended(), Arc::new(AtomicU64::new(0)));
    let left = free.clone();
    let mut writer = store.writer(LOG).within(Box::new(move || left.load(Ordering::Relaxed)));
    writer.write(&world.users, &world.all(), 5).expect("written");
    assert!(writer.cut(day).expect("cut") > 0);
    let before = counted(&store);
    let size = store.opened().expect("open").spaces.size(Space::Orders).bytes;
    let mut turn = || history.take_turn(&Stop::new()).expect("it never fails");
    let mut cases = 0;
    for bytes in [0, 1, size - 1] {
        free.store(bytes, Ordering::Relaxed);
        for _ in 0..20 {
            assert!(!writer.tend(Some(0)).expect("it waits"));
            turn();
            cases += 1;
        }
        assert_eq!(counted(&store), before, "{bytes} bytes are free");
    }
    free.store(size, Ordering::Relaxed);
    store.opened().expect("open").spaces.full.store(1, Ordering::Relaxed);
    // What the merge has written.
    let is_left = || {
        let folders = std::fs::read_dir(place.path().join("store/keyspaces")).expect("a folder").flatten();
        folders.filter(|folder| folder.path().join("tables/900000").exists()).count() == 1
    };
    while !is_left() || !store.is_wanted_again() {
        assert!(!writer.tend(Some(0)).expect("it is tried again"));
        if !store.is_wanted_again() {
            turn();
        }
        std::thread::yield_now();
    }
    free.store(u64::MAX, Ordering::Relaxed);
    // Moves hold the tables for a moment.
    while store.is_wanted_again() {
        turn();
    }
    assert!(!is_left(), "it is removed by the opening");
    while !writer.tend(Some(0)).expect("merged") {
        turn();
        std::thread::yield_now();
    }
    for ((space, before), after) in Space::ALL.into_iter().zip(before).zip(counted(&store)) {
        assert_eq!(after, Counted { cut_rows: 0, ..before }, "{}", space.name());
    }
    let manifest = store.opened().expect("open").manifest().expect("rows");
    assert_eq!((manifest.swept_to, manifest.unswept), (day, 0));
    cases += agrees(&world, &store, &world.all(), day, 5, "removed");
    println!("removals without room: {cases} cases");
}

/// While a keyspace is merged as a whole the engine merges nothing else. Moves go on, with more files than usual, and the next
/// keyspace waits until the engine has caught up.
#[test]
fn moves_go_on_while_a_merge_holds_up_the_others() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world_of_days(11, 2, 40, 6 * HOUR);
    let (first, last) = days(&world);
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let store = create(place.path());
    let mut writer = store.writer(LOG);
    let mut left = world.all();
    writer.write(&world.users, &left, 5).expect("written");
    assert!(writer.cut(day).expect("cut") > 0);
    let opened = store.opened().expect("open");
    let held = opened.spaces.hold_merges();
    while !opened.spaces.is_merging() {
        assert!(!writer.tend(Some(0)).expect("it begins"));
        std::thread::yield_now();
    }
    let user = left[0].user;
    let placed = Placed { fills: vec![1], ..Placed::default() };
    let mut lsn = 5;
    // As many files as an ingestion is usually refused from, and some more.
    while !opened.spaces.is_behind() || lsn < 70 {
        lsn += 1;
        assert!(lsn < 120, "the engine merges nothing");
        let leaving = Leaving { user, orders: vec![world.place(user, &placed)], positions: Vec::new() };
        writer.write(&world.users, std::slice::from_ref(&leaving), lsn).expect("a move goes on");
        left.push(leaving);
    }
    assert!(!writer.tend(Some(0)).expect("it goes on"));
    let mut cases = agrees(&world, &store, &left, day, lsn, "held up");
    drop(held);
    drop(opened);
    sweep(&mut writer);
    assert!(counted(&store).iter().all(|of| of.cut_rows == 0));
    cases += agrees(&world, &store, &left, day, lsn, "merged");
    println!("moves during a merge: {} moves, {cases} cases", lsn - 5);
}

/// Rows that leave memory after their day was cut are removed like the others, also those of a move that was interrupted.
#[test]
fn what_leaves_after_its_day_was_cut_is_removed() {
    let world = world_of_days(12, 2, 60, 3 * HOUR);
    let (first, last) = days(&world);
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let all = world.all();
    let early = kept(&world, &all, day);
    let mut late = all.clone();
    for (late, early) in late.iter_mut().zip(&early) {
        late.orders.retain(|id| !early.orders.contains(id));
        late.positions.retain(|id| !early.positions.contains(id));
    }
    let cut_rows = |store: &EndedStore| counted(store).iter().map(|of| of.cut_rows).sum::<u64>();
    let mut cases = 0;
    for failed_at in [None, Some("orders"), Some("by_market"), Some("read back")] {
        let what = format!("failed at {failed_at:?}");
        let place = tempfile::tempdir().expect("a folder");
        let mut store = create(place.path());
        let mut writer = store.writer(LOG);
        writer.write(&world.users, &early, 10).expect("written");
        assert_eq!(writer.cut(day).expect("cut"), 0, "what is there is kept");
        if let Some(step) = failed_at {
            fail_at(&mut writer, step, std::io::ErrorKind::Other);
        }
        assert_eq!(writer.write(&world.users, &late, 20).is_ok(), failed_at.is_none(), "{what}");
        if failed_at.is_some() {
            drop((writer, store));
            store = open(place.path());
            writer = store.writer(LOG);
        }
        let manifest = store.opened().expect("open").manifest().expect("rows");
        assert_eq!(manifest.newest_lsn(), 20, "{what}");
        let there = cut_rows(&store);
        assert!(there > 0 && manifest.unswept >= there, "{what}: {there} of {}", manifest.unswept);
        assert!(failed_at.is_some() || manifest.unswept == there, "{what}: {there} of {}", manifest.unswept);
        sweep(&mut writer);
        assert_eq!(cut_rows(&store), 0, "{what}");
        assert_eq!(store.opened().expect("open").manifest().expect("rows").unswept, 0, "{what}");
        let upto = store.upto().expect("open");
        cases += match failed_at {
            None => agrees(&world, &store, &all, day, upto, &what),
            Some(_) => all_agree(&world, |user| store.reader(LOG).of(user, upto), &early, &what),
        };
        drop((manifest, writer, store));
        sound(place.path(), &what);
    }
    println!("rows that leave late: {cases} cases");
}
