//! Crashes, failures and damage of a store with ended rows.

use super::*;
use crate::prices::Prices;
use host::thread::Stop;
use std::io::ErrorKind;

/// The steps of a move before its rows, and after them.
const BEFORE: [&str; 3] = ["made", "noting", "noted"];
const AFTER: [&str; 5] = ["syncing", "synced", "read back", "ending", "ended"];
/// Those that are syncs.
const SYNCS: [&str; 3] = ["noting", "syncing", "ending"];

fn steps() -> Vec<&'static str> {
    [&BEFORE[..], &Space::ALL.map(Space::name), &AFTER].concat()
}

/// A store from which a part of its rows was moved at LSN 10, and copies of it after every step of the move of all rows at
/// LSN 20.
struct Kills {
    world: World,
    first: Vec<Leaving>,
    whole: Vec<Leaving>,
    /// The store after that move.
    place: tempfile::TempDir,
    copies: Vec<(String, tempfile::TempDir)>,
}

fn killed_moves(mut world: World, part: u64) -> Kills {
    let place = tempfile::tempdir().expect("a folder");
    let store = create(place.path());
    let first = world.some(part);
    store.writer(LOG).write(&world.users, &first, 10).expect("written");
    let whole = world.all();
    let copies = kills(place.path(), &mut store.writer(LOG), |writer| {
        writer.write(&world.users, &whole, 20).expect("written");
    });
    Kills { world, first, whole, place, copies }
}

/// Copies the store after every step of a move, as a kill would leave it; each copy is opened, read, and moved again.
#[test]
fn a_kill_at_any_step_repeats_work_and_changes_nothing() {
    let Kills { mut world, first, whole, place, copies } = killed_moves(world(3, 3, 80), 50);
    let expected = open(place.path()).opened().expect("open").manifest().expect("rows");
    let steps: Vec<&str> = copies.iter().map(|(step, _)| step.as_str()).collect();
    let spaces = Space::ALL.map(Space::name);
    assert_eq!(steps, [&BEFORE[..], &spaces, &AFTER].concat());
    let mut cases = 0;
    for (step, of) in &copies {
        // With the same rows or others, at the same LSN or a later one.
        let mut some = world.some(70);
        for (leaving, first) in some.iter_mut().zip(&first) {
            leaving.orders.extend(&first.orders);
            leaving.orders.sort();
            leaving.orders.dedup();
        }
        for (lsn, again) in [(20, &whole), (25, &whole), (25, &some), (20, &some)] {
            let left = tempfile::tempdir().expect("a folder");
            copy(of.path(), left.path());
            let store = open(left.path());
            let upto = store.upto().expect("open");
            assert_eq!(upto, if ["ending", "ended"].contains(&step.as_str()) { 20 } else { 10 }, "{step}");
            cases += check(&store, &world, if upto == 20 { &whole } else { &first }, upto, step);
            store.writer(LOG).write(&world.users, again, lsn).expect("repeated");
            store.writer(LOG).write(&world.users, &whole, 30).expect("and then all");
            let manifest = store.opened().expect("open").manifest().expect("rows");
            let rows = |manifest: &Manifest| Space::ALL.map(|space| manifest.total(space).rows);
            assert_eq!(rows(&manifest), rows(&expected), "{step}: no row counts twice");
            cases += check(&store, &world, &whole, 30, step);
            store.opened().expect("open").spaces.merge().expect("merged");
            drop((manifest, store));
            sound(left.path(), &format!("{step}, again at {lsn}"));
            cases += 1;
        }
    }
    println!("kills during a move: {cases} cases");
}

/// A move that fails at a step: nothing is written by this process any more, and the next one repeats it.
#[test]
fn after_a_failure_nothing_is_written() {
    let mut cases = 0;
    let world = world(5, 2, 40);
    for step in steps() {
        let place = tempfile::tempdir().expect("a folder");
        let store = create(place.path());
        let mut writer = store.writer(LOG);
        fail_at(&mut writer, step, ErrorKind::Other);
        assert!(matches!(writer.write(&world.users, &world.all(), 5), Err(StoreError::Io(_))), "{step}");
        for _ in 0..2 {
            let refused = writer.write(&world.users, &[], 6).expect_err("refused");
            assert!(matches!(&refused, StoreError::Refused(why) if why.contains("as planned")), "{step}: {refused}");
        }
        assert_eq!(store.upto().expect("open"), 0);
        assert!(store.reader(LOG).of(UserId(3), 5).orders(None, None).next().is_some_and(|row| row.is_err()));
        drop((writer, store));
        let store = open(place.path());
        store.writer(LOG).write(&world.users, &world.all(), 7).expect("repeated");
        cases += check(&store, &world, &world.all(), 7, step);
        drop(store);
        sound(place.path(), step);
    }
    println!("moves that fail: {cases} cases");
}

/// A move that finds no room at a step: the same process repeats it, also with other rows, and no row counts twice. If it
/// was a sync that failed, it moves nothing more.
#[test]
fn a_move_without_room_is_repeated() {
    let mut cases = 0;
    for (nth, step) in steps().into_iter().enumerate() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let place = tempfile::tempdir().expect("a folder");
            let mut world = world(50 + nth as u64, 2, 40);
            let store = create(place.path());
            let mut writer = store.writer(LOG);
            let (first, all) = (world.some(30), world.all());
            writer.write(&world.users, &first, 5).expect("written");
            fail_at(&mut writer, step, kind);
            let failed = writer.write(&world.users, &all, 10).expect_err("no room");
            assert!(failed.is_full(), "{step}: {failed}");
            cases += check(&store, &world, &first, 5, step);
            let others = world.some(60);
            let again = writer.write(&world.users, &others, 15);
            if SYNCS.contains(&step) {
                assert!(matches!(again, Err(StoreError::Refused(_))), "{step}: {again:?}");
                let other = store.writer(LOG).write(&world.users, &all, 20);
                assert!(matches!(other, Err(StoreError::Refused(_))), "{step}: {other:?}");
                cases += check(&store, &world, &first, 5, step);
                drop((writer, store));
                let store = open(place.path());
                store.writer(LOG).write(&world.users, &all, 20).expect("repeated by the next process");
                cases += check(&store, &world, &all, 20, step);
                drop(store);
            } else {
                again.expect("there is room again");
                writer.write(&world.users, &all, 20).expect("the rest");
                cases += check(&store, &world, &all, 20, step);
                drop((writer, store));
            }
            sound(place.path(), step);
        }
    }
    println!("moves without room: {cases} cases");
}

/// A stop ends a move between two rows: nothing is written by this process any more, and the next one repeats it.
#[test]
fn a_stop_ends_a_move_between_two_rows() {
    let mut cases = 0;
    let world = world(6, 2, 40);
    for step in steps() {
        let place = tempfile::tempdir().expect("a folder");
        let store = create(place.path());
        let stop = Stop::new();
        let mut writer = store.writer(LOG).until(stop.clone());
        writer.watch = Some(Box::new(move |at| {
            if at == step {
                stop.set();
            }
            Ok(())
        }));
        let ended = writer.write(&world.users, &world.all(), 5);
        // After the last row was read back nothing is left to be ended.
        let is_over = ["read back", "ending", "ended"].contains(&step);
        assert_eq!(ended.is_ok(), is_over, "{step}: {ended:?}");
        assert!(is_over || matches!(ended, Err(StoreError::GivenUp)), "{step}: {ended:?}");
        let after = writer.write(&world.users, &world.all(), 6);
        assert!(matches!(after, Err(StoreError::Refused(_) | StoreError::GivenUp)), "{step}: {after:?}");
        drop((writer, store));
        let store = open(place.path());
        assert_eq!(store.upto().expect("open"), if is_over { 5 } else { 0 }, "{step}");
        store.writer(LOG).write(&world.users, &world.all(), 7).expect("repeated");
        cases += check(&store, &world, &world.all(), 7, step);
        drop(store);
        sound(place.path(), step);
    }
    println!("stops during a move: {cases} cases");
}

/// A sync of the prices that fails: what was written before it may be lost, so no ended row moves any more, also when the
/// database was opened again; what has moved is read.
#[test]
fn a_failed_sync_of_prices_ends_moves() {
    let place = tempfile::tempdir().expect("a folder");
    let mut world = world(7, 2, 40);
    let mut database = Store::open(place.path(), CACHE_BYTES).expect("a new store");
    let store = EndedStore::opening();
    store.publish(database.spaces());
    let (first, all) = (world.some(50), world.all());
    let mut writer = store.writer(LOG);
    writer.write(&world.users, &first, 5).expect("written");
    database.fails_sync = true;
    let mut prices = Prices::of(database, place.path().to_owned(), CACHE_BYTES, store.clone());
    prices.end();
    let mut cases = 0;
    let refused = |moved: Result<(), StoreError>, what: &str| {
        let why = moved.expect_err("refused");
        assert!(matches!(&why, StoreError::Refused(why) if why.contains("durable")), "{what}: {why}");
        1
    };
    cases += refused(writer.write(&world.users, &all, 10), "after the failure");
    cases += refused(store.writer(LOG).write(&world.users, &all, 10), "by another writer");
    cases += refused(writer.cut(UtcDay(1)).map(drop), "a cut");
    drop(prices);
    assert!(store.withdraw(), "nothing is written");
    let database = Store::open(place.path(), CACHE_BYTES).expect("a sound store");
    store.publish(database.spaces());
    cases += refused(writer.write(&world.users, &all, 10), "opened again");
    cases += check(&store, &world, &first, 5, "what has moved");
    drop((database, writer, store));
    let store = open(place.path());
    store.writer(LOG).write(&world.users, &all, 10).expect("by the next process");
    cases += check(&store, &world, &all, 10, "moved by the next process");
    println!("failed syncs of prices: {cases} cases");
}

/// A power cut tears what was not synced: the end of the journal, tables that nothing names, folders that nothing names.
#[test]
fn a_power_cut_loses_no_row_that_the_manifest_has() {
    let Kills { world, first, whole, copies, .. } = killed_moves(world(8, 2, 60), 40);
    // The last batch of the journal is the manifest: before its sync any part of it may be there.
    let (mut cases, mut cuts) = (0, 0);
    for (step, of) in copies.iter().filter(|(step, _)| ["noted", "ended"].contains(&step.as_str())) {
        let journal = of.path().join(FOLDER).join("0.jnl");
        let bytes = std::fs::read(&journal).expect("a journal");
        let end = crate::store::end_of_batches(&std::fs::File::open(&journal).expect("a journal")).expect("readable");
        for lost in [1, 40, 100] {
            for is_zeroed in [false, true] {
                let left = tempfile::tempdir().expect("a folder");
                copy(of.path(), left.path());
                let mut torn = bytes[..end as usize - lost].to_vec();
                torn.resize(if is_zeroed { bytes.len() } else { torn.len() }, 0);
                std::fs::write(left.path().join(FOLDER).join("0.jnl"), torn).expect("written");
                // A table whose ingestion was not over, and a keyspace whose making was not.
                let tables = left.path().join(FOLDER).join("keyspaces").join("4").join("tables");
                std::fs::write(tables.join("900"), &bytes[..end as usize / 2]).expect("written");
                let half = left.path().join(FOLDER).join("keyspaces").join("90");
                std::fs::create_dir_all(half.join("tables")).expect("a folder");
                std::fs::write(half.join("v0"), b"half").expect("written");
                let store = open(left.path());
                assert_eq!(store.upto().expect("open"), 10, "{step}, {lost} bytes lost");
                cases += check(&store, &world, &first, 10, step);
                store.writer(LOG).write(&world.users, &whole, 20).expect("repeated");
                cases += check(&store, &world, &whole, 20, step);
                drop(store);
                sound(left.path(), step);
                cuts += 1;
            }
        }
    }
    println!("power cuts: {cuts}, {cases} cases");
    assert_eq!(cuts, 12);
}

/// A kill while the keyspaces are made: folders that nothing names yet.
#[test]
fn half_made_keyspaces_are_made_again() {
    let (place, other) = (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
    let world = world(9, 2, 30);
    drop(create(place.path()));
    create(other.path()).writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    let below = |place: &Path| place.join(FOLDER).join("keyspaces");
    let mut cases = 0;
    for number in 4..10 {
        let name = number.to_string();
        copy(&below(other.path()).join(&name), &below(place.path()).join(&name));
        let left = tempfile::tempdir().expect("a folder");
        copy(place.path(), left.path());
        let store = open(left.path());
        assert_eq!(store.upto().expect("open"), 0);
        store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
        cases += check(&store, &world, &world.all(), 5, "made again");
    }
    println!("half-made keyspaces: {cases} cases");
}

/// What does not fit has an error of its own, and nothing is read or written then.
#[test]
fn stores_that_do_not_fit_are_distinguished() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world(10, 2, 30);
    assert!(matches!(EndedStore::open(place.path(), CACHE_BYTES), Err(StoreError::Missing)));
    let empty = create(place.path());
    assert!(matches!(empty.fits(LOG, 1, 9), Err(StoreError::Missing)));
    empty.fits(LOG, 0, 9).expect("nothing was moved");
    let missing = empty.reader(LOG).of(UserId(3), 1);
    assert!(matches!(missing.order(world.all()[0].orders[0]), Err(StoreError::Missing)));
    empty.writer(LOG).write(&world.users, &world.all(), 50).expect("written");
    drop((missing, empty));
    let store = open(place.path());
    type Case = (u128, u64, u64, &'static str);
    let cases: [Case; 8] = [
        (LOG, 0, 50, "fits"),
        (LOG, 50, 50, "fits"),
        (LOG, 50, 90, "fits"),
        (LOG + 1, 50, 50, "another log"),
        (LOG + 1, 0, 50, "another log"),
        (LOG, 51, 60, "are needed"),
        (LOG, 0, 49, "after 49"),
        (LOG, 50, 49, "after 49"),
    ];
    for (log, needed, end, expected) in cases {
        let found = store.fits(log, needed, end).map_or_else(|error| error.to_string(), |()| "fits".to_owned());
        assert!(found.contains(expected), "{log:x} {needed} {end}: {found}");
    }
    let order = world.all()[0].orders[0];
    let read = |log: u128, upto: u64| store.reader(log).of(UserId(3), upto).order(order);
    assert!(matches!(read(LOG, 50), Ok(Some(_))));
    assert!(matches!(read(LOG, 51), Err(StoreError::Behind { upto: 50, needed: 51 })));
    assert!(matches!(read(LOG + 1, 50), Err(StoreError::Foreign)));
    let write = |log: u128, lsn: u64, leaving: &[Leaving]| store.writer(log).write(&world.users, leaving, lsn);
    assert!(matches!(write(LOG + 1, 60, &world.all()), Err(StoreError::Foreign)));
    assert!(matches!(write(LOG, 49, &world.all()), Err(StoreError::Ahead { upto: 50, end: 49 })));
    // Rows that are not there, and a user that is not.
    let user = UserId(3);
    let unknown = [
        Leaving { user, orders: vec![OrderId(user.object(1))], positions: Vec::new() },
        Leaving { user, orders: Vec::new(), positions: vec![PositionId(user.object(1))] },
        Leaving { user: UserId(4), orders: Vec::new(), positions: Vec::new() },
    ];
    for leaving in unknown {
        let refused = write(LOG, 60, std::slice::from_ref(&leaving)).expect_err("refused");
        assert!(matches!(refused, StoreError::NotEnded(_)), "{leaving:?}: {refused}");
    }
    // The engine does not keep up.
    let held = store.opened().expect("open").spaces.is_held.clone();
    held.store(true, Ordering::Relaxed);
    let mut writer = store.writer(LOG);
    for _ in 0..2 {
        assert!(matches!(writer.write(&world.users, &world.all(), 60), Err(StoreError::Busy)));
    }
    held.store(false, Ordering::Relaxed);
    writer.write(&world.users, &world.all(), 60).expect("written");
    // An error before anything is written is not the end.
    let mut writer = store.writer(LOG);
    assert!(writer.write(&world.users, &world.all(), 1).is_err());
    writer.write(&world.users, &world.all(), 61).expect("written");
    println!("stores that do not fit: {} cases", cases.len() + 14);
}

/// Versions and damage of what is known of the rows.
#[test]
fn a_manifest_that_cannot_be_used_is_found_at_the_opening() {
    let world = world(11, 2, 30);
    let place = tempfile::tempdir().expect("a folder");
    let store = create(place.path());
    store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    let sound = store.opened().expect("open").spaces.about().expect("readable").expect("written").to_vec();
    drop(store);
    let manifest = Manifest::read(&sound).expect("sound");
    let later = [&[2], &sound[1..]].concat();
    let mut more = manifest.clone();
    more.days.first_entry().expect("a day").get_mut()[0].rows += 1;
    let mut other = manifest.clone();
    other.newest[5].as_mut().expect("a row").hash ^= 1;
    let mut gone = manifest.clone();
    gone.newest[2].as_mut().expect("a row").key[15] ^= 1;
    let cases: [(Vec<u8>, &str); 6] = [
        (sound.clone(), "sound"),
        (later, "later program"),
        (sound[..sound.len() - 1].to_vec(), "damaged"),
        (more.write(), "orders has at most"),
        (other.write(), "by_market lacks"),
        (gone.write(), "positions lacks"),
    ];
    for (bytes, expected) in &cases {
        let left = tempfile::tempdir().expect("a folder");
        copy(place.path(), left.path());
        open(left.path()).opened().expect("open").spaces.set_about(bytes).expect("written");
        let found =
            EndedStore::open(left.path(), CACHE_BYTES).map_or_else(|error| error.to_string(), |_| "sound".into());
        assert!(found.contains(expected), "{expected}: {found}");
        let damages = crate::check(left.path()).expect("the prices can be read").damages;
        assert_eq!(damages.is_empty(), *expected == "sound", "{expected}: {damages:?}");
        // The prices go on, and the others say why not.
        let (mut history, _, _) = history(left.path());
        let ended = history.ended();
        turns(&mut history);
        assert_eq!(ended.upto().map_err(|error| error.to_string()).is_ok(), *expected == "sound");
    }
    // Rows, and nothing that says which.
    let left = tempfile::tempdir().expect("a folder");
    let store = create(left.path());
    let opened = store.opened().expect("open");
    opened.spaces.make_all().expect("made");
    opened.spaces.ingest(Space::Fills, |write| write(&[1; 16], &[1, 0, 5])).expect("written");
    drop((opened, store));
    let refused = EndedStore::open(left.path(), CACHE_BYTES).err().map(|error| error.to_string());
    assert!(refused.is_some_and(|why| why.contains("nothing says which")));
    println!("manifests that cannot be used: {} cases", cases.len() + 1);
}

/// Every row that is wrong, misplaced, missing or too many is found by the check.
#[test]
fn the_check_finds_every_wrong_row() {
    let world = world(12, 2, 60);
    let place = tempfile::tempdir().expect("a folder");
    let store = create(place.path());
    store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    drop(store);
    sound(place.path(), "nothing is changed");
    type Row = (Vec<u8>, Vec<u8>);
    // A row that is written, and the key of one that is removed.
    type Changed = (Option<Row>, Option<Vec<u8>>);
    let mut cases = 0;
    let mut harm = |space: Space, what: &str, expected: &str, change: &dyn Fn(&Row, &Row) -> Changed| {
        let left = tempfile::tempdir().expect("a folder");
        copy(place.path(), left.path());
        let store = open(left.path());
        let opened = store.opened().expect("open");
        let all = (std::ops::Bound::Unbounded, std::ops::Bound::Unbounded);
        let rows = opened.spaces.scan(space, all).map(|row| row.expect("readable"));
        let rows: Vec<Row> = rows.map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
        let (put, removed) = change(&rows[0], &rows[1]);
        removed.iter().for_each(|key| opened.spaces.remove(space, key));
        if let Some((key, value)) = &put {
            opened.spaces.ingest(space, |write| write(key, value)).expect("written");
        }
        drop((opened, store));
        let damages = crate::check(left.path()).expect("it can be opened").damages;
        let found = damages.iter().any(|damage| damage.problem.contains(expected));
        assert!(found, "{what} in {}: {damages:?}", space.name());
        cases += 1;
    };
    for space in Space::ALL {
        let name = space.name();
        let gone = if matches!(space, Space::Positions | Space::Requests) { "of" } else { name };
        harm(space, "a row is gone", gone, &|first, _| (None, Some(first.0.clone())));
        // Those of `by_market` are equal.
        if space != Space::ByMarket {
            harm(space, "a row has the value of another", "", &|first, second| {
                (Some((first.0.clone(), second.1.clone())), None)
            });
        }
        harm(space, "a row is cut", "", &|first, _| (Some((first.0.clone(), first.1[..2].to_vec())), None));
        harm(space, "a later LSN", "after that of the last move", &|first, _| {
            let value = [&[1, 0, 6], &first.1[3..]].concat();
            (Some((first.0.clone(), value)), None)
        });
        harm(space, "a later version", "later program", &|first, _| {
            (Some((first.0.clone(), [&[2], &first.1[1..]].concat())), None)
        });
        harm(space, "a longer key", "bytes", &|first, _| {
            (Some(([&first.0[..], &[0]].concat(), first.1.clone())), None)
        });
        harm(space, "another user", "", &|first, _| {
            let mut key = first.0.clone();
            key[7] ^= 0x40;
            (Some((key, first.1.clone())), None)
        });
        harm(space, "an older LSN", "not those", &|first, _| {
            (Some((first.0.clone(), [&[1, 0, 4], &first.1[3..]].concat())), None)
        });
    }
    println!("rows that are wrong: {cases} cases");
}

/// Files that are damaged: an error, or the rows as they were.
#[test]
fn damaged_files_never_give_wrong_rows() {
    let place = tempfile::tempdir().expect("a folder");
    let world = world(13, 2, 25);
    let store = create(place.path());
    store.writer(LOG).write(&world.users, &world.all(), 5).expect("written");
    drop(store);
    let (mut cases, mut refused, mut unread) = (0, 0, 0);
    // Those of the ended rows, and the journal with the manifest. The others are damaged by the tests of the prices.
    let is_damaged = |name: &str| {
        let parts: Vec<&str> = name.split('/').collect();
        let number = parts.get(2).and_then(|number| number.parse::<u32>().ok());
        name.ends_with(".jnl") || number.is_some_and(|number| number > 3) && !parts[3].starts_with('v')
    };
    crate::testing::damage_of(place.path(), is_damaged, |folder, what| {
        cases += 1;
        let Ok(store) = EndedStore::open(folder, CACHE_BYTES) else { return refused += 1 };
        let reader = store.reader(LOG);
        let mut is_whole = true;
        for leaving in world.all() {
            let of = reader.of(leaving.user, 5);
            let found: Result<Vec<_>, _> = of.orders(None, None).map(|row| row.map(|row| row.order.id)).collect();
            let Ok(mut found) = found else {
                is_whole = false;
                continue;
            };
            found.reverse();
            assert_eq!(found, leaving.orders, "{what}");
            let fills: Result<Vec<_>, _> = of.fills(None).map(|row| row.map(|row| row.0.id)).collect();
            let hot = world.users.get(leaving.user).expect("a user").fills();
            is_whole &= fills.as_ref().is_ok();
            assert!(fills.is_err() || fills.is_ok_and(|fills| fills.len() == hot.len()), "{what}");
            for id in &leaving.orders {
                match of.order(*id) {
                    Ok(found) => assert!(found.is_some(), "{what}: order {id}"),
                    Err(_) => is_whole = false,
                }
            }
        }
        unread += u32::from(!is_whole);
    });
    println!("damaged files: {cases} cases, {refused} not opened, {unread} not read whole");
    assert!(cases > 100 && refused > 50 && unread > 0);
}
