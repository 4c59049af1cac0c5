//! The list of orders, and lookups of one order.

use super::records::{self, OrderRow};
use super::words::SIDES;
use super::{OrderName, view};
use crate::api::clob::ids;
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use engine::command::{Answer, Command, MarketFilter, OrderFilter, Query, Wallets};
use engine::market::catalog::Catalog;
use engine::order::Status;
use engine::view::{OrderPage, OrderView};
use wire::cursor::{self, OrderCursor};
use wire::fields::Params;
use wire::query::Query as QueryText;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
const DETAIL_BYTES: usize = 1_792;

/// Which orders a `status` names.
#[derive(Clone, Copy)]
enum StatusFilter {
    All,
    Only(Status),
    /// A status that no stored order has: only batch answers show it.
    None,
}

const STATUSES: [(&str, StatusFilter); 11] = [
    ("PENDING", StatusFilter::Only(Status::Pending)),
    ("FILLED", StatusFilter::Only(Status::Filled)),
    ("CANCELLED", StatusFilter::Only(Status::Cancelled)),
    ("EXPIRED", StatusFilter::Only(Status::Expired)),
    ("REJECTED", StatusFilter::None),
    ("ERROR", StatusFilter::None),
    ("OPEN", StatusFilter::Only(Status::Pending)),
    ("LIVE", StatusFilter::Only(Status::Pending)),
    ("MATCHED", StatusFilter::Only(Status::Filled)),
    ("CANCELED", StatusFilter::Only(Status::Cancelled)),
    ("ALL", StatusFilter::All),
];

pub async fn list(call: Call) -> Outcome {
    let query = call.query();
    let Some(filter) = filter(&query, &call.reads().catalog)? else {
        let nothing = OrderPage { orders: Vec::new(), has_more: false, total_hint: None };
        return Ok(Reply::json(&records::OrderPage::new(&nothing, &call.reads().catalog)));
    };
    match call.ask(Command::Query(Query::Orders(filter))).await? {
        Answer::Orders(page) => Ok(Reply::json(&records::OrderPage::new(&page, &call.reads().catalog))),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The filter of a page; `None` for the empty page after the last one.
pub(super) fn filter(query: &QueryText<'_>, catalog: &Catalog) -> Result<Option<OrderFilter>, Refusal> {
    let mut params = Params::new(query);
    let status = params.choice("status", &STATUSES).unwrap_or(StatusFilter::All);
    let side = params.choice("side", &SIDES);
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
    let offset = params.offset();
    let wallets = wallets::in_query(query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let sent = query.first_of(&["cursor", "next_cursor"]);
    let after = match OrderCursor::read(sent.unwrap_or_default()).map_err(|_| Code::InvalidCursor)? {
        OrderCursor::First => None,
        OrderCursor::After(created, id) => Some((created, id)),
        OrderCursor::End => return Ok(None),
    };
    let market = query.get("market_id").filter(|condition| !condition.is_empty()).map(|condition| {
        match catalog.by_condition(condition) {
            Some(market) => MarketFilter::Only(market),
            None => MarketFilter::Unknown,
        }
    });
    let (status, market) = match status {
        StatusFilter::All => (None, market),
        StatusFilter::Only(status) => (Some(status), market),
        StatusFilter::None => (None, Some(MarketFilter::Unknown)),
    };
    Ok(Some(OrderFilter {
        wallets,
        status,
        market,
        side,
        after,
        // With a cursor the offset is ignored.
        offset: if after.is_some() { 0 } else { offset },
        limit: limit as usize,
    }))
}

impl<'a> records::OrderPage<'a> {
    fn new(page: &'a OrderPage, catalog: &'a Catalog) -> records::OrderPage<'a> {
        let next = page.orders.last().filter(|_| page.has_more);
        records::OrderPage {
            orders: page.orders.iter().map(|view| OrderRow::new(view, catalog)).collect(),
            next_cursor: next.map_or_else(
                || cursor::END.to_owned(),
                |last| OrderCursor::write(last.order.created_at, last.order.id),
            ),
            has_more: page.has_more,
            total_hint: page.total_hint,
        }
    }
}

pub async fn by_id(call: Call) -> Outcome {
    named(&call, OrderName::Id(call.variable(0)), Lookup::read(&call.query())).await
}

pub async fn by_client_id(call: Call) -> Outcome {
    named(&call, OrderName::ClientId(call.variable(0)), Lookup::read(&call.query())).await
}

/// One order with its fills, when it is in the wallets and of the source of the lookup.
pub async fn named(call: &Call, name: OrderName<'_>, lookup: Result<Lookup, Refusal>) -> Outcome {
    let query = match name {
        OrderName::Id(text) => Query::Order(ids::named(call, &text).await?),
        OrderName::ClientId(id) => Query::OrderByClientId(id.into_owned()),
    };
    let Lookup { wallets, source } = lookup?;
    let view = match call.ask(Command::Query(query)).await? {
        Answer::Order(view) => view,
        other => return Err(unexpected(&other, call.now)),
    };
    if let Some(wallets) = wallets {
        in_wallet(call, &view, wallets).await?;
    }
    if !source.shows(view.order.status()) {
        return Err(Code::OrderNotFound.into());
    }
    let mut out = Vec::with_capacity(DETAIL_BYTES);
    view::detail(&mut out, &view, &call.reads().catalog);
    Ok(Reply::json(out))
}

/// Refuses an order outside the wallets, and a wallet that is not the caller's.
async fn in_wallet(call: &Call, view: &OrderView, wallets: Wallets) -> Result<(), Refusal> {
    let user = match call.ask(Command::Query(Query::User)).await? {
        Answer::User(user) => user,
        other => return Err(unexpected(&other, call.now)),
    };
    let mut covered = user.wallets.iter().filter(|wallet| wallets::covers(wallets, wallet)).peekable();
    if covered.peek().is_none() {
        return Err(Code::WalletNotFound.into());
    }
    if covered.any(|wallet| wallet.id == view.order.terms.wallet) { Ok(()) } else { Err(Code::OrderNotFound.into()) }
}

/// The filters of a lookup.
pub struct Lookup {
    wallets: Option<Wallets>,
    source: Source,
}

impl Lookup {
    /// Reads the filters of a query.
    ///
    /// # Errors
    /// `VALIDATION_FAILED`; `INVALID_SOURCE`.
    pub fn read(query: &QueryText<'_>) -> Result<Lookup, Refusal> {
        let mut params = Params::new(query);
        let wallets = wallets::in_query(query, &mut params.problems);
        if !params.problems.is_empty() {
            return Err(Refusal::validation(&params.problems));
        }
        Ok(Lookup { wallets, source: Source::read(query.get("source"))? })
    }
}

/// The `source` filter of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Source {
    Any,
    Pending,
    Filled,
}

impl Source {
    fn read(text: Option<&str>) -> Result<Source, Code> {
        match text {
            None => Ok(Source::Any),
            Some("pending") => Ok(Source::Pending),
            Some("filled") => Ok(Source::Filled),
            Some(_) => Err(Code::InvalidSource),
        }
    }

    fn shows(self, status: Status) -> bool {
        match self {
            Source::Any => true,
            Source::Filled => status == Status::Filled,
            Source::Pending => status != Status::Filled,
        }
    }
}
