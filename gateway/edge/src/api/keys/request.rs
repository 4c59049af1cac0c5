//! The body of a request for a key (`gateway/docs/keys.md §1`), and the checks before it is issued (`gateway/docs/keys.md §3`).
//!
//! Check 1 (flagged, allowlist) has passed when a request reaches a handler. Checks 2, 3, 4 and 6 need lists and flags of
//! the server and run here; 5 and 7 run in the shard. Check 5 comes before 6, so it runs here too.

use super::view::TierName;
use crate::http::call::Caller;
use crate::http::code::Code;
use crate::http::front::Front;
use crate::http::record::record;
use crate::http::reply::Refusal;
use crate::http::scalar::words;
use crate::settings::TIERS;
use engine::directory::Directory;
use engine::id::UserId;
use engine::realism::{RealismSets, SET_NAME_CHARS_MAX};
use engine::time::Timestamp;
use engine::user::key::{entitlement, grant_ended};
use engine::user::{Permissions, Tier};
use hyper::StatusCode;
use wire::fields::{Body, Problems, is_longer};
use wire::value::Value;
use wire::write::object;

pub const NAME_CHARS_MAX: usize = 100;
/// Characters of an unknown tier that its refusal repeats.
const SHOWN_CHARS_MAX: usize = 32;

words! {
    /// What can be named: `admin` is never given.
    pub AskedPermission = "read", "trade", "admin";
}

record! {
    /// A key to be issued. Other fields are ignored.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct NewKey<'a> {
        #[schemars(length(max = NAME_CHARS_MAX), extend("x-or-null" = true))]
        pub name: Option<&'a str> = Some("grid bot"), "A label.", skip_serializing_if;
        // As it was sent: any text that is not a name is an unknown tier, which is refused after other mistakes.
        #[schemars(with = "Option<TierName>", extend("x-or-null" = true))]
        pub tier: Option<&'a str> = None, "At most the tier of the plan, which is the default.", skip_serializing_if;
        #[schemars(extend("x-or-null" = true))]
        pub permissions: Option<Vec<AskedPermission>> = Some(vec!["read".into(), "trade".into()]),
            "Without it both; `trade` implies `read`; `admin` can be named and is never given.", skip_serializing_if;
    }

    /// A new label, another set of realism, or both. Other fields are ignored.
    pub struct KeyChange<'a> {
        #[schemars(with = "Option<String>", length(max = NAME_CHARS_MAX), extend("x-or-null" = true))]
        pub name: Option<Option<&'a str>> = Some(Some("grid bot")), "Null takes the old one away.", skip_serializing_if;
        #[schemars(with = "Option<String>", length(max = SET_NAME_CHARS_MAX), extend("x-or-null" = true))]
        pub realism: Option<Option<&'a str>> = None,
            "The set under which later orders of the key are accepted; null: that of keys without a choice.",
            skip_serializing_if;
    }
}

impl<'a> NewKey<'a> {
    /// Reads the body; an empty one asks for the defaults. Other fields are ignored.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for wrong types, a long name, and permissions that do not exist.
    pub fn read(body: &'a Value<'_>) -> Result<NewKey<'a>, Refusal> {
        let mut body = Body::new(body);
        let name = body.text("name", NAME_CHARS_MAX);
        let tier = body.text("tier", usize::MAX);
        let permissions = permissions(&mut body);
        if !body.problems.is_empty() {
            return Err(Refusal::validation(&body.problems));
        }
        Ok(NewKey { name, tier, permissions })
    }

    /// The permissions that are asked for, if any are; an empty list asks for `read`.
    pub fn permissions(&self) -> Option<Permissions> {
        let words = self.permissions.as_ref()?;
        Some(if words.contains(&"trade".into()) { Permissions::ReadTrade } else { Permissions::Read })
    }

    fn asks_for_admin(&self) -> bool {
        self.permissions.as_ref().is_some_and(|words| words.contains(&"admin".into()))
    }
}

fn permissions(body: &mut Body<'_, '_>) -> Option<Vec<AskedPermission>> {
    let (kind, message) = match body.get("permissions")? {
        Value::Array(words) => match words.iter().map(permission).collect() {
            Some(words) => return Some(words),
            None => ("literal_error", "holds something else than read and trade".to_owned()),
        },
        other => ("list_type", format!("is {}, not a list", other.kind())),
    };
    body.problems.add("body", "permissions", kind, message);
    None
}

fn permission(word: &Value<'_>) -> Option<AskedPermission> {
    let Value::Text(word) = word else { return None };
    AskedPermission::ALL.iter().find(|known| *known == word).map(|known| (*known).into())
}

impl<'a> KeyChange<'a> {
    /// Reads the body of a change.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` for an absent, a long, and a wrong name, and for a set that is not one of these.
    pub fn read(body: &'a Value<'_>, sets: &RealismSets) -> Result<KeyChange<'a>, Refusal> {
        let mut problems = Problems::default();
        let mut change = KeyChange { name: None, realism: None };
        match body.get("name") {
            Some(Value::Null) => change.name = Some(None),
            Some(Value::Text(name)) if !is_longer(name, NAME_CHARS_MAX) => change.name = Some(Some(name)),
            Some(Value::Text(_)) => {
                let message = format!("has more than {NAME_CHARS_MAX} characters");
                problems.add("body", "name", "string_too_long", message);
            }
            Some(other) => problems.add("body", "name", "string_type", format!("is {}, not a string", other.kind())),
            None if body.get("realism").is_none() => problems.add("body", "name", "missing", "is required"),
            None => {}
        }
        match body.get("realism") {
            None => {}
            Some(Value::Null) => change.realism = Some(None),
            Some(Value::Text(set)) if sets.get(set).is_some() => change.realism = Some(Some(set)),
            Some(Value::Text(_)) => {
                problems.add("body", "realism", "literal_error", format!("is not one of {}", sets.names()));
            }
            Some(other) => problems.add("body", "realism", "string_type", format!("is {}, not a string", other.kind())),
        }
        if problems.is_empty() { Ok(change) } else { Err(Refusal::validation(&problems)) }
    }
}

/// Runs the checks of `gateway/docs/keys.md §3` in their order. Returns the requested tier, if the body has one.
pub fn admitted(
    request: &NewKey<'_>,
    caller: &Caller,
    front: &Front,
    directory: &Directory,
    now: Timestamp,
) -> Result<Option<Tier>, Refusal> {
    let flags = &front.settings.flags;
    let tier = request.tier.map(tier).transpose()?;
    if flags.closed_beta_mode && !front.gatekeeper.lists(caller.user, directory) {
        return Err(Code::ClosedBeta.into());
    }
    let entitled = entitlement(caller.grant, now);
    if tier.unwrap_or(entitled) > Tier::Free && !flags.paid_keys_enabled {
        return Err(Code::ApiProComingSoon.into());
    }
    let trade_after_end = request.permissions() == Some(Permissions::ReadTrade) && grant_ended(caller.grant, now);
    if request.asks_for_admin() || tier.is_some_and(|tier| tier > entitled) || trade_after_end {
        return Err(Code::TierRequiresUpgrade.into());
    }
    cohort(caller.user, flags.cohort_cap, directory, now)?;
    Ok(tier)
}

/// The tier of a name.
fn tier(word: &str) -> Result<Tier, Refusal> {
    let found = TIERS.iter().find(|(_, name)| *name == word);
    found.map(|(tier, _)| *tier).ok_or_else(|| {
        let word: String = word.chars().take(SHOWN_CHARS_MAX).collect();
        let message = format!("tier: {word:?} must be one of free, pro, pro_plus, enterprise");
        Refusal::new(Code::ValidationFailed, message).with_status(StatusCode::BAD_REQUEST)
    })
}

/// A cohort with a cap: users who hold a working key fill it, and may have further ones.
fn cohort(user: UserId, cap: u64, directory: &Directory, now: Timestamp) -> Result<(), Refusal> {
    if cap == 0 || directory.holds_key(user, now) {
        return Ok(());
    }
    let active = directory.holders_count(now) as u64;
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

    /// A request of this name and tier.
    fn new_key<'a>(name: impl Into<Option<&'a str>>, tier: impl Into<Option<&'a str>>) -> NewKey<'a> {
        NewKey { name: name.into(), tier: tier.into(), permissions: None }
    }

    #[test]
    fn a_key_is_asked_for_by_name_tier_and_permissions() {
        let long = format!(r#"{{"name":"{}"}}"#, "é".repeat(100));
        for (body, expected) in [
            ("{}", new_key(None, None)),
            (r#"{"name":null,"tier":null,"permissions":null}"#, new_key(None, None)),
            (r#"{"name":"grid bot","tier":"free"}"#, new_key("grid bot", "free")),
            (r#"{"tier":"pro_plus","expires_at":5,"x":[]}"#, new_key(None, "pro_plus")),
            (r#"{"tier":"PRO"}"#, new_key(None, "PRO")),
            (long.as_str(), new_key(&*"é".repeat(100), None)),
        ] {
            let value = read::json(body.as_bytes()).expect("JSON");
            assert_eq!(NewKey::read(&value).expect("sound"), expected, "{body}");
        }
        for (word, expected) in [("pro_plus", Some(Tier::ProPlus)), ("PRO", None), ("", None)] {
            assert_eq!(tier(word).ok(), expected, "{word}");
        }
    }

    #[test]
    fn permissions_are_asked_for_by_name() {
        use Permissions::{Read, ReadTrade};
        for (words, expected) in [
            ("null", (None, false)),
            ("[]", (Some(Read), false)),
            (r#"["read"]"#, (Some(Read), false)),
            (r#"["trade"]"#, (Some(ReadTrade), false)),
            (r#"["trade","read","trade"]"#, (Some(ReadTrade), false)),
            (r#"["admin"]"#, (Some(Read), true)),
        ] {
            let body = format!(r#"{{"permissions":{words}}}"#);
            let value = read::json(body.as_bytes()).expect("JSON");
            let request = NewKey::read(&value).expect("sound");
            assert_eq!((request.permissions(), request.asks_for_admin()), expected, "{words}");
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
            assert_eq!(NewKey::read(&value).expect_err(body).code(), Code::ValidationFailed, "{body}");
        }
    }
}
