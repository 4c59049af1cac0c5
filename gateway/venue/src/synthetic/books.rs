//! The book of a market at a moment: a function of its seed, its fair price and the time.
//!
//! Every level lives for some time and then draws anew whether it is there and how large it is; the levels nearest to
//! the fair price make the touch. Shapes and rates follow the recordings, see the constants.

use super::noise::{fraction, mix, quantile};
use super::world::{Key, Spec};
use crate::Level;
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::Interval;
use engine::time::{MILLISECOND, SECOND, Timestamp};

/// Spread in ticks by share of time: 950,000 messages of the Kalshi 15-minute tapes, tick 0.01.
const SPREADS: [(f64, f64); 8] =
    [(0.0, 1.0), (0.315, 1.99), (0.498, 2.99), (0.645, 3.99), (0.755, 4.99), (0.844, 5.99), (0.957, 8.99), (1.0, 12.0)];
/// Of windows on coins: 534 of 584 recorded 5-minute markets had a spread of one tick.
const WINDOW_SPREADS: [(f64, f64); 4] = [(0.0, 1.0), (0.91, 1.99), (0.98, 2.99), (1.0, 5.0)];
/// How often a level is there, by its distance from the touch in ticks (the Kalshi tapes).
const OCCUPIED: [f64; 13] = [0.98, 0.80, 0.75, 0.68, 0.63, 0.59, 0.57, 0.55, 0.53, 0.50, 0.46, 0.43, 0.40];
/// Farther out.
const OCCUPIED_FAR: f64 = 0.37;
/// Size of a level in shares, by quantile: near the touch of the Kalshi tapes 10 % are below 2, half below 40, 90 %
/// below 280, and some are very large.
const SIZES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 3.0), (0.5, 40.0), (0.9, 280.0), (0.99, 2_000.0), (1.0, 8_000.0)];
/// Size of a trade in shares, by quantile (the Kalshi tapes).
const TRADES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 0.5), (0.5, 10.0), (0.9, 50.0), (0.99, 377.5), (1.0, 1_500.0)];
/// Deep markets hold more on each level: a recorded election book held thousands where the tapes hold dozens.
const DEPTH_MAX: f64 = 30.0;
/// Ticks from the touch in which every level can be there; beyond, only whole cents.
const DENSE_TICKS: u16 = 30;
/// Lives of levels, in steps of the market: some levels change with nearly every message, most stand for long.
/// With some 40 levels about three change a step.
const LIVES: [u64; 6] = [3, 6, 12, 25, 50, 100];

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

/// Both sides of the first token, best first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Book {
    pub(super) bids: Vec<Level>,
    pub(super) asks: Vec<Level>,
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
fn step_length(spec: &Spec, at: Timestamp) -> u64 {
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

/// The tick at a moment: finer near the edges, judged on a slow clock so that it does not flutter.
pub(super) fn tick(spec: &Spec, at: Timestamp) -> TickSize {
    let judged = Timestamp(at.0 - at.0 % TICK_EVERY).max(spec.opens());
    let chance = spec.chance(judged);
    let edge = !(FINE_BELOW..=FINE_ABOVE).contains(&chance);
    if edge && spec.tick == TickSize(100) { TickSize(10) } else { spec.tick }
}

/// The book at a moment.
pub(super) fn book(spec: &Spec, at: Timestamp) -> Book {
    let tick = tick(spec, at).0;
    let length = step_length(spec, at);
    let ticks = 10_000 / tick;
    let fair = spec.chance(at).clamp(0.0, 1.0) * f64::from(ticks);
    let spread = spread(spec, at, length, tick);
    let half = (spread - 1.0) / 2.0;
    let best_bid = (fair - half).floor().clamp(0.0, f64::from(ticks - 1)) as u16;
    let best_ask = ((fair + half).ceil() as u16).clamp(best_bid + 1, ticks);
    let depth = 1.0 + (DEPTH_MAX - 1.0) * fraction(mix(spec.seed, 0xdee9)).powi(4);
    let level = |side: u64, touch: u16, number: u16| {
        let distance = touch.abs_diff(number);
        let price = number * tick;
        let draw = mix(spec.seed, side << 32 | u64::from(price));
        let life = LIVES[(draw % LIVES.len() as u64) as usize] * length;
        let age = (at.0 + draw % life) / life;
        let draw = mix(draw, age);
        let occupied = OCCUPIED.get(usize::from(distance)).copied().unwrap_or(OCCUPIED_FAR);
        if fraction(draw) >= occupied {
            return None;
        }
        let shares = quantile(&SIZES, fraction(mix(draw, 1))) * depth;
        // Half of the sizes are round, as people write them; the others are what fills left over.
        let hundredths = (shares * 100.0) as u64;
        let hundredths =
            if mix(draw, 2).is_multiple_of(2) { (hundredths / 500).max(1) * 500 } else { hundredths.max(1) };
        Some((Price(price), Qty(hundredths * 10_000)))
    };
    let candidate =
        |touch: u16, number: u16| touch.abs_diff(number) <= DENSE_TICKS || (number * tick).is_multiple_of(100);
    let bids = (1..=best_bid).rev().filter(|number| candidate(best_bid, *number));
    let asks = (best_ask..ticks).filter(|number| candidate(best_ask, *number));
    Book {
        bids: bids.filter_map(|number| level(0, best_bid, number)).collect(),
        asks: asks.filter_map(|number| level(1, best_ask, number)).collect(),
    }
}

/// Spread in ticks; it changes slowly, and is wider where the grid is finer.
fn spread(spec: &Spec, at: Timestamp, length: u64, tick: u16) -> f64 {
    let draw = fraction(mix(mix(spec.seed, 0x5b7e), at.0 / (20 * length)));
    let table: &[(f64, f64)] = match spec.key {
        Key::Window { .. } => &WINDOW_SPREADS,
        Key::Plain { .. } => &SPREADS,
    };
    let ticks = quantile(table, draw).floor();
    match tick {
        1_000 => 1.0,
        100 => ticks,
        // The recorded book with tick 0.001 had a spread of three.
        10 => ticks * 2.0 + 1.0,
        _ => ticks * 10.0 + 1.0,
    }
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

impl Book {
    /// The other token's book: each side is the mirror of the other one here.
    pub(super) fn mirrored(&self) -> Book {
        let mirror = |side: &[Level]| side.iter().map(|(price, size)| (price.complement(), *size)).collect();
        Book { bids: mirror(&self.asks), asks: mirror(&self.bids) }
    }

    /// Dollars that stand in the book: what bids would pay and what asks would cost the other side.
    pub(super) fn liquidity(&self) -> u64 {
        let bids = self.bids.iter().map(|(price, size)| u64::from(price.0) * (size.0 / 10_000));
        let asks = self.asks.iter().map(|(price, size)| u64::from(price.complement().0) * (size.0 / 10_000));
        bids.chain(asks).sum()
    }
}

/// Levels of one side that differ between two books, with the size they have now.
pub(super) fn changed(before: &[Level], now: &[Level], better: impl Fn(Price, Price) -> bool) -> Vec<Level> {
    let (mut before, mut now) = (before.iter().peekable(), now.iter().peekable());
    let mut changed = Vec::new();
    loop {
        match (before.peek(), now.peek()) {
            (None, None) => return changed,
            (Some((gone, _)), None) => {
                changed.push((*gone, Qty::ZERO));
                before.next();
            }
            (None, Some(new)) => {
                changed.push(**new);
                now.next();
            }
            (Some((old, size)), Some(new)) => {
                if *old == new.0 {
                    if *size != new.1 {
                        changed.push(**new);
                    }
                    before.next();
                    now.next();
                } else if better(*old, new.0) {
                    changed.push((*old, Qty::ZERO));
                    before.next();
                } else {
                    changed.push(**new);
                    now.next();
                }
            }
        }
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
            let book = book(spec, NOW);
            levels.push(book.bids.len() + book.asks.len());
            match (book.bids.first(), book.asks.first()) {
                (Some((bid, _)), Some((ask, _))) => {
                    assert!(bid < ask);
                    spreads.push((ask.0 - bid.0).div_ceil(tick(spec, NOW).0));
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

    #[test]
    fn differences_lead_from_one_book_to_the_next() {
        let level = |price, size| (Price(price), Qty(size));
        let before = [level(50, 1), level(40, 2), level(30, 3)];
        let now = [level(60, 9), level(50, 1), level(40, 5), level(20, 7)];
        let changes = changed(&before, &now, |a, b| a > b);
        assert_eq!(changes, [level(60, 9), level(40, 5), level(30, 0), level(20, 7)]);
        assert_eq!(changed(&now, &now, |a, b| a > b), []);
    }
}
