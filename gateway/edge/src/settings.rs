//! Settings of the edge, which the process reads once. `gateway/docs/settings.md` describes each.

mod network;
mod rehearsal;
#[cfg(any(test, feature = "testing"))]
mod testing;

use engine::amount::Cash;
use engine::time::Timestamp;
use engine::user::Tier;
use host::secret::Secret;
pub use network::Network;
pub use rehearsal::{Accounts, Allowances, Profile, Rehearsal, Rehearse};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// All settings of the edge.
#[derive(Clone, Debug)]
pub struct Settings {
    pub server: Server,
    pub http: Http,
    /// The data directory, whose size the status route reports.
    pub data_dir: PathBuf,
    pub compat: Compat,
    /// Accounts of address logins. `None` if other machines reach the listener.
    pub local: Option<Local>,
    pub brand: Brand,
    pub auth: Auth,
    pub limits: Limits,
    pub flags: Flags,
    pub keys: Keys,
    pub access: Access,
    pub export: Export,
    pub streams: Streams,
    pub billing: Billing,
    /// Name of the chat service in paths.
    pub chat_service: String,
    /// The commit of the build, if known.
    pub built_from: Option<&'static str>,
}

impl Settings {
    /// The commit of the build, or `unknown`.
    pub fn git_sha(&self) -> &'static str {
        self.built_from.unwrap_or("unknown")
    }
}

/// The listener.
#[derive(Clone, Debug)]
pub struct Server {
    pub listen: SocketAddr,
    /// Names with a dot that a loopback listener accepts in `Host`. Addresses and names without a dot are always
    /// accepted.
    pub hosts: Vec<String>,
    /// How clients reach this server, without a slash at its end. Empty: as the request did, without TLS.
    pub public_url: String,
    /// How long requests in flight may take when the server stops.
    pub drain: Duration,
}

/// Bounds of requests and connections.
#[derive(Clone, Debug)]
pub struct Http {
    pub body_bytes_max: usize,
    pub connections_max: usize,
    pub connections_per_address_max: usize,
    /// From the first byte of a head to the last.
    pub header_timeout: Duration,
    pub body_timeout: Duration,
    /// How long a connection may stay open without a request.
    pub idle_timeout: Duration,
    /// From the head of a request to the start of its response.
    pub request_timeout: Duration,
    /// How long a peer may leave a response unread.
    pub write_timeout: Duration,
    pub trusted_proxies: Vec<Network>,
    /// `*` alone allows every origin.
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
    /// The first one signs, all verify. Empty until the process fills it.
    pub jwt_secrets: Vec<Secret>,
    /// Signs socket tokens. Without it the process makes one at its start: tokens do not outlive the process
    /// (gateway/docs/keys.md §8).
    pub ws_secret: Option<Secret>,
    /// Secret from which ids and keys are derived that must survive a restart. It is not configured: it is made
    /// together with the data directory and stored there. Empty until the process fills it.
    pub server_secret: Secret,
}

#[derive(Clone, Debug)]
pub struct Limits {
    pub public_ip_per_second: u32,
    pub public_ip_per_minute: u32,
    /// Per source address, on the routes that a payment provider calls.
    pub callback_ip_per_second: u32,
    pub callback_ip_per_minute: u32,
    pub bootstrap_per_minute: u32,
    pub bootstrap_per_hour: u32,
    pub placements_per_user: u32,
    pub placements_per_server: u32,
    pub meter_loopback: bool,
    /// In the order of [`TIERS`].
    pub tiers: [TierLimits; 4],
}

/// Limits of a tier (gateway/docs/wire.md §8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TierLimits {
    pub requests_per_second: u32,
    pub requests_per_minute: u32,
    pub max_ws_connections: u32,
    pub max_batch_size: u32,
    pub in_flight: u32,
}

/// Flags of the server that the engine does not read: gates of routes, listing of markets, issuing of keys.
#[derive(Clone, Debug)]
pub struct Flags {
    pub high_freq_updown_enabled: bool,
    pub chart_archive_read_enabled: bool,
    pub feature_simulation_api_enabled: bool,
    pub closed_beta_mode: bool,
    pub paid_keys_enabled: bool,
    pub allowlist_enabled: bool,
    /// Active beta users at most; 0: no bound.
    pub cohort_cap: u64,
}

#[derive(Clone, Debug)]
pub struct Keys {
    pub free_trade_since: Timestamp,
    pub beta_until: Option<Timestamp>,
    /// Whether a read-only key is contained: it creates no key that may do more than itself, renames, replaces and
    /// revokes only itself, and resets no balance. Otherwise any active key manages all keys of its account.
    pub readonly_contained: bool,
    /// Whether owners choose the realism of their keys.
    pub realism_self_service: bool,
}

/// Accounts by JWT subject or user id; keys by id.
#[derive(Clone, Debug)]
pub struct Access {
    pub allowlist: Vec<String>,
    pub flagged: Vec<String>,
    pub disabled_keys: Vec<u64>,
}

#[derive(Clone, Debug)]
pub struct Export {
    /// Rows of one CSV export at most. A line after the last row reports that there are more.
    pub max_rows: u64,
}

#[derive(Clone, Debug)]
pub struct Streams {
    /// Ids that one socket of an enterprise user may subscribe to. Other sockets have [`SUBSCRIPTIONS_MAX`].
    pub max_subscriptions: usize,
    /// Which sockets of `/ws/user` receive `order` frames.
    pub order_events: OrderEvents,
}

/// Billing, as the routes need it.
#[derive(Clone, Debug)]
pub struct Billing {
    /// There is a payment provider.
    pub is_on: bool,
    /// It is the one for development, whose links this server makes.
    pub is_stub: bool,
    /// The refund policy: days after a purchase, and its texts.
    pub refund_days: u64,
    pub refund_text: String,
    pub refund_conditions: Vec<String>,
}

/// All tiers in ascending order, with their names on the wire.
pub const TIERS: [(Tier, &str); 4] =
    [(Tier::Free, "free"), (Tier::Pro, "pro"), (Tier::ProPlus, "pro_plus"), (Tier::Enterprise, "enterprise")];

/// Which sockets of `/ws/user` receive `order` frames in addition to `trade` frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderEvents {
    /// Sockets of the strict dialect, and those that set `auth.order_events`.
    Strict,
    All,
    Off,
}

/// Ids that one socket may subscribe to (gateway/docs/streams.md §1.4).
pub const SUBSCRIPTIONS_MAX: usize = 50;

impl Streams {
    /// Ids that one socket of a user of this tier may subscribe to; `None` for an anonymous socket.
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
    /// Prefixes of `User-Agent` whose requests get the strict dialect (gateway/docs/venue-clients.md §0.2).
    pub client_agents: Vec<String>,
    /// Whether the response to a placement names its trades. A client that sees them may wait until each is confirmed.
    pub trade_ids: bool,
    /// Whether trade rows of the strict dialect have the status `CONFIRMED`, for clients that wait for settlement.
    pub confirmed_trades: bool,
    /// Whether the venue's paths are also served without `/v1` (gateway/docs/venue-clients.md §0).
    pub root_mount: bool,
    /// Version of signed orders that the venue's newer clients build: 1 or 2.
    pub order_version: u64,
    /// The figure of balances and allowances that clients must not size orders from, in 10⁻⁶ USD
    /// (gateway/docs/venue-clients.md §4).
    pub sentinel_allowance: u64,
    /// Which figures `balance-allowance` returns.
    pub allowance: Allowance,
    /// Whether the venue's catalogue service and its service of positions and trades are served too.
    pub facade: bool,
    /// Whether an address that signs for itself is an account (gateway/docs/venue-clients.md §8).
    pub address_login: bool,
    /// The rehearsal of the venue's checks, and the profile of the venue.
    pub rehearsal: Rehearsal,
}

/// Which figures `balance-allowance` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowance {
    /// The account's figures in the strict dialect, the sentinel in the plain one.
    Auto,
    /// `sentinel_allowance`.
    Sentinel,
    /// The account's figures.
    Real,
}

/// The plan of an account that an address login creates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    /// Granted without an end.
    pub tier: Tier,
    /// Initial cash of the API wallet.
    pub balance: Cash,
}

/// Default limits of the tiers, in the order of [`TIERS`].
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
