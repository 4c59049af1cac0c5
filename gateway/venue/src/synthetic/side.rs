//! One side of a book from step to step: the prices that may have a level, and the draw of each.
//!
//! A price draws for the lifetime of its level: whether the level exists, depending on its distance from the touch, and
//! its size. All draws are functions of seed, price and time, so the cached draws only save work: a side that was
//! followed equals one that is built from scratch.

use super::noise::{fraction, mix, quantile};
use crate::{BookSide, Level};
use engine::amount::{Price, Qty, TickSize};
use engine::book::ladder::RANK_MAX;
use engine::time::Timestamp;

/// How often a level exists, by its distance from the touch in ticks (from the Kalshi tapes).
const OCCUPIED: [f64; 13] = [0.98, 0.80, 0.75, 0.68, 0.63, 0.59, 0.57, 0.55, 0.53, 0.50, 0.46, 0.43, 0.40];
/// The same for larger distances.
const OCCUPIED_FAR: f64 = 0.37;
/// Size of a level in shares, by quantile. Near the touch of the Kalshi tapes 10 % are below 2, half below 40, 90 %
/// below 280, and some are very large.
const SIZES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 3.0), (0.5, 40.0), (0.9, 280.0), (0.99, 2_000.0), (1.0, 8_000.0)];
/// Largest factor on the sizes of a market: a recorded election book had thousands where the tapes have dozens.
const DEPTH_MAX: f64 = 30.0;
/// Up to this distance from the touch every tick may have a level; beyond it, only whole cents.
const DENSE_TICKS: u16 = 30;
const WHOLE_CENT: u16 = 100;
// In the dense part the index of a price is its distance from the touch, and the table ends there.
const _: () = assert!(OCCUPIED.len() <= DENSE_TICKS as usize);
/// Lifetimes of levels, in steps of the market: some levels change with nearly every step, most last long. Of about 40
/// levels, about three change per step.
const LIVES: [u64; 6] = [3, 6, 12, 25, 50, 100];

/// The parameters of the draws of a market.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    seed: u64,
    /// Time between two steps, in µs.
    length: u64,
    /// Factor on the sizes of its levels.
    depth: f64,
}

impl Draws {
    /// For a market with this seed, whose steps are `length` µs apart.
    pub(super) fn new(seed: u64, length: u64) -> Draws {
        Draws { seed, length, depth: 1.0 + (DEPTH_MAX - 1.0) * fraction(mix(seed, 0xdee9)).powi(4) }
    }

    /// The draw of a price for the lifetime that contains `at`, and the end of that lifetime.
    fn draw(&self, side: BookSide, price: Price, at: Timestamp) -> (u64, Timestamp) {
        #[cfg(test)]
        super::work::note(super::work::Kind::Levels, 1);
        let draw = mix(self.seed, (side as u64) << 32 | u64::from(price.0));
        let life = LIVES[(draw % LIVES.len() as u64) as usize] * self.length;
        let offset = draw % life;
        let age = (at.0 + offset) / life;
        (mix(draw, age), Timestamp((age + 1) * life - offset))
    }

    /// The size of a level with this draw.
    fn size(&self, draw: u64) -> Qty {
        let shares = quantile(&SIZES, fraction(mix(draw, 1))) * self.depth;
        // Half of the sizes are round, as in orders; the others are remainders after fills.
        let hundredths = (shares * 100.0) as u64;
        let hundredths =
            if mix(draw, 2).is_multiple_of(2) { (hundredths / 500).max(1) * 500 } else { hundredths.max(1) };
        Qty(hundredths * 10_000)
    }
}

/// The start of a side: its best price and the tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) best: Price,
    pub(super) tick: TickSize,
}

/// One side of the first token, best first.
#[derive(Clone, Debug)]
pub(super) struct Side {
    side: BookSide,
    /// The parameters of the last call of [`Side::follow`].
    last: Option<(Draws, Touch)>,
    /// End of the lifetime of each draw, by distance from the touch. Separate from `drawn`, since each step reads all
    /// of these and few of the draws.
    ends: Vec<Timestamp>,
    drawn: Vec<Drawn>,
}

/// The draw of one price.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawn {
    /// The rank on this side: ascending is best first.
    rank: u16,
    draw: u64,
}

impl Drawn {
    /// The draw, if it makes a level at this index.
    fn level_at(self, index: usize) -> Option<u64> {
        let occupied = OCCUPIED.get(index).copied().unwrap_or(OCCUPIED_FAR);
        (fraction(self.draw) < occupied).then_some(self.draw)
    }
}

impl Side {
    /// A side without levels.
    pub(super) fn new(side: BookSide) -> Side {
        Side { side, last: None, ends: Vec::new(), drawn: Vec::new() }
    }

    /// Advances to `at`, which is not before the last call. `changed` gets the changed levels, best first, with their
    /// new sizes; 0 = removed.
    pub(super) fn follow(&mut self, draws: &Draws, touch: Touch, at: Timestamp, mut changed: impl FnMut(Level)) {
        let before = self.last.replace((*draws, touch));
        if before.is_none_or(|(before, _)| before.length != draws.length) {
            // Lifetimes are counted in steps.
            self.ends.fill(Timestamp(0));
        }
        if before.is_none_or(|(_, before)| before != touch) {
            return self.move_to(draws, touch, at, changed);
        }
        for (index, end) in self.ends.iter_mut().enumerate() {
            if at < *end {
                continue;
            }
            let drawn = &mut self.drawn[index];
            let (price, before) = (self.side.price(drawn.rank), drawn.level_at(index));
            (drawn.draw, *end) = draws.draw(self.side, price, at);
            report(draws, price, before, drawn.level_at(index), &mut changed);
        }
    }

    /// Advances to another touch: the set of prices and their distances from the touch change.
    fn move_to(&mut self, draws: &Draws, touch: Touch, at: Timestamp, mut changed: impl FnMut(Level)) {
        let (ends, drawn) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.drawn));
        self.ends.reserve(ends.len());
        self.drawn.reserve(ends.len());
        let mut before = drawn.into_iter().zip(ends).enumerate().peekable();
        for (index, rank) in ranks(self.side.rank(touch.best), touch.tick).enumerate() {
            let price = self.side.price(rank);
            while let Some((index, (drawn, _))) = before.next_if(|(_, (drawn, _))| drawn.rank < rank) {
                report(draws, self.side.price(drawn.rank), drawn.level_at(index), None, &mut changed);
            }
            let known = before.next_if(|(_, (drawn, _))| drawn.rank == rank);
            let still_valid = known.filter(|(_, (_, end))| at < *end).map(|(_, (drawn, end))| (drawn.draw, end));
            let (draw, end) = still_valid.unwrap_or_else(|| draws.draw(self.side, price, at));
            let drawn = Drawn { rank, draw };
            let was = known.and_then(|(index, (drawn, _))| drawn.level_at(index));
            report(draws, price, was, drawn.level_at(index), &mut changed);
            self.ends.push(end);
            self.drawn.push(drawn);
        }
        for (index, (drawn, _)) in before {
            report(draws, self.side.price(drawn.rank), drawn.level_at(index), None, &mut changed);
        }
    }

    /// Its levels, best first.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> {
        let drawn =
            self.last.iter().flat_map(|(draws, _)| self.drawn.iter().enumerate().map(move |drawn| (draws, drawn)));
        drawn.filter_map(|(draws, (index, drawn))| {
            Some((self.side.price(drawn.rank), draws.size(drawn.level_at(index)?)))
        })
    }
}

#[cfg(test)]
impl Side {
    /// A fault for tests: the first draw that ends is kept for another lifetime.
    pub(super) fn keep_one_too_long(&mut self) {
        let first = self.ends.iter_mut().min();
        first.into_iter().for_each(|end| *end = end.plus(10 * self.last.map_or(0, |(draws, _)| draws.length)));
    }
}

/// Reports a level if it changed; `before` and `now` are draws that make a level.
fn report(draws: &Draws, price: Price, before: Option<u64>, now: Option<u64>, mut changed: impl FnMut(Level)) {
    // Equal draws have equal sizes.
    if before == now {
        return;
    }
    let [before, now] = [before, now].map(|draw| draw.map_or(Qty::ZERO, |draw| draws.size(draw)));
    if before != now {
        changed((price, now));
    }
}

/// Ranks of the prices that may have a level, best first.
fn ranks(best: u16, tick: TickSize) -> impl Iterator<Item = u16> {
    let [best, tick, dense] = [best, tick.0, DENSE_TICKS].map(u32::from);
    let coarse = tick.max(u32::from(WHOLE_CENT));
    let near = (0..=dense).map(move |distance| best + distance * tick);
    let far = ((best + (dense + 1) * tick).div_ceil(coarse)..).map(move |number| number * coarse);
    near.chain(far).take_while(|rank| *rank <= u32::from(RANK_MAX)).map(|rank| rank as u16)
}
