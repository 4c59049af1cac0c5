//! The queue of captures to the feed, bounded by count and by bytes of text. A sender that finds no room waits, its
//! socket is not read meanwhile, and the venue is slowed down. Nothing is dropped.

use super::capture::Capture;
use super::outlet::Closed;
use std::sync::Arc;
use tokio::sync::{Semaphore, mpsc};

/// Most captures in the queue.
const CAPTURES_MAX: usize = 16_384;
/// Most bytes of text in the queue; a longer text waits until the queue is empty.
const BYTES_MAX: u32 = 64 << 20;

/// A queue with the default bounds.
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
    /// Bytes that still have room.
    room: Semaphore,
    /// One permit: at most one part of a long response is in the queue.
    turn: Semaphore,
}

impl Bounds {
    fn bytes(&self, capture: &Capture) -> u32 {
        u32::try_from(capture.text_bytes()).unwrap_or(u32::MAX).min(self.bytes_max)
    }
}

struct Queued {
    capture: Capture,
    is_part: bool,
}

/// The adapters' end.
pub struct Sender {
    captures: mpsc::Sender<Queued>,
    bounds: Arc<Bounds>,
}

impl Sender {
    /// Appends a capture, when there is room.
    ///
    /// # Errors
    /// The receiver is closed.
    pub async fn send(&self, capture: Capture) -> Result<(), Closed> {
        self.pass(capture, false).await
    }

    /// Appends one part of a long response when the part before it was taken, so that captures of other connections
    /// come between the parts.
    ///
    /// # Errors
    /// The receiver is closed.
    pub async fn send_part(&self, capture: Capture) -> Result<(), Closed> {
        let turn = self.bounds.turn.acquire().await.map_err(|_| Closed)?;
        self.pass(capture, true).await?;
        turn.forget();
        Ok(())
    }

    async fn pass(&self, capture: Capture, is_part: bool) -> Result<(), Closed> {
        let room = self.bounds.room.acquire_many(self.bounds.bytes(&capture)).await.map_err(|_| Closed)?;
        self.captures.send(Queued { capture, is_part }).await.map_err(|_| Closed)?;
        // `Receiver::next` returns the permits.
        room.forget();
        Ok(())
    }
}

/// The feed's end.
pub struct Receiver {
    captures: mpsc::Receiver<Queued>,
    bounds: Arc<Bounds>,
}

impl Receiver {
    /// The oldest capture.
    pub fn next(&mut self) -> Option<Capture> {
        let Queued { capture, is_part } = self.captures.try_recv().ok()?;
        self.bounds.room.add_permits(self.bounds.bytes(&capture) as usize);
        if is_part {
            self.bounds.turn.add_permits(1);
        }
        Some(capture)
    }

    pub fn is_empty(&self) -> bool {
        self.captures.is_empty()
    }

    /// Closes the queue: waiting senders get an error.
    pub fn close(&mut self) {
        self.captures.close();
        self.bounds.room.close();
        self.bounds.turn.close();
    }
}

#[cfg(test)]
mod tests {
    use super::super::capture::{Payload, Source};
    use super::*;
    use crate::testing::KALSHI;
    use engine::time::Timestamp;
    use std::future::Future;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, Waker};

    fn capture(bytes: usize) -> Capture {
        let source = Arc::new(Source { origin: KALSHI, number: 0, name: "a".into() });
        Capture { received: Timestamp(1), source, payload: Payload::Frame("x".repeat(bytes).into()) }
    }

    /// The result, or `None` while the future waits.
    fn poll<T>(future: &mut Pin<&mut impl Future<Output = T>>) -> Option<T> {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(done) => Some(done),
            Poll::Pending => None,
        }
    }

    #[test]
    fn a_sender_without_room_waits_and_nothing_is_dropped() {
        let cases: [(usize, &[usize], usize); 7] = [
            // limit of captures (100 bytes at most), text lengths, number of them that have room
            (3, &[10, 10, 10, 10], 3),
            (9, &[40, 40, 20, 1], 3),
            (9, &[40, 61], 1),
            (9, &[100, 1], 1),
            // Longer than the whole limit: alone in the queue.
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
    fn parts_are_queued_one_at_a_time_and_others_come_between_them() {
        let (sender, mut receiver) = bounded(9, 100);
        let mut parts: Vec<_> = (1..=3).map(|bytes| Box::pin(sender.send_part(capture(bytes)))).collect();
        let mut taken = Vec::new();
        for left in [2, 1, 0] {
            parts.retain_mut(|part| poll(&mut part.as_mut()).is_none());
            assert_eq!(parts.len(), left);
            assert!(poll(&mut pin!(sender.send(capture(10 + left)))).is_some(), "a capture of another connection");
            // Up to the part; taking it makes room for the next one.
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
    fn waiting_senders_get_an_error_when_the_queue_closes() {
        let (sender, mut receiver) = bounded(9, 100);
        assert!(poll(&mut pin!(sender.send_part(capture(100)))).is_some());
        let (mut waits, mut part) = (pin!(sender.send(capture(1))), pin!(sender.send_part(capture(1))));
        assert!(poll(&mut waits).is_none() && poll(&mut part).is_none());
        receiver.close();
        assert!(matches!((poll(&mut waits), poll(&mut part)), (Some(Err(Closed)), Some(Err(Closed)))));
        println!("captures after the end: 2 cases");
    }
}
