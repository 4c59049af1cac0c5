//! Polymarket: message shapes and their translation (upstream.md §2, §3).

mod announced;
mod catalogue;
pub mod doctor;
pub mod dto;
mod hash;
mod hot;
mod listing;
mod recall;
mod recent;
mod spot;
mod standing;
pub mod stream;
pub mod translate;

pub use translate::Translate;

#[cfg(test)]
mod tests;
