//! The heartbeat safeguard, native form (trading.md §8): when it lapses, all open orders of the user are cancelled.

use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::wire::fields::Body;
use engine::command::{Answer, Command};

const INTERVAL_MS_MIN: u64 = 1_000;
const INTERVAL_MS_MAX: u64 = 60_000;
const LABEL_CHARS_MAX: usize = 64;

pub async fn beat(call: Call) -> Outcome {
    let value = call.json_object()?;
    let mut body = Body::new(&value);
    let interval_ms = body.integer("interval_ms", INTERVAL_MS_MIN..=INTERVAL_MS_MAX);
    if body.get("interval_ms").is_none() {
        body.missing("interval_ms");
    }
    let label = body.text("client_label", LABEL_CHARS_MAX).unwrap_or_default().to_owned();
    let Some(interval_ms) = interval_ms.filter(|_| body.problems.is_empty()) else {
        return Err(Refusal::validation(&body.problems));
    };
    match call.ask(Command::Beat { label, interval_ms: interval_ms as u32 }).await? {
        Answer::Beating { lapses_at } => Ok(Reply::object(|o| {
            o.boolean("ok", true);
            o.integer("expires_at_ms", lapses_at.millis());
        })),
        other => Err(unexpected(&other, call.now)),
    }
}

/// Ends all registrations without cancelling anything.
pub async fn end(call: Call) -> Outcome {
    match call.ask(Command::EndBeats).await? {
        Answer::Done => Ok(Reply::object(|o| o.boolean("ok", true))),
        other => Err(unexpected(&other, call.now)),
    }
}
