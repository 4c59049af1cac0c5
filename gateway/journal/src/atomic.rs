//! The primitives under [`Waiting`](crate::commit::Waiting), named in one place: `tests/loom` and `tests/shuttle` put their own
//! there and run the threads in other orders.

pub(crate) use std::sync::Arc;
pub(crate) use std::sync::atomic::{AtomicBool, Ordering, fence};
