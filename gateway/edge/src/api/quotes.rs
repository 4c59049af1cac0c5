//! `POST /v1/prices/batch`: quotes of several markets in one request (market-data.md §6).

use super::markets::quote::Quote;
use super::markets::shape::{QUOTED_OUTCOME, SOURCE};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{PRICE_OR_NULL, Schema, Shape, TEXT, field};
use wire::fields::Problems;
use wire::value::Value;
use wire::write::{array, object};

const MARKETS_MAX: usize = 50;
const QUOTE_BYTES: usize = 384;

pub const ROUTES: &[Route] = &[Route::post("/v1/prices/batch", "get_prices_batch")
    .about("What several markets are quoted at, in the order asked for.")
    .takes_shape(&Schema::Object(&ASKED), ASKED_EXAMPLE)
    .gives_shape(200, &Schema::Array(&Schema::Object(&QUOTE)), EXAMPLE)
    .auth(Auth::Key)
    .needs(Permission::Read)
    .fails(&[Code::InvalidBody, Code::ValidationFailed, Code::BatchLimitExceeded])
    .run(|call| Box::pin(batch(call)))];

const ASKED: Shape = Shape::new(
    "PricesRequest",
    "Markets by condition id.",
    &[field(
        "market_ids",
        Schema::List { of: &TEXT, min: 1, max: MARKETS_MAX as u32 },
        "At most as many as the tier's batch has.",
    )],
);
const ASKED_EXAMPLE: &str = r#"{"market_ids":["0x51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de51c0de519e"]}"#;
const QUOTE: Shape = Shape::new(
    "MarketQuote",
    "A market's prices; of an unknown or never quoted one only the id is filled.",
    &[
        field("condition_id", TEXT, "As asked for."),
        field("buy", PRICE_OR_NULL, "Best bid of the first outcome, else its displayed price."),
        field("sell", PRICE_OR_NULL, "Best ask of the first outcome, else its displayed price."),
        field("outcomes", Schema::Array(&Schema::Object(&QUOTED_OUTCOME)), ""),
        field("source", Schema::Nullable(&SOURCE), ""),
    ],
);
const EXAMPLE: &str = r#"[{"condition_id":"0xdead","buy":null,"sell":null,"outcomes":[],"source":null}]"#;

async fn batch(call: Call) -> Outcome {
    let body = call.json_object()?;
    let conditions = conditions(&body)?;
    let app = call.app();
    let tier_max = app.front.settings.limits.tier(call.caller().tier).max_batch_size as usize;
    if conditions.len() > tier_max {
        let message = format!("{} markets were asked for; the tier allows {tier_max} in one batch.", conditions.len());
        return Err(Refusal::saying(Code::BatchLimitExceeded, message));
    }
    let mut out = Vec::with_capacity(QUOTE_BYTES * conditions.len());
    array(&mut out, conditions, |out, condition| {
        let cell = app.reads.catalog.by_condition(condition).and_then(|market| app.reads.catalog.market(market));
        let quoted = cell.and_then(|cell| Some((cell, Quote::of(cell, &app.reads)?)));
        object(out, |o| {
            o.text("condition_id", condition);
            match quoted {
                Some((cell, quote)) => {
                    quote.write_sides(o);
                    quote.write_outcomes(o, cell);
                    o.word("source", quote.source());
                }
                None => {
                    o.null("buy");
                    o.null("sell");
                    o.array("outcomes", [(); 0], |_, ()| {});
                    o.null("source");
                }
            }
        });
    });
    Ok(Reply::json(out))
}

/// The ids asked for, 1 to 50 texts.
fn conditions<'a>(body: &'a Value<'_>) -> Result<Vec<&'a str>, Refusal> {
    let mut problems = Problems::default();
    let mut wrong = |kind, message: &str| problems.add("body", "market_ids", kind, message);
    match body.get("market_ids") {
        None | Some(Value::Null) => wrong("missing", "is required"),
        Some(Value::Array(ids)) if ids.is_empty() => wrong("too_short", "is empty"),
        Some(Value::Array(ids)) if ids.len() > MARKETS_MAX => {
            wrong("too_long", &format!("has more than {MARKETS_MAX} entries"));
        }
        Some(Value::Array(ids)) => {
            let texts: Option<Vec<&str>> = ids
                .iter()
                .map(|id| match id {
                    Value::Text(text) => Some(text.as_ref()),
                    _ => None,
                })
                .collect();
            if let Some(texts) = texts {
                return Ok(texts);
            }
            wrong("string_type", "holds something that is not a string");
        }
        Some(_) => wrong("list_type", "is not a list"),
    }
    Err(Refusal::validation(&problems))
}

#[cfg(test)]
mod tests {
    use crate::api::testing::{Text as _, Town};

    const TIERS: &str = concat!(
        "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n",
        "max_batch_size = 25\n"
    );

    #[test]
    fn quotes_come_in_the_order_asked_for() {
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
