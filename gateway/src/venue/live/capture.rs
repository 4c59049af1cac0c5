//! What an adapter heard, word for word, with the moment and the connection: the feed translates it, a recording keeps
//! it (upstream.md §7).

use crate::venue::tape::{Origin, Record};
use engine::time::{MILLISECOND, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::Utf8Bytes;

/// One thing that was heard. Cheap to clone: texts are shared.
#[derive(Clone, Debug)]
pub struct Capture {
    pub received: Timestamp,
    pub source: Arc<Source>,
    pub heard: Heard,
}

/// Where something was heard.
#[derive(Debug, PartialEq, Eq)]
pub struct Source {
    pub origin: Origin,
    /// Number of the connection in this process ([`Frame::connection`](crate::venue::Frame)).
    pub number: u8,
    /// Name of the connection in recordings; empty for the answers of REST calls that belong to none.
    pub name: String,
}

#[derive(Clone, Debug)]
pub enum Heard {
    /// A text frame of a socket.
    Frame(Utf8Bytes),
    /// The answer to a REST call; `url` without scheme and host.
    Answer { url: Arc<str>, status: u16, body: Utf8Bytes },
    /// The connection is broken: what it told is unknown until it is told again.
    Gap(Arc<str>),
    /// A sign of life without content (a pong). Not recorded.
    Alive,
}

impl Capture {
    /// As the translators take it; `None` for what only shows life.
    pub fn record(&self) -> Option<Record<'_>> {
        let Source { origin, name, .. } = &*self.source;
        let (origin, connection) = (*origin, name.as_str().into());
        Some(match &self.heard {
            Heard::Frame(text) => Record::Frame { origin, connection, body: text.as_str().into() },
            Heard::Answer { url, status, body } => {
                let (url, body) = ((&**url).into(), body.as_str().into());
                Record::Answer { origin, connection, url, status: *status, body }
            }
            Heard::Gap(reason) => Record::Gap { origin, connection, reason: (&**reason).into() },
            Heard::Alive => return None,
        })
    }

    /// Appends it as a line of a recording, its end included; nothing for what is not recorded.
    pub fn line(&self, out: &mut Vec<u8>) {
        let row = match &self.heard {
            Heard::Frame(text) => Row { m: Some(Body(text)), ..self.row() },
            Heard::Answer { url, status, body } => {
                Row { u: Some(url), s: Some(*status), b: Some(Body(body)), ..self.row() }
            }
            Heard::Gap(reason) => Row { gap: Some(reason), ..self.row() },
            Heard::Alive => return,
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

/// A line of upstream.md §7; readers look for the time first.
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

/// What a venue sent: as it came where that is JSON on one line, else as a text.
struct Body<'a>(&'a str);

impl Serialize for Body<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Line ends are white space in JSON: no string holds one as it is.
        let text = if self.0.contains(['\n', '\r']) {
            self.0.replace(['\n', '\r'], " ").into()
        } else {
            Cow::Borrowed(self.0)
        };
        match serde_json::from_str::<&RawValue>(&text) {
            Ok(raw) if raw.get().starts_with(['{', '[']) => raw.serialize(serializer),
            _ => serializer.serialize_str(self.0),
        }
    }
}
