//! Reading of hours as Parquet: ours and those of other writers.

use crate::error::Error;
use crate::row::Row;
use std::ops::Range;
use std::path::Path;

/// An open Parquet file with the columns of an hour. Sizes and columns are checked; rows are not read yet.
pub struct HourFile {}

/// Rows of a file in file order.
pub struct Rows<'a> {
    file: &'a HourFile,
}

/// Findings about the rows read so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Rows read, unreadable ones included.
    pub rows: u64,
    /// Rows that hold no valid event: skipped. More than 1 % at the end of a file is refused.
    pub unreadable: u64,
    /// Whether a row was before its predecessor in (market, token, receipt).
    pub unsorted: bool,
}

impl HourFile {
    /// Opens a plain file. Checks magic, footer, all sizes, and the columns; a difference is named.
    pub fn open(path: &Path) -> Result<HourFile, Error> {
        todo!()
    }

    pub fn row_count(&self) -> u64 {
        todo!()
    }

    /// Names of columns that are not part of an hour; they are ignored.
    pub fn extra_columns(&self) -> &[String] {
        todo!()
    }

    /// The value of `papertape.source`.
    pub fn source(&self) -> Option<[u8; 32]> {
        todo!()
    }

    /// The rows of a range of row numbers, in file order. Unreadable rows are skipped and counted.
    pub fn rows(&self, range: Range<u64>) -> Rows<'_> {
        todo!()
    }
}

impl Rows<'_> {
    pub fn findings(&self) -> Findings {
        todo!()
    }
}

impl Iterator for Rows<'_> {
    /// The row number and the row; after an error the iterator ends.
    type Item = Result<(u64, Row), Error>;
    fn next(&mut self) -> Option<Self::Item> {
        todo!()
    }
}
