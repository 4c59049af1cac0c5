//! Reading the head of a request that is like most others, without making anything of it.
//!
//! A *plain* request says nothing but its method, its target, a key, what its body is, and a few headers that mean the
//! same in every one. It is answered on the short way (`server/express.rs`). Whatever else a head says, its
//! request goes through the HTTP library as ever; so nothing here refuses anything.

use super::dress::takes_gzip;
use super::route::Method;
use httparse::{Header, Request, Status};
use std::mem::MaybeUninit;

/// Headers of a plain request.
const HEADERS_MAX: usize = 24;
/// Longest target of a plain request.
const TARGET_BYTES_MAX: usize = 1_024;

/// What bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub enum Head<'b> {
    /// A head that is not whole yet.
    Part,
    Plain(Plain<'b>),
    /// A request of so many bytes, head and body, that is not plain.
    Framed(u64),
    /// What nobody but the library can tell the end of.
    Foreign,
}

/// A head that says what most others say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plain<'b> {
    pub method: Method,
    pub target: &'b str,
    /// `X-API-Key`, not empty.
    pub key: Option<&'b [u8]>,
    pub request_id: Option<&'b [u8]>,
    pub idempotency_key: Option<&'b [u8]>,
    pub takes_gzip: bool,
    /// It says that its body is JSON.
    pub typed: bool,
    pub head_bytes: usize,
    pub body_bytes: u64,
}

impl Plain<'_> {
    /// Head and body.
    pub fn bytes(&self) -> u64 {
        self.head_bytes as u64 + self.body_bytes
    }
}

/// Reads the head that `bytes` begin with.
pub fn head(bytes: &[u8]) -> Head<'_> {
    let mut room = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADERS_MAX];
    let mut request = Request::new(&mut []);
    let head_bytes = match request.parse_with_uninit_headers(bytes, &mut room) {
        Ok(Status::Complete(head_bytes)) => head_bytes,
        Ok(Status::Partial) => return Head::Part,
        Err(_) => return Head::Foreign,
    };
    let (Some(method), Some(target), Some(1)) = (request.method, request.path, request.version) else {
        return Head::Foreign;
    };
    let plain_method = match method {
        "GET" => Some(Method::Get),
        "POST" => Some(Method::Post),
        "PATCH" => Some(Method::Patch),
        "DELETE" => Some(Method::Delete),
        "HEAD" | "PUT" | "OPTIONS" => None,
        _ => return Head::Foreign,
    };
    let mut lines = Lines::default();
    for header in request.headers.iter() {
        if lines.take(header).is_none() {
            return Head::Foreign;
        }
    }
    let body_bytes = lines.length.unwrap_or(0);
    let framed = Head::Framed((head_bytes as u64).saturating_add(body_bytes));
    let Some(method) = plain_method else { return framed };
    if lines.odd || lines.hosts != 1 || target.len() > TARGET_BYTES_MAX {
        return framed;
    }
    Head::Plain(Plain {
        method,
        target,
        key: lines.key,
        request_id: lines.request_id,
        idempotency_key: lines.idempotency_key,
        takes_gzip: lines.takes_gzip.unwrap_or(false),
        typed: lines.typed,
        head_bytes,
        body_bytes,
    })
}

/// What the lines of a head say so far.
#[derive(Default)]
struct Lines<'b> {
    hosts: u32,
    key: Option<&'b [u8]>,
    request_id: Option<&'b [u8]>,
    idempotency_key: Option<&'b [u8]>,
    takes_gzip: Option<bool>,
    typed: bool,
    length: Option<u64>,
    /// One of them is not plain.
    odd: bool,
}

impl<'b> Lines<'b> {
    /// `None`: the end of the request cannot be told.
    fn take(&mut self, header: &Header<'b>) -> Option<()> {
        let Header { name, value } = *header;
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            4 if is("host") => self.hosts += 1,
            6 if is("accept") => {}
            10 if is("user-agent") => {}
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
            10 if is("connection") => value.eq_ignore_ascii_case(b"keep-alive").then_some(())?,
            17 if is("transfer-encoding") => return None,
            7 if is("upgrade") => return None,
            6 if is("expect") => return None,
            _ => self.odd = true,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How a head is taken, in one word; of a plain one what it says. Behind a plus the bytes of the body.
    fn taken(bytes: &str) -> String {
        match head(bytes.as_bytes()) {
            Head::Part => "part".to_owned(),
            Head::Framed(whole) => {
                let head = bytes.find("\r\n\r\n").expect("a whole head") as u64 + 4;
                format!("framed +{}", whole - head)
            }
            Head::Foreign => "foreign".to_owned(),
            Head::Plain(plain) => {
                fn text(value: Option<&[u8]>) -> &str {
                    value.map_or("-", |value| std::str::from_utf8(value).expect("ASCII"))
                }
                format!(
                    "{} {} {} {} {} {} {} +{}",
                    plain.method.text(),
                    plain.target,
                    text(plain.key),
                    text(plain.request_id),
                    text(plain.idempotency_key),
                    u8::from(plain.takes_gzip),
                    u8::from(plain.typed),
                    plain.body_bytes
                )
            }
        }
    }

    #[test]
    fn only_what_says_nothing_special_is_plain() {
        // (first line and headers; none, or how it is taken)
        let rows = [
            ("GET /a HTTP/1.1|Host: x", "GET /a - - - 0 0 +0"),
            ("get /a HTTP/1.1|Host: x", "foreign"),
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
            ("POST /a HTTP/1.1|Host: x|Content-Length: 1|Content-Length: 1", "foreign"),
            ("POST /a HTTP/1.1|Host: x|Content-Length: +1", "foreign"),
            ("POST /a HTTP/1.1|Host: x|Content-Length:", "foreign"),
            ("POST /a HTTP/1.1|Host: x|Content-Length: 9999999999999999999", "foreign"),
            ("POST /a HTTP/1.1|Host: x|Transfer-Encoding: chunked", "foreign"),
            ("GET /a HTTP/1.1|Host: x|Connection: close", "foreign"),
            ("GET /a HTTP/1.1|Host: x|Connection: keep-alive, Upgrade|Upgrade: websocket", "foreign"),
            ("POST /a HTTP/1.1|Host: x|Expect: 100-continue", "foreign"),
            ("GET /a HTTP/1.0|Host: x", "foreign"),
            ("CONNECT a:1 HTTP/1.1|Host: x", "foreign"),
            ("GET /a HTTP/1.1|Host : x", "foreign"),
            ("PRI * HTTP/2.0", "foreign"),
        ];
        for (lines, expected) in rows {
            let whole = format!("{}\r\n\r\n", lines.replace('|', "\r\n"));
            assert_eq!(taken(&whole), expected, "{lines}");
            if !expected.starts_with("foreign") {
                assert_eq!(taken(&whole[..whole.len() - 1]), "part", "{lines}");
                assert_eq!(taken(&format!("{whole}more")), expected, "{lines}");
            }
        }
        let many = format!("GET /a HTTP/1.1\r\n{}\r\n", "Accept: */*\r\n".repeat(HEADERS_MAX + 1));
        assert_eq!(taken(&many), "foreign");
        let long = format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(TARGET_BYTES_MAX));
        assert_eq!(taken(&long), "framed +0");
        println!("heads: {} cases", rows.len() + 2);
    }
}
