//! Up-or-down markets: the list of the near-term window, and how many there are of each interval (market-data.md §5).
//!
//! The window is judged by the clock of the market data, which in a replay is the recording's.

mod filter;
mod shape;
mod view;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::Schema;
use engine::market::catalog::MarketCell;
use engine::market::terms::{Asset, Interval};
use filter::{ListFilter, in_window};
use wire::write::{array, object, separate};

/// Rows that are written before others get their turn on the thread.
const WRITTEN_PER_TURN: usize = 200;
const ROW_BYTES: usize = 1_536;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/markets/updown", "list_updown_markets")
        .about("Up-or-down markets of the near-term window, soonest-resolving first.")
        .params(shape::PARAMS)
        .gives_shape(200, &Schema::Object(&shape::LIST), shape::LIST_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::ValidationFailed, Code::MarketNotFound])
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/markets/updown/intervals", "list_updown_intervals")
        .about("How many markets of each interval the near-term window has.")
        .params(&[shape::ASKED_ASSET])
        .gives_shape(200, &Schema::Object(&shape::INTERVALS), shape::INTERVALS_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .fails(&[Code::MarketNotFound])
        .run(|call| Box::pin(intervals(call))),
];

/// How many markets of each kind are in the window, whatever was asked for.
#[derive(Default)]
struct Counts {
    assets: [u64; Asset::ALL.len()],
    intervals: [u64; Interval::ALL.len()],
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query)?;
    let (lists, catalog) = (call.reads().catalog.lists(), &call.reads().catalog);
    let venue_now = call.reads().books.venue_now(call.now);
    let high_frequency = call.front().settings.flags.high_freq_updown_enabled;
    let (mut counts, mut total, mut rows) = (Counts::default(), 0u64, Vec::<&MarketCell>::new());
    for (cell, window) in in_window(&lists.updown, catalog, venue_now, high_frequency) {
        counts.assets[window.asset as usize] += 1;
        counts.intervals[window.interval as usize] += 1;
        if asked.shows(&window) {
            total += 1;
            if rows.len() < asked.limit {
                rows.push(cell);
            }
        }
    }
    let mut out = Vec::with_capacity(512 + ROW_BYTES * rows.len());
    out.extend_from_slice(b"{\"markets\":[");
    for (written, cell) in rows.into_iter().enumerate() {
        if written % WRITTEN_PER_TURN == WRITTEN_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        separate(&mut out);
        view::row(&mut out, cell, call.reads(), call.now, venue_now);
    }
    out.extend_from_slice(b"],");
    let mut tail = Vec::with_capacity(512);
    let assets = || Asset::ALL.into_iter().map(|asset| (asset.name(), counts.assets[asset as usize]));
    let intervals = || Interval::ALL.into_iter().map(|interval| (interval.name(), counts.intervals[interval as usize]));
    object(&mut tail, |o| {
        o.integer("total", total);
        o.object("interval_counts", |o| intervals().filter(|(_, count)| *count > 0).for_each(|(n, c)| o.integer(n, c)));
        o.object("asset_counts", |o| assets().filter(|(_, count)| *count > 0).for_each(|(n, c)| o.integer(n, c)));
        o.array("available_intervals", intervals().filter(|(_, count)| *count > 0), |out, (name, _)| quoted(out, name));
        o.array("available_assets", assets().filter(|(_, count)| *count > 0), |out, (name, _)| quoted(out, name));
        // Empty where the venue has no source of spot prices.
        let spot = &call.reads().spot;
        o.object("crypto_prices", |o| {
            for asset in spot.assets() {
                if let Some(price) = spot.price(asset, None, call.now) {
                    o.object(asset.name(), |o| view::spot(o, asset, price));
                }
            }
        });
        o.ts("timestamp", call.now);
        o.boolean("cache_hit", true);
    });
    out.extend_from_slice(&tail[1..]);
    Ok(Reply::json(out))
}

async fn intervals(call: Call) -> Outcome {
    let query = call.query();
    let asset = filter::asset(&query)?;
    let (lists, app) = (call.reads().catalog.lists(), call.app());
    let mut counts = Counts::default();
    let high_frequency = app.front.settings.flags.high_freq_updown_enabled;
    for (_, window) in in_window(&lists.updown, &app.reads.catalog, app.reads.books.venue_now(call.now), high_frequency)
    {
        if asset.is_none_or(|asset| asset == window.asset) {
            counts.intervals[window.interval as usize] += 1;
        }
    }
    let found = Interval::ALL.into_iter().filter(|interval| counts.intervals[*interval as usize] > 0);
    Ok(Reply::object(|o| {
        o.word_or_null("asset", asset.map(Asset::name));
        let out = o.name("intervals");
        array(out, found, |out, interval| {
            object(out, |o| {
                o.word("interval", interval.name());
                o.integer("count", counts.intervals[interval as usize]);
            });
        });
    }))
}

fn quoted(out: &mut Vec<u8>, word: &str) {
    wire::write::string(out, word);
}

#[cfg(test)]
mod tests;
