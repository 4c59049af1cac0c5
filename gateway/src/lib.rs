//! The process of papertape: sockets, wire shapes, venues, boot.
//!
//! ```text
//!   socket ─► http ─► api ─► engine_client ─► core (shard + commit) ─► reply
//!                                   ▲                   │
//!   venue ─► venue::feed ─► books   │ notices           ▼
//!                └── market facts ──┴────────────────► wal
//! ```
//!
//! # Map
//!
//! | Module | What it is |
//! |---|---|
//! | [`boot`] | the way up and down of a server: recover, start threads, serve, stop in order |
//! | [`machinery`], [`layout`], [`thread`] | what runs beside the sockets, and thread runs what: everything on one, or shards on their own |
//! | [`core`] | shard and log on one thread: a request becomes an answer in one call |
//! | [`commit`] | the one owner of the log: append, hold, release |
//! | [`engine_client`] | a handler's way to its user's shard, and what a late answer means |
//! | [`recover`], [`checkpoint`] | log to state; state to snapshot while the server runs |
//! | [`backup`], [`restore`] | a directory into a backup with hashes, and back |
//! | [`leap`], [`set_back`] | a clock that the journal does not fit to: what a start does, and how an operator puts it right |
//! | [`spares`] | segments made ahead, and given up behind the snapshots |
//! | [`prefault`] | memory made ahead of its use |
//! | [`http`] | server hygiene, route table, credentials, limits, error codes, envelope |
//! | [`wire`] | numbers, times, cursors and JSON as the wire has them |
//! | [`api`] | the endpoints, one file or folder per group |
//! | [`ws`] | streams: sockets and what is said on them |
//! | [`venue`] | market data: synthetic, recorded; and the feed that writes the books |
//! | [`history`] | prices as they went, by minute and hour, in files beside the log |
//! | [`metrics`] | what the server tells a monitor: counters and histograms |
//! | [`admin`] | the listener for monitors and operators: metrics, what the server is, backups of it |
//! | [`config`], [`clock`], [`app`] | what is set, what time it is, what all threads share |
//! | `directory_venue` | which venues a data directory was used with |
//! | [`demo`], [`banner`] | a newcomer's user and the lines that a start prints |
//! | [`output`] | standard output and standard error, which may fail or stall |
//!
//! One order from socket to answer: `http::pipeline`, `http::admission` (who, may they, how often) → `api::orders` (text
//! to numbers) → `engine_client` → `engine::shard` (decide, apply) → `commit` (append, release) → `api::orders` (numbers
//! to text).

pub mod admin;
pub mod backup;
pub mod banner;
pub mod boot;
pub mod check;
pub mod config;
pub mod demo;
mod directory_venue;
pub mod instruments;
pub mod layout;
pub mod listeners;
pub mod machinery;
pub mod metrics;
pub mod restore;
pub mod set_back;
