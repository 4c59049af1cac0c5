//! The stream `mix1M`: orders for one book with prices from 1 to 999 ticks around 500, as books are usually measured. A
//! thousand orders rest first; then of ten operations five rest, four cancel an order that still rests, and one takes some
//! two orders. A plain book runs along while the stream is made, so that each cancel finds its order; what it matched is
//! what every other book must match.

use crate::chance::Chance;
use std::collections::VecDeque;

/// The best bid lies below it and the best ask above.
pub const MID: u16 = 500;
/// Farthest price that an order rests at, ticks from the middle.
pub const REACH: u16 = 96;
const RESTING_FIRST: usize = 1_000;
/// Least shares of an order; the venue takes no less.
const SHARES_MIN: u64 = 5;

/// One operation. An order is named by the place in the stream that it was made at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Rests: it never meets the other side.
    Rest { is_bid: bool, tick: u16, shares: u64 },
    /// Of an order that rests, at least in part.
    Cancel { of: usize },
    /// At any price.
    Take { is_buy: bool, shares: u64 },
}

/// What a book matched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Meetings of a taking with a resting order.
    pub fills: u64,
    pub shares: u64,
}

/// The stream, and what it comes to.
pub fn stream(count: usize) -> (Vec<Operation>, Matched) {
    let mut chance = Chance::seeded(23);
    let (mut book, mut matched) = (Plain::new(), Matched::default());
    let operations = (0..count).map(|index| {
        let operation = match chance.below(10) {
            kind if index >= RESTING_FIRST && kind < 4 && !book.resting.is_empty() => {
                let at = chance.below(book.resting.len() as u64) as usize;
                Operation::Cancel { of: book.resting[at] }
            }
            4 if index >= RESTING_FIRST => {
                Operation::Take { is_buy: chance.below(2) == 0, shares: 5 + chance.below(196) }
            }
            _ => {
                // Denser near the middle.
                let near = chance.below(u64::from(REACH)) + 1;
                let away = 1 + chance.below(near) as u16;
                let is_bid = chance.below(2) == 0;
                let tick = if is_bid { MID - away } else { MID + away };
                Operation::Rest { is_bid, tick, shares: SHARES_MIN + chance.below(91) }
            }
        };
        book.run(index, operation, &mut matched);
        operation
    });
    (operations.collect(), matched)
}

/// The book that runs along.
struct Plain {
    /// By tick; orders in their order of arrival, those that are gone among them.
    levels: Vec<VecDeque<usize>>,
    /// By order: what is left of it, and its place in `resting`.
    orders: Vec<(u64, usize)>,
    resting: Vec<usize>,
}

impl Plain {
    fn new() -> Plain {
        Plain { levels: vec![VecDeque::new(); 1_000], orders: Vec::new(), resting: Vec::new() }
    }

    fn run(&mut self, index: usize, operation: Operation, matched: &mut Matched) {
        self.orders.push((0, usize::MAX));
        match operation {
            Operation::Rest { tick, shares, .. } => {
                self.orders[index] = (shares, self.resting.len());
                self.resting.push(index);
                self.levels[usize::from(tick)].push_back(index);
            }
            Operation::Cancel { of } => self.remove(of),
            Operation::Take { is_buy, mut shares } => {
                let mut away = 1;
                while shares > 0 && away <= REACH {
                    let tick = usize::from(if is_buy { MID + away } else { MID - away });
                    let Some(order) = self.levels[tick].front().copied() else {
                        away += 1;
                        continue;
                    };
                    let taken = shares.min(self.orders[order].0);
                    shares -= taken;
                    self.orders[order].0 -= taken;
                    matched.fills += u64::from(taken > 0);
                    matched.shares += taken;
                    if self.orders[order].0 == 0 {
                        self.levels[tick].pop_front();
                        // One that was cancelled is no longer among those that rest.
                        if taken > 0 {
                            self.remove(order);
                        }
                    }
                }
            }
        }
    }

    /// From those that rest; its level passes over it later.
    fn remove(&mut self, order: usize) {
        let (_, at) = std::mem::replace(&mut self.orders[order], (0, usize::MAX));
        self.resting.swap_remove(at);
        if let Some(moved) = self.resting.get(at) {
            self.orders[*moved].1 = at;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_what_it_says() {
        let count = 50_000;
        let (operations, matched) = stream(count);
        assert_eq!(operations, stream(count).0, "the same each time");
        let (mut rests, mut cancelled, mut takes) = (0, std::collections::BTreeSet::new(), 0);
        for (index, operation) in operations.iter().enumerate() {
            match *operation {
                Operation::Rest { is_bid, tick, shares } => {
                    assert!(
                        if is_bid { tick < MID } else { tick > MID } && tick.abs_diff(MID) <= REACH,
                        "{operation:?}"
                    );
                    assert!(shares >= SHARES_MIN, "{operation:?}");
                    rests += 1;
                }
                Operation::Cancel { of } => {
                    assert!(of < index && matches!(operations[of], Operation::Rest { .. }), "{operation:?}");
                    assert!(cancelled.insert(of), "cancelled once: {operation:?}");
                }
                Operation::Take { .. } => takes += 1,
            }
        }
        let part = |of: usize| of * 100 / (count - RESTING_FIRST);
        assert!((39..=41).contains(&part(cancelled.len())) && (9..=11).contains(&part(takes)), "four and one of ten");
        let each = matched.fills as f64 / takes as f64;
        assert!((1.5..3.5).contains(&each), "a take meets some two orders: {each}");
        println!("operations: {rests} rest, {} cancel, {takes} take, {} fills", cancelled.len(), matched.fills);
    }
}
