//! The venue's catalogue service ("Gamma"), as far as its clients ask it before they trade: markets, events, tags and the
//! search, read-only and from the catalogue alone. They exist while `[venue] facade` is on.
//!
//! Lists without an order come in the order of listing (events: most traded first). A market that is asked for by id,
//! slug, condition or token is shown in any state; others while they are open, unless `closed` says otherwise.

pub mod filter;
pub mod number;
mod shape;
mod view;

use crate::api::markets::filter::Needle;
use crate::api::markets::view::number as market_number;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Gate, Route};
use crate::reads::Reads;
use engine::id::MarketId;
use engine::market::catalog::{Lists, MarketCell};
use filter::{EVENTS_MAX, ListFilter, MARKETS_MAX, Order, market_key};
use std::collections::BTreeSet;
use view::Group;
use wire::cursor::OffsetCursor;
use wire::fields::Params;
use wire::query::Query;
use wire::write::{Object, array, object, separate};

/// Markets that are looked at before others get their turn on the thread.
const LOOKED_AT_PER_TURN: usize = 2_000;
/// Markets that are written before others get their turn on the thread.
const WRITTEN_PER_TURN: usize = 100;
const ROW_BYTES: usize = 2_048;
const SEARCH_CHARS_MAX: usize = 120;
const SEARCH_MAX: u64 = 50;
const SEARCH_DEFAULT: u64 = 5;
const TAGS_MAX: u64 = 300;
const TAGS_DEFAULT: u64 = 100;
/// Hours within which a search asks for closed events, too.
const HOURS_MAX: u64 = 1_000_000;
/// Highest page of a search.
const PAGE_MAX: u64 = 1_000_000;

pub const ROUTES: &[Route] = &[
    read("/v1/gamma/markets", "list_gamma_markets")
        .about("Markets as the venue's catalogue service shows them.")
        .params(shape::MARKETS_ASKED)
        .gives_shape(200, &shape::MARKETS, shape::MARKETS_EXAMPLE)
        .run(|call| Box::pin(markets(call))),
    read("/v1/gamma/markets/keyset", "list_gamma_markets_by_cursor")
        .about("Pages of markets with a cursor.")
        .params(shape::MARKETS_KEYSET_ASKED)
        .gives_shape(200, &shape::MARKETS_PAGE, shape::MARKETS_PAGE_EXAMPLE)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(markets_page(call))),
    read("/v1/gamma/markets/{id}", "get_gamma_market")
        .about("One market by its number.")
        .gives_shape(200, &shape::MARKET, shape::MARKET_EXAMPLE)
        .fails(&[Code::MarketNotFound])
        .run(|call| Box::pin(market_by_id(call))),
    read("/v1/gamma/markets/slug/{slug}", "get_gamma_market_by_slug")
        .about("One market by its slug.")
        .gives_shape(200, &shape::MARKET, shape::MARKET_EXAMPLE)
        .fails(&[Code::MarketNotFound])
        .run(|call| Box::pin(market_by_slug(call))),
    read("/v1/gamma/events", "list_gamma_events")
        .about("Events with all of their markets.")
        .params(shape::EVENTS_ASKED)
        .gives_shape(200, &shape::EVENTS, shape::EVENTS_EXAMPLE)
        .run(|call| Box::pin(events(call))),
    read("/v1/gamma/events/keyset", "list_gamma_events_by_cursor")
        .about("Pages of events with a cursor.")
        .params(shape::EVENTS_KEYSET_ASKED)
        .gives_shape(200, &shape::EVENTS_PAGE, shape::EVENTS_PAGE_EXAMPLE)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(events_page(call))),
    read("/v1/gamma/events/{id}", "get_gamma_event")
        .about("One event by its id.")
        .gives_shape(200, &shape::EVENT, shape::EVENT_EXAMPLE)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(one_event(call, |event, asked| event.id == asked))),
    read("/v1/gamma/events/slug/{slug}", "get_gamma_event_by_slug")
        .about("One event by its slug.")
        .gives_shape(200, &shape::EVENT, shape::EVENT_EXAMPLE)
        .fails(&[Code::NotFound])
        .run(|call| Box::pin(one_event(call, |event, asked| event.slug == asked))),
    read("/v1/gamma/tags", "list_gamma_tags")
        .about("Tags of all markets.")
        .params(shape::TAGS_ASKED)
        .gives_shape(200, &shape::TAGS, shape::TAGS_EXAMPLE)
        .run(|call| Box::pin(tags(call))),
    read("/v1/gamma/public-search", "search_gamma")
        .about("Events whose title, or a question of whose markets, holds a text.")
        .params(shape::SEARCH_ASKED)
        .gives_shape(200, &shape::FOUND, shape::FOUND_EXAMPLE)
        .run(|call| Box::pin(search(call))),
];

const fn read(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name).gate(Gate::Facade).fails(&[Code::ValidationFailed])
}

async fn markets(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query, MARKETS_MAX)?;
    let found = gathered(&call, &asked).await;
    let rows: Vec<MarketId> = found.into_iter().skip(asked.offset).take(asked.limit).collect();
    Ok(Reply::json(market_rows(&call, &rows).await))
}

async fn markets_page(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query, MARKETS_MAX)?;
    let Some(place) = place(&query)? else { return Ok(page("markets", b"[]", None)) };
    let found = gathered(&call, &asked).await;
    // In the order of listing the cursor is a place of the catalogue: rows neither repeat nor vanish when one closes.
    let first = match asked.is_ordered() {
        true => place.min(found.len()),
        false => found.partition_point(|market| (market.0 as usize) < place),
    };
    let rows: Vec<MarketId> = found[first..].iter().take(asked.limit).copied().collect();
    let next = found.get(first + rows.len()).map(|market| match asked.is_ordered() {
        true => first + rows.len(),
        false => market.0 as usize,
    });
    Ok(page("markets", &market_rows(&call, &rows).await, next))
}

/// The markets that the list shows, in its order.
async fn gathered(call: &Call, asked: &ListFilter<'_>) -> Vec<MarketId> {
    let catalog = &call.reads().catalog;
    let tag = match tag_of(call, asked).await {
        Tag::Unknown => return Vec::new(),
        Tag::Any => None,
        Tag::Only(slug) => Some(slug),
    };
    let mut found = Vec::new();
    for candidates in asked.candidates(catalog).chunks(LOOKED_AT_PER_TURN) {
        let shown = |market: &&MarketId| {
            let tagged =
                |cell: &MarketCell| tag.as_ref().is_none_or(|slug| cell.listing.tags.iter().any(|tag| tag == slug));
            catalog.market(**market).is_some_and(|cell| asked.shows(cell, call.now) && tagged(cell))
        };
        found.extend(candidates.iter().filter(shown));
        tokio::task::yield_now().await;
    }
    asked.sort(found, |market, order| catalog.market(*market).map_or(0, |cell| market_key(cell, order)))
}

async fn market_rows(call: &Call, rows: &[MarketId]) -> Vec<u8> {
    let reads = call.reads();
    let mut out = Vec::with_capacity(2 + ROW_BYTES * rows.len());
    out.push(b'[');
    for rows in rows.chunks(WRITTEN_PER_TURN) {
        for cell in rows.iter().filter_map(|market| reads.catalog.market(*market)) {
            separate(&mut out);
            view::market(&mut out, cell, reads, call.now);
        }
        tokio::task::yield_now().await;
    }
    out.push(b']');
    out
}

async fn market_by_id(call: Call) -> Outcome {
    let asked = call.variable(0);
    let catalog = &call.reads().catalog;
    let mut found = None;
    for at in 0..catalog.len() {
        if at % LOOKED_AT_PER_TURN == LOOKED_AT_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let cell = catalog.market(MarketId(at as u32));
        found = cell.filter(|cell| market_number(&cell.listing).to_string() == asked);
        if found.is_some() {
            break;
        }
    }
    one_market(&call, found)
}

async fn market_by_slug(call: Call) -> Outcome {
    let catalog = &call.reads().catalog;
    one_market(&call, catalog.by_slug(&call.variable(0)).and_then(|market| catalog.market(market)))
}

fn one_market(call: &Call, found: Option<&MarketCell>) -> Outcome {
    let cell = found.ok_or(Code::MarketNotFound)?;
    let mut out = Vec::with_capacity(ROW_BYTES);
    view::market(&mut out, cell, call.reads(), call.now);
    Ok(Reply::json(out))
}

async fn events(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query, EVENTS_MAX)?;
    let lists = call.reads().catalog.lists();
    let found = grouped(&call, &asked, &lists).await;
    let rows: Vec<Group<'_>> = found.into_iter().skip(asked.offset).take(asked.limit).collect();
    Ok(Reply::json(event_rows(&call, &rows).await))
}

async fn events_page(call: Call) -> Outcome {
    let query = call.query();
    let asked = ListFilter::read(&query, EVENTS_MAX)?;
    let Some(place) = place(&query)? else { return Ok(page("events", b"[]", None)) };
    let lists = call.reads().catalog.lists();
    let found = grouped(&call, &asked, &lists).await;
    let first = place.min(found.len());
    let rows = &found[first..found.len().min(first.saturating_add(asked.limit))];
    let next = Some(first + rows.len()).filter(|next| *next < found.len());
    Ok(page("events", &event_rows(&call, rows).await, next))
}

/// All events: groups of markets, then windows of up-or-down markets, which are events of one market each.
fn groups(lists: &Lists) -> impl Iterator<Item = Group<'_>> {
    let rows = lists.events.iter().map(|row| Group { markets: &row.markets });
    rows.chain(lists.updown.chunks(1).map(|markets| Group { markets }))
}

/// The events that the list shows, in its order.
async fn grouped<'l>(call: &Call, asked: &ListFilter<'_>, lists: &'l Lists) -> Vec<Group<'l>> {
    let reads = call.reads();
    let tag = match tag_of(call, asked).await {
        Tag::Unknown => return Vec::new(),
        Tag::Any => None,
        Tag::Only(slug) => Some(slug),
    };
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for group in groups(lists) {
        looked_at += group.markets.len();
        if looked_at > LOOKED_AT_PER_TURN {
            looked_at = 0;
            tokio::task::yield_now().await;
        }
        let Some((first, event)) = named(&group, reads) else { continue };
        let is = |names: &[&str], text: &str| names.is_empty() || names.contains(&text);
        if !(is(&asked.ids, &event.id) && is(&asked.slugs, &event.slug)) {
            continue;
        }
        if tag.as_ref().is_some_and(|slug| first.listing.tags.iter().all(|tag| tag != slug)) {
            continue;
        }
        let sums = group.sums(reads, call.now);
        let by_name = !(asked.ids.is_empty() && asked.slugs.is_empty());
        if asked.state(by_name, sums.active, sums.closed, sums.archived) && asked.lasts(sums.start, sums.end) {
            found.push((group, sums));
        }
    }
    let sorted = asked.sort(found, |(group, sums), order| match order {
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

/// The event's own terms, with the market that has them.
fn named<'a>(group: &Group<'_>, reads: &'a Reads) -> Option<(&'a MarketCell, &'a engine::market::terms::EventTerms)> {
    group.cells(reads).find_map(|cell| Some((cell, cell.event()?)))
}

async fn event_rows(call: &Call, rows: &[Group<'_>]) -> Vec<u8> {
    let (mut out, mut written) = (Vec::with_capacity(1 << 16), 0);
    out.push(b'[');
    for group in rows {
        written += group.markets.len();
        if written > WRITTEN_PER_TURN {
            written = 0;
            tokio::task::yield_now().await;
        }
        separate(&mut out);
        view::event(&mut out, group, call.reads(), call.now);
    }
    out.push(b']');
    out
}

/// The event of the path, by one of its texts.
async fn one_event(call: Call, is: fn(&engine::market::terms::EventTerms, &str) -> bool) -> Outcome {
    let (asked, reads) = (call.variable(0), call.reads());
    let lists = reads.catalog.lists();
    for (at, group) in groups(&lists).enumerate() {
        if at % LOOKED_AT_PER_TURN == LOOKED_AT_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        if named(&group, reads).is_some_and(|(_, event)| is(event, &asked)) {
            let mut out = Vec::with_capacity(ROW_BYTES * (1 + group.markets.len()));
            view::event(&mut out, &group, reads, call.now);
            return Ok(Reply::json(out));
        }
    }
    Err(Refusal::saying(Code::NotFound, "event not found"))
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
    let mut out = Vec::with_capacity(1 << 12);
    array(&mut out, known.iter().skip(offset).take(limit), |out, slug| view::tag(out, slug));
    Ok(Reply::json(out))
}

/// Slugs of all tags, each once.
async fn known_tags(call: &Call) -> BTreeSet<&str> {
    let mut known = BTreeSet::new();
    for (at, cell) in call.reads().catalog.iter().enumerate() {
        if at % LOOKED_AT_PER_TURN == LOOKED_AT_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        known.extend(cell.listing.tags.iter().map(String::as_str));
    }
    known
}

/// The tag that a list asks for.
enum Tag {
    Any,
    Only(String),
    /// No market has it.
    Unknown,
}

async fn tag_of(call: &Call, asked: &ListFilter<'_>) -> Tag {
    match (asked.tag_slug, asked.tag_id) {
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
    let (mut found, mut looked_at) = (Vec::new(), 0);
    for group in groups(&lists) {
        looked_at += group.markets.len();
        if looked_at > LOOKED_AT_PER_TURN {
            looked_at = 0;
            tokio::task::yield_now().await;
        }
        let Some((_, event)) = named(&group, reads) else { continue };
        let holds = |text: &str| needle.as_ref().is_none_or(|needle| needle.is_in(text));
        let asks = || group.cells(reads).any(|cell| holds(&cell.listing.question) || holds(&cell.listing.slug));
        let state = || closed.is_none_or(|closed| closed == group.sums(reads, call.now).closed);
        if (holds(&event.title) || asks()) && state() {
            found.push(group);
        }
    }
    let first = (page - 1).saturating_mul(limit).min(found.len());
    let rows = &found[first..found.len().min(first + limit)];
    let events = event_rows(&call, rows).await;
    Ok(Reply::object(|o| {
        o.name("events").extend_from_slice(&events);
        for name in ["tags", "profiles"] {
            o.name(name).extend_from_slice(b"[]");
        }
        o.object("pagination", |o| {
            o.boolean("hasMore", first + rows.len() < found.len());
            o.integer("totalResults", found.len() as u64);
        });
    }))
}

/// Where the page begins; `None`: after the last one.
fn place(query: &Query<'_>) -> Result<Option<usize>, Refusal> {
    let text = query.first_of(&["after_cursor", "next_cursor"]).unwrap_or_default();
    match OffsetCursor::read(text).map_err(|_| Code::InvalidCursor)? {
        OffsetCursor::At(place) => Ok(Some(place)),
        OffsetCursor::End => Ok(None),
    }
}

/// A page with a cursor, which the last one has not.
fn page(name: &'static str, rows: &[u8], next: Option<usize>) -> Reply {
    let mut out = Vec::with_capacity(64 + rows.len());
    object(&mut out, |o: &mut Object<'_>| {
        o.name(name).extend_from_slice(rows);
        if let Some(next) = next {
            o.text("next_cursor", &OffsetCursor::write(next));
        }
    });
    Reply::json(out)
}
