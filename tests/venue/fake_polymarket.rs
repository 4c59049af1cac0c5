//! A stand-in for Polymarket on loopback: catalogue pages, books by REST and by socket, and spot prices, as
//! gateway/docs/live-venues.md §2 and §3 describe them, with faults on demand.
//!
//! It runs on a thread of its own and ends when its value is dropped. A test provides everything that it serves.

mod rest;
mod socket;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tests::server::ServerDir;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

/// Prices and sizes as on the wire.
pub type Levels = Vec<(String, String)>;

/// The stand-in.
pub struct Fake {
    state: Shared,
    addresses: [SocketAddr; 3],
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

type Shared = Arc<Mutex<State>>;

/// A fault of REST calls.
#[derive(Clone, Debug, Default)]
pub struct RestFault {
    /// Calls that begin with this; empty = all.
    pub path: &'static str,
    /// The status of the answer; 0 = the right one.
    pub status: u16,
    pub retry_after: Option<u32>,
    /// Sent instead of the body.
    pub body: Option<String>,
    /// Delay of the answer.
    pub slow: Duration,
    /// Calls that it still affects.
    pub times: usize,
}

/// The behaviour of book sockets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mood {
    Well,
    /// Answers pings and sends nothing else.
    Silent,
    /// Neither reads nor writes, and stays open.
    HalfOpen,
}

#[derive(Default)]
struct Book {
    bids: Levels,
    asks: Levels,
}

/// The state of the stand-in.
struct State {
    /// Gamma rows with their events, by number.
    rows: BTreeMap<u64, Value>,
    books: BTreeMap<String, Book>,
    /// Rows of the order book's service, by condition.
    clob: BTreeMap<String, Value>,
    /// Sockets of books that are open.
    sockets: BTreeMap<u64, Subscriber>,
    spots: BTreeMap<u64, mpsc::UnboundedSender<Say>>,
    sockets_count: u64,
    /// Tokens whose subscription was cancelled.
    given_up: Vec<String>,
    calls: Vec<(Instant, String)>,
    faults: Vec<RestFault>,
    /// Paths of faults that affected a call.
    met: BTreeSet<&'static str>,
    mood: Mood,
    /// Connections are closed immediately.
    gone: bool,
    dumps: bool,
    keyset: bool,
    /// The next frames are lost, or sent twice.
    drop_frames: usize,
    double_frames: bool,
    /// Venue time of the last message, in ms.
    millis: u64,
}

struct Subscriber {
    tokens: Vec<String>,
    out: mpsc::UnboundedSender<Say>,
}

/// A request to a socket's task.
enum Say {
    Text(String),
    Close,
}

impl Fake {
    pub fn start() -> Fake {
        let state = State {
            rows: BTreeMap::new(),
            books: BTreeMap::new(),
            clob: BTreeMap::new(),
            sockets: BTreeMap::new(),
            spots: BTreeMap::new(),
            sockets_count: 0,
            given_up: Vec::new(),
            calls: Vec::new(),
            faults: Vec::new(),
            met: BTreeSet::new(),
            mood: Mood::Well,
            gone: false,
            dumps: true,
            keyset: true,
            drop_frames: 0,
            double_frames: false,
            millis: now_ms(),
        };
        let state = Arc::new(Mutex::new(state));
        let (over, is_over) = oneshot::channel::<()>();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listeners = [0; 3].map(|_| runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("loopback"));
        let addresses = listeners.each_ref().map(|listener| listener.local_addr().expect("it is bound"));
        let [rest, books, spots] = listeners;
        let shared = state.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async move {
                tokio::select! {
                    () = rest::serve(rest, shared.clone()) => {}
                    () = socket::books(books, shared.clone()) => {}
                    () = socket::spots(spots, shared.clone()) => {}
                    _ = is_over => {}
                }
            });
            runtime.shutdown_background();
        });
        Fake { state, addresses, over: Some(over), thread: Some(thread) }
    }

    /// Settings of a server for this stand-in, with short timeouts.
    pub fn configure(&self, place: &mut ServerDir) {
        let [rest, books, spots] = self.addresses;
        place.set("venue", "kind", "\"polymarket\"");
        place.set("venue.polymarket", "gamma", &format!("\"http://{rest}\""));
        place.set("venue.polymarket", "clob", &format!("\"http://{rest}\""));
        place.set("venue.polymarket", "market_socket", &format!("\"ws://{books}/ws/market\""));
        place.set("venue.polymarket", "spot_socket", &format!("\"ws://{spots}\""));
        for (key, millis) in [
            ("silent_after_ms", 1_500),
            ("reconnect_first_ms", 100),
            ("reconnect_max_ms", 400),
            ("retry_first_ms", 50),
            ("call_timeout_ms", 2_000),
            ("newest_every_ms", 300),
            ("traded_every_ms", 500),
            ("standing_every_ms", 300),
            ("outage_after_ms", 2_000),
            ("crossed_max_ms", 300),
        ] {
            place.set("venue", key, &millis.to_string());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no thread panics with the lock")
    }

    /// Lists a market of that number, open, with a book of 0.40 / 0.60 on both tokens.
    pub fn list(&self, number: u64) -> Market {
        let market = Market::new(number);
        self.list_as(&market, &format!("will-it-{number}"), json!({}));
        self.book(&market, &[("0.40", "500"), ("0.30", "100")], &[("0.60", "500"), ("0.70", "100")]);
        market
    }

    /// Lists it under that slug, with more fields of its row; it has no book yet.
    pub fn list_as(&self, market: &Market, slug: &str, more: Value) {
        let Market { number, condition, tokens } = market;
        let mut row = json!({
            "id": number.to_string(), "conditionId": condition, "slug": slug,
            "question": format!("Will it {number}?"), "outcomes": "[\"Yes\", \"No\"]",
            "outcomePrices": "[\"0.5\", \"0.5\"]", "clobTokenIds": json!(tokens).to_string(),
            "active": true, "closed": false, "acceptingOrders": true, "enableOrderBook": true,
            "orderPriceMinTickSize": 0.01, "orderMinSize": 5, "startDate": "2026-01-01T00:00:00Z",
            "endDate": "2099-01-01T00:00:00Z", "volume24hr": 1_000.5, "updatedAt": now(),
            "events": [{"id": format!("9{number}"), "slug": slug, "title": format!("Event {number}")}],
        });
        merge(&mut row, more);
        self.state().rows.insert(*number, row);
    }

    /// Lists a row unchanged, or replaces the one with its id.
    pub fn list_row(&self, row: Value) {
        let number = row["id"].as_str().and_then(|id| id.parse().ok()).expect("rows have ids");
        self.state().rows.insert(number, row);
    }

    /// Its row.
    pub fn row(&self, market: &Market) -> Value {
        self.state().rows[&market.number].clone()
    }

    /// Changes fields of its row.
    pub fn change(&self, market: &Market, more: Value) {
        let mut state = self.state();
        let row = state.rows.get_mut(&market.number).expect("it is listed");
        row["updatedAt"] = now().into();
        merge(row, more);
    }

    /// Drops the subscription of its tokens without notice.
    pub fn forget(&self, market: &Market) {
        for socket in self.state().sockets.values_mut() {
            socket.tokens.retain(|token| !market.tokens.contains(token));
        }
    }

    /// How often both its tokens were subscribed, and how often unsubscribed so far.
    pub fn subscriptions(&self, market: &Market) -> (usize, usize) {
        let state = self.state();
        let times = |token: &String| {
            let open = state.sockets.values().flat_map(|socket| &socket.tokens);
            let given_up = state.given_up.iter();
            (open.filter(|known| *known == token).count(), given_up.filter(|known| *known == token).count())
        };
        let [first, second] = market.tokens.each_ref().map(times);
        assert_eq!(first, second, "both tokens of a market are subscribed together");
        first
    }

    /// Its row of the order book's service.
    pub fn clob(&self, market: &Market, row: Value) {
        self.state().clob.insert(market.condition.clone(), row);
    }

    /// Sets the book of the first token and its mirror, without a message.
    pub fn book(&self, market: &Market, bids: &[(&str, &str)], asks: &[(&str, &str)]) {
        let own = |side: &[(&str, &str)]| side.iter().map(|(p, s)| ((*p).into(), (*s).into())).collect::<Levels>();
        let mirror = |side: &[(&str, &str)]| side.iter().map(|(p, s)| (complement(p), (*s).into())).collect::<Levels>();
        let mut state = self.state();
        let [first, second] = market.tokens.clone();
        state.books.insert(first, Book { bids: own(bids), asks: own(asks) });
        state.books.insert(second, Book { bids: mirror(asks), asks: mirror(bids) });
    }

    /// Sends the books of both tokens.
    pub fn tell_books(&self, market: &Market) {
        let mut state = self.state();
        for token in &market.tokens {
            if let Some(book) = state.book_message(token) {
                state.tell(token, &book.to_string());
            }
        }
    }

    /// Sets one level of the first token, mirrors it, and sends both in one frame.
    pub fn level(&self, market: &Market, side: &str, price: &str, size: &str) {
        let mut state = self.state();
        let at = state.tick();
        let [first, second] = &market.tokens;
        let other = if side == "BUY" { "SELL" } else { "BUY" };
        state.set(first, side, price, size);
        state.set(second, other, &complement(price), size);
        let changes: Vec<Value> = [(first, side, price.to_owned()), (second, other, complement(price))]
            .into_iter()
            .map(|(token, side, price)| {
                let (bid, ask) = state.top(token);
                let hash = format!("{at:x}{token}");
                json!({"asset_id": token, "side": side, "price": price, "size": size, "best_bid": bid, "best_ask": ask,
                       "hash": hash})
            })
            .collect();
        let frame = json!({"event_type": "price_change", "market": market.condition, "timestamp": at.to_string(),
                           "price_changes": changes});
        state.tell(first, &frame.to_string());
    }

    /// Sends a text on every socket of that market.
    pub fn say(&self, market: &Market, text: &str) {
        self.state().tell(&market.tokens[0], text);
    }

    /// Sends a spot price.
    pub fn spot(&self, topic: &str, symbol: &str, value: &str) {
        let mut state = self.state();
        let at = state.tick();
        let text = format!(
            r#"{{"topic":"{topic}","type":"update","timestamp":{at},"payload":{{"symbol":"{symbol}","timestamp":{at},"value":{value}}}}}"#
        );
        state.spots.retain(|_, out| out.send(Say::Text(text.clone())).is_ok());
    }

    /// Venue time of the next message, in ms.
    pub fn tick(&self) -> u64 {
        self.state().tick()
    }

    pub fn mood(&self, mood: Mood) {
        self.state().mood = mood;
    }

    /// Whether a socket gets the books of its subscription.
    pub fn dumps(&self, dumps: bool) {
        self.state().dumps = dumps;
    }

    /// Whether the catalogue has cursors.
    pub fn keyset(&self, keyset: bool) {
        self.state().keyset = keyset;
    }

    /// The venue is gone, or back: connections are closed immediately.
    pub fn gone(&self, gone: bool) {
        self.state().gone = gone;
        if gone {
            self.close();
        }
    }

    /// Closes all sockets.
    pub fn close(&self) {
        let mut state = self.state();
        state.sockets.values().for_each(|socket| drop(socket.out.send(Say::Close)));
        state.spots.values().for_each(|out| drop(out.send(Say::Close)));
        state.sockets.clear();
        state.spots.clear();
    }

    /// The next frames are lost.
    pub fn lose(&self, frames: usize) {
        self.state().drop_frames = frames;
    }

    pub fn twice(&self, twice: bool) {
        self.state().double_frames = twice;
    }

    pub fn fault(&self, fault: RestFault) {
        self.state().faults.push(fault);
    }

    /// Whether every path with a fault was requested since.
    pub fn faults_are_met(&self) -> bool {
        let state = self.state();
        state.faults.iter().all(|fault| state.met.contains(fault.path))
    }

    pub fn no_faults(&self) {
        let mut state = self.state();
        state.faults.clear();
        state.met.clear();
    }

    /// Calls whose path begins like this.
    pub fn calls(&self, path: &str) -> Vec<String> {
        self.state().calls.iter().map(|(_, call)| call.clone()).filter(|call| call.starts_with(path)).collect()
    }

    /// Most calls whose path begins like this within any ten seconds.
    pub fn busiest(&self, path: &str) -> usize {
        let state = self.state();
        let times: Vec<Instant> =
            state.calls.iter().filter(|(_, call)| call.starts_with(path)).map(|(at, _)| *at).collect();
        let within = |from: usize| times[from..].partition_point(|at| *at < times[from] + Duration::from_secs(10));
        (0..times.len()).map(within).max().unwrap_or(0)
    }

    /// Tokens on each open socket of books.
    pub fn loads(&self) -> Vec<usize> {
        self.state().sockets.values().map(|socket| socket.tokens.len()).collect()
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.over.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A market of the stand-in.
#[derive(Clone, Debug)]
pub struct Market {
    pub number: u64,
    pub condition: String,
    pub tokens: [String; 2],
}

impl Market {
    pub fn new(number: u64) -> Market {
        Market { number, condition: format!("0x{number:064x}"), tokens: [format!("{number}01"), format!("{number}02")] }
    }
}

impl State {
    fn tick(&mut self) -> u64 {
        self.millis = now_ms().max(self.millis + 1);
        self.millis
    }

    fn set(&mut self, token: &str, side: &str, price: &str, size: &str) {
        let book = self.books.entry(token.to_owned()).or_default();
        let levels = if side == "BUY" { &mut book.bids } else { &mut book.asks };
        levels.retain(|(known, _)| units(known) != units(price));
        if units(size) > 0 {
            levels.push((price.to_owned(), size.to_owned()));
        }
    }

    /// Best prices as frames have them.
    fn top(&self, token: &str) -> (String, String) {
        let book = &self.books[token];
        let price = |level: &(String, String)| level.0.clone();
        let bid = book.bids.iter().max_by_key(|level| units(&level.0)).map_or("0".into(), price);
        let ask = book.asks.iter().min_by_key(|level| units(&level.0)).map_or("1".into(), price);
        (bid, ask)
    }

    /// A book as REST and sockets have it.
    fn book_message(&mut self, token: &str) -> Option<Value> {
        let at = self.tick();
        let book = self.books.get(token)?;
        let side = |levels: &Levels| -> Vec<Value> {
            levels.iter().map(|(price, size)| json!({"price": price, "size": size})).collect()
        };
        let condition =
            self.rows.values().find(|row| row["clobTokenIds"].as_str().is_some_and(|ids| ids.contains(token)));
        Some(json!({
            "event_type": "book", "asset_id": token, "market": condition.map(|row| row["conditionId"].clone()),
            "timestamp": at.to_string(), "hash": format!("{at:x}{token}"),
            "bids": side(&book.bids), "asks": side(&book.asks),
        }))
    }

    /// Sends a text on every socket that has this token.
    fn tell(&mut self, token: &str, text: &str) {
        if self.drop_frames > 0 {
            self.drop_frames -= 1;
            return;
        }
        if self.mood != Mood::Well {
            return;
        }
        for socket in self.sockets.values().filter(|socket| socket.tokens.iter().any(|known| known == token)) {
            for _ in 0..=usize::from(self.double_frames) {
                let _ = socket.out.send(Say::Text(text.to_owned()));
            }
        }
    }
}

fn merge(row: &mut Value, more: Value) {
    if let Value::Object(fields) = more {
        fields.into_iter().for_each(|(name, value)| row[name] = value);
    }
}

/// A decimal in 1/10 000.
fn units(decimal: &str) -> u64 {
    (decimal.parse::<f64>().expect("a decimal") * 10_000.0).round() as u64
}

/// One dollar less a price.
fn complement(price: &str) -> String {
    format!("{:.4}", 1.0 - price.parse::<f64>().expect("a decimal"))
}

/// Now, in the notation of the rows.
fn now() -> String {
    jiff::Timestamp::now().to_string()
}

fn now_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.expect("after 1970").as_millis() as u64
}
