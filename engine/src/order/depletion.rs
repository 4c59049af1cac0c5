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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Bps, Cash};
    use crate::book::{Want, walk};

    const YES: InstrumentId = InstrumentId(4);
    const NO: InstrumentId = InstrumentId(5);

    fn level(price: u16, own: u64, mirrored: u64, stamp: u32) -> EffectiveLevel {
        let part = |size| Part { size: Qty(size), stamp: Stamp(stamp) };
        EffectiveLevel { price: Price(price), own: part(own), mirrored: part(mirrored) }
    }

    fn row(price: u16, qty: u64, mirrored: bool) -> Taken {
        Taken { price: Price(price), qty: Qty(qty), fee: Cash::ZERO, mirrored }
    }

    fn left(depletion: &Depletion, instrument: InstrumentId, side: BookSide, level: &EffectiveLevel) -> (u64, u64) {
        let offer = depletion.left(instrument, side, level);
        (offer.own.0, offer.mirrored.0)
    }

    #[test]
    fn a_take_counts_until_its_level_changes() {
        let mut depletion = Depletion::default();
        let asks = [level(4_000, 100, 50, 1), level(4_100, 70, 0, 1)];
        depletion.take(
            YES,
            BookSide::Ask,
            &asks,
            &[row(4_000, 100, false), row(4_000, 20, true), row(4_100, 10, false)],
        );
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[0]), (0, 30));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[1]), (60, 0));
        // Takes add up; more than there is leaves nothing.
        depletion.take(YES, BookSide::Ask, &asks, &[row(4_100, 60, false)]);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[1]), (0, 0));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &level(4_100, 65, 0, 1)), (0, 0));
        // Another side, price or market is another level.
        assert_eq!(left(&depletion, YES, BookSide::Bid, &asks[0]), (100, 50));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &level(4_200, 9, 9, 1)), (9, 9));
        assert_eq!(left(&depletion, InstrumentId(6), BookSide::Ask, &asks[0]), (100, 50));
        // The venue set the level: whole again, and a new take starts from there.
        let again = level(4_100, 70, 0, 2);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &again), (70, 0));
        depletion.take(YES, BookSide::Ask, &[again], &[row(4_100, 5, false)]);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &again), (65, 0));
        depletion.clear();
        assert_eq!(left(&depletion, YES, BookSide::Ask, &again), (70, 0));
    }

    #[test]
    fn a_mirrored_take_depletes_the_complements_level() {
        let mut depletion = Depletion::default();
        // An ask for YES at 0.40 that is a bid for NO at 0.60.
        let ask = level(4_000, 0, 50, 3);
        depletion.take(YES, BookSide::Ask, &[ask], &[row(4_000, 20, true)]);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &ask), (0, 30));
        assert_eq!(left(&depletion, NO, BookSide::Bid, &level(6_000, 50, 0, 3)), (30, 0));
        assert_eq!(
            depletion.available(NO, BookSide::Bid, Price(6_000), Part { size: Qty(50), stamp: Stamp(3) }),
            Qty(30)
        );
        assert_eq!(left(&depletion, NO, BookSide::Ask, &level(6_000, 50, 0, 3)), (50, 0), "the other side");
    }

    #[test]
    fn walks_see_only_what_is_left_to_their_user() {
        let mut depletion = Depletion::default();
        let asks = [level(4_000, 1_000_000, 0, 1), level(4_100, 1_000_000, 500_000, 1), level(4_200, 900_000, 0, 1)];
        let mut filled = Vec::new();
        for shares in [1_200_000, 1_200_000, 5_000_000] {
            let mut taken = Vec::new();
            let offers = depletion.offers(YES, BookSide::Ask, &asks);
            let walk = walk(offers, BookSide::Ask, Want::Shares(Qty(shares)), None, Bps(0), &mut taken);
            depletion.take(YES, BookSide::Ask, &asks, &taken);
            filled.push((walk.filled.0, walk.levels));
        }
        assert_eq!(filled, [(1_200_000, 2), (1_200_000, 1), (1_000_000, 2)]);
        assert!(depletion.offers(YES, BookSide::Ask, &asks).all(|offer| offer.size().is_zero()));
        let others: Vec<Offer> = Depletion::default().offers(YES, BookSide::Ask, &asks).collect();
        assert_eq!(others[1], Offer::from(&asks[1]), "users do not compete");
    }

    #[test]
    fn beyond_the_bound_the_oldest_touch_is_forgotten() {
        let mut depletion = Depletion::default();
        let take = |depletion: &mut Depletion, price: u16| {
            depletion.take(YES, BookSide::Ask, &[level(price, 10, 0, 1)], &[row(price, 10, false)]);
        };
        let untouched =
            |depletion: &Depletion, price| left(depletion, YES, BookSide::Ask, &level(price, 10, 0, 1)) == (10, 0);
        let last = LEVELS_MAX as u16;
        // Downward, so that insertion is at the front; then the first one is touched again.
        (1..=last).rev().for_each(|price| take(&mut depletion, price));
        take(&mut depletion, last);
        take(&mut depletion, last + 1);
        assert_eq!(depletion.len(), LEVELS_MAX);
        assert!(untouched(&depletion, last - 1), "touched longest ago");
        assert!((1..=last + 1).filter(|price| *price != last - 1).all(|price| !untouched(&depletion, price)));
        take(&mut depletion, last + 2);
        assert!(untouched(&depletion, last - 2));
        assert!(depletion.takes.is_sorted_by_key(|take| take.level));
        assert_eq!(std::mem::size_of::<Take>(), 24);
    }
}
