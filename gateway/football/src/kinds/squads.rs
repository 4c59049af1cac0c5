//! Players of teams.

use super::fields::{BoundedFields as _, PLAYERS_MAX, by_key};
use crate::reader::Item;
use edge::api::football::records::{SquadPlayer, TeamSquad};
use std::collections::BTreeMap;
use std::sync::Arc;

const SQUADS_MAX: usize = 2_000;

pub fn read(root: Item<'_>) -> Arc<BTreeMap<u64, TeamSquad>> {
    by_key(root, SQUADS_MAX, "a team", squad)
}

fn squad(item: Item<'_>) -> Option<(u64, TeamSquad)> {
    item.object(&["team_id", "name", "code", "crest", "squad"], |o| {
        let squad = TeamSquad {
            team_id: o.id("team_id"),
            name: o.name("name"),
            code: o.name("code"),
            crest: o.required("crest", |item| or_empty(item, |item| item.address())).unwrap_or_default(),
            squad: o.all("squad", PLAYERS_MAX, squad_player),
        };
        Some((squad.team_id, squad))
    })?
}

fn squad_player(item: Item<'_>) -> Option<SquadPlayer> {
    item.object(&["name", "position", "number", "nationality", "dob"], |o| {
        Some(SquadPlayer {
            name: o.name("name"),
            position: o.name("position"),
            number: o.some_count("number", 999),
            nationality: o.name("nationality"),
            dob: o.required("dob", |item| or_empty(item, |item| item.day())).unwrap_or_default(),
        })
    })?
}

/// An empty text, or one that `read` reads.
fn or_empty<'a>(item: Item<'a>, read: impl FnOnce(&Item<'a>) -> Option<&'a str>) -> Option<String> {
    match item.text(2_048)? {
        "" => Some(String::new()),
        _ => read(&item).map(str::to_owned),
    }
}
