//! Connects the engine and the log: a shard's decisions become records, and answers are released once their records are
//! safe.
//!
//! | Module | Holds |
//! |---|---|
//! | [`commit`] | the only owner of the log: append, hold, release, notify listeners |
//! | [`core`] | shard and committer on one thread |
//! | [`loops`] | the loops of the committer's thread and of the sync thread |
//! | [`recover`], [`checkpoint`] | log to state; state to snapshot while the server runs |
//! | [`digests`] | requests for digests of the state |
//! | [`mover`] | ended rows to the history store, then out of snapshots and memory |
//! | [`spares`], [`prefault`] | segments and memory made ahead of their use |
//! | [`paced`] | file work that yields to orders |
//!
//! May depend on `engine`, `wal` and `host`. It has no sockets, requests or venues, does not interpret records, and
//! does not measure: a [`commit::CommitListener`] is notified.

mod atomic;
pub mod checkpoint;
pub mod commit;
pub mod core;
pub mod digests;
pub mod loops;
pub mod mover;
pub mod paced;
pub mod prefault;
pub mod recover;
pub mod spares;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
