//! Accounts of addresses (gateway/docs/venue-clients.md §8): a client that signs for an address gets its account and a key
//! of it, on a server with `[venue] address_login`. This is the first call of a venue client, before it has any key. On a
//! server that only its own machine reaches, the account gets the plan of `[local]`; elsewhere it is a free one.
//!
//! Key, secret and passphrase are derived from the server's secret, the address and the nonce: the same request always gets
//! the same answer, and only the hash of the key is stored.

use super::signature::{Address, Claim, NoClaim, hexadecimal};
use crate::api::keys::request::{self, NewKey};
use crate::api::refuse::unexpected;
use crate::engine_client::AskError;
use crate::http::admission::first_sight;
use crate::http::auth::RawKey;
use crate::http::call::{Call, Caller};
use crate::http::code::Code;
use crate::http::reply::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;
use engine::command::{Answer, Command, IssueKey};
use engine::directory::Directory;
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::Permissions;
use engine::user::key::{entitlement, grant_ended};
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;
use zeroize::Zeroizing;

/// Largest distance between the time of a signature and the wall clock or the server's time. The two differ after a journal
/// from the future; a client that reads the time of this server signs by server time.
const SIGNED_WITHIN_SECS: u64 = 60;
/// The subject of the account of an address begins with it.
const SUB: &str = "address:";
/// Name of the keys that are made here.
const KEY_NAME: &str = "address login";

/// What a venue client signs its requests with. Only `key` is checked here.
pub struct Credentials {
    /// A key that is known by its UUID.
    key: RawKey,
    pub secret: Zeroizing<String>,
    pub passphrase: Zeroizing<String>,
}

impl Credentials {
    pub fn api_key(&self) -> &str {
        self.key.expose_alias()
    }

    /// The hash of the key.
    pub(super) fn key_hash(&self) -> [u8; 32] {
        self.key.secret().hash
    }

    /// Those of an address and a nonce, on a server of this brand and with this secret.
    pub(super) fn of(call: &Call, address: Address, nonce: &[u8; 32]) -> Credentials {
        let config = &call.front().settings;
        let derived = |what: &str| {
            let secret = config.auth.server_secret.expose().as_bytes();
            let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
            // The label is first and ends with a colon; the other parts have fixed lengths.
            for part in [b"address-login:", what.as_bytes(), b":", &address.0, nonce] {
                mac.update(part);
            }
            Zeroizing::new(<[u8; 32]>::from(mac.finalize().into_bytes()))
        };
        let passphrase = derived("passphrase").iter().map(|byte| format!("{byte:02x}")).collect();
        Credentials {
            key: RawKey::of(&config.brand.key_prefix, &config.brand.key_env, &derived("key")),
            secret: Zeroizing::new(URL_SAFE.encode(&derived("secret")[..])),
            passphrase: Zeroizing::new(passphrase),
        }
    }
}

/// The address whose account that user is, if it was made here.
pub(super) fn address_of(directory: &Directory, user: UserId) -> Option<Address> {
    let text = directory.sub(user)?.strip_prefix(SUB)?;
    hexadecimal(text.as_bytes()).map(Address)
}

/// The credentials of the address that signs this request: makes its user at first sight, and the key when the nonce is
/// new.
///
/// # Errors
/// 401 for anything but a fresh signature of the address; then the refusals of a new key (gateway/docs/keys.md §3).
pub async fn credentials(call: &Call) -> Result<Credentials, Refusal> {
    let claim = verified(call)?;
    let (front, directory) = (call.front(), &call.reads().directory);
    let sub = format!("{SUB}{}", claim.address);
    let user = match directory.by_sub(&sub) {
        Some(user) => user,
        None => {
            newcomer(call, &sub)?;
            // On a server without paid keys an account with a plan could not get a key.
            let plan = front.settings.local.filter(|_| front.settings.flags.paid_keys_enabled);
            first_sight(&call.edge, sub, None, plan, call.now).await?
        }
    };
    if front.gatekeeper.restricts(user, directory) {
        return Err(Code::AccessRestricted.into());
    }
    let credentials = Credentials::of(call, claim.address, &claim.nonce);
    match directory.principal(&credentials.key_hash()) {
        Some(known) if known.revoked => Err(Code::InvalidKey.into()),
        Some(known) if front.gatekeeper.disables(known.key) => Err(Code::KeyDeactivated.into()),
        Some(known) if known.expires_at.is_some_and(|end| end <= call.now) => Err(Code::KeyExpired.into()),
        Some(_) => Ok(credentials),
        None => issued(call, user, credentials).await,
    }
}

/// Refuses an account to an address: by the gates that its key would not pass, and by the windows of first keys of the
/// source address (gateway/docs/wire.md §8), because an account is permanent.
fn newcomer(call: &Call, sub: &str) -> Result<(), Refusal> {
    let front = call.front();
    if front.gatekeeper.restricts_newcomer(sub) {
        return Err(Code::AccessRestricted.into());
    }
    if front.settings.flags.closed_beta_mode && !front.gatekeeper.lists_newcomer(sub) {
        return Err(Code::ClosedBeta.into());
    }
    let cap = front.settings.flags.cohort_cap;
    if cap > 0 && call.reads().directory.holders_count(call.now) as u64 >= cap {
        return Err(Code::CohortFull.into());
    }
    front.limits.bootstrap(call.source, call.now)
}

/// The claim of the request's headers, fresh and signed.
fn verified(call: &Call) -> Result<Claim<'_>, Refusal> {
    let claim = Claim::read(&call.headers).map_err(|error| match error {
        NoClaim::Absent => Refusal::from(Code::MissingApiKey),
        NoClaim::Malformed(name) => Refusal::new(Code::InvalidToken, format!("{name} is missing or malformed.")),
    })?;
    let is_fresh = |now: Timestamp| claim.signed_at_secs().abs_diff(now.secs()) <= SIGNED_WITHIN_SECS;
    if !is_fresh(call.reads().clock.wall_now()) && !is_fresh(call.now) {
        let message = "POLY_TIMESTAMP is more than 60 seconds away from the time of this server.";
        return Err(Refusal::new(Code::TokenExpired, message));
    }
    if !claim.is_signed() {
        return Err(Refusal::new(Code::InvalidToken, "The signature is not that of the address."));
    }
    Ok(claim)
}

/// Issues the key, with the checks of every key.
async fn issued(call: &Call, user: UserId, credentials: Credentials) -> Result<Credentials, Refusal> {
    let directory = &call.reads().directory;
    let grant = directory.standing(user, call.now);
    let permissions = if grant_ended(grant, call.now) { Permissions::Read } else { Permissions::ReadTrade };
    let caller = Caller { user, key: None, tier: entitlement(grant, call.now), permissions, grant, expires_at: None };
    let tier = request::admitted(&NewKey::default(), &caller, call.front(), directory, call.now)?;
    let issue = IssueKey {
        secret: credentials.key.secret(),
        name: Some(KEY_NAME.to_owned()),
        tier,
        permissions: None,
        bootstrap: false,
        by: None,
    };
    let answer = match call.edge.engine.ask(user, Command::IssueKey(issue), call.now).await {
        Ok(answer) => answer,
        Err(AskError::Overshot(answer)) => *answer,
        Err(AskError::Busy) => return Err(Code::ServerBusy.into()),
        Err(AskError::Unknown) => return Err(Code::PersistenceUnknown.into()),
    };
    match answer {
        Answer::Key(_) => Ok(credentials),
        other => Err(unexpected(&other, call.now)),
    }
}
