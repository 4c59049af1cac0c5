//! Orders: place, list, look up, cancel, batch, heartbeat. They use the same commands and views as every other way to
//! trade. The handlers with typed arguments are those of `/v1/ws/trade` too.
//!
//! | File | Holds |
//! |---|---|
//! | `terms.rs` | request body → placement |
//! | `view.rs` | order → response shapes |
//! | `shape.rs` | the shapes of both for the machine description |
//! | `words.rs` | the wire's words for both |
//! | `place.rs`, `list.rs`, `cancel.rs`, `batch.rs`, `heartbeat.rs` | handlers |

pub mod batch;
pub mod cancel;
pub mod heartbeat;
pub mod list;
pub mod place;
pub mod shape;
pub mod terms;
pub mod view;
pub mod words;

use crate::http::code::Code;
use crate::http::route::{Auth, BodyKind, Permission, RateClass, Route};
use std::borrow::Cow;

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
        .at_root()
        .about("Place one native order, or with an array a batch of signed ones; an order that rests is a success too.")
        .params(&[shape::IDEMPOTENCY_KEY])
        .takes_shape(&shape::PLACE_ANY, shape::PLACE_EXAMPLE)
        .gives_shape(200, &shape::ORDER_OR_BATCH, shape::ORDER_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(&[Code::BatchLimitExceeded, Code::InvalidRequest])
        .also_fails(PLACEMENT)
        .run(|call| Box::pin(place::place(call))),
    Route::get("/v1/orders", "list_orders")
        .headless()
        .about("Orders, newest first.")
        .params(&shape::LIST)
        .gives_shape(200, &shape::PAGE, shape::PAGE_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor, Code::WalletNotFound])
        .run(|call| Box::pin(list::list(call))),
    Route::post("/v1/orders/batch", "place_orders")
        .headless()
        .about("Place several orders; each entry succeeds or fails by itself.")
        .takes_shape(&shape::BATCH, shape::BATCH_EXAMPLE)
        .gives_shape(200, &shape::RESULTS, shape::RESULTS_EXAMPLE)
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
        .headless()
        .about("One order with its fills.")
        .params(&shape::LOOKUP)
        .gives_shape(200, &shape::DETAIL, shape::DETAIL_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound, Code::InvalidSource, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(list::by_id(call))),
    Route::get("/v1/orders/by-client-id/{client_order_id}", "get_order_by_client_id")
        .headless()
        .about("The same by the id that it was sent with.")
        .params(&shape::LOOKUP)
        .gives_shape(200, &shape::DETAIL, shape::DETAIL_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound, Code::InvalidSource, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(list::by_client_id(call))),
    Route::delete("/v1/orders/{order_id}", "cancel_order")
        .headless()
        .about("Cancel what of an order still rests.")
        .gives_shape(200, &shape::ORDER, shape::ORDER_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::OrderNotFound, Code::OrderNotCancellable, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::by_id(call))),
    Route::delete("/v1/orders/by-client-id/{client_order_id}", "cancel_order_by_client_id")
        .headless()
        .about("The same by the id that it was sent with.")
        .gives_shape(200, &shape::ORDER, shape::ORDER_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::OrderNotFound, Code::OrderNotCancellable, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::by_client_id(call))),
    Route::post("/v1/cancel-all", "cancel_all")
        .at_root()
        .about("Cancel every open order, with a confirmation.")
        .params(&shape::CONFIRM)
        .takes_shape(&shape::SWEEP, shape::SWEEP_EXAMPLE)
        .gives_shape(200, &shape::SWEPT, shape::SWEPT_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::ConfirmationRequired, Code::ValidationFailed, Code::WalletNotFound, Code::TradeInProgress])
        .run(|call| Box::pin(cancel::all_confirmed(call))),
    Route::delete("/v1/cancel-all", "cancel_all_unconfirmed")
        .at_root()
        .about("The same as the venue's clients send it; deprecated for others.")
        .params(&[shape::WALLET_ID])
        .takes_shape(&shape::SWEEP, shape::SWEEP_EXAMPLE)
        .gives_shape(200, &shape::SWEPT, shape::SWEPT_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(SWEEP)
        .run(|call| Box::pin(cancel::all_unconfirmed(call))),
    Route::delete("/v1/cancel-market-orders", "cancel_market_orders")
        .at_root()
        .about("Cancel the open orders of a market or token.")
        .params(&shape::SWEEP_MARKET_PARAMS)
        .takes_shape(&shape::SWEEP_MARKET, shape::SWEEP_MARKET_EXAMPLE)
        .gives_shape(200, &shape::SWEPT, shape::SWEPT_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::InvalidRequest, Code::InvalidBody, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(cancel::market(call))),
    Route::post("/v1/cancel-market-orders", "cancel_market_orders_by_post")
        .at_root()
        .about("The same by POST.")
        .params(&shape::SWEEP_MARKET_PARAMS)
        .takes_shape(&shape::SWEEP_MARKET, shape::SWEEP_MARKET_EXAMPLE)
        .gives_shape(200, &shape::SWEPT, shape::SWEPT_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Optional)
        .fails(&[Code::InvalidRequest, Code::InvalidBody, Code::ValidationFailed, Code::WalletNotFound])
        .run(|call| Box::pin(cancel::market(call))),
    Route::post("/v1/heartbeats", "beat")
        .at_root()
        .about("Arm the safeguard, or keep it from lapsing: then every open order is cancelled.")
        .takes_shape(&shape::BEAT, shape::BEAT_EXAMPLE)
        .body(BodyKind::Optional)
        .gives_shape(200, &shape::BEATING, shape::BEATING_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::InvalidBody, Code::ValidationFailed, Code::InvalidRequest, Code::TradeInProgress])
        .run(|call| Box::pin(heartbeat::beat(call))),
    Route::delete("/v1/heartbeats", "end_beats")
        .at_root()
        .about("Disarm the safeguard without cancelling anything.")
        .gives_shape(200, &shape::ENDED, shape::ENDED_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .fails(&[Code::TradeInProgress])
        .run(|call| Box::pin(heartbeat::end(call))),
];

#[cfg(test)]
mod late;
#[cfg(test)]
mod tests;
