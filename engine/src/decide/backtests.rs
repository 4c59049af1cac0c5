//! Decides about back-tests: creation within the plan of the month, start, end, cancellation (gateway/docs/simulation.md
//! §6). The caller has checked what needs an archive.

use crate::command::{BacktestResult, NewBacktest};
use crate::fact;
use crate::mutation::Mutation;
use crate::reject::Reject;
use crate::rules::Rules;
use crate::time::Timestamp;
use crate::user::User;
use crate::user::backtests::{BACKTEST_REQUESTS_BYTES_MAX, Backtest, BacktestEnd};

/// Whether a request with this id was made before: that back-test, or the refusal of another request.
pub fn replay<'a>(user: &'a User, new: &NewBacktest, now: Timestamp) -> Result<Option<&'a Backtest>, Reject> {
    let Some(request) = &new.request else { return Ok(None) };
    let known = user.backtests_kept(now).rev().find(|job| job.request.as_deref() == Some(request));
    match known {
        Some(known) if known.digest != new.digest => Err(Reject::IdempotencyKeyReuse),
        known => Ok(known),
    }
}

/// A new back-test, within the limits of the month.
pub fn create(
    user: &User,
    new: NewBacktest,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let meter = user.backtest_meter(now.month());
    let resets_at = now.next_month();
    if u64::from(meter.jobs) >= new.jobs_max {
        return Err(Reject::BacktestsSpent { limit: new.jobs_max, resets_at });
    }
    let stored: usize = user.backtests_kept(now).map(|job| job.spec.len()).sum();
    if stored + new.spec.len() > BACKTEST_REQUESTS_BYTES_MAX {
        let until = user.backtests_kept(now).filter_map(Backtest::kept_until).min().unwrap_or(resets_at);
        return Err(Reject::BacktestRequestsFull { bytes_max: BACKTEST_REQUESTS_BYTES_MAX as u64, until });
    }
    let hours = meter.hours.saturating_add(new.charged);
    if hours > new.hours_max {
        return Err(Reject::MarketHoursSpent { limit: new.hours_max, used: meter.hours, resets_at });
    }
    storable(rules)?;
    if user.backtest(new.id).is_some() {
        return Err(Reject::NoBacktestStore);
    }
    let NewBacktest { id, spec, digest, request, charged, .. } = new;
    let created = fact::BacktestCreated { job: id, spec, digest, request, charged, at: now };
    facts.push(Mutation::BacktestCreated(created));
    Ok(())
}

/// A back-test begins to run; one that runs already begins again without a fact. With the previous format none begins:
/// its end could not be journaled.
pub fn start(
    user: &User,
    job: [u8; 16],
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let known = open(user, job)?;
    storable(rules)?;
    if known.started_at.is_none() {
        facts.push(Mutation::BacktestStarted(fact::BacktestStarted { job, at: now }));
    }
    Ok(())
}

/// A back-test ends. `left`: the unprocessed part in thousandths; all of it where it did not run.
pub fn end(
    user: &User,
    job: [u8; 16],
    result: BacktestResult,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    let known = open(user, job)?;
    storable(rules)?;
    let (end, error, figures, left) = match result {
        BacktestResult::Completed(figures) => (BacktestEnd::Completed, None, Some(figures), 0),
        BacktestResult::Failed { error, left } => (BacktestEnd::Failed, Some(error), None, left),
        BacktestResult::Cancelled { left } => (BacktestEnd::Cancelled, None, None, left),
    };
    let left =
        if known.started_at.is_none() && end != BacktestEnd::Completed { 1_000 } else { u64::from(left.min(1_000)) };
    let refunded = (u128::from(known.charged) * u128::from(left) / 1_000) as u64;
    facts.push(Mutation::BacktestEnded(fact::BacktestEnded { job, end, error, figures, refunded, at: now }));
    Ok(())
}

fn open(user: &User, job: [u8; 16]) -> Result<&Backtest, Reject> {
    let known = user.backtest(job).ok_or(Reject::BacktestNotFound)?;
    if known.is_open() { Ok(known) } else { Err(Reject::BacktestOver) }
}

/// The previous format has no back-tests.
fn storable(rules: &Rules) -> Result<(), Reject> {
    if rules.formats.is_newest() { Ok(()) } else { Err(Reject::NoBacktestStore) }
}
