//! Polymarket's messages to feed updates (upstream.md §2, §3). No sockets, no clock: live adapters and replay share it.
//!
//! Sizes are absolute already, so nothing is folded here; what is remembered per token only serves to drop what is
//! old or told twice (upstream.md §5), and per market to tell a change from a repetition.

use super::announced::Announced;
use super::dto;
use super::listing;
use super::recent::Recent;
use super::spot::AHEAD_MAX;
use super::standing::Standing;
use crate::venue::category::Names;
use crate::venue::loose::{Fault, Loose, scaled};
use crate::venue::skips::{Skip, Skips};
use crate::venue::{BookSide, FeedUpdate, Level};
use ahash::AHashMap;
use engine::amount::{Price, Qty, TickSize};
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use std::sync::Arc;

/// The translation of Polymarket's messages to [`FeedUpdate`]s.
pub struct Translate {
    pub(super) markets: Vec<Market>,
    pub(super) by_condition: AHashMap<String, usize>,
    pub(super) tokens: AHashMap<String, Token>,
    pub(super) skips: Arc<Skips>,
    pub(super) names: Names,
    /// Books that came so far.
    pub(super) books_heard: u64,
    pub(super) announced: Announced,
}

/// What is remembered of a market.
pub(super) struct Market {
    pub(super) condition: String,
    pub(super) tokens: [String; 2],
    pub(super) tick: TickSize,
    /// The venue's tick is none of ours.
    pub(super) untradable: bool,
    /// What it is while it is not closed.
    pub(super) open_state: MarketState,
    pub(super) state: MarketState,
    pub(super) end: Option<Timestamp>,
    pub(super) standing: Standing,
    /// When the venue last changed the newest of the rows that the catalogue showed, and of those that said it is closed.
    pub(super) row_at: Timestamp,
    pub(super) closed_at: Timestamp,
    pub(super) resolved: Option<Resolution>,
}

/// What is remembered of a token.
pub(super) struct Token {
    pub(super) market: usize,
    pub(super) connection: u8,
    pub(super) snapshot_ts: Timestamp,
    pub(super) last_ts: Timestamp,
    /// Hash of the last message that carried one, and its time.
    pub(super) hash: (String, Timestamp),
    pub(super) recent: Recent,
}

impl Token {
    /// What comes next is news, whatever it says and whenever the venue dates it.
    fn forget(&mut self) {
        (self.snapshot_ts, self.last_ts) = Default::default();
        self.hash = Default::default();
        self.recent.clear();
    }
}

/// How a message reached us.
#[derive(Clone, Copy)]
pub(super) enum Via {
    Socket,
    Rest,
}

impl Translate {
    /// Knows no market yet; what is skipped is counted in `skips`.
    pub fn new(skips: Arc<Skips>, names: Names) -> Translate {
        let (markets, by_condition, tokens) = (Vec::new(), AHashMap::new(), AHashMap::new());
        Translate { markets, by_condition, tokens, skips, names, books_heard: 0, announced: Announced::default() }
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
    /// even when nothing has changed, or when the venue dates them before the last change.
    pub fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        self.tokens.values_mut().filter(|token| token.connection == connection).for_each(Token::forget);
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    /// The same for these tokens alone: nobody follows them any more, or they are subscribed anew.
    pub fn forget(&mut self, tokens: &[String]) {
        for token in tokens {
            if let Some(token) = self.tokens.get_mut(token) {
                token.forget();
            }
        }
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let message: dto::Message<'_> = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(fault) => return self.skips.count(Skip::BadJson, || format!("{fault}: {text}")),
        };
        if !message.topic.is_absent() {
            return self.spot(&message, received, updates);
        }
        let at = moment(message.timestamp, received);
        let kind = message.event_type.filled();
        match kind.as_deref().unwrap_or_else(|| guessed(&message)) {
            "book" => {
                self.look_at_hash(text);
                self.book(&message, Via::Socket, connection, at, updates);
            }
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

    pub(super) fn book(
        &mut self,
        message: &dto::Message<'_>,
        via: Via,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let skips = self.skips.clone();
        let Some((token, id)) = self.token(message.asset_id) else { return };
        let mut hash = message.hash.owned().unwrap_or_default();
        let caught_up = matches!(via, Via::Rest) && at >= token.snapshot_ts && token.recent.reaches(at);
        if at < token.last_ts && !caught_up {
            return skips.count(Skip::OutOfOrder, || format!("book of {id}"));
        }
        token.connection = connection;
        if matches!(via, Via::Socket) && !hash.is_empty() && token.hash == (hash.clone(), at) {
            return skips.count(Skip::Duplicate, || format!("book of {id}"));
        }
        let side = |levels: &Option<Vec<dto::Level<'_>>>, older: &Option<Vec<dto::Level<'_>>>| {
            side(levels.as_deref().or(older.as_deref()).unwrap_or_default(), &skips)
        };
        let (mut bids, mut asks) = (side(&message.bids, &message.buys), side(&message.asks, &message.sells));
        token.snapshot_ts = at;
        match via {
            Via::Socket => {
                token.last_ts = at;
                token.hash = (hash.clone(), at);
                token.recent.clear();
            }
            Via::Rest => {
                token.last_ts = token.last_ts.max(at);
                // What a socket tells of it is news of that socket, even when it is the same book.
                token.hash = Default::default();
                if token.recent.fold(at, &mut bids, &mut asks) {
                    hash.clear();
                }
            }
        }
        bids.reverse();
        let (market, venue_ts) = (token.market, token.last_ts);
        if !message.tick_size.is_absent() {
            self.retick(market, message.tick_size, updates);
        }
        let hash = Some(hash).filter(|hash| !hash.is_empty());
        updates.push(FeedUpdate::BookSnapshot { token: id, bids, asks, venue_ts, hash });
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
            ..Default::default()
        }];
        let changes = match (&message.price_changes, &message.changes) {
            (Some(changes), _) | (None, Some(changes)) => changes.as_slice(),
            (None, None) => &lone,
        };
        let skips = self.skips.clone();
        let (mut hashes, mut tops) = (Vec::new(), Vec::new());
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
                    skips.count(fault.into(), || format!("{change:?}"));
                    continue;
                }
            };
            token.recent.note(at, side, price, size);
            if token.snapshot_ts == Timestamp::default() {
                // A level or two are no book: the whole one takes these changes in when it comes.
                skips.count(Skip::NoSnapshot, || format!("change of {id}"));
                continue;
            }
            if let Some(top) = top(change) {
                tops.retain(|(of, _)| *of != id);
                tops.push((id.clone(), top));
            }
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
        for (token, (bid, ask)) in tops {
            // Of the changes in one frame the last one tells what is true behind it.
            let told = |update: &FeedUpdate| matches!(update, FeedUpdate::Top { token: of, .. } if *of == token);
            if let Some(before) = updates[..first].iter().rposition(told) {
                updates.remove(before);
            }
            updates.push(FeedUpdate::Top { token, bid, ask });
        }
    }

    fn tick_size_change(&mut self, message: &dto::Message<'_>, updates: &mut Vec<FeedUpdate>) {
        let Some((token, _)) = self.token(message.asset_id) else { return };
        let market = token.market;
        self.retick(market, message.new_tick_size, updates);
    }

    /// A new tick is taken at once; both tokens of a market report it, so the second report changes nothing.
    pub(super) fn retick(&mut self, market: usize, field: Loose<'_>, updates: &mut Vec<FeedUpdate>) {
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
            Err(fault) => skips.count(fault.into(), || format!("trade {message:?}")),
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

/// When the venue says it was; what is missing or lies far ahead of us was now: a book from the future would make all
/// that follows look old.
pub(super) fn moment(field: Loose<'_>, received: Timestamp) -> Timestamp {
    field.millis().filter(|at| at.since(received) <= AHEAD_MAX).unwrap_or(received)
}

/// Levels of one side, ascending, each price once; the last one told counts.
fn side(rows: &[dto::Level<'_>], skips: &Skips) -> Vec<Level> {
    let mut levels = Vec::with_capacity(rows.len());
    for row in rows {
        match (row.price.dollars(), row.size.qty()) {
            (Ok(price), Ok(size)) => levels.push((price, size)),
            (Err(fault), _) | (_, Err(fault)) => skips.count(fault.into(), || format!("{row:?}")),
        }
    }
    // Stable, and from the back: of equal prices the one told last comes first and stays.
    levels.reverse();
    levels.sort_by_key(|(price, _)| *price);
    levels.dedup_by_key(|(price, _)| *price);
    levels.retain(|(_, size)| !size.is_zero());
    levels
}

/// What a change says the best prices are behind it; `None` when it does not say, or nothing that can be compared.
fn top(change: &dto::Change<'_>) -> Option<(Option<Price>, Option<Price>)> {
    const DOLLAR: u64 = 10_000;
    let best = |field: Loose<'_>| {
        let text = field.text()?;
        match text.trim() {
            "" => Some(None),
            text => match scaled(text, 4).ok()? {
                // What stands for an empty side.
                0 | DOLLAR => Some(None),
                units => Some(Some(Price(u16::try_from(units).ok().filter(|units| u64::from(*units) < DOLLAR)?))),
            },
        }
    };
    Some((best(change.best_bid)?, best(change.best_ask)?))
}

fn level_change(change: &dto::Change<'_>) -> Result<(BookSide, Price, Qty), Fault> {
    let side = match change.side.text().as_deref() {
        Some("BUY" | "buy") => BookSide::Bid,
        Some("SELL" | "sell") => BookSide::Ask,
        _ => return Err(Fault::Missing),
    };
    Ok((side, change.price.dollars()?, change.size.qty()?))
}
