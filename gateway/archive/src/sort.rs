//! Sorting of rows in bounded memory: runs are spilled to files, then merged.

use crate::error::Error;
use crate::row::Row;
use std::path::Path;

/// Order of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// (market, token, receipt), as in a file of an hour. Ties stay in the order of arrival.
    Hour,
    /// (receipt, market), as a replay sends them. Ties stay in the order of arrival.
    Time,
}

/// Collects rows, then yields them in order.
pub struct Sorter {}

/// Rows in order. Files of runs are removed when it is dropped.
pub struct Sorted {}

impl Sorter {
    /// Least memory that a sorter works with.
    pub const MEMORY_MIN: u64 = 16 << 20;

    /// A sorter that spills runs into files of `folder` (created if absent; the files have unlinked or `.making` names)
    /// once it uses about `memory_bytes`, at least [`Sorter::MEMORY_MIN`].
    pub fn new(order: Order, folder: &Path, memory_bytes: u64) -> Sorter {
        todo!()
    }

    /// Adds a row.
    ///
    /// # Errors
    /// A run cannot be written.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        todo!()
    }

    /// Rows so far.
    pub fn rows(&self) -> u64 {
        todo!()
    }

    /// Bytes of runs on disk so far.
    pub fn spilled_bytes(&self) -> u64 {
        todo!()
    }

    /// All rows in order.
    pub fn finish(self) -> Result<Sorted, Error> {
        todo!()
    }
}

impl Iterator for Sorted {
    type Item = Result<Row, Error>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
