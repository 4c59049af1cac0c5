//! Placement in the venue's shapes: one signed order, a batch of them, one flat order (venue.md §5).

use super::flat::FlatOrder;
use super::ids::OrderIds;
use super::rows;
use super::signed::{SignedOrder, SignedRequest};
use super::words::{self, OrderEcho};
use crate::api::orders::terms::Sender;
use crate::api::orders::words as native;
use crate::api::refuse::{rejected, unexpected};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, BatchEntry, Command, Placement};
use engine::order::{EntryRoute, Order, Side};
use engine::reject::Reject;
use engine::time::Timestamp;
use engine::view::OrderView;
use hyper::header::HeaderName;
use wire::decimal;
use wire::value::Value;
use wire::write::{Object, array, object};

const SIGNED: &str = "POST /v1/order";
const BATCH: &str = "POST /v1/orders";
const FLAT: &str = "POST /v1/clob/order";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// One answer, or one entry of a batch.
const ANSWER_BYTES: usize = 320;

/// `POST /v1/order`.
pub async fn signed(call: Call) -> Outcome {
    let body = body(&call)?;
    let read = SignedOrder::read(&body, &sender(&call, SIGNED, EntryRoute::Venue));
    let SignedOrder { placement, said } = read.in_dialect(call.dialect(), &call.reads().catalog);
    match call.ask(Command::Place(Box::new(placement))).await? {
        Answer::Order(view) => {
            let mut out = Vec::with_capacity(ANSWER_BYTES);
            accepted(&mut out, &view, &OrderIds::of(&call), call.front().settings.compat.trade_ids);
            Ok(Reply::json(out))
        }
        other => Err(refused(&other, said.asked(SIGNED), said.fault, call.now)),
    }
}

/// `POST /v1/orders` with a JSON array: entries in order, each with its own fate; 200 whatever they do.
pub async fn batch(call: &Call, orders: &[Value<'_>]) -> Outcome {
    let front = call.front();
    let most = front.settings.limits.tier(call.caller().tier).max_batch_size as usize;
    if orders.is_empty() {
        return Err(Refusal::saying(Code::InvalidBody, "The list has no orders."));
    }
    if orders.len() > most {
        let message = format!("{} orders were sent; the tier allows {most} in one batch.", orders.len());
        return Err(Refusal::saying(Code::BatchLimitExceeded, message));
    }
    // A header names one request, not its entries.
    let sender = Sender { header_id: None, ..sender(call, BATCH, EntryRoute::Venue) };
    let (placements, said): (Vec<Placement>, Vec<SignedRequest<'_, '_>>) = orders
        .iter()
        .map(|order| SignedOrder::read(order, &sender).in_dialect(call.dialect(), sender.catalog))
        .map(|SignedOrder { placement, said }| (placement, said))
        .unzip();
    match call.ask(Command::PlaceBatch(placements)).await? {
        Answer::Batch(entries) if entries.len() == said.len() => {
            let ids = OrderIds::of(call);
            let mut out = Vec::with_capacity(2 + entries.len() * ANSWER_BYTES);
            array(&mut out, entries.iter().zip(said), |out, (entry, said)| match entry {
                BatchEntry::Placed(view) => accepted(out, view, &ids, front.settings.compat.trade_ids),
                BatchEntry::Killed { reject, .. } | BatchEntry::Refused(reject) => {
                    let asked = said.asked(BATCH);
                    let refusal = match (reject, said.fault) {
                        (Reject::InvalidTerms, Some(fault)) => fault,
                        _ => words::said(rejected(reject, call.now), Some(reject), &asked),
                    };
                    failed(out, &refusal, call.dialect());
                }
            });
            Ok(Reply::json(out))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// `POST /v1/clob/order`.
pub async fn flat(call: Call) -> Outcome {
    let body = body(&call)?;
    let FlatOrder { placement, fault, asked } = FlatOrder::read(&body, &sender(&call, FLAT, EntryRoute::Clob));
    match call.ask(Command::Place(Box::new(placement))).await? {
        Answer::Order(view) => {
            let mut out = Vec::with_capacity(ANSWER_BYTES);
            accepted_flat(&mut out, &view.order, &OrderIds::of(&call));
            Ok(Reply::json(out))
        }
        other => Err(refused(&other, asked, fault, call.now)),
    }
}

/// The body of a placement. One that is JSON and no order is told so by the shard's answer, after replay and cap.
fn body(call: &Call) -> Result<Value<'_>, Refusal> {
    call.json()?.ok_or_else(|| Refusal::saying(Code::InvalidBody, "The body is empty."))
}

fn sender<'a>(call: &'a Call, endpoint: &'static str, route: EntryRoute) -> Sender<'a> {
    let reads = call.reads();
    Sender {
        key: call.key(),
        tier: call.caller().tier,
        route,
        endpoint,
        header_id: call.headers.get(IDEMPOTENCY_KEY).map(|id| id.as_bytes()),
        catalog: &reads.catalog,
        max_shares: reads.rules.max_shares_per_order,
    }
}

/// Why an order was not taken, in the venue's words.
fn refused(answer: &Answer, asked: OrderEcho, fault: Option<Refusal>, now: Timestamp) -> Refusal {
    match (answer, fault) {
        (Answer::Refused(Reject::InvalidTerms), Some(fault)) => fault,
        (Answer::Refused(reject) | Answer::Killed { reject, .. }, _) => {
            words::said(unexpected(answer, now), Some(reject), &asked)
        }
        (answer, _) => unexpected(answer, now),
    }
}

/// `{"success":true,…}` (venue.md §5.3).
fn accepted(out: &mut Vec<u8>, view: &OrderView, ids: &OrderIds, names_trades: bool) {
    let order = &view.order;
    object(out, |o| {
        o.boolean("success", true);
        o.word("errorMsg", "");
        rows::order_id(o, "orderID", ids, order);
        o.word("status", words::placed(order));
        matched(o, order);
        o.name("transactionsHashes").extend_from_slice(b"[]");
        let trades = if names_trades { &view.fills[..] } else { &[] };
        o.array("tradeIDs", trades, |out, fill| {
            out.push(b'"');
            decimal::integer(out, fill.id.0);
            out.push(b'"');
        });
    });
}

/// The flat order's answer (venue.md §5.6).
fn accepted_flat(out: &mut Vec<u8>, order: &Order, ids: &OrderIds) {
    object(out, |o| {
        o.boolean("success", true);
        rows::order_id(o, "orderID", ids, order);
        o.word("status", words::placed(order));
        o.price("price", order.terms.limit);
        o.qty("size", order.terms.quantity);
        o.word("side", native::side(order.terms.side));
        o.word("transactID", "");
        o.word("errorMsg", "");
        matched(o, order);
    });
}

/// An entry of a batch that was not taken, or was killed (venue.md §5.5).
fn failed(out: &mut Vec<u8>, refusal: &Refusal, dialect: Dialect) {
    object(out, |o| {
        o.boolean("success", false);
        o.text("errorMsg", refusal.message());
        o.word("orderID", "");
        o.word("status", "unmatched");
        o.word("makingAmount", "0");
        o.word("takingAmount", "0");
        o.name("transactionsHashes").extend_from_slice(b"[]");
        o.name("tradeIDs").extend_from_slice(b"[]");
        match dialect {
            Dialect::Plain => o.word("error", refusal.code().text()),
            Dialect::Strict => {
                o.text("error", refusal.message());
                o.text("message", refusal.message());
                o.word("code", refusal.code().text());
            }
        }
    });
}

/// What was given and taken so far, fees apart: USD and shares of a BUY, shares and USD of a SELL.
fn matched(o: &mut Object<'_>, order: &Order) {
    // Fills are never negative.
    let (usd, shares) = (order.notional.0.unsigned_abs(), order.filled.0);
    let (making, taking) = match order.terms.side {
        Side::Buy => (usd, shares),
        Side::Sell => (shares, usd),
    };
    for (name, amount) in [("makingAmount", making), ("takingAmount", taking)] {
        let out = o.name(name);
        out.push(b'"');
        decimal::vol(out, amount);
        out.push(b'"');
    }
}
