//! Books (gateway/docs/market-data.md §8): the venue's own book of a token, without orders and depletion of this server.

pub mod records;
pub mod text_cache;
pub mod view;

use super::clob::tokens::items as batch_items;
use super::orders::terms::outcome_labelled;
use super::tokens;
use crate::http::buffer;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::dialect;
use crate::http::record::Example;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::Route;
use crate::http::schema::{Param, Schema, TEXT, TOKEN_ID};
use crate::http::turns::LongList;
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;
use records::{Book, BookBatch};
use view::BookRequest;
use wire::fields::{Body, Params};
use wire::query::Query;
use wire::value::Value;

const DEPTH_MAX: u64 = 500;
/// Books of a batch that are written before other tasks of the thread run.
const BOOKS_PER_TURN: usize = 8;

const DEPTH: Param = Param::query(
    "depth",
    Schema::Integer { min: 1, max: DEPTH_MAX as i64 },
    "The best levels of each side; all when left out.",
);
const OUTCOME: Param = Param::query("outcome", TEXT, "Label of the outcome; the first one when left out.");

pub const ROUTES: &[Route] = &[
    Route::get("/v1/book", "get_book")
        .headless()
        .about("The book of a token.")
        .at_root()
        .no_store()
        .params(&[Param::query("token_id", TOKEN_ID, "The outcome token (alias: token).").required(), DEPTH])
        .gives::<Book<'_>>(200)
        .fails(&[Code::InvalidTokenId, Code::BookUnavailable, Code::ValidationFailed])
        .answer(by_query),
    Route::get("/v1/clob/book/{token_id}", "get_clob_book")
        .headless()
        .about("The book of a token.")
        .at_root()
        .no_store()
        .params(&[DEPTH])
        .gives::<Book<'_>>(200)
        .fails(&[Code::BookUnavailable, Code::ValidationFailed])
        .answer(by_path),
    Route::get("/v1/markets/{condition_id}/book", "get_market_book")
        .headless()
        .about("The book of one outcome of a market.")
        .at_root()
        .no_store()
        .params(&[OUTCOME, Param::query("token_id", TOKEN_ID, "Instead of the label: the outcome's token."), DEPTH])
        .gives::<Book<'_>>(200)
        .fails(&[Code::MarketNotFound, Code::BookUnavailable, Code::ValidationFailed])
        .answer(by_market),
    Route::post("/v1/books", "get_books")
        .about("The books of many tokens; those without a book are left out.")
        .at_root()
        .no_store()
        .params(&[DEPTH])
        .takes::<BookBatch<'_>>()
        .gives_with::<Vec<Book<'_>>>(200, Example::Text("[]"))
        .fails(&[Code::InvalidBody, Code::InvalidTokenId, Code::ValidationFailed])
        .run(|call| Box::pin(batch(call))),
];

fn by_query(call: &Call) -> Outcome {
    let query = call.query();
    // A condition id in place of a token has a refusal of its own.
    let is_condition = query.first_of(&["token_id", "token"]).is_some_and(|token| token.starts_with("0x"));
    let token = if is_condition { Err(Code::BookUnavailable) } else { tokens::token_id(&query) }?;
    by_token(call, &query, token)
}

fn by_path(call: &Call) -> Outcome {
    by_token(call, &call.query(), &call.variable(0))
}

fn by_token(call: &Call, query: &Query<'_>, token: &str) -> Outcome {
    let levels_max = depth(query)?;
    let (instrument, cell) = tokens::find(&call.reads().catalog, token).ok_or(Code::BookUnavailable)?;
    one(call, request(call, cell, instrument, levels_max))
}

fn by_market(call: &Call) -> Outcome {
    let query = call.query();
    let levels_max = depth(&query)?;
    let catalog = &call.reads().catalog;
    let market = catalog.by_condition(&call.variable(0)).and_then(|market| catalog.market(market));
    let cell = market.ok_or(Code::MarketNotFound)?;
    // The outcome by its label or by its token id.
    let outcome = match query.first_of(&["outcome", "token_id", "token"]) {
        None => MarketOutcome::First,
        Some(name) => {
            let by_token = catalog.by_token(name).filter(|instrument| instrument.market() == cell.id);
            let outcome = outcome_labelled(cell, name).or(by_token.map(|instrument| instrument.outcome()));
            outcome.ok_or(Code::MarketNotFound)?
        }
    };
    one(call, request(call, cell, cell.instrument(outcome), levels_max))
}

fn request<'a>(
    call: &Call,
    cell: &'a MarketCell,
    instrument: InstrumentId,
    levels_max: Option<usize>,
) -> BookRequest<'a> {
    let is_strict =
        call.dialect().is_strict() || dialect::is_nameless_client(call.front(), &call.headers, &call.query());
    BookRequest { cell, instrument, levels_max, is_strict }
}

fn one(call: &Call, request: BookRequest<'_>) -> Outcome {
    let mut out = buffer::take();
    match view::cached_book(&mut out, request, &call.edge, call.now) {
        Ok(()) => Ok(Reply::json(out)),
        Err(_) => {
            buffer::give_back(out);
            Err(Code::BookUnavailable.into())
        }
    }
}

/// `depth`: levels of each side, all when absent.
fn depth(query: &Query<'_>) -> Result<Option<usize>, Refusal> {
    let mut params = Params::new(query);
    let depth = params.integer("depth", 1..=DEPTH_MAX);
    if params.problems.is_empty() {
        Ok(depth.map(|depth| depth as usize))
    } else {
        Err(Refusal::validation(&params.problems))
    }
}

async fn batch(call: Call) -> Outcome {
    let default = depth(&call.query())?;
    let Some(body) = call.json()? else {
        return Err(Refusal::new(Code::InvalidBody, "The body is empty."));
    };
    let mut list = LongList::alone(BOOKS_PER_TURN);
    for item in batch_items(&body)? {
        list.turns.work(1).await;
        let (token, levels_max) = entry(item, default)?;
        if let Some((instrument, cell)) = tokens::find(&call.reads().catalog, token) {
            let request = request(&call, cell, instrument, levels_max);
            // A token without a book is left out, as the venue does.
            list.push_with(|out| view::cached_book(out, request, &call.edge, call.now));
        }
    }
    Ok(list.reply())
}

/// Token and depth of one entry.
fn entry<'a>(item: &'a Value<'_>, default: Option<usize>) -> Result<(&'a str, Option<usize>), Refusal> {
    let token = match item.get("token_id") {
        Some(Value::Text(token)) if tokens::well_formed(token) => token,
        _ => return Err(Code::InvalidTokenId.into()),
    };
    let mut fields = Body::new(item);
    let depth = fields.integer("depth", 1..=DEPTH_MAX);
    if !fields.problems.is_empty() {
        return Err(Refusal::validation(&fields.problems));
    }
    Ok((token, depth.map(|depth| depth as usize).or(default)))
}

#[cfg(test)]
mod tests;
