use super::*;
use engine::amount::Cash;
use engine::fact;
use engine::id::{OrderId, WalletId};
use engine::look_up::filters::{Filters as _, Kind, May, id_hash};
use engine::mutation::Mutation;
use engine::order::CloseReason;
use engine::user::WalletKind;
use history::filters::FILTER_BYTES_MIN;
use history::{Fills, History};
use host::job::{Next, Work as _};
use journal::mover::EndedStore as _;
use journal::testing::{START, placed};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

const LOG: u128 = 77;
const OWNER: UserId = UserId(5);
/// No id ends during a test.
const IDS_US: u64 = 100 * 365 * engine::time::DAY;

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
struct Process {
    moving: Moving,
    filters: OpenFilters,
    /// Ends moves.
    stop: Stop,
    /// Has the store open.
    _history: History,
}

fn start(data: &Path) -> Process {
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
            shown: Arc::default(),
            to: UtcDay(0),
            warned: false,
        },
    };
    Process { moving, filters, stop, _history: history }
}

impl Process {
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
    let place = tempfile::tempdir().expect("a folder");
    let data = place.path();
    let ids = ["first", "second"];
    let (users, orders) = users(&ids);
    let mut process = start(data);
    assert!(process.moving.prepare());
    assert_eq!(ids.map(|id| process.may_have(id)), [May::No; 2]);
    // The move ends before its first row, and after its names.
    process.stop.set();
    let ended = process.moves(&users, orders[0], 5).expect_err("it was stopped");
    assert!(matches!(ended.downcast_ref::<StoreError>(), Some(StoreError::GivenUp)), "{ended}");
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
