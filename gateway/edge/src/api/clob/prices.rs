//! Prices of many tokens in one request (gateway/docs/venue-clients.md §1.3): midpoints, best prices, spreads, last trades.
//! Unknown tokens and tokens without such a price are left out.

use super::requests::{PriceBatch, TokenBatch};
use super::tokens::{self, BatchItem, Sides};
use crate::api::prices::{TakerSide, taker_side, top_of};
use crate::api::tokens::find;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{ByName, Example, Record as _, record, value};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{BodyKind, Route};
use crate::http::scalar::{Price, TokenId};
use crate::http::schema::{Param, TEXT};
use crate::http::turns::LongList;
use ahash::AHashMap;
use engine::amount;
use engine::book::{BookSide, Top};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;

/// Markets whose prices are written before other tasks of the thread run.
const MARKETS_PER_TURN: usize = 500;
const TOKENS: &[Code] = &[Code::InvalidBody, Code::InvalidTokenId];
const TOKENS_AND_SIDES: &[Code] = &[Code::InvalidBody, Code::InvalidTokenId, Code::InvalidRequest];

const TOKEN_LIST: &[Param] =
    &[Param::query("token_ids", TEXT, "Tokens with commas between them, 1 to 500.").required()];
const TOKEN_LIST_OR_BODY: &[Param] = &[Param::query("token_ids", TEXT, "Without a body: the tokens, 1 to 500.")];
const TOKEN_AND_SIDE_LISTS: &[Param] = &[
    Param::query(
        "token_ids",
        TEXT,
        "Tokens with commas between them, 1 to 500; every token with a book when left out.",
    ),
    Param::query("sides", TEXT, "A side for each of the tokens; both of each when left out."),
];

type PriceByToken<'a> = ByName<TokenId<'a>, Price>;
type BestByToken<'a> = ByName<TokenId<'a>, BestPrices>;

const PRICE_BY_TOKEN: Example = Example::Of(|| value(&ByName(vec![(TokenId::from("81140002"), Price::of("0.395"))])));
const BEST_BY_TOKEN: Example = Example::Of(|| value(&ByName(vec![(TokenId::from("81140002"), BestPrices::example())])));

record! {
    /// Best prices of the requested sides. A side without one is left out.
    pub struct BestPrices {
        #[serde(rename = "BUY")]
        buy: Option<Price> = Some(Price::of("0.38")), "Best bid.", skip_serializing_if;
        #[serde(rename = "SELL")]
        sell: Option<Price> = Some(Price::of("0.41")), "Best ask.", skip_serializing_if;
    }

    /// Prices of one token, the older form.
    pub struct PriceRow<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        price: Option<Price> = Some(Price::of("0.395")), "Half way between the best prices.";
        bid: Option<Price> = Some(Price::of("0.38")), "Best bid.";
        ask: Option<Price> = Some(Price::of("0.41")), "Best ask.";
    }

    /// The last trade of one token.
    pub struct LastTradeRow<'a> {
        token_id: TokenId<'a> = "81140002".into(), "The outcome token.";
        price: Price = Price::of("0.39"), "Per share.";
        side: TakerSide = "SELL".into(), "What the taker did; empty where the venue states only the price.";
    }
}

pub const ROUTES: &[Route] = &[
    Route::get("/v1/midpoints", "get_midpoints")
        .about("Half way between the best prices, by token; tokens without both are left out.")
        .at_root()
        .params(TOKEN_LIST)
        .gives_with::<PriceByToken<'_>>(200, PRICE_BY_TOKEN)
        .fails(TOKENS)
        .answer(midpoints),
    Route::post("/v1/midpoints", "post_midpoints")
        .about("Half way between the best prices, by token; tokens without both are left out.")
        .at_root()
        .takes::<TokenBatch<'_>>()
        .gives_with::<PriceByToken<'_>>(200, PRICE_BY_TOKEN)
        .fails(TOKENS)
        .answer(midpoints),
    Route::get("/v1/prices", "get_prices")
        .about("Best prices by token and side; tokens without any are left out.")
        .at_root()
        .params(TOKEN_AND_SIDE_LISTS)
        .gives_with::<BestByToken<'_>>(200, BEST_BY_TOKEN)
        .fails(TOKENS_AND_SIDES)
        .run(|call| Box::pin(prices(call))),
    Route::post("/v1/prices", "post_prices")
        .about("Best prices by token and side; tokens without any are left out.")
        .at_root()
        .takes::<PriceBatch<'_>>()
        .gives_with::<BestByToken<'_>>(200, BEST_BY_TOKEN)
        .gives::<Vec<PriceRow<'_>>>(200)
        .fails(TOKENS_AND_SIDES)
        .answer(prices_of_body),
    Route::get("/v1/spreads", "get_spreads")
        .about("Best ask less best bid, by token; tokens without both are left out.")
        .at_root()
        .params(TOKEN_LIST)
        .gives_with::<PriceByToken<'_>>(200, PRICE_BY_TOKEN)
        .fails(TOKENS)
        .answer(spreads),
    Route::post("/v1/spreads", "post_spreads")
        .about("Best ask less best bid, by token; tokens without both are left out.")
        .at_root()
        .takes::<TokenBatch<'_>>()
        .gives_with::<PriceByToken<'_>>(200, PRICE_BY_TOKEN)
        .fails(TOKENS)
        .answer(spreads),
    // One client sends its list as the body of a GET.
    Route::get("/v1/last-trades-prices", "get_last_trades_prices")
        .about("Last trades; tokens that were never traded are left out.")
        .at_root()
        .body(BodyKind::Optional)
        .params(TOKEN_LIST_OR_BODY)
        .takes::<TokenBatch<'_>>()
        .gives::<Vec<LastTradeRow<'_>>>(200)
        .fails(TOKENS)
        .answer(last_trades),
    Route::post("/v1/last-trades-prices", "post_last_trades_prices")
        .about("Last trades; tokens that were never traded are left out.")
        .at_root()
        .takes::<TokenBatch<'_>>()
        .gives::<Vec<LastTradeRow<'_>>>(200)
        .fails(TOKENS)
        .answer(last_trades),
];

fn midpoints(call: &Call) -> Outcome {
    by_token(call, |top| top.midpoint().map(Price))
}

fn spreads(call: &Call) -> Outcome {
    by_token(call, |top| {
        let (bid, ask) = (top.price(BookSide::Bid)?, top.price(BookSide::Ask)?);
        Some(amount::Price(ask.0.saturating_sub(bid.0)).into())
    })
}

/// One price by token; tokens whose book has none are left out.
fn by_token(call: &Call, price: impl Fn(Top) -> Option<Price>) -> Outcome {
    let books = requested_books(call, tokens::requested(call)?);
    let prices = books.iter().filter_map(|book| Some((book.token(), price(book.top)?)));
    Ok(Reply::json(&ByName(prices.collect())))
}

async fn prices(call: Call) -> Outcome {
    match tokens::in_query(&call.query(), Sides::Read)? {
        Some(items) => Ok(sides(&requested_books(&call, items))),
        None => every_price(&call).await,
    }
}

fn prices_of_body(call: &Call) -> Outcome {
    let Some(body) = call.json()? else {
        return Err(Refusal::new(Code::InvalidBody, "The body is empty."));
    };
    match tokens::in_old_body(&body)? {
        Some(items) => Ok(rows(&requested_books(call, items))),
        None => Ok(sides(&requested_books(call, tokens::in_body(&body, Sides::Read)?))),
    }
}

/// The best prices of every token that has any.
async fn every_price(call: &Call) -> Outcome {
    let reads = call.reads();
    let mut list = LongList::by_name(MARKETS_PER_TURN);
    for cell in reads.catalog.iter() {
        list.turns.work(1).await;
        for outcome in [MarketOutcome::First, MarketOutcome::Second] {
            let instrument = cell.instrument(outcome);
            let book = top_of(reads, instrument, cell).map(|top| BatchBook { cell, instrument, top, sides: BOTH });
            if let Some((token, prices)) = book.and_then(|book| book.best_prices()) {
                list.push_entry(&token, &prices);
            }
        }
    }
    Ok(list.reply())
}

/// Best prices by token: BUY names the best bid, SELL the best ask.
fn sides(books: &[BatchBook<'_>]) -> Reply {
    Reply::json(&ByName(books.iter().filter_map(BatchBook::best_prices).collect()))
}

/// The older shape: a row for each token with a book.
fn rows(books: &[BatchBook<'_>]) -> Reply {
    let rows = books.iter().map(|book| PriceRow {
        token_id: book.token(),
        price: book.top.midpoint().map(Price),
        bid: book.top.price(BookSide::Bid).map(Price::from),
        ask: book.top.price(BookSide::Ask).map(Price::from),
    });
    Reply::json(&rows.collect::<Vec<_>>())
}

fn last_trades(call: &Call) -> Outcome {
    let items = tokens::requested(call)?;
    let reads = call.reads();
    let rows = items.iter().filter_map(|item| {
        let (instrument, cell) = find(&reads.catalog, &item.token)?;
        let last = reads.books.last_price(instrument)?;
        let token_id = cell.token(instrument.outcome()).into();
        Some(LastTradeRow { token_id, price: last.price.into(), side: taker_side(&last) })
    });
    Ok(Reply::json(&rows.collect::<Vec<_>>()))
}

const SIDES: [BookSide; 2] = [BookSide::Bid, BookSide::Ask];
const BOTH: [bool; 2] = [true; 2];

/// A requested token with its book.
struct BatchBook<'a> {
    cell: &'a MarketCell,
    instrument: InstrumentId,
    top: Top,
    /// Which of [`SIDES`] were requested.
    sides: [bool; 2],
}

impl<'a> BatchBook<'a> {
    fn token(&self) -> TokenId<'a> {
        self.cell.token(self.instrument.outcome()).into()
    }

    /// One entry of [`BestByToken`], if one of the requested sides has a price.
    fn best_prices(&self) -> Option<(TokenId<'a>, BestPrices)> {
        let [is_buy, is_sell] = self.sides;
        let buy = self.top.price(BookSide::Bid).filter(|_| is_buy).map(Price::from);
        let sell = self.top.price(BookSide::Ask).filter(|_| is_sell).map(Price::from);
        (buy.is_some() || sell.is_some()).then(|| (self.token(), BestPrices { buy, sell }))
    }
}

/// The books of a batch in its order. A token that the batch names twice has one entry with the sides of both.
fn requested_books(call: &Call, items: Vec<BatchItem>) -> Vec<BatchBook<'_>> {
    let reads = call.reads();
    let mut places = AHashMap::with_capacity(items.len());
    let mut books: Vec<BatchBook<'_>> = Vec::with_capacity(items.len());
    for BatchItem { token, side } in items {
        let Some((instrument, cell)) = find(&reads.catalog, &token) else { continue };
        let place = *places.entry(instrument).or_insert_with(|| {
            let top = top_of(reads, instrument, cell)?;
            books.push(BatchBook { cell, instrument, top, sides: [false; 2] });
            Some(books.len() - 1)
        });
        let Some(place) = place else { continue };
        for (known, requested) in SIDES.iter().zip(&mut books[place].sides) {
            *requested |= side.is_none_or(|side| side == *known);
        }
    }
    books
}
