//! `POST /v1/orders`: one native order. A JSON array there is the venue's batch.

use super::terms::{Draft, Sender};
use super::view;
use crate::api::clob;
use crate::api::refuse::unexpected;
use crate::http::buffer;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::reads::Reads;
use engine::command::{Answer, Command, Placement};
use engine::id::KeyId;
use engine::order::EntryRoute;
use engine::reject::Reject;
use engine::user::Tier;
use hyper::header::HeaderName;
use wire::value::Value;

const ENDPOINT: &str = "POST /v1/orders";
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// A response has about 1 KiB.
const ANSWER_BYTES: usize = 1_280;

/// One future of at most 1 KiB, for which the allocator has a free list. For more it searches its pages each time, and every
/// few thousand searches visit all of them, which takes milliseconds with gigabytes.
#[expect(clippy::manual_async_fn, reason = "an async fn would hold the call twice")]
pub fn place(call: Call) -> impl Future<Output = Outcome> {
    async move {
        let body = match call.json()? {
            Some(Value::Array(orders)) => return Box::pin(clob::place::batch(&call, &orders)).await,
            Some(body @ Value::Object(_)) => body,
            Some(other) => {
                let message = format!("The body is {}, neither an order nor a list of orders.", other.kind());
                return Err(Refusal::new(Code::InvalidBody, message));
            }
            None => return Err(Refusal::new(Code::InvalidBody, "The body is empty.")),
        };
        let header_id = call.headers.get(IDEMPOTENCY_KEY).map(|id| id.as_bytes());
        let sender = Sender { header_id, ..sender(call.reads(), call.key(), call.caller().tier) };
        let Draft { placement, fault, .. } = Draft::read(&body, &sender);
        let answer = call.ask(Command::Place(Box::new(placement))).await?;
        answered(&call, answer, fault)
    }
}

/// The sender of native orders without an `Idempotency-Key`.
pub fn sender(reads: &Reads, key: KeyId, tier: Tier) -> Sender<'_> {
    Sender {
        key,
        tier,
        route: EntryRoute::Native,
        endpoint: ENDPOINT,
        header_id: None,
        catalog: &reads.catalog,
        max_shares: reads.rules.max_shares_per_order,
    }
}

/// Places an order that was read before its caller was admitted.
pub async fn enter(call: &Call, mut placement: Box<Placement>, fault: Option<Refusal>) -> Outcome {
    placement.tier = call.caller().tier;
    let answer = call.ask(Command::Place(placement)).await?;
    answered(call, answer, fault)
}

/// The response to a placement; `fault` where the shard finds it unsound.
fn answered(call: &Call, answer: Answer, fault: Option<Refusal>) -> Outcome {
    match answer {
        Answer::Order(view) => {
            let mut out = buffer::take();
            out.reserve(ANSWER_BYTES);
            view::order(&mut out, &view, &call.reads().catalog, None);
            Ok(Reply::json(out))
        }
        Answer::Refused(Reject::InvalidTerms) => Err(fault.unwrap_or_else(|| Code::ValidationFailed.into())),
        other => Err(unexpected(&other, call.now)),
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
