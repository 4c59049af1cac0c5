//! Durations counted in fixed buckets: two relaxed additions for each duration, no lock, no allocation. (The library's
//! own histogram locks.) Read only when metrics are requested.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Buckets with an upper bound; one more takes the durations above all of them.
pub const BOUNDS: usize = 24;

/// Durations by buckets whose bounds double, from `FIRST_NS` nanoseconds to 2²³ times that.
#[derive(Debug, Default)]
pub struct Histogram<const FIRST_NS: u64> {
    counts: [AtomicU64; BOUNDS + 1],
    sum_ns: AtomicU64,
}

/// From a microsecond to eight seconds: for waits on sockets and disks.
pub type Micros = Histogram<1_000>;
/// From 50 nanoseconds to 0.4 seconds: for memory accesses.
pub type Nanos = Histogram<50>;

/// The contents of a histogram at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct Counted {
    pub sum_seconds: f64,
    pub count: u64,
    /// Upper bound in seconds, and the durations in that bucket alone; the last bound is infinity.
    pub buckets: Vec<(f64, u64)>,
}

impl<const FIRST_NS: u64> Histogram<FIRST_NS> {
    /// Counts a duration.
    pub fn note(&self, took: Duration) {
        self.note_ns(u64::try_from(took.as_nanos()).unwrap_or(u64::MAX));
    }

    /// As [`Histogram::note`], in whole microseconds.
    pub fn note_us(&self, took_us: u64) {
        self.note_ns(took_us.saturating_mul(1_000));
    }

    fn note_ns(&self, took_ns: u64) {
        self.counts[Self::bucket(took_ns)].fetch_add(1, Relaxed);
        self.sum_ns.fetch_add(took_ns, Relaxed);
    }

    /// The first bucket whose bound is not below the duration.
    fn bucket(took_ns: u64) -> usize {
        let firsts = took_ns.div_ceil(FIRST_NS).max(1);
        // The smallest power of two that is not below it.
        ((u64::BITS - (firsts - 1).leading_zeros()) as usize).min(BOUNDS)
    }

    /// All that was counted. The count is the sum of the buckets, so that the two agree while other threads count.
    pub fn counted(&self) -> Counted {
        let bound = |at: usize| if at < BOUNDS { (FIRST_NS << at) as f64 / 1e9 } else { f64::INFINITY };
        let buckets: Vec<(f64, u64)> =
            self.counts.iter().enumerate().map(|(at, count)| (bound(at), count.load(Relaxed))).collect();
        Counted {
            sum_seconds: self.sum_ns.load(Relaxed) as f64 / 1e9,
            count: buckets.iter().map(|(_, count)| count).sum(),
            buckets,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(took_ns: u64) -> usize {
        let histogram = Micros::default();
        histogram.note(Duration::from_nanos(took_ns));
        let counted = histogram.counted();
        assert_eq!(counted.count, 1);
        assert_eq!(counted.sum_seconds, took_ns as f64 / 1e9);
        counted.buckets.iter().position(|(_, count)| *count == 1).expect("it is in one of them")
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        let mut cases = 0;
        for (took_ns, expected) in [(0, 0), (1, 0), (999, 0), (3_000, 2), (5_001, 3)] {
            assert_eq!(bucket_of(took_ns), expected, "{took_ns} ns");
            cases += 1;
        }
        for at in 0..BOUNDS {
            let bound = 1_000 << at;
            assert_eq!((bucket_of(bound), bucket_of(bound + 1)), (at, at + 1), "{bound} ns");
            cases += 2;
        }
        println!("buckets: {cases} cases");
    }

    #[test]
    fn bounds_rise_to_infinity() {
        let bounds: Vec<f64> = Nanos::default().counted().buckets.iter().map(|(bound, _)| *bound).collect();
        assert_eq!((bounds[0], bounds[BOUNDS - 1]), (50e-9, 50e-9 * f64::from(1 << 23)));
        assert!(bounds.is_sorted() && bounds[BOUNDS] == f64::INFINITY);
        println!("bounds: {} cases", bounds.len());
    }

    #[test]
    fn durations_above_all_bounds_are_counted_and_do_not_break_the_sum() {
        let histogram = Micros::default();
        for (took, us) in [(Duration::MAX, 0), (Duration::ZERO, u64::MAX), (Duration::from_secs(9), 8_388_609)] {
            let before = histogram.counted().count;
            histogram.note(took);
            histogram.note_us(us);
            assert_eq!(histogram.counted().count, before + 2);
        }
        let counted = histogram.counted();
        assert_eq!(counted.buckets[BOUNDS].1, 4);
        assert_eq!(counted.count, 6);
        println!("overflow: 6 cases");
    }

    #[test]
    fn sums_and_counts_of_several_threads_are_whole() {
        let histogram = Micros::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..10_000).for_each(|us| histogram.note_us(us)));
            }
        });
        let counted = histogram.counted();
        assert_eq!((counted.count, counted.sum_seconds), (40_000, 4.0 * 49.995));
        println!("threads: 40000 cases");
    }
}
