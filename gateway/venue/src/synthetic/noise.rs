//! Randomness that needs no state: every value is a function of the seed and of what it is for, so that a restart
//! finds the same world. Only exact operations (+ − × ÷ √) are used: the same bits on every machine.

#[cfg(test)]
use super::work;
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

/// Octaves of a path: periods from 2 seconds to 48 days, each twice as long as the one before.
const OCTAVES: usize = 22;
const SHORTEST_SECS: f64 = 2.0;

/// What each octave weighs: twice the root of its period.
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

/// A path in time that moves about `√seconds` over any number of seconds up to its longest period, and comes back:
/// noise on ever coarser grids, each weighted with the root of its period. A function of the seed and of the time; what
/// is kept are the cells of the grids that it was asked in last, as the next moment lies in nearly all of them again.
#[derive(Clone, Debug)]
struct Path {
    seed: u64,
    /// Number of the cell of the finest grid. That of the grid of octave n is the same without its last n bits.
    finest: u64,
    cells: [Cell; OCTAVES],
}

/// The noise at the begin of a cell, and how much more it is at its end.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    from: f64,
    more: f64,
}

impl Path {
    /// The path of a seed in a cell of the finest grid.
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

    /// The value at that many of the shortest periods.
    fn at(&mut self, mut steps: f64) -> f64 {
        // Makes the standard deviation over 5 minutes one times √300 s (see the test).
        const SCALE: f64 = 0.78;
        let left = self.finest ^ steps as u64;
        if left != 0 {
            self.finest ^= left;
            self.draw(OCTAVES.min((u64::BITS - left.leading_zeros()) as usize));
        }
        let mut value = 0.0;
        for (cell, weight) in self.cells.iter().zip(WEIGHTS) {
            // Whole numbers of this size are exact, so this is the part behind the point.
            let part = steps - (steps as i64) as f64;
            value += (cell.from + cell.more * part - 0.5) * weight;
            steps *= 0.5;
        }
        value * SCALE
    }
}

/// Paths that are followed, each by its seed. They are as many as are asked for: a market asks for one, or for one for
/// each market of its event.
#[derive(Clone, Debug, Default)]
pub(super) struct Paths(Vec<Path>);

impl Paths {
    /// Where the path of a seed is at a moment, before or behind those that it was asked for.
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

    /// The same without anything kept.
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

    /// Forwards by small and large steps, backwards, from the begin of time to its end, and by turns.
    #[test]
    fn a_path_that_is_followed_is_the_one_that_is_worked_out_from_nothing() {
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
        // Over four minutes it comes to 120 cells of the finest grid, 60 of the next one, and so on.
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
