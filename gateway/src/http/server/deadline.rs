//! When a head is due: hyper has one timer for "no complete head yet"; this splits it into two deadlines.
//!
//! ```text
//!   connection opened          answered, next head awaited          first byte of it
//!   |---- header timeout ----| |------------ idle timeout ------------| |---- header timeout ----|
//! ```
//!
//! A peer that opens a connection has something to say at once; one that was answered may rest. Bytes of a next head
//! that came together with the last request are not seen as its first byte: such a connection counts as resting.

use hyper::rt::{Sleep, Timer};
use parking_lot::Mutex;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The timer that one connection gives to hyper.
#[derive(Clone, Debug)]
pub(super) struct HeadDeadline(Arc<State>);

#[derive(Debug)]
struct State {
    header_timeout: Duration,
    idle_timeout: Duration,
    /// Bytes have arrived since the present head was awaited; at first: the connection was opened.
    begun: AtomicBool,
    /// A runtime timer kept from one head to the next: usually it is only looked at, seldom set anew.
    spare: Mutex<Option<Pin<Box<tokio::time::Sleep>>>>,
}

impl HeadDeadline {
    pub(super) fn new(header_timeout: Duration, idle_timeout: Duration) -> HeadDeadline {
        let begun = AtomicBool::new(true);
        HeadDeadline(Arc::new(State { header_timeout, idle_timeout, begun, spare: Mutex::default() }))
    }

    /// The socket had bytes.
    pub(super) fn heard(&self) {
        self.0.begun.store(true, Relaxed);
    }
}

impl Timer for HeadDeadline {
    fn sleep(&self, _: Duration) -> Pin<Box<dyn Sleep>> {
        self.awaiting()
    }

    fn sleep_until(&self, _: Instant) -> Pin<Box<dyn Sleep>> {
        self.awaiting()
    }
}

impl HeadDeadline {
    /// Begins to wait for a head; hyper's own deadline is the header timeout, which is ours to apply.
    fn awaiting(&self) -> Pin<Box<dyn Sleep>> {
        Box::pin(Awaiting { state: Arc::clone(&self.0), since: Instant::now(), begun_at: None, first: true, timer: None })
    }
}

struct Awaiting {
    state: Arc<State>,
    since: Instant,
    begun_at: Option<Instant>,
    first: bool,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Sleep for Awaiting {}

impl Awaiting {
    fn due(&mut self) -> Instant {
        // Asked for the first time when hyper has found no whole head in what it holds: from here on bytes count.
        // Only the very first head of a connection is begun before it.
        if self.state.begun.swap(false, Relaxed) && self.begun_at.is_none() {
            self.begun_at = Some(Instant::now());
        }
        match self.begun_at {
            Some(begun_at) => begun_at + self.state.header_timeout,
            None => self.since + self.state.idle_timeout,
        }
    }
}

impl Future for Awaiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let due = self.due();
        let spare = self.timer.take().or_else(|| self.state.spare.lock().take());
        let mut timer = spare.unwrap_or_else(|| Box::pin(tokio::time::sleep_until(due.into())));
        loop {
            if timer.deadline() > due.into() {
                timer.as_mut().reset(due.into());
            }
            if timer.as_mut().poll(context).is_pending() {
                self.timer = Some(timer);
                return Poll::Pending;
            }
            if Instant::now() >= due {
                return Poll::Ready(());
            }
            timer.as_mut().reset(due.into());
        }
    }
}

impl Drop for Awaiting {
    fn drop(&mut self) {
        *self.state.spare.lock() = self.timer.take();
    }
}
