//! A book on the wire (market-data.md §8, venue.md §1.1): the token's own book as the venue shows it, best level last.

use super::sha1::sha1;
use crate::app::App;
use crate::wire::decimal;
use crate::wire::write::{Object, object};
use engine::amount::{Price, Qty};
use engine::book::{Depth, LastTrade, Level, Unavailable};
use engine::id::InstrumentId;
use engine::market::catalog::MarketCell;
use engine::time::Timestamp;
use std::cell::RefCell;

thread_local! {
    /// The copy that this thread's answers are made of, kept so that a read allocates nothing for it.
    static DEPTH: RefCell<Depth> = RefCell::default();
}

/// What of a book is asked for.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    pub cell: &'a MarketCell,
    pub instrument: InstrumentId,
    /// `None`: all levels.
    pub levels_max: Option<usize>,
}

/// Writes one book.
///
/// # Errors
/// When no message about the book has arrived, when its market is resolved, or when the feed was writing at every try.
/// Nothing is written then.
pub fn book(out: &mut Vec<u8>, asked: Asked<'_>, app: &App, now: Timestamp) -> Result<(), Unavailable> {
    if asked.cell.resolution().is_some() {
        return Err(Unavailable::Unknown);
    }
    DEPTH.with_borrow_mut(|depth| {
        app.books.copy(asked.instrument, asked.levels_max.unwrap_or(usize::MAX), depth)?;
        let stale = app.books.stale(asked.instrument, now);
        let trade = app.books.last_trade(asked.instrument);
        write(out, asked, depth, trade, stale);
        Ok(())
    })
}

fn write(out: &mut Vec<u8>, asked: Asked<'_>, depth: &Depth, trade: Option<LastTrade>, stale: bool) {
    let Asked { cell, instrument, levels_max } = asked;
    let token = cell.token(instrument.outcome());
    let whole = levels_max.is_none_or(|max| depth.bids.len() < max && depth.asks.len() < max);
    object(out, |o| {
        o.text("token_id", token);
        o.text("asset_id", token);
        o.text("market", &cell.listing.condition);
        match depth.hash.as_ref().filter(|_| whole) {
            Some(hash) => o.text("hash", hash.as_str()),
            None => hash_of(o, asked, depth, trade),
        }
        sides(o, depth);
        terms(o, cell, trade);
        o.or_null("mid", depth.top.midpoint(), Object::average);
        o.or_null("spread", spread(depth), Object::price);
        timestamp(o, depth);
        o.boolean("stale", stale);
        o.word("source", "clob");
    });
}

/// `"hash"`: SHA-1 over the venue's ten fields in the venue's order, with an empty hash (venue.md §1.1).
fn hash_of(o: &mut Object<'_>, asked: Asked<'_>, depth: &Depth, trade: Option<LastTrade>) {
    let mut text = Vec::with_capacity(512 + 40 * (depth.bids.len() + depth.asks.len()));
    object(&mut text, |o| {
        o.text("market", &asked.cell.listing.condition);
        o.text("asset_id", asked.cell.token(asked.instrument.outcome()));
        timestamp(o, depth);
        o.word("hash", "");
        sides(o, depth);
        terms(o, asked.cell, trade);
    });
    let out = o.name("hash");
    out.push(b'"');
    for byte in sha1(&text) {
        out.extend_from_slice(&[
            b"0123456789abcdef"[usize::from(byte >> 4)],
            b"0123456789abcdef"[usize::from(byte & 15)],
        ]);
    }
    out.push(b'"');
}

fn sides(o: &mut Object<'_>, depth: &Depth) {
    o.array("bids", depth.bids.iter().rev(), level);
    o.array("asks", depth.asks.iter().rev(), level);
}

fn level(out: &mut Vec<u8>, level: &Level) {
    out.extend_from_slice(b"{\"price\":\"");
    decimal::price(out, level.price);
    out.extend_from_slice(b"\",\"size\":\"");
    decimal::size(out, level.size);
    out.extend_from_slice(b"\"}");
}

fn terms(o: &mut Object<'_>, cell: &MarketCell, trade: Option<LastTrade>) {
    size(o, "min_order_size", min_order_size(cell));
    tick(o, "tick_size", cell);
    o.boolean("neg_risk", cell.listing.neg_risk);
    match trade {
        Some(trade) => o.price("last_trade_price", trade.price),
        None => o.word("last_trade_price", ""),
    }
}

/// The venue's own minimum where it names one; it decides nothing (execution.md §13).
pub fn min_order_size(cell: &MarketCell) -> Qty {
    cell.listing.min_order_size.unwrap_or_else(|| cell.tick().min_order_size())
}

/// A size as a text, whole.
pub fn size(o: &mut Object<'_>, name: &str, size: Qty) {
    quoted(o, name, |out| decimal::size(out, size));
}

/// The tick of the moment as a text.
pub fn tick(o: &mut Object<'_>, name: &str, cell: &MarketCell) {
    quoted(o, name, |out| decimal::tick(out, cell.tick()));
}

fn timestamp(o: &mut Object<'_>, depth: &Depth) {
    quoted(o, "timestamp", |out| decimal::integer(out, depth.changed_at.millis()));
}

fn quoted(o: &mut Object<'_>, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
    let out = o.name(name);
    out.push(b'"');
    write(out);
    out.push(b'"');
}

fn spread(depth: &Depth) -> Option<Price> {
    let (bid, ask) = (depth.top.bid?.price, depth.top.ask?.price);
    Some(Price(ask.0.saturating_sub(bid.0)))
}
