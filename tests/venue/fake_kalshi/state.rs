//! The state of the stand-in: its markets and their books, and the sockets with their subscriptions.

use super::words::levels;
use super::{Fault, Mute};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;
use tokio::sync::mpsc;
use tokio_tungstenite::tungstenite::Message;

#[derive(Default)]
pub(super) struct Venue(pub(super) Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    pub(super) events: BTreeMap<String, Event>,
    pub(super) markets: BTreeMap<String, Market>,
    pub(super) series: BTreeMap<String, Value>,
    pub(super) sockets: BTreeMap<u64, Socket>,
    pub(super) sockets_ever: u64,
    pub(super) page_size: usize,
    pub(super) faults: Vec<(String, usize, Fault)>,
    /// Path and time of each REST call.
    pub(super) calls: Vec<(String, Instant)>,
    pub(super) handshakes_refused: usize,
    pub(super) commands: Vec<Value>,
    pub(super) refuses: bool,
    pub(super) mute: Mute,
    pub(super) unknown_channels: BTreeSet<String>,
}

pub(super) struct Event {
    pub(super) row: Value,
    /// Not in the list of open events.
    pub(super) hidden: bool,
    pub(super) markets: Vec<String>,
}

pub(super) struct Market {
    pub(super) row: Value,
    pub(super) bids: [BTreeMap<i64, i64>; 2],
}

pub(super) struct Socket {
    pub(super) out: mpsc::UnboundedSender<Message>,
    pub(super) next_sid: u64,
    pub(super) subscriptions: BTreeMap<String, Subscription>,
}

pub(super) struct Subscription {
    pub(super) sid: u64,
    pub(super) seq: u64,
    pub(super) tickers: BTreeSet<String>,
}

impl Venue {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    pub(super) fn apply(&mut self, ticker: &str, side: usize, price: i64, change: i64) {
        let bids = &mut self.markets.get_mut(ticker).expect("a market").bids[side];
        let size = bids.get(&price).copied().unwrap_or_default() + change;
        assert!(size >= 0, "a book of the venue is never below zero: {ticker} {price}");
        if size == 0 {
            bids.remove(&price)
        } else {
            bids.insert(price, size)
        };
    }

    /// Sends to every subscriber of this market on this channel, with the next number: this many times.
    pub(super) fn tell(&mut self, channel: &str, ticker: &str, message: &Value, times: usize) {
        let mute = self.mute != Mute::No;
        for socket in self.sockets.values_mut() {
            let Some(subscription) = socket.subscriptions.get_mut(channel) else { continue };
            if channel != "market_lifecycle_v2" && !subscription.tickers.contains(ticker) {
                continue;
            }
            subscription.seq += 1;
            let mut message = message.clone();
            message["sid"] = json!(subscription.sid);
            message["seq"] = json!(subscription.seq);
            for _ in 0..if mute { 0 } else { times } {
                let _ = socket.out.send(Message::text(message.to_string()));
            }
        }
    }

    pub(super) fn snapshot(&self, ticker: &str) -> Value {
        let mut msg = json!({"market_ticker": ticker, "market_id": "00000000-0000-0000-0000-000000000000"});
        for (key, bids) in ["yes_dollars_fp", "no_dollars_fp"].iter().zip(&self.markets[ticker].bids) {
            // The key of an empty side is left out.
            if !bids.is_empty() {
                msg[*key] = levels(bids);
            }
        }
        json!({"type": "orderbook_snapshot", "msg": msg})
    }

    /// Executes a command.
    pub(super) fn command(&mut self, socket: u64, command: &Value) {
        self.commands.push(command.clone());
        if self.mute != Mute::No {
            return;
        }
        let (id, params) = (&command["id"], &command["params"]);
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().into_iter().flatten().filter_map(|text| Some(text.as_str()?.to_owned())).collect()
        };
        let tickers = texts(&params["market_tickers"]);
        let error = |code: u64, why: &str| json!({"type": "error", "id": id, "msg": {"code": code, "msg": why}});
        let unknown = tickers.iter().any(|ticker| !self.markets.contains_key(ticker));
        let Some(connection) = self.sockets.get_mut(&socket) else { return };
        let say = |message: Value| drop(connection.out.send(Message::text(message.to_string())));
        match command["cmd"].as_str() {
            _ if unknown => say(error(16, "market not found")),
            Some("subscribe") => {
                for channel in texts(&params["channels"]) {
                    if self.unknown_channels.contains(&channel) {
                        say(error(8, "unknown channel name"));
                        continue;
                    }
                    if connection.subscriptions.contains_key(&channel) {
                        say(error(6, "already subscribed"));
                        continue;
                    }
                    connection.next_sid += 1;
                    let sid = connection.next_sid;
                    say(json!({"type": "subscribed", "id": id, "msg": {"channel": channel, "sid": sid}}));
                    let tickers = tickers.iter().cloned().collect();
                    connection.subscriptions.insert(channel, Subscription { sid, seq: 0, tickers });
                }
                if texts(&params["channels"]).iter().any(|channel| channel == "orderbook_delta") {
                    self.show(socket, &tickers);
                }
            }
            Some("update_subscription") => {
                let sid = params["sids"].as_array().filter(|sids| sids.len() == 1).and_then(|sids| sids[0].as_u64());
                let found = connection.subscriptions.iter_mut().find(|(_, subscription)| Some(subscription.sid) == sid);
                let Some((channel, subscription)) = found else { return say(error(7, "unknown subscription")) };
                let is_books = channel == "orderbook_delta";
                let shown = match params["action"].as_str() {
                    Some("add_markets") => {
                        subscription.tickers.extend(tickers.iter().cloned());
                        is_books
                    }
                    Some("delete_markets") => {
                        subscription.tickers.retain(|ticker| !tickers.contains(ticker));
                        false
                    }
                    Some("get_snapshot") if is_books => true,
                    _ => return say(error(13, "unsupported action")),
                };
                let (sid, seq) = (subscription.sid, subscription.seq);
                say(json!({"type": "ok", "id": id, "sid": sid, "seq": seq, "msg": {"market_tickers": tickers}}));
                if shown {
                    self.show(socket, &tickers);
                }
            }
            _ => say(error(5, "unknown command")),
        }
    }

    /// Whole books, on one socket.
    pub(super) fn show(&mut self, socket: u64, tickers: &[String]) {
        for ticker in tickers {
            let mut message = self.snapshot(ticker);
            let Some(socket) = self.sockets.get_mut(&socket) else { return };
            let Some(books) = socket.subscriptions.get_mut("orderbook_delta") else { return };
            books.seq += 1;
            (message["sid"], message["seq"]) = (json!(books.sid), json!(books.seq));
            let _ = socket.out.send(Message::text(message.to_string()));
        }
    }
}
