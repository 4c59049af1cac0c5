//! Randomness that needs no state: every value is a function of the seed and of what it is for, so that a restart
//! finds the same world. Only exact operations (+ − × ÷ √) are used: the same bits on every machine.

use engine::time::{SECOND, Timestamp};

/// A number drawn from two.
pub(super) fn mix(a: u64, b: u64) -> u64 {
    let mut x = a.rotate_left(25) ^ b.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x2545_f491_4f6c_dd1d);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A draw as a fraction in [0, 1).
pub(super) fn fraction(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

/// The value at `fraction` of a distribution given by some of its quantiles, in between on straight lines.
pub(super) fn quantile(table: &[(f64, f64)], fraction: f64) -> f64 {
    let at = table.partition_point(|row| row.0 <= fraction).clamp(1, table.len() - 1);
    let ((from, low), (to, high)) = (table[at - 1], table[at]);
    low + (high - low) * ((fraction - from) / (to - from)).clamp(0.0, 1.0)
}

/// Octaves of a path: periods from 2 seconds to 48 days.
const OCTAVES: u32 = 22;
const SHORTEST_SECS: f64 = 2.0;

/// A path in time that moves about `√seconds` over any number of seconds up to its longest period, and comes back:
/// noise on ever coarser grids, each weighted with the root of its period.
pub(super) fn path(seed: u64, at: Timestamp) -> f64 {
    // Makes the standard deviation over 5 minutes one times √300 s (see the test).
    const SCALE: f64 = 0.78;
    let secs = at.0 as f64 / SECOND as f64;
    let (mut value, mut period) = (0.0, SHORTEST_SECS);
    for octave in 0..OCTAVES {
        let steps = secs / period;
        let (step, part) = (steps as u64, steps - steps.floor());
        let of = mix(seed, u64::from(octave));
        let (from, to) = (fraction(mix(of, step)), fraction(mix(of, step + 1)));
        value += (from + (to - from) * part - 0.5) * 2.0 * period.sqrt();
        period *= 2.0;
    }
    value * SCALE
}

/// The share of outcomes below `x` deviations, for heavy tails (Student's t with two degrees of freedom).
pub(super) fn below(x: f64) -> f64 {
    0.5 + x / (2.0 * (2.0 + x * x).sqrt())
}

/// A positive weight that grows like an exponential in the middle and slower outside.
pub(super) fn weight(x: f64) -> f64 {
    if x >= 0.0 { 1.0 + x + x * x / 2.0 } else { 1.0 / (1.0 - x + x * x / 2.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_moves_with_the_root_of_time() {
        for (secs, low, high) in [(30_u64, 0.6, 1.3), (300, 0.85, 1.15), (3_600, 0.7, 1.35)] {
            let squares = (0..4_000_u64).map(|number| {
                let at = Timestamp(1_790_000_000 * SECOND + number * 7_919 * SECOND / 3);
                let moved = path(number % 8, at.plus(secs * SECOND)) - path(number % 8, at);
                moved * moved
            });
            let deviation = (squares.sum::<f64>() / 4_000.0).sqrt() / (secs as f64).sqrt();
            assert!((low..high).contains(&deviation), "{secs} s: {deviation}");
        }
    }

    #[test]
    fn quantiles_lie_on_their_table() {
        let table = [(0.0, 1.0), (0.5, 10.0), (1.0, 110.0)];
        for (at, expected) in [(0.0, 1.0), (0.25, 5.5), (0.5, 10.0), (0.75, 60.0), (1.0, 110.0)] {
            assert_eq!(quantile(&table, at), expected);
        }
        assert_eq!(below(0.0), 0.5);
        assert!(below(-20.0) < 0.003 && weight(-3.0) * weight(3.0) == 1.0);
    }
}
