//! Refused placements: each reachable code, and which one wins when two things are wrong.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{at, int, list, text};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

/// A body, and its refusal.
type Row = (&'static str, Value, u16, &'static str);

/// Refusals without a row (gateway/docs/trading.md §1).
fn without_a_row(world: &World) -> Vec<Row> {
    let m = &world.markets;
    let rest = limit(&m.rain, "BUY", "0.37", "20");
    let buy = market(&m.rain, "BUY", "0.42", "20");
    let rest_with = |changes: Value| changed(&rest, &changes);
    let buy_with = |changes: Value| changed(&buy, &changes);
    let past = unix_now() - 1;
    vec![
        ("no market", rest_with(json!({"market_id": null})), 422, "VALIDATION_FAILED"),
        ("no outcome", rest_with(json!({"outcome": null})), 422, "VALIDATION_FAILED"),
        ("market is a number", rest_with(json!({"market_id": 7})), 422, "VALIDATION_FAILED"),
        ("market is empty", rest_with(json!({"market_id": ""})), 422, "VALIDATION_FAILED"),
        ("market is long", rest_with(json!({"market_id": "x".repeat(257)})), 422, "VALIDATION_FAILED"),
        ("outcome is long", rest_with(json!({"outcome": "x".repeat(201)})), 422, "VALIDATION_FAILED"),
        ("unknown market", rest_with(json!({"market_id": "0x00"})), 404, "MARKET_NOT_FOUND"),
        ("unknown outcome", rest_with(json!({"outcome": "Perhaps"})), 404, "MARKET_NOT_FOUND"),
        (
            "unknown token",
            rest_with(json!({"market_id": null, "outcome": null, "token_id": "12345"})),
            404,
            "MARKET_NOT_FOUND",
        ),
        ("token of the other outcome", rest_with(json!({"token_id": m.rain.no()})), 400, "INVALID_REQUEST"),
        ("token of another market", rest_with(json!({"token_id": m.vote.yes()})), 400, "INVALID_REQUEST"),
        ("no side", rest_with(json!({"side": null})), 422, "VALIDATION_FAILED"),
        ("a third side", rest_with(json!({"side": "HOLD"})), 422, "VALIDATION_FAILED"),
        ("a third type", rest_with(json!({"order_type": "stop"})), 422, "VALIDATION_FAILED"),
        ("no size", rest_with(json!({"quantity": null})), 422, "VALIDATION_FAILED"),
        ("two sizes", buy_with(json!({"amount": "5"})), 400, "INVALID_REQUEST"),
        (
            "amount of a sale",
            buy_with(json!({"quantity": null, "amount": "5", "side": "SELL"})),
            400,
            "INVALID_REQUEST",
        ),
        ("amount of a limit", rest_with(json!({"quantity": null, "amount": "5"})), 400, "INVALID_REQUEST"),
        ("amount of nothing", buy_with(json!({"quantity": null, "amount": "0"})), 400, "INVALID_QUANTITY"),
        ("amount below zero", buy_with(json!({"quantity": null, "amount": "-5"})), 400, "INVALID_QUANTITY"),
        ("amount for no share", buy_with(json!({"quantity": null, "amount": "0.00001"})), 400, "INVALID_QUANTITY"),
        ("quantity zero", rest_with(json!({"quantity": "0"})), 400, "INVALID_QUANTITY"),
        ("quantity below zero", rest_with(json!({"quantity": "-1"})), 400, "INVALID_QUANTITY"),
        ("quantity rounds to zero", rest_with(json!({"quantity": "0.00009"})), 400, "INVALID_QUANTITY"),
        ("quantity above the cap", rest_with(json!({"quantity": "1000000.0001"})), 422, "VALIDATION_FAILED"),
        ("amount beyond the cap", buy_with(json!({"quantity": null, "amount": "420001"})), 422, "VALIDATION_FAILED"),
        (
            "amount beyond counting",
            buy_with(json!({"quantity": null, "amount": "9000000000000"})),
            422,
            "VALIDATION_FAILED",
        ),
        ("limit without price", rest_with(json!({"price": null})), 400, "PRICE_REQUIRED"),
        ("market without price", buy_with(json!({"price": null})), 400, "PRICE_REQUIRED"),
        ("price zero", rest_with(json!({"price": "0"})), 422, "VALIDATION_FAILED"),
        ("price below zero", rest_with(json!({"price": "-0.3"})), 422, "VALIDATION_FAILED"),
        ("price above one", buy_with(json!({"price": "1.0001"})), 422, "VALIDATION_FAILED"),
        ("price off the grid", rest_with(json!({"price": "0.375"})), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        ("price far off the grid", rest_with(json!({"price": "0.3700001"})), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        ("limit at one", rest_with(json!({"price": "1"})), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        ("an unknown time in force", rest_with(json!({"time_in_force": "DAY"})), 422, "VALIDATION_FAILED"),
        (
            "market till a date",
            buy_with(json!({"time_in_force": "GTD", "expiration": past + 99})),
            422,
            "VALIDATION_FAILED",
        ),
        ("a date without date", rest_with(json!({"time_in_force": "GTD"})), 400, "INVALID_ORDER_EXPIRATION"),
        (
            "a date of now",
            rest_with(json!({"time_in_force": "GTD", "expiration": past})),
            400,
            "INVALID_ORDER_EXPIRATION",
        ),
        (
            "a date of words",
            rest_with(json!({"time_in_force": "GTD", "expiration": "soon"})),
            400,
            "INVALID_ORDER_EXPIRATION",
        ),
        (
            "post-only FOK",
            rest_with(json!({"post_only": true, "time_in_force": "FOK"})),
            400,
            "INVALID_POST_ONLY_ORDER_TYPE",
        ),
        (
            "post-only FAK",
            rest_with(json!({"post_only": true, "time_in_force": "FAK"})),
            400,
            "INVALID_POST_ONLY_ORDER_TYPE",
        ),
        ("post-only market", buy_with(json!({"post_only": true})), 400, "INVALID_POST_ONLY_ORDER_TYPE"),
        (
            "post-only that crosses",
            rest_with(json!({"post_only": true, "price": "0.42"})),
            400,
            "INVALID_POST_ONLY_ORDER",
        ),
        ("post-only is not a bool", rest_with(json!({"post_only": "yes"})), 422, "VALIDATION_FAILED"),
        ("a long id", rest_with(json!({"client_order_id": "x".repeat(257)})), 422, "VALIDATION_FAILED"),
        ("an unprintable id", rest_with(json!({"client_order_id": "a\u{7}b"})), 422, "VALIDATION_FAILED"),
        ("an unknown wallet", rest_with(json!({"wallet_id": 1})), 404, "WALLET_NOT_FOUND"),
        ("a wallet of words", rest_with(json!({"wallet_id": "mine"})), 422, "VALIDATION_FAILED"),
        ("a resolved market", limit(&m.decided, "BUY", "0.37", "20"), 400, "MARKET_CLOSED"),
        ("a halted market", limit(&m.halted, "BUY", "0.37", "20"), 400, "MARKET_CLOSED"),
        ("buying past the end", market(&m.ended, "BUY", "0.40", "20"), 400, "MARKET_CLOSED"),
        ("a limit past the end", limit(&m.ended, "SELL", "0.40", "20"), 400, "MARKET_CLOSED"),
        ("below the minimum", rest_with(json!({"quantity": "4.9999"})), 400, "INVALID_ORDER_MIN_SIZE"),
        ("below a fine minimum", limit(&m.vote, "BUY", "0.601", "0.9999"), 400, "INVALID_ORDER_MIN_SIZE"),
        ("selling what is not held", rest_with(json!({"side": "SELL"})), 400, "INSUFFICIENT_POSITION"),
        ("more than is held", rest_with(json!({"quantity": "27028"})), 400, "INSUFFICIENT_BALANCE"),
    ]
}

#[test]
fn each_fault_has_its_code_and_leaves_nothing() {
    let cases = Cases::of("refusals");
    let world = World::start(1);
    let mut client = world.user(0);
    for (name, body, status, code) in without_a_row(&world) {
        let answer = client.post("/v1/orders", &body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{name}: {}", answer.lossy());
        answer.assert_envelope();
        assert_eq!(answer.header("X-Svc-Order-Id"), None, "{name} leaves no row");
        cases.one();
    }
    let orders = client.get("/v1/orders?wallet_id=all").expect(200);
    assert_eq!(at(&orders, "/orders"), &json!([]));
    let balance = client.get("/v1/account/balance").expect(200);
    assert_eq!((text(&balance, "/balance"), text(&balance, "/reserved")), ("10000.00", "0.00"));
}

#[test]
fn a_killed_order_leaves_its_row() {
    let cases = Cases::of("killed orders");
    let world = World::start(1);
    let m = &world.markets;
    let with = |body: Value, force: &str| changed(&body, &json!({"time_in_force": force}));
    let fok = "FOK_ORDER_NOT_FILLED_ERROR";
    let none = "NO_EXECUTABLE_DEPTH";
    let rows: Vec<Row> = vec![
        ("FOK beyond its limit", with(limit(&m.rain, "BUY", "0.42", "100"), "FOK"), 400, fok),
        ("FOK with no level inside", with(limit(&m.rain, "BUY", "0.40", "10"), "FOK"), 400, fok),
        ("market FOK beyond its cap", market(&m.rain, "BUY", "0.42", "61"), 400, fok),
        ("market FOK on one side", market(&m.bidsonly, "BUY", "0.99", "10"), 400, fok),
        ("market FOK without a book", market(&m.silent, "BUY", "0.99", "10"), 400, fok),
        (
            "a budget that finds too little",
            changed(&market(&m.rain, "BUY", "0.42", "1"), &json!({"quantity": null, "amount": "30"})),
            400,
            fok,
        ),
        ("FAK with no level inside", with(limit(&m.rain, "BUY", "0.40", "10"), "FAK"), 400, none),
        ("IOC with no level inside", with(limit(&m.rain, "BUY", "0.40", "10"), "IOC"), 400, none),
        ("market FAK without a book", with(market(&m.silent, "BUY", "0.99", "10"), "FAK"), 400, none),
        ("market IOC on one side", with(market(&m.bidsonly, "BUY", "0.99", "10"), "IOC"), 400, none),
    ];
    let mut client = world.user(0);
    for (name, body, status, code) in rows {
        let answer = client.post("/v1/orders", &body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{name}: {}", answer.lossy());
        answer.assert_envelope();
        let id = answer.header("X-Svc-Order-Id").unwrap_or_else(|| panic!("{name} has no order id")).to_string();
        let row = client.get(&format!("/v1/orders/{id}")).expect(200);
        let reason = if code == fok { "fok_not_filled" } else { "fak_no_fill" };
        assert_eq!((text(&row, "/status"), text(&row, "/cancelled_reason")), ("CANCELLED", reason), "{name}");
        assert_eq!(text(&row, "/filled_quantity"), "0", "{name}");
        client.delete(&format!("/v1/orders/{id}")).refused(400, "ORDER_NOT_CANCELLABLE");
        cases.one();
    }
    let rows = client.get("/v1/orders?status=CANCELLED").expect(200);
    assert_eq!(list(&rows, "/orders").len(), cases.count());
    let balance = client.get("/v1/account/balance").expect(200);
    assert_eq!(text(&balance, "/balance"), "10000.00");
}

#[test]
fn the_first_fault_in_the_order_of_checks_wins() {
    let cases = Cases::of("two faults");
    let world = World::start(1);
    let m = &world.markets;
    let rest = limit(&m.rain, "BUY", "0.37", "20");
    let buy = market(&m.rain, "BUY", "0.42", "20");
    let rest_with = |changes: Value| changed(&rest, &changes);
    let past = unix_now() - 1;
    let rows: Vec<Row> = vec![
        ("1 before 2", changed(&buy, &json!({"side": "X", "amount": "5"})), 422, "VALIDATION_FAILED"),
        ("1 before 3", rest_with(json!({"quantity": "1e3", "price": null})), 422, "VALIDATION_FAILED"),
        ("share cap before 3", rest_with(json!({"quantity": "2000000", "price": null})), 422, "VALIDATION_FAILED"),
        ("2 before 3", changed(&buy, &json!({"amount": "5", "price": null})), 400, "INVALID_REQUEST"),
        ("3 before 4", rest_with(json!({"price": null, "quantity": "0"})), 400, "PRICE_REQUIRED"),
        (
            "4 before 5",
            rest_with(json!({"quantity": "0", "post_only": true, "time_in_force": "FOK"})),
            400,
            "INVALID_QUANTITY",
        ),
        (
            "5 before 7",
            rest_with(json!({"post_only": true, "time_in_force": "FAK", "wallet_id": 1})),
            400,
            "INVALID_POST_ONLY_ORDER_TYPE",
        ),
        (
            "6 before 7",
            rest_with(json!({"time_in_force": "GTD", "expiration": past, "wallet_id": 1})),
            400,
            "INVALID_ORDER_EXPIRATION",
        ),
        ("7 before 8", rest_with(json!({"wallet_id": 1, "market_id": "0x00"})), 404, "WALLET_NOT_FOUND"),
        ("8 before 10", rest_with(json!({"market_id": "0x00", "price": "0.375"})), 404, "MARKET_NOT_FOUND"),
        ("9 before 10", limit(&m.decided, "BUY", "0.375", "20"), 400, "MARKET_CLOSED"),
        ("9 before 13", limit(&m.halted, "SELL", "0.37", "20"), 400, "MARKET_CLOSED"),
        ("10 before 12", rest_with(json!({"price": "0.375", "quantity": "1"})), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        ("12 before 13", rest_with(json!({"side": "SELL", "quantity": "1"})), 400, "INVALID_ORDER_MIN_SIZE"),
        (
            "13 before 16",
            changed(&market(&m.silent, "SELL", "0.01", "20"), &json!({"time_in_force": "FAK"})),
            400,
            "INSUFFICIENT_POSITION",
        ),
        (
            "17 before 19",
            rest_with(json!({"post_only": true, "price": "0.42", "quantity": "900000"})),
            400,
            "INVALID_POST_ONLY_ORDER",
        ),
        (
            "18 before 19",
            rest_with(json!({"time_in_force": "FOK", "price": "0.44", "quantity": "900000"})),
            400,
            "FOK_ORDER_NOT_FILLED_ERROR",
        ),
    ];
    for (name, body, status, code) in rows {
        let answer = world.user(0).post("/v1/orders", &body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{name}: {}", answer.lossy());
        cases.one();
    }
}

#[test]
fn a_body_that_is_no_object_is_refused_first() {
    let cases = Cases::of("bodies");
    let world = World::start(1);
    let good = limit(&world.markets.rain, "BUY", "0.37", "20").to_string();
    let deep = format!("{{\"x\":{}{}}}", "[".repeat(40), "]".repeat(40));
    let twice = good.replacen('{', "{\"side\":\"SELL\",", 1);
    let send =
        |kind: &str, body: &str| -> Response { world.user(0).send(&Request::post("/v1/orders").text(kind, body)) };
    let rows: [(&str, &str, u16, &str); 13] = [
        ("application/json", "", 400, "INVALID_BODY"),
        ("application/json", "{", 400, "INVALID_BODY"),
        ("application/json", "\"text\"", 400, "INVALID_BODY"),
        ("application/json", "17", 400, "INVALID_BODY"),
        ("application/json", "null", 400, "INVALID_BODY"),
        ("application/json", "{} {}", 400, "INVALID_BODY"),
        ("application/json", "{'side':'BUY'}", 400, "INVALID_BODY"),
        ("application/json", "{\"side\":NaN}", 400, "INVALID_BODY"),
        ("application/json", &deep, 400, "INVALID_BODY"),
        ("application/json", "{}", 422, "VALIDATION_FAILED"),
        ("text/plain", &good, 415, "HTTP_415"),
        ("application/x-www-form-urlencoded", "side=BUY", 415, "HTTP_415"),
        ("application/json; charset=latin1", &good, 415, "HTTP_415"),
    ];
    for (kind, body, status, code) in rows {
        let answer = send(kind, body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{kind} {body:.60}: {}", answer.lossy());
        answer.assert_envelope();
        cases.one();
    }
    // A repeated field could mean two things.
    let answer = send("application/json", &twice);
    assert!([400, 422].contains(&answer.status), "{} {}", answer.status, answer.lossy());
    let not_utf8 = Request {
        body: Some(b"{\"side\":\"\xff\"}".to_vec()),
        ..Request::post("/v1/orders").header("Content-Type", "application/json")
    };
    world.user(0).send(&not_utf8).refused(400, "INVALID_BODY");
    for kind in
        ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "Application/JSON"]
    {
        send(kind, &good).expect(200);
        cases.one();
    }
    let mut untyped = Request::post("/v1/orders");
    untyped.body = Some(good.into_bytes());
    world.user(0).send(&untyped).expect(200);
    cases.add(3);
}

#[test]
fn an_old_quote_is_not_traded_on() {
    let cases = Cases::of("quote age");
    let world = World::start_with(1, |place| _ = place.set("flags", "trade_quote_max_age_ms", "1"));
    let rain = &world.markets.rain;
    let mut client = world.user(0);
    let price = format!("/v1/price?token_id={}&side=BUY", rain.yes());
    world.until(&price, |shown| int(shown, "/age_ms") > 1);
    for order in [
        market(rain, "BUY", "0.42", "10"),
        changed(&limit(rain, "BUY", "0.42", "10"), &json!({"time_in_force": "FAK"})),
        changed(&limit(rain, "BUY", "0.42", "10"), &json!({"time_in_force": "FOK"})),
    ] {
        let answer = client.send(&Request::post("/v1/orders").json(&order).header("X-Svc-Verbose", "true"));
        let body = answer.refused(400, "STALE_QUOTE");
        assert!(int(&body, "/details/quote_age_ms") > 1);
        assert_eq!(int(&body, "/details/max_age_ms"), 1);
        cases.one();
    }
    // A resting order is accepted and not filled, although it crosses: no fresh quote exists.
    let resting = client.post("/v1/orders", &limit(rain, "BUY", "0.42", "10")).expect(200);
    assert_eq!((text(&resting, "/status"), text(&resting, "/filled_quantity")), ("PENDING", "0"));
    assert_eq!(at(&resting, "/hold_reason"), &Value::Null);
    cases.one();
}
