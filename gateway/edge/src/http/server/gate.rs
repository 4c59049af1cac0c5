//! A connection that gives all requests to hyper, with the rules for heads of the fast path.

use super::connections::Slot;
use super::drive::{drive, library};
use super::reading::{Next, Prepared, Reader, Reading};
use super::socket::Socket;
use crate::app::App;
use crate::http::body::Body;
use crate::http::reply::Refusal;
use crate::http::request_head::{self, Parsed};
use hyper::body::Incoming;
use hyper::header::{self, HeaderValue};
use hyper::service::service_fn;
use hyper::{Request, Response};
use std::convert::Infallible;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;
use std::time::Duration;
use tokio::net::TcpStream;

/// The sender of a request.
pub struct Peer {
    socket: Socket,
    write_timeout: Duration,
}

impl Peer {
    /// From now on the connection ends as soon as the peer leaves, even while a response is made. A peer that closed
    /// its sending half counts as gone.
    pub fn is_watched(&self) {
        self.socket.stream(self.write_timeout);
    }
}

/// Serves one connection until it ends. A peer that reads nothing is disconnected after `write_timeout`. `answer`
/// receives each request, and the refusal of its head if it was refused. The response to a head that hyper cannot read
/// has the headers of `app`.
pub async fn serve_connection<A, F>(stream: TcpStream, slot: Slot, app: Arc<App>, write_timeout: Duration, answer: A)
where
    A: Fn(Request<Incoming>, Option<Refusal>, Peer) -> F,
    F: Future<Output = Response<Body>>,
{
    // With Nagle's algorithm a response could wait until the peer acknowledges the one before.
    let _ = stream.set_nodelay(true);
    let head = slot.seat.head.clone();
    let socket = Socket::new(stream, head.clone(), write_timeout);
    socket.answers_unread(app);
    let mut gate = Gate { reading: Reading::new(socket.clone(), head) };
    let handover = Rc::clone(&gate.reading.handover);
    let service = service_fn(|request| {
        let refusal = match handover.prepared.take() {
            Some(Prepared::Fault(fault)) => Some(fault),
            Some(Prepared::Response(_)) | None => None,
        };
        let (socket, is_last) = (socket.clone(), handover.is_last.get());
        socket.head_is_read();
        let answering = answer(request, refusal, Peer { socket: socket.clone(), write_timeout });
        async move {
            let mut response = answering.await;
            if is_last {
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            }
            if response.headers().contains_key(header::CONNECTION) {
                socket.cut();
            }
            Ok::<_, Infallible>(response)
        }
    });
    let mut serving = library(&slot.seat).serve_connection(socket.clone(), service);
    drive(&mut serving, &mut gate, &socket, &slot.seat, std::future::pending(), None, None).await;
}

/// Gives hyper one request after the other.
struct Gate {
    reading: Reading,
}

impl Reader for Gate {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn next(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Next {
        match request_head::parse(bytes) {
            Parsed::Partial => Next::Partial,
            Parsed::Simple(head) => Next::Granted(head.bytes()),
            Parsed::Framed(bytes, _) => Next::Granted(bytes),
            Parsed::BareLineFeed => self.reading.refuse_bare_line_feed(),
            Parsed::Unframed(_) | Parsed::Unreadable => Next::Last,
        }
    }
}
