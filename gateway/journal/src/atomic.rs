//! The primitives under [`Waiting`](crate::commit::Waiting), imported in one place: `tests/loom` and `tests/shuttle`
//! replace them to run the threads in other orders.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
