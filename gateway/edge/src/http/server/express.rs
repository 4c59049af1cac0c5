//! The short way of plain requests: read, answered and written where the bytes are, without the HTTP library.
//!
//! ```text
//!   socket ──► head of the next request ─── plain, whole, of a headless route ──► its checks, its handler ──► socket
//!                        │
//!                        └── anything else ──► the library is granted the bytes of this request, or all there will be
//! ```
//!
//! To the library a connection is one whose peer sends a request now and then; while it waits for a head, this part
//! reads. What may be told of a request from its head alone is in [`plain`]; what is checked, in which order and with
//! which answers, is the pipeline's for both ways. One request at a time: the next is looked at when this one is answered.

use super::deadline::HeadDeadline;
use super::reading::{Before, HEAD_BYTES_MAX, Made, Next, Reading, Turn, Word};
use super::socket::Socket;
use crate::app::Edge;
use crate::http::auth;
use crate::http::code::Code;
use crate::http::dialect::{self, Dialect};
use crate::http::pipeline::{Answering, Asked, answers_plainly, begin};
use crate::http::plain::{self, Head, Plain};
use crate::http::refusals;
use crate::http::route::{Method, Route};
use crate::http::router::{Found, Variables};
use bytes::Bytes;
use hyper::Uri;
use std::net::IpAddr;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use wire::query::Query;
use zeroize::Zeroizing;

/// Longest text of a key that is remembered.
const KEY_BYTES_MAX: usize = 128;
/// Longest `Host` that is remembered.
const HOST_BYTES_MAX: usize = 256;
/// Longest head that is remembered.
const KNOWN_BYTES_MAX: usize = 1_024;

/// One connection's requests on the short way.
pub(super) struct Express<'a> {
    edge: &'a Rc<Edge>,
    peer: IpAddr,
    reading: Reading,
    /// A request whose answer takes its time; its bytes are kept meanwhile.
    answering: Option<(Answering<'a>, u64)>,
    /// Where the last target led: most connections ask for the same again.
    last: Option<Last>,
    /// The last key that was shown.
    key: Option<Shown>,
    /// The last head, byte for byte, while its route is that of `last`.
    known: Option<Known>,
    /// The last `Host` that was accepted, byte for byte.
    host: Vec<u8>,
}

struct Shown {
    text: Zeroizing<Vec<u8>>,
    /// `None`: of a text that can be no key.
    hash: Option<[u8; 32]>,
}

/// A head that was read, and what it says beside its target: most clients send the same one with every request. One with
/// ids of its own does not come again, so none is in it.
struct Known {
    /// With the key in it.
    head: Zeroizing<Vec<u8>>,
    body_bytes: u64,
    /// As in [`Asked`].
    key_hash: Option<Option<[u8; 32]>>,
    takes_gzip: bool,
    typed: bool,
    /// With what `last` says.
    dialect: Dialect,
}

struct Last {
    method: Method,
    target: Box<str>,
    uri: Uri,
    /// What its query says, if it says anything.
    dialect: Option<Dialect>,
    /// `None`: the long way.
    route: Option<(&'static Route, Variables)>,
}

impl Last {
    fn plain(&self) -> Option<(&'static Route, Uri, Variables)> {
        let (route, variables) = self.route?;
        Some((route, self.uri.clone(), variables))
    }
}

/// A body for a handler to keep.
fn body(bytes: &[u8]) -> Bytes {
    if bytes.is_empty() { Bytes::new() } else { Bytes::copy_from_slice(bytes) }
}

impl<'a> Express<'a> {
    pub(super) fn new(edge: &'a Rc<Edge>, peer: IpAddr, socket: Socket, head: HeadDeadline) -> Express<'a> {
        Express {
            edge,
            peer,
            reading: Reading::new(socket, head),
            answering: None,
            last: None,
            key: None,
            known: None,
            host: Vec::new(),
        }
    }

    /// What the library's answer depends on.
    pub(super) fn word(&self) -> Rc<Word> {
        Rc::clone(&self.reading.word)
    }

    /// Goes on with the request that is being answered.
    fn go_on(&mut self, context: &mut Context<'_>) -> Poll<Option<Turn>> {
        let Some((mut answering, bytes)) = self.answering.take() else { return Poll::Ready(None) };
        match self.poll(context, &mut answering) {
            Poll::Pending => {
                self.answering = Some((answering, bytes));
                Poll::Pending
            }
            Poll::Ready(is_written) => {
                self.reading.head.answered();
                match is_written {
                    true => self.reading.socket.skip_incoming(bytes),
                    false => self.reading.socket.grant(bytes),
                }
                Poll::Ready((!is_written).then_some(Turn::Granted))
            }
        }
    }

    /// True when the answer was written; else the library is to send it when it reads the request.
    fn poll(&self, context: &mut Context<'_>, answering: &mut Answering<'a>) -> Poll<bool> {
        let made = ready!(self.reading.socket.gather(|out| answering.poll(&self.edge.app, context, out)));
        let is_written = made.is_none();
        *self.reading.word.made.borrow_mut() = made.map(Made::Answer);
        Poll::Ready(is_written)
    }

    /// Whether a request to this host is answered here. The answer to another one is a refusal, which the library sends.
    /// Requests with none or several have another check, in the pipeline.
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

    fn answer(&mut self, context: &mut Context<'_>, asked: Asked<'_>, whole: u64) -> Next {
        let shows_key = asked.key_hash.is_some();
        let mut answering = begin(self.edge, self.peer, asked);
        if refusals::is_on()
            && let Some(key) = self.key.as_ref().filter(|_| shows_key)
        {
            answering.shows(&key.text, &self.edge.app.config.brand.key_prefix);
        }
        match self.poll(context, &mut answering) {
            Poll::Ready(true) => Next::Answered(whole),
            Poll::Ready(false) => Next::Granted(whole),
            Poll::Pending => {
                self.answering = Some((answering, whole));
                Next::Answering
            }
        }
    }

    /// The route of a target that is answered on this way.
    fn route(&mut self, plain: &Plain<'_>) -> Option<(&'static Route, Uri, Variables)> {
        let is_last = |last: &Last| last.method == plain.method && *last.target == *plain.target;
        if !self.last.as_ref().is_some_and(is_last) {
            let app = &*self.edge.app;
            // What is no path, or no target at all, is the library's to judge.
            let uri = Uri::try_from(plain.target).ok().filter(|_| plain.target.starts_with('/'))?;
            let open = |route: &Route| route.gate.is_none_or(|gate| gate.open(&app.config));
            let route = match app.front.router.find(&plain.method.hyper(), uri.path(), open) {
                Found::Route(route, variables) if answers_plainly(route) => Some((route, variables)),
                _ => None,
            };
            let dialect = Dialect::asked(Query::read(uri.query().unwrap_or_default()).get("dialect"));
            self.last = Some(Last { method: plain.method, target: plain.target.into(), uri, dialect, route });
        }
        self.last.as_ref()?.plain()
    }

    /// The hash of a key that was shown; `None` for a text that can be none.
    fn key_hash(&mut self, shown: &[u8]) -> Option<[u8; 32]> {
        match &self.key {
            Some(Shown { text, hash }) if **text == *shown => *hash,
            _ => {
                let hash = auth::key_hash(shown, &self.edge.app.config.brand.key_prefix);
                self.key = (shown.len() <= KEY_BYTES_MAX).then(|| Shown { text: Zeroizing::new(shown.to_vec()), hash });
                hash
            }
        }
    }
}

impl Before for Express<'_> {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn turn(&mut self, context: &mut Context<'_>) -> Turn {
        match self.go_on(context) {
            Poll::Ready(None) => self.read(context),
            Poll::Ready(Some(turn)) => turn,
            Poll::Pending => Turn::Waits,
        }
    }

    fn end(&mut self) -> bool {
        match &mut self.answering {
            Some((answering, _)) => answering.close(),
            None => self.reading.socket.grant_all(),
        }
        self.answering.is_none()
    }

    fn next(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Next {
        // What a head says depends on its own bytes alone, so what was found of it holds again.
        if let Some(known) = self.known.as_ref().filter(|known| bytes.starts_with(&known.head)) {
            let head_bytes = known.head.len();
            let whole = head_bytes as u64 + known.body_bytes;
            if whole <= bytes.len() as u64
                && let Some((route, uri, variables)) = self.last.as_ref().and_then(Last::plain)
            {
                let (key_hash, takes_gzip, typed, dialect) =
                    (known.key_hash, known.takes_gzip, known.typed, known.dialect);
                let body = body(&bytes[head_bytes..whole as usize]);
                let (request_id, idempotency_key) = (None, None);
                let asked = Asked {
                    route,
                    uri,
                    variables,
                    key_hash,
                    request_id,
                    idempotency_key,
                    takes_gzip,
                    typed,
                    dialect,
                    body,
                };
                return self.answer(context, asked, whole);
            }
        }
        self.known = None;
        let plain = match plain::head(bytes) {
            Head::Part => return Next::Part,
            Head::Plain(plain) => plain,
            Head::Framed(bytes, host) => {
                self.admit_host(host);
                return Next::Granted(bytes);
            }
            Head::Endless(host) => {
                self.admit_host(host);
                return Next::Last;
            }
            Head::BareLineFeed => return self.reading.refuse_bare_line_feed(),
            Head::Unreadable => return Next::Last,
        };
        let whole = plain.bytes();
        // A body that is still on its way has deadlines, and one that is too long an answer of its own.
        let is_whole = whole <= bytes.len() as u64;
        // However it came: a head that is too long is the library's to refuse.
        if !is_whole
            || plain.head_bytes > HEAD_BYTES_MAX
            || plain.body_bytes > self.edge.app.config.http.body_bytes_max as u64
        {
            self.admit_host(Some(plain.host));
            return Next::Granted(whole);
        }
        if !self.admit_host(Some(plain.host)) {
            return Next::Granted(whole);
        }
        let Some((route, uri, variables)) = self.route(&plain) else { return Next::Granted(whole) };
        // Its shape may depend on more of the head than is read here.
        if plain.key.is_none() && dialect::is_of_a_transport(plain.agent) {
            return Next::Granted(whole);
        }
        let key_hash = plain.key.map(|key| self.key_hash(key));
        let Plain { request_id, idempotency_key, takes_gzip, typed, agent, head_bytes, body_bytes, .. } = plain;
        let asked = self.last.as_ref().and_then(|last| last.dialect);
        let agents = &self.edge.app.config.compat.client_agents;
        let dialect = asked.unwrap_or_else(|| Dialect::of_agent(agent, agents));
        if request_id.is_none() && idempotency_key.is_none() && head_bytes <= KNOWN_BYTES_MAX {
            let head = Zeroizing::new(bytes[..head_bytes].to_vec());
            self.known = Some(Known { head, body_bytes, key_hash, takes_gzip, typed, dialect });
        }
        let body = body(&bytes[head_bytes..whole as usize]);
        let asked =
            Asked { route, uri, variables, key_hash, request_id, idempotency_key, takes_gzip, typed, dialect, body };
        self.answer(context, asked, whole)
    }
}
