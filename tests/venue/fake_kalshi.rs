//! A small Kalshi on loopback: catalogue pages, books and a signed socket, as gateway/docs/live-venues.md §4 describes
//! them, with faults on demand.
//!
//! It keeps the venue's books. Each change goes to every subscriber with the next number of its subscription; a fault
//! may lose it on the way, so a test can compare the server's books with the venue's.

mod answers;
mod state;
mod wire;
mod words;

pub use words::{delta, iso, now_s, scaled};

use rsa::RsaPrivateKey;
use rsa::pkcs1::{EncodeRsaPrivateKey, LineEnding};
use serde_json::{Value, json};
use state::{Event, Market, Socket, State, Venue};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, MutexGuard, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio_tungstenite::tungstenite::Message;
use words::{contracts, dollars, merge, now_ms};

pub const KEY_ID: &str = "fa4e-key";
const PREFIX: &str = "/trade-api/v2";
const SOCKET_PATH: &str = "/trade-api/ws/v2";

/// Price in 1/10 000 dollar and size in 1/100 contract.
pub type Levels<'a> = &'a [(i64, i64)];

/// The key pair of the only account, created on first use.
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

/// A file with an unknown key.
pub fn strange_key_file(folder: &Path) -> PathBuf {
    let path = folder.join("strange.pem");
    let strange = RsaPrivateKey::new(&mut rsa::rand_core::OsRng, 1_024).expect("a key pair");
    std::fs::write(&path, strange.to_pkcs1_pem(LineEnding::LF).expect("a text").as_bytes()).expect("a file");
    path
}

/// The fault of a REST call instead of its answer.
#[derive(Clone, Debug)]
pub enum Fault {
    Status(u16),
    /// 429 with `Retry-After: 0`.
    TooMany,
    /// The answer, delayed.
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

/// The fault of the sockets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mute {
    #[default]
    No,
    /// Pings continue; nothing else is sent or answered.
    Silent,
    /// Nothing is sent at all: the other end is gone without a close.
    HalfOpen,
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

    /// Events on a page of the list, for any requested limit.
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

    /// An active market of an event, with the given fields changed.
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

    /// Changes fields of a market's row without a message.
    pub fn set(&self, ticker: &str, changes: &Value) {
        merge(&mut self.lock().markets.get_mut(ticker).expect("a market").row, changes);
    }

    /// Puts levels into a book without a message.
    pub fn book(&self, ticker: &str, yes: Levels<'_>, no: Levels<'_>) {
        let mut state = self.lock();
        let market = state.markets.get_mut(ticker).expect("a market");
        market.bids = [yes, no].map(|levels| levels.iter().copied().collect());
    }

    /// The book of a market: bids of Yes and of No.
    pub fn bids(&self, ticker: &str) -> [BTreeMap<i64, i64>; 2] {
        self.lock().markets[ticker].bids.clone()
    }

    /// Changes a level and sends the change.
    pub fn change(&self, ticker: &str, side: usize, price: i64, change: i64) {
        let mut state = self.lock();
        state.apply(ticker, side, price, change);
        state.tell("orderbook_delta", ticker, &delta(ticker, side, price, change), 1);
    }

    /// Changes a level and sends the change twice, with the same number.
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

    /// Sends a change that the book does not have.
    pub fn lie(&self, ticker: &str, message: &Value) {
        self.lock().tell("orderbook_delta", ticker, message, 1);
    }

    pub fn trade(&self, ticker: &str, yes_price: i64, size: i64) {
        let message = json!({"type": "trade", "msg": {"trade_id": "t", "market_ticker": ticker,
            "yes_price_dollars": dollars(yes_price), "no_price_dollars": dollars(10_000 - yes_price),
            "count_fp": contracts(size), "taker_side": "yes", "ts": now_s(), "ts_ms": now_ms()}});
        self.lock().tell("trade", ticker, &message, 1);
    }

    /// Sends a recorded message of a market, with current numbers, and applies it to the book.
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

    /// The answer of `GET /events/{ticker}`.
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

    /// The next `count` calls whose path holds `part` get this fault.
    pub fn fault(&self, part: &str, times: usize, fault: Fault) {
        self.lock().faults.push((part.to_owned(), times, fault));
    }

    /// Faults that no call has met yet.
    pub fn faults_left(&self) -> usize {
        self.lock().faults.iter().map(|(_, times, _)| times).sum()
    }

    pub fn mute(&self, mute: Mute) {
        self.lock().mute = mute;
    }

    /// Handshakes are refused, with any signature.
    pub fn refuse(&self, refuses: bool) {
        self.lock().refuses = refuses;
    }

    /// The venue does not have this channel.
    pub fn without_channel(&self, channel: &str) {
        self.lock().unknown_channels.insert(channel.to_owned());
    }

    /// Closes all sockets with a close frame.
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

    /// Times of all REST calls.
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
