//! The stream `mix1M`: orders for one book with prices from 1 to 999 ticks around 500, the usual way to measure books.
//! A thousand orders rest first; then of ten operations five rest, four cancel a random earlier order, which may be
//! gone, and one takes about two orders. A plain book runs the stream once; its result is what every other book must
//! reach.

use crate::chance::Chance;
use std::collections::VecDeque;

/// The best bid is below it and the best ask above.
pub const MID: u16 = 500;
/// Farthest price of a resting order, ticks from the middle.
pub const REACH: u16 = 96;
const RESTING_FIRST: usize = 1_000;
/// Least shares of an order: the venue's minimum.
const SHARES_MIN: u64 = 5;

/// One operation. An order is identified by the position in the stream where it was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Rests: it never matches the other side.
    Rest { is_bid: bool, tick: u16, shares: u64 },
    /// Of an earlier order; in two of three cases it was taken or cancelled before.
    Cancel { of: usize },
    /// At any price.
    Take { is_buy: bool, shares: u64 },
}

/// The result of a book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// Matches of a taking with a resting order.
    pub fills: u64,
    pub shares: u64,
    /// Orders that a cancel found.
    pub cancelled: u64,
}

/// The stream and its expected result.
pub fn stream(count: usize) -> (Vec<Operation>, Matched) {
    let mut chance = Chance::seeded(23);
    let mut rested = Vec::new();
    let mut operations = Vec::with_capacity(count);
    for index in 0..count {
        operations.push(match chance.below(10) {
            0..4 if index >= RESTING_FIRST => {
                Operation::Cancel { of: rested[chance.below(rested.len() as u64) as usize] }
            }
            4 if index >= RESTING_FIRST => {
                Operation::Take { is_buy: chance.below(2) == 0, shares: SHARES_MIN + chance.below(196) }
            }
            _ => {
                // Denser near the middle.
                let within = chance.below(u64::from(REACH)) + 1;
                let away = 1 + chance.below(within) as u16;
                let is_bid = chance.below(2) == 0;
                let tick = if is_bid { MID - away } else { MID + away };
                rested.push(index);
                Operation::Rest { is_bid, tick, shares: SHARES_MIN + chance.below(91) }
            }
        });
    }
    let matched = Plain::new(count).run(&operations);
    (operations, matched)
}

/// The book that defines the expected result.
struct Plain {
    /// By tick; orders in order of arrival, cancelled ones included.
    levels: Vec<VecDeque<usize>>,
    /// By order: shares that are left of it.
    left: Vec<u64>,
}

impl Plain {
    fn new(count: usize) -> Plain {
        Plain { levels: vec![VecDeque::new(); 2 * usize::from(MID)], left: vec![0; count] }
    }

    fn run(mut self, operations: &[Operation]) -> Matched {
        let mut matched = Matched::default();
        for (index, operation) in operations.iter().enumerate() {
            match *operation {
                Operation::Rest { tick, shares, .. } => {
                    self.left[index] = shares;
                    self.levels[usize::from(tick)].push_back(index);
                }
                Operation::Cancel { of } => {
                    matched.cancelled += u64::from(self.left[of] > 0);
                    self.left[of] = 0;
                }
                Operation::Take { is_buy, shares } => self.take(is_buy, shares, &mut matched),
            }
        }
        matched
    }

    fn take(&mut self, is_buy: bool, mut shares: u64, matched: &mut Matched) {
        for away in 1..=REACH {
            let tick = usize::from(if is_buy { MID + away } else { MID - away });
            while let Some(order) = self.levels[tick].front().copied() {
                let taken = shares.min(self.left[order]);
                shares -= taken;
                self.left[order] -= taken;
                matched.fills += u64::from(taken > 0);
                matched.shares += taken;
                if self.left[order] > 0 {
                    return;
                }
                self.levels[tick].pop_front();
                if shares == 0 {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_has_its_mix() {
        let count = 50_000;
        let (operations, matched) = stream(count);
        assert_eq!(operations, stream(count).0, "the same each time");
        let (mut rests, mut cancels, mut takes) = (0, 0, 0);
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
                    cancels += 1;
                }
                Operation::Take { .. } => takes += 1,
            }
        }
        let part = |of: usize| of * 100 / (count - RESTING_FIRST);
        assert!((39..=41).contains(&part(cancels)) && (9..=11).contains(&part(takes)), "four and one of ten");
        let found = matched.cancelled as f64 / cancels as f64;
        assert!((0.2..0.5).contains(&found), "of three cancels one finds its order: {found}");
        let each = matched.fills as f64 / takes as f64;
        assert!((1.5..3.5).contains(&each), "a take matches about two orders: {each}");
        println!("operations: {rests} rest, {cancels} cancel, {takes} take, {} fills", matched.fills);
    }
}
