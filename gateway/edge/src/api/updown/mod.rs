//! Up-or-down markets: the list of the near-term window, and the count of each interval
//! (gateway/docs/market-data.md §5).
//!
//! The clock of the market data, in a replay that of the recording, decides which markets the window has.

mod filter;
pub mod view;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::ByName;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::scalar;
use crate::http::schema::{Param, Schema};
use crate::http::turns::LongList;
use engine::market::terms::{Asset, Interval};
use filter::{ListFilter, in_window};
use view::{AssetName, IntervalName, UpDownCount, UpDownIntervals, UpDownList, UpDownRow, UpDownSpot};

/// Rows written between two yields to other tasks of the thread.
const WRITTEN_PER_TURN: usize = 200;

const ASSET_PARAM: Param = Param::query("asset", Schema::of::<AssetName>(), "In any case; default: all.");

pub const ROUTES: &[Route] = &[
    Route::get("/v1/markets/updown", "list_updown_markets")
        .about("Up-or-down markets of the near-term window, soonest-resolving first.")
        .params(&[
            ASSET_PARAM,
            Param::query(
                "interval",
                Schema::of::<IntervalName>(),
                "In any case; all without it. 5M and 15M need the setting `flags.high_freq_updown_enabled`.",
            ),
            Param::query(
                "limit",
                Schema::Integer { min: 1, max: 500 },
                "Rows, from the first one; default: all of the window.",
            ),
        ])
        .gives::<UpDownList>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::ValidationFailed, Code::MarketNotFound])
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/markets/updown/intervals", "list_updown_intervals")
        .about("How many markets of each interval the near-term window has.")
        .params(&[ASSET_PARAM])
        .gives::<UpDownIntervals>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::MarketNotFound])
        .answer(intervals),
];

/// Markets of the window by asset and by interval, whether the list shows them or not.
#[derive(Default)]
struct Counts {
    assets: [u64; Asset::ALL.len()],
    intervals: [u64; Interval::ALL.len()],
}

impl Counts {
    /// Assets with their counts, without those that have none.
    fn assets(&self) -> Vec<(AssetName, u64)> {
        let counts = Asset::ALL.into_iter().map(|asset| (asset.name().into(), self.assets[asset as usize]));
        counts.filter(|(_, count)| *count > 0).collect()
    }

    /// Intervals with their counts, without those that have none.
    fn intervals(&self) -> Vec<(IntervalName, u64)> {
        let counts =
            Interval::ALL.into_iter().map(|interval| (interval.name().into(), self.intervals[interval as usize]));
        counts.filter(|(_, count)| *count > 0).collect()
    }
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query)?;
    let (lists, reads) = (call.reads().catalog.lists(), call.reads());
    let venue_now = reads.books.venue_now(call.now);
    let high_frequency = call.front().settings.flags.high_freq_updown_enabled;
    let (mut counts, mut total, mut rows) = (Counts::default(), 0, Vec::new());
    for (cell, window) in in_window(&lists.updown, &reads.catalog, venue_now, high_frequency) {
        counts.assets[window.asset as usize] += 1;
        counts.intervals[window.interval as usize] += 1;
        if filter.shows(&window) {
            total += 1;
            if rows.len() < filter.limit {
                rows.push((cell, window));
            }
        }
    }
    let (intervals, assets) = (counts.intervals(), counts.assets());
    let spot = |asset: Asset| {
        let price = reads.spot.price(asset, None, call.now)?;
        Some((asset.name().into(), UpDownSpot::new(asset, price)))
    };
    let page = UpDownList {
        markets: Vec::new(),
        total,
        available_intervals: intervals.iter().map(|(interval, _)| *interval).collect(),
        available_assets: assets.iter().map(|(asset, _)| *asset).collect(),
        interval_counts: ByName(intervals),
        asset_counts: ByName(assets),
        // Empty where the venue has no source of spot prices.
        crypto_prices: ByName(reads.spot.assets().into_iter().filter_map(spot).collect()),
        timestamp: scalar::Timestamp(call.now),
        cache_hit: true,
    };
    let rows = rows.into_iter().map(|row| UpDownRow::new(row, reads, call.now, venue_now));
    Ok(LongList::in_page(&page, "markets", WRITTEN_PER_TURN).with_rows(rows).await)
}

fn intervals(call: &Call) -> Outcome {
    let query = call.query();
    let asset = filter::asset(&query)?;
    let (lists, reads) = (call.reads().catalog.lists(), call.reads());
    let mut counts = Counts::default();
    let high_frequency = call.front().settings.flags.high_freq_updown_enabled;
    for (_, window) in in_window(&lists.updown, &reads.catalog, reads.books.venue_now(call.now), high_frequency) {
        if asset.is_none_or(|asset| asset == window.asset) {
            counts.intervals[window.interval as usize] += 1;
        }
    }
    let intervals = counts.intervals().into_iter().map(|(interval, count)| UpDownCount { interval, count });
    Ok(Reply::json(&UpDownIntervals { asset: asset.map(|asset| asset.name().into()), intervals: intervals.collect() }))
}

#[cfg(test)]
mod tests;
