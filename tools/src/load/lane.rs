//! One connection: operations wait for room in its pipeline, are written together, and are paired with their answers.
//!
//! Nothing waits with an operation in hand: a due operation enters the lane immediately, in any state of the
//! connection, and keeps its due time. A connection that ends is opened again while the run lasts; operations in flight
//! on it have an unknown outcome. A server may close an idle connection: that is not counted as a failure, and the
//! connection is reopened immediately, so that the next operation finds it open.

use super::course::{Course, Phase};
use super::kind::Kind;
use super::open::open;
use super::protocol::{Received, is_success};
use super::trader::{Action, Trader, Verdict};
use crate::frame;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::AsyncReadExt as _;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::Notify;

/// Approximate size of one answer, and bounds of the read buffer of a whole pipeline.
const ANSWER_BYTES: usize = 2 << 10;
const READ_BYTES: (usize, usize) = (4 << 10, 64 << 10);
/// Bytes without a complete answer from which the connection is given up.
const UNREAD_BYTES_MAX: usize = 4 << 20;
/// Delay before a connection is opened again: the first one, and the longest.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(1));
/// A connection without traffic for this long is idle. A server that ends connections sooner has another reason.
const REST_LEAST: Duration = Duration::from_secs(1);

/// A connection and the users that it trades for.
pub struct Lane {
    course: Rc<Course>,
    number: usize,
    /// The key of its socket, on transports that have one.
    socket_user: u32,
    desk: RefCell<Desk>,
    /// Unsent bytes are left, or the connection must end.
    blocked: Notify,
}

struct Desk {
    trader: Trader,
    writer: Option<Rc<OwnedWriteHalf>>,
    /// Bytes to send, and how many of them are sent.
    out: Vec<u8>,
    written: usize,
    /// Due and not yet sent, oldest first.
    waiting: VecDeque<(Kind, Duration)>,
    /// Sent and not yet answered, oldest first.
    flying: VecDeque<Flight>,
    next_flight: u64,
    /// Operations that this lane began itself, in a closed loop.
    begun: u64,
    id: String,
}

/// How a connection ended.
enum Ended {
    /// By this client.
    Closed,
    /// By the server, on an idle connection.
    Rested,
    /// Otherwise; the reason.
    Broken(String),
}

struct Flight {
    number: u64,
    action: Action,
    due: Duration,
}

impl Lane {
    pub fn new(course: Rc<Course>, number: usize, users: Vec<u32>, trader: Trader) -> Lane {
        let desk = Desk {
            trader,
            writer: None,
            out: Vec::new(),
            written: 0,
            waiting: VecDeque::new(),
            flying: VecDeque::new(),
            next_flight: 0,
            begun: 0,
            id: String::new(),
        };
        Lane { course, number, socket_user: users[0], desk: RefCell::new(desk), blocked: Notify::new() }
    }

    /// Adds a due operation. The next [`Lane::flush`] writes it.
    pub fn offer(&self, kind: Kind, due: Duration, now: Duration) {
        // Counted whether or not the connection is free: a late arrival here is the client's own delay.
        self.course.tally.borrow_mut().came(due, now);
        let desk = &mut *self.desk.borrow_mut();
        let free = desk.writer.is_some() && desk.waiting.is_empty() && desk.flying.len() < self.course.pipeline;
        if free {
            desk.send(kind, due, &self.course, self.number);
        } else {
            desk.waiting.push_back((kind, due));
        }
    }

    /// Writes the buffered bytes.
    pub fn flush(&self) {
        // The reader sees whether the connection has ended.
        let _ = self.desk.borrow_mut().flush();
        if self.desk.borrow().is_blocked() {
            self.blocked.notify_one();
        }
    }

    /// Begins what the phase allows, for a lane without an operation in flight whose answer would do so.
    pub fn begin(&self) {
        self.desk.borrow_mut().pump(&self.course, self.number);
        self.flush();
    }

    /// Gives up the waiting operations; returns their count.
    pub fn give_up_waiting(&self) -> u64 {
        let waiting = std::mem::take(&mut self.desk.borrow_mut().waiting);
        self.course.finish(waiting.len() as u64);
        waiting.len() as u64
    }

    /// The trader, after the run.
    pub fn with_trader<T>(&self, look: impl FnOnce(&Trader) -> T) -> T {
        look(&self.desk.borrow().trader)
    }

    /// Opens the connection, and reopens it until the future is dropped. `opened` is called once, after the first
    /// attempt.
    pub async fn live(self: Rc<Self>, opened: impl FnOnce(Result<(), String>)) {
        let mut opened = Some(opened);
        let (mut backoff, mut was_open) = (BACKOFF.0, false);
        loop {
            let key = &self.course.keys.users[self.socket_user as usize].api_key;
            let ended = match open(self.course.address, &self.course.protocol, key).await {
                Ok((stream, received)) => {
                    let (reader, writer) = stream.into_split();
                    self.desk.borrow_mut().writer = Some(Rc::new(writer));
                    self.course.tally.borrow_mut().reconnects += u64::from(std::mem::replace(&mut was_open, true));
                    if let Some(opened) = opened.take() {
                        opened(Ok(()));
                    }
                    self.begin();
                    let (ended, any_answer) = self.listen(reader, received).await;
                    if any_answer {
                        backoff = BACKOFF.0;
                    }
                    ended
                }
                Err(error) => Ended::Broken(error),
            };
            match ended {
                Ended::Closed => {}
                Ended::Rested => {
                    self.course.tally.borrow_mut().rested += 1;
                    self.desk.borrow_mut().writer = None;
                    continue;
                }
                Ended::Broken(why) => {
                    self.end(&why);
                    if let Some(opened) = opened.take() {
                        opened(Err(why));
                    }
                }
            }
            tokio::time::sleep(backoff).await;
            backoff = (2 * backoff).min(BACKOFF.1);
        }
    }

    /// Reads answers until the connection ends; returns how it ended, and whether there was any answer.
    async fn listen(&self, mut reader: OwnedReadHalf, mut received: Vec<u8>) -> (Ended, bool) {
        let room = (self.course.pipeline * ANSWER_BYTES).clamp(READ_BYTES.0, READ_BYTES.1);
        let (mut any_answer, mut last_read_at) = (false, Instant::now());
        loop {
            if self.desk.borrow().writer.is_none() {
                return (Ended::Closed, any_answer);
            }
            match self.take(&mut received) {
                Ok(answers) => any_answer |= answers > 0,
                Err(why) => return (Ended::Broken(why), any_answer),
            }
            received.reserve(room);
            let blocked = self.desk.borrow().blocked_writer();
            tokio::select! {
                biased;
                read = reader.read_buf(&mut received) => match read {
                    // Nothing is in flight: the last event here was an answer.
                    Ok(0) if self.desk.borrow().flying.is_empty() && last_read_at.elapsed() >= REST_LEAST => {
                        return (Ended::Rested, any_answer);
                    }
                    Ok(0) => return (Ended::Broken("closed by the server".to_owned()), any_answer),
                    Ok(_) => last_read_at = Instant::now(),
                    Err(error) => return (Ended::Broken(error_text(&error)), any_answer),
                },
                () = writable(blocked) => self.flush(),
                () = self.blocked.notified() => {}
            }
        }
    }

    /// Takes the complete answers, begins as many operations, and writes them. Returns the answers.
    fn take(&self, received: &mut Vec<u8>) -> Result<usize, String> {
        let (mut taken, mut answers) = (0, 0);
        let desk = &mut *self.desk.borrow_mut();
        let now = self.course.now();
        while taken < received.len() {
            match self.course.protocol.decode(&received[taken..]) {
                Received::Part => break,
                Received::Other { bytes } => taken += bytes,
                Received::Ping { bytes, payload } => {
                    frame::pong(&mut desk.out, payload);
                    taken += bytes;
                }
                Received::Closed(why) => return Err(why),
                Received::Broken(why) => return Err(why.to_owned()),
                Received::Answer(answer) => {
                    let place = match answer.flight {
                        Some(number) => desk.flying.iter().position(|flight| flight.number == number),
                        None => (!desk.flying.is_empty()).then_some(0),
                    };
                    let flight = place.and_then(|place| desk.flying.remove(place));
                    let Flight { action, due, .. } = flight.ok_or("an answer without an operation")?;
                    let verdict = Verdict::of(answer.status, answer.code, answer.order_exists);
                    desk.trader.record(action, verdict);
                    self.course.note(self.number, action, verdict, &received[taken..taken + answer.bytes]);
                    let succeeded = is_success(answer.status);
                    let mut tally = self.course.tally.borrow_mut();
                    tally.answered(action.kind(), due, now, answer.status, answer.code, succeeded);
                    self.course.finish(1);
                    taken += answer.bytes;
                    answers += 1;
                    if answer.last {
                        return Err("closed by the server, as announced".to_owned());
                    }
                }
            }
        }
        received.drain(..taken);
        if received.len() > UNREAD_BYTES_MAX {
            return Err("an answer without an end".to_owned());
        }
        desk.pump(&self.course, self.number);
        desk.flush().map_err(|error| error_text(&error))?;
        Ok(answers)
    }

    /// The connection ended, and with it the answers to the operations in flight.
    fn end(&self, why: &str) {
        let desk = &mut *self.desk.borrow_mut();
        let mut tally = self.course.tally.borrow_mut();
        tally.broken(why);
        for flight in desk.flying.drain(..) {
            desk.trader.record(flight.action, Verdict::Unknown);
            self.course.note(self.number, flight.action, Verdict::Unknown, &[]);
            tally.kinds[flight.action.kind() as usize].unanswered += 1;
            self.course.finish(1);
        }
        desk.writer = None;
        desk.out.clear();
        desk.written = 0;
    }

    /// The run is over; operations in flight are not waited for. Their connection ends with them: a late answer must
    /// not be paired with a later operation.
    pub fn close(&self) {
        if !self.desk.borrow().flying.is_empty() {
            self.end("not answered until the end");
            self.blocked.notify_one();
        }
    }
}

/// Returns when there is room; only called with a writer that lacks it.
async fn writable(blocked: Option<Rc<OwnedWriteHalf>>) {
    match blocked {
        // The flush that follows sees an error.
        Some(writer) => drop(writer.writable().await),
        None => std::future::pending().await,
    }
}

/// The kind of an error; its number is dropped, so that one kind is one row. An error without a kind keeps its text.
pub(super) fn error_text(error: &io::Error) -> String {
    match error.kind().to_string() {
        kind if kind == "uncategorized error" => error.to_string(),
        kind => kind,
    }
}

impl Desk {
    /// Sends the waiting operations and those that the phase allows, while the pipeline has room.
    fn pump(&mut self, course: &Course, lane: usize) {
        if self.writer.is_none() {
            return;
        }
        while self.flying.len() < course.pipeline {
            let (kind, due) = match (self.waiting.pop_front(), course.phase.get()) {
                (Some(waiting), _) => waiting,
                (None, Phase::Closed) => {
                    self.begun += 1;
                    course.offer();
                    (course.mix.kind(lane, self.begun - 1), course.now())
                }
                (None, Phase::Clean) if self.trader.open_count() > 0 => {
                    course.offer();
                    (Kind::Cancel, course.now())
                }
                (None, _) => return,
            };
            self.send(kind, due, course, lane);
        }
    }

    fn send(&mut self, kind: Kind, due: Duration, course: &Course, lane: usize) {
        let action = self.trader.next(kind);
        let order = action.order();
        self.id.clear();
        write!(self.id, "{}-{lane}-{}", course.run, order.number).expect("writing to a string succeeds");
        let number = self.next_flight;
        self.next_flight += 1;
        let key = &course.keys.users[order.user as usize].api_key;
        match self.trader.opening(action) {
            Some(opening) => course.protocol.place(&mut self.out, number, key, opening, &self.id),
            None => course.protocol.cancel(&mut self.out, number, key, &self.id),
        }
        self.flying.push_back(Flight { number, action, due });
    }

    fn is_blocked(&self) -> bool {
        self.writer.is_some() && self.written < self.out.len()
    }

    fn blocked_writer(&self) -> Option<Rc<OwnedWriteHalf>> {
        if self.is_blocked() { self.writer.clone() } else { None }
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(writer) = &self.writer else { return Ok(()) };
        while self.written < self.out.len() {
            match writer.try_write(&self.out[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        self.out.clear();
        self.written = 0;
        Ok(())
    }
}
