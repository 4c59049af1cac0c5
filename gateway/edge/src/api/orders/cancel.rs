//! Cancels: one order, all, those of a market.

use super::records::Cancelled;
use super::{OrderName, view};
use crate::api::clob;
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command, Query, Wallets};
use engine::market::catalog::Catalog;
use engine::time::Timestamp;
use engine::view::CancelledOrders;
use hyper::header::{HeaderName, HeaderValue};
use wire::fields::{Body, Params};
use wire::instant::http_date;
use wire::query::Query as QueryText;
use wire::value::Value;

const CONFIRM: HeaderName = HeaderName::from_static("x-confirm-cancel-all");
/// 2027-12-31T23:59:59Z: native callers may use the unconfirmed sweep at least until then.
const UNCONFIRMED_UNTIL: Timestamp = Timestamp(1_830_297_599_000_000);
/// Longest market or token id that is looked up.
const NAME_CHARS_MAX: usize = 256;

pub async fn by_id(call: Call) -> Outcome {
    named(&call, OrderName::Id(call.variable(0))).await
}

pub async fn by_client_id(call: Call) -> Outcome {
    named(&call, OrderName::ClientId(call.variable(0))).await
}

/// Cancels one order.
pub async fn named(call: &Call, name: OrderName<'_>) -> Outcome {
    let order = match name {
        OrderName::Id(text) => clob::ids::named(call, &text).await?,
        OrderName::ClientId(id) => match call.ask(Command::Query(Query::OrderByClientId(id.into_owned()))).await? {
            Answer::Order(view) => view.order.id,
            other => return Err(unexpected(&other, call.now)),
        },
    };
    match call.ask(Command::Cancel { order }).await? {
        Answer::Order(view) => {
            let mut out = Vec::with_capacity(1_280);
            view::order(&mut out, &view, &call.reads().catalog, None);
            Ok(Reply::json(out))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// `POST /v1/cancel-all`: only with a confirmation.
pub async fn all_confirmed(call: Call) -> Outcome {
    let body = sweep_body(&call)?;
    let wallets = confirmed(&call.query(), body.as_ref(), confirmed_by_header(&call))?;
    all(&call, wallets).await
}

/// Cancels every open order of these wallets.
pub async fn all(call: &Call, wallets: Wallets) -> Outcome {
    let swept = sweep(call, Command::CancelAll { wallets }).await?;
    Ok(Reply::json(&Cancelled::new(&swept)))
}

/// The wallets of a sweep over all orders, which has to be confirmed.
///
/// # Errors
/// `CONFIRMATION_REQUIRED`; `VALIDATION_FAILED`.
pub fn confirmed(query: &QueryText<'_>, body: Option<&Value<'_>>, by_header: bool) -> Result<Wallets, Refusal> {
    let mut params = Params::new(query);
    let confirmed = params.boolean("confirm") == Some(true) || by_header;
    if params.problems.is_empty() && !confirmed {
        return Err(Code::ConfirmationRequired.into());
    }
    wallets_of(&mut params, query, body)
}

/// `DELETE /v1/cancel-all`: as the venue's clients send it; deprecated for others.
pub async fn all_unconfirmed(call: Call) -> Outcome {
    let body = sweep_body(&call)?;
    let query = call.query();
    let wallets = wallets_of(&mut Params::new(&query), &query, body.as_ref())?;
    let swept = sweep(&call, Command::CancelAll { wallets }).await?;
    let reply = clob::cancel::swept(&swept, &call).await?;
    if call.dialect().is_strict() {
        return Ok(reply);
    }
    let reply = reply.with_header(HeaderName::from_static("deprecation"), HeaderValue::from_static("true"));
    let reply = match HeaderValue::try_from(http_date(UNCONFIRMED_UNTIL)) {
        Ok(date) => reply.with_header(HeaderName::from_static("sunset"), date),
        Err(_) => reply,
    };
    let text = HeaderValue::from_static("Use POST /v1/cancel-all with X-Confirm-Cancel-All: true.");
    Ok(reply.with_header(HeaderName::from_static("x-deprecation"), text))
}

/// `DELETE` and `POST /v1/cancel-market-orders`.
pub async fn market(call: Call) -> Outcome {
    let body = sweep_body(&call)?;
    let query = call.query();
    let mut params = Params::new(&query);
    let null = Value::Null;
    let mut fields = Body::new(body.as_ref().unwrap_or(&null));
    let mut named = |name: &str| {
        let in_body = fields.text(name, NAME_CHARS_MAX);
        query.get(name).filter(|text| !text.is_empty()).or(in_body).filter(|text| !text.is_empty())
    };
    let (market, asset) = (named("market"), named("asset_id"));
    if !fields.problems.is_empty() {
        return Err(Refusal::validation(&fields.problems));
    }
    let wallets = wallets_of(&mut params, &query, body.as_ref())?;
    if market.is_none() && asset.is_none() {
        return Err(Refusal::new(Code::InvalidRequest, "Name a market, an asset_id, or both."));
    }
    let command = market_sweep(market, asset, wallets, &call.reads().catalog);
    clob::cancel::swept(&sweep(&call, command).await?, &call).await
}

/// The sweep of these names; with an unknown one it is a sweep of nothing.
fn market_sweep(market: Option<&str>, asset: Option<&str>, wallets: Wallets, catalog: &Catalog) -> Command {
    let market_id = market.and_then(|condition| catalog.by_condition(condition));
    let instrument = asset.and_then(|token| catalog.by_token(token));
    let known = market.is_some() == market_id.is_some() && asset.is_some() == instrument.is_some();
    if known {
        Command::CancelMarket { market: market_id, instrument, wallets }
    } else {
        Command::CancelMarket { market: None, instrument: None, wallets }
    }
}

async fn sweep(call: &Call, command: Command) -> Result<CancelledOrders, Refusal> {
    match call.ask(command).await? {
        Answer::Cancelled(swept) => Ok(swept),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The body of a sweep: an object, or none.
fn sweep_body(call: &Call) -> Result<Option<Value<'_>>, Refusal> {
    match call.json()? {
        None => Ok(None),
        Some(body @ Value::Object(_)) => Ok(Some(body)),
        Some(other) => Err(Refusal::new(Code::InvalidBody, format!("The body is {}, not an object.", other.kind()))),
    }
}

fn confirmed_by_header(call: &Call) -> bool {
    call.header(&CONFIRM).is_some_and(|text| text.eq_ignore_ascii_case("true"))
}

/// `wallet_id` of the query, else of the body, else the API wallet.
fn wallets_of(params: &mut Params<'_>, query: &QueryText<'_>, body: Option<&Value<'_>>) -> Result<Wallets, Refusal> {
    let in_query = wallets::in_query(query, &mut params.problems);
    let in_body = body.and_then(|body| wallets::in_body(body, &mut params.problems));
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    Ok(in_query.or(in_body).unwrap_or(Wallets::Api))
}
