//! Sockets of all channels: admission and caps, tokens, heartbeats, and every way a socket ends
//! (gateway/docs/streams.md §1).

use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use tests::cases::Cases;
use tests::eventually;
use tests::json::{int, text};
use tests::socket::{Got, PING, PONG, Socket, token};
use tests::token::token as identity;
use tests::world::World;

const CHANNELS: [&str; 5] = ["/v1/ws/prices", "/v1/ws/executions", "/v1/ws/user", "/v1/ws/market", "/v1/ws/trade"];

fn open(world: &World, path: &str, headers: &[(&str, &str)]) -> Socket {
    Socket::open(world.server.address(), path, headers)
}

/// The socket is accepted, and closed with that code and reason before any other frame.
#[track_caller]
fn refused(world: &World, path: &str, expected: (u16, &str)) {
    let mut socket = open(world, path, &[]);
    assert_eq!(socket.receive(), Got::Close(expected.0, expected.1.to_string()), "{path}");
    assert_eq!(socket.receive(), Got::Gone);
}

#[test]
fn a_token_opens_one_socket() {
    let cases = Cases::of("socket tokens");
    let mut world = World::start_with(2, |place| _ = place.clock_ahead(0));
    let mut user = world.user(0);
    for path in CHANNELS.into_iter().chain(["/ws/market", "/ws/user"]) {
        let once = token(&mut user);
        let with = format!("{path}?token={once}");
        open(&world, &with, &[]).is_alive();
        refused(&world, &with, (4001, "INVALID_TOKEN"));
        for wrong in ["x", "a.b.c", &once[..once.len() - 2], &identity("somebody")] {
            refused(&world, &format!("{path}?token={wrong}"), (4001, "INVALID_TOKEN"));
            cases.one();
        }
        cases.one();
    }
    // A request that is not a handshake spends nothing.
    let kept = token(&mut user);
    let with = format!("/v1/ws/prices?token={kept}");
    world.public().get(&with).refused(400, "INVALID_REQUEST");
    for method in ["HEAD", "GET"] {
        let version = if method == "GET" { "1.0" } else { "1.1" };
        let head = format!(
            "{method} {with} HTTP/{version}\r\nHost: t\r\nConnection: Upgrade, close\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        let mut stream = tests::http::connect(world.server.address()).expect("the server listens");
        stream.write_all(head.as_bytes()).expect("the server takes a head");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        assert!(answer.lines().next().is_some_and(|line| line.contains(" 400 ")), "{method} {version}: {answer}");
        cases.one();
    }
    open(&world, &with, &[]).is_alive();
    for path in ["/v1/ws/prices", "/v1/ws/executions"] {
        refused(&world, path, (4001, "MISSING_AUTH"));
        refused(&world, &format!("{path}?token="), (4001, "MISSING_AUTH"));
        // A key in the query would appear in every proxy's log.
        refused(&world, &format!("{path}?api_key={}", world.users[0].key), (4001, "MISSING_AUTH"));
        cases.one();
    }
    // It expires a minute later; a socket that was opened in time continues.
    let (late, early) = (token(&mut user), token(&mut user));
    let mut lives = open(&world, &format!("/v1/ws/prices?token={early}"), &[]);
    world.place.clock_ahead(59);
    eventually("a clock that is ahead", || {
        let health = world.public().get("/v1/time").json();
        let ahead = health.as_u64().or(health.get("time").and_then(Value::as_u64))?;
        (ahead >= tests::token::unix_now() + 58).then_some(())
    });
    lives.is_alive();
    world.place.clock_ahead(61);
    eventually("an expired token", || {
        let mut socket = open(&world, &format!("/v1/ws/prices?token={late}"), &[]);
        match socket.receive() {
            Got::Close(4001, reason) if reason == "TOKEN_EXPIRED" => Some(()),
            _ => panic!("the token was still valid, and is spent now"),
        }
    });
    cases.one();
}

#[test]
fn a_header_is_refused_by_its_status() {
    let cases = Cases::of("socket headers");
    let world = World::start(1);
    let address = world.server.address();
    let key = world.users[0].key.clone();
    let session = format!("Bearer {}", identity("somebody"));
    let bearer = format!("Bearer {key}");
    let unknown = format!("{}0", &key[..key.len() - 1]);
    let unknown = if unknown == key { format!("{}1", &key[..key.len() - 1]) } else { unknown };
    for path in CHANNELS {
        for headers in [("X-API-Key", key.as_str()), ("Authorization", bearer.as_str())] {
            Socket::open(address, path, &[headers]).is_alive();
            cases.one();
        }
        for (headers, status, code) in [
            (("X-API-Key", unknown.as_str()), 401, "INVALID_KEY"),
            (("X-API-Key", "nonsense"), 401, "INVALID_KEY"),
            (("Authorization", session.as_str()), 401, "INVALID_KEY"),
        ] {
            let Err(answer) = Socket::try_open(address, path, &[headers]) else { panic!("{path} let {headers:?} in") };
            answer.refused(status, code);
            cases.one();
        }
    }
}

#[test]
fn a_tier_has_so_many_sockets() {
    let cases = Cases::of("socket caps");
    for (tier, cap) in [("free", 1), ("pro", 3), ("pro_plus", 10), ("enterprise", 50)] {
        let mut users = Vec::new();
        let world = World::start_with(0, |place| users = place.seed(1, tier, "10000"));
        let key = users[0].key.clone();
        let header = [("X-API-Key", key.as_str())];
        // One user over all channels, with any credential.
        let mut sockets: Vec<Socket> =
            (0..cap).map(|at| open(&world, CHANNELS[at % CHANNELS.len()], &header)).collect();
        sockets.iter_mut().for_each(Socket::is_alive);
        for path in CHANNELS {
            let mut socket = open(&world, path, &header);
            assert_eq!(socket.closed(), (4002, "CONNECTION_LIMIT".to_string()), "{tier}: {path}");
            cases.one();
        }
        let mut client = world.server.with_key(&key);
        let kept = token(&mut client);
        refused(&world, &format!("/v1/ws/prices?token={kept}"), (4002, "CONNECTION_LIMIT"));
        // Other users are not affected; a freed place is available immediately, and the token was not spent.
        sockets.iter_mut().for_each(Socket::is_alive);
        let mut gone = sockets.pop().expect("at least one");
        gone.send_close(1000, "");
        assert_eq!(gone.closed().0, 1000);
        open(&world, &format!("/v1/ws/prices?token={kept}"), &[]).is_alive();
        cases.one();
    }
}

#[test]
fn an_address_has_five_sockets_without_a_key() {
    let cases = Cases::of("anonymous sockets");
    let world = World::start_with(1, |place| _ = place.set("limits", "meter_loopback", "true"));
    let mut sockets: Vec<Socket> = (0..5).map(|_| open(&world, "/v1/ws/market", &[])).collect();
    sockets.iter_mut().for_each(Socket::is_alive);
    for path in ["/v1/ws/market", "/ws/market"] {
        refused(&world, path, (4002, "CONNECTION_LIMIT"));
        cases.one();
    }
    // A key has places of its own.
    open(&world, "/v1/ws/market", &[("X-API-Key", world.users[0].key.as_str())]).is_alive();
    drop(sockets.pop());
    eventually("a place that is free again", || {
        let mut socket = open(&world, "/ws/market", &[]);
        socket.send_frame(PING, b"?");
        (socket.receive() == Got::Pong(b"?".to_vec())).then_some(())
    });
    cases.one();
    // On a loopback that is not metered there is no cap.
    let world = World::start(0);
    let mut sockets: Vec<Socket> = (0..30).map(|_| open(&world, "/v1/ws/market", &[])).collect();
    sockets.iter_mut().for_each(Socket::is_alive);
    cases.one();
}

#[test]
fn every_channel_beats() {
    let cases = Cases::of("heartbeats");
    let world = World::start(1);
    let header = [("X-API-Key", world.users[0].key.as_str())];
    for path in CHANNELS {
        let mut socket = open(&world, path, &header);
        socket.so_far();
        socket.send_text("PING");
        assert_eq!(socket.text(), "PONG", "{path}");
        socket.send_text("{}");
        socket.send_text(" PING \n");
        assert_eq!(socket.text(), "PONG", "{path}: an empty object is ignored");
        for ping in [json!({"action": "ping"}), json!({"type": "ping"}), json!({"type": "ping", "id": 7})] {
            socket.send(&ping);
            let pong = socket.json();
            assert_eq!(text(&pong, "/type"), "pong", "{path}: {ping}");
            let seconds = int(&pong, "/ts") / 1_000;
            assert!(seconds.abs_diff(tests::token::unix_now() as i64) < 60, "{pong}");
            assert!(text(&pong, "/timestamp").ends_with('Z'), "{pong}");
            cases.one();
        }
        socket.send_frame(PING, b"");
        assert_eq!(socket.receive(), Got::Pong(Vec::new()), "{path}");
        cases.one();
    }
}

/// A socket without a credential so far counts for its address.
#[test]
fn an_address_has_five_sockets_before_their_keys() {
    let cases = Cases::of("sockets that have shown no key yet");
    let world = World::start_with(1, |place| _ = place.set("limits", "meter_loopback", "true"));
    let mut sockets: Vec<Socket> = (0..5).map(|_| open(&world, "/v1/ws/user", &[])).collect();
    sockets.iter_mut().for_each(Socket::is_alive);
    for path in ["/v1/ws/user", "/ws/user"] {
        refused(&world, path, (4002, "CONNECTION_LIMIT"));
        cases.one();
    }
    // Anonymous sockets and authenticated ones do not share places.
    open(&world, "/v1/ws/market", &[]).is_alive();
    cases.one();
    // A key gives the place back, whether it comes in the first frame or with the handshake.
    for _ in 0..3 {
        let mut known = open(&world, "/v1/ws/user", &[("X-API-Key", world.users[0].key.as_str())]);
        known.is_alive();
        let mut first = sockets.remove(0);
        first.send(&json!({"type": "user", "auth": {"apiKey": world.users[0].key}, "markets": []}));
        first.is_alive();
        sockets.push(open(&world, "/v1/ws/user", &[]));
        sockets.iter_mut().for_each(Socket::is_alive);
        refused(&world, "/ws/user", (4002, "CONNECTION_LIMIT"));
        first.is_alive();
        cases.one();
    }
}

/// The server's own clock decides; the test moves it.
#[test]
fn a_silent_socket_is_closed() {
    let cases = Cases::of("idle sockets");
    let mut world = World::start_with(1, |place| _ = place.clock_ahead(0));
    let header = [("X-API-Key", world.users[0].key.as_str())];
    let mut sockets: Vec<Socket> = CHANNELS.iter().map(|path| open(&world, path, &header)).collect();
    for socket in &mut sockets {
        socket.is_alive();
        socket.answers_pings = false;
    }
    world.place.clock_ahead(25);
    // The server sends pings on its own.
    for socket in &mut sockets {
        while !matches!(socket.receive(), Got::Ping(_)) {}
        socket.send_frame(PONG, b"");
        socket.is_alive();
        cases.one();
    }
    // Nothing was received for a minute.
    world.place.clock_ahead(25 + 61);
    for socket in &mut sockets {
        assert_eq!(socket.closed(), (4010, "IDLE_TIMEOUT".to_string()));
        cases.one();
    }
    // A socket must authenticate within ten seconds.
    let mut silent = open(&world, "/v1/ws/user", &[]);
    silent.is_alive();
    world.place.clock_ahead(25 + 61 + 11);
    assert_eq!(silent.closed(), (4004, "AUTH_TIMEOUT".to_string()));
    cases.one();
}

#[test]
fn a_key_that_ends_takes_its_sockets_with_it() {
    let cases = Cases::of("ended keys");
    let world = World::start(1);
    let mut owner = world.user(0);
    let made = owner.post("/v1/keys", &json!({"name": "second"})).expect(201);
    let (raw, id) = (text(&made, "/raw_key").to_string(), int(&made, "/id"));
    let header = [("X-API-Key", raw.as_str())];
    let minted = token(&mut world.server.with_key(&raw));
    let mut sockets: Vec<Socket> = CHANNELS.iter().map(|path| open(&world, path, &header)).collect();
    sockets.push(open(&world, &format!("/v1/ws/executions?token={minted}"), &[]));
    let mut first_frame = open(&world, "/v1/ws/user", &[]);
    first_frame.send(&json!({"type": "user", "auth": {"apiKey": raw}, "markets": []}));
    sockets.push(first_frame);
    sockets.iter_mut().for_each(Socket::is_alive);
    let mut other = open(&world, "/v1/ws/executions", &[("X-API-Key", world.users[0].key.as_str())]);
    owner.delete(&format!("/v1/keys/{id}")).expect(200);
    for socket in &mut sockets {
        assert_eq!(socket.closed(), (4001, "INVALID_KEY".to_string()));
        cases.one();
    }
    other.is_alive();
    let Err(answer) = Socket::try_open(world.server.address(), "/v1/ws/prices", &header) else { panic!("let in") };
    answer.refused(401, "INVALID_KEY");
    cases.one();
}

#[test]
fn a_stopping_server_closes_its_sockets() {
    let cases = Cases::of("the last frames");
    let world = World::start(1);
    let header = [("X-API-Key", world.users[0].key.as_str())];
    let mut sockets: Vec<Socket> = CHANNELS.iter().map(|path| open(&world, path, &header)).collect();
    sockets.iter_mut().for_each(Socket::is_alive);
    world.server.terminate();
    for socket in &mut sockets {
        assert_eq!(socket.closed(), (1001, "SERVER_SHUTDOWN".to_string()));
        cases.one();
    }
    let (status, output) = world.server.ended();
    assert!(status.success(), "{output}");
    cases.one();
}

/// Nothing about a socket counts as a request (gateway/docs/streams.md §1.4).
#[test]
fn sockets_are_no_requests() {
    let cases = Cases::of("sockets and windows");
    let mut users = Vec::new();
    let world = World::start_with(0, |place| users = place.seed(1, "free", "10000"));
    let mut client = world.server.with_key(&users[0].key);
    let left = |client: &mut tests::http::Client| -> i64 {
        let answer = client.get("/v1/keys/tiers");
        answer.header("X-RateLimit-Remaining").expect("a number").parse().expect("a number")
    };
    let before = left(&mut client);
    for _ in 0..20 {
        let mut socket = open(&world, "/v1/ws/prices", &[("X-API-Key", users[0].key.as_str())]);
        socket.is_alive();
        socket.send_close(1000, "");
        assert_eq!(socket.closed().0, 1000);
        cases.one();
    }
    let after = left(&mut client);
    // A new minute may have begun; otherwise only this read has counted.
    assert!(after >= before - 1, "{before} left before, {after} after");
}

#[test]
fn no_two_sockets_of_a_process_have_one_id() {
    let cases = Cases::of("connection ids");
    let world = World::start_with(1, |place| {
        place.set("engine", "shards", "2").set("server", "io_threads", "2");
    });
    let open = |path: &str| {
        let mut socket = Socket::open(world.server.address(), path, &[("X-API-Key", &world.users[0].key)]);
        let id = text(&socket.json(), "/connection_id").to_owned();
        (socket, id)
    };
    // Closed and opened again too: a log line with an id is about one socket.
    let ids: Vec<String> =
        ["/v1/ws/prices", "/v1/ws/executions"].iter().cycle().take(16).map(|path| open(path).1).collect();
    let held: Vec<_> = (0..8).map(|_| open("/v1/ws/prices")).collect();
    let mut seen: Vec<&String> = ids.iter().chain(held.iter().map(|(_, id)| id)).collect();
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 24);
    cases.add(24);
}
