//! Orders on the wire (gateway/docs/trading.md §2, §3, §5), made of the engine's view and the catalog's texts. The response
//! to a placement, a cancel and a lookup is written by hand; the rows of lists, refused entries and sweeps are records.

use super::records::{Cancelled, OrderRow, RefusedEntry};
use super::terms::Echo;
use super::words;
use crate::http::code::Code;
use crate::http::record::ByName;
use crate::http::scalar::{self, Digits};
use engine::amount::{Cash, Qty, average_half_up, exact_notional, notional_half_up};
use engine::id::InstrumentId;
use engine::market::catalog::{Catalog, MarketCell};
use engine::order::{CloseReason, Fill, Liquidity, Order, OrderType, PriceSource, Status};
use engine::time::Timestamp;
use engine::user::Position;
use engine::view::{CancelledOrders, OrderView, QueueView};
use wire::write::{Object, as_is, object, separate};
use wire::{decimal, instant, write};

/// One `OrderResponse`. `failure` is the code and message of a batch entry that was killed.
pub fn order(out: &mut Vec<u8>, view: &OrderView, catalog: &Catalog, failure: Option<(Code, &str)>) {
    object(out, |o| order_fields(o, view, catalog, failure));
}

impl<'a> OrderRow<'a> {
    /// One row of `GET /v1/orders`.
    pub fn new(view: &'a OrderView, catalog: &'a Catalog) -> OrderRow<'a> {
        let (order, texts) = (&view.order, Texts::of(catalog, view.order.terms.instrument));
        let terms = &order.terms;
        OrderRow {
            order_id: order.id.0,
            market_id: texts.market().into(),
            side: words::side(terms.side).into(),
            outcome: texts.outcome(),
            order_type: words::order_type(terms.order_type).into(),
            limit_price: terms.limit.into(),
            quantity: terms.quantity.into(),
            time_in_force: words::time_in_force(terms.time_in_force.normalised()).into(),
            status: words::status(order.status()).into(),
            client_order_id: terms.client_order_id(),
            created_at: scalar::Timestamp(order.created_at),
            filled_at: order.filled_at().map(scalar::Timestamp),
            fill_price: filled_price(view).map(scalar::Price),
            cancelled_at: cancelled_at(order).map(scalar::Timestamp),
            cancelled_reason: cancelled_reason(order).map(Into::into),
            hold_reason: hold_reason(order).map(Into::into),
            filled_quantity: order.filled.into(),
            token_id: texts.token().into(),
            wallet_id: terms.wallet.0,
            expiration: terms.expiration().map(Timestamp::secs),
            post_only: terms.post_only,
            fill_model: terms.fill_model().name().into(),
            queue_ahead: view.queue.map(|queue| queue.ahead.into()),
            queue_total: view.queue.and_then(|queue| queue.total).map(Into::into),
            queue_confidence: view.queue.map(confidence),
        }
    }
}

/// The confidence in a place, as text.
pub fn confidence(queue: QueueView) -> String {
    format!("{}.{:02}", queue.confidence / 100, queue.confidence % 100)
}

/// One `OrderDetail`: an order with its fills.
pub fn detail(out: &mut Vec<u8>, view: &OrderView, catalog: &Catalog) {
    let order = &view.order;
    object(out, |o| {
        order_fields(o, view, catalog, None);
        o.price("limit_price", order.terms.limit);
        o.or_null("fill_price", filled_price(view), Object::average);
        o.ts_or_null("cancelled_at", cancelled_at(order));
        o.integer_or_null("expiration", order.terms.expiration().map(Timestamp::secs));
        o.boolean("post_only", order.terms.post_only);
        o.array("fills", &view.fills[..], |out, row| fill(out, order, row));
        o.word("fill_model", order.terms.fill_model().name());
        o.or_null("queue_ahead", view.queue.map(|queue| queue.ahead), Object::qty);
        o.or_null("queue_total", view.queue.and_then(|queue| queue.total), Object::qty);
        o.text_or_null("queue_confidence", view.queue.map(confidence).as_deref());
    });
}

impl<'a> RefusedEntry<'a> {
    /// A batch entry that left no order: REJECTED, or ERROR where the server is at fault.
    pub fn new(echo: &'a Echo<'_>, code: Code, message: &'a str, catalog: &'a Catalog) -> RefusedEntry<'a> {
        let texts = echo.instrument.map(|instrument| Texts::of(catalog, instrument));
        let known = texts.as_ref();
        let quantity = echo.quantity.as_deref().unwrap_or("0");
        RefusedEntry {
            order_id: 0,
            status: if code.status().is_server_error() { "ERROR" } else { "REJECTED" }.into(),
            order_type: echo.order_type.map(|order_type| words::order_type(order_type).into()),
            side: echo.side.map(|side| words::side(side).into()),
            outcome: known.map(Texts::outcome).or(echo.outcome.as_deref()),
            price: "0".into(),
            quantity,
            notional: "0".into(),
            fee: "0".into(),
            filled_at: (),
            cancelled_reason: (),
            fill_source: (),
            price_source: (),
            slippage_bps: (),
            quote_age_ms: (),
            spread_bps: (),
            impact_bps: (),
            book_walk_levels: (),
            account_balance: (),
            position: (),
            client_order_id: echo.client_order_id.as_deref(),
            error: code.text(),
            error_message: message,
            amount_interpreted_as: (),
            is_replay: false,
            warnings: Vec::new(),
            requested_quantity: quantity,
            filled_quantity: Qty::ZERO.into(),
            remaining_quantity: Qty::ZERO.into(),
            token_id: known.map(Texts::token),
            market_id: known.map(Texts::market).or(echo.market_id.as_deref()),
            time_in_force: echo.time_in_force.map(|tif| words::time_in_force(tif.normalised()).into()),
            requested_time_in_force: echo.time_in_force.map(|tif| words::time_in_force(tif).into()),
            wallet_id: (),
            created_at: (),
            hold_reason: (),
            fee_rate_bps: (),
            liquidity: (),
        }
    }
}

/// The fields of an `OrderResponse`, the first of its object. This is the answer to every placement: the constant text
/// between two values is one piece.
fn order_fields(o: &mut Object<'_>, view: &OrderView, catalog: &Catalog, failure: Option<(Code, &str)>) {
    let order = &view.order;
    let terms = &order.terms;
    let texts = Texts::of(catalog, terms.instrument);
    let filled = !order.filled.is_zero();
    let out = o.out();
    as_is(out, r#""order_id":"#);
    decimal::integer(out, order.id.0);
    as_is(out, r#","status":""#);
    as_is(out, words::status(order.status()));
    as_is(out, r#"","order_type":""#);
    as_is(out, words::order_type(terms.order_type));
    as_is(out, r#"","side":""#);
    as_is(out, words::side(terms.side));
    as_is(out, r#"","outcome":"#);
    write::string(out, texts.outcome());
    as_is(out, r#","price":""#);
    match filled_price(view) {
        Some(price) => decimal::money(out, price),
        None => decimal::price(out, terms.limit),
    }
    as_is(out, r#"","quantity":""#);
    decimal::qty(out, if filled { order.filled } else { terms.quantity });
    as_is(out, r#"","notional":""#);
    decimal::money(out, shown_notional(order));
    as_is(out, r#"","fee":""#);
    decimal::money(out, order.fee);
    if view.fills.is_empty() && order.closed().is_none() && !filled {
        as_is(out, UNTOUCHED);
    } else {
        as_is(out, "\"");
        o.ts_or_null("filled_at", order.filled_at());
        o.word_or_null("cancelled_reason", cancelled_reason(order));
        quality(o, view);
        as_is(o.out(), r#","account_balance":""#);
    }
    let out = o.out();
    decimal::money(out, view.available);
    as_is(out, "\"");
    o.or_null("position", view.position.as_ref(), |o, name, held| o.object(name, |o| position(o, held, &texts)));
    o.text_or_null("client_order_id", terms.client_order_id());
    match (failure, terms.amount()) {
        (None, None) => as_is(o.out(), r#","error":null,"error_message":null,"amount_interpreted_as":null"#),
        (failure, amount) => {
            o.word_or_null("error", failure.map(|(code, _)| code.text()));
            o.text_or_null("error_message", failure.map(|(_, message)| message));
            o.word_or_null("amount_interpreted_as", amount.map(|_| "usd"));
        }
    }
    let out = o.out();
    as_is(out, if view.is_replay { r#","is_replay":true,"warnings":"# } else { r#","is_replay":false,"warnings":"# });
    warnings(out, view);
    as_is(out, r#","requested_quantity":""#);
    decimal::qty(out, terms.quantity);
    as_is(out, r#"","filled_quantity":""#);
    decimal::qty(out, order.filled);
    as_is(out, r#"","remaining_quantity":""#);
    decimal::qty(out, if order.is_open() { order.unfilled() } else { Qty::ZERO });
    as_is(out, r#"","token_id":"#);
    write::string(out, texts.token());
    as_is(out, r#","market_id":"#);
    write::string(out, texts.market());
    as_is(out, r#","time_in_force":""#);
    as_is(out, words::time_in_force(terms.time_in_force.normalised()));
    as_is(out, r#"","requested_time_in_force":""#);
    as_is(out, words::time_in_force(terms.time_in_force));
    as_is(out, r#"","wallet_id":"#);
    decimal::integer(out, terms.wallet.0);
    as_is(out, r#","created_at":""#);
    instant::ts(out, order.created_at);
    as_is(out, "\"");
    match (hold_reason(order), &view.fills[..]) {
        (None, []) => as_is(out, r#","hold_reason":null,"fee_rate_bps":null,"liquidity":null"#),
        (reason, fills) => {
            o.word_or_null("hold_reason", reason);
            // Makers mostly pay nothing, so the rate that was paid is the highest of the fills.
            o.integer_or_null("fee_rate_bps", fills.iter().map(|fill| u64::from(fill.charged_rate().0)).max());
            o.word_or_null("liquidity", liquidity(fills));
        }
    }
}

/// The text of [`order_fields`] between `fee` and the balance for an order that rests without a fill.
const UNTOUCHED: &str = concat!(
    r#"","filled_at":null,"cancelled_reason":null,"fill_source":null,"price_source":null,"slippage_bps":null,"#,
    r#""quote_age_ms":null,"spread_bps":null,"impact_bps":null,"book_walk_levels":null,"account_balance":""#
);

/// Source and quality of the fills (engine/docs/execution.md §2, §8). A replay does not repeat the walk.
fn quality(o: &mut Object<'_>, view: &OrderView) {
    let (terms, last) = (&view.order.terms, view.fills.last());
    let quality = terms.quality();
    let is_market = terms.order_type == OrderType::Market;
    let walk = last.filter(|_| !view.is_replay);
    let at_placement = last.map(|fill| if synchronous(fill, &view.order) { "synchronous" } else { "matching_engine" });
    o.word_or_null("fill_source", at_placement);
    o.word_or_null("price_source", last.map(|fill| words::price_source(fill.source)));
    o.integer_or_null("slippage_bps", figure(quality.slippage_bps.filter(|_| is_market && last.is_some())));
    o.integer_or_null("quote_age_ms", figure(last.and_then(Fill::quote_age_ms)));
    o.integer_or_null("spread_bps", figure(quality.spread_bps.filter(|_| walk.is_some())));
    o.integer_or_null("impact_bps", figure(quality.impact_bps.filter(|_| walk.is_some())));
    o.integer_or_null("book_walk_levels", quality.book_walk_levels.filter(|_| walk.is_some()).map(u64::from));
}

fn figure(figure: Option<u32>) -> Option<u64> {
    figure.map(u64::from)
}

/// A fill of the placement itself, not of a later cycle.
fn synchronous(fill: &Fill, order: &Order) -> bool {
    fill.at == order.created_at && fill.source != PriceSource::MatchingEngine
}

/// The notional of the fills; for a pending order without a fill, that of its quantity at its limit.
fn shown_notional(order: &Order) -> Cash {
    if order.filled.is_zero() && order.status() == Status::Pending {
        notional_half_up(exact_notional(order.terms.limit, order.terms.quantity))
    } else {
        order.notional
    }
}

fn cancelled_at(order: &Order) -> Option<Timestamp> {
    let closed = order.closed().filter(|(reason, _)| words::cancelled_reason(*reason).is_some());
    closed.map(|(_, at)| at)
}

fn cancelled_reason(order: &Order) -> Option<&'static str> {
    words::cancelled_reason(order.closed()?.0)
}

fn hold_reason(order: &Order) -> Option<&'static str> {
    (order.held && order.is_open()).then_some("venue_outage")
}

fn liquidity(fills: &[Fill]) -> Option<&'static str> {
    let first = fills.first()?.liquidity;
    let mixed = fills.iter().any(|fill: &Fill| fill.liquidity != first);
    Some(if mixed { "MIXED" } else { words::liquidity(first) })
}

fn position(o: &mut Object<'_>, held: &Position, texts: &Texts<'_>) {
    o.text("market_id", texts.market());
    o.text("outcome", texts.outcome());
    o.qty("quantity", held.qty);
    o.average("avg_entry_price", held.average().unwrap_or_default());
    o.word("status", if held.is_open() { "OPEN" } else { "CLOSED" });
}

/// The price of a fill per share, 10⁻⁶ USD, in every record of it. A maker fill at the order's limit has exactly that price;
/// its notional is rounded to 10⁻⁶ USD, so the quotient may differ from the limit. Else the average of the walk.
pub fn fill_price(order: &Order, fill: &Fill) -> Cash {
    let limit = order.terms.limit;
    let at_limit = notional_half_up(exact_notional(limit, fill.qty));
    if fill.liquidity == Liquidity::Maker && fill.notional.0.abs_diff(at_limit.0) <= 1 {
        return Cash(i64::from(limit.0) * 100);
    }
    average_half_up(fill.notional, fill.qty).unwrap_or_default()
}

/// The price of the fills so far: that of every fill if all have one, else their average. `None` before the first fill.
fn filled_price(view: &OrderView) -> Option<Cash> {
    let order = &view.order;
    let mut prices = view.fills.iter().map(|fill| fill_price(order, fill));
    let average = || average_half_up(order.notional, order.filled);
    match prices.next() {
        Some(first) if prices.all(|price| price == first) => Some(first),
        _ => average(),
    }
}

fn fill(out: &mut Vec<u8>, order: &Order, fill: &Fill) {
    object(out, |o| {
        o.integer("trade_id", fill.id.0);
        o.average("price", fill_price(order, fill));
        o.qty("quantity", fill.qty);
        o.money("notional", fill.notional);
        o.money("fee", fill.fee);
        o.integer("fee_rate_bps", fill.charged_rate().0.into());
        o.word("liquidity", words::liquidity(fill.liquidity));
        o.ts("filled_at", fill.at);
        o.word("price_source", words::price_source(fill.source));
        o.ts_or_null("venue_time", fill.venue_at());
        o.word("fee_source", fill.fee_source().name());
    });
}

/// The warnings (gateway/docs/trading.md §2), in the order of that list; `[]` when there are none.
fn warnings(out: &mut Vec<u8>, view: &OrderView) {
    let terms = &view.order.terms;
    let quality = terms.quality();
    out.push(b'[');
    if let Some(filled) = partly_filled_at_placement(view) {
        warning(out, "partial_fill:filled=", |out| {
            decimal::qty(out, filled);
            out.extend_from_slice(b",requested=");
            decimal::qty(out, terms.quantity);
        });
    }
    if let Some(bps) = quality.slippage_bps.filter(|_| quality.high_slippage) {
        warning(out, "high_slippage_bps_", |out| decimal::integer(out, bps.into()));
    }
    if let Some(sent) = terms.rounded_from() {
        warning(out, "quantity_rounded:requested=", |out| {
            out.extend_from_slice(sent.as_bytes());
            out.extend_from_slice(b",used=");
            decimal::qty(out, terms.quantity);
        });
    }
    if let Some(age_ms) = quality.quote_age_ms.filter(|_| quality.stale_quote) {
        warning(out, "stale_quote:age_ms=", |out| decimal::integer(out, age_ms.into()));
    }
    out.push(b']');
}

/// One warning. Its words and numbers need no escapes.
fn warning(out: &mut Vec<u8>, words: &str, figures: impl FnOnce(&mut Vec<u8>)) {
    separate(out);
    out.push(b'"');
    out.extend_from_slice(words.as_bytes());
    figures(out);
    out.push(b'"');
}

/// The quantity that the placement filled if that was a part of the order. An order by amount that spent its budget is
/// whole, however many shares it bought.
fn partly_filled_at_placement(view: &OrderView) -> Option<Qty> {
    let order = &view.order;
    let filled: Qty = view.fills.iter().filter(|fill| synchronous(fill, order)).map(|fill| fill.qty).sum();
    let dropped = order.closed().is_some_and(|(reason, _)| reason == CloseReason::FakRest);
    let part = dropped || (order.terms.amount().is_none() && filled < order.terms.quantity);
    (part && !filled.is_zero()).then_some(filled)
}

/// The wire's texts of an instrument.
pub struct Texts<'a> {
    cell: Option<&'a MarketCell>,
    instrument: InstrumentId,
}

impl<'a> Texts<'a> {
    pub fn of(catalog: &'a Catalog, instrument: InstrumentId) -> Texts<'a> {
        Texts { cell: catalog.of_instrument(instrument), instrument }
    }

    /// Condition id. A record that names an instrument follows its listing, so the market is known.
    pub fn market(&self) -> &'a str {
        self.cell.map_or("", |cell| &cell.listing.condition)
    }

    pub fn outcome(&self) -> &'a str {
        self.cell.map_or("", |cell| cell.outcome(self.instrument.outcome()))
    }

    pub fn token(&self) -> &'a str {
        self.cell.map_or("", |cell| cell.token(self.instrument.outcome()))
    }

    /// `None` where the venue gave none.
    pub fn question(&self) -> Option<&'a str> {
        self.cell.map(|cell| cell.listing.question.as_str()).filter(|question| !question.is_empty())
    }
}

impl Cancelled {
    /// The answer of a sweep: ids, and those that were not open with their code.
    pub fn new(swept: &CancelledOrders) -> Cancelled {
        let code = Code::OrderNotCancellable.text();
        Cancelled {
            canceled: swept.cancelled.iter().map(|id| Digits(id.0)).collect(),
            not_canceled: ByName(swept.not_cancellable.iter().map(|id| (Digits(id.0), code)).collect()),
        }
    }
}

#[cfg(test)]
mod tests;
