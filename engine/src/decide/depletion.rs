//! Depletion: the sizes that one user has taken from levels still on the book (engine/docs/execution.md §9). Subtracted
//! before each of the user's walks, never visible, dropped by a restart.
//!
//! A bid at p for one token of a market is an ask at 1 − p for the other, so both entries of that level share one key.
//! Where the books are mirrors, the venue publishes one size in both: a take through either token counts for both, and
//! a change of either entry, or a full snapshot of either token, restores the size. Where the books are merged, each
//! entry is a separate size, with its own takes and changes.
//!
//! A mirror may arrive in two frames. An entry that differed from the other one at the take and then becomes equal to
//! it repeats an earlier message: that restores nothing, and the next change of the other one does.
//!
//! Bounded: beyond [`LEVELS_MAX`] levels the least recently used one is dropped, so this user can take it once more.

use crate::amount::{Price, Qty};
use crate::book::{BookSide, EffectiveLevel, Offer, Part, Stamp};
use crate::id::{InstrumentId, Outcome};
use crate::order::Taken;

/// Levels per user; 48 bytes each.
pub const LEVELS_MAX: usize = 512;

/// Stamp of an entry that was never read: above any stamp of a ladder.
const UNSEEN: Stamp = Stamp(u32::MAX);

/// The takes of one user, ordered by level.
#[derive(Clone, Debug, Default)]
pub struct Depletion {
    takes: Vec<Take>,
    /// Counts uses, to find the oldest.
    touches: u32,
}

/// The takes from one level; pairs are by outcome.
#[derive(Clone, Copy, Debug)]
struct Take {
    key: LevelKey,
    /// The stamps of both entries at the last read. A take from an entry counts while its stamp is unchanged.
    stamps: [Stamp; 2],
    touched: u32,
    /// The entries were not known to be equal at the last take.
    differed: bool,
    /// Taken from one entry alone.
    alone: [Qty; 2],
    /// Taken from the one size that both entries show.
    both: Qty,
}

/// A price of one side of one token, expressed for the market's first token: `market << 17 | side << 16 | price`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct LevelKey(u64);

/// The entry taken from, its outcome, and the other entry.
#[derive(Clone, Copy)]
struct Entries {
    outcome: Outcome,
    own: Part,
    other: Option<Part>,
    /// Both show one size.
    are_one: bool,
}

impl LevelKey {
    fn of(instrument: InstrumentId, side: BookSide, price: Price) -> LevelKey {
        let (side, price) = match instrument.outcome() {
            Outcome::First => (side, price),
            Outcome::Second => (side.opposite(), price.complement()),
        };
        LevelKey(u64::from(instrument.market().0) << 17 | (side as u64) << 16 | u64::from(price.0))
    }

    /// The keys of the market of `instrument`.
    fn market(instrument: InstrumentId) -> std::ops::Range<LevelKey> {
        let market = u64::from(instrument.market().0);
        LevelKey(market << 17)..LevelKey((market + 1) << 17)
    }
}

impl Depletion {
    /// The remaining sizes for this user of one side of the effective book, level by level, best first: the input of a
    /// walk. `side` is the side walked: asks for a BUY. `mirror` returns the complement's entry of a level of this
    /// token if the two are one size ([`Books::mirror`](crate::book::Books::mirror)); it is called for levels with
    /// takes.
    pub fn offers<'a>(
        &'a self,
        instrument: InstrumentId,
        side: BookSide,
        levels: &'a [EffectiveLevel],
        mirror: impl Fn(Price) -> Option<Part> + 'a,
    ) -> impl Iterator<Item = Offer> + 'a {
        let touched = self.touches(instrument);
        levels.iter().map(move |level| match touched {
            true => self.left(instrument, side, level, &mirror),
            false => Offer::from(level),
        })
    }

    /// The remaining size for this user of one level of the effective book.
    pub fn left(
        &self,
        instrument: InstrumentId,
        side: BookSide,
        level: &EffectiveLevel,
        mirror: impl Fn(Price) -> Option<Part>,
    ) -> Offer {
        let Ok(at) = self.find(LevelKey::of(instrument, side, level.price)) else { return Offer::from(level) };
        let (take, outcome) = (&self.takes[at], instrument.outcome());
        let minus = |part: Part, taken: Qty| Qty(part.size.0.saturating_sub(taken.0));
        let (own, mirrored) = match mirror(level.price) {
            Some(other) => (minus(level.own, take.of_both(outcome, level.own, other)), Qty::ZERO),
            None => (
                minus(level.own, take.of_one(outcome, level.own)),
                minus(level.mirrored, take.of_one(outcome.other(), level.mirrored)),
            ),
        };
        Offer { price: level.price, own, mirrored }
    }

    /// Records the takes of a walk over `levels`. Rows and levels are best first; every row belongs to one of the
    /// levels. `mirror` as in [`Depletion::offers`].
    pub fn take(
        &mut self,
        instrument: InstrumentId,
        side: BookSide,
        levels: &[EffectiveLevel],
        taken: &[Taken],
        mirror: impl Fn(Price) -> Option<Part>,
    ) {
        let mut levels = levels.iter();
        let (mut level, mut other) = (EffectiveLevel::default(), None);
        for row in taken {
            while level.price != row.price {
                level = *levels.next().expect("a walk takes from its levels in their order");
                other = None;
            }
            other = other.or_else(|| mirror(level.price));
            let outcome = instrument.outcome();
            let known = |part: Part| (!part.size.is_zero()).then_some(part);
            let entries = match (other, row.mirrored) {
                (Some(_), _) => Entries { outcome, own: level.own, other, are_one: true },
                (None, false) => Entries { outcome, own: level.own, other: known(level.mirrored), are_one: false },
                (None, true) => {
                    let outcome = outcome.other();
                    Entries { outcome, own: level.mirrored, other: known(level.own), are_one: false }
                }
            };
            self.add(LevelKey::of(instrument, side, row.price), entries, row.qty);
        }
    }

    /// Whether there is a take from either token of this market.
    fn touches(&self, instrument: InstrumentId) -> bool {
        let market = LevelKey::market(instrument);
        let from = self.takes.partition_point(|take| take.key < market.start);
        self.takes.get(from).is_some_and(|take| take.key < market.end)
    }

    fn find(&self, key: LevelKey) -> Result<usize, usize> {
        self.takes.binary_search_by_key(&key, |take| take.key)
    }

    fn add(&mut self, key: LevelKey, entries: Entries, qty: Qty) {
        self.touches = self.touches.wrapping_add(1);
        let touched = self.touches;
        let at = match self.find(key) {
            Ok(at) => at,
            Err(at) => {
                let at = if self.takes.len() < LEVELS_MAX { at } else { self.forget_oldest(at) };
                self.takes.insert(at, Take::nothing(key, entries));
                at
            }
        };
        self.takes[at].touched = touched;
        self.takes[at].add(entries, qty);
    }

    /// Drops the least recently used level; returns the new index of the entry at `at`.
    fn forget_oldest(&mut self, at: usize) -> usize {
        let age = |take: &Take| self.touches.wrapping_sub(take.touched);
        let oldest = (0..self.takes.len()).max_by_key(|at| age(&self.takes[*at])).expect("it is full");
        self.takes.remove(oldest);
        if oldest < at { at - 1 } else { at }
    }
}

impl Take {
    fn nothing(key: LevelKey, entries: Entries) -> Take {
        let mut stamps = [entries.own.stamp; 2];
        stamps[entries.outcome.other() as usize] = entries.other.map_or(UNSEEN, |other| other.stamp);
        Take { key, stamps, touched: 0, differed: false, alone: [Qty::ZERO; 2], both: Qty::ZERO }
    }

    fn is_current(&self, outcome: Outcome, part: Part) -> bool {
        self.stamps[outcome as usize] == part.stamp
    }

    /// The takes from an entry with a separate size.
    fn of_one(&self, outcome: Outcome, part: Part) -> Qty {
        if self.is_current(outcome, part) { self.alone[outcome as usize] + self.both } else { Qty::ZERO }
    }

    /// The takes from the one size that both entries show; `own` is the entry of `outcome`.
    fn of_both(&self, outcome: Outcome, own: Part, other: Part) -> Qty {
        let repeats = self.differed && own.size == other.size;
        match (self.is_current(outcome, own), self.is_current(outcome.other(), other)) {
            (true, true) => self.both + self.alone[0] + self.alone[1],
            (true, false) if repeats => self.both + self.alone[outcome as usize],
            (false, true) if repeats => self.both + self.alone[outcome.other() as usize],
            _ => Qty::ZERO,
        }
    }

    fn add(&mut self, entries: Entries, qty: Qty) {
        let Entries { outcome, own, other, are_one } = entries;
        let (one, two) = (outcome as usize, outcome.other() as usize);
        if let (true, Some(part)) = (are_one, other) {
            self.both = self.of_both(outcome, own, part) + qty;
            self.alone = [Qty::ZERO; 2];
            (self.stamps[one], self.stamps[two]) = (own.stamp, part.stamp);
            self.differed = own.size != part.size;
            return;
        }
        if !self.is_current(outcome, own) {
            self.renew(outcome, own.stamp);
        }
        self.alone[one] += qty;
        if let Some(part) = other.filter(|part| !self.is_current(outcome.other(), *part)) {
            self.renew(outcome.other(), part.stamp);
        }
        self.differed = other.is_none_or(|part| part.size != own.size);
    }

    /// Restores the entry of `outcome`; takes from both stay with the other one.
    fn renew(&mut self, outcome: Outcome, stamp: Stamp) {
        let (one, two) = (outcome as usize, outcome.other() as usize);
        self.alone[two] += self.both;
        (self.alone[one], self.both, self.stamps[one]) = (Qty::ZERO, Qty::ZERO, stamp);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::{Bps, Cash};
    use crate::book::{Want, walk};

    const YES: InstrumentId = InstrumentId(4);
    const NO: InstrumentId = InstrumentId(5);

    fn part(size: u64, stamp: u32) -> Part {
        Part { size: Qty(size), stamp: Stamp(stamp) }
    }

    fn level(price: u16, own: u64, mirrored: u64, stamp: u32) -> EffectiveLevel {
        EffectiveLevel { price: Price(price), own: part(own, stamp), mirrored: part(mirrored, stamp) }
    }

    fn none(_: Price) -> Option<Part> {
        None
    }

    fn row(price: u16, qty: u64, mirrored: bool) -> Taken {
        Taken { price: Price(price), qty: Qty(qty), fee: Cash::ZERO, mirrored }
    }

    fn left(depletion: &Depletion, instrument: InstrumentId, side: BookSide, level: &EffectiveLevel) -> (u64, u64) {
        let offer = depletion.left(instrument, side, level, none);
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
            none,
        );
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[0]), (0, 30));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[1]), (60, 0));
        // Takes add up; a take of more than the size leaves zero.
        depletion.take(YES, BookSide::Ask, &asks, &[row(4_100, 60, false)], none);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &asks[1]), (0, 0));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &level(4_100, 65, 0, 1)), (0, 0));
        // Another side, price or market is another level.
        assert_eq!(left(&depletion, YES, BookSide::Bid, &asks[0]), (100, 50));
        assert_eq!(left(&depletion, YES, BookSide::Ask, &level(4_200, 9, 9, 1)), (9, 9));
        assert_eq!(left(&depletion, InstrumentId(6), BookSide::Ask, &asks[0]), (100, 50));
        // The venue set the level: the whole size again, and a new take counts from there.
        let again = level(4_100, 70, 0, 2);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &again), (70, 0));
        depletion.take(YES, BookSide::Ask, &[again], &[row(4_100, 5, false)], none);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &again), (65, 0));
    }

    #[test]
    fn a_take_affects_both_tokens_of_its_market_and_no_other() {
        let mut depletion = Depletion::default();
        for token in [YES, InstrumentId(9)] {
            depletion.take(token, BookSide::Bid, &[level(4_000, 10, 0, 1)], &[row(4_000, 1, false)], none);
        }
        let touched: Vec<u32> = (0..14).filter(|token| depletion.touches(InstrumentId(*token))).collect();
        assert_eq!(touched, [4, 5, 8, 9]);
    }

    #[test]
    fn a_mirrored_take_depletes_the_complements_level() {
        let mut depletion = Depletion::default();
        // An ask for YES at 0.40 that is a bid for NO at 0.60.
        let ask = level(4_000, 0, 50, 3);
        depletion.take(YES, BookSide::Ask, &[ask], &[row(4_000, 20, true)], none);
        assert_eq!(left(&depletion, YES, BookSide::Ask, &ask), (0, 30));
        assert_eq!(left(&depletion, NO, BookSide::Bid, &level(6_000, 50, 0, 3)), (30, 0));
        assert_eq!(left(&depletion, NO, BookSide::Ask, &level(6_000, 50, 0, 3)), (50, 0), "the other side");
    }

    /// YES asks at 0.40 and NO bids at 0.60 are one size. Sizes and stamps of both entries, in the order of the tokens.
    #[test]
    fn a_take_through_either_token_of_mirrors_counts_for_both() {
        type Entry = (u64, u32);
        #[derive(Clone, Copy)]
        enum Books {
            Mirrors,
            Merged,
            /// The complement's is not read.
            Alone,
        }
        struct World(Depletion);
        impl World {
            /// The level of `token`, and its mirror.
            fn seen(
                token: InstrumentId,
                yes: Entry,
                no: Entry,
                books: Books,
            ) -> (BookSide, EffectiveLevel, Option<Part>) {
                let (yes, no) = (part(yes.0, yes.1), part(no.0, no.1));
                let (side, price, own, other) =
                    if token == YES { (BookSide::Ask, 4_000, yes, no) } else { (BookSide::Bid, 6_000, no, yes) };
                let (mirrored, mirror) = match books {
                    Books::Mirrors => (Part::default(), Some(other)),
                    Books::Merged => (other, None),
                    Books::Alone => (Part::default(), None),
                };
                (side, EffectiveLevel { price: Price(price), own, mirrored }, mirror)
            }
            fn take(&mut self, token: InstrumentId, qty: u64, yes: Entry, no: Entry, books: Books) {
                let (side, level, mirror) = World::seen(token, yes, no, books);
                self.0.take(token, side, &[level], &[row(level.price.0, qty, false)], |_| mirror);
            }
            fn left(&self, token: InstrumentId, yes: Entry, no: Entry, books: Books) -> u64 {
                let (side, level, mirror) = World::seen(token, yes, no, books);
                let offer = self.0.left(token, side, &level, |_| mirror);
                offer.own.0 + offer.mirrored.0
            }
            fn both_left(&self, yes: Entry, no: Entry) -> (u64, u64) {
                (self.left(YES, yes, no, Mirrors), self.left(NO, yes, no, Mirrors))
            }
        }
        use Books::{Alone, Merged, Mirrors};
        for token in [YES, NO] {
            let mut world = World(Depletion::default());
            world.take(token, 60, (100, 1), (100, 7), Mirrors);
            assert_eq!(world.both_left((100, 1), (100, 7)), (40, 40));
            world.take(token.complement(), 30, (100, 1), (100, 7), Mirrors);
            assert_eq!(world.both_left((100, 1), (100, 7)), (10, 10));
            // A change of either entry restores both.
            for (yes, no) in [((80, 2), (80, 8)), ((100, 2), (100, 7)), ((100, 1), (100, 8))] {
                assert_eq!(world.both_left(yes, no), (yes.0, no.0));
            }
            world.take(YES, 25, (100, 2), (100, 7), Mirrors);
            assert_eq!(world.both_left((100, 2), (100, 7)), (75, 75));
        }
        // The mirror in two frames: in between the books are merged, and takes from the old entry still count.
        let mut world = World(Depletion::default());
        world.take(YES, 100, (100, 1), (100, 1), Mirrors);
        assert_eq!(world.left(YES, (70, 2), (100, 1), Merged), 70);
        world.take(YES, 70, (70, 2), (100, 1), Merged);
        assert_eq!(world.left(NO, (70, 2), (100, 1), Merged), 0);
        assert_eq!(world.both_left((70, 2), (70, 2)), (0, 0), "the other entry repeats an earlier message");
        assert_eq!(world.both_left((90, 3), (70, 2)), (90, 70), "this is a change");
        // Takes from two sizes count together when they become one.
        let mut world = World(Depletion::default());
        world.take(YES, 10, (100, 1), (100, 1), Merged);
        world.take(NO, 20, (100, 1), (100, 1), Merged);
        assert_eq!(world.left(YES, (100, 1), (100, 1), Merged), 170);
        assert_eq!(world.both_left((100, 1), (100, 1)), (70, 70));
        // A take from one counts for both when they stop being mirrors.
        world.take(NO, 30, (100, 1), (100, 1), Mirrors);
        assert_eq!(world.left(YES, (100, 1), (100, 1), Merged), 80);
        assert_eq!(world.left(YES, (100, 1), (100, 1), Alone), 40);
        // Entries of two sizes that were equal at the take: neither repeats the other, so a change of either restores
        // it.
        for (yes, no) in [((100, 1), (100, 2)), ((100, 2), (100, 1))] {
            let mut world = World(Depletion::default());
            world.take(YES, 10, (100, 1), (100, 1), Merged);
            assert_eq!(world.both_left(yes, no), (100, 100));
        }
    }

    #[test]
    fn walks_see_only_the_remaining_sizes_of_their_user() {
        let mut depletion = Depletion::default();
        let asks = [level(4_000, 1_000_000, 0, 1), level(4_100, 1_000_000, 500_000, 1), level(4_200, 900_000, 0, 1)];
        let mut filled = Vec::new();
        for shares in [1_200_000, 1_200_000, 5_000_000] {
            let mut taken = Vec::new();
            let offers = depletion.offers(YES, BookSide::Ask, &asks, none);
            let walk = walk(offers, BookSide::Ask, Want::Shares(Qty(shares)), None, Bps(0), &mut taken);
            depletion.take(YES, BookSide::Ask, &asks, &taken, none);
            filled.push((walk.filled.0, walk.levels));
        }
        assert_eq!(filled, [(1_200_000, 2), (1_200_000, 1), (1_000_000, 2)]);
        assert!(depletion.offers(YES, BookSide::Ask, &asks, none).all(|offer| offer.size().is_zero()));
        let others: Vec<Offer> = Depletion::default().offers(YES, BookSide::Ask, &asks, none).collect();
        assert_eq!(others[1], Offer::from(&asks[1]), "users do not compete");
    }

    fn take_at(depletion: &mut Depletion, price: u16) {
        depletion.take(YES, BookSide::Ask, &[level(price, 10, 0, 1)], &[row(price, 10, false)], none);
    }

    fn is_whole(depletion: &Depletion, price: u16) -> bool {
        left(depletion, YES, BookSide::Ask, &level(price, 10, 0, 1)) == (10, 0)
    }

    #[test]
    fn beyond_the_bound_the_least_recently_used_level_is_dropped() {
        let mut depletion = Depletion::default();
        let last = LEVELS_MAX as u16;
        // Downward, so that insertion is at the front; then the first one is used again.
        (1..=last).rev().for_each(|price| take_at(&mut depletion, price));
        take_at(&mut depletion, last);
        take_at(&mut depletion, last + 1);
        assert_eq!(depletion.takes.len(), LEVELS_MAX);
        assert!(is_whole(&depletion, last - 1), "least recently used");
        assert!((1..=last + 1).filter(|price| *price != last - 1).all(|price| !is_whole(&depletion, price)));
        take_at(&mut depletion, last + 2);
        assert!(is_whole(&depletion, last - 2));
        assert_eq!(std::mem::size_of::<Take>(), 48);
    }

    #[test]
    fn levels_stay_in_order_wherever_the_oldest_is() {
        let last = 2 * LEVELS_MAX as u16;
        // The oldest of the even prices, and the odd one that replaces it.
        for (oldest, new) in
            [(2, 1), (2, 3), (2, last + 1), (500, 1), (500, 499), (500, 501), (last, last - 1), (last, last + 1)]
        {
            let mut depletion = Depletion::default();
            take_at(&mut depletion, oldest);
            (2..=last).step_by(2).filter(|price| *price != oldest).for_each(|price| take_at(&mut depletion, price));
            take_at(&mut depletion, new);
            assert!(depletion.takes.is_sorted_by_key(|take| take.key), "{new} for {oldest}");
            let whole: Vec<u16> = (1..=last + 1).filter(|price| is_whole(&depletion, *price)).collect();
            let expected = |price: &u16| *price == oldest || (price % 2 == 1 && *price != new);
            assert!(whole.iter().copied().eq((1..=last + 1).filter(expected)), "{new} for {oldest}");
        }
    }
}
