//! What price histories look like on the wire, for the machine description.

use crate::http::schema::{CONDITION_ID, INTEGER, PRICE, Param, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID, field};

const SECS: Schema = Schema::Integer { min: 0, max: i64::MAX };
const MARKET: Param = Param::query("market", TOKEN_ID, "The outcome token; or `token_id`.");
const TOKEN: Param = Param::query("token_id", TOKEN_ID, "The outcome token, where `market` is not given.");
const START: Param = Param::query("startTs", SECS, "Unix seconds.");
const END: Param = Param::query("endTs", SECS, "Unix seconds; now without it.");
const FORMAT: Param = Param::query("format", TEXT, "`ohlcv` for candles; anything else is the usual form.");

pub const PARAMS: &[Param] = &[
    MARKET,
    TOKEN,
    START,
    END,
    Param::query(
        "interval",
        Schema::Word(&["1h", "6h", "1d", "1w", "1m", "max", "all"]),
        "Without startTs: so much before the end; one hour without it. `1m` is a month.",
    ),
    Param::query(
        "fidelity",
        Schema::Integer { min: 1, max: i64::MAX },
        "Minutes of a point; 1 without it, more where there would be more than 5000 points.",
    ),
    FORMAT,
];
pub const ARCHIVE_PARAMS: &[Param] = &[
    MARKET,
    TOKEN,
    START,
    END,
    Param::query("fidelity", Schema::Integer { min: 1, max: 1_440 }, "Minutes of a point; 60 without it."),
    FORMAT,
];

const POINT: Shape = Shape::new(
    "PricePoint",
    "A price.",
    &[field("t", INTEGER, "Start of the stretch, unix seconds."), field("p", Schema::Number, "Price at its end.")],
);
pub const HISTORY: Shape = Shape::new(
    "PricesHistory",
    "Prices, oldest first.",
    &[field("history", Schema::List { of: &Schema::Object(&POINT), min: 0, max: 5_000 }, "")],
);
const OHLC: Shape = Shape::new(
    "PriceCandle",
    "How a price went within a stretch.",
    &[
        field("t", INTEGER, "Start of the stretch, unix seconds."),
        field("o", PRICE, ""),
        field("h", PRICE, ""),
        field("l", PRICE, ""),
        field("c", PRICE, ""),
    ],
);
const CANDLES: Schema = Schema::List { of: &Schema::Object(&OHLC), min: 0, max: 5_000 };
pub const ANY_HISTORY: Schema = Schema::OneOf(&[Schema::Object(&HISTORY), CANDLES]);
const ARCHIVE: Shape = Shape::new(
    "PricesArchive",
    "The prices of a closed market's outcome.",
    &[
        field("market", TOKEN_ID, ""),
        field("condition_id", CONDITION_ID, ""),
        field("outcome", TEXT, ""),
        field("resolved_outcome", TEXT_OR_NULL, ""),
        field("fidelity", INTEGER, "Minutes of a point."),
        field("source", Schema::Word(&["archive"]), ""),
        field("history", CANDLES, ""),
    ],
);
pub const ANY_ARCHIVE: Schema = Schema::OneOf(&[Schema::Object(&ARCHIVE), CANDLES]);

pub const EXAMPLE: &str = r#"{"history":[{"t":1790931660,"p":0.41},{"t":1790931720,"p":0.415}]}"#;
pub const ARCHIVE_EXAMPLE: &str = r#"{"market":"81140002","condition_id":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","outcome":"Yes","resolved_outcome":"Yes","fidelity":60,"source":"archive","history":[{"t":1790931600,"o":"0.40","h":"0.43","l":"0.39","c":"0.415"}]}"#;
