//! `PUT /v1/admin/keys/{id}/realism`: the set of realism of a key (gateway/docs/admin.md §1).

use crate::namespace::Reply;
use crate::node::Node;
use crate::refusal::Refusal;
use crate::users::{DONE_WITHIN, Deed, Done, Named, NoDeed, object};
use engine::id::{KeyId, UserId};
use engine::realism::{FillTerms, RealismSets, WHOLE};
use wire::fields::Problems;
use wire::value::Value;
use wire::write;

const BEFORE: &str = "/v1/admin/keys/";
const AFTER: &str = "/realism";

/// The key that a path names; `None`: it is not a path of this route.
pub(crate) fn key_of(path: &str) -> Option<KeyId> {
    let id = path.strip_prefix(BEFORE)?.strip_suffix(AFTER)?;
    let is_number = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_digit());
    id.parse().ok().filter(|_| is_number).map(KeyId)
}

/// The set of the body: `{"set":"venue"}`, or null for that of keys without a choice. It may have no other field.
fn set_of(body: &Value<'_>, sets: &RealismSets) -> Result<Option<String>, Refusal> {
    let mut problems = Problems::default();
    let fields: &[_] = if let Value::Object(fields) = body { fields } else { &[] };
    for name in fields.iter().map(|(name, _)| &**name).filter(|name| *name != "set") {
        problems.add("body", name, "extra_forbidden", "is not a field; allowed is set");
    }
    let mut set = None;
    match body.get("set") {
        None => problems.add("body", "set", "missing", "is required"),
        Some(Value::Null) => {}
        Some(Value::Text(name)) if sets.get(name).is_some() => set = Some(name.to_string()),
        Some(_) => problems.add("body", "set", "literal_error", format!("is not null or one of {}", sets.names())),
    }
    if problems.is_empty() { Ok(set) } else { Err(Refusal::Fields(problems)) }
}

/// Chooses the set of a key.
///
/// # Errors
/// [`Refusal::NotObject`], [`Refusal::Fields`], [`Refusal::NoKey`], [`Refusal::Unavailable`], [`Refusal::Unknown`],
/// [`Refusal::Impossible`] while the server writes the previous format.
pub(crate) async fn choose(node: &impl Node, key: KeyId, body: &[u8]) -> Result<Reply, Refusal> {
    let sets = node.sets();
    let set = set_of(&object(body)?, sets)?;
    let busy = || Refusal::Unavailable("the shard of the user has no room now".to_owned());
    let deed = Deed::ChooseRealism { key, set };
    let owner = Named::Id(UserId::of_object(key.0));
    let (_, done) = node.administer(&owner, deed.clone()).map_err(|why| match why {
        NoDeed::UnknownUser | NoDeed::UnknownKey => Refusal::NoKey,
        NoDeed::Busy => busy(),
    })?;
    let done = tokio::time::timeout(DONE_WITHIN, done).await;
    let done = done.map_err(|_| Refusal::Unknown)?;
    let done = done.map_err(|_| Refusal::Lost)?.map_err(|why| match why {
        NoDeed::UnknownUser | NoDeed::UnknownKey => Refusal::NoKey,
        NoDeed::Busy => busy(),
    })?;
    let chosen = match &done {
        Done::Chose(chosen) => chosen.as_deref().and_then(|name| sets.get(name)),
        Done::Refused(why) => return Err(Refusal::Impossible(why)),
        _ => return Err(Refusal::Lost),
    };
    let set = chosen.unwrap_or_else(|| sets.chosen_by_default());
    tracing::info!(key = key.0, set = &*set.name, "an administrator chose the realism of a key");
    let mut json = Vec::with_capacity(256);
    write::object(&mut json, |o| {
        o.integer("key_id", key.0);
        o.text("set", &set.name);
        o.object("settings", |o| settings(o, &set.fill));
    });
    Ok(Reply::Json(json))
}

fn settings(o: &mut write::Object<'_>, fill: &FillTerms) {
    let FillTerms { model, n, cancel_share, depth_share, match_window_ms, half_life_s } = fill;
    let share = |bps: u32| format!("{}.{:04}", bps / WHOLE.0, bps % WHOLE.0);
    o.word("fill_model", model.name());
    o.integer("n", (*n).into());
    o.text("cancel_share", &share(cancel_share.0));
    o.text("depth_share", &share(depth_share.0));
    o.integer("match_window_ms", (*match_window_ms).into());
    o.integer("half_life_s", (*half_life_s).into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::read;

    #[test]
    fn paths_name_a_key() {
        let rows = [
            ("/v1/admin/keys/318/realism", Some(318)),
            ("/v1/admin/keys/18446744073709551615/realism", Some(u64::MAX)),
            ("/v1/admin/keys/18446744073709551616/realism", None),
            ("/v1/admin/keys//realism", None),
            ("/v1/admin/keys/+3/realism", None),
            ("/v1/admin/keys/-3/realism", None),
            ("/v1/admin/keys/3/realism/", None),
            ("/v1/admin/keys/3", None),
            ("/v1/admin/keys/3/4/realism", None),
        ];
        for (path, expected) in rows {
            assert_eq!(key_of(path).map(|key| key.0), expected, "{path}");
        }
        println!("paths of keys: {} cases", rows.len());
    }

    #[test]
    fn bodies_name_a_set_and_nothing_else() {
        let sets = RealismSets::default();
        let rows = [
            (r#"{"set":"venue"}"#, Ok(Some("venue"))),
            (r#"{"set":null}"#, Ok(None)),
            ("{}", Err("set: is required")),
            (r#"{"set":"Venue"}"#, Err("set: is not null or one of kind, venue, thin, brutal")),
            (r#"{"set":""}"#, Err("set: is not null or one of kind, venue, thin, brutal")),
            (r#"{"set":5}"#, Err("set: is not null or one of kind, venue, thin, brutal")),
            (r#"{"set":["venue"]}"#, Err("set: is not null or one of kind, venue, thin, brutal")),
            (r#"{"set":"venue","n":3}"#, Err("n: is not a field; allowed is set")),
        ];
        for (body, expected) in rows {
            let value = read::json(body.as_bytes()).expect("JSON");
            let found = set_of(&value, &sets).map_err(|refusal| match refusal {
                Refusal::Fields(problems) => problems.message(),
                other => panic!("{other:?}"),
            });
            assert_eq!(found, expected.map(|set| set.map(str::to_owned)).map_err(str::to_owned), "{body}");
        }
        println!("bodies of sets: {} cases", rows.len());
    }
}
