//! Captures on their way to the feed: bounded by their number and by the text they hold. Where there is no room, whoever
//! heard something waits, sockets are read no further, and the venue feels it. Nothing is dropped.

use super::capture::Capture;
use super::outlet::Closed;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Captures that wait at most.
const CAPTURES_MAX: usize = 16_384;
/// Bytes of text that wait at most; a longer text waits until nothing else does.
const BYTES_MAX: u32 = 64 << 20;

/// Both ends.
pub fn queue() -> (Sender, Receiver) {
    bounded(CAPTURES_MAX, BYTES_MAX)
}

fn bounded(captures_max: usize, bytes_max: u32) -> (Sender, Receiver) {
    let (sender, receiver) = mpsc::channel(captures_max);
    let bounds = Arc::new(Bounds { bytes_max, room: Semaphore::new(bytes_max as usize), turn: Semaphore::new(1) });
    (Sender { captures: sender, bounds: bounds.clone() }, Receiver { captures: receiver, bounds })
}

struct Bounds {
    bytes_max: u32,
    /// Bytes that may still come.
    room: Semaphore,
    /// Whether a part of something long may come.
    turn: Semaphore,
}

impl Bounds {
    fn bytes(&self, capture: &Capture) -> u32 {
        u32::try_from(capture.text_bytes()).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}

struct Waiting {
    capture: Capture,
    is_part: bool,
}

/// The end of those who hear.
pub struct Sender {
    captures: mpsc::Sender<Waiting>,
    bounds: Arc<Bounds>,
}

impl Sender {
    /// Behind all that waits, when there is room.
    ///
    /// # Errors
    /// Nobody takes captures any more.
    pub async fn send(&self, capture: Capture) -> Result<(), Closed> {
        self.pass(capture, false).await
    }

    /// The same for one part of something long: the next one comes when this one was taken, so that what others hear
    /// meanwhile goes between them.
    ///
    /// # Errors
    /// Nobody takes captures any more.
    pub async fn send_part(&self, capture: Capture) -> Result<(), Closed> {
        let turn = self.bounds.turn.acquire().await.map_err(|_| Closed)?;
        self.pass(capture, true).await?;
        turn.forget();
        Ok(())
    }

    async fn pass(&self, capture: Capture, is_part: bool) -> Result<(), Closed> {
        let room = self.bounds.room.acquire_many(self.bounds.bytes(&capture)).await.map_err(|_| Closed)?;
        self.captures.send(Waiting { capture, is_part }).await.map_err(|_| Closed)?;
        // Given back by whoever takes it.
        room.forget();
        Ok(())
    }
}

/// The feed's end.
pub struct Receiver {
    captures: mpsc::Receiver<Waiting>,
    bounds: Arc<Bounds>,
}

impl Receiver {
    /// The oldest of those that wait.
    pub fn next(&mut self) -> Option<Capture> {
        let Waiting { capture, is_part } = self.captures.try_recv().ok()?;
        self.bounds.room.add_permits(self.bounds.bytes(&capture) as usize);
        if is_part {
            self.bounds.turn.add_permits(1);
        }
        Some(capture)
    }

    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    /// Nothing is taken any more: whoever waits for room hears so.
    pub fn close(&mut self) {
        self.captures.close();
        self.bounds.room.close();
        self.bounds.turn.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture::{Heard, Source};
    use super::*;
    use crate::tape::Origin;
    use engine::time::Timestamp;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn capture(bytes: usize) -> Capture {
        let source = Arc::new(Source { origin: Origin::Kalshi, number: 0, name: "a".into() });
        Capture { received: Timestamp(1), source, heard: Heard::Frame("x".repeat(bytes).into()) }
    }

    /// `None` while it waits.
    fn poll<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    #[test]
    fn who_finds_no_room_waits_and_nothing_is_dropped() {
        let cases: [(usize, &[usize], usize); 7] = [
            // captures at most of 100 bytes at most, texts, how many of them find room
            (3, &[10, 10, 10, 10], 3),
            (9, &[40, 40, 20, 1], 3),
            (9, &[40, 61], 1),
            (9, &[100, 1], 1),
            // Longer than all room together: alone.
            (9, &[500, 1], 1),
            (9, &[1, 500], 1),
            (9, &[0, 0, 0, 100], 4),
        ];
        for (captures_max, texts, fit) in cases {
            let (sender, mut receiver) = bounded(captures_max, 100);
            let mut sent: Vec<_> = texts.iter().map(|bytes| Box::pin(sender.send(capture(*bytes)))).collect();
            let mut done: Vec<bool> = sent.iter_mut().map(|send| poll(&mut send.as_mut()).is_some()).collect();
            let expected: Vec<bool> = (0..texts.len()).map(|at| at < fit).collect();
            assert_eq!(done, expected, "{texts:?}");
            let mut taken = Vec::new();
            while taken.len() < texts.len() {
                taken.push(receiver.next().expect("one waits").text_bytes());
                for (send, done) in sent.iter_mut().zip(&mut done).filter(|(_, done)| !**done) {
                    *done = poll(&mut send.as_mut()).is_some();
                }
            }
            assert_eq!((taken.as_slice(), receiver.is_empty()), (texts, true));
            assert_eq!(receiver.bounds.room.available_permits(), 100, "{texts:?}: all room is back");
        }
        println!("captures without room: {} cases", cases.len());
    }

    #[test]
    fn parts_come_one_at_a_time_and_others_go_between_them() {
        let (sender, mut receiver) = bounded(9, 100);
        let mut parts: Vec<_> = (1..=3).map(|bytes| Box::pin(sender.send_part(capture(bytes)))).collect();
        let mut taken = Vec::new();
        for left in [2, 1, 0] {
            parts.retain_mut(|part| poll(&mut part.as_mut()).is_none());
            assert_eq!(parts.len(), left);
            assert!(poll(&mut pin!(sender.send(capture(10 + left)))).is_some(), "what others hear");
            // As far as the part, which makes room for the next.
            loop {
                let bytes = receiver.next().expect("a part").text_bytes();
                taken.push(bytes);
                if bytes < 10 {
                    break;
                }
            }
        }
        while let Some(capture) = receiver.next() {
            taken.push(capture.text_bytes());
        }
        assert_eq!(taken, [1, 12, 2, 11, 3, 10]);
        println!("parts and others: 6 cases");
    }

    #[test]
    fn who_waits_hears_that_nobody_takes_captures_any_more() {
        let (sender, mut receiver) = bounded(9, 100);
        assert!(poll(&mut pin!(sender.send_part(capture(100)))).is_some());
        let (mut waits, mut part) = (pin!(sender.send(capture(1))), pin!(sender.send_part(capture(1))));
        assert!(poll(&mut waits).is_none() && poll(&mut part).is_none());
        receiver.close();
        assert!(matches!((poll(&mut waits), poll(&mut part)), (Some(Err(Closed)), Some(Err(Closed)))));
        println!("captures that nobody takes: 2 cases");
    }
}
