//! Sockets from handshake to end, over real streams, with a channel that echoes.

use super::admit::{Anonymous, ChannelKind, admit};
use super::close::Close;
use super::frame::Frame;
use super::session::{Channel, Socket, Verdict, upgrade};
use crate::http::reply::Reply;
use crate::http::route::{RateClass, Route};
use crate::http::server;
use crate::http::testing::{World, run};
use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const ROUTES: &[Route] = &[
    Route::get("/v1/ws/echo", "echo").rate(RateClass::Exempt).run(|call| {
        Box::pin(async move {
            let admitted = admit(&call, Anonymous::ByAddress)?;
            upgrade(&call, admitted, |socket, _| Echo(socket))
        })
    }),
    Route::get("/v1/ws/work", "work").rate(RateClass::Exempt).run(|call| {
        Box::pin(async move {
            let admitted = admit(&call, Anonymous::ByAddress)?;
            upgrade(&call, admitted, |_, _| Work)
        })
    }),
    Route::get("/v1/plain", "plain")
        .rate(RateClass::Exempt)
        .headless()
        .run(|_| Box::pin(async { Ok(Reply::json(b"{}".to_vec())) })),
];

struct Echo(Rc<Socket>);

impl Channel for Echo {
    const KIND: ChannelKind = ChannelKind::Market;

    async fn opened(&mut self) -> Result<(), Close> {
        self.0.send(&Frame::text(b"hello"));
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        match text {
            "panic" => panic!("requested by the test"),
            "bad" => Ok(Verdict::Invalid),
            "fill" => {
                // More than a queue holds, while the peer does not read.
                (0..2_000).for_each(|_| self.0.send(&Frame::text(&[b'x'; 10_000])));
                Ok(Verdict::Accepted)
            }
            _ => {
                self.0.send(&Frame::text(text.as_bytes()));
                Ok(Verdict::Accepted)
            }
        }
    }
}

thread_local! {
    /// Operations so far.
    static WORKED: Cell<usize> = const { Cell::new(0) };
}

/// A channel with operations: every text except `bad` is one.
struct Work;

impl Channel for Work {
    const KIND: ChannelKind = ChannelKind::Trade;
    const TAKES_OPERATIONS: bool = true;

    async fn opened(&mut self) -> Result<(), Close> {
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Verdict, Close> {
        if text == "bad" {
            return Ok(Verdict::Invalid);
        }
        WORKED.set(WORKED.get() + 1);
        Ok(Verdict::Accepted)
    }
}

/// A close frame as the server sends it.
fn close(code: u16, reason: &str) -> Vec<u8> {
    let mut out = vec![0x88, 2 + reason.len() as u8];
    out.extend_from_slice(&code.to_be_bytes());
    out.extend_from_slice(reason.as_bytes());
    out
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = match payload.len() {
        0..126 => vec![first, 0x80 | payload.len() as u8],
        length => [&[first, 0xfe], &(length as u16).to_be_bytes()[..]].concat(),
    };
    out.extend_from_slice(&[1, 2, 3, 4]);
    out.extend(payload.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// The server's response to `sent`, up to the end of the stream, without the head of the 101.
async fn response_to(address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    response_at("/v1/ws/echo", address, sent).await
}

fn handshake(path: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
}

async fn response_at(path: &str, address: SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&[handshake(path).as_bytes(), sent].concat()).await.unwrap();
    let mut received = Vec::new();
    stream.read_to_end(&mut received).await.unwrap();
    let head = received.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let text = String::from_utf8_lossy(&received[..head]).to_lowercase();
    assert!(text.starts_with("http/1.1 101 ") && text.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{text}");
    received.split_off(head)
}

#[test]
fn a_socket_lives_from_its_handshake_to_its_close() {
    let world = World::new("", &[ROUTES]);
    let edge = Rc::clone(&world.edge);
    run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ending) = watch::channel(false);
        let connections = edge.app.front.connections.clone();
        let serving = tokio::task::spawn_local(server::serve(listener, Rc::clone(&edge), connections, ending));
        let hello = b"\x81\x05hello".to_vec();
        let goodbye = masked(0x88, &1000u16.to_be_bytes());
        let bad: Vec<u8> = (0..21).flat_map(|_| masked(0x81, b"bad")).collect();
        // The test's clock does not move: all frames are in one second.
        let many: Vec<u8> = (0..31).flat_map(|_| masked(0x8a, b"")).collect();
        for (what, sent, expected) in [
            ("a close", goodbye.clone(), close(1000, "")),
            (
                "an echo",
                [masked(0x81, b"abc"), goodbye.clone()].concat(),
                [b"\x81\x03abc", &close(1000, "")[..]].concat(),
            ),
            (
                "fragments",
                [masked(0x01, b"a"), masked(0x89, b"?"), masked(0x80, b"bc"), goodbye.clone()].concat(),
                [b"\x8a\x01?\x81\x03abc", &close(1000, "")[..]].concat(),
            ),
            (
                "PING",
                [masked(0x81, b"PING"), goodbye.clone()].concat(),
                [b"\x81\x04PONG", &close(1000, "")[..]].concat(),
            ),
            ("an empty object", [masked(0x81, b"{}"), goodbye.clone()].concat(), close(1000, "")),
            ("no mask", vec![0x81, 1, b'x'], close(1002, "PROTOCOL_ERROR")),
            ("binary", masked(0x82, b"x"), close(1003, "TEXT_ONLY")),
            ("no UTF-8", masked(0x81, b"\xff"), close(1007, "INVALID_UTF8")),
            ("half a character", masked(0x81, b"\xc3"), close(1007, "INVALID_UTF8")),
            ("bad frames", bad, close(4008, "INVALID_REQUEST")),
            ("many frames", many, close(4008, "RATE_LIMIT_EXCEEDED")),
        ] {
            let received = response_to(address, &sent).await;
            assert_eq!(
                String::from_utf8_lossy(&received),
                String::from_utf8_lossy(&[hello.clone(), expected].concat()),
                "{what}"
            );
            while edge.app.streams.seats.open() > 0 {
                tokio::task::yield_now().await;
            }
        }
        // A panic ends its own socket only.
        assert_eq!(
            response_to(address, &masked(0x81, b"panic")).await,
            [hello.clone(), close(1011, "INTERNAL_ERROR")].concat()
        );
        let filled = response_to(address, &masked(0x81, b"fill")).await;
        assert!(filled.ends_with(&close(4009, "SLOW_CONSUMER")), "{}", filled.len());
        while edge.app.streams.seats.open() > 0 {
            tokio::task::yield_now().await;
        }
        // The server stops.
        let open = tokio::task::spawn_local(async move { response_to(address, &[]).await });
        while edge.app.streams.seats.open() == 0 {
            tokio::task::yield_now().await;
        }
        end.send(true).unwrap();
        assert_eq!(open.await.unwrap(), [hello, close(1001, "SERVER_SHUTDOWN")].concat());
        assert_eq!(serving.await.unwrap(), 0, "nothing had to be cut off");
        println!("sockets: 14 cases");
    });
}

/// A handshake directly after requests has the connection for itself, although the responses to the requests were in a
/// write batch.
#[test]
fn a_handshake_may_follow_any_number_of_requests() {
    let world = World::new("", &[ROUTES]);
    let edge = Rc::clone(&world.edge);
    let mut cases = 0;
    run(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_end, ending) = watch::channel(false);
        let connections = edge.app.front.connections.clone();
        tokio::task::spawn_local(server::serve(listener, Rc::clone(&edge), connections, ending));
        for count in [0, 1, 31, 32, 33, 63, 64, 65, 200] {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let requests = "GET /v1/plain HTTP/1.1\r\nHost: t\r\n\r\n".repeat(count) + &handshake("/v1/ws/echo");
            let goodbye = masked(0x88, &1000u16.to_be_bytes());
            stream.write_all(&[requests.as_bytes(), &masked(0x81, b"abc"), &goodbye].concat()).await.unwrap();
            let mut received = Vec::new();
            stream.read_to_end(&mut received).await.unwrap();
            let text = String::from_utf8_lossy(&received);
            assert_eq!(text.matches("HTTP/1.1 200 ").count(), count, "{text}");
            assert!(text.contains("HTTP/1.1 101 "), "after {count}: {text}");
            assert!(
                received.ends_with(&[b"\x81\x05hello\x81\x03abc", &close(1000, "")[..]].concat()),
                "{count}: {text}"
            );
            cases += 1;
        }
    });
    println!("handshakes after requests: {cases} cases");
}

/// A peer of the channel with operations cannot keep the thread for itself.
#[test]
fn operations_do_not_count_and_all_other_frames_do() {
    let world = World::new("", &[ROUTES]);
    let edge = Rc::clone(&world.edge);
    run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_end, ending) = watch::channel(false);
        let connections = edge.app.front.connections.clone();
        tokio::task::spawn_local(server::serve(listener, Rc::clone(&edge), connections, ending));
        // Another task of this thread, and the most operations between two of its turns. That can be those of two turns
        // of the socket, because tasks that yield may change their order.
        let most = Rc::new(Cell::new(0));
        let seen = Rc::clone(&most);
        tokio::task::spawn_local(async move {
            let mut last = WORKED.get();
            loop {
                tokio::task::yield_now().await;
                seen.set(seen.get().max(WORKED.get() - last));
                last = WORKED.get();
            }
        });
        let times = |count: usize, frame: Vec<u8>| frame.repeat(count);
        let goodbye = masked(0x88, b"");
        let (done, many, bad) = (close(1000, ""), close(4008, "RATE_LIMIT_EXCEEDED"), close(4008, "INVALID_REQUEST"));
        let pongs = |text: &[u8], last: &[u8]| [&text.repeat(30), last].concat();
        let work = || masked(0x81, b"work");
        let mut cases = 0;
        // (case, bytes, response, operations, most in one turn)
        for (what, sent, expected, worked, in_a_turn) in [
            ("operations", [times(2_000, work()), goodbye.clone()].concat(), done.clone(), 2_000, 64),
            ("long ones", [times(40, masked(0x81, &[b'w'; 30_000])), goodbye.clone()].concat(), done.clone(), 40, 4),
            ("pings", times(31, masked(0x89, b"")), pongs(b"\x8a\x00", &many), 0, 0),
            ("pongs", times(31, masked(0x8a, b"")), many.clone(), 0, 0),
            ("PING", times(31, masked(0x81, b"PING")), pongs(b"\x81\x04PONG", &many), 0, 0),
            ("empty objects", times(31, masked(0x81, b"{}")), many.clone(), 0, 0),
            ("fragments", [masked(0x01, b""), times(30, masked(0x00, b""))].concat(), many.clone(), 0, 0),
            ("nonsense", times(21, masked(0x81, b"bad")), bad, 0, 0),
            ("some nonsense", [times(20, masked(0x81, b"bad")), work(), goodbye.clone()].concat(), done.clone(), 1, 1),
            (
                "nonsense and pongs",
                [
                    times(12, masked(0x81, b"bad")),
                    times(18, masked(0x8a, b"")),
                    times(40, work()),
                    masked(0x81, b"bad"),
                ]
                .concat(),
                many,
                40,
                40,
            ),
            (
                "pongs among operations",
                [times(30, [work(), masked(0x8a, b""), work()].concat()), goodbye].concat(),
                done,
                60,
                60,
            ),
        ] {
            WORKED.set(0);
            tokio::task::yield_now().await;
            most.set(0);
            let received = response_at("/v1/ws/work", address, &sent).await;
            assert_eq!(String::from_utf8_lossy(&received), String::from_utf8_lossy(&expected), "{what}");
            assert_eq!(WORKED.get(), worked, "{what}");
            assert!(most.get() <= in_a_turn, "{what}: {} in one turn", most.get());
            cases += 1;
        }
        println!("peers who send without a pause: {cases} cases");
    });
}
