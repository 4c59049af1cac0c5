//! Prices of many tokens at once (venue.md §1.3): midpoints, best prices, spreads, last trades. Tokens that are unknown,
//! or have nothing to say, are left out.

use super::read_shape as shape;
use super::tokens::{self, BatchItem, Sides};
use crate::api::prices::{book_of, taker_word};
use crate::api::tokens::find;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{BodyKind, Route};
use ahash::AHashMap;
use engine::amount::Price;
use engine::book::{BookSide, Top};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;
use wire::write::{Object, array, object, separate, string};

/// Markets whose prices are written before others get their turn on the thread.
const MARKETS_PER_TURN: usize = 500;
const TOKENS: &[Code] = &[Code::InvalidBody, Code::InvalidTokenId];
const TOKENS_AND_SIDES: &[Code] = &[Code::InvalidBody, Code::InvalidTokenId, Code::InvalidRequest];

pub const ROUTES: &[Route] = &[
    Route::get("/v1/midpoints", "get_midpoints")
        .about("Half way between the best prices, by token; tokens without both are left out.")
        .at_root()
        .params(shape::TOKEN_LIST)
        .gives_shape(200, &shape::BY_TOKEN, shape::BY_TOKEN_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(midpoints(call))),
    Route::post("/v1/midpoints", "post_midpoints")
        .about("Half way between the best prices, by token; tokens without both are left out.")
        .at_root()
        .takes_shape(&shape::TOKENS, shape::TOKENS_EXAMPLE)
        .gives_shape(200, &shape::BY_TOKEN, shape::BY_TOKEN_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(midpoints(call))),
    Route::get("/v1/prices", "get_prices")
        .about("Best prices by token and side; tokens without any are left out.")
        .at_root()
        .params(shape::TOKEN_AND_SIDE_LISTS)
        .gives_shape(200, &shape::BEST_BY_TOKEN, shape::BEST_BY_TOKEN_EXAMPLE)
        .fails(TOKENS_AND_SIDES)
        .run(|call| Box::pin(prices(call))),
    Route::post("/v1/prices", "post_prices")
        .about("Best prices by token and side; tokens without any are left out.")
        .at_root()
        .takes_shape(&shape::SIDES, shape::SIDES_EXAMPLE)
        .gives_shape(200, &shape::BEST_BY_TOKEN, shape::BEST_BY_TOKEN_EXAMPLE)
        .gives_shape(200, &shape::PRICE_ROWS, shape::PRICE_ROWS_EXAMPLE)
        .fails(TOKENS_AND_SIDES)
        .run(|call| Box::pin(prices_of_body(call))),
    Route::get("/v1/spreads", "get_spreads")
        .about("What lies between the best prices, by token; tokens without both are left out.")
        .at_root()
        .params(shape::TOKEN_LIST)
        .gives_shape(200, &shape::BY_TOKEN, shape::BY_TOKEN_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(spreads(call))),
    Route::post("/v1/spreads", "post_spreads")
        .about("What lies between the best prices, by token; tokens without both are left out.")
        .at_root()
        .takes_shape(&shape::TOKENS, shape::TOKENS_EXAMPLE)
        .gives_shape(200, &shape::BY_TOKEN, shape::BY_TOKEN_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(spreads(call))),
    // One client sends its list as the body of a GET.
    Route::get("/v1/last-trades-prices", "get_last_trades_prices")
        .about("Last trades; tokens that were never traded are left out.")
        .at_root()
        .body(BodyKind::Optional)
        .params(shape::TOKEN_LIST_OR_BODY)
        .takes_shape(&shape::TOKENS, shape::TOKENS_EXAMPLE)
        .gives_shape(200, &shape::TRADE_ROWS, shape::TRADE_ROWS_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(last_trades(call))),
    Route::post("/v1/last-trades-prices", "post_last_trades_prices")
        .about("Last trades; tokens that were never traded are left out.")
        .at_root()
        .takes_shape(&shape::TOKENS, shape::TOKENS_EXAMPLE)
        .gives_shape(200, &shape::TRADE_ROWS, shape::TRADE_ROWS_EXAMPLE)
        .fails(TOKENS)
        .run(|call| Box::pin(last_trades(call))),
];

async fn midpoints(call: Call) -> Outcome {
    by_token(&call, |o, token, top| {
        if let Some(mid) = top.midpoint() {
            o.average(token, mid);
        }
    })
}

async fn spreads(call: Call) -> Outcome {
    by_token(&call, |o, token, top| {
        if let (Some(bid), Some(ask)) = (top.price(BookSide::Bid), top.price(BookSide::Ask)) {
            o.price(token, Price(ask.0.saturating_sub(bid.0)));
        }
    })
}

/// One field by token; `write` leaves out what the book does not say.
fn by_token(call: &Call, write: impl Fn(&mut Object<'_>, &str, Top)) -> Outcome {
    let asked = asked_books(call, tokens::asked(call)?);
    let mut out = Vec::with_capacity(64 + 96 * asked.len());
    object(&mut out, |o| {
        for BatchBook { cell, instrument, top, .. } in asked {
            write(o, cell.token(instrument.outcome()), top);
        }
    });
    Ok(Reply::json(out))
}

async fn prices(call: Call) -> Outcome {
    match tokens::in_query(&call.query(), Sides::Read)? {
        Some(wanted) => Ok(sides(asked_books(&call, wanted))),
        None => every_price(&call).await,
    }
}

async fn prices_of_body(call: Call) -> Outcome {
    let Some(body) = call.json()? else {
        return Err(Refusal::saying(Code::InvalidBody, "The body is empty."));
    };
    match tokens::in_old_body(&body)? {
        Some(wanted) => Ok(rows(asked_books(&call, wanted))),
        None => Ok(sides(asked_books(&call, tokens::in_body(&body, Sides::Read)?))),
    }
}

/// The best prices of every token that has any.
async fn every_price(call: &Call) -> Outcome {
    let reads = call.reads();
    let mut out = vec![b'{'];
    for (count, cell) in reads.catalog.iter().enumerate() {
        for outcome in [MarketOutcome::First, MarketOutcome::Second] {
            let instrument = cell.instrument(outcome);
            if let Some(top) = book_of(reads, instrument, cell) {
                write_sides(&mut out, &BatchBook { cell, instrument, top, sides: BOTH });
            }
        }
        if (count + 1).is_multiple_of(MARKETS_PER_TURN) {
            tokio::task::yield_now().await;
        }
    }
    out.push(b'}');
    Ok(Reply::json(out))
}

/// Best prices by token: BUY names the best bid, SELL the best ask.
fn sides(asked: Vec<BatchBook<'_>>) -> Reply {
    let mut out = Vec::with_capacity(64 + 128 * asked.len());
    out.push(b'{');
    for asked in asked {
        write_sides(&mut out, &asked);
    }
    out.push(b'}');
    Reply::json(out)
}

/// One entry of that map; nothing when no side that was asked for has a price.
fn write_sides(out: &mut Vec<u8>, asked: &BatchBook<'_>) {
    let BatchBook { cell, instrument, top, sides } = asked;
    let shown = NAMES.iter().zip(sides).filter(|(_, wanted)| **wanted);
    let shown = shown.filter_map(|((side, name), _)| Some((name, top.price(*side)?)));
    if shown.clone().next().is_none() {
        return;
    }
    separate(out);
    string(out, cell.token(instrument.outcome()));
    out.push(b':');
    object(out, |o| shown.for_each(|(name, price)| o.price(name, price)));
}

/// The older shape: a row for each token with a book.
fn rows(asked: Vec<BatchBook<'_>>) -> Reply {
    let mut out = Vec::with_capacity(64 + 160 * asked.len());
    array(&mut out, asked, |out, BatchBook { cell, instrument, top, .. }| {
        object(out, |o| {
            o.text("token_id", cell.token(instrument.outcome()));
            o.or_null("price", top.midpoint(), Object::average);
            o.or_null("bid", top.price(BookSide::Bid), Object::price);
            o.or_null("ask", top.price(BookSide::Ask), Object::price);
        });
    });
    Reply::json(out)
}

async fn last_trades(call: Call) -> Outcome {
    let wanted = tokens::asked(&call)?;
    let reads = call.reads();
    let found = wanted.iter().filter_map(|wanted| {
        let (instrument, cell) = find(&reads.catalog, &wanted.token)?;
        Some((instrument, cell, reads.books.last_price(instrument)?))
    });
    let mut out = Vec::with_capacity(64 + 128 * wanted.len());
    array(&mut out, found, |out, (instrument, cell, last)| {
        object(out, |o| {
            o.text("token_id", cell.token(instrument.outcome()));
            o.price("price", last.price);
            o.word("side", taker_word(&last));
        });
    });
    Ok(Reply::json(out))
}

const NAMES: [(BookSide, &str); 2] = [(BookSide::Bid, "BUY"), (BookSide::Ask, "SELL")];
const BOTH: [bool; 2] = [true; 2];

/// A token that was asked for, with its book.
struct BatchBook<'a> {
    cell: &'a MarketCell,
    instrument: InstrumentId,
    top: Top,
    /// Which of [`NAMES`] were asked for.
    sides: [bool; 2],
}

/// The books of a batch in its order, each once: a token that is named twice is asked for all that both name.
fn asked_books(call: &Call, wanted: Vec<BatchItem>) -> Vec<BatchBook<'_>> {
    let reads = call.reads();
    let mut places = AHashMap::with_capacity(wanted.len());
    let mut asked: Vec<BatchBook<'_>> = Vec::with_capacity(wanted.len());
    for BatchItem { token, side } in wanted {
        let Some((instrument, cell)) = find(&reads.catalog, &token) else { continue };
        let place = *places.entry(instrument).or_insert_with(|| {
            let top = book_of(reads, instrument, cell)?;
            asked.push(BatchBook { cell, instrument, top, sides: [false; 2] });
            Some(asked.len() - 1)
        });
        let Some(place) = place else { continue };
        for ((named, _), wanted) in NAMES.iter().zip(&mut asked[place].sides) {
            *wanted |= side.is_none_or(|side| side == *named);
        }
    }
    asked
}
