//! Matches with their times and scores.

use super::fields::{BoundedFields as _, COUNT_MAX, FIXTURES_MAX, WORD_CHARS, by_key, competition_id, team};
use crate::reader::Item;
use edge::api::football::facts::STATUSES;
use edge::api::football::records::Fixture;
use edge::http::scalar::Timestamp;

/// In the order of their kick-offs.
pub fn read(root: Item<'_>) -> Vec<Fixture> {
    let known = by_key(root, FIXTURES_MAX, "a match", |item| {
        let fixture = fixture(item)?;
        Some((fixture.id, fixture))
    });
    let mut fixtures: Vec<Fixture> = known.values().cloned().collect();
    fixtures.sort_by_key(|fixture| (fixture.kickoff_utc.is_none(), fixture.kickoff_utc.map(|at| at.0), fixture.id));
    fixtures
}

fn fixture(item: Item<'_>) -> Option<Fixture> {
    const FIELDS: &[&str] = &[
        "id",
        "competition",
        "competitionId",
        "group",
        "kickoffUtc",
        "status",
        "minute",
        "home",
        "away",
        "homeScore",
        "awayScore",
    ];
    item.object(FIELDS, |o| {
        Some(Fixture {
            id: o.id("id"),
            competition: o.name("competition"),
            competition_id: o.optional("competitionId", competition_id),
            group: o.some_text("group", WORD_CHARS),
            kickoff_utc: o.optional("kickoffUtc", |item| item.moment()).map(Timestamp),
            minute: o.some_count("minute", 200),
            home_score: o.some_count("homeScore", COUNT_MAX),
            away_score: o.some_count("awayScore", COUNT_MAX),
            home: o.required("home", team).unwrap_or_default(),
            away: o.required("away", team).unwrap_or_default(),
            status: o.required("status", |item| item.word(&STATUSES))?.into(),
        })
    })?
}
