//! Refusals in the two dialects: the same status, headers and code; the venue's clients find its sentence in `error`.

use crate::clob_bodies::{signed, v1};
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Request, Response};
use tests::json::{at, text};
use tests::world::{World, limit};

const AGENT: (&str, &str) = ("User-Agent", "py_clob_client");

/// Asserts the body of a refusal and returns it.
fn refused(answer: &Response, status: u16, code: &str, is_strict: bool, of: &str) -> Value {
    let body = answer.refused(status, code);
    match is_strict {
        true => {
            assert_eq!(text(&body, "/code"), code, "{of}: {body}");
            assert_eq!(body["error"], body["message"], "{of}: {body}");
        }
        false => {
            assert_eq!(text(&body, "/error"), code, "{of}: {body}");
            assert_eq!(body.get("code"), None, "{of}: {body}");
        }
    }
    body
}

#[test]
fn a_refusal_has_the_dialect_of_its_request() {
    let cases = Cases::of("refusals in two dialects");
    let world = World::start(1);
    let key = world.users[0].key.as_str();
    let rain = &world.markets.rain;
    let token = "/v1/book?token_id=5";
    let native = limit(rain, "BUY", "0.375", "10");
    let small = signed(&v1(rain.yes(), "BUY", "1230000", "3000000"), "GTC");
    let uuid = "00000000-0000-8000-8000-000000000000";
    // (request, status, code)
    let table = [
        (Request::get("/v1/data/orders"), 401, "MISSING_API_KEY"),
        (Request::get("/v1/data/orders").header("POLY_API_KEY", uuid), 401, "INVALID_KEY"),
        (Request::get("/v1/orders").header("X-API-Key", "x"), 401, "INVALID_KEY"),
        (Request::get("/v1/me").header("Authorization", "Bearer x"), 401, "INVALID_TOKEN"),
        (Request::get("/v1/nothing"), 404, "NOT_FOUND"),
        (Request::new("PATCH", "/v1/order"), 405, "HTTP_405"),
        (Request::get(token), 404, "BOOK_UNAVAILABLE"),
        (Request::get("/v1/midpoint?token_id=x"), 400, "INVALID_TOKEN_ID"),
        (Request::get("/v1/price?token_id=1"), 400, "INVALID_REQUEST"),
        (Request::post("/v1/orders").json(&native).header("X-API-Key", key), 400, "INVALID_ORDER_MIN_TICK_SIZE"),
        (Request::post("/v1/orders").json(&native), 401, "MISSING_API_KEY"),
        (Request::post("/v1/order").json(&small).header("X-API-Key", key), 400, "INVALID_ORDER_MIN_SIZE"),
        (Request::post("/v1/order").text("text/plain", "x").header("X-API-Key", key), 415, "HTTP_415"),
        (Request::post("/v1/heartbeats").text("application/json", "[").header("X-API-Key", key), 400, "INVALID_BODY"),
        (Request::get("/v1/data/order/7").header("X-API-Key", key), 404, "ORDER_NOT_FOUND"),
    ];
    for (request, status, code) in table {
        let of = format!("{request:?}");
        let by_header = of.contains("POLY_API_KEY");
        let plain = refused(&world.public().send(&request), status, code, by_header, &of);
        let strict = refused(&world.public().send(&request.clone().header(AGENT.0, AGENT.1)), status, code, true, &of);
        assert_eq!(strict["message"], plain["message"], "{of}");
        cases.add(2);
    }
    // The query overrides the headers, on the fast path as through the library.
    for (query, agent, is_strict) in [
        ("", "curl/8", false),
        ("", "py_clob_client_v2", true),
        ("", "NautilusTrader/1.231.0", true),
        ("&dialect=strict", "curl/8", true),
        ("&dialect=plain", "py_clob_client", false),
        ("&dialect=loose", "curl/8", false),
    ] {
        // Twice on one connection: the second head is a cached one.
        let mut client = world.public().with_header("User-Agent", agent);
        for _ in 0..2 {
            refused(&client.get(&format!("{token}{query}")), 404, "BOOK_UNAVAILABLE", is_strict, query);
            refused(&client.get(&format!("/v1/orders?x=1{query}")), 401, "MISSING_API_KEY", is_strict, query);
            cases.add(2);
        }
        // A request's dialect does not carry over to the next request of its connection.
        refused(&client.get("/v1/book?token_id=5&dialect=strict"), 404, "BOOK_UNAVAILABLE", true, query);
        refused(&client.get("/v1/book?token_id=5&dialect=plain"), 404, "BOOK_UNAVAILABLE", false, query);
        cases.add(2);
    }
}

#[test]
fn strict_refusals_keep_their_fields() {
    let cases = Cases::of("fields of strict refusals");
    // A window that twenty requests exceed even on a slow machine.
    let world = World::start_with(1, |place| _ = place.set("limits.tiers.free", "requests_per_minute", "3"));
    let mut free = world.newcomer("strict").0.with_header(AGENT.0, AGENT.1);
    let asked = free.get("/v1/export/trades.csv");
    let body = refused(&asked, 402, "UPGRADE_REQUIRED", true, "the CSV");
    assert_eq!(text(&body, "/upgrade_url"), "/pricing");
    assert!(at(&body, "/feature_key").is_string(), "{body}");
    cases.one();
    let limited = (0..20).map(|_| free.get("/v1/data/orders")).find(|answer| answer.status == 429);
    let limited = limited.expect("a 429");
    refused(&limited, 429, "RATE_LIMIT_EXCEEDED", true, "the window");
    assert!(limited.header("Retry-After").is_some());
    cases.one();
    let mut client = world.user(0).with_header("X-Svc-Verbose", "1").with_header(AGENT.0, AGENT.1);
    let small = signed(&v1(world.markets.rain.yes(), "BUY", "1230000", "3000000"), "GTC");
    let body = refused(&client.post("/v1/order", &small), 400, "INVALID_ORDER_MIN_SIZE", true, "verbose");
    assert_eq!(body["details"], json!({"min_order_size": "5"}));
    assert!(at(&body, "/request_id").is_string(), "{body}");
    assert!(text(&body, "/error").ends_with("is invalid. Size (3) lower than the minimum: 5"), "{body}");
    cases.one();
    let beat = client.post("/v1/heartbeats", &json!({"heartbeat_id": "4f0c9d2a-0011-8233-9455-66778899aabb"}));
    let body = refused(&beat, 400, "INVALID_REQUEST", true, "a heartbeat");
    assert_eq!((&body["error"], &body["heartbeat_id"]), (&json!("Invalid Heartbeat ID"), &json!("")));
    cases.one();
    // Entries of a batch.
    for (dialect, is_strict) in [("plain", false), ("strict", true)] {
        let answer = client.post(&format!("/v1/orders?dialect={dialect}"), &json!([small])).expect(200);
        let (entry, sentence) = (&answer[0], &answer[0]["errorMsg"]);
        match is_strict {
            true => assert_eq!(
                (&entry["error"], &entry["message"], &entry["code"]),
                (sentence, sentence, &json!("INVALID_ORDER_MIN_SIZE"))
            ),
            false => {
                assert_eq!(entry["error"], "INVALID_ORDER_MIN_SIZE");
                assert!(entry.get("code").is_none() && entry.get("message").is_none(), "{entry}");
            }
        }
        cases.one();
    }
}
