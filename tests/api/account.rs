//! Balance, positions, portfolio, history, identity (gateway/docs/accounts.md §2, §3; engine/docs/account.md §1–§4).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

#[test]
fn money_adds_up_to_the_last_digit() {
    let cases = Cases::of("balances");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    // Order, then balance, reserved, total value, unrealised; the mark of Yes is 0.415 in all rows.
    let rows = [
        (market(rain, "BUY", "0.42", "50"), "9978.391", "0.00", "9999.141", "-0.859"),
        (limit(rain, "BUY", "0.37", "20"), "9970.991", "7.40", "9999.141", "-0.859"),
        (limit(rain, "SELL", "0.90", "30"), "9970.991", "7.40", "9999.141", "-0.859"),
        (market(rain, "SELL", "0.41", "10"), "9974.97005", "7.40", "9998.97005", "-1.02995"),
        (limit(rain, "BUY", "0.33", "0.0001"), "", "", "", ""),
    ];
    for (order, balance, reserved, total, unrealised) in rows {
        if balance.is_empty() {
            client.post("/v1/orders", &order).refused(400, "INVALID_ORDER_MIN_SIZE");
            continue;
        }
        client.post("/v1/orders", &order).expect(200);
        let shown = client.get("/v1/account/balance").expect(200);
        let expected = json!({
            "balance": balance, "currency": "USD", "reserved": reserved, "total_value": total,
            "unrealized_pnl": unrealised, "starting_balance": "10000.00"
        });
        assert_eq!(shown, expected, "after {order}");
        cases.one();
    }
}

#[test]
fn positions_show_what_is_held() {
    let cases = Cases::of("positions");
    let world = World::start(1);
    let mut client = world.user(0);
    let m = &world.markets;
    let buy_no = changed(&market(&m.rain, "BUY", "0.59", "10"), &json!({"outcome": "No"}));
    for order in [market(&m.rain, "BUY", "0.42", "50"), buy_no, market(&m.vote, "BUY", "0.65", "10")] {
        client.post("/v1/orders", &order).expect(200);
    }
    client.post("/v1/orders", &limit(&m.rain, "SELL", "0.90", "30")).expect(200);
    client.post("/v1/orders", &market(&m.vote, "SELL", "0.6", "10")).expect(200);
    let rows = client.get("/v1/account/positions").expect(200);
    let yes = list(&rows, "").iter().find(|row| text(row, "/token_id") == m.rain.yes()).expect("the Yes position");
    let expected = json!({
        "market_id": m.rain.condition, "outcome": "Yes", "quantity": "50", "avg_entry_price": "0.42",
        "current_price": "0.415", "unrealized_pnl": "-0.25", "market_value": "20.75", "status": "OPEN",
        "market_question": m.rain.question, "reserved_quantity": "30", "realized_pnl": "0.00", "closed_at": null
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(yes, &format!("/{field}")), expected, "{field} of {yes}");
        cases.one();
    }
    // Open positions first, then the newest; holding both outcomes is two rows.
    let shown: Vec<(&str, &str)> =
        list(&rows, "").iter().map(|row| (text(row, "/status"), text(row, "/outcome"))).collect();
    assert_eq!(shown, [("OPEN", "No"), ("OPEN", "Yes"), ("CLOSED", "Yes")]);
    let closed = &list(&rows, "")[2];
    assert_eq!((text(closed, "/quantity"), text(closed, "/realized_pnl")), ("0", "-0.05"));
    assert!(at(closed, "/closed_at").is_string() && at(closed, "/market_value").is_null());
    // Another purchase starts another episode.
    client.post("/v1/orders", &market(&m.vote, "BUY", "0.651", "10")).expect(200);
    let counts = [
        ("", 4),
        ("status=OPEN", 3),
        ("status=open", 3),
        ("status=CLOSED", 1),
        ("wallet_id=api", 4),
        ("wallet_id=all", 4),
        ("market_id=0xunknown", 0),
    ];
    for (query, count) in counts {
        let rows = client.get(&format!("/v1/account/positions?{query}")).expect(200);
        assert_eq!(list(&rows, "").len(), count, "{query}");
        cases.one();
    }
    let of_vote = client.get(&format!("/v1/account/positions?market_id={}", m.vote.condition)).expect(200);
    assert_eq!(list(&of_vote, "").len(), 2);
    let page = client.get("/v1/account/positions?envelope=true&status=OPEN").expect(200);
    assert_eq!((int(&page, "/count"), text(&page, "/next_cursor"), list(&page, "/data").len()), (3, "", 3));
    at(&page, "/limit");
    cases.add(3);
}

#[test]
fn wrong_parameters_are_refused() {
    let cases = Cases::of("wrong account parameters");
    let world = World::start(1);
    let rows = [
        ("/v1/account/balance?wallet_id=x", 422, "VALIDATION_FAILED"),
        ("/v1/account/balance?wallet_id=9", 404, "WALLET_NOT_FOUND"),
        ("/v1/account/balance?wallet_id=-1", 404, "WALLET_NOT_FOUND"),
        ("/v1/account/positions?status=HELD", 422, "VALIDATION_FAILED"),
        ("/v1/account/positions?wallet_id=1.5", 422, "VALIDATION_FAILED"),
        ("/v1/account/positions?wallet_id=9", 404, "WALLET_NOT_FOUND"),
        ("/v1/account/positions?envelope=perhaps", 422, "VALIDATION_FAILED"),
        ("/v1/account/portfolio?wallet_id=x", 422, "VALIDATION_FAILED"),
        ("/v1/account/portfolio?wallet_id=9", 404, "WALLET_NOT_FOUND"),
        ("/v1/account/history?side=HOLD", 400, "INVALID_REQUEST"),
        ("/v1/account/history?limit=0", 422, "VALIDATION_FAILED"),
        ("/v1/account/history?limit=201", 422, "VALIDATION_FAILED"),
        ("/v1/account/history?offset=-1", 422, "VALIDATION_FAILED"),
        ("/v1/account/history?envelope=2", 422, "VALIDATION_FAILED"),
        ("/v1/account/history?wallet_id=9", 404, "WALLET_NOT_FOUND"),
    ];
    for (path, status, code) in rows {
        let answer = world.user(0).get(path);
        // A negative number may be reported as not a number.
        if path.ends_with("wallet_id=-1") && answer.status == 422 {
            continue;
        }
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{path}: {}", answer.lossy());
        answer.assert_envelope();
        cases.one();
    }
}

#[test]
fn the_portfolio_is_balance_and_open_positions() {
    let cases = Cases::of("portfolio");
    let world = World::start(1);
    let mut client = world.user(0);
    let m = &world.markets;
    let empty = client.get("/v1/account/portfolio").expect(200);
    assert_eq!(
        (int(&empty, "/total_trades"), at(&empty, "/win_rate"), at(&empty, "/positions")),
        (0, &Value::Null, &json!([]))
    );
    // One loss; the remainder stays open.
    for order in [
        market(&m.rain, "BUY", "0.42", "20"),
        market(&m.rain, "SELL", "0.40", "20"),
        market(&m.coin, "BUY", "0.50", "10"),
    ] {
        client.post("/v1/orders", &order).expect(200);
    }
    let shown = client.get("/v1/account/portfolio").expect(200);
    assert_eq!((int(&shown, "/total_trades"), text(&shown, "/win_rate")), (3, "0.0%"));
    assert_eq!(at(&shown, "/balance"), &client.get("/v1/account/balance").expect(200));
    assert_eq!(at(&shown, "/positions"), &client.get("/v1/account/positions?status=OPEN").expect(200));
    cases.add(3);
}

#[test]
fn history_has_a_row_for_each_fill() {
    let cases = Cases::of("history");
    let world = World::start(1);
    let mut client = world.user(0);
    let m = &world.markets;
    let bought = changed(&market(&m.rain, "BUY", "0.44", "100"), &json!({"client_order_id": "m-1"}));
    let placed = client.post("/v1/orders", &bought).expect(200);
    client.post("/v1/orders", &market(&m.rain, "SELL", "0.41", "50")).expect(200);
    client.post("/v1/orders", &market(&m.vote, "BUY", "0.65", "10")).expect(200);
    client.post("/v1/orders", &limit(&m.rain, "BUY", "0.10", "10")).expect(200);
    let rows = client.get("/v1/account/history").expect(200);
    let oldest = &list(&rows, "")[2];
    let expected = json!({
        "market_id": m.rain.condition, "outcome": "Yes", "side": "BUY", "price": "0.4279", "quantity": "100",
        "notional": "42.79", "fee": "1.22353", "status": "FILLED", "price_source": "book_walk",
        "token_id": m.rain.yes(), "liquidity": "TAKER", "fee_rate_bps": 500, "client_order_id": "m-1"
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(oldest, &format!("/{field}")), expected, "{field}");
        cases.one();
    }
    assert_eq!(int(oldest, "/order_id"), int(&placed, "/order_id"));
    assert!(int(oldest, "/trade_id") > 0 && int(oldest, "/price_age_ms") >= 0);
    assert!(text(oldest, "/filled_at") >= text(oldest, "/created_at"));
    assert!(!at(oldest, "/venue_time").is_null(), "the markets come from a recording");
    let counts = [
        (String::new(), 3),
        ("side=sell".into(), 1),
        ("side=BUY".into(), 2),
        (format!("market_id={}", m.rain.condition), 2),
        ("market_id=0xunknown".into(), 0),
        ("limit=2".into(), 2),
        ("offset=2".into(), 1),
        ("offset=9".into(), 0),
        ("wallet_id=all".into(), 3),
    ];
    for (query, count) in counts {
        let rows = client.get(&format!("/v1/account/history?{query}")).expect(200);
        assert_eq!(list(&rows, "").len(), count, "{query}");
        cases.one();
    }
    let mut offset = String::from("0");
    let mut seen = Vec::new();
    while !offset.is_empty() {
        let page = client.get(&format!("/v1/account/history?envelope=true&limit=1&offset={offset}")).expect(200);
        seen.extend(list(&page, "/data").iter().map(|row| int(row, "/trade_id")));
        offset = text(&page, "/next_cursor").to_string();
    }
    assert_eq!(seen.len(), 3, "every page once: {seen:?}");
    assert!(seen.windows(2).all(|two| two[0] > two[1]), "newest first");
    cases.one();
}

#[test]
fn wallets_are_apart() {
    let cases = Cases::of("wallets");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let order = client.post("/v1/orders", &limit(rain, "BUY", "0.30", "10")).expect(200);
    let api = int(&order, "/wallet_id");
    // The MAIN wallet was opened beside it; its id is another number of the same user.
    let all = client.get("/v1/account/balance?wallet_id=all").expect(200);
    assert_eq!(text(&all, "/starting_balance"), "11000.00", "API and MAIN together");
    let main = (api - 4..api + 5)
        .find(|id| *id != api && client.get(&format!("/v1/account/balance?wallet_id={id}")).status == 200)
        .expect("the MAIN wallet has an id near the API wallet's");
    let shown = client.get(&format!("/v1/account/balance?wallet_id={main}")).expect(200);
    assert_eq!((text(&shown, "/balance"), text(&shown, "/reserved")), ("1000.00", "0.00"));
    let in_main = changed(&limit(rain, "BUY", "0.30", "10"), &json!({"wallet_id": main}));
    let placed = client.post("/v1/orders", &in_main).expect(200);
    assert_eq!((int(&placed, "/wallet_id"), text(&placed, "/account_balance")), (main, "997.00"));
    let counts = [("", 1), ("?wallet_id=all", 2), ("?wallet_id=api", 1), (&format!("?wallet_id={main}"), 1)];
    for (query, count) in counts {
        let page = client.get(&format!("/v1/orders{query}")).expect(200);
        assert_eq!(list(&page, "/orders").len(), count, "{query}");
        cases.one();
    }
    let swept = client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200);
    assert_eq!(at(&swept, "/canceled"), &json!([int(&order, "/order_id").to_string()]), "the API wallet's alone");
    let swept = client.post("/v1/cancel-all?confirm=true&wallet_id=all", &json!({})).expect(200);
    assert_eq!(at(&swept, "/canceled"), &json!([int(&placed, "/order_id").to_string()]));
    cases.add(4);
}

#[test]
fn me_shows_the_caller() {
    let cases = Cases::of("me");
    let world = World::start(1);
    let by_key = world.user(0).get("/v1/me").expect(200);
    assert_eq!(int(&by_key, "/user_id"), world.users[0].id);
    let expected = json!({
        "balance": "10000.00", "currency": "USD", "key_count": 1, "tier": "enterprise",
        "permissions": ["read", "trade"], "auth_user_id": null, "email": null
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(&by_key, &format!("/{field}")), expected, "{field}");
        cases.one();
    }
    let mut claims = tests::token::claims("person-1");
    claims["email"] = json!("trader@example.net");
    let token = tests::token::sign(&json!({"alg": "HS256"}), &claims, tests::token::SECRET.as_bytes());
    let by_token = world.server.with_token(&token).get("/v1/me").expect(200);
    let expected = json!({
        "balance": "100.00", "key_count": 0, "tier": "free", "permissions": ["read", "trade"],
        "auth_user_id": "person-1", "email": "trader@example.net"
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(&by_token, &format!("/{field}")), expected, "{field}");
        cases.one();
    }
    let all = world.server.with_token(&token).get("/v1/me?wallet_id=all").expect(200);
    assert_eq!(text(&all, "/balance"), "1100.00");
    cases.one();
}
