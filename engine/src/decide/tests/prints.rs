//! Prints of the venue against resting orders: scenarios, and a property over random feeds.

use super::world::World;
use crate::amount::{Price, Qty};
use crate::book::BookSide;
use crate::book::chance::Chance;
use crate::command::{Command, Sweeps};
use crate::fact;
use crate::id::{InstrumentId, OrderId, UserId};
use crate::mutation::{Mutation, codec};
use crate::order::Side;
use crate::realism::FillModel;
use crate::time::MILLISECOND;
use std::collections::BTreeMap;

pub const SCENARIOS: &str = r#"
# a print through the limit fills immediately, at the limit, up to its size
market 0 geopolitics 0.01
balance 1000
book Y bids 0.38x100 asks 0.45x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
// a price at the limit does not cross it, and a buyer does not sell
print Y 0.40x50 sell                         -> filled 0
print Y 0.39x50 buy                          -> filled 0
print Y 0.39x4 sell                          -> filled 1
fills #1                                     -> Maker MatchingEngine 4 for 1.6 fee 0 at 0 bps
order #1                                     -> PENDING 4/10 @0.4 fee 0 reserved 2.4
money                                        -> 996 of 998.4
notices                                      -> 1:placed 2:filled-resting
print Y 0.35x50 sell                         -> filled 1
order #1                                     -> FILLED 10/10 @0.4 fee 0
notices                                      -> 3:filled-resting
print Y 0.35x50 sell                         -> filled 0
cycle                                        -> looked 0 filled 0 closed 0
// the book is not depleted
buy Y 100 market 0.45                        -> FILLED 100/100 @0.45 fee 0

# a SELL is met by a buyer a tick above it; the complement's prints count, mirrored
market 0 geopolitics 0.01
balance 1000
hold Y 30 0.40
hold N 30 0.40
book Y bids 0.38x100 asks 0.60x100
sell Y 10 limit 0.50                         -> PENDING 0/10 reserved 10 shares
buy Y 10 limit 0.45                          -> PENDING 0/10 reserved 4.5
buy N 10 limit 0.50                          -> PENDING 0/10 reserved 5
sell N 10 limit 0.55                         -> PENDING 0/10 reserved 10 shares
print Y 0.50x10 buy                          -> filled 0
// a seller of N at 0.49 buys Y at 0.51 and crosses the BUY of N; a user gets ten shares of one print
print N 0.49x10 sell                         -> filled 1
order #1                                     -> FILLED 10/10 @0.5 fee 0
print N 0.49x10 sell                         -> filled 1
order #3                                     -> FILLED 10/10 @0.5 fee 0
// a buyer of N at 0.56 sells Y at 0.44
print N 0.55x10 buy                          -> filled 0
print N 0.56x15 buy                          -> filled 2
order #2                                     -> FILLED 10/10 @0.45 fee 0
order #4                                     -> PENDING 5/10 @0.55 fee 0 reserved 5 shares

# within a user the better price comes first, then the older order; users do not compete
market 0 geopolitics 0.01
balance 1000
book Y bids 0.30x100 asks 0.60x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
buy Y 10 limit 0.41                          -> PENDING 0/10 reserved 4.1
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
user 2
buy Y 20 limit 0.40                          -> PENDING 0/20 reserved 8
print Y 0.38x25.00005 sell                   -> filled 4
order #4                                     -> FILLED 20/20 @0.4 fee 0
user 1
order #2                                     -> FILLED 10/10 @0.41 fee 0
order #1                                     -> FILLED 10/10 @0.4 fee 0
order #3                                     -> PENDING 5/10 @0.4 fee 0 reserved 2

# a tick is the market's own
market 0 geopolitics 0.001
book Y bids 0.300x100 asks 0.600x100
buy Y 10 limit 0.400                         -> PENDING 0/10 reserved 4
print Y 0.399x3 sell                         -> filled 1
tick 0 0.01
print Y 0.391x3 sell                         -> filled 0
print Y 0.390x3 sell                         -> filled 1

# a print fills no order that a cycle would not match: outage, old quote, halted market, past its expiration
market 0 geopolitics 0.01
balance 1000
book Y bids 0.38x100 asks 0.60x100
buy Y 10 limit 0.45                          -> PENDING 0/10 reserved 4.5
buy Y 10 limit 0.45 gtd exp=10s              -> PENDING 0/10 reserved 4.5
outage on
print Y 0.40x50 sell                         -> filled 0
// its first live book decides whether it is a taker
buy Y 10 limit 0.45                          -> PENDING 0/10 reserved 4.5 awaiting held
outage off
print Y 0.40x5 sell                          -> filled 1
order #3                                     -> PENDING 0/10 reserved 4.5 awaiting held
state 0 halted
print Y 0.40x5 sell                          -> filled 0
state 0 active
wait 10s
print Y 0.40x50 sell                         -> filled 1
order #2                                     -> PENDING 0/10 reserved 4.5
order #1                                     -> FILLED 10/10 @0.45 fee 0
cycle                                        -> looked 1 filled 0 closed 1
print Y 0.40x50 sell                         -> filled 1
order #3                                     -> FILLED 10/10 @0.45 fee 0

# a depth fill and a print share the order's rest, and the depth is taken once
market 0 geopolitics 0.01
balance 1000
book Y bids 0.38x100 asks 0.60x100
buy Y 20 limit 0.45                          -> PENDING 0/20 reserved 9
print Y 0.44x5 sell                          -> filled 1
level Y ask 0.45x8
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> PENDING 13/20 @0.45 fee 0 reserved 3.15
print Y 0.44x5 sell                          -> filled 1
order #1                                     -> PENDING 18/20 @0.45 fee 0 reserved 0.9
buy Y 8 market 0.45 fak                      -> NoExecutableDepth | CANCELLED FakNoFill 0/8

# with fill model touch prints fill nothing
rule fill_model touch
market 0 geopolitics 0.01
book Y bids 0.38x100 asks 0.45x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
print Y 0.30x50 sell                         -> filled 0
level Y ask 0.40x3
cycle                                        -> looked 1 filled 1 closed 0

# without ample room for its fills a print is lost
market 0 geopolitics 0.01
book Y bids 0.38x100 asks 0.45x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4
room reserve
print Y 0.30x50 sell                         -> filled 0
room ample
cycle                                        -> looked 0 filled 0 closed 0
order #1                                     -> PENDING 0/10 reserved 4
"#;

/// An event at the venue.
#[derive(Clone, Copy, Debug)]
enum Event {
    Level { token: u32, side: BookSide, price: u16, size: u64 },
    Print { token: u32, price: u16, size: u64, taker: Side },
    Cycle,
}

/// Prints and depth that filled orders.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Filled {
    by_print: u64,
    by_depth: u64,
}

fn draw(chance: &mut Chance) -> Vec<Event> {
    let price = |chance: &mut Chance, middle: u64| ((middle + chance.below(9)) * 100 - 400) as u16;
    (0..6 + chance.below(14))
        .map(|_| {
            let token = chance.below(2) as u32;
            let middle = if token == 0 { 40 } else { 60 };
            match chance.below(8) {
                0..=3 => Event::Print {
                    token,
                    price: price(chance, middle),
                    size: 100 * (1 + chance.below(90_000)),
                    taker: [Side::Buy, Side::Sell][chance.below(2) as usize],
                },
                4..=5 => Event::Level {
                    token,
                    side: BookSide::BOTH[chance.below(2) as usize],
                    price: price(chance, middle),
                    size: 1_000_000 * chance.below(9),
                },
                _ => Event::Cycle,
            }
        })
        .collect()
}

/// Fills of resting orders in records: user, order, shares, and whether a print filled it.
pub(super) fn fills(records: &[(UserId, Vec<u8>)]) -> Vec<(UserId, OrderId, u64, bool)> {
    let mut fills = Vec::new();
    for (owner, payload) in records {
        for fact in codec::decode::<Mutation>(codec::VERSION, payload).expect("written just now") {
            let Mutation::OrderFilled(fact::OrderFilled { order, qty, levels, .. }) = fact.expect("written just now")
            else {
                continue;
            };
            fills.push((*owner, order, qty.0, levels.is_empty()));
        }
    }
    fills
}

/// Plays the events for two users; `cut` decides after which events the shard runs. Returns fills by order. Between two
/// runs no user gets more than the total size of the prints; with a run after every event, that is one print.
fn play(
    model: FillModel,
    orders: &[String],
    events: &[Event],
    cut: impl Fn(usize) -> bool,
) -> BTreeMap<OrderId, Filled> {
    let mut world = World::of("market 0 geopolitics 0.01");
    world.act("market 0 geopolitics 0.01");
    world.rules.realism.set_kind_model(model);
    for line in ["balance 10000", "tier pro", "hold Y 40 0.40", "hold N 40 0.60", "book Y", "user 2", "hold Y 40 0.40"]
    {
        world.act(line);
    }
    orders.iter().for_each(|line| drop(world.act(line)));
    world.out.records.clear();
    let mut filled = BTreeMap::<OrderId, Filled>::new();
    let (mut printed, mut met) = (0, 0);
    for (at, event) in events.iter().enumerate() {
        world.now = world.now.plus(MILLISECOND);
        match *event {
            Event::Level { token, side, price, size } => {
                let now = world.now;
                let levels = [(side, Price(price), Qty(size))];
                world.writer.frame(0, now, |frame| frame.delta(InstrumentId(token), &levels, now));
            }
            Event::Print { token, price, size, taker } => {
                world.hand_print(InstrumentId(token), Price(price), Qty(size), taker);
                printed += size;
            }
            Event::Cycle => {
                let venue_now = world.now;
                world.ask(Command::Cycle { venue_now, sweeps: Sweeps::All }, 0);
            }
        }
        if at + 1 == events.len() {
            world.ask(Command::MeetPrints, 0);
        } else if cut(at) {
            let (now, (shard, inbox, out)) = (world.now, world.parts());
            while shard.turn(inbox, now, out) {}
        }
        if cut(at) || at + 1 == events.len() {
            let mut by_user = BTreeMap::<UserId, u64>::new();
            let by_print = fills(&world.out.records[met..]).into_iter().filter(|(.., by_print)| *by_print);
            by_print.for_each(|(owner, _, qty, _)| *by_user.entry(owner).or_default() += qty);
            for (user, had) in by_user {
                assert!(had <= printed, "{user:?} had {had} of {printed} by event {at}: {orders:?} {events:?}");
            }
            (printed, met) = (0, world.out.records.len());
        }
    }
    for (_, order, qty, by_print) in fills(&world.out.records) {
        let filled = filled.entry(order).or_default();
        match by_print {
            true => filled.by_print += qty,
            false => filled.by_depth += qty,
        }
    }
    filled
}

#[test]
fn random_feeds_fill_the_same_however_they_are_split() {
    let seed = 23;
    let feeds: u64 = std::env::var("PRINT_FEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(10_000);
    let mut chance = Chance::new(seed);
    let (mut prints, mut depth, mut more) = (0_u64, 0_u64, 0_u64);
    for feed in 0..feeds {
        let orders: Vec<String> = (0..2 + chance.below(4))
            .flat_map(|number| {
                let token = if chance.one_in(2) { "Y" } else { "N" };
                let middle = if token == "Y" { 36 } else { 56 };
                let (verb, price) = if chance.one_in(2) { ("buy", middle) } else { ("sell", middle + 4) };
                let price = price + chance.below(5);
                let order = format!("{verb} {token} {} limit 0.{price}", 5 + chance.below(12));
                [format!("user {}", 1 + number % 2), order]
            })
            .collect();
        let events = draw(&mut chance);
        let at_once = play(FillModel::Cross, &orders, &events, |_| true);
        let late = play(FillModel::Cross, &orders, &events, |_| false);
        let cuts = chance.below(u64::MAX);
        let mixed = play(FillModel::Cross, &orders, &events, |at| cuts >> (at % 64) & 1 == 1);
        assert!(at_once == late && at_once == mixed, "feed {feed} of seed {seed}: {orders:?} {events:?}");
        let touch = play(FillModel::Touch, &orders, &events, |_| true);
        for (order, filled) in &touch {
            let cross = at_once.get(order).cloned().unwrap_or_default();
            assert_eq!(filled.by_print, 0);
            let (touched, crossed) = (filled.by_depth, cross.by_print + cross.by_depth);
            assert!(touched <= crossed, "feed {feed} of seed {seed}, order {order}: {orders:?} {events:?}");
        }
        prints += at_once.values().filter(|filled| filled.by_print > 0).count() as u64;
        depth += at_once.values().filter(|filled| filled.by_depth > 0).count() as u64;
        more += u64::from(touch != at_once);
    }
    println!("seed {seed}: {feeds} feeds; {prints} orders had a print, {depth} had depth, {more} feeds fill more");
    assert!(feeds < 1_000 || prints > feeds / 10 && depth > feeds / 10 && more > feeds / 10);
}
