//! The venue's words for refusals (gateway/docs/venue-clients.md §5.3) and for the states of an order (§7.2 there).

use crate::http::code::Code;
use crate::http::dialect::Dialect;
use crate::http::reply::Refusal;
use crate::http::scalar::words;
use engine::amount::{Cash, Qty, TickSize};
use engine::order::{CloseReason, Order, Status, TimeInForce};
use engine::reject::Reject;
use wire::decimal;

words! {
    pub VenueOrderType = "GTC", "GTD", "FOK", "FAK";
    pub PlainStatus = "ORDER_STATUS_LIVE", "ORDER_STATUS_MATCHED", "ORDER_STATUS_CANCELED", "ORDER_STATUS_INVALID";
    pub StrictStatus = "LIVE", "MATCHED", "CANCELED", "CANCELED_MARKET_RESOLVED", "INVALID";
}

/// Why an order was not cancelled, for every reason.
pub const NOT_CANCELED: &str = "order can't be found - already canceled or matched";

/// What the sentence of a refusal repeats of the request.
#[derive(Clone, Copy, Debug, Default)]
pub struct OrderEcho {
    /// As the client implied it, 10⁻⁶ USD a share.
    pub price: Cash,
    pub size: Qty,
    /// In place of an id: a refused order has none.
    pub digest: [u8; 32],
}

/// A refusal in the venue's sentence, so that clients which match texts understand it. `reject` is the engine's reason, if
/// the engine refused.
pub fn worded(refusal: Refusal, reject: Option<&Reject>, echo: &OrderEcho) -> Refusal {
    // The venue refuses a size above the cap as a malformed body.
    let above_cap = matches!(reject, Some(Reject::AboveShareCap { .. }));
    let refusal = if above_cap { Code::InvalidOrderPayload.into() } else { refusal };
    match refusal.code() {
        Code::InsufficientBalance | Code::InsufficientPosition => {
            refusal.with_message("not enough balance / allowance")
        }
        Code::FokOrderNotFilled => {
            refusal.with_message("order couldn't be fully filled. FOK orders are fully filled or killed.")
        }
        Code::NoExecutableDepth => refusal.with_message(
            "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.",
        ),
        Code::InvalidPostOnlyOrder => refusal.with_message("invalid post-only order: order crosses book"),
        Code::InvalidOrderExpiration => refusal.with_message("invalid expiration"),
        Code::MarketNotFound => refusal.with_message("market not found"),
        Code::MarketClosed => refusal.with_message("the market is not accepting orders"),
        Code::InvalidOrderPayload => refusal.with_message("Invalid order payload"),
        Code::InvalidOrderMinTickSize => match reject {
            Some(Reject::OffTick { tick }) => refusal.with_message(off_tick(echo, *tick)),
            _ => refusal,
        },
        Code::InvalidOrderMinSize => match reject {
            Some(Reject::BelowMinimum { minimum }) => refusal.with_message(below_minimum(echo, *minimum)),
            _ => refusal,
        },
        _ => refusal,
    }
}

pub(super) fn off_tick(echo: &OrderEcho, tick: TickSize) -> String {
    let (price, tick) =
        (decimal::text(|out| decimal::money(out, echo.price)), decimal::text(|out| decimal::tick(out, tick)));
    format!("order {} is invalid. Price ({price}) breaks minimum tick size rule: {tick}", order(echo))
}

pub(super) fn below_minimum(echo: &OrderEcho, minimum: Qty) -> String {
    let text = |qty| decimal::text(|out| decimal::size(out, qty));
    format!("order {} is invalid. Size ({}) lower than the minimum: {}", order(echo), text(echo.size), text(minimum))
}

fn order(echo: &OrderEcho) -> String {
    decimal::text(|out| {
        out.extend_from_slice(b"0x");
        super::ids::hex(out, &echo.digest);
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

/// The status of a placed order: `matched` when it is filled, `live` when a part of it rests. A repeat of an order that
/// was cancelled since is `unmatched`.
pub fn placed(order: &Order) -> &'static str {
    match order.status() {
        Status::Pending => "live",
        Status::Filled => "matched",
        Status::Cancelled | Status::Expired => "unmatched",
    }
}
