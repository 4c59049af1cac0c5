//! Which up-or-down markets the list shows (gateway/docs/market-data.md §5).

use crate::http::code::Code;
use crate::http::reply::Refusal;
use engine::id::MarketId;
use engine::market::catalog::{Catalog, MarketCell};
use engine::market::terms::{Asset, Interval, UpDown};
use engine::time::{DAY, HOUR, Timestamp};
use wire::fields::Params;
use wire::query::Query;

const LIMIT_MAX: u64 = 500;
/// The list shows windows that ended less than this ago.
const ENDED_WITHIN: u64 = HOUR;
/// The list shows windows that start within this; those of an hour and longer within the second one.
const STARTS_WITHIN: u64 = 2 * HOUR;
const LONG_STARTS_WITHIN: u64 = 26 * HOUR;
/// The longest window: a daily one has 25 hours when the clocks go back.
const WINDOW_MAX: u64 = DAY + HOUR;

/// The parameters of the list.
#[derive(Debug, PartialEq, Eq)]
pub struct ListFilter {
    asset: Option<Asset>,
    interval: Option<Interval>,
    /// `usize::MAX`: all of the window.
    pub limit: usize,
}

impl ListFilter {
    /// Reads the query.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`; `MARKET_NOT_FOUND` for an unknown asset or interval.
    pub fn read(query: &Query<'_>) -> Result<ListFilter, Refusal> {
        let mut params = Params::new(query);
        let limit = params.integer("limit", 1..=LIMIT_MAX);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        let interval = match query.get("interval") {
            None => None,
            Some(name) => {
                let known = Interval::ALL.into_iter().find(|interval| interval.name().eq_ignore_ascii_case(name));
                Some(known.ok_or_else(|| Refusal::new(Code::MarketNotFound, "No such interval."))?)
            }
        };
        let limit = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(ListFilter { asset: asset(query)?, interval, limit })
    }

    pub fn shows(&self, window: &UpDown) -> bool {
        self.asset.is_none_or(|asset| asset == window.asset)
            && self.interval.is_none_or(|interval| interval == window.interval)
    }
}

/// The asset that a query names.
///
/// # Errors
/// `MARKET_NOT_FOUND` for an unknown one.
pub fn asset(query: &Query<'_>) -> Result<Option<Asset>, Refusal> {
    let Some(name) = query.get("asset") else { return Ok(None) };
    let known = Asset::ALL.into_iter().find(|asset| asset.name().eq_ignore_ascii_case(name));
    known.map(Some).ok_or_else(|| Refusal::new(Code::MarketNotFound, "No such asset."))
}

/// The markets of the near-term window, soonest-resolving first: open, ended a short while ago, or starting soon.
/// `sorted` is by end of the window, so that only a part of it is examined. Short intervals are left out unless
/// `high_frequency` is on.
pub fn in_window<'a>(
    sorted: &[MarketId],
    catalog: &'a Catalog,
    venue_now: Timestamp,
    high_frequency: bool,
) -> impl Iterator<Item = (&'a MarketCell, UpDown)> {
    let of = |market: &MarketId| {
        let cell = catalog.market(*market)?;
        Some((cell, cell.listing.updown?))
    };
    let ended = |market: &MarketId| of(market).is_none_or(|(_, window)| venue_now.since(window.end) >= ENDED_WITHIN);
    let from = sorted.partition_point(ended);
    let last_end = venue_now.plus(LONG_STARTS_WITHIN + WINDOW_MAX);
    sorted[from..].iter().filter_map(of).take_while(move |(_, window)| window.end <= last_end).filter(
        move |(_, window)| {
            let short = matches!(window.interval, Interval::FiveMinutes | Interval::FifteenMinutes);
            let within = if short { STARTS_WITHIN } else { LONG_STARTS_WITHIN };
            (high_frequency || !short) && window.start <= venue_now.plus(within)
        },
    )
}
