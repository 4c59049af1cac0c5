use super::testing::{LOG, World, all_agree, world};
use super::*;
use crate::store::Space;
use crate::testing::{copy, copy_running};
use engine::departed::{Departed as _, Leaving};
use engine::id::UserId;
use std::sync::atomic::{AtomicUsize, Ordering};

const CACHE_BYTES: u64 = 4 << 20;

/// A new store in a folder.
fn create(folder: &Path) -> EndedStore {
    drop(Store::open(folder, CACHE_BYTES).expect("a new store"));
    open(folder)
}

fn open(folder: &Path) -> EndedStore {
    EndedStore::open(folder, CACHE_BYTES).expect("a sound store")
}

fn check(store: &EndedStore, world: &World, left: &[Leaving], upto: u64, what: &str) -> usize {
    let reader = store.reader(LOG);
    all_agree(world, |user| reader.of(user, upto), left, what)
}

/// Moves in several parts, each read through what came before and after it, and after a new start.
#[test]
fn moved_rows_are_read_as_they_were() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(1, 4, 150);
    let store = create(place.path());
    let mut writer = store.writer(LOG);
    assert_eq!(writer.upto().expect("open"), 0);
    let mut left = Vec::new();
    let mut cases = 0;
    for (round, part) in [40, 30, 100].into_iter().enumerate() {
        let lsn = 100 * (round as u64 + 1);
        let now = world.some(part);
        writer.write(&world.users, &now, lsn).expect("written");
        // Rows of this move are hidden from readers of an earlier state.
        if round > 0 {
            let fresh: Vec<_> = store.opened().expect("open").manifest().iter().map(|manifest| manifest.upto).collect();
            assert_eq!(fresh, [lsn]);
        }
        left.extend(now);
        assert_eq!(store.upto().expect("open"), lsn);
        cases += check(&store, &world, &left, lsn, "after a move");
    }
    drop((writer, store));
    let store = open(place.path());
    assert_eq!(store.upto().expect("open"), 300);
    cases += check(&store, &world, &left, 300, "opened again");
    store.opened().expect("open").spaces.merge().expect("merged");
    cases += check(&store, &world, &left, 300, "merged");
    println!("rows that were moved: {cases} cases");
    assert!(cases > 5_000);
}

/// A reader of an earlier state sees what had left then.
#[test]
fn later_rows_are_passed_over() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(2, 3, 120);
    let store = create(place.path());
    let first = world.some(50);
    store.writer(LOG).write(&world.users, &first, 7).expect("written");
    let mut rest = world.all();
    for (leaving, first) in rest.iter_mut().zip(&first) {
        leaving.orders.retain(|order| !first.orders.contains(order));
        leaving.positions.retain(|position| !first.positions.contains(position));
    }
    store.writer(LOG).write(&world.users, &rest, 8).expect("written");
    // An id that was used again is found as of the state: checked by the newest of those that had left.
    let mut cases = check(&store, &world, &first, 7, "before the second move");
    cases += check(&store, &world, &[first, rest].concat(), 8, "after it");
    cases += check(&store, &world, &[], 0, "before any");
    let reader = store.reader(LOG);
    for upto in [1, 6] {
        assert!(reader.of(UserId(3), upto).orders(None, None).next().is_none(), "{upto}");
        cases += 1;
    }
    println!("rows of earlier states: {cases} cases");
}

/// Copies the store after every step of a move, as a kill would leave it; each copy is opened, read, and moved again.
#[test]
fn a_kill_at_any_step_repeats_work_and_changes_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(3, 3, 80);
    let store = create(place.path());
    let first = world.some(50);
    store.writer(LOG).write(&world.users, &first, 10).expect("written");
    let whole = world.all();
    let copies: Arc<Mutex<Vec<(String, tempfile::TempDir)>>> = Arc::default();
    let mut writer = store.writer(LOG);
    let (into, from) = (copies.clone(), place.path().to_owned());
    writer.watch = Some(Box::new(move |step| {
        let copy = tempfile::tempdir().expect("a folder");
        copy_running(&from, copy.path());
        into.lock().expect("not poisoned").push((step.to_owned(), copy));
        Ok(())
    }));
    writer.write(&world.users, &whole, 20).expect("written");
    drop((writer, store));
    let expected = open(place.path()).opened().expect("open").manifest().expect("rows").totals;
    let copies = std::mem::take(&mut *copies.lock().expect("not poisoned"));
    let steps: Vec<&str> = copies.iter().map(|(step, _)| step.as_str()).collect();
    let spaces = Space::ALL.map(Space::name);
    assert_eq!(steps, [&["made", "noted"], &spaces[..], &["synced", "read back", "ended"]].concat());
    let mut cases = 0;
    for (step, of) in &copies {
        // With the same rows or others, at the same LSN or a later one.
        let mut some = world.some(70);
        for (leaving, first) in some.iter_mut().zip(&first) {
            leaving.orders.extend(&first.orders);
            leaving.orders.sort();
            leaving.orders.dedup();
        }
        for (lsn, again) in [(20, &whole), (25, &whole), (25, &some), (20, &some)] {
            let left = tempfile::tempdir().expect("a folder");
            copy(of.path(), left.path());
            let store = open(left.path());
            let upto = store.upto().expect("open");
            assert_eq!(upto, if step == "ended" { 20 } else { 10 }, "{step}");
            cases += check(&store, &world, if upto == 20 { &whole } else { &first }, upto, step);
            store.writer(LOG).write(&world.users, again, lsn).expect("repeated");
            store.writer(LOG).write(&world.users, &whole, 30).expect("and then all");
            let manifest = store.opened().expect("open").manifest().expect("rows");
            let rows = |totals: &[Total]| totals.iter().map(|total| total.rows).collect::<Vec<_>>();
            assert_eq!(rows(&manifest.totals), rows(&expected), "{step}: no row counts twice");
            cases += check(&store, &world, &whole, 30, step);
            store.opened().expect("open").spaces.merge().expect("merged");
            drop((manifest, store));
            let checked = crate::check(left.path()).expect("it can be opened");
            assert_eq!(checked.damages, [], "{step}, again at {lsn}");
            cases += 1;
        }
    }
    println!("kills during a move: {cases} cases");
}

#[test]
fn the_same_rows_change_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world(4, 2, 60);
    let store = create(place.path());
    store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    let before = store.opened().expect("open").manifest().expect("rows");
    let steps = Arc::new(AtomicUsize::new(0));
    let mut cases = 0;
    for lsn in [5, 5, 9] {
        let mut writer = store.writer(LOG);
        let counted = steps.clone();
        writer.watch = Some(Box::new(move |step| {
            assert!(["synced", "read back", "ended"].contains(&step), "{step}");
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }));
        writer.write(&world.users, &world.all(), lsn).expect("nothing to do");
        let after = store.opened().expect("open").manifest().expect("rows");
        assert_eq!((after.totals, after.upto), (before.totals, lsn));
        cases += 1;
    }
    assert_eq!(steps.load(Ordering::Relaxed), 3, "only the LSN of the last one is new");
    println!("the same rows: {cases} cases");
}

/// What a filled order with an id takes on disk: order, fill, request, and their indexes, merged.
#[test]
fn a_filled_order_takes_less_than_400_bytes() {
    let place = tempfile::tempdir().expect("a folder");
    let (users, orders) = (20, 1_000);
    let mut world = world(9, 0, 0);
    let ids: Vec<UserId> = (1..=users).map(|id| world.add_user(id)).collect();
    for _ in 0..orders {
        for user in &ids {
            // As random as a UUID.
            let [high, low] = [0; 2].map(|_| world.roll(1 << 31) << 32 | world.roll(1 << 31));
            let id = Some(format!(
                "{:08x}-{:04x}-4{:03x}-8{:03x}-{:012x}",
                high >> 32,
                high & 0xffff,
                low >> 50,
                low >> 4 & 0xfff,
                low.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16
            ));
            let market = world.roll(5);
            let placed = super::testing::Placed { market, client_order_id: id, fills: vec![1], ..Default::default() };
            world.place(*user, &placed);
        }
    }
    let store = create(place.path());
    store.writer(LOG).write(&world.users, &world.all(), 1_000_000).expect("written");
    let spaces = &store.opened().expect("open").spaces;
    spaces.merge().expect("merged");
    let count = users * orders;
    let mut all = 0;
    for space in Space::ALL {
        let bytes = spaces.size(space).bytes;
        println!("{}: {:.1} bytes an order", space.name(), bytes as f64 / count as f64);
        all += bytes;
    }
    println!("bytes of {count} filled orders: {:.1} each", all as f64 / count as f64);
    assert!(all / count < 400, "{all} bytes");
}
