//! Candles of a market (market-data.md §7), from the server's own history; `v` is what was filled on this server.

use super::history::{candle_fields, of_outcome, unknown_interval};
use super::orders::terms::outcome_labelled;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{INTEGER, PRICE, Param, QTY, Schema, Shape, TEXT, field};
use engine::book::candles::Grid;
use engine::book::stretches::HistoryQuery;
use engine::id::Outcome as MarketOutcome;
use engine::time::{SECOND, Timestamp};
use std::ops::RangeInclusive;
use wire::fields::Params;
use wire::instant;
use wire::query::Query;
use wire::write::{array, object};

const LIMIT_MAX: u64 = 1_000;
const LIMIT_DEFAULT: u64 = 500;
const CANDLE_BYTES: usize = 96;
/// `max` are days over all there is.
const INTERVALS: [(&str, Grid); 5] =
    [("1h", Grid::HOUR), ("6h", Grid::minutes(360)), ("1d", Grid::DAY), ("1w", Grid::WEEK), ("max", Grid::DAY)];

pub const ROUTES: &[Route] = &[Route::get("/v1/markets/{condition_id}/candles", "get_candles")
    .about("Candles of an outcome, oldest first.")
    .params(PARAMS)
    .gives_shape(200, &Schema::List { of: &Schema::Object(&CANDLE), min: 0, max: LIMIT_MAX as u32 }, EXAMPLE)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::ValidationFailed, Code::InvalidInterval, Code::InvalidWindow, Code::MarketNotFound])
    .run(|call| Box::pin(candles(call)))];

const PARAMS: &[Param] = &[
    Param::query("interval", Schema::Word(&["1h", "6h", "1d", "1w", "max"]), "1h without it; `max` is days."),
    Param::query("outcome", TEXT, "The outcome's label; the first one without it."),
    Param::query("start_time", TEXT, "A time, a day, or unix seconds."),
    Param::query("end_time", TEXT, "A time, the end of a day, or unix seconds."),
    Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "The newest so many; 500 without it."),
];
const CANDLE: Shape = Shape::new(
    "Candle",
    "How a price went within a stretch, and what was filled here.",
    &[
        field("t", INTEGER, "Start of the stretch, unix seconds."),
        field("o", PRICE, ""),
        field("h", PRICE, ""),
        field("l", PRICE, ""),
        field("c", PRICE, ""),
        field("v", QTY, "Shares filled on this server."),
    ],
);
const EXAMPLE: &str = r#"[{"t":1790931600,"o":"0.40","h":"0.43","l":"0.39","c":"0.415","v":"50"}]"#;

async fn candles(call: Call) -> Outcome {
    let query = call.query();
    let asked = CandleRange::read(&query)?;
    let catalog = &call.reads().catalog;
    let market = catalog.by_condition(&call.variable(0)).ok_or(Code::MarketNotFound)?;
    let cell = catalog.market(market).ok_or(Code::MarketNotFound)?;
    let outcome = match query.get("outcome") {
        None => MarketOutcome::First,
        Some(label) => outcome_labelled(cell, label).ok_or(Code::MarketNotFound)?,
    };
    let instrument = cell.instrument(outcome);
    let secs = asked.grid.start(*asked.secs.start())..=*asked.secs.end();
    let wanted = HistoryQuery { grid: asked.grid, most: asked.limit, coarser: &[] };
    let found = call.reads().history.find(market, secs, wanted).await;
    // What cannot be read is a hole in a chart, no failure.
    let newest = found.map(|found| of_outcome(found.points, instrument)).unwrap_or_default();
    let mut out = Vec::with_capacity(16 + CANDLE_BYTES * newest.len());
    array(&mut out, &newest, |out, bucket| {
        object(out, |o| {
            candle_fields(o, bucket);
            o.qty("v", bucket.candle.volume[0]);
        });
    });
    Ok(Reply::json(out))
}

/// Candles as asked for. Of more than `limit` the newest are shown, whichever ends are given.
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
        let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
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
                let wrong = || Refusal::saying(Code::InvalidWindow, format!("{name} is no time."));
                read(text).map(Some).ok_or_else(wrong)
            }
        };
        let start = time("start_time", instant::read)?.unwrap_or(Timestamp(0));
        let end = time("end_time", instant::read_end)?.unwrap_or(Timestamp(u64::MAX));
        if start >= end {
            return Err(Refusal::saying(Code::InvalidWindow, "start_time is not before end_time."));
        }
        Ok(CandleRange { grid, secs: start.secs()..=end.0 / SECOND, limit: limit as usize })
    }
}

#[cfg(test)]
mod tests;
