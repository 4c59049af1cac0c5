//! Request → response, as one straight line: the checks of wire.md §7 in their order, then the handler, then the dress
//! of the answer. All control flow of the edge is here.

use super::auth::{self, Credentials};
use super::body::Body as Answered;
use super::call::{Call, Caller};
use super::code::Code;
use super::dialect;
use super::limit::{InFlight, Payer, Source};
use super::reply::{Cache, Dress, Outcome, Refusal, Reply, Used, takes_gzip};
use super::route::{Auth, BodyKind, Permission, RateClass, Route};
use super::router::{Found, Variables};
use super::usage::Done;
use crate::app::{App, Edge};
use crate::config::Http;
use crate::engine_client::Late;
use crate::wire::query::Query;
use bytes::{Bytes, BytesMut};
use engine::command::{Answer, Command, CreateUser};
use engine::directory::{Principal, Reservation};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::Permissions;
use engine::user::key::{effective, entitlement, grant_ended};
use http_body_util::BodyExt as _;
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Version};
use std::net::IpAddr;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

/// Longest request target (reliability 36).
const TARGET_BYTES_MAX: usize = 8 * 1_024;
/// Longest request id that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// Answers one request that came from `peer`.
pub async fn respond<B>(edge: Rc<Edge>, peer: IpAddr, request: Request<B>) -> Response<Answered>
where
    B: Body<Data = Bytes> + Unpin,
{
    let shared = Rc::clone(&edge);
    let app = &*shared.app;
    let (parts, body) = request.into_parts();
    let mut dress = dress(app, &parts);
    let outcome = {
        let line = pin!(straight(edge, peer, parts, body, &mut dress));
        bounded(line, app.config.http.request_timeout).await
    };
    let outcome = outcome.unwrap_or_else(|failure| {
        tracing::error!(request_id = ?dress.request_id, ?failure, "a request was given up");
        Err(Refusal::from(Code::InternalError).closing())
    });
    let (used, is_head) = (dress.used, dress.is_head);
    let response = dress.finish(outcome);
    if let Used { begun, route: Some(route), key: Some(key) } = used {
        let status = response.status().as_u16();
        app.front.usage.note(key, Done { route, is_head, status, begun, ended: app.clock.now() });
    }
    response
}

/// How a request can fail that no check foresees.
#[derive(Debug)]
enum Failure {
    /// The panic hook has said where.
    Panicked,
    /// Every wait of a request has its own bound; this one is for the wait that was forgotten.
    TookTooLong,
}

/// Runs a request. A panic in it ends this request and nothing more.
async fn bounded<F: Future>(mut request: Pin<&mut F>, timeout: Duration) -> Result<F::Output, Failure> {
    let mut timer = None;
    std::future::poll_fn(|context| {
        match catch_unwind(AssertUnwindSafe(|| request.as_mut().poll(context))) {
            Ok(Poll::Ready(output)) => return Poll::Ready(Ok(output)),
            Ok(Poll::Pending) => {}
            Err(_) => return Poll::Ready(Err(Failure::Panicked)),
        }
        // Most requests are answered at once and never come here.
        let timer = timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
        timer.as_mut().poll(context).map(|()| Err(Failure::TookTooLong))
    })
    .await
}

/// Step 1: what of the request decides the outside of its response, whatever becomes of it.
fn dress<'a>(app: &'a App, parts: &Parts) -> Dress<'a> {
    let names = &app.front.names;
    let headers = &parts.headers;
    let verbose = headers.get(&names.verbose).and_then(|value| value.to_str().ok());
    let verbose = verbose.is_some_and(|text| ["true", "1", "yes"].iter().any(|on| text.eq_ignore_ascii_case(on)));
    Dress {
        names,
        request_id: request_id(headers.get(&names.request_id)),
        verbose,
        is_head: parts.method == hyper::Method::HEAD,
        is_read: matches!(parts.method, hyper::Method::GET | hyper::Method::HEAD),
        takes_gzip: takes_gzip(headers.get(header::ACCEPT_ENCODING)),
        cors: app.front.cors.allows(headers.get(header::ORIGIN)),
        cache: Cache::NoStore,
        private: false,
        rate: None,
        public_route: false,
        beta_cutoff: None,
        used: Used::default(),
    }
}

/// The caller's request id when it is well-formed, else a new one (wire.md §3).
fn request_id(sent: Option<&HeaderValue>) -> HeaderValue {
    let sound = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        let letter = |b: &u8| b.is_ascii_alphanumeric() || b"._:-".contains(b);
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(letter)
    };
    let made = || HeaderValue::try_from(auth::request_id()).expect("a UUID is a header value");
    sent.filter(sound).cloned().unwrap_or_else(made)
}

/// Steps 1 to 18.
async fn straight<B>(edge: Rc<Edge>, peer: IpAddr, parts: Parts, body: B, dress: &mut Dress<'_>) -> Outcome
where
    B: Body<Data = Bytes> + Unpin,
{
    let shared = Rc::clone(&edge);
    let app = &*shared.app;
    let now = app.clock.now();
    sound_http(&parts)?;
    let (route, variables) = match routed(app, &parts)? {
        Routed::Route(route, variables) => (route, variables),
        Routed::Answer(reply) => return Ok(reply),
    };
    (dress.used.begun, dress.used.route) = (now, Some(route));
    dress.cache = route.cache;
    let needed = Needed::of(app, route, &parts);
    dress.public_route = needed == Needed::Nothing;
    dress.private = !dress.public_route;
    if dress.public_route && route.auth != Auth::Public {
        // Another request of the same target may be answered otherwise: no cache may keep this answer.
        dress.cache = Cache::NoStore;
    }
    declared_size(&parts.headers, &app.config.http)?;

    let source = app.front.limits.source(peer, parts.headers.get_all("x-forwarded-for").iter());
    let (caller, in_flight) = admitted(&edge, (route, needed), &parts.headers, source, now, dress).await?;
    let _placement = match (route.rate, &caller) {
        (RateClass::Placement, Some(caller)) => Some(app.front.limits.placement(caller.user)?),
        _ => None,
    };
    let body = match route.body {
        BodyKind::Ignored => Bytes::new(),
        BodyKind::Optional | BodyKind::Required => {
            let body = whole_body(body, &app.config.http).await?;
            content_type(&parts.headers, &body)?;
            body
        }
    };
    let call = Call { edge, route, now, uri: parts.uri, headers: parts.headers, variables, source, caller, body };
    let mut outcome = (route.run)(call).await;
    if let Ok(Reply { pages: Some(pages), .. }) = &mut outcome {
        pages.hold(in_flight);
    }
    outcome
}

/// What makes a head unfit to be answered otherwise than by the end of the connection (reliability 36, 37).
fn sound_http(parts: &Parts) -> Result<(), Refusal> {
    let headers = &parts.headers;
    let count = |name: header::HeaderName| headers.get_all(name).iter().count();
    if parts.uri.path_and_query().is_some_and(|target| target.as_str().len() > TARGET_BYTES_MAX) {
        return Err(Refusal::broken("The request target is longer than 8 KiB."));
    }
    let hosts = count(header::HOST);
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        return Err(Refusal::broken("A request has exactly one Host header."));
    }
    for name in [header::AUTHORIZATION, header::CONTENT_TYPE] {
        if count(name) > 1 {
            return Err(Refusal::broken("A header that may occur once occurs twice."));
        }
    }
    for name in ["x-api-key", "idempotency-key"] {
        if count(header::HeaderName::from_static(name)) > 1 {
            return Err(Refusal::broken("A header that may occur once occurs twice."));
        }
    }
    if let Some(encoding) = headers.get(header::TRANSFER_ENCODING) {
        let chunked = encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !chunked || count(header::TRANSFER_ENCODING) > 1 {
            return Err(Refusal::broken("The only transfer coding here is chunked."));
        }
        if headers.contains_key(header::CONTENT_LENGTH) {
            return Err(Refusal::broken("Content-Length and Transfer-Encoding exclude each other."));
        }
    }
    Ok(())
}

enum Routed {
    Route(&'static Route, Variables),
    Answer(Reply),
}

/// Steps 1 and 2: preflight; route and method.
fn routed(app: &App, parts: &Parts) -> Result<Routed, Refusal> {
    let open = |route: &Route| route.gate.is_none_or(|gate| gate.open(&app.config.flags));
    let found = app.front.router.find(&parts.method, parts.uri.path(), open);
    if parts.method == hyper::Method::OPTIONS {
        let preflight = parts.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        return match found {
            Found::Method(allow) => Ok(Routed::Answer(options(app, Some(allow)))),
            _ if preflight => Ok(Routed::Answer(options(app, None))),
            _ => Err(Code::NotFound.into()),
        };
    }
    match found {
        Found::Route(route, variables) => Ok(Routed::Route(route, variables)),
        Found::Method(allow) => Err(Refusal::method_not_allowed(allow)),
        Found::Nothing => Err(Code::NotFound.into()),
    }
}

/// 204: what may be sent (wire.md §10). Who may read the answers is said by the dress.
fn options(app: &App, allow: Option<String>) -> Reply {
    let reply = Reply { content_type: "", ..Reply::json(Vec::new()) }.with_status(StatusCode::NO_CONTENT);
    let reply = reply
        .with_header(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, PATCH, DELETE, OPTIONS"),
        )
        .with_header(header::ACCESS_CONTROL_ALLOW_HEADERS, app.front.names.allowed_request_headers.clone())
        .with_header(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    match allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
        Some(allow) => reply.with_header(header::ALLOW, allow),
        None => reply,
    }
}

/// Step 3.
fn declared_size(headers: &HeaderMap, bounds: &Http) -> Result<(), Refusal> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > bounds.body_bytes_max as u64) { Err(too_large(bounds)) } else { Ok(()) }
}

fn too_large(bounds: &Http) -> Refusal {
    let message = format!("The body is larger than {} bytes.", bounds.body_bytes_max);
    Refusal::saying(Code::Http413, message).closing()
}

/// The credential that a request needs: what its route takes, as the request itself decides where that depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needed {
    Nothing,
    Key,
    Token,
    KeyOrToken,
}

impl Needed {
    fn of(app: &App, route: &Route, parts: &Parts) -> Needed {
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
async fn admitted(
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
            let usable = key.and_then(|key| Key::find(app, key, now)).filter(|key| key.refusal(app, now).is_none());
            let Some(key) = usable.filter(|key| !app.front.gatekeeper.restricts(key.caller.user, &app.directory))
            else {
                app.front.limits.public(source, now)?;
                return Ok((None, None));
            };
            dress.private = true;
            key.admitted(edge, None, now, dress).map(|(caller, in_flight)| (Some(caller), Some(in_flight)))
        }
        (Needed::Key | Needed::KeyOrToken, Credentials { key: Some(key), .. }) => {
            let key = Key::find(app, key, now).ok_or(Code::InvalidKey)?;
            key.admitted(edge, route.permission, now, dress).map(|(caller, in_flight)| (Some(caller), Some(in_flight)))
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

/// A key that is known, usable or not.
pub(crate) struct Key {
    principal: Principal,
    caller: Caller,
    beta_cutoff: Option<Timestamp>,
}

impl Key {
    /// Step 6. A text that can be no key costs the same as an unknown one.
    pub(crate) fn find(app: &App, text: &[u8], now: Timestamp) -> Option<Key> {
        let hash = auth::key_hash(text, &app.config.brand.key_prefix)?;
        app.directory.principal(&hash).map(|principal| Key::of(app, principal, now))
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
        if !self.principal.revoked {
            dress.rate = Some(limits.peek(payer, self.caller.tier, now));
            dress.beta_cutoff = self.beta_cutoff;
        }
        if let Some(code) = self.refusal(app, now) {
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
            let (edge, user, key) = (Rc::clone(edge), self.caller.user, self.principal.key);
            // Nobody waits for it, and nothing depends on it.
            tokio::task::spawn_local(async move {
                let _ = edge.engine.ask(user, Command::NoteKeyUsed { key }, now).await;
            });
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
    let claims = app.front.identity.verify(token, now)?;
    let user = match app.directory.by_sub(&claims.sub) {
        Some(user) => user,
        None => first_sight(edge, claims.sub, claims.email, now).await?,
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
    Ok((Caller { user, key: None, tier, permissions, grant }, in_flight))
}

/// Creates the user of a `sub` that was never seen (keys.md §6). Goes on when the request goes away, so that a
/// reservation is always either used or given back.
pub(crate) async fn first_sight(
    edge: &Rc<Edge>,
    sub: String,
    email: Option<String>,
    now: Timestamp,
) -> Result<UserId, Refusal> {
    let user = match edge.app.directory.reserve(&sub) {
        Reservation::Known(user) => return Ok(user),
        Reservation::Pending => return Err(Code::AuthStateIncomplete.into()),
        Reservation::Reserved(user) => user,
    };
    let create = Command::CreateUser(CreateUser { sub: Some(sub), email, grant: None, api_balance: None });
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

/// The body, whole, within its bounds of size and time.
async fn whole_body<B>(body: B, bounds: &Http) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut reading = pin!(collected(body, bounds));
    // Usually it came with the head, and needs no timer.
    let at_once = std::future::poll_fn(|context| Poll::Ready(reading.as_mut().poll(context))).await;
    match at_once {
        Poll::Ready(body) => body,
        Poll::Pending => within(bounds.body_timeout, reading).await,
    }
}

async fn within(
    deadline: Duration,
    reading: Pin<&mut impl Future<Output = Result<Bytes, Refusal>>>,
) -> Result<Bytes, Refusal> {
    match tokio::time::timeout(deadline, reading).await {
        Ok(body) => body,
        Err(_) => Err(Refusal::broken("The body did not arrive in time.")),
    }
}

async fn collected<B>(mut body: B, bounds: &Http) -> Result<Bytes, Refusal>
where
    B: Body<Data = Bytes> + Unpin,
{
    let mut first = Bytes::new();
    let mut more = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let Ok(frame) = frame else { return Err(Refusal::broken("The body could not be read.")) };
        let Ok(bytes) = frame.into_data() else { continue };
        if first.len() + more.len() + bytes.len() > bounds.body_bytes_max {
            return Err(too_large(bounds));
        }
        if first.is_empty() {
            first = bytes;
        } else {
            more.extend_from_slice(&bytes);
        }
    }
    if more.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::with_capacity(first.len() + more.len());
    whole.extend_from_slice(&first);
    whole.extend_from_slice(&more);
    Ok(whole.freeze())
}

/// Step 12, first half: JSON in UTF-8, or nothing said about it.
fn content_type(headers: &HeaderMap, body: &Bytes) -> Result<(), Refusal> {
    let Some(declared) = headers.get(header::CONTENT_TYPE) else { return Ok(()) };
    let sound = declared.to_str().is_ok_and(|text| {
        let mut parts = text.split(';').map(str::trim);
        let json = parts.next().is_some_and(|essence| essence.eq_ignore_ascii_case("application/json"));
        json && parts.all(|parameter| match parameter.split_once('=') {
            Some((name, value)) if name.trim().eq_ignore_ascii_case("charset") => {
                let charset = value.trim().trim_matches('"');
                charset.eq_ignore_ascii_case("utf-8") || charset.eq_ignore_ascii_case("utf8")
            }
            _ => true,
        })
    });
    if sound || (body.is_empty() && declared.is_empty()) { Ok(()) } else { Err(Code::Http415.into()) }
}

#[cfg(test)]
mod tests;
