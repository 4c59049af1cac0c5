//! The primitives of ring and sequence, imported in one place: `tests/loom` and `tests/shuttle` replace them to run the
//! threads in other orders.

pub(crate) use crossbeam::queue::ArrayQueue;
pub(crate) use std::sync::Mutex;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(crate) use std::thread::{self, Thread};
