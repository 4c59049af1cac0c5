//! An order: what was asked, what has come of it. The trading rules live in the files of this folder.
//!
//! The status is never stored: it follows from the fills and from the closing reason ([`Order::status`]).

pub mod reservation;
pub mod resting;
pub(crate) mod row;
pub(crate) mod text;

use crate::amount::{Bps, Cash, Price, Qty};
use crate::describe::record;
use crate::id::{InstrumentId, KeyId, WalletId};
use crate::time::Timestamp;
use wincode::{SchemaRead, SchemaWrite};

pub use crate::book::Taken;
pub use row::{Fill, Order, Terms};

/// Which way the shares go.
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

/// With or without a limit of the sender's own.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum OrderType {
    Market,
    Limit,
}

/// How long an order may live, in the word that was sent. FAK and IOC are one behaviour (engine/docs/orders.md §1).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum TimeInForce {
    Gtc,
    Gtd,
    Fok,
    Fak,
    Ioc,
}

/// Why an order ended without being filled whole (engine/docs/orders.md §3).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy, Hash)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum CloseReason {
    FokNotFilled,
    FakNoFill,
    /// The unfilled rest of a FAK slice: the order counts as FILLED.
    FakRest,
    ExecutionFailed,
    UserCancelled,
    CancelAll,
    CancelMarket,
    GtdExpired,
    HeartbeatLapsed,
    /// The reservation was no longer covered.
    AutoCancelled,
    BalanceReset,
    WalletArchived,
    MarketResolved,
    MarketClosed,
}

/// Whether a fill took liquidity at placement or rested before.
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Liquidity {
    Taker,
    Maker,
}

/// Where a fill's price came from (engine/docs/execution.md §2).
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

/// The route an order came in by (engine/docs/execution.md §14).
#[derive(Clone, Debug, PartialEq, Eq, SchemaWrite, SchemaRead, Copy)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum EntryRoute {
    Native,
    Batch,
    Venue,
    Clob,
}

record! {
    /// What was asked, as it was decided at placement. Never changes afterwards.
    pub struct OrderTerms {
        pub wallet: WalletId,
        /// The key that placed it.
        pub key: KeyId,
        pub instrument: InstrumentId,
        pub side: Side,
        pub order_type: OrderType,
        /// The word that was sent; see [`TimeInForce::normalised`].
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
        /// Found a level inside its limit at placement.
        pub marketable: bool,
        pub quality: Quality,
        /// The text of a requested quantity finer than 4 decimals (warning `quantity_rounded`).
        pub rounded_from: Option<String>,
        /// EIP-712 hash of a signed order: its id in the strict dialect. No two orders of a user have the same.
        pub order_hash: Option<[u8; 32]>,
    }
}

record! {
    (Copy, Default)
    /// Figures about the moment of placement (engine/docs/execution.md §8). `None`: there was no walk or no quote.
    pub struct Quality {
        /// Displayed price at submit, 10⁻⁶ USD a share.
        pub displayed: Option<Cash>,
        pub quote_age_ms: Option<u32>,
        pub spread_bps: Option<u32>,
        pub slippage_bps: Option<u32>,
        pub impact_bps: Option<u32>,
        pub book_walk_levels: Option<u16>,
        /// Shares that stood inside the limit of an order that was killed because they were too few: a replay of its
        /// refusal names them again.
        pub fillable: Option<Qty>,
        /// The warning threshold of the moment was reached (`high_slippage_bps_<slippage_bps>`).
        pub high_slippage: bool,
        /// Older than the maximum while that is not enforced (`stale_quote:age_ms=<n>`).
        pub stale_quote: bool,
    }
}

impl OrderTerms {
    /// A limit order that rests until it is cancelled, without anything that not every order has, at a rate of 5 percent.
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
        }
    }
}

impl TimeInForce {
    /// The word as it is stored and listed: FAK is IOC.
    pub fn normalised(self) -> TimeInForce {
        if self == TimeInForce::Fak { TimeInForce::Ioc } else { self }
    }

    /// FOK, FAK, IOC: nothing of it ever rests.
    pub fn immediate(self) -> bool {
        matches!(self, TimeInForce::Fok | TimeInForce::Fak | TimeInForce::Ioc)
    }
}

/// Native status (specification, States). REJECTED and ERROR occur only in batch answers, where no order exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    Pending,
    Filled,
    Cancelled,
    Expired,
}
