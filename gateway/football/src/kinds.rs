//! The kinds of facts. Each is a JSON file of the folder, with a bound on its bytes and on the items of each list.

use crate::reader::{Defect, Defects, Fields, Item};
use edge::api::football::facts::{CompetitionId, Competitions, Facts, STATUSES};
use edge::api::football::records::{
    Bracket, BracketMatch, BracketRound, CommentaryLine, Fixture, HeadToHead, Injury, LineupPlayer, LineupSide,
    Lineups, MatchDetail, MatchFacts, Meeting, Momentum, RatedPlayer, RatedSide, RatedSides, ResultLetter, Scorer,
    Shot, SideName, Sides, SquadPlayer, StandingGroup, StandingRow, TeamRef, TeamSquad, TopStat,
};
use edge::http::scalar::{Number, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;
use wire::read::{self, NotJson};

/// Bytes of a file, at most.
pub const BYTES_MAX: u64 = 16 << 20;
/// JSON values of a file, at most: bounds the memory of a read.
const VALUES_MAX: usize = 1_000_000;

/// Characters of a name, of a line of commentary, and of a short word.
const NAME_CHARS: usize = 120;
const LINE_CHARS: usize = 500;
const WORD_CHARS: usize = 40;
/// Items of the lists.
const FIXTURES_MAX: usize = 5_000;
const COMPETITIONS_MAX: usize = 500;
const GROUPS_MAX: usize = 24;
const GROUP_ROWS_MAX: usize = 40;
const ROUNDS_MAX: usize = 10;
const ROUND_MATCHES_MAX: usize = 64;
const PAIRS_MAX: usize = 5_000;
const MEETINGS_MAX: usize = 100;
const SCORERS_MAX: usize = 200;
const SQUADS_MAX: usize = 2_000;
const PLAYERS_MAX: usize = 100;
const INJURIES_MAX: usize = 100;
const FORM_MAX: usize = 20;
const MINUTES_MAX: usize = 200;
const COMMENTARY_MAX: usize = 300;
const STATS_MAX: usize = 50;
/// The largest id of a match or a team: twelve digits.
const ID_MAX: i64 = 999_999_999_999;

/// A kind of facts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Fixtures,
    Matches,
    Standings,
    Bracket,
    HeadToHead,
    Scorers,
    Squads,
    Injuries,
    Lineups,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Fixtures,
        Kind::Matches,
        Kind::Standings,
        Kind::Bracket,
        Kind::HeadToHead,
        Kind::Scorers,
        Kind::Squads,
        Kind::Injuries,
        Kind::Lineups,
    ];

    /// Its name: that of its file without `.json`.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Fixtures => "fixtures",
            Kind::Matches => "matches",
            Kind::Standings => "standings",
            Kind::Bracket => "bracket",
            Kind::HeadToHead => "h2h",
            Kind::Scorers => "scorers",
            Kind::Squads => "squads",
            Kind::Injuries => "injuries",
            Kind::Lineups => "lineups",
        }
    }

    /// The name of its file.
    pub fn file(self) -> String {
        format!("{}.json", self.name())
    }
}

/// The content of the files. A match has its own facts in another file than its time and score.
#[derive(Clone, Debug, Default)]
pub struct Known {
    facts: Facts,
    matches: Arc<BTreeMap<u64, MatchFacts>>,
}

impl Known {
    /// The facts as the routes read them.
    pub fn facts(&self) -> Facts {
        self.facts.clone()
    }

    /// Replaces one kind by the content of its file.
    ///
    /// # Errors
    /// Every defect of the file; then nothing is replaced.
    pub fn read(&mut self, kind: Kind, content: &[u8]) -> Result<(), Vec<Defect>> {
        let text = std::str::from_utf8(content).map_err(|_| vec![Defect::of_file("is not UTF-8")])?;
        let value = read::json_within(text, VALUES_MAX).map_err(|error| vec![not_json(text, &error)])?;
        let (defects, mut read) = (Defects::default(), self.clone());
        read.set(kind, Item::root(&value, &defects));
        match defects.into_all() {
            none if none.is_empty() => {
                *self = read;
                Ok(())
            }
            defects => Err(defects),
        }
    }

    /// Replaces one kind by nothing: its file is gone.
    pub fn clear(&mut self, kind: Kind) {
        self.read(kind, b"[]").expect("every file may be an empty list");
    }

    fn set(&mut self, kind: Kind, root: Item<'_>) {
        let facts = &mut self.facts;
        match kind {
            Kind::Fixtures => facts.fixtures = fixtures(root).into(),
            Kind::Matches => {
                self.matches = by_key(root, FIXTURES_MAX, "a match", |item| item.object(MATCH_FIELDS, match_facts)?);
            }
            Kind::Standings => facts.standings = competitions(root, "groups", GROUPS_MAX, standing_group),
            Kind::Bracket => {
                let rounds = competitions(root, "rounds", ROUNDS_MAX, bracket_round);
                let bracket =
                    |(id, rounds): &(CompetitionId, Vec<BracketRound>)| (*id, Bracket { rounds: rounds.clone() });
                facts.brackets = Arc::new(rounds.iter().map(bracket).collect());
            }
            Kind::Scorers => facts.scorers = competitions(root, "scorers", SCORERS_MAX, scorer),
            Kind::HeadToHead => facts.meetings = by_key(root, PAIRS_MAX, "this pair", head_to_head),
            Kind::Squads => facts.squads = by_key(root, SQUADS_MAX, "a team", squad),
            Kind::Injuries => {
                facts.injuries = by_key(root, FIXTURES_MAX, "a match", |item| {
                    item.object(&["fixture", "injuries"], |o| {
                        Some((o.id("fixture"), o.all("injuries", INJURIES_MAX, injury)))
                    })?
                });
            }
            Kind::Lineups => {
                facts.lineups = by_key(root, FIXTURES_MAX, "a match", |item| {
                    item.object(&["fixture", "home", "away"], |o| {
                        let [home, away] = ["home", "away"].map(|name| o.optional(name, lineup_side));
                        Some((o.id("fixture"), Lineups { home, away }))
                    })?
                });
            }
        }
        if matches!(kind, Kind::Fixtures | Kind::Matches) {
            let detail = |fixture: &Fixture| {
                let more = self.matches.get(&fixture.id).cloned().unwrap_or_default();
                (fixture.id, MatchDetail { fixture: fixture.clone(), more })
            };
            self.facts.details = Arc::new(self.facts.fixtures.iter().map(detail).collect());
        }
    }

    /// Entries about matches that no fixture has, with the kind of their file.
    pub fn strays(&self) -> Vec<(Kind, u64)> {
        let Facts { details, injuries, lineups, .. } = &self.facts;
        let of = |kind, ids: Vec<u64>| ids.into_iter().map(move |id| (kind, id));
        let all = of(Kind::Matches, self.matches.keys().copied().collect())
            .chain(of(Kind::Injuries, injuries.keys().copied().collect()))
            .chain(of(Kind::Lineups, lineups.keys().copied().collect()));
        all.filter(|(_, id)| !details.contains_key(id)).collect()
    }
}

/// Why a text is not JSON, with line and column.
fn not_json(text: &str, error: &NotJson) -> Defect {
    let problem = match error {
        NotJson::Empty => "is empty".to_owned(),
        NotJson::NotUtf8 => "is not UTF-8".to_owned(),
        NotJson::Syntax(at) => {
            let before = &text.as_bytes()[..*at];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let begin = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            format!("is not JSON, at line {line}, byte {}", at - begin + 1)
        }
        NotJson::TooDeep => format!("is nested deeper than {} levels", read::DEPTH_MAX),
        NotJson::TooManyValues => format!("has more than {VALUES_MAX} values"),
        NotJson::DuplicateField(name) => format!("has the field {name:?} twice in one object"),
    };
    Defect::of_file(problem)
}

/// Entries by a key that occurs once.
fn by_key<K: Ord, T>(
    root: Item<'_>,
    len_max: usize,
    what: &str,
    mut read: impl FnMut(Item<'_>) -> Option<(K, T)>,
) -> Arc<BTreeMap<K, T>> {
    let mut found = BTreeMap::new();
    root.list(len_max, |item| {
        let (key, entry) = read(item)?;
        if found.insert(key, entry).is_some() {
            item.wrong(format!("is the second entry of {what}"));
        }
        Some(())
    });
    Arc::new(found)
}

/// `[{"competitionId": …, NAME: […]}, …]`.
fn competitions<T>(
    root: Item<'_>,
    name: &'static str,
    len_max: usize,
    read: fn(Item<'_>) -> Option<T>,
) -> Competitions<T> {
    let mut found: Vec<(CompetitionId, Vec<T>)> = Vec::new();
    root.list(COMPETITIONS_MAX, |item| {
        let entry = item.object(&["competitionId", name], |o| {
            Some((o.required("competitionId", competition_id)?, o.all(name, len_max, read)))
        })??;
        if found.iter().any(|(known, _)| *known == entry.0) {
            item.wrong("is the second entry of a competition");
        }
        found.push(entry);
        Some(())
    });
    Arc::new(found)
}

/// Fields that several records have. Those that must be there have a value that is never used where they are wrong, so
/// that the other fields of the record are read, too.
trait BoundedFields {
    fn id(&self, name: &str) -> u64;
    fn name(&self, name: &str) -> String;
    fn some_text(&self, name: &str, chars_max: usize) -> Option<String>;
    fn count(&self, name: &str) -> u64;
    fn some_count(&self, name: &str, max: i64) -> Option<u64>;
    fn number(&self, name: &str, min: i64, max: i64) -> Number;
    fn some_number(&self, name: &str, min: i64, max: i64) -> Option<Number>;
    fn all<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Vec<T>;
    fn some<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Option<Vec<T>>;
}

/// The largest count, such as goals or points.
const COUNT_MAX: i64 = 9_999;

impl BoundedFields for Fields<'_> {
    fn id(&self, name: &str) -> u64 {
        self.required(name, |item| item.integer(1, ID_MAX)).unwrap_or_default().unsigned_abs()
    }

    fn name(&self, name: &str) -> String {
        self.required(name, |item| item.text(NAME_CHARS).map(str::to_owned)).unwrap_or_default()
    }

    fn some_text(&self, name: &str, chars_max: usize) -> Option<String> {
        self.optional(name, |item| item.text(chars_max).map(str::to_owned))
    }

    fn count(&self, name: &str) -> u64 {
        self.required(name, |item| item.integer(0, COUNT_MAX)).unwrap_or_default().unsigned_abs()
    }

    fn some_count(&self, name: &str, max: i64) -> Option<u64> {
        self.optional(name, |item| item.integer(0, max)).map(i64::unsigned_abs)
    }

    fn number(&self, name: &str, min: i64, max: i64) -> Number {
        self.required(name, |item| item.number(min, max)).unwrap_or(Number(0))
    }

    fn some_number(&self, name: &str, min: i64, max: i64) -> Option<Number> {
        self.optional(name, |item| item.number(min, max))
    }

    fn all<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Vec<T> {
        self.required(name, |item| Some(item.list(len_max, read))).unwrap_or_default()
    }

    fn some<T>(&self, name: &str, len_max: usize, read: fn(Item<'_>) -> Option<T>) -> Option<Vec<T>> {
        self.optional(name, |item| Some(item.list(len_max, read)))
    }
}

fn competition_id(item: Item<'_>) -> Option<CompetitionId> {
    if !item.is_text() {
        return item.integer(0, 9_999_999_999).map(|number| CompetitionId::Number(number.unsigned_abs()));
    }
    // A number is written as one.
    let read = CompetitionId::read(item.text(WORD_CHARS)?).filter(|id| *id == CompetitionId::WorldCup2026);
    if read.is_none() {
        item.wrong("is neither a number nor \"wc-2026\"");
    }
    read
}

fn team(item: Item<'_>) -> Option<TeamRef> {
    item.object(&["id", "name", "countryCode", "shortName"], |o| {
        Some(TeamRef {
            id: o.id("id"),
            name: o.name("name"),
            country_code: o.some_text("countryCode", WORD_CHARS),
            short_name: o.some_text("shortName", WORD_CHARS),
        })
    })?
}

fn side(item: Item<'_>) -> Option<SideName> {
    item.word(&["home", "away"]).map(Into::into)
}

fn result(item: Item<'_>) -> Option<ResultLetter> {
    item.word(&["W", "D", "L"]).map(Into::into)
}

fn fixtures(root: Item<'_>) -> Vec<Fixture> {
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

#[cfg(test)]
mod tests;
