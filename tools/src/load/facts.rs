//! Facts about the client's machine and about the server, without which a figure cannot be interpreted.

use super::ask::Ask;
use crate::machine::Machine;
use engine::time::{SECOND, Timestamp};
use serde_json::{Map, Value, json};
use wire::instant;

/// Processor, cores, kernel, and the client's build.
pub fn machine() -> Map<String, Value> {
    let Machine { processor, cores, kernel, build } = Machine::look();
    let facts = [
        ("client", json!(format!("papertape {}, {build} build", env!("CARGO_PKG_VERSION")))),
        ("processor", json!(processor)),
        ("cores", json!(cores)),
        ("kernel", json!(kernel)),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the server reports about itself. Missing values keep their earlier ones: a load does not fail for them.
pub async fn server(ask: &mut Ask, key: &str, facts: &mut Value) {
    for (name, path) in [("version", "/v1/health/version"), ("status", "/v1/status")] {
        if let Ok(Some(answer)) = ask.read_if_there::<Value>(path, key).await {
            facts[name] = answer;
        }
    }
}

/// Two start times of one start differ by no more than this: a server reports its age in whole seconds.
const START_WITHIN_US: u64 = SECOND;

/// When the server restarted between two of its answers, in its own time, up to a second late; `None`: it did not, or
/// within twice [`START_WITHIN_US`] of the start before, or it does not report its age.
pub fn restarted(before: &Value, after: &Value) -> Option<Timestamp> {
    let started = |facts: &Value| {
        let now = instant::read(facts.pointer("/status/timestamp")?.as_str()?)?;
        let up_us = facts.pointer("/status/uptime_seconds")?.as_u64()?.checked_mul(SECOND)?;
        now.0.checked_sub(up_us).map(Timestamp)
    };
    let (before, after) = (started(before)?, started(after)?);
    (after.since(before) > START_WITHIN_US).then_some(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_restarted_server_is_younger_than_expected() {
        let at = |second: u64, up: u64| {
            let now = instant::ts_text(Timestamp((1_800_000_000 + second) * SECOND));
            json!({"status": {"timestamp": now, "uptime_seconds": up}})
        };
        let anew = |second: u64| Some(Timestamp((1_800_000_000 + second) * SECOND));
        let silent = || json!({"version": {"version": "1"}});
        let rows = [
            ("the same server, a minute later", at(100, 40), at(160, 100), None),
            ("its seconds end at different times", at(100, 40), at(160, 99), None),
            ("in the other order", at(100, 40), at(160, 101), None),
            ("no answer in between", at(100, 40), at(100, 40), None),
            ("started in mid-run", at(100, 40), at(160, 20), anew(140)),
            ("just now", at(100, 40), at(160, 0), anew(160)),
            ("two seconds after its start", at(100, 0), at(160, 58), anew(102)),
            ("too soon after its start to detect", at(100, 0), at(160, 59), None),
            ("a server of another kind", silent(), at(160, 20), None),
            ("in the other order", at(100, 40), silent(), None),
            ("with an impossible age", at(100, u64::MAX), at(160, u64::MAX), None),
        ];
        for (name, before, after, expected) in &rows {
            assert_eq!(restarted(before, after), *expected, "{name}: {before} {after}");
        }
        println!("starts: {} cases", rows.len());
    }
}
