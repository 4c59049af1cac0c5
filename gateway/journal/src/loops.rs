//! The loops of the committer's thread and of the sync thread, generic over their work: `tests/shuttle` compiles this
//! file and runs the same loops in thousands of other orders.

use engine::ring::Ring;
use std::time::Duration;

/// One turn of the committer's thread.
pub trait CommitTurns {
    /// An entry of its ring.
    type Item;

    /// Takes all entries of the ring, then releases what may leave. Returns whether there was anything to do.
    fn turn(&mut self, ring: &Ring<Self::Item>) -> bool;

    /// Whether a turn would find anything to release.
    fn can_release(&self) -> bool;
}

/// One turn of the sync thread.
pub trait SyncTurns {
    /// Why there is no further turn.
    type Error;

    /// Makes durable what has been appended so far, and wakes the committer.
    ///
    /// # Errors
    /// The first one is final.
    fn turn(&mut self) -> Result<(), Self::Error>;

    /// Sleeps until there is more to do, or the thread is woken.
    fn rest(&mut self);
}

/// Runs the committer until it must stop and has taken everything sent before. A sleep without a wake-up ends after
/// `park_max`.
pub fn commit<C: CommitTurns>(
    committer: &mut C,
    ring: &Ring<C::Item>,
    park_max: Duration,
    is_stopping: impl Fn() -> bool,
) {
    loop {
        // Read first: what was sent before the stop is still taken below.
        let stopping = is_stopping();
        if committer.turn(ring) {
            continue;
        }
        if stopping {
            return;
        }
        // A sync that ended since the turn has woken no thread.
        ring.wait_unless(park_max, || committer.can_release());
    }
}

/// Runs the sync thread until it must stop.
///
/// # Errors
/// That of a turn, immediately.
pub fn sync<S: SyncTurns>(syncing: &mut S, is_stopping: impl Fn() -> bool) -> Result<(), S::Error> {
    while !is_stopping() {
        syncing.turn()?;
        syncing.rest();
    }
    Ok(())
}
