//! The archive: hours of a venue's market data on disk, and the book of a token at an instant.

pub mod error;
pub mod read;
pub mod row;
pub mod sort;
pub mod write;

pub use error::{Error, Refusal};
