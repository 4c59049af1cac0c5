//! Subscription and trade messages over real sockets: after any message the server keeps serving.

use crate::mutator::Mutator;
use std::io::{Read, Write};
use std::time::Duration;
use tests::cases::Cases;
use tests::chance::Chance;
use tests::http::connect;
use tests::world::World;

/// Connections of each channel, and messages of each connection; the server may close earlier.
const CONNECTIONS: usize = 40;
const MESSAGES: usize = 25;

fn messages(token: &str, condition: &str) -> Vec<Vec<u8>> {
    let texts = [
        format!(r#"{{"type":"market","assets_ids":["{token}"],"initial_dump":true,"custom_feature_enabled":true}}"#),
        format!(r#"{{"operation":"unsubscribe","assets_ids":["{token}"],"markets":["{condition}"]}}"#),
        format!(r#"{{"type":"user","markets":["{condition}"],"auth":{{"apiKey":"svc_live_0","order_events":true}}}}"#),
        format!(r#"{{"action":"subscribe","symbols":["BTC"],"tokens":["{token}"],"type":"prices"}}"#),
        format!(
            r#"{{"id":1,"op":"order.place","params":{{"token_id":"{token}","side":"BUY","order_type":"limit","price":"0.30","quantity":"5"}}}}"#
        ),
        format!(r#"{{"id":"b","op":"order.batch","params":{{"orders":[{{"token_id":"{token}"}}]}}}}"#),
        r#"{"id":3,"op":"order.cancel","params":{"order_id":5}}"#.to_owned(),
        r#"{"id":4,"op":"cancel_all","params":{"confirm":true}}"#.to_owned(),
        "PING".to_owned(),
    ];
    texts.map(String::into_bytes).to_vec()
}

/// A masked text frame; the mask is zero, so the payload is unchanged.
fn frame(payload: &[u8]) -> Vec<u8> {
    let mut out = vec![0x81];
    match payload.len() {
        short @ 0..126 => out.push(0x80 | short as u8),
        long => {
            out.push(0x80 | 126);
            out.extend_from_slice(&(long as u16).to_be_bytes());
        }
    }
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(payload);
    out
}

#[test]
fn messages_of_any_kind_end_no_server() {
    let cases = Cases::of("socket messages");
    let world = World::start(1);
    let rain = &world.markets.rain;
    let corpus = messages(rain.yes(), &rain.condition);
    let mut chance = Chance::seeded(2);
    for path in ["/ws/market", "/ws/user", "/v1/ws/trade", "/v1/ws/prices", "/v1/ws/executions"] {
        let mut mutator = Mutator::new(&corpus, chance.fork());
        for number in 0..CONNECTIONS {
            let mut stream = connect(world.server.address()).expect("the server takes connections");
            stream.set_read_timeout(Some(Duration::from_millis(1))).expect("a timeout");
            let head = format!(
                "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nX-API-Key: {}\r\n\r\n",
                world.users[0].key
            );
            stream.write_all(head.as_bytes()).expect("a handshake");
            for _ in 0..MESSAGES {
                let mut bytes = frame(&mutator.next());
                // Every fourth connection sends broken frames, too.
                if number % 4 == 0 && chance.percent(30) {
                    let at = chance.below(bytes.len().min(8));
                    bytes[at] ^= 1 << chance.below(8);
                }
                if stream.write_all(&bytes).is_err() {
                    break;
                }
                cases.one();
                let _ = stream.read(&mut [0; 4_096]);
            }
        }
        let ready = world.public().get("/v1/health/ready");
        assert_eq!(ready.status, 200, "after {path}: {}", ready.lossy());
    }
    let output = world.server.output();
    assert!(!output.contains("panicked"), "{output}");
    world.server.stop();
}
