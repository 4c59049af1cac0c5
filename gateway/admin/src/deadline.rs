//! How long a connection may take: ten seconds in all until it has shown the token; from then on ten seconds for each
//! request, not counting its response.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// From a connection's first byte to its last; with the admin token, from the end of one response to the next request.
pub const CONNECTION_MAX: Duration = Duration::from_secs(10);
/// How often a connection that takes a stream checks whether its writer has ended.
const WRITER_CHECK_EVERY: Duration = Duration::from_secs(1);

/// How long a connection may still take.
pub struct Deadline {
    /// `None`: a request that showed the token is being answered.
    until: Cell<Option<Instant>>,
    /// The thread that writes that response, if it is a stream.
    writer: RefCell<Option<JoinHandle<()>>>,
}

impl Deadline {
    /// The deadline of a connection that begins now.
    pub fn begin() -> Deadline {
        Deadline { until: Cell::new(Some(Instant::now() + CONNECTION_MAX)), writer: RefCell::new(None) }
    }

    /// Returns when the connection must end.
    pub async fn over(&self) {
        loop {
            let now = Instant::now();
            match self.until.get() {
                Some(until) if until <= now => return,
                Some(until) => sleep_until(until).await,
                None => {
                    sleep_until(now + WRITER_CHECK_EVERY).await;
                    // The rest of its stream is on the way. The body is not polled while the peer takes nothing, so it
                    // cannot report that it was cut.
                    if self.until.get().is_none() && self.writer.borrow().as_ref().is_some_and(JoinHandle::is_finished)
                    {
                        self.until.set(Some(Instant::now() + CONNECTION_MAX));
                    }
                }
            }
        }
    }
}

/// Suspends the deadline while a request that showed the token is answered. Its drop starts the deadline of the next
/// request.
pub struct Admitted(Rc<Deadline>);

impl Admitted {
    pub(crate) fn by(deadline: &Rc<Deadline>) -> Admitted {
        deadline.until.set(None);
        Admitted(Rc::clone(deadline))
    }

    /// The response is a stream that this thread writes: once it has ended, the peer takes the rest or is cut off.
    pub(crate) fn is_written_by(&self, writer: JoinHandle<()>) {
        *self.0.writer.borrow_mut() = Some(writer);
    }
}

impl Drop for Admitted {
    fn drop(&mut self) {
        self.0.until.set(Some(Instant::now() + CONNECTION_MAX));
        self.0.writer.take();
    }
}
