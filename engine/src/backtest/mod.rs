//! The rules of papertape on markets of the past: what an archive covers, what an order of a past moment would have
//! taken, and what a strategy would have earned (gateway/docs/simulation.md).
//!
//! | File | Holds |
//! |---|---|
//! | `hours.rs` | [`Hour`], its [`Verdict`] and [`Confidence`]; the [`Coverage`] of a window |
//! | `book.rs` | [`ArchivedMarket`], [`ArchivedBook`], [`ArchivedPair`]: values that an archive gives |
//! | `fill.rs` | [`FillModel`], [`fill`]: one order against one archived book |
//!
//! Pure calculations: an archive reads files and makes these values.

mod book;
mod fill;
mod hours;

pub use book::{ArchivedBook, ArchivedMarket, ArchivedPair, SettlementSource, Settled};
pub use fill::{FillModel, FillRequest, FillResult, SHARES_MAX, fill};
pub use hours::{COVERAGE_HOURS_MAX, COVERAGE_MIN, Confidence, Coverage, Hour, HourState, NotAnHour, Verdict};
