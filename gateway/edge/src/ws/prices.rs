//! The price channel, `/v1/ws/prices` (gateway/docs/streams.md §2): the newest price of each market subscribed to.

use super::admit::{Anonymous, ChannelKind, admit};
use super::close::Close;
use super::frame::Frame;
use super::hub::{PRICE_EVERY, Watcher};
use super::market::ids;
use super::outbox::Tag;
use super::price_text::Price;
use super::session::{Channel, Socket, Verdict, upgrade};
use super::shape::prices::{Connected, ResolvedFrame, Subscribed, Unsubscribed};
use super::shape::{Fault, StreamError};
use crate::app::Edge;
use crate::http::call::Call;
use crate::http::reply::Outcome;
use crate::http::route::{RateClass, Route};
use ahash::AHashSet;
use engine::id::MarketId;
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use serde::Serialize;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use tokio::time::Instant;
use wire::read;
use wire::value::Value;

/// Prices that are made before other tasks of the thread run.
const PRICES_PER_TURN: usize = 16;

pub const ROUTES: &[Route] = &[Route::get("/v1/ws/prices", "ws_prices")
    .about("Prices of markets, conflated.")
    .rate(RateClass::Exempt)
    .run(|call| Box::pin(open(call)))];

async fn open(call: Call) -> Outcome {
    let admitted = admit(&call, Anonymous::Refused)?;
    upgrade(&call, admitted, Prices::new)
}

struct Prices {
    edge: Rc<Edge>,
    sender: Rc<PriceSender>,
    /// In the order of subscriptions.
    markets: RefCell<Vec<MarketId>>,
    subscriptions_max: usize,
}

/// Sends prices to the socket.
struct PriceSender {
    socket: Rc<Socket>,
    seq: Cell<u64>,
    resolved: RefCell<Vec<MarketId>>,
    /// Recent subscriptions: the market, until when its first price is not replaced, and whether a change was skipped
    /// since.
    recent: RefCell<Vec<(MarketId, Instant, bool)>>,
}

const NOT_JSON: Fault = Fault { code: "INVALID_BODY", message: "the message is not JSON" };
const NO_ACTION: Fault = Fault::request("action must be subscribe, unsubscribe or ping");
const NO_LIST: Fault = Fault::request("markets must be an array of condition ids");
const UNKNOWN: Fault = Fault { code: "MARKET_NOT_FOUND", message: "no market has these condition ids" };
const TOO_MANY: Fault = Fault { code: "SUBSCRIPTION_LIMIT", message: "too many subscriptions on one socket" };

impl Prices {
    fn new(socket: Rc<Socket>, edge: Rc<Edge>) -> Prices {
        let tier = socket.bearer().map(|bearer| bearer.tier);
        let subscriptions_max = edge.app.front.settings.streams.subscriptions_max(tier);
        let sender = Rc::new(PriceSender {
            socket,
            seq: Cell::new(0),
            resolved: RefCell::default(),
            recent: RefCell::default(),
        });
        Prices { edge, sender, markets: RefCell::default(), subscriptions_max }
    }

    fn send(&self, record: &impl Serialize) {
        self.sender.socket.send(&Frame::record(record));
    }

    fn error(&self, fault: &Fault, action: &str, ids: &[&str]) {
        self.send(&StreamError::new(fault, action, ids));
    }

    fn count(&self) -> usize {
        self.markets.borrow().len()
    }

    async fn subscribe(&self, ids_given: &[&str]) {
        let app = &self.edge.app;
        let (mut accepted, mut unknown, mut new, mut over) = (Vec::new(), Vec::new(), Vec::new(), false);
        for id in ids_given {
            let Some(market) = app.reads.catalog.by_condition(id) else {
                unknown.push(*id);
                continue;
            };
            let known = self.markets.borrow().contains(&market);
            if !known && self.count() >= self.subscriptions_max {
                over = true;
                continue;
            }
            accepted.push(*id);
            if !known {
                self.markets.borrow_mut().push(market);
                new.push(market);
                // Holds back the prices of the hub until the first one is sent.
                self.sender.hold(market);
                self.edge.hub.watch(market, self.sender.socket.id(), self.sender.clone());
            }
        }
        if !unknown.is_empty() {
            self.error(&UNKNOWN, "subscribe", &unknown);
        }
        if over {
            self.error(&TOO_MANY, "subscribe", &[]);
        }
        self.send(&Subscribed::new(&accepted, self.count()));
        for (count, market) in new.into_iter().enumerate() {
            let Some(cell) = app.reads.catalog.market(market) else { continue };
            // If the market was resolved while other tasks ran, no price follows.
            if !self.sender.resolved.borrow().contains(&market) {
                self.sender.begin(cell, &Price::of(cell, &app.reads));
            }
            if let Some(resolution) = cell.resolution() {
                self.sender.end(cell, resolution);
            }
            if (count + 1).is_multiple_of(PRICES_PER_TURN) {
                tokio::task::yield_now().await;
            }
        }
    }

    fn unsubscribe(&self, ids_given: &[&str]) {
        let mut accepted = Vec::new();
        for id in ids_given {
            let Some(market) = self.edge.app.reads.catalog.by_condition(id) else { continue };
            let mut markets = self.markets.borrow_mut();
            if let Some(place) = markets.iter().position(|known| *known == market) {
                markets.remove(place);
                accepted.push(*id);
                self.edge.hub.unwatch(market, self.sender.socket.id());
                self.sender.resolved.borrow_mut().retain(|resolved| *resolved != market);
                self.sender.recent.borrow_mut().retain(|(recent, ..)| *recent != market);
            }
        }
        self.send(&Unsubscribed::new(&accepted, self.count()));
    }
}

impl Channel for Prices {
    const KIND: ChannelKind = ChannelKind::Prices;

    async fn opened(&mut self) -> Result<(), Close> {
        let socket = &self.sender.socket;
        self.send(&Connected::new(socket.id(), socket.now(), self.subscriptions_max));
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        let Ok(value) = read::json(text.as_bytes()) else {
            self.error(&NOT_JSON, "", &[]);
            return Ok(Verdict::Invalid);
        };
        let action = match value.get("action") {
            Some(Value::Text(action)) => action.as_ref(),
            _ => "",
        };
        if !matches!(action, "subscribe" | "unsubscribe") {
            self.error(&NO_ACTION, action, &[]);
            return Ok(Verdict::Invalid);
        }
        let (Some(mut ids_given), Some(more)) = (ids(value.get("markets")), ids(value.get("conditions"))) else {
            self.error(&NO_LIST, action, &[]);
            return Ok(Verdict::Invalid);
        };
        ids_given.extend(more);
        let mut seen = AHashSet::with_capacity(ids_given.len());
        ids_given.retain(|id| seen.insert(*id));
        if action == "subscribe" {
            self.subscribe(&ids_given).await
        } else {
            self.unsubscribe(&ids_given)
        }
        Ok(Verdict::Accepted)
    }
}

impl Drop for Prices {
    fn drop(&mut self) {
        for market in self.markets.get_mut().drain(..) {
            self.edge.hub.unwatch(market, self.sender.socket.id());
        }
    }
}

impl PriceSender {
    fn send(&self, cell: &MarketCell, price: &Price) {
        self.seq.set(self.seq.get() + 1);
        self.socket.replace(Tag(u64::from(cell.id.0)), &Frame::json(|out| price.frame(out, self.seq.get())));
    }

    /// Sends the first price of a subscription.
    fn begin(&self, cell: &MarketCell, price: &Price) {
        self.send(cell, price);
        self.hold(cell.id);
    }

    /// Sends no other price of this market for the minimum interval.
    fn hold(&self, market: MarketId) {
        let mut recent = self.recent.borrow_mut();
        let missed = recent.iter().any(|(known, _, missed)| *known == market && *missed);
        recent.retain(|(known, ..)| *known != market);
        recent.push((market, Instant::now() + PRICE_EVERY, missed));
    }

    /// Sends the resolution of a market, once.
    fn end(&self, cell: &MarketCell, resolution: Resolution) {
        let mut resolved = self.resolved.borrow_mut();
        if !resolved.contains(&cell.id) {
            resolved.push(cell.id);
            let now = self.socket.now();
            self.socket.send(&Frame::record(&ResolvedFrame::new(cell, resolution, now)));
        }
    }
}

impl Watcher for PriceSender {
    fn price(&self, cell: &MarketCell, price: &Rc<Price>, changed: bool) -> bool {
        let (mut recent, mut missed) = (self.recent.borrow_mut(), false);
        if let Some(place) = recent.iter().position(|(market, ..)| *market == cell.id) {
            let (_, until, has_missed) = &mut recent[place];
            if Instant::now() < *until {
                *has_missed |= changed;
                return !*has_missed;
            }
            missed = *has_missed;
            recent.swap_remove(place);
        }
        if (changed || missed) && !self.resolved.borrow().contains(&cell.id) {
            self.send(cell, price);
        }
        true
    }

    fn resolved(&self, cell: &MarketCell, resolution: Resolution, _: &Rc<Price>) {
        self.end(cell, resolution);
    }
}
