//! Bytes on their way from a thread that makes them to a connection: so many pieces at a time, and no longer than their peer
//! takes them.

use edge::http::body::{Cut, Pages};
use host::thread::Stop;
use std::io::{self, Write};
use std::thread::Thread;
use std::time::{Duration, Instant};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Bytes of a piece, and pieces that wait for the connection: what one stream holds in memory.
const PIECE_BYTES: usize = 64 << 10;
const PIECES_MAX: usize = 8;
/// Longest sleep of whoever waits for the connection; it wakes him when it has taken a piece.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// A peer that takes less than this, in bytes a second, is too slow.
pub const LEAST_BYTES_PER_SECOND: u64 = 1 << 20;

/// How slow a peer is: bytes against the time for which he was waited for. The time that making them took is not his.
#[derive(Debug)]
pub struct Pace {
    within: Duration,
    waited: Duration,
    bytes: u64,
}

impl Pace {
    /// A peer is too slow who is waited for so long while he takes less than [`LEAST_BYTES_PER_SECOND`].
    pub fn new(within: Duration) -> Pace {
        Pace { within, waited: Duration::ZERO, bytes: 0 }
    }

    /// He was waited for so long, and took so many bytes then. False: he is too slow.
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

/// A piece, or the sound end.
type Piece = Option<Vec<u8>>;

/// Where the thread writes to. Without [`Inlet::end`] the peer sees that the body is cut.
pub struct Inlet {
    pieces: Sender<Piece>,
    piece: Vec<u8>,
    pace: Pace,
    stop: Stop,
}

/// What the connection takes from.
pub struct Outlet {
    pieces: Receiver<Piece>,
    /// Who may be waiting for room.
    writer: Thread,
}

/// What an outlet is made of, once there is a thread.
pub struct Taken(Receiver<Piece>);

/// Both ends. Writing fails when `stop` is set, when the peer has left, and when he is too slow.
pub fn pipe(pace: Pace, stop: Stop) -> (Inlet, Taken) {
    let (pieces, taken) = channel(PIECES_MAX);
    (Inlet { pieces, piece: Vec::with_capacity(PIECE_BYTES), pace, stop }, Taken(taken))
}

impl Inlet {
    /// The sound end.
    ///
    /// # Errors
    /// As writing.
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
                    // What he took without being waited for is his, too.
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
            let begun = Instant::now();
            std::thread::park_timeout(LOOK_EVERY);
            if !self.pace.note(begun.elapsed(), std::mem::take(&mut took)) {
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

impl Taken {
    pub fn of(self, writer: Thread) -> Outlet {
        Outlet { pieces: self.0, writer }
    }
}

impl Outlet {
    /// The body that the thread writes. `kept` is dropped with it.
    pub fn pages(mut self, kept: impl Sized + 'static) -> Pages {
        Pages::new(|mut sink| async move {
            let _kept = kept;
            loop {
                match self.pieces.recv().await {
                    Some(Some(piece)) => {
                        self.writer.unpark();
                        sink.send(piece).await;
                    }
                    Some(None) => return Ok(()),
                    None => return Err(Cut),
                }
            }
        })
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
    use edge::http::body::{Body, Streamed};
    use edge::http::testing::run;
    use http_body_util::BodyExt as _;

    #[test]
    fn who_is_waited_for_and_takes_little_is_too_slow() {
        const MIB: usize = 1 << 20;
        let second = Duration::from_secs(1);
        // What a peer of three seconds does: (waited, bytes); whether he is too slow at the end of it.
        type Row<'a> = (&'a str, &'a [(Duration, usize)], bool);
        let rows: [Row<'_>; 8] = [
            ("takes all at once", &[(Duration::ZERO, 90 * MIB); 9], false),
            ("is not waited for, and little is made", &[(Duration::ZERO, 1); 9], false),
            ("takes nothing", &[(second, 0); 3], true),
            ("has time left", &[(second, 0); 2], false),
            ("takes just enough", &[(second, MIB); 9], false),
            ("takes a byte less", &[(second, MIB), (second, MIB), (second, MIB - 1)], true),
            ("takes in bursts", &[(second, 0), (second, 0), (second, 3 * MIB), (second, 0), (second, 0)], false),
            ("falls asleep behind a burst", &[(second, 99 * MIB), (second, 0), (second, 0), (second * 3, 0)], true),
        ];
        for (what, takes, expected) in rows {
            let mut pace = Pace::new(3 * second);
            let is_slow = takes.iter().any(|(waited, bytes)| !pace.note(*waited, *bytes));
            assert_eq!(is_slow, expected, "{what}");
        }
        println!("paces: {} cases", rows.len());
    }

    /// The body of what a thread writes, and how its writing ended.
    fn written(
        pace: Pace,
        stop: &Stop,
        write: impl FnOnce(Inlet) -> io::Result<()> + Send + 'static,
    ) -> (Body, std::thread::JoinHandle<io::Result<()>>) {
        let (inlet, taken) = pipe(pace, stop.clone());
        let writing = std::thread::spawn(move || write(inlet));
        let pages = taken.of(writing.thread().clone()).pages(());
        (Body::Streamed(Box::new(Streamed::new(pages, false))), writing)
    }

    #[test]
    fn what_is_written_arrives_and_what_fails_is_cut() {
        let patient = || Pace::new(Duration::from_secs(3_600));
        let sent: Vec<u8> = (0..3_000_000_u32).map(|number| (number % 251) as u8).collect();
        for whole in [true, false] {
            let bytes = sent.clone();
            let (body, writing) = written(patient(), &Stop::new(), move |mut inlet| {
                inlet.write_all(&bytes)?;
                inlet.flush()?;
                if whole { inlet.end() } else { Ok(()) }
            });
            let read = run(async { body.collect().await.map(|body| body.to_bytes()) });
            assert_eq!(read.as_deref().ok(), whole.then_some(&sent[..]), "whole: {whole}");
            writing.join().expect("no panic").expect("all of it was taken");
        }
        println!("pipes: 2 cases");
    }

    #[test]
    fn who_leaves_or_sleeps_ends_the_writing() {
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
            let (body, writing) = written(Pace::new(within), &stop, forever);
            let mut body = Some(body);
            if leaves {
                body = None;
            }
            if stops {
                stop.set();
            }
            let ended = writing.join().expect("no panic").expect_err("nobody takes what is written");
            assert_eq!(ended.kind(), expected);
            drop(body);
        }
        println!("ends of pipes: 3 cases");
    }
}
