//! A shard without a log, for tests of routes and of jobs: on the thread of its caller, or on a thread of its own.

use crate::engine_client::Reply;
use engine::book::Books;
use engine::command::{Answer, Command, CreateUser, Envelope};
use engine::directory::Directory;
use engine::id::UserId;
use engine::market::catalog::Catalog;
use engine::notice::Notice;
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use engine::user::Users;
use host::thread::Stop;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

/// After this time a test waits in vain.
const PATIENCE: Duration = Duration::from_secs(30);
/// Longest sleep of a shard on its thread.
const SLEEP_MAX: Duration = Duration::from_millis(2);

fn shard<R>(books: Arc<Books>, catalog: Arc<Catalog>) -> Shard<R> {
    Shard::new(0, 1, Users::default(), Arc::new(Rules::default()), books, catalog, Arc::new(Directory::default()))
}

/// A user without a `sub`.
fn user(email: Option<&str>) -> Command {
    Command::CreateUser(CreateUser { sub: None, email: email.map(str::to_owned), grant: None, api_balance: None })
}

/// Answers, the newest last.
#[derive(Default)]
struct Answers(Vec<Answer>);

impl Outbox<()> for Answers {
    fn room(&self) -> Room {
        Room::Ample
    }
    fn record(&mut self, _: UserId, _: Timestamp, _: &[u8]) {}
    fn notice(&mut self, _: Notice) {}
    fn answer(&mut self, (): (), answer: Answer) {
        self.0.push(answer);
    }
}

/// A shard on the thread of its caller.
#[derive(Clone)]
pub struct ShardHere {
    core: Rc<RefCell<(Shard<()>, Answers)>>,
    now: Timestamp,
}

impl ShardHere {
    pub fn new(now: Timestamp, books: Arc<Books>, catalog: Arc<Catalog>) -> ShardHere {
        ShardHere { core: Rc::new(RefCell::new((shard(books, catalog), Answers::default()))), now }
    }

    /// Runs a command about a user, who exists from then on, with this address.
    pub fn ask(&self, owner: UserId, email: Option<&str>, command: Command) -> Answer {
        let (shard, answers) = &mut *self.core.borrow_mut();
        let mut one = |command| {
            shard.take(Envelope { owner, command, received_at: self.now, reply: () }, self.now, answers);
            answers.0.pop().expect("an answer")
        };
        if !matches!(command, Command::CreateUser(_)) {
            one(user(email));
        }
        one(command)
    }

    /// What `read` finds in the users.
    pub fn users<T>(&self, read: impl FnOnce(&Users) -> T) -> T {
        read(self.core.borrow().0.users())
    }
}

/// Fills the reply of each command.
struct Replies;

impl Outbox<Reply> for Replies {
    fn room(&self) -> Room {
        Room::Ample
    }
    fn record(&mut self, _: UserId, _: Timestamp, _: &[u8]) {}
    fn notice(&mut self, _: Notice) {}
    fn answer(&mut self, reply: Reply, answer: Answer) {
        reply.fill(answer);
    }
}

/// A shard on a thread, which ends when this is dropped.
pub struct ShardThread {
    pub inbox: Arc<Ring<Envelope<Reply>>>,
    now: Timestamp,
    stop: Stop,
    thread: Option<JoinHandle<Shard<Reply>>>,
}

impl Drop for ShardThread {
    fn drop(&mut self) {
        drop(self.end());
    }
}

impl ShardThread {
    /// With users from 1.
    pub fn start(now: Timestamp, users: u64) -> ShardThread {
        let mut made = ShardThread { inbox: Arc::new(Ring::new(64)), now, stop: Stop::new(), thread: None };
        made.run(shard(Arc::new(Books::new()), Arc::new(Catalog::new())));
        for number in 1..=users {
            assert!(matches!(made.ask(number, user(None)), Answer::Created(_)));
        }
        made
    }

    fn run(&mut self, mut shard: Shard<Reply>) {
        self.stop = Stop::new();
        let (inbox, stop, now) = (Arc::clone(&self.inbox), self.stop.clone(), self.now);
        self.thread = Some(std::thread::spawn(move || {
            while !stop.is_set() {
                if !shard.turn(&inbox, now, &mut Replies) {
                    inbox.wait(SLEEP_MAX);
                }
            }
            shard
        }));
    }

    fn end(&mut self) -> Option<Shard<Reply>> {
        self.stop.set();
        self.thread.take().and_then(|thread| thread.join().ok())
    }

    /// What `read` finds in the users. Meanwhile the shard takes no command.
    pub fn users<T>(&mut self, read: impl FnOnce(&Users) -> T) -> T {
        let shard = self.end().expect("no panic");
        let found = read(shard.users());
        self.run(shard);
        found
    }

    /// The answer to a command about a user.
    pub fn ask(&self, user: u64, command: Command) -> Answer {
        let (sender, answered) = mpsc::sync_channel(1);
        let envelope = Envelope { owner: UserId(user), command, received_at: self.now, reply: Reply::Thread(sender) };
        assert!(self.inbox.push(envelope).is_ok(), "there is room");
        answered.recv_timeout(PATIENCE).expect("an answer")
    }
}
