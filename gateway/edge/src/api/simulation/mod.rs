//! The simulation routes: fills, books and coverage of the past (gateway/docs/simulation.md). They are for keys that may
//! read. While `flags.feature_simulation_api_enabled` is off they do not exist.
//!
//! | File | Holds |
//! |---|---|
//! | [`archive`], [`jobs`] | the archive, and the runner of back-tests, as ports |
//! | `fill.rs`, `book.rs`, `coverage.rs` | the reads of it, each with its records |
//! | [`offline`] | the same reads without a server, for the command line |
//! | [`exports`] | events of a market as a file, with the port that makes it |
//! | `models.rs`, `quota.rs` | the list of fill models; what the plan allows and what is used |
//! | [`spec`] | what a back-test is asked for |
//! | `backtests.rs`, [`summary`] | routes of back-tests, and their records |
//! | `provenance.rs` | objects that several answers share |

pub mod archive;
mod backtests;
mod book;
mod coverage;
pub mod exports;
mod fill;
pub mod jobs;
mod models;
pub mod offline;
mod provenance;
mod quota;
pub mod spec;
pub mod summary;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::Refusal;
use crate::http::route::{Auth, Gate, Permission, Route};
use crate::http::schema::{Kind, Param, Schema, TEXT};
use archive::{Archive, Unreachable};
use engine::backtest::{ArchivedMarket, ArchivedPair};
use engine::id::Outcome;
use engine::time::Timestamp;
use engine::user::Tier;
use engine::user::key::entitlement;
use wire::fields::{Params, Problems};
use wire::instant;

pub const ROUTES: &[Route] = &[
    opened(Route::post("/v1/simulation/fill", "simulate_fill"))
        .about("What an order of a past moment would have taken.")
        .takes::<fill::NewFill<'_>>()
        .gives::<fill::SimulatedFill<'_>>(200)
        .fails(&[
            Code::InvalidBody,
            Code::ValidationFailed,
            Code::InvalidWindow,
            Code::InvalidRequest,
            Code::UpgradeRequired,
            Code::ConditionHourNotCovered,
            Code::ArchiveNotFound,
            Code::ArchiveUnavailable,
        ])
        .run(|call| Box::pin(fill::fill(call))),
    opened(Route::get("/v1/simulation/coverage", "get_simulation_coverage"))
        .about("Which hours of a market the archive has.")
        .params(coverage::PARAMS)
        .gives::<coverage::CoverageReport<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidWindow, Code::ArchiveNotFound, Code::ArchiveUnavailable])
        .run(|call| Box::pin(coverage::coverage(call))),
    opened(Route::get("/v1/simulation/fill-models", "list_fill_models"))
        .about("The fill models.")
        .gives_with::<models::FillModels>(200, crate::http::record::Example::Of(models::example))
        .answer(models::list),
    opened(Route::get("/v1/simulation/book", "get_simulation_book"))
        .about("The book of a token at a past moment.")
        .params(book::PARAMS)
        .gives::<book::PastBook<'_>>(200)
        .fails(&[
            Code::ValidationFailed,
            Code::InvalidWindow,
            Code::InvalidRequest,
            Code::ConditionHourNotCovered,
            Code::ArchiveNotFound,
            Code::ArchiveUnavailable,
        ])
        .run(|call| Box::pin(book::book(call))),
    opened(Route::get("/v1/simulation/quota", "get_simulation_quota"))
        .about("What the plan allows of back-tests, and what is used this month.")
        .gives::<quota::BacktestQuota>(200)
        .run(|call| Box::pin(quota::quota(call))),
    opened(Route::post("/v1/simulation/backtests", "create_backtest"))
        .about("Creates a back-test, which runs later.")
        .params(&[Param::header(
            "Idempotency-Key",
            Schema::Text(ID_CHARS_MAX as u32),
            "The same again answers the same back-test.",
        )])
        .takes::<spec::NewBacktest<'_>>()
        .gives::<summary::BacktestSummary<'_>>(202)
        .fails(&[
            Code::InvalidBody,
            Code::ValidationFailed,
            Code::InvalidWindow,
            Code::InvalidRequest,
            Code::IdempotencyKeyReuse,
            Code::IdempotencyConflictPending,
            Code::BacktestMarketCap,
            Code::BacktestWindowCap,
            Code::UpgradeRequired,
            Code::ArchiveNotFound,
            Code::ArchiveUnavailable,
            Code::UnuniverseExcluded,
            Code::MeteringUnavailable,
            Code::BacktestMonthlyCap,
            Code::SimulationHoursExceeded,
            Code::JobStoreUnavailable,
            Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted,
        ])
        .run(|call| Box::pin(backtests::create(call))),
    opened(Route::get("/v1/simulation/backtests", "list_backtests"))
        .about("The caller's back-tests, newest first.")
        .params(&[
            CURSOR,
            Param::query("limit", Schema::Integer { min: 1, max: 100 }, "Rows of a page; 20 where absent."),
        ])
        .gives::<summary::BacktestPage<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(backtests::list(call))),
    opened(Route::get("/v1/simulation/backtests/{job_id}", "get_backtest"))
        .about("One back-test.")
        .gives::<summary::BacktestSummary<'_>>(200)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(backtests::get(call))),
    opened(Route::get("/v1/simulation/backtests/{job_id}/trades", "list_backtest_trades"))
        .about("Trades of a back-test, oldest first.")
        .params(&[CURSOR, ROWS, FORMAT])
        .gives::<summary::BacktestTradePage<'_>>(200)
        .gives_kind(200, Kind::Parquet, "")
        .fails(&[Code::ValidationFailed, Code::InvalidCursor, Code::NotFound, Code::JobStoreUnavailable])
        .run(|call| Box::pin(backtests::trades(call))),
    opened(Route::get("/v1/simulation/backtests/{job_id}/equity", "list_backtest_equity"))
        .about("Points of equity of a back-test, oldest first.")
        .params(&[CURSOR, ROWS, FORMAT])
        .gives::<summary::BacktestPointPage<'_>>(200)
        .gives_kind(200, Kind::Parquet, "")
        .fails(&[Code::ValidationFailed, Code::InvalidCursor, Code::NotFound, Code::JobStoreUnavailable])
        .run(|call| Box::pin(backtests::equity(call))),
    opened(Route::get("/v1/simulation/backtests/{job_id}/report", "get_backtest_report"))
        .about("A completed back-test as one page that loads nothing.")
        .gives_kind(200, Kind::Html, "<!DOCTYPE html>")
        .fails(&[Code::NotFound, Code::JobStoreUnavailable])
        .run(|call| Box::pin(backtests::report(call))),
    opened(Route::delete("/v1/simulation/backtests/{job_id}", "cancel_backtest"))
        .about("Cancels a back-test; one that has ended stays as it is.")
        .gives::<summary::BacktestSummary<'_>>(200)
        .fails(&[
            Code::NotFound,
            Code::JobStoreUnavailable,
            Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted,
            Code::ServerBusy,
        ])
        .run(|call| Box::pin(backtests::cancel(call))),
    opened(Route::post("/v1/simulation/exports", "create_export"))
        .about("Makes a Parquet file of a market's events, and answers with a link to it.")
        .takes::<exports::make::NewExport<'_>>()
        .gives::<exports::make::ExportLink<'_>>(200)
        .fails(&[
            Code::InvalidBody,
            Code::ValidationFailed,
            Code::InvalidWindow,
            Code::UpgradeRequired,
            Code::ConditionHourNotCovered,
            Code::ArchiveNotFound,
            Code::ArchiveUnavailable,
        ])
        .run(|call| Box::pin(exports::make::make(call))),
    Route::get("/v1/simulation/exports/files/{id}", "get_export_file")
        .gate(Gate::SimulationApi)
        .no_store()
        .about("The file of an export, for the bearer of its link.")
        .params(exports::file::PARAMS)
        .gives_kind(200, Kind::Parquet, "")
        .gives_kind(206, Kind::Parquet, "")
        .gives_kind(304, Kind::Nothing, "")
        .fails(&[Code::Http403, Code::NotFound, Code::Http416, Code::ArchiveUnavailable])
        .run(|call| Box::pin(exports::file::file(call))),
];

const CURSOR: Param = Param::query("cursor", TEXT, "`next_cursor` of the page before.");
const ROWS: Param = Param::query("limit", Schema::Integer { min: 1, max: 1_000 }, "Rows of a page; 100 where absent.");
const FORMAT: Param = Param::query(
    "format",
    Schema::Word(&["json", "parquet"]),
    "`parquet`: all rows as one file, of a completed back-test. Default `json`.",
);

/// What all routes of the group have.
const fn opened(route: Route) -> Route {
    route.auth(Auth::Key).needs(Permission::Read).gate(Gate::SimulationApi)
}

/// Longest condition id and token id, and longest label, in characters.
const ID_CHARS_MAX: usize = 256;
const LABEL_CHARS_MAX: usize = 200;
/// The outcome of a request that names none.
const OUTCOME_DEFAULT: &str = "Yes";
/// The entitlement for everything that is not free.
const HISTORICAL_FULL: &str = "dataset.historical_full";

impl From<Unreachable> for Refusal {
    fn from(_: Unreachable) -> Refusal {
        Code::ArchiveUnavailable.into()
    }
}

/// The archive.
///
/// # Errors
/// `ARCHIVE_UNAVAILABLE` if the server has none.
fn archive(call: &Call) -> Result<&dyn Archive, Refusal> {
    call.reads().archive.as_deref().ok_or_else(|| Code::ArchiveUnavailable.into())
}

/// The market of a request.
///
/// # Errors
/// `ARCHIVE_NOT_FOUND`, `ARCHIVE_UNAVAILABLE`.
async fn market(archive: &dyn Archive, condition: &str) -> Result<ArchivedMarket, Refusal> {
    archive.market(condition).await?.ok_or_else(|| Code::ArchiveNotFound.into())
}

/// The outcome of a request: a token is matched exactly, a label in any case.
///
/// # Errors
/// `INVALID_REQUEST`, also for a token and a label that contradict each other.
fn outcome(market: &ArchivedMarket, token: Option<&str>, label: Option<&str>) -> Result<Outcome, Refusal> {
    let Some(token) = token else {
        let label = label.unwrap_or(OUTCOME_DEFAULT);
        return market.labelled(label).ok_or_else(|| Refusal::new(Code::InvalidRequest, NO_OUTCOME));
    };
    let outcome = market.of_token(token).ok_or_else(|| Refusal::new(Code::InvalidRequest, NO_TOKEN))?;
    match label.map(|label| market.labelled(label)) {
        Some(named) if named != Some(outcome) => Err(Refusal::new(Code::InvalidRequest, CONTRADICTION)),
        _ => Ok(outcome),
    }
}

const NO_OUTCOME: &str = "The market has no outcome with this label; its tokens may be named instead.";
const NO_TOKEN: &str = "The token does not belong to this market.";
const CONTRADICTION: &str = "token_id and outcome name different outcomes.";

/// The books of a market at a moment.
///
/// # Errors
/// `CONDITION_HOUR_NOT_COVERED`, `ARCHIVE_UNAVAILABLE`.
async fn books(
    archive: &dyn Archive,
    market: &ArchivedMarket,
    outcome: Outcome,
    at: Timestamp,
) -> Result<ArchivedPair, Refusal> {
    let pair = archive.books(market, outcome, at).await?;
    // The port may give a book of an hour that is not to be used.
    pair.filter(|pair| pair.own.verdict.is_usable()).ok_or_else(|| Code::ConditionHourNotCovered.into())
}

/// Whether the caller's plan has the whole archive.
fn has_everything(call: &Call) -> bool {
    entitlement(call.caller().grant, call.now) >= Tier::ProPlus
}

/// The refusal of a request that needs the whole archive.
fn needs_everything(call: &Call) -> Refusal {
    Refusal::upgrade(HISTORICAL_FULL, &call.front().settings.http.upgrade_url)
}

/// A moment of the past.
///
/// # Errors
/// `INVALID_WINDOW` for another text, and for a moment after `now`.
fn past(name: &str, text: &str, now: Timestamp) -> Result<Timestamp, Refusal> {
    let at = instant::read(text);
    let at = at.ok_or_else(|| Refusal::new(Code::InvalidWindow, format!("{name} is not a time.")))?;
    if at > now {
        return Err(Refusal::new(Code::InvalidWindow, format!("{name} is in the future.")));
    }
    Ok(at)
}

/// The required condition id of a query; an absent one, and an empty one, is a problem.
fn condition<'a>(params: &mut Params<'a>) -> &'a str {
    let condition = params.text("condition_id", ID_CHARS_MAX);
    if condition.is_none_or(str::is_empty) && params.problems.is_empty() {
        missing(&mut params.problems, "query", "condition_id");
    }
    condition.unwrap_or_default()
}

fn missing(problems: &mut Problems, place: &'static str, field: &str) {
    problems.add(place, field, "missing", "is required");
}

#[cfg(test)]
mod tests;
