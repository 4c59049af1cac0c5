//! The configuration: TOML file < environment (`PAPERTAPE_SECTION_KEY`) < command line, read once.
//!
//! An unknown key and a value out of its range are errors that name the key and what is allowed. Nobody else reads
//! environment variables. [`Config::lines`] shows every value and where it came from, secrets left out.

mod source;

pub use source::{ConfigError, Secret};

use crate::venue::replay::Speed;
use crate::venue::{VenueConfig, VenueKind};
use engine::amount::{Bps, Qty};
use engine::market::terms::Category;
use engine::rules::{FeeTable, RolloutFlags, Rules};
use engine::time::{MILLISECOND, Timestamp};
use engine::user::Tier;
use source::Source;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that can be set.
#[derive(Clone, Debug)]
pub struct Config {
    pub server: Server,
    pub http: Http,
    pub data: DataDir,
    pub journal: Journal,
    pub venue: VenueConfig,
    pub brand: Brand,
    pub auth: Auth,
    pub engine: Engine,
    pub limits: Limits,
    pub flags: Flags,
    pub keys: Keys,
    pub access: Access,
    pub book: Book,
    /// Fees, rollout flags and bounds as the engine takes them (`[fees]`, `[flags]`, `[keys]`).
    pub rules: Rules,
    /// Category names of venues beside our own (`[fees.category_map]`), lower case.
    pub category_map: Vec<(String, Category)>,
    /// `key = value (origin)`, one line per key.
    pub lines: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Threads that own sockets; more than one only in the threaded layout.
    pub io_threads: usize,
    /// How long requests in flight may take to end when the server stops.
    pub drain: Duration,
}

/// Bounds of the edge (reliability 35, 36).
#[derive(Clone, Debug)]
pub struct Http {
    pub body_bytes_max: usize,
    pub connections_max: usize,
    pub connections_per_address_max: usize,
    /// From the first byte of a head to its last.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    /// A connection without a request.
    pub idle_timeout: Duration,
    /// A whole request, from its head to the start of its answer.
    pub request_timeout: Duration,
    /// A peer that does not read what it is sent.
    pub write_timeout: Duration,
    pub trusted_proxies: Vec<Network>,
    /// `*` alone: everybody.
    pub cors_origins: Vec<String>,
    pub upgrade_url: String,
}

#[derive(Clone, Debug)]
pub struct DataDir {
    pub dir: PathBuf,
}

#[derive(Clone, Debug)]
pub struct Journal {
    pub durability: Durability,
    /// Length of a segment; a multiple of 4 096.
    pub segment_bytes: u64,
    /// Prepared segments kept ready.
    pub spares_count: u32,
    /// Bytes of the disk that new segments leave alone.
    pub reserve_bytes: u64,
    /// Sealed segments between two checkpoints.
    pub checkpoint_segments: u32,
}

/// What an acknowledgement promises (house rules, the log).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Survives any death of the process.
    Process,
    /// Survives power loss too.
    Power,
}

#[derive(Clone, Debug)]
pub struct Brand {
    pub key_prefix: String,
    /// `live` or `test`.
    pub key_env: String,
    pub header_prefix: String,
    pub key_header_aliases: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct Auth {
    /// The first one signs; all verify. Empty until [`Config::complete_secrets`].
    pub jwt_secrets: Vec<Secret>,
}

#[derive(Clone, Debug)]
pub struct Engine {
    pub shards: usize,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub public_ip_per_second: u32,
    pub public_ip_per_minute: u32,
    pub bootstrap_per_minute: u32,
    pub bootstrap_per_hour: u32,
    pub placements_per_user: u32,
    pub placements_per_server: u32,
    pub meter_loopback: bool,
    /// In the order of [`TIERS`].
    pub tiers: [TierLimits; 4],
}

/// What a tier may do (wire.md §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierLimits {
    pub requests_per_second: u32,
    pub requests_per_minute: u32,
    pub max_ws_connections: u32,
    pub max_batch_size: u32,
    pub in_flight: u32,
}

/// All tiers, ascending, with the names of the wire.
pub const TIERS: [(Tier, &str); 4] =
    [(Tier::Free, "free"), (Tier::Pro, "pro"), (Tier::ProPlus, "pro_plus"), (Tier::Enterprise, "enterprise")];

/// Server flags that are no rules of the engine: route gates, listing, issuance.
#[derive(Clone, Debug)]
pub struct Flags {
    pub high_freq_updown_enabled: bool,
    pub chart_archive_read_enabled: bool,
    pub feature_simulation_api_enabled: bool,
    pub closed_beta_mode: bool,
    pub paid_keys_enabled: bool,
    pub allowlist_enabled: bool,
    /// Active beta users; 0 = no cap.
    pub cohort_cap: u64,
}

#[derive(Clone, Debug)]
pub struct Keys {
    pub free_trade_since: Timestamp,
    pub beta_until: Option<Timestamp>,
}

/// Accounts by JWT `sub` or user id; keys by id.
#[derive(Clone, Debug)]
pub struct Access {
    pub allowlist: Vec<String>,
    pub flagged: Vec<String>,
    pub disabled_keys: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Book {
    /// A book not heard of for longer is shown as stale.
    pub stale_after: Duration,
}

/// An address or a network in CIDR form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    pub fn parse(text: &str) -> Option<Network> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().ok()?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        Some(Network { address, bits: bits.unwrap_or(width) }).filter(|network| network.bits <= width)
    }

    pub fn contains(&self, address: IpAddr) -> bool {
        let same = |ours: u128, theirs: u128, width: u8| {
            let dropped = u32::from(width - self.bits);
            dropped >= 128 || ours >> dropped == theirs >> dropped
        };
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(ours), IpAddr::V4(theirs)) => same(ours.to_bits().into(), theirs.to_bits().into(), 32),
            (IpAddr::V6(ours), IpAddr::V6(theirs)) => same(ours.to_bits(), theirs.to_bits(), 128),
            _ => false,
        }
    }

    fn show(&self) -> String {
        format!("{}/{}", self.address, self.bits)
    }
}

impl Limits {
    pub fn tier(&self, tier: Tier) -> &TierLimits {
        &self.tiers[tier as usize]
    }
}

impl Config {
    /// Reads the file (when one is named), this process's environment, and the flags (dotted keys).
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
        Config::read(text.as_deref().map(|text| (name.as_str(), text)), env, flags)
    }

    /// As [`Config::load`], from texts.
    pub fn read(
        file: Option<(&str, &str)>,
        env: impl IntoIterator<Item = (String, String)>,
        flags: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Config, ConfigError> {
        let mut source = Source::new(file, env, flags)?;
        let keys = read_keys(&mut source);
        let mut rules =
            Rules { free_trade_since: keys.free_trade_since, beta_until: keys.beta_until, ..Rules::default() };
        rules.fees = read_fees(&mut source);
        read_rule_flags(&mut source, &mut rules);
        let config = Config {
            server: read_server(&mut source),
            http: read_http(&mut source),
            data: DataDir { dir: read_path(&mut source, "data.dir").unwrap_or_else(|| "papertape-data".into()) },
            journal: read_journal(&mut source),
            venue: read_venue(&mut source),
            brand: read_brand(&mut source),
            auth: Auth { jwt_secrets: source.secrets("auth.jwt_secret") },
            engine: Engine { shards: source.integer("engine.shards", default_shards(), 1..=64) as usize },
            limits: read_limits(&mut source),
            flags: read_flags(&mut source),
            keys,
            access: read_access(&mut source),
            book: Book { stale_after: Duration::from_secs(source.integer("book.stale_after_s", 30, 1..=3_600)) },
            rules,
            category_map: read_category_map(&mut source),
            lines: Vec::new(),
        };
        Ok(Config { lines: source.finish()?, ..config })
    }

    /// Everything at its default: the configuration of a first start.
    pub fn defaults() -> Config {
        Config::read(None, [], []).expect("the defaults lie in their ranges")
    }

    /// Without a configured JWT secret: takes the one kept in the data directory, or makes it (mode 0600). The
    /// directory must exist and be locked by this process.
    pub fn complete_secrets(&mut self) -> std::io::Result<()> {
        if self.auth.jwt_secrets.is_empty() {
            self.auth.jwt_secrets.push(kept_secret(&self.data.dir.join("jwt_secret"))?);
        }
        Ok(())
    }
}

/// The secret in that file; a new one of 64 hex digits when there is no such file.
fn kept_secret(path: &Path) -> std::io::Result<Secret> {
    let too_short = || std::io::Error::other(format!("{}: holds no secret of at least 32 bytes", path.display()));
    let open = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    match open {
        Ok(mut file) => {
            let mut random = [0u8; 32];
            getrandom::fill(&mut random).map_err(std::io::Error::other)?;
            let text: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            Ok(Secret::new(text))
        }
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            let mut text = String::new();
            std::fs::File::open(path)?.take(4_096).read_to_string(&mut text)?;
            let text = text.trim_end().to_owned();
            if text.len() < 32 { Err(too_short()) } else { Ok(Secret::new(text)) }
        }
        Err(error) => Err(error),
    }
}

/// One shard up to four cores, then half the cores.
fn default_shards() -> u64 {
    let cores = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    if cores <= 4 { 1 } else { (cores / 2).min(64) }
}

fn read_path(source: &mut Source, key: &str) -> Option<PathBuf> {
    let default = if key == "data.dir" { "papertape-data" } else { "" };
    let text = source.text(key, default, "a path", |_| true);
    (!text.is_empty()).then(|| text.into())
}

fn millis(source: &mut Source, key: &str, default: u64, range: std::ops::RangeInclusive<u64>) -> Duration {
    Duration::from_millis(source.integer(key, default, range))
}

fn read_server(source: &mut Source) -> Server {
    let listen = SocketAddr::from(([127, 0, 0, 1], 8_080));
    Server {
        listen: source.parsed(
            "server.listen",
            listen,
            "an address with a port, like 127.0.0.1:8080",
            |text| text.parse().ok(),
            SocketAddr::to_string,
        ),
        io_threads: source.integer("server.io_threads", 1, 1..=64) as usize,
        drain: millis(source, "server.drain_ms", 10_000, 0..=600_000),
    }
}

fn read_http(source: &mut Source) -> Http {
    Http {
        body_bytes_max: source.integer("http.body_bytes_max", 1 << 20, 1_024..=64 << 20) as usize,
        connections_max: source.integer("http.connections_max", 10_000, 1..=1_000_000) as usize,
        connections_per_address_max: source.integer("http.connections_per_address_max", 1_000, 1..=1_000_000) as usize,
        header_timeout: millis(source, "http.header_timeout_ms", 5_000, 10..=5_000),
        body_timeout: millis(source, "http.body_timeout_ms", 10_000, 10..=10_000),
        idle_timeout: millis(source, "http.idle_timeout_ms", 75_000, 10..=3_600_000),
        request_timeout: millis(source, "http.request_timeout_ms", 30_000, 100..=600_000),
        write_timeout: millis(source, "http.write_timeout_ms", 30_000, 10..=600_000),
        trusted_proxies: source.list(
            "http.trusted_proxies",
            Vec::new(),
            "a list of addresses and CIDR networks",
            Network::parse,
            Network::show,
        ),
        cors_origins: source.list(
            "http.cors_origins",
            vec!["*".to_owned()],
            "[\"*\"] or a list of origins like https://example.net",
            |text| {
                let sound = text == "*" || (text.contains("://") && !text.ends_with('/') && text.is_ascii());
                sound.then(|| text.to_owned())
            },
            String::clone,
        ),
        upgrade_url: source.text("http.upgrade_url", "/pricing", "a text without control characters", printable),
    }
}

fn read_journal(source: &mut Source) -> Journal {
    let parse = |text: &str| match text {
        "process" => Some(Durability::Process),
        "power" => Some(Durability::Power),
        _ => None,
    };
    let show = |durability: &Durability| format!("{durability:?}").to_lowercase();
    Journal {
        durability: source.parsed("journal.durability", Durability::Process, "process or power", parse, show),
        segment_bytes: source.parsed(
            "journal.segment_bytes",
            64 << 20,
            "a multiple of 4096 from 1048576 to 1073741824",
            |text| {
                text.parse()
                    .ok()
                    .filter(|bytes: &u64| (1 << 20..=1 << 30).contains(bytes) && bytes.is_multiple_of(4_096))
            },
            u64::to_string,
        ),
        // One spare of the smallest length would hold the longest record, and no reserve beside it.
        spares_count: source.integer("journal.spares_count", 2, 2..=8) as u32,
        reserve_bytes: source.integer("journal.reserve_bytes", 256 << 20, 0..=1 << 50),
        checkpoint_segments: source.integer("journal.checkpoint_segments", 4, 1..=1_000) as u32,
    }
}

fn read_venue(source: &mut Source) -> VenueConfig {
    let kind = source.parsed(
        "venue.kind",
        VenueKind::Synthetic,
        "synthetic or replay",
        |text| match text {
            "synthetic" => Some(VenueKind::Synthetic),
            "replay" => Some(VenueKind::Replay),
            _ => None,
        },
        |kind| format!("{kind:?}").to_lowercase(),
    );
    VenueConfig {
        kind,
        seed: source.integer("venue.seed", 1, 0..=u64::MAX),
        tape: read_path(source, "venue.tape").unwrap_or_default(),
        speed: source.parsed(
            "venue.speed",
            Speed::RECORDED,
            "a number from 0.001 to 1000000 with at most three decimals, or max",
            |text| text.parse().ok(),
            Speed::to_string,
        ),
        follow: source.boolean("venue.follow", false),
    }
}

fn read_brand(source: &mut Source) -> Brand {
    let word = |text: &str| {
        (1..=16).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    };
    let token = |text: &str| {
        !text.is_empty() && text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    Brand {
        key_prefix: source.text("brand.key_prefix", "svc", "1 to 16 lower-case letters and digits", word),
        key_env: source.text("brand.key_env", "live", "live or test", |text| matches!(text, "live" | "test")),
        header_prefix: source.text("brand.header_prefix", "X-Svc", "letters, digits and -, at most 64", token),
        key_header_aliases: source.list(
            "brand.key_header_aliases",
            ["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"].map(str::to_owned).to_vec(),
            "a list of header names",
            |text| token(text).then(|| text.to_owned()),
            String::clone,
        ),
    }
}

fn read_limits(source: &mut Source) -> Limits {
    let mut one = |key: &str, default: u64| source.integer(&format!("limits.{key}"), default, 1..=1_000_000) as u32;
    let mut limits = Limits {
        public_ip_per_second: one("public_ip_per_second", 2),
        public_ip_per_minute: one("public_ip_per_minute", 120),
        bootstrap_per_minute: one("bootstrap_per_minute", 1),
        bootstrap_per_hour: one("bootstrap_per_hour", 5),
        placements_per_user: one("placements_per_user", 8),
        placements_per_server: one("placements_per_server", 512),
        meter_loopback: false,
        tiers: DEFAULT_TIERS,
    };
    for ((_, name), tier) in TIERS.iter().zip(&mut limits.tiers) {
        let mut one = |field: &str, default: u32| one(&format!("tiers.{name}.{field}"), default.into());
        *tier = TierLimits {
            requests_per_second: one("requests_per_second", tier.requests_per_second),
            requests_per_minute: one("requests_per_minute", tier.requests_per_minute),
            max_ws_connections: one("max_ws_connections", tier.max_ws_connections),
            max_batch_size: one("max_batch_size", tier.max_batch_size),
            in_flight: one("in_flight", tier.in_flight),
        };
    }
    limits.meter_loopback = source.boolean("limits.meter_loopback", false);
    limits
}

const DEFAULT_TIERS: [TierLimits; 4] = {
    const fn tier(second: u32, minute: u32, ws: u32, batch: u32, in_flight: u32) -> TierLimits {
        TierLimits {
            requests_per_second: second,
            requests_per_minute: minute,
            max_ws_connections: ws,
            max_batch_size: batch,
            in_flight,
        }
    }
    [tier(2, 120, 1, 1, 10), tier(10, 600, 3, 5, 25), tier(30, 1_800, 10, 10, 50), tier(100, 6_000, 50, 25, 100)]
};

fn read_flags(source: &mut Source) -> Flags {
    Flags {
        high_freq_updown_enabled: source.boolean("flags.high_freq_updown_enabled", false),
        chart_archive_read_enabled: source.boolean("flags.chart_archive_read_enabled", false),
        feature_simulation_api_enabled: source.boolean("flags.feature_simulation_api_enabled", false),
        closed_beta_mode: source.boolean("flags.closed_beta_mode", false),
        paid_keys_enabled: source.boolean("flags.paid_keys_enabled", true),
        allowlist_enabled: source.boolean("flags.allowlist_enabled", false),
        cohort_cap: source.integer("flags.cohort_cap", 0, 0..=1_000_000_000),
    }
}

/// The flags of execution.md §1 that are rules of the engine.
fn read_rule_flags(source: &mut Source, rules: &mut Rules) {
    let umbrella = source.boolean("flags.order_semantics_v2_enabled", true);
    let mut switch = |name: &str| source.switch(&format!("flags.{name}"), umbrella);
    rules.flags = RolloutFlags {
        fak_partial_fills: switch("fak_partial_fills"),
        fok_depth_aware: switch("fok_depth_aware"),
        gtd_auto_expiry: switch("gtd_auto_expiry"),
        post_only_enforced: switch("post_only_enforced"),
        min_order_size_enforced: switch("min_order_size_enforced"),
        book_impact_depletion: switch("book_impact_depletion"),
        maker_fill_at_limit: switch("maker_fill_at_limit"),
    };
    rules.depletion_covers_market_orders = source.parsed(
        "flags.depletion_scope",
        true,
        "all or limit_only",
        |text| match text {
            "all" => Some(true),
            "limit_only" => Some(false),
            _ => None,
        },
        |all| if *all { "all".to_owned() } else { "limit_only".to_owned() },
    );
    rules.require_book_depth = source.boolean("flags.trade_require_book_depth", true);
    rules.quote_age_max_us = source.integer("flags.trade_quote_max_age_ms", 60_000, 1..=86_400_000) * MILLISECOND;
    rules.quote_age_enforced = source.boolean("flags.trade_quote_max_age_enforce", true);
    rules.emergency_exit = source.boolean("flags.emergency_exit_enabled", true);
    rules.fok_shortfall = Qty::from_shares(source.integer("flags.fok_shortfall_tolerance_shares", 0, 0..=1_000));
    rules.sync_gtc_match = source.boolean("flags.sync_gtc_match", true);
    rules.warn_slippage_bps = source.integer("flags.warn_slippage_bps", 500, 0..=1_000_000) as u32;
    rules.match_interval_us = source.integer("flags.match_interval_ms", 1_000, 10..=60_000) * MILLISECOND;
    rules.max_shares_per_order =
        Qty::from_shares(source.integer("flags.max_shares_per_order", 1_000_000, 1..=1_000_000_000));
}

fn read_fees(source: &mut Source) -> FeeTable {
    let mut fees = FeeTable::default();
    for category in Category::ALL {
        let name = category.name().unwrap_or("unknown");
        let rate = source.integer(&format!("fees.{name}"), fees.rate(category).0.into(), 0..=10_000);
        fees.set(category, Bps(rate as u32));
    }
    fees
}

fn read_category_map(source: &mut Source) -> Vec<(String, Category)> {
    let allowed = "the name of a fee category: sports, finance, politics, mentions, tech, economics, culture, weather, other, crypto or geopolitics";
    let entries = source.map("fees.category_map", allowed, |_, value| Category::named(value).is_some());
    let meant = |(name, value): (String, String)| Some((name.to_lowercase(), Category::named(&value)?));
    entries.into_iter().filter_map(meant).collect()
}

fn read_keys(source: &mut Source) -> Keys {
    let default = Rules::default().free_trade_since;
    Keys {
        free_trade_since: source.moment("keys.free_trade_since", Some(default)).unwrap_or_default(),
        beta_until: source.moment("keys.beta_until", None),
    }
}

fn read_access(source: &mut Source) -> Access {
    let account = |text: &str| (!text.is_empty() && text.len() <= 128).then(|| text.to_owned());
    let allowed = "a list of JWT subjects and user ids";
    Access {
        allowlist: source.list("access.allowlist", Vec::new(), allowed, account, String::clone),
        flagged: source.list("access.flagged", Vec::new(), allowed, account, String::clone),
        disabled_keys: source.list(
            "access.disabled_keys",
            Vec::new(),
            "a list of key ids",
            |text| text.parse().ok(),
            u64::to_string,
        ),
    }
}

fn printable(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

#[cfg(test)]
mod tests;
