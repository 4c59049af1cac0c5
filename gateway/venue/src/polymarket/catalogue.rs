//! Polymarket's REST responses: listings, changes, and results of markets (gateway/docs/live-venues.md §2.1, §2.2,
//! §2.3, §3.1).

use super::dto;
use super::fees::{self, Fees};
use super::listing::{self, Tick};
use super::standing::{Standing, Verdict, final_prices, open_state};
use super::translate::{Market, ParsedBook, Token, Translate, Via, venue_time};
use crate::bounds;
use crate::loose::{Loose, scaled};
use crate::skips::Skip;
use crate::{FeedUpdate, Figures, Stated, rest_path};
use engine::amount::Cash;
use engine::id::Outcome;
use engine::market::terms::{Listing, MarketState, Resolution};
use engine::time::{SECOND, Timestamp};
use std::sync::Arc;

/// A market whose end is older than this and whose book is empty takes no orders any more.
const ABANDONED_AFTER: u64 = 600 * SECOND;
/// How long after a tick change on the socket catalogue rows may still have the old tick.
const CATALOGUE_FOLLOWS_WITHIN: u64 = 60 * SECOND;

impl Translate {
    /// Translates one REST response with this URL, status and body; the path decides its kind. `connection`: the socket
    /// that it was requested for, if any.
    pub fn rest(
        &mut self,
        (url, status, body): (&str, u16, &str),
        connection: u8,
        received: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let path = rest_path(url);
        let is_book = matches!(path.last(), Some(&"book" | &"books"));
        if status != 200 {
            // 404 means that a token has no book; it is not an error.
            if !(is_book && status == 404) {
                self.skips.count(Skip::HttpStatus, || format!("{status} from {url}"));
            }
            return;
        }
        let body = Loose::of(body.trim());
        let kind = match path.as_slice() {
            [.., "book" | "books"] => Row::Book,
            [.., "tags" | "series" | "prices-history" | "trades"] | [.., "series" | "tags", _] => return,
            [.., "events"] | [.., "events", _] | [.., "events", "slug", _] => Row::Event,
            [.., "markets" | "sampling-markets"] | [.., "markets" | "clob-markets", _] | [.., "markets", "slug", _] => {
                Row::Market
            }
            _ => return self.skips.count(Skip::UnknownType, || format!("path {url}")),
        };
        let Some(rows) = rows(body, kind) else {
            return self.skips.count(Skip::BadJson, || body.raw().into());
        };
        for row in rows {
            match kind {
                Row::Book => self.rest_book(row, connection, received, updates),
                Row::Event => self.event(row, received, updates),
                Row::Market => self.market_row(row, None, received, updates),
            }
        }
    }

    fn rest_book(&mut self, row: Loose<'_>, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match row.object::<dto::Message<'_>>() {
            Some(message) => {
                self.check_hash(row.raw());
                let at = venue_time(message.timestamp.text().as_deref(), received);
                self.book(ParsedBook::of(&message), Via::Rest, connection, at, updates);
            }
            None => self.skips.count(Skip::BadJson, || row.raw().into()),
        }
    }

    fn event(&mut self, row: Loose<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match row.object::<dto::GammaEvent<'_>>() {
            Some(event) => {
                for row in event.markets.elements().unwrap_or_default() {
                    self.market_row(row, Some(&event), received, updates);
                }
            }
            None => self.skips.count(Skip::BadJson, || row.raw().into()),
        }
    }

    /// Translates a market row of either service.
    fn market_row(
        &mut self,
        row: Loose<'_>,
        parent: Option<&dto::GammaEvent<'_>>,
        received: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let (Some(gamma), Some(clob)) = (row.object::<dto::GammaMarket<'_>>(), row.object::<dto::ClobMarket<'_>>())
        else {
            return self.skips.count(Skip::BadJson, || row.raw().into());
        };
        if !gamma.condition_id.is_absent() {
            return self.gamma_market(&gamma, parent, received, updates);
        }
        if !clob.condition_id.is_absent() {
            return self.clob_market(&clob, received, updates);
        }
        match row.object::<dto::ClobTerms<'_>>().filter(|terms| !terms.c.is_absent()) {
            Some(terms) => self.clob_fees(&terms, updates),
            None => self.gamma_market(&gamma, parent, received, updates),
        }
    }

    fn gamma_market(
        &mut self,
        row: &dto::GammaMarket<'_>,
        parent: Option<&dto::GammaEvent<'_>>,
        received: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let end = row.end_date.instant();
        // An empty side is shown as 0 or 1.
        let empty = |field: Loose<'_>| field.dollars().is_err();
        let abandoned =
            end.is_some_and(|end| end.plus(ABANDONED_AFTER) < received) && empty(row.best_bid) && empty(row.best_ask);
        let accepts = row.accepting_orders.flag() != Some(false) && row.enable_order_book.flag() != Some(false);
        let closed = row.closed.flag() == Some(true);
        let changed = row.updated_at.instant();
        let known = row.condition_id.text().and_then(|condition| {
            self.by_condition.get(&condition.to_ascii_lowercase()).map(|number| &self.markets[*number])
        });
        if let Some(known) = known
            && changed.is_some_and(|at| at < known.row_at)
        {
            // A page that was requested before a newer one.
            return self.skips.count(Skip::OutOfOrder, || format!("row of {}", known.condition));
        }
        // Only a row that changed after the closing can open the market again.
        let is_later = |known: &Market| changed.is_some_and(|at| at > known.closed_at);
        let stays_closed = !closed
            && known.is_some_and(|known| known.resolved.is_none() && known.standing.gamma_closed && !is_later(known));
        // The catalogue lags: its tick is older than that of the socket, and is ignored.
        let is_stale_tick = |known: &Market| {
            known.tick_at != Timestamp::default()
                && changed.unwrap_or(received) <= known.tick_at.plus(CATALOGUE_FOLLOWS_WITHIN)
        };
        let facts = Facts {
            tick: if known.is_some_and(is_stale_tick) { Loose::default() } else { row.order_price_min_tick_size },
            end,
            open_state: open_state(accepts, abandoned, row.active.flag() == Some(true)),
        };
        let prices = prices(row.outcome_prices);
        let settled = is_settled(row);
        let gamma = |standing: Standing| match stays_closed {
            true => standing,
            false => Standing {
                gamma_closed: closed,
                gamma_prices: prices.filter(|_| closed),
                settled: settled && closed,
                ..standing
            },
        };
        let names = self.names.clone();
        let listing = || listing::of_gamma(row, parent, &names);
        let Some(number) = self.row(row.condition_id, facts, gamma, listing, updates) else { return };
        let market = &mut self.markets[number];
        market.row_at = market.row_at.max(changed.unwrap_or_default());
        if closed {
            market.closed_at = market.row_at;
        }
        self.state_fees(number, fees::Source::Catalogue, fees::of_row(row), updates);
        if let Some((strike, price_to_beat)) = listing::strike_of_gamma(row, parent) {
            let condition = self.markets[number].condition.clone();
            updates.push(FeedUpdate::Strike { condition, strike, price_to_beat });
        }
        let figures = Figures {
            volume_24h: row.volume_24hr.figure(),
            volume_total: row.volume_num.or(row.volume).figure(),
            liquidity: row.liquidity_num.or(row.liquidity).figure(),
        };
        if figures != Figures::default() {
            updates.push(FeedUpdate::Figures { condition: self.markets[number].condition.clone(), figures });
        }
        let shown = row.outcome_prices.with_elements(|elements| match elements {
            [first, second] => [stated(*first), stated(*second)],
            _ => [None; 2],
        });
        let last = [row.last_trade_price.dollars().ok(), None];
        self.state(number, Stated { shown: shown.unwrap_or_default(), last }, updates);
        self.conclude(number, received, updates);
    }

    /// Emits the prices that a row states, if any.
    fn state(&self, number: usize, prices: Stated, updates: &mut Vec<FeedUpdate>) {
        let market = &self.markets[number];
        if prices != Stated::default() && market.resolved.is_none() {
            updates.push(FeedUpdate::Stated { condition: market.condition.clone(), prices });
        }
    }

    fn clob_market(&mut self, row: &dto::ClobMarket<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let tokens = row.tokens.elements().unwrap_or_default();
        let tokens: Vec<dto::ClobToken<'_>> = tokens.into_iter().filter_map(|token| token.object()).collect();
        let accepts = row.accepting_orders.flag() != Some(false) && row.enable_order_book.flag() != Some(false);
        let closed = row.closed.flag() == Some(true);
        let facts = Facts {
            tick: row.minimum_tick_size,
            // This service has the day only; the end date of Gamma is kept.
            end: None,
            open_state: open_state(accepts, false, row.active.flag() == Some(true)),
        };
        let winners: Vec<bool> = tokens.iter().map(|token| token.winner.flag() == Some(true)).collect();
        let winner = match winners.as_slice() {
            [true, false] => Some(Outcome::First),
            [false, true] => Some(Outcome::Second),
            _ => None,
        };
        let prices = match tokens.as_slice() {
            [first, second] => exact(first.price).zip(exact(second.price)).and_then(|(a, b)| final_prices([a, b])),
            _ => None,
        };
        let clob = |standing: Standing| Standing {
            clob_closed: closed,
            clob_prices: prices.filter(|_| closed),
            clob_winner: winner.filter(|_| closed),
            ..standing
        };
        let names = self.names.clone();
        let listing = || listing::of_clob(row, &names);
        let Some(number) = self.row(row.condition_id, facts, clob, listing, updates) else { return };
        let mut stated = Stated::default();
        for token in &tokens {
            let of = self.markets[number].tokens.iter().position(|id| Some(&**id) == token.token_id.text().as_deref());
            if let Some(of) = of {
                stated.shown[of] = self::stated(token.price);
            }
        }
        self.state(number, stated, updates);
        self.conclude(number, received, updates);
    }

    /// Lists the market of a row if it is new, else applies its changes; returns its number.
    fn row(
        &mut self,
        condition: Loose<'_>,
        facts: Facts<'_>,
        standing: impl Fn(Standing) -> Standing,
        listing: impl Fn() -> Result<Listing, Skip>,
        updates: &mut Vec<FeedUpdate>,
    ) -> Option<usize> {
        let condition = condition.text().unwrap_or_default().to_ascii_lowercase();
        let Some(&number) = self.by_condition.get(&condition) else {
            let tick = listing::tick(facts.tick);
            return match listing().and_then(|listing| bounds::bounded(listing, &self.skips)) {
                Ok(mut listing) => {
                    self.announced.merge_into(&mut listing);
                    self.list(listing, tick, facts.open_state, standing(Standing::default()), updates)
                }
                Err(kind) => {
                    self.skips.count(kind, || format!("market {condition}"));
                    None
                }
            };
        };
        if self.markets[number].resolved.is_some() {
            let market = &mut self.markets[number];
            market.standing = standing(market.standing);
            return Some(number);
        }
        if !facts.tick.is_absent() {
            self.retick(number, &facts.tick.text().unwrap_or_default(), updates);
        }
        let market = &mut self.markets[number];
        market.standing = standing(market.standing);
        market.open_state = if market.untradable { MarketState::Halted } else { facts.open_state };
        if facts.end.is_some() && facts.end != market.end {
            market.end = facts.end;
            updates.push(FeedUpdate::EndChanged { condition: market.condition.clone(), end: facts.end });
        }
        Some(number)
    }

    /// Adds a new market.
    pub(super) fn list(
        &mut self,
        listing: Listing,
        tick: Tick,
        open_state: MarketState,
        standing: Standing,
        updates: &mut Vec<FeedUpdate>,
    ) -> Option<usize> {
        if self.by_condition.contains_key(&listing.condition) {
            return None;
        }
        if listing.tokens.iter().any(|token| self.by_token.contains_key(token.as_str())) {
            self.skips.count(Skip::Duplicate, || format!("tokens of {} belong to another market", listing.condition));
            return None;
        }
        let untradable = matches!(tick, Tick::Unknown(_));
        if untradable {
            self.skips.count(Skip::UnknownTick, || format!("market {}", listing.condition));
        }
        let open_state = if untradable { MarketState::Halted } else { open_state };
        let state = if standing.verdict() == Verdict::Open { open_state } else { MarketState::Closed };
        let number = self.markets.len();
        for token in &listing.tokens {
            let id: Arc<str> = token.as_str().into();
            self.by_token.insert(id.clone(), self.tokens.len());
            self.tokens.push(Token {
                id,
                market: number,
                connection: 0,
                snapshot_ts: Timestamp::default(),
                last_ts: Timestamp::default(),
                hash: Default::default(),
                recent: Default::default(),
            });
        }
        self.by_condition.insert(listing.condition.clone(), number);
        self.markets.push(Market {
            condition: listing.condition.clone(),
            tokens: listing.tokens.clone(),
            tick: listing.tick,
            untradable,
            open_state,
            state,
            end: listing.end,
            standing,
            tick_at: Timestamp::default(),
            row_at: Timestamp::default(),
            closed_at: Timestamp::default(),
            resolved: None,
            fees: Fees::default(),
        });
        updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        Some(number)
    }

    /// Applies the state that follows from all reports about a market.
    pub(super) fn conclude(&mut self, number: usize, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let market = &mut self.markets[number];
        let verdict = market.standing.verdict();
        if let Some(known) = market.resolved {
            if matches!(verdict, Verdict::Disputed) || matches!(verdict, Verdict::Resolved(other) if other != known) {
                self.skips.count(Skip::ResultsDisagree, || format!("{}: was {known:?}", market.condition));
            }
            return;
        }
        let state = match verdict {
            Verdict::Resolved(resolution) => {
                (market.state, market.resolved) = (MarketState::Resolved, Some(resolution));
                let condition = market.condition.clone();
                return updates.push(FeedUpdate::Resolved { condition, resolution, venue_ts: at });
            }
            Verdict::Open => market.open_state,
            Verdict::Closed => MarketState::Closed,
            Verdict::Disputed => {
                self.skips.count(Skip::ResultsDisagree, || format!("{}: {:?}", market.condition, market.standing));
                MarketState::Closed
            }
        };
        if state != market.state {
            market.state = state;
            updates.push(FeedUpdate::StateChanged { condition: market.condition.clone(), state });
        }
    }
}

/// The fields of a row apart from those about its result.
struct Facts<'a> {
    tick: Loose<'a>,
    end: Option<Timestamp>,
    open_state: MarketState,
}

/// The kind of rows in a response.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Book,
    Event,
    Market,
}

/// The rows of a response: an array, a page that contains one, or a single row.
fn rows(body: Loose<'_>, kind: Row) -> Option<Vec<Loose<'_>>> {
    if body.raw().starts_with('[') {
        return body.elements();
    }
    let page: dto::Page<'_> = body.object()?;
    let inside = match kind {
        Row::Book => return Some(vec![body]),
        Row::Event => page.events.or(page.data),
        Row::Market => page.markets.or(page.data),
    };
    if inside.is_absent() { Some(vec![body]) } else { inside.elements() }
}

/// Whether the oracle has settled, or the market has resolved automatically.
fn is_settled(row: &dto::GammaMarket<'_>) -> bool {
    matches!(row.uma_resolution_status.text().as_deref(), Some("resolved" | "settled"))
        || row.automatically_resolved.flag() == Some(true)
}

/// Whether a market is closed at final prices that nothing in its row confirms.
pub(super) fn is_unconfirmed(row: &dto::GammaMarket<'_>) -> bool {
    row.closed.flag() == Some(true) && prices(row.outcome_prices).is_some() && !is_settled(row)
}

/// The result of final prices; `None` for other prices.
fn prices(field: Loose<'_>) -> Option<Resolution> {
    field.with_elements(|elements| match elements {
        [first, second] => final_prices([exact(*first)?, exact(*second)?]),
        _ => None,
    })?
}

/// A price that a row states, in 10⁻⁶ USD a share, truncated. 0 and 1 are results or placeholders, not prices.
fn stated(field: Loose<'_>) -> Option<Cash> {
    let micros = field.figure().filter(|micros| (1..1_000_000).contains(micros))?;
    i64::try_from(micros).ok().map(Cash)
}

fn exact(field: Loose<'_>) -> Option<u64> {
    scaled(&field.text()?, 6).ok()
}
