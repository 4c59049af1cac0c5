//! Polymarket's messages to feed updates (upstream.md §2, §3). No sockets, no clock: live adapters and replay share it.
//!
//! Sizes are absolute already, so nothing is folded here; what is remembered per token only serves to drop what is
//! old or told twice (upstream.md §5), and per market to tell a change from a repetition.

use super::dto;
use super::listing::{self, Tick};
use super::standing::{Standing, Verdict, final_prices, open_state};
use crate::venue::loose::{Fault, Loose, scaled};
use crate::venue::skips::{Skip, Skips};
use crate::venue::{BookSide, FeedUpdate, Figures, Level, rest_path};
use ahash::AHashMap;
use engine::amount::{Price, Qty, TickSize};
use engine::id::Outcome;
use engine::market::terms::{Listing, MarketState, Resolution};
use engine::time::{SECOND, Timestamp};
use std::sync::Arc;

/// A market whose end passed this long ago and whose book is empty takes no orders any more.
const ABANDONED_AFTER: u64 = 600 * SECOND;

/// The translation of Polymarket's messages to [`FeedUpdate`]s.
pub struct Translate {
    markets: Vec<Market>,
    by_condition: AHashMap<String, usize>,
    tokens: AHashMap<String, Token>,
    skips: Arc<Skips>,
}

struct Market {
    condition: String,
    tokens: [String; 2],
    tick: TickSize,
    /// The venue's tick is none of ours.
    untradable: bool,
    /// What it is while it is not closed.
    open_state: MarketState,
    state: MarketState,
    end: Option<Timestamp>,
    standing: Standing,
    resolved: Option<Resolution>,
}

struct Token {
    market: usize,
    connection: u8,
    snapshot_ts: Timestamp,
    last_ts: Timestamp,
    /// Hash of the last message that carried one, and its time.
    hash: (String, Timestamp),
}

/// How a message reached us.
#[derive(Clone, Copy)]
enum Via {
    Socket(u8),
    Rest,
}

impl Translate {
    /// Knows no market yet; what is skipped is counted in `skips`.
    pub fn new(skips: Arc<Skips>) -> Translate {
        Translate { markets: Vec::new(), by_condition: AHashMap::new(), tokens: AHashMap::new(), skips }
    }

    /// One text frame of the market channel: a message, or an array of them.
    pub fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match text.trim_start().as_bytes().first() {
            Some(b'[') => match Loose::of(text.trim_start()).elements() {
                Some(parts) => parts.iter().for_each(|part| self.message(part.raw(), connection, received, updates)),
                None => self.skips.count(Skip::BadJson, || text.into()),
            },
            // The answer to our own ping.
            Some(b'P') if text.trim() == "PONG" => {}
            _ => self.message(text, connection, received, updates),
        }
    }

    /// The connection is broken or was interrupted: its tokens are stale until their next snapshots, which are taken
    /// even when nothing has changed.
    pub fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        for token in self.tokens.values_mut().filter(|token| token.connection == connection) {
            token.hash = Default::default();
        }
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let message: dto::Message<'_> = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(fault) => return self.skips.count(Skip::BadJson, || format!("{fault}: {text}")),
        };
        let at = message.timestamp.millis().unwrap_or(received);
        let kind = message.event_type.filled();
        match kind.as_deref().unwrap_or_else(|| guessed(&message)) {
            "book" => self.book(&message, Via::Socket(connection), at, updates),
            "price_change" => self.price_change(&message, connection, at, updates),
            "tick_size_change" => self.tick_size_change(&message, updates),
            "last_trade_price" => self.last_trade(&message, at, updates),
            "best_bid_ask" => {}
            "new_market" => self.new_market(&message, updates),
            "market_resolved" => self.market_resolved(&message, at, updates),
            other => self.skips.count(Skip::UnknownType, || format!("{other}: {text}")),
        }
    }

    fn token(&mut self, id: Loose<'_>) -> Option<(&mut Token, String)> {
        let Some(id) = id.owned() else {
            self.skips.count(Skip::MissingField, || "message without a token".into());
            return None;
        };
        match self.tokens.get_mut(&id) {
            Some(token) => Some((token, id)),
            None => {
                self.skips.count(Skip::Unlisted, || format!("token {id}"));
                None
            }
        }
    }

    fn book(&mut self, message: &dto::Message<'_>, via: Via, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let skips = self.skips.clone();
        let Some((token, id)) = self.token(message.asset_id) else { return };
        let hash = message.hash.owned().unwrap_or_default();
        if at < token.last_ts {
            return skips.count(Skip::OutOfOrder, || format!("book of {id}"));
        }
        if let Via::Socket(connection) = via {
            token.connection = connection;
            if !hash.is_empty() && token.hash == (hash.clone(), at) {
                return skips.count(Skip::Duplicate, || format!("book of {id}"));
            }
        }
        (token.snapshot_ts, token.last_ts) = (at, at);
        token.hash = (hash.clone(), at);
        let market = token.market;
        let side = |levels: &Option<Vec<dto::Level<'_>>>, older: &Option<Vec<dto::Level<'_>>>| {
            side(levels.as_deref().or(older.as_deref()).unwrap_or_default(), &skips)
        };
        let mut bids = side(&message.bids, &message.buys);
        bids.reverse();
        let asks = side(&message.asks, &message.sells);
        if !message.tick_size.is_absent() {
            self.retick(market, message.tick_size, updates);
        }
        let hash = Some(hash).filter(|hash| !hash.is_empty());
        updates.push(FeedUpdate::BookSnapshot { token: id, bids, asks, venue_ts: at, hash });
    }

    fn price_change(
        &mut self,
        message: &dto::Message<'_>,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let lone = [dto::Change {
            asset_id: message.asset_id,
            price: message.price,
            size: message.size,
            side: message.side,
            hash: message.hash,
        }];
        let changes = match (&message.price_changes, &message.changes) {
            (Some(changes), _) | (None, Some(changes)) => changes.as_slice(),
            (None, None) => &lone,
        };
        let skips = self.skips.clone();
        let mut hashes = Vec::new();
        let first = updates.len();
        for change in changes {
            let Some((token, id)) = self.token(change.asset_id.or(message.asset_id)) else { continue };
            token.connection = connection;
            if at < token.snapshot_ts {
                skips.count(Skip::OutOfOrder, || format!("change of {id}"));
                continue;
            }
            let hash = change.hash.or(message.hash).owned().unwrap_or_default();
            if !hash.is_empty() && token.hash == (hash.clone(), at) {
                skips.count(Skip::Duplicate, || format!("change of {id}"));
                continue;
            }
            token.last_ts = token.last_ts.max(at);
            let (side, price, size) = match level_change(change) {
                Ok(change) => change,
                Err(fault) => {
                    skips.count(skip(fault), || format!("{change:?}"));
                    continue;
                }
            };
            match updates[first..].last_mut() {
                Some(FeedUpdate::BookDelta { token, levels, .. }) if *token == id => levels.push((side, price, size)),
                _ => updates.push(FeedUpdate::BookDelta {
                    token: id.clone(),
                    levels: vec![(side, price, size)],
                    venue_ts: at,
                }),
            }
            hashes.push((id, hash));
        }
        // Only now: the changes of one message may all carry the hash of the book behind them.
        for (id, hash) in hashes {
            if let Some(token) = self.tokens.get_mut(&id) {
                token.hash = (hash, at);
            }
        }
    }

    fn tick_size_change(&mut self, message: &dto::Message<'_>, updates: &mut Vec<FeedUpdate>) {
        let Some((token, _)) = self.token(message.asset_id) else { return };
        let market = token.market;
        self.retick(market, message.new_tick_size, updates);
    }

    /// A new tick is taken at once; both tokens of a market report it, so the second report changes nothing.
    fn retick(&mut self, market: usize, field: Loose<'_>, updates: &mut Vec<FeedUpdate>) {
        let market = &mut self.markets[market];
        match field.tick() {
            Ok(tick) if tick != market.tick => {
                market.tick = tick;
                market.untradable &= !listing::is_known(tick);
                updates.push(FeedUpdate::TickChanged { condition: market.condition.clone(), tick });
            }
            Ok(_) => {}
            Err(_) => self.skips.count(Skip::UnknownTick, || format!("{field:?} for {}", market.condition)),
        }
    }

    fn last_trade(&mut self, message: &dto::Message<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let skips = self.skips.clone();
        let Some((_, id)) = self.token(message.asset_id) else { return };
        let change = dto::Change { price: message.price, size: message.size, side: message.side, ..Default::default() };
        match level_change(&change) {
            Ok((side, price, size)) if !size.is_zero() => updates.push(FeedUpdate::LastTrade {
                token: id,
                price,
                size,
                taker_buys: side == BookSide::Bid,
                venue_ts: at,
            }),
            Ok(_) => skips.count(Skip::MissingField, || format!("trade without size: {message:?}")),
            Err(fault) => skips.count(skip(fault), || format!("trade {message:?}")),
        }
    }

    fn new_market(&mut self, message: &dto::Message<'_>, updates: &mut Vec<FeedUpdate>) {
        let tick = listing::tick(message.order_price_min_tick_size);
        let state = open_state(true, false, message.active.flag() != Some(false));
        match listing::of_message(message) {
            Ok(listing) => {
                self.list(listing, tick, state, Standing::default(), updates);
            }
            Err(kind) => self.skips.count(kind, || format!("new market {message:?}")),
        }
    }

    fn market_resolved(&mut self, message: &dto::Message<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let condition = message.market.or(message.condition_id).text().unwrap_or_default().to_ascii_lowercase();
        let Some(&number) = self.by_condition.get(&condition) else {
            return self.skips.count(Skip::Unlisted, || format!("market {condition}"));
        };
        let winner = message.winning_asset_id.text().unwrap_or_default();
        let market = &mut self.markets[number];
        let outcomes = [Outcome::First, Outcome::Second];
        let Some((_, outcome)) = market.tokens.iter().zip(outcomes).find(|(token, _)| **token == *winner) else {
            return self.skips.count(Skip::MissingField, || format!("winner {winner} of {condition}"));
        };
        market.standing.announced = Some(outcome);
        self.conclude(number, at, updates);
    }

    /// One REST answer; the path's own name decides what it is.
    pub fn rest(&mut self, url: &str, status: u16, body: &str, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let path = rest_path(url);
        let is_book = matches!(path.last(), Some(&"book" | &"books"));
        if status != 200 {
            // No book for a token is an answer, not an error.
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
                Row::Book => self.rest_book(row, received, updates),
                Row::Event => self.event(row, received, updates),
                Row::Market => self.market_row(row, None, received, updates),
            }
        }
    }

    fn rest_book(&mut self, row: Loose<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match row.object::<dto::Message<'_>>() {
            Some(message) => {
                let at = message.timestamp.millis().unwrap_or(received);
                self.book(&message, Via::Rest, at, updates);
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

    /// A market as either service shows it.
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
        if gamma.condition_id.is_absent() && !clob.condition_id.is_absent() {
            self.clob_market(&clob, received, updates);
        } else {
            self.gamma_market(&gamma, parent, received, updates);
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
        // Placeholders of an empty side are 0 and 1.
        let empty = |field: Loose<'_>| field.dollars().is_err();
        let abandoned =
            end.is_some_and(|end| end.plus(ABANDONED_AFTER) < received) && empty(row.best_bid) && empty(row.best_ask);
        let accepts = row.accepting_orders.flag() != Some(false) && row.enable_order_book.flag() != Some(false);
        let status = row.uma_resolution_status.text();
        let closed = row.closed.flag() == Some(true);
        let facts = Facts {
            tick: row.order_price_min_tick_size,
            end,
            open_state: open_state(accepts, abandoned, row.active.flag() == Some(true)),
        };
        let prices = prices(row.outcome_prices);
        let settled = matches!(status.as_deref(), Some("resolved" | "settled"))
            || row.automatically_resolved.flag() == Some(true);
        let gamma = |standing: Standing| Standing {
            gamma_closed: closed,
            gamma_prices: prices.filter(|_| closed),
            settled: settled && closed,
            ..standing
        };
        let listing = || listing::of_gamma(row, parent);
        let Some(number) = self.row(row.condition_id, facts, gamma, listing, updates) else { return };
        let figures = Figures {
            volume_24h: row.volume_24hr.figure(),
            volume_total: row.volume_num.or(row.volume).figure(),
            liquidity: row.liquidity_num.or(row.liquidity).figure(),
        };
        if figures != Figures::default() {
            updates.push(FeedUpdate::Figures { condition: self.markets[number].condition.clone(), figures });
        }
        self.conclude(number, received, updates);
    }

    fn clob_market(&mut self, row: &dto::ClobMarket<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let tokens = row.tokens.elements().unwrap_or_default();
        let tokens: Vec<dto::ClobToken<'_>> = tokens.into_iter().filter_map(|token| token.object()).collect();
        let accepts = row.accepting_orders.flag() != Some(false) && row.enable_order_book.flag() != Some(false);
        let closed = row.closed.flag() == Some(true);
        let facts = Facts {
            tick: row.minimum_tick_size,
            // This service knows the day only; what Gamma says of the end stays.
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
        let Some(number) = self.row(row.condition_id, facts, clob, || listing::of_clob(row), updates) else { return };
        self.conclude(number, received, updates);
    }

    /// Lists the market of a row when it is new, else takes its changes over; gives its number.
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
            return match listing() {
                Ok(listing) => self.list(listing, tick, facts.open_state, standing(Standing::default()), updates),
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
            self.retick(number, facts.tick, updates);
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

    /// Takes a new market in.
    fn list(
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
        if listing.tokens.iter().any(|token| self.tokens.contains_key(token)) {
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
            let known = Token {
                market: number,
                connection: 0,
                snapshot_ts: Timestamp::default(),
                last_ts: Timestamp::default(),
                hash: Default::default(),
            };
            self.tokens.insert(token.clone(), known);
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
            resolved: None,
        });
        updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        Some(number)
    }

    /// Draws the consequence of all that is known about a market.
    fn conclude(&mut self, number: usize, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
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

/// What a row of either service says beside its end.
struct Facts<'a> {
    tick: Loose<'a>,
    end: Option<Timestamp>,
    open_state: MarketState,
}

/// What a REST answer holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Book,
    Event,
    Market,
}

/// The rows of an answer: an array, a page that holds one, or the one row itself.
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

/// The type of a message that names none, as old recordings have it.
fn guessed(message: &dto::Message<'_>) -> &'static str {
    match () {
        _ if message.price_changes.is_some() || message.changes.is_some() => "price_change",
        _ if message.bids.is_some() || message.asks.is_some() => "book",
        _ if !message.new_tick_size.is_absent() => "tick_size_change",
        _ => "without a type",
    }
}

/// Levels of one side, ascending, each price once; the last one told counts.
fn side(rows: &[dto::Level<'_>], skips: &Skips) -> Vec<Level> {
    let mut levels = Vec::with_capacity(rows.len());
    for row in rows {
        match (row.price.dollars(), row.size.qty()) {
            (Ok(price), Ok(size)) => levels.push((price, size)),
            (Err(fault), _) | (_, Err(fault)) => skips.count(skip(fault), || format!("{row:?}")),
        }
    }
    // Stable, and from the back: of equal prices the one told last comes first and stays.
    levels.reverse();
    levels.sort_by_key(|(price, _)| *price);
    levels.dedup_by_key(|(price, _)| *price);
    levels.retain(|(_, size)| !size.is_zero());
    levels
}

fn level_change(change: &dto::Change<'_>) -> Result<(BookSide, Price, Qty), Fault> {
    let side = match change.side.text().as_deref() {
        Some("BUY" | "buy") => BookSide::Bid,
        Some("SELL" | "sell") => BookSide::Ask,
        _ => return Err(Fault::Missing),
    };
    Ok((side, change.price.dollars()?, change.size.qty()?))
}

/// Final prices, when the field holds exactly those.
fn prices(field: Loose<'_>) -> Option<Resolution> {
    field.with_elements(|elements| match elements {
        [first, second] => final_prices([exact(*first)?, exact(*second)?]),
        _ => None,
    })?
}

fn exact(field: Loose<'_>) -> Option<u64> {
    scaled(&field.text()?, 6).ok()
}

fn skip(fault: Fault) -> Skip {
    match fault {
        Fault::Missing => Skip::MissingField,
        Fault::Malformed => Skip::BadNumber,
        Fault::TooFine => Skip::PriceTooFine,
        Fault::OutOfRange => Skip::PriceOutOfRange,
    }
}
