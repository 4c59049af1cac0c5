//! Prices: the underlyings of up-or-down markets, and the fair price of every market at every moment.

use super::noise::{Paths, below, fraction, mix, weight};
use engine::market::terms::{Asset, Interval};
use engine::time::{SECOND, Timestamp};

/// Standard deviation of Bitcoin's log price over one second, as if it grew with √time. The Chainlink ticks of
/// 2026-07-24 move 9.3e-4 in 5 minutes and 3.6e-3 in an hour: 5.4e-5 and 5.9e-5 a √second.
const BITCOIN_DEVIATION: f64 = 5.5e-5;

/// Movement of a plain market's log odds per √second, when it is calm and when it is lively. A hundred markets that
/// were polled from 2026-06-05 on moved by 0.02 cents (third quartile) to 0.2 cents (ninth decile) in 18 minutes near
/// the middle; the lively end moves more, so that there is something to trade.
const CALM_DEVIATION: f64 = 0.000_2;
const LIVELY_DEVIATION: f64 = 0.004;

/// Log odds of a certain outcome at the very end.
const CERTAINTY: f64 = 9.0;

/// The price of an asset as a function of time.
#[derive(Clone, Copy, Debug)]
pub struct Underlying {
    seed: u64,
    asset: Asset,
}

impl Underlying {
    pub fn new(world_seed: u64, asset: Asset) -> Underlying {
        Underlying { seed: mix(world_seed, 0xa55e_7000 + asset as u64), asset }
    }

    /// Log of the price over its long-run level.
    fn log(self, at: Timestamp, paths: &mut Paths) -> f64 {
        paths.at(self.seed, at) * deviation(self.asset)
    }

    /// Price in dollars.
    pub fn price(self, at: Timestamp) -> f64 {
        self.dollars(self.log(at, &mut Paths::default()))
    }

    fn dollars(self, log: f64) -> f64 {
        level(self.asset) * (1.0 + log + log * log / 2.0 + log * log * log / 6.0)
    }

    /// Mean log price over the whole seconds in (from, to].
    fn mean(self, from: Timestamp, to: Timestamp, paths: &mut Paths) -> f64 {
        let secs = (to.since(from) / SECOND).max(1);
        (0..secs).map(|ago| self.log(Timestamp(to.0 - ago * SECOND), paths)).sum::<f64>() / secs as f64
    }

    /// The log price that decides a window at its start and end: the mean of the last 30 s for 5M, of the last 60 s for
    /// 15M, else that of the moment (gateway/docs/live-venues.md §3.3).
    fn reference(self, interval: Interval, at: Timestamp) -> f64 {
        self.mean(Timestamp(at.0 - averaged(interval)), at, &mut Paths::default())
    }

    /// Threshold in dollars: the window goes up if it ends at or above it.
    pub(super) fn to_beat(self, interval: Interval, start: Timestamp) -> f64 {
        self.dollars(self.reference(interval, start))
    }

    /// Whether a window goes up: its price at the end is not below that at the start.
    pub fn goes_up(self, interval: Interval, start: Timestamp, end: Timestamp) -> bool {
        self.reference(interval, end) >= self.reference(interval, start)
    }

    /// The chance at `at` that a window goes up; the threshold is known from its start on.
    pub(super) fn chance(self, window: &Window, at: Timestamp, paths: &mut Paths) -> f64 {
        if at < window.start {
            return 0.5;
        }
        let averaged = averaged(window.interval);
        let left = window.end.since(at);
        let (expected, deviation) = if left >= averaged {
            let secs = (left as f64 / SECOND as f64).max(1.0);
            (self.log(at, paths), deviation(self.asset) * secs.sqrt())
        } else {
            // A part of the mean is known already; only the rest still moves.
            let known = self.mean(Timestamp(window.end.0 - averaged), at, paths);
            let open = left as f64 / averaged as f64;
            let secs = (left as f64 / SECOND as f64).max(0.25);
            let expected = known * (1.0 - open) + self.log(at, paths) * open;
            (expected, deviation(self.asset) * secs.sqrt() * open.max(0.02) / 1.7)
        };
        below((expected - window.strike) / deviation)
    }

    /// A window with its threshold. Before its start the threshold is not used.
    pub(super) fn window(self, interval: Interval, start: Timestamp, end: Timestamp) -> Window {
        Window { interval, start, end, strike: self.reference(interval, start) }
    }
}

/// A window and its threshold as a log price.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    interval: Interval,
    start: Timestamp,
    end: Timestamp,
    strike: f64,
}

fn averaged(interval: Interval) -> u64 {
    match interval {
        Interval::FiveMinutes => 30 * SECOND,
        Interval::FifteenMinutes => 60 * SECOND,
        Interval::Hour | Interval::FourHours | Interval::Daily => SECOND,
    }
}

/// Long-run price of an asset in dollars.
fn level(asset: Asset) -> f64 {
    match asset {
        Asset::Btc => 65_000.0,
        Asset::Eth => 2_400.0,
        Asset::Sol => 150.0,
        Asset::Xrp => 1.6,
        Asset::Spx => 7_100.0,
        Asset::Ndx => 25_000.0,
    }
}

fn deviation(asset: Asset) -> f64 {
    BITCOIN_DEVIATION
        * match asset {
            Asset::Btc => 1.0,
            Asset::Eth => 1.4,
            Asset::Sol => 1.8,
            Asset::Xrp => 1.7,
            Asset::Spx => 0.35,
            Asset::Ndx => 0.45,
        }
}

/// How the markets of an event depend on each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// Exactly one outcome wins (neg-risk).
    Exclusive,
    /// Thresholds on one quantity: those below the result win.
    Thresholds,
}

/// The course of an event: the fair prices of its markets, and their results.
#[derive(Clone, Debug)]
pub(super) struct Fortune {
    seed: u64,
    shape: Shape,
    start: Timestamp,
    end: Timestamp,
    deviation: f64,
    markets: Vec<Prospect>,
}

/// The fixed values of one market of an event.
#[derive(Clone, Copy, Debug)]
struct Prospect {
    /// Its log odds at the start.
    prior: f64,
    ending: Ending,
}

/// The result of an event for one of its markets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Yes,
    No,
    /// Cancelled: each share pays half.
    Split,
}

impl Fortune {
    /// The event of a seed. With `may_split` it may be cancelled.
    pub(super) fn new(
        seed: u64,
        shape: Shape,
        markets_count: u8,
        may_split: bool,
        (start, end): (Timestamp, Timestamp),
    ) -> Fortune {
        const SPLIT_IN: u64 = 16;
        let lively = fraction(mix(seed, 1));
        let deviation = CALM_DEVIATION + (LIVELY_DEVIATION - CALM_DEVIATION) * lively * lively;
        let prior = |market: u8| (fraction(mix(seed, 0x9210 + u64::from(market))) - 0.5) * 3.0;
        let markets = (0..markets_count).map(|market| Prospect { prior: prior(market), ending: Ending::Split });
        let mut fortune = Fortune { seed, shape, start, end, deviation, markets: markets.collect() };
        if !(may_split && mix(seed, 2).is_multiple_of(SPLIT_IN)) {
            let luck = fraction(mix(seed, 3));
            for market in 0..markets_count {
                let ending = if fortune.wins(market, luck) { Ending::Yes } else { Ending::No };
                fortune.markets[usize::from(market)].ending = ending;
            }
        }
        fortune
    }

    /// Whether a market wins with this share of luck.
    fn wins(&self, market: u8, luck: f64) -> bool {
        match self.shape {
            Shape::Thresholds => luck < yes_share(self.markets[0].prior - self.threshold(market)),
            Shape::Exclusive => {
                let weights = |markets: &[Prospect]| markets.iter().map(|market| weight(market.prior)).sum::<f64>();
                let (before, market) = self.markets.split_at(usize::from(market));
                let (total, before) = (weights(&self.markets), weights(before));
                let after = before + weight(market[0].prior);
                (before..after).contains(&(luck * total))
            }
        }
    }

    /// Offset of a threshold in log odds: lower thresholds are more likely.
    fn threshold(&self, market: u8) -> f64 {
        (f64::from(market) - f64::from(self.markets.len() as u8 - 1) / 2.0) * 1.3
    }

    /// The result for a market; a function of the seed.
    pub(super) fn ending(&self, market: u8) -> Ending {
        self.markets[usize::from(market)].ending
    }

    /// The fair price of Yes at a moment: it moves randomly, and approaches the result in the last part of the event.
    pub(super) fn chance(&self, market: u8, at: Timestamp, paths: &mut Paths) -> f64 {
        let life = self.end.since(self.start).max(1) as f64;
        let lived = at.since(self.start) as f64 / life;
        let known = (lived * lived * lived * lived).min(1.0);
        let closing = |standing: f64, ending: Ending| match ending {
            Ending::Yes => standing * (1.0 - known) + CERTAINTY * known,
            Ending::No => standing * (1.0 - known) - CERTAINTY * known,
            Ending::Split => standing * (1.0 - known),
        };
        let mut wandering = |path: u64| (paths.at(mix(self.seed, path), at) * self.deviation).clamp(-2.5, 2.5);
        match self.shape {
            // One quantity moves all markets; each approaches its own result.
            Shape::Thresholds => {
                let standing = self.markets[0].prior + wandering(0xc0) - self.threshold(market);
                yes_share(closing(standing, self.ending(market)))
            }
            Shape::Exclusive => {
                let (mut total, mut own) = (0.0, 0.0);
                for (number, Prospect { prior, ending }) in (0..).zip(&self.markets) {
                    let weighs = weight(closing(prior + wandering(0xe0 + u64::from(number)), *ending));
                    total += weighs;
                    if number == market {
                        own = weighs;
                    }
                }
                own / total
            }
        }
    }
}

/// Converts log odds to a probability.
fn yes_share(odds: f64) -> f64 {
    let (yes, no) = (weight(odds / 2.0), weight(-odds / 2.0));
    yes / (yes + no)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Timestamp = Timestamp(1_790_000_100 * SECOND);

    #[test]
    fn a_window_is_open_at_its_start_and_decided_at_its_end() {
        let (mut ups, mut right, mut windows, mut paths) = (0, 0, 0, Paths::default());
        for number in 0..400 {
            let underlying = Underlying::new(7, Asset::Btc);
            let (start, end) = (START.plus(number * 300 * SECOND), START.plus((number + 1) * 300 * SECOND));
            let window = underlying.window(Interval::FiveMinutes, start, end);
            assert_eq!(underlying.chance(&window, Timestamp(start.0 - 1), &mut paths), 0.5);
            let late = underlying.chance(&window, Timestamp(end.0 - 100_000), &mut paths);
            let up = underlying.goes_up(Interval::FiveMinutes, start, end);
            (ups, windows) = (ups + u32::from(up), windows + 1);
            right += u32::from((late > 0.5) == up);
        }
        assert!((150..250).contains(&ups), "{ups} of {windows} go up");
        assert!(right >= 395, "{right} of {windows} are known at their end");
    }

    #[test]
    fn chances_of_an_event_are_consistent_and_lead_to_its_ending() {
        let end = START.plus(86_400 * SECOND);
        for seed in 0..200 {
            let mut paths = Paths::default();
            let exclusive = Fortune::new(seed, Shape::Exclusive, 5, false, (START, end));
            let endings: Vec<Ending> = (0..5).map(|market| exclusive.ending(market)).collect();
            assert_eq!(endings.iter().filter(|ending| **ending == Ending::Yes).count(), 1, "{endings:?}");
            let sum: f64 = (0..5).map(|market| exclusive.chance(market, START.plus(1_000 * SECOND), &mut paths)).sum();
            assert!((sum - 1.0).abs() < 1e-9);

            let thresholds = Fortune::new(seed, Shape::Thresholds, 4, false, (START, end));
            let endings: Vec<bool> = (0..4).map(|market| thresholds.ending(market) == Ending::Yes).collect();
            assert!(endings.windows(2).all(|pair| pair[0] >= pair[1]), "{endings:?}");
            for (fortune, count) in [(&exclusive, 5), (&thresholds, 4)] {
                for market in 0..count {
                    let late = fortune.chance(market, Timestamp(end.0 - 1), &mut paths);
                    let yes = fortune.ending(market) == Ending::Yes;
                    assert!(if yes { late > 0.9 } else { late < 0.1 }, "{late} for {yes}");
                }
            }
        }
        let single = |seed, may_split| Fortune::new(seed, Shape::Thresholds, 1, may_split, (START, end)).ending(0);
        assert!((0..200).any(|seed| single(seed, true) == Ending::Split));
        assert!((0..200).all(|seed| single(seed, false) != Ending::Split));
    }

    #[test]
    fn bitcoin_moves_as_recorded() {
        let underlying = Underlying::new(3, Asset::Btc);
        let price = |secs: u64| underlying.price(START.plus(secs * SECOND));
        let squares = (0..2_000_u64).map(|number| {
            let moved = price(number * 977 + 300) / price(number * 977) - 1.0;
            moved * moved
        });
        let deviation = (squares.sum::<f64>() / 2_000.0).sqrt();
        assert!((6e-4..1.3e-3).contains(&deviation), "{deviation} in 5 minutes, recorded 9.3e-4");
    }
}
