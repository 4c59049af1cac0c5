//! The edge: what clients see of papertape.
//!
//! ```text
//!   socket ─► http (read, route, admit) ─► api (text to numbers, the handler) ─► engine_client ─► core
//!   feed ─► ws::publish ─► news ─► hub of each thread ─► sockets
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`http`] | server hygiene, route table, credentials, limits, error codes, envelope |
//! | [`api`] | the endpoints, one file or folder per group |
//! | [`ws`] | streams: sockets and their frames |
//! | [`groups`], [`description`] | the list of all endpoints, and the machine descriptions of endpoints and streams |
//! | [`engine_client`] | the way from a handler to its user's shard, and what a late answer means |
//! | [`app`] | the state of all threads that own sockets, and the state of one of them |
//! | [`reads`], [`streams`] | what a handler reads, and what open streams share |
//! | [`settings`] | the settings of the edge |
//! | [`meters`] | the counters of the edge for a monitor |
//!
//! Of the folders `ws` may name `api` and `http`, and `api` may name `http`.
//!
//! May depend on `engine`, `wire` and `host`. Absent on purpose: venues, the log, files, and which thread runs what.

pub mod api;
pub mod app;
pub mod description;
pub mod engine_client;
pub mod groups;
pub mod http;
pub mod meters;
pub mod reads;
pub mod settings;
pub mod streams;
pub mod ws;
