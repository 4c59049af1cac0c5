//! The routes of back-tests (gateway/docs/simulation.md §6). A creation is checked here as far as the archive and the plan
//! are concerned; the shard of the user decides about the month.

use super::archive::MadeMarket;
use super::jobs::{JobProgress, JobRows, Jobs};
use super::spec::Spec;
use super::summary::{
    BacktestPage, BacktestPoint, BacktestPointPage, BacktestSummary, BacktestTrade, BacktestTradePage,
};
use super::{archive, has_everything, needs_everything, outcome, quota};
use crate::api::clob::ids::uuid;
use crate::api::orders::terms::header_id;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::scalar::HourText;
use crate::http::schema::{HTML, PARQUET};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use engine::backtest::{Coverage, Hour};
use engine::command::{Answer, BacktestResult, Command, NewBacktest, Query};
use engine::rules::BacktestCaps;
use engine::time::{DAY, Timestamp};
use engine::user::Backtest;
use hyper::StatusCode;
use hyper::header::{self, HeaderName, HeaderValue};
use sha2::{Digest as _, Sha256};
use wire::cursor::OffsetCursor;
use wire::fields::{Params, Problems};
use wire::read;
use wire::write;

static IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");
const KEY_CHARS_MAX: usize = 256;
const LIST_DEFAULT: u64 = 20;
const LIST_MAX: u64 = 100;
const ROWS_DEFAULT: u64 = 100;
const ROWS_MAX: u64 = 1_000;

pub async fn create(call: Call) -> Outcome {
    let body = call.json_object()?;
    let spec = Spec::read(&body, call.now)?;
    let request = request_id(&call)?;
    let text = spec.to_json();
    let digest: [u8; 32] = Sha256::digest(text.as_bytes()).into();
    // A repeat is answered before the plan and the archive are looked at.
    if let Some(request) = &request
        && let Some(known) = earlier(&call, request).await?
    {
        return match known.digest == digest {
            true => summary(&call, &known, true).map(accepted),
            false => Err(Code::IdempotencyKeyReuse.into()),
        };
    }
    let caps = quota::caps(&call);
    within_plan(&spec, caps)?;
    if !spec.strategy.model.is_free() && !has_everything(&call) {
        return Err(needs_everything(&call));
    }
    in_universe(&call, &spec).await?;
    let charged = spec.market_hours();
    within_month(&call, caps, charged).await?;
    let jobs = jobs(&call)?;
    if !jobs.runs() {
        return Err(Code::JobStoreUnavailable.into());
    }
    let mut id = [0; 16];
    getrandom::fill(&mut id).map_err(|_| Code::InternalError)?;
    // A random UUID, version 4.
    (id[6], id[8]) = (id[6] & 0x0f | 0x40, id[8] & 0x3f | 0x80);
    let new = NewBacktest {
        id,
        spec: text,
        digest,
        request,
        charged,
        jobs_max: caps.jobs_per_month,
        hours_max: caps.market_hours_per_month * 1_000,
        by: call.key(),
    };
    match call.ask(Command::CreateBacktest(Box::new(new))).await? {
        Answer::Backtest { job, is_replay } => {
            if job.digest != digest {
                return Err(Code::IdempotencyKeyReuse.into());
            }
            if !is_replay {
                jobs.created(call.caller().user, job.id);
            }
            summary(&call, &job, is_replay).map(accepted)
        }
        other => Err(unexpected(&other, call.now)),
    }
}

fn accepted(summary: BacktestSummary<'static>) -> Reply {
    Reply::json(&summary).with_status(StatusCode::ACCEPTED)
}

/// The id that the client gave the request, read as that of an order.
///
/// # Errors
/// `VALIDATION_FAILED` for one that is long or cannot be printed.
fn request_id(call: &Call) -> Result<Option<String>, Refusal> {
    let mut problems = Problems::default();
    let value = call.headers.get(&IDEMPOTENCY_KEY).map(HeaderValue::as_bytes);
    let id = header_id(value, KEY_CHARS_MAX, &mut problems);
    if problems.is_empty() { Ok(id.map(str::to_owned)) } else { Err(Refusal::validation(&problems)) }
}

/// The back-test of an earlier request with this id.
async fn earlier(call: &Call, request: &str) -> Result<Option<Backtest>, Refusal> {
    match call.ask(Command::Query(Query::BacktestByRequest(request.to_owned()))).await? {
        Answer::Backtest { job, .. } => Ok(Some(*job)),
        Answer::Refused(engine::reject::Reject::BacktestNotFound) => Ok(None),
        other => Err(unexpected(&other, call.now)),
    }
}

/// # Errors
/// `BACKTEST_MARKET_CAP`, then `BACKTEST_WINDOW_CAP`.
fn within_plan(spec: &Spec, caps: BacktestCaps) -> Result<(), Refusal> {
    let capped = |code: Code, limit: u64, requested: u64| {
        let mut details = Vec::new();
        write::object(&mut details, |o| {
            o.integer("limit", limit);
            o.integer("requested", requested);
        });
        Err(Refusal::from(code).details(details))
    };
    let markets = spec.conditions.len() as u64;
    if markets > caps.markets {
        return capped(Code::BacktestMarketCap, caps.markets, markets);
    }
    let span = spec.end.since(spec.start);
    if span > caps.days * DAY {
        return capped(Code::BacktestWindowCap, caps.days, span.div_ceil(DAY));
    }
    Ok(())
}

/// Every market is in the archive, has the outcome, and is covered well enough by hours that are made.
///
/// # Errors
/// `ARCHIVE_NOT_FOUND`, `INVALID_REQUEST`, `ARCHIVE_UNAVAILABLE`, `UNUNIVERSE_EXCLUDED`.
async fn in_universe(call: &Call, spec: &Spec) -> Result<(), Refusal> {
    let archive = archive(call)?;
    let window = Hour::touched(spec.start..spec.end);
    let mut excluded: Vec<(&str, Coverage)> = Vec::new();
    for condition in &spec.conditions {
        let made = archive.made(condition, window.clone()).await?;
        let MadeMarket { market, coverage } = made.ok_or(Code::ArchiveNotFound)?;
        let token = spec.tokens.iter().find(|(of, _)| of == condition).map(|(_, token)| token.as_str());
        // A token decides alone: the label is that of the other markets.
        outcome(&market, token, token.is_none().then_some(&*spec.strategy.outcome))?;
        if !coverage.is_eligible() {
            excluded.push((condition, coverage));
        }
    }
    if excluded.is_empty() {
        return Ok(());
    }
    let mut details = Vec::new();
    write::object(&mut details, |o| {
        o.array("excluded", &excluded, |out, (condition, coverage)| {
            write::object(out, |o| {
                o.text("condition_id", condition);
                o.integer("hours_available", coverage.available());
                o.integer("hours_asked", coverage.asked());
                o.integer("hours_quarantined", coverage.count(engine::backtest::Verdict::Quarantined));
            });
        });
    });
    let first = excluded[0].1.missing_periods().next().map(|hour| HourText::from(hour.to_string()));
    let why = match first {
        Some(hour) => format!(
            "{} of {} markets are not covered well enough, first in {}.",
            excluded.len(),
            spec.conditions.len(),
            hour.0
        ),
        None => Code::UnuniverseExcluded.message().to_owned(),
    };
    Err(Refusal::new(Code::UnuniverseExcluded, why).details(details))
}

/// Whether the month has room; the shard checks it again.
///
/// # Errors
/// `METERING_UNAVAILABLE`, `BACKTEST_MONTHLY_CAP`, `SIMULATION_HOURS_EXCEEDED`.
async fn within_month(call: &Call, caps: BacktestCaps, charged: u64) -> Result<(), Refusal> {
    let month = call.now.month();
    let Ok(Answer::BacktestMeter(meter)) = call.ask(Command::Query(Query::BacktestMeter(month))).await else {
        return Err(Code::MeteringUnavailable.into());
    };
    let (limit, resets_at) = (caps.jobs_per_month, call.now.next_month());
    if u64::from(meter.jobs) >= limit {
        let reject = engine::reject::Reject::BacktestsSpent { limit, resets_at };
        return Err(crate::api::refuse::rejected(&reject, call.now));
    }
    let limit = caps.market_hours_per_month * 1_000;
    if meter.hours.saturating_add(charged) > limit {
        let reject = engine::reject::Reject::MarketHoursSpent { limit, used: meter.hours, resets_at };
        return Err(crate::api::refuse::rejected(&reject, call.now));
    }
    Ok(())
}

pub async fn list(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=LIST_MAX).unwrap_or(LIST_DEFAULT) as usize;
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let before = match query.get("cursor").filter(|text| !text.is_empty()) {
        None => None,
        Some(text) => Some(job_of_cursor(text).ok_or(Code::InvalidCursor)?),
    };
    match call.ask(Command::Query(Query::Backtests { before, limit })).await? {
        Answer::Backtests { jobs, has_more } => {
            let last = jobs.last().filter(|_| has_more).map(|job| URL_SAFE_NO_PAD.encode(job.id));
            let data: Result<Vec<_>, _> = jobs.iter().map(|job| summary(&call, job, false)).collect();
            Ok(Reply::json(&BacktestPage { data: data?, next_cursor: last }))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

fn job_of_cursor(text: &str) -> Option<[u8; 16]> {
    URL_SAFE_NO_PAD.decode(text.as_bytes()).ok()?.try_into().ok()
}

pub async fn get(call: Call) -> Outcome {
    let job = one(&call).await?;
    Ok(Reply::json(&summary(&call, &job, false)?))
}

pub async fn cancel(call: Call) -> Outcome {
    let job = one(&call).await?;
    if !job.is_open() {
        return Ok(Reply::json(&summary(&call, &job, false)?));
    }
    let done = progress(&call, &job).map_or(0, |progress| progress.done.min(1_000));
    let result = BacktestResult::Cancelled { left: 1_000 - done };
    match call.ask(Command::EndBacktest { job: job.id, result }).await? {
        Answer::Backtest { job, .. } => {
            if let Some(jobs) = call.reads().jobs.as_deref() {
                jobs.cancelled(call.caller().user, job.id);
            }
            Ok(Reply::json(&summary(&call, &job, false)?))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

pub async fn trades(call: Call) -> Outcome {
    let page = Page::read(&call)?;
    let job = one(&call).await?;
    if page.is_file {
        return file(&call, &job, JobRows::Trades).await;
    }
    let spec = spec_of(&job)?;
    let rows = match page.rows(&job) {
        None => Vec::new(),
        Some((from, limit)) => jobs(&call)?.trades(call.caller().user, &job, from, limit).await.map_err(store)?,
    };
    let next_cursor = page.next(rows.len());
    let data = rows.iter().take(page.limit).map(|row| BacktestTrade::new(row, &spec)).collect();
    Ok(Reply::json(&BacktestTradePage { data, next_cursor }))
}

pub async fn equity(call: Call) -> Outcome {
    let page = Page::read(&call)?;
    let job = one(&call).await?;
    if page.is_file {
        return file(&call, &job, JobRows::Equity).await;
    }
    let rows = match page.rows(&job) {
        None => Vec::new(),
        Some((from, limit)) => jobs(&call)?.points(call.caller().user, &job, from, limit).await.map_err(store)?,
    };
    let next_cursor = page.next(rows.len()).map(Into::into);
    let data = rows.iter().take(page.limit).map(BacktestPoint::new).collect();
    Ok(Reply::json(&BacktestPointPage { data, next_cursor }))
}

/// All rows of a completed back-test as a file; another one has none.
async fn file(call: &Call, job: &Backtest, rows: JobRows) -> Outcome {
    if !is_completed(job) {
        return Err(Refusal::new(Code::NotFound, "The back-test is not completed: it has no file."));
    }
    let body = jobs(call)?.file(call.caller().user, job, rows).await.map_err(store)?;
    Ok(Reply { content_type: PARQUET, ..Reply::json(body) })
}

pub async fn report(call: Call) -> Outcome {
    let job = one(&call).await?;
    if !is_completed(&job) {
        return Err(Refusal::new(Code::NotFound, "A back-test has a report when it is completed."));
    }
    let page = jobs(&call)?.report(call.caller().user, &job).await.map_err(store)?;
    let reply = Reply { content_type: HTML, ..Reply::json(page.into_bytes()) };
    // The page has this policy itself; a sandbox is of another origin, too.
    let policy = HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; sandbox");
    Ok(reply
        .with_header(header::CONTENT_SECURITY_POLICY, policy)
        .with_header(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")))
}

/// Whether there is a result.
fn is_completed(job: &Backtest) -> bool {
    job.ended.as_ref().is_some_and(|ended| ended.figures.is_some())
}

/// A page of rows of a result.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// `None`: after the last page.
    from: Option<usize>,
    limit: usize,
    /// The whole file is asked for.
    is_file: bool,
}

impl Page {
    /// # Errors
    /// `VALIDATION_FAILED`, `INVALID_CURSOR`.
    fn read(call: &Call) -> Result<Page, Refusal> {
        let query = call.query();
        let mut params = Params::new(&query);
        let limit = params.integer("limit", 1..=ROWS_MAX).unwrap_or(ROWS_DEFAULT) as usize;
        let is_file = params.choice("format", &[("json", false), ("parquet", true)]).unwrap_or(false);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        let from = match OffsetCursor::read(query.get("cursor").unwrap_or_default()) {
            Ok(OffsetCursor::At(from)) => Some(from),
            Ok(OffsetCursor::End) => None,
            Err(_) => return Err(Code::InvalidCursor.into()),
        };
        Ok(Page { from, limit, is_file })
    }

    /// The first row, and one more than the page has; `None`: there are no rows. Only a completed back-test has some.
    fn rows(&self, job: &Backtest) -> Option<(usize, usize)> {
        self.from.filter(|_| is_completed(job)).map(|from| (from, self.limit + 1))
    }

    /// The cursor of the next page, if there is one.
    fn next(&self, found: usize) -> Option<String> {
        let next = self.from?.saturating_add(self.limit);
        (found > self.limit).then(|| OffsetCursor::write(next))
    }
}

fn store(_: super::archive::Unreachable) -> Refusal {
    Code::JobStoreUnavailable.into()
}

/// The runner of back-tests.
///
/// # Errors
/// `JOB_STORE_UNAVAILABLE` if the server has none.
fn jobs(call: &Call) -> Result<&dyn Jobs, Refusal> {
    call.reads().jobs.as_deref().ok_or_else(|| Code::JobStoreUnavailable.into())
}

/// The back-test of the path.
///
/// # Errors
/// `NOT_FOUND`.
async fn one(call: &Call) -> Result<Backtest, Refusal> {
    let job = uuid(&call.variable(0)).ok_or(Code::NotFound)?;
    match call.ask(Command::Query(Query::Backtest(job))).await? {
        Answer::Backtest { job, .. } => Ok(*job),
        other => Err(unexpected(&other, call.now)),
    }
}

/// What a stored back-test was asked for. Its window is in the past at any time.
fn spec_of(job: &Backtest) -> Result<Spec, Refusal> {
    let value = read::json(job.spec.as_bytes()).map_err(|_| Code::InternalError)?;
    Spec::read(&value, Timestamp(u64::MAX)).map_err(|_| Code::InternalError.into())
}

fn progress(call: &Call, job: &Backtest) -> Option<JobProgress> {
    call.reads().jobs.as_deref()?.progress(call.caller().user, job.id)
}

fn summary(call: &Call, job: &Backtest, is_replay: bool) -> Result<BacktestSummary<'static>, Refusal> {
    Ok(BacktestSummary::new(job, &spec_of(job)?, progress(call, job), is_replay))
}
