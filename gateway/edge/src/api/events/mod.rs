//! Events: groups of markets, most traded first (gateway/docs/market-data.md §4).
//!
//! An event shows those of its markets that are not closed; an event without any is not listed. Up-or-down markets have
//! a list of their own and are in no event here. A page is a part of the sorted lists of the catalogue; before the first
//! of those exists the answer is 503.

mod filter;
mod view;

use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT};
use crate::http::turns::{LongList, Turns};
use engine::id::MarketId;
use engine::market::catalog::EventRow;
use filter::ListFilter;
use view::{Event, EventPage, EventsWarming};
use wire::decimal;

/// Markets examined between two yields to other tasks of the thread.
const EXAMINED_PER_TURN: usize = 1_000;
/// Markets written between two yields to other tasks of the thread.
const WRITTEN_PER_TURN: usize = 200;
/// The lists exist within this time of the first listing.
const WARM_AFTER_SECS: u32 = 5;
const WARMING: &str = "The market list is still being loaded.";

pub const ROUTES: &[Route] = &[Route::get("/v1/events", "list_events")
    .about("Groups of markets, most traded first.")
    .params(PARAMS)
    .gives::<EventPage>(200)
    .gives::<EventsWarming>(503)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::ValidationFailed, Code::InvalidSource, Code::Http503])
    .run(|call| Box::pin(list(call)))];

const PARAMS: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Events of a page; default: 50."),
    Param::query("offset", OFFSET, "Events before the page."),
    Param::query("hot_only", BOOLEAN, "Only events with more than 5000 USD traded."),
    Param::query("markets_per_event", Schema::Integer { min: 1, max: 100 }, "Markets shown of each; default: 20."),
    Param::query("category", TEXT, "Part of a category's name, in any case; quotes around it are ignored."),
    Param::query("search", TEXT, "Part of an event's title or of a market's question, in any case."),
    Param::query("include_sports", BOOLEAN, "Whether sports are included; default: true."),
    Param::query("venue", Schema::Word(&filter::VENUES), "Where the markets come from."),
];

/// An event of the page: its row of the list, and those of its markets that are shown.
struct PageEvent<'a> {
    row: &'a EventRow,
    markets: Vec<MarketId>,
}

async fn list(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query)?;
    let lists = call.reads().catalog.lists();
    if lists.generation == 0 {
        return Err(warming(&filter));
    }
    let (mut page, mut total, mut sports_left_out) = (Vec::new(), 0, false);
    let mut turns = Turns::of(EXAMINED_PER_TURN);
    for row in &lists.events {
        turns.work(row.markets.len()).await;
        let catalog = &call.reads().catalog;
        let Some(markets) = filter.shows(row, catalog, call.now) else { continue };
        if row.sports && !filter.include_sports {
            sports_left_out = true;
            continue;
        }
        if total >= filter.offset && page.len() < filter.limit {
            page.push(PageEvent { row, markets });
        }
        total += 1;
    }
    let head = EventPage {
        events: Vec::new(),
        total,
        limit: filter.limit,
        offset: filter.offset,
        cache_source: "memory",
        has_sports: (!filter.include_sports).then_some(sports_left_out),
    };
    let mut list = LongList::in_page(&head, "events", WRITTEN_PER_TURN);
    for event in &page {
        list.turns.work(event.markets.len()).await;
        list.push(&Event::new(event, call.reads()));
    }
    Ok(list.reply())
}

/// The answer before the first listing: [`EventsWarming`], which is the error envelope and an empty page in one body.
fn warming(filter: &ListFilter<'_>) -> Refusal {
    Refusal::new(Code::Http503, WARMING)
        .retry_after(WARM_AFTER_SECS)
        .field("events", |out| out.extend_from_slice(b"[]"))
        .field("total", |out| out.push(b'0'))
        .field("limit", |out| decimal::integer(out, filter.limit as u64))
        .field("offset", |out| decimal::integer(out, filter.offset as u64))
        .field("cache_source", |out| out.extend_from_slice(b"\"warming\""))
        .field("has_sports", |out| out.extend_from_slice(b"null"))
}

#[cfg(test)]
mod tests;
