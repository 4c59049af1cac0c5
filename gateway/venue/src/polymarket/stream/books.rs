//! Order books: sockets of up to 400 tokens each, and `POST /books` for books that a socket does not send
//! (gateway/docs/live-venues.md §3.1, §3.2).
//!
//! Both tokens of a market are on the same socket. A book from REST is captured for the socket that sends its later
//! changes, so that the life of that socket also counts for this book.

use super::Settings;
use super::missing::MissingBooks;
use super::status::StatusQueue;
use crate::live::{Fetch, Link, Port, Protocol, Request, Subject, Tools, run_link};
use ahash::AHashMap;
use host::thread::guard_task;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::task::JoinSet;

/// Markets per socket: 400 tokens; the venue allows 500.
const MARKETS_PER_SOCKET: usize = 200;
const PING_EVERY: Duration = Duration::from_secs(10);
/// Most requests that are handled together, so that a page of the catalogue becomes one subscription.
const REQUESTS_MAX: usize = 4_096;

/// Runs the sockets until the request channel closes.
pub async fn run(
    settings: &Settings,
    tools: &Tools,
    clob: &Fetch,
    queue: &StatusQueue,
    mut requests: UnboundedReceiver<Request>,
) {
    let mut assignments = Assignments::default();
    let mut sockets: Vec<Socket> = Vec::new();
    let mut tasks = JoinSet::new();
    let mut batch = Vec::new();
    while requests.recv_many(&mut batch, REQUESTS_MAX).await > 0 {
        for request in batch.drain(..) {
            match request {
                Request::Subscribe(subject) => assignments.join(subject),
                Request::Unsubscribe(subject) => assignments.leave(&subject),
                Request::Resync(subject) => request_books(&assignments, &sockets, &subject, &subject.tokens),
                // The second token mirrors the first.
                Request::Check(subjects) => {
                    subjects
                        .iter()
                        .for_each(|subject| request_books(&assignments, &sockets, subject, &subject.tokens[..1]));
                }
                Request::Resubscribe(subject) => assignments.resubscribe(subject),
                Request::Status(subjects) => queue.put(subjects.iter().map(|subject| &**subject)),
            }
        }
        for (number, change) in assignments.changes() {
            while sockets.len() <= number {
                sockets.push(Socket::open(sockets.len(), settings, tools, clob, &mut tasks));
            }
            // A socket's task ends only with this function.
            let _ = sockets[number].changes.send(change);
        }
    }
}

/// Requests the books of these tokens for the socket that sends their changes.
fn request_books(assignments: &Assignments, sockets: &[Socket], subject: &Subject, tokens: &[String]) {
    if let Some(socket) = assignments.socket_of(subject).and_then(|number| sockets.get(number)) {
        socket.missing.request(tokens);
    }
}

/// The handle of a socket's task.
struct Socket {
    changes: UnboundedSender<Change>,
    missing: Arc<MissingBooks>,
}

impl Socket {
    fn open(number: usize, settings: &Settings, tools: &Tools, clob: &Fetch, tasks: &mut JoinSet<()>) -> Socket {
        let port = tools.port(&format!("market-{number}"));
        let missing = Arc::new(MissingBooks::new(tools.pace.silent_after));
        let (changes, receiver) = unbounded_channel();
        let url = settings.market_socket.clone();
        let link = Link { url, port: port.clone(), pace: tools.pace, ping: Some((PING_EVERY, "PING")) };
        let protocol = Books { port: port.clone(), markets: AHashMap::new(), open: false, missing: missing.clone() };
        tasks.spawn(guard_task(run_link(link, protocol, receiver)));
        tasks.spawn(guard_task(fill(clob.clone(), port, missing.clone())));
        Socket { changes, missing }
    }
}

/// Requests the missing books of a socket.
async fn fill(clob: Fetch, port: Port, missing: Arc<MissingBooks>) {
    #[derive(Serialize)]
    struct Row<'a> {
        token_id: &'a str,
    }
    loop {
        let call = missing.due().await;
        let rows: Vec<Row<'_>> = call.tokens.iter().map(|token| Row { token_id: token }).collect();
        let body = serde_json::to_string(&rows).expect("texts can be written");
        let answered = clob.post_for(&port, "/books", &body, || missing.is_current(&call)).await;
        if answered.is_none_or(|answer| answer.status != 200) {
            missing.retry(call);
        }
    }
}

/// A change of the subscriptions of one socket.
#[derive(Debug, Default)]
struct Change {
    leave: Vec<Arc<Subject>>,
    join: Vec<Arc<Subject>>,
    /// Subscriptions that the venue has lost: unsubscribed and subscribed again.
    resubscribe: Vec<Arc<Subject>>,
}

/// Assigns markets to sockets. The feed limits the number of markets.
#[derive(Default)]
struct Assignments {
    /// Number of markets on each socket.
    loads: Vec<usize>,
    sockets: AHashMap<String, usize>,
    changes: AHashMap<usize, Change>,
}

impl Assignments {
    fn socket_of(&self, subject: &Subject) -> Option<usize> {
        self.sockets.get(&subject.condition).copied()
    }

    fn join(&mut self, subject: Arc<Subject>) {
        if self.sockets.contains_key(&subject.condition) {
            return;
        }
        let room = self.loads.iter().position(|&load| load < MARKETS_PER_SOCKET);
        let number = room.unwrap_or_else(|| {
            self.loads.push(0);
            self.loads.len() - 1
        });
        self.loads[number] += 1;
        self.sockets.insert(subject.condition.clone(), number);
        self.changes.entry(number).or_default().join.push(subject);
    }

    fn leave(&mut self, subject: &Arc<Subject>) {
        let Some(number) = self.sockets.remove(&subject.condition) else { return };
        self.loads[number] -= 1;
        let change = self.changes.entry(number).or_default();
        let joined = change.join.iter().position(|joining| joining.condition == subject.condition);
        match joined {
            Some(at) => drop(change.join.remove(at)),
            None => change.leave.push(subject.clone()),
        }
    }

    fn resubscribe(&mut self, subject: Arc<Subject>) {
        if let Some(number) = self.socket_of(&subject) {
            self.changes.entry(number).or_default().resubscribe.push(subject);
        }
    }

    /// The changes since the last call, by socket.
    fn changes(&mut self) -> Vec<(usize, Change)> {
        let mut changes: Vec<_> = self.changes.drain().collect();
        changes.sort_by_key(|(number, _)| *number);
        changes
    }
}

/// The protocol of one socket.
struct Books {
    port: Port,
    markets: AHashMap<String, Arc<Subject>>,
    open: bool,
    missing: Arc<MissingBooks>,
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

/// A later frame.
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

impl Protocol for Books {
    type Change = Change;

    fn open(&mut self, out: &mut Vec<String>) {
        let assets_ids = tokens(self.markets.values());
        self.open = true;
        self.port.health.subscribed_tokens.fetch_add(assets_ids.len() as u64, Relaxed);
        self.missing.open(&assets_ids);
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
        self.missing.close();
    }

    fn change(&mut self, change: Change, out: &mut Vec<String>) {
        let Change { mut leave, join, mut resubscribe } = change;
        leave.retain(|subject| self.markets.remove(&subject.condition).is_some());
        resubscribe.retain(|subject| self.markets.contains_key(&subject.condition));
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
            self.missing.forget(&assets_ids);
            out.push(written(&Operation { assets_ids, operation: "unsubscribe" }));
        }
        if !resubscribe.is_empty() {
            let assets_ids = tokens(resubscribe.iter());
            self.missing.expect(&assets_ids);
            for operation in ["unsubscribe", "subscribe"] {
                out.push(written(&Operation { assets_ids: assets_ids.clone(), operation }));
            }
        }
        if !join.is_empty() {
            let assets_ids = tokens(join.iter());
            health.fetch_add(assets_ids.len() as u64, Relaxed);
            self.missing.expect(&assets_ids);
            out.push(written(&Operation { assets_ids, operation: "subscribe" }));
        }
    }

    fn receive(&mut self, text: &str, _: &mut Vec<String>) -> Result<(), String> {
        self.missing.receive(text);
        Ok(())
    }

    fn is_subscribed(&self) -> bool {
        !self.markets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::POLYMARKET;

    fn market(number: usize) -> Arc<Subject> {
        Arc::new(Subject {
            origin: POLYMARKET,
            id: number.to_string(),
            condition: format!("0x{number:064x}"),
            tokens: [format!("{number}1"), format!("{number}2")],
        })
    }

    /// A short form of changes: `socket -left +joined ~lost`.
    fn brief(assignments: &mut Assignments) -> Vec<String> {
        let brief = assignments.changes().into_iter().map(|(number, Change { leave, join, resubscribe })| {
            let ids = |subjects: &[Arc<Subject>], sign: &str| -> String {
                subjects.iter().map(|subject| format!(" {sign}{}", subject.id)).collect()
            };
            let joined = if join.len() < 5 { ids(&join, "+") } else { format!(" {} joined", join.len()) };
            format!("{number}{}{joined}{}", ids(&leave, "-"), ids(&resubscribe, "~"))
        });
        brief.collect()
    }

    #[test]
    fn markets_fill_sockets_in_order_and_free_their_places() {
        let mut assignments = Assignments::default();
        (0..401).for_each(|number| assignments.join(market(number)));
        assert_eq!(brief(&mut assignments), ["0 200 joined", "1 200 joined", "2 +400"]);
        assignments.join(market(7));
        assert_eq!(brief(&mut assignments), [""; 0], "joined twice");
        assignments.leave(&market(7));
        assignments.join(market(500));
        assert_eq!(brief(&mut assignments), ["0 -7 +500"], "a free place is used again");
        assignments.join(market(600));
        assignments.leave(&market(600));
        assert_eq!(brief(&mut assignments), ["2"], "joined and left before the change was sent");
        assignments.resubscribe(market(500));
        assignments.resubscribe(market(7));
        assert_eq!(brief(&mut assignments), ["0 ~500"], "an unassigned market is ignored");
        assignments.leave(&market(999));
        assert_eq!(brief(&mut assignments), [""; 0]);
        assert_eq!((assignments.sockets.len(), assignments.loads.clone()), (401, vec![200, 200, 1]));
        println!("markets on sockets: 7 cases");
    }

    #[test]
    fn a_socket_sends_its_changes() {
        let clock = host::clock::Clock::fake(engine::time::Timestamp::from_secs(1_788_000_000));
        let (port, _captures) = crate::live::lone_port(clock);
        let missing = Arc::new(MissingBooks::new(std::time::Duration::from_secs(30)));
        let mut books = Books { port, markets: AHashMap::new(), open: false, missing };
        let (mut out, mut cases) = (Vec::new(), 0);
        books.change(Change { join: vec![market(1)], ..Change::default() }, &mut out);
        assert_eq!(out, [""; 0], "sent before the connection is open");
        books.open(&mut out);
        let first = r#"{"assets_ids":["11","12"],"type":"market","initial_dump":true,"custom_feature_enabled":true}"#;
        assert_eq!(std::mem::take(&mut out), [first]);
        let one = |subject| vec![subject];
        for (change, expected, count) in [
            (Change { join: one(market(2)), ..Change::default() }, &[r#"["21","22"] subscribe"#][..], 4),
            (
                Change { resubscribe: one(market(1)), ..Change::default() },
                &[r#"["11","12"] unsubscribe"#, r#"["11","12"] subscribe"#],
                4,
            ),
            (Change { resubscribe: one(market(3)), ..Change::default() }, &[], 4),
            (
                Change { leave: one(market(1)), resubscribe: one(market(1)), ..Change::default() },
                &[r#"["11","12"] unsubscribe"#],
                2,
            ),
            (Change { leave: one(market(9)), ..Change::default() }, &[], 2),
        ] {
            books.change(change, &mut out);
            let brief = std::mem::take(&mut out);
            let brief: Vec<serde_json::Value> = brief.iter().map(|text| serde_json::from_str(text).unwrap()).collect();
            let brief: Vec<String> = brief
                .iter()
                .map(|frame| format!("{} {}", frame["assets_ids"], frame["operation"].as_str().unwrap()))
                .collect();
            assert_eq!(brief, expected);
            assert_eq!(books.port.health.subscribed_tokens.load(Relaxed), count);
            cases += 1;
        }
        println!("texts of a socket: {} cases", cases + 2);
    }
}
