//! Every scenario runs in its small size, twice, as the published program, and computes the same both times.

use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

/// Fields of every result.
const SAID: [&str; 4] = ["durability", "rate", "cores", "not_included"];
/// Scenarios whose servers and load have a core each, where there are two.
const SEATED: [&str; 6] = ["http", "reads", "fanout", "trade", "beside", "peripheral"];
/// Scenarios without a deterministic result: their frames carry the time.
const HASHLESS: [&str; 3] = ["echo", "fanout", "sockets"];
const MACHINE: [&str; 10] =
    ["version", "commit", "build", "features", "compiler", "machine", "cores", "kernel", "file system", "load"];
const SCENARIOS: [&str; 29] = [
    "ladder",
    "walk",
    "fold",
    "hear",
    "shard",
    "book",
    "backtest",
    "answer",
    "append",
    "commit",
    "acks",
    "device",
    "busy",
    "frames",
    "recovery",
    "http",
    "reads",
    "echo",
    "fanout",
    "trade",
    "sockets",
    "service",
    "replay",
    "memory",
    "growth",
    "archive",
    "beside",
    "peripheral",
    "hostile",
];

fn run(scenario: &str, json: &Path) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args([scenario, "--small", "--json"])
        .arg(json)
        .output()
        .expect("the benches can be run");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    let text = std::fs::read_to_string(json).expect("the benches write their results");
    serde_json::from_str(&text).expect("results are JSON")
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap_or_default()
}

#[test]
fn every_scenario_runs_small_and_computes_the_same_twice() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let hashes = |name: &str| {
        let all = run("all", &place.path().join(name));
        for fact in MACHINE {
            assert!(!all["machine"][fact].is_null(), "{fact}: {}", all["machine"]);
        }
        let results = all["results"].as_array().expect("a list of results").clone();
        let names: Vec<_> = results.iter().map(|result| text(result, "scenario").to_owned()).collect();
        assert_eq!(names, SCENARIOS);
        let mut hashes = BTreeMap::new();
        for result in &results {
            let figures = result["figures"].as_object().expect("figures by name");
            assert!(!figures.is_empty(), "{result}: measured nothing");
            for word in SAID {
                assert!(!text(result, word).is_empty(), "{word}: {result}");
            }
            assert_eq!(result["failed"], serde_json::json!([]), "{result}");
            let is_seated = text(result, "cores") != "chosen by the system";
            assert_eq!(is_seated, SEATED.contains(&text(result, "scenario")), "{result}");
            let (scenario, hash) = (text(result, "scenario"), result["hash"].as_str());
            assert_eq!(hash.is_none(), HASHLESS.contains(&scenario), "{result}");
            hashes.extend(hash.map(|hash| (scenario.to_owned(), hash.to_owned())));
        }
        hashes
    };
    let first = hashes("first.json");
    assert_eq!(first, hashes("second.json"));
    println!("{} scenarios, twice, {} of them with a hash", SCENARIOS.len(), first.len());
}

/// Minutes are seconds here, two of them with a restart; a missing acknowledged order is an error, and a history that
/// differs from the model.
#[test]
fn endurance_runs_small() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let all = run("endurance", &place.path().join("endurance.json"));
    let results = all["results"].as_array().expect("a list of results");
    assert_eq!(results.len(), 1, "nothing else runs");
    let result = &results[0];
    assert_eq!(text(result, "scenario"), "endurance");
    let figures = result["figures"].as_object().expect("figures by name");
    for name in ["p99.9", "memory", "disk", "checks", "history"] {
        assert!(figures[name].is_string(), "{name}: {result}");
    }
    let orders = |which: &str| figures[&format!("orders {which} []")].as_f64().unwrap_or_default();
    assert!(orders("acknowledged") > 0.0, "{result}");
    assert_eq!(orders("kept"), orders("acknowledged"), "{result}");
    assert!(text(&result["figures"], "history").starts_with("equal: 4 users"), "{result}");
    assert!(orders("that left memory") > 0.0, "{result}");
    assert_eq!(result["failed"], serde_json::json!([]), "{result}");
    assert!(figures["longest restart [s]"].as_f64().is_some_and(|seconds| seconds > 0.0), "{result}");
    println!("endurance: 12 cases");
}

/// It computes the same both times.
#[test]
fn history_runs_small() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let results = ["first.json", "second.json"].map(|name| run("history", &place.path().join(name))["results"].clone());
    let result = &results[0][0];
    assert_eq!((text(result, "scenario"), results[0].as_array().map(Vec::len)), ("history", Some(1)));
    let figures = result["figures"].as_object().expect("figures by name");
    let names = [
        "memory that an ended order leaves, shard and keeper's copy [bytes]",
        "an ended order on disk, merged [bytes]",
        "start with many ended orders: time beside few",
        "snapshot with many ended orders: time beside few",
        "orders over HTTP: rate beside the mover, of that without",
        "one order by its id, from the store [ns]",
        "one order by its id over HTTP: p50 of an ended one beside an open one",
        "trades.csv of one user [rows a second]",
        "orders: p99 beside trades.csv, of its value without",
        "one operation of P9 after many ended orders: time beside that after none",
        "written for an ended order: log, snapshots, store and its merges [bytes]",
    ];
    for name in names {
        assert!(!figures[name].is_null(), "{name}: {result}");
    }
    for result in results.iter().map(|results| &results[0]) {
        assert_eq!(result["failed"], serde_json::json!([]), "{result}");
        assert!(SAID.iter().all(|word| !text(result, word).is_empty()), "{result}");
    }
    assert!(results[0][0]["hash"].is_string(), "{result}");
    assert_eq!(results[0][0]["hash"], results[1][0]["hash"]);
    println!("history: {} cases", names.len() + 4);
}

#[test]
fn the_large_hour_runs_small() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let all = run("large_hour", &place.path().join("large_hour.json"));
    let result = &all["results"][0];
    assert_eq!((text(result, "scenario"), all["results"].as_array().map(Vec::len)), ("large_hour", Some(1)));
    let figure = |name: &str| result["figures"][name].as_f64().unwrap_or_default();
    assert_eq!(figure("rows []"), 4_000.0, "{result}");
    assert!(figure("greatest resident size [bytes]") > 1e6, "{result}");
    assert_eq!(result["failed"], serde_json::json!([]), "{result}");
    println!("large hour: 4 cases");
}

#[test]
fn unknown_scenarios_are_refused() {
    let cases: [&[&str]; 2] = [&["no-such-scenario", "--small"], &["--small"]];
    for args in cases {
        let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(args).output().expect("the benches can be run");
        assert!(!output.status.success(), "{args:?}");
        assert!(!output.stderr.is_empty(), "{args:?}");
    }
    println!("refused: {} cases", cases.len());
}

/// A build without peers explains how to get them.
#[cfg(not(feature = "peers"))]
#[test]
fn peers_that_were_not_built_are_refused() {
    let output = Command::new(env!("CARGO_BIN_EXE_bench")).args(["append", "--small", "--peers"]).output();
    let output = output.expect("the benches can be run");
    assert!(!output.status.success(), "{output:?}");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(stderr.contains("--features peers"), "{stderr}");
}

/// Each does the same work, and has a ratio.
#[cfg(feature = "peers")]
#[test]
fn peers_run_small_beside_ours() {
    let place = tempfile::tempdir().expect("a temporary directory");
    let cases: [(&str, &[&str]); 8] = [
        ("append", &["wal-db"]),
        ("commit", &["okaywal", "writeahead", "raft-engine", "wal-db"]),
        ("acks", &["writeahead", "raft-engine"]),
        ("frames", &["writeahead"]),
        ("book", &["matchcore", "orderbook-rs"]),
        ("backtest", &["hftbacktest"]),
        ("fanout", &["tungstenite's feed and flush"]),
        ("archive", &["DuckDB 2.0.1"]),
    ];
    let mut ratios = 0;
    for (scenario, peers) in cases {
        let json = place.path().join(scenario);
        let output = Command::new(env!("CARGO_BIN_EXE_bench"))
            .args([scenario, "--small", "--peers", "--json"])
            .arg(&json)
            .output()
            .expect("the benches can be run");
        assert!(output.status.success(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
        let all: Value = serde_json::from_slice(&std::fs::read(&json).expect("results")).expect("results are JSON");
        let figures = all["results"][0]["figures"].as_object().expect("figures by name").clone();
        for peer in peers {
            let name = format!("beside {peer}");
            let beside = figures.iter().find(|(what, value)| what.contains(&name) && value["median"].is_number());
            assert!(beside.is_some(), "{scenario} beside {peer}: {figures:?}");
            ratios += 1;
        }
    }
    println!("ratios to peers: {ratios}");
}
