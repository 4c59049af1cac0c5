//! One run of a plan: frames in, a report out, with its progress.

use crate::frames::{Frames, FramesError};
use crate::plan::Plan;
use archive::store::Store;
use edge::api::simulation::jobs::JobProgress;
use engine::backtest::{self, Failure, Part, Report, TickMode};
use engine::rules::Rules;
use engine::time::{HOUR, Timestamp};
use engine::user::backtests::BacktestFigures;
use std::cell::Cell;
use std::fmt;
use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering::Relaxed};

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
    let part = part(plan, store, rules, 0..plan.job.seeds, memory_bytes, Some(progress), goes_on)?;
    Ok(backtest::join(&plan.job, rules, vec![part])?)
}

/// The same on this many threads, which share the seeds and the memory; each reads all frames. The report is the one of
/// [`run`].
///
/// # Errors
/// [`RunError`].
pub fn run_on_threads(
    plan: &Plan,
    store: &Store,
    rules: &Rules,
    memory_bytes: u64,
    threads: u16,
    progress: &Progress,
    goes_on: &(dyn Fn() -> bool + Sync),
) -> Result<Report, RunError> {
    let seeds = plan.job.seeds;
    let threads = threads.clamp(1, seeds);
    // Each has as many seeds as another, or one more.
    let bound = |thread: u16| (u32::from(seeds) * u32::from(thread) / u32::from(threads)) as u16;
    // The first error ends the others.
    let has_failed = AtomicBool::new(false);
    let goes_on = || !has_failed.load(Relaxed) && goes_on();
    let one = |thread: u16| {
        let seeds = bound(thread)..bound(thread + 1);
        let progress = (thread == 0).then_some(progress);
        let part = part(plan, store, rules, seeds, memory_bytes / u64::from(threads), progress, &goes_on);
        if part.is_err() {
            has_failed.store(true, Relaxed);
        }
        part
    };
    let mut parts: Vec<Result<Part, RunError>> = std::thread::scope(|scope| {
        let one = &one;
        let others: Vec<_> = (1..threads).map(|thread| scope.spawn(move || one(thread))).collect();
        let first = one(0);
        let joined = others.into_iter().map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        [first].into_iter().chain(joined).collect()
    });
    // One that was ended by the error of another is not the reason.
    let is_reason = |part: &Result<Part, RunError>| matches!(part, Err(error) if !matches!(error, RunError::Ended));
    if let Some(reason) = parts.iter().position(is_reason) {
        parts.swap(0, reason);
    }
    let parts = parts.into_iter().collect::<Result<Vec<Part>, RunError>>()?;
    Ok(backtest::join(&plan.job, rules, parts)?)
}

/// Runs some of the seeds of a plan. `progress` is that of all of them.
fn part(
    plan: &Plan,
    store: &Store,
    rules: &Rules,
    seeds: Range<u16>,
    memory_bytes: u64,
    progress: Option<&Progress>,
    goes_on: &dyn Fn() -> bool,
) -> Result<Part, RunError> {
    let begin = plan.hours.start.start();
    let (span, passes) = (plan.job.end.since(begin).max(1), if plan.job.tick_mode == TickMode::Event { 2 } else { 1 });
    let hidden = Progress::default();
    let progress = progress.unwrap_or(&hidden);
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
    Ok(backtest::run_part(&plan.job, rules, seeds, frames, &mut proceed)?)
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
