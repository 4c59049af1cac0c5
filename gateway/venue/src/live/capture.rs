//! A message of a venue as it arrived, with its time and connection: the feed translates it, a recording stores it
//! (gateway/docs/live-venues.md §7).

use crate::tape::{Origin, Record};
use engine::time::{MILLISECOND, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// One captured message. Cheap to clone: texts are shared.
#[derive(Clone, Debug)]
pub struct Capture {
    pub received: Timestamp,
    pub source: Arc<Source>,
    pub payload: Payload,
}

/// The connection of a capture.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    pub origin: Origin,
    /// Number of the connection in this process ([`Frame::connection`](crate::Frame)).
    pub number: u8,
    /// Name of the connection in recordings; empty for REST responses that belong to no connection.
    pub name: String,
}

#[derive(Clone, Debug)]
pub enum Payload {
    /// A text frame of a socket.
    Frame(Utf8Bytes),
    /// The response to a REST call; `url` without scheme and host.
    Answer { url: Arc<str>, status: u16, body: Utf8Bytes },
    /// The connection is broken: its state is unknown until the venue sends it again.
    Gap(Arc<str>),
    /// A sign of life without content (a pong). Not recorded.
    Alive,
}

impl Capture {
    /// The form that translators take; `None` for a sign of life.
    pub fn record(&self) -> Option<Record<'_>> {
        let Source { origin, name, .. } = &*self.source;
        let (origin, connection) = (*origin, name.as_str().into());
        Some(match &self.payload {
            Payload::Frame(text) => Record::Frame { origin, connection, body: text.as_str().into() },
            Payload::Answer { url, status, body } => {
                let (url, body) = ((&**url).into(), body.as_str().into());
                Record::Answer { origin, connection, url, status: *status, body }
            }
            Payload::Gap(reason) => Record::Gap { origin, connection, reason: (&**reason).into() },
            Payload::Alive => return None,
        })
    }

    /// Bytes of text that it holds.
    pub fn text_bytes(&self) -> usize {
        match &self.payload {
            Payload::Frame(text) => text.len(),
            Payload::Answer { url, body, .. } => url.len() + body.len(),
            Payload::Gap(reason) => reason.len(),
            Payload::Alive => 0,
        }
    }

    /// Appends it as a line of a recording, with the line end; appends nothing for what is not recorded.
    pub fn line(&self, out: &mut Vec<u8>) {
        let row = match &self.payload {
            Payload::Frame(text) => Row { m: Some(Body(text)), ..self.row() },
            Payload::Answer { url, status, body } => {
                Row { u: Some(url), s: Some(*status), b: Some(Body(body)), ..self.row() }
            }
            Payload::Gap(reason) => Row { gap: Some(reason), ..self.row() },
            Payload::Alive => return,
        };
        serde_json::to_writer(&mut *out, &row).expect("texts and numbers can be written");
        out.push(b'\n');
    }

    fn row(&self) -> Row<'_> {
        let Source { origin, name, .. } = &*self.source;
        let c = Some(name.as_str()).filter(|name| !name.is_empty());
        Row { r: self.received.0 / MILLISECOND, v: origin.name(), c, m: None, u: None, s: None, b: None, gap: None }
    }
}

/// A line of gateway/docs/live-venues.md §7. The time comes first, because readers look for it first.
#[derive(Serialize)]
struct Row<'a> {
    r: u64,
    v: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    c: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    m: Option<Body<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    u: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    s: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    b: Option<Body<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    gap: Option<&'a str>,
}

/// The body of a message: unchanged if it is JSON on one line, else as a JSON string.
struct Body<'a>(&'a str);

impl Serialize for Body<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Line ends are white space in JSON: strings cannot contain them unescaped. The loop has no early exit, so that
        // the compiler vectorizes it; it runs for every message.
        let has_ends = self.0.bytes().fold(false, |has, byte| has | (byte == b'\n') | (byte == b'\r'));
        let text = if has_ends { self.0.replace(['\n', '\r'], " ").into() } else { Cow::Borrowed(self.0) };
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(raw) if raw.get().starts_with(['{', '[']) => raw.serialize(serializer),
            _ => serializer.serialize_str(self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::testing::Random;

    fn capture(name: &str, payload: Payload) -> Capture {
        let source = Source { origin: crate::testing::KALSHI, number: 3, name: name.into() };
        Capture { received: Timestamp::from_millis(1_786_406_405_459), source: Arc::new(source), payload }
    }

    /// JSON keeps its content; other text keeps every byte.
    fn expected(body: &str) -> Cow<'_, str> {
        let json = |text: &str| {
            matches!(text.trim().as_bytes().first(), Some(b'{' | b'['))
                && serde_json::from_str::<&RawValue>(text).is_ok()
        };
        match json(body) {
            true => body.replace(['\n', '\r'], " ").trim().to_owned().into(),
            false => body.into(),
        }
    }

    /// Checks that the line has one line end and reads back with the same content.
    fn check(name: &str, body: &str) {
        let payload = [
            Payload::Frame(body.to_owned().into()),
            Payload::Answer { url: "/events?a=\"1\"".into(), status: 425, body: body.to_owned().into() },
            Payload::Gap(body.into()),
        ];
        for payload in payload {
            let capture = capture(name, payload);
            let mut line = Vec::new();
            capture.line(&mut line);
            let line = String::from_utf8(line).expect("a line is text");
            let (text, rest) = line.split_once('\n').expect("a line has an end");
            assert!(rest.is_empty() && text.starts_with("{\"r\":1786406405459,\"v\":\"kalshi\""), "{line}");
            let record = match capture.record().expect("it is recorded") {
                Record::Frame { origin, connection, body } => {
                    Record::Frame { origin, connection, body: expected(&body).into_owned().into() }
                }
                Record::Answer { origin, connection, url, status, body } => {
                    Record::Answer { origin, connection, url, status, body: expected(&body).into_owned().into() }
                }
                gap => gap,
            };
            assert_eq!(Record::parse(text).as_ref(), Some(&record), "{text:.2000}");
        }
    }

    #[test]
    fn every_message_is_one_line_that_reads_back_unchanged() {
        let deep = "[".repeat(100_000) + &"]".repeat(100_000);
        let bodies = [
            r#"{"type":"trade","msg":{"a":1}}"#,
            r#"[{"event_type":"book"},{"event_type":"book"}]"#,
            "{\n  \"pretty\": [1,\r\n 2]\n}\n",
            " \t{\"a\":1} ",
            r#"{"a":"line\nend","b":"\ud800","c":"\u0000"}"#,
            r#"{"r":1,"v":"polymarket","m":{"gap":"x"}}"#,
            r#"{"recv_ms":1,"event":{"msg":{"a":1}}}"#,
            "",
            " ",
            "\n",
            "PONG",
            "null",
            "true",
            "0.5",
            r#""a text""#,
            r#""[1,2]""#,
            "{",
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"{"a":1} {"b":2}"#,
            r#"{"a":NaN}"#,
            "{\"a\":\"raw\u{1}control\"}",
            "{\"a\":\"raw\nline end\"",
            "[1,2,\n",
            "<html>\r\n<body>502 Bad Gateway</body></html>\n",
            "\u{2028}\u{85}\u{feff}{}",
            "\0\u{7f}\"\\/\u{8}",
            "日本語 \u{1f980}",
            &deep,
            &format!("[\"{}\"]", "x".repeat(3 << 20)),
            &"\"".repeat(1 << 20),
        ];
        for body in bodies {
            for name in ["", "market-0", "odd \"name\"\n"] {
                check(name, body);
            }
        }
        println!("captures as lines: {} cases", bodies.len() * 9);
    }

    #[test]
    fn random_bodies_are_one_line_each() {
        const PIECES: [&str; 22] = [
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\\",
            ":",
            ",",
            "\n",
            "\r",
            " ",
            "\t",
            "\0",
            "null",
            "1e9",
            "-0.10",
            "a",
            "é",
            "\"m\"",
            "\"gap\":",
            "\\u00e9",
            "{\"a\":[]}",
        ];
        const ROUNDS: usize = 20_000;
        let mut random = Random(11);
        for _ in 0..ROUNDS {
            let length = random.next() % 12;
            let body: String = (0..length).map(|_| PIECES[(random.next() % PIECES.len() as u64) as usize]).collect();
            check("c", &body);
        }
        println!("random captures: {ROUNDS} cases");
    }

    #[test]
    fn a_sign_of_life_leaves_no_line() {
        let mut line = Vec::new();
        capture("c", Payload::Alive).line(&mut line);
        assert_eq!((line.len(), capture("c", Payload::Alive).record()), (0, None));
        println!("signs of life: 1 case");
    }
}
