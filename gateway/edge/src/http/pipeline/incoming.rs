//! A request as its reader passes it on.

use crate::http::auth::{self, RequestId};
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::front::Front;
use crate::http::limit::Source;
use crate::http::names::Names;
use crate::http::refusals::{self, KeyPrefix};
use crate::http::reply::Refusal;
use crate::http::response_head::takes_gzip;
use crate::http::route::Route;
use crate::http::router::Variables;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Uri, Version};
use std::net::IpAddr;
use wire::query::Query;

/// Longest request target.
const TARGET_BYTES_MAX: usize = 8 * 1_024;
/// Longest request id that a client may choose.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// One request.
pub struct Incoming<B> {
    pub method: Method,
    pub target: Target,
    pub head: Head,
    /// Not read yet, or in memory.
    pub body: B,
    /// The source address, as address limits count it.
    pub peer: Source,
}

/// The target of a request.
pub struct Target {
    pub uri: Uri,
    /// The route and its variables, if the reader has found them already.
    pub found: Option<(&'static Route, Variables)>,
}

/// The parts of a request's head that the steps and the response need.
pub struct Head {
    /// Why the reader refuses the head.
    pub fault: Option<Refusal>,
    pub credential: Credential,
    /// The declared length of the body.
    pub body_bytes: Option<u64>,
    /// Whether the head has a `Content-Type`.
    pub typed: bool,
    /// Dialect of venue-shaped rows and of refusals.
    pub dialect: Dialect,
    pub request_id: RequestId,
    /// Whether refusals have `details` and `request_id`.
    pub verbose: bool,
    pub takes_gzip: bool,
    /// `Access-Control-Allow-Origin`, for an `Origin` that may read the response.
    pub cors: Option<HeaderValue>,
    /// Prefix of the key, for the log. Read only if refusals are logged.
    pub key_prefix: Option<KeyPrefix>,
    /// All headers, if hyper read the request; otherwise those that handlers read.
    pub headers: HeaderMap,
}

/// Where the credential of a request comes from.
pub enum Credential {
    /// The headers ([`auth::credentials`]).
    InHeaders,
    None,
    /// The hash of the key in the request; `None` inside for a text that cannot be a key.
    KeyHash(Option<[u8; 32]>),
    /// The slot of the key that opened the socket.
    Slot(u32),
}

impl Head {
    /// A head without headers.
    pub fn bare(request_id: RequestId, credential: Credential) -> Head {
        Head {
            fault: None,
            credential,
            body_bytes: None,
            typed: false,
            dialect: Dialect::Plain,
            request_id,
            verbose: false,
            takes_gzip: false,
            cors: None,
            key_prefix: None,
            headers: HeaderMap::new(),
        }
    }
}

impl<B> Incoming<B> {
    /// A request that hyper has read. `fault`: its head was refused before that.
    pub fn of_request(front: &Front, peer: IpAddr, request: Request<B>, fault: Option<Refusal>) -> Incoming<B> {
        let (mut parts, body) = request.into_parts();
        let fault = fault.or_else(|| sound(front, &parts).err());
        if parts.method != Method::GET || parts.version != Version::HTTP_11 {
            // No other request may switch to another protocol (RFC 6455 §4.1).
            parts.headers.remove(header::UPGRADE);
        }
        let Parts { method, uri, headers, .. } = parts;
        let names = &front.names;
        let query = Query::read(uri.query().unwrap_or_default());
        let brand = &front.settings.brand.key_prefix;
        let key_prefix = || KeyPrefix::of(auth::credentials(&headers, &front.key_aliases, brand).key?, brand);
        let declared = headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
        let head = Head {
            fault,
            credential: Credential::InHeaders,
            body_bytes: declared,
            typed: headers.contains_key(header::CONTENT_TYPE),
            dialect: Dialect::of(&headers, query.get("dialect"), &front.settings.compat.client_agents),
            request_id: request_id(headers.get(&names.request_id)),
            verbose: wants_details(names, &headers),
            takes_gzip: takes_gzip(headers.get(header::ACCEPT_ENCODING)),
            cors: front.cors.allows(headers.get(header::ORIGIN)),
            key_prefix: if refusals::is_on() { key_prefix() } else { None },
            headers,
        };
        let peer = front.limits.source(peer, head.headers.get_all("x-forwarded-for").iter());
        Incoming { method, target: Target { uri, found: None }, head, body, peer }
    }
}

/// Whether refusals have `details` and `request_id`.
pub fn wants_details(names: &Names, headers: &HeaderMap) -> bool {
    let sent = headers.get(&names.verbose).and_then(|value| value.to_str().ok());
    sent.is_some_and(|text| ["true", "1", "yes"].iter().any(|on| text.eq_ignore_ascii_case(on)))
}

/// The client's request id if it is well-formed, else a new one.
pub fn request_id(sent: Option<&HeaderValue>) -> RequestId {
    let sound = |id: &&HeaderValue| {
        let bytes = id.as_bytes();
        let letter = |b: &u8| b.is_ascii_alphanumeric() || b"._:-".contains(b);
        (1..=REQUEST_ID_BYTES_MAX).contains(&bytes.len()) && bytes.iter().all(letter)
    };
    sent.filter(sound).cloned().map_or_else(RequestId::made, RequestId::Sent)
}

/// Checks the length of a request target, in bytes.
///
/// # Errors
/// 400 if it is too long.
pub fn sound_target(bytes: usize) -> Result<(), Refusal> {
    if bytes > TARGET_BYTES_MAX { Err(Refusal::broken("The request target is longer than 8 KiB.")) } else { Ok(()) }
}

/// Refuses a head that can only be answered by ending the connection.
fn sound(front: &Front, parts: &Parts) -> Result<(), Refusal> {
    let headers = &parts.headers;
    let count = |name: HeaderName| headers.get_all(name).iter().count();
    sound_target(parts.uri.path_and_query().map_or(0, |target| target.as_str().len()))?;
    if let Some(authority) = parts.uri.authority()
        && !front.hosts.admits(authority.as_str().as_bytes())
    {
        return Err(Code::MisdirectedRequest.into());
    }
    let hosts = count(header::HOST);
    if hosts > 1 || (hosts == 0 && parts.version == Version::HTTP_11) {
        return Err(Refusal::broken("A request must have exactly one Host header."));
    }
    let once = [
        header::AUTHORIZATION,
        header::CONTENT_TYPE,
        HeaderName::from_static("x-api-key"),
        HeaderName::from_static("idempotency-key"),
    ];
    if once.into_iter().any(|name| count(name) > 1) {
        return Err(Refusal::broken("A header that may occur only once occurs twice."));
    }
    if let Some(encoding) = headers.get(header::TRANSFER_ENCODING) {
        let chunked = encoding.as_bytes().eq_ignore_ascii_case(b"chunked");
        if !chunked || count(header::TRANSFER_ENCODING) > 1 {
            return Err(Refusal::broken("The only supported transfer coding is chunked."));
        }
        if headers.contains_key(header::CONTENT_LENGTH) {
            return Err(Refusal::broken("Content-Length and Transfer-Encoding exclude each other."));
        }
    }
    Ok(())
}
