//! The runner of back-tests as the routes see it: a port. What was asked for and what became of it is journaled with the
//! user; the rows of a result are the runner's.

use super::archive::Reading;
use engine::backtest::{EquityPoint, Trade};
use engine::id::UserId;
use engine::user::Backtest;
use std::sync::Arc;

/// How far a running back-test is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobProgress {
    /// In thousandths.
    pub done: u16,
    pub hours_done: u64,
    pub hours_total: u64,
}

/// A trade with the label of its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobTrade {
    pub trade: Trade,
    pub outcome: Arc<str>,
}

/// Which rows of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobRows {
    Trades,
    Equity,
}

/// Runs back-tests, and keeps the rows of their results.
pub trait Jobs: Send + Sync {
    /// Whether back-tests are run. If not, none is created, and those that are complete stay readable.
    fn runs(&self) -> bool;

    /// A back-test waits; its creation is in the log.
    fn created(&self, user: UserId, job: [u8; 16]);

    /// A back-test is cancelled: it stops within a moment.
    fn cancelled(&self, user: UserId, job: [u8; 16]);

    /// The progress of a running back-test; `None`: it does not run.
    fn progress(&self, user: UserId, job: [u8; 16]) -> Option<JobProgress>;

    /// Trades from row `from` on, oldest first, at most `limit`.
    fn trades<'a>(&'a self, user: UserId, job: &'a Backtest, from: usize, limit: usize) -> Reading<'a, Vec<JobTrade>>;

    /// Points of equity from row `from` on, oldest first, at most `limit`.
    fn points<'a>(
        &'a self,
        user: UserId,
        job: &'a Backtest,
        from: usize,
        limit: usize,
    ) -> Reading<'a, Vec<EquityPoint>>;

    /// All rows as a Parquet file.
    fn file<'a>(&'a self, user: UserId, job: &'a Backtest, rows: JobRows) -> Reading<'a, Vec<u8>>;

    /// The page of a completed back-test: HTML that loads nothing.
    fn report<'a>(&'a self, user: UserId, job: &'a Backtest) -> Reading<'a, String>;
}
