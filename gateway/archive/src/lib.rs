//! The archive: hours of a venue's market data on disk, and the book of a token at an instant.

pub mod error;
mod files;
pub mod fold;
pub mod index;
mod levels;
mod parquet_file;
pub mod read;
pub mod row;
pub mod schema;
pub mod sort;
#[cfg(test)]
mod testing;
mod varint;
pub mod write;

pub use error::{Error, Refusal};
pub use files::hex;
