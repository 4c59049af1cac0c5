use super::injuries::INJURIES_MAX;
use super::*;
use edge::api::football::records::{HeadToHead, Injury, Lineups, Scorer, StandingGroup, TeamSquad};
use edge::http::record::{Record, value};
use serde_json::{Value, json};

const TEAM: &str = r#"{"id":1,"name":"A"}"#;

fn read(kind: Kind, text: &str) -> Result<Known, Vec<String>> {
    let mut known = Known::default();
    match known.read(kind, text.as_bytes()) {
        Ok(()) => Ok(known),
        Err(defects) => Err(defects.iter().map(ToString::to_string).collect()),
    }
}

/// A file with the examples of the description, for each kind.
fn examples() -> [(Kind, Value); 9] {
    let with = |mut value: Value, name: &str, entry: Value| {
        value[name] = entry;
        value
    };
    let one = |value: Value| json!([value]);
    [
        (Kind::Fixtures, one(value(&Fixture::example()))),
        (Kind::Matches, one(with(value(&MatchFacts::example()), "id", json!(1_001)))),
        (Kind::Standings, json!([{"competitionId": 1, "groups": [value(&StandingGroup::example())]}])),
        (Kind::Bracket, one(with(value(&Bracket::example()), "competitionId", json!("wc-2026")))),
        (Kind::HeadToHead, one(with(with(value(&HeadToHead::example()), "home", json!(27)), "away", json!(31)))),
        (Kind::Scorers, json!([{"competitionId": 1, "scorers": [value(&Scorer::example())]}])),
        (Kind::Squads, one(value(&TeamSquad::example()))),
        (Kind::Injuries, json!([{"fixture": 1_001, "injuries": [value(&Injury::example())]}])),
        (Kind::Lineups, one(with(value(&Lineups::example()), "fixture", json!(1_001)))),
    ]
}

/// Each record is written as it is read.
#[test]
fn files_hold_the_records_of_the_routes() {
    let mut known = Known::default();
    for (kind, file) in examples() {
        known.read(kind, file.to_string().as_bytes()).unwrap_or_else(|defects| panic!("{}: {defects:?}", kind.name()));
    }
    let facts = known.facts();
    assert_eq!(value(&facts.fixtures[0]), value(&Fixture::example()));
    assert_eq!(value(&facts.details[&1_001]), value(&MatchDetail::example()));
    assert_eq!(value(&facts.standings[0].1), value(&vec![StandingGroup::example()]));
    assert_eq!(
        (facts.brackets[0].0, value(&facts.brackets[0].1)),
        (CompetitionId::WorldCup2026, value(&Bracket::example()))
    );
    assert_eq!(value(&facts.meetings[&(27, 31)]), value(&HeadToHead::example()));
    assert_eq!(value(&facts.scorers[0].1), value(&vec![Scorer::example()]));
    assert_eq!(value(&facts.squads[&27]), value(&TeamSquad::example()));
    assert_eq!(value(&facts.injuries[&1_001]), value(&vec![Injury::example()]));
    assert_eq!(value(&facts.lineups[&1_001]), value(&Lineups::example()));
    assert_eq!(known.strays(), []);
    for kind in Kind::ALL {
        known.clear(kind);
    }
    assert!(known.facts().details.is_empty() && known.facts().lineups.is_empty());
    println!("kinds of files: 9 cases");
}

/// Every field of every example, with values of other kinds, and missing.
#[test]
fn every_field_is_checked() {
    fn places(value: &Value, at: &str, out: &mut Vec<String>) {
        let children: Vec<(String, &Value)> = match value {
            Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), value)).collect(),
            Value::Array(items) => items.iter().enumerate().map(|(at, value)| (at.to_string(), value)).collect(),
            _ => Vec::new(),
        };
        for (name, value) in children {
            let place = format!("{at}/{name}");
            places(value, &place, out);
            out.push(place);
        }
    }
    let wrong = [json!(true), json!("\u{1}"), json!({"x": 1}), json!(-1e300), json!([[]]), json!("x".repeat(3_000))];
    let mut cases = 0;
    for (kind, file) in examples() {
        let mut all = Vec::new();
        places(&file, "", &mut all);
        for place in all {
            for other in &wrong {
                let mut file = file.clone();
                *file.pointer_mut(&place).expect("a place") = other.clone();
                let defects = read(kind, &file.to_string()).err();
                let defects = defects.unwrap_or_else(|| panic!("{} takes {other} at {place}", kind.name()));
                assert!(!defects.is_empty() && defects.len() <= 101);
                cases += 1;
            }
        }
    }
    println!("wrong values of fields: {cases} cases");
}

#[test]
fn defects_have_their_place() {
    let fixture = |changes: &str| {
        format!(r#"[{{"id":1,"competition":"C","status":"live","home":{TEAM},"away":{TEAM}{changes}}}]"#)
    };
    let rows: Vec<(Kind, String, &[&str])> = vec![
        (Kind::Fixtures, String::new(), &["is empty"]),
        (Kind::Fixtures, "{}".into(), &["is an object, not a list"]),
        (Kind::Fixtures, "[1,\n 2 x]".into(), &["is not JSON, at line 2, byte 4"]),
        (Kind::Fixtures, "[[]]".into(), &["[0]: is an array, not an object"]),
        (
            Kind::Fixtures,
            "[{}]".into(),
            &["[0].id: is missing", "[0].competition: is missing", "[0].home: is missing", "[0].away: is missing", "[0].status: is missing"],
        ),
        (Kind::Fixtures, fixture(r#","x":1"#), &["[0].x: is not a known field"]),
        (Kind::Fixtures, fixture(r#","minute":1.5"#), &["[0].minute: is 1.5, not a whole number from 0 to 200"]),
        (Kind::Fixtures, fixture(r#","kickoffUtc":"soon""#), &["[0].kickoffUtc: is \"soon\", not a time like 2026-06-11T19:00:00Z"]),
        (Kind::Fixtures, fixture(r#","kickoffUtc":"1781136000""#), &["[0].kickoffUtc: is \"1781136000\", not a time like 2026-06-11T19:00:00Z"]),
        (Kind::Fixtures, fixture(r#","competitionId":"7""#), &["[0].competitionId: is neither a number nor \"wc-2026\""]),
        (Kind::Fixtures, fixture(r#","id":2"#), &["has the field \"id\" twice in one object"]),
        (
            Kind::Fixtures,
            fixture("").replace("\"id\":1,\"comp", "\"id\":0,\"comp"),
            &["[0].id: is 0, not a whole number from 1 to 999999999999"],
        ),
        (
            Kind::Fixtures,
            fixture("").replace("live", "playing"),
            &["[0].status: is \"playing\", not one of scheduled, live, halftime, finished, postponed, cancelled"],
        ),
        (
            Kind::Fixtures,
            format!("[{0},{0}]", &fixture("")[1..fixture("").len() - 1]),
            &["[1]: is the second entry of a match"],
        ),
        (Kind::Matches, r#"[{"id":1,"momentum":[{"minute":1,"value":"3"}]}]"#.into(), &["[0].momentum[0].value: is a string, not a number"]),
        (Kind::Matches, r#"[{"id":1,"xg":{"home":1}}]"#.into(), &["[0].xg.away: is missing"]),
        (Kind::Matches, r#"[{"id":1,"formHome":["W","X"]}]"#.into(), &["[0].formHome[1]: is \"X\", not one of W, D, L"]),
        (
            Kind::Bracket,
            r#"[{"competitionId":1,"rounds":[{"name":"R","matches":[{"id":1,"roundName":"R","homeWinProb":1.000001}]}]}]"#.into(),
            &["[0].rounds[0].matches[0].homeWinProb: is 1.000001, not a number from 0 to 1 with at most six decimals"],
        ),
        (
            Kind::HeadToHead,
            r#"[{"home":1,"away":1,"homeWins":0,"draws":0,"awayWins":0,"meetings":[]}]"#.into(),
            &["[0]: has one team twice"],
        ),
        (
            Kind::Squads,
            r#"[{"team_id":1,"name":"A","code":"A","crest":"file:///etc/passwd","squad":[]}]"#.into(),
            &["[0].crest: is not an address that begins with https:// or http://"],
        ),
        (Kind::Injuries, r#"[{"fixture":1,"injuries":null}]"#.into(), &["[0].injuries: is null, not a list"]),
        (
            Kind::Scorers,
            r#"[{"competitionId":1,"scorers":[]},{"competitionId":1,"scorers":[]}]"#.into(),
            &["[1]: is the second entry of a competition"],
        ),
    ];
    for (kind, text, expected) in &rows {
        assert_eq!(read(*kind, text).err().as_deref(), Some(&expected.map_to_owned()[..]), "{}: {text}", kind.name());
    }
    println!("defects: {} cases", rows.len());
}

/// The texts as owned ones.
trait MapToOwned {
    fn map_to_owned(&self) -> Vec<String>;
}

impl MapToOwned for [&str] {
    fn map_to_owned(&self) -> Vec<String> {
        self.iter().map(|text| (*text).to_owned()).collect()
    }
}

#[test]
fn lists_and_files_are_bounded() {
    let injured = |count: usize| {
        let one = r#"{"player_name":"A","team":"B","reason":"C","type":"D"}"#;
        format!(r#"[{{"fixture":1,"injuries":[{}]}}]"#, vec![one; count].join(","))
    };
    assert!(read(Kind::Injuries, &injured(INJURIES_MAX)).is_ok());
    let defects = read(Kind::Injuries, &injured(INJURIES_MAX + 1)).err();
    assert_eq!(defects, Some(vec!["[0].injuries: has 101 items, more than 100".to_owned()]));
    let many = format!("[{}]", vec!["1"; VALUES_MAX].join(","));
    assert_eq!(read(Kind::Fixtures, &many).err(), Some(vec!["has more than 1000000 values".to_owned()]));
    // More defects than are noted.
    let defects = read(Kind::Fixtures, &format!("[{}]", vec!["1"; 500].join(","))).expect_err("defects");
    assert_eq!((defects.len(), defects[100].as_str()), (101, "has more defects than are shown"));
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    assert_eq!(read(Kind::Fixtures, &deep).err(), Some(vec!["is nested deeper than 32 levels".to_owned()]));
    assert!(Known::default().read(Kind::Fixtures, b"[\"\xff\"]").is_err());
}

#[test]
fn fixtures_are_in_the_order_of_their_time() {
    let one = |id: u64, at: &str| {
        format!(r#"{{"id":{id},"competition":"C","status":"live","home":{TEAM},"away":{TEAM}{at}}}"#)
    };
    let at = |time: &str| format!(r#","kickoffUtc":"{time}""#);
    let file = [
        one(5, ""),
        one(4, &at("2026-06-12T19:00:00Z")),
        one(3, &at("2026-06-11T19:00:00+02:00")),
        one(2, &at("2026-06-11T19:00:00Z")),
        one(1, &at("2026-06-11T19:00:00Z")),
    ];
    let known = read(Kind::Fixtures, &format!("[{}]", file.join(","))).expect("a sound file");
    let ids: Vec<u64> = known.facts().fixtures.iter().map(|fixture| fixture.id).collect();
    assert_eq!(ids, [3, 1, 2, 4, 5]);
}
