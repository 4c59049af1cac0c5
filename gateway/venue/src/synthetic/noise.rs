//! Stateless randomness: every value is a function of the seed and its purpose, so that a restart finds the same world.
//! Only exact operations (+ − × ÷ √) are used: the results are the same on every machine.

#[cfg(test)]
use super::work;
use engine::time::{SECOND, Timestamp};

/// A pseudo-random number from two numbers.
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

/// The value at `fraction` of a distribution given by some of its quantiles, with linear interpolation.
pub(super) fn quantile(table: &[(f64, f64)], fraction: f64) -> f64 {
    let at = table.partition_point(|row| row.0 <= fraction).clamp(1, table.len() - 1);
    let ((from, low), (to, high)) = (table[at - 1], table[at]);
    low + (high - low) * ((fraction - from) / (to - from)).clamp(0.0, 1.0)
}

/// Octaves of a path: periods from 2 seconds to 48 days, each twice as long as the last.
const OCTAVES: usize = 22;
const SHORTEST_SECS: f64 = 2.0;

/// Weight of each octave: twice the square root of its period.
const WEIGHTS: [f64; OCTAVES] = {
    let mut weights = [
        2.0 * std::f64::consts::SQRT_2,
        4.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
        0.0,
    ];
    let mut octave = 2;
    while octave < OCTAVES {
        weights[octave] = weights[octave - 2] * 2.0;
        octave += 1;
    }
    weights
};

/// A path in time that moves by about `√seconds` over any number of seconds up to its longest period, and returns:
/// noise on coarser and coarser grids, each weighted with the root of its period. A function of seed and time. It
/// caches the current cell of each grid, since the next moment is in nearly the same cells.
#[derive(Clone, Debug)]
struct Path {
    seed: u64,
    /// Index of the cell in the finest grid; shifted right by n bits, that in the grid of octave n.
    finest: u64,
    cells: [Cell; OCTAVES],
}

/// The noise at the start of a cell, and its increase to the end.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    from: f64,
    more: f64,
}

impl Path {
    /// The path of a seed, in this cell of the finest grid.
    fn new(seed: u64, finest: u64) -> Path {
        let mut path = Path { seed, finest, cells: [Cell::default(); OCTAVES] };
        path.draw(OCTAVES);
        path
    }

    /// Draws the cells of the first `count` octaves.
    fn draw(&mut self, count: usize) {
        for (octave, cell) in (0..).zip(&mut self.cells[..count]) {
            let (of, step) = (mix(self.seed, octave), self.finest >> octave);
            let (from, to) = (fraction(mix(of, step)), fraction(mix(of, step + 1)));
            *cell = Cell { from, more: to - from };
        }
        #[cfg(test)]
        work::note(work::Kind::Cells, count);
    }

    /// The value at a time, in units of the shortest period.
    fn at(&mut self, mut steps: f64) -> f64 {
        // Scales the standard deviation over 5 minutes to √300 (see the test).
        const SCALE: f64 = 0.78;
        let left = self.finest ^ steps as u64;
        if left != 0 {
            self.finest ^= left;
            self.draw(OCTAVES.min((u64::BITS - left.leading_zeros()) as usize));
        }
        let mut value = 0.0;
        for (cell, weight) in self.cells.iter().zip(WEIGHTS) {
            // Whole numbers of this size are exact, so this is the fractional part.
            let part = steps - (steps as i64) as f64;
            value += (cell.from + cell.more * part - 0.5) * weight;
            steps *= 0.5;
        }
        value * SCALE
    }
}

/// Cached paths by seed. Their number is bounded: a market uses one, or one per market of its event.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths(Vec<Path>);

impl Paths {
    /// The value of a seed's path at any time.
    pub(super) fn at(&mut self, seed: u64, at: Timestamp) -> f64 {
        let steps = at.0 as f64 / SECOND as f64 / SHORTEST_SECS;
        let known = self.0.iter().position(|path| path.seed == seed);
        let index = known.unwrap_or_else(|| {
            self.0.push(Path::new(seed, steps as u64));
            self.0.len() - 1
        });
        self.0[index].at(steps)
    }
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

    /// The same without a cache.
    fn path(seed: u64, at: Timestamp) -> f64 {
        const SCALE: f64 = 0.78;
        let secs = at.0 as f64 / SECOND as f64;
        let (mut value, mut period) = (0.0, SHORTEST_SECS);
        for octave in 0..OCTAVES {
            let steps = secs / period;
            let (step, part) = (steps as u64, steps - steps.floor());
            let of = mix(seed, octave as u64);
            let (from, to) = (fraction(mix(of, step)), fraction(mix(of, step + 1)));
            value += (from + (to - from) * part - 0.5) * 2.0 * period.sqrt();
            period *= 2.0;
        }
        value * SCALE
    }

    /// Forwards by small and large steps, backwards, from the first time to the last, alternately.
    #[test]
    fn a_followed_path_equals_one_computed_from_scratch() {
        let (seed, mut compared) = (5, 0);
        println!("seed {seed}");
        let mut paths = Paths::default();
        let mut draw = seed;
        for round in 0..40_000_u64 {
            draw = mix(draw, round);
            let base = 1_790_000_000 * SECOND + round * 25_000;
            let at = Timestamp(match round % 16 {
                0 => draw >> 12,
                1 => base - draw % (60 * SECOND),
                2 => (draw >> 40) % 5 * SECOND,
                3 => u64::MAX - draw % SECOND,
                _ => base,
            });
            let path_seed = draw % 3;
            assert_eq!(paths.at(path_seed, at).to_bits(), path(path_seed, at).to_bits(), "{path_seed} at {at:?}");
            compared += 1;
        }
        assert_eq!((compared, paths.0.len()), (40_000, 3));
    }

    #[test]
    fn a_path_draws_only_the_cells_that_it_comes_to() {
        let begin = Timestamp(1_790_000_000 * SECOND);
        let mut paths = Paths::default();
        paths.at(1, begin);
        assert_eq!(work::take(work::Kind::Cells), OCTAVES);
        // In four minutes it enters 120 cells of the finest grid, 60 of the next one, and so on.
        for step in 1..=4_800 {
            paths.at(1, begin.plus(step * SECOND / 20));
        }
        let drawn = work::take(work::Kind::Cells);
        assert!((230..260).contains(&drawn), "{drawn} cells");
    }

    #[test]
    fn a_path_moves_with_the_root_of_time() {
        let path = |seed, at| Paths::default().at(seed, at);
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
