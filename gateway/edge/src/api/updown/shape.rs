//! What up-or-down markets look like on the wire, for the machine description.

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, DECIMAL, INTEGER, Param, Schema, Shape, TEXT, TEXT_OR_NULL, TS, TS_OR_NULL, field,
};

const ASSET: Schema = Schema::Word(&["BTC", "ETH", "SOL", "XRP", "SPX", "NDX"]);
const INTERVAL: Schema = Schema::Word(&["5M", "15M", "1H", "4H", "daily"]);

pub const ASKED_ASSET: Param = Param::query("asset", ASSET, "In any case; all without it.");
pub const PARAMS: &[Param] = &[
    ASKED_ASSET,
    Param::query("interval", INTERVAL, "In any case; all without it. 5M and 15M are behind a flag."),
    Param::query("limit", Schema::Integer { min: 1, max: 500 }, "The first so many; all of the window without it."),
];

const MARKET: Shape = Shape::new(
    "UpDownMarket",
    "The market itself; its last three fields are JSON inside texts.",
    &[
        field("id", TEXT, ""),
        field("condition_id", CONDITION_ID, ""),
        field("question", TEXT, ""),
        field("outcomes", TEXT, ""),
        field("outcome_prices", TEXT, "Displayed prices; `[]` while nothing was ever quoted."),
        field("token_ids", TEXT, ""),
    ],
);
const PRICE: Shape = Shape::new(
    "UpDownPrice",
    "Best prices of the first outcome.",
    &[
        field("buy", Schema::Nullable(&Schema::Number), ""),
        field("sell", Schema::Nullable(&Schema::Number), ""),
        field("updated_at", TS_OR_NULL, ""),
    ],
);
const ROW: Shape = Shape::new(
    "UpDownRow",
    "An up-or-down market with its window.",
    &[
        field("event_id", TEXT_OR_NULL, ""),
        field("condition_id", CONDITION_ID, ""),
        field("slug", TEXT, ""),
        field("title", TEXT, ""),
        field("description", TEXT_OR_NULL, ""),
        field("asset", ASSET, ""),
        field("interval", INTERVAL, ""),
        field("time_range", TEXT, "US Eastern."),
        field("date_display", TEXT, "US Eastern."),
        field("start_date", TS, ""),
        field("end_date", TS, ""),
        field("active", BOOLEAN, ""),
        field("closed", BOOLEAN, ""),
        field("resolved", BOOLEAN, ""),
        field("tags", Schema::Array(&TEXT), ""),
        field("markets", Schema::List { of: &Schema::Object(&MARKET), min: 1, max: 1 }, ""),
        field("live_price", Schema::Nullable(&Schema::Object(&PRICE)), "Null while nothing was ever quoted."),
        field("group_item_threshold", TEXT_OR_NULL, "The strike; null until the window opens, and where unknown."),
        field("event_metadata_ptb", TEXT_OR_NULL, "The price to beat as the event has it."),
        field("image", TEXT_OR_NULL, ""),
        field("icon", TEXT_OR_NULL, ""),
    ],
);
pub const LIST: Shape = Shape::new(
    "UpDownList",
    "The up-or-down markets of the near-term window, soonest-resolving first.",
    &[
        field("markets", Schema::Array(&Schema::Object(&ROW)), ""),
        field("total", INTEGER, "That match, whatever the limit."),
        field("interval_counts", Schema::Map(&INTEGER), "Of the whole window, as are the next three."),
        field("asset_counts", Schema::Map(&INTEGER), ""),
        field("available_intervals", Schema::Array(&INTERVAL), ""),
        field("available_assets", Schema::Array(&ASSET), ""),
        field("crypto_prices", Schema::Map(&SPOT), "By symbol. Empty without a source of spot prices."),
        field("timestamp", TS, ""),
        field("cache_hit", BOOLEAN, ""),
    ],
);
const COUNT: Shape = Shape::new(
    "UpDownCount",
    "How many markets of an interval the window has.",
    &[field("interval", INTERVAL, ""), field("count", INTEGER, "")],
);
pub const INTERVALS: Shape = Shape::new(
    "UpDownIntervals",
    "Intervals that the window has markets of.",
    &[
        field("asset", Schema::Nullable(&ASSET), "Null when none was named."),
        field("intervals", Schema::Array(&Schema::Object(&COUNT)), ""),
    ],
);

const SPOT: Schema = Schema::Object(&Shape::new(
    "UpDownSpot",
    "The newest spot price of an asset.",
    &[
        field("symbol", ASSET, "The asset."),
        field("price", DECIMAL, "US dollars."),
        field("source", TEXT, "Where it comes from."),
        field("change_24h", TEXT_OR_NULL, "Null: the source does not tell."),
    ],
));

pub const LIST_EXAMPLE: &str = r#"{"markets":[{"event_id":"e-9001","condition_id":"0x77aade77aade77aade77aade77aade77aade77aade77aade77aade77aade7710","slug":"eth-updown-1h-1790935200","title":"ETH up or down, 6–7 AM ET","description":null,"asset":"ETH","interval":"1H","time_range":"6:00 AM-7:00 AM ET","date_display":"October 2","start_date":"2026-10-02T10:00:00Z","end_date":"2026-10-02T11:00:00Z","active":true,"closed":false,"resolved":false,"tags":["up-or-down","ethereum","1h"],"markets":[{"id":"55871","condition_id":"0x77aade77aade77aade77aade77aade77aade77aade77aade77aade77aade7710","question":"ETH up or down?","outcomes":"[\"Up\",\"Down\"]","outcome_prices":"[\"0.53\",\"0.47\"]","token_ids":"[\"901244\",\"330781\"]"}],"live_price":{"buy":0.52,"sell":0.54,"updated_at":"2026-10-02T10:12:00Z"},"group_item_threshold":"2511.40","event_metadata_ptb":"2511.40","image":null,"icon":null}],"total":1,"interval_counts":{"1H":1},"asset_counts":{"ETH":1},"available_intervals":["1H"],"available_assets":["ETH"],"crypto_prices":{},"timestamp":"2026-10-02T10:12:00Z","cache_hit":true}"#;
pub const INTERVALS_EXAMPLE: &str = r#"{"asset":"BTC","intervals":[{"interval":"1H","count":4}]}"#;
