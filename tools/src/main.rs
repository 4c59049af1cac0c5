//! `papertape`: the one binary. Each verb is a file; this one only knows their names.

mod asyncapi;
mod backup;
mod clock;
mod configuration;
mod doctor;
mod facts;
mod help;
mod journal;
mod key;
mod openapi;
mod record;
mod seed;
mod serve;
mod snapshot;
mod token;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use host::output;
use std::process::ExitCode;
use tools::signals::Interrupted;
use tools::{Failure, load, settings};

/// Books, orders and answers are small blocks of a few sizes, which this allocator hands out faster and closer together.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A self-hosted paper-trading venue for prediction markets.
#[derive(Parser)]
#[command(name = "papertape", version, max_term_width = 100)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Run the server; SIGTERM and SIGINT end it in order.
    Serve(serve::Serve),
    /// Record what live venues send, without a server; SIGTERM and SIGINT end it in order.
    Record(record::Record),
    /// Look whether live venues answer from here, and how they differ from what is expected of them.
    Doctor(doctor::Doctor),
    /// Make many users at once, each with a key; the server must be stopped.
    Seed(seed::Seed),
    /// Load a running server with orders, and say how fast it answers.
    Load(load::Load),
    /// Make another API key for a user of the running server, as when the demo key is lost.
    Key(key::Key),
    /// Print an identity JWT signed with the configured secret.
    Token(token::Token),
    /// Print every setting with its value and origin, or the reference of all settings.
    #[command(name = "settings")]
    Configuration(configuration::Configuration),
    /// Print the OpenAPI document of the wire.
    #[command(name = "openapi")]
    OpenApi(openapi::OpenApi),
    /// Print the AsyncAPI document of the streams.
    #[command(name = "asyncapi")]
    AsyncApi(asyncapi::AsyncApi),
    /// Look into the log of a data directory; never writes there.
    #[command(subcommand)]
    Log(journal::LogVerb),
    /// Take a backup of a stopped data directory, or of a running server.
    Backup(backup::Backup),
    /// Make a data directory of a backup: 0 when it is sound, 1 when the backup is damaged, 2 for a wrong command.
    Restore(backup::Restore),
    /// Put right what a wrong clock of this machine did to a stopped data directory.
    #[command(subcommand)]
    Clock(clock::ClockVerb),
    /// Make, list and verify snapshots of a stopped data directory.
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotVerb),
}

/// What the parser of the command line ends with, too.
const USAGE: u8 = 2;

fn main() -> ExitCode {
    let matches = help::explained(CommandLine::command()).get_matches();
    let CommandLine { verb } = CommandLine::from_arg_matches(&matches).unwrap_or_else(|error| error.exit());
    let done = match verb {
        Verb::Serve(serve) => serve.run(),
        Verb::Doctor(doctor) => doctor.run(),
        Verb::Record(record) => record.run(),
        Verb::Seed(seed) => seed.run(),
        Verb::Load(load) => load.run(),
        Verb::Key(key) => key.run(),
        Verb::Token(token) => token.run(),
        Verb::Configuration(verb) => verb.run(),
        Verb::OpenApi(verb) => verb.run(),
        Verb::AsyncApi(verb) => verb.run(),
        Verb::Log(verb) => verb.run(),
        Verb::Backup(backup) => backup.run(),
        Verb::Restore(restore) => restore.run(),
        Verb::Clock(verb) => verb.run(),
        Verb::Snapshot(verb) => verb.run(),
    };
    output::flush_log();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::say_within_a_second(std::io::stderr, format!("papertape: {failure}\n"));
            if failure.is::<backup::Usage>() {
                return USAGE.into();
            }
            failure.downcast_ref().map_or(ExitCode::FAILURE, |by: &Interrupted| by.exit_code().into())
        }
    }
}
