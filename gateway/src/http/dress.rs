//! The outside of a response: the headers that every response carries (wire.md §4, §10).
//!
//! [`Dress::finish`] makes the response of an outcome: envelope, code, rate, cache, CORS and request-id headers,
//! compression, and the empty body of a HEAD.

use super::auth::RequestId;
use super::body::{Body, Pages, Streamed};
use super::buffer;
use super::code::{self, Code};
use super::limit::RateState;
use super::names::Names;
use super::reply::{Outcome, Parts, Reply};
use super::route::Route;
use crate::wire::{decimal, instant};
use engine::time::Timestamp;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::header::{self, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use std::cell::RefCell;
use std::io::Write as _;

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
                let body = refusal.envelope(self.verbose, self.request_id.text());
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
mod tests {
    use super::*;
    use crate::http::code::Code;
    use crate::http::reply::{Refusal, Reply};
    use http_body_util::BodyExt;

    fn names() -> Names {
        Names::new("X-Svc", &["MKT_API_KEY".to_owned()]).expect("a valid prefix")
    }

    fn dress(names: &Names) -> Dress<'_> {
        Dress {
            names,
            request_id: RequestId::Sent(HeaderValue::from_static("r-1")),
            verbose: false,
            is_head: false,
            is_read: true,
            takes_gzip: false,
            cors: None,
            cache: Cache::ByCredential,
            private: true,
            rate: None,
            public_route: false,
            beta_cutoff: None,
            closes: false,
            used: Used::default(),
        }
    }

    fn body(response: Response<Body>) -> bytes::Bytes {
        let collected = futures_now(response.into_body().collect());
        collected.expect("a full body cannot fail").to_bytes()
    }

    /// The value of a future that is ready at once.
    fn futures_now<F: Future>(future: F) -> F::Output {
        let mut context = std::task::Context::from_waker(std::task::Waker::noop());
        match std::pin::pin!(future).poll(&mut context) {
            std::task::Poll::Ready(value) => value,
            std::task::Poll::Pending => panic!("a full body is ready"),
        }
    }

    fn header<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
        response.headers().get(name).map(|value| value.to_str().expect("ASCII"))
    }

    #[test]
    fn the_envelope_has_two_fields_unless_verbose() {
        let names = names();
        let response = dress(&names).finish(Err(Code::MarketClosed.into()));
        assert_eq!(response.status(), 400);
        assert_eq!(header(&response, "x-svc-code"), Some("MARKET_CLOSED"));
        assert_eq!(header(&response, "x-request-id"), Some("r-1"));
        assert_eq!(header(&response, "cache-control"), Some("private, no-store"));
        assert_eq!(body(response), r#"{"error":"MARKET_CLOSED","message":"This market no longer accepts orders."}"#);
        let verbose = Dress { verbose: true, ..dress(&names) };
        let refusal = Refusal::placements(250);
        let response = verbose.finish(Err(refusal));
        assert_eq!(header(&response, "retry-after"), Some("1"));
        assert_eq!(
            body(response),
            concat!(
                r#"{"error":"RATE_LIMITED","message":"Too many orders at once.","retry_after_ms":250,"#,
                r#""details":null,"request_id":"r-1"}"#
            )
        );
    }

    #[test]
    fn body_and_header_differ_for_the_two_pairs_only() {
        let names = names();
        let response = dress(&names).finish(Err(Refusal::from(Code::InvalidPostOnlyOrder).order_id(7)));
        assert_eq!(header(&response, "x-svc-code"), Some("POST_ONLY_WOULD_CROSS"));
        assert_eq!(header(&response, "x-svc-order-id"), Some("7"));
        assert!(body(response).starts_with(br#"{"error":"INVALID_POST_ONLY_ORDER""#));
    }

    #[test]
    fn caching_follows_route_and_credential() {
        let names = names();
        let ok = || Ok(Reply::json(b"{}".to_vec()));
        for (cache, private, outcome, expected) in [
            (Cache::ByCredential, true, ok(), "private, no-store"),
            (Cache::ByCredential, false, ok(), "public, max-age=5"),
            (Cache::ByCredential, false, Err(Code::MarketNotFound.into()), "no-store"),
            (Cache::NoStore, false, ok(), "no-store"),
            (Cache::NoStore, true, ok(), "no-store"),
            (Cache::Stream, true, ok(), "no-cache, no-transform"),
            (Cache::Stream, false, Err(Code::InvalidRequest.into()), "no-store"),
        ] {
            let response = Dress { cache, private, ..dress(&names) }.finish(outcome);
            assert_eq!(header(&response, "cache-control"), Some(expected));
        }
        let posted = Dress { private: false, is_read: false, ..dress(&names) }.finish(ok());
        assert_eq!(header(&posted, "cache-control"), Some("no-store"));
    }

    #[test]
    fn a_report_with_an_error_status_names_it_in_the_header() {
        let names = names();
        let reply = Reply::json(b"{}".to_vec()).with_status(StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header(&dress(&names).finish(Ok(reply)), "x-svc-code"), Some("HTTP_503"));
    }

    #[test]
    fn large_bodies_are_compressed_when_asked() {
        let names = names();
        let large = || Ok(Reply::json(vec![b' '; 2_000]));
        let plain = dress(&names).finish(large());
        assert_eq!(header(&plain, "content-encoding"), None);
        assert_eq!(header(&plain, "vary"), Some("Accept-Encoding"));
        let packed = Dress { takes_gzip: true, ..dress(&names) }.finish(large());
        assert_eq!(header(&packed, "content-encoding"), Some("gzip"));
        let mut unpacked = Vec::new();
        let packed = body(packed);
        std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut unpacked).unwrap();
        assert_eq!(unpacked, vec![b' '; 2_000]);
        let small = Dress { takes_gzip: true, ..dress(&names) }.finish(Ok(Reply::json(vec![b' '; 1_000])));
        assert_eq!(header(&small, "content-encoding"), None);
        for (accept, takes) in [
            ("gzip", true),
            ("deflate, GZIP;q=0.5", true),
            ("gzip;q=0", false),
            ("gzip; q=0.000", false),
            ("br", false),
            ("x-gzip", false),
            ("", false),
        ] {
            assert_eq!(takes_gzip(Some(&HeaderValue::from_static(accept))), takes, "{accept}");
        }
    }

    /// Status, sorted lines and body of an answer as it is written; `None` when it is left to the library.
    fn written(dress: &Dress<'_>, outcome: Outcome) -> Option<(u16, Vec<String>, Vec<u8>)> {
        let mut out = Vec::new();
        let (status, made) = dress.write(outcome, &mut out);
        if made.is_some() {
            assert_eq!(out, b"", "all or nothing is written");
            return None;
        }
        let mut room = [httparse::EMPTY_HEADER; 64];
        let mut head = httparse::Response::new(&mut room);
        let httparse::Status::Complete(head_bytes) = head.parse(&out).expect("a sound head") else {
            panic!("half a head: {}", String::from_utf8_lossy(&out));
        };
        assert_eq!((head.code, head.version), (Some(status.as_u16()), Some(1)));
        let line =
            |header: &httparse::Header<'_>| format!("{}: {}", header.name, String::from_utf8_lossy(header.value));
        let mut lines: Vec<_> = head.headers.iter().map(line).collect();
        lines.sort_unstable();
        Some((status.as_u16(), lines, out[head_bytes..].to_vec()))
    }

    /// The same of the answer that the library would send.
    fn sent(dress: &Dress<'_>, outcome: Outcome) -> (u16, Vec<String>, Vec<u8>) {
        let response = dress.finish(outcome);
        let status = response.status().as_u16();
        let mut lines: Vec<_> = response
            .headers()
            .iter()
            .map(|(name, value)| format!("{name}: {}", value.to_str().expect("ASCII")))
            .collect();
        let body = body(response).to_vec();
        if status != 204 {
            lines.push(format!("content-length: {}", body.len()));
        }
        lines.push("date: Thu, 01 Jan 1970 00:00:07 GMT".to_owned());
        lines.sort_unstable();
        (status, lines, body)
    }

    #[test]
    fn what_is_written_is_what_would_be_sent() {
        let names = names();
        let rate = RateState {
            per_minute: 120,
            remaining: 7,
            reset: 60,
            per_second: 10,
            remaining_per_second: 3,
            tier: engine::user::Tier::Pro,
        };
        let outcomes: [fn() -> Outcome; 8] = [
            || Ok(Reply::json(b"{\"a\":1}".to_vec())),
            || Ok(Reply::json(vec![b' '; 5_000])),
            || Ok(Reply::created(b"{}".to_vec())),
            || Ok(Reply::json(Vec::new()).with_status(StatusCode::NO_CONTENT)),
            || Ok(Reply::json(b"[]".to_vec()).with_header(header::ALLOW, HeaderValue::from_static("GET"))),
            || Err(Code::MarketClosed.into()),
            || Err(Refusal::from(Code::InvalidPostOnlyOrder).order_id(7)),
            || Err(Refusal::placements(250)),
        ];
        let mut cases = 0;
        for outcome in outcomes {
            for bits in 0..32 {
                let on = |bit: u32| bits >> bit & 1 == 1;
                let dress = Dress {
                    rate: on(0).then_some(rate),
                    takes_gzip: on(1),
                    private: on(2),
                    public_route: on(3),
                    beta_cutoff: on(4).then_some(Timestamp::from_secs(9)),
                    used: Used { begun: Timestamp::from_secs(7), ..Used::default() },
                    ..dress(&names)
                };
                assert_eq!(written(&dress, outcome()), Some(sent(&dress, outcome())));
                cases += 1;
            }
        }
        let ends = Dress { closes: true, ..dress(&names) };
        assert_eq!(written(&ends, Ok(Reply::json(Vec::new()))), None);
        assert_eq!(written(&dress(&names), Err(Refusal::broken("no"))), None);
        println!("answers: {} cases", cases + 2);
    }

    #[test]
    fn head_tells_the_length_and_sends_nothing() {
        let names = names();
        let response = Dress { is_head: true, ..dress(&names) }.finish(Ok(Reply::json(b"{\"a\":1}".to_vec())));
        assert_eq!(header(&response, "content-length"), Some("7"));
        assert!(body(response).is_empty());
    }
}
