//! Request → response, as one straight line: the checks of wire.md §7 in their order, then the handler, then the dress
//! of the answer. All control flow of the edge is here; who is let in is decided in `admission.rs`.

use super::admission::{Needed, admitted, admitted_again, admitted_plainly};
use super::auth::{self, RequestId};
use super::body::Body as Answered;
use super::call::Call;
use super::code::Code;
use super::dialect::Dialect;
use super::dress::{Cache, Dress, Used, takes_gzip};
use super::limit::{InFlight, RateState, Source};
use super::names::Names;
use super::refusals::{self, Shown};
use super::reply::{Outcome, Refusal, Reply};
use super::route::{Auth, BodyKind, Route, Work};
use super::router::{Found, Variables};
use super::usage::Done;
use crate::app::{App, Edge};
use begun::{Begun, bounded, caught, placement};
use bytes::Bytes;
use hyper::body::Body;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Request, Response, StatusCode, Uri, Version};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use whole::{content_type, declared_size, too_large, whole_body};
use wire::query::Query;

mod begun;
mod whole;

/// Longest request target (reliability 36).
const TARGET_BYTES_MAX: usize = 8 * 1_024;
/// Longest request id that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 128;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers one request that came from `peer`.
pub async fn respond<B>(edge: Rc<Edge>, peer: IpAddr, request: Request<B>) -> Response<Answered>
where
    B: Body<Data = Bytes> + Unpin,
{
    let shared = Rc::clone(&edge);
    let app = &*shared.app;
    let (parts, body) = request.into_parts();
    let mut dress = dress(app, &parts);
    let bounded = bounded(app, pin!(straight(edge, peer, parts, body, &mut dress))).await;
    let (used, is_head) = (dress.used, dress.is_head);
    let outcome = bounded.unwrap_or_else(|failure| {
        let operation = used.route.map(|route| route.name);
        tracing::error!(operation, request_id = dress.request_id.text(), ?failure, "a request was given up");
        Err(Refusal::from(Code::InternalError).closing())
    });
    let refused = outcome.as_ref().err().map(Refusal::code);
    let response = dress.finish(outcome);
    note(app, used, is_head, response.status(), refused);
    tell(app, &dress, refused, response.status());
    response
}

/// Answers a request whose head was refused before it was read.
pub fn refuse<B>(app: &App, request: Request<B>, refusal: Refusal) -> Response<Answered> {
    let (parts, _) = request.into_parts();
    let dress = dress(app, &parts);
    let (used, is_head, code) = (dress.used, dress.is_head, refusal.code());
    let response = dress.finish(Err(refusal));
    note(app, used, is_head, response.status(), Some(code));
    tell(app, &dress, Some(code), response.status());
    response
}

/// One request that came in a frame of an open socket: what its HTTP twin says by method, target and body, without
/// headers.
pub struct Operation {
    pub route: &'static Route,
    pub uri: Uri,
    pub variables: Variables,
    pub body: Bytes,
}

/// Who sends operations.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// Of the key that the socket was opened with.
    pub key_slot: u32,
    pub source: Source,
}

/// What became of an operation, and what HTTP would say in headers.
pub struct Operated {
    pub outcome: Outcome,
    pub status: StatusCode,
    pub rate: Option<RateState>,
}

/// An operation that was begun: the same checks from the size of the body on as its HTTP twin has, the same handler.
pub struct Operating {
    begun: Option<Result<Begun, Refusal>>,
    rate: Option<RateState>,
    used: Used,
}

impl Operating {
    /// Checks an operation and begins it; its outcome may be there at once.
    pub fn begin(edge: &Rc<Edge>, by: Operator, operation: Operation) -> Operating {
        let mut dress = Dress::of_operation(&edge.app.front.names);
        let begun = Some(caught(operation.route.name, || operated(edge, by, operation, &mut dress)));
        Operating { begun, rate: dress.rate, used: dress.used }
    }

    /// The name of the route that it runs. `None`: it was refused before that was judged.
    pub fn name(&self) -> Option<&'static str> {
        self.used.route.map(|route| route.name)
    }

    /// Goes on with it; not to be called again once it was answered.
    pub fn poll(&mut self, app: &App, context: &mut Context<'_>) -> Poll<Operated> {
        let outcome = match self.begun.take().expect("it was not answered yet") {
            Ok(mut begun) => match begun.poll(app, context) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => {
                    self.begun = Some(Ok(begun));
                    return Poll::Pending;
                }
            },
            Err(refusal) => Err(refusal),
        };
        let status = match &outcome {
            Ok(reply) => reply.status,
            Err(refusal) => refusal.status(),
        };
        let refused = outcome.as_ref().err().map(Refusal::code);
        note(app, self.used, false, status, refused);
        Poll::Ready(Operated { outcome, status, rate: self.rate })
    }
}

/// Steps 3 to 11 of an operation.
fn operated(edge: &Rc<Edge>, by: Operator, operation: Operation, dress: &mut Dress<'_>) -> Result<Begun, Refusal> {
    let app = &*edge.app;
    let now = app.clock.now();
    let Operation { route, uri, variables, body } = operation;
    sound_target(&uri)?;
    (dress.used.begun, dress.used.route) = (now, Some(route));
    if body.len() > app.config.http.body_bytes_max {
        return Err(too_large(&app.config.http));
    }
    let (caller, in_flight) = admitted_again(edge, route, by.key_slot, now, dress)?;
    let (headers, source, edge) = (HeaderMap::new(), by.source, Rc::clone(edge));
    let (typed, dialect, caller) = (false, Dialect::Plain, Some(caller));
    let call = Call { edge, route, now, uri, headers, typed, dialect, variables, source, caller, body };
    Begun::new(call, Some(in_flight))
}

/// A plain request to a headless route ([`super::plain`]), as its head and body say it.
pub struct Asked<'a> {
    pub route: &'static Route,
    pub uri: Uri,
    pub variables: Variables,
    /// Of the key that it shows; `Some(None)`: of a text that can be no key.
    pub key_hash: Option<Option<[u8; 32]>>,
    pub request_id: Option<&'a [u8]>,
    pub idempotency_key: Option<&'a [u8]>,
    pub takes_gzip: bool,
    /// It says that its body is JSON.
    pub typed: bool,
    /// As [`Dialect::of`] finds it.
    pub dialect: Dialect,
    pub body: Bytes,
}

/// Whether a route answers plain requests on the short way.
pub fn answers_plainly(route: &Route) -> bool {
    route.headless && matches!(route.auth, Auth::Public | Auth::Key)
}

/// A plain request on its way, and the outside of its answer.
pub struct Answering<'a> {
    begun: Option<Result<Begun, Refusal>>,
    dress: Dress<'a>,
}

/// Steps 1 to 11 of a plain request that came whole from `peer`: as [`respond`] does them, for what may be otherwise in it.
pub fn begin<'a>(edge: &'a Rc<Edge>, peer: IpAddr, asked: Asked<'_>) -> Answering<'a> {
    let is_read = asked.route.method == super::route::Method::Get;
    let names = &edge.app.front.names;
    let id = asked.request_id.and_then(|id| HeaderValue::from_bytes(id).ok());
    let mut dress = Dress {
        dialect: asked.dialect,
        is_read,
        takes_gzip: asked.takes_gzip,
        ..Dress::of_request(names, request_id(id.as_ref()))
    };
    let begun = Some(caught(asked.route.name, || admitted_whole(edge, peer, asked, &mut dress)));
    Answering { begun, dress }
}

fn admitted_whole(edge: &Rc<Edge>, peer: IpAddr, asked: Asked<'_>, dress: &mut Dress<'_>) -> Result<Begun, Refusal> {
    let app = &*edge.app;
    let now = app.clock.now();
    let Asked { route, uri, variables, key_hash, idempotency_key, typed, dialect, body, .. } = asked;
    (dress.used.begun, dress.used.route) = (now, Some(route));
    dress.cache = route.cache;
    dress.public_route = route.auth == Auth::Public;
    dress.private = !dress.public_route;
    let source = app.front.limits.source(peer, std::iter::empty());
    let (caller, in_flight) = admitted_plainly(edge, route, key_hash, source, now, dress)?;
    let mut headers = HeaderMap::new();
    if let Some(id) = idempotency_key {
        headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_bytes(id).map_err(|_| Refusal::from(Code::Http400))?);
    }
    let body = if route.body == BodyKind::Ignored { Bytes::new() } else { body };
    let edge = Rc::clone(edge);
    Begun::new(Call { edge, route, now, uri, headers, typed, dialect, variables, source, caller, body }, in_flight)
}

impl Answering<'_> {
    /// The key that its request showed, for the log.
    pub fn shows(&mut self, key: &[u8], key_prefix: &str) {
        self.dress.shown = Shown::of(key, key_prefix);
    }

    /// Its answer is the last one of the connection.
    pub fn close(&mut self) {
        self.dress.closes = true;
    }

    /// Goes on with it; the answer is written to `out`, or given where the HTTP library has to send it ([`Dress::write`]).
    /// Not to be called again once there was one.
    pub fn poll(
        &mut self,
        app: &App,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<Response<Answered>>> {
        let outcome = match self.begun.take().expect("it was not answered yet") {
            Ok(mut begun) => match begun.poll(app, context) {
                Poll::Ready(outcome) => outcome,
                Poll::Pending => {
                    self.begun = Some(Ok(begun));
                    return Poll::Pending;
                }
            },
            Err(refusal) => Err(refusal),
        };
        let used = self.dress.used;
        let refused = outcome.as_ref().err().map(Refusal::code);
        let (status, made) = self.dress.write(outcome, out);
        note(app, used, false, status, refused);
        tell(app, &self.dress, refused, status);
        Poll::Ready(made)
    }
}

/// Counts a request that is answered now.
fn note(app: &App, used: Used, is_head: bool, status: StatusCode, refused: Option<Code>) {
    let (status, mut ended, mut place) = (status.as_u16(), None, None);
    if let Used { begun, route: Some(route), key: Some(key) } = used {
        let ended = *ended.insert(app.clock.now());
        place = Some(app.front.usage.note(key, Done { route, is_head, status, begun, ended }));
    }
    if let Some(meters) = &app.meters {
        let place = place.or_else(|| used.route.map(|route| app.front.usage.place(route)));
        // Orders that come without a key are rare enough to look at the clock for them.
        meters.note(place.map(|place| place as usize), status, refused, || {
            ended.unwrap_or_else(|| app.clock.now()).since(used.begun)
        });
    }
}

/// Logs a refusal, where refusals are logged.
fn tell(app: &App, dress: &Dress<'_>, refused: Option<Code>, status: StatusCode) {
    let Some(code) = refused.filter(|_| refusals::is_on()) else { return };
    let operation = dress.used.route.map(|route| route.name);
    app.front.refusals.tell(app, dress.request_id.text(), operation, dress.shown, code, status.as_u16());
}

/// Step 1: what of the request decides the outside of its response, whatever becomes of it.
fn dress<'a>(app: &'a App, parts: &Parts) -> Dress<'a> {
    let names = &app.front.names;
    let headers = &parts.headers;
    let query = Query::read(parts.uri.query().unwrap_or_default());
    let shown = || {
        let brand = &app.config.brand.key_prefix;
        Shown::of(auth::credentials(headers, &app.front.key_aliases, brand).key?, brand)
    };
    Dress {
        dialect: Dialect::of(headers, query.get("dialect"), &app.config.compat.client_agents),
        shown: if refusals::is_on() { shown() } else { None },
        verbose: wants_details(names, headers),
        is_head: parts.method == hyper::Method::HEAD,
        is_read: matches!(parts.method, hyper::Method::GET | hyper::Method::HEAD),
        takes_gzip: takes_gzip(headers.get(header::ACCEPT_ENCODING)),
        cors: app.front.cors.allows(headers.get(header::ORIGIN)),
        ..Dress::of_request(names, request_id(headers.get(&names.request_id)))
    }
}

/// Whether refusals show `details` and `request_id` (wire.md §5).
pub fn wants_details(names: &Names, headers: &HeaderMap) -> bool {
    let sent = headers.get(&names.verbose).and_then(|value| value.to_str().ok());
    sent.is_some_and(|text| ["true", "1", "yes"].iter().any(|on| text.eq_ignore_ascii_case(on)))
}

/// The caller's request id when it is well-formed, else a new one (wire.md §3).
pub fn request_id(sent: Option<&HeaderValue>) -> RequestId {
    let sound = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        let letter = |b: &u8| b.is_ascii_alphanumeric() || b"._:-".contains(b);
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(letter)
    };
    sent.filter(sound).cloned().map_or_else(RequestId::made, RequestId::Sent)
}

/// Steps 1 to 18.
async fn straight<B>(edge: Rc<Edge>, peer: IpAddr, mut parts: Parts, body: B, dress: &mut Dress<'_>) -> Outcome
where
    B: Body<Data = Bytes> + Unpin,
{
    let shared = Rc::clone(&edge);
    let app = &*shared.app;
    let now = app.clock.now();
    sound_http(app, &parts)?;
    if parts.method != hyper::Method::GET || parts.version != Version::HTTP_11 {
        // Nothing else asks for another protocol (RFC 6455 §4.1).
        parts.headers.remove(header::UPGRADE);
    }
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
    let Parts { uri, headers, .. } = parts;
    let typed = headers.contains_key(header::CONTENT_TYPE);
    let (dialect, body_to_come) = (dress.dialect, Bytes::new());
    let call = Call { edge, route, now, uri, headers, typed, dialect, variables, source, caller, body: body_to_come };
    let read = async |headers: &HeaderMap| match route.body {
        BodyKind::Ignored => Ok(Bytes::new()),
        BodyKind::Optional | BodyKind::Required => {
            let body = whole_body(body, &app.config.http).await?;
            content_type(headers, &body)?;
            Ok(body)
        }
    };
    served(call, in_flight, read).await
}

/// Steps 11 to 18 for whoever was let in: room for a placement, the body, the handler.
async fn served(
    mut call: Call,
    in_flight: Option<InFlight>,
    read: impl AsyncFnOnce(&HeaderMap) -> Result<Bytes, Refusal>,
) -> Outcome {
    let _placement = placement(&call)?;
    call.body = read(&call.headers).await?;
    let mut outcome = match call.route.way.begin(call) {
        Work::Done(outcome) => outcome,
        Work::Runs(running) => running.await,
    };
    if let Ok(Reply { pages: Some(pages), .. }) = &mut outcome {
        pages.hold(in_flight);
    }
    outcome
}

/// What makes a head unfit to be answered otherwise than by the end of the connection (reliability 36, 37).
fn sound_http(app: &App, parts: &Parts) -> Result<(), Refusal> {
    let headers = &parts.headers;
    let count = |name: header::HeaderName| headers.get_all(name).iter().count();
    sound_target(&parts.uri)?;
    if let Some(authority) = parts.uri.authority()
        && !app.front.hosts.admits(authority.as_str().as_bytes())
    {
        return Err(Code::MisdirectedRequest.into());
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

fn sound_target(uri: &Uri) -> Result<(), Refusal> {
    let length = uri.path_and_query().map_or(0, |target| target.as_str().len());
    if length > TARGET_BYTES_MAX { Err(Refusal::broken("The request target is longer than 8 KiB.")) } else { Ok(()) }
}

enum Routed {
    Route(&'static Route, Variables),
    Answer(Reply),
}

/// Steps 1 and 2: preflight; route and method.
fn routed(app: &App, parts: &Parts) -> Result<Routed, Refusal> {
    let open = |route: &Route| route.gate.is_none_or(|gate| gate.open(&app.config));
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

#[cfg(test)]
mod tests;
