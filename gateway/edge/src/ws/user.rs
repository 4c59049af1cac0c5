//! The venue's user channel, `/v1/ws/user` and `/ws/user` (gateway/docs/streams.md §4.1, §4.3): trades of the user's
//! orders in the markets subscribed to.
//!
//! A header, a token or the first frame has the credential. Like the venue, it sends no acknowledgements, and ignores
//! invalid messages. With `?errors=1` it sends error frames.
//!
//! A socket has one of two dialects, as REST has. The plain one has trades only, without owner and maker. The strict
//! one is that of the venue: trades have all its fields, and `order` frames report changes of orders.
//! `streams.order_events` extends or disables `order` frames.

use super::admit::{self, Anonymous, Bearer, ChannelKind, admit};
use super::close::Close;
use super::follow::{self, Following, FrameEncoder, follow};
use super::frame::Frame;
use super::market::ids;
use super::session::{Channel, Socket, Verdict, upgrade};
use super::shape::{Fault, StreamErrorEvent};
use super::user_frames::{FrameStyle, Member};
use super::user_text::Texts;
use crate::api::clob::ids as clob_ids;
use crate::app::Edge;
use crate::http::call::Call;
use crate::http::dialect::Dialect;
use crate::http::reply::Outcome;
use crate::http::route::{RateClass, Route};
use crate::settings::OrderEvents;
use engine::id::MarketId;
use engine::time::SECOND;
use engine::view::FactView;
use hyper::header;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use wire::read;
use wire::value::Value;

/// Time to send the `auth` frame.
const AUTH_WITHIN_US: u64 = 10 * SECOND;
/// A `User-Agent` that contains this, in lower case, gets order events.
const ORDER_EVENTS_AGENT: &str = "nautilus";

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/user", "ws_user")
    .about("The own trades, in the venue's frames.")
    .always_at_root()
    .rate(RateClass::Exempt)
    .run(|call| Box::pin(open(call)))];

async fn open(call: Call) -> Outcome {
    let query = call.query();
    let from = follow::from_seq(&query)?;
    let sends_errors = matches!(query.get("errors"), Some("1" | "true"));
    let dialect =
        Dialect::of_handshake(&call.headers, query.get("dialect"), &call.front().settings.compat.client_agents);
    let agent = call.header(&header::USER_AGENT).unwrap_or_default().to_ascii_lowercase();
    let wants_orders = agent.contains(ORDER_EVENTS_AGENT);
    let admitted = admit(&call, Anonymous::UntilAuth)?;
    upgrade(&call, admitted, move |socket, edge| User {
        socket,
        edge,
        from,
        sends_errors,
        dialect,
        wants_orders,
        markets_followed: Rc::default(),
        following: None,
    })
}

struct User {
    socket: Rc<Socket>,
    edge: Rc<Edge>,
    from: Option<u64>,
    sends_errors: bool,
    /// The dialect, if the handshake decides it. Otherwise the form of the key does.
    dialect: Option<Dialect>,
    /// Whether the client requests `order` frames.
    wants_orders: bool,
    markets_followed: Rc<RefCell<MarketSet>>,
    /// Set by the first subscription.
    following: Option<Following>,
}

/// The markets that are subscribed to.
#[derive(Debug, Default)]
struct MarketSet {
    /// Whether `named` are the exceptions from all markets, instead of the only ones.
    all: bool,
    named: BTreeSet<MarketId>,
}

impl MarketSet {
    fn contains(&self, market: MarketId) -> bool {
        self.all != self.named.contains(&market)
    }

    /// Adds or removes markets; `None` is all of them. Returns false if some did not fit into `named_max`, which are
    /// left out.
    fn set(&mut self, on: bool, markets: Option<&[MarketId]>, named_max: usize) -> bool {
        let Some(markets) = markets else {
            *self = MarketSet { all: on, named: BTreeSet::new() };
            return true;
        };
        let mut fit = true;
        for market in markets {
            if self.contains(*market) == on {
                continue;
            }
            if !self.named.remove(market) {
                let fits = self.named.len() < named_max;
                fit &= fits;
                if fits {
                    self.named.insert(*market);
                }
            }
        }
        fit
    }
}

const NOT_JSON: Fault = Fault { code: "INVALID_BODY", message: "the message is not JSON" };
const NO_OBJECT: Fault = Fault::request("the message is not a JSON object");
const NO_AUTH: Fault = Fault { code: "INVALID_KEY", message: "the first message must have auth.apiKey" };
const OTHER_TYPE: Fault = Fault::request("type must be user or subscribe");
const OPERATION: Fault = Fault::request("operation must be subscribe or unsubscribe");
const MARKETS: Fault = Fault::request("markets must be an array of condition ids");
const TOKENS: Fault = Fault::request("assets_ids must be an array of token ids");
const UNKNOWN: Fault = Fault { code: "MARKET_NOT_FOUND", message: "no such market or token" };
const TOO_MANY: Fault = Fault { code: "SUBSCRIPTION_LIMIT", message: "too many subscriptions on one socket" };

/// A message of the client.
struct Request<'a> {
    subscribes: bool,
    conditions: Vec<&'a str>,
    tokens: Vec<&'a str>,
}

impl<'a> Request<'a> {
    /// Parses a message. The error has the action of the message, if it is known.
    fn read(value: &'a Value<'_>) -> Result<Request<'a>, (&'static str, Fault)> {
        let subscribes = match value.get("operation").or(value.get("action")) {
            None | Some(Value::Null) => true,
            Some(Value::Text(word)) if word.eq_ignore_ascii_case("subscribe") => true,
            Some(Value::Text(word)) if word.eq_ignore_ascii_case("unsubscribe") => false,
            Some(_) => return Err(("", OPERATION)),
        };
        let action = if subscribes { "subscribe" } else { "unsubscribe" };
        match value.get("type") {
            None | Some(Value::Null) => {}
            Some(Value::Text(word)) if ["user", "subscribe"].iter().any(|kind| word.eq_ignore_ascii_case(kind)) => {}
            Some(_) => return Err((action, OTHER_TYPE)),
        }
        let conditions = ids(value.get("markets")).ok_or((action, MARKETS))?;
        let tokens = ids(value.get("assets_ids").or(value.get("asset_ids"))).ok_or((action, TOKENS))?;
        Ok(Request { subscribes, conditions, tokens })
    }
}

impl User {
    fn error(&self, fault: &Fault, action: &'static str, markets: &[&str]) {
        if !self.sends_errors {
            return;
        }
        self.socket.send(&Frame::record(&StreamErrorEvent::new(fault, action, markets)));
    }

    /// The bearer after this message, whose `auth` is used if it has one. `None`: the socket is still anonymous.
    fn authenticated(&mut self, value: &Value<'_>) -> Result<Option<Bearer>, Close> {
        let auth = value.get("auth");
        if self.following.is_some() {
            return Ok(self.socket.bearer());
        }
        self.wants_orders |= matches!(auth.and_then(|auth| auth.get("order_events")), Some(Value::Bool(true)));
        let Some(Value::Text(key)) = auth.and_then(|auth| auth.get("apiKey")) else { return Ok(self.socket.bearer()) };
        let app = &self.edge.app;
        let now = self.socket.now();
        let shown = admit::by_key(app, key.as_bytes(), now).map_err(Close::refused)?;
        match self.socket.bearer() {
            // The user of the handshake, who may show the other form of a key here.
            Some(known) if known.user == shown.user => {
                Ok(Some(Bearer { alias: shown.alias.or(known.alias.clone()), ..known }))
            }
            Some(_) => Err(Close::INVALID_KEY),
            None => {
                let seat = admit::take_seat(&self.edge, &shown, now).ok_or(Close::CONNECTION_LIMIT)?;
                self.socket.admit(shown.clone(), seat);
                Ok(Some(shown))
            }
        }
    }

    /// The style of the socket's frames from the first subscription on.
    fn style(&self, bearer: &Bearer) -> FrameStyle {
        let by_key = if bearer.alias.is_some() { Dialect::Strict } else { Dialect::Plain };
        let dialect = self.dialect.unwrap_or(by_key);
        // As in strict REST rows: the UUID that was shown, else the account's.
        let owner = match (&bearer.alias, dialect) {
            (_, Dialect::Plain) => "".into(),
            (Some(alias), Dialect::Strict) => (**alias).into(),
            (None, Dialect::Strict) => clob_ids::account(bearer.user).into(),
        };
        let sends_orders = match self.edge.app.front.settings.streams.order_events {
            OrderEvents::Strict => dialect.is_strict() || self.wants_orders,
            OrderEvents::All => true,
            OrderEvents::Off => false,
        };
        FrameStyle { user: bearer.user, dialect, owner, numbered: self.from.is_some(), sends_orders }
    }

    fn switch(&self, request: &Request<'_>) {
        let catalog = &self.edge.app.reads.catalog;
        let action = if request.subscribes { "subscribe" } else { "unsubscribe" };
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        let conditions = request.conditions.iter().map(|id| (*id, catalog.by_condition(id)));
        let tokens = request.tokens.iter().map(|id| (*id, catalog.by_token(id).map(|token| token.market())));
        for (id, market) in conditions.chain(tokens) {
            match market {
                Some(market) => known.push(market),
                None => unknown.push(id),
            }
        }
        // A list with unknown ids only is not an empty list, which means all markets.
        let markets = (!known.is_empty() || !unknown.is_empty()).then_some(&known[..]);
        let tier = self.socket.bearer().map(|bearer| bearer.tier);
        let fit = self.markets_followed.borrow_mut().set(
            request.subscribes,
            markets,
            self.edge.app.front.settings.streams.subscriptions_max(tier),
        );
        if !unknown.is_empty() {
            self.error(&UNKNOWN, action, &unknown);
        }
        if !fit {
            self.error(&TOO_MANY, action, &[]);
        }
    }
}

impl Channel for User {
    const KIND: ChannelKind = ChannelKind::User;

    async fn opened(&mut self) -> Result<(), Close> {
        if self.socket.bearer().is_none() {
            self.socket.expect_auth_within(AUTH_WITHIN_US);
        }
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        let Ok(value) = read::json(text.as_bytes()) else {
            self.error(&NOT_JSON, "", &[]);
            return Ok(Verdict::Invalid);
        };
        if !matches!(value, Value::Object(_)) {
            self.error(&NO_OBJECT, "", &[]);
            return Ok(Verdict::Invalid);
        }
        let Some(bearer) = self.authenticated(&value)? else {
            self.error(&NO_AUTH, "", &[]);
            return Ok(Verdict::Invalid);
        };
        let request = match Request::read(&value) {
            Ok(request) => request,
            Err((action, fault)) => {
                self.error(&fault, action, &[]);
                return Ok(Verdict::Invalid);
            }
        };
        self.switch(&request);
        if self.following.is_none() {
            let style = self.style(&bearer);
            let texts = Texts::new(&self.edge.app, &style);
            let encoder = Frames {
                texts,
                member: self.edge.app.streams.user_frames.join(style),
                markets_followed: self.markets_followed.clone(),
            };
            let (socket, edge) = (self.socket.clone(), self.edge.clone());
            self.following = Some(follow(socket, edge, bearer.user, self.from, encoder).await?);
        }
        Ok(Verdict::Accepted)
    }
}

/// Makes the frames of one socket.
struct Frames {
    texts: Texts,
    member: Member,
    markets_followed: Rc<RefCell<MarketSet>>,
}

impl FrameEncoder for Frames {
    fn encode(&self, fact: &FactView, frames: &mut Vec<Frame>) {
        let market = fact.order.terms.instrument.market();
        if self.texts.has_frames(fact) && self.markets_followed.borrow().contains(market) {
            frames.extend(self.member.frames(fact.seq, || self.texts.frames(fact)).into_iter().flatten());
        } else {
            self.member.pass(fact.seq);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_all_markets_with_exceptions_or_named_ones() {
        let market = MarketId;
        let mut markets_followed = MarketSet::default();
        assert!(!markets_followed.contains(market(1)));
        assert!(markets_followed.set(true, Some(&[market(1), market(2), market(1)]), 3));
        assert!(
            markets_followed.contains(market(1))
                && markets_followed.contains(market(2))
                && !markets_followed.contains(market(3))
        );
        assert!(markets_followed.set(false, Some(&[market(2), market(9)]), 3), "other markets are ignored");
        assert!(!markets_followed.contains(market(2)) && markets_followed.contains(market(1)));
        assert!(!markets_followed.set(true, Some(&[market(4), market(5), market(6)]), 3), "one too many");
        assert!(
            markets_followed.contains(market(4))
                && markets_followed.contains(market(5))
                && !markets_followed.contains(market(6))
        );
        // A market that is subscribed to already takes no room.
        assert!(markets_followed.set(true, Some(&[market(1), market(4)]), 3));
        assert!(markets_followed.set(true, None, 3));
        assert!(markets_followed.contains(market(6)) && markets_followed.contains(market(77)));
        assert!(markets_followed.set(false, Some(&[market(6)]), 3));
        assert!(!markets_followed.contains(market(6)) && markets_followed.contains(market(7)));
        assert!(markets_followed.set(true, Some(&[market(6)]), 3));
        assert!(markets_followed.contains(market(6)));
        assert!(markets_followed.set(true, Some(&[]), 3), "unknown ids only");
        assert!(markets_followed.set(false, None, 3));
        assert!(!markets_followed.contains(market(1)) && !markets_followed.contains(market(77)));
    }
}
