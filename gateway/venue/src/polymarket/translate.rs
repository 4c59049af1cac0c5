//! Translates Polymarket's messages into feed updates (gateway/docs/live-venues.md §2, §3). Without sockets and clock:
//! live adapters and replay share it.
//!
//! Sizes are absolute, so nothing is folded. State per token serves to drop old and repeated messages
//! (gateway/docs/live-venues.md §5), and state per market to tell a change from a repetition.

mod parsed;

use super::announced::Announced;
use super::dto;
use super::fees::Fees;
use super::hot::{self, Content};
use super::listing;
use super::recent::Recent;
use super::spot::AHEAD_MAX;
use super::standing::Standing;
use crate::category::Names;
use crate::loose::{Loose, tick};
use crate::skips::{Skip, Skips};
use crate::{BookSide, FeedUpdate, Level};
use ahash::AHashMap;
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
pub(super) use parsed::ParsedBook;
use parsed::{BadLevel, ParsedChange, ascending, filled, last_price, level_change, top};
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::sync::Arc;

/// Translates Polymarket's messages into [`FeedUpdate`]s.
pub struct Translate {
    pub(super) markets: Vec<Market>,
    pub(super) by_condition: AHashMap<String, usize>,
    pub(super) tokens: Vec<Token>,
    /// Number of a token by its id.
    pub(super) by_token: AHashMap<Arc<str>, usize>,
    pub(super) skips: Arc<Skips>,
    pub(super) names: Names,
    /// Number of books so far.
    pub(super) books_seen: u64,
    pub(super) announced: Announced,
}

/// The state of a market.
pub(super) struct Market {
    pub(super) condition: String,
    pub(super) tokens: [String; 2],
    pub(super) tick: TickSize,
    /// The venue's tick is not an engine tick.
    pub(super) untradable: bool,
    /// Its state while it is not closed.
    pub(super) open_state: MarketState,
    pub(super) state: MarketState,
    pub(super) end: Option<Timestamp>,
    pub(super) standing: Standing,
    /// When the socket last reported a tick.
    pub(super) tick_at: Timestamp,
    /// Newest `updatedAt` of its catalogue rows, and of those that reported it as closed.
    pub(super) row_at: Timestamp,
    pub(super) closed_at: Timestamp,
    pub(super) resolved: Option<Resolution>,
    pub(super) fees: Fees,
}

/// The state of a token.
pub(super) struct Token {
    pub(super) id: Arc<str>,
    pub(super) market: usize,
    pub(super) connection: u8,
    pub(super) snapshot_ts: Timestamp,
    pub(super) last_ts: Timestamp,
    /// Hash and time of the last message with a hash.
    pub(super) hash: (String, Timestamp),
    pub(super) recent: Recent,
}

impl Token {
    /// The next message is applied without a check of its content and time.
    fn forget(&mut self) {
        (self.snapshot_ts, self.last_ts) = Default::default();
        self.hash = Default::default();
        self.recent.clear();
    }

    /// Whether the last message had this hash and time.
    fn is_repeated(&self, hash: &str, at: Timestamp) -> bool {
        !hash.is_empty() && self.hash.1 == at && self.hash.0 == hash
    }

    /// Notes hash and time of the last message.
    fn note(&mut self, hash: &str, at: Timestamp) {
        self.hash.0.clear();
        self.hash.0.push_str(hash);
        self.hash.1 = at;
    }
}

/// The source of a message.
#[derive(Clone, Copy)]
pub(super) enum Via {
    Socket,
    Rest,
}

impl Translate {
    /// Starts without markets; counts in `skips` what is skipped.
    pub fn new(skips: Arc<Skips>, names: Names) -> Translate {
        Translate {
            markets: Vec::new(),
            by_condition: AHashMap::new(),
            tokens: Vec::new(),
            by_token: AHashMap::new(),
            skips,
            names,
            books_seen: 0,
            announced: Announced::default(),
        }
    }

    /// Translates one text frame of the market channel: a message or an array of messages.
    pub fn frame(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        match text.trim_start().as_bytes().first() {
            Some(b'[') => match Loose::of(text.trim_start()).elements() {
                Some(parts) => parts.iter().for_each(|part| self.message(part.raw(), connection, received, updates)),
                None => self.skips.count(Skip::BadJson, || text.into()),
            },
            // The response to the adapter's ping.
            Some(b'P') if text.trim() == "PONG" => {}
            _ => self.message(text, connection, received, updates),
        }
    }

    /// The connection was interrupted: its tokens are stale until their next snapshots, which are applied even if they
    /// are equal to the last ones or dated before the last change.
    pub fn gap(&mut self, connection: u8, reason: &str, updates: &mut Vec<FeedUpdate>) {
        self.tokens.iter_mut().filter(|token| token.connection == connection).for_each(Token::forget);
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    /// The same for these tokens only: they are no longer followed, or are subscribed again.
    pub fn forget(&mut self, tokens: &[String]) {
        for token in tokens {
            if let Some(&number) = self.by_token.get(token.as_str()) {
                self.tokens[number].forget();
            }
        }
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        if let Some(hot::Message { timestamp, content }) = hot::read(text) {
            let at = venue_time(timestamp, received);
            return match content {
                Content::Changes(changes) => {
                    let changes = changes.into_iter().map(ParsedChange::from);
                    self.price_change(changes, connection, at, updates);
                }
                Content::Book(book) => {
                    self.check_hash(text);
                    let book = ParsedBook {
                        token: Some(Cow::Borrowed(book.token)),
                        hash: filled(book.hash).into(),
                        tick: book.tick.map(Cow::Borrowed),
                        last: book.last.map(Cow::Borrowed),
                        sides: |_: &Skips| [ascending(book.bids), ascending(book.asks)],
                    };
                    self.book(book, Via::Socket, connection, at, updates);
                }
            };
        }
        let message: dto::Message<'_> = match serde_json::from_str(text) {
            Ok(message) => message,
            Err(fault) => {
                self.skips.count(Skip::BadJson, || format!("{fault}: {text}"));
                return self.unread(text, updates);
            }
        };
        if !message.topic.is_absent() {
            return self.spot(&message, received, updates);
        }
        let at = venue_time(message.timestamp.text().as_deref(), received);
        let kind = message.event_type.filled();
        match kind.as_deref().unwrap_or_else(|| inferred_type(&message)) {
            "book" => {
                self.check_hash(text);
                self.book(ParsedBook::of(&message), Via::Socket, connection, at, updates);
            }
            "price_change" => self.loose_price_change(&message, connection, at, updates),
            "tick_size_change" => self.tick_size_change(&message, received, updates),
            "last_trade_price" => self.last_trade(&message, at, updates),
            "best_bid_ask" => {}
            "new_market" => self.new_market(&message, updates),
            "market_resolved" => self.market_resolved(&message, at, updates),
            other => self.skips.count(Skip::UnknownType, || format!("{other}: {text}")),
        }
    }

    /// Handles JSON of an unknown shape: the books that it is about may have changed.
    fn unread(&mut self, text: &str, updates: &mut Vec<FeedUpdate>) {
        let Ok(dto::About { event_type, asset_id, market }) = serde_json::from_str(text) else { return };
        if !matches!(event_type.text().as_deref(), Some("book" | "price_change")) {
            return;
        }
        let named = asset_id.text().and_then(|id| self.by_token.get(&*id));
        let numbers: Vec<usize> = match (named, market.text()) {
            (Some(&number), _) => vec![number],
            (None, Some(condition)) => match self.by_condition.get(&condition.to_ascii_lowercase()) {
                Some(&market) => self.markets[market].tokens.iter().map(|id| self.by_token[id.as_str()]).collect(),
                None => return,
            },
            (None, None) => return,
        };
        let has_book = |number: &usize| self.tokens[*number].snapshot_ts != Timestamp::default();
        let lost: Vec<usize> = numbers.into_iter().filter(has_book).collect();
        if !lost.is_empty() {
            lost.iter().for_each(|&number| self.tokens[number].forget());
            let ids: Vec<String> = lost.iter().map(|&number| self.tokens[number].id.to_string()).collect();
            updates.push(unreadable(ids));
        }
    }

    /// The number of the token with this id.
    fn token(&self, id: Option<&str>) -> Option<usize> {
        let Some(id) = id else {
            self.skips.count(Skip::MissingField, || "message without a token".into());
            return None;
        };
        let number = self.by_token.get(id).copied();
        if number.is_none() {
            self.skips.count(Skip::Unlisted, || format!("token {id}"));
        }
        number
    }

    pub(super) fn book<'a>(
        &mut self,
        book: ParsedBook<'a, impl FnOnce(&Skips) -> [Vec<Level>; 2]>,
        via: Via,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let ParsedBook { token, mut hash, tick, last, sides } = book;
        let Some(number) = self.token(token.as_deref()) else { return };
        let (token, skips) = (&mut self.tokens[number], &self.skips);
        let can_catch_up = matches!(via, Via::Rest) && at >= token.snapshot_ts && token.recent.reaches(at);
        if at < token.last_ts && !can_catch_up {
            return skips.count(Skip::OutOfOrder, || format!("book of {}", token.id));
        }
        token.connection = connection;
        if matches!(via, Via::Socket) && token.is_repeated(&hash, at) {
            return skips.count(Skip::Duplicate, || format!("book of {}", token.id));
        }
        let [mut bids, mut asks] = sides(skips);
        token.snapshot_ts = at;
        match via {
            Via::Socket => {
                token.last_ts = at;
                token.note(&hash, at);
                token.recent.clear();
            }
            Via::Rest => {
                token.last_ts = token.last_ts.max(at);
                // If the socket then sends the same book, it is not a repetition.
                token.hash = Default::default();
                if token.recent.fold(at, &mut bids, &mut asks) {
                    hash = Cow::Borrowed("");
                }
            }
        }
        bids.reverse();
        let (market, venue_ts, token) = (token.market, token.last_ts, token.id.clone());
        if let Some(tick) = tick {
            self.retick(market, &tick, updates);
        }
        let hash = Some(hash.into_owned()).filter(|hash| !hash.is_empty());
        let last = last.as_deref().and_then(last_price);
        let last = last.map(|(price, decimals)| (token.clone(), price, decimals));
        updates.push(FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash });
        if let Some((token, price, decimals)) = last {
            updates.push(FeedUpdate::LastPrice { token, price, decimals, venue_ts: at });
        }
    }

    fn loose_price_change(
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
        let changes = changes.iter().map(|change| ParsedChange {
            token: change.asset_id.or(message.asset_id).filled(),
            hash: change.hash.or(message.hash).filled().unwrap_or_default(),
            level: level_change(change),
            top: top(change),
        });
        self.price_change(changes, connection, at, updates);
    }

    fn price_change<'a>(
        &mut self,
        changes: impl Iterator<Item = ParsedChange<'a>>,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let mut hashes: SmallVec<[(usize, Cow<'a, str>); 4]> = SmallVec::new();
        let mut tops: SmallVec<[(usize, hot::Top); 4]> = SmallVec::new();
        let first = updates.len();
        for change in changes {
            let Some(number) = self.token(change.token.as_deref()) else { continue };
            let (token, skips) = (&mut self.tokens[number], &self.skips);
            token.connection = connection;
            if at < token.snapshot_ts {
                skips.count(Skip::OutOfOrder, || format!("change of {}", token.id));
                continue;
            }
            if token.is_repeated(&change.hash, at) {
                skips.count(Skip::Duplicate, || format!("change of {}", token.id));
                continue;
            }
            token.last_ts = token.last_ts.max(at);
            let (side, price, size) = match change.level {
                Ok(level) => level,
                Err(BadLevel { fault, is_loss }) => {
                    skips.count(fault.into(), || format!("{change:?}"));
                    if is_loss && token.snapshot_ts != Timestamp::default() {
                        token.forget();
                        updates.push(unreadable([token.id.to_string()]));
                    }
                    continue;
                }
            };
            token.recent.note(at, side, price, size);
            if token.snapshot_ts == Timestamp::default() {
                // Changes without a book are kept for the next snapshot.
                skips.count(Skip::NoSnapshot, || format!("change of {}", token.id));
                continue;
            }
            if let Some(top) = change.top {
                tops.retain(|(of, _)| *of != number);
                tops.push((number, top));
            }
            match updates[first..].last_mut() {
                Some(FeedUpdate::BookDelta { token: of, levels, .. }) if *of == token.id => {
                    levels.push((side, price, size));
                }
                _ => updates.push(FeedUpdate::BookDelta {
                    token: token.id.clone(),
                    levels: smallvec![(side, price, size)],
                    venue_ts: at,
                }),
            }
            hashes.push((number, change.hash));
        }
        // After the loop, because the changes of one message may all have the hash of the resulting book.
        for (number, hash) in hashes {
            self.tokens[number].note(&hash, at);
        }
        for (number, (bid, ask)) in tops {
            let token = self.tokens[number].id.clone();
            // Only the last of the changes in a frame states the best prices after the frame.
            let is_same = |update: &FeedUpdate| matches!(update, FeedUpdate::Top { token: of, .. } if *of == token);
            if let Some(before) = updates[..first].iter().rposition(is_same) {
                updates.remove(before);
            }
            updates.push(FeedUpdate::Top { token, bid, ask });
        }
    }

    fn tick_size_change(&mut self, message: &dto::Message<'_>, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(number) = self.token(message.asset_id.filled().as_deref()) else { return };
        let tick = message.new_tick_size.text().unwrap_or_default();
        let market = self.tokens[number].market;
        self.markets[market].tick_at = received;
        self.retick(market, &tick, updates);
    }

    /// Applies a new tick. Both tokens of a market report it, so the second report changes nothing. With an unknown
    /// tick the market is not tradable until a catalogue row has another one.
    pub(super) fn retick(&mut self, market: usize, text: &str, updates: &mut Vec<FeedUpdate>) {
        let market = &mut self.markets[market];
        match tick(text) {
            Ok(tick) if tick != market.tick => {
                market.tick = tick;
                market.untradable = !listing::is_known(tick);
                updates.push(FeedUpdate::TickChanged { condition: market.condition.clone(), tick });
                if market.untradable {
                    self.skips.count(Skip::UnknownTick, || format!("{text} for {}", market.condition));
                    market.open_state = MarketState::Halted;
                    if market.resolved.is_none() && market.state == MarketState::Active {
                        market.state = MarketState::Halted;
                        let condition = market.condition.clone();
                        updates.push(FeedUpdate::StateChanged { condition, state: MarketState::Halted });
                    }
                }
            }
            Ok(_) => {}
            Err(_) => self.skips.count(Skip::UnknownTick, || format!("{text} for {}", market.condition)),
        }
    }

    fn last_trade(&mut self, message: &dto::Message<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(number) = self.token(message.asset_id.filled().as_deref()) else { return };
        let skips = &self.skips;
        if message.side.filled().is_none() {
            let level = message.price.dollars().and_then(|price| Ok((price, message.size.qty()?)));
            return match level {
                Ok((price, size)) if !size.is_zero() => {
                    let token = self.tokens[number].id.clone();
                    updates.push(FeedUpdate::SidelessTrade { token, price, size, venue_ts: at });
                }
                Ok(_) => skips.count(Skip::MissingField, || format!("trade without size: {message:?}")),
                Err(fault) => skips.count(fault.into(), || format!("trade {message:?}")),
            };
        }
        let change = dto::Change { price: message.price, size: message.size, side: message.side, ..Default::default() };
        match level_change(&change) {
            Ok((side, price, size)) if !size.is_zero() => updates.push(FeedUpdate::LastTrade {
                token: self.tokens[number].id.clone(),
                price,
                size,
                taker_buys: side == BookSide::Bid,
                venue_ts: at,
                id: message.transaction_hash.filled().map(Arc::from),
                fee_rate_bps: message.fee_rate_bps.text().and_then(|rate| rate.parse().ok()),
            }),
            Ok(_) => skips.count(Skip::MissingField, || format!("trade without size: {message:?}")),
            Err(odd) => skips.count(odd.fault.into(), || format!("trade {message:?}")),
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

/// The type of a message without one, as in old recordings.
fn inferred_type(message: &dto::Message<'_>) -> &'static str {
    match () {
        _ if message.price_changes.is_some() || message.changes.is_some() => "price_change",
        _ if message.bids.is_some() || message.asks.is_some() => "book",
        _ if !message.new_tick_size.is_absent() => "tick_size_change",
        _ => "without a type",
    }
}

/// The venue's time of a message. A missing time, or one far ahead, is replaced by the time of arrival: after a book
/// from the future all later messages would look old.
pub(super) fn venue_time(text: Option<&str>, received: Timestamp) -> Timestamp {
    let millis = text.and_then(|text| text.parse().ok()).map(Timestamp::from_millis);
    millis.filter(|at| at.since(received) <= AHEAD_MAX).unwrap_or(received)
}

/// The update for tokens whose books are unreliable after an unreadable message.
fn unreadable(tokens: impl Into<Vec<String>>) -> FeedUpdate {
    FeedUpdate::Gap { tokens: tokens.into(), reason: "unreadable change".into() }
}
