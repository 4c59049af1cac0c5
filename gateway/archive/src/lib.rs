//! The archive: hours of a venue's market data on disk, and the book of a token at a past moment
//! (gateway/docs/archive.md).
//!
//! | Module | Holds |
//! |---|---|
//! | [`row`] | [`Row`](row::Row): one event of one token, what all file forms are made of |
//! | [`schema`] | the sixteen columns of a Parquet hour |
//! | [`mod@write`], [`events`] | rows → Parquet: hours, and events in seven columns; `sink` is the file below |
//! | [`read`] | Parquet of any writer → rows; `parquet_file` is the reader below it |
//! | [`sort`] | rows in another order, in bounded memory |
//! | [`fold`] | the book of a token from its events |
//! | [`index`] | the time index: rows of each token, its folded book at some of them |
//! | [`checks`] | what the rows of an hour say about each other |
//! | [`sidecar`] | facts about an hour: source, losses, verdicts, digests |
//! | [`store`] | the folder: list, completion of an hour, book at a moment, recovery, removal, verification |
//! | [`unsealed`] | hours that are not made yet: their rows, and books at a moment |
//! | `book` | rows between two anchors, decoded; `levels`, `varint`, `files`: texts of levels, numbers, files that appear whole |
//!
//! May depend on `engine`, `wire` and `host`; uses only the first. It knows no venue's messages, no route and no setting: `venue` turns
//! recordings into rows, `gateway` decides when.
//!
//! Files are untrusted: sizes are checked before they are used, and a damaged file is refused with the place of the
//! damage (`error`). Nothing here panics on any bytes. Whole hours appear and vanish atomically: an hour counts only
//! with its sidecar, which is written last and removed first.

mod book;
pub mod checks;
pub mod error;
pub mod events;
mod files;
pub mod fold;
pub mod index;
mod levels;
mod parquet_file;
pub mod read;
pub mod row;
pub mod schema;
pub mod sidecar;
mod sink;
pub mod sort;
pub mod store;
#[cfg(test)]
mod testing;
pub mod unsealed;
mod varint;
pub mod write;

pub use error::{Error, Refusal};
pub use files::{MAKING, Making, crash_at, digest, hex, write as write_file};
pub use parquet_file::source::plain_file;
