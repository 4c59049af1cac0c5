//! The history store of a data directory: its verbs, kills, and a backup of it (gateway/docs/history.md).

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

/// `history rebuild`: its exit code and last line.
fn rebuilt(place: &ServerDir, from: &[&Path]) -> (Option<i32>, Value) {
    let mut words = vec![OsString::from("history"), "rebuild".into(), place.data().into(), "--json".into()];
    from.iter().for_each(|from| words.extend([OsString::from("--from"), (*from).into()]));
    let output = run(words);
    let lines = objects(&output);
    println!("{lines:?} {}", errors(&output));
    (output.status.code(), lines.last().cloned().unwrap_or_default())
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
