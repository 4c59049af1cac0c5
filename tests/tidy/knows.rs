//! Who may know whom (house.md §4), and who alone may touch the machine.

use crate::sources::{self, has_word};
use serde_json::Value;
use std::collections::BTreeSet;
use tests::binary::{cargo, workspace};
use tests::cases::Cases;

/// Names of the packages that each package may use outside its tests.
const MAY_KNOW: [(&str, &[&str]); 6] = [
    ("engine", &[]),
    ("wal", &[]),
    ("gateway", &["engine", "wal"]),
    ("bench", &["engine", "wal", "gateway", "tools"]),
    ("tools", &["engine", "wal", "gateway"]),
    ("tests", &["engine", "wal", "gateway"]),
];

/// A calculation needs no more than these; no runtime, no serde, no file crate is the proof of idea 1.
const ENGINE_CRATES: [&str; 6] = ["ahash", "bincode", "wincode", "crossbeam", "sha2", "engine"];

/// What a log of bytes has no business with.
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

struct Dependency {
    package: String,
    on: String,
    for_tests: bool,
}

fn dependencies() -> Vec<Dependency> {
    let output = cargo()
        .args(["metadata", "--format-version", "1", "--no-deps", "--offline"])
        .current_dir(workspace())
        .output()
        .expect("cargo can be run");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout).expect("cargo metadata prints JSON");
    let mut found = Vec::new();
    for package in metadata["packages"].as_array().expect("packages") {
        let name = package["name"].as_str().expect("a name");
        for dependency in package["dependencies"].as_array().expect("dependencies") {
            found.push(Dependency {
                package: name.to_string(),
                on: dependency["name"].as_str().expect("a name").to_string(),
                for_tests: dependency["kind"].as_str() == Some("dev"),
            });
        }
    }
    found
}

#[test]
fn packages_know_only_whom_they_may() {
    let cases = Cases::of("packages");
    let packages: BTreeSet<&str> = MAY_KNOW.iter().map(|(name, _)| *name).collect();
    for dependency in dependencies().iter().filter(|dependency| packages.contains(dependency.on.as_str())) {
        let (_, allowed) =
            MAY_KNOW.iter().find(|(name, _)| *name == dependency.package).expect("a package of the house");
        assert!(
            allowed.contains(&dependency.on.as_str()),
            "{} must not know {} (tests included)",
            dependency.package,
            dependency.on
        );
        cases.one();
    }
}

#[test]
fn the_engine_is_a_calculation_and_the_log_knows_only_bytes() {
    let cases = Cases::of("crates of engine and wal");
    for dependency in dependencies().iter().filter(|dependency| !dependency.for_tests) {
        let on = dependency.on.as_str();
        match dependency.package.as_str() {
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
                assert!(!has_word(line, word), "{}:{number} says {word}: {line}", source.name);
            }
        }
        cases.one();
    }
}

#[test]
fn the_log_says_no_trading_word() {
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
            // A build script is told by it what it builds.
            let may = source.name == "gateway/src/config.rs" || source.name.ends_with("/build.rs");
            assert!(!reads_environment || may, "{}:{number} reads the environment: {line}", source.name);
            let reads_clock = has_word(line, "SystemTime::now");
            assert!(
                !reads_clock || source.name == "gateway/src/clock.rs",
                "{}:{number} reads the wall clock: {line}",
                source.name
            );
        }
        cases.one();
    }
}

#[test]
fn unsafe_stands_in_two_files_only() {
    let cases = Cases::of("unsafe");
    let allowed = ["wal/src/segment.rs", "wal/src/sys.rs"];
    for source in sources::all() {
        // This file says the word in texts.
        if source.name == "tests/tidy/knows.rs" || source.name == "tests/tidy/sources.rs" {
            continue;
        }
        for (number, line) in source.all_code() {
            let said = has_word(line, "unsafe") || has_word(line, "unsafe_code");
            assert!(!said || allowed.contains(&source.name.as_str()), "{}:{number} says unsafe: {line}", source.name);
        }
        cases.one();
    }
}
