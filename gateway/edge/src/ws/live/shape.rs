//! Shapes of spot prices and of the stream's parameters.

use crate::http::schema::{BOOLEAN, Field, Format, Param, Schema, Shape, TEXT, TS, field};

/// A time as the price streams write it.
const MOMENT: Schema = Schema::Format(&Format {
    name: "StreamTime",
    about: "A moment in UTC with milliseconds.",
    pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z$",
});
const SYMBOL: Schema = Schema::Word(&["BTC", "ETH", "SOL", "XRP"]);
const ASSET: Schema = Schema::Word(&["BTC", "ETH", "SOL", "XRP", "SPX", "NDX"]);
const LABEL: Schema = Schema::Word(&["chainlink"]);
const FAMILY: Schema = Schema::Word(&["chainlink", "chainlink_rtds", "binance", "polymarket_rtds", "relay_binance"]);

pub const SOURCE: Param = Param::query("source", FAMILY, "The family of sources; any when left out.");
pub const STREAM_PARAMS: &[Param] = &[
    Param::query("crypto", TEXT, "Symbols with commas between: BTC, BTCUSDT or btc/usd."),
    Param::query("crypto_source", FAMILY, "The family of sources; any when left out."),
    Param::query("condition_ids", TEXT, "At most 50 markets, with commas between."),
    Param::query("background", BOOLEAN, "One batch a second instead of single events."),
];
pub const STREAM_EXAMPLE: &str = concat!(
    "event: crypto_price\n",
    r#"data: {"symbol":"BTC","price":64310.22,"source":"chainlink","timestamp":"2026-11-05T09:33:22.000Z"}"#,
    "\n\n"
);

const LIVE: &[Field] = &[
    field("symbol", SYMBOL, "The asset."),
    field("price", Schema::Number, "US dollars."),
    field("source", LABEL, "Where it comes from."),
    field("timestamp", MOMENT, "When it was so."),
    field("age_seconds", Schema::Number, "How long ago that is."),
    field("stale", BOOLEAN, "The source is silent."),
];
pub const ONE: Shape = Shape::new("SpotPrice", "The newest spot price of a symbol.", LIVE);
pub const ALL: Shape = Shape::new(
    "SpotPrices",
    "The newest spot prices.",
    &[
        field("prices", Schema::Map(&Schema::Object(&ONE)), "By symbol."),
        field("supported_symbols", Schema::Array(&SYMBOL), "Those that have a source."),
        field("timestamp", MOMENT, "Now."),
    ],
);
pub const TO_BEAT: Shape = Shape::new(
    "PriceToBeat",
    "What the price must beat for Up.",
    &[
        field("price", Schema::Number, "US dollars."),
        field("asset", ASSET, "The asset."),
        field("start_date", TS, "Start of the window."),
        field("source", LABEL, "Where it comes from."),
    ],
);

pub const ONE_EXAMPLE: &str = r#"{"symbol":"BTC","price":64310.22,"source":"chainlink","timestamp":"2026-11-05T09:33:22.000Z","age_seconds":0.417,"stale":false}"#;
pub const ALL_EXAMPLE: &str = r#"{"prices":{"BTC":{"symbol":"BTC","price":64310.22,"source":"chainlink","timestamp":"2026-11-05T09:33:22.000Z","age_seconds":0.417,"stale":false}},"supported_symbols":["BTC","ETH","SOL","XRP"],"timestamp":"2026-11-05T09:33:22.417Z"}"#;
pub const TO_BEAT_EXAMPLE: &str =
    r#"{"price":64288.1,"asset":"BTC","start_date":"2026-11-05T09:30:00Z","source":"chainlink"}"#;
