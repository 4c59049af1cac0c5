//! Polymarket's messages to feed updates (upstream.md §2, §3). No sockets, no clock: live adapters and replay share it.
//!
//! Sizes are absolute already, so nothing is folded here; what is remembered per token only serves to drop what is
//! old or told twice (upstream.md §5), and per market to tell a change from a repetition.

mod told;

use super::announced::Announced;
use super::dto;
use super::hot::{self, What};
use super::listing;
use super::recent::Recent;
use super::spot::AHEAD_MAX;
use super::standing::Standing;
use crate::category::Names;
use crate::loose::{Loose, tick};
use crate::skips::{Skip, Skips};
use crate::{BookSide, FeedUpdate, Level, trade_id};
use ahash::AHashMap;
use engine::amount::TickSize;
use engine::id::Outcome;
use engine::market::terms::{MarketState, Resolution};
use engine::time::Timestamp;
use smallvec::{SmallVec, smallvec};
use std::borrow::Cow;
use std::sync::Arc;
pub(super) use told::BookTold;
use told::{Odd, Told, ascending, filled, last_price, level_change, top};

/// The translation of Polymarket's messages to [`FeedUpdate`]s.
pub struct Translate {
    pub(super) markets: Vec<Market>,
    pub(super) by_condition: AHashMap<String, usize>,
    pub(super) tokens: Vec<Token>,
    /// Number of a token by its id.
    pub(super) by_token: AHashMap<Arc<str>, usize>,
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
    /// When the socket last told of a tick.
    pub(super) tick_at: Timestamp,
    /// When the venue last changed the newest of the rows that the catalogue showed, and of those that said it is closed.
    pub(super) row_at: Timestamp,
    pub(super) closed_at: Timestamp,
    pub(super) resolved: Option<Resolution>,
}

/// What is remembered of a token.
pub(super) struct Token {
    pub(super) id: Arc<str>,
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

    /// Whether this was told last already.
    fn is_repeated(&self, hash: &str, at: Timestamp) -> bool {
        !hash.is_empty() && self.hash.1 == at && self.hash.0 == hash
    }

    /// This was told last.
    fn heard(&mut self, hash: &str, at: Timestamp) {
        self.hash.0.clear();
        self.hash.0.push_str(hash);
        self.hash.1 = at;
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
        Translate {
            markets: Vec::new(),
            by_condition: AHashMap::new(),
            tokens: Vec::new(),
            by_token: AHashMap::new(),
            skips,
            names,
            books_heard: 0,
            announced: Announced::default(),
        }
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
        self.tokens.iter_mut().filter(|token| token.connection == connection).for_each(Token::forget);
        updates.push(FeedUpdate::Gap { tokens: Vec::new(), reason: reason.into() });
    }

    /// The same for these tokens alone: nobody follows them any more, or they are subscribed anew.
    pub fn forget(&mut self, tokens: &[String]) {
        for token in tokens {
            if let Some(&number) = self.by_token.get(token.as_str()) {
                self.tokens[number].forget();
            }
        }
    }

    fn message(&mut self, text: &str, connection: u8, received: Timestamp, updates: &mut Vec<FeedUpdate>) {
        if let Some(hot::Message { timestamp, what }) = hot::read(text) {
            let at = moment(timestamp, received);
            return match what {
                What::Changes(changes) => {
                    let told = changes.into_iter().map(Told::from);
                    self.price_change(told, connection, at, updates);
                }
                What::Book(book) => {
                    self.look_at_hash(text);
                    let told = BookTold {
                        token: Some(Cow::Borrowed(book.token)),
                        hash: filled(book.hash).into(),
                        tick: book.tick.map(Cow::Borrowed),
                        last: book.last.map(Cow::Borrowed),
                        sides: |_: &Skips| [ascending(book.bids), ascending(book.asks)],
                    };
                    self.book(told, Via::Socket, connection, at, updates);
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
        let at = moment(message.timestamp.text().as_deref(), received);
        let kind = message.event_type.filled();
        match kind.as_deref().unwrap_or_else(|| guessed(&message)) {
            "book" => {
                self.look_at_hash(text);
                self.book(BookTold::of(&message), Via::Socket, connection, at, updates);
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

    /// A message that is JSON and none of ours: what it is about may have changed.
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

    /// The number of the token with that id.
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
        told: BookTold<'a, impl FnOnce(&Skips) -> [Vec<Level>; 2]>,
        via: Via,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let BookTold { token, mut hash, tick, last, sides } = told;
        let Some(number) = self.token(token.as_deref()) else { return };
        let (token, skips) = (&mut self.tokens[number], &self.skips);
        let caught_up = matches!(via, Via::Rest) && at >= token.snapshot_ts && token.recent.reaches(at);
        if at < token.last_ts && !caught_up {
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
                token.heard(&hash, at);
                token.recent.clear();
            }
            Via::Rest => {
                token.last_ts = token.last_ts.max(at);
                // What a socket tells of it is news of that socket, even when it is the same book.
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
        let told = changes.iter().map(|change| Told {
            token: change.asset_id.or(message.asset_id).filled(),
            hash: change.hash.or(message.hash).filled().unwrap_or_default(),
            level: level_change(change),
            top: top(change),
        });
        self.price_change(told, connection, at, updates);
    }

    fn price_change<'a>(
        &mut self,
        changes: impl Iterator<Item = Told<'a>>,
        connection: u8,
        at: Timestamp,
        updates: &mut Vec<FeedUpdate>,
    ) {
        let mut hashes: SmallVec<[(usize, Cow<'a, str>); 4]> = SmallVec::new();
        let mut tops: SmallVec<[(usize, hot::Top); 4]> = SmallVec::new();
        let first = updates.len();
        for told in changes {
            let Some(number) = self.token(told.token.as_deref()) else { continue };
            let (token, skips) = (&mut self.tokens[number], &self.skips);
            token.connection = connection;
            if at < token.snapshot_ts {
                skips.count(Skip::OutOfOrder, || format!("change of {}", token.id));
                continue;
            }
            if token.is_repeated(&told.hash, at) {
                skips.count(Skip::Duplicate, || format!("change of {}", token.id));
                continue;
            }
            token.last_ts = token.last_ts.max(at);
            let (side, price, size) = match told.level {
                Ok(level) => level,
                Err(Odd { fault, is_missed }) => {
                    skips.count(fault.into(), || format!("{told:?}"));
                    if is_missed && token.snapshot_ts != Timestamp::default() {
                        token.forget();
                        updates.push(unreadable([token.id.to_string()]));
                    }
                    continue;
                }
            };
            token.recent.note(at, side, price, size);
            if token.snapshot_ts == Timestamp::default() {
                // A level or two are no book: the whole one takes these changes in when it comes.
                skips.count(Skip::NoSnapshot, || format!("change of {}", token.id));
                continue;
            }
            if let Some(top) = told.top {
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
            hashes.push((number, told.hash));
        }
        // Only now: the changes of one message may all carry the hash of the book behind them.
        for (number, hash) in hashes {
            self.tokens[number].heard(&hash, at);
        }
        for (number, (bid, ask)) in tops {
            let token = self.tokens[number].id.clone();
            // Of the changes in one frame the last one tells what is true behind it.
            let told = |update: &FeedUpdate| matches!(update, FeedUpdate::Top { token: of, .. } if *of == token);
            if let Some(before) = updates[..first].iter().rposition(told) {
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

    /// A new tick is taken at once; both tokens of a market report it, so the second report changes nothing. With one that
    /// is none of ours the market is not tradable, until a row of the catalogue has another.
    pub(super) fn retick(&mut self, market: usize, told: &str, updates: &mut Vec<FeedUpdate>) {
        let market = &mut self.markets[market];
        match tick(told) {
            Ok(tick) if tick != market.tick => {
                market.tick = tick;
                market.untradable = !listing::is_known(tick);
                updates.push(FeedUpdate::TickChanged { condition: market.condition.clone(), tick });
                if market.untradable {
                    self.skips.count(Skip::UnknownTick, || format!("{told} for {}", market.condition));
                    market.open_state = MarketState::Halted;
                    if market.resolved.is_none() && market.state == MarketState::Active {
                        market.state = MarketState::Halted;
                        let condition = market.condition.clone();
                        updates.push(FeedUpdate::StateChanged { condition, state: MarketState::Halted });
                    }
                }
            }
            Ok(_) => {}
            Err(_) => self.skips.count(Skip::UnknownTick, || format!("{told} for {}", market.condition)),
        }
    }

    fn last_trade(&mut self, message: &dto::Message<'_>, at: Timestamp, updates: &mut Vec<FeedUpdate>) {
        let Some(number) = self.token(message.asset_id.filled().as_deref()) else { return };
        let skips = &self.skips;
        if message.side.filled().is_none() {
            let told = message.price.dollars().and_then(|price| Ok((price, message.size.qty()?)));
            return match told {
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
                id: message.transaction_hash.filled().map(|hash| trade_id(&hash)),
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
pub(super) fn moment(told: Option<&str>, received: Timestamp) -> Timestamp {
    let millis = told.and_then(|told| told.parse().ok()).map(Timestamp::from_millis);
    millis.filter(|at| at.since(received) <= AHEAD_MAX).unwrap_or(received)
}

/// What was told of these tokens' books cannot be read, so they are not the venue's any more.
fn unreadable(tokens: impl Into<Vec<String>>) -> FeedUpdate {
    FeedUpdate::Gap { tokens: tokens.into(), reason: "unreadable change".into() }
}
