//! The book that an order meets: a token's own levels merged with its complement's (execution.md §3).
//!
//! A bid for the complement at b is an ask for the token at 1 − b, and the other way round. Three rules, in this order:
//!
//! 1. Mirrors: where the best five own levels of a side equal the complement's mirrored ones in price and size (and there
//!    are as many), the venue publishes one book twice; the own levels stand alone, so depth is never counted twice.
//!    Judged for each side by itself, so that one side that has not arrived yet does not double the other.
//! 2. Else both are merged; equal prices become one level whose parts are kept apart, since what a user takes is
//!    remembered on the level that it came from (execution.md §9).
//! 3. A merged book that is crossed or locked (best bid ≥ best ask) is not believed: both sides fall back to the own
//!    levels alone.

use crate::amount::{Cash, Price, Qty};
use crate::book::depth::midpoint;
use crate::book::ladder::{Ladder, Slot};
use crate::book::{BookSide, Stamp, crossed};

/// Levels of each side that decide whether two books are mirrors.
const MIRROR_LEVELS: usize = 5;

/// What one book contributes to a level.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// 0 = nothing.
    pub size: Qty,
    pub stamp: Stamp,
}

/// One price of one side of the effective book. At least one part has a size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectiveLevel {
    pub price: Price,
    /// From the token's own book, at `price`.
    pub own: Part,
    /// From the complement's book: the other side, at `price.complement()`.
    pub mirrored: Part,
}

/// A consistent copy of the effective book.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Effective {
    /// Best first: descending prices.
    pub bids: Vec<EffectiveLevel>,
    /// Best first: ascending prices.
    pub asks: Vec<EffectiveLevel>,
    /// The version of the pair of books it was made from ([`Books::version`](super::Books::version)).
    pub version: u64,
}

/// How many levels of each side a reader wants, best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reach {
    pub bids: usize,
    pub asks: usize,
}

/// The best prices of the effective book.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EffectiveTop {
    pub bid: Option<Price>,
    pub ask: Option<Price>,
}

/// The two ladders of one token's book.
#[derive(Clone, Copy)]
pub(super) struct Sides<'a> {
    pub bids: &'a Ladder,
    pub asks: &'a Ladder,
}

impl Reach {
    /// Every level.
    pub const ALL: Reach = Reach { bids: usize::MAX, asks: usize::MAX };

    /// `levels` of one side, and the best of the other.
    pub fn of(side: BookSide, levels: usize) -> Reach {
        match side {
            BookSide::Bid => Reach { bids: levels, asks: 1 },
            BookSide::Ask => Reach { bids: 1, asks: levels },
        }
    }
}

impl EffectiveLevel {
    /// Everything there is at this price, nobody's depletion taken off.
    pub fn size(&self) -> Qty {
        self.own.size + self.mirrored.size
    }
}

impl EffectiveTop {
    /// Best price of one side.
    pub fn price(&self, side: BookSide) -> Option<Price> {
        match side {
            BookSide::Bid => self.bid,
            BookSide::Ask => self.ask,
        }
    }

    /// Best ask − best bid in 10⁻⁴ USD; `None` when a side is empty, 0 when crossed.
    pub fn spread(&self) -> Option<u16> {
        Some(self.ask?.0.saturating_sub(self.bid?.0))
    }

    /// Half way between the best prices, 10⁻⁶ USD; `None` when a side is empty.
    pub fn midpoint(&self) -> Option<Cash> {
        midpoint(self.bid, self.ask)
    }

    /// The best prices of a token from its own best and its complement's. The mirror rule needs no look here: where it
    /// holds, both books have the same best.
    pub(super) fn merged(own: EffectiveTop, complement: EffectiveTop) -> EffectiveTop {
        let mirrored =
            EffectiveTop { bid: complement.ask.map(Price::complement), ask: complement.bid.map(Price::complement) };
        let bid = own.bid.max(mirrored.bid);
        let ask = [own.ask, mirrored.ask].into_iter().flatten().min();
        if crossed(bid, ask) { own } else { EffectiveTop { bid, ask } }
    }
}

impl Effective {
    /// The levels of one side, best first.
    pub fn side(&self, side: BookSide) -> &[EffectiveLevel] {
        match side {
            BookSide::Bid => &self.bids,
            BookSide::Ask => &self.asks,
        }
    }

    /// Best prices, as far as the reach had at least one level of each side.
    pub fn top(&self) -> EffectiveTop {
        EffectiveTop {
            bid: self.bids.first().map(|level| level.price),
            ask: self.asks.first().map(|level| level.price),
        }
    }

    /// Fills both sides. Runs inside a read of the pair's sequence.
    #[inline]
    pub(super) fn fill(&mut self, own: Sides<'_>, complement: Sides<'_>, reach: Reach) {
        let merged_bids = copy_or_merge(&mut self.bids, BookSide::Bid, own.bids, complement.asks, reach.bids.max(1));
        let merged_asks = copy_or_merge(&mut self.asks, BookSide::Ask, own.asks, complement.bids, reach.asks.max(1));
        let top = self.top();
        if (merged_bids || merged_asks) && crossed(top.bid, top.ask) {
            copy(&mut self.bids, BookSide::Bid, own.bids, reach.bids);
            copy(&mut self.asks, BookSide::Ask, own.asks, reach.asks);
        }
        self.bids.truncate(reach.bids);
        self.asks.truncate(reach.asks);
    }
}

/// Fills `out` from one or both ladders; answers whether anything was merged.
#[inline]
fn copy_or_merge(out: &mut Vec<EffectiveLevel>, side: BookSide, own: &Ladder, mirror: &Ladder, reach: usize) -> bool {
    // An empty complement has nothing to merge; an empty own side has no levels that could be mirrors.
    if mirror.levels().next().is_none() || (own.levels().next().is_some() && mirrors(own, mirror)) {
        copy(out, side, own, reach);
        return false;
    }
    merge(out, side, own, mirror, reach);
    true
}

/// Whether the best levels of both ladders are the same. Ranks of a side and of the complement's other side agree.
#[inline]
fn mirrors(own: &Ladder, mirror: &Ladder) -> bool {
    let best = |ladder: &Ladder| {
        let mut levels = ladder.levels().map(|slot| (slot.rank, slot.size));
        std::array::from_fn::<_, MIRROR_LEVELS, _>(|_| levels.next())
    };
    best(own) == best(mirror)
}

fn own_level(side: BookSide, slot: Slot) -> EffectiveLevel {
    EffectiveLevel {
        price: side.price(slot.rank),
        own: Part { size: slot.size, stamp: slot.stamp },
        mirrored: Part::default(),
    }
}

#[inline]
fn copy(out: &mut Vec<EffectiveLevel>, side: BookSide, own: &Ladder, reach: usize) {
    out.clear();
    out.extend(own.levels().take(reach).map(|slot| own_level(side, slot)));
}

fn merge(out: &mut Vec<EffectiveLevel>, side: BookSide, own: &Ladder, mirror: &Ladder, reach: usize) {
    out.clear();
    let (mut own, mut mirror) = (own.levels().peekable(), mirror.levels().peekable());
    while out.len() < reach {
        let rank = match (own.peek(), mirror.peek()) {
            (Some(own), Some(mirror)) => own.rank.min(mirror.rank),
            (Some(slot), None) | (None, Some(slot)) => slot.rank,
            (None, None) => break,
        };
        let part = |levels: &mut std::iter::Peekable<_>| {
            let slot: Option<Slot> = levels.next_if(|slot: &Slot| slot.rank == rank);
            slot.map_or(Part::default(), |slot| Part { size: slot.size, stamp: slot.stamp })
        };
        out.push(EffectiveLevel { price: side.price(rank), own: part(&mut own), mirrored: part(&mut mirror) });
    }
}
