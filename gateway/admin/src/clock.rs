//! `GET /v1/admin/clock` and `POST /v1/admin/clock/step`: the clock of this server, and steps of a back-test with a bot
//! (gateway/docs/admin.md §4).

use crate::namespace::Reply;
use crate::node::Node;
use crate::refusal::Refusal;
use engine::time::{MILLISECOND, Timestamp};
use host::moments::{Following, StepBy, StepRefused, Stepped};
use std::time::Duration;
use wire::fields::Body;
use wire::value::Value;
use wire::{instant, read, write};

/// Bounds of the fields of a step, and its longest wait.
const EVENTS_MAX: u64 = 1_000_000;
const CYCLES_MAX: u64 = 100_000;
const MILLIS_MAX: u64 = 2_592_000_000;
const WAIT_MS_MAX: u64 = 600_000;
const WAIT_MS: u64 = 60_000;
/// Longest text of a time.
const TIME_CHARS_MAX: usize = 64;

/// The data of `GET /v1/admin/clock`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockStatus {
    pub server_at: Timestamp,
    pub venue_at: Timestamp,
    pub wall_at: Timestamp,
    /// The last record that was appended.
    pub lsn: u64,
    /// The run of a back-test with a bot.
    pub run: Option<RunStatus>,
}

/// The clock of a back-test with a bot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStatus {
    /// A step is being made.
    pub is_stepping: bool,
    /// The next moment; `None` at the end of the recording.
    pub following: Option<Following>,
}

/// Why a step is not made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoStep {
    /// This server has the machine's clock.
    NotControlled,
    Refused(StepRefused),
}

impl ClockStatus {
    pub(crate) fn json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(256);
        write::object(&mut json, |o| {
            o.word("mode", if self.run.is_some() { "venue" } else { "wall" });
            o.word(
                "state",
                match self.run {
                    None => "running",
                    Some(RunStatus { is_stepping: true, .. }) => "running",
                    Some(_) => "gated",
                },
            );
            o.word_or_null("speed", self.run.map(|_| "max"));
            o.ts("server_at", self.server_at);
            o.ts("venue_at", self.venue_at);
            o.ts("wall_at", self.wall_at);
            o.or_null("next", self.run.and_then(|run| run.following), |o, name, next| {
                o.object(name, |o| {
                    o.ts("at", next.at);
                    o.word("what", next.what);
                });
            });
            o.integer("lsn", self.lsn);
        });
        json
    }
}

/// The body of a step.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StepRequest {
    by: StepBy,
    wait: Duration,
}

impl StepRequest {
    /// # Errors
    /// [`Refusal::NotObject`], [`Refusal::Fields`].
    pub(crate) fn read(body: &[u8]) -> Result<StepRequest, Refusal> {
        let value = read::json(body).map_err(|_| Refusal::NotObject)?;
        if !matches!(value, Value::Object(_)) {
            return Err(Refusal::NotObject);
        }
        let mut body = Body::new(&value);
        let given = [
            body.integer("events", 1..=EVENTS_MAX).map(StepBy::Events),
            body.integer("cycles", 1..=CYCLES_MAX).map(StepBy::Cycles),
            body.integer("ms", 1..=MILLIS_MAX).map(|millis| StepBy::Micros(millis * MILLISECOND)),
            until(&mut body).map(StepBy::Until),
        ];
        let wait = body.integer("wait_ms", 1..=WAIT_MS_MAX).unwrap_or(WAIT_MS);
        if body.boolean("skip") == Some(true) {
            body.problems.add("body", "skip", "value_error", "a back-test skips nothing: false is the only value");
        }
        let mut given = given.into_iter().flatten();
        let (by, more) = (given.next(), given.next());
        if body.problems.is_empty() && (by.is_none() || more.is_some()) {
            body.problems.add("body", "events", "missing", "exactly one of events, cycles, ms and until is required");
        }
        match by.filter(|_| body.problems.is_empty()) {
            Some(by) => Ok(StepRequest { by, wait: Duration::from_millis(wait) }),
            None => Err(Refusal::Fields(body.problems)),
        }
    }
}

/// RFC 3339.
fn until(body: &mut Body<'_, '_>) -> Option<Timestamp> {
    let read = instant::read(body.text("until", TIME_CHARS_MAX)?);
    if read.is_none() {
        body.problems.add("body", "until", "datetime_parsing", "is not a time such as 2026-09-30T17:00:00Z");
    }
    read
}

/// Makes a step. One that takes longer than the request waits continues, and the answer shows the clock of now.
///
/// # Errors
/// [`Refusal::ClockNotControlled`], [`Refusal::ClockRunning`], [`Refusal::ClockBackwards`], [`Refusal::Lost`].
pub(crate) async fn step<N: Node>(node: &N, request: &StepRequest) -> Result<Reply, Refusal> {
    let made = node.step(request.by).map_err(|why| match why {
        NoStep::NotControlled => Refusal::ClockNotControlled,
        NoStep::Refused(StepRefused::Runs) => Refusal::ClockRunning,
        NoStep::Refused(StepRefused::Backwards) => Refusal::ClockBackwards,
    })?;
    match tokio::time::timeout(request.wait, made).await {
        Ok(Ok(stepped)) => Ok(Reply::Json(stepped_json(&stepped, node.clock().lsn))),
        Ok(Err(_)) => Err(Refusal::Lost),
        Err(_) => Ok(Reply::Accepted(node.clock().json())),
    }
}

fn stepped_json(stepped: &Stepped, lsn: u64) -> Vec<u8> {
    let Stepped { from, to, passed, is_end } = *stepped;
    let mut json = Vec::with_capacity(256);
    write::object(&mut json, |o| {
        o.ts("from", from);
        o.ts("to", to);
        o.integer("events", passed.events);
        o.integer("cycles", passed.cycles);
        o.integer("fills", passed.fills);
        o.integer("closed", passed.closed);
        o.integer("lsn", lsn);
        o.word("reached", if is_end { "end" } else { "asked" });
    });
    json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_has_one_measure() {
        let read = |body: &str| match StepRequest::read(body.as_bytes()) {
            Err(Refusal::Fields(_)) => Err("fields"),
            Err(Refusal::NotObject) => Err("not an object"),
            Err(other) => panic!("{other:?}"),
            Ok(StepRequest { by, wait }) => Ok((by, wait.as_millis())),
        };
        let at = instant::read("2026-09-30T17:00:00Z").expect("a time");
        let rows = [
            (r#"{"events":1}"#, Ok((StepBy::Events(1), 60_000))),
            (r#"{"events":1000000,"skip":false,"wait_ms":1}"#, Ok((StepBy::Events(EVENTS_MAX), 1))),
            (r#"{"cycles":100000}"#, Ok((StepBy::Cycles(CYCLES_MAX), 60_000))),
            (r#"{"ms":2592000000,"wait_ms":600000}"#, Ok((StepBy::Micros(MILLIS_MAX * 1_000), 600_000))),
            (r#"{"until":"2026-09-30T17:00:00Z"}"#, Ok((StepBy::Until(at), 60_000))),
            (r#"{"ms":5,"until":null}"#, Ok((StepBy::Micros(5_000), 60_000))),
            ("{}", Err("fields")),
            (r#"{"wait_ms":5}"#, Err("fields")),
            (r#"{"events":1,"cycles":1}"#, Err("fields")),
            (r#"{"ms":1,"until":"2026-09-30T17:00:00Z"}"#, Err("fields")),
            (r#"{"events":0}"#, Err("fields")),
            (r#"{"events":1000001}"#, Err("fields")),
            (r#"{"events":-1}"#, Err("fields")),
            (r#"{"events":1.5}"#, Err("fields")),
            (r#"{"events":"1"}"#, Err("fields")),
            (r#"{"cycles":100001}"#, Err("fields")),
            (r#"{"ms":2592000001}"#, Err("fields")),
            (r#"{"ms":1,"wait_ms":0}"#, Err("fields")),
            (r#"{"ms":1,"wait_ms":600001}"#, Err("fields")),
            (r#"{"ms":1,"skip":true}"#, Err("fields")),
            (r#"{"ms":1,"skip":"no"}"#, Err("fields")),
            (r#"{"until":"tomorrow"}"#, Err("fields")),
            (r#"{"until":5}"#, Err("fields")),
            ("", Err("not an object")),
            ("[]", Err("not an object")),
            ("{", Err("not an object")),
            ("1", Err("not an object")),
        ];
        for (body, expected) in &rows {
            assert_eq!(read(body), *expected, "{body:?}");
        }
        println!("bodies of a step: {} cases", rows.len());
    }
}
