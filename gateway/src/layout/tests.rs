use super::*;
use edge::ended_rows::{EndedAnswer, EndedRows, FoundCommand, Unread, answered};
use edge::testing::OneOrder;
use engine::amount::{Cash, Qty};
use engine::book::registry::Books;
use engine::command::{Answer, Command, Query, Wallets};
use engine::departed::{EndedOrder, Leaving};
use engine::directory::Directory;
use engine::fact;
use engine::id::{OrderId, UserId, WalletId};
use engine::look_up::LookUp;
use engine::market::catalog::Catalog;
use engine::mutation::{Mutation, codec};
use engine::order::{CloseReason, Status};
use engine::reject::Reject;
use engine::rules::{Rules, SWEEP_ORDERS_PER_RECORD_MAX, UNRELEASED_MAX_US, WAIT_MAX_US};
use engine::shard::elsewhere::Elsewhere;
use engine::time::SECOND;
use engine::time::Timestamp;
use engine::user::{Users, WalletKind};
use host::runtime::runtime;
use journal::commit::LogSize;
use journal::recover::recover;
use journal::testing::placed;
use std::path::Path;
use wal::{Marks, Options, Prepared, Running};

const BOTH: [Durability; 2] = [Durability::Process, Durability::Power];
const OWNER: UserId = UserId(1);
/// 2026-10-02T09:15:00Z.
const START: Timestamp = Timestamp(1_790_932_500 * SECOND);

/// A user with that many resting orders.
fn resting(count: u32) -> Users {
    let (wallet, at) = (WalletId(OWNER.object(1)), START);
    let mut users = Users::default();
    let mut apply = |fact: Mutation| users.apply(OWNER, &fact);
    apply(Mutation::UserCreated(fact::UserCreated { sub: None, email: None, at }));
    let baseline = Cash::from_dollars(100_000);
    let opened = Mutation::WalletOpened(fact::WalletOpened {
        wallet,
        kind: WalletKind::Api,
        label: None,
        baseline,
        generation: 1,
        parent: None,
        at,
    });
    apply(opened);
    for number in 2..2 + count {
        let order = OrderId(OWNER.object(number));
        apply(placed(OWNER, number));
        let reserved_cash = Cash(500_000);
        let reserved_qty = Qty::ZERO;
        apply(Mutation::OrderRested(fact::OrderRested {
            order,
            reserved_cash,
            reserved_qty,
            awaiting_book: false,
            held: false,
            at,
        }));
    }
    users
}

/// A core over a new log, with its sync thread and the task that runs its turns.
struct Driven {
    client: EngineClient,
    marks: Marks,
    stop: Stop,
    /// The sync thread's work, if the test decides when the disk confirms.
    syncer: Option<JoinHandle<Result<(), wal::Error>>>,
    held: Option<Syncer<Files>>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.stop.set();
        self.marks.wake();
        if let Some(syncer) = self.syncer.take() {
            syncer.join().expect("no panic").expect("the disk is there");
        }
    }
}

fn driven(place: &Path, users: Users, clock: &Clock, durability: Durability) -> Driven {
    let mut driven = held(place, users, clock, durability);
    let (fatal, _) = tokio::sync::mpsc::unbounded_channel();
    let (syncer, stop) = (driven.held.take().expect("held so far"), driven.stop.clone());
    let syncer = spawn_syncer(syncer, durability, Arc::default(), stop, fatal).expect("a thread");
    driven.syncer = Some(syncer);
    driven
}

/// As `driven`, with a disk that confirms nothing on its own.
fn held(place: &Path, users: Users, clock: &Clock, durability: Durability) -> Driven {
    let (segment_bytes, spares_count) = (1 << 20, 2);
    let options = Options { segment_bytes, spares_count, reserve_bytes: 0, ..Options::default() };
    let recovery = recover(&place.join("log"), options, 1).expect("a new directory");
    let synced = Arc::new(Wake::default());
    let waker = synced.clone();
    let running = recovery.dir.start(recovery.log, clock.now().0, Box::new(move |_| waker.wake())).expect("it starts");
    let Running { log, mut preparer, syncer, marks, .. } = running;
    while matches!(preparer.turn().expect("there is room on the disk"), Prepared::One) {}
    let (figures, stop) = (Arc::new(CommitFigures::default()), Stop::new());
    let lane = CommitLane::new(LogSize::of(segment_bytes, spares_count, 1), figures.clone());
    let committer =
        Committer::new(log, durability, codec::VERSION, LogSize::of(segment_bytes, spares_count, 1), figures);
    let (rules, books) = (Arc::new(Rules::default()), Arc::new(Books::new()));
    let (catalog, directory) = (Arc::new(Catalog::new()), Arc::new(Directory::new()));
    let shard = Shard::new(0, 1, users, rules, books, catalog, directory);
    let inbox = Arc::new(Ring::new(16));
    let core = Rc::new(RefCell::new(Core::new(shard, committer, inbox.clone(), lane.ring().clone())));
    drive(core.clone(), inbox, &lane, &synced, clock.clone());
    Driven {
        client: EngineClient::inline(Rc::new(crate::listeners::CoreHere(core)), clock.clone()),
        marks,
        stop,
        syncer: None,
        held: Some(syncer),
    }
}

/// Nothing else wakes the core: no feed, no other request.
#[test]
fn a_command_larger_than_a_turn_is_finished_without_another() {
    let most = SWEEP_ORDERS_PER_RECORD_MAX as u32;
    let mut cases = 0;
    for (count, durability) in
        [1, most, most + 1, 3 * most + 7].into_iter().flat_map(|count| BOTH.map(|durability| (count, durability)))
    {
        let place = tempfile::tempdir().expect("a temporary folder");
        let clock = Clock::fake(START);
        let local = tokio::task::LocalSet::new();
        let cancelled = local.block_on(&runtime().expect("a runtime"), async {
            let driven = driven(place.path(), resting(count), &clock, durability);
            // The driving task goes to sleep first.
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            driven.client.ask(OWNER, Command::CancelAll { wallets: Wallets::All }, clock.now()).await
        });
        let Ok(Answer::Cancelled(swept)) = cancelled else { panic!("{count} orders, {durability:?}: {cancelled:?}") };
        assert_eq!((swept.cancelled.len(), swept.not_cancellable.len()), (count as usize, 0));
        cases += 1;
    }
    println!("sweeps through the core: {cases} cases");
}

/// The waiting commands of the inline layout: a disk that confirms nothing, and then does.
#[test]
fn a_write_after_an_unreleased_one_waits_in_the_inline_layout() {
    let place = tempfile::tempdir().expect("a temporary folder");
    let clock = Clock::fake(START);
    let local = tokio::task::LocalSet::new();
    local.block_on(&runtime().expect("a runtime"), async {
        let mut driven = held(place.path(), resting(3), &clock, Durability::Power);
        let cancel = |number: u32| {
            let (client, clock) = (driven.client.clone(), clock.clone());
            let command = Command::Cancel { order: OrderId(OWNER.object(number)) };
            tokio::task::spawn_local(async move { client.ask(OWNER, command, clock.now()).await })
        };
        let first = cancel(2);
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        clock.set(START.plus(UNRELEASED_MAX_US + 1));
        let second = cancel(3);
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        assert!(!first.is_finished() && !second.is_finished());
        clock.set(clock.now().plus(WAIT_MAX_US + 1));
        // No other event comes: the core checks on its own.
        let refused = second.await.expect("no panic");
        assert!(matches!(refused, Ok(Answer::Refused(Reject::WaitedTooLong))), "{refused:?}");
        assert!(!first.is_finished(), "nothing was confirmed");
        let third = cancel(4);
        tokio::task::yield_now().await;
        let mut syncer = driven.held.take().expect("held so far");
        while !third.is_finished() {
            syncer.turn().expect("a sound disk");
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        assert!(matches!(first.await.expect("no panic"), Ok(Answer::Order(_))));
        assert!(
            matches!(third.await.expect("no panic"), Ok(Answer::Order(_))),
            "it was decided when the log had moved"
        );
        let query = Command::Query(Query::Order(OrderId(OWNER.object(3))));
        let Ok(Answer::Order(order)) = driven.client.ask(OWNER, query, clock.now()).await else { panic!("an order") };
        assert_eq!(order.order.status(), Status::Pending, "a refused write leaves nothing");
    });
}

/// A reader of rows that have left memory, which answers when the test lets it.
#[derive(Default)]
struct SlowReader(std::sync::Mutex<Vec<(Box<LookUp>, FoundSender)>>);

type FoundSender = tokio::sync::oneshot::Sender<Result<Envelope<()>, Unread>>;

impl EndedRows for SlowReader {
    fn complete(&self, _: Box<Elsewhere>) -> EndedAnswer {
        answered(Err(Unread::Unreadable))
    }

    fn look_up(&self, look_up: Box<LookUp>) -> FoundCommand {
        let (sender, receiver) = tokio::sync::oneshot::channel();
        self.0.lock().expect("no panic").push((look_up, sender));
        receiver
    }
}

/// The inline layout: commands after one that is looked up are decided after it, and nothing else wakes the core.
#[test]
fn commands_after_a_look_up_wait_in_the_inline_layout() {
    let mut cases = 0;
    for durability in BOTH {
        let place = tempfile::tempdir().expect("a temporary folder");
        let clock = Clock::fake(START);
        let mut users = resting(4);
        let gone = OrderId(OWNER.object(3));
        let closed = fact::OrderClosed { order: gone, reason: CloseReason::UserCancelled, at: START };
        users.apply(OWNER, &Mutation::OrderClosed(closed));
        let order = users.get(OWNER).and_then(|user| user.order(gone)).expect("in memory").clone();
        users.set_departed_upto(7);
        users.depart(&Leaving { user: OWNER, orders: vec![gone], positions: Vec::new() });
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime().expect("a runtime"), async {
            let mut driven = driven(place.path(), users, &clock, durability);
            let reader = Arc::new(SlowReader::default());
            driven.client = driven.client.clone().with_ended(reader.clone());
            let cancel = |number: u32| {
                let (client, clock) = (driven.client.clone(), clock.clone());
                let command = Command::Cancel { order: OrderId(OWNER.object(number)) };
                tokio::task::spawn_local(async move { client.ask(OWNER, command, clock.now()).await })
            };
            // An open order, the one that has gone, one of a number that is a wallet, and an open one.
            let asked = [2, 3, 1, 4].map(cancel);
            for _ in 0..8 {
                tokio::task::yield_now().await;
            }
            assert!(asked[1..].iter().all(|asked| !asked.is_finished()), "{durability:?}: they keep their order");
            let mut looked_up = 0;
            while asked.iter().any(|asked| !asked.is_finished()) {
                let waiting = reader.0.lock().expect("no panic").pop();
                if let Some((look_up, sender)) = waiting {
                    let found = look_up.found(&OneOrder(EndedOrder { order: order.clone(), fills: Vec::new() }));
                    sender.send(found.map_err(|never| match never {})).expect("it waits");
                    looked_up += 1;
                }
                tokio::time::sleep(std::time::Duration::from_millis(1)).await;
            }
            let mut answers = Vec::new();
            for asked in asked {
                answers.push(match asked.await.expect("no panic") {
                    Ok(Answer::Order(_)) => None,
                    Ok(Answer::Refused(reject)) => Some(reject),
                    other => panic!("{other:?}"),
                });
            }
            let expected = [None, Some(Reject::OrderNotCancellable), Some(Reject::OrderNotFound), None];
            assert_eq!((answers.as_slice(), looked_up), (&expected[..], 2), "{durability:?}");
            cases += answers.len();
        });
    }
    println!("look-ups through the core: {cases} cases");
}

/// Any number of simultaneous commands are all answered, and no other event makes the log sync.
#[test]
fn simultaneous_commands_are_all_answered() {
    let mut cases = 0;
    for (count, durability) in
        [1, 2, 31, 32, 33, 64, 100].into_iter().flat_map(|count| BOTH.map(|durability| (count, durability)))
    {
        let place = tempfile::tempdir().expect("a temporary folder");
        let clock = Clock::fake(START);
        let local = tokio::task::LocalSet::new();
        local.block_on(&runtime().expect("a runtime"), async {
            let driven = driven(place.path(), resting(count), &clock, durability);
            let asking: Vec<_> = (2..2 + count)
                .map(|number| {
                    let (client, clock) = (driven.client.clone(), clock.clone());
                    let command = Command::Cancel { order: OrderId(OWNER.object(number)) };
                    tokio::task::spawn_local(async move { client.ask(OWNER, command, clock.now()).await })
                })
                .collect();
            for asked in asking {
                let answer = asked.await.expect("it does not panic");
                assert!(matches!(answer, Ok(Answer::Order(_))), "{count} together, {durability:?}: {answer:?}");
                assert!(durability == Durability::Process || driven.marks.synced().0 > 0, "nothing was synced");
            }
            let (appended, synced) = (driven.marks.appended(), driven.marks.synced());
            assert!(durability == Durability::Process || synced == appended, "{synced} of {appended} are synced");
        });
        cases += 1;
    }
    println!("simultaneous commands: {cases} cases");
}
