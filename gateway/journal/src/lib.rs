//! Where engine and log meet: what a shard decides becomes a record, and what depends on records is released.
//!
//! | Module | Holds |
//! |---|---|
//! | [`commit`] | the one owner of the log: append, hold, release; who is told of it |
//! | [`core`] | shard and committer on one thread |
//! | [`loops`] | the loops of the committer's thread and of the sync thread |
//! | [`recover`], [`checkpoint`] | log to state; state to snapshot while the server runs |
//! | [`spares`], [`prefault`] | segments and memory made ahead of their use |
//! | [`paced`] | work on files that gives way to orders |
//!
//! May depend on `engine`, `wal` and `host`. Absent on purpose: sockets, requests, venues, what a record says, and what is
//! measured of it: a [`commit::CommitListener`] is told.

mod atomic;
pub mod checkpoint;
pub mod commit;
pub mod core;
pub mod loops;
pub mod paced;
pub mod prefault;
pub mod recover;
pub mod spares;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
