//! Price history in the venue's form, and the archive of closed markets (gateway/docs/market-data.md §10).
//!
//! Both are read from the server's own history ([`engine::book::stretches::PriceHistory`]). A point is a stretch of
//! `fidelity` minutes with at least one price, named by its start; `p` is the price at its end. No point is before the
//! requested range: a stretch in which the range begins is cut there, to the resolution of the history (minutes, after
//! seven days hours).

mod request;
pub mod view;

pub use request::unknown_interval;

use crate::api::tokens;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::List;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Gate, Permission, Route};
use crate::http::schema::{Param, Schema, TEXT, TOKEN_ID};
use crate::http::turns::LongList;
use engine::book::candles::{Bucket, Grid};
use engine::book::stretches::{HistoryQuery, Stretches};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::terms::{MarketState, Resolution};
use request::HistoryRange;
use view::{AnyArchive, AnyHistory, PriceCandle, PricePoint, PricesArchive, PricesHistory};

/// Most points of an answer.
const POINTS_MAX: usize = 5_000;
/// Minutes of a point to try, in this order, when the answer would have more points.
const COARSER: &[u64] = &[1, 5, 10, 30, 60, 180, 360, 720, 1_440];
/// Points written between two yields to other tasks of the thread.
const POINTS_PER_TURN: usize = 1_000;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/prices-history", "get_prices_history")
        .at_root()
        .about("The price history of an outcome.")
        .params(PRICES_PARAMS)
        .gives::<AnyHistory>(200)
        .fails(&[Code::InvalidTokenId, Code::InvalidWindow, Code::InvalidInterval, Code::InvalidRequest])
        .run(|call| Box::pin(prices(call))),
    Route::get("/v1/prices-history/archive", "get_archived_prices_history")
        .about("The price history of a closed market's outcome.")
        .params(ARCHIVE_PARAMS)
        .gives::<AnyArchive>(200)
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

const SECS: Schema = Schema::Integer { min: 0, max: i64::MAX };
const MARKET: Param = Param::query("market", TOKEN_ID, "The outcome token; or `token_id`.");
const TOKEN: Param = Param::query("token_id", TOKEN_ID, "The outcome token, where `market` is not given.");
const START: Param = Param::query("startTs", SECS, "Unix seconds.");
const END: Param = Param::query("endTs", SECS, "Unix seconds; default: now.");
const FORMAT: Param = Param::query("format", TEXT, "`ohlcv` for candles; anything else is the usual form.");

const PRICES_PARAMS: &[Param] = &[
    MARKET,
    TOKEN,
    START,
    END,
    Param::query(
        "interval",
        Schema::Word(&["1h", "6h", "1d", "1w", "1m", "max", "all"]),
        "Without startTs: the length of the range before its end; one hour without it. `1m` is a month.",
    ),
    Param::query(
        "fidelity",
        Schema::Integer { min: 1, max: i64::MAX },
        "Minutes of a point; 1 without it, more where there would be more than 5000 points.",
    ),
    FORMAT,
];
const ARCHIVE_PARAMS: &[Param] = &[
    MARKET,
    TOKEN,
    START,
    END,
    Param::query("fidelity", Schema::Integer { min: 1, max: 1_440 }, "Minutes of a point; default: 60."),
    FORMAT,
];

async fn prices(call: Call) -> Outcome {
    let query = call.query();
    let token = request::token(&query)?;
    let range = HistoryRange::prices(&query, call.reads().books.venue_now(call.now))?;
    let mut points = Vec::new();
    if let Some((instrument, _)) = tokens::find(&call.reads().catalog, token) {
        let found = find(&call, instrument, &range).await;
        // An unreadable part of the history is a gap in the chart, not an error.
        points = found.map(|found| of_outcome(found.points, instrument)).unwrap_or_default();
    }
    if range.ohlcv {
        return Ok(candles(&points).await);
    }
    let list = LongList::in_page(&PricesHistory { history: List(Vec::new()) }, "history", POINTS_PER_TURN);
    Ok(list.with_rows(points.iter().map(PricePoint::new)).await)
}

async fn archive(call: Call) -> Outcome {
    let query = call.query();
    let token = request::token(&query)?;
    let range = HistoryRange::archive(&query)?;
    let (instrument, cell) = tokens::find(&call.reads().catalog, token).ok_or(Code::ArchiveNotFound)?;
    if !matches!(cell.state(), MarketState::Closed | MarketState::Resolved) {
        return Err(Refusal::new(Code::InvalidRequest, "The market is not closed."));
    }
    let found = find(&call, instrument, &range).await;
    let found = found.filter(|found| !found.broken).ok_or(Code::ArchiveUnavailable)?;
    if found.points.is_empty() {
        // Whether the history is empty in this range only, or altogether.
        let any = HistoryQuery { grid: Grid::DAY, most: 1, coarser: &[] };
        let known = call.reads().history.find(instrument.market(), 0..=u64::MAX, any).await;
        let known = known.filter(|known| !(known.broken && known.points.is_empty())).ok_or(Code::ArchiveUnavailable)?;
        if known.points.is_empty() {
            return Err(Code::ArchiveNotFound.into());
        }
    }
    let points = of_outcome(found.points, instrument);
    if range.ohlcv {
        return Ok(candles(&points).await);
    }
    let resolved_outcome = match cell.resolution() {
        Some(Resolution::Winner(outcome)) => Some(cell.outcome(outcome)),
        Some(Resolution::Split) | None => None,
    };
    let page = PricesArchive {
        market: token.into(),
        condition_id: cell.listing.condition.as_str().into(),
        outcome: cell.outcome(instrument.outcome()),
        resolved_outcome,
        fidelity: found.grid.secs() / 60,
        source: "archive".into(),
        history: List(Vec::new()),
    };
    let list = LongList::in_page(&page, "history", POINTS_PER_TURN);
    Ok(list.with_rows(points.iter().map(PriceCandle::new)).await)
}

/// Stretches of `fidelity` minutes; where those are too many, of the next coarser size that fits, else the newest ones.
async fn find(call: &Call, instrument: InstrumentId, range: &HistoryRange) -> Option<Stretches> {
    let wanted = HistoryQuery { grid: Grid::minutes(range.fidelity), most: POINTS_MAX, coarser: COARSER };
    let (start, end) = (*range.secs.start(), *range.secs.end());
    // A stretch that is stored by the hour begins up to an hour earlier.
    let from = wanted.grid.start(start).max(Grid::HOUR.start(start));
    let mut found = call.reads().history.find(instrument.market(), from..=end, wanted).await?;
    begin_at(&mut found, start);
    Some(found)
}

/// Removes the stretches that end before `start` (unix seconds), and cuts the one that contains it.
fn begin_at(found: &mut Stretches, start: u64) {
    let secs = found.grid.secs();
    found.points.retain(|point| start < point.start.saturating_add(secs));
    if let Some(first) = found.points.first_mut() {
        first.start = first.start.max(start);
    }
}

/// The buckets of an outcome: as stored for the first one, their complements for the second one.
pub fn of_outcome(mut buckets: Vec<Bucket>, instrument: InstrumentId) -> Vec<Bucket> {
    if instrument.outcome() == MarketOutcome::Second {
        buckets.iter_mut().for_each(|bucket| bucket.candle = bucket.candle.complement());
    }
    buckets
}

async fn candles(points: &[Bucket]) -> Reply {
    LongList::alone(POINTS_PER_TURN).with_rows(points.iter().map(PriceCandle::new)).await
}

#[cfg(test)]
pub(crate) mod tests;
