//! A shard without a log, for tests of routes and of jobs: on the thread of its caller, or on a thread of its own.

use crate::engine_client::Reply;
use engine::amount::{Cash, Price, Qty};
use engine::book::Books;
use engine::command::{Answer, Command, CreateUser, Envelope, Query};
use engine::departed::{Departed, EndedOrder, EndedRequest, Leaving};
use engine::directory::Directory;
use engine::fact;
use engine::id::{InstrumentId, KeyId, MarketId, OrderId, PositionId, TradeId, UserId, WalletId};
use engine::look_up::LookUp;
use engine::market::catalog::Catalog;
use engine::mutation::Mutation;
use engine::notice::Notice;
use engine::order::{CloseReason, Fill, Order, OrderTerms, Side, TimeInForce};
use engine::ring::Ring;
use engine::rules::Rules;
use engine::shard::elsewhere::Elsewhere;
use engine::shard::{Outbox, Room, Shard};
use engine::time::Timestamp;
use engine::user::{Position, Users, WalletKind};
use host::thread::Stop;
use std::cell::RefCell;
use std::convert::Infallible;
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

/// A query about an order that has left memory, as a shard answers it, and the order.
pub fn one_ended_order() -> (Box<Elsewhere>, OneOrder) {
    let id = OrderId(UserId(1).object(3));
    match about_one_ended_order(Command::Query(Query::Order(id))) {
        (Answer::Elsewhere(rest), order) => (rest, order),
        (other, _) => panic!("the order is not in memory: {other:?}"),
    }
}

/// A cancel of that order, as a shard hands it back.
pub fn one_cancel_of_an_ended_order() -> Box<LookUp> {
    match about_one_ended_order(Command::Cancel { order: OrderId(UserId(1).object(3)) }) {
        (Answer::LookUp(look_up), _) => look_up,
        (other, _) => panic!("the order is not in memory: {other:?}"),
    }
}

/// The answer of a shard of whose user 1 the order of number 3 has left memory, and that order.
fn about_one_ended_order(command: Command) -> (Answer, OneOrder) {
    let (owner, at) = (UserId(1), Timestamp(5));
    let (wallet, key) = (WalletId(owner.object(1)), KeyId(owner.object(2)));
    let id = OrderId(owner.object(3));
    let (kind, baseline) = (WalletKind::Api, Cash::from_dollars(100));
    let mut terms = OrderTerms::limit(wallet, key, InstrumentId(0), Side::Buy, Price(5_000), Qty::from_shares(1));
    terms.time_in_force = TimeInForce::Ioc;
    let facts = [
        Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }),
        Mutation::WalletOpened(fact::WalletOpened {
            wallet,
            kind,
            label: None,
            baseline,
            generation: 1,
            parent: None,
            at,
        }),
        Mutation::OrderPlaced(fact::OrderPlaced { order: id, terms, counted: true, at }),
        Mutation::OrderClosed(fact::OrderClosed { order: id, reason: CloseReason::FakNoFill, at }),
    ];
    let mut users = Users::default();
    facts.iter().for_each(|fact| users.apply(owner, fact));
    let order = users.get(owner).and_then(|user| user.order(id)).expect("it was placed").clone();
    users.depart(&Leaving { user: owner, orders: vec![id], positions: Vec::new() });
    users.set_departed_upto(1);
    let (rules, books, catalog) = (Arc::new(Rules::default()), Arc::new(Books::new()), Arc::new(Catalog::new()));
    let mut shard = Shard::new(0, 1, users, rules, books, catalog, Arc::new(Directory::default()));
    let mut answers = Answers::default();
    shard.take(Envelope { owner, command, received_at: at, reply: () }, at, &mut answers);
    (answers.0.pop().expect("an answer"), OneOrder(EndedOrder { order, fills: Vec::new() }))
}

/// One order that has left memory.
#[derive(Clone)]
pub struct OneOrder(pub EndedOrder);

impl Departed for OneOrder {
    type Error = Infallible;

    fn order(&self, id: OrderId) -> Result<Option<EndedOrder>, Infallible> {
        Ok((id == self.0.order.id).then(|| self.0.clone()))
    }

    fn position(&self, _: PositionId) -> Result<Option<Position>, Infallible> {
        Ok(None)
    }

    fn orders(
        &self,
        _: Option<MarketId>,
        before: Option<OrderId>,
    ) -> impl Iterator<Item = Result<EndedOrder, Infallible>> {
        let is_below = before.is_none_or(|before| self.0.order.id < before);
        is_below.then(|| Ok(self.0.clone())).into_iter()
    }

    fn fills(&self, _: Option<TradeId>) -> impl Iterator<Item = Result<(Fill, Order), Infallible>> {
        std::iter::empty()
    }

    fn positions(&self, _: Option<PositionId>) -> impl Iterator<Item = Result<Position, Infallible>> {
        std::iter::empty()
    }

    fn request(&self, _: &str) -> Result<Option<EndedRequest>, Infallible> {
        Ok(None)
    }

    fn signed_order(&self, _: &[u8; 32]) -> Result<Option<OrderId>, Infallible> {
        Ok(None)
    }
}
