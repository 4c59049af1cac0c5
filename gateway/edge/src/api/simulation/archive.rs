//! The archive as the routes read it: a port, so that the edge knows no files.

use engine::backtest::{ArchivedMarket, ArchivedPair, Coverage, Hour, HourState};
use engine::id::Outcome;
use engine::time::Timestamp;
use std::ops::Range;
use std::pin::Pin;

/// A read of the archive. It stays on the thread that began it; the files are read on another one.
pub type Reading<'a, T> = Pin<Box<dyn Future<Output = Result<T, Unreachable>> + 'a>>;

/// The archive cannot be read now: it is off, broken, or too busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unreachable;

/// A market with the hours of a window that are made. An hour that is not made yet is missing here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MadeMarket {
    pub market: ArchivedMarket,
    pub coverage: Coverage,
}

/// Markets, hours and books of the past.
pub trait Archive: Send + Sync {
    /// The market with that condition id; `None`: the archive has no hour of it.
    fn market<'a>(&'a self, condition: &'a str) -> Reading<'a, Option<ArchivedMarket>>;

    /// The states of a market's hours within `window`, also of those that are not made yet, at most [`COVERAGE_HOURS_MAX`]; an hour without a state is
    /// missing.
    ///
    /// [`COVERAGE_HOURS_MAX`]: engine::backtest::COVERAGE_HOURS_MAX
    fn hours<'a>(&'a self, market: &'a ArchivedMarket, window: Range<Hour>) -> Reading<'a, Vec<HourState>>;

    /// A market with its hours of `window` that are made: what back-tests and exports use. `None`: the archive has no hour
    /// of it, made or not.
    fn made<'a>(&'a self, condition: &'a str, window: Range<Hour>) -> Reading<'a, Option<MadeMarket>>;

    /// The books of a market at a moment, from the view of `outcome`; `None`: the archive does not cover that moment.
    fn books<'a>(
        &'a self,
        market: &'a ArchivedMarket,
        outcome: Outcome,
        at: Timestamp,
    ) -> Reading<'a, Option<ArchivedPair>>;
}
