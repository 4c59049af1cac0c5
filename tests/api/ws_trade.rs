//! Order entry over a socket: every operation compared with its REST equivalent (gateway/docs/streams.md §6).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::socket::{Got, Socket, token};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

const PATH: &str = "/v1/ws/trade";
/// The numbers of one user's objects are below this (engine/docs/orders.md §8: user × 2²⁸ + number).
const NUMBERS: i64 = 1 << 28;

fn open(world: &World, key: &str) -> Socket {
    Socket::open(world.server.address(), PATH, &[("X-API-Key", key)])
}

fn frame(id: &Value, op: &str, params: &Value) -> Value {
    json!({"id": id, "op": op, "params": params})
}

#[track_caller]
fn ask(socket: &mut Socket, op: &str, params: &Value) -> Value {
    socket.send(&frame(&json!("ask"), op, params));
    let answer = socket.json();
    assert_eq!(answer["id"], "ask", "{answer}");
    answer
}

#[track_caller]
fn done(socket: &mut Socket, op: &str, params: &Value) -> Value {
    let answer = ask(socket, op, params);
    assert_eq!(answer["status"], 200, "{answer}");
    answer["result"].clone()
}

#[track_caller]
fn refused(socket: &mut Socket, op: &str, params: &Value, status: u64, code: &str) {
    let answer = ask(socket, op, params);
    assert_eq!((answer["status"].as_u64(), answer["error"]["error"].as_str()), (Some(status), Some(code)), "{answer}");
}

/// An answer without the values that differ between two users with the same requests: ids and times.
fn same_for_all(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let timeless = fields.iter().filter(|(name, _)| !name.ends_with("_at") && *name != "quote_age_ms");
            timeless.map(|(name, value)| (name.clone(), same_for_all(value))).collect()
        }
        Value::Array(items) => items.iter().map(same_for_all).collect(),
        Value::Number(number) => number.as_i64().map_or_else(|| value.clone(), |id| json!(id % NUMBERS)),
        Value::String(text) => {
            text.parse::<i64>().map_or_else(|_| value.clone(), |id| json!((id % NUMBERS).to_string()))
        }
        other => other.clone(),
    }
}

/// `"$3"` is the order of step 3.
fn with_orders(text: &str, orders: &[i64]) -> String {
    let mut text = text.to_owned();
    for (step, order) in orders.iter().enumerate().rev() {
        text =
            text.replace(&format!("\"${step}\""), &order.to_string()).replace(&format!("${step}"), &order.to_string());
    }
    text
}

/// Two users do the same, one by requests and one by operations.
#[test]
fn every_operation_is_answered_as_its_twin() {
    let cases = Cases::of("operations and their twins");
    let world = World::start(3);
    let m = &world.markets;
    let foreign = int(&world.user(2).post("/v1/orders", &limit(&m.rain, "BUY", "0.30", "10")).expect(200), "/order_id");
    let rest = limit(&m.rain, "BUY", "0.37", "20");
    let with = |changes: Value| changed(&rest, &changes);
    let named = |id: &str| with(json!({"client_order_id": id}));
    let gone = json!({"time_in_force": "GTD", "expiration": unix_now() - 60});
    let batch = json!([
        limit(&m.rain, "BUY", "0.36", "10"),
        limit(&m.rain, "SELL", "0.36", "900"),
        changed(&limit(&m.rain, "BUY", "0.42", "1000"), &json!({"time_in_force": "FOK"})),
        {"side": "HOLD"}
    ]);
    let place = |body: Value| ("order.place", body.clone(), "POST", "/v1/orders".to_owned(), Some(body));
    let place_all = |body: Value| ("order.batch", body.clone(), "POST", "/v1/orders/batch".to_owned(), Some(body));
    let status = |params: Value, path: &str| ("order.status", params, "GET", format!("/v1/orders/{path}"), None);
    let cancel = |params: Value, path: &str| ("order.cancel", params, "DELETE", format!("/v1/orders/{path}"), None);
    let sweep = |params: Value, query: &str, body: Value| {
        ("cancel_all", params, "POST", format!("/v1/cancel-all{query}"), Some(body))
    };
    let steps = [
        place(named("g-1")),
        place(named("g-1")),
        place(changed(&named("g-1"), &json!({"quantity": "21"}))),
        place(market(&m.rain, "BUY", "0.42", "10")),
        place(changed(&limit(&m.rain, "BUY", "0.42", "1000"), &json!({"time_in_force": "FOK"}))),
        place(with(json!({"price": "0.375"}))),
        place(limit(&m.rain, "SELL", "0.50", "900")),
        place(with(json!({"price": "0.43", "post_only": true}))),
        place(with(json!({"quantity": "1"}))),
        place(with(json!({"market_id": "0x00"}))),
        place(limit(&m.ended, "BUY", "0.30", "10")),
        place(with(json!({"price": null}))),
        place(with(json!({"quantity": "0"}))),
        place(json!({"side": "HOLD", "price": 7})),
        place(with(json!({"wallet_id": 1}))),
        place(with(gone)),
        place(market(&m.silent, "BUY", "0.50", "10")),
        place(with(json!({"quantity": "900000"}))),
        place(json!({})),
        place_all(json!({"orders": batch})),
        place_all(batch.clone()),
        place_all(json!([])),
        place_all(json!({})),
        place_all(json!(7)),
        place_all(Value::Array(vec![rest.clone(); 101])),
        status(json!({"order_id": "$0"}), "$0"),
        status(json!({"client_order_id": "g-1"}), "by-client-id/g-1"),
        status(json!({"order_id": "$0", "source": "pending"}), "$0?source=pending"),
        status(json!({"order_id": "$3", "source": "pending"}), "$3?source=pending"),
        status(json!({"order_id": "$3", "source": "filled", "wallet_id": "all"}), "$3?source=filled&wallet_id=all"),
        status(json!({"order_id": "$3", "source": "x"}), "$3?source=x"),
        status(json!({"order_id": "$3", "wallet_id": "x"}), "$3?wallet_id=x"),
        status(json!({"order_id": 1}), "1"),
        status(json!({"order_id": foreign}), &foreign.to_string()),
        status(json!({"order_id": "x"}), "x"),
        status(json!({"client_order_id": "a/b"}), "by-client-id/a%2Fb"),
        cancel(json!({"order_id": "$0"}), "$0"),
        cancel(json!({"order_id": "$0"}), "$0"),
        cancel(json!({"order_id": "$3"}), "$3"),
        cancel(json!({"order_id": foreign}), &foreign.to_string()),
        cancel(json!({"order_id": "x"}), "x"),
        place(named("g-2")),
        cancel(json!({"client_order_id": "g-2"}), "by-client-id/g-2"),
        cancel(json!({"client_order_id": "g-2"}), "by-client-id/g-2"),
        cancel(json!({"client_order_id": "never"}), "by-client-id/never"),
        place(named("g-3")),
        sweep(json!({}), "", json!({})),
        sweep(json!({"confirm": false}), "?confirm=false", json!({})),
        sweep(json!({"confirm": "maybe"}), "?confirm=maybe", json!({})),
        sweep(json!({"confirm": true, "wallet_id": 1}), "?confirm=true", json!({"wallet_id": 1})),
        sweep(json!({"confirm": true, "wallet_id": "x"}), "?confirm=true", json!({"wallet_id": "x"})),
        sweep(json!({"confirm": true}), "?confirm=true", json!({})),
        sweep(json!({"confirm": true, "wallet_id": "all"}), "?confirm=true", json!({"wallet_id": "all"})),
    ];
    let (mut client, mut socket) = (world.user(0), open(&world, &world.users[1].key));
    let (mut by_rest, mut by_frame) = (Vec::new(), Vec::new());
    for (number, (op, params, method, path, body)) in steps.iter().enumerate() {
        let mut request = Request::new(method, &with_orders(path, &by_rest));
        if let Some(body) = body {
            request = request.json(body);
        }
        let rest = client.send(&request);
        let params: Value = serde_json::from_str(&with_orders(&params.to_string(), &by_frame)).expect("JSON");
        let answer = ask(&mut socket, op, &params);
        let what = format!("step {number}: {op} {params}\nsocket {answer}\nREST {} {}", rest.status, rest.lossy());
        assert_eq!(answer["status"], rest.status, "{what}");
        let field = if rest.status == 200 { "result" } else { "error" };
        assert_eq!(same_for_all(&answer[field]), same_for_all(&rest.json()), "{what}");
        assert_eq!(answer["code"].as_str(), rest.header("X-Svc-Code"), "{what}");
        let header = |name: &str| rest.header(name).map(|text| text.parse::<i64>().expect("a number"));
        assert_eq!(answer["retry_after"].as_i64(), header("Retry-After"), "{what}");
        let numbered = |id: Option<i64>| id.map(|id| id % NUMBERS);
        assert_eq!(numbered(answer["order_id"].as_i64()), numbered(header("X-Svc-Order-Id")), "{what}");
        let rate = ["limit", "limit_per_second"].map(|name| answer["rate"][name].as_i64());
        assert_eq!(rate, ["X-RateLimit-Limit", "X-RateLimit-Limit-Per-Second"].map(header), "{what}");
        assert_eq!(answer["rate"]["tier"].as_str(), rest.header("X-RateLimit-Tier"), "{what}");
        by_rest.push(rest.json()["order_id"].as_i64().unwrap_or_default());
        by_frame.push(answer["result"]["order_id"].as_i64().unwrap_or_default());
        cases.one();
    }
    // Both have the same orders in the end.
    let orders = |user: usize| same_for_all(&world.user(user).get("/v1/orders?limit=200").expect(200)["orders"]);
    assert_eq!(orders(0), orders(1));
    assert!(list(&orders(0), "").len() > 5);
}

#[test]
fn both_doors_know_the_same_ids() {
    let cases = Cases::of("ids over both doors");
    let mut world = World::start(1);
    let body = limit(&world.markets.rain, "BUY", "0.37", "20");
    let named = |id: &str| changed(&body, &json!({"client_order_id": id}));
    let key = world.users[0].key.clone();
    let (mut client, mut socket) = (world.user(0), open(&world, &key));

    let by_rest = client.post("/v1/orders", &named("rest")).expect(200);
    let by_header =
        client.send(&Request::post("/v1/orders").json(&body).header("Idempotency-Key", "header")).expect(200);
    let by_frame = done(&mut socket, "order.place", &named("frame"));
    assert_eq!(by_frame["is_replay"], false);
    let firsts = [("rest", by_rest), ("header", by_header), ("frame", by_frame)];
    let replays = |client: &mut Client, socket: &mut Socket| {
        for (id, first) in &firsts {
            for again in [done(socket, "order.place", &named(id)), client.post("/v1/orders", &named(id)).expect(200)] {
                assert_eq!((&again["order_id"], &again["is_replay"]), (&first["order_id"], &json!(true)), "{id}");
                cases.one();
            }
            let other = changed(&named(id), &json!({"quantity": "21"}));
            refused(socket, "order.place", &other, 409, "DUPLICATE_CLIENT_ORDER_ID");
            client.post("/v1/orders", &other).refused(409, "DUPLICATE_CLIENT_ORDER_ID");
            cases.add(2);
        }
    };
    replays(&mut client, &mut socket);
    world.crash();
    let (mut client, mut socket) = (world.user(0), open(&world, &key));
    replays(&mut client, &mut socket);
    assert_eq!(list(&client.get("/v1/orders").expect(200), "/orders").len(), 3);
}

/// Repeats `burst` until it is completely inside one second.
fn in_one_second<T>(mut burst: impl FnMut() -> T) -> T {
    loop {
        let begun = unix_now();
        let second = tests::eventually("the next second", || Some(unix_now()).filter(|now| *now != begun));
        let outcome = burst();
        if unix_now() == second {
            return outcome;
        }
    }
}

#[test]
fn windows_are_shared_with_rest() {
    let cases = Cases::of("windows over both doors");
    let world = World::start_with(1, |place| {
        place.set("limits.tiers.enterprise", "requests_per_second", "4");
    });
    let rest = limit(&world.markets.rain, "BUY", "0.30", "10");
    let (mut client, mut socket) = (world.user(0), open(&world, &world.users[0].key));
    let (counted, refused, by_rest) = in_one_second(|| {
        let mut counted = vec![ask(&mut socket, "order.place", &rest)];
        assert_eq!(
            ask(&mut socket, "nothing", &json!({}))["rate"],
            Value::Null,
            "a message that is not an operation does not count"
        );
        counted.push(ask(&mut socket, "order.batch", &json!([rest, rest, rest])));
        client.get("/v1/orders");
        counted.push(ask(&mut socket, "order.status", &json!({"order_id": 1})));
        (counted, ask(&mut socket, "order.place", &rest), client.get("/v1/orders"))
    });
    let left: Vec<_> = counted.iter().map(|answer| answer["rate"]["remaining_per_second"].as_i64()).collect();
    assert_eq!(left, [Some(3), Some(2), Some(0)], "a batch counts once, and so does a refused lookup");
    by_rest.refused(429, "RATE_LIMIT_EXCEEDED");
    let shown = (&refused["status"], &refused["error"]["error"], &refused["code"], &refused["retry_after"]);
    let code = json!("RATE_LIMIT_EXCEEDED");
    assert_eq!(shown, (&json!(429), &code, &code, &json!(1)), "{refused}");
    assert_eq!(refused["rate"]["remaining_per_second"], 0);
    assert!(int(&refused, "/rate/reset").abs_diff(unix_now() as i64) <= 60);
    // Refused ones did not count, and the next second is a new one.
    in_one_second(|| assert_eq!(ask(&mut socket, "order.place", &rest)["status"], 200));
    cases.add(6);
}

#[test]
fn who_may_come_in() {
    let cases = Cases::of("credentials of the trade channel");
    let world = World::start(1);
    let address = world.server.address();
    let key = world.users[0].key.clone();
    let rest = limit(&world.markets.rain, "BUY", "0.30", "10");
    let (mut newcomer, session) = world.newcomer("trade-1");

    // A token that a key minted trades, once.
    let minted = token(&mut world.user(0));
    let target = format!("{PATH}?token={minted}");
    let mut socket = Socket::open(address, &target, &[]);
    assert_eq!(done(&mut socket, "order.place", &rest)["status"], "PENDING");
    let (code, _) = Socket::open(address, &target, &[]).closed();
    assert_eq!(code, 4001, "a token is valid once");
    // One that a session token minted does not.
    let minted = token(&mut world.server.with_token(&session));
    let (code, reason) = Socket::open(address, &format!("{PATH}?token={minted}"), &[]).closed();
    assert_eq!((code, reason.as_str()), (4003, "INSUFFICIENT_PERMISSION"));
    for target in
        [PATH.to_owned(), format!("{PATH}?token="), format!("{PATH}?token=x"), format!("{PATH}?api_key={key}")]
    {
        assert_eq!(Socket::open(address, &target, &[]).closed().0, 4001, "{target}");
        cases.one();
    }
    let bearer = format!("Bearer {session}");
    for (header, value) in [("X-API-Key", "svc_live_0"), ("Authorization", bearer.as_str())] {
        let refused = Socket::try_open(address, PATH, &[(header, value)]).err().expect("refused before the upgrade");
        assert_eq!(refused.status, 401, "{header}");
        cases.one();
    }
    // A read-only key may connect, and each operation is refused.
    let made = newcomer.post("/v1/keys", &json!({"name": "reader", "permissions": ["read"]})).expect(201);
    let mut socket = open(&world, text(&made, "/raw_key"));
    for (op, params) in [
        ("order.place", rest.clone()),
        ("order.batch", json!([rest])),
        ("order.cancel", json!({"order_id": 1})),
        ("cancel_all", json!({"confirm": true})),
    ] {
        refused(&mut socket, op, &params, 403, "INSUFFICIENT_PERMISSION");
        cases.one();
    }
    refused(&mut socket, "order.status", &json!({"order_id": 1}), 404, "ORDER_NOT_FOUND");
    cases.add(4);
}

#[test]
fn a_revoked_key_trades_no_more() {
    let cases = Cases::of("revoked while connected");
    let world = World::start(0);
    let (mut client, session) = world.newcomer("trade-2");
    let made = client.post("/v1/keys", &json!({"name": "other"})).expect(201);
    let mut socket = open(&world, text(&made, "/raw_key"));
    refused(&mut socket, "order.status", &json!({"order_id": 1}), 404, "ORDER_NOT_FOUND");
    world.server.with_token(&session).delete(&format!("/v1/keys/{}", int(&made, "/id"))).expect(200);
    socket.send(&frame(&json!(1), "cancel_all", &json!({"confirm": true})));
    // The sweep may have been first.
    let closed = match socket.receive() {
        Got::Text(answer) => {
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!((&answer["status"], &answer["code"]), (&json!(401), &json!("INVALID_KEY")), "{answer}");
            socket.closed()
        }
        Got::Close(code, reason) => (code, reason),
        other => panic!("{other:?}"),
    };
    assert_eq!(closed, (4001, "INVALID_KEY".to_owned()));
    cases.add(2);
}

#[test]
fn what_is_no_operation_is_answered() {
    let cases = Cases::of("frames that are no operations");
    let world = World::start(1);
    let mut socket = open(&world, &world.users[0].key);
    let long = "x".repeat(65);
    let rows = [
        ("x".to_owned(), Value::Null, "INVALID_BODY"),
        ("[]".to_owned(), Value::Null, "INVALID_BODY"),
        (r#"{"op":"cancel_all"}"#.to_owned(), Value::Null, "INVALID_REQUEST"),
        (r#"{"id":1.5,"op":"cancel_all"}"#.to_owned(), Value::Null, "INVALID_REQUEST"),
        (format!(r#"{{"id":"{long}","op":"cancel_all"}}"#), Value::Null, "INVALID_REQUEST"),
        (r#"{"id":1}"#.to_owned(), json!(1), "INVALID_REQUEST"),
        (r#"{"id":"a","op":"order.amend","params":{}}"#.to_owned(), json!("a"), "INVALID_REQUEST"),
        (r#"{"id":-7,"op":"order.place"}"#.to_owned(), json!(-7), "INVALID_REQUEST"),
        (r#"{"id":"","op":"order.cancel","params":{}}"#.to_owned(), json!(""), "INVALID_REQUEST"),
    ];
    for (sent, id, code) in &rows {
        socket.send_text(sent);
        let answer = socket.json();
        let shown = (&answer["id"], &answer["status"], at(&answer, "/error/error"));
        assert_eq!(shown, (id, &json!(400), &json!(code)), "{sent}");
        cases.one();
    }
    // Heartbeats do not count.
    for (sent, kind) in [("PING", "PONG"), (r#"{"action":"ping"}"#, "pong"), (r#"{"type":"ping"}"#, "pong")] {
        socket.send_text(sent);
        let frame = socket.text();
        assert!(frame == kind || frame.contains(&format!("\"{kind}\"")), "{frame}");
        cases.one();
    }
    // Refused operations, in any number, leave it open: each has an answer (gateway/docs/streams.md §1.3).
    for number in 0..100 {
        socket.send(&frame(&json!(number), "order.status", &json!({"order_id": 1})));
    }
    let ids: BTreeSet<i64> = (0..100).map(|_| int(&socket.json(), "/id")).collect();
    assert_eq!(ids.len(), 100);
    // Messages without an operation are answered while they are few; operations as often as any frame.
    let nameless = rows.iter().filter(|(_, id, _)| id.is_null()).count();
    (nameless..20).for_each(|_| socket.send_text("nonsense"));
    (nameless..20).for_each(|_| assert_eq!(at(&socket.json(), "/error/error"), "INVALID_BODY"));
    socket.send(&frame(&json!(21), "order.amend", &json!({})));
    assert_eq!(int(&socket.json(), "/id"), 21);
    socket.is_alive();
    socket.send_text("nonsense");
    assert_eq!(at(&socket.json(), "/error/error"), "INVALID_BODY");
    assert_eq!(socket.closed(), (4008, "INVALID_REQUEST".to_owned()));
    cases.add(3);
}

#[test]
fn many_operations_are_in_flight() {
    let cases = Cases::of("operations in one write");
    let world = World::start_with(1, |place| {
        place.set("limits.tiers.enterprise", "in_flight", "100000");
        place.set("limits", "placements_per_user", "100000");
        place.set("limits", "placements_per_server", "100000");
    });
    let rest = limit(&world.markets.rain, "BUY", "0.10", "10");
    let mut socket = open(&world, &world.users[0].key);
    // More than may be in flight, more than a queue of answers holds, and placed before they are cancelled: operations
    // begin in the order in which they were sent.
    const PLACED: usize = 700;
    let mut bytes = Vec::new();
    for number in 0..PLACED {
        let id = format!("o-{number}");
        let body = changed(&rest, &json!({"client_order_id": id}));
        for (op, params) in [("order.place", body), ("order.cancel", json!({"client_order_id": id}))] {
            let sent = frame(&json!(format!("{op} {number}")), op, &params).to_string();
            bytes.extend(tests::socket::frame(tests::socket::TEXT, sent.as_bytes()));
        }
    }
    let address = world.server.address();
    std::thread::scope(|scope| {
        let mut sender = socket.sender();
        scope.spawn(move || sender(&bytes));
        let mut ids = BTreeSet::new();
        for _ in 0..2 * PLACED {
            let answer = socket.json();
            assert_eq!(answer["status"], 200, "{address}: {answer}");
            let op = text(&answer, "/id").split(' ').next().expect("an op").to_owned();
            let status = if op == "order.place" { "PENDING" } else { "CANCELLED" };
            assert_eq!(answer["result"]["status"], status, "{answer}");
            assert!(ids.insert(text(&answer, "/id").to_owned()), "answered twice: {answer}");
        }
    });
    cases.add(2 * PLACED);
}

/// A client that lost the answer looks the order up: it exists, or never did.
#[test]
fn after_a_kill_an_order_is_there_or_not() {
    let cases = Cases::of("operations and a kill");
    let mut world = World::start(1);
    let key = world.users[0].key.clone();
    let rest = limit(&world.markets.rain, "BUY", "0.10", "10");
    for round in 0..3 {
        let mut socket = open(&world, &key);
        let id = |number: usize| format!("r{round}-{number}");
        for number in 0..200 {
            let body = changed(&rest, &json!({"client_order_id": id(number)}));
            socket.send(&frame(&json!(number), "order.place", &body));
        }
        // Some were answered when it is killed, some are in flight, some were never read.
        let mut acknowledged: Vec<(usize, i64)> = Vec::new();
        let mut heard = |answer: Value| {
            if answer["status"] == 200 {
                acknowledged.push((int(&answer, "/id") as usize, int(&answer, "/result/order_id")));
            }
        };
        (0..20).for_each(|_| heard(socket.json()));
        world.crash();
        while let Got::Text(answer) = socket.receive() {
            heard(serde_json::from_str(&answer).expect("JSON"));
        }
        let mut socket = open(&world, &key);
        for (number, order) in &acknowledged {
            let found = done(&mut socket, "order.status", &json!({"client_order_id": id(*number)}));
            assert_eq!(int(&found, "/order_id"), *order, "an acknowledged order is lost");
            cases.one();
        }
        let mut there = 0;
        for number in 0..200 {
            let known = ask(&mut socket, "order.status", &json!({"client_order_id": id(number)}));
            let again = done(&mut socket, "order.place", &changed(&rest, &json!({"client_order_id": id(number)})));
            assert_eq!(known["status"] == 200, again["is_replay"] == true, "{known}\n{again}");
            there += usize::from(known["status"] == 200);
            cases.one();
        }
        assert!(there >= acknowledged.len());
        let swept = done(&mut socket, "cancel_all", &json!({"confirm": true}));
        assert_eq!(list(&swept, "/canceled").len(), 200, "one order for each id");
    }
}
