//! Who is let in: steps 4 to 10 of wire.md §7. A key or a session token becomes a caller, or a refusal with the code of the
//! first step that he fails; on the way the request counts against his limits.

use super::auth::{self, Credentials};
use super::call::Caller;
use super::code::Code;
use super::dialect;
use super::dress::Dress;
use super::limit::{InFlight, Payer, Source};
use super::reply::Refusal;
use super::route::{Auth, Permission, RateClass, Route};
use crate::app::{App, Edge};
use crate::engine_client::Late;
use crate::settings::Local;
use engine::command::{Answer, Command, CreateUser};
use engine::directory::{Principal, Reservation};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::Permissions;
use engine::user::key::{effective, entitlement, grant_ended};
use hyper::header::{self, HeaderMap};
use hyper::http::request::Parts;
use std::rc::Rc;
use wire::query::Query;

/// The credential that a request needs: what its route takes, as the request itself decides where that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needed {
    Nothing,
    Key,
    Token,
    KeyOrToken,
}

impl Needed {
    pub(super) fn of(app: &App, route: &Route, parts: &Parts) -> Needed {
        match route.auth {
            Auth::Public => Needed::Nothing,
            Auth::Key => Needed::Key,
            Auth::Jwt => Needed::Token,
            Auth::KeyOrJwt => Needed::KeyOrToken,
            Auth::KeyUnless(shape) => {
                let query = Query::read(parts.uri.query().unwrap_or_default());
                if dialect::in_venue_shape(app, shape, &parts.headers, &query) { Needed::Nothing } else { Needed::Key }
            }
            Auth::KeyOrAddress => {
                let shown = auth::credentials(&parts.headers, &app.front.key_aliases, &app.config.brand.key_prefix);
                // Behind a proxy that nobody told us of, every peer looks local: who signs there is anybody.
                let known_way = !app.config.http.trusted_proxies.is_empty() || !forwarded(&parts.headers);
                let login = app.config.compat.address_login && shown.key.is_none() && known_way;
                if login { Needed::Nothing } else { Needed::Key }
            }
        }
    }
}

/// Whether somebody passed the request on.
fn forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key("x-forwarded-for") || headers.contains_key(header::FORWARDED)
}

/// Steps 4 to 10: who asks, whether he may, and that it counts.
pub(super) async fn admitted(
    edge: &Rc<Edge>,
    (route, needed): (&Route, Needed),
    headers: &HeaderMap,
    source: Source,
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Option<Caller>, Option<InFlight>), Refusal> {
    if route.rate == RateClass::Exempt {
        return Ok((None, None));
    }
    let app = &*edge.app;
    let shown = auth::credentials(headers, &app.front.key_aliases, &app.config.brand.key_prefix);
    match (needed, shown) {
        (Needed::Nothing, Credentials { key, .. }) => {
            let key = key.and_then(|key| Key::find(app, key, now));
            recognised(edge, key, source, now, dress)
        }
        (Needed::Key | Needed::KeyOrToken, Credentials { key: Some(key), .. }) => {
            by_key(edge, Key::find(app, key, now), route, now, dress)
        }
        (Needed::Key, _) => Err(Code::MissingApiKey.into()),
        (Needed::Token | Needed::KeyOrToken, Credentials { token: Some(token), .. }) => {
            let (caller, in_flight) = by_token(edge, token, now, dress).await?;
            if route.rate == RateClass::Bootstrap {
                app.front.limits.bootstrap(source, now)?;
            }
            Ok((Some(caller), Some(in_flight)))
        }
        (Needed::Token, _) => Err(Refusal::saying(Code::MissingAuth, "This route needs a session token.")),
        (Needed::KeyOrToken, _) => Err(Code::MissingAuth.into()),
    }
}

/// What a plain request is let in as, at once: steps 4 to 10 of a route that takes a key or nothing. `hash` is that of the
/// key it shows; `Some(None)`: of a text that can be no key.
pub(super) fn admitted_plainly(
    edge: &Rc<Edge>,
    route: &Route,
    hash: Option<Option<[u8; 32]>>,
    source: Source,
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Option<Caller>, Option<InFlight>), Refusal> {
    if route.rate == RateClass::Exempt {
        return Ok((None, None));
    }
    let found = hash.flatten().and_then(|hash| Key::hashed(&edge.app, &hash, now));
    match (route.auth, hash) {
        (Auth::Public, _) => recognised(edge, found, source, now, dress),
        (_, Some(_)) => by_key(edge, found, route, now, dress),
        (_, None) => Err(Code::MissingApiKey.into()),
    }
}

/// Steps 5 to 10 of a public route: a usable key counts, else the address.
fn recognised(
    edge: &Rc<Edge>,
    key: Option<Key>,
    source: Source,
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Option<Caller>, Option<InFlight>), Refusal> {
    let app = &*edge.app;
    let usable = key.filter(|key| key.refusal(app, now).is_none());
    let Some(key) = usable.filter(|key| !app.front.gatekeeper.restricts(key.caller.user, &app.directory)) else {
        app.front.limits.public(source, now)?;
        return Ok((None, None));
    };
    dress.private = true;
    key.admitted(edge, None, now, dress).map(|(caller, in_flight)| (Some(caller), Some(in_flight)))
}

/// Steps 6 to 10 for the key that was shown; `None`: nobody has it.
fn by_key(
    edge: &Rc<Edge>,
    key: Option<Key>,
    route: &Route,
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Option<Caller>, Option<InFlight>), Refusal> {
    let key = key.ok_or(Code::InvalidKey)?;
    key.admitted(edge, route.permission, now, dress).map(|(caller, in_flight)| (Some(caller), Some(in_flight)))
}

/// Steps 6 to 10 for a request of somebody who showed the key in `slot` when he came.
pub(super) fn admitted_again(
    edge: &Rc<Edge>,
    route: &Route,
    slot: u32,
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Caller, InFlight), Refusal> {
    let principal = edge.app.directory.principal_at(slot).ok_or(Code::InvalidKey)?;
    Key::of(&edge.app, principal, now).admitted(edge, route.permission, now, dress)
}

/// A key that is known, usable or not.
pub(crate) struct Key {
    principal: Principal,
    caller: Caller,
    beta_cutoff: Option<Timestamp>,
}

impl Key {
    /// Step 6. A text that can be no key costs the same as an unknown one.
    pub(crate) fn find(app: &App, text: &[u8], now: Timestamp) -> Option<Key> {
        Key::hashed(app, &auth::key_hash(text, &app.config.brand.key_prefix)?, now)
    }

    fn hashed(app: &App, hash: &[u8; 32], now: Timestamp) -> Option<Key> {
        app.directory.principal(hash).map(|principal| Key::of(app, principal, now))
    }

    /// The key as it is served at `now`.
    pub(crate) fn of(app: &App, principal: Principal, now: Timestamp) -> Key {
        let served = effective(
            (principal.tier, principal.permissions),
            principal.created_at,
            principal.beta_until,
            principal.grant,
            app.rules.free_trade_since,
            now,
        );
        let caller = Caller {
            user: principal.user,
            key: Some(principal.key),
            tier: served.tier,
            permissions: served.permissions,
            grant: principal.grant,
            expires_at: principal.expires_at,
        };
        Key { principal, caller, beta_cutoff: principal.beta_until.filter(|_| served.beta_cut_off) }
    }

    pub(crate) fn caller(&self) -> &Caller {
        &self.caller
    }

    /// Whether its UUID alias was shown.
    pub(crate) fn is_alias(&self) -> bool {
        self.principal.by_alias
    }

    /// Steps 6 and 7: why a known key is not usable.
    pub(crate) fn refusal(&self, app: &App, now: Timestamp) -> Option<Code> {
        if self.principal.revoked {
            Some(Code::InvalidKey)
        } else if app.front.gatekeeper.disables(self.principal.key) {
            Some(Code::KeyDeactivated)
        } else if self.principal.expires_at.is_some_and(|end| end <= now) {
            Some(Code::KeyExpired)
        } else {
            None
        }
    }

    /// Reads the counters of this key and, where the core is on this thread, what most commands read of its user. Of a million
    /// users nearly everybody's lies in memory alone: looked at where it is needed, each part would be waited for behind
    /// the other, so it comes before all checks.
    fn warm(&self, edge: &Rc<Edge>) {
        let (front, slot, user) = (&edge.app.front, self.principal.slot, self.caller.user);
        std::hint::black_box(front.limits.warm(slot, user) ^ front.usage.warm(slot));
        edge.engine.warm(user);
    }

    /// Steps 7 to 10.
    fn admitted(
        self,
        edge: &Rc<Edge>,
        needs: Option<Permission>,
        now: Timestamp,
        dress: &mut Dress<'_>,
    ) -> Result<(Caller, InFlight), Refusal> {
        let app = &*edge.app;
        let payer = Payer::Key(self.principal.slot);
        let limits = &app.front.limits;
        if needs == Some(Permission::Trade) {
            self.warm(edge);
        }
        if !self.principal.revoked {
            dress.beta_cutoff = self.beta_cutoff;
        }
        if let Some(code) = self.refusal(app, now) {
            if !self.principal.revoked {
                dress.rate = Some(limits.peek(payer, self.caller.tier, now));
            }
            return Err(code.into());
        }
        let in_flight = match limits.request(payer, self.caller.tier, now) {
            Ok((rate, in_flight)) => {
                dress.rate = Some(rate);
                dress.used.key = Some(self.principal.slot);
                in_flight
            }
            Err((rate, refusal)) => {
                dress.rate = Some(rate);
                return Err(refusal);
            }
        };
        if !app.directory.exists(self.caller.user) {
            return Err(Code::KeyOwnerNotFound.into());
        }
        if app.front.gatekeeper.restricts(self.caller.user, &app.directory) {
            return Err(Code::AccessRestricted.into());
        }
        if needs == Some(Permission::Trade) && self.caller.permissions != Permissions::ReadTrade {
            return Err(Code::InsufficientPermission.into());
        }
        if limits.note_used(self.principal.slot, now) {
            edge.last_used.add(self.caller.user, self.principal.key);
        }
        Ok((self.caller, in_flight))
    }
}

/// Steps 6 to 9 for a session token.
async fn by_token(
    edge: &Rc<Edge>,
    token: &[u8],
    now: Timestamp,
    dress: &mut Dress<'_>,
) -> Result<(Caller, InFlight), Refusal> {
    let app = &*edge.app;
    // Its times are those of whoever made it.
    let claims = app.front.identity.verify(token, app.clock.wall_now())?;
    let user = match app.directory.by_sub(&claims.sub) {
        Some(user) => user,
        None => first_sight(edge, claims.sub, claims.email, None, now).await?,
    };
    let grant = app.directory.grant(user);
    let tier = entitlement(grant, now);
    let limits = &app.front.limits;
    let in_flight = match limits.request(Payer::User(user), tier, now) {
        Ok((rate, in_flight)) => {
            dress.rate = Some(rate);
            in_flight
        }
        Err((rate, refusal)) => {
            dress.rate = Some(rate);
            return Err(refusal);
        }
    };
    if app.front.gatekeeper.restricts(user, &app.directory) {
        return Err(Code::AccessRestricted.into());
    }
    // What a key made now without asking for anything would get.
    let permissions = if grant_ended(grant, now) { Permissions::Read } else { Permissions::ReadTrade };
    Ok((Caller { user, key: None, tier, permissions, grant, expires_at: None }, in_flight))
}

/// Creates the user of a `sub` that was never seen (keys.md §6), with `plan` where one is given. Goes on when the request
/// goes away, so that a reservation is always either used or given back.
pub(crate) async fn first_sight(
    edge: &Rc<Edge>,
    sub: String,
    email: Option<String>,
    plan: Option<Local>,
    now: Timestamp,
) -> Result<UserId, Refusal> {
    let user = match edge.app.directory.reserve(&sub) {
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
            Ok(Answer::Created(_)) | Err(Late::Overshot(_)) => Ok(()),
            Ok(_) | Err(Late::Busy) => {
                creating.app.directory.give_back(user);
                Err(Code::ServerBusy)
            }
            Err(Late::Unknown) => Err(Code::AuthStateIncomplete),
        }
    });
    created.await.map_err(|_| Code::InternalError)??;
    Ok(user)
}
