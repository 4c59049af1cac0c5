//! One side of a book from step to step: which prices can have a level, and what each of them drew.
//!
//! A price draws for a whole life: whether its level is there, by its distance from the touch, and how large it is. All
//! draws are functions of the seed, the price and the time, so what is kept here saves work and decides nothing: a side
//! that was followed is the same as one that begins at that moment.

use super::noise::{fraction, mix, quantile};
use crate::{BookSide, Level};
use engine::amount::{Price, Qty, TickSize};
use engine::book::ladder::RANK_MAX;
use engine::time::Timestamp;

/// How often a level is there, by its distance from the touch in ticks (the Kalshi tapes).
const OCCUPIED: [f64; 13] = [0.98, 0.80, 0.75, 0.68, 0.63, 0.59, 0.57, 0.55, 0.53, 0.50, 0.46, 0.43, 0.40];
/// Farther out.
const OCCUPIED_FAR: f64 = 0.37;
/// Size of a level in shares, by quantile: near the touch of the Kalshi tapes 10 % are below 2, half below 40, 90 %
/// below 280, and some are very large.
const SIZES: [(f64, f64); 6] = [(0.0, 0.1), (0.1, 3.0), (0.5, 40.0), (0.9, 280.0), (0.99, 2_000.0), (1.0, 8_000.0)];
/// Deep markets hold more on each level: a recorded election book held thousands where the tapes hold dozens.
const DEPTH_MAX: f64 = 30.0;
/// Ticks from the touch in which every level can be there; beyond, only whole cents.
const DENSE_TICKS: u16 = 30;
const WHOLE_CENT: u16 = 100;
// In the dense part the place of a price is its distance from the touch, and the table ends there.
const _: () = assert!(OCCUPIED.len() <= DENSE_TICKS as usize);
/// Lives of levels, in steps of the market: some levels change with nearly every message, most stand for long.
/// With some 40 levels about three change a step.
const LIVES: [u64; 6] = [3, 6, 12, 25, 50, 100];

/// What the levels of a market are drawn from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws {
    seed: u64,
    /// Time between two steps, in µs.
    length: u64,
    /// How many times as large as elsewhere its levels are.
    depth: f64,
}

impl Draws {
    /// Of a market with that seed, whose steps are `length` µs apart.
    pub(super) fn new(seed: u64, length: u64) -> Draws {
        Draws { seed, length, depth: 1.0 + (DEPTH_MAX - 1.0) * fraction(mix(seed, 0xdee9)).powi(4) }
    }

    /// What a price draws for the life that `at` lies in, and the end of that life.
    fn draw(&self, side: BookSide, price: Price, at: Timestamp) -> (u64, Timestamp) {
        #[cfg(test)]
        super::work::note(super::work::Kind::Levels, 1);
        let draw = mix(self.seed, (side as u64) << 32 | u64::from(price.0));
        let life = LIVES[(draw % LIVES.len() as u64) as usize] * self.length;
        let offset = draw % life;
        let age = (at.0 + offset) / life;
        (mix(draw, age), Timestamp((age + 1) * life - offset))
    }

    /// How large a level of that draw is where it is there.
    fn size(&self, draw: u64) -> Qty {
        let shares = quantile(&SIZES, fraction(mix(draw, 1))) * self.depth;
        // Half of the sizes are round, as people write them; the others are what fills left over.
        let hundredths = (shares * 100.0) as u64;
        let hundredths =
            if mix(draw, 2).is_multiple_of(2) { (hundredths / 500).max(1) * 500 } else { hundredths.max(1) };
        Qty(hundredths * 10_000)
    }
}

/// Where a side begins: its best price, on the grid of a tick.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Touch {
    pub(super) best: Price,
    pub(super) tick: TickSize,
}

/// One side of the first token, best first.
#[derive(Clone, Debug)]
pub(super) struct Side {
    side: BookSide,
    /// What it was followed by last.
    last: Option<(Draws, Touch)>,
    /// By place, counted from the touch: when the life of what is drawn there ends. Apart from the rest, as each step
    /// looks at all of these and at few of those.
    ends: Vec<Timestamp>,
    drawn: Vec<Drawn>,
}

/// What one price drew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Drawn {
    /// Of this side: ascending is best first.
    rank: u16,
    draw: u64,
}

impl Drawn {
    /// Its draw where that makes a level at this place.
    fn there(self, place: usize) -> Option<u64> {
        let occupied = OCCUPIED.get(place).copied().unwrap_or(OCCUPIED_FAR);
        (fraction(self.draw) < occupied).then_some(self.draw)
    }
}

impl Side {
    /// A side without levels.
    pub(super) fn new(side: BookSide) -> Side {
        Side { side, last: None, ends: Vec::new(), drawn: Vec::new() }
    }

    /// Follows the market to a moment that is not before the last one. `changed` is told the levels that are others than
    /// before, best first, with the size that they have now; 0 = gone.
    pub(super) fn follow(&mut self, draws: &Draws, touch: Touch, at: Timestamp, mut changed: impl FnMut(Level)) {
        let before = self.last.replace((*draws, touch));
        if before.is_none_or(|(before, _)| before.length != draws.length) {
            // Lives are counted in steps.
            self.ends.fill(Timestamp(0));
        }
        if before.is_none_or(|(_, before)| before != touch) {
            return self.go_to(draws, touch, at, changed);
        }
        for (place, end) in self.ends.iter_mut().enumerate() {
            if at < *end {
                continue;
            }
            let drawn = &mut self.drawn[place];
            let (price, before) = (self.side.price(drawn.rank), drawn.there(place));
            (drawn.draw, *end) = draws.draw(self.side, price, at);
            tell(draws, price, before, drawn.there(place), &mut changed);
        }
    }

    /// The touch is another one: some prices come into question, some no longer, and the others lie farther from it or
    /// nearer to it.
    fn go_to(&mut self, draws: &Draws, touch: Touch, at: Timestamp, mut changed: impl FnMut(Level)) {
        let (ends, drawn) = (std::mem::take(&mut self.ends), std::mem::take(&mut self.drawn));
        self.ends.reserve(ends.len());
        self.drawn.reserve(ends.len());
        let mut before = drawn.into_iter().zip(ends).enumerate().peekable();
        for (place, rank) in ranks(self.side.rank(touch.best), touch.tick).enumerate() {
            let price = self.side.price(rank);
            while let Some((place, (drawn, _))) = before.next_if(|(_, (drawn, _))| drawn.rank < rank) {
                tell(draws, self.side.price(drawn.rank), drawn.there(place), None, &mut changed);
            }
            let known = before.next_if(|(_, (drawn, _))| drawn.rank == rank);
            let lives = known.filter(|(_, (_, end))| at < *end).map(|(_, (drawn, end))| (drawn.draw, end));
            let (draw, end) = lives.unwrap_or_else(|| draws.draw(self.side, price, at));
            let drawn = Drawn { rank, draw };
            let was = known.and_then(|(place, (drawn, _))| drawn.there(place));
            tell(draws, price, was, drawn.there(place), &mut changed);
            self.ends.push(end);
            self.drawn.push(drawn);
        }
        for (place, (drawn, _)) in before {
            tell(draws, self.side.price(drawn.rank), drawn.there(place), None, &mut changed);
        }
    }

    /// Its levels, best first.
    pub(super) fn levels(&self) -> impl Iterator<Item = Level> {
        let drawn =
            self.last.iter().flat_map(|(draws, _)| self.drawn.iter().enumerate().map(move |drawn| (draws, drawn)));
        drawn.filter_map(|(draws, (place, drawn))| Some((self.side.price(drawn.rank), draws.size(drawn.there(place)?))))
    }
}

#[cfg(test)]
impl Side {
    /// A fault: the first level whose life ends keeps what it drew for one life more.
    pub(super) fn keep_one_longer(&mut self) {
        let first = self.ends.iter_mut().min();
        first.into_iter().for_each(|end| *end = end.plus(10 * self.last.map_or(0, |(draws, _)| draws.length)));
    }
}

/// Tells of a level that is another one than before; both are draws that make a level.
fn tell(draws: &Draws, price: Price, before: Option<u64>, now: Option<u64>, mut changed: impl FnMut(Level)) {
    // The same draw is the same size.
    if before == now {
        return;
    }
    let [before, now] = [before, now].map(|draw| draw.map_or(Qty::ZERO, |draw| draws.size(draw)));
    if before != now {
        changed((price, now));
    }
}

/// Ranks of the prices that can have a level, best first.
fn ranks(best: u16, tick: TickSize) -> impl Iterator<Item = u16> {
    let [best, tick, dense] = [best, tick.0, DENSE_TICKS].map(u32::from);
    let coarse = tick.max(u32::from(WHOLE_CENT));
    let near = (0..=dense).map(move |distance| best + distance * tick);
    let far = ((best + (dense + 1) * tick).div_ceil(coarse)..).map(move |number| number * coarse);
    near.chain(far).take_while(|rank| *rank <= u32::from(RANK_MAX)).map(|rank| rank as u16)
}
