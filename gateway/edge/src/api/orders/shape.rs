//! The shapes of native trading for the machine description (trading.md §1–§4, §7, §8).

use crate::api::clob::place::PlacedOrFailed;
use crate::api::clob::requests::PlaceSignedOrder;
use crate::http::record::List;
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, MONEY, OFFSET, PRICE, PRICE_OR_NULL, Param, QTY, Schema, Shape, TEXT, TEXT_OR_NULL,
    TOKEN_ID, TS, TS_OR_NULL, UUID, VENUE_TIME, field, optional,
};

/// A decimal as it is sent: a string or a number (wire.md §1).
const DECIMAL_IN: Schema = Schema::OneOf(&[Schema::Text(32), Schema::Number]);
const INTEGER_OR_NULL: Schema = Schema::Nullable(&INTEGER);
const SIDE: Schema = Schema::Word(&["BUY", "SELL"]);
const ORDER_TYPE: Schema = Schema::Word(&["market", "limit"]);
const TIME_IN_FORCE: Schema = Schema::Word(&["GTC", "GTD", "FOK", "IOC"]);
const REQUESTED_TIME_IN_FORCE: Schema = Schema::Word(&["GTC", "GTD", "FOK", "FAK", "IOC"]);
const STATUS: Schema = Schema::Word(&["PENDING", "FILLED", "CANCELLED", "EXPIRED"]);
const LIQUIDITY: Schema = Schema::Word(&["TAKER", "MAKER"]);
const PRICE_SOURCE: Schema = Schema::Word(&[
    "book_walk",
    "matching_engine",
    "best_ask",
    "best_bid",
    "clob_midpoint_cached",
    "last_trade",
    "display",
    "emergency_exit_entry_price",
    "emergency_exit_entry_price_postexpiry",
]);
const CANCELLED_REASON: Schema = Schema::Nullable(&Schema::Word(&[
    "fok_not_filled",
    "fak_no_fill",
    "execution_failed",
    "user_cancelled",
    "cancel_all",
    "cancel_market",
    "gtd_expired",
    "heartbeat_lapsed",
    "auto_cancelled",
    "balance_reset",
    "wallet_archived",
    "market_resolved",
    "market_closed",
]));
const HOLD_REASON: Schema = Schema::Nullable(&Schema::Word(&["venue_outage"]));

/// `wallet_id` of reads and sweeps (account.md §1.4).
pub const WALLET_ID: Param = Param::query(
    "wallet_id",
    Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]),
    "A wallet's id, `api` (the API wallet, the default) or `all` (every active wallet).",
);
/// The same where one order is looked up.
pub const ANY_WALLET_ID: Param =
    Param::query("wallet_id", WALLET_ID.schema, "Only in this wallet; by default in every wallet of the user.");
pub const IDEMPOTENCY_KEY: Param = Param::header(
    "Idempotency-Key",
    Schema::Text(256),
    "The same as `client_order_id`; when both are sent they agree.",
);
pub const CONFIRM: [Param; 3] = [
    Param::header("X-Confirm-Cancel-All", TEXT, "`true` confirms that every open order is to be cancelled."),
    Param::query("confirm", BOOLEAN, "Instead of the header."),
    WALLET_ID,
];

pub const LIST: [Param; 8] = [
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
    Param::query("side", SIDE, "In any case."),
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Default 50."),
    Param::query("offset", OFFSET, "Rows to leave out; not together with a cursor."),
    Param::query("cursor", TEXT, "`next_cursor` of the page before."),
    Param::query("next_cursor", TEXT, "The same; `cursor` wins."),
    WALLET_ID,
];

pub const LOOKUP: [Param; 2] = [
    Param::query(
        "source",
        Schema::Word(&["pending", "filled"]),
        "`filled`: only when it is FILLED; `pending`: only when it is not.",
    ),
    ANY_WALLET_ID,
];

pub const PLACE: Schema = Schema::Object(&Shape::new(
    "PlaceOrder",
    "A native order: the market and outcome, or the token; a quantity, or for a market BUY an amount of USD. What of a GTC \
     or GTD order is not filled at once rests. It then fills at its own limit, as maker, without a fee: in the next \
     matching cycle when the book touches or crosses the limit, up to the size shown there; and at once when the venue \
     trades through the limit by a tick or more, up to the size of that trade, unless the server's fill model is `touch`.",
    &[
        optional("market_id", Schema::Nullable(&Schema::Text(256)), "Condition id of the market."),
        optional("outcome", Schema::Nullable(&Schema::Text(200)), "Label of the outcome, in any case."),
        optional("token_id", Schema::Nullable(&TEXT), "Instead of `market_id` and `outcome`."),
        field("side", Schema::Word(&["BUY", "SELL", "buy", "sell"]), ""),
        optional("order_type", Schema::Word(&["market", "limit", "MARKET", "LIMIT"]), "Default `market`."),
        optional("quantity", DECIMAL_IN, "Shares, above 0, cut down to four decimals."),
        optional("amount", DECIMAL_IN, "USD to spend, fees on top; market BUY only."),
        optional("price", DECIMAL_IN, "The limit, on the market's tick grid; of a market order the worst price."),
        optional(
            "time_in_force",
            REQUESTED_TIME_IN_FORCE,
            "In any case. Default: GTC for limit orders, FOK for market orders. FAK and IOC are one.",
        ),
        optional(
            "expiration",
            Schema::OneOf(&[INTEGER, TEXT, Schema::Null]),
            "Unix seconds in the future, at most ten years ahead; needed for GTD, ignored otherwise.",
        ),
        optional("post_only", BOOLEAN, "Refuse instead of taking liquidity. Default false."),
        optional("client_order_id", Schema::Nullable(&Schema::Text(256)), "The same id again answers the same order."),
        optional("wallet_id", Schema::Nullable(&INTEGER), "Default: the API wallet."),
    ],
));
pub const PLACE_EXAMPLE: &str = r#"{"token_id":"71321045679252212594626385532706912750332728571942532289631379312455583992563","side":"BUY","order_type":"limit","price":"0.37","quantity":"20","client_order_id":"g-0017"}"#;

/// One path, two contracts (venue.md §5.5): an object is a native order, an array a batch of signed ones.
pub const PLACE_ANY: Schema = Schema::OneOf(&[PLACE, Schema::of::<List<PlaceSignedOrder<'_>, 1, 100>>()]);
pub const ORDER_OR_BATCH: Schema = Schema::OneOf(&[ORDER, Schema::of::<Vec<PlacedOrFailed<'_>>>()]);

const POSITION: Schema = Schema::Object(&Shape::new(
    "OrderPosition",
    "What the wallet holds of the order's token after it.",
    &[
        field("market_id", CONDITION_ID, ""),
        field("outcome", TEXT, ""),
        field("quantity", QTY, ""),
        field("avg_entry_price", PRICE, ""),
        field("status", Schema::Word(&["OPEN", "CLOSED"]), ""),
    ],
));

/// Fields of an `OrderResponse`, then those that only a lookup adds.
macro_rules! order_fields {
    ($($more:expr),*) => {
        &[
            field("order_id", INTEGER, ""),
            field("status", STATUS, ""),
            field("order_type", ORDER_TYPE, ""),
            field("side", SIDE, ""),
            field("outcome", TEXT, ""),
            field("price", PRICE, "Average of the fills so far; without one the limit."),
            field("quantity", QTY, "Filled shares once anything is filled, else the requested ones."),
            field("notional", MONEY, ""),
            field("fee", MONEY, ""),
            field("filled_at", TS_OR_NULL, "The last fill."),
            field("cancelled_reason", CANCELLED_REASON, ""),
            field(
                "fill_source",
                Schema::Nullable(&Schema::Word(&["synchronous", "matching_engine"])),
                "Whether the last fill came with the placement or from a matching cycle; null: no fill.",
            ),
            field(
                "price_source",
                Schema::Nullable(&PRICE_SOURCE),
                "Where the price of the last fill came from; null: no fill.",
            ),
            field(
                "slippage_bps",
                INTEGER_OR_NULL,
                "Average fill price against the displayed one, in basis points; null: a limit order, or no fill.",
            ),
            field("quote_age_ms", INTEGER_OR_NULL, "Age of the book at the last fill, in milliseconds; null: no fill."),
            field(
                "spread_bps",
                INTEGER_OR_NULL,
                "Best ask less best bid, in basis points of the midpoint; null: no walk, a replay, or an empty side.",
            ),
            field(
                "impact_bps",
                INTEGER_OR_NULL,
                "Average fill price against the best level walked, in basis points; null: no walk, or a replay.",
            ),
            field("book_walk_levels", INTEGER_OR_NULL, "Levels that the walk touched; null: no walk, or a replay."),
            field(
                "account_balance",
                MONEY,
                "Available cash of the wallet: after the order in the answer to a placement, in its replay and in a read of the \
                    order; after the cancel in the answer to that. A read of an order without a client order id tells the \
                    cash of now where the wallet was reset since, or where the user has had 4,096 newer changes of orders, \
                    or 4,096 positions.",
            ),
            field("position", Schema::Nullable(&POSITION), "In its token after the order; null: none."),
            field("client_order_id", TEXT_OR_NULL, ""),
            field("error", TEXT_OR_NULL, "Batch entries only."),
            field("error_message", TEXT_OR_NULL, "Batch entries only."),
            field("amount_interpreted_as", Schema::Nullable(&Schema::Word(&["usd"])), "Null: no `amount` was sent."),
            field("is_replay", BOOLEAN, "The stored answer of an earlier request with this id."),
            field("warnings", Schema::Array(&TEXT), ""),
            field("requested_quantity", QTY, ""),
            field("filled_quantity", QTY, ""),
            field("remaining_quantity", QTY, ""),
            field("token_id", TOKEN_ID, ""),
            field("market_id", CONDITION_ID, ""),
            field("time_in_force", TIME_IN_FORCE, ""),
            field("requested_time_in_force", REQUESTED_TIME_IN_FORCE, ""),
            field("wallet_id", INTEGER, ""),
            field("created_at", TS, ""),
            field("hold_reason", HOLD_REASON, "Why an open order is not matched now; null: nothing holds it."),
            field("fee_rate_bps", INTEGER_OR_NULL, "The highest of its fills, in basis points; null: no fill."),
            field(
                "liquidity",
                Schema::Nullable(&Schema::Word(&["TAKER", "MAKER", "MIXED"])),
                "Of all its fills; null: no fill.",
            ),
            $($more),*
        ]
    };
}

pub const ORDER: Schema = Schema::Object(&Shape::new("OrderResponse", "One order after a write.", order_fields!()));
pub const ORDER_EXAMPLE: &str = concat!(
    r#"{"order_id":268435458,"status":"FILLED","order_type":"market","side":"BUY","outcome":"Yes","price":"0.42","#,
    r#""quantity":"50","notional":"21.00","fee":"0.609","filled_at":"2026-10-02T09:15:00.004211Z","#,
    r#""cancelled_reason":null,"fill_source":"synchronous","price_source":"book_walk","slippage_bps":120,"#,
    r#""quote_age_ms":310,"spread_bps":241,"impact_bps":0,"book_walk_levels":1,"account_balance":"78.391","#,
    r#""position":{"market_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","outcome":"Yes","#,
    r#""quantity":"50","avg_entry_price":"0.42","status":"OPEN"},"client_order_id":"m-1","error":null,"#,
    r#""error_message":null,"amount_interpreted_as":null,"is_replay":false,"warnings":[],"#,
    r#""requested_quantity":"50","filled_quantity":"50","remaining_quantity":"0","token_id":"71321045679252212594","#,
    r#""market_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","time_in_force":"FOK","#,
    r#""requested_time_in_force":"FOK","wallet_id":268435457,"created_at":"2026-10-02T09:15:00.001100Z","#,
    r#""hold_reason":null,"fee_rate_bps":500,"liquidity":"TAKER"}"#
);

const FILL: Schema = Schema::Object(&Shape::new(
    "OrderFill",
    "One execution of an order against the book.",
    &[
        field("trade_id", INTEGER, ""),
        field("price", PRICE, "Average over the levels taken."),
        field("quantity", QTY, ""),
        field("notional", MONEY, ""),
        field("fee", MONEY, ""),
        field("fee_rate_bps", INTEGER, ""),
        field("liquidity", LIQUIDITY, ""),
        field("filled_at", TS, ""),
        field("price_source", PRICE_SOURCE, ""),
        field("venue_time", TS_OR_NULL, VENUE_TIME),
    ],
));

pub const DETAIL: Schema = Schema::Object(&Shape::new(
    "OrderDetail",
    "One order with its fills.",
    order_fields!(
        field("limit_price", PRICE, ""),
        field("fill_price", PRICE_OR_NULL, "Average of the fills."),
        field("cancelled_at", TS_OR_NULL, ""),
        field("expiration", INTEGER_OR_NULL, "Unix seconds."),
        field("post_only", BOOLEAN, ""),
        field("fills", Schema::Array(&FILL), "Oldest first.")
    ),
));
pub const DETAIL_EXAMPLE: &str = concat!(
    r#"{"order_id":268435459,"status":"PENDING","order_type":"limit","side":"BUY","outcome":"Yes","price":"0.37","#,
    r#""quantity":"20","notional":"7.40","fee":"0.00","filled_at":null,"cancelled_reason":null,"fill_source":null,"#,
    r#""price_source":null,"slippage_bps":null,"quote_age_ms":null,"spread_bps":null,"impact_bps":null,"#,
    r#""book_walk_levels":null,"account_balance":"92.60","position":null,"client_order_id":"g-0017","error":null,"#,
    r#""error_message":null,"amount_interpreted_as":null,"is_replay":false,"warnings":[],"#,
    r#""requested_quantity":"20","filled_quantity":"0","remaining_quantity":"20","token_id":"71321045679252212594","#,
    r#""market_id":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","time_in_force":"GTD","#,
    r#""requested_time_in_force":"GTD","wallet_id":268435457,"created_at":"2026-10-02T09:20:00Z","#,
    r#""hold_reason":null,"fee_rate_bps":null,"liquidity":null,"limit_price":"0.37","fill_price":null,"#,
    r#""cancelled_at":null,"expiration":1791000000,"post_only":false,"fills":[]}"#
);

const ROW: Schema = Schema::Object(&Shape::new(
    "OrderRow",
    "One order of a list.",
    &[
        field("order_id", INTEGER, ""),
        field("market_id", CONDITION_ID, ""),
        field("side", SIDE, ""),
        field("outcome", TEXT, ""),
        field("order_type", ORDER_TYPE, ""),
        field("limit_price", PRICE, "Of a market order the worst price."),
        field("quantity", QTY, "As requested."),
        field("time_in_force", TIME_IN_FORCE, ""),
        field("status", STATUS, ""),
        field("client_order_id", TEXT_OR_NULL, ""),
        field("created_at", TS, ""),
        field("filled_at", TS_OR_NULL, ""),
        field("fill_price", PRICE_OR_NULL, ""),
        field("cancelled_at", TS_OR_NULL, ""),
        field("cancelled_reason", CANCELLED_REASON, ""),
        field("hold_reason", HOLD_REASON, ""),
        field("filled_quantity", QTY, ""),
        field("token_id", TOKEN_ID, ""),
        field("wallet_id", INTEGER, ""),
        field("expiration", INTEGER_OR_NULL, "Unix seconds."),
        field("post_only", BOOLEAN, ""),
    ],
));

pub const PAGE: Schema = Schema::Object(&Shape::new(
    "OrderPage",
    "Orders, newest first.",
    &[
        field("orders", Schema::Array(&ROW), ""),
        field("next_cursor", TEXT, "`LTE=` behind the last page."),
        field("has_more", BOOLEAN, ""),
        field("total_hint", INTEGER_OR_NULL, "Exact up to 10 000."),
    ],
));
pub const PAGE_EXAMPLE: &str = r#"{"orders":[],"next_cursor":"LTE=","has_more":false,"total_hint":0}"#;

pub const BATCH: Schema = Schema::OneOf(&[
    Schema::Object(&Shape::new(
        "PlaceOrders",
        "Native orders, as many as the tier's batch size.",
        &[field("orders", Schema::List { of: &PLACE, min: 1, max: 100 }, "")],
    )),
    Schema::List { of: &PLACE, min: 1, max: 100 },
]);
pub const BATCH_EXAMPLE: &str = r#"{"orders":[{"token_id":"71321045679252212594626385532706912750332728571942532289631379312455583992563","side":"BUY","order_type":"limit","price":"0.37","quantity":"20"}]}"#;

const REFUSED_ENTRY: Schema = Schema::Object(&Shape::new(
    "RefusedEntry",
    "An entry of a batch that left no order.",
    &[
        field("order_id", Schema::Integer { min: 0, max: 0 }, ""),
        field("status", Schema::Word(&["REJECTED", "ERROR"]), "ERROR: the server is at fault."),
        field("order_type", Schema::Nullable(&ORDER_TYPE), ""),
        field("side", Schema::Nullable(&SIDE), ""),
        field("outcome", TEXT_OR_NULL, ""),
        field("price", Schema::Word(&["0"]), ""),
        field("quantity", TEXT, "As sent."),
        field("notional", Schema::Word(&["0"]), ""),
        field("fee", Schema::Word(&["0"]), ""),
        field("filled_at", Schema::Null, ""),
        field("cancelled_reason", Schema::Null, ""),
        field("fill_source", Schema::Null, ""),
        field("price_source", Schema::Null, ""),
        field("slippage_bps", Schema::Null, ""),
        field("quote_age_ms", Schema::Null, ""),
        field("spread_bps", Schema::Null, ""),
        field("impact_bps", Schema::Null, ""),
        field("book_walk_levels", Schema::Null, ""),
        field("account_balance", Schema::Null, ""),
        field("position", Schema::Null, ""),
        field("client_order_id", TEXT_OR_NULL, ""),
        field("error", TEXT, "The code."),
        field("error_message", TEXT, ""),
        field("amount_interpreted_as", Schema::Null, ""),
        field("is_replay", BOOLEAN, ""),
        field("warnings", Schema::Array(&TEXT), ""),
        field("requested_quantity", TEXT, "As sent."),
        field("filled_quantity", QTY, ""),
        field("remaining_quantity", QTY, ""),
        field("token_id", TEXT_OR_NULL, ""),
        field("market_id", TEXT_OR_NULL, ""),
        field("time_in_force", Schema::Nullable(&TIME_IN_FORCE), ""),
        field("requested_time_in_force", Schema::Nullable(&REQUESTED_TIME_IN_FORCE), ""),
        field("wallet_id", Schema::Null, ""),
        field("created_at", Schema::Null, ""),
        field("hold_reason", Schema::Null, ""),
        field("fee_rate_bps", Schema::Null, ""),
        field("liquidity", Schema::Null, ""),
    ],
));

pub const RESULTS: Schema = Schema::Object(&Shape::new(
    "BatchResults",
    "What became of each entry, in the order of the request.",
    &[
        field("results", Schema::Array(&Schema::OneOf(&[ORDER, REFUSED_ENTRY])), ""),
        field("succeeded", INTEGER, "FILLED and PENDING."),
        field("failed", INTEGER, ""),
    ],
));
pub const RESULTS_EXAMPLE: &str = r#"{"results":[],"succeeded":0,"failed":0}"#;

pub const SWEPT: Schema = Schema::Object(&Shape::new(
    "Cancelled",
    "What a cancel did: ids, and for those that were not cancelled why.",
    &[field("canceled", Schema::Array(&TEXT), ""), field("not_canceled", Schema::Map(&TEXT), "")],
));
pub const SWEPT_EXAMPLE: &str = r#"{"canceled":["268435459"],"not_canceled":{}}"#;

pub const SWEEP: Schema = Schema::Object(&Shape::new(
    "CancelAll",
    "",
    &[optional("wallet_id", Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]), "Unless the query names it.")],
));
pub const SWEEP_EXAMPLE: &str = r#"{"wallet_id":"all"}"#;

pub const SWEEP_MARKET: Schema = Schema::Object(&Shape::new(
    "CancelMarketOrders",
    "Either or both; an empty text is absent.",
    &[
        optional("market", Schema::Text(256), "Condition id."),
        optional("asset_id", Schema::Text(256), "Token id."),
        optional("wallet_id", Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]), "Unless the query names it."),
    ],
));
pub const SWEEP_MARKET_EXAMPLE: &str =
    r#"{"market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":""}"#;
pub const SWEEP_MARKET_PARAMS: [Param; 3] = [
    Param::query("market", TEXT, "Condition id; wins over the body."),
    Param::query("asset_id", TEXT, "Token id; wins over the body."),
    WALLET_ID,
];

const NATIVE_BEAT: Schema = Schema::Object(&Shape::new(
    "Heartbeat",
    "The native form.",
    &[
        field("interval_ms", Schema::Integer { min: 1_000, max: 60_000 }, "The next beat comes within this."),
        optional("client_label", Schema::Nullable(&Schema::Text(64)), "Tells several beating clients apart."),
    ],
));
const VENUE_BEAT: Schema = Schema::Object(&Shape::new(
    "VenueHeartbeat",
    "The venue's form: a body without `interval_ms`.",
    &[field("heartbeat_id", TEXT_OR_NULL, "The id of the last answer; empty or null arms.")],
));
pub const BEAT: Schema = Schema::OneOf(&[NATIVE_BEAT, VENUE_BEAT]);
pub const BEAT_EXAMPLE: &str = r#"{"interval_ms":5000,"client_label":"grid"}"#;

const NATIVE_BEATING: Schema = Schema::Object(&Shape::new(
    "Beating",
    "The safeguard is armed.",
    &[field("ok", BOOLEAN, ""), field("expires_at_ms", INTEGER, "Unix milliseconds at which it lapses.")],
));
const VENUE_BEATING: Schema = Schema::Object(&Shape::new(
    "VenueBeating",
    "The safeguard is armed for ten seconds.",
    &[field("heartbeat_id", UUID, "For the next beat.")],
));
const NO_BEAT: Schema = Schema::Object(&Shape::new(
    "NoHeartbeat",
    "The request had no body: nothing was armed.",
    &[field("status", Schema::Word(&["ok"]), "")],
));
pub const BEATING: Schema = Schema::OneOf(&[NATIVE_BEATING, VENUE_BEATING, NO_BEAT]);
pub const BEATING_EXAMPLE: &str = r#"{"ok":true,"expires_at_ms":1790932451250}"#;

pub const ENDED: Schema =
    Schema::Object(&Shape::new("HeartbeatsEnded", "No safeguard is armed.", &[field("ok", BOOLEAN, "")]));
pub const ENDED_EXAMPLE: &str = r#"{"ok":true}"#;
