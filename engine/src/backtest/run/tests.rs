//! Back-tests on hand-made books.

mod law;
mod samples;
mod seeds;

use super::*;
use crate::amount::{Cash, Price, Qty, TickSize};
use crate::backtest::book::{ArchivedMarket, Ends, Settled, SettlementSource};
use crate::backtest::hours::{Coverage, Hour, HourState, Verdict};
use crate::backtest::job::{BookChange, JobMarket};
use crate::backtest::report::{Reason, Trade};
use crate::backtest::strategy::{Field, Operator, Predicate, Strategy, Threshold};
use crate::book::BookSide;
use crate::book::chance::Chance as Dice;
use crate::id::Outcome;
use crate::market::terms::Category;
use crate::order::Side;
use crate::time::{HOUR, MILLISECOND, MINUTE, SECOND};
use std::convert::Infallible;

/// 2026-09-30T17: the first hour of every window here.
const FIRST: Hour = Hour(497_441);

fn at(minutes: u64, seconds: u64) -> Timestamp {
    FIRST.start().plus(minutes * MINUTE + seconds * SECOND)
}

type Levels<'a> = &'a [(u16, u64)];

fn levels(levels: Levels<'_>) -> Vec<(Price, Qty)> {
    levels.iter().map(|(price, shares)| (Price(*price), Qty::from_shares(*shares))).collect()
}

/// A whole book of the first token of market 0.
fn book(time: Timestamp, bids: Levels<'_>, asks: Levels<'_>) -> BookFrame {
    let change = BookChange::Book { outcome: Outcome::First, bids: levels(bids), asks: levels(asks) };
    BookFrame { at: time, market: 0, changes: vec![change] }
}

fn level(time: Timestamp, side: BookSide, price: u16, shares: u64) -> BookFrame {
    let (price, size) = (Price(price), Qty::from_shares(shares));
    BookFrame { at: time, market: 0, changes: vec![BookChange::Level { outcome: Outcome::First, side, price, size }] }
}

pub fn when(field: Field, operator: Operator, value: &str) -> Predicate {
    let (whole, fraction) = value.split_once('.').unwrap_or((value, ""));
    let picos: i128 = format!("{whole}{fraction:0<12}").parse().expect("a decimal");
    Predicate { field, operator, value: Threshold(picos) }
}

fn archived(number: usize) -> ArchivedMarket {
    let text = |text: String| text.into();
    ArchivedMarket {
        condition: text(format!("0x{}", format!("{number:02x}").repeat(32))),
        tokens: [text(format!("{number}01")), text(format!("{number}02"))],
        outcomes: ["Yes".into(), "No".into()],
        category: Category::Weather,
        tick: TickSize(100),
        end: Ends::default(),
        settlement: None,
        hours: FIRST..Hour(FIRST.0 + 2),
    }
}

fn market(number: usize, verdicts: &[Verdict]) -> JobMarket {
    let states = verdicts.iter().enumerate();
    let states = states.map(|(at, verdict)| HourState::new(Hour(FIRST.0 + at as u32), *verdict, true));
    JobMarket {
        market: archived(number),
        outcome: Outcome::First,
        coverage: Coverage::of(FIRST..Hour(FIRST.0 + verdicts.len() as u32), states),
        digests: vec![(FIRST, [7; 32])],
    }
}

/// Two hours, 500 USD, 25 shares at 0.31 or less, out at 0.45 or more: the example of the reference.
pub fn job() -> Job {
    Job {
        markets: vec![market(0x51, &[Verdict::Valid, Verdict::Degraded])],
        start: FIRST.start(),
        end: FIRST.start().plus(2 * HOUR),
        strategy: Strategy {
            side: Side::Buy,
            outcome: "Yes".to_owned(),
            size: Qty::from_shares(25),
            model: FillModel::DepthWalk,
            entry: vec![when(Field::Price, Operator::LessOrEqual, "0.31")],
            exit: vec![when(Field::Price, Operator::GreaterOrEqual, "0.45")],
        },
        bankroll: Cash::from_dollars(500),
        tick_mode: TickMode::Grid,
        seed: 0,
        seeds: 1,
        latency: Latency::Constant(0),
        haircut: Haircut(0),
    }
}

/// The same with this strategy.
fn trading(change: impl FnOnce(&mut Strategy)) -> Job {
    let mut job = job();
    change(&mut job.strategy);
    job
}

fn ran(job: &Job, frames: &[BookFrame]) -> Report {
    let open = || Ok::<_, Infallible>(frames.iter());
    run(job, &Rules::default(), open, &mut |_| true).expect("it ends")
}

/// Time after the start in seconds, side, shares, price in 10⁻⁴, reason.
fn shown(report: &Report) -> Vec<(u64, Side, u64, i64, Reason)> {
    let row = |trade: &Trade| {
        let secs = trade.at.since(FIRST.start()) / SECOND;
        (secs, trade.side, trade.shares.0 / 1_000_000, trade.price.0 / 100, trade.reason)
    };
    report.trades.iter().map(row).collect()
}

/// Books of the example: cheap at 17:21:30, dear at 18:10.
fn example() -> Vec<BookFrame> {
    vec![
        book(at(0, 0), &[(3_100, 100)], &[(3_300, 100)]),
        book(at(21, 30), &[(2_900, 100)], &[(3_100, 60)]),
        book(at(70, 0), &[(4_500, 100)], &[(4_700, 100)]),
    ]
}

#[test]
fn the_example_of_the_reference() {
    let report = ran(&job(), &example());
    let expected = [
        Trade {
            at: at(22, 0),
            market: 0,
            side: Side::Buy,
            shares: Qty::from_shares(25),
            price: Cash(310_000),
            notional: Cash(7_750_000),
            fee: Cash(267_380),
            reason: Reason::Entry,
        },
        Trade {
            at: at(70, 0),
            market: 0,
            side: Side::Sell,
            shares: Qty::from_shares(25),
            price: Cash(450_000),
            notional: Cash(11_250_000),
            fee: Cash(309_380),
            reason: Reason::Exit,
        },
    ];
    assert_eq!(report.trades, expected);
    // 3.50 less both fees.
    assert_eq!(report.total_pnl, Cash(2_923_240));
    assert_eq!((report.won, report.ticks_evaluated, report.settlement_scored), (Some((1, 1)), 120, false));
    let points: Vec<(u64, i64, i64)> = report
        .points
        .iter()
        .map(|point| (point.at.since(FIRST.start()) / MINUTE, point.cash.0, point.position_value.0))
        .collect();
    let expected = [(0, 500_000_000, 0), (22, 491_982_620, 7_500_000), (70, 502_923_240, 0), (120, 502_923_240, 0)];
    assert_eq!(points, expected);
    // 0.51738 of 500.
    assert_eq!(report.max_drawdown, 10);
    assert_eq!(report.plan, TickPlan { mode: TickMode::Grid, step: MINUTE, is_degraded: false });
    // Without costs: in at the midpoint of 0.30, out at that of 0.46.
    assert_eq!(report.comparison.naive_pnl, Cash(25 * 160_000));
    assert_eq!((report.comparison.fills_naive, report.comparison.fills_honest), (2, 2));
    assert_eq!((report.comparison.gap(), report.comparison.percentiles), (Cash(1_076_760), None));
}

#[test]
fn decisions_use_only_what_was_received() {
    // The cheap book at 17:21:59.999, at the tick, and a millisecond after it.
    let mut cases = 0;
    for (received, entered) in
        [(at(21, 59).plus(999 * MILLISECOND), 22), (at(22, 0), 22), (at(22, 0).plus(MILLISECOND), 23), (at(22, 1), 23)]
    {
        let frames = [book(at(0, 0), &[(3_100, 9)], &[(3_300, 99)]), book(received, &[(2_900, 9)], &[(3_100, 60)])];
        let report = ran(&job(), &frames);
        assert_eq!(shown(&report), [(entered * 60, Side::Buy, 25, 3_100, Reason::Entry)], "{received:?}");
        cases += 1;
    }
    // Several frames of one moment are all there; one that goes back in time is read in its place.
    let frames = [
        book(at(22, 0), &[(2_900, 9)], &[(3_100, 10)]),
        level(at(22, 0), BookSide::Ask, 3_100, 0),
        level(at(21, 0), BookSide::Ask, 3_000, 40),
    ];
    assert_eq!(shown(&ran(&job(), &frames)), [(1_320, Side::Buy, 25, 3_000, Reason::Entry)]);
    // The opening book is from before the window; nothing after its end counts.
    let early = [book(Timestamp(FIRST.start().0 - HOUR), &[(2_900, 9)], &[(3_100, 60)])];
    assert_eq!(shown(&ran(&job(), &early)), [(0, Side::Buy, 25, 3_100, Reason::Entry)]);
    let late = [book(at(120, 0), &[(2_900, 9)], &[(3_100, 60)])];
    let report = ran(&job(), &late);
    assert_eq!((report.trades.len(), report.won, report.points.len()), (0, None, 2));
    println!("moments: {} cases", cases + 3);
}

#[test]
fn an_uncovered_hour_has_no_decisions() {
    let mut cases = 0;
    for (verdict, ticks, entered) in [
        (Verdict::Valid, 120, 22),
        (Verdict::Degraded, 120, 22),
        (Verdict::Partial, 120, 22),
        (Verdict::Missing, 60, 60),
        (Verdict::Quarantined, 60, 60),
    ] {
        let mut job = job();
        job.markets = vec![market(0x51, &[verdict, Verdict::Valid])];
        let report = ran(&job, &example()[..2]);
        assert_eq!(shown(&report), [(entered * 60, Side::Buy, 25, 3_100, Reason::Entry)], "{verdict:?}");
        assert_eq!(report.ticks_evaluated, ticks, "{verdict:?}");
        let missing = if verdict.is_usable() { vec![] } else { vec![(0, FIRST)] };
        assert_eq!(report.missing, missing, "{verdict:?}");
        cases += 1;
    }
    // An order that arrives in an uncovered hour is dropped.
    let mut late = job();
    late.markets = vec![market(0x51, &[Verdict::Valid, Verdict::Missing])];
    late.latency = Latency::Constant(60_000);
    let frames = [book(at(58, 30), &[(2_900, 9)], &[(3_100, 60)])];
    assert_eq!(shown(&ran(&late, &frames)), [(3_600 - 60, Side::Buy, 25, 3_100, Reason::Entry)][..0]);
    println!("verdicts: {} cases", cases + 1);
}

#[test]
fn a_known_result_is_paid_out() {
    let winner = |outcome| Resolution::Winner(outcome);
    // moment of the result, the result; the row of the payout, profit, gained
    let rows = [
        (at(90, 0), winner(Outcome::First), Some((5_400, 10_000)), 16_982_620, true),
        (at(90, 30), winner(Outcome::Second), Some((5_430, 0)), -8_017_380, true),
        (at(90, 0), Resolution::Split, Some((5_400, 5_000)), 4_482_620, true),
        (at(120, 0), winner(Outcome::First), Some((7_200, 10_000)), 16_982_620, true),
        // After the window nothing is known: valued at the last midpoint, 0.30.
        (at(120, 0).plus(MILLISECOND), winner(Outcome::First), None, -517_380, false),
        // Before the window, and before the entry: there is nothing to trade.
        (at(10, 0), winner(Outcome::First), None, 0, false),
    ];
    for (when, resolution, payout, pnl, is_scored) in rows {
        let mut job = trading(|strategy| strategy.exit.clear());
        job.markets[0].market.settlement = Some(Settled { resolution, at: when, source: SettlementSource::Upstream });
        let report = ran(&job, &example()[..2]);
        let mut trades = vec![(1_320, Side::Buy, 25, 3_100, Reason::Entry)];
        trades.extend(payout.map(|(secs, price)| (secs, Side::Sell, 25, price, Reason::Settlement)));
        if pnl == 0 {
            trades.clear();
        }
        assert_eq!(shown(&report), trades, "{when:?} {resolution:?}");
        assert_eq!(report.total_pnl, Cash(pnl), "{when:?} {resolution:?}");
        assert_eq!(report.settlement_scored, is_scored, "{when:?}");
        assert_eq!(report.won, is_scored.then_some((u64::from(pnl > 0), 1)), "{when:?}");
        let ticks = if when >= at(120, 0) { 120 } else { when.since(FIRST.start()).div_ceil(MINUTE) };
        assert_eq!(report.ticks_evaluated, ticks, "{when:?}");
        assert_eq!(report.comparison.fills_honest, u64::from(pnl != 0), "a payout is not a fill");
    }
    println!("results: {} cases", rows.len());
}

#[test]
fn an_ended_market_takes_no_entry() {
    let mut job = job();
    for (end, entered) in [(at(23, 0), 1), (at(22, 0), 0), (at(21, 0), 0)] {
        job.markets[0].market.end = Ends::of(Some(end));
        assert_eq!(ran(&job, &example()[..2]).trades.len(), entered, "{end:?}");
    }
    // Hours to the end: 1.5 at 17:30, if it ends at 19:00.
    job.markets[0].market.end = Ends::of(Some(at(120, 0)));
    job.strategy.entry = vec![when(Field::TimeToResolutionHours, Operator::LessOrEqual, "1.5")];
    assert_eq!(shown(&ran(&job, &example()[..2]))[0].0, 30 * 60);
    job.markets[0].market.end = Ends::default();
    assert!(ran(&job, &example()[..2]).trades.is_empty(), "it is unknown");
}

/// A moved end is known when the venue says so, as to a bot of that time.
#[test]
fn a_moved_end_is_not_known_before() {
    let moved = |first: Timestamp, said_at: Timestamp, end: Timestamp| {
        let mut ends = Ends::of(Some(first));
        ends.state(said_at, Some(end));
        ends
    };
    // The end, and the seconds of the entry: cheap from 17:21:30 on.
    let by_price = [
        (moved(at(21, 0), at(10, 0), at(60, 0)), Some(22 * 60)),
        (moved(at(21, 0), at(30, 0), at(60, 0)), Some(30 * 60)),
        (moved(at(60, 0), at(10, 0), at(21, 0)), None),
        (moved(at(60, 0), at(40, 0), at(21, 0)), Some(22 * 60)),
    ];
    // At most 1.5 hours before the end.
    let by_time = [
        (moved(at(115, 0), at(28, 30), at(180, 0)), Some(25 * 60)),
        (moved(at(115, 0), at(24, 30), at(180, 0)), Some(90 * 60)),
        (moved(at(180, 0), at(50, 0), at(100, 0)), Some(50 * 60)),
    ];
    let mut timed = job();
    timed.strategy.entry = vec![when(Field::TimeToResolutionHours, Operator::LessOrEqual, "1.5")];
    let rows = by_price.iter().map(|row| (job(), row)).chain(by_time.iter().map(|row| (timed.clone(), row)));
    let (mut cases, mut hashes) = (0, Vec::new());
    for (mut job, (ends, expected)) in rows {
        job.markets[0].market.end = ends.clone();
        let report = ran(&job, &example()[..2]);
        assert_eq!(shown(&report).first().map(|row| row.0), *expected, "{ends:?}");
        hashes.push(report.hash);
        cases += 1;
    }
    hashes.sort_unstable();
    hashes.dedup();
    assert_eq!(hashes.len(), cases, "what was stated is part of the result");
    // Not what is stated after the window.
    let mut job = job();
    job.markets[0].market.end = Ends::of(Some(at(60, 0)));
    let before = ran(&job, &example()[..2]);
    job.markets[0].market.end.state(at(121, 0), Some(at(180, 0)));
    assert_eq!(ran(&job, &example()[..2]), before);
    println!("moved ends: {} cases", cases + 1);
}

#[test]
fn a_sale_buys_the_other_token() {
    let job = trading(|strategy| {
        strategy.side = Side::Sell;
        strategy.entry = vec![when(Field::Price, Operator::LessOrEqual, "0.65")];
        strategy.exit.clear();
    });
    // Bids of Yes at 0.36 are asks of No at 0.64.
    let frames = [book(at(5, 30), &[(3_600, 100)], &[(3_800, 100)])];
    assert_eq!(job.traded(0), Outcome::Second);
    let report = ran(&job, &frames);
    assert_eq!(shown(&report), [(360, Side::Buy, 25, 6_400, Reason::Entry)]);
    // Valued at 0.63; the fee is that of 0.64 and 0.36.
    assert_eq!(report.total_pnl, Cash(-250_000 - 288_000));
}

#[test]
fn an_entry_that_cannot_be_paid_or_is_too_small_is_skipped() {
    // size, bankroll in cents, ask; entered
    let rows = [
        (25, 802, 3_100, true),
        // 7.75 and a fee of 0.26738.
        (25, 801, 3_100, false),
        (4, 50_000, 3_100, false),
        (5, 50_000, 3_100, true),
        (1_000_001, 1_000_000_000, 100, false),
    ];
    for (shares, cents, ask, enters) in rows {
        let mut job = trading(|strategy| {
            strategy.size = Qty::from_shares(shares);
            strategy.exit.clear();
        });
        job.bankroll = Cash(cents * 10_000);
        let report = ran(&job, &[book(at(0, 0), &[(ask - 10, 9)], &[(ask, 2_000_000)])]);
        assert_eq!(report.trades.len(), usize::from(enters), "{shares} {cents}");
        assert_eq!(report.ticks_evaluated, 120);
    }
    println!("entries: {} cases", rows.len());
}

#[test]
fn entries_and_exits_take_what_the_book_has() {
    let frames = [
        book(at(0, 0), &[(2_900, 9)], &[(3_000, 10), (3_100, 5), (4_000, 90)]),
        book(at(10, 0), &[(4_500, 10), (4_400, 6)], &[(4_600, 9)]),
        book(at(20, 0), &[(4_500, 100)], &[(4_600, 9)]),
    ];
    use FillModel::{DepthWalk, DepthWalkDepletion, Midpoint, TopOfBook};
    use Reason::{Entry, Exit};
    use Side::{Buy, Sell};
    // Of three levels the walk takes 25: 10 at 0.30, 5 at 0.31, 10 at 0.40.
    type Fill = (u64, Side, u64, i64, Reason);
    let rows: [(FillModel, Vec<Fill>); 4] = [
        (DepthWalk, vec![(0, Buy, 25, 3_420, Entry), (600, Sell, 16, 4_462, Exit), (660, Sell, 9, 4_500, Exit)]),
        // What was taken at 17:10 is gone until the book changes.
        (
            DepthWalkDepletion,
            vec![(0, Buy, 25, 3_420, Entry), (600, Sell, 16, 4_462, Exit), (1_200, Sell, 9, 4_500, Exit)],
        ),
        (TopOfBook, vec![(0, Buy, 10, 3_000, Entry), (600, Sell, 10, 4_500, Exit)]),
        // The best bid decides, the midpoint is paid.
        (Midpoint, vec![(0, Buy, 25, 2_950, Entry), (600, Sell, 25, 4_550, Exit)]),
    ];
    for (model, trades) in &rows {
        let report = ran(&trading(|strategy| strategy.model = *model), &frames);
        assert_eq!(shown(&report), *trades, "{model:?}");
        assert_eq!(report.won, Some((1, 1)), "{model:?}: one position");
    }
    println!("models: {} cases", rows.len());
}

#[test]
fn a_delayed_order_meets_the_later_book() {
    let frames = [
        book(at(0, 0), &[(2_900, 9)], &[(3_100, 60)]),
        book(at(0, 2), &[(3_400, 9)], &[(3_500, 60)]),
        book(at(1, 30), &[(3_400, 9)], &[(3_600, 60)]),
    ];
    // delay in ms; time in seconds and price of the entry
    for (millis, secs, price) in [(0, 0, 3_100), (1_999, 1, 3_100), (2_000, 2, 3_500), (60_000, 60, 3_500)] {
        let mut job = trading(|strategy| strategy.exit.clear());
        job.latency = Latency::Constant(millis);
        let report = ran(&job, &frames);
        assert_eq!(shown(&report), [(secs, Side::Buy, 25, price, Reason::Entry)], "{millis}");
        assert_eq!(report.trades[0].at, at(0, 0).plus(u64::from(millis) * MILLISECOND));
    }
}

#[test]
fn a_gap_ages_the_book_until_its_next_whole_one() {
    let gap = BookFrame { at: at(9, 0), market: 0, changes: vec![BookChange::Gap(Outcome::First)] };
    let cheap = level(at(9, 0), BookSide::Ask, 3_100, 60);
    let start = book(at(8, 0), &[(2_900, 9)], &[(3_300, 60)]);
    let whole = book(at(30, 30), &[(2_900, 9)], &[(3_100, 60)]);
    // Silence is not age: the hour is covered.
    assert_eq!(shown(&ran(&job(), &[start.clone(), cheap.clone()]))[0].0, 540);
    // In a gap the book is as old as its last message before it, 17:08, until the next whole book.
    let mut frames = vec![start.clone(), gap.clone(), level(at(9, 30), BookSide::Ask, 3_100, 60), whole.clone()];
    assert_eq!(shown(&ran(&job(), &frames))[0].0, 31 * 60);
    frames.pop();
    assert!(ran(&job(), &frames).trades.is_empty());
    // A model of one level has no level in a gap.
    frames.push(whole);
    let top = trading(|strategy| strategy.model = FillModel::TopOfBook);
    assert_eq!(shown(&ran(&top, &frames))[0].0, 31 * 60);
    // A whole book after the gap, in the same frame, repairs it.
    let mut both = gap;
    both.changes.push(BookChange::Book {
        outcome: Outcome::First,
        bids: levels(&[(2_900, 9)]),
        asks: levels(&[(3_100, 60)]),
    });
    assert_eq!(shown(&ran(&job(), &[start.clone(), both.clone()]))[0].0, 540);
    both.changes.reverse();
    assert_eq!(shown(&ran(&job(), &[start, both]))[0].0, 540, "it is fresh at that moment");
}

#[test]
fn ticks_of_a_grid_and_of_events() {
    let with = |markets: usize, minutes: u64, mode| {
        let mut job = job();
        job.markets = (0..markets).map(|number| market(number, &[Verdict::Valid])).collect();
        (job.tick_mode, job.end) = (mode, job.start.plus(minutes * MINUTE));
        job
    };
    // markets, minutes; distance in minutes, degraded
    let rows = [
        (1, 1, 1, false),
        (1, 200_000, 1, false),
        (1, 200_001, 2, true),
        (100, 129_600, 65, true),
        (100, 2_000, 1, false),
        (100, 2_001, 2, true),
        (3, 200_000, 4, true),
        (7, 200_000, 8, true),
    ];
    for (markets, minutes, step, is_degraded) in rows {
        let plan = TickPlan::grid(&with(markets, minutes, TickMode::Grid));
        assert_eq!(plan, TickPlan { mode: TickMode::Grid, step: step * MINUTE, is_degraded }, "{markets} {minutes}");
        assert!((minutes * MINUTE).div_ceil(plan.step) * markets as u64 <= TICKS_MAX);
        assert_eq!(plan.notice().is_some(), is_degraded);
    }
    let job = with(1, 120, TickMode::Event);
    assert_eq!(TickPlan::event(&job, TICKS_MAX).mode, TickMode::Event);
    let over = TickPlan::event(&job, TICKS_MAX + 1);
    assert_eq!(over, TickPlan { mode: TickMode::Grid, step: MINUTE, is_degraded: true });
    assert_eq!(over.notice().as_deref(), Some("A run has at most 200000 ticks: these are 60 s apart."));
    println!("plans: {} cases", rows.len() + 2);

    // A tick at each moment at which a book changes, within the window.
    let mut events = trading(|strategy| strategy.exit = vec![when(Field::Price, Operator::Greater, "0.28")]);
    events.tick_mode = TickMode::Event;
    let frames = [
        book(Timestamp(FIRST.start().0 - 1), &[(2_900, 9)], &[(3_100, 60)]),
        level(at(3, 7), BookSide::Ask, 3_200, 5),
        level(at(3, 7), BookSide::Ask, 3_300, 5),
        BookFrame { at: at(3, 8), market: 0, changes: vec![BookChange::Tick(TickSize(10))] },
        level(at(3, 9), BookSide::Bid, 2_800, 50),
        level(at(119, 59), BookSide::Bid, 2_000, 5),
        level(at(120, 0), BookSide::Bid, 2_100, 5),
    ];
    let report = ran(&events, &frames);
    let expected = [
        (187, Side::Buy, 25, 3_100, Reason::Entry),
        // 9 at 0.29 and 16 at 0.28.
        (189, Side::Sell, 25, 2_836, Reason::Exit),
        (7_199, Side::Buy, 25, 3_100, Reason::Entry),
    ];
    assert_eq!(shown(&report), expected);
    assert_eq!((report.ticks_evaluated, report.plan.mode), (3, TickMode::Event));
}

/// Random books of two markets, of both tokens, with mirrors, gaps and a change of the grid.
fn random(seed: u64, count: usize) -> Vec<BookFrame> {
    let mut dice = Dice::new(seed);
    let mut now = Timestamp(FIRST.start().0 - MINUTE);
    let mut frames = Vec::new();
    for _ in 0..count {
        now = now.plus(dice.below(9_000) * MILLISECOND);
        let outcome = if dice.one_in(2) { Outcome::First } else { Outcome::Second };
        let (bid, ask) = (25 + dice.below(25) as u16, 51 + dice.below(20) as u16);
        let mut side = |from: u16, down: bool| -> Vec<(Price, Qty)> {
            (0..dice.below(4) as u16)
                .map(|step| if down { from - step } else { from + step })
                .map(|cents| (Price(cents * 100), Qty(1 + dice.below(60_000_000))))
                .collect()
        };
        let changes = match side(3, false).len() {
            0 => {
                let (bids, asks) = (side(bid, true), side(ask, false));
                let mirrored = |levels: &[(Price, Qty)]| -> Vec<(Price, Qty)> {
                    levels.iter().map(|(price, size)| (price.complement(), *size)).collect()
                };
                let (other_bids, other_asks) = (mirrored(&asks), mirrored(&bids));
                vec![
                    BookChange::Book { outcome, bids, asks },
                    BookChange::Book { outcome: outcome.other(), bids: other_bids, asks: other_asks },
                ]
            }
            1 => vec![BookChange::Book { outcome, bids: side(bid, true), asks: side(ask, false) }],
            _ => {
                let side = if bid % 2 == 0 { BookSide::Bid } else { BookSide::Ask };
                let cents = if side == BookSide::Bid { bid } else { ask };
                let size = Qty(u64::from(ask % 7) * 7_123_457);
                vec![BookChange::Level { outcome, side, price: Price(cents * 100), size }]
            }
        };
        frames.push(BookFrame { at: now, market: usize::from(ask % 2), changes });
    }
    frames
}

#[test]
fn equal_inputs_have_one_result_and_others_another() {
    let frames = random(5, 1_200);
    let base = || {
        let mut job = trading(|strategy| {
            strategy.entry = vec![when(Field::Price, Operator::Less, "0.62")];
            strategy.exit = vec![when(Field::Price, Operator::Greater, "0.29")];
        });
        job.markets = (0..2).map(|number| market(number, &[Verdict::Valid, Verdict::Valid])).collect();
        (job.seeds, job.latency, job.haircut) = (5, Latency::Uniform(100, 3_000), Haircut(3_000));
        job
    };
    let report = ran(&base(), &frames);
    assert_eq!(ran(&base(), &frames), report);
    let [low, median, high] = report.comparison.percentiles.expect("five seeds");
    assert!(low < median && median < high, "seeds differ: {low:?} {median:?} {high:?}");
    // The first seed is the same among few and many.
    let alone = Job { seeds: 1, ..base() };
    let of_one = ran(&alone, &frames);
    assert_eq!((&of_one.trades, &of_one.points), (&report.trades, &report.points));
    let mut hashes = vec![report.hash, of_one.hash];
    type Changed = (&'static str, fn(&mut Job));
    let changed: [Changed; 14] = [
        ("seed", |job| job.seed = 1),
        ("latency", |job| job.latency = Latency::Uniform(100, 3_001)),
        ("haircut", |job| job.haircut = Haircut(2_999)),
        ("bankroll", |job| job.bankroll = Cash::from_dollars(501)),
        ("start", |job| job.start = job.start.plus(MINUTE)),
        ("mode", |job| job.tick_mode = TickMode::Event),
        ("size", |job| job.strategy.size = Qty::from_shares(26)),
        ("model", |job| job.strategy.model = FillModel::DepthWalkDepletion),
        ("entry", |job| job.strategy.entry.push(when(Field::Mid, Operator::Greater, "0"))),
        ("exit", |job| job.strategy.exit.clear()),
        ("side", |job| job.strategy.side = Side::Sell),
        ("digest", |job| job.markets[0].digests[0].1[31] = 8),
        ("category", |job| job.markets[1].market.category = Category::Crypto),
        ("result", |job| {
            let (resolution, source) = (Resolution::Split, SettlementSource::Import);
            job.markets[0].market.settlement = Some(Settled { resolution, at: job.end, source });
        }),
    ];
    for (name, change) in changed {
        let mut job = base();
        change(&mut job);
        let hash = ran(&job, &frames).hash;
        assert!(!hashes.contains(&hash), "{name} is part of the hash");
        hashes.push(hash);
    }
    let fees = |job: &Job, rate| {
        let mut rules = Rules::default();
        rules.fees.set(Category::Weather, crate::amount::Bps(rate));
        let open = || Ok::<_, Infallible>(frames.iter());
        run(job, &rules, open, &mut |_| true).expect("it ends")
    };
    assert_ne!(fees(&base(), 501).hash, report.hash);
    assert_eq!(fees(&base(), 500), report);
    println!("hashes: {} changes", changed.len() + 2);
}

#[test]
fn haircuts_and_delays_cost() {
    let frames = [book(at(0, 0), &[(2_900, 100)], &[(3_100, 40)])];
    let mut job = trading(|strategy| {
        strategy.size = Qty::from_shares(40);
        strategy.exit.clear();
    });
    job.haircut = Haircut::MAX;
    let mut models = 0;
    for model in [FillModel::DepthWalk, FillModel::DepthWalkDepletion, FillModel::TopOfBook] {
        job.strategy.model = model;
        let filled = ran(&job, &frames).trades[0].shares;
        assert!(filled < Qty::from_shares(40) && filled >= Qty::from_shares(4), "{model:?}: {filled:?}");
        models += 1;
    }
    println!("haircuts: {models} models");
}

/// Frames that cannot be read to their end.
struct Torn<'a>(std::slice::Iter<'a, BookFrame>);

impl FrameSource for Torn<'_> {
    type Error = &'static str;

    fn next_frame(&mut self) -> Result<Option<&BookFrame>, &'static str> {
        self.0.next().map(Some).ok_or("torn")
    }
}

#[test]
fn a_run_can_be_cancelled_and_has_a_bound() {
    let frames = example();
    for calls in [0, 1, 3, 60] {
        let open = || Ok::<_, Infallible>(frames.iter());
        let mut left = calls;
        let mut proceed = |_| {
            left -= 1;
            left >= 0
        };
        assert_eq!(run(&job(), &Rules::default(), open, &mut proceed), Err(Failure::Cancelled), "{calls}");
        assert_eq!(left, -1, "it ends at the first refusal");
    }
    let torn = || Ok(Torn(frames[..1].iter()));
    assert_eq!(run(&job(), &Rules::default(), torn, &mut |_| true), Err(Failure::Frames("torn")));
    let missing = || Err::<Torn<'_>, _>("missing");
    assert_eq!(run(&job(), &Rules::default(), missing, &mut |_| true), Err(Failure::Frames("missing")));

    // In and out at every change.
    let mut busy = trading(|strategy| {
        strategy.size = Qty::from_shares(5);
        strategy.entry.clear();
        strategy.exit = vec![when(Field::Price, Operator::Greater, "0")];
    });
    (busy.tick_mode, busy.bankroll) = (TickMode::Event, Cash::from_dollars(10_000_000));
    let first = book(at(0, 0), &[(2_900, 100)], &[(3_100, 100)]);
    let change = |number: u64| level(at(0, 1).plus(number * 20 * MILLISECOND), BookSide::Ask, 9_000, 1 + number % 9);
    let frames: Vec<BookFrame> = std::iter::once(first).chain((1..100_001).map(change)).collect();
    assert_eq!(ran(&busy, &frames[..100_000]).trades.len(), 100_000, "as many as may be");
    let open = || Ok::<_, Infallible>(frames.iter());
    assert_eq!(run(&busy, &Rules::default(), open, &mut |_| true), Err(Failure::OutputLimit));
}
