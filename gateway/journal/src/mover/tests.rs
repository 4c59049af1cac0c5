use super::*;
use crate::checkpoint::Keeper;
use crate::recover::{self, recover};
use crate::spares::Covered;
use crate::testing::{START, placed};
use engine::amount::{Bps, Cash, Price, Qty};
use engine::command::Answer;
use engine::fact;
use engine::format::Formats;
use engine::id::{InstrumentId, KeyId, MARKETS, OrderId, PositionId, TradeId, UserId, WalletId};
use engine::market::mutation::MarketMutation;
use engine::mutation::{Mutation, codec};
use engine::order::{CloseReason, Liquidity, OrderTerms, PriceSource, Side};
use engine::reject::Reject;
use engine::time::{DAY, SECOND};
use engine::user::{Tier, WalletKind};
use host::job::Work as _;
use host::leap::Leap;
use host::thread::Stop;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;
use wal::{Files, Kind, Log, Marks, Options, Running, Syncer};

mod relief;

/// The stored orders of each user, with the LSN of the move.
type Stored = Arc<Mutex<BTreeMap<OrderId, Lsn>>>;

/// A store in memory, which fails while it is told to.
#[derive(Clone, Default)]
struct InMemory {
    orders: Stored,
    fails: Arc<Mutex<bool>>,
    /// The records up to which rows ended, with their checksums, in the order of the calls.
    records: Shared<(Lsn, u32)>,
}

impl EndedStore for InMemory {
    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, record_crc: u32) -> Result<(), Box<dyn Error>> {
        self.records.lock().push((upto, record_crc));
        if *self.fails.lock() {
            return Err("no room on the disk".into());
        }
        for of in leaving {
            let user = users.get(of.user).expect("it has rows");
            for order in &of.orders {
                assert!(user.order(*order).is_some_and(|order| !order.is_open()), "it is there until it was written");
                self.orders.lock().insert(*order, upto);
            }
        }
        Ok(())
    }
}

/// A log with one user, a wallet, and orders that were cancelled.
struct Place {
    _folder: tempfile::TempDir,
    data: PathBuf,
    log: Log<Files>,
    syncer: Syncer<Files>,
    marks: Marks,
    next: u32,
}

const OWNER: UserId = UserId(1);

impl Place {
    fn append(&mut self, owner: UserId, facts: &[Mutation], at: Timestamp) -> Lsn {
        let mut payload = Vec::new();
        codec::encode(codec::VERSION, facts, &mut payload);
        let lsn = self.log.append(Kind::Mutations, codec::VERSION, owner.0, at.0, &payload).expect("there is room");
        self.syncer.turn().expect("the disk is there");
        lsn
    }

    /// A user with a wallet.
    fn user(&mut self, owner: UserId) {
        let (wallet, kind) = (WalletId(owner.object(1)), WalletKind::Api);
        let opened = fact::WalletOpened {
            wallet,
            kind,
            label: None,
            baseline: Cash::from_dollars(100),
            generation: 1,
            parent: None,
            at: START,
        };
        let created = fact::UserCreated { sub: None, email: None, at: START };
        self.append(owner, &[created.into(), opened.into()], START);
    }

    /// Orders that end at these seconds after the start.
    fn ended(&mut self, seconds: &[u64]) -> Lsn {
        self.ended_of(OWNER, seconds)
    }

    fn ended_of(&mut self, owner: UserId, seconds: &[u64]) -> Lsn {
        let mut last = Lsn::ZERO;
        for second in seconds {
            let at = START.plus(second * SECOND);
            let order = OrderId(owner.object(self.next));
            let closed = fact::OrderClosed { order, reason: CloseReason::UserCancelled, at };
            last = self.append(owner, &[placed(owner, self.next), closed.into()], at);
            self.next += 1;
        }
        last
    }

    /// Appends that history is cut, without a sync.
    fn cut(&mut self, day: UtcDay, at: Timestamp) -> Lsn {
        let mut payload = Vec::new();
        let fact = MarketMutation::HistoryCut(fact::HistoryCut { day: day.0, at: START });
        codec::encode(codec::VERSION, &[fact], &mut payload);
        self.log.append(Kind::Mutations, codec::VERSION, MARKETS.0, at.0, &payload).expect("there is room")
    }
}

fn place() -> (Place, Keeper<Files>) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let data = folder.path().join("log");
    let options = Options { segment_bytes: 1 << 20, spares_count: 1, reserve_bytes: 0, ..Options::default() };
    let recovery = recover(&data, options, 1).expect("a new directory");
    let Running { log, syncer, snapshots, marks, .. } =
        recovery.dir.start(recovery.log, 1, Box::new(|_| {})).expect("it starts");
    let storage = Files::open_existing(&data).expect("it was made");
    let keeper = Keeper::new(storage, snapshots, marks.clone(), 1, Covered::default());
    let mut place = Place { _folder: folder, data, log, syncer, marks, next: 2 };
    place.user(OWNER);
    (place, keeper)
}

/// What a mover hands to the shards, and whether they take it.
#[derive(Clone, Default)]
struct Shards {
    taken: Arc<Mutex<Vec<Arc<Departures>>>>,
    are_full: Arc<Mutex<bool>>,
}

impl Shards {
    fn drop_rows(&self) -> DropRows {
        let shards = self.clone();
        Box::new(move |departures| {
            if *shards.are_full.lock() {
                return false;
            }
            shards.taken.lock().push(departures.clone());
            true
        })
    }

    /// Orders to drop so far.
    fn orders(&self) -> usize {
        self.taken.lock().iter().flat_map(|of| &of.pieces).map(|(leaving, _)| leaving.orders.len()).sum()
    }
}

#[test]
fn what_ended_long_ago_leaves_with_a_checkpoint() {
    let mut cases = 0;
    let window = |hot_s: u64, rows_max: usize| Window { hot_us: hot_s * SECOND, rows_max, orders_max: usize::MAX };
    // (window, seconds at which orders end, orders that leave)
    let all = |orders_max: usize| Window { orders_max, ..window(300, 4_096) };
    let rows: [(Window, Vec<u64>, usize); 10] = [
        (window(300, 4_096), vec![0, 1, 300], 0),
        (window(300, 4_096), vec![0, 1, 301], 1),
        (window(300, 4_096), vec![0, 1, 2, 900], 3),
        (window(300, 2), vec![0, 1, 2, 3], 2),
        (window(0, 4_096), (0..200).collect(), 199),
        (window(300, 16), (0..200).collect(), 184),
        (all(200), (0..200).collect(), 0),
        (all(199), (0..200).collect(), 1),
        (all(16), (0..200).collect(), 184),
        // Those that ended together leave together.
        (all(2), vec![1, 2, 2, 2, 3], 4),
    ];
    for (window, seconds, leave) in rows {
        let (mut place, keeper) = place();
        let (store, shards) = (InMemory::default(), Shards::default());
        let mut keeper = keeper.moving(Mover::new(Box::new(store.clone()), window, shards.drop_rows()));
        let last = place.ended(&seconds);
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        let name = format!("{window:?}, {} orders", seconds.len());
        assert_eq!((store.orders.lock().len(), shards.orders()), (leave, leave), "{name}");
        let crc = wal::record_crc(&Files::open_existing(&place.data).expect("it was made"), last);
        let crc = crc.expect("a sound log").expect("it is there");
        assert!(store.records.lock().iter().all(|record| *record == (last, crc)), "{name}");
        let (kept, _) = recover::look(&place.data, false).expect("a sound log");
        let (whole, _) = recover::look(&place.data, true).expect("a sound log");
        let orders = |state: &engine::shard::replay::State| state.user(OWNER).expect("it was made").orders().len();
        assert_eq!((orders(&kept), orders(&whole)), (seconds.len() - leave, seconds.len()), "{name}");
        assert_eq!(recover::digest(&kept), recover::digest(&whole), "{name}");
        let upto = if leave > 0 { last.0 } else { 0 };
        assert_eq!((kept.users[0].departed_upto(), whole.users[0].departed_upto()), (upto, 0), "{name}");
        assert!(
            shards.taken.lock().iter().all(|of| of.upto == last.0
                && of.pieces.iter().all(|(piece, _)| piece.orders.len() <= Departures::PIECE_ROWS))
        );
        cases += 1;
    }
    println!("windows: {cases} cases");
}

#[test]
fn nothing_leaves_before_it_is_safe() {
    let mut cases = 0;
    let window = Window { hot_us: 0, rows_max: 16, orders_max: usize::MAX };
    let seconds: Vec<u64> = (0..50).collect();
    // A store that fails: the snapshot has everything, and the next checkpoint tries again.
    let (mut place, keeper) = self::place();
    let (store, shards) = (InMemory::default(), Shards::default());
    *store.fails.lock() = true;
    let mut keeper = keeper.moving(Mover::new(Box::new(store.clone()), window, shards.drop_rows()));
    let last = place.ended(&seconds);
    keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
    let data = place.data.clone();
    let orders = || {
        let (kept, _) = recover::look(&data, false).expect("a sound log");
        kept.user(OWNER).expect("it was made").orders().len()
    };
    assert_eq!((orders(), shards.orders()), (50, 0));
    *store.fails.lock() = false;
    // A full queue: the rows are handed over later, and once.
    *shards.are_full.lock() = true;
    let mut keeper_again = || {
        let at = START.plus(49 * SECOND);
        let last = place.append(OWNER, &[fact::GrantSet { tier: Tier::Pro, expires_at: None, at }.into()], at);
        keeper.checkpoint(Lsn::ZERO, last)
    };
    keeper_again().expect("room on the disk");
    assert_eq!((orders(), shards.orders(), store.orders.lock().len()), (1, 0, 49));
    keeper_again().expect("room on the disk");
    assert_eq!(shards.orders(), 0);
    *shards.are_full.lock() = false;
    for _ in 0..2 {
        keeper_again().expect("room on the disk");
        assert_eq!(shards.orders(), 49);
        cases += 1;
    }
    // Nothing moves while the clock is in doubt, and with a previous format.
    for name in ["doubt", "previous format"] {
        let (mut place, keeper) = self::place();
        let (store, shards) = (InMemory::default(), Shards::default());
        let keeper = match name {
            "doubt" => {
                let doubt = Leap::of(Some(START), START.plus(2 * DAY), Duration::from_secs(3_600));
                keeper.doubting(Arc::new(doubt))
            }
            _ => keeper.writing(Formats::Previous),
        };
        let mut keeper = keeper.moving(Mover::new(Box::new(store.clone()), window, shards.drop_rows()));
        let last = place.ended(&seconds);
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        assert_eq!((store.orders.lock().len(), shards.orders()), (0, 0), "{name}");
        cases += 1;
    }
    println!("moves that wait: {cases} cases");
}

/// Rows that press against the bound of memory leave with a checkpoint of their own, however recent they are, also
/// without a new record; a store that fails is asked again after a pause.
#[test]
fn rows_that_press_leave_before_a_checkpoint_is_due() {
    let window = Window { hot_us: 1_000 * SECOND, rows_max: 4_096, orders_max: usize::MAX };
    let (mut place, keeper) = self::place();
    let (store, shards) = (InMemory::default(), Shards::default());
    let (bound, figures) = (Arc::new(EndedBound::new(8_000, 2)), Arc::new(MoverFigures::default()));
    let mover = Mover::new(Box::new(store.clone()), window, shards.drop_rows());
    let mut keeper = keeper.moving(mover.bounded(bound.clone()).noting(figures.clone()));
    let last = place.ended(&[0, 1, 2, 3]);
    let mut cases = 0;
    // (bytes of either shard, whether one is full and presses)
    for (bytes, is_full, presses) in [
        ([0, 0], false, false),
        ([2_999, 2_999], false, false),
        ([0, 3_000], false, true),
        ([3_999, 10], false, true),
        ([4_000, 0], true, true),
    ] {
        bytes.into_iter().enumerate().for_each(|(shard, bytes)| bound.note(shard, bytes));
        assert_eq!((bound.is_full(), bound.is_pressed()), (is_full, presses), "{bytes:?}");
        cases += 1;
    }
    bound.note(0, 0);
    assert!(!keeper.relieve(last).expect("a sound log"), "nothing presses");
    bound.note(0, 3_500);
    *store.fails.lock() = true;
    assert!(!keeper.relieve(last).expect("a sound log"), "nothing moves");
    assert!(!keeper.relieve(last).expect("it pauses"), "it was tried just now");
    assert!(figures.is_failing.load(Ordering::Relaxed) && shards.orders() == 0);
    *store.fails.lock() = false;
    // After the pause.
    let mut keeper = keeper.moving({
        let mover = Mover::new(Box::new(store.clone()), window, shards.drop_rows());
        mover.bounded(bound).noting(figures.clone())
    });
    assert!(keeper.relieve(last).expect("room on the disk"));
    // The one that ended with the last record stays.
    assert_eq!((shards.orders(), store.orders.lock().len()), (3, 3));
    let (kept, _) = recover::look(&place.data, false).expect("a sound log");
    assert_eq!(kept.user(OWNER).expect("it was made").orders().len(), 1);
    let [orders, fills, upto] =
        [&figures.orders, &figures.fills, &figures.upto].map(|figure| figure.load(Ordering::Relaxed));
    assert_eq!((orders, fills, upto, figures.is_failing.load(Ordering::Relaxed)), (3, 0, last.0, false));
    assert_eq!(figures.succeeded_at.load(Ordering::Relaxed), START.plus(3 * SECOND).0);
    println!("rows that press: {} cases", cases + 5);
}

#[test]
fn a_long_history_leaves_in_parts() {
    let leaving = |user, orders: u32, positions: u32| Leaving {
        user: UserId(user),
        orders: (0..orders).map(|nth| OrderId(u64::from(nth))).collect(),
        positions: (0..positions).map(|nth| engine::id::PositionId(u64::from(nth))).collect(),
    };
    let mut all = vec![leaving(1, 3, 0), leaving(2, 0, 2), leaving(3, 9, 1), leaving(4, 1, 1)];
    shorten(&mut all, 5);
    assert_eq!(all, [leaving(1, 3, 0), leaving(2, 0, 2), leaving(3, 2, 0)]);
    // Fills of each order → orders of each piece.
    let rows: [(&[u64], &[usize]); 7] = [
        (&[0; 64], &[64]),
        (&[0; 129], &[64, 64, 1]),
        (&[1; 65], &[32, 32, 1]),
        (&[63, 0, 62, 0, 0], &[1, 2, 2]),
        (&[64], &[1]),
        (&[0, 500, 0], &[1, 1, 1]),
        (&[], &[]),
    ];
    for (fills, expected) in rows {
        let (users, orders) = filled(fills);
        let pieces = pieces_of(&users, &Leaving { user: OWNER, orders: orders.clone(), positions: Vec::new() });
        let sizes: Vec<usize> = pieces.iter().map(|piece| piece.orders.len()).collect();
        assert_eq!(sizes, expected, "{fills:?}");
        assert_eq!(pieces.into_iter().flat_map(|piece| piece.orders).collect::<Vec<_>>(), orders);
    }
    let positions = pieces_of(&Users::default(), &leaving(1, 0, 65));
    assert_eq!(positions.iter().map(|piece| piece.positions.len()).collect::<Vec<_>>(), [64, 1]);
    println!("parts: {} cases", rows.len() + 2);
}

/// A user with orders that have these counts of fills.
fn filled(fills: &[u64]) -> (Users, Vec<OrderId>) {
    let mut users = Users::default();
    let mut next = 10;
    let mut object = || {
        next += 1;
        OWNER.object(next)
    };
    let (position, mut orders) = (PositionId(object()), Vec::new());
    let wallet = WalletId(OWNER.object(1));
    let opened = fact::WalletOpened {
        wallet,
        kind: WalletKind::Api,
        label: None,
        baseline: Cash::from_dollars(1_000_000),
        generation: 1,
        parent: None,
        at: START,
    };
    users.apply(OWNER, &fact::UserCreated { sub: None, email: None, at: START }.into());
    users.apply(OWNER, &opened.into());
    for count in fills {
        let order = OrderId(object());
        let terms = OrderTerms::limit(
            wallet,
            KeyId(OWNER.object(0)),
            InstrumentId(0),
            Side::Buy,
            Price(1_000),
            Qty::from_shares(count + 1),
        );
        users.apply(OWNER, &fact::OrderPlaced { order, terms, counted: true, at: START }.into());
        let rested = fact::OrderRested {
            order,
            reserved_cash: Cash::ZERO,
            reserved_qty: Qty::ZERO,
            awaiting_book: false,
            held: false,
            at: START,
        };
        users.apply(OWNER, &rested.into());
        for _ in 0..*count {
            let fill = fact::OrderFilled {
                order,
                trade: TradeId(object()),
                position,
                qty: Qty::from_shares(1),
                notional: Cash(100_000),
                fee: Cash::ZERO,
                fee_rate: Bps(0),
                liquidity: Liquidity::Maker,
                source: PriceSource::BookWalk,
                quote_age_ms: None,
                cost_out: Cash::ZERO,
                reserved_cash: Cash::ZERO,
                reserved_qty: Qty::ZERO,
                levels: Vec::new(),
                at: START,
                venue_at: None,
            };
            users.apply(OWNER, &fill.into());
        }
        orders.push(order);
    }
    (users, orders)
}

/// A list that both sides see.
type Shared<T> = Arc<Mutex<Vec<T>>>;

/// A store that wants history from a day on, and notes what is cut.
#[derive(Clone, Default)]
struct Cutting {
    rows: InMemory,
    wanted: Arc<Mutex<Option<UtcDay>>>,
    /// It takes nothing.
    is_full: Arc<Mutex<bool>>,
    /// Days and users, in the order of the calls.
    cuts: Shared<(UtcDay, Vec<UserId>)>,
}

impl EndedStore for Cutting {
    fn ready(&mut self) -> Result<(), Box<dyn Error>> {
        if *self.is_full.lock() { Err("no room on the disk".into()) } else { Ok(()) }
    }

    fn write(&mut self, users: &Users, leaving: &[Leaving], upto: Lsn, record_crc: u32) -> Result<(), Box<dyn Error>> {
        self.rows.write(users, leaving, upto, record_crc)
    }

    fn wanted_from(&mut self, _: UtcDay) -> Option<UtcDay> {
        *self.wanted.lock()
    }

    fn cut(&mut self, day: UtcDay, users: Vec<UserId>) {
        self.cuts.lock().push((day, users));
    }
}

/// What the core is asked, and whether its queue takes it.
#[derive(Clone, Default)]
struct Core {
    asked: Shared<(UtcDay, SyncSender<Answer>)>,
    is_full: Arc<Mutex<bool>>,
}

impl Core {
    fn ask(&self) -> AskCut {
        let core = self.clone();
        Box::new(move |day| {
            let (sender, answer) = sync_channel(1);
            let is_taken = !*core.is_full.lock();
            is_taken.then(|| core.asked.lock().push((day, sender)))?;
            Some(answer)
        })
    }
}

/// The store is cut after the release of the fact, and not before; what was refused is asked again.
#[test]
fn a_cut_follows_its_record() {
    let (mut place, keeper) = place();
    let (store, core) = (Cutting::default(), Core::default());
    let window = Window { hot_us: 0, rows_max: 16, orders_max: usize::MAX };
    let mover = Mover::new(Box::new(store.clone()), window, Shards::default().drop_rows()).cutting(core.ask());
    let mut keeper = keeper.moving(mover);
    let (today, stop) = (START.day(), Stop::default());
    let after = UtcDay(today.0 + 1);
    // Each checkpoint has a new record, and a turn of the keeper comes after it.
    let mut checkpoint = |place: &mut Place, day: Option<UtcDay>| {
        let mut last = place.ended(&[100 + u64::from(place.next)]);
        if let Some(day) = day {
            last = place.cut(day, START.plus((100 + u64::from(place.next)) * SECOND));
            place.syncer.turn().expect("the disk is there");
        }
        keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
        keeper.take_turn(&stop).expect("a sound log");
    };
    let asked = || core.asked.lock().iter().map(|(day, _)| *day).collect::<Vec<_>>();
    let cuts = || std::mem::take(&mut *store.cuts.lock());
    let answer = |answer: Answer| core.asked.lock().pop().expect("it was asked").1.send(answer).expect("it waits");
    checkpoint(&mut place, None);
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![]), "nothing is wanted");
    // No row is of a day before.
    *store.wanted.lock() = Some(today);
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![]));
    *core.is_full.lock() = true;
    *store.wanted.lock() = Some(after);
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![]), "the queue is full");
    *core.is_full.lock() = false;
    checkpoint(&mut place, None);
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![after], vec![]), "asked once, and not released");
    answer(Answer::Refused(Reject::NoRoom));
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![]), "the refusal is seen in the turn after it");
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![after], vec![]), "asked again");
    answer(Answer::Done);
    checkpoint(&mut place, Some(after));
    let cut = (after, vec![OWNER]);
    assert_eq!(asked(), vec![]);
    assert!(cuts().iter().all(|of| *of == cut));
    // From then on it is known by the state, and said again after each move.
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![cut.clone()]));
    // An earlier day changes nothing.
    *store.wanted.lock() = Some(today);
    checkpoint(&mut place, None);
    assert_eq!((asked(), cuts()), (vec![], vec![cut]));
    let (kept, _) = recover::look(&place.data, false).expect("a sound log");
    let (whole, _) = recover::look(&place.data, true).expect("a sound log");
    assert_eq!((kept.markets.history_from(), whole.markets.history_from()), (after, after));
    assert_eq!(recover::digest(&kept), recover::digest(&whole));
    println!("cuts: 10 cases");
}

/// A released record that a power cut may still lose cuts nothing; by then rows of more users may have left.
#[test]
fn a_cut_waits_until_its_record_is_on_the_device() {
    let (mut place, keeper) = place();
    let (store, core) = (Cutting::default(), Core::default());
    let window = Window { hot_us: 0, rows_max: 16, orders_max: usize::MAX };
    let mover = Mover::new(Box::new(store.clone()), window, Shards::default().drop_rows()).cutting(core.ask());
    let (mut keeper, stop) = (keeper.moving(mover), Stop::default());
    let after = UtcDay(START.day().0 + 1);
    *store.wanted.lock() = Some(after);
    let other = UserId(2);
    place.user(other);
    let last = place.ended(&[0, 100]);
    keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
    place.ended_of(other, &[200, 300]);
    let last = place.ended(&[400]);
    keeper.checkpoint(Lsn::ZERO, last).expect("room on the disk");
    let (_, answer) = core.asked.lock().pop().expect("it was asked");
    let mut turn = || {
        keeper.take_turn(&stop).expect("a sound log");
        std::mem::take(&mut *store.cuts.lock())
    };
    assert_eq!(turn(), vec![], "it is not released");
    place.cut(after, START.plus(500 * SECOND));
    answer.send(Answer::Done).expect("it waits");
    for _ in 0..3 {
        assert_eq!(turn(), vec![], "it is not on the device");
    }
    place.syncer.turn().expect("the disk is there");
    assert_eq!(turn(), vec![(after, vec![OWNER, other])]);
    assert_eq!(turn(), vec![], "once");
    println!("cuts and the device: 6 cases");
}
