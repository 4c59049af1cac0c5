//! `papertape`: the command line. Each verb is a file; this one only lists them.

mod admin_client;
mod administer;
mod archive_verbs;
mod asyncapi;
mod backtest;
mod backup;
mod calibrate;
mod clock;
mod configuration;
mod desk;
mod doctor;
mod facts;
mod football;
mod help;
mod history_verbs;
mod incident;
mod journal;
mod key;
mod openapi;
mod record;
mod rehearsed;
mod seed;
mod serve;
mod simulate;
mod snapshot;
mod token;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use host::output;
use std::process::ExitCode;
use tools::signals::Interrupted;
use tools::{Failure, load, settings};

/// Books, orders and answers are small blocks of a few sizes; for those this allocator is faster and more compact.
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
    /// Run the server; SIGTERM and SIGINT stop it cleanly.
    Serve(serve::Serve),
    /// Record what live venues send, without a server; SIGTERM and SIGINT stop it cleanly.
    Record(record::Record),
    /// Check whether live venues answer from this machine, and how they differ from what their adapters expect; or show
    /// what the rehearsal of the venue's checks found.
    Doctor(doctor::Doctor),
    /// Create many users, each with a key; the server must be stopped.
    Seed(seed::Seed),
    /// Send orders to a running server and measure how fast it answers.
    Load(load::Load),
    /// Give a user a plan without payment, on a running server or in a stopped directory.
    Grant(administer::Grant),
    /// Return a payment of a user at the payment provider of a running server.
    Refund(administer::Refund),
    /// Give a notice to a user, or to all users, of a running server: by mail, to chats and to webhooks.
    Notice(administer::Notice),
    /// Open a COMPETITION wallet for a user, on a running server or in a stopped directory.
    Wallet(administer::Wallet),
    /// Create another API key for a user of the running server, for example when the demo key is lost.
    Key(key::Key),
    /// Print an identity JWT signed with the configured secret.
    Token(token::Token),
    /// Print every setting with its value and origin, or the reference of all settings.
    #[command(name = "settings")]
    Configuration(configuration::Configuration),
    /// Print the OpenAPI document of the HTTP interface.
    #[command(name = "openapi")]
    OpenApi(openapi::OpenApi),
    /// Print the AsyncAPI document of the streams.
    #[command(name = "asyncapi")]
    AsyncApi(asyncapi::AsyncApi),
    /// Make, import and check hours of market data. Exit code 1 when a file is refused, 2 for a wrong command.
    #[command(subcommand)]
    Archive(archive_verbs::ArchiveVerb),
    /// Ask an archive what the simulation routes answer, without a server. Exit code 1 when it refuses, 2 for a wrong
    /// command.
    #[command(subcommand)]
    Simulate(simulate::SimulateVerb),
    /// Run a back-test on an archive, without a server, or a bot against a recording. Exit code 0 when it completed, 1
    /// when it failed, 2 for a wrong specification or command, 3 for another result than the expected one, 130 or 143
    /// after SIGINT or SIGTERM.
    Backtest(backtest::BacktestVerb),
    /// Compare live orders with what the fill models do with them on a recording of the same time, without a server. Exit
    /// code 0 when orders were compared, 1 when none could be, or the control failed, 2 for wrong input, 130 or 143 after
    /// SIGINT or SIGTERM.
    Calibrate(calibrate::CalibrateVerb),
    /// Check a folder of facts of football. Exit code 1 when a file has a defect.
    #[command(subcommand)]
    Football(football::FootballVerb),
    /// Report an incident of the server; it shows the change within a second.
    #[command(subcommand)]
    Incident(incident::IncidentVerb),
    /// Read and check the log of a data directory; never writes there.
    #[command(subcommand)]
    Log(journal::LogVerb),
    /// Print the sizes of the history store of a stopped data directory, check it, or make it again. Exit code 1 when
    /// something of it is damaged or missing, or when the directory is in use.
    #[command(subcommand)]
    History(history_verbs::HistoryVerb),
    /// Take a backup of a stopped data directory, or of a running server.
    Backup(backup::Backup),
    /// Create a data directory from a backup. Exit code 0 when it is sound, 1 when the backup is damaged, 2 for a wrong
    /// command.
    Restore(backup::Restore),
    /// Repair a stopped data directory that was written under a wrong clock.
    #[command(subcommand)]
    Clock(clock::ClockVerb),
    /// Create, list and verify snapshots of a stopped data directory.
    #[command(subcommand)]
    Snapshot(snapshot::SnapshotVerb),
}

/// The exit code of the command-line parser, too.
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
        Verb::Grant(grant) => grant.run(),
        Verb::Refund(refund) => refund.run(),
        Verb::Notice(notice) => notice.run(),
        Verb::Wallet(wallet) => wallet.run(),
        Verb::Key(key) => key.run(),
        Verb::Token(token) => token.run(),
        Verb::Configuration(verb) => verb.run(),
        Verb::OpenApi(verb) => verb.run(),
        Verb::AsyncApi(verb) => verb.run(),
        Verb::Archive(verb) => verb.run(),
        Verb::Simulate(verb) => verb.run(),
        Verb::Backtest(verb) => verb.run(),
        Verb::Calibrate(verb) => verb.run(),
        Verb::Football(verb) => verb.run(),
        Verb::Incident(verb) => verb.run(),
        Verb::Log(verb) => verb.run(),
        Verb::History(verb) => verb.run(),
        Verb::Backup(backup) => backup.run(),
        Verb::Restore(restore) => restore.run(),
        Verb::Clock(verb) => verb.run(),
        Verb::Snapshot(verb) => verb.run(),
    };
    output::flush_log();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            output::write_with_timeout(std::io::stderr, format!("papertape: {failure}\n"));
            let is_refused_usage = failure.downcast_ref().is_some_and(|refused: &simulate::Refused| refused.is_usage);
            if failure.is::<admin_client::Usage>() || failure.is::<archive_verbs::Usage>() || is_refused_usage {
                return USAGE.into();
            }
            if let Some(failed) = failure.downcast_ref::<backtest::Failed>() {
                return failed.exit_code().into();
            }
            if let Some(failed) = failure.downcast_ref::<calibrate::Failed>() {
                return failed.exit_code().into();
            }
            failure.downcast_ref().map_or(ExitCode::FAILURE, |by: &Interrupted| by.exit_code().into())
        }
    }
}
