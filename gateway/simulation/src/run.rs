//! One run of a plan: frames in, a report out, with its progress.

use crate::frames::{Frames, FramesError};
use crate::plan::Plan;
use archive::store::Store;
use edge::api::simulation::jobs::JobProgress;
use engine::backtest::{self, Failure, Report, TickMode};
use engine::rules::Rules;
use engine::time::{HOUR, Timestamp};
use engine::user::backtests::BacktestFigures;
use std::cell::Cell;
use std::fmt;
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering::Relaxed};

const WHOLE: u64 = 1_000;

/// How far a run is, for other threads.
#[derive(Debug, Default)]
pub struct Progress {
    /// In thousandths; 1,000 only at the end.
    done: AtomicU16,
    hours_done: AtomicU64,
    hours_total: AtomicU64,
}

/// Why a run has no report.
#[derive(Debug)]
pub enum RunError {
    /// It was ended.
    Ended,
    /// More trades, points of equity or orders than a run may have.
    OutputLimit,
    /// The frames could not be read.
    Frames(FramesError),
}

impl RunError {
    /// The name of the reason in `error_message`.
    pub fn name(&self) -> &'static str {
        match self {
            RunError::Ended => "ended",
            RunError::OutputLimit => "output_limit",
            RunError::Frames(error) => error.name(),
        }
    }
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Ended => f.write_str("it was ended"),
            RunError::OutputLimit => {
                write!(f, "it has more than {} trades, points of equity or orders", backtest::ROWS_MAX)
            }
            RunError::Frames(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Failure<FramesError>> for RunError {
    fn from(failure: Failure<FramesError>) -> RunError {
        match failure {
            Failure::Cancelled | Failure::Frames(FramesError::Ended) => RunError::Ended,
            Failure::OutputLimit => RunError::OutputLimit,
            Failure::Frames(error) => RunError::Frames(error),
        }
    }
}

impl Progress {
    /// The figures now.
    pub fn now(&self) -> JobProgress {
        JobProgress {
            done: self.done.load(Relaxed),
            hours_done: self.hours_done.load(Relaxed),
            hours_total: self.hours_total.load(Relaxed),
        }
    }
}

/// Runs a plan under these rules, with about `memory_bytes` for rows. `goes_on` is asked at least once a moment and every
/// thousand rows; false ends the run.
///
/// # Errors
/// [`RunError`].
pub fn run(
    plan: &Plan,
    store: &Store,
    rules: &Rules,
    memory_bytes: u64,
    progress: &Progress,
    goes_on: &dyn Fn() -> bool,
) -> Result<Report, RunError> {
    let begin = plan.hours.start.start();
    let (span, passes) = (plan.job.end.since(begin).max(1), if plan.job.tick_mode == TickMode::Event { 2 } else { 1 });
    progress.hours_total.store(u64::from(plan.hours.end.0 - plan.hours.start.0), Relaxed);
    // Passes over the frames that have begun, and the time at which the figures change next.
    let (pass, next) = (Cell::new(0), Cell::new(Timestamp(0)));
    let frames = || {
        pass.set(pass.get() + 1);
        next.set(Timestamp(0));
        Frames::open(plan, store, memory_bytes, goes_on)
    };
    let mut proceed = |at: Timestamp| {
        if at >= next.get() {
            next.set(at.plus(span / WHOLE + 1));
            let part = u128::from(at.since(begin).min(span)) * u128::from(WHOLE) / u128::from(span);
            let done = ((pass.get() - 1) * WHOLE + part as u64) / passes;
            progress.done.store(done.min(WHOLE - 1) as u16, Relaxed);
            if pass.get() == passes {
                progress.hours_done.store(at.since(begin).min(span) / HOUR, Relaxed);
            }
        }
        goes_on()
    };
    Ok(backtest::run(&plan.job, rules, frames, &mut proceed)?)
}

/// The figures of a report, as they are journaled.
pub fn figures(report: &Report) -> BacktestFigures {
    let comparison = &report.comparison;
    let (won, closed) = report.won.unwrap_or_default();
    BacktestFigures {
        total_pnl: report.total_pnl,
        closed,
        won,
        max_drawdown: report.max_drawdown,
        trades: report.trades.len() as u64,
        points: report.points.len() as u64,
        ticks: report.ticks_evaluated,
        event_ticks: report.plan.mode == TickMode::Event,
        step: report.plan.step,
        degraded: report.plan.is_degraded,
        settlement_scored: report.settlement_scored,
        naive_pnl: comparison.naive_pnl,
        fills_naive: comparison.fills_naive,
        fills_honest: comparison.fills_honest,
        percentiles: comparison.percentiles.map_or(Vec::new(), Vec::from),
        hash: report.hash,
    }
}
