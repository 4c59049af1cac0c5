//! Benchmarks by name: `cargo run --release -p bench -- SCENARIO|all [--json FILE]`. One scenario, one question.
//!
//! A single time says little on a shared machine, so a scenario runs its work beside a reference in the same run, in
//! turns, and prints ratios with the least and the greatest. Each result carries machine facts and a hash of what was
//! computed: two runs of the same work must show the same hash. Every scenario also has a small size, which the tests
//! run, so that none rots.

mod chance;
mod commit;
mod ladder;
mod report;
mod walk;

use clap::Parser;
use report::{Report, Size};
use std::path::PathBuf;
use std::process::ExitCode;

/// A question and the code that answers it.
struct Scenario {
    name: &'static str,
    question: &'static str,
    run: fn(Size, &mut Report),
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "ladder", question: "what does reading a book cost while the feed writes it?", run: ladder::run },
    Scenario { name: "walk", question: "what does a taker walk of ten levels with fees cost?", run: walk::run },
    Scenario {
        name: "append",
        question: "what does an append cost beside a bare copy and checksum?",
        run: commit::append,
    },
    Scenario { name: "commit", question: "how many durable groups beside raw write and sync?", run: commit::durable },
];

/// Benchmarks of papertape.
#[derive(Parser)]
struct CommandLine {
    /// A scenario's name, or all.
    scenario: String,
    /// Write the results to this file as JSON too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

fn main() -> ExitCode {
    let CommandLine { scenario: wanted, json } = CommandLine::parse();
    let chosen: Vec<_> = SCENARIOS.iter().filter(|scenario| wanted == "all" || scenario.name == wanted).collect();
    if chosen.is_empty() {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        eprintln!("there is no scenario {wanted:?}; there are: all, {}", names.join(", "));
        return ExitCode::FAILURE;
    }
    println!("{}", report::machine());
    let mut results = Vec::new();
    for scenario in chosen {
        let mut report = Report::new(scenario.name, scenario.question);
        (scenario.run)(Size::Full, &mut report);
        println!("{report}");
        results.push(report.json());
    }
    if let Some(path) = json {
        let all = serde_json::json!({ "machine": report::machine(), "results": results });
        if let Err(error) = std::fs::write(&path, format!("{all:#}\n")) {
            eprintln!("{}: {error}", path.display());
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every scenario runs small, twice, and computes the same both times. `http` needs the binary: the process tests'
    /// harness runs that one.
    #[test]
    fn every_scenario_runs_small_and_computes_the_same_twice() {
        let mut count = 0;
        for scenario in SCENARIOS {
            let hash = || {
                let mut report = Report::new(scenario.name, scenario.question);
                (scenario.run)(Size::Small, &mut report);
                assert!(report.has_rows(), "{} measured nothing", scenario.name);
                report.hash()
            };
            assert_eq!(hash(), hash(), "{} computed two different things", scenario.name);
            count += 1;
        }
        println!("{count} scenarios");
        assert_eq!(count, SCENARIOS.len());
    }
}
