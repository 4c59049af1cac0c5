//! Limits (gateway/docs/wire.md §8): windows, the daily cap, requests in flight.
//!
//! Windows follow the clock, so a burst that crosses the end of one is repeated.

use serde_json::{Value, json};
use std::io::Write;
use tests::cases::Cases;
use tests::http::{Client, Request, Response, connect};
use tests::json::{at, int, list, text};
use tests::server::ServerDir;
use tests::token::{token, unix_now};
use tests::world::{World, changed, limit};

/// Repeats `burst` until it is completely inside one window of `seconds`.
fn in_one_window<T>(seconds: u64, mut burst: impl FnMut() -> T) -> T {
    loop {
        let window = unix_now() / seconds;
        // The next window: an earlier burst may have used up this one.
        tests::eventually("the next window", || (seconds > 1 || unix_now() / seconds != window).then_some(()));
        let window = unix_now() / seconds;
        let outcome = burst();
        if unix_now() / seconds == window {
            return outcome;
        }
    }
}

fn narrow(place: &mut ServerDir, second: u32, minute: u32) {
    for tier in ["free", "pro", "enterprise"] {
        let section = format!("limits.tiers.{tier}");
        place.set(&section, "requests_per_second", &second.to_string());
        place.set(&section, "requests_per_minute", &minute.to_string());
    }
}

fn statuses(answers: &[Response]) -> Vec<u16> {
    answers.iter().map(|answer| answer.status).collect()
}

#[test]
fn the_second_has_its_window() {
    let cases = Cases::of("second windows");
    // Unknown routes are refused before any window (gateway/docs/wire.md §7): they are never 429.
    let paths = ["/v1/orders", "/v1/orders/1", "/v1/nowhere-else", "/v1/account/positions?status=x"];
    let world = World::start_with(paths.len() + 1, |place| narrow(place, 3, 10_000));
    // Each path with a key of its own, so that all of them fit into one window.
    let (answers, other) = in_one_window(1, || {
        let answers: Vec<Vec<Response>> = paths
            .iter()
            .enumerate()
            .map(|(user, path)| {
                let (mut one, mut two) = (world.user(user), world.user(user));
                (0..3).flat_map(|_| [one.get(path), two.get(path)]).collect()
            })
            .collect();
        (answers, world.user(paths.len()).get("/v1/orders"))
    });
    assert_eq!(other.status, 200, "another key has its own window");
    for (path, mine) in paths.iter().zip(&answers) {
        if *path == "/v1/nowhere-else" {
            assert_eq!(statuses(mine), [404; 6]);
            cases.one();
            continue;
        }
        let spent: Vec<bool> = mine.iter().map(|answer| answer.status == 429).collect();
        assert_eq!(spent, [false, false, false, true, true, true], "{path}: two connections share the window");
        for (n, answer) in mine.iter().enumerate() {
            let remaining = [2, 1, 0, 0, 0, 0][n].to_string();
            assert_eq!(answer.header("X-RateLimit-Remaining-Per-Second"), Some(remaining.as_str()), "{path} {n}");
            cases.one();
        }
        let refused = &mine[3];
        refused.refused(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(refused.header("Retry-After"), Some("1"));
        assert_eq!(refused.header("X-Svc-RateLimit-Limit-Per-Second"), Some("3"));
        // A 429 does not count in the minute either.
        assert_eq!(mine[5].header("X-RateLimit-Remaining"), mine[2].header("X-RateLimit-Remaining"));
    }
}

#[test]
fn the_minute_has_its_window() {
    let cases = Cases::of("minute windows");
    let answers = in_one_window(60, || {
        let world = World::start_with(1, |place| narrow(place, 1_000, 5));
        (0..7).map(|_| world.user(0).get("/v1/orders")).collect::<Vec<_>>()
    });
    assert_eq!(statuses(&answers), [200, 200, 200, 200, 200, 429, 429]);
    let refused = &answers[5];
    let wait: u64 = refused.header("Retry-After").expect("a wait").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "to the end of the minute: {wait}");
    assert_eq!(refused.header("X-RateLimit-Remaining"), Some("0"));
    let reset: u64 = refused.header("X-RateLimit-Reset").expect("a reset").parse().expect("seconds");
    assert!(reset.is_multiple_of(60) && reset.abs_diff(unix_now()) <= 60);
    cases.add(answers.len());
}

#[test]
fn only_what_reaches_the_window_is_counted() {
    let cases = Cases::of("what counts");
    let world = World::start_with(1, |place| narrow(place, 1_000, 10_000));
    let remaining = |client: &mut Client| -> i64 {
        let answer = client.get("/v1/orders");
        answer.header("X-RateLimit-Remaining").expect("a rate header").parse().expect("a number")
    };
    let good = limit(&world.markets.rain, "BUY", "0.30", "10");
    let book = format!("/v1/book?token_id={}", world.markets.rain.yes());
    // Request, and its cost.
    let rows: Vec<(Request, i64)> = vec![
        (Request::get("/v1/nowhere"), 0),
        (Request::new("PUT", "/v1/orders"), 0),
        (Request::get("/v1/health"), 0),
        (Request::get("/v1/health/ready"), 0),
        (Request::new("OPTIONS", "/v1/orders"), 0),
        (Request::get("/v1/status"), 1),
        (Request::get(&book), 1),
        (Request::get("/v1/orders/1"), 1),
        (Request::post("/v1/orders").text("application/json", "{"), 1),
        (Request::post("/v1/orders").json(&good), 1),
        (Request::post("/v1/orders/batch").json(&json!([good, good, good])), 1),
        (Request::post("/v1/keys/ws-token"), 1),
    ];
    for (request, cost) in &rows {
        let spent = in_one_window(60, || {
            let mut client = world.user(0);
            let before = remaining(&mut client);
            client.send(request);
            before - remaining(&mut client) - 1
        });
        assert_eq!(spent, *cost, "{} {}", request.method, request.path);
        cases.one();
    }
}

#[test]
fn public_reads_are_metered_by_address_or_by_key() {
    let cases = Cases::of("public windows");
    let bare = |answer: &Response| {
        answer.refused(429, "RATE_LIMIT_EXCEEDED");
        assert_eq!(answer.header("Retry-After"), Some("1"));
        assert!(
            answer.headers.iter().all(|(name, _)| !name.to_lowercase().contains("ratelimit")),
            "{:?}",
            answer.headers
        );
    };
    let world = World::start_with(3, |place| {
        narrow(place, 3, 1_000);
        place.set("limits", "public_ip_per_second", "2").set("limits", "meter_loopback", "true");
        place.set("http", "trusted_proxies", "[\"127.0.0.1\"]");
    });
    let paths = [
        format!("/v1/book?token_id={}", world.markets.rain.yes()),
        format!("/v1/midpoint?token_id={}", world.markets.rain.yes()),
        "/v1/status".to_string(),
    ];
    // Every burst from its own address or with its own key, so that all of them fit into one window.
    let from = |host: usize, client: Client| client.with_header("X-Forwarded-For", &format!("198.51.100.{host}"));
    let burst = |count: usize, path: &str, client: &dyn Fn() -> Client| -> Vec<Response> {
        (0..count).map(|_| client().get(path)).collect()
    };
    let bursts = in_one_window(1, || {
        paths.each_ref().map(|path| {
            let number = paths.iter().position(|other| other == path).expect("one of them");
            [
                burst(4, path, &|| from(2 * number, world.public())),
                burst(3, path, &|| from(2 * number + 1, world.server.with_key("svc_live_x"))),
                burst(5, path, &|| from(99, world.user(number))),
            ]
        })
    });
    for (path, [public, unusable, keyed]) in paths.iter().zip(&bursts) {
        assert_eq!(statuses(public), [200, 200, 429, 429], "{path} without a key");
        bare(&public[2]);
        assert_eq!(statuses(unusable), [200, 200, 429], "{path}: an unusable key counts as no key");
        bare(&unusable[2]);
        assert_eq!(statuses(keyed), [200, 200, 200, 429, 429], "{path} with a key");
        bare(&keyed[3]);
        assert_eq!(keyed[0].header("X-RateLimit-Tier"), Some("enterprise"));
        cases.add(3);
    }
    // Without a proxy the peer's own address is metered, if configured, and its headers are ignored.
    let world = World::start_with(0, |place| {
        place.set("limits", "public_ip_per_second", "2").set("limits", "meter_loopback", "true");
    });
    let answers = in_one_window(1, || {
        burst(3, "/v1/status", &|| world.public())
            .into_iter()
            .chain(burst(1, "/v1/status", &|| from(7, world.public())))
            .collect::<Vec<_>>()
    });
    assert_eq!(statuses(&answers), [200, 200, 429, 429]);
    cases.one();
    // Loopback is metered only if configured.
    let world = World::start_with(0, |place| _ = place.set("limits", "public_ip_per_second", "1"));
    let path = format!("/v1/book?token_id={}", world.markets.rain.yes());
    let answers: Vec<Response> = (0..5).map(|_| world.public().get(&path)).collect();
    assert_eq!(statuses(&answers), [200; 5]);
    cases.one();
}

#[test]
fn first_keys_are_metered_by_address() {
    let cases = Cases::of("bootstrap windows");
    let answers = in_one_window(60, || {
        let world = World::start_with(0, |place| _ = place.set("limits", "meter_loopback", "true"));
        // A token that fails does not count.
        world.server.with_token("x.y.z").post("/v1/keys/bootstrap", &json!({})).refused(401, "INVALID_TOKEN");
        let ask = |sub: &str| world.server.with_token(&token(sub)).post("/v1/keys/bootstrap", &json!({}));
        [ask("first"), ask("second")]
    });
    answers[0].expect(201);
    answers[1].refused(429, "RATE_LIMIT_EXCEEDED");
    assert!(answers[1].header("Retry-After").is_some());
    cases.add(3);
}

#[test]
fn a_token_is_metered_by_its_user() {
    let cases = Cases::of("token windows");
    let world = World::start_with(0, |place| narrow(place, 3, 1_000));
    let tokens = [
        token("one"),
        tests::token::sign(
            &json!({"alg": "HS256"}),
            &changed(&tests::token::claims("one"), &json!({"email": "x@example.net"})),
            tests::token::SECRET.as_bytes(),
        ),
    ];
    for token in &tokens {
        world.server.with_token(token).get("/v1/me").expect(200);
    }
    let answers =
        in_one_window(1, || (0..4).map(|n| world.server.with_token(&tokens[n % 2]).get("/v1/me")).collect::<Vec<_>>());
    assert_eq!(statuses(&answers), [200, 200, 200, 429], "two tokens of one person share a window");
    cases.add(4);
}

#[test]
fn a_free_day_has_a_hundred_orders() {
    let cases = Cases::of("daily cap");
    let mut world = World::start(0);
    let rain = world.markets.rain.clone();
    let (mut client, person) = world.newcomer("busy");
    let order = limit(&rain, "BUY", "0.01", "5");
    let named = changed(&order, &json!({"client_order_id": "first"}));
    let first = client.post("/v1/orders", &named).expect(200);
    for n in 0..98 {
        let placed = client.post("/v1/orders", &order).expect(200);
        // Cancels, refusals and killed orders do not count.
        client.delete(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
        if n % 10 == 0 {
            client
                .post("/v1/orders", &changed(&order, &json!({"price": "0.015"})))
                .refused(400, "INVALID_ORDER_MIN_TICK_SIZE");
            let fok = changed(&order, &json!({"time_in_force": "FOK"}));
            client.post("/v1/orders", &fok).refused(400, "FOK_ORDER_NOT_FILLED_ERROR");
        }
    }
    world.crash();
    client.moved_to(world.server.address());
    client.post("/v1/orders", &order).expect(200);
    cases.add(100);

    let refused = |client: &mut Client, body: &str| -> Value {
        let request = Request::post("/v1/orders").text("application/json", body).header("X-Svc-Verbose", "true");
        let answer = client.send(&request);
        let wait: u64 = answer.header("Retry-After").expect("a wait").parse().expect("seconds");
        assert!((1..=86_400).contains(&wait), "{wait}");
        answer.refused(429, "FREE_TIER_DAILY_LIMIT")
    };
    let body = refused(&mut client, &order.to_string());
    assert_eq!((int(&body, "/details/limit"), int(&body, "/details/used")), (100, 100));
    assert!(text(&body, "/details/resets_at").ends_with("T00:00:00Z"));
    // Checked before the body is parsed and after it was read (gateway/docs/wire.md §7: 12, 14, 15).
    refused(&mut client, "{\"side\":\"HOLD\"}");
    client.send(&Request::post("/v1/orders").text("application/json", "{")).refused(400, "INVALID_BODY");
    // A replay still succeeds, and a batch reports it per entry.
    let again = client.post("/v1/orders", &named).expect(200);
    assert_eq!((at(&again, "/is_replay"), at(&again, "/order_id")), (&json!(true), at(&first, "/order_id")));
    let batch = client.post("/v1/orders/batch", &json!([order])).expect(200);
    assert_eq!(text(&batch, "/results/0/error"), "FREE_TIER_DAILY_LIMIT");
    // The cap is the user's, not the key's.
    let other = world.server.with_token(&person).post("/v1/keys", &json!({})).expect(201);
    refused(&mut world.server.with_key(text(&other, "/raw_key")), &order.to_string());
    client.get("/v1/orders").expect(200);
    client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200);
    assert_eq!(list(&client.get("/v1/orders?status=PENDING").expect(200), "/orders").len(), 0);
    cases.add(8);
}

#[test]
fn requests_in_flight_are_bounded() {
    let cases = Cases::of("in flight");
    let world = World::start_with(1, |place| _ = place.set("limits.tiers.enterprise", "in_flight", "2"));
    // A request counts as in flight before its body arrives.
    let mut waiting = Vec::new();
    for _ in 0..2 {
        let mut stream = connect(world.server.address()).expect("a connection");
        let head = format!(
            "POST /v1/orders HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
            world.users[0].key
        );
        stream.write_all(head.as_bytes()).expect("half a request");
        waiting.push(stream);
    }
    let refused = tests::eventually("the cap of requests in flight", || {
        Some(world.user(0).get("/v1/orders")).filter(|answer| answer.status == 429)
    });
    refused.refused(429, "RATE_LIMIT_EXCEEDED");
    assert_eq!(refused.header("Retry-After"), Some("1"));
    drop(waiting);
    tests::eventually("the slots to come back", || (world.user(0).get("/v1/orders").status == 200).then_some(()));
    cases.add(2);
}

#[test]
fn placements_in_flight_have_their_own_bound() {
    let cases = Cases::of("placements in flight");
    let world = World::start_with(2, |place| _ = place.set("limits", "placements_per_user", "1"));
    let order = limit(&world.markets.rain, "BUY", "0.30", "10");
    let mut waiting = connect(world.server.address()).expect("a connection");
    let head = format!(
        "POST /v1/orders HTTP/1.1\r\nHost: x\r\nX-API-Key: {}\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n{{",
        world.users[0].key
    );
    waiting.write_all(head.as_bytes()).expect("half a placement");
    let refused = tests::eventually("the cap of placements in flight", || {
        Some(world.user(0).post("/v1/orders", &order)).filter(|answer| answer.status != 200)
    });
    let body = refused.refused(429, "RATE_LIMITED");
    assert_eq!(int(&body, "/retry_after_ms"), 250);
    assert_eq!(refused.header("Retry-After"), Some("1"));
    // Batches too; reads and other users are not affected.
    world.user(0).post("/v1/orders/batch", &json!([order])).refused(429, "RATE_LIMITED");
    world.user(0).get("/v1/orders").expect(200);
    world.user(1).post("/v1/orders", &order).expect(200);
    drop(waiting);
    tests::eventually("the slot to come back", || {
        (world.user(0).post("/v1/orders", &order).status == 200).then_some(())
    });
    cases.add(5);
}
