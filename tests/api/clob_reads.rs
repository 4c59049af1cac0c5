//! The venue's reads (gateway/docs/venue-clients.md §0–§2, §4, §8): batch prices, markets in the venue's shape,
//! parameters, and the reads around trading; under `/v1`, at the root, and with a doubled prefix.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Request, Response};
use tests::json::{at, list, text};
use tests::tape::Market;
use tests::world::World;

const UNKNOWN_TOKEN: &str = "123456789";

fn send(client: &mut Client, method: &str, path: &str, body: Option<&Value>) -> Response {
    let request = Request::new(method, path);
    client.send(&match body {
        Some(body) => request.json(body),
        None => request,
    })
}

fn refs(tokens: &[&str]) -> Value {
    tokens.iter().map(|token| json!({"token_id": token})).collect()
}

#[test]
fn prices_of_many_tokens_come_at_once() {
    let cases = Cases::of("batch prices");
    let world = World::start(0);
    let m = &world.markets;
    let (rain, no, bids, silent, decided) =
        (m.rain.yes(), m.rain.no(), m.bidsonly.yes(), m.silent.yes(), m.decided.yes());
    let all = [rain, no, bids, silent, decided, UNKNOWN_TOKEN, rain];
    let csv = all.join(",");
    let mids = json!({rain: "0.415", no: "0.585"});
    let spreads = json!({rain: "0.01", no: "0.01"});
    let trades = json!([{"token_id": rain, "price": "0.42", "side": "BUY"}]);
    let both =
        json!({rain: {"BUY": "0.41", "SELL": "0.42"}, no: {"BUY": "0.58", "SELL": "0.59"}, bids: {"BUY": "0.20"}});
    let sided = json!([{"token_id": rain, "side": "buy"}, {"token_id": no, "side": "SELL"}, {"token_id": bids, "side": "SELL"}]);
    let some = json!({rain: {"BUY": "0.41"}, no: {"SELL": "0.59"}});
    let rows = json!([
        {"token_id": rain, "price": "0.415", "bid": "0.41", "ask": "0.42"},
        {"token_id": bids, "price": null, "bid": "0.20", "ask": null}
    ]);
    let once =
        json!([{"token_id": rain, "price": "0.42", "side": "BUY"}, {"token_id": rain, "price": "0.42", "side": "BUY"}]);
    let table: Vec<(&str, String, Option<Value>, &Value)> = vec![
        ("GET", format!("/midpoints?token_ids={csv}"), None, &mids),
        ("POST", "/midpoints".into(), Some(refs(&all)), &mids),
        ("POST", "/midpoints".into(), Some(json!({"items": refs(&all)})), &mids),
        ("GET", format!("/spreads?token_ids={csv}"), None, &spreads),
        ("POST", "/spreads".into(), Some(refs(&all)), &spreads),
        ("GET", format!("/last-trades-prices?token_ids={csv}"), None, &once),
        ("GET", "/last-trades-prices".into(), Some(refs(&[rain, silent])), &trades),
        ("POST", "/last-trades-prices".into(), Some(refs(&[rain, no, silent, UNKNOWN_TOKEN])), &trades),
        ("GET", format!("/prices?token_ids={csv}"), None, &both),
        ("GET", format!("/prices?token_ids={rain},{no}&sides=BUY,sell"), None, &some),
        ("POST", "/prices".into(), Some(sided), &some),
        ("POST", "/prices".into(), Some(json!({"token_ids": [rain, bids, silent]})), &rows),
    ];
    for (method, path, body, expected) in &table {
        for prefix in ["/v1", "", "/v1/v1"] {
            let answer = send(&mut world.public(), method, &format!("{prefix}{path}"), body.as_ref());
            assert_eq!(&answer.expect(200), *expected, "{method} {prefix}{path}");
            cases.one();
        }
    }
    // Without parameters: every token with a book, and no resolved one.
    let every = world.public().get("/v1/prices").expect(200);
    let every = every.as_object().expect("a map");
    assert_eq!(every[rain], json!({"BUY": "0.41", "SELL": "0.42"}));
    assert_eq!(every[bids], json!({"BUY": "0.20"}));
    assert!(!every.contains_key(silent) && !every.contains_key(decided), "{every:?}");
    assert!(every.len() >= 10);
}

#[test]
fn batches_have_bounds_and_the_venues_words() {
    let cases = Cases::of("batch bounds");
    let world = World::start(0);
    let many = |count: usize| json!(vec![json!({"token_id": "1", "side": "BUY"}); count]);
    let csv = |count: usize| vec!["1"; count].join(",");
    for path in ["/v1/midpoints", "/v1/spreads", "/v1/last-trades-prices", "/v1/prices", "/v1/books"] {
        send(&mut world.public(), "POST", path, Some(&many(500))).expect(200);
        for (body, code, message) in [
            (many(501), "INVALID_BODY", "Payload exceeds the limit"),
            (json!([]), "INVALID_BODY", "The body is not a list of token ids."),
            (json!({}), "INVALID_BODY", "The body is not a list of token ids."),
            (json!("1"), "INVALID_BODY", "The body is not a list of token ids."),
            (json!([{"token_id": "0x1", "side": "BUY"}]), "INVALID_TOKEN_ID", "Invalid token id"),
            (json!([{"token_id": 1, "side": "BUY"}]), "INVALID_TOKEN_ID", "Invalid token id"),
            (json!([{"side": "BUY"}]), "INVALID_TOKEN_ID", "Invalid token id"),
            (json!([{"token_id": "9".repeat(81), "side": "BUY"}]), "INVALID_TOKEN_ID", "Invalid token id"),
            (json!([null]), "INVALID_TOKEN_ID", "Invalid token id"),
        ] {
            let refused = send(&mut world.public(), "POST", path, Some(&body)).refused(400, code);
            assert_eq!(text(&refused, "/message"), message, "{path}");
            cases.one();
        }
        world.public().send(&Request::post(path)).refused(400, "INVALID_BODY");
        world.public().send(&Request::post(path).text("application/json", "[{")).refused(400, "INVALID_BODY");
        world.public().send(&Request::post(path).text("text/plain", "[]")).refused(415, "HTTP_415");
        cases.add(3);
    }
    for path in ["/v1/midpoints", "/v1/spreads", "/v1/last-trades-prices", "/v1/prices"] {
        world.public().get(&format!("{path}?token_ids={}", csv(500))).expect(200);
        world.public().get(&format!("{path}?token_ids={}", csv(501))).refused(400, "INVALID_BODY");
        for wrong in ["", "x", "1,", "0x1", "-1"] {
            world.public().get(&format!("{path}?token_ids={wrong}")).refused(400, "INVALID_TOKEN_ID");
            cases.one();
        }
        if path != "/v1/prices" {
            world.public().get(path).refused(400, "INVALID_TOKEN_ID");
        }
    }
    for (method, path, body) in [
        ("GET", "/v1/prices?token_ids=1,2&sides=BUY", None),
        ("GET", "/v1/prices?token_ids=1&sides=x", None),
        ("POST", "/v1/prices", Some(json!([{"token_id": "1"}]))),
        ("POST", "/v1/prices", Some(json!([{"token_id": "1", "side": "x"}]))),
        ("GET", "/v1/price?token_id=1", None),
    ] {
        let refused = send(&mut world.public(), method, path, body.as_ref()).refused(400, "INVALID_REQUEST");
        assert_eq!(text(&refused, "/message"), "Invalid side");
        cases.one();
    }
}

fn shown_slugs(page: &Value) -> Vec<&str> {
    list(page, "/data").iter().map(|row| text(row, "/market_slug")).collect()
}

#[test]
fn markets_come_in_the_venues_shape_for_its_clients() {
    let cases = Cases::of("venue markets");
    let world = World::start(1);
    let m = &world.markets;
    let strict = || world.public().with_header("User-Agent", "py_clob_client");
    // Requests that get the venue's page, without a key.
    for path in ["/v1/markets", "/markets", "/v1/markets?next_cursor=MA==", "/v1/markets?envelope=true"] {
        let page = strict().get(path).expect(200);
        assert_eq!((at(&page, "/limit"), at(&page, "/count")), (&json!(1000), &json!(10)), "{path}");
        assert_eq!((text(&page, "/next_cursor"), list(&page, "/data").len()), ("LTE=", 10));
        cases.one();
    }
    for path in ["/v1/markets?next_cursor=MA==", "/v1/markets?next_cursor=", "/markets?dialect=strict"] {
        assert_eq!(list(&world.public().get(path).expect(200), "/data").len(), 10, "{path}");
        cases.one();
    }
    for path in ["/v1/markets", "/v1/markets?envelope=true&next_cursor=MA==", "/v1/markets?cursor=MA=="] {
        world.public().get(path).refused(401, "MISSING_API_KEY");
        strict()
            .get(&format!("{path}{}dialect=plain", if path.contains('?') { "&" } else { "?" }))
            .refused(401, "MISSING_API_KEY");
        cases.add(2);
    }
    assert!(world.user(0).get("/v1/markets").expect(200).is_array(), "the native list");
    for (cursor, code) in [("x", "INVALID_CURSOR"), ("LTE", "INVALID_CURSOR"), ("-1", "INVALID_CURSOR")] {
        for path in ["/v1/markets", "/v1/simplified-markets", "/v1/sampling-markets"] {
            world.public().get(&format!("{path}?next_cursor={cursor}")).refused(400, code);
            cases.one();
        }
    }
    for (cursor, rows) in [("LTE=", 0), ("MA%3D%3D", 10), ("NA==", 6), ("4", 6), ("OTk5", 0)] {
        for path in ["/v1/markets", "/v1/simplified-markets"] {
            let page = world.public().get(&format!("{path}?next_cursor={cursor}")).expect(200);
            assert_eq!((list(&page, "/data").len(), text(&page, "/next_cursor")), (rows, "LTE="), "{path} {cursor}");
            cases.one();
        }
    }
    // One market, and its two shapes.
    let path = format!("/v1/markets/{}", m.rain.condition);
    let one = strict().get(&path).expect(200);
    for (field, expected) in [
        ("condition_id", json!(m.rain.condition)),
        ("question_id", json!(m.rain.condition)),
        ("market_slug", json!("rain")),
        ("active", json!(true)),
        ("closed", json!(false)),
        ("archived", json!(false)),
        ("accepting_orders", json!(true)),
        ("enable_order_book", json!(true)),
        ("minimum_tick_size", json!(0.01)),
        ("taker_base_fee", json!(1000)),
        ("maker_base_fee", json!(0)),
        ("neg_risk", json!(false)),
        ("fpmm", json!("")),
        ("rewards", json!({"rates": null, "min_size": 0, "max_spread": 0})),
    ] {
        assert_eq!(one[field], expected, "{field}");
        cases.one();
    }
    assert_eq!(one["tokens"][0], json!({"token_id": m.rain.yes(), "outcome": "Yes", "price": 0.415, "winner": false}));
    for field in ["question", "description", "icon", "image", "neg_risk_market_id", "neg_risk_request_id"] {
        assert!(one[field].is_string(), "{field}: {one}");
    }
    // Public to every client of the venue, which its headers identify.
    for agent in
        ["py_clob_client", "py_clob_client_v2", "rs_clob_client", "@polymarket/clob-client", "NautilusTrader/1"]
    {
        for path in [&path, &path[3..]] {
            assert_eq!(world.public().with_header("User-Agent", agent).get(path).expect(200), one, "{agent}");
            cases.one();
        }
    }
    world.public().get(&path).refused(401, "MISSING_API_KEY");
    world.public().get(&format!("{path}?next_cursor=MA==")).refused(401, "MISSING_API_KEY");
    let native = world.user(0).get(&path).expect(200);
    for field in one.as_object().expect("an object").keys() {
        assert!(native.get(field).is_some(), "the native detail has the venue's field {field} too");
        cases.one();
    }
    let decided = strict().get(&format!("/markets/{}", m.decided.condition)).expect(200);
    assert_eq!((&decided["closed"], &decided["tokens"][0]["winner"]), (&json!(true), &json!(true)));
    for unknown in ["0x00", "x", &format!("0x{}", "0".repeat(64))] {
        let refused = strict().get(&format!("/v1/markets/{unknown}")).refused(404, "MARKET_NOT_FOUND");
        assert_eq!(text(&refused, "/message"), "market not found");
        cases.one();
    }
}

#[test]
fn sampled_and_simplified_lists_choose_their_rows() {
    let cases = Cases::of("sampled lists");
    let world = World::start(0);
    let sampled = world.public().get("/v1/sampling-markets").expect(200);
    let mut slugs = shown_slugs(&sampled);
    slugs.sort_unstable();
    // Active, and with bids and asks; not one-sided, unquoted, resolved or halted.
    for (slug, expected) in
        [("rain", true), ("coin", true), ("bidsonly", false), ("silent", false), ("decided", false), ("halted", false)]
    {
        assert_eq!(slugs.contains(&slug), expected, "{slug} in {slugs:?}");
        cases.one();
    }
    let simple = world.public().get("/sampling-simplified-markets").expect(200);
    assert_eq!(at(&simple, "/count"), at(&sampled, "/count"));
    let every = world.public().get("/v1/simplified-markets").expect(200);
    assert_eq!(list(&every, "/data").len(), 10);
    // `cursor` is the other name of `next_cursor`, which overrides (gateway/docs/wire.md §9).
    for (query, rows) in [("cursor=LTE=", 0), ("cursor=MTAwMDA=", 0), ("next_cursor=MA==&cursor=LTE=", 10)] {
        let page = world.public().get(&format!("/v1/simplified-markets?{query}")).expect(200);
        assert_eq!(list(&page, "/data").len(), rows, "{query}");
        cases.one();
    }
    world.public().get("/v1/simplified-markets?cursor=%25").refused(400, "INVALID_CURSOR");
    for row in list(&every, "/data") {
        let mut fields: Vec<_> = row.as_object().expect("a row").keys().map(String::as_str).collect();
        fields.sort_unstable();
        let expected = ["accepting_orders", "active", "archived", "closed", "condition_id", "rewards", "tokens"];
        assert_eq!(fields, expected);
        assert!(row["tokens"].as_array().is_some_and(|tokens| tokens.iter().all(|token| token["price"].is_number())));
        cases.one();
    }
}

/// Three pages of a thousand rows; each market once, although volumes change.
#[test]
fn pages_of_a_thousand_follow_one_another() {
    let cases = Cases::of("pages");
    let mut world = World::start(0);
    let more: Vec<Market> =
        (100..2_200).map(|number| Market::new(number, &format!("m{number}"), "culture", 0.01)).collect();
    world.tape.list(&more.iter().collect::<Vec<_>>());
    eventually("the last market", || {
        let answer = world.public().get(&format!("/v1/clob-markets/{}", more[2_099].condition));
        (answer.status == 200).then_some(())
    });
    for path in ["/v1/simplified-markets", "/markets"] {
        let (mut cursor, mut seen, mut pages) = ("MA==".to_owned(), Vec::new(), 0);
        while cursor != "LTE=" {
            let page = world.public().get(&format!("{path}?next_cursor={cursor}")).expect(200);
            seen.extend(list(&page, "/data").iter().map(|row| text(row, "/condition_id").to_owned()));
            cursor = text(&page, "/next_cursor").to_owned();
            pages += 1;
            cases.one();
        }
        assert_eq!((pages, seen.len()), (3, 2_110), "{path}");
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 2_110, "no row twice");
    }
}

#[test]
fn parameters_for_signing_are_public() {
    let cases = Cases::of("parameters");
    let world = World::start(0);
    let m = &world.markets;
    for (market, tick, bps, neg_risk) in [
        (&m.rain, "0.01", 500, false),
        (&m.vote, "0.001", 400, false),
        (&m.coin, "0.01", 700, true),
        (&m.treaty, "0.0001", 0, false),
        (&m.game, "0.1", 300, false),
    ] {
        let base = if bps == 0 { 0 } else { 1_000 };
        for (path, expected) in [
            ("tick-size", format!(r#"{{"minimum_tick_size":{tick}}}"#)),
            ("neg-risk", format!(r#"{{"neg_risk":{neg_risk}}}"#)),
            ("fee-rate", format!(r#"{{"base_fee":{base},"fee_rate_bps":{bps}}}"#)),
        ] {
            for form in [format!("/v1/{path}?token_id={}", market.yes()), format!("/{path}/{}", market.no())] {
                let answer = world.public().get(&form);
                assert_eq!((answer.status, answer.text()), (200, expected.as_str()), "{form}");
                cases.one();
            }
        }
        let short = world.public().get(&format!("/clob-markets/{}", market.condition)).expect(200);
        assert_eq!(short["c"], json!(market.condition));
        assert_eq!(short["t"], json!([{"t": market.yes(), "o": "Yes"}, {"t": market.no(), "o": "No"}]));
        assert_eq!(
            (short["mts"].to_string(), &short["nr"], &short["tbf"]),
            (tick.to_owned(), &json!(neg_risk), &json!(base))
        );
        let rate = json!({"r": f64::from(bps) / 10_000.0, "e": 1, "to": true});
        assert_eq!(short.get("fd"), (bps > 0).then_some(&rate), "{short}");
        assert_eq!((&short["mbf"], &short["ao"]), (&json!(0), &json!(true)));
        assert!(short["mos"].is_number());
        assert_eq!(short["r"], json!({}));
        let of_token = world.public().get(&format!("/v1/markets-by-token/{}", market.no())).expect(200);
        assert_eq!((text(&of_token, "/condition_id"), text(&of_token, "/outcome")), (market.condition.as_str(), "No"));
        cases.add(2);
    }
    let halted = world.public().get(&format!("/v1/clob-markets/{}", m.halted.condition)).expect(200);
    assert_eq!(halted["ao"], json!(false));
    for (path, code, message) in [
        ("/v1/clob-markets/0x1", "MARKET_NOT_FOUND", "market not found"),
        ("/v1/fee-rate?token_id=5", "MARKET_NOT_FOUND", "fee rate not found for market"),
        ("/neg-risk/5", "MARKET_NOT_FOUND", "market not found"),
        ("/v1/v1/tick-size/x", "MARKET_NOT_FOUND", "market not found"),
        ("/markets-by-token/5", "TOKEN_NOT_FOUND", "No such token."),
    ] {
        assert_eq!(text(&world.public().get(path).refused(404, code), "/message"), message, "{path}");
        cases.one();
    }
}

#[test]
fn housekeeping_is_answered_in_shape() {
    let cases = Cases::of("housekeeping");
    let world = World::start_with(1, |place| _ = place.set("venue", "sentinel_allowance", "77"));
    let empty = json!({"limit": 100, "count": 0, "next_cursor": "LTE=", "data": []});
    let blocked = json!({"blocked": false, "ip": "", "country": "", "region": ""});
    let no_contract = "0x0000000000000000000000000000000000000001";
    let units = json!({"balance": "77", "allowance": "77", "collateral": "77", "conditional": "77", "allowances": {no_contract: "77"}});
    let fees = json!({"builder_maker_fee_rate_bps": 0, "builder_taker_fee_rate_bps": 0});
    // (method, path after the prefix, answer, needs a key)
    let table = [
        ("GET", "/", json!("OK"), false),
        ("GET", "/ok", json!("OK"), false),
        ("GET", "/version", json!({"version": 2}), false),
        ("GET", "/geoblock", blocked.clone(), false),
        ("GET", "/live-activity/events/0x1", json!([]), false),
        ("GET", "/markets/live-activity/0x1", json!([]), false),
        ("GET", "/balance-allowance", units.clone(), true),
        ("GET", "/balance-allowance?asset_type=COLLATERAL&signature_type=-1&token_id=x", units.clone(), true),
        ("GET", "/balance-allowance/update?asset_type=nothing", units, true),
        ("GET", "/notifications?signature_type=0", json!([]), true),
        ("DELETE", "/notifications?ids=1,2", json!("OK"), true),
        ("GET", "/order-scoring?order_id=0x51", json!({"scoring": false}), true),
        ("GET", "/orders-scoring?order_ids=0x51,7,0x51", json!({"0x51": false, "7": false}), true),
        ("GET", "/orders-scoring", json!({}), true),
        ("GET", "/rewards/user?date=2026-11-21", empty.clone(), true),
        ("GET", "/rewards/user/total", json!([]), true),
        ("GET", "/rewards/user/percentages", json!({}), true),
        ("GET", "/rewards/user/markets", empty.clone(), true),
        ("GET", "/rewards/markets/current", empty.clone(), false),
        ("GET", "/rewards/markets/0x1", empty.clone(), false),
        ("GET", "/rebates/current", json!([]), false),
        ("GET", "/builder/trades?next_cursor=MA==", empty.clone(), false),
        ("GET", "/data/pre-migration-orders?next_cursor=MA==", empty.clone(), true),
        ("GET", "/fees/builder-fees/abc", fees, false),
        ("GET", "/rfq/data/requests", empty.clone(), true),
        ("GET", "/rfq/data/quotes", empty.clone(), true),
        ("GET", "/rfq/data/requester/quotes", empty.clone(), true),
        ("GET", "/rfq/data/quoter/quotes", empty.clone(), true),
        ("GET", "/rfq/data/best-quote", empty, true),
    ];
    for (method, path, expected, keyed) in &table {
        for prefix in ["/v1", "", "/v1/v1"] {
            let path = format!("{prefix}{path}");
            // A client's GET has a content type and no body; a DELETE may have one.
            let request = Request::new(method, &path).header("Content-Type", "application/json");
            assert_eq!(&world.user(0).send(&request).expect(200), expected, "{method} {path}");
            let bare = world.public().send(&request);
            match keyed {
                true => _ = bare.refused(401, "MISSING_API_KEY"),
                false => assert_eq!(&bare.expect(200), expected, "{method} {path}"),
            }
            cases.one();
        }
    }
    assert_eq!(world.public().get("/api/geoblock").expect(200), blocked);
    let body = json!(["0x51", 7, "0x51", "a\"b"]);
    let scored = world.user(0).post("/v1/orders-scoring", &body).expect(200);
    assert_eq!(scored, json!({"0x51": false, "7": false, "a\"b": false}));
    for body in [json!({}), json!([{}]), json!([null]), json!(vec!["1"; 501])] {
        world.user(0).post("/orders-scoring", &body).refused(400, "INVALID_BODY");
        cases.one();
    }
    world
        .user(0)
        .get(&format!("/orders-scoring?order_ids={}", vec!["1"; 501].join(",")))
        .refused(400, "INVALID_REQUEST");
    for (method, path) in [
        ("GET", "/v1/rfq/config"),
        ("POST", "/v1/rfq/request"),
        ("DELETE", "/rfq/request"),
        ("POST", "/rfq/quote"),
        ("DELETE", "/v1/rfq/quote"),
        ("POST", "/v1/rfq/request/accept"),
        ("POST", "/rfq/quote/approve"),
    ] {
        let request = Request::new(method, path).json(&json!({"any": "thing"}));
        let refused = world.user(0).send(&request).refused(400, "INVALID_REQUEST");
        assert_eq!(text(&refused, "/message"), "rfq is not supported");
        world.public().send(&request).refused(401, "MISSING_API_KEY");
        cases.one();
    }
}

#[test]
fn the_root_is_a_setting() {
    let cases = Cases::of("root mount");
    let world =
        World::start_with(0, |place| _ = place.set("venue", "root_mount", "false").set("venue", "order_version", "1"));
    assert_eq!(world.public().get("/v1/version").expect(200), json!({"version": 1}));
    let book = format!("/book?token_id={}", world.markets.rain.yes());
    for path in ["/", "/ok", "/time", "/markets", "/auth/api-key", "/rewards/markets/0x1", &book] {
        world.public().get(path).refused(404, "NOT_FOUND");
        cases.one();
    }
    for path in ["/v1/", "/v1/ok", "/v1/v1/ok", "/v1/time", &format!("/v1{book}")] {
        world.public().get(path).expect(200);
        cases.one();
    }
    // Paths that the venue does not have are never answered at the root.
    let mounted = World::start(1);
    for path in
        ["/me", "/keys", "/orders/batch", "/health", "/status", "/account/balance", "/openapi.json", "/v1", "/ok/"]
    {
        mounted.user(0).get(path).refused(404, "NOT_FOUND");
        cases.one();
    }
    mounted.user(0).send(&Request::new("PUT", "/book")).refused(405, "HTTP_405");
    assert_eq!(mounted.user(0).send(&Request::new("HEAD", &book)).status, 200);
}

/// `[venue] allowance`: figures of the account for the venue's clients, one fixed amount for all others.
#[test]
fn a_balance_allowance_is_what_the_wallet_has_free() {
    let cases = Cases::of("balance allowances");
    let no_contract = "0x0000000000000000000000000000000000000001";
    for (allowance, plain_is_real, strict_is_real) in
        [(None, false, true), (Some("auto"), false, true), (Some("sentinel"), false, false), (Some("real"), true, true)]
    {
        let world = World::start_with(2, |place| {
            place.set("venue", "sentinel_allowance", "77");
            if let Some(allowance) = allowance {
                place.set("venue", "allowance", &format!("{allowance:?}"));
            }
        });
        let (yes, no) = (world.markets.rain.yes(), world.markets.rain.no());
        let mut client = world.user(0);
        let order = |side: &str, price: &str, quantity: &str| {
            json!({"token_id": yes, "side": side, "order_type": "limit", "price": price, "quantity": quantity,
                "time_in_force": "GTC"})
        };
        // 20 shares at 0.42, of which 5 are for sale; a bid for 10 more at 0.10.
        for (side, price, quantity) in [("BUY", "0.42", "20"), ("SELL", "0.90", "5"), ("BUY", "0.10", "10")] {
            client.post("/v1/orders", &order(side, price, quantity)).expect(200);
        }
        let balance = client.get("/v1/account/balance").expect(200);
        let cash: f64 = text(&balance, "/balance").parse().expect("a figure");
        let cash = format!("{:.0}", cash * 1e6);
        assert!(cash != "10000000000" && cash.len() == 10, "{balance}");
        let shares = "15000000";
        // (query, balance, conditional)
        let rows = [
            ("", cash.as_str(), "0"),
            ("asset_type=COLLATERAL&signature_type=0", cash.as_str(), "0"),
            (&format!("asset_type=CONDITIONAL&token_id={yes}&signature_type=-1"), shares, shares),
            (&format!("asset_type=CONDITIONAL&token_id={no}"), "0", "0"),
            ("asset_type=CONDITIONAL&token_id=5", "0", "0"),
            ("asset_type=CONDITIONAL&token_id=x", "0", "0"),
            ("asset_type=CONDITIONAL", "0", "0"),
            (&format!("token_id={yes}"), cash.as_str(), shares),
        ];
        for (query, free, conditional) in rows {
            for path in ["/v1/balance-allowance", "/v1/balance-allowance/update", "/balance-allowance"] {
                for (dialect, is_real) in [("plain", plain_is_real), ("strict", strict_is_real)] {
                    let answer = client.get(&format!("{path}?{query}&dialect={dialect}")).expect(200);
                    let (free, collateral, conditional) =
                        if is_real { (free, cash.as_str(), conditional) } else { ("77", "77", "77") };
                    let expected = json!({"balance": free, "allowance": free, "collateral": collateral,
                        "conditional": conditional, "allowances": {no_contract: free}});
                    assert_eq!(answer, expected, "{allowance:?} {path} {query} {dialect}");
                    cases.one();
                }
            }
        }
    }
}
