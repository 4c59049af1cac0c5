//! What counts as found, and of whom rows are missing.

use super::*;

/// Of more users than a manifest has room for each counts by itself: users who come later, and rows that leave later, are not
/// concerned.
#[test]
fn holes_of_many_users_concern_no_other() {
    const USERS: u64 = 4_200;
    let mut whole = world(41, USERS, 1);
    let left = whole.all();
    let mut state = world(41, USERS, 1).users;
    left.iter().for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let place = tempfile::tempdir().expect("a folder");
    let rebuilt = crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &state, &Sources::default()).expect("written");
    assert!(rebuilt.users.len() == USERS as usize && rebuilt.users.iter().all(UserRows::has_holes));
    let store = open(place.path());
    assert_eq!(store.holes().len(), USERS as usize);
    let later = whole.add_user(USERS * 3 + 3);
    let orders: Vec<OrderId> = (0..5).map(|_| whole.place_any(later)).collect();
    let leaving = Leaving { user: later, orders: orders.clone(), positions: Vec::new() };
    store.writer(LOG).write(&whole.users, &[leaving], UPTO + 5).expect("written");
    let mut cases = 0;
    for user in [later, left[0].user, left[USERS as usize - 1].user] {
        let of = store.reader(LOG).of(user, UPTO + 5);
        let found: Result<Vec<OrderId>, _> = of.orders(None, None).map(|row| row.map(|row| row.order.id)).collect();
        let (request, signed) = (of.request("never"), of.signed_order(&[9; 32]));
        if user == later {
            assert_eq!(found.expect("whole"), orders.iter().rev().copied().collect::<Vec<_>>());
            assert!(matches!((request, signed), (Ok(None), Ok(None))));
        } else {
            assert!(found.is_err() && is_incomplete(&request) && is_incomplete(&signed), "{user}");
        }
        cases += 3;
    }
    println!("holes of many users: {} users, {cases} cases", rebuilt.users.len());
}

/// Requests that were forgotten before their orders left are in stores and earlier states, too: more are found than left.
#[test]
fn more_requests_than_left_are_no_hole() {
    // Users who have forgotten the requests of their first orders.
    let make = |forgotten: usize| {
        let mut world = world(44, 2, 60);
        let placed = world.users.iter().flat_map(|user| user.orders().iter()).map(|order| order.created_at);
        let mut placed: Vec<_> = placed.collect();
        placed.sort();
        while world.users.forget_requests(placed[forgotten], usize::MAX) {}
        world
    };
    let mut state = make(40).users;
    let left = make(0).all();
    left.iter().for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let mut cases = 0;
    // (forgotten before the move that the store has, before the state that is read; users with more requests, proved, whole)
    for (stored, remembered, has_more, is_proved, is_whole) in [
        (Some(0), None, true, true, true),
        (None, Some(0), true, true, true),
        (Some(20), None, true, false, true),
        (None, Some(20), true, false, true),
        (Some(20), Some(0), true, true, true),
        (Some(40), None, false, false, true),
        (Some(60), None, false, false, false),
        (Some(60), Some(50), false, false, false),
        (Some(60), Some(0), true, true, true),
    ] {
        let (place, store) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let before = remembered.map(make);
        let mut sources = Sources { states: before.iter().map(|world| &world.users).collect(), ..Sources::default() };
        if let Some(forgotten) = stored {
            create(store.path()).writer(LOG).write(&make(forgotten).users, &left, UPTO).expect("written");
            sources.stores.push(store.path().join(FOLDER));
        }
        let rebuilt = crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &state, &sources).expect("written");
        let what = format!("stored {stored:?}, remembered {remembered:?}: {:?}", rebuilt.users);
        assert_eq!(rebuilt.users.iter().any(|user| user.found[3] > user.left[3]), has_more, "{what}");
        assert_eq!(rebuilt.users.iter().all(|user| user.is_proved), is_proved, "{what}");
        assert_eq!(rebuilt.users.iter().all(|user| !user.has_holes()), is_whole, "{what}");
        assert_eq!(open(place.path()).holes().is_empty(), is_whole, "{what}");
        cases += 4;
    }
    println!("requests that were forgotten: {cases} cases");
}

/// Rows of a copy that went on by itself: they win over nothing, and count only if the hashes say so.
#[test]
fn rows_that_are_doubted_count_by_their_hashes() {
    // The same orders at other times.
    let (whole, other) = (world_of_days(45, 2, 50, 0), world_of_days(45, 2, 50, 1));
    let left = whole.all();
    assert_eq!(other.all(), left);
    let mut state = world_of_days(45, 2, 50, 0).users;
    left.iter().for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let stored = |world: &World, lsn: u64| {
        let place = tempfile::tempdir().expect("a folder");
        create(place.path()).writer(LOG).write(&world.users, &left, lsn).expect("written");
        place
    };
    let (store, copy) = (stored(&whole, 30), stored(&other, UPTO));
    let folder = |place: &TempDir| vec![place.path().join(FOLDER)];
    // (name, sources, whether rows are those that left, whether users are whole)
    let rows = [
        ("its own", Sources { stores: folder(&store), ..Sources::default() }, true, true),
        ("a state of a copy beside it", Sources { states: vec![&other.users], ..stores(&[store.path()]) }, true, true),
        ("a later store of a copy beside it", stores(&[store.path(), copy.path()]), true, true),
        (
            "a doubted one beside it",
            Sources { doubted: (folder(&copy), vec![&other.users]), ..stores(&[store.path()]) },
            true,
            true,
        ),
        ("a doubted backup", Sources { doubted: (folder(&store), Vec::new()), ..Sources::default() }, true, true),
        ("its state", Sources { doubted: (Vec::new(), vec![&whole.users]), ..Sources::default() }, true, true),
        ("a doubted copy", Sources { doubted: (folder(&copy), Vec::new()), ..Sources::default() }, false, false),
        ("its state", Sources { doubted: (Vec::new(), vec![&other.users]), ..Sources::default() }, false, false),
    ];
    for (name, sources, is_proved, is_whole) in &rows {
        let place = tempfile::tempdir().expect("a folder");
        let rebuilt = crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &state, sources).expect("written");
        for user in &rebuilt.users {
            assert_eq!(user.found, user.left, "{name}");
            assert_eq!((user.is_proved, !user.has_holes()), (*is_proved, *is_whole), "{name}: {user:?}");
        }
        if *is_proved {
            all_agree(&whole, reader(place.path()), &left, name);
        }
    }
    println!("rows that are doubted: {} cases", rows.len());
}

/// Users with more rows than a run has: the runs are as one, and of several orders with one hash the newest counts.
#[test]
fn runs_of_rows_join() {
    let make = || {
        let mut world = World::default();
        for user in [3, 9] {
            let user = world.add_user(user);
            for number in 0..700_u32 {
                let mut placed = Placed { market: u64::from(number % 4), fills: vec![1, 1], ..Placed::default() };
                match number % 3 {
                    0 => placed.client_order_id = Some(format!("id-{number}")),
                    1 => {
                        placed.request_id = Some(format!("implicit-{number}"));
                        placed.order_hash = Some([(number % 50) as u8; 32]);
                    }
                    _ => {}
                }
                world.place(user, &placed);
            }
        }
        world
    };
    let (whole, mut state) = (make(), make().users);
    let left = whole.all();
    left.iter().for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let (place, store) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    create(store.path()).writer(LOG).write(&whole.users, &left, UPTO).expect("written");
    let expected = open(store.path()).opened().expect("open").manifest().expect("rows");
    let rebuilt =
        crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &state, &stores(&[store.path()])).expect("written");
    assert!(rebuilt.users.iter().all(|user| user.is_proved && !user.has_holes()), "{:?}", rebuilt.users);
    let manifest = open(place.path()).opened().expect("open").manifest().expect("rows");
    assert_eq!(manifest.days, expected.days, "the same bytes");
    let of = reader(place.path());
    let mut cases = 0;
    for leaving in &left {
        let (of, hot) = (of(leaving.user), whole.users.get(leaving.user).expect("a user"));
        for hash in (0..50_u8).map(|byte| [byte; 32]) {
            let with = leaving
                .orders
                .iter()
                .rev()
                .find(|id| hot.order(**id).and_then(|order| order.terms.order_hash().copied()) == Some(hash));
            assert_eq!(of.signed_order(&hash).expect("readable"), with.copied());
            cases += 1;
        }
        for order in leaving.orders.iter().filter_map(|id| hot.order(*id)) {
            assert_eq!(of.request_of(order).expect("readable").as_ref(), hot.request_of(order.id));
            cases += 1;
        }
        let fills = of.fills(None).collect::<Result<Vec<_>, _>>().expect("readable");
        assert_eq!(fills.len(), hot.fills().len());
        for market in (0..4).map(MarketId) {
            let is_of = |id: &&OrderId| hot.order(**id).is_some_and(|of| of.terms.instrument.market() == market);
            let listed = of.orders(Some(market), None).map(|row| row.expect("readable").order.id).collect::<Vec<_>>();
            assert_eq!(listed, leaving.orders.iter().rev().filter(is_of).copied().collect::<Vec<_>>());
            cases += listed.len();
        }
    }
    drop(of);
    sound(place.path(), "runs");
    println!("runs of rows: {cases} cases");
}
