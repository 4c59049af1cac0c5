//! Order entry with peers that send other messages than operations, or do not read (gateway/docs/streams.md §1.3,
//! §1.6).

use serde_json::json;
use std::time::Duration;
use tests::cases::Cases;
use tests::json::{int, text};
use tests::socket::{Got, PING, PONG, Socket, TEXT};
use tests::world::World;

fn open(world: &World, key: &str) -> Socket {
    Socket::open(world.server.address(), "/v1/ws/trade", &[("X-API-Key", key)])
}

/// Messages that are not operations are counted: no peer can monopolise the server with them.
#[test]
fn a_flood_of_what_is_no_operation_ends() {
    let cases = Cases::of("floods on the trade channel");
    let world = World::start(1);
    // Even across the end of a second, one of the two has more than 30.
    for (what, first, payload, reason) in [
        ("pings", PING, "?", "RATE_LIMIT_EXCEEDED"),
        ("pongs", PONG, "", "RATE_LIMIT_EXCEEDED"),
        ("empty objects", TEXT, "{}", "RATE_LIMIT_EXCEEDED"),
        ("PING", TEXT, "PING", "RATE_LIMIT_EXCEEDED"),
        ("pings as JSON", TEXT, r#"{"type":"ping"}"#, "RATE_LIMIT_EXCEEDED"),
        ("nonsense", TEXT, "nonsense", "INVALID_REQUEST"),
        ("unknown operations", TEXT, r#"{"id":1,"op":"order.amend","params":{}}"#, "RATE_LIMIT_EXCEEDED"),
        ("operations without a name", TEXT, r#"{"id":1,"op":"order.cancel","params":{}}"#, "RATE_LIMIT_EXCEEDED"),
    ] {
        let mut socket = open(&world, &world.users[0].key);
        socket.send_bytes(&tests::socket::frame(first, payload.as_bytes()).repeat(61));
        assert_eq!(socket.closed(), (4008, reason.to_owned()), "{what}");
        cases.one();
    }
}

/// Slow, with a long queue: answers that were queued when the key ended are not sent to this peer.
#[test]
fn a_slow_reader_is_closed_when_its_key_ends() {
    let cases = Cases::of("revoked after a queue");
    let world = World::start_with(0, |place| {
        for limit in ["requests_per_second", "requests_per_minute", "in_flight", "max_batch_size"] {
            place.set("limits.tiers.free", limit, "100000");
        }
    });
    let (mut client, session) = world.newcomer("trade-3");
    let made = client.post("/v1/keys", &json!({"name": "slow"})).expect(201);
    let mut socket = open(&world, text(&made, "/raw_key"));
    // Answers of slightly more than 4 MB: more than the system buffers for a peer that does not read, not more than a
    // queue holds.
    let many = json!({"id": 1, "op": "order.batch", "params": vec![json!({"side": "HOLD"}); 100]}).to_string();
    socket.send_text(&many);
    let asked = 4_100_000 / socket.text().len();
    assert!(asked < 500, "answers are long");
    (0..asked).for_each(|_| socket.send_text(&many));
    world.server.with_token(&session).delete(&format!("/v1/keys/{}", int(&made, "/id"))).expect(200);
    let mut answers = 0;
    let closed = loop {
        match socket.receive() {
            Got::Close(code, reason) => break (code, reason),
            Got::Text(_) => answers += 1,
            other => panic!("after {answers} answers of {asked}: {other:?}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    assert_eq!(closed, (4001, "INVALID_KEY".to_owned()));
    cases.add(answers);
}
