//! Loom's primitives under the names that the engine uses.

use loom::sync::Mutex;
use loom::sync::atomic::AtomicUsize;
pub use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::cell::Cell;

thread_local! {
    /// For the controls. Loom runs all threads of a model on one thread of the system.
    static FENCES: Cell<bool> = const { Cell::new(true) };
}

/// Runs `model` with fences that do nothing.
pub fn without_fences(model: impl FnOnce()) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            FENCES.set(true);
        }
    }
    FENCES.set(false);
    let _restore = Restore;
    model();
}

pub fn fence(order: Ordering) {
    if FENCES.get() {
        loom::sync::atomic::fence(order);
    }
}

/// Stands for crossbeam's queue and orders less than it: claims are relaxed, and a claimed slot may still be empty.
pub struct ArrayQueue<T> {
    head: AtomicUsize,
    tail: AtomicUsize,
    slots: Vec<Mutex<Option<T>>>,
}

impl<T> ArrayQueue<T> {
    pub fn new(slots: usize) -> ArrayQueue<T> {
        let slots = (0..slots).map(|_| Mutex::new(None)).collect();
        ArrayQueue { head: AtomicUsize::new(0), tail: AtomicUsize::new(0), slots }
    }

    /// Models push no more than there are slots.
    pub fn push(&self, value: T) -> Result<(), T> {
        let at = self.tail.fetch_add(1, Ordering::Relaxed);
        *self.slots[at].lock().expect("no panic inside") = Some(value);
        Ok(())
    }

    pub fn pop(&self) -> Option<T> {
        let at = self.head.load(Ordering::Relaxed);
        let value = self.slots.get(at)?.lock().expect("no panic inside").take()?;
        self.head.store(at + 1, Ordering::Relaxed);
        Some(value)
    }

    pub fn len(&self) -> usize {
        self.tail.load(Ordering::Relaxed) - self.head.load(Ordering::Relaxed)
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn capacity(&self) -> usize {
        self.slots.len()
    }
}
