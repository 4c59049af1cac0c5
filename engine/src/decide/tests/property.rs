//! Random days, and days that are longer than a turn. A day is a script in the scenario language, so a failing one is
//! readable.

use super::world::World;
use crate::command::{Answer, Command, Envelope, OrderFilter, Query, Sweeps, Wallets};
use crate::fact;
use crate::id::{MarketId, UserId};
use crate::order::Status;
use crate::rules::{CYCLE_ORDERS_PER_TURN_MAX, SWEEP_ORDERS_PER_RECORD_MAX};
use crate::shard::Room;
use crate::time::SECOND;

const SEEDS: u64 = 24;
const STEPS: usize = 1_500;

pub(super) struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }

    pub fn one_of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.roll(words.len() as u64) as usize]
    }

    pub fn cents(&mut self, from: u64, to: u64) -> String {
        let cents = from + self.roll(to - from);
        format!("0.{cents:02}")
    }
}

/// Flags that a day may switch off.
const FLAGS: [&str; 12] = [
    "fak_partial_fills",
    "fok_depth_aware",
    "gtd_auto_expiry",
    "post_only_enforced",
    "min_order_size_enforced",
    "book_impact_depletion",
    "maker_fill_at_limit",
    "require_book_depth",
    "quote_age_enforced",
    "emergency_exit",
    "sync_gtc_match",
    "depletion_covers_market_orders",
];

pub(super) fn step(dice: &mut Dice) -> String {
    let token = dice.one_of(&["Y", "N", "Y1", "N1"]);
    match dice.roll(100) {
        0..8 => {
            let (bid, ask) = (30 + dice.roll(20), 51 + dice.roll(20));
            let level =
                |dice: &mut Dice, cents: u64| format!("0.{cents:02}x{}.{:06}", dice.roll(60), dice.roll(999_999));
            let mut line = format!("book {token} bids");
            (0..dice.roll(4)).for_each(|at| line += &format!(" {}", level(dice, bid - at)));
            line += " asks";
            (0..dice.roll(4)).for_each(|at| line += &format!(" {}", level(dice, ask + at)));
            line
        }
        8..18 => {
            format!("level {token} {} {}x{}", dice.one_of(&["bid", "ask"]), dice.cents(30, 70), dice.roll(50))
        }
        18..20 => format!("trade {token} {}", dice.cents(30, 70)),
        20..66 => {
            let side = dice.one_of(&["buy", "buy", "sell"]);
            let size = match dice.roll(12) {
                0 if side == "buy" => format!("${}.{:02}", dice.roll(30), dice.roll(100)),
                1 => format!("{}.{:04}", dice.roll(900), dice.roll(10_000)),
                _ => format!("{}.{:04}", 5 + dice.roll(30), dice.roll(10_000)),
            };
            let kind =
                if size.starts_with('$') { "market" } else { dice.one_of(&["market", "limit", "limit", "limit"]) };
            let mut line = format!("{side} {token} {size} {kind} {}", dice.cents(25, 75));
            match kind {
                "market" => line += dice.one_of(&["", " fak", " ioc", " fok"]),
                _ => line += dice.one_of(&["", "", " gtd exp=3s", " gtd exp=30s venue", " fok", " fak", " post"]),
            }
            if dice.roll(3) == 0 {
                line += &format!(" id=k{} body={}", dice.roll(40), dice.roll(2));
                line += dice.one_of(&["", " header", " implicit"]);
            }
            line + dice.one_of(&["", "", "", " from=main", " pro"])
        }
        66..74 => format!("cancel #{}", 1 + dice.roll(300)),
        74 => format!("cancel {}", dice.one_of(&["all", "all all", "all main", "market 0", "token Y1", "market 1 N1"])),
        75..90 => "cycle".to_owned(),
        90..93 => format!("wait {}ms", dice.roll(4_000)),
        93 => format!("outage {}", dice.one_of(&["on", "off", "off"])),
        94 => "alive".to_owned(),
        95 => format!("beat {} {}", dice.one_of(&["a", "b"]), 1_000 + dice.roll(3) * 500),
        96 => format!("state 1 {}", dice.one_of(&["halted", "active", "active", "active"])),
        97 => format!("room {}", dice.one_of(&["reserve", "ample", "ample", "ample"])),
        _ => format!("user {}", 1 + dice.roll(3)),
    }
}

fn day(seed: u64) -> World {
    let mut dice = Dice(seed);
    let mut world = World::of("market 0 ");
    let mut lines = vec!["market 0 weather 0.01".to_owned(), "market 1 crypto 0.01".to_owned()];
    // Every third day has the default flags; on the others some are off.
    if !seed.is_multiple_of(3) {
        (0..1 + dice.roll(3)).for_each(|_| lines.push(format!("flag {} off", dice.one_of(&FLAGS))));
    }
    lines.push("rule free_daily_orders 400".to_owned());
    for line in lines {
        world.act(&line);
    }
    for at in 0..STEPS {
        let line = step(&mut dice);
        let got = world.act(&line);
        assert!(!got.starts_with("error"), "seed {seed}, step {at}: {line}: {got}");
        if at % 250 == 0 {
            world.check().unwrap_or_else(|broken| panic!("seed {seed}, step {at}: {broken}"));
        }
    }
    for line in ["room ample", "outage off", "alive", "cycle", "resolve 0 Y", "settle 0", "resolve 1 split", "settle 1"]
    {
        world.act(line);
    }
    world.check().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    world
}

#[test]
fn random_days_keep_every_invariant_and_repeat() {
    let (mut records, mut fills, mut kinds) = (0, 0, ahash::AHashSet::new());
    for seed in 1..=SEEDS {
        let (one, two) = (day(seed), day(seed));
        assert!(one.out.records == two.out.records, "seed {seed}: the same day twice writes the same records");
        assert_eq!(one.out.notices, two.out.notices, "seed {seed}");
        records += one.out.records.len();
        for fact in one.all_facts() {
            if let crate::mutation::Mutation::OrderFilled(fact::OrderFilled { liquidity, source, .. }) = &fact {
                fills += 1;
                kinds.insert(format!("{liquidity:?} {source:?}"));
            }
            if let crate::mutation::Mutation::OrderClosed(fact::OrderClosed { reason, .. }) = &fact {
                kinds.insert(format!("{reason:?}"));
            }
        }
        for user in one.users().iter() {
            let open = user.open_orders_count() + user.open_positions().count();
            assert_eq!(open, 0, "seed {seed}: everything is settled in the end");
        }
    }
    println!("{SEEDS} days of {STEPS} steps, {records} records, {fills} fills; {kinds:?}");
    assert!(fills > 1_000, "days have fills: {fills}");
    for kind in [
        "Taker BookWalk",
        "Maker MatchingEngine",
        "Taker BestAsk",
        "FakRest",
        "FokNotFilled",
        "FakNoFill",
        "GtdExpired",
        "HeartbeatLapsed",
        "UserCancelled",
        "CancelAll",
        "CancelMarket",
        "MarketResolved",
    ] {
        assert!(kinds.contains(kind), "days have {kind}: {kinds:?}");
    }
}

/// A world in which user 1 has `orders` resting BUY orders at 0.10, with the options `words`.
pub(super) fn crowded(orders: usize, words: &str) -> World {
    let mut world = World::of("");
    for line in ["market 1 geopolitics 0.01", "balance 100000", "tier pro", "book Y1 asks 0.90x10"] {
        world.act(line);
    }
    for _ in 0..orders {
        assert_eq!(world.act(&format!("buy Y1 5 limit 0.10 {words}")), "PENDING 0/5 reserved 0.5");
    }
    world
}

#[test]
fn a_cycle_longer_than_a_turn_continues_in_the_next() {
    let orders = 2 * CYCLE_ORDERS_PER_TURN_MAX + 500;
    let mut world = crowded(orders, "");
    world.act("cycle");
    world.act("level Y1 ask 0.10x20000");
    let (now, venue_now) = (world.now, world.now);
    let cycle = |reply| Envelope {
        owner: UserId(0),
        command: Command::Cycle { venue_now, sweeps: Sweeps::All },
        received_at: now,
        reply,
    };
    let records = world.out.records.len();
    let mut turns = 0;
    {
        let (shard, inbox, out) = world.parts();
        shard.take(cycle(900), now, out);
        // A second cycle waits for the first.
        shard.take(cycle(901), now, out);
        assert!(out.answers.is_empty(), "the first turn is not enough");
        // Without room it pauses and reports no work.
        out.room = Room::None;
        assert!(!shard.turn(inbox, now, out));
        out.room = Room::Ample;
        // Commands are answered in between.
        let filter = OrderFilter {
            wallets: Wallets::Api,
            status: Some(Status::Pending),
            market: None,
            side: None,
            after: None,
            offset: 0,
            limit: 1,
        };
        let query = Command::Query(Query::Orders(filter));
        shard.take(Envelope { owner: UserId(1), command: query, received_at: now, reply: 902 }, now, out);
        let Some((902, Answer::Orders(page))) = out.answers.pop() else { panic!("an immediate answer") };
        assert!(page.total_hint.is_some_and(|open| open > 0 && open < orders), "{:?}", page.total_hint);
        while shard.turn(inbox, now, out) {
            turns += 1;
            assert!(turns < 100);
        }
    }
    let answers: Vec<(u64, u64, u64)> = world
        .out
        .answers
        .iter()
        .map(|(reply, answer)| match answer {
            Answer::Cycled { looked_at, fills, .. } => (*reply, *looked_at, *fills),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(answers, [(900, orders as u64, orders as u64), (901, 0, 0)]);
    assert!(turns >= 1, "{turns} turns");
    assert!(world.out.records.len() - records >= 3, "one record per piece and user");
    world.check().expect("all invariants");
}

#[test]
fn an_order_that_ends_between_two_pieces_of_a_cycle_is_not_filled() {
    let orders = CYCLE_ORDERS_PER_TURN_MAX + 500;
    let mut world = crowded(orders, "gtd exp=10s");
    world.act("cycle");
    world.act("level Y1 ask 0.10x20000");
    let (now, later) = (world.now, world.now.plus(10 * SECOND));
    let (shard, inbox, out) = world.parts();
    let command = Command::Cycle { venue_now: now, sweeps: Sweeps::All };
    shard.take(Envelope { owner: UserId(0), command, received_at: now, reply: 900 }, now, out);
    while shard.turn(inbox, later, out) {}
    let Some((900, Answer::Cycled { fills, .. })) = out.answers.pop() else { panic!("an answer") };
    assert!(fills > 0 && fills < orders as u64, "{fills}");
    world.now = later;
    assert_eq!(world.act("cycle"), format!("looked 0 filled 0 closed {}", orders as u64 - fills));
    world.check().expect("all invariants");
}

#[test]
fn a_sweep_longer_than_a_record_is_split() {
    let orders = 2 * SWEEP_ORDERS_PER_RECORD_MAX + 10;
    let mut world = crowded(orders, "");
    let now = world.now;
    let records = world.out.records.len();
    let (shard, inbox, out) = world.parts();
    let command = Command::CancelAll { wallets: Wallets::All };
    shard.take(Envelope { owner: UserId(1), command, received_at: now, reply: 900 }, now, out);
    assert!(out.answers.is_empty());
    while shard.turn(inbox, now, out) {}
    let Some((900, Answer::Cancelled(swept))) = out.answers.pop() else { panic!("an answer") };
    assert_eq!((swept.cancelled.len(), swept.not_cancellable.len()), (orders, 0));
    assert_eq!(out.records.len() - records, 3);
    world.check().expect("all invariants");
}

#[test]
fn a_settlement_longer_than_a_turn_pays_each_user_once() {
    let mut world = crowded(SWEEP_ORDERS_PER_RECORD_MAX + 10, "");
    for user in 2..30 {
        world.act(&format!("user {user}"));
        world.act("book Y1 asks 0.40x10");
        assert_eq!(world.act("buy Y1 10 market 0.40"), "FILLED 10/10 @0.4 fee 0");
    }
    world.act("resolve 1 Y");
    let now = world.now;
    let (shard, inbox, out) = world.parts();
    let command = Command::Settle { market: MarketId(1) };
    shard.take(Envelope { owner: UserId(0), command, received_at: now, reply: 900 }, now, out);
    assert!(out.answers.is_empty());
    while shard.turn(inbox, now, out) {}
    let Some((900, Answer::Settled { positions, orders })) = out.answers.pop() else { panic!("an answer") };
    assert_eq!((positions, orders), (28, SWEEP_ORDERS_PER_RECORD_MAX as u64 + 10));
    world.check().expect("all invariants");
    assert_eq!(world.act("settle 1"), "paid 0 expired 0");
}
