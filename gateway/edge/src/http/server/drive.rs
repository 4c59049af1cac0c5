//! One connection's life between its socket, who reads before the library, and the library.

use super::departures::Departures;
use super::places::Seat;
use super::reading::{Before, Turn};
use super::socket::Socket;
use crate::http::body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper::{Request, Response};
use std::convert::Infallible;
use std::pin::{Pin, pin};
use std::task::Poll;

/// How the library reads a connection of ours.
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

/// Drives a connection until it has ended. It ends behind its next answer when `stopping` does, or when its seat is wanted
/// for another one. Where `together` is given, its answers leave with those of others.
pub(super) async fn drive<B, S>(
    serving: &mut http1::Connection<Socket, S>,
    before: &mut B,
    socket: &Socket,
    seat: &Seat,
    stopping: impl Future<Output = ()>,
    together: Option<&Departures>,
) where
    B: Before,
    S: Service<Request<Incoming>, Response = Response<Body>, Error = Infallible>,
    http1::Connection<Socket, S>: Unpin,
{
    let mut stopping = pin!(stopping);
    let (mut stops, mut ending, mut ended, mut sits) = (false, false, false, false);
    std::future::poll_fn(|context| {
        // Who could not be told his answers is asked for nothing more before that.
        if socket.stays_behind() && matches!(socket.flush(context), Poll::Ready(Err(_))) {
            return Poll::Ready(());
        }
        if !stops && stopping.as_mut().poll(context).is_ready() {
            (stops, ending) = (true, true);
        }
        if !std::mem::replace(&mut sits, true) {
            seat.sit(context);
        }
        if !stops && seat.leaves() {
            (stops, ending) = (true, true);
        }
        loop {
            if ending && before.end() {
                ending = false;
                Pin::new(&mut *serving).graceful_shutdown();
            }
            let turn = if !ended && socket.rests() { before.turn(context) } else { Turn::Granted };
            // What goes wrong on a connection is the peer's affair; hyper has answered what can be answered. While it
            // waits for a head it is asked all the same: it knows when that is due.
            ended = ended || Pin::new(&mut *serving).poll(context).is_ready();
            // Behind a request of hyper's there may be one that has come already.
            if ended || turn == Turn::Waits || !socket.rests() {
                break;
            }
        }
        ended = ended || socket.is_gone(context);
        // Whatever was answered leaves, at once or with others, before anything is waited for.
        if let Some(departures) = together {
            if ended {
                // What is spoken on the socket behind an upgrade has it alone.
                departures.forget(socket);
            } else if socket.may_leave_together() {
                departures.add(socket, context);
                return Poll::Pending;
            }
        }
        match socket.flush(context) {
            Poll::Ready(Ok(())) if !ended => Poll::Pending,
            Poll::Pending => Poll::Pending,
            Poll::Ready(_) => Poll::Ready(()),
        }
    })
    .await;
}
