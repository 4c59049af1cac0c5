use super::*;
use crate::clock::Clock;
use crate::commit::{CommitFigures, CommitLane, LogSize};
use crate::config::Durability;
use crate::engine_client::EngineClient;
use crate::layout::{Wake, drive, runtime, spawn_syncer};
use crate::recover::recover;
use crate::thread::Stop;
use engine::amount::{Bps, Cash, Price, Qty};
use engine::book::registry::Books;
use engine::command::{Answer, Command, Wallets};
use engine::directory::Directory;
use engine::id::{InstrumentId, KeyId, OrderId, UserId, WalletId};
use engine::market::catalog::Catalog;
use engine::mutation::{Mutation, codec};
use engine::order::{EntryRoute, OrderTerms, OrderType, Quality, Side, TimeInForce};
use engine::rules::{Rules, SWEEP_ORDERS_PER_RECORD_MAX};
use engine::time::SECOND;
use engine::user::{Users, WalletKind};
use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::thread::JoinHandle;
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
    apply(Mutation::UserCreated { sub: None, email: None, at });
    let baseline = Cash::from_dollars(100_000);
    let opened = Mutation::WalletOpened {
        wallet,
        kind: WalletKind::Api,
        label: None,
        baseline,
        generation: 1,
        parent: None,
        at,
    };
    apply(opened);
    for number in 2..2 + count {
        let order = OrderId(OWNER.object(number));
        apply(placed(OWNER, number));
        let reserved_cash = Cash(500_000);
        let reserved_qty = Qty::ZERO;
        apply(Mutation::OrderRested { order, reserved_cash, reserved_qty, awaiting_book: false, held: false, at });
    }
    users
}

/// An order of 5 shares at 0.10 with that object number; its wallet is object 1.
pub(crate) fn placed(owner: UserId, number: u32) -> Mutation {
    let terms = OrderTerms {
        wallet: WalletId(owner.object(1)),
        key: KeyId(owner.object(0)),
        instrument: InstrumentId(0),
        side: Side::Buy,
        order_type: OrderType::Limit,
        time_in_force: TimeInForce::Gtc,
        limit: Price(1_000),
        quantity: Qty::from_shares(5),
        amount: None,
        expiration: None,
        post_only: false,
        client_order_id: None,
        route: EntryRoute::Native,
        fee_rate: Bps(0),
        marketable: false,
        quality: Quality::default(),
        rounded_from: None,
    };
    Mutation::OrderPlaced { order: OrderId(owner.object(number)), terms, counted: true, at: START }
}

/// A core over a new log, with its sync thread and the task that gives it its turns.
struct Driven {
    client: EngineClient,
    marks: Marks,
    stop: Stop,
    syncer: Option<JoinHandle<Result<(), wal::Error>>>,
}

impl Drop for Driven {
    fn drop(&mut self) {
        self.stop.set();
        self.marks.wake();
        self.syncer.take().expect("it ends once").join().expect("no panic").expect("the disk is there");
    }
}

fn driven(place: &Path, users: Users, clock: &Clock, durability: Durability) -> Driven {
    let (segment_bytes, spares_count) = (1 << 20, 2);
    let options = Options { segment_bytes, spares_count, reserve_bytes: 0, ..Options::default() };
    let recovery = recover(&place.join("log"), options, 1).expect("a new directory");
    let synced = Arc::new(Wake::default());
    let waker = synced.clone();
    let running = recovery.dir.start(recovery.log, clock.now().0, Box::new(move |_| waker.wake())).expect("it starts");
    let Running { log, mut preparer, syncer, marks, .. } = running;
    while matches!(preparer.turn().expect("there is room on the disk"), Prepared::One) {}
    let (figures, stop) = (Arc::new(CommitFigures::default()), Stop::new());
    let (fatal, _) = tokio::sync::mpsc::unbounded_channel();
    let syncer = spawn_syncer(syncer, durability, figures.clone(), stop.clone(), fatal).expect("a thread");
    let lane = CommitLane::new(LogSize::of(segment_bytes, spares_count, 1), figures.clone());
    let committer =
        Committer::new(log, durability, codec::VERSION, LogSize::of(segment_bytes, spares_count, 1), figures);
    let (rules, books) = (Arc::new(Rules::default()), Arc::new(Books::new()));
    let (catalog, directory) = (Arc::new(Catalog::new()), Arc::new(Directory::new()));
    let shard = Shard::new(0, 1, users, rules, books, catalog, directory);
    let inbox = Arc::new(Ring::new(16));
    let core = Rc::new(RefCell::new(Core::new(shard, committer, inbox.clone(), lane.ring().clone())));
    drive(core.clone(), inbox, &lane, &synced, clock.clone());
    Driven { client: EngineClient::inline(core, clock.clone()), marks, stop, syncer: Some(syncer) }
}

/// Nothing else comes to wake the core: no feed, no other request.
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

/// However many commands come together, each is answered, and nothing else comes to have them synced.
#[test]
fn commands_that_come_together_are_all_answered() {
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
                assert!(matches!(answer, Ok(Answer::Order(_))), "{count} at once, {durability:?}: {answer:?}");
                assert!(durability == Durability::Process || driven.marks.synced().0 > 0, "nothing was synced");
            }
            let (appended, synced) = (driven.marks.appended(), driven.marks.synced());
            assert!(durability == Durability::Process || synced == appended, "{synced} of {appended} are synced");
        });
        cases += 1;
    }
    println!("commands that come together: {cases} cases");
}
