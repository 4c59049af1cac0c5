//! What venue clients request around their trading (gateway/docs/venue-clients.md §4, §8). Answers that never change are in
//! [`super::constants`].

use super::constants;
use super::requests::SentOrderId;
use super::signed;
use super::tokens::BATCH_MAX;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{ByName, Example, List, record, value};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route, joined};
use crate::http::scalar::BaseUnits;
use crate::http::schema::{Param, TEXT};
use crate::settings::Allowance;
use engine::command::{Answer, Command, Query, Wallets};
use wire::value::Value;

/// The name of the one contract in `allowances`; its address is not in use.
const NO_CONTRACT: &str = "0x0000000000000000000000000000000000000001";

record! {
    /// Which orders clients are to build.
    pub struct OrderVersion {
        #[schemars(range(min = 1, max = 2))]
        version: u64 = 2, "Of the signed order; both are understood.";
    }

    /// Strict: what the API wallet can spend, or the shares of a token that it can sell. Plain: a fixed amount for clients
    /// that check their balance before they trade; it is not a bound for the size of an order. `[venue] allowance` chooses
    /// otherwise.
    pub struct BalanceAllowance {
        balance: BaseUnits = BaseUnits(1_000_000_000_000), "`collateral`, or `conditional` for the asset type CONDITIONAL.";
        allowance: BaseUnits = BaseUnits(1_000_000_000_000), "The same.";
        collateral: BaseUnits = BaseUnits(1_000_000_000_000), "Available cash of the API wallet.";
        conditional: BaseUnits = BaseUnits(1_000_000_000_000), "Available shares of `token_id`; 0 without one.";
        allowances: ByName<&'static str, BaseUnits> = ByName(vec![(NO_CONTRACT, BaseUnits(1_000_000_000_000))]),
            "The allowance, by contract.";
    }
}

/// Whether orders earn rewards, by their ids: none does.
type Scorings<'a> = ByName<&'a str, bool>;
/// Ids of orders.
type OrderIds<'a> = List<SentOrderId<'a>, 0, BATCH_MAX>;

const SCORINGS: Example = Example::Of(|| value(&ByName(vec![("0x51", false)])));
const ORDER_IDS: Example = Example::Of(|| value(&["0x51"]));

pub const ROUTES: &[Route] = &joined::<{ OWN.len() + constants::HOUSEKEEPING.len() }>(OWN, constants::HOUSEKEEPING);

const OWN: &[Route] = &[
    Route::get("/v1/version", "get_order_version")
        .about("Which orders clients are to build.")
        .at_root()
        .gives::<OrderVersion>(200)
        .answer(version),
    allowance("/v1/balance-allowance", "get_balance_allowance"),
    allowance("/v1/balance-allowance/update", "update_balance_allowance"),
    Route::get("/v1/orders-scoring", "get_orders_scoring")
        .about("Whether orders earn rewards: none does.")
        .at_root()
        .auth(Auth::Key)
        .params(&[Param::query("order_ids", TEXT, "Ids with commas between them, at most 500.")])
        .gives_with::<Scorings<'_>>(200, SCORINGS)
        .fails(&[Code::InvalidRequest])
        .answer(scorings_of_query),
    Route::post("/v1/orders-scoring", "post_orders_scoring")
        .about("Whether orders earn rewards: none does.")
        .at_root()
        .auth(Auth::Key)
        .takes_with::<OrderIds<'_>>(ORDER_IDS)
        .gives_with::<Scorings<'_>>(200, SCORINGS)
        .answer(scorings_of_body),
];

const fn allowance(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name)
        .about("Balance and allowance, in base units, for clients that check them before they trade.")
        .at_root()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .params(ASSET)
        .gives::<BalanceAllowance>(200)
        .run(|call| Box::pin(balance_allowance(call)))
}

const ASSET: &[Param] = &[
    Param::query("asset_type", TEXT, "CONDITIONAL for shares; anything else is COLLATERAL."),
    Param::query("token_id", TEXT, "The outcome token of CONDITIONAL."),
    Param::query("signature_type", TEXT, "Ignored."),
];

fn version(call: &Call) -> Outcome {
    Ok(Reply::json(&OrderVersion { version: call.front().settings.compat.order_version }))
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
    let (units, collateral, conditional) = (BaseUnits(units), BaseUnits(collateral), BaseUnits(conditional));
    let allowances = ByName(vec![(NO_CONTRACT, units)]);
    Ok(Reply::json(&BalanceAllowance { balance: units, allowance: units, collateral, conditional, allowances }))
}

/// What the API wallet has available, in 10⁻⁶: cash, and shares of a token; 0 for an unknown token.
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

fn scorings_of_query(call: &Call) -> Outcome {
    let query = call.query();
    let ids = query.get("order_ids").unwrap_or_default();
    if ids.split(',').count() > BATCH_MAX {
        return Err(Refusal::new(Code::InvalidRequest, "Payload exceeds the limit"));
    }
    Ok(scorings(ids.split(',').filter(|id| !id.is_empty())))
}

fn scorings_of_body(call: &Call) -> Outcome {
    let no_list = || Refusal::new(Code::InvalidBody, "The body is not a list of order ids.");
    let body = call.json()?.ok_or_else(no_list)?;
    let Value::Array(items) = &body else { return Err(no_list()) };
    if items.len() > BATCH_MAX {
        return Err(Refusal::new(Code::InvalidBody, "Payload exceeds the limit"));
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

/// Each id once, in the caller's own form.
fn scorings<'a>(ids: impl IntoIterator<Item = &'a str>) -> Reply {
    let mut seen = ahash::AHashSet::new();
    let ids = ids.into_iter().filter(|id| seen.insert(*id));
    Reply::json(&ByName(ids.map(|id| (id, false)).collect()))
}
