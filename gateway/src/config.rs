//! The configuration: TOML file < environment (`PAPERTAPE_SECTION_KEY`) < command line, read once.
//!
//! The table of settings (`table/`) has a row for each key. `source` reads the rows from the layers; `read` copies the
//! values into [`Config`]. An unknown key and a value out of its range are errors that name the key and the allowed
//! values. No other part of the program reads environment variables. [`Config::lines`] shows every value with its
//! origin, except secrets.

mod compat;
mod local;
mod read;
mod realism;
mod reference;
mod secret;
mod setting;
mod source;
mod table;
mod venue;

pub use edge::settings::{
    Access, Accounts, Allowance, Allowances, Auth, Brand, Compat, Export, Flags, Http, Keys, Limits, Local, Network,
    OrderEvents, Profile, Rehearsal, Rehearse, SUBSCRIPTIONS_MAX, Streams, TIERS, TierLimits,
};
pub use host::secret::Secret;
pub use reference::markdown;
use secret::Kept;
pub use setting::Setting;
use setting::Word;
pub use source::ConfigError;
pub use table::settings;

use ::billing::Price;
use ::integrations::settings::MailBy;
use ::venue::replay::Speed;
use ::venue::{VenueConfig, VenueKind};
use engine::amount::{Bps, Qty};
use engine::rules::{FeeTable, RolloutFlags, Rules};
use engine::time::{MILLISECOND, SECOND};
pub use journal::commit::Durability;
use journal::commit::LogSize;
use journal::mover::Window;
use source::{DEFAULT, Source};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wal::Point;

/// Files of the data directory with secrets that a server creates itself.
const SERVER_SECRET: &str = "server_secret";
const JWT_SECRET: &str = "jwt_secret";
const ADMIN_TOKEN: &str = "admin_token";
/// The default data directory.
const DATA_DIR: &str = "papertape-data";

/// All settings.
#[derive(Clone, Debug)]
pub struct Config {
    pub server: Server,
    pub clock: ClockSettings,
    pub log: Log,
    pub admin: Admin,
    pub http: Http,
    pub data: DirectorySettings,
    pub journal: Journal,
    pub archive: Archive,
    pub history: HistorySettings,
    pub venue: VenueConfig,
    pub compat: Compat,
    /// `None`: other machines can reach the listener.
    pub local: Option<Local>,
    pub brand: Brand,
    pub auth: Auth,
    pub engine: Engine,
    pub limits: Limits,
    pub flags: Flags,
    pub keys: Keys,
    pub access: Access,
    pub book: Book,
    pub export: Export,
    pub streams: Streams,
    pub simulation: Simulation,
    pub published: Published,
    pub billing: Billing,
    pub email: Email,
    pub integrations: Integrations,
    /// Fees, rollout flags and bounds for the engine (`[fees]`, `[flags]`, `[keys]`).
    pub rules: Rules,
    /// The configuration file, if one was named.
    pub file: Option<PathBuf>,
    /// The commit that the program was built from, if known; not a setting.
    pub built_from: Option<&'static str>,
    /// `key = value (origin)`, one line per key.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Names with a dot that a listener on loopback accepts in `Host`; addresses and other names are always accepted.
    pub hosts: Vec<String>,
    /// How clients reach the server, without a slash at its end. Empty: as each request did, without TLS.
    pub public_url: String,
    /// Threads that own sockets; more than one only in the threaded layout.
    pub io_threads: usize,
    /// The thread that runs the core never sleeps: responses are faster, and one processor is always busy.
    pub busy_poll: bool,
    /// How long requests in flight may take to end when the server stops.
    pub drain: Duration,
    /// For tests, and only on loopback: the file holds the seconds by which server time is ahead of the wall clock.
    pub clock_ahead_file: Option<PathBuf>,
}

/// What a start does if its clock does not fit the journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSettings {
    /// How long nothing ends by time after such a start ([`host::leap`]); zero: no wait.
    pub leap_wait: Duration,
}

/// Log lines on standard error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Log {
    /// `None`: not set.
    pub level: Option<LogLevel>,
    pub format: LogFormat,
}

/// The least important lines that are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl LogLevel {
    const ALL: [LogLevel; 6] =
        [LogLevel::Off, LogLevel::Error, LogLevel::Warn, LogLevel::Info, LogLevel::Debug, LogLevel::Trace];

    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            LogLevel::Off => "off",
            LogLevel::Error => "error",
            LogLevel::Warn => "warn",
            LogLevel::Info => "info",
            LogLevel::Debug => "debug",
            LogLevel::Trace => "trace",
        }
    }
}

/// The format of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    Text,
    Json,
}

/// A listener for monitors and operators, apart from the server's own.
#[derive(Clone, Debug)]
pub struct Admin {
    /// `None`: there is none. Every client that reaches it can read the metrics.
    pub listen: Option<SocketAddr>,
    /// Other machines may reach it; only with a token file.
    pub remote: bool,
    /// A client that shows the content of this file may control the server. `None`: the server creates a token in the
    /// data directory.
    pub token_file: Option<PathBuf>,
    /// How long a backup waits for a peer that takes less than 1 MiB a second.
    pub slow_peer: Duration,
}

#[derive(Clone, Debug)]
pub struct DirectorySettings {
    pub dir: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Journal {
    pub durability: Durability,
    /// Length of a segment; a multiple of 4 096.
    pub segment_bytes: u64,
    /// Spare segments to keep ready.
    pub spares_count: u32,
    /// Free bytes of the disk that new segments do not take.
    pub reserve_bytes: u64,
    /// Sealed segments between two checkpoints.
    pub checkpoint_segments: u32,
    /// For crash tests: the process ends when it passes that crash point for the n-th time.
    pub crash_at: Option<(Point, u64)>,
}

/// Hours of recorded market data.
#[derive(Clone, Debug)]
pub struct Archive {
    pub dir: PathBuf,
    pub build: ArchiveBuild,
    /// How long after its end an hour is made.
    pub seal_after: Duration,
    /// Venues whose hours are written at the same time, at most.
    pub threads: usize,
    /// Memory for the sorting of rows, bytes.
    pub memory_bytes: u64,
    /// Days after which an hour is removed; 0: never.
    pub keep_days: u32,
    /// Days after which an hour of the recording is removed; 0: never.
    pub raw_keep_days: u32,
    /// Bytes of all hours; 0: no bound.
    pub bytes_max: u64,
    /// Memory for books and rows that were read, bytes.
    pub books_bytes: u64,
    /// Bytes of files that can be made again.
    pub cache_bytes: u64,
    /// Address to which the names of hours are appended; `None`: nothing is fetched.
    pub fetch_url: Option<String>,
    /// For crash tests: the process ends at that step; 0: it does not.
    pub crash_at: u64,
}

/// The store of what has ended.
#[derive(Clone, Debug)]
pub struct HistorySettings {
    /// Memory for what was read from it, bytes.
    pub cache_bytes: u64,
    /// How long ended rows stay in memory.
    pub window: Window,
    /// Memory for ended rows, bytes; at it placements are refused.
    pub hot_bytes_max: u64,
    /// Memory for filters over their names, bytes.
    pub filter_bytes: u64,
    /// Which of them are kept.
    pub keep: KeepSettings,
    /// Threads that read orders, fills and positions from it.
    pub readers: usize,
}

/// How long ended rows are kept on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KeepSettings {
    /// `None`: as long as there is room.
    pub days: Option<u32>,
    /// Bytes of all ended rows; `None`: as many as there is room for.
    pub bytes_max: Option<u64>,
    /// Days that are kept in spite of that: longer than client order ids count.
    pub days_least: u32,
}

impl KeepSettings {
    /// Days that are always kept, at least.
    const DAYS_LEAST: u32 = 4;
    /// The smallest bound of the bytes.
    const BYTES_LEAST: u64 = 64 << 20;

    /// 0 stands for no bound.
    fn of(days: u32, bytes_max: u64, client_ids_us: u64) -> KeepSettings {
        let ids_days = client_ids_us.div_ceil(engine::time::DAY) as u32 + 1;
        KeepSettings {
            days: (days != 0).then_some(days),
            bytes_max: (bytes_max != 0).then_some(bytes_max),
            days_least: ids_days.max(KeepSettings::DAYS_LEAST),
        }
    }
}

/// Whether a server makes hours of its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArchiveBuild {
    /// If it records.
    Auto,
    Off,
}

#[derive(Clone, Debug)]
pub struct Engine {
    pub shards: usize,
    /// Most memory that is made ahead of its use, all mappings together ([`journal::prefault`]), bytes; 0: none.
    pub prefault_bytes: usize,
}

/// Back-tests and exports of the archive.
#[derive(Clone, Debug)]
pub struct Simulation {
    /// Threads that run back-tests; 0: none is created.
    pub threads: usize,
    /// Memory of the rows of one back-test, in bytes.
    pub job_memory_bytes: u64,
    /// The folder of exports; `None`: this server makes none.
    pub export_dir: Option<PathBuf>,
    /// Bytes of an export at most.
    pub export_bytes_max: u64,
}

/// What is shown beside markets and accounts.
#[derive(Clone, Debug)]
pub struct Published {
    /// The folder of facts of football; `None`: there is no provider.
    pub football_dir: Option<PathBuf>,
    pub incidents_file: PathBuf,
}

/// Payments.
#[derive(Clone, Debug)]
pub struct Billing {
    pub provider: BillingProvider,
    /// Of calls to `stripe`.
    pub secret_key: Option<Secret>,
    /// Of the signatures of its events; all verify.
    pub webhook_secrets: Vec<Secret>,
    pub stripe_base_url: String,
    /// Plans that are sold.
    pub prices: Vec<Price>,
    /// Where users go after pages of the provider.
    pub success_url: String,
    pub cancel_url: String,
    pub return_url: String,
    /// Calls in flight at most.
    pub calls_max: usize,
    /// The refund policy.
    pub refund_days: u64,
    pub refund_text: String,
    pub refund_conditions: Vec<String>,
}

/// Who takes payments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillingProvider {
    None,
    /// For development: no one pays.
    Stub,
    Stripe,
}

/// How alerts go out by mail.
#[derive(Clone, Debug)]
pub struct Email {
    /// `None`: none does.
    pub by: Option<MailBy>,
    pub from: String,
    /// `None`: the mail server asks for none.
    pub user: Option<String>,
    pub password_file: Option<PathBuf>,
}

/// Alerts to chats and webhooks.
#[derive(Clone, Debug)]
pub struct Integrations {
    /// Name of the chat service in paths.
    pub chat_service: String,
    /// Hosts that chats may be on.
    pub chat_hosts: Vec<String>,
    /// Targets may have addresses that are not public.
    pub allow_private_targets: bool,
    /// The pause after the first failed attempt.
    pub first_retry: Duration,
    /// Longest attempt.
    pub timeout: Duration,
}

#[derive(Clone, Debug)]
pub struct Book {
    /// A book without news for longer is shown as stale.
    pub stale_after: Duration,
}

impl Config {
    /// Reads the file (if one is named), the environment of this process, and the flags (dotted keys).
    pub fn load(file: Option<&Path>, flags: impl IntoIterator<Item = (String, String)>) -> Result<Config, ConfigError> {
        let text = match file {
            Some(path) => Some(
                std::fs::read_to_string(path)
                    .map_err(|error| ConfigError(vec![format!("{}: {error}", path.display())]))?,
            ),
            None => None,
        };
        let name = file.map_or_else(String::new, |path| path.display().to_string());
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())));
        let config = Config::read(text.as_deref().map(|text| (name.as_str(), text)), env, flags)?;
        Ok(Config { file: file.map(Path::to_owned), ..config })
    }

    /// As [`Config::load`], from texts.
    pub fn read(
        file: Option<(&str, &str)>,
        env: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let mut source = Source::new(file, env, flags)?;
        let values = source.read(table::settings());
        let mut rules = read::rules(&values);
        match realism::sets(&values) {
            Ok(sets) => rules.realism = sets,
            Err(errors) => errors.into_iter().for_each(|error| source.wrong(error)),
        }
        if !rules.formats.is_newest() && &*rules.realism.chosen_by_default().name != "kind" {
            source.wrong("realism.default: allowed is kind while journal.write_formats = previous".into());
        }
        let config = Config {
            server: read::server(&values),
            clock: ClockSettings { leap_wait: values.seconds("clock.leap_wait_s") },
            log: read::log(&values),
            admin: read::admin(&values),
            http: read::http(&values),
            data: DirectorySettings { dir: values.text("data.dir").into() },
            journal: read::journal(&values),
            archive: read::archive(&values),
            history: HistorySettings {
                cache_bytes: values.number("history.cache_bytes"),
                window: Window {
                    hot_us: values.number::<u64>("history.hot_seconds") * SECOND,
                    rows_max: values.number("history.hot_rows_max"),
                    orders_max: values.number("history.hot_orders_max"),
                },
                hot_bytes_max: values.number("history.hot_bytes_max"),
                filter_bytes: values.number("history.filter_bytes"),
                keep: KeepSettings::of(
                    values.number("history.keep_days"),
                    values.number("history.disk_bytes_max"),
                    rules.client_ids_us,
                ),
                readers: values.number("history.readers"),
            },
            venue: venue::venue(&values, &rules),
            compat: compat::compat(&values),
            local: table::is_own_machine_only(&values).then(|| local::local(&values)),
            brand: read::brand(&values),
            auth: read::auth(&values),
            engine: read::engine(&values),
            limits: read::limits(&values),
            flags: read::flags(&values),
            keys: read::keys(&values, &rules),
            access: read::access(&values),
            book: Book { stale_after: values.seconds("book.stale_after_s") },
            export: Export { max_rows: values.number("export.max_rows") },
            streams: read::streams(&values),
            simulation: read::simulation(&values),
            published: read::published(&values),
            billing: read::billing(&values),
            email: read::email(&values),
            integrations: read::integrations(&values),
            rules,
            built_from: None,
            file: None,
            lines: Vec::new(),
        };
        if config.server.io_threads > 1 && config.engine.shards == 1 {
            source.wrong("server.io_threads: allowed is 1 while engine.shards is 1".into());
        }
        if let Some(admin) = config.admin.listen
            && admin.port() != 0
            && admin.port() == config.server.listen.port()
        {
            source.wrong(format!("admin.listen: allowed is another port than {}, that of server.listen", admin.port()));
        }
        if config.admin.listen.is_some_and(|listen| !listen.ip().is_loopback())
            && !(config.admin.remote && config.admin.token_file.is_some())
        {
            source.wrong(
                "admin.listen: allowed is an address that others reach only with admin.remote = true and an \
                 admin.token_file"
                    .into(),
            );
        }
        if config.server.clock_ahead_file.is_some() && !config.server.listen.ip().is_loopback() {
            source.wrong("server.clock_ahead_file: for tests, and allowed only where server.listen is loopback".into());
        }
        let Billing { provider, secret_key, webhook_secrets, success_url, cancel_url, return_url, .. } =
            &config.billing;
        for (is_set, key) in [
            (secret_key.is_some(), "billing.secret_key"),
            (!webhook_secrets.is_empty(), "billing.webhook_secrets"),
            (!success_url.is_empty(), "billing.success_url"),
            (!cancel_url.is_empty(), "billing.cancel_url"),
            (!return_url.is_empty(), "billing.return_url"),
        ] {
            if *provider == BillingProvider::Stripe && !is_set {
                source.wrong(format!("{key}: must be set while billing.provider = stripe"));
            }
        }
        let KeepSettings { days, bytes_max, days_least } = config.history.keep;
        if days.is_some_and(|days| days < days_least) {
            source.wrong(format!(
                "history.keep_days: allowed is 0, or {days_least} and more: longer than limits.client_ids_hours"
            ));
        }
        if bytes_max.is_some_and(|bytes| bytes < KeepSettings::BYTES_LEAST) {
            source.wrong(format!("history.disk_bytes_max: allowed is 0, or {} and more", KeepSettings::BYTES_LEAST));
        }
        if !config.log_size().is_enough() {
            source.wrong(
                "journal.segment_bytes: too small for this number of engine.shards; raise it or journal.spares_count"
                    .into(),
            );
        }
        Ok(Config { lines: source.finish()?, ..config })
    }

    /// The commit for output.
    pub fn git_sha(&self) -> &'static str {
        self.built_from.unwrap_or("unknown")
    }

    /// The settings of the edge.
    pub fn edge(&self) -> edge::settings::Settings {
        edge::settings::Settings {
            server: edge::settings::Server {
                listen: self.server.listen,
                hosts: self.server.hosts.clone(),
                public_url: self.server.public_url.clone(),
                drain: self.server.drain,
            },
            http: self.http.clone(),
            data_dir: self.data.dir.clone(),
            compat: self.compat.clone(),
            local: self.local,
            brand: self.brand.clone(),
            auth: self.auth.clone(),
            limits: self.limits.clone(),
            flags: self.flags.clone(),
            keys: self.keys.clone(),
            access: self.access.clone(),
            export: self.export.clone(),
            streams: self.streams.clone(),
            billing: edge::settings::Billing {
                is_on: self.billing.provider != BillingProvider::None,
                is_stub: self.billing.provider == BillingProvider::Stub,
                refund_days: self.billing.refund_days,
                refund_text: self.billing.refund_text.clone(),
                refund_conditions: self.billing.refund_conditions.clone(),
            },
            chat_service: self.integrations.chat_service.clone(),
            built_from: self.built_from,
        }
    }

    /// The log that the configured shards write to.
    pub fn log_size(&self) -> LogSize {
        LogSize::of(self.journal.segment_bytes, self.journal.spares_count, self.engine.shards)
    }

    /// The settings that differ from their defaults, as in [`Config::lines`].
    pub fn chosen(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().map(String::as_str).filter(|line| !line.ends_with(&format!("({DEFAULT})")))
    }

    /// Checks whether a server may start with this: settings of a replay must be at their defaults for other venues.
    ///
    /// # Errors
    /// Each such setting, with its origin.
    pub fn check_of_a_start(&self) -> Result<(), ConfigError> {
        let VenueConfig { kind, speed, follow, ref archive, .. } = self.venue;
        let of_a_replay = [
            ("venue.speed", speed != Speed::RECORDED),
            ("venue.follow", follow),
            ("venue.markets", !archive.markets.as_os_str().is_empty()),
            ("venue.from", archive.from.is_some()),
            ("venue.to", archive.to.is_some()),
        ];
        let wrong =
            of_a_replay.into_iter().filter(|(_, is_set)| *is_set && kind != VenueKind::Replay).map(|(key, _)| {
                let line =
                    self.lines.iter().find(|line| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(" = ")));
                let origin =
                    line.and_then(|line| line.rsplit_once(" (")).map_or("", |(_, origin)| origin.trim_end_matches(')'));
                format!("{key} ({origin}): only a replay takes it; name a recording with --tape PATH")
            });
        let wrong: Vec<String> = wrong.collect();
        if wrong.is_empty() { Ok(()) } else { Err(ConfigError(wrong)) }
    }

    /// All settings at their defaults: the configuration of a first start.
    pub fn defaults() -> Config {
        Config::read(None, [], []).expect("the defaults are in their ranges")
    }

    /// Reads the secrets that are kept in the data directory, or creates them (mode 0600): the server's own, and the
    /// JWT secret if none is configured. The directory must exist and be locked by this process.
    pub fn complete_secrets(&mut self) -> std::io::Result<()> {
        self.auth.server_secret = secret::kept(&self.data.dir.join(SERVER_SECRET))?;
        if self.auth.jwt_secrets.is_empty() {
            self.auth.jwt_secrets.push(secret::kept(&self.kept_jwt_secret())?);
        }
        Ok(())
    }

    /// As [`Config::complete_secrets`], for a start: returns a line for each secret that differs from that of the last
    /// start, with the consequences. `has_records`: the log is not new, so the server's own secret must exist.
    ///
    /// # Errors
    /// As [`Config::complete_secrets`].
    pub fn complete_secrets_of_a_start(&mut self, has_records: bool) -> std::io::Result<Vec<String>> {
        let mut changes = Vec::new();
        let mut take = |path: &Path, is_expected, meaning: &str| {
            let (secret, became) = secret::watched(path, is_expected)?;
            let what = match became {
                Kept::Same => None,
                Kept::Missing => Some("was missing, and a new one was created"),
                Kept::Changed => Some("is not the one of the last start"),
            };
            changes.extend(what.map(|what| format!("{}: {what}: {meaning}", path.display())));
            std::io::Result::Ok(secret)
        };
        self.auth.server_secret = take(
            &self.data.dir.join(SERVER_SECRET),
            has_records,
            "order ids in hex from before are unknown now, and addresses that log in get other keys",
        )?;
        if self.auth.jwt_secrets.is_empty() {
            let meaning = "identity tokens signed before are refused";
            let secret = take(&self.data.dir.join(JWT_SECRET), false, meaning)?;
            self.auth.jwt_secrets.push(secret);
        }
        Ok(changes)
    }

    /// Names of the kept secrets that this configuration takes from the directory; the admin token also without an
    /// admin listener, so that the checks of a directory do not depend on it.
    pub fn kept_secrets(&self) -> Vec<&'static str> {
        let is_kept = |name: &&str| match *name {
            JWT_SECRET => self.auth.jwt_secrets.is_empty(),
            ADMIN_TOKEN => self.admin.token_file.is_none(),
            _ => true,
        };
        SECRETS.into_iter().filter(is_kept).collect()
    }

    /// The token of the admin listener: the content of the configured file, which must exist, or of one in the data
    /// directory, which is created (mode 0600). The directory must exist and be locked by this process.
    ///
    /// # Errors
    /// The system's, and a file without a token of at least 32 printable characters; with its path.
    pub fn admin_token(&self) -> std::io::Result<Secret> {
        match &self.admin.token_file {
            Some(path) => secret::given(path),
            None => secret::kept(&self.kept_admin_token()),
        }
    }

    /// The file of the admin token if none is configured.
    pub fn kept_admin_token(&self) -> PathBuf {
        self.data.dir.join(ADMIN_TOKEN)
    }

    /// The file of the secret that signs identity tokens if none is configured.
    pub fn kept_jwt_secret(&self) -> PathBuf {
        self.data.dir.join(JWT_SECRET)
    }
}

/// Secrets that a data directory keeps for a start without configured ones.
pub const SECRETS: [&str; 3] = [SERVER_SECRET, JWT_SECRET, ADMIN_TOKEN];

/// Checks whether a start could use the secret that is kept in that file; a missing file is not an error.
///
/// # Errors
/// The system's, and a file without a secret; with its path.
pub fn look_at_kept_secret(path: &Path) -> std::io::Result<()> {
    secret::look(path)
}

#[cfg(test)]
mod tests;
