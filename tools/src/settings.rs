//! Command-line options that are settings: the last layer of the configuration.

use crate::Failure;
use gateway::config::{Config, Log, LogFormat, LogLevel};
use host::output;
use std::io::{IsTerminal, Write};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use tracing_subscriber::EnvFilter;

/// Options that several verbs share.
#[derive(clap::Args)]
pub struct Settings {
    /// Configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Data directory with the log.
    #[arg(long, value_name = "DIR")]
    data_dir: Option<String>,
}

impl Settings {
    /// File, environment, and these options over them; `more` are the verb's own options.
    pub fn load(&self, more: Vec<(&'static str, Option<String>)>) -> Result<Config, Failure> {
        let mut flags = vec![("data.dir", self.data_dir.clone())];
        flags.extend(more);
        let flags = flags.into_iter().filter_map(|(key, value)| value.map(|value| (key.to_owned(), value)));
        Ok(Config::load(self.config.as_deref(), flags)?)
    }
}

/// Logs events to standard error from now on: text for people, JSON lines for collectors. The settings select the
/// level, else `RUST_LOG`. A blocked stream loses lines, which are counted, and delays nothing.
///
/// # Errors
/// A system error, when the log's thread cannot be started.
pub fn log_events(log: Log) -> std::io::Result<()> {
    let filter = filter(log.level);
    let is_text = match log.format {
        LogFormat::Auto => std::io::stderr().is_terminal(),
        LogFormat::Text => true,
        LogFormat::Json => false,
    };
    let lines = output::log_lines()?;
    output::log_panics();
    let log = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    let log = log.with_writer(move || lines.clone());
    if is_text {
        log.init();
    } else {
        log.json().init();
    }
    Ok(())
}

/// The packages that log below `info`.
const OWN: [&str; 16] = [
    "papertape",
    "tools",
    "gateway",
    "simulation",
    "football",
    "billing",
    "integrations",
    "edge",
    "archive",
    "venue",
    "journal",
    "history",
    "host",
    "wire",
    "engine",
    "wal",
];

/// The engine of the history store: it logs each step of a start.
const QUIET: &str = "fjall=warn,lsm_tree=warn";

/// The filter of a log level. Below `info` only the project's own packages log, since libraries log bytes of messages
/// there.
fn filter(level: Option<LogLevel>) -> EnvFilter {
    match level {
        None => EnvFilter::try_from_default_env()
            .unwrap_or_else(|_| EnvFilter::new(format!("{},{QUIET}", LogLevel::Info.name()))),
        Some(level @ (LogLevel::Debug | LogLevel::Trace)) => {
            let own = OWN.map(|name| format!(",{name}={}", level.name()));
            EnvFilter::new(format!("{},{QUIET}{}", LogLevel::Info.name(), own.concat()))
        }
        Some(LogLevel::Info) => EnvFilter::new(format!("{},{QUIET}", LogLevel::Info.name())),
        Some(level) => EnvFilter::new(level.name()),
    }
}

/// A data directory as an argument.
#[derive(clap::Args)]
pub struct DirectoryArgument {
    /// The data directory.
    dir: PathBuf,
}

impl DirectoryArgument {
    pub fn path(&self) -> &Path {
        &self.dir
    }
}

/// Parses an option that is an integer of that range.
pub fn integer(range: RangeInclusive<u64>) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| {
        let read = text.parse().ok().filter(|number| range.contains(number));
        read.ok_or_else(|| format!("allowed is an integer from {} to {}", range.start(), range.end()))
    }
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Prints a line. A closed pipe is not a failure: the reader wants no more.
pub fn print_line(line: impl std::fmt::Display) {
    let _ = writeln!(std::io::stdout(), "{line}");
}
