//! The own reader of a connection. It sees the bytes before hyper, one request at a time, by its head.
//!
//! A [`Reader`] decides with [`Reader::next`] what happens to the first bytes, and [`Reader::read`] does it. hyper sees
//! a connection whose peer sends a request now and then.

use super::deadline::HeadDeadline;
use super::socket::Socket;
use crate::http::body::Body;
use crate::http::reply::Refusal;
use hyper::Response;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes of one read, and of the longest request that is read completely here.
const READ_BYTES: usize = 64 * 1_024;
/// Requests of one connection that are answered before other tasks of the thread run.
const REQUESTS_PER_TURN: u32 = 32;
/// hyper refuses longer heads.
pub(super) const HEAD_BYTES_MAX: usize = super::BUFFER_BYTES;

thread_local! {
    /// The buffer that connections read into. Bytes are parsed there; only an incomplete request is copied.
    static ROOM: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// What the own reader passes to hyper's side of a connection.
#[derive(Default)]
pub(super) struct Handover {
    /// For the next request of hyper.
    pub(super) prepared: RefCell<Option<Prepared>>,
    /// The next request of hyper is the last of the connection, because the bytes after it were not parsed here.
    pub(super) is_last: Cell<bool>,
    /// The connection ends after the response that is being made.
    pub(super) closes: Cell<bool>,
}

/// A result that is known before hyper has read the request.
pub(super) enum Prepared {
    /// The response to a request that was read completely.
    Response(Response<Body>),
    /// The refusal of its head.
    Fault(Refusal),
}

/// Why a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing to do until bytes or a response arrive.
    Waits,
    /// hyper has bytes to read.
    Granted,
}

/// What happens to the first of some bytes.
pub(super) enum Next {
    /// This many are a request that is answered.
    Answered(u64),
    /// They begin with a request that is being answered.
    Answering,
    /// This many are for hyper.
    Granted(u64),
    /// All bytes from here on are for hyper, which ends the connection with its response.
    Last,
    /// They are not a complete head yet.
    Partial,
}

/// The state of reading a connection.
pub(super) struct Reading {
    pub(super) socket: Socket,
    pub(super) head: HeadDeadline,
    pub(super) handover: Rc<Handover>,
    /// Whether the peer has responses that it has not read.
    is_full: bool,
}

impl Reading {
    pub(super) fn new(socket: Socket, head: HeadDeadline) -> Reading {
        Reading { socket, head, handover: Rc::default(), is_full: false }
    }

    /// Sets the refusal with which hyper answers the next request.
    pub(super) fn refuse(&self, fault: Refusal) {
        *self.handover.prepared.borrow_mut() = Some(Prepared::Fault(fault));
    }

    /// Refuses a head with a bare line feed.
    pub(super) fn refuse_bare_line_feed(&self) -> Next {
        self.refuse(Refusal::broken("A line of the head ends with a bare line feed."));
        Next::Last
    }
}

/// Reads a connection before hyper.
pub(super) trait Reader {
    fn reading(&mut self) -> &mut Reading;

    /// Decides what happens to the first of `bytes`, which are not empty.
    fn next(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Next;

    /// Makes progress. Called while hyper waits for a head.
    fn turn(&mut self, context: &mut Context<'_>) -> Turn {
        self.read(context)
    }

    /// Ends the connection: no further request begins. Returns false while a request is being answered, whose response
    /// will close the connection.
    fn end(&mut self) -> bool {
        self.reading().socket.grant_all();
        true
    }

    /// Reads until nothing is left.
    fn read(&mut self, context: &mut Context<'_>) -> Turn {
        ROOM.with_borrow_mut(|room| read(self, context, room))
    }
}

fn read<R: Reader + ?Sized>(by: &mut R, context: &mut Context<'_>, room: &mut [u8]) -> Turn {
    let mut filled = by.reading().socket.take_incoming(room);
    let (mut at, mut requests) = (0, 0);
    loop {
        let reading = by.reading();
        if reading.socket.is_full() && reading.socket.flush(context).is_pending() {
            // Stop reading from a peer whose responses are still unsent. The socket bounds how long that lasts.
            reading.is_full = true;
            reading.head.answering();
            reading.socket.keep_incoming(&room[at..filled]);
            return Turn::Waits;
        }
        if std::mem::take(&mut reading.is_full) {
            reading.head.answered();
        }
        let next = if requests == REQUESTS_PER_TURN {
            reading.head.answered();
            context.waker().wake_by_ref();
            reading.socket.keep_incoming(&room[at..filled]);
            return Turn::Waits;
        } else if at == filled {
            Next::Partial
        } else {
            by.next(context, &room[at..filled])
        };
        let reading = by.reading();
        match next {
            Next::Answered(bytes) => {
                (at, requests) = (at + bytes as usize, requests + 1);
                continue;
            }
            Next::Answering => {
                reading.socket.keep_incoming(&room[at..filled]);
                reading.head.answering();
                return Turn::Waits;
            }
            Next::Granted(bytes) => {
                reading.socket.keep_incoming(&room[at..filled]);
                reading.socket.grant(bytes);
                return Turn::Granted;
            }
            Next::Partial if filled - at < HEAD_BYTES_MAX => {}
            next @ (Next::Partial | Next::Last) => {
                if matches!(next, Next::Partial) {
                    reading.refuse(Refusal::broken("The head of the request is longer than 16 KiB."));
                }
                reading.handover.is_last.set(true);
                reading.socket.keep_incoming(&room[at..filled]);
                reading.socket.grant_all();
                return Turn::Granted;
            }
        }
        room.copy_within(at..filled, 0);
        (at, filled) = (0, filled - at);
        match reading.socket.poll_fill(context, &mut room[filled..]) {
            Poll::Ready(Ok(count @ 1..)) => filled += count,
            Poll::Ready(_) => {
                // The end of the stream or an error, which hyper will see too.
                reading.socket.keep_incoming(&room[..filled]);
                reading.socket.grant_all();
                return Turn::Granted;
            }
            Poll::Pending => {
                if requests > 0 {
                    reading.head.answered();
                }
                if filled > 0 {
                    reading.socket.keep_incoming(&room[..filled]);
                    reading.head.started();
                }
                return Turn::Waits;
            }
        }
    }
}
