//! The edge: what clients see of papertape.
//!
//! ```text
//!   socket ─► http (read, route, who, may they, how often) ─► api (text to numbers, the handler) ─► engine_client ─► core
//!   feed ─► ws::publish ─► news ─► hub of each thread ─► sockets
//! ```
//!
//! | Module | Holds |
//! |---|---|
//! | [`http`] | server hygiene, route table, credentials, limits, error codes, envelope |
//! | [`api`] | the endpoints, one file or folder per group |
//! | [`ws`] | streams: sockets and what is said on them |
//! | [`groups`], [`description`] | the list of all endpoints, and what they and the streams are for machines |
//! | [`engine_client`] | a handler's way to its user's shard, and what a late answer means |
//! | [`app`] | what all threads that own sockets share, and what one has for itself |
//! | [`settings`] | what the edge goes by |
//! | [`meters`] | what it counts for a monitor |
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
pub mod settings;
pub mod ws;
