//! The process of papertape: sockets, wire shapes, venues, boot.
pub mod clock;
pub mod config;
pub mod http;
pub mod venue;
pub mod wire;
