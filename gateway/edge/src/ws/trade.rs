//! Order entry: `{"id":…,"op":…,"params":…}` → `{"id":…,"status":200,"result":…}`, or the error envelope with the id.
//!
//! An operation is a request without HTTP around it: it is turned into its REST twin's method, target and body, and runs
//! that very route through the same checks ([`crate::http::pipeline`]). What REST says in headers stands in the answer:
//! `rate`, `retry_after`, `order_id`, `code`. Nothing here decides anything about an order.

use super::admit::{self, Admitted, Bearer, Nobody, Which};
use super::close::Close;
use super::frame::Frame;
use super::outbox::QUEUE_FRAMES_MAX;
use super::session::{Channel, Said, Socket, upgrade};
use crate::app::{App, Edge};
use crate::http::auth::{self, RequestId};
use crate::http::buffer;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::limit::RateState;
use crate::http::pipeline::{Operated, Operating, Operation, Operator, wants_details};
use crate::http::refusals::{self, Shown};
use crate::http::reply::{Outcome, Refusal};
use crate::http::route::{RateClass, Route};
use crate::http::router::{Found, Variables};
use crate::settings::TIERS;
use bytes::Bytes;
use engine::id::KeyId;
use hyper::{Method, StatusCode, Uri};
use std::borrow::Cow;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::sync::Semaphore;
use wire::query::encode;
use wire::read;
use wire::value::Value;
use wire::write::{self, Object, object};

/// Longest text that names an operation.
const ID_CHARS_MAX: usize = 64;
/// What an answer has around its result.
const AROUND_BYTES: usize = 256;
/// The field that holds the body of the REST twin.
const PARAMS: &str = "params";

/// Operations of one socket that are under way; who sends more waits to be read. Half of what an outbox holds: all their
/// answers may come at once.
const UNDER_WAY_MAX: usize = QUEUE_FRAMES_MAX / 2;

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/trade", "ws_trade")
    .rate(RateClass::Exempt)
    .no_store()
    .run(|call| Box::pin(async move { open(&call) }))];

/// A token that a session token minted has no key whose windows its operations could count against.
fn open(call: &Call) -> Outcome {
    let app = call.app();
    let mut admitted = admit::admit(call, Nobody::Refused)?;
    let mut key_slot = None;
    if let Admitted::Open { bearer, .. } = &admitted {
        match operates(bearer.as_ref(), |key| app.directory.slot(key)) {
            Ok(slot) => key_slot = Some(slot),
            Err(close) => admitted = Admitted::Refused(close),
        }
    }
    let source = call.source;
    let verbose = wants_details(&app.front.names, &call.headers);
    let brand = &app.config.brand.key_prefix;
    let key = auth::credentials(&call.headers, &app.front.key_aliases, brand).key;
    let shown = key.filter(|_| refusals::is_on()).and_then(|key| Shown::of(key, brand));
    upgrade(call, admitted, move |socket, edge| {
        let key_slot = key_slot.expect("a socket without a key's slot was refused");
        Trade {
            socket,
            desk: Desk { shown, ..Desk::new(edge, Operator { key_slot, source }, verbose) },
            room: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        }
    })
}

/// The slot of the key that operations count against.
///
/// # Errors
/// Why there is none.
fn operates(bearer: Option<&Bearer>, slot: impl Fn(KeyId) -> Option<u32>) -> Result<u32, Close> {
    let key = bearer.and_then(|bearer| bearer.key).ok_or(Close::NO_PERMISSION)?;
    slot(key).ok_or(Close::INVALID_KEY)
}

/// The channel: each operation is a task of its own, so that their answers may overtake each other. What has begun is
/// carried through, whether or not the socket lives to hear of it.
struct Trade {
    socket: Rc<Socket>,
    desk: Desk,
    room: Arc<Semaphore>,
}

impl Channel for Trade {
    const WHICH: Which = Which::Trade;
    const TAKES_OPERATIONS: bool = true;

    async fn opened(&mut self) -> Result<(), Close> {
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Said, Close> {
        let asked = self.desk.read(text);
        if asked.operation.is_err() {
            // Answered, too, while there are few of them.
            let said = if asked.id.is_some() { Said::Refused } else { Said::Nonsense };
            let answer = self.desk.answer(asked).await;
            self.socket.send(&answer);
            return Ok(said);
        }
        // Room, and a place in it only when the operation takes one: nobody else comes in between.
        let place = match self.room.available_permits() {
            0 => Some(Arc::clone(&self.room).acquire_owned().await.map_err(|_| Close::INTERNAL)?),
            _ => None,
        };
        let mut running = self.desk.begin(asked);
        // Most are answered at once. One that is not goes on by itself.
        if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(self.desk.poll(&mut running, context))).await {
            self.socket.send(&answer);
            return Ok(Said::Understood);
        }
        let place = match place {
            Some(place) => place,
            None => Arc::clone(&self.room).try_acquire_owned().map_err(|_| Close::INTERNAL)?,
        };
        let (socket, desk) = (Rc::clone(&self.socket), self.desk.clone());
        tokio::task::spawn_local(async move {
            let answer = poll_fn(|context| desk.poll(&mut running, context)).await;
            drop(place);
            socket.send(&answer);
        });
        Ok(Said::Understood)
    }
}

/// What the operations of one socket have in common.
#[derive(Clone)]
pub struct Desk {
    edge: Rc<Edge>,
    by: Operator,
    /// Refusals show `details` and `request_id`.
    verbose: bool,
    /// The beginning of the key that the handshake showed, for the log.
    shown: Option<Shown>,
    /// Where most operations go.
    placing: Option<Target>,
    batching: Option<Target>,
}

/// Where an operation goes.
#[derive(Clone)]
struct Target {
    route: &'static Route,
    uri: Uri,
    variables: Variables,
}

impl Target {
    fn find(app: &App, method: &Method, uri: Uri) -> Option<Target> {
        match app.front.router.find(method, uri.path(), |route| route.gate.is_none()) {
            Found::Route(route, variables) => Some(Target { route, uri, variables }),
            Found::Method(_) | Found::Nothing => None,
        }
    }
}

/// The client's name of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Text(String),
    /// The number's own text.
    Number(String),
}

/// An operation that was understood, or what is said instead.
pub struct Asked {
    id: Option<Id>,
    operation: Result<Operation, Refusal>,
}

impl Desk {
    pub fn new(edge: Rc<Edge>, by: Operator, verbose: bool) -> Desk {
        let find = |path| Target::find(&edge.app, &Method::POST, Uri::from_static(path));
        let (placing, batching) = (find("/v1/orders"), find("/v1/orders/batch"));
        Desk { edge, by, verbose, shown: None, placing, batching }
    }

    /// Reads a frame. Nothing is counted and nothing happens before [`Desk::answer`].
    pub fn read(&self, frame: &str) -> Asked {
        let (value, params) = match read::framed(frame, PARAMS) {
            Ok((value @ Value::Object(_), params)) => (value, params),
            Ok((other, _)) => {
                let message = format!("The frame is {}, not an object.", other.kind());
                return Asked { id: None, operation: Err(Refusal::saying(Code::InvalidBody, message)) };
            }
            Err(error) => {
                let message = error.to_string().replacen("body", "frame", 1);
                return Asked { id: None, operation: Err(Refusal::saying(Code::InvalidBody, message)) };
            }
        };
        match Id::read(value.get("id")) {
            Ok(id) => Asked { id: Some(id), operation: self.twin(&value, params.unwrap_or_default()) },
            Err(message) => Asked { id: None, operation: Err(invalid(message)) },
        }
    }

    /// The REST twin of an operation.
    fn twin(&self, frame: &Value<'_>, body: &str) -> Result<Operation, Refusal> {
        let op = match frame.get("op") {
            Some(Value::Text(op)) => op.as_ref(),
            Some(_) => return Err(invalid("op is not a string.")),
            None => return Err(invalid("op is missing.")),
        };
        let shown = frame.get(PARAMS).filter(|params| **params != Value::Null);
        let shown = shown.ok_or_else(|| invalid("params is missing."));
        let read = |shown: &Value<'_>| {
            named(shown)?;
            read::json(body.as_bytes()).map_err(|error| Refusal::saying(Code::InvalidBody, error.to_string()))
        };
        // A target too long for a URI is too long for a request.
        let found = |method, target: String| {
            let uri = Uri::try_from(target);
            let uri = uri.map_err(|_| Refusal::broken("The request target is longer than 8 KiB."))?;
            Ok::<_, Refusal>(Target::find(&self.edge.app, &method, uri))
        };
        let (target, body) = match op {
            "order.place" => (self.placing.clone(), named(shown?).map(|_| body)?),
            "order.batch" => (self.batching.clone(), shown.map(|_| body)?),
            "order.cancel" => (found(Method::DELETE, order(&read(shown?)?)?)?, ""),
            "order.status" => {
                let params = read(shown?)?;
                (found(Method::GET, order(&params)? + &query(&params, &["source", "wallet_id"])?)?, "")
            }
            "cancel_all" => {
                let params = read(shown?)?;
                (found(Method::POST, "/v1/cancel-all".to_owned() + &query(&params, &["confirm"])?)?, body)
            }
            _ => {
                return Err(invalid(
                    "Known operations: order.place, order.cancel, order.batch, order.status, cancel_all.",
                ));
            }
        };
        let Target { route, uri, variables } = target.ok_or(Code::NotFound)?;
        Ok(Operation { route, uri, variables, body: Bytes::copy_from_slice(body.as_bytes()) })
    }

    /// Runs an operation; the frame that answers it.
    pub async fn answer(&self, asked: Asked) -> Frame {
        let mut running = self.begin(asked);
        poll_fn(|context| self.poll(&mut running, context)).await
    }

    fn begin(&self, asked: Asked) -> Running {
        let Asked { id, operation } = asked;
        let operation = match operation {
            Ok(operation) => Ok(Operating::begin(&self.edge, self.by, operation)),
            Err(refusal) => Err(Some(refusal)),
        };
        Running { id, operation }
    }

    fn poll(&self, running: &mut Running, context: &mut Context<'_>) -> Poll<Frame> {
        let operated = match &mut running.operation {
            Ok(operating) => ready!(operating.poll(&self.edge.app, context)),
            Err(refusal) => {
                let refusal = refusal.take().expect("it was not answered yet");
                Operated { status: refusal.status(), outcome: Err(refusal), rate: None }
            }
        };
        let refused = operated.outcome.as_ref().err().map(Refusal::code);
        let request_id = match refused {
            Some(code) if self.verbose || refusals::is_on() => Some(self.refused(running, code, operated.status)),
            _ => None,
        };
        let request_id = request_id.as_ref().map_or("", RequestId::text);
        Poll::Ready(Frame::json(|out| write_answer(out, running.id.as_ref(), operated, self.verbose, request_id)))
    }

    /// Gives a refused operation an id of the server's, and logs the refusal where refusals are logged. What the client
    /// calls it stays out of the log: a text may be anything.
    #[cold]
    fn refused(&self, running: &Running, code: Code, status: StatusCode) -> RequestId {
        let (app, request_id) = (&self.edge.app, RequestId::made());
        if refusals::is_on() {
            let operation = running.operation.as_ref().ok().and_then(Operating::name);
            app.front.refusals.tell(app, request_id.text(), operation, self.shown, code, status.as_u16());
        }
        request_id
    }
}

/// An operation that was begun, or what is said instead.
struct Running {
    id: Option<Id>,
    operation: Result<Operating, Option<Refusal>>,
}

impl Id {
    fn read(value: Option<&Value<'_>>) -> Result<Id, &'static str> {
        match value {
            Some(Value::Text(text)) if text.chars().count() <= ID_CHARS_MAX => Ok(Id::Text(text.clone().into_owned())),
            Some(Value::Text(_)) => Err("id is longer than 64 characters."),
            Some(Value::Number(number)) if number.parse::<i64>().is_ok() => Ok(Id::Number((*number).to_owned())),
            Some(Value::Number(_)) => Err("id is no integer of 64 bits."),
            Some(_) => Err("id is neither a string nor an integer."),
            None => Err("id is missing."),
        }
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::saying(Code::InvalidRequest, message)
}

/// Parameters that have names.
fn named<'a, 'v>(params: &'a Value<'v>) -> Result<&'a Value<'v>, Refusal> {
    match params {
        Value::Object(_) => Ok(params),
        other => Err(invalid(format!("params is {}, not an object.", other.kind()))),
    }
}

/// The path of the order that the parameters name. What is no id is an unknown one, as in a path.
fn order(params: &Value<'_>) -> Result<String, Refusal> {
    let (id, client_id) = (scalar(params, "order_id")?, scalar(params, "client_order_id")?);
    let (mut path, text, plain): (_, _, fn(u8) -> bool) = match (id, client_id) {
        // A word must not be taken for the literal segment of another route.
        (Some(id), None) => ("/v1/orders/".to_owned(), id, |byte| byte.is_ascii_digit()),
        (None, Some(id)) => ("/v1/orders/by-client-id/".to_owned(), id, |byte| byte.is_ascii_alphanumeric()),
        _ => return Err(invalid("params names an order by order_id or by client_order_id, by one of them.")),
    };
    encode(&mut path, &text, plain);
    Ok(path)
}

/// The query string of those of these parameters that are there.
fn query(params: &Value<'_>, names: &[&str]) -> Result<String, Refusal> {
    let mut query = String::new();
    for name in names {
        if let Some(text) = scalar(params, name)? {
            query.push(if query.is_empty() { '?' } else { '&' });
            query.push_str(name);
            query.push('=');
            encode(&mut query, &text, |byte| byte.is_ascii_alphanumeric());
        }
    }
    Ok(query)
}

/// The text of a parameter as it stands in a target; one that is null or empty is not there.
fn scalar<'a>(params: &'a Value<'_>, name: &str) -> Result<Option<Cow<'a, str>>, Refusal> {
    let text = match params.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Text(text)) => Cow::Borrowed(text.as_ref()),
        Some(Value::Number(number)) => Cow::Borrowed(*number),
        Some(Value::Bool(yes)) => Cow::Borrowed(if *yes { "true" } else { "false" }),
        Some(other) => return Err(invalid(format!("{name} is {}.", other.kind()))),
    };
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// The answer to an operation.
fn write_answer(out: &mut Vec<u8>, id: Option<&Id>, operated: Operated, verbose: bool, request_id: &str) {
    let Operated { outcome, status, rate } = operated;
    out.reserve(AROUND_BYTES + outcome.as_ref().map_or(0, |reply| reply.body.len()));
    object(out, |o| {
        match id {
            Some(Id::Text(text)) => o.text("id", text),
            Some(Id::Number(number)) => o.name("id").extend_from_slice(number.as_bytes()),
            None => o.null("id"),
        }
        o.integer("status", u64::from(status.as_u16()));
        match outcome {
            Ok(reply) => {
                o.name("result").extend_from_slice(&reply.body);
                buffer::give_back(reply.body);
            }
            Err(refusal) => {
                o.name("error").extend_from_slice(&refusal.envelope(Dialect::Plain, verbose, request_id));
                o.word("code", refusal.code().header());
                if let Some(secs) = refusal.retry_after_secs() {
                    o.integer("retry_after", secs.into());
                }
                if let Some(order) = refusal.order() {
                    o.integer("order_id", order);
                }
            }
        }
        if let Some(rate) = rate {
            write_rate(o, &rate);
        }
    });
}

fn write_rate(o: &mut Object<'_>, rate: &RateState) {
    write::object(o.name("rate"), |o| {
        o.integer("limit", rate.per_minute.into());
        o.integer("remaining", rate.remaining.into());
        o.integer("reset", rate.reset);
        o.integer("limit_per_second", rate.per_second.into());
        o.integer("remaining_per_second", rate.remaining_per_second.into());
        o.word("tier", TIERS[rate.tier as usize].1);
    });
}

#[cfg(test)]
mod tests;
