//! Facts of football (gateway/docs/football.md): every route with and without a provider, files that change while the
//! server runs, and the check of a folder.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use tests::binary::run;
use tests::cases::Cases;
use tests::exposition::scrape;
use tests::http::Request;
use tests::world::World;

const ROUTES: &[(&str, &str)] = &[
    ("fixtures", "[]"),
    ("fixtures?date=2026-06-11&competitionId=1&status=live&limit=200", "[]"),
    ("standings", "[]"),
    ("standings?competitionId=1", "[]"),
    ("bracket", r#"{"rounds":[]}"#),
    ("bracket?competitionId=wc-2026", r#"{"rounds":[]}"#),
    ("h2h?home=1&away=2", r#"{"homeWins":0,"draws":0,"awayWins":0,"meetings":[]}"#),
    ("scorers?competitionId=1", "[]"),
    ("injuries?fixture=1", "[]"),
    ("lineups?fixture=1", r#"{"home":null,"away":null}"#),
];

/// Paths of which each is 422.
const WRONG: &[&str] = &[
    "fixtures?date=11-06-2026",
    "fixtures?date=2026-06-31",
    "fixtures?competitionId=one",
    "fixtures?competitionId=12345678901",
    "fixtures?status=LIVE",
    "fixtures?status=open",
    "fixtures?limit=0",
    "fixtures?limit=201",
    "fixtures?limit=ten",
    "standings?competitionId=",
    "scorers?competitionId=-1",
    "bracket?competitionId=wc-2030",
    "bracket?competitionId=1.0",
    "h2h",
    "h2h?home=1",
    "h2h?home=1&away=0",
    "h2h?home=one&away=2",
    "injuries",
    "injuries?fixture=0",
    "injuries?fixture=1e3",
    "injuries?fixture=1234567890123",
    "lineups",
    "lineups?fixture=-1",
    "lineups?fixture=..%2F..%2Fetc%2Fpasswd",
];

/// Ids of which each is 404.
const UNKNOWN: &[&str] = &[
    "0",
    "-1",
    "007",
    "1.0",
    "one",
    "..",
    "..%2Ffixtures",
    "%2e%2e%2fsecret",
    "1%00",
    "99999999999999999999999",
    "%F0",
];

fn path(of: &str) -> String {
    format!("/v1/football/{of}")
}

/// A folder of facts that the harness's server reads.
struct Folder(PathBuf);

impl Folder {
    fn in_place(root: &Path) -> Folder {
        let dir = root.join("facts");
        fs::create_dir(&dir).expect("a folder");
        let folder = Folder(dir);
        let team = |id: u64, name: &str| json!({"id": id, "name": name});
        let fixture = |id: u64, status: &str, competition: Value| {
            json!({"id": id, "competition": "Cup", "competitionId": competition, "kickoffUtc": "2026-06-11T19:00:00Z",
                "status": status, "home": team(27, "Portugal"), "away": team(31, "Morocco"), "homeScore": 1})
        };
        let row = json!({"position": 1, "team": team(27, "Portugal"), "played": 1, "win": 1, "draw": 0, "loss": 0, "gf": 1,
            "ga": 2, "gd": -1, "points": 3});
        for (name, content) in [
            ("fixtures", json!([fixture(1, "live", json!(1)), fixture(2, "finished", json!("wc-2026"))])),
            (
                "matches",
                json!([{"id": 1, "venue": "Azteca", "weatherC": 21.5, "possession": {"home": 58, "away": 42}}]),
            ),
            ("standings", json!([{"competitionId": 1, "groups": [{"group": "A", "rows": [row]}]}])),
            (
                "bracket",
                json!([{"competitionId": "wc-2026", "rounds": [{"name": "Final", "matches": [
                    {"id": 9, "roundName": "Final", "marketSlug": "rain", "homeWinProb": 0.62}]}]}]),
            ),
            (
                "h2h",
                json!([{"home": 27, "away": 31, "homeWins": 1, "draws": 0, "awayWins": 2, "meetings": [{"date":
                    "2018-06-20", "homeName": "Portugal", "awayName": "Morocco", "homeScore": 1, "awayScore": 0}]}]),
            ),
            (
                "scorers",
                json!([{"competitionId": 1, "scorers": [{"player_id": 7, "name": "R", "team": "Portugal",
                    "team_code": "POR", "goals": 2, "assists": 0, "penalties": 1}]}]),
            ),
            (
                "squads",
                json!([{"team_id": 27, "name": "Portugal", "code": "POR", "crest": "", "squad": [{"name": "R",
                    "position": "F", "nationality": "Portugal", "dob": ""}]}]),
            ),
            (
                "injuries",
                json!([{"fixture": 1, "injuries": [{"player_name": "J", "team": "Portugal", "reason": "Knee", "type":
                    "Missing"}]}]),
            ),
            (
                "lineups",
                json!([{"fixture": 1, "home": {"team": "Portugal", "coach": "R", "formation": "4-3-3", "players":
                [{"name": "D", "number": 1, "position": "G", "grid": "1:1"}]}, "away": null}]),
            ),
        ] {
            folder.write(name, &content.to_string());
        }
        folder
    }

    /// Replaces a file whole, as an editor does.
    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join("new"), text).expect("written");
        fs::rename(self.0.join("new"), self.0.join(format!("{name}.json"))).expect("renamed");
    }
}

fn world_of_facts() -> (World, Folder) {
    let mut folder = None;
    let world = World::start_with(1, |place| {
        let made = Folder::in_place(place.root());
        place.set("football", "provider", &format!("{:?}", format!("file:{}", made.0.display())));
        place.set("admin", "listen", "\"127.0.0.1:0\"");
        folder = Some(made);
    });
    (world, folder.expect("the settings were made"))
}

#[test]
fn without_a_provider_every_list_is_empty() {
    let cases = Cases::of("football, no provider");
    let world = World::start(0);
    for (route, expected) in ROUTES {
        let answer = world.public().get(&path(route));
        assert_eq!((answer.status, answer.text()), (200, *expected), "{route}");
        assert_eq!(answer.header("Cache-Control"), Some("public, max-age=600"), "{route}");
        cases.one();
    }
    for route in ["matches/1", "teams/1/squad"] {
        world.public().get(&path(route)).refused(404, "NOT_FOUND");
        cases.one();
    }
}

#[test]
fn every_route_shows_what_its_file_holds() {
    let cases = Cases::of("football, facts");
    let (world, _folder) = world_of_facts();
    let mut anyone = world.public();
    let (live, other) = ("public, max-age=15", "public, max-age=600");
    let ids = |answer: &Value| -> Vec<u64> {
        answer.as_array().expect("a list").iter().map(|row| row["id"].as_u64().expect("an id")).collect()
    };
    let fixtures: &[(&str, &[u64], &str)] = &[
        ("fixtures", &[1, 2], live),
        ("fixtures?limit=1", &[1], live),
        ("fixtures?date=2026-06-11", &[1, 2], live),
        ("fixtures?date=2026-06-12", &[], other),
        ("fixtures?competitionId=wc-2026", &[2], other),
        ("fixtures?status=live", &[1], live),
        ("fixtures?status=halftime", &[], live),
    ];
    for (route, expected, cache) in fixtures {
        let answer = anyone.get(&path(route));
        assert_eq!(ids(&answer.expect(200)), *expected, "{route}");
        assert_eq!(answer.header("Cache-Control"), Some(*cache), "{route}");
        cases.one();
    }
    for (route, pointer, expected, cache) in [
        ("matches/1", "/venue", json!("Azteca"), live),
        ("matches/1", "/weatherC", json!(21.5), live),
        ("matches/1", "/possession", json!({"home": 58, "away": 42}), live),
        ("matches/1", "/homeScore", json!(1), live),
        ("matches/2", "/competitionId", json!("wc-2026"), other),
        ("standings", "/0/rows/0/gd", json!(-1), other),
        ("standings?competitionId=1", "/0/group", json!("A"), other),
        ("bracket", "/rounds/0/matches/0/homeWinProb", json!(0.62), other),
        ("bracket?competitionId=wc-2026", "/rounds/0/matches/0/marketSlug", json!("rain"), other),
        ("h2h?home=27&away=31", "/awayWins", json!(2), other),
        ("h2h?home=31&away=27", "/awayWins", json!(1), other),
        ("scorers", "/0/goals", json!(2), other),
        ("teams/27/squad", "/squad/0/name", json!("R"), other),
        ("injuries?fixture=1", "/0/reason", json!("Knee"), live),
        ("injuries?fixture=2", "", json!([]), other),
        ("lineups?fixture=1", "/home/players/0/grid", json!("1:1"), live),
        ("lineups?fixture=1", "/away", Value::Null, live),
    ] {
        let answer = anyone.get(&path(route));
        assert_eq!(answer.expect(200).pointer(pointer), Some(&expected), "{route} {pointer}");
        assert_eq!(answer.header("Cache-Control"), Some(cache), "{route}");
        cases.one();
    }
    let keyed = world.user(0).get(&path("fixtures"));
    assert_eq!(keyed.header("Cache-Control"), Some("private, no-store"), "with a key nothing is kept");
    assert!(anyone.get(&path("matches/2")).expect(200).get("venue").is_none(), "what is not known is absent");
    cases.add(2);
}

#[test]
fn wrong_parameters_are_422_and_wrong_ids_404() {
    let cases = Cases::of("football, refusals");
    for world in [World::start(0), world_of_facts().0] {
        for route in WRONG {
            world.public().get(&path(route)).refused(422, "VALIDATION_FAILED");
            cases.one();
        }
        for id in UNKNOWN {
            for route in [format!("matches/{id}"), format!("teams/{id}/squad")] {
                world.public().get(&path(&route)).refused(404, "NOT_FOUND");
                cases.one();
            }
        }
        for method in ["POST", "DELETE", "PATCH"] {
            world.public().send(&Request::new(method, &path("fixtures"))).refused(405, "HTTP_405");
            cases.one();
        }
    }
}

#[test]
fn an_address_is_metered() {
    let cases = Cases::of("football, metering");
    let world = World::start_with(0, |place| {
        place.set("limits", "public_ip_per_second", "1").set("limits", "public_ip_per_minute", "3");
        place.set("limits", "meter_loopback", "true");
    });
    let answers: Vec<_> = (0..6).map(|_| world.public().get(&path("bracket"))).collect();
    let refused: Vec<_> = answers.iter().filter(|answer| answer.status == 429).collect();
    assert!(refused.len() >= 3, "{} of 6 are refused", refused.len());
    refused[0].refused(429, "RATE_LIMIT_EXCEEDED");
    cases.add(answers.len());
}

/// A file that is replaced is shown within a moment; a broken one leaves what was known, and is reported.
#[test]
fn files_are_read_again_when_they_change() {
    let cases = Cases::of("football, changes");
    let (world, folder) = world_of_facts();
    let admin = world.server.admin().expect("the banner has its address");
    let broken = || scrape(admin).value("papertape_published_file_broken", &[("file", "squads")]);
    assert_eq!(broken(), 0.0);
    let squad =
        |name: &str| json!([{"team_id": 27, "name": name, "code": "POR", "crest": "", "squad": []}]).to_string();
    let shows = |name: &str| _ = world.until(&path("teams/27/squad"), |body| body["name"] == name);
    folder.write("squads", &squad("Second"));
    shows("Second");
    folder.write("squads", "[{");
    tests::eventually("the report of a broken file", || (broken() == 1.0).then_some(()));
    shows("Second");
    let output = world.server.output();
    let warned = output.lines().filter(|line| line.contains("a file of football facts is broken")).count();
    assert_eq!(warned, 1, "{output}");
    assert!(output.contains("squads.json") && output.contains("is not JSON, at line 1, byte 3"), "{output}");
    folder.write("squads", &squad("Third"));
    shows("Third");
    assert_eq!(broken(), 0.0);
    fs::remove_file(folder.0.join("squads.json")).expect("removed");
    tests::eventually("a file that is gone", || {
        (world.public().get(&path("teams/27/squad")).status == 404).then_some(())
    });
    // Other files are as before.
    assert_eq!(world.public().get(&path("fixtures")).expect(200).as_array().map(Vec::len), Some(2));
    // A folder that is gone, and there again.
    let away = folder.0.with_extension("away");
    fs::rename(&folder.0, &away).expect("renamed");
    tests::eventually("a folder that is gone", || (world.public().get(&path("fixtures")).text() == "[]").then_some(()));
    fs::rename(&away, &folder.0).expect("renamed");
    world.until(&path("fixtures"), |body| body.as_array().map(Vec::len) == Some(2));
    cases.add(6);
}

/// A server starts with any folder.
#[test]
fn no_folder_refuses_a_start() {
    let cases = Cases::of("football, hostile folders");
    let missing = "/nonexistent/facts".to_owned();
    let world = World::start_with(0, |place| {
        place.set("football", "provider", &format!("{:?}", format!("file:{missing}")));
    });
    assert_eq!(world.public().get(&path("fixtures")).text(), "[]");
    let world = World::start_with(0, |place| {
        let dir = place.root().join("hostile");
        fs::create_dir_all(dir.join("matches.json")).expect("a folder in the place of a file");
        std::os::unix::fs::symlink("/dev/zero", dir.join("fixtures.json")).expect("a link");
        fs::write(dir.join("standings.json"), b"\xff\xfe").expect("written");
        fs::write(dir.join("h2h.json"), "[".repeat(1 << 20)).expect("written");
        fs::write(dir.join("squads.json"), "x".repeat((16 << 20) + 1)).expect("written");
        place.set("football", "provider", &format!("{:?}", format!("file:{}", dir.display())));
    });
    for (route, expected) in ROUTES {
        assert_eq!(world.public().get(&path(route)).text(), *expected, "{route}");
        cases.one();
    }
    let output = world.server.output();
    for file in ["matches", "fixtures", "standings", "h2h", "squads"] {
        assert!(output.contains(&format!("{file}.json")), "{file}: {output}");
        cases.one();
    }
}

#[test]
fn the_check_names_file_and_place() {
    let cases = Cases::of("football check");
    let place = tempfile::tempdir().expect("a folder");
    let folder = Folder::in_place(place.path());
    let check = |dir: &Path| {
        let output = run(["football".as_ref(), "check".as_ref(), dir.as_os_str()]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let all = "sound: fixtures, matches, standings, bracket, h2h, scorers, squads, injuries, lineups\n";
    assert_eq!(check(&folder.0), (Some(0), all.to_owned(), String::new()));
    folder.write("matches", r#"[{"id":1,"xg":{"home":"1","away":-1}},{"id":5}]"#);
    folder.write("injuries", r#"[{"fixture":77,"injuries":[]}]"#);
    folder.write("teams", "[]");
    folder.write("scorers", "[\n\n  oops]");
    let (code, defects, said) = check(&folder.0);
    assert_eq!(code, Some(1));
    let expected = [
        "matches.json: [0].xg.home: is a string, not a number",
        "matches.json: [0].xg.away: is -1, not a number from 0 to 100 with at most six decimals",
        "scorers.json: is not JSON, at line 3, byte 3",
        "injuries.json: is about the match 77, which fixtures.json does not have",
        "teams.json: is not the file of a kind; these are fixtures, matches, standings, bracket, h2h, scorers, squads, \
         injuries, lineups",
    ];
    assert_eq!(defects.lines().collect::<Vec<_>>(), expected);
    assert!(said.contains(": 3 defects, 2 strays"), "{said}");
    cases.add(2);
    // Each alone, and counts of one.
    for (kind, content, expected) in
        [("matches", "[]", ": 1 defect, 2 strays"), ("scorers", "[]", ": 2 strays"), ("injuries", "[]", ": 1 stray\n")]
    {
        folder.write(kind, content);
        let (code, _, said) = check(&folder.0);
        assert!(code == Some(1) && said.contains(expected), "{kind}: {said}");
        cases.one();
    }
    let empty = place.path().join("empty");
    fs::create_dir(&empty).expect("a folder");
    for (dir, expected) in
        [(empty, "there is no file of a kind; is it the right folder?"), (place.path().join("missing"), "No such file")]
    {
        let (code, _, said) = check(&dir);
        assert!(code == Some(1) && said.contains(expected), "{said}");
        cases.one();
    }
    let output = run(["football", "check"]);
    assert_eq!(output.status.code(), Some(2), "a wrong command");
    cases.one();
}
