//! Shuttle's primitives under the names that engine, log and gateway use. All of them are sequentially consistent:
//! tests/loom covers weaker orders.

pub use crossbeam::queue::ArrayQueue;
pub use shuttle::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub use shuttle::sync::{Arc, Mutex};
pub use shuttle::thread::Thread;

/// Sleeps without a timeout: a lost wake-up is a deadlock.
pub mod thread {
    pub use shuttle::thread::current;

    pub fn park_timeout(_at_most: std::time::Duration) {
        shuttle::thread::park();
    }
}
