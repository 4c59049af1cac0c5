//! Counted uses of a key (gateway/docs/keys.md §7), and its last use (§1).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Request;
use tests::json::{at, int, list, text};
use tests::socket::{Socket, token};
use tests::world::{World, limit};

const HOUR: u64 = 3_600;

#[test]
fn requests_are_counted() {
    let cases = Cases::of("key usage");
    let mut world = World::start_with(2, |place| _ = place.clock_ahead(0));
    let mut owner = world.user(0);
    let made = owner.post("/v1/keys", &json!({"tier": "pro"})).expect(201);
    let (id, prefix) = (int(&made, "/id"), text(&made, "/key_prefix").to_string());
    let path = format!("/v1/keys/{id}/usage");
    let fresh = owner.get(&path).expect(200);
    assert_eq!((text(&fresh, "/key_prefix"), int(&fresh, "/monthly_request_cap")), (prefix.as_str(), 1_000_000));
    assert_eq!((list(&fresh, "/days").len(), list(&fresh, "/hours").len()), (30, 24));
    assert_eq!((int(&fresh, "/month_to_date"), list(&fresh, "/recent").len()), (0, 0));
    let idle = json!({
        "samples": 0, "p50_ms": null, "p99_ms": null,
        "buckets": {"50": 0, "100": 0, "250": 0, "500": 0, "1000": 0, "inf": 0}
    });
    assert_eq!(at(&fresh, "/latency"), &idle);
    cases.one();

    let mut key = world.server.with_key(text(&made, "/raw_key"));
    let order = key.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "10")).expect(200);
    let order = int(&order, "/order_id");
    key.get(&format!("/v1/orders/{order}")).expect(200);
    key.get("/v1/orders/123").refused(404, "ORDER_NOT_FOUND");
    key.send(&Request::new("HEAD", "/v1/account/balance"));
    // A public route counts for the key of the request; an unknown path does not count.
    assert_eq!(key.get("/v1/time").status, 200);
    key.get("/v1/nothing").refused(404, "NOT_FOUND");
    let used = owner.get(&path).expect(200);
    let today = list(&used, "/days").last().unwrap().clone();
    let hour = list(&used, "/hours").last().unwrap().clone();
    assert_eq!((int(&used, "/month_to_date"), int(&today, "/requests"), int(&hour, "/requests")), (5, 5, 5));
    assert_eq!((int(&hour, "/errors"), int(&used, "/latency/samples")), (1, 5));
    assert!(text(&hour, "/hour").starts_with(text(&today, "/date")) && text(&hour, "/hour").ends_with(":00:00Z"));
    let expected = [
        ("GET", "/v1/time", 200),
        ("HEAD", "/v1/account/balance", 200),
        ("GET", "/v1/orders/{order_id}", 404),
        ("GET", "/v1/orders/{order_id}", 200),
        ("POST", "/v1/orders", 200),
    ];
    let rows: Vec<_> = list(&used, "/recent")
        .iter()
        .map(|row| (text(row, "/method"), text(row, "/route"), int(row, "/status")))
        .collect();
    assert_eq!(rows, expected);
    assert!(!used.to_string().contains(&order.to_string()), "only templates are shown");
    cases.one();

    // An hour later the count is that hour's, and fifty are enough.
    world.place.clock_ahead(2 * HOUR);
    for _ in 0..60 {
        key.get("/v1/account/balance").expect(200);
    }
    let later = owner.get(&format!("{path}?hours=3&days=90")).expect(200);
    let hours: Vec<_> = list(&later, "/hours").iter().map(|row| int(row, "/requests")).collect();
    assert_eq!((hours, list(&later, "/recent").len()), (vec![5, 0, 60], 50));
    assert_eq!(list(&later, "/days").iter().map(|day| int(day, "/requests")).sum::<i64>(), 65);
    let narrow = owner.get(&format!("{path}?hours=1&days=1")).expect(200);
    assert_eq!((list(&narrow, "/days").len(), int(&narrow, "/latency/samples")), (1, 60));
    cases.add(2);

    for (query, hours, days) in [("hours=168&days=90", 168, 90), ("hours=1&days=1", 1, 1)] {
        let found = owner.get(&format!("{path}?{query}")).expect(200);
        assert_eq!((list(&found, "/hours").len(), list(&found, "/days").len()), (hours, days));
        cases.one();
    }
    for query in ["hours=0", "hours=169", "hours=x", "days=0", "days=91", "days=-1", "days="] {
        owner.get(&format!("{path}?{query}")).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    for path in ["/v1/keys/0/usage", "/v1/keys/abc/usage", "/v1/keys/99999999999999999999/usage"] {
        owner.get(path).refused(404, "KEY_NOT_FOUND");
        cases.one();
    }
    // Another user's key looks like an unknown one, and so does a revoked one.
    world.user(1).get(&path).refused(404, "KEY_NOT_FOUND");
    world.public().get(&path).refused(401, "MISSING_AUTH");
    owner.delete(&format!("/v1/keys/{id}")).expect(200);
    owner.get(&path).refused(404, "KEY_NOT_FOUND");
    cases.add(3);
}

#[test]
fn the_last_use_is_noted_once_a_minute_and_kept() {
    let cases = Cases::of("last use");
    let mut world = World::start_with(1, |place| _ = place.clock_ahead(0));
    let mut owner = world.user(0);
    let made = owner.post("/v1/keys", &json!({})).expect(201);
    let raw = text(&made, "/raw_key").to_string();
    let last_used = |world: &World| -> Value {
        let rows = world.user(0).get("/v1/keys").expect(200);
        at(&rows, "/0/last_used_at").clone()
    };
    assert_eq!(last_used(&world), Value::Null);
    world.server.with_key(&raw).get("/v1/account/balance").expect(200);
    let first = tests::eventually("the first use", || Some(last_used(&world)).filter(|at| !at.is_null()));
    world.place.clock_ahead(HOUR);
    world.server.with_key(&raw).get("/v1/account/balance").expect(200);
    let second = tests::eventually("the second use", || Some(last_used(&world)).filter(|at| *at != first));
    assert!(second.as_str() > first.as_str(), "{first} {second}");
    world.crash();
    assert_eq!(last_used(&world), second, "it is in the log");
    // The counters belong to this process.
    let id = int(&made, "/id");
    let usage = world.user(0).get(&format!("/v1/keys/{id}/usage")).expect(200);
    assert_eq!((int(&usage, "/month_to_date"), list(&usage, "/recent").len()), (0, 0));
    cases.add(5);
}

/// Every way of opening a socket with a key counts as a use, and not as a request (gateway/docs/streams.md §1.4).
#[test]
fn a_socket_is_a_use_and_no_request() {
    let cases = Cases::of("sockets of keys");
    let world = World::start(1);
    let mut owner = world.user(0);
    let socket_with = |path: &str, raw: &str| Socket::open(world.server.address(), path, &[("X-API-Key", raw)]);
    let auth_frame = |raw: &str| {
        let mut socket = Socket::open(world.server.address(), "/v1/ws/user", &[]);
        socket.send(&json!({"type": "user", "markets": [], "auth": {"apiKey": raw}}));
        socket
    };
    // The way of opening, and its requests.
    type Opens<'a> = &'a dyn Fn(&str) -> Socket;
    let rows: [(&str, Opens<'_>, i64); 7] = [
        ("/v1/ws/prices", &|raw| socket_with("/v1/ws/prices", raw), 0),
        ("/v1/ws/executions", &|raw| socket_with("/v1/ws/executions", raw), 0),
        ("/v1/ws/market", &|raw| socket_with("/v1/ws/market", raw), 0),
        ("/v1/ws/trade", &|raw| socket_with("/v1/ws/trade", raw), 0),
        ("/v1/ws/user", &|raw| socket_with("/v1/ws/user", raw), 0),
        ("an auth frame", &auth_frame, 0),
        (
            "a token",
            &|raw| {
                let token = token(&mut world.server.with_key(raw));
                Socket::open(world.server.address(), &format!("/v1/ws/prices?token={token}"), &[])
            },
            1,
        ),
    ];
    for (name, opens, requests) in rows {
        let made = owner.post("/v1/keys", &json!({})).expect(201);
        let id = int(&made, "/id");
        let last_used = || at(&world.user(0).get("/v1/keys").expect(200), "/0/last_used_at").clone();
        assert_eq!(last_used(), Value::Null, "{name}: before");
        let mut socket = opens(text(&made, "/raw_key"));
        socket.is_alive();
        tests::eventually(&format!("{name}: a use"), || (!last_used().is_null()).then_some(()));
        let usage = owner.get(&format!("/v1/keys/{id}/usage")).expect(200);
        let counted = (int(&usage, "/month_to_date"), list(&usage, "/recent").len() as i64);
        assert_eq!(counted, (requests, requests), "{name}: {usage}");
        owner.delete(&format!("/v1/keys/{id}")).expect(200);
        cases.one();
    }
}

/// A refused socket is not a use, like a request beyond its window.
#[test]
fn a_socket_beyond_the_cap_is_no_use() {
    let cases = Cases::of("sockets beyond the cap");
    let mut users = Vec::new();
    let world = World::start_with(0, |place| users = place.seed(1, "free", "10000"));
    let address = world.server.address();
    let mut owner = world.server.with_key(&users[0].key);
    let mut first = Socket::open(address, "/v1/ws/prices", &[("X-API-Key", users[0].key.as_str())]);
    let made = owner.post("/v1/keys", &json!({})).expect(201);
    let mut beyond = Socket::open(address, "/v1/ws/prices", &[("X-API-Key", text(&made, "/raw_key"))]);
    assert_eq!(beyond.closed(), (4002, "CONNECTION_LIMIT".to_string()));
    first.is_alive();
    // Uses are written in their order: after that of another key all earlier ones would show.
    let other = owner.post("/v1/keys", &json!({})).expect(201);
    world.server.with_key(text(&other, "/raw_key")).get("/v1/account/balance").expect(200);
    let rows = tests::eventually("the other key's use", || {
        let rows = world.server.with_key(&users[0].key).get("/v1/keys").expect(200);
        (!at(&rows, "/0/last_used_at").is_null()).then_some(rows)
    });
    assert_eq!(at(&rows, "/1/last_used_at"), &Value::Null);
    cases.one();
}
