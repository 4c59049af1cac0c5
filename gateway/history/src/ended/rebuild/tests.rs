use super::sources::space_of;
use super::*;
use crate::ended::manifest::Total;
use crate::ended::testing::{
    LOG, Placed, World, all_agree, copied, create, days, kept, open, sound, world, world_of_days,
};
use crate::ended::{EndedOf, EndedStore};
use crate::store::{FOLDER, Opener, loose_files};
use crate::testing::copy;
use engine::departed::{Departed as _, Leaving};
use engine::id::MarketId;
use engine::time::HOUR;
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

mod cut;
mod found;

const UPTO: u64 = 50;

/// A world, the same after all of its ended rows have left, and a store with them.
struct Case {
    whole: World,
    state: Users,
    left: Vec<Leaving>,
    store: TempDir,
}

/// In several moves, so that keyspaces have several files.
fn case(seed: u64, users: u64, orders: u64) -> Case {
    let (whole, gone) = (world(seed, users, orders), world(seed, users, orders));
    let left = whole.all();
    let store = tempfile::tempdir().expect("a folder");
    let ended = create(store.path());
    let mut writer = ended.writer(LOG);
    for (part, lsn) in [(0, 20), (1, 30), (2, UPTO)] {
        let of_part = |id: u64| id / 64 % 3 == part;
        let leaving: Vec<Leaving> = left
            .iter()
            .map(|of| Leaving {
                user: of.user,
                orders: of.orders.iter().copied().filter(|id| of_part(id.0)).collect(),
                positions: of.positions.iter().copied().filter(|id| of_part(id.0)).collect(),
            })
            .collect();
        writer.write(&whole.users, &leaving, lsn).expect("written");
    }
    let mut state = gone.users;
    for leaving in &left {
        state.depart(leaving);
    }
    state.set_departed_upto(UPTO);
    Case { whole, state, left, store }
}

/// The new store of these sources.
fn made(case: &Case, sources: &Sources<'_>) -> (TempDir, Rebuilt) {
    let place = tempfile::tempdir().expect("a folder");
    let rebuilt = crate::rebuild(place.path(), LOG, UPTO, UtcDay(0), &case.state, sources).expect("it can be written");
    assert_eq!(rebuilt.users.len(), case.left.len());
    (place, rebuilt)
}

fn stores(folders: &[&Path]) -> Sources<'static> {
    Sources { stores: folders.iter().map(|folder| folder.join(FOLDER)).collect(), ..Sources::default() }
}

fn reader(folder: &Path) -> impl Fn(UserId) -> EndedOf<'static> + use<> {
    let reader = open(folder).reader(LOG);
    move |user| reader.of(user, UPTO)
}

fn is_incomplete<T: std::fmt::Debug>(found: &Result<T, StoreError>) -> bool {
    matches!(found, Err(StoreError::Incomplete { upto: UPTO }))
}

/// Every answer is that of memory, or says that rows are missing, and never hides it. Returns how many
/// there were, and how many said so.
fn is_honest(case: &Case, of: &impl Fn(UserId) -> EndedOf<'static>, what: &str) -> (usize, usize) {
    let (mut cases, mut incomplete) = (0, 0);
    let mut note = |is_incomplete: bool| {
        cases += 1;
        incomplete += usize::from(is_incomplete);
    };
    for left in &case.left {
        let (of, hot) = (of(left.user), case.whole.users.get(left.user).expect("a user"));
        for id in &left.orders {
            let order = hot.order(*id).expect("it is there");
            let found = of.order(*id);
            let shown = found.as_ref().ok().and_then(|found| found.as_ref()).map(|found| found.order.id);
            assert!(is_incomplete(&found) || shown == Some(*id), "{what}: order {id}: {found:?}");
            note(is_incomplete(&found));
            let found = of.request_of(order);
            let is_same = found.as_ref().is_ok_and(|found| found.as_ref() == hot.request_of(*id));
            assert!(is_incomplete(&found) || is_same, "{what}: request of {id}: {found:?}");
            note(is_incomplete(&found));
            if let Some(text) = hot.request_of(*id).and_then(|request| request.id(order)) {
                let found = of.request(text);
                let newest = hot.remembered(text, engine::time::Timestamp(0)).map(|request| request.order);
                let shown = found.as_ref().ok().map(|found| found.as_ref().map(|found| found.order.order.id));
                assert!(is_incomplete(&found) || shown == Some(newest), "{what}: {text}: {found:?}");
                note(is_incomplete(&found));
            }
            if let Some(hash) = order.terms.order_hash() {
                let found = of.signed_order(hash);
                let is_same = matches!(found, Ok(Some(found)) if found == *id);
                assert!(is_incomplete(&found) || is_same, "{what}: hash of {id}: {found:?}");
                note(is_incomplete(&found));
            }
        }
        // Lists are right up to where something may be missing.
        let expected: Vec<u64> = left.orders.iter().rev().map(|id| id.0).collect();
        let found: Vec<_> = of.orders(None, None).map(|row| row.map(|row| row.order.id.0)).collect();
        note(agrees_until(&found, &expected, what));
        let mut expected: Vec<u64> =
            hot.fills().iter().filter(|fill| left.orders.contains(&fill.order)).map(|fill| fill.id.0).collect();
        expected.reverse();
        let found: Vec<_> = of.fills(None).map(|row| row.map(|(fill, _)| fill.id.0)).collect();
        note(agrees_until(&found, &expected, what));
        let expected: Vec<u64> = left.positions.iter().rev().map(|id| id.0).collect();
        let found: Vec<_> = of.positions(None).map(|row| row.map(|row| row.id.0)).collect();
        note(agrees_until(&found, &expected, what));
        for market in 0..crate::ended::testing::MARKETS as u32 {
            let is_of = |id: &&OrderId| {
                hot.order(**id).is_some_and(|order| order.terms.instrument.market() == MarketId(market))
            };
            let expected: Vec<u64> = left.orders.iter().rev().filter(is_of).map(|id| id.0).collect();
            let found: Vec<_> =
                of.orders(Some(MarketId(market)), None).map(|row| row.map(|row| row.order.id.0)).collect();
            note(agrees_until(&found, &expected, what));
        }
    }
    (cases, incomplete)
}

/// Whether a list ends where rows may be missing; up to there it is as expected.
fn agrees_until(found: &[Result<u64, StoreError>], expected: &[u64], what: &str) -> bool {
    let sound: Vec<u64> = found.iter().map_while(|row| row.as_ref().ok().copied()).collect();
    assert_eq!(sound, expected[..sound.len()], "{what}");
    match found.get(sound.len()) {
        None => {
            assert_eq!(sound.len(), expected.len(), "{what}: a list that ends is whole");
            false
        }
        Some(error) => {
            assert!(is_incomplete(error), "{what}: {error:?}");
            true
        }
    }
}

/// From a sound store, from two that have a part each, from a state before, and from nothing.
#[test]
fn whole_sources_make_a_whole_store() {
    let case = case(21, 3, 150);
    let expected = open(case.store.path()).opened().expect("open").manifest();
    let expected = expected.expect("rows").days.clone();
    // Half of the files each; which keyspaces they are of is not known.
    let halves = [0, 1].map(|half| {
        let place = tempfile::tempdir().expect("a folder");
        copy(case.store.path(), place.path());
        for (at, file) in loose_files(&place.path().join(FOLDER)).expect("readable").iter().enumerate() {
            if at % 2 == half {
                fs::remove_file(file).expect("it was there");
            }
        }
        place
    });
    let before = Sources { states: vec![&case.whole.users], ..Sources::default() };
    let all = Sources { states: vec![&case.whole.users], ..stores(&[case.store.path()]) };
    let mut cases = 0;
    for (name, sources, has_lsns) in [
        ("itself", stores(&[case.store.path()]), true),
        ("two halves", stores(&[halves[1].path(), halves[0].path()]), true),
        ("thrice", stores(&[case.store.path(), case.store.path(), halves[0].path()]), true),
        ("a state before", before, false),
        ("both", all, true),
    ] {
        let (place, rebuilt) = made(&case, &sources);
        assert!(rebuilt.users.iter().all(|user| !user.has_holes() && user.is_proved), "{name}: {rebuilt:?}");
        assert_eq!((rebuilt.damages, &rebuilt.unreadable), (0, &Vec::new()), "{name}");
        let of = reader(place.path());
        cases += all_agree(&case.whole, &of, &case.left, name);
        drop(of);
        let manifest = open(place.path()).opened().expect("open").manifest();
        let days = manifest.expect("rows").days.clone();
        let rows = |days: &BTreeMap<UtcDay, [Total; Space::ALL.len()]>| {
            days.iter().map(|(day, totals)| (*day, totals.map(|total| total.rows))).collect::<Vec<_>>()
        };
        assert_eq!(rows(&days), rows(&expected), "{name}");
        assert!(!has_lsns || name == "both" || days == expected, "{name}: the same bytes");
        sound(place.path(), name);
        cases += 1;
    }
    // Nothing at all: every row is missing, and said so.
    let (place, rebuilt) = made(&case, &Sources::default());
    assert!(rebuilt.users.iter().all(UserRows::has_holes) && rebuilt.rows == 0);
    let of = reader(place.path());
    let (asked, incomplete) = is_honest(&case, &of, "nothing");
    assert_eq!(asked, incomplete);
    println!("whole sources: {} cases", cases + asked);
}

/// Each file of the tables lost or damaged: what is there is found, and what is missing is an error and no answer.
#[test]
fn a_damaged_store_is_rebuilt_as_far_as_it_goes() {
    let case = case(22, 2, 400);
    let whole = Sources { states: vec![&case.whole.users], ..Sources::default() };
    let files = loose_files(&case.store.path().join(FOLDER)).expect("readable");
    assert!(files.len() >= 18, "{}", files.len());
    let (mut cases, mut incomplete, mut holes, mut mended) = (0, 0, 0, 0);
    for (nth, file) in files.iter().enumerate() {
        let bytes = fs::read(file).expect("readable");
        for what in ["gone", "cut", "noise", "a flipped bit at 1/5", "a flipped bit at 3/5", "empty"] {
            // Every kind of damage of some files, the first kinds of all.
            if nth % 4 != 0 && !["gone", "a flipped bit at 1/5"].contains(&what) {
                continue;
            }
            let damaged = tempfile::tempdir().expect("a folder");
            copy(case.store.path(), damaged.path());
            let path = damaged.path().join(file.strip_prefix(case.store.path()).expect("below it"));
            let flipped = |at: usize| {
                let mut bytes = bytes.clone();
                bytes[at] ^= 0x10;
                bytes
            };
            match what {
                "gone" => fs::remove_file(&path),
                "cut" => fs::write(&path, &bytes[..bytes.len() / 2]),
                "noise" => fs::write(&path, bytes.iter().map(|byte| byte ^ 0x55).collect::<Vec<_>>()),
                "empty" => fs::write(&path, b""),
                "a flipped bit at 1/5" => fs::write(&path, flipped(bytes.len() / 5)),
                _ => fs::write(&path, flipped(bytes.len() * 3 / 5)),
            }
            .expect("written");
            let what = format!("{}: {what}", path.display());
            let (place, rebuilt) = made(&case, &stores(&[damaged.path()]));
            let lacking = rebuilt.users.iter().filter(|user| user.has_holes()).count();
            let of = reader(place.path());
            let (asked, said) = is_honest(&case, &of, &what);
            assert_eq!(said > 0, lacking > 0, "{what}: {rebuilt:?}");
            drop(of);
            // The check names the users, and nothing else is wrong with the new store.
            assert_eq!(crate::check(place.path()).expect("it can be opened").damages.len(), lacking, "{what}");
            cases += asked;
            incomplete += said;
            holes += usize::from(lacking > 0);
            // With a backup it is whole.
            if nth % 4 == 0 {
                let both = Sources { states: whole.states.clone(), ..stores(&[damaged.path()]) };
                let (_place, rebuilt) = made(&case, &both);
                assert!(rebuilt.users.iter().all(|user| user.is_proved && !user.has_holes()), "{what}");
                mended += 1;
            }
        }
    }
    println!("damaged sources: {cases} cases, {incomplete} incomplete, {holes} with holes, {mended} mended");
    assert!(holes > 8 && incomplete > 1_000 && mended > 8);
    // One damaged block of the orders loses the orders in it alone.
    let of_orders = |file: &&PathBuf| {
        let opened = Opener::new().open(file).expect("sound");
        space_of(opened.rows()) == Some(Space::Orders)
    };
    let orders = files.iter().find(of_orders).expect("a file of orders");
    let damaged = tempfile::tempdir().expect("a folder");
    copy(case.store.path(), damaged.path());
    let path = damaged.path().join(orders.strip_prefix(case.store.path()).expect("below it"));
    let mut bytes = fs::read(&path).expect("readable");
    bytes[100] ^= 1;
    fs::write(&path, bytes).expect("written");
    let (_place, rebuilt) = made(&case, &stores(&[damaged.path()]));
    let [found, left] = [|user: &UserRows| user.found[0], |user: &UserRows| user.left[0]]
        .map(|of| rebuilt.users.iter().map(of).sum::<u32>());
    assert_eq!(rebuilt.damages, 1);
    assert!(found < left && found > left * 2 / 3, "{found} of {left}");
}

/// Rows that leave after a rebuild are whole, also of users that lack older ones.
#[test]
fn what_leaves_later_is_found() {
    let mut case = case(23, 2, 120);
    let (place, rebuilt) = made(&case, &Sources::default());
    assert!(rebuilt.users.iter().all(UserRows::has_holes));
    let user = case.left[0].user;
    let placed = || crate::ended::testing::Placed {
        client_order_id: Some("later".to_owned()),
        fills: vec![3],
        ..Default::default()
    };
    let later: Vec<OrderId> = (0..40).map(|_| case.whole.place(user, &placed())).collect();
    let leaving = Leaving { user, orders: later.clone(), positions: Vec::new() };
    let store = open(place.path());
    store.fits(LOG, UPTO, UPTO).expect("it is of the log and the state");
    store.writer(LOG).write(&case.whole.users, &[leaving], UPTO + 5).expect("written");
    let of = store.reader(LOG).of(user, UPTO + 5);
    let newest: Vec<OrderId> =
        of.orders(None, None).take(later.len()).map(|row| row.expect("it left later").order.id).collect();
    assert_eq!(newest, later.iter().rev().copied().collect::<Vec<_>>());
    let rest = of.orders(None, later.first().copied()).next().expect("not the end");
    assert!(is_incomplete(&rest.map(drop)));
    assert_eq!(of.request("later").expect("it left later").map(|found| found.order.order.id), later.last().copied());
    assert!(is_incomplete(&of.request("never")), "it may be among those that are missing");
    assert_eq!(of.order(OrderId(user.object(1 << 27))).expect("it is newer than all"), None);
    assert_eq!(store.holes().len(), case.left.len());
    println!("rows after a rebuild: {} cases", later.len() + 5);
}
