//! Counts the computations of the synthetic world, so that tests can check what is cached.

use std::cell::Cell;

/// A counted computation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Draws of a price for the life of its level.
    Levels,
    /// Cells of the grids of a path.
    Cells,
    /// Fair prices.
    Chances,
}

thread_local! {
    static DONE: [Cell<usize>; 3] = const { [const { Cell::new(0) }; 3] };
}

/// Adds to a counter of this thread.
pub(super) fn note(kind: Kind, count: usize) {
    DONE.with(|done| done[kind as usize].set(done[kind as usize].get() + count));
}

/// Returns the count since the last call.
pub(super) fn take(kind: Kind) -> usize {
    DONE.with(|done| done[kind as usize].take())
}
