//! What venue clients ask around their trading, and what does not exist here (venue.md §1.6, §4, §8): answers that are
//! true, of the right shape, and mostly empty.

use super::rows::quoted;
use super::signed;
use super::tokens::BATCH_MAX;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Permission, Route};
use crate::http::schema::{BOOLEAN, INTEGER, Param, Schema, Shape, TEXT, field};
use crate::settings::Allowance;
use engine::command::{Answer, Command, Query, Wallets};
use wire::cursor;
use wire::value::Value;
use wire::write::{array, boolean, separate, string};

/// The name of the one contract that allowances are shown for. It is nobody's.
const NO_CONTRACT: &str = "0x0000000000000000000000000000000000000001";
/// Rows that a page of nothing could have.
const PAGE_ROWS: u64 = 100;

/// `"OK"`.
pub const DONE: Schema = Schema::Word(&["OK"]);
const NOTHING: Schema = Schema::List { of: &Schema::Any, min: 0, max: 0 };
const VERSION: Schema = Schema::Object(&Shape::new(
    "OrderVersion",
    "Which orders clients are to build.",
    &[field("version", Schema::Integer { min: 1, max: 2 }, "Of the signed order; both are understood.")],
));
const GEOBLOCK: Schema = Schema::Object(&Shape::new(
    "Geoblock",
    "Whether the caller's country is refused: none is.",
    &[
        field("blocked", BOOLEAN, "Always false."),
        field("ip", Schema::Text(0), "Not told."),
        field("country", Schema::Text(0), "Not told."),
        field("region", Schema::Text(0), "Not told."),
    ],
));
const UNITS: Schema = Schema::Format(&crate::http::schema::Format {
    name: "BaseUnits",
    about: "An amount in base units (10⁻⁶) as a string.",
    pattern: r"^(0|[1-9][0-9]*)$",
});
const ALLOWANCE: Schema = Schema::Object(&Shape::new(
    "BalanceAllowance",
    "Strict: what the API wallet can spend, or the shares of a token that it can sell. Plain: a fixed amount for clients \
     that look before they trade, from which nothing may be sized. `[venue] allowance` chooses otherwise.",
    &[
        field("balance", UNITS, "`collateral`, or `conditional` for the asset type CONDITIONAL."),
        field("allowance", UNITS, "The same."),
        field("collateral", UNITS, "Available cash of the API wallet."),
        field("conditional", UNITS, "Available shares of `token_id`; 0 without one."),
        field("allowances", Schema::Map(&UNITS), "The allowance, by contract."),
    ],
));
const SCORING: Schema = Schema::Object(&Shape::new(
    "OrderScoring",
    "Whether an order earns rewards: none does.",
    &[field("scoring", BOOLEAN, "Always false.")],
));
const SCORINGS: Schema = Schema::Map(&BOOLEAN);
const EMPTY_PAGE: Schema = Schema::Object(&Shape::new(
    "NoRows",
    "The only page of a list without rows.",
    &[
        field("limit", Schema::Integer { min: 100, max: 100 }, "Rows of a page."),
        field("count", Schema::Integer { min: 0, max: 0 }, "Rows of this page."),
        field("next_cursor", Schema::Word(&["LTE="]), "Behind the last page."),
        field("data", NOTHING, "No rows."),
    ],
));
const EMPTY_PAGE_EXAMPLE: &str = r#"{"limit": 100, "count": 0, "next_cursor": "LTE=", "data": []}"#;
const BUILDER_FEES: Schema = Schema::Object(&Shape::new(
    "BuilderFees",
    "What a builder takes: nothing.",
    &[
        field("builder_maker_fee_rate_bps", Schema::Integer { min: 0, max: 0 }, "Always 0."),
        field("builder_taker_fee_rate_bps", Schema::Integer { min: 0, max: 0 }, "Always 0."),
    ],
));
const EMPTY_OBJECT: Schema = Schema::Object(&Shape::new("NoPercentages", "An object without fields.", &[]));
const ORDER_ID: Schema = Schema::OneOf(&[TEXT, INTEGER]);
const ORDER_IDS: Schema = Schema::List { of: &ORDER_ID, min: 0, max: BATCH_MAX as u32 };

pub const ROUTES: &[Route] = &[
    ok("/v1/", "get_root"),
    ok("/v1/ok", "get_ok"),
    Route::get("/v1/version", "get_order_version")
        .about("Which orders clients are to build.")
        .at_root()
        .gives_shape(200, &VERSION, r#"{"version": 2}"#)
        .run(|call| Box::pin(version(call))),
    geoblock("/v1/geoblock", "get_geoblock").at_root(),
    geoblock("/api/geoblock", "get_geoblock_outside"),
    list("/v1/live-activity/events/{condition_id}", "list_live_activity"),
    list("/v1/markets/live-activity/{condition_id}", "list_market_live_activity"),
    allowance("/v1/balance-allowance", "get_balance_allowance"),
    allowance("/v1/balance-allowance/update", "update_balance_allowance"),
    list("/v1/notifications", "list_notifications").auth(Auth::Key),
    Route::delete("/v1/notifications", "drop_notifications")
        .about("Nothing: there are no notifications.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &DONE, r#""OK""#)
        .run(|_| Box::pin(done())),
    Route::get("/v1/order-scoring", "get_order_scoring")
        .about("Whether an order earns rewards: none does.")
        .at_root()
        .auth(Auth::Key)
        .params(&[Param::query("order_id", TEXT, "The order; not looked at.")])
        .gives_shape(200, &SCORING, r#"{"scoring": false}"#)
        .run(|_| Box::pin(std::future::ready(Ok(Reply::object(|o| o.boolean("scoring", false)))))),
    Route::get("/v1/orders-scoring", "get_orders_scoring")
        .about("Whether orders earn rewards: none does.")
        .at_root()
        .auth(Auth::Key)
        .params(&[Param::query("order_ids", TEXT, "Ids with commas between them, at most 500.")])
        .gives_shape(200, &SCORINGS, r#"{"0x51": false}"#)
        .fails(&[Code::InvalidRequest])
        .run(|call| Box::pin(scorings_of_query(call))),
    Route::post("/v1/orders-scoring", "post_orders_scoring")
        .about("Whether orders earn rewards: none does.")
        .at_root()
        .auth(Auth::Key)
        .takes_shape(&ORDER_IDS, r#"["0x51"]"#)
        .gives_shape(200, &SCORINGS, r#"{"0x51": false}"#)
        .run(|call| Box::pin(scorings_of_body(call))),
    page("/v1/rewards/user", "list_rewards").auth(Auth::Key),
    list("/v1/rewards/user/total", "get_rewards_total").auth(Auth::Key),
    Route::get("/v1/rewards/user/percentages", "get_rewards_percentages")
        .about("Shares of rewards by market: there are no rewards.")
        .at_root()
        .auth(Auth::Key)
        .gives_shape(200, &EMPTY_OBJECT, "{}")
        .run(|_| Box::pin(std::future::ready(Ok(Reply::json(b"{}".to_vec()))))),
    page("/v1/rewards/user/markets", "list_rewards_by_market").auth(Auth::Key),
    page("/v1/rewards/markets/current", "list_rewarded_markets"),
    page("/v1/rewards/markets/{condition_id}", "list_market_rewards"),
    list("/v1/rebates/current", "list_rebates"),
    Route::get("/v1/fees/builder-fees/{code}", "get_builder_fees")
        .about("What a builder takes: nothing.")
        .at_root()
        .gives_shape(200, &BUILDER_FEES, r#"{"builder_maker_fee_rate_bps": 0, "builder_taker_fee_rate_bps": 0}"#)
        .run(|_| Box::pin(builder_fees())),
    page("/v1/rfq/data/requests", "list_rfq_requests").auth(Auth::Key),
    page("/v1/rfq/data/quotes", "list_rfq_quotes").auth(Auth::Key),
    page("/v1/rfq/data/requester/quotes", "list_rfq_requester_quotes").auth(Auth::Key),
    page("/v1/rfq/data/quoter/quotes", "list_rfq_quoter_quotes").auth(Auth::Key),
    page("/v1/rfq/data/best-quote", "get_rfq_best_quote").auth(Auth::Key),
    refused(Route::get("/v1/rfq/config", "get_rfq_config")),
    refused(Route::post("/v1/rfq/request", "create_rfq_request")),
    refused(Route::delete("/v1/rfq/request", "cancel_rfq_request")),
    refused(Route::post("/v1/rfq/quote", "create_rfq_quote")),
    refused(Route::delete("/v1/rfq/quote", "cancel_rfq_quote")),
    refused(Route::post("/v1/rfq/request/accept", "accept_rfq_quote")),
    refused(Route::post("/v1/rfq/quote/approve", "approve_rfq_order")),
];

const fn ok(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("That there is a server.")
        .at_root()
        .no_store()
        .gives_shape(200, &DONE, r#""OK""#)
        .run(|_| Box::pin(done()))
}

const fn geoblock(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Whether the caller's country is refused: none is.")
        .gives_shape(200, &GEOBLOCK, r#"{"blocked": false, "ip": "", "country": "", "region": ""}"#)
        .run(|_| Box::pin(not_blocked()))
}

/// A list that is always empty.
const fn list(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("A list of what does not exist here: always empty.")
        .at_root()
        .gives_shape(200, &NOTHING, "[]")
        .run(|_| Box::pin(std::future::ready(Ok(Reply::json(b"[]".to_vec())))))
}

/// A list in pages that is always empty.
const fn page(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Pages of what does not exist here: always one without rows.")
        .at_root()
        .gives_shape(200, &EMPTY_PAGE, EMPTY_PAGE_EXAMPLE)
        .run(|_| Box::pin(empty_page()))
}

const fn allowance(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Balance and allowance, in base units, for clients that look before they trade.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .params(ASSET)
        .gives_shape(200, &ALLOWANCE, ALLOWANCE_EXAMPLE)
        .run(|call| Box::pin(balance_allowance(call)))
}

const ASSET: &[Param] = &[
    Param::query("asset_type", TEXT, "CONDITIONAL for shares; anything else is COLLATERAL."),
    Param::query("token_id", TEXT, "The outcome token of CONDITIONAL."),
    Param::query("signature_type", TEXT, "Not looked at."),
];
const ALLOWANCE_EXAMPLE: &str = r#"{
    "balance": "1000000000000", "allowance": "1000000000000", "collateral": "1000000000000",
    "conditional": "1000000000000",
    "allowances": {"0x0000000000000000000000000000000000000001": "1000000000000"}
}"#;

/// An action of a part that is not offered.
const fn refused(route: Route) -> Route {
    route
        .about("Refused: requests for quotes are not offered here.")
        .at_root()
        .auth(Auth::Key)
        .body(BodyKind::Ignored)
        .fails(&[Code::InvalidRequest])
        .run(|_| Box::pin(std::future::ready(Err(Refusal::saying(Code::InvalidRequest, "rfq is not supported")))))
}

/// `"OK"`.
pub async fn done() -> Outcome {
    Ok(Reply::json(br#""OK""#.to_vec()))
}

async fn version(call: Call) -> Outcome {
    Ok(Reply::object(|o| o.integer("version", call.front().settings.compat.order_version)))
}

async fn not_blocked() -> Outcome {
    Ok(Reply::object(|o| {
        o.boolean("blocked", false);
        for name in ["ip", "country", "region"] {
            o.word(name, "");
        }
    }))
}

async fn balance_allowance(call: Call) -> Outcome {
    let compat = &call.front().settings.compat;
    let is_real = match compat.allowance {
        Allowance::Auto => call.dialect().is_strict(),
        Allowance::Sentinel => false,
        Allowance::Real => true,
    };
    let query = call.query();
    let of_shares = query.get("asset_type").is_some_and(|asset| asset.starts_with("CONDITIONAL"));
    let (collateral, conditional) = match is_real {
        true => available(&call, query.get("token_id")).await?,
        false => (compat.sentinel_allowance, compat.sentinel_allowance),
    };
    let units = if of_shares { conditional } else { collateral };
    Ok(Reply::object(|o| {
        quoted(o, "balance", units);
        quoted(o, "allowance", units);
        quoted(o, "collateral", collateral);
        quoted(o, "conditional", conditional);
        o.object("allowances", |o| quoted(o, NO_CONTRACT, units));
    }))
}

/// What the API wallet has free, in 10⁻⁶: cash, and shares of a token; 0 for an unknown token.
async fn available(call: &Call, token: Option<&str>) -> Result<(u64, u64), Refusal> {
    let wallets = Wallets::Api;
    let account = match call.ask(Command::Query(Query::Account { wallets })).await? {
        Answer::Account(account) => account,
        other => return Err(unexpected(&other, call.now)),
    };
    let cash = account.wallets.iter().map(|wallet| wallet.available().0).sum::<i64>();
    let instrument = token.and_then(|token| signed::instrument(&call.reads().catalog, token));
    let held = account.positions.iter().map(|row| &row.position);
    let shares = held.filter(|position| Some(position.instrument) == instrument).map(|held| held.available().0).sum();
    Ok((u64::try_from(cash).unwrap_or_default(), shares))
}

async fn scorings_of_query(call: Call) -> Outcome {
    let query = call.query();
    let ids = query.get("order_ids").unwrap_or_default();
    if ids.split(',').count() > BATCH_MAX {
        return Err(Refusal::saying(Code::InvalidRequest, "Payload exceeds the limit"));
    }
    Ok(scorings(ids.split(',').filter(|id| !id.is_empty())))
}

async fn scorings_of_body(call: Call) -> Outcome {
    let no_list = || Refusal::saying(Code::InvalidBody, "The body is not a list of order ids.");
    let body = call.json()?.ok_or_else(no_list)?;
    let Value::Array(items) = &body else { return Err(no_list()) };
    if items.len() > BATCH_MAX {
        return Err(Refusal::saying(Code::InvalidBody, "Payload exceeds the limit"));
    }
    let ids: Option<Vec<&str>> = items
        .iter()
        .map(|item| match item {
            Value::Text(id) => Some(id.as_ref()),
            Value::Number(id) => Some(*id),
            _ => None,
        })
        .collect();
    Ok(scorings(ids.ok_or_else(no_list)?))
}

/// Every id once, in the caller's own form.
fn scorings<'a>(ids: impl IntoIterator<Item = &'a str>) -> Reply {
    let mut seen = ahash::AHashSet::new();
    let mut out = vec![b'{'];
    for id in ids.into_iter().filter(|id| seen.insert(*id)) {
        separate(&mut out);
        string(&mut out, id);
        out.push(b':');
        boolean(&mut out, false);
    }
    out.push(b'}');
    Reply::json(out)
}

async fn empty_page() -> Outcome {
    Ok(Reply::object(|o| {
        o.integer("limit", PAGE_ROWS);
        o.integer("count", 0);
        o.word("next_cursor", cursor::END);
        array(o.name("data"), [(); 0], |_, ()| {});
    }))
}

async fn builder_fees() -> Outcome {
    Ok(Reply::object(|o| {
        o.integer("builder_maker_fee_rate_bps", 0);
        o.integer("builder_taker_fee_rate_bps", 0);
    }))
}
