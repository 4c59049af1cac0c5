//! The history store of a data directory: its verbs, kills, and a backup of it (gateway/docs/history.md).

use crate::kills::copy_dir;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tests::binary::run;
use tests::cases::Cases;
use tests::departing::leaving_soon;
use tests::json::{int, list, text};
use tests::server::ServerDir;
use tests::world::{World, changed, limit, market};

fn history(verb: &str, data: &Path) -> Output {
    run([OsString::from("history"), verb.into(), data.into(), "--json".into()])
}

fn objects(output: &Output) -> Vec<Value> {
    let lines = String::from_utf8_lossy(&output.stdout).into_owned();
    lines.lines().map(|line| serde_json::from_str(line).expect("an object a line")).collect()
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The prices of a market, of all time.
fn prices(world: &World) -> Vec<Value> {
    let target = format!("/v1/prices-history?interval=max&market={}", world.markets.rain.yes());
    let shown = world.until(&target, |shown: &Value| !list(shown, "/history").is_empty());
    list(&shown, "/history").to_vec()
}

/// Files of tables and journals below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        match entry.path().is_dir() {
            true => found.extend(files(&entry.path())),
            false => found.push(entry.path()),
        }
    }
    found
}

#[test]
fn verbs_say_what_a_stopped_store_has() {
    let cases = Cases::of("verbs of the history store");
    let mut world = World::start(1);
    assert!(!prices(&world).is_empty());
    let data = world.place.data();
    for verb in ["stats", "verify"] {
        let refused = history(verb, &data);
        assert!(refused.status.code() == Some(1) && errors(&refused).contains("stop it first"), "{}", errors(&refused));
        cases.one();
    }
    world.server.stop();
    let stats = history("stats", &data);
    assert_eq!(stats.status.code(), Some(0), "{}", errors(&stats));
    let tables = objects(&stats);
    assert_eq!(text(&tables[0], "/table"), "prices");
    assert!(int(&tables[0], "/rows") > 0 && int(&tables[0], "/markets") > 0, "{tables:?}");
    assert!(text(&tables[0], "/from").ends_with('Z'), "{tables:?}");
    assert_eq!(text(&tables[1], "/table"), "price_hours");
    let verified = history("verify", &data);
    assert_eq!(verified.status.code(), Some(0), "{}", errors(&verified));
    assert_eq!(int(&objects(&verified)[0], "/problems"), 0);
    assert!(int(&objects(&verified)[0], "/rows") >= int(&tables[0], "/rows"));
    cases.add(2);

    // Without a store, and with one of a later program: refused, and unchanged.
    let version = data.join("history/store/version");
    let sound = fs::read(&version).expect("readable");
    for (bytes, word) in [(None, "no file version"), (Some(&b"FJL\x04"[..]), "later program")] {
        match bytes {
            None => fs::remove_file(&version).expect("removed"),
            Some(bytes) => fs::write(&version, bytes).expect("written"),
        }
        for verb in ["stats", "verify"] {
            let refused = history(verb, &data);
            assert!(refused.status.code() == Some(1) && errors(&refused).contains(word), "{}", errors(&refused));
            cases.one();
        }
        // A start says so, and trades.
        world.server = world.place.start();
        assert!(!prices(&world).is_empty(), "in memory");
        world.server.stop();
        fs::write(&version, &sound).expect("written");
    }
    let verified = history("verify", &data);
    assert_eq!(verified.status.code(), Some(0), "{}", errors(&verified));
    for wrong in [vec!["history", "verify"], vec!["history", "what"]] {
        assert_eq!(run(wrong).status.code(), Some(2));
        cases.one();
    }
    let nowhere = history("verify", &world.place.root().join("nowhere"));
    assert!(nowhere.status.code() == Some(1) && !world.place.root().join("nowhere").exists());
}

#[test]
fn prices_survive_kills_and_backups() {
    let cases = Cases::of("kills of the history store");
    let mut world = World::start(1);
    let first = prices(&world)[0].clone();
    for _ in 0..3 {
        // What was shown was written before.
        world.server.kill();
        world.server = world.place.start();
        assert_eq!(prices(&world)[0], first, "the first minute");
        cases.one();
    }
    world.server.kill();
    let data = world.place.data();
    let (backup, restored) = (world.place.root().join("backup"), world.place.root().join("restored"));
    let taken = run([OsString::from("backup"), data.clone().into(), "--out".into(), backup.clone().into()]);
    assert!(taken.status.success(), "{}", errors(&taken));
    let whole = run([OsString::from("restore"), backup.clone().into(), "--out".into(), restored.clone().into()]);
    assert!(whole.status.success(), "{}", errors(&whole));
    let rows = |data: &Path| {
        let verified = history("verify", data);
        assert_eq!(verified.status.code(), Some(0), "{}", errors(&verified));
        int(&objects(&verified)[0], "/rows")
    };
    assert_eq!(rows(&restored), rows(&data));
    // No file of a backup has the room of a new journal.
    for path in files(&backup.join("history")) {
        assert!(path.metadata().expect("it is there").len() < 8 << 20, "{}", path.display());
        cases.one();
    }
}

/// `history rebuild`.
fn rebuild(place: &ServerDir, from: &[&Path]) -> Output {
    let mut words = vec![OsString::from("history"), "rebuild".into(), place.data().into(), "--json".into()];
    from.iter().for_each(|from| words.extend([OsString::from("--from"), (*from).into()]));
    let output = run(words);
    println!("{:?} {}", objects(&output), errors(&output));
    output
}

/// Its exit code and last line.
fn rebuilt(place: &ServerDir, from: &[&Path]) -> (Option<i32>, Value) {
    let output = rebuild(place, from);
    (output.status.code(), objects(&output).pop().unwrap_or_default())
}

/// A store that was lost: without a backup the server says what it does not know, and with one it knows all of it again.
#[test]
fn a_lost_store_is_rebuilt_from_a_backup_or_is_honest() {
    let cases = Cases::of("rebuilt stores");
    let mut world = World::start_with(2, leaving_soon);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let mut made = Vec::new();
    for nth in 0..12 {
        let named = json!({"client_order_id": format!("before-{nth}")});
        let order = changed(&limit(rain, "BUY", "0.30", "10"), &named);
        let id = int(&client.post("/v1/orders", &order).expect(200), "/order_id");
        client.delete(&format!("/v1/orders/{id}")).expect(200);
        made.push(id);
    }
    client.post("/v1/orders", &market(rain, "BUY", "0.42", "20")).expect(200);
    client.post("/v1/orders", &market(rain, "SELL", "0.01", "20"));
    world.depart_everything(1);
    // Two snapshots are kept: neither has them.
    world.make_snapshots(1, 2);
    let targets: Vec<String> = made
        .iter()
        .map(|id| format!("/v1/orders/{id}"))
        .chain(["/v1/orders?limit=200".to_owned(), "/v1/orders/by-client-id/before-3".to_owned()])
        .collect();
    let before: Vec<Value> = targets.iter().map(|target| client.get(target).expect(200)).collect();
    drop(client);
    world.server.stop();
    let data = world.place.data();
    let backup = world.place.root().join("backup");
    let taken = run([OsString::from("backup"), data.clone().into(), "--out".into(), backup.clone().into()]);
    assert!(taken.status.success(), "{}", errors(&taken));

    // A sound store stays as it is, in a new folder.
    let (code, whole) = rebuilt(&world.place, &[]);
    assert_eq!((code, int(&whole, "/users_lacking"), int(&whole, "/damages")), (Some(0), 0, 0), "{whole}");
    assert!(data.join("history.damaged-1/store").is_dir() && int(&whole, "/rows") > 0);
    assert_eq!(history("verify", &data).status.code(), Some(0));
    cases.add(2);

    // Lost, and no backup: what left is gone, unless an older snapshot has it.
    fs::remove_dir_all(data.join("history")).expect("removed");
    fs::remove_dir_all(data.join("history.damaged-1")).expect("removed");
    let (code, lacking) = rebuilt(&world.place, &[]);
    assert_eq!(code, Some(1), "{lacking}");
    assert!(int(&lacking, "/users_lacking") > 0 && int(&lacking, "/whole_from") > 1, "{lacking}");
    let verified = history("verify", &data);
    assert!(verified.status.code() == Some(1), "{}", errors(&verified));
    world.server = world.place.start();
    let mut client = world.user(0);
    for (target, before) in targets.iter().zip(&before) {
        let answer = client.get(target);
        match answer.status {
            200 => assert_eq!(answer.json(), *before, "{target}"),
            _ => {
                answer.refused(503, "PERSISTENCE_UNKNOWN");
            }
        }
        cases.one();
    }
    client.get("/v1/orders?limit=200").refused(503, "PERSISTENCE_UNKNOWN");
    // An id of before would be placed again; one without an id is a new order.
    let rain = &world.markets.rain;
    let again = changed(&limit(rain, "BUY", "0.30", "10"), &json!({"client_order_id": "before-3"}));
    let repeated = client.post("/v1/orders", &again);
    assert!(repeated.status != 200 || repeated.json()["order_id"] == made[3], "{}", repeated.lossy());
    let new = int(&client.post("/v1/orders", &limit(rain, "BUY", "0.30", "10")).expect(200), "/order_id");
    assert_eq!(int(&client.get(&format!("/v1/orders/{new}")).expect(200), "/order_id"), new);
    client.delete(&format!("/v1/orders/{new}")).expect(200);
    cases.add(4);
    drop(client);
    world.server.stop();

    // With the backup everything is there, and what was left of the other attempt is kept.
    let (code, whole) = rebuilt(&world.place, &[&backup]);
    assert_eq!((code, int(&whole, "/users_lacking")), (Some(0), 0), "{whole}");
    let verified = history("verify", &data);
    assert_eq!(verified.status.code(), Some(0), "{}", errors(&verified));
    world.server = world.place.start();
    let mut client = world.user(0);
    for (target, before) in targets.iter().zip(&before).filter(|(target, _)| !target.contains("limit=200")) {
        assert_eq!(client.get(target).expect(200), *before, "{target}");
        cases.one();
    }
    let all = client.get("/v1/orders?limit=200").expect(200);
    assert_eq!(list(&all, "/orders")[1..], *list(&before[made.len()], "/orders"), "and the new one before them");
    drop(client);
    world.server.stop();

    // A foreign directory, and one without a log.
    let foreign = World::start(0);
    let (code, _) = rebuilt(&world.place, &[&foreign.place.data()]);
    assert_eq!(code, Some(1));
    assert_eq!(history("verify", &data).status.code(), Some(0), "nothing was changed");
    cases.add(3);
}

/// A kill between the last two renames of a rebuild: a start, and each verb, gives the new store its name. A new store beside one
/// that lacks its rows is never removed.
#[test]
fn an_interrupted_rebuild_is_finished() {
    let cases = Cases::of("interrupted rebuilds");
    let mut world = World::start_with(2, leaving_soon);
    let mut client = world.user(0);
    let order = changed(&limit(&world.markets.rain, "BUY", "0.30", "10"), &json!({"client_order_id": "before"}));
    let id = int(&client.post("/v1/orders", &order).expect(200), "/order_id");
    client.delete(&format!("/v1/orders/{id}")).expect(200);
    world.depart_everything(1);
    // Neither the snapshots nor the log after them have it.
    world.make_snapshots(1, 2);
    let target = format!("/v1/orders/{id}");
    let before = client.get(&target).expect(200);
    drop(client);
    world.server.stop();
    let data = world.place.data();
    let (code, whole) = rebuilt(&world.place, &[]);
    assert_eq!((code, int(&whole, "/users_lacking")), (Some(0), 0), "{whole}");
    fs::remove_dir_all(data.join("history.damaged-1")).expect("it was kept");
    let (store, made) = (data.join("history"), data.join("history.rebuilt"));
    for by in ["a start", "verify", "rebuild", "rebuild beside an empty store"] {
        fs::rename(&store, &made).expect("as a kill leaves it");
        match by {
            "a start" => {}
            "verify" => assert_eq!(history("verify", &data).status.code(), Some(0)),
            _ => {
                if by != "rebuild" {
                    fs::create_dir(&store).expect("as an earlier program makes it");
                }
                let (code, whole) = rebuilt(&world.place, &[]);
                assert_eq!((code, int(&whole, "/users_lacking")), (Some(0), 0), "{by}: {whole}");
            }
        }
        world.server = world.place.start();
        let mut client = world.user(0);
        assert_eq!(client.get(&target).expect(200), before, "{by}");
        let again = client.post("/v1/orders", &order).expect(200);
        assert_eq!(int(&again, "/order_id"), id, "{by}");
        drop(client);
        world.server.stop();
        assert!(store.join("store").is_dir() && !made.exists(), "{by}");
        cases.add(3);
    }
}

/// Orders of user 0 that end; returns their ids.
fn ended_orders(world: &World, name: &str, price: &str) -> Vec<i64> {
    let mut client = world.user(0);
    let end = |nth: i64| {
        let named = json!({"client_order_id": format!("{name}-{nth}")});
        let order = changed(&limit(&world.markets.rain, "BUY", price, "10"), &named);
        let id = int(&client.post("/v1/orders", &order).expect(200), "/order_id");
        client.delete(&format!("/v1/orders/{id}")).expect(200);
        id
    };
    (0..6).map(end).collect()
}

/// A directory and its copy that went on by itself: their logs have the same identity, and of the same LSNs other records;
/// other orders with the same ids have left memory. Only checksums distinguish them.
struct Parted {
    world: World,
    other: PathBuf,
    /// What was shown, by target.
    seen: Vec<(String, Value)>,
}

impl Parted {
    fn new() -> Parted {
        let mut world = World::start_with(2, leaving_soon);
        let (data, root) = (world.place.data(), world.place.root().to_owned());
        let (own, other) = (root.join("own"), root.join("other"));
        let mut ids = ended_orders(&world, "common", "0.30");
        world.depart_everything(1);
        world.server.stop();
        copy_dir(&data, &other);
        world.server = world.place.start();
        let parted = ended_orders(&world, "own", "0.25");
        world.depart_everything(1);
        // Neither the snapshots nor the log after them have these rows.
        world.make_snapshots(1, 2);
        ids.extend(&parted);
        let by_id = ids.iter().map(|id| format!("/v1/orders/{id}"));
        let by_name = ["common-3", "own-3"].map(|name| format!("/v1/orders/by-client-id/{name}"));
        let mut client = world.user(0);
        let seen = by_id.chain(by_name).map(|target| (target.clone(), client.get(&target).expect(200))).collect();
        drop(client);
        let end = world.log_end();
        world.server.stop();
        fs::rename(&data, &own).expect("it can be renamed");
        // Its rows move up to a later record, which the first log does not release.
        fs::rename(&other, &data).expect("it can be renamed");
        world.server = world.place.start();
        world.fill_log_to(1, end + 10);
        assert_eq!(ended_orders(&world, "other", "0.20"), parted, "the same ids");
        world.depart_everything(1);
        let end = world.log_end();
        world.server.stop();
        fs::rename(&data, &other).expect("it can be renamed");
        fs::rename(&own, &data).expect("it can be renamed");
        world.place.set("journal", "checkpoint_segments", "1000");
        world.server = world.place.start();
        world.fill_log_to(1, end + 10);
        world.server.kill();
        Parted { world, other, seen }
    }

    /// Puts a copy of the other store into the directory.
    fn put_other_store(&self, name: &str) {
        copy_dir(&self.other.join("history"), &self.world.place.data().join(name));
    }

    /// Removes the old stores.
    fn forget_old_stores(&self) {
        for entry in fs::read_dir(self.world.place.data()).expect("a folder").flatten() {
            if entry.file_name().to_string_lossy().starts_with("history.damaged-") {
                fs::remove_dir_all(entry.path()).expect("removed");
            }
        }
    }

    /// Rebuilds without another source: the store of this name is not read. Returns whether all rows are there.
    fn rebuild_without(&self, name: &str) -> bool {
        let output = rebuild(&self.world.place, &[]);
        let lines = objects(&output);
        let note =
            format!("{}: of another log, or another copy of this one", self.world.place.data().join(name).display());
        assert!(lines.iter().any(|line| line["note"] == json!(note)), "{note} in {lines:?}");
        let lacking = int(lines.last().expect("a last line"), "/users_lacking");
        assert_eq!(output.status.code(), Some(i32::from(lacking > 0)), "{lines:?}");
        lacking == 0
    }

    /// Starts the server and compares what it shows; returns how many answers are unknown.
    fn unknown(&mut self) -> usize {
        self.world.server = self.world.place.start();
        let (mut client, mut unknown) = (self.world.user(0), 0);
        for (target, before) in &self.seen {
            let answer = client.get(target);
            match answer.status {
                200 => assert_eq!(answer.json(), *before, "{target}"),
                _ => {
                    answer.refused(503, "PERSISTENCE_UNKNOWN");
                    unknown += 1;
                }
            }
        }
        let other = client.get("/v1/orders/by-client-id/other-3");
        assert!(other.status == 404 || (other.status, unknown > 0) == (503, true), "{}", other.lossy());
        drop(client);
        self.world.server.kill();
        unknown
    }
}

/// Rows of a copy that went on by itself are never taken for those of the directory.
#[test]
fn a_store_of_another_copy_is_not_a_source() {
    let cases = Cases::of("stores of another copy");
    let mut parted = Parted::new();
    let data = parted.world.place.data();
    let backup = parted.world.place.root().join("backup");
    let taken = run([OsString::from("backup"), parted.other.clone().into(), "--out".into(), backup.clone().into()]);
    assert!(taken.status.success(), "{}", errors(&taken));
    // A copy that did not go on is a source.
    let twin = parted.world.place.root().join("twin");
    copy_dir(&data, &twin);
    let (code, whole) = rebuilt(&parted.world.place, &[&twin]);
    assert_eq!((code, int(&whole, "/users_lacking")), (Some(0), 0), "{whole}");
    parted.forget_old_stores();
    cases.one();
    for from in [&parted.other, &backup] {
        let refused = rebuild(&parted.world.place, &[from]);
        assert_eq!(refused.status.code(), Some(1), "{}", from.display());
        assert!(errors(&refused).contains("another copy of this one"), "{}", errors(&refused));
        assert!(!data.join("history.damaged-1").exists(), "nothing was changed");
        assert_eq!(history("verify", &data).status.code(), Some(0));
        cases.one();
    }

    // Beside the store of the directory, and in its place, where its own one is an old one.
    parted.put_other_store("history.damaged-1");
    assert!(parted.rebuild_without("history.damaged-1"));
    assert_eq!(history("verify", &data).status.code(), Some(0));
    assert_eq!(parted.unknown(), 0);
    parted.forget_old_stores();
    fs::rename(data.join("history"), data.join("history.damaged-1")).expect("it can be renamed");
    parted.put_other_store("history");
    assert!(parted.rebuild_without("history"));
    assert_eq!(history("verify", &data).status.code(), Some(0));
    assert_eq!(parted.unknown(), 0);
    cases.add(2 * parted.seen.len());

    // Alone: what has left memory is unknown, also what the two have in common.
    parted.forget_old_stores();
    fs::remove_dir_all(data.join("history")).expect("removed");
    parted.put_other_store("history");
    assert!(!parted.rebuild_without("history"));
    assert_eq!(parted.unknown(), parted.seen.len());
    cases.add(parted.seen.len());
}
