//! The edge: sockets in, answers out. Knows routes, credentials, limits and codes; knows nothing of trading.
pub mod admission;
pub mod auth;
pub mod body;
pub mod buffer;
pub mod call;
pub mod code;
pub mod containment;
pub mod dialect;
pub mod dress;
pub mod front;
pub mod hosts;
pub mod jwt;
pub mod last_used;
pub mod limit;
pub mod names;
pub mod openapi;
pub mod pipeline;
pub mod plain;
pub mod refusals;
pub mod reply;
pub mod route;
pub mod router;
pub mod schema;
pub mod server;
pub mod ticket;
pub mod usage;

#[cfg(any(test, feature = "testing"))]
pub mod testing;
