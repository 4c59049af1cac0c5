//! The book of a market at a moment: a function of its seed, its fair price and the time.
//!
//! Every level lives for some time and then draws again whether it is there and how large it is; the levels nearest to
//! the fair price make the touch. Shapes and rates follow the recordings, see the constants.

use super::noise::{Paths, fraction, mix, quantile};
use super::side::{Draws, Side, Touch};
use super::world::{Key, Spec};
use crate::{BookSide, Level};
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::Interval;
use engine::time::{MILLISECOND, SECOND, Timestamp};

/// Spread in ticks by share of time: 950,000 messages of the Kalshi 15-minute tapes, tick 0.01.
const SPREADS: [(f64, f64); 8] =
    [(0.0, 1.0), (0.315, 1.99), (0.498, 2.99), (0.645, 3.99), (0.755, 4.99), (0.844, 5.99), (0.957, 8.99), (1.0, 12.0)];
/// Of windows on coins: 534 of 584 recorded 5-minute markets had a spread of one tick.
const WINDOW_SPREADS: [(f64, f64); 4] = [(0.0, 1.0), (0.91, 1.99), (0.98, 2.99), (1.0, 5.0)];
/// Size of a trade in shares, by quantile (the Kalshi tapes).
const TRADES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 0.5), (0.5, 10.0), (0.9, 50.0), (0.99, 377.5), (1.0, 1_500.0)];
/// How often a book takes a step at liveliness 1. The tapes change 84 times a second and market; an idle server must not
/// work that much, so the whole world makes about 90 steps a second at liveliness 1 and 900 at 10, the default.
const STEP_WINDOW: u64 = 250 * MILLISECOND;
const STEP_WAITING: u64 = 10 * SECOND;
const STEP_BUSY: u64 = 500 * MILLISECOND;
const STEP_QUIET: u64 = 2 * SECOND;
const STEP_IDLE: u64 = 20 * SECOND;

/// Where the tick becomes finer, as the venue does (upstream.md §3.2), and how often that is looked at.
const FINE_BELOW: f64 = 0.04;
const FINE_ABOVE: f64 = 0.96;
const TICK_EVERY: u64 = 20 * SECOND;

/// A trade happens with one step in so many: the tapes have one in 49 messages, and a step carries about three.
const TRADE_IN: u64 = 16;
/// A full snapshot is sent with one step in so many.
const SNAPSHOT_IN: u64 = 300;

/// Both sides of the first token, as they stand, and what of them stays from step to step.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) bids: Side,
    pub(super) asks: Side,
    paths: Paths,
    /// The tick, by the moment of its judgement.
    tick: Last<Timestamp, TickSize>,
    /// The spread in ticks of a cent, by the number of its draw and the length of a step.
    spread: Last<(u64, u64), f64>,
}

/// What was worked out last, and of what.
#[derive(Clone, Debug)]
struct Last<Of, What>(Option<(Of, What)>);

impl<Of: PartialEq, What: Copy> Last<Of, What> {
    fn get(&mut self, of: Of, work_out: impl FnOnce(&Of) -> What) -> What {
        match &self.0 {
            Some((known, what)) if *known == of => *what,
            _ => {
                let what = work_out(&of);
                self.0 = Some((of, what));
                what
            }
        }
    }
}

/// What one step of a market draws beside its levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) snapshot: bool,
    pub(super) trade: Option<Trade>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trade {
    /// Which token it is reported on, and whether its taker bought.
    pub(super) second_token: bool,
    pub(super) taker_buys: bool,
    pub(super) size: Qty,
}

/// The time between two steps of a market, before and after its start.
pub(super) fn step_length(spec: &Spec, at: Timestamp) -> u64 {
    let length = match spec.key {
        Key::Window { .. } if at < spec.start => STEP_WAITING,
        Key::Window { interval, .. } => match interval {
            Interval::FiveMinutes => STEP_WINDOW,
            Interval::FifteenMinutes => 2 * STEP_WINDOW,
            Interval::Hour => 4 * STEP_WINDOW,
            Interval::FourHours | Interval::Daily => 8 * STEP_WINDOW,
        },
        Key::Plain { .. } => match spec.seed % 10 {
            0 => STEP_BUSY,
            1..=3 => STEP_QUIET,
            _ => STEP_IDLE,
        },
    };
    length / spec.liveliness
}

/// The moment of step `number` on a grid: somewhere inside its cell, so that markets do not move in step.
fn moment(spec: &Spec, length: u64, number: u64) -> Timestamp {
    let jitter = mix(mix(spec.seed, length), number) % length;
    Timestamp(number.saturating_mul(length).saturating_add(jitter))
}

/// The first step after `at`; the start of a window is one, too. At or behind the end there is none.
pub(super) fn next_step(spec: &Spec, at: Timestamp) -> Option<Timestamp> {
    let opens = spec.opens();
    if at < opens {
        return Some(opens);
    }
    let length = step_length(spec, at);
    let cell = at.0 / length;
    let next = [cell, cell + 1].into_iter().map(|number| moment(spec, length, number)).find(|moment| *moment > at)?;
    let next = if at < spec.start { next.min(spec.start) } else { next };
    (next < spec.end).then_some(next)
}

/// The last step at or before `at`: the book stands as of then. `at` lies between opening and end.
pub(super) fn last_step(spec: &Spec, at: Timestamp) -> Timestamp {
    let floor = if at >= spec.start { spec.start } else { spec.opens() }.max(spec.opens());
    let length = step_length(spec, at);
    let cell = at.0 / length;
    let last = [Some(cell), cell.checked_sub(1)].into_iter().flatten().map(|number| moment(spec, length, number));
    last.into_iter().find(|moment| *moment <= at).unwrap_or(floor).max(floor)
}

/// What else a step brings.
pub(super) fn incident(spec: &Spec, at: Timestamp) -> Incident {
    let draw = mix(mix(spec.seed, 0x17ad), at.0);
    let trade = draw.is_multiple_of(TRADE_IN).then(|| {
        let shares = quantile(&TRADES, fraction(mix(draw, 1)));
        Trade {
            second_token: mix(draw, 2).is_multiple_of(2),
            taker_buys: mix(draw, 3).is_multiple_of(2),
            size: Qty(((shares * 100.0) as u64).max(1) * 10_000),
        }
    });
    Incident { snapshot: mix(draw, 4).is_multiple_of(SNAPSHOT_IN), trade }
}

impl Default for Book {
    /// No levels.
    fn default() -> Book {
        let [bids, asks] = BookSide::BOTH.map(Side::new);
        Book { bids, asks, paths: Paths::default(), tick: Last(None), spread: Last(None) }
    }
}

impl Book {
    /// The tick at a moment: finer near the edges, judged on a slow clock so that it does not flutter.
    pub(super) fn tick(&mut self, spec: &Spec, at: Timestamp) -> TickSize {
        if spec.tick != TickSize(100) {
            return spec.tick;
        }
        let judged = Timestamp(at.0 - at.0 % TICK_EVERY).max(spec.opens());
        self.tick.get(judged, |judged| {
            let chance = spec.chance(*judged, &mut self.paths);
            if (FINE_BELOW..=FINE_ABOVE).contains(&chance) { spec.tick } else { TickSize(10) }
        })
    }

    /// Follows the market to a moment, which is not before the last one. `changed` is told the levels that are others
    /// than before, the bids first, with the size that they have now; 0 = gone.
    pub(super) fn follow(&mut self, spec: &Spec, at: Timestamp, mut changed: impl FnMut(BookSide, Level)) {
        let (tick, length) = (self.tick(spec, at), step_length(spec, at));
        let ticks = 10_000 / tick.0;
        let fair = spec.chance(at, &mut self.paths).clamp(0.0, 1.0) * f64::from(ticks);
        let spread = self.spread(spec, at, length, tick);
        let half = (spread - 1.0) / 2.0;
        let best_bid = (fair - half).floor().clamp(0.0, f64::from(ticks - 1)) as u16;
        let best_ask = ((fair + half).ceil() as u16).clamp(best_bid + 1, ticks);
        let draws = Draws::new(spec.seed, length);
        let touch = |number: u16| Touch { best: Price(number * tick.0), tick };
        self.bids.follow(&draws, touch(best_bid), at, |level| changed(BookSide::Bid, level));
        self.asks.follow(&draws, touch(best_ask), at, |level| changed(BookSide::Ask, level));
    }

    /// Spread in ticks; it changes slowly, and is wider where the grid is finer.
    fn spread(&mut self, spec: &Spec, at: Timestamp, length: u64, tick: TickSize) -> f64 {
        let ticks = self.spread.get((at.0 / (20 * length), length), |(number, _)| {
            let table: &[(f64, f64)] = match spec.key {
                Key::Window { .. } => &WINDOW_SPREADS,
                Key::Plain { .. } => &SPREADS,
            };
            quantile(table, fraction(mix(mix(spec.seed, 0x5b7e), *number))).floor()
        });
        match tick.0 {
            1_000 => 1.0,
            100 => ticks,
            // The recorded book with tick 0.001 had a spread of three.
            10 => ticks * 2.0 + 1.0,
            _ => ticks * 10.0 + 1.0,
        }
    }

    /// The levels of both sides, best first: bids, asks.
    pub(super) fn levels(&self) -> [Vec<Level>; 2] {
        [&self.bids, &self.asks].map(|side| side.levels().collect())
    }

    /// Dollars that stand in the book: what bids would pay and what asks would cost the other side.
    pub(super) fn liquidity(&self) -> u64 {
        let bids = self.bids.levels().map(|(price, size)| u64::from(price.0) * (size.0 / 10_000));
        let asks = self.asks.levels().map(|(price, size)| u64::from(price.complement().0) * (size.0 / 10_000));
        bids.chain(asks).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::world::World;
    use super::*;

    const NOW: Timestamp = Timestamp(1_790_000_123 * SECOND);

    fn specs() -> Vec<Spec> {
        let world = World { seed: 42, liveliness: 1 };
        let keys = World::series().flat_map(|series| world.listed(series, NOW, 0));
        keys.filter_map(|key| world.spec(key)).filter(|spec| spec.opens() <= NOW).collect()
    }

    #[test]
    fn books_look_like_the_recorded_ones() {
        let (mut levels, mut spreads, mut one_sided) = (Vec::new(), Vec::new(), 0);
        for spec in specs().iter().filter(|spec| spec.tick == TickSize(100)) {
            let mut book = Book::default();
            book.follow(spec, NOW, |_, _| {});
            let [bids, asks] = book.levels();
            levels.push(bids.len() + asks.len());
            match (bids.first(), asks.first()) {
                (Some((bid, _)), Some((ask, _))) => {
                    assert!(bid < ask);
                    spreads.push((ask.0 - bid.0).div_ceil(book.tick(spec, NOW).0));
                }
                _ => one_sided += 1,
            }
        }
        levels.sort();
        spreads.sort();
        let (levels, spread) = (levels[levels.len() / 2], spreads[spreads.len() / 2]);
        assert!((30..60).contains(&levels), "{levels} levels, recorded 40");
        assert!((1..=4).contains(&spread), "spread of {spread} ticks, recorded 2 to 3, windows 1");
        assert!(one_sided < spreads.len() / 4, "{one_sided}");
    }

    #[test]
    fn steps_follow_each_other_and_a_look_back_finds_the_last() {
        for spec in specs() {
            let mut at = NOW;
            for _ in 0..50 {
                let Some(next) = next_step(&spec, at) else { break };
                assert!(next > at);
                assert_eq!(last_step(&spec, next), next, "{spec:?}");
                let between = Timestamp(next.0 - 1);
                assert!(last_step(&spec, between) <= at.max(last_step(&spec, at)), "{spec:?}");
                at = next;
            }
        }
    }

    #[test]
    fn a_server_that_stands_idle_does_little() {
        let steps: usize = specs()
            .iter()
            .map(|spec| {
                std::iter::successors(next_step(spec, NOW), |at| next_step(spec, *at))
                    .take_while(|at| *at < NOW.plus(10 * SECOND))
                    .count()
            })
            .sum();
        assert!((300..1_500).contains(&steps), "{steps} in 10 seconds");
    }
}
