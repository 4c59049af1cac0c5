//! What a key is asked to be (keys.md §1, §2), and the gates before it is issued (§3).
//!
//! Row 1 (flagged, allowlist) is passed by every request that reaches a handler. Rows 2, 3, 4 and 6 need lists and
//! flags of the server and are judged here; 5 and 7 are the shard's, but 5 comes before 6, so it is looked at here too.

use crate::app::App;
use crate::http::call::Caller;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::settings::TIERS;
use engine::time::Timestamp;
use engine::user::key::{entitlement, grant_ended};
use engine::user::{Permissions, Tier};
use hyper::StatusCode;
use wire::fields::Body;
use wire::value::Value;
use wire::write::object;

pub const NAME_CHARS_MAX: usize = 100;
/// Of a word that names no tier, so much is said again.
const SHOWN_CHARS_MAX: usize = 32;

/// A key as asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRequest {
    pub name: Option<String>,
    /// `Err`: the name of no tier.
    pub tier: Option<Result<Tier, String>>,
    pub permissions: Option<Permissions>,
    /// `admin` is among the permissions: it can be named, and is never given.
    pub admin: bool,
}

impl KeyRequest {
    /// Reads the body; none asks for the defaults. Other fields are ignored.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for wrong types, a long name, and permissions that there are not.
    pub fn read(body: &Value<'_>) -> Result<KeyRequest, Refusal> {
        let mut body = Body::new(body);
        let name = body.text("name", NAME_CHARS_MAX).map(str::to_owned);
        // Any text that is no name is an unknown tier, however long.
        let tier = body.text("tier", usize::MAX).map(|word| {
            let found = TIERS.iter().find(|(_, name)| *name == word);
            found.map(|(tier, _)| *tier).ok_or_else(|| word.chars().take(SHOWN_CHARS_MAX).collect())
        });
        let (permissions, admin) = permissions(&mut body);
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        Ok(KeyRequest { name, tier, permissions, admin })
    }
}

/// `read`, `trade`, `admin`; none of them in an array is `read`.
fn permissions(body: &mut Body<'_, '_>) -> (Option<Permissions>, bool) {
    let words = match body.get("permissions") {
        None => return (None, false),
        Some(Value::Array(words)) => words,
        Some(other) => {
            let message = format!("is {}, not a list", other.kind());
            body.problems.add("body", "permissions", "list_type", message);
            return (None, false);
        }
    };
    let (mut permissions, mut admin) = (Permissions::Read, false);
    for word in words {
        match word {
            Value::Text(word) if word == "read" => {}
            Value::Text(word) if word == "trade" => permissions = Permissions::ReadTrade,
            Value::Text(word) if word == "admin" => admin = true,
            _ => {
                body.problems.add("body", "permissions", "literal_error", "holds something else than read and trade");
                return (None, false);
            }
        }
    }
    (Some(permissions), admin)
}

/// Passes the gates of keys.md §3 in their order; the tier that is asked for, if one is.
pub fn admitted(asked: &KeyRequest, caller: &Caller, app: &App, now: Timestamp) -> Result<Option<Tier>, Refusal> {
    let flags = &app.front.settings.flags;
    let tier = match &asked.tier {
        Some(Err(word)) => {
            let message = format!("tier: {word:?} is none of free, pro, pro_plus, enterprise");
            return Err(Refusal::saying(Code::ValidationFailed, message).with_status(StatusCode::BAD_REQUEST));
        }
        Some(Ok(tier)) => Some(*tier),
        None => None,
    };
    if flags.closed_beta_mode && !app.front.gatekeeper.lists(caller.user, &app.reads.directory) {
        return Err(Code::ClosedBeta.into());
    }
    let entitled = entitlement(caller.grant, now);
    if tier.unwrap_or(entitled) > Tier::Free && !flags.paid_keys_enabled {
        return Err(Code::ApiProComingSoon.into());
    }
    let trade_after_end = asked.permissions == Some(Permissions::ReadTrade) && grant_ended(caller.grant, now);
    if asked.admin || tier.is_some_and(|tier| tier > entitled) || trade_after_end {
        return Err(Code::TierRequiresUpgrade.into());
    }
    cohort(caller, app, now)?;
    Ok(tier)
}

/// A cohort with a cap: users who hold a working key fill it, and may have further ones.
fn cohort(caller: &Caller, app: &App, now: Timestamp) -> Result<(), Refusal> {
    let cap = app.front.settings.flags.cohort_cap;
    if cap == 0 || app.reads.directory.holds_key(caller.user, now) {
        return Ok(());
    }
    let active = app.reads.directory.holders_count(now) as u64;
    if active < cap {
        return Ok(());
    }
    let mut details = Vec::new();
    object(&mut details, |o| {
        o.integer("current_active", active);
        o.integer("cap", cap);
        o.integer("requested", 1);
    });
    Err(Refusal::from(Code::CohortFull).details(details))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::read;

    fn asked(name: Option<&str>, tier: Option<Result<Tier, &str>>, permissions: Option<Permissions>) -> KeyRequest {
        let tier = tier.map(|tier| tier.map_err(str::to_owned));
        KeyRequest { name: name.map(str::to_owned), tier, permissions, admin: false }
    }

    #[test]
    fn a_key_is_asked_for_by_name_tier_and_permissions() {
        use Permissions::{Read, ReadTrade};
        let long = format!(r#"{{"name":"{}"}}"#, "é".repeat(100));
        for (body, expected) in [
            ("{}", asked(None, None, None)),
            (r#"{"name":null,"tier":null,"permissions":null}"#, asked(None, None, None)),
            (r#"{"name":"grid bot","tier":"free"}"#, asked(Some("grid bot"), Some(Ok(Tier::Free)), None)),
            (r#"{"tier":"pro_plus","expires_at":5,"x":[]}"#, asked(None, Some(Ok(Tier::ProPlus)), None)),
            (r#"{"tier":"PRO"}"#, asked(None, Some(Err("PRO")), None)),
            (r#"{"permissions":[]}"#, asked(None, None, Some(Read))),
            (r#"{"permissions":["read"]}"#, asked(None, None, Some(Read))),
            (r#"{"permissions":["trade"]}"#, asked(None, None, Some(ReadTrade))),
            (r#"{"permissions":["trade","read","trade"]}"#, asked(None, None, Some(ReadTrade))),
            (r#"{"permissions":["admin"]}"#, KeyRequest { admin: true, ..asked(None, None, Some(Read)) }),
            (long.as_str(), asked(Some(&"é".repeat(100)), None, None)),
        ] {
            let value = read::json(body.as_bytes()).expect("JSON");
            assert_eq!(KeyRequest::read(&value).expect("sound"), expected, "{body}");
        }
    }

    #[test]
    fn wrong_types_and_words_are_refused() {
        let long = format!(r#"{{"name":"{}"}}"#, "x".repeat(101));
        for body in [
            r#"{"name":5}"#,
            r#"{"name":["x"]}"#,
            r#"{"tier":1}"#,
            r#"{"permissions":"read"}"#,
            r#"{"permissions":["write"]}"#,
            r#"{"permissions":["READ"]}"#,
            r#"{"permissions":[1]}"#,
            r#"{"permissions":[null]}"#,
            r#"{"permissions":{}}"#,
            long.as_str(),
        ] {
            let value = read::json(body.as_bytes()).expect("JSON");
            assert_eq!(KeyRequest::read(&value).expect_err(body).code(), Code::ValidationFailed, "{body}");
        }
    }
}
