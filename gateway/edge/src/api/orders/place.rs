//! `POST /v1/orders`: one native order (trading.md §1, §5). A JSON array there is the venue's batch (venue.md §5.5).

use super::terms::{Draft, Sender};
use super::view;
use crate::api::clob;
use crate::api::refuse::unexpected;
use crate::http::buffer;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command};
use engine::order::EntryRoute;
use engine::reject::Reject;
use hyper::header::HeaderName;
use wire::value::Value;

const ENDPOINT: &str = "POST /v1/orders";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// An answer has about 1 KiB.
const ANSWER_BYTES: usize = 1_280;

/// One future, and no larger than what the allocator has at hand: above 1 KiB it looks for room each time, and each so
/// many thousand looks it goes through all pages there are, which takes milliseconds where there are gigabytes.
#[expect(clippy::manual_async_fn, reason = "an async fn would hold the call twice")]
pub fn place(call: Call) -> impl Future<Output = Outcome> {
    async move {
        let body = match call.json()? {
            Some(Value::Array(orders)) => return Box::pin(clob::place::batch(&call, &orders)).await,
            Some(body @ Value::Object(_)) => body,
            Some(other) => {
                let message = format!("The body is {}, neither an order nor a list of orders.", other.kind());
                return Err(Refusal::saying(Code::InvalidBody, message));
            }
            None => return Err(Refusal::saying(Code::InvalidBody, "The body is empty.")),
        };
        let Draft { placement, fault, .. } = Draft::read(&body, &sender(&call));
        match call.ask(Command::Place(Box::new(placement))).await? {
            Answer::Order(view) => {
                let mut out = buffer::take();
                out.reserve(ANSWER_BYTES);
                view::order(&mut out, &view, &call.app().catalog, None);
                Ok(Reply::json(out))
            }
            Answer::Refused(Reject::Unsound) => Err(fault.unwrap_or_else(|| Code::ValidationFailed.into())),
            other => Err(unexpected(&other, call.now)),
        }
    }
}

fn sender(call: &Call) -> Sender<'_> {
    let app = call.app();
    Sender {
        key: call.key(),
        tier: call.caller().tier,
        route: EntryRoute::Native,
        endpoint: ENDPOINT,
        header_id: call.headers.get(IDEMPOTENCY_KEY).map(|id| id.as_bytes()),
        catalog: &app.catalog,
        max_shares: app.rules.max_shares_per_order,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn future_bytes<C, F, M: Fn(C) -> F>(_: &M) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_order_is_a_small_future() {
        let bytes = future_bytes(&place);
        println!("the future of an order: {bytes} bytes");
        assert!(bytes <= 1_024, "{bytes} bytes");
    }
}
