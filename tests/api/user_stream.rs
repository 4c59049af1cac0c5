//! The venue's user channel (gateway/docs/streams.md §4.1, §4.3).

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::socket::{Socket, token};
use tests::world::{World, changed, limit, market};

const PATH: &str = "/v1/ws/user";

fn brisk() -> World {
    World::start_with(2, |place| _ = place.set("flags", "match_interval_ms", "100"))
}

fn auth(key: &str) -> Value {
    json!({"type": "user", "auth": {"apiKey": key, "secret": "any", "passphrase": "any"}, "markets": []})
}

/// An authenticated socket with a subscription to everything, or to `more`.
fn open(world: &World, query: &str, more: &Value) -> Socket {
    let mut socket = Socket::open(world.server.address(), &format!("{PATH}{query}"), &[]);
    socket.send(&changed(&auth(&world.users[0].key), more));
    socket.is_alive();
    socket
}

/// Five shares immediately: a fill.
fn take(client: &mut Client, market_of: &tests::tape::Market, price: &str) -> i64 {
    int(&client.post("/v1/orders", &market(market_of, "BUY", price, "5")).expect(200), "/order_id")
}

/// Reads `count` frames; then checks that no more come.
fn frames(socket: &mut Socket, count: usize) -> Vec<Value> {
    let frames: Vec<Value> = (0..count).map(|_| socket.json()).collect();
    assert_eq!(socket.so_far(), Vec::<Value>::new(), "after {frames:?}");
    frames
}

/// The trades that REST lists, newest first.
fn listed(client: &mut Client) -> Vec<Value> {
    list(&client.get("/v1/data/trades?dialect=strict&limit=500").expect(200), "/data").to_vec()
}

/// A handshake's query and headers, and the key of the first frame.
type Handshake<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str);

/// A socket opened that way with a subscription to everything.
fn come(world: &World, (query, headers, key): &Handshake<'_>) -> Socket {
    let mut socket = Socket::open(world.server.address(), &format!("{PATH}{query}"), headers);
    socket.send(&auth(key));
    socket.is_alive();
    socket
}

/// The frames of that type among those that have arrived.
fn of_type<'a>(frames: &'a [Value], kind: &str) -> Vec<&'a Value> {
    frames.iter().filter(|frame| text(frame, "/event_type") == kind).collect()
}

#[test]
fn a_trade_is_what_rest_shows() {
    let cases = Cases::of("trade frames");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let made = client.post("/v1/keys", &json!({})).expect(201);
    let (other, alias) = (text(&made, "/raw_key").to_string(), text(&made, "/venue_api_key").to_string());
    let key = world.users[0].key.clone();
    // Each way, and its owner: the UUID that it shows, the account's, or none if the socket is plain.
    let account = "the account's";
    let ways: [(Handshake<'_>, &str); 11] = [
        (("", vec![], &key), ""),
        (("", vec![], &other), ""),
        (("", vec![("User-Agent", "python-websockets/15.0")], &key), ""),
        (("?dialect=plain", vec![], &alias), ""),
        (("?dialect=plain", vec![("POLY_ADDRESS", "0xA1")], &key), ""),
        (("", vec![], &alias), &alias),
        (("", vec![("POLY_API_KEY", &alias)], &other), &alias),
        (("", vec![("POLY_PASSPHRASE", "svc")], &key), account),
        (("", vec![("User-Agent", "py_clob_client_v2/1.2")], &key), account),
        (("?dialect=strict", vec![], &key), account),
        (("?dialect=strict&from_seq=0", vec![], &key), account),
    ];
    let mut sockets: Vec<(Socket, &Handshake<'_>, &str)> =
        ways.iter().map(|(way, owner)| (come(&world, way), way, *owner)).collect();
    let taken = take(&mut client, &rain, "0.42");
    let rested = int(&client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "20")).expect(200), "/order_id");
    world.tape.books(&rain, &[("0.30", "10")], &[("0.36", "500")]);
    for (socket, way, owner) in &mut sockets {
        let strict = !owner.is_empty();
        // A strict socket also receives orders: below.
        let frames: Vec<Value> = (0..if strict { 5 } else { 2 }).map(|_| socket.json()).collect();
        assert_eq!(socket.so_far(), Vec::<Value>::new(), "{way:?}");
        let trades = of_type(&frames, "trade");
        assert_eq!(trades.len(), 2, "{way:?}: {frames:?}");
        for (frame, (order, role)) in trades.iter().zip([(taken, "TAKER"), (rested, "MAKER")]) {
            // When the frame arrives, reads find the trade.
            let rows = listed(&mut client);
            let row = rows.iter().find(|row| at(row, "/id") == at(frame, "/id")).expect("REST has the trade");
            let fill = &list(&client.get(&format!("/v1/orders/{order}")).expect(200), "/fills")[0].clone();
            assert_eq!(text(frame, "/id"), at(fill, "/trade_id").to_string());
            let owner = if *owner == account { at(row, "/owner") } else { &json!(owner) };
            let when = text(row, "/match_time");
            let mut expected = json!({
                "event_type": "trade", "type": "TRADE", "status": "MATCHED",
                "id": at(row, "/id"), "taker_order_id": at(row, "/taker_order_id"), "market": rain.condition,
                "asset_id": rain.yes(), "side": "BUY", "size": at(row, "/size"), "price": at(row, "/price"),
                "outcome": "Yes", "timestamp": when, "last_update": when, "match_time": when,
                "maker_orders": [], "owner": owner, "trade_owner": owner, "fee_rate_bps": at(row, "/fee_rate_bps"),
                "trader_side": role, "bucket_index": 0, "maker_address": at(row, "/maker_address"),
                "transaction_hash": null
            });
            if strict {
                let hash = Sha256::digest(format!("paper:{}", text(row, "/id")));
                let hash: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
                expected["transaction_hash"] = json!(format!("0x{hash}"));
                expected["side"] = at(row, "/side").clone();
            }
            if strict && role == "MAKER" {
                // The venue's clients take the side as the counterparty's, and their own from the element.
                assert_eq!(at(frame, "/side"), "SELL");
                expected["maker_orders"] = json!([{
                    "order_id": at(row, "/taker_order_id"), "owner": owner, "maker_address": at(row, "/maker_address"),
                    "matched_amount": "20", "price": "0.37", "fee_rate_bps": "0", "asset_id": rain.yes(),
                    "outcome": "Yes", "side": "BUY"
                }]);
            }
            assert_eq!(changed(frame, &json!({"user_seq": null})), expected, "{way:?}");
            assert_eq!((at(row, "/trader_side"), text(frame, "/maker_address").len()), (&json!(role), 42));
            assert!(text(frame, "/taker_order_id").starts_with("0x"));
            cases.one();
        }
    }
}

#[test]
fn who_may_listen() {
    let cases = Cases::of("credentials of the user channel");
    let mut world = World::start_with(2, |place| {
        place.set("flags", "match_interval_ms", "100");
        place.clock_ahead(0);
    });
    let (address, mut client) = (world.server.address(), world.user(0));
    let (key, rain) = (world.users[0].key.clone(), world.markets.rain.clone());
    // Every way of authenticating: first frame, header, token; at the root too.
    let by_token = format!("{PATH}?token={}", token(&mut client));
    type Headers<'a> = Vec<(&'a str, &'a str)>;
    let ways: [(&str, Headers<'_>, Value); 6] = [
        (PATH, vec![], auth(&key)),
        ("/ws/user", vec![], auth(&key)),
        (PATH, vec![("X-API-Key", &key)], json!({"type": "USER"})),
        (PATH, vec![("X-API-Key", &key)], auth(&key)),
        (&by_token, vec![], json!({"type": "subscribe", "markets": []})),
        (PATH, vec![], changed(&auth(&key), &json!({"type": null, "markets": null}))),
    ];
    let mut sockets: Vec<Socket> = ways
        .iter()
        .map(|(path, headers, first)| {
            let mut socket = Socket::open(address, path, headers);
            socket.send(first);
            socket.is_alive();
            socket
        })
        .collect();
    take(&mut client, &rain, "0.42");
    for socket in &mut sockets {
        assert_eq!(text(&frames(socket, 1)[0], "/event_type"), "trade");
        cases.one();
    }
    drop(sockets);
    for (headers, first) in [
        (vec![], auth("svc_live_unknown")),
        (vec![], auth("")),
        (vec![], auth("00000000-0000-8000-8000-000000000000")),
        (vec![("X-API-Key", key.as_str())], auth("svc_live_unknown")),
        (vec![("X-API-Key", key.as_str())], auth(&world.users[1].key)),
    ] {
        let mut socket = Socket::open(address, PATH, &headers);
        socket.send(&first);
        assert_eq!(socket.closed().0, 4001, "{first}");
        cases.one();
    }
    // A read key is enough; once it is revoked its socket ends.
    let read = client.post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let mut reading = Socket::open(address, PATH, &[]);
    reading.send(&auth(text(&read, "/raw_key")));
    take(&mut client, &rain, "0.42");
    assert_eq!(text(&reading.json(), "/event_type"), "trade");
    client.delete(&format!("/v1/keys/{}", int(&read, "/id"))).expect(200);
    assert_eq!(reading.closed().0, 4001);
    // A socket must authenticate within ten seconds; an authenticated one has no timeout.
    let mut known = open(&world, "", &json!({}));
    let mut silent = Socket::open(address, PATH, &[]);
    let mut vague = Socket::open(address, PATH, &[]);
    vague.send(&json!({"type": "user", "markets": []}));
    vague.send(&json!({"type": "user", "auth": {"secret": "x"}}));
    vague.send_text("nonsense");
    assert_eq!(vague.so_far(), Vec::<Value>::new());
    world.place.clock_ahead(11);
    assert_eq!((silent.closed().0, vague.closed().0), (4004, 4004));
    known.is_alive();
    cases.add(4);
}

#[test]
fn subscriptions_choose_markets() {
    let cases = Cases::of("subscriptions of the user channel");
    let world = brisk();
    let mut client = world.user(0);
    let (rain, vote) = (world.markets.rain.clone(), world.markets.vote.clone());
    let mut received_from = |socket: &mut Socket| {
        // One fill in each market, and which of them is sent.
        take(&mut client, &rain, "0.44");
        take(&mut client, &vote, "0.651");
        // The answer to a command proves that the fills before it were sent.
        let mut markets: Vec<String> = Vec::new();
        let mut control = open(&world, "?from_seq=0", &json!({}));
        control.so_far();
        for frame in socket.so_far() {
            markets.push(text(&frame, "/market").to_string());
        }
        (markets.contains(&rain.condition), markets.contains(&vote.condition))
    };
    let unknown = format!("0x{:064x}", 99);
    for (first, then, expected) in [
        (json!({"markets": []}), vec![], (true, true)),
        (json!({"markets": null}), vec![], (true, true)),
        (json!({"markets": [rain.condition]}), vec![], (true, false)),
        (json!({"markets": [unknown]}), vec![], (false, false)),
        (json!({"markets": [unknown, vote.condition]}), vec![], (false, true)),
        (json!({"markets": null, "assets_ids": [rain.no()]}), vec![], (true, false)),
        (json!({"markets": [vote.condition], "asset_ids": [rain.yes()]}), vec![], (true, true)),
        (json!({"markets": [rain.condition]}), vec![json!({"markets": [vote.condition]})], (true, true)),
        (
            json!({"markets": [rain.condition]}),
            vec![json!({"operation": "subscribe", "markets": [vote.condition]})],
            (true, true),
        ),
        (json!({}), vec![json!({"operation": "unsubscribe", "markets": [vote.condition]})], (true, false)),
        (json!({}), vec![json!({"action": "unsubscribe", "assets_ids": [vote.yes()]})], (true, false)),
        (json!({}), vec![json!({"operation": "unsubscribe"})], (false, false)),
        (json!({}), vec![json!({"operation": "unsubscribe", "markets": [unknown]})], (true, true)),
        (
            json!({"markets": [rain.condition]}),
            vec![json!({"operation": "unsubscribe", "markets": [rain.condition]}), json!({"markets": []})],
            (true, true),
        ),
        // Ignored.
        (
            json!({"markets": [rain.condition]}),
            vec![
                json!({"type": "market", "markets": []}),
                json!({"operation": "destroy", "markets": []}),
                json!({"markets": "all"}),
                json!({"assets_ids": [1]}),
                json!([]),
                json!("{}"),
            ],
            (true, false),
        ),
    ] {
        let mut socket = open(&world, "", &first);
        then.iter().for_each(|message| socket.send(message));
        socket.is_alive();
        assert_eq!(received_from(&mut socket), expected, "{first}, then {then:?}");
        cases.one();
    }
}

#[test]
fn errors_are_sent_on_request() {
    let cases = Cases::of("errors of the user channel");
    let world = brisk();
    let mut socket = open(&world, "?errors=1", &json!({}));
    let mut silent = open(&world, "", &json!({}));
    for (message, code, action) in [
        ("nonsense", "INVALID_BODY", ""),
        ("[]", "INVALID_REQUEST", ""),
        (r#"{"type":"market"}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"operation":"leave"}"#, "INVALID_REQUEST", ""),
        (r#"{"operation":"unsubscribe","markets":7}"#, "INVALID_REQUEST", "unsubscribe"),
        (r#"{"assets_ids":{}}"#, "INVALID_REQUEST", "subscribe"),
        (r#"{"markets":["0x1"]}"#, "MARKET_NOT_FOUND", "subscribe"),
    ] {
        for socket in [&mut socket, &mut silent] {
            socket.send_text(message);
        }
        let error = socket.json();
        let refusal = (text(&error, "/event_type"), text(&error, "/code"), text(&error, "/action"));
        assert_eq!(refusal, ("error", code, action), "{message}");
        cases.one();
    }
    assert_eq!(silent.so_far(), Vec::<Value>::new());
    let mut nobody = Socket::open(world.server.address(), &format!("{PATH}?errors=1"), &[]);
    nobody.send(&json!({"type": "user"}));
    assert_eq!(text(&nobody.json(), "/code"), "INVALID_KEY");
    nobody.is_alive();
    cases.one();
}

#[test]
fn numbers_are_sent_to_clients_that_resume() {
    let cases = Cases::of("resumes of the user channel");
    let mut world = brisk();
    let mut client = world.user(0);
    let (rain, vote) = (world.markets.rain.clone(), world.markets.vote.clone());
    // 1 placed, 2 filled, 3 placed and 4 closed, 5 placed, 6 filled.
    take(&mut client, &rain, "0.42");
    let id = int(&client.post("/v1/orders", &limit(&rain, "BUY", "0.20", "5")).expect(200), "/order_id");
    client.delete(&format!("/v1/orders/{id}")).expect(200);
    take(&mut client, &vote, "0.65");
    for _ in 0..2 {
        for (from, more, expected) in [
            (0, json!({}), vec![2, 6]),
            (1, json!({}), vec![2, 6]),
            (2, json!({}), vec![6]),
            (6, json!({}), vec![]),
            (99, json!({}), vec![]),
            (0, json!({"markets": [vote.condition]}), vec![6]),
        ] {
            let mut socket = open_from(&world, from, &more);
            if from > 6 {
                assert_eq!(socket.json(), json!({"type": "gap", "from_seq": 7}), "a number of another history");
            }
            let numbers: Vec<i64> =
                frames(&mut socket, expected.len()).iter().map(|frame| int(frame, "/user_seq")).collect();
            assert_eq!(numbers, expected, "from {from} with {more}");
            cases.one();
        }
        world.crash();
    }
    let mut client = world.user(0);
    let (mut plain, mut numbered) = (open(&world, "", &json!({})), open_from(&world, 6, &json!({})));
    take(&mut client, &rain, "0.44");
    let (plain, numbered) = (plain.json(), numbered.json());
    assert_eq!((at_option(&plain), int(&numbered, "/user_seq")), (None, 8));
    assert_eq!(changed(&numbered, &json!({"user_seq": null})), plain);
    let refused = Socket::try_open(world.server.address(), &format!("{PATH}?from_seq=1.5"), &[]).err();
    refused.expect("no number").refused(422, "VALIDATION_FAILED");
    cases.add(3);
}

/// Like `open`, without a heartbeat: missed frames come before it.
fn open_from(world: &World, from: i64, more: &Value) -> Socket {
    let mut socket = Socket::open(world.server.address(), &format!("{PATH}?from_seq={from}"), &[]);
    socket.send(&changed(&auth(&world.users[0].key), more));
    socket
}

fn at_option(frame: &Value) -> Option<&Value> {
    frame.get("user_seq")
}

#[test]
fn order_events_come_to_clients_of_the_venue_and_to_those_that_ask() {
    let cases = Cases::of("venue order events");
    // The setting, then whether a plain socket, one with the option, and a strict one receive them.
    for (setting, expected) in [
        (None, [false, true, true]),
        (Some("\"strict\""), [false, true, true]),
        (Some("\"all\""), [true, true, true]),
        (Some("\"off\""), [false, false, false]),
        // An older configuration file.
        (Some("true"), [true, true, true]),
        (Some("false"), [false, false, false]),
    ] {
        let mut world = World::start_with(1, |place| {
            place.set("flags", "match_interval_ms", "100");
            if let Some(setting) = setting {
                place.set("streams", "order_events", setting);
            }
        });
        let (address, mut client) = (world.server.address(), world.user(0));
        let (key, rain) = (world.users[0].key.clone(), world.markets.rain.clone());
        let alias = text(&client.post("/v1/keys", &json!({})).expect(201), "/venue_api_key").to_string();
        let mut wanted = auth(&key);
        wanted["auth"]["order_events"] = json!(true);
        let account = text(&listed_order(&mut client, &rain), "/owner").to_string();
        let [plain, asking, strict] = expected;
        let mut sockets = [
            (vec![], wanted, asking, ""),
            (vec![("User-Agent", "nautilus-trader/1.200")], auth(&key), asking, ""),
            (vec![("User-Agent", "python-websockets")], auth(&key), plain, ""),
            (vec![("POLY_ADDRESS", "0xA1")], auth(&key), strict, account.as_str()),
            (vec![], auth(&alias), strict, alias.as_str()),
        ]
        .map(|(headers, first, expected, owner)| {
            let mut socket = Socket::open(address, PATH, &headers);
            socket.send(&first);
            socket.is_alive();
            (socket, expected, owner)
        });
        let rested = int(&client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "20")).expect(200), "/order_id");
        let gone = int(&client.post("/v1/orders", &limit(&rain, "BUY", "0.31", "20")).expect(200), "/order_id");
        client.delete(&format!("/v1/orders/{gone}")).expect(200);
        world.tape.books(&rain, &[("0.30", "10")], &[("0.36", "12")]);
        for (socket, expected, owner) in &mut sockets {
            let got = frames(socket, if *expected { 5 } else { 1 });
            let trade = of_type(&got, "trade")[0];
            let described = list(trade, "/maker_orders").len();
            assert_eq!(described == 1, *expected || !owner.is_empty(), "{setting:?} {owner}");
            if !*expected {
                cases.one();
                continue;
            }
            // Type, order, status, size matched, trades.
            let ids = [rested, gone, gone, rested];
            let updates = [
                ("PLACEMENT", "LIVE", "0", json!([])),
                ("PLACEMENT", "LIVE", "0", json!([])),
                ("CANCELLATION", "CANCELED", "0", json!([])),
                ("UPDATE", "LIVE", "12", json!([at(trade, "/id")])),
            ];
            assert_eq!(at(&got[3], "/event_type"), "trade", "a trade comes before its effect on the order");
            for ((frame, id), (kind, status, matched, trades)) in
                of_type(&got, "order").into_iter().zip(ids).zip(updates)
            {
                let row = client.get(&format!("/v1/data/order/{id}?dialect=strict")).expect(200);
                // Milliseconds, of the second in which it happened.
                let when = text(frame, "/timestamp");
                assert!(when.len() == 13 && when.parse::<i64>().is_ok_and(|at| at / 1_000 >= int(&row, "/created_at")));
                let expected = json!({
                    "event_type": "order", "type": kind, "id": at(&row, "/id"), "owner": owner, "order_owner": owner,
                    "market": rain.condition, "asset_id": rain.yes(), "side": "BUY", "outcome": "Yes",
                    "original_size": "20", "size_matched": matched, "price": at(&row, "/price"), "order_type": "GTC",
                    "expiration": "0", "created_at": at(&row, "/created_at").to_string(), "timestamp": when,
                    "associate_trades": trades, "status": status, "maker_address": at(&row, "/maker_address")
                });
                assert_eq!(frame, &expected, "{setting:?}");
                cases.one();
            }
        }
    }
}

/// A strict row of an order without a remainder.
fn listed_order(client: &mut Client, market_of: &tests::tape::Market) -> Value {
    let id = int(&client.post("/v1/orders", &limit(market_of, "BUY", "0.01", "5")).expect(200), "/order_id");
    client.delete(&format!("/v1/orders/{id}")).expect(200);
    client.get(&format!("/v1/data/order/{id}?dialect=strict")).expect(200)
}

/// Orders in batches, one after the other, with several sockets of the user: each receives all of them.
#[test]
fn two_thousand_orders_close_no_socket_that_reads() {
    const ORDERS: usize = 2_000;
    let cases = Cases::of("bursts of order frames");
    let world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let alias = text(&client.post("/v1/keys", &json!({})).expect(201), "/venue_api_key").to_string();
    // Two that look alike, and one that numbers its frames.
    let ways: [Handshake<'_>; 3] = [("", vec![], &alias), ("", vec![], &alias), ("?from_seq=0", vec![], &alias)];
    let mut sockets = ways.map(|way| come(&world, &way));
    let mut plain = come(&world, &("", vec![], &world.users[0].key));
    let batch = json!(vec![limit(&rain, "BUY", "0.10", "5"); 25]);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..ORDERS / 25 {
                client.post("/v1/orders/batch", &batch).expect(200);
            }
            client.post("/v1/cancel-all?confirm=true", &json!({})).expect(200);
        });
        // Each reads on a thread of its own: a reader that waits for the others would not be reading.
        let reading = sockets.each_mut().map(|socket| {
            scope.spawn(move || {
                let frames: Vec<Value> = (0..2 * ORDERS).map(|_| socket.json()).collect();
                assert_eq!(socket.so_far(), Vec::<Value>::new(), "nothing twice, and the socket is open");
                frames
            })
        });
        let [first, second, numbered] = reading.map(|reading| reading.join().expect("a socket that reads"));
        assert_eq!(first, second);
        let numbers = numbered.iter().map(|frame| int(frame, "/user_seq"));
        assert!(numbers.eq(1..=2 * ORDERS as i64), "every fact once, in order");
        for (at_row, (frame, numbered)) in first.iter().zip(&numbered).enumerate() {
            let kind = if at_row < ORDERS { "PLACEMENT" } else { "CANCELLATION" };
            assert_eq!(text(frame, "/type"), kind, "{at_row}");
            assert_eq!(frame, &changed(numbered, &json!({"user_seq": null})));
        }
        cases.add(first.len());
    });
    assert_eq!(plain.so_far(), Vec::<Value>::new(), "a plain socket receives trades alone");
}
