//! Candles: the course of a price within an interval, and the folding of short intervals into longer ones.
//!
//! Pure: the caller passes the intervals in their order. An interval without a price is left out, never made up.

use crate::amount::{Cash, Qty};

/// A price in units of 5 · 10⁻⁵ USD, so that the midpoint of two prices is exact: 0..=20 000.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mid(pub u16);

/// The price of a market's first outcome over an interval, and the shares filled on this server by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Candle {
    pub open: Mid,
    pub high: Mid,
    pub low: Mid,
    pub close: Mid,
    pub volume: [Qty; 2],
}

/// A candle with the start of its interval, Unix seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    pub start: u64,
    pub candle: Candle,
}

/// Consecutive intervals of one length. They start at multiples of the length since 1970; weeks start on Mondays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grid {
    secs: u64,
    /// Start of the first interval.
    offset: u64,
}

/// The first Monday of 1970.
const FIRST_MONDAY: u64 = 4 * 86_400;
const WEEK_SECS: u64 = 7 * 86_400;
/// Longest interval in minutes: a hundred years.
pub const MINUTES_MAX: u64 = 100 * 366 * 1_440;

impl Mid {
    pub const ONE: Mid = Mid(20_000);

    /// From 10⁻⁶ USD a share, half up; `None` outside 0..=1.
    pub fn of(price: Cash) -> Option<Mid> {
        let units = u16::try_from((price.0 + 25).div_euclid(50)).ok()?;
        (units <= Mid::ONE.0).then_some(Mid(units))
    }

    /// 10⁻⁶ USD a share.
    pub fn cash(self) -> Cash {
        Cash(i64::from(self.0) * 50)
    }

    pub fn complement(self) -> Mid {
        Mid(Mid::ONE.0.saturating_sub(self.0))
    }
}

impl Candle {
    /// One price, nothing filled.
    pub fn at(mid: Mid) -> Candle {
        Candle { open: mid, high: mid, low: mid, close: mid, volume: [Qty(0); 2] }
    }

    /// Appends a later interval.
    pub fn join(&mut self, later: &Candle) {
        self.high = self.high.max(later.high);
        self.low = self.low.min(later.low);
        self.close = later.close;
        for (volume, later) in self.volume.iter_mut().zip(later.volume) {
            volume.0 = volume.0.saturating_add(later.0);
        }
    }

    /// The candle of the second outcome.
    pub fn complement(&self) -> Candle {
        Candle {
            open: self.open.complement(),
            high: self.low.complement(),
            low: self.high.complement(),
            close: self.close.complement(),
            volume: [self.volume[1], self.volume[0]],
        }
    }
}

impl Grid {
    /// Weeks from Monday to Sunday, UTC.
    pub const WEEK: Grid = Grid { secs: WEEK_SECS, offset: FIRST_MONDAY };
    pub const DAY: Grid = Grid { secs: 86_400, offset: 0 };
    pub const HOUR: Grid = Grid { secs: 3_600, offset: 0 };

    /// Intervals of `minutes`: at least one, at most [`MINUTES_MAX`].
    pub const fn minutes(minutes: u64) -> Grid {
        let minutes = if minutes == 0 { 1 } else { minutes };
        Grid { secs: 60 * if minutes > MINUTES_MAX { MINUTES_MAX } else { minutes }, offset: 0 }
    }

    pub const fn secs(self) -> u64 {
        self.secs
    }

    /// Start of the interval that contains `at` (Unix seconds). An interval before the first one starts at 0.
    pub fn start(self, at: u64) -> u64 {
        let since = at.saturating_sub(self.offset);
        if at < self.offset { 0 } else { self.offset + (since - since % self.secs) }
    }
}

/// Folds buckets in the order of their starts into the intervals of `grid`. A bucket belongs to the interval that
/// contains its start; an interval without a bucket is left out.
pub fn fold(buckets: impl IntoIterator<Item = Bucket>, grid: Grid) -> Vec<Bucket> {
    let mut folded: Vec<Bucket> = Vec::new();
    for bucket in buckets {
        let start = grid.start(bucket.start);
        match folded.last_mut() {
            Some(last) if last.start == start => last.candle.join(&bucket.candle),
            _ => folded.push(Bucket { start, candle: bucket.candle }),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::chance::Chance;
    use std::collections::BTreeMap;

    #[test]
    fn prices_have_half_units() {
        for (cash, expected) in [
            (415_000, Some(Mid(8_300))),
            (50, Some(Mid(1))),
            (24, Some(Mid(0))),
            (25, Some(Mid(1))),
            (1_000_000, Some(Mid::ONE)),
            (1_000_025, None),
            (-26, None),
            (i64::MAX - 25, None),
        ] {
            assert_eq!(Mid::of(Cash(cash)), expected, "{cash}");
        }
        assert_eq!((Mid(8_300).cash(), Mid(8_300).complement().cash()), (Cash(415_000), Cash(585_000)));
    }

    #[test]
    fn intervals_are_aligned() {
        // 2026-10-02T09:14:05Z is a Friday.
        let at = 1_790_932_445;
        for (grid, expected) in [
            (Grid::minutes(1), 1_790_932_440),
            (Grid::minutes(0), 1_790_932_440),
            (Grid::minutes(7), at - at % 420),
            (Grid::HOUR, 1_790_931_600),
            (Grid::DAY, 1_790_899_200),
            (Grid::WEEK, 1_790_553_600),
            (Grid::minutes(u64::MAX), 0),
        ] {
            assert_eq!(grid.start(at), expected, "{grid:?}");
            assert_eq!(grid.start(expected), expected, "{grid:?}");
        }
        assert_eq!((Grid::WEEK.start(FIRST_MONDAY - 1), Grid::WEEK.start(0)), (0, 0));
        assert_eq!(Grid::DAY.start(u64::MAX), u64::MAX - u64::MAX % 86_400);
    }

    /// The naive model: all samples of an interval together.
    #[test]
    fn folding_agrees_with_a_naive_model() {
        let (mut chance, mut cases) = (Chance::new(0x5eed), 0);
        for _ in 0..300 {
            let mut at = chance.below(4_000_000);
            let mut samples: Vec<(u64, Mid, u64)> = Vec::new();
            for _ in 0..chance.below(200) {
                at += chance.below(4_000);
                samples.push((at, Mid(chance.below(20_001) as u16), chance.below(3)));
            }
            let first = [Grid::minutes(1), Grid::minutes(5), Grid::HOUR][chance.below(3) as usize];
            let bucket = |(at, mid, shares): &(u64, Mid, u64)| Bucket {
                start: first.start(*at),
                candle: Candle { volume: [Qty(*shares), Qty(0)], ..Candle::at(*mid) },
            };
            let fine = fold(samples.iter().map(bucket), first);
            for grid in [first, Grid::minutes(10), Grid::HOUR, Grid::DAY, Grid::WEEK] {
                if grid.secs() % first.secs() != 0 {
                    continue;
                }
                let mut model: BTreeMap<u64, Vec<(Mid, u64)>> = BTreeMap::new();
                for (at, mid, shares) in &samples {
                    model.entry(grid.start(*at)).or_default().push((*mid, *shares));
                }
                let model: Vec<Bucket> = model
                    .into_iter()
                    .map(|(start, samples)| {
                        let mids = || samples.iter().map(|(mid, _)| *mid);
                        let candle = Candle {
                            open: samples[0].0,
                            high: mids().max().expect("not empty"),
                            low: mids().min().expect("not empty"),
                            close: samples[samples.len() - 1].0,
                            volume: [Qty(samples.iter().map(|(_, shares)| shares).sum()), Qty(0)],
                        };
                        Bucket { start, candle }
                    })
                    .collect();
                assert_eq!(fold(fine.iter().copied(), grid), model, "{grid:?}");
                // The second outcome's view folds to the second outcome's view.
                let other = |bucket: &Bucket| Bucket { candle: bucket.candle.complement(), ..*bucket };
                let mirrored: Vec<Bucket> = model.iter().map(other).collect();
                assert_eq!(fold(fine.iter().map(other), grid), mirrored);
                cases += 1;
            }
        }
        println!("folding: {cases} cases");
        assert!(cases > 500);
    }
}
