//! Parameters of the venue's catalogue service.

use super::filter::{EVENTS_MAX, MARKETS_MAX};
use super::{HOURS_MAX, PAGE_MAX, SEARCH_CHARS_MAX, SEARCH_MAX, TAGS_MAX};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT, VOL};

const VALUES: &str = "May be repeated, or hold commas; at most 100 values.";
const CONDITION_IDS: Param = Param::query("condition_ids", TEXT, VALUES);
const TOKEN_IDS: Param = Param::query("clob_token_ids", TEXT, VALUES);
const ID: Param = Param::query("id", TEXT, VALUES);
const SLUG: Param = Param::query("slug", TEXT, VALUES);
const ACTIVE: Param = Param::query("active", BOOLEAN, "True: only those that opened; false: only those that did not.");
const CLOSED: Param =
    Param::query("closed", BOOLEAN, "Without it open ones, and those that the request names in any state.");
const ARCHIVED: Param = Param::query("archived", BOOLEAN, "");
const TAG_ID: Param = Param::query("tag_id", TEXT, "Id of a tag.");
const TAG_SLUG: Param = Param::query("tag_slug", TEXT, "Overrides `tag_id`.");
const START_MIN: Param = Param::query("start_date_min", TEXT, "Earliest start: a time or a day.");
const START_MAX: Param = Param::query("start_date_max", TEXT, "Latest start: a time or a day.");
const END_MIN: Param = Param::query("end_date_min", TEXT, "Earliest end: a time or a day.");
const END_MAX: Param = Param::query("end_date_max", TEXT, "Latest end: a time or a day.");
const VOLUME_MIN: Param = Param::query("volume_num_min", VOL, "Lowest volume, in USD.");
const VOLUME_MAX: Param = Param::query("volume_num_max", VOL, "Highest volume, in USD.");
const LIQUIDITY_MIN: Param = Param::query("liquidity_num_min", VOL, "Lowest liquidity, in USD.");
const LIQUIDITY_MAX: Param = Param::query("liquidity_num_max", VOL, "Highest liquidity, in USD.");
const ORDER: Param = Param::query(
    "order",
    TEXT,
    "Up to four of volume24hr, volume, liquidity, startDate, endDate, createdAt and id (also in their other spellings), \
     with commas between them.",
);
const ASCENDING: Param = Param::query("ascending", BOOLEAN, "Default true.");
const MARKETS_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: MARKETS_MAX as i64 }, "Rows of a page; default: 20.");
const EVENTS_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: EVENTS_MAX as i64 }, "Events of a page; default: 20.");
const SKIPPED: Param = Param::query("offset", OFFSET, "Rows before the page.");
const AFTER: Param = Param::query("after_cursor", TEXT, "`next_cursor` of the page before.");

/// Parameters of a list of markets; the last one is where its page begins.
macro_rules! of_markets {
    ($page_start:expr) => {
        &[
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
            $page_start,
        ]
    };
}

/// The same of a list of events.
macro_rules! of_events {
    ($page_start:expr) => {
        &[
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
            $page_start,
        ]
    };
}

pub const MARKETS: &[Param] = of_markets!(SKIPPED);
pub const MARKETS_KEYSET: &[Param] = of_markets!(AFTER);
pub const EVENTS: &[Param] = of_events!(SKIPPED);
pub const EVENTS_KEYSET: &[Param] = of_events!(AFTER);
pub const TAGS: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: TAGS_MAX as i64 }, "Tags of a page; default: 100."),
    SKIPPED,
];
pub const SEARCH: &[Param] = &[
    Param::query("q", Schema::Text(SEARCH_CHARS_MAX as u32), "The text to find, in any case.").required(),
    Param::query("limit_per_type", Schema::Integer { min: 1, max: SEARCH_MAX as i64 }, "Events of a page; default: 5."),
    Param::query("page", Schema::Integer { min: 1, max: PAGE_MAX as i64 }, "From 1."),
    Param::query("events_status", Schema::Word(&["active", "closed", "resolved", "all"]), "Default `active`."),
    Param::query(
        "keep_closed_markets",
        Schema::Integer { min: 0, max: HOURS_MAX as i64 },
        "Above 0: closed events too.",
    ),
];
