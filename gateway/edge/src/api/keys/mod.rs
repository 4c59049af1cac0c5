//! API keys: issue, list, rename, revoke, rotate, usage; the tiers; socket tokens (`gateway/docs/keys.md §2`).

pub mod request;
mod usage;
pub mod view;

use super::refuse::unexpected;
use crate::engine_client::AskError;
use crate::http::auth::RawKey;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::containment::KeyAction;
use crate::http::record::{Example, value};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, RateClass, Route};
use crate::http::scalar;
use crate::http::schema::{self, Param, Schema};
use crate::http::ticket;
use engine::command::{Answer, Command, IssueKey, Query};
use engine::id::KeyId;
use engine::user::{Permissions, Tier};
use engine::view::KeyView;
use request::{KeyChange, NewKey, admitted};
use view::{ApiKey, IssuedKey, KeyRevoked, KeyTier, Moment, Nothing, RotatedKey, SocketToken};
use wire::fields::Params;
use wire::value::Value;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
const ISSUE: &[Code] = &[
    Code::InsufficientPermission,
    Code::InvalidBody,
    Code::ValidationFailed,
    Code::ClosedBeta,
    Code::ApiProComingSoon,
    Code::TierRequiresUpgrade,
    Code::CohortFull,
    Code::TierKeyLimitExceeded,
    Code::TradeInProgress,
    Code::ServerBusy,
    Code::PersistenceUnknown,
];

/// The same, and that there is a key already.
const BOOTSTRAP: &[Code] = &[
    Code::InvalidBody,
    Code::ValidationFailed,
    Code::ClosedBeta,
    Code::ApiProComingSoon,
    Code::TierRequiresUpgrade,
    Code::CohortFull,
    Code::BootstrapNotAllowed,
    Code::TradeInProgress,
    Code::ServerBusy,
    Code::PersistenceUnknown,
];

/// An unknown tier; any other fault of the body is 422 (`gateway/docs/keys.md §3`).
const UNKNOWN_TIER: &[(u16, Code)] = &[(400, Code::ValidationFailed)];

pub const ROUTES: &[Route] = &[
    Route::post("/v1/keys/bootstrap", "bootstrap_key")
        .about("The first key of an account, by an identity token.")
        .auth(Auth::Jwt)
        .rate(RateClass::Bootstrap)
        .body(BodyKind::Optional)
        .takes::<NewKey>()
        .gives::<IssuedKey>(201)
        .no_store()
        .fails(BOOTSTRAP)
        .fails_at(UNKNOWN_TIER)
        .run(|call| Box::pin(issue(call, true))),
    Route::post("/v1/keys", "create_key")
        .about(concat!(
            "Creates a key. An account has at most five active keys. Any active key may create one, and a read-only key may ",
            "create one that trades. With keys.readonly_contained, a read-only key creates only keys with no more rights ",
            "than its own, and none if it expires."
        ))
        .auth(Auth::KeyOrJwt)
        .body(BodyKind::Optional)
        .takes::<NewKey>()
        .gives::<IssuedKey>(201)
        .no_store()
        .fails(ISSUE)
        .fails_at(UNKNOWN_TIER)
        .run(|call| Box::pin(issue(call, false))),
    Route::get("/v1/keys", "list_keys")
        .about("Keys that are not revoked, newest first.")
        .auth(Auth::KeyOrJwt)
        .params(&[
            Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows; default: 50."),
            Param::query("offset", schema::OFFSET, "Rows passed over; default: 0."),
        ])
        .gives_with::<Vec<ApiKey>>(200, Example::Of(|| value(&[ApiKey::listed_example()])))
        .fails(&[Code::ValidationFailed])
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/keys/tiers", "list_tiers")
        .about("What each tier may do.")
        .auth(Auth::KeyOrJwt)
        .gives::<Vec<KeyTier>>(200)
        .answer(tiers),
    Route::post("/v1/keys/ws-token", "mint_ws_token")
        .about("A token for one WebSocket handshake within a minute.")
        .auth(Auth::KeyOrJwt)
        .body(BodyKind::Optional)
        .takes::<Nothing>()
        .gives::<SocketToken>(200)
        .no_store()
        .fails(&[Code::InvalidBody])
        .answer(ws_token),
    Route::patch("/v1/keys/{id}", "rename_key")
        .about(concat!(
            "Another label, or none, and another set of realism for its later orders, where realism.self_service is on. Any ",
            "active key of the account may change any; a read-only key only itself where keys.readonly_contained is on."
        ))
        .auth(Auth::KeyOrJwt)
        .takes::<KeyChange>()
        .gives::<ApiKey>(200)
        .fails(&[
            Code::InsufficientPermission,
            Code::KeyNotFound,
            Code::InvalidBody,
            Code::ValidationFailed,
            Code::TradeInProgress,
            Code::ServerBusy,
            Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted,
        ])
        .run(|call| Box::pin(rename(call))),
    Route::delete("/v1/keys/{id}", "revoke_key")
        .about(concat!(
            "Ends a key immediately. Any active key of the account may end any; a read-only key only itself where ",
            "keys.readonly_contained is on."
        ))
        .auth(Auth::KeyOrJwt)
        .gives::<KeyRevoked>(200)
        .fails(&[
            Code::InsufficientPermission,
            Code::KeyNotFound,
            Code::TradeInProgress,
            Code::ServerBusy,
            Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted,
        ])
        .run(|call| Box::pin(revoke(call))),
    Route::post("/v1/keys/{id}/rotate", "rotate_key")
        .about(concat!(
            "A key in place of this one, which works for another 24 hours. Any active key of the account may replace any; a ",
            "read-only key only itself where keys.readonly_contained is on."
        ))
        .auth(Auth::KeyOrJwt)
        .body(BodyKind::Ignored)
        .gives::<RotatedKey>(201)
        .no_store()
        .fails(&[
            Code::InsufficientPermission,
            Code::KeyNotFound,
            Code::InvalidRequest,
            Code::TradeInProgress,
            Code::ServerBusy,
            Code::PersistenceUnknown,
        ])
        .run(|call| Box::pin(rotate(call))),
    usage::GET,
];

async fn issue(call: Call, bootstrap: bool) -> Outcome {
    let body = optional_object(&call)?;
    let request = NewKey::read(&body)?;
    let tier = admitted(&request, call.caller(), call.front(), &call.reads().directory, call.now)?;
    let raw = mint(&call)?;
    let (tier, permissions) = contained(&call, tier, request.permissions())?;
    let name = request.name.map(str::to_owned);
    let issue = IssueKey { secret: raw.secret(), name, tier, permissions, bootstrap, by: call.caller().key };
    match ask(&call, Command::IssueKey(issue)).await? {
        Answer::Key(key) => Ok(Reply::created(&IssuedKey::new(&key, &raw, moment(&call)))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// Tier and permissions of a key to be made, as far as the key that asks may make them: where read-only keys are contained,
/// no more than it has itself.
fn contained(
    call: &Call,
    tier: Option<Tier>,
    permissions: Option<Permissions>,
) -> Result<(Option<Tier>, Option<Permissions>), Refusal> {
    call.may(KeyAction::Create { tier, permissions })?;
    if !call.is_contained() {
        return Ok((tier, permissions));
    }
    Ok((Some(tier.unwrap_or(call.caller().tier)), Some(Permissions::Read)))
}

async fn rotate(call: Call) -> Outcome {
    let key = key(&call)?;
    call.may(KeyAction::Change(key))?;
    let raw = mint(&call)?;
    match ask(&call, Command::RotateKey { key, replacement: raw.secret(), by: call.caller().key }).await? {
        Answer::Rotated { replacement, old_expires_at } => {
            let issued = IssuedKey::new(&replacement, &raw, moment(&call));
            Ok(Reply::created(&RotatedKey::new(issued, key, scalar::Timestamp(old_expires_at))))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
    let offset = params.offset();
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let keys = match call.ask(Command::Query(Query::Keys)).await? {
        Answer::Keys(keys) => keys,
        other => return Err(unexpected(&other, call.now)),
    };
    let page = keys.iter().skip(offset).take(limit as usize);
    let page: Vec<_> = page.map(|key| listed(&call, key)).collect();
    Ok(Reply::json(&page))
}

async fn rename(call: Call) -> Outcome {
    let key = key(&call)?;
    call.may(KeyAction::Change(key))?;
    let body = call.json_object()?;
    let change = KeyChange::read(&body, &call.reads().rules.realism)?;
    if change.realism.is_some() && !call.front().settings.keys.realism_self_service {
        let why = "The operator of this server chooses the realism of keys.";
        return Err(Refusal::new(Code::InsufficientPermission, why));
    }
    let name = change.name.map(|name| Command::RenameKey { key, name: name.map(str::to_owned) });
    let set = change.realism.map(|set| Command::ChooseRealism { key, set: set.map(str::to_owned) });
    let mut changed = None;
    for command in [name, set].into_iter().flatten() {
        match call.ask(command).await? {
            Answer::Key(key) => changed = Some(key),
            other => return Err(unexpected(&other, call.now)),
        }
    }
    let changed = changed.ok_or(Code::InvalidBody)?;
    Ok(Reply::json(&listed(&call, &changed)))
}

async fn revoke(call: Call) -> Outcome {
    let key = key(&call)?;
    call.may(KeyAction::Change(key))?;
    match call.ask(Command::RevokeKey { key }).await? {
        Answer::Done => Ok(Reply::json(&KeyRevoked { message: format!("Key {key} is revoked.") })),
        other => Err(unexpected(&other, call.now)),
    }
}

fn tiers(call: &Call) -> Outcome {
    Ok(Reply::json(&KeyTier::all(&call.front().settings.limits)))
}

fn ws_token(call: &Call) -> Outcome {
    optional_object(call)?;
    let token = call.front().tickets.mint(call.caller(), call.now, call.reads().clock.wall_now());
    let token = token.map_err(|_| Code::InternalError)?;
    Ok(Reply::json(&SocketToken { token: &token, expires_in: ticket::TTL_SECS }))
}

/// The body, none being an empty one.
fn optional_object(call: &Call) -> Result<Value<'_>, Refusal> {
    match call.json()? {
        None => Ok(Value::Object(Vec::new())),
        Some(body @ Value::Object(_)) => Ok(body),
        Some(other) => Err(Refusal::new(Code::InvalidBody, format!("The body is {}, not an object.", other.kind()))),
    }
}

/// A key that was created is answered even after the deadline: no other answer contains its text.
async fn ask(call: &Call, command: Command) -> Result<Answer, Refusal> {
    match call.edge.engine.ask(call.caller().user, command, call.now).await {
        Ok(answer) => Ok(answer),
        Err(AskError::Overshot(answer)) => Ok(*answer),
        Err(AskError::Busy) => Err(Code::ServerBusy.into()),
        Err(AskError::Unknown) => Err(Code::PersistenceUnknown.into()),
    }
}

fn mint(call: &Call) -> Result<RawKey, Refusal> {
    let brand = &call.front().settings.brand;
    RawKey::mint(&brand.key_prefix, &brand.key_env).map_err(|_| Code::InternalError.into())
}

fn key(call: &Call) -> Result<KeyId, Refusal> {
    Ok(KeyId(call.id().ok_or(Code::KeyNotFound)?))
}

fn moment(call: &Call) -> Moment {
    Moment { now: call.now, grant: call.caller().grant, free_trade_since: call.reads().rules.free_trade_since }
}

fn listed<'a>(call: &'a Call, key: &'a KeyView) -> ApiKey<'a> {
    let realism = &call.reads().rules.realism.chosen_by_default().name;
    ApiKey::new(key, moment(call), call.front().gatekeeper.disables(key.id), realism)
}

#[cfg(test)]
mod tests;
