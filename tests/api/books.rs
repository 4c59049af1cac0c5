//! Books, and the small reads by token (gateway/docs/venue-clients.md §1, gateway/docs/market-data.md §8, §9).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{at, int, list, text};
use tests::world::World;

#[test]
fn a_book_is_shown_alike_on_all_four_routes() {
    let cases = Cases::of("books");
    let world = World::start(0);
    let rain = &world.markets.rain;
    let expected = json!({
        "market": rain.condition, "asset_id": rain.yes(), "token_id": rain.yes(),
        // The best level is last on both sides.
        "bids": [{"price": "0.40", "size": "310"}, {"price": "0.41", "size": "85"}],
        "asks": [{"price": "0.44", "size": "120"}, {"price": "0.42", "size": "60.5"}],
        "min_order_size": "5", "tick_size": "0.01", "neg_risk": false, "last_trade_price": "0.42",
        "mid": "0.415", "spread": "0.01", "stale": false
    });
    let mut public = world.public();
    let batch = public.post("/v1/books", &json!([{"token_id": rain.yes(), "side": "BUY"}])).expect(200);
    let items = public.post("/v1/books", &json!({"items": [{"token_id": rain.yes()}]})).expect(200);
    let shown = [
        public.get(&format!("/v1/book?token_id={}", rain.yes())).expect(200),
        public.get(&format!("/v1/book?token={}", rain.yes())).expect(200),
        public.get(&format!("/v1/clob/book/{}", rain.yes())).expect(200),
        public.get(&format!("/v1/markets/{}/book", rain.condition)).expect(200),
        public.get(&format!("/v1/markets/{}/book?outcome=yes", rain.condition)).expect(200),
        public.get(&format!("/v1/markets/{}/book?token_id={}", rain.condition, rain.yes())).expect(200),
        batch[0].clone(),
        items[0].clone(),
    ];
    for book in &shown {
        for (field, expected) in expected.as_object().expect("an object") {
            assert_eq!(at(book, &format!("/{field}")), expected, "{field} of {book}");
        }
        let hash = text(book, "/hash");
        assert!(hash.len() == 40 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
        assert!(text(book, "/timestamp").parse::<u64>().expect("milliseconds") > 1_700_000_000_000);
        assert_eq!(book, &shown[0]);
        cases.one();
    }
    // The other outcome is the mirror that the recording sent.
    let no = public.get(&format!("/v1/markets/{}/book?outcome=No", rain.condition)).expect(200);
    assert_eq!(at(&no, "/asks"), &json!([{"price": "0.60", "size": "310"}, {"price": "0.59", "size": "85"}]));
    assert_eq!((text(&no, "/token_id"), text(&no, "/mid")), (rain.no(), "0.585"));
    // One side only.
    let one_sided = public.get(&format!("/v1/book?token_id={}", world.markets.bidsonly.yes())).expect(200);
    for (field, expected) in
        [("asks", json!([])), ("mid", Value::Null), ("spread", Value::Null), ("last_trade_price", Value::Null)]
    {
        assert_eq!(at(&one_sided, &format!("/{field}")), &expected, "{field}");
        cases.one();
    }
    for (market, tick, minimum) in [(&world.markets.treaty, "0.0001", "5"), (&world.markets.game, "0.1", "5")] {
        let book = public.get(&format!("/v1/book?token_id={}", market.yes())).expect(200);
        // The venue's own minimum is shown; orders are checked against the tick's (engine/docs/execution.md §13).
        assert_eq!((text(&book, "/tick_size"), text(&book, "/min_order_size")), (tick, minimum));
        cases.one();
    }
    let coin = public.get(&format!("/v1/book?token_id={}", world.markets.coin.yes())).expect(200);
    assert_eq!(at(&coin, "/neg_risk"), &json!(true));
    cases.one();
}

#[test]
fn depth_keeps_the_best_levels() {
    let cases = Cases::of("depth");
    let world = World::start(0);
    let rain = &world.markets.rain;
    let paths = [
        format!("/v1/book?token_id={}&depth=", rain.yes()),
        format!("/v1/clob/book/{}?depth=", rain.yes()),
        format!("/v1/markets/{}/book?depth=", rain.condition),
    ];
    for path in &paths {
        let best = world.public().get(&format!("{path}1")).expect(200);
        assert_eq!(at(&best, "/bids"), &json!([{"price": "0.41", "size": "85"}]));
        assert_eq!(at(&best, "/asks"), &json!([{"price": "0.42", "size": "60.5"}]));
        assert_eq!((text(&best, "/mid"), text(&best, "/spread")), ("0.415", "0.01"), "from the whole book");
        for depth in ["2", "500"] {
            assert_eq!(list(&world.public().get(&format!("{path}{depth}")).expect(200), "/bids").len(), 2);
        }
        for depth in ["0", "501", "-1", "x", "1.5", "", "99999999999999999999"] {
            world.public().get(&format!("{path}{depth}")).refused(422, "VALIDATION_FAILED");
            cases.one();
        }
    }
    let trimmed = world.public().post("/v1/books?depth=1", &json!([{"token_id": rain.yes()}])).expect(200);
    assert_eq!(list(&trimmed, "/0/bids").len(), 1);
    cases.one();
}

#[test]
fn what_has_no_book_is_not_found() {
    let cases = Cases::of("no books");
    let world = World::start(0);
    let m = &world.markets;
    let unknown = "123456789012345678901234567890";
    for token in [unknown, m.silent.yes(), m.decided.yes(), m.decided.no()] {
        for path in [format!("/v1/book?token_id={token}"), format!("/v1/clob/book/{token}")] {
            let body = world.public().get(&path).refused(404, "BOOK_UNAVAILABLE");
            assert_eq!(text(&body, "/message"), "No orderbook exists for the requested token id");
            cases.one();
        }
        for path in ["midpoint", "spread", "price"] {
            let path = format!("/v1/{path}?token_id={token}&side=BUY");
            world.public().get(&path).refused(404, "BOOK_UNAVAILABLE");
            cases.one();
        }
    }
    world.public().get(&format!("/v1/book?token_id={}", m.rain.condition)).refused(404, "BOOK_UNAVAILABLE");
    for condition in ["0xdead", "unknown", "%20"] {
        world.public().get(&format!("/v1/markets/{condition}/book")).refused(404, "MARKET_NOT_FOUND");
        cases.one();
    }
    world.public().get(&format!("/v1/markets/{}/book", m.silent.condition)).refused(404, "BOOK_UNAVAILABLE");
    // A one-sided book is a book, but has no midpoint.
    for path in ["midpoint", "spread"] {
        let path = format!("/v1/{path}?token_id={}", m.bidsonly.yes());
        world.public().get(&path).refused(404, "BOOK_UNAVAILABLE");
        cases.one();
    }
    let one_side = world.public().get(&format!("/v1/price?token_id={}&side=BUY", m.bidsonly.yes())).expect(200);
    assert_eq!(text(&one_side, "/price"), "0.20");
    world.public().get(&format!("/v1/price?token_id={}&side=SELL", m.bidsonly.yes())).refused(404, "BOOK_UNAVAILABLE");
    cases.add(4);
}

#[test]
fn a_bad_token_is_refused_in_the_venues_words() {
    let cases = Cases::of("bad tokens");
    let world = World::start(0);
    let long = "1".repeat(81);
    let bad = ["", "abc", "-1", "1.5", "+1", "1e5", "%20", "１２", long.as_str(), "12 "];
    let encoded = |token: &str| {
        token
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() || b"%-._".contains(&b) {
                    (b as char).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect::<String>()
    };
    for path in ["book", "midpoint", "spread", "price", "fee-rate", "neg-risk", "tick-size"] {
        for token in bad {
            let answer = world.public().get(&format!("/v1/{path}?side=BUY&token_id={}", encoded(token)));
            let body = answer.refused(400, "INVALID_TOKEN_ID");
            assert_eq!(text(&body, "/message"), "Invalid token id", "{path} {token:?}");
            cases.one();
        }
        let body = world.public().get(&format!("/v1/{path}?side=BUY")).refused(400, "INVALID_TOKEN_ID");
        assert_eq!(text(&body, "/message"), "Invalid token id", "{path} without");
        cases.one();
        if path != "book" {
            let hex = world.public().get(&format!("/v1/{path}?side=BUY&token_id=0x12ab"));
            hex.refused(400, "INVALID_TOKEN_ID");
        }
    }
    for side in ["", "&side=", "&side=HOLD"] {
        let answer = world.public().get(&format!("/v1/price?token_id={}{side}", world.markets.rain.yes()));
        assert_eq!(text(&answer.refused(400, "INVALID_REQUEST"), "/message"), "Invalid side");
        cases.one();
    }
}

#[test]
fn the_small_reads_return_one_value_each() {
    let cases = Cases::of("small reads");
    let world = World::start(0);
    let m = &world.markets;
    let get = |path: &str| world.public().get(path).expect(200);
    let (yes, no) = (m.rain.yes(), m.rain.no());
    assert_eq!(get(&format!("/v1/midpoint?token_id={yes}")), json!({"mid": "0.415", "mid_price": "0.415"}));
    assert_eq!(get(&format!("/v1/midpoint?token={no}")), json!({"mid": "0.585", "mid_price": "0.585"}));
    let spread = json!({"spread": "0.01", "bid": "0.41", "ask": "0.42", "best_bid": "0.41", "best_ask": "0.42"});
    assert_eq!(get(&format!("/v1/spread?token_id={yes}")), spread);
    cases.add(3);
    for (side, price) in [("BUY", "0.41"), ("SELL", "0.42"), ("buy", "0.41"), ("Sell", "0.42")] {
        let shown = get(&format!("/v1/price?token_id={yes}&side={side}"));
        assert_eq!(text(&shown, "/price"), price, "{side}");
        assert!(text(&shown, "/quote_at").ends_with('Z') && int(&shown, "/age_ms") >= 0);
        cases.one();
    }
    for (market, tick) in [(&m.rain, 0.01), (&m.vote, 0.001), (&m.treaty, 0.0001), (&m.game, 0.1), (&m.decided, 0.01)] {
        for path in [format!("/v1/tick-size?token_id={}", market.no()), format!("/v1/tick-size/{}", market.yes())] {
            let answer = world.public().get(&path);
            assert_eq!(answer.expect(200), json!({"minimum_tick_size": tick}));
            // The shortest text: clients use it as a table key.
            assert_eq!(answer.text().replace(' ', ""), format!("{{\"minimum_tick_size\":{tick}}}"));
            cases.one();
        }
    }
    for (market, neg_risk) in [(&m.rain, false), (&m.coin, true)] {
        for path in [format!("/v1/neg-risk?token_id={}", market.no()), format!("/v1/neg-risk/{}", market.yes())] {
            assert_eq!(get(&path), json!({"neg_risk": neg_risk}));
            cases.one();
        }
    }
    let fees =
        [(&m.rain, 1_000, 500), (&m.vote, 1_000, 400), (&m.coin, 1_000, 700), (&m.treaty, 0, 0), (&m.game, 1_000, 300)];
    for (market, base, rate) in fees {
        for path in [format!("/v1/fee-rate?token_id={}", market.yes()), format!("/v1/fee-rate/{}", market.no())] {
            assert_eq!(get(&path), json!({"base_fee": base, "fee_rate_bps": rate}));
            cases.one();
        }
    }
    for (token, outcome) in [(yes, "Yes"), (no, "No")] {
        let shown = get(&format!("/v1/markets-by-token/{token}"));
        let expected = json!({
            "condition_id": m.rain.condition, "primary_token_id": yes, "secondary_token_id": no, "outcome": outcome
        });
        assert_eq!(shown, expected);
        cases.one();
    }
    let unknown = "99887766554433221100";
    let rows = [
        (format!("/v1/tick-size?token_id={unknown}"), "MARKET_NOT_FOUND", "market not found"),
        (format!("/v1/tick-size/{unknown}"), "MARKET_NOT_FOUND", "market not found"),
        (format!("/v1/neg-risk?token_id={unknown}"), "MARKET_NOT_FOUND", "market not found"),
        (format!("/v1/fee-rate?token_id={unknown}"), "MARKET_NOT_FOUND", "fee rate not found for market"),
        (format!("/v1/markets-by-token/{unknown}"), "TOKEN_NOT_FOUND", ""),
        ("/v1/markets-by-token/abc".into(), "TOKEN_NOT_FOUND", ""),
    ];
    for (path, code, message) in rows {
        let body = world.public().get(&path).refused(404, code);
        assert!(message.is_empty() || text(&body, "/message") == message, "{path}: {body}");
        cases.one();
    }
}

#[test]
fn many_books_come_in_the_order_asked() {
    let cases = Cases::of("book batches");
    let world = World::start(0);
    let m = &world.markets;
    let ask = |body: &Value| -> Response { world.public().post("/v1/books", body) };
    let entries = json!([
        {"token_id": m.vote.yes()}, {"token_id": "424242"}, {"token_id": m.silent.yes()},
        {"token_id": m.rain.no()}, {"token_id": m.decided.yes()}, {"token_id": m.rain.yes()}
    ]);
    let shown = ask(&entries).expect(200);
    let tokens: Vec<&str> = list(&shown, "").iter().map(|book| text(book, "/token_id")).collect();
    assert_eq!(tokens, [m.vote.yes(), m.rain.no(), m.rain.yes()], "tokens without a book are left out");
    let many = |count: usize| json!(vec![json!({"token_id": m.rain.yes()}); count]);
    assert_eq!(list(&ask(&many(500)).expect(200), "").len(), 500);
    for body in [many(501), json!([]), json!({"items": []}), json!({}), json!("x")] {
        ask(&body).refused(400, "INVALID_BODY");
        cases.one();
    }
    for body in ["", "[", "7"] {
        world.public().send(&Request::post("/v1/books").text("application/json", body)).refused(400, "INVALID_BODY");
        cases.one();
    }
    cases.add(2);
}
