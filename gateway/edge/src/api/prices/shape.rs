//! Shapes of the small reads of one token.

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, Field, INTEGER, PRICE, Param, Schema, Shape, TEXT, TOKEN_ID, TS_OR_NULL, field,
};

pub const TOKEN: &[Param] = &[Param::query("token_id", TOKEN_ID, "The outcome token (alias: token).").required()];
pub const TOKEN_AND_SIDE: &[Param] = &[
    Param::query("token_id", TOKEN_ID, "The outcome token (alias: token).").required(),
    Param::query("side", Schema::Word(&["BUY", "SELL"]), "BUY: the best bid; SELL: the best ask. In any case.")
        .required(),
];

const fn object(name: &'static str, about: &'static str, fields: &'static [Field]) -> Shape {
    Shape::new(name, about, fields)
}

pub const MIDPOINT: Schema = Schema::Object(&object(
    "Midpoint",
    "Half way between the best prices.",
    &[field("mid", PRICE, "Per share."), field("mid_price", PRICE, "The same.")],
));
pub const MIDPOINT_EXAMPLE: &str = r#"{"mid": "0.395", "mid_price": "0.395"}"#;

pub const BEST: Schema = Schema::Object(&object(
    "BestPrice",
    "The best price of one side.",
    &[
        field("price", PRICE, "Per share."),
        field("quote_at", TS_OR_NULL, "When it was last confirmed; null when that is unknown."),
        field("age_ms", Schema::Nullable(&INTEGER), "How long ago that was."),
    ],
));
pub const BEST_EXAMPLE: &str = r#"{"price": "0.38", "quote_at": "2026-11-21T09:20:01.120000Z", "age_ms": 310}"#;

pub const SPREAD: Schema = Schema::Object(&object(
    "Spread",
    "The best prices and what lies between them.",
    &[
        field("spread", PRICE, "Best ask less best bid."),
        field("bid", PRICE, "Best bid."),
        field("ask", PRICE, "Best ask."),
        field("best_bid", PRICE, "The same as bid."),
        field("best_ask", PRICE, "The same as ask."),
    ],
));
pub const SPREAD_EXAMPLE: &str =
    r#"{"spread": "0.03", "bid": "0.38", "ask": "0.41", "best_bid": "0.38", "best_ask": "0.41"}"#;

pub const LAST_TRADE: Schema = Schema::Object(&object(
    "LastTrade",
    "The last trade; 0.5 and no side before the first one.",
    &[
        field("price", Schema::OneOf(&[PRICE, Schema::Word(&["0.5"])]), "Per share."),
        field(
            "side",
            Schema::Word(&["BUY", "SELL", ""]),
            "What the taker did; empty where the venue states only the price.",
        ),
    ],
));
pub const LAST_TRADE_EXAMPLE: &str = r#"{"price": "0.39", "side": "SELL"}"#;

pub const TICK_SIZE: Schema = Schema::Object(&object(
    "TickSize",
    "The grid of prices.",
    &[field("minimum_tick_size", Schema::Number, "A number in its shortest form.")],
));
pub const TICK_SIZE_EXAMPLE: &str = r#"{"minimum_tick_size": 0.01}"#;

pub const NEG_RISK: Schema = Schema::Object(&object(
    "NegRisk",
    "Whether the market belongs to a group with one winner.",
    &[field("neg_risk", BOOLEAN, "It does.")],
));
pub const NEG_RISK_EXAMPLE: &str = r#"{"neg_risk": false}"#;

pub const FEE_RATE: Schema = Schema::Object(&object(
    "FeeRate",
    "What takers pay.",
    &[
        field(
            "base_fee",
            Schema::Integer { min: 0, max: 1_000 },
            "What clients put into their orders; 0 without fees.",
        ),
        field("fee_rate_bps", Schema::Integer { min: 0, max: 10_000 }, "The rate of the market's category."),
    ],
));
pub const FEE_RATE_EXAMPLE: &str = r#"{"base_fee": 1000, "fee_rate_bps": 400}"#;

pub const MARKET_OF_TOKEN: Schema = Schema::Object(&object(
    "MarketOfToken",
    "The market of a token.",
    &[
        field("condition_id", CONDITION_ID, "The market."),
        field("primary_token_id", TOKEN_ID, "Token of the first outcome."),
        field("secondary_token_id", TOKEN_ID, "Token of the second outcome."),
        field("outcome", TEXT, "The outcome of the token that was asked for."),
    ],
));
pub const MARKET_OF_TOKEN_EXAMPLE: &str = r#"{
    "condition_id": "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4",
    "primary_token_id": "81140002", "secondary_token_id": "55200077", "outcome": "Yes"
}"#;
