//! Players who miss a match.

use super::fields::{BoundedFields as _, FIXTURES_MAX, by_key};
use crate::reader::Item;
use edge::api::football::records::Injury;
use std::collections::BTreeMap;
use std::sync::Arc;

pub const INJURIES_MAX: usize = 100;

pub fn read(root: Item<'_>) -> Arc<BTreeMap<u64, Vec<Injury>>> {
    by_key(root, FIXTURES_MAX, "a match", |item| {
        item.object(&["fixture", "injuries"], |o| Some((o.id("fixture"), o.all("injuries", INJURIES_MAX, injury))))?
    })
}

fn injury(item: Item<'_>) -> Option<Injury> {
    item.object(&["player_name", "team", "reason", "type"], |o| {
        Some(Injury {
            player_name: o.name("player_name"),
            team: o.name("team"),
            reason: o.name("reason"),
            kind: o.name("type"),
        })
    })?
}
