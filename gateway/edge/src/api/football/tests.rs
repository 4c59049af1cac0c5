//! The football routes with facts of a test, and without a provider.

use super::facts::{CompetitionId, Facts, Football};
use super::records::{
    Bracket, Fixture, HeadToHead, Injury, Lineups, MatchDetail, MatchFacts, Scorer, StandingGroup, TeamSquad,
};
use crate::api::testing::{Text as _, Town};
use crate::groups::tables;
use crate::http::record::{Record, value};
use crate::http::scalar::Timestamp;
use crate::http::testing::{NOW, Ports, World};
use crate::published::Published;
use engine::time::{DAY, HOUR};
use serde_json::{Value, json};
use std::sync::Arc;

const OPEN: &str = "[limits]\npublic_ip_per_second = 1000000\npublic_ip_per_minute = 1000000\n\
                    [limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";

struct Given(Arc<Facts>);

impl Football for Given {
    fn facts(&self) -> Arc<Facts> {
        self.0.clone()
    }
}

fn fixture(id: u64, competition: Option<CompetitionId>, hours: i64, status: &'static str) -> Fixture {
    let at = engine::time::Timestamp(NOW.0.saturating_add_signed(hours * HOUR as i64));
    let kickoff_utc = Some(Timestamp(at));
    Fixture { id, competition_id: competition, kickoff_utc, status: status.into(), ..Fixture::example() }
}

/// Five matches around now, and one of everything else.
fn facts() -> Facts {
    use CompetitionId::{Number, WorldCup2026};
    let timeless = Fixture { kickoff_utc: None, ..fixture(6, Some(Number(7)), 0, "postponed") };
    let fixtures = vec![
        fixture(1, Some(Number(7)), -24, "finished"),
        fixture(2, Some(WorldCup2026), -1, "live"),
        fixture(3, Some(Number(7)), 1, "scheduled"),
        fixture(4, None, 24, "scheduled"),
        fixture(5, Some(WorldCup2026), 24, "cancelled"),
        timeless,
    ];
    let detail =
        |fixture: &Fixture| (fixture.id, MatchDetail { fixture: fixture.clone(), more: MatchFacts::example() });
    Facts {
        details: Arc::new(fixtures.iter().map(detail).collect()),
        fixtures: fixtures.into(),
        standings: Arc::new(vec![
            (Number(7), vec![StandingGroup::example()]),
            (WorldCup2026, vec![StandingGroup { group: "B".to_owned(), rows: Vec::new() }]),
        ]),
        brackets: Arc::new(vec![(WorldCup2026, Bracket::example())]),
        scorers: Arc::new(vec![(Number(7), vec![Scorer::example()])]),
        meetings: Arc::new([((27, 31), HeadToHead::example())].into()),
        squads: Arc::new([(27, TeamSquad::example())].into()),
        injuries: Arc::new([(2, vec![Injury::example()])].into()),
        lineups: Arc::new([(2, Lineups::example()), (3, Lineups::example())].into()),
    }
}

fn town(facts: Facts) -> Town {
    let published = Published { football: Some(Arc::new(Given(Arc::new(facts)))), ..Published::default() };
    Town::of(World::with_ports(OPEN, &tables(), Ports { published, ..Ports::default() }))
}

const LIVE: &str = "public, max-age=15";
const OTHER: &str = "public, max-age=600";

#[test]
fn fixtures_are_filtered() {
    let town = town(facts());
    let day = |offset: i64| {
        let text = wire::instant::ts_text(engine::time::Timestamp(NOW.0.saturating_add_signed(offset * DAY as i64)));
        text[..10].to_owned()
    };
    let rows: Vec<(String, &[u64], &str)> = vec![
        (String::new(), &[1, 2, 3, 4, 5, 6], LIVE),
        ("limit=2".into(), &[1, 2], LIVE),
        ("limit=200".into(), &[1, 2, 3, 4, 5, 6], LIVE),
        (format!("date={}", day(0)), &[2, 3], LIVE),
        (format!("date={}", day(1)), &[4, 5], OTHER),
        (format!("date={}", day(2)), &[], OTHER),
        ("competitionId=7".into(), &[1, 3, 6], OTHER),
        ("competitionId=007".into(), &[1, 3, 6], OTHER),
        ("competitionId=wc-2026".into(), &[2, 5], LIVE),
        ("competitionId=8".into(), &[], OTHER),
        ("status=live".into(), &[2], LIVE),
        // One of them may begin to be in that state while the answer is kept.
        ("status=finished".into(), &[1], LIVE),
        ("status=postponed&competitionId=7".into(), &[6], OTHER),
        (format!("status=scheduled&date={}", day(1)), &[4], OTHER),
    ];
    for (query, expected, cache) in &rows {
        let answer = town.world.send("GET", &format!("/v1/football/fixtures?{query}"), &[], "");
        let ids: Vec<u64> =
            answer.json().as_array().expect("a list").iter().map(|row| row["id"].as_u64().expect("an id")).collect();
        assert_eq!((answer.status, ids.as_slice()), (200, *expected), "{query}");
        assert_eq!(answer.header("cache-control"), Some(*cache), "{query}");
    }
    println!("fixtures: {} cases", rows.len());
}

#[test]
fn each_route_has_its_record() {
    let town = town(facts());
    let detail = |id: u64| value(&facts().details[&id]);
    let empty: Value = json!([]);
    let nothing = json!({"homeWins": 0, "draws": 0, "awayWins": 0, "meetings": []});
    let rows: Vec<(&str, Value, &str)> = vec![
        ("matches/2", detail(2), LIVE),
        ("matches/1", detail(1), OTHER),
        ("standings", value(&vec![StandingGroup::example()]), OTHER),
        ("standings?competitionId=wc-2026", json!([{"group": "B", "rows": []}]), OTHER),
        ("standings?competitionId=9", empty.clone(), OTHER),
        ("bracket", value(&Bracket::example()), OTHER),
        ("bracket?competitionId=wc-2026", value(&Bracket::example()), OTHER),
        ("bracket?competitionId=1", json!({"rounds": []}), OTHER),
        ("h2h?home=27&away=31", value(&HeadToHead::example()), OTHER),
        ("h2h?home=27&away=32", nothing, OTHER),
        ("scorers", value(&vec![Scorer::example()]), OTHER),
        ("scorers?competitionId=8", empty.clone(), OTHER),
        ("teams/27/squad", value(&TeamSquad::example()), OTHER),
        ("injuries?fixture=2", value(&vec![Injury::example()]), LIVE),
        ("injuries?fixture=3", empty.clone(), OTHER),
        ("injuries?fixture=999999999999", empty, OTHER),
        ("lineups?fixture=2", value(&Lineups::example()), LIVE),
        ("lineups?fixture=3", value(&Lineups::example()), OTHER),
        ("lineups?fixture=4", json!({"home": null, "away": null}), OTHER),
    ];
    for (path, expected, cache) in &rows {
        let answer = town.world.send("GET", &format!("/v1/football/{path}"), &[], "");
        assert_eq!((answer.status, &answer.json()), (200, expected), "{path}");
        assert_eq!(answer.header("cache-control"), Some(*cache), "{path}");
        // With a key it is not kept.
        let keyed = town.send("GET", &format!("/v1/football/{path}"), "");
        assert_eq!(keyed.header("cache-control"), Some("private, no-store"), "{path}");
    }
    println!("football routes: {} cases", 2 * rows.len());
}

/// Fields that are not known are absent, and figures are numbers.
#[test]
fn unknown_fields_are_absent() {
    let bare = Fixture {
        competition_id: None,
        group: None,
        kickoff_utc: None,
        minute: None,
        home_score: None,
        away_score: None,
        ..Fixture::example()
    };
    let text = serde_json::to_string(&bare).expect("a record");
    let expected = concat!(
        r#"{"id":1001,"competition":"World Cup","status":"live","home":{"id":27,"name":"Portugal","countryCode":"PT","#,
        r#""shortName":"POR"},"away":{"id":31,"name":"Morocco","countryCode":"MA","shortName":"MAR"}}"#
    );
    assert_eq!(text, expected);
    let detail = value(&MatchDetail::example());
    for (place, expected) in [
        ("/weatherC", json!(21.5)),
        ("/possession", json!({"home": 58, "away": 42})),
        ("/momentum/0/value", json!(-14.5)),
        ("/kickoffUtc", json!("2026-06-11T19:00:00Z")),
        ("/competitionId", json!(1)),
        ("/formHome", json!(["W", "D"])),
    ] {
        assert_eq!(detail.pointer(place), Some(&expected), "{place}");
    }
    assert!(detail["lineups"]["away"].get("formation").is_none());
}

#[test]
fn ids_of_the_wrong_form_are_unknown() {
    let town = town(facts());
    let wrong =
        ["0", "99", "-2", "02", "2.0", "x", "%2e%2e", "2%00", "99999999999999999999", "\u{661}", "..%2f2", "2e0"];
    for id in wrong {
        for path in [format!("matches/{id}"), format!("teams/{id}/squad")] {
            let encoded = path.replace('\u{661}', "%D9%A1");
            let answer = town.send("GET", &format!("/v1/football/{encoded}"), "");
            assert_eq!(answer.code(), (404, "NOT_FOUND"), "{path}: {}", answer.text());
        }
    }
    println!("unknown ids: {} cases", 2 * wrong.len());
}

#[test]
fn parameters_that_miss_their_pattern_are_422() {
    for town in [town(facts()), Town::with(OPEN)] {
        let rows = [
            "fixtures?date=2026-13-01",
            "fixtures?date=today",
            "fixtures?competitionId=abc",
            "fixtures?status=playing",
            "fixtures?limit=0",
            "fixtures?limit=201",
            "standings?competitionId=-1",
            "bracket?competitionId=wc-2022",
            "bracket?competitionId=12345678901",
            "scorers?competitionId=1.5",
            "h2h",
            "h2h?home=1",
            "h2h?away=1",
            "h2h?home=0&away=1",
            "h2h?home=1&away=x",
            "injuries",
            "injuries?fixture=0",
            "injuries?fixture=../etc/passwd",
            "injuries?fixture=1234567890123",
            "lineups",
            "lineups?fixture=",
            "lineups?fixture=1%20",
        ];
        for path in rows {
            let answer = town.send("GET", &format!("/v1/football/{path}"), "");
            assert_eq!(answer.code(), (422, "VALIDATION_FAILED"), "{path}: {}", answer.text());
        }
        println!("football, 422: {} cases", rows.len());
    }
}

#[test]
fn without_a_provider_every_list_is_empty() {
    let town = Town::with(OPEN);
    let rows = [
        ("fixtures", json!([])),
        ("standings?competitionId=1", json!([])),
        ("bracket?competitionId=wc-2026", json!({"rounds": []})),
        ("bracket", json!({"rounds": []})),
        ("h2h?home=1&away=2", json!({"homeWins": 0, "draws": 0, "awayWins": 0, "meetings": []})),
        ("scorers?competitionId=1", json!([])),
        ("injuries?fixture=1", json!([])),
        ("lineups?fixture=1", json!({"home": null, "away": null})),
    ];
    for (path, expected) in &rows {
        let answer = town.world.send("GET", &format!("/v1/football/{path}"), &[], "");
        assert_eq!((answer.status, &answer.json()), (200, expected), "{path}");
        assert_eq!(answer.header("cache-control"), Some(OTHER), "{path}");
    }
    for path in ["matches/1", "teams/1/squad"] {
        assert_eq!(town.world.send("GET", &format!("/v1/football/{path}"), &[], "").code(), (404, "NOT_FOUND"));
    }
    println!("without a provider: {} cases", rows.len() + 2);
}
