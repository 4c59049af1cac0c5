//! Rebuilds of stores whose history was cut.

use super::*;

/// A store whose history was cut: what was cut does not count as missing where the rows of the days that are kept are
/// counted; where they are not, or more of them are missing than other users lack, users with cut rows count as lacking some.
#[test]
fn what_was_cut_is_not_missing() {
    const LATE: UserId = UserId(99);
    let make = || {
        let mut world = world_of_days(31, 2, 60, 3 * HOUR);
        let (first, last) = days(&world);
        world.add_user(LATE.0);
        (0..40).for_each(|_| _ = world.place_any(LATE));
        (world, UtcDay(u32::midpoint(first.0, last.0)))
    };
    let (whole, day) = make();
    let (late, early): (Vec<Leaving>, Vec<Leaving>) = whole.all().into_iter().partition(|of| of.user == LATE);
    let mut state = make().0.users;
    early.iter().chain(&late).for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let stored = |is_removed: bool| {
        let place = tempfile::tempdir().expect("a folder");
        let store = create(place.path());
        let mut writer = store.writer(LOG);
        writer.write(&whole.users, &early, 20).expect("written");
        writer.write(&whole.users, &late, UPTO).expect("written");
        assert!(writer.cut(day).expect("cut") > 0);
        while is_removed && !writer.tend(Some(0)).expect("merged") {
            std::thread::yield_now();
        }
        place
    };
    // The orders of the last user are in a file of their own.
    let orders_of = |folder: &Path, is_late: bool| {
        let files = loose_files(&folder.join(FOLDER)).expect("readable").into_iter();
        let first = |file: &Path| {
            let opened = Opener::new().open(file).expect("sound");
            let is_orders = space_of(opened.rows()) == Some(Space::Orders);
            let key = opened.rows().next().filter(|_| is_orders)?.0;
            user_of(&key)
        };
        let mut of = files.filter(|file| first(file).is_some_and(|user| (user == LATE) == is_late));
        of.next().expect("a file of orders")
    };
    let place = stored(false);
    let (removed, flipped, gone) = (stored(true), tempfile::tempdir().expect("a folder"), stored(false));
    copy(place.path(), flipped.path());
    let file = orders_of(flipped.path(), true);
    let mut bytes = fs::read(&file).expect("readable");
    bytes[100] ^= 1;
    fs::write(&file, bytes).expect("written");
    fs::remove_file(orders_of(gone.path(), false)).expect("it was there");
    let other_log = tempfile::tempdir().expect("a folder");
    create(other_log.path()).writer(LOG + 1).write(&whole.users, &early, UPTO).expect("written");
    let (from, by) = (|place: &TempDir| stores(&[place.path()]), |place: &TempDir| vec![place.path().to_owned()]);
    // (name, sources, who counts, whether users with cut rows are whole, whether the last one is)
    let rows = [
        ("sound", from(&place), by(&place), true, true),
        ("removed", from(&removed), by(&removed), true, true),
        ("a damaged block of another user", from(&flipped), by(&flipped), true, false),
        ("a lost file of theirs", from(&gone), by(&place), false, true),
        ("uncounted", from(&place), Vec::new(), false, true),
        ("counted by another log", from(&place), by(&other_log), false, true),
        ("counted by a store that cannot be opened", from(&place), by(&gone), false, true),
        ("nothing", Sources::default(), by(&place), false, false),
    ];
    let mut cases = 0;
    for (name, sources, counted_by, is_whole, late_is_whole) in rows {
        let new = tempfile::tempdir().expect("a folder");
        let sources = Sources { counted_by, ..sources };
        let rebuilt = crate::rebuild(new.path(), LOG, UPTO, day, &state, &sources).expect("it can be written");
        assert_eq!(rebuilt.users.len(), 3, "{name}");
        for user in &rebuilt.users {
            let is_late = user.user == LATE;
            assert_eq!(user.has_cut, !is_late, "{name}: {user:?}");
            assert_eq!(user.has_holes(), !(if is_late { late_is_whole } else { is_whole }), "{name}: {user:?}");
            cases += 1;
        }
        let is_counted = !name.contains("counted");
        match &rebuilt.cut {
            CutRows::Whole => assert!(is_whole, "{name}"),
            CutRows::Unknown { missing } => assert!(!is_whole && is_counted && missing[0] > 0, "{name}: {missing:?}"),
            CutRows::Uncounted(why) => assert!(!is_whole && !is_counted && !why.is_empty(), "{name}"),
            CutRows::None => panic!("{name}: some have"),
        }
        let lacking = rebuilt.users.iter().filter(|user| user.has_holes()).count();
        assert_eq!(crate::check(new.path()).expect("it can be opened").damages.len(), lacking, "{name}");
        // What counts as whole is what memory had, without what was cut.
        let of = reader(new.path());
        for leaving in kept(&whole, &whole.all(), day) {
            let is_whole = rebuilt.users.iter().any(|user| user.user == leaving.user && !user.has_holes());
            let found: Result<Vec<OrderId>, _> =
                of(leaving.user).orders(None, None).map(|row| row.map(|row| row.order.id)).collect();
            let expected: Vec<OrderId> = leaving.orders.iter().rev().copied().collect();
            assert_eq!(found.as_ref().is_ok_and(|found| *found == expected), is_whole, "{name}: {found:?}");
            cases += 1;
        }
    }
    println!("cut histories: {cases} cases");
}

/// A cut after which all missing rows would be cut, too, ends the holes: but for hashes of signed orders, which count for ever.
#[test]
fn a_cut_ends_holes_but_for_hashes() {
    let mut cases = 0;
    // (whether some orders are signed, whether the old store counts them, whether hashes are still missing after the cut)
    for (is_signed, is_counted, lacks_hashes) in
        [(true, true, true), (true, false, true), (false, true, false), (false, false, true)]
    {
        let make = || {
            let mut world = World::default();
            let user = world.add_user(3);
            for number in 0..30_u8 {
                let order_hash = (is_signed && number % 3 == 0).then_some([number; 32]);
                let request_id = order_hash.map(|_| format!("implicit-{number}"));
                let client_order_id = Some(format!("id-{number}"));
                world.place(
                    user,
                    &Placed { client_order_id, request_id, order_hash, fills: vec![2], ..Placed::default() },
                );
            }
            world
        };
        let (mut whole, mut state) = (make(), make().users);
        let left = whole.all();
        left.iter().for_each(|leaving| _ = state.depart(leaving));
        state.set_departed_upto(UPTO);
        let (old, place) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        create(old.path()).writer(LOG).write(&whole.users, &left, UPTO).expect("written");
        let counted_by = if is_counted { vec![old.path().to_owned()] } else { Vec::new() };
        let sources = Sources { counted_by, ..Sources::default() };
        let rebuilt = crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &state, &sources).expect("written");
        assert!(rebuilt.users[0].has_holes() && !rebuilt.users[0].is_whole);
        let store = open(place.path());
        let mut writer = store.writer(LOG);
        // A move, so that there is a manifest with rows; the cut leaves nothing of either.
        let user = left[0].user;
        let later = whole.place(user, &Placed { fills: vec![1], ..Placed::default() });
        let leaving = Leaving { user, orders: vec![later], positions: Vec::new() };
        writer.write(&whole.users, &[leaving], UPTO + 1).expect("written");
        let is_listed = |store: &EndedStore| {
            let of = store.reader(LOG).of(user, UPTO + 1);
            (
                of.orders(None, None).all(|row| row.is_ok()),
                of.request("id-3").is_ok(),
                of.signed_order(&[77; 32]).is_ok(),
            )
        };
        let hashes = |store: &EndedStore| store.opened().expect("open").hole_of(user).map(|hole| hole.has_hashes);
        assert_eq!((is_listed(&store), hashes(&store)), ((false, false, !lacks_hashes), Some(lacks_hashes)));
        let (_, last) = days(&whole);
        writer.cut(UtcDay(last.0 + 1)).expect("cut");
        for what in ["cut", "opened again"] {
            let copy = copied(place.path());
            let store = if what == "cut" { store.clone() } else { open(copy.path()) };
            assert_eq!(is_listed(&store), (true, true, !lacks_hashes), "{what}, {is_signed}, {is_counted}");
            assert_eq!(store.holes().len(), usize::from(lacks_hashes), "{what}");
            cases += 2;
        }
    }
    println!("cuts that end holes: {cases} cases");
}

/// The hashes of signed orders that were cut are in the new store, or are known to be missing.
#[test]
fn hashes_of_cut_orders_stay() {
    let make = || world_of_days(43, 3, 60, 3 * HOUR);
    let whole = make();
    let (first, last) = days(&whole);
    let day = UtcDay(u32::midpoint(first.0, last.0));
    let left = whole.all();
    let mut state = make().users;
    left.iter().for_each(|leaving| _ = state.depart(leaving));
    state.set_departed_upto(UPTO);
    let store = tempfile::tempdir().expect("a folder");
    let ended = create(store.path());
    let mut writer = ended.writer(LOG);
    writer.write(&whole.users, &left, UPTO).expect("written");
    assert!(writer.cut(day).expect("cut") > 0);
    while !writer.tend(Some(0)).expect("merged") {
        std::thread::yield_now();
    }
    drop((writer, ended));
    let without = tempfile::tempdir().expect("a folder");
    copy(store.path(), without.path());
    let mut removed = 0;
    for file in loose_files(&without.path().join(FOLDER)).expect("readable") {
        if space_of(Opener::new().open(&file).expect("sound").rows()) == Some(Space::ByHash) {
            fs::remove_file(&file).expect("it was there");
            removed += 1;
        }
    }
    assert!(removed > 0);
    let of_store = |folder: &Path, counted_by: Vec<PathBuf>| Sources { counted_by, ..stores(&[folder]) };
    let counted = || vec![store.path().to_owned()];
    let before = || Sources { states: vec![&whole.users], ..of_store(without.path(), counted()) };
    let later = || Sources { counted_by: vec![without.path().to_owned(), store.path().to_owned()], ..before() };
    // (name, sources, how many hashes are missing, if that is known)
    let rows = [
        ("sound", of_store(store.path(), counted()), Some(true)),
        ("uncounted", of_store(store.path(), Vec::new()), None),
        ("without hashes", of_store(without.path(), counted()), Some(false)),
        ("of a state", before(), Some(true)),
        ("counted by the second one", later(), Some(true)),
    ];
    let mut cases = 0;
    for (name, sources, expected) in rows {
        let place = tempfile::tempdir().expect("a folder");
        let rebuilt = crate::rebuild(place.path(), LOG, UPTO, day, &state, &sources).expect("it can be written");
        assert_eq!(rebuilt.lost_hashes.map(|lost| lost == 0), expected, "{name}: {rebuilt:?}");
        assert!(rebuilt.users.iter().all(|user| user.has_cut), "{name}");
        let are_there = expected == Some(true);
        assert!(rebuilt.users.iter().all(|user| user.lacks_hashes != are_there), "{name}: {rebuilt:?}");
        assert_eq!(rebuilt.cut == CutRows::Whole, expected.is_some(), "{name}: {rebuilt:?}");
        let of = reader(place.path());
        for leaving in &left {
            let user = whole.users.get(leaving.user).expect("a user");
            for order in leaving.orders.iter().filter_map(|id| user.order(*id)) {
                let Some(hash) = order.terms.order_hash() else { continue };
                match of(leaving.user).signed_order(hash) {
                    Ok(found) => assert_eq!(found, Some(order.id), "{name}"),
                    found => assert!(is_incomplete(&found) && !are_there, "{name}: {found:?}"),
                }
                cases += 1;
            }
            let unknown = of(leaving.user).signed_order(&[0xee; 32]);
            assert!(
                if are_there { matches!(unknown, Ok(None)) } else { is_incomplete(&unknown) },
                "{name}: {unknown:?}"
            );
        }
        drop(of);
        let damages = crate::check(place.path()).expect("it can be opened").damages;
        assert_eq!(damages.len(), if are_there { 0 } else { left.len() }, "{name}: {damages:?}");
    }
    println!("hashes of cut orders: {cases} cases");
}
