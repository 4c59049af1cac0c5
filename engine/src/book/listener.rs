//! Listeners to books and prices as the feed writes them.
//!
//! The feed is generic over its listeners: without readers a change costs one load. A listener never blocks the feed.

use super::candles::Mid;
use super::{BookSide, Books, LastTrade};
use crate::amount::{Price, TickSize};
use crate::id::MarketId;
use crate::market::terms::Resolution;
use crate::time::Timestamp;

/// The updates of one token in a frame.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    /// All levels of both sides may have changed.
    pub whole: bool,
    /// Changed levels, without duplicates, if `whole` is false.
    pub levels: Vec<(BookSide, Price)>,
    pub trades: Vec<LastTrade>,
}

/// Notified of changed books, after they are written.
pub trait BookListener {
    /// From here on readers are not woken, until [`BookListener::ring`].
    fn gather(&self);

    /// Wakes the readers that have something to read; `gathers`: the feed continues to gather.
    fn ring(&self, gathers: bool);

    /// Whether any reader is subscribed.
    fn has_readers(&self) -> bool;

    /// Whether a reader is subscribed to this market.
    fn has_reader(&self, market: MarketId) -> bool;

    /// The following calls belong to a frame that the feed took at `taken_at`, server time.
    fn begin_frame(&self, taken_at: Timestamp);

    /// The frame ends.
    fn end_frame(&self);

    /// Books of a market with a reader changed, by outcome, or its tick did (old, new). `now` is the time of updates
    /// that have none.
    fn changed(
        &self,
        market: MarketId,
        touched: [Touched; 2],
        ticks: Option<(TickSize, TickSize)>,
        books: &Books,
        now: Timestamp,
    );

    /// The last trade, the stated price or the state of a market changed.
    fn touched(&self, market: MarketId);

    /// A market is listed.
    fn listed(&self, market: MarketId, at: Timestamp);

    /// A market that was listed before its trading began is open now.
    fn opened(&self, market: MarketId, at: Timestamp);

    /// A market is resolved, at `at` or at the time of the last frame about it, if that is later.
    fn resolved(&self, market: MarketId, resolution: Resolution, at: Timestamp);
}

/// Notified of the price of each market's first outcome.
pub trait PriceListener {
    /// The following prices were sent in an earlier run: those already recorded are ignored.
    fn begin_replay(&mut self);

    /// The first outcome's price became `mid` at `venue_now`.
    fn note(&mut self, market: MarketId, venue_now: Timestamp, mid: Mid);

    /// Hands over recorded prices that are due. `now` is server time.
    fn turn(&mut self, now: Timestamp);

    /// Hands over all recorded prices.
    fn hand_over(&mut self);
}

/// No listener.
impl BookListener for () {
    fn gather(&self) {}

    fn ring(&self, _: bool) {}

    fn has_readers(&self) -> bool {
        false
    }

    fn has_reader(&self, _: MarketId) -> bool {
        false
    }

    fn begin_frame(&self, _: Timestamp) {}

    fn end_frame(&self) {}

    fn changed(&self, _: MarketId, _: [Touched; 2], _: Option<(TickSize, TickSize)>, _: &Books, _: Timestamp) {}

    fn touched(&self, _: MarketId) {}

    fn listed(&self, _: MarketId, _: Timestamp) {}

    fn opened(&self, _: MarketId, _: Timestamp) {}

    fn resolved(&self, _: MarketId, _: Resolution, _: Timestamp) {}
}

/// No listener.
impl PriceListener for () {
    fn begin_replay(&mut self) {}

    fn note(&mut self, _: MarketId, _: Timestamp, _: Mid) {}

    fn turn(&mut self, _: Timestamp) {}

    fn hand_over(&mut self) {}
}
