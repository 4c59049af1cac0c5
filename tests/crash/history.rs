//! The history store of a data directory: its verbs, kills, and a backup of it (gateway/docs/history.md).

use serde_json::Value;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;
use tests::binary::run;
use tests::cases::Cases;
use tests::json::{int, list, text};
use tests::world::World;

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
