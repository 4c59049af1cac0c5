//! The process of papertape: puts the packages together.
//!
//! ```text
//!   socket ─► edge: http ─► api ─► engine_client ─► core (shard + journal::commit) ─► reply
//!                                        ▲                   │
//!   venue ─► venue::feed ─► books        │ notices           ▼
//!                └── market facts ───────┴────────────────► wal
//! ```
//!
//! # The packages below
//!
//! | Package | What it is | Names |
//! |---|---|---|
//! | `wire` | numbers, times, cursors and JSON as the wire has them | `engine` |
//! | `host` | clock, threads, standard output: the machine, without trading | `engine`, `wire` |
//! | `history` | prices as they went, in files beside the log | `engine`, `wire`, `host` |
//! | `journal` | the owner of the log: append, hold, release; recovery and checkpoints | `engine`, `wal`, `host` |
//! | `venue` | market data: live, recorded, synthetic; the feed that writes the books | `engine`, `wire`, `host` |
//! | `edge` | HTTP, the endpoints, the streams, their descriptions | `engine`, `wire`, `host` |
//!
//! # Map
//!
//! | Module | What it is |
//! |---|---|
//! | [`boot`] | the way up and down of a server: recover, start threads, serve, stop in order |
//! | [`machinery`], [`layout`] | what runs beside the sockets, and which thread runs what |
//! | [`listeners`], [`instruments`] | who is told of what journal and feed do, and what the edge is told of them |
//! | [`config`], [`check`] | what is set; what a start checks of a data directory |
//! | [`backup`], [`restore`] | a directory into a backup with hashes, and back |
//! | [`set_back`] | how an operator puts a journal right that is ahead of the clock |
//! | [`metrics`] | what the server tells a monitor |
//! | [`admin`] | the listener for monitors and operators: metrics, what the server is, backups of it |
//! | `directory_venue` | which venues a data directory was used with |
//! | [`demo`], [`banner`] | a newcomer's user and the lines that a start prints |
//!
//! One order from socket to answer: `edge::http::pipeline`, `edge::http::admission` (who, may they, how often) →
//! `edge::api::orders` (text to numbers) → `edge::engine_client` → `engine::shard` (decide, apply) → `journal::commit` (append,
//! release) → `edge::api::orders` (numbers to text).

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
