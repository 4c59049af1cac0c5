//! Kalshi's REST responses: listings, changes, and results of markets (gateway/docs/live-venues.md §4.1, §4.3).

use super::book::{Book, Fold};
use super::category;
use super::dto;
use super::listing::{grid, listing, resolution, state};
use super::translate::{Market, Sequence, Sides, Translate};
use crate::bounds;
use crate::fees::Statement;
use crate::loose::Loose;
use crate::skips::Skip;
use crate::{FeedUpdate, Figures, Stated, rest_path};
use engine::market::terms::{Category, Listing, MarketState, Resolution};
use engine::time::Timestamp;

impl Translate {
    /// Translates one REST response; the path decides its kind.
    pub fn rest(&mut self, url: &str, status: u16, body: &str, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let path = rest_path(url);
        if status != 200 {
            // Markets do not wait for an event or series that the venue does not have.
            match path.as_slice() {
                [.., "events", ticker] if status == 404 => {
                    self.events.entry((*ticker).into()).or_default().category.get_or_insert(Category::Other);
                }
                [.., "series", ticker] if status == 404 => drop(self.series.entry((*ticker).into()).or_default()),
                _ => {}
            }
            return self.skips.count(Skip::HttpStatus, || format!("{status} from {url}"));
        }
        let Ok(answer) = serde_json::from_str::<dto::Answer<'_>>(body) else {
            return self.skips.count(Skip::BadJson, || body.into());
        };
        match path.as_slice() {
            [.., "markets", "trades"] => {}
            [.., "markets", ticker, "orderbook"] => self.rest_book(ticker, &answer, received, updates),
            [.., "series", ticker] => {
                let series: dto::Series<'_> = answer.series.object().unwrap_or_default();
                self.learn_series(ticker, &series, updates);
            }
            [.., "events"] | [.., "events", _] | [.., "markets"] | [.., "markets", _] => {
                self.catalogue(&answer, received, updates);
            }
            _ => self.skips.count(Skip::UnknownType, || format!("path {url}")),
        }
    }

    fn rest_book(&mut self, ticker: &str, answer: &dto::Answer<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(book) = answer.orderbook_fp.or(answer.orderbook).object::<dto::Orderbook<'_>>() else {
            return self.skips.count(Skip::MissingField, || format!("orderbook of {ticker}"));
        };
        let dollars = book.yes.is_absent() && book.no.is_absent()
            || !book.yes_dollars.is_absent()
            || !book.no_dollars.is_absent();
        let (yes, no) = if dollars { (book.yes_dollars, book.no_dollars) } else { (book.yes, book.no) };
        self.book(Some(ticker), &Sides { yes, no, dollars }, None, at, updates);
    }

    fn catalogue(&mut self, answer: &dto::Answer<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let events = answer.events.elements().unwrap_or_default();
        let single = (!answer.event.is_absent()).then_some(answer.event);
        for row in events.into_iter().chain(single) {
            let Some(event) = row.object::<dto::Event<'_>>() else {
                self.skips.count(Skip::BadJson, || row.raw().into());
                continue;
            };
            self.learn_event(&event);
            for row in event.markets.elements().unwrap_or_default() {
                self.market_row(row, event.event_ticker, received, updates);
            }
        }
        let single = (!answer.market.is_absent()).then_some(answer.market);
        for row in answer.markets.elements().unwrap_or_default().into_iter().chain(single) {
            self.market_row(row, Loose::default(), received, updates);
        }
    }

    /// Stores title and category of an event, and the latest close time of the markets in its row.
    pub(super) fn learn_event(&mut self, event: &dto::Event<'_>) {
        let Some(ticker) = event.event_ticker.owned() else { return };
        let of_series = || self.series.get(&*event.series_ticker.filled()?).cloned();
        let category = event.category.owned().or_else(of_series);
        // No other source has its category.
        let category = category.or_else(|| event.series_ticker.filled().is_none().then(String::new));
        let facts = self.events.entry(ticker).or_default();
        facts.title = event.title.owned().or(facts.title.take());
        facts.series = event.series_ticker.owned().or(facts.series.take());
        facts.category = category.map(|name| category::category(&self.names, &name)).or(facts.category);
        for market in event.markets.elements().unwrap_or_default() {
            let close = market.object::<dto::Market<'_>>().and_then(|market| market.close_time.instant());
            facts.end = facts.end.max(close);
        }
    }

    /// Translates a market row: a listing if the market is new, else its changes.
    fn market_row(&mut self, row: Loose<'_>, event: Loose<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(market) = row.object::<dto::Market<'_>>() else {
            return self.skips.count(Skip::BadJson, || row.raw().into());
        };
        let Some(ticker) = market.ticker.filled() else {
            return self.skips.count(Skip::MissingField, || row.raw().into());
        };
        let status = market.status.text();
        let state = status.as_deref().map_or(Some(MarketState::Halted), state);
        let settled = state.is_none();
        let state = state.unwrap_or(MarketState::Closed);
        let of_event = market.event_ticker.or(event).filled();
        if self.markets.contains_key(&*ticker) {
            if let Some(event) = &of_event {
                self.note_series(&ticker, event);
            }
            if let Some(end) = market.close_time.instant() {
                self.set_end(&ticker, Some(end), updates);
            }
            self.set_grid(&ticker, &market, updates);
            self.set_state(&ticker, state, updates);
        } else if self.waits_for_event(market.event_ticker.or(event)) {
            return;
        } else {
            let Some(listing) = self.list(&market, event, state) else { return };
            updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        }
        self.state_fees(&ticker, updates);
        let figures = Figures {
            volume_24h: market.volume_24h_fp.or(market.volume_24h).figure(),
            volume_total: market.volume_fp.or(market.volume).figure(),
            liquidity: market.liquidity_dollars.figure(),
        };
        if let Some(market) = self.markets.get(&*ticker).filter(|_| figures != Figures::default()) {
            updates.push(FeedUpdate::Figures { condition: market.condition.clone(), figures });
        }
        let last = match market.last_price_dollars.is_absent() {
            true => market.last_price.cents(),
            false => market.last_price_dollars.dollars(),
        };
        if let Some(known) = self.markets.get(&*ticker).filter(|known| known.resolved.is_none())
            && let Ok(yes) = last
        {
            // A Yes trade at this price is a No trade at its complement.
            let prices = Stated { shown: [None; 2], last: [Some(yes), Some(yes.complement())] };
            updates.push(FeedUpdate::Stated { condition: known.condition.clone(), prices });
        }
        if let Some(known) = self.markets.get_mut(&*ticker) {
            // A dispute withdraws the announced result; an amendment replaces it.
            match status.as_deref() {
                Some("determined" | "amended") => {
                    known.determined = resolution(market.result, market.settlement_value_dollars);
                }
                Some("disputed") => known.determined = None,
                _ => {}
            }
        }
        if settled {
            let at = market.settlement_ts.instant().unwrap_or(at).min(at);
            self.finalized(&ticker, resolution(market.result, market.settlement_value_dollars), at, updates);
        }
    }

    /// Adds a market. `None` if it is known already or cannot be listed. `event` names its event if the row does not.
    pub(super) fn list(&mut self, row: &dto::Market<'_>, event: Loose<'_>, state: MarketState) -> Option<Listing> {
        let row_event = row.event_ticker.or(event);
        let facts = row_event.text().and_then(|ticker| self.events.get(&*ticker));
        let series = facts.and_then(|facts| facts.series.clone());
        let row = dto::Market { event_ticker: row_event, ..*row };
        let bounded = |(listing, grid)| bounds::bounded(listing, &self.skips).map(|listing| (listing, grid));
        let (listing, grid) = match listing(&row, facts).and_then(bounded) {
            Ok(listed) => listed,
            Err(kind) => {
                self.skips.count(kind, || format!("market {:?}", row.ticker));
                return None;
            }
        };
        if self.markets.contains_key(&listing.venue_market_id) {
            return None;
        }
        let market = Market {
            condition: listing.condition.clone(),
            tokens: listing.tokens.each_ref().map(|token| token.as_str().into()),
            tick: listing.tick,
            grid,
            state,
            end: listing.end,
            determined: None,
            resolved: None,
            book: Book::default(),
            series,
            fees: Statement::default(),
        };
        self.markets.insert(listing.venue_market_id.clone(), market);
        Some(listing)
    }

    /// Whether a market cannot be listed yet because its event is still being requested.
    pub(super) fn waits_for_event(&self, event: Loose<'_>) -> bool {
        let known = |ticker: &str| self.events.get(ticker).is_some_and(|event| event.category.is_some());
        self.sequence == Sequence::Checked && event.filled().is_some_and(|ticker| !known(&ticker))
    }

    /// Applies a changed price grid of a known market; a row without a grid changes nothing.
    fn set_grid(&mut self, ticker: &str, row: &dto::Market<'_>, updates: &mut Vec<FeedUpdate>) {
        if row.price_ranges.is_absent() && row.price_level_structure.is_absent() {
            return;
        }
        if let Some(market) = self.markets.get_mut(ticker)
            && market.resolved.is_none()
        {
            let grid = grid(row);
            if market.grid != grid {
                let rounds = market.grid.rounds() || grid.rounds();
                market.grid = grid;
                market.retick(updates);
                if rounds && market.book.fold != Fold::Lost {
                    // Its levels were rounded to the old grid.
                    market.lose("the price grid changed", updates);
                }
            }
        }
    }

    /// Changes a market's state; a resolved market keeps its state.
    pub(super) fn set_state(&mut self, ticker: &str, state: MarketState, updates: &mut Vec<FeedUpdate>) {
        if let Some(market) = self.markets.get_mut(ticker)
            && market.resolved.is_none()
            && market.state != state
        {
            market.state = state;
            updates.push(FeedUpdate::StateChanged { condition: market.condition.clone(), state });
        }
    }

    pub(super) fn set_end(&mut self, ticker: &str, end: Option<Timestamp>, updates: &mut Vec<FeedUpdate>) {
        if let Some(market) = self.markets.get_mut(ticker)
            && market.resolved.is_none()
            && market.end != end
        {
            market.end = end;
            updates.push(FeedUpdate::EndChanged { condition: market.condition.clone(), end });
        }
    }

    /// Applies a final status: the market is resolved if its result can be paid, else closed permanently.
    pub(super) fn finalized(
        &mut self,
        ticker: &str,
        result: Option<Resolution>,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        match result {
            Some(resolution) => self.settle(ticker, resolution, at, updates),
            None => {
                self.skips.count(Skip::UnsupportedResult, || format!("market {ticker}"));
                self.set_state(ticker, MarketState::Closed, updates);
            }
        }
    }

    /// Resolves a market; only the first result counts.
    pub(super) fn settle(
        &mut self,
        ticker: &str,
        resolution: Resolution,
        venue_ts: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let Some(market) = self.markets.get_mut(ticker) else { return };
        match market.resolved {
            None => {
                (market.state, market.resolved) = (MarketState::Resolved, Some(resolution));
                updates.push(FeedUpdate::Resolved { condition: market.condition.clone(), resolution, venue_ts });
            }
            Some(known) if known != resolution => {
                self.skips.count(Skip::ResultsDisagree, || format!("{ticker}: {known:?}, now {resolution:?}"));
            }
            Some(_) => {}
        }
    }
}
