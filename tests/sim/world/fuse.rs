//! Kills at a named point.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicUsize, Ordering};

/// Kills the process at a later passage of a point.
#[derive(Default)]
pub struct Fuse {
    /// Passages left; burns out at the last.
    left: AtomicI64,
    /// The point, by its place in the list of them.
    at: AtomicUsize,
    has_burned: AtomicBool,
}

impl Fuse {
    pub fn light<P: PartialEq>(&self, points: &[P], point: P, nth: i64) {
        let at = points.iter().position(|known| *known == point).expect("all are listed");
        self.at.store(at, Ordering::Relaxed);
        self.left.store(nth, Ordering::Relaxed);
    }

    pub fn put_out(&self) {
        self.left.store(0, Ordering::Relaxed);
    }

    /// Whether it burns out at this passage.
    pub fn burns<P: PartialEq>(&self, points: &[P], point: P) -> bool {
        let here = points[self.at.load(Ordering::Relaxed)] == point;
        let burns = here && self.left.fetch_sub(1, Ordering::Relaxed) == 1;
        self.has_burned.fetch_or(burns, Ordering::Relaxed);
        burns
    }

    /// The point at which it has burned out, once.
    pub fn burned(&self) -> Option<usize> {
        self.has_burned.swap(false, Ordering::Relaxed).then(|| self.at.load(Ordering::Relaxed))
    }
}
