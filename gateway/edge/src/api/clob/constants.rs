//! Endpoints of the venue's clients whose answer never changes, because what they are about does not exist here: rewards,
//! notifications, requests for quotes, keys of the venue's kinds (gateway/docs/venue-clients.md §1.6, §8). One line each:
//! the answer is the only value of a record, or a refusal.

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{EmptyList, Record, record};
use crate::http::reply::{Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Permission, Route, Running};
use crate::http::scalar::words;
use crate::http::schema::{Param, TEXT};
use wire::cursor;

words! {
    pub Done = "OK";
    pub LastCursor = "LTE=";
}

impl Record for Done {
    fn example() -> Done {
        "OK".into()
    }
}

record! {
    /// Whether the caller's country is blocked. Always false.
    pub struct Geoblock {
        blocked: bool = false, "Always false.";
        #[schemars(length(max = 0))]
        ip: &'static str = "", "Not reported.";
        #[schemars(length(max = 0))]
        country: &'static str = "", "Not reported.";
        #[schemars(length(max = 0))]
        region: &'static str = "", "Not reported.";
    }

    /// Whether an order earns rewards. Always false.
    pub struct OrderScoring {
        scoring: bool = false, "Always false.";
    }

    /// The only page of a list without rows.
    pub struct NoRows {
        #[schemars(range(min = 100, max = 100))]
        limit: u64 = 100, "Rows of a page.";
        #[schemars(range(max = 0))]
        count: u64 = 0, "Rows of this page.";
        next_cursor: LastCursor = cursor::END.into(), "After the last page.";
        data: EmptyList = EmptyList, "No rows.";
    }

    /// The only page of a list that has no rows here.
    pub struct EmptyPage {
        #[schemars(range(min = 1, max = 500))]
        limit: u64 = 100, "Rows of a page.";
        #[schemars(range(max = 500))]
        count: u64 = 0, "Rows of this page.";
        next_cursor: &'static str = cursor::END, "`LTE=` at the end.";
        data: EmptyList = EmptyList, "No rows.";
    }

    /// An object without fields.
    pub struct NoPercentages {}

    /// The fees of a builder.
    pub struct BuilderFees {
        #[schemars(range(max = 0))]
        builder_maker_fee_rate_bps: u64 = 0, "Always 0.";
        #[schemars(range(max = 0))]
        builder_taker_fee_rate_bps: u64 = 0, "Always 0.";
    }

    /// Whether a read-only key of the venue's kind is valid.
    pub struct KeyValidity {
        valid: bool = false, "Always false.";
    }

    /// Read-only keys of the venue's kind.
    pub struct ReadonlyKeys {
        #[serde(rename = "readonlyApiKeys")]
        keys: EmptyList = EmptyList, "Always empty.";
    }
}

const ALIVE: &str = "Shows that the server is up.";
const COUNTRY: &str = "Whether the caller's country is blocked. Always false.";
const LIST: &str = "A feature of the venue that this server does not have. Always an empty list.";
const PAGE: &str = "A feature of the venue that this server does not have. Always one page without rows.";
const NO_NOTIFICATIONS: &str = "Has no effect: this server has no notifications.";
const SCORING: &str = "Whether an order earns rewards. Always false.";
const PERCENTAGES: &str = "Shares of rewards by market. Always empty.";
const BUILDER_FEES: &str = "The fees of a builder. Always zero.";
const NO_QUOTES: &str = "Always refused: this server has no requests for quotes.";
const BUILDER_TRADES: &str = "Trades of a builder. Always one page without rows.";
const PRE_MIGRATION: &str = "Orders from before a migration of the venue. Always one page without rows.";
const KEY_DELETED: &str = "Has no effect. DELETE /v1/keys/{id} revokes a key.";
const NO_KEYS: &str = "Keys of a kind that this server does not have. Always empty.";
const NO_KEY: &str = "Has no effect: this server has no keys of this kind.";
const NOT_ISSUED: &str = "Always refused: this server issues no keys of this kind.";
const INVALID_KEY: &str = "Whether a read-only key of the venue's kind is valid. Always false.";

const ORDER: &[Param] = &[Param::query("order_id", TEXT, "The order; ignored.")];

/// Of the group of orders and trades.
pub const TRADING: &[Route] = &[
    // Clients send it with the builder's headers alone.
    get::<EmptyPage>("/v1/builder/trades", "list_builder_trades", BUILDER_TRADES),
    get::<EmptyPage>("/v1/data/pre-migration-orders", "list_pre_migration_orders", PRE_MIGRATION)
        .auth(Auth::Key)
        .needs(Permission::Read),
];

/// Of the group of keys.
pub const KEYS: &[Route] = &[
    delete("/v1/auth/api-key", "delete_venue_key", KEY_DELETED).auth(Auth::Key),
    get::<ReadonlyKeys>("/v1/auth/readonly-api-keys", "list_readonly_keys", NO_KEYS).auth(Auth::Key),
    get::<EmptyList>("/v1/auth/readonly-api-key", "get_readonly_keys", NO_KEYS).auth(Auth::Key),
    not_issued("/v1/auth/readonly-api-key", "create_readonly_key"),
    delete("/v1/auth/readonly-api-key", "delete_readonly_key", NO_KEY).auth(Auth::Key),
    get::<KeyValidity>("/v1/auth/validate-readonly-api-key", "validate_readonly_key", INVALID_KEY),
    get::<KeyValidity>("/v1/auth/readonly-api-key/validate", "validate_readonly_key_below", INVALID_KEY),
    get::<EmptyList>("/v1/auth/builder-api-key", "list_builder_keys", NO_KEYS).auth(Auth::Key),
    not_issued("/v1/auth/builder-api-key", "create_builder_key"),
    // Clients send it with the builder's headers alone.
    delete("/v1/auth/builder-api-key", "delete_builder_key", NO_KEY),
];

/// Of the group of housekeeping.
pub const HOUSEKEEPING: &[Route] = &[
    get::<Done>("/v1/", "get_root", ALIVE).no_store(),
    get::<Done>("/v1/ok", "get_ok", ALIVE).no_store(),
    get::<Geoblock>("/v1/geoblock", "get_geoblock", COUNTRY),
    always::<Geoblock>(Route::get("/api/geoblock", "get_geoblock_outside")).about(COUNTRY),
    get::<EmptyList>("/v1/live-activity/events/{condition_id}", "list_live_activity", LIST),
    get::<EmptyList>("/v1/markets/live-activity/{condition_id}", "list_market_live_activity", LIST),
    get::<EmptyList>("/v1/notifications", "list_notifications", LIST).auth(Auth::Key),
    delete("/v1/notifications", "drop_notifications", NO_NOTIFICATIONS).auth(Auth::Key),
    get::<OrderScoring>("/v1/order-scoring", "get_order_scoring", SCORING).auth(Auth::Key).params(ORDER),
    get::<NoRows>("/v1/rewards/user", "list_rewards", PAGE).auth(Auth::Key),
    get::<EmptyList>("/v1/rewards/user/total", "get_rewards_total", LIST).auth(Auth::Key),
    get::<NoPercentages>("/v1/rewards/user/percentages", "get_rewards_percentages", PERCENTAGES).auth(Auth::Key),
    get::<NoRows>("/v1/rewards/user/markets", "list_rewards_by_market", PAGE).auth(Auth::Key),
    get::<NoRows>("/v1/rewards/markets/current", "list_rewarded_markets", PAGE),
    get::<NoRows>("/v1/rewards/markets/{condition_id}", "list_market_rewards", PAGE),
    get::<EmptyList>("/v1/rebates/current", "list_rebates", LIST),
    get::<BuilderFees>("/v1/fees/builder-fees/{code}", "get_builder_fees", BUILDER_FEES),
    get::<NoRows>("/v1/rfq/data/requests", "list_rfq_requests", PAGE).auth(Auth::Key),
    get::<NoRows>("/v1/rfq/data/quotes", "list_rfq_quotes", PAGE).auth(Auth::Key),
    get::<NoRows>("/v1/rfq/data/requester/quotes", "list_rfq_requester_quotes", PAGE).auth(Auth::Key),
    get::<NoRows>("/v1/rfq/data/quoter/quotes", "list_rfq_quoter_quotes", PAGE).auth(Auth::Key),
    get::<NoRows>("/v1/rfq/data/best-quote", "get_rfq_best_quote", PAGE).auth(Auth::Key),
    no_quotes(Route::get("/v1/rfq/config", "get_rfq_config")),
    no_quotes(Route::post("/v1/rfq/request", "create_rfq_request")),
    no_quotes(Route::delete("/v1/rfq/request", "cancel_rfq_request")),
    no_quotes(Route::post("/v1/rfq/quote", "create_rfq_quote")),
    no_quotes(Route::delete("/v1/rfq/quote", "cancel_rfq_quote")),
    no_quotes(Route::post("/v1/rfq/request/accept", "accept_rfq_quote")),
    no_quotes(Route::post("/v1/rfq/quote/approve", "approve_rfq_order")),
];

/// Answers with the example of a record, which is its only value.
const fn always<T: Record + 'static>(route: Route) -> Route {
    route.gives::<T>(200).run(|_| Box::pin(async { Ok(Reply::json(&T::example())) }))
}

const fn get<T: Record + 'static>(path: &'static str, name: &'static str, about: &'static str) -> Route {
    always::<T>(Route::get(path, name)).about(about).at_root()
}

const fn delete(path: &'static str, name: &'static str, about: &'static str) -> Route {
    always::<Done>(Route::delete(path, name)).about(about).at_root()
}

/// Refuses every request.
const fn refused(route: Route, about: &'static str, refuse: fn(Call) -> Running) -> Route {
    let route = route.about(about).at_root().auth(Auth::Key);
    route.body(BodyKind::Ignored).fails(&[Code::InvalidRequest]).run(refuse)
}

const fn not_issued(path: &'static str, name: &'static str) -> Route {
    refused(Route::post(path, name), NOT_ISSUED, |_| {
        let message = "Keys of this kind are not issued here; a read-only key is made by POST /v1/keys.";
        Box::pin(async move { Err(Refusal::new(Code::InvalidRequest, message)) })
    })
}

const fn no_quotes(route: Route) -> Route {
    refused(route, NO_QUOTES, |_| Box::pin(async { Err(Refusal::new(Code::InvalidRequest, "rfq is not supported")) }))
}
