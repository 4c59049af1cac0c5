//! Facts of football as a provider knows them: a port. The routes read a copy that does not change; a provider replaces
//! it whole, so a read waits for nothing.

use super::records::{Bracket, Fixture, HeadToHead, Injury, Lineups, MatchDetail, Scorer, StandingGroup, TeamSquad};
use engine::time::{HOUR, MINUTE, Timestamp};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The states of a match. In `live` and `halftime` it is played.
pub const STATUSES: [&str; 6] = ["scheduled", "live", "halftime", "finished", "postponed", "cancelled"];

/// A match counts as played from this long before its time on, if its state is `scheduled`: an answer must not be kept
/// beyond its begin.
const BEGINS_WITHIN: u64 = 10 * MINUTE;
/// As long as this after its time, a match that is still `scheduled` begins late.
const LATE_BY: u64 = 3 * HOUR;

/// A provider of facts.
pub trait Football: Send + Sync {
    /// The newest facts that the provider could read. Never blocks.
    fn facts(&self) -> Arc<Facts>;
}

/// A competition: a number of the provider, or the tournament that has a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CompetitionId {
    /// Of at most ten digits.
    Number(u64),
    WorldCup2026,
}

/// The word of the tournament that has one.
const WORLD_CUP_2026: &str = "wc-2026";

impl CompetitionId {
    /// Reads `^(\d{1,10}|wc-2026)$`.
    pub fn read(text: &str) -> Option<CompetitionId> {
        if text == WORLD_CUP_2026 {
            return Some(CompetitionId::WorldCup2026);
        }
        let is_number = (1..=10).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_digit());
        is_number.then(|| text.parse().ok().map(CompetitionId::Number)).flatten()
    }
}

impl Serialize for CompetitionId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            CompetitionId::Number(number) => serializer.serialize_u64(*number),
            CompetitionId::WorldCup2026 => serializer.serialize_str(WORLD_CUP_2026),
        }
    }
}

impl JsonSchema for CompetitionId {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "CompetitionId".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"anyOf": [
            {"type": "integer", "minimum": 0, "maximum": 9_999_999_999_u64},
            {"type": "string", "enum": [WORLD_CUP_2026]},
        ]})
    }
}

/// What a provider knows. Each kind is shared with the facts before it, unless it has changed.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// By their time, those without one last.
    pub fixtures: Arc<[Fixture]>,
    /// By the id of the fixture; each fixture has one.
    pub details: Arc<BTreeMap<u64, MatchDetail>>,
    pub standings: Competitions<StandingGroup>,
    pub brackets: Arc<Vec<(CompetitionId, Bracket)>>,
    pub scorers: Competitions<Scorer>,
    /// By the teams that the provider calls home and away.
    pub meetings: Arc<BTreeMap<(u64, u64), HeadToHead>>,
    /// By team.
    pub squads: Arc<BTreeMap<u64, TeamSquad>>,
    /// By fixture.
    pub injuries: Arc<BTreeMap<u64, Vec<Injury>>>,
    /// By fixture.
    pub lineups: Arc<BTreeMap<u64, Lineups>>,
}

/// Rows by competition, in the order of the provider.
pub type Competitions<T> = Arc<Vec<(CompetitionId, Vec<T>)>>;

/// The entry of a competition; without a name, the first one.
pub fn of_competition<T>(entries: &[(CompetitionId, T)], wanted: Option<CompetitionId>) -> Option<&T> {
    let found = match wanted {
        Some(wanted) => entries.iter().find(|(id, _)| *id == wanted),
        None => entries.first(),
    };
    found.map(|(_, entry)| entry)
}

impl Facts {
    /// What two teams did against each other, also where the provider has them the other way round.
    pub fn head_to_head(&self, home: u64, away: u64) -> HeadToHead {
        if let Some(found) = self.meetings.get(&(home, away)) {
            return found.clone();
        }
        let Some(turned) = self.meetings.get(&(away, home)) else { return HeadToHead::default() };
        let HeadToHead { home_wins, draws, away_wins, meetings } = turned.clone();
        HeadToHead { home_wins: away_wins, draws, away_wins: home_wins, meetings }
    }

    /// Whether the match of that id is played now, or begins soon.
    pub fn is_played(&self, id: u64, now: Timestamp) -> bool {
        self.details.get(&id).is_some_and(|detail| detail.fixture.is_played(now))
    }
}

impl Fixture {
    /// Whether it is played now, or begins soon: an answer about it is soon outdated.
    pub fn is_played(&self, now: Timestamp) -> bool {
        let status = self.status.text();
        let is_due = |at: Timestamp| now.plus(BEGINS_WITHIN) >= at && now.since(at) < LATE_BY;
        matches!(status, "live" | "halftime")
            || (status == "scheduled" && self.kickoff_utc.is_some_and(|at| is_due(at.0)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::football::records::Meeting;
    use crate::http::record::Record as _;
    use crate::http::scalar;

    #[test]
    fn competitions_are_numbers_or_the_word() {
        use CompetitionId::{Number, WorldCup2026};
        let rows = [
            ("0", Some(Number(0))),
            ("007", Some(Number(7))),
            ("9999999999", Some(Number(9_999_999_999))),
            ("wc-2026", Some(WorldCup2026)),
            ("", None),
            ("12345678901", None),
            ("-1", None),
            ("+1", None),
            ("1 ", None),
            ("wc-2022", None),
            ("WC-2026", None),
            ("wc-2026\n", None),
            ("١", None),
            ("../1", None),
        ];
        for (text, expected) in rows {
            assert_eq!(CompetitionId::read(text), expected, "{text:?}");
        }
        println!("competitions: {} cases", rows.len());
    }

    #[test]
    fn a_match_counts_as_played_shortly_before_its_time() {
        let at = Timestamp::from_secs(1_790_932_445);
        let second = engine::time::SECOND as i64;
        let moved = |seconds: i64| Timestamp(at.0.saturating_add_signed(seconds * second));
        let rows = [
            ("live", 100_000, true),
            ("halftime", -100_000, true),
            ("scheduled", -601, false),
            ("scheduled", -600, true),
            ("scheduled", 0, true),
            ("scheduled", 3 * 3_600 - 1, true),
            ("scheduled", 3 * 3_600, false),
            ("finished", 0, false),
            ("postponed", 0, false),
            ("cancelled", 0, false),
        ];
        for (status, seconds, expected) in rows {
            let fixture =
                Fixture { status: status.into(), kickoff_utc: Some(scalar::Timestamp(at)), ..Fixture::example() };
            assert_eq!(fixture.is_played(moved(seconds)), expected, "{status} {seconds}");
        }
        let unknown = Fixture { status: "scheduled".into(), kickoff_utc: None, ..Fixture::example() };
        assert!(!unknown.is_played(at), "without a time it is not due");
        println!("matches that are played: {} cases", rows.len() + 1);
    }

    #[test]
    fn wins_are_those_of_the_team_that_is_asked_for() {
        let known = HeadToHead { home_wins: 3, draws: 2, away_wins: 1, meetings: vec![Meeting::example()] };
        let facts = Facts { meetings: Arc::new([((1, 2), known)].into()), ..Facts::default() };
        for ((home, away), expected) in
            [((1, 2), (3, 2, 1, 1)), ((2, 1), (1, 2, 3, 1)), ((1, 3), (0, 0, 0, 0)), ((3, 2), (0, 0, 0, 0))]
        {
            let HeadToHead { home_wins, draws, away_wins, meetings } = facts.head_to_head(home, away);
            assert_eq!((home_wins, draws, away_wins, meetings.len()), expected, "{home} {away}");
        }
    }
}
