//! Order entry: `{"id":…,"op":…,"params":…}` → `{"id":…,"status":200,"result":…}`, or the error envelope with the id.
//!
//! An operation is the twin of a REST request. Its parameters become the typed arguments of the order handlers
//! ([`crate::api::orders`]), and it takes the steps of every request ([`crate::http::pipeline::exchange`]) with the
//! route of its twin. What REST has in headers is in the answer: `rate`, `retry_after`, `order_id`, `code`. This module
//! decides nothing about an order.

use super::admit::{self, Admitted, Anonymous, Bearer, ChannelKind};
use super::close::Close;
use super::frame::Frame;
use super::outbox::QUEUE_FRAMES_MAX;
use super::session::{Channel, Socket, Verdict, upgrade};
use crate::api::orders::list::Lookup;
use crate::api::orders::terms::Draft;
use crate::api::orders::{OrderName, batch, cancel, list, place};
use crate::app::Edge;
use crate::http::auth::{self, RequestId};
use crate::http::buffer;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::limit::{RateState, Source};
use crate::http::pipeline::{Credential, Head, Incoming, Target, exchange, sound_target, wants_details};
use crate::http::refusals::{self, KeyPrefix};
use crate::http::reply::{Outcome, Refusal};
use crate::http::response_head::ResponseHead;
use crate::http::route::{RateClass, Route};
use crate::http::router::Variables;
use crate::settings::TIERS;
use bytes::Bytes;
use engine::command::{Placement, Wallets};
use engine::id::KeyId;
use engine::user::Tier;
use http_body_util::Full;
use hyper::header::HeaderValue;
use hyper::{StatusCode, Uri};
use std::borrow::Cow;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use tokio::sync::Semaphore;
use wire::query::Query;
use wire::read;
use wire::value::Value;
use wire::write::{self, Object, object};

/// Longest id of an operation.
pub(super) const ID_CHARS_MAX: usize = 64;
/// Bytes of an answer besides its result.
const AROUND_BYTES: usize = 256;
/// The field with the parameters, which equal the body of the REST twin.
const PARAMS: &str = "params";

/// Operations of one socket in flight. At the bound the socket is not read. Half of an outbox, because all their
/// answers may be ready together.
const UNDER_WAY_MAX: usize = QUEUE_FRAMES_MAX / 2;

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/trade", "ws_trade")
    .rate(RateClass::Exempt)
    .no_store()
    .run(|call| Box::pin(async move { open(&call) }))];

/// A token that was minted by a session token is refused: there is no key whose windows could count its operations.
fn open(call: &Call) -> Outcome {
    let front = call.front();
    let mut admitted = admit::admit(call, Anonymous::Refused)?;
    let mut key = None;
    if let Admitted::Open { bearer, .. } = &admitted {
        match operates(bearer.as_ref(), |key| call.reads().directory.slot(key)) {
            Ok(found) => key = Some(found),
            Err(close) => admitted = Admitted::Refused(close),
        }
    }
    let source = call.source;
    let verbose = wants_details(&front.names, &call.headers);
    let brand = &front.settings.brand.key_prefix;
    let shown = auth::credentials(&call.headers, &front.key_aliases, brand).key;
    let key_prefix = shown.filter(|_| refusals::is_on()).and_then(|key| KeyPrefix::of(key, brand));
    upgrade(call, admitted, move |socket, edge| {
        let (key, key_slot) = key.expect("a socket without a key's slot was refused");
        Trade {
            socket,
            desk: Desk { key_prefix, ..Desk::new(edge, Operator { key, key_slot, source }, verbose) },
            room: Arc::new(Semaphore::new(UNDER_WAY_MAX)),
        }
    })
}

/// The key whose windows count the operations, and its slot.
///
/// # Errors
/// The close code if there is none.
fn operates(bearer: Option<&Bearer>, slot: impl Fn(KeyId) -> Option<u32>) -> Result<(KeyId, u32), Close> {
    let key = bearer.and_then(|bearer| bearer.key).ok_or(Close::NO_PERMISSION)?;
    Ok((key, slot(key).ok_or(Close::INVALID_KEY)?))
}

/// The channel. Each operation that waits runs as a task, so answers may overtake each other. A started operation runs
/// to its end, even if the socket closes.
struct Trade {
    socket: Rc<Socket>,
    desk: Desk,
    room: Arc<Semaphore>,
}

impl Channel for Trade {
    const KIND: ChannelKind = ChannelKind::Trade;
    const TAKES_OPERATIONS: bool = true;

    async fn opened(&mut self) -> Result<(), Close> {
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        let OperationFrame { id, operation } = self.desk.read(text);
        let operation = match operation {
            Ok(operation) => operation,
            Err(refusal) => {
                // Answered too, up to the rate of frames.
                let verdict = if id.is_some() { Verdict::Refused } else { Verdict::Invalid };
                self.socket.send(&self.desk.refuse(id, refusal));
                return Ok(verdict);
            }
        };
        // Waits for room. A permit is taken only if this waited or the operation waits: no other operation runs in
        // between.
        let permit = match self.room.available_permits() {
            0 => Some(Arc::clone(&self.room).acquire_owned().await.map_err(|_| Close::INTERNAL)?),
            _ => None,
        };
        let mut running = Box::pin(self.desk.run(id, operation));
        // Most operations are answered with the first poll. The others continue as tasks.
        if let Poll::Ready(answer) = poll_fn(|context| Poll::Ready(running.as_mut().poll(context))).await {
            self.socket.send(&answer);
            return Ok(Verdict::Accepted);
        }
        let permit = match permit {
            Some(permit) => permit,
            None => Arc::clone(&self.room).try_acquire_owned().map_err(|_| Close::INTERNAL)?,
        };
        let socket = Rc::clone(&self.socket);
        // The bot of a back-test waits for it, although the socket is read again.
        let held = self.desk.edge.app.moments.as_ref().map(|moments| moments.hold());
        tokio::task::spawn_local(async move {
            let answer = running.await;
            drop(permit);
            socket.send(&answer);
            drop(held);
        });
        Ok(Verdict::Accepted)
    }
}

/// The sender of a socket's operations.
#[derive(Clone, Copy, Debug)]
pub struct Operator {
    /// The key that opened the socket, and its slot.
    pub key: KeyId,
    pub key_slot: u32,
    pub source: Source,
}

/// State that the operations of one socket share.
pub struct Desk {
    edge: Rc<Edge>,
    by: Operator,
    /// Whether refusals have `details` and `request_id`.
    verbose: bool,
    /// Prefix of the handshake's key, for the log.
    key_prefix: Option<KeyPrefix>,
    /// By [`Twin`].
    routes: [Option<&'static Route>; TWINS.len()],
}

/// The REST twins of operations.
#[derive(Clone, Copy)]
enum Twin {
    Place,
    Batch,
    Cancel,
    CancelByClientId,
    Status,
    StatusByClientId,
    CancelAll,
}

/// The routes of the twins, by [`Twin`].
const TWINS: [&str; 7] = [
    "place_order",
    "place_orders",
    "cancel_order",
    "cancel_order_by_client_id",
    "get_order",
    "get_order_by_client_id",
    "cancel_all",
];

/// The client's id of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Text(String),
    /// The text of the number.
    Number(String),
}

/// A parsed frame.
pub struct OperationFrame {
    id: Option<Id>,
    operation: Result<Operation, Refusal>,
}

/// A parsed operation.
struct Operation {
    route: &'static Route,
    action: Action,
    /// Length of the twin's body.
    body_bytes: usize,
    /// Length of the twin's target, which is bounded as in HTTP.
    target_bytes: usize,
}

/// A handler with its arguments. Wrong arguments refuse the operation after its caller is admitted, as in REST.
enum Action {
    /// A placement, and the refusal to use if the shard reports invalid terms.
    Place(Result<(Box<Placement>, Option<Refusal>), Refusal>),
    Batch(Result<batch::Drafts<'static>, Refusal>),
    Cancel(OrderName<'static>),
    Status(OrderName<'static>, Result<Lookup, Refusal>),
    CancelAll(Result<Wallets, Refusal>),
}

impl Action {
    async fn run(self, call: &Call) -> Outcome {
        match self {
            Action::Place(read) => {
                let (placement, fault) = read?;
                place::enter(call, placement, fault).await
            }
            Action::Batch(drafts) => batch::enter(call, drafts?).await,
            Action::Cancel(name) => cancel::named(call, name).await,
            Action::Status(name, lookup) => list::named(call, name, lookup).await,
            Action::CancelAll(wallets) => cancel::all(call, wallets?).await,
        }
    }
}

impl Desk {
    pub fn new(edge: Rc<Edge>, by: Operator, verbose: bool) -> Desk {
        let all = edge.app.front.usage.routes();
        let routes = TWINS.map(|name| all.iter().copied().find(|route| route.name == name));
        Desk { edge, by, verbose, key_prefix: None, routes }
    }

    /// Parses a frame, without any effect. [`Desk::answer`] counts and runs it.
    pub fn read(&self, frame: &str) -> OperationFrame {
        let (value, params) = match read::framed(frame, PARAMS) {
            Ok((value @ Value::Object(_), params)) => (value, params),
            Ok((other, _)) => {
                let message = format!("The frame is {}, not an object.", other.kind());
                return OperationFrame { id: None, operation: Err(Refusal::new(Code::InvalidBody, message)) };
            }
            Err(error) => {
                let message = error.to_string().replacen("body", "frame", 1);
                return OperationFrame { id: None, operation: Err(Refusal::new(Code::InvalidBody, message)) };
            }
        };
        match Id::read(value.get("id")) {
            Ok(id) => OperationFrame { id: Some(id), operation: self.operation(&value, params.unwrap_or_default()) },
            Err(message) => OperationFrame { id: None, operation: Err(invalid(message)) },
        }
    }

    fn operation(&self, frame: &Value<'_>, params: &str) -> Result<Operation, Refusal> {
        let op = match frame.get("op") {
            Some(Value::Text(op)) => op.as_ref(),
            Some(_) => return Err(invalid("op is not a string.")),
            None => return Err(invalid("op is missing.")),
        };
        let shown = frame.get(PARAMS).filter(|params| **params != Value::Null);
        let shown = shown.ok_or_else(|| invalid("params is missing."));
        let read = || read::json(params.as_bytes()).map_err(|error| Refusal::new(Code::InvalidBody, error.to_string()));
        let (twin, action, body_bytes, target_bytes) = match op {
            "order.place" => {
                named(shown?)?;
                (Twin::Place, Action::Place(self.placement(params)), params.len(), 0)
            }
            "order.batch" => {
                shown?;
                (Twin::Batch, Action::Batch(self.drafts(params)), params.len(), 0)
            }
            "order.cancel" => {
                named(shown?)?;
                let (name, target_bytes) = order(&read()?)?;
                let twin = if matches!(name, OrderName::Id(_)) { Twin::Cancel } else { Twin::CancelByClientId };
                (twin, Action::Cancel(name), 0, target_bytes)
            }
            "order.status" => {
                named(shown?)?;
                let params = read()?;
                let (name, name_bytes) = order(&params)?;
                let (query, query_bytes) = query(&params, &["source", "wallet_id"])?;
                let twin = if matches!(name, OrderName::Id(_)) { Twin::Status } else { Twin::StatusByClientId };
                (twin, Action::Status(name, Lookup::read(&query)), 0, name_bytes + query_bytes)
            }
            "cancel_all" => {
                named(shown?)?;
                let value = read()?;
                let (query, target_bytes) = query(&value, &["confirm"])?;
                let wallets = cancel::confirmed(&query, Some(&value), false);
                (Twin::CancelAll, Action::CancelAll(wallets), params.len(), "/v1/cancel-all".len() + target_bytes)
            }
            _ => {
                return Err(invalid(
                    "Known operations: order.place, order.cancel, order.batch, order.status, cancel_all.",
                ));
            }
        };
        let route = self.routes[twin as usize].ok_or(Code::NotFound)?;
        Ok(Operation { route, action, body_bytes, target_bytes })
    }

    fn placement(&self, params: &str) -> Result<(Box<Placement>, Option<Refusal>), Refusal> {
        let order = body(params)?;
        // Admission sets the tier.
        let sender = place::sender(&self.edge.app.reads, self.by.key, Tier::Free);
        let Draft { placement, fault, .. } = Draft::read(&order, &sender);
        Ok((Box::new(placement), fault))
    }

    fn drafts(&self, params: &str) -> Result<batch::Drafts<'static>, Refusal> {
        let body = body(params)?;
        batch::Drafts::read(&body, &self.edge.app.reads, self.by.key).map(batch::Drafts::into_owned)
    }

    /// Runs an operation and returns its answer.
    pub async fn answer(&self, frame: OperationFrame) -> Frame {
        match frame.operation {
            Ok(operation) => self.run(frame.id, operation).await,
            Err(refusal) => self.refuse(frame.id, refusal),
        }
    }

    /// Takes an operation through the steps of a request and returns its answer.
    fn run(&self, id: Option<Id>, operation: Operation) -> impl Future<Output = Frame> + use<> {
        let Operation { route, action, body_bytes, target_bytes } = operation;
        let head = Head {
            fault: sound_target(target_bytes).err(),
            body_bytes: Some(body_bytes as u64),
            verbose: self.verbose,
            key_prefix: self.key_prefix,
            ..Head::bare(no_request_id(), Credential::Slot(self.by.key_slot))
        };
        let incoming = Incoming {
            method: route.method.hyper(),
            target: Target { uri: Uri::default(), found: Some((route, Variables::default())) },
            head,
            body: Full::<Bytes>::default(),
            peer: self.by.source,
        };
        let handle = |call: Call| async move { action.run(&call).await };
        exchange(Rc::clone(&self.edge), incoming, handle, move |head, outcome| {
            if outcome.is_err() && (head.verbose || refusals::is_on()) {
                head.request_id = RequestId::made();
            }
            let status = outcome.as_ref().map_or_else(Refusal::status, |reply| reply.status);
            (status, Frame::json(|out| write_answer(out, id.as_ref(), outcome, status, head)))
        })
    }

    /// The answer to a frame that is not an operation. The log does not have the client's id, which may be any text.
    #[cold]
    fn refuse(&self, id: Option<Id>, refusal: Refusal) -> Frame {
        let (app, code, status) = (&self.edge.app, refusal.code(), refusal.status());
        let head = ResponseHead {
            verbose: self.verbose,
            key_prefix: self.key_prefix,
            ..ResponseHead::with_id(&app.front.names, RequestId::made())
        };
        if refusals::is_on() {
            app.front.refusals.log(&app.reads, head.request_id.text(), None, head.key_prefix, code, status.as_u16());
        }
        Frame::json(|out| write_answer(out, id.as_ref(), Err(refusal), status, &head))
    }
}

/// An operation gets a request id only if its refusal shows or logs one.
fn no_request_id() -> RequestId {
    RequestId::Sent(HeaderValue::from_static(""))
}

impl Id {
    fn read(value: Option<&Value<'_>>) -> Result<Id, &'static str> {
        match value {
            Some(Value::Text(text)) if text.chars().count() <= ID_CHARS_MAX => Ok(Id::Text(text.clone().into_owned())),
            Some(Value::Text(_)) => Err("id is longer than 64 characters."),
            Some(Value::Number(number)) if number.parse::<i64>().is_ok() => Ok(Id::Number((*number).to_owned())),
            Some(Value::Number(_)) => Err("id is not an integer of 64 bits."),
            Some(_) => Err("id is neither a string nor an integer."),
            None => Err("id is missing."),
        }
    }
}

fn invalid(message: impl Into<Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::InvalidRequest, message)
}

/// The parameters as the twin's body. The twin's body declares no type, so one that is not JSON is 415.
fn body(params: &str) -> Result<Value<'_>, Refusal> {
    read::json(params.as_bytes()).map_err(|_| Code::Http415.into())
}

/// The parameters, which must be an object.
fn named<'a, 'v>(params: &'a Value<'v>) -> Result<&'a Value<'v>, Refusal> {
    match params {
        Value::Object(_) => Ok(params),
        other => Err(invalid(format!("params is {}, not an object.", other.kind()))),
    }
}

/// The order that the parameters identify, and the length of the twin's path.
fn order(params: &Value<'_>) -> Result<(OrderName<'static>, usize), Refusal> {
    let (id, client_id) = (scalar(params, "order_id")?, scalar(params, "client_order_id")?);
    match (id, client_id) {
        (Some(id), None) => {
            let bytes = "/v1/orders/".len() + encoded_bytes(&id, |byte| byte.is_ascii_digit());
            Ok((OrderName::Id(id.into_owned().into()), bytes))
        }
        (None, Some(id)) => {
            let bytes = "/v1/orders/by-client-id/".len() + encoded_bytes(&id, |byte| byte.is_ascii_alphanumeric());
            Ok((OrderName::ClientId(id.into_owned().into()), bytes))
        }
        _ => Err(invalid("params must have exactly one of order_id and client_order_id.")),
    }
}

/// The given parameters among these, and the length of the twin's query string.
fn query<'a>(params: &'a Value<'_>, names: &[&'static str]) -> Result<(Query<'a>, usize), Refusal> {
    let (mut fields, mut bytes) = (Vec::with_capacity(names.len()), 0);
    for name in names {
        if let Some(text) = scalar(params, name)? {
            bytes += "?=".len() + name.len() + encoded_bytes(&text, |byte| byte.is_ascii_alphanumeric());
            fields.push((*name, text));
        }
    }
    Ok((Query::of(fields), bytes))
}

/// Length of a text in a target, with bytes that are not `plain` escaped.
fn encoded_bytes(text: &str, plain: fn(u8) -> bool) -> usize {
    text.bytes().map(|byte| if plain(byte) { 1 } else { "%00".len() }).sum()
}

/// The text of a parameter; `None` if it is null or empty.
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

/// Writes the answer to an operation.
fn write_answer(out: &mut Vec<u8>, id: Option<&Id>, outcome: Outcome, status: StatusCode, head: &ResponseHead<'_>) {
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
                let envelope = refusal.envelope(Dialect::Plain, head.verbose, head.request_id.text());
                o.name("error").extend_from_slice(&envelope);
                o.word("code", refusal.code().header());
                if let Some(secs) = refusal.retry_after_secs() {
                    o.integer("retry_after", secs.into());
                }
                if let Some(order) = refusal.order() {
                    o.integer("order_id", order);
                }
            }
        }
        if let Some(rate) = &head.rate {
            write_rate(o, rate);
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
