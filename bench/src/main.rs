//! Benchmarks by name: `cargo run --release -p bench -- SCENARIO|all [--peers] [--json FILE]`. One scenario, one
//! question.
//!
//! A single time says little on a shared machine, so a scenario runs its work and a reference in alternating rounds of
//! one run, and prints ratios with their least and greatest values. Each result carries machine facts and, if the work
//! is deterministic, a hash of what was computed: two runs of the same work must show the same hash. Every scenario
//! also has a small size, which the tests run, so that none rots. With `--peers` libraries of other projects run the
//! same work in the same run (`peers`). `endurance` and `history` take as long as their options say, `large_hour` writes 17 GB:
//! they are not part of `all`.

mod acks;
mod answer;
mod append;
mod archive;
mod backtest;
mod beside;
mod book;
mod broadcast;
mod busy;
mod chance;
mod commit;
mod crowd;
mod device;
mod echo;
mod endurance;
mod fanout;
mod flight;
mod floor;
mod fold;
mod frames;
mod goals;
mod growth;
mod hear;
mod history;
mod hostile;
mod hour;
mod http;
mod journal;
mod ladder;
mod large_hour;
mod listeners;
mod load;
mod machine;
mod memory;
mod mixed;
mod orders;
mod peers;
mod peripheral;
mod pulse;
mod raw;
mod reads;
mod recovery;
mod reference;
mod replay;
mod report;
mod role;
mod runs;
mod seats;
mod seeded;
mod server;
mod service;
mod shard;
mod sockets;
mod steady;
mod trade;
mod trader;
mod twins;
mod walk;
mod wire;
mod world;

use ::host::job::Job;
use ::host::thread::Stop;
use ::journal::prefault::{AHEAD_BYTES, Loading, MEMORY_AGAIN, Prefault};
use clap::Parser as _;
use report::{Report, Size};
use role::Role;
use runs::Runs;
use std::path::PathBuf;
use std::process::ExitCode;

/// The allocator of the server's own program: the measured servers are instances of this one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A question and the code that answers it.
struct Scenario {
    name: &'static str,
    question: &'static str,
    run: fn(Size, &mut Report),
}

const SCENARIOS: &[Scenario] = &[
    Scenario { name: "ladder", question: "what does reading a book cost while the feed writes it?", run: ladder::run },
    Scenario { name: "walk", question: "what does a taker walk of ten levels with fees cost?", run: walk::run },
    Scenario { name: "fold", question: "how fast do messages of the venues become ladders?", run: fold::run },
    Scenario { name: "hear", question: "how long from a venue's socket to a ladder?", run: hear::run },
    Scenario { name: "shard", question: "what does one order cost, decided, applied and encoded?", run: shard::run },
    Scenario { name: "book", question: "what does the stream mix1M cost, beside bare books?", run: book::run },
    Scenario {
        name: "backtest",
        question: "how fast do orders come and go beside a replayed market?",
        run: backtest::run,
    },
    Scenario {
        name: "answer",
        question: "how long is it from an order to its journaled answer, in process?",
        run: answer::run,
    },
    Scenario {
        name: "append",
        question: "what does an append cost beside a bare copy and checksum?",
        run: append::run,
    },
    Scenario { name: "commit", question: "how many durable groups beside raw write and sync?", run: commit::run },
    Scenario { name: "acks", question: "how many durable acknowledgements with 1,024 in flight?", run: acks::run },
    Scenario { name: "device", question: "what does the device write for one durable record?", run: device::run },
    Scenario { name: "busy", question: "what do two busy processes leave of the durable rate?", run: busy::run },
    Scenario { name: "frames", question: "how fast are records read back, beside a bare scan?", run: frames::run },
    Scenario { name: "recovery", question: "how fast does a log become state again?", run: recovery::run },
    Scenario { name: "http", question: "how many orders a second over HTTP, beside a bare hyper?", run: http::run },
    Scenario {
        name: "reads",
        question: "how many reads a second while the book changes, beside a bare hyper?",
        run: reads::run,
    },
    Scenario {
        name: "echo",
        question: "how long is the round trip of a text, beside the frame library?",
        run: echo::run,
    },
    Scenario {
        name: "fanout",
        question: "how many frames of one hot market leave, beside raw writes?",
        run: fanout::run,
    },
    Scenario { name: "trade", question: "how many orders a second over a socket, beside HTTP?", run: trade::run },
    Scenario { name: "sockets", question: "what do an idle server and an idle socket cost?", run: sockets::run },
    Scenario {
        name: service::NAME,
        question: "how many orders does the whole service take, beside an installable paper trader?",
        run: service::run,
    },
    Scenario {
        name: "replay",
        question: "does a replay give the same state each time, and what does a snapshot cost orders?",
        run: replay::run,
    },
    Scenario { name: "memory", question: "what do users and orders cost in memory?", run: memory::run },
    Scenario { name: "growth", question: "how do rate and start change when a server grows?", run: growth::run },
    Scenario {
        name: archive::NAME,
        question: "how fast does an hour become files, and a moment of it a book?",
        run: archive::run,
    },
    Scenario {
        name: "beside",
        question: "what do the building of hours and back-tests cost orders?",
        run: beside::run,
    },
    Scenario {
        name: "peripheral",
        question: "what do billing, alerts, football and status cost orders?",
        run: peripheral::run,
    },
    Scenario {
        name: "hostile",
        question: "what do a thousand listeners that do not read cost orders?",
        run: hostile::run,
    },
];

/// Names and questions of those that are not part of `all`.
const APART: [(&str, &str); 3] = [
    (endurance::NAME, endurance::QUESTION),
    (history::NAME, history::QUESTION),
    (large_hour::NAME, large_hour::QUESTION),
];

/// Benchmarks of papertape.
#[derive(clap::Parser)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, after_help = scenarios())]
struct CommandLine {
    /// A scenario's name, or all.
    #[arg(required = true)]
    scenario: Option<String>,
    /// Write the results to this file as JSON too.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Run the same work with libraries of other projects; needs the feature `peers`.
    #[arg(long)]
    peers: bool,
    /// Directory for logs; the system's temporary directory by default.
    #[arg(long, value_name = "DIR")]
    place: Option<PathBuf>,
    /// Run the small size of the tests: nothing to publish.
    #[arg(long)]
    small: bool,
    /// Length of `endurance` in minutes.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(endurance::MINUTES_MIN as u64..=10_000))]
    minutes: u64,
    /// Load of `endurance`, in percent of the full rate.
    #[arg(long, value_name = "N", default_value_t = 70, value_parser = clap::value_parser!(u8).range(1..=100))]
    percent: u8,
    /// Ended orders of `history`.
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(100_000..=1_000_000_000))]
    orders: u64,
    #[command(subcommand)]
    once_more: Option<OnceMore>,
}

/// The questions of all scenarios.
fn scenarios() -> String {
    let rows = SCENARIOS.iter().map(|scenario| (scenario.name, scenario.question));
    let rows = rows.chain(APART);
    rows.fold("Scenarios:".to_owned(), |text, (name, question)| format!("{text}\n  {name:<12}{question}"))
}

/// Another instance of this program, started by a scenario.
#[derive(clap::Subcommand)]
enum OnceMore {
    #[command(name = role::NAME, hide = true)]
    Role {
        /// As JSON.
        role: Role,
    },
}

fn main() -> ExitCode {
    let CommandLine { scenario, json, peers: with_peers, place, small, minutes, percent, orders, once_more } =
        CommandLine::parse();
    if let Some(OnceMore::Role { role }) = once_more {
        return role.run().map_or_else(|error| failure(&error.to_string()), |()| ExitCode::SUCCESS);
    }
    let wanted = scenario.unwrap_or_default();
    let chosen: Vec<_> = SCENARIOS.iter().filter(|scenario| wanted == "all" || scenario.name == wanted).collect();
    let apart = APART.iter().find(|(name, _)| *name == wanted);
    if chosen.is_empty() && apart.is_none() {
        let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        let apart: Vec<_> = APART.iter().map(|(name, _)| *name).collect();
        let names = format!("all, {}, and separately {}", names.join(", "), apart.join(", "));
        return failure(&format!("there is no scenario {wanted:?}; there are: {names}"));
    }
    // Some peers are programs, which the run installs.
    let wants_libraries = chosen.iter().any(|scenario| ![service::NAME, archive::NAME].contains(&scenario.name));
    if with_peers && wants_libraries && !peers::ARE_BUILT {
        return failure(&format!("this program was built without peers; build them with: {}", peers::BUILD_COMMAND));
    }
    if let Some(place) = place {
        // The first call sets it.
        let _ = tempfile::env::override_temp_dir(&place);
    }
    let size = if small { Size::Small } else { Size::Full };
    // As in a server; peers in this process have it, too.
    let loading = Loading::default();
    if let Some(prefault) = Prefault::new(AHEAD_BYTES, &loading) {
        // Without it, only slower; it ends with the process.
        let job = Job::new("prefault", MEMORY_AGAIN, move || prefault).low_priority();
        let _ = job.spare("memory is not prefaulted any more", || {}).start(&Stop::new());
    }
    loading.end();
    let mut runs = Runs::new(size, with_peers, json);
    let mut written = Ok(());
    for scenario in chosen {
        written = written.and(runs.run(scenario.name, scenario.question, scenario.run));
    }
    if let Some((name, question)) = apart {
        written = runs.run(name, question, |size, report| match *name {
            endurance::NAME => endurance::run(size, minutes as usize, percent, report),
            history::NAME => history::run(size, orders as usize, report),
            _ => large_hour::run(size, report),
        });
    }
    println!("load at the end {}", machine::load());
    match written {
        Err(why) => failure(&why),
        Ok(()) if !runs.are_well() => failure("something failed: see FAILED above"),
        Ok(()) => ExitCode::SUCCESS,
    }
}

fn failure(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::FAILURE
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_help_names_every_scenario_with_its_question() {
        let help = CommandLine::command().render_long_help().to_string();
        let rows = SCENARIOS.iter().map(|scenario| (scenario.name, scenario.question));
        for (name, question) in rows.chain(APART.into_iter().take(APART.len() - 1)) {
            assert!(help.contains(&format!("  {name:<12}{question}\n")), "{name}: {help}");
        }
        assert!(help.trim_end().ends_with(large_hour::QUESTION), "{help}");
        println!("scenarios in the help: {} cases", SCENARIOS.len() + APART.len());
    }
}
