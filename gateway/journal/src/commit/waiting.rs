//! Whether anything waits for a sync: the sync thread wakes the releasing one only then.
//!
//! ```text
//! committer: waiting := true ; fence ; has the mark passed what waits?
//! sync:      mark moved      ; fence ; does anything wait? wake the committer
//! ```
//!
//! Of a wait that begins and a mark that moves, one sees the other.

use crate::atomic::{Arc, AtomicBool, Ordering, fence};
use crossbeam::utils::CachePadded;

/// Set by the committer, asked by the sync thread. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Waiting(Arc<CachePadded<AtomicBool>>);

impl Waiting {
    /// Something waits from now on. The committer looks at the mark behind this call: the sync that moved it may have asked
    /// before.
    pub fn begin(&self) {
        self.0.store(true, Ordering::Relaxed);
        // Pairs with the fence in `any`: either the committer sees the new mark, or `any` sees that it waits.
        fence(Ordering::SeqCst);
    }

    /// Nothing waits any more.
    pub fn end(&self) {
        self.0.store(false, Ordering::Relaxed);
    }

    /// Asked by the sync thread behind each sync.
    pub fn any(&self) -> bool {
        fence(Ordering::SeqCst);
        self.0.load(Ordering::Relaxed)
    }
}
