//! Markets: the list, one by condition id, one by slug (gateway/docs/market-data.md §1, §2). The list has no up-or-down
//! markets.

pub mod filter;
pub mod quote;
pub mod view;

use super::clob::markets::{self as venue, VenueMarket, VenueMarketPage};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route, VenueShape};
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT};
use crate::http::turns::Turns;
use engine::id::MarketId;
use engine::market::catalog::MarketCell;
use filter::ListFilter;
use view::{MarketDetail, MarketList, MarketPage, MarketSummary};
use wire::cursor::{self, OffsetCursor};
use wire::fields::Params;

/// Markets examined between two yields to other tasks of the thread.
const EXAMINED_PER_TURN: usize = 2_000;

pub const ROUTES: &[Route] = &[
    Route::get("/v1/markets", "list_markets")
        .about("Markets, most traded first; without up-or-down markets.")
        .params(LIST_PARAMS)
        .gives::<MarketList>(200)
        .at_root()
        .auth(Auth::KeyUnless(VenueShape::StrictOrPage))
        .needs(Permission::Read)
        .gives::<VenueMarketPage<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(list(call))),
    Route::get("/v1/markets/{condition_id}", "get_market")
        .about("One market.")
        .params(DETAIL_PARAMS)
        .gives::<MarketDetail>(200)
        .at_root()
        .auth(Auth::KeyUnless(VenueShape::Strict))
        .needs(Permission::Read)
        .gives::<VenueMarket<'_>>(200)
        .fails(&[Code::MarketNotFound, Code::ValidationFailed])
        .answer(by_condition),
    Route::get("/v1/markets/by-slug/{slug}", "get_market_by_slug")
        .about("One market by its slug.")
        .params(DETAIL_PARAMS)
        .gives::<MarketDetail>(200)
        .auth(Auth::Key)
        .needs(Permission::Read)
        .no_store()
        .fails(&[Code::MarketNotFound, Code::ValidationFailed])
        .answer(by_slug),
];

const SORTS: &str = "Accepted; the order is always by volume.";
const LIST_PARAMS: &[Param] = &[
    Param::query("limit", Schema::Integer { min: 1, max: 200 }, "Markets of a page; default: 50."),
    Param::query("offset", OFFSET, "Markets before the page."),
    Param::query("hot_only", BOOLEAN, "Only markets with more than 5000 USD traded."),
    Param::query("active_only", BOOLEAN, "Only active ones that are not closed, as without it."),
    Param::query("closed", BOOLEAN, "`true`: only closed markets; `false`: only open ones. Overrides `active_only`."),
    Param::query("category", TEXT, "Part of a category's name, in any case."),
    Param::query("q", Schema::Text(120), "Part of the question or the slug, in any case."),
    Param::query("search", Schema::Text(120), "The same under another name."),
    Param::query("status", Schema::Word(&["active", "closed", "resolved", "all"]), "Wins over the two above."),
    Param::query("sort", TEXT, SORTS),
    Param::query("ascending", TEXT, SORTS),
    Param::query("envelope", BOOLEAN, "A page with its cursor instead of the bare list."),
    Param::query("next_cursor", TEXT, "Of the page before, with `envelope`."),
    Param::query("cursor", TEXT, "The same under another name."),
];
const DETAIL_PARAMS: &[Param] =
    &[Param::query("include_book", BOOLEAN, "Adds `order_book`, the book of the first outcome.")];

async fn list(call: Call) -> Outcome {
    if call.in_venue_shape() {
        return venue::page(call).await;
    }
    let query = call.query();
    let filter = ListFilter::read(&query)?;
    let (page, next) = match filter.offset {
        Some(offset) => page(&call, &filter, offset).await,
        None => (Vec::new(), None),
    };
    let reads = call.reads();
    let rows = page.iter().filter_map(|market| reads.catalog.market(*market));
    let data: Vec<_> = rows.map(|cell| MarketSummary::new(cell, reads, call.now)).collect();
    Ok(Reply::json(&match filter.envelope {
        false => MarketList::Rows(data),
        true => MarketList::Page(MarketPage {
            limit: filter.limit,
            count: data.len(),
            next_cursor: next.map_or(cursor::END.into(), |offset| OffsetCursor::write(offset).into()),
            data,
        }),
    }))
}

/// The markets of one page, and where the next one begins. All pages of one sorting have one order.
async fn page(call: &Call, filter: &ListFilter<'_>, offset: usize) -> (Vec<MarketId>, Option<usize>) {
    let catalog = &call.reads().catalog;
    let (mut page, mut skipped) = (Vec::with_capacity(filter.limit), 0);
    let mut turns = Turns::of(EXAMINED_PER_TURN);
    for market in catalog.ordered().iter() {
        turns.work(1).await;
        if !catalog.market(*market).is_some_and(|cell| filter.shows(cell, call.now)) {
            continue;
        }
        if skipped < offset {
            skipped += 1;
        } else if page.len() < filter.limit {
            page.push(*market);
        } else {
            let next = offset + page.len();
            return (page, Some(next));
        }
    }
    (page, None)
}

fn by_condition(call: &Call) -> Outcome {
    if call.in_venue_shape() {
        return venue::one(call);
    }
    let market = call.reads().catalog.by_condition(&call.variable(0));
    one(call, market)
}

fn by_slug(call: &Call) -> Outcome {
    let slug = call.variable(0);
    let market = Some(slug).filter(|slug| !slug.is_empty()).and_then(|slug| call.reads().catalog.by_slug(&slug));
    one(call, market)
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
    Ok(Reply::json(&MarketDetail::new(cell, reads, call.now, with_book)))
}

#[cfg(test)]
mod tests;
