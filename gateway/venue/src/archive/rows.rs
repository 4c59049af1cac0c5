//! Updates of the feed as rows of an archive, and rows as updates again (gateway/docs/archive-tools.md §2).
//!
//! Rows are made from what the translators hand out, not from messages: a duplicate, an old message, an unlisted token
//! and an unreadable level are what they are for the live feed. So the rows of an hour fold to the same books as its
//! lines.

use crate::{Changes, FeedUpdate, Level};
use ahash::AHashMap;
use archive::row::{Condition, Event, LEVELS_BYTES_MAX, Row, SIZE_MAX, is_token};
use engine::amount::TickSize;
use engine::market::terms::Listing;
use engine::time::Timestamp;
use std::sync::Arc;
use wincode::{SchemaRead, SchemaWrite};

/// Longest id of a trade that a row holds, in bytes: a transaction hash has 66, an id of Kalshi 36.
const TRADE_ID_BYTES_MAX: usize = 128;
/// Longest text of a level in a file: `["0.9999","999999999999.999999"],`.
const LEVEL_BYTES_MAX: usize = 33;

/// Makes rows of updates. It knows the markets that were listed so far.
#[derive(Default)]
pub struct RowMaker {
    /// Market of a token, and the venue's time of its last book or change. It never goes back in rows: the translators
    /// have decided already which message counts, and a fold of the rows must not drop one by its time.
    tokens: AHashMap<Arc<str>, (Condition, Timestamp)>,
    markets: AHashMap<String, Market>,
}

/// A [`RowMaker`] as bytes.
#[derive(SchemaWrite, SchemaRead)]
pub(super) struct SavedRows {
    /// Token, its market, and the venue's time of its last book or change.
    tokens: Vec<(String, [u8; 32], Timestamp)>,
    /// Id of the venue, market, tokens, tick.
    markets: Vec<(String, [u8; 32], [String; 2], TickSize)>,
}

struct Market {
    condition: Condition,
    tokens: [Arc<str>; 2],
    tick: TickSize,
}

impl RowMaker {
    /// Appends the rows of one frame; returns how many events fit no row.
    pub fn frame(&mut self, updates: &[FeedUpdate], received: Timestamp, rows: &mut Vec<Row>) -> u64 {
        let received = whole(received);
        let first = rows.len();
        let mut unfit = 0;
        for update in updates {
            match update {
                FeedUpdate::Listed { listing, .. } => self.list(listing),
                FeedUpdate::TickChanged { condition, tick } => match self.markets.get_mut(condition) {
                    Some(market) => {
                        let event = Event::TickSizeChange { old: Some(market.tick), new: *tick };
                        market.tick = *tick;
                        rows.extend(market.tokens.iter().map(|token| Row {
                            received,
                            source: received,
                            market: market.condition,
                            token: token.clone(),
                            event: event.clone(),
                        }));
                    }
                    None => unfit += 1,
                },
                FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, .. } => {
                    // In the order of the venue: the best level is the last one.
                    let side = |levels: &[Level]| levels.iter().rev().copied().collect::<Vec<_>>();
                    let event = Event::Book { bids: side(bids), asks: side(asks) };
                    unfit += self.push((token, *venue_ts, received), event, rows);
                }
                FeedUpdate::BookDelta { token, levels, venue_ts } => {
                    for (side, price, size) in levels {
                        let (price, size, side) = (*price, *size, *side);
                        let event = Event::PriceChange { price, size, side, best_bid: None, best_ask: None };
                        unfit += self.push((token, *venue_ts, received), event, rows);
                    }
                }
                // The best prices after the frame: those of the last change of the token in it.
                FeedUpdate::Top { token, bid, ask } => {
                    let last = rows[first..].iter_mut().rev().find_map(|row| match &mut row.event {
                        Event::PriceChange { best_bid, best_ask, .. } if row.token == *token => {
                            Some((best_bid, best_ask))
                        }
                        _ => None,
                    });
                    if let Some((best_bid, best_ask)) = last {
                        (*best_bid, *best_ask) = (*bid, *ask);
                    }
                }
                FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, id, fee_rate_bps } => {
                    let event = Event::LastTradePrice {
                        price: *price,
                        size: *size,
                        taker_buys: *taker_buys,
                        fee_rate_bps: *fee_rate_bps,
                        transaction_hash: id.clone().filter(|id| id.len() <= TRADE_ID_BYTES_MAX),
                    };
                    unfit += self.push((token, *venue_ts, received), event, rows);
                }
                FeedUpdate::SidelessTrade { .. } => unfit += 1,
                FeedUpdate::StateChanged { .. }
                | FeedUpdate::EndChanged { .. }
                | FeedUpdate::Figures { .. }
                | FeedUpdate::Stated { .. }
                | FeedUpdate::Strike { .. }
                | FeedUpdate::LastPrice { .. }
                | FeedUpdate::Resolved { .. }
                | FeedUpdate::Spot { .. }
                | FeedUpdate::Gap { .. }
                | FeedUpdate::Left { .. }
                | FeedUpdate::Fees { .. } => {}
            }
        }
        unfit
    }

    /// What the rows of later frames depend on.
    pub(super) fn save(&self) -> SavedRows {
        SavedRows {
            tokens: self.tokens.iter().map(|(token, (market, last))| (token.to_string(), market.0, *last)).collect(),
            markets: self
                .markets
                .iter()
                .map(|(id, market)| {
                    let tokens = market.tokens.each_ref().map(|token| token.to_string());
                    (id.clone(), market.condition.0, tokens, market.tick)
                })
                .collect(),
        }
    }

    /// Continues after [`RowMaker::save`].
    pub(super) fn restored(SavedRows { tokens, markets }: SavedRows) -> RowMaker {
        let token = |(token, market, last): (String, _, _)| (token.into(), (Condition(market), last));
        let market = |(id, condition, tokens, tick): (String, _, [String; 2], _)| {
            (id, Market { condition: Condition(condition), tokens: tokens.map(Arc::from), tick })
        };
        RowMaker { tokens: tokens.into_iter().map(token).collect(), markets: markets.into_iter().map(market).collect() }
    }

    /// The market of a listed token.
    pub fn market(&self, token: &str) -> Option<Condition> {
        self.tokens.get(token).map(|(market, _)| *market)
    }

    fn list(&mut self, listing: &Listing) {
        // Ids of another form have no column; their events are counted as unfit.
        let Some(condition) = Condition::parse(&listing.condition) else { return };
        if self.markets.contains_key(&listing.condition) {
            return;
        }
        let tokens = listing.tokens.each_ref().map(|token| Arc::<str>::from(token.as_str()));
        if tokens.iter().all(|token| is_token(token.as_bytes())) {
            self.tokens.extend(tokens.iter().map(|token| (token.clone(), (condition, Timestamp::default()))));
            let market = Market { condition, tokens, tick: listing.tick };
            self.markets.insert(listing.condition.clone(), market);
        }
    }

    /// Appends the row of an event of a token; 1 if it does not fit.
    fn push(
        &mut self,
        (token, venue_ts, received): (&Arc<str>, Timestamp, Timestamp),
        event: Event,
        rows: &mut Vec<Row>,
    ) -> u64 {
        let Some((market, last)) = self.tokens.get_mut(token).filter(|_| fits(&event)) else { return 1 };
        let mut source = whole(venue_ts);
        if matches!(event, Event::Book { .. } | Event::PriceChange { .. }) {
            source = source.max(*last);
            *last = source;
        }
        rows.push(Row { received, source, market: *market, token: token.clone(), event });
        0
    }
}

/// Whether the columns of a file hold this event.
fn fits(event: &Event) -> bool {
    match event {
        Event::Book { bids, asks } => [bids, asks].iter().all(|side| {
            side.len() * LEVEL_BYTES_MAX + 2 <= LEVELS_BYTES_MAX && side.iter().all(|(_, size)| *size <= SIZE_MAX)
        }),
        Event::PriceChange { size, .. } | Event::LastTradePrice { size, .. } => *size <= SIZE_MAX,
        Event::TickSizeChange { .. } => true,
    }
}

/// A time in whole milliseconds.
fn whole(at: Timestamp) -> Timestamp {
    Timestamp::from_millis(at.millis())
}

/// Makes updates of rows. It knows which tokens have a book: as in the translators, a change without one is dropped.
#[derive(Default)]
pub struct UpdateMaker {
    /// Tokens whose book is known: the venue's times of the book and of the last event. As live, an older book and a
    /// change from before the book are dropped (gateway/docs/live-venues.md §5).
    books: AHashMap<Arc<str>, [Timestamp; 2]>,
    /// Ticks that were handed out, by market.
    ticks: AHashMap<Condition, TickSize>,
    /// Best prices of a moment that goes on, by token.
    tops: Vec<(Arc<str>, FeedUpdate)>,
    /// Books and changes that were dropped: older, or without a book.
    pub dropped: u64,
}

impl UpdateMaker {
    /// Notes the tick with which a market is listed.
    pub fn listed(&mut self, market: Condition, tick: TickSize) {
        self.ticks.insert(market, tick);
    }

    /// A market that is listed by rows has rows of a finer grid: the update, unless the grid is known.
    pub fn refine(&mut self, market: Condition, tick: TickSize) -> Option<FeedUpdate> {
        let known = self.ticks.get_mut(&market).filter(|known| tick < **known)?;
        *known = tick;
        Some(FeedUpdate::TickChanged { condition: market.to_string(), tick })
    }

    /// Whether the book of a token is known.
    pub fn knows(&self, token: &str) -> bool {
        self.books.contains_key(token)
    }

    /// Notes books that were handed out: those at the begin of an hour.
    pub fn open(&mut self, books: &[FeedUpdate]) {
        for book in books {
            if let FeedUpdate::BookSnapshot { token, .. } = book {
                self.books.insert(token.clone(), [Timestamp::default(); 2]);
            }
        }
    }

    /// The books of these tokens are unknown until their next snapshot; without tokens, all books.
    pub fn forget(&mut self, tokens: &[String]) {
        if tokens.is_empty() {
            self.books.clear();
            self.tops.clear();
        }
        for token in tokens {
            self.books.remove(token.as_str());
            self.tops.retain(|(of, _)| **of != *token.as_str());
        }
    }

    /// Appends the updates of the rows of one market with one time of receipt. The best prices follow the changes that
    /// they are checked against.
    pub fn frame(&mut self, rows: &[Row], updates: &mut Vec<FeedUpdate>) {
        self.part(rows, updates);
        updates.extend(self.tops.drain(..).map(|(_, top)| top));
    }

    /// The same of a part of them, but for the best prices: these follow the last part, which is given to
    /// [`UpdateMaker::frame`].
    pub(super) fn part(&mut self, rows: &[Row], updates: &mut Vec<FeedUpdate>) {
        for row in rows {
            let (token, venue_ts) = (&row.token, row.source);
            match &row.event {
                Event::Book { bids, asks } => {
                    if self.books.get(token).is_some_and(|[_, last]| venue_ts < *last) {
                        self.dropped += 1;
                        continue;
                    }
                    self.books.insert(token.clone(), [venue_ts; 2]);
                    self.tops.retain(|(of, _)| of != token);
                    let mut bids = sorted(bids);
                    bids.reverse();
                    updates.push(FeedUpdate::BookSnapshot {
                        token: token.clone(),
                        bids,
                        asks: sorted(asks),
                        venue_ts,
                        hash: None,
                    });
                }
                Event::PriceChange { price, size, side, best_bid, best_ask } => {
                    let Some([_, last]) = self.books.get_mut(token).filter(|[book, _]| venue_ts >= *book) else {
                        self.dropped += 1;
                        continue;
                    };
                    *last = venue_ts.max(*last);
                    let change = (*side, *price, *size);
                    match updates.last_mut() {
                        Some(FeedUpdate::BookDelta { token: of, levels, venue_ts: at })
                            if of == token && *at == venue_ts =>
                        {
                            levels.push(change);
                        }
                        _ => {
                            let levels = Changes::from_iter([change]);
                            updates.push(FeedUpdate::BookDelta { token: token.clone(), levels, venue_ts });
                        }
                    }
                    // They were stated before a later change.
                    self.tops.retain(|(of, _)| of != token);
                    if best_bid.is_some() || best_ask.is_some() {
                        let top = FeedUpdate::Top { token: token.clone(), bid: *best_bid, ask: *best_ask };
                        self.tops.push((token.clone(), top));
                    }
                }
                Event::LastTradePrice { price, size, taker_buys, fee_rate_bps, transaction_hash } => {
                    if size.is_zero() {
                        continue;
                    }
                    updates.push(FeedUpdate::LastTrade {
                        token: token.clone(),
                        price: *price,
                        size: *size,
                        taker_buys: *taker_buys,
                        venue_ts,
                        id: transaction_hash.clone(),
                        fee_rate_bps: *fee_rate_bps,
                    });
                }
                Event::TickSizeChange { new, .. } => {
                    // Both tokens of a market have a row.
                    if self.ticks.insert(row.market, *new) != Some(*new) {
                        updates.push(FeedUpdate::TickChanged { condition: row.market.to_string(), tick: *new });
                    }
                }
            }
        }
    }
}

/// Levels ascending by price, one per price: the last one in the file.
fn sorted(levels: &[Level]) -> Vec<Level> {
    let mut levels: Vec<Level> = levels.iter().rev().copied().collect();
    levels.sort_by_key(|(price, _)| *price);
    levels.dedup_by_key(|(price, _)| *price);
    levels.retain(|(_, size)| !size.is_zero());
    levels
}

#[cfg(test)]
mod tests;
