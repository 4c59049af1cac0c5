//! What the feed tells the streams of what it did: made only where somebody listens, read back from the ladders, so
//! that what was clamped or dropped there is told as it stands.

use super::super::FeedUpdate;
use super::pending;
use crate::api::books::view::{self, Shown};
use crate::api::markets::quote::OUTCOMES;
use crate::ws::change::{BookChange, Change, Trade, What};
use crate::ws::market_text::Stands;
use crate::ws::news::News;
use engine::amount::{Price, TickSize};
use engine::book::{BookSide, BookWriter, Books, Depth, LastTrade};
use engine::fact;
use engine::id::{InstrumentId, MarketId, Outcome};
use engine::market::catalog::{Catalog, MarketCell};
use engine::market::mutation::MarketMutation;
use engine::market::terms::MarketState;
use engine::time::Timestamp;
use std::sync::Arc;

/// The feed's mouth.
pub(crate) struct Publisher {
    news: Arc<News>,
    catalog: Arc<Catalog>,
}

/// What the updates of a frame say of one token.
#[derive(Default)]
struct Said {
    whole: bool,
    levels: Vec<(BookSide, Price)>,
    trades: Vec<LastTrade>,
}

impl Publisher {
    pub(crate) fn new(news: Arc<News>, catalog: Arc<Catalog>) -> Publisher {
        Publisher { news, catalog }
    }

    /// Until [`Publisher::ring`] nobody is woken by what is told.
    pub(super) fn gather(&self) {
        self.news.gather();
    }

    /// Wakes who was told something; the feed goes on to gather or not.
    pub(super) fn ring(&self, gathers: bool) {
        self.news.ring(gathers);
    }

    /// Tells of a frame that was taken at `taken_at` and whose book part is written down. Of a market that is held back
    /// only trades are told; its book comes whole when it is let go.
    pub(crate) fn frame(
        &self,
        updates: &[FeedUpdate],
        books: &Books,
        taken_at: Timestamp,
        held: impl Fn(MarketId) -> bool,
    ) {
        if !self.news.anybody() {
            return;
        }
        let known = |update| Some((self.catalog.by_token(pending::token(update)?)?, update));
        let mut heard: Vec<(InstrumentId, &FeedUpdate)> = updates.iter().filter_map(known).collect();
        heard.retain(|(instrument, _)| self.news.wanted(instrument.market()));
        // Stable: what is said of one market stays in its order.
        heard.sort_by_key(|(instrument, _)| instrument.market());
        self.news.begin_frame(taken_at);
        for updates in heard.chunk_by(|one, next| one.0.market() == next.0.market()) {
            let mut said: [Said; 2] = Default::default();
            updates.iter().for_each(|(instrument, update)| said[instrument.outcome() as usize].hear(update));
            let market = updates[0].0.market();
            if held(market) {
                said.iter_mut().for_each(Said::leave_out_book);
                if said.iter().all(|said| said.trades.is_empty()) {
                    continue;
                }
            }
            self.tell(market, said, None, books, Timestamp(0));
        }
        self.news.end_frame();
    }

    /// Tells of a book that was written down whole.
    pub(super) fn book(&self, instrument: InstrumentId, books: &Books) {
        if self.news.anybody() && self.news.wanted(instrument.market()) {
            let mut said: [Said; 2] = Default::default();
            said[instrument.outcome() as usize].whole = true;
            self.tell(instrument.market(), said, None, books, Timestamp(0));
        }
    }

    /// What a price shows beside the book has changed.
    pub(super) fn touched(&self, market: MarketId) {
        if self.news.anybody() {
            self.news.touched(market);
        }
    }

    /// Publishes a released fact, and tells of it.
    pub(super) fn fact(&self, fact: &MarketMutation, writer: &mut BookWriter, venue_now: Timestamp) {
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
        engine::market::publish(fact, &self.catalog, writer);
        if !self.news.anybody() {
            return;
        }
        match fact {
            MarketMutation::MarketListed(fact::MarketListed { market, .. }) => self.news.listed(*market, venue_now),
            MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, .. }) => {
                if opens {
                    self.news.opened(*market, venue_now);
                }
                self.news.touched(*market);
            }
            MarketMutation::TickChanged(fact::TickChanged { market, tick, .. }) if self.news.wanted(*market) => {
                let said = [(); 2].map(|()| Said { whole: true, ..Said::default() });
                let ticks = before.map(|before| (before, *tick));
                self.tell(*market, said, ticks, writer.books(), venue_now);
            }
            MarketMutation::MarketResolved(fact::MarketResolved { market, resolution, .. }) => {
                let told = OUTCOMES.map(|outcome| self.news.told(market.instrument(outcome)));
                let at = told.into_iter().fold(venue_now, Timestamp::max);
                self.news.resolved(*market, *resolution, at);
            }
            _ => {}
        }
    }

    /// Makes a change of what was said and tells it. `now` is the time of what has none of its own. A resolved market
    /// has no book any more.
    fn tell(
        &self,
        market: MarketId,
        said: [Said; 2],
        ticks: Option<(TickSize, TickSize)>,
        books: &Books,
        now: Timestamp,
    ) {
        let Some(cell) = self.catalog.market(market).filter(|cell| cell.resolution().is_none()) else { return };
        if !self.news.followed(market) {
            return self.news.touched(market);
        }
        let mut change = Change::empty(market, self.news.next_number());
        (change.ticks, change.tick, change.fee_rate) = (ticks, cell.tick(), self.news.fees.rate(cell.listing.category));
        change.version = books.version(cell.instrument(Outcome::First));
        let mut moved = Vec::with_capacity(2);
        for (outcome, said) in OUTCOMES.into_iter().zip(&said) {
            let (instrument, token) = (cell.instrument(outcome), &mut change.tokens[outcome as usize]);
            if said.whole || !said.levels.is_empty() {
                let look = |shown: Shown<'_>| (said.book(shown), shown.depth.changed_at);
                if let Ok((book, changed_at)) = view::copied(books, cell, instrument, usize::MAX, look) {
                    token.at = self.news.tell_time(instrument, changed_at);
                    if matches!(book.what, What::Levels(_)) {
                        change.at = change.at.max(token.at);
                        moved.push(instrument);
                    }
                    token.book = Some(book);
                }
            }
            if ticks.is_some() && token.book.is_none() {
                token.at = self.news.tell_time(instrument, now);
            }
        }
        for instrument in moved {
            self.news.tell_time(instrument, change.at);
        }
        for (outcome, said) in OUTCOMES.into_iter().zip(&said) {
            if said.trades.is_empty() {
                continue;
            }
            let (instrument, token) = (cell.instrument(outcome), &mut change.tokens[outcome as usize]);
            let hash = match &token.book {
                Some(book) => Some(book.hash),
                None => view::copied(books, cell, instrument, usize::MAX, |shown| shown.hash()).ok(),
            };
            let told = |trade: &LastTrade| Trade::new(*trade, self.news.tell_time(instrument, trade.at), hash);
            token.trades = said.trades.iter().map(told).collect();
        }
        self.news.change(change);
    }
}

impl Said {
    fn hear(&mut self, update: &FeedUpdate) {
        match update {
            FeedUpdate::BookSnapshot { .. } => self.whole = true,
            FeedUpdate::BookDelta { levels, .. } => {
                for (side, price, _) in levels {
                    let held = (1..Price::ONE.0).contains(&price.0);
                    if held && !self.levels.contains(&(*side, *price)) {
                        self.levels.push((*side, *price));
                    }
                }
            }
            FeedUpdate::LastTrade { price, size, taker_buys, venue_ts, .. } => {
                self.trades.push(LastTrade { price: *price, size: *size, taker_buys: *taker_buys, at: *venue_ts });
            }
            _ => {}
        }
    }

    /// Only trades are to be told.
    fn leave_out_book(&mut self) {
        self.whole = false;
        self.levels.clear();
    }

    /// The book behind what was said.
    fn book(&self, shown: Shown<'_>) -> BookChange {
        let depth = shown.depth;
        let what = if self.whole {
            What::Whole { depth: Box::new(depth.clone()), last: shown.last }
        } else {
            What::Levels(self.levels.iter().map(|(side, price)| stands(depth, *side, *price)).collect())
        };
        BookChange::new(what, shown.hash(), depth.top)
    }
}

/// A level as it stands now.
fn stands(depth: &Depth, side: BookSide, price: Price) -> Stands {
    Stands { side, price, size: depth.side(side).size_at(price) }
}

#[cfg(test)]
mod tests;
