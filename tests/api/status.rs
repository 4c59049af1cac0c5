//! Uptime and incidents (gateway/docs/status.md).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::fs;
use std::process::Output;
use tests::binary::command;
use tests::cases::Cases;
use tests::eventually;
use tests::exposition::scrape;
use tests::http::Request;
use tests::json::{list, text};
use tests::server::ServerDir;
use tests::world::World;

const UPTIME: &str = "/v1/status/uptime";
const INCIDENTS: &str = "/v1/status/incidents";

/// The status of today of each service.
fn today(report: &Value) -> Vec<(String, String)> {
    let services = list(report, "/services").iter();
    let last = |service: &Value| {
        let day = list(service, "/days").last().expect("a day");
        (text(service, "/id").to_owned(), text(day, "/status").to_owned())
    };
    services.map(last).collect()
}

fn all(status: &str) -> Vec<(String, String)> {
    ["api", "market_data", "matching_engine", "websocket"].map(|id| (id.to_owned(), status.to_owned())).into()
}

#[test]
fn uptime_has_ninety_days_of_four_services() {
    let cases = Cases::of("uptime");
    for shards in ["1", "2"] {
        let world = World::start_with(1, |place| {
            place.set("engine", "shards", shards).set("server", "io_threads", shards);
        });
        let answer = eventually("the first sample", || {
            let answer = world.public().get(UPTIME);
            (today(&answer.expect(200)) == all("operational")).then_some(answer)
        });
        assert_eq!(answer.header("Cache-Control"), Some("no-store"));
        let report = answer.json();
        let fields: BTreeSet<&str> = report.as_object().expect("an object").keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["generatedAt", "source", "services"]));
        assert_eq!(text(&report, "/source"), "internal");
        for service in list(&report, "/services") {
            let days = list(service, "/days");
            assert_eq!(days.len(), 90);
            let dates: Vec<&str> = days.iter().map(|day| text(day, "/date")).collect();
            assert!(dates.is_sorted() && text(&report, "/generatedAt").starts_with(dates[89]), "{dates:?}");
            for day in &days[..88] {
                let expected = json!({"date": day["date"], "status": "no_data", "summary": null, "impacted_hours": null,
                    "measured_hours": null});
                assert_eq!(day, &expected);
            }
            cases.one();
        }
        // What the status says now agrees with the sample.
        let status = world.public().get("/v1/status").expect(200);
        assert_eq!((text(&status, "/status"), text(&status, "/matching_engine/status")), ("healthy", "ok"));
        for method in ["POST", "DELETE", "PATCH"] {
            world.public().send(&Request::new(method, UPTIME)).refused(405, "HTTP_405");
            world.public().send(&Request::new(method, INCIDENTS)).refused(405, "HTTP_405");
            cases.add(2);
        }
    }
}

/// A venue without markets is down for the sample and degraded for the status.
#[test]
fn the_sample_agrees_with_the_status() {
    let cases = Cases::of("uptime and status");
    let mut place = ServerDir::new();
    let tape = place.root().join("tape.ndjson");
    tests::tape::Tape::create(&tape);
    place.set("venue", "kind", "\"replay\"").set("venue", "tape", &format!("{tape:?}")).set("venue", "follow", "true");
    let server = place.spawn_with(&[], &[]).listening().unwrap_or_else(|output| panic!("{output}"));
    let report = eventually("the first sample", || {
        let report = server.client().get(UPTIME).expect(200);
        (today(&report)[0].1 != "no_data").then_some(report)
    });
    let expected: Vec<(String, String)> = all("operational")
        .into_iter()
        .map(|(id, status)| if id == "market_data" { (id, "outage".to_owned()) } else { (id, status) })
        .collect();
    assert_eq!(today(&report), expected);
    assert_eq!(text(&server.client().get("/v1/status").expect(200), "/status"), "degraded");
    cases.add(4);
}

/// Each minute of server time has a sample, and days that were not measured have none.
#[test]
fn days_follow_server_time() {
    let cases = Cases::of("uptime by day");
    let mut world = World::start_with(0, |place| {
        place.clock_ahead(0);
        place.set("admin", "listen", "\"127.0.0.1:0\"");
    });
    let admin = world.server.admin().expect("the banner has its address");
    let minutes = || scrape(admin).value("papertape_service_minutes_total", &[("service", "api"), ("state", "up")]);
    eventually("the first sample", || (minutes() == 1.0).then_some(()));
    let known = |world: &World| -> Vec<usize> {
        let report = world.public().get(UPTIME).expect(200);
        let days = list(&list(&report, "/services")[0], "/days");
        (0..days.len()).filter(|at| text(&days[*at], "/status") != "no_data").map(|at| 89 - at).collect()
    };
    const DAY: u64 = 86_400;
    assert_eq!(known(&world), [0]);
    world.place.clock_ahead(3 * DAY);
    eventually("a sample after a leap", || (minutes() >= 2.0).then_some(()));
    assert_eq!(known(&world), [3, 0]);
    cases.add(2);
    // They survive a kill and another start, and leave the report after ninety days.
    world.crash();
    eventually("a sample after a start", || (known(&world) == [3, 0]).then_some(()));
    world.place.clock_ahead(90 * DAY);
    eventually("a sample 87 days later", || (known(&world) == [87, 0]).then_some(()));
    cases.add(2);
    world.server.kill();
    let file = world.place.data().join("uptime_minutes");
    assert_eq!(fs::metadata(&file).expect("it is there").len(), 141_440);
    // A damaged file is moved aside, and no start is refused.
    fs::write(&file, "damaged").expect("written");
    world.server = world.place.start();
    eventually("a sample after damage", || (known(&world) == [0]).then_some(()));
    assert_eq!(fs::read(world.place.data().join("uptime_minutes.damaged")).expect("moved"), b"damaged");
    assert!(world.server.output().contains("the file of the uptime is damaged"), "{}", world.server.output());
    cases.add(2);
}

/// `papertape incident …` on that place.
fn incident(place: &ServerDir, args: &[&str]) -> Output {
    let mut verb = command();
    verb.arg("incident").args(args).arg("--config").arg(place.config()).arg("--data-dir").arg(place.data());
    verb.output().expect("papertape can be run")
}

fn said(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr)).trim().to_owned()
}

#[test]
fn incidents_are_changed_while_the_server_runs() {
    let cases = Cases::of("incidents");
    let mut world = World::start(1);
    let shown = |world: &World, ready: &dyn Fn(&[Value]) -> bool| -> Vec<Value> {
        world.until(INCIDENTS, |body| ready(list(body, "/incidents")))["incidents"].as_array().expect("a list").clone()
    };
    let empty = world.public().get(INCIDENTS);
    assert_eq!((empty.expect(200), empty.header("Cache-Control")), (json!({"incidents": []}), Some("no-store")));
    let opened =
        incident(&world.place, &["open", "--title", "Late \"books\"", "--service", "market_data", "--service", "api"]);
    assert!(opened.status.success(), "{}", said(&opened));
    let id = said(&opened).split(' ').next().expect("an id").to_owned();
    let rows = shown(&world, &|rows| rows.len() == 1);
    let fields: Vec<&str> = rows[0].as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(fields, ["id", "title", "status", "started_at", "resolved_at", "services", "updates"]);
    for (field, expected) in [
        ("id", json!(id)),
        ("title", json!("Late \"books\"")),
        ("status", json!("investigating")),
        ("resolved_at", Value::Null),
        ("services", json!(["market_data", "api"])),
        ("updates", json!([])),
    ] {
        assert_eq!(rows[0][field], expected, "{field}");
        cases.one();
    }
    for (args, expected) in [
        (vec!["update", &id, "--text", "A cable is cut.", "--status", "identified"], "identified"),
        (vec!["resolve", &id, "--text", "It is mended."], "resolved"),
    ] {
        let output = incident(&world.place, &args);
        assert_eq!(said(&output), format!("{id} {expected}"), "{args:?}");
        let rows = shown(&world, &|rows| rows[0]["status"] == expected);
        assert_eq!(rows[0]["resolved_at"].is_null(), expected != "resolved");
        cases.one();
    }
    let rows = shown(&world, &|_| true);
    assert_eq!([&rows[0]["updates"][0]["text"], &rows[0]["updates"][1]["text"]], ["A cable is cut.", "It is mended."]);
    for (args, code, expected) in [
        (vec!["resolve", &id], 1, "is resolved"),
        (vec!["update", "nothing", "--text", "x"], 1, "there is no incident nothing"),
        (vec!["open", "--title", ""], 1, "title: is empty"),
        (vec!["open", "--title", "x", "--id", "../../x"], 1, "id: is not 1 to 64"),
        (vec!["open", "--title", "x", "--service", "billing"], 2, "possible values: api, market_data"),
        (vec!["open", "--title", "x", "--status", "resolved"], 2, "possible values: investigating"),
        (vec!["update", &id], 2, "--text"),
    ] {
        let output = incident(&world.place, &args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", said(&output));
        assert!(said(&output).contains(expected), "{args:?}: {}", said(&output));
        cases.one();
    }
    let listed = said(&incident(&world.place, &["list"]));
    assert!(listed.starts_with(&format!("{id}  resolved  ")) && listed.contains("Late \"books\""), "{listed}");
    let json: Value = serde_json::from_str(&said(&incident(&world.place, &["list", "--json"]))).expect("JSON");
    assert_eq!((&json["id"], &json["updates"]), (&json!(id), &json!(2)));
    // They survive a kill.
    world.crash();
    assert_eq!(world.public().get(INCIDENTS).expect(200)["incidents"][0]["id"], json!(id));
    cases.add(3);
}

/// A broken file leaves what was known, is reported once, and a change refuses it.
#[test]
fn a_broken_file_of_incidents_keeps_what_was_known() {
    let cases = Cases::of("broken incidents");
    let world = World::start_with(1, |place| {
        let file = place.root().join("reports.json");
        place.set("status", "incidents_file", &format!("{file:?}"));
        place.set("admin", "listen", "\"127.0.0.1:0\"");
    });
    let file = world.place.root().join("reports.json");
    assert!(incident(&world.place, &["open", "--title", "One", "--id", "one"]).status.success());
    let has_one = |body: &Value| body["incidents"][0]["id"] == "one";
    world.until(INCIDENTS, has_one);
    let sound = fs::read(&file).expect("it is there");
    let admin = world.server.admin().expect("the banner has its address");
    let broken = || scrape(admin).value("papertape_published_file_broken", &[("file", "incidents")]);
    let rows: [(&str, Vec<u8>); 6] = [
        ("cut", sound[..sound.len() / 2].to_vec()),
        ("empty", Vec::new()),
        ("not UTF-8", b"{\"incidents\":[\"\xff\"]}".to_vec()),
        ("too long", vec![b' '; (1 << 20) + 1]),
        ("deep", b"[".repeat(100_000)),
        ("twice", String::from_utf8_lossy(&sound).replace("\"incidents\": [", "\"incidents\": [{},").into_bytes()),
    ];
    for (name, content) in rows {
        fs::write(&file, content).expect("written");
        eventually(name, || (broken() == 1.0).then_some(()));
        assert!(has_one(&world.public().get(INCIDENTS).expect(200)), "{name}");
        let refused = incident(&world.place, &["open", "--title", "Two"]);
        assert!(refused.status.code() == Some(1) && said(&refused).contains("the file is broken"), "{name}");
        fs::write(&file, &sound).expect("written");
        eventually(name, || (broken() == 0.0).then_some(()));
        cases.one();
    }
    fs::remove_file(&file).expect("removed");
    world.until(INCIDENTS, |body| list(body, "/incidents").is_empty());
    cases.one();
}
