//! The content of a line of a recording (gateway/docs/live-venues.md §7).

use crate::loose::Loose;
use crate::origin::Origin;
use engine::market::terms::Venue;
use serde::Deserialize;
use std::borrow::Cow;

/// The venue of lines that name none, which are those of its own folder layout.
pub(crate) const UNNAMED: Origin = Origin::of(Venue::Kalshi).expect("a live venue");

/// The content of a line, borrowed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A text frame. Frames without a connection name share one connection per venue.
    Frame { origin: Origin, connection: Cow<'a, str>, body: Cow<'a, str> },
    /// A REST response; its path decides what the body is. With a connection name, the request was made for that
    /// connection, and its later frames continue from the response.
    Answer { origin: Origin, connection: Cow<'a, str>, url: Cow<'a, str>, status: u16, body: Cow<'a, str> },
    /// Messages are missing: every token of that connection is stale until its next snapshot.
    Gap { origin: Origin, connection: Cow<'a, str>, reason: Cow<'a, str> },
}

impl<'a> Record<'a> {
    /// Parses a line; `None` if it has none of the known forms.
    pub fn parse(line: &'a str) -> Option<Record<'a>> {
        if let Some((origin, connection, body)) = written_frame(line) {
            return Some(Record::Frame { origin, connection: connection.into(), body: body.into() });
        }
        let fields: Fields<'a> = serde_json::from_str(line).ok()?;
        let origin = match fields.v.text() {
            Some(name) => Origin::named(&name)?,
            None if !fields.event.is_absent() => UNNAMED,
            None => return None,
        };
        let connection = fields.c.text().unwrap_or_default();
        let frame = fields.m.or(fields.event);
        if let Some(url) = fields.u.text() {
            let status = fields.s.text().map_or(Some(200), |status| status.parse().ok())?;
            return Some(Record::Answer { origin, connection, url, status, body: json(fields.b)? });
        }
        if !frame.is_absent() {
            return Some(Record::Frame { origin, connection, body: json(frame)? });
        }
        let reason = fields.gap.text()?;
        Some(Record::Gap { origin, connection, reason })
    }

    /// Its venue.
    pub fn origin(&self) -> Origin {
        let (Record::Frame { origin, .. } | Record::Answer { origin, .. } | Record::Gap { origin, .. }) = self;
        *origin
    }

    /// Name of its connection; empty if there is none.
    pub fn connection(&self) -> &str {
        let (Record::Frame { connection, .. } | Record::Answer { connection, .. } | Record::Gap { connection, .. }) =
            self;
        connection
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow, default)]
    v: Loose<'a>,
    #[serde(borrow, default)]
    c: Loose<'a>,
    #[serde(borrow, default)]
    m: Loose<'a>,
    #[serde(borrow, default)]
    event: Loose<'a>,
    #[serde(borrow, default)]
    u: Loose<'a>,
    #[serde(borrow, default)]
    s: Loose<'a>,
    #[serde(borrow, default)]
    b: Loose<'a>,
    #[serde(borrow, default)]
    gap: Loose<'a>,
}

/// Venue, connection and message of a line in exactly the form `{"recv_ms":…,"event":{…}}` or
/// `{"r":…,"v":…,"c":…,"m":{…}}`, the one that the recorder writes. It does not parse the message: its translator does,
/// and counts a broken one.
fn written_frame(line: &str) -> Option<(Origin, &str, &str)> {
    let after_digits = |text: &'_ str| text.bytes().position(|byte| !byte.is_ascii_digit()).filter(|at| *at > 0);
    let (origin, connection, body) = match line.strip_prefix("{\"recv_ms\":") {
        Some(rest) => (UNNAMED, "", rest[after_digits(rest)?..].strip_prefix(",\"event\":")?),
        None => {
            let rest = line.strip_prefix("{\"r\":")?;
            let rest = rest[after_digits(rest)?..].strip_prefix(",\"v\":\"")?;
            let (name, rest) = rest.split_once('"')?;
            let (origin, rest) = (Origin::named(name)?, rest.strip_prefix(',')?);
            let (connection, rest) = match rest.strip_prefix("\"c\":\"") {
                Some(rest) => {
                    let (name, rest) = rest.split_once('"')?;
                    (name, rest.strip_prefix(',')?)
                }
                None => ("", rest),
            };
            let is_name = connection.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
            (origin, connection, rest.strip_prefix("\"m\":").filter(|_| is_name)?)
        }
    };
    let body = body.strip_suffix('}')?;
    is_last(body.as_bytes()).then_some((origin, connection, body))
}

/// Whether an object extends to the end of the text, assuming JSON. If it ended earlier, a field would follow a closing
/// brace; inside an object of these venues none does. A truncated line lacks a brace. The loops have no early exit, so
/// that the compiler vectorizes them.
fn is_last(object: &[u8]) -> bool {
    /// The largest run whose count fits a signed byte.
    const RUN_BYTES: usize = 127;
    let [b'{', .., b'}'] = object else { return false };
    let open_braces = |run: &[u8]| -> i8 {
        run.iter().fold(0, |open, byte| open + i8::from(*byte == b'{') - i8::from(*byte == b'}'))
    };
    let open: i64 = object.chunks(RUN_BYTES).map(|run| i64::from(open_braces(run))).sum();
    let triples = object.iter().zip(&object[1..]).zip(&object[2..]);
    let ends_before = triples.fold(false, |ends, ((byte, next), after)| {
        let continues = (*next == b'}') | (*next == b']') | ((*next == b',') & (*after == b'{'));
        ends | ((*byte == b'}') & !continues)
    });
    open == 0 && !ends_before
}

/// The JSON of a body, unpacked if it was recorded as a string.
fn json(body: Loose<'_>) -> Option<Cow<'_, str>> {
    match body.raw().as_bytes().first()? {
        b'"' => body.text(),
        _ => Some(body.raw().into()),
    }
}
