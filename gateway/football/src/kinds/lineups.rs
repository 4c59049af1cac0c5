//! Players of both sides of a match.

use super::fields::{BoundedFields as _, FIXTURES_MAX, PLAYERS_MAX, by_key};
use crate::reader::Item;
use edge::api::football::records::{LineupPlayer, LineupSide, Lineups};
use std::collections::BTreeMap;
use std::sync::Arc;

pub fn read(root: Item<'_>) -> Arc<BTreeMap<u64, Lineups>> {
    by_key(root, FIXTURES_MAX, "a match", |item| {
        item.object(&["fixture", "home", "away"], |o| {
            let [home, away] = ["home", "away"].map(|name| o.optional(name, lineup_side));
            Some((o.id("fixture"), Lineups { home, away }))
        })?
    })
}

fn lineup_side(item: Item<'_>) -> Option<LineupSide> {
    item.object(&["team", "coach", "formation", "players"], |o| {
        Some(LineupSide {
            team: o.name("team"),
            coach: o.name("coach"),
            formation: o.name("formation"),
            players: o.all("players", PLAYERS_MAX, lineup_player),
        })
    })?
}

fn lineup_player(item: Item<'_>) -> Option<LineupPlayer> {
    item.object(&["name", "number", "position", "grid"], |o| {
        Some(LineupPlayer {
            name: o.name("name"),
            number: o.required("number", |item| item.integer(0, 999)).unwrap_or_default().unsigned_abs(),
            position: o.name("position"),
            grid: o.name("grid"),
        })
    })?
}
