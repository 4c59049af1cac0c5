//! Decisions that wait for the log: facts, and the books of markets whose listing is among them.

use super::super::FeedUpdate;
use ahash::AHashMap;
use engine::amount::{Price, Qty};
use engine::book::{self, BookSide, LastTrade};
use engine::fact;
use engine::id::{InstrumentId, MarketId};
use engine::market::mutation::MarketMutation;
use engine::mutation::codec;
use engine::shard::Room;
use engine::time::Timestamp;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Facts in the order of their decisions.
#[derive(Default)]
pub(super) struct Pending {
    facts: Vec<MarketMutation>,
    /// Markets below this id are listed in the log.
    listed: u32,
}

impl Pending {
    /// No pending facts, for a log in which `listed` markets are listed.
    pub(super) fn new(listed: usize) -> Pending {
        Pending { facts: Vec::new(), listed: listed as u32 }
    }

    pub(super) fn push(&mut self, fact: MarketMutation) {
        self.facts.push(fact);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.facts.is_empty()
    }

    /// Takes the facts of the next record and encodes them in format `version` into `payload`: at most `bytes_max`
    /// bytes, or one fact. Changes of listed markets may use the reserve; new markets wait for ample room.
    pub(super) fn next(
        &mut self,
        version: u16,
        room: Room,
        bytes_max: usize,
        payload: &mut Vec<u8>,
    ) -> Vec<MarketMutation> {
        let (mut taken, mut full) = (Vec::new(), room == Room::None);
        let listed = MarketId(self.listed);
        self.facts.retain(|fact| {
            if full || room == Room::ReserveOnly && market(fact).is_none_or(|market| market >= listed) {
                return true;
            }
            let before = payload.len();
            codec::encode(version, std::slice::from_ref(fact), payload);
            if payload.len() > bytes_max && !taken.is_empty() {
                payload.truncate(before);
                full = true;
                return true;
            }
            taken.push(fact.clone());
            false
        });
        let new = taken.iter().filter(|fact| matches!(fact, MarketMutation::MarketListed(_)));
        self.listed += new.count() as u32;
        taken
    }
}

fn market(fact: &MarketMutation) -> Option<MarketId> {
    match fact {
        MarketMutation::MarketListed(fact::MarketListed { market, .. })
        | MarketMutation::MarketStateChanged(fact::MarketStateChanged { market, .. })
        | MarketMutation::TickChanged(fact::TickChanged { market, .. })
        | MarketMutation::EndChanged(fact::EndChanged { market, .. })
        | MarketMutation::FeeScheduleChanged(fact::FeeScheduleChanged { market, .. })
        | MarketMutation::MarketResolved(fact::MarketResolved { market, .. })
        | MarketMutation::MarketSettled(fact::MarketSettled { market, .. }) => Some(*market),
        MarketMutation::TapeReached(_)
        | MarketMutation::Restored(_)
        | MarketMutation::ClockSetBack(_)
        | MarketMutation::HistoryCut(_)
        | MarketMutation::AddressDeclared(_) => None,
    }
}

/// The book of a token whose market is not listed in the log yet, and so not visible to readers.
pub(super) struct Held {
    pub(super) connection: u8,
    pub(super) received: Timestamp,
    bids: BTreeMap<Price, Qty>,
    asks: BTreeMap<Price, Qty>,
    at: Timestamp,
    hash: Option<String>,
    trade: Option<LastTrade>,
    /// The price of the last trade as the book states it, and the number of decimals of that text.
    last: Option<(Price, Option<u8>, Timestamp)>,
}

impl Held {
    /// Writes the whole book.
    pub(super) fn write(&self, books: &mut book::Frame<'_>, instrument: InstrumentId) {
        let levels =
            |side: &BTreeMap<Price, Qty>| -> Vec<_> { side.iter().map(|(price, size)| (*price, *size)).collect() };
        books.snapshot(instrument, &levels(&self.bids), &levels(&self.asks), self.at, self.hash.as_deref());
        if let Some(trade) = self.trade {
            books.trade(instrument, trade);
        }
        if let Some((price, decimals, at)) = self.last {
            books.last_price(instrument, price, decimals, at);
        }
    }
}

/// Applies an update to the held book of its token. A book begins with a snapshot; updates before it are dropped.
pub(super) fn hold(held: &mut AHashMap<Arc<str>, Held>, update: &FeedUpdate, connection: u8, received: Timestamp) {
    match update {
        FeedUpdate::BookSnapshot { token, bids, asks, venue_ts, hash } => {
            let trade = held.remove(token).and_then(|before| before.trade);
            let (bids, asks) = (bids.iter().copied().collect(), asks.iter().copied().collect());
            let hash = hash.clone();
            let book = Held { connection, received, bids, asks, at: *venue_ts, hash, trade, last: None };
            held.insert(token.clone(), book);
        }
        FeedUpdate::BookDelta { token, levels, venue_ts } => {
            let Some(held) = held.get_mut(token) else { return };
            for (side, price, size) in levels {
                let side = if *side == BookSide::Bid { &mut held.bids } else { &mut held.asks };
                if *size == Qty(0) {
                    side.remove(price)
                } else {
                    side.insert(*price, *size)
                };
            }
            (held.connection, held.received, held.at, held.hash) = (connection, received, *venue_ts, None);
        }
        FeedUpdate::LastTrade { token, price, size, taker_buys, venue_ts, .. } => {
            let Some(held) = held.get_mut(token) else { return };
            held.last = None;
            held.trade = Some(LastTrade { price: *price, size: *size, taker_buys: *taker_buys, at: *venue_ts });
        }
        FeedUpdate::LastPrice { token, price, decimals, venue_ts } => {
            let Some(held) = held.get_mut(token) else { return };
            held.last = Some((*price, *decimals, *venue_ts));
        }
        _ => {}
    }
}

/// The token whose book an update changes.
pub(super) fn token(update: &FeedUpdate) -> Option<&str> {
    match update {
        FeedUpdate::BookSnapshot { token, .. }
        | FeedUpdate::BookDelta { token, .. }
        | FeedUpdate::LastTrade { token, .. }
        | FeedUpdate::LastPrice { token, .. } => Some(token),
        _ => None,
    }
}
