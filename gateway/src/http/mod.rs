//! The edge: sockets in, answers out. Knows routes, credentials, limits and codes; knows nothing of trading.
pub mod code;
pub mod limit;
pub mod reply;
