//! Markets: the list, one by condition id, one by slug (market-data.md §1, §2). Up-or-down markets are not in the list.

pub mod filter;
pub mod quote;
pub mod shape;
pub mod view;

use super::clob::markets::{self as venue, VenueMarket, VenueMarketPage};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route, VenueShape};
use crate::http::schema::Schema;
use engine::id::MarketId;
use engine::market::catalog::MarketCell;
use filter::ListFilter;
use wire::cursor::{self, OffsetCursor};
use wire::fields::Params;
use wire::write::{array, object};

/// Markets that are looked at before others get their turn on the thread.
const LOOKED_AT_PER_TURN: usize = 2_000;
const SUMMARY_BYTES: usize = 1_024;
const DETAIL_BYTES: usize = 3_072;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/markets", "list_markets")
        .about("Markets, most traded first; without up-or-down markets.")
        .params(shape::LIST_PARAMS)
        .gives_shape(200, &shape::LIST, shape::SUMMARY_EXAMPLE)
        .at_root()
        .auth(Auth::KeyUnless(VenueShape::StrictOrPage))
        .needs(Permission::Read)
        .gives::<VenueMarketPage<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/markets/{condition_id}", "get_market")
        .about("One market.")
        .params(shape::DETAIL_PARAMS)
        .gives_shape(200, &Schema::Object(&shape::DETAIL), shape::DETAIL_EXAMPLE)
        .at_root()
        .auth(Auth::KeyUnless(VenueShape::Strict))
        .needs(Permission::Read)
        .gives::<VenueMarket<'_>>(200)
        .fails(&[Code::MarketNotFound, Code::ValidationFailed])
        .run(|call| Box::pin(by_condition(call))),
    Route::get("/v1/markets/by-slug/{slug}", "get_market_by_slug")
        .about("One market by its slug.")
        .params(shape::DETAIL_PARAMS)
        .gives_shape(200, &Schema::Object(&shape::DETAIL), shape::DETAIL_EXAMPLE)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .no_store()
        .fails(&[Code::MarketNotFound, Code::ValidationFailed])
        .run(|call| Box::pin(by_slug(call))),
];

async fn list(call: Call) -> Outcome {
    if call.in_venue_shape() {
        return venue::page(call).await;
    }
    let query = call.query();
    let asked = ListFilter::read(&query)?;
    let (page, next) = match asked.offset {
        Some(offset) => page(&call, &asked, offset).await,
        None => (Vec::new(), None),
    };
    let reads = call.reads();
    let cells = || page.iter().filter_map(|market| reads.catalog.market(*market));
    let mut out = Vec::with_capacity(64 + SUMMARY_BYTES * page.len());
    if asked.envelope {
        object(&mut out, |o| {
            o.integer("limit", asked.limit as u64);
            o.integer("count", page.len() as u64);
            match next {
                Some(offset) => o.text("next_cursor", &OffsetCursor::write(offset)),
                None => o.word("next_cursor", cursor::END),
            }
            o.array("data", cells(), |out, cell| view::summary(out, cell, reads, call.now));
        });
    } else {
        array(&mut out, cells(), |out, cell| view::summary(out, cell, reads, call.now));
    }
    Ok(Reply::json(out))
}

/// The markets of one page, and where the next one begins. All pages of one sorting have one order.
async fn page(call: &Call, asked: &ListFilter<'_>, offset: usize) -> (Vec<MarketId>, Option<usize>) {
    let catalog = &call.reads().catalog;
    let (mut page, mut skipped) = (Vec::with_capacity(asked.limit), 0);
    for (looked_at, market) in catalog.ordered().iter().enumerate() {
        if looked_at % LOOKED_AT_PER_TURN == LOOKED_AT_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        if !catalog.market(*market).is_some_and(|cell| asked.shows(cell, call.now)) {
            continue;
        }
        if skipped < offset {
            skipped += 1;
        } else if page.len() < asked.limit {
            page.push(*market);
        } else {
            let next = offset + page.len();
            return (page, Some(next));
        }
    }
    (page, None)
}

async fn by_condition(call: Call) -> Outcome {
    if call.in_venue_shape() {
        return venue::one(&call);
    }
    let market = call.reads().catalog.by_condition(&call.variable(0));
    one(&call, market)
}

async fn by_slug(call: Call) -> Outcome {
    let slug = call.variable(0);
    let market = Some(slug).filter(|slug| !slug.is_empty()).and_then(|slug| call.reads().catalog.by_slug(&slug));
    one(&call, market)
}

fn one(call: &Call, market: Option<MarketId>) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let with_book = params.boolean("include_book").unwrap_or(false);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let reads = call.reads();
    let cell: &MarketCell = market.and_then(|market| reads.catalog.market(market)).ok_or(Code::MarketNotFound)?;
    let mut out = Vec::with_capacity(DETAIL_BYTES);
    view::detail(&mut out, cell, reads, call.now, with_book);
    Ok(Reply::json(out))
}

#[cfg(test)]
mod tests;
