//! The commands of a socket and what became of them: one subscription for each channel, to which markets are added
//! (upstream.md §4.2).

use ahash::AHashMap;
use serde_json::json;

/// Markets that one command names at most: a frame of some kilobytes.
const TICKERS_MAX: usize = 200;

/// Commands that are remembered without an answer.
const SENT_MAX: usize = 1_024;

/// What can be subscribed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Channel {
    Books,
    Trades,
    /// Of all markets.
    Lifecycle,
}

impl Channel {
    fn name(self) -> &'static str {
        match self {
            Channel::Books => "orderbook_delta",
            Channel::Trades => "trade",
            Channel::Lifecycle => "market_lifecycle_v2",
        }
    }
}

/// What a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Subscribe(Channel),
    Add(Channel),
    Delete(Channel),
    Snapshots,
}

/// A command that was not answered yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub action: Action,
    pub tickers: Vec<String>,
}

/// All of one connection.
#[derive(Debug, Default)]
pub struct Commands {
    last_id: u64,
    sent: AHashMap<u64, Command>,
    subscriptions: AHashMap<Channel, Subscription>,
}

#[derive(Debug, Default)]
struct Subscription {
    /// Its number, once the venue named it.
    sid: Option<u64>,
    asked: bool,
    given_up: bool,
    /// Markets that wait for the number.
    waiting: Vec<String>,
}

impl Commands {
    /// Subscribes to markets, in as many commands as it takes; without any, to all there are.
    pub fn add(&mut self, channel: Channel, tickers: Vec<String>, out: &mut Vec<String>) {
        if tickers.is_empty() && channel != Channel::Lifecycle {
            return;
        }
        let subscription = self.subscriptions.entry(channel).or_default();
        if subscription.given_up {
            return;
        }
        if subscription.sid.is_some() {
            return self.send_all(Action::Add(channel), &tickers, out);
        }
        subscription.waiting.extend(tickers);
        if !subscription.asked {
            subscription.asked = true;
            let first = subscription.waiting.len().min(TICKERS_MAX);
            let tickers = subscription.waiting.drain(..first).collect();
            self.send(Command { action: Action::Subscribe(channel), tickers }, out);
        }
    }

    /// No more of this market.
    pub fn delete(&mut self, ticker: String, out: &mut Vec<String>) {
        for channel in [Channel::Books, Channel::Trades] {
            let Some(subscription) = self.subscriptions.get_mut(&channel) else { continue };
            subscription.waiting.retain(|waiting| *waiting != ticker);
            if subscription.sid.is_some() {
                self.send_all(Action::Delete(channel), std::slice::from_ref(&ticker), out);
            }
        }
    }

    /// Whole books of subscribed markets.
    pub fn snapshots(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        self.send_all(Action::Snapshots, &tickers, out);
    }

    /// The venue took a subscription.
    pub fn subscribed(&mut self, id: u64, sid: Option<u64>, out: &mut Vec<String>) {
        let (Some(Command { action: Action::Subscribe(channel), .. }), Some(sid)) = (self.sent.remove(&id), sid) else {
            return;
        };
        let subscription = self.subscriptions.entry(channel).or_default();
        subscription.sid = Some(sid);
        let waiting = std::mem::take(&mut subscription.waiting);
        self.send_all(Action::Add(channel), &waiting, out);
    }

    /// A command was carried out.
    pub fn done(&mut self, id: Option<u64>) {
        drop(self.take(id));
    }

    /// The command of that number, which is answered.
    pub fn take(&mut self, id: Option<u64>) -> Option<Command> {
        self.sent.remove(&id?)
    }

    /// This channel is not asked for again.
    pub fn give_up(&mut self, channel: Channel) {
        let subscription = self.subscriptions.entry(channel).or_default();
        (subscription.given_up, subscription.waiting) = (true, Vec::new());
    }

    /// A command was refused: some of its markets may be at fault, so it is given again in halves. Answers the markets
    /// whose books cannot be subscribed.
    pub fn halved(&mut self, command: Command, out: &mut Vec<String>) -> Vec<String> {
        let Command { action, mut tickers } = command;
        if let Action::Subscribe(channel) = action {
            let subscription = self.subscriptions.entry(channel).or_default();
            subscription.asked = false;
            if tickers.len() <= 1 {
                // The others go without it.
                let waiting = std::mem::take(&mut subscription.waiting);
                self.add(channel, waiting, out);
                return if channel == Channel::Books { tickers } else { Vec::new() };
            }
            let mut rest = tickers.split_off(tickers.len() / 2);
            rest.append(&mut subscription.waiting);
            subscription.waiting = rest;
            subscription.asked = true;
            self.send(Command { action, tickers }, out);
            return Vec::new();
        }
        if tickers.len() > 1 {
            let rest = tickers.split_off(tickers.len() / 2);
            for tickers in [tickers, rest] {
                self.send(Command { action, tickers }, out);
            }
            return Vec::new();
        }
        if action == Action::Add(Channel::Books) { tickers } else { Vec::new() }
    }

    fn send_all(&mut self, action: Action, tickers: &[String], out: &mut Vec<String>) {
        for some in tickers.chunks(TICKERS_MAX) {
            self.send(Command { action, tickers: some.to_vec() }, out);
        }
    }

    fn send(&mut self, command: Command, out: &mut Vec<String>) {
        let sid = |channel| self.subscriptions.get(&channel).and_then(|subscription| subscription.sid);
        let tickers = &command.tickers;
        let update = |sid: Option<u64>, action: &str| {
            let params = json!({ "sids": [sid?], "action": action, "market_tickers": tickers });
            Some(("update_subscription", params))
        };
        let said = match command.action {
            Action::Subscribe(channel) if tickers.is_empty() => {
                Some(("subscribe", json!({ "channels": [channel.name()] })))
            }
            Action::Subscribe(channel) => {
                Some(("subscribe", json!({ "channels": [channel.name()], "market_tickers": tickers })))
            }
            Action::Add(channel) => update(sid(channel), "add_markets"),
            Action::Delete(channel) => update(sid(channel), "delete_markets"),
            Action::Snapshots => update(sid(Channel::Books), "get_snapshot"),
        };
        // Without a subscription there is nothing to change about it.
        let Some((cmd, params)) = said else { return };
        self.last_id += 1;
        out.push(json!({ "id": self.last_id, "cmd": cmd, "params": params }).to_string());
        self.sent.insert(self.last_id, command);
        if self.sent.len() > SENT_MAX {
            // A venue that does not answer each command.
            let kept = self.last_id - SENT_MAX as u64 / 2;
            self.sent.retain(|id, _| *id > kept);
        }
    }
}
