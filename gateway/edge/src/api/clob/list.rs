//! The venue-shaped reads of orders and trades: one order, and lists with cursors (gateway/docs/venue-clients.md §7).

use super::ids::{self, OrderIds};
use super::rows::{OrderRow, Rows, TradeRow};
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command, Query, Statuses, VenueFilter, Wallets};
use engine::id::OrderId;
use engine::order::Status;
use engine::time::Timestamp;
use engine::view::VenuePage;
use wire::cursor::{self, OrderCursor};
use wire::fields::Params;
use wire::instant;
use wire::query::Query as QueryText;

const LIMIT_MAX: u64 = 500;
const LIMIT_DEFAULT: u64 = 100;
/// Trades that an order in a list names; a lookup of one order names all.
const TRADES_MAX: usize = 100;

record! {
    /// A page of order rows.
    pub struct VenueOrderPage<'a> {
        #[schemars(range(min = 1, max = 500))]
        limit: u64 = LIMIT_DEFAULT, "Rows asked for.";
        #[schemars(range(max = 500))]
        count: usize = 0, "Rows of this page.";
        next_cursor: String = cursor::END.to_owned(), "`LTE=` at the end.";
        data: Vec<OrderRow<'a>> = Vec::new(), "Newest first.";
    }

    /// A page of trade rows.
    pub struct VenueTradePage<'a> {
        #[schemars(range(min = 1, max = 500))]
        limit: u64 = LIMIT_DEFAULT, "Rows asked for.";
        #[schemars(range(max = 500))]
        count: usize = 0, "Rows of this page.";
        next_cursor: String = cursor::END.to_owned(), "`LTE=` at the end.";
        data: Vec<TradeRow<'a>> = Vec::new(), "Newest first.";
    }
}

/// `status` of the order list: the venue's words, old and new, and ours.
const STATUSES: [(&str, Statuses); 15] = {
    const CANCELED: Statuses = Statuses::of(&[Status::Cancelled, Status::Expired]);
    const MATCHED: Statuses = Statuses::of(&[Status::Filled]);
    [
        ("ORDER_STATUS_LIVE", Statuses::OPEN),
        ("ORDER_STATUS_MATCHED", MATCHED),
        ("ORDER_STATUS_CANCELED", CANCELED),
        ("ORDER_STATUS_INVALID", Statuses::NONE),
        ("LIVE", Statuses::OPEN),
        ("MATCHED", MATCHED),
        ("CANCELED", CANCELED),
        ("INVALID", Statuses::NONE),
        ("PENDING", Statuses::OPEN),
        ("FILLED", MATCHED),
        ("CANCELLED", Statuses::of(&[Status::Cancelled])),
        ("EXPIRED", Statuses::of(&[Status::Expired])),
        ("REJECTED", Statuses::NONE),
        ("ERROR", Statuses::NONE),
        ("ALL", Statuses::ALL),
    ]
};

/// `GET /v1/data/order/{order_id}`: in any status, in any wallet.
pub async fn order(call: Call) -> Outcome {
    let id = ids::named(&call, &call.variable(0)).await?;
    match call.ask(Command::Query(Query::Order(id))).await? {
        Answer::Order(view) => Ok(Reply::json(&Rows::of(&call).order(&view, usize::MAX))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// `GET /v1/data/orders`.
pub async fn orders(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let statuses = params.choice("status", &STATUSES).unwrap_or(Statuses::OPEN);
    let only = match query.get("id").filter(|text| !text.is_empty()) {
        Some(text) => OrderIds::of(&call).find(&call, &[text]).await?.pop().flatten(),
        None => None,
    };
    let (limit, filter) = filter(&call, &query, params, statuses, |_| only.map(|id| id.0))?;
    let found = match filter {
        None => VenuePage { rows: Vec::new(), more_after: None },
        Some(filter) => {
            let command = |filter| Command::Query(Query::VenueOrders(filter));
            let page = |answer| match answer {
                Answer::VenueOrders(page) => Ok(page),
                other => Err(unexpected(&other, call.now)),
            };
            gathered(&call, filter, command, page).await?
        }
    };
    let rows = Rows::of(&call);
    Ok(Reply::json(&VenueOrderPage {
        limit,
        count: found.rows.len(),
        next_cursor: next_cursor(&found),
        data: found.rows.iter().map(|view| rows.order(view, TRADES_MAX)).collect(),
    }))
}

/// `GET /v1/data/trades`.
pub async fn trades(call: Call) -> Outcome {
    let query = call.query();
    let (limit, filter) = filter(&call, &query, Params::new(&query), Statuses::ALL, ids::decimal)?;
    let found = match filter {
        None => VenuePage { rows: Vec::new(), more_after: None },
        Some(filter) => {
            let command = |filter| Command::Query(Query::VenueTrades(filter));
            let page = |answer| match answer {
                Answer::VenueTrades(page) => Ok(page),
                other => Err(unexpected(&other, call.now)),
            };
            gathered(&call, filter, command, page).await?
        }
    };
    let rows = Rows::of(&call);
    Ok(Reply::json(&VenueTradePage {
        limit,
        count: found.rows.len(),
        next_cursor: next_cursor(&found),
        data: found.rows.iter().map(|view| rows.trade(view)).collect(),
    }))
}

/// The filter of a query; `None` is an empty page for which the shard is not asked: after the last one, or of an unknown
/// market, token or id. `read_id` reads the `id` of one row.
fn filter(
    call: &Call,
    query: &QueryText<'_>,
    mut params: Params<'_>,
    statuses: Statuses,
    read_id: impl Fn(&str) -> Option<u64>,
) -> Result<(u64, Option<VenueFilter>), Refusal> {
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
    let wallets = wallets::in_query(query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let (until, since) = (moment(query, "before")?, moment(query, "after")?);
    let sent = query.first_of(&["cursor", "next_cursor"]).unwrap_or_default();
    let after = match OrderCursor::read(sent).map_err(|_| Code::InvalidCursor)? {
        OrderCursor::First => Some(None),
        OrderCursor::After(at, id) => Some(Some((at, id.0))),
        OrderCursor::End => None,
    };
    let catalog = &call.reads().catalog;
    let named = |name: &str| query.get(name).filter(|text| !text.is_empty());
    // With an unknown name there are no rows.
    let market = known(named("market"), |condition| catalog.by_condition(condition));
    let instrument = known(named("asset_id"), |token| super::signed::instrument(catalog, token));
    let only = known(named("id"), read_id);
    let (Some(after), Some(market), Some(instrument), Some(only)) = (after, market, instrument, only) else {
        return Ok((limit, None));
    };
    let filter =
        VenueFilter { wallets, statuses, market, instrument, only, since, until, after, limit: limit as usize };
    Ok((limit, Some(filter)))
}

/// `Some(None)`: no text; `None`: the text names something unknown.
fn known<T>(text: Option<&str>, find: impl FnOnce(&str) -> Option<T>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => find(text).map(Some),
    }
}

/// Unix seconds or an ISO time.
fn moment(query: &QueryText<'_>, name: &str) -> Result<Option<Timestamp>, Code> {
    match query.get(name).filter(|text| !text.is_empty()) {
        None => Ok(None),
        Some(text) => instant::read(text).map(Some).ok_or(Code::InvalidTimeFilter),
    }
}

/// Queries the shard until the page is full or the list ends. A query looks at a bounded number of rows, and other tasks of
/// the thread run between two queries.
async fn gathered<T>(
    call: &Call,
    mut filter: VenueFilter,
    command: impl Fn(VenueFilter) -> Command,
    page: impl Fn(Answer) -> Result<VenuePage<T>, Refusal>,
) -> Result<VenuePage<T>, Refusal> {
    let mut found = page(call.ask(command(filter.clone())).await?)?;
    let whole = filter.limit;
    while let Some(after) = found.more_after.filter(|_| found.rows.len() < whole) {
        tokio::task::yield_now().await;
        (filter.after, filter.limit) = (Some(after), whole - found.rows.len());
        let more = page(call.ask(command(filter.clone())).await?)?;
        found.rows.extend(more.rows);
        found.more_after = more.more_after;
    }
    Ok(found)
}

fn next_cursor<T>(page: &VenuePage<T>) -> String {
    page.more_after.map_or_else(|| cursor::END.to_owned(), |(at, id)| OrderCursor::write(at, OrderId(id)))
}
