//! Events: groups of markets, most traded first (market-data.md §4).
//!
//! An event shows the markets of it that are not closed; one without any is not listed. Up-or-down markets have a list
//! of their own and are in no event here. Everything is cut from the sorted lists of the catalogue; until there is a
//! first one the answer is 503.

mod filter;
mod shape;
mod view;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::Schema;
use engine::id::MarketId;
use engine::market::catalog::EventRow;
use filter::ListFilter;
use wire::decimal;
use wire::write::{boolean, object};

/// Markets that are looked at before others get their turn on the thread.
const LOOKED_AT_PER_TURN: usize = 1_000;
/// Markets that are written before others get their turn on the thread.
const WRITTEN_PER_TURN: usize = 200;
/// The lists are there within this time of the first listing.
const WARM_AFTER_SECS: u32 = 5;
const WARMING: &str = "The market list is still being loaded.";

pub const ROUTES: &[Route] = &[Route::get("/v1/events", "list_events")
    .about("Groups of markets, most traded first.")
    .params(shape::PARAMS)
    .gives_shape(200, &Schema::Object(&shape::PAGE), shape::EXAMPLE)
    .gives_shape(503, &Schema::Object(&shape::WARMING), shape::WARMING_EXAMPLE)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::ValidationFailed, Code::InvalidSource, Code::Http503])
    .run(|call| Box::pin(list(call)))];

/// An event of the page: its row of the list, and those of its markets that are shown.
struct PageEvent<'a> {
    row: &'a EventRow,
    markets: Vec<MarketId>,
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query)?;
    let lists = call.reads().catalog.lists();
    if lists.generation == 0 {
        return Err(warming(&asked));
    }
    let (mut page, mut total, mut sports_left_out, mut looked_at) = (Vec::new(), 0, false, 0);
    for row in &lists.events {
        looked_at += row.markets.len();
        if looked_at > LOOKED_AT_PER_TURN {
            looked_at = 0;
            tokio::task::yield_now().await;
        }
        let catalog = &call.reads().catalog;
        let Some(markets) = asked.shows(row, catalog, call.now) else { continue };
        if row.sports && !asked.include_sports {
            sports_left_out = true;
            continue;
        }
        if total >= asked.offset && page.len() < asked.limit {
            page.push(PageEvent { row, markets });
        }
        total += 1;
    }
    let mut out = Vec::with_capacity(1 << 16);
    out.extend_from_slice(b"{\"events\":[");
    let mut written = 0;
    for event in &page {
        written += event.markets.len();
        if written > WRITTEN_PER_TURN {
            written = 0;
            tokio::task::yield_now().await;
        }
        wire::write::separate(&mut out);
        view::event(&mut out, event, call.reads());
    }
    out.extend_from_slice(b"],\"total\":");
    decimal::integer(&mut out, total as u64);
    envelope_tail(&mut out, &asked, "memory", (!asked.include_sports).then_some(sports_left_out));
    Ok(Reply::json(out))
}

fn envelope_tail(out: &mut Vec<u8>, asked: &ListFilter<'_>, cache_source: &'static str, has_sports: Option<bool>) {
    let mut fields = Vec::new();
    object(&mut fields, |o| {
        o.integer("limit", asked.limit as u64);
        o.integer("offset", asked.offset as u64);
        o.word("cache_source", cache_source);
        o.or_null("has_sports", has_sports, |o, name, yes| boolean(o.name(name), yes));
    });
    out.push(b',');
    out.extend_from_slice(&fields[1..]);
}

/// Nothing was listed yet: the error envelope and an empty page in one body.
fn warming(asked: &ListFilter<'_>) -> Refusal {
    Refusal::saying(Code::Http503, WARMING)
        .retry_after(WARM_AFTER_SECS)
        .field("events", |out| out.extend_from_slice(b"[]"))
        .field("total", |out| out.push(b'0'))
        .field("limit", |out| decimal::integer(out, asked.limit as u64))
        .field("offset", |out| decimal::integer(out, asked.offset as u64))
        .field("cache_source", |out| out.extend_from_slice(b"\"warming\""))
        .field("has_sports", |out| out.extend_from_slice(b"null"))
}

#[cfg(test)]
mod tests;
