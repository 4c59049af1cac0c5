//! Checks of a live venue from this machine against what its adapter expects; only a contact with the venue can confirm
//! it (gateway/docs/live-venues.md §8). Unknown fields are accepted; missing fields, other types and unknown words are
//! differences.
//!
//! A check reads a page, a book and a snapshot or two from the configured addresses; it changes nothing.

use super::live::Pace;
use super::live::fetch_client;
use super::{VenueConfig, VenueKind};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderName, HeaderValue};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

/// How long a check waits for a message on a socket.
pub const LISTEN_MAX: Duration = Duration::from_secs(15);
/// Most differences that a check lists.
const NAMED_MAX: usize = 12;

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    pub what: String,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// As expected, with a detail.
    Ok(String),
    /// The venue responds, but not as the adapter expects.
    Differs(Vec<String>),
    /// The venue does not respond.
    Failed(String),
}

/// Checks the configured live venues and reports each check when it is done. Returns whether no check failed.
///
/// # Errors
/// The runtime cannot be created, or roots of trust or credentials cannot be read.
pub fn examine(config: &VenueConfig, sink: &mut dyn FnMut(&Check)) -> io::Result<bool> {
    // Another part of this process may have installed a provider; any will do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = fetch_client(config.live.pace).map_err(io::Error::other)?;
    let mut doctor = Doctor { client, pace: config.live.pace, sink, failed: false };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        if let VenueKind::Live(origins) = config.kind {
            for origin in origins.iter() {
                (origin.registration().examine)(&mut doctor, config).await?;
            }
        }
        Ok::<(), io::Error>(())
    })?;
    Ok(!doctor.failed)
}

/// Makes requests to a venue and reports the results of checks.
pub struct Doctor<'t> {
    client: reqwest::Client,
    pace: Pace,
    sink: &'t mut dyn FnMut(&Check),
    failed: bool,
}

impl Doctor<'_> {
    /// Reports a check: `Ok` with `detail` if there are no differences.
    pub fn report(&mut self, what: &str, detail: impl Into<String>, differences: Vec<String>) {
        let outcome = if differences.is_empty() { Outcome::Ok(detail.into()) } else { Outcome::Differs(differences) };
        (self.sink)(&Check { what: what.into(), outcome });
    }

    pub fn failed(&mut self, what: &str, why: impl ToString) {
        self.failed = true;
        (self.sink)(&Check { what: what.into(), outcome: Outcome::Failed(why.to_string()) });
    }

    /// Resolves the host of an address.
    pub async fn resolve(&mut self, url: &str) {
        let what = format!("resolve {url}");
        let Ok(parsed) = reqwest::Url::parse(url) else { return self.failed(&what, "not a valid URL") };
        let host = parsed.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        let port = parsed.port_or_known_default().unwrap_or(443);
        match timeout(self.pace.call_timeout, tokio::net::lookup_host((host, port))).await {
            Ok(Ok(found)) => {
                let found: Vec<String> = found.map(|address| address.ip().to_string()).collect();
                self.report(&what, found.join(", "), Vec::new());
            }
            Ok(Err(error)) => self.failed(&what, error),
            Err(_) => self.failed(&what, "no response in time"),
        }
    }

    /// The JSON body of a REST response. A status other than 200 or another body is reported as a failure.
    pub async fn get(&mut self, what: &str, url: &str) -> Option<Value> {
        self.answer(what, self.client.get(url)).await
    }

    pub async fn post(&mut self, what: &str, url: &str, body: &Value) -> Option<Value> {
        let request = self.client.post(url).header("content-type", "application/json").body(body.to_string());
        self.answer(what, request).await
    }

    async fn answer(&mut self, what: &str, request: reqwest::RequestBuilder) -> Option<Value> {
        let read = async {
            let response = request.send().await.map_err(|error| reasons(&error))?;
            let status = response.status();
            let text = response.text().await.map_err(|error| reasons(&error))?;
            match status.as_u16() {
                200 => serde_json::from_str(&text).map_err(|error| format!("not JSON ({error}): {}", shown(&text))),
                _ => Err(format!("status {status}: {}", shown(&text))),
            }
        };
        match read.await {
            Ok(value) => Some(value),
            Err(why) => {
                self.failed(what, why);
                None
            }
        }
    }

    /// Opens a socket; a refused handshake is reported as a failure.
    pub async fn socket(&mut self, what: &str, url: &str, headers: Vec<(HeaderName, HeaderValue)>) -> Option<Socket> {
        let open = async {
            let mut request = url.into_client_request().map_err(|error| error.to_string())?;
            request.headers_mut().extend(headers);
            match timeout(self.pace.call_timeout, connect_async(request)).await {
                Ok(Ok((socket, _))) => Ok(Socket(socket)),
                Ok(Err(error)) => Err(error.to_string()),
                Err(_) => Err("no response to the handshake".into()),
            }
        };
        match open.await {
            Ok(socket) => Some(socket),
            Err(why) => {
                self.failed(what, why);
                None
            }
        }
    }
}

/// An error and its causes.
fn reasons(error: &reqwest::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        text.push_str(&format!(": {error}"));
        cause = error.source();
    }
    text
}

/// The start of a text, on one line.
pub fn shown(text: &str) -> String {
    const CHARS: usize = 160;
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(CHARS).collect()
}

/// An open socket.
pub struct Socket(WebSocketStream<MaybeTlsStream<TcpStream>>);

/// A message of a socket.
pub enum Received {
    Text(String),
    /// A ping of the protocol.
    Ping,
}

impl Socket {
    pub async fn send(&mut self, text: &str) -> Result<(), String> {
        self.0.send(Message::text(text)).await.map_err(|error| error.to_string())
    }

    /// The next text or ping before `until`.
    pub async fn receive(&mut self, until: Instant) -> Result<Received, String> {
        loop {
            match tokio::time::timeout_at(until, self.0.next()).await {
                Err(_) => return Err(format!("no expected message within {} s", LISTEN_MAX.as_secs())),
                Ok(None) => return Err("the venue closed the connection".into()),
                Ok(Some(Err(error))) => return Err(error.to_string()),
                Ok(Some(Ok(Message::Text(text)))) => return Ok(Received::Text(text.as_str().to_owned())),
                Ok(Some(Ok(Message::Ping(_)))) => return Ok(Received::Ping),
                Ok(Some(Ok(Message::Close(frame)))) => {
                    let why = frame.map(|frame| format!(": {} {}", frame.code, frame.reason)).unwrap_or_default();
                    return Err(format!("the venue closed the connection{why}"));
                }
                Ok(Some(Ok(_))) => {}
            }
        }
    }

    /// The first text before `until` that `take` accepts.
    pub async fn receive_first<T>(
        &mut self,
        until: Instant,
        mut take: impl FnMut(&str) -> Option<T>,
    ) -> Result<T, String> {
        loop {
            if let Received::Text(text) = self.receive(until).await?
                && let Some(taken) = take(&text)
            {
                return Ok(taken);
            }
        }
    }
}

/// The type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Text,
    Number,
    Flag,
    List,
    /// A string that contains a list.
    ListText,
}

impl Kind {
    fn fits(self, value: &Value) -> bool {
        match self {
            Kind::Text => value.is_string(),
            Kind::Number => value.is_number(),
            Kind::Flag => value.is_boolean(),
            Kind::List => value.is_array(),
            Kind::ListText => {
                value.as_str().is_some_and(|text| serde_json::from_str::<Vec<Value>>(text).is_ok() || text.is_empty())
            }
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Text => "a string",
            Kind::Number => "a number",
            Kind::Flag => "true or false",
            Kind::List => "a list",
            Kind::ListText => "a list in a string",
        }
    }
}

/// A field that an adapter reads.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub kinds: &'static [Kind],
    /// Rows without it are useless.
    pub required: bool,
    /// All allowed values, if the set is fixed; numbers as in JSON.
    pub words: &'static [&'static str],
}

impl Field {
    pub const fn required(name: &'static str, kinds: &'static [Kind]) -> Field {
        Field { name, kinds, required: true, words: &[] }
    }

    pub const fn optional(name: &'static str, kinds: &'static [Kind]) -> Field {
        Field { name, kinds, required: false, words: &[] }
    }

    pub const fn one_of(self, words: &'static [&'static str]) -> Field {
        Field { words, ..self }
    }
}

/// The differences of rows from the expected fields.
pub fn differences(rows: &[Value], fields: &[Field]) -> Vec<String> {
    let mut found: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for field in fields {
        let values: Vec<Option<&Value>> =
            rows.iter().map(|row| row.get(field.name).filter(|value| !value.is_null())).collect();
        let mut note = |text: String| found.entry(field.name).or_default().push(text);
        let missing = values.iter().filter(|value| value.is_none()).count();
        if field.required && missing > 0 {
            note(format!("missing in {missing} of {} rows", rows.len()));
        }
        let present = || values.iter().flatten();
        let wrong: Vec<_> = present().filter(|value| !field.kinds.iter().any(|kind| kind.fits(value))).collect();
        if let Some(first) = wrong.first() {
            let expected: Vec<&str> = field.kinds.iter().map(|kind| kind.name()).collect();
            note(format!("not {} in {} rows: {}", expected.join(" or "), wrong.len(), shown(&first.to_string())));
        }
        if !field.words.is_empty() {
            let word = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let unknown: BTreeSet<String> =
                present().map(|value| word(value)).filter(|word| !field.words.contains(&word.as_str())).collect();
            if !unknown.is_empty() {
                note(format!("unknown words: {}", unknown.into_iter().take(NAMED_MAX).collect::<Vec<_>>().join(", ")));
            }
        }
    }
    let one = |(name, notes): (&str, Vec<String>)| format!("{name}: {}", notes.join("; "));
    found.into_iter().map(one).take(NAMED_MAX).collect()
}

/// A list inside a response.
pub fn list<'v>(answer: &'v Value, name: &str) -> Result<&'v [Value], String> {
    let inside = if name.is_empty() { Some(answer) } else { answer.get(name) };
    match inside.and_then(Value::as_array) {
        Some(rows) => Ok(rows),
        None => Err(format!("no list {name:?} in {}", shown(&answer.to_string()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn differences_are_listed_and_unknown_fields_are_not() {
        const FIELDS: [Field; 5] = [
            Field::required("id", &[Kind::Text]),
            Field::required("tokens", &[Kind::ListText, Kind::List]),
            Field::optional("open", &[Kind::Flag]),
            Field::optional("status", &[Kind::Text]).one_of(&["active", "closed"]),
            Field::optional("tick", &[Kind::Number]).one_of(&["0.01", "0.001"]),
        ];
        let cases = [
            (json!({"id": "1", "tokens": "[\"1\"]"}), vec![]),
            (json!({"id": "1", "tokens": [], "open": true, "status": "active", "tick": 0.01, "new": {}}), vec![]),
            (json!({"id": "1", "tokens": "", "open": null}), vec![]),
            (json!({"tokens": []}), vec!["id: missing in 1 of 1 rows"]),
            (json!({"id": 1, "tokens": []}), vec!["id: not a string in 1 rows: 1"]),
            (json!({"id": "1", "tokens": "[1"}), vec!["tokens: not a list in a string or a list in 1 rows: \"[1\""]),
            (
                json!({"id": "1", "tokens": [], "status": "odd", "tick": 0.005}),
                vec!["status: unknown words: odd", "tick: unknown words: 0.005"],
            ),
            (json!([]), vec!["id: missing in 1 of 1 rows", "tokens: missing in 1 of 1 rows"]),
        ];
        for (row, expected) in &cases {
            assert_eq!(differences(std::slice::from_ref(row), &FIELDS), *expected, "{row}");
        }
        assert!(
            list(&json!({"a": [1]}), "a").is_ok() && list(&json!([1]), "").is_ok() && list(&json!({}), "a").is_err()
        );
        println!("differences: {} cases", cases.len() + 3);
    }
}
