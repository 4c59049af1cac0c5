//! Books of the venue for each instrument: arrays of atomics that one feed writes and all threads read.
//!
//! | File | Holds |
//! |---|---|
//! | `sequence.rs` | the version that makes a group of atomics consistent: the only place with fences |
//! | `ladder.rs` | one side of one book |
//! | `depth.rs` | a reader's copies: [`Depth`] of a book as the venue shows it, [`Top`] |
//! | `side.rs` | [`DepthSide`]: the levels of one side of such a copy, packed |
//! | `effective.rs` | [`Effective`]: a book merged with its complement's, as orders meet it |
//! | `registry.rs` | [`Books`]: instrument → book, quote age, last trade, marks |
//! | `stated.rs` | prices that the venue states outside of its books |
//! | `writer.rs` | [`BookWriter`]: the feed's half; whole frames |
//! | `candles.rs` | prices of an interval, and their folding (pure) |
//! | `stretches.rs` | intervals of a price history for one answer (pure) |
//! | `listener.rs` | listeners to books and prices as the feed writes them |
//! | `publish.rs` | released facts about markets for catalogue and books |
//! | `walk.rs` | what an order takes from a side (pure) |
//! | `watched.rs` | levels at which orders wait in a queue, and what the feed reports of them |
//!
//! Best is first on both sides. Simulated fills never write here. Absent on purpose: order queues inside a level (users
//! trade with the venue's book, never with each other), history, and users.

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
pub mod watched;
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
pub use watched::{LevelChange, LevelNews};
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

/// Version of a level: it changes with every change of that level by the venue, and for all levels of a token with a
/// full snapshot. Depletion of a level counts only while its stamp is the same (engine/docs/execution.md §9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stamp(pub u32);

/// Why a book cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unavailable {
    /// No message about the book has arrived.
    Unknown,
    /// The feed was writing at every one of the bounded tries: `BOOK_UNAVAILABLE` for a read, `SERVER_BUSY` for an
    /// order.
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

    /// Distance of `price` from this side's best possible price, 1..=9 999: ascending is best first on both sides, and
    /// a level and its mirror on the complement's other side have the same rank.
    #[inline]
    pub fn rank(self, price: Price) -> u16 {
        match self {
            BookSide::Ask => price.0,
            BookSide::Bid => price.complement().0,
        }
    }

    /// The price of a rank.
    #[inline]
    pub fn price(self, rank: u16) -> Price {
        match self {
            BookSide::Ask => Price(rank),
            BookSide::Bid => Price(rank).complement(),
        }
    }

    /// Whether a level at `price` may be taken within `bound`; touching counts (engine/docs/execution.md §4).
    #[inline]
    pub fn within(self, price: Price, bound: Price) -> bool {
        self.rank(price) <= self.rank(bound)
    }
}

/// Whether two prices cross or lock.
pub(crate) fn crossed(bid: Option<Price>, ask: Option<Price>) -> bool {
    matches!((bid, ask), (Some(bid), Some(ask)) if bid >= ask)
}
