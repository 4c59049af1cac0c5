//! How prices went: the venue's form of price history, and the archive of closed markets (market-data.md §10).
//!
//! Both are read from the server's own history ([`engine::book::stretches::PriceHistory`]). A point is a stretch of `fidelity` minutes in which
//! something was heard, named by its start; `p` is the price at its end. No point lies before the asked range: a stretch
//! that the range begins in is shown from there on, as finely as the history is kept (minutes, after seven days hours).

mod request;
mod shape;

pub use request::unknown_interval;

use crate::api::tokens;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Gate, Permission, Route};
use engine::book::candles::{Bucket, Grid};
use engine::book::stretches::{HistoryQuery, Stretches};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::terms::{MarketState, Resolution};
use request::HistoryRange;
use wire::decimal;
use wire::write::{Object, object, separate};

/// Most points of an answer.
const POINTS_MAX: usize = 5_000;
/// Minutes of a point that are tried, in this order, where there would be more.
const COARSER: &[u64] = &[1, 5, 10, 30, 60, 180, 360, 720, 1_440];
const POINT_BYTES: usize = 80;
/// Points that are written before others have a turn.
const POINTS_PER_TURN: usize = 1_000;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/prices-history", "get_prices_history")
        .at_root()
        .about("How the price of an outcome went.")
        .params(shape::PARAMS)
        .gives_shape(200, &shape::ANY_HISTORY, shape::EXAMPLE)
        .fails(&[Code::InvalidTokenId, Code::InvalidWindow, Code::InvalidInterval, Code::InvalidRequest])
        .run(|call| Box::pin(prices(call))),
    Route::get("/v1/prices-history/archive", "get_archived_prices_history")
        .about("How the price of a closed market's outcome went.")
        .params(shape::ARCHIVE_PARAMS)
        .gives_shape(200, &shape::ANY_ARCHIVE, shape::ARCHIVE_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .gate(Gate::ChartArchive)
        .fails(&[
            Code::InvalidTokenId,
            Code::InvalidWindow,
            Code::InvalidRequest,
            Code::ArchiveNotFound,
            Code::ArchiveUnavailable,
        ])
        .run(|call| Box::pin(archive(call))),
];

async fn prices(call: Call) -> Outcome {
    let query = call.query();
    let token = request::token(&query)?;
    let asked = HistoryRange::prices(&query, call.reads().books.venue_now(call.now))?;
    let mut points = Vec::new();
    if let Some((instrument, _)) = tokens::find(&call.reads().catalog, token) {
        let found = find(&call, instrument, &asked).await;
        // What cannot be read is a hole in a chart, no failure.
        points = found.map(|found| of_outcome(found.points, instrument)).unwrap_or_default();
    }
    if asked.ohlcv {
        return Ok(Reply::json(candles(&points).await));
    }
    let rows = rows(&points, |o, point| {
        o.integer("t", point.start);
        decimal::vol(o.name("p"), point.candle.close.cash().0.unsigned_abs());
    });
    let rows = rows.await;
    Ok(Reply::object(|o| o.name("history").extend_from_slice(&rows)))
}

async fn archive(call: Call) -> Outcome {
    let query = call.query();
    let token = request::token(&query)?;
    let asked = HistoryRange::archive(&query)?;
    let (instrument, cell) = tokens::find(&call.reads().catalog, token).ok_or(Code::ArchiveNotFound)?;
    if !matches!(cell.state(), MarketState::Closed | MarketState::Resolved) {
        return Err(Refusal::saying(Code::InvalidRequest, "The market is not closed."));
    }
    let found = find(&call, instrument, &asked).await;
    let found = found.filter(|found| !found.broken).ok_or(Code::ArchiveUnavailable)?;
    if found.points.is_empty() {
        // Nothing at that time, or nothing at all?
        let any = HistoryQuery { grid: Grid::DAY, most: 1, coarser: &[] };
        let known = call.reads().history.find(instrument.market(), 0..=u64::MAX, any).await;
        let known = known.filter(|known| !(known.broken && known.points.is_empty())).ok_or(Code::ArchiveUnavailable)?;
        if known.points.is_empty() {
            return Err(Code::ArchiveNotFound.into());
        }
    }
    let rows = candles(&of_outcome(found.points, instrument)).await;
    if asked.ohlcv {
        return Ok(Reply::json(rows));
    }
    let winner = match cell.resolution() {
        Some(Resolution::Winner(outcome)) => Some(cell.outcome(outcome)),
        Some(Resolution::Split) | None => None,
    };
    Ok(Reply::object(|o| {
        o.text("market", token);
        o.text("condition_id", &cell.listing.condition);
        o.text("outcome", cell.outcome(instrument.outcome()));
        o.text_or_null("resolved_outcome", winner);
        o.integer("fidelity", found.grid.secs() / 60);
        o.word("source", "archive");
        o.name("history").extend_from_slice(&rows);
    }))
}

/// Stretches of `fidelity` minutes; where those are too many, of the next coarser size that fits, else the newest.
async fn find(call: &Call, instrument: InstrumentId, asked: &HistoryRange) -> Option<Stretches> {
    let wanted = HistoryQuery { grid: Grid::minutes(asked.fidelity), most: POINTS_MAX, coarser: COARSER };
    let (start, end) = (*asked.secs.start(), *asked.secs.end());
    // What is kept by the hour begins up to an hour before.
    let from = wanted.grid.start(start).max(Grid::HOUR.start(start));
    let mut found = call.reads().history.find(instrument.market(), from..=end, wanted).await?;
    begin_at(&mut found, start);
    Some(found)
}

/// Leaves out the stretches that end before `start` (unix seconds); the one that it lies in begins there.
fn begin_at(found: &mut Stretches, start: u64) {
    let secs = found.grid.secs();
    found.points.retain(|point| start < point.start.saturating_add(secs));
    if let Some(first) = found.points.first_mut() {
        first.start = first.start.max(start);
    }
}

/// Buckets as an outcome saw them.
pub fn of_outcome(mut buckets: Vec<Bucket>, instrument: InstrumentId) -> Vec<Bucket> {
    if instrument.outcome() == MarketOutcome::Second {
        buckets.iter_mut().for_each(|bucket| bucket.candle = bucket.candle.complement());
    }
    buckets
}

async fn candles(points: &[Bucket]) -> Vec<u8> {
    rows(points, candle_fields).await
}

/// An array with an object for each point, written in pages.
async fn rows(points: &[Bucket], fields: impl Fn(&mut Object<'_>, &Bucket)) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + POINT_BYTES * points.len());
    out.push(b'[');
    for (page, points) in points.chunks(POINTS_PER_TURN).enumerate() {
        if page > 0 {
            tokio::task::yield_now().await;
        }
        for point in points {
            separate(&mut out);
            object(&mut out, |o| fields(o, point));
        }
    }
    out.push(b']');
    out
}

/// `t` and the four prices.
pub fn candle_fields(o: &mut Object<'_>, point: &Bucket) {
    let candle = &point.candle;
    o.integer("t", point.start);
    for (name, mid) in [("o", candle.open), ("h", candle.high), ("l", candle.low), ("c", candle.close)] {
        o.average(name, mid.cash());
    }
}

#[cfg(test)]
pub(crate) mod tests;
