//! Sockets: accept, serve HTTP/1.1, and bound whatever a peer can make us hold (reliability 35, 36).
//!
//! Runs on a runtime of one thread inside a `LocalSet`; several IO threads each run one of these on clones of one
//! listener and share [`Connections`]. Deadlines: a head (from its first byte), an idle connection, a body (in the
//! pipeline), and a peer that does not read. There is no TLS here; a proxy in front has that.

mod deadline;
pub(crate) mod departures;
mod drive;
mod express;
pub mod gate;
mod places;
mod reading;
mod socket;

pub use places::Connections;
pub use places::Place;

use super::body::Body;
use super::pipeline::{refuse, respond};
use crate::app::Edge;
use drive::{drive, library};
use express::Express;
use http_body_util::BodyExt as _;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use reading::Made;
use socket::Socket;
use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Largest head, and the read buffer of a connection.
const BUFFER_BYTES: usize = 16 * 1_024;
/// Header lines of one request; more is hyper's own 431.
pub(super) const HEADERS_MAX: usize = 64;
/// A peer that takes no byte of a stream is cut off after this (streams.md §5).
const STREAM_STUCK: Duration = Duration::from_secs(15);
/// Pause after an accept that failed for want of descriptors or memory: doubled up to the second bound.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Serves `listener` until `stop` turns true, then lets requests in flight end for at most the configured time.
/// Answers how many connections had to be cut off.
pub async fn serve(
    listener: TcpListener,
    edge: Rc<Edge>,
    connections: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
) -> usize {
    let mut serving = JoinSet::new();
    let mut departing = JoinSet::new();
    departing.spawn_local(Rc::clone(&edge.departures).run());
    departing.spawn_local(Rc::clone(&edge.last_used).run(edge.engine.clone()));
    let mut pause = ACCEPT_PAUSE;
    loop {
        tokio::select! {
            biased;
            _ = stopped(&mut stop) => break,
            Some(_) = serving.join_next(), if !serving.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    pause = ACCEPT_PAUSE;
                    // Over a cap the connection is closed without a word: an answer would cost what the cap saves.
                    if let Some(place) = connections.enter(peer.ip()) {
                        let edge = Rc::clone(&edge);
                        serving.spawn_local(connection(stream, peer.ip(), edge, place, stop.clone()));
                    }
                }
                Err(error) if of_the_peer(&error) => {}
                Err(error) => {
                    tracing::warn!(%error, pause_ms = pause.as_millis() as u64, "accept failed");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(ACCEPT_PAUSE_MAX);
                }
            },
        }
    }
    drop(listener);
    edge.sockets.end();
    edge.hub.end();
    let drain = edge.app.config.server.drain;
    let all = async { while serving.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(drain, all).await;
    let left = serving.len();
    serving.shutdown().await;
    left
}

/// Waits until it is time to stop; a sender that is gone means the same.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// An accept that failed because that one peer went away.
fn of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection(stream: TcpStream, peer: IpAddr, edge: Rc<Edge>, place: Place, mut stop: watch::Receiver<bool>) {
    // Without it an answer may wait for the peer's acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let head = place.seat.head.clone();
    let socket = Socket::new(stream, head.clone(), edge.app.config.http.write_timeout);
    socket.answers_unread(Arc::clone(&edge.app));
    let upgrade = Rc::new(Cell::new(None));
    let mut express = Express::new(&edge, peer, socket.clone(), head);
    let (answering, upgrading, word) = (socket.clone(), Rc::clone(&upgrade), express.word());
    let service = service_fn(|request| {
        let (edge, socket, upgrade) = (Rc::clone(&edge), answering.clone(), Rc::clone(&upgrading));
        let (made, is_last) = (word.made.take(), word.is_last.get());
        socket.is_asked();
        async move {
            // What was made on the short way is the answer to a request that was read whole.
            let is_whole = matches!(made, Some(Made::Answer(_)));
            let mut response = match made {
                Some(Made::Answer(response)) => {
                    // Its body was read on the short way; what hyper has of it is in memory. Left unread, it would end
                    // the connection.
                    let mut body: hyper::body::Incoming = request.into_body();
                    while body.frame().await.is_some() {}
                    response
                }
                Some(Made::Refusal(refusal)) => refuse(&edge.app, request, refusal),
                // In memory of its own: hyper keeps room for this future as long as the connection lives, and few ask this way.
                None => Box::pin(respond(edge, peer, request)).await,
            };
            if is_last && !matches!(response.body(), Body::Upgraded(_)) {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            if let Body::Upgraded(_) = response.body()
                && let Body::Upgraded(next) = std::mem::replace(response.body_mut(), Body::from(Vec::new()))
            {
                upgrade.set(Some(next));
            } else if let Body::Streamed(body) = response.body()
                && body.is_live()
            {
                socket.stream(STREAM_STUCK);
            } else if !is_whole && response.headers().contains_key(header::CONNECTION) {
                socket.cut();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut serving = library(&place.seat).serve_connection(socket.clone(), service);
    // With the core elsewhere answers come one by one as it makes them, and nothing is ready with them.
    let together = edge.engine.is_here().then_some(&*edge.departures);
    drive(&mut serving, &mut express, &socket, &place.seat, stopped(&mut stop), together).await;
    if let Some(upgrade) = upgrade.take() {
        // hyper leaves the socket open behind a 101, and holds what it read too far.
        let http1::Parts { read_buf, .. } = serving.into_parts();
        drop((express, answering));
        if let Some((stream, rest)) = socket.into_stream() {
            let early = if rest.is_empty() { read_buf } else { [&read_buf[..], &rest].concat().into() };
            upgrade.run(stream, early).await;
        }
    }
}

#[cfg(test)]
mod tests;
