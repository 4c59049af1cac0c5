//! The requests of the venue's own clients, in their shapes (gateway/docs/venue-clients.md). Trading runs through the same
//! commands as the native routes; only bodies, ids, words and rows differ. Reads beside those of `books` and `prices`, and
//! everything around keys, have tables of their own.
//!
//! | File | Holds |
//! |---|---|
//! | `requests.rs` | request bodies for the machine description |
//! | `signed.rs`, `amounts.rs` | signed order → placement: fields; price and size |
//! | `flat.rs` | flat order → placement |
//! | `order_hash.rs` | the EIP-712 hash of a signed order |
//! | `rehearsal/` | the venue's checks of a signed order, reported or refused |
//! | `ids.rs`, `words.rs`, `rows.rs` | ids, words and rows of answers |
//! | `place.rs`, `cancel.rs`, `list.rs` | handlers, with the records that they answer |
//! | `tokens.rs`, `prices.rs` | lists of tokens; prices of many of them |
//! | `markets.rs` | lists of markets, one market |
//! | `credentials.rs`, `address_login.rs`, `signature.rs` | keys; the account of an address; what it signs |
//! | `housekeeping.rs` | balances and other requests around trading |
//! | `constants.rs` | endpoints whose answer never changes |

pub mod address_login;
pub mod amounts;
pub mod cancel;
pub mod constants;
pub mod credentials;
pub mod flat;
pub mod housekeeping;
pub mod ids;
pub mod list;
pub mod markets;
mod order_hash;
pub mod place;
pub mod prices;
mod rehearsal;
pub mod requests;
pub mod rows;
pub mod signature;
pub mod signed;
pub mod tokens;
pub mod words;

use crate::api::orders::PLACEMENT;
use crate::api::wallets::WALLET_OF_ORDERS;
use crate::http::code::Code;
use crate::http::record::{Example, value};
use crate::http::route::{Auth, BodyKind, Permission, RateClass, Route, joined};
use crate::http::schema::{Param, Schema, TEXT};
use cancel::CanceledOrders;
use list::{VenueOrderPage, VenueTradePage};
use place::{PlacedFlatOrder, PlacedOrder};
use requests::{CancelOrder, CancelOrders, PlaceFlatOrder, PlaceSignedOrder, two_orders};
use rows::OrderRow;

/// Refusals of an order in the venue's shapes, besides those of every order.
const SHAPE: &[Code] = &[Code::InvalidOrderPayload, Code::UnsupportedOrderType];
/// The same of a signed order, with those of the rehearsal.
const SIGNED: &[Code] = &[
    Code::InvalidOrderPayload,
    Code::UnsupportedOrderType,
    Code::OrderVersionMismatch,
    Code::OwnerNotKey,
    Code::InvalidSignature,
    Code::SignerNotKey,
    Code::MakerNotAllowed,
    Code::OrderDuplicated,
    Code::InvalidAmounts,
    Code::MarketableMin,
];
const CANCEL: &[Code] = &[Code::InvalidBody, Code::TradeInProgress, Code::ServerBusy, Code::PersistenceUnknown];

pub const ROUTES: &[Route] = &joined::<{ OWN.len() + constants::TRADING.len() }>(OWN, constants::TRADING);

const OWN: &[Route] = &[
    Route::post("/v1/order", "place_signed_order")
        .about("Place one signed order.")
        .is_rehearsed()
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(SIGNED)
        .also_fails(PLACEMENT)
        .params(&IDEMPOTENCY_KEY)
        .takes::<PlaceSignedOrder<'_>>()
        .gives::<PlacedOrder<'_>>(200)
        .run(|call| Box::pin(place::signed(call))),
    Route::post("/v1/clob/order", "place_flat_order")
        .about("Place one order in plain decimals.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .rate(RateClass::Placement)
        .fails(SHAPE)
        .also_fails(PLACEMENT)
        .params(&IDEMPOTENCY_KEY)
        .takes::<PlaceFlatOrder<'_>>()
        .gives::<PlacedFlatOrder<'_>>(200)
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
        .takes::<CancelOrder<'_>>()
        .gives::<CanceledOrders<'_>>(200)
        .run(|call| Box::pin(cancel::one(call))),
    Route::delete("/v1/orders", "cancel_named_orders")
        .about("Cancel up to 3 000 orders in one call.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Trade)
        .body(BodyKind::Required)
        .fails(CANCEL)
        .takes_with::<CancelOrders<'_>>(Example::Of(|| value(&two_orders())))
        .gives::<CanceledOrders<'_>>(200)
        .run(|call| Box::pin(cancel::several(call))),
    Route::get("/v1/data/order/{order_id}", "get_venue_order")
        .shows_history()
        .about("One order row, in any status.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .params(&LOOKUP)
        .gives::<OrderRow<'_>>(200)
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/order/{order_id}", "get_venue_order_by_alias")
        .shows_history()
        .about("The same under an older path.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::OrderNotFound])
        .params(&LOOKUP)
        .gives::<OrderRow<'_>>(200)
        .run(|call| Box::pin(list::order(call))),
    Route::get("/v1/data/orders", "list_venue_orders")
        .shows_history()
        .about("Order rows by cursor, open ones by default.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .params(&ORDER_FILTER)
        .gives::<VenueOrderPage<'_>>(200)
        .run(|call| Box::pin(list::orders(call))),
    Route::get("/v1/data/trades", "list_venue_trades")
        .shows_history()
        .about("Trade rows by cursor.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(LIST)
        .params(&TRADE_FILTER)
        .gives::<VenueTradePage<'_>>(200)
        .run(|call| Box::pin(list::trades(call))),
];

const LIST: &[Code] = &[Code::ValidationFailed, Code::InvalidTimeFilter, Code::InvalidCursor, Code::WalletNotFound];

const IDEMPOTENCY_KEY: [Param; 1] = [Param::header(
    "Idempotency-Key",
    Schema::Text(256),
    "The same as `client_order_id`; when both are sent they agree.",
)];

/// Overrules how a request's headers choose the types of rows.
const DIALECT: Param = Param::query(
    "dialect",
    Schema::Word(&["plain", "strict"]),
    "Types of the rows. Default: strict for clients of the venue's kind, else plain.",
);
const LOOKUP: [Param; 2] = [DIALECT, QUEUE];

/// Rows of orders have more fields.
const QUEUE: Param = Param::query(
    "queue",
    Schema::Word(&["1"]),
    "1: rows have `fill_model`, and those of orders in a queue `queue_ahead`, `queue_total` and `queue_confidence`.",
);

const MARKET: Param = Param::query("market", TEXT, "Condition id; of an unknown market there are no rows.");
const ASSET: Param = Param::query("asset_id", TEXT, "Token id; of an unknown token there are no rows.");
const BEFORE: Param = Param::query("before", TEXT, "Only earlier rows: unix seconds or an ISO time.");
const AFTER: Param = Param::query("after", TEXT, "Only rows from then on: unix seconds or an ISO time.");
const NEXT_CURSOR: Param = Param::query("next_cursor", TEXT, "`next_cursor` of the page before.");
const CURSOR: Param = Param::query("cursor", TEXT, "The same, and wins.");
const LIMIT: Param = Param::query("limit", Schema::Integer { min: 1, max: 500 }, "Default 100.");

const ORDER_FILTER: [Param; 12] = [
    Param::query("id", TEXT, "Only this order: hexadecimal or decimal."),
    MARKET,
    ASSET,
    Param::query(
        "status",
        Schema::Word(&[
            "ORDER_STATUS_LIVE",
            "ORDER_STATUS_MATCHED",
            "ORDER_STATUS_CANCELED",
            "ORDER_STATUS_INVALID",
            "LIVE",
            "MATCHED",
            "CANCELED",
            "INVALID",
            "PENDING",
            "FILLED",
            "CANCELLED",
            "EXPIRED",
            "REJECTED",
            "ERROR",
            "ALL",
        ]),
        "In any case. Default: open orders only.",
    ),
    BEFORE,
    AFTER,
    NEXT_CURSOR,
    CURSOR,
    LIMIT,
    WALLET_OF_ORDERS,
    DIALECT,
    QUEUE,
];
const TRADE_FILTER: [Param; 10] = [
    Param::query("id", TEXT, "Only this trade."),
    MARKET,
    ASSET,
    BEFORE,
    AFTER,
    NEXT_CURSOR,
    CURSOR,
    LIMIT,
    WALLET_OF_ORDERS,
    DIALECT,
];
