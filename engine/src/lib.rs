//! The trading rules of papertape as a pure calculation: books, users and orders. It has no clock, disk, socket or
//! randomness: time is an argument of each call, and results leave as facts.
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
//! | [`fee`] | fees of takers and makers, and rebates |
//! | [`rules`] | rates, flags and bounds; read by decisions only, never by replay |
//! | [`command`], [`reject`], [`view`], [`notice`] | requests to a shard, refusals, answers, notices to listeners |
//! | [`look_up`] | commands that need rows which left memory, and what was found of them |
//! | [`market`] | markets of all venues: facts, state, and the catalogue that every thread reads |
//! | [`book`] | ladders: one writer, any number of readers, no lock; the taker's walk |
//! | [`mutation`], [`fact`] | all facts, their fields, and their bytes in the log |
//! | [`order`] | rows of orders and fills, reservations, the index of resting orders |
//! | [`user`] | wallets, positions, orders and keys of one user, changed by facts only |
//! | [`departed`] | rows that have left memory, and how they are read |
//! | `decide` | placing, matching, cancelling, settling; keys and wallets |
//! | [`shard`] | the users of one thread: takes commands, runs matching cycles and settlements; replay and snapshots |
//! | [`backtest`] | archived hours and books; fills and strategies of the past |
//! | [`mod@format`] | formats of journal and snapshot, and which of them a process writes |
//! | [`describe`] | names, types and meanings of journaled fields, for `log export` and the reference |
//! | [`print`](mod@print) | trades of the venue on their way to resting orders |
//! | [`realism`], [`queue`] | named sets of settings; the place of an order in the queue of its level |
//! | [`chance`](mod@chance) | seeded draws of latencies, settlements and drills |
//! | [`rehearsal`] | findings of a rehearsal of the venue's checks, and declared addresses |
//! | [`mark`] | the value of a share at a moment |
//! | [`directory`] | key hash → user, read without a lock |
//! | [`index`], [`ring`] | lock-free lists and lookups; a bounded hand-off between two threads |
//!
//! `mutation`, `order`, `user` and `departed` are the folder `state/`. Among the folders, `market` is the lowest, then
//! `fee`, `book`, `state`, `look_up`, `decide`, `shard` and `backtest`; each names only lower ones (`tests/tidy/layers.rs`).
//!
//! Users never trade with each other, only against the venue's book, so a user belongs to exactly one shard and shards
//! share nothing that is written.

pub mod amount;
mod atomic;
pub mod backtest;
mod billing_event;
pub mod book;
mod bytes;
mod canonical;
pub mod chance;
pub mod command;
mod decide;
pub mod describe;
pub mod directory;
pub mod fee;
pub mod format;
mod gathered;
pub mod id;
pub mod index;
pub mod look_up;
pub mod mark;
pub mod market;
pub mod notice;
pub mod print;
pub mod queue;
pub mod realism;
pub mod rehearsal;
pub mod reject;
pub mod ring;
pub mod rules;
pub mod shard;
mod state;
pub mod time;
pub mod view;

pub use state::{departed, mutation, order, user};

/// The fields of every fact, those about users and those about markets.
pub mod fact {
    pub use crate::market::mutation::fact::*;
    pub use crate::mutation::fact::*;
}
