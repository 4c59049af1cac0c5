//! The process of papertape: sockets, wire shapes, venues, boot.
pub mod venue;
