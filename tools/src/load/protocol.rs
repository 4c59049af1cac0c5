//! The protocol of a connection: encodes orders and cancels, decodes answers. Pure; no socket.
//!
//! Over HTTP/1.1 answers come in the order of the requests; over the trade channel each names its operation.

use crate::frame;
use clap::ValueEnum;
use serde::Deserialize;
use std::borrow::Cow;
use std::fmt;
use std::io::Write as _;
use std::mem::MaybeUninit;

/// Most header lines of an answer.
const HEADERS_MAX: usize = 64;

/// The transport of operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Transport {
    /// `POST /v1/orders`, `DELETE /v1/orders/by-client-id/…`
    Rest,
    /// `order.place`, `order.cancel` on `/v1/ws/trade`
    Ws,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Transport::Rest => "rest",
            Transport::Ws => "ws",
        })
    }
}

/// Both directions of one transport to one server.
pub struct Protocol {
    pub transport: Transport,
    pub authority: String,
}

/// The meaning of the first received bytes.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<'a> {
    /// Incomplete.
    Part,
    Answer(Answer<'a>),
    /// To be echoed in a pong.
    Ping {
        bytes: usize,
        payload: &'a [u8],
    },
    /// Answers no operation.
    Other {
        bytes: usize,
    },
    /// The server ends the connection, and why.
    Closed(String),
    /// A violation of the protocol.
    Broken(&'static str),
}

/// The answer to one operation.
#[derive(Debug, PartialEq, Eq)]
pub struct Answer<'a> {
    /// Size on the wire.
    pub bytes: usize,
    /// The operation that it answers; `None` = the oldest without an answer.
    pub flight: Option<u64>,
    pub status: u16,
    /// The error code of an error.
    pub code: Option<&'a str>,
    /// A refusal of an order that exists nevertheless.
    pub order_exists: bool,
    /// The connection ends after it.
    pub last: bool,
}

/// An order as the answer to its placement shows it; amounts as decimals.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Placed<'a> {
    pub order_id: u64,
    /// Average of the fills; without one the limit.
    #[serde(borrow)]
    pub price: Cow<'a, str>,
    #[serde(borrow)]
    pub notional: Cow<'a, str>,
    #[serde(borrow)]
    pub fee: Cow<'a, str>,
    #[serde(borrow)]
    pub requested_quantity: Cow<'a, str>,
    #[serde(borrow)]
    pub filled_quantity: Cow<'a, str>,
}

impl Protocol {
    /// The order in the whole answer to a placement that succeeded; `None` if it shows none.
    pub fn placed<'a>(&self, answer: &'a [u8]) -> Option<Placed<'a>> {
        #[derive(Deserialize)]
        struct Framed<'a> {
            #[serde(borrow)]
            result: Placed<'a>,
        }
        const HEAD_END: &[u8] = b"\r\n\r\n";
        match self.transport {
            Transport::Rest => {
                let body = &answer[find(answer, HEAD_END)? + HEAD_END.len()..];
                serde_json::from_slice(body).ok()
            }
            Transport::Ws => {
                let framed: Framed<'_> = serde_json::from_slice(frame::read(answer)?.payload).ok()?;
                Some(framed.result)
            }
        }
    }

    /// Requests the server's health, which is public and not rate-limited.
    pub fn greet(&self, out: &mut Vec<u8>) {
        for part in ["GET /v1/health HTTP/1.1\r\nHost: ", &self.authority, "\r\n\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Places the order whose body begins with `opening` and ends with the client's id.
    pub fn place(&self, out: &mut Vec<u8>, flight: u64, key: &str, opening: &[u8], id: &str) {
        const CLOSING: &[u8] = b"\"}";
        match self.transport {
            Transport::Rest => {
                let length = opening.len() + id.len() + CLOSING.len();
                self.head(out, "POST /v1/orders", "", key);
                write!(out, "Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
                    .expect("writing to a vector succeeds");
                for part in [opening, id.as_bytes(), CLOSING] {
                    out.extend_from_slice(part);
                }
            }
            Transport::Ws => frame::text(out, |out| {
                write!(out, "{{\"id\":{flight},\"op\":\"order.place\",\"params\":")
                    .expect("writing to a vector succeeds");
                for part in [opening, id.as_bytes(), CLOSING, b"}"] {
                    out.extend_from_slice(part);
                }
            }),
        }
    }

    /// Cancels the order with the client's id, which has no character that needs an escape in a target or a text.
    pub fn cancel(&self, out: &mut Vec<u8>, flight: u64, key: &str, id: &str) {
        match self.transport {
            Transport::Rest => {
                self.head(out, "DELETE /v1/orders/by-client-id/", id, key);
                out.extend_from_slice(b"\r\n");
            }
            Transport::Ws => frame::text(out, |out| {
                write!(out, "{{\"id\":{flight},\"op\":\"order.cancel\",\"params\":{{\"client_order_id\":\"{id}\"}}}}")
                    .expect("writing to a vector succeeds");
            }),
        }
    }

    fn head(&self, out: &mut Vec<u8>, method_target: &str, rest: &str, key: &str) {
        for part in [method_target, rest, " HTTP/1.1\r\nHost: ", &self.authority, "\r\nX-API-Key: ", key, "\r\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    /// Decodes the first answer of these bytes.
    pub fn decode<'a>(&self, bytes: &'a [u8]) -> Received<'a> {
        match self.transport {
            Transport::Rest => decode_http(bytes),
            Transport::Ws => decode_frame(bytes),
        }
    }
}

fn decode_http(bytes: &[u8]) -> Received<'_> {
    let mut headers = [const { MaybeUninit::uninit() }; HEADERS_MAX];
    let mut head = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut head, bytes, &mut headers);
    let head_bytes = match parsed {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Received::Part,
        Err(_) => return Received::Broken("an answer that is not HTTP/1.1"),
    };
    let status = head.code.unwrap_or_default();
    let (mut body_bytes, mut order_exists, mut last) = (None, false, false);
    for header in head.headers.iter() {
        let (name, value) = (header.name.as_bytes(), header.value);
        match name.len() {
            14 if name.eq_ignore_ascii_case(b"content-length") => body_bytes = number(value),
            10 if name.eq_ignore_ascii_case(b"connection") => last = value.eq_ignore_ascii_case(b"close"),
            // The client's prefix is before it.
            length if length > 9 => order_exists |= name[length - 9..].eq_ignore_ascii_case(b"-order-id"),
            _ => {}
        }
    }
    let body_bytes = match (body_bytes, status) {
        (Some(length), _) => length,
        (None, 204 | 304) => 0,
        (None, _) => return Received::Broken("an answer without Content-Length"),
    };
    let Some(body) = bytes[head_bytes..].get(..body_bytes) else { return Received::Part };
    let code = if is_success(status) { None } else { code_in(body) };
    let bytes = head_bytes + body_bytes;
    Received::Answer(Answer { bytes, flight: None, status, code, order_exists, last })
}

fn decode_frame(bytes: &[u8]) -> Received<'_> {
    let Some(frame::Frame { first, payload, bytes }) = frame::read(bytes) else { return Received::Part };
    match first {
        frame::TEXT => match flight_and_status(payload) {
            Some((flight, status)) => {
                let failed = !is_success(status);
                let code = if failed { code_in(payload) } else { None };
                let order_exists = failed && find(payload, b"\"order_id\":").is_some();
                Received::Answer(Answer { bytes, flight: Some(flight), status, code, order_exists, last: false })
            }
            None => Received::Broken("a frame that is not an answer"),
        },
        frame::PING => Received::Ping { bytes, payload },
        frame::PONG => Received::Other { bytes },
        frame::CLOSE => {
            let code = payload.first_chunk().map_or(1_005, |code| u16::from_be_bytes(*code));
            let reason = String::from_utf8_lossy(payload.get(2..).unwrap_or_default());
            Received::Closed(format!("closed with {code} {reason}").trim_end().to_owned())
        }
        _ => Received::Broken("a frame of an unexpected kind"),
    }
}

/// Number and status of an answer on the trade channel.
fn flight_and_status(payload: &[u8]) -> Option<(u64, u16)> {
    let rest = payload.strip_prefix(b"{\"id\":")?;
    let comma = rest.iter().position(|byte| *byte == b',')?;
    let status = rest[comma..].strip_prefix(b",\"status\":")?.get(..3)?;
    Some((number(&rest[..comma])? as u64, number(status)? as u16))
}

pub fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

fn number(text: &[u8]) -> Option<usize> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The code in an error envelope, which is an object of its own on the trade channel.
fn code_in(body: &[u8]) -> Option<&str> {
    const NAME: &[u8] = b"\"error\":\"";
    let code = &body[find(body, NAME)? + NAME.len()..];
    let end = code.iter().position(|byte| *byte == b'"')?;
    std::str::from_utf8(&code[..end]).ok()
}

fn find(text: &[u8], what: &[u8]) -> Option<usize> {
    text.windows(what.len()).position(|window| window == what)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protocol(transport: Transport) -> Protocol {
        Protocol { transport, authority: "venue:8080".into() }
    }

    #[test]
    fn operations_are_written_as_the_wire_wants_them() {
        let opening = br#"{"price":"0.01","client_order_id":""#;
        let mut out = Vec::new();
        protocol(Transport::Rest).place(&mut out, 7, "KEY", opening, "a-0-1");
        protocol(Transport::Rest).cancel(&mut out, 8, "KEY", "a-0-1");
        let expected = "POST /v1/orders HTTP/1.1\r\nHost: venue:8080\r\nX-API-Key: KEY\r\n\
             Content-Type: application/json\r\nContent-Length: 42\r\n\r\n\
             {\"price\":\"0.01\",\"client_order_id\":\"a-0-1\"}\
             DELETE /v1/orders/by-client-id/a-0-1 HTTP/1.1\r\nHost: venue:8080\r\nX-API-Key: KEY\r\n\r\n";
        assert_eq!(String::from_utf8_lossy(&out), expected);
        let rows: [(&str, &str); 2] = [
            ("place", r#"{"id":7,"op":"order.place","params":{"price":"0.01","client_order_id":"a-0-1"}}"#),
            ("cancel", r#"{"id":7,"op":"order.cancel","params":{"client_order_id":"a-0-1"}}"#),
        ];
        for (what, expected) in rows {
            let mut out = Vec::new();
            match what {
                "place" => protocol(Transport::Ws).place(&mut out, 7, "KEY", opening, "a-0-1"),
                _ => protocol(Transport::Ws).cancel(&mut out, 7, "KEY", "a-0-1"),
            }
            let masked_by_nothing = &out[out.len() - expected.len()..];
            assert_eq!(String::from_utf8_lossy(masked_by_nothing), expected);
        }
        out.clear();
        protocol(Transport::Rest).greet(&mut out);
        assert_eq!(String::from_utf8_lossy(&out), "GET /v1/health HTTP/1.1\r\nHost: venue:8080\r\n\r\n");
        println!("operations: {} cases", rows.len() + 3);
    }

    #[test]
    fn an_order_is_read_from_its_answer() {
        let order = r#"{"order_id":7,"status":"FILLED","price":"0.42","quantity":"50","notional":"21.00","fee":"0.609","requested_quantity":"50","filled_quantity":"50"}"#;
        let http = |body: &str| format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len()).into_bytes();
        let framed = |payload: &str| {
            let mut bytes = vec![frame::TEXT, 126];
            bytes.extend_from_slice(&(payload.len() as u16).to_be_bytes());
            bytes.extend_from_slice(payload.as_bytes());
            bytes
        };
        let result = format!(r#"{{"id":1,"status":200,"result":{order},"rate":{{}}}}"#);
        let padded = format!(r#"{{"id":1,"status":200,"padding":"{}"}}"#, "x".repeat(200));
        let short = order.replace(r#""fee":"0.609","#, "");
        let rows = [
            (Transport::Rest, http(order), true),
            (Transport::Rest, http(&short), false),
            (Transport::Rest, http("{}"), false),
            (Transport::Rest, http("not JSON"), false),
            (Transport::Rest, b"HTTP/1.1 200 OK\r\n".to_vec(), false),
            (Transport::Ws, framed(&result), true),
            (Transport::Ws, framed(&padded), false),
            (Transport::Ws, framed(&result)[..40].to_vec(), false),
        ];
        for (transport, bytes, is_there) in &rows {
            let placed = protocol(*transport).placed(bytes);
            assert_eq!(placed.is_some(), *is_there, "{transport} {}", String::from_utf8_lossy(bytes));
            if let Some(placed) = placed {
                assert_eq!((placed.order_id, &*placed.notional, &*placed.filled_quantity), (7, "21.00", "50"));
            }
        }
        println!("orders in answers: {} cases", rows.len());
    }

    fn answer(bytes: usize, status: u16, code: Option<&str>) -> Answer<'_> {
        Answer { bytes, flight: None, status, code, order_exists: false, last: false }
    }

    #[test]
    fn answers_over_http_are_whole_when_their_length_says_so() {
        let refused =
            "HTTP/1.1 400 Bad\r\nX-Svc-Code: A\r\nX-Svc-Order-Id: 9\r\ncontent-length: 13\r\n\r\n{\"error\":\"A\"}";
        let cases = [
            ("", Received::Part),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", Received::Part),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{", Received::Part),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}", Received::Answer(answer(40, 200, None))),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}HTTP/1.1 2", Received::Answer(answer(40, 200, None))),
            ("HTTP/1.1 204 No\r\n\r\n", Received::Answer(answer(19, 204, None))),
            (refused, Received::Answer(Answer { order_exists: true, ..answer(refused.len(), 400, Some("A")) })),
            (
                "HTTP/1.1 503 Busy\r\nConnection: Close\r\nContent-Length: 2\r\n\r\nno",
                Received::Answer(Answer { last: true, ..answer(61, 503, None) }),
            ),
            (
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                Received::Broken("an answer without Content-Length"),
            ),
            ("HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n", Received::Broken("an answer without Content-Length")),
            ("SSH-2.0-OpenSSH\r\n", Received::Broken("an answer that is not HTTP/1.1")),
        ];
        for (bytes, expected) in &cases {
            assert_eq!(protocol(Transport::Rest).decode(bytes.as_bytes()), *expected, "{bytes:?}");
        }
        println!("answers over HTTP: {} cases", cases.len());
    }

    #[test]
    fn answers_on_the_channel_name_their_operation() {
        let refused = r#"{"id":4,"status":400,"error":{"error":"A","message":"B"},"code":"A","order_id":9}"#;
        let answered = |flight, status, code| Answer { flight: Some(flight), ..answer(0, status, code) };
        let cases: [(u8, &[u8], Received<'_>); 8] = [
            (
                frame::TEXT,
                br#"{"id":3,"status":200,"result":{"order_id":1}}"#,
                Received::Answer(answered(3, 200, None)),
            ),
            (
                frame::TEXT,
                refused.as_bytes(),
                Received::Answer(Answer { order_exists: true, ..answered(4, 400, Some("A")) }),
            ),
            (frame::TEXT, br#"{"id":null,"status":400}"#, Received::Broken("a frame that is not an answer")),
            (frame::PING, b"hm", Received::Ping { bytes: 4, payload: b"hm" }),
            (frame::PONG, b"", Received::Other { bytes: 2 }),
            (frame::CLOSE, b"\x0f\xa2CONNECTION_LIMIT", Received::Closed("closed with 4002 CONNECTION_LIMIT".into())),
            (frame::CLOSE, b"", Received::Closed("closed with 1005".into())),
            (0x82, b"", Received::Broken("a frame of an unexpected kind")),
        ];
        for (first, payload, expected) in &cases {
            let mut bytes = vec![*first, payload.len() as u8];
            bytes.extend_from_slice(payload);
            let mut received = protocol(Transport::Ws).decode(&bytes);
            if let Received::Answer(answer) = &mut received {
                assert_eq!(std::mem::take(&mut answer.bytes), bytes.len());
            }
            assert_eq!(received, *expected, "{first:x} {payload:?}");
            assert_eq!(protocol(Transport::Ws).decode(&bytes[..bytes.len() - 1]), Received::Part);
        }
        println!("answers on the channel: {} cases", 2 * cases.len());
    }
}
