//! Order books: many sockets of a few hundred tokens each, and `POST /books` for what a socket leaves out
//! (upstream.md §3.1, §3.2).
//!
//! Both tokens of a market are on the same socket, and a book that comes by REST comes on behalf of the socket that
//! carries on with it: what that socket's life and death say about the book stays true.

use super::Settings;
use super::ask::Questions;
use super::lacking::Lacking;
use crate::live::{Fetch, Link, Port, Subject, Talk, Tools, Want, keep};
use crate::tape::Origin;
use ahash::AHashMap;
use host::thread::guard_task;
use serde::Serialize;
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
    let mut shelf = Shelf::default();
    let mut sockets: Vec<Socket> = Vec::new();
    let mut tasks = JoinSet::new();
    let mut batch = Vec::new();
    while wants.recv_many(&mut batch, WANTS_MAX).await > 0 {
        for want in batch.drain(..) {
            match want {
                Want::Books(subject) => shelf.join(subject),
                Want::Leave(subject) => shelf.leave(&subject),
                Want::Resync(subject) => ask(&shelf, &sockets, &subject, &subject.tokens),
                // The other token is the mirror of the first.
                Want::Look(subjects) => {
                    subjects.iter().for_each(|subject| ask(&shelf, &sockets, subject, &subject.tokens[..1]));
                }
                Want::Resubscribe(subject) => shelf.again(subject),
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

/// Asks for the books of these tokens on behalf of the socket that carries on with them.
fn ask(shelf: &Shelf, sockets: &[Socket], subject: &Subject, tokens: &[String]) {
    if let Some(socket) = shelf.place(subject).and_then(|number| sockets.get(number)) {
        socket.lacking.ask(tokens);
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
    struct Row<'a> {
        token_id: &'a str,
    }
    loop {
        let asked = lacking.due().await;
        let rows: Vec<Row<'_>> = asked.tokens.iter().map(|token| Row { token_id: token }).collect();
        let body = serde_json::to_string(&rows).expect("texts can be written");
        let answered = clob.post_for(&port, "/books", &body, || lacking.counts(&asked)).await;
        if answered.is_none_or(|answer| answer.status != 200) {
            lacking.again(asked);
        }
    }
}

/// What changes on one socket.
#[derive(Debug, Default)]
struct Change {
    leave: Vec<Arc<Subject>>,
    join: Vec<Arc<Subject>>,
    /// Lost by the venue: given up and joined anew.
    again: Vec<Arc<Subject>>,
}

/// Which market is on which socket. How many there are at most is the feed's to say: it names no more.
#[derive(Default)]
struct Shelf {
    /// Markets on each socket.
    loads: Vec<usize>,
    places: AHashMap<String, usize>,
    changes: AHashMap<usize, Change>,
}

impl Shelf {
    fn place(&self, subject: &Subject) -> Option<usize> {
        self.places.get(&subject.condition).copied()
    }

    fn join(&mut self, subject: Arc<Subject>) {
        if self.places.contains_key(&subject.condition) {
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
        let Some(number) = self.places.remove(&subject.condition) else { return };
        self.loads[number] -= 1;
        let change = self.changes.entry(number).or_default();
        let joined = change.join.iter().position(|joining| joining.condition == subject.condition);
        match joined {
            Some(at) => drop(change.join.remove(at)),
            None => change.leave.push(subject.clone()),
        }
    }

    fn again(&mut self, subject: Arc<Subject>) {
        if let Some(number) = self.place(&subject) {
            self.changes.entry(number).or_default().again.push(subject);
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
        let Change { mut leave, join, mut again } = change;
        leave.retain(|subject| self.markets.remove(&subject.condition).is_some());
        again.retain(|subject| self.markets.contains_key(&subject.condition));
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
        if !again.is_empty() {
            let assets_ids = tokens(again.iter());
            self.lacking.expect(&assets_ids);
            for operation in ["unsubscribe", "subscribe"] {
                out.push(written(&Operation { assets_ids: assets_ids.clone(), operation }));
            }
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

    /// Changes in a few words: `socket -left +joined ~lost`.
    fn told(shelf: &mut Shelf) -> Vec<String> {
        let told = shelf.changes().into_iter().map(|(number, Change { leave, join, again })| {
            let ids = |subjects: &[Arc<Subject>], sign: &str| -> String {
                subjects.iter().map(|subject| format!(" {sign}{}", subject.id)).collect()
            };
            let joined = if join.len() < 5 { ids(&join, "+") } else { format!(" {} joined", join.len()) };
            format!("{number}{}{joined}{}", ids(&leave, "-"), ids(&again, "~"))
        });
        told.collect()
    }

    #[test]
    fn markets_fill_sockets_in_turn_and_leave_room_behind() {
        let mut shelf = Shelf::default();
        (0..401).for_each(|number| shelf.join(market(number)));
        assert_eq!(told(&mut shelf), ["0 200 joined", "1 200 joined", "2 +400"]);
        shelf.join(market(7));
        assert_eq!(told(&mut shelf), [""; 0], "it is there already");
        shelf.leave(&market(7));
        shelf.join(market(500));
        assert_eq!(told(&mut shelf), ["0 -7 +500"], "room is used again");
        shelf.join(market(600));
        shelf.leave(&market(600));
        assert_eq!(told(&mut shelf), ["2"], "what came and went is not told");
        shelf.again(market(500));
        shelf.again(market(7));
        assert_eq!(told(&mut shelf), ["0 ~500"], "what is not there cannot be lost");
        shelf.leave(&market(999));
        assert_eq!(told(&mut shelf), [""; 0]);
        assert_eq!((shelf.places.len(), shelf.loads.clone()), (401, vec![200, 200, 1]));
        println!("markets on sockets: 7 cases");
    }

    #[test]
    fn what_is_said_on_a_socket_follows_its_changes() {
        let clock = host::clock::Clock::fake(engine::time::Timestamp::from_secs(1_788_000_000));
        let (port, _captures) = crate::live::lone_port(clock);
        let lacking = Arc::new(Lacking::new(std::time::Duration::from_secs(30)));
        let mut books = Books { port, markets: AHashMap::new(), open: false, lacking };
        let (mut out, mut cases) = (Vec::new(), 0);
        books.change(Change { join: vec![market(1)], ..Change::default() }, &mut out);
        assert_eq!(out, [""; 0], "it is said when the connection opens");
        books.open(&mut out);
        let first = r#"{"assets_ids":["11","12"],"type":"market","initial_dump":true,"custom_feature_enabled":true}"#;
        assert_eq!(std::mem::take(&mut out), [first]);
        let one = |subject| vec![subject];
        for (change, said, count) in [
            (Change { join: one(market(2)), ..Change::default() }, &[r#"["21","22"] subscribe"#][..], 4),
            (
                Change { again: one(market(1)), ..Change::default() },
                &[r#"["11","12"] unsubscribe"#, r#"["11","12"] subscribe"#],
                4,
            ),
            (Change { again: one(market(3)), ..Change::default() }, &[], 4),
            (
                Change { leave: one(market(1)), again: one(market(1)), ..Change::default() },
                &[r#"["11","12"] unsubscribe"#],
                2,
            ),
            (Change { leave: one(market(9)), ..Change::default() }, &[], 2),
        ] {
            books.change(change, &mut out);
            let told = std::mem::take(&mut out);
            let told: Vec<serde_json::Value> = told.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            let told: Vec<String> = told
                .iter()
                .map(|frame| format!("{} {}", frame["assets_ids"], frame["operation"].as_str().unwrap()))
                .collect();
            assert_eq!(told, said);
            assert_eq!(books.port.health.subscribed_tokens.load(Relaxed), count);
            cases += 1;
        }
        println!("what is said on a socket: {} cases", cases + 2);
    }
}
