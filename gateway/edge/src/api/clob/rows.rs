//! Venue-shaped rows of orders and trades, in both dialects (venue.md §0.2, §7.2, §7.4).

use super::ids::{self, OrderIds};
use super::words;
use crate::api::orders::view::{Texts, fill_price};
use crate::api::orders::words as native;
use crate::http::call::Call;
use crate::http::dialect::Dialect;
use engine::market::catalog::Catalog;
use engine::order::{Fill, Liquidity, Order, Side};
use engine::time::Timestamp;
use engine::view::{FillView, OrderView};
use wire::decimal;
use wire::write::{Object, object};

/// What all rows of one answer share.
pub struct Rows<'a> {
    catalog: &'a Catalog,
    dialect: Dialect,
    ids: OrderIds,
    /// Strict rows only.
    owner: Option<String>,
    address: Option<String>,
    /// Strict trades say `CONFIRMED`.
    confirmed: bool,
}

impl<'a> Rows<'a> {
    /// Rows for the caller.
    pub fn of(call: &'a Call) -> Rows<'a> {
        let (app, dialect) = (call.app(), call.dialect());
        Rows {
            catalog: &app.reads.catalog,
            dialect,
            ids: OrderIds::of(call),
            owner: dialect.is_strict().then(|| ids::owner(call)),
            address: dialect.is_strict().then(|| ids::address(call.caller().user)),
            confirmed: dialect.is_strict() && app.front.settings.compat.confirmed_trades,
        }
    }

    /// One order with its newest trades, up to this count.
    pub fn order(&self, out: &mut Vec<u8>, view: &OrderView, trades_max: usize) {
        let order = &view.order;
        let terms = &order.terms;
        let texts = Texts::of(self.catalog, terms.instrument);
        object(out, |o| {
            placement(o, &self.ids, order, &texts);
            o.word("status", words::status(order, self.dialect));
            self.account(o);
            self.secs(o, "expiration", terms.expiration().map_or(0, Timestamp::secs));
            o.integer("created_at", order.created_at.secs());
            let trades = &view.fills[view.fills.len().saturating_sub(trades_max)..];
            o.array("associate_trades", trades, |out, fill| {
                out.push(b'"');
                decimal::integer(out, fill.id.0);
                out.push(b'"');
            });
            if !self.dialect.is_strict() {
                for name in ["maker_orders", "transaction_hash", "trader_side", "fee_rate_bps"] {
                    o.null(name);
                }
            }
        });
    }

    /// One fill.
    pub fn trade(&self, out: &mut Vec<u8>, view: &FillView) {
        let fill = &view.fill;
        let texts = Texts::of(self.catalog, view.order.terms.instrument);
        let strict = self.dialect.is_strict();
        object(out, |o| {
            execution(o, &self.ids, fill, &view.order, &texts, self.dialect);
            quoted_if(o, "fee_rate_bps", rate(fill), strict);
            o.word("status", if self.confirmed { "CONFIRMED" } else { "MATCHED" });
            self.secs(o, "match_time", fill.at.secs());
            self.secs(o, "last_update", fill.at.secs());
            o.integer("bucket_index", 0);
            self.account(o);
            match strict {
                true => o.text("transaction_hash", &ids::paper_transaction_hash(&fill.id.0.to_string())),
                false => o.null("transaction_hash"),
            }
            o.word_or_null("trader_side", strict.then(|| native::liquidity(fill.liquidity)));
            match (&self.owner, &self.address) {
                (Some(owner), Some(address)) => maker_orders(o, &self.ids, fill, &view.order, &texts, (owner, address)),
                _ => o.name("maker_orders").extend_from_slice(b"[]"),
            }
            o.money("fee", fill.fee);
            o.ts_or_null("venue_time", fill.venue_at());
        });
    }

    fn account(&self, o: &mut Object<'_>) {
        o.text_or_null("owner", self.owner.as_deref());
        o.text_or_null("maker_address", self.address.as_deref());
    }

    /// Unix seconds, as the dialect writes them.
    fn secs(&self, o: &mut Object<'_>, name: &str, secs: u64) {
        quoted_if(o, name, secs, self.dialect.is_strict());
    }
}

/// What an order is and what it came to, wherever it is told of.
pub fn placement(o: &mut Object<'_>, ids: &OrderIds, order: &Order, texts: &Texts<'_>) {
    let terms = &order.terms;
    order_id(o, "id", ids, order);
    o.text("market", texts.market());
    o.text("asset_id", texts.token());
    o.word("side", native::side(terms.side));
    o.qty("original_size", terms.quantity);
    o.qty("size_matched", order.filled);
    o.price("price", terms.limit);
    o.text("outcome", texts.outcome());
    o.word("order_type", words::order_type(terms.time_in_force));
}

/// What a fill is, wherever it is told of.
pub fn execution(o: &mut Object<'_>, ids: &OrderIds, fill: &Fill, order: &Order, texts: &Texts<'_>, dialect: Dialect) {
    quoted(o, "id", fill.id.0);
    order_id(o, "taker_order_id", ids, order);
    o.text("market", texts.market());
    o.text("asset_id", texts.token());
    o.word("side", native::side(trade_side(fill, order, dialect)));
    o.qty("size", fill.qty);
    o.average("price", fill_price(order, fill));
    o.text("outcome", texts.outcome());
}

/// The side that a trade shows: the own order's, but in the strict dialect the taker's, as at the venue. Its clients take
/// the side of a maker's fill for that of the other party, and its own order from `maker_orders`.
fn trade_side(fill: &Fill, order: &Order, dialect: Dialect) -> Side {
    match (order.terms.side, fill.liquidity) {
        (Side::Buy, Liquidity::Maker) if dialect.is_strict() => Side::Sell,
        (Side::Sell, Liquidity::Maker) if dialect.is_strict() => Side::Buy,
        (side, _) => side,
    }
}

/// The `maker_orders` of a trade that describes its maker: the own order, as the venue tells of one; empty for a taker.
/// `owner` and `address` are those of the trade.
pub fn maker_orders(
    o: &mut Object<'_>,
    ids: &OrderIds,
    fill: &Fill,
    order: &Order,
    texts: &Texts<'_>,
    (owner, address): (&str, &str),
) {
    let maker = (fill.liquidity == Liquidity::Maker).then_some(());
    o.array("maker_orders", maker, |out, ()| {
        object(out, |o| {
            order_id(o, "order_id", ids, order);
            o.text("owner", owner);
            o.text("maker_address", address);
            o.qty("matched_amount", fill.qty);
            o.average("price", fill_price(order, fill));
            quoted(o, "fee_rate_bps", rate(fill));
            o.text("asset_id", texts.token());
            o.text("outcome", texts.outcome());
            o.word("side", native::side(order.terms.side));
        });
    });
}

/// The rate that a fill paid, in basis points: makers pay nothing.
pub fn rate(fill: &Fill) -> u64 {
    if fill.liquidity == Liquidity::Maker { 0 } else { fill.fee_rate.0.into() }
}

/// An order's id in the venue's form.
pub fn order_id(o: &mut Object<'_>, name: &str, ids: &OrderIds, order: &Order) {
    let out = o.name(name);
    out.push(b'"');
    ids.push(out, order.id, order.terms.order_hash());
    out.push(b'"');
}

/// A number as a text.
pub fn quoted(o: &mut Object<'_>, name: &str, value: u64) {
    let out = o.name(name);
    out.push(b'"');
    decimal::integer(out, value);
    out.push(b'"');
}

fn quoted_if(o: &mut Object<'_>, name: &str, value: u64, in_quotes: bool) {
    if in_quotes { quoted(o, name, value) } else { o.integer(name, value) }
}
