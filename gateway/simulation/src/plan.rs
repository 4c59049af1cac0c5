//! What a request becomes with an archive: the job of the engine, and where its rows are.

use crate::past::{Made, Past, PastError};
use archive::row::Condition;
use archive::store::{Hold, HourEntry};
use edge::api::simulation::spec::Spec;
use engine::backtest::{ArchivedMarket, Hour, Job, JobMarket};
use engine::id::Outcome;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// How many hours before its window a run may read: the opening book of a silent token is from there.
const HOURS_BEFORE: u32 = 24;

/// A job with the places of its rows. Its hours are not removed until it is dropped.
pub struct Plan {
    pub job: Job,
    /// Of each market of the job.
    pub places: Vec<Place>,
    /// The hours that the window touches.
    pub hours: Range<Hour>,
    _holds: Vec<Hold>,
}

/// Where the rows of a market are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub venue: String,
    pub condition: Condition,
}

/// Why there is no plan.
#[derive(Debug)]
pub enum PlanError {
    /// The archive has no hour of this market that is made.
    UnknownMarket(String),
    /// The market does not have this outcome, or this token.
    UnknownOutcome { market: String, named: String },
    /// Too few hours of the window are in the archive, or one is quarantined; the first one without usable books.
    HoursGone { market: String, hour: Hour },
    /// The archive cannot be read.
    Past(PastError),
    /// It was ended meanwhile.
    Ended,
}

impl PlanError {
    /// The name of the reason in `error_message`.
    pub fn name(&self) -> &'static str {
        match self {
            PlanError::UnknownMarket(_) => "market_unknown",
            PlanError::UnknownOutcome { .. } => "outcome_unknown",
            PlanError::HoursGone { .. } => "hours_gone",
            PlanError::Past(_) => "archive_unavailable",
            PlanError::Ended => "ended",
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::UnknownMarket(market) => write!(f, "the archive has no hour of the market {market}"),
            PlanError::UnknownOutcome { market, named } => write!(f, "the market {market} has no outcome {named:?}"),
            PlanError::HoursGone { market, hour } => {
                write!(f, "the market {market} is not covered well enough, first in {hour}")
            }
            PlanError::Past(error) => error.fmt(f),
            PlanError::Ended => f.write_str("it was ended"),
        }
    }
}

impl std::error::Error for PlanError {}

impl From<PastError> for PlanError {
    fn from(error: PastError) -> PlanError {
        PlanError::Past(error)
    }
}

impl From<archive::Error> for PlanError {
    fn from(error: archive::Error) -> PlanError {
        PlanError::Past(error.into())
    }
}

impl Plan {
    /// The plan of a request. `goes_on` is asked before each market.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn of(spec: &Spec, past: &Past, goes_on: &dyn Fn() -> bool) -> Result<Plan, PlanError> {
        let hours = Hour::touched(spec.start..spec.end);
        let (mut markets, mut places, mut holds) = (Vec::new(), Vec::new(), Vec::new());
        for condition in &spec.conditions {
            if !goes_on() {
                return Err(PlanError::Ended);
            }
            let unknown = || PlanError::UnknownMarket(condition.clone());
            let id = Condition::parse(condition).ok_or_else(unknown)?;
            let venue = past.venue(&id)?.ok_or_else(unknown)?;
            // Held before they are looked at: none is removed in between.
            let held = hours.start.0.saturating_sub(HOURS_BEFORE)..hours.end.0;
            holds.push(past.store().hold(held.map(|hour| (venue.to_owned(), Hour(hour)))));
            let Made { mut market, coverage, entries } = past.made(condition, hours.clone())?.ok_or_else(unknown)?;
            let outcome = outcome(spec, &market)?;
            if !coverage.is_eligible() {
                let hour = coverage.missing_periods().next().unwrap_or(hours.start);
                return Err(PlanError::HoursGone { market: condition.clone(), hour });
            }
            // A result after the window has no part in the run, so it is not in the hash either.
            market.settlement = market.settlement.filter(|settled| settled.at <= spec.end);
            let digests = digests(condition, &entries)?;
            markets.push(JobMarket { market, outcome, coverage, digests });
            places.push(Place { venue: venue.to_owned(), condition: id });
        }
        let Spec { start, end, ref strategy, bankroll, tick_mode, seed, seeds, latency, haircut, .. } = *spec;
        let strategy = strategy.clone();
        let job = Job { markets, start, end, strategy, bankroll, tick_mode, seed, seeds, latency, haircut };
        Ok(Plan { job, places, hours, _holds: holds })
    }

    /// The label of the outcome that is traded in a market of the job.
    pub fn label(&self, market: usize) -> &Arc<str> {
        &self.job.markets[market].market.outcomes[self.job.traded(market) as usize]
    }
}

/// The outcome that a request names in a market: a token decides alone, else the label.
fn outcome(spec: &Spec, market: &ArchivedMarket) -> Result<Outcome, PlanError> {
    let token = spec.tokens.iter().find(|(of, _)| **of == *market.condition).map(|(_, token)| token);
    let (found, named) = match token {
        Some(token) => (market.of_token(token), token),
        None => (market.labelled(&spec.strategy.outcome), &spec.strategy.outcome),
    };
    let market = || market.condition.to_string();
    found.ok_or_else(|| PlanError::UnknownOutcome { market: market(), named: named.clone() })
}

/// SHA-256 of the Parquet file of each usable hour of the window.
fn digests(market: &str, entries: &[Arc<HourEntry>]) -> Result<Vec<(Hour, [u8; 32])>, PlanError> {
    let digest = |entry: &Arc<HourEntry>| {
        let gone = || PlanError::HoursGone { market: market.to_owned(), hour: entry.hour };
        let digest = entry.sidecar().ok().and_then(|sidecar| sidecar.parquet.digest());
        Ok((entry.hour, digest.ok_or_else(gone)?))
    };
    entries.iter().map(digest).collect()
}

#[cfg(test)]
mod tests;
