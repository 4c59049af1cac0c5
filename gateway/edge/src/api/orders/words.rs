//! The wire's words for what orders are made of.

use crate::http::scalar::words;
use engine::order::{CloseReason, Liquidity, OrderType, PriceSource, Side, Status, TimeInForce};

pub const SIDES: [(&str, Side); 2] = [("BUY", Side::Buy), ("SELL", Side::Sell)];
pub const ORDER_TYPES: [(&str, OrderType); 2] = [("market", OrderType::Market), ("limit", OrderType::Limit)];
pub const TIMES_IN_FORCE: [(&str, TimeInForce); 5] = [
    ("GTC", TimeInForce::Gtc),
    ("GTD", TimeInForce::Gtd),
    ("FOK", TimeInForce::Fok),
    ("FAK", TimeInForce::Fak),
    ("IOC", TimeInForce::Ioc),
];

words! {
    pub SideName = "BUY", "SELL";
    /// A side in a request. Other cases are understood too.
    pub SideInAnyCase = "BUY", "SELL", "buy", "sell";
    pub OrderTypeName = "market", "limit";
    /// An order type in a request. Other cases are understood too.
    pub OrderTypeInAnyCase = "market", "limit", "MARKET", "LIMIT";
    pub TimeInForceName = "GTC", "GTD", "FOK", "IOC";
    /// As it was sent: FAK means IOC.
    pub RequestedTimeInForce = "GTC", "GTD", "FOK", "FAK", "IOC";
    pub StatusName = "PENDING", "FILLED", "CANCELLED", "EXPIRED";
    pub LiquidityName = "TAKER", "MAKER";
    /// What decided the fee of a fill.
    pub FeeSourceName = "market_schedule", "category_table", "none";
}

pub fn side(side: Side) -> &'static str {
    match side {
        Side::Buy => "BUY",
        Side::Sell => "SELL",
    }
}

pub fn order_type(order_type: OrderType) -> &'static str {
    match order_type {
        OrderType::Market => "market",
        OrderType::Limit => "limit",
    }
}

pub fn time_in_force(time_in_force: TimeInForce) -> &'static str {
    match time_in_force {
        TimeInForce::Gtc => "GTC",
        TimeInForce::Gtd => "GTD",
        TimeInForce::Fok => "FOK",
        TimeInForce::Fak => "FAK",
        TimeInForce::Ioc => "IOC",
    }
}

pub fn status(status: Status) -> &'static str {
    match status {
        Status::Pending => "PENDING",
        Status::Filled => "FILLED",
        Status::Cancelled => "CANCELLED",
        Status::Expired => "EXPIRED",
    }
}

/// `None` for the rest of a FAK slice: that order is FILLED.
pub fn cancelled_reason(reason: CloseReason) -> Option<&'static str> {
    Some(match reason {
        CloseReason::FakRest => return None,
        CloseReason::FokNotFilled => "fok_not_filled",
        CloseReason::FakNoFill => "fak_no_fill",
        CloseReason::ExecutionFailed => "execution_failed",
        CloseReason::UserCancelled => "user_cancelled",
        CloseReason::CancelAll => "cancel_all",
        CloseReason::CancelMarket => "cancel_market",
        CloseReason::GtdExpired => "gtd_expired",
        CloseReason::HeartbeatLapsed => "heartbeat_lapsed",
        CloseReason::AutoCancelled => "auto_cancelled",
        CloseReason::BalanceReset => "balance_reset",
        CloseReason::WalletArchived => "wallet_archived",
        CloseReason::MarketResolved => "market_resolved",
        CloseReason::MarketClosed => "market_closed",
    })
}

pub fn liquidity(liquidity: Liquidity) -> &'static str {
    match liquidity {
        Liquidity::Taker => "TAKER",
        Liquidity::Maker => "MAKER",
    }
}

pub fn price_source(source: PriceSource) -> &'static str {
    match source {
        PriceSource::BookWalk => "book_walk",
        PriceSource::MatchingEngine => "matching_engine",
        PriceSource::BestAsk => "best_ask",
        PriceSource::BestBid => "best_bid",
        PriceSource::ClobMidpointCached => "clob_midpoint_cached",
        PriceSource::LastTrade => "last_trade",
        PriceSource::Display => "display",
        PriceSource::EmergencyExitEntryPrice => "emergency_exit_entry_price",
        PriceSource::EmergencyExitEntryPricePostExpiry => "emergency_exit_entry_price_postexpiry",
    }
}
