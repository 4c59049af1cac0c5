//! `POST /v1/orders/batch`: entries in their order. Each succeeds or fails independently; the status is 200 either way.

use super::place::sender;
use super::records::RefusedEntry;
use super::terms::{Draft, Echo, Sender};
use super::view;
use crate::api::refuse::{rejected, unexpected};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::write_record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::reads::Reads;
use engine::command::{Answer, BatchEntry, Command, Placement};
use engine::id::KeyId;
use engine::market::catalog::Catalog;
use engine::order::{EntryRoute, Status};
use engine::reject::Reject;
use engine::rules::BATCH_ENTRIES_MAX;
use engine::time::Timestamp;
use engine::user::Tier;
use wire::fields::Problems;
use wire::value::Value;
use wire::write::{array, object};

const ENDPOINT: &str = "POST /v1/orders/batch";
const ENTRY_BYTES: usize = 1_280;

pub async fn place(call: Call) -> Outcome {
    let Some(body) = call.json()? else {
        return Err(Refusal::new(Code::InvalidBody, "The body is empty."));
    };
    let drafts = Drafts::read(&body, call.reads(), call.key())?;
    enter(&call, drafts).await
}

/// Places a batch that was read before its caller was admitted.
pub async fn enter(call: &Call, drafts: Drafts<'_>) -> Outcome {
    let Drafts { mut placements, requests } = drafts;
    let tier = call.caller().tier;
    let tier_max = call.front().settings.limits.tier(tier).max_batch_size as usize;
    if placements.len() > tier_max {
        let message = format!("{} orders were sent; the tier allows {tier_max} in one batch.", placements.len());
        return Err(Refusal::new(Code::BatchLimitExceeded, message));
    }
    placements.iter_mut().for_each(|placement| placement.tier = tier);
    match call.ask(Command::PlaceBatch(placements)).await? {
        Answer::Batch(entries) if entries.len() == requests.len() => {
            Ok(Reply::json(answer(&entries, requests, &call.reads().catalog, call.now)))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// The entries of a batch.
pub struct Drafts<'a> {
    placements: Vec<Placement>,
    requests: Vec<Request<'a>>,
}

impl<'a> Drafts<'a> {
    /// Reads the orders of a body. Their tier is set when the caller is admitted.
    ///
    /// # Errors
    /// A body that is not a list of 1 to [`BATCH_ENTRIES_MAX`] orders.
    pub fn read(body: &'a Value<'_>, reads: &Reads, key: KeyId) -> Result<Drafts<'a>, Refusal> {
        let sender = Sender { route: EntryRoute::Batch, endpoint: ENDPOINT, ..sender(reads, key, Tier::Free) };
        let split = |Draft { placement, fault, echo }| (placement, Request { fault, echo });
        let (placements, requests) = entries(body)?.iter().map(|order| split(Draft::read(order, &sender))).unzip();
        Ok(Drafts { placements, requests })
    }

    /// The same without a borrow of the body.
    pub fn into_owned(self) -> Drafts<'static> {
        let owned = |Request { fault, echo }: Request<'_>| Request { fault, echo: echo.into_owned() };
        Drafts { placements: self.placements, requests: self.requests.into_iter().map(owned).collect() }
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
            return Err(Refusal::new(Code::InvalidBody, message));
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

/// What the answer needs of an entry's request.
struct Request<'a> {
    fault: Option<Refusal>,
    echo: Echo<'a>,
}

/// Writes a `BatchResults`, in the order of the request.
fn answer(entries: &[BatchEntry], requests: Vec<Request<'_>>, catalog: &Catalog, now: Timestamp) -> Vec<u8> {
    let succeeded = entries.iter().filter(|entry| is_placed(entry)).count();
    let mut out = Vec::with_capacity(64 + entries.len() * ENTRY_BYTES);
    object(&mut out, |o| {
        let results = o.name("results");
        array(results, entries.iter().zip(requests), |out, (entry, request)| write(out, entry, request, catalog, now));
        o.integer("succeeded", succeeded as u64);
        o.integer("failed", (entries.len() - succeeded) as u64);
    });
    out
}

fn is_placed(entry: &BatchEntry) -> bool {
    match entry {
        BatchEntry::Placed(view) => matches!(view.order.status(), Status::Filled | Status::Pending),
        BatchEntry::Killed { .. } | BatchEntry::Refused(_) => false,
    }
}

fn write(out: &mut Vec<u8>, entry: &BatchEntry, request: Request<'_>, catalog: &Catalog, now: Timestamp) {
    match entry {
        BatchEntry::Placed(view) => view::order(out, view, catalog, None),
        BatchEntry::Killed { reject, order } => {
            let refusal = rejected(reject, now);
            view::order(out, order, catalog, Some((refusal.code(), refusal.message())));
        }
        BatchEntry::Refused(reject) => {
            let refusal = match (reject, request.fault) {
                (Reject::InvalidTerms, Some(fault)) => fault,
                _ => rejected(reject, now),
            };
            write_record(out, &RefusedEntry::new(&request.echo, refusal.code(), refusal.message(), catalog));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::orders::records::{BatchResults, EntryResult, OrderResponse};
    use crate::api::testing::{Town, Trader};
    use crate::http::record::Record as _;
    use crate::http::scalar::{self, Money, Quantity};
    use crate::http::testing::NOW;
    use engine::amount::{Price, Qty};
    use engine::fact;
    use engine::id::{OrderId, Outcome};
    use engine::mutation::Mutation;
    use engine::order::{CloseReason, OrderTerms, Side, TimeInForce};
    use wire::read;

    /// The answer is written by hand; its record is that of the machine description.
    #[test]
    fn an_answer_is_written_as_its_record() {
        let town = Town::new();
        let mut trader = Trader::new(100_000_000, town.market.instrument(Outcome::First));
        let terms = trader.terms(3_700, 20);
        trader.place(90_415, terms, NOW);
        let placed = trader.view(90_415);
        let terms = OrderTerms { time_in_force: TimeInForce::Fok, ..trader.terms(3_700, 20) };
        trader.place(90_416, terms, NOW);
        let order = OrderId(90_416);
        let reason = CloseReason::FokNotFilled;
        trader.apply(&Mutation::OrderClosed(fact::OrderClosed { order, reason, at: NOW }));
        let killed = trader.view(90_416);
        let reject = Reject::FokNotFilled { order, fillable: Qty(1), requested: Qty(2), limit: Price(3_700) };

        let echo = Echo {
            side: Some(Side::Sell),
            outcome: Some("\"No\"".into()),
            quantity: Some("900".into()),
            client_order_id: Some("é".into()),
            ..Echo::default()
        };
        let fault = || Refusal::new(Code::ValidationFailed, "price: \"x\" is not a number");
        let resting = |order_id| OrderResponse {
            order_id,
            account_balance: Money::of("100.00"),
            client_order_id: None,
            token_id: "81140002".into(),
            market_id: town.condition().into(),
            wallet_id: 3,
            time_in_force: "GTC".into(),
            requested_time_in_force: "GTC".into(),
            created_at: scalar::Timestamp(NOW),
            ..OrderResponse::resting()
        };
        let (by_book, by_reject, by_fault) =
            (rejected(&reject, NOW), rejected(&Reject::PostOnlyWouldCross, NOW), fault());
        let refused = [&by_reject, &by_fault].map(|refusal| {
            let entry = RefusedEntry::new(&echo, refusal.code(), refusal.message(), &town.catalog);
            EntryResult::Refused(Box::new(entry))
        });
        let of_placed = EntryResult::Order(Box::new(resting(90_415)));
        let of_killed = EntryResult::Order(Box::new(OrderResponse {
            status: "CANCELLED".into(),
            notional: Money::of("0.00"),
            cancelled_reason: Some("fok_not_filled".into()),
            error: Some(by_book.code().text()),
            error_message: Some(by_book.message()),
            remaining_quantity: Quantity::of("0"),
            time_in_force: "FOK".into(),
            requested_time_in_force: "FOK".into(),
            ..resting(90_416)
        }));
        let entries = [
            BatchEntry::Placed(placed),
            BatchEntry::Killed { reject, order: killed },
            BatchEntry::Refused(Reject::PostOnlyWouldCross),
            BatchEntry::Refused(Reject::InvalidTerms),
        ];
        let results = [of_placed, of_killed].into_iter().chain(refused).collect();
        let record = BatchResults { results, succeeded: 1, failed: 3 };
        let request = |fault| Request { fault, echo: echo.clone() };
        let requests = vec![request(None), request(None), request(None), request(Some(fault()))];
        let (mut of_list, mut of_none) = (Vec::new(), Vec::new());
        write_record(&mut of_list, &record);
        write_record(&mut of_none, &BatchResults::example());
        let written = [answer(&entries, requests, &town.catalog, NOW), answer(&[], Vec::new(), &town.catalog, NOW)];
        assert_eq!(written.map(String::from_utf8), [of_list, of_none].map(String::from_utf8));
        println!("answers of batches: 2 cases");
    }

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
