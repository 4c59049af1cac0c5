//! Cancels in the venue's shape: one order, a list of them, and what the sweeps answer (venue.md §6).

use super::ids::OrderIds;
use super::words;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::{Outcome, Refusal, Reply};
use ahash::AHashSet;
use engine::command::{Answer, Command};
use engine::id::OrderId;
use engine::view::CancelledOrders;
use wire::value::Value;
use wire::write::{self, object};

/// Most orders that one call cancels.
const IDS_MAX: usize = 3_000;
/// What clients call the id of the one order.
const ID_NAMES: [&str; 4] = ["orderID", "orderId", "order_id", "id"];

/// `DELETE /v1/order`.
pub async fn one(call: Call) -> Outcome {
    let body = call.json_object()?;
    let named = ID_NAMES.iter().find_map(|name| body.get(name)).filter(|id| **id != Value::Null);
    let named = named.ok_or_else(|| Refusal::saying(Code::InvalidRequest, "Name the order: orderID."))?;
    cancel(&call, std::slice::from_ref(named)).await
}

/// `DELETE /v1/orders`.
pub async fn several(call: Call) -> Outcome {
    match call.json()? {
        // Nothing to do is no mistake: a client sends what it has.
        Some(Value::Array(ids)) if ids.is_empty() => Ok(Reply::json(br#"{"canceled":[],"not_canceled":{}}"#.to_vec())),
        Some(Value::Array(ids)) if ids.len() <= IDS_MAX => cancel(&call, &ids).await,
        Some(Value::Array(ids)) => {
            let message = format!("{} ids were sent; at most {IDS_MAX} can be.", ids.len());
            Err(Refusal::saying(Code::InvalidBody, message))
        }
        Some(other) => Err(Refusal::saying(Code::InvalidBody, format!("The body is {}, not an array.", other.kind()))),
        None => Err(Refusal::saying(Code::InvalidBody, "The body is empty.")),
    }
}

/// Cancels what is open of these; the others are named with a reason, not refused.
async fn cancel(call: &Call, ids: &[Value<'_>]) -> Outcome {
    let named = named(ids, &OrderIds::of(call))?;
    let orders = named.iter().filter_map(|(_, order)| *order).collect();
    let swept = match call.ask(Command::CancelOrders { orders }).await? {
        Answer::Cancelled(swept) => swept,
        other => return Err(unexpected(&other, call.now)),
    };
    let dialect = call.dialect();
    let cancelled: AHashSet<OrderId> = swept.cancelled.iter().copied().collect();
    let ended: AHashSet<OrderId> = swept.not_cancellable.iter().copied().collect();
    let is_in = |set: &AHashSet<OrderId>, order: &Option<OrderId>| order.is_some_and(|order| set.contains(&order));
    let mut out = Vec::with_capacity(64 + 80 * named.len());
    object(&mut out, |o| {
        let (gone, left): (Vec<_>, Vec<_>) = named.iter().partition(|(_, order)| is_in(&cancelled, order));
        o.array("canceled", gone, |out, (text, _)| write::string(out, text));
        reasons(
            o.name("not_canceled"),
            left.iter().map(|(text, order)| {
                let code = if is_in(&ended, order) { Code::OrderNotCancellable } else { Code::OrderNotFound };
                (*text, reason(dialect, code))
            }),
        );
    });
    Ok(Reply::json(out))
}

/// The ids as they were sent, each order once, with what they mean; `None` is an order that nobody has.
fn named<'a>(ids: &'a [Value<'_>], own: &OrderIds) -> Result<Vec<(&'a str, Option<OrderId>)>, Refusal> {
    let (mut texts, mut orders) = (AHashSet::new(), AHashSet::new());
    let mut named = Vec::with_capacity(ids.len());
    for id in ids {
        let text = match id {
            Value::Text(text) => text.as_ref(),
            Value::Number(text) => text,
            other => {
                return Err(Refusal::saying(Code::InvalidBody, format!("An id is {}, not a string.", other.kind())));
            }
        };
        let order = own.read(text);
        if texts.insert(text) && order.is_none_or(|order| orders.insert(order)) {
            named.push((text, order));
        }
    }
    Ok(named)
}

/// The answer of a sweep: hex ids and sentences in the strict dialect, decimal ids and codes in the plain one.
pub fn swept(out: &mut Vec<u8>, swept: &CancelledOrders, call: &Call) {
    let (ids, dialect) = (OrderIds::of(call), call.dialect());
    let text = |id: &OrderId| if dialect.is_strict() { ids.text(*id) } else { id.to_string() };
    object(out, |o| {
        o.array("canceled", &swept.cancelled, |out, id| write::string(out, &text(id)));
        let left: Vec<String> = swept.not_cancellable.iter().map(text).collect();
        let left = left.iter().map(|id| (id.as_str(), reason(dialect, Code::OrderNotCancellable)));
        reasons(o.name("not_canceled"), left);
    });
}

fn reason(dialect: Dialect, code: Code) -> &'static str {
    match dialect {
        Dialect::Strict => words::NOT_CANCELED,
        Dialect::Plain => code.text(),
    }
}

/// An object whose names are a client's own texts.
fn reasons<'a>(out: &mut Vec<u8>, entries: impl Iterator<Item = (&'a str, &'static str)>) {
    out.push(b'{');
    for (id, reason) in entries {
        write::separate(out);
        write::string(out, id);
        out.push(b':');
        write::string(out, reason);
    }
    out.push(b'}');
}
