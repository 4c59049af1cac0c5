//! Why a command was refused, in trading words. Knows no HTTP: `gateway/http/code.rs` gives each its code.

use crate::amount::{Cash, Price, Qty, TickSize};
use crate::id::OrderId;
use crate::time::Timestamp;

/// A refusal: nothing happened, except where a variant names an order that was placed and killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reject {
    /// No journal room: nothing was decided (`SERVER_BUSY`).
    NoRoom,
    /// The ladder could not be read in its bounded tries, or a hard bound of the engine was reached (`SERVER_BUSY`).
    Busy,
    /// As many heartbeats are armed as one user may have.
    TooManySafeguards,
    /// Waited longer than 2 s for its turn (`TRADE_IN_PROGRESS`).
    WaitedTooLong,
    /// The first request with this id is not decided, or its record is not released (`IDEMPOTENCY_CONFLICT_PENDING`).
    StillRunning,
    UserNotFound,
    /// The key that asks was revoked, or its overlap ended, while the request was on its way.
    KeyRevoked,
    KeyExpired,
    /// The request was unsound; the asker keeps the reason. Comes after idempotency and daily cap (wire.md §7, 15).
    Unsound,

    // Idempotency (wire.md §11).
    IdempotencyKeyReuse,
    DuplicateClientOrderId,

    // Placement, in the order of trading.md §5.
    DailyLimit {
        limit: u32,
        used: u32,
        resets_at: Timestamp,
    },
    InvalidQuantity,
    /// More shares than one order may have; an amount may turn out to buy them.
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
    /// No usable book on the needed side, or nothing inside the limit. `order`: the killed FAK row, if one was left.
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
    /// Legacy atomic IOC.
    InsufficientLiquidity {
        order: Option<OrderId>,
    },
    InsufficientBalance {
        available: Cash,
        required: Cash,
    },
    /// A fill computation failed; nothing was booked.
    ExecutionError,

    // Orders.
    OrderNotFound,
    OrderNotCancellable,

    // Wallets (account.md §1, §4).
    /// Archiving or resetting a wallet of a kind, or in a state, that has no such thing.
    WrongWalletKind,
    /// The plan has no more SANDBOX wallets.
    SandboxLimit,
    /// The user has had as many wallets as there may be.
    TooManyWallets,
    /// The resets of the MAIN wallet are spent for the last 30 days.
    MainResetsSpent,
    /// The API wallet of a free plan is not reset.
    ResetNeedsPlan,
    /// The API wallet may be reset again from `until` on.
    ResetCoolsDown {
        until: Timestamp,
    },

    // Keys (keys.md §2–4).
    BootstrapNotAllowed,
    TierRequiresUpgrade,
    KeyLimit,
    KeyNotFound,
    /// Rotating a key that already expires.
    KeyExpiring,
}
