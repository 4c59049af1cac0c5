//! Kalshi's messages to feed updates (upstream.md §4). No sockets, no clock: live adapters and replay share it.
//!
//! Kalshi reports signed changes of bids; [`Translate`] folds them to absolute sizes and gives the books of both
//! tokens in the same frame. What cannot be used is counted in [`Skips`] and left out.

use super::book::{Book, Grid, Side};
use super::dto;
use super::listing::{EventFacts, listing, resolution, state};
use crate::venue::loose::{Fault, Loose};
use crate::venue::skips::{Skip, Skips};
use crate::venue::{BookSide, FeedUpdate, Figures, Level, category, rest_path};
use ahash::AHashMap;
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{Listing, MarketState, Resolution};
use engine::time::Timestamp;
use std::sync::Arc;

/// Whether a hole in the venue's numbering means loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// Live: every number of a subscription arrives.
    Checked,
    /// Recordings: one subscription carried more markets than the tape holds.
    Ignored,
}

/// The fold from Kalshi's messages to [`FeedUpdate`]s.
pub struct Translate {
    markets: AHashMap<String, Market>,
    events: AHashMap<String, EventFacts>,
    series: AHashMap<String, String>,
    /// Last number by connection and subscription.
    sequences: AHashMap<(u8, u64), u64>,
    sequence: Sequence,
    skips: Arc<Skips>,
}

struct Market {
    condition: String,
    tokens: [String; 2],
    grid: Grid,
    tick: TickSize,
    state: MarketState,
    end: Option<Timestamp>,
    /// Announced and not yet final: a settlement that names no result means this one.
    determined: Option<Resolution>,
    resolved: Option<Resolution>,
    book: Book,
    connection: u8,
}

/// Bids of both tokens as a message has them.
struct Sides<'a> {
    yes: Loose<'a>,
    no: Loose<'a>,
    /// In dollars, or in cents as older messages write them.
    dollars: bool,
}

impl Translate {
    /// Knows no market yet; what is skipped is counted in `skips`.
    pub fn new(sequence: Sequence, skips: Arc<Skips>) -> Translate {
        Translate {
            markets: AHashMap::new(),
            events: AHashMap::new(),
            series: AHashMap::new(),
            sequences: AHashMap::new(),
            sequence,
            skips,
        }
    }

    /// What was dropped so far.
    pub fn skips(&self) -> &Skips {
        &self.skips
    }

    /// One text frame of the WebSocket: a message, or an array of them.
    pub fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        if text.starts_with('[') {
            match Loose::of(text).elements() {
                Some(parts) => parts.iter().for_each(|part| self.message(part.raw(), connection, received, updates)),
                None => self.skips.count(Skip::BadJson, || text.into()),
            }
        } else {
            self.message(text, connection, received, updates);
        }
    }

    /// The connection is broken or was interrupted: its books are unknown until their next snapshots.
    pub fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        for market in self.markets.values_mut().filter(|market| market.connection == connection) {
            market.book.synced = false;
        }
        self.sequences.retain(|(of, _), _| *of != connection);
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let frame: dto::Frame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(fault) => return self.skips.count(Skip::BadJson, || format!("{fault}: {text}")),
        };
        if self.sequence == Sequence::Checked {
            self.check_sequence(&frame, connection, updates);
        }
        match frame.kind.text().as_deref() {
            Some("orderbook_delta") => self.delta(&frame.msg, connection, received, updates),
            Some("trade") => self.trade(&frame.msg, received, updates),
            Some("orderbook_snapshot") => self.snapshot(&frame.msg, connection, received, updates),
            Some("market_lifecycle_v2" | "market_lifecycle") => self.lifecycle(&frame.msg, received, updates),
            Some("subscribed" | "unsubscribed" | "ok") => {}
            _ => self.skips.count(Skip::UnknownType, || text.into()),
        }
    }

    fn check_sequence(&mut self, frame: &dto::Frame<'_>, connection: u8, updates: &mut Vec<FeedUpdate>) {
        let number = |field: Loose<'_>| field.text()?.parse::<u64>().ok();
        let (Some(sid), Some(seq)) = (number(frame.sid), number(frame.seq)) else { return };
        let last = self.sequences.insert((connection, sid), seq);
        if last.is_some_and(|last| last.checked_add(1) != Some(seq)) {
            self.skips.count(Skip::SequenceGap, || format!("{last:?} then {seq} of subscription {sid}"));
            self.gap(connection, "sequence gap", updates);
            self.sequences.insert((connection, sid), seq);
        }
    }

    fn delta(&mut self, msg: &dto::Message<'_>, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(market) = market(&mut self.markets, msg.market_ticker, &self.skips) else { return };
        let side = msg.side.text().and_then(|side| Side::named(&side));
        let Some(side) = side else {
            return self.skips.count(Skip::MissingField, || format!("side of a delta: {:?}", msg.side));
        };
        let price = if msg.price_dollars.is_absent() { msg.price.cents() } else { msg.price_dollars.dollars() };
        let (price, change) = match (price, msg.delta_fp.or(msg.delta).change()) {
            (Ok(price), Ok(change)) => (price, change),
            (Err(fault), _) | (_, Err(fault)) => {
                return self.skips.count(skip(fault), || format!("delta {:?} {:?}", msg.price_dollars, msg.delta_fp));
            }
        };
        market.connection = connection;
        if !market.book.synced {
            return self.skips.count(Skip::NoSnapshot, || market.condition.clone());
        }
        let Some(price) = market.grid.outward(side, price) else {
            return self.skips.count(Skip::PriceOutOfRange, || format!("{price:?} rounded outward"));
        };
        let Some(size) = market.book.change(side, price, change) else {
            self.skips.count(Skip::BelowZero, || format!("{} {price:?} {change}", market.condition));
            market.book.synced = false;
            return updates.push(FeedUpdate::Gap { tokens: market.tokens.to_vec(), reason: "below zero".into() });
        };
        let venue_ts = msg.ts_ms.millis().unwrap_or(received);
        for (token, change) in market.tokens.iter().zip(both_books(side, price, size)) {
            updates.push(FeedUpdate::BookDelta { token: token.clone(), levels: vec![change], venue_ts });
        }
        market.retick(updates);
    }

    fn snapshot(&mut self, msg: &dto::Message<'_>, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let dollars = msg.yes.is_absent() && msg.no.is_absent();
        let (yes, no) = if dollars { (msg.yes_dollars_fp, msg.no_dollars_fp) } else { (msg.yes, msg.no) };
        self.book(msg.market_ticker, &Sides { yes, no, dollars }, Some(connection), received, updates);
    }

    /// The whole book of a market: `connection` is `None` for a REST answer.
    fn book(
        &mut self,
        ticker: Loose<'_>,
        sides: &Sides<'_>,
        connection: Option<u8>,
        venue_ts: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let Some(market) = market(&mut self.markets, ticker, &self.skips) else { return };
        market.connection = connection.unwrap_or(market.connection);
        market.book.reset();
        for (side, levels) in [(Side::Yes, sides.yes), (Side::No, sides.no)] {
            if levels.is_absent() {
                continue;
            }
            let Some(levels) = levels.elements() else {
                self.skips.count(Skip::BadJson, || levels.raw().into());
                continue;
            };
            for row in levels {
                match level(row, sides.dollars) {
                    Ok((price, size)) => {
                        if let Some(price) = market.grid.outward(side, price) {
                            // Sizes are at most QTY_MAX; a sum beyond i64 would take ten levels of that on one price.
                            let _ = market.book.change(side, price, size.0 as i64);
                        }
                    }
                    Err(fault) => self.skips.count(skip(fault), || row.raw().into()),
                }
            }
        }
        for side in [Side::Yes, Side::No] {
            updates.push(FeedUpdate::BookSnapshot {
                token: market.tokens[side.index()].clone(),
                bids: market.book.bids(side).collect(),
                asks: market.book.asks(side).collect(),
                venue_ts,
                hash: None,
            });
        }
        market.retick(updates);
    }

    fn trade(&mut self, msg: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(market) = market(&mut self.markets, msg.market_ticker, &self.skips) else { return };
        let Some(side) = msg.taker_side.text().and_then(|side| Side::named(&side)) else {
            return self.skips.count(Skip::MissingField, || format!("taker of a trade: {:?}", msg.taker_side));
        };
        let (dollars, cents) = match side {
            Side::Yes => (msg.yes_price_dollars, msg.yes_price),
            Side::No => (msg.no_price_dollars, msg.no_price),
        };
        let price = if dollars.is_absent() { cents.cents() } else { dollars.dollars() };
        match (price, msg.count_fp.or(msg.count).qty()) {
            (Ok(price), Ok(size)) => updates.push(FeedUpdate::LastTrade {
                token: market.tokens[side.index()].clone(),
                price,
                size,
                taker_buys: true,
                venue_ts: msg.ts_ms.millis().unwrap_or(received),
            }),
            (Err(fault), _) | (_, Err(fault)) => self.skips.count(skip(fault), || format!("trade at {dollars:?}")),
        }
    }

    fn lifecycle(&mut self, msg: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let (Some(ticker), Some(event)) = (msg.market_ticker.filled(), msg.event_type.text()) else {
            return self.skips.count(Skip::MissingField, || format!("lifecycle {msg:?}"));
        };
        if event == "created" {
            return self.created(msg, updates);
        }
        if market(&mut self.markets, msg.market_ticker, &self.skips).is_none() {
            return;
        }
        match &*event {
            "activated" => self.set_state(&ticker, MarketState::Active, updates),
            "deactivated" => self.set_state(&ticker, MarketState::Halted, updates),
            "close_date_updated" => match msg.close_ts.instant() {
                Some(end) => self.set_end(&ticker, Some(end), updates),
                None => self.skips.count(Skip::MissingField, || format!("close date {:?}", msg.close_ts)),
            },
            "determined" => {
                if let Some(market) = self.markets.get_mut(&*ticker) {
                    market.determined = resolution(msg.result, msg.settlement_value);
                }
                self.set_state(&ticker, MarketState::Closed, updates);
            }
            "settled" => {
                let determined = self.markets.get(&*ticker).and_then(|market| market.determined);
                let named = msg.result.filled().is_some();
                let result = if named { resolution(msg.result, msg.settlement_value) } else { determined };
                self.finalized(&ticker, result, received, updates);
            }
            _ => self.skips.count(Skip::UnknownType, || format!("lifecycle {event}")),
        }
    }

    fn created(&mut self, msg: &dto::Message<'_>, updates: &mut Vec<FeedUpdate>) {
        let created: dto::Created<'_> = msg.additional_metadata.object().unwrap_or_default();
        let row = dto::Market {
            ticker: msg.market_ticker,
            event_ticker: created.event_ticker,
            title: created.title.or(created.name),
            yes_sub_title: created.yes_sub_title,
            rules_primary: created.rules_primary,
            open_time: msg.open_ts,
            close_time: msg.close_ts,
            ..dto::Market::default()
        };
        let state = MarketState::Upcoming;
        if let Some(listing) = self.list(&row, Loose::default(), state) {
            updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        }
    }

    /// One REST answer; the path's own name decides what it is.
    pub fn rest(&mut self, url: &str, status: u16, body: &str, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let path = rest_path(url);
        if status != 200 {
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
                if let Some(category) = series.category.owned() {
                    self.series.insert(series.ticker.owned().unwrap_or_else(|| (*ticker).into()), category);
                }
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
        let quoted = format!("\"{ticker}\"");
        self.book(Loose::of(&quoted), &Sides { yes, no, dollars }, None, at, updates);
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

    /// Remembers title and category of an event, and the latest close of the markets that came with it.
    pub(super) fn learn_event(&mut self, event: &dto::Event<'_>) {
        let Some(ticker) = event.event_ticker.owned() else { return };
        let category = event.category.owned().or_else(|| self.series.get(&*event.series_ticker.text()?).cloned());
        let facts = self.events.entry(ticker).or_default();
        facts.title = event.title.owned().or(facts.title.take());
        facts.category = category.map(|name| category::of_kalshi(&name)).or(facts.category);
        for market in event.markets.elements().unwrap_or_default() {
            let close = market.object::<dto::Market<'_>>().and_then(|market| market.close_time.instant());
            facts.end = facts.end.max(close);
        }
    }

    /// A market as a REST answer shows it: listed when new, else its changes.
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
        if self.markets.contains_key(&*ticker) {
            if let Some(end) = market.close_time.instant() {
                self.set_end(&ticker, Some(end), updates);
            }
            self.set_state(&ticker, state, updates);
        } else {
            let Some(listing) = self.list(&market, event, state) else { return };
            updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
        }
        let figures = Figures {
            volume_24h: market.volume_24h_fp.or(market.volume_24h).figure(),
            volume_total: market.volume_fp.or(market.volume).figure(),
            liquidity: market.liquidity_dollars.figure(),
        };
        if let Some(market) = self.markets.get(&*ticker).filter(|_| figures != Figures::default()) {
            updates.push(FeedUpdate::Figures { condition: market.condition.clone(), figures });
        }
        if settled {
            let at = market.settlement_ts.instant().unwrap_or(at).min(at);
            self.finalized(&ticker, resolution(market.result, market.settlement_value_dollars), at, updates);
        }
    }

    /// Takes a market in. `None` when it is known already or cannot be listed. `event` names its event when the row
    /// itself does not.
    pub(super) fn list(&mut self, row: &dto::Market<'_>, event: Loose<'_>, state: MarketState) -> Option<Listing> {
        let row_event = row.event_ticker.or(event);
        let facts = row_event.text().and_then(|ticker| self.events.get(&*ticker));
        let row = dto::Market { event_ticker: row_event, ..*row };
        let (listing, grid) = match listing(&row, facts) {
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
            tokens: listing.tokens.clone(),
            tick: listing.tick,
            grid,
            state,
            end: listing.end,
            determined: None,
            resolved: None,
            book: Book::default(),
            connection: 0,
        };
        self.markets.insert(listing.venue_market_id.clone(), market);
        Some(listing)
    }

    /// Changes a market's state; a resolved one stays as it is.
    pub(super) fn set_state(&mut self, ticker: &str, state: MarketState, updates: &mut Vec<FeedUpdate>) {
        if let Some(market) = self.markets.get_mut(ticker)
            && market.resolved.is_none()
            && market.state != state
        {
            market.state = state;
            updates.push(FeedUpdate::StateChanged { condition: market.condition.clone(), state });
        }
    }

    fn set_end(&mut self, ticker: &str, end: Option<Timestamp>, updates: &mut Vec<FeedUpdate>) {
        if let Some(market) = self.markets.get_mut(ticker)
            && market.resolved.is_none()
            && market.end != end
        {
            market.end = end;
            updates.push(FeedUpdate::EndChanged { condition: market.condition.clone(), end });
        }
    }

    /// A final status: resolved when its result can be paid, else closed for good.
    fn finalized(&mut self, ticker: &str, result: Option<Resolution>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match result {
            Some(resolution) => self.settle(ticker, resolution, at, updates),
            None => {
                self.skips.count(Skip::UnsupportedResult, || format!("market {ticker}"));
                self.set_state(ticker, MarketState::Closed, updates);
            }
        }
    }

    /// Resolves a market, once.
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

impl Market {
    /// On a tapered grid the tick follows the midpoint.
    fn retick(&mut self, updates: &mut Vec<FeedUpdate>) {
        let tick = self.book.doubled_midpoint().and_then(|doubled| self.grid.tick_at(doubled));
        if let Some(tick) = tick.filter(|tick| *tick != self.tick) {
            self.tick = tick;
            updates.push(FeedUpdate::TickChanged { condition: self.condition.clone(), tick });
        }
    }
}

/// The listed market that a message names. A function of the table alone, so that the rest of the translator stays
/// free to use.
fn market<'m>(markets: &'m mut AHashMap<String, Market>, ticker: Loose<'_>, skips: &Skips) -> Option<&'m mut Market> {
    let Some(ticker) = ticker.filled() else {
        skips.count(Skip::MissingField, || "message without a market".into());
        return None;
    };
    let market = markets.get_mut(&*ticker);
    if market.is_none() {
        skips.count(Skip::Unlisted, || format!("market {ticker}"));
    }
    market
}

/// What a new absolute size of a bid means for the Yes and the No book.
fn both_books(side: Side, price: Price, size: Qty) -> [(BookSide, Price, Qty); 2] {
    let bid = (BookSide::Bid, price, size);
    let ask = (BookSide::Ask, price.complement(), size);
    match side {
        Side::Yes => [bid, ask],
        Side::No => [ask, bid],
    }
}

/// A pair of price and size.
fn level(row: Loose<'_>, dollars: bool) -> Result<Level, Fault> {
    let row = row.elements().ok_or(Fault::Malformed)?;
    let [price, size] = row.as_slice() else { return Err(Fault::Malformed) };
    Ok((if dollars { price.dollars()? } else { price.cents()? }, size.qty()?))
}

fn skip(fault: Fault) -> Skip {
    match fault {
        Fault::Missing => Skip::MissingField,
        Fault::Malformed => Skip::BadNumber,
        Fault::TooFine => Skip::PriceTooFine,
        Fault::OutOfRange => Skip::PriceOutOfRange,
    }
}
