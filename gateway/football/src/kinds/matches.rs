//! Facts of a match besides its time and score.

use super::fields::{
    BoundedFields as _, FIXTURES_MAX, FORM_MAX, ID_MAX, LINE_CHARS, NAME_CHARS, PLAYERS_MAX, WORD_CHARS, by_key,
    result, side,
};
use crate::reader::{Fields, Item};
use edge::api::football::records::{
    CommentaryLine, MatchFacts, Momentum, RatedPlayer, RatedSide, RatedSides, Shot, Sides, TopStat,
};
use std::collections::BTreeMap;
use std::sync::Arc;

const MINUTES_MAX: usize = 200;
const COMMENTARY_MAX: usize = 300;
const STATS_MAX: usize = 50;
const MATCH_FIELDS: &[&str] = &[
    "id",
    "venue",
    "weatherC",
    "possession",
    "xg",
    "momentum",
    "commentary",
    "lineups",
    "topStats",
    "shots",
    "formHome",
    "formAway",
];

pub fn read(root: Item<'_>) -> Arc<BTreeMap<u64, MatchFacts>> {
    by_key(root, FIXTURES_MAX, "a match", |item| item.object(MATCH_FIELDS, match_facts)?)
}

fn match_facts(o: Fields<'_>) -> Option<(u64, MatchFacts)> {
    let facts = MatchFacts {
        venue: o.some_text("venue", NAME_CHARS),
        weather_c: o.some_number("weatherC", -90, 70),
        possession: o.optional("possession", |item| sides(item, 100)),
        xg: o.optional("xg", |item| sides(item, 100)),
        momentum: o.some("momentum", MINUTES_MAX, momentum),
        commentary: o.some("commentary", COMMENTARY_MAX, commentary_line),
        lineups: o.optional("lineups", |item| {
            item.object(&["home", "away"], |o| {
                Some(RatedSides {
                    home: o.required("home", rated_side).unwrap_or_default(),
                    away: o.required("away", rated_side).unwrap_or_default(),
                })
            })?
        }),
        top_stats: o.some("topStats", STATS_MAX, top_stat),
        shots: o.some("shots", MINUTES_MAX, shot),
        form_home: o.some("formHome", FORM_MAX, result),
        form_away: o.some("formAway", FORM_MAX, result),
    };
    Some((o.id("id"), facts))
}

/// Figures of both sides from 0 to `max`.
fn sides(item: Item<'_>, max: i64) -> Option<Sides> {
    item.object(&["home", "away"], |o| Some(Sides { home: o.number("home", 0, max), away: o.number("away", 0, max) }))?
}

fn momentum(item: Item<'_>) -> Option<Momentum> {
    item.object(&["minute", "value"], |o| {
        Some(Momentum { minute: o.count("minute"), value: o.number("value", -1_000, 1_000) })
    })?
}

fn commentary_line(item: Item<'_>) -> Option<CommentaryLine> {
    item.object(&["minute", "text", "type"], |o| {
        Some(CommentaryLine {
            minute: o.some_count("minute", 200),
            text: o.required("text", |item| item.text(LINE_CHARS).map(str::to_owned)).unwrap_or_default(),
            kind: o.some_text("type", WORD_CHARS),
        })
    })?
}

fn rated_side(item: Item<'_>) -> Option<RatedSide> {
    item.object(&["formation", "players"], |o| {
        Some(RatedSide {
            formation: o.some_text("formation", WORD_CHARS),
            players: o.all("players", PLAYERS_MAX, rated_player),
        })
    })?
}

fn rated_player(item: Item<'_>) -> Option<RatedPlayer> {
    item.object(&["id", "name", "number", "position", "rating", "photoUrl"], |o| {
        Some(RatedPlayer {
            id: o.optional("id", |item| item.integer(1, ID_MAX)).map(i64::unsigned_abs),
            name: o.name("name"),
            number: o.some_count("number", 999),
            position: o.some_text("position", WORD_CHARS),
            rating: o.some_number("rating", 0, 100),
            photo_url: o.optional("photoUrl", |item| item.address().map(str::to_owned)),
        })
    })?
}

fn top_stat(item: Item<'_>) -> Option<TopStat> {
    item.object(&["label", "home", "away"], |o| {
        Some(TopStat {
            label: o.name("label"),
            home: o.number("home", -1_000_000, 1_000_000),
            away: o.number("away", -1_000_000, 1_000_000),
        })
    })?
}

fn shot(item: Item<'_>) -> Option<Shot> {
    item.object(&["x", "y", "team", "xg"], |o| {
        Some(Shot {
            x: o.number("x", -1_000, 1_000),
            y: o.number("y", -1_000, 1_000),
            xg: o.some_number("xg", 0, 1),
            team: o.required("team", side)?,
        })
    })?
}
