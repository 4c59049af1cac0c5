//! A server on a hand-made market with users: the base of most tests of the contract.

use crate::eventually;
use crate::history::History;
use crate::http::Client;
use crate::json::{int, text};
use crate::server::{Server, ServerDir, User};
use crate::tape::{Market, Tape};
use crate::token::{token, token_of};
use engine::user::Tier;
use serde_json::{Value, json};

/// The world: it changes only when the test changes it.
pub struct World {
    pub place: ServerDir,
    pub server: Server,
    pub tape: Tape,
    pub markets: Markets,
    pub users: Vec<User>,
}

/// The markets of the world, each for one purpose.
pub struct Markets {
    /// weather (500 bps), tick 0.01: bids 0.41 × 85, 0.40 × 310; asks 0.42 × 60.5, 0.44 × 120.
    pub rain: Market,
    /// politics (400 bps), tick 0.001: bids 0.645 × 1000; asks 0.650 × 40, 0.651 × 1000.
    pub vote: Market,
    /// crypto (700 bps), tick 0.01, neg-risk: bids 0.49 × 1000; asks 0.50 × 1000.
    pub coin: Market,
    /// geopolitics (0 bps), tick 0.0001: bids 0.1233 × 500; asks 0.1234 × 500.
    pub treaty: Market,
    /// sports (300 bps), tick 0.1: bids 0.3 × 50; asks 0.5 × 50.
    pub game: Market,
    /// culture, tick 0.01, bids only: 0.20 × 100.
    pub bidsonly: Market,
    /// tech, tick 0.01, never had a book.
    pub silent: Market,
    /// other, listed, then resolved for the first outcome.
    pub decided: Market,
    /// finance, past its end date, not resolved, with a book.
    pub ended: Market,
    /// economics, not accepting orders.
    pub halted: Market,
}

impl Markets {
    fn new() -> Markets {
        let mut coin = Market::new(3, "coin", "crypto", 0.01);
        coin.neg_risk = true;
        let mut ended = Market::new(9, "ended", "finance", 0.01);
        ended.end = "2026-02-01T00:00:00Z".into();
        let mut halted = Market::new(10, "halted", "economics", 0.01);
        halted.accepting = false;
        Markets {
            rain: Market::new(1, "rain", "weather", 0.01),
            vote: Market::new(2, "vote", "politics", 0.001),
            coin,
            treaty: Market::new(4, "treaty", "geopolitics", 0.0001),
            game: Market::new(5, "game", "sports", 0.1),
            bidsonly: Market::new(6, "bidsonly", "culture", 0.01),
            silent: Market::new(7, "silent", "tech", 0.01),
            decided: Market::new(8, "decided", "other", 0.01),
            ended,
            halted,
        }
    }

    /// All of them, most traded first as the list shows them.
    pub fn all(&self) -> [&Market; 10] {
        [
            &self.rain,
            &self.vote,
            &self.coin,
            &self.treaty,
            &self.game,
            &self.bidsonly,
            &self.silent,
            &self.decided,
            &self.ended,
            &self.halted,
        ]
    }

    fn write(&self, tape: &mut Tape) {
        tape.list(&self.all());
        tape.books(&self.rain, &[("0.40", "310"), ("0.41", "85")], &[("0.44", "120"), ("0.42", "60.5")]);
        tape.books(&self.vote, &[("0.645", "1000")], &[("0.651", "1000"), ("0.65", "40")]);
        tape.books(&self.coin, &[("0.49", "1000")], &[("0.50", "1000")]);
        tape.books(&self.treaty, &[("0.1233", "500")], &[("0.1234", "500")]);
        tape.books(&self.game, &[("0.3", "50")], &[("0.5", "50")]);
        tape.book(&self.bidsonly, 0, &[("0.20", "100")], &[]);
        tape.books(&self.ended, &[("0.30", "100")], &[("0.32", "100")]);
        tape.books(&self.decided, &[("0.70", "100")], &[("0.72", "100")]);
        tape.trade(&self.rain, 0, "BUY", "0.42", "7");
        tape.resolve(&self.decided, ["1", "0"]);
    }
}

impl World {
    /// A world with `users` enterprise users of 10 000 USD each.
    #[track_caller]
    pub fn start(users: usize) -> World {
        World::start_with(users, |_| {})
    }

    /// The same with other settings.
    #[track_caller]
    pub fn start_with(users: usize, settings: impl FnOnce(&mut ServerDir)) -> World {
        crate::description::watch();
        let mut place = ServerDir::new();
        let mut tape = Tape::create(&place.root().join("tape.ndjson"));
        let markets = Markets::new();
        markets.write(&mut tape);
        place.set("venue", "kind", "\"replay\"");
        place.set("venue", "tape", &format!("{:?}", tape.path()));
        place.set("venue", "follow", "true");
        // A constant book would be too old to trade on after a minute.
        place.set("flags", "trade_quote_max_age_ms", "3600000");
        // Segments are prepared ahead: at their usual size a start writes 192 MiB, which would be most of its time. A
        // smaller one than this is not ample before the first spare is ready.
        place.set("journal", "segment_bytes", "4194304");
        settings(&mut place);
        let users = if users > 0 { place.seed(users, "enterprise", "10000") } else { Vec::new() };
        let server = place.start();
        World { place, server, tape, markets, users }
    }

    /// A client with the key of that user.
    pub fn user(&self, number: usize) -> Client {
        self.server.with_key(&self.users[number].key)
    }

    pub fn public(&self) -> Client {
        self.server.client()
    }

    /// A new free user with an identity token: a client with a key, and the token.
    #[track_caller]
    pub fn newcomer(&self, sub: &str) -> (Client, String) {
        let token = token(sub);
        let made = self.server.with_token(&token).post("/v1/keys/bootstrap", &json!({})).expect(201);
        (self.server.with_key(text(&made, "/raw_key")), token)
    }

    /// Kills the server and starts it again on the same directory.
    pub fn crash(&mut self) {
        self.server.kill();
        self.server = self.place.start();
    }

    /// Stops the server, gives that user a history, and starts it again.
    pub fn past<T>(&mut self, number: usize, write: impl FnOnce(&mut History, &Markets) -> T) -> T {
        self.server.kill();
        let mut history = History::open(&self.place, self.users[number].id);
        let written = write(&mut history, &self.markets);
        history.end();
        self.server = self.place.start();
        written
    }

    /// A user with an address and the highest plan: its client and its identity token. The server is started again.
    #[track_caller]
    pub fn mailed(&mut self, sub: &str, email: &str) -> (Client, String) {
        let token = token_of(sub, email);
        let made = self.server.with_token(&token).post("/v1/keys/bootstrap", &json!({})).expect(201);
        let key = text(&made, "/raw_key").to_owned();
        let id = int(&self.server.with_key(&key).get("/v1/me").expect(200), "/user_id");
        self.server.kill();
        let mut history = History::open(&self.place, id);
        history.grant(Tier::Enterprise);
        history.end();
        self.server = self.place.start();
        (self.server.with_key(&key), token)
    }

    /// A figure of the metrics: the value of the line with this name and these labels. `admin.listen` must be set.
    #[track_caller]
    pub fn figure(&self, line: &str) -> u64 {
        self.server.figure(line)
    }

    /// Waits until a public read of `path` satisfies `ready`.
    #[track_caller]
    pub fn until(&self, path: &str, ready: impl Fn(&Value) -> bool) -> Value {
        let mut client = self.user(0);
        eventually(path, || {
            let answer = client.get(path);
            if answer.status != 200 {
                return None;
            }
            Some(answer.json()).filter(&ready)
        })
    }
}

/// A limit order body.
pub fn limit(market: &Market, side: &str, price: &str, quantity: &str) -> Value {
    json!({
        "market_id": market.condition,
        "outcome": "Yes",
        "side": side,
        "order_type": "limit",
        "price": price,
        "quantity": quantity
    })
}

/// A market order body.
pub fn market(market: &Market, side: &str, price: &str, quantity: &str) -> Value {
    json!({
        "market_id": market.condition,
        "outcome": "Yes",
        "side": side,
        "order_type": "market",
        "price": price,
        "quantity": quantity
    })
}

/// A body with some fields changed; `null` removes a field.
pub fn changed(body: &Value, changes: &Value) -> Value {
    let mut body = body.clone();
    let fields = body.as_object_mut().expect("a body is an object");
    for (name, value) in changes.as_object().expect("changes are an object") {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    body
}
