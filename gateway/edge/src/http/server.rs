//! Sockets: accepts connections, serves HTTP/1.1, and bounds what a peer can make the server hold.
//!
//! Runs on a single-threaded runtime inside a `LocalSet`. With several IO threads, each runs one of these on a clone of
//! the listener, and all share [`Connections`]. There are deadlines for a head (from its first byte), an idle
//! connection, a body (in the pipeline), and a peer that does not read. TLS is left to a proxy.

mod connections;
mod deadline;
mod drive;
mod fast_path;
pub mod gate;
mod reading;
mod socket;
pub(crate) mod write_batch;

pub use connections::{Connections, Slot};

use super::body::Body;
use super::pipeline::respond;
use crate::app::Edge;
use crate::rehearsal::FLUSH_EVERY;
use crate::settings::Rehearse;
use drive::{drive, library};
use fast_path::{Exchanges, FastPath};
use host::moments::{Line, Moments};
use http_body_util::BodyExt as _;
use hyper::Response;
use hyper::header::{self, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use reading::Prepared;
use socket::Socket;
use std::cell::Cell;
use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::os::fd::AsFd as _;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;

/// Largest head, and the read buffer of a connection.
const BUFFER_BYTES: usize = 16 * 1_024;
/// Most header lines of a request; hyper answers more with its own 431.
pub(super) const HEADERS_MAX: usize = 64;
/// A peer that reads no byte of a stream for this long is disconnected.
const STREAM_STUCK: Duration = Duration::from_secs(15);
/// Pause after an accept that failed for lack of descriptors or memory. It doubles up to the second constant.
const ACCEPT_PAUSE: Duration = Duration::from_millis(10);
const ACCEPT_PAUSE_MAX: Duration = Duration::from_secs(1);

/// Serves `listener` until `stop` becomes true, then waits for requests in flight up to the configured time. Returns
/// how many connections were still open then.
pub async fn serve(
    listener: TcpListener,
    edge: Rc<Edge>,
    connections: Arc<Connections>,
    mut stop: watch::Receiver<bool>,
) -> usize {
    let mut serving = JoinSet::new();
    let exchanges = Rc::new(Exchanges::new(fast_path::start));
    let mut background = JoinSet::new();
    background.spawn_local(Rc::clone(&edge.write_batch).run());
    background.spawn_local(Rc::clone(&edge.last_used).run(edge.engine.clone()));
    let rehearses = edge.app.front.settings.compat.rehearsal.mode != Rehearse::Off;
    if rehearses {
        background.spawn_local(flush_findings(Rc::clone(&edge)));
    }
    let mut pause = ACCEPT_PAUSE;
    loop {
        tokio::select! {
            biased;
            _ = stopped(&mut stop) => break,
            Some(_) = serving.join_next(), if !serving.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, peer)) => {
                    pause = ACCEPT_PAUSE;
                    // Over a cap the connection is closed without a response. Writing one would use the resources that
                    // the cap protects.
                    if let Some(slot) = connections.enter(peer.ip()) {
                        let (edge, exchanges) = (Rc::clone(&edge), Rc::clone(&exchanges));
                        serving.spawn_local(connection(stream, peer.ip(), edge, exchanges, slot, stop.clone()));
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
    let drain = edge.app.front.settings.server.drain;
    let all = async { while serving.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(drain, all).await;
    let left = serving.len();
    serving.shutdown().await;
    if rehearses {
        journal_findings(&edge, true);
    }
    left
}

/// Journals findings that have waited into the next minute. Never returns.
async fn flush_findings(edge: Rc<Edge>) {
    loop {
        tokio::time::sleep(FLUSH_EVERY).await;
        journal_findings(&edge, false);
    }
}

/// Journals findings of the rehearsal that wait for the next minute, or all that wait.
fn journal_findings(edge: &Edge, all: bool) {
    for (user, command) in edge.app.rehearsal.flush(edge.app.reads.clock.now(), all) {
        edge.engine.tell(user, command);
    }
}

/// Waits for the stop signal; a dropped sender counts as one.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// A connection of a back-test's bot, with a descriptor of its own.
pub(crate) fn line_of(moments: &Arc<Moments>, stream: &TcpStream) -> io::Result<Line> {
    Ok(Line::new(moments, stream.as_fd().try_clone_to_owned()?))
}

/// Whether an accept failed because of the peer alone.
fn of_the_peer(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset, Interrupted};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset | Interrupted)
}

async fn connection<F>(
    stream: TcpStream,
    peer: IpAddr,
    edge: Rc<Edge>,
    exchanges: Rc<Exchanges<F>>,
    slot: Slot,
    mut stop: watch::Receiver<bool>,
) where
    F: Future<Output = Option<Response<Body>>>,
{
    // With Nagle's algorithm a response could wait until the peer acknowledges the one before.
    let _ = stream.set_nodelay(true);
    let Ok(line) = edge.app.moments.as_ref().map(|moments| line_of(moments, &stream)).transpose() else { return };
    let head = slot.seat.head.clone();
    let socket = Socket::new(stream, head.clone(), edge.app.front.settings.http.write_timeout);
    socket.answers_unread(Arc::clone(&edge.app));
    let upgrade = Rc::new(Cell::new(None));
    let mut fast_path = FastPath::new(&edge, peer, exchanges, socket.clone(), head);
    let (answering, upgrading, handover) = (socket.clone(), Rc::clone(&upgrade), fast_path.handover());
    let service = service_fn(|request| {
        let (edge, socket, upgrade) = (Rc::clone(&edge), answering.clone(), Rc::clone(&upgrading));
        let (prepared, is_last) = (handover.prepared.take(), handover.is_last.get());
        socket.head_is_read();
        async move {
            // The fast path has read the complete request.
            let is_whole = matches!(prepared, Some(Prepared::Response(_)));
            let mut response = match prepared {
                Some(Prepared::Response(response)) => {
                    // The rest of the body is in memory. If it stayed unread, hyper would end the connection.
                    let mut body: hyper::body::Incoming = request.into_body();
                    while body.frame().await.is_some() {}
                    response
                }
                // Boxed because few requests get here: otherwise each connection would have room for this future all
                // the time.
                Some(Prepared::Fault(fault)) => Box::pin(respond(edge, peer, request, Some(fault))).await,
                None => Box::pin(respond(edge, peer, request, None)).await,
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
    let mut serving = library(&slot.seat).serve_connection(socket.clone(), service);
    // If the core is on other threads, responses arrive one at a time, and there is no batch to write. The operations of
    // a back-test's bot end with their own write.
    let batch = (edge.engine.is_here() && line.is_none()).then_some(&*edge.write_batch);
    drive(&mut serving, &mut fast_path, &socket, &slot.seat, stopped(&mut stop), batch, line.as_ref()).await;
    // The other protocol has its own.
    drop(line);
    if let Some(upgrade) = upgrade.take() {
        // After a 101 hyper leaves the socket open and returns the bytes that it read after the request.
        let http1::Parts { read_buf, .. } = serving.into_parts();
        drop((fast_path, answering));
        if let Some((stream, rest)) = socket.into_stream() {
            let early = if rest.is_empty() { read_buf } else { [&read_buf[..], &rest].concat().into() };
            upgrade.run(stream, early).await;
        }
    }
}

#[cfg(test)]
mod tests;
