//! Cancels, one and all (gateway/docs/trading.md §4, §6).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Request;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

#[test]
fn a_cancel_gives_back_what_was_reserved() {
    let cases = Cases::of("cancels");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    client.post("/v1/orders", &market(rain, "BUY", "0.42", "20")).expect(200);
    let before = client.get("/v1/account/balance").expect(200);
    let sale = |quantity: &str| limit(rain, "SELL", "0.90", quantity);
    for body in [limit(rain, "BUY", "0.37", "20"), limit(rain, "BUY", "0.01", "7.77"), sale("20"), sale("5.5")] {
        let placed = client.post("/v1/orders", &body).expect(200);
        let id = int(&placed, "/order_id");
        let cancelled = client.delete(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!(
            (text(&cancelled, "/status"), text(&cancelled, "/cancelled_reason"), int(&cancelled, "/order_id")),
            ("CANCELLED", "user_cancelled", id)
        );
        for field in ["balance", "reserved"] {
            let now = client.get("/v1/account/balance").expect(200);
            assert_eq!(at(&now, &format!("/{field}")), at(&before, &format!("/{field}")));
        }
        client.delete(&format!("/v1/orders/{id}")).refused(400, "ORDER_NOT_CANCELLABLE");
        cases.one();
    }
    let positions = client.get("/v1/account/positions").expect(200);
    assert_eq!(text(&positions, "/0/reserved_quantity"), "0");
}

#[test]
fn a_partly_filled_order_keeps_its_fills() {
    let cases = Cases::of("partly filled");
    let world = World::start(1);
    let mut client = world.user(0);
    let placed = client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.42", "100")).expect(200);
    let cancelled = client.delete(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
    assert_eq!((text(&cancelled, "/status"), text(&cancelled, "/filled_quantity")), ("CANCELLED", "60.5"));
    assert_eq!(text(&cancelled, "/account_balance"), "9973.85311");
    let history = client.get("/v1/account/history").expect(200);
    assert_eq!(list(&history, "").len(), 1);
    assert_eq!(text(&client.get("/v1/account/balance").expect(200), "/reserved"), "0.00");
    cases.add(3);
}

#[test]
fn final_orders_stay_as_they_are() {
    let cases = Cases::of("final orders");
    let world = World::start(1);
    let mut client = world.user(0);
    let filled = client.post("/v1/orders", &market(&world.markets.rain, "BUY", "0.42", "20")).expect(200);
    let path = format!("/v1/orders/{}", int(&filled, "/order_id"));
    let before = client.get(&path).expect(200);
    for _ in 0..2 {
        client.delete(&path).refused(400, "ORDER_NOT_CANCELLABLE");
        assert_eq!(client.get(&path).expect(200), before);
        cases.one();
    }
}

#[test]
fn cancel_all_wants_to_be_sure() {
    let cases = Cases::of("confirmations");
    let world = World::start(1);
    let mut client = world.user(0);
    let order = limit(&world.markets.rain, "BUY", "0.30", "10");
    let placed = client.post("/v1/orders", &order).expect(200);
    let unsure = [
        Request::post("/v1/cancel-all"),
        Request::post("/v1/cancel-all").header("X-Confirm-Cancel-All", "false"),
        Request::post("/v1/cancel-all").header("X-Confirm-Cancel-All", ""),
        Request::post("/v1/cancel-all?confirm=false"),
        Request::post("/v1/cancel-all?confirm=0"),
    ];
    for request in &unsure {
        client.send(request).refused(400, "CONFIRMATION_REQUIRED");
        cases.one();
    }
    client.post("/v1/cancel-all?confirm=perhaps", &json!({})).refused(422, "VALIDATION_FAILED");
    let id = int(&placed, "/order_id");
    assert_eq!(text(&client.get(&format!("/v1/orders/{id}")).expect(200), "/status"), "PENDING");
    let sure = [
        Request::post("/v1/cancel-all").header("X-Confirm-Cancel-All", "true"),
        Request::post("/v1/cancel-all?confirm=true"),
        Request::post("/v1/cancel-all?confirm=1"),
        Request::post("/v1/cancel-all?confirm=TRUE").json(&json!({})),
        Request::post("/v1/cancel-all?confirm=true&wallet_id=all"),
        Request::post("/v1/cancel-all?confirm=true").json(&json!({"wallet_id": "api"})),
    ];
    for request in &sure {
        let ids: Vec<String> = (0..2).map(|_| client.post("/v1/orders", &order).expect(200)).map(id_text).collect();
        let body = client.send(request).expect(200);
        let mut canceled: Vec<String> =
            list(&body, "/canceled").iter().map(|id| id.as_str().expect("ids are texts").to_string()).collect();
        canceled.retain(|other| *other != id.to_string());
        canceled.sort();
        assert_eq!(canceled, ids, "{body}");
        assert_eq!(at(&body, "/not_canceled"), &json!({}));
        for id in &ids {
            let row = client.get(&format!("/v1/orders/{id}")).expect(200);
            assert_eq!((text(&row, "/status"), text(&row, "/cancelled_reason")), ("CANCELLED", "cancel_all"));
        }
        cases.one();
    }
    let nothing = client.send(&sure[1]).expect(200);
    assert_eq!(nothing, json!({"canceled": [], "not_canceled": {}}));
    client.post("/v1/cancel-all?confirm=true&wallet_id=77", &json!({})).refused(404, "WALLET_NOT_FOUND");
    client.post("/v1/cancel-all?confirm=true&wallet_id=x", &json!({})).refused(422, "VALIDATION_FAILED");
    let account = client.get("/v1/account/balance").expect(200);
    assert_eq!((text(&account, "/balance"), text(&account, "/reserved")), ("10000.00", "0.00"));
}

fn id_text(placed: Value) -> String {
    int(&placed, "/order_id").to_string()
}

#[test]
fn a_cancel_needs_no_open_market() {
    let cases = Cases::of("cancels of a closed market");
    let mut world = World::start(1);
    let mut client = world.user(0);
    let order = changed(&limit(&world.markets.game, "BUY", "0.1", "10"), &json!({}));
    let placed = client.post("/v1/orders", &order).expect(200);
    let mut game = world.markets.game.clone();
    game.accepting = false;
    world.tape.list(&[&game]);
    // The market is halted as soon as it refuses an order.
    tests::eventually("the market to halt", || {
        (client.post("/v1/orders", &order).code() == "MARKET_CLOSED").then_some(())
    });
    client.delete(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
    cases.one();
}

#[test]
fn heartbeats_with_other_labels_are_bounded() {
    let cases = Cases::of("heartbeat labels");
    let world = World::start(1);
    let mut client = world.user(0);
    let beat = |label: usize| json!({"interval_ms": 60_000, "client_label": format!("client {label}")});
    for label in 0..16 {
        client.post("/v1/heartbeats", &beat(label)).expect(200);
        cases.one();
    }
    client.post("/v1/heartbeats", &beat(16)).refused(400, "INVALID_REQUEST");
    // Armed heartbeats continue, and the end of one makes room.
    client.post("/v1/heartbeats", &beat(3)).expect(200);
    client.delete("/v1/heartbeats").expect(200);
    client.post("/v1/heartbeats", &beat(16)).expect(200);
    cases.add(3);
}
