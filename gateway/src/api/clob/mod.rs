//! Trading in the shapes of the venue's own clients (venue.md §5 to §7): placement, cancels, orders, trades. Everything
//! runs through the same commands as the native routes; only bodies, ids, words and rows differ.
//!
//! | File | Holds |
//! |---|---|
//! | `signed.rs`, `amounts.rs` | signed order → placement: fields; price and size |
//! | `flat.rs` | flat order → placement |
//! | `ids.rs`, `words.rs`, `rows.rs` | what answers are made of |
//! | `place.rs`, `cancel.rs`, `list.rs` | handlers |

pub mod amounts;
pub mod cancel;
pub mod flat;
pub mod ids;
pub mod list;
pub mod place;
pub mod rows;
pub mod signed;
pub mod words;

use crate::http::code::Code;
use crate::http::route::{Auth, BodyKind, Permission, RateClass, Route};

/// Refusals of a placement (venue.md §5.3; trading.md §5).
const PLACEMENT: &[Code] = &[
    Code::InvalidBody,
    Code::InvalidOrderPayload,
    Code::UnsupportedOrderType,
    Code::ValidationFailed,
    Code::InvalidQuantity,
    Code::PriceRequired,
    Code::InvalidPostOnlyOrderType,
    Code::InvalidOrderExpiration,
    Code::DuplicateClientOrderId,
    Code::IdempotencyKeyReuse,
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
const CANCEL: &[Code] = &[Code::InvalidBody, Code::TradeInProgress, Code::ServerBusy, Code::PersistenceUnknown];

pub const ROUTES: &[Route] = &[
    Route::post("/v1/order", "place_signed_order")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(PLACEMENT)
        .run(|call| Box::pin(place::signed(call))),
    Route::post("/v1/clob/order", "place_flat_order")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(PLACEMENT)
        .run(|call| Box::pin(place::flat(call))),
    Route::delete("/v1/order", "cancel_named_order")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Required)
        .fails(&[
            Code::InvalidBody,
            Code::InvalidRequest,
            Code::TradeInProgress,
            Code::ServerBusy,
            Code::PersistenceUnknown,
        ])
        .run(|call| Box::pin(cancel::one(call))),
    Route::delete("/v1/orders", "cancel_named_orders")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Required)
        .fails(CANCEL)
        .run(|call| Box::pin(cancel::several(call))),
    Route::get("/v1/data/order/{order_id}", "get_venue_order")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/order/{order_id}", "get_venue_order_by_alias")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/data/orders", "list_venue_orders")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .run(|call| Box::pin(list::orders(call))),
    Route::get("/v1/data/trades", "list_venue_trades")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .run(|call| Box::pin(list::trades(call))),
    Route::get("/v1/builder/trades", "list_builder_trades")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .run(|call| Box::pin(list::nothing(call))),
    Route::get("/v1/data/pre-migration-orders", "list_pre_migration_orders")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .run(|call| Box::pin(list::nothing(call))),
];

const LIST: &[Code] = &[Code::ValidationFailed, Code::InvalidTimeFilter, Code::InvalidCursor, Code::WalletNotFound];
