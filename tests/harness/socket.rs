//! A WebSocket client that sends any bytes and shows every frame, unlike a library. Pings are answered only on request.

use crate::frames;
use crate::http::Response;
use crate::json::text;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

/// A frame that takes longer is a lost frame.
const FRAME_WITHIN: Duration = Duration::from_secs(30);
/// The key of RFC 6455 §1.3, and its answer.
const KEY: &str = "dGhlIHNhbXBsZSBub25jZQ==";
const ACCEPT: &str = "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";
const MASK: [u8; 4] = [0x37, 0xfa, 0x21, 0x3d];

/// First byte of a whole frame of each kind.
pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;

/// One open socket. Every text that it receives must be a message that the description of its channel names.
pub struct Socket {
    stream: TcpStream,
    /// The target of its handshake.
    target: String,
    /// Bytes read and not parsed yet.
    ahead: Vec<u8>,
    /// Sends pongs itself, and shows no pings.
    pub answers_pings: bool,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq)]
pub enum Got {
    Text(String),
    Ping(Vec<u8>),
    Pong(Vec<u8>),
    /// Code and reason.
    Close(u16, String),
    /// The stream ended.
    Gone,
}

impl Socket {
    /// Opens `path`.
    ///
    /// # Panics
    /// When the handshake is refused.
    #[track_caller]
    pub fn open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Socket {
        Socket::try_open(address, path, headers)
            .unwrap_or_else(|refused| panic!("no socket at {path}: {} {}", refused.status, refused.lossy()))
    }

    /// The same for a test that expects a refusal.
    pub fn try_open(address: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Result<Socket, Response> {
        let mut all = vec![
            ("Connection", "Upgrade"),
            ("Upgrade", "websocket"),
            ("Sec-WebSocket-Version", "13"),
            ("Sec-WebSocket-Key", KEY),
        ];
        all.extend_from_slice(headers);
        Socket::handshake(address, path, &all, b"")
    }

    /// A handshake of exactly these headers, with bytes directly after it.
    pub fn handshake(
        address: SocketAddr,
        path: &str,
        headers: &[(&str, &str)],
        early: &[u8],
    ) -> Result<Socket, Response> {
        let mut stream = TcpStream::connect(address).expect("the server listens");
        stream.set_nodelay(true).expect("a socket option");
        stream.set_read_timeout(Some(FRAME_WITHIN)).expect("a socket option");
        let mut head = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n");
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        stream.write_all(&[head.as_bytes(), early].concat()).expect("the server takes a head");
        let mut socket = Socket { stream, target: path.to_owned(), ahead: Vec::new(), answers_pings: true };
        let response = socket.response();
        if response.status != 101 {
            return Err(response);
        }
        assert_eq!(response.header("Sec-WebSocket-Accept"), Some(ACCEPT), "the key is answered");
        assert!(response.header("Upgrade").is_some_and(|to| to.eq_ignore_ascii_case("websocket")));
        assert_eq!(response.header("Sec-WebSocket-Extensions"), None, "no extension is agreed to");
        Ok(socket)
    }

    fn response(&mut self) -> Response {
        let end = loop {
            if let Some(at) = self.ahead.windows(4).position(|four| four == b"\r\n\r\n") {
                break at;
            }
            assert!(self.read_some().expect("a head in time") > 0, "the stream ended inside a head");
        };
        let head = String::from_utf8(self.ahead.drain(..end + 4).collect()).expect("a head is text");
        let mut lines = head.split("\r\n");
        let status = lines.next().and_then(|line| line.split(' ').nth(1)).expect("a status line");
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(": "))
            .map(|(name, value)| (name.to_string(), value.to_string()))
            .collect();
        let mut response = Response { status: status.parse().expect("a status"), headers, body: Vec::new() };
        let length = response.header("content-length").map_or(0, |length| length.parse().expect("a length"));
        while self.ahead.len() < length {
            assert!(self.read_some().expect("a body in time") > 0, "the stream ended inside a body");
        }
        response.body = self.ahead.drain(..length).collect();
        response
    }

    fn read_some(&mut self) -> io::Result<usize> {
        let mut piece = [0; 64 * 1_024];
        let count = self.stream.read(&mut piece)?;
        self.ahead.extend_from_slice(&piece[..count]);
        Ok(count)
    }

    /// Raw bytes. Errors of a peer that no longer reads are ignored.
    pub fn send_bytes(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Sends bytes while another thread reads.
    pub fn sender(&self) -> impl FnMut(&[u8]) + Send + use<> {
        let mut stream = self.stream.try_clone().expect("a second handle of the stream");
        move |bytes| _ = stream.write_all(bytes)
    }

    /// A masked frame with that first byte.
    pub fn send_frame(&mut self, first: u8, payload: &[u8]) {
        self.send_bytes(&frame(first, payload));
    }

    pub fn send_text(&mut self, text: &str) {
        self.send_frame(TEXT, text.as_bytes());
    }

    pub fn send(&mut self, value: &Value) {
        self.send_text(&value.to_string());
    }

    pub fn send_close(&mut self, code: u16, reason: &str) {
        self.send_frame(CLOSE, &[&code.to_be_bytes()[..], reason.as_bytes()].concat());
    }

    /// The next frame.
    ///
    /// # Panics
    /// When none comes in time, and for one that a server must not send.
    #[track_caller]
    pub fn receive(&mut self) -> Got {
        loop {
            let got = loop {
                if let Some(got) = self.taken() {
                    break got;
                }
                match self.read_some() {
                    Ok(0) => return Got::Gone,
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Got::Gone,
                    Err(error) => panic!("no frame in time: {error}"),
                }
            };
            match got {
                Got::Ping(payload) if self.answers_pings => self.send_frame(PONG, &payload),
                Got::Text(text) => {
                    frames::check(&self.target, &text);
                    return Got::Text(text);
                }
                got => return got,
            }
        }
    }

    /// A complete frame of the received bytes.
    fn taken(&mut self) -> Option<Got> {
        let [first, second, ..] = *self.ahead else { return None };
        assert_eq!(second & 0x80, 0, "a server masks nothing");
        assert_eq!(first & 0x70, 0, "no extension was agreed to");
        let (head, length) = match second {
            126 => (4, u64::from(u16::from_be_bytes(self.ahead.get(2..4)?.try_into().expect("two bytes")))),
            127 => (10, u64::from_be_bytes(self.ahead.get(2..10)?.try_into().expect("eight bytes"))),
            short => (2, u64::from(short)),
        };
        let end = head + usize::try_from(length).expect("a length");
        if self.ahead.len() < end {
            return None;
        }
        let payload: Vec<u8> = self.ahead.drain(..end).skip(head).collect();
        Some(match first {
            TEXT => Got::Text(String::from_utf8(payload).expect("text is UTF-8")),
            PING => Got::Ping(payload),
            PONG => Got::Pong(payload),
            CLOSE => {
                let code = payload.get(..2).map_or(1005, |code| u16::from_be_bytes([code[0], code[1]]));
                let reason = payload.get(2..).unwrap_or_default().to_vec();
                Got::Close(code, String::from_utf8(reason).expect("a reason is UTF-8"))
            }
            other => panic!("a frame that begins with {other:#x}"),
        })
    }

    /// The next text.
    #[track_caller]
    pub fn text(&mut self) -> String {
        match self.receive() {
            Got::Text(text) => text,
            other => panic!("text was expected, not {other:?}"),
        }
    }

    /// The next text as JSON.
    #[track_caller]
    pub fn json(&mut self) -> Value {
        let text = self.text();
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("not JSON ({error}): {text}"))
    }

    /// The next message of that `type` (or `event_type`); others are skipped.
    #[track_caller]
    pub fn until(&mut self, kind: &str) -> Value {
        loop {
            let value = self.json();
            let name = value.get("type").or(value.get("event_type"));
            if name.and_then(Value::as_str) == Some(kind) {
                return value;
            }
        }
    }

    /// Code and reason of the close; other frames are skipped.
    #[track_caller]
    pub fn closed(&mut self) -> (u16, String) {
        loop {
            match self.receive() {
                Got::Close(code, reason) => return (code, reason),
                Got::Gone => panic!("the stream ended without a close"),
                _ => {}
            }
        }
    }

    /// Sends a ping that no data frame can overtake, and skips the frames before its pong.
    #[track_caller]
    pub fn is_alive(&mut self) {
        self.send_frame(PING, b"alive?");
        while self.receive() != Got::Pong(b"alive?".to_vec()) {}
    }

    /// Reads the frames so far, waiting only for the pong of a ping.
    #[track_caller]
    pub fn so_far(&mut self) -> Vec<Value> {
        self.send_frame(PING, b"so far");
        let mut found = Vec::new();
        loop {
            match self.receive() {
                Got::Pong(payload) if payload == b"so far" => return found,
                Got::Text(text) => found.push(serde_json::from_str(&text).expect("JSON")),
                Got::Close(code, reason) => panic!("closed: {code} {reason}"),
                Got::Gone => panic!("the stream ended"),
                _ => {}
            }
        }
    }

    /// Shuts down the sending half: the peer sees the end of the stream.
    pub fn shut(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }
}

/// A masked frame with that first byte and the shortest length that fits.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first];
    match payload.len() {
        0..126 => out.push(0x80 | payload.len() as u8),
        126..0x1_0000 => {
            out.push(0xfe);
            out.extend_from_slice(&(payload.len() as u16).to_be_bytes());
        }
        _ => {
            out.push(0xff);
            out.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    out.extend_from_slice(&MASK);
    out.extend(payload.iter().zip(MASK.iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// A token for one handshake.
///
/// # Panics
/// When none is minted.
pub fn token(client: &mut crate::http::Client) -> String {
    let minted = client.post("/v1/keys/ws-token", &serde_json::json!({})).expect(200);
    text(&minted, "/token").to_string()
}
