//! One socket from its handshake to its end: the upgrade, the task that reads, and the close handshake. How much a peer
//! may send, and heartbeats: `session/inbound.rs`.
//!
//! Two tasks a socket: this one reads and does nothing else with the stream; the other writes what the [`Outbox`] holds,
//! but for what goes to a crowd, which the hub writes as far as the peer takes it at once ([`Socket::flush`]).
//! Whatever ends a socket from outside (a full queue, a revoked key, the server's end) is a word to its outbox.

mod inbound;
mod stream;

use super::admit::{Admitted, Bearer, Seat, Which};
use super::close::Close;
use super::frame::{Frame, Frames};
use super::outbox::{Outbox, Placed, Tag};
use super::reader::{End, Message, Reader};
use crate::app::Edge;
use crate::http::body::Upgrade;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::server::write_batch::WriteBatch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use inbound::{BAD_FRAMES_MAX, Heartbeat, Inbound, Turn, heartbeat};
use sha1::{Digest as _, Sha1};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;
use stream::{Between, read_away};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};

/// How long a goodbye may take to leave: the peer has to read what the system holds before it.
const GOODBYE_WITHIN: Duration = Duration::from_secs(5);
/// How long a peer is listened to that was told to stop.
const LINGER: Duration = Duration::from_secs(2);
/// What a handshake's key is hashed with (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// One open socket, as its channel and whoever has frames for it see it. Lives on one thread, in an `Rc`.
pub struct Socket {
    id: u64,
    outbox: Outbox,
    /// What the peer's frames are written to; gone when the last one is.
    stream: RefCell<Option<OwnedWriteHalf>>,
    bearer: RefCell<Option<Bearer>>,
    /// Its place among the sockets of its user or address.
    seat: RefCell<Option<Seat>>,
    clock: Clock,
    pub(super) times: Times,
}

/// When something last happened, in server time.
#[derive(Default)]
pub(super) struct Times {
    pub opened: Cell<Timestamp>,
    pub heard: Cell<Timestamp>,
    pub pinged: Cell<Timestamp>,
    /// Whoever has not said who he is by then is closed.
    pub auth_until: Cell<Option<Timestamp>>,
}

/// How a channel takes a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Understood,
    /// It was meant as an operation and is answered with a refusal: it counts like any frame.
    Refused,
    /// The channel does not understand it: more than a few close the socket.
    Nonsense,
}

/// What a channel does with one socket. Dropped when the socket is gone: subscriptions end in `Drop`.
pub trait Channel: 'static {
    /// Which channel it is, among figures.
    const WHICH: Which;

    /// Whether its messages are operations, each of which passes the windows of its REST twin. A message that was
    /// understood then counts for nothing here; every other frame counts against the rate of
    /// [`Close::TOO_MANY_FRAMES`], as all frames do elsewhere.
    const TAKES_OPERATIONS: bool = false;

    /// Before the first message is read: greeting frames, what was missed.
    ///
    /// # Errors
    /// Why the socket is closed.
    fn opened(&mut self) -> impl Future<Output = Result<(), Close>>;

    /// A text message that is no heartbeat.
    ///
    /// # Errors
    /// Why the socket is closed.
    fn message(&mut self, text: &str) -> impl Future<Output = Result<Verdict, Close>>;
}

impl Socket {
    pub(super) fn new(id: u64, bearer: Option<Bearer>, seat: Option<Seat>, clock: Clock) -> Socket {
        let now = clock.now();
        let times = Times::default();
        for time in [&times.opened, &times.heard, &times.pinged] {
            time.set(now);
        }
        Socket {
            id,
            outbox: Outbox::default(),
            stream: RefCell::default(),
            bearer: RefCell::new(bearer),
            seat: RefCell::new(seat),
            clock,
            times,
        }
    }

    /// Different for every socket of this thread.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// See [`Outbox::send`].
    pub fn send(&self, frame: &Frame) {
        self.outbox.send(frame);
    }

    /// See [`Outbox::offer`].
    pub fn offer(&self, tag: Tag, frame: &Frame) -> bool {
        self.outbox.offer(tag, frame)
    }

    /// See [`Outbox::place`].
    pub fn place(&self, tag: Tag, frames: &Frames) -> Placed {
        self.outbox.place(tag, frames)
    }

    /// See [`Outbox::flush`].
    pub fn flush(&self) -> usize {
        let stream = self.stream.borrow();
        self.outbox.flush(|pieces| match (&*stream, pieces) {
            (Some(stream), [piece]) => stream.try_write(piece),
            (Some(stream), _) => stream.try_write_vectored(pieces),
            (None, _) => Err(io::ErrorKind::NotConnected.into()),
        })
    }

    /// Writes what the queue holds until the socket ends, and lets the hub write between two writes.
    pub fn write_to(self: Rc<Socket>, stream: OwnedWriteHalf, write_batch: Rc<WriteBatch>) -> impl Future<Output = ()> {
        *self.stream.borrow_mut() = Some(stream);
        async move {
            let mut stream = Between(&self.stream);
            let mut write = pin!(self.outbox.write(&mut stream, || self.clock.now()));
            // Answers that wait go first: of listeners there may be thousands.
            let in_turn = poll_fn(|context| {
                write_batch.flush();
                write.as_mut().poll(context)
            });
            let written = caught(in_turn).await;
            drop(self.stream.take());
            // A peer that went away takes nothing more.
            if !matches!(written, Ok(Ok(()))) {
                self.outbox.abort(Close::NORMAL);
            }
        }
    }

    /// See [`Outbox::has_room`].
    pub fn has_room(&self) -> bool {
        self.outbox.has_room()
    }

    /// See [`Outbox::replace`].
    pub fn replace(&self, tag: Tag, frame: &Frame) {
        self.outbox.replace(tag, frame);
    }

    /// See [`Outbox::withdraw`].
    pub fn withdraw(&self, tag: Tag) {
        self.outbox.withdraw(tag);
    }

    /// See [`Outbox::when_drained`].
    pub fn when_drained(&self, call: impl Fn() + 'static) {
        self.outbox.when_drained(call);
    }

    /// See [`Outbox::close`].
    pub fn close(&self, close: Close) {
        self.outbox.close(close);
    }

    /// Waits until the socket is to end.
    pub async fn closed(&self) -> Close {
        self.outbox.closed().await
    }

    pub fn is_open(&self) -> bool {
        self.outbox.closing().is_none()
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// Who it belongs to; `None` for somebody who has not said so.
    pub fn bearer(&self) -> Option<Bearer> {
        self.bearer.borrow().clone()
    }

    /// Its peer has said who he is: his seat takes the place of the one by address.
    pub fn admit(&self, bearer: Bearer, seat: Seat) {
        *self.bearer.borrow_mut() = Some(bearer);
        *self.seat.borrow_mut() = Some(seat);
        self.times.auth_until.set(None);
    }

    /// Its peer has so long to say who he is.
    pub fn expect_auth_within(&self, us: u64) {
        self.times.auth_until.set(Some(self.clock.now().plus(us)));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// The answer to a handshake: 101, and the channel that `make` makes runs behind it; a refused one is closed with its
/// code behind the 101, since clients read codes (streams.md §1.3).
///
/// # Errors
/// What is no handshake: 400 `INVALID_REQUEST`, 426 for another version; 403 for an origin that may not read us.
pub fn upgrade<C: Channel>(
    call: &Call,
    admitted: Admitted,
    make: impl FnOnce(Rc<Socket>, Rc<Edge>) -> C + 'static,
) -> Outcome {
    let accept = check_handshake(call)?;
    let edge = Rc::clone(&call.edge);
    let upgrade = Upgrade::new(move |stream, early| async move { run(stream, early, edge, admitted, make).await });
    Ok(Reply::upgraded(upgrade)
        .with_header(header::CONNECTION, HeaderValue::from_static("upgrade"))
        .with_header(header::UPGRADE, HeaderValue::from_static("websocket"))
        .with_header(header::SEC_WEBSOCKET_ACCEPT, accept))
}

/// The answer to a handshake's key.
///
/// # Errors
/// What is no handshake, or comes from an origin that may not read us.
pub(super) fn check_handshake(call: &Call) -> Result<HeaderValue, Refusal> {
    let accept = accept(&call.headers)?;
    let origin = call.headers.get(header::ORIGIN);
    if origin.is_some() && call.front().cors.allows(origin).is_none() {
        return Err(Refusal::saying(Code::AccessRestricted, "This origin may not connect."));
    }
    Ok(accept)
}

/// Checks a handshake (RFC 6455 §4.2.1) and answers its key.
fn accept(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let lists = |name: &HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    if !lists(&header::CONNECTION, "upgrade") || !lists(&header::UPGRADE, "websocket") {
        return Err(Refusal::saying(Code::InvalidRequest, "This path speaks WebSocket: the request is no upgrade."));
    }
    let only = |name: &HeaderName| {
        let mut values = headers.get_all(name).iter();
        values.next().filter(|_| values.next().is_none())
    };
    if only(&header::SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Code::Http426.into());
    }
    let key = only(&header::SEC_WEBSOCKET_KEY).map(HeaderValue::as_bytes);
    let Some(key) = key.filter(|key| STANDARD.decode(key).is_ok_and(|nonce| nonce.len() == 16)) else {
        return Err(Refusal::saying(Code::InvalidRequest, "Sec-WebSocket-Key is 16 bytes in base64."));
    };
    let mut hash = Sha1::new();
    hash.update(key);
    hash.update(GUID);
    Ok(HeaderValue::try_from(STANDARD.encode(hash.finalize())).expect("base64 is a header value"))
}

async fn run<C: Channel>(
    stream: TcpStream,
    early: Bytes,
    edge: Rc<Edge>,
    admitted: Admitted,
    make: impl FnOnce(Rc<Socket>, Rc<Edge>) -> C,
) {
    let (bearer, seat, refused) = match admitted {
        Admitted::Open { bearer, seat } => (bearer, seat, None),
        Admitted::Refused(close) => (None, None, Some(close)),
    };
    let (read, write) = stream.into_split();
    let socket = Rc::new(Socket::new(edge.app.streams.seats.next_id(), bearer, seat, edge.app.reads.clock.clone()));
    let entered = edge.sockets.enter(&socket, C::WHICH, &edge);
    let writing = tokio::task::spawn_local(Rc::clone(&socket).write_to(write, Rc::clone(&edge.write_batch)));
    let mut reader = Reader::new(early, read);
    match refused {
        Some(close) => socket.close(close),
        None => {
            let mut channel = make(Rc::clone(&socket), edge);
            let close = {
                let talk = caught(converse(&socket, &mut reader, &mut channel));
                tokio::select! {
                    biased;
                    close = socket.closed() => close,
                    close = talk => close.unwrap_or(Close::INTERNAL),
                }
            };
            drop(channel);
            // Before the goodbye: whoever sees the close may come again at once.
            drop(socket.seat.take());
            socket.close(close);
        }
    }
    // It is out of everybody's sight; what is left is the goodbye.
    let _ = tokio::time::timeout(GOODBYE_WITHIN, writing).await;
    socket.outbox.abort(Close::NORMAL);
    if let Some(rest) = reader.into_rest() {
        let _ = tokio::time::timeout(LINGER, read_away(rest)).await;
    }
    entered.ends(socket.outbox.closing().unwrap_or(Close::NORMAL));
}

/// Runs a future; `Err` when it panics. The panic hook has said where.
pub(super) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// A future of one socket panicked: that socket ends, and nothing more.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panicked;

/// Reads until the socket ends; answers why.
async fn converse<C: Channel>(socket: &Socket, reader: &mut Reader<OwnedReadHalf>, channel: &mut C) -> Close {
    if let Err(close) = channel.opened().await {
        return close;
    }
    let (mut inbound, mut turn) = (Inbound::default(), Turn::default());
    loop {
        let message = match reader.next().await {
            Ok(message) => message,
            Err(End::Gone) => return Close::NORMAL,
            Err(End::Refused(close)) => return close,
        };
        let now = socket.now();
        socket.times.heard.set(now);
        turn.read(message.bytes()).await;
        let text = match &message {
            Message::Text(bytes) => std::str::from_utf8(bytes).expect("the reader proved it"),
            _ => "",
        };
        let beat = match &message {
            Message::Close => return Close::NORMAL,
            Message::Pong | Message::Fragment(_) => Heartbeat::Ignored,
            Message::Ping(payload) => Heartbeat::Answered(Frame::pong(payload)),
            Message::Text(_) => heartbeat(text, now),
        };
        let may_be_operation = C::TAKES_OPERATIONS && beat == Heartbeat::None;
        if !may_be_operation && !inbound.takes(now) {
            return Close::TOO_MANY_FRAMES;
        }
        let verdict = match beat {
            Heartbeat::Answered(frame) => {
                socket.send(&frame);
                Ok(Verdict::Understood)
            }
            Heartbeat::Ignored => Ok(Verdict::Understood),
            Heartbeat::None => channel.message(text).await,
        };
        match verdict {
            Ok(Verdict::Understood) => {}
            Ok(_) if may_be_operation && !inbound.takes(now) => return Close::TOO_MANY_FRAMES,
            Ok(Verdict::Refused) => {}
            Ok(Verdict::Nonsense) if inbound.bad < BAD_FRAMES_MAX => inbound.bad += 1,
            Ok(Verdict::Nonsense) => return Close::TOO_MANY_BAD_FRAMES,
            Err(close) => return close,
        }
    }
}

/// One second, the step of the sweep.
pub(super) const SWEEP_US: u64 = SECOND;
