//! Counts what the synthetic world works out, so that tests can tell what is kept from what is done again.

use std::cell::Cell;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// What one price draws for a life.
    Levels,
    /// Cells of the grids of a path.
    Cells,
    /// Fair prices.
    Chances,
}

thread_local! {
    static DONE: [Cell<usize>; 3] = const { [const { Cell::new(0) }; 3] };
}

/// Counts so many more, in this thread.
pub(super) fn note(kind: Kind, count: usize) {
    DONE.with(|done| done[kind as usize].set(done[kind as usize].get() + count));
}

/// How many there were since the last call.
pub(super) fn take(kind: Kind) -> usize {
    DONE.with(|done| done[kind as usize].take())
}
