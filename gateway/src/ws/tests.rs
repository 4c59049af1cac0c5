//! A socket from handshake to end, over a real stream, with a channel that echoes.

use super::admit::{Nobody, admit};
use super::close::Close;
use super::frame::Frame;
use super::session::{Channel, Said, Socket, upgrade};
use crate::http::route::{RateClass, Route};
use crate::http::server;
use crate::http::testing::{World, run};
use std::rc::Rc;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

const ROUTES: &[Route] = &[Route::get("/v1/ws/echo", "echo").rate(RateClass::Exempt).run(|call| {
    Box::pin(async move {
        let admitted = admit(&call, Nobody::ByAddress)?;
        upgrade(&call, admitted, |socket, _| Echo(socket))
    })
})];

struct Echo(Rc<Socket>);

impl Channel for Echo {
    async fn opened(&mut self) -> Result<(), Close> {
        self.0.send(&Frame::text(b"hello"));
        Ok(())
    }

    async fn message(&mut self, text: &str) -> Result<Said, Close> {
        match text {
            "panic" => panic!("asked for"),
            "bad" => Ok(Said::Nonsense),
            "fill" => {
                // More than a queue holds: nobody reads meanwhile.
                (0..2_000).for_each(|_| self.0.send(&Frame::text(&[b'x'; 10_000])));
                Ok(Said::Understood)
            }
            _ => {
                self.0.send(&Frame::text(text.as_bytes()));
                Ok(Said::Understood)
            }
        }
    }
}

fn masked(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut out = vec![first, 0x80 | payload.len() as u8, 1, 2, 3, 4];
    out.extend(payload.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, mask)| byte ^ mask));
    out
}

/// What the server says to `sent` up to the end of the stream, behind the head of its answer.
async fn said_to(address: std::net::SocketAddr, sent: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = "GET /v1/ws/echo HTTP/1.1\r\nHost: t\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    stream.write_all(&[head.as_bytes(), sent].concat()).await.unwrap();
    let mut said = Vec::new();
    stream.read_to_end(&mut said).await.unwrap();
    let head = said.windows(4).position(|four| four == b"\r\n\r\n").expect("a head") + 4;
    let text = String::from_utf8_lossy(&said[..head]).to_lowercase();
    assert!(text.starts_with("http/1.1 101 ") && text.contains("s3pplmbitxaq9kygzzhzrbk+xoo="), "{text}");
    said.split_off(head)
}

#[test]
fn a_socket_lives_from_its_handshake_to_its_close() {
    let world = World::new("", &[ROUTES]);
    let edge = Rc::clone(&world.edge);
    run(async move {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (end, ending) = watch::channel(false);
        let connections = edge.app.connections.clone();
        let serving = tokio::task::spawn_local(server::serve(listener, Rc::clone(&edge), connections, ending));
        let close = |code: u16, reason: &str| {
            let mut out = vec![0x88, 2 + reason.len() as u8];
            out.extend_from_slice(&code.to_be_bytes());
            out.extend_from_slice(reason.as_bytes());
            out
        };
        let hello = b"\x81\x05hello".to_vec();
        let goodbye = masked(0x88, &1000u16.to_be_bytes());
        let bad: Vec<u8> = (0..21).flat_map(|_| masked(0x81, b"bad")).collect();
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
            let said = said_to(address, &sent).await;
            assert_eq!(
                String::from_utf8_lossy(&said),
                String::from_utf8_lossy(&[hello.clone(), expected].concat()),
                "{what}"
            );
            while edge.app.seats.open() > 0 {
                tokio::task::yield_now().await;
            }
        }
        // What panics ends its own socket, and nothing more.
        assert_eq!(
            said_to(address, &masked(0x81, b"panic")).await,
            [hello.clone(), close(1011, "INTERNAL_ERROR")].concat()
        );
        let filled = said_to(address, &masked(0x81, b"fill")).await;
        assert!(filled.ends_with(&close(4009, "SLOW_CONSUMER")), "{}", filled.len());
        while edge.app.seats.open() > 0 {
            tokio::task::yield_now().await;
        }
        // The end of the server.
        let open = tokio::task::spawn_local(async move { said_to(address, &[]).await });
        while edge.app.seats.open() == 0 {
            tokio::task::yield_now().await;
        }
        end.send(true).unwrap();
        assert_eq!(open.await.unwrap(), [hello, close(1001, "SERVER_SHUTDOWN")].concat());
        assert_eq!(serving.await.unwrap(), 0, "nothing had to be cut off");
        println!("sockets: 14 cases");
    });
}
