//! Cancels in the venue's shape: one order, a list of them, and the answer of a sweep (gateway/docs/venue-clients.md §6).

use super::ids::OrderIds;
use super::words;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::record::{ByName, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use ahash::AHashSet;
use engine::command::{Answer, Command, Query};
use engine::id::OrderId;
use engine::view::CancelledOrders;
use std::borrow::Cow;
use wire::value::Value;

/// Names under which clients send the id of the one order.
const ID_NAMES: [&str; 4] = ["orderID", "orderId", "order_id", "id"];

record! {
    /// Ids as they were sent.
    pub struct CanceledOrders<'a> {
        canceled: Vec<Cow<'a, str>> = vec!["268435460".into()];
        not_canceled: ByName<Cow<'a, str>, &'a str> = ByName(vec![("268435461".into(), "ORDER_NOT_CANCELLABLE")]),
            "The others, each with its reason: a code, or the venue's sentence.";
    }
}

/// `DELETE /v1/order`.
pub async fn one(call: Call) -> Outcome {
    let body = call.json_object()?;
    let named = ID_NAMES.iter().find_map(|name| body.get(name)).filter(|id| **id != Value::Null);
    let named = named.ok_or_else(|| Refusal::new(Code::InvalidRequest, "Name the order: orderID."))?;
    cancel(&call, std::slice::from_ref(named)).await
}

/// `DELETE /v1/orders`.
pub async fn several(call: Call) -> Outcome {
    let most = call.front().settings.compat.rehearsal.cancels_max();
    match call.json()? {
        // An empty list is not a mistake: a client sends the orders that it has.
        Some(Value::Array(ids)) if ids.is_empty() => {
            Ok(Reply::json(&CanceledOrders { canceled: Vec::new(), not_canceled: ByName(Vec::new()) }))
        }
        Some(Value::Array(ids)) if ids.len() <= most => cancel(&call, &ids).await,
        Some(Value::Array(ids)) => {
            let message = format!("{} ids were sent; at most {most} can be.", ids.len());
            Err(Refusal::new(Code::InvalidBody, message))
        }
        Some(other) => Err(Refusal::new(Code::InvalidBody, format!("The body is {}, not an array.", other.kind()))),
        None => Err(Refusal::new(Code::InvalidBody, "The body is empty.")),
    }
}

/// Cancels those of these orders that are open; the answer has a reason for each of the others.
async fn cancel(call: &Call, ids: &[Value<'_>]) -> Outcome {
    let named = named(call, ids).await?;
    let orders = named.iter().filter_map(|(_, order)| *order).collect();
    let swept = match call.ask(Command::CancelOrders { orders }).await? {
        Answer::Cancelled(swept) => swept,
        other => return Err(unexpected(&other, call.now)),
    };
    let dialect = call.dialect();
    let cancelled: AHashSet<OrderId> = swept.cancelled.iter().copied().collect();
    let ended: AHashSet<OrderId> = swept.not_cancellable.iter().copied().collect();
    let is_in = |set: &AHashSet<OrderId>, order: &Option<OrderId>| order.is_some_and(|order| set.contains(&order));
    let (gone, left): (Vec<_>, Vec<_>) = named.iter().partition(|(_, order)| is_in(&cancelled, order));
    let not_canceled = left.iter().map(|(text, order)| {
        let code = if is_in(&ended, order) { Code::OrderNotCancellable } else { Code::OrderNotFound };
        (Cow::Borrowed(*text), reason(dialect, code))
    });
    Ok(Reply::json(&CanceledOrders {
        canceled: gone.iter().map(|(text, _)| Cow::Borrowed(*text)).collect(),
        not_canceled: ByName(not_canceled.collect()),
    }))
}

/// The ids as they were sent, each order once, with its order; `None` is an order that the caller does not have.
async fn named<'a>(call: &Call, ids: &'a [Value<'_>]) -> Result<Vec<(&'a str, Option<OrderId>)>, Refusal> {
    let texts = ids.iter().map(|id| match id {
        Value::Text(text) => Ok(text.as_ref()),
        Value::Number(text) => Ok(*text),
        other => Err(Refusal::new(Code::InvalidBody, format!("An id is {}, not a string.", other.kind()))),
    });
    let texts = texts.collect::<Result<Vec<&str>, Refusal>>()?;
    let found = OrderIds::of(call).find(call, &texts).await?;
    let (mut known, mut orders) = (AHashSet::new(), AHashSet::new());
    let once = texts.into_iter().zip(found);
    Ok(once.filter(|(text, order)| known.insert(*text) && order.is_none_or(|order| orders.insert(order))).collect())
}

/// The answer of a sweep: hex ids and sentences in the strict dialect, decimal ids and codes in the plain one.
///
/// # Errors
/// A refusal of the shard to return the hashes of signed orders.
pub async fn swept(swept: &CancelledOrders, call: &Call) -> Outcome {
    let dialect = call.dialect();
    let canceled = texts(&swept.cancelled, call).await?;
    let left = texts(&swept.not_cancellable, call).await?;
    let reason = reason(dialect, Code::OrderNotCancellable);
    Ok(Reply::json(&CanceledOrders {
        canceled,
        not_canceled: ByName(left.into_iter().map(|id| (id, reason)).collect()),
    }))
}

/// Ids of orders of the caller as the answer to a sweep has them.
async fn texts(orders: &[OrderId], call: &Call) -> Result<Vec<Cow<'static, str>>, Refusal> {
    if !call.dialect().is_strict() || orders.is_empty() {
        return Ok(orders.iter().map(|id| id.to_string().into()).collect());
    }
    let hashes = match call.ask(Command::Query(Query::OrderHashes(orders.to_vec()))).await? {
        Answer::OrderHashes(hashes) => hashes,
        other => return Err(unexpected(&other, call.now)),
    };
    let ids = OrderIds::of(call);
    Ok(orders.iter().zip(&hashes).map(|(id, hash)| ids.text(*id, hash.as_ref()).into()).collect())
}

fn reason(dialect: Dialect, code: Code) -> &'static str {
    match dialect {
        Dialect::Strict => words::NOT_CANCELED,
        Dialect::Plain => code.text(),
    }
}
