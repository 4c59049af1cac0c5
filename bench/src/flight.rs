//! Load with many requests in flight on each connection, over any protocol; on one thread.
//!
//! A connection sends as many requests as may be in flight in one write, and with each read of answers as many more.
//! Latency counts from the write. With a pause, a connection with one request in flight waits this long from write to
//! write, and the connections start spread over it.

use crate::load::Reached;
use crate::report::nanoseconds;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Room that is always available for the next read.
const READ_BYTES: usize = 64 << 10;

/// The protocol of a connection.
pub trait Speaks: 'static {
    /// Writes a request. Numbers count up from 0 on each connection.
    fn request(&mut self, number: u64, out: &mut Vec<u8>);
    /// The first complete answer in these bytes.
    fn answer(&mut self, bytes: &[u8]) -> Option<Answer>;
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Size on the wire.
    pub bytes: usize,
    /// The request that it answers; `None` = the oldest in flight.
    pub number: Option<u64>,
    pub status: u16,
}

/// Open connections.
pub struct Flights<S> {
    runtime: Runtime,
    connections: Vec<Connection<S>>,
    pause: Duration,
}

struct Connection<S> {
    stream: TcpStream,
    speaker: S,
    next: u64,
    /// Requests without an answer, oldest first.
    flying: VecDeque<(u64, Instant)>,
    out: Vec<u8>,
    heard: Vec<u8>,
}

impl<S: Speaks> Flights<S> {
    /// Connections that `open` opens one after the other.
    pub fn open<F>(speakers: impl IntoIterator<Item = S>, mut open: impl FnMut(&S) -> F) -> io::Result<Flights<S>>
    where
        F: Future<Output = io::Result<TcpStream>>,
    {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let mut connections = Vec::new();
        for speaker in speakers {
            let stream = runtime.block_on(open(&speaker))?;
            stream.set_nodelay(true)?;
            let (flying, out, heard) = (VecDeque::new(), Vec::new(), Vec::new());
            connections.push(Connection { stream, speaker, next: 0, flying, out, heard });
        }
        Ok(Flights { runtime, connections, pause: Duration::ZERO })
    }

    /// Least time from one write of a connection to its next.
    pub fn with_pause(mut self, pause: Duration) -> Flights<S> {
        self.pause = pause;
        self
    }

    /// Sends `count` requests over the first `connections`, each with at most `in_flight` without an answer. After an
    /// error no connection is usable any more.
    pub fn run(&mut self, connections: usize, in_flight: usize, count: usize) -> io::Result<Reached> {
        let heard = Rc::new(RefCell::new((nanoseconds(), BTreeMap::new())));
        let begun = Instant::now();
        let tasks = LocalSet::new();
        let pause = self.pause;
        let working: Vec<_> = self
            .connections
            .drain(..connections)
            .enumerate()
            .map(|(index, mut connection)| {
                let heard = heard.clone();
                let share = (index..count).step_by(connections).len();
                tasks.spawn_local(async move {
                    let answered = |answer: Answer, since: Instant| {
                        let (latency, statuses) = &mut *heard.borrow_mut();
                        latency.saturating_record(since.elapsed().as_nanos() as u64);
                        *statuses.entry(answer.status).or_default() += 1;
                    };
                    if !pause.is_zero() {
                        tokio::time::sleep(pause * index as u32 / connections as u32).await;
                    }
                    connection.fly(in_flight, share, pause, answered).await.map(|()| connection)
                })
            })
            .collect();
        let back = self.runtime.block_on(tasks.run_until(async {
            let mut back = Vec::with_capacity(working.len());
            for task in working {
                back.push(task.await.map_err(io::Error::other)??);
            }
            Ok::<_, io::Error>(back)
        }))?;
        let seconds = begun.elapsed().as_secs_f64();
        self.connections.splice(..0, back);
        let (latency, statuses) = heard.replace((nanoseconds(), BTreeMap::new()));
        Ok(Reached { seconds, latency, lateness: nanoseconds(), statuses, refusal: None })
    }
}

impl<S: Speaks> Connection<S> {
    async fn fly(
        &mut self,
        in_flight: usize,
        count: usize,
        pause: Duration,
        mut answered: impl FnMut(Answer, Instant),
    ) -> io::Result<()> {
        let (mut sent, mut done) = (0, 0);
        let mut next: Option<tokio::time::Instant> = None;
        while done < count {
            self.out.clear();
            if let Some(next) = next.filter(|_| !pause.is_zero() && self.flying.is_empty()) {
                tokio::time::sleep_until(next).await;
            }
            let now = Instant::now();
            next = Some((now + pause).into());
            while sent < count && self.flying.len() < in_flight {
                self.speaker.request(self.next, &mut self.out);
                self.flying.push_back((self.next, now));
                (self.next, sent) = (self.next + 1, sent + 1);
            }
            if !self.out.is_empty() {
                self.stream.write_all(&self.out).await?;
            }
            self.heard.reserve(READ_BYTES);
            if self.stream.read_buf(&mut self.heard).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let mut taken = 0;
            while let Some(answer) = self.speaker.answer(&self.heard[taken..]) {
                taken += answer.bytes;
                if answer.status == UNASKED {
                    continue;
                }
                let place = match answer.number {
                    Some(number) => self.flying.iter().position(|(flying, _)| *flying == number),
                    None => (!self.flying.is_empty()).then_some(0),
                };
                let (_, since) = place
                    .and_then(|place| self.flying.remove(place))
                    .ok_or_else(|| io::Error::other("an answer without a request"))?;
                answered(answer, since);
                done += 1;
            }
            self.heard.drain(..taken);
        }
        Ok(())
    }
}

/// Status of a message that is not an answer: a ping of the server.
pub const UNASKED: u16 = 0;
