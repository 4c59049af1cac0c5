//! Translates Kalshi's messages into feed updates (gateway/docs/live-venues.md §4). Without sockets and clock: live
//! adapters and replay share it.
//!
//! Kalshi sends signed changes of bids; [`Translate`] folds them into absolute sizes and emits the books of both tokens
//! in the same frame. Unusable parts are counted in [`Skips`] and dropped.

use super::book::{Book, Fold, Grid, Side};
use super::dto;
use super::hot::{self, Content};
use super::listing::{EventFacts, resolution};
use super::seen::Seen;
use crate::category::Names;
use crate::fees::Statement;
use crate::loose::{Fault, Loose};
use crate::skips::{Skip, Skips};
use crate::{BookSide, FeedUpdate, Level};
use ahash::AHashMap;
use engine::amount::{Price, Qty, TickSize};
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use smallvec::smallvec;
use std::sync::Arc;

/// Whether a gap in the venue's sequence numbers means lost messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    /// It does, because a live subscription receives every number. Also, the event of a new market is requested before
    /// the market is listed, so that its title and category do not change later.
    Checked,
    /// It does not: a recording has only some of the markets that its subscriptions covered.
    Ignored,
}

/// Reason of the gap when a sequence number is missing, also in recordings.
pub(super) const SEQUENCE_GAP: &str = "sequence gap";

/// The step from one number of a subscription to the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Next,
    /// The last message was repeated.
    Repeat,
    /// Numbers are missing, or the sequence went back.
    Gap,
}

impl Step {
    /// The step to number `seq`; `None` for the response to a command, which may repeat an older number.
    pub(super) fn from(last: Option<u64>, seq: u64, kind: &str) -> Option<Step> {
        let step = match last {
            None => Step::Next,
            Some(last) if last == seq => Step::Repeat,
            Some(last) if last.checked_add(1) == Some(seq) => Step::Next,
            Some(_) => Step::Gap,
        };
        let is_data = is_book(Some(kind)) || matches!(kind, "trade" | "market_lifecycle_v2" | "market_lifecycle");
        (is_data || last.is_some() && step == Step::Next).then_some(step)
    }
}

/// Whether messages of this kind change books.
pub(super) fn is_book(kind: Option<&str>) -> bool {
    matches!(kind, Some("orderbook_snapshot" | "orderbook_delta"))
}

/// Translates Kalshi's messages into [`FeedUpdate`]s.
pub struct Translate {
    pub(super) markets: AHashMap<String, Market>,
    pub(super) events: AHashMap<String, EventFacts>,
    pub(super) series: AHashMap<String, String>,
    /// Fees of series.
    pub(super) fees: AHashMap<String, Statement>,
    /// Last sequence number by connection and subscription.
    sequences: AHashMap<(u8, u64), u64>,
    /// The last messages of a recording.
    seen: Seen,
    pub(super) sequence: Sequence,
    pub(super) skips: Arc<Skips>,
    pub(super) names: Names,
}

/// The state of a market.
pub(super) struct Market {
    pub(super) condition: String,
    pub(super) tokens: [Arc<str>; 2],
    pub(super) grid: Grid,
    pub(super) tick: TickSize,
    pub(super) state: MarketState,
    pub(super) end: Option<Timestamp>,
    /// The announced result: a settlement without a result means this one.
    pub(super) determined: Option<Resolution>,
    pub(super) resolved: Option<Resolution>,
    pub(super) book: Book,
    pub(super) series: Option<String>,
    /// What the feed was given.
    pub(super) fees: Statement,
}

/// The bids of both tokens in a message.
pub(super) struct Sides<'a> {
    pub(super) yes: Loose<'a>,
    pub(super) no: Loose<'a>,
    /// Prices are in dollars; else in cents, as in older messages.
    pub(super) dollars: bool,
}

/// A signed change of a bid in a message.
#[derive(Clone, Copy, Debug)]
struct Delta {
    side: Option<Side>,
    price: Result<Price, Fault>,
    change: Result<i64, Fault>,
}

impl Delta {
    fn of(msg: &dto::Message<'_>) -> Delta {
        Delta {
            side: msg.side.text().and_then(|side| Side::named(&side)),
            price: if msg.price_dollars.is_absent() { msg.price.cents() } else { msg.price_dollars.dollars() },
            change: msg.delta_fp.or(msg.delta).change(),
        }
    }
}

impl Translate {
    /// Starts without markets; counts in `skips` what is skipped.
    pub fn new(sequence: Sequence, skips: Arc<Skips>, names: Names) -> Translate {
        Translate {
            markets: AHashMap::new(),
            events: AHashMap::new(),
            series: AHashMap::new(),
            fees: AHashMap::new(),
            sequences: AHashMap::new(),
            seen: Seen::default(),
            sequence,
            skips,
            names,
        }
    }

    /// Connection, subscription and last number of each sequence.
    pub(super) fn sequences(&self) -> impl Iterator<Item = (u8, u64, u64)> {
        self.sequences.iter().map(|((connection, subscription), last)| (*connection, *subscription, *last))
    }

    /// Replaces the sequences.
    pub(super) fn set_sequences(&mut self, sequences: Vec<(u8, u64, u64)>) {
        let sequence = |(connection, subscription, last)| ((connection, subscription), last);
        self.sequences = sequences.into_iter().map(sequence).collect();
    }

    /// Counters of skipped parts.
    pub fn skips(&self) -> &Skips {
        &self.skips
    }

    /// Translates one text frame of the WebSocket: a message or an array of messages.
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

    /// The connection was interrupted: its books are unknown until their next snapshots. In a recording, the reason
    /// `SEQUENCE_GAP` stands for a message that the live translator found missing, and has the same effect.
    pub fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        if reason == SEQUENCE_GAP {
            return self.lose(connection, updates);
        }
        for market in self.markets.values_mut().filter(|market| market.book.fold == Fold::Followed(connection)) {
            market.book.fold = Fold::Lost;
        }
        self.sequences.retain(|(of, _), _| *of != connection);
        self.seen.forget(connection);
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    /// A message of the connection is missing: its books are wrong from now on, and are reported by token.
    fn lose(&mut self, connection: u8, updates: &mut Vec<FeedUpdate>) {
        let mut tokens = Vec::new();
        for market in self.markets.values_mut().filter(|market| market.book.fold == Fold::Followed(connection)) {
            market.book.fold = Fold::Lost;
            tokens.extend(market.tokens.iter().map(|token| token.to_string()));
        }
        self.sequences.retain(|(of, _), _| *of != connection);
        self.seen.forget(connection);
        if !tokens.is_empty() {
            updates.push(FeedUpdate::Gap { tokens, reason: SEQUENCE_GAP.into() });
        }
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        if let Some(hot::Frame { kind, sid, seq, ticker, at, content }) = hot::read(text) {
            if self.is_repeated((text, received), (sid, seq), Some(kind), connection, updates) {
                return self.skips.count(Skip::Duplicate, || text.into());
            }
            let at = at.unwrap_or(received);
            return match content {
                Content::Delta(side, price, change) => {
                    let parsed = Delta { side: Some(side), price: Ok(price), change: Ok(change) };
                    self.delta(Some(ticker), parsed, connection, at, updates);
                }
                Content::Trade(side, price, size, id) => {
                    self.trade(Some(ticker), side, Ok((price, size)), at, id, updates)
                }
            };
        }
        let frame: dto::Frame<'_> = match serde_json::from_str(text) {
            Ok(frame) => frame,
            Err(fault) => return self.skips.count(Skip::BadJson, || format!("{fault}: {text}")),
        };
        let number = |field: Loose<'_>| field.text()?.parse::<u64>().ok();
        let (kind, counted) = (frame.kind.text(), (number(frame.sid), number(frame.seq)));
        if self.is_repeated((text, received), counted, kind.as_deref(), connection, updates) {
            return self.skips.count(Skip::Duplicate, || text.into());
        }
        let msg = &frame.msg;
        match kind.as_deref() {
            Some("orderbook_delta") => {
                let at = msg.ts_ms.millis().unwrap_or(received);
                self.delta(msg.market_ticker.filled().as_deref(), Delta::of(msg), connection, at, updates);
            }
            Some("trade") => self.loose_trade(msg, received, updates),
            Some("orderbook_snapshot") => self.snapshot(msg, connection, received, updates),
            Some("market_lifecycle_v2" | "market_lifecycle") => self.lifecycle(msg, received, updates),
            // Only the adapter uses these.
            Some("subscribed" | "unsubscribed" | "ok" | "error" | "event_lifecycle") => {}
            _ => self.skips.count(Skip::UnknownType, || text.into()),
        }
    }

    /// Whether this message repeats the last one of its subscription, or in a recording one that parts have in common. If
    /// numbers before it are missing, and it is about books, the books of the connection are lost.
    fn is_repeated(
        &mut self,
        (text, received): (&str, Timestamp),
        (sid, seq): (Option<u64>, Option<u64>),
        kind: Option<&str>,
        connection: u8,
        updates: &mut Vec<FeedUpdate>,
    ) -> bool {
        let (Some(sid), Some(seq)) = (sid, seq) else { return false };
        if self.sequence == Sequence::Ignored {
            let is_snapshot = kind == Some("orderbook_snapshot");
            return self.seen.repeats(connection, text, is_snapshot, received);
        }
        let last = self.sequences.get(&(connection, sid)).copied();
        let Some(step) = Step::from(last, seq, kind.unwrap_or_default()) else { return false };
        self.sequences.insert((connection, sid), seq);
        if step == Step::Gap {
            self.skips.count(Skip::SequenceGap, || format!("{last:?} then {seq} of subscription {sid}"));
            if is_book(kind) {
                self.lose(connection, updates);
                self.sequences.insert((connection, sid), seq);
            }
        }
        step == Step::Repeat
    }

    fn delta(
        &mut self,
        ticker: Option<&str>,
        parsed: Delta,
        connection: u8,
        venue_ts: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let Some(market) = market(&mut self.markets, ticker, &self.skips) else { return };
        if market.book.fold != Fold::Followed(connection) {
            return self.skips.count(Skip::NoSnapshot, || market.condition.clone());
        }
        let (side, price, change) = match parsed {
            Delta { side: Some(side), price: Ok(price), change: Ok(change) } => (side, price, change),
            // No ladder has such a level, so that nothing is lost without it.
            Delta { price: Err(fault @ (Fault::TooFine | Fault::OutOfRange)), .. } => {
                return self.skips.count(fault.into(), || format!("{parsed:?} of {}", market.condition));
            }
            Delta { price, change, .. } => {
                let fault = price.err().or(change.err()).unwrap_or(Fault::Missing);
                self.skips.count(fault.into(), || format!("{parsed:?} of {}", market.condition));
                return market.lose("unreadable change", updates);
            }
        };
        let Some(price) = market.grid.outward(side, price) else {
            return self.skips.count(Skip::PriceOutOfRange, || format!("{price:?} rounded outward"));
        };
        let Some(size) = market.book.change(side, price, change) else {
            self.skips.count(Skip::BelowZero, || format!("{} at {price:?} by {change}", market.condition));
            return market.lose("below zero", updates);
        };
        for (token, change) in market.tokens.iter().zip(both_books(side, price, size)) {
            updates.push(FeedUpdate::BookDelta { token: token.clone(), levels: smallvec![change], venue_ts });
        }
        market.retick(updates);
    }

    fn snapshot(&mut self, msg: &dto::Message<'_>, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let dollars = msg.yes.is_absent() && msg.no.is_absent();
        let (yes, no) = if dollars { (msg.yes_dollars_fp, msg.no_dollars_fp) } else { (msg.yes, msg.no) };
        let ticker = msg.market_ticker.filled();
        self.book(ticker.as_deref(), &Sides { yes, no, dollars }, Some(connection), received, updates);
    }

    /// Replaces the book of a market: `connection` is `None` for a REST response.
    pub(super) fn book(
        &mut self,
        ticker: Option<&str>,
        sides: &Sides<'_>,
        connection: Option<u8>,
        venue_ts: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let Some(market) = market(&mut self.markets, ticker, &self.skips) else { return };
        let fold = connection.map_or(Fold::Fetched, Fold::Followed);
        if fold == Fold::Fetched && matches!(market.book.fold, Fold::Followed(_)) {
            // A followed book is newer, and the next change of its connection applies to it.
            return self.skips.count(Skip::OutOfOrder, || format!("answered book of {}", market.condition));
        }
        market.book.reset(fold);
        for (side, levels) in [(Side::Yes, sides.yes), (Side::No, sides.no)] {
            if levels.is_absent() {
                continue;
            }
            let Some(levels) = levels.elements() else {
                self.skips.count(Skip::BadJson, || levels.raw().into());
                return market.lose("unreadable snapshot", updates);
            };
            for row in levels {
                match level(row, sides.dollars) {
                    Ok((price, size)) => {
                        if let Some(price) = market.grid.outward(side, price) {
                            // Sizes are at most QTY_MAX: an overflow of i64 would take ten such levels at one price.
                            let _ = market.book.change(side, price, size.0 as i64);
                        }
                    }
                    Err(fault) => {
                        self.skips.count(fault.into(), || row.raw().into());
                        if !matches!(fault, Fault::TooFine | Fault::OutOfRange) {
                            return market.lose("unreadable level", updates);
                        }
                    }
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

    fn loose_trade(&mut self, msg: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let ticker = msg.market_ticker.filled();
        if market(&mut self.markets, ticker.as_deref(), &self.skips).is_none() {
            return;
        }
        let Some(side) = msg.taker_side.text().and_then(|side| Side::named(&side)) else {
            return self.skips.count(Skip::MissingField, || format!("taker of a trade: {:?}", msg.taker_side));
        };
        let (dollars, cents) = match side {
            Side::Yes => (msg.yes_price_dollars, msg.yes_price),
            Side::No => (msg.no_price_dollars, msg.no_price),
        };
        let price = if dollars.is_absent() { cents.cents() } else { dollars.dollars() };
        let parsed = price.and_then(|price| Ok((price, msg.count_fp.or(msg.count).qty()?)));
        let id = msg.trade_id.filled();
        let at = msg.ts_ms.millis().unwrap_or(received);
        self.trade(ticker.as_deref(), side, parsed, at, id.as_deref(), updates);
    }

    fn trade(
        &mut self,
        ticker: Option<&str>,
        side: Side,
        parsed: Result<Level, Fault>,
        venue_ts: Timestamp,
        id: Option<&str>,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let Some(market) = market(&mut self.markets, ticker, &self.skips) else { return };
        match parsed {
            Ok((price, size)) => updates.push(FeedUpdate::LastTrade {
                token: market.tokens[side.index()].clone(),
                price,
                size,
                taker_buys: true,
                venue_ts,
                id: id.map(Arc::from),
                fee_rate_bps: None,
            }),
            Err(fault) => self.skips.count(fault.into(), || format!("trade of {}", market.condition)),
        }
    }

    fn lifecycle(&mut self, msg: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let (Some(ticker), Some(event)) = (msg.market_ticker.filled(), msg.event_type.text()) else {
            return self.skips.count(Skip::MissingField, || format!("lifecycle {msg:?}"));
        };
        if event == "created" {
            return self.created(msg, updates);
        }
        if market(&mut self.markets, Some(&ticker), &self.skips).is_none() {
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
                if !named && self.sequence == Sequence::Checked {
                    // The announced result may have been amended without a message: the market's row is requested, and
                    // pays.
                    return self.set_state(&ticker, MarketState::Closed, updates);
                }
                let result = if named { resolution(msg.result, msg.settlement_value) } else { determined };
                self.finalized(&ticker, result, received, updates);
            }
            _ => {
                if let Some(market) = self.markets.get_mut(&*ticker) {
                    // Disputed, amended, or unknown: the announced result is withdrawn.
                    market.determined = None;
                }
                self.skips.count(Skip::UnknownType, || format!("lifecycle {event}"));
            }
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
        if self.waits_for_event(row.event_ticker) {
            return;
        }
        if let Some(listing) = self.list(&row, Loose::default(), state) {
            let ticker = listing.venue_market_id.clone();
            updates.push(FeedUpdate::Listed { listing: Box::new(listing), state });
            self.state_fees(&ticker, updates);
        }
    }
}

impl Market {
    /// Marks the book as lost until the next snapshot.
    pub(super) fn lose(&mut self, reason: &str, updates: &mut Vec<FeedUpdate>) {
        self.book.fold = Fold::Lost;
        updates.push(FeedUpdate::Gap {
            tokens: self.tokens.iter().map(|token| token.to_string()).collect(),
            reason: reason.into(),
        });
    }

    /// Updates the tick. On a tapered grid it is that of the midpoint, and unchanged while there is none.
    pub(super) fn retick(&mut self, updates: &mut Vec<FeedUpdate>) {
        let tick = match self.grid.only() {
            Some(tick) => Some(tick),
            None => self.book.doubled_midpoint().map(|doubled| self.grid.tick_at(doubled)),
        };
        if let Some(tick) = tick.filter(|tick| *tick != self.tick) {
            self.tick = tick;
            updates.push(FeedUpdate::TickChanged { condition: self.condition.clone(), tick });
        }
    }
}

/// The listed market of a message. A free function, so that only the table of markets is borrowed.
fn market<'m>(
    markets: &'m mut AHashMap<String, Market>,
    ticker: Option<&str>,
    skips: &Skips,
) -> Option<&'m mut Market> {
    let Some(ticker) = ticker else {
        skips.count(Skip::MissingField, || "message without a market".into());
        return None;
    };
    let market = markets.get_mut(ticker);
    if market.is_none() {
        skips.count(Skip::Unlisted, || format!("market {ticker}"));
    }
    market
}

/// The effect of a new absolute bid size on the Yes and No books.
fn both_books(side: Side, price: Price, size: Qty) -> [(BookSide, Price, Qty); 2] {
    let bid = (BookSide::Bid, price, size);
    let ask = (BookSide::Ask, price.complement(), size);
    match side {
        Side::Yes => [bid, ask],
        Side::No => [ask, bid],
    }
}

/// A level: a pair of price and size.
fn level(row: Loose<'_>, dollars: bool) -> Result<Level, Fault> {
    let row = row.elements().ok_or(Fault::Malformed)?;
    let [price, size] = row.as_slice() else { return Err(Fault::Malformed) };
    Ok((if dollars { price.dollars()? } else { price.cents()? }, size.qty()?))
}
