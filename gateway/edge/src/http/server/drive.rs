//! Drives one connection: its socket, the own reader, and hyper.

use super::connections::Seat;
use super::reading::{Reader, Turn};
use super::socket::Socket;
use super::write_batch::WriteBatch;
use crate::http::body::Body;
use host::moments::Line;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// hyper's settings for a connection.
pub(super) fn library(seat: &Seat) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .half_close(true)
        .max_buf_size(super::BUFFER_BYTES)
        .max_headers(super::HEADERS_MAX)
        .header_read_timeout(seat.head.header_timeout())
        .timer(seat.head.clone());
    builder
}

/// Drives a connection until it ends. It ends after its next response when `stopping` completes, or when its slot is
/// needed for another connection. With `batch`, its responses are written together with those of other connections. With
/// `line`, its operations are those of a back-test's bot.
pub(super) async fn drive<R, S>(
    serving: &mut http1::Connection<Socket, S>,
    reader: &mut R,
    socket: &Socket,
    seat: &Seat,
    stopping: impl Future<Output = ()>,
    batch: Option<&WriteBatch>,
    line: Option<&Line>,
) where
    R: Reader,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    http1::Connection<Socket, S>: Unpin,
{
    let mut stopping = pin!(stopping);
    let (mut stops, mut ending, mut ended, mut is_registered) = (false, false, false, false);
    let mut turn = |context: &mut Context<'_>| {
        // Stop reading from a peer whose responses are still unsent.
        if socket.is_unsent() && matches!(socket.flush(context), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        if !stops && stopping.as_mut().poll(context).is_ready() {
            (stops, ending) = (true, true);
        }
        if !std::mem::replace(&mut is_registered, true) {
            seat.register(context);
        }
        if !stops && seat.leaves() {
            (stops, ending) = (true, true);
        }
        loop {
            if ending && reader.end() {
                ending = false;
                Pin::new(&mut *serving).graceful_shutdown();
            }
            let turn = if !ended && socket.rests() { reader.turn(context) } else { Turn::Granted };
            // An error affects this peer alone, and hyper has sent the response that can be sent. hyper is also polled
            // while it waits for a head, because it has the deadline.
            ended = ended || Pin::new(&mut *serving).poll(context).is_ready();
            // After a request that hyper read, another one may have arrived already.
            if ended || turn == Turn::Waits || !socket.rests() {
                break;
            }
        }
        ended = ended || socket.is_gone(context);
        // Responses are written, now or with a batch, before the connection waits.
        if let Some(batch) = batch {
            if ended {
                // After an upgrade the socket belongs to the other protocol.
                batch.remove(socket);
            } else if socket.may_be_batched() {
                batch.add(socket, context);
                return Poll::Pending;
            }
        }
        match socket.flush(context) {
            Poll::Ready(Ok(())) if !ended => Poll::Pending,
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => Poll::Ready(()),
        }
    };
    match line {
        None => std::future::poll_fn(turn).await,
        Some(line) => std::future::poll_fn(|context| by_moments(context, &mut turn, socket, line)).await,
    }
}

/// A turn of a connection, between two moments of the clock. What the turn begins to read is open until it is answered.
fn by_moments(
    context: &mut Context<'_>,
    turn: &mut impl FnMut(&mut Context<'_>) -> Poll<()>,
    socket: &Socket,
    line: &Line,
) -> Poll<()> {
    if !line.enter(context) {
        return Poll::Pending;
    }
    let turned = turn(context);
    if let Some(is_frame) = socket.take_sent() {
        line.has_sent(is_frame);
    }
    if turned.is_ready() || socket.is_idle() {
        line.leave();
    }
    turned
}
