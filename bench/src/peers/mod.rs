//! Other projects' programs that do the same work in the same run. Libraries are built only with the feature `peers`;
//! without it the tables are empty, and `--peers` is refused. Programs are installed by the run itself.
//!
//! A peer is used as its documentation shows, with settings that favour it (files as large as ours, no compression, no
//! retention), and the objects that its interface needs are created before its clock starts.

#[cfg(feature = "peers")]
mod arc_swap;
pub mod duckdb;
#[cfg(feature = "peers")]
mod hftbacktest;
#[cfg(feature = "peers")]
mod matchcore;
#[cfg(feature = "peers")]
mod okaywal;
#[cfg(feature = "peers")]
mod orderbook;
pub mod paper_trader;
mod python;
#[cfg(feature = "peers")]
mod raft_engine;
#[cfg(feature = "peers")]
pub mod tungstenite;
#[cfg(feature = "peers")]
mod wal_db;
#[cfg(feature = "peers")]
mod writeahead;

use crate::backtest::Moment;
use crate::mixed::{Matched, Operation};
use std::path::Path;

/// Whether this program was built with them.
pub const ARE_BUILT: bool = cfg!(feature = "peers");

/// How to build them.
pub const BUILD_COMMAND: &str = "cargo run --release -p bench --features peers -- SCENARIO --peers";

/// Payload bytes of each record of a peer: the 72 of our payload, and the 24 that our record header stores for its
/// caller (owner, time, version, kind). Each peer adds its own header, as ours does: 128 bytes with it.
#[cfg(feature = "peers")]
const GIVEN_BYTES: usize = 96;

/// Bytes of a peer's file, if configurable.
#[cfg(feature = "peers")]
const FILE_BYTES: u32 = 64 << 20;

/// An open log that commits groups.
pub trait Commit {
    /// Commits `commits` groups of `group` records, each group with one sync, one after the other; returns the seconds.
    fn commit(&mut self, group: usize, commits: usize) -> f64;
}

/// A log that commits groups of one thread.
pub struct CommitPeer {
    pub name: &'static str,
    /// In a directory that does not exist yet.
    pub open: fn(&Path) -> Box<dyn Commit>,
}

/// A log that acknowledges records one by one while others are in flight.
pub struct FlightPeer {
    pub name: &'static str,
    /// Its name, and how the waiters in flight wait.
    pub way: &'static str,
    /// It gets this many times fewer records than ours.
    pub slower_by: u64,
    /// In a new directory, with `in_flight` and `records` in all; returns the seconds.
    pub fly: fn(&Path, u64, u64) -> f64,
}

/// A log that returns for each record without a sync.
pub struct AppendPeer {
    pub name: &'static str,
    /// Appends `records` to a new log, in `rounds`; returns the seconds of each.
    pub append: fn(&Path, u64, u64) -> Vec<f64>,
}

/// A log that is read back.
pub struct ReadPeer {
    pub name: &'static str,
    /// Writes `records` to a new log and closes it.
    pub write: fn(&Path, u64),
    /// Opens the log and reads all records; returns their number.
    pub read: fn(&Path) -> u64,
}

/// A book that matches orders with each other.
pub struct BookPeer {
    pub name: &'static str,
    /// Runs the stream in a new book; returns the seconds and the result.
    pub run: fn(&[Operation]) -> (f64, Matched),
}

/// Levels of a book that is read while it changes, half of them bids; the first of each side is its best.
pub const LEVELS: usize = 100;

/// Their prices and sizes.
pub type Levels = [(u64, u64); LEVELS];

/// A book that one thread changes while others read it.
pub trait SharedBook: Sync {
    /// Sets another size of the level with that number.
    fn change(&self, level: usize, size: u64);
    /// Reads the best level of both sides `count` times; returns the sum of prices and sizes of the last read.
    fn top(&self, times: u64) -> u64;
    /// The same of all levels.
    fn sum(&self, times: u64) -> u64;
}

/// A way to share such a book.
pub struct LadderPeer {
    pub name: &'static str,
    pub make: fn(&Levels) -> Box<dyn SharedBook>,
}

/// A backtester.
pub struct BacktestPeer {
    pub name: &'static str,
    /// Runs the market, with an order each millisecond; returns the seconds.
    pub run: fn(&[Moment]) -> f64,
    /// The same without orders.
    pub watch: fn(&[Moment]) -> f64,
}

pub const COMMIT: &[CommitPeer] = &[
    #[cfg(feature = "peers")]
    okaywal::COMMIT,
    #[cfg(feature = "peers")]
    writeahead::COMMIT,
    #[cfg(feature = "peers")]
    raft_engine::COMMIT,
    #[cfg(feature = "peers")]
    wal_db::COMMIT,
];

pub const FLIGHT: &[FlightPeer] = &[
    #[cfg(feature = "peers")]
    writeahead::FLIGHT,
    #[cfg(feature = "peers")]
    raft_engine::FLIGHT,
];

pub const APPEND: &[AppendPeer] = &[
    #[cfg(feature = "peers")]
    wal_db::APPEND,
];

pub const READ: &[ReadPeer] = &[
    #[cfg(feature = "peers")]
    writeahead::READ,
];

pub const BOOK: &[BookPeer] = &[
    #[cfg(feature = "peers")]
    matchcore::BOOK,
    #[cfg(feature = "peers")]
    orderbook::BOOK,
];

pub const LADDER: &[LadderPeer] = &[
    #[cfg(feature = "peers")]
    arc_swap::LADDER,
];

pub const BACKTEST: &[BacktestPeer] = &[
    #[cfg(feature = "peers")]
    hftbacktest::BACKTEST,
];
