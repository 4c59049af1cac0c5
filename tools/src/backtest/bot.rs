//! A back-test with a bot: a server on the clock of a recording, the bot's command, and the result of both.

use super::outcome::{self, Course, Outcome};
use super::{FAILED, Failed, Files, Form, text_of, write};
use crate::Failure;
use crate::settings::{self, hex, log_events, print_line};
use clap::Args;
use edge::groups;
use gateway::boot::{self, BootError, ForBot, Started};
use gateway::config::Config;
use host::clock::Clock;
use host::moments::{Gate, Moments};
use journal::recover;
use rustix::fs::FileType;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};
use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, TryRecvError};
use std::sync::{Arc, Once};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tools::signals::Signals;

/// How often the state of the run is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How long responses may take when the bot has ended.
const END_WITHIN: Duration = Duration::from_secs(5);
/// At the end of the recording: how long a bot's requests are refused while it may end by itself, and how long its
/// command may take after SIGTERM.
const LEAVES_WITHIN: Duration = Duration::from_secs(2);
const TERMINATES_WITHIN: Duration = Duration::from_secs(5);
/// Markets whose tokens are given to the bot.
const MARKETS_SHOWN: usize = 100;

#[derive(Args)]
pub struct BotVerb {
    /// The bot: a command for sh. Its environment has PAPERTAPE_URL, PAPERTAPE_KEY, PAPERTAPE_TOKENS (of the first
    /// markets), PAPERTAPE_ADMIN_URL and PAPERTAPE_ADMIN_TOKEN; its end ends the run. Without it, connect to what the
    /// first line of the output names.
    #[arg(long, value_name = "CMD", requires = "bot")]
    run: Option<String>,
    /// The recording: a file or a folder, of lines or of hours of an archive.
    #[arg(long, value_name = "PATH", requires = "bot", required_if_eq("bot", "true"))]
    tape: Option<PathBuf>,
    /// Replay only these markets of an archive: a file with one condition id a line.
    #[arg(long, value_name = "FILE", requires = "bot")]
    markets: Option<PathBuf>,
    /// First hour of an archive to replay, like 2026-09-30T17 (UTC).
    #[arg(long, value_name = "HOUR", requires = "bot")]
    from: Option<String>,
    /// Last hour of an archive to replay.
    #[arg(long, value_name = "HOUR", requires = "bot")]
    to: Option<String>,
    /// When the clock moves: stepped, round:OPERATION:TIME (like round:get_book:1s), or quiet:MILLISECONDS.
    #[arg(long, value_name = "GATE", requires = "bot", required_if_eq("bot", "true"))]
    gate: Option<Gate>,
    /// A setting of the server, as in the configuration; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", value_parser = setting, requires = "bot")]
    set: Vec<(String, String)>,
    /// Number of runs; with several, the report says whether their results are equal.
    #[arg(long, value_name = "N", value_parser = settings::integer(1..=100), allow_hyphen_values = true, requires = "bot")]
    repeat: Option<u64>,
}

/// `NAME=VALUE`.
fn setting(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("allowed is NAME=VALUE")?;
    let is_own = ["data.", "server.listen", "admin.", "venue."].iter().any(|own| name.starts_with(own));
    if is_own {
        return Err(format!("{name} is set by the back-test itself"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

impl BotVerb {
    fn tape(&self) -> &Path {
        self.tape.as_deref().expect("the parser asks for it with --bot")
    }

    fn gate(&self) -> &Gate {
        self.gate.as_ref().expect("the parser asks for it with --bot")
    }

    fn repeat(&self) -> u64 {
        self.repeat.unwrap_or(1)
    }

    pub fn run(self, files: &Files) -> Result<(), Failure> {
        for path in files.trades.iter().chain(&files.equity) {
            if Form::of(path) == Some(Form::Parquet) {
                let why = "rows about a bot are .ndjson or .csv";
                return Err(Failed::usage(format_args!("{}: {why}", path.display())));
            }
        }
        if let Gate::Round { operation, .. } = self.gate() {
            let tables = groups::tables();
            let is_known = tables.iter().flat_map(|table| table.iter()).any(|route| route.name == operation);
            if !is_known {
                let why = "is not an operation; `papertape openapi` lists them as operationId";
                return Err(Failed::usage(format_args!("--gate: {operation:?} {why}")));
            }
        }
        if !self.tape().exists() {
            return Err(Failed::usage(format_args!("{}: there is no such recording", self.tape().display())));
        }
        let signals = Signals::catch()?;
        let mut runs: Vec<Outcome> = Vec::new();
        for _ in 0..self.repeat() {
            runs.push(self.once(&signals)?);
        }
        let hashes: Vec<String> = runs.iter().map(|run| run.hash.clone()).collect();
        let last = runs.pop().expect("there was one");
        let mut report = last.report;
        report["hash"] = json!(last.hash);
        report["runs"] = json!(hashes);
        report["deterministic"] = match self.repeat() {
            1 => Value::Null,
            _ => json!(hashes.iter().all(|hash| *hash == hashes[0])),
        };
        write_files(files, &report, &last.course)?;
        match report["status"] == "completed" {
            true => Ok(()),
            false => Err(Failed { code: FAILED, why: format!("the bot failed: {}", report["exit"]) }.into()),
        }
    }

    /// The configuration of the server.
    fn config(&self, dir: &Path) -> Result<Config, Failure> {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut flags = vec![
            ("log.level".to_owned(), "warn".to_owned()),
            // A run is short: memory and segments of a server for weeks would only delay its start.
            ("engine.prefault_bytes".to_owned(), "0".to_owned()),
        ];
        flags.extend(self.set.iter().cloned());
        let own = [
            ("data.dir", Some(text(dir))),
            ("server.listen", Some("127.0.0.1:0".to_owned())),
            ("admin.listen", Some("127.0.0.1:0".to_owned())),
            ("venue.kind", Some("replay".to_owned())),
            ("venue.tape", Some(text(self.tape()))),
            ("venue.speed", Some("max".to_owned())),
            ("venue.markets", self.markets.as_deref().map(text)),
            ("venue.from", self.from.clone()),
            ("venue.to", self.to.clone()),
        ];
        flags.extend(own.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
        // No file and no environment: equal commands have equal results.
        let mut config = Config::read(None, [], flags).map_err(Failed::usage)?;
        config.built_from = option_env!("PAPERTAPE_GIT_SHA").filter(|sha| !sha.is_empty());
        Ok(config)
    }

    /// One run.
    fn once(&self, signals: &Signals) -> Result<Outcome, Failure> {
        static LOGGED: Once = Once::new();
        let dir = TempDir::with_prefix("papertape-backtest-")?;
        let config = self.config(&dir.path().join("data"))?;
        let mut logged = Ok(());
        LOGGED.call_once(|| logged = log_events(config.log));
        logged?;
        let data = config.data.dir.clone();
        let moments = Moments::new(Clock::of_recording(), self.gate().clone());
        let (server, started) = start(config, &moments)?;
        print_line(ready_line(&started));
        let begun = moments.clock().now();
        let mut bot = self.run.as_deref().map(|command| Bot::start(command, &started, &moments)).transpose()?;
        let ended = self.wait(&moments, &mut bot, &server, signals);
        moments.end(END_WITHIN);
        let figures = moments.figures();
        // Why the server ended says more than that it did.
        server.join().map_err(|_| "the server's thread panicked")??;
        let exit = ended?;
        let (state, _) = recover::look(&data, false)?;
        let spec = outcome::Spec {
            gate: self.gate().to_string(),
            recording: started.recording.as_ref().map(|hash| hex(hash)),
            hours: [self.from.clone(), self.to.clone()],
            settings: self.set.clone(),
        };
        let span = (begun, moments.clock().now());
        Ok(Outcome::of(&spec, &state, &started, span, figures, exit))
    }

    /// Waits for the end of the run. Returns how the command ended; `None` if there is none, or it was ended here.
    fn wait(
        &self,
        moments: &Moments,
        bot: &mut Option<Bot>,
        server: &JoinHandle<Result<(), BootError>>,
        signals: &Signals,
    ) -> Result<Option<ExitStatus>, Failure> {
        let input = bot.is_none().then(end_of_input).flatten();
        loop {
            if let Some(interrupted) = signals.received() {
                return Err(interrupted.into());
            }
            if server.is_finished() {
                return Err("the server ended before the run".into());
            }
            if let Some(exit) = bot.as_mut().map(Bot::ended).transpose()?.flatten() {
                return Ok(Some(exit));
            }
            if input.as_ref().is_some_and(|input| input.try_recv() != Err(TryRecvError::Empty)) {
                return Ok(None);
            }
            if moments.is_over_within(LOOK_EVERY) {
                let Some(bot) = bot else {
                    stay_for_refusals(input.as_ref());
                    return Ok(None);
                };
                return bot.leave();
            }
        }
    }
}

/// Writes what was asked for, and the report to standard output, without its lists where it is not the only output.
fn write_files(files: &Files, report: &Value, course: &Course) -> Result<(), Failure> {
    for (path, fields, name) in
        [(&files.trades, &outcome::TRADE_FIELDS[..], "trades"), (&files.equity, &outcome::POINT_FIELDS, "equity")]
    {
        let Some(path) = path else { continue };
        let rows = report[name].as_array().map_or(&[][..], Vec::as_slice);
        write(path, text_of(fields, rows, Form::of(path) == Some(Form::Csv))?)?;
    }
    if let Some(path) = &files.html {
        write(path, outcome::page(report, course))?;
    }
    match &files.json {
        Some(_) if files.prints_json() => print_line(report),
        path => {
            if let Some(path) = path {
                write(path, format!("{report}\n"))?;
            }
            print_line(outcome::summary(report));
        }
    }
    Ok(())
}

/// Starts the server on a thread of its own.
fn start(config: Config, moments: &Arc<Moments>) -> Result<(JoinHandle<Result<(), BootError>>, Started), Failure> {
    let (ready, is_ready) = mpsc::sync_channel(1);
    let moments = Arc::clone(moments);
    let server = thread::Builder::new().name("server".to_owned()).spawn(move || {
        let started = Box::new(move |started| drop(ready.send(started)));
        boot::serve_bot(config, ForBot { moments, started })
    })?;
    match is_ready.recv() {
        Ok(started) => Ok((server, started)),
        // The sender is gone: the start failed.
        Err(_) => match server.join() {
            Ok(Err(error @ (BootError::Bot(_) | BootError::Venue(_)))) => Err(Failed::usage(error)),
            Ok(Err(error)) => Err(error.into()),
            _ => Err("the server ended before it was ready".into()),
        },
    }
}

/// The tokens of the first markets.
fn tokens(started: &Started) -> Vec<String> {
    let markets = started.catalog.iter().take(MARKETS_SHOWN);
    markets.flat_map(|market| market.listing.tokens.iter().map(|token| token.to_string()).collect::<Vec<_>>()).collect()
}

fn ready_line(started: &Started) -> Value {
    json!({
        "ready": 1,
        "version": env!("CARGO_PKG_VERSION"),
        "url": format!("http://{}", started.server),
        "admin": started.admin.map(|admin| format!("http://{admin}")),
        "admin_token": started.admin_token.as_ref().map(|token| token.expose()),
        "key": started.key.expose(),
        "tokens": tokens(started),
        "clock": "venue",
    })
}

/// The end of standard input, if that is a pipe: a program that started this one has ended, or wants the end.
fn end_of_input() -> Option<Receiver<()>> {
    let input = rustix::fs::fstat(std::io::stdin()).ok()?;
    if !matches!(FileType::from_raw_mode(input.st_mode), FileType::Fifo | FileType::Socket) {
        return None;
    }
    let (end, is_end) = mpsc::sync_channel(1);
    // Ends with the process.
    thread::spawn(move || {
        let mut scratch = [0; 256];
        while matches!(std::io::stdin().read(&mut scratch), Ok(1..)) {}
        let _ = end.send(());
    });
    Some(is_end)
}

/// The recording is over, and the bots are not ours: lets each learn that from its next response, until the end of
/// standard input.
fn stay_for_refusals(input: Option<&Receiver<()>>) {
    match input {
        Some(input) => drop(input.recv_timeout(LEAVES_WITHIN)),
        None => thread::sleep(LEAVES_WITHIN),
    }
}

/// The bot's command, in a process group of its own.
struct Bot(Child);

impl Bot {
    fn start(command: &str, started: &Started, moments: &Moments) -> Result<Bot, Failure> {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).process_group(0).stdin(Stdio::null());
        // Standard output has the lines of this program.
        shell.stdout(Stdio::from(std::io::stderr()));
        shell.env("PAPERTAPE_URL", format!("http://{}", started.server));
        shell.env("PAPERTAPE_KEY", started.key.expose());
        shell.env("PAPERTAPE_TOKENS", tokens(started).join(","));
        if let (Some(admin), Some(token)) = (started.admin, &started.admin_token) {
            shell.env("PAPERTAPE_ADMIN_URL", format!("http://{admin}")).env("PAPERTAPE_ADMIN_TOKEN", token.expose());
        }
        let child = shell.spawn().map_err(|error| format!("sh cannot be started: {error}"))?;
        moments.watch(child.id());
        Ok(Bot(child))
    }

    fn ended(&mut self) -> Result<Option<ExitStatus>, Failure> {
        Ok(self.0.try_wait()?)
    }

    fn ends_within(&mut self, time: Duration) -> Result<Option<ExitStatus>, Failure> {
        let begun = Instant::now();
        loop {
            let ended = self.ended()?;
            if ended.is_some() || begun.elapsed() >= time {
                return Ok(ended);
            }
            thread::sleep(LOOK_EVERY);
        }
    }

    /// The recording is over: waits until the bot has seen that, then ends it.
    fn leave(&mut self) -> Result<Option<ExitStatus>, Failure> {
        if let Some(exit) = self.ends_within(LEAVES_WITHIN)? {
            tracing::info!(%exit, "the bot ended after the recording");
            return Ok(of_a_refused(exit));
        }
        self.signal(Signal::TERM);
        if self.ends_within(TERMINATES_WITHIN)?.is_none() {
            self.signal(Signal::KILL);
            self.0.wait()?;
        }
        Ok(None)
    }

    /// To the command and to what it started.
    fn signal(&self, signal: Signal) {
        if let Some(group) = i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
            // They may have ended.
            let _ = kill_process_group(group, signal);
        }
    }
}

/// How a command ended whose requests were refused at the end. A failure then says nothing about the run.
fn of_a_refused(exit: ExitStatus) -> Option<ExitStatus> {
    Some(exit).filter(ExitStatus::success)
}

impl Drop for Bot {
    fn drop(&mut self) {
        // Without this, what the command started would outlive the run.
        self.signal(Signal::KILL);
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_after_the_recording_counts_if_it_is_good() {
        use std::os::unix::process::ExitStatusExt as _;
        // As wait(2) has them: a code in the second byte, a signal in the first.
        let rows = [(0, Some("exit status: 0")), (1 << 8, None), (130 << 8, None), (9, None)];
        for (raw, expected) in rows {
            let shown = of_a_refused(ExitStatus::from_raw(raw)).map(|exit| exit.to_string());
            assert_eq!(shown.as_deref(), expected, "{raw}");
        }
        println!("ends after the recording: {} cases", rows.len());
    }

    #[test]
    fn settings_are_given_by_name() {
        let rows = [
            ("flags.match_interval_ms=500", Some(("flags.match_interval_ms", "500"))),
            ("limits.meter_loopback=a=b", Some(("limits.meter_loopback", "a=b"))),
            ("book.stale_after_s=", Some(("book.stale_after_s", ""))),
            ("flags.match_interval_ms", None),
            ("", None),
            ("venue.speed=1", None),
            ("venue.kind=synthetic", None),
            ("data.dir=x", None),
            ("server.listen=0.0.0.0:80", None),
            ("admin.listen=127.0.0.1:1", None),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
            assert_eq!(setting(text).ok(), expected, "{text:?}");
        }
        println!("settings of a back-test: {} cases", rows.len());
    }
}
