//! The own reader of request heads. It borrows from the bytes and does not allocate.
//!
//! A *simple* head has a method, a target, a key, the type and length of its body, and a few headers that have the same
//! meaning in every request. A request with such a head is answered on the fast path (`server/fast_path.rs`). All
//! others go to hyper, so this reader refuses nothing.

use super::response_head::takes_gzip;
use super::route::Method;
use httparse::{Header, Request, Status};
use std::mem::MaybeUninit;

/// Headers that the first attempt has room for.
const HEADERS_MAX: usize = 24;
/// Most headers of a head; hyper refuses more.
const HEADERS_EVER: usize = super::server::HEADERS_MAX;
/// Longest target of a simple head.
const TARGET_BYTES_MAX: usize = 1_024;

/// What the bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed<'b> {
    /// A head that is not complete yet.
    Partial,
    Simple(RequestHead<'b>),
    /// Another head: the length of its request in bytes, with body, and the value of its only `Host` header.
    Framed(u64, Option<&'b [u8]>),
    /// A head of a request whose end only hyper can find, and the value of its only `Host` header.
    Unframed(Option<&'b [u8]>),
    /// A line of the head ends without a carriage return. RFC 9112 §2.2 lets a recipient accept it, but not all do, so
    /// a proxy may see other requests in the same bytes.
    BareLineFeed,
    /// Not a head; hyper refuses it.
    Unreadable,
}

/// A simple head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHead<'b> {
    pub method: Method,
    pub target: &'b str,
    pub host: &'b [u8],
    /// The value of `X-API-Key`; never empty.
    pub key: Option<&'b [u8]>,
    pub request_id: Option<&'b [u8]>,
    pub idempotency_key: Option<&'b [u8]>,
    pub takes_gzip: bool,
    /// The first `User-Agent`, or empty.
    pub agent: &'b [u8],
    /// Whether the head declares a JSON body.
    pub typed: bool,
    pub head_bytes: usize,
    pub body_bytes: u64,
}

impl RequestHead<'_> {
    /// Length of head and body, in bytes.
    pub fn bytes(&self) -> u64 {
        self.head_bytes as u64 + self.body_bytes
    }
}

/// Parses the head at the start of `bytes`.
pub fn parse(bytes: &[u8]) -> Parsed<'_> {
    parse_within::<HEADERS_MAX>(bytes).or_else(|| parse_within::<HEADERS_EVER>(bytes)).unwrap_or(Parsed::Unreadable)
}

/// As [`parse`]; `None` if there are more than `MAX` headers.
fn parse_within<const MAX: usize>(bytes: &[u8]) -> Option<Parsed<'_>> {
    let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX];
    let mut request = Request::new(&mut []);
    let head_bytes = match request.parse_with_uninit_headers(bytes, &mut room) {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) => return Some(Parsed::Partial),
        Err(httparse::Error::TooManyHeaders) => return None,
        Err(_) => return Some(Parsed::Unreadable),
    };
    Some(classify(&request, &bytes[..head_bytes]))
}

/// The kind of a complete head.
fn classify<'b>(request: &Request<'_, 'b>, head: &'b [u8]) -> Parsed<'b> {
    if has_bare_line_feed(head) {
        return Parsed::BareLineFeed;
    }
    let (Some(method), Some(target), Some(version)) = (request.method, request.path, request.version) else {
        return Parsed::Unreadable;
    };
    let mut lines = Lines::default();
    let mut unframed = method == "CONNECT";
    for header in request.headers.iter() {
        unframed |= lines.read(header).is_none();
    }
    let host = lines.host.filter(|_| lines.hosts == 1);
    if unframed {
        return Parsed::Unframed(host);
    }
    let body_bytes = lines.length.unwrap_or(0);
    let framed = Parsed::Framed((head.len() as u64).saturating_add(body_bytes), host);
    let method = match method {
        "GET" => Method::Get,
        "POST" => Method::Post,
        "PATCH" => Method::Patch,
        "DELETE" => Method::Delete,
        _ => return framed,
    };
    let Some(host) = host else { return framed };
    if lines.odd || version != 1 || target.len() > TARGET_BYTES_MAX {
        return framed;
    }
    Parsed::Simple(RequestHead {
        method,
        target,
        host,
        key: lines.key,
        request_id: lines.request_id,
        idempotency_key: lines.idempotency_key,
        takes_gzip: lines.takes_gzip.unwrap_or(false),
        agent: lines.agent.unwrap_or_default(),
        typed: lines.typed,
        head_bytes: head.len(),
        body_bytes,
    })
}

/// Whether a line feed has no carriage return before it. Without an early return, so that the compiler vectorizes it.
fn has_bare_line_feed(head: &[u8]) -> bool {
    let pairs = head.iter().zip(head.iter().skip(1));
    let inside = pairs.fold(false, |found, (before, byte)| found | ((*byte == b'\n') & (*before != b'\r')));
    inside || head.first() == Some(&b'\n')
}

/// What the header lines have declared so far.
#[derive(Default)]
struct Lines<'b> {
    hosts: u32,
    host: Option<&'b [u8]>,
    key: Option<&'b [u8]>,
    request_id: Option<&'b [u8]>,
    idempotency_key: Option<&'b [u8]>,
    takes_gzip: Option<bool>,
    agent: Option<&'b [u8]>,
    typed: bool,
    length: Option<u64>,
    /// Whether a line cannot be in a simple head.
    odd: bool,
}

impl<'b> Lines<'b> {
    /// `None`: only hyper can find the end of the request.
    fn read(&mut self, header: &Header<'b>) -> Option<()> {
        let Header { name, value } = *header;
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is("host") => (self.hosts, self.host) = (self.hosts + 1, Some(value)),
            6 if is("accept") => {}
            10 if is("user-agent") => _ = self.agent.get_or_insert(value),
            15 if is("accept-language") => {}
            9 if is("x-api-key") => self.odd |= value.is_empty() || self.key.replace(value).is_some(),
            12 if is("content-type") => {
                self.odd |= self.typed || !value.eq_ignore_ascii_case(b"application/json");
                self.typed = true;
            }
            12 if is("x-request-id") => self.odd |= self.request_id.replace(value).is_some(),
            15 if is("idempotency-key") => self.odd |= self.idempotency_key.replace(value).is_some(),
            15 if is("accept-encoding") => {
                let takes =
                    hyper::header::HeaderValue::from_bytes(value).ok().is_some_and(|value| takes_gzip(Some(&value)));
                self.odd |= self.takes_gzip.replace(takes).is_some();
            }
            14 if is("content-length") => {
                let digits = (1..=18).contains(&value.len()) && value.iter().all(u8::is_ascii_digit);
                if !digits || self.length.is_some() {
                    return None;
                }
                self.length = Some(value.iter().fold(0, |length, digit| length * 10 + u64::from(digit - b'0')));
            }
            10 if is("connection") => self.odd |= !value.eq_ignore_ascii_case(b"keep-alive"),
            17 if is("transfer-encoding") => return None,
            _ => self.odd = true,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The kind of a head in one word, or the fields of a simple one; after a plus the bytes of the body.
    fn kind(bytes: &str) -> String {
        match parse(bytes.as_bytes()) {
            Parsed::Partial => "partial".to_owned(),
            Parsed::Framed(whole, _) => {
                let head = bytes.find("\r\n\r\n").expect("a whole head") as u64 + 4;
                format!("framed +{}", whole - head)
            }
            Parsed::Unframed(_) => "unframed".to_owned(),
            Parsed::BareLineFeed => "bare".to_owned(),
            Parsed::Unreadable => "unreadable".to_owned(),
            Parsed::Simple(head) => {
                fn text(value: Option<&[u8]>) -> &str {
                    value.map_or("-", |value| std::str::from_utf8(value).expect("ASCII"))
                }
                format!(
                    "{} {} {} {} {} {} {} +{}",
                    head.method.text(),
                    head.target,
                    text(head.key),
                    text(head.request_id),
                    text(head.idempotency_key),
                    u8::from(head.takes_gzip),
                    u8::from(head.typed),
                    head.body_bytes
                )
            }
        }
    }

    #[test]
    fn only_heads_without_special_headers_are_simple() {
        // (first line and headers, kind)
        let rows = [
            ("GET /a HTTP/1.1|Host: x", "GET /a - - - 0 0 +0"),
            ("get /a HTTP/1.1|Host: x", "framed +0"),
            (
                "POST /a?b=c HTTP/1.1|HOST: x|x-api-key: k|Content-Type: Application/JSON|Content-Length: 7",
                "POST /a?b=c k - - 0 1 +7",
            ),
            (
                "DELETE /a HTTP/1.1|Host: x|Accept: */*|User-Agent: y|Connection: Keep-Alive|Accept-Language: de",
                "DELETE /a - - - 0 0 +0",
            ),
            (
                "GET /a HTTP/1.1|Host: x|Accept-Encoding: gzip, deflate|X-Request-Id: r|Idempotency-Key: i",
                "GET /a - r i 1 0 +0",
            ),
            ("GET /a HTTP/1.1|Host: x|Accept-Encoding: gzip;q=0", "GET /a - - - 0 0 +0"),
            ("GET /a HTTP/1.1", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|Host: y", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|X-API-Key:", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|X-API-Key: a|X-API-Key: a", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|Authorization: Bearer x", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|Origin: http://x", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|X-Forwarded-For: 1.1.1.1", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|X-Svc-Verbose: 1", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|MKT_API_KEY: k", "framed +0"),
            ("POST /a HTTP/1.1|Host: x|Content-Type: text/plain|Content-Length: 9", "framed +9"),
            ("POST /a HTTP/1.1|Host: x|Content-Type: application/json; charset=utf-8|Content-Length: 9", "framed +9"),
            ("HEAD /a HTTP/1.1|Host: x", "framed +0"),
            ("OPTIONS /a HTTP/1.1|Host: x", "framed +0"),
            ("POST /a HTTP/1.1|Host: x|Content-Length: 1|Content-Length: 1", "unframed"),
            ("POST /a HTTP/1.1|Host: x|Content-Length: +1", "unframed"),
            ("POST /a HTTP/1.1|Host: x|Content-Length:", "unframed"),
            ("POST /a HTTP/1.1|Host: x|Content-Length: 9999999999999999999", "unframed"),
            ("POST /a HTTP/1.1|Host: x|Transfer-Encoding: chunked", "unframed"),
            ("GET /a HTTP/1.1|Host: x|Connection: close", "framed +0"),
            ("GET /a HTTP/1.1|Host: x|Connection: keep-alive, Upgrade|Upgrade: websocket", "framed +0"),
            ("POST /a HTTP/1.1|Host: x|Expect: 100-continue|Content-Length: 3", "framed +3"),
            ("GET /a HTTP/1.0|Host: x", "framed +0"),
            ("GET /a HTTP/1.0", "framed +0"),
            ("CONNECT a:1 HTTP/1.1|Host: x", "unframed"),
            ("GET /a HTTP/1.1|Host : x", "unreadable"),
            ("PRI * HTTP/2.0", "unreadable"),
        ];
        for (lines, expected) in rows {
            let whole = format!("{}\r\n\r\n", lines.replace('|', "\r\n"));
            assert_eq!(kind(&whole), expected, "{lines}");
            if expected != "unreadable" {
                assert_eq!(kind(&whole[..whole.len() - 1]), "partial", "{lines}");
                assert_eq!(kind(&format!("{whole}more")), expected, "{lines}");
            }
        }
        for (count, expected) in [
            (HEADERS_MAX - 1, "GET /a - - - 0 0 +0"),
            (HEADERS_MAX, "GET /a - - - 0 0 +0"),
            (HEADERS_EVER, "unreadable"),
        ] {
            let many = format!("GET /a HTTP/1.1\r\nHost: x\r\n{}\r\n", "Accept: */*\r\n".repeat(count));
            assert_eq!(kind(&many), expected, "{count} headers beside the host");
        }
        for (lines, agent) in [
            ("Host: x", ""),
            ("Host: x\r\nUser-Agent:", ""),
            ("User-Agent: py_clob_client\r\nHost: x", "py_clob_client"),
            ("Host: x\r\nuser-agent: a\r\nUser-Agent: b", "a"),
        ] {
            let bytes = format!("GET /a HTTP/1.1\r\n{lines}\r\n\r\n");
            let Parsed::Simple(head) = parse(bytes.as_bytes()) else { panic!("{lines} is simple") };
            assert_eq!(head.agent, agent.as_bytes(), "{lines}");
        }
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
        assert_eq!(kind(&long), "framed +0");
        println!("heads: {} cases", rows.len() + 4);
    }

    #[test]
    fn a_line_ends_with_both_of_its_bytes() {
        let whole = "POST /a HTTP/1.1\r\nHost: x\r\nX-API-Key: k\r\nContent-Length: 2\r\n\r\n";
        let feeds: Vec<usize> = whole.match_indices("\r\n").map(|(at, _)| at).collect();
        for at in &feeds {
            let bare = format!("{}{}{{}}", &whole[..*at], &whole[at + 1..]);
            assert_eq!(kind(&bare), "bare", "{bare:?}");
        }
        // Empty lines before a request are skipped if they end with both bytes.
        assert_eq!(kind(&format!("\r\n{whole}{{}}\n\n")), "POST /a k - - 0 0 +2");
        assert_eq!(kind(&format!("\n{whole}")), "bare");
        println!("line ends: {} cases", feeds.len() + 2);
    }
}
