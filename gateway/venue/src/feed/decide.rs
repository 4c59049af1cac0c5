//! Effects of an update besides the levels of books: facts about markets, which are decided here and journaled, and
//! unjournaled state: figures, strikes, spot prices, and books that become untrusted.

use super::{Desk, Links};
use crate::{FeedUpdate, Frame};
use engine::id::MarketId;
use engine::market::catalog;
use engine::market::mutation::MarketMutation;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::sync::atomic::Ordering;

impl<L: Links> Desk<L> {
    /// Decides the facts of one update; they are applied here and journaled by the next flush.
    pub(super) fn decide(&mut self, update: &FeedUpdate, frame: &Frame<'_>, now: Timestamp) {
        let venue_now = self.ends_by(frame.received);
        match update {
            FeedUpdate::Listed { listing, state } => {
                let facts = self.markets.list(listing, *state, venue_now, now);
                self.decided(facts);
            }
            FeedUpdate::StateChanged { condition, state } => {
                let fact = self.known(condition).and_then(|market| self.markets.state(market, *state, now));
                self.decided(fact);
            }
            FeedUpdate::EndChanged { condition, end } => {
                let facts = self.known(condition).map(|market| self.markets.end(market, *end, venue_now, now));
                self.decided(facts.unwrap_or_default());
            }
            FeedUpdate::TickChanged { condition, tick } => {
                let facts = self.known(condition).map(|market| self.markets.tick(market, *tick, now));
                self.decided(facts.unwrap_or_default());
            }
            // Without a use for them nothing is journaled.
            FeedUpdate::Fees { condition, schedule } if self.follows_fees => {
                let fact = self.known(condition).and_then(|market| self.markets.fees(market, *schedule, now));
                self.decided(fact);
            }
            FeedUpdate::Resolved { condition, resolution, .. } => match &mut self.deferred {
                Some(deferred) if self.waits => deferred.push((condition.clone(), *resolution)),
                _ => self.resolved(condition, *resolution, now),
            },
            _ => {}
        }
    }

    /// Applies the result of a market.
    pub(super) fn resolved(&mut self, condition: &str, resolution: Resolution, now: Timestamp) {
        let fact = self.known(condition).and_then(|market| self.markets.resolve(market, resolution, now));
        self.decided(fact);
    }

    /// Applies what is neither journaled nor a level of a book.
    pub(super) fn apply_unjournaled(&mut self, update: &FeedUpdate, connection: u8, now: Timestamp) {
        match update {
            FeedUpdate::Figures { condition, figures } => {
                if let Some(market) = self.known(condition) {
                    let crate::Figures { volume_24h, volume_total, liquidity } = *figures;
                    let figures = catalog::Figures { volume_24h, volume_total, liquidity };
                    self.catalog.figures(market, figures, now);
                    self.publisher.touched(market);
                }
            }
            FeedUpdate::Stated { condition, prices } => {
                if let Some(market) = self.known(condition).filter(|market| self.catalog.market(*market).is_some())
                    && self.writer.stated(market, prices)
                {
                    self.publisher.touched(market);
                }
            }
            FeedUpdate::Strike { condition, strike, price_to_beat } => {
                if let Some(market) = self.known(condition) {
                    self.catalog.strike(market, strike.as_deref(), price_to_beat.as_deref());
                }
            }
            FeedUpdate::Spot { asset, family, micros, at } => self.spot.tell(*asset, *family, *micros, *at),
            FeedUpdate::Gap { tokens, reason } => {
                if tokens.is_empty() {
                    // The adapter has logged the lost connection.
                    tracing::debug!(%reason, connection, "the books of a connection wait for snapshots");
                    self.writer.gap_connection(connection);
                    self.held.retain(|_, held| held.connection != connection);
                }
                if !tokens.is_empty() {
                    tracing::warn!(%reason, tokens = tokens.len(), "books are unreliable; they wait for a snapshot");
                }
                // A wrongly folded book must not be traded on; the book of a lost connection may still be right.
                for token in tokens {
                    self.held.remove(token.as_str());
                    if let Some(instrument) = self.catalog.by_token(token) {
                        self.writer.distrust(instrument.market());
                    }
                }
            }
            FeedUpdate::Left { tokens } => {
                tokens.iter().for_each(|token| drop(self.held.remove(token.as_str())));
                if let Some(instrument) = self.catalog.by_token(&tokens[0]) {
                    self.writer.distrust(instrument.market());
                }
            }
            _ => {}
        }
    }

    fn known(&self, condition: &str) -> Option<MarketId> {
        let market = self.markets.by_condition(condition);
        if market.is_none() {
            self.figures.unlisted.fetch_add(1, Ordering::Relaxed);
        }
        market
    }

    pub(super) fn decided(&mut self, facts: impl IntoIterator<Item = MarketMutation>) {
        for fact in facts {
            self.markets.apply(&fact);
            self.pending.push(fact);
        }
    }

    /// Venue time has reached `venue_now`: applies the end dates that have passed.
    pub(super) fn advance(&mut self, venue_now: Timestamp, drives_clock: bool) {
        if drives_clock {
            self.writer.recording(venue_now);
        }
        // When ages are measured in server time, they are read by the server clock: the recording's may differ a lot.
        if drives_clock && !self.ages_on_server_time {
            self.writer.clock(venue_now);
        }
        let venue_now = self.ends_by(venue_now);
        if self.markets.next_end().is_some_and(|end| end <= venue_now) {
            let facts = self.markets.end_passed(venue_now, self.clock.now());
            self.decided(facts);
        }
    }
}
