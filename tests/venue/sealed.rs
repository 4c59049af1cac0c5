//! A server that records fills its archive: from messages of a live venue to hours that its own routes read, and through
//! kills at every step of the archive's files.

use crate::fake_polymarket::Fake;
use serde_json::json;
use std::fs;
use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::binary::run_well;
use tests::cases::Cases;
use tests::eventually;
use tests::exposition::scrape;
use tests::http::connect;
use tests::server::{Server, ServerDir};
use tests::tape::Market;

/// What a monitor reads: hours made, hours being made.
fn figures(server: &Server) -> (f64, f64) {
    let metrics = scrape(server.admin().expect("the banner has the address of the metrics"));
    (metrics.value("papertape_archive_hours_total", &[]), metrics.value("papertape_archive_building", &[]))
}

/// The metrics of a server that may end at any moment.
fn metrics_of(address: SocketAddr) -> Option<String> {
    let mut stream = connect(address).ok()?;
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut text = String::new();
    stream.read_to_string(&mut text).ok()?;
    Some(text)
}

/// Files below a folder with one of these endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.to_str().is_some_and(|path| endings.iter().any(|ending| path.ends_with(ending))) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

#[test]
fn a_server_that_records_answers_from_what_it_recorded() {
    let cases = Cases::of("hours of a live recording");
    let fake = Fake::start();
    let market = fake.list(7);
    let mut place = ServerDir::new();
    fake.configure(&mut place);
    place
        .set("admin", "listen", "\"127.0.0.1:0\"")
        .set("flags", "feature_simulation_api_enabled", "true")
        .set("archive", "seal_after_s", "60")
        .set("journal", "reserve_bytes", "0")
        .clock_ahead(0);
    let folder = place.root().join("exports");
    place.set("simulation", "export_dir", &format!("{folder:?}"));
    let key = place.seed(1, "enterprise", "10000").remove(0).key;
    let server = place.start_with(&["--record"], &[]);
    let mut client = server.with_key(&key);
    eventually("a live book", || {
        (client.get(&format!("/v1/book?token_id={}", market.tokens[0])).status == 200).then_some(())
    });
    fake.level(&market, "BUY", "0.45", "33");
    let before = eventually("a change in the recording", || {
        let text: String = files(&place.data().join("tape"), &[".ndjson"])
            .iter()
            .filter_map(|path| fs::read_to_string(path).ok())
            .collect();
        text.contains("0.45").then_some(text)
    });
    assert_eq!(figures(&server).0, 0.0);
    let path = format!("/v1/simulation/coverage?condition_id={}", market.condition);
    // The hour that is being written.
    let at = last_moment(&before, "0.45");
    let book_path = format!("/v1/simulation/book?condition_id={}&at={at}", market.condition);
    let shown = eventually("the book of the open hour", || {
        let answer = client.get(&book_path);
        (answer.status == 200).then(|| answer.json())
    });
    assert!(shown.to_string().contains("0.45") && shown.to_string().contains("provisional"), "{shown}");
    let coverage = client.get(&path).expect(200);
    assert_eq!(coverage["bbo_confidence"], json!("provisional"), "{coverage}");
    assert_eq!(coverage["hours_available"], json!(1), "{coverage}");
    // Back-tests and exports use hours that are made.
    let end = at + jiff::SignedDuration::from_millis(1);
    let (backtests, exports) = ("/v1/simulation/backtests", "/v1/simulation/exports");
    let backtest = json!({"condition_ids": [market.condition], "start": at.to_string(), "end": end.to_string(),
        "strategy": {"size": "5"}});
    let export = json!({"condition_id": market.condition, "start": at.to_string(), "end": end.to_string()});
    client.post(backtests, &backtest).refused(422, "UNUNIVERSE_EXCLUDED");
    client.post(exports, &export).refused(404, "CONDITION_HOUR_NOT_COVERED");
    assert_eq!(client.get("/v1/simulation/quota").expect(200)["backtests_used"], json!(0));
    cases.add(7);

    // Two hours later the hour is packed and made.
    place.clock_ahead(7_300);
    eventually("an hour", || (figures(&server).0 >= 1.0).then_some(()));
    let coverage = eventually("the made hour in the answer", || {
        let answer = client.get(&path);
        let is_made = |body: &serde_json::Value| body["hours"][0]["bbo_confidence"] != json!("provisional");
        (answer.status == 200).then(|| answer.json()).filter(is_made)
    });
    assert!(coverage["hours_available"].as_u64().is_some_and(|hours| hours >= 1), "{coverage}");
    assert_eq!(coverage["hours_quarantined"], json!(0), "{coverage}");
    let metrics = scrape(server.admin().expect("an address"));
    assert!(metrics.value("papertape_archive_newest_hour_seconds", &[]) > 0.0);
    assert!(metrics.value("papertape_archive_bytes_total", &[]) > 0.0);
    assert_eq!(metrics.value("papertape_archive_refused_total", &[]), 0.0);
    assert_eq!(metrics.value("papertape_archive_failed_total", &[]), 0.0);
    cases.add(6);
    // The same book as before, of the hour that is made.
    let book = client.get(&book_path).expect(200);
    assert_eq!((&book["bids"], &book["asks"]), (&shown["bids"], &shown["asks"]), "{book}");
    assert!(!book.to_string().contains("provisional"), "{book}");
    client.post(exports, &export).expect(200);
    let job = client.post(backtests, &backtest).expect(202)["job_id"].as_str().expect("an id").to_owned();
    let ended = eventually("the back-test to end", || {
        let summary = client.get(&format!("{backtests}/{job}")).expect(200);
        summary["completed_at"].is_string().then_some(summary)
    });
    assert_eq!(ended["status"], "completed", "{ended}");
    cases.add(2);
    server.stop();
    let archive = place.data().join("archive").display().to_string();
    let tape = place.data().join("tape").display().to_string();
    let said = run_well(["archive", "verify", "--archive", &archive]);
    assert!(said.contains("all hours are sound"), "{said}");
    let packed = files(Path::new(&tape), &[".ndjson.gz"]);
    assert!(!packed.is_empty(), "the hour is packed");
    cases.add(3);
}

/// The time of the last line of a recording with this text.
fn last_moment(text: &str, part: &str) -> jiff::Timestamp {
    let last = text
        .lines()
        .rfind(|line| line.contains(part))
        .and_then(|line| line.strip_prefix("{\"r\":")?.split(',').next()?.parse().ok());
    jiff::Timestamp::from_millisecond(last.expect("a line has its time")).expect("a time")
}

/// The lines of an hour that a recorder wrote some hours ago, its last line torn by a kill.
fn recorded(folder: &Path, hour: u64) -> String {
    let market = Market::new(3, "rain", "weather", 0.01);
    let begin = hour * 3_600_000;
    let mut text = format!(
        "{}\n",
        json!({"r": begin + 5, "v": "polymarket", "u": "/markets", "s": 200, "b": [market.listed(None)]})
    );
    for (number, token) in market.tokens.iter().enumerate() {
        let at = begin + 10 + number as u64;
        let levels = |price: &str| json!([{"price": price, "size": "5"}]);
        let (bids, asks) = (levels("0.3"), levels("0.6"));
        let book =
            json!({"event_type": "book", "asset_id": token, "timestamp": at.to_string(), "bids": bids, "asks": asks});
        text += &format!("{}\n", json!({"r": at, "v": "polymarket", "c": "ws-1", "m": book}));
    }
    for minute in 0..60_u64 {
        let at = begin + minute * 60_000 + 100;
        let change =
            json!({"asset_id": market.tokens[0], "price": "0.31", "size": (minute + 1).to_string(), "side": "BUY"});
        let change = json!({"event_type": "price_change", "timestamp": at.to_string(), "price_changes": [change]});
        text += &format!("{}\n", json!({"r": at, "v": "polymarket", "c": "ws-1", "m": change}));
    }
    fs::create_dir_all(folder).expect("a folder");
    let seconds = i64::try_from(hour * 3_600).expect("a time");
    let name = jiff::Timestamp::from_second(seconds).expect("a time").strftime("tape-%Y-%m-%dT%H.ndjson").to_string();
    fs::write(folder.join(name), format!("{text}{{\"r\":{},\"v\":\"poly", begin + 3_599_000)).expect("a tape");
    text
}

#[test]
fn a_kill_at_any_step_leaves_the_recording_and_a_whole_archive() {
    const STEPS_MAX: u64 = 60;
    let cases = Cases::of("kills while an hour is made");
    let fake = Fake::start();
    fake.list(7);
    let hour = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() / 3_600 - 3;
    let mut kills = 0;
    for step in 1..=STEPS_MAX {
        let mut place = ServerDir::new();
        fake.configure(&mut place);
        place.set("admin", "listen", "\"127.0.0.1:0\"").set("journal", "reserve_bytes", "0");
        let tape = place.data().join("tape");
        // As a server makes it.
        fs::DirBuilder::new().mode(0o700).create(place.data()).expect("a folder");
        let text = recorded(&tape, hour);
        place.set("archive", "crash_at", &step.to_string());
        let was_killed = match place.spawn_with(&["--record"], &[]).listening() {
            Err(_) => true,
            Ok(mut server) => eventually("an hour or a kill", || {
                if server.is_over() {
                    return Some(true);
                }
                let text = metrics_of(server.admin()?)?;
                let is_made = text.contains("papertape_archive_hours_total 1\n");
                (is_made && text.contains("papertape_archive_building 0\n")).then_some(false)
            }),
        };
        kills += u64::from(was_killed);
        // The next start makes the hour.
        place.unset("archive", "crash_at");
        let server = place.start_with(&["--record"], &[]);
        let root = place.data().join("archive");
        eventually("the hour", || {
            let sidecars = files(&root, &[".json"]);
            let is_made = sidecars.len() == 1 && root.join("recording.state").exists() && figures(&server).1 == 0.0;
            is_made.then_some(())
        });
        server.stop();
        assert_eq!(files(&root, &[".making"]), Vec::<PathBuf>::new(), "step {step}");
        let (archive, raw) = (root.display().to_string(), tape.display().to_string());
        let said = run_well(["archive", "verify", "--deep", "--archive", &archive]);
        assert!(said.contains("all hours are sound"), "step {step}: {said}");
        // Every whole line of the recording is there as it was, plain or packed.
        let rest = place.root().join("again");
        let said = run_well(["archive", "import", &raw, "--archive", rest.to_str().expect("a path")]);
        let rows = |said: &str| said.lines().find(|line| line.contains(" rows, ")).map(str::to_owned);
        assert!(rows(&said).is_some_and(|line| line.contains("62 rows")), "step {step}: {said}");
        let plain: Vec<String> =
            files(&tape, &[".ndjson"]).iter().filter_map(|path| fs::read_to_string(path).ok()).collect();
        assert!(
            plain.iter().any(|plain| plain.starts_with(&text)) || !files(&tape, &[".gz"]).is_empty(),
            "step {step}"
        );
        cases.one();
        if !was_killed {
            break;
        }
    }
    assert!((10..STEPS_MAX).contains(&kills), "{kills} kills");
}
