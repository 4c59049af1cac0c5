use super::*;
use engine::amount::Cash;
use engine::book::Books;
use engine::fact;
use engine::id::{OrderId, WalletId};
use engine::look_up::filters::{Filters as _, Kind, May, id_hash};
use engine::mutation::Mutation;
use engine::order::CloseReason;
use engine::time::Timestamp;
use engine::user::WalletKind;
use history::filters::FILTER_BYTES_MIN;
use history::{Fills, History};
use host::job::{Next, Work as _};
use journal::mover::EndedStore as _;
use journal::testing::{START, placed};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use tempfile::TempDir;

const LOG: u128 = 77;
const OWNER: UserId = UserId(5);
/// No id ends during a test.
const IDS_US: u64 = 100 * 365 * engine::time::DAY;

/// A folder as a data directory must be: only its owner may have access.
fn private_folder() -> TempDir {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o700)).tempdir().expect("a temporary folder")
}

/// A user with orders that have ended, each with a client order id.
fn users(ids: &[&str]) -> (Users, Vec<OrderId>) {
    let (mut users, mut orders) = (Users::default(), Vec::new());
    let (wallet, kind, baseline) = (WalletId(OWNER.object(1)), WalletKind::Api, Cash::from_dollars(100));
    let (label, parent) = (None, None);
    let mut apply = |fact: Mutation| users.apply(OWNER, &fact);
    apply(fact::UserCreated { sub: None, email: None, at: START }.into());
    apply(fact::WalletOpened { wallet, kind, label, baseline, generation: 1, parent, at: START }.into());
    for (nth, id) in ids.iter().enumerate() {
        let number = nth as u32 + 2;
        let order = OrderId(OWNER.object(number));
        apply(placed(OWNER, number));
        apply(fact::OrderClosed { order, reason: CloseReason::UserCancelled, at: START }.into());
        let client_order_id = (*id).to_owned();
        apply(fact::RequestRemembered { order, client_order_id, digest: [7; 32] }.into());
        orders.push(order);
    }
    (users, orders)
}

/// A process with the history of a directory.
struct Running {
    moving: Moving,
    filters: OpenFilters,
    /// Ends moves.
    stop: Stop,
    /// Has the store open.
    _history: History,
}

fn start(data: &Path) -> Running {
    let (mut history, ..) = History::open(Some(data.join("history")), 4 << 20, Arc::default(), Fills::default());
    let stop = Stop::new();
    while history.take_turn(&stop).expect("it never fails") != Next::Sleep {}
    let (store, filters) = (history.ended(), OpenFilters::default());
    let moving = Moving {
        writer: store.writer(LOG).until(stop.clone()),
        names: Names {
            folder: data.join("history").join(FILTERS_FOLDER),
            bytes_max: FILTER_BYTES_MIN,
            ids_us: IDS_US,
            open: filters.clone(),
            clock: Clock::wall(),
            writer: None,
            stop: Stop::new(),
        },
        store,
        needed: Needed { log: LOG, upto: 0, end: 100 },
        fits: false,
        room: Room { folder: data.to_owned(), free_bytes_min: 0 },
        cut: Cutting {
            keep: KeepSettings { days: None, bytes_max: None, days_least: 4 },
            far: FarCuts::new(Clock::wall(), Arc::new(Leap::none())),
            shown: Arc::default(),
            to: UtcDay(0),
            warned: false,
        },
    };
    Running { moving, filters, stop, _history: history }
}

impl Running {
    fn moves(&mut self, users: &Users, order: OrderId, upto: u64) -> Result<(), Box<dyn Error>> {
        let leaving = Leaving { user: OWNER, orders: vec![order], positions: Vec::new() };
        self.moving.write(users, &[leaving], Lsn(upto), 1)
    }

    fn may_have(&self, id: &str) -> May {
        self.filters.may_have(OWNER, Kind::ClientOrderId, id_hash(id), START)
    }
}

/// Files of the filters with what they have.
fn files(data: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(data.join("history").join(FILTERS_FOLDER)).expect("a folder").flatten();
    let named = |entry: fs::DirEntry| {
        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).expect("readable"))
    };
    entries.map(named).collect()
}

/// A kill between names and rows leaves names without rows, which the next process opens as they are. Names that are missing,
/// as they would be if rows came first, are made again from all rows.
#[test]
fn names_are_written_before_rows() {
    let place = private_folder();
    let data = place.path();
    let ids = ["first", "second"];
    let (users, orders) = users(&ids);
    let mut process = start(data);
    assert!(process.moving.prepare());
    assert_eq!(ids.map(|id| process.may_have(id)), [May::No; 2]);
    // The move ends before its first row, and after its names.
    process.stop.set();
    let ended = process.moves(&users, orders[0], 5).expect_err("it was stopped");
    assert!(ended.is::<GivenUp>(), "{ended}");
    assert_eq!(ids.map(|id| process.may_have(id)), [May::Perhaps, May::No]);
    assert_eq!(process.moving.store.upto().expect("open"), 0);
    drop(process);
    let names = files(data);
    let mut process = start(data);
    assert!(process.moving.prepare());
    assert_eq!(ids.map(|id| process.may_have(id)), [May::Perhaps, May::No], "names without rows");
    assert_eq!(files(data), names, "they are not made again");
    process.moves(&users, orders[0], 6).expect("the move is repeated");
    process.moves(&users, orders[1], 9).expect("and the next one");
    assert_eq!(process.moving.store.upto().expect("open"), 9);
    assert_eq!(ids.map(|id| process.may_have(id)), [May::Perhaps; 2]);
    drop(process);
    // The names of before the rows.
    let folder = data.join("history").join(FILTERS_FOLDER);
    for (name, _) in files(data) {
        fs::remove_file(folder.join(name)).expect("it was there");
    }
    for (name, bytes) in &names {
        fs::write(folder.join(name), bytes).expect("written");
    }
    let mut process = start(data);
    assert_eq!(ids.map(|id| process.may_have(id)), [May::Unknown; 2], "they are not open yet");
    assert!(process.moving.prepare());
    assert_eq!(ids.map(|id| process.may_have(id)), [May::Perhaps; 2], "made again from all rows");
    assert_eq!(process.may_have("never sent"), May::No);
    assert_ne!(files(data), names);
    println!("names before rows: 8 cases");
}

#[test]
fn the_first_day_follows_from_settings_and_room() {
    let keep = |days: Option<u32>, days_least: u32| KeepSettings { days, bytes_max: None, days_least };
    let cases = [
        // Nothing is bounded, or there is room.
        (keep(None, 4), 100, None, None, false),
        (keep(Some(4), 4), 100, None, Some(96), false),
        (keep(Some(30), 4), 100, None, Some(70), false),
        // A server younger than that.
        (keep(Some(30), 4), 20, None, None, false),
        // The later of both bounds counts.
        (keep(None, 4), 100, Some(50), Some(50), false),
        (keep(Some(30), 4), 100, Some(50), Some(70), false),
        (keep(Some(30), 4), 100, Some(90), Some(90), false),
        // Never the last days, and as many as ids need.
        (keep(None, 4), 100, Some(96), Some(96), false),
        (keep(None, 4), 100, Some(97), Some(96), true),
        (keep(None, 8), 100, Some(96), Some(92), true),
        (keep(None, 8), 100, Some(200), Some(92), true),
    ];
    for (keep, today, by_room, expected, is_too_much) in cases {
        let found = kept_from(keep, UtcDay(today), by_room.map(UtcDay));
        assert_eq!(found, (expected.map(UtcDay), is_too_much), "{keep:?} {by_room:?}");
    }
    println!("first days: {} cases", cases.len());
}

/// Where rows go, with a disk of which this much must be free.
fn moving(place: &Path, store: EndedStore, upto: u64, free_bytes_min: u64) -> Moving {
    let (clock, log) = (Clock::fake(Timestamp(0)), 7);
    Moving {
        writer: store.writer(log),
        names: Names {
            folder: place.join(FILTERS_FOLDER),
            bytes_max: 1 << 20,
            ids_us: 1,
            open: OpenFilters::default(),
            clock: clock.clone(),
            writer: None,
            stop: Stop::new(),
        },
        store,
        needed: Needed { log, upto, end: 10 },
        fits: false,
        room: Room { folder: place.to_owned(), free_bytes_min },
        cut: Cutting {
            keep: KeepSettings { days: None, bytes_max: None, days_least: 4 },
            far: FarCuts::new(clock, Arc::new(Leap::none())),
            shown: Arc::default(),
            to: UtcDay(0),
            warned: false,
        },
    }
}

/// What is known without rows: a missing store, one that lacks what the state needs, and a full disk.
#[test]
fn a_store_says_beforehand_that_it_takes_nothing() {
    let place = private_folder();
    let folder = place.path().join("history");
    let (mut history, ..) = History::open(Some(folder), 8 << 20, Arc::new(Books::new()), Fills::default());
    // The first turn opens the store.
    history.take_turn(&Stop::new()).expect("a history does not fail");
    let (open, missing, all) = (history.ended(), EndedStore::missing(), u64::MAX >> 1);
    let mut cases = 0;
    // (store, LSN up to which rows have left, bytes that must be free, whether it is ready)
    for (store, upto, free_bytes_min, is_ready) in [
        (&open, 0, 0, true),
        (&open, 0, all, false),
        (&open, 5, 0, false),
        (&missing, 0, 0, false),
        (&missing, 5, all, false),
    ] {
        let mut moving = moving(place.path(), store.clone(), upto, free_bytes_min);
        let ready = journal::mover::EndedStore::ready(&mut moving);
        assert_eq!(ready.is_ok(), is_ready, "case {cases}: {ready:?}");
        cases += 1;
    }
    println!("stores that take nothing: {cases} cases");
}

/// Who sees that rows are passed over sees that answers have to say so, and for whom.
#[test]
fn what_is_hidden_was_published_before() {
    let place = private_folder();
    let (store, user, last) = (EndedStore::missing(), UserId(3), 20_000);
    let mut moving = moving(place.path(), store.clone(), 0, 0);
    let shown = moving.cut.shown.clone();
    let read = || {
        for reads in 1_u64.. {
            let hidden = store.shown_from();
            let is_published = || shown.of(user).is_some_and(|day| day >= hidden);
            assert!(hidden == UtcDay(0) || is_published(), "hidden before {}", hidden.0);
            if hidden.0 == last {
                return reads;
            }
        }
        unreachable!("the last day is cut");
    };
    let reads = std::thread::scope(|scope| {
        let reading = scope.spawn(read);
        (1..=last).for_each(|day| journal::mover::EndedStore::cut(&mut moving, UtcDay(day), vec![user]));
        reading.join().expect("each cut was published")
    });
    println!("cuts that are published: {last} cases, {reads} reads beside them");
}

#[test]
fn a_stop_is_no_failure() {
    let cases: [(Box<dyn Error>, bool); 6] = [
        (StoreError::GivenUp.into(), true),
        (NamesError::Stopped.into(), true),
        (StoreError::Busy.into(), false),
        (StoreError::Opening.into(), false),
        (NamesError::Filter(FilterError::Missing).into(), false),
        ("the disk is full".into(), false),
    ];
    for (error, expected) in &cases {
        assert_eq!(is_stop(&**error), *expected, "{error}");
    }
    println!("stops: {} cases", cases.len());
}
