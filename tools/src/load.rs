//! `load`: a client that sends orders to a running server and measures how fast it answers.
//!
//! | File | Content |
//! |---|---|
//! | `options.rs`, `keys.rs` | the options and the keys file |
//! | `instrument.rs`, `ask.rs` | what is traded, read from the server |
//! | `kind.rs`, `trader.rs`, `fate.rs` | the operations, and the outcome of each order |
//! | `protocol.rs`, `open.rs` | encoding and connections |
//! | `drive.rs`, `course.rs`, `lane.rs`, `pace.rs` | when an operation is sent, and on which connection |
//! | `tally.rs`, `stalls.rs` | counts, and when answers came late |
//! | `check.rs` | compares the client's orders with the server's |
//! | `model.rs`, `reconcile.rs` | what the client knows of each order, in files, and its comparison with the server's history |
//! | `outcome.rs`, `facts.rs`, `text.rs`, `page.rs`, `chart.rs` | the report |
//! | `destination.rs` | output files |

mod ask;
mod chart;
mod check;
mod course;
mod destination;
mod drive;
mod facts;
mod fate;
mod instrument;
mod keys;
mod kind;
mod lane;
mod model;
mod open;
mod options;
mod outcome;
mod pace;
mod page;
mod protocol;
mod reconcile;
mod stalls;
mod tally;
mod text;
mod trader;

use crate::Failure;
use crate::settings::{self, hex, print_line};
use crate::signals::Signals;
use ask::Ask;
use check::{Check, Compared, Orders};
use clap::Args;
use course::Course;
use destination::Destination;
use drive::Plan;
use instrument::Instrument;
use keys::Keys;
use model::{Model, ModelWriter};
use options::{Mix, Rate, Target};
use outcome::{Outcome, RunOptions};
use protocol::{Protocol, Transport};
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;
use tally::Tally;
use tokio::task::LocalSet;
use tokio::time::timeout;
use wire::instant;

/// Timeout of the question after the run for the server's state; without an answer the earlier one is kept.
const FACTS_WITHIN: Duration = Duration::from_secs(10);

#[derive(Args)]
pub struct Load {
    /// Where the server listens: http://host:port. The load connects to no other host.
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:8080", value_parser = Target::parse)]
    url: Target,
    /// The users, as `papertape seed --out FILE` writes them.
    #[arg(long, value_name = "FILE", value_parser = Keys::read)]
    keys: Keys,
    /// Operations a second, due at even intervals (open loop); or max: as fast as connections × pipeline allow.
    #[arg(long, value_name = "N|max", default_value = "1000", value_parser = Rate::parse, allow_hyphen_values = true)]
    rate: Rate,
    /// Length of the run in seconds.
    #[arg(long, value_name = "S", default_value = "10", value_parser = options::duration, allow_hyphen_values = true)]
    duration: Duration,
    /// Number of connections; the users are distributed over them.
    #[arg(long, value_name = "C", default_value_t = 16, value_parser = settings::integer(1..=10_000), allow_hyphen_values = true)]
    connections: u64,
    /// Percentages of the kinds of operations: rest far from the touch, cross and take immediately, cancel a resting
    /// order.
    #[arg(long, value_name = "MIX", default_value = "rest=60,cross=25,cancel=15", value_parser = Mix::parse)]
    mix: Mix,
    /// Transport of the orders: HTTP requests, or the trade channel.
    #[arg(long, value_enum, default_value_t = Transport::Rest)]
    transport: Transport,
    /// Most operations in flight on one connection.
    #[arg(long, value_name = "D", default_value_t = 1, value_parser = settings::integer(1..=512), allow_hyphen_values = true)]
    pipeline: u64,
    /// Write a page with charts to this file.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Write every figure to this file, and the data for a later check.
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Compare the acknowledged orders with the orders on the server, after this run; with the JSON file of an earlier
    /// run: check that run, without a new one.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = Check::parse)]
    check: Option<Check>,
    /// Cancel the orders of this run that still rest at its end.
    #[arg(long)]
    clean: bool,
    /// Append to this folder what every order was as it was answered, for --check-history. Several runs on one server may
    /// share it.
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Without a run: compare the model in this folder with the server's history, the oldest orders by their ids, every row of
    /// trades.csv, the profile analysis and the equity of each user.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["model", "check", "clean", "report", "json"])]
    check_history: Option<PathBuf>,
}

impl Load {
    pub fn run(self) -> Result<(), Failure> {
        if matches!(self.check, Some(Check::Earlier(_))) && (self.report.is_some() || self.json.is_some() || self.clean)
        {
            return Err(
                "--check=FILE makes no run, so there is nothing to write or to clean; --check alone follows a run"
                    .into(),
            );
        }
        self.places_are_apart()?;
        let signals = Signals::catch()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let local = LocalSet::new();
        if let Some(folder) = &self.check_history {
            let model = Model::open(folder)?;
            return local.block_on(&runtime, signals.unless_ended(self.reconcile(&model)))?;
        }
        match &self.check {
            Some(Check::Earlier(orders)) => {
                let compared = local.block_on(&runtime, signals.unless_ended(self.compare(orders)))??;
                compared.lines().iter().for_each(print_line);
                verdict(&compared)
            }
            _ => local.block_on(&runtime, self.load(&signals)),
        }
    }

    /// An output file must not overwrite an input file, least of all the keys, which exist only there.
    fn places_are_apart(&self) -> Result<(), Failure> {
        let written = [("--json", &self.json), ("--report", &self.report)];
        let written = written.into_iter().filter_map(|(flag, path)| Some((flag, path.as_deref()?)));
        let mut taken = vec![("--keys", destination::place(&self.keys.file))];
        for (flag, path) in written {
            let place = destination::place(path);
            if let Some((other, _)) = taken.iter().find(|(_, there)| *there == place) {
                let why = format!("{other} and {flag} name the same file: one would overwrite the other");
                return Err(why.into());
            }
            taken.push((flag, place));
        }
        Ok(())
    }

    /// Compares a model with the server's history.
    async fn reconcile(&self, model: &Model) -> Result<(), Failure> {
        let mut ask = Ask::open(&self.url).await?;
        let found = reconcile::reconcile(&mut ask, &self.keys, model).await?;
        found.lines().iter().for_each(print_line);
        match found.is_equal() {
            true => Ok(()),
            false => Err("the model and the history on the server are not equal".into()),
        }
    }

    async fn compare(&self, orders: &Orders) -> Result<Compared, String> {
        let mut ask = Ask::open(&self.url).await?;
        check::compare(&mut ask, &self.keys, orders).await
    }

    async fn load(&self, signals: &Signals) -> Result<(), Failure> {
        // An unwritable report is an error before the run, not after it.
        let open = |path: &PathBuf| Destination::open(path);
        let report = self.report.as_ref().map(open).transpose()?;
        let json = self.json.as_ref().map(open).transpose()?;

        let World { mut ask, key, since, instruments, mut server } = signals.unless_ended(self.world()).await??;
        let protocol = Protocol { transport: self.transport, authority: self.url.authority.clone() };
        let run = run_name()?;
        let tokens = || instruments.iter().map(|instrument| instrument.token.clone()).collect();
        let model = self.model.as_ref().map(|folder| ModelWriter::begin(folder, &run, &since, tokens())).transpose()?;
        let course = Course::new(
            ask.address(),
            protocol,
            self.keys.clone(),
            run,
            self.mix,
            self.pipeline as usize,
            Tally::new(self.duration),
        );
        *course.model.borrow_mut() = model;
        let course = Rc::new(course);
        let Load { rate, duration, connections, clean, .. } = *self;
        let plan = Plan { connections: connections as usize, rate, duration, clean };
        let ran = drive::drive(course.clone(), &plan, instruments.into(), signals).await?;

        let before = server.clone();
        let facts = timeout(FACTS_WITHIN, facts::server(&mut ask, &key, &mut server));
        let _ = signals.unless_ended(facts).await;
        let restarted = facts::restarted(&before, &server);
        let id = |user: &u32| self.keys.users[*user as usize].user_id;
        let carried: Vec<Vec<u64>> = ran.users_used.iter().map(|users| users.iter().map(id).collect()).collect();
        let users: BTreeSet<u32> = ran.users_used.iter().flatten().copied().collect();
        let users = users.iter().map(id).collect();
        let fates = ran.fates.iter().map(|fates| fates.write()).collect();
        let mut outcome = Outcome {
            options: self.run_options(),
            ran,
            orders: Orders { run: course.run.clone(), since, users, carried, fates },
            machine: facts::machine(),
            server,
            restarted,
            compared: None,
        };
        // Health is public and not rate-limited: a server that does not answer it is not running.
        let is_gone = signals.unless_ended(server_time(&mut ask, &key)).await.is_ok_and(|time| time.is_err());
        let mut failed = is_gone.then(|| "the server was gone at the end of the run".to_owned());
        if let Some(Err(why)) = course.model.take().map(ModelWriter::end) {
            failed.get_or_insert(why);
        }
        if self.check.is_some() {
            match signals.unless_ended(check::compare(&mut ask, &self.keys, &outcome.orders)).await {
                Ok(Ok(compared)) => outcome.compared = Some(compared),
                // The figures of the run are still written, and the data for a later check.
                Ok(Err(error)) => failed = Some(format!("the check failed: {error}")),
                Err(_) => failed = Some("the check failed".to_owned()),
            }
        }
        outcome.ran.interrupted = signals.received().is_some();
        // The data for a later check is written first. A page that cannot be written prevents neither that nor the
        // verdict: the table may scroll by unread.
        let texts = [
            json.map(|file| file.write(&format!("{:#}\n", outcome.json()))),
            report.map(|file| file.write(&page::page(&outcome))),
        ];
        let unwritten: Vec<Failure> = texts.into_iter().flatten().filter_map(Result::err).collect();
        print_line(text::table(&outcome).trim_end());
        if let Some(mut interrupted) = signals.received() {
            interrupted.also = failed.into_iter().chain(unwritten.iter().map(Failure::to_string)).collect();
            return Err(interrupted.into());
        }
        let judged = judged(&outcome, failed);
        match (unwritten.into_iter().next(), judged) {
            (Some(unwritten), Err(why)) => Err(format!("{why}; and {unwritten}").into()),
            (Some(unwritten), Ok(())) => Err(unwritten),
            (None, judged) => judged,
        }
    }

    /// What the server is, and what is traded on it.
    async fn world(&self) -> Result<World, String> {
        let mut ask = Ask::open(&self.url).await?;
        let key = ask.key_let_in(&self.keys).await?;
        let since = server_time(&mut ask, &key).await?;
        let now = instant::read(&since).ok_or_else(|| format!("{} has an invalid time: {since}", self.url))?;
        let instruments = instrument::choose(&mut ask, &key, now, self.duration).await?;
        let mut server = Value::Null;
        facts::server(&mut ask, &key, &mut server).await;
        Ok(World { ask, key, since, instruments, server })
    }

    fn run_options(&self) -> RunOptions {
        let tiers = self.keys.tiers();
        RunOptions {
            command: command_line(std::env::args()),
            target: self.url.clone(),
            rate: self.rate,
            duration: self.duration,
            connections: self.connections as usize,
            pipeline: self.pipeline as usize,
            mix: self.mix,
            transport: self.transport,
            users: self.keys.users.len(),
            tiers: if tiers.is_empty() { String::new() } else { format!(" (tier {})", tiers.join(", ")) },
        }
    }
}

/// The server of a load, before the run.
struct World {
    ask: Ask,
    /// A key that the server accepts.
    key: String,
    /// The server's time.
    since: String,
    instruments: Vec<Instrument>,
    /// What the server reports about itself.
    server: Value,
}

/// The server's own time, which the orders of the run carry.
async fn server_time(ask: &mut Ask, key: &str) -> Result<String, String> {
    #[derive(Deserialize)]
    struct Health {
        timestamp: String,
    }
    let health: Health = ask.read("/v1/health", key).await?;
    Ok(health.timestamp)
}

/// Prefix of the ids of this run, unique to it.
fn run_name() -> Result<String, Failure> {
    let mut random = [0; 6];
    getrandom::fill(&mut random)?;
    Ok(format!("load-{}", hex(&random)))
}

/// Exit code 1 when the two differ, or when some orders could not be compared.
fn verdict(compared: &Compared) -> Result<(), Failure> {
    match (compared.differs(), compared.unread.count) {
        (true, _) => Err("the acknowledged orders and the orders on the server differ".into()),
        (false, 0) => Ok(()),
        (false, users) => Err(format!("the orders of {users} users could not be checked").into()),
    }
}

/// Whether the run succeeded, and whether its orders are on the server if that was checked; `failed` is the error of a
/// server that is gone, or of a check that could not be made.
fn judged(outcome: &Outcome, failed: Option<String>) -> Result<(), Failure> {
    if outcome.ran.tally.total().succeeded == 0 {
        return Err(nothing_succeeded(outcome).into());
    }
    match (failed, &outcome.compared) {
        (Some(error), _) => Err(error.into()),
        (None, Some(compared)) => verdict(compared),
        (None, None) => Ok(()),
    }
}

fn nothing_succeeded(outcome: &Outcome) -> String {
    let total = outcome.ran.tally.total();
    if total.answered() > 0 {
        return format!("not one operation succeeded; the most frequent answer is {}", outcome.most_frequent_code());
    }
    let most = outcome.ran.tally.transport.iter().max_by_key(|(_, count)| **count);
    let why =
        most.map_or("no connection had anything to send".to_owned(), |(why, count)| format!("{why}, {count} times"));
    format!("not one operation was answered: {why}")
}

/// A command line, quoted so that a shell reads it back.
fn command_line(args: impl Iterator<Item = String>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,+@%".contains(c);
    let quoted = args.map(|arg| match !arg.is_empty() && arg.chars().all(plain) {
        true => arg,
        false => format!("'{}'", arg.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_as_it_can_be_repeated() {
        let cases: [(&[&str], &str); 4] = [
            (&["papertape", "load", "--rate", "max"], "papertape load --rate max"),
            (&["a", "two words", ""], "a 'two words' ''"),
            (&["it's", "$HOME"], r"'it'\''s' '$HOME'"),
            (&["--mix=rest=60,cross=40"], "--mix=rest=60,cross=40"),
        ];
        for (args, expected) in cases {
            assert_eq!(command_line(args.iter().map(|arg| (*arg).to_owned())), expected);
        }
        println!("command lines: {} cases", cases.len());
    }

    #[test]
    fn no_two_runs_have_one_name() {
        let names = [run_name(), run_name()].map(|name| name.expect("the system has randomness"));
        assert_ne!(names[0], names[1]);
        assert!(names[0].starts_with("load-") && names[0].len() == 17, "{}", names[0]);
        println!("names: 2 cases");
    }
}
