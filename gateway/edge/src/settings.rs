//! What the edge goes by: the settings of its parts, read once by the process above it.

mod network;
#[cfg(any(test, feature = "testing"))]
mod testing;

use engine::amount::Cash;
use engine::time::Timestamp;
use engine::user::Tier;
use host::secret::Secret;
pub use network::Network;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Everything that the edge goes by.
#[derive(Clone, Debug)]
pub struct Settings {
    pub server: Server,
    pub http: Http,
    /// The data directory, whose size status tells.
    pub data_dir: PathBuf,
    pub compat: Compat,
    /// `None`: others than this machine reach the listener.
    pub local: Option<Local>,
    pub brand: Brand,
    pub auth: Auth,
    pub limits: Limits,
    pub flags: Flags,
    pub keys: Keys,
    pub access: Access,
    pub export: Export,
    pub streams: Streams,
    /// The commit that the program is built from, where it knows.
    pub built_from: Option<&'static str>,
}

impl Settings {
    /// The commit as it is told.
    pub fn git_sha(&self) -> &'static str {
        self.built_from.unwrap_or("unknown")
    }
}

/// Where it listens.
#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Names with a dot that a listener on loopback answers to, in `Host`; addresses and other names always pass.
    pub hosts: Vec<String>,
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
pub struct Brand {
    pub key_prefix: String,
    /// `live` or `test`.
    pub key_env: String,
    pub header_prefix: String,
    pub key_header_aliases: Vec<String>,
}

impl Default for Brand {
    fn default() -> Brand {
        Brand {
            key_prefix: "svc".to_owned(),
            key_env: "live".to_owned(),
            header_prefix: "X-Svc".to_owned(),
            key_header_aliases: ["MKT_API_KEY", "Mkt-API-Key", "POLY_API_KEY"].map(str::to_owned).to_vec(),
        }
    }
}

#[derive(Clone, Debug)]
pub struct Auth {
    /// The first one signs; all verify. Empty until the process completes them.
    pub jwt_secrets: Vec<Secret>,
    /// Signs socket tokens; without one the process makes its own, for they do not outlive it (keys.md §8).
    pub ws_secret: Option<Secret>,
    /// What ids and keys are derived from that must be the same after a restart. Never configured: it is made with the
    /// data directory and kept in it. Empty until the process completes them.
    pub server_secret: Secret,
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
    /// A read-only key gains nothing through others: it mints none with more than it has, rotates and revokes only itself,
    /// and resets no balance. Off as specified: any active key manages all keys of its account.
    pub readonly_contained: bool,
}

/// Accounts by JWT `sub` or user id; keys by id.
#[derive(Clone, Debug)]
pub struct Access {
    pub allowlist: Vec<String>,
    pub flagged: Vec<String>,
    pub disabled_keys: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Export {
    /// Rows of one CSV export; behind them a line says that there are more.
    pub max_rows: u64,
}

#[derive(Clone, Debug)]
pub struct Streams {
    /// Ids that one socket of an enterprise user may subscribe to; all others have [`SUBSCRIPTIONS_MAX`].
    pub max_subscriptions: usize,
    /// Which sockets of `/ws/user` are sent `order` frames.
    pub order_events: OrderEvents,
}

/// All tiers, ascending, with the names of the wire.
pub const TIERS: [(Tier, &str); 4] =
    [(Tier::Free, "free"), (Tier::Pro, "pro"), (Tier::ProPlus, "pro_plus"), (Tier::Enterprise, "enterprise")];

/// Which sockets of `/ws/user` are sent `order` frames beside `trade` frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvents {
    /// Those of the strict dialect, and those that ask by `auth.order_events`.
    Strict,
    All,
    Off,
}

/// Ids that one socket may subscribe to (streams.md §1.4).
pub const SUBSCRIPTIONS_MAX: usize = 50;

impl Streams {
    /// Ids that one socket of somebody of this tier, or of nobody, may subscribe to.
    pub fn subscriptions_max(&self, tier: Option<Tier>) -> usize {
        if tier == Some(Tier::Enterprise) { self.max_subscriptions } else { SUBSCRIPTIONS_MAX }
    }
}

impl Limits {
    pub fn tier(&self, tier: Tier) -> &TierLimits {
        &self.tiers[tier as usize]
    }
}

/// How requests of venue clients are answered.
#[derive(Clone, Debug)]
pub struct Compat {
    /// Beginnings of the `User-Agent` of clients that need the strict dialect (venue.md §0.2).
    pub client_agents: Vec<String>,
    /// Whether a placement names its trades (`real`); clients that see names wait for each to be confirmed.
    pub trade_ids: bool,
    /// Whether strict trade rows say `CONFIRMED`, so that clients that wait for settlement end.
    pub confirmed_trades: bool,
    /// Whether the venue's paths answer without `/v1` too (venue.md §0).
    pub root_mount: bool,
    /// Which orders the venue's second clients are told to build: 1 or 2.
    pub order_version: u64,
    /// What a balance and its allowance say that nothing may size from, in 10⁻⁶ USD (venue.md §4).
    pub sentinel_allowance: u64,
    /// What balances and allowances are answered with.
    pub allowance: Allowance,
    /// Whether the venue's catalogue service and its service of positions and trades are answered for, too.
    pub facade: bool,
    /// Whether an address that signs for itself is an account (venue.md §8).
    pub address_login: bool,
}

/// What `balance-allowance` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The account's figures in the strict dialect, the sentinel in the plain one.
    Auto,
    /// `sentinel_allowance`.
    Sentinel,
    /// The account's figures.
    Real,
}

/// The plan of a new account.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Granted without end.
    pub tier: Tier,
    /// Cash that the API wallet begins with.
    pub balance: Cash,
}

/// What a tier may do where nothing else is set.
pub const DEFAULT_TIERS: [TierLimits; 4] = {
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
