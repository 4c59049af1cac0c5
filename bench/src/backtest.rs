//! Orders on a replayed market. In each millisecond one level of the book changes, resting orders are matched with the
//! book, the order of the previous millisecond is cancelled, and another one is placed, at a price that never matches.
//! Our side has accounts, reservations, the index of orders, a matching cycle after each change of the book (a server
//! has one for all changes of a second by default) and a record in the log for each command, as for a strategy that
//! runs on a recording in process. The backtester does the same work without accounts of many users and without a log.
//!
//! Besides, the same market as frames of an archive in a back-test whose strategy never enters: a tick is a change of the
//! book, the comparison with its price, and the points of equity. The backtester looks at its book after each change.

use crate::chance::Chance;
use crate::floor::Floor;
use crate::journal::Journal;
use crate::peers;
use crate::report::{Report, Size, timed};
use crate::world::{BEST_BID, Out, Step, World};
use engine::amount::{Cash, Price, Qty, TickSize};
use engine::backtest::{
    ArchivedMarket, BookChange, BookFrame, Coverage, Ends, Field, FillModel, Haircut, Hour, HourState, Job, JobMarket,
    Latency, Operator, Predicate, Report as Result, Strategy, Threshold, TickMode, Verdict,
};
use engine::book::BookSide;
use engine::command::{Command, Envelope};
use engine::id::{OrderId, Outcome, UserId};
use engine::market::terms::Category;
use engine::mutation::codec;
use engine::order::Side;
use engine::rules::Rules;
use engine::time::{HOUR, MILLISECOND, Timestamp};
use std::cell::RefCell;
use std::convert::Infallible;
use std::rc::Rc;

const ROUNDS: usize = 5;
/// Milliseconds between two steps of log maintenance, which are not timed.
const CHUNK: usize = 4_096;
/// The backtester makes six million on a quiet machine of the kind for which the goals were set; below a third of that
/// it shared its core.
const BACKTEST_FLOOR: Floor = Floor { of: "the backtester", least: 2_000_000.0 };

/// The events of one millisecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The bid that changes, below the best one, and its new size.
    pub level_cents: u16,
    pub level_shares: u64,
    /// The bid that is placed.
    pub order_cents: u16,
}

/// `count` milliseconds, the same in each run.
pub fn moments(count: usize) -> Vec<Moment> {
    let mut chance = Chance::seeded(31);
    let mut below = |cents: u16| 1 + chance.below(u64::from(cents) - 1) as u16;
    (0..count)
        .map(|_| Moment { level_cents: below(BEST_BID), level_shares: below(900).into(), order_cents: below(BEST_BID) })
        .collect()
}

pub fn run(size: Size, report: &mut Report) {
    let moments = moments(size.pick(2_000, 200_000));
    // Each order but the last is cancelled.
    let commands = (2 * moments.len() - 1) as f64;
    let (mut rates, mut known) = (Vec::new(), None);
    let mut beside = vec![(Vec::new(), Vec::new()); peers::BACKTEST.len()];
    for _ in 0..size.pick(1, ROUNDS) {
        let (seconds, digest) = ours(&moments, size);
        assert_eq!(*known.get_or_insert(digest), digest, "the same market, the same state");
        rates.push(commands / seconds);
        if report.with_peers() {
            for (peer, (theirs, ratios)) in peers::BACKTEST.iter().zip(&mut beside) {
                let seconds_there = (peer.run)(&moments);
                theirs.push(commands / seconds_there);
                ratios.push(seconds_there / seconds);
            }
        }
    }
    report.middle("commands beside the market", &rates, "a second");
    for (peer, (theirs, ratios)) in peers::BACKTEST.iter().zip(beside).filter(|(_, (theirs, _))| !theirs.is_empty()) {
        report.middle(&format!("commands of {}", peer.name), &theirs, "a second");
        report.ratio_above(&[(&BACKTEST_FLOOR, &theirs)], &format!("rate beside {}", peer.name), ratios);
    }
    report.computed(known.expect("a round"));
    ticks(&moments, size, report);
    report.note(
        "market",
        format!("{} milliseconds: a level, a matching cycle, a cancel and a bid in each", moments.len()),
    );
    report.rate_note("none: one millisecond after the other, as fast as it goes");
    report.durability("process: each record in the mapping, not synced");
    report.not_included("reading and parsing a recording, preparing segments, latency of any kind");
}

/// Seconds, and the state at the end.
fn ours(moments: &[Moment], size: Size) -> (f64, [u8; 32]) {
    let place = tempfile::tempdir().expect("a temporary directory");
    let journal = Rc::new(RefCell::new(Journal::create(&place.path().join("log"), size.pick(4 << 20, 64 << 20))));
    let log = journal.clone();
    let mut record = move |owner: UserId, now: Timestamp, payload: &[u8]| {
        log.borrow_mut().append_untended(codec::VERSION, owner.0, now.0, payload);
    };
    let mut world = World::new(1, &mut record);
    let mut out = Out::new(record);
    world.add_traders(1, &mut out);
    let owner = world.traders[0].user;
    out.orders = vec![OrderId(0)];
    let (mut seconds, mut is_first) = (0.0, true);
    for chunk in moments.chunks(CHUNK) {
        journal.borrow_mut().tend();
        seconds += timed(|| {
            for moment in chunk {
                world.now = world.now.plus(MILLISECOND);
                world.show_bid(moment.level_cents, moment.level_shares);
                world.cycle(&mut out);
                if !std::mem::take(&mut is_first) {
                    let command = Command::Cancel { order: out.orders[0] };
                    world.take(Envelope { owner, command, received_at: world.now, reply: 0 }, &mut out);
                }
                let bid = Step::Rest { trader: 0, market: 0, cents: moment.order_cents };
                world.take(world.envelope(0, bid, &[]), &mut out);
            }
        })
        .0;
    }
    assert_eq!(out.cycles, moments.len() as u64, "resting orders were matched with the book each time");
    assert_eq!((out.refused, world.fills_count()), (0, 0), "every order rests and is cancelled");
    (seconds, world.digest())
}

/// Ticks of a back-test without orders.
fn ticks(moments: &[Moment], size: Size, report: &mut Report) {
    let (job, frames) = (job(), frames(moments));
    let mut rates = Vec::new();
    let mut beside = vec![(Vec::new(), Vec::new()); peers::BACKTEST.len()];
    for round in 0..size.pick(1, ROUNDS) {
        // They are read twice: the first time they are counted.
        let (seconds, result) = timed(|| ran(&job, &frames));
        assert_eq!(result.ticks_evaluated, moments.len() as u64, "each change is a tick");
        assert!(result.trades.is_empty(), "the strategy never enters");
        if round == 0 {
            report.computed(result.hash);
        }
        rates.push(moments.len() as f64 / seconds);
        if report.with_peers() {
            for (peer, (theirs, ratios)) in peers::BACKTEST.iter().zip(&mut beside) {
                let seconds_there = (peer.watch)(moments);
                theirs.push(moments.len() as f64 / seconds_there);
                ratios.push(seconds_there / seconds);
            }
        }
    }
    report.middle("ticks without orders", &rates, "a second");
    for (peer, (theirs, ratios)) in peers::BACKTEST.iter().zip(beside).filter(|(_, (theirs, _))| !theirs.is_empty()) {
        report.middle(&format!("ticks of {}", peer.name), &theirs, "a second");
        report.ratio_to_itself(&format!("ticks without orders beside {}", peer.name), ratios);
    }
}

/// Runs a back-test under the default rules.
pub fn ran(job: &Job, frames: &[BookFrame]) -> Result {
    let open = || Ok::<_, Infallible>(frames.iter());
    engine::backtest::run(job, &Rules::default(), open, &mut |_| true).expect("it ends")
}

/// A back-test in event mode whose strategy waits for a price that never comes.
pub fn job() -> Job {
    let first = Hour::of(begins());
    let text = |text: &str| text.into();
    let market = ArchivedMarket {
        condition: text(&format!("0x{:064x}", 1)),
        tokens: [text("1"), text("2")],
        outcomes: [text("Yes"), text("No")],
        category: Category::Politics,
        tick: TickSize(100),
        end: Ends::default(),
        settlement: None,
        hours: first..Hour(first.0 + 1),
    };
    let coverage = Coverage::of(first..Hour(first.0 + 1), [HourState::new(first, Verdict::Valid, true)]);
    let never = Predicate { field: Field::BestAsk, operator: Operator::Less, value: Threshold(0) };
    Job {
        markets: vec![JobMarket { market, outcome: Outcome::First, coverage, digests: Vec::new() }],
        start: begins(),
        end: begins().plus(HOUR),
        strategy: Strategy {
            side: Side::Buy,
            outcome: "Yes".to_owned(),
            size: Qty::from_shares(5),
            model: FillModel::DepthWalk,
            entry: vec![never],
            exit: Vec::new(),
        },
        bankroll: Cash::from_dollars(1_000),
        tick_mode: TickMode::Event,
        seed: 0,
        seeds: 1,
        latency: Latency::Constant(0),
        haircut: Haircut(0),
    }
}

/// 2026-09-30T17:00.
fn begins() -> Timestamp {
    Hour(497_441).start()
}

/// The book just before the first millisecond, then a level for each.
pub fn frames(moments: &[Moment]) -> Vec<BookFrame> {
    let price = |cents: u16| Price(100 * cents);
    let side = |cents: std::ops::Range<u16>| cents.map(|cents| (price(cents), Qty::from_shares(40))).collect();
    let book = BookChange::Book {
        outcome: Outcome::First,
        bids: side(1..BEST_BID + 1),
        asks: side(BEST_BID + 2..BEST_BID + 12),
    };
    let opening = BookFrame { at: Timestamp(begins().0 - 1), market: 0, changes: vec![book] };
    let changed = moments.iter().enumerate().map(|(number, moment)| {
        let (price, size) = (price(moment.level_cents), Qty::from_shares(moment.level_shares));
        let level = BookChange::Level { outcome: Outcome::First, side: BookSide::Bid, price, size };
        BookFrame { at: begins().plus(number as u64 * MILLISECOND), market: 0, changes: vec![level] }
    });
    [opening].into_iter().chain(changed).collect()
}
