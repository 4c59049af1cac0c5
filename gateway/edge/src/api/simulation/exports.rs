//! Exports: events of a market as a file that a signed link serves (gateway/docs/simulation.md §7). Who makes and keeps
//! the files is a port, as the archive is.
//!
//! | File | Holds |
//! |---|---|
//! | `make.rs` | `POST /v1/simulation/exports` |
//! | `file.rs`, `range.rs` | `GET /v1/simulation/exports/files/{id}`, whole or a part |
//! | `link.rs` | the signature of a link |

pub mod file;
mod link;
pub mod make;
mod range;

use super::archive::Reading;
use engine::backtest::ArchivedMarket;
use engine::time::Timestamp;
use std::fmt;
use std::ops::Range;
use std::pin::Pin;

/// Makes the files of exports, and keeps them for a day after the last link to them.
pub trait Exports: Send + Sync {
    /// The file of an export: made, or made before of the same content.
    fn make<'a>(&'a self, wanted: &'a WantedExport) -> Making<'a>;

    /// A file to be read; `None`: there is none any more.
    fn open<'a>(&'a self, id: ExportId) -> Reading<'a, Option<Box<dyn ExportFile>>>;
}

/// The making of an export. It continues if it is dropped.
pub type Making<'a> = Pin<Box<dyn Future<Output = Result<ExportId, NotMade>> + 'a>>;

/// An open file. It stays readable when it is removed.
pub trait ExportFile {
    /// Its length, in bytes.
    fn bytes(&self) -> u64;

    /// Exactly `len` bytes from `at` on, which are in the file.
    fn read(&self, at: u64, len: usize) -> Reading<'_, Vec<u8>>;
}

/// What is exported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WantedExport {
    pub market: ArchivedMarket,
    /// Events received in it; its end does not belong to it.
    pub window: Range<Timestamp>,
    pub layout: ExportLayout,
}

/// The columns of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportLayout {
    /// Seven columns; whole books without their levels.
    #[default]
    Events,
    /// The sixteen columns of an hour.
    V2,
}

/// The name of an export: SHA-256 over what was asked for and the hours that it is made of.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExportId(pub [u8; 32]);

/// Why there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotMade {
    /// It would have more than this many bytes.
    TooLarge(u64),
    /// It, or another one, is still being made.
    NotYet,
    /// The archive or the folder of the files cannot be used now.
    Unreachable,
}

impl ExportLayout {
    pub const ALL: [ExportLayout; 2] = [ExportLayout::Events, ExportLayout::V2];

    /// The word in requests.
    pub fn name(self) -> &'static str {
        match self {
            ExportLayout::Events => "events",
            ExportLayout::V2 => "v2",
        }
    }
}

impl ExportId {
    /// Reads 64 lower-case hexadecimal digits; `None` for other texts.
    pub fn parse(text: &str) -> Option<ExportId> {
        link::digest(text).map(ExportId)
    }
}

impl fmt::Display for ExportId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&link::digits(&self.0))
    }
}

impl fmt::Debug for ExportId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, out)
    }
}
