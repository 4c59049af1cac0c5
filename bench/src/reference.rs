//! Bare servers as references for ours: each does one thing, has no checks, and runs in a process of its own.

use crate::broadcast;
use crate::floor::Floor;
use crate::server::LISTENS;
use bytes::Bytes;
use fastwebsockets::{Frame, OpCode, Role, WebSocket};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::Path;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::LocalSet;

/// Rates of a bare hyper are far below a quiet machine of two cores, load included (measured: 13, 80 and 550 thousand):
/// one connection waits for two wake-ups each time, and many requests in flight share the kernel's part.
const HYPER_ALONE: Floor = Floor { of: "a bare hyper, one in flight", least: 8_000.0 };
const HYPER: Floor = Floor { of: "a bare hyper", least: 30_000.0 };
const HYPER_PIPELINED: Floor = Floor { of: "a bare hyper, many in flight on each connection", least: 200_000.0 };
/// The same for the frame library that echoes what it reads (measured: 40, 105 and 130 thousand).
const ECHO_ALONE: Floor = Floor { of: "the library's echo, one in flight", least: 8_000.0 };
const ECHO: Floor = Floor { of: "the library's echo", least: 30_000.0 };
const ECHO_PIPELINED: Floor = Floor { of: "the library's echo, many in flight on each connection", least: 60_000.0 };

/// The floor of a bare hyper with that many connections and requests in flight on each.
pub fn hyper_floor(connections: usize, in_flight: usize) -> &'static Floor {
    match (connections, in_flight) {
        (_, 2..) => &HYPER_PIPELINED,
        (1, _) => &HYPER_ALONE,
        _ => &HYPER,
    }
}

/// The floor of the library's echo, likewise.
pub fn echo_floor(connections: usize, in_flight: usize) -> &'static Floor {
    match (connections, in_flight) {
        (1, 2..) => &ECHO,
        (_, 2..) => &ECHO_PIPELINED,
        (1, _) => &ECHO_ALONE,
        _ => &ECHO,
    }
}

/// The handshake answer to the constant key of our own client.
const SWITCHED: &[u8] = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Accept: ICX+Yqv66kxgM0FcWaLWlFLwTAI=\r\n\r\n";

/// The work of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Kind {
    /// The HTTP library reads a request to its end and sends the template for any request.
    Hyper,
    /// The frame library sends back what it reads.
    Echo,
    /// Encoded frames go to each socket with one write for everything that it lacks.
    Coalesced,
    /// The frame library writes each.
    Library,
    /// Another library takes all pending frames into its buffer, and flushes it.
    #[cfg(feature = "peers")]
    Tungstenite,
}

/// Serves until it is killed. `template` is the text of the frames, with the size in it updated for each.
pub fn serve(kind: Kind, template: Option<&Path>) -> io::Result<()> {
    let template = template.map_or(Ok(Vec::new()), std::fs::read)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    LocalSet::new().block_on(&runtime, async move {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        println!("reference {LISTENS}{}", listener.local_addr()?);
        match kind {
            Kind::Hyper => {
                let answer = Bytes::from(template);
                loop {
                    let (stream, _) = listener.accept().await?;
                    stream.set_nodelay(true)?;
                    tokio::task::spawn_local(answer_all(stream, answer.clone()));
                }
            }
            Kind::Echo => loop {
                let stream = shaken(&listener).await?;
                // It ends with its peer.
                tokio::task::spawn_local(async move { echo(stream).await.ok() });
            },
            Kind::Coalesced | Kind::Library => broadcast::serve(kind, &listener, &template).await,
            #[cfg(feature = "peers")]
            Kind::Tungstenite => broadcast::serve(kind, &listener, &template).await,
        }
    })
}

/// The next peer, after its handshake.
pub async fn shaken(listener: &TcpListener) -> io::Result<TcpStream> {
    let (mut stream, _) = listener.accept().await?;
    stream.set_nodelay(true)?;
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read_buf(&mut head).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
    stream.write_all(SWITCHED).await?;
    Ok(stream)
}

/// Configured like ours: answers to requests that came together leave together.
async fn answer_all(stream: TcpStream, answer: Bytes) {
    let service = service_fn(move |mut request: Request<Incoming>| {
        let answer = answer.clone();
        async move {
            while let Some(frame) = request.body_mut().frame().await {
                frame?;
            }
            let mut response = Response::new(Full::new(answer));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok::<_, hyper::Error>(response)
        }
    });
    // It ends with its peer.
    let _ = http1::Builder::new().pipeline_flush(true).serve_connection(TokioIo::new(stream), service).await;
}

async fn echo(stream: TcpStream) -> Result<(), fastwebsockets::WebSocketError> {
    let mut socket = WebSocket::after_handshake(stream, Role::Server);
    loop {
        let frame = socket.read_frame().await?;
        match frame.opcode {
            // The received frame would still have its mask.
            OpCode::Text => socket.write_frame(Frame::text(frame.payload)).await?,
            OpCode::Close => return Ok(()),
            _ => {}
        }
    }
}
