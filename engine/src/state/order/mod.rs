//! Orders: terms, rows, reservations, and the index of resting orders. `decide` has the trading rules.
//!
//! The status is never stored: it is derived from the fills and the closing reason ([`Order::status`]).

pub mod reservation;
pub mod resting;
pub(crate) mod row;
pub(crate) mod text;

use crate::amount::{Bps, Cash, Price, Qty};
use crate::describe::record;
use crate::id::{InstrumentId, KeyId, WalletId};
use crate::realism::FillTerms;
use crate::time::Timestamp;
use wincode::{SchemaRead, SchemaWrite};

pub use crate::book::Taken;
pub use row::{Fill, Order, Terms};

/// Direction of an order.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Side {
    Buy,
    Sell,
}

impl Side {
    pub fn opposite(self) -> Side {
        match self {
            Side::Buy => Side::Sell,
            Side::Sell => Side::Buy,
        }
    }
}

/// Whether the client set a limit.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum OrderType {
    Market,
    Limit,
}

/// Time in force as requested. FAK and IOC behave the same (engine/docs/orders.md §1).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum TimeInForce {
    Gtc,
    Gtd,
    Fok,
    Fak,
    Ioc,
}

/// Why an order ended before it was filled whole (engine/docs/orders.md §3).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum CloseReason {
    FokNotFilled,
    FakNoFill,
    /// The dropped rest of a FAK: the order counts as FILLED.
    FakRest,
    ExecutionFailed,
    UserCancelled,
    CancelAll,
    CancelMarket,
    GtdExpired,
    HeartbeatLapsed,
    /// The reservation did not cover a fill.
    AutoCancelled,
    BalanceReset,
    WalletArchived,
    MarketResolved,
    MarketClosed,
}

/// Whether a fill took liquidity at placement, or the order rested before.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Liquidity {
    Taker,
    Maker,
}

/// The source of a fill's price (engine/docs/execution.md §2).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum PriceSource {
    BookWalk,
    MatchingEngine,
    BestAsk,
    BestBid,
    ClobMidpointCached,
    LastTrade,
    Display,
    EmergencyExitEntryPrice,
    EmergencyExitEntryPricePostExpiry,
}

/// The route of an order (engine/docs/execution.md §14).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum EntryRoute {
    Native,
    Batch,
    Venue,
    Clob,
}

record! {
    /// The terms of an order, fixed at placement.
    pub struct OrderTerms {
        pub wallet: WalletId,
        /// The key that placed it.
        pub key: KeyId,
        pub instrument: InstrumentId,
        pub side: Side,
        pub order_type: OrderType,
        /// As requested; see [`TimeInForce::normalised`].
        pub time_in_force: TimeInForce,
        /// Limit, or worst price of a market order.
        pub limit: Price,
        /// Requested shares; for an `amount` order the expected shares.
        pub quantity: Qty,
        /// USD to spend, market BUY only.
        pub amount: Option<Cash>,
        pub expiration: Option<Timestamp>,
        pub post_only: bool,
        pub client_order_id: Option<String>,
        pub route: EntryRoute,
        /// The taker rate of the market's category at placement.
        pub fee_rate: Bps,
        /// Whether there was a level inside its limit at placement.
        pub marketable: bool,
        pub quality: Quality,
        /// The text of a requested quantity finer than 4 decimals (warning `quantity_rounded`).
        pub rounded_from: Option<String>,
        /// EIP-712 hash of a signed order: its id in the strict dialect. Unique among the orders of a user.
        pub order_hash: Option<[u8; 32]>,
        /// How it fills; absent: as the set `kind` says by default.
        pub fill: Option<FillTerms>,
    }
}

record! {
    (Copy, Default)
    /// Figures of the moment of placement (engine/docs/execution.md §8). `None`: without a walk or a quote.
    pub struct Quality {
        /// Displayed price at submit, 10⁻⁶ USD a share.
        pub displayed: Option<Cash>,
        pub quote_age_ms: Option<u32>,
        pub spread_bps: Option<u32>,
        pub slippage_bps: Option<u32>,
        pub impact_bps: Option<u32>,
        pub book_walk_levels: Option<u16>,
        /// Available shares inside the limit of an order that was killed because they were too few: part of its
        /// refusal, and of a replay.
        pub fillable: Option<Qty>,
        /// The warning threshold was reached (`high_slippage_bps_<slippage_bps>`).
        pub high_slippage: bool,
        /// The quote was older than an unenforced maximum (`stale_quote:age_ms=<n>`).
        pub stale_quote: bool,
    }
}

impl OrderTerms {
    /// A GTC limit order without rare fields, at a rate of 5 percent.
    pub fn limit(
        wallet: WalletId,
        key: KeyId,
        instrument: InstrumentId,
        side: Side,
        limit: Price,
        quantity: Qty,
    ) -> OrderTerms {
        OrderTerms {
            wallet,
            key,
            instrument,
            side,
            order_type: OrderType::Limit,
            time_in_force: TimeInForce::Gtc,
            limit,
            quantity,
            amount: None,
            expiration: None,
            post_only: false,
            client_order_id: None,
            route: EntryRoute::Native,
            fee_rate: Bps(500),
            marketable: false,
            quality: Quality::default(),
            rounded_from: None,
            order_hash: None,
            fill: None,
        }
    }
}

impl TimeInForce {
    /// As stored and listed: FAK is IOC.
    pub fn normalised(self) -> TimeInForce {
        if self == TimeInForce::Fak { TimeInForce::Ioc } else { self }
    }

    /// FOK, FAK, IOC: they never rest.
    pub fn immediate(self) -> bool {
        matches!(self, TimeInForce::Fok | TimeInForce::Fak | TimeInForce::Ioc)
    }
}

/// Native status (engine/docs/orders.md §3). REJECTED and ERROR occur only in responses to batches, without an order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Pending,
    Filled,
    Cancelled,
    Expired,
}
