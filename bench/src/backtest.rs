//! Orders on a replayed market. In each millisecond one level of the book changes, resting orders are matched with the
//! book, the order of the previous millisecond is cancelled, and another one is placed, at a price that never matches.
//! Our side has accounts, reservations, the index of orders, a matching cycle after each change of the book (a server
//! has one for all changes of a second by default) and a record in the log for each command, as for a strategy that
//! runs on a recording in process. The backtester does the same work without accounts of many users and without a log.

use crate::chance::Chance;
use crate::floor::Floor;
use crate::journal::Journal;
use crate::peers;
use crate::report::{Report, Size, timed};
use crate::world::{BEST_BID, Out, Step, World};
use engine::command::{Command, Envelope};
use engine::id::{OrderId, UserId};
use engine::mutation::codec;
use engine::time::{MILLISECOND, Timestamp};
use std::cell::RefCell;
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
