//! An order: what was asked, what has come of it. The trading rules live in the files of this folder.
//!
//! The status is never stored: it follows from the fills and from the closing reason ([`Order::status`]).

pub mod depletion;
pub mod fee;

use crate::amount::{Bps, Cash, Price, Qty};
use crate::id::{InstrumentId, KeyId, OrderId, TradeId, WalletId};
use crate::time::Timestamp;
use bincode::{Decode, Encode};
use wincode::{SchemaRead, SchemaWrite};

/// Which way the shares go.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, PartialOrd, Ord, Hash)]
pub enum Side {
    Buy,
    Sell,
}

/// With or without a limit of the sender's own.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub enum OrderType {
    Market,
    Limit,
}

/// How long an order may live, in the word that was sent. FAK and IOC are one behaviour (trading.md §1).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub enum TimeInForce {
    Gtc,
    Gtd,
    Fok,
    Fak,
    Ioc,
}

/// Why an order ended without being filled whole (trading.md §6).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, Hash)]
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
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub enum Liquidity {
    Taker,
    Maker,
}

/// Where a fill's price came from (execution.md §2).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
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

/// The route an order came in by (execution.md §14).
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub enum EntryRoute {
    Native,
    Batch,
    Venue,
    Clob,
}

/// What was asked, as it was decided at placement. Never changes afterwards.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead)]
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
}

/// Figures about the moment of placement (execution.md §8). `None`: there was no walk or no quote.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy, Default)]
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

/// One level that a fill took.
#[derive(Clone, Debug, PartialEq, Eq, Encode, Decode, SchemaWrite, SchemaRead, Copy)]
pub struct Taken {
    /// Effective price of the instrument that was traded.
    pub price: Price,
    pub qty: Qty,
    pub fee: Cash,
    /// The level stood in the complement's book, at the complement of `price`.
    pub mirrored: bool,
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

/// An order as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    pub id: OrderId,
    pub terms: Box<OrderTerms>,
    pub created_at: Timestamp,
    pub filled: Qty,
    /// Σ of fill notionals and of fees.
    pub notional: Cash,
    pub fee: Cash,
    pub filled_at: Option<Timestamp>,
    pub closed: Option<(CloseReason, Timestamp)>,
    /// Set aside in the wallet for the unfilled rest: cash of a BUY, shares of a SELL.
    pub reserved_cash: Cash,
    pub reserved_qty: Qty,
    /// Resting without having met a live book (outage or too old a quote at placement): its first cycle on one
    /// decides taker or maker (execution.md §6, §10).
    pub awaiting_book: bool,
    /// `hold_reason` is `venue_outage`.
    pub held: bool,
}

impl Order {
    /// Shares not filled yet.
    pub fn unfilled(&self) -> Qty {
        Qty(self.terms.quantity.0.saturating_sub(self.filled.0))
    }

    /// Resting in the book: neither filled whole nor closed.
    pub fn is_open(&self) -> bool {
        self.status() == Status::Pending
    }

    /// The status that follows from fills and closing reason (trading.md §6).
    pub fn status(&self) -> Status {
        match self.closed {
            Some((CloseReason::FakRest, _)) => Status::Filled,
            Some((CloseReason::MarketResolved | CloseReason::MarketClosed, _)) => Status::Expired,
            Some(_) => Status::Cancelled,
            // An immediate order that was not closed was filled as far as it asked (a budget, a tolerated shortfall).
            None if self.filled >= self.terms.quantity || self.terms.time_in_force.immediate() => Status::Filled,
            None => Status::Pending,
        }
    }
}

/// One execution of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fill {
    pub id: TradeId,
    pub order: OrderId,
    pub qty: Qty,
    pub notional: Cash,
    pub fee: Cash,
    /// 0 for a maker fill.
    pub fee_rate: Bps,
    pub liquidity: Liquidity,
    pub source: PriceSource,
    pub quote_age_ms: Option<u32>,
    pub at: Timestamp,
}
