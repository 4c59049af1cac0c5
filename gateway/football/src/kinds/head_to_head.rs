//! Meetings of two teams.

use super::fields::{BoundedFields as _, NAME_CHARS, by_key};
use crate::reader::Item;
use edge::api::football::records::{HeadToHead, Meeting};
use std::collections::BTreeMap;
use std::sync::Arc;

const PAIRS_MAX: usize = 5_000;
const MEETINGS_MAX: usize = 100;

pub fn read(root: Item<'_>) -> Arc<BTreeMap<(u64, u64), HeadToHead>> {
    by_key(root, PAIRS_MAX, "this pair", head_to_head)
}

fn head_to_head(item: Item<'_>) -> Option<((u64, u64), HeadToHead)> {
    item.object(&["home", "away", "homeWins", "draws", "awayWins", "meetings"], |o| {
        let pair = (o.id("home"), o.id("away"));
        if pair.0 == pair.1 {
            o.wrong("has one team twice");
        }
        let head_to_head = HeadToHead {
            home_wins: o.count("homeWins"),
            draws: o.count("draws"),
            away_wins: o.count("awayWins"),
            meetings: o.all("meetings", MEETINGS_MAX, meeting),
        };
        Some((pair, head_to_head))
    })?
}

fn meeting(item: Item<'_>) -> Option<Meeting> {
    item.object(&["date", "competition", "homeName", "awayName", "homeScore", "awayScore"], |o| {
        Some(Meeting {
            date: o.required("date", |item| item.day().map(str::to_owned)).unwrap_or_default().into(),
            competition: o.some_text("competition", NAME_CHARS),
            home_name: o.name("homeName"),
            away_name: o.name("awayName"),
            home_score: o.count("homeScore"),
            away_score: o.count("awayScore"),
        })
    })?
}
