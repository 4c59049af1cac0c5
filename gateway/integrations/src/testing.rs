//! A shard on a thread, and a receiver of webhooks that holds every request until a test answers it.

use edge::engine_client::Reply;
use engine::book::Books;
use engine::command::{Answer, Command, CreateUser, Envelope, IssueKey, NewAlertTarget, Secret};
use engine::directory::Directory;
use engine::id::UserId;
use engine::market::catalog::Catalog;
use engine::notice::Notice;
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use engine::user::alerts::{AlertKinds, Channel};
use engine::user::{AlertTarget, Users};
use host::thread::Stop;
use parking_lot::Mutex;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// 2026-10-02T09:15:00Z.
pub const NOW: Timestamp = Timestamp(1_790_932_500_000_000);
/// After this time a test waits in vain.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Answers of a shard.
struct Answers;

impl Outbox<Reply> for Answers {
    fn room(&self) -> Room {
        Room::Ample
    }
    fn record(&mut self, _: UserId, _: Timestamp, _: &[u8]) {}
    fn notice(&mut self, _: Notice) {}
    fn answer(&mut self, reply: Reply, answer: Answer) {
        reply.fill(answer);
    }
}

/// A shard with users from 1.
pub struct ShardThread {
    pub inbox: Arc<Ring<Envelope<Reply>>>,
    stop: Stop,
    thread: Option<JoinHandle<()>>,
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        self.stop.set();
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

impl ShardThread {
    pub fn start(users: u64) -> ShardThread {
        let (inbox, stop) = (Arc::new(Ring::new(64)), Stop::new());
        let (asked, stopping) = (Arc::clone(&inbox), stop.clone());
        let thread = std::thread::spawn(move || {
            let (rules, books, catalog) =
                (Arc::new(Rules::default()), Arc::new(Books::new()), Arc::new(Catalog::new()));
            let directory = Arc::new(Directory::default());
            let mut shard = Shard::new(0, 1, Users::default(), rules, books, catalog, directory);
            while !stopping.is_set() {
                if !shard.turn(&asked, NOW, &mut Answers) {
                    asked.wait(Duration::from_millis(2));
                }
            }
        });
        let shard = ShardThread { inbox, stop, thread: Some(thread) };
        for user in 1..=users {
            let create = CreateUser { sub: None, email: None, grant: None, api_balance: None };
            assert!(!matches!(shard.ask(user, Command::CreateUser(create)), Answer::Refused(_)));
        }
        shard
    }

    pub fn ask(&self, user: u64, command: Command) -> Answer {
        let (sender, answered) = mpsc::sync_channel(1);
        let reply = Reply::Thread(sender);
        let envelope = Envelope { owner: UserId(user), command, received_at: NOW, reply };
        assert!(self.inbox.push(envelope).is_ok(), "there is room");
        answered.recv_timeout(PATIENCE).expect("an answer")
    }

    pub fn add(&self, user: u64, channel: Channel, url: &str) -> AlertTarget {
        let new = NewAlertTarget { channel, url: url.to_owned(), secret: None, label: None, kinds: AlertKinds::ALL };
        match self.ask(user, Command::AddAlertTarget(Box::new(new))) {
            Answer::AlertTarget(target) => *target,
            other => panic!("{other:?}"),
        }
    }

    /// An alert to all targets of the user: key number `key` of all users is created.
    pub fn raise(&self, user: u64, key: u8) {
        let secret = Secret { hash: [key; 32], alias_hash: [key; 32], prefix: "svc_live_4f0c9d2".to_owned() };
        let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None };
        assert!(matches!(self.ask(user, Command::IssueKey(issue)), Answer::Key(_)));
    }
}

/// A target of user 1.
pub fn target(channel: Channel, url: &str) -> AlertTarget {
    ShardThread::start(1).add(1, channel, url)
}

/// Repeats `ready` until it returns something.
#[track_caller]
pub fn eventually<T>(what: &str, mut ready: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = ready() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A receiver on loopback; it ends with the process.
pub struct Receiver {
    address: SocketAddr,
    /// Paths of requests that wait for an answer, with their connections.
    held: Arc<Mutex<Vec<(String, TcpStream)>>>,
}

impl Receiver {
    pub fn start() -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let held = Arc::<Mutex<Vec<(String, TcpStream)>>>::default();
        let holding = Arc::clone(&held);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(path) = request(&stream) {
                    holding.lock().push((path, stream));
                }
            }
        });
        Receiver { address, held }
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The paths of the requests that wait, once there are `count`.
    #[track_caller]
    pub fn held(&self, count: usize) -> Vec<String> {
        eventually("requests", || {
            let paths: Vec<String> = self.held.lock().iter().map(|(path, _)| path.clone()).collect();
            (paths.len() >= count).then_some(paths)
        })
    }

    /// Answers all requests that wait with 200. Returns their count.
    pub fn answer(&self) -> usize {
        let held = std::mem::take(&mut *self.held.lock());
        let count = held.len();
        for (_, mut stream) in held {
            // A client that has left reads no answer.
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
        count
    }
}

/// Reads a request; returns its path.
fn request(stream: &TcpStream) -> Option<String> {
    let mut reader = BufReader::new(stream);
    let (mut path, mut length) = (None, 0);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        match line.strip_prefix("content-length: ") {
            Some(count) => length = count.parse().ok()?,
            None if path.is_none() => path = line.split(' ').nth(1).map(str::to_owned),
            None => {}
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    path
}
