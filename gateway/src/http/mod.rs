//! The edge: sockets in, answers out. Knows routes, credentials, limits and codes; knows nothing of trading.
pub mod auth;
pub mod code;
pub mod jwt;
pub mod limit;
pub mod reply;
