//! The price frame (gateway/docs/streams.md §2.2). Its fields are encoded once for all sockets; each socket adds its
//! own.

use super::shape::prices::{OutcomePrice, PriceFields, TokenPrice};
use crate::api::account::valuation::Marks;
use crate::api::markets::quote::OUTCOMES;
use crate::api::markets::view::Phase;
use crate::http::record::{ByName, write_record};
use crate::http::scalar::{self, Instant, Quantity, Volume};
use crate::reads::Reads;
use engine::amount::Cash;
use engine::book::{Depth, LastPrice, Top};
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::cell::RefCell;
use wire::decimal;

thread_local! {
    /// A copy without levels.
    static TOP: RefCell<Depth> = RefCell::default();
}

/// Room for the fields of a price frame; longer names of outcomes enlarge it.
const FIELDS_BYTES: usize = 1_280;

/// The fields of a price frame except `type` and `seq`, as an object.
#[derive(Debug)]
pub struct Price(Vec<u8>);

/// The figures of one outcome.
struct Quoted {
    top: Option<(Top, Timestamp)>,
    /// Midpoint of its own bid and ask, in 10⁻⁶ USD a share.
    midpoint: Option<Cash>,
    last: Option<LastPrice>,
}

impl Price {
    /// The current price of a market.
    pub fn of(cell: &MarketCell, reads: &Reads) -> Price {
        Price::new(&fields(cell, reads))
    }

    pub(super) fn new(fields: &PriceFields<'_>) -> Price {
        let mut text = Vec::with_capacity(FIELDS_BYTES);
        write_record(&mut text, fields);
        Price(text)
    }

    /// The frame of the price channel. `seq` counts the frames of one socket.
    pub fn frame(&self, out: &mut Vec<u8>, seq: u64) {
        out.extend_from_slice(b"{\"type\":\"price\",");
        out.extend_from_slice(&self.0[1..]);
        out.pop();
        out.extend_from_slice(b",\"seq\":");
        decimal::integer(out, seq);
        out.push(b'}');
    }

    /// The text of the fields.
    pub fn text(&self) -> &[u8] {
        &self.0
    }
}

/// The fields of the current price of a market.
pub fn fields<'a>(cell: &'a MarketCell, reads: &Reads) -> PriceFields<'a> {
    let now = reads.clock.now();
    let first = cell.instrument(Outcome::First);
    let quoted = OUTCOMES.map(|outcome| Quoted::of(cell, outcome, reads));
    let marks = Marks { catalog: &reads.catalog, books: &reads.books };
    let prices = OUTCOMES.map(|outcome| {
        let own = quoted[outcome as usize].price().filter(|_| cell.resolution().is_none());
        own.or_else(|| marks.mark(cell.instrument(outcome))).map(scalar::Price)
    });
    let changed_at = quoted.iter().filter_map(|quoted| quoted.top.map(|(_, at)| at)).max();
    let updated_at = changed_at.or(cell.figures_at()).unwrap_or(cell.listed_at);
    let received_at =
        reads.books.quote_age(first, now).map(|age| Timestamp(reads.books.venue_now(now).since(Timestamp(age))));
    let outcomes = OUTCOMES.map(|outcome| quoted[outcome as usize].outcome(cell, outcome, prices[outcome as usize]));
    let token = |outcome| {
        let price = TokenPrice { label: cell.outcome(outcome), price: prices[outcome as usize] };
        (cell.token(outcome).into(), price)
    };
    let (last, phase) = (quoted[0].last, Phase::of(cell, now));
    let trade = last.and_then(|last| last.trade);
    let OutcomePrice { best_bid, best_ask, last_trade, .. } = outcomes[0];
    PriceFields {
        market_id: cell.listing.condition.as_str().into(),
        condition_id: cell.listing.condition.as_str().into(),
        emit_ts_ms: now.millis(),
        source: if changed_at.is_some() { "websocket" } else { "cache" },
        updated_at: Instant(updated_at),
        ws_updated_at: Instant(received_at.unwrap_or(updated_at)),
        outcomes: outcomes.into(),
        tokens: ByName(OUTCOMES.map(token).into()),
        volume: cell.figures().volume_total.map(Volume),
        buy: best_bid,
        sell: best_ask,
        best_bid,
        best_ask,
        last_trade,
        last_trade_side: trade.map(|trade| if trade.taker_buys { "BUY" } else { "SELL" }.into()),
        last_trade_size: trade.map(|trade| Quantity::uncut(trade.size)),
        active: phase.active,
        closed: phase.closed,
        stale: reads.books.stale(first, now),
    }
}

impl Quoted {
    fn of(cell: &MarketCell, outcome: Outcome, reads: &Reads) -> Quoted {
        let instrument = cell.instrument(outcome);
        let copied = TOP.with_borrow_mut(|depth| {
            reads.books.copy(instrument, 0, depth).ok().map(|()| (depth.top, depth.changed_at, depth.top.midpoint()))
        });
        Quoted {
            top: copied.map(|(top, at, _)| (top, at)),
            midpoint: copied.and_then(|(.., midpoint)| midpoint),
            last: reads.books.last_price(instrument),
        }
    }

    /// An outcome without depth has no best prices. They are never computed from the other outcome.
    fn outcome<'a>(&self, cell: &'a MarketCell, outcome: Outcome, price: Option<scalar::Price>) -> OutcomePrice<'a> {
        let top = self.top.map(|(top, _)| top);
        OutcomePrice {
            label: cell.outcome(outcome),
            price,
            token_id: cell.token(outcome).into(),
            best_bid: top.and_then(|top| top.bid).map(|bid| bid.price.into()),
            best_ask: top.and_then(|top| top.ask).map(|ask| ask.price.into()),
            last_trade: self.last.map(|last| last.price.into()),
            last_trade_at: self.last.and_then(|last| last.trade).map(|trade| Instant(trade.at)),
        }
    }

    /// Its own midpoint at any spread, else its last trade (gateway/docs/streams.md §2.2). Unlike a mark price, it does
    /// not use the complement.
    fn price(&self) -> Option<Cash> {
        self.midpoint.or_else(|| self.last.map(|last| Cash(i64::from(last.price.0) * 100)))
    }
}
