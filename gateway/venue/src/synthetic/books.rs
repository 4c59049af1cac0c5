//! The book of a market at a moment: a function of its seed, its fair price and the time.
//!
//! Every level has a lifetime, after which its existence and size are drawn again; the levels nearest to the fair price
//! are the touch. Shapes and rates follow recordings; see the constants.

use super::noise::{Paths, fraction, mix, quantile};
use super::side::{Draws, Side, Touch};
use super::world::{Key, Spec};
use crate::{BookSide, Level};
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::Interval;
use engine::time::{MILLISECOND, SECOND, Timestamp};

/// Spread in ticks by share of time, from 950,000 messages of the Kalshi 15-minute tapes with tick 0.01.
const SPREADS: [(f64, f64); 8] =
    [(0.0, 1.0), (0.315, 1.99), (0.498, 2.99), (0.645, 3.99), (0.755, 4.99), (0.844, 5.99), (0.957, 8.99), (1.0, 12.0)];
/// The same for windows on coins: 534 of 584 recorded 5-minute markets had a spread of one tick.
const WINDOW_SPREADS: [(f64, f64); 4] = [(0.0, 1.0), (0.91, 1.99), (0.98, 2.99), (1.0, 5.0)];
/// Size of a trade in shares, by quantile (from the Kalshi tapes).
const TRADES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 0.5), (0.5, 10.0), (0.9, 50.0), (0.99, 377.5), (1.0, 1_500.0)];
/// Time between the steps of a book at liveliness 1. The tapes have 84 changes a second and market; an idle server must
/// do less, so the whole world makes about 90 steps a second at liveliness 1 and 900 at 10, the default.
const STEP_WINDOW: u64 = 250 * MILLISECOND;
const STEP_WAITING: u64 = 10 * SECOND;
const STEP_BUSY: u64 = 500 * MILLISECOND;
const STEP_QUIET: u64 = 2 * SECOND;
const STEP_IDLE: u64 = 20 * SECOND;

/// Prices outside these bounds have the finer tick, as at the venue (gateway/docs/live-venues.md §3.2); the tick is
/// checked at this interval.
const FINE_BELOW: f64 = 0.04;
const FINE_ABOVE: f64 = 0.96;
const TICK_EVERY: u64 = 20 * SECOND;

/// One step of this many has a trade: the tapes have one in 49 messages, and a step has about three changes.
const TRADE_IN: u64 = 16;
/// One step of this many sends a snapshot.
const SNAPSHOT_IN: u64 = 300;

/// Both sides of the first token, and values that are cached from step to step.
#[derive(Clone, Debug)]
pub(super) struct Book {
    pub(super) bids: Side,
    pub(super) asks: Side,
    paths: Paths,
    /// The tick, by the time of its check.
    tick: Memo<Timestamp, TickSize>,
    /// The spread in ticks of a cent, by the number of its draw and the step length.
    spread: Memo<(u64, u64), f64>,
}

/// The last computed value and its key.
#[derive(Clone, Debug)]
struct Memo<K, V>(Option<(K, V)>);

impl<K: PartialEq, V: Copy> Memo<K, V> {
    fn get(&mut self, of: K, compute: impl FnOnce(&K) -> V) -> V {
        match &self.0 {
            Some((known, value)) if *known == of => *value,
            _ => {
                let value = compute(&of);
                self.0 = Some((of, value));
                value
            }
        }
    }
}

/// The draws of a step apart from the levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Incident {
    pub(super) snapshot: bool,
    pub(super) trade: Option<Trade>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Trade {
    /// The token that the trade is reported for, and whether the taker buys.
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

/// The time of step `number` on a grid: a random moment inside its cell, so that markets do not move together.
fn step_time(spec: &Spec, length: u64, number: u64) -> Timestamp {
    let jitter = mix(mix(spec.seed, length), number) % length;
    Timestamp(number.saturating_mul(length).saturating_add(jitter))
}

/// The first step after `at`. The start of a window is a step too. `None` if there is none before the end.
pub(super) fn next_step(spec: &Spec, at: Timestamp) -> Option<Timestamp> {
    let opens = spec.opens();
    if at < opens {
        return Some(opens);
    }
    let length = step_length(spec, at);
    let cell = at.0 / length;
    let next =
        [cell, cell + 1].into_iter().map(|number| step_time(spec, length, number)).find(|step_time| *step_time > at)?;
    let next = if at < spec.start { next.min(spec.start) } else { next };
    (next < spec.end).then_some(next)
}

/// The last step at or before `at`, whose book is current then. `at` is between opening and end.
pub(super) fn last_step(spec: &Spec, at: Timestamp) -> Timestamp {
    let floor = if at >= spec.start { spec.start } else { spec.opens() }.max(spec.opens());
    let length = step_length(spec, at);
    let cell = at.0 / length;
    let last = [Some(cell), cell.checked_sub(1)].into_iter().flatten().map(|number| step_time(spec, length, number));
    last.into_iter().find(|step_time| *step_time <= at).unwrap_or(floor).max(floor)
}

/// The draws of a step apart from the levels.
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
    /// A book without levels.
    fn default() -> Book {
        let [bids, asks] = BookSide::BOTH.map(Side::new);
        Book { bids, asks, paths: Paths::default(), tick: Memo(None), spread: Memo(None) }
    }
}

impl Book {
    /// The tick at a moment: finer near 0 and 1, checked at long intervals so that it does not alternate.
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

    /// Advances to `at`, which is not before the last call. `changed` gets the changed levels, bids first, with their
    /// new sizes; 0 = removed.
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

    /// The spread in ticks; it changes slowly, and is wider on a finer grid.
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

    /// V of the book in dollars: what bids pay, and what asks cost at the complement.
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
    fn steps_ascend_and_the_last_one_is_found_again() {
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
    fn an_idle_server_makes_few_steps() {
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
