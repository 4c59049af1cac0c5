//! What one user already took from the levels that the venue shows now (execution.md §9): subtracted before each of the
//! user's walks, never visible, gone with a restart.
//!
//! A take belongs to the level that it came from, so a fill on a mirrored level counts against the complement's level,
//! whichever token is traded next. It counts while the level's stamp is the same: a change of the level or a full
//! snapshot of the token drops it. Bounded: beyond [`LEVELS_MAX`] levels the one that was touched longest ago is
//! forgotten, which lets this user take it once more.

use crate::amount::{Price, Qty};
use crate::book::{BookSide, EffectiveLevel, Offer, Part, Stamp};
use crate::id::InstrumentId;
use crate::order::Taken;

/// Levels remembered per user; 24 bytes each.
pub const LEVELS_MAX: usize = 512;

/// One user's takes, ordered by level.
#[derive(Clone, Debug, Default)]
pub struct Depletion {
    takes: Vec<Take>,
    /// Counts touches, to know the oldest.
    touches: u32,
}

#[derive(Clone, Copy, Debug)]
struct Take {
    level: LevelKey,
    stamp: Stamp,
    touched: u32,
    taken: Qty,
}

/// `instrument << 17 | side << 16 | price`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LevelKey(u64);

impl LevelKey {
    fn of(instrument: InstrumentId, side: BookSide, price: Price) -> LevelKey {
        LevelKey(u64::from(instrument.0) << 17 | (side as u64) << 16 | u64::from(price.0))
    }

    /// Level keys of the market of `instrument`, both tokens and both sides, lie in this range.
    fn market(instrument: InstrumentId) -> std::ops::Range<LevelKey> {
        let market = u64::from(instrument.0 / 2);
        LevelKey(market << 18)..LevelKey((market + 1) << 18)
    }
}

impl Depletion {
    /// What is left for this user of one level of `instrument`'s own book, as it stands with `part`.
    pub fn available(&self, instrument: InstrumentId, side: BookSide, price: Price, part: Part) -> Qty {
        let key = LevelKey::of(instrument, side, price);
        match self.takes.binary_search_by_key(&key, |take| take.level) {
            Ok(at) if self.takes[at].stamp == part.stamp => Qty(part.size.0.saturating_sub(self.takes[at].taken.0)),
            _ => part.size,
        }
    }

    /// What is left for this user of one side of the effective book, level by level, best first: what a walk takes
    /// from. `side` is the side walked: asks for a BUY.
    pub fn offers<'a>(
        &'a self,
        instrument: InstrumentId,
        side: BookSide,
        levels: &'a [EffectiveLevel],
    ) -> impl Iterator<Item = Offer> + 'a {
        let touched = self.touched(instrument);
        levels.iter().map(move |level| if touched { self.left(instrument, side, level) } else { Offer::from(level) })
    }

    /// What is left for this user of one level of the effective book.
    pub fn left(&self, instrument: InstrumentId, side: BookSide, level: &EffectiveLevel) -> Offer {
        let (other, other_side, other_price) = (instrument.complement(), side.opposite(), level.price.complement());
        Offer {
            price: level.price,
            own: self.available(instrument, side, level.price, level.own),
            mirrored: self.available(other, other_side, other_price, level.mirrored),
        }
    }

    /// Remembers what a walk over `levels` took. Rows and levels are both best first; every row is of one of the levels.
    pub fn take(&mut self, instrument: InstrumentId, side: BookSide, levels: &[EffectiveLevel], taken: &[Taken]) {
        let mut levels = levels.iter();
        let mut level = EffectiveLevel::default();
        for row in taken {
            while level.price != row.price {
                level = *levels.next().expect("a walk takes from the levels it was given, in their order");
            }
            if row.mirrored {
                let (other, other_side) = (instrument.complement(), side.opposite());
                self.add(LevelKey::of(other, other_side, row.price.complement()), level.mirrored.stamp, row.qty);
            } else {
                self.add(LevelKey::of(instrument, side, row.price), level.own.stamp, row.qty);
            }
        }
    }

    /// Levels remembered, whether they still count or not.
    pub fn len(&self) -> usize {
        self.takes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.takes.is_empty()
    }

    /// Forgets everything: the flag was switched off.
    pub fn clear(&mut self) {
        self.takes = Vec::new();
    }

    /// Whether anything is remembered of either token of this market.
    fn touched(&self, instrument: InstrumentId) -> bool {
        let market = LevelKey::market(instrument);
        let from = self.takes.partition_point(|take| take.level < market.start);
        self.takes.get(from).is_some_and(|take| take.level < market.end)
    }

    fn add(&mut self, level: LevelKey, stamp: Stamp, qty: Qty) {
        self.touches = self.touches.wrapping_add(1);
        let touched = self.touches;
        match self.takes.binary_search_by_key(&level, |take| take.level) {
            Ok(at) => {
                let take = &mut self.takes[at];
                let before = if take.stamp == stamp { take.taken } else { Qty::ZERO };
                *take = Take { level, stamp, touched, taken: before + qty };
            }
            Err(at) if self.takes.len() < LEVELS_MAX => {
                self.takes.insert(at, Take { level, stamp, touched, taken: qty });
            }
            Err(at) => {
                let age = |take: &Take| touched.wrapping_sub(take.touched);
                let oldest = (0..self.takes.len()).max_by_key(|at| age(&self.takes[*at])).expect("it is full");
                self.takes.remove(oldest);
                let at = if oldest < at { at - 1 } else { at };
                self.takes.insert(at, Take { level, stamp, touched, taken: qty });
            }
        }
    }
}
