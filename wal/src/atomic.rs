//! The primitives under the marks of a log, imported in one place: `tests/loom` and `tests/shuttle` replace them to run
//! the threads in other orders.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::thread::{self, Thread};
