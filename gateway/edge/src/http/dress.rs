//! The outside of a response: the headers that every response carries (wire.md §4, §10).
//!
//! [`Dress::finish`] makes the response of an outcome: envelope, code, rate, cache, CORS and request-id headers,
//! compression, and the empty body of a HEAD.

use super::auth::RequestId;
use super::body::{Body, Pages, Streamed};
use super::buffer;
use super::code::{self, Code};
use super::dialect::Dialect;
use super::limit::RateState;
use super::names::Names;
use super::refusals::Shown;
use super::reply::{Outcome, Parts, Reply};
use super::route::Route;
use engine::time::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::cell::RefCell;
use std::io::Write as _;
use wire::{decimal, instant};

/// Bodies below this are never compressed (wire.md §10).
const COMPRESS_BYTES_MIN: usize = 1_024;
/// Larger ones are compressed a piece at a time: all at once would hold the core thread for milliseconds.
const COMPRESS_AT_ONCE_BYTES_MAX: usize = 64 << 10;

/// How an answer may be kept by others (wire.md §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cache {
    /// Books, market by slug, time, health, status.
    NoStore,
    /// Server-sent events.
    Stream,
    /// Everything else: `private, no-store` with a credential, five seconds without.
    ByCredential,
}

/// What of the request decides the outside of its response.
#[derive(Debug)]
pub struct Dress<'a> {
    pub names: &'a Names,
    pub request_id: RequestId,
    /// How refusals are written.
    pub dialect: Dialect,
    /// Refusals show `details` and `request_id`.
    pub verbose: bool,
    pub is_head: bool,
    /// GET or HEAD.
    pub is_read: bool,
    pub takes_gzip: bool,
    /// `Access-Control-Allow-Origin`, when the request has an `Origin` that may read us.
    pub cors: Option<HeaderValue>,
    pub cache: Cache,
    /// The route takes a credential, or the request had a usable one.
    pub private: bool,
    pub rate: Option<RateState>,
    /// Keyed or not, a 429 of a public route shows no rate headers (wire.md §8).
    pub public_route: bool,
    /// The cutoff that a beta key has passed.
    pub beta_cutoff: Option<Timestamp>,
    /// The connection ends behind the answer.
    pub closes: bool,
    /// What counts as a use of a key.
    pub used: Used,
    /// Of the key that was shown, for the log; looked at only where refusals are logged.
    pub shown: Option<Shown>,
}

/// Which route was asked for when, and by which key.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used {
    pub begun: Timestamp,
    pub route: Option<&'static Route>,
    /// The key's slot, once the request counted against it.
    pub key: Option<u32>,
}

impl<'a> Dress<'a> {
    /// That of an operation of a socket: it has no headers to put anything on, and is asked only for what they would say.
    pub fn of_operation(names: &'a Names) -> Dress<'a> {
        Dress { private: true, ..Dress::of_request(names, RequestId::Sent(HeaderValue::from_static(""))) }
    }

    /// That of a request of which nothing but its id is known yet.
    pub fn of_request(names: &'a Names, request_id: RequestId) -> Dress<'a> {
        Dress {
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
            closes: false,
            used: Used::default(),
            shown: None,
        }
    }
}

impl Dress<'_> {
    /// The response of an outcome.
    pub fn finish(&self, outcome: Outcome) -> Response<Body> {
        let mut headers = HeaderMap::with_capacity(24);
        let (status, mut body, pages, refused) = match outcome {
            Ok(Reply { upgrade: Some(upgrade), status, headers: own, .. }) => {
                headers.extend(own);
                self.standard(&mut headers, status, false);
                let mut response = Response::new(Body::Upgraded(upgrade));
                (*response.status_mut(), *response.headers_mut()) = (status, headers);
                return response;
            }
            Ok(reply) => {
                if !reply.content_type.is_empty() {
                    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(reply.content_type));
                }
                for (name, value) in reply.headers {
                    headers.insert(name, value);
                }
                if reply.status.as_u16() >= 400 {
                    headers.insert(self.names.code.clone(), HeaderValue::from_static(code::of_status(reply.status)));
                }
                (reply.status, reply.body, reply.pages, false)
            }
            Err(refusal) => {
                let body = refusal.envelope(self.dialect, self.verbose, self.request_id.text());
                let (status, body) = self.refused(&mut headers, *refusal.0, body);
                (status, body, None, true)
            }
        };
        self.standard(&mut headers, status, refused);
        let pages = match pages {
            None if self.takes_gzip && body.len() > COMPRESS_AT_ONCE_BYTES_MAX => {
                Some(Pages::cut(std::mem::take(&mut body)))
            }
            pages => pages,
        };
        let body = match pages {
            None => {
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

    /// Writes the response of an outcome to `out`, as the HTTP library would. Gives what was not written: a body whose end
    /// is not known, what is spoken behind an upgrade, the last answer of a connection.
    pub fn write(&self, outcome: Outcome, out: &mut Vec<u8>) -> (StatusCode, Option<Response<Body>>) {
        match outcome {
            Ok(reply) if self.is_usual(&reply) => {
                out.reserve(HEAD_BYTES + reply.body.len());
                out.extend_from_slice(b"HTTP/1.1 200 OK\r\ncontent-type: ");
                out.extend_from_slice(reply.content_type.as_bytes());
                out.extend_from_slice(b"\r\nx-request-id: ");
                out.extend_from_slice(self.request_id.as_bytes());
                out.extend_from_slice(b"\r\ncache-control: ");
                out.extend_from_slice(self.cache_control(reply.status, false).as_bytes());
                out.extend_from_slice(b"\r\n");
                if let Some(rate) = &self.rate {
                    self.names.write_rate(out, rate);
                }
                if reply.body.len() >= COMPRESS_BYTES_MIN {
                    out.extend_from_slice(b"vary: Accept-Encoding\r\n");
                }
                self.end_head(out, Some(reply.body.len()));
                out.extend_from_slice(&reply.body);
                buffer::give_back(reply.body);
                (reply.status, None)
            }
            outcome => {
                let response = self.finish(outcome);
                let status = response.status();
                (status, self.write_whole(response, out))
            }
        }
    }

    /// An answer whose head is made of what every answer has. One that may be compressed is not.
    fn is_usual(&self, reply: &Reply) -> bool {
        reply.status == StatusCode::OK
            && !reply.content_type.is_empty()
            && reply.headers.is_empty()
            && reply.pages.is_none()
            && reply.upgrade.is_none()
            && !(self.takes_gzip && reply.body.len() >= COMPRESS_BYTES_MIN)
            && !self.is_head
            && self.cors.is_none()
            && self.beta_cutoff.is_none()
            && !self.closes
    }

    /// Gives the response back where its body is not whole, or none may follow on the connection.
    fn write_whole(&self, response: Response<Body>, out: &mut Vec<u8>) -> Option<Response<Body>> {
        let status = response.status();
        let last = response.headers().contains_key(header::CONNECTION) || status.is_informational() || self.is_head;
        let body = match response.body() {
            Body::Whole(whole) if !last => whole.bytes().clone(),
            _ => return Some(response),
        };
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b' ');
        out.extend_from_slice(status.canonical_reason().unwrap_or("<none>").as_bytes());
        out.extend_from_slice(b"\r\n");
        for (name, value) in response.headers() {
            out.extend_from_slice(name.as_str().as_bytes());
            out.extend_from_slice(b": ");
            out.extend_from_slice(value.as_bytes());
            out.extend_from_slice(b"\r\n");
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

    fn refused(&self, headers: &mut HeaderMap, parts: Parts, body: Vec<u8>) -> (StatusCode, Vec<u8>) {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
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
        if parts.code == Code::Http426 {
            headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(header::SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        }
        if parts.closes_connection {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        (parts.status, body)
    }

    fn standard(&self, headers: &mut HeaderMap, status: StatusCode, refused: bool) {
        if self.closes {
            headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        headers.insert(self.names.request_id.clone(), self.request_id.header());
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static(self.cache_control(status, refused)));
        let bare = self.public_route && status == StatusCode::TOO_MANY_REQUESTS;
        if let Some(rate) = self.rate.as_ref().filter(|_| !bare) {
            for ((plain, branded), value) in self.names.rate.iter().zip(rate.values()) {
                headers.insert(plain.clone(), value.clone());
                headers.insert(branded.clone(), value);
            }
        }
        if let Some(cutoff) = self.beta_cutoff
            && let Ok(cutoff) = HeaderValue::try_from(instant::ts_text(cutoff))
        {
            headers.insert(self.names.beta_cutoff.clone(), cutoff);
        }
        if let Some(origin) = &self.cors {
            if origin != "*" {
                headers.append(header::VARY, HeaderValue::from_static("Origin"));
            }
            headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
            headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, self.names.exposed_headers.clone());
        }
    }

    fn cache_control(&self, status: StatusCode, refused: bool) -> &'static str {
        match self.cache {
            Cache::Stream if !refused => "no-cache, no-transform",
            Cache::ByCredential if self.private => "private, no-store",
            Cache::ByCredential if self.is_read && !refused && status == StatusCode::OK => "public, max-age=5",
            _ => "no-store",
        }
    }

    fn compressed(&self, headers: &mut HeaderMap, body: Vec<u8>) -> Vec<u8> {
        if body.len() < COMPRESS_BYTES_MIN {
            return body;
        }
        headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
        if !self.takes_gzip {
            return body;
        }
        // Fast rather than small: it runs on the thread that serves everybody.
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

    /// How long it is nobody knows, so a HEAD says no length and any length is worth compressing.
    fn streamed(&self, headers: &mut HeaderMap, pages: Pages) -> Body {
        let gzip = self.takes_gzip && !pages.is_live();
        if !pages.is_live() {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
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

/// Writes the answer to a head that cannot be read, which ends its connection: of that request nothing is known.
pub fn write_unread(names: &Names, now: Timestamp, status: StatusCode, out: &mut Vec<u8>) {
    let why = match status {
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => "The head of the request is too large.",
        StatusCode::URI_TOO_LONG => "The target of the request is too long.",
        _ => "The head of the request cannot be read.",
    };
    let (code, id) = (format!("HTTP_{}", status.as_u16()), RequestId::made());
    let body = format!(r#"{{"error":"{code}","message":"{why}"}}"#);
    let reason = status.canonical_reason().unwrap_or("<none>");
    let head = [
        format!("HTTP/1.1 {} {reason}", status.as_u16()),
        "content-type: application/json".to_owned(),
        format!("{}: {code}", names.code),
        format!("{}: {}", names.request_id, id.text()),
        "cache-control: no-store\r\nconnection: close".to_owned(),
        format!("content-length: {}\r\ndate: {}", body.len(), instant::http_date(now)),
    ];
    out.extend_from_slice(head.join("\r\n").as_bytes());
    out.extend_from_slice(b"\r\n\r\n");
    out.extend_from_slice(body.as_bytes());
}

/// Room for the head of a usual answer.
const HEAD_BYTES: usize = 896;

/// The text of `Date`, made once a second.
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

/// Whether an `Accept-Encoding` takes gzip.
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
