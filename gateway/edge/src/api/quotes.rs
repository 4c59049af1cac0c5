//! `POST /v1/prices/batch`: quotes of several markets in one request (gateway/docs/market-data.md §6).

use super::markets::quote::{Quote, QuoteSource, QuotedOutcome};
use super::markets::view::CONDITION;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::scalar::Price;
use crate::reads::Reads;
use wire::fields::Problems;
use wire::value::Value;

const MARKETS_MAX: usize = 50;

pub const ROUTES: &[Route] = &[Route::post("/v1/prices/batch", "get_prices_batch")
    .about("Quotes of several markets, in the order of the request.")
    .takes::<PricesRequest>()
    .gives::<Vec<MarketQuote>>(200)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::InvalidBody, Code::ValidationFailed, Code::BatchLimitExceeded])
    .answer(batch)];

record! {
    /// Markets by condition id.
    struct PricesRequest<'a> {
        #[schemars(length(min = 1, max = MARKETS_MAX))]
        market_ids: Vec<&'a str> = vec![CONDITION], "At most as many as the tier's batch has.";
    }

    /// A market's prices; of an unknown or never quoted one only the id is filled.
    struct MarketQuote<'a> {
        condition_id: &'a str = "0xdead", "As in the request.";
        buy: Option<Price> = None, "Best bid of the first outcome, else its displayed price.";
        sell: Option<Price> = None, "Best ask of the first outcome, else its displayed price.";
        outcomes: Vec<QuotedOutcome<'a>> = Vec::new();
        source: Option<QuoteSource> = None;
    }
}

fn batch(call: &Call) -> Outcome {
    let body = call.json_object()?;
    let PricesRequest { market_ids } = PricesRequest::read(&body)?;
    let tier_max = call.front().settings.limits.tier(call.caller().tier).max_batch_size as usize;
    if market_ids.len() > tier_max {
        let message = format!("The request has {} markets; the tier allows {tier_max} in one batch.", market_ids.len());
        return Err(Refusal::new(Code::BatchLimitExceeded, message));
    }
    let quotes: Vec<_> = market_ids.into_iter().map(|id| MarketQuote::new(id, call.reads())).collect();
    Ok(Reply::json(&quotes))
}

impl<'a> MarketQuote<'a> {
    /// The quote of the market with this condition id.
    fn new(condition_id: &'a str, reads: &'a Reads) -> MarketQuote<'a> {
        let cell = reads.catalog.by_condition(condition_id).and_then(|market| reads.catalog.market(market));
        match cell.and_then(|cell| Some((cell, Quote::of(cell, reads)?))) {
            Some((cell, quote)) => MarketQuote {
                condition_id,
                buy: quote.buy.map(Price),
                sell: quote.sell.map(Price),
                outcomes: quote.outcomes(cell).into(),
                source: Some(quote.source()),
            },
            None => MarketQuote { condition_id, buy: None, sell: None, outcomes: Vec::new(), source: None },
        }
    }
}

impl<'a> PricesRequest<'a> {
    /// Reads the body.
    ///
    /// # Errors
    /// `VALIDATION_FAILED` unless `market_ids` is a list of 1 to 50 texts.
    fn read(body: &'a Value<'_>) -> Result<PricesRequest<'a>, Refusal> {
        let mut problems = Problems::default();
        let mut wrong = |kind, message: &str| problems.add("body", "market_ids", kind, message);
        match body.get("market_ids") {
            None | Some(Value::Null) => wrong("missing", "is required"),
            Some(Value::Array(ids)) if ids.is_empty() => wrong("too_short", "is empty"),
            Some(Value::Array(ids)) if ids.len() > MARKETS_MAX => {
                wrong("too_long", &format!("has more than {MARKETS_MAX} entries"));
            }
            Some(Value::Array(ids)) => {
                let texts = ids.iter().map(|id| match id {
                    Value::Text(text) => Some(text.as_ref()),
                    _ => None,
                });
                if let Some(market_ids) = texts.collect() {
                    return Ok(PricesRequest { market_ids });
                }
                wrong("string_type", "holds something that is not a string");
            }
            Some(_) => wrong("list_type", "is not a list"),
        }
        Err(Refusal::validation(&problems))
    }
}

#[cfg(test)]
mod tests {
    use crate::api::testing::{Text as _, Town};

    const TIERS: &str = concat!(
        "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n",
        "max_batch_size = 25\n"
    );

    #[test]
    fn quotes_come_in_the_order_of_the_request() {
        let town = Town::with(TIERS);
        let rain = town.condition().to_owned();
        let unquoted = town.catalog.market(town.unquoted).expect("listed").listing.condition.clone();
        let body = format!(r#"{{"market_ids":["{unquoted}","{rain}","0xdead","{rain}"]}}"#);
        let none =
            |id: &str| format!(r#"{{"condition_id":"{id}","buy":null,"sell":null,"outcomes":[],"source":null}}"#);
        let quoted = format!(
            concat!(
                r#"{{"condition_id":"{}","buy":"0.41","sell":"0.42","outcomes":["#,
                r#"{{"label":"Yes","price":"0.415","token_id":"81140002"}},"#,
                r#"{{"label":"No","price":"0.585","token_id":"55200077"}}],"source":"clob"}}"#
            ),
            rain
        );
        let answer = town.send("POST", "/v1/prices/batch", &body);
        let expected = [none(&unquoted), quoted.clone(), none("0xdead"), quoted].join(",");
        assert_eq!((answer.status, answer.text()), (200, format!("[{expected}]").as_str()));
    }

    #[test]
    fn the_list_has_its_bounds() {
        let town = Town::with(TIERS);
        let ids = |count: usize| format!(r#"{{"market_ids":[{}]}}"#, vec!["\"0x1\""; count].join(","));
        let cases = [
            (ids(25), 200, ""),
            (ids(26), 400, "BATCH_LIMIT_EXCEEDED"),
            (ids(50), 400, "BATCH_LIMIT_EXCEEDED"),
            (ids(51), 422, "VALIDATION_FAILED"),
            (ids(0), 422, "VALIDATION_FAILED"),
            ("{}".into(), 422, "VALIDATION_FAILED"),
            (r#"{"market_ids":null}"#.into(), 422, "VALIDATION_FAILED"),
            (r#"{"market_ids":"0x1"}"#.into(), 422, "VALIDATION_FAILED"),
            (r#"{"market_ids":["0x1",1]}"#.into(), 422, "VALIDATION_FAILED"),
            (r#"{"market_ids":[null]}"#.into(), 422, "VALIDATION_FAILED"),
            ("[]".into(), 400, "INVALID_BODY"),
            ("".into(), 400, "INVALID_BODY"),
        ];
        for (body, status, code) in &cases {
            let answer = town.send("POST", "/v1/prices/batch", body);
            assert_eq!(answer.code(), (*status, *code), "{body}");
        }
        println!("prices batch: {} cases", cases.len());
    }
}
