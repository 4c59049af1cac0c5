//! One client under load: one user, one request at a time, no two alike.

use crate::memory::{Fate, Key, Known, Memory, id_of};
use crate::wallets::Wallets;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tests::chance::Chance;
use tests::http::{Client, Request, Response};
use tests::json::{at, int, list, text};
use tests::server::{Server, User};

/// What can be traded: an outcome with both prices.
#[derive(Clone, Debug)]
pub struct Tradable {
    pub token: String,
    pub bid: String,
    pub ask: String,
}

pub struct Trader {
    pub user: User,
    pub client: Client,
    pub memory: Memory,
    pub wallets: Wallets,
    pub chance: Chance,
    tradables: Arc<Vec<Tradable>>,
    next: u64,
    /// Requests answered, over all rounds.
    pub answered: u64,
}

impl Trader {
    pub fn new(user: User, server: &Server, tradables: Arc<Vec<Tradable>>, chance: Chance) -> Trader {
        let client = server.with_key(&user.key);
        let (memory, wallets) = (Memory::default(), Wallets::default());
        Trader { user, client, memory, wallets, chance, tradables, next: 0, answered: 0 }
    }

    /// Trades until the server is gone.
    pub fn trade_until_it_dies(&mut self) {
        while self.one_act().is_ok() {}
        self.memory.note("the connection is gone");
    }

    fn one_act(&mut self) -> io::Result<()> {
        match self.chance.below(100) {
            0..40 => self.place(),
            40..52 => self.sell(),
            52..68 => self.cancel(),
            68..70 => self.cancel_all(),
            70..80 => self.batch(),
            80..86 => self.repeat(),
            86..88 => self.read(),
            88..90 => {
                let mut order = self.body("");
                order.as_object_mut().expect("a body is an object").remove("client_order_id");
                self.answered += 1;
                self.wallets.act(&mut self.client, &mut self.memory, &mut self.chance, order)
            }
            90..93 => self.create_key(),
            93..95 => self.rename_key(),
            95..97 => self.rotate_key(),
            _ => self.revoke_key(),
        }
    }

    fn send(&mut self, request: &Request) -> io::Result<Response> {
        let response = self.client.call(request)?;
        self.answered += 1;
        assert!(
            response.status < 500 || response.status == 503,
            "{} {} gave {} {}\n{}",
            request.method,
            request.path,
            response.status,
            response.lossy(),
            self.memory.last_lines()
        );
        Ok(response)
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("u{}-{}", self.user.id, self.next)
    }

    /// A client's id for an order: some have the maximum length, so that records differ in size.
    fn order_name(&mut self) -> String {
        let name = self.name();
        if self.chance.percent(30) { format!("{name:-<256}") } else { name }
    }

    fn body(&mut self, name: &str) -> Value {
        let at = self.chance.below(self.tradables.len());
        let Tradable { token, bid, ask } = self.tradables[at].clone();
        let quantity = format!("{}.{}", self.chance.between(5, 40), self.chance.between(0, 9_999));
        let (order_type, price, force) = match self.chance.below(8) {
            0 => ("market", "0.99".to_string(), "FOK"),
            1 => ("market", "0.99".to_string(), "FAK"),
            2 => ("limit", ask.clone(), "FOK"),
            3 => ("limit", ask.clone(), "IOC"),
            // At the touch: filled now, or by the next cycles.
            4 => ("limit", ask, "GTC"),
            5 => ("limit", bid, "GTC"),
            _ => ("limit", "0.01".to_string(), "GTC"),
        };
        json!({
            "token_id": token, "side": "BUY", "order_type": order_type, "price": price, "quantity": quantity,
            "time_in_force": force, "client_order_id": name
        })
    }

    fn place(&mut self) -> io::Result<()> {
        let name = self.order_name();
        let body = self.body(&name);
        self.submit(&name, &body)
    }

    /// Sends an order under its name and records the answer.
    pub fn submit(&mut self, name: &str, body: &Value) -> io::Result<()> {
        self.memory.sending(name, body);
        let response = self.send(&Request::post("/v1/orders").json(body))?;
        self.remember_placement(name, &response);
        Ok(())
    }

    pub fn remember_placement(&mut self, name: &str, response: &Response) {
        if response.status == 200 {
            let answer = response.json();
            self.memory.row(name, id_of(&answer), Fate::Placed(answer));
        } else if let Some(id) = response.header("X-Svc-Order-Id") {
            let id = id.parse().expect("an order id is a number");
            self.memory.row(name, id, Fate::Killed(id));
        } else if response.code() != "PERSISTENCE_UNKNOWN" {
            self.memory.note(format!("{name} was refused: {}", response.code()));
            self.memory.order(name).fate = Fate::Refused;
        }
    }

    /// Sells a part of an earlier purchase.
    fn sell(&mut self) -> io::Result<()> {
        let positions = self.send(&Request::get("/v1/account/positions?status=OPEN"))?.expect(200);
        let rows = list(&positions, "");
        if rows.is_empty() {
            return self.place();
        }
        let row = &rows[self.chance.below(rows.len())];
        let (price, force) = if self.chance.percent(50) { ("0.01", "FAK") } else { ("0.99", "GTC") };
        let name = self.order_name();
        let body = json!({
            "token_id": text(row, "/token_id"), "side": "SELL", "order_type": "limit", "price": price,
            "quantity": format!("{}", self.chance.between(5, 15)), "time_in_force": force, "client_order_id": name
        });
        self.submit(&name, &body)
    }

    fn cancel(&mut self) -> io::Result<()> {
        let open = self.memory.maybe_open();
        if open.is_empty() {
            return self.place();
        }
        let id = *self.chance.pick(&open[..open.len().min(20)]);
        let name = self.memory.by_id[&id].clone();
        self.memory.note(format!("cancel {id}"));
        self.memory.order(&name).cancel = Known::Requested;
        let response = self.send(&Request::new("DELETE", &format!("/v1/orders/{id}")))?;
        self.memory.note(format!("cancel {id}: {} {}", response.status, response.code()));
        self.memory.order(&name).cancel = match response.status {
            200 => Known::Done,
            // Filled meanwhile, or the log has no room.
            400 | 409 | 503 => Known::Not,
            _ => panic!("cancel {id}: {} {}\n{}", response.status, response.lossy(), self.memory.last_lines()),
        };
        Ok(())
    }

    fn cancel_all(&mut self) -> io::Result<()> {
        let open = self.memory.maybe_open();
        self.memory.note("cancel all");
        for id in &open {
            let name = self.memory.by_id[id].clone();
            self.memory.order(&name).swept = true;
        }
        self.memory.unknown_sweep = Some(open);
        let response = self.send(&Request::post("/v1/cancel-all?confirm=true"))?;
        self.memory.unknown_sweep = None;
        if response.status != 200 {
            return Ok(());
        }
        for id in list(&response.json(), "/canceled") {
            let id: i64 = id.as_str().and_then(|id| id.parse().ok()).expect("a decimal id");
            let name = self
                .memory
                .by_id
                .get(&id)
                .unwrap_or_else(|| panic!("cancel-all cancelled {id}, which this client never had"))
                .clone();
            self.memory.order(&name).cancel = Known::Done;
        }
        self.memory.note("cancel all is done");
        Ok(())
    }

    /// A few resting orders; none is refused except for lack of money.
    fn batch(&mut self) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut names = Vec::new();
        for _ in 0..self.chance.between(2, 5) {
            let name = self.order_name();
            let at = self.chance.below(self.tradables.len());
            let body = json!({
                "token_id": self.tradables[at].token, "side": "BUY", "order_type": "limit", "price": "0.01",
                "quantity": format!("{}", self.chance.between(5, 9)), "client_order_id": name
            });
            self.memory.sending(&name, &body);
            entries.push(body);
            names.push(name);
        }
        self.memory.unknown_batch = names.clone();
        let response = self.send(&Request::post("/v1/orders/batch").json(&json!({"orders": entries})))?;
        self.memory.unknown_batch.clear();
        if response.status != 200 {
            names.iter().for_each(|name| self.memory.order(name).fate = Fate::Refused);
            return Ok(());
        }
        let mut ended = false;
        for (name, result) in names.iter().zip(list(&response.json(), "/results")) {
            // This gives a gap in a batch its meaning: entries are refused for no other reason, and an error of the
            // server ends the batch.
            let why = at(result, "/error").as_str();
            let sound = match why {
                Some("SERVER_BUSY") => true,
                Some("INSUFFICIENT_BALANCE") | None => !ended,
                Some(_) => false,
            };
            assert!(sound, "{result}\n{}", self.memory.last_lines());
            ended |= why == Some("SERVER_BUSY");
            match int(result, "/order_id") {
                0 => self.memory.order(name).fate = Fate::Refused,
                id => self.memory.row(name, id, Fate::Placed(result.clone())),
            }
        }
        Ok(())
    }

    /// The same request again: the same order, no new one.
    fn repeat(&mut self) -> io::Result<()> {
        let known: Vec<i64> = self.memory.by_id.keys().rev().take(30).copied().collect();
        if known.is_empty() {
            return self.place();
        }
        let id = *self.chance.pick(&known);
        let name = self.memory.by_id[&id].clone();
        let body = self.memory.order(&name).body.clone();
        // Entries of a batch have no time in force; a replay repeats the first request.
        let in_batch = body.get("time_in_force").is_none();
        let response = if in_batch {
            self.send(&Request::post("/v1/orders/batch").json(&json!([body])))?
        } else {
            self.send(&Request::post("/v1/orders").json(&body))?
        };
        if response.status == 503 || response.status == 409 {
            return Ok(());
        }
        let again = match (response.status, in_batch) {
            (200, true) => int(&response.json(), "/results/0/order_id"),
            (200, false) => {
                assert_eq!(response.json()["is_replay"], json!(true), "{name} was done twice: {}", response.lossy());
                id_of(&response.json())
            }
            _ => response.header("X-Svc-Order-Id").and_then(|id| id.parse().ok()).unwrap_or_default(),
        };
        assert_eq!(again, id, "{name} came twice: {}\n{}", response.lossy(), self.memory.last_lines());
        Ok(())
    }

    fn read(&mut self) -> io::Result<()> {
        let account = self.send(&Request::get("/v1/account/balance"))?.expect(200);
        assert!(!text(&account, "/balance").starts_with('-'), "available cash is never below zero: {account}");
        Ok(())
    }

    fn create_key(&mut self) -> io::Result<()> {
        if self.memory.live_keys().len() >= 3 {
            return self.revoke_key();
        }
        let name = self.name();
        self.memory.note(format!("create key {name}"));
        let key =
            Key { name: name.clone(), maybe_name: None, id: None, raw: None, rotated: Known::Not, revoked: Known::Not };
        self.memory.keys.push(key);
        let response = self.send(&Request::post("/v1/keys").json(&json!({"name": name})))?;
        if response.status == 201 {
            let made = response.json();
            let key = self.memory.keys.last_mut().expect("just pushed");
            key.id = Some(int(&made, "/id"));
            key.raw = Some(text(&made, "/raw_key").to_string());
            self.memory.note(format!("key {name} is {}", int(&made, "/id")));
        } else {
            self.memory.note(format!("key {name} was refused: {}", response.code()));
            self.memory.keys.pop();
        }
        Ok(())
    }

    /// One of the live keys, and its id.
    fn some_key(&mut self) -> Option<(usize, i64)> {
        let live = self.memory.live_keys();
        if live.is_empty() {
            return None;
        }
        let at = *self.chance.pick(&live);
        Some((at, self.memory.keys[at].id.expect("live keys have ids")))
    }

    fn rename_key(&mut self) -> io::Result<()> {
        let Some((at, id)) = self.some_key() else { return self.create_key() };
        let name = self.name();
        self.memory.note(format!("rename key {id} to {name}"));
        self.memory.keys[at].maybe_name = Some(name.clone());
        let response = self.send(&Request::new("PATCH", &format!("/v1/keys/{id}")).json(&json!({"name": name})))?;
        let key = &mut self.memory.keys[at];
        key.maybe_name = None;
        if response.status == 200 {
            key.name = name;
        }
        Ok(())
    }

    fn rotate_key(&mut self) -> io::Result<()> {
        let Some((at, id)) = self.some_key() else { return self.create_key() };
        if self.memory.keys[at].rotated != Known::Not {
            return Ok(());
        }
        self.memory.note(format!("rotate key {id}"));
        self.memory.keys[at].rotated = Known::Requested;
        let response = self.send(&Request::post(&format!("/v1/keys/{id}/rotate")))?;
        if response.status != 201 {
            self.memory.keys[at].rotated = Known::Not;
            return Ok(());
        }
        let made = response.json();
        self.memory.keys[at].rotated = Known::Done;
        let name = self.memory.keys[at].name.clone();
        self.memory.note(format!("key {id} became {}", int(&made, "/id")));
        self.memory.keys.push(Key {
            name,
            maybe_name: None,
            id: Some(int(&made, "/id")),
            raw: Some(text(&made, "/raw_key").to_string()),
            rotated: Known::Not,
            revoked: Known::Not,
        });
        Ok(())
    }

    fn revoke_key(&mut self) -> io::Result<()> {
        let Some((at, id)) = self.some_key() else { return self.place() };
        self.memory.note(format!("revoke key {id}"));
        self.memory.keys[at].revoked = Known::Requested;
        let response = self.send(&Request::new("DELETE", &format!("/v1/keys/{id}")))?;
        assert!([200, 409, 503].contains(&response.status), "revoke key {id}: {}", response.lossy());
        self.memory.keys[at].revoked = if response.status == 200 { Known::Done } else { Known::Not };
        self.memory.note(format!("revoke key {id}: {}", response.status));
        Ok(())
    }
}
