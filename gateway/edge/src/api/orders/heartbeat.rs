//! The heartbeat safeguard: when it lapses, all open orders of the user are cancelled. One route has two forms: the native
//! one (gateway/docs/trading.md §6), and the venue's, in which each beat names the one before it
//! (gateway/docs/venue-clients.md §8). A request without a body arms nothing; some clients send it to check that the server
//! responds.

use super::records::{Beating, HeartbeatsEnded, NoHeartbeat, VenueBeating};
use crate::api::clob::ids;
use crate::api::refuse::unexpected;
use crate::http::auth;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, BeatName, Command};
use wire::fields::Body;
use wire::value::Value;
use wire::write;

const INTERVAL_MS_MIN: u64 = 1_000;
const INTERVAL_MS_MAX: u64 = 60_000;
const LABEL_CHARS_MAX: usize = 64;
const WRONG_BEAT: &str = "Invalid Heartbeat ID";

pub async fn beat(call: Call) -> Outcome {
    if call.body.is_empty() {
        return Ok(Reply::json(&NoHeartbeat { status: "ok".into() }));
    }
    let value = call.json_object()?;
    if value.get("interval_ms").is_none_or(|interval| *interval == Value::Null)
        && let Some(shown) = value.get("heartbeat_id")
    {
        return beat_by_name(&call, shown).await;
    }
    let mut body = Body::new(&value);
    let interval_ms = body.integer("interval_ms", INTERVAL_MS_MIN..=INTERVAL_MS_MAX);
    if body.get("interval_ms").is_none() {
        body.missing("interval_ms");
    }
    let label = body.text("client_label", LABEL_CHARS_MAX).unwrap_or_default().to_owned();
    if label.chars().any(char::is_control) {
        body.problems.add("body", "client_label", "string_pattern", "has characters that cannot be printed");
    }
    let Some(interval_ms) = interval_ms.filter(|_| body.problems.is_empty()) else {
        return Err(Refusal::validation(&body.problems));
    };
    match call.ask(Command::Beat { label, interval_ms: interval_ms as u32 }).await? {
        Answer::Beating { lapses_at } => Ok(Reply::json(&Beating { ok: true, expires_at_ms: lapses_at.millis() })),
        other => Err(unexpected(&other, call.now)),
    }
}

/// A beat of the venue's form. `shown` is the name of the last beat as the client knows it; it is empty or null before the
/// first one.
async fn beat_by_name(call: &Call, shown: &Value<'_>) -> Outcome {
    let shown = match shown {
        Value::Null => BeatName::First,
        Value::Text(text) if text.is_empty() => BeatName::First,
        Value::Text(text) => ids::uuid(text).map_or(BeatName::Nonsense, BeatName::Known),
        _ => BeatName::Nonsense,
    };
    let next = auth::name();
    let command = Command::BeatByName { shown, next: ids::uuid(&next).unwrap_or_default() };
    match call.ask(command).await? {
        Answer::Beating { .. } => Ok(Reply::json(&VenueBeating { heartbeat_id: next.into() })),
        Answer::WrongBeat { current } => {
            let current = current.map(|name| ids::uuid_text(&name)).unwrap_or_default();
            let refusal = Refusal::new(Code::InvalidRequest, WRONG_BEAT);
            let refusal = refusal.field("error_msg", |out| write::string(out, WRONG_BEAT));
            Err(refusal.field("heartbeat_id", |out| write::string(out, &current)))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// Ends all registrations without cancelling anything.
pub async fn end(call: Call) -> Outcome {
    match call.ask(Command::EndBeats).await? {
        Answer::Done => Ok(Reply::json(&HeartbeatsEnded { ok: true })),
        other => Err(unexpected(&other, call.now)),
    }
}
