//! The head of a response, and the encoding of its body.
//!
//! [`ResponseHead`] decides which lines a head has: type, code, request id, cache, rate, CORS. The lines go to a map
//! for hyper, or as text to the buffer of a connection (`Lines`). This module also writes the error envelope of a
//! refusal, compresses bodies, and omits the body of a HEAD.

use super::auth::RequestId;
use super::body::{Body, Pages, Streamed};
use super::buffer;
use super::code::{self, Code};
use super::dialect::Dialect;
use super::limit::RateState;
use super::names::Names;
use super::pipeline::Head;
use super::refusals::KeyPrefix;
use super::reply::{Fresh, Outcome, Parts, Reply};
use super::route::Route;
use engine::time::{Timestamp, UtcDay};
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode};
use std::cell::RefCell;
use std::io::Write as _;
use wire::{decimal, instant};

/// Smaller bodies are never compressed.
const COMPRESS_BYTES_MIN: usize = 1_024;
/// Larger bodies are compressed in pieces: in one step they would block the core thread for milliseconds.
const COMPRESS_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// `Cache-Control` of a public answer.
const PUBLIC: &str = "public, max-age=5";

/// That of one that may be kept for another time.
const fn public(fresh: Fresh) -> &'static str {
    match fresh {
        Fresh::FifteenSeconds => "public, max-age=15",
        Fresh::TenMinutes => "public, max-age=600",
    }
}

/// Who may cache a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Never: books, market by slug, time, health, status.
    NoStore,
    /// Server-sent events.
    Stream,
    /// All others: `private, no-store` with a credential, five seconds without, or the time of the reply ([`Fresh`]).
    ByCredential,
}

/// The inputs of a response's head.
#[derive(Debug)]
pub struct ResponseHead<'a> {
    pub names: &'a Names,
    pub request_id: RequestId,
    /// Dialect of a refusal's envelope.
    pub dialect: Dialect,
    /// Whether refusals have `details` and `request_id`.
    pub verbose: bool,
    pub is_head: bool,
    /// Whether the method is GET or HEAD.
    pub is_read: bool,
    pub takes_gzip: bool,
    /// `Access-Control-Allow-Origin`, if the `Origin` may read the response.
    pub cors: Option<HeaderValue>,
    pub cache: Cache,
    /// Whether the route takes a credential, or the request has a usable one.
    pub private: bool,
    pub rate: Option<RateState>,
    /// Whether the route is public. A 429 then has no rate headers, with or without a key.
    pub public_route: bool,
    /// The cutoff of a beta key, from that time on.
    pub beta_cutoff: Option<Timestamp>,
    /// The first day that answers about history show, if the user has had earlier ones.
    pub history_from: Option<UtcDay>,
    /// Whether the connection ends after the response.
    pub closes: bool,
    /// The use that is counted.
    pub used: Used,
    /// Prefix of the key, for the log. Read only if refusals are logged.
    pub key_prefix: Option<KeyPrefix>,
}

/// When a request used which route, with which key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    /// When its head was read.
    pub begun: Timestamp,
    pub route: Option<&'static Route>,
    /// The key's slot, once the request counts against it.
    pub key: Option<u32>,
}

impl<'a> ResponseHead<'a> {
    /// The head of a response before the route is known.
    pub fn of(names: &'a Names, method: &Method, head: &mut Head) -> ResponseHead<'a> {
        ResponseHead {
            dialect: head.dialect,
            verbose: head.verbose,
            is_head: *method == Method::HEAD,
            is_read: matches!(*method, Method::GET | Method::HEAD),
            takes_gzip: head.takes_gzip,
            cors: head.cors.take(),
            key_prefix: head.key_prefix,
            ..ResponseHead::with_id(names, head.request_id.clone())
        }
    }

    /// The head of a response to a request of which only the id is known.
    pub fn with_id(names: &'a Names, request_id: RequestId) -> ResponseHead<'a> {
        ResponseHead {
            names,
            request_id,
            dialect: Dialect::Plain,
            verbose: false,
            is_head: false,
            is_read: false,
            takes_gzip: false,
            cors: None,
            cache: Cache::NoStore,
            private: false,
            rate: None,
            public_route: false,
            beta_cutoff: None,
            history_from: None,
            closes: false,
            used: Used::default(),
            key_prefix: None,
        }
    }
}

/// Target of header lines. A line replaces an earlier one of its name, except with `append`.
trait Lines {
    fn line(&mut self, name: Name, value: &'static str);
    fn append(&mut self, name: Name, value: &'static str);
    fn value(&mut self, name: &HeaderName, value: &HeaderValue);
    fn request_id(&mut self, names: &Names, id: &RequestId);
    fn rate(&mut self, names: &Names, rate: &RateState);
}

/// Names of headers with fixed values.
#[derive(Clone, Copy)]
enum Name {
    CacheControl,
    Connection,
    ContentType,
    Vary,
}

impl Name {
    fn header(self) -> HeaderName {
        match self {
            Name::CacheControl => header::CACHE_CONTROL,
            Name::Connection => header::CONNECTION,
            Name::ContentType => header::CONTENT_TYPE,
            Name::Vary => header::VARY,
        }
    }

    /// The start of the header line.
    #[inline]
    const fn text(self) -> &'static [u8] {
        match self {
            Name::CacheControl => b"cache-control: ",
            Name::Connection => b"connection: ",
            Name::ContentType => b"content-type: ",
            Name::Vary => b"vary: ",
        }
    }
}

/// For hyper, and for heads with unusual lines.
impl Lines for HeaderMap {
    fn line(&mut self, name: Name, value: &'static str) {
        self.insert(name.header(), HeaderValue::from_static(value));
    }

    fn append(&mut self, name: Name, value: &'static str) {
        HeaderMap::append(self, name.header(), HeaderValue::from_static(value));
    }

    fn value(&mut self, name: &HeaderName, value: &HeaderValue) {
        self.insert(name.clone(), value.clone());
    }

    fn request_id(&mut self, names: &Names, id: &RequestId) {
        self.insert(names.request_id.clone(), id.header());
    }

    fn rate(&mut self, names: &Names, rate: &RateState) {
        for ((plain, branded), value) in names.rate.iter().zip(rate.values()) {
            self.insert(plain.clone(), value.clone());
            self.insert(branded.clone(), value);
        }
    }
}

/// Text. Each line is written once.
impl Lines for Vec<u8> {
    #[inline]
    fn line(&mut self, name: Name, value: &'static str) {
        self.extend_from_slice(name.text());
        self.extend_from_slice(value.as_bytes());
        self.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn append(&mut self, name: Name, value: &'static str) {
        self.line(name, value);
    }

    #[inline]
    fn value(&mut self, name: &HeaderName, value: &HeaderValue) {
        text_line(self, name, value.as_bytes());
    }

    #[inline]
    fn request_id(&mut self, _: &Names, id: &RequestId) {
        self.extend_from_slice(b"x-request-id: ");
        self.extend_from_slice(id.as_bytes());
        self.extend_from_slice(b"\r\n");
    }

    #[inline]
    fn rate(&mut self, names: &Names, rate: &RateState) {
        names.write_rate(self, rate);
    }
}

fn text_line(out: &mut Vec<u8>, name: &HeaderName, value: &[u8]) {
    out.extend_from_slice(name.as_str().as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

impl ResponseHead<'_> {
    /// The response of an outcome, for hyper.
    pub fn response(&self, outcome: Outcome) -> Response<Body> {
        let mut headers = HeaderMap::with_capacity(24);
        let (status, mut body, pages, refused, fresh) = match outcome {
            Ok(Reply { upgrade: Some(upgrade), status, headers: own, .. }) => {
                headers.extend(own);
                self.standard(&mut headers, status, false);
                let mut response = Response::new(Body::Upgraded(upgrade));
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                return response;
            }
            Ok(reply) => {
                if !reply.content_type.is_empty() {
                    headers.line(Name::ContentType, reply.content_type);
                }
                for (name, value) in reply.headers {
                    headers.insert(name, value);
                }
                if reply.status.as_u16() >= 400 {
                    headers.insert(self.names.code.clone(), HeaderValue::from_static(code::of_status(reply.status)));
                }
                (reply.status, reply.body, reply.pages, false, reply.fresh)
            }
            Err(refusal) => {
                let body = refusal.envelope(self.dialect, self.verbose, self.request_id.text());
                let status = refusal.status();
                self.refused(&mut headers, *refusal.0);
                (status, body, None, true, None)
            }
        };
        self.standard(&mut headers, status, refused);
        if let Some(fresh) = fresh.filter(|_| self.cache_control(status, refused) == PUBLIC) {
            headers.line(Name::CacheControl, public(fresh));
        }
        let pages = match pages {
            None if self.takes_gzip && body.len() > COMPRESS_AT_ONCE_BYTES_MAX => {
                Some(Pages::cut(std::mem::take(&mut body)))
            }
            pages => pages,
        };
        let body = match pages {
            None => {
                varies_by_encoding(&mut headers, body.len());
                let body = self.compressed(&mut headers, body);
                self.body(&mut headers, body)
            }
            Some(pages) => self.streamed(&mut headers, pages),
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        response
    }

    /// Writes the response of an outcome to `out`, with the same bytes as hyper. Returns a response that it cannot
    /// write: one with a body of unknown length, an upgrade, or the last one of a connection.
    pub fn write(&self, outcome: Outcome, out: &mut Vec<u8>) -> (StatusCode, Option<Response<Body>>) {
        match outcome {
            Ok(reply) if self.is_usual(&reply) => {
                out.reserve(HEAD_BYTES + reply.body.len());
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
                out.line(Name::ContentType, reply.content_type);
                self.standard(out, reply.status, false);
                varies_by_encoding(out, reply.body.len());
                self.end_head(out, Some(reply.body.len()));
                out.extend_from_slice(&reply.body);
                buffer::give_back(reply.body);
                (reply.status, None)
            }
            outcome => {
                let response = self.response(outcome);
                let status = response.status();
                (status, self.write_whole(response, out))
            }
        }
    }

    /// Whether the head has only the usual lines, and the body is sent as it is.
    fn is_usual(&self, reply: &Reply) -> bool {
        reply.status == StatusCode::OK
            && !reply.content_type.is_empty()
            && reply.headers.is_empty()
            && reply.fresh.is_none()
            && reply.pages.is_none()
            && reply.upgrade.is_none()
            && !(self.takes_gzip && reply.body.len() >= COMPRESS_BYTES_MIN)
            && !self.is_head
            && self.cors.is_none()
            && self.beta_cutoff.is_none()
            && self.history_from.is_none()
            && !self.closes
    }

    /// Returns the response if its body is not in one buffer, or no other response may follow.
    fn write_whole(&self, response: Response<Body>, out: &mut Vec<u8>) -> Option<Response<Body>> {
        let status = response.status();
        let last = response.headers().contains_key(header::CONNECTION) || status.is_informational() || self.is_head;
        let body = match response.body() {
            Body::Whole(whole) if !last => whole.bytes().clone(),
            _ => return Some(response),
        };
        status_line(out, status);
        for (name, value) in response.headers() {
            text_line(out, name, value.as_bytes());
        }
        self.end_head(out, (status != StatusCode::NO_CONTENT).then_some(body.len()));
        out.extend_from_slice(&body);
        None
    }

    fn end_head(&self, out: &mut Vec<u8>, body_bytes: Option<usize>) {
        if let Some(bytes) = body_bytes {
            out.extend_from_slice(b"content-length: ");
            decimal::integer(out, bytes as u64);
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"date: ");
        write_date(out, self.used.begun);
        out.extend_from_slice(b"\r\n\r\n");
    }

    /// Adds the lines that only refusals have.
    fn refused(&self, headers: &mut HeaderMap, parts: Parts) {
        headers.line(Name::ContentType, "application/json");
        headers.insert(self.names.code.clone(), HeaderValue::from_static(parts.code.header()));
        if let Some(secs) = parts.retry_after_secs {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(secs));
        }
        if let Some(order) = parts.order_id {
            headers.insert(self.names.order_id.clone(), HeaderValue::from(order));
        }
        if let Some(allow) = parts.allow.and_then(|allow| HeaderValue::try_from(allow).ok()) {
            headers.insert(header::ALLOW, allow);
        }
        if let Some(bytes) = parts.range_beyond.and_then(|bytes| HeaderValue::try_from(format!("bytes */{bytes}")).ok())
        {
            headers.insert(header::CONTENT_RANGE, bytes);
        }
        if parts.code == Code::Http426 {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        headers.extend(parts.headers);
        if parts.closes_connection {
            headers.line(Name::Connection, "close");
        }
    }

    /// Adds the lines that any response may have.
    #[inline]
    fn standard(&self, to: &mut impl Lines, status: StatusCode, refused: bool) {
        if self.closes {
            to.line(Name::Connection, "close");
        }
        to.request_id(self.names, &self.request_id);
        to.line(Name::CacheControl, self.cache_control(status, refused));
        let bare = self.public_route && status == StatusCode::TOO_MANY_REQUESTS;
        if let Some(rate) = self.rate.as_ref().filter(|_| !bare) {
            to.rate(self.names, rate);
        }
        if let Some(cutoff) = self.beta_cutoff
            && let Ok(cutoff) = HeaderValue::try_from(instant::ts_text(cutoff))
        {
            to.value(&self.names.beta_cutoff, &cutoff);
        }
        if let Some(day) = self.history_from
            && let Ok(day) = HeaderValue::try_from(day.text())
        {
            to.value(&self.names.history_from, &day);
        }
        if let Some(origin) = &self.cors {
            if origin != "*" {
                to.append(Name::Vary, "Origin");
            }
            to.value(&header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            to.value(&header::ACCESS_CONTROL_EXPOSE_HEADERS, &self.names.exposed_headers);
        }
    }

    fn cache_control(&self, status: StatusCode, refused: bool) -> &'static str {
        match self.cache {
            Cache::Stream if !refused => "no-cache, no-transform",
            Cache::ByCredential if self.private => "private, no-store",
            Cache::ByCredential if self.is_read && !refused && status == StatusCode::OK => PUBLIC,
            _ => "no-store",
        }
    }

    fn compressed(&self, headers: &mut HeaderMap, body: Vec<u8>) -> Vec<u8> {
        if body.len() < COMPRESS_BYTES_MIN || !self.takes_gzip {
            return body;
        }
        // Speed matters more than size: this runs on the thread that serves all connections.
        let mut gzip = GzEncoder::new(Vec::with_capacity(body.len() / 3), Compression::fast());
        match gzip.write_all(&body).and_then(|()| gzip.finish()) {
            Ok(small) => {
                headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
                small
            }
            Err(_) => body,
        }
    }

    fn body(&self, headers: &mut HeaderMap, body: Vec<u8>) -> Body {
        if !self.is_head {
            return Body::from(body);
        }
        headers.insert(header::CONTENT_LENGTH, HeaderValue::from(body.len()));
        Body::from(Vec::new())
    }

    /// Usually the length is unknown. So a HEAD has none, and a body of any length is compressed.
    fn streamed(&self, headers: &mut HeaderMap, pages: Pages) -> Body {
        if let Some(bytes) = pages.left() {
            if self.is_head {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
                return Body::from(Vec::new());
            }
            return Body::Streamed(Box::new(Streamed::new(pages, false)));
        }
        let gzip = self.takes_gzip && !pages.is_live();
        if !pages.is_live() {
            Lines::append(headers, Name::Vary, "Accept-Encoding");
        }
        if gzip {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        if self.is_head {
            return Body::from(Vec::new());
        }
        Body::Streamed(Box::new(Streamed::new(pages, gzip)))
    }
}

/// Adds `Vary` for a body that is compressed if the client accepts gzip.
#[inline]
fn varies_by_encoding(to: &mut impl Lines, body_bytes: usize) {
    if body_bytes >= COMPRESS_BYTES_MIN {
        to.append(Name::Vary, "Accept-Encoding");
    }
}

/// Writes the response to a head that hyper cannot read, and that ends the connection. Nothing of the request is known.
pub fn write_unread(names: &Names, now: Timestamp, status: StatusCode, out: &mut Vec<u8>) {
    let why = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "The head of the request is too large.",
        StatusCode::URI_TOO_LONG => "The target of the request is too long.",
        _ => "The head of the request cannot be read.",
    };
    let code = format!("HTTP_{}", status.as_u16());
    let body = format!(r#"{{"error":"{code}","message":"{why}"}}"#);
    let used = Used { begun: now, ..Used::default() };
    let head = ResponseHead { used, ..ResponseHead::with_id(names, RequestId::made()) };
    status_line(out, status);
    out.line(Name::ContentType, "application/json");
    text_line(out, &names.code, code.as_bytes());
    head.standard(out, status, true);
    out.line(Name::Connection, "close");
    head.end_head(out, Some(body.len()));
    out.extend_from_slice(body.as_bytes());
}

fn status_line(out: &mut Vec<u8>, status: StatusCode) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Capacity for the head of a usual response.
const HEAD_BYTES: usize = 896;

/// Writes the text of `Date`, which is made once a second.
fn write_date(out: &mut Vec<u8>, at: Timestamp) {
    thread_local! {
        static LAST: RefCell<(u64, String)> = const { RefCell::new((u64::MAX, String::new())) };
    }
    LAST.with_borrow_mut(|(second, text)| {
        if *second != at.secs() {
            (*second, *text) = (at.secs(), instant::http_date(at));
        }
        out.extend_from_slice(text.as_bytes());
    });
}

/// Whether an `Accept-Encoding` accepts gzip.
pub fn takes_gzip(accept_encoding: Option<&HeaderValue>) -> bool {
    let Some(text) = accept_encoding.and_then(|value| value.to_str().ok()) else { return false };
    text.split(',').any(|coding| {
        let mut parts = coding.split(';');
        let name = parts.next().unwrap_or_default().trim();
        let refused = parts.any(|part| {
            let quality = part.trim().strip_prefix("q=").unwrap_or("1");
            quality.bytes().all(|b| b == b'0' || b == b'.')
        });
        name.eq_ignore_ascii_case("gzip") && !refused
    })
}

#[cfg(test)]
mod tests;
