//! Shapes of the venue's batch prices and markets (venue.md §1.3, §1.5, §2).

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, Field, INTEGER, PRICE, PRICE_OR_NULL, Param, Schema, Shape, TEXT, TOKEN_ID, TS_OR_NULL,
    field, optional,
};

// Prices of many tokens.

const WANTED: Schema = Schema::Object(&Shape::new(
    "TokenRequest",
    "One token of a batch.",
    &[field("token_id", TOKEN_ID, "The outcome token."), optional("side", Schema::Any, "Not looked at.")],
));
const WANTED_LIST: Schema = Schema::List { of: &WANTED, min: 1, max: 500 };
pub const TOKENS: Schema = Schema::OneOf(&[
    WANTED_LIST,
    Schema::Object(&Shape::new(
        "TokenRequests",
        "The tokens of a batch.",
        &[field("items", WANTED_LIST, "The tokens.")],
    )),
]);
pub const TOKENS_EXAMPLE: &str = r#"[{"token_id": "81140002"}]"#;

const WANTED_SIDE: Schema = Schema::Object(&Shape::new(
    "PriceRequest",
    "One side of one token.",
    &[
        field("token_id", TOKEN_ID, "The outcome token."),
        field("side", Schema::Word(&["BUY", "SELL"]), "BUY: the best bid; SELL: the best ask. In any case."),
    ],
));
const WANTED_SIDES: Schema = Schema::List { of: &WANTED_SIDE, min: 1, max: 500 };
pub const SIDES: Schema = Schema::OneOf(&[
    WANTED_SIDES,
    Schema::Object(&Shape::new("PriceRequests", "Sides of tokens.", &[field("items", WANTED_SIDES, "The sides.")])),
    Schema::Object(&Shape::new(
        "PriceRowsRequest",
        "The older form: tokens alone, answered by rows.",
        &[field("token_ids", Schema::List { of: &TOKEN_ID, min: 1, max: 500 }, "The tokens.")],
    )),
]);
pub const SIDES_EXAMPLE: &str = r#"[{"token_id": "81140002", "side": "BUY"}]"#;

pub const TOKEN_LIST: &[Param] =
    &[Param::query("token_ids", TEXT, "Tokens with commas between them, 1 to 500.").required()];
pub const TOKEN_LIST_OR_BODY: &[Param] = &[Param::query("token_ids", TEXT, "Without a body: the tokens, 1 to 500.")];
pub const TOKEN_AND_SIDE_LISTS: &[Param] = &[
    Param::query(
        "token_ids",
        TEXT,
        "Tokens with commas between them, 1 to 500; every token with a book when left out.",
    ),
    Param::query("sides", TEXT, "A side for each of the tokens; both of each when left out."),
];

pub const BY_TOKEN: Schema = Schema::Map(&PRICE);
pub const BY_TOKEN_EXAMPLE: &str = r#"{"81140002": "0.395"}"#;
const BEST: Schema = Schema::Object(&Shape::new(
    "BestPrices",
    "Best prices of the sides that were asked for and have any.",
    &[optional("BUY", PRICE, "Best bid."), optional("SELL", PRICE, "Best ask.")],
));
pub const BEST_BY_TOKEN: Schema = Schema::Map(&BEST);
pub const BEST_BY_TOKEN_EXAMPLE: &str = r#"{"81140002": {"BUY": "0.38", "SELL": "0.41"}}"#;
const PRICE_ROW: Schema = Schema::Object(&Shape::new(
    "PriceRow",
    "Prices of one token, the older form.",
    &[
        field("token_id", TOKEN_ID, "The outcome token."),
        field("price", PRICE_OR_NULL, "Half way between the best prices."),
        field("bid", PRICE_OR_NULL, "Best bid."),
        field("ask", PRICE_OR_NULL, "Best ask."),
    ],
));
pub const PRICE_ROWS: Schema = Schema::Array(&PRICE_ROW);
pub const PRICE_ROWS_EXAMPLE: &str = r#"[{"token_id": "81140002", "price": "0.395", "bid": "0.38", "ask": "0.41"}]"#;
const TRADE_ROW: Schema = Schema::Object(&Shape::new(
    "LastTradeRow",
    "The last trade of one token.",
    &[
        field("token_id", TOKEN_ID, "The outcome token."),
        field("price", PRICE, "Per share."),
        field("side", Schema::Word(&["BUY", "SELL"]), "What the taker did."),
    ],
));
pub const TRADE_ROWS: Schema = Schema::Array(&TRADE_ROW);
pub const TRADE_ROWS_EXAMPLE: &str = r#"[{"token_id": "81140002", "price": "0.39", "side": "SELL"}]"#;

// Markets.

pub const NEXT_CURSOR: &[Param] = &[
    Param::query("next_cursor", TEXT, "Where the page begins: MA==, or that of the page before."),
    Param::query("cursor", TEXT, "The same; `next_cursor` wins."),
];

const TOKEN: Schema = Schema::Object(&Shape::new(
    "VenueToken",
    "One outcome.",
    &[
        field("token_id", TOKEN_ID, "The outcome token."),
        field("outcome", TEXT, "Its label."),
        field("price", Schema::Number, "Display price; 0.5 when it was never quoted."),
        field("winner", BOOLEAN, "It won; only after the resolution."),
    ],
));
const PAIR: Schema = Schema::List { of: &TOKEN, min: 2, max: 2 };
const REWARDS: Schema = Schema::Object(&Shape::new(
    "VenueRewards",
    "There are no rewards.",
    &[
        field("rates", Schema::Null, "None."),
        field("min_size", Schema::Integer { min: 0, max: 0 }, "Always 0."),
        field("max_spread", Schema::Integer { min: 0, max: 0 }, "Always 0."),
    ],
));
const EMPTY: Schema = Schema::Text(0);
const BASE_FEE: Schema = Schema::Integer { min: 0, max: 1_000 };

pub const MARKET: Schema = Schema::Object(&Shape::new("VenueMarket", "A market in the venue's shape.", MARKET_FIELDS));
const MARKET_FIELDS: &[Field] = &[
    field("condition_id", CONDITION_ID, "The market."),
    field("question_id", CONDITION_ID, "The same."),
    field("question", TEXT, "What it is about."),
    field("description", TEXT, "Its rules; may be empty."),
    field("market_slug", TEXT, "Its name in addresses."),
    field("active", BOOLEAN, "It accepts orders, or did until now."),
    field("closed", BOOLEAN, "Trading has ended."),
    field("archived", BOOLEAN, "Resolved for more than 30 days."),
    field("tokens", PAIR, "The outcomes, in their order."),
    field("neg_risk", BOOLEAN, "Belongs to a group of markets with one winner."),
    field("enable_order_book", BOOLEAN, "Always true."),
    field("accepting_orders", BOOLEAN, "Orders are taken now."),
    field("accepting_order_timestamp", TS_OR_NULL, "Since when."),
    field("minimum_order_size", Schema::Number, "Shares."),
    field("minimum_tick_size", Schema::Number, "The grid of prices."),
    field("end_date_iso", TS_OR_NULL, "When it ends."),
    field("game_start_time", Schema::Null, "Not known."),
    field("seconds_delay", Schema::Integer { min: 0, max: 0 }, "Always 0."),
    field("maker_base_fee", Schema::Integer { min: 0, max: 0 }, "Always 0."),
    field("taker_base_fee", BASE_FEE, "1000 where takers pay a fee."),
    field("notifications_enabled", BOOLEAN, "Always false."),
    field("is_50_50_outcome", BOOLEAN, "It was resolved as a split."),
    field("neg_risk_market_id", EMPTY, "Empty."),
    field("neg_risk_request_id", EMPTY, "Empty."),
    field("fpmm", EMPTY, "Empty."),
    field("icon", TEXT, "Address of its image; may be empty."),
    field("image", TEXT, "The same."),
    field("rewards", REWARDS, "None."),
    field("tags", Schema::Array(&TEXT), "The venue's words for it."),
];
pub const MARKET_EXAMPLE: &str = r#"{
    "condition_id": "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4",
    "question_id": "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4",
    "question": "Rain in Lisbon on 3 October?", "description": "", "market_slug": "rain-in-lisbon-oct-3",
    "active": true, "closed": false, "archived": false,
    "tokens": [
        {"token_id": "81140002", "outcome": "Yes", "price": 0.415, "winner": false},
        {"token_id": "55200077", "outcome": "No", "price": 0.585, "winner": false}
    ],
    "neg_risk": false, "enable_order_book": true, "accepting_orders": true, "accepting_order_timestamp": null,
    "minimum_order_size": 5, "minimum_tick_size": 0.01, "end_date_iso": "2026-10-04T00:00:00Z",
    "game_start_time": null, "seconds_delay": 0, "maker_base_fee": 0, "taker_base_fee": 1000,
    "notifications_enabled": false, "is_50_50_outcome": false, "neg_risk_market_id": "", "neg_risk_request_id": "",
    "fpmm": "", "icon": "", "image": "", "rewards": {"rates": null, "min_size": 0, "max_spread": 0}, "tags": []
}"#;

const SIMPLIFIED: Schema = Schema::Object(&Shape::new(
    "VenueSimplifiedMarket",
    "A market in the venue's shape, simplified.",
    &[
        field("condition_id", CONDITION_ID, "The market."),
        field("tokens", PAIR, "The outcomes, in their order."),
        field("rewards", REWARDS, "None."),
        field("active", BOOLEAN, "It accepts orders, or did until now."),
        field("closed", BOOLEAN, "Trading has ended."),
        field("archived", BOOLEAN, "Resolved for more than 30 days."),
        field("accepting_orders", BOOLEAN, "Orders are taken now."),
    ],
));

const PAGE_LIMIT: Schema = Schema::Integer { min: 1_000, max: 1_000 };
const PAGE_COUNT: Schema = Schema::Integer { min: 0, max: 1_000 };

pub const PAGE: Schema = Schema::Object(&Shape::new(
    "VenueMarketPage",
    "A page of markets in the venue's shape.",
    &[
        field("limit", PAGE_LIMIT, "Rows of a page."),
        field("count", PAGE_COUNT, "Rows of this page."),
        field("next_cursor", TEXT, "Of the next page; LTE= behind the last one."),
        field("data", Schema::Array(&MARKET), "The rows, in the order of their listing."),
    ],
));
pub const SIMPLIFIED_PAGE: Schema = Schema::Object(&Shape::new(
    "VenueSimplifiedPage",
    "A page of simplified markets.",
    &[
        field("limit", PAGE_LIMIT, "Rows of a page."),
        field("count", PAGE_COUNT, "Rows of this page."),
        field("next_cursor", TEXT, "Of the next page; LTE= behind the last one."),
        field("data", Schema::Array(&SIMPLIFIED), "The rows, in the order of their listing."),
    ],
));
pub const PAGE_EXAMPLE: &str = r#"{"limit": 1000, "count": 0, "next_cursor": "LTE=", "data": []}"#;

const SHORT_TOKEN: Schema = Schema::Object(&Shape::new(
    "ClobToken",
    "One outcome.",
    &[field("t", TOKEN_ID, "The outcome token."), field("o", TEXT, "Its label.")],
));
const FEE_DETAILS: Schema = Schema::Object(&Shape::new(
    "ClobFee",
    "The fee of takers.",
    &[
        field("r", Schema::Number, "The rate: basis points / 10000."),
        field("e", INTEGER, "The exponent of the fee curve."),
        field("to", BOOLEAN, "Takers alone pay."),
    ],
));
const NO_REWARDS: Shape = Shape::new("ClobRewards", "An object without fields: there are no rewards.", &[]);
pub const CLOB_MARKET: Schema = Schema::Object(&Shape::new(
    "ClobMarket",
    "What newer venue clients build their orders from.",
    &[
        field("c", CONDITION_ID, "The market."),
        field("t", Schema::List { of: &SHORT_TOKEN, min: 2, max: 2 }, "The outcomes, in their order."),
        field("mts", Schema::Number, "The grid of prices."),
        field("mos", Schema::Number, "The least number of shares."),
        field("nr", BOOLEAN, "Belongs to a group of markets with one winner."),
        field("mbf", Schema::Integer { min: 0, max: 0 }, "Base fee of makers."),
        field("tbf", BASE_FEE, "Base fee of takers."),
        optional("fd", FEE_DETAILS, "The fee; left out where there is none."),
        field("r", Schema::Object(&NO_REWARDS), "Rewards: an empty object."),
        field("gst", Schema::Null, "When the game starts: not known."),
        field("ao", BOOLEAN, "Orders are taken now."),
        field("cbos", BOOLEAN, "The book is cleared at the start: never."),
        field("ibce", BOOLEAN, "Orders are screened: never."),
        field("rfqe", BOOLEAN, "Quotes can be requested: never."),
        field("oas", Schema::Integer { min: 0, max: 0 }, "Seconds that an order must stand: 0."),
    ],
));
pub const CLOB_MARKET_EXAMPLE: &str = r#"{
    "c": "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4",
    "t": [{"t": "81140002", "o": "Yes"}, {"t": "55200077", "o": "No"}], "mts": 0.01, "mos": 5, "nr": false,
    "mbf": 0, "tbf": 1000, "fd": {"r": 0.04, "e": 1, "to": true}, "r": {}, "gst": null, "ao": true, "cbos": false,
    "ibce": false, "rfqe": false, "oas": 0
}"#;
