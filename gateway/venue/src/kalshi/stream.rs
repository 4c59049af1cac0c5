//! Kalshi's adapter: catalogue crawl, signed sockets, and books by REST where there are no credentials
//! (gateway/docs/live-venues.md §4).
//!
//! ```text
//!  requests ─► run ─┬─► books   (a task for each socket: subscriptions, repeated snapshots)  ─┐ hints
//!                   ├─► polling (books that no socket carries)                                │
//!                   ├─► status  (states of single markets)                                   ─┤
//!                   └─► crawl   (events and new markets) ◄────────────────────────────────────┘
//! ```
//!
//! All REST calls share one budget: a fifth of 20 calls a second, the limit of the venue's lowest public tier.

mod books;
mod commands;
mod crawl;
mod polling;
mod signer;
#[cfg(test)]
mod tests;

pub use signer::Signer;

use crate::live::{Budget, Link, Request, Subject, Tools, run_link};
use crate::settings::{Kind, settings};
use ahash::AHashMap;
use books::{Books, Change, Hint, LinkState, MARKETS_MAX};
use crawl::{Crawl, KnownEvents, Shared, StatusQueue};
use engine::market::terms::Venue;
use host::thread::guard_task;
use polling::Polls;
use std::collections::VecDeque;
use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval};

/// A fifth of the venue's limit: 4 calls a second, over ten seconds, so that short bursts are possible.
const CALLS_MAX: u32 = 40;
const CALLS_PER: Duration = Duration::from_secs(10);
/// Number of status intervals for which a stake counts after it was last named.
const STAKE_ROUNDS: u32 = 3;
/// Most requests that are handled together, so that a page of the catalogue becomes a few commands.
const REQUESTS_MAX: usize = 4_096;
/// Longest interval of the sockets' timer; shorter if timeouts are short.
const TICK_EVERY_MAX: Duration = Duration::from_secs(1);

settings! {
    /// Addresses, credentials and limits.
    pub struct Settings of Venue::Kalshi;
    /// REST service of Kalshi.
    api: String = Kind::HttpAddress("https://external-api.kalshi.com/trade-api/v2");
    /// Socket of Kalshi.
    socket: String = Kind::SocketAddress("wss://external-api-ws.kalshi.com/trade-api/ws/v2");
    /// Id of the key that signs the handshake of the socket. Without key and file books are polled.
    key_id: Option<String> = Kind::KeyId;
    /// File with the private key of `venue.kalshi.key_id`.
    private_key_file: Option<PathBuf> = Kind::Path;
    /// The largest number of markets whose books are followed. The others have no book until a user trades them.
    markets_max: usize = Kind::Count(20_000, 1..=50_000);
}

/// Runs until the request channel closes.
pub async fn run(
    settings: Settings,
    signer: Option<Signer>,
    follows_fees: bool,
    tools: Tools,
    mut requests: UnboundedReceiver<Request>,
) {
    let pace = tools.pace;
    let budget = Budget::new(CALLS_MAX, CALLS_PER);
    let fetch = tools.fetch(&settings.api, tools.answers(), budget);
    let shared = Shared {
        known: Arc::new(KnownEvents::default()),
        status: Arc::new(StatusQueue::default()),
        polls: Arc::new(Polls::new(pace.outage_after)),
    };
    let (hints, hinted) = unbounded_channel();
    // The tasks end with this function.
    let mut tasks = JoinSet::new();
    let crawl = Crawl::new(fetch.clone(), pace, tools.clock.clone(), &shared, hinted);
    tasks.spawn(guard_task(if follows_fees { crawl.with_fees() } else { crawl }.work()));
    tasks.spawn(guard_task(shared.status.clone().work(fetch.clone(), hints.clone(), shared.known.clone())));
    for _ in 0..polling::WORKERS {
        tasks.spawn(guard_task(shared.polls.clone().work(fetch.clone())));
    }
    let mut desk = Desk {
        settings,
        signer: signer.map(Arc::new),
        tools,
        shared,
        hints,
        sockets: Vec::new(),
        routes: AHashMap::new(),
        over_limit: VecDeque::new(),
        has_warned: false,
    };
    let mut batch = Vec::new();
    let mut ticks = interval(TICK_EVERY_MAX.min(pace.silent_after / 8).max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            taken = requests.recv_many(&mut batch, REQUESTS_MAX) => {
                if taken == 0 {
                    return;
                }
                batch.drain(..).for_each(|request| desk.take(request, &mut tasks));
                desk.add_all();
            }
            _ = ticks.tick() => desk.tick(),
        }
    }
}

/// Assigns markets to sockets.
struct Desk {
    settings: Settings,
    signer: Option<Arc<Signer>>,
    tools: Tools,
    shared: Shared,
    hints: UnboundedSender<Hint>,
    sockets: Vec<Socket>,
    /// Markets with books: the socket that carries them, or `None` for polled ones.
    routes: AHashMap<String, Option<usize>>,
    /// Markets that exceed the limit, in order of arrival.
    over_limit: VecDeque<String>,
    has_warned: bool,
}

struct Socket {
    changes: UnboundedSender<Change>,
    link_state: Arc<LinkState>,
    markets_count: usize,
    /// Markets that are not sent to the socket's task yet.
    added: Vec<String>,
}

impl Socket {
    /// Sends a change to the socket's task. A task that has ended has ended with the process.
    fn send(&mut self, change: Change) {
        // The change may be about an added market.
        self.add();
        let _ = self.changes.send(change);
    }

    fn add(&mut self) {
        if !self.added.is_empty() {
            let _ = self.changes.send(Change::Add(std::mem::take(&mut self.added)));
        }
    }
}

impl Desk {
    fn take(&mut self, request: Request, tasks: &mut JoinSet<()>) {
        match request {
            Request::Subscribe(subject) => self.enter(&subject.id, tasks),
            Request::Unsubscribe(subject) => self.leave(&subject.id, tasks),
            // A lost message shows in its sequence numbers.
            Request::Check(_) => {}
            Request::Resync(subject) | Request::Resubscribe(subject) => {
                if let Some(Some(socket)) = self.routes.get(&subject.id) {
                    self.send(*socket, Change::Resync(subject.id.clone()));
                }
                self.shared.polls.wrong(&subject.id);
            }
            Request::Status(subjects) => self.request_status(&subjects),
        }
        self.tools.health.subscribed_tokens.store(2 * self.routes.len() as u64, Relaxed);
    }

    fn request_status(&self, subjects: &[Arc<Subject>]) {
        let lasts = self.tools.pace.standing_every * STAKE_ROUNDS;
        for subject in subjects {
            self.shared.polls.traded(&subject.id, lasts);
        }
        self.shared.status.push(subjects.iter().map(|subject| subject.id.clone()));
    }

    fn enter(&mut self, ticker: &str, tasks: &mut JoinSet<()>) {
        if self.routes.contains_key(ticker) {
            return;
        }
        if self.routes.len() >= self.settings.markets_max {
            if !std::mem::replace(&mut self.has_warned, true) {
                let markets_max = self.settings.markets_max;
                tracing::warn!(
                    markets_max,
                    "more markets than venue.kalshi.markets_max: the others have no books unless users trade them"
                );
            }
            self.over_limit.push_back(ticker.to_owned());
            return self.shared.polls.add(ticker, None, true);
        }
        let signer = self.signer.clone();
        let route = signer.map(|signer| self.room(signer, tasks));
        let link_state = route.map(|socket| {
            self.sockets[socket].markets_count += 1;
            self.sockets[socket].added.push(ticker.to_owned());
            self.sockets[socket].link_state.clone()
        });
        self.routes.insert(ticker.to_owned(), route);
        self.shared.polls.add(ticker, link_state, false);
    }

    fn leave(&mut self, ticker: &str, tasks: &mut JoinSet<()>) {
        self.shared.polls.remove(ticker);
        let Some(route) = self.routes.remove(ticker) else {
            return self.over_limit.retain(|other| other != ticker);
        };
        if let Some(socket) = route {
            self.sockets[socket].markets_count -= 1;
            self.send(socket, Change::Remove(ticker.to_owned()));
        }
        if let Some(next) = self.over_limit.pop_front() {
            self.enter(&next, tasks);
        }
    }

    /// A socket with room for another market; opens one if there is none.
    fn room(&mut self, signer: Arc<Signer>, tasks: &mut JoinSet<()>) -> usize {
        if let Some(socket) = self.sockets.iter().position(|socket| socket.markets_count < MARKETS_MAX) {
            return socket;
        }
        let number = self.sockets.len();
        let Tools { clock, pace, .. } = &self.tools;
        let url = &self.settings.socket;
        // The first socket subscribes to the lifecycle of all markets.
        let books = Books::new(url, signer, clock.clone(), *pace, number == 0, self.hints.clone());
        let link_state = books.link_state();
        let port = self.tools.port(&format!("kalshi-{number}"));
        let link = Link { url: url.clone(), port, pace: *pace, ping: None };
        let (changes, changed) = unbounded_channel();
        tasks.spawn(guard_task(run_link(link, books, changed)));
        self.sockets.push(Socket { changes, link_state, markets_count: 0, added: Vec::new() });
        number
    }

    fn tick(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.send(Change::Tick));
    }

    /// Sends the markets of one batch to their sockets.
    fn add_all(&mut self) {
        self.sockets.iter_mut().for_each(Socket::add);
    }

    fn send(&mut self, socket: usize, change: Change) {
        self.sockets[socket].send(change);
    }
}

/// A text, percent-encoded for the path or query of a URL.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("writing to a string cannot fail");
        }
    }
    encoded
}
