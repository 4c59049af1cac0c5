//! What the server's own log says of refused requests (reliability.md 48): enough to find the reason, no secret.

use serde_json::{Value, json};
use std::time::{Duration, Instant};
use tests::cases::Cases;
use tests::http::Request;
use tests::server::Server;
use tests::world::{World, limit};

/// The line about a request, once it is there.
fn line(server: &Server, request_id: &str) -> Value {
    let begun = Instant::now();
    loop {
        let said = server.said();
        let mut lines = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        if let Some(line) = lines.find(|line| line["fields"]["request_id"] == request_id) {
            return line;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "no line about {request_id} in {said}");
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
    // (request id, key, another header, request, status, code, what is shown of the key)
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
    let said = world.server.said();
    for secret in [unknown.as_str(), key, "password"] {
        assert!(!said.contains(secret), "{secret} is in the log");
    }
    cases.add(3);
}

#[test]
fn without_a_level_nothing_is_said_of_refusals() {
    let cases = Cases::of("refusals without a log");
    let world = World::start(1);
    let request = Request::get("/v1/account/balance").header("X-Request-Id", "quiet-1");
    assert_eq!(world.public().send(&request).status, 401);
    assert!(!world.server.stop().contains("quiet-1"));
    cases.one();
}
