//! Numbers and switches of the engine: fees, limits, minimum sizes, rollout flags, and the bounds of its state.
//!
//! Rules are read in `decide` only. Replay, snapshots and `apply` never see them.

use crate::amount::{Bps, Cash, Qty};
use crate::fee::{FeeRounding, Tariff};
use crate::format::Formats;
use crate::id::OBJECT_BITS;
use crate::market::catalog::MarketCell;
use crate::market::terms::{Category, FeeSchedule};
use crate::order::Terms;
use crate::realism::{FillModel, FillTerms, RealismSets};
use crate::time::{DAY, HOUR, MILLISECOND, SECOND, Timestamp};
use crate::user::{Tier, WalletKind};

/// A longer wait for the user's turn is `TRADE_IN_PROGRESS` (engine/docs/orders.md §4).
pub const WAIT_MAX_US: u64 = 2 * SECOND;
/// When a user's oldest unreleased record is older than this, the user's next write waits undecided, µs.
pub const UNRELEASED_MAX_US: u64 = 250 * MILLISECOND;
/// Lifetime of the implicit id of a signed order (gateway/docs/venue-clients.md §5.4).
pub const IMPLICIT_ID_US: u64 = 600 * SECOND;
/// Furthest expiration of a GTD order: ten years, in µs. A later one is assumed to be milliseconds sent as seconds.
pub const EXPIRATION_AHEAD_MAX_US: u64 = 3_653 * DAY;
/// Longest `client_order_id` in characters (engine/docs/orders.md §1).
pub const CLIENT_ORDER_ID_CHARS_MAX: usize = 256;
/// Maximum count of entries of one batch.
pub const BATCH_ENTRIES_MAX: usize = 100;
/// Orders that one record of a sweep closes at most; keeps a record far below 1 MiB.
pub const SWEEP_ORDERS_PER_RECORD_MAX: usize = 1_000;
/// A matching cycle starts another record of the same user when one has reached this many bytes. One more fill, of
/// every level of both books (some 20,000 rows of 19 bytes), stays below the 512 KiB that the log reserves for a
/// record.
pub const RECORD_SEALED_AT_BYTES: usize = 64 << 10;
/// Resting orders that one turn of a matching cycle visits; keeps a turn below about a millisecond.
pub const CYCLE_ORDERS_PER_TURN_MAX: usize = 1_000;
/// Maximum count of open orders of a user; beyond it `SERVER_BUSY`.
pub const OPEN_ORDERS_PER_USER_MAX: usize = 100_000;
/// Maximum count of heartbeat registrations of a user.
pub const SAFEGUARDS_PER_USER_MAX: usize = 16;
/// Maximum count of keys of a user over time, revoked ones included; all stay in memory.
pub const KEYS_PER_USER_MAX: usize = 10_000;
/// Upper bound of `MAX_SHARES_PER_ORDER`: keeps every product with a price in range.
pub const SHARES_PER_ORDER_CEILING: Qty = Qty::from_shares(1_000_000_000);
/// Maximum shares of one instrument in a wallet, and maximum cash: far below overflow. A command that would exceed them
/// is refused.
pub const HOLDING_MAX: Qty = Qty::from_shares(100_000_000_000);
pub const CASH_MAX: Cash = Cash::from_dollars(1_000_000_000_000);
/// Users per generation of depletion overlays; two generations are kept (engine/docs/execution.md §9).
pub const OVERLAYS_PER_GENERATION: usize = 16_384;
/// Maximum count of wallets of a user over time, archived ones included: each reset of a SANDBOX wallet adds one.
pub const WALLETS_PER_USER_MAX: usize = 1_000;
/// Window in which resets of the MAIN wallet are counted (engine/docs/account.md §4).
pub const MAIN_RESETS_WINDOW_US: u64 = 30 * 24 * 3_600 * SECOND;
/// Remembered requests that one turn drops at most, when their ids count no longer; keeps a turn below about a
/// millisecond.
pub const REQUESTS_FORGOTTEN_PER_TURN_MAX: usize = 1_000;
/// A wallet is paid what it has earned as a maker from this sum on (engine/docs/execution.md §5).
pub const REBATE_MIN: Cash = Cash::from_dollars(1);
/// Users that one turn pays at most; keeps a turn below about a millisecond.
pub const USERS_PAID_PER_TURN_MAX: usize = 250;
/// Positions that one turn values at most for the points of an hour; keeps a turn below about a millisecond.
pub const POSITIONS_VALUED_PER_TURN_MAX: usize = 1_000;
/// How long a rotated key stays valid (gateway/docs/keys.md §4).
pub const ROTATION_OVERLAP_US: u64 = 24 * 3_600 * SECOND;
/// Shortest interval between two writes of a key's `last_used_at` (gateway/docs/keys.md §1).
pub const KEY_USED_EVERY_US: u64 = 60 * SECOND;
/// Maximum count of resting orders of a shard with a place in a queue; beyond it `SERVER_BUSY`.
pub const QUEUED_ORDERS_MAX: usize = 100_000;
/// Order facts of all users of a shard beyond which those of a user are cut that has many (gateway/docs/history.md §2):
/// 32 MiB.
pub const ORDER_FACTS_MAX: usize = 8 << 20;
/// Order facts that a cut leaves to its user, who had twice as many or more.
pub const ORDER_FACTS_LEFT: usize = 8_192;
/// One matching cycle in this many visits every resting order (engine/docs/execution.md §7).
pub const FULL_CYCLE_EVERY: u64 = 10;
/// Resting orders of an unresolved market expire this long after its end date, venue time (engine/docs/execution.md
/// §7).
pub const CLOSED_MARKET_GRACE_US: u64 = 24 * 3_600 * SECOND;

/// Object numbers of a prefix that are used before a user is granted the next prefix: all but a million, which last some
/// ten minutes at a thousand orders a second.
pub const NUMBERS_PER_PREFIX: u32 = (1 << OBJECT_BITS) - (1 << 20);

/// The rules in force.
#[derive(Clone, Debug)]
pub struct Rules {
    pub fees: FeeTable,
    pub flags: RolloutFlags,
    /// `[realism]`: the sets of this server.
    pub realism: RealismSets,
    /// `MAX_SHARES_PER_ORDER`.
    pub max_shares_per_order: Qty,
    /// `TRADE_QUOTE_MAX_AGE_MS`, in µs; refuses, or only warns.
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
    /// Maximum count of active keys of a user.
    pub keys_max: usize,
    /// Maximum count of accepted orders per UTC day on the free tier.
    pub free_daily_orders: u32,
    /// `[limits] client_ids_hours`, in µs: how long a client order id counts.
    pub client_ids_us: u64,
    /// `API_RESET_COOLDOWN_DAYS`, in µs; 0 = none.
    pub api_reset_cooldown_us: u64,
    /// Free keys issued before this are read-only (`[keys] free_trade_since`).
    pub free_trade_since: Timestamp,
    /// `[keys] beta_until`: keys issued before it are beta keys.
    pub beta_until: Option<Timestamp>,
    /// `[email]`: mail goes out, so alerts that go by mail unless a user chooses otherwise are owed.
    pub mails: bool,
    /// [`NUMBERS_PER_PREFIX`], or fewer.
    pub numbers_per_prefix: u32,
    /// [`ORDER_FACTS_MAX`].
    pub order_facts_max: usize,
    /// [`ORDER_FACTS_LEFT`].
    pub order_facts_left: usize,
    /// `[journal] write_formats`: with the previous formats, nothing is decided that they cannot hold.
    pub formats: Formats,
}

/// Where the rate of a fill comes from (`[fees] source`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FeeRates {
    /// From the market's own schedule where it states one, else from the table.
    Auto,
    /// From the table of categories.
    #[default]
    Table,
}

impl FeeRates {
    pub const ALL: [FeeRates; 2] = [FeeRates::Auto, FeeRates::Table];

    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            FeeRates::Auto => "auto",
            FeeRates::Table => "table",
        }
    }
}

/// What fills are charged (engine/docs/execution.md §5): taker rates by category, and whether a market's own schedule
/// comes before them; configurable.
#[derive(Clone, Debug)]
pub struct FeeTable {
    rates: [Bps; Category::ALL.len()],
    /// `[fees] source`. [`FeeRates::Table`] while the previous formats are written: they have no schedules.
    pub source: FeeRates,
    /// `[fees] rounding`.
    pub rounding: FeeRounding,
    /// `[fees] maker_rebate` is `accrue`: makers earn the rebates of schedules.
    pub accrues_rebates: bool,
}

/// What the fills of a market are charged at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fees {
    pub taker: Tariff,
    pub maker: Tariff,
    /// The market's own schedule, if it decides, and its rounding.
    pub schedule: Option<(FeeSchedule, FeeRounding)>,
}

impl Fees {
    /// The schedule of the market, or the same of its category.
    fn shown(&self) -> FeeSchedule {
        let of_category = || FeeSchedule { rate: self.taker.bps().0.saturating_mul(100), ..FeeSchedule::FREE };
        self.schedule.map_or_else(of_category, |(schedule, _)| schedule)
    }
}

/// The seven rollout switches; true = rolled out (engine/docs/execution.md §1).
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

    /// The taker's charge of one category.
    pub fn of_category(&self, category: Category) -> Tariff {
        Tariff::of_category(self.rate(category), self.rounding)
    }

    /// What fills of this market are charged now.
    fn of(&self, market: &MarketCell) -> Fees {
        self.of_order(market, self.rate(market.listing.category))
    }

    /// What clients are shown of it: the market's schedule, or that of its category; without rebates that are not paid.
    pub fn shown(&self, market: &MarketCell) -> FeeSchedule {
        let shown = self.of(market).shown();
        FeeSchedule { rebate_rate: if self.accrues_rebates { shown.rebate_rate } else { 0 }, ..shown }
    }

    /// The same for an order that was placed at this rate of the table.
    pub fn of_order(&self, market: &MarketCell, rate: Bps) -> Fees {
        match self.schedule_of(market) {
            None => self.by_table(rate),
            Some(schedule) => {
                let rounding = self.rounding.at(market.listing.venue);
                let taker = Tariff::of_schedule(&schedule, rounding);
                let maker = if schedule.taker_only { Tariff::FREE } else { taker };
                Fees { taker, maker, schedule: Some((schedule, rounding)) }
            }
        }
    }

    /// What fills at this rate of the table are charged.
    #[inline]
    pub fn by_table(&self, rate: Bps) -> Fees {
        Fees { taker: Tariff::of_category(rate, self.rounding), maker: Tariff::FREE, schedule: None }
    }

    /// The schedule that decides the fees of a market.
    fn schedule_of(&self, market: &MarketCell) -> Option<FeeSchedule> {
        if self.source == FeeRates::Table { None } else { market.fee_schedule() }
    }

    /// Sets the rate of one category.
    pub fn set(&mut self, category: Category, rate: Bps) {
        self.rates[category as usize] = rate;
    }
}

impl Default for FeeTable {
    fn default() -> Self {
        let mut table = FeeTable {
            rates: [Bps(0); Category::ALL.len()],
            source: FeeRates::default(),
            rounding: FeeRounding::default(),
            accrues_rebates: false,
        };
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
            realism: RealismSets::default(),
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
            client_ids_us: 72 * HOUR,
            api_reset_cooldown_us: 0,
            // 2026-09-05T00:00:00Z
            free_trade_since: Timestamp(1_788_566_400 * SECOND),
            beta_until: None,
            mails: false,
            numbers_per_prefix: NUMBERS_PER_PREFIX,
            order_facts_max: ORDER_FACTS_MAX,
            order_facts_left: ORDER_FACTS_LEFT,
            formats: Formats::default(),
        }
    }
}

impl Rules {
    /// How an order fills: as its terms say. With the previous formats, in which terms cannot say it, as the set of keys
    /// without a choice says, as far as it is one of the two models of those formats.
    pub fn fill_of(&self, terms: &Terms) -> FillTerms {
        let unwritten = || match self.realism.chosen_by_default().fill.model {
            FillModel::Touch if !self.formats.is_newest() => FillTerms { model: FillModel::Touch, ..FillTerms::KIND },
            _ => FillTerms::KIND,
        };
        terms.fill().unwrap_or_else(unwritten)
    }

    /// Client order ids of orders that were placed at this moment or later count at `now`.
    pub fn ids_since(&self, now: Timestamp) -> Timestamp {
        Timestamp(now.0.saturating_sub(self.client_ids_us))
    }

    /// Whether fills are charged by the schedules that markets state.
    pub fn follows_schedules(&self) -> bool {
        self.fees.source == FeeRates::Auto && self.formats.is_newest()
    }

    /// The cutoff of a key issued at `now` (gateway/docs/keys.md §5).
    pub fn beta(&self, now: Timestamp) -> Option<Timestamp> {
        self.beta_until.filter(|until| *until > now)
    }
}

/// Opening cash of a wallet by kind and tier (engine/docs/account.md §4).
pub fn baseline(kind: WalletKind, tier: Tier) -> Cash {
    Cash::from_dollars(match (kind, tier) {
        (WalletKind::Main, _) => 1_000,
        (WalletKind::Api, Tier::Free) => 100,
        (WalletKind::Api | WalletKind::Sandbox, Tier::Pro) => 10_000,
        (WalletKind::Api | WalletKind::Sandbox, Tier::ProPlus | Tier::Enterprise) => 25_000,
        (WalletKind::Sandbox, Tier::Free) | (WalletKind::Competition, _) => 0,
    })
}

/// Maximum count of active SANDBOX wallets of a plan (engine/docs/account.md §4).
pub fn sandboxes_max(tier: Tier) -> usize {
    match tier {
        Tier::Free => 0,
        Tier::Pro => 3,
        Tier::ProPlus => 10,
        Tier::Enterprise => 50,
    }
}

/// Resets of the MAIN wallet within [`MAIN_RESETS_WINDOW_US`]; `None` = any count.
pub fn main_resets_max(tier: Tier) -> Option<usize> {
    match tier {
        Tier::Free => Some(1),
        Tier::Pro => Some(4),
        Tier::ProPlus | Tier::Enterprise => None,
    }
}

/// What a plan allows of back-tests (gateway/docs/simulation.md §6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BacktestCaps {
    pub jobs_per_month: u64,
    pub days: u64,
    pub markets: u64,
    pub market_hours_per_month: u64,
}

/// The limits of back-tests of a plan.
pub fn backtest_caps(tier: Tier) -> BacktestCaps {
    let caps = |jobs_per_month, days, markets, market_hours_per_month| BacktestCaps {
        jobs_per_month,
        days,
        markets,
        market_hours_per_month,
    };
    match tier {
        Tier::Free => caps(10, 7, 5, 24),
        Tier::Pro => caps(100, 30, 25, 720),
        Tier::ProPlus | Tier::Enterprise => caps(9_999, 90, 100, 9_999),
    }
}
