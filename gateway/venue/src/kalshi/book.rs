//! One market's bids of both sides, folded from a snapshot and signed changes into absolute sizes.

use engine::amount::{Price, Qty, TickSize};

/// Which of the two tokens a bid is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Yes,
    No,
}

impl Side {
    pub(super) fn named(name: &str) -> Option<Side> {
        match name {
            "yes" => Some(Side::Yes),
            "no" => Some(Side::No),
            _ => None,
        }
    }

    /// Index of the token, in order of outcomes.
    pub(super) fn index(self) -> usize {
        match self {
            Side::Yes => 0,
            Side::No => 1,
        }
    }
}

/// The bids of both sides, as in Kalshi's books; an ask of one token is a bid of the other at one minus its price.
#[derive(Debug, Default)]
pub(super) struct Book {
    /// Worst first; every size is above 0.
    bids: [Vec<(Price, Qty)>; 2],
    /// The source of the book.
    pub(super) fold: Fold,
}

/// The source of a book, which decides which changes may be applied to it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Fold {
    /// No snapshot so far, or a message was missed since.
    #[default]
    Lost,
    /// From a REST response: no connection's changes may be applied to it.
    Fetched,
    /// A snapshot on this connection and every change since.
    Followed(u8),
}

impl Book {
    /// Of [`Book::levels`], from this source.
    pub(super) fn of_levels(bids: [Vec<(Price, Qty)>; 2], fold: Fold) -> Book {
        Book { bids, fold }
    }

    /// The bids of both sides, worst first.
    pub(super) fn levels(&self) -> &[Vec<(Price, Qty)>; 2] {
        &self.bids
    }

    /// Clears the book, for a snapshot from this source.
    pub(super) fn reset(&mut self, fold: Fold) {
        self.bids.iter_mut().for_each(Vec::clear);
        self.fold = fold;
    }

    /// Applies a signed change and returns the new absolute size; `None` if it would be below zero.
    pub(super) fn change(&mut self, side: Side, price: Price, change: i64) -> Option<Qty> {
        let bids = &mut self.bids[side.index()];
        let found = bids.binary_search_by_key(&price, |level| level.0);
        let before = found.map_or(0, |at| bids[at].1.0);
        let after = Qty(before.checked_add_signed(change)?);
        match found {
            Ok(at) if after.is_zero() => {
                bids.remove(at);
            }
            Ok(at) => bids[at].1 = after,
            Err(_) if after.is_zero() => {}
            Err(at) => bids.insert(at, (price, after)),
        }
        Some(after)
    }

    /// Bids of one side, best first.
    pub(super) fn bids(&self, side: Side) -> impl Iterator<Item = (Price, Qty)> {
        self.bids[side.index()].iter().rev().copied()
    }

    /// Asks of one side, best first: the other side's bids, mirrored.
    pub(super) fn asks(&self, side: Side) -> impl Iterator<Item = (Price, Qty)> {
        let other = match side {
            Side::Yes => Side::No,
            Side::No => Side::Yes,
        };
        self.bids(other).map(|(price, qty)| (price.complement(), qty))
    }

    /// The midpoint of Yes in 1/20 000 dollar; `None` if a side is empty.
    pub(super) fn doubled_midpoint(&self) -> Option<u32> {
        let (bid, ask) = (self.bids(Side::Yes).next()?.0, self.asks(Side::Yes).next()?.0);
        Some(u32::from(bid.0) + u32::from(ask.0))
    }
}

/// The price grid of a market: one range, or several when it is tapered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Grid(Vec<Range>);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Range {
    /// First Yes price of the range, and the end of the range (exclusive), in 10⁻⁴ dollars.
    pub(super) start: u16,
    pub(super) end: u16,
    pub(super) tick: TickSize,
    /// The venue's step is not an engine tick: levels are rounded outward to `tick`.
    pub(super) rounded: bool,
}

impl Grid {
    /// A grid of ranges in any order; without ranges, whole cents.
    pub(super) fn new(mut ranges: Vec<Range>) -> Grid {
        if ranges.is_empty() {
            ranges.push(Range { start: 0, end: 10_000, tick: TickSize(100), rounded: false });
        }
        ranges.sort_by_key(|range| range.start);
        Grid(ranges)
    }

    /// Its ranges, in order.
    pub(super) fn ranges(&self) -> &[Range] {
        &self.0
    }

    /// The finest tick of all ranges, with which the market is listed.
    pub(super) fn finest(&self) -> TickSize {
        self.0.iter().map(|range| range.tick).min().expect("a grid has at least one range")
    }

    /// Whether levels may be rounded.
    pub(super) fn rounds(&self) -> bool {
        self.0.iter().any(|range| range.rounded)
    }

    /// The tick, if all ranges have the same.
    pub(super) fn only(&self) -> Option<TickSize> {
        let tick = self.finest();
        self.0.iter().all(|range| range.tick == tick).then_some(tick)
    }

    /// The tick at the book's midpoint.
    pub(super) fn tick_at(&self, doubled_midpoint: u32) -> TickSize {
        self.range(doubled_midpoint).tick
    }

    /// The price of a bid in the book: rounded down in a range with an irregular step, which moves a bid and its
    /// mirrored ask away from the midpoint. `None` if it is rounded to 0.
    pub(super) fn outward(&self, side: Side, price: Price) -> Option<Price> {
        let of_yes = match side {
            Side::Yes => price,
            Side::No => price.complement(),
        };
        let range = self.range(2 * u32::from(of_yes.0));
        let price = if range.rounded { Price(price.0 - price.0 % range.tick.0) } else { price };
        (price >= Price::LOWEST).then_some(price)
    }

    fn range(&self, doubled: u32) -> &Range {
        let after = self.0.partition_point(|range| u32::from(range.start) * 2 <= doubled);
        &self.0[after.saturating_sub(1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_fold_into_absolute_sizes() {
        let mut book = Book::default();
        let five = Price(500);
        for (change, expected) in [(30, Some(30)), (-10, Some(20)), (-20, Some(0)), (-1, None), (7, Some(7))] {
            assert_eq!(book.change(Side::Yes, five, change), expected.map(Qty), "{change}");
        }
        book.change(Side::No, Price(9_000), 4);
        assert_eq!(book.asks(Side::Yes).next(), Some((Price(1_000), Qty(4))));
        assert_eq!(book.doubled_midpoint(), Some(1_500));
        book.change(Side::Yes, five, -7);
        assert_eq!(book.doubled_midpoint(), None);
        assert_eq!(book.change(Side::Yes, five, i64::MIN), None);
    }

    #[test]
    fn a_tapered_grid_has_the_tick_of_its_midpoint() {
        let range = |start, end, tick| Range { start, end, tick: TickSize(tick), rounded: false };
        let grid = Grid::new(vec![range(9_000, 10_000, 10), range(0, 1_000, 10), range(1_000, 9_000, 100)]);
        assert_eq!(grid.finest(), TickSize(10));
        for (doubled, tick) in [(0, 10), (1_999, 10), (2_000, 100), (17_999, 100), (18_000, 10), (20_000, 10)] {
            assert_eq!(grid.tick_at(doubled), TickSize(tick), "{doubled}");
        }
        assert_eq!((grid.only(), Grid::new(Vec::new()).only()), (None, Some(TickSize(100))));
    }

    #[test]
    fn irregular_steps_are_rounded_away_from_the_midpoint() {
        let grid = Grid::new(vec![Range { start: 0, end: 10_000, tick: TickSize(100), rounded: true }]);
        assert_eq!(grid.outward(Side::Yes, Price(4_150)), Some(Price(4_100)));
        // An ask of Yes at 0.4150 is a bid for No at 0.5850.
        assert_eq!(grid.outward(Side::No, Price(5_850)).map(Price::complement), Some(Price(4_200)));
        assert_eq!(grid.outward(Side::Yes, Price(50)), None);
    }
}
