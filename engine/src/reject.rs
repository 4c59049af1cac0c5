//! Reasons to refuse a command, in trading terms. `gateway/edge/src/http/code.rs` maps each to its code.

use crate::amount::{Cash, Price, Qty, TickSize};
use crate::id::OrderId;
use crate::time::Timestamp;

/// A refusal: nothing changed, except where a variant names an order that was placed and killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// No room in the log: nothing was decided (`SERVER_BUSY`).
    NoRoom,
    /// No room in memory for more ended orders: nothing was decided (`SERVER_BUSY`).
    EndedFull,
    /// No consistent read of the ladder in the bounded tries, or a hard bound of the engine (`SERVER_BUSY`).
    Busy,
    /// The user has the maximum count of armed heartbeats.
    TooManySafeguards,
    /// Waited longer than 2 s for the user's turn (`TRADE_IN_PROGRESS`).
    WaitedTooLong,
    /// The first request with this id is undecided, or its record is not released (`IDEMPOTENCY_CONFLICT_PENDING`).
    StillRunning,
    UserNotFound,
    /// The key of the request was revoked, or its overlap ended, after the request was admitted.
    KeyRevoked,
    KeyExpired,
    /// The request is invalid; the caller keeps the reason. Checked after idempotency and daily cap
    /// (gateway/docs/wire.md §7, row 15).
    InvalidTerms,

    // Idempotency (gateway/docs/wire.md §11).
    IdempotencyKeyReuse,
    DuplicateClientOrderId,

    /// The user has an order with this hash, and the placement refuses it.
    OrderHashKnown,

    // Placement, in the order of engine/docs/orders.md §2.
    DailyLimit {
        limit: u32,
        used: u32,
        resets_at: Timestamp,
    },
    InvalidQuantity,
    /// More shares than the maximum of an order, also as the shares that an amount buys.
    AboveShareCap {
        cap: Qty,
    },
    PostOnlyType,
    InvalidExpiration,
    /// `GTD` while `GTD_AUTO_EXPIRY` is off (native routes).
    GtdUnsupported,
    WalletNotFound,
    MarketNotFound,
    MarketClosed,
    OffTick {
        tick: TickSize,
    },
    BelowMinimum {
        minimum: Qty,
    },
    InsufficientPosition {
        available: Qty,
        requested: Qty,
    },
    VenueUnavailable,
    StaleQuote {
        age_ms: u64,
        max_age_ms: u64,
    },
    /// No usable book on the needed side, or no level inside the limit. `order`: the killed FAK row, if there is one.
    NoExecutableDepth {
        order: Option<OrderId>,
    },
    PostOnlyWouldCross,
    FokNotFilled {
        order: OrderId,
        fillable: Qty,
        requested: Qty,
        limit: Price,
    },
    /// FAK and IOC with `fak_partial_fills` off.
    InsufficientLiquidity {
        order: Option<OrderId>,
    },
    InsufficientBalance {
        available: Cash,
        required: Cash,
    },
    /// The computation of a fill failed; nothing was posted.
    ExecutionError,
    /// A row that has left memory is needed, and the history store does not have it (`PERSISTENCE_UNKNOWN`).
    RowMissing,

    // Orders.
    OrderNotFound,
    OrderNotCancellable,

    // Wallets (engine/docs/account.md §4).
    /// Wallets of this kind, or in this state, cannot be archived or reset.
    WrongWalletKind,
    /// The plan allows no more SANDBOX wallets.
    SandboxLimit,
    /// The user has had the maximum count of wallets.
    TooManyWallets,
    /// The resets of the MAIN wallet within 30 days are used up.
    MainResetsSpent,
    /// A free plan has no reset of the API wallet.
    ResetNeedsPlan,
    /// The next reset of the API wallet is possible at `until`.
    ResetCoolsDown {
        until: Timestamp,
    },

    // Back-tests (gateway/docs/simulation.md §6).
    /// The plan allows no more back-tests this month.
    BacktestsSpent {
        limit: u64,
        resets_at: Timestamp,
    },
    /// What was asked for by back-tests that are kept has too many bytes; `until`: when the next one is not kept any more.
    BacktestRequestsFull {
        bytes_max: u64,
        until: Timestamp,
    },
    /// The plan allows fewer market hours this month; in thousandths.
    MarketHoursSpent {
        limit: u64,
        used: u64,
        resets_at: Timestamp,
    },
    /// The process writes a format that has no back-tests.
    NoBacktestStore,
    BacktestNotFound,
    /// It has ended.
    BacktestOver,

    // Billing (gateway/docs/billing.md §4).
    /// The process writes a format that has no billing.
    NoBillingStore,
    // Alerts (gateway/docs/integrations.md §3, §4).
    /// The user has the maximum count of targets on this channel.
    TooManyAlertTargets,
    AlertTargetNotFound,
    /// The process writes a format that has no alerts.
    NoAlertStore,

    // Keys (gateway/docs/keys.md §2 to §4).
    BootstrapNotAllowed,
    TierRequiresUpgrade,
    KeyLimit,
    KeyNotFound,
    /// Rotation of a key that already has an end.
    KeyExpiring,
    /// There is no set of realism with this name.
    UnknownRealism,
    /// The process writes a format that has no sets of realism.
    NoRealismStore,
}
