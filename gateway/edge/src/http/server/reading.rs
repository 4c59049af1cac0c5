//! What comes is read here before the library has it: a request at a time, by its head.
//!
//! Whoever takes part says with [`Before::next`] what becomes of the first bytes; [`Before::read`] does it. To the library
//! a connection is one whose peer sends a request now and then.

use super::deadline::HeadDeadline;
use super::socket::Socket;
use crate::http::body::Body;
use crate::http::reply::Refusal;
use hyper::Response;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::task::{Context, Poll};

/// Bytes that one read takes, and the longest request that is read whole before the library.
const READ_BYTES: usize = 64 * 1_024;
/// Requests of one connection that are answered before others get their turn on the thread.
const REQUESTS_PER_TURN: u32 = 32;
/// Heads that are longer are the library's to refuse.
pub(super) const HEAD_BYTES_MAX: usize = super::BUFFER_BYTES;

thread_local! {
    /// What a connection's bytes are read into. They are looked at there, and only what is not whole is kept.
    static ROOM: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES].into());
}

/// What is said here of the request that the library reads next.
#[derive(Default)]
pub(super) struct Word {
    pub(super) made: RefCell<Option<Made>>,
    /// It is the last one of the connection: what follows it has not been looked at here.
    pub(super) is_last: Cell<bool>,
}

/// What is known of an answer before the library has read the request.
pub(super) enum Made {
    /// The whole answer to a request that came whole.
    Answer(Response<Body>),
    /// Its head is refused.
    Refusal(Refusal),
}

/// Why a turn is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// There is nothing to do before something comes.
    Waits,
    /// The library has bytes to take.
    Granted,
}

/// What becomes of the first of some bytes.
pub(super) enum Next {
    /// So many were a request that is answered.
    Answered(u64),
    /// They begin with a request that is being answered.
    Answering,
    /// So many are for the library.
    Granted(u64),
    /// All that come are for the library, which ends the connection with its answer.
    Last,
    /// They are no whole head yet.
    Part,
}

/// What reading takes, whoever answers.
pub(super) struct Reading {
    pub(super) socket: Socket,
    pub(super) head: HeadDeadline,
    pub(super) word: Rc<Word>,
    /// The peer is waited for: it has not taken its answers yet.
    is_full: bool,
}

impl Reading {
    pub(super) fn new(socket: Socket, head: HeadDeadline) -> Reading {
        Reading { socket, head, word: Rc::default(), is_full: false }
    }

    /// The library answers the request that it reads next with this.
    pub(super) fn refuse(&self, refusal: Refusal) {
        *self.word.made.borrow_mut() = Some(Made::Refusal(refusal));
    }

    /// A line of a head ends with a bare line feed.
    pub(super) fn refuse_bare_line_feed(&self) -> Next {
        self.refuse(Refusal::broken("A line of the head ends with a bare line feed."));
        Next::Last
    }
}

/// Who reads a connection before the library.
pub(super) trait Before {
    fn reading(&mut self) -> &mut Reading;

    /// What becomes of the first of `bytes`, of which there is at least one.
    fn next(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Next;

    /// Does what there is to do. To be called while the library rests.
    fn turn(&mut self, context: &mut Context<'_>) -> Turn {
        self.read(context)
    }

    /// The connection ends: nothing more is begun. False while a request is being answered; its answer will say that the
    /// connection ends.
    fn end(&mut self) -> bool {
        self.reading().socket.grant_all();
        true
    }

    /// Reads until there is nothing more to read.
    fn read(&mut self, context: &mut Context<'_>) -> Turn {
        ROOM.with_borrow_mut(|room| read(self, context, room))
    }
}

fn read<B: Before + ?Sized>(by: &mut B, context: &mut Context<'_>, room: &mut [u8]) -> Turn {
    let mut filled = by.reading().socket.take_incoming(room);
    let (mut at, mut requests) = (0, 0);
    loop {
        let reading = by.reading();
        if reading.socket.is_full() && reading.socket.flush(context).is_pending() {
            // Whoever does not take his answers is not asked for more; how long that may last is the socket's.
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
            Next::Part
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
            Next::Part if filled - at < HEAD_BYTES_MAX => {}
            next @ (Next::Part | Next::Last) => {
                if matches!(next, Next::Part) {
                    reading.refuse(Refusal::broken("The head of the request is longer than 16 KiB."));
                }
                reading.word.is_last.set(true);
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
                // The end, or a fault: the library finds the same.
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
                    reading.head.begun();
                }
                return Turn::Waits;
            }
        }
    }
}
