//! A small Kalshi on loopback: catalogue pages, books and a signed socket, as upstream.md §4 writes them, with faults
//! on demand.
//!
//! It keeps the books that the venue has. What is told of them goes to every subscriber with the next number of its
//! subscription; a fault may lose it on the way, so a test can hold what the server shows against what there is.

mod wire;

use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey, LineEnding};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_tungstenite::tungstenite::Message;

pub const KEY_ID: &str = "fa4e-key";
const PREFIX: &str = "/trade-api/v2";
const SOCKET_PATH: &str = "/trade-api/ws/v2";

/// Price in 1/10 000 dollar and size in 1/100 contract.
pub type Levels<'a> = &'a [(i64, i64)];

/// The key pair of the one account there is, made at the first use.
fn private_key() -> &'static RsaPrivateKey {
    static KEY: OnceLock<RsaPrivateKey> = OnceLock::new();
    KEY.get_or_init(|| RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).expect("a key pair"))
}

/// A file with the account's private key.
pub fn key_file(folder: &Path) -> PathBuf {
    let path = folder.join("kalshi.pem");
    std::fs::write(&path, private_key().to_pkcs1_pem(LineEnding::LF).expect("a text").as_bytes()).expect("a file");
    path
}

/// A file with a key of nobody.
pub fn strange_key_file(folder: &Path) -> PathBuf {
    let path = folder.join("strange.pem");
    let strange = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).expect("a key pair");
    std::fs::write(&path, strange.to_pkcs1_pem(LineEnding::LF).expect("a text").as_bytes()).expect("a file");
    path
}

/// What a REST call meets instead of its answer.
#[derive(Clone, Debug)]
pub enum Fault {
    Status(u16),
    /// 429 with `Retry-After: 0`.
    TooMany,
    /// The answer, late.
    Slow(Duration),
    /// Another body, with status 200.
    Body(String),
}

/// The running stand-in; it ends when it is dropped.
pub struct Fake {
    venue: Arc<Venue>,
    address: SocketAddr,
    over: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Venue(Mutex<State>);

#[derive(Default)]
struct State {
    events: BTreeMap<String, Event>,
    markets: BTreeMap<String, Market>,
    series: BTreeMap<String, Value>,
    sockets: BTreeMap<u64, Socket>,
    sockets_ever: u64,
    page_size: usize,
    faults: Vec<(String, usize, Fault)>,
    /// Path and moment of each REST call.
    calls: Vec<(String, Instant)>,
    handshakes_refused: usize,
    commands: Vec<Value>,
    refuses: bool,
    mute: Mute,
    unknown_channels: BTreeSet<String>,
}

/// What the sockets do not do any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mute {
    #[default]
    No,
    /// Pings go on; nothing else is said or answered.
    Silent,
    /// Nothing at all: the other end is gone without a word.
    HalfOpen,
}

struct Event {
    row: Value,
    /// Not in the list of open events.
    hidden: bool,
    markets: Vec<String>,
}

struct Market {
    row: Value,
    bids: [BTreeMap<i64, i64>; 2],
}

struct Socket {
    out: mpsc::UnboundedSender<Message>,
    next_sid: u64,
    subscriptions: BTreeMap<String, Subscription>,
}

struct Subscription {
    sid: u64,
    seq: u64,
    tickers: BTreeSet<String>,
}

impl Fake {
    /// Starts, with no markets.
    pub fn start() -> Fake {
        let venue = Arc::new(Venue::default());
        venue.lock().page_size = 200;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a port");
        let address = listener.local_addr().expect("an address");
        let (over, is_over) = oneshot::channel::<()>();
        let serving = venue.clone();
        let thread = std::thread::spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    _ = is_over => {}
                    () = wire::accept(listener, serving) => {}
                }
            });
            runtime.shutdown_timeout(Duration::from_millis(100));
        });
        Fake { venue, address, over: Some(over), thread: Some(thread) }
    }

    pub fn api(&self) -> String {
        format!("http://{}{PREFIX}", self.address)
    }

    pub fn socket(&self) -> String {
        format!("ws://{}{SOCKET_PATH}", self.address)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.venue.lock()
    }

    /// Events on a page of the list, whatever is asked for.
    pub fn pages_of(&self, events: usize) {
        self.lock().page_size = events;
    }

    /// An event; without a category, its series has it.
    pub fn event(&self, ticker: &str, title: &str, category: Option<&str>) {
        let series = ticker.split('-').next().expect("a part").to_owned();
        let row = json!({"event_ticker": ticker, "series_ticker": series, "title": title,
            "category": category.unwrap_or_default(), "mutually_exclusive": false});
        self.lock().events.insert(ticker.to_owned(), Event { row, hidden: false, markets: Vec::new() });
    }

    /// The list of open events does not show it (yet).
    pub fn hide(&self, event: &str) {
        self.lock().events.get_mut(event).expect("an event").hidden = true;
    }

    pub fn series(&self, ticker: &str, category: &str) {
        self.lock().series.insert(ticker.to_owned(), json!({"ticker": ticker, "category": category}));
    }

    /// An active market of an event, with other fields changed as told.
    pub fn market(&self, event: &str, ticker: &str, changes: Value) {
        let now = now_s();
        let mut row = json!({
            "ticker": ticker, "event_ticker": event, "market_type": "binary", "title": "Will it?",
            "yes_sub_title": "More than 3", "no_sub_title": "More than 3",
            "open_time": iso(now - 3_600), "close_time": iso(now + 86_400), "status": "active", "result": "",
            "can_close_early": true, "price_level_structure": "linear_cent",
            "price_ranges": [{"start": "0.0000", "end": "1.0000", "step": "0.0100"}],
            "volume_fp": "1200.00", "volume_24h_fp": "340.50", "liquidity_dollars": "77.0000",
            "rules_primary": "If it does, then Yes."
        });
        merge(&mut row, &changes);
        let mut state = self.lock();
        state.events.get_mut(event).expect("an event").markets.push(ticker.to_owned());
        state.markets.insert(ticker.to_owned(), Market { row, bids: Default::default() });
    }

    /// Changes fields of a market's row; nobody is told.
    pub fn set(&self, ticker: &str, changes: &Value) {
        merge(&mut self.lock().markets.get_mut(ticker).expect("a market").row, changes);
    }

    /// Puts levels into a book; nobody is told.
    pub fn book(&self, ticker: &str, yes: Levels<'_>, no: Levels<'_>) {
        let mut state = self.lock();
        let market = state.markets.get_mut(ticker).expect("a market");
        market.bids = [yes, no].map(|levels| levels.iter().copied().collect());
    }

    /// What the book of a market is: bids of Yes and of No.
    pub fn bids(&self, ticker: &str) -> [BTreeMap<i64, i64>; 2] {
        self.lock().markets[ticker].bids.clone()
    }

    /// Changes a level and tells it.
    pub fn change(&self, ticker: &str, side: usize, price: i64, change: i64) {
        let mut state = self.lock();
        state.apply(ticker, side, price, change);
        state.tell("orderbook_delta", ticker, &delta(ticker, side, price, change), 1);
    }

    /// Changes a level and tells it twice, with the same number.
    pub fn change_twice(&self, ticker: &str, side: usize, price: i64, change: i64) {
        let mut state = self.lock();
        state.apply(ticker, side, price, change);
        state.tell("orderbook_delta", ticker, &delta(ticker, side, price, change), 2);
    }

    /// Changes a level; the message gets its number and is lost.
    pub fn change_lost(&self, ticker: &str, side: usize, price: i64, change: i64) {
        let mut state = self.lock();
        state.apply(ticker, side, price, change);
        state.tell("orderbook_delta", ticker, &delta(ticker, side, price, change), 0);
    }

    /// Tells of a change that is none of the book's.
    pub fn lie(&self, ticker: &str, message: &Value) {
        self.lock().tell("orderbook_delta", ticker, message, 1);
    }

    pub fn trade(&self, ticker: &str, yes_price: i64, size: i64) {
        let message = json!({"type": "trade", "msg": {"trade_id": "t", "market_ticker": ticker,
            "yes_price_dollars": dollars(yes_price), "no_price_dollars": dollars(10_000 - yes_price),
            "count_fp": contracts(size), "taker_side": "yes", "ts": now_s(), "ts_ms": now_ms()}});
        self.lock().tell("trade", ticker, &message, 1);
    }

    /// Tells a recorded message of a market, with numbers of today, and does to the book what it says.
    pub fn retell(&self, ticker: &str, message: &Value) {
        let mut state = self.lock();
        let msg = &message["msg"];
        let text = |key: &str| msg[key].as_str().unwrap_or_default();
        match message["type"].as_str() {
            Some("orderbook_snapshot") => {
                let side = |key: &str| -> BTreeMap<i64, i64> {
                    let level = |level: &Value| {
                        let part = |at: usize| level[at].as_str().unwrap_or_default();
                        (scaled(part(0), 4), scaled(part(1), 2))
                    };
                    msg[key].as_array().into_iter().flatten().map(level).collect()
                };
                state.markets.get_mut(ticker).expect("a market").bids = [side("yes_dollars_fp"), side("no_dollars_fp")];
                state.tell("orderbook_delta", ticker, message, 1);
            }
            Some("orderbook_delta") => {
                let side = usize::from(text("side") == "no");
                state.apply(ticker, side, scaled(text("price_dollars"), 4), scaled(text("delta_fp"), 2));
                state.tell("orderbook_delta", ticker, message, 1);
            }
            _ => state.tell("trade", ticker, message, 1),
        }
    }

    /// What `GET /events/{ticker}` answers.
    pub fn event_answer(&self, event: &str) -> Value {
        self.lock().answer(&format!("/events/{event}"), &BTreeMap::new()).expect("an event")
    }

    /// A lifecycle message of a market.
    pub fn lifecycle(&self, ticker: &str, event_type: &str, more: &Value) {
        let mut msg = json!({"market_ticker": ticker, "event_type": event_type});
        merge(&mut msg, more);
        self.lock().tell("market_lifecycle_v2", ticker, &json!({"type": "market_lifecycle_v2", "msg": msg}), 1);
    }

    /// Any text, to every socket.
    pub fn say(&self, text: &str) {
        for socket in self.lock().sockets.values() {
            let _ = socket.out.send(Message::text(text.to_owned()));
        }
    }

    /// The next so many calls whose path holds `part` meet this.
    pub fn fault(&self, part: &str, times: usize, fault: Fault) {
        self.lock().faults.push((part.to_owned(), times, fault));
    }

    /// Faults that were not met yet.
    pub fn faults_left(&self) -> usize {
        self.lock().faults.iter().map(|(_, times, _)| times).sum()
    }

    pub fn mute(&self, mute: Mute) {
        self.lock().mute = mute;
    }

    /// Handshakes are refused, whoever signs them.
    pub fn refuse(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// The venue does not know this channel.
    pub fn without_channel(&self, channel: &str) {
        self.lock().unknown_channels.insert(channel.to_owned());
    }

    /// Closes all sockets properly.
    pub fn close(&self) {
        for socket in self.lock().sockets.values() {
            let _ = socket.out.send(Message::Close(None));
        }
    }

    /// Sockets that are open, that ever were, and handshakes that were refused.
    pub fn sockets(&self) -> (usize, u64, usize) {
        let state = self.lock();
        (state.sockets.len(), state.sockets_ever, state.handshakes_refused)
    }

    /// REST calls whose path holds `part`.
    pub fn calls(&self, part: &str) -> usize {
        self.lock().calls.iter().filter(|(path, _)| path.contains(part)).count()
    }

    /// Moments of all REST calls.
    pub fn call_times(&self) -> Vec<Instant> {
        self.lock().calls.iter().map(|(_, at)| *at).collect()
    }

    /// Commands whose text holds `part`.
    pub fn commands(&self, part: &str) -> usize {
        self.lock().commands.iter().filter(|command| command.to_string().contains(part)).count()
    }

    /// Whether a market's books are subscribed on some socket.
    pub fn is_followed(&self, ticker: &str) -> bool {
        let follows = |socket: &Socket| {
            socket.subscriptions.get("orderbook_delta").is_some_and(|books| books.tickers.contains(ticker))
        };
        self.lock().sockets.values().any(follows)
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

impl Venue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

impl State {
    fn apply(&mut self, ticker: &str, side: usize, price: i64, change: i64) {
        let bids = &mut self.markets.get_mut(ticker).expect("a market").bids[side];
        let size = bids.get(&price).copied().unwrap_or_default() + change;
        assert!(size >= 0, "a book of the venue is never below zero: {ticker} {price}");
        if size == 0 {
            bids.remove(&price)
        } else {
            bids.insert(price, size)
        };
    }

    /// Tells whoever follows this market on this channel, with the next number: so many times.
    fn tell(&mut self, channel: &str, ticker: &str, message: &Value, times: usize) {
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

    fn snapshot(&self, ticker: &str) -> Value {
        let mut msg = json!({"market_ticker": ticker, "market_id": "00000000-0000-0000-0000-000000000000"});
        for (key, bids) in ["yes_dollars_fp", "no_dollars_fp"].iter().zip(&self.markets[ticker].bids) {
            // The key of an empty side is left out.
            if !bids.is_empty() {
                msg[*key] = levels(bids);
            }
        }
        json!({"type": "orderbook_snapshot", "msg": msg})
    }

    /// Carries a command out.
    fn command(&mut self, socket: u64, command: &Value) {
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
    fn show(&mut self, socket: u64, tickers: &[String]) {
        for ticker in tickers {
            let mut message = self.snapshot(ticker);
            let Some(socket) = self.sockets.get_mut(&socket) else { return };
            let Some(books) = socket.subscriptions.get_mut("orderbook_delta") else { return };
            books.seq += 1;
            (message["sid"], message["seq"]) = (json!(books.sid), json!(books.seq));
            let _ = socket.out.send(Message::text(message.to_string()));
        }
    }

    fn fault_for(&mut self, path: &str) -> Option<Fault> {
        let (_, times, fault) = self.faults.iter_mut().find(|(part, times, _)| *times > 0 && path.contains(&**part))?;
        *times -= 1;
        Some(fault.clone())
    }

    /// The answer to a REST call; nothing: there is no such thing.
    fn answer(&self, path: &str, query: &BTreeMap<String, String>) -> Option<Value> {
        let of = |name: &str| query.get(name).map(String::as_str).unwrap_or_default();
        let at: usize = of("cursor").parse().unwrap_or_default();
        let limit = of("limit").parse().unwrap_or(100_usize);
        let rows = |markets: &[String]| -> Vec<Value> {
            markets.iter().map(|ticker| self.markets[ticker].row.clone()).collect()
        };
        let nested = |event: &Event| {
            let mut row = event.row.clone();
            row["markets"] = rows(&event.markets).into();
            row
        };
        let page = |name: &str, all: Vec<Value>, size: usize| {
            let cursor = if at + size < all.len() { (at + size).to_string() } else { String::new() };
            let rows: Vec<Value> = all.into_iter().skip(at).take(size).collect();
            json!({ name: rows, "cursor": cursor })
        };
        let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
        Some(match segments.as_slice() {
            ["events"] => {
                assert!(limit <= 200 && of("status") == "open", "{query:?}");
                let open = self.events.values().filter(|event| !event.hidden).map(nested).collect();
                page("events", open, limit.min(self.page_size))
            }
            ["events", ticker] => json!({ "event": nested(self.events.get(*ticker)?) }),
            ["series", ticker] => json!({ "series": self.series.get(*ticker)? }),
            ["markets"] => {
                assert!(limit <= 1_000, "{query:?}");
                let seconds = |name: &str| of(name).parse::<i64>().ok();
                let named: Vec<&str> = of("tickers").split(',').filter(|ticker| !ticker.is_empty()).collect();
                let closes = |row: &Value| seconds_of(row["close_time"].as_str().unwrap_or_default());
                let matches = |ticker: &str, row: &Value| {
                    (named.is_empty() || named.contains(&ticker))
                        && seconds("min_close_ts").is_none_or(|min| closes(row) >= min)
                        && seconds("max_close_ts").is_none_or(|max| closes(row) <= max)
                };
                let found = self.markets.iter().filter(|(ticker, market)| matches(ticker, &market.row));
                page("markets", found.map(|(_, market)| market.row.clone()).collect(), limit)
            }
            ["markets", ticker, "orderbook"] => {
                let bids = &self.markets.get(*ticker)?.bids;
                let side = |bids: &BTreeMap<i64, i64>| if bids.is_empty() { Value::Null } else { levels(bids) };
                json!({"orderbook_fp": {"yes_dollars": side(&bids[0]), "no_dollars": side(&bids[1])}})
            }
            _ => return None,
        })
    }
}

fn merge(row: &mut Value, changes: &Value) {
    for (key, value) in changes.as_object().into_iter().flatten() {
        row[key] = value.clone();
    }
}

pub fn delta(ticker: &str, side: usize, price: i64, change: i64) -> Value {
    json!({"type": "orderbook_delta", "msg": {"market_ticker": ticker, "price_dollars": dollars(price),
        "delta_fp": contracts(change), "side": (["yes", "no"][side]), "ts": "2026-01-01T00:00:00Z", "ts_ms": now_ms()}})
}

fn levels(bids: &BTreeMap<i64, i64>) -> Value {
    bids.iter().map(|(price, size)| json!([dollars(*price), contracts(*size)])).collect()
}

fn dollars(price: i64) -> String {
    format!("{}.{:04}", price / 10_000, price % 10_000)
}

fn contracts(size: i64) -> String {
    format!("{}{}.{:02}", if size < 0 { "-" } else { "" }, size.abs() / 100, size.abs() % 100)
}

/// A decimal as an integer of so many places.
pub fn scaled(text: &str, places: usize) -> i64 {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    assert!(fraction.trim_end_matches('0').len() <= places, "{text}");
    let digits = format!("{whole}{:0<places$.places$}", fraction);
    digits.parse().unwrap_or_else(|_| panic!("{text} is no decimal"))
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_millis() as u64
}

pub fn now_s() -> i64 {
    (now_ms() / 1_000) as i64
}

/// Unix seconds as the venue writes moments.
pub fn iso(seconds: i64) -> String {
    let moment = jiff::Timestamp::from_second(seconds).expect("a moment");
    format!("{moment:.0}")
}

fn seconds_of(iso: &str) -> i64 {
    iso.parse::<jiff::Timestamp>().map_or(0, jiff::Timestamp::as_second)
}
