//! The venue's market channel, `/v1/ws/market` and `/ws/market` (gateway/docs/streams.md §4.1, §4.2): books and their
//! changes.
//!
//! Like the venue, it sends no acknowledgements, and ignores invalid messages. With `?errors=1` it sends error frames.

use super::admit::{Anonymous, ChannelKind, admit};
use super::close::Close;
use super::frame::Frame;
use super::market_follow::{BOOKS_PER_ARRAY_MAX, Follower};
use super::session::{Channel, Socket, Verdict, upgrade};
use super::shape::{Fault, StreamErrorEvent};
use crate::app::Edge;
use crate::http::call::Call;
use crate::http::reply::Outcome;
use crate::http::route::{RateClass, Route};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use std::rc::Rc;
use wire::read;
use wire::value::Value;

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/market", "ws_market")
    .about("Books and their changes, in the venue's frames.")
    .always_at_root()
    .rate(RateClass::Exempt)
    .run(|call| Box::pin(open(call)))];

async fn open(call: Call) -> Outcome {
    let admitted = admit(&call, Anonymous::ByAddress)?;
    let sends_errors = matches!(call.query().get("errors"), Some("1" | "true"));
    upgrade(&call, admitted, move |socket, edge| Market::new(socket, edge, sends_errors))
}

struct Market {
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    follower: Rc<Follower>,
    sends_errors: bool,
    subscriptions_max: usize,
}

/// A message of the client.
struct Request<'a> {
    subscribes: bool,
    tokens: Vec<&'a str>,
    conditions: Vec<&'a str>,
    initial_dump: bool,
    custom: bool,
}

const NOT_JSON: Fault = Fault { code: "INVALID_BODY", message: "the message is not JSON" };
const NO_OBJECT: Fault = Fault::request("the message is not a JSON object");
const OTHER_TYPE: Fault = Fault::request("type must be market or subscribe");
const OPERATION: Fault = Fault::request("operation must be subscribe or unsubscribe");
const TOKENS: Fault = Fault::request("assets_ids must be an array of token ids");
const MARKETS: Fault = Fault::request("markets must be an array of condition ids");
const SWITCHES: Fault = Fault::request("initial_dump and custom_feature_enabled must be booleans");
const UNKNOWN: Fault = Fault { code: "MARKET_NOT_FOUND", message: "no such market or token" };
const TOO_MANY: Fault = Fault { code: "SUBSCRIPTION_LIMIT", message: "too many subscriptions on one socket" };

impl Market {
    fn new(socket: Rc<Socket>, edge: Rc<Edge>, sends_errors: bool) -> Market {
        let follower = Follower::new(Rc::clone(&socket), Rc::clone(&edge.hub));
        let tier = socket.bearer().map(|bearer| bearer.tier);
        let subscriptions_max = edge.app.front.settings.streams.subscriptions_max(tier);
        Market { socket, edge, follower, sends_errors, subscriptions_max }
    }

    fn error(&self, fault: &Fault, action: &'static str, markets: &[&str]) {
        if !self.sends_errors {
            return;
        }
        self.socket.send(&Frame::record(&StreamErrorEvent::new(fault, action, markets)));
    }

    /// The tokens of a request, without duplicates, and its unknown ids.
    fn known<'a>(&self, request: &Request<'a>) -> (Vec<InstrumentId>, Vec<&'a str>) {
        let catalog = &self.edge.app.reads.catalog;
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let mut note = |instrument| {
            if !known.contains(&instrument) {
                known.push(instrument);
            }
        };
        for token in &request.tokens {
            match catalog.by_token(token) {
                Some(instrument) => note(instrument),
                None => unknown.push(*token),
            }
        }
        for condition in &request.conditions {
            match catalog.by_condition(condition) {
                Some(market) => {
                    note(market.instrument(MarketOutcome::First));
                    note(market.instrument(MarketOutcome::Second));
                }
                None => unknown.push(*condition),
            }
        }
        (known, unknown)
    }

    async fn subscribe(&self, request: &Request<'_>) {
        if request.custom {
            self.follower.enable_custom_events();
        }
        let (mut known, unknown) = self.known(request);
        if !unknown.is_empty() {
            self.error(&UNKNOWN, "subscribe", &unknown);
        }
        let mut left = self.subscriptions_max - self.follower.count();
        let wanted = known.len();
        known.retain(|instrument| {
            let is_new = !self.follower.follows(*instrument);
            let fits = !is_new || left > 0;
            left -= usize::from(fits && is_new);
            fits
        });
        if known.len() < wanted {
            self.error(&TOO_MANY, "subscribe", &[]);
        }
        // Without a token the response is an empty array.
        let none: &[InstrumentId] = &[];
        let pages = known.chunks(BOOKS_PER_ARRAY_MAX).chain(known.is_empty().then_some(none));
        for page in pages {
            let page_of_books = || {
                page.iter().for_each(|instrument| self.follower.follow(*instrument));
                if request.initial_dump {
                    self.follower.dump(page);
                }
            };
            self.edge.hub.one_page(page_of_books).await;
        }
    }
}

impl Channel for Market {
    const KIND: ChannelKind = ChannelKind::Market;

    async fn opened(&mut self) -> Result<(), Close> {
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        let Ok(value) = read::json(text.as_bytes()) else {
            self.error(&NOT_JSON, "", &[]);
            return Ok(Verdict::Invalid);
        };
        let request = match Request::read(&value) {
            Ok(request) => request,
            Err((action, fault)) => {
                self.error(&fault, action, &[]);
                return Ok(Verdict::Invalid);
            }
        };
        if request.subscribes {
            self.subscribe(&request).await;
        } else {
            let (known, unknown) = self.known(&request);
            known.into_iter().for_each(|instrument| self.follower.unfollow(instrument));
            if !unknown.is_empty() {
                self.error(&UNKNOWN, "unsubscribe", &unknown);
            }
        }
        Ok(Verdict::Accepted)
    }
}

impl Drop for Market {
    fn drop(&mut self) {
        self.follower.end();
    }
}

impl<'a> Request<'a> {
    /// Parses a message. The error has the action of the message, if it is known.
    fn read(value: &'a Value<'_>) -> Result<Request<'a>, (&'static str, Fault)> {
        if !matches!(value, Value::Object(_)) {
            return Err(("", NO_OBJECT));
        }
        let operation = value.get("operation").or(value.get("action"));
        let subscribes = match operation {
            None | Some(Value::Null) => true,
            Some(Value::Text(word)) if word.eq_ignore_ascii_case("subscribe") => true,
            Some(Value::Text(word)) if word.eq_ignore_ascii_case("unsubscribe") => false,
            Some(_) => return Err(("", OPERATION)),
        };
        let action = if subscribes { "subscribe" } else { "unsubscribe" };
        match value.get("type") {
            None | Some(Value::Null) => {}
            Some(Value::Text(word)) if ["market", "subscribe"].iter().any(|kind| word.eq_ignore_ascii_case(kind)) => {}
            Some(_) => return Err((action, OTHER_TYPE)),
        }
        let tokens = ids(value.get("assets_ids").or(value.get("asset_ids"))).ok_or((action, TOKENS))?;
        let conditions = ids(value.get("markets")).ok_or((action, MARKETS))?;
        let switch = |name, default| match value.get(name) {
            None | Some(Value::Null) => Ok(default),
            Some(Value::Bool(on)) => Ok(*on),
            Some(_) => Err((action, SWITCHES)),
        };
        let (initial_dump, custom) = (switch("initial_dump", true)?, switch("custom_feature_enabled", false)?);
        Ok(Request { subscribes, tokens, conditions, initial_dump, custom })
    }
}

/// A list of texts, empty if absent. `None` for any other value.
pub(super) fn ids<'a>(value: Option<&'a Value<'_>>) -> Option<Vec<&'a str>> {
    match value {
        None | Some(Value::Null) => Some(Vec::new()),
        Some(Value::Array(items)) => {
            let text = |item: &'a Value<'_>| match item {
                Value::Text(text) => Some(text.as_ref()),
                _ => None,
            };
            items.iter().map(text).collect()
        }
        Some(_) => None,
    }
}
