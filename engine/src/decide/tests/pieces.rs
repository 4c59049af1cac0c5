//! Cycles that are longer than a turn or a record, and changes between two of their pieces.

use super::property::crowded;
use super::world::World;
use crate::command::{Answer, Command, Envelope, Sweeps};
use crate::fact;
use crate::id::{UserId, WalletId};
use crate::mutation::{Mutation, codec};
use crate::order::Taken;
use crate::rules::{CYCLE_ORDERS_PER_TURN_MAX, RECORD_SEALED_AT_BYTES, SWEEP_ORDERS_PER_RECORD_MAX};
use crate::user::Tier;

/// The row "Skipped" of engine/docs/execution.md §7 applies to every order, also after its cycle has begun.
#[test]
fn a_cycle_stops_when_orders_may_no_longer_match_and_continues_later() {
    let orders = CYCLE_ORDERS_PER_TURN_MAX + 500;
    let mut cases = 0;
    for ((change, back), sells) in [
        ("state 1 halted", "state 1 active"),
        ("wait 61s", "alive"),
        ("outage on", "outage off"),
        ("room reserve", "room ample"),
    ]
    .into_iter()
    .flat_map(|change| [(change, false), (change, true)])
    {
        let mut world = if sells { crowded_with_sells(orders) } else { crowded(orders, "") };
        world.act("cycle");
        world.act(if sells { "level Y1 bid 0.90x20000" } else { "level Y1 ask 0.10x20000" });
        let (now, open) = (world.now, |world: &World| world.the_user().open_orders_count());
        {
            let (shard, _, out) = world.parts();
            let command = Command::Cycle { venue_now: now, sweeps: Sweeps::All };
            shard.take(Envelope { owner: UserId(0), command, received_at: now, reply: 900 }, now, out);
            assert!(out.answers.is_empty(), "{change}: the cycle has more pieces");
        }
        let rest = open(&world);
        assert!(rest > 0 && rest < orders, "{change}: {rest}");
        world.act(change);
        let now = world.now;
        {
            let (shard, inbox, out) = world.parts();
            while shard.turn(inbox, now, out) {}
            let Some((900, Answer::Cycled { fills, .. })) = out.answers.pop() else { panic!("an answer") };
            assert_eq!(fills, (orders - rest) as u64, "{change}: nothing fills after it");
        }
        assert_eq!(open(&world), rest, "{change}");
        // The book is unchanged; still the rest is visited in the next cycle.
        world.act(back);
        assert_eq!(world.act("cycle"), format!("looked {rest} filled {rest} closed 0"), "{change}");
        world.check().expect("all invariants");
        cases += 1;
    }
    println!("between two pieces: {cases} cases");
}

/// A cycle visits no order for its `hold_reason` if all have the right one: neither after a start nor because of a new
/// order.
#[test]
fn orders_that_are_not_held_cost_a_cycle_nothing() {
    let orders = 2 * CYCLE_ORDERS_PER_TURN_MAX;
    let mut world = crowded(orders, "");
    let mut cases = 0;
    // The state before, the count of pieces of the cycle, and whether all orders are held after it.
    let rows = [
        ("restart", 1, false),
        ("outage on", 3, true),
        ("alive", 1, true),
        ("outage off", 3, false),
        ("alive", 1, false),
    ];
    for (before, pieces, held) in rows {
        world.act(before);
        // A new order has the right hold_reason from the start.
        world.act("buy Y1 5 limit 0.10");
        let now = world.now;
        let (shard, inbox, out) = world.parts();
        out.answers.clear();
        let command = Command::Cycle { venue_now: now, sweeps: Sweeps::All };
        shard.take(Envelope { owner: UserId(0), command, received_at: now, reply: 900 }, now, out);
        let mut taken = 1;
        while out.answers.is_empty() {
            shard.turn(inbox, now, out);
            taken += 1;
        }
        assert_eq!(taken, pieces, "{before}: pieces of a cycle");
        assert_eq!(world.the_user().open_orders_count(), orders + cases + 1, "{before}");
        assert!(world.the_user().open_orders().all(|order| order.held == held), "{before}: held orders");
        world.check().expect("all invariants");
        cases += 1;
    }
    println!("orders visited by a cycle: {cases} cases");
}

/// A search costs the instruments that it visits: with one instrument, nearly all of a piece is left for its orders.
#[test]
fn a_piece_is_for_orders() {
    let orders = CYCLE_ORDERS_PER_TURN_MAX - 10;
    let mut world = crowded(orders, "");
    world.act("cycle");
    world.act("level Y1 ask 0.10x20000");
    let now = world.now;
    let (shard, _, out) = world.parts();
    let command = Command::Cycle { venue_now: now, sweeps: Sweeps::All };
    shard.take(Envelope { owner: UserId(0), command, received_at: now, reply: 900 }, now, out);
    let Some((900, Answer::Cycled { fills, .. })) = out.answers.pop() else { panic!("one piece is enough") };
    assert_eq!(fills, orders as u64);
}

/// More instruments than one search visits: the cycle reaches each, and the orders in the last.
#[test]
fn a_cycle_visits_many_markets() {
    let markets = 700;
    let mut world = World::of("");
    for line in ["balance 100000", "tier pro"] {
        world.act(line);
    }
    for market in 1..=markets {
        let end = if market == 600 { "end=1h" } else { "" };
        world.act(&format!("market {market} geopolitics 0.01 {end}"));
        world.act(&format!("book Y{market} asks 0.90x10"));
        assert_eq!(world.act(&format!("buy Y{market} 5 limit 0.10")), "PENDING 0/5 reserved 0.5");
    }
    let mut cases = 0;
    for market in [markets, 1, 251, 501] {
        world.act(&format!("level Y{market} ask 0.10x20000"));
        assert_eq!(world.act("cycle"), "looked 1 filled 1 closed 0", "{market}");
        cases += 1;
    }
    for (state, held) in [("outage on", true), ("outage off", false)] {
        world.act(state);
        world.act("cycle");
        assert!(world.the_user().open_orders().all(|order| order.held == held), "{state}");
        cases += 1;
    }
    assert_eq!(world.the_user().open_orders_count(), markets - 4);
    // One order that is not held among held ones, in the last market: the others are skipped.
    world.act("outage on");
    world.act("cycle");
    world.act("outage off");
    assert_eq!(world.act(&format!("buy Y{} 5 limit 0.10", markets - 1)), "PENDING 0/5 reserved 0.5");
    world.act("outage on");
    world.act("cycle");
    assert!(world.the_user().open_orders().all(|order| order.held), "the last one too");
    world.act("outage off");
    world.act("cycle");
    // One market that ended longer ago than its grace period, far after the first.
    world.act("state 600 closed");
    world.act("wait 26h");
    assert_eq!(world.act("cycle"), "looked 0 filled 0 closed 1");
    cases += 2;
    println!("a cycle over {markets} markets: {cases} cases");
    world.check().expect("all invariants");
}

/// A world in which user 1 has `orders` resting SELL orders at 0.90.
fn crowded_with_sells(orders: usize) -> World {
    let mut world = World::of("");
    let hold = format!("hold Y1 {} 0.10", 5 * orders);
    for line in ["market 1 geopolitics 0.01", "balance 100000", "tier pro", &hold, "book Y1 bids 0.10x10"] {
        let got = world.act(line);
        assert_eq!(got, "", "{line}");
    }
    for _ in 0..orders {
        assert_eq!(world.act("sell Y1 5 limit 0.90"), "PENDING 0/5 reserved 5 shares");
    }
    world
}

/// A fill has a row for each level it took, so a thousand of them in one book exceed a record.
#[test]
fn long_fills_of_one_user_become_several_records() {
    let (orders, levels) = (CYCLE_ORDERS_PER_TURN_MAX, 60);
    let mut world = World::of("");
    // Without depletion every order takes from every level.
    for line in ["flag book_impact_depletion off", "market 1 geopolitics 0.01", "balance 100000", "tier pro"] {
        world.act(line);
    }
    for _ in 0..orders {
        assert_eq!(world.act("buy Y1 60 limit 0.60"), "PENDING 0/60 reserved 36 awaiting");
    }
    let asks: Vec<String> = (1..=levels).map(|cents| format!("0.{cents:02}x1")).collect();
    world.act(&format!("book Y1 asks {}", asks.join(" ")));
    let before = world.out.records.len();
    assert_eq!(world.act("cycle"), format!("looked {orders} filled {orders} closed 0"));
    let records = &world.out.records[before..];
    let fill_bytes = 1_024 + levels * std::mem::size_of::<Taken>();
    let mut fills = 0;
    for (_, payload) in records {
        assert!(payload.len() < RECORD_SEALED_AT_BYTES + fill_bytes, "{} bytes", payload.len());
        for fact in codec::decode::<Mutation>(codec::VERSION, payload).expect("our own version") {
            if let Mutation::OrderFilled(fact::OrderFilled { levels: taken, .. }) = fact.expect("our own bytes") {
                assert_eq!(taken.len(), levels);
                fills += 1;
            }
        }
    }
    assert_eq!(fills, orders);
    println!("{fills} fills of {levels} levels in {} records", records.len());
    world.check().expect("all invariants");
}

/// The check of an emptying is made before the first piece: changes between two pieces do not revert it, and another
/// such command of the user waits for its end.
#[test]
fn an_emptying_ends_whatever_happens_between_its_pieces() {
    let orders = SWEEP_ORDERS_PER_RECORD_MAX + 200;
    let (api, free) = (Command::ResetApiWallet { by: None }, Command::SetGrant { tier: Tier::Free, expires_at: None });
    let reset = |wallet| Command::ResetWallet { wallet, by: None };
    let open = Command::OpenWallet { label: None, by: None };
    let mut cases = 0;
    for (number, before, between, first, second) in [
        (2, "plan pro", Some(&free), 0, "ResetNeedsPlan"),
        (2, "rule api_cooldown 48h", None, 0, "ResetCoolsDown"),
        (1, "plan free", None, 1, "MainResetsSpent"),
        (3, "plan pro", Some(&free), 1, "WrongWalletKind"),
        (3, "plan pro", Some(&open), 1, "WrongWalletKind"),
        (3, "plan pro", Some(&free), 2, "WrongWalletKind"),
    ] {
        let mut world = World::of("");
        for line in ["plan pro", before, "market 1 geopolitics 0.01", "balance 10000", "tier pro", "wallet open"] {
            world.act(line);
        }
        let wallet = WalletId(world.wallet(&number.to_string()).0);
        let from = ["from=main", "", "from=3"][number - 1];
        for _ in 0..orders {
            assert!(world.act(&format!("buy Y1 5 limit 0.10 {from}")).starts_with("PENDING"));
        }
        let command = [api.clone(), reset(wallet), Command::ArchiveWallet { wallet }][first].clone();
        let again = if first == 0 { api.clone() } else { reset(wallet) };
        let (now, owner) = (world.now, world.the_user().id);
        let (shard, inbox, out) = world.parts();
        let asks = [Some((900, command)), between.map(|between| (901, between.clone())), Some((902, again))];
        for (reply, command) in asks.into_iter().flatten() {
            shard.take(Envelope { owner, command, received_at: now, reply }, now, out);
        }
        assert!(out.answers.iter().all(|(to, _)| *to == 901), "{before}: there are more pieces");
        while shard.turn(inbox, now, out) {}
        let answers: Vec<String> =
            out.answers.drain(..).filter(|(to, _)| *to != 901).map(|it| format!("{it:?}")).collect();
        assert_eq!(answers.len(), 2, "{answers:?}");
        let all = format!("orders: {orders}, positions: 0");
        assert!(answers[0].starts_with("(900, Emptied") && answers[0].contains(&all), "{before}: {}", answers[0]);
        assert!(answers[1].starts_with(&format!("(902, Refused({second}")), "{before}: {}", answers[1]);
        assert_eq!(world.the_user().open_orders_count(), 0, "{before}");
        world.check().expect("all invariants");
        cases += 1;
    }
    println!("emptyings in pieces: {cases} cases");
}
