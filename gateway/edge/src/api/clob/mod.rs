//! What the venue's own clients ask, in their shapes (venue.md). Trading (§5 to §7) runs through the same commands as the
//! native routes; only bodies, ids, words and rows differ. Reads beside those of `books` and `prices`, and everything
//! around keys (§1 to §4, §8), have tables of their own.
//!
//! | File | Holds |
//! |---|---|
//! | `signed.rs`, `amounts.rs` | signed order → placement: fields; price and size |
//! | `flat.rs` | flat order → placement |
//! | `order_hash.rs` | the EIP-712 hash of a signed order |
//! | `ids.rs`, `words.rs`, `rows.rs` | what answers are made of |
//! | `shape.rs` | the same for the machine description |
//! | `place.rs`, `cancel.rs`, `list.rs` | handlers |
//! | `tokens.rs`, `prices.rs` | lists of tokens; prices of many of them |
//! | `markets.rs` | lists of markets, one market |
//! | `credentials.rs`, `address_login.rs`, `signature.rs` | keys; the account of an address; what it signs |
//! | `housekeeping.rs` | what is asked around trading, and what does not exist here |

pub mod address_login;
pub mod amounts;
pub mod cancel;
pub mod credentials;
pub mod flat;
pub mod housekeeping;
pub mod ids;
pub mod list;
pub mod markets;
mod order_hash;
pub mod place;
pub mod prices;
pub mod read_shape;
pub mod rows;
pub mod shape;
pub mod signature;
pub mod signed;
pub mod tokens;
pub mod words;

use crate::api::orders::PLACEMENT;
use crate::http::code::Code;
use crate::http::route::{Auth, BodyKind, Permission, RateClass, Route};

/// What is refused of an order in the venue's shapes beside what is refused of every order.
const SHAPE: &[Code] = &[Code::InvalidOrderPayload, Code::UnsupportedOrderType];
const CANCEL: &[Code] = &[Code::InvalidBody, Code::TradeInProgress, Code::ServerBusy, Code::PersistenceUnknown];

pub const ROUTES: &[Route] = &[
    Route::post("/v1/order", "place_signed_order")
        .about("Place one signed order.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(SHAPE)
        .also_fails(PLACEMENT)
        .params(&shape::IDEMPOTENCY_KEY)
        .takes_shape(&shape::PLACE, shape::PLACE_EXAMPLE)
        .gives_shape(200, &shape::PLACED, shape::PLACED_EXAMPLE)
        .run(|call| Box::pin(place::signed(call))),
    Route::post("/v1/clob/order", "place_flat_order")
        .about("Place one order in plain decimals.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(SHAPE)
        .also_fails(PLACEMENT)
        .params(&shape::IDEMPOTENCY_KEY)
        .takes_shape(&shape::FLAT, shape::FLAT_EXAMPLE)
        .gives_shape(200, &shape::FLAT_PLACED, shape::FLAT_PLACED_EXAMPLE)
        .run(|call| Box::pin(place::flat(call))),
    Route::delete("/v1/order", "cancel_named_order")
        .about("Cancel one order; an id that cannot be cancelled is answered, not refused.")
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
        .takes_shape(&shape::CANCEL, shape::CANCEL_EXAMPLE)
        .gives_shape(200, &shape::CANCELED, shape::CANCELED_EXAMPLE)
        .run(|call| Box::pin(cancel::one(call))),
    Route::delete("/v1/orders", "cancel_named_orders")
        .about("Cancel up to 3 000 orders in one call.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Required)
        .fails(CANCEL)
        .takes_shape(&shape::CANCEL_MANY, shape::CANCEL_MANY_EXAMPLE)
        .gives_shape(200, &shape::CANCELED, shape::CANCELED_EXAMPLE)
        .run(|call| Box::pin(cancel::several(call))),
    Route::get("/v1/data/order/{order_id}", "get_venue_order")
        .about("One order row, in any status.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .params(&shape::LOOKUP)
        .gives_shape(200, &shape::ORDER, shape::ORDER_EXAMPLE)
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/order/{order_id}", "get_venue_order_by_alias")
        .about("The same under an older path.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .params(&shape::LOOKUP)
        .gives_shape(200, &shape::ORDER, shape::ORDER_EXAMPLE)
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/data/orders", "list_venue_orders")
        .about("Order rows by cursor, open ones by default.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .params(&shape::ORDER_FILTER)
        .gives_shape(200, &shape::ORDERS, shape::PAGE_EXAMPLE)
        .run(|call| Box::pin(list::orders(call))),
    Route::get("/v1/data/trades", "list_venue_trades")
        .about("Trade rows by cursor.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .params(&shape::TRADE_FILTER)
        .gives_shape(200, &shape::TRADES, shape::PAGE_EXAMPLE)
        .run(|call| Box::pin(list::trades(call))),
    // Clients send it with the builder's headers alone.
    Route::get("/v1/builder/trades", "list_builder_trades")
        .about("Trades of a builder: there are none here.")
        .at_root()
        .gives_shape(200, &shape::NOTHING, shape::PAGE_EXAMPLE)
        .run(|call| Box::pin(list::nothing(call))),
    Route::get("/v1/data/pre-migration-orders", "list_pre_migration_orders")
        .about("Orders of before a migration: there are none here.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .gives_shape(200, &shape::NOTHING, shape::PAGE_EXAMPLE)
        .run(|call| Box::pin(list::nothing(call))),
];

const LIST: &[Code] = &[Code::ValidationFailed, Code::InvalidTimeFilter, Code::InvalidCursor, Code::WalletNotFound];
