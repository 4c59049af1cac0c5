//! The protocol under the channels, frame by frame (RFC 6455): valid frames are answered, invalid ones close the socket
//! with their code, wherever the bytes are split.
//!
//! The channel is `/v1/ws/market` without a credential. A JSON ping stands for an accepted message: its pong proves
//! that all fragments were joined correctly.

use serde_json::json;
use tests::cases::Cases;
use tests::http::Request;
use tests::socket::{BINARY, CLOSE, Got, PING, PONG, Socket, TEXT, frame};
use tests::world::World;

const PATH: &str = "/v1/ws/market";
const OK: (u16, &str) = (1000, "");
const PROTOCOL: (u16, &str) = (1002, "PROTOCOL_ERROR");
const NOT_TEXT: (u16, &str) = (1003, "TEXT_ONLY");
const NOT_UTF8: (u16, &str) = (1007, "INVALID_UTF8");
const TOO_LONG: (u16, &str) = (1009, "MESSAGE_TOO_LARGE");
/// First byte of an unfinished text, of a fragment in its middle, and of its last fragment.
const TEXT_BEGINS: u8 = 0x01;
const GOES_ON: u8 = 0x00;
const ENDS: u8 = 0x80;
const MESSAGE_BYTES_MAX: usize = 65_536;

struct Town {
    world: World,
    cases: Cases,
}

impl Town {
    fn new(what: &'static str) -> Town {
        Town { world: World::start(1), cases: Cases::of(what) }
    }

    fn open(&self) -> Socket {
        Socket::open(self.world.server.address(), PATH, &[])
    }

    /// These bytes close the socket with that code.
    #[track_caller]
    fn closes(&self, what: &str, bytes: &[u8], expected: (u16, &str)) {
        let mut socket = self.open();
        socket.send_bytes(bytes);
        let (code, reason) = socket.closed();
        assert_eq!((code, reason.as_str()), expected, "{what}");
        assert_eq!(socket.receive(), Got::Gone, "{what}: nothing follows a close");
        self.cases.one();
    }

    /// These bytes are one valid message, a JSON ping.
    #[track_caller]
    fn understood(&self, what: &str, bytes: &[u8]) {
        let mut socket = self.open();
        socket.send_bytes(bytes);
        socket.send_close(1000, "");
        let mut pongs = 0;
        loop {
            match socket.receive() {
                Got::Text(text) => {
                    assert!(text.contains("\"pong\""), "{what}: {text}");
                    pongs += 1;
                }
                Got::Pong(_) => {}
                Got::Close(code, _) => break assert_eq!((code, pongs), (1000, 1), "{what}"),
                other => panic!("{what}: {other:?}"),
            }
        }
        self.cases.one();
    }
}

/// A JSON ping with this text in it.
fn ping_with(text: &str) -> Vec<u8> {
    format!("{{\"type\":\"ping\",\"x\":\"{text}\"}}").into_bytes()
}

#[test]
fn every_opcode_has_its_place() {
    let town = Town::new("opcodes");
    let sound = ping_with("");
    for opcode in 0..16u8 {
        for fin in [0x80, 0x00] {
            let first = fin | opcode;
            let whole = fin != 0;
            let alone = match (opcode, whole) {
                (1, _) | (9 | 10, true) => None,
                (8, true) => Some(OK),
                (2, _) => Some(NOT_TEXT),
                _ => Some(PROTOCOL),
            };
            // After it the stream must be in its earlier state: a whole text proves it, or ends the one begun.
            let rest = if opcode == 1 && !whole { frame(ENDS, b"") } else { Vec::new() };
            match alone {
                Some(close) => town.closes(&format!("opcode {opcode}, fin {whole}"), &frame(first, b""), close),
                None => {
                    let bytes = [frame(first, b""), rest, frame(TEXT, &sound)].concat();
                    town.understood(&format!("opcode {opcode}, fin {whole}"), &bytes);
                }
            }
            let inside = match (opcode, whole) {
                (0, _) | (9 | 10, true) => None,
                (8, true) => Some(OK),
                (2, _) => Some(NOT_TEXT),
                _ => Some(PROTOCOL),
            };
            let begun = frame(TEXT_BEGINS, &sound[..4]);
            let rest = if opcode == 0 && whole { Vec::new() } else { frame(ENDS, &sound[4..]) };
            let payload = if opcode == 0 && whole { &sound[4..] } else { b"" };
            match inside {
                Some(close) => {
                    let bytes = [begun, frame(first, b"")].concat();
                    town.closes(&format!("opcode {opcode}, fin {whole} inside a text"), &bytes, close);
                }
                None => {
                    let bytes = [begun, frame(first, payload), rest].concat();
                    town.understood(&format!("opcode {opcode}, fin {whole} inside a text"), &bytes);
                }
            }
        }
    }
}

#[test]
fn reserved_bits_mean_nothing_here() {
    let town = Town::new("reserved bits");
    for bits in 1..8u8 {
        for first in [TEXT, TEXT_BEGINS, CLOSE, PING, PONG] {
            town.closes(&format!("{bits:03b} on {first:#x}"), &frame(first | bits << 4, b""), PROTOCOL);
        }
        let inside = [frame(TEXT_BEGINS, b"a"), frame(ENDS | bits << 4, b"b")].concat();
        town.closes(&format!("{bits:03b} inside a text"), &inside, PROTOCOL);
    }
}

#[test]
fn a_client_masks_every_frame() {
    let town = Town::new("masks");
    for first in [TEXT, TEXT_BEGINS, CLOSE, PING, PONG] {
        town.closes(&format!("{first:#x}, empty"), &[first, 0], PROTOCOL);
        town.closes(&format!("{first:#x}, a byte"), &[first, 1, b'x'], PROTOCOL);
        town.closes(&format!("{first:#x}, 126 bytes"), &[&[first, 126, 0, 126], &[b'x'; 126][..]].concat(), PROTOCOL);
        let behind = [frame(PING, b""), vec![first, 0]].concat();
        town.closes(&format!("{first:#x} behind a sound one"), &behind, PROTOCOL);
    }
}

#[test]
fn lengths_are_written_in_the_fewest_bytes() {
    let town = Town::new("lengths");
    for first in [TEXT, TEXT_BEGINS, PING, PONG, CLOSE] {
        for length in [0u16, 1, 2, 124, 125] {
            let head = [vec![first, 0xfe], length.to_be_bytes().to_vec(), vec![0; 4]].concat();
            town.closes(&format!("{length} in two bytes on {first:#x}"), &head, PROTOCOL);
        }
        for length in [0u64, 125, 126, 65_535, 1 << 63, u64::MAX] {
            let head = [vec![first, 0xff], length.to_be_bytes().to_vec(), vec![0; 4]].concat();
            town.closes(&format!("{length} in eight bytes on {first:#x}"), &head, PROTOCOL);
        }
    }
    // The limits of each form carry a whole message.
    let mut short = ping_with("");
    short.resize(125, b' ');
    town.understood("125 bytes", &frame(TEXT, &short));
    short.resize(126, b' ');
    town.understood("126 bytes", &frame(TEXT, &short));
    short.resize(256, b' ');
    town.understood("256 bytes", &frame(TEXT, &short));
}

#[test]
fn control_frames_are_short_and_whole() {
    let town = Town::new("control frames");
    for length in [0, 1, 2, 64, 124, 125] {
        let payload = vec![0xfe; length];
        let mut socket = town.open();
        socket.send_frame(PING, &payload);
        assert_eq!(socket.receive(), Got::Pong(payload.clone()), "a ping of {length} bytes");
        socket.send_frame(PONG, &payload);
        socket.is_alive();
        town.cases.one();
    }
    for length in [126, 127, 200, 65_535, 65_536] {
        for first in [PING, PONG, CLOSE] {
            town.closes(&format!("{length} bytes on {first:#x}"), &frame(first, &vec![b'x'; length]), PROTOCOL);
        }
    }
    // Ten pings in one write are ten pongs in their order.
    let mut socket = town.open();
    socket.send_bytes(&(0..10u8).flat_map(|number| frame(PING, &[number])).collect::<Vec<u8>>());
    for number in 0..10 {
        assert_eq!(socket.receive(), Got::Pong(vec![number]));
        town.cases.one();
    }
}

#[test]
fn text_may_be_cut_anywhere() {
    let town = Town::new("fragments");
    let message = ping_with("aé€😀\u{10ffff}");
    town.understood("whole", &frame(TEXT, &message));
    for cut in 0..=message.len() {
        let bytes = [frame(TEXT_BEGINS, &message[..cut]), frame(ENDS, &message[cut..])].concat();
        town.understood(&format!("split after {cut} bytes"), &bytes);
        let with_ping = [frame(TEXT_BEGINS, &message[..cut]), frame(PING, b"!"), frame(ENDS, &message[cut..])].concat();
        town.understood(&format!("split after {cut} bytes, a ping between"), &with_ping);
    }
    // Byte by byte on the stream, for any frames.
    for pieces in [1, 3, 7] {
        let mut bytes = frame(TEXT_BEGINS, b"");
        for piece in message.chunks(message.len().div_ceil(pieces)) {
            bytes.extend(frame(GOES_ON, piece));
        }
        bytes.extend(frame(ENDS, b""));
        let mut socket = town.open();
        bytes.iter().for_each(|byte| socket.send_bytes(&[*byte]));
        assert!(socket.text().contains("\"pong\""), "{pieces} pieces");
        town.cases.one();
    }
}

#[test]
fn what_is_no_utf8_ends_the_socket_wherever_it_is_cut() {
    let town = Town::new("bad UTF-8");
    let bad: [&[u8]; 16] = [
        b"\x80",
        b"\xbf",
        b"\xc0\x80",
        b"\xc1\xbf",
        b"\xc3",
        b"\xc3(",
        b"\xe0\x80\x80",
        b"\xe2\x82",
        b"\xed\xa0\x80",
        b"\xed\xbf\xbf",
        b"\xf0\x80\x80\x80",
        b"\xf0\x9f\x98",
        b"\xf4\x90\x80\x80",
        b"\xf8\x88\x80\x80\x80",
        b"\xfe",
        b"\xff",
    ];
    for sequence in bad {
        let what = format!("{sequence:02x?}");
        town.closes(&what, &frame(TEXT, sequence), NOT_UTF8);
        let between = [b"ok ", sequence, b" ok"].concat();
        town.closes(&format!("{what} between"), &frame(TEXT, &between), NOT_UTF8);
        for cut in 1..between.len() {
            let bytes = [frame(TEXT_BEGINS, &between[..cut]), frame(ENDS, &between[cut..])].concat();
            town.closes(&format!("{what} split after {cut}"), &bytes, NOT_UTF8);
        }
    }
}

#[test]
fn a_close_is_answered() {
    let town = Town::new("close frames");
    town.closes("without a code", &frame(CLOSE, b""), OK);
    town.closes("half a code", &frame(CLOSE, b"\x03"), PROTOCOL);
    for code in [1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 3000, 3999, 4000, 4001, 4999u16] {
        town.closes(&format!("{code}"), &frame(CLOSE, &code.to_be_bytes()), OK);
        let reason = [&code.to_be_bytes()[..], &"é".repeat(61).into_bytes(), b"!"].concat();
        town.closes(&format!("{code} with the longest reason"), &frame(CLOSE, &reason), OK);
    }
    for code in [0, 1, 999, 1004, 1005, 1006, 1012, 1013, 1014, 1015, 1016, 1100, 2000, 2999, 5000, 65_535u16] {
        town.closes(&format!("{code}"), &frame(CLOSE, &code.to_be_bytes()), PROTOCOL);
    }
    town.closes("a reason that is not UTF-8", &frame(CLOSE, b"\x03\xe8\xc3"), NOT_UTF8);
    // Frames after it are ignored.
    for behind in
        [frame(TEXT, &ping_with("")), frame(PING, b"x"), frame(BINARY, b"x"), vec![0xff; 64], frame(CLOSE, b"")]
    {
        town.closes("a frame after it", &[frame(CLOSE, b"\x03\xe8"), behind].concat(), OK);
    }
}

#[test]
fn messages_have_a_longest() {
    let town = Town::new("long messages");
    let long = vec![b' '; MESSAGE_BYTES_MAX + 1];
    let fits = [frame(TEXT, &long[1..]), frame(TEXT, &ping_with(""))].concat();
    town.understood("the longest", &fits);
    town.closes("one byte more", &frame(TEXT, &long), TOO_LONG);
    for pieces in [2, 3, 10] {
        let mut bytes = frame(TEXT_BEGINS, b"");
        for piece in long.chunks(long.len().div_ceil(pieces)) {
            bytes.extend(frame(GOES_ON, piece));
        }
        town.closes(&format!("one byte more in {pieces} pieces"), &bytes, TOO_LONG);
        let sound: Vec<u8> = [frame(TEXT_BEGINS, &long[..100]), frame(ENDS, &long[..MESSAGE_BYTES_MAX - 100])].concat();
        town.understood("the longest in two", &[sound, frame(TEXT, &ping_with(""))].concat());
    }
    // Refused by its header, before the payload arrives.
    for length in [65_537u64, 1 << 20, 1 << 32, (1 << 63) - 1] {
        let head = [vec![TEXT, 0xff], length.to_be_bytes().to_vec(), vec![0; 4]].concat();
        town.closes(&format!("a header of {length} bytes"), &head, TOO_LONG);
    }
    // Empty fragments are frames too.
    let empty: Vec<u8> = (0..1_000).flat_map(|_| frame(GOES_ON, b"")).collect();
    town.closes("a thousand empty pieces", &[frame(TEXT_BEGINS, b""), empty].concat(), (4008, "RATE_LIMIT_EXCEEDED"));
    // Each is valid: an empty object is a heartbeat of the venue's clients.
    for (first, payload) in [(PING, &b""[..]), (PONG, b""), (TEXT, b"{}")] {
        let many: Vec<u8> = (0..200).flat_map(|_| frame(first, payload)).collect();
        town.closes(&format!("200 of {first:#x} in one write"), &many, (4008, "RATE_LIMIT_EXCEEDED"));
    }
}

#[test]
fn a_stream_may_end_anywhere() {
    let town = Town::new("ends");
    let whole = [frame(TEXT_BEGINS, b"{"), frame(PING, b"x"), frame(ENDS, b"}")].concat();
    for cut in 0..=whole.len() {
        let mut socket = town.open();
        socket.send_bytes(&whole[..cut]);
        socket.shut();
        // It ends cleanly: at most a pong, and the close frame.
        loop {
            match socket.receive() {
                Got::Pong(_) => {}
                Got::Close(code, _) => assert_eq!(code, 1000),
                Got::Gone => break,
                other => panic!("after {cut} bytes: {other:?}"),
            }
        }
        town.cases.one();
    }
    town.open().is_alive();
}

#[test]
fn a_handshake_is_checked() {
    let town = Town::new("handshakes");
    let address = town.world.server.address();
    let good = [
        ("Connection", "Upgrade"),
        ("Upgrade", "websocket"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let with = |name: &str, value: Option<&'static str>| -> Vec<(&'static str, &'static str)> {
        let others = good.iter().filter(|(known, _)| *known != name).copied();
        let own = good.iter().filter(|(known, _)| *known == name).filter_map(|(name, _)| Some((*name, value?)));
        others.chain(own).collect()
    };
    for (what, headers) in [
        ("well formed", good.to_vec()),
        ("a list in Connection", with("Connection", Some("keep-alive, Upgrade"))),
        ("another case", with("Connection", Some("uPgRaDe"))),
        ("a list in Upgrade", with("Upgrade", Some("h2c, WebSocket"))),
        ("an extension on offer", [&good[..], &[("Sec-WebSocket-Extensions", "permessage-deflate")]].concat()),
        ("a protocol on offer", [&good[..], &[("Sec-WebSocket-Protocol", "chat")]].concat()),
    ] {
        let mut socket = Socket::handshake(address, PATH, &headers, &frame(PING, b"early"))
            .unwrap_or_else(|refused| panic!("{what}: {} {}", refused.status, refused.lossy()));
        assert_eq!(socket.receive(), Got::Pong(b"early".to_vec()), "{what}: what came early is read");
        town.cases.one();
    }
    for (what, headers, status, code) in [
        ("no upgrade", vec![], 400, "INVALID_REQUEST"),
        ("no Connection", with("Connection", None), 400, "INVALID_REQUEST"),
        ("another Connection", with("Connection", Some("close")), 400, "INVALID_REQUEST"),
        ("another Upgrade", with("Upgrade", Some("h2c")), 400, "INVALID_REQUEST"),
        ("no version", with("Sec-WebSocket-Version", None), 426, "HTTP_426"),
        ("version 8", with("Sec-WebSocket-Version", Some("8")), 426, "HTTP_426"),
        ("two versions", [&good[..], &[("Sec-WebSocket-Version", "13")]].concat(), 426, "HTTP_426"),
        ("no key", with("Sec-WebSocket-Key", None), 400, "INVALID_REQUEST"),
        ("a short key", with("Sec-WebSocket-Key", Some("c2hvcnQ=")), 400, "INVALID_REQUEST"),
        ("not base64", with("Sec-WebSocket-Key", Some("!!!!!!!!!!!!!!!!!!!!!!==")), 400, "INVALID_REQUEST"),
        (
            "two keys",
            [&good[..], &[("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")]].concat(),
            400,
            "INVALID_REQUEST",
        ),
    ] {
        let Err(refused) = Socket::handshake(address, PATH, &headers, b"") else { panic!("{what} was accepted") };
        refused.refused(status, code);
        assert_eq!(refused.header("Sec-WebSocket-Version"), (status == 426).then_some("13"), "{what}");
        town.cases.one();
    }
    for method in ["POST", "DELETE", "PATCH"] {
        town.world.public().send(&Request::new(method, PATH)).refused(405, "HTTP_405");
        town.cases.one();
    }
    // It answers on the same connection as requests do, and after them.
    let answer = town.world.public().send(&Request::get(PATH).json(&json!({})));
    answer.refused(400, "INVALID_REQUEST");
    town.cases.one();
}
