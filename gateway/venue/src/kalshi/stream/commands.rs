//! The commands of a socket and their responses: one subscription per channel, to which markets are added
//! (gateway/docs/live-venues.md §4.2).

use ahash::AHashMap;
use serde_json::json;

/// Most markets in one command: a frame of a few kilobytes.
const TICKERS_MAX: usize = 200;

/// Most commands that are remembered without a response.
const SENT_MAX: usize = 1_024;

/// A channel of the venue.
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

/// The action of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Subscribe(Channel),
    Add(Channel),
    Delete(Channel),
    Snapshots,
}

/// A command without a response yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Command {
    pub action: Action,
    pub tickers: Vec<String>,
}

/// The commands and subscriptions of one connection.
#[derive(Debug, Default)]
pub struct Commands {
    last_id: u64,
    sent: AHashMap<u64, Command>,
    subscriptions: AHashMap<Channel, Subscription>,
}

#[derive(Debug, Default)]
struct Subscription {
    /// Its number, once the venue has sent it.
    sid: Option<u64>,
    requested: bool,
    given_up: bool,
    /// Markets to add when the number is known.
    waiting: Vec<String>,
}

impl Commands {
    /// Subscribes to these markets, in several commands if needed; to all markets if the list is empty.
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
        if !subscription.requested {
            subscription.requested = true;
            let first = subscription.waiting.len().min(TICKERS_MAX);
            let tickers = subscription.waiting.drain(..first).collect();
            self.send(Command { action: Action::Subscribe(channel), tickers }, out);
        }
    }

    /// Ends the subscriptions of a market.
    pub fn delete(&mut self, ticker: String, out: &mut Vec<String>) {
        for channel in [Channel::Books, Channel::Trades] {
            let Some(subscription) = self.subscriptions.get_mut(&channel) else { continue };
            subscription.waiting.retain(|waiting| *waiting != ticker);
            if subscription.sid.is_some() {
                self.send_all(Action::Delete(channel), std::slice::from_ref(&ticker), out);
            }
        }
    }

    /// Requests the full books of subscribed markets.
    pub fn snapshots(&mut self, tickers: Vec<String>, out: &mut Vec<String>) {
        self.send_all(Action::Snapshots, &tickers, out);
    }

    /// Handles the confirmation of a subscription, and sends the waiting markets.
    pub fn subscribed(&mut self, id: u64, sid: Option<u64>, out: &mut Vec<String>) {
        let (Some(Command { action: Action::Subscribe(channel), .. }), Some(sid)) = (self.sent.remove(&id), sid) else {
            return;
        };
        let subscription = self.subscriptions.entry(channel).or_default();
        subscription.sid = Some(sid);
        let waiting = std::mem::take(&mut subscription.waiting);
        self.send_all(Action::Add(channel), &waiting, out);
    }

    /// Forgets a command that was confirmed.
    pub fn done(&mut self, id: Option<u64>) {
        drop(self.take(id));
    }

    /// Removes and returns the command with this id.
    pub fn take(&mut self, id: Option<u64>) -> Option<Command> {
        self.sent.remove(&id?)
    }

    /// Stops subscribing to a channel.
    pub fn give_up(&mut self, channel: Channel) {
        let subscription = self.subscriptions.entry(channel).or_default();
        (subscription.given_up, subscription.waiting) = (true, Vec::new());
    }

    /// Handles a refused command: any of its markets may be the cause, so it is sent again in halves. Returns the
    /// markets whose books cannot be subscribed.
    pub fn retry_in_halves(&mut self, command: Command, out: &mut Vec<String>) -> Vec<String> {
        let Command { action, mut tickers } = command;
        if let Action::Subscribe(channel) = action {
            let subscription = self.subscriptions.entry(channel).or_default();
            subscription.requested = false;
            if tickers.len() <= 1 {
                // The other markets are subscribed without it.
                let waiting = std::mem::take(&mut subscription.waiting);
                self.add(channel, waiting, out);
                return if channel == Channel::Books { tickers } else { Vec::new() };
            }
            let mut rest = tickers.split_off(tickers.len() / 2);
            rest.append(&mut subscription.waiting);
            subscription.waiting = rest;
            subscription.requested = true;
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
        let command_body = match command.action {
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
        // Without a subscription there is nothing to update.
        let Some((cmd, params)) = command_body else { return };
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
