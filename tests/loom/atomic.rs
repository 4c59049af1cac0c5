//! Loom's primitives under the names that the engine uses.

use loom::sync::atomic::AtomicUsize;
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
pub use loom::sync::{Arc, Mutex};
pub use loom::thread::Thread;
use std::cell::Cell;

thread_local! {
    /// For the controls. Loom runs all threads of a model on one thread of the system.
    static FENCES: Cell<bool> = const { Cell::new(true) };
    static STORES_SWAP: Cell<bool> = const { Cell::new(false) };
}

/// Resets a switch when a model ends, by a panic too.
struct Switched(&'static std::thread::LocalKey<Cell<bool>>, bool);

impl Switched {
    fn to(switch: &'static std::thread::LocalKey<Cell<bool>>, value: bool) -> Switched {
        Switched(switch, switch.replace(value))
    }
}

impl Drop for Switched {
    fn drop(&mut self) {
        self.0.set(self.1);
    }
}

/// Runs `model` with fences that have no effect.
pub fn without_fences(model: impl FnOnce()) {
    let _switched = Switched::to(&FENCES, false);
    model();
}

/// Runs `model` with the stores of [`AtomicBool`] as swaps whose result is dropped.
///
/// Loom orders the stores of an atomic by happens-before alone. The standard orders more: nothing comes between a store
/// and the read-modify-write that read it. So loom lets a thread read what a producer's swap wrote although the
/// consumer stored after the value which that swap had read; for one producer this changes nothing, for two it is a
/// deadlock that no machine can have. A swap takes its place in the order of the others, as the standard requires of
/// the store.
pub fn with_swapping_stores(model: impl FnOnce()) {
    let _switched = Switched::to(&STORES_SWAP, true);
    model();
}

#[derive(Debug, Default)]
pub struct AtomicBool(loom::sync::atomic::AtomicBool);

impl AtomicBool {
    pub fn new(value: bool) -> AtomicBool {
        AtomicBool(loom::sync::atomic::AtomicBool::new(value))
    }

    pub fn load(&self, order: Ordering) -> bool {
        self.0.load(order)
    }

    pub fn store(&self, value: bool, order: Ordering) {
        if STORES_SWAP.get() {
            self.0.swap(value, order);
        } else {
            self.0.store(value, order);
        }
    }

    pub fn swap(&self, value: bool, order: Ordering) -> bool {
        self.0.swap(value, order)
    }
}

pub fn fence(order: Ordering) {
    if FENCES.get() {
        loom::sync::atomic::fence(order);
    }
}

/// Sleeps without a timeout: a lost wake-up is a deadlock.
pub mod thread {
    pub use loom::thread::current;

    pub fn park_timeout(_at_most: std::time::Duration) {
        loom::thread::park();
    }
}

/// A replacement of crossbeam's queue with weaker ordering: claims are relaxed, and a claimed slot may still be empty.
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

    /// Models push at most one value per slot.
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
