//! The channel of a user's executions (gateway/docs/streams.md §3) and resume (§1.6).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::socket::{Socket, token};
use tests::tape::Levels;
use tests::token::token as session_token;
use tests::world::{World, changed, limit, market};

const PATH: &str = "/v1/ws/executions";
const QUIET: Levels = &[("0.30", "10")];
const FAR: Levels = &[("0.90", "100")];

fn brisk() -> World {
    World::start_with(2, |place| _ = place.set("flags", "match_interval_ms", "100"))
}

/// A socket of that user, after its greeting.
fn open(world: &World, user: usize, query: &str) -> Socket {
    let mut socket = bare(world, user, query);
    assert_eq!(text(&socket.json(), "/type"), "connected");
    socket
}

fn bare(world: &World, user: usize, query: &str) -> Socket {
    let path = if query.is_empty() { PATH.to_string() } else { format!("{PATH}?{query}") };
    Socket::open(world.server.address(), &path, &[("X-API-Key", &world.users[user].key)])
}

/// Reads until `count` frames of the channel came; then checks that no more come.
fn frames(socket: &mut Socket, count: usize) -> Vec<Value> {
    let frames: Vec<Value> = (0..count).map(|_| socket.json()).collect();
    assert_eq!(socket.so_far(), Vec::<Value>::new(), "after {frames:?}");
    frames
}

fn order_when(client: &mut Client, id: i64, ready: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("order {id}"), || Some(client.get(&format!("/v1/orders/{id}")).expect(200)).filter(&ready))
}

fn place(client: &mut Client, body: &Value) -> i64 {
    int(&client.post("/v1/orders", body).expect(200), "/order_id")
}

/// The frame without the fields that differ between sockets.
fn comparable(frame: &Value) -> Value {
    changed(frame, &json!({"seq": null}))
}

#[test]
fn a_fill_of_a_resting_order_is_what_rest_shows() {
    let cases = Cases::of("executions");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let mut socket = bare(&world, 0, "");
    let greeting = socket.json();
    assert_eq!(text(&greeting, "/type"), "connected");
    assert!(text(&greeting, "/connection_id").starts_with("c-") && int(&greeting, "/ts") > 0);
    assert_eq!((int(&greeting, "/max_subscriptions"), int(&greeting, "/user_id")), (500, world.users[0].id));
    let mut theirs = open(&world, 1, "");
    // A taker's fill is in the answer to its placement and nowhere else.
    place(&mut client, &market(&rain, "BUY", "0.42", "5"));
    let body = changed(&limit(&rain, "BUY", "0.37", "20"), &json!({"client_order_id": "mine-1"}));
    let id = place(&mut client, &body);
    world.tape.books(&rain, QUIET, &[("0.36", "12"), ("0.50", "100")]);
    for (nth, (quantity, remaining, status)) in [("12", "8", "PENDING"), ("8", "0", "FILLED")].into_iter().enumerate() {
        let frame = socket.json();
        // It is visible to a client that reads it when the frame arrives.
        let order = client.get(&format!("/v1/orders/{id}")).expect(200);
        let fill = &list(&order, "/fills")[nth];
        let expected = json!({
            "type": "fill", "order_id": id, "market_id": rain.condition, "side": "BUY", "outcome": "Yes",
            "price": at(fill, "/price"), "quantity": quantity, "filled_at": at(fill, "/filled_at"),
            "client_order_id": "mine-1", "token_id": rain.yes(), "status": status, "remaining_quantity": remaining,
            "fee": at(fill, "/fee"), "wallet_id": at(&order, "/wallet_id"), "trade_id": at(fill, "/trade_id"),
            "venue_time": at(fill, "/venue_time"), "fee_source": "none", "seq": nth + 1, "user_seq": nth + 4
        });
        assert_eq!(frame, expected);
        assert_eq!((text(&frame, "/price"), at(fill, "/quantity")), ("0.37", &json!(quantity)));
        world.tape.books(&rain, QUIET, &[("0.37", "100"), ("0.50", "100")]);
        cases.one();
    }
    // Messages of a peer have no effect here, except heartbeats.
    socket.send(&json!({"action": "subscribe", "markets": ["x"]}));
    socket.send_text("not JSON");
    socket.send(&json!({"type": "ping"}));
    assert_eq!(text(&socket.json(), "/type"), "pong");
    assert_eq!(socket.so_far(), Vec::<Value>::new());
    assert_eq!(theirs.so_far(), Vec::<Value>::new(), "another user's fills are not visible");
    cases.add(3);
}

#[test]
fn all_events_show_the_course_of_resting_orders() {
    let cases = Cases::of("order events");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let mut all = open(&world, 0, "events=all");
    let mut fills = open(&world, 0, "");
    let resting = place(&mut client, &limit(&rain, "BUY", "0.30", "20"));
    let cancelled = place(&mut client, &limit(&rain, "BUY", "0.31", "20"));
    client.delete(&format!("/v1/orders/{cancelled}")).expect(200);
    // None of these ever rests: completely filled, killed with and without a part.
    place(&mut client, &limit(&rain, "BUY", "0.42", "5"));
    let fok = changed(&limit(&rain, "BUY", "0.42", "500"), &json!({"time_in_force": "FOK"}));
    let killed = client.post("/v1/orders", &fok);
    assert_eq!(killed.code(), "FOK_ORDER_NOT_FILLED_ERROR");
    place(&mut client, &changed(&limit(&rain, "BUY", "0.42", "500"), &json!({"time_in_force": "FAK"})));
    // A part is taken, the remainder rests.
    world.tape.books(&rain, QUIET, &[("0.60", "10")]);
    world.until(&format!("/v1/book?token_id={}", rain.yes()), |book| {
        list(book, "/asks").iter().all(|level| text(level, "/price") == "0.6")
            || list(book, "/asks").iter().all(|level| text(level, "/price") == "0.60")
    });
    let mixed = place(&mut client, &limit(&rain, "BUY", "0.60", "30"));
    world.tape.resolve(&rain, ["1", "0"]);
    let mut expected = vec![
        (resting, "PENDING", Value::Null),
        (cancelled, "PENDING", Value::Null),
        (cancelled, "CANCELLED", json!("user_cancelled")),
    ];
    let frames = frames(&mut all, 7);
    let (first, rest) = frames.split_at(3);
    let seen = |frames: &[Value]| -> Vec<(i64, String, Value)> {
        let one = |frame: &Value| {
            assert_eq!(text(frame, "/type"), "order");
            assert!(int(frame, "/ts") > 1_600_000_000_000);
            (int(frame, "/order_id"), text(frame, "/status").to_string(), at(frame, "/cancelled_reason").clone())
        };
        frames.iter().map(one).collect()
    };
    let owned = |rows: &[(i64, &str, Value)]| -> Vec<(i64, String, Value)> {
        rows.iter().map(|(id, status, why)| (*id, status.to_string(), why.clone())).collect()
    };
    assert_eq!(seen(first), owned(&expected));
    // The killed order has a row of its own; its end is reported although it was never reported as resting.
    assert_eq!((text(&rest[0], "/status"), text(&rest[0], "/cancelled_reason")), ("CANCELLED", "fok_not_filled"));
    expected = vec![
        (mixed, "PENDING", Value::Null),
        (resting, "EXPIRED", json!("market_resolved")),
        (mixed, "EXPIRED", json!("market_resolved")),
    ];
    let mut last = seen(&rest[1..]);
    last[1..].sort_by_key(|(id, ..)| *id);
    assert_eq!(last, owned(&expected));
    let numbers: Vec<i64> = frames.iter().map(|frame| int(frame, "/seq")).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    assert!(frames.windows(2).all(|two| int(&two[0], "/user_seq") < int(&two[1], "/user_seq")));
    assert_eq!(fills.so_far(), Vec::<Value>::new());
    cases.add(frames.len());
}

#[test]
fn one_wallet_of_many_can_be_followed() {
    let cases = Cases::of("wallets of executions");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let sandbox = client.post("/v1/me/wallets", &json!({"kind": "SANDBOX", "label": "b"})).expect(201);
    let sandbox = int(&sandbox, "/id");
    let mut ours = open(&world, 0, &format!("wallet_id={sandbox}"));
    let mut api = open(&world, 0, "wallet_id=api");
    let mut both = open(&world, 0, "");
    let mut all = open(&world, 0, "wallet_id=all");
    let first = place(&mut client, &limit(&rain, "BUY", "0.37", "20"));
    let second = changed(&limit(&rain, "BUY", "0.37", "20"), &json!({"wallet_id": sandbox}));
    let second = place(&mut client, &second);
    world.tape.books(&rain, QUIET, &[("0.36", "500")]);
    for (socket, expected) in [
        (&mut ours, vec![second]),
        (&mut api, vec![first]),
        (&mut both, vec![first, second]),
        (&mut all, vec![first, second]),
    ] {
        let mut ids: Vec<i64> = frames(socket, expected.len()).iter().map(|frame| int(frame, "/order_id")).collect();
        ids.sort_unstable();
        assert_eq!(ids, expected);
        cases.one();
    }
    let address = world.server.address();
    for (query, status, code) in [
        ("wallet_id=1", 404, "WALLET_NOT_FOUND"),
        ("wallet_id=x", 422, "VALIDATION_FAILED"),
        ("from_seq=x", 422, "VALIDATION_FAILED"),
        ("from_seq=-1", 422, "VALIDATION_FAILED"),
        ("events=some", 422, "VALIDATION_FAILED"),
    ] {
        let key = ("X-API-Key", world.users[0].key.as_str());
        let refused = Socket::try_open(address, &format!("{PATH}?{query}"), &[key]).err();
        refused.unwrap_or_else(|| panic!("{query} is taken")).refused(status, code);
        cases.one();
    }
}

#[test]
fn who_may_follow() {
    let cases = Cases::of("credentials of executions");
    let world = brisk();
    let (address, mut client) = (world.server.address(), world.user(0));
    let minted = token(&mut client);
    let mut socket = Socket::open(address, &format!("{PATH}?token={minted}"), &[]);
    assert_eq!(int(&socket.json(), "/user_id"), world.users[0].id);
    for query in [
        String::new(),
        "?token=".into(),
        "?token=x".into(),
        format!("?token={minted}"),
        format!("?api_key={}", world.users[0].key),
    ] {
        let (code, _) = Socket::open(address, &format!("{PATH}{query}"), &[]).closed();
        assert_eq!(code, 4001, "{query}");
        cases.one();
    }
    let bearer = format!("Bearer {}", session_token("somebody"));
    for headers in [[("X-API-Key", "svc_live_unknown")], [("Authorization", bearer.as_str())]] {
        let refused = Socket::try_open(address, PATH, &headers).err().expect("no handshake");
        assert_eq!(refused.status, 401);
        cases.one();
    }
    // A key that ends takes its sockets with it, those of its tokens too.
    let made = client.post("/v1/keys", &json!({})).expect(201);
    let mut second = world.server.with_key(text(&made, "/raw_key"));
    let by_token = format!("{PATH}?token={}", token(&mut second));
    let mut sockets =
        [Socket::open(address, PATH, &[("X-API-Key", text(&made, "/raw_key"))]), Socket::open(address, &by_token, &[])];
    sockets.iter_mut().for_each(|socket| _ = socket.json());
    client.delete(&format!("/v1/keys/{}", int(&made, "/id"))).expect(200);
    for socket in &mut sockets {
        assert_eq!(socket.closed().0, 4001);
        cases.one();
    }
    socket.is_alive();
}

#[test]
fn a_resume_continues_across_a_kill() {
    let cases = Cases::of("resumes");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let mut live = open(&world, 0, "events=all&from_seq=0");
    for _ in 0..3 {
        let id = place(&mut client, &limit(&rain, "BUY", "0.37", "20"));
        world.tape.books(&rain, QUIET, &[("0.36", "500")]);
        order_when(&mut client, id, |order| text(order, "/status") == "FILLED");
        world.tape.books(&rain, QUIET, FAR);
        world.until(&format!("/v1/book?token_id={}", rain.yes()), |book| {
            list(book, "/asks").iter().all(|level| text(level, "/price").starts_with("0.9"))
        });
        let id = place(&mut client, &limit(&rain, "BUY", "0.20", "20"));
        client.delete(&format!("/v1/orders/{id}")).expect(200);
    }
    let all: Vec<Value> = frames(&mut live, 12).iter().map(comparable).collect();
    let numbers: Vec<i64> = all.iter().map(|frame| int(frame, "/user_seq")).collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<i64>>());
    for restarts in 0..3 {
        for from in [0, 1, 5, 11, 12, 13, 1_000_000] {
            for (events, kinds) in [("events=all&", vec!["fill", "order"]), ("", vec!["fill"])] {
                let mut socket = open(&world, 0, &format!("{events}from_seq={from}"));
                if from > 12 {
                    // A number of another history: the answer names where this history continues.
                    assert_eq!(socket.json(), json!({"type": "gap", "from_seq": 13}), "from {from}");
                }
                let expected: Vec<Value> = all
                    .iter()
                    .filter(|frame| int(frame, "/user_seq") > from && kinds.contains(&text(frame, "/type")))
                    .cloned()
                    .collect();
                let got = frames(&mut socket, expected.len());
                assert!(got.iter().zip(1..).all(|(frame, seq)| int(frame, "/seq") == seq));
                assert_eq!(
                    got.iter().map(comparable).collect::<Vec<_>>(),
                    expected,
                    "from {from}, restarted {restarts} times"
                );
                cases.one();
            }
        }
        // Without a number no old events are sent.
        assert_eq!(open(&world, 0, "events=all").so_far(), Vec::<Value>::new());
        world.crash();
    }
    // And live events after it.
    let mut client = world.user(0);
    let mut socket = open(&world, 0, "events=all&from_seq=11");
    let id = place(&mut client, &limit(&rain, "BUY", "0.20", "20"));
    let got = frames(&mut socket, 2);
    assert_eq!(comparable(&got[0]), all[11]);
    assert_eq!((int(&got[1], "/user_seq"), int(&got[1], "/order_id")), (13, id));
    cases.add(2);
}

#[test]
fn events_that_are_too_old_are_a_gap() {
    const KEPT: i64 = 65_536;
    let cases = Cases::of("gaps");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    // Orders and their ends, of which the newest facts are kept.
    let batch = json!(vec![limit(&rain, "BUY", "0.20", "5"); 25]);
    let mut newest = 0;
    while newest < KEPT + 1_000 {
        for _ in 0..60 {
            client.post("/v1/orders/batch", &batch).expect(200);
        }
        client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200);
        newest += 2 * 60 * 25;
    }
    let oldest = newest - KEPT + 1;
    for restarted in [false, true] {
        if restarted {
            world.crash();
        }
        for from in [0, 1, oldest - 2] {
            let mut socket = open(&world, 0, &format!("events=all&from_seq={from}"));
            assert_eq!(socket.json(), json!({"type": "gap", "from_seq": oldest}), "from {from}");
            assert_eq!(int(&socket.json(), "/user_seq"), oldest);
            cases.one();
        }
        // More than a queue holds, and to the end.
        for (from, count) in [(oldest - 1, 1), (newest - 3_000, 3_000)] {
            let mut socket = open(&world, 0, &format!("events=all&from_seq={from}"));
            let got: Vec<i64> = (0..count).map(|_| int(&socket.json(), "/user_seq")).collect();
            assert!(got.iter().copied().eq(from + 1..=from + count), "from {from}");
            cases.one();
        }
    }
}

/// One step of a sweep and one of a matching cycle make up to a thousand facts each, more than a socket's queue holds.
#[test]
fn thousands_of_facts_in_one_step_reach_every_reader() {
    const ORDERS: usize = 3_000;
    let cases = Cases::of("bursts of facts");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let mut all = open(&world, 0, "events=all");
    let mut fills = open(&world, 0, "");
    let batch = json!(vec![limit(&rain, "BUY", "0.10", "5"); 25]);
    let seqs = |socket: &mut Socket, status: &str| -> Vec<i64> {
        let frames: Vec<Value> = (0..ORDERS).map(|_| socket.json()).collect();
        assert!(frames.iter().all(|frame| text(frame, "/status") == status), "{status}");
        frames.iter().map(|frame| int(frame, "/user_seq")).collect()
    };
    let mut last_seq = 0;
    for ending in ["CANCELLED", "FILLED"] {
        for _ in 0..ORDERS / 25 {
            client.post("/v1/orders/batch", &batch).expect(200);
        }
        let placed = seqs(&mut all, "PENDING");
        assert!(placed.into_iter().eq(last_seq + 1..=last_seq + ORDERS as i64), "placed, then {ending}");
        match ending {
            "CANCELLED" => _ = client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200),
            _ => world.tape.books(&rain, &[("0.01", "10")], &[("0.10", "1000000")]),
        }
        let ended = last_seq + ORDERS as i64 + 1..=last_seq + 2 * ORDERS as i64;
        assert!(seqs(&mut all, ending).into_iter().eq(ended.clone()), "{ending}");
        if ending == "FILLED" {
            assert!(seqs(&mut fills, ending).into_iter().eq(ended), "{ending}, fills alone");
        } else {
            assert_eq!(fills.so_far(), Vec::<Value>::new(), "nothing was filled, and the socket is open");
        }
        last_seq += 2 * ORDERS as i64;
        cases.one();
    }
}
