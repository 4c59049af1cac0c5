//! The simulation routes (gateway/docs/simulation.md) on archives that are off, empty, broken, and of two markets;
//! `api/simulation/tests.rs` of the edge has the rows of each route.

use archive::events::testing::{event_row, read as read_events};
use archive::read::HourFile;
use archive::row::Row;
use engine::time::{HOUR, MILLISECOND, Timestamp};
use serde_json::{Value, json};
use std::path::Path;
use tests::binary::{run, run_well};
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::text;
use tests::server::ServerDir;
use tests::tape::{Market, Tape};
use tests::token::token;
use tests::world::{World, changed};
use venue::archive::hours::parquet_files;
use wire::instant::ts_text;

const FILL: &str = "/v1/simulation/fill";

fn all(client: &mut Client, world: &World) -> Vec<Response> {
    let condition = &world.markets.rain.condition;
    let body = json!({"condition_id": condition, "shares": "40", "at": "2026-01-30T17:30:00Z"});
    vec![
        client.post(FILL, &body),
        client.get(&format!("/v1/simulation/coverage?condition_id={condition}")),
        client.get(&format!("/v1/simulation/book?condition_id={condition}&at=2026-01-30T17:30:00Z")),
        client.get("/v1/simulation/quota"),
        client.get("/v1/simulation/fill-models"),
    ]
}

#[test]
fn with_the_flag_off_every_path_is_unknown_after_the_credential() {
    let cases = Cases::of("closed simulation");
    let world = World::start(1);
    for answer in all(&mut world.public(), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    for answer in all(&mut world.server.with_token(&token("somebody")), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    for answer in all(&mut world.server.with_key("svc_live_unknown"), &world) {
        answer.refused(401, "INVALID_KEY");
        cases.one();
    }
    for answer in all(&mut world.user(0), &world) {
        answer.refused(404, "NOT_FOUND");
        cases.one();
    }
    // Paths that no server has.
    for path in ["/v1/simulation", "/v1/simulation/", "/v1/simulation/fills"] {
        world.user(0).get(path).refused(404, "NOT_FOUND");
        cases.one();
    }
}

#[test]
fn a_broken_archive_is_unavailable() {
    let cases = Cases::of("simulation on a broken archive");
    let world = World::start_with(1, |place| {
        place.set("flags", "feature_simulation_api_enabled", "true");
        // A folder that cannot be made.
        place.set("archive", "dir", "\"/dev/null/archive\"");
    });
    for answer in all(&mut world.user(0), &world).into_iter().take(3) {
        answer.refused(503, "ARCHIVE_UNAVAILABLE");
        assert_eq!(answer.header("Retry-After"), Some("30"));
        cases.one();
    }
}

#[test]
fn an_empty_archive_knows_no_market_after_the_checks() {
    let cases = Cases::of("simulation on an empty archive");
    let world = World::start_with(1, |place| {
        place.set("flags", "feature_simulation_api_enabled", "true");
    });
    let made = world.user(0).post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let mut reader = world.server.with_key(text(&made, "/raw_key"));
    let mut answers = all(&mut reader, &world);
    let models = answers.pop().expect("five answers").expect(200);
    assert_eq!(models["models"].as_array().map(Vec::len), Some(4));
    let quota = answers.pop().expect("four answers").expect(200);
    assert_eq!((&quota["backtests_used"], &quota["market_hours_used"]), (&json!(0), &json!("0.000")));
    for answer in answers {
        answer.refused(404, "ARCHIVE_NOT_FOUND");
        cases.one();
    }
    for answer in all(&mut world.public(), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    let body = json!({"condition_id": "0x1", "shares": "40", "at": "2026-01-30T17:30:00Z"});
    for (changes, status, code) in [
        (json!({"shares": "0"}), 422, "VALIDATION_FAILED"),
        (json!({"shares": Value::Null}), 422, "VALIDATION_FAILED"),
        (json!({"at": "never"}), 400, "INVALID_WINDOW"),
        (json!({"at": "2999-01-01T00:00:00Z"}), 400, "INVALID_WINDOW"),
        // An enterprise plan has every model.
        (json!({"fill_model": "depth_walk_depletion"}), 404, "ARCHIVE_NOT_FOUND"),
    ] {
        world.user(0).post(FILL, &changed(&body, &changes)).refused(status, code);
        cases.one();
    }
    let backtests = "/v1/simulation/backtests";
    assert_eq!(world.user(0).get(backtests).expect(200), json!({"data": [], "next_cursor": null}));
    for path in ["/1", "/1/trades", "/1/equity", "/0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11"] {
        world.user(0).get(&format!("{backtests}{path}")).refused(404, "NOT_FOUND");
        cases.one();
    }
    let job = json!({"condition_ids": ["0x1"], "start": "2026-01-30T17:00:00Z", "end": "2026-01-30T19:00:00Z",
        "strategy": {"size": "25"}});
    world.user(0).post(backtests, &job).refused(404, "ARCHIVE_NOT_FOUND");
    world.user(0).post(backtests, &changed(&job, &json!({"strategy": {}}))).refused(422, "VALIDATION_FAILED");
    world
        .user(0)
        .post(backtests, &changed(&job, &json!({"end": "2026-05-30T19:00:00Z"})))
        .refused(403, "BACKTEST_WINDOW_CAP");
    cases.add(3);
    let (mut newcomer, _) = world.newcomer("free");
    newcomer
        .post(FILL, &changed(&body, &json!({"fill_model": "depth_walk_depletion"})))
        .refused(402, "UPGRADE_REQUIRED");
    cases.one();
}

/// Two markets, and the moment of their last line.
fn recorded(path: &Path) -> (Vec<Market>, String) {
    let markets = vec![Market::new(1, "rain", "weather", 0.01), Market::new(2, "snow", "weather", 0.001)];
    let mut tape = Tape::create(path);
    tape.list(&markets.iter().collect::<Vec<_>>());
    for market in &markets {
        tape.books(market, &[("0.30", "100"), ("0.29", "50")], &[("0.40", "70"), ("0.41", "200")]);
    }
    // Each change in both books, as the venue mirrors them.
    tape.level(&markets[0], 0, "SELL", "0.40", "20");
    tape.level(&markets[0], 1, "BUY", "0.60", "20");
    tape.level(&markets[0], 0, "BUY", "0.31", "12.5");
    tape.level(&markets[0], 1, "SELL", "0.69", "12.5");
    tape.resolve(&markets[1], ["1", "0"]);
    tape.level(&markets[1], 0, "BUY", "0.305", "7");
    tape.level(&markets[1], 1, "SELL", "0.695", "7");
    let last = Timestamp::from_millis(tape.last_millis());
    (markets, ts_text(last))
}

#[test]
fn routes_and_the_command_give_the_same_answers() {
    let cases = Cases::of("simulation on an archive");
    let mut place = ServerDir::new();
    place.set("flags", "feature_simulation_api_enabled", "true");
    let lines = place.root().join("tape.ndjson");
    let (markets, last) = recorded(&lines);
    let archive = place.data().join("archive");
    let key = place.seed(1, "enterprise", "1").remove(0).key;
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    run_well(["archive", "import", &path(&lines), "--archive", &path(&archive)]);
    let server = place.start();
    let mut client = server.with_key(&key);
    let said = |verb: &str, options: &[(&str, &str)]| {
        let mut words = vec!["simulate".to_owned(), verb.to_owned(), "--archive".to_owned(), path(&archive)];
        for (name, value) in options {
            words.extend([format!("--{}", name.replace('_', "-")), (*value).to_owned()]);
        }
        run(words)
    };
    let (rain, snow) = (&markets[0], &markets[1]);
    // Field values, the average price (null: refused), shares that remain.
    type Fields<'a> = &'a [(&'a str, &'a str)];
    let fills: [(Fields<'_>, Value, &str); 6] = [
        (&[("condition_id", &rain.condition), ("shares", "20")], json!("0.4000"), "0.0000"),
        (&[("condition_id", &rain.condition), ("shares", "60")], json!("0.4067"), "0.0000"),
        (&[("condition_id", &rain.condition), ("shares", "60"), ("limit_price", "0.40")], json!("0.4000"), "40.0000"),
        (&[("condition_id", &rain.condition), ("shares", "10"), ("side", "SELL")], json!("0.3100"), "0.0000"),
        (&[("condition_id", &snow.condition), ("shares", "7"), ("side", "SELL")], json!("0.3050"), "0.0000"),
        (
            &[("condition_id", &rain.condition), ("shares", "5"), ("side", "SELL"), ("token_id", rain.no())],
            json!("0.6000"),
            "0.0000",
        ),
    ];
    for (fields, price, remaining) in fills {
        let fields: Vec<_> = fields.iter().copied().chain([("at", last.as_str())]).collect();
        let body: serde_json::Map<_, _> = fields.iter().map(|(name, value)| ((*name).into(), json!(value))).collect();
        let answer = client.post(FILL, &Value::Object(body)).expect(200);
        assert_eq!((&answer["vwap_fill_price"], &answer["remaining_shares"]), (&price, &json!(remaining)), "{answer}");
        assert_eq!(answer["provenance"]["hour_status"], "partial", "{answer}");
        let output = said("fill", &fields);
        let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(printed, answer, "{fields:?}: {}", String::from_utf8_lossy(&output.stderr));
        cases.one();
    }
    for market in &markets {
        for (verb, fields) in [
            ("coverage", vec![("condition_id", market.condition.as_str())]),
            ("book", vec![("condition_id", market.condition.as_str()), ("at", &last), ("depth", "1")]),
            ("book", vec![("condition_id", &market.condition), ("at", &last), ("outcome", "no")]),
        ] {
            let query: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let answer = client.get(&format!("/v1/simulation/{verb}?{}", query.join("&"))).expect(200);
            let output = said(verb, &fields);
            let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            assert_eq!(printed, answer, "{fields:?}: {}", String::from_utf8_lossy(&output.stderr));
            cases.one();
        }
    }
    let coverage = |market: &Market, client: &mut Client| {
        client.get(&format!("/v1/simulation/coverage?condition_id={}", market.condition)).expect(200)
    };
    let (open, settled) = (coverage(rain, &mut client), coverage(snow, &mut client));
    assert_eq!((&open["settlement_known"], &settled["settlement_known"]), (&json!(false), &json!(true)));
    assert_eq!(settled["settlement_source"], "upstream");
    let unknown = format!("0x{:064x}", 99);
    let (id, cheap) = (rain.condition.as_str(), ("shares", "1"));
    let at = ("at", last.as_str());
    let refused: [(&str, Fields<'_>, i32, &str); 18] = [
        ("fill", &[("condition_id", id), ("shares", "-5"), at], 2, "shares: is below 0.0001"),
        ("fill", &[("condition_id", id), ("shares", "1000001"), at], 2, "shares: is above 1000000"),
        ("fill", &[("condition_id", id), cheap, at, ("limit_price", "-0.5")], 2, "limit_price: is not between 0 and 1"),
        ("fill", &[("condition_id", id), cheap, at, ("latency_ms", "-5")], 2, "latency_ms: is below 0"),
        ("fill", &[("condition_id", id), cheap, at, ("latency_ms", "60001")], 2, "latency_ms: is above 60000"),
        ("fill", &[("condition_id", id), cheap, at, ("latency_ms", "soon")], 2, "not an integer"),
        (
            "fill",
            &[("condition_id", id), cheap, at, ("queue_position", "-1")],
            2,
            "queue_position: is not between 0 and 1",
        ),
        ("book", &[("condition_id", id), at, ("depth", "-1")], 2, "depth: is below 1"),
        ("fill", &[("condition_id", &unknown), ("shares", "1"), ("at", &last)], 1, "ARCHIVE_NOT_FOUND"),
        ("fill", &[("condition_id", &rain.condition), ("shares", "0"), ("at", &last)], 2, "VALIDATION_FAILED"),
        ("book", &[("condition_id", &rain.condition), ("at", "2000-01-01T00:00:00Z")], 1, "CONDITION_HOUR_NOT_COVERED"),
        ("book", &[("condition_id", &rain.condition), ("at", "never")], 2, "INVALID_WINDOW"),
        ("book", &[("condition_id", &rain.condition), ("at", "2999-01-01T00:00:00Z")], 2, "INVALID_WINDOW"),
        ("fill", &[("condition_id", &rain.condition), ("shares", "1"), ("at", "never")], 2, "INVALID_WINDOW"),
        ("book", &[("condition_id", &rain.condition), ("at", &last), ("outcome", "x")], 2, "INVALID_REQUEST"),
        ("coverage", &[("condition_id", "")], 2, "VALIDATION_FAILED"),
        ("coverage", &[("condition_id", &rain.condition), ("start", "never")], 2, "INVALID_WINDOW"),
        ("coverage", &[("condition_id", &unknown)], 1, "ARCHIVE_NOT_FOUND"),
    ];
    for (verb, fields, code, part) in refused {
        let output = said(verb, fields);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{verb} {fields:?}: {error}");
        assert!(error.contains(part), "{verb} {fields:?}: {error}");
        cases.one();
    }
    server.stop();
}

#[test]
fn exports_are_served_by_links() {
    let cases = Cases::of("exports");
    let mut place = ServerDir::new();
    place.set("flags", "feature_simulation_api_enabled", "true");
    let folder = place.root().join("exports");
    place.set("simulation", "export_dir", &format!("{folder:?}"));
    let lines = place.root().join("tape.ndjson");
    let (markets, last) = recorded(&lines);
    let archive = place.data().join("archive");
    let key = place.seed(1, "enterprise", "1").remove(0).key;
    let path = |path: &Path| path.to_str().expect("a path").to_owned();
    run_well(["archive", "import", &path(&lines), "--archive", &path(&archive)]);
    let server = place.start();
    let mut client = server.with_key(&key);
    let last = wire::instant::read(&last).expect("a time");
    let window = Timestamp(last.0 - HOUR)..Timestamp(last.0 + MILLISECOND);
    for market in &markets {
        let mut rows: Vec<Row> = Vec::new();
        for hour in parquet_files(&archive).expect("hours") {
            let file = HourFile::open(&hour).expect("an hour");
            rows.extend(file.all_rows().map(|row| row.expect("a row").1));
        }
        rows.retain(|row| row.market.to_string() == market.condition && window.contains(&row.received));
        rows.sort_by(|one, other| (&one.token, one.received).cmp(&(&other.token, other.received)));
        assert!(rows.len() >= 4, "{} rows", rows.len());
        for layout in ["events", "v2"] {
            let body = json!({"condition_id": market.condition, "layout": layout,
                "start": ts_text(window.start), "end": ts_text(window.end)});
            let link = client.post("/v1/simulation/exports", &body).expect(200);
            let base = format!("http://{}", server.address());
            let url = text(&link, "/url").strip_prefix(&base).expect("the address of the server");
            let mut bearer = Client::new(server.address());
            let whole = bearer.get(url);
            let bytes = whole.body.len();
            assert_eq!((whole.status, whole.header("Content-Length")), (200, Some(bytes.to_string().as_str())));
            let saved = place.root().join(layout);
            std::fs::write(&saved, &whole.body).expect("written");
            match layout {
                "v2" => {
                    let file = HourFile::open(&saved).expect("a sound file");
                    assert!(file.all_rows().map(|row| row.expect("a row").1).eq(rows.iter().cloned()), "{layout}");
                }
                _ => assert!(read_events(&saved).expect("a sound file").into_iter().eq(rows.iter().map(event_row))),
            }
            // Resumed after a part.
            let tag = whole.header("ETag").expect("a tag").to_owned();
            let rest = Request::get(url).header("Range", &format!("bytes={}-", bytes / 2)).header("If-Range", &tag);
            let rest = bearer.send(&rest);
            assert_eq!((rest.status, rest.body.as_slice()), (206, &whole.body[bytes / 2..]));
            assert_eq!(bearer.send(&Request::get(url).header("If-None-Match", &tag)).status, 304);
            let beyond = bearer.send(&Request::get(url).header("Range", "bytes=9999999-"));
            beyond.refused(416, "HTTP_416");
            cases.add(4);
        }
    }
    assert_eq!(std::fs::read_dir(&folder).expect("a folder").count(), 4);
    server.stop();
}
