//! Whether an answer waits for a sync: only then the sync thread wakes the releasing one.
//!
//! ```text
//! committer: waiting := true ; fence ; has the mark passed what waits?
//! sync:      mark moved      ; fence ; does anything wait? wake the committer
//! ```
//!
//! If the start of a wait and a move of the mark meet, at least one thread sees the other.

use crate::atomic::{Arc, AtomicBool, Ordering, fence};
use crossbeam::utils::CachePadded;

/// Set by the committer, read by the sync thread. Clones share the flag.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<CachePadded<AtomicBool>>);

impl Waiting {
    /// An answer waits from now on. The committer reads the mark after this call: the sync that moved it may have read
    /// the flag before.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `any`: either the committer sees the new mark, or `any` sees that it waits.
        fence(Ordering::SeqCst);
    }

    /// No answer waits any more.
    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Read by the sync thread after each sync.
    pub fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
}
