//! `GET /v1/simulation/coverage`: the hours of a market that the archive has (gateway/docs/simulation.md §4).

use super::archive::Archive;
use super::provenance::{ConfidenceName, Leakage, VerdictName, hour_text};
use super::{ID_CHARS_MAX, archive, condition, market};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::{ConditionId, HourText, Percentage, words};
use crate::http::schema::{Param, Schema, TEXT};
use engine::backtest::{ArchivedMarket, COVERAGE_HOURS_MAX, COVERAGE_MIN, Coverage, Hour, HourState, Verdict};
use engine::time::Timestamp;
use std::ops::Range;
use wire::decimal;
use wire::fields::Params;
use wire::instant;
use wire::query::Query;

pub const PARAMS: &[Param] = &[
    Param::query("condition_id", Schema::Text(ID_CHARS_MAX as u32), "The market.").required(),
    Param::query("start", TEXT, "Default: the first hour of the market."),
    Param::query("end", TEXT, "Not included. Default: after the last hour of the market. At most 2,160 hours."),
];

words! {
    pub SettlementSourceName = "upstream", "import";
}

record! {
    /// The hours of a market that the archive has.
    pub struct CoverageReport<'a> {
        condition_id: ConditionId<'a> = "0x5151515151515151515151515151515151515151515151515151515151515151".into();
        hours_available: u64 = 2, "Valid, degraded and partial ones.";
        hours_degraded: u64 = 1;
        hours_missing: u64 = 0;
        hours_quarantined: u64 = 0;
        bbo_confidence: ConfidenceName = "medium".into(), "The lowest of the available hours.";
        book_snapshot_coverage_pct: Percentage<'a> = "100.00".into(), "Available hours of all hours asked about.";
        settlement_known: bool = true;
        settlement_source: Option<SettlementSourceName> = Some("upstream".into()), "Null: no result is known.";
        universe_eligible: bool = true,
            "The coverage is at least `min_coverage_pct`, and no hour is quarantined.";
        min_coverage_pct: Percentage<'a> = "80.00".into();
        hours: Vec<CoveredHour<'a>> = vec![
            CoveredHour::example(),
            CoveredHour {
                hour: "2026-09-30T18".into(),
                verdict: "degraded".into(),
                bbo_confidence: "medium".into(),
            },
        ];
        leakage: Leakage<'a> = Leakage::of_a_read([], true);
    }

    /// One hour of a market.
    pub struct CoveredHour<'a> {
        hour: HourText<'a> = "2026-09-30T17".into();
        verdict: VerdictName = "valid".into();
        bbo_confidence: ConfidenceName = "high".into();
    }
}

pub async fn coverage(call: Call) -> Outcome {
    let query = call.query();
    let wanted = Wanted::read(&query)?;
    wanted.answer(archive(&call)?).await
}

/// A request.
pub(super) struct Wanted<'a> {
    condition: &'a str,
    asked: Asked,
}

impl<'a> Wanted<'a> {
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_WINDOW`.
    pub(super) fn read(query: &'a Query<'_>) -> Result<Wanted<'a>, Refusal> {
        let mut params = Params::new(query);
        let condition = condition(&mut params);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        Ok(Wanted { condition, asked: Asked::read(query)? })
    }

    /// # Errors
    /// `ARCHIVE_NOT_FOUND`, `INVALID_WINDOW`, `ARCHIVE_UNAVAILABLE`.
    pub(super) async fn answer(self, archive: &dyn Archive) -> Outcome {
        let market = market(archive, self.condition).await?;
        let window = self.asked.window(&market)?;
        let known = archive.hours(&market, window.clone()).await?;
        Ok(Reply::json(&CoverageReport::new(&market, &Coverage::of(window, known))))
    }
}

/// The window of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Asked {
    start: Option<Timestamp>,
    end: Option<Timestamp>,
}

impl Asked {
    /// # Errors
    /// `INVALID_WINDOW`.
    fn read(query: &Query<'_>) -> Result<Asked, Refusal> {
        let time = |name: &str, read: fn(&str) -> Option<Timestamp>| match query.get(name) {
            None => Ok(None),
            Some(text) => read(text).map(Some).ok_or_else(|| wrong(format!("{name} is not a time."))),
        };
        let asked = Asked { start: time("start", instant::read)?, end: time("end", instant::read_end)? };
        match (asked.start, asked.end) {
            (Some(start), Some(end)) if start >= end => Err(wrong("start is not before end.")),
            (Some(start), Some(end)) if is_too_long(&Hour::touched(start..end)) => Err(too_long()),
            _ => Ok(asked),
        }
    }

    /// The hours; of a market with more than the most, the newest ones unless a start is named.
    ///
    /// # Errors
    /// `INVALID_WINDOW`.
    fn window(self, market: &ArchivedMarket) -> Result<Range<Hour>, Refusal> {
        let end = self.end.map_or(market.hours.end, |end| Hour::touched(Timestamp(0)..end).end);
        let newest = || Hour(market.hours.start.0.max(end.0.saturating_sub(COVERAGE_HOURS_MAX)));
        let window = self.start.map_or_else(newest, Hour::of)..end;
        if window.is_empty() {
            return Err(wrong("The archive has no hour of the market in this window."));
        }
        if is_too_long(&window) { Err(too_long()) } else { Ok(window) }
    }
}

fn is_too_long(window: &Range<Hour>) -> bool {
    window.end.0 - window.start.0 > COVERAGE_HOURS_MAX
}

fn too_long() -> Refusal {
    wrong(format!("The window has more than {COVERAGE_HOURS_MAX} hours."))
}

fn wrong(why: impl Into<std::borrow::Cow<'static, str>>) -> Refusal {
    Refusal::new(Code::InvalidWindow, why)
}

impl<'a> CoverageReport<'a> {
    fn new(market: &'a ArchivedMarket, coverage: &Coverage) -> CoverageReport<'a> {
        let percent = |part, whole| Percentage::from(decimal::text(|out| decimal::pct(out, part, whole)));
        CoverageReport {
            condition_id: (&*market.condition).into(),
            hours_available: coverage.available(),
            hours_degraded: coverage.count(Verdict::Degraded),
            hours_missing: coverage.count(Verdict::Missing),
            hours_quarantined: coverage.count(Verdict::Quarantined),
            bbo_confidence: coverage.confidence().into(),
            book_snapshot_coverage_pct: percent(coverage.available(), coverage.asked()),
            settlement_known: market.settlement.is_some(),
            settlement_source: market.settlement.map(|settled| settled.source.name().into()),
            universe_eligible: coverage.is_eligible(),
            min_coverage_pct: percent(COVERAGE_MIN, 10_000),
            hours: coverage.hours.iter().map(CoveredHour::new).collect(),
            leakage: Leakage::of_a_read(coverage.missing_periods(), coverage.available() > 0),
        }
    }
}

impl CoveredHour<'_> {
    fn new(state: &HourState) -> CoveredHour<'static> {
        CoveredHour {
            hour: hour_text(state.hour),
            verdict: state.verdict.into(),
            bbo_confidence: state.confidence.into(),
        }
    }
}
