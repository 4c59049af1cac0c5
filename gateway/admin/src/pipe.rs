//! Bytes from a thread that makes them to a connection: a bounded number of pieces at a time, and only while the peer
//! takes them.

use crate::deadline::Admitted;
use host::thread::Stop;
use std::io::{self, Write};
use std::sync::Arc;
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece, and pieces that wait for the connection: the memory of one stream.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 8;
/// Longest sleep of a writer that waits for the connection, which wakes it after taking a piece.
const CHECK_EVERY: Duration = Duration::from_millis(250);

/// A peer that takes less than this, in bytes a second, is too slow.
pub const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// Measures how slow a peer is: its bytes against the time spent waiting for it. The time to make the bytes does not
/// count.
#[derive(Debug)]
pub struct Pace {
    within: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// A peer is too slow if it is waited for this long while it takes less than [`LEAST_BYTES_PER_SECOND`].
    pub fn new(within: Duration) -> Pace {
        Pace { within, waited: Duration::ZERO, bytes: 0 }
    }

    /// Records that the peer was waited for, and the bytes it took. Returns false if it is too slow.
    pub fn note(&mut self, waited: Duration, bytes: usize) -> bool {
        (self.waited, self.bytes) = (self.waited + waited, self.bytes + bytes as u64);
        if self.waited < self.within {
            return true;
        }
        let least = u128::from(LEAST_BYTES_PER_SECOND) * self.waited.as_micros() / 1_000_000;
        let is_enough = u128::from(self.bytes) >= least;
        (self.waited, self.bytes) = (Duration::ZERO, 0);
        is_enough
    }
}

/// A piece, or the end mark.
type Piece = Option<Vec<u8>>;

/// The writing end. Without [`Inlet::end`] the peer sees that the body is cut.
pub struct Inlet {
    pieces: Sender<Piece>,
    piece: Vec<u8>,
    pace: Pace,
    stop: Stop,
}

/// The connection's end.
pub struct Outlet {
    pieces: Receiver<Piece>,
    /// The thread that may be waiting for room.
    writer: Thread,
}

/// The stream ended before all of it was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Truncated;

/// The stream of a response.
pub struct Stream {
    outlet: Outlet,
    /// Dropped with the stream: the next request's deadline runs, and the writer sees that the requester has gone.
    _admitted: Admitted,
    _here: Arc<()>,
}

impl Stream {
    pub(crate) fn new(outlet: Outlet, admitted: Admitted, here: Arc<()>) -> Stream {
        Stream { outlet, _admitted: admitted, _here: here }
    }

    /// The next bytes; `None` after the last ones.
    ///
    /// # Errors
    /// [`Truncated`].
    pub async fn next(&mut self) -> Result<Option<Vec<u8>>, Truncated> {
        self.outlet.next().await
    }
}

/// The connection's end before its writer exists.
pub struct PendingOutlet(Receiver<Piece>);

/// Both ends. Writing fails when `stop` is set, when the peer has left, and when it is too slow.
pub fn pipe(pace: Pace, stop: Stop) -> (Inlet, PendingOutlet) {
    let (pieces, taken) = channel(PIECES_MAX);
    (Inlet { pieces, piece: Vec::with_capacity(PIECE_BYTES), pace, stop }, PendingOutlet(taken))
}

impl Inlet {
    /// Sends the end mark.
    ///
    /// # Errors
    /// As for writing.
    pub fn end(mut self) -> io::Result<()> {
        self.flush()?;
        self.send(None)
    }

    fn send(&mut self, mut piece: Piece) -> io::Result<()> {
        let bytes = piece.as_ref().map_or(0, Vec::len);
        let mut took = bytes;
        loop {
            piece = match self.pieces.try_send(piece) {
                Ok(()) => {
                    // Bytes that the peer took without a wait count, too.
                    return if self.pace.note(Duration::ZERO, took) { Ok(()) } else { Err(too_slow()) };
                }
                Err(TrySendError::Closed(_)) => {
                    return Err(io::Error::new(io::ErrorKind::BrokenPipe, "the peer has left"));
                }
                Err(TrySendError::Full(piece)) => piece,
            };
            if self.stop.is_set() {
                return Err(io::Error::other("the server stops"));
            }
            let started = Instant::now();
            std::thread::park_timeout(CHECK_EVERY);
            if !self.pace.note(started.elapsed(), std::mem::take(&mut took)) {
                return Err(too_slow());
            }
        }
    }
}

fn too_slow() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the peer takes less than 1 MiB a second")
}

impl Write for Inlet {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let taken = &bytes[..bytes.len().min(PIECE_BYTES - self.piece.len())];
        self.piece.extend_from_slice(taken);
        if self.piece.len() == PIECE_BYTES {
            self.flush()?;
        }
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE_BYTES));
        self.send(Some(piece))
    }
}

impl PendingOutlet {
    pub fn of(self, writer: Thread) -> Outlet {
        Outlet { pieces: self.0, writer }
    }
}

impl Outlet {
    /// The next piece; `None` after the last one.
    async fn next(&mut self) -> Result<Option<Vec<u8>>, Truncated> {
        let piece = self.pieces.recv().await.ok_or(Truncated)?;
        if piece.is_some() {
            self.writer.unpark();
        }
        Ok(piece)
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        self.pieces.close();
        self.writer.unpark();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_that_is_waited_for_and_takes_little_is_too_slow() {
        const MIB: usize = 1 << 20;
        let second = Duration::from_secs(1);
        // What a peer of three seconds does: (waited, bytes); whether it is too slow at the end.
        type Row<'a> = (&'a str, &'a [(Duration, usize)], bool);
        let rows: [Row<'_>; 8] = [
            ("takes all immediately", &[(Duration::ZERO, 90 * MIB); 9], false),
            ("no wait, and few bytes are made", &[(Duration::ZERO, 1); 9], false),
            ("takes nothing", &[(second, 0); 3], true),
            ("has time left", &[(second, 0); 2], false),
            ("takes just enough", &[(second, MIB); 9], false),
            ("takes a byte less", &[(second, MIB), (second, MIB), (second, MIB - 1)], true),
            ("takes in bursts", &[(second, 0), (second, 0), (second, 3 * MIB), (second, 0), (second, 0)], false),
            ("stops after a burst", &[(second, 99 * MIB), (second, 0), (second, 0), (second * 3, 0)], true),
        ];
        for (what, takes, expected) in rows {
            let mut pace = Pace::new(3 * second);
            let is_slow = takes.iter().any(|(waited, bytes)| !pace.note(*waited, *bytes));
            assert_eq!(is_slow, expected, "{what}");
        }
        println!("paces: {} cases", rows.len());
    }

    /// The pipe that a thread writes into, and how the writing ended.
    fn written(
        pace: Pace,
        stop: &Stop,
        write: impl FnOnce(Inlet) -> io::Result<()> + Send + 'static,
    ) -> (Outlet, std::thread::JoinHandle<io::Result<()>>) {
        let (inlet, taken) = pipe(pace, stop.clone());
        let writing = std::thread::spawn(move || write(inlet));
        (taken.of(writing.thread().clone()), writing)
    }

    async fn read(mut outlet: Outlet) -> Result<Vec<u8>, Truncated> {
        let mut bytes = Vec::new();
        while let Some(piece) = outlet.next().await? {
            bytes.extend(piece);
        }
        Ok(bytes)
    }

    #[test]
    fn written_bytes_arrive_and_a_failed_body_is_cut() {
        let patient = || Pace::new(Duration::from_secs(3_600));
        let runtime = host::runtime::runtime().expect("a runtime");
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        for whole in [true, false] {
            let bytes = sent.clone();
            let (outlet, writing) = written(patient(), &Stop::new(), move |mut inlet| {
                inlet.write_all(&bytes)?;
                inlet.flush()?;
                if whole { inlet.end() } else { Ok(()) }
            });
            let expected = if whole { Ok(&sent[..]) } else { Err(&Truncated) };
            assert_eq!(runtime.block_on(read(outlet)).as_deref(), expected, "whole: {whole}");
            writing.join().expect("no panic").expect("all of it was taken");
        }
        println!("pipes: 2 cases");
    }

    #[test]
    fn a_peer_that_leaves_or_stops_ends_the_writing() {
        let forever = |mut inlet: Inlet| loop {
            inlet.write_all(&[7; 10_000])?;
        };
        let (long, none) = (Duration::from_secs(3_600), Duration::ZERO);
        for (within, leaves, stops, expected) in [
            (long, true, false, io::ErrorKind::BrokenPipe),
            (none, false, false, io::ErrorKind::TimedOut),
            (long, false, true, io::ErrorKind::Other),
        ] {
            let stop = Stop::new();
            let (outlet, writing) = written(Pace::new(within), &stop, forever);
            let mut outlet = Some(outlet);
            if leaves {
                outlet = None;
            }
            if stops {
                stop.set();
            }
            let ended = writing.join().expect("no panic").expect_err("the peer takes nothing");
            assert_eq!(ended.kind(), expected);
            drop(outlet);
        }
        println!("ends of pipes: 3 cases");
    }
}
