//! The primitives under the ring and the sequence, named in one place: `tests/loom` puts its own there and tries every
//! order in which threads can run.

pub(crate) use crossbeam::queue::ArrayQueue;
pub(crate) use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
