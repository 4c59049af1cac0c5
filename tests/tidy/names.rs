//! Names, file lengths, and a reason for every external crate.

use crate::layers::LAYERS;
use crate::sources::{self, has_word};
use std::fs;
use tests::binary::workspace;
use tests::cases::Cases;

/// The top-level names of the repository; dot-files belong to tools.
const TOP_LEVEL: [&str; 9] =
    ["Cargo.toml", "Cargo.lock", "engine", "wal", "gateway", "bench", "tools", "tests", "README.md"];

/// Words without information in a name.
const EMPTY_WORDS: [&str; 14] = [
    "util", "utils", "helper", "helpers", "manager", "managers", "common", "misc", "data", "info", "process", "handle",
    "handler", "handlers",
];

/// Longer files are reported; longest ones are refused.
const LONG_LINES: usize = 600;
const LONGEST_LINES: usize = 1_000;

#[test]
fn the_top_level_is_exactly_the_house() {
    let cases = Cases::of("top level");
    for name in sources::top_level() {
        assert!(name.starts_with('.') || TOP_LEVEL.contains(&name.as_str()), "{name} does not belong at the top");
        cases.one();
    }
    for name in TOP_LEVEL.into_iter().filter(|name| *name != "README.md") {
        assert!(workspace().join(name).exists(), "{name} is missing at the top");
        cases.one();
    }
}

#[test]
fn files_and_types_have_telling_names() {
    let cases = Cases::of("names");
    for source in sources::all() {
        let path = source.name.trim_end_matches(".rs");
        for part in path.split(['/', '_']) {
            assert!(!EMPTY_WORDS.contains(&part), "{}: {part:?} says nothing", source.name);
        }
        for (number, line) in source.all_code() {
            for keyword in ["mod ", "struct ", "enum ", "trait "] {
                let Some(rest) = line
                    .trim_start()
                    .trim_start_matches("pub ")
                    .trim_start_matches("pub(crate) ")
                    .strip_prefix(keyword)
                else {
                    continue;
                };
                let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                let words = words_of(&name);
                for word in &words {
                    assert!(!EMPTY_WORDS.contains(&word.as_str()), "{}:{number}: {name} says {word:?}", source.name);
                }
            }
        }
        cases.one();
    }
}

#[test]
fn files_have_a_natural_size() {
    let cases = Cases::of("sizes");
    let mut too_long = Vec::new();
    for source in sources::all() {
        let lines = source.text.lines().count();
        if lines > LONG_LINES {
            println!("long: {} has {lines} lines", source.name);
        }
        if lines > LONGEST_LINES {
            too_long.push(format!("{} ({lines})", source.name));
        }
        cases.one();
    }
    assert!(too_long.is_empty(), "longer than {LONGEST_LINES} lines: {}", too_long.join(", "));
}

#[test]
fn open_tasks_name_their_owner() {
    let cases = Cases::of("open ends");
    for source in sources::all().iter().filter(|source| source.name != "tests/tidy/names.rs") {
        for (number, line) in source.text.lines().enumerate() {
            for word in ["TODO", "FIXME", "XXX", "HACK"] {
                let named = line.contains(&format!("{word}("));
                assert!(!has_word(line, word) || named, "{}:{}: {word} without a name", source.name, number + 1);
            }
        }
        cases.one();
    }
}

#[test]
fn every_outside_crate_has_its_reason() {
    let cases = Cases::of("reasons");
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).expect("the workspace has a manifest");
    let section = manifest.split("[workspace.dependencies]").nth(1).expect("shared dependencies");
    for line in section.lines().take_while(|line| !line.starts_with('[')) {
        let Some((name, rest)) = line.split_once(" = ") else { continue };
        if rest.contains("path = ") {
            continue;
        }
        let reason = rest.split_once('#').map(|(_, reason)| reason.trim()).unwrap_or_default();
        assert!(!reason.is_empty(), "{name} has no reason beside it");
        cases.one();
    }
}

#[test]
fn packages_take_their_crates_from_the_workspace() {
    let cases = Cases::of("manifests");
    for package in LAYERS.iter().map(|layer| layer.folder) {
        let manifest =
            fs::read_to_string(workspace().join(package).join("Cargo.toml")).expect("a package has a manifest");
        let mut in_dependencies = false;
        for line in manifest.lines() {
            if line.starts_with('[') {
                in_dependencies = line.contains("dependencies");
            } else if in_dependencies && line.contains('=') {
                assert!(line.contains("workspace = true"), "{package}: {line} has a version of its own");
                cases.one();
            }
        }
        assert!(manifest.contains("[lints]\nworkspace = true"), "{package} does not take the lints of the workspace");
    }
}

/// `OrderInfo` and `order_info` → order, info.
fn words_of(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if c != '_' {
            words.last_mut().expect("never empty").extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn names_fall_into_words() {
    assert_eq!(words_of("OrderInfo"), ["order", "info"]);
    assert_eq!(words_of("order_info"), ["order", "info"]);
    println!("words: 2 cases");
}
