//! Load over HTTP from a bounded number of connections on one thread.
//!
//! With a rate the load is open: request number n is due at n ÷ rate, on connection n modulo connections, independent
//! of the requests before. Its latency counts from its due time, so a stall shows in every request after it. Without a
//! rate each connection sends its next request when it has its answer, and latency counts from the send.

use crate::report::nanoseconds;
use hdrhistogram::Histogram;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

/// Room for one answer.
const ANSWER_BYTES: usize = 8 * 1_024;

/// Open connections, each with its client.
pub struct Load<C> {
    runtime: Runtime,
    connections: Vec<Connection<C>>,
}

struct Connection<C> {
    stream: TcpStream,
    client: C,
    request: Vec<u8>,
    answer: Vec<u8>,
}

/// The result of a run of requests.
pub struct Reached {
    pub seconds: f64,
    pub latency: Histogram<u64>,
    /// Delay of an open load itself: from the time when a request was due and its connection free to the send. Waiting
    /// for an answer on the connection is the server's delay.
    pub lateness: Histogram<u64>,
    /// Answers by status.
    pub statuses: BTreeMap<u16, u64>,
    /// The first answer of status 400 or above, with its head.
    pub refusal: Option<String>,
}

impl Reached {
    /// Answers a second.
    pub fn rate(&self) -> f64 {
        self.latency.len() as f64 / self.seconds
    }

    /// # Panics
    /// With the first refusal, unless all `count` answers have the status 200.
    pub fn check_well(&self, count: usize) {
        let refusal = self.refusal.as_deref().unwrap_or("no refusal");
        assert_eq!(self.statuses, BTreeMap::from([(200, count as u64)]), "every answer is 200: {refusal}");
    }
}

impl<C: 'static> Load<C> {
    /// Opens one connection for each client.
    pub fn connect(address: SocketAddr, clients: impl IntoIterator<Item = C>) -> io::Result<Load<C>> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let mut connections = Vec::new();
        for client in clients {
            let stream = runtime.block_on(TcpStream::connect(address))?;
            stream.set_nodelay(true)?;
            connections.push(Connection { stream, client, request: Vec::new(), answer: vec![0; ANSWER_BYTES] });
        }
        Ok(Load { runtime, connections })
    }

    /// Sends `count` requests over the first `connections`; `request` writes the next one of a client. After an error
    /// no connection is usable any more.
    pub fn run(
        &mut self,
        connections: usize,
        count: usize,
        rate: Option<f64>,
        request: fn(&mut C, &mut Vec<u8>),
    ) -> io::Result<Reached> {
        let (latency, statuses) = (Rc::new(RefCell::new(nanoseconds())), Rc::new(RefCell::new(BTreeMap::new())));
        let lateness = Rc::new(RefCell::new(nanoseconds()));
        let refusal = Rc::new(RefCell::new(None));
        let begun = Instant::now();
        let tasks = LocalSet::new();
        let working: Vec<_> = self
            .connections
            .drain(..connections)
            .enumerate()
            .map(|(index, mut connection)| {
                let (latency, lateness, statuses) = (latency.clone(), lateness.clone(), statuses.clone());
                let refusal = refusal.clone();
                tasks.spawn_local(async move {
                    let mut free = begun;
                    for number in (index..count).step_by(connections) {
                        let due = rate.map(|rate| begun + Duration::from_secs_f64(number as f64 / rate));
                        connection.request.clear();
                        request(&mut connection.client, &mut connection.request);
                        let since = match due {
                            Some(due) => {
                                reach(due).await;
                                let late = due.max(free).elapsed().as_nanos() as u64;
                                lateness.borrow_mut().saturating_record(late);
                                due
                            }
                            None => Instant::now(),
                        };
                        let (status, bytes) = connection.exchange().await?;
                        free = Instant::now();
                        latency.borrow_mut().saturating_record((free - since).as_nanos() as u64);
                        *statuses.borrow_mut().entry(status).or_default() += 1;
                        if status >= 400 {
                            let text = || String::from_utf8_lossy(&connection.answer[..bytes]).into_owned();
                            refusal.borrow_mut().get_or_insert_with(text);
                        }
                    }
                    Ok::<_, io::Error>(connection)
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
        let (latency, lateness) = (latency.borrow().clone(), lateness.borrow().clone());
        let statuses = statuses.borrow().clone();
        let refusal = refusal.take();
        Ok(Reached { seconds, latency, lateness, statuses, refusal })
    }
}

/// Returns at that time and not up to a millisecond later, the resolution of timers: it spins instead.
async fn reach(due: Instant) {
    while Instant::now() < due {
        tokio::task::yield_now().await;
    }
}

impl<C> Connection<C> {
    /// Sends the request and reads the whole answer; returns its status and its length in bytes.
    async fn exchange(&mut self) -> io::Result<(u16, usize)> {
        self.stream.write_all(&self.request).await?;
        let mut filled = 0;
        loop {
            if filled == self.answer.len() {
                return Err(io::Error::other("an answer larger than the room for it"));
            }
            let read = self.stream.read(&mut self.answer[filled..]).await?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            filled += read;
            if let Some((status, bytes)) = head(&self.answer[..filled])
                && filled >= bytes
            {
                return Ok((status, bytes));
            }
        }
    }
}

/// Status of an answer and its bytes, body included; `None` while the head is incomplete.
pub fn head(answer: &[u8]) -> Option<(u16, usize)> {
    let status = std::str::from_utf8(answer.get(9..12)?).ok()?.parse().ok()?;
    let (mut at, mut body_bytes) = (0, 0);
    loop {
        let line = &answer[at..at + answer[at..].iter().position(|byte| *byte == b'\n')?];
        at += line.len() + 1;
        if line == b"\r" {
            return Some((status, at + body_bytes));
        }
        const LENGTH: &[u8] = b"content-length: ";
        if line.len() > LENGTH.len() && line[..LENGTH.len()].eq_ignore_ascii_case(LENGTH) {
            body_bytes = std::str::from_utf8(&line[LENGTH.len()..]).ok()?.trim_end().parse().ok()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_whole_when_its_length_says_so() {
        let cases: [(&str, Option<(u16, usize)>); 5] = [
            ("", None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n", None),
            ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n", Some((200, 40))),
            ("HTTP/1.1 429 Too Many\r\nx: y\r\ncontent-length: 12\r\n\r\nab", Some((429, 63))),
            ("HTTP/1.1 204 No Content\r\n\r\n", Some((204, 27))),
        ];
        for (answer, expected) in cases {
            assert_eq!(head(answer.as_bytes()), expected, "{answer:?}");
        }
        println!("heads: {} cases", cases.len());
    }

    #[test]
    fn a_stall_delays_every_request_after_it() {
        const STALL: Duration = Duration::from_millis(50);
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let server = std::thread::spawn(move || {
            use std::io::{Read, Write};
            let (mut stream, _) = listener.accept().expect("one client");
            let mut bytes = [0; 16];
            for number in 0..20 {
                stream.read_exact(&mut bytes[..1]).expect("one byte is a request");
                if number == 0 {
                    std::thread::sleep(STALL);
                }
                stream.write_all(b"HTTP/1.1 204 No\r\n\r\n").expect("it listens");
            }
        });
        let mut load = Load::connect(address, [()]).expect("it listens");
        let reached = load.run(1, 20, Some(1_000.0), |(), out| out.push(b'?')).expect("it answers");
        server.join().expect("it ended without an error");
        assert_eq!(reached.statuses, BTreeMap::from([(204, 20)]));
        // All twenty were due within 20 ms, so each of them waited for the stall's end: at least 30 ms.
        let least = Duration::from_nanos(reached.latency.min());
        assert!(least >= STALL - Duration::from_millis(20), "{least:?}");
        // After the stall each was sent as soon as its connection was free: the server is late there, not the load.
        let lateness = Duration::from_nanos(reached.lateness.value_at_quantile(0.5));
        assert!(reached.lateness.len() == 20 && lateness < STALL / 5, "{lateness:?}");
        println!("requests after a stall: {} cases", reached.latency.len());
    }
}
