//! A version that makes a group of atomics consistent: odd while the writer writes, even otherwise.
//!
//! The protected values are atomics themselves, so a torn read is wrong but never undefined; the version shows whether
//! a read was torn. There is one writer. Readers never delay it.
//!
//! ```text
//! writer: version := odd (Relaxed) ; fence(Release) ; values (Relaxed) … ; version := even (Release)
//! reader: version (Acquire) even?  ; values (Relaxed) … ; fence(Acquire) ; version (Relaxed) the same?
//! ```
//!
//! * The reader's first load pairs with the writer's last store: a reader that sees an even version sees all values
//!   written before it.
//! * The writer's release fence pairs with the reader's acquire fence through any value between them: a reader that saw
//!   a value of the next write sees that write's odd version (or a later one) in its second load, so it fails.
//!
//! On x86-64 all of these are plain moves. Tries are bounded: [`TRIES`], then the reader yields its core, up to
//! [`ROUNDS`] times, then it sleeps, up to [`NAPS`] times. A writer that was preempted during a write continues within
//! some ticks of the scheduler, and a yield returns immediately if no other thread waits for the core. With yields
//! alone, one order in 10,000 failed beside a feed at full rate on two busy cores.

use crate::atomic::{AtomicU64, Ordering, fence};
use std::time::Duration;

/// Tries of a reader before it yields its core, and after each yield.
pub const TRIES: usize = 64;
/// Rounds of that many tries, with yields in between, before it sleeps.
pub const ROUNDS: usize = 8;
/// Sleeps, each followed by that many tries, before it gives up.
pub const NAPS: usize = 40;
/// Length of a sleep: all sleeps together are some ticks of the scheduler (4 ms is a common one).
const NAP: Duration = Duration::from_micros(250);

/// The version of a group of atomics.
#[derive(Default)]
pub struct Sequence(AtomicU64);

/// All tries overlapped a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn;

impl Sequence {
    pub fn new() -> Sequence {
        Sequence(AtomicU64::new(0))
    }

    /// Runs `write` as one change for all readers. One writer at a time; `write` must not write the same group again.
    pub fn write<T>(&self, write: impl FnOnce() -> T) -> T {
        let before = self.0.load(Ordering::Relaxed);
        debug_assert!(before.is_multiple_of(2), "one writer, one write at a time");
        self.0.store(before + 1, Ordering::Relaxed);
        fence(Ordering::Release);
        let done = write();
        self.0.store(before + 2, Ordering::Release);
        done
    }

    /// The result of `read` if no write overlapped it. `read` may run several times and may see a torn state, with any
    /// combination of old and new values: it must terminate and must not panic on any of them.
    #[inline]
    pub fn read<T>(&self, mut read: impl FnMut() -> T) -> Result<T, Torn> {
        match self.attempt(&mut read) {
            Some(value) => Ok(value),
            None => self.insist(read),
        }
    }

    /// One try of [`Sequence::read`]; `None` when a write overlapped it.
    #[inline]
    pub fn attempt<T>(&self, read: &mut impl FnMut() -> T) -> Option<T> {
        let before = self.0.load(Ordering::Acquire);
        if !before.is_multiple_of(2) {
            return None;
        }
        let value = read();
        fence(Ordering::Acquire);
        (self.0.load(Ordering::Relaxed) == before).then_some(value)
    }

    #[cold]
    #[inline(never)]
    fn insist<T>(&self, mut read: impl FnMut() -> T) -> Result<T, Torn> {
        for round in 0..ROUNDS + NAPS {
            match round {
                0 => {}
                1..ROUNDS => std::thread::yield_now(),
                _ => std::thread::sleep(NAP),
            }
            for _ in 0..TRIES {
                if let Some(value) = self.attempt(&mut read) {
                    return Ok(value);
                }
                std::hint::spin_loop();
            }
        }
        Err(Torn)
    }

    /// Number of the last complete write, always even: changes with every change of the group.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.load(Ordering::Acquire) & !1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_gives_up_on_a_write_that_does_not_end() {
        let sequence = Sequence::new();
        assert_eq!(sequence.read(|| 7), Ok(7));
        let mut reads = 0;
        sequence.write(|| assert_eq!(sequence.read(|| reads += 1), Err(Torn)));
        assert_eq!((reads, sequence.version(), sequence.read(|| 8)), (0, 2, Ok(8)));
    }

    /// The writer keeps all values equal; a reader must never see two that differ. It reads a few that are far apart,
    /// so that a read fits into a write: without the odd version it would be torn immediately.
    #[test]
    fn values_are_never_seen_torn() {
        const COPIES: u64 = 100_000;
        const WRITES: u64 = 100_000;
        let (sequence, whole, given_up) = (Sequence::new(), AtomicU64::new(0), AtomicU64::new(0));
        let values: [AtomicU64; 256] = std::array::from_fn(|_| AtomicU64::new(0));
        let writes = std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while whole.load(Ordering::Relaxed) < COPIES || sequence.version() < 2 * WRITES {
                    match sequence.read(|| [255, 170, 85, 0].map(|at: usize| values[at].load(Ordering::Relaxed))) {
                        Ok(copy) => {
                            assert!(copy.iter().all(|value| *value == copy[0]), "torn: {copy:?}");
                            whole.fetch_add(1, Ordering::Relaxed);
                        }
                        Err(Torn) => {
                            given_up.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            });
            let mut round = 0;
            while !reader.is_finished() {
                round += 1;
                sequence.write(|| values.iter().for_each(|value| value.store(round, Ordering::Relaxed)));
            }
            round
        });
        let whole = whole.into_inner();
        println!("{whole} whole copies, {} given up, during {writes} writes", given_up.into_inner());
        assert!(whole >= COPIES, "the reader stopped at a torn copy");
    }
}
