//! How prices went: the venue's form of price history, and the archive of closed markets (market-data.md §10).
//!
//! Both are read from the server's own history ([`crate::history`]). A point is a stretch of `fidelity` minutes in which
//! something was heard, named by its start; `p` is the price at its end. A stretch that the asked range begins in is
//! shown whole.

mod asked;
mod shape;

pub use asked::unknown_interval;

use crate::api::tokens;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Gate, Permission, Route};
use crate::wire::decimal;
use crate::wire::write::{Object, array, object};
use asked::Asked;
use engine::book::candles::{Bucket, Grid, fold};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::terms::{MarketState, Resolution};

/// Most points of an answer.
const POINTS_MAX: usize = 5_000;
/// Minutes of a point that are tried, in this order, where there would be more.
const COARSER: [u64; 9] = [1, 5, 10, 30, 60, 180, 360, 720, 1_440];
const POINT_BYTES: usize = 80;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/prices-history", "get_prices_history")
        .at_root()
        .about("How the price of an outcome went.")
        .params(shape::PARAMS)
        .gives(200, &shape::ANY_HISTORY, shape::EXAMPLE)
        .fails(&[Code::InvalidTokenId, Code::InvalidWindow, Code::InvalidInterval, Code::InvalidRequest])
        .run(|call| Box::pin(prices(call))),
    Route::get("/v1/prices-history/archive", "get_archived_prices_history")
        .about("How the price of a closed market's outcome went.")
        .params(shape::ARCHIVE_PARAMS)
        .gives(200, &shape::ANY_ARCHIVE, shape::ARCHIVE_EXAMPLE)
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
    let token = asked::token(&query)?;
    let asked = Asked::prices(&query, call.app().books.venue_now(call.now))?;
    let mut points = Vec::new();
    if let Some((instrument, _)) = tokens::find(&call.app().catalog, token) {
        let grid = Grid::minutes(asked.fidelity);
        let secs = grid.start(*asked.secs.start())..=*asked.secs.end();
        let found = call.app().history.find(instrument.market(), secs, grid.secs()).await;
        // What cannot be read is a hole in a chart, no failure.
        points = of_outcome(found.unwrap_or_default().buckets, instrument);
    }
    let (points, _) = thinned(points, asked.fidelity);
    let mut out = Vec::with_capacity(64 + POINT_BYTES * points.len());
    if asked.ohlcv {
        candles(&mut out, &points);
    } else {
        object(&mut out, |o| {
            o.array("history", &points, |out, point| {
                object(out, |o| {
                    o.integer("t", point.start);
                    decimal::vol(o.name("p"), point.candle.close.cash().0.unsigned_abs());
                });
            });
        });
    }
    Ok(Reply::json(out))
}

async fn archive(call: Call) -> Outcome {
    let query = call.query();
    let token = asked::token(&query)?;
    let asked = Asked::archive(&query)?;
    let (instrument, cell) = tokens::find(&call.app().catalog, token).ok_or(Code::ArchiveNotFound)?;
    if !matches!(cell.state(), MarketState::Closed | MarketState::Resolved) {
        return Err(Refusal::saying(Code::InvalidRequest, "The market is not closed."));
    }
    let grid = Grid::minutes(asked.fidelity);
    let found = call.app().history.find(instrument.market(), 0..=u64::MAX, grid.secs()).await;
    let found = found.filter(|found| !found.broken).ok_or(Code::ArchiveUnavailable)?;
    if found.buckets.is_empty() {
        return Err(Code::ArchiveNotFound.into());
    }
    let secs = grid.start(*asked.secs.start())..=*asked.secs.end();
    let buckets = found.buckets.into_iter().filter(|bucket| secs.contains(&bucket.start)).collect();
    let (points, fidelity) = thinned(of_outcome(buckets, instrument), asked.fidelity);
    let mut out = Vec::with_capacity(512 + POINT_BYTES * points.len());
    if asked.ohlcv {
        candles(&mut out, &points);
        return Ok(Reply::json(out));
    }
    let winner = match cell.resolution() {
        Some(Resolution::Winner(outcome)) => Some(cell.outcome(outcome)),
        Some(Resolution::Split) | None => None,
    };
    object(&mut out, |o| {
        o.text("market", token);
        o.text("condition_id", &cell.listing.condition);
        o.text("outcome", cell.outcome(instrument.outcome()));
        o.text_or_null("resolved_outcome", winner);
        o.integer("fidelity", fidelity);
        o.word("source", "archive");
        candles(o.name("history"), &points);
    });
    Ok(Reply::json(out))
}

/// Buckets as an outcome saw them.
pub fn of_outcome(mut buckets: Vec<Bucket>, instrument: InstrumentId) -> Vec<Bucket> {
    if instrument.outcome() == MarketOutcome::Second {
        buckets.iter_mut().for_each(|bucket| bucket.candle = bucket.candle.complement());
    }
    buckets
}

/// Stretches of `fidelity` minutes; where those are too many, of the next coarser size that fits, else the newest. Says
/// which size it is.
fn thinned(buckets: Vec<Bucket>, fidelity: u64) -> (Vec<Bucket>, u64) {
    let sizes = std::iter::once(fidelity).chain(COARSER.into_iter().filter(|size| *size > fidelity));
    let mut points = (Vec::new(), fidelity);
    for size in sizes {
        points = (fold(buckets.iter().copied(), Grid::minutes(size)), size);
        if points.0.len() <= POINTS_MAX {
            return points;
        }
    }
    points.0.drain(..points.0.len() - POINTS_MAX);
    points
}

fn candles(out: &mut Vec<u8>, points: &[Bucket]) {
    array(out, points, |out, point| object(out, |o| candle_fields(o, point)));
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
