//! Levels of the venue's books at which orders wait in a queue, and what the feed reports of them.
//!
//! The shards mark a level while an order with a place in its queue rests there; the feed tests one bit for each changed
//! level, and reports only marked ones. A mark that the feed does not see yet costs nothing: sizes are absolute, so the
//! next report of the level has all of its change.

use crate::amount::{Price, Qty};
use crate::book::BookSide;
use crate::book::effective::is_first_bids;
use crate::book::ladder::RANK_MAX;
use crate::id::{InstrumentId, MarketId, Outcome};
use crate::time::Timestamp;
use ahash::AHashMap;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};

const WORDS: usize = RANK_MAX as usize / 64 + 1;

/// The watched levels of a market. A bid of one token and the ask of the other that may mirror it are one level.
pub(super) struct LevelWatch {
    /// Watched levels.
    count: AtomicU32,
    /// By face (0: the first token's bids) and rank.
    bits: [[AtomicU64; WORDS]; 2],
    /// How many shards and tokens watch a level. Locked only when an order comes or leaves.
    watchers: Mutex<AHashMap<(bool, u16), u32>>,
}

/// A level after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LevelChange {
    pub market: MarketId,
    /// The first token's bids and the second's asks; else the first's asks and the second's bids.
    pub is_first_bids: bool,
    /// Distance from the best possible price: [`BookSide::price`] of either side.
    pub rank: u16,
    /// The shown size on the effective side of the first and of the second token.
    pub sizes: [Qty; 2],
    /// The version of the pair of books after it.
    pub version: u64,
    /// Venue time of its arrival.
    pub at: Timestamp,
    /// Only the rule has changed by which the books of both tokens are merged.
    pub is_rebased: bool,
    /// The whole book was sent that quotes the first, or the second token.
    pub is_snapshot: [bool; 2],
}

/// A report of the feed about watched levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LevelNews {
    Changed(LevelChange),
    /// Messages of this token were lost: its book, of this version, is unreliable until the next snapshot.
    Gap {
        instrument: InstrumentId,
        version: u64,
    },
}

impl LevelWatch {
    pub fn new() -> LevelWatch {
        LevelWatch {
            count: AtomicU32::new(0),
            bits: [const { [const { AtomicU64::new(0) }; WORDS] }; 2],
            watchers: Mutex::default(),
        }
    }

    /// Whether any level is watched.
    #[inline]
    pub fn is_any(&self) -> bool {
        self.count.load(Relaxed) > 0
    }

    #[inline]
    pub fn has(&self, is_first_bids: bool, rank: u16) -> bool {
        let word = &self.bits[usize::from(!is_first_bids)][usize::from(rank / 64) % WORDS];
        word.load(Relaxed) >> (rank % 64) & 1 == 1
    }

    /// One more or one less watches a level of this token.
    pub fn watch(&self, outcome: Outcome, side: BookSide, price: Price, rests: bool) {
        let (face, rank) = (is_first_bids(outcome, side), side.rank(price));
        let mut watchers = self.watchers.lock().unwrap_or_else(PoisonError::into_inner);
        let count = watchers.entry((face, rank)).or_default();
        *count = if rests { *count + 1 } else { count.saturating_sub(1) };
        let is_watched = *count > 0;
        if !is_watched {
            watchers.remove(&(face, rank));
        }
        let word = &self.bits[usize::from(!face)][usize::from(rank / 64) % WORDS];
        let bit = 1 << (rank % 64);
        match is_watched {
            true => word.fetch_or(bit, Relaxed),
            false => word.fetch_and(!bit, Relaxed),
        };
        self.count.store(watchers.len() as u32, Relaxed);
    }

    /// All watched levels: face and rank.
    pub fn levels(&self) -> impl Iterator<Item = (bool, u16)> + '_ {
        let faces = [true, false].into_iter().zip(&self.bits);
        faces.flat_map(|(face, words)| {
            words.iter().enumerate().flat_map(move |(at, word)| {
                let mut bits = word.load(Relaxed);
                std::iter::from_fn(move || {
                    let bit = (bits != 0).then(|| bits.trailing_zeros() as u16)?;
                    bits &= bits - 1;
                    Some((face, at as u16 * 64 + bit))
                })
            })
        })
    }
}

impl LevelChange {
    /// Its side and price for a token.
    pub fn of(&self, outcome: Outcome) -> (BookSide, Price, Qty) {
        let side =
            if is_first_bids(outcome, BookSide::Bid) == self.is_first_bids { BookSide::Bid } else { BookSide::Ask };
        (side, side.price(self.rank), self.sizes[outcome as usize])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_watched_by_both_tokens_until_the_last_one_leaves() {
        let watch = LevelWatch::new();
        let (first, second) = (Outcome::First, Outcome::Second);
        // A bid for the first token at 0.40 is an ask of the second at 0.60.
        watch.watch(first, BookSide::Bid, Price(4_000), true);
        watch.watch(second, BookSide::Ask, Price(6_000), true);
        watch.watch(first, BookSide::Ask, Price(9_999), true);
        let levels: Vec<_> = watch.levels().collect();
        assert_eq!(levels, [(true, 6_000), (false, 9_999)]);
        assert!(watch.is_any() && watch.has(true, 6_000) && !watch.has(false, 6_000) && !watch.has(true, 6_001));
        watch.watch(first, BookSide::Bid, Price(4_000), false);
        assert!(watch.has(true, 6_000), "the second token still does");
        watch.watch(second, BookSide::Ask, Price(6_000), false);
        watch.watch(first, BookSide::Ask, Price(9_999), false);
        assert!(!watch.is_any() && watch.levels().next().is_none());
        let change = LevelChange {
            market: MarketId(3),
            is_first_bids: true,
            rank: 6_000,
            sizes: [Qty(7), Qty(8)],
            version: 2,
            at: Timestamp(1),
            is_rebased: false,
            is_snapshot: [false; 2],
        };
        assert_eq!(change.of(first), (BookSide::Bid, Price(4_000), Qty(7)));
        assert_eq!(change.of(second), (BookSide::Ask, Price(6_000), Qty(8)));
        let other = LevelChange { is_first_bids: false, ..change };
        assert_eq!(other.of(first), (BookSide::Ask, Price(6_000), Qty(7)));
        assert_eq!(other.of(second), (BookSide::Bid, Price(4_000), Qty(8)));
    }
}
