//! The venue's words: what it says of a refusal (venue.md §5.3), and what it calls states of an order (venue.md §7.2).

use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::Refusal;
use engine::amount::{Cash, Qty, TickSize};
use engine::order::{CloseReason, Order, Status, TimeInForce};
use engine::reject::Reject;
use wire::decimal;

/// Why an order was not cancelled, whatever the reason.
pub const NOT_CANCELED: &str = "order can't be found - already canceled or matched";

/// What a sentence names of the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderEcho {
    /// As the client implied it, 10⁻⁶ USD a share.
    pub price: Cash,
    pub size: Qty,
    /// Stands for the order, which has no id.
    pub digest: [u8; 32],
}

/// A refusal in the venue's sentence, so that clients which match texts understand it. `reject`: the engine's reason,
/// where it is one.
pub fn said(refusal: Refusal, reject: Option<&Reject>, asked: &OrderEcho) -> Refusal {
    // A size above the cap is what a body says above it: out of the shape of an order.
    let above_cap = matches!(reject, Some(Reject::AboveShareCap { .. }));
    let refusal = if above_cap { Code::InvalidOrderPayload.into() } else { refusal };
    match refusal.code() {
        Code::InsufficientBalance | Code::InsufficientPosition => refusal.worded("not enough balance / allowance"),
        Code::FokOrderNotFilled => {
            refusal.worded("order couldn't be fully filled. FOK orders are fully filled or killed.")
        }
        Code::NoExecutableDepth => refusal.worded(
            "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.",
        ),
        Code::InvalidPostOnlyOrder => refusal.worded("invalid post-only order: order crosses book"),
        Code::InvalidOrderExpiration => refusal.worded("invalid expiration"),
        Code::MarketNotFound => refusal.worded("market not found"),
        Code::MarketClosed => refusal.worded("the market is not accepting orders"),
        Code::InvalidOrderPayload => refusal.worded("Invalid order payload"),
        Code::InvalidOrderMinTickSize => match reject {
            Some(Reject::OffTick { tick }) => refusal.worded(off_tick(asked, *tick)),
            _ => refusal,
        },
        Code::InvalidOrderMinSize => match reject {
            Some(Reject::BelowMinimum { minimum }) => refusal.worded(below_minimum(asked, *minimum)),
            _ => refusal,
        },
        _ => refusal,
    }
}

fn off_tick(asked: &OrderEcho, tick: TickSize) -> String {
    let (price, tick) =
        (decimal::text(|out| decimal::money(out, asked.price)), decimal::text(|out| decimal::tick(out, tick)));
    format!("order {} is invalid. Price ({price}) breaks minimum tick size rule: {tick}", order(asked))
}

fn below_minimum(asked: &OrderEcho, minimum: Qty) -> String {
    let text = |qty| decimal::text(|out| decimal::size(out, qty));
    format!("order {} is invalid. Size ({}) lower than the minimum: {}", order(asked), text(asked.size), text(minimum))
}

fn order(asked: &OrderEcho) -> String {
    decimal::text(|out| {
        out.extend_from_slice(b"0x");
        super::ids::hex(out, &asked.digest);
    })
}

/// Native status → the venue's. REJECTED and ERROR leave no row.
pub fn status(order: &Order, dialect: Dialect) -> &'static str {
    let by_resolution = matches!(order.closed(), Some((CloseReason::MarketResolved, _)));
    match (dialect, order.status()) {
        (Dialect::Plain, Status::Pending) => "ORDER_STATUS_LIVE",
        (Dialect::Plain, Status::Filled) => "ORDER_STATUS_MATCHED",
        (Dialect::Plain, Status::Cancelled | Status::Expired) => "ORDER_STATUS_CANCELED",
        (Dialect::Strict, Status::Pending) => "LIVE",
        (Dialect::Strict, Status::Filled) => "MATCHED",
        (Dialect::Strict, Status::Cancelled | Status::Expired) if by_resolution => "CANCELED_MARKET_RESOLVED",
        (Dialect::Strict, Status::Cancelled | Status::Expired) => "CANCELED",
    }
}

/// Time in force, in the venue's four words: IOC is FAK.
pub fn order_type(time_in_force: TimeInForce) -> &'static str {
    match time_in_force {
        TimeInForce::Gtc => "GTC",
        TimeInForce::Gtd => "GTD",
        TimeInForce::Fok => "FOK",
        TimeInForce::Fak | TimeInForce::Ioc => "FAK",
    }
}

/// What a placement came to: `matched` when it is done, `live` when something of it rests.
pub fn placed(order: &Order) -> &'static str {
    match order.status() {
        Status::Pending => "live",
        Status::Filled => "matched",
        Status::Cancelled | Status::Expired => "unmatched",
    }
}
