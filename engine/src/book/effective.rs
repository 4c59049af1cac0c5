//! The book that an order meets: a token's own levels merged with its complement's (engine/docs/execution.md §3).
//!
//! A bid for the complement at b is an ask for the token at 1 − b, and vice versa. Three rules, in this order:
//!
//! 1. Mirrors: if the best five own levels of a side equal the complement's mirrored ones in price, size and count, the
//!    venue publishes one book twice; only the own levels count, so depth is never counted twice. Judged per side, so
//!    that a side that has not arrived yet does not double the other.
//! 2. Otherwise both are merged. Equal prices become one level with separate parts, because depletion is recorded on
//!    the level of origin (engine/docs/execution.md §9).
//! 3. A merged book that is crossed or locked (best bid ≥ best ask) is not used: both sides fall back to the own
//!    levels.

use crate::amount::{Cash, Price, Qty};
use crate::book::depth::midpoint;
use crate::book::ladder::{Ladder, Slot};
use crate::book::{BookSide, Stamp};
use crate::id::Outcome;

/// Levels of each side that decide whether two books are mirrors.
const MIRROR_LEVELS: usize = 5;

/// The contribution of one book to a level.
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
    /// The version of its pair of books ([`Books::version`](super::Books::version)).
    pub version: u64,
}

/// Maximum count of levels of each side that a reader needs, best first.
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

/// Which sides of the first token's book are the mirror of the second's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mirrors {
    pub first_bids: bool,
    pub first_asks: bool,
}

/// Which sides are merged with the complement's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rule {
    merge_bids: bool,
    merge_asks: bool,
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
    /// The total size at this price, before depletion.
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

    /// The mean of the best prices, 10⁻⁶ USD; `None` when a side is empty.
    pub fn midpoint(&self) -> Option<Cash> {
        midpoint(self.bid, self.ask)
    }

    /// The best prices of a token from its own best and its complement's; `None` when they cross. The mirror rule is
    /// not needed here: where it applies, both books have the same best.
    #[inline]
    pub(super) fn merged(own: EffectiveTop, complement: EffectiveTop) -> Option<EffectiveTop> {
        // 0 for no bid and 1 for no ask are each other's complement and lose every comparison.
        let (none, all) = (Price(0), Price::ONE);
        let mirror = |price: Option<Price>, empty: Price| price.unwrap_or(empty).complement();
        let bid = own.bid.unwrap_or(none).max(mirror(complement.ask, all));
        let ask = own.ask.unwrap_or(all).min(mirror(complement.bid, none));
        let price = |price: Price, empty: Price| (price != empty).then_some(price);
        (bid < ask).then(|| EffectiveTop { bid: price(bid, none), ask: price(ask, all) })
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

    /// Best prices, if the reach has at least one level of each side.
    pub fn top(&self) -> EffectiveTop {
        EffectiveTop {
            bid: self.bids.first().map(|level| level.price),
            ask: self.asks.first().map(|level| level.price),
        }
    }

    /// Fills both sides. Runs inside a read of the pair's sequence.
    #[inline]
    pub(super) fn fill(&mut self, own: Sides<'_>, complement: Sides<'_>, rule: Rule, reach: Reach) {
        fill_side(&mut self.bids, BookSide::Bid, own.bids, complement.asks, rule.merge_bids, reach.bids);
        fill_side(&mut self.asks, BookSide::Ask, own.asks, complement.bids, rule.merge_asks, reach.asks);
    }
}

/// Which ladders of a pair changed; a bid ladder and the ask ladder that may mirror it are one entry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Faces {
    /// The first token's bids or the second's asks.
    pub first_bids: bool,
    /// The first token's asks or the second's bids.
    pub first_asks: bool,
}

impl Faces {
    pub(super) const ALL: Faces = Faces { first_bids: true, first_asks: true };

    /// Adds the entry of this side of this token.
    #[inline]
    pub(super) fn add(&mut self, outcome: Outcome, side: BookSide) {
        if is_first_bids(outcome, side) {
            self.first_bids = true;
        } else {
            self.first_asks = true;
        }
    }
}

/// Whether this side of this token is in the entry of the first token's bids.
#[inline]
pub(super) fn is_first_bids(outcome: Outcome, side: BookSide) -> bool {
    // The second token's bids face the first one's asks.
    (outcome == Outcome::First) == (side == BookSide::Bid)
}

impl Mirrors {
    /// Whether this side of this token's book is the mirror of the complement's other side.
    #[inline]
    pub(super) fn on(self, outcome: Outcome, side: BookSide) -> bool {
        if is_first_bids(outcome, side) { self.first_bids } else { self.first_asks }
    }
}

impl Rule {
    /// Which sides of a token's book are merged with the complement's.
    #[inline]
    pub(super) fn of(mirrors: Mirrors, outcome: Outcome, own: EffectiveTop, complement: EffectiveTop) -> Rule {
        let (bids, asks) = (mirrors.on(outcome, BookSide::Bid), mirrors.on(outcome, BookSide::Ask));
        if bids && asks || EffectiveTop::merged(own, complement).is_none() {
            return Rule { merge_bids: false, merge_asks: false };
        }
        Rule { merge_bids: !bids, merge_asks: !asks }
    }

    /// Whether this side is merged.
    pub(super) fn merges(self, side: BookSide) -> bool {
        match side {
            BookSide::Bid => self.merge_bids,
            BookSide::Ask => self.merge_asks,
        }
    }
}

/// Two ladders that may be mirrors, compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Compared {
    pub are_mirrors: bool,
    /// The rank of the last level that was read of each; the greatest number if there was none. Changes of worse ranks
    /// change neither the result nor the best levels.
    pub own: u16,
    pub mirror: u16,
}

/// Whether the best levels of both ladders are equal. A side and the complement's other side have equal ranks.
pub(super) fn compare(own: &Ladder, mirror: &Ladder) -> Compared {
    let (mut owns, mut mirrors) = (own.levels(), mirror.levels());
    let what = |slot: Option<Slot>| slot.map(|slot| (slot.rank, slot.size));
    let rank = |slot: Option<Slot>| slot.map_or(u16::MAX, |slot| slot.rank);
    let mut left = MIRROR_LEVELS;
    loop {
        let (own, mirror) = (owns.next(), mirrors.next());
        let are_mirrors = what(own) == what(mirror);
        left -= 1;
        if !are_mirrors || own.is_none() || left == 0 {
            return Compared { are_mirrors, own: rank(own), mirror: rank(mirror) };
        }
    }
}

#[inline]
fn fill_side(out: &mut Vec<EffectiveLevel>, side: BookSide, own: &Ladder, mirror: &Ladder, merged: bool, reach: usize) {
    out.clear();
    if merged {
        return merge(out, side, own, mirror, reach);
    }
    let level = |price: Price, slot: Slot| EffectiveLevel {
        price,
        own: Part { size: slot.size, stamp: slot.stamp },
        mirrored: Part::default(),
    };
    // One closure per side, so that the loop over the levels does not test the side.
    match side {
        BookSide::Bid => own.copy(reach, out, |slot| level(BookSide::Bid.price(slot.rank), slot)),
        BookSide::Ask => own.copy(reach, out, |slot| level(BookSide::Ask.price(slot.rank), slot)),
    }
}

fn merge(out: &mut Vec<EffectiveLevel>, side: BookSide, own: &Ladder, mirror: &Ladder, reach: usize) {
    let (mut owns, mut mirrors) = (own.levels(), mirror.levels());
    let (mut own, mut mirror) = (owns.next(), mirrors.next());
    let rank = |slot: &Option<Slot>| slot.map_or(u16::MAX, |slot| slot.rank);
    while out.len() < reach && (own.is_some() || mirror.is_some()) {
        let best = rank(&own).min(rank(&mirror));
        let mut level = EffectiveLevel { price: side.price(best), ..EffectiveLevel::default() };
        if let Some(slot) = own.filter(|slot| slot.rank == best) {
            level.own = Part { size: slot.size, stamp: slot.stamp };
            own = owns.next();
        }
        if let Some(slot) = mirror.filter(|slot| slot.rank == best) {
            level.mirrored = Part { size: slot.size, stamp: slot.stamp };
            mirror = mirrors.next();
        }
        out.push(level);
    }
}
