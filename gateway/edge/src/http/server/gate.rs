//! A connection whose requests are all the library's, with the same rules for their heads as on the short way.

use super::drive::{drive, library};
use super::places::Place;
use super::reading::{Before, Made, Next, Reading};
use super::socket::Socket;
use crate::app::App;
use crate::http::body::Body;
use crate::http::plain::{self, Head};
use crate::http::reply::Refusal;
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

/// Who asks.
pub struct Peer {
    socket: Socket,
    write_timeout: Duration,
}

impl Peer {
    /// From now on the connection ends as soon as he leaves, also while an answer is being made; who has ended his half has
    /// left.
    pub fn is_watched(&self) {
        self.socket.stream(self.write_timeout);
    }
}

/// Serves one connection until it ends; a peer that takes nothing is left after `write_timeout`. `answer` is given each
/// request, and the refusal of its head where that was refused. Heads that the library cannot read are answered with the
/// headers of `app`.
pub async fn serve_connection<A, F>(stream: TcpStream, place: Place, app: Arc<App>, write_timeout: Duration, answer: A)
where
    A: Fn(Request<Incoming>, Option<Refusal>, Peer) -> F,
    F: Future<Output = Response<Body>>,
{
    // Without it an answer may wait for the peer's acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let head = place.seat.head.clone();
    let socket = Socket::new(stream, head.clone(), write_timeout);
    socket.answers_unread(app);
    let mut gate = Gate { reading: Reading::new(socket.clone(), head) };
    let word = Rc::clone(&gate.reading.word);
    let service = service_fn(|request| {
        let refusal = match word.made.take() {
            Some(Made::Refusal(refusal)) => Some(refusal),
            Some(Made::Answer(_)) | None => None,
        };
        let (socket, is_last) = (socket.clone(), word.is_last.get());
        socket.is_asked();
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
    let mut serving = library(&place.seat).serve_connection(socket.clone(), service);
    drive(&mut serving, &mut gate, &socket, &place.seat, std::future::pending(), None).await;
}

/// Grants the library one request after the other.
struct Gate {
    reading: Reading,
}

impl Before for Gate {
    fn reading(&mut self) -> &mut Reading {
        &mut self.reading
    }

    fn next(&mut self, _: &mut Context<'_>, bytes: &[u8]) -> Next {
        match plain::head(bytes) {
            Head::Part => Next::Part,
            Head::Plain(plain) => Next::Granted(plain.bytes()),
            Head::Framed(bytes, _) => Next::Granted(bytes),
            Head::BareLineFeed => self.reading.refuse_bare_line_feed(),
            Head::Endless(_) | Head::Unreadable => Next::Last,
        }
    }
}
