//! The record of one client: everything it sent, and every answer.
//!
//! Written before a request is sent and again when its answer came, so that each request is always answered, refused,
//! or unknown. Only unknown requests may have happened or not.

use serde_json::Value;
use std::collections::BTreeMap;

/// The record of one client, which is one user.
#[derive(Default)]
pub struct Memory {
    /// Orders by the client's id.
    pub orders: BTreeMap<String, Sent>,
    /// The client's id by the server's.
    pub by_id: BTreeMap<i64, String>,
    pub keys: Vec<Key>,
    /// A cancel-all without an answer: the orders that were open when it was sent.
    pub unknown_sweep: Option<Vec<i64>>,
    /// A batch without an answer, in its order.
    pub unknown_batch: Vec<String>,
    /// A diary of the requests, for failures.
    pub diary: Vec<String>,
}

/// An order that was sent.
pub struct Sent {
    pub body: Value,
    pub fate: Fate,
    pub cancel: Known,
    /// A cancel-all was sent after it.
    pub swept: bool,
}

/// The outcome of a placement, as far as the client knows it.
pub enum Fate {
    Unknown,
    /// Accepted, with the answer.
    Placed(Value),
    /// Refused with a row (`X-Svc-Order-Id`).
    Killed(i64),
    /// Refused without a row: it must never have an effect.
    Refused,
}

/// The outcome of a cancel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Known {
    Not,
    Requested,
    Done,
}

/// A key besides the user's first one.
#[derive(Clone, Debug)]
pub struct Key {
    /// Unique, so that a creation without an answer can be found again.
    pub name: String,
    /// The name it may have instead, while a renaming is unanswered.
    pub maybe_name: Option<String>,
    /// `None` while its creation is unanswered.
    pub id: Option<i64>,
    /// The secret, once the answer came.
    pub raw: Option<String>,
    pub rotated: Known,
    pub revoked: Known,
}

impl Memory {
    pub fn note(&mut self, what: impl Into<String>) {
        self.diary.push(what.into());
    }

    /// The last lines of the diary.
    pub fn last_lines(&self) -> String {
        let from = self.diary.len().saturating_sub(40);
        self.diary[from..].join("\n")
    }

    /// Records an order before it is sent.
    pub fn sending(&mut self, name: &str, body: &Value) {
        self.note(format!("send {name}: {body}"));
        let sent = Sent { body: body.clone(), fate: Fate::Unknown, cancel: Known::Not, swept: false };
        self.orders.insert(name.to_string(), sent);
    }

    /// Records that it was accepted or killed under this id.
    pub fn row(&mut self, name: &str, id: i64, fate: Fate) {
        self.note(format!("{name} is order {id}"));
        self.by_id.insert(id, name.to_string());
        self.order(name).fate = fate;
    }

    pub fn order(&mut self, name: &str) -> &mut Sent {
        self.orders.get_mut(name).expect("an order of ours")
    }

    /// Ids of orders that may still be open, newest first.
    pub fn maybe_open(&self) -> Vec<i64> {
        let open = |(id, name): (&i64, &String)| {
            let sent = &self.orders[name];
            let placed = matches!(&sent.fate, Fate::Placed(answer) if answer["status"] == "PENDING");
            (placed && sent.cancel != Known::Done).then_some(*id)
        };
        self.by_id.iter().rev().filter_map(open).collect()
    }

    /// Keys that were acknowledged and not revoked.
    pub fn live_keys(&self) -> Vec<usize> {
        let live = |key: &Key| key.id.is_some() && key.raw.is_some() && key.revoked == Known::Not;
        (0..self.keys.len()).filter(|at| live(&self.keys[*at])).collect()
    }
}

/// The server's id in an answer or in the header of a killed order.
pub fn id_of(answer: &Value) -> i64 {
    answer["order_id"].as_i64().unwrap_or_else(|| panic!("no order id in {answer}"))
}
