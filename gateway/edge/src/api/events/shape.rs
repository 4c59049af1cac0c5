//! What events look like on the wire, for the machine description.

use crate::api::markets::shape::{CATEGORY, MARKET_NUMBER, OUTCOMES, TOKENS};
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, OFFSET, PRICE_OR_NULL, Param, Schema, Shape, TEXT, TEXT_OR_NULL, TS_OR_NULL,
    VOL_OR_NULL, field,
};

pub const PARAMS: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Events of a page; 50 without it."),
    Param::query("offset", OFFSET, "Events that are passed over."),
    Param::query("hot_only", BOOLEAN, "Only events with more than 5000 USD traded."),
    Param::query("markets_per_event", Schema::Integer { min: 1, max: 100 }, "Markets shown of each; 20 without it."),
    Param::query("category", TEXT, "Part of a category's name, in any case; quotes around it are passed over."),
    Param::query("search", TEXT, "Part of an event's title or of a market's question, in any case."),
    Param::query("include_sports", BOOLEAN, "Sports too, as without it."),
    Param::query("venue", Schema::Word(&["all", "polymarket", "kalshi"]), "Where the markets come from."),
];

const SIDES: Shape = Shape::new(
    "EventPrice",
    "Best prices of the first outcome.",
    &[field("buy", PRICE_OR_NULL, ""), field("sell", PRICE_OR_NULL, "")],
);
const CHILD: Shape = Shape::new(
    "EventMarket",
    "A market as its event shows it.",
    &[
        field("condition_id", CONDITION_ID, ""),
        field("slug", TEXT, ""),
        field("question", TEXT, ""),
        field("outcomes", OUTCOMES, ""),
        field("live_price", Schema::Nullable(&Schema::Object(&SIDES)), "Null while nothing was ever quoted."),
        field("clob_token_ids", TOKENS, ""),
        field("display_label", TEXT_OR_NULL, "Label inside the event; without one the question serves."),
        field("volume_24h", VOL_OR_NULL, ""),
        field("volume_total", VOL_OR_NULL, ""),
        field(
            "id",
            MARKET_NUMBER,
            "The venue's own number of the market, else one made of its condition id; never changes.",
        ),
    ],
);
const EVENT: Shape = Shape::new(
    "Event",
    "A group of markets.",
    &[
        field("id", TEXT, ""),
        field("slug", TEXT, ""),
        field("title", TEXT, ""),
        field("image", TEXT_OR_NULL, ""),
        field("end_date", TS_OR_NULL, ""),
        field("is_hot", BOOLEAN, "More than 5000 USD traded on all its markets."),
        field("category", CATEGORY, ""),
        field("markets", Schema::Array(&Schema::Object(&CHILD)), "Those that are not closed, most traded first."),
    ],
);
pub const PAGE: Shape = Shape::new(
    "EventPage",
    "One page of events.",
    &[
        field("events", Schema::Array(&Schema::Object(&EVENT)), "By summed volume."),
        field("total", INTEGER, "Across all pages."),
        field("limit", INTEGER, ""),
        field("offset", OFFSET, ""),
        field("cache_source", TEXT, "For people: nothing to branch on."),
        field(
            "has_sports",
            Schema::Nullable(&BOOLEAN),
            "Whether `include_sports=false` left any out; null when not asked.",
        ),
    ],
);
pub const WARMING: Shape = Shape::new(
    "EventsWarming",
    "Nothing was listed yet.",
    &[
        field("error", Schema::Word(&["HTTP_503"]), ""),
        field("message", TEXT, ""),
        field("events", Schema::List { of: &Schema::Any, min: 0, max: 0 }, ""),
        field("total", Schema::Integer { min: 0, max: 0 }, ""),
        field("limit", INTEGER, ""),
        field("offset", OFFSET, ""),
        field("cache_source", Schema::Word(&["warming"]), ""),
        field("has_sports", Schema::Null, ""),
    ],
);

pub const EXAMPLE: &str = r#"{"events":[{"id":"e-771","slug":"lisbon-weather","title":"Lisbon weather","image":null,"end_date":"2026-10-04T00:00:00Z","is_hot":true,"category":"weather","markets":[{"condition_id":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","slug":"rain-in-lisbon-oct-3","question":"Rain in Lisbon on 3 October?","outcomes":["Yes","No"],"live_price":{"buy":"0.41","sell":"0.42"},"clob_token_ids":["81140002","55200077"],"display_label":null,"volume_24h":"1822.5","volume_total":"9310","id":55871}]}],"total":1,"limit":50,"offset":0,"cache_source":"memory","has_sports":null}"#;
pub const WARMING_EXAMPLE: &str = r#"{"error":"HTTP_503","message":"The market list is still being loaded.","events":[],"total":0,"limit":50,"offset":0,"cache_source":"warming","has_sports":null}"#;
