//! Orders: place, list, look up, cancel, batch, heartbeat. All interfaces for trading use the same commands and views. The
//! handlers with typed arguments also serve `/v1/ws/trade`.
//!
//! | File | Holds |
//! |---|---|
//! | `terms.rs` | request body → placement |
//! | `records.rs` | the records of requests and responses |
//! | `view.rs` | order → response |
//! | `words.rs` | the wire's words for both |
//! | `place.rs`, `list.rs`, `cancel.rs`, `batch.rs`, `heartbeat.rs` | handlers |

pub mod batch;
pub mod cancel;
pub mod heartbeat;
pub mod list;
pub mod place;
pub mod records;
pub mod terms;
pub mod view;
pub mod words;

use crate::api::wallets::WALLET_OF_ORDERS;
use crate::http::code::Code;
use crate::http::route::{Auth, BodyKind, Permission, RateClass, Route};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT};
use records::{
    BatchResults, CancelAll, CancelMarketOrders, Cancelled, HeartbeatAnswer, HeartbeatBody, HeartbeatsEnded,
    OrderDetail, OrderOrBatch, OrderPage, OrderResponse, PlaceAny, PlaceBatch,
};
use std::borrow::Cow;
use words::SideName;

/// How a request names an order.
#[derive(Debug)]
pub enum OrderName<'a> {
    /// The server's id, in any form ([`crate::api::clob::ids::named`]).
    Id(Cow<'a, str>),
    /// The client's id.
    ClientId(Cow<'a, str>),
}

/// Refusals of a placement, native or in the venue's shape.
pub const PLACEMENT: &[Code] = &[
    Code::InvalidBody,
    Code::ValidationFailed,
    Code::PriceRequired,
    Code::InvalidQuantity,
    Code::InvalidPostOnlyOrderType,
    Code::InvalidOrderExpiration,
    Code::DuplicateClientOrderId,
    Code::IdempotencyKeyReuse,
    Code::IdempotencyConflictPending,
    Code::FreeTierDailyLimit,
    Code::TradeInProgress,
    Code::WalletNotFound,
    Code::MarketNotFound,
    Code::MarketClosed,
    Code::InvalidOrderMinTickSize,
    Code::InvalidOrderMinSize,
    Code::InsufficientPosition,
    Code::VenueUnavailable,
    Code::StaleQuote,
    Code::NoExecutableDepth,
    Code::InvalidPostOnlyOrder,
    Code::FokOrderNotFilled,
    Code::InsufficientLiquidity,
    Code::InsufficientBalance,
    Code::ExecutionError,
    Code::ServerBusy,
    Code::PersistenceUnknown,
    Code::DeadlineOvershotButPersisted,
];
const SWEEP: &[Code] =
    &[Code::InvalidBody, Code::ValidationFailed, Code::WalletNotFound, Code::TradeInProgress, Code::ServerBusy];

pub const ROUTES: &[Route] = &[
    Route::post("/v1/orders", "place_order")
        .headless()
        .is_rehearsed()
        .at_root()
        .about("Place one native order, or with an array a batch of signed ones; an order that rests is a success too.")
        .params(&[IDEMPOTENCY_KEY])
        .takes::<PlaceAny<'_>>()
        .gives::<OrderOrBatch<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(&[Code::BatchLimitExceeded, Code::InvalidRequest])
        .also_fails(PLACEMENT)
        .run(|call| Box::pin(place::place(call))),
    Route::get("/v1/orders", "list_orders")
        .shows_history()
        .headless()
        .about("Orders, newest first.")
        .params(&LIST)
        .gives::<OrderPage<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor, Code::WalletNotFound])
        .run(|call| Box::pin(list::list(call))),
    Route::post("/v1/orders/batch", "place_orders")
        .headless()
        .about("Place several orders; each entry succeeds or fails by itself.")
        .takes::<PlaceBatch<'_>>()
        .gives::<BatchResults<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(&[
            Code::InvalidBody,
            Code::ValidationFailed,
            Code::BatchLimitExceeded,
            Code::TradeInProgress,
            Code::IdempotencyConflictPending,
        ])
        .run(|call| Box::pin(batch::place(call))),
    Route::get("/v1/orders/{order_id}", "get_order")
        .shows_history()
        .headless()
        .about("One order with its fills.")
        .params(&LOOKUP)
        .gives::<OrderDetail<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound, Code::InvalidSource, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(list::by_id(call))),
    Route::get("/v1/orders/by-client-id/{client_order_id}", "get_order_by_client_id")
        .shows_history()
        .headless()
        .about("The same by the id that it was sent with, as long as that counts.")
        .params(&LOOKUP)
        .gives::<OrderDetail<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound, Code::InvalidSource, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(list::by_client_id(call))),
    Route::delete("/v1/orders/{order_id}", "cancel_order")
        .headless()
        .about("Cancel the part of an order that rests.")
        .gives::<OrderResponse<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::OrderNotFound, Code::OrderNotCancellable, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::by_id(call))),
    Route::delete("/v1/orders/by-client-id/{client_order_id}", "cancel_order_by_client_id")
        .headless()
        .about("The same by the id that it was sent with, as long as that counts.")
        .gives::<OrderResponse<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::OrderNotFound, Code::OrderNotCancellable, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::by_client_id(call))),
    Route::post("/v1/cancel-all", "cancel_all")
        .at_root()
        .about("Cancel every open order, with a confirmation.")
        .params(&CONFIRM)
        .takes::<CancelAll>()
        .gives::<Cancelled>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::ConfirmationRequired, Code::ValidationFailed, Code::WalletNotFound, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::all_confirmed(call))),
    Route::delete("/v1/cancel-all", "cancel_all_unconfirmed")
        .at_root()
        .about("The same as the venue's clients send it; deprecated for others.")
        .params(&[WALLET_OF_ORDERS])
        .takes::<CancelAll>()
        .gives::<Cancelled>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(SWEEP)
        .run(|call| Box::pin(cancel::all_unconfirmed(call))),
    Route::delete("/v1/cancel-market-orders", "cancel_market_orders")
        .at_root()
        .about("Cancel the open orders of a market or token.")
        .params(&SWEEP_MARKET_PARAMS)
        .takes::<CancelMarketOrders<'_>>()
        .gives::<Cancelled>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::InvalidRequest, Code::InvalidBody, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(cancel::market(call))),
    Route::post("/v1/cancel-market-orders", "cancel_market_orders_by_post")
        .at_root()
        .about("The same by POST.")
        .params(&SWEEP_MARKET_PARAMS)
        .takes::<CancelMarketOrders<'_>>()
        .gives::<Cancelled>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::InvalidRequest, Code::InvalidBody, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(cancel::market(call))),
    Route::post("/v1/heartbeats", "beat")
        .at_root()
        .about("Arm the safeguard, or keep it from lapsing: then every open order is cancelled.")
        .takes::<HeartbeatBody<'_>>()
        .body(BodyKind::Optional)
        .gives::<HeartbeatAnswer<'_>>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::InvalidBody, Code::ValidationFailed, Code::InvalidRequest, Code::TradeInProgress])
        .run(|call| Box::pin(heartbeat::beat(call))),
    Route::delete("/v1/heartbeats", "end_beats")
        .at_root()
        .about("Disarm the safeguard without cancelling anything.")
        .gives::<HeartbeatsEnded>(200)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::TradeInProgress])
        .run(|call| Box::pin(heartbeat::end(call))),
];

/// `wallet_id` of the lookup of one order.
const ANY_WALLET_ID: Param =
    Param::query("wallet_id", WALLET_OF_ORDERS.schema, "Only in this wallet; by default in every wallet of the user.");
const IDEMPOTENCY_KEY: Param = Param::header(
    "Idempotency-Key",
    Schema::Text(256),
    "The same as `client_order_id`; when both are sent they agree.",
);
const CONFIRM: [Param; 3] = [
    Param::header("X-Confirm-Cancel-All", TEXT, "`true` confirms that every open order is to be cancelled."),
    Param::query("confirm", BOOLEAN, "Instead of the header."),
    WALLET_OF_ORDERS,
];

const LIST: [Param; 8] = [
    Param::query(
        "status",
        Schema::Word(&[
            "PENDING",
            "FILLED",
            "CANCELLED",
            "EXPIRED",
            "REJECTED",
            "ERROR",
            "OPEN",
            "LIVE",
            "MATCHED",
            "CANCELED",
            "ALL",
        ]),
        "In any case; OPEN and LIVE are PENDING, MATCHED is FILLED. Default: all.",
    ),
    Param::query("market_id", TEXT, "Only orders of this market; of an unknown one there are none."),
    Param::query("side", Schema::of::<SideName>(), "In any case."),
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Default 50."),
    Param::query("offset", OFFSET, "Rows to leave out; not together with a cursor."),
    Param::query("cursor", TEXT, "`next_cursor` of the page before."),
    Param::query("next_cursor", TEXT, "The same; `cursor` wins."),
    WALLET_OF_ORDERS,
];

const LOOKUP: [Param; 2] = [
    Param::query(
        "source",
        Schema::Word(&["pending", "filled"]),
        "`filled`: only when it is FILLED; `pending`: only when it is not.",
    ),
    ANY_WALLET_ID,
];

const SWEEP_MARKET_PARAMS: [Param; 3] = [
    Param::query("market", TEXT, "Condition id; wins over the body."),
    Param::query("asset_id", TEXT, "Token id; wins over the body."),
    WALLET_OF_ORDERS,
];

#[cfg(test)]
mod late;
#[cfg(test)]
mod tests;
