//! The ring of the engine, the marks of the log, and of the gateway the loops of committer and sync thread and the
//! queue of held answers, compiled with shuttle's primitives.

// Under the gateway's names.
extern crate self as engine;
extern crate self as wal;

pub mod atomic;
#[path = "../../gateway/journal/src/commit/held.rs"]
#[allow(dead_code, reason = "the chain uses a part of it")]
pub mod held;
#[path = "../../gateway/journal/src/loops.rs"]
pub mod loops;
#[path = "../../wal/src/marks.rs"]
#[allow(dead_code, reason = "the models use a part of it")]
pub mod marks;
#[path = "../../engine/src/ring.rs"]
pub mod ring;

/// The log's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lsn(pub u64);

impl std::fmt::Display for Lsn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A system without the remote barrier: fences are enough if all operations are in one order.
mod sys {
    pub fn register_barrier() -> bool {
        false
    }

    pub fn barrier_on_all_threads() {
        unreachable!("there is none")
    }
}

/// The operations of the log and its sync thread on the marks, which are private to the log.
pub mod log {
    use crate::{Lsn, marks::Marks};
    use std::time::Duration;

    pub fn marks() -> Marks {
        Marks::new(Lsn(0), 0)
    }

    pub fn append(marks: &Marks, lsn: Lsn, position: u64) {
        marks.set_appended(lsn, position);
    }

    /// Bytes after the last record.
    pub fn position(marks: &Marks) -> u64 {
        marks.appended_bytes()
    }

    pub fn set_synced(marks: &Marks, lsn: Lsn, position: u64) {
        marks.set_synced(lsn, position);
    }

    /// Until something is appended.
    pub fn sleep(marks: &Marks) {
        marks.sleep(Duration::MAX);
    }
}
