//! Fees of a market's own schedule, and rebates of makers.

use super::world::World;
use crate::amount::Cash;
use crate::book::chance::Chance;
use crate::fact;
use crate::fee::{FeeRounding, FeeSource, Tariff, rebate};
use crate::format::Formats;
use crate::market::terms::FeeSchedule;
use crate::mutation::Mutation;
use crate::order::{Liquidity, Side};
use crate::shard::digest::digest;
use crate::shard::snapshot;
use crate::user::{Users, WalletKind};

pub const SCENARIOS: &str = r#"
# a market's own schedule charges takers, at the rate of the match; without one the table does
rule fee_source auto
market 0 sports 0.01
balance 1000
book Y bids 0.40x100 asks 0.50x1000
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.075
facts                                        -> OrderPlaced OrderFilled
fees 0 0.05 1 takers 0.15
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.125
facts                                        -> OrderPlaced OrderFilled FillCharged
fills #2                                     -> Taker BookWalk 10 for 5 fee 0.125 at 500 bps by schedule
// earlier fills never move; an order keeps the rate of the table
fills #1                                     -> Taker BookWalk 10 for 5 fee 0.075 at 300 bps
terms #2                                     -> Market Fok limit 0.5 rate 300 marketable
sell Y 10 market 0.40                        -> FILLED 10/10 @0.4 fee 0.12
fees 0 0.25 2 takers 0
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.15625
fees 0 0.012345 1 takers 0
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.03086
fills #5                                     -> Taker BookWalk 10 for 5 fee 0.03086 at 123 bps by schedule
fees 0 0 1 takers 0
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0
fills #6                                     -> Taker BookWalk 10 for 5 fee 0 at 0 bps by schedule
fees 0 none
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.075
fills #7                                     -> Taker BookWalk 10 for 5 fee 0.075 at 300 bps

# with the table a stated schedule decides nothing
market 0 sports 0.01
balance 1000
fees 0 0.05 1 all 0.15
book Y bids 0.40x100 asks 0.50x1000
buy Y 10 market 0.50                         -> FILLED 10/10 @0.5 fee 0.075
facts                                        -> OrderPlaced OrderFilled
buy Y 10 limit 0.45                          -> PENDING 0/10 reserved 4.5

# rounding down, by the table and by a schedule
rule fee_source auto
rule fee_rounding down
market 0 sports 0.0001
market 1 sports 0.0001
balance 1000
book Y asks 0.0101x100
book Y1 asks 0.0101x100
fees 1 0.03 1 takers 0
buy Y 5 market 0.02                          -> FILLED 5/5 @0.0101 fee 0.00149
buy Y1 5 market 0.02                         -> FILLED 5/5 @0.0101 fee 0.00149

# Kalshi rounds each match up to 10⁻⁴, by its own schedule only
rule fee_source auto
market 0 sports 0.01 venue=kalshi
balance 1000
book Y asks 0.33x2 0.34x30
buy Y 5 market 0.50                          -> FILLED 5/5 @0.336 fee 0.03347
fees 0 0.07 1 takers 0
book Y asks 0.32x2 0.35x30
buy Y 5 market 0.50                          -> FILLED 5/5 @0.338 fee 0.0783
fills #2                                     -> Taker BookWalk 5 for 1.69 fee 0.0783 at 700 bps by schedule

# a market that charges makers: a resting BUY reserves its fee, a resting SELL pays from its proceeds
rule fee_source auto
market 0 sports 0.01
balance 100
fees 0 0.1 1 all 0
book Y bids 0.38x100 asks 0.60x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.24
money                                        -> 95.76 of 100
print Y 0.39x4 sell                          -> filled 1
fills #1                                     -> Maker MatchingEngine 4 for 1.6 fee 0.096 at 1000 bps by schedule
order #1                                     -> PENDING 4/10 @0.4 fee 0.096 reserved 2.544
money                                        -> 95.76 of 98.304
level Y ask 0.40x50
cycle                                        -> looked 1 filled 1 closed 0
order #1                                     -> FILLED 10/10 @0.4 fee 0.24
money                                        -> 95.76 of 95.76
sell Y 10 limit 0.50                         -> PENDING 0/10 reserved 10 shares
print Y 0.51x10 buy                          -> filled 1
fills #2                                     -> Maker MatchingEngine 10 for 5 fee 0.25 at 1000 bps by schedule
money                                        -> 100.51 of 100.51

# a marketable order reserves the fee of its rest, and an order that cannot pay its fee is refused
rule fee_source auto
market 0 sports 0.01
balance 10
fees 0 0.1 1 all 0
book Y bids 0.38x100 asks 0.40x10
buy Y 15 limit 0.40                          -> PENDING 10/15 @0.4 fee 0.24 reserved 2.12
buy Y 9 limit 0.40                           -> InsufficientBalance 3.64 < 3.816

# makers stop paying in mid-life: the next fill releases what was reserved for fees
rule fee_source auto
market 0 sports 0.01
balance 100
fees 0 0.1 1 all 0
book Y bids 0.38x100 asks 0.60x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.24
fees 0 0.1 1 takers 0
print Y 0.39x4 sell                          -> filled 1
fills #1                                     -> Maker MatchingEngine 4 for 1.6 fee 0 at 0 bps
order #1                                     -> PENDING 4/10 @0.4 fee 0 reserved 2.4
money                                        -> 96 of 98.4

# fees that rise take what is free; a reservation that no longer covers ends the order
rule fee_source auto
market 0 sports 0.01
balance 4.6
book Y bids 0.38x100 asks 0.60x100
fees 0 0.01 1 all 0
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.024
fees 0 0.2 1 all 0
print Y 0.39x5 sell                          -> filled 1
order #1                                     -> PENDING 5/10 @0.4 fee 0.24 reserved 2.24
fees 0 0.9 1 all 0
print Y 0.39x5 sell                          -> filled 0
order #1                                     -> CANCELLED AutoCancelled 5/10 @0.4 fee 0.24
money                                        -> 2.36 of 2.36

# an order that waits for its first book ends if the fee that it would reserve as a maker is not there
rule fee_source auto
market 0 sports 0.01
balance 4.1
fees 0 0.01 1 all 0
outage on
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.024 awaiting held
fees 0 0.2 1 all 0
outage off
book Y bids 0.38x100 asks 0.60x100
cycle                                        -> looked 1 filled 0 closed 1
order #1                                     -> CANCELLED AutoCancelled 0/10
money                                        -> 4.1 of 4.1

# at the walked price a maker pays for the levels that it takes
flag maker_fill_at_limit off
rule fee_source auto
market 0 sports 0.01
balance 100
fees 0 0.1 1 all 0
book Y bids 0.30x100 asks 0.60x100
buy Y 10 limit 0.40                          -> PENDING 0/10 reserved 4.24
book Y bids 0.30x100 asks 0.35x4 0.40x100
cycle                                        -> looked 1 filled 1 closed 0
// 0.1 × (4 × 0.35 × 0.65 + 6 × 0.4 × 0.6)
fills #1                                     -> Maker MatchingEngine 10 for 3.8 fee 0.235 at 1000 bps by schedule

# without a book: the schedule at a price between the steps of the grid
flag require_book_depth off
rule fee_source auto
market 0 sports 0.01
balance 100
fees 0 0.1 2 takers 0
display Y 0.40
buy Y 10 market 0.50                         -> FILLED 10/10 @0.4 fee 0.0576
fills #1                                     -> Taker Display 10 for 4 fee 0.0576 at 1000 bps by schedule

# makers earn a rebate, and are paid when a day begins, from one dollar on
rule fee_source auto
rule maker_rebate accrue
market 0 crypto 0.01
balance 10000
fees 0 0.07 1 takers 0.2
book Y bids 0.38x10000 asks 0.60x10000
cycle
buy Y 100 limit 0.40                         -> PENDING 0/100 reserved 40
print Y 0.39x100 sell                        -> filled 1
facts                                        -> OrderFilled RebateAccrued
fills #1                                     -> Maker MatchingEngine 100 for 40 fee 0 at 0 bps
rebates                                      -> accrued 0.336 paid 0
// it is not cash yet
money                                        -> 9960 of 9960
// less than a dollar waits
wait 15h
alive
cycle
rebates                                      -> accrued 0.336 paid 0
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
print Y 0.39x1000 sell                       -> filled 1
rebates                                      -> accrued 3.696 paid 0
wait 23h
alive
cycle
rebates                                      -> accrued 3.696 paid 0
money                                        -> 9560 of 9560
wait 1h
alive
cycle
rebates                                      -> accrued 0 paid 3.696
money                                        -> 9563.696 of 9563.696
restart
wait 24h
alive
cycle
rebates                                      -> accrued 0 paid 3.696
// a taker earns nothing
buy Y 10 market 0.60                         -> FILLED 10/10 @0.6 fee 0.168
rebates                                      -> accrued 0 paid 3.696

# a start after midnight pays what was earned before it, and not while the clock is in doubt
rule fee_source auto
rule maker_rebate accrue
market 0 crypto 0.01
balance 10000
fees 0 0.07 1 takers 0.2
book Y bids 0.38x10000 asks 0.60x10000
cycle
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
print Y 0.39x1000 sell                       -> filled 1
rebates                                      -> accrued 3.36 paid 0
wait 886m
restart
alive
print Y 0.39x1000 sell                       -> filled 1
rebates                                      -> accrued 6.72 paid 0
cycle none
rebates                                      -> accrued 6.72 paid 0
cycle
rebates                                      -> accrued 3.36 paid 3.36
restart
cycle
rebates                                      -> accrued 3.36 paid 3.36
wait 24h
alive
cycle
rebates                                      -> accrued 0 paid 6.72

# a payment whose record is lost is made again
rule fee_source auto
rule maker_rebate accrue
market 0 crypto 0.01
balance 10000
fees 0 0.07 1 takers 0.2
book Y bids 0.38x10000 asks 0.60x10000
cycle
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
print Y 0.39x1000 sell                       -> filled 1
wait 886m
alive
cycle
rebates                                      -> accrued 0 paid 3.36
lose 1
restart
rebates                                      -> accrued 3.36 paid 0
alive
cycle
rebates                                      -> accrued 0 paid 3.36

# a reset drops what was not paid
rule fee_source auto
rule maker_rebate accrue
market 0 geopolitics 0.01
balance 10000
plan pro
fees 0 0.07 1 takers 0.2
book Y bids 0.38x10000 asks 0.60x10000
cycle
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
print Y 0.39x1000 sell                       -> filled 1
rebates                                      -> accrued 3.36 paid 0
sell Y 1000 market 0.38                      -> FILLED 1000/1000 @0.38 fee 16.492
wallet reset api                             -> 2 Api 10000 of 10000 gen 2 after 0 orders 0 positions
rebates                                      -> accrued 0 paid 0
wait 24h
alive
cycle
rebates                                      -> accrued 0 paid 0

# without the setting makers earn nothing
rule fee_source auto
market 0 crypto 0.01
balance 10000
fees 0 0.07 1 takers 0.2
book Y bids 0.38x10000 asks 0.60x10000
buy Y 1000 limit 0.40                        -> PENDING 0/1000 reserved 400
print Y 0.39x1000 sell                       -> filled 1
facts                                        -> OrderFilled
rebates                                      -> accrued 0 paid 0
"#;

/// Lines of a day in which fees change, orders meet books and prints, and time goes on.
fn line(chance: &mut Chance) -> String {
    let price = |chance: &mut Chance, middle: u64| format!("0.{}", middle - 4 + chance.below(9));
    let size = |chance: &mut Chance| 10 * (1 + chance.below(40));
    match chance.below(20) {
        0..=2 => format!("buy Y {} limit {}", size(chance), price(chance, 40)),
        3..=4 => format!("sell Y {} limit {}", size(chance) / 2, price(chance, 45)),
        5..=6 => format!("buy Y {} market 0.60 fak", size(chance)),
        7 => format!("sell Y {} market 0.20 fak", size(chance) / 2),
        8..=11 => {
            let taker = ["buy", "sell"][chance.below(2) as usize];
            format!("print Y {}x{} {taker}", price(chance, 42), size(chance))
        }
        12..=13 => format!("level Y ask {}x{}", price(chance, 44), size(chance)),
        14 => format!("level Y bid {}x{}", price(chance, 38), size(chance)),
        15..=16 => {
            let whom = ["takers", "all"][chance.below(2) as usize];
            format!("fees 0 0.{:06} {} {whom} 0.{:02}", chance.below(200_000), chance.below(5), chance.below(100))
        }
        17 if chance.one_in(4) => "fees 0 none".to_owned(),
        17..=18 => "cycle".to_owned(),
        _ => format!("wait {}m", 1 + chance.below(600)),
    }
}

/// What the facts of a wallet add up to.
#[derive(Debug, Default, PartialEq, Eq)]
struct Sums {
    cash: i64,
    accrued: i64,
    paid: i64,
}

/// Checks every fill against its fact, and adds up.
fn add_up(world: &World, start: Cash) -> (Sums, [usize; 3]) {
    let user = world.the_user();
    let (mut sums, mut sources) = (Sums { cash: start.0, ..Sums::default() }, [0; 3]);
    let facts = world.all_facts();
    for (at, fact) in facts.iter().enumerate() {
        match fact {
            Mutation::OrderFilled(fact::OrderFilled { order, trade, qty, notional, fee, liquidity, .. }) => {
                let terms = &user.order(*order).expect("there").terms;
                sums.cash += if terms.side == Side::Buy { -notional.0 } else { notional.0 } - fee.0;
                let fills = user.fills_of(user.order(*order).expect("there"));
                let fill = fills.iter().find(|fill| fill.id == *trade).expect("there");
                sources[fill.fee_source() as usize] += 1;
                let charged = match facts.get(at + 1) {
                    Some(Mutation::FillCharged(charged)) => Some((charged.schedule, charged.rounding)),
                    _ => None,
                };
                assert_eq!(charged.is_some(), fill.fee_source() == FeeSource::MarketSchedule);
                match (liquidity, charged) {
                    (Liquidity::Maker, Some((schedule, rounding))) => {
                        assert!(!schedule.taker_only);
                        assert_eq!(*fee, Tariff::of_schedule(&schedule, rounding).fee(*qty, terms.limit));
                    }
                    (Liquidity::Maker, None) => assert_eq!(*fee, Cash::ZERO),
                    (Liquidity::Taker, Some((schedule, FeeRounding::HalfUp))) => {
                        assert_eq!(fill.charged_rate(), schedule.bps());
                    }
                    (Liquidity::Taker, _) => {}
                }
            }
            Mutation::RebateAccrued(fact::RebateAccrued { amount, .. }) => sums.accrued += amount.0,
            Mutation::RebatePaid(fact::RebatePaid { amount, .. }) => {
                assert!(amount.0 >= 1_000_000, "less than a dollar waits");
                sums.paid += amount.0;
                sums.cash += amount.0;
            }
            _ => {}
        }
    }
    (sums, sources)
}

/// Money adds up to the last unit through changes of fees, rebates and restarts, and each payment is made once.
#[test]
fn fees_and_rebates_add_up_in_random_worlds() {
    const SEEDS: u64 = 150;
    let (mut fills, mut paid) = ([0; 3], 0);
    for seed in 1..=SEEDS {
        let mut chance = Chance::new(seed);
        let mut world = World::of("market 0 sports 0.01");
        for line in [
            "rule fee_source auto",
            "rule maker_rebate accrue",
            "market 0 sports 0.01",
            "balance 100000",
            "tier pro",
            "plan pro",
            "book Y bids 0.38x1000 asks 0.44x1000",
            "cycle",
            "buy Y 400 market 0.60",
        ] {
            world.act(line);
        }
        for _ in 0..60 {
            let line = line(&mut chance);
            world.act(&line);
            if line.starts_with("wait") {
                world.act("alive");
                world.act(if chance.one_in(3) { "restart" } else { "turn" });
                world.act("cycle");
            }
        }
        world.check().unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
        let (sums, sources) = add_up(&world, Cash::from_dollars(100_000));
        let wallet = world.the_user().wallet_of(WalletKind::Api).expect("there");
        let rebates = wallet.rebates();
        let found = Sums { cash: wallet.cash.0, accrued: (rebates.accrued() + rebates.paid).0, paid: rebates.paid.0 };
        assert_eq!(found, sums, "seed {seed}");
        fills.iter_mut().zip(sources).for_each(|(sum, count)| *sum += count);
        paid += usize::from(sums.paid > 0);
    }
    assert!(fills.iter().all(|count| *count > 100) && paid > 10, "{fills:?} fills, {paid} were paid");
    println!("random worlds with fees: {SEEDS} seeds, {fills:?} fills by source, {paid} were paid rebates");
}

/// A world in which a market has stated fees, a fill was charged by them, and a rebate waits.
fn world_with_fees() -> World {
    let mut world = World::of("market 0 sports 0.01");
    for line in [
        "rule fee_source auto",
        "rule maker_rebate accrue",
        "market 0 sports 0.01",
        "balance 10000",
        "fees 0 0.05 1 takers 0.15",
        "book Y bids 0.38x1000 asks 0.44x1000",
        "buy Y 10 market 0.60",
        "buy Y 1000 limit 0.40",
        "print Y 0.39x1000 sell",
    ] {
        world.act(line);
    }
    world
}

/// Stated fees, charged fills and rebates survive a snapshot of any count of shards; only the newest format has them.
#[test]
fn snapshots_carry_fees_and_rebates() {
    let world = world_with_fees();
    let mut bytes = Vec::new();
    snapshot::write(Formats::Newest, &world.markets, &[world.users()], &mut bytes).expect("memory");
    assert_eq!(bytes[..2], snapshot::VERSION.to_le_bytes());
    let expected = digest(&world.markets, &[world.users()]);
    let mut cases = 0;
    for shards in [1, 2, 5] {
        let state = snapshot::read(&mut &bytes[..], shards).expect("our own bytes");
        let users: Vec<&Users> = state.users.iter().collect();
        assert_eq!(digest(&state.markets, &users), expected);
        users.iter().for_each(|users| users.check_all().expect("invariants"));
        let user = users.iter().find_map(|users| users.get(world.user)).expect("there");
        let wallet = user.wallet_of(WalletKind::Api).expect("there");
        assert_eq!(wallet.rebates().accrued(), Cash(1_800_000));
        let sources: Vec<FeeSource> = user.fills().iter().map(|fill| fill.fee_source()).collect();
        assert_eq!(sources, [FeeSource::MarketSchedule, FeeSource::None]);
        cases += 1;
    }
    // An earlier format has no place for them, even if its bytes say so.
    for version in [4_u16, 5] {
        let mut earlier = bytes.clone();
        earlier[..2].copy_from_slice(&version.to_le_bytes());
        assert!(snapshot::read(&mut &earlier[..], 1).is_err(), "format {version}");
        cases += 1;
    }
    for end in 0..bytes.len() {
        assert!(snapshot::read(&mut &bytes[..end], 1).is_err(), "cut at {end}");
        cases += 1;
    }
    println!("snapshots with fees: {cases} cases");
}

/// Without stated fees a state has the bytes and the digest of before: no setting alone changes them.
#[test]
fn settings_alone_change_no_byte() {
    let written = |rules: &[&str]| {
        let mut world = World::of("market 0 sports 0.01");
        rules.iter().for_each(|line| drop(world.act(line)));
        for line in [
            "market 0 sports 0.01",
            "balance 10000",
            "book Y bids 0.38x1000 asks 0.44x1000",
            "buy Y 10 market 0.60",
            "buy Y 1000 limit 0.40",
            "print Y 0.39x1000 sell",
        ] {
            world.act(line);
        }
        let mut bytes = Vec::new();
        snapshot::write(Formats::Newest, &world.markets, &[world.users()], &mut bytes).expect("memory");
        (bytes, digest(&world.markets, &[world.users()]), world.out.records)
    };
    let plain = written(&[]);
    let cases = [
        &["rule fee_source auto"][..],
        &["rule maker_rebate accrue"],
        &["rule fee_source auto", "rule maker_rebate accrue"],
    ];
    for rules in cases {
        assert_eq!(written(rules), plain, "{rules:?}");
    }
    println!("settings without stated fees: {} cases", cases.len());
}

/// Formats that have no place for stated fees: the table counts.
#[test]
fn previous_formats_have_the_table_only() {
    let mut world = World::of("market 0 sports 0.01");
    world.rules.formats = Formats::Previous;
    for line in [
        "rule fee_source auto",
        "rule maker_rebate accrue",
        "market 0 sports 0.01",
        "balance 1000",
        "fees 0 0.5 1 all 1",
    ] {
        world.act(line);
    }
    world.act("book Y bids 0.38x1000 asks 0.50x1000");
    assert_eq!(world.act("buy Y 10 market 0.60"), "FILLED 10/10 @0.5 fee 0.075");
    world.act("buy Y 10 limit 0.40");
    world.act("print Y 0.39x10 sell");
    let is_later = |fact: &Mutation| matches!(fact, Mutation::FillCharged(_) | Mutation::RebateAccrued(_));
    assert!(!world.all_facts().iter().any(is_later));
    println!("previous formats: 2 cases");
}

/// The rebate of a maker is its share of what the takers of its shares pay: the pool of the venue, if all pay.
#[test]
fn rebates_are_a_share_of_the_takers_fees() {
    let schedule = FeeSchedule { rate: 70_000, exponent: 1, taker_only: true, rebate_rate: 200_000 };
    let taker = Tariff::of_schedule(&schedule, FeeRounding::HalfUp);
    let mut chance = Chance::new(5);
    const ROUNDS: usize = 1_000;
    for _ in 0..ROUNDS {
        let (qty, price) =
            (crate::amount::Qty(100 * chance.below(1 << 40)), crate::amount::Price(1 + chance.below(9_999) as u16));
        let (fee, back) = (taker.fee(qty, price), rebate(&schedule, qty, price));
        // Half a step of the fee's rounding, and the own step.
        assert!((back.0 * 5 - fee.0).abs() <= 5 + 5, "{qty:?} at {price:?}: {fee:?} and {back:?}");
    }
    println!("rebates and fees: {ROUNDS} cases");
}
