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
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

/// The timer that one connection gives to hyper.
#[derive(Clone, Debug)]
pub(super) struct HeadDeadline(Arc<State>);

#[derive(Debug)]
struct State {
    header_timeout: Duration,
    idle_timeout: Duration,
    /// No head was awaited yet.
    opened: AtomicBool,
    /// Bytes have arrived since the present head was first awaited.
    heard: AtomicBool,
    /// Another head is awaited than the one whose waiting has begun.
    again: AtomicBool,
    /// A request is answered; nothing is awaited.
    answering: AtomicBool,
    /// Since when the connection is idle, as [`micros`] counts; 0: it is not.
    idle_since: AtomicU64,
    /// A runtime timer kept from one head to the next: usually it is only looked at, seldom set anew.
    spare: Mutex<Option<Pin<Box<tokio::time::Sleep>>>>,
}

impl HeadDeadline {
    pub(super) fn new(header_timeout: Duration, idle_timeout: Duration) -> HeadDeadline {
        HeadDeadline(Arc::new(State {
            header_timeout,
            idle_timeout,
            opened: AtomicBool::new(true),
            heard: AtomicBool::new(false),
            again: AtomicBool::new(false),
            answering: AtomicBool::new(false),
            // Whoever has said nothing yet has no request under way.
            idle_since: AtomicU64::new(micros(Instant::now())),
            spare: Mutex::default(),
        }))
    }

    /// For so long a head may be under way.
    pub(super) fn header_timeout(&self) -> Duration {
        self.0.header_timeout
    }

    /// The socket had bytes.
    pub(super) fn heard(&self) {
        self.0.heard.store(true, Relaxed);
        self.0.idle_since.store(0, Relaxed);
    }

    /// A part of a head has come. It is due from now on; the connection stays as idle as it was, since one byte would
    /// keep a place else.
    pub(super) fn begun(&self) {
        self.0.heard.store(true, Relaxed);
    }

    /// Since when the connection is idle, in µs from some fixed moment; `None` while a request is under way.
    pub(super) fn idle_since(&self) -> Option<u64> {
        Some(self.0.idle_since.load(Relaxed)).filter(|since| *since > 0)
    }
}

/// The moment that idle times count from.
fn micros(now: Instant) -> u64 {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    // Never 0, which stands for a connection that is not idle.
    now.duration_since(*ANCHOR.get_or_init(|| now)).as_micros() as u64 + 1
}

/// Said by who answers requests that hyper does not see: to hyper it is one head that does not come.
impl HeadDeadline {
    /// A request came, and its answer takes its time.
    pub(super) fn answering(&self) {
        self.0.answering.store(true, Relaxed);
        self.0.idle_since.store(0, Relaxed);
    }

    /// All that came was answered: the next head is awaited.
    pub(super) fn answered(&self) {
        self.0.answering.store(false, Relaxed);
        self.0.heard.store(false, Relaxed);
        self.0.again.store(true, Relaxed);
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
    /// Begins to wait for a head. Hyper's own deadline is the header timeout, which is ours to apply.
    fn awaiting(&self) -> Pin<Box<dyn Sleep>> {
        let opened = self.0.opened.swap(false, Relaxed);
        self.0.heard.store(opened, Relaxed);
        self.0.again.store(false, Relaxed);
        Box::pin(Awaiting { state: Arc::clone(&self.0), due: None, begun: false, timer: None })
    }
}

/// One head being awaited. Made for every request, polled only when its head has not arrived whole.
struct Awaiting {
    state: Arc<State>,
    due: Option<Instant>,
    /// `due` is that of a head which has begun.
    begun: bool,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Sleep for Awaiting {}

impl Awaiting {
    fn due(&mut self) -> Instant {
        if self.state.again.swap(false, Relaxed) {
            (self.begun, self.due) = (false, None);
        }
        if !self.begun && self.state.heard.load(Relaxed) {
            self.begun = true;
            self.due = None;
        }
        let (state, begun) = (&self.state, self.begun);
        *self.due.get_or_insert_with(|| {
            let now = Instant::now();
            if begun {
                // It came together with the end of the request before it.
                let _ = state.idle_since.compare_exchange(0, micros(now), Relaxed, Relaxed);
                return now + state.header_timeout;
            }
            state.idle_since.store(micros(now), Relaxed);
            now + state.idle_timeout
        })
    }
}

impl Future for Awaiting {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if self.state.answering.load(Relaxed) {
            // Looked at again when it was answered.
            return Poll::Pending;
        }
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
        // The head has come, or the connection has ended.
        self.state.idle_since.store(0, Relaxed);
        if let Some(timer) = self.timer.take() {
            *self.state.spare.lock() = Some(timer);
        }
    }
}
