//! What tests ask a shard, and a receiver of webhooks that holds every request until a test answers it.

use edge::testing::ShardThread;
use engine::command::{Answer, Command, IssueKey, NewAlertTarget, Secret};
use engine::time::Timestamp;
use engine::user::AlertTarget;
use engine::user::alerts::{AlertKinds, Channel};
use parking_lot::Mutex;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 2026-10-02T09:15:00Z.
pub const NOW: Timestamp = Timestamp(1_790_932_500_000_000);
/// After this time a test waits in vain.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// What tests of alerts ask a shard.
pub trait AlertShard {
    fn add(&self, user: u64, channel: Channel, url: &str) -> AlertTarget;
    /// An alert to all targets of the user: key number `key` of all users is created.
    fn raise(&self, user: u64, key: u8);
}

impl AlertShard for ShardThread {
    fn add(&self, user: u64, channel: Channel, url: &str) -> AlertTarget {
        let new = NewAlertTarget { channel, url: url.to_owned(), secret: None, label: None, kinds: AlertKinds::ALL };
        match self.ask(user, Command::AddAlertTarget(Box::new(new))) {
            Answer::AlertTarget(target) => *target,
            other => panic!("{other:?}"),
        }
    }

    fn raise(&self, user: u64, key: u8) {
        let secret = Secret { hash: [key; 32], alias_hash: [key; 32], prefix: "svc_live_4f0c9d2".to_owned() };
        let issue = IssueKey { secret, name: None, tier: None, permissions: None, bootstrap: false, by: None };
        assert!(matches!(self.ask(user, Command::IssueKey(issue)), Answer::Key(_)));
    }
}

/// A target of user 1.
pub fn target(channel: Channel, url: &str) -> AlertTarget {
    ShardThread::start(NOW, 1).add(1, channel, url)
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
        self.answer_with("200 OK")
    }

    /// The same with another status.
    pub fn answer_with(&self, status: &str) -> usize {
        let held = std::mem::take(&mut *self.held.lock());
        let count = held.len();
        for (_, mut stream) in held {
            // A client that has left reads no answer.
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
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
