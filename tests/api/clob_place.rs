//! Placement in the venue's shapes (gateway/docs/venue-clients.md §5): signed orders of both client generations,
//! batches, flat orders.

use crate::clob_bodies::{flat, fresh, signed, v1, v2};
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{at, list, text};
use tests::token::unix_now;
use tests::world::{World, changed};

/// The answer of a placement: its status and amounts; every field is checked.
#[track_caller]
fn stands(answer: &Value) -> (String, String, String) {
    assert_eq!(at(answer, "/success"), &json!(true), "{answer}");
    assert_eq!((text(answer, "/errorMsg"), at(answer, "/transactionsHashes")), ("", &json!([])), "{answer}");
    let id = text(answer, "/orderID");
    assert!(id.len() == 66 && id.starts_with("0x") && id[2..].bytes().all(|b| b.is_ascii_hexdigit()), "{answer}");
    assert_eq!(answer.as_object().map(|fields| fields.len()), Some(8), "{answer}");
    let word = |path| text(answer, path).to_owned();
    (word("/status"), word("/makingAmount"), word("/takingAmount"))
}

#[test]
fn orders_of_both_generations_fill_and_rest() {
    let cases = Cases::of("signed orders");
    let world = World::start(1);
    let mut client = world.user(0);
    let (rain, vote, treaty, game) =
        (&world.markets.rain, &world.markets.vote, &world.markets.treaty, &world.markets.game);
    // Market, side, orderType, makerAmount, takerAmount → status, makingAmount, takingAmount; in this order.
    let rows = [
        (rain, "BUY", "GTC", "4100000", "10000000", "live", "0", "0"),
        (rain, "BUY", "GTC", "4200000", "10000000", "matched", "4.2", "10"),
        // 60.5 are offered at 0.42, of which 10 are taken: a part fills, the remainder rests.
        (rain, "BUY", "GTC", "42000000", "100000000", "live", "21.21", "50.5"),
        // A budget: the next asks are at 0.44.
        (rain, "BUY", "FOK", "4400000", "10000000", "matched", "4.4", "10"),
        // The clients' encoding of 5 USD at 0.44: shares are rounded down, so the quotient is above the grid.
        (rain, "BUY", "FOK", "5000000", "11363600", "matched", "4.999984", "11.3636"),
        // The cap is better than the book: more shares than requested, for the same money.
        (vote, "BUY", "FOK", "6600000", "10000000", "matched", "6.599970", "10.1538"),
        (vote, "BUY", "FAK", "6510000", "10000000", "matched", "6.509945", "10.0153"),
        (rain, "SELL", "FOK", "5000000", "2050000", "matched", "5", "2.05"),
        (rain, "SELL", "GTC", "5000000", "4500000", "live", "0", "0"),
        (rain, "SELL", "FAK", "5000000", "1000000", "matched", "5", "2.05"),
        // 500 are offered within the cap: FAK takes them and drops the remainder.
        (treaty, "BUY", "FAK", "100000000", "810372771", "matched", "61.7", "500"),
        (game, "BUY", "GTC", "4000000", "10000000", "live", "0", "0"),
    ];
    for (number, (market, side, kind, maker, taker, status, making, taking)) in rows.into_iter().enumerate() {
        let body =
            if number % 2 == 0 { v1(market.yes(), side, maker, taker) } else { v2(market.yes(), side, maker, taker) };
        let answer = client.post("/v1/order", &signed(&body, kind)).expect(200);
        let expected = (status.to_owned(), making.to_owned(), taking.to_owned());
        let got = stands(&answer);
        let decimal = |text: &str| tests::json::micros(text);
        assert_eq!(got.0, expected.0, "row {number}: {answer}");
        assert_eq!((decimal(&got.1), decimal(&got.2)), (decimal(making), decimal(taking)), "row {number}: {answer}");
        assert_eq!(at(&answer, "/tradeIDs"), &json!([]), "no names of trades by default");
        cases.one();
    }
    let orders = client.get("/v1/orders?limit=200").expect(200);
    assert_eq!(list(&orders, "/orders").len(), 12);
}

#[test]
fn trades_are_named_by_setting() {
    let cases = Cases::of("named trades");
    let world = World::start_with(1, |place| {
        place.set("venue", "trade_ids", "\"real\"");
    });
    let mut client = world.user(0);
    let answer = client
        .post("/v1/order", &signed(&v2(world.markets.rain.yes(), "BUY", "4200000", "10000000"), "FOK"))
        .expect(200);
    stands(&answer);
    let trade = text(&answer, "/tradeIDs/0").to_owned();
    let found = client.get(&format!("/v1/data/trades?id={trade}")).expect(200);
    assert_eq!((text(&found, "/data/0/id"), list(&found, "/data").len()), (trade.as_str(), 1));
    cases.add(2);
}

/// gateway/docs/venue-clients.md §5.3: the code, the status, and the sentence that clients match.
#[test]
fn refusals_have_the_venues_words() {
    let cases = Cases::of("sentences");
    let world = World::start(2);
    let mut client = world.user(0);
    let (rain, markets) = (world.markets.rain.clone(), &world.markets);
    let buy = |maker: &str, taker: &str| v1(rain.yes(), "BUY", maker, taker);
    let gtd = |expiration: &str| {
        let mut body = signed(&buy("3700000", "10000000"), "GTD");
        body["order"]["expiration"] = json!(expiration);
        body
    };
    let past = (unix_now() - 1).to_string();
    let in_millis = ((unix_now() + 600) * 1_000).to_string();
    let fok = "order couldn't be fully filled. FOK orders are fully filled or killed.";
    let fak =
        "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.";
    let post_only = |body: &Value, kind: &str| changed(&signed(body, kind), &json!({"postOnly": true}));
    let of = |market: &tests::tape::Market, kind: &str| signed(&v1(market.yes(), "BUY", "4000000", "10000000"), kind);
    let rows = [
        (
            signed(&buy("41000000000", "100000000000"), "GTC"),
            400,
            "INSUFFICIENT_BALANCE",
            "not enough balance / allowance",
        ),
        (
            signed(&v1(rain.yes(), "SELL", "10000000", "4100000"), "GTC"),
            400,
            "INSUFFICIENT_POSITION",
            "not enough balance / allowance",
        ),
        (signed(&buy("420000000", "1000000000"), "FOK"), 400, "FOK_ORDER_NOT_FILLED_ERROR", fok),
        (signed(&buy("4000000", "10000000"), "FOK"), 400, "FOK_ORDER_NOT_FILLED_ERROR", fok),
        (signed(&buy("4000000", "10000000"), "FAK"), 400, "NO_EXECUTABLE_DEPTH", fak),
        (
            post_only(&buy("4200000", "10000000"), "GTC"),
            400,
            "INVALID_POST_ONLY_ORDER",
            "invalid post-only order: order crosses book",
        ),
        (gtd("0"), 400, "INVALID_ORDER_EXPIRATION", "invalid expiration"),
        (gtd(&past), 400, "INVALID_ORDER_EXPIRATION", "invalid expiration"),
        (gtd("soon"), 400, "INVALID_ORDER_EXPIRATION", "invalid expiration"),
        (gtd(&in_millis), 400, "INVALID_ORDER_EXPIRATION", "invalid expiration"),
        (signed(&v1("7", "BUY", "4100000", "10000000"), "GTC"), 404, "MARKET_NOT_FOUND", "market not found"),
        (of(&markets.decided, "GTC"), 400, "MARKET_CLOSED", "the market is not accepting orders"),
        (of(&markets.halted, "FOK"), 400, "MARKET_CLOSED", "the market is not accepting orders"),
        (of(&markets.ended, "GTC"), 400, "MARKET_CLOSED", "the market is not accepting orders"),
        (json!({"order": 1}), 400, "INVALID_ORDER_PAYLOAD", "Invalid order payload"),
        (
            changed(&of(&rain, "GTC"), &json!({"orderType": "GTX"})),
            400,
            "UNSUPPORTED_ORDER_TYPE",
            "This order type is not supported here.",
        ),
    ];
    for (body, status, code, message) in &rows {
        let answer = client.post("/v1/order", body);
        assert_eq!(text(&answer.refused(*status, code), "/message"), *message, "{body}");
        assert_eq!(
            answer.header("X-Svc-Order-Id").is_some(),
            ["FOK_ORDER_NOT_FILLED_ERROR", "NO_EXECUTABLE_DEPTH"].contains(code),
            "{body}"
        );
        cases.one();
    }
    let post_only_type = client.post("/v1/order", &post_only(&buy("4200000", "10000000"), "FOK"));
    post_only_type.refused(400, "INVALID_POST_ONLY_ORDER_TYPE");
    // The two sentences with the order, its figure and the rule.
    for (maker, taker, kind, code, rest) in [
        (
            "4150000",
            "10000000",
            "GTC",
            "INVALID_ORDER_MIN_TICK_SIZE",
            "is invalid. Price (0.415) breaks minimum tick size rule: 0.01",
        ),
        (
            "10000000",
            "10000000",
            "GTC",
            "INVALID_ORDER_MIN_TICK_SIZE",
            "is invalid. Price (1.00) breaks minimum tick size rule: 0.01",
        ),
        ("1230000", "3000000", "GTC", "INVALID_ORDER_MIN_SIZE", "is invalid. Size (3) lower than the minimum: 5"),
        ("1260000", "3000000", "FOK", "INVALID_ORDER_MIN_SIZE", "is invalid. Size (3) lower than the minimum: 5"),
    ] {
        let refused = client.post("/v1/order", &signed(&buy(maker, taker), kind)).refused(400, code);
        let message = text(&refused, "/message");
        let (order, sentence) = message.split_at(73);
        assert!(order.starts_with("order 0x") && order[8..72].bytes().all(|b| b.is_ascii_hexdigit()), "{message}");
        assert_eq!(sentence, rest, "{message}");
        cases.one();
    }
    // None of it had an effect.
    assert_eq!(text(&client.get("/v1/account/balance").expect(200), "/balance"), "10000.00");
}

#[test]
fn a_repeated_order_is_answered_as_the_first_time() {
    let cases = Cases::of("repeated orders");
    let mut world = World::start(2);
    let rain = world.markets.rain.clone();
    let body = signed(&v1(rain.yes(), "BUY", "3700000", "10000000"), "GTC");
    let mut client = world.user(0);
    let first = client.post("/v1/order", &body).expect(200);
    assert_eq!(client.post("/v1/order", &body).expect(200), first);
    cases.one();
    // Orders of other users, and other bodies under the same signature, are other orders.
    let theirs = world.user(1).post("/v1/order", &body).expect(200);
    assert_ne!(text(&theirs, "/orderID"), text(&first, "/orderID"));
    let mut other = body.clone();
    other["order"]["makerAmount"] = json!("3600000");
    let second = client.post("/v1/order", &other).expect(200);
    assert_ne!(text(&second, "/orderID"), text(&first, "/orderID"));
    assert_eq!(client.post("/v1/order", &fresh(&body)).expect(200)["status"], "live");
    cases.add(3);
    // A killed order stays killed.
    let killed = signed(&v1(rain.yes(), "BUY", "3000000", "10000000"), "FOK");
    let id = |answer: &Response| answer.header("X-Svc-Order-Id").map(str::to_owned);
    let (one, two) = (client.post("/v1/order", &killed), client.post("/v1/order", &killed));
    one.refused(400, "FOK_ORDER_NOT_FILLED_ERROR");
    two.refused(400, "FOK_ORDER_NOT_FILLED_ERROR");
    assert!(id(&one).is_some() && id(&one) == id(&two));
    cases.one();
    // An explicit id has precedence, in the body or as a header, and has no time limit.
    let mine = changed(&fresh(&body), &json!({"client_order_id": "mine-1"}));
    let placed = client.post("/v1/order", &mine).expect(200);
    assert_eq!(client.post("/v1/order", &mine).expect(200), placed);
    client.post("/v1/order", &changed(&mine, &json!({"postOnly": true}))).refused(409, "DUPLICATE_CLIENT_ORDER_ID");
    let with_header = |body: &Value| Request::post("/v1/order").json(body).header("Idempotency-Key", "mine-2");
    let body = fresh(&body);
    let placed = client.send(&with_header(&body)).expect(200);
    assert_eq!(client.send(&with_header(&body)).expect(200), placed);
    client.send(&with_header(&fresh(&body))).refused(409, "IDEMPOTENCY_KEY_REUSE");
    client.send(&with_header(&changed(&body, &json!({"client_order_id": "mine-3"})))).refused(422, "VALIDATION_FAILED");
    cases.add(6);
    // Ten minutes later the same signature is a new order; an explicit id is not.
    let signed_only = fresh(&body);
    let first = client.post("/v1/order", &signed_only).expect(200);
    world.crash();
    let mut client = world.user(0);
    assert_eq!(client.post("/v1/order", &signed_only).expect(200), first, "a restart forgets nothing");
    world.place.clock_ahead(601);
    world.crash();
    let mut client = world.user(0);
    let later = client.post("/v1/order", &signed_only).expect(200);
    assert_ne!(text(&later, "/orderID"), text(&first, "/orderID"));
    assert_eq!(client.post("/v1/order", &signed_only).expect(200), later);
    assert_eq!(client.post("/v1/order", &mine).expect(200)["status"], "live");
    cases.add(4);
}

#[test]
fn a_batch_answers_entry_by_entry() {
    let cases = Cases::of("venue batches");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let order = |maker: &str, kind: &str| signed(&v1(rain.yes(), "BUY", maker, "10000000"), kind);
    let bad = |body: Value| (body, "INVALID_ORDER_PAYLOAD", "Invalid order payload");
    let rows = [
        (order("3700000", "GTC"), "", "live"),
        (order("4200000", "FOK"), "", "matched"),
        (
            order("3000000", "FOK"),
            "FOK_ORDER_NOT_FILLED_ERROR",
            "order couldn't be fully filled. FOK orders are fully filled or killed.",
        ),
        (order("3700000", "GTX"), "UNSUPPORTED_ORDER_TYPE", "This order type is not supported here."),
        bad(json!({"order": null})),
        bad(json!([])),
        bad(json!("order")),
        (
            order("3700000", "IOC"),
            "NO_EXECUTABLE_DEPTH",
            "no orders found to match with FAK order. FAK orders are partially filled or killed if no match is found.",
        ),
        (order("3600000", "GTC"), "", "live"),
    ];
    let bodies: Vec<&Value> = rows.iter().map(|(body, ..)| body).collect();
    // A header with one request id identifies no entry of a batch.
    let request = Request::post("/v1/orders").json(&json!(bodies)).header("Idempotency-Key", "k");
    let answer = client.send(&request).expect(200);
    assert_eq!(list(&answer, "").len(), rows.len());
    for (entry, (body, error, message)) in list(&answer, "").iter().zip(&rows) {
        if error.is_empty() {
            assert_eq!(stands(entry).0, *message, "{body}");
        } else {
            let expected = json!({
                "success": false, "errorMsg": message, "orderID": "", "status": "unmatched", "makingAmount": "0",
                "takingAmount": "0", "transactionsHashes": [], "tradeIDs": [], "error": error
            });
            assert_eq!(entry, &expected, "{body}");
        }
        cases.one();
    }
    // The same signed orders again are the same orders.
    let again = client.post("/v1/orders", &json!(bodies)).expect(200);
    assert_eq!(again, answer);
    assert_eq!(list(&client.get("/v1/data/orders").expect(200), "/data").len(), 2);
    cases.add(2);

    let many = |count: usize| json!(vec![json!({"order": null}); count]);
    assert_eq!(list(&client.post("/v1/orders", &many(25)).expect(200), "").len(), 25);
    let over = client.post("/v1/orders", &many(26)).refused(400, "BATCH_LIMIT_EXCEEDED");
    assert!(text(&over, "/message").contains("26") && text(&over, "/message").contains("25"), "{over}");
    client.post("/v1/orders", &json!([])).refused(400, "INVALID_BODY");
    for body in ["7", "\"x\"", "null", "true"] {
        client.send(&Request::post("/v1/orders").text("application/json", body)).refused(400, "INVALID_BODY");
        cases.one();
    }
    // An object on that path is a native order.
    client.post("/v1/orders", &order("3700000", "GTC")).refused(422, "VALIDATION_FAILED");
    let (mut free, _) = world.newcomer("batcher");
    assert_eq!(list(&free.post("/v1/orders", &json!([order("3700000", "GTC")])).expect(200), "").len(), 1);
    free.post("/v1/orders", &many(2)).refused(400, "BATCH_LIMIT_EXCEEDED");
    cases.add(6);
}

/// gateway/docs/wire.md §8: the free tier's daily cap counts entries, and a replay is free.
#[test]
fn the_daily_cap_is_counted_per_entry() {
    let cases = Cases::of("daily cap");
    let world = World::start_with(0, |_| {});
    let (mut client, _) = world.newcomer("capped");
    let rain = &world.markets.rain;
    let order = || fresh(&signed(&v1(rain.yes(), "BUY", "100000", "10000000"), "GTC"));
    let first = order();
    let placed = client.post("/v1/order", &first).expect(200);
    for _ in 1..99 {
        client.post("/v1/order", &order()).expect(200);
    }
    let last = client.post("/v1/orders", &json!([order()])).expect(200);
    stands(&last[0]);
    let refused = client.post("/v1/orders", &json!([order()])).expect(200);
    assert_eq!(text(&refused, "/0/error"), "FREE_TIER_DAILY_LIMIT");
    client.post("/v1/order", &order()).refused(429, "FREE_TIER_DAILY_LIMIT");
    client.post("/v1/order", &json!({})).refused(429, "FREE_TIER_DAILY_LIMIT");
    client.post("/v1/clob/order", &flat(rain.yes(), "BUY", "0.01", "10")).refused(429, "FREE_TIER_DAILY_LIMIT");
    assert_eq!(client.post("/v1/order", &first).expect(200), placed, "a replay is free");
    cases.add(6);
}

#[test]
fn flat_orders_are_plain_decimals() {
    let cases = Cases::of("flat orders");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let base = flat(rain.yes(), "BUY", "0.37", "10");
    // Changes → status, price, size, making, taking.
    let rows = [
        (json!({}), "live", "0.37", "10", "0", "0"),
        (json!({"side": "buy", "order_type": "gtc"}), "live", "0.37", "10", "0", "0"),
        (json!({"size": null, "quantity": "7.5"}), "live", "0.37", "7.5", "0", "0"),
        (json!({"size": 7.25, "price": 0.37}), "live", "0.37", "7.25", "0", "0"),
        (json!({"price": "0.42"}), "matched", "0.42", "10", "4.2", "10"),
        (json!({"price": "0.43", "order_type": "FOK"}), "matched", "0.43", "10", "4.2", "10"),
        (json!({"price": "0.42", "size": "100", "order_type": "FAK"}), "matched", "0.42", "100", "17.01", "40.5"),
        (json!({"order_type": "GTD", "expiration": unix_now() + 60}), "live", "0.37", "10", "0", "0"),
        (json!({"order_type": "GTD", "expiration": (unix_now() + 60).to_string()}), "live", "0.37", "10", "0", "0"),
        (json!({"post_only": true}), "live", "0.37", "10", "0", "0"),
        (json!({"fee_rate_bps": "x", "nonce": [], "taker": 7}), "live", "0.37", "10", "0", "0"),
    ];
    for (change, status, price, size, making, taking) in &rows {
        let answer = client.post("/v1/clob/order", &changed(&base, change)).expect(200);
        let id = text(&answer, "/orderID").to_owned();
        let expected = json!({
            "success": true, "orderID": id, "status": status, "price": price, "size": size, "side": "BUY",
            "transactID": "", "errorMsg": "", "makingAmount": making, "takingAmount": taking
        });
        assert_eq!(answer, expected, "{change}");
        assert_eq!(text(&client.get(&format!("/v1/data/order/{id}")).expect(200), "/id"), id);
        cases.one();
    }
    let refusals = [
        (json!({"order_type": "IOC"}), 400, "UNSUPPORTED_ORDER_TYPE"),
        (json!({"order_type": "market"}), 400, "UNSUPPORTED_ORDER_TYPE"),
        (json!({"order_type": 7}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"price": null}), 400, "PRICE_REQUIRED"),
        (json!({"price": "0"}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"price": "1.01"}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"price": "0.375"}), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        (json!({"size": null}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"size": "0"}), 400, "INVALID_QUANTITY"),
        (json!({"size": "-1"}), 400, "INVALID_QUANTITY"),
        (json!({"size": "4"}), 400, "INVALID_ORDER_MIN_SIZE"),
        (json!({"size": "1000000.0001"}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"side": "HOLD"}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"side": null}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"token_id": null}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"token_id": 7}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"token_id": "7"}), 404, "MARKET_NOT_FOUND"),
        (json!({"post_only": "yes"}), 400, "INVALID_ORDER_PAYLOAD"),
        (json!({"post_only": true, "order_type": "FOK"}), 400, "INVALID_POST_ONLY_ORDER_TYPE"),
        (json!({"order_type": "GTD"}), 400, "INVALID_ORDER_EXPIRATION"),
        (json!({"order_type": "GTD", "expiration": 1}), 400, "INVALID_ORDER_EXPIRATION"),
        (json!({"client_order_id": 7}), 422, "VALIDATION_FAILED"),
    ];
    for (change, status, code) in &refusals {
        client.post("/v1/clob/order", &changed(&base, change)).refused(*status, code);
        cases.one();
    }
    let mine = changed(&base, &json!({"client_order_id": "flat-1"}));
    let placed = client.post("/v1/clob/order", &mine).expect(200);
    assert_eq!(client.post("/v1/clob/order", &mine).expect(200), placed);
    let answer = client.post("/v1/clob/order", &changed(&base, &json!({"price": "0.375"})));
    assert!(
        text(&answer.json(), "/message").contains("Price (0.375) breaks minimum tick size rule: 0.01"),
        "{}",
        answer.lossy()
    );
    cases.add(3);
}

/// Venue clients are strict about their answers: the same checks apply to every route of a placement.
#[test]
fn every_door_needs_a_key_that_may_trade() {
    let cases = Cases::of("doors");
    let world = World::start(1);
    let body = signed(&v1(world.markets.rain.yes(), "BUY", "3700000", "10000000"), "GTC");
    let made = world.user(0).post("/v1/keys", &json!({"name": "reader", "permissions": ["read"]})).expect(201);
    let mut reader = world.server.with_key(text(&made, "/raw_key"));
    for path in ["/v1/order", "/order", "/v1/v1/order", "/v1/orders", "/orders", "/v1/clob/order", "/clob/order"] {
        world.public().post(path, &body).refused(401, "MISSING_API_KEY");
        reader.post(path, &body).refused(403, "INSUFFICIENT_PERMISSION");
        let key = world.users[0].key.as_str();
        let mut client = world.public().with_header("POLY_API_KEY", key).with_header("POLY_ADDRESS", "0xA1");
        let placed = match path.rsplit_once('/') {
            Some((_, "orders")) => client.post(path, &json!([fresh(&body)])).expect(200)[0].clone(),
            Some((clob, _)) if clob.ends_with("clob") => {
                client.post(path, &flat(world.markets.rain.yes(), "BUY", "0.37", "10")).expect(200)
            }
            _ => client.post(path, &fresh(&body)).expect(200),
        };
        assert_eq!((at(&placed, "/success"), text(&placed, "/status")), (&json!(true), "live"), "{path}");
        cases.add(3);
    }
}

/// The row of an order that a client sees under this id.
fn shown(client: &mut tests::http::Client, id: &str) -> Value {
    client.get(&format!("/v1/data/order/{id}")).expect(200)
}

#[test]
fn signed_orders_have_their_hash_as_id_in_the_strict_dialect() {
    let cases = Cases::of("ids of signed orders");
    let mut world = World::start(2);
    let strict = |world: &World, user: usize| world.public().with_header("POLY_API_KEY", &world.users[user].key);
    let body = signed(&v1(world.markets.rain.yes(), "BUY", "100000", "10000000"), "GTC");
    let hash = text(&strict(&world, 0).post("/v1/order", &body).expect(200), "/orderID").to_owned();
    // Repeated within ten minutes it is the same order; of another user it is another one with the same hash.
    assert_eq!(text(&strict(&world, 0).post("/v1/order", &body).expect(200), "/orderID"), hash);
    assert_eq!(text(&strict(&world, 1).post("/v1/order", &body).expect(200), "/orderID"), hash);
    let ours = text(&shown(&mut world.user(0), &hash), "/id").to_owned();
    assert!(ours != hash && ours.len() == 66, "{ours}");
    let decimal = u64::from_str_radix(&ours[50..], 16).expect("hex").to_string();
    // An order that cannot be hashed, and one whose hash its user already has, get a native id.
    let mut unhashed = fresh(&body);
    unhashed["order"]["maker"] = json!("0xA1");
    let mut named = body.clone();
    named["client_order_id"] = json!("the second of this hash");
    for body in [&unhashed, &named] {
        let other = text(&strict(&world, 0).post("/v1/order", body).expect(200), "/orderID").to_owned();
        assert!(other != hash && other[..50] == ours[..50], "{other}");
        assert_eq!(text(&shown(&mut world.user(0), &other), "/id"), other);
        cases.one();
    }
    for restarts in [false, true] {
        if restarts {
            world.server.kill();
            world.server = world.place.start();
        }
        for id in [&hash, &ours, &decimal, &hash.to_uppercase().replacen("0X", "0x", 1)] {
            assert_eq!(text(&shown(&mut strict(&world, 0), id), "/id"), hash, "{id}");
            assert_eq!(text(&shown(&mut world.user(0), id), "/id"), ours, "{id}");
            for client in [&mut strict(&world, 0), &mut world.user(0)] {
                let native = client.get(&format!("/v1/orders/{id}")).expect(200);
                assert_eq!(at(&native, "/order_id").to_string(), decimal, "{id}");
                let listed = client.get(&format!("/v1/data/orders?id={id}")).expect(200);
                assert_eq!(list(&listed, "/data").len(), 1, "{id}");
            }
            cases.add(4);
        }
        world.user(1).get(&format!("/v1/data/order/{ours}")).refused(404, "ORDER_NOT_FOUND");
        let theirs = shown(&mut world.user(1), &hash);
        assert!(text(&theirs, "/id") != ours, "each user has its own order of that hash: {theirs}");
        cases.add(2);
    }
    // Cancels echo the form that was sent; sweeps use the form of their dialect.
    let cancel = |client: &mut tests::http::Client, id: &str| {
        client.send(&Request::new("DELETE", "/v1/order").json(&json!({"orderID": id}))).expect(200)
    };
    assert_eq!(cancel(&mut world.user(0), &hash), json!({"canceled": [hash], "not_canceled": {}}));
    assert_eq!(
        cancel(&mut world.user(1), "0x00"),
        json!({"canceled": [], "not_canceled": {"0x00": "ORDER_NOT_FOUND"}})
    );
    let swept = strict(&world, 1).send(&Request::new("DELETE", "/v1/cancel-all")).expect(200);
    assert_eq!(swept, json!({"canceled": [hash], "not_canceled": {}}));
    cases.add(3);
    // In the plain dialect an order is never hashed, not even for later reads in the strict one.
    let plain = text(&world.user(0).post("/v1/order", &fresh(&body)).expect(200), "/orderID").to_owned();
    assert_eq!(text(&shown(&mut strict(&world, 0), &plain), "/id"), plain);
    cases.one();
}
