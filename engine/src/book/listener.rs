//! Who is told of books and prices as the feed writes them.
//!
//! The feed is generic over its listeners: what nobody listens to costs a load. A listener never makes the feed wait.

use super::candles::Mid;
use super::{BookSide, Books, LastTrade};
use crate::amount::{Price, TickSize};
use crate::id::MarketId;
use crate::market::terms::Resolution;
use crate::time::Timestamp;

/// What the updates of a frame say of one token.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Touched {
    /// All levels of both sides may have changed.
    pub whole: bool,
    /// Levels that changed, where not all did; each is there once.
    pub levels: Vec<(BookSide, Price)>,
    pub trades: Vec<LastTrade>,
}

/// Told that books changed, once they are written.
pub trait BookListener {
    /// Until [`BookListener::ring`] no reader is woken by what is told.
    fn gather(&self);

    /// Wakes the readers that were told something; the feed goes on to gather or not.
    fn ring(&self, gathers: bool);

    /// Whether anything that is told has a reader.
    fn anybody(&self) -> bool;

    /// Whether a reader wants to hear of this market.
    fn wanted(&self, market: MarketId) -> bool;

    /// What follows is of a frame that the feed took at `taken_at`, server time.
    fn begin_frame(&self, taken_at: Timestamp);

    /// The frame ends.
    fn end_frame(&self);

    /// Books of a wanted market changed, by outcome, or its tick did: from what to what. `now` is the time of what has none of
    /// its own.
    fn changed(
        &self,
        market: MarketId,
        touched: [Touched; 2],
        ticks: Option<(TickSize, TickSize)>,
        books: &Books,
        now: Timestamp,
    );

    /// What a price shows beside the book has changed.
    fn touched(&self, market: MarketId);

    /// A market is listed.
    fn listed(&self, market: MarketId, at: Timestamp);

    /// It was listed before it could be traded; now it can.
    fn opened(&self, market: MarketId, at: Timestamp);

    /// A market is resolved, at `at` or when the last frame about it came, if that is later.
    fn resolved(&self, market: MarketId, resolution: Resolution, at: Timestamp);
}

/// Told how the price of each market's first outcome goes.
pub trait PriceListener {
    /// What comes was told before, in an earlier run: what is known of it is passed over.
    fn hears_again(&mut self);

    /// The first outcome's price became `mid` at `venue_now`.
    fn note(&mut self, market: MarketId, venue_now: Timestamp, mid: Mid);

    /// Time goes on: hands over what was noted when it is due. `now` is server time.
    fn turn(&mut self, now: Timestamp);

    /// Hands over what was noted.
    fn hand_over(&mut self);
}

/// No listener.
impl BookListener for () {
    fn gather(&self) {}

    fn ring(&self, _: bool) {}

    fn anybody(&self) -> bool {
        false
    }

    fn wanted(&self, _: MarketId) -> bool {
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
    fn hears_again(&mut self) {}

    fn note(&mut self, _: MarketId, _: Timestamp, _: Mid) {}

    fn turn(&mut self, _: Timestamp) {}

    fn hand_over(&mut self) {}
}
