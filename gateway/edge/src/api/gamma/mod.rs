//! The part of the venue's catalogue service ("Gamma") that clients read before they trade: markets, events, tags and
//! the search, read-only and from the catalogue alone. The routes exist while `[venue] facade` is on.
//!
//! Without `order`, markets are sorted by listing and events by volume. Without `closed`, a list has only open markets;
//! if the request names markets by id, slug, condition or token, it has these in any state.

pub mod filter;
pub mod number;
mod params;
mod view;

use crate::api::markets::filter::Needle;
use crate::api::markets::view::number as market_number;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{EmptyList, Example};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Gate, Route};
use crate::http::turns::{LongList, Turns};
use engine::id::MarketId;
use engine::market::catalog::{Lists, MarketCell};
use engine::market::terms::EventTerms;
use filter::{EVENTS_MAX, ListFilter, MARKETS_MAX, Order, market_key};
use std::collections::BTreeSet;
use view::{
    GammaEvent, GammaEventPage, GammaMarket, GammaMarketPage, GammaPagination, GammaSearchPage, GammaTag, Group,
};
use wire::cursor::OffsetCursor;
use wire::fields::Params;
use wire::query::Query;

/// Markets examined between two yields to other tasks of the thread.
const EXAMINED_PER_TURN: usize = 2_000;
/// Markets written between two yields to other tasks of the thread.
const WRITTEN_PER_TURN: usize = 100;
const SEARCH_CHARS_MAX: usize = 120;
const SEARCH_MAX: u64 = 50;
const SEARCH_DEFAULT: u64 = 5;
const TAGS_MAX: u64 = 300;
const TAGS_DEFAULT: u64 = 100;
/// Hours within which a search includes closed events.
const HOURS_MAX: u64 = 1_000_000;
/// Highest page of a search.
const PAGE_MAX: u64 = 1_000_000;

/// The example of a list: rows have examples of their own.
const EMPTY_LIST: Example = Example::Text("[]");

pub const ROUTES: &[Route] = &[
    read("/v1/gamma/markets", "list_gamma_markets")
        .about("Markets as the venue's catalogue service shows them.")
        .params(params::MARKETS)
        .gives_with::<Vec<GammaMarket>>(200, EMPTY_LIST)
        .run(|call| Box::pin(markets(call))),
    read("/v1/gamma/markets/keyset", "list_gamma_markets_by_cursor")
        .about("Pages of markets with a cursor.")
        .params(params::MARKETS_KEYSET)
        .gives::<GammaMarketPage>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(markets_page(call))),
    read("/v1/gamma/markets/{id}", "get_gamma_market")
        .about("One market by its number.")
        .gives::<GammaMarket>(200)
        .fails(&[Code::MarketNotFound])
        .run(|call| Box::pin(market_by_id(call))),
    read("/v1/gamma/markets/slug/{slug}", "get_gamma_market_by_slug")
        .about("One market by its slug.")
        .gives::<GammaMarket>(200)
        .fails(&[Code::MarketNotFound])
        .answer(market_by_slug),
    read("/v1/gamma/events", "list_gamma_events")
        .about("Events with all of their markets.")
        .params(params::EVENTS)
        .gives_with::<Vec<GammaEvent>>(200, EMPTY_LIST)
        .run(|call| Box::pin(events(call))),
    read("/v1/gamma/events/keyset", "list_gamma_events_by_cursor")
        .about("Pages of events with a cursor.")
        .params(params::EVENTS_KEYSET)
        .gives::<GammaEventPage>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(events_page(call))),
    read("/v1/gamma/events/{id}", "get_gamma_event")
        .about("One event by its id.")
        .gives::<GammaEvent>(200)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(one_event(call, |event, id| event.id == id))),
    read("/v1/gamma/events/slug/{slug}", "get_gamma_event_by_slug")
        .about("One event by its slug.")
        .gives::<GammaEvent>(200)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(one_event(call, |event, slug| event.slug == slug))),
    read("/v1/gamma/tags", "list_gamma_tags")
        .about("Tags of all markets.")
        .params(params::TAGS)
        .gives::<Vec<GammaTag>>(200)
        .run(|call| Box::pin(tags(call))),
    read("/v1/gamma/public-search", "search_gamma")
        .about("Events whose title, or a question of whose markets, holds a text.")
        .params(params::SEARCH)
        .gives::<GammaSearchPage>(200)
        .run(|call| Box::pin(search(call))),
];

const fn read(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name).gate(Gate::Facade).fails(&[Code::ValidationFailed])
}

async fn markets(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query, MARKETS_MAX)?;
    let found = matching_markets(&call, &filter).await;
    let page = found.into_iter().skip(filter.offset).take(filter.limit);
    Ok(LongList::alone(WRITTEN_PER_TURN).with_rows(market_rows(&call, page)).await)
}

async fn markets_page(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query, MARKETS_MAX)?;
    let Some(start) = page_start(&query)? else {
        return Ok(Reply::json(&GammaMarketPage { markets: Vec::new(), next_cursor: None }));
    };
    let found = matching_markets(&call, &filter).await;
    // In the order of listing the cursor is an index of the catalogue, so that rows neither repeat nor vanish when a
    // market closes.
    let first = match filter.is_ordered() {
        true => start.min(found.len()),
        false => found.partition_point(|market| (market.0 as usize) < start),
    };
    let page = &found[first..found.len().min(first.saturating_add(filter.limit))];
    let next = found.get(first + page.len()).map(|market| match filter.is_ordered() {
        true => first + page.len(),
        false => market.0 as usize,
    });
    let head = GammaMarketPage { markets: Vec::new(), next_cursor: next.map(OffsetCursor::write) };
    let list = LongList::in_page(&head, "markets", WRITTEN_PER_TURN);
    Ok(list.with_rows(market_rows(&call, page.iter().copied())).await)
}

/// The markets that the list shows, in its order.
async fn matching_markets(call: &Call, filter: &ListFilter<'_>) -> Vec<MarketId> {
    let catalog = &call.reads().catalog;
    let tag = match tag_of(call, filter).await {
        Tag::Unknown => return Vec::new(),
        Tag::Any => None,
        Tag::Only(slug) => Some(slug),
    };
    let mut found = Vec::new();
    for candidates in filter.candidates(catalog).chunks(EXAMINED_PER_TURN) {
        let shown = |market: &&MarketId| {
            let tagged =
                |cell: &MarketCell| tag.as_ref().is_none_or(|slug| cell.listing.tags.iter().any(|tag| tag == slug));
            catalog.market(**market).is_some_and(|cell| filter.shows(cell, call.now) && tagged(cell))
        };
        found.extend(candidates.iter().filter(shown));
        tokio::task::yield_now().await;
    }
    filter.sort(found, |market, order| catalog.market(*market).map_or(0, |cell| market_key(cell, order)))
}

fn market_rows(call: &Call, page: impl Iterator<Item = MarketId>) -> impl Iterator<Item = GammaMarket<'_>> {
    let reads = call.reads();
    let cells = page.filter_map(|market| reads.catalog.market(market));
    cells.map(|cell| GammaMarket::new(cell, reads, call.now))
}

async fn market_by_id(call: Call) -> Outcome {
    let id = call.variable(0);
    let catalog = &call.reads().catalog;
    let (mut found, mut turns) = (None, Turns::of(EXAMINED_PER_TURN));
    for at in 0..catalog.len() {
        turns.work(1).await;
        let cell = catalog.market(MarketId(at as u32));
        found = cell.filter(|cell| market_number(&cell.listing).to_string() == id);
        if found.is_some() {
            break;
        }
    }
    one_market(&call, found)
}

fn market_by_slug(call: &Call) -> Outcome {
    let catalog = &call.reads().catalog;
    one_market(call, catalog.by_slug(&call.variable(0)).and_then(|market| catalog.market(market)))
}

fn one_market(call: &Call, found: Option<&MarketCell>) -> Outcome {
    let cell = found.ok_or(Code::MarketNotFound)?;
    Ok(Reply::json(&GammaMarket::new(cell, call.reads(), call.now)))
}

async fn events(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query, EVENTS_MAX)?;
    let lists = call.reads().catalog.lists();
    let found = matching_events(&call, &filter, &lists).await;
    let rows: Vec<Group<'_>> = found.into_iter().skip(filter.offset).take(filter.limit).collect();
    Ok(event_list(&call, LongList::alone(WRITTEN_PER_TURN), &rows).await)
}

async fn events_page(call: Call) -> Outcome {
    let query = call.query();
    let filter = ListFilter::read(&query, EVENTS_MAX)?;
    let Some(start) = page_start(&query)? else {
        return Ok(Reply::json(&GammaEventPage { events: Vec::new(), next_cursor: None }));
    };
    let lists = call.reads().catalog.lists();
    let found = matching_events(&call, &filter, &lists).await;
    let first = start.min(found.len());
    let rows = &found[first..found.len().min(first.saturating_add(filter.limit))];
    let next = Some(first + rows.len()).filter(|next| *next < found.len());
    let head = GammaEventPage { events: Vec::new(), next_cursor: next.map(OffsetCursor::write) };
    Ok(event_list(&call, LongList::in_page(&head, "events", WRITTEN_PER_TURN), rows).await)
}

/// All events: groups of markets, then windows of up-or-down markets, which are events of one market each.
fn groups(lists: &Lists) -> impl Iterator<Item = Group<'_>> {
    let rows = lists.events.iter().map(|row| Group { markets: &row.markets });
    rows.chain(lists.updown.chunks(1).map(|markets| Group { markets }))
}

/// The events that the list shows, in its order.
async fn matching_events<'l>(call: &Call, filter: &ListFilter<'_>, lists: &'l Lists) -> Vec<Group<'l>> {
    let reads = call.reads();
    let tag = match tag_of(call, filter).await {
        Tag::Unknown => return Vec::new(),
        Tag::Any => None,
        Tag::Only(slug) => Some(slug),
    };
    let (mut found, mut turns) = (Vec::new(), Turns::of(EXAMINED_PER_TURN));
    for group in groups(lists) {
        turns.work(group.markets.len()).await;
        let Some((first, event)) = group.event(reads) else { continue };
        let is = |names: &[&str], text: &str| names.is_empty() || names.contains(&text);
        if !(is(&filter.ids, &event.id) && is(&filter.slugs, &event.slug)) {
            continue;
        }
        if tag.as_ref().is_some_and(|slug| first.listing.tags.iter().all(|tag| tag != slug)) {
            continue;
        }
        let sums = group.sums(reads, call.now);
        let by_name = !(filter.ids.is_empty() && filter.slugs.is_empty());
        if filter.shows_state(by_name, sums.active, sums.closed, sums.archived)
            && filter.contains_dates(sums.start, sums.end)
        {
            found.push((group, sums));
        }
    }
    let sorted = filter.sort(found, |(group, sums), order| match order {
        Order::Volume24h => sums.volume_24h,
        Order::Volume => sums.volume,
        Order::Liquidity => sums.liquidity,
        Order::Start => sums.start.map_or(0, |at| at.0),
        Order::End => sums.end.map_or(0, |at| at.0),
        // Ids are texts; events are as old as the oldest of their markets.
        Order::Id | Order::Created => group.markets.iter().map(|market| u64::from(market.0)).min().unwrap_or_default(),
    });
    sorted.into_iter().map(|(group, _)| group).collect()
}

/// The list with these rows.
async fn event_list(call: &Call, mut list: LongList, rows: &[Group<'_>]) -> Reply {
    for group in rows {
        list.turns.work(group.markets.len()).await;
        if let Some(event) = GammaEvent::new(group, call.reads(), call.now) {
            list.push(&event);
        }
    }
    list.reply()
}

/// The event that the path names.
async fn one_event(call: Call, is: fn(&EventTerms, &str) -> bool) -> Outcome {
    let (text, reads) = (call.variable(0), call.reads());
    let lists = reads.catalog.lists();
    let mut turns = Turns::of(EXAMINED_PER_TURN);
    for group in groups(&lists) {
        turns.work(1).await;
        if group.event(reads).is_some_and(|(_, event)| is(event, &text)) {
            let event = GammaEvent::new(&group, reads, call.now).ok_or(Code::NotFound)?;
            return Ok(Reply::json(&event));
        }
    }
    Err(Refusal::new(Code::NotFound, "event not found"))
}

async fn tags(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=TAGS_MAX).unwrap_or(TAGS_DEFAULT) as usize;
    let offset = params.offset();
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let known = known_tags(&call).await;
    let tags: Vec<_> = known.into_iter().skip(offset).take(limit).map(GammaTag::new).collect();
    Ok(Reply::json(&tags))
}

/// Slugs of all tags, each once.
async fn known_tags(call: &Call) -> BTreeSet<&str> {
    let (mut known, mut turns) = (BTreeSet::new(), Turns::of(EXAMINED_PER_TURN));
    for cell in call.reads().catalog.iter() {
        turns.work(1).await;
        known.extend(cell.listing.tags.iter().map(String::as_str));
    }
    known
}

/// The tag that a list is limited to.
enum Tag {
    Any,
    Only(String),
    /// No market has it.
    Unknown,
}

async fn tag_of(call: &Call, filter: &ListFilter<'_>) -> Tag {
    match (filter.tag_slug, filter.tag_id) {
        (Some(slug), _) => Tag::Only(slug.to_owned()),
        (None, None) => Tag::Any,
        (None, Some(id)) => {
            let known = known_tags(call).await;
            let found = known.into_iter().find(|slug| number::of_text(slug).to_string() == id);
            found.map_or(Tag::Unknown, |slug| Tag::Only(slug.to_owned()))
        }
    }
}

async fn search(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let text = params.text("q", SEARCH_CHARS_MAX);
    let limit = params.integer("limit_per_type", 1..=SEARCH_MAX).unwrap_or(SEARCH_DEFAULT) as usize;
    let page = params.integer("page", 1..=PAGE_MAX).unwrap_or(1) as usize;
    let closed = params
        .choice(
            "events_status",
            &[("active", Some(false)), ("closed", Some(true)), ("resolved", Some(true)), ("all", None)],
        )
        .unwrap_or(Some(false));
    let keep_closed = params.integer("keep_closed_markets", 0..=HOURS_MAX).unwrap_or_default() > 0;
    if text.is_none_or(str::is_empty) && params.problems.is_empty() {
        params.problems.add("query", "q", "missing", "is required");
    }
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let closed = if keep_closed && query.get("events_status").is_none() { None } else { closed };
    let (reads, needle) = (call.reads(), text.and_then(Needle::new));
    let lists = reads.catalog.lists();
    let (mut found, mut turns) = (Vec::new(), Turns::of(EXAMINED_PER_TURN));
    for group in groups(&lists) {
        turns.work(group.markets.len()).await;
        let Some((_, event)) = group.event(reads) else { continue };
        let holds = |text: &str| needle.as_ref().is_none_or(|needle| needle.is_in(text));
        let in_market = || group.cells(reads).any(|cell| holds(&cell.listing.question) || holds(&cell.listing.slug));
        let state = || closed.is_none_or(|closed| closed == group.sums(reads, call.now).closed);
        if (holds(&event.title) || in_market()) && state() {
            found.push(group);
        }
    }
    let first = (page - 1).saturating_mul(limit).min(found.len());
    let rows = &found[first..found.len().min(first + limit)];
    let pagination = GammaPagination { has_more: first + rows.len() < found.len(), total_results: found.len() };
    let head = GammaSearchPage { events: Vec::new(), tags: EmptyList, profiles: EmptyList, pagination };
    Ok(event_list(&call, LongList::in_page(&head, "events", WRITTEN_PER_TURN), rows).await)
}

/// Where the page begins; `None`: after the last one.
fn page_start(query: &Query<'_>) -> Result<Option<usize>, Refusal> {
    let text = query.first_of(&["after_cursor", "next_cursor"]).unwrap_or_default();
    match OffsetCursor::read(text).map_err(|_| Code::InvalidCursor)? {
        OffsetCursor::At(start) => Ok(Some(start)),
        OffsetCursor::End => Ok(None),
    }
}

#[cfg(test)]
mod tests;
