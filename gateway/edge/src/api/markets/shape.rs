//! What markets look like on the wire, for the machine description.

use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, OFFSET, PRICE_OR_NULL, Param, QTY, Schema, Shape, TEXT, TEXT_OR_NULL, TOKEN_ID,
    TS_OR_NULL, VOL_OR_NULL, field, optional,
};

const SORTS: &str = "Accepted; the order is always by volume.";
pub const LIST_PARAMS: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Markets of a page; 50 without it."),
    Param::query("offset", OFFSET, "Markets that are passed over."),
    Param::query("hot_only", BOOLEAN, "Only markets with more than 5000 USD traded."),
    Param::query("active_only", BOOLEAN, "Only active ones that are not closed, as without it."),
    Param::query("closed", BOOLEAN, "Only closed ones, or only open ones; wins over `active_only`."),
    Param::query("category", TEXT, "Part of a category's name, in any case."),
    Param::query("q", Schema::Text(120), "Part of the question or the slug, in any case."),
    Param::query("search", Schema::Text(120), "The same under another name."),
    Param::query("status", Schema::Word(&["active", "closed", "resolved", "all"]), "Wins over the two above."),
    Param::query("sort", TEXT, SORTS),
    Param::query("ascending", TEXT, SORTS),
    Param::query("envelope", BOOLEAN, "A page with its cursor instead of the bare list."),
    Param::query("next_cursor", TEXT, "Of the page before, with `envelope`."),
    Param::query("cursor", TEXT, "The same under another name."),
];
pub const DETAIL_PARAMS: &[Param] =
    &[Param::query("include_book", BOOLEAN, "Adds `order_book`, the book of the first outcome.")];
pub const LIST: Schema = Schema::OneOf(&[Schema::Array(&Schema::Object(&SUMMARY)), Schema::Object(&PAGE)]);

const TEXTS: Schema = Schema::Array(&TEXT);
pub const TOKENS: Schema = Schema::List { of: &TOKEN_ID, min: 2, max: 2 };
pub const OUTCOMES: Schema = Schema::List { of: &TEXT, min: 2, max: 2 };
pub const SOURCE: Schema = Schema::Word(&["clob", "upstream_meta"]);
pub const CATEGORY: Schema = Schema::Nullable(&Schema::Word(&[
    "sports",
    "finance",
    "politics",
    "mentions",
    "tech",
    "economics",
    "culture",
    "weather",
    "other",
    "crypto",
    "geopolitics",
]));

pub const QUOTED_OUTCOME: Shape = Shape::new(
    "QuotedOutcome",
    "An outcome with its displayed price.",
    &[field("label", TEXT, ""), field("price", PRICE_OR_NULL, ""), field("token_id", TOKEN_ID, "")],
);
const LIVE_PRICE: Shape = Shape::new(
    "LivePrice",
    "What a market is quoted at.",
    &[
        field("buy", PRICE_OR_NULL, "Best bid of the first outcome, else its displayed price."),
        field("sell", PRICE_OR_NULL, "Best ask of the first outcome, else its displayed price."),
        field("volume", VOL_OR_NULL, "All-time."),
        field("updated_at", TS_OR_NULL, "When the book last changed."),
        field("source", SOURCE, ""),
        field("outcomes", Schema::List { of: &Schema::Object(&QUOTED_OUTCOME), min: 2, max: 2 }, ""),
        field("synced_at", TS_OR_NULL, "When the venue last reported figures."),
    ],
);

/// The number of a market: at most 2^53 − 1.
pub const MARKET_NUMBER: Schema = Schema::Integer { min: 0, max: 9_007_199_254_740_991 };

/// The fields of the summary, and more.
macro_rules! with_summary {
    ($($more:expr),* $(,)?) => {
        &[
            field("condition_id", CONDITION_ID, ""),
            field("slug", TEXT_OR_NULL, ""),
            field("question", TEXT_OR_NULL, ""),
            field("outcomes", OUTCOMES, "In the order of the tokens."),
            field("active", BOOLEAN, ""),
            field("closed", BOOLEAN, ""),
            field("is_hot", BOOLEAN, "More than 5000 USD traded."),
            field("image_url", TEXT_OR_NULL, ""),
            field("category", CATEGORY, ""),
            field("display_label", TEXT_OR_NULL, "Label inside its event; without one the question serves."),
            field("clob_token_ids", TOKENS, ""),
            field("volume_24h", VOL_OR_NULL, "Trailing 24 hours; null when not reported."),
            field("volume_total", VOL_OR_NULL, "All-time; null when not reported."),
            field("last_price", PRICE_OR_NULL, "Of the last trade of the first outcome at the venue, seen or stated by it."),
            field("live_price", Schema::Nullable(&Schema::Object(&LIVE_PRICE)), "Null while nothing was ever quoted."),
            field("id", MARKET_NUMBER, "The venue's own number of the market, else one made of its condition id; never changes."),
            $($more),*
        ]
    };
}

const SUMMARY: Shape = Shape::new("MarketSummary", "A market as lists show it.", with_summary!());
const PAGE: Shape = Shape::new(
    "MarketPage",
    "One page of markets.",
    &[
        field("limit", INTEGER, ""),
        field("count", INTEGER, "Markets of this page."),
        field("next_cursor", TEXT, "`LTE=` behind the last page."),
        field("data", Schema::Array(&Schema::Object(&SUMMARY)), ""),
    ],
);
const TOKEN: Shape = Shape::new(
    "MarketToken",
    "An outcome's token.",
    &[
        field("token_id", TOKEN_ID, ""),
        field("outcome", TEXT, ""),
        field("price", Schema::Nullable(&Schema::Number), "Displayed price."),
        field("winner", BOOLEAN, "Only after the resolution."),
    ],
);
pub const DETAIL: Shape = Shape::new(
    "MarketDetail",
    "A market by itself, with the venue's own fields.",
    with_summary!(
        field("event_group_id", TEXT_OR_NULL, ""),
        field("event_title", TEXT_OR_NULL, ""),
        field("end_date", TS_OR_NULL, ""),
        field("resolved_outcome", TEXT_OR_NULL, ""),
        field("archived", BOOLEAN, "Resolved for more than 30 days."),
        field("archived_at", TS_OR_NULL, ""),
        field("tokens", Schema::List { of: &Schema::Object(&TOKEN), min: 2, max: 2 }, ""),
        field("question_id", CONDITION_ID, "The condition id again."),
        field("market_slug", TEXT_OR_NULL, "The slug again."),
        field("neg_risk", BOOLEAN, ""),
        field("tick_size", QTY, ""),
        field("min_order_size", QTY, ""),
        field("fee_rate_bps", INTEGER, ""),
        field("description", TEXT_OR_NULL, ""),
        field("venue", Schema::Word(&["synthetic", "polymarket", "kalshi"]), ""),
        field("enable_order_book", BOOLEAN, ""),
        field("accepting_orders", BOOLEAN, ""),
        field("accepting_order_timestamp", TS_OR_NULL, ""),
        field("minimum_order_size", Schema::Number, ""),
        field("minimum_tick_size", Schema::Number, ""),
        field("end_date_iso", TS_OR_NULL, ""),
        field("game_start_time", Schema::Null, ""),
        field("seconds_delay", INTEGER, ""),
        field("maker_base_fee", INTEGER, ""),
        field("taker_base_fee", INTEGER, ""),
        field("notifications_enabled", BOOLEAN, ""),
        field("is_50_50_outcome", BOOLEAN, ""),
        field("neg_risk_market_id", TEXT, "Always empty, as are the next two."),
        field("neg_risk_request_id", TEXT, ""),
        field("fpmm", TEXT, ""),
        field("icon", TEXT, ""),
        field("image", TEXT, ""),
        field("rewards", Schema::Any, "There are none here."),
        field("tags", TEXTS, ""),
        optional(
            "order_book",
            Schema::Any,
            "With `include_book`: the first outcome's book as `/v1/book` has it, or null."
        ),
    ),
);

pub const SUMMARY_EXAMPLE: &str = r#"[{"condition_id":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","slug":"rain-in-lisbon-oct-3","question":"Rain in Lisbon on 3 October?","outcomes":["Yes","No"],"active":true,"closed":false,"is_hot":true,"image_url":null,"category":"weather","display_label":null,"clob_token_ids":["81140002","55200077"],"volume_24h":"1822.5","volume_total":"9310","last_price":"0.42","live_price":{"buy":"0.41","sell":"0.42","volume":"9310","updated_at":"2026-10-02T09:14:59Z","source":"clob","outcomes":[{"label":"Yes","price":"0.415","token_id":"81140002"},{"label":"No","price":"0.585","token_id":"55200077"}],"synced_at":"2026-10-02T09:14:10Z"},"id":55871}]"#;
pub const DETAIL_EXAMPLE: &str = r#"{"condition_id":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","slug":"rain-in-lisbon-oct-3","question":"Rain in Lisbon on 3 October?","outcomes":["Yes","No"],"active":true,"closed":false,"is_hot":true,"image_url":null,"category":"weather","display_label":null,"clob_token_ids":["81140002","55200077"],"volume_24h":"1822.5","volume_total":"9310","last_price":"0.42","live_price":null,"id":55871,"event_group_id":"e-771","event_title":"Lisbon weather","end_date":"2026-10-04T00:00:00Z","resolved_outcome":null,"archived":false,"archived_at":null,"tokens":[{"token_id":"81140002","outcome":"Yes","price":0.415,"winner":false},{"token_id":"55200077","outcome":"No","price":0.585,"winner":false}],"question_id":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","market_slug":"rain-in-lisbon-oct-3","neg_risk":false,"tick_size":"0.01","min_order_size":"5","fee_rate_bps":500,"description":null,"venue":"synthetic","enable_order_book":true,"accepting_orders":true,"accepting_order_timestamp":null,"minimum_order_size":5,"minimum_tick_size":0.01,"end_date_iso":"2026-10-04T00:00:00Z","game_start_time":null,"seconds_delay":0,"maker_base_fee":0,"taker_base_fee":1000,"notifications_enabled":false,"is_50_50_outcome":false,"neg_risk_market_id":"","neg_risk_request_id":"","fpmm":"","icon":"","image":"","rewards":{"rates":null,"min_size":0,"max_spread":0},"tags":[]}"#;
