//! Price history and archive (gateway/docs/market-data.md §10, gateway/docs/venue-clients.md §3).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, list, text};
use tests::world::World;

#[test]
fn the_history_has_both_shapes_and_survives_a_kill() {
    let cases = Cases::of("prices history");
    let mut world = World::start(1);
    let (yes, no) = (world.markets.rain.yes().to_string(), world.markets.rain.no().to_string());
    let path = format!("/v1/prices-history?market={yes}");
    let first = world.until(&path, |shown| !list(shown, "/history").is_empty());
    assert_eq!(at(&first, "/history/0/p"), &json!(0.415));
    assert_eq!(at(&first, "/history/0/t").as_i64().expect("a number") % 60, 0);
    for (query, expected) in [
        (format!("token_id={no}"), json!(0.585)),
        (format!("market={yes}&interval=max&fidelity=1440"), json!(0.415)),
        (format!("market={yes}&startTs=0"), json!(0.415)),
    ] {
        let shown = world.public().get(&format!("/v1/prices-history?{query}")).expect(200);
        assert_eq!(at(&shown, "/history/0/p"), &expected, "{query}");
        cases.one();
    }
    let candles = world.public().get(&format!("{path}&format=ohlcv")).expect(200);
    let row = &list(&candles, "")[0];
    assert_eq!([text(row, "/o"), text(row, "/h"), text(row, "/l"), text(row, "/c")], ["0.415"; 4]);
    // Markets without a price, and unknown tokens.
    for token in [world.markets.silent.yes(), world.markets.bidsonly.yes(), "99"] {
        let shown = world.public().get(&format!("/v1/prices-history?market={token}")).expect(200);
        assert_eq!(shown, json!({"history": []}), "{token}");
        cases.one();
    }
    let before = world.user(0).get(&path).expect(200);
    for _ in 0..3 {
        world.crash();
        let after = world.user(0).get(&format!("{path}&interval=1d")).expect(200);
        let kept = list(&after, "/history");
        assert!(list(&before, "/history").iter().all(|point| kept.contains(point)), "{before} in {after}");
        cases.one();
    }
}

#[test]
fn a_trade_replaces_the_midpoint_of_a_wide_book() {
    let cases = Cases::of("wide books");
    let mut world = World::start(1);
    let game = world.markets.game.clone();
    // 0.30 to 0.50: too wide for a midpoint.
    let path = format!("/v1/prices-history?market={}", game.yes());
    assert_eq!(world.public().get(&path).expect(200), json!({"history": []}));
    world.tape.trade(&game, 1, "BUY", "0.6", "3");
    let shown = world.until(&path, |shown| !list(shown, "/history").is_empty());
    assert_eq!(at(&shown, "/history/0/p"), &json!(0.4), "the second outcome traded at 0.60");
    cases.one();
}

#[test]
fn hostile_parameters_never_break_it() {
    let cases = Cases::of("hostile price history");
    let world = World::start_with(1, |place| _ = place.set("flags", "chart_archive_read_enabled", "true"));
    let token = world.markets.rain.yes().to_string();
    let mut client = world.user(0);
    for number in crate::numbers::in_queries() {
        for path in ["/v1/prices-history", "/v1/prices-history/archive"] {
            for field in ["market", "token_id", "startTs", "endTs", "interval", "fidelity", "format"] {
                let target = match field {
                    "market" | "token_id" => format!("{path}?{field}={number}"),
                    _ => format!("{path}?market={token}&{field}={number}"),
                };
                let answer = client.get(&target);
                assert!([200, 400, 404].contains(&answer.status), "{target}: {}", answer.lossy());
                cases.one();
            }
        }
    }
    // A start in the future, of the wall clock or only of the recording's: no points yet, and no error.
    for start in ["4102444800", "99999999999"] {
        let ahead = client.get(&format!("/v1/prices-history?market={token}&startTs={start}")).expect(200);
        assert_eq!(ahead, json!({"history": []}));
        client.get(&format!("/v1/prices-history?market={token}")).expect(200);
        cases.add(2);
    }
    for (query, code) in [
        ("", "INVALID_TOKEN_ID"),
        ("market=0x51", "INVALID_TOKEN_ID"),
        ("market=1&startTs=2&endTs=1", "INVALID_WINDOW"),
        ("market=1&interval=2h", "INVALID_INTERVAL"),
        ("market=1&fidelity=0", "INVALID_REQUEST"),
    ] {
        client.get(&format!("/v1/prices-history?{query}")).refused(400, code);
        cases.one();
    }
}

#[test]
fn the_archive_has_closed_markets() {
    let cases = Cases::of("archive");
    let mut world = World::start_with(1, |place| _ = place.set("flags", "chart_archive_read_enabled", "true"));
    let decided = world.markets.decided.clone();
    let path = format!("/v1/prices-history/archive?market={}", decided.no());
    // The feed sends its prices in batches, half a second apart.
    let shown = world.until(&path, |shown| !list(shown, "/history").is_empty());
    for (field, expected) in [
        ("market", json!(decided.no())),
        ("condition_id", json!(decided.condition)),
        ("outcome", json!("No")),
        ("resolved_outcome", json!("Yes")),
        ("fidelity", json!(60)),
        ("source", json!("archive")),
    ] {
        assert_eq!(at(&shown, &format!("/{field}")), &expected, "{field}");
        cases.one();
    }
    assert_eq!(text(&shown, "/history/0/c"), "0.29");
    let bare = world.user(0).get(&format!("{path}&format=ohlcv")).expect(200);
    assert_eq!(text(&bare, "/0/c"), "0.29");
    let mut client = world.user(0);
    let open = format!("/v1/prices-history/archive?market={}", world.markets.rain.yes());
    client.get(&open).refused(400, "INVALID_REQUEST");
    client.get("/v1/prices-history/archive?market=99").refused(404, "ARCHIVE_NOT_FOUND");
    client.get("/v1/prices-history/archive").refused(400, "INVALID_TOKEN_ID");
    world.public().get(&path).refused(401, "MISSING_API_KEY");
    cases.add(4);

    // Without its folder the history is in memory alone, so there is no archive; the server starts nevertheless.
    world.server.kill();
    let history = world.place.data().join("history");
    std::fs::remove_dir_all(&history).expect("the history was there");
    std::fs::write(&history, b"in the way").expect("a file can be made");
    world.server = world.place.start();
    let answer = world.user(0).get(&path);
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("30")));
    answer.refused(503, "ARCHIVE_UNAVAILABLE");
    let rain = format!("/v1/prices-history?market={}", world.markets.rain.yes());
    world.until(&rain, |shown: &Value| !list(shown, "/history").is_empty());
    // Without the flag the route does not exist.
    world.server.kill();
    world.place.set("flags", "chart_archive_read_enabled", "false");
    world.server = world.place.start();
    world.user(0).get(&path).refused(404, "NOT_FOUND");
    cases.add(3);
}
