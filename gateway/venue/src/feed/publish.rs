//! What the feed tells the streams of what it did: made only where somebody listens, read back from the ladders, so
//! that what was clamped or dropped there is told as it stands.

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

/// The feed's mouth.
pub struct Publisher<B> {
    listener: B,
    catalog: Arc<Catalog>,
}

impl<B: BookListener> Publisher<B> {
    pub fn new(listener: B, catalog: Arc<Catalog>) -> Publisher<B> {
        Publisher { listener, catalog }
    }

    /// Until [`Publisher::ring`] nobody is woken by what is told.
    pub(super) fn gather(&self) {
        self.listener.gather();
    }

    /// Wakes who was told something; the feed goes on to gather or not.
    pub(super) fn ring(&self, gathers: bool) {
        self.listener.ring(gathers);
    }

    /// Tells of a frame that was taken at `taken_at` and whose book part is written down. Of a market that is held back
    /// only trades are told; its book comes whole when it is let go.
    pub fn frame(&self, updates: &[FeedUpdate], books: &Books, taken_at: Timestamp, held: impl Fn(MarketId) -> bool) {
        if !self.listener.anybody() {
            return;
        }
        let known = |update| Some((self.catalog.by_token(pending::token(update)?)?, update));
        let mut heard: Vec<(InstrumentId, &FeedUpdate)> = updates.iter().filter_map(known).collect();
        heard.retain(|(instrument, _)| self.listener.wanted(instrument.market()));
        // Stable: what is said of one market stays in its order.
        heard.sort_by_key(|(instrument, _)| instrument.market());
        self.listener.begin_frame(taken_at);
        for updates in heard.chunk_by(|one, next| one.0.market() == next.0.market()) {
            let mut said: [Touched; 2] = Default::default();
            updates.iter().for_each(|(instrument, update)| hear(&mut said[instrument.outcome() as usize], update));
            let market = updates[0].0.market();
            if held(market) {
                said.iter_mut().for_each(leave_out_book);
                if said.iter().all(|said| said.trades.is_empty()) {
                    continue;
                }
            }
            self.listener.changed(market, said, None, books, Timestamp(0));
        }
        self.listener.end_frame();
    }

    /// Tells of a book that was written down whole.
    pub(super) fn book(&self, instrument: InstrumentId, books: &Books) {
        if self.listener.anybody() && self.listener.wanted(instrument.market()) {
            let mut said: [Touched; 2] = Default::default();
            said[instrument.outcome() as usize].whole = true;
            self.listener.changed(instrument.market(), said, None, books, Timestamp(0));
        }
    }

    /// What a price shows beside the book has changed.
    pub(super) fn touched(&self, market: MarketId) {
        if self.listener.anybody() {
            self.listener.touched(market);
        }
    }

    /// Publishes a released fact, and tells of it.
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
        if !self.listener.anybody() {
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
            MarketMutation::TickChanged(fact::TickChanged { market, tick, .. }) if self.listener.wanted(*market) => {
                let said = [(); 2].map(|()| Touched { whole: true, ..Touched::default() });
                let ticks = before.map(|before| (before, *tick));
                self.listener.changed(*market, said, ticks, writer.books(), venue_now);
            }
            MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, .. }) => {
                self.listener.resolved(*market, *resolution, venue_now);
            }
            _ => {}
        }
    }
}

/// Adds what an update says.
fn hear(touched: &mut Touched, update: &FeedUpdate) {
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

/// Only trades are to be told.
fn leave_out_book(touched: &mut Touched) {
    touched.whole = false;
    touched.levels.clear();
}
