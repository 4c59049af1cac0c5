//! Deadline of a head. hyper has one timer for "no complete head yet"; this splits it into two deadlines.
//!
//! ```text
//!   connection opened          answered, next head awaited          first byte of it
//!   |---- header timeout ----| |------------ idle timeout ------------| |---- header timeout ----|
//! ```
//!
//! A new connection is expected to send a request; one that was answered may stay idle. Bytes of the next head that
//! arrive together with the last request do not start its deadline: the connection counts as idle.

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
    /// Whether no head was awaited yet.
    opened: AtomicBool,
    /// Whether bytes have arrived since the current head was first awaited.
    has_bytes: AtomicBool,
    /// Whether another head is awaited than the one for which the current wait began.
    again: AtomicBool,
    /// Whether a request is being answered, and no head awaited.
    answering: AtomicBool,
    /// Start of the idle time as [`micros`] counts, or 0 if not idle.
    idle_since: AtomicU64,
    /// A runtime timer that each head passes on to the next. Usually its deadline is only compared and rarely set
    /// again.
    spare: Mutex<Option<Pin<Box<tokio::time::Sleep>>>>,
}

impl HeadDeadline {
    pub(super) fn new(header_timeout: Duration, idle_timeout: Duration) -> HeadDeadline {
        HeadDeadline(Arc::new(State {
            header_timeout,
            idle_timeout,
            opened: AtomicBool::new(true),
            has_bytes: AtomicBool::new(false),
            again: AtomicBool::new(false),
            answering: AtomicBool::new(false),
            // A peer that has sent nothing has no request in progress.
            idle_since: AtomicU64::new(micros(Instant::now())),
            spare: Mutex::default(),
        }))
    }

    /// How long a head may take from its first byte.
    pub(super) fn header_timeout(&self) -> Duration {
        self.0.header_timeout
    }

    /// Records that bytes arrived at the socket.
    pub(super) fn received(&self) {
        self.0.has_bytes.store(true, Relaxed);
        self.0.idle_since.store(0, Relaxed);
    }

    /// Records that a part of a head arrived, from which its deadline counts. The connection stays idle: otherwise one
    /// byte would keep its slot.
    pub(super) fn started(&self) {
        self.0.has_bytes.store(true, Relaxed);
    }

    /// Start of the idle time, in µs from a fixed moment; `None` while a request is in progress.
    pub(super) fn idle_since(&self) -> Option<u64> {
        Some(self.0.idle_since.load(Relaxed)).filter(|since| *since > 0)
    }
}

/// Time since a fixed moment, in µs.
fn micros(now: Instant) -> u64 {
    static ANCHOR: OnceLock<Instant> = OnceLock::new();
    // Never 0, which means not idle.
    now.duration_since(*ANCHOR.get_or_init(|| now)).as_micros() as u64 + 1
}

/// For the own reader, whose requests hyper does not see: hyper sees one head that does not arrive.
impl HeadDeadline {
    /// Records that a request is being answered whose response is not ready.
    pub(super) fn answering(&self) {
        self.0.answering.store(true, Relaxed);
        self.0.idle_since.store(0, Relaxed);
    }

    /// Records that every request is answered and the next head is awaited.
    pub(super) fn answered(&self) {
        self.0.answering.store(false, Relaxed);
        self.0.has_bytes.store(false, Relaxed);
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
    /// Begins to wait for a head. hyper's own deadline is the header timeout, which is applied here.
    fn awaiting(&self) -> Pin<Box<dyn Sleep>> {
        let opened = self.0.opened.swap(false, Relaxed);
        self.0.has_bytes.store(opened, Relaxed);
        self.0.again.store(false, Relaxed);
        Box::pin(Awaiting { state: Arc::clone(&self.0), due: None, is_started: false, timer: None })
    }
}

/// The wait for one head. Made for every request, polled only if the head is incomplete.
struct Awaiting {
    state: Arc<State>,
    due: Option<Instant>,
    /// Whether `due` is the deadline of a head of which bytes have arrived.
    is_started: bool,
    timer: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Sleep for Awaiting {}

impl Awaiting {
    fn due(&mut self) -> Instant {
        if self.state.again.swap(false, Relaxed) {
            (self.is_started, self.due) = (false, None);
        }
        if !self.is_started && self.state.has_bytes.load(Relaxed) {
            self.is_started = true;
            self.due = None;
        }
        let (state, is_started) = (&self.state, self.is_started);
        *self.due.get_or_insert_with(|| {
            let now = Instant::now();
            if is_started {
                // 0 if the head arrived together with the end of the previous request: idle time starts now.
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
            // Polled again when the response is ready.
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
        // The head is complete, or the connection has ended.
        self.state.idle_since.store(0, Relaxed);
        if let Some(timer) = self.timer.take() {
            *self.state.spare.lock() = Some(timer);
        }
    }
}
