//! The server process of papertape: puts the packages together.
//!
//! ```text
//!   socket ─► edge: http ─► api ─► engine_client ─► core (shard + journal::commit) ─► reply
//!                                        ▲                   │
//!   venue ─► venue::feed ─► books        │ notices           ▼
//!                └── market facts ───────┴────────────────► wal
//! ```
//!
//! # Packages
//!
//! | Package | Holds | Names |
//! |---|---|---|
//! | `wire` | numbers, times, cursors and JSON of the wire | `engine` |
//! | `host` | clock, threads, standard output: the operating system's part | `engine`, `wire` |
//! | `history` | price history, in files beside the log | `engine`, `wire`, `host` |
//! | `journal` | the owner of the log: append, hold, release; recovery and checkpoints | `engine`, `wal`, `host` |
//! | `venue` | market data: live, recorded, synthetic; the feed that writes the books | `engine`, `wire`, `host` |
//! | `edge` | HTTP, the endpoints, the streams, their descriptions | `engine`, `wire`, `host` |
//! | `admin` | the admin namespace: controls of a running server | `engine`, `wire`, `host` |
//! | `simulation` | the archive of the simulation routes, back-tests | `engine`, `wire`, `host`, `archive`, `venue`, `edge` |
//! | `football` | facts of football, in a folder of files | `engine`, `wire`, `host`, `edge` |
//!
//! # Map
//!
//! | Module | Holds |
//! |---|---|
//! | [`boot`] | start and stop of a server: recover, start threads, serve, stop cleanly |
//! | `boot_error` | why a server does not run |
//! | `shared_state` | state shared by the threads, and the application that the IO threads make of it |
//! | `serving` | the listeners of a server, and how long it serves |
//! | `publishing` | what is shown beside markets and accounts |
//! | [`runtime`], [`layout`] | the threads of log and shards, and which thread runs what |
//! | [`jobs`] | what is done now and then beside the orders: one table |
//! | [`listeners`], [`instruments`] | listeners of the journal and the feed, and the figures that the edge reads of them |
//! | [`config`], [`check`] | settings; the checks of a data directory at a start |
//! | [`backup`], [`restore`] | backup of a directory with hashes, and restore |
//! | [`set_back`] | correction of a journal that is ahead of the clock |
//! | [`metrics`] | metrics for a monitor |
//! | [`admin_listener`] | the listener for monitors and operators: metrics, and the admin namespace of this server |
//! | `directory_venue` | the venues of a data directory |
//! | `ended` | threads that read rows which have left memory |
//! | [`fitting`] | whether the history store is that of the log beside it |
//! | [`moving`] | the mover of ended rows, with the history store and the filters over its names |
//! | [`incidents`], [`uptime`] | what the operator reports; samples of each minute |
//! | `simulation` | the parts of the simulation routes outside of the edge |
//! | [`demo`], [`banner`] | the demo user and the lines that a start prints |
//!
//! An order from socket to response: `edge::http::pipeline`, `edge::http::admission` (key, permission, limits) →
//! `edge::api::orders` (text to numbers) → `edge::engine_client` → `engine::shard` (decide, apply) → `journal::commit`
//! (append, release) → `edge::api::orders` (numbers to text).

pub mod admin_listener;
mod alerts;
pub mod backup;
pub mod banner;
mod billing;
pub mod boot;
mod boot_error;
pub mod check;
pub mod config;
pub mod demo;
mod directory_venue;
mod ended;
pub mod fitting;
pub mod incidents;
pub mod instruments;
pub mod jobs;
pub mod layout;
pub mod listeners;
pub mod metrics;
pub mod moving;
mod publishing;
pub mod rebuild;
pub mod restore;
pub mod runtime;
mod serving;
pub mod set_back;
mod shared_state;
mod simulation;
pub mod uptime;
