//! The calls around keys that venue clients make (gateway/docs/venue-clients.md §8). A key of this server is all they need:
//! requests are signed with the secret and the passphrase, and these signatures are not verified.

use super::{address_login, constants};
use crate::api::refuse::unexpected;
use crate::http::auth;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Route, joined};
use crate::http::schema::{Param, TEXT};
use engine::command::{Answer, Command, Query};
use engine::user::Permissions;

/// The secret of every key: base64 that decodes.
const SECRET: &str = "c3Zj";
/// The passphrase of every key: any text.
const PASSPHRASE: &str = "svc";

record! {
    /// What a venue client signs its requests with. Only the key is checked here.
    #[serde(rename_all = "camelCase")]
    pub struct VenueCredentials<'a> {
        api_key: &'a str = "4f0c9d2a-0011-8233-9455-66778899aabb",
            "The key: that of the request, or the UUID of the address's key.";
        secret: &'a str = SECRET, "URL-safe base64. Never verified.";
        passphrase: &'a str = PASSPHRASE, "Never verified.";
    }

    /// Keys as venue clients list them.
    #[serde(rename_all = "camelCase")]
    pub struct VenueKeys<'a> {
        api_keys: Vec<&'a str> = vec!["svc_live_4f0c9d2"],
            "Strict: the key of the request, in the form in which it was sent. Plain: the prefixes of all keys.";
    }

    /// Whether the key may only read.
    pub struct ClosedOnly {
        closed_only: bool = false, "The key may not trade.";
    }
}

/// The headers of an address that signs for itself.
const SIGNED: &[Param] = &[
    Param::header("POLY_ADDRESS", TEXT, "Without a key: the address that signs, 0x and 40 hexadecimal digits."),
    Param::header("POLY_SIGNATURE", TEXT, "Its EIP-712 signature of ClobAuth, 0x and 130 hexadecimal digits."),
    Param::header("POLY_TIMESTAMP", TEXT, "Unix seconds, at most 60 away from now."),
    Param::header("POLY_NONCE", TEXT, "An integer of at most 256 bits. An address has one key for each nonce."),
];
/// Refusals of an address, besides those of the checks of a key.
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

pub const ROUTES: &[Route] = &joined::<{ OWN.len() + constants::KEYS.len() }>(OWN, constants::KEYS);

const OWN: &[Route] = &[
    Route::post("/v1/auth/api-key", "create_venue_key")
        .about("The credentials of a venue client: its key again, or that of the address that signs.")
        .at_root()
        .auth(Auth::KeyOrAddress)
        .body(BodyKind::Ignored)
        .no_store()
        .params(SIGNED)
        .gives::<VenueCredentials<'_>>(200)
        .fails(LOGIN)
        .run(|call| Box::pin(credentials(call))),
    Route::get("/v1/auth/derive-api-key", "derive_venue_key")
        .about("The same as creating them: the answer follows from the address and its nonce.")
        .at_root()
        .auth(Auth::KeyOrAddress)
        .no_store()
        .params(SIGNED)
        .gives::<VenueCredentials<'_>>(200)
        .fails(LOGIN)
        .run(|call| Box::pin(credentials(call))),
    Route::get("/v1/auth/api-keys", "list_venue_keys")
        .about("Keys of the account, as far as their texts are known.")
        .at_root()
        .auth(Auth::Key)
        .gives::<VenueKeys<'_>>(200)
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/auth/ban-status/closed-only", "get_closed_only")
        .about("Whether the key may only read.")
        .at_root()
        .auth(Auth::Key)
        .gives::<ClosedOnly>(200)
        .answer(closed_only),
];

async fn credentials(call: Call) -> Outcome {
    if call.caller.is_none() {
        let credentials = address_login::credentials(&call).await?;
        return Ok(Reply::json(&VenueCredentials {
            api_key: credentials.api_key(),
            secret: &credentials.secret,
            passphrase: &credentials.passphrase,
        }));
    }
    Ok(Reply::json(&VenueCredentials { api_key: shown(&call)?, secret: SECRET, passphrase: PASSPHRASE }))
}

/// The key as the request shows it.
fn shown(call: &Call) -> Result<&str, Refusal> {
    let front = call.front();
    let key = auth::credentials(&call.headers, &front.key_aliases, &front.settings.brand.key_prefix).key;
    key.and_then(|key| std::str::from_utf8(key).ok()).ok_or_else(|| Code::InternalError.into())
}

/// Only hashes of keys are stored: the key of the request is the only one whose text is known. A client that does not find
/// its exact key here takes it for revoked and derives another one.
async fn list(call: Call) -> Outcome {
    if call.dialect().is_strict() {
        return Ok(Reply::json(&VenueKeys { api_keys: vec![shown(&call)?] }));
    }
    match call.ask(Command::Query(Query::Keys)).await? {
        Answer::Keys(known) => Ok(Reply::json(&VenueKeys { api_keys: known.iter().map(|key| &*key.prefix).collect() })),
        other => Err(unexpected(&other, call.now)),
    }
}

fn closed_only(call: &Call) -> Outcome {
    Ok(Reply::json(&ClosedOnly { closed_only: call.caller().permissions != Permissions::ReadTrade }))
}
