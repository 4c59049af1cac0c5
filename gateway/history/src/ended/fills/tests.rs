use super::*;
use crate::ended::EndedStore;
use crate::ended::rows::{Head, put_head};
use crate::ended::testing::{LOG, MARKETS, Placed, World, create, world, world_of_days};
use engine::departed::{Departed as _, put_order};
use engine::id::{TradeId, UserId};
use engine::time::HOUR;
use std::sync::atomic::{AtomicUsize, Ordering};

const USER: UserId = UserId(3);

/// A store with all ended rows of a world.
fn store(folder: &std::path::Path, world: &World) -> EndedStore {
    let store = create(folder);
    store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    store
}

/// Orders whose fills come immediately, long after them, and in turn; and others without fills between them.
fn interleaved(seed: u64, steps: u64) -> World {
    let mut world = world(seed, 1, 0);
    let mut resting: Vec<(OrderId, u64)> = Vec::new();
    for _ in 0..steps {
        let market = world.roll(MARKETS);
        match world.roll(10) {
            0 | 1 => {
                let shares = 1 + world.roll(30);
                resting.push((world.rest(USER, market, shares), shares));
            }
            2..=5 if !resting.is_empty() => {
                let at = world.roll(resting.len() as u64) as usize;
                let (order, left) = resting[at];
                world.fill_resting(USER, order, 1);
                match left {
                    1 => _ = resting.swap_remove(at),
                    _ => resting[at].1 -= 1,
                }
            }
            6 => {
                for _ in 0..world.roll(3 * PASSED_MAX as u64) {
                    world.place(USER, &Placed { market, rest: 1, ..Placed::default() });
                }
            }
            _ => _ = world.place(USER, &Placed { market, fills: vec![1], ..Placed::default() }),
        }
    }
    for (order, left) in resting {
        (0..left).for_each(|_| world.fill_resting(USER, order, 1));
    }
    world
}

/// A fill and its order without links of memory.
fn shown((fill, order): &(Fill, Order)) -> (u64, Vec<u8>) {
    let mut bytes = Vec::new();
    put_order(order, std::slice::from_ref(fill), &mut bytes);
    (fill.id.0, bytes)
}

#[test]
fn fills_are_listed_with_their_orders_however_far_these_are() {
    let (mut cases, mut far) = (0, 0);
    for (seed, steps) in [(1, 30), (2, 400), (3, 3_000), (4, 6_000)] {
        let place = tempfile::tempdir().expect("a folder");
        let world = interleaved(seed, steps);
        let store = store(place.path(), &world);
        let user = world.users.get(USER).expect("a user");
        let expected: Vec<_> = user
            .fills()
            .iter()
            .rev()
            .map(|fill| shown(&(fill.clone(), user.order(fill.order).expect("it is there").clone())))
            .collect();
        far += user.fills().iter().filter(|fill| fill.id.0 - fill.order.0 > 100).count();
        let of = store.reader(LOG).of(USER, 5);
        let mut dice = world.dice;
        for _ in 0..20 {
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let first = (dice >> 33) as usize % (expected.len() + 1);
            let before = first.checked_sub(1).map(|last| TradeId(expected[last].0));
            let found: Vec<_> = of.fills(before).map(|row| shown(&row.expect("readable"))).collect();
            assert_eq!(found, expected[first..], "seed {seed}, before {before:?}");
            cases += found.len();
        }
    }
    println!("fills with their orders: {cases} cases, {far} fills far from their orders");
    assert!(cases > 20_000 && far > 1_000);
}

/// What is damaged is an error after all fills above it, and the list ends there.
#[test]
fn a_damaged_row_ends_the_list_after_the_fills_above_it() {
    let world = interleaved(5, 700);
    let user = world.users.get(USER).expect("a user");
    let fills: Vec<(u64, u64)> = user.fills().iter().rev().map(|fill| (fill.id.0, fill.order.0)).collect();
    let place = tempfile::tempdir().expect("a folder");
    let store = store(place.path(), &world);
    let mut cases = 0;
    for at in [0, 1, 15, 16, 17, 200, fills.len() - 1] {
        let (fill, order) = fills[at];
        // The newest fill of a damaged order is the error.
        let of_order = fills.iter().position(|(_, of)| *of == order).expect("it has one");
        let mut head = Vec::new();
        put_head(Head { lsn: 5, day: UtcDay(0) }, &mut head);
        for (space, object, value, first) in [
            (Space::Fills, fill, Some(&[9_u8, 9][..]), at),
            (Space::Fills, fill, Some(&[2, 0, 1, 0][..]), at),
            (Space::Orders, order, None, of_order),
            (Space::Orders, order, Some(&head[..]), of_order),
        ] {
            let spaces = &store.opened().expect("open").spaces;
            let key = object_key(USER, object);
            let sound = spaces.get(space, &key).expect("readable").expect("it is there");
            match value {
                Some(value) => spaces.put(space, &key, value),
                None => spaces.remove(space, &key),
            }
            let of = store.reader(LOG).of(USER, 5);
            let found: Vec<_> = of.fills(None).collect();
            let (last, sound_rows) = found.split_last().expect("an error");
            assert!(matches!(last, Err(StoreError::Damaged(_) | StoreError::Later(_))), "{space:?} {at}: {last:?}");
            let ids: Vec<u64> = sound_rows.iter().map(|row| row.as_ref().expect("sound").0.id.0).collect();
            assert_eq!(ids, fills[..first].iter().map(|(fill, _)| *fill).collect::<Vec<_>>(), "{space:?} {at}");
            assert!(of.fill(TradeId(fill)).is_err() && of.left_fill(TradeId(fill)).is_err());
            assert_eq!(of.left(OrderId(order)).is_err(), space == Space::Orders);
            spaces.put(space, &key, &sound);
            assert_eq!(of.fills(None).filter(Result::is_ok).count(), fills.len());
            cases += 1;
        }
        // A row that is missing is an error only if it is known to have been there.
        let spaces = &store.opened().expect("open").spaces;
        let of = store.reader(LOG).of(USER, 5);
        for (space, object) in [(Space::Fills, fill), (Space::Orders, order)] {
            let key = object_key(USER, object);
            let sound = spaces.get(space, &key).expect("readable").expect("it is there");
            spaces.remove(space, &key);
            match space {
                Space::Fills => {
                    assert_eq!(of.fill(TradeId(fill)).expect("readable"), None);
                    assert!(of.left_fill(TradeId(fill)).is_err());
                }
                _ => {
                    assert_eq!(of.order(OrderId(order)).expect("readable"), None);
                    assert!(of.left(OrderId(order)).is_err());
                }
            }
            spaces.put(space, &key, &sound);
            cases += 1;
        }
    }
    println!("damaged rows among fills: {cases} cases");
}

/// A reader whose answer is given up reads no further piece.
#[test]
fn a_list_that_is_given_up_ends() {
    let place = tempfile::tempdir().expect("a folder");
    let world = interleaved(6, 3_000);
    let store = store(place.path(), &world);
    let mut cases = 0;
    for asked_max in [0, 1, 2, 5, 9] {
        let asked = AtomicUsize::new(0);
        let is_given_up = || asked.fetch_add(1, Ordering::Relaxed) >= asked_max;
        let of = store.reader(LOG).of(USER, 5).until(&is_given_up);
        let found: Vec<_> = of.fills(None).collect();
        assert!(matches!(found.last(), Some(Err(StoreError::GivenUp))), "{asked_max}");
        assert!(found.len() < 3_000 && found[..found.len() - 1].iter().all(Result::is_ok), "{asked_max}");
        for row in [of.orders(None, None).last().map(drop_row), of.positions(None).last().map(drop_row)] {
            assert!(matches!(row, Some(Err(StoreError::GivenUp))), "{row:?}");
        }
        assert!(matches!(of.order(OrderId(1)), Err(StoreError::GivenUp)));
        cases += 4;
    }
    println!("lists that are given up: {cases} cases");
}

fn drop_row<T>(row: Result<T, StoreError>) -> Result<(), StoreError> {
    row.map(drop)
}

/// A day that is cut between the fills of a piece and their orders is passed over; older fills whose order ended later are
/// listed.
#[test]
fn a_cut_while_fills_are_read_does_not_end_the_list() {
    let mut world = world_of_days(1, 1, 0, HOUR);
    let long = world.rest(USER, 0, 3);
    world.fill_resting(USER, long, 1);
    for _ in 0..300 {
        world.place(USER, &Placed { market: 1, fills: vec![1], ..Placed::default() });
    }
    world.fill_resting(USER, long, 2);
    let user = world.users.get(USER).expect("a user");
    let all: Vec<u64> = user.fills().iter().rev().map(|fill| fill.id.0).collect();
    let of_long: Vec<u64> = user.fills().iter().rev().filter(|fill| fill.order == long).map(|fill| fill.id.0).collect();
    let day = user.order(long).and_then(|order| order.ended_at()).expect("it has ended").day();
    assert_eq!((all.len(), of_long.len(), of_long[1]), (302, 2, all[301]));
    let place = tempfile::tempdir().expect("a folder");
    drop(store(place.path(), &world));
    let (mut cases, mut shortened) = (0, 0);
    for at in 0.. {
        let store = EndedStore::open(place.path(), 4 << 20).expect("a sound store");
        let asked = AtomicUsize::new(0);
        let cuts = || {
            if asked.fetch_add(1, Ordering::Relaxed) == at {
                store.hide_before(day);
            }
            false
        };
        let of = store.reader(LOG).of(USER, 5).until(&cuts);
        let found: Vec<u64> = of.fills(None).map(|row| row.expect("readable").0.id.0).collect();
        let kept: Vec<u64> = found.iter().copied().filter(|id| of_long.contains(id)).collect();
        assert_eq!(kept, of_long, "cut before read {at}");
        let others = found.iter().filter(|id| !of_long.contains(id));
        let newest = all.iter().filter(|id| !of_long.contains(id));
        assert!(others.eq(newest.take(found.len() - 2)), "the newest ones, until the cut");
        if asked.into_inner() <= at {
            assert_eq!(found, all, "it was not cut");
            break;
        }
        cases += 1;
        shortened += usize::from(found.len() < all.len());
    }
    println!("cuts while fills are read: {cases} cases, {shortened} of them hid fills");
    assert!(shortened > 5, "{shortened}");
}

/// After a cut a missing row is an error, if the row below it shows that it is not of a day that was cut.
#[test]
fn a_missing_row_of_a_kept_day_is_an_error() {
    let world = world_of_days(9, 1, 120, 2 * HOUR);
    let user = world.users.get(USER).expect("a user");
    let ended = |id: OrderId| user.order(id).and_then(|order| order.ended_at()).expect("it has ended").day();
    let days: Vec<UtcDay> = user.orders().iter().map(|order| ended(order.id)).collect();
    let (first, last) = (*days.iter().min().expect("orders"), *days.iter().max().expect("orders"));
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let place = tempfile::tempdir().expect("a folder");
    let store = store(place.path(), &world);
    store.hide_before(day);
    let of = store.reader(LOG).of(USER, 5);
    let orders: Vec<_> = user.orders().iter().map(|order| (order.id.0, order.id, order.created_at)).collect();
    let fills: Vec<_> = user.fills().iter().map(|fill| (fill.id.0, fill.order, fill.at)).collect();
    let (mut errors, mut cut, mut unknown) = (0, 0, 0);
    for (space, rows) in [(Space::Orders, orders), (Space::Fills, fills)] {
        for (at, (object, order, _)) in rows.iter().enumerate() {
            let spaces = &store.opened().expect("open").spaces;
            let key = object_key(USER, *object);
            let sound = spaces.get(space, &key).expect("readable").expect("it is there");
            spaces.remove(space, &key);
            let found = match space {
                Space::Orders => of.left(*order).map(drop_found),
                _ => of.left_fill(TradeId(*object)).map(drop_found),
            };
            let below = rows[..at].iter().rev().find(|(_, order, _)| ended(*order) >= day);
            let is_young = below.is_some_and(|(_, _, began)| began.day() >= day);
            match found {
                Err(error) => {
                    assert!(is_young && matches!(error, StoreError::Damaged(_)), "{object}: {error}");
                    errors += 1;
                }
                Ok(is_found) => {
                    assert!(!is_young && !is_found, "{object}");
                    cut += usize::from(ended(*order) < day);
                    unknown += usize::from(ended(*order) >= day);
                }
            }
            spaces.put(space, &key, &sound);
        }
    }
    println!("missing rows after a cut: {errors} errors, {cut} of days that were cut, {unknown} that are not known");
    assert!(errors > 50 && cut > 50 && (1..20).contains(&unknown), "{errors} {cut} {unknown}");
}

fn drop_found<T>(found: Option<T>) -> bool {
    found.is_some()
}
