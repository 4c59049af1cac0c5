//! Request → response. Every request takes the steps of [`exchange`] in their order, whether it is read by the fast
//! path, by hyper, or from a frame of an order-entry socket. The readers differ only in how they make an [`Incoming`]
//! and where the response goes.
//!
//! `admission.rs` decides about admission; `response_head.rs` writes the head of a response.

use super::admission::{Admitted, Needed, admit, identify, prefetch};
use super::body::Body as Answered;
use super::call::Call;
use super::code::Code;
use super::refusals;
use super::reply::{Outcome, Refusal, Reply};
use super::response_head::{Cache, ResponseHead, Used};
use super::route::{Auth, BodyKind, Execution, Gate, Route, Running};
use super::router::{Match, Variables};
use super::usage::Done;
use crate::app::{App, Edge};
use crate::http::front::Front;
use body::{content_type, size, whole_body};
use bounded::{Failure, bounded, placement};
use bytes::Bytes;
use futures_util::future::Either;
use hyper::body::Body;
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::future::{Ready, ready};
use std::net::IpAddr;
use std::pin::pin;
use std::rc::Rc;

mod body;
mod bounded;
mod incoming;

pub use incoming::{Credential, Head, Incoming, Target, request_id, sound_target, wants_details};

/// Takes one request from its head to its response. The order of the checks is part of the contract
/// (gateway/docs/wire.md §7).
///
/// `handle` runs the handler of the route. `respond` makes the response and returns its status and the caller's result.
/// A panic in steps 1 to 9, or a wait in them longer than `http.request_timeout_ms`, is an internal error of this
/// request alone.
///
/// The future is small on purpose: what the steps need of `incoming` stays there until they take it.
#[expect(clippy::manual_async_fn, reason = "the future of an `async fn` has room for each argument twice")]
pub fn exchange<B, H, F, R, T>(
    edge: Rc<Edge>,
    mut incoming: Incoming<B>,
    handle: H,
    respond: R,
) -> impl Future<Output = T>
where
    B: Body<Data = Bytes> + Unpin,
    H: FnOnce(Call) -> F,
    F: Future<Output = Outcome>,
    R: FnOnce(&mut ResponseHead<'_>, Outcome) -> (StatusCode, T),
{
    async move {
        let app = &*edge.app;
        let Incoming { method, target, head, body, peer } = &mut incoming;
        // 0. In a back-test with a bot: the clock may have to move first, and after its end all is refused.
        if let Some(moments) = &app.moments
            && !moments.begin(operation(&app.front, method, target)).await
        {
            head.fault = Some(Refusal::new(Code::ServerBusy, "The back-test has ended."));
        }
        let mut response = ResponseHead::of(&app.front.names, method, head);
        let ended = {
            let steps = pin!(async {
                let now = app.reads.clock.now();
                // 1. Head: the reader refuses one that breaks HTTP.
                if let Some(fault) = head.fault.take() {
                    return Err(fault);
                }
                // 2. Route: by method and path, unless the reader has it already.
                let (route, variables) = match target.found {
                    Some(found) => found,
                    None => match find(&app.front, method, target, head)? {
                        Routed::Route(route, variables) => (route, variables),
                        Routed::Options(reply) => return Ok(reply),
                    },
                };
                let needed = Needed::of(&app.front, route, &head.headers, &target.uri);
                routed(&mut response, route, needed, Used { begun: now, route: Some(route), key: None });
                // 3. Size: the declared length of the body.
                size(head.body_bytes, &app.front.settings.http)?;
                // 4. Identify: read the credential.
                let identity = identify(app, route, needed, head, now)?;
                // 5. Prefetch: rows of a user that trades.
                prefetch(&edge, route, &identity);
                // 6. Admit: check that the credential is usable, that it allows the route, and that its limits have
                //   room.
                let Admitted { caller, in_flight } = admit(&edge, route, identity, *peer, now, &mut response).await?;
                let shown_to = caller.as_ref().filter(|_| route.shows_history).map(|caller| caller.user);
                let history_from = || shown_to.and_then(|user| app.reads.history_from(user));
                response.history_from = history_from();
                // A closed gate may ask for the credential first.
                if !route.exists(&app.front.settings) {
                    return Err(Code::NotFound.into());
                }
                // 7. Placement: take a slot in flight, which is free again when the handler ends.
                let _placement = placement(&app.front, route, caller.as_ref())?;
                // 8. Body: complete, in time, of a type that the route takes.
                let body = match route.body {
                    BodyKind::Ignored => Bytes::new(),
                    BodyKind::Optional | BodyKind::Required => {
                        let body = whole_body(body, &app.front.settings.http).await?;
                        content_type(&head.headers, &body)?;
                        body
                    }
                };
                // 9. Handle.
                let mut outcome = handle(Call {
                    edge: Rc::clone(&edge),
                    route,
                    now,
                    uri: std::mem::take(&mut target.uri),
                    is_head: response.is_head,
                    headers: std::mem::take(&mut head.headers),
                    typed: head.typed,
                    dialect: head.dialect,
                    variables,
                    source: *peer,
                    caller,
                    body,
                })
                .await;
                // What was cut meanwhile may be missing from the answer.
                response.history_from = history_from();
                if let Ok(Reply { pages: Some(pages), .. }) = &mut outcome {
                    pages.hold(in_flight);
                }
                outcome
            });
            bounded(&app.front, steps).await
        };
        let outcome = ended.unwrap_or_else(|failure| failed(&response, failure));
        // 10. Respond.
        let refused = outcome.as_ref().err().map(Refusal::code);
        let (status, responded) = respond(&mut response, outcome);
        // 11. Note: usage of the key, metrics, and a log line of a refusal.
        note(app, &response, status, refused);
        responded
    }
}

/// The outcome of a request that panicked or timed out.
fn failed(response: &ResponseHead<'_>, failure: Failure) -> Outcome {
    let operation = response.used.route.map(|route| route.name);
    tracing::error!(operation, request_id = response.request_id.text(), ?failure, "a request failed unexpectedly");
    Err(Refusal::from(Code::InternalError).closing())
}

/// Answers a request of `peer` that hyper has read. `fault`: its head was refused before that.
pub async fn respond<B>(edge: Rc<Edge>, peer: IpAddr, request: Request<B>, fault: Option<Refusal>) -> Response<Answered>
where
    B: Body<Data = Bytes> + Unpin,
{
    let incoming = Incoming::of_request(&edge.app.front, peer, request, fault);
    exchange(edge, incoming, run_route, |head, outcome| {
        let response = head.response(outcome);
        (response.status(), response)
    })
    .await
}

/// Runs the handler of a request that came over HTTP.
pub(super) fn run_route(call: Call) -> Either<Ready<Outcome>, Running> {
    match call.route.execution {
        Execution::Immediate(answer) => Either::Left(ready(answer(&call))),
        Execution::Async(run) => Either::Right(run(call)),
    }
}

/// Sets the part of a response's head that the route decides.
fn routed(response: &mut ResponseHead<'_>, route: &'static Route, needed: Needed, used: Used) {
    response.used = used;
    response.public_route = needed == Needed::Nothing;
    response.private = !response.public_route;
    // If the request decides which credential is needed, another request of the same target may get another response.
    // So no cache may store this one.
    let is_decided = response.public_route && route.auth != Auth::Public;
    response.cache = if is_decided { Cache::NoStore } else { route.cache };
}

/// Counts an answered request, and logs a refusal if refusals are logged.
fn note(app: &App, response: &ResponseHead<'_>, status: StatusCode, refused: Option<Code>) {
    let (used, mut ended, mut place) = (response.used, None, None);
    if let Used { begun, route: Some(route), key: Some(key) } = used {
        let (is_head, status) = (response.is_head, status.as_u16());
        let ended = *ended.insert(app.reads.clock.now());
        place = Some(app.front.usage.note(key, Done { route, is_head, status, begun, ended }));
    }
    if let Some(meters) = &app.front.meters {
        let place = place.or_else(|| used.route.map(|route| app.front.usage.place(route)));
        // Only orders without a key, which are rare, read the clock here.
        meters.note(place.map(|place| place as usize), status.as_u16(), refused, || {
            ended.unwrap_or_else(|| app.reads.clock.now()).since(used.begun)
        });
    }
    if let Some(code) = refused.filter(|_| refusals::is_on()) {
        let (id, operation) = (response.request_id.text(), used.route.map(|route| route.name));
        app.front.refusals.log(&app.reads, id, operation, response.key_prefix, code, status.as_u16());
    }
}

/// The operation that a request asks for, if there is one.
fn operation(front: &Front, method: &Method, target: &Target) -> Option<&'static str> {
    let is_open = |route: &Route| route.exists(&front.settings);
    let found = target.found.or_else(|| match front.router.find(method, target.uri.path(), is_open) {
        Match::Route(route, variables) => Some((route, variables)),
        Match::OtherMethods(_) | Match::Nothing => None,
    });
    found.map(|(route, _)| route.name)
}

enum Routed {
    Route(&'static Route, Variables),
    /// The response to OPTIONS, which runs no handler.
    Options(Reply),
}

/// Step 2: preflight; route and method.
fn find(front: &Front, method: &Method, target: &Target, head: &Head) -> Result<Routed, Refusal> {
    let is_open = |route: &Route| route.exists(&front.settings);
    let answers = |route: &Route| is_open(route) || route.gate.is_some_and(Gate::asks_first);
    let found = match front.router.find(method, target.uri.path(), answers) {
        found @ Match::Route(..) => found,
        // The methods of a path are those of the routes that exist.
        _ => front.router.find(method, target.uri.path(), is_open),
    };
    if *method == Method::OPTIONS {
        let preflight = head.headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
        return match found {
            Match::OtherMethods(allow) => Ok(Routed::Options(options(front, Some(allow)))),
            _ if preflight => Ok(Routed::Options(options(front, None))),
            _ => Err(Code::NotFound.into()),
        };
    }
    match found {
        Match::Route(route, variables) => Ok(Routed::Route(route, variables)),
        Match::OtherMethods(allow) => Err(Refusal::method_not_allowed(allow)),
        Match::Nothing => Err(Code::NotFound.into()),
    }
}

/// 204 with the methods and headers that a browser may send. The response's head has the origins.
fn options(front: &Front, allow: Option<String>) -> Reply {
    let reply = Reply { content_type: "", ..Reply::json(Vec::new()) }.with_status(StatusCode::NO_CONTENT);
    let reply = reply
        .with_header(
            header::ACCESS_CONTROL_ALLOW_METHODS,
            HeaderValue::from_static("GET, POST, PATCH, DELETE, OPTIONS"),
        )
        .with_header(header::ACCESS_CONTROL_ALLOW_HEADERS, front.names.allowed_request_headers.clone())
        .with_header(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    match allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
        Some(allow) => reply.with_header(header::ALLOW, allow),
        None => reply,
    }
}

#[cfg(test)]
mod tests;
