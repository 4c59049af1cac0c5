//! Polymarket: message shapes and their translation (upstream.md §2, §3).

pub mod dto;
pub mod translate;

pub use translate::Translate;
