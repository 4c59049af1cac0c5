//! Books, users and orders of papertape: a pure calculation. No clock, no disk, no socket, no randomness: time comes in
//! with each call, and what happened goes out as facts.
//!
//! ```text
//!   Command ─► decide (may refuse, changes nothing) ─► Mutations ─► apply (cannot fail) ─► state
//!                 ▲ books, rules, state                    └──► record of the log ─► replay: apply alone
//! ```
//!
//! # Map
//!
//! | Module | What it is |
//! |---|---|
//! | [`amount`], [`id`], [`time`] | fixed-point numbers, typed ids, µs |
//! | [`fee`] | the taker's fee |
//! | [`mod@format`] | formats of journal and snapshot, and which of them a process writes |
//! | [`rules`] | rates, flags and bounds; read by decisions only, never by replay |
//! | [`command`], [`reject`], [`view`], [`notice`] | what may be asked, refused, shown, told to listeners |
//! | [`mutation`], [`fact`] | every fact there can be, its fields, and its bytes in the log |
//! | [`describe`] | names, types and meanings of what is journaled, for `log export` and the reference |
//! | [`shard`] | the users of one thread: takes commands, runs matching cycles and settlements; replay and snapshots |
//! | [`order`] | placing, matching, cancelling, settling; depletion |
//! | [`user`] | wallets, positions, orders, keys of one user, changed by facts only |
//! | [`book`] | ladders: one writer, any number of readers, no lock; the taker's walk |
//! | [`market`] | what the venues list: the state of the log, and the catalogue that everybody reads |
//! | [`print`](mod@print) | trades of the venue on their way to resting orders |
//! | [`mark`] | what a share is worth at a moment |
//! | [`directory`] | key hash → user, read without a lock |
//! | [`index`], [`ring`] | lock-free lists and lookups; a bounded hand-off between two threads |
//!
//! Users never trade with each other, only against the venue's book, so a user belongs to exactly one shard and shards
//! share nothing that is written.

pub mod amount;
mod atomic;
pub mod book;
pub mod command;
pub mod describe;
pub mod directory;
pub mod fee;
pub mod format;
pub mod id;
pub mod index;
pub mod mark;
pub mod market;
pub mod mutation;
pub mod notice;
pub mod order;
pub mod print;
pub mod reject;
pub mod ring;
pub mod rules;
pub mod shard;
pub mod time;
pub mod user;
pub mod view;

/// The fields of every fact, those about users and those about markets.
pub mod fact {
    pub use crate::market::mutation::fact::*;
    pub use crate::mutation::fact::*;
}
