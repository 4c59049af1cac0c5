//! Parsers of external bytes, under seeded mutations of a small corpus.
//!
//! In `cargo test` each target gets its whole corpus and some thousands of mutations; `FUZZ_SEED` repeats a run and
//! `FUZZ_INPUTS` sets their number. The same targets under libFuzzer, with sanitizer and coverage: `libfuzzer.rs`.
//!
//! The corpora of the log's parsers are made by the tests themselves: `record`, `segment` and `epoch` from an intact
//! log, `facts` and `snapshot` from the golden data directories; those of the archive by its writers.

mod mutator;
mod sockets;
mod targets;

use mutator::Mutator;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use targets::{TARGETS, Target};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::chance::Chance;

/// Mutations of each target in `cargo test`.
const INPUTS: usize = 10_000;

fn corpus_folder(target: &str) -> PathBuf {
    workspace().join("tests/fuzz/corpus").join(target)
}

/// The files of a target's corpus.
fn corpus(target: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<PathBuf> = fs::read_dir(corpus_folder(target))
        .unwrap_or_else(|error| panic!("the corpus of {target}: {error}"))
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    let found: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).expect("a file")).collect();
    assert!(!found.is_empty(), "{target} has no corpus");
    found
}

fn run(name: &str, target: Target, inputs: usize, chance: &mut Chance, cases: &Cases) {
    let corpus = corpus(name);
    let mut mutator = Mutator::new(&corpus, chance.fork());
    let one = |input: &[u8]| {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| target(input))) {
            let file = std::env::temp_dir().join(format!("papertape-fuzz-{name}"));
            let _ = fs::write(&file, input);
            eprintln!("{name} fails on {} bytes, kept in {}", input.len(), file.display());
            resume_unwind(panic);
        }
        cases.one();
    };
    corpus.iter().for_each(|input| one(input));
    for _ in 0..inputs {
        one(&mutator.next());
    }
}

#[test]
fn no_parser_fails_on_any_input() {
    let cases = Cases::of("fuzz inputs");
    let mut chance = match std::env::var("FUZZ_SEED") {
        Ok(_) => Chance::from_env("FUZZ_SEED"),
        // The same inputs in every run: a failure is caused by the current change.
        Err(_) => Chance::seeded(1),
    };
    let inputs = std::env::var("FUZZ_INPUTS").map_or(INPUTS, |text| text.parse().expect("FUZZ_INPUTS is a number"));
    let only = std::env::var("FUZZ_TARGET").ok();
    for (name, target) in TARGETS.iter().filter(|(name, _)| only.as_deref().is_none_or(|only| only == *name)) {
        run(name, *target, inputs, &mut chance, &cases);
    }
}

/// A failing target is detected: the driver works.
#[test]
fn a_planted_fault_is_found() {
    let fault: Target = |input| assert!(!input.windows(2).any(|two| two == b"}}"), "two braces");
    let found = catch_unwind(|| run("json", fault, INPUTS, &mut Chance::seeded(1), &Cases::of("planted fault")));
    assert!(found.is_err(), "no mutation of the corpus has two braces");
}

/// Writes the corpora of the log's targets.
/// `cargo test -p tests --test fuzz corpora_of_the_journal_are_made -- --ignored --nocapture`
#[test]
#[ignore = "writes into tests/fuzz/corpus"]
fn corpora_of_the_journal_are_made() {
    write_corpora(targets::journal_files());
}

/// Writes good files of the archive.
/// `cargo test -p tests --test fuzz corpora_of_the_archive_are_made -- --ignored --nocapture`
#[test]
#[ignore = "writes into tests/fuzz/corpus"]
fn corpora_of_the_archive_are_made() {
    write_corpora(targets::archive_files());
}

fn write_corpora(files: Vec<(&'static str, &'static str, Vec<u8>)>) {
    for (target, name, bytes) in files {
        let folder = corpus_folder(target);
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join(name), bytes).expect("a file");
    }
}
