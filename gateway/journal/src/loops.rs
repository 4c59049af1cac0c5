//! The loops of the committer's thread and of the sync thread, without what they carry: `tests/shuttle` compiles this file
//! and runs the same loops in thousands of other orders.

use engine::ring::Ring;
use std::time::Duration;

/// What the committer's thread does in a turn.
pub trait CommitTurns {
    /// An entry of its ring.
    type Item;

    /// Takes everything that waits in the ring, then releases what may leave. True when there was anything to do.
    fn turn(&mut self, ring: &Ring<Self::Item>) -> bool;

    /// Whether a turn would find anything to release.
    fn can_release(&self) -> bool;
}

/// What the sync thread does in a turn.
pub trait SyncTurns {
    /// Why there is no further turn.
    type Error;

    /// Makes durable what has been appended by now, and wakes the committer.
    ///
    /// # Errors
    /// The first one is final.
    fn turn(&mut self) -> Result<(), Self::Error>;

    /// Sleeps until there is more to do, or somebody wakes the thread.
    fn rest(&mut self);
}

/// Gives the committer its turns until it is told to stop and has taken all that was sent before. A sleep without news ends
/// after `park_max`.
pub fn commit<C: CommitTurns>(
    committer: &mut C,
    ring: &Ring<C::Item>,
    park_max: Duration,
    is_stopping: impl Fn() -> bool,
) {
    loop {
        // Asked first: what was sent before the stop is still taken below.
        let stopping = is_stopping();
        if committer.turn(ring) {
            continue;
        }
        if stopping {
            return;
        }
        // A sync that ended since the turn has woken nobody.
        ring.wait_unless(park_max, || committer.can_release());
    }
}

/// Gives the sync thread its turns until it is told to stop.
///
/// # Errors
/// That of a turn, at once.
pub fn sync<S: SyncTurns>(syncing: &mut S, is_stopping: impl Fn() -> bool) -> Result<(), S::Error> {
    while !is_stopping() {
        syncing.turn()?;
        syncing.rest();
    }
    Ok(())
}
