//! The server's log lines of refused requests: enough to find the reason, and no secret.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::cases::Cases;
use tests::http::Request;
use tests::server::Server;
use tests::socket::Socket;
use tests::world::{World, limit};

/// The line about a request, once it exists.
fn line(server: &Server, request_id: &str) -> Value {
    let begun = Instant::now();
    loop {
        let output = server.output();
        let mut lines = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(line) = lines.find(|line| line["fields"]["request_id"] == request_id) {
            return line;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no line about {request_id} in {output}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_refusal_leaves_a_line_at_debug() {
    let cases = Cases::of("refusals in the log");
    let world = World::start_with(1, |place| {
        place.set("log", "level", "\"debug\"");
        place.set("log", "format", "\"json\"");
    });
    let key = &world.users[0].key;
    let unknown = format!("svc_live_{}", "0123456789abcdef".repeat(4));
    let too_much = limit(&world.markets.rain, "BUY", "0.99", "900000");
    // (request id, key, another header, request, status, code, shown form of the key)
    let rows = [
        (
            "plain-key",
            unknown.as_str(),
            "",
            Request::get("/v1/account/balance"),
            401,
            "INVALID_KEY",
            Some(&unknown[..16]),
        ),
        (
            "other-key",
            unknown.as_str(),
            "x",
            Request::get("/v1/account/balance"),
            401,
            "INVALID_KEY",
            Some(&unknown[..16]),
        ),
        ("no-key", "my own password, which is long enough", "", Request::get("/v1/orders"), 401, "INVALID_KEY", None),
        ("order", key, "", Request::post("/v1/orders").json(&too_much), 400, "INSUFFICIENT_BALANCE", Some(&key[..16])),
        ("nothing", key, "", Request::get("/v1/none"), 404, "NOT_FOUND", Some(&key[..16])),
    ];
    for (id, key, other, request, status, code, shown) in rows {
        let mut request = request.header("X-Request-Id", id).header("X-API-Key", key);
        if !other.is_empty() {
            request = request.header("X-Other", other);
        }
        assert_eq!(world.public().send(&request).status, status, "{id}");
        let line = line(&world.server, id);
        let fields = &line["fields"];
        assert_eq!((&line["level"], &fields["code"]), (&json!("DEBUG"), &json!(code)), "{line}");
        assert_eq!((&fields["status"], fields["key"].as_str()), (&json!(status), shown), "{line}");
        cases.one();
    }
    let output = world.server.output();
    for secret in [unknown.as_str(), key, "password"] {
        assert!(!output.contains(secret), "{secret} is in the log");
    }
    cases.add(3);
}

/// Operations of the trading socket log like the equivalent requests; a verbose answer has the id of its line.
#[test]
fn a_refused_operation_leaves_a_line_too() {
    let cases = Cases::of("refused operations in the log");
    let world = World::start_with(1, |place| {
        place.set("log", "level", "\"debug\"");
        place.set("log", "format", "\"json\"");
    });
    let key = &world.users[0].key;
    let headers = [("X-API-Key", key.as_str()), ("X-Svc-Verbose", "1")];
    let mut socket = Socket::open(world.server.address(), "/v1/ws/trade", &headers);
    let too_much = limit(&world.markets.rain, "BUY", "0.99", "900000");
    // (operation, parameters, status, code, the route that the line names)
    let rows = [
        ("order.place", too_much, 400, "INSUFFICIENT_BALANCE", Some("place_order")),
        ("order.cancel", json!({"order_id": 1}), 404, "ORDER_NOT_FOUND", Some("cancel_order")),
        ("order.amend", json!({"note": "my own password"}), 400, "INVALID_REQUEST", None),
    ];
    for (op, params, status, code, route) in rows {
        socket.send(&json!({"id": "my own password", "op": op, "params": params}));
        let answer = socket.json();
        assert_eq!((&answer["status"], &answer["code"]), (&json!(status), &json!(code)), "{answer}");
        let request_id = answer["error"]["request_id"].as_str().expect("a verbose answer has it");
        let line = line(&world.server, request_id);
        let fields = &line["fields"];
        assert_eq!((&line["level"], &fields["code"]), (&json!("DEBUG"), &json!(code)), "{line}");
        assert_eq!((&fields["status"], fields["key"].as_str()), (&json!(status), Some(&key[..16])), "{line}");
        assert_eq!(fields["operation"].as_str(), route, "{line}");
        cases.one();
    }
    // An answer that is not verbose has no id of the server's; its line has one nevertheless.
    let mut plain = Socket::open(world.server.address(), "/v1/ws/trade", &headers[..1]);
    plain.send(&json!({"id": 7, "op": "order.cancel", "params": {"order_id": 2}}));
    assert_eq!(plain.json()["error"].get("request_id"), None);
    let output = world.server.stop();
    let lines: Vec<Value> = output.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let refused: Vec<&Value> = lines.iter().filter(|line| line["fields"]["message"] == "request refused").collect();
    let has_id = |line: &&&Value| line["fields"]["request_id"].as_str().is_some_and(|id| !id.is_empty());
    assert_eq!((refused.len(), refused.iter().filter(has_id).count()), (4, 4), "one line each: {output}");
    for secret in [key.as_str(), "password"] {
        assert!(!output.contains(secret), "{secret} is in the log");
    }
    cases.add(4);
}

#[test]
fn without_the_debug_level_refusals_are_not_logged() {
    let cases = Cases::of("refusals without a log");
    let world = World::start(1);
    let request = Request::get("/v1/account/balance").header("X-Request-Id", "quiet-1");
    assert_eq!(world.public().send(&request).status, 401);
    assert!(!world.server.stop().contains("quiet-1"));
    cases.one();
}
