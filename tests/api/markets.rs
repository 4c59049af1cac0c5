//! The market list and one market (gateway/docs/market-data.md §1, §2).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, list, text};
use tests::world::World;

fn slugs(rows: &[Value]) -> Vec<&str> {
    rows.iter().map(|row| text(row, "/slug")).collect()
}

#[test]
fn filters_narrow_the_list() {
    let cases = Cases::of("market filters");
    let world = World::start(1);
    let all = ["rain", "vote", "coin", "treaty", "game", "bidsonly", "silent", "decided", "ended", "halted"];
    let without_decided: Vec<&str> = all.into_iter().filter(|slug| *slug != "decided").collect();
    let rows: Vec<(&str, Vec<&str>)> = vec![
        ("status=all", all.to_vec()),
        ("status=ALL&closed=true", all.to_vec()),
        ("status=resolved", vec!["decided"]),
        ("closed=true", vec!["decided"]),
        ("closed=false", without_decided.clone()),
        ("active_only=false", all.to_vec()),
        ("category=weather", vec!["rain"]),
        ("category=WEATH", vec!["rain"]),
        ("category=politics", vec!["treaty", "vote"]),
        ("category=nothing", vec![]),
        ("q=coin", vec!["coin"]),
        ("search=COIN", vec!["coin"]),
        ("q=will%20rain%20come", vec!["rain"]),
        ("q=%25", vec![]),
        ("status=all&limit=3", vec!["rain", "vote", "coin"]),
        ("status=all&limit=3&offset=3", vec!["treaty", "game", "bidsonly"]),
        ("status=all&offset=9", vec!["halted"]),
        ("status=all&offset=99", vec![]),
        ("status=all&sort=price&ascending=true&limit=1", vec!["rain"]),
        ("status=all&hot_only=true", all.to_vec()),
        ("status=all&hot_only=0&limit=2", vec!["rain", "vote"]),
    ];
    for (query, expected) in rows {
        let shown = world.user(0).get(&format!("/v1/markets?{query}")).expect(200);
        // `politics` matches inside `geopolitics`; the order is by volume.
        let mut expected = expected;
        expected.sort_by_key(|slug| all.iter().position(|known| known == slug));
        assert_eq!(slugs(list(&shown, "")), expected, "{query}");
        cases.one();
    }
    let wrong = [
        "limit=0",
        "limit=201",
        "limit=x",
        "offset=-1",
        "hot_only=maybe",
        "active_only=2",
        "closed=",
        "status=open?",
        "envelope=yes",
        "limit=1e2",
    ];
    for query in wrong {
        world.user(0).get(&format!("/v1/markets?{query}")).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    world.user(0).get(&format!("/v1/markets?q={}", "x".repeat(121))).refused(422, "VALIDATION_FAILED");
    cases.one();
}

#[test]
fn pages_follow_a_cursor() {
    let cases = Cases::of("market pages");
    let world = World::start(1);
    let mut client = world.user(0);
    for size in [1, 3, 4, 10, 200] {
        let mut cursor = "MA==".to_string();
        let mut seen: Vec<String> = Vec::new();
        while cursor != "LTE=" {
            let page = client
                .get(&format!("/v1/markets?status=all&envelope=true&limit={size}&next_cursor={cursor}"))
                .expect(200);
            assert_eq!(at(&page, "/limit"), &json!(size));
            assert_eq!(at(&page, "/count"), &json!(list(&page, "/data").len()));
            seen.extend(slugs(list(&page, "/data")).into_iter().map(str::to_string));
            cursor = text(&page, "/next_cursor").to_string();
        }
        assert_eq!(seen.len(), 10, "pages of {size}: {seen:?}");
        cases.one();
    }
    let at_four = STANDARD.encode("4");
    for (cursor, first) in [(at_four.as_str(), Some("game")), ("4", Some("game")), ("LTE=", None), ("", Some("rain"))] {
        let page = client.get(&format!("/v1/markets?status=all&envelope=true&cursor={cursor}")).expect(200);
        assert_eq!(slugs(list(&page, "/data")).first().copied(), first, "{cursor}");
        cases.one();
    }
    for cursor in ["%21%21", "YWJj", "LTU="] {
        client.get(&format!("/v1/markets?envelope=true&cursor={cursor}")).refused(400, "INVALID_CURSOR");
        cases.one();
    }
}

#[test]
fn a_market_shows_itself() {
    let cases = Cases::of("market fields");
    let world = World::start(1);
    let rain = &world.markets.rain;
    let mut client = world.user(0);
    let rows = client.get("/v1/markets?limit=1").expect(200);
    let summary = json!({
        "condition_id": rain.condition, "slug": "rain", "question": rain.question, "outcomes": ["Yes", "No"],
        "active": true, "closed": false, "is_hot": true, "image_url": null, "category": "weather",
        "clob_token_ids": [rain.yes(), rain.no()], "volume_24h": "999.9", "volume_total": "9999", "last_price": "0.42"
    });
    let detail = client.get(&format!("/v1/markets/{}", rain.condition)).expect(200);
    for shown in [&list(&rows, "")[0], &detail] {
        for (field, expected) in summary.as_object().expect("an object") {
            assert_eq!(at(shown, &format!("/{field}")), expected, "{field}");
            cases.one();
        }
        let live = json!({
            "buy": "0.41", "sell": "0.42", "volume": "9999",
            "outcomes": [
                {"label": "Yes", "price": "0.415", "token_id": rain.yes()},
                {"label": "No", "price": "0.585", "token_id": rain.no()}
            ]
        });
        for (field, expected) in live.as_object().expect("an object") {
            assert_eq!(at(shown, &format!("/live_price/{field}")), expected, "live_price.{field}");
            cases.one();
        }
    }
    let more = json!({
        "end_date": "2038-01-01T00:00:00Z", "resolved_outcome": null, "archived": false, "archived_at": null,
        "question_id": rain.condition, "market_slug": "rain", "neg_risk": false, "tick_size": "0.01",
        "min_order_size": "5", "fee_rate_bps": 500, "description": "Resolves on rain."
    });
    for (field, expected) in more.as_object().expect("an object") {
        assert_eq!(at(&detail, &format!("/{field}")), expected, "{field}");
        cases.one();
    }
    assert_eq!(at(&detail, "/tokens/0/price"), &json!(0.415));
    assert_eq!((text(&detail, "/tokens/1/token_id"), at(&detail, "/tokens/0/winner")), (rain.no(), &json!(false)));
    assert!(detail.get("order_book").is_none_or(Value::is_null), "not requested");
    let by_slug = client.get("/v1/markets/by-slug/rain").expect(200);
    assert_eq!(text(&by_slug, "/condition_id"), rain.condition);
    let with_book = client.get(&format!("/v1/markets/{}?include_book=true", rain.condition)).expect(200);
    assert_eq!(text(&with_book, "/order_book/asset_id"), rain.yes());
    let silent = client.get(&format!("/v1/markets/{}?include_book=1", world.markets.silent.condition)).expect(200);
    assert_eq!(at(&silent, "/order_book"), &Value::Null);
    // Without a book and a trade, the price is that of the venue's catalogue.
    assert_eq!(text(&silent, "/live_price/source"), "upstream_meta");
    assert_eq!(text(&silent, "/live_price/outcomes/0/price"), "0.50");
    cases.add(4);
}

#[test]
fn a_decided_market_stays_readable() {
    let cases = Cases::of("decided markets");
    let mut world = World::start(1);
    for _ in 0..2 {
        let decided = &world.markets.decided;
        let shown = world.user(0).get(&format!("/v1/markets/{}", decided.condition)).expect(200);
        assert_eq!((at(&shown, "/closed"), text(&shown, "/resolved_outcome")), (&json!(true), "Yes"));
        assert_eq!((at(&shown, "/tokens/0/winner"), at(&shown, "/tokens/1/winner")), (&json!(true), &json!(false)));
        cases.one();
        world.crash();
    }
    for path in [
        "/v1/markets/0xdead",
        "/v1/markets/x",
        "/v1/markets/by-slug/unknown",
        "/v1/markets/by-slug/RAIN",
        "/v1/markets/%20",
    ] {
        world.user(0).get(path).refused(404, "MARKET_NOT_FOUND");
        cases.one();
    }
}
