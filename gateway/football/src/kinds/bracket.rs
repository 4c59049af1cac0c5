//! Rounds of competitions.

use super::fields::{BoundedFields as _, COUNT_MAX, competitions, side, team};
use crate::reader::Item;
use edge::api::football::facts::Competitions;
use edge::api::football::records::{BracketMatch, BracketRound};

const ROUNDS_MAX: usize = 10;
const ROUND_MATCHES_MAX: usize = 64;

pub fn read(root: Item<'_>) -> Competitions<BracketRound> {
    competitions(root, "rounds", ROUNDS_MAX, bracket_round)
}

fn bracket_round(item: Item<'_>) -> Option<BracketRound> {
    item.object(&["name", "matches"], |o| {
        Some(BracketRound { name: o.name("name"), matches: o.all("matches", ROUND_MATCHES_MAX, bracket_match) })
    })?
}

fn bracket_match(item: Item<'_>) -> Option<BracketMatch> {
    const FIELDS: &[&str] = &[
        "id",
        "roundName",
        "home",
        "away",
        "homeScore",
        "awayScore",
        "winner",
        "marketSlug",
        "homeWinProb",
        "awayWinProb",
    ];
    item.object(FIELDS, |o| {
        Some(BracketMatch {
            id: o.id("id"),
            round_name: o.name("roundName"),
            home: o.optional("home", team),
            away: o.optional("away", team),
            home_score: o.some_count("homeScore", COUNT_MAX),
            away_score: o.some_count("awayScore", COUNT_MAX),
            winner: o.optional("winner", side),
            market_slug: o.some_text("marketSlug", 256),
            home_win_prob: o.some_number("homeWinProb", 0, 1),
            away_win_prob: o.some_number("awayWinProb", 0, 1),
        })
    })?
}
