//! Native batches (gateway/docs/trading.md §5).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Request;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

#[test]
fn entries_are_independent() {
    let cases = Cases::of("batch entries");
    let world = World::start(2);
    let m = &world.markets;
    let good = limit(&m.rain, "BUY", "0.37", "20");
    let with = |changes: Value| changed(&good, &changes);
    // Entry, status, error; in this order, so the sale finds what the purchase bought.
    let rows: [(Value, &str, Value); 14] = [
        (with(json!({"client_order_id": "one"})), "PENDING", Value::Null),
        (market(&m.rain, "BUY", "0.42", "30"), "FILLED", Value::Null),
        (market(&m.rain, "SELL", "0.41", "10"), "FILLED", Value::Null),
        (market(&m.rain, "SELL", "0.41", "21"), "REJECTED", json!("INSUFFICIENT_POSITION")),
        (with(json!({"price": "0.375"})), "REJECTED", json!("INVALID_ORDER_MIN_TICK_SIZE")),
        (with(json!({"side": "HOLD"})), "REJECTED", json!("VALIDATION_FAILED")),
        (json!("not an order"), "REJECTED", json!("VALIDATION_FAILED")),
        (json!({}), "REJECTED", json!("VALIDATION_FAILED")),
        (with(json!({"price": null})), "REJECTED", json!("PRICE_REQUIRED")),
        (with(json!({"quantity": "0"})), "REJECTED", json!("INVALID_QUANTITY")),
        (with(json!({"market_id": "0x1"})), "REJECTED", json!("MARKET_NOT_FOUND")),
        (with(json!({"time_in_force": "FOK", "quantity": "900"})), "CANCELLED", json!("FOK_ORDER_NOT_FILLED_ERROR")),
        (with(json!({"client_order_id": "one"})), "PENDING", Value::Null),
        (with(json!({"client_order_id": "one", "quantity": "21"})), "REJECTED", json!("DUPLICATE_CLIENT_ORDER_ID")),
    ];
    let entries: Vec<&Value> = rows.iter().map(|(entry, ..)| entry).collect();
    // Both forms of the body are the same batch.
    for (user, body) in [(0, json!({"orders": entries})), (1, json!(entries))] {
        let mut client = world.user(user);
        // A header on this route identifies no entry.
        let request = Request::post("/v1/orders/batch").json(&body).header("Idempotency-Key", "ignored");
        let body = client.send(&request).expect(200);
        let results = list(&body, "/results");
        assert_eq!(results.len(), rows.len());
        for ((entry, status, error), result) in rows.iter().zip(results) {
            assert_eq!((text(result, "/status"), at(result, "/error")), (*status, error), "{entry} gave {result}");
            if !error.is_null() {
                assert!(!text(result, "/error_message").is_empty());
            }
            if *status == "REJECTED" {
                assert_eq!(int(result, "/order_id"), 0);
                for field in ["price", "notional", "fee"] {
                    assert_eq!(text(result, &format!("/{field}")), "0", "{result}");
                }
                assert_eq!(at(result, "/client_order_id"), entry.get("client_order_id").unwrap_or(&Value::Null));
            } else {
                assert!(int(result, "/order_id") > 0);
            }
            cases.one();
        }
        assert_eq!((int(&body, "/succeeded"), int(&body, "/failed")), (4, 10));
        // A repeat of the first entry gets the same answer.
        assert_eq!(at(&results[12], "/order_id"), at(&results[0], "/order_id"));
        assert_eq!(at(&results[12], "/is_replay"), &json!(true));
        let orders = client.get("/v1/orders").expect(200);
        assert_eq!(list(&orders, "/orders").len(), 4, "three orders and one killed");
    }
}

#[test]
fn the_call_as_a_whole_has_its_bounds() {
    let cases = Cases::of("batch bounds");
    let world = World::start(1);
    let good = limit(&world.markets.rain, "BUY", "0.01", "5");
    let many = |count: usize| json!({"orders": vec![&good; count]});
    let mut client = world.user(0);
    client.post("/v1/orders/batch", &many(25)).expect(200);
    let too_many = client.post("/v1/orders/batch", &many(26)).refused(400, "BATCH_LIMIT_EXCEEDED");
    let message = text(&too_many, "/message");
    assert!(message.contains("26") && message.contains("25"), "it has both numbers: {message}");
    client.post("/v1/orders/batch", &many(100)).refused(400, "BATCH_LIMIT_EXCEEDED");
    for body in [json!({"orders": []}), json!([]), many(101), json!({}), json!({"orders": "x"})] {
        client.post("/v1/orders/batch", &body).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    for body in ["", "{", "7", "\"x\""] {
        let request = Request::post("/v1/orders/batch").text("application/json", body);
        client.send(&request).refused(400, "INVALID_BODY");
        cases.one();
    }
    cases.add(3);
    assert_eq!(int(&client.get("/v1/orders?limit=1").expect(200), "/total_hint"), 25);
}

#[test]
fn the_size_is_the_tiers() {
    let cases = Cases::of("batch sizes");
    let world = World::start(0);
    let (mut client, _) = world.newcomer("free trader");
    let good = limit(&world.markets.rain, "BUY", "0.01", "5");
    client.post("/v1/orders/batch", &json!([good])).expect(200);
    client.post("/v1/orders/batch", &json!([good, good])).refused(400, "BATCH_LIMIT_EXCEEDED");
    cases.add(2);
    for (tier, size) in [("pro", 5), ("pro_plus", 10)] {
        let mut place = tests::server::ServerDir::new();
        place.set("venue", "seed", "7").set("journal", "segment_bytes", "4194304");
        let user = place.seed(1, tier, "100").remove(0);
        let server = place.start();
        let mut client = server.with_key(&user.key);
        // Unknown markets: only the count matters here.
        client.post("/v1/orders/batch", &json!(vec![&good; size])).expect(200);
        client.post("/v1/orders/batch", &json!(vec![&good; size + 1])).refused(400, "BATCH_LIMIT_EXCEEDED");
        cases.add(2);
    }
}
