//! Writing of an hour as Parquet.

use crate::error::Error;
use crate::row::{Kind, Row};
use std::path::Path;

/// Writes `NAME.parquet.making`; [`HourWriter::finish`] makes it `NAME.parquet`.
pub struct HourWriter {}

/// What a finished file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub sha256: [u8; 32],
    pub rows: u64,
    pub row_groups: u32,
}

impl HourWriter {
    /// Creates `path` with `.making` appended. `source`: SHA-256 of the source, for `papertape.source`.
    pub fn create(path: &Path, source: Option<[u8; 32]>) -> Result<HourWriter, Error> {
        todo!()
    }

    /// Adds a row. Rows come in file order: (market, token, receipt); another order is refused.
    pub fn push(&mut self, row: &Row) -> Result<(), Error> {
        todo!()
    }

    /// Rows so far, by kind (index: position in [`Kind::ALL`]).
    pub fn counts(&self) -> [u64; Kind::ALL.len()] {
        todo!()
    }

    /// Writes the footer, syncs the file, renames it, syncs the folder.
    pub fn finish(self) -> Result<Written, Error> {
        todo!()
    }
}
