//! Candles (gateway/docs/market-data.md §7): prices over time, and fills on this server.

use serde_json::json;
use tests::cases::Cases;
use tests::json::{at, list, text};
use tests::world::{World, limit};

#[test]
fn candles_show_prices_and_fills_and_survive_a_kill() {
    let cases = Cases::of("candles");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let path = format!("/v1/markets/{}/candles", rain.condition);
    let first = world.until(&path, |rows| !list(rows, "").is_empty());
    assert_eq!((text(&first, "/0/o"), text(&first, "/0/v")), ("0.415", "0"));
    world.tape.books(&rain, &[("0.41", "85")], &[("0.43", "50")]);
    world.user(0).post("/v1/orders", &limit(&rain, "BUY", "0.44", "10")).expect(200);
    let moved = world.until(&path, |rows| {
        let last = list(rows, "").last().expect("it exists");
        text(last, "/c") == "0.42" && text(last, "/v") == "10"
    });
    // An hour may have begun meanwhile; then there are two.
    let last = list(&moved, "").last().expect("a candle");
    assert_eq!(
        (text(last, "/h"), text(last, "/l")),
        ("0.42", if list(&moved, "").len() == 1 { "0.415" } else { "0.42" })
    );
    cases.add(3);
    for start in ["kill", "stop"] {
        if start == "kill" {
            world.crash();
        } else {
            let World { place, server, .. } = world;
            server.stop();
            let server = place.start();
            let again = server.with_key(&key_of(&place)).get(&path).expect(200);
            assert_eq!(text(list(&again, "").last().expect("a candle"), "/v"), "10");
            cases.one();
            return;
        }
        let again = world.user(0).get(&path).expect(200);
        assert_eq!(text(list(&again, "").last().expect("a candle"), "/v"), "10", "{again}");
        assert_eq!(text(&again, "/0/o"), "0.415");
        for (query, rows) in [("interval=1d", true), ("interval=max", true), ("end_time=5", false)] {
            let shown = world.user(0).get(&format!("{path}?{query}")).expect(200);
            assert_eq!(!list(&shown, "").is_empty(), rows, "{query}");
            cases.one();
        }
        let other = world.user(0).get(&format!("{path}?outcome=No")).expect(200);
        assert_eq!((text(&other, "/0/o"), at(list(&other, "").last().expect("one"), "/v")), ("0.585", &json!("0")));
    }
}

/// Another key on the stopped and restarted server.
fn key_of(place: &tests::server::ServerDir) -> String {
    let users = std::fs::read_dir(place.root()).expect("the folder").filter_map(|entry| {
        let path = entry.expect("an entry").path();
        path.extension().is_some_and(|extension| extension == "jsonl").then_some(path)
    });
    let text = users.map(|path| std::fs::read_to_string(path).expect("users")).next().expect("a file of users");
    let row: serde_json::Value = serde_json::from_str(text.lines().next().expect("a user")).expect("JSON");
    row["api_key"].as_str().expect("a key").to_string()
}

#[test]
fn hostile_parameters_are_refused() {
    let cases = Cases::of("hostile candles");
    let world = World::start(1);
    let path = format!("/v1/markets/{}/candles", world.markets.rain.condition);
    let mut client = world.user(0);
    for number in crate::numbers::in_queries() {
        let fields = [("interval", 400), ("limit", 422), ("start_time", 400), ("end_time", 400), ("outcome", 404)];
        for (field, refused) in fields {
            let answer = client.get(&format!("{path}?{field}={number}"));
            assert!([200, refused].contains(&answer.status), "{field}={number}: {}", answer.lossy());
            cases.one();
        }
        let answer = client.get(&format!("/v1/markets/{number}/candles"));
        assert_eq!(answer.status, 404, "{number}: {}", answer.lossy());
    }
    let refused = client.get(&format!("{path}?interval=2h")).refused(400, "INVALID_INTERVAL");
    assert_eq!(at(&refused, "/supported_intervals"), &json!(["1h", "6h", "1d", "1w", "max"]));
}
