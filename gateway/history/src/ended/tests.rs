use super::testing::{CACHE_BYTES, LOG, World, all_agree, create, fail_at, kills, open, sound, world};
use super::*;
use crate::store::Space;
use crate::testing::copy;
use engine::departed::{Departed as _, Leaving};
use engine::id::{OrderId, PositionId, UserId};
use engine::look_up::filters::{FilterKey, Kind, keys_of};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};

mod faults;

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

/// Rows of several prefixes, granted alternately and moved in parts.
#[test]
fn rows_of_all_prefixes_are_read_as_they_were() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(11, 3, 40);
    let users: Vec<UserId> = world.ended.keys().copied().collect();
    let store = create(place.path());
    let mut writer = store.writer(LOG);
    let (mut left, mut prefixes, mut cases) = (Vec::new(), Vec::new(), 0);
    for round in 0..3 {
        for user in &users {
            let prefix = UserId(100 + 10 * round + user.0);
            world.extend(*user, prefix);
            prefixes.push((*user, prefix));
            (0..40).for_each(|_| _ = world.place_any(*user));
        }
        let (now, lsn) = (world.some(50), 100 * (round + 1));
        writer.write(&world.users, &now, lsn).expect("written");
        left.extend(now);
        cases += check(&store, &world, &left, lsn, "after a move");
    }
    let now = world.all();
    writer.write(&world.users, &now, 400).expect("written");
    left.extend(now);
    drop((writer, store));
    let store = open(place.path());
    cases += check(&store, &world, &left, 400, "opened again");
    store.opened().expect("open").spaces.merge().expect("merged");
    cases += check(&store, &world, &left, 400, "merged");
    // Pages that begin or end where a prefix does.
    for (user, prefix) in prefixes {
        let of = store.reader(LOG).of(user, 400);
        let hot = world.users.get(user).expect("a user");
        let ended: Vec<OrderId> = hot.orders().iter().filter(|order| !order.is_open()).map(|order| order.id).collect();
        for bound in [prefix, UserId(prefix.0 + 1)] {
            let before = OrderId(bound.object(0));
            let found: Vec<OrderId> =
                of.orders(None, Some(before)).map(|row| row.expect("readable").order.id).collect();
            assert_eq!(found, ended.iter().rev().copied().filter(|id| *id < before).collect::<Vec<_>>());
            assert!(!found.is_empty());
            cases += found.len();
        }
    }
    println!("rows of all prefixes: {cases} cases");
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
            assert!(["syncing", "synced", "read back", "ending", "ended"].contains(&step), "{step}");
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }));
        writer.write(&world.users, &world.all(), lsn).expect("nothing to do");
        let after = store.opened().expect("open").manifest().expect("rows");
        assert_eq!((&after.days, after.upto), (&before.days, lsn));
        cases += 1;
    }
    assert_eq!(steps.load(Ordering::Relaxed), 5, "only the LSN of the last one is new");
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

fn history(folder: &Path) -> (crate::History, crate::Recorder, crate::Reader) {
    crate::History::open(Some(folder.to_owned()), CACHE_BYTES, Arc::default(), crate::Fills::default())
}

/// Turns until there is nothing to do.
fn turns(history: &mut crate::History) {
    use host::job::{Next, Work as _};
    while history.take_turn(&host::thread::Stop::new()).expect("it never fails") != Next::Sleep {}
}

/// The job opens the store, and opens it again: reads and writes fail meanwhile, and say why.
#[test]
fn reads_and_writes_fail_while_the_store_is_not_open() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world(14, 2, 40);
    let (mut history, _recorder, _reader) = history(place.path());
    let ended = history.ended();
    let (reader, mut writer) = (ended.reader(LOG), ended.writer(LOG));
    assert!(matches!(ended.upto(), Err(StoreError::Opening)));
    assert!(matches!(writer.write(&world.users, &world.all(), 5), Err(StoreError::Opening)));
    let order = world.all()[0].orders[0];
    assert!(matches!(reader.of(UserId(3), 5).order(order), Err(StoreError::Opening)));
    assert!(reader.of(UserId(3), 0).order(order).expect("nothing was moved").is_none());
    turns(&mut history);
    writer.write(&world.users, &world.all(), 5).expect("it is open");
    let mut cases = check(&ended, &world, &world.all(), 5, "beside the prices");
    // Opened again, as after a failure of the prices: a scan that goes on meanwhile continues.
    let of = reader.of(UserId(3), 5);
    let mut scan = of.orders(None, None);
    let newest = scan.next().expect("a row").expect("readable").order.id;
    let held = ended.opened().expect("open");
    assert!(!ended.withdraw(), "a move goes on");
    assert!(ended.upto().is_ok(), "it stays open");
    drop(held);
    assert!(ended.withdraw());
    assert!(matches!(ended.upto(), Err(StoreError::Opening)));
    drop(history);
    let store = Store::open(place.path(), CACHE_BYTES).expect("nothing has it open");
    ended.publish(store.spaces());
    let rest: Vec<OrderId> = scan.map(|row| row.expect("readable").order.id).collect();
    let expected: Vec<OrderId> = world.all()[0].orders.iter().rev().copied().collect();
    assert_eq!([&[newest], &rest[..]].concat(), expected);
    writer.write(&world.users, &world.all(), 6).expect("with the new tables");
    cases += check(&ended, &world, &world.all(), 6, "opened again");
    // One that cannot be opened, and none at all.
    drop((store, of));
    assert!(ended.withdraw());
    ended.publish(Err(StoreError::Damaged("as planned".to_owned())));
    for refused in
        [ended.upto().err(), writer.write(&world.users, &[], 9).err(), reader.of(UserId(3), 6).order(order).err()]
    {
        assert!(
            matches!(&refused, Some(StoreError::Unusable(why)) if why.to_string().contains("as planned")),
            "{refused:?}"
        );
    }
    let (in_memory, ..) = crate::History::open(None, CACHE_BYTES, Arc::default(), crate::Fills::default());
    assert!(matches!(in_memory.ended().upto(), Err(StoreError::Unusable(why)) if matches!(*why, StoreError::Missing)));
    println!("stores that are opened: {} cases", cases + 10);
}

#[test]
fn handles_go_to_other_threads() {
    fn goes<T: Send>() {}
    fn is_shared<T: Clone + Send + Sync>() {}
    is_shared::<EndedStore>();
    is_shared::<EndedReader>();
    is_shared::<EndedOf>();
    goes::<EndedWriter>();
}

/// Reads go on while rows are moved: each state is whole.
#[test]
fn reads_go_on_during_moves() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world(15, 2, 100);
    let parts: Vec<Vec<Leaving>> = (0..4)
        .map(|part| {
            let mut leaving = world.all();
            for leaving in &mut leaving {
                leaving.orders.retain(|order| order.0 % 4 == part);
                leaving.positions.retain(|position| position.0 % 4 == part);
            }
            leaving
        })
        .collect();
    let store = create(place.path());
    let moved = AtomicUsize::new(0);
    let (reads, world, parts) = (AtomicUsize::new(0), &world, &parts);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let count = moved.load(Ordering::Acquire);
                    let left: Vec<Leaving> = parts[..count].concat();
                    reads.fetch_add(check(&store, world, &left, count as u64, "during a move"), Ordering::Relaxed);
                    if count == parts.len() {
                        return;
                    }
                }
            });
        }
        let mut writer = store.writer(LOG);
        for (part, leaving) in parts.iter().enumerate() {
            writer.write(&world.users, leaving, part as u64 + 1).expect("written");
            moved.store(part + 1, Ordering::Release);
        }
    });
    println!("reads during moves: {} cases", reads.load(Ordering::Relaxed));
}

/// What filters are made of again: every id of a request and every hash, those of signed orders without an id included.
#[test]
fn the_names_of_all_rows_are_read() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(11, 5, 700);
    let store = create(place.path());
    let mut writer = store.writer(LOG);
    let first = world.some(50);
    writer.write(&world.users, &first, 7).expect("written");
    let all = world.all();
    writer.write(&world.users, &all, 8).expect("written");
    let expected = |left: &[Leaving]| {
        let of = |leaving: &Leaving| {
            let user = world.users.get(leaving.user).expect("a user");
            let orders = leaving.orders.iter().map(|id| user.order(*id).expect("it is in memory"));
            let keys = orders.flat_map(|order| keys_of(leaving.user, order, user.request_of(order.id)));
            keys.map(sortable).collect::<Vec<_>>()
        };
        left.iter().flat_map(of).collect::<BTreeSet<_>>()
    };
    let mut cases = 0;
    for (upto, left) in [(7, &first), (8, &all), (9, &all)] {
        let names = store.names(upto).map(|name| sortable(name.expect("readable"))).collect::<BTreeSet<_>>();
        let expected = expected(left);
        assert!(names == expected, "up to {upto}: {} names instead of {}", names.len(), expected.len());
        assert!(names.iter().any(|(.., kind)| *kind == Kind::OrderHash as usize));
        cases += names.len();
    }
    println!("names: {cases} cases");
}

fn sortable(name: FilterKey) -> (UserId, u64, u32, usize) {
    (name.user, name.hash, name.hour, name.kind as usize)
}
