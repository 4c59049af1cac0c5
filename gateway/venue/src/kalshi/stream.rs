//! Kalshi's adapter: catalogue crawl, the signed socket, and books by REST where there are no credentials
//! (upstream.md §4).
//!
//! ```text
//!  wants ─► run ─┬─► books    (a task for each socket: subscriptions, whole books anew)   ─┐ hints
//!                ├─► polling  (books that no socket brings)                                 │
//!                ├─► questions (how markets stand)                                         ─┤
//!                └─► crawl    (events and new markets) ◄────────────────────────────────────┘
//! ```
//!
//! All REST calls share one budget. upstream.md names none for reading; the venue's lowest public tier is 20 calls a
//! second, and a fifth of that is taken.

mod books;
mod commands;
mod crawl;
mod polling;
mod signer;
#[cfg(test)]
mod tests;

pub use signer::Signer;

use crate::live::{Budget, Link, Subject, Tools, Want, keep};
use crate::tape::Origin;
use ahash::AHashMap;
use books::{Books, Change, Hint, Line, MARKETS_MAX};
use crawl::{Crawl, Known, Questions, Shared};
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

/// A fifth of what the venue allows everybody: 4 a second, over ten of them, so that a few may be made at once.
const CALLS_MAX: u32 = 40;
const CALLS_PER: Duration = Duration::from_secs(10);
/// A stake that is named counts for so many of the rounds in which stakes are named.
const STAKE_ROUNDS: u32 = 3;
/// Wants that are taken together, so that a page of the catalogue is a few commands and not a hundred.
const WANTS_MAX: usize = 4_096;
/// Sockets look around this often, or more often where their patience is short.
const LOOK_EVERY_MAX: Duration = Duration::from_secs(1);

/// How Kalshi is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Addresses of its services, prefix included.
    pub api: String,
    pub socket: String,
    /// Of the account whose key signs the handshake; without it books are polled.
    pub key_id: Option<String>,
    /// Its RSA private key, in PEM.
    pub private_key_file: Option<PathBuf>,
    /// Markets whose books are subscribed at most.
    pub markets_max: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            api: "https://external-api.kalshi.com/trade-api/v2".into(),
            socket: "wss://external-api-ws.kalshi.com/trade-api/ws/v2".into(),
            key_id: None,
            private_key_file: None,
            markets_max: 20_000,
        }
    }
}

/// Runs until nobody wants anything any more.
pub async fn run(settings: Settings, signer: Option<Signer>, tools: Tools, mut wants: UnboundedReceiver<Want>) {
    let pace = tools.pace;
    let budget = Budget::new(CALLS_MAX, CALLS_PER);
    let fetch = tools.fetch(&settings.api, tools.answers(Origin::Kalshi), budget);
    let shared = Shared {
        known: Arc::new(Known::default()),
        questions: Arc::new(Questions::default()),
        polls: Arc::new(Polls::new(pace.outage_after)),
    };
    let (hints, hinted) = unbounded_channel();
    // They end with this function.
    let mut tasks = JoinSet::new();
    tasks.spawn(guard_task(Crawl::new(fetch.clone(), pace, tools.clock.clone(), &shared, hinted).work()));
    tasks.spawn(guard_task(shared.questions.clone().work(fetch.clone(), hints.clone(), shared.known.clone())));
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
        places: AHashMap::new(),
        beyond: VecDeque::new(),
        told_beyond: false,
    };
    let mut batch = Vec::new();
    let mut looks = interval(LOOK_EVERY_MAX.min(pace.silent_after / 8).max(Duration::from_millis(1)));
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            taken = wants.recv_many(&mut batch, WANTS_MAX) => {
                if taken == 0 {
                    return;
                }
                batch.drain(..).for_each(|want| desk.take(want, &mut tasks));
                desk.add_all();
            }
            _ = looks.tick() => desk.look(),
        }
    }
}

/// Which market's book comes by what.
struct Desk {
    settings: Settings,
    signer: Option<Arc<Signer>>,
    tools: Tools,
    shared: Shared,
    hints: UnboundedSender<Hint>,
    sockets: Vec<Socket>,
    /// Markets whose books come: by this socket, or by asking.
    places: AHashMap<String, Option<usize>>,
    /// Markets beyond the most that are subscribed, in order of arrival.
    beyond: VecDeque<String>,
    told_beyond: bool,
}

struct Socket {
    changes: UnboundedSender<Change>,
    line: Arc<Line>,
    markets_count: usize,
    /// Markets that it was not told of yet.
    added: Vec<String>,
}

impl Socket {
    /// One that takes nothing has ended with the process.
    fn tell(&mut self, change: Change) {
        // It may be about one of these.
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
    fn take(&mut self, want: Want, tasks: &mut JoinSet<()>) {
        match want {
            Want::Books(subject) => self.enter(&subject.id, tasks),
            Want::Leave(subject) => self.leave(&subject.id, tasks),
            // Its sequence numbers tell what is lost.
            Want::Look(_) => {}
            Want::Resync(subject) | Want::Resubscribe(subject) => {
                if let Some(Some(socket)) = self.places.get(&subject.id) {
                    self.tell(*socket, Change::Resync(subject.id.clone()));
                }
                self.shared.polls.wrong(&subject.id);
            }
            Want::Standing(subjects) => self.standing(&subjects),
        }
        self.tools.health.subscribed_tokens.store(2 * self.places.len() as u64, Relaxed);
    }

    fn standing(&self, subjects: &[Arc<Subject>]) {
        let lasts = self.tools.pace.standing_every * STAKE_ROUNDS;
        for subject in subjects {
            self.shared.polls.traded(&subject.id, lasts);
        }
        self.shared.questions.ask(subjects.iter().map(|subject| subject.id.clone()));
    }

    fn enter(&mut self, ticker: &str, tasks: &mut JoinSet<()>) {
        if self.places.contains_key(ticker) {
            return;
        }
        if self.places.len() >= self.settings.markets_max {
            if !std::mem::replace(&mut self.told_beyond, true) {
                let markets_max = self.settings.markets_max;
                tracing::warn!(markets_max, "more markets than venue.kalshi.markets_max; the others have no books");
            }
            self.beyond.push_back(ticker.to_owned());
            return self.shared.polls.add(ticker, None, true);
        }
        let signer = self.signer.clone();
        let place = signer.map(|signer| self.room(signer, tasks));
        let line = place.map(|socket| {
            self.sockets[socket].markets_count += 1;
            self.sockets[socket].added.push(ticker.to_owned());
            self.sockets[socket].line.clone()
        });
        self.places.insert(ticker.to_owned(), place);
        self.shared.polls.add(ticker, line, false);
    }

    fn leave(&mut self, ticker: &str, tasks: &mut JoinSet<()>) {
        self.shared.polls.remove(ticker);
        let Some(place) = self.places.remove(ticker) else {
            return self.beyond.retain(|other| other != ticker);
        };
        if let Some(socket) = place {
            self.sockets[socket].markets_count -= 1;
            self.tell(socket, Change::Remove(ticker.to_owned()));
        }
        if let Some(next) = self.beyond.pop_front() {
            self.enter(&next, tasks);
        }
    }

    /// A socket with room for one more; opened where there is none.
    fn room(&mut self, signer: Arc<Signer>, tasks: &mut JoinSet<()>) -> usize {
        if let Some(socket) = self.sockets.iter().position(|socket| socket.markets_count < MARKETS_MAX) {
            return socket;
        }
        let number = self.sockets.len();
        let Tools { clock, pace, .. } = &self.tools;
        let url = &self.settings.socket;
        // One of them hears what becomes of all markets.
        let books = Books::new(url, signer, clock.clone(), *pace, number == 0, self.hints.clone());
        let line = books.line();
        let port = self.tools.port(Origin::Kalshi, &format!("kalshi-{number}"));
        let link = Link { url: url.clone(), port, pace: *pace, ping: None };
        let (changes, changed) = unbounded_channel();
        tasks.spawn(guard_task(keep(link, books, changed)));
        self.sockets.push(Socket { changes, line, markets_count: 0, added: Vec::new() });
        number
    }

    fn look(&mut self) {
        self.sockets.iter_mut().for_each(|socket| socket.tell(Change::Look));
    }

    /// Tells the sockets of the markets that came together.
    fn add_all(&mut self) {
        self.sockets.iter_mut().for_each(Socket::add);
    }

    fn tell(&mut self, socket: usize, change: Change) {
        self.sockets[socket].tell(change);
    }
}

/// A text as a part of a URL's path or query.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            write!(encoded, "%{byte:02X}").expect("a text takes all that is written");
        }
    }
    encoded
}
