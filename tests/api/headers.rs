//! Headers of requests and answers (gateway/docs/wire.md §3, §4, §10).

use flate2::read::GzDecoder;
use serde_json::{Value, json};
use std::io::Read;
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{at, text};
use tests::world::{World, changed, limit};

#[test]
fn a_good_request_id_is_echoed_and_another_replaced() {
    let cases = Cases::of("request ids");
    let world = World::start(1);
    let longest = "a".repeat(128);
    for id in ["x", "A.b_c:d-9", longest.as_str()] {
        for path in ["/v1/health", "/v1/orders", "/v1/nowhere"] {
            let answer = world.user(0).send(&Request::get(path).header("X-Request-Id", id));
            assert_eq!(answer.header("X-Request-Id"), Some(id), "{path}");
            cases.one();
        }
    }
    let too_long = "a".repeat(129);
    for id in ["", "a b", "a/b", "ä", "a\"b", too_long.as_str()] {
        let answer = world.public().send(&Request::get("/v1/health").header("X-Request-Id", id));
        assert_uuid_v4(answer.header("X-Request-Id").expect("an id of the server's own"));
        cases.one();
    }
    let first = world.public().get("/v1/health");
    let second = world.public().get("/v1/health");
    assert_ne!(first.header("X-Request-Id"), second.header("X-Request-Id"));
    cases.one();
}

fn assert_uuid_v4(id: &str) {
    let parts: Vec<&str> = id.split('-').collect();
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    assert_eq!(lengths, [8, 4, 4, 4, 12], "{id}");
    assert!(id.bytes().all(|byte| byte == b'-' || byte.is_ascii_hexdigit()), "{id}");
    assert!(parts[2].starts_with('4') && "89ab".contains(&parts[3][..1]), "version and variant of {id}");
}

const RATE: [&str; 6] = ["Limit", "Remaining", "Reset", "Limit-Per-Second", "Remaining-Per-Second", "Tier"];

#[test]
fn rate_headers_come_doubled_with_a_recognised_key() {
    let cases = Cases::of("rate headers");
    let world = World::start(1);
    // Success, refusals and public routes alike (gateway/docs/wire.md §4).
    let book = format!("/v1/book?token_id={}", world.markets.rain.yes());
    for path in ["/v1/orders", "/v1/orders/1", "/v1/account/positions?status=x", "/v1/markets", book.as_str(), "/v1/me"]
    {
        let answer = world.user(0).get(path);
        for name in RATE {
            let plain = answer.header(&format!("X-RateLimit-{name}")).unwrap_or_else(|| panic!("{path}: no {name}"));
            assert_eq!(answer.header(&format!("X-Svc-RateLimit-{name}")), Some(plain), "{path}: {name}");
            if name == "Tier" {
                assert_eq!(plain, "enterprise");
            } else {
                plain.parse::<u64>().unwrap_or_else(|_| panic!("{path}: {name} is {plain}"));
            }
            cases.one();
        }
        assert_eq!(answer.header("X-RateLimit-Limit"), Some("1000000"));
        assert_eq!(answer.header("X-RateLimit-Limit-Per-Second"), Some("100000"));
        let reset: u64 = answer.header("X-RateLimit-Reset").unwrap().parse().unwrap();
        assert!(reset.is_multiple_of(60) && reset > tests::token::unix_now() - 60, "{reset} is the end of a minute");
    }
    // Without a key there are no such headers.
    for path in ["/v1/orders", "/v1/health", book.as_str()] {
        let answer = world.public().get(path);
        for name in RATE {
            assert_eq!(answer.header(&format!("X-RateLimit-{name}")), None, "{path}: {name}");
        }
        cases.one();
    }
    let metered_by_user = world.server.with_token(&tests::token::token("t")).get("/v1/me");
    assert_eq!(metered_by_user.header("X-RateLimit-Tier"), Some("free"), "a JWT is metered at its plan's tier");
    cases.one();
}

#[test]
fn every_kind_of_route_has_its_caching() {
    let cases = Cases::of("caching");
    let world = World::start(1);
    let token = world.markets.rain.yes();
    let condition = &world.markets.rain.condition;
    let public = "public, max-age=5";
    let rows = [
        (format!("/v1/book?token_id={token}"), "no-store"),
        (format!("/v1/clob/book/{token}"), "no-store"),
        (format!("/v1/markets/{condition}/book"), "no-store"),
        ("/v1/health".into(), "no-store"),
        ("/v1/health/live".into(), "no-store"),
        ("/v1/health/ready".into(), "no-store"),
        ("/v1/status".into(), "no-store"),
        (format!("/v1/midpoint?token_id={token}"), public),
        (format!("/v1/price?token_id={token}&side=BUY"), public),
        (format!("/v1/spread?token_id={token}"), public),
        (format!("/v1/tick-size?token_id={token}"), public),
        (format!("/v1/neg-risk?token_id={token}"), public),
        (format!("/v1/fee-rate?token_id={token}"), public),
        (format!("/v1/markets-by-token/{token}"), public),
    ];
    for (path, expected) in &rows {
        assert_eq!(world.public().get(path).header("Cache-Control"), Some(*expected), "{path}");
        cases.one();
    }
    let keyed = ["/v1/orders", "/v1/account/balance", "/v1/keys", "/v1/me", "/v1/markets"];
    for path in keyed {
        assert_eq!(world.user(0).get(path).header("Cache-Control"), Some("private, no-store"), "{path}");
        cases.one();
    }
    let by_slug = world.user(0).get("/v1/markets/by-slug/rain");
    by_slug.expect(200);
    assert_eq!(by_slug.header("Cache-Control"), Some("no-store"), "by-slug (S)");
    let made = world.user(0).post("/v1/keys", &json!({}));
    made.expect(201);
    assert!(made.header("Cache-Control").is_some_and(|value| value.contains("no-store")), "a raw key is never cached");
    cases.add(2);
}

#[test]
fn browsers_may_call() {
    let cases = Cases::of("cors");
    let world = World::start(1);
    for path in ["/v1/orders", "/v1/book", "/v1/keys/bootstrap"] {
        let preflight = Request::new("OPTIONS", path)
            .header("Origin", "https://desk.example")
            .header("Access-Control-Request-Method", "POST")
            .header("Access-Control-Request-Headers", "x-api-key, content-type");
        let answer = world.public().send(&preflight);
        assert!([200, 204].contains(&answer.status), "{path}: {}", answer.status);
        assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"));
        assert_eq!(answer.header("Access-Control-Max-Age"), Some("600"));
        assert_eq!(answer.header("Access-Control-Allow-Credentials"), None);
        for method in ["GET", "POST", "PATCH", "DELETE", "OPTIONS"] {
            assert!(lists(&answer, "Access-Control-Allow-Methods", method), "{path}: {method}");
            cases.one();
        }
        let allowed = [
            "X-API-Key",
            "MKT_API_KEY",
            "Mkt-API-Key",
            "Authorization",
            "Content-Type",
            "Idempotency-Key",
            "X-Request-Id",
            "X-Svc-Verbose",
            "X-Confirm-Cancel-All",
        ];
        for header in allowed {
            assert!(lists(&answer, "Access-Control-Allow-Headers", header), "{path}: {header}");
            cases.one();
        }
        answer.assert_request_id();
    }
    let exposed = [
        "X-Request-Id",
        "X-Svc-Code",
        "X-Svc-Order-Id",
        "Retry-After",
        "X-API-Beta-Cutoff",
        "X-RateLimit-Limit",
        "X-Svc-RateLimit-Tier",
    ];
    // Refusals too: a browser must be able to read them.
    for path in ["/v1/orders", "/v1/health", "/v1/nowhere"] {
        let answer = world.public().send(&Request::get(path).header("Origin", "https://desk.example"));
        assert_eq!(answer.header("Access-Control-Allow-Origin"), Some("*"), "{path}");
        for header in exposed {
            assert!(lists(&answer, "Access-Control-Expose-Headers", header), "{path}: {header}");
            cases.one();
        }
    }
}

fn lists(answer: &Response, header: &str, wanted: &str) -> bool {
    let value = answer.header(header).unwrap_or_default();
    value.split(',').any(|part| part.trim().eq_ignore_ascii_case(wanted))
}

#[test]
fn errors_have_details_only_on_request() {
    let cases = Cases::of("verbose");
    let world = World::start(1);
    let rain = &world.markets.rain;
    let order = limit(rain, "BUY", "0.37", "20");
    // Body, code, and required `details` (gateway/docs/wire.md §5).
    let rows: [(Value, u16, &str, Value); 6] = [
        (changed(&order, &json!({"price": "0.375"})), 400, "INVALID_ORDER_MIN_TICK_SIZE", json!({"tick_size": "0.01"})),
        (changed(&order, &json!({"quantity": "4"})), 400, "INVALID_ORDER_MIN_SIZE", json!({"min_order_size": "5"})),
        (
            changed(&order, &json!({"quantity": "100000"})),
            400,
            "INSUFFICIENT_BALANCE",
            json!({"available": "10000.00", "required": "37000.00"}),
        ),
        (
            changed(&order, &json!({"side": "SELL"})),
            400,
            "INSUFFICIENT_POSITION",
            json!({"available": "0", "requested": "20"}),
        ),
        (
            changed(&order, &json!({"price": "0.42", "quantity": "100", "time_in_force": "FOK"})),
            400,
            "FOK_ORDER_NOT_FILLED_ERROR",
            json!({"fillable": "60.5", "requested": "100", "limit": "0.42"}),
        ),
        (changed(&order, &json!({"market_id": "0xunknown"})), 404, "MARKET_NOT_FOUND", Value::Null),
    ];
    for (body, status, code, details) in &rows {
        for asked in ["true", "1", "yes"] {
            let request = Request::post("/v1/orders").json(body).header("X-Svc-Verbose", asked);
            let answer = world.user(0).send(&request);
            let body = answer.refused(*status, code);
            assert_eq!(at(&body, "/details"), details, "{code}");
            assert_eq!(Some(text(&body, "/request_id")), answer.header("X-Request-Id"));
            cases.one();
        }
        for not_asked in ["", "false", "TRUE!", "on"] {
            let request = Request::post("/v1/orders").json(body).header("X-Svc-Verbose", not_asked);
            let body = world.user(0).send(&request).refused(*status, code);
            let fields: Vec<&String> = body.as_object().expect("an object").keys().collect();
            assert_eq!(fields, ["error", "message"], "{code} with {not_asked:?}");
            cases.one();
        }
    }
    let bad = changed(&order, &json!({"quantity": "twenty"}));
    let body = world.user(0).send(&Request::post("/v1/orders").json(&bad).header("X-Svc-Verbose", "1"));
    let body = body.refused(422, "VALIDATION_FAILED");
    assert_eq!(at(&body, "/details/errors/0/loc"), &json!(["body", "quantity"]));
    assert!(!text(&body, "/details/errors/0/type").is_empty() && !text(&body, "/details/errors/0/msg").is_empty());
    cases.one();
}

#[test]
fn long_answers_are_compressed_on_request() {
    let cases = Cases::of("gzip");
    let world = World::start(1);
    let plain = world.user(0).get("/v1/markets");
    assert!(plain.body.len() >= 1_024, "the list is long enough for this test");
    assert_eq!(plain.header("Content-Encoding"), None);
    for asked in ["gzip", "deflate, gzip;q=0.8", "*"] {
        let packed = world.user(0).send(&Request::get("/v1/markets").header("Accept-Encoding", asked));
        if packed.header("Content-Encoding") == Some("gzip") {
            let mut unpacked = String::new();
            GzDecoder::new(packed.body.as_slice()).read_to_string(&mut unpacked).expect("it is gzip");
            let _: Value = serde_json::from_str(&unpacked).expect("it is JSON");
        } else {
            assert_eq!(asked, "*", "gzip is named explicitly");
        }
        cases.one();
    }
    // A large body is compressed in pieces, with the same result.
    let plain = world.public().get("/v1/openapi.json");
    let packed = world.public().send(&Request::get("/v1/openapi.json").header("Accept-Encoding", "gzip"));
    assert_eq!((plain.status, packed.status, packed.header("Content-Encoding")), (200, 200, Some("gzip")));
    let mut unpacked = Vec::new();
    GzDecoder::new(packed.body.as_slice()).read_to_end(&mut unpacked).expect("it is gzip");
    assert!(unpacked == plain.body && plain.body.len() > 100_000 && packed.body.len() * 4 < plain.body.len());
    cases.one();
    let refused = world.user(0).send(&Request::get("/v1/markets").header("Accept-Encoding", "gzip;q=0, identity"));
    assert_eq!(refused.header("Content-Encoding"), None);
    let short = world.public().send(&Request::get("/v1/health").header("Accept-Encoding", "gzip"));
    assert_eq!(short.header("Content-Encoding"), None, "under 1 KiB it is not worth it");
    cases.add(2);
}
