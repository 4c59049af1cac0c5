//! Order books: many sockets of a few hundred tokens each, and `POST /books` for what a socket leaves out
//! (upstream.md §3.1, §3.2).
//!
//! Both tokens of a market are on the same socket, and a book that comes by REST comes on behalf of the socket that
//! carries on with it: what that socket's life and death say about the book stays true.

use super::Settings;
use super::ask::Questions;
use super::lacking::Lacking;
use crate::thread::guard_task;
use crate::venue::live::{Fetch, Link, Port, Subject, Talk, Tools, Want, keep};
use crate::venue::tape::Origin;
use ahash::{AHashMap, AHashSet};
use serde::Serialize;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// Markets on one socket: 400 tokens, of the 500 that the venue allows.
const MARKETS_PER_SOCKET: usize = 200;
const PING_EVERY: Duration = Duration::from_secs(10);
/// Wants that are taken together, so that a page of the catalogue is one subscription and not a hundred.
const WANTS_MAX: usize = 4_096;

/// Keeps the sockets until the feed wants nothing any more.
pub async fn run(
    settings: &Settings,
    tools: &Tools,
    clob: &Fetch,
    questions: &Questions,
    mut wants: UnboundedReceiver<Want>,
) {
    let mut shelf = Shelf::new(settings.tokens_max / 2);
    let mut sockets: Vec<Socket> = Vec::new();
    let mut tasks = JoinSet::new();
    let mut batch = Vec::new();
    while wants.recv_many(&mut batch, WANTS_MAX).await > 0 {
        for want in batch.drain(..) {
            match want {
                Want::Books(subject) => shelf.join(subject),
                Want::Leave(subject) => shelf.leave(&subject),
                Want::Resync(subject) => {
                    if let Some(socket) = shelf.place(&subject).and_then(|number| sockets.get(number)) {
                        socket.lacking.ask(&subject.tokens);
                    }
                }
                Want::Standing(subjects) => questions.put(subjects.iter().map(|subject| &**subject)),
            }
        }
        for (number, change) in shelf.changes() {
            while sockets.len() <= number {
                sockets.push(Socket::open(sockets.len(), settings, tools, clob, &mut tasks));
            }
            // A socket ends only with this function.
            let _ = sockets[number].changes.send(change);
        }
    }
}

/// A socket as it is told of changes.
struct Socket {
    changes: UnboundedSender<Change>,
    lacking: Arc<Lacking>,
}

impl Socket {
    fn open(number: usize, settings: &Settings, tools: &Tools, clob: &Fetch, tasks: &mut JoinSet<()>) -> Socket {
        let port = tools.port(Origin::Polymarket, &format!("market-{number}"));
        let lacking = Arc::new(Lacking::new(tools.pace.silent_after));
        let (changes, receiver) = unbounded_channel();
        let url = settings.market_socket.clone();
        let link = Link { url, port: port.clone(), pace: tools.pace, ping: Some((PING_EVERY, "PING")) };
        let talk = Books { port: port.clone(), markets: AHashMap::new(), open: false, lacking: lacking.clone() };
        tasks.spawn(guard_task(keep(link, talk, receiver)));
        tasks.spawn(guard_task(fill(clob.clone(), port, lacking.clone())));
        Socket { changes, lacking }
    }
}

/// Asks for the whole books that a socket's tokens lack.
async fn fill(clob: Fetch, port: Port, lacking: Arc<Lacking>) {
    #[derive(Serialize)]
    struct Asked<'a> {
        token_id: &'a str,
    }
    loop {
        let tokens = lacking.due().await;
        let asked: Vec<Asked<'_>> = tokens.iter().map(|token| Asked { token_id: token }).collect();
        let body = serde_json::to_string(&asked).expect("texts can be written");
        let answered = clob.post_for(&port, "/books", &body).await;
        if answered.is_none_or(|answer| answer.status != 200) {
            lacking.again(tokens);
        }
    }
}

/// What changes on one socket.
#[derive(Debug, Default)]
struct Change {
    leave: Vec<Arc<Subject>>,
    join: Vec<Arc<Subject>>,
}

/// Which market is on which socket.
struct Shelf {
    /// Markets on each socket.
    loads: Vec<usize>,
    places: AHashMap<String, usize>,
    markets_max: usize,
    /// Wanted, and without room so far; first come, first served.
    waiting: VecDeque<Arc<Subject>>,
    unwanted: AHashSet<String>,
    changes: AHashMap<usize, Change>,
}

impl Shelf {
    fn new(markets_max: usize) -> Shelf {
        Shelf {
            loads: Vec::new(),
            places: AHashMap::new(),
            markets_max,
            waiting: VecDeque::new(),
            unwanted: AHashSet::new(),
            changes: AHashMap::new(),
        }
    }

    fn place(&self, subject: &Subject) -> Option<usize> {
        self.places.get(&subject.condition).copied()
    }

    fn join(&mut self, subject: Arc<Subject>) {
        if self.places.contains_key(&subject.condition) {
            return;
        }
        if self.places.len() >= self.markets_max {
            if !self.unwanted.remove(&subject.condition) {
                if self.waiting.is_empty() {
                    tracing::warn!(markets = self.markets_max, "no room for the books of more markets");
                }
                self.waiting.push_back(subject);
            }
            return;
        }
        let room = self.loads.iter().position(|&load| load < MARKETS_PER_SOCKET);
        let number = room.unwrap_or_else(|| {
            self.loads.push(0);
            self.loads.len() - 1
        });
        self.loads[number] += 1;
        self.places.insert(subject.condition.clone(), number);
        self.changes.entry(number).or_default().join.push(subject);
    }

    fn leave(&mut self, subject: &Arc<Subject>) {
        let Some(number) = self.places.remove(&subject.condition) else {
            // It waits; looked at when its turn comes.
            if self.waiting.iter().any(|waiting| waiting.condition == subject.condition) {
                self.unwanted.insert(subject.condition.clone());
            }
            return;
        };
        self.loads[number] -= 1;
        let change = self.changes.entry(number).or_default();
        let joined = change.join.iter().position(|joining| joining.condition == subject.condition);
        match joined {
            Some(at) => drop(change.join.remove(at)),
            None => change.leave.push(subject.clone()),
        }
        while let Some(next) = self.waiting.pop_front() {
            if !self.unwanted.remove(&next.condition) {
                return self.join(next);
            }
        }
    }

    /// What has changed since the last call, by socket.
    fn changes(&mut self) -> Vec<(usize, Change)> {
        let mut changes: Vec<_> = self.changes.drain().collect();
        changes.sort_by_key(|(number, _)| *number);
        changes
    }
}

/// What is said on one socket.
struct Books {
    port: Port,
    markets: AHashMap<String, Arc<Subject>>,
    open: bool,
    lacking: Arc<Lacking>,
}

/// The first frame of a connection.
#[derive(Serialize)]
struct Subscription<'a> {
    assets_ids: Vec<&'a str>,
    #[serde(rename = "type")]
    kind: &'static str,
    initial_dump: bool,
    custom_feature_enabled: bool,
}

/// A later one.
#[derive(Serialize)]
struct Operation<'a> {
    assets_ids: Vec<&'a str>,
    operation: &'static str,
}

fn tokens<'a>(subjects: impl Iterator<Item = &'a Arc<Subject>>) -> Vec<&'a str> {
    subjects.flat_map(|subject| subject.tokens.iter().map(String::as_str)).collect()
}

fn written(frame: &impl Serialize) -> String {
    serde_json::to_string(frame).expect("texts can be written")
}

impl Talk for Books {
    type Change = Change;

    fn open(&mut self, out: &mut Vec<String>) {
        let assets_ids = tokens(self.markets.values());
        self.open = true;
        self.port.health.subscribed_tokens.fetch_add(assets_ids.len() as u64, Relaxed);
        self.lacking.open(&assets_ids);
        out.push(written(&Subscription {
            assets_ids,
            kind: "market",
            initial_dump: true,
            custom_feature_enabled: true,
        }));
    }

    fn closed(&mut self) {
        if std::mem::replace(&mut self.open, false) {
            self.port.health.subscribed_tokens.fetch_sub(2 * self.markets.len() as u64, Relaxed);
        }
        self.lacking.close();
    }

    fn change(&mut self, change: Change, out: &mut Vec<String>) {
        let Change { mut leave, join } = change;
        leave.retain(|subject| self.markets.remove(&subject.condition).is_some());
        for subject in &join {
            self.markets.insert(subject.condition.clone(), subject.clone());
        }
        if !self.open {
            return;
        }
        let health = &self.port.health.subscribed_tokens;
        if !leave.is_empty() {
            let assets_ids = tokens(leave.iter());
            health.fetch_sub(assets_ids.len() as u64, Relaxed);
            self.lacking.forget(&assets_ids);
            out.push(written(&Operation { assets_ids, operation: "unsubscribe" }));
        }
        if !join.is_empty() {
            let assets_ids = tokens(join.iter());
            health.fetch_add(assets_ids.len() as u64, Relaxed);
            self.lacking.expect(&assets_ids);
            out.push(written(&Operation { assets_ids, operation: "subscribe" }));
        }
    }

    fn hear(&mut self, text: &str, _: &mut Vec<String>) -> Result<(), String> {
        self.lacking.hear(text);
        Ok(())
    }

    fn listens(&self) -> bool {
        !self.markets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market(number: usize) -> Arc<Subject> {
        Arc::new(Subject {
            origin: Origin::Polymarket,
            id: number.to_string(),
            condition: format!("0x{number:064x}"),
            tokens: [format!("{number}1"), format!("{number}2")],
        })
    }

    /// Changes in a few words: `socket +joined -left`.
    fn told(shelf: &mut Shelf) -> Vec<String> {
        let told = shelf.changes().into_iter().map(|(number, change)| {
            let ids = |subjects: &[Arc<Subject>], sign: &str| -> String {
                subjects.iter().map(|subject| format!(" {sign}{}", subject.id)).collect()
            };
            match change.join.len() {
                0..=4 => format!("{number}{}{}", ids(&change.leave, "-"), ids(&change.join, "+")),
                many => format!("{number}{} {many} joined", ids(&change.leave, "-")),
            }
        });
        told.collect()
    }

    #[test]
    fn markets_fill_sockets_in_turn_and_leave_room_behind() {
        let mut shelf = Shelf::new(402);
        (0..401).for_each(|number| shelf.join(market(number)));
        assert_eq!(told(&mut shelf), ["0 200 joined", "1 200 joined", "2 +400"]);
        shelf.join(market(7));
        assert_eq!(told(&mut shelf), [""; 0], "it is there already");
        shelf.leave(&market(7));
        shelf.join(market(500));
        assert_eq!(told(&mut shelf), ["0 -7 +500"], "room is used again");
        for number in 501..505 {
            shelf.join(market(number));
        }
        assert_eq!(told(&mut shelf), ["2 +501"], "three wait for room");
        shelf.leave(&market(502));
        shelf.leave(&market(400));
        assert_eq!(told(&mut shelf), ["2 -400 +503"], "one that waits no more is passed over");
        shelf.leave(&market(503));
        assert_eq!(told(&mut shelf), ["2 -503 +504"]);
        shelf.leave(&market(504));
        shelf.join(market(600));
        shelf.leave(&market(600));
        assert_eq!(told(&mut shelf), ["2 -504"], "what came and went is not told");
        shelf.leave(&market(999));
        assert_eq!(told(&mut shelf), [""; 0]);
        assert_eq!((shelf.places.len(), shelf.loads.clone()), (401, vec![200, 200, 1]));
        println!("markets on sockets: 8 cases");
    }
}
