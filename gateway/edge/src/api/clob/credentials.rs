//! The calls around keys that venue clients make (venue.md §8). A key of this server is all they need; what they call
//! secret and passphrase signs requests in a way that nobody here looks at.

use super::address_login;
use super::housekeeping::{DONE, done};
use crate::api::refuse::unexpected;
use crate::http::auth;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Route};
use crate::http::schema::{BOOLEAN, Param, Schema, Shape, TEXT, field};
use engine::command::{Answer, Command, Query};
use engine::user::Permissions;
use wire::write::string;

/// Said where a client wants something to sign with: base64 that decodes, and any text.
const SECRET: &str = "c3Zj";
const PASSPHRASE: &str = "svc";

const CREDENTIALS: Schema = Schema::Object(&Shape::new(
    "VenueCredentials",
    "What a venue client signs its requests with. The key alone is looked at here.",
    &[
        field("apiKey", TEXT, "The key: what the request showed, or the UUID of the address's key."),
        field("secret", TEXT, "URL-safe base64. Never verified."),
        field("passphrase", TEXT, "Never verified."),
    ],
));
const CREDENTIALS_EXAMPLE: &str = r#"{
    "apiKey": "4f0c9d2a-0011-8233-9455-66778899aabb", "secret": "c3Zj", "passphrase": "svc"
}"#;
const KEYS: Schema = Schema::Object(&Shape::new(
    "VenueKeys",
    "Keys as venue clients list them.",
    &[field(
        "apiKeys",
        Schema::Array(&TEXT),
        "Strict: the key that asks, in the form in which it was shown. Plain: the prefixes of all keys.",
    )],
));
const CLOSED_ONLY: Schema = Schema::Object(&Shape::new(
    "ClosedOnly",
    "Whether the key may only look.",
    &[field("closed_only", BOOLEAN, "The key may not trade.")],
));
const VALID: Schema = Schema::Object(&Shape::new(
    "KeyValidity",
    "Whether a read-only key of the venue's kind is valid: never, since there are none.",
    &[field("valid", BOOLEAN, "Always false.")],
));
const NOTHING: Schema = Schema::List { of: &Schema::Any, min: 0, max: 0 };
const READONLY_KEYS: Schema = Schema::Object(&Shape::new(
    "ReadonlyKeys",
    "Read-only keys of the venue's kind: there are none.",
    &[field("readonlyApiKeys", NOTHING, "Always empty.")],
));

/// The headers of an address that signs for itself.
const SIGNED: &[Param] = &[
    Param::header("POLY_ADDRESS", TEXT, "Without a key: the address that signs, 0x and 40 hexadecimal digits."),
    Param::header("POLY_SIGNATURE", TEXT, "Its EIP-712 signature of ClobAuth, 0x and 130 hexadecimal digits."),
    Param::header("POLY_TIMESTAMP", TEXT, "Unix seconds, at most 60 away from now."),
    Param::header("POLY_NONCE", TEXT, "A number of at most 256 bits: each has a key of its own."),
];
/// What an address can be refused with beside the checks of a key.
const LOGIN: &[Code] = &[
    Code::InvalidToken,
    Code::TokenExpired,
    Code::AuthStateIncomplete,
    Code::ClosedBeta,
    Code::CohortFull,
    Code::TierKeyLimitExceeded,
    Code::TradeInProgress,
    Code::ApiProComingSoon,
];

pub const ROUTES: &[Route] = &[
    Route::post("/v1/auth/api-key", "create_venue_key")
        .about("The credentials of a venue client: its key again, or that of the address that signs.")
        .at_root()
        .auth(Auth::KeyOrAddress)
        .body(BodyKind::Ignored)
        .no_store()
        .params(SIGNED)
        .gives_shape(200, &CREDENTIALS, CREDENTIALS_EXAMPLE)
        .fails(LOGIN)
        .run(|call| Box::pin(credentials(call))),
    Route::get("/v1/auth/derive-api-key", "derive_venue_key")
        .about("The same as creating them: the answer follows from the address and its nonce.")
        .at_root()
        .auth(Auth::KeyOrAddress)
        .no_store()
        .params(SIGNED)
        .gives_shape(200, &CREDENTIALS, CREDENTIALS_EXAMPLE)
        .fails(LOGIN)
        .run(|call| Box::pin(credentials(call))),
    Route::get("/v1/auth/api-keys", "list_venue_keys")
        .about("Keys of the account, as far as their texts are known.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &KEYS, r#"{"apiKeys": ["svc_live_4f0c9d2"]}"#)
        .run(|call| Box::pin(list(call))),
    Route::delete("/v1/auth/api-key", "delete_venue_key")
        .about("Nothing: a key is revoked by DELETE /v1/keys/{id}.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &DONE, r#""OK""#)
        .run(|_| Box::pin(done())),
    Route::get("/v1/auth/ban-status/closed-only", "get_closed_only")
        .about("Whether the key may only look.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &CLOSED_ONLY, r#"{"closed_only": false}"#)
        .run(|call| Box::pin(closed_only(call))),
    Route::get("/v1/auth/readonly-api-keys", "list_readonly_keys")
        .about("Keys of a kind that there is not: none.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &READONLY_KEYS, r#"{"readonlyApiKeys": []}"#)
        .run(|_| Box::pin(std::future::ready(Ok(Reply::json(br#"{"readonlyApiKeys":[]}"#.to_vec()))))),
    none("/v1/auth/readonly-api-key", "get_readonly_keys"),
    unsupported("/v1/auth/readonly-api-key", "create_readonly_key"),
    gone("/v1/auth/readonly-api-key", "delete_readonly_key").auth(Auth::Key),
    invalid("/v1/auth/validate-readonly-api-key", "validate_readonly_key"),
    invalid("/v1/auth/readonly-api-key/validate", "validate_readonly_key_below"),
    none("/v1/auth/builder-api-key", "list_builder_keys"),
    unsupported("/v1/auth/builder-api-key", "create_builder_key"),
    // Clients send it with the builder's headers alone.
    gone("/v1/auth/builder-api-key", "delete_builder_key"),
];

const fn none(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Keys of a kind that there is not: none.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &NOTHING, "[]")
        .run(|_| Box::pin(std::future::ready(Ok(Reply::json(b"[]".to_vec())))))
}

const fn unsupported(path: &'static str, name: &'static str) -> Route {
    Route::post(path, name)
        .about("Refused: keys of this kind are not issued here.")
        .at_root()
        .auth(Auth::Key)
        .body(BodyKind::Ignored)
        .fails(&[Code::InvalidRequest])
        .run(|_| Box::pin(std::future::ready(Err(Refusal::saying(Code::InvalidRequest, NOT_ISSUED)))))
}

const NOT_ISSUED: &str = "Keys of this kind are not issued here; a read-only key is made by POST /v1/keys.";

const fn gone(path: &'static str, name: &'static str) -> Route {
    Route::delete(path, name)
        .about("Nothing: there are no keys of this kind.")
        .at_root()
        .gives_shape(200, &DONE, r#""OK""#)
        .run(|_| Box::pin(done()))
}

const fn invalid(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Whether a read-only key of the venue's kind is valid: never.")
        .at_root()
        .gives_shape(200, &VALID, r#"{"valid": false}"#)
        .run(|_| Box::pin(std::future::ready(Ok(Reply::object(|o| o.boolean("valid", false))))))
}

async fn credentials(call: Call) -> Outcome {
    if call.caller.is_none() {
        let credentials = address_login::credentials(&call).await?;
        return Ok(Reply::object(|o| {
            o.text("apiKey", credentials.api_key());
            o.text("secret", &credentials.secret);
            o.text("passphrase", &credentials.passphrase);
        }));
    }
    let key = shown(&call)?;
    Ok(Reply::object(|o| {
        o.text("apiKey", key);
        o.word("secret", SECRET);
        o.word("passphrase", PASSPHRASE);
    }))
}

/// The key as the request shows it.
fn shown(call: &Call) -> Result<&str, Refusal> {
    let (front, brand) = (&call.app().front, &call.front().settings.brand);
    let key = auth::credentials(&call.headers, &front.key_aliases, &brand.key_prefix).key;
    key.and_then(|key| std::str::from_utf8(key).ok()).ok_or_else(|| Code::InternalError.into())
}

/// Only hashes are kept: the one key that can be told is the one that asks. A client that does not find its key here,
/// letter by letter, takes it for revoked and derives another one.
async fn list(call: Call) -> Outcome {
    if call.dialect().is_strict() {
        return Ok(keys([shown(&call)?]));
    }
    match call.ask(Command::Query(Query::Keys)).await? {
        Answer::Keys(known) => Ok(keys(known.iter().map(|key| &*key.prefix))),
        other => Err(unexpected(&other, call.now)),
    }
}

fn keys<'a>(texts: impl IntoIterator<Item = &'a str>) -> Reply {
    Reply::object(|o| o.array("apiKeys", texts, string))
}

async fn closed_only(call: Call) -> Outcome {
    let reads_only = call.caller().permissions != Permissions::ReadTrade;
    Ok(Reply::object(|o| o.boolean("closed_only", reads_only)))
}
