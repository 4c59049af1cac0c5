//! What markets, events and tags of the venue's catalogue service look like, for the machine description.

use super::filter::{EVENTS_MAX, MARKETS_MAX};
use super::{HOURS_MAX, PAGE_MAX, SEARCH_CHARS_MAX, SEARCH_MAX, TAGS_MAX};
use crate::http::schema::{
    BOOLEAN, CONDITION_ID, INTEGER, OFFSET, Param, Schema, Shape, TEXT, TS, VOL, field, optional,
};

const LIST_TEXT: Schema = Schema::Format(&crate::http::schema::Format {
    name: "JsonList",
    about: "A list of texts, as a text that holds JSON.",
    pattern: r"^\[.*\]$",
});
const NUMBER_TEXT: Schema = Schema::Format(&crate::http::schema::Format {
    name: "NumberText",
    about: "A whole number as a text.",
    pattern: r"^(0|[1-9][0-9]*)$",
});
const DATE: Schema = Schema::Format(&crate::http::schema::Format {
    name: "Date",
    about: "A day in UTC.",
    pattern: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$",
});

/// What is not known here, and always there at the venue.
const EMPTY: Schema = Schema::Word(&[""]);

const VALUES: &str = "May be repeated, or hold commas; at most 100 values.";
const CONDITION_IDS: Param = Param::query("condition_ids", TEXT, VALUES);
const TOKEN_IDS: Param = Param::query("clob_token_ids", TEXT, VALUES);
const ID: Param = Param::query("id", TEXT, VALUES);
const SLUG: Param = Param::query("slug", TEXT, VALUES);
const ACTIVE: Param = Param::query("active", BOOLEAN, "Only what opened, or only what did not.");
const CLOSED: Param =
    Param::query("closed", BOOLEAN, "Without it open ones, and what is asked for by name in any state.");
const ARCHIVED: Param = Param::query("archived", BOOLEAN, "");
const TAG_ID: Param = Param::query("tag_id", TEXT, "");
const TAG_SLUG: Param = Param::query("tag_slug", TEXT, "Wins over `tag_id`.");
const START_MIN: Param = Param::query("start_date_min", TEXT, "A time, or a day.");
const START_MAX: Param = Param::query("start_date_max", TEXT, "A time, or a day.");
const END_MIN: Param = Param::query("end_date_min", TEXT, "A time, or a day.");
const END_MAX: Param = Param::query("end_date_max", TEXT, "A time, or a day.");
const VOLUME_MIN: Param = Param::query("volume_num_min", VOL, "");
const VOLUME_MAX: Param = Param::query("volume_num_max", VOL, "");
const LIQUIDITY_MIN: Param = Param::query("liquidity_num_min", VOL, "");
const LIQUIDITY_MAX: Param = Param::query("liquidity_num_max", VOL, "");
const ORDER: Param = Param::query(
    "order",
    TEXT,
    "Up to four of volume24hr, volume, liquidity, startDate, endDate, createdAt and id (also in their other spellings), \
     with commas between them.",
);
const ASCENDING: Param = Param::query("ascending", BOOLEAN, "Default true.");
const MARKETS_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: MARKETS_MAX as i64 }, "Rows of a page; 20 without it.");
const EVENTS_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: EVENTS_MAX as i64 }, "Events of a page; 20 without it.");
const SKIPPED: Param = Param::query("offset", OFFSET, "Rows that are passed over.");
const AFTER: Param = Param::query("after_cursor", TEXT, "`next_cursor` of the page before.");

pub const MARKETS_ASKED: &[Param] = &[
    CONDITION_IDS,
    TOKEN_IDS,
    ID,
    SLUG,
    ACTIVE,
    CLOSED,
    ARCHIVED,
    TAG_ID,
    TAG_SLUG,
    START_MIN,
    START_MAX,
    END_MIN,
    END_MAX,
    VOLUME_MIN,
    VOLUME_MAX,
    LIQUIDITY_MIN,
    LIQUIDITY_MAX,
    ORDER,
    ASCENDING,
    MARKETS_LIMIT,
    SKIPPED,
];
pub const MARKETS_KEYSET_ASKED: &[Param] = &[
    CONDITION_IDS,
    TOKEN_IDS,
    ID,
    SLUG,
    ACTIVE,
    CLOSED,
    ARCHIVED,
    TAG_ID,
    TAG_SLUG,
    START_MIN,
    START_MAX,
    END_MIN,
    END_MAX,
    VOLUME_MIN,
    VOLUME_MAX,
    LIQUIDITY_MIN,
    LIQUIDITY_MAX,
    ORDER,
    ASCENDING,
    MARKETS_LIMIT,
    AFTER,
];
pub const EVENTS_ASKED: &[Param] = &[
    ID,
    SLUG,
    ACTIVE,
    CLOSED,
    ARCHIVED,
    TAG_ID,
    TAG_SLUG,
    START_MIN,
    START_MAX,
    END_MIN,
    END_MAX,
    ORDER,
    ASCENDING,
    EVENTS_LIMIT,
    SKIPPED,
];
pub const EVENTS_KEYSET_ASKED: &[Param] = &[
    ID,
    SLUG,
    ACTIVE,
    CLOSED,
    ARCHIVED,
    TAG_ID,
    TAG_SLUG,
    START_MIN,
    START_MAX,
    END_MIN,
    END_MAX,
    ORDER,
    ASCENDING,
    EVENTS_LIMIT,
    AFTER,
];
pub const TAGS_ASKED: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: TAGS_MAX as i64 }, "Tags of a page; 100 without it."),
    SKIPPED,
];
pub const SEARCH_ASKED: &[Param] = &[
    Param::query("q", Schema::Text(SEARCH_CHARS_MAX as u32), "What is looked for, in any case.").required(),
    Param::query(
        "limit_per_type",
        Schema::Integer { min: 1, max: SEARCH_MAX as i64 },
        "Events of a page; 5 without it.",
    ),
    Param::query("page", Schema::Integer { min: 1, max: PAGE_MAX as i64 }, "From 1."),
    Param::query("events_status", Schema::Word(&["active", "closed", "resolved", "all"]), "Default `active`."),
    Param::query(
        "keep_closed_markets",
        Schema::Integer { min: 0, max: HOURS_MAX as i64 },
        "Above 0: closed events too.",
    ),
];

const FEES: Shape = Shape::new(
    "GammaFeeSchedule",
    "What a taker pays: rate × shares × price × (1 − price).",
    &[
        field("exponent", INTEGER, ""),
        field("rate", Schema::Number, ""),
        field("takerOnly", BOOLEAN, ""),
        field("rebateRate", Schema::Number, ""),
    ],
);
const TAG: Schema = Schema::Object(&Shape::new(
    "GammaTag",
    "A tag.",
    &[field("id", NUMBER_TEXT, ""), field("label", TEXT, ""), field("slug", TEXT, "")],
));
const EVENT_REFERENCE: Shape = Shape::new(
    "GammaEventReference",
    "The event of a market.",
    &[
        field("id", TEXT, ""),
        field("ticker", TEXT, ""),
        field("slug", TEXT, ""),
        field("title", TEXT, ""),
        field("active", BOOLEAN, ""),
        field("closed", BOOLEAN, ""),
        field("negRisk", BOOLEAN, ""),
    ],
);
pub const MARKET: Schema = Schema::Object(&Shape::new(
    "GammaMarket",
    "A market. Figures that are not known have no field.",
    &[
        field("id", NUMBER_TEXT, "The venue's own number, else 53 bits of the SHA-256 of the condition id."),
        field("question", TEXT, ""),
        field("conditionId", CONDITION_ID, ""),
        field("questionID", CONDITION_ID, "The condition id."),
        field("slug", TEXT, ""),
        field("resolutionSource", EMPTY, ""),
        field("description", TEXT, ""),
        field("image", TEXT, ""),
        field("icon", TEXT, "The same as `image`."),
        optional("category", TEXT, ""),
        optional("groupItemTitle", TEXT, "Label inside the event."),
        field("outcomes", LIST_TEXT, ""),
        field("clobTokenIds", LIST_TEXT, "Tokens, in the order of the outcomes."),
        optional("outcomePrices", LIST_TEXT, "Displayed prices, in the order of the outcomes."),
        optional("volume", VOL, ""),
        optional("volumeNum", Schema::Number, "The same."),
        optional("volume24hr", Schema::Number, ""),
        optional("volume24hrClob", Schema::Number, "The same."),
        optional("liquidity", VOL, ""),
        optional("liquidityNum", Schema::Number, "The same."),
        optional("bestBid", Schema::Number, "Of the first outcome."),
        optional("bestAsk", Schema::Number, "Of the first outcome."),
        optional("spread", Schema::Number, "Best ask less best bid."),
        optional("lastTradePrice", Schema::Number, "Of the first outcome."),
        optional("startDate", TS, ""),
        optional("startDateIso", DATE, ""),
        optional("endDate", TS, ""),
        optional("endDateIso", DATE, ""),
        optional("eventStartTime", TS, "Up-or-down markets: when the window begins."),
        optional("closedTime", TS, "When it was resolved."),
        optional("acceptingOrdersTimestamp", TS, "The same as `startDate`."),
        field("createdAt", TS, "When it was listed here."),
        field("updatedAt", TS, "When its figures last came."),
        field("active", BOOLEAN, "It opened; stays true when it is closed."),
        field("closed", BOOLEAN, ""),
        field("archived", BOOLEAN, ""),
        field("acceptingOrders", BOOLEAN, ""),
        field("enableOrderBook", BOOLEAN, "true"),
        field("ready", BOOLEAN, "false"),
        field("funded", BOOLEAN, "false"),
        field("new", BOOLEAN, "false"),
        field("featured", BOOLEAN, "false"),
        field("restricted", BOOLEAN, "false"),
        field("negRiskOther", BOOLEAN, "false"),
        field("approved", BOOLEAN, "true"),
        field("negRisk", BOOLEAN, ""),
        field("marketMakerAddress", EMPTY, ""),
        field("orderPriceMinTickSize", Schema::Number, ""),
        field("orderMinSize", Schema::Number, ""),
        field("secondsDelay", INTEGER, "0"),
        field("makerBaseFee", INTEGER, "What an order carries, not what is paid."),
        field("takerBaseFee", INTEGER, "What an order carries, not what is paid."),
        field("feesEnabled", BOOLEAN, ""),
        field("feeSchedule", Schema::Object(&FEES), ""),
        field("rewardsMinSize", INTEGER, "0"),
        field("rewardsMaxSpread", INTEGER, "0"),
        field("automaticallyResolved", BOOLEAN, "It is resolved."),
        field("umaResolutionStatuses", LIST_TEXT, "Empty."),
        optional("umaResolutionStatus", Schema::Word(&["resolved"]), ""),
        optional("events", Schema::Array(&Schema::Object(&EVENT_REFERENCE)), "Its event; not inside one."),
        optional("tags", Schema::Array(&TAG), "Not inside an event."),
    ],
));
pub const EVENT: Schema = Schema::Object(&Shape::new(
    "GammaEvent",
    "An event with all of its markets. Its figures are the sums of theirs.",
    &[
        field("id", TEXT, ""),
        field("ticker", TEXT, ""),
        field("slug", TEXT, ""),
        field("title", TEXT, ""),
        field("description", TEXT, "Of its first market."),
        field("resolutionSource", EMPTY, ""),
        optional("startDate", TS, "The earliest of its markets."),
        optional("startDateIso", DATE, ""),
        optional("endDate", TS, "The latest of its markets."),
        optional("endDateIso", DATE, ""),
        field("image", TEXT, ""),
        field("icon", TEXT, "The same as `image`."),
        field("active", BOOLEAN, "One of its markets opened."),
        field("closed", BOOLEAN, "All of its markets are."),
        field("archived", BOOLEAN, "All of its markets are."),
        field("new", BOOLEAN, "false"),
        field("featured", BOOLEAN, "false"),
        field("restricted", BOOLEAN, "false"),
        field("liquidity", Schema::Number, ""),
        field("volume", Schema::Number, ""),
        field("volume24hr", Schema::Number, ""),
        field("enableOrderBook", BOOLEAN, "true"),
        field("negRisk", BOOLEAN, ""),
        field("enableNegRisk", BOOLEAN, "The same as `negRisk`."),
        field("negRiskAugmented", BOOLEAN, "false"),
        optional("category", TEXT, ""),
        field("tags", Schema::Array(&TAG), ""),
        field("markets", Schema::Array(&MARKET), ""),
    ],
));
pub const MARKETS: Schema = Schema::Array(&MARKET);
pub const EVENTS: Schema = Schema::Array(&EVENT);
pub const TAGS: Schema = Schema::Array(&TAG);
pub const MARKETS_PAGE: Schema = Schema::Object(&Shape::new(
    "GammaMarketPage",
    "One page of markets.",
    &[field("markets", MARKETS, ""), optional("next_cursor", TEXT, "The last page has none.")],
));
pub const EVENTS_PAGE: Schema = Schema::Object(&Shape::new(
    "GammaEventPage",
    "One page of events.",
    &[field("events", EVENTS, ""), optional("next_cursor", TEXT, "The last page has none.")],
));
const PAGINATION: Shape = Shape::new(
    "GammaPagination",
    "Where a search stands.",
    &[field("hasMore", BOOLEAN, ""), field("totalResults", INTEGER, "")],
);
pub const FOUND: Schema = Schema::Object(&Shape::new(
    "GammaFound",
    "One page of a search.",
    &[
        field("events", EVENTS, "Most traded first."),
        field("tags", Schema::List { of: &Schema::Any, min: 0, max: 0 }, "None are looked for."),
        field("profiles", Schema::List { of: &Schema::Any, min: 0, max: 0 }, "None are looked for."),
        field("pagination", Schema::Object(&PAGINATION), ""),
    ],
));

pub const MARKET_EXAMPLE: &str = r#"{"id":"1557558","question":"Rain in Lisbon on 3 October?","conditionId":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","questionID":"0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e","slug":"rain-in-lisbon-oct-3","resolutionSource":"","description":"","image":"","icon":"","category":"weather","outcomes":"[\"Yes\",\"No\"]","clobTokenIds":"[\"81140002\",\"55200077\"]","outcomePrices":"[\"0.415\",\"0.585\"]","volume":"9310","volumeNum":9310,"bestBid":0.41,"bestAsk":0.42,"spread":0.01,"endDate":"2026-10-04T00:00:00Z","endDateIso":"2026-10-04","createdAt":"2026-09-01T00:00:00Z","updatedAt":"2026-10-02T09:14:05Z","active":true,"closed":false,"archived":false,"acceptingOrders":true,"enableOrderBook":true,"ready":false,"funded":false,"new":false,"featured":false,"restricted":false,"negRiskOther":false,"approved":true,"negRisk":false,"marketMakerAddress":"","orderPriceMinTickSize":0.01,"orderMinSize":5,"secondsDelay":0,"makerBaseFee":1000,"takerBaseFee":1000,"feesEnabled":true,"feeSchedule":{"exponent":1,"rate":0.05,"takerOnly":true,"rebateRate":0},"rewardsMinSize":0,"rewardsMaxSpread":0,"automaticallyResolved":false,"umaResolutionStatuses":"[]","events":[],"tags":[]}"#;
pub const MARKETS_EXAMPLE: &str = "[]";
pub const MARKETS_PAGE_EXAMPLE: &str = r#"{"markets":[],"next_cursor":"MjA="}"#;
pub const EVENT_EXAMPLE: &str = r#"{"id":"260654","ticker":"lisbon-weather","slug":"lisbon-weather","title":"Lisbon weather","description":"","resolutionSource":"","endDate":"2026-10-04T00:00:00Z","endDateIso":"2026-10-04","image":"","icon":"","active":true,"closed":false,"archived":false,"new":false,"featured":false,"restricted":false,"liquidity":0,"volume":9310,"volume24hr":1822.5,"enableOrderBook":true,"negRisk":false,"enableNegRisk":false,"negRiskAugmented":false,"category":"weather","tags":[],"markets":[]}"#;
pub const EVENTS_EXAMPLE: &str = "[]";
pub const EVENTS_PAGE_EXAMPLE: &str = r#"{"events":[]}"#;
pub const TAGS_EXAMPLE: &str = r#"[{"id":"1557558","label":"weather","slug":"weather"}]"#;
pub const FOUND_EXAMPLE: &str =
    r#"{"events":[],"tags":[],"profiles":[],"pagination":{"hasMore":false,"totalResults":0}}"#;
