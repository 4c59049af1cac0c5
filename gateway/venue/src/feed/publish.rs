//! Notifications of the feed to the streams. They are made only while a stream listens, and read back from the ladders,
//! so that clamped or dropped levels are reported as stored.

use super::super::FeedUpdate;
use super::pending;
use engine::amount::Price;
use engine::book::listener::{BookListener, Touched};
use engine::book::{BookWriter, Books, LastTrade};
use engine::fact;
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::market::catalog::{Catalog, MarketCell};
use engine::market::mutation::MarketMutation;
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use std::sync::Arc;

/// Both outcomes, in their order.
pub const OUTCOMES: [Outcome; 2] = [Outcome::First, Outcome::Second];

/// Notifies a [`BookListener`] of what the feed has written.
pub struct Publisher<B> {
    listener: B,
    catalog: Arc<Catalog>,
}

impl<B: BookListener> Publisher<B> {
    pub fn new(listener: B, catalog: Arc<Catalog>) -> Publisher<B> {
        Publisher { listener, catalog }
    }

    /// Collects notifications; no stream is woken until [`Publisher::ring`].
    pub(super) fn gather(&self) {
        self.listener.gather();
    }

    /// Wakes the streams that have notifications; `gathers`: the feed continues to collect.
    pub(super) fn ring(&self, gathers: bool) {
        self.listener.ring(gathers);
    }

    /// Reports a frame that was taken at `taken_at` and whose book part is written. For a market that `held` selects
    /// only trades are reported; its whole book follows when it is released.
    pub fn frame(&self, updates: &[FeedUpdate], books: &Books, taken_at: Timestamp, held: impl Fn(MarketId) -> bool) {
        if !self.listener.has_readers() {
            return;
        }
        let instrument_of = |update| Some((self.catalog.by_token(pending::token(update)?)?, update));
        let mut known: Vec<(InstrumentId, &FeedUpdate)> = updates.iter().filter_map(instrument_of).collect();
        known.retain(|(instrument, _)| self.listener.has_reader(instrument.market()));
        // The sort is stable: the updates of one market stay in order.
        known.sort_by_key(|(instrument, _)| instrument.market());
        self.listener.begin_frame(taken_at);
        for updates in known.chunk_by(|one, next| one.0.market() == next.0.market()) {
            let mut touched: [Touched; 2] = Default::default();
            updates.iter().for_each(|(instrument, update)| touch(&mut touched[instrument.outcome() as usize], update));
            let market = updates[0].0.market();
            if held(market) {
                touched.iter_mut().for_each(leave_out_book);
                if touched.iter().all(|touched| touched.trades.is_empty()) {
                    continue;
                }
            }
            self.listener.changed(market, touched, None, books, Timestamp(0));
        }
        self.listener.end_frame();
    }

    /// Reports that a whole book was written.
    pub(super) fn book(&self, instrument: InstrumentId, books: &Books) {
        if self.listener.has_readers() && self.listener.has_reader(instrument.market()) {
            let mut touched: [Touched; 2] = Default::default();
            touched[instrument.outcome() as usize].whole = true;
            self.listener.changed(instrument.market(), touched, None, books, Timestamp(0));
        }
    }

    /// Reports that something shown beside the book of a market has changed.
    pub(super) fn touched(&self, market: MarketId) {
        if self.listener.has_readers() {
            self.listener.touched(market);
        }
    }

    /// Publishes a released fact, and reports it.
    pub fn fact(&self, fact: &MarketMutation, writer: &mut BookWriter, venue_now: Timestamp) {
        let before = match fact {
            MarketMutation::TickChanged(fact::TickChanged { market, .. }) => {
                self.catalog.market(*market).map(MarketCell::tick)
            }
            _ => None,
        };
        let opens = match fact {
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, .. }) => {
                self.catalog.market(*market).is_some_and(|cell| cell.state() == MarketState::Upcoming)
            }
            _ => false,
        };
        engine::book::publish(fact, &self.catalog, writer);
        if !self.listener.has_readers() {
            return;
        }
        match fact {
            MarketMutation::MarketListed(fact::MarketListed { market, .. }) => self.listener.listed(*market, venue_now),
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, .. }) => {
                if opens {
                    self.listener.opened(*market, venue_now);
                }
                self.listener.touched(*market);
            }
            MarketMutation::TickChanged(fact::TickChanged { market, tick, .. })
                if self.listener.has_reader(*market) =>
            {
                let touched = [(); 2].map(|()| Touched { whole: true, ..Touched::default() });
                let ticks = before.map(|before| (before, *tick));
                self.listener.changed(*market, touched, ticks, writer.books(), venue_now);
            }
            MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, .. }) => {
                self.listener.resolved(*market, *resolution, venue_now);
            }
            _ => {}
        }
    }
}

/// Adds an update to the changes of its instrument.
fn touch(touched: &mut Touched, update: &FeedUpdate) {
    match update {
        FeedUpdate::BookSnapshot { .. } => touched.whole = true,
        FeedUpdate::BookDelta { levels, .. } => {
            for (side, price, _) in levels {
                let held = (1..Price::ONE.0).contains(&price.0);
                if held && !touched.levels.contains(&(*side, *price)) {
                    touched.levels.push((*side, *price));
                }
            }
        }
        FeedUpdate::LastTrade { price, size, taker_buys, venue_ts, .. } => {
            touched.trades.push(LastTrade { price: *price, size: *size, taker_buys: *taker_buys, at: *venue_ts });
        }
        _ => {}
    }
}

/// Removes everything but trades.
fn leave_out_book(touched: &mut Touched) {
    touched.whole = false;
    touched.levels.clear();
}
