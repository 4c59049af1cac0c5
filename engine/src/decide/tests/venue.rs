//! Commands of venue clients only: lists by key in a long history, cancels of named orders, beats by name.

use super::world::World;
use crate::command::{Answer, BeatName, Command, Envelope, Query, Statuses, VenueFilter, Wallets};
use crate::id::OrderId;
use crate::order::{CloseReason, Status};
use crate::rules::SWEEP_ORDERS_PER_RECORD_MAX;
use crate::time::{MILLISECOND, SECOND, Timestamp};

fn ask(world: &mut World, command: Command) -> Answer {
    let (now, owner) = (world.now, world.user);
    let (shard, inbox, out) = world.parts();
    shard.take(Envelope { owner, command, received_at: now, reply: 900 }, now, out);
    while shard.turn(inbox, now, out) {}
    let (reply, answer) = out.answers.pop().expect("every command is answered");
    assert_eq!(reply, 900);
    answer
}

/// A world with that many resting orders, one per millisecond.
fn resting(orders: usize) -> World {
    let mut world = World::of("");
    for line in ["balance 1000000", "tier pro", "book Y bids 0.10x10 asks 0.90x10"] {
        world.act(line);
    }
    for _ in 0..orders {
        assert_eq!(world.act("buy Y 5 limit 0.05"), "PENDING 0/5 reserved 0.25");
        world.now = world.now.plus(MILLISECOND);
    }
    world
}

const ALL: VenueFilter = VenueFilter {
    wallets: Wallets::Api,
    statuses: Statuses::ALL,
    market: None,
    instrument: None,
    only: None,
    since: None,
    until: None,
    after: None,
    limit: 100,
};

/// Every row of a list, page by page, and the count of queries.
fn walked(world: &mut World, filter: &VenueFilter) -> (Vec<u64>, usize) {
    let (mut filter, mut ids, mut queries) = (filter.clone(), Vec::new(), 0);
    loop {
        let Answer::VenueOrders(page) = ask(world, Command::Query(Query::VenueOrders(filter.clone()))) else {
            panic!("a page of orders")
        };
        queries += 1;
        assert!(page.rows.len() <= filter.limit);
        ids.extend(page.rows.iter().map(|view| view.order.id.0));
        match page.more_after {
            Some(after) => filter.after = Some(after),
            None => return (ids, queries),
        }
    }
}

#[test]
fn a_list_continues_from_any_key_of_a_long_history() {
    let mut world = resting(250);
    let orders: Vec<(Timestamp, u64)> =
        world.the_user().orders().iter().map(|order| (order.created_at, order.id.0)).collect();
    let newest_first =
        |range: std::ops::Range<usize>| orders[range].iter().rev().map(|(_, id)| *id).collect::<Vec<_>>();
    let mut cases = 0;
    for statuses in [Statuses::ALL, Statuses::OPEN] {
        for limit in [1, 7, 100, 249, 250, 251] {
            let (ids, queries) = walked(&mut world, &VenueFilter { statuses, limit, ..ALL });
            assert_eq!(ids, newest_first(0..250));
            assert_eq!(queries, 250_usize.div_ceil(limit), "{limit}");
            cases += 1;
        }
        // Bounds in time: from 20 on, before 30; a cursor between them; one order by its id.
        let (since, until, after) = (Some(orders[20].0), Some(orders[30].0), Some(orders[25]));
        for (filter, expected) in [
            (VenueFilter { since, ..ALL }, 20..250),
            (VenueFilter { until, ..ALL }, 0..30),
            (VenueFilter { since, until, ..ALL }, 20..30),
            (VenueFilter { since, until, after, ..ALL }, 20..25),
            (VenueFilter { since: until, until: since, ..ALL }, 0..0),
            (VenueFilter { only: Some(orders[40].1), ..ALL }, 40..41),
            (VenueFilter { only: Some(orders[40].1), since, until, ..ALL }, 0..0),
            (VenueFilter { only: Some(u64::MAX), ..ALL }, 0..0),
            (VenueFilter { only: Some(0), ..ALL }, 0..0),
            // A cursor with a time without an order, as a client may derive it from an ISO time.
            (VenueFilter { after: Some((Timestamp(orders[9].0.0 + 1), 0)), ..ALL }, 0..10),
        ] {
            let (ids, _) = walked(&mut world, &VenueFilter { statuses, ..filter });
            assert_eq!(ids, newest_first(expected));
            cases += 1;
        }
    }
    println!("{cases} cases");
}

#[test]
fn a_query_visits_bounded_rows_and_reports_where_it_stopped() {
    let orders = 25_000;
    let mut world = resting(orders);
    let rare = VenueFilter { statuses: Statuses::of(&[Status::Expired]), ..ALL };
    assert_eq!(walked(&mut world, &rare), (Vec::new(), orders / 10_000 + 1));
    let first = world.the_user().orders()[0].id;
    assert!(matches!(ask(&mut world, Command::Cancel { order: first }), Answer::Order(_)));
    let rare = VenueFilter { statuses: Statuses::of(&[Status::Cancelled]), ..ALL };
    assert_eq!(walked(&mut world, &rare), (vec![first.0], orders / 10_000 + 1));
}

#[test]
fn named_orders_are_cancelled_or_listed_by_reason() {
    let orders = SWEEP_ORDERS_PER_RECORD_MAX + 500;
    let mut world = resting(orders);
    let ids: Vec<OrderId> = world.the_user().orders().iter().map(|order| order.id).collect();
    let records = world.out.records.len();
    let named = vec![ids[3], OrderId(1), ids[3], ids[1], OrderId(u64::MAX)];
    let Answer::Cancelled(swept) = ask(&mut world, Command::CancelOrders { orders: named }) else { panic!("a sweep") };
    assert_eq!(swept.cancelled, [ids[1], ids[3]]);
    assert_eq!((swept.not_cancellable, swept.not_found), (vec![], vec![OrderId(1), OrderId(u64::MAX)]));
    assert_eq!(world.out.records.len(), records + 1);
    let Answer::Cancelled(swept) = ask(&mut world, Command::CancelOrders { orders: ids.clone() }) else {
        panic!("a sweep")
    };
    assert_eq!((swept.cancelled.len(), swept.not_cancellable), (orders - 2, vec![ids[1], ids[3]]));
    assert_eq!(world.out.records.len(), records + 3, "a long list is several records");
    let closed = |id: OrderId| world.the_user().order(id).and_then(|order| order.closed()).map(|(reason, _)| reason);
    assert!(ids.iter().all(|id| closed(*id) == Some(CloseReason::UserCancelled)));
    let before = world.out.records.len();
    let Answer::Cancelled(swept) = ask(&mut world, Command::CancelOrders { orders: Vec::new() }) else {
        panic!("a sweep")
    };
    assert!(swept.cancelled.is_empty() && world.out.records.len() == before);
    world.check().expect("all invariants");
}

#[test]
fn a_beat_names_the_one_before_it() {
    let mut world = resting(2);
    let beat = |world: &mut World, shown, next: u8| ask(world, Command::BeatByName { shown, next: [next; 16] });
    let known = |name: u8| BeatName::Known([name; 16]);
    let is_wrong = |answer: Answer, current: Option<u8>| match answer {
        Answer::WrongBeat { current: found } => found == current.map(|name| [name; 16]),
        _ => false,
    };
    let goes_on = |answer: Answer, now: Timestamp| matches!(answer, Answer::Beating { lapses_at } if lapses_at == now.plus(10 * SECOND));
    assert!(is_wrong(beat(&mut world, known(1), 2), None));
    assert!(is_wrong(beat(&mut world, BeatName::Nonsense, 2), None));
    let records = world.out.records.len();
    let now = world.now;
    assert!(goes_on(beat(&mut world, BeatName::First, 1), now));
    world.now = world.now.plus(9 * SECOND);
    let now = world.now;
    assert!(goes_on(beat(&mut world, known(1), 2), now));
    assert_eq!(world.out.records.len(), records + 1, "only arming is a fact");
    for wrong in [known(1), known(3), BeatName::Nonsense] {
        assert!(is_wrong(beat(&mut world, wrong, 9), Some(2)), "{wrong:?}");
    }
    assert!(goes_on(beat(&mut world, BeatName::First, 3), now), "a restarted client");
    assert!(goes_on(beat(&mut world, known(3), 4), now));
    // A wrong beat does not count: ten seconds after the last right one the orders end, and not before.
    world.now = world.now.plus(10 * SECOND - 1);
    let closed = world.act("cycle");
    assert!(closed.ends_with("closed 0"), "{closed}");
    world.now = world.now.plus(1);
    let closed = world.act("cycle");
    assert!(closed.ends_with("closed 2"), "{closed}");
    assert_eq!(world.the_user().open_orders_count(), 0);
    assert!(is_wrong(beat(&mut world, known(4), 5), None), "the registration has ended too");
    world.check().expect("all invariants");
}
