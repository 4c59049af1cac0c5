//! The fast path: a request with a simple head is read, answered and written where its bytes are, without hyper.
//!
//! ```text
//!   socket ──► head of the next request ─── simple, whole, of a headless route ──► exchange ──► socket
//!                        │
//!                        └── any other ──► hyper is granted the bytes of this request, or all bytes from here on
//! ```
//!
//! hyper sees a connection whose peer sends a request now and then; while it waits for a head, this reader reads.
//! [`request_head`] parses a head. The checks, their order and their responses are those of [`exchange`], as for every
//! request. The next request is parsed when the current one is answered.

use super::deadline::HeadDeadline;
use super::reading::{HEAD_BYTES_MAX, Handover, Next, Prepared, Reader, Reading, Turn};
use super::socket::Socket;
use crate::app::Edge;
use crate::http::auth;
use crate::http::body::Body;
use crate::http::code::Code;
use crate::http::dialect::{self, Dialect};
use crate::http::pipeline::{Credential, Head, Incoming, Target, exchange, request_id, run_route};
use crate::http::refusals::{self, KeyPrefix};
use crate::http::request_head::{self, Parsed, RequestHead};
use crate::http::route::{Auth, Method, Route};
use crate::http::router::{Match, Variables};
use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{HeaderMap, HeaderName, HeaderValue};
use hyper::{Response, Uri};
use std::cell::RefCell;
use std::net::IpAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use wire::query::Query;
use zeroize::Zeroizing;

/// Longest text of a key that is cached.
const KEY_BYTES_MAX: usize = 128;
/// Longest `Host` that is cached.
const HOST_BYTES_MAX: usize = 256;
/// Longest head that is cached.
const KNOWN_BYTES_MAX: usize = 1_024;
/// Exchanges of a thread whose memory is kept for later ones.
const SPARE_MAX: usize = 64;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Whether a route is answered on the fast path.
fn is_fast(route: &Route) -> bool {
    route.headless && matches!(route.auth, Auth::Public | Auth::Key)
}

/// Starts the exchange of one request. The output is `None` if the response was written to the socket, else the
/// response that hyper has to send ([`crate::http::response_head::ResponseHead::write`]).
pub(super) fn start(
    edge: Rc<Edge>,
    incoming: Incoming<Full<Bytes>>,
    socket: Socket,
    handover: Rc<Handover>,
) -> impl Future<Output = Option<Response<Body>>> {
    exchange(edge, incoming, run_route, move |head, outcome| {
        head.closes = handover.closes.get();
        socket.gather(|out| head.write(outcome, out))
    })
}

/// The function that starts an exchange: [`start`], whose future cannot be named.
type Start<F> = fn(Rc<Edge>, Incoming<Full<Bytes>>, Socket, Rc<Handover>) -> F;

/// The exchanges of one thread. An ended exchange leaves its memory to a later one, so that a request allocates none.
pub(super) struct Exchanges<F> {
    start: Start<F>,
    spare: RefCell<Vec<Memory<F>>>,
}

/// The reusable allocation of one exchange. It holds `None` while no exchange uses it.
type Memory<F> = Pin<Box<Option<F>>>;

impl<F: Future<Output = Option<Response<Body>>>> Exchanges<F> {
    pub(super) fn new(start: Start<F>) -> Exchanges<F> {
        Exchanges { start, spare: RefCell::default() }
    }

    fn start(&self, edge: &Rc<Edge>, incoming: Incoming<Full<Bytes>>, reading: &Reading) -> Memory<F> {
        let mut memory = self.spare.borrow_mut().pop().unwrap_or_else(|| Box::pin(None));
        let (socket, handover) = (reading.socket.clone(), Rc::clone(&reading.handover));
        memory.set(Some((self.start)(Rc::clone(edge), incoming, socket, handover)));
        memory
    }

    fn poll(&self, memory: &mut Memory<F>, context: &mut Context<'_>) -> Poll<Option<Response<Body>>> {
        memory.as_mut().as_pin_mut().expect("an exchange that has not ended").poll(context)
    }

    fn end(&self, mut memory: Memory<F>) {
        memory.set(None);
        let mut spare = self.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(memory);
        }
    }
}

/// The fast path of one connection.
pub(super) struct FastPath<'a, F> {
    edge: &'a Rc<Edge>,
    peer: IpAddr,
    exchanges: Rc<Exchanges<F>>,
    reading: Reading,
    /// A pending exchange and the length of its request, whose bytes are kept until it ends.
    waiting: Option<(Memory<F>, u64)>,
    /// The last target and its route: most connections use the same one again.
    last: Option<LastTarget>,
    /// The last key of the connection.
    key: Option<LastKey>,
    /// The last head, byte for byte, if its route is that of `last`.
    known: Option<KnownHead>,
    /// The last accepted `Host`, byte for byte.
    host: Vec<u8>,
}

struct LastKey {
    text: Zeroizing<Vec<u8>>,
    /// `None`: the text cannot be a key.
    hash: Option<[u8; 32]>,
}

/// A parsed head, and its fields other than the target: most clients send the same head with every request. A head with
/// ids differs in each request, so it is not cached.
struct KnownHead {
    /// Contains the key.
    bytes: Zeroizing<Vec<u8>>,
    statements: Statements,
}

/// The fields of a simple head, except target, host and ids.
#[derive(Clone, Copy)]
struct Statements {
    body_bytes: u64,
    /// As in [`Credential::KeyHash`]; `None` if there is no key.
    key_hash: Option<Option<[u8; 32]>>,
    takes_gzip: bool,
    typed: bool,
    /// Includes the effect of the target's query.
    dialect: Dialect,
}

struct LastTarget {
    method: Method,
    target: Box<str>,
    uri: Uri,
    /// The dialect of the query, if it has one.
    dialect: Option<Dialect>,
    /// `None`: the target is for hyper.
    route: Option<(&'static Route, Variables)>,
}

impl LastTarget {
    fn fast(&self) -> Option<(&'static Route, Variables, Uri)> {
        let (route, variables) = self.route?;
        Some((route, variables, self.uri.clone()))
    }
}

/// A copy of the body, which a handler may keep.
fn body(bytes: &[u8]) -> Bytes {
    if bytes.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(bytes) }
}

impl<'a, F: Future<Output = Option<Response<Body>>>> FastPath<'a, F> {
    pub(super) fn new(
        edge: &'a Rc<Edge>,
        peer: IpAddr,
        exchanges: Rc<Exchanges<F>>,
        socket: Socket,
        head: HeadDeadline,
    ) -> FastPath<'a, F> {
        FastPath {
            edge,
            peer,
            exchanges,
            reading: Reading::new(socket, head),
            waiting: None,
            last: None,
            key: None,
            known: None,
            host: Vec::new(),
        }
    }

    /// State that hyper's responses depend on.
    pub(super) fn handover(&self) -> Rc<Handover> {
        Rc::clone(&self.reading.handover)
    }

    /// Polls the pending exchange. `None`: no exchange is pending.
    fn resume(&mut self, context: &mut Context<'_>) -> Poll<Option<Turn>> {
        let Some((memory, bytes)) = &mut self.waiting else { return Poll::Ready(None) };
        let response = ready!(self.exchanges.poll(memory, context));
        let bytes = *bytes;
        if let Some((memory, _)) = self.waiting.take() {
            self.exchanges.end(memory);
        }
        self.reading.head.answered();
        Poll::Ready(match self.hand_over(response) {
            true => {
                self.reading.socket.skip_incoming(bytes);
                None
            }
            false => {
                self.reading.socket.grant(bytes);
                Some(Turn::Granted)
            }
        })
    }

    /// Returns whether the response was written. Otherwise hyper sends it when it has read the request.
    fn hand_over(&self, response: Option<Response<Body>>) -> bool {
        let is_written = response.is_none();
        *self.reading.handover.prepared.borrow_mut() = response.map(Prepared::Response);
        is_written
    }

    /// Whether a request with this host is answered here. hyper's side refuses other hosts, and checks requests with no
    /// or several `Host` headers.
    fn admit_host(&mut self, host: Option<&[u8]>) -> bool {
        let Some(host) = host else { return true };
        if self.host == host && !host.is_empty() {
            return true;
        }
        let admits = self.edge.app.front.hosts.admits(host);
        if admits && host.len() <= HOST_BYTES_MAX {
            self.host.clear();
            self.host.extend_from_slice(host);
        } else if !admits {
            self.reading.refuse(Code::MisdirectedRequest.into());
        }
        admits
    }

    /// Answers a request of `bytes` bytes.
    fn answer(
        &mut self,
        context: &mut Context<'_>,
        (route, variables, uri): (&'static Route, Variables, Uri),
        statements: Statements,
        (id, headers): (Option<&HeaderValue>, HeaderMap),
        body: Bytes,
        bytes: u64,
    ) -> Next {
        let app = &self.edge.app;
        let Statements { body_bytes, key_hash, takes_gzip, typed, dialect } = statements;
        let key = self.key.as_ref().filter(|_| key_hash.is_some() && refusals::is_on());
        let head = Head {
            fault: None,
            credential: key_hash.map_or(Credential::None, Credential::KeyHash),
            body_bytes: Some(body_bytes),
            typed,
            dialect,
            request_id: request_id(id),
            verbose: false,
            takes_gzip,
            cors: None,
            key_prefix: key.and_then(|key| KeyPrefix::of(&key.text, &app.front.settings.brand.key_prefix)),
            headers,
        };
        let incoming = Incoming {
            method: route.method.hyper(),
            target: Target { uri, found: Some((route, variables)) },
            head,
            body: Full::new(body),
            peer: app.front.limits.source(self.peer, std::iter::empty()),
        };
        let mut memory = self.exchanges.start(self.edge, incoming, &self.reading);
        match self.exchanges.poll(&mut memory, context) {
            Poll::Ready(response) => {
                self.exchanges.end(memory);
                if self.hand_over(response) { Next::Answered(bytes) } else { Next::Granted(bytes) }
            }
            Poll::Pending => {
                self.waiting = Some((memory, bytes));
                Next::Answering
            }
        }
    }

    /// The route of a target, if it is answered here.
    fn route(&mut self, head: &RequestHead<'_>) -> Option<(&'static Route, Variables, Uri)> {
        let is_last = |last: &LastTarget| last.method == head.method && *last.target == *head.target;
        if !self.last.as_ref().is_some_and(is_last) {
            let app = &*self.edge.app;
            // hyper decides about a target that is not a path.
            let uri = Uri::try_from(head.target).ok().filter(|_| head.target.starts_with('/'))?;
            let is_open = |route: &Route| route.exists(&app.front.settings);
            let route = match app.front.router.find(&head.method.hyper(), uri.path(), is_open) {
                Match::Route(route, variables) if is_fast(route) => Some((route, variables)),
                _ => None,
            };
            let dialect = Dialect::parse(Query::read(uri.query().unwrap_or_default()).get("dialect"));
            self.last = Some(LastTarget { method: head.method, target: head.target.into(), uri, dialect, route });
        }
        self.last.as_ref()?.fast()
    }

    /// The hash of the key in the request; `None` if the text cannot be a key.
    fn key_hash(&mut self, shown: &[u8]) -> Option<[u8; 32]> {
        match &self.key {
            Some(LastKey { text, hash }) if **text == *shown => *hash,
            _ => {
                let hash = auth::key_hash(shown, &self.edge.app.front.settings.brand.key_prefix);
                let text = || Zeroizing::new(shown.to_vec());
                self.key = (shown.len() <= KEY_BYTES_MAX).then(|| LastKey { text: text(), hash });
                hash
            }
        }
    }

    /// The request at the start of `bytes`, if its head equals the last one. A head depends on its own bytes alone, so
    /// it has the same fields.
    fn next_known(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Option<Next> {
        let known = self.known.as_ref().filter(|known| bytes.starts_with(&known.bytes))?;
        let head_bytes = known.bytes.len();
        let statements = known.statements;
        let whole = head_bytes as u64 + statements.body_bytes;
        if whole > bytes.len() as u64 {
            return None;
        }
        let route = self.last.as_ref().and_then(LastTarget::fast)?;
        let body = body(&bytes[head_bytes..whole as usize]);
        Some(self.answer(context, route, statements, (None, HeaderMap::new()), body, whole))
    }

    /// Starts the request of a simple head.
    fn next_simple(&mut self, context: &mut Context<'_>, bytes: &[u8], simple: &RequestHead<'_>) -> Next {
        let edge: &'a Rc<Edge> = self.edge;
        let config = &edge.app.front.settings;
        let whole = simple.bytes();
        let admits = self.admit_host(Some(simple.host));
        // A body that has not arrived has a deadline, and one that is too long has its own response. hyper refuses a
        // head that is too long, however its bytes arrive.
        if !admits
            || whole > bytes.len() as u64
            || simple.head_bytes > HEAD_BYTES_MAX
            || simple.body_bytes > config.http.body_bytes_max as u64
        {
            return Next::Granted(whole);
        }
        let Some(route) = self.route(simple) else { return Next::Granted(whole) };
        // The shape of the response may depend on headers that are not parsed here.
        if simple.key.is_none() && dialect::is_of_a_transport(simple.agent) {
            return Next::Granted(whole);
        }
        let value = |bytes: Option<&[u8]>| bytes.map(HeaderValue::from_bytes).transpose();
        let (Ok(id), Ok(idempotency_key)) = (value(simple.request_id), value(simple.idempotency_key)) else {
            return Next::Granted(whole);
        };
        let key_hash = simple.key.map(|key| self.key_hash(key));
        let RequestHead { takes_gzip, typed, agent, head_bytes, body_bytes, .. } = *simple;
        let dialect = self.last.as_ref().and_then(|last| last.dialect);
        let dialect = dialect.unwrap_or_else(|| Dialect::of_agent(agent, &config.compat.client_agents));
        let statements = Statements { body_bytes, key_hash, takes_gzip, typed, dialect };
        if id.is_none() && idempotency_key.is_none() && head_bytes <= KNOWN_BYTES_MAX {
            let bytes = Zeroizing::new(bytes[..head_bytes].to_vec());
            self.known = Some(KnownHead { bytes, statements });
        }
        let mut headers = HeaderMap::new();
        if let Some(key) = idempotency_key {
            headers.insert(IDEMPOTENCY_KEY, key);
        }
        let body = body(&bytes[head_bytes..whole as usize]);
        self.answer(context, route, statements, (id.as_ref(), headers), body, whole)
    }
}

impl<F: Future<Output = Option<Response<Body>>>> Reader for FastPath<'_, F> {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Turn {
        match self.resume(context) {
            Poll::Ready(None) => self.read(context),
            Poll::Ready(Some(turn)) => turn,
            Poll::Pending => Turn::Waits,
        }
    }

    fn end(&mut self) -> bool {
        match self.waiting {
            Some(_) => self.reading.handover.closes.set(true),
            None => self.reading.socket.grant_all(),
        }
        self.waiting.is_none()
    }

    fn next(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Next {
        if let Some(next) = self.next_known(context, bytes) {
            return next;
        }
        self.known = None;
        match request_head::parse(bytes) {
            Parsed::Partial => Next::Partial,
            Parsed::Simple(head) => self.next_simple(context, bytes, &head),
            Parsed::Framed(bytes, host) => {
                self.admit_host(host);
                Next::Granted(bytes)
            }
            Parsed::Unframed(host) => {
                self.admit_host(host);
                Next::Last
            }
            Parsed::BareLineFeed => self.reading.refuse_bare_line_feed(),
            Parsed::Unreadable => Next::Last,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn future_bytes<A, B, C, D, F>(_: fn(A, B, C, D) -> F) -> usize {
        size_of::<F>()
    }

    #[test]
    fn an_exchange_is_a_small_future() {
        let bytes = future_bytes(start);
        println!("the future of an exchange: {bytes} bytes");
        assert!(bytes <= 3_072, "{bytes} bytes");
    }
}
