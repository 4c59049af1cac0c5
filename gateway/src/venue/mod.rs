//! Where market data comes from: a venue turns its own messages into [`FeedUpdate`]s; the feed applies them.
//!
//! A venue knows nothing of users and orders. Its message shapes stay in its `dto.rs`; `translate.rs` is pure and is
//! used alike by the live adapters and by replay.

use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{Listing, MarketState, Resolution};
use engine::time::Timestamp;

/// A level as a venue reports it: absolute size.
pub type Level = (Price, Qty);

/// Side of a book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookSide {
    Bid,
    Ask,
}

/// One thing a venue said, in our words (upstream.md §1). Tokens and conditions are the wire's texts.
#[derive(Clone, Debug, PartialEq)]
pub enum FeedUpdate {
    /// A market is known; repeated listings of a known condition change state, tick and end only.
    Listed {
        listing: Box<Listing>,
        state: MarketState,
    },
    StateChanged {
        condition: String,
        state: MarketState,
    },
    /// The end date moved (Kalshi `close_date_updated`, Gamma re-reads).
    EndChanged {
        condition: String,
        end: Option<Timestamp>,
    },
    /// Informational figures; never journaled.
    Figures {
        condition: String,
        figures: Figures,
    },
    /// The whole book of a token; replaces all levels of both sides. Best first on both sides.
    BookSnapshot {
        token: String,
        bids: Vec<Level>,
        asks: Vec<Level>,
        venue_ts: Timestamp,
        hash: Option<String>,
    },
    /// Some levels of a token; size is absolute and 0 deletes.
    BookDelta {
        token: String,
        levels: Vec<(BookSide, Price, Qty)>,
        venue_ts: Timestamp,
    },
    TickChanged {
        condition: String,
        tick: TickSize,
    },
    LastTrade {
        token: String,
        price: Price,
        size: Qty,
        taker_buys: bool,
        venue_ts: Timestamp,
    },
    Resolved {
        condition: String,
        resolution: Resolution,
        venue_ts: Timestamp,
    },
    /// The view of these tokens is broken: stale until the next snapshot. Empty = all tokens of the connection.
    Gap {
        tokens: Vec<String>,
        reason: String,
    },
}

/// Figures about a market that a venue reports beside its book, in 1/1 000 000; `None` = not reported.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub volume_24h: Option<u64>,
    pub volume_total: Option<u64>,
    pub liquidity: Option<u64>,
}

/// What one poll of a venue came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Polled {
    /// Venue time reached; never goes backwards. All updates handed out so far are not after it.
    pub venue_now: Timestamp,
    /// When (server time) the next poll is worth while; `None` = when the source itself wakes the feed.
    pub wake_at: Option<Timestamp>,
}

/// The seam between the feed and where data comes from.
///
/// `poll` hands out everything that is due, in whole frames (all updates of one frame in one call to `frame`), but
/// never goes past `until` (venue time): the feed sets it to the next due matching cycle so that, at any speed, no
/// crossing is missed.
pub trait Venue: Send {
    /// `server_now` is the wall clock; `until` is the venue time not to go past.
    fn poll(&mut self, server_now: Timestamp, until: Timestamp, frame: &mut dyn FnMut(Frame<'_>)) -> Polled;

    /// Whether venue time is server time (live, synthetic) or driven by the recording.
    fn drives_clock(&self) -> bool;

    /// One line for the banner, e.g. `replay of 18 tapes at 60x`.
    fn describe(&self) -> String;
}

/// Updates that one message of the venue carried; applied together, then published.
pub struct Frame<'a> {
    /// Connection it came on; its latest frame is the proof of life of its tokens.
    pub connection: u8,
    pub received: Timestamp,
    pub updates: &'a [FeedUpdate],
}
