//! Threads with names, and a stop flag.
//!
//! A panic in a thread of the core aborts the process: its state cannot be trusted any more, and recovery is exercised
//! on every start (gateway/docs/decisions.md §21). Only threads that no order depends on ([`spawn_spare`]) may fail
//! alone.

use futures_util::FutureExt;
use rustix::process::{getpriority_process, setpriority_process};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use tokio::sync::Notify;

/// Signals threads to end; set once.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<Flag>);

#[derive(Debug, Default)]
struct Flag {
    is_set: AtomicBool,
    /// Wakes the tasks that wait for it.
    waiting: Notify,
}

impl Stop {
    pub fn new() -> Stop {
        Stop::default()
    }

    pub fn set(&self) {
        // Release pairs with the Acquire below: a thread that sees the stop sees everything written before it.
        self.0.is_set.store(true, Ordering::Release);
        self.0.waiting.notify_waiters();
    }

    pub fn is_set(&self) -> bool {
        self.0.is_set.load(Ordering::Acquire)
    }

    /// Waits, in a task of any runtime, until it is set.
    pub async fn wait(&self) {
        // A stop after this line wakes the task; one before it is seen by the check.
        let woken = self.0.waiting.notified();
        if !self.is_set() {
            woken.await;
        }
    }
}

/// Runs `body` on a thread of that name; a panic in it ends the process.
///
/// # Errors
/// The system's, if no thread can be created.
pub fn spawn<F, T>(name: &str, body: F) -> std::io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().name(name.to_owned()).spawn(move || guard(body))
}

/// Steps of nice(2) by which a low-priority thread is lowered: it gets a tenth of a core that others want, and all of
/// an idle one. A smaller share would let busy neighbours delay checkpoints, and so the bound of the disk, permanently.
const NICE_STEPS: i32 = 10;
/// The largest value of nice(2).
const NICE_MAX: i32 = 19;

/// Lowers the priority of the calling thread.
pub fn lower_priority() {
    // On Linux a priority belongs to the thread. The work is done without it, too.
    let own = getpriority_process(None);
    if let Err(error) = own.and_then(|own| setpriority_process(None, lowered(own))) {
        tracing::debug!(%error, "a thread keeps its normal priority");
    }
}

/// The priority of a thread that had `own` and was lowered.
pub(crate) fn lowered(own: i32) -> i32 {
    (own + NICE_STEPS).min(NICE_MAX)
}

/// Runs `body` on a thread of that name that the server can do without: a panic in it ends only this thread, and calls
/// `lost`.
///
/// # Errors
/// The system's, if no thread can be created.
pub fn spawn_spare(
    name: &str,
    body: impl FnOnce() + Send + 'static,
    lost: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let run = move || catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| lost());
    Builder::new().name(name.to_owned()).spawn(run)
}

/// Runs a turn of the core; a panic in it ends the process, after its message was written to standard error.
pub fn guard<T>(turn: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| std::process::abort())
}

/// As [`guard`], for a task, whose panic its runtime would swallow.
pub async fn guard_task<T>(task: impl Future<Output = T>) -> T {
    AssertUnwindSafe(task).catch_unwind().await.unwrap_or_else(|_| std::process::abort())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::runtime;

    #[test]
    fn a_stop_wakes_the_tasks_that_wait_for_it() {
        let (stop, runtime) = (Stop::new(), runtime().expect("a runtime"));
        runtime.block_on(async {
            let (mut first, second) = (Box::pin(stop.wait()), Box::pin(stop.wait()));
            assert!((&mut first).now_or_never().is_none());
            // From another thread, while nothing else wakes this one; the second was not polled before.
            let other = stop.clone();
            let setter = std::thread::spawn(move || other.set());
            first.await;
            setter.join().expect("no panic");
            second.now_or_never().expect("it is set");
            stop.wait().await;
        });
        assert!(stop.is_set());
    }
}
