//! The records of the football routes (gateway/docs/football.md §2). A provider makes them; fields that are not known are
//! absent.

use super::facts::{CompetitionId, STATUSES};
use crate::http::record::record;
use crate::http::scalar::{DateText, Number, Timestamp, words};

words! {
    pub FixtureStatus in &STATUSES;
}

impl FixtureStatus {
    /// Its word.
    pub fn text(self) -> &'static str {
        self.0
    }
}

words! {
    pub SideName = "home", "away";
    pub ResultLetter = "W", "D", "L";
}

record! {
    /// A team.
    #[derive(Clone, Debug, Default)]
    #[serde(rename_all = "camelCase")]
    pub struct TeamRef {
        pub id: u64 = 27;
        pub name: String = "Portugal".to_owned();
        pub country_code: Option<String> = Some("PT".to_owned()), "As the provider writes it.", skip_serializing_if;
        pub short_name: Option<String> = Some("POR".to_owned()), "A few letters.", skip_serializing_if;
    }

    /// A match with its time and score.
    #[derive(Clone, Debug)]
    #[serde(rename_all = "camelCase")]
    pub struct Fixture {
        pub id: u64 = 1_001;
        pub competition: String = "World Cup".to_owned();
        pub competition_id: Option<CompetitionId> = Some(CompetitionId::Number(1)),
            "A number, or `wc-2026`.", skip_serializing_if;
        pub group: Option<String> = Some("A".to_owned()), "In a tournament.", skip_serializing_if;
        pub kickoff_utc: Option<Timestamp> = Some(Timestamp::of("2026-06-11T19:00:00Z")),
            "When it begins.", skip_serializing_if;
        pub status: FixtureStatus = "live".into();
        pub minute: Option<u64> = Some(63), "Of a match that is played.", skip_serializing_if;
        pub home: TeamRef = TeamRef::example();
        pub away: TeamRef = TeamRef {
            id: 31,
            name: "Morocco".to_owned(),
            country_code: Some("MA".to_owned()),
            short_name: Some("MAR".to_owned()),
        };
        pub home_score: Option<u64> = Some(2), "Goals.", skip_serializing_if;
        pub away_score: Option<u64> = Some(1), "Goals.", skip_serializing_if;
    }

    /// A figure of each side.
    #[derive(Clone, Copy, Debug)]
    pub struct Sides {
        pub home: Number = Number::of("58");
        pub away: Number = Number::of("42");
    }

    /// Which side presses in a minute.
    #[derive(Clone, Copy, Debug)]
    pub struct Momentum {
        pub minute: u64 = 12;
        pub value: Number = Number::of("-14.5"), "Above 0: the home side.";
    }

    /// A line of commentary.
    #[derive(Clone, Debug)]
    pub struct CommentaryLine {
        pub minute: Option<u64> = Some(51), "Of the match.", skip_serializing_if;
        pub text: String = "Goal for Portugal.".to_owned();
        #[serde(rename = "type")]
        pub kind: Option<String> = Some("goal".to_owned()), "As the provider names it.", skip_serializing_if;
    }

    /// A player in the line-up of a detail.
    #[derive(Clone, Debug)]
    #[serde(rename_all = "camelCase")]
    pub struct RatedPlayer {
        pub id: Option<u64> = Some(154), "Of the provider.", skip_serializing_if;
        pub name: String = "R. Leão".to_owned();
        pub number: Option<u64> = Some(17), "On the shirt.", skip_serializing_if;
        pub position: Option<String> = Some("F".to_owned()), "As the provider names it.", skip_serializing_if;
        pub rating: Option<Number> = Some(Number::of("7.4")), "As the provider rates it.", skip_serializing_if;
        pub photo_url: Option<String> = None, "An address of the provider.", skip_serializing_if;
    }

    /// The line-up of one side.
    #[derive(Clone, Debug, Default)]
    pub struct RatedSide {
        pub formation: Option<String> = Some("4-3-3".to_owned()), "From the back.", skip_serializing_if;
        pub players: Vec<RatedPlayer> = Vec::example();
    }

    /// The line-ups of both sides.
    #[derive(Clone, Debug)]
    pub struct RatedSides {
        pub home: RatedSide = RatedSide::example();
        pub away: RatedSide = RatedSide { formation: None, players: Vec::new() };
    }

    /// A statistic of both sides.
    #[derive(Clone, Debug)]
    pub struct TopStat {
        pub label: String = "Shots on target".to_owned();
        pub home: Number = Number::of("6");
        pub away: Number = Number::of("3");
    }

    /// A shot.
    #[derive(Clone, Copy, Debug)]
    pub struct Shot {
        pub x: Number = Number::of("88.5"), "Across the length of the pitch, as the provider measures it.";
        pub y: Number = Number::of("47"), "Across its width.";
        pub team: SideName = "home".into();
        pub xg: Option<Number> = Some(Number::of("0.31")), "Expected goals.", skip_serializing_if;
    }

    /// A match with all that is known of it.
    #[derive(Clone, Debug)]
    pub struct MatchDetail {
        #[serde(flatten)]
        pub fixture: Fixture = Fixture::example();
        #[serde(flatten)]
        pub more: MatchFacts = MatchFacts::example();
    }

    /// What is known of a match besides its time and score.
    #[derive(Clone, Debug, Default)]
    #[serde(rename_all = "camelCase")]
    pub struct MatchFacts {
        pub venue: Option<String> = Some("Estadio Azteca".to_owned()), "The stadium.", skip_serializing_if;
        pub weather_c: Option<Number> = Some(Number::of("21.5")), "Degrees Celsius.", skip_serializing_if;
        pub possession: Option<Sides> = Some(Sides::example()), "Percent.", skip_serializing_if;
        pub xg: Option<Sides> = Some(Sides { home: Number::of("1.8"), away: Number::of("0.9") }),
            "Expected goals.", skip_serializing_if;
        pub momentum: Option<Vec<Momentum>> = Some(vec![Momentum::example()]), "By minute.", skip_serializing_if;
        pub commentary: Option<Vec<CommentaryLine>> = Some(vec![CommentaryLine::example()]),
            "In the order of the provider.", skip_serializing_if;
        pub lineups: Option<RatedSides> = Some(RatedSides::example()), "Those who play.", skip_serializing_if;
        pub top_stats: Option<Vec<TopStat>> = Some(vec![TopStat::example()]),
            "In the order of the provider.", skip_serializing_if;
        pub shots: Option<Vec<Shot>> = Some(vec![Shot::example()]), "In the order of the provider.", skip_serializing_if;
        pub form_home: Option<Vec<ResultLetter>> = Some(vec!["W".into(), "D".into()]),
            "Results of the home team, newest first.", skip_serializing_if;
        pub form_away: Option<Vec<ResultLetter>> = Some(vec!["L".into()]),
            "Results of the away team, newest first.", skip_serializing_if;
    }

    /// A row of a table.
    #[derive(Clone, Debug)]
    #[serde(rename_all = "camelCase")]
    pub struct StandingRow {
        pub position: u64 = 1;
        pub team: TeamRef = TeamRef::example();
        pub played: u64 = 3;
        pub win: u64 = 2;
        pub draw: u64 = 1;
        pub loss: u64 = 0;
        pub gf: u64 = 5, "Goals for.";
        pub ga: u64 = 2, "Goals against.";
        pub gd: i64 = 3, "Their difference.";
        pub points: u64 = 7;
        pub qualify_zone: Option<String> = Some("Round of 32".to_owned()),
            "What the position leads to.", skip_serializing_if;
        pub form: Option<Vec<ResultLetter>> = Some(vec!["W".into(), "W".into(), "D".into()]),
            "Results, newest first.", skip_serializing_if;
    }

    /// A table of a competition.
    #[derive(Clone, Debug)]
    pub struct StandingGroup {
        pub group: String = "A".to_owned();
        pub rows: Vec<StandingRow> = Vec::example();
    }

    /// A match of a bracket.
    #[derive(Clone, Debug)]
    #[serde(rename_all = "camelCase")]
    pub struct BracketMatch {
        pub id: u64 = 2_001;
        pub round_name: String = "Final".to_owned();
        pub home: Option<TeamRef> = Some(TeamRef::example()), "Absent until it is known.", skip_serializing_if;
        pub away: Option<TeamRef> = None, "Absent until it is known.", skip_serializing_if;
        pub home_score: Option<u64> = None, "Goals.", skip_serializing_if;
        pub away_score: Option<u64> = None, "Goals.", skip_serializing_if;
        pub winner: Option<SideName> = None, "Absent until it is known.", skip_serializing_if;
        pub market_slug: Option<String> = Some("world-cup-winner-portugal".to_owned()),
            "A market about this match.", skip_serializing_if;
        pub home_win_prob: Option<Number> = Some(Number::of("0.62")), "From 0 to 1.", skip_serializing_if;
        pub away_win_prob: Option<Number> = Some(Number::of("0.38")), "From 0 to 1.", skip_serializing_if;
    }

    /// A round of a bracket.
    #[derive(Clone, Debug)]
    pub struct BracketRound {
        pub name: String = "Final".to_owned();
        pub matches: Vec<BracketMatch> = Vec::example();
    }

    /// The bracket of a competition.
    #[derive(Clone, Debug, Default)]
    pub struct Bracket {
        pub rounds: Vec<BracketRound> = Vec::example(), "Empty where nothing is known.";
    }

    /// A match that two teams played.
    #[derive(Clone, Debug)]
    #[serde(rename_all = "camelCase")]
    pub struct Meeting {
        pub date: DateText<'static> = "2018-06-30".into();
        pub competition: Option<String> = Some("World Cup".to_owned()), "Where.", skip_serializing_if;
        pub home_name: String = "Portugal".to_owned();
        pub away_name: String = "Morocco".to_owned();
        pub home_score: u64 = 1;
        pub away_score: u64 = 0;
    }

    /// What two teams did against each other.
    #[derive(Clone, Debug, Default)]
    #[serde(rename_all = "camelCase")]
    pub struct HeadToHead {
        pub home_wins: u64 = 1, "Of the team that the request calls `home`, wherever it played.";
        pub draws: u64 = 0;
        pub away_wins: u64 = 0;
        pub meetings: Vec<Meeting> = Vec::example(), "In the order of the provider.";
    }

    /// A scorer of a competition.
    #[derive(Clone, Debug)]
    pub struct Scorer {
        pub player_id: u64 = 154;
        pub name: String = "R. Leão".to_owned();
        pub team: String = "Portugal".to_owned();
        pub team_code: String = "POR".to_owned();
        pub goals: u64 = 4;
        pub assists: u64 = 2;
        pub penalties: u64 = 1;
    }

    /// A player of a squad.
    #[derive(Clone, Debug)]
    pub struct SquadPlayer {
        pub name: String = "R. Leão".to_owned();
        pub position: String = "Forward".to_owned();
        pub number: Option<u64> = Some(17), "On the shirt.", skip_serializing_if;
        pub nationality: String = "Portugal".to_owned();
        pub dob: String = "1999-06-10".to_owned(), "The day of birth; empty where it is not known.";
    }

    /// The squad of a team.
    #[derive(Clone, Debug)]
    pub struct TeamSquad {
        pub team_id: u64 = 27;
        pub name: String = "Portugal".to_owned();
        pub code: String = "POR".to_owned();
        pub crest: String = "https://example.org/crests/27.png".to_owned(), "An address of a picture, or empty.";
        pub squad: Vec<SquadPlayer> = Vec::example();
    }

    /// A player who misses a match.
    #[derive(Clone, Debug)]
    pub struct Injury {
        pub player_name: String = "J. Félix".to_owned();
        pub team: String = "Portugal".to_owned();
        pub reason: String = "Knee".to_owned();
        #[serde(rename = "type")]
        pub kind: String = "Missing Fixture".to_owned(), "As the provider names it.";
    }

    /// A player of a line-up.
    #[derive(Clone, Debug)]
    pub struct LineupPlayer {
        pub name: String = "D. Costa".to_owned();
        pub number: u64 = 22;
        pub position: String = "G".to_owned();
        pub grid: String = "1:1".to_owned(), "Row and column on the pitch.";
    }

    /// The line-up of one side.
    #[derive(Clone, Debug)]
    pub struct LineupSide {
        pub team: String = "Portugal".to_owned();
        pub coach: String = "R. Martínez".to_owned();
        pub formation: String = "4-3-3".to_owned();
        pub players: Vec<LineupPlayer> = Vec::example();
    }

    /// The line-ups of a match.
    #[derive(Clone, Debug, Default)]
    pub struct Lineups {
        pub home: Option<LineupSide> = Some(LineupSide::example()), "Null until it is known.";
        pub away: Option<LineupSide> = None, "Null until it is known.";
    }
}
