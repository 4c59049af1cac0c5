//! Small public reads of one token (gateway/docs/market-data.md §9, gateway/docs/venue-clients.md §1): prices, grid,
//! fees, market, time.

use super::orders::words::SIDES;
use super::tokens;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{Record, forms, record};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::Route;
use crate::http::scalar::{self, ConditionId, Number, Price, TokenId, words};
use crate::http::schema::{Param, Schema, TOKEN_ID};
use crate::reads::Reads;
use engine::amount;
use engine::book::{BookSide, LastPrice, Top};
use engine::id::{InstrumentId, Outcome as MarketOutcome};
use engine::market::catalog::MarketCell;
use engine::order::Side;
use engine::time::{MILLISECOND, Timestamp};
use schemars::JsonSchema;
use serde::Serialize;
use wire::query::Query;

/// The venue's base fee of every market that takes fees at all.
const BASE_FEE: u64 = 1_000;
const BOOK: &[Code] = &[Code::InvalidTokenId, Code::BookUnavailable];
const MARKET: &[Code] = &[Code::InvalidTokenId, Code::MarketNotFound];

pub const ROUTES: &[Route] = &[
    Route::get("/v1/midpoint", "get_midpoint")
        .headless()
        .about("Half way between the best prices of a token.")
        .at_root()
        .params(TOKEN)
        .gives::<Midpoint>(200)
        .fails(BOOK)
        .answer(midpoint),
    Route::get("/v1/price", "get_price")
        .headless()
        .about("The best price of one side of a token.")
        .at_root()
        .params(TOKEN_AND_SIDE)
        .gives::<BestPrice>(200)
        .fails(&[Code::InvalidTokenId, Code::InvalidRequest, Code::BookUnavailable])
        .answer(price),
    Route::get("/v1/spread", "get_spread")
        .headless()
        .about("The best prices of a token and the difference between them.")
        .at_root()
        .params(TOKEN)
        .gives::<Spread>(200)
        .fails(BOOK)
        .answer(spread),
    Route::get("/v1/last-trade-price", "get_last_trade_price")
        .headless()
        .about("The last trade of a token.")
        .at_root()
        .params(TOKEN)
        .gives::<LastTrade>(200)
        .fails(MARKET)
        .answer(last_trade_price),
    Route::get("/v1/tick-size", "get_tick_size")
        .about("The grid of prices of a token.")
        .at_root()
        .params(TOKEN)
        .gives::<TickSize>(200)
        .fails(MARKET)
        .answer(tick_size),
    Route::get("/v1/tick-size/{token_id}", "get_tick_size_of")
        .about("The grid of prices of a token.")
        .at_root()
        .gives::<TickSize>(200)
        .fails(&[Code::MarketNotFound])
        .answer(tick_size),
    Route::get("/v1/neg-risk", "get_neg_risk")
        .about("Whether a token's market belongs to a group with one winner.")
        .at_root()
        .params(TOKEN)
        .gives::<NegRisk>(200)
        .fails(MARKET)
        .answer(neg_risk),
    Route::get("/v1/neg-risk/{token_id}", "get_neg_risk_of")
        .about("Whether a token's market belongs to a group with one winner.")
        .at_root()
        .gives::<NegRisk>(200)
        .fails(&[Code::MarketNotFound])
        .answer(neg_risk),
    Route::get("/v1/fee-rate", "get_fee_rate")
        .about("What takers pay in a token's market.")
        .at_root()
        .params(TOKEN)
        .gives::<FeeRate>(200)
        .fails(MARKET)
        .answer(fee_rate),
    Route::get("/v1/fee-rate/{token_id}", "get_fee_rate_of")
        .about("What takers pay in a token's market.")
        .at_root()
        .gives::<FeeRate>(200)
        .fails(&[Code::MarketNotFound])
        .answer(fee_rate),
    Route::get("/v1/markets-by-token/{token_id}", "get_market_by_token")
        .about("The market of a token.")
        .at_root()
        .gives::<MarketOfToken>(200)
        .fails(&[Code::TokenNotFound])
        .answer(market_by_token),
    Route::get("/v1/time", "get_time")
        .about("The time of this server, unix seconds.")
        .at_root()
        .no_store()
        .gives::<UnixSeconds>(200)
        .answer(time),
];

const TOKEN: &[Param] = &[Param::query("token_id", TOKEN_ID, "The outcome token (alias: token).").required()];
const TOKEN_AND_SIDE: &[Param] = &[
    Param::query("token_id", TOKEN_ID, "The outcome token (alias: token).").required(),
    Param::query("side", Schema::Word(&["BUY", "SELL"]), "BUY: the best bid; SELL: the best ask. In any case.")
        .required(),
];

words! {
    // The price before the first trade.
    NoTradePrice = "0.5";
    pub TakerSide = "BUY", "SELL", "";
}

forms! {
    LastTradePrice = Known(Price), NoTrade(NoTradePrice); LastTradePrice::Known(Price::of("0.39"));
}

record! {
    /// Half way between the best prices.
    struct Midpoint {
        mid: Price = Price::of("0.395"), "Per share.";
        mid_price: Price = Price::of("0.395"), "The same.";
    }

    /// The best price of one side.
    struct BestPrice {
        price: Price = Price::of("0.38"), "Per share.";
        quote_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-11-21T09:20:01.120000Z")),
            "When it was last confirmed; null when that is unknown.";
        age_ms: Option<u64> = Some(310), "How long ago that was.";
    }

    /// The best prices and the difference between them.
    struct Spread {
        spread: Price = Price::of("0.03"), "Best ask less best bid.";
        bid: Price = Price::of("0.38"), "Best bid.";
        ask: Price = Price::of("0.41"), "Best ask.";
        best_bid: Price = Price::of("0.38"), "The same as bid.";
        best_ask: Price = Price::of("0.41"), "The same as ask.";
    }

    /// The last trade; 0.5 and no side before the first one.
    struct LastTrade {
        price: LastTradePrice = LastTradePrice::example(), "Per share.";
        side: TakerSide = "SELL".into(), "What the taker did; empty where the venue states only the price.";
    }

    /// The grid of prices.
    struct TickSize {
        minimum_tick_size: Number = Number::of("0.01"), "A number in its shortest form.";
    }

    /// Whether the market belongs to a group with one winner.
    struct NegRisk {
        neg_risk: bool = false, "It does.";
    }

    /// What takers pay.
    struct FeeRate {
        #[schemars(range(min = 0, max = BASE_FEE))]
        base_fee: u64 = 1_000, "The fee rate that clients write into a signed order; 0 in a market without fees.";
        #[schemars(range(min = 0, max = 10_000))]
        fee_rate_bps: u32 = 400, "The rate that a fill is charged now, in basis points.";
    }

    /// The market of a token.
    struct MarketOfToken<'a> {
        condition_id: ConditionId<'a> =
            "0x0f41cbd7fdb1e11dd2e1bbe2e4d5c5a3a4ac5ee6f6c8d8b6fb2f4eb0f1c2d3e4".into(), "The market.";
        primary_token_id: TokenId<'a> = "81140002".into(), "Token of the first outcome.";
        secondary_token_id: TokenId<'a> = "55200077".into(), "Token of the second outcome.";
        outcome: &'a str = "Yes", "The outcome of the token in the path.";
    }
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct UnixSeconds(u64);

impl Record for UnixSeconds {
    fn example() -> UnixSeconds {
        UnixSeconds(1_793_871_202)
    }
}

fn midpoint(call: &Call) -> Outcome {
    let (_, top) = top(call.reads(), &call.query())?;
    let mid = top.midpoint().ok_or(Code::BookUnavailable)?;
    Ok(Reply::json(&Midpoint { mid: Price(mid), mid_price: Price(mid) }))
}

/// BUY names the best bid, SELL the best ask.
fn price(call: &Call) -> Outcome {
    let query = call.query();
    tokens::token_id(&query)?;
    let side = side(query.get("side"))?;
    let (instrument, top) = top(call.reads(), &query)?;
    let price = top.price(side).ok_or(Code::BookUnavailable)?;
    let books = &call.reads().books;
    let age = books.quote_age(instrument, call.now);
    let quote_at = age.map(|age| Timestamp(books.venue_now(call.now).0.saturating_sub(age)));
    Ok(Reply::json(&BestPrice {
        price: price.into(),
        quote_at: quote_at.map(scalar::Timestamp),
        age_ms: age.map(|age| age / MILLISECOND),
    }))
}

/// The side of a book that a word names, in any case: BUY the bids, SELL the asks.
///
/// # Errors
/// `INVALID_REQUEST`, in the venue's words, for anything else.
pub fn side(word: Option<&str>) -> Result<BookSide, Refusal> {
    let named = word.and_then(|text| SIDES.iter().find(|(word, _)| text.eq_ignore_ascii_case(word)));
    match named {
        Some((_, Side::Buy)) => Ok(BookSide::Bid),
        Some((_, Side::Sell)) => Ok(BookSide::Ask),
        None => Err(invalid_side()),
    }
}

pub fn invalid_side() -> Refusal {
    Refusal::new(Code::InvalidRequest, "Invalid side")
}

fn spread(call: &Call) -> Outcome {
    let (_, top) = top(call.reads(), &call.query())?;
    let (Some(bid), Some(ask)) = (top.price(BookSide::Bid), top.price(BookSide::Ask)) else {
        return Err(Code::BookUnavailable.into());
    };
    let spread = amount::Price(ask.0.saturating_sub(bid.0)).into();
    let (bid, ask) = (bid.into(), ask.into());
    Ok(Reply::json(&Spread { spread, bid, ask, best_bid: bid, best_ask: ask }))
}

/// Best levels of the token that the query names.
fn top(reads: &Reads, query: &Query<'_>) -> Result<(InstrumentId, Top), Refusal> {
    let (instrument, cell) = tokens::find(&reads.catalog, tokens::token_id(query)?).ok_or(Code::BookUnavailable)?;
    Ok((instrument, top_of(reads, instrument, cell).ok_or(Code::BookUnavailable)?))
}

/// Best levels of an instrument; `None` without a book, and once the market is resolved.
pub fn top_of(reads: &Reads, instrument: InstrumentId, cell: &MarketCell) -> Option<Top> {
    if cell.resolution().is_some() { None } else { reads.books.best(instrument).ok() }
}

/// Side of the taker in the last trade; empty where the venue stated only the price.
pub fn taker_side(last: &LastPrice) -> TakerSide {
    last.trade.map_or("", |trade| if trade.taker_buys { "BUY" } else { "SELL" }).into()
}

fn last_trade_price(call: &Call) -> Outcome {
    let (instrument, _) = token_of(call, "market not found")?;
    let last = call.reads().books.last_price(instrument);
    Ok(Reply::json(&match last {
        Some(last) => LastTrade { price: LastTradePrice::Known(last.price.into()), side: taker_side(&last) },
        None => LastTrade { price: LastTradePrice::NoTrade("0.5".into()), side: "".into() },
    }))
}

fn tick_size(call: &Call) -> Outcome {
    let (_, cell) = token_of(call, "market not found")?;
    Ok(Reply::json(&TickSize { minimum_tick_size: cell.tick().into() }))
}

fn neg_risk(call: &Call) -> Outcome {
    let (_, cell) = token_of(call, "market not found")?;
    Ok(Reply::json(&NegRisk { neg_risk: cell.listing.neg_risk }))
}

fn fee_rate(call: &Call) -> Outcome {
    let (_, cell) = token_of(call, "fee rate not found for market")?;
    let bps = call.reads().rules.fees.shown(cell).bps().0;
    Ok(Reply::json(&FeeRate { base_fee: base_fee(bps), fee_rate_bps: bps }))
}

/// What clients put into their orders as a fee, at this rate.
pub fn base_fee(bps: u32) -> u64 {
    if bps == 0 { 0 } else { BASE_FEE }
}

/// The token of the path, else of the query, with its market; `unknown` is the venue's message for an unknown token. In
/// a path a malformed id is an unknown one.
fn token_of<'a>(call: &'a Call, unknown: &'static str) -> Result<(InstrumentId, &'a MarketCell), Refusal> {
    let catalog = &call.reads().catalog;
    let found = if call.route.path.ends_with('}') {
        tokens::find(catalog, &call.variable(0))
    } else {
        tokens::find(catalog, tokens::token_id(&call.query())?)
    };
    found.ok_or_else(|| Refusal::new(Code::MarketNotFound, unknown))
}

fn market_by_token(call: &Call) -> Outcome {
    let found = tokens::find(&call.reads().catalog, &call.variable(0));
    let (instrument, cell) = found.ok_or(Code::TokenNotFound)?;
    Ok(Reply::json(&MarketOfToken {
        condition_id: cell.listing.condition.as_str().into(),
        primary_token_id: cell.token(MarketOutcome::First).into(),
        secondary_token_id: cell.token(MarketOutcome::Second).into(),
        outcome: cell.outcome(instrument.outcome()),
    }))
}

/// Bare unix seconds.
fn time(call: &Call) -> Outcome {
    Ok(Reply::json(&UnixSeconds(call.now.secs())))
}

#[cfg(test)]
mod tests {
    use crate::api::testing::{Text as _, Town};

    #[test]
    fn small_reads_answer_as_in_the_contract() {
        let town = Town::new();
        for (target, expected) in [
            ("/v1/midpoint?token_id=81140002", r#"{"mid":"0.415","mid_price":"0.415"}"#),
            ("/v1/midpoint?token=81140002", r#"{"mid":"0.415","mid_price":"0.415"}"#),
            (
                "/v1/price?token_id=81140002&side=buy",
                r#"{"price":"0.41","quote_at":"2026-10-02T09:14:04.690000Z","age_ms":310}"#,
            ),
            (
                "/v1/price?token_id=81140002&side=SELL",
                r#"{"price":"0.42","quote_at":"2026-10-02T09:14:04.690000Z","age_ms":310}"#,
            ),
            (
                "/v1/spread?token_id=81140002",
                r#"{"spread":"0.01","bid":"0.41","ask":"0.42","best_bid":"0.41","best_ask":"0.42"}"#,
            ),
            ("/v1/last-trade-price?token_id=81140002", r#"{"price":"0.42","side":"BUY"}"#),
            ("/v1/last-trade-price?token_id=55200077", r#"{"price":"0.5","side":""}"#),
            ("/v1/tick-size?token_id=81140002", r#"{"minimum_tick_size":0.01}"#),
            ("/v1/tick-size/81140002", r#"{"minimum_tick_size":0.01}"#),
            ("/v1/neg-risk?token_id=81140002", r#"{"neg_risk":false}"#),
            ("/v1/neg-risk/81140002", r#"{"neg_risk":false}"#),
            ("/v1/fee-rate?token_id=81140002", r#"{"base_fee":1000,"fee_rate_bps":500}"#),
            ("/v1/fee-rate/90000001", r#"{"base_fee":0,"fee_rate_bps":0}"#),
            ("/v1/time", "1790932445"),
        ] {
            let answer = town.send("GET", target, "");
            assert_eq!((answer.status, answer.text()), (200, expected), "{target}");
        }
        let answer = town.send("GET", "/v1/markets-by-token/55200077", "");
        let expected = format!(
            r#"{{"condition_id":"{}","primary_token_id":"81140002","secondary_token_id":"55200077","outcome":"No"}}"#,
            town.condition()
        );
        assert_eq!(answer.text(), expected);
    }

    #[test]
    fn what_is_not_there_has_the_venues_words() {
        let town = Town::new();
        for (target, status, code, message) in [
            ("/v1/midpoint", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/midpoint?token_id=", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/midpoint?token_id=0x51", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/midpoint?token_id=5", 404, "BOOK_UNAVAILABLE", "No orderbook exists for the requested token id"),
            (
                "/v1/midpoint?token_id=90000001",
                404,
                "BOOK_UNAVAILABLE",
                "No orderbook exists for the requested token id",
            ),
            ("/v1/price?token_id=81140002", 400, "INVALID_REQUEST", "Invalid side"),
            ("/v1/price?token_id=81140002&side=x", 400, "INVALID_REQUEST", "Invalid side"),
            ("/v1/price?side=buy", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/spread?token_id=90000001", 404, "BOOK_UNAVAILABLE", "No orderbook exists for the requested token id"),
            ("/v1/last-trade-price?token_id=5", 404, "MARKET_NOT_FOUND", "market not found"),
            ("/v1/tick-size?token_id=5", 404, "MARKET_NOT_FOUND", "market not found"),
            ("/v1/tick-size/x", 404, "MARKET_NOT_FOUND", "market not found"),
            ("/v1/tick-size", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/neg-risk?token_id=5", 404, "MARKET_NOT_FOUND", "market not found"),
            ("/v1/fee-rate?token_id=5", 404, "MARKET_NOT_FOUND", "fee rate not found for market"),
            ("/v1/fee-rate", 400, "INVALID_TOKEN_ID", "Invalid token id"),
            ("/v1/markets-by-token/5", 404, "TOKEN_NOT_FOUND", "No such token."),
        ] {
            let answer = town.send("GET", target, "");
            let expected = format!(r#"{{"error":"{code}","message":"{message}"}}"#);
            assert_eq!((answer.status, answer.text()), (status, expected.as_str()), "{target}");
        }
    }
}
