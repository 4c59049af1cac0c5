use super::*;
use crate::ended::EndedStore;
use crate::ended::rows::{Head, put_head};
use crate::ended::testing::{LOG, MARKETS, Placed, World, create, world};
use engine::departed::{Departed as _, put_order};
use engine::id::{TradeId, UserId};
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
