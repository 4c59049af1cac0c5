//! The last changes of a token. A requested book is older than the changes that arrived meanwhile, so they are applied
//! to it (gateway/docs/live-venues.md §5).

use crate::{BookSide, Level};
use engine::amount::{Price, Qty};
use engine::time::{SECOND, Timestamp};
use std::collections::VecDeque;

/// How many changes are kept, and for how long: a request takes less time.
const CHANGES_MAX: usize = 256;
const KEEP_US: u64 = 10 * SECOND;

/// A change as bytes: time, whether it is of the bids, price, size.
pub(super) type Change = (Timestamp, bool, Price, Qty);

/// In order of arrival.
#[derive(Default)]
pub(super) struct Recent {
    changes: VecDeque<(Timestamp, BookSide, Level)>,
    /// Venue time of the newest dropped change.
    dropped_to: Timestamp,
}

impl Recent {
    pub(super) fn note(&mut self, at: Timestamp, side: BookSide, price: Price, size: Qty) {
        self.changes.push_back((at, side, (price, size)));
        while let Some(&(first, ..)) = self.changes.front()
            && (self.changes.len() > CHANGES_MAX || at.since(first) > KEEP_US)
        {
            self.changes.pop_front();
            self.dropped_to = self.dropped_to.max(first);
        }
    }

    /// Whether all changes since this time are kept.
    pub(super) fn reaches(&self, at: Timestamp) -> bool {
        self.dropped_to < at
    }

    /// Applies the changes since `at` to a book of that time, whose sides are ascending; returns whether there were
    /// any. The book may contain some of them already: sizes are absolute, so that repeating them has no effect.
    pub(super) fn fold(&self, at: Timestamp, bids: &mut Vec<Level>, asks: &mut Vec<Level>) -> bool {
        let mut any = false;
        for (_, side, (price, size)) in self.changes.iter().filter(|(when, ..)| *when >= at) {
            any = true;
            let levels = match side {
                BookSide::Bid => &mut *bids,
                BookSide::Ask => &mut *asks,
            };
            match (levels.binary_search_by_key(price, |level| level.0), size.is_zero()) {
                (Ok(found), true) => drop(levels.remove(found)),
                (Ok(found), false) => levels[found].1 = *size,
                (Err(_), true) => {}
                (Err(place), false) => levels.insert(place, (*price, *size)),
            }
        }
        any
    }

    /// The kept changes, and the time of the newest dropped one.
    pub(super) fn parts(&self) -> (Vec<Change>, Timestamp) {
        let parts =
            |&(at, side, (price, size)): &(Timestamp, BookSide, Level)| (at, side == BookSide::Bid, price, size);
        (self.changes.iter().map(parts).collect(), self.dropped_to)
    }

    /// Of [`Recent::parts`].
    pub(super) fn of_parts(changes: Vec<Change>, dropped_to: Timestamp) -> Recent {
        let change = |(at, is_bid, price, size): Change| {
            let side = if is_bid { BookSide::Bid } else { BookSide::Ask };
            (at, side, (price, size))
        };
        Recent { changes: changes.into_iter().map(change).collect(), dropped_to }
    }

    /// Drops all changes.
    pub(super) fn clear(&mut self) {
        *self = Recent::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kept_changes_are_applied_to_an_older_book() {
        let at = |millis: u64| Timestamp::from_millis(1_790_000_000_000 + millis);
        let mut recent = Recent::default();
        for (millis, side, price, size) in [
            (10, BookSide::Bid, 40, 5),
            (20, BookSide::Bid, 41, 6),
            (20, BookSide::Ask, 50, 0),
            (30, BookSide::Bid, 40, 0),
            (30, BookSide::Ask, 52, 9),
            (31, BookSide::Ask, 53, 0),
        ] {
            recent.note(at(millis), side, Price(price), Qty(size));
        }
        let levels = |levels: &[(u16, u64)]| levels.iter().map(|&(price, size)| (Price(price), Qty(size))).collect();
        let cases = [
            // time of the book, whether changes apply, and the resulting book
            (5, true, vec![(39, 1), (41, 6)], vec![(52, 9)]),
            (20, true, vec![(39, 1), (41, 6)], vec![(52, 9)]),
            (25, true, vec![(39, 1)], vec![(50, 2), (52, 9)]),
            (32, false, vec![(39, 1), (40, 1)], vec![(50, 2), (52, 2)]),
        ];
        for (millis, any, bids, asks) in &cases {
            let mut book: (Vec<Level>, Vec<Level>) = (levels(&[(39, 1), (40, 1)]), levels(&[(50, 2), (52, 2)]));
            assert!(recent.reaches(at(*millis)));
            assert_eq!(recent.fold(at(*millis), &mut book.0, &mut book.1), *any, "{millis}");
            assert_eq!(book, (levels(bids), levels(asks)), "{millis}");
        }
        recent.note(at(10_025), BookSide::Bid, Price(1), Qty(1));
        assert_eq!((recent.reaches(at(20)), recent.reaches(at(21))), (false, true), "changes past the time limit");
        (0..CHANGES_MAX).for_each(|_| recent.note(at(10_030), BookSide::Bid, Price(1), Qty(1)));
        assert_eq!(
            (recent.reaches(at(10_025)), recent.reaches(at(10_026))),
            (false, true),
            "changes past the count limit"
        );
        recent.clear();
        assert!(recent.reaches(at(0)));
        println!("books and later changes: {} cases", cases.len() + 3);
    }
}
