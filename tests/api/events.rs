//! Events (gateway/docs/market-data.md §4).

use serde_json::{Value, json};
use std::time::{SystemTime, UNIX_EPOCH};
use tests::cases::Cases;
use tests::eventually;
use tests::json::{at, int, list, micros, text};
use tests::server::ServerDir;
use tests::tape::Tape;

fn volume(event: &Value) -> i64 {
    list(event, "/markets").iter().filter_map(|market| at(market, "/volume_total").as_str()).map(micros).sum()
}

#[test]
fn the_synthetic_world_has_events_of_every_kind() {
    let cases = Cases::of("events");
    let mut place = ServerDir::new();
    place.set("venue", "seed", "7");
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let server = place.start();
    let mut client = server.with_key(&user.key);
    let all = client.get("/v1/events?limit=200&markets_per_event=100").expect(200);
    let events = list(&all, "/events");
    let total = int(&all, "/total");
    assert!(total > 20 && events.len() as i64 == total.min(200), "{total}");
    assert_eq!((at(&all, "/has_sports"), text(&all, "/cache_source")), (&Value::Null, "memory"));
    for pair in events.windows(2) {
        // Every market of these is open, so the shown markets are the summed ones.
        assert!(volume(&pair[0]) >= volume(&pair[1]), "{} before {}", pair[0], pair[1]);
        cases.one();
    }
    for event in events {
        assert_eq!(at(event, "/is_hot"), &json!(volume(event) > 5_000_000_000), "{event}");
        let volumes: Vec<Option<i64>> =
            list(event, "/markets").iter().map(|market| at(market, "/volume_total").as_str().map(micros)).collect();
        assert!(!volumes.is_empty() && volumes.is_sorted_by(|a, b| a >= b), "{volumes:?}");
        assert!(!text(event, "/slug").contains("updown"), "{event}");
    }
    // Pages together are the whole.
    let mut paged = Vec::new();
    for offset in (0..total).step_by(7) {
        let page = client.get(&format!("/v1/events?limit=7&offset={offset}")).expect(200);
        assert_eq!((int(&page, "/total"), int(&page, "/offset")), (total, offset));
        paged.extend(list(&page, "/events").iter().map(|event| text(event, "/id").to_string()));
        cases.one();
    }
    let mut ids: Vec<String> = events.iter().map(|event| text(event, "/id").to_string()).collect();
    // Figures change between the reads, and the order with them.
    ids.sort();
    paged.sort();
    assert_eq!(paged, ids);
    let one = client.get("/v1/events?markets_per_event=1").expect(200);
    assert!(list(&one, "/events").iter().all(|event| list(event, "/markets").len() == 1));
    let calm = client.get("/v1/events?include_sports=false&limit=200").expect(200);
    assert_eq!(at(&calm, "/has_sports"), &json!(true));
    assert!(int(&calm, "/total") < total);
    assert!(list(&calm, "/events").iter().all(|event| at(event, "/category") != "sports"));
    for (query, empty) in [("venue=kalshi", true), ("venue=polymarket", true), ("venue=all", false)] {
        let page = client.get(&format!("/v1/events?{query}")).expect(200);
        assert_eq!(int(&page, "/total") == 0, empty, "{query}");
        cases.one();
    }
}

#[test]
fn hostile_parameters_are_refused_or_looked_past() {
    let cases = Cases::of("hostile events");
    let place = ServerDir::new();
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let server = place.start();
    let mut client = server.with_key(&user.key);
    for number in crate::numbers::in_queries() {
        for field in ["limit", "offset", "markets_per_event", "hot_only", "include_sports", "venue"] {
            let answer = client.get(&format!("/v1/events?{field}={number}"));
            let expected = [200, if field == "venue" { 400 } else { 422 }];
            assert!(expected.contains(&answer.status), "{field}={number}: {}", answer.lossy());
            cases.one();
        }
        for field in ["category", "search"] {
            client.get(&format!("/v1/events?{field}={number}")).expect(200);
            cases.one();
        }
        let markets = [("limit", 422), ("offset", 422), ("closed", 422), ("status", 422), ("q", 200)];
        for (field, refused) in markets {
            let answer = client.get(&format!("/v1/markets?{field}={number}"));
            assert!([200, refused].contains(&answer.status), "{field}={number}: {}", answer.lossy());
            cases.one();
        }
    }
    client.get("/v1/events?venue=synthetic").refused(400, "INVALID_SOURCE");
}

/// A line that lists an event with two markets.
fn listed() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_millis() as u64;
    let market = |number: u64, volume: f64| {
        json!({
            "id": number.to_string(), "conditionId": format!("0x{number:064x}"), "slug": format!("m-{number}"),
            "question": format!("Question {number}?"), "outcomes": "[\"Yes\",\"No\"]",
            "clobTokenIds": format!("[\"7{number}1\",\"7{number}2\"]"), "orderPriceMinTickSize": 0.01,
            "active": true, "closed": false, "acceptingOrders": true, "enableOrderBook": true,
            "endDate": "2038-01-01T00:00:00Z", "volumeNum": volume, "groupItemTitle": format!("Label {number}"),
            "category": "sports"
        })
    };
    let event = json!({
        "id": "771", "slug": "the-cup", "title": "The Cup", "endDate": "2038-01-01T00:00:00Z",
        "markets": [market(1, 10.0), market(2, 4_990.5)]
    });
    json!({"r": now, "v": "polymarket", "u": "/events", "s": 200, "b": [event]}).to_string()
}

#[test]
fn a_server_without_any_market_warms_up() {
    let cases = Cases::of("warm-up");
    let mut place = ServerDir::new();
    let mut tape = Tape::create(&place.root().join("tape.ndjson"));
    place.set("venue", "kind", "\"replay\"");
    place.set("venue", "tape", &format!("{:?}", tape.path()));
    place.set("venue", "follow", "true");
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let server = place.spawn_with(&[], &[]).listening().expect("it starts without a market");
    let mut client = server.with_key(&user.key);
    let answer = client.get("/v1/events?limit=3&offset=1");
    assert_eq!((answer.status, answer.header("retry-after")), (503, Some("5")));
    let body = answer.refused(503, "HTTP_503");
    for (field, expected) in [
        ("events", json!([])),
        ("total", json!(0)),
        ("limit", json!(3)),
        ("offset", json!(1)),
        ("cache_source", json!("warming")),
        ("has_sports", Value::Null),
    ] {
        assert_eq!(at(&body, &format!("/{field}")), &expected, "{field}");
        cases.one();
    }
    client.get("/v1/health/ready").expect(503);
    tape.line(&listed());
    let page = eventually("the first listing", || {
        let answer = client.get("/v1/events");
        (answer.status == 200).then(|| answer.json())
    });
    assert_eq!((int(&page, "/total"), text(&page, "/events/0/title")), (1, "The Cup"));
    // 5000.5 together, though neither market is hot alone.
    assert_eq!(at(&page, "/events/0/is_hot"), &json!(true));
    assert_eq!(text(&page, "/events/0/markets/0/slug"), "m-2");
    assert_eq!(text(&page, "/events/0/markets/1/display_label"), "Label 1");
    assert_eq!(at(&page, "/events/0/markets/0/live_price"), &Value::Null);
    assert_eq!(int(&client.get("/v1/events?venue=polymarket").expect(200), "/total"), 1);
    assert_eq!(at(&client.get("/v1/events?include_sports=false").expect(200), "/has_sports"), &json!(true));
    cases.add(4);
}
