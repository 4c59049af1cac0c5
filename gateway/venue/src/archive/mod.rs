//! Archives of market data: recordings become hours, and hours are replayed (gateway/docs/archive-tools.md).
//!
//! | Module | Holds |
//! |---|---|
//! | [`rows`] | updates of the feed as rows, and back |
//! | [`tally`] | what is counted while an hour is read |
//! | [`catalogue`], [`known`], [`markets`], [`settled`] | what is known about the markets of an archive |
//! | [`given`] | files that a user gives |
//! | [`hours`] | which file is of which hour |
//! | [`hourly`] | a recording that grows, hour by hour |
//! | [`build`], [`import`] | recordings and files of others become hours |
//! | [`fetch`] | published hours are downloaded and imported |
//! | [`seal`] | the files of one hour |
//! | [`room`] | room on the disk |
//! | [`compare`] | hours compared with the lines that they were made of |
//! | [`tail`] | hours of a recording that are not made yet |
//! | [`replay`] | hours as a venue |
//!
//! The files themselves are those of the `archive` package.

pub mod build;
pub mod catalogue;
pub mod compare;
pub mod fetch;
pub mod given;
pub mod hourly;
pub mod hours;
pub mod import;
pub mod known;
pub mod markets;
pub mod replay;
pub mod room;
pub mod rows;
pub mod seal;
pub mod settled;
pub mod tail;
pub mod tally;
#[cfg(test)]
mod testing;
