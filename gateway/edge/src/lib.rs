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
//! | [`engine_client`] | sends a handler's command to the shard of its user, and says what a late answer means |
//! | [`ended_rows`] | reads rows which have left memory, for answers and for commands |
//! | [`app`] | state shared by all IO threads, and the state of one of them |
//! | [`reads`], [`streams`] | what handlers read, and what open streams share |
//! | [`published`] | what is shown beside markets and accounts |
//! | [`settings`] | the settings of the edge |
//! | [`meters`] | the counters of the edge for a monitor |
//! | [`rehearsal`] | findings of the rehearsal of the venue's checks, and declared addresses |
//!
//! `ws` may use `api` and `http`; `api` may use `http`.
//!
//! May depend on `engine`, `wire` and `host`. It knows nothing of venues, the log, files, or which thread runs what.

pub mod api;
pub mod app;
pub mod description;
pub mod ended_rows;
pub mod engine_client;
pub mod groups;
pub mod http;
pub mod meters;
pub mod published;
pub mod reads;
pub mod rehearsal;
pub mod settings;
pub mod streams;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod ws;
