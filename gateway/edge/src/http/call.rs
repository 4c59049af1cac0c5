//! A request as its handler receives it: routed, authenticated, counted, with its body.

use super::code::Code;
use super::containment::{self, KeyAction};
use super::dialect::{self, Dialect};
use super::front::Front;
use super::limit::Source;
use super::reply::Refusal;
use super::route::{Auth, Route};
use super::router::Variables;
use crate::app::{Edge, Instance};
use crate::engine_client::AskError;
use crate::published::Published;
use crate::reads::Reads;
use crate::streams::Streams;
use bytes::Bytes;
use engine::command::{Answer, Command};
use engine::id::{KeyId, UserId};
use engine::time::Timestamp;
use engine::user::{Grant, Permissions, Tier};
use hyper::header::{HeaderMap, HeaderName};
use std::borrow::Cow;
use std::rc::Rc;
use wire::query::{self, Query};
use wire::read;
use wire::value::Value;

/// A request as its handler receives it.
pub struct Call {
    pub edge: Rc<Edge>,
    pub route: &'static Route,
    /// When the head was read. Deadlines count from here.
    pub now: Timestamp,
    pub uri: hyper::Uri,
    /// A `GET` whose body is not sent. A handler with an effect must not have it then.
    pub is_head: bool,
    /// On the fast path, only the headers that handlers read.
    pub headers: HeaderMap,
    /// Whether the request declares the type of its body.
    pub typed: bool,
    /// Dialect of venue-shaped rows in the response.
    pub dialect: Dialect,
    pub variables: Variables,
    /// The source address, as address limits count it.
    pub source: Source,
    /// `None` on public routes without a usable key.
    pub caller: Option<Caller>,
    /// Empty if the route takes none.
    pub body: Bytes,
}

/// Parses an id: digits without leading zeros. `None` for any other text, which callers treat as an unknown id.
pub fn id(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit());
    (plain && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// The sender of a request, with its current tier and permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: UserId,
    /// `None` for a session token.
    pub key: Option<KeyId>,
    pub tier: Tier,
    pub permissions: Permissions,
    pub grant: Option<Grant>,
    /// When the key ends, if it does.
    pub expires_at: Option<Timestamp>,
}

impl Call {
    pub fn reads(&self) -> &Reads {
        &self.edge.app.reads
    }

    pub fn front(&self) -> &Front {
        &self.edge.app.front
    }

    pub fn streams(&self) -> &Streams {
        &self.edge.app.streams
    }

    pub fn published(&self) -> &Published {
        &self.edge.app.published
    }

    pub fn instance(&self) -> &Instance {
        &self.edge.app.instance
    }

    /// The caller of a route that needs a credential.
    ///
    /// # Panics
    /// On a public route.
    pub fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the pipeline admits no request without the credential of its route")
    }

    /// Whether the caller's key is read-only and contained (`keys.readonly_contained`).
    pub fn is_contained(&self) -> bool {
        self.front().settings.keys.readonly_contained && containment::is_for(self.caller())
    }

    /// Checks whether the caller may do that to a key or a balance ([`containment`]).
    ///
    /// # Errors
    /// `INSUFFICIENT_PERMISSION`.
    pub fn may(&self, action: KeyAction) -> Result<(), Refusal> {
        if !self.is_contained() {
            return Ok(());
        }
        let refused = |why| Refusal::new(Code::InsufficientPermission, why);
        containment::check(self.caller(), action).map_err(refused)
    }

    /// The caller's key, on a route that takes only keys.
    ///
    /// # Panics
    /// On a route that takes session tokens.
    pub fn key(&self) -> KeyId {
        self.caller().key.expect("the pipeline admits keys only")
    }

    /// The decoded text of path variable number `index`.
    pub fn variable(&self, index: usize) -> Cow<'_, str> {
        query::decoded(self.variables.get(self.uri.path(), index).unwrap_or_default(), false)
    }

    /// The first path variable as an id ([`id`]).
    pub fn id(&self) -> Option<u64> {
        id(&self.variable(0))
    }

    pub fn query(&self) -> Query<'_> {
        Query::read(self.uri.query().unwrap_or_default())
    }

    /// Dialect of venue-shaped rows in the response.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether a route with two shapes answers this request in the venue's shape (gateway/docs/venue-clients.md §0.2).
    /// The pipeline decides with the same rule whether a key is needed.
    pub fn in_venue_shape(&self) -> bool {
        let Auth::KeyUnless(shape) = self.route.auth else { return false };
        dialect::in_venue_shape(self.front(), shape, &self.headers, &self.query())
    }

    /// A header's text: ASCII without control characters, not empty.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        let text = self.headers.get(name)?.to_str().ok()?;
        (!text.is_empty() && !text.contains('\t')).then_some(text)
    }

    /// The body as JSON; `None` if it is empty.
    ///
    /// # Errors
    /// `INVALID_BODY`; 415 if the body declares no type and is not JSON (gateway/docs/wire.md §10).
    pub fn json(&self) -> Result<Option<Value<'_>>, Refusal> {
        match read::json(&self.body) {
            Ok(value) => Ok(Some(value)),
            Err(read::NotJson::Empty) => Ok(None),
            Err(_) if !self.typed => Err(Code::Http415.into()),
            Err(error) => Err(Refusal::new(Code::InvalidBody, error.to_string())),
        }
    }

    /// The body as a JSON object.
    ///
    /// # Errors
    /// Those of [`Call::json`], and `INVALID_BODY` for an empty body or another JSON value.
    pub fn json_object(&self) -> Result<Value<'_>, Refusal> {
        match self.json()? {
            Some(value @ Value::Object(_)) => Ok(value),
            Some(other) => {
                Err(Refusal::new(Code::InvalidBody, format!("The body is {}, not an object.", other.kind())))
            }
            None => Err(Refusal::new(Code::InvalidBody, "The body is empty.")),
        }
    }

    /// How clients reach this server, without a slash at its end: as configured, else as the request did.
    pub fn base_url(&self) -> String {
        let server = &self.front().settings.server;
        if !server.public_url.is_empty() {
            return server.public_url.clone();
        }
        let host = self.header(&hyper::header::HOST).filter(|host| host.bytes().all(is_of_a_host));
        format!("http://{}", host.map_or_else(|| server.listen.to_string(), str::to_owned))
    }

    /// Sends a command to the caller's shard.
    ///
    /// # Errors
    /// The code of a late or missing answer (gateway/docs/trading.md §7).
    pub async fn ask(&self, command: Command) -> Result<Answer, Refusal> {
        let user = self.caller().user;
        self.edge.engine.ask(user, command, self.now).await.map_err(unanswered)
    }
}

/// Whether a byte can be in a host with a port, so that it may be part of a link.
fn is_of_a_host(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte)
}

/// The refusal for a late answer.
pub(crate) fn unanswered(error: AskError) -> Refusal {
    match error {
        AskError::Busy => Code::ServerBusy.into(),
        AskError::Unknown => Code::PersistenceUnknown.into(),
        AskError::Overshot(answer) => overshot(&answer),
    }
}

/// `DEADLINE_OVERSHOT_BUT_PERSISTED`, with the order if there is one, and whether it rests.
fn overshot(answer: &Answer) -> Refusal {
    let refusal = Refusal::from(Code::DeadlineOvershotButPersisted);
    let order = match answer {
        Answer::Order(view) => &view.order,
        Answer::Killed { order: view, .. } => &view.order,
        _ => return refusal,
    };
    let source = if order.status() == engine::order::Status::Filled { "filled" } else { "pending" };
    let refusal = refusal.order_id(order.id.0);
    refusal.field("source", |out| wire::write::string(out, source))
}
