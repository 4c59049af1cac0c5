//! Parameters of the venue's catalogue service.

use super::filter::{EVENTS_MAX, MARKETS_MAX};
use super::{HOURS_MAX, PAGE_MAX, SEARCH_CHARS_MAX, SEARCH_MAX, TAGS_MAX};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT, VOL};

const VALUES: &str = "May be repeated, or hold commas; at most 100 values.";
const SKIPPED: Param = Param::query("offset", OFFSET, "Rows before the page.");
const AFTER: Param = Param::query("after_cursor", TEXT, "`next_cursor` of the page before.");

/// Parameters of a list: those that only this one has, and its limit and start.
macro_rules! of_list {
    ($($name:literal)*; $($figure:literal $bound:literal)*; $limit:expr, $page_start:expr) => {
        &[
            $(Param::query($name, TEXT, VALUES),)*
            Param::query("id", TEXT, VALUES),
            Param::query("slug", TEXT, VALUES),
            Param::query("active", BOOLEAN, "True: only those that opened; false: only those that did not."),
            Param::query("closed", BOOLEAN, "Without it open ones, and those that the request names in any state."),
            Param::query("archived", BOOLEAN, ""),
            Param::query("tag_id", TEXT, "Id of a tag."),
            Param::query("tag_slug", TEXT, "Overrides `tag_id`."),
            Param::query("start_date_min", TEXT, "Earliest start: a time or a day."),
            Param::query("start_date_max", TEXT, "Latest start: a time or a day."),
            Param::query("end_date_min", TEXT, "Earliest end: a time or a day."),
            Param::query("end_date_max", TEXT, "Latest end: a time or a day."),
            $(Param::query($figure, VOL, $bound),)*
            Param::query(
                "order",
                TEXT,
                "Up to four of volume24hr, volume, liquidity, startDate, endDate, createdAt and id (also in their other \
                 spellings), with commas between them.",
            ),
            Param::query("ascending", BOOLEAN, "Default true."),
            $limit,
            $page_start,
        ]
    };
}

macro_rules! of_markets {
    ($page_start:expr) => {
        of_list!(
            "condition_ids" "clob_token_ids";
            "volume_num_min" "Lowest volume, in USD."
            "volume_num_max" "Highest volume, in USD."
            "liquidity_num_min" "Lowest liquidity, in USD."
            "liquidity_num_max" "Highest liquidity, in USD.";
            Param::query("limit", Schema::Integer { min: 1, max: MARKETS_MAX as i64 }, "Rows of a page; default: 20."),
            $page_start
        )
    };
}

macro_rules! of_events {
    ($page_start:expr) => {
        of_list!(
            ;;
            Param::query("limit", Schema::Integer { min: 1, max: EVENTS_MAX as i64 }, "Events of a page; default: 20."),
            $page_start
        )
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
