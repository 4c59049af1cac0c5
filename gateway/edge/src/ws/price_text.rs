//! The price frame (gateway/docs/streams.md §2.2). Its fields are encoded once for all sockets; each socket adds its
//! own.

use crate::api::account::valuation::Marks;
use crate::api::markets::quote::OUTCOMES;
use crate::api::markets::view::Phase;
use crate::reads::Reads;
use engine::amount::Cash;
use engine::book::{Depth, LastPrice, Top};
use engine::id::Outcome;
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use std::cell::RefCell;
use wire::decimal;
use wire::instant;
use wire::write::{Object, object};

thread_local! {
    /// A copy without levels.
    static TOP: RefCell<Depth> = RefCell::default();
}

/// The fields of a price frame except `type` and `seq`, without braces.
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
        let mut out = Vec::with_capacity(1_024);
        object(&mut out, |o| fields(o, cell, reads));
        out.pop();
        out.remove(0);
        Price(out)
    }

    /// The frame of the price channel. `seq` counts the frames of one socket.
    pub fn frame(&self, out: &mut Vec<u8>, seq: u64) {
        out.extend_from_slice(b"{\"type\":\"price\",");
        out.extend_from_slice(&self.0);
        out.extend_from_slice(b",\"seq\":");
        decimal::integer(out, seq);
        out.push(b'}');
    }

    /// The fields as an object.
    pub fn plain(&self, out: &mut Vec<u8>) {
        out.push(b'{');
        out.extend_from_slice(&self.0);
        out.push(b'}');
    }
}

/// `resolved`. A split has no winner.
pub fn resolved(out: &mut Vec<u8>, cell: &MarketCell, resolution: Resolution, now: Timestamp) {
    let winner = match resolution {
        Resolution::Winner(outcome) => Some(outcome),
        Resolution::Split => None,
    };
    object(out, |o| {
        o.word("type", "resolved");
        o.text("condition_id", &cell.listing.condition);
        o.text_or_null("winning_outcome", winner.map(|outcome| cell.outcome(outcome)));
        o.text_or_null("winning_token_id", winner.map(|outcome| cell.token(outcome)));
        o.integer("ts", now.millis());
    });
}

fn fields(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let now = reads.clock.now();
    let first = cell.instrument(Outcome::First);
    let quoted = OUTCOMES.map(|outcome| Quoted::of(cell, outcome, reads));
    let marks = Marks { catalog: &reads.catalog, books: &reads.books };
    let prices = OUTCOMES.map(|outcome| {
        let own = quoted[outcome as usize].price().filter(|_| cell.resolution().is_none());
        own.or_else(|| marks.mark(cell.instrument(outcome)))
    });
    let changed_at = quoted.iter().filter_map(|quoted| quoted.top.map(|(_, at)| at)).max();
    let updated_at = changed_at.or(cell.figures_at()).unwrap_or(cell.listed_at);
    let received_at =
        reads.books.quote_age(first, now).map(|age| Timestamp(reads.books.venue_now(now).since(Timestamp(age))));

    o.text("market_id", &cell.listing.condition);
    o.text("condition_id", &cell.listing.condition);
    o.integer("emit_ts_ms", now.millis());
    o.word("source", if changed_at.is_some() { "websocket" } else { "cache" });
    moment(o, "updated_at", updated_at);
    moment(o, "ws_updated_at", received_at.unwrap_or(updated_at));
    o.array("outcomes", OUTCOMES, |out, outcome| {
        let (quoted, price) = (&quoted[outcome as usize], prices[outcome as usize]);
        object(out, |o| {
            o.text("label", cell.outcome(outcome));
            o.or_null("price", price, Object::average);
            o.text("token_id", cell.token(outcome));
            // An outcome without depth has no such field. It is never computed from the other outcome.
            if let Some(bid) = quoted.top.and_then(|(top, _)| top.bid) {
                o.price("best_bid", bid.price);
            }
            if let Some(ask) = quoted.top.and_then(|(top, _)| top.ask) {
                o.price("best_ask", ask.price);
            }
            if let Some(last) = quoted.last {
                o.price("last_trade", last.price);
                if let Some(trade) = last.trade {
                    moment(o, "last_trade_at", trade.at);
                }
            }
        });
    });
    o.object("tokens", |o| {
        for outcome in OUTCOMES {
            o.object(cell.token(outcome), |o| {
                o.text("label", cell.outcome(outcome));
                o.or_null("price", prices[outcome as usize], Object::average);
            });
        }
    });
    o.vol_or_null("volume", cell.figures().volume_total);
    let Quoted { top, last, .. } = &quoted[0];
    let trade = last.and_then(|last| last.trade);
    let (bid, ask) = (top.and_then(|(top, _)| top.bid), top.and_then(|(top, _)| top.ask));
    for (bid_name, ask_name) in [("buy", "sell"), ("best_bid", "best_ask")] {
        o.or_null(bid_name, bid.map(|quote| quote.price), Object::price);
        o.or_null(ask_name, ask.map(|quote| quote.price), Object::price);
    }
    o.or_null("last_trade", last.map(|last| last.price), Object::price);
    o.word_or_null("last_trade_side", trade.map(|trade| if trade.taker_buys { "BUY" } else { "SELL" }));
    o.or_null("last_trade_size", trade.map(|trade| trade.size), crate::api::books::view::size);
    let phase = Phase::of(cell, now);
    o.boolean("active", phase.active);
    o.boolean("closed", phase.closed);
    o.boolean("stale", reads.books.stale(first, now));
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

    /// Its own midpoint at any spread, else its last trade (gateway/docs/streams.md §2.2). Unlike a mark price, it does
    /// not use the complement.
    fn price(&self) -> Option<Cash> {
        self.midpoint.or_else(|| self.last.map(|last| Cash(i64::from(last.price.0) * 100)))
    }
}

/// A time with milliseconds.
pub fn moment(o: &mut Object<'_>, name: &str, at: Timestamp) {
    let out = o.name(name);
    out.push(b'"');
    instant::ts_millis(out, at);
    out.push(b'"');
}
