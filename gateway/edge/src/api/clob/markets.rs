//! Markets as the venue shows them (venue.md §1.5, §2): whole and simplified lists, one market, and the short form that
//! newer clients build their orders from.
//!
//! A page goes through the catalogue in the order of listing, which never changes: rows neither repeat nor vanish while
//! volumes move. Its cursor is the place in that order.

use super::read_shape as shape;
use crate::api::account::valuation::Marks;
use crate::api::books::view as book;
use crate::api::markets::view::{Phase, venue_fields};
use crate::api::prices::{base_fee, book_of};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::Route;
use crate::reads::Reads;
use engine::amount::Cash;
use engine::id::{MarketId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;
use engine::market::terms::Resolution;
use engine::time::Timestamp;
use wire::cursor::{self, OffsetCursor};
use wire::decimal;
use wire::write::{Object, object, separate};

/// Rows of a page, in every list.
const PAGE_ROWS: usize = 1_000;
/// Markets that are looked at, and rows that are written, before others get their turn on the thread.
const LOOKED_AT_PER_TURN: usize = 2_000;
const ROWS_PER_TURN: usize = 100;
const ROW_BYTES: usize = 1_536;
/// What a token is said to be worth that was never quoted: a number is all that typed clients read.
const UNQUOTED: Cash = Cash(500_000);
/// Basis points × 100 are 10⁻⁶.
const MICROS_PER_BPS: u64 = 100;
const OUTCOMES: [MarketOutcome; 2] = [MarketOutcome::First, MarketOutcome::Second];

pub const ROUTES: &[Route] = &[
    Route::get("/v1/simplified-markets", "list_simplified_markets")
        .about("Every market, simplified.")
        .at_root()
        .params(shape::NEXT_CURSOR)
        .gives_shape(200, &shape::SIMPLIFIED_PAGE, shape::PAGE_EXAMPLE)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, every, simplified))),
    Route::get("/v1/sampling-markets", "list_sampling_markets")
        .about("Active markets with bids and asks.")
        .at_root()
        .params(shape::NEXT_CURSOR)
        .gives_shape(200, &shape::PAGE, shape::PAGE_EXAMPLE)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, sampled, whole))),
    Route::get("/v1/sampling-simplified-markets", "list_sampling_simplified_markets")
        .about("Active markets with bids and asks, simplified.")
        .at_root()
        .params(shape::NEXT_CURSOR)
        .gives_shape(200, &shape::SIMPLIFIED_PAGE, shape::PAGE_EXAMPLE)
        .fails(&[Code::InvalidCursor])
        .run(|call| Box::pin(list(call, sampled, simplified))),
    Route::get("/v1/clob-markets/{condition_id}", "get_clob_market")
        .about("What newer venue clients build their orders from.")
        .at_root()
        .gives_shape(200, &shape::CLOB_MARKET, shape::CLOB_MARKET_EXAMPLE)
        .fails(&[Code::MarketNotFound])
        .run(|call| Box::pin(clob_market(call))),
];

/// `GET /v1/markets` for venue clients: a page of all markets.
pub async fn page(call: Call) -> Outcome {
    list(call, every, whole).await
}

/// `GET /v1/markets/{condition_id}` for venue clients.
pub fn one(call: &Call) -> Outcome {
    let cell = named(call)?;
    let mut out = Vec::with_capacity(ROW_BYTES);
    whole(&mut out, cell, call.reads(), call.now);
    Ok(Reply::json(out))
}

/// Which markets a list shows.
type MarketPredicate = fn(&MarketCell, &Reads, Timestamp) -> bool;
type Row = fn(&mut Vec<u8>, &MarketCell, &Reads, Timestamp);

/// Archived markets are told one by one only.
fn every(cell: &MarketCell, _: &Reads, now: Timestamp) -> bool {
    Phase::of(cell, now).archived_at.is_none()
}

/// What the venue samples for its rewards, which do not exist here: active markets with bids and asks.
fn sampled(cell: &MarketCell, reads: &Reads, now: Timestamp) -> bool {
    let phase = Phase::of(cell, now);
    let two_sided =
        || book_of(reads, cell.instrument(MarketOutcome::First), cell).is_some_and(|top| top.midpoint().is_some());
    phase.active && !phase.closed && two_sided()
}

async fn list(call: Call, shown: MarketPredicate, row: Row) -> Outcome {
    let query = call.query();
    let cursor = OffsetCursor::read(query.first_of(&["next_cursor", "cursor"]).unwrap_or_default())
        .map_err(|_| Code::InvalidCursor)?;
    let (rows, next) = match cursor {
        OffsetCursor::At(place) => gathered(&call, shown, place).await,
        OffsetCursor::End => (Vec::new(), None),
    };
    let reads = call.reads();
    let mut data = Vec::with_capacity(2 + ROW_BYTES * rows.len());
    data.push(b'[');
    for rows in rows.chunks(ROWS_PER_TURN) {
        for cell in rows.iter().filter_map(|market| reads.catalog.market(*market)) {
            separate(&mut data);
            row(&mut data, cell, reads, call.now);
        }
        tokio::task::yield_now().await;
    }
    data.push(b']');
    let mut out = Vec::with_capacity(128 + data.len());
    object(&mut out, |o| {
        o.integer("limit", PAGE_ROWS as u64);
        o.integer("count", rows.len() as u64);
        match next {
            Some(place) => o.text("next_cursor", &OffsetCursor::write(place)),
            None => o.word("next_cursor", cursor::END),
        }
        o.name("data").extend_from_slice(&data);
    });
    Ok(Reply::json(out))
}

/// The markets of the page that begins at a place of the catalogue, and the place of the next page.
async fn gathered(call: &Call, shown: MarketPredicate, place: usize) -> (Vec<MarketId>, Option<usize>) {
    let reads = call.reads();
    let mut rows = Vec::new();
    for at in place..reads.catalog.len() {
        if (at - place) % LOOKED_AT_PER_TURN == LOOKED_AT_PER_TURN - 1 {
            tokio::task::yield_now().await;
        }
        let market = MarketId(at as u32);
        if !reads.catalog.market(market).is_some_and(|cell| shown(cell, reads, call.now)) {
            continue;
        }
        if rows.len() == PAGE_ROWS {
            return (rows, Some(at));
        }
        rows.push(market);
    }
    (rows, None)
}

/// The market of the path.
fn named(call: &Call) -> Result<&MarketCell, Refusal> {
    let catalog = &call.reads().catalog;
    let market = catalog.by_condition(&call.variable(0)).and_then(|market| catalog.market(market));
    market.ok_or_else(|| Refusal::saying(Code::MarketNotFound, "market not found"))
}

/// The venue's own market object: every field, always.
fn whole(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    let listing = &cell.listing;
    object(out, |o| {
        o.text("condition_id", &listing.condition);
        o.text("question_id", &listing.condition);
        o.text("question", &listing.question);
        o.text("description", listing.description.as_deref().unwrap_or_default());
        o.text("market_slug", &listing.slug);
        standing(o, cell, now);
        tokens(o, cell, reads);
        o.boolean("neg_risk", listing.neg_risk);
        venue_fields(o, cell, reads, now);
    });
}

fn simplified(out: &mut Vec<u8>, cell: &MarketCell, reads: &Reads, now: Timestamp) {
    object(out, |o| {
        o.text("condition_id", &cell.listing.condition);
        tokens(o, cell, reads);
        o.name("rewards").extend_from_slice(br#"{"rates":null,"min_size":0,"max_spread":0}"#);
        standing(o, cell, now);
        o.boolean("accepting_orders", Phase::of(cell, now).accepting_orders);
    });
}

fn standing(o: &mut Object<'_>, cell: &MarketCell, now: Timestamp) {
    let phase = Phase::of(cell, now);
    o.boolean("active", phase.active);
    o.boolean("closed", phase.closed);
    o.boolean("archived", phase.archived_at.is_some());
}

/// `"tokens"`: prices are numbers, and there is a winner only after the resolution.
fn tokens(o: &mut Object<'_>, cell: &MarketCell, reads: &Reads) {
    let marks = Marks { catalog: &reads.catalog, books: &reads.books };
    o.array("tokens", OUTCOMES, |out, outcome| {
        object(out, |o| {
            o.text("token_id", cell.token(outcome));
            o.text("outcome", cell.outcome(outcome));
            let price = marks.mark(cell.instrument(outcome)).unwrap_or(UNQUOTED);
            decimal::vol(o.name("price"), price.0.unsigned_abs());
            o.boolean("winner", cell.resolution() == Some(Resolution::Winner(outcome)));
        });
    });
}

/// What newer clients read before they build an order.
async fn clob_market(call: Call) -> Outcome {
    let cell = named(&call)?;
    let bps = call.reads().rules.fees.rate(cell.listing.category).0;
    Ok(Reply::object(|o| {
        o.text("c", &cell.listing.condition);
        o.array("t", OUTCOMES, |out, outcome| {
            object(out, |o| {
                o.text("t", cell.token(outcome));
                o.text("o", cell.outcome(outcome));
            });
        });
        decimal::tick(o.name("mts"), cell.tick());
        decimal::size(o.name("mos"), book::min_order_size(cell));
        o.boolean("nr", cell.listing.neg_risk);
        o.integer("mbf", 0);
        o.integer("tbf", base_fee(bps));
        if bps > 0 {
            o.object("fd", |o| {
                decimal::vol(o.name("r"), u64::from(bps) * MICROS_PER_BPS);
                o.integer("e", 1);
                o.boolean("to", true);
            });
        }
        // There are no rewards. Typed clients want the object all the same.
        o.object("r", |_| {});
        o.null("gst");
        o.boolean("ao", Phase::of(cell, call.now).accepting_orders);
        // Nothing of what these switch on is modelled.
        for name in ["cbos", "ibce", "rfqe"] {
            o.boolean(name, false);
        }
        o.integer("oas", 0);
    }))
}
