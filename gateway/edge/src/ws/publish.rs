//! Makes news for the streams of changed books: with hashes and trades, and only for markets that are followed.

use super::change::{BookChange, BookContent, Change, Trade};
use super::market_text::LevelSize;
use super::news::News;
use crate::api::books::view::{self, BookCopy};
use crate::api::markets::quote::OUTCOMES;
use engine::amount::{Price, TickSize};
use engine::book::listener::{BookListener, Touched};
use engine::book::{BookSide, Books, Depth, LastTrade};
use engine::id::{MarketId, Outcome};
use engine::market::catalog::Catalog;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::sync::Arc;

/// The news, as a listener to books.
pub struct BookNews {
    news: Arc<News>,
    catalog: Arc<Catalog>,
}

impl BookNews {
    pub fn new(news: Arc<News>, catalog: Arc<Catalog>) -> BookNews {
        BookNews { news, catalog }
    }
}

impl BookListener for BookNews {
    fn gather(&self) {
        self.news.gather();
    }

    fn ring(&self, gathers: bool) {
        self.news.ring(gathers);
    }

    #[inline]
    fn has_readers(&self) -> bool {
        self.news.has_interest()
    }

    #[inline]
    fn has_reader(&self, market: MarketId) -> bool {
        self.news.has_interest_in(market)
    }

    fn begin_frame(&self, taken_at: Timestamp) {
        self.news.begin_frame(taken_at);
    }

    fn end_frame(&self) {
        self.news.end_frame();
    }

    /// Publishes a change. `now` is the time of updates that have none. A resolved market has no book, so nothing is
    /// published.
    fn changed(
        &self,
        market: MarketId,
        touched: [Touched; 2],
        ticks: Option<(TickSize, TickSize)>,
        books: &Books,
        now: Timestamp,
    ) {
        let Some(cell) = self.catalog.market(market).filter(|cell| cell.resolution().is_none()) else { return };
        if !self.news.followed(market) {
            return self.news.touched(market);
        }
        let mut change = Change::empty(market, self.news.next_number());
        (change.ticks, change.tick, change.fee_rate) = (ticks, cell.tick(), self.news.fees.shown(cell).bps());
        change.version = books.version(cell.instrument(Outcome::First));
        let mut moved = Vec::with_capacity(2);
        for (outcome, update) in OUTCOMES.into_iter().zip(&touched) {
            let (instrument, token) = (cell.instrument(outcome), &mut change.tokens[outcome as usize]);
            if update.whole || !update.levels.is_empty() {
                let look = |shown: BookCopy<'_>| (self::book(update, shown), shown.depth.changed_at);
                if let Ok((book, changed_at)) = view::copied(books, cell, instrument, usize::MAX, look) {
                    token.at = self.news.advance_time(instrument, changed_at);
                    if matches!(book.content, BookContent::Levels(_)) {
                        change.at = change.at.max(token.at);
                        moved.push(instrument);
                    }
                    token.book = Some(book);
                }
            }
            if ticks.is_some() && token.book.is_none() {
                token.at = self.news.advance_time(instrument, now);
            }
        }
        for instrument in moved {
            self.news.advance_time(instrument, change.at);
        }
        for (outcome, update) in OUTCOMES.into_iter().zip(&touched) {
            if update.trades.is_empty() {
                continue;
            }
            let (instrument, token) = (cell.instrument(outcome), &mut change.tokens[outcome as usize]);
            let hash = match &token.book {
                Some(book) => Some(book.hash),
                None => view::copied(books, cell, instrument, usize::MAX, |shown| shown.hash()).ok(),
            };
            let made = |trade: &LastTrade| Trade::new(*trade, self.news.advance_time(instrument, trade.at), hash);
            token.trades = update.trades.iter().map(made).collect();
        }
        self.news.change(change);
    }

    fn touched(&self, market: MarketId) {
        self.news.touched(market);
    }

    fn listed(&self, market: MarketId, at: Timestamp) {
        self.news.listed(market, at);
    }

    fn opened(&self, market: MarketId, at: Timestamp) {
        self.news.opened(market, at);
    }

    fn resolved(&self, market: MarketId, resolution: Resolution, at: Timestamp) {
        let latest = OUTCOMES.map(|outcome| self.news.last_time(market.instrument(outcome)));
        self.news.resolved(market, resolution, latest.into_iter().fold(at, Timestamp::max));
    }
}

/// The book after an update.
fn book(touched: &Touched, shown: BookCopy<'_>) -> BookChange {
    let depth = shown.depth;
    let content = if touched.whole {
        BookContent::Whole { depth: Box::new(depth.clone()), last: shown.last }
    } else {
        BookContent::Levels(touched.levels.iter().map(|(side, price)| level_size(depth, *side, *price)).collect())
    };
    BookChange::new(content, shown.hash(), depth.top)
}

/// The current size of a level.
fn level_size(depth: &Depth, side: BookSide, price: Price) -> LevelSize {
    LevelSize { side, price, size: depth.side(side).size_at(price) }
}

#[cfg(test)]
mod tests;
