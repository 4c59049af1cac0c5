//! Runs a turn function on a named thread: works while there is work, then parks. Nothing spins.
//!
//! A panic in a turn aborts the process: the state behind it can no longer be trusted, and recovery is exercised on
//! every start (house.md §1, reliability.md 24). Only what no order depends on ([`spawn_spare`]) may fail alone.

use futures_util::FutureExt;
use rustix::process::{getpriority_process, setpriority_process};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};

/// Tells threads to end; set once.
#[derive(Clone, Debug, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn new() -> Stop {
        Stop::default()
    }

    pub fn set(&self) {
        // Release pairs with the Acquire below: what was written before the stop is seen by who sees the stop.
        self.0.store(true, Ordering::Release);
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// Runs `body` on a thread of that name; a panic in it ends the process.
///
/// # Errors
/// The system's, when no thread can be made.
pub fn spawn<F, T>(name: &str, body: F) -> std::io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().name(name.to_owned()).spawn(move || guard(body))
}

/// How far a thread that gives way stands behind the others, in steps of nice(2): a tenth of their share of a core that
/// is asked for by both, all of one that is not. Less would let busy neighbours hold up checkpoints, and with them the
/// disk's bound, for good.
const BEHIND: i32 = 10;
/// The last step.
const NICE_MAX: i32 = 19;

/// As [`spawn`], for work that takes seconds of a core and that nobody waits for: orders go before it.
///
/// # Errors
/// The system's, when no thread can be made.
pub fn spawn_behind<F, T>(name: &str, body: F) -> std::io::Result<JoinHandle<T>>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    spawn(name, move || {
        stand_behind();
        body()
    })
}

/// From here on the calling thread gives way to the others.
pub fn stand_behind() {
    // On Linux a priority is a thread's own. Without it the work is done all the same.
    let own = getpriority_process(None);
    if let Err(error) = own.and_then(|own| setpriority_process(None, (own + BEHIND).min(NICE_MAX))) {
        tracing::debug!(%error, "a thread keeps the common priority");
    }
}

/// Runs `body` on a thread of that name that the server can do without: a panic in it ends this thread alone, and `lost`
/// is told of it.
///
/// # Errors
/// The system's, when no thread can be made.
pub fn spawn_spare(
    name: &str,
    body: impl FnOnce() + Send + 'static,
    lost: impl FnOnce() + Send + 'static,
) -> std::io::Result<JoinHandle<()>> {
    let run = move || catch_unwind(AssertUnwindSafe(body)).unwrap_or_else(|_| lost());
    Builder::new().name(name.to_owned()).spawn(run)
}

/// Runs a turn of the core; a panic in it ends the process, with its message already on standard error.
pub fn guard<T>(turn: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(turn)).unwrap_or_else(|_| std::process::abort())
}

/// The same of a task, whose panic its runtime would keep to itself.
pub async fn guard_task<T>(task: impl Future<Output = T>) -> T {
    AssertUnwindSafe(task).catch_unwind().await.unwrap_or_else(|_| std::process::abort())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_gives_way_stands_behind() {
        let own = || getpriority_process(None).expect("a priority");
        let before = own();
        let behind = spawn_behind("behind", own).expect("a thread").join().expect("no panic");
        let beside = spawn("beside", own).expect("a thread").join().expect("no panic");
        assert_eq!([own(), beside, behind], [before, before, (before + BEHIND).min(NICE_MAX)]);
    }
}
