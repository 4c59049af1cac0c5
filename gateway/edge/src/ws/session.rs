//! One socket from its handshake to its end: the upgrade, the reading task, and the close handshake.
//! `session/inbound.rs` has limits of inbound frames, and heartbeats.
//!
//! Each socket has two tasks. This one only reads. The other writes the queued frames of the [`Outbox`], except those
//! for many sockets, which the hub writes as far as the peer takes them ([`Socket::flush`]). Other parts end a socket
//! through its outbox: for a full queue, a revoked key, or a stop of the server.

mod inbound;
mod stream;

use super::admit::{Admitted, Bearer, ChannelKind, Seat};
use super::close::Close;
use super::frame::{Frame, Frames};
use super::outbox::{Outbox, Placed, Tag};
use super::reader::{End, Message, Reader};
use crate::app::Edge;
use crate::http::body::Upgrade;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::server::line_of;
use crate::http::server::write_batch::WriteBatch;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use engine::time::{SECOND, Timestamp};
use host::clock::Clock;
use host::moments::Line;
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
use stream::{ReadHalf, SharedStream, read_and_drop};
use tokio::net::TcpStream;
use tokio::net::tcp::OwnedWriteHalf;

/// How long sending the close frame may take. The peer first has to read what the system has buffered.
const CLOSE_WITHIN: Duration = Duration::from_secs(5);
/// How long the socket reads after the close frame was sent.
const LINGER: Duration = Duration::from_secs(2);
/// Suffix of a handshake's key before it is hashed (RFC 6455 §1.3).
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// An open socket, for its channel and for producers of frames. Belongs to one thread, in an `Rc`.
pub struct Socket {
    id: u64,
    outbox: Outbox,
    /// The writing half; `None` after the last frame.
    stream: RefCell<Option<OwnedWriteHalf>>,
    bearer: RefCell<Option<Bearer>>,
    /// Its seat among the sockets of its user or address.
    seat: RefCell<Option<Seat>>,
    clock: Clock,
    pub(super) times: Times,
    /// Its connection, in a back-test with a bot.
    line: Option<Rc<Line>>,
}

/// Times of the last events, as [`Clock::steady`] counts.
#[derive(Default)]
pub(super) struct Times {
    pub opened: Cell<Timestamp>,
    pub received: Cell<Timestamp>,
    pub pinged: Cell<Timestamp>,
    /// Deadline of the `auth` frame, while the socket is anonymous.
    pub auth_until: Cell<Option<Timestamp>>,
}

/// A channel's verdict on a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Accepted,
    /// An operation that was refused. It counts like any frame.
    Refused,
    /// A message that the channel does not understand. More than a few close the socket.
    Invalid,
}

/// The protocol of one channel on one socket. Dropped when the socket is gone, so subscriptions end in `Drop`.
pub trait Channel: 'static {
    /// The channel, for metrics.
    const KIND: ChannelKind;

    /// Whether messages are operations, which count in the windows of their REST twins. Accepted messages then do not
    /// count here. All other frames count against the rate of [`Close::TOO_MANY_FRAMES`], as all frames do on other
    /// channels.
    const TAKES_OPERATIONS: bool = false;

    /// Called before the first message is read, to send initial frames.
    ///
    /// # Errors
    /// The close code for the socket.
    fn opened(&mut self) -> impl Future<Output = Result<(), Close>>;

    /// Handles a text message that is not a heartbeat.
    ///
    /// # Errors
    /// The close code for the socket.
    fn message(&mut self, text: &str) -> impl Future<Output = Result<Verdict, Close>>;
}

impl Socket {
    pub(super) fn new(id: u64, bearer: Option<Bearer>, seat: Option<Seat>, clock: Clock) -> Socket {
        let now = clock.steady();
        let times = Times::default();
        for time in [&times.opened, &times.received, &times.pinged] {
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
            line: None,
        }
    }

    /// As the connection of a back-test's bot.
    fn of_bot(self, line: Option<Rc<Line>>) -> Socket {
        Socket { line, ..self }
    }

    /// Unique in this process.
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
        let written = self.outbox.flush(|pieces| match (&*stream, pieces) {
            (Some(stream), [piece]) => stream.try_write(piece),
            (Some(stream), _) => stream.try_write_vectored(pieces),
            (None, _) => Err(io::ErrorKind::NotConnected.into()),
        });
        if let Some(line) = self.line.as_ref().filter(|_| written > 0) {
            line.has_sent(true);
        }
        written
    }

    /// Writes queued frames until the socket ends, and lets the hub write in between.
    pub fn write_to(self: Rc<Socket>, stream: OwnedWriteHalf, write_batch: Rc<WriteBatch>) -> impl Future<Output = ()> {
        *self.stream.borrow_mut() = Some(stream);
        async move {
            let mut stream = SharedStream { half: &self.stream, line: self.line.as_deref() };
            let mut write = pin!(self.outbox.write(&mut stream, || self.clock.steady()));
            // Responses first: there may be thousands of sockets.
            let in_turn = poll_fn(|context| {
                write_batch.flush();
                write.as_mut().poll(context)
            });
            let written = caught(in_turn).await;
            drop(self.stream.take());
            // A peer that is gone takes no more frames.
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

    /// Waits until it is decided that the socket ends.
    pub async fn closed(&self) -> Close {
        self.outbox.closed().await
    }

    pub fn is_open(&self) -> bool {
        self.outbox.closing().is_none()
    }

    pub(super) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// The owner; `None` for an anonymous socket.
    pub fn bearer(&self) -> Option<Bearer> {
        self.bearer.borrow().clone()
    }

    /// Sets the owner after an `auth` frame. The user's seat replaces that of the address.
    pub fn admit(&self, bearer: Bearer, seat: Seat) {
        *self.bearer.borrow_mut() = Some(bearer);
        *self.seat.borrow_mut() = Some(seat);
        self.times.auth_until.set(None);
    }

    /// Sets the deadline of the `auth` frame, in µs from now.
    pub fn expect_auth_within(&self, us: u64) {
        self.times.auth_until.set(Some(self.clock.steady().plus(us)));
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// Accepts a handshake with 101, and then runs the channel that `make` creates. A refused client gets a close code
/// after the 101, because clients read close codes (gateway/docs/streams.md §1.3).
///
/// # Errors
/// 400 `INVALID_REQUEST` if the request is not a handshake, 426 for another version, 403 for an origin that may not
/// read responses.
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

/// Checks a handshake and its origin. Returns the value of `Sec-WebSocket-Accept`.
///
/// # Errors
/// Those of [`upgrade`].
pub(super) fn check_handshake(call: &Call) -> Result<HeaderValue, Refusal> {
    let accept = accept(&call.headers)?;
    let origin = call.headers.get(header::ORIGIN);
    if origin.is_some() && call.front().cors.allows(origin).is_none() {
        return Err(Refusal::new(Code::AccessRestricted, "This origin may not connect."));
    }
    Ok(accept)
}

/// Checks a handshake (RFC 6455 §4.2.1). Returns the value of `Sec-WebSocket-Accept`.
fn accept(headers: &HeaderMap) -> Result<HeaderValue, Refusal> {
    let lists = |name: &HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|token| token.trim().eq_ignore_ascii_case(word))
    };
    if !lists(&header::CONNECTION, "upgrade") || !lists(&header::UPGRADE, "websocket") {
        return Err(Refusal::new(Code::InvalidRequest, "This path is a WebSocket: the request must be an upgrade."));
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
        return Err(Refusal::new(Code::InvalidRequest, "Sec-WebSocket-Key must be 16 bytes in base64."));
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
    let Ok(line) = edge.app.moments.as_ref().map(|moments| line_of(moments, &stream)).transpose() else { return };
    let line = line.map(Rc::new);
    let (read, write) = stream.into_split();
    let socket = Socket::new(edge.app.streams.seats.next_id(), bearer, seat, edge.app.reads.clock.clone());
    let socket = Rc::new(socket.of_bot(line.clone()));
    let entered = edge.sockets.enter(&socket, C::KIND, &edge);
    let writing = tokio::task::spawn_local(Rc::clone(&socket).write_to(write, Rc::clone(&edge.write_batch)));
    let mut reader = Reader::new(early, ReadHalf { stream: read, line });
    match refused {
        Some(close) => socket.close(close),
        None => {
            let mut channel = make(Rc::clone(&socket), edge);
            let close = {
                let reading = caught(read_messages(&socket, &mut reader, &mut channel));
                tokio::select! {
                    biased;
                    close = socket.closed() => close,
                    close = reading => close.unwrap_or(Close::INTERNAL),
                }
            };
            drop(channel);
            // The seat is free before the close frame is sent: a client may reconnect as soon as it sees that frame.
            drop(socket.seat.take());
            socket.close(close);
        }
    }
    // The socket is removed from all tables; only the close handshake is left.
    let _ = tokio::time::timeout(CLOSE_WITHIN, writing).await;
    socket.outbox.abort(Close::NORMAL);
    if let Some(rest) = reader.into_rest() {
        let _ = tokio::time::timeout(LINGER, read_and_drop(rest)).await;
    }
    entered.ends(socket.outbox.closing().unwrap_or(Close::NORMAL));
}

/// Runs a future. `Err` if it panics, which the panic hook has logged.
pub(super) async fn caught<F: Future>(future: F) -> Result<F::Output, Panicked> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(_) => Poll::Ready(Err(Panicked)),
    })
    .await
}

/// A future panicked. Only its socket ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panicked;

/// Reads until the socket ends. Returns the close code.
async fn read_messages<C: Channel>(socket: &Socket, reader: &mut Reader<ReadHalf>, channel: &mut C) -> Close {
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
        let (now, steady) = socket.clock.both();
        socket.times.received.set(steady);
        turn.read(message.bytes()).await;
        let text = match &message {
            Message::Text(bytes) => std::str::from_utf8(bytes).expect("the reader has checked it"),
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
                Ok(Verdict::Accepted)
            }
            Heartbeat::Ignored => Ok(Verdict::Accepted),
            Heartbeat::None => channel.message(text).await,
        };
        match verdict {
            Ok(Verdict::Accepted) => {}
            Ok(_) if may_be_operation && !inbound.takes(now) => return Close::TOO_MANY_FRAMES,
            Ok(Verdict::Refused) => {}
            Ok(Verdict::Invalid) if inbound.bad < BAD_FRAMES_MAX => inbound.bad += 1,
            Ok(Verdict::Invalid) => return Close::TOO_MANY_BAD_FRAMES,
            Err(close) => return close,
        }
    }
}

/// One second, the interval of sweeps.
pub(super) const SWEEP_US: u64 = SECOND;
