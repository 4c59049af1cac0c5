//! Admission: steps 4 to 6 of [`super::pipeline`]. A key or a session token becomes a caller, or a refusal with the
//! code of the first check that fails. A request that gets this far counts against the limits of its payer.

use super::auth::{self, Credentials};
use super::call::Caller;
use super::code::Code;
use super::dialect;
use super::limit::{InFlight, Payer, Source};
use super::pipeline::{Credential, Head};
use super::reply::Refusal;
use super::response_head::ResponseHead;
use super::route::{Auth, Permission, RateClass, Route};
use crate::app::{App, Edge};
use crate::engine_client::AskError;
use crate::http::front::Front;
use crate::reads::Reads;
use crate::settings::Local;
use engine::command::{Answer, Command, CreateUser};
use engine::directory::{Principal, Reservation};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::Permissions;
use engine::user::key::{effective, entitlement, grant_ended};
use futures_util::future::Either;
use hyper::Uri;
use hyper::header::{self, HeaderMap};
use std::future::{Ready, ready};
use std::rc::Rc;
use wire::query::Query;

/// The credential that a request needs. Most routes fix it; on the others it depends on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    Nothing,
    Key,
    Token,
    KeyOrToken,
}

impl Needed {
    pub(super) fn of(front: &Front, route: &Route, headers: &HeaderMap, uri: &Uri) -> Needed {
        match route.auth {
            Auth::Public => Needed::Nothing,
            Auth::Key => Needed::Key,
            Auth::Jwt => Needed::Token,
            Auth::KeyOrJwt => Needed::KeyOrToken,
            Auth::KeyUnless(shape) => {
                let query = Query::read(uri.query().unwrap_or_default());
                if dialect::in_venue_shape(front, shape, headers, &query) { Needed::Nothing } else { Needed::Key }
            }
            Auth::KeyOrAddress => {
                let shown = auth::credentials(headers, &front.key_aliases, &front.settings.brand.key_prefix);
                // A proxy that is not configured as trusted makes every peer look local, so any client could sign.
                let is_direct = !front.settings.http.trusted_proxies.is_empty() || !is_forwarded(headers);
                let login = front.settings.compat.address_login && shown.key.is_none() && is_direct;
                if login { Needed::Nothing } else { Needed::Key }
            }
        }
    }
}

/// Whether a proxy forwarded the request.
fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key("x-forwarded-for") || headers.contains_key(header::FORWARDED)
}

/// The sender of a request, as far as its credential identifies one.
pub(super) enum Identity<'h> {
    /// The route has no limit and takes no credential.
    Exempt,
    /// The route needs no key, and the request shows no known one.
    Anonymous,
    /// The route needs no key, but the request shows a known one.
    Recognised(Key),
    Key(Key),
    /// A session token that is not verified yet.
    Token(&'h [u8]),
}

/// An admitted request.
#[derive(Default)]
pub(super) struct Admitted {
    /// `None` on public routes without a usable key.
    pub(super) caller: Option<Caller>,
    /// Holds the payer's slot of a request in flight.
    pub(super) in_flight: Option<InFlight>,
}

/// Step 4: reads the credential of the request.
///
/// # Errors
/// The credential that the route needs is missing, or a key is unknown.
pub(super) fn identify<'h>(
    app: &App,
    route: &Route,
    needed: Needed,
    head: &'h Head,
    now: Timestamp,
) -> Result<Identity<'h>, Refusal> {
    match route.rate {
        RateClass::Exempt => return Ok(Identity::Exempt),
        RateClass::Callback => return Ok(Identity::Anonymous),
        _ => {}
    }
    let (key, token) = match &head.credential {
        Credential::None => (None, None),
        Credential::KeyHash(hash) => (Some(hash.as_ref().and_then(|hash| Key::hashed(app, hash, now))), None),
        Credential::Slot(slot) => {
            (Some(app.reads.directory.principal_at(*slot).map(|principal| Key::of(&app.reads, principal, now))), None)
        }
        Credential::InHeaders => {
            let Credentials { key, token } =
                auth::credentials(&head.headers, &app.front.key_aliases, &app.front.settings.brand.key_prefix);
            let key = key.filter(|_| needed != Needed::Token);
            (key.map(|text| Key::find(app, text, now)), token)
        }
    };
    match (needed, key, token) {
        (Needed::Nothing, key, _) => Ok(key.flatten().map_or(Identity::Anonymous, Identity::Recognised)),
        (Needed::Key | Needed::KeyOrToken, Some(Some(key)), _) => Ok(Identity::Key(key)),
        (Needed::Key | Needed::KeyOrToken, Some(None), _) => Err(Code::InvalidKey.into()),
        (Needed::Key, None, _) => Err(Code::MissingApiKey.into()),
        (Needed::Token | Needed::KeyOrToken, _, Some(token)) => Ok(Identity::Token(token)),
        (Needed::Token, _, None) => Err(Refusal::new(Code::MissingAuth, "This route needs a session token.")),
        (Needed::KeyOrToken, _, None) => Err(Code::MissingAuth.into()),
    }
}

/// Step 5: for a request that trades, reads the counters of its key and, if the core is on this thread, the rows of its
/// user that most commands read. With a million users these rows are not in a cache. Reading them all here lets the
/// memory accesses overlap.
pub(super) fn prefetch(edge: &Rc<Edge>, route: &Route, identity: &Identity<'_>) {
    if let Identity::Key(key) = identity
        && route.permission == Some(Permission::Trade)
    {
        let (front, slot, user) = (&edge.app.front, key.principal.slot, key.caller.user);
        std::hint::black_box(front.limits.warm(slot, user) ^ front.usage.warm(slot));
        edge.engine.warm(user);
    }
}

/// Step 6: checks whether the sender may make this request now, and counts it in the windows of its payer: the key, the
/// user of a token, or the address.
///
/// # Errors
/// The code of the first check that fails.
/// The code of the first check that fails.
pub(super) fn admit<'a>(
    edge: &'a Rc<Edge>,
    route: &'a Route,
    identity: Identity<'a>,
    peer: Source,
    now: Timestamp,
    response: &'a mut ResponseHead<'_>,
) -> Either<Ready<Result<Admitted, Refusal>>, impl Future<Output = Result<Admitted, Refusal>> + 'a> {
    let app = &*edge.app;
    Either::Left(ready(match identity {
        Identity::Exempt => Ok(Admitted::default()),
        Identity::Key(key) => key.admitted(edge, route.permission, now, response),
        Identity::Recognised(key)
            if key.refusal(&app.front, now).is_none()
                && !app.front.gatekeeper.restricts(key.caller.user, &app.reads.directory) =>
        {
            response.private = true;
            key.admitted(edge, None, now, response)
        }
        Identity::Anonymous if route.rate == RateClass::Callback => {
            app.front.limits.callback(peer, now).map(|()| Admitted::default())
        }
        Identity::Recognised(_) | Identity::Anonymous => {
            app.front.limits.public(peer, now).map(|()| Admitted::default())
        }
        // Boxed because few requests show a token: otherwise every exchange would have room for this future.
        Identity::Token(token) => {
            return Either::Right(Box::pin(async move {
                let admitted = by_token(edge, token, now, response).await?;
                if route.rate == RateClass::Bootstrap {
                    app.front.limits.bootstrap(peer, now)?;
                }
                Ok::<_, Refusal>(admitted)
            }));
        }
    }))
}

/// A known key, usable or not.
pub(crate) struct Key {
    principal: Principal,
    caller: Caller,
    beta_cutoff: Option<Timestamp>,
}

impl Key {
    /// The key with this text. Takes the same time for an unknown key and for a text that cannot be a key.
    pub(crate) fn find(app: &App, text: &[u8], now: Timestamp) -> Option<Key> {
        Key::hashed(app, &auth::key_hash(text, &app.front.settings.brand.key_prefix)?, now)
    }

    fn hashed(app: &App, hash: &[u8; 32], now: Timestamp) -> Option<Key> {
        app.reads.directory.principal(hash).map(|principal| Key::of(&app.reads, principal, now))
    }

    /// The key with the tier and permissions that it has at `now`.
    pub(crate) fn of(reads: &Reads, principal: Principal, now: Timestamp) -> Key {
        let grant = principal.standing(now);
        let served = effective(
            (principal.tier, principal.permissions),
            principal.created_at,
            principal.beta_until,
            grant,
            reads.rules.free_trade_since,
            now,
        );
        let caller = Caller {
            user: principal.user,
            key: Some(principal.key),
            tier: served.tier,
            permissions: served.permissions,
            grant,
            expires_at: principal.expires_at,
        };
        Key { principal, caller, beta_cutoff: principal.beta_until.filter(|_| served.beta_cut_off) }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether the request showed the key's UUID alias.
    pub(crate) fn is_alias(&self) -> bool {
        self.principal.by_alias
    }

    /// Why the key is not usable, or `None`.
    pub(crate) fn refusal(&self, front: &Front, now: Timestamp) -> Option<Code> {
        if self.principal.revoked {
            Some(Code::InvalidKey)
        } else if front.gatekeeper.disables(self.principal.key) {
            Some(Code::KeyDeactivated)
        } else if self.principal.expires_at.is_some_and(|end| end <= now) {
            Some(Code::KeyExpired)
        } else {
            None
        }
    }

    /// The checks in their order: usable, within the windows, owner known and not restricted, permission.
    fn admitted(
        self,
        edge: &Rc<Edge>,
        needs: Option<Permission>,
        now: Timestamp,
        response: &mut ResponseHead<'_>,
    ) -> Result<Admitted, Refusal> {
        let app = &*edge.app;
        let payer = Payer::Key(self.principal.slot);
        let limits = &app.front.limits;
        if !self.principal.revoked {
            response.beta_cutoff = self.beta_cutoff;
        }
        if let Some(code) = self.refusal(&app.front, now) {
            if !self.principal.revoked {
                response.rate = Some(limits.peek(payer, self.caller.tier, now));
            }
            return Err(code.into());
        }
        let in_flight = match limits.request(payer, self.caller.tier, now) {
            Ok((rate, in_flight)) => {
                response.rate = Some(rate);
                response.used.key = Some(self.principal.slot);
                in_flight
            }
            Err((rate, refusal)) => {
                response.rate = Some(rate);
                return Err(refusal);
            }
        };
        if !app.reads.directory.exists(self.caller.user) {
            return Err(Code::KeyOwnerNotFound.into());
        }
        if app.front.gatekeeper.restricts(self.caller.user, &app.reads.directory) {
            return Err(Code::AccessRestricted.into());
        }
        if needs == Some(Permission::Trade) && self.caller.permissions != Permissions::ReadTrade {
            return Err(Code::InsufficientPermission.into());
        }
        if limits.note_used(self.principal.slot, now) {
            edge.last_used.add(self.caller.user, self.principal.key);
        }
        Ok(Admitted { caller: Some(self.caller), in_flight: Some(in_flight) })
    }
}

/// Step 6 for a session token.
async fn by_token(
    edge: &Rc<Edge>,
    token: &[u8],
    now: Timestamp,
    response: &mut ResponseHead<'_>,
) -> Result<Admitted, Refusal> {
    let app = &*edge.app;
    // The issuer of a token uses the wall clock.
    let claims = app.front.identity.verify(token, app.reads.clock.wall_now())?;
    let (user, email) = match app.reads.directory.by_sub(&claims.sub) {
        Some(user) => (user, claims.email),
        None => (first_sight(edge, claims.sub, claims.email, None, now).await?, None),
    };
    let grant = app.reads.directory.standing(user, now);
    let tier = entitlement(grant, now);
    let limits = &app.front.limits;
    let in_flight = match limits.request(Payer::User(user), tier, now) {
        Ok((rate, in_flight)) => {
            response.rate = Some(rate);
            in_flight
        }
        Err((rate, refusal)) => {
            response.rate = Some(rate);
            return Err(refusal);
        }
    };
    if app.front.gatekeeper.restricts(user, &app.reads.directory) {
        return Err(Code::AccessRestricted.into());
    }
    note_email(edge, user, email, now);
    // The permissions that a new key gets by default.
    let permissions = if grant_ended(grant, now) { Permissions::Read } else { Permissions::ReadTrade };
    let caller = Caller { user, key: None, tier, permissions, grant, expires_at: None };
    Ok(Admitted { caller: Some(caller), in_flight: Some(in_flight) })
}

/// A user without an address gets that of the token. The request does not wait for it: a read needs no log. If it cannot
/// be noted now, a later token brings it again; until that is known, tokens of the user bring nothing.
fn note_email(edge: &Rc<Edge>, user: UserId, email: Option<String>, now: Timestamp) {
    let reads = &edge.app.reads;
    let Some(email) = email.filter(|_| reads.rules.formats.is_newest() && !reads.directory.has_email(user)) else {
        return;
    };
    let Some(noting) = NotingEmail::begin(edge, user) else { return };
    tokio::task::spawn_local(async move {
        drop(noting.edge.engine.ask(user, Command::NoteEmail { email }, now).await);
    });
}

/// The one attempt to note the address of a user. It ends when this is dropped.
struct NotingEmail {
    edge: Rc<Edge>,
    user: UserId,
}

impl NotingEmail {
    fn begin(edge: &Rc<Edge>, user: UserId) -> Option<NotingEmail> {
        let is_first = edge.noting_email.borrow_mut().insert(user);
        is_first.then(|| NotingEmail { edge: Rc::clone(edge), user })
    }
}

impl Drop for NotingEmail {
    fn drop(&mut self) {
        self.edge.noting_email.borrow_mut().remove(&self.user);
    }
}

/// Creates the user of a new `sub`, with `plan` if given. Continues when the request is dropped, so that a reservation
/// is always used or returned.
pub(crate) async fn first_sight(
    edge: &Rc<Edge>,
    sub: String,
    email: Option<String>,
    plan: Option<Local>,
    now: Timestamp,
) -> Result<UserId, Refusal> {
    let user = match edge.app.reads.directory.reserve(&sub) {
        Reservation::Known(user) => return Ok(user),
        Reservation::Pending => return Err(Code::AuthStateIncomplete.into()),
        Reservation::Reserved(user) => user,
    };
    let (grant, api_balance) = (plan.map(|plan| plan.tier), plan.map(|plan| plan.balance));
    let create = Command::CreateUser(CreateUser { sub: Some(sub), email, grant, api_balance });
    let creating = Rc::clone(edge);
    let created = tokio::task::spawn_local(async move {
        let answer = creating.engine.ask(user, create, now).await;
        match answer {
            Ok(Answer::Created(_)) | Err(AskError::Overshot(_)) => Ok(()),
            Ok(_) | Err(AskError::Busy) => {
                creating.app.reads.directory.give_back(user);
                Err(Code::ServerBusy)
            }
            Err(AskError::Unknown) => Err(Code::AuthStateIncomplete),
        }
    });
    created.await.map_err(|_| Code::InternalError)??;
    Ok(user)
}
