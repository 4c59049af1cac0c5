//! Every number and switch of the engine: fees, limits, minimum sizes, rollout flags, and the bounds of its state.
//!
//! Rules are read in `decide` only. Replay, snapshots and `apply` never see them.

use crate::amount::{Bps, Cash, Qty};
use crate::format::Formats;
use crate::market::terms::Category;
use crate::time::{DAY, MILLISECOND, SECOND, Timestamp};
use crate::user::{Tier, WalletKind};

/// Waiting longer than this for one's turn is `TRADE_IN_PROGRESS` (spec, placement rule 1).
pub const WAIT_MAX_US: u64 = 2 * SECOND;
/// Age of a user's oldest unreleased record from which on the next write of that user waits undecided, µs.
pub const UNRELEASED_MAX_US: u64 = 250 * MILLISECOND;
/// How long the implicit id of a signed order counts (venue.md §5.4).
pub const IMPLICIT_ID_US: u64 = 600 * SECOND;
/// Furthest expiration of a GTD order: ten years, in microseconds. What lies further is taken for milliseconds sent as
/// seconds.
pub const EXPIRATION_AHEAD_MAX_US: u64 = 3_653 * DAY;
/// Longest `client_order_id` in characters (trading.md §1).
pub const CLIENT_ORDER_ID_CHARS_MAX: usize = 256;
/// Entries of one batch (trading.md §7).
pub const BATCH_ENTRIES_MAX: usize = 100;
/// Orders that one record of a sweep closes at most, so that a record stays far below 1 MiB (house.md §5).
pub const SWEEP_ORDERS_PER_RECORD_MAX: usize = 1_000;
/// A matching cycle begins another record of the same user once one has this many bytes. One fill more, of every level
/// of both books (some 20,000 rows of 19 bytes), stays below the 512 KiB that the log keeps free for a record.
pub const RECORD_SEALED_AT_BYTES: usize = 64 << 10;
/// Resting orders that one turn of a matching cycle looks at, so that a turn stays below about a millisecond.
pub const CYCLE_ORDERS_PER_TURN_MAX: usize = 1_000;
/// Open orders a user may have; more is refused as `SERVER_BUSY`.
pub const OPEN_ORDERS_PER_USER_MAX: usize = 100_000;
/// Heartbeat registrations of a user.
pub const SAFEGUARDS_PER_USER_MAX: usize = 16;
/// Keys a user may ever have had in memory, revoked ones included.
pub const KEYS_PER_USER_MAX: usize = 10_000;
/// Most shares an order may have, whatever `MAX_SHARES_PER_ORDER` says: keeps every product with a price in range.
pub const SHARES_PER_ORDER_CEILING: Qty = Qty::from_shares(1_000_000_000);
/// Most shares of one instrument a wallet may hold, and most cash: far below overflow. What would exceed them is refused.
pub const HOLDING_MAX: Qty = Qty::from_shares(100_000_000_000);
pub const CASH_MAX: Cash = Cash::from_dollars(1_000_000_000_000);
/// Users per generation of depletion overlays; two generations are kept (execution.md §9).
pub const OVERLAYS_PER_GENERATION: usize = 16_384;
/// Wallets a user may ever have had, archived ones included: each reset of a SANDBOX wallet adds one.
pub const WALLETS_PER_USER_MAX: usize = 1_000;
/// Resets of the MAIN wallet are counted over this long (account.md §1.1).
pub const MAIN_RESETS_WINDOW_US: u64 = 30 * 24 * 3_600 * SECOND;
/// Positions that one turn values at most when the points of an hour are made, so that a turn stays below about a
/// millisecond.
pub const POSITIONS_VALUED_PER_TURN_MAX: usize = 1_000;
/// Overlap after a rotation (spec, key lifecycle).
pub const ROTATION_OVERLAP_US: u64 = 24 * 3_600 * SECOND;
/// `last_used_at` is written at most this often per key (keys.md §1).
pub const KEY_USED_EVERY_US: u64 = 60 * SECOND;
/// Matching cycles between two that look at every resting order (execution.md §7).
pub const FULL_CYCLE_EVERY: u64 = 10;
/// An unresolved market's resting orders expire this long after its end date, venue time (execution.md §7).
pub const CLOSED_MARKET_GRACE_US: u64 = 24 * 3_600 * SECOND;

/// When a resting order fills. Always at its own limit, as maker, without a fee.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FillModel {
    /// In a matching cycle, when the effective book touches or crosses its limit. Trades of the venue count for nothing.
    Touch,
    /// As [`FillModel::Touch`]; besides at once, when the venue trades through its limit by a tick or more, up to the
    /// size of that trade.
    #[default]
    Cross,
}

impl FillModel {
    pub const ALL: [FillModel; 2] = [FillModel::Touch, FillModel::Cross];

    /// The word of the configuration.
    pub fn name(self) -> &'static str {
        match self {
            FillModel::Touch => "touch",
            FillModel::Cross => "cross",
        }
    }
}

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Rules {
    pub fees: FeeTable,
    pub flags: RolloutFlags,
    /// `[realism] fill_model`.
    pub fill_model: FillModel,
    /// `MAX_SHARES_PER_ORDER`.
    pub max_shares_per_order: Qty,
    /// `TRADE_QUOTE_MAX_AGE_MS`, in µs, and whether it refuses or only warns.
    pub quote_age_max_us: u64,
    pub quote_age_enforced: bool,
    /// `WARN_SLIPPAGE_BPS`.
    pub warn_slippage_bps: u32,
    /// `MATCH_INTERVAL_MS`, in µs.
    pub match_interval_us: u64,
    /// `FOK_SHORTFALL_TOLERANCE_SHARES`.
    pub fok_shortfall: Qty,
    /// `TRADE_REQUIRE_BOOK_DEPTH`.
    pub require_book_depth: bool,
    /// `EMERGENCY_EXIT_ENABLED`.
    pub emergency_exit: bool,
    /// `SYNC_GTC_MATCH`.
    pub sync_gtc_match: bool,
    /// `DEPLETION_SCOPE` is `all` (else `limit_only`).
    pub depletion_covers_market_orders: bool,
    /// Active keys per user.
    pub keys_max: usize,
    /// Accepted orders per UTC day on the free tier.
    pub free_daily_orders: u32,
    /// `API_RESET_COOLDOWN_DAYS`, in µs; 0 = none.
    pub api_reset_cooldown_us: u64,
    /// Free keys issued before this are read-only (`[keys] free_trade_since`).
    pub free_trade_since: Timestamp,
    /// `[keys] beta_until`: keys issued before it are beta keys.
    pub beta_until: Option<Timestamp>,
    /// `[journal] write_formats`: what the previous formats cannot hold is not decided while they are written.
    pub formats: Formats,
}

/// Taker rate by category (spec, fee table), changeable by configuration.
#[derive(Clone, Debug)]
pub struct FeeTable {
    rates: [Bps; Category::ALL.len()],
}

/// The seven behaviours that the specification calls rolling out; on = rolled out (execution.md §1).
#[derive(Clone, Copy, Debug)]
pub struct RolloutFlags {
    pub fak_partial_fills: bool,
    pub fok_depth_aware: bool,
    pub gtd_auto_expiry: bool,
    pub post_only_enforced: bool,
    pub min_order_size_enforced: bool,
    pub book_impact_depletion: bool,
    pub maker_fill_at_limit: bool,
}

impl FeeTable {
    /// The rate of one category, in basis points of `p × (1 − p)` per share.
    pub fn rate(&self, category: Category) -> Bps {
        self.rates[category as usize]
    }

    /// Sets the rate of one category.
    pub fn set(&mut self, category: Category, rate: Bps) {
        self.rates[category as usize] = rate;
    }
}

impl Default for FeeTable {
    fn default() -> Self {
        let mut table = FeeTable { rates: [Bps(0); Category::ALL.len()] };
        for category in Category::ALL {
            table.set(category, category.default_taker_rate());
        }
        table
    }
}

impl Default for RolloutFlags {
    fn default() -> Self {
        RolloutFlags {
            fak_partial_fills: true,
            fok_depth_aware: true,
            gtd_auto_expiry: true,
            post_only_enforced: true,
            min_order_size_enforced: true,
            book_impact_depletion: true,
            maker_fill_at_limit: true,
        }
    }
}

impl Default for Rules {
    fn default() -> Self {
        Rules {
            fees: FeeTable::default(),
            flags: RolloutFlags::default(),
            fill_model: FillModel::default(),
            max_shares_per_order: Qty::from_shares(1_000_000),
            quote_age_max_us: 60_000 * MILLISECOND,
            quote_age_enforced: true,
            warn_slippage_bps: 500,
            match_interval_us: 1_000 * MILLISECOND,
            fok_shortfall: Qty::ZERO,
            require_book_depth: true,
            emergency_exit: true,
            sync_gtc_match: true,
            depletion_covers_market_orders: true,
            keys_max: 5,
            free_daily_orders: 100,
            api_reset_cooldown_us: 0,
            // 2026-09-05T00:00:00Z
            free_trade_since: Timestamp(1_788_566_400 * SECOND),
            beta_until: None,
            formats: Formats::default(),
        }
    }
}

impl Rules {
    /// The cutoff that a key issued at this moment gets (keys.md §5).
    pub fn beta(&self, now: Timestamp) -> Option<Timestamp> {
        self.beta_until.filter(|until| *until > now)
    }
}

/// Opening cash of a wallet by kind and tier (account.md §1.1).
pub fn baseline(kind: WalletKind, tier: Tier) -> Cash {
    Cash::from_dollars(match (kind, tier) {
        (WalletKind::Main, _) => 1_000,
        (WalletKind::Api, Tier::Free) => 100,
        (WalletKind::Api | WalletKind::Sandbox, Tier::Pro) => 10_000,
        (WalletKind::Api | WalletKind::Sandbox, Tier::ProPlus | Tier::Enterprise) => 25_000,
        (WalletKind::Sandbox, Tier::Free) | (WalletKind::Competition, _) => 0,
    })
}

/// Active SANDBOX wallets of a plan (account.md §1.1).
pub fn sandboxes_max(tier: Tier) -> usize {
    match tier {
        Tier::Free => 0,
        Tier::Pro => 3,
        Tier::ProPlus => 10,
        Tier::Enterprise => 50,
    }
}

/// Resets of the MAIN wallet within [`MAIN_RESETS_WINDOW_US`]; `None` = as many as one likes.
pub fn main_resets_max(tier: Tier) -> Option<usize> {
    match tier {
        Tier::Free => Some(1),
        Tier::Pro => Some(4),
        Tier::ProPlus | Tier::Enterprise => None,
    }
}
