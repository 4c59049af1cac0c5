//! Candles of a market (gateway/docs/market-data.md §7), from the server's own history; `v` is the volume filled on this
//! server.

use super::history::view::PriceCandle;
use super::history::{of_outcome, unknown_interval};
use super::orders::terms::outcome_labelled;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{List, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::scalar::Quantity;
use crate::http::schema::{Param, Schema, TEXT};
use engine::book::candles::{Bucket, Grid};
use engine::book::stretches::HistoryQuery;
use engine::id::Outcome as MarketOutcome;
use engine::time::{SECOND, Timestamp};
use std::ops::RangeInclusive;
use wire::fields::Params;
use wire::instant;
use wire::query::Query;

const LIMIT_MAX: usize = 1_000;
const LIMIT_DEFAULT: u64 = 500;
/// `max` is days over the whole history.
const INTERVALS: [(&str, Grid); 5] =
    [("1h", Grid::HOUR), ("6h", Grid::minutes(360)), ("1d", Grid::DAY), ("1w", Grid::WEEK), ("max", Grid::DAY)];

pub const ROUTES: &[Route] = &[Route::get("/v1/markets/{condition_id}/candles", "get_candles")
    .about("Candles of an outcome, oldest first.")
    .params(PARAMS)
    .gives::<List<Candle, 0, LIMIT_MAX>>(200)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::ValidationFailed, Code::InvalidInterval, Code::InvalidWindow, Code::MarketNotFound])
    .run(|call| Box::pin(candles(call)))];

const PARAMS: &[Param] = &[
    Param::query("interval", Schema::Word(&["1h", "6h", "1d", "1w", "max"]), "1h without it; `max` is days."),
    Param::query("outcome", TEXT, "The outcome's label; default: the first one."),
    Param::query("start_time", TEXT, "A time, a day, or unix seconds."),
    Param::query("end_time", TEXT, "A time, the end of a day, or unix seconds."),
    Param::query(
        "limit",
        Schema::Integer { min: 1, max: LIMIT_MAX as i64 },
        "At most this many of the newest; default: 500.",
    ),
];

record! {
    /// How a price went within a stretch, and what was filled here.
    struct Candle {
        #[serde(flatten)]
        prices: PriceCandle = PriceCandle::example();
        v: Quantity = Quantity::of("50"), "Shares filled on this server.";
    }
}

async fn candles(call: Call) -> Outcome {
    let query = call.query();
    let range = CandleRange::read(&query)?;
    let catalog = &call.reads().catalog;
    let market = catalog.by_condition(&call.variable(0)).ok_or(Code::MarketNotFound)?;
    let cell = catalog.market(market).ok_or(Code::MarketNotFound)?;
    let outcome = match query.get("outcome") {
        None => MarketOutcome::First,
        Some(label) => outcome_labelled(cell, label).ok_or(Code::MarketNotFound)?,
    };
    let instrument = cell.instrument(outcome);
    let secs = range.grid.start(*range.secs.start())..=*range.secs.end();
    let wanted = HistoryQuery { grid: range.grid, most: range.limit, coarser: &[] };
    let found = call.reads().history.find(market, secs, wanted).await;
    // An unreadable part of the history is a gap in the chart, not an error.
    let newest = found.map(|found| of_outcome(found.points, instrument)).unwrap_or_default();
    let candle = |bucket: &Bucket| Candle { prices: PriceCandle::new(bucket), v: bucket.candle.volume[0].into() };
    Ok(Reply::json(&List::<_, 0, LIMIT_MAX>(newest.iter().map(candle).collect())))
}

/// The candles to show. Of more than `limit` the newest are shown, even when only a start is given.
#[derive(Debug, PartialEq, Eq)]
struct CandleRange {
    grid: Grid,
    /// Unix seconds.
    secs: RangeInclusive<u64>,
    limit: usize,
}

impl CandleRange {
    /// # Errors
    /// `VALIDATION_FAILED`, then `INVALID_INTERVAL`, then `INVALID_WINDOW`.
    fn read(query: &Query<'_>) -> Result<CandleRange, Refusal> {
        let mut params = Params::new(query);
        let limit = params.integer("limit", 1..=LIMIT_MAX as u64).unwrap_or(LIMIT_DEFAULT);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        let grid = match query.get("interval") {
            None => Grid::HOUR,
            Some(name) => {
                let known = INTERVALS.iter().find(|(word, _)| name.eq_ignore_ascii_case(word));
                known.ok_or_else(|| unknown_interval(INTERVALS.iter().map(|(word, _)| *word)))?.1
            }
        };
        let time = |name: &str, read: fn(&str) -> Option<Timestamp>| match query.get(name) {
            None => Ok(None),
            Some(text) => {
                let wrong = || Refusal::new(Code::InvalidWindow, format!("{name} is not a time."));
                read(text).map(Some).ok_or_else(wrong)
            }
        };
        let start = time("start_time", instant::read)?.unwrap_or(Timestamp(0));
        let end = time("end_time", instant::read_end)?.unwrap_or(Timestamp(u64::MAX));
        if start >= end {
            return Err(Refusal::new(Code::InvalidWindow, "start_time is not before end_time."));
        }
        Ok(CandleRange { grid, secs: start.secs()..=end.0 / SECOND, limit: limit as usize })
    }
}

#[cfg(test)]
mod tests;
