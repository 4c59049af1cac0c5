//! Tables of competitions.

use super::fields::{BoundedFields as _, COUNT_MAX, FORM_MAX, NAME_CHARS, competitions, result, team};
use crate::reader::Item;
use edge::api::football::facts::Competitions;
use edge::api::football::records::{StandingGroup, StandingRow};

const GROUPS_MAX: usize = 24;
const GROUP_ROWS_MAX: usize = 40;

pub fn read(root: Item<'_>) -> Competitions<StandingGroup> {
    competitions(root, "groups", GROUPS_MAX, standing_group)
}

fn standing_group(item: Item<'_>) -> Option<StandingGroup> {
    item.object(&["group", "rows"], |o| {
        Some(StandingGroup { group: o.name("group"), rows: o.all("rows", GROUP_ROWS_MAX, standing_row) })
    })?
}

fn standing_row(item: Item<'_>) -> Option<StandingRow> {
    const FIELDS: &[&str] =
        &["position", "team", "played", "win", "draw", "loss", "gf", "ga", "gd", "points", "qualifyZone", "form"];
    item.object(FIELDS, |o| {
        Some(StandingRow {
            position: o.count("position"),
            team: o.required("team", team).unwrap_or_default(),
            played: o.count("played"),
            win: o.count("win"),
            draw: o.count("draw"),
            loss: o.count("loss"),
            gf: o.count("gf"),
            ga: o.count("ga"),
            gd: o.required("gd", |item| item.integer(-COUNT_MAX, COUNT_MAX)).unwrap_or_default(),
            // A team may lose points by a decision.
            points: o.count("points"),
            qualify_zone: o.some_text("qualifyZone", NAME_CHARS),
            form: o.some("form", FORM_MAX, result),
        })
    })?
}
