//! The reset of the API balance (gateway/docs/accounts.md §4).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Request;
use tests::json::{at, int, list, text};
use tests::server::User;
use tests::world::{World, limit, market};

const PATH: &str = "/v1/account/reset-api-balance";
const DAY: u64 = 86_400;

/// A world with users of these tiers.
fn world_of(tiers: &[&str], cooldown_days: u64) -> (World, Vec<User>) {
    let mut users = Vec::new();
    let world = World::start_with(0, |place| {
        place.clock_ahead(0).set("flags", "api_reset_cooldown_days", &cooldown_days.to_string());
        users.extend(tiers.iter().map(|tier| place.seed(1, tier, "10000").remove(0)));
    });
    (world, users)
}

#[test]
fn a_paid_wallet_is_reset() {
    let cases = Cases::of("API balance resets");
    let (mut world, users) = world_of(&["pro"], 0);
    let mut client = world.server.with_key(&users[0].key);
    let (rain, vote) = (world.markets.rain.clone(), world.markets.vote.clone());
    for order in [market(&rain, "BUY", "0.42", "50"), market(&vote, "BUY", "0.65", "10")] {
        client.post("/v1/orders", &order).expect(200);
    }
    let resting = client.post("/v1/orders", &limit(&rain, "SELL", "0.90", "30")).expect(200);
    let wallets = client.get("/v1/me/wallets").expect(200);
    let id = int(&list(&wallets, "/wallets")[1], "/id");
    let before = client.get("/v1/account/history").expect(200);
    let body = client.post(PATH, &json!({})).expect(200);
    let expected = json!({
        "message": "API wallet is back at 10000.00 USD", "new_api_balance": "10000.00", "positions_closed": 2,
        "orders_cancelled": 1, "cooldown_days": 0
    });
    assert_eq!(body, expected);
    // The same wallet, its next generation; its earlier trades stay listed.
    let wallet = client.get(&format!("/v1/me/wallets/{id}")).expect(200);
    let parts =
        ["/kind", "/balance", "/generation", "/parent_wallet_id", "/status"].map(|part| at(&wallet, part).clone());
    assert_eq!(parts, [json!("API"), json!("10000.00"), json!(2), Value::Null, json!("ACTIVE")]);
    assert_eq!(client.get("/v1/account/history").expect(200), before);
    let order = client.get(&format!("/v1/orders/{}", int(&resting, "/order_id"))).expect(200);
    assert_eq!((text(&order, "/status"), text(&order, "/cancelled_reason")), ("CANCELLED", "balance_reset"));
    let positions = client.get("/v1/account/positions").expect(200);
    for position in list(&positions, "") {
        assert_eq!((text(position, "/status"), text(position, "/quantity")), ("CLOSED_BY_RESET", "0"));
        assert_eq!(text(position, "/realized_pnl"), "0.00");
        assert!(at(position, "/closed_at").is_string() && at(position, "/market_value").is_null());
        cases.one();
    }
    let portfolio = client.get("/v1/account/portfolio").expect(200);
    // A reset is not an exit: it has no profit and no loss.
    assert_eq!((int(&portfolio, "/total_trades"), at(&portfolio, "/win_rate")), (2, &Value::Null));
    let balance = json!({
        "balance": "10000.00", "currency": "USD", "unrealized_pnl": "0.00", "total_value": "10000.00",
        "starting_balance": "10000.00", "reserved": "0.00"
    });
    assert_eq!(at(&portfolio, "/balance"), &balance);
    cases.add(6);
    // Trading continues; the same token is another position.
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "10")).expect(200);
    assert_eq!(list(&client.get("/v1/account/positions?status=OPEN").expect(200), "").len(), 1);
    let positions = client.get("/v1/account/positions").expect(200);
    world.crash();
    client.moved_to(world.server.address());
    assert_eq!(client.get("/v1/account/positions").expect(200), positions);
    cases.add(2);
    // An absent body equals an empty one; anything but an object is refused.
    for (request, status) in [
        (Request::post(PATH), 200),
        (Request::post(PATH).text("application/json", "{}"), 200),
        (Request::post(PATH).text("application/json", "{\"confirm\":true}"), 200),
        (Request::post(PATH).text("application/json", "[]"), 400),
        (Request::post(PATH).text("application/json", "{"), 400),
    ] {
        let answer = client.send(&request);
        assert_eq!(answer.status, status, "{}", answer.lossy());
        assert!(status == 200 || answer.code() == "INVALID_BODY", "{}", answer.lossy());
        cases.one();
    }
}

#[test]
fn the_free_plan_has_no_reset_and_any_key_of_a_paid_one_does() {
    let cases = Cases::of("who may reset");
    let (world, users) = world_of(&["free", "pro_plus"], 0);
    let mut free = world.server.with_key(&users[0].key);
    let refused = free.post(PATH, &json!({})).refused(402, "UPGRADE_REQUIRED");
    assert_eq!((text(&refused, "/feature_key"), text(&refused, "/upgrade_url")), ("api.reset_balance", "/pricing"));
    let mut paid = world.server.with_key(&users[1].key);
    let reads = paid.post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let body = world.server.with_key(text(&reads, "/raw_key")).post(PATH, &json!({})).expect(200);
    assert_eq!(text(&body, "/new_api_balance"), "10000.00");
    world.public().post(PATH, &json!({})).refused(401, "MISSING_API_KEY");
    world.server.with_token(&tests::token::token("person")).post(PATH, &json!({})).refused(401, "MISSING_API_KEY");
    cases.add(4);
}

#[test]
fn a_cooldown_is_waited_for() {
    let cases = Cases::of("cooldowns");
    let (mut world, users) = world_of(&["pro"], 2);
    let mut client = world.server.with_key(&users[0].key);
    assert_eq!(int(&client.post(PATH, &json!({})).expect(200), "/cooldown_days"), 2);
    // (seconds since, days that Retry-After rounds to)
    for (secs, days_left) in [(0, 2), (DAY + 3_600, 1), (2 * DAY - 3_600, 1)] {
        world.place.clock_ahead(secs);
        if secs > 0 {
            world.crash();
            client.moved_to(world.server.address());
        }
        let answer = client.post(PATH, &json!({}));
        answer.refused(429, "HTTP_429");
        let wait: u64 = answer.header("Retry-After").and_then(|text| text.parse().ok()).expect("seconds");
        assert_eq!(wait.div_ceil(DAY), days_left, "{wait} s");
        cases.one();
    }
    world.place.clock_ahead(2 * DAY + 3_600);
    world.crash();
    client.moved_to(world.server.address());
    client.post(PATH, &json!({})).expect(200);
    client.post(PATH, &json!({})).refused(429, "HTTP_429");
    cases.add(2);
}
