//! Books: what the venue shows of each instrument, as arrays of atomics that one feed writes and everybody reads.
//!
//! | File | Holds |
//! |---|---|
//! | `sequence.rs` | the version that makes many atomics one: the only place with fences |
//! | `ladder.rs` | one side of one book |
//! | `depth.rs` | a reader's copies: [`Depth`] of a book as the venue shows it, [`Top`] |
//! | `side.rs` | [`DepthSide`]: the levels of one side of such a copy, packed |
//! | `effective.rs` | [`Effective`]: a book merged with its complement's, as orders see it |
//! | `registry.rs` | [`Books`]: instrument → book, quote age, last trade, marks |
//! | `stated.rs` | prices that the venue states beside its books |
//! | `writer.rs` | [`BookWriter`]: the feed's half; whole frames |
//! | `candles.rs` | prices of a stretch of time, and their folding (pure) |
//! | `stretches.rs` | a reader's stretches of a price history (pure) |
//! | `listener.rs` | who is told of books and prices as the feed writes them |
//! | `publish.rs` | facts about markets, shown to catalogue and books |
//! | `walk.rs` | what an order takes from a side (pure) |
//!
//! Best is first on both sides. Simulated fills never write here. Absent on purpose: order queues inside a level (users
//! trade with the venue's book, never with each other), history, and any knowledge of users.

pub mod candles;
#[cfg(test)]
pub(crate) mod chance;
pub mod depth;
pub mod effective;
pub mod ladder;
pub mod listener;
mod publish;
pub mod registry;
pub mod sequence;
pub mod side;
pub mod stated;
pub mod stretches;
pub mod walk;
pub mod writer;

#[cfg(test)]
mod tests;

pub use depth::{Depth, Level, Quote, SnapshotHash, Top};
pub use effective::{Effective, EffectiveLevel, EffectiveTop, Part, Reach};
pub use publish::{publish, publish_all};
pub use registry::{Book, Books, LastTrade, Mark, MarkSource};
pub use side::DepthSide;
pub use stated::{LastPrice, Stated};
pub use walk::{Offer, Taken, Walk, Want, walk};
pub use writer::{BookWriter, Frame, FrameReport, SINGLE_ANSWERS};

use crate::amount::Price;

/// Side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BookSide {
    /// Offers to buy; a SELL order takes from here.
    Bid,
    /// Offers to sell; a BUY order takes from here.
    Ask,
}

/// Which version of a level: differs after every change of that level by the venue, and for all levels of a token after
/// a full snapshot. What a user took from a level counts only while the stamp is the same (execution.md §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u32);

/// Why there is no answer from a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No message about the book has ever arrived.
    Unknown,
    /// The feed was writing at every one of the bounded tries: `BOOK_UNAVAILABLE` to a read, `SERVER_BUSY` to an order.
    Contended,
}

impl BookSide {
    pub const BOTH: [BookSide; 2] = [BookSide::Bid, BookSide::Ask];

    pub fn opposite(self) -> BookSide {
        match self {
            BookSide::Bid => BookSide::Ask,
            BookSide::Ask => BookSide::Bid,
        }
    }

    /// How far `price` lies from this side's best possible price, 1..=9 999: ascending is best first on both sides, and
    /// a level and its mirror on the complement's other side have the same rank.
    #[inline]
    pub fn rank(self, price: Price) -> u16 {
        match self {
            BookSide::Ask => price.0,
            BookSide::Bid => price.complement().0,
        }
    }

    /// The price of that rank.
    #[inline]
    pub fn price(self, rank: u16) -> Price {
        match self {
            BookSide::Ask => Price(rank),
            BookSide::Bid => Price(rank).complement(),
        }
    }

    /// Whether a level at `price` may be taken within `bound`; touching counts (execution.md §4).
    #[inline]
    pub fn within(self, price: Price, bound: Price) -> bool {
        self.rank(price) <= self.rank(bound)
    }
}

/// Whether two prices cross or lock each other.
pub(crate) fn crossed(bid: Option<Price>, ask: Option<Price>) -> bool {
    matches!((bid, ask), (Some(bid), Some(ask)) if bid >= ask)
}
