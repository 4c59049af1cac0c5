//! How long client order ids count (engine/docs/orders.md §5): at the border of their time, across replays and snapshots;
//! and what of them is in memory.

use super::world::World;
use crate::command::{Answer, Command, Query};
use crate::directory::Directory;
use crate::format::Formats;
use crate::id::{OrderId, UserId};
use crate::market::Markets;
use crate::reject::Reject;
use crate::shard::{Shard, digest, snapshot};
use crate::time::{HOUR, MILLISECOND, Timestamp};
use crate::user::Users;
use std::sync::Arc;

/// The order of a placement, and whether it was placed before.
fn placed(world: &mut World, words: &str) -> Result<(OrderId, bool), Reject> {
    let words: Vec<&str> = words.split(' ').collect();
    let placement = world.placement(words[0], &words[1..]);
    match world.ask(Command::Place(Box::new(placement)), 0) {
        Answer::Order(view) => Ok((view.order.id, view.is_replay)),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{words:?}: {other:?}"),
    }
}

fn by_id(world: &mut World, id: &str) -> Option<OrderId> {
    match world.ask(Command::Query(Query::OrderByClientId(id.to_owned())), 0) {
        Answer::Order(view) => Some(view.order.id),
        Answer::Refused(Reject::OrderNotFound) => None,
        other => panic!("{other:?}"),
    }
}

/// Requests in memory.
fn remembered(world: &World) -> usize {
    let users = world.users().iter();
    users.map(|user| user.trading().requests.as_ref().map_or(0, |requests| requests.rows.len())).sum()
}

fn state_of(world: &World) -> [u8; 32] {
    digest::digest(&Markets::default(), &[world.users()])
}

/// A new process begins with a snapshot of this moment.
fn restart_from_snapshot(world: &mut World, formats: Formats) {
    let (mut bytes, before) = (Vec::new(), state_of(world));
    snapshot::write(formats, &Markets::default(), &[world.users()], &mut bytes).expect("memory takes every byte");
    let mut state = snapshot::read(&mut &bytes[..], 1).expect("just written");
    state.check_all().expect("every invariant is kept");
    let users = std::mem::take(&mut state.users[0]);
    let (rules, directory) = (Arc::new(world.rules.clone()), Arc::new(Directory::default()));
    let shard = Shard::new(0, 1, users, rules, world.books.clone(), world.catalog.clone(), directory);
    world.shard = Some(shard);
    assert_eq!(state_of(world), before, "the digest of a snapshot");
}

#[test]
fn an_id_counts_up_to_its_border_whatever_is_in_memory() {
    let mut cases = 0;
    let border = 72 * HOUR;
    for (after, counts) in
        [(border - MILLISECOND, true), (border, true), (border + 1, false), (border + MILLISECOND, false)]
    {
        for words in ["id=a", "id=a header", "id=a implicit"] {
            for between in [
                "nothing",
                "replay",
                "doubt",
                "cycle",
                "cycle, snapshot",
                "snapshot, cycle",
                "doubt, cycle",
                "previous snapshot",
            ] {
                let mut world = World::of("");
                world.rules.formats = if between.starts_with("previous") { Formats::Previous } else { Formats::Newest };
                world.act("book Y asks 0.42x300");
                world.make_user();
                let line = format!("buy Y 10 limit 0.30 {words}");
                let (first, _) = placed(&mut world, &line).expect("it is new");
                world.now = world.now.plus(after);
                world.act("alive");
                let before = state_of(&world);
                for step in between.split(", ") {
                    match step {
                        "replay" => drop(world.restart()),
                        "cycle" => drop(world.act("cycle")),
                        // While the clock is in doubt nothing is dropped.
                        "doubt" => {
                            ["cycle none", "cycle venue"].map(|cycle| world.act(cycle)).into_iter().for_each(drop)
                        }
                        "snapshot" => restart_from_snapshot(&mut world, Formats::Newest),
                        "previous snapshot" => restart_from_snapshot(&mut world, Formats::Previous),
                        _ => {}
                    }
                }
                let name = format!("{words} after {after}, {between}");
                assert_eq!(state_of(&world), before, "{name}: memory is not state");
                let is_in_memory = counts || !between.contains("cycle");
                assert_eq!(remembered(&world), usize::from(is_in_memory), "{name}");
                assert_eq!(by_id(&mut world, "a"), counts.then_some(first), "{name}");
                let other = placed(&mut world, &format!("buy Y 11 limit 0.30 {words} body=2"));
                let is_implicit = words.ends_with("implicit");
                match (counts && !is_implicit, words.ends_with("header")) {
                    (true, true) => assert_eq!(other, Err(Reject::IdempotencyKeyReuse), "{name}"),
                    (true, false) => assert_eq!(other, Err(Reject::DuplicateClientOrderId), "{name}"),
                    (false, _) => assert!(other.is_ok_and(|(order, is_replay)| order != first && !is_replay), "{name}"),
                }
                if counts {
                    // Ten minutes of an implicit id have passed.
                    let again = placed(&mut world, &line).expect("a repeat, or a new order");
                    assert_eq!(again == (first, true), !is_implicit, "{name}");
                    assert_eq!(again.1, !is_implicit, "{name}");
                }
                world.check().unwrap_or_else(|why| panic!("{name}: {why}"));
                cases += 1;
            }
        }
    }
    println!("ids at their border: {cases} cases");
}

/// Many users with many requests: the oldest leave, and no others.
#[test]
fn requests_leave_memory_oldest_first() {
    let mut world = World::of("");
    world.rules.client_ids_us = 10 * HOUR;
    world.rules.free_daily_orders = 1_000_000;
    world.act("book Y asks 0.42x300");
    let (mut made, mut cases) = (Vec::new(), 0);
    for round in 0..60_u64 {
        for user in 1..=4 {
            world.user = UserId(user);
            world.make_user();
            // Users that send often, now and then, and not any more.
            let count = [20, round % 2, u64::from(round < 20), 3][user as usize - 1];
            for number in 0..count {
                let words = if number % 3 == 0 { " implicit" } else { "" };
                let line = format!("buy Y 5 limit 0.01 id={round}-{number}{words}");
                let (order, is_replay) = placed(&mut world, &line).expect("there is cash");
                assert!(!is_replay);
                world.ask(Command::Cancel { order }, 0);
                made.push(world.now);
            }
        }
        world.now = world.now.plus(HOUR / 2 + round);
        world.act("alive");
        let (before, known) = (state_of(&world), remembered(&world));
        world.act("cycle");
        let since = world.rules.ids_since(world.now);
        let expected = made.iter().filter(|at| **at >= since).count();
        assert_eq!(remembered(&world), expected, "round {round}");
        assert!(known >= expected && state_of(&world) == before);
        world.users().check_all().expect("every invariant is kept");
        if round % 10 == 5 {
            restart_from_snapshot(&mut world, Formats::Newest);
            assert_eq!(remembered(&world), expected);
        }
        cases += 1;
    }
    assert!(made.len() > 1_000 && remembered(&world) < made.len() / 2, "{} of {}", remembered(&world), made.len());
    world.check().expect("a replay gives the same state");
    // When no user has sent for long, no request is left.
    world.now = world.now.plus(11 * HOUR);
    world.act("alive");
    world.act("cycle");
    assert!(world.users().iter().all(|user| user.trading().requests.is_none()), "no memory is left of them");
    world.check().expect("a replay gives the same state");
    println!("requests in memory: {} of {} rounds", made.len(), cases);
}

/// The first answer of requests that have left memory has no time that a correction of the clock changes.
#[test]
fn a_correction_of_the_clock_changes_no_request_that_has_left() {
    let mut cases = 0;
    for (words, later) in [("limit 0.30 id=a", 0), ("market 0.50 id=a", 0), ("market 0.50 id=a", 50 * HOUR)] {
        let mut world = World::of("");
        world.act("book Y asks 0.42x300");
        world.make_user();
        placed(&mut world, &format!("buy Y 10 {words}")).expect("it is new");
        world.now = world.now.plus(100 * HOUR);
        world.act("alive");
        world.act("cycle");
        assert_eq!(remembered(&world), 0);
        let records = world.out.records.clone();
        let mut kept = Users::default();
        for (owner, payload) in &records {
            for fact in crate::mutation::codec::decode(world.rules.formats.record(), payload).expect("our own") {
                kept.apply(*owner, &fact.expect("our own"));
            }
        }
        let at = Timestamp(super::world::START.0 - HOUR + later);
        let mut left = Users::default();
        let user = world.shard.as_mut().expect("it is there").users().ids()[0];
        let mut bytes = Vec::new();
        snapshot::write(Formats::Newest, &Markets::default(), &[world.users()], &mut bytes).expect("memory");
        let mut state = snapshot::read(&mut &bytes[..], 1).expect("just written");
        left.insert(state.users[0].take(user).expect("it is there"));
        kept.set_back(at);
        left.set_back(at);
        let of = |users: &Users| digest::digest(&Markets::default(), &[users]);
        assert_eq!(of(&kept), of(&left), "{words}");
        kept.check_all().expect("indexes by time are those of the new times");
        // The request that was kept leaves by its new time.
        assert!(!kept.forget_requests(at, 9) && !kept.forget_requests(at.plus(1), 9));
        assert_eq!(of(&kept), of(&left), "{words}");
        kept.check_all().expect("every invariant is kept");
        cases += 1;
    }
    println!("corrections: {cases} cases");
}
