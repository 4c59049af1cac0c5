//! Users whose object numbers come to their end: they go on with another prefix (engine/docs/orders.md §8).

use super::world::{World, run_with};
use super::{equity, flags, keys, limits, market, prints, resting, wallets};
use crate::command::{Answer, Command, FillSpan, OrderFilter, Query, Wallets};
use crate::format::Formats;
use crate::id::{KeyId, OBJECT_BITS, OrderId, TradeId, UserId, object_number};
use crate::market::Markets;
use crate::mutation::Mutation;
use crate::order::{CloseReason, Status};
use crate::reject::Reject;
use crate::rules::NUMBERS_PER_PREFIX;
use crate::shard::snapshot;
use crate::time::Timestamp;
use crate::user::User;
use crate::user::prefixes::PREFIXES_MAX;
use crate::view::Happened;
use std::collections::BTreeSet;

/// Every scenario, with few numbers of a prefix: nearly every command uses one up.
#[test]
fn scenarios_are_the_same_over_prefixes() {
    let (mut expectations, mut wrong) = (0, Vec::new());
    for numbers in [1, 5, 9] {
        for (file, text) in [
            ("market", market::SCENARIOS),
            ("limits", limits::SCENARIOS),
            ("resting", resting::SCENARIOS),
            ("prints", prints::SCENARIOS),
            ("flags", flags::SCENARIOS),
            ("keys", keys::SCENARIOS),
            ("wallets", wallets::SCENARIOS),
            ("equity", equity::SCENARIOS),
        ] {
            let ran = run_with(file, text, numbers);
            expectations += ran.expectations;
            wrong.extend(ran.wrong);
        }
    }
    println!("scenarios over prefixes: {expectations} expectations");
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}

/// A world in which users need another prefix after this many numbers.
fn world_with(numbers: u32) -> World {
    let mut world = World::of("");
    for line in
        [&format!("rule numbers_per_prefix {numbers}"), "balance 1000000", "book Y bids 0.40x90000 asks 0.50x90000"]
    {
        assert_eq!(world.act(line), "");
    }
    world
}

/// A new process with the state of a snapshot.
fn restart_from_snapshot(world: &mut World) {
    let mut bytes = Vec::new();
    snapshot::write(Formats::Newest, &Markets::default(), &[world.users()], &mut bytes)
        .expect("memory takes every byte");
    let mut state = snapshot::read(&mut &bytes[..], 1).expect("just written");
    state.check_all().expect("every invariant is kept");
    let users = std::mem::take(&mut state.users[0]);
    world.shard = Some(world.shard_of(users));
}

/// All orders by pages, newest first.
fn listed(world: &mut World, limit: usize) -> Vec<OrderId> {
    let (mut after, mut ids) = (None, Vec::new());
    loop {
        let wallets = Wallets::All;
        let filter = OrderFilter { wallets, status: None, market: None, side: None, after, offset: 0, limit };
        let Answer::Orders(page) = world.ask(Command::Query(Query::Orders(filter)), 0) else { panic!("a page") };
        ids.extend(page.orders.iter().map(|view| view.order.id));
        after = page.orders.last().map(|view| (view.order.created_at, view.order.id));
        if !page.has_more {
            return ids;
        }
    }
}

/// All fills by pages, newest first.
fn traded(world: &mut World, limit: usize) -> Vec<TradeId> {
    let (mut before, mut ids) = (None, Vec::new());
    loop {
        let (from, to) = (Timestamp(0), Timestamp(u64::MAX));
        let span = FillSpan { wallets: Wallets::All, market: None, from, to, before, limit, limit_elsewhere: 0 };
        let Answer::FillSpan(page) = world.ask(Command::Query(Query::FillSpan(span)), 0) else { panic!("a page") };
        ids.extend(page.rows.iter().map(|view| view.fill.id));
        before = page.next.map(TradeId);
        if before.is_none() {
            return ids;
        }
    }
}

/// Orders and fills of the newest order facts, by pages.
fn happened(world: &mut World, limit: usize) -> Vec<(OrderId, Option<TradeId>)> {
    let (mut after, mut all) = (0, Vec::new());
    loop {
        let Answer::Facts(page) = world.ask(Command::Query(Query::Facts { after, limit }), 0) else { panic!("a page") };
        all.extend(page.facts.iter().map(|view| match &view.what {
            Happened::Filled { fill, .. } => (view.order.id, Some(fill.id)),
            _ => (view.order.id, None),
        }));
        after = page.facts.last().map_or(page.newest, |view| view.seq);
        if after == page.newest {
            return all;
        }
    }
}

/// Two users use up prefixes alternately; new processes begin with the records or with a snapshot.
#[test]
fn ids_go_on_with_another_prefix() {
    let (numbers, mut cases) = (12, 0);
    let mut world = world_with(numbers);
    for round in 0..30 {
        for user in [1, 2] {
            world.act(&format!("user {user}"));
            assert!(world.act(&format!("buy Y 10 limit 0.60 pro id=f{round}")).starts_with("FILLED"));
            assert!(world.act(&format!("buy Y 10 limit 0.30 pro id=r{round}")).starts_with("PENDING"));
        }
        match round % 9 {
            4 => _ = world.restart(),
            8 => restart_from_snapshot(&mut world),
            _ => {}
        }
        world.act("wait 1s");
        world.act("alive");
    }
    world.check().expect("a replay gives the same state");
    let of = |world: &World, user: u64| -> (Vec<UserId>, Vec<OrderId>, Vec<TradeId>) {
        let user = world.users().get(UserId(user)).expect("a user");
        let orders = user.orders().iter().map(|order| order.id).collect();
        (user.prefixes().collect(), orders, user.fills().iter().map(|fill| fill.id).collect())
    };
    let granted: Vec<UserId> = [1, 2].into_iter().flat_map(|user| of(&world, user).0.split_off(1)).collect();
    assert_eq!(granted.iter().collect::<BTreeSet<_>>().len(), granted.len(), "each is of one user: {granted:?}");
    assert!(granted.len() > 12 && granted.iter().all(|prefix| prefix.0 > 100));
    let next = world.shard().directory().reserve_anonymous();
    assert!(granted.iter().all(|prefix| *prefix < next), "no user gets a prefix");
    for user in [1, 2] {
        world.act(&format!("user {user}"));
        let (prefixes, orders, fills) = of(&world, user);
        assert_eq!((orders.len(), fills.len()), (60, 30));
        let of_orders: BTreeSet<UserId> = orders.iter().map(|id| UserId::of_object(id.0)).collect();
        assert!(of_orders.iter().eq(prefixes[..of_orders.len()].iter()) && of_orders.len() + 1 >= prefixes.len());
        let most = orders.iter().map(|id| object_number(id.0)).max();
        assert!(most < Some(numbers + 4), "{most:?}: those of one record above the bound");
        let newest_first = |ids: &[OrderId]| ids.iter().rev().copied().collect::<Vec<_>>();
        for limit in [1, 7, 1_000] {
            assert_eq!(listed(&mut world, limit), newest_first(&orders), "pages of {limit}");
            assert_eq!(traded(&mut world, limit), fills.iter().rev().copied().collect::<Vec<_>>());
            let facts = happened(&mut world, limit);
            let placed: BTreeSet<OrderId> = facts.iter().map(|(order, _)| *order).collect();
            assert!(placed.into_iter().eq(orders.iter().copied()));
            assert!(facts.iter().filter_map(|(_, fill)| *fill).eq(fills.iter().copied()));
            cases += 3;
        }
        for (nth, id) in orders.iter().enumerate() {
            let Answer::Order(view) = world.ask(Command::Query(Query::Order(*id)), 0) else { panic!("{id} is known") };
            assert_eq!(view.order.id, *id);
            // The same number of another prefix is another order, or none.
            for prefix in &prefixes {
                let other = OrderId(prefix.object(object_number(id.0)));
                let is_there = orders.contains(&other);
                let answer = world.ask(Command::Query(Query::Order(other)), 0);
                assert_eq!(matches!(answer, Answer::Order(view) if view.order.id == other), is_there, "{other}");
                cases += 1;
            }
            // Some that rest, of all prefixes, are cancelled by their ids.
            if nth % 14 == 1 {
                let answer = world.ask(Command::Cancel { order: *id }, 0);
                let Answer::Order(view) = answer else { panic!("{id}: {answer:?}") };
                assert_eq!(view.order.closed().map(|(reason, _)| reason), Some(CloseReason::UserCancelled));
                assert_eq!((view.order.id, view.order.status()), (*id, Status::Cancelled));
                cases += 1;
            }
        }
        let open: Vec<OrderId> = world.the_user().open_orders().map(|order| order.id).collect();
        assert!(open.is_sorted() && open.len() > 15);
        let answer = world.ask(Command::CancelOrders { orders: open[5..].to_vec() }, 0);
        let Answer::Cancelled(swept) = answer else { panic!("{answer:?}") };
        assert_eq!(swept.cancelled, open[5..]);
    }
    // The other user's objects are not this one's.
    let (_, others, _) = of(&world, 1);
    for id in &others {
        let answer = world.ask(Command::Cancel { order: *id }, 0);
        assert!(matches!(answer, Answer::Refused(Reject::OrderNotFound)), "{answer:?}");
        cases += 1;
    }
    // A resolution ends what is left of both.
    world.act("resolve 0 Y");
    let settled = world.act("settle 0");
    assert!(!settled.starts_with("error"), "{settled}");
    for user in [1, 2] {
        let user = world.users().get(UserId(user)).expect("a user");
        assert_eq!((user.open_orders_count(), user.open_positions().count()), (0, 0));
        cases += 1;
    }
    world.check().expect("a replay gives the same state");
    println!("ids over prefixes: {cases} cases");
}

/// Resting orders of several prefixes of a user are filled in one record, by a cycle and by a print.
#[test]
fn resting_orders_of_all_prefixes_meet_together() {
    let mut cases = 0;
    for by in ["cycle", "print"] {
        let mut world = world_with(6);
        for _ in 0..9 {
            for user in [1, 2] {
                world.act(&format!("user {user}"));
                assert!(world.act("buy Y 10 limit 0.30 pro").starts_with("PENDING"));
            }
        }
        let prefixes = |world: &World, user| world.users().get(UserId(user)).expect("a user").prefixes().count();
        assert!(prefixes(&world, 1) > 2 && prefixes(&world, 2) > 2);
        let before = world.out.records.len();
        match by {
            "cycle" => {
                world.act("book Y bids 0.10x9000 asks 0.20x9000");
                world.act("cycle");
            }
            _ => {
                world.act("print Y 0.20x9000 sell");
            }
        }
        let owners: Vec<u64> = world.out.records[before..].iter().map(|(owner, _)| owner.0).collect();
        assert_eq!(owners, [1, 2], "{by}: one record each");
        for user in [1, 2] {
            let user = world.users().get(UserId(user)).expect("a user");
            assert_eq!((user.fills().len(), user.open_orders_count()), (9, 0), "{by}");
            cases += 1;
        }
        world.check().expect("a replay gives the same state");
    }
    println!("resting orders of all prefixes: {cases} cases");
}

/// Keys and wallets of a later prefix belong to their user, also for authentication and after a restart.
#[test]
fn keys_and_wallets_of_a_later_prefix_are_their_users() {
    let mut cases = 0;
    let mut world = world_with(4);
    world.act("plan enterprise");
    for nth in 0..5 {
        assert!(world.act("buy Y 10 limit 0.60 pro").starts_with("FILLED"), "{nth}");
        let key = world.act(&format!("key issue k{nth}"));
        assert!(key.starts_with(&format!("k{nth}")), "{key}");
        assert!(world.act(&format!("buy Y 10 limit 0.60 pro by={}", nth + 1)).starts_with("FILLED"), "{nth}");
    }
    let opened = world.ask(Command::OpenWallet { label: None, by: None }, 0);
    let Answer::Wallet(wallet) = opened else { panic!("{opened:?}") };
    assert_ne!(UserId::of_object(wallet.id.0), world.user);
    assert!(world.act("buy Y 10 limit 0.60 pro from=3").starts_with("FILLED"));
    assert!(world.the_user().positions().iter().any(|held| held.wallet == wallet.id));
    for from in ["here", "records", "snapshot"] {
        match from {
            "here" => {}
            "records" => _ = world.restart(),
            _ => restart_from_snapshot(&mut world),
        }
        let keys: Vec<KeyId> = world.the_user().keys.iter().map(|key| key.id).collect();
        assert!(keys.is_sorted() && keys.iter().any(|key| UserId::of_object(key.0) != UserId(1)));
        for key in keys {
            let known = world.shard().directory().principal_of(key).expect("it was issued");
            assert_eq!((known.user, known.key), (UserId(1), key), "{from}");
            assert_eq!(world.shard().directory().owner_of(key.0), UserId(1));
            cases += 1;
        }
        for user in [UserId(2), UserId(99)] {
            assert_eq!(world.shard().directory().owner_of(user.object(5)), user, "no prefix");
            cases += 1;
        }
    }
    println!("keys of later prefixes: {cases} cases");
}

/// The first user of a world, with another next number. No record has it, so the world cannot be checked against them.
fn set_next(world: &mut World, next: u32) {
    let owner = world.user;
    let users = world.shard().users_mut();
    let mut user = users.take(owner).expect("it was created");
    user.next_object = next;
    users.insert(user);
}

fn prefixes_of(user: &User) -> usize {
    user.prefixes().count()
}

/// At the bounds that hold outside of tests.
#[test]
fn a_prefix_is_granted_before_the_numbers_end() {
    const END: u32 = 1 << OBJECT_BITS;
    let mut cases = 0;
    // (next number, formats, what two orders of one number each come to, prefixes after each)
    for (next, formats, answers, prefixes) in [
        (NUMBERS_PER_PREFIX - 2, Formats::Newest, ["PENDING", "PENDING"], [1, 2]),
        (NUMBERS_PER_PREFIX - 1, Formats::Newest, ["PENDING", "PENDING"], [2, 2]),
        (NUMBERS_PER_PREFIX + 7, Formats::Newest, ["PENDING", "PENDING"], [2, 2]),
        (NUMBERS_PER_PREFIX - 1, Formats::Previous, ["PENDING", "PENDING"], [1, 1]),
        (END - (1 << 16) - 1, Formats::Newest, ["PENDING", "PENDING"], [2, 2]),
        (END - (1 << 16) - 1, Formats::Previous, ["PENDING", "Busy"], [1, 1]),
        // As an earlier build left it: the next order has numbers.
        (END - (1 << 16), Formats::Newest, ["Busy", "PENDING"], [2, 2]),
        (END - (1 << 16), Formats::Previous, ["Busy", "Busy"], [1, 1]),
        (END, Formats::Newest, ["Busy", "PENDING"], [2, 2]),
    ] {
        let mut world = World::of("");
        world.rules.formats = formats;
        world.act("balance 1000");
        world.act("money");
        set_next(&mut world, next);
        for (answer, prefixes) in answers.into_iter().zip(prefixes) {
            let got = world.act("buy Y 10 limit 0.30");
            assert!(got.starts_with(answer), "{next}, {formats:?}: {got}");
            assert_eq!(prefixes_of(world.the_user()), prefixes, "{next}, {formats:?}");
            world.users().check_all().expect("every invariant is kept");
            cases += 1;
        }
        let facts: Vec<Mutation> = world.all_facts();
        let granted = facts.iter().filter(|fact| matches!(fact, Mutation::NumbersExtended(_))).count();
        assert_eq!(granted + 1, prefixes[1]);
    }
    println!("ends of numbers: {cases} cases");
}

/// After the last prefix that a user may have, its numbers are used to their end.
#[test]
fn the_last_prefix_is_used_to_its_end() {
    let mut world = world_with(1);
    for _ in 0..2 * PREFIXES_MAX {
        assert!(world.act("buy Y 10 limit 0.30 pro").starts_with("PENDING"));
    }
    let (most, used) = (prefixes_of(world.the_user()), world.the_user().numbers_used());
    assert_eq!(most, 1 + PREFIXES_MAX);
    assert!(used > 5, "{used}");
    world.check().expect("a replay gives the same state");
    restart_from_snapshot(&mut world);
    assert!(world.act("buy Y 10 limit 0.30 pro").starts_with("PENDING"));
    let end = ((1 + PREFIXES_MAX as u64) << OBJECT_BITS) - (1 << 16);
    set_next(&mut world, end as u32 - 1);
    assert!(world.act("buy Y 10 limit 0.30 pro").starts_with("PENDING"));
    assert!(world.act("buy Y 10 limit 0.30 pro").starts_with("Busy"));
    assert_eq!((u64::from(world.the_user().next_object), prefixes_of(world.the_user())), (end, most));
    world.users().check_all().expect("every invariant is kept");
}
