//! What feed and venue exchange besides frames: wrong books, outages, traded markets.

use super::doubts::Verdict;
use super::publish::OUTCOMES;
use super::{Desk, Links};
use crate::tape::Origin;
use crate::{FeedUpdate, Frame, Outages, Venue};
use engine::id::Outcome;
use engine::market::Market;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;

impl<L: Links> Desk<L> {
    /// Compares the books after a frame with the best prices that the frame states. Called before `touched` is drained.
    pub(super) fn doubt_frame(&mut self, frame: &Frame<'_>) {
        let books = self.writer.books();
        for (instrument, _) in &self.touched {
            self.doubts.changed(instrument.market(), books, frame.received);
        }
        for update in frame.updates {
            let FeedUpdate::Top { token, bid, ask } = update else { continue };
            let Some(instrument) = self.catalog.by_token(token) else { continue };
            let Some(Ok(current)) = books.book(instrument).map(|book| book.best()) else { continue };
            if self.doubts.top(instrument, [*bid, *ask], current, frame.received) {
                self.resyncs.push(instrument);
            }
        }
    }

    /// Acts on the checks of wrong and silent books.
    pub(super) fn doubt(&mut self, venue_now: Timestamp, venue: &mut dyn Venue) {
        for market in self.lost.drain(..) {
            let Some(cell) = self.catalog.market(market) else { continue };
            tracing::warn!(
                slug = cell.listing.slug,
                "the venue sent no change of a book that has changed; the market is subscribed again"
            );
            // The book of the response is current, but changes until the new subscription are lost.
            OUTCOMES.iter().for_each(|&outcome| self.writer.gap(market.instrument(outcome)));
            venue.resubscribe(cell.token(Outcome::First));
        }
        let quiet = self.quiet.turn(&self.catalog, self.writer.books(), venue_now);
        if !quiet.is_empty() {
            let tokens: Vec<&str> =
                quiet.iter().filter_map(|market| Some(self.catalog.market(*market)?.token(Outcome::First))).collect();
            venue.check(&tokens);
        }
        let verdicts = self.doubts.turn(self.writer.books(), venue_now);
        let requested = self.resyncs.drain(..).map(Verdict::Resync);
        for verdict in requested.chain(verdicts) {
            match verdict {
                Verdict::Resync(instrument) => {
                    if let Some(cell) = self.catalog.of_instrument(instrument) {
                        venue.resync(cell.token(instrument.outcome()));
                    }
                }
                Verdict::Distrust(market) => self.writer.distrust(market),
                Verdict::Release(market) => {
                    let books = self.writer.books();
                    OUTCOMES.iter().for_each(|&outcome| self.publisher.book(market.instrument(outcome), books));
                }
            }
        }
    }

    /// Applies outages of venues (engine/docs/execution.md §10). When one venue of several is out, only its books are
    /// untradable, until new snapshots come.
    pub(super) fn watch_outages(&mut self, outages: Outages) {
        if self.writer.books().outage() != outages.all {
            match outages.all {
                true => tracing::warn!("all venues are out: market orders are refused, other orders rest and wait"),
                false => tracing::info!("the venue is back"),
            }
            self.writer.outage(outages.all);
        }
        self.writer.no_contact(outages.no_contact);
        let before = std::mem::replace(&mut self.outages, outages);
        for origin in outages.out.without(before.out).iter() {
            tracing::warn!(
                venue = origin.name(),
                "no connection to the venue works: its books fill no orders until it is back"
            );
            let is_of =
                |cell: &&MarketCell| Origin::of(cell.listing.venue) == Some(origin) && cell.resolution().is_none();
            self.catalog.iter().filter(is_of).for_each(|cell| self.writer.distrust(cell.id));
        }
    }

    /// Adds the unresolved markets of the journal to the venue, highest precedence first, because the venue may limit
    /// how many it follows.
    pub(super) fn recall(&self, venue: &mut dyn Venue) {
        let cell = |market: &Market| self.catalog.market(self.catalog.by_condition(&market.listing.condition)?);
        let mut known: Vec<_> = self.markets.unresolved().map(|market| (market, cell(market))).collect();
        // The sort is stable: markets of equal precedence stay in the order of the journal.
        known.sort_by_key(|(market, cell)| {
            let is_window = market.listing.updown.is_some() && !market.ended;
            let volume = cell.and_then(|cell| cell.figures().volume_24h);
            std::cmp::Reverse((cell.is_some_and(MarketCell::is_staked), is_window, volume))
        });
        for (market, cell) in known {
            venue.recall(market);
            if cell.is_some_and(MarketCell::is_staked) {
                venue.stake(&market.listing.condition);
            }
        }
    }

    /// Notifies the venue of markets that users have begun to trade.
    pub(super) fn send_stakes(&mut self, venue: &mut dyn Venue) {
        if self.catalog.take_newly_staked() {
            let staked = self.catalog.iter().filter(|cell| cell.is_staked() && cell.resolution().is_none());
            let staked: Vec<&MarketCell> = staked.collect();
            staked.iter().for_each(|cell| venue.stake(&cell.listing.condition));
            self.quiet.staked(staked.iter().map(|cell| cell.id).collect());
        }
    }
}
