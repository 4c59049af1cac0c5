//! The process of papertape: sockets, wire shapes, venues, boot.
pub mod api;
pub mod app;
pub mod clock;
pub mod config;
pub mod engine_client;
pub mod http;
pub mod venue;
pub mod wire;
