//! Scorers of competitions.

use super::fields::{BoundedFields as _, competitions};
use crate::reader::Item;
use edge::api::football::facts::Competitions;
use edge::api::football::records::Scorer;

const SCORERS_MAX: usize = 200;

pub fn read(root: Item<'_>) -> Competitions<Scorer> {
    competitions(root, "scorers", SCORERS_MAX, scorer)
}

fn scorer(item: Item<'_>) -> Option<Scorer> {
    item.object(&["player_id", "name", "team", "team_code", "goals", "assists", "penalties"], |o| {
        Some(Scorer {
            player_id: o.id("player_id"),
            name: o.name("name"),
            team: o.name("team"),
            team_code: o.name("team_code"),
            goals: o.count("goals"),
            assists: o.count("assists"),
            penalties: o.count("penalties"),
        })
    })?
}
