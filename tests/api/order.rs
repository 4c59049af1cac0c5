//! One order by id and by the client's id (gateway/docs/trading.md §3).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Request;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

#[test]
fn an_order_is_found_by_both_ids() {
    let cases = Cases::of("lookups");
    let world = World::start(1);
    let mut client = world.user(0);
    let m = &world.markets;
    let orders = [
        (changed(&limit(&m.rain, "BUY", "0.37", "20"), &json!({"client_order_id": "resting"})), "pending"),
        (changed(&market(&m.rain, "BUY", "0.44", "100"), &json!({"client_order_id": "bought now"})), "filled"),
        (changed(&limit(&m.rain, "BUY", "0.42", "5"), &json!({"client_order_id": "a/b?c=d&e"})), "pending"),
        (changed(&limit(&m.vote, "BUY", "0.65", "5"), &json!({"client_order_id": "x".repeat(256)})), "filled"),
    ];
    for (body, source) in &orders {
        let placed = client.post("/v1/orders", body).expect(200);
        let id = int(&placed, "/order_id");
        let name = escaped(text(body, "/client_order_id"));
        let by_id = client.get(&format!("/v1/orders/{id}")).expect(200);
        let by_name = client.get(&format!("/v1/orders/by-client-id/{name}")).expect(200);
        assert_eq!(by_id, by_name);
        // The lookup shows the answer of the placement, except for figures of the walk and the balance.
        for field in ["order_id", "status", "side", "outcome", "price", "notional", "fee", "filled_at", "token_id"] {
            assert_eq!(at(&by_id, &format!("/{field}")), at(&placed, &format!("/{field}")), "{field} of {by_id}");
        }
        let other = if *source == "pending" { "filled" } else { "pending" };
        assert_eq!(client.get(&format!("/v1/orders/{id}?source={source}")).expect(200), by_id);
        client.get(&format!("/v1/orders/{id}?source={other}")).refused(404, "ORDER_NOT_FOUND");
        client.get(&format!("/v1/orders/{id}?source=both")).refused(400, "INVALID_SOURCE");
        cases.one();
    }
}

fn escaped(text: &str) -> String {
    text.bytes()
        .map(|byte| if byte.is_ascii_alphanumeric() { (byte as char).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

#[test]
fn fills_are_shown_one_by_one() {
    let cases = Cases::of("fills");
    let world = World::start(1);
    let mut client = world.user(0);
    let placed = client.post("/v1/orders", &market(&world.markets.rain, "BUY", "0.44", "100")).expect(200);
    let order = client.get(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
    // One walk is one fill (engine/docs/execution.md §5).
    let fills = list(&order, "/fills");
    assert_eq!(fills.len(), 1);
    let expected = json!({
        "price": "0.4279", "quantity": "100", "notional": "42.79", "fee": "1.22353", "fee_rate_bps": 500,
        "liquidity": "TAKER", "price_source": "book_walk"
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(&fills[0], &format!("/{field}")), expected, "{field}");
        cases.one();
    }
    assert!(int(&fills[0], "/trade_id") > 0);
    assert!(text(&fills[0], "/venue_time") > "2020", "the markets come from a recording: {}", fills[0]);
    assert_eq!(at(&fills[0], "/filled_at"), at(&order, "/filled_at"));
    let resting = client.post("/v1/orders", &limit(&world.markets.vote, "BUY", "0.5", "20")).expect(200);
    let order = client.get(&format!("/v1/orders/{}", int(&resting, "/order_id"))).expect(200);
    assert_eq!(at(&order, "/fills"), &json!([]));
    cases.one();
}

#[test]
fn what_is_no_order_is_not_found() {
    let cases = Cases::of("no orders");
    let world = World::start(1);
    let paths = [
        "/v1/orders/0",
        "/v1/orders/1",
        "/v1/orders/-1",
        "/v1/orders/abc",
        "/v1/orders/1.5",
        "/v1/orders/+1",
        "/v1/orders/99999999999999999999999",
        "/v1/orders/0x10",
        "/v1/orders/%00",
        "/v1/orders/by-client-id/unknown",
        "/v1/orders/by-client-id/%20",
    ];
    for path in paths {
        world.user(0).get(path).refused(404, "ORDER_NOT_FOUND");
        cases.one();
        if !path.contains("by-client-id") {
            world.user(0).delete(path).refused(404, "ORDER_NOT_FOUND");
            cases.one();
        }
    }
}

#[test]
fn an_order_is_found_without_naming_its_wallet() {
    let cases = Cases::of("wallets of an order");
    let world = World::start(1);
    let mut client = world.user(0);
    let placed = client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "10")).expect(200);
    let (id, wallet) = (int(&placed, "/order_id"), int(&placed, "/wallet_id"));
    for query in ["".to_string(), "?wallet_id=api".into(), "?wallet_id=all".into(), format!("?wallet_id={wallet}")] {
        client.get(&format!("/v1/orders/{id}{query}")).expect(200);
        cases.one();
    }
    client.get(&format!("/v1/orders/{id}?wallet_id=12")).refused(404, "WALLET_NOT_FOUND");
    let explicit = changed(&limit(&world.markets.rain, "BUY", "0.30", "10"), &json!({"wallet_id": wallet}));
    let placed: Value = client.send(&Request::post("/v1/orders").json(&explicit)).expect(200);
    assert_eq!(int(&placed, "/wallet_id"), wallet);
    cases.add(2);
}
