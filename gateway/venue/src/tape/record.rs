//! What a line of a recording holds (upstream.md §7).

use crate::loose::Loose;
use serde::Deserialize;
use std::borrow::Cow;

/// Whose message a line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Origin {
    Polymarket,
    Kalshi,
}

impl Origin {
    /// As lines and settings write it.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Polymarket => "polymarket",
            Origin::Kalshi => "kalshi",
        }
    }

    /// The venue of that name.
    pub fn named(name: &str) -> Option<Origin> {
        [Origin::Polymarket, Origin::Kalshi].into_iter().find(|origin| origin.name() == name)
    }
}

/// What a line holds, borrowed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record<'a> {
    /// A text frame; connections without a name share one per venue.
    Frame { origin: Origin, connection: Cow<'a, str>, body: Cow<'a, str> },
    /// A REST answer; its path decides what the body is. One that names a connection was asked for on its behalf: what
    /// that connection hears from then on continues it.
    Answer { origin: Origin, connection: Cow<'a, str>, url: Cow<'a, str>, status: u16, body: Cow<'a, str> },
    /// Something is missing here: every token of that connection is stale until its next snapshot.
    Gap { origin: Origin, connection: Cow<'a, str>, reason: Cow<'a, str> },
}

impl<'a> Record<'a> {
    /// Reads a line; `None` when it fits no row of the table.
    pub fn parse(line: &'a str) -> Option<Record<'a>> {
        if let Some((origin, connection, body)) = written_frame(line) {
            return Some(Record::Frame { origin, connection: connection.into(), body: body.into() });
        }
        let fields: Fields<'a> = serde_json::from_str(line).ok()?;
        let origin = match fields.v.text() {
            Some(name) => Origin::named(&name)?,
            None if !fields.event.is_absent() => Origin::Kalshi,
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

    /// Whose it is.
    pub fn origin(&self) -> Origin {
        let (Record::Frame { origin, .. } | Record::Answer { origin, .. } | Record::Gap { origin, .. }) = self;
        *origin
    }

    /// Name of the connection that it came on, or is about; empty where none is named.
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

/// Venue, connection and message of a line that is exactly `{"recv_ms":…,"event":{…}}` or, as recorders here write it,
/// `{"r":…,"v":…,"c":…,"m":{…}}`, without parsing the whole line: the message is parsed by its translator anyway, which
/// counts it when it is not whole.
fn written_frame(line: &str) -> Option<(Origin, &str, &str)> {
    let behind_digits = |text: &'_ str| text.bytes().position(|byte| !byte.is_ascii_digit()).filter(|at| *at > 0);
    let (origin, connection, body) = match line.strip_prefix("{\"recv_ms\":") {
        Some(rest) => (Origin::Kalshi, "", rest[behind_digits(rest)?..].strip_prefix(",\"event\":")?),
        None => {
            let rest = line.strip_prefix("{\"r\":")?;
            let rest = rest[behind_digits(rest)?..].strip_prefix(",\"v\":\"")?;
            let (origin, rest) = match rest.strip_prefix(Origin::Polymarket.name()) {
                Some(rest) => (Origin::Polymarket, rest),
                None => (Origin::Kalshi, rest.strip_prefix(Origin::Kalshi.name())?),
            };
            let rest = rest.strip_prefix("\",")?;
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

/// Whether an object goes on to the end of the text, if all this is JSON: where it ended before, another field would
/// follow, and no brace in it is followed by one. A line that was cut off lacks a brace. Both are found out without a
/// way out of the loops, so that many bytes are looked at together.
fn is_last(object: &[u8]) -> bool {
    /// As many as one signed byte can count.
    const RUN_BYTES: usize = 127;
    let [b'{', .., b'}'] = object else { return false };
    let open_braces = |run: &[u8]| -> i8 {
        run.iter().fold(0, |open, byte| open + i8::from(*byte == b'{') - i8::from(*byte == b'}'))
    };
    let open: i64 = object.chunks(RUN_BYTES).map(|run| i64::from(open_braces(run))).sum();
    let triples = object.iter().zip(&object[1..]).zip(&object[2..]);
    let ends_before = triples.fold(false, |ends, ((byte, next), behind)| {
        let goes_on = (*next == b'}') | (*next == b']') | ((*next == b',') & (*behind == b'{'));
        ends | ((*byte == b'}') & !goes_on)
    });
    open == 0 && !ends_before
}

/// The JSON of a body, also when it was recorded as a text.
fn json(body: Loose<'_>) -> Option<Cow<'_, str>> {
    match body.raw().as_bytes().first()? {
        b'"' => body.text(),
        _ => Some(body.raw().into()),
    }
}
