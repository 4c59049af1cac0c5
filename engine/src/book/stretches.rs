//! Intervals of a price history, folded to fit the maximum count of points of an answer.

use crate::book::candles::{Bucket, Grid, fold};
use crate::id::MarketId;
use std::ops::RangeInclusive;
use std::pin::Pin;

/// A reader's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryQuery {
    pub grid: Grid,
    /// Maximum count of points in the answer.
    pub most: usize,
    /// Lengths in minutes that are tried in this order if there would be more points; those not coarser than `grid` are
    /// skipped.
    pub coarser: &'static [u64],
}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stretches {
    /// Oldest first; an interval without a price is left out.
    pub points: Vec<Bucket>,
    /// The requested intervals, or the coarser ones that were used.
    pub grid: Grid,
    /// Stored data could not be read, or there is no store.
    pub broken: bool,
}

/// A price history that can be queried.
pub trait PriceHistory: Send + Sync {
    /// Whether the store has failed: until the next start nothing is stored and nothing is found.
    fn is_lost(&self) -> bool;

    /// The intervals of a market's first outcome with a start within `secs` (Unix), as `query`. `None` if there is no
    /// answer in time.
    fn find(
        &self,
        market: MarketId,
        secs: RangeInclusive<u64>,
        query: HistoryQuery,
    ) -> Pin<Box<dyn Future<Output = Option<Stretches>> + '_>>;
}

impl HistoryQuery {
    /// Folds buckets, which are in the order of their starts and at least a minute apart. If the coarsest length still
    /// gives too many points, the newest are returned.
    pub fn of(&self, buckets: &[Bucket]) -> (Vec<Bucket>, Grid) {
        self.choose(buckets.len(), |grid| fold(buckets.iter().copied(), grid))
    }

    /// Chooses the length for `count` buckets. A length is tried only if its points can fit at all: two years are not
    /// folded nine times.
    fn choose(&self, count: usize, mut folded: impl FnMut(Grid) -> Vec<Bucket>) -> (Vec<Bucket>, Grid) {
        let coarser = self.coarser.iter().map(|minutes| Grid::minutes(*minutes));
        let mut sizes =
            std::iter::once(self.grid).chain(coarser.filter(|size| size.secs() > self.grid.secs())).peekable();
        // The count of points of the last length tried; at first that of the buckets, at most one a minute.
        let (mut count, mut finer) = (count as u64, Grid::minutes(1));
        while let Some(size) = sizes.next() {
            let is_last = sizes.peek().is_none();
            if !is_last && count > room(size, finer).saturating_mul(self.most as u64) {
                continue;
            }
            let mut points = folded(size);
            if is_last || points.len() <= self.most {
                points.drain(..points.len().saturating_sub(self.most));
                return (points, size);
            }
            (count, finer) = (points.len() as u64, size);
        }
        (Vec::new(), self.grid)
    }
}

/// The maximum count of finer intervals that overlap one interval.
fn room(size: Grid, finer: Grid) -> u64 {
    let (size, finer) = (size.secs(), finer.secs());
    if size.is_multiple_of(finer) { size / finer } else { size / finer + 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::book::candles::{Candle, Mid};

    const COARSER: &[u64] = &[1, 5, 10, 30, 60, 180, 360, 720, 1_440];

    fn query(minutes: u64) -> HistoryQuery {
        HistoryQuery { grid: Grid::minutes(minutes), most: 5_000, coarser: COARSER }
    }

    fn bucket(minute: u64) -> Bucket {
        Bucket { start: minute * 60, candle: Candle::at(Mid((minute % 20_000) as u16)) }
    }

    fn every(step: u64, count: u64) -> Vec<Bucket> {
        (0..count).map(|number| bucket(number * step)).collect()
    }

    #[test]
    fn long_histories_are_thinned() {
        let cases = [
            (every(1, 5_000), 1, (5_000, 1)),
            (every(1, 5_001), 1, (1_001, 5)),
            (every(1, 5_001), 2, (2_501, 2)),
            (every(1, 43_200), 1, (4_320, 10)),
            (every(1, 43_200), 7, (4_320, 10)),
            // Few points over a long time need no thinning.
            (every(1_440, 5_000), 1, (5_000, 1)),
            (every(1_440, 6_000), 1, (5_000, 1_440)),
            (every(2_880, 6_000), 2_000, (5_000, 2_000)),
            (Vec::new(), 1, (0, 1)),
        ];
        for (buckets, minutes, expected) in &cases {
            let (points, size) = query(*minutes).of(buckets);
            assert_eq!((points.len(), size), (expected.0, Grid::minutes(expected.1)));
            // The newest points are always included.
            let last = |buckets: &[Bucket]| buckets.last().map(|bucket| size.start(bucket.start));
            assert_eq!(last(&points), last(buckets));
        }
        println!("thinning: {} cases", cases.len());
    }

    #[test]
    fn sizes_that_cannot_fit_are_not_tried() {
        // A full store: two years by hour, the last seven days by minute.
        let hours = 723 * 24;
        let full: Vec<Bucket> =
            (0..hours).map(|hour| bucket(hour * 60)).chain((hours * 60..(hours + 168) * 60).map(bucket)).collect();
        let newest = HistoryQuery { coarser: &[], most: 1, ..query(1_440) };
        let cases: [(&[Bucket], HistoryQuery, &[u64]); 7] = [
            (&full, query(1), &[10, 60, 360]),
            (&full, query(7), &[7, 30, 180, 360]),
            (&full, query(1_440), &[1_440]),
            (&full, newest, &[1_440]),
            (&every(1, 10_080), query(1), &[5]),
            (&every(1, 60), query(1), &[1]),
            (&[], query(1), &[1]),
        ];
        for (buckets, query, expected) in cases {
            let mut tried = Vec::new();
            let chosen = query.choose(buckets.len(), |grid| {
                tried.push(grid.secs() / 60);
                fold(buckets.iter().copied(), grid)
            });
            assert_eq!(tried, expected, "{query:?}");
            assert!(chosen == naive(buckets, &query), "{query:?}");
        }
        println!("sizes tried: {} cases", cases.len());
    }

    /// Tries every length.
    fn naive(buckets: &[Bucket], query: &HistoryQuery) -> (Vec<Bucket>, Grid) {
        let coarser = query.coarser.iter().map(|minutes| Grid::minutes(*minutes));
        let mut found = (Vec::new(), query.grid);
        for size in std::iter::once(query.grid).chain(coarser.filter(|size| size.secs() > query.grid.secs())) {
            found = (fold(buckets.iter().copied(), size), size);
            if found.0.len() <= query.most {
                return found;
            }
        }
        found.0.drain(..found.0.len() - query.most);
        found
    }

    #[test]
    fn choosing_agrees_with_trying_every_size() {
        let (mut seed, mut cases) = (0x5eed_0005u64, 0);
        let mut below = |bound: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (seed >> 33) % bound
        };
        for _ in 0..2_000 {
            let gap = [1, 2, 9, 70, 2_000][below(5) as usize];
            let mut minute = below(100);
            let buckets: Vec<Bucket> = (0..below(400))
                .map(|_| {
                    minute += 1 + below(gap);
                    bucket(minute)
                })
                .collect();
            let grid = Grid::minutes([1, 2, 7, 61, 1_440, 2_000][below(6) as usize]);
            let query = HistoryQuery { grid, most: 1 + below(60) as usize, coarser: COARSER };
            assert_eq!(query.of(&buckets), naive(&buckets, &query), "case {cases}: {query:?}");
            cases += 1;
        }
        println!("choosing a size: {cases} cases");
    }
}
