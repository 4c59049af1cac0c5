//! One request as its handler has it: routed, authenticated, counted, its body read.

use super::code::Code;
use super::containment::{self, Deed};
use super::dialect::{self, Dialect};
use super::front::Front;
use super::limit::Source;
use super::reply::Refusal;
use super::route::{Auth, Route};
use super::router::Variables;
use crate::app::{App, Edge};
use crate::engine_client::Late;
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

/// One request, as its handler has it.
pub struct Call {
    pub edge: Rc<Edge>,
    pub route: &'static Route,
    /// When its head was read: the start of its deadlines.
    pub now: Timestamp,
    pub uri: hyper::Uri,
    /// Of a request on the fast path only those that its handler reads.
    pub headers: HeaderMap,
    /// The request states the type of its body.
    pub typed: bool,
    /// Which types the venue-shaped rows of the answer have.
    pub dialect: Dialect,
    pub variables: Variables,
    /// Where it came from, as the windows of addresses count it.
    pub source: Source,
    /// `None` on public routes without a usable key.
    pub caller: Option<Caller>,
    /// Empty where the route takes none.
    pub body: Bytes,
}

/// The id that a text is: digits without leading zeros. `None` for any other text, which is answered like an unknown id.
pub fn id(text: &str) -> Option<u64> {
    let plain = !text.is_empty() && text.len() <= 19 && text.bytes().all(|b| b.is_ascii_digit());
    (plain && (text.len() == 1 || !text.starts_with('0'))).then(|| text.parse().ok()).flatten()
}

/// The sender of a request, with the tier and permissions that hold now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    pub user: UserId,
    /// `None`: a session token was shown.
    pub key: Option<KeyId>,
    pub tier: Tier,
    pub permissions: Permissions,
    pub grant: Option<Grant>,
    /// When the key ends, where it has an end.
    pub expires_at: Option<Timestamp>,
}

impl Call {
    /// All the shared state; handlers name the part that they need.
    pub fn app(&self) -> &App {
        &self.edge.app
    }

    pub fn reads(&self) -> &Reads {
        &self.edge.app.reads
    }

    pub fn front(&self) -> &Front {
        &self.edge.app.front
    }

    pub fn streams(&self) -> &Streams {
        &self.edge.app.streams
    }

    /// The caller of a route that takes a credential.
    ///
    /// # Panics
    /// On a public route.
    pub fn caller(&self) -> &Caller {
        self.caller.as_ref().expect("the pipeline admits no request without the credential of its route")
    }

    /// Whether the caller's key may only read, where such keys are contained (`keys.readonly_contained`).
    pub fn is_contained(&self) -> bool {
        self.app().front.settings.keys.readonly_contained && containment::is_for(self.caller())
    }

    /// Whether the caller may do that to a key or a balance ([`containment`]).
    ///
    /// # Errors
    /// `INSUFFICIENT_PERMISSION`.
    pub fn may(&self, deed: Deed) -> Result<(), Refusal> {
        if !self.is_contained() {
            return Ok(());
        }
        let refused = |why| Refusal::saying(Code::InsufficientPermission, why);
        containment::check(self.caller(), deed).map_err(refused)
    }

    /// The key of a route that takes keys only.
    ///
    /// # Panics
    /// Where a session token is taken.
    pub fn key(&self) -> KeyId {
        self.caller().key.expect("the pipeline admits keys only")
    }

    /// The decoded text of the path's variable number `index`.
    pub fn variable(&self, index: usize) -> Cow<'_, str> {
        query::decoded(self.variables.get(self.uri.path(), index).unwrap_or_default(), false)
    }

    /// The path's first variable as an id ([`id`]).
    pub fn id(&self) -> Option<u64> {
        id(&self.variable(0))
    }

    pub fn query(&self) -> Query<'_> {
        Query::read(self.uri.query().unwrap_or_default())
    }

    /// Which types the venue-shaped rows of the answer have.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    /// Whether a route of two shapes answers this request in the venue's (venue.md §2), as the pipeline saw it too.
    pub fn in_venue_shape(&self) -> bool {
        let Auth::KeyUnless(shape) = self.route.auth else { return false };
        dialect::in_venue_shape(&self.app().front, shape, &self.headers, &self.query())
    }

    /// A header's text: ASCII without control characters, not empty.
    pub fn header(&self, name: &HeaderName) -> Option<&str> {
        let text = self.headers.get(name)?.to_str().ok()?;
        (!text.is_empty() && !text.contains('\t')).then_some(text)
    }

    /// The body as JSON; `None` when there is none.
    ///
    /// # Errors
    /// `INVALID_BODY`; 415 when the body names no content type and is no JSON either (wire.md §10).
    pub fn json(&self) -> Result<Option<Value<'_>>, Refusal> {
        match read::json(&self.body) {
            Ok(value) => Ok(Some(value)),
            Err(read::NotJson::Empty) => Ok(None),
            Err(_) if !self.typed => Err(Code::Http415.into()),
            Err(error) => Err(Refusal::saying(Code::InvalidBody, error.to_string())),
        }
    }

    /// The body as a JSON object.
    ///
    /// # Errors
    /// As [`Call::json`]; also without a body and for another kind of value.
    pub fn json_object(&self) -> Result<Value<'_>, Refusal> {
        match self.json()? {
            Some(value @ Value::Object(_)) => Ok(value),
            Some(other) => {
                Err(Refusal::saying(Code::InvalidBody, format!("The body is {}, not an object.", other.kind())))
            }
            None => Err(Refusal::saying(Code::InvalidBody, "The body is empty.")),
        }
    }

    /// Asks the shard of the caller.
    ///
    /// # Errors
    /// What a late or missing answer means (trading.md §9).
    pub async fn ask(&self, command: Command) -> Result<Answer, Refusal> {
        let user = self.caller().user;
        self.edge.engine.ask(user, command, self.now).await.map_err(late)
    }
}

/// What is said instead of an answer.
fn late(late: Late) -> Refusal {
    match late {
        Late::Busy => Code::ServerBusy.into(),
        Late::Unknown => Code::PersistenceUnknown.into(),
        Late::Overshot(answer) => overshot(&answer),
    }
}

/// `DEADLINE_OVERSHOT_BUT_PERSISTED`: names the order where there is one, and whether it rests.
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
