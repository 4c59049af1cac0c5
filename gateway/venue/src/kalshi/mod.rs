//! Kalshi: message shapes and their translation (upstream.md §4, §6).

mod book;
mod catalogue;
pub mod doctor;
pub mod dto;
mod hot;
mod listing;
pub mod metadata;
mod recall;
pub mod stream;
pub mod translate;

pub use translate::{Sequence, Translate};

#[cfg(test)]
mod tests;
