//! The process of papertape: sockets, wire shapes, venues, boot.
pub mod api;
pub mod app;
pub mod banner;
pub mod boot;
pub mod checkpoint;
pub mod clock;
pub mod commit;
pub mod config;
pub mod core;
pub mod demo;
pub mod engine_client;
pub mod http;
pub mod layout;
pub mod recover;
pub mod thread;
pub mod venue;
pub mod wire;
