//! Runtimes of threads that own sockets.

use crate::moments::Moments;
use std::io;
use std::sync::Arc;

/// The runtime of one thread that owns sockets.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().event_interval(61).build()
}

/// The same runtime, which reports to `moments` whether its thread has nothing to do.
pub fn runtime_of(moments: &Arc<Moments>) -> io::Result<tokio::runtime::Runtime> {
    let (parks, wakes) = (Arc::clone(moments), Arc::clone(moments));
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.on_thread_park(move || parks.parks(true)).on_thread_unpark(move || wakes.parks(false));
    builder.enable_all().event_interval(61).build()
}

/// Whether a thread may spin: not if it would take the only processor.
pub fn may_spin() -> bool {
    let many = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if !many {
        tracing::warn!("server.busy_poll is on, but there is only one processor: it is ignored");
    }
    many
}

/// The same runtime for a thread that never sleeps (`--busy-poll`): it polls the sockets after each piece of work, and
/// a task that only yields keeps it busy. Other threads still wake it, although they need not.
pub fn sleepless_runtime() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build()?;
    runtime.spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    Ok(runtime)
}
