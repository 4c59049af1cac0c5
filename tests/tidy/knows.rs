//! What the lower packages may use, and which files may use the machine.

use crate::layers::dependencies;
use crate::sources::{self, has_word};
use tests::cases::Cases;

/// The crates of the engine, a pure calculation: without a runtime, serde or a file crate.
const ENGINE_CRATES: [&str; 7] = ["ahash", "bincode", "wincode", "crossbeam", "rand_chacha", "sha2", "engine"];

/// Crates that a log of bytes must not use.
const NOT_IN_WAL: [&str; 11] = [
    "engine",
    "gateway",
    "serde",
    "serde_json",
    "tokio",
    "hyper",
    "bincode",
    "wincode",
    "rust_decimal",
    "toml",
    "tracing",
];

#[test]
fn the_engine_is_a_calculation_and_the_log_has_only_bytes() {
    let cases = Cases::of("crates of engine and wal");
    for (package, on, _) in dependencies().iter().filter(|(_, _, for_tests)| !for_tests) {
        let on = on.as_str();
        match package.as_str() {
            "engine" => assert!(ENGINE_CRATES.contains(&on), "engine must not use {on}"),
            "wal" => assert!(!NOT_IN_WAL.contains(&on), "wal must not use {on}"),
            _ => continue,
        }
        cases.one();
    }
}

#[test]
fn the_engine_touches_nothing_outside() {
    let cases = Cases::of("engine sources");
    let outside =
        ["std::fs", "std::net", "std::env", "std::process", "SystemTime", "Instant::now", "async fn", "f32", "f64"];
    for source in sources::all().iter().filter(|source| source.name.starts_with("engine/src/")) {
        for (number, line) in source.code() {
            for word in outside {
                // The delay that a back-test draws: basic operations only, which give the same on every machine.
                let is_drawn = word == "f64" && source.name == "engine/src/backtest/chance.rs";
                assert!(is_drawn || !has_word(line, word), "{}:{number} says {word}: {line}", source.name);
            }
        }
        cases.one();
    }
}

#[test]
fn the_log_has_no_trading_word() {
    let cases = Cases::of("wal sources");
    for source in sources::all().iter().filter(|source| source.name.starts_with("wal/src/")) {
        for (number, line) in source.code() {
            for word in ["market", "wallet", "price", "trade"] {
                assert!(!has_word(&line.to_lowercase(), word), "{}:{number} says {word}: {line}", source.name);
            }
        }
        cases.one();
    }
}

#[test]
fn one_file_reads_the_environment_and_one_the_clock() {
    let cases = Cases::of("environment and clock");
    for source in
        sources::all().iter().filter(|source| !source.name.starts_with("tests/") && !source.name.starts_with("bench/"))
    {
        for (number, line) in source.code() {
            let reads_environment =
                ["env::var", "env::vars", "env::var_os", "env::vars_os"].iter().any(|call| has_word(line, call));
            // A build script reads its inputs from it.
            let may = source.name == "gateway/src/config.rs" || source.name.ends_with("/build.rs");
            assert!(!reads_environment || may, "{}:{number} reads the environment: {line}", source.name);
            let reads_clock = has_word(line, "SystemTime::now");
            assert!(
                !reads_clock || source.name == "gateway/host/src/clock.rs",
                "{}:{number} reads the wall clock: {line}",
                source.name
            );
        }
        cases.one();
    }
}

#[test]
fn unsafe_is_in_two_files_only() {
    let cases = Cases::of("unsafe");
    let allowed = ["wal/src/segment.rs", "wal/src/sys.rs"];
    for source in sources::all() {
        // This file has the word in strings.
        if source.name == "tests/tidy/knows.rs" || source.name == "tests/tidy/sources.rs" {
            continue;
        }
        for (number, line) in source.all_code() {
            // A policy of pages has the word.
            let line = &line.replace("'unsafe-inline'", "");
            let names_unsafe = has_word(line, "unsafe") || has_word(line, "unsafe_code");
            assert!(
                !names_unsafe || allowed.contains(&source.name.as_str()),
                "{}:{number} says unsafe: {line}",
                source.name
            );
        }
        cases.one();
    }
}
