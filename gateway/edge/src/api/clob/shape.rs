//! The shapes of venue-shaped trading for the machine description (venue.md §5 to §7).

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, MONEY, ORDER_HEX, PRICE, Param, QTY, Schema, Shape, TEXT, TOKEN_ID, TS_OR_NULL,
    UUID, VENUE_TIME, VOL, field, optional,
};

/// An integer as it is sent: a text of digits or a number.
const DIGITS_IN: Schema = Schema::OneOf(&[Schema::Text(18), INTEGER]);
/// A decimal as it is sent: a string or a number (wire.md §1).
const DECIMAL_IN: Schema = Schema::OneOf(&[Schema::Text(32), Schema::Number]);
const SIDE: Schema = Schema::Word(&["BUY", "SELL"]);
const ORDER_TYPE: Schema = Schema::Word(&["GTC", "GTD", "FOK", "FAK"]);
const EMPTY_LIST: Schema = Schema::List { of: &Schema::Any, min: 0, max: 0 };
const ID: Schema = Schema::Format(&crate::http::schema::Format {
    name: "Digits",
    about: "An integer as a string.",
    pattern: r"^(0|[1-9][0-9]*)$",
});
const UNIX_SECS: Schema = Schema::Integer { min: 0, max: (1 << 53) - 1 };
const CLIENT_ORDER_ID: Schema = Schema::Nullable(&Schema::Text(256));

pub const IDEMPOTENCY_KEY: [Param; 1] = [Param::header(
    "Idempotency-Key",
    Schema::Text(256),
    "The same as `client_order_id`; when both are sent they agree.",
)];

const SIGNED: Schema = Schema::Object(&Shape::new(
    "SignedOrder",
    "An order as venue clients sign it, of either generation. The signature is not verified.",
    &[
        field("tokenId", Schema::Text(256), "The outcome token."),
        field(
            "side",
            Schema::OneOf(&[Schema::Word(&["BUY", "SELL"]), Schema::Integer { min: 0, max: 1 }]),
            "0 is BUY.",
        ),
        field("makerAmount", DIGITS_IN, "What is given, in 10⁻⁶: USD of a BUY, shares of a SELL. Above 0."),
        field("takerAmount", DIGITS_IN, "What is taken, in 10⁻⁶: shares of a BUY, USD of a SELL. Above 0."),
        optional(
            "expiration",
            Schema::OneOf(&[TEXT, INTEGER, Schema::Null]),
            "Unix seconds in the future, at most ten years ahead, for GTD.",
        ),
        optional("salt", Schema::Any, "With the signature it makes a repeated order known for ten minutes."),
        optional("signature", Schema::Any, ""),
        optional("signatureType", Schema::Any, "Ignored."),
        optional("maker", Schema::Any, "Ignored, as is every further field."),
    ],
));

/// The body of `POST /v1/order`, and an entry of the venue's batch.
pub const PLACE: Schema = Schema::Object(&Shape::new(
    "PlaceSignedOrder",
    "A signed order with what stands beside it. A BUY that takes at once (FOK, FAK) spends makerAmount.",
    &[
        field("order", SIGNED, ""),
        optional(
            "orderType",
            Schema::OneOf(&[Schema::Word(&["GTC", "GTD", "FOK", "FAK", "IOC"]), Schema::Null]),
            "In any case; IOC is FAK. Default GTC.",
        ),
        optional("postOnly", Schema::Nullable(&BOOLEAN), "Refuse instead of taking liquidity. Default false."),
        optional("client_order_id", CLIENT_ORDER_ID, "The same id again answers the same order."),
        optional("owner", Schema::Any, "Ignored."),
        optional("deferExec", Schema::Any, "Ignored."),
    ],
));
pub const PLACE_EXAMPLE: &str = r#"{"order":{"salt":479249096354,"tokenId":"71321045679252212594626385532706912750332728571942532289631379312455583992563","makerAmount":"4100000","takerAmount":"10000000","expiration":"0","side":"BUY","signatureType":0,"signature":"0x5f"},"owner":"svc","orderType":"GTC","postOnly":false}"#;

/// The answer of a placement.
pub const PLACED: Schema = Schema::Object(&Shape::new(
    "PlacedOrder",
    "The order stands.",
    &[
        field("success", BOOLEAN, "true"),
        field("errorMsg", Schema::Word(&[""]), ""),
        field("orderID", ORDER_HEX, ""),
        field("status", Schema::Word(&["live", "matched"]), "`live`: something of it rests."),
        field("makingAmount", VOL, "Given so far, fees apart."),
        field("takingAmount", VOL, "Taken so far."),
        field("transactionsHashes", EMPTY_LIST, ""),
        field("tradeIDs", Schema::Array(&ID), "Empty, unless the server is told to name trades."),
    ],
));
pub const PLACED_EXAMPLE: &str = r#"{"success":true,"errorMsg":"","orderID":"0x51c07f6c1bb4a0b2e5f3d8c9a6071425364758695a4b3c2d0000000010000004","status":"live","makingAmount":"0","takingAmount":"0","transactionsHashes":[],"tradeIDs":[]}"#;

/// The answer of the venue's batch.
pub const PLACED_BATCH: Schema = Schema::Array(&Schema::OneOf(&[PLACED, FAILED]));
const FAILED: Schema = Schema::Object(&Shape::new(
    "FailedOrder",
    "An entry that was refused or killed.",
    &[
        field("success", BOOLEAN, "false"),
        field("errorMsg", TEXT, "The venue's sentence."),
        field("orderID", Schema::Word(&[""]), ""),
        field("status", Schema::Word(&["unmatched"]), ""),
        field("makingAmount", Schema::Word(&["0"]), ""),
        field("takingAmount", Schema::Word(&["0"]), ""),
        field("transactionsHashes", EMPTY_LIST, ""),
        field("tradeIDs", EMPTY_LIST, ""),
        field("error", TEXT, "The code; in the strict dialect the sentence again."),
        optional("message", TEXT, "Strict: the sentence."),
        optional("code", TEXT, "Strict: the code."),
    ],
));

pub const FLAT: Schema = Schema::Object(&Shape::new(
    "PlaceFlatOrder",
    "An order in plain decimals.",
    &[
        field("token_id", Schema::Text(256), "The outcome token."),
        field("side", Schema::Word(&["BUY", "SELL", "buy", "sell"]), ""),
        optional("price", DECIMAL_IN, "The limit, on the market's tick grid. Required."),
        optional("size", DECIMAL_IN, "Shares, above 0, cut down to four decimals. Required, here or as `quantity`."),
        optional("quantity", DECIMAL_IN, "The same as `size`, which wins."),
        optional("order_type", Schema::Nullable(&ORDER_TYPE), "In any case. Default GTC."),
        optional(
            "expiration",
            Schema::OneOf(&[INTEGER, TEXT, Schema::Null]),
            "Unix seconds in the future, at most ten years ahead, for GTD.",
        ),
        optional("post_only", Schema::Nullable(&BOOLEAN), "Refuse instead of taking liquidity. Default false."),
        optional("client_order_id", CLIENT_ORDER_ID, "The same id again answers the same order."),
    ],
));
pub const FLAT_EXAMPLE: &str = r#"{"token_id":"71321045679252212594626385532706912750332728571942532289631379312455583992563","side":"BUY","price":"0.41","size":"10","order_type":"GTC"}"#;

pub const FLAT_PLACED: Schema = Schema::Object(&Shape::new(
    "PlacedFlatOrder",
    "The order stands.",
    &[
        field("success", BOOLEAN, "true"),
        field("orderID", ORDER_HEX, ""),
        field("status", Schema::Word(&["live", "matched"]), "`live`: something of it rests."),
        field("price", PRICE, "Its limit."),
        field("size", QTY, "Shares asked for."),
        field("side", SIDE, ""),
        field("transactID", Schema::Word(&[""]), ""),
        field("errorMsg", Schema::Word(&[""]), ""),
        field("makingAmount", VOL, "Given so far, fees apart."),
        field("takingAmount", VOL, "Taken so far."),
    ],
));
pub const FLAT_PLACED_EXAMPLE: &str = r#"{"success":true,"orderID":"0x51c07f6c1bb4a0b2e5f3d8c9a6071425364758695a4b3c2d0000000010000004","status":"live","price":"0.41","size":"10","side":"BUY","transactID":"","errorMsg":"","makingAmount":"0","takingAmount":"0"}"#;

/// An id of an order as it is sent, in either form.
const ID_IN: Schema = Schema::OneOf(&[TEXT, INTEGER]);
pub const CANCEL: Schema = Schema::Object(&Shape::new(
    "CancelOrder",
    "The order: hexadecimal or decimal.",
    &[
        optional("orderID", ID_IN, "Required, under one of these names."),
        optional("orderId", ID_IN, ""),
        optional("order_id", ID_IN, ""),
        optional("id", ID_IN, ""),
    ],
));
pub const CANCEL_EXAMPLE: &str = r#"{"orderID":"268435460"}"#;
pub const CANCEL_MANY: Schema = Schema::List { of: &ID_IN, min: 0, max: 3_000 };
pub const CANCEL_MANY_EXAMPLE: &str = r#"["268435460","268435461"]"#;
pub const CANCELED: Schema = Schema::Object(&Shape::new(
    "CanceledOrders",
    "Ids as they were sent.",
    &[
        field("canceled", Schema::Array(&TEXT), ""),
        field("not_canceled", Schema::Map(&TEXT), "The others, each with its reason: a code, or the venue's sentence."),
    ],
));
pub const CANCELED_EXAMPLE: &str = r#"{"canceled":["268435460"],"not_canceled":{"268435461":"ORDER_NOT_CANCELLABLE"}}"#;

/// Overrules how a request's headers choose the types of rows.
const DIALECT: Param = Param::query(
    "dialect",
    Schema::Word(&["plain", "strict"]),
    "Types of the rows. Default: strict for clients of the venue's kind, else plain.",
);
pub const LOOKUP: [Param; 1] = [DIALECT];

const TRADES_ABOUT: &str = "Ids of its trades, oldest first; in a list the newest 100 at most.";
const ORDER_PLAIN: Schema = Schema::Object(&Shape::new(
    "VenueOrder",
    "An order row in the plain dialect.",
    &[
        field("id", ORDER_HEX, ""),
        field(
            "status",
            Schema::Word(&[
                "ORDER_STATUS_LIVE",
                "ORDER_STATUS_MATCHED",
                "ORDER_STATUS_CANCELED",
                "ORDER_STATUS_INVALID",
            ]),
            "",
        ),
        field("market", CONDITION_ID, ""),
        field("asset_id", TOKEN_ID, ""),
        field("side", SIDE, ""),
        field("original_size", QTY, "Shares asked for; of a budget the shares it was expected to buy."),
        field("size_matched", QTY, ""),
        field("price", PRICE, "The limit."),
        field("outcome", TEXT, ""),
        field("order_type", ORDER_TYPE, ""),
        field("owner", Schema::Null, ""),
        field("maker_address", Schema::Null, ""),
        field("expiration", UNIX_SECS, "0: none."),
        field("created_at", UNIX_SECS, ""),
        field("associate_trades", Schema::Array(&ID), TRADES_ABOUT),
        field("maker_orders", Schema::Null, ""),
        field("transaction_hash", Schema::Null, ""),
        field("trader_side", Schema::Null, ""),
        field("fee_rate_bps", Schema::Null, ""),
    ],
));
const ORDER_STRICT: Schema = Schema::Object(&Shape::new(
    "StrictVenueOrder",
    "An order row in the strict dialect.",
    &[
        field("id", ORDER_HEX, ""),
        field("status", Schema::Word(&["LIVE", "MATCHED", "CANCELED", "CANCELED_MARKET_RESOLVED", "INVALID"]), ""),
        field("market", CONDITION_ID, ""),
        field("asset_id", TOKEN_ID, ""),
        field("side", SIDE, ""),
        field("original_size", QTY, "Shares asked for; of a budget the shares it was expected to buy."),
        field("size_matched", QTY, ""),
        field("price", PRICE, "The limit."),
        field("outcome", TEXT, ""),
        field("order_type", ORDER_TYPE, ""),
        field("owner", UUID, "What the request authenticated with, else the account's."),
        field("maker_address", TEXT, "The account's address."),
        field("expiration", ID, "Unix seconds; 0: none."),
        field("created_at", UNIX_SECS, ""),
        field("associate_trades", Schema::Array(&ID), TRADES_ABOUT),
    ],
));
pub const ORDER: Schema = Schema::OneOf(&[ORDER_PLAIN, ORDER_STRICT]);
pub const ORDER_EXAMPLE: &str = r#"{"id":"0x51c07f6c1bb4a0b2e5f3d8c9a6071425364758695a4b3c2d0000000010000004","status":"ORDER_STATUS_LIVE","market":"0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4","asset_id":"71321045679252212594626385532706912750332728571942532289631379312455583992563","side":"BUY","original_size":"10","size_matched":"4","price":"0.41","outcome":"Yes","order_type":"GTC","owner":null,"maker_address":null,"expiration":0,"created_at":1793871202,"associate_trades":[],"maker_orders":null,"transaction_hash":null,"trader_side":null,"fee_rate_bps":null}"#;

const TRADE_PLAIN: Schema = Schema::Object(&Shape::new(
    "VenueTrade",
    "A trade row in the plain dialect: one fill.",
    &[
        field("id", ID, ""),
        field("taker_order_id", ORDER_HEX, "The caller's own order, also where it was the maker."),
        field("market", CONDITION_ID, ""),
        field("asset_id", TOKEN_ID, ""),
        field("side", SIDE, "Of the caller's order."),
        field("size", QTY, ""),
        field("fee_rate_bps", INTEGER, "0 for a maker."),
        field("price", PRICE, "Average of the fill."),
        field("status", Schema::Word(&["MATCHED"]), ""),
        field("match_time", UNIX_SECS, "Unix seconds."),
        field("last_update", UNIX_SECS, "Unix seconds."),
        field("outcome", TEXT, ""),
        field("bucket_index", Schema::Integer { min: 0, max: 0 }, ""),
        field("owner", Schema::Null, ""),
        field("maker_address", Schema::Null, ""),
        field("transaction_hash", Schema::Null, ""),
        field("trader_side", Schema::Null, ""),
        field("maker_orders", EMPTY_LIST, ""),
        field("fee", MONEY, "USD charged."),
        field("venue_time", TS_OR_NULL, VENUE_TIME),
    ],
));
const PAPER_HASH: Schema = Schema::Format(&crate::http::schema::Format {
    name: "PaperHash",
    about: "0x and 64 hexadecimal digits.",
    pattern: r"^0x[0-9a-f]{64}$",
});
const MAKER_ORDERS: Schema = Schema::List {
    of: &Schema::Object(&Shape::new(
        "MakerOrder",
        "The order that a trade was made with.",
        &[
            field("order_id", ORDER_HEX, ""),
            field("owner", UUID, "As of the row."),
            field("maker_address", TEXT, "As of the row."),
            field("matched_amount", QTY, "Shares of this trade."),
            field("price", PRICE, "Average of the fill."),
            field("fee_rate_bps", ID, "0: makers pay nothing."),
            field("asset_id", TOKEN_ID, ""),
            field("outcome", TEXT, ""),
            field("side", SIDE, "Of the caller's order."),
        ],
    )),
    min: 0,
    max: 1,
};
const TRADE_STRICT: Schema = Schema::Object(&Shape::new(
    "StrictVenueTrade",
    "A trade row in the strict dialect.",
    &[
        field("id", ID, ""),
        field("taker_order_id", ORDER_HEX, "The caller's own order, also where it was the maker."),
        field("market", CONDITION_ID, ""),
        field("asset_id", TOKEN_ID, ""),
        field("side", SIDE, "Of the taker's order, as at the venue."),
        field("size", QTY, ""),
        field("fee_rate_bps", ID, "0 for a maker."),
        field("price", PRICE, "Average of the fill."),
        field("status", Schema::Word(&["MATCHED", "CONFIRMED"]), "By `[venue] confirmed_trades`."),
        field("match_time", ID, "Unix seconds."),
        field("last_update", ID, "Unix seconds."),
        field("outcome", TEXT, ""),
        field("bucket_index", Schema::Integer { min: 0, max: 0 }, ""),
        field("owner", UUID, "What the request authenticated with, else the account's."),
        field("maker_address", TEXT, "The account's address."),
        field("transaction_hash", PAPER_HASH, "Of the trade's id: there is no transaction."),
        field("trader_side", Schema::Word(&["TAKER", "MAKER"]), ""),
        field("maker_orders", MAKER_ORDERS, "Of a MAKER row the caller's own order; else empty."),
        field("fee", MONEY, "USD charged."),
        field("venue_time", TS_OR_NULL, VENUE_TIME),
    ],
));
const TRADE: Schema = Schema::OneOf(&[TRADE_PLAIN, TRADE_STRICT]);

/// Fields of a page with these rows.
macro_rules! page {
    ($name:literal, $about:literal, $rows:expr) => {
        Schema::Object(&Shape::new(
            $name,
            $about,
            &[
                field("limit", Schema::Integer { min: 1, max: 500 }, "Rows asked for."),
                field("count", Schema::Integer { min: 0, max: 500 }, "Rows of this page."),
                field("next_cursor", TEXT, "`LTE=` at the end."),
                field("data", $rows, "Newest first."),
            ],
        ))
    };
}
pub const ORDERS: Schema = page!("VenueOrderPage", "A page of order rows.", Schema::Array(&ORDER));
pub const TRADES: Schema = page!("VenueTradePage", "A page of trade rows.", Schema::Array(&TRADE));
pub const NOTHING: Schema = page!("EmptyPage", "A list of what there is none of here.", EMPTY_LIST);
pub const PAGE_EXAMPLE: &str = r#"{"limit":100,"count":0,"next_cursor":"LTE=","data":[]}"#;

const MARKET: Param = Param::query("market", TEXT, "Condition id; of an unknown market there are no rows.");
const ASSET: Param = Param::query("asset_id", TEXT, "Token id; of an unknown token there are no rows.");
const BEFORE: Param = Param::query("before", TEXT, "Only earlier rows: unix seconds or an ISO time.");
const AFTER: Param = Param::query("after", TEXT, "Only rows from then on: unix seconds or an ISO time.");
const NEXT_CURSOR: Param = Param::query("next_cursor", TEXT, "`next_cursor` of the page before.");
const CURSOR: Param = Param::query("cursor", TEXT, "The same, and wins.");
const LIMIT: Param = Param::query("limit", Schema::Integer { min: 1, max: 500 }, "Default 100.");
const WALLET_ID: Param = Param::query(
    "wallet_id",
    Schema::OneOf(&[INTEGER, Schema::Word(&["api", "all"])]),
    "A wallet's id, `api` (the API wallet, the default) or `all` (every active wallet).",
);

pub const ORDER_FILTER: [Param; 11] = [
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
    WALLET_ID,
    DIALECT,
];
pub const TRADE_FILTER: [Param; 10] = [
    Param::query("id", TEXT, "Only this trade."),
    MARKET,
    ASSET,
    BEFORE,
    AFTER,
    NEXT_CURSOR,
    CURSOR,
    LIMIT,
    WALLET_ID,
    DIALECT,
];
