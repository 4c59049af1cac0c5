//! The table of error codes: text, status, retry advice, effect, and default message (gateway/docs/errors.md).
//!
//! Where the contract gives only a class of statuses, this table chooses the status.

use engine::reject::Reject;
use hyper::StatusCode;

/// Whether and when a client may repeat the same request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// Not without a change.
    No,
    /// Later, without a given time.
    Yes,
    /// After this many seconds (`Retry-After`).
    After(u32),
    /// When the window ends; the refusal has the seconds.
    WindowEnd,
    /// After looking the order up by its `client_order_id`.
    AfterLookup,
}

/// Effect of the request on money, shares and keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    Nothing,
    Unknown,
    Done,
}

struct Row {
    text: &'static str,
    status: u16,
    retry: Retry,
    effect: Effect,
    message: &'static str,
    header: &'static str,
}

macro_rules! codes {
    ($($code:ident = $text:literal, $status:literal, $retry:expr, $effect:ident, $message:literal $(, header $header:literal)?;)*) => {
        /// A stable error code, on which clients branch.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Code { $($code),* }

        impl Code {
            /// All codes, in the order of the contract's tables.
            pub const ALL: &'static [Code] = &[$(Code::$code),*];

            const fn row(self) -> &'static Row {
                match self {
                    $(Code::$code => {
                        const HEADERS: &[&str] = &[$($header,)? $text];
                        const ROW: Row = Row {
                            text: $text,
                            status: $status,
                            retry: $retry,
                            effect: Effect::$effect,
                            message: $message,
                            header: HEADERS[0],
                        };
                        &ROW
                    })*
                }
            }
        }
    };
}

use Retry::{After, AfterLookup, No, WindowEnd, Yes};

codes! {
    // Codes with a status in the specification.
    MissingAuth = "MISSING_AUTH", 401, No, Nothing, "This route needs an API key or a session token.";
    MissingApiKey = "MISSING_API_KEY", 401, No, Nothing, "This route needs an API key.";
    InvalidKey = "INVALID_KEY", 401, No, Nothing, "The API key is unknown or revoked.";
    InvalidToken = "INVALID_TOKEN", 401, No, Nothing, "The session token is not valid.";
    KeyExpired = "KEY_EXPIRED", 401, No, Nothing, "The API key has expired.";
    KeyDeactivated = "KEY_DEACTIVATED", 401, No, Nothing, "The API key was deactivated by an administrator.";
    KeyOwnerNotFound = "KEY_OWNER_NOT_FOUND", 401, No, Nothing, "The owner of the API key does not exist.";
    TokenExpired = "TOKEN_EXPIRED", 401, No, Nothing, "The session token has expired.";
    InsufficientPermission = "INSUFFICIENT_PERMISSION", 403, No, Nothing, "The API key lacks the permission this route needs.";
    AccessRestricted = "ACCESS_RESTRICTED", 403, No, Nothing, "Access of this account is restricted.";
    ClosedBeta = "CLOSED_BETA", 403, No, Nothing, "Keys are issued to admitted accounts only at present.";
    ApiProComingSoon = "API_PRO_COMING_SOON", 403, No, Nothing, "Keys of paid tiers are not issued at present.";
    TierRequiresUpgrade = "TIER_REQUIRES_UPGRADE", 403, No, Nothing, "The plan of this account does not include the requested tier.";
    UpgradeRequired = "UPGRADE_REQUIRED", 402, No, Nothing, "The plan of this account does not include this feature.";
    InsufficientBalance = "INSUFFICIENT_BALANCE", 400, No, Nothing, "Available cash is below the cost of the order.";
    InsufficientPosition = "INSUFFICIENT_POSITION", 400, No, Nothing, "Held position is smaller than the order.";
    InvalidQuantity = "INVALID_QUANTITY", 400, No, Nothing, "The quantity must be above zero.";
    PriceRequired = "PRICE_REQUIRED", 400, No, Nothing, "The order needs a price: the limit, or the worst price of a market order.";
    FokOrderNotFilled = "FOK_ORDER_NOT_FILLED_ERROR", 400, No, Nothing, "The order cannot be filled whole within its limit.";
    InvalidOrderPayload = "INVALID_ORDER_PAYLOAD", 400, No, Nothing, "The order body is not valid.";
    InvalidOrderMinTickSize = "INVALID_ORDER_MIN_TICK_SIZE", 400, No, Nothing, "The price is off the market's tick grid.";
    UnsupportedOrderType = "UNSUPPORTED_ORDER_TYPE", 400, No, Nothing, "This order type is not supported here.";
    MarketNotFound = "MARKET_NOT_FOUND", 404, No, Nothing, "No such market, outcome or token.";
    MarketClosed = "MARKET_CLOSED", 400, No, Nothing, "This market no longer accepts orders.";
    OrderNotFound = "ORDER_NOT_FOUND", 404, No, Nothing, "No such order.";
    OrderNotCancellable = "ORDER_NOT_CANCELLABLE", 400, No, Nothing, "The order has already ended.";
    DuplicateClientOrderId = "DUPLICATE_CLIENT_ORDER_ID", 409, No, Nothing, "Another order has this client_order_id.";
    IdempotencyKeyReuse = "IDEMPOTENCY_KEY_REUSE", 409, No, Nothing, "This Idempotency-Key was used for another request.";
    IdempotencyConflictPending = "IDEMPOTENCY_CONFLICT_PENDING", 409, After(1), Nothing, "The first request with this Idempotency-Key is still running.";
    TradeInProgress = "TRADE_IN_PROGRESS", 409, After(1), Nothing, "Another write of this account is running.";
    ExecutionError = "EXECUTION_ERROR", 500, Yes, Nothing, "The fill could not be computed; nothing was booked.";
    RateLimitExceeded = "RATE_LIMIT_EXCEEDED", 429, WindowEnd, Nothing, "Too many requests.";
    RateLimited = "RATE_LIMITED", 429, After(1), Nothing, "Too many orders in flight.";
    FreeTierDailyLimit = "FREE_TIER_DAILY_LIMIT", 429, WindowEnd, Nothing, "The daily order limit of the free tier is reached.";
    StaleQuote = "STALE_QUOTE", 400, Yes, Nothing, "The quote is too old to trade on.";
    NoExecutableDepth = "NO_EXECUTABLE_DEPTH", 400, No, Nothing, "The book has nothing to fill this order within its limit.";
    InsufficientLiquidity = "INSUFFICIENT_LIQUIDITY", 400, No, Nothing, "The book runs out of levels within the limit.";
    InvalidOrderExpiration = "INVALID_ORDER_EXPIRATION", 400, No, Nothing, "A GTD order needs an expiration in the future, in unix seconds.";
    InvalidPostOnlyOrder = "INVALID_POST_ONLY_ORDER", 400, No, Nothing, "The order would take liquidity.", header "POST_ONLY_WOULD_CROSS";
    InvalidPostOnlyOrderType = "INVALID_POST_ONLY_ORDER_TYPE", 400, No, Nothing, "Only limit orders with GTC or GTD can be post-only.";
    InvalidOrderMinSize = "INVALID_ORDER_MIN_SIZE", 400, No, Nothing, "The order is below the market's minimum size.", header "ORDER_BELOW_MIN_SIZE";
    InvalidTimeFilter = "INVALID_TIME_FILTER", 400, No, Nothing, "The time filter is neither unix seconds nor an ISO time.";
    InvalidInterval = "INVALID_INTERVAL", 400, No, Nothing, "Unknown interval.";
    ValidationFailed = "VALIDATION_FAILED", 422, No, Nothing, "The request is not valid.";

    // The specification names these without a status.
    ServerBusy = "SERVER_BUSY", 503, After(1), Nothing, "The server is busy; nothing was written.";
    DeadlineOvershotButPersisted = "DEADLINE_OVERSHOT_BUT_PERSISTED", 503, AfterLookup, Done, "The order was committed after the answer was due.";
    PersistenceUnknown = "PERSISTENCE_UNKNOWN", 503, AfterLookup, Unknown, "It is not known whether the request was committed: look the order up before sending it again.";
    BookUnavailable = "BOOK_UNAVAILABLE", 404, Yes, Nothing, "No orderbook exists for the requested token id";
    InvalidTokenId = "INVALID_TOKEN_ID", 400, No, Nothing, "Invalid token id";
    CohortFull = "COHORT_FULL", 409, No, Nothing, "The beta cohort has no free slot.";
    AuthStateIncomplete = "AUTH_STATE_INCOMPLETE", 401, After(1), Nothing, "The account is still being set up.";
    InternalError = "INTERNAL_ERROR", 500, Yes, Unknown, "An unexpected failure.";
    TokenNotFound = "TOKEN_NOT_FOUND", 404, No, Nothing, "No such token.";
    InvalidCursor = "INVALID_CURSOR", 400, No, Nothing, "The cursor was not issued by this server.";
    UpstreamUnavailable = "UPSTREAM_UNAVAILABLE", 502, After(5), Nothing, "The upstream venue did not answer.";
    OrderExecutionFailed = "ORDER_EXECUTION_FAILED", 500, AfterLookup, Done, "The order was accepted and then failed; its reservation is released.";
    InvalidBody = "INVALID_BODY", 400, No, Nothing, "The body is not valid for this route.";
    InvalidSource = "INVALID_SOURCE", 400, No, Nothing, "Unknown source.";
    InvalidRequest = "INVALID_REQUEST", 400, No, Nothing, "The parameters contradict each other or one is missing.";
    InvalidWindow = "INVALID_WINDOW", 400, No, Nothing, "The time window is not valid.";
    BacktestMonthlyCap = "BACKTEST_MONTHLY_CAP", 429, WindowEnd, Nothing, "The monthly limit of backtests is reached.";
    BacktestMarketCap = "BACKTEST_MARKET_CAP", 403, No, Nothing, "More markets than the plan allows in one job.";
    BacktestWindowCap = "BACKTEST_WINDOW_CAP", 403, No, Nothing, "A longer window than the plan allows.";
    SimulationHoursExceeded = "SIMULATION_HOURS_EXCEEDED", 429, WindowEnd, Nothing, "The monthly limit of market hours is reached.";
    MeteringUnavailable = "METERING_UNAVAILABLE", 503, After(5), Nothing, "The usage meter cannot be read; the job was not started.";
    JobStoreUnavailable = "JOB_STORE_UNAVAILABLE", 503, After(5), Nothing, "The job table cannot be read.";
    ConditionHourNotCovered = "CONDITION_HOUR_NOT_COVERED", 404, No, Nothing, "The archive does not cover that time.";
    ArchiveUnavailable = "ARCHIVE_UNAVAILABLE", 503, After(30), Nothing, "The archive cannot be reached.";
    ArchiveNotFound = "ARCHIVE_NOT_FOUND", 404, No, Nothing, "There is no archive for that market or token.";
    UnuniverseExcluded = "UNUNIVERSE_EXCLUDED", 422, No, Nothing, "The market is outside the eligible universe.";
    NotFound = "NOT_FOUND", 404, No, Nothing, "No such route or resource.";
    Http400 = "HTTP_400", 400, No, Nothing, "Bad request.";
    Http401 = "HTTP_401", 401, No, Nothing, "Unauthorized.";
    Http403 = "HTTP_403", 403, No, Nothing, "Forbidden.";
    Http404 = "HTTP_404", 404, No, Nothing, "Not found.";
    Http409 = "HTTP_409", 409, No, Nothing, "Conflict.";
    Http422 = "HTTP_422", 422, No, Nothing, "Unprocessable.";
    Http429 = "HTTP_429", 429, WindowEnd, Nothing, "Too many requests.";
    Http500 = "HTTP_500", 500, Yes, Unknown, "Internal failure.";
    Http502 = "HTTP_502", 502, Yes, Nothing, "Bad gateway.";
    Http503 = "HTTP_503", 503, Yes, Nothing, "Service unavailable.";

    // Codes beyond the specification. TIER_NOT_AUTHORIZED is reserved and never emitted, so it has no row.
    VenueUnavailable = "VENUE_UNAVAILABLE", 503, After(60), Nothing, "The upstream venue is down; resting limit orders are still accepted.";
    WalletNotFound = "WALLET_NOT_FOUND", 404, No, Nothing, "No such wallet.";
    BatchLimitExceeded = "BATCH_LIMIT_EXCEEDED", 400, No, Nothing, "More entries than the tier allows in one batch.";
    ConfirmationRequired = "CONFIRMATION_REQUIRED", 400, No, Nothing, "Cancelling all orders needs a confirmation.";
    BootstrapNotAllowed = "BOOTSTRAP_NOT_ALLOWED", 400, No, Nothing, "This account already has a key.";
    TierKeyLimitExceeded = "TIER_KEY_LIMIT_EXCEEDED", 400, No, Nothing, "This account has reached its limit of active keys.";
    KeyNotFound = "KEY_NOT_FOUND", 404, No, Nothing, "No such key.";
    UserNotFound = "USER_NOT_FOUND", 401, No, Nothing, "No such user.";
    AccountNotFound = "ACCOUNT_NOT_FOUND", 404, No, Nothing, "No such account.";
    AnalysisError = "ANALYSIS_ERROR", 500, Yes, Nothing, "The analysis failed.";
    MisdirectedRequest = "MISDIRECTED_REQUEST", 421, No, Nothing, "This server does not accept that host name; server.hosts lists accepted names.";
    AdminForbidden = "ADMIN_FORBIDDEN", 403, No, Nothing, "The admin listener does not accept browsers: send no Origin header, and only JSON bodies.";
    AdminBusy = "ADMIN_BUSY", 409, Yes, Nothing, "Another admin request is in progress.";
    ClockNotControlled = "CLOCK_NOT_CONTROLLED", 409, No, Nothing, "The clock of this server is the machine's.";
    ClockRunning = "CLOCK_RUNNING", 409, Yes, Nothing, "The clock moves: its gate is not stepped, or a step is in progress.";
    ClockBackwards = "CLOCK_BACKWARDS", 400, No, Nothing, "The clock cannot go back to that time.";
    Http405 = "HTTP_405", 405, No, Nothing, "This route does not take that method.";
    Http413 = "HTTP_413", 413, No, Nothing, "The body is too large.";
    Http426 = "HTTP_426", 426, No, Nothing, "Only WebSocket version 13 is supported.";
    Http415 = "HTTP_415", 415, No, Nothing, "The body must be application/json.";
    Http416 = "HTTP_416", 416, No, Nothing, "The range is beyond the end of the file.";

    // Refusals of the rehearsal (gateway/docs/rehearsal.md §2).
    OrderVersionMismatch = "ORDER_VERSION_MISMATCH", 400, No, Nothing, "The venue takes orders of the other generation.";
    OwnerNotKey = "OWNER_NOT_KEY", 400, No, Nothing, "The owner of the order is not the key of the request.";
    InvalidSignature = "INVALID_SIGNATURE", 400, No, Nothing, "The signature of the order is not that of its signer.";
    SignerNotKey = "SIGNER_NOT_KEY", 400, No, Nothing, "The signer of the order is not the address of the key.";
    MakerNotAllowed = "MAKER_NOT_ALLOWED", 400, No, Nothing, "The venue takes orders of new accounts from deposit wallets only.";
    OrderDuplicated = "ORDER_DUPLICATED", 400, No, Nothing, "The same signed order was sent before.";
    InvalidAmounts = "INVALID_AMOUNTS", 400, No, Nothing, "The amounts of the order have too many decimals.";
    MarketableMin = "MARKETABLE_MIN", 400, No, Nothing, "A BUY that takes liquidity is below 1 USD.";
}

impl Code {
    /// The text in the body.
    pub const fn text(self) -> &'static str {
        self.row().text
    }

    /// The text in the code header. It differs from the body's text for two codes (gateway/docs/wire.md §5).
    pub const fn header(self) -> &'static str {
        self.row().header
    }

    pub fn status(self) -> StatusCode {
        StatusCode::from_u16(self.row().status).expect("the table holds valid statuses")
    }

    pub const fn retry(self) -> Retry {
        self.row().retry
    }

    pub const fn effect(self) -> Effect {
        self.row().effect
    }

    /// The default message.
    pub const fn message(self) -> &'static str {
        self.row().message
    }
}

impl Code {
    /// The code of a refusal of the engine.
    pub const fn of(reject: &Reject) -> Code {
        match reject {
            Reject::NoRoom | Reject::EndedFull | Reject::Busy | Reject::NoBillingStore => Code::ServerBusy,
            Reject::WaitedTooLong => Code::TradeInProgress,
            Reject::StillRunning => Code::IdempotencyConflictPending,
            Reject::UserNotFound => Code::KeyOwnerNotFound,
            Reject::KeyRevoked => Code::InvalidKey,
            Reject::KeyExpired => Code::KeyExpired,
            Reject::InvalidTerms | Reject::GtdUnsupported | Reject::AboveShareCap { .. } => Code::ValidationFailed,
            Reject::IdempotencyKeyReuse => Code::IdempotencyKeyReuse,
            Reject::DuplicateClientOrderId => Code::DuplicateClientOrderId,
            Reject::OrderHashKnown => Code::OrderDuplicated,
            Reject::DailyLimit { .. } => Code::FreeTierDailyLimit,
            Reject::InvalidQuantity => Code::InvalidQuantity,
            Reject::PostOnlyType => Code::InvalidPostOnlyOrderType,
            Reject::InvalidExpiration => Code::InvalidOrderExpiration,
            Reject::WalletNotFound => Code::WalletNotFound,
            Reject::MarketNotFound => Code::MarketNotFound,
            Reject::MarketClosed => Code::MarketClosed,
            Reject::OffTick { .. } => Code::InvalidOrderMinTickSize,
            Reject::BelowMinimum { .. } => Code::InvalidOrderMinSize,
            Reject::InsufficientPosition { .. } => Code::InsufficientPosition,
            Reject::VenueUnavailable => Code::VenueUnavailable,
            Reject::StaleQuote { .. } => Code::StaleQuote,
            Reject::NoExecutableDepth { .. } => Code::NoExecutableDepth,
            Reject::PostOnlyWouldCross => Code::InvalidPostOnlyOrder,
            Reject::FokNotFilled { .. } => Code::FokOrderNotFilled,
            Reject::InsufficientLiquidity { .. } => Code::InsufficientLiquidity,
            Reject::InsufficientBalance { .. } => Code::InsufficientBalance,
            Reject::ExecutionError => Code::ExecutionError,
            Reject::RowMissing => Code::PersistenceUnknown,
            Reject::OrderNotFound => Code::OrderNotFound,
            Reject::OrderNotCancellable => Code::OrderNotCancellable,
            Reject::BacktestsSpent { .. } | Reject::BacktestRequestsFull { .. } => Code::BacktestMonthlyCap,
            Reject::MarketHoursSpent { .. } => Code::SimulationHoursExceeded,
            Reject::NoBacktestStore => Code::JobStoreUnavailable,
            Reject::BacktestNotFound | Reject::BacktestOver | Reject::AlertTargetNotFound => Code::NotFound,
            Reject::NoAlertStore => Code::Http503,
            Reject::BootstrapNotAllowed => Code::BootstrapNotAllowed,
            Reject::TierRequiresUpgrade => Code::TierRequiresUpgrade,
            Reject::KeyLimit => Code::TierKeyLimitExceeded,
            Reject::KeyNotFound => Code::KeyNotFound,
            Reject::SandboxLimit | Reject::MainResetsSpent | Reject::ResetNeedsPlan => Code::UpgradeRequired,
            Reject::ResetCoolsDown { .. } => Code::Http429,
            Reject::UnknownRealism => Code::ValidationFailed,
            Reject::NoRealismStore => Code::Http503,
            Reject::KeyExpiring
            | Reject::TooManySafeguards
            | Reject::WrongWalletKind
            | Reject::TooManyWallets
            | Reject::TooManyAlertTargets => Code::InvalidRequest,
        }
    }
}

/// The code header of a response without its own code: `HTTP_<status>`.
pub fn of_status(status: StatusCode) -> &'static str {
    let code = Code::ALL.iter().find(|code| code.text().starts_with("HTTP_") && code.status() == status);
    code.map_or(Code::Http500.text(), |code| code.text())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_unique_and_well_formed() {
        let mut texts: Vec<_> = Code::ALL.iter().map(|code| code.text()).collect();
        texts.sort_unstable();
        texts.dedup();
        assert_eq!(texts.len(), Code::ALL.len());
        for code in Code::ALL {
            assert!(code.text().bytes().all(|b| b.is_ascii_uppercase() || b.is_ascii_digit() || b == b'_'));
            assert!(code.status().as_u16() >= 400, "{code:?}");
            assert!(!code.message().is_empty(), "{code:?}");
            if let Some(number) = code.text().strip_prefix("HTTP_") {
                assert_eq!(number, code.status().as_str());
            }
        }
    }

    #[test]
    fn two_codes_differ_between_body_and_header() {
        let differing: Vec<_> = Code::ALL.iter().filter(|code| code.text() != code.header()).collect();
        assert_eq!(differing, [&Code::InvalidPostOnlyOrder, &Code::InvalidOrderMinSize]);
        assert_eq!(Code::InvalidPostOnlyOrder.header(), "POST_ONLY_WOULD_CROSS");
        assert_eq!(Code::InvalidOrderMinSize.header(), "ORDER_BELOW_MIN_SIZE");
    }

    #[test]
    fn a_status_without_a_code_gets_its_number() {
        assert_eq!(of_status(StatusCode::SERVICE_UNAVAILABLE), "HTTP_503");
        assert_eq!(of_status(StatusCode::PAYLOAD_TOO_LARGE), "HTTP_413");
    }
    /// A key that ends while its request is in flight gets the code that admission would give it.
    #[test]
    fn shard_and_admission_give_a_key_the_same_code() {
        assert_eq!(Code::of(&Reject::KeyRevoked), Code::InvalidKey);
        assert_eq!(Code::of(&Reject::KeyExpired), Code::KeyExpired);
    }
}
