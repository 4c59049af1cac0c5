//! Runtimes of threads that own sockets.

use std::io;

/// The runtime of one thread that owns sockets.
pub fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().event_interval(61).build()
}

/// Whether a thread may spin: never where it would take the only processor.
pub fn may_spin() -> bool {
    let many = std::thread::available_parallelism().is_ok_and(|count| count.get() > 1);
    if !many {
        tracing::warn!("server.busy_poll is on, and there is but one processor: it is left off");
    }
    many
}

/// The same runtime for a thread that never sleeps (`--busy-poll`): it looks at the sockets behind each piece of work, and
/// a task that only yields sees to it that there is always one. The others wake it as ever, and need not.
pub fn sleepless_runtime() -> io::Result<tokio::runtime::Runtime> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().event_interval(1).build()?;
    runtime.spawn(async {
        loop {
            tokio::task::yield_now().await;
        }
    });
    Ok(runtime)
}
