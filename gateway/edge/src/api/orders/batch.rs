//! `POST /v1/orders/batch` (trading.md §7): entries in order, each with its own fate; 200 whatever they do.

use super::terms::{Draft, Echo, Sender};
use super::view;
use crate::api::refuse::{rejected, unexpected};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, BatchEntry, Command, Placement};
use engine::market::catalog::Catalog;
use engine::order::{EntryRoute, Status};
use engine::reject::Reject;
use engine::rules::BATCH_ENTRIES_MAX;
use engine::time::Timestamp;
use wire::fields::Problems;
use wire::value::Value;
use wire::write::{array, object};

const ENDPOINT: &str = "POST /v1/orders/batch";
const ENTRY_BYTES: usize = 1_280;

pub async fn place(call: Call) -> Outcome {
    let Some(body) = call.json()? else {
        return Err(Refusal::saying(Code::InvalidBody, "The body is empty."));
    };
    let orders = entries(&body)?;
    let (tier, app) = (call.caller().tier, call.app());
    let tier_max = app.config.limits.tier(tier).max_batch_size as usize;
    if orders.len() > tier_max {
        let message = format!("{} orders were sent; the tier allows {tier_max} in one batch.", orders.len());
        return Err(Refusal::saying(Code::BatchLimitExceeded, message));
    }
    let sender = Sender {
        key: call.key(),
        tier,
        route: EntryRoute::Batch,
        endpoint: ENDPOINT,
        header_id: None,
        catalog: &app.catalog,
        max_shares: app.rules.max_shares_per_order,
    };
    let (placements, said): (Vec<Placement>, Vec<Said>) =
        orders.iter().map(|order| Said::apart(Draft::read(order, &sender))).unzip();
    match call.ask(Command::PlaceBatch(placements)).await? {
        Answer::Batch(entries) if entries.len() == said.len() => {
            Ok(Reply::json(answer(&entries, said, &app.catalog, call.now)))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// The orders of a body: `{"orders":[…]}` or the bare array; 1 to 100 of them.
fn entries<'a, 'v>(body: &'a Value<'v>) -> Result<&'a [Value<'v>], Refusal> {
    let (orders, field) = match body {
        Value::Array(orders) => (Some(orders), true),
        Value::Object(_) => match body.get("orders") {
            Some(Value::Array(orders)) => (Some(orders), true),
            other => (None, other.is_some_and(|value| *value != Value::Null)),
        },
        other => {
            let message = format!("The body is {}, not a list of orders.", other.kind());
            return Err(Refusal::saying(Code::InvalidBody, message));
        }
    };
    let mut problems = Problems::default();
    match orders {
        Some(orders) if (1..=BATCH_ENTRIES_MAX).contains(&orders.len()) => return Ok(orders),
        Some(orders) if orders.is_empty() => problems.add("body", "orders", "too_short", "is empty"),
        Some(_) => {
            let message = format!("has more than {BATCH_ENTRIES_MAX} entries");
            problems.add("body", "orders", "too_long", message);
        }
        None if field => problems.add("body", "orders", "list_type", "is not a list"),
        None => problems.add("body", "orders", "missing", "is required"),
    }
    Err(Refusal::validation(&problems))
}

/// What is kept of an entry while its placement is with the shard.
struct Said<'a> {
    fault: Option<Refusal>,
    echo: Echo<'a>,
}

impl<'a> Said<'a> {
    fn apart(draft: Draft<'a>) -> (Placement, Said<'a>) {
        (draft.placement, Said { fault: draft.fault, echo: draft.echo })
    }
}

/// `{"results":[…],"succeeded":n,"failed":n}` in the order of the request.
fn answer(entries: &[BatchEntry], said: Vec<Said<'_>>, catalog: &Catalog, now: Timestamp) -> Vec<u8> {
    let succeeded = entries.iter().filter(|entry| stands(entry)).count();
    let mut out = Vec::with_capacity(64 + entries.len() * ENTRY_BYTES);
    object(&mut out, |o| {
        let results = o.name("results");
        array(results, entries.iter().zip(said), |out, (entry, said)| write(out, entry, said, catalog, now));
        o.integer("succeeded", succeeded as u64);
        o.integer("failed", (entries.len() - succeeded) as u64);
    });
    out
}

fn stands(entry: &BatchEntry) -> bool {
    match entry {
        BatchEntry::Placed(view) => matches!(view.order.status(), Status::Filled | Status::Pending),
        BatchEntry::Killed { .. } | BatchEntry::Refused(_) => false,
    }
}

fn write(out: &mut Vec<u8>, entry: &BatchEntry, said: Said<'_>, catalog: &Catalog, now: Timestamp) {
    match entry {
        BatchEntry::Placed(view) => view::order(out, view, catalog, None),
        BatchEntry::Killed { reject, order } => {
            let refusal = rejected(reject, now);
            view::order(out, order, catalog, Some((refusal.code(), refusal.message())));
        }
        BatchEntry::Refused(reject) => {
            let refusal = match (reject, said.fault) {
                (Reject::Unsound, Some(fault)) => fault,
                _ => rejected(reject, now),
            };
            view::refused_entry(out, &said.echo, refusal.code(), refusal.message(), catalog);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::read;

    #[test]
    fn a_batch_is_a_list_or_an_object_with_one() {
        let many = |count: usize| format!("[{}]", vec!["{}"; count].join(","));
        let (full, over) = (many(100), many(101));
        for (body, expected) in [
            (r#"{"orders":[{},{}]}"#, Ok(2)),
            ("[{}]", Ok(1)),
            (full.as_str(), Ok(100)),
            (over.as_str(), Err(Code::ValidationFailed)),
            ("[]", Err(Code::ValidationFailed)),
            (r#"{"orders":[]}"#, Err(Code::ValidationFailed)),
            (r#"{"orders":null}"#, Err(Code::ValidationFailed)),
            (r#"{"orders":{}}"#, Err(Code::ValidationFailed)),
            ("{}", Err(Code::ValidationFailed)),
            ("null", Err(Code::InvalidBody)),
            ("\"[]\"", Err(Code::InvalidBody)),
            ("7", Err(Code::InvalidBody)),
        ] {
            let value = read::json(body.as_bytes()).expect("JSON");
            let found = entries(&value).map(<[_]>::len).map_err(|refusal| refusal.code());
            assert_eq!(found, expected, "{}", &body[..body.len().min(40)]);
        }
    }
}
