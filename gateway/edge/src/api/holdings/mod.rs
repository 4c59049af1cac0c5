//! The venue's service of positions and trades ("Data API"), as far as its clients use it, in both of its generations
//! (gateway/docs/venue-clients.md §9). The routes exist while `[venue] facade` is on.
//!
//! The venue shows all positions to all clients. Here a key sees its own account: `user` is the account's address, as
//! rows of the strict dialect show it, or the address that signs for the account. Without a key, and for any other
//! address, there are no rows.

mod view;

use crate::api::clob::ids;
use crate::api::gamma::filter::values;
use crate::api::orders::words::SideName;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::{Example, List};
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Gate, Route};
use crate::http::scalar::words;
use crate::http::schema::{BOOLEAN, OFFSET, Param, Schema, TEXT, VOL};
use engine::amount::Cash;
use engine::command::{Answer, Command, FillFilter, MarketFilter, Query, Wallets};
use engine::mark::Marks;
use engine::order::Side;
use engine::view::PositionView;
use view::{
    Address, Held, Pagination, PositionOfPage, PositionPage, PositionRow, TradeOfPage, TradePage, TradeRow,
    ValueEnvelope, ValueRow,
};
use wire::cursor::OffsetCursor;
use wire::decimal::Decimal;
use wire::fields::Params;
use wire::query::Query as QueryText;

const LIMIT_MAX: u64 = 500;
/// Rows of a page of the second generation.
const PAGE_MAX: u64 = 1_000;
const LIMIT_DEFAULT: u64 = 100;
const ADDRESS_CHARS: usize = 42;
/// Holdings of a share and more, without `sizeThreshold`.
const THRESHOLD_MICROS: i64 = 1_000_000;

words! {
    SortBy = "TOKENS", "CURRENT", "INITIAL", "CASHPNL", "PERCENTPNL", "PRICE", "AVGPRICE", "TITLE", "RESOLVING";
    SortDirection = "ASC", "DESC";
    WantedStatus = "OPEN", "CLOSED", "REDEEMABLE", "REDEEMABLE_LOST", "MERGEABLE";
}

const USER: Param =
    Param::query("user", Schema::of::<Address<'_>>(), "The caller's address; there are no rows of another one.");
const MARKETS: Param = Param::query("market", TEXT, "Condition ids, with commas between them; at most 100.");
const MARKET: Param = Param::query("market", TEXT, "A condition id.");
const CONDITIONS: Param = Param::query("condition_id", TEXT, "Condition ids, with commas between them; at most 100.");
const CONDITION: Param = Param::query("condition_id", TEXT, "A condition id.");
const SIDE: Param = Param::query("side", Schema::of::<SideName>(), "");
const LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 0, max: LIMIT_MAX as i64 }, "Rows of a page; default: 100.");
const PAGE_LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: PAGE_MAX as i64 }, "Rows of a page; default: 100.");
const SKIPPED: Param = Param::query("offset", OFFSET, "Rows that are passed over.");
const CURSOR: Param = Param::query("cursor", TEXT, "`next_cursor` of the page before.");

pub const ROUTES: &[Route] = &[
    read("/v1/data-api/positions", "list_data_positions")
        .about("Open positions of the caller, largest first.")
        .params(&[
            USER,
            MARKETS,
            Param::query("sizeThreshold", VOL, "Smaller holdings are left out; default: 1."),
            Param::query("redeemable", BOOLEAN, "true: none, because an ended market pays out immediately."),
            Param::query("mergeable", BOOLEAN, "`true`: no row, because nothing is merged here."),
            LIMIT,
            SKIPPED,
            Param::query("sortBy", Schema::of::<SortBy>(), "Default TOKENS."),
            Param::query("sortDirection", Schema::of::<SortDirection>(), "Default DESC."),
        ])
        .gives_with::<Vec<PositionRow<'_>>>(200, Example::Text("[]"))
        .run(|call| Box::pin(positions(call))),
    read("/v1/data-api/trades", "list_data_trades")
        .shows_history()
        .about("Trades of the caller, newest first.")
        .params(&[USER, MARKET, SIDE, LIMIT, SKIPPED])
        .gives_with::<Vec<TradeRow<'_>>>(200, Example::Text("[]"))
        .run(|call| Box::pin(trades(call))),
    read("/v1/data-api/value", "get_data_value")
        .about("What the caller's open positions are worth.")
        .params(&[USER, MARKETS])
        .gives::<List<ValueRow<'_>, 0, 1>>(200)
        .run(|call| Box::pin(value(call))),
    read("/v1/data-api/v2/positions", "list_data_positions_by_cursor")
        .about("Open positions of the caller, largest first, in pages.")
        .params(&[
            USER,
            CONDITIONS,
            Param::query("status", Schema::of::<WantedStatus>(), "Only open ones are listed."),
            PAGE_LIMIT,
            CURSOR,
        ])
        .gives::<PositionPage<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(positions_page(call))),
    read("/v1/data-api/v2/trades", "list_data_trades_by_cursor")
        .shows_history()
        .about("Trades of the caller, newest first, in pages.")
        .params(&[USER, CONDITION, SIDE, PAGE_LIMIT, CURSOR])
        .gives::<TradePage<'_>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(trades_page(call))),
    read("/v1/data-api/v2/value", "get_data_value_in_an_envelope")
        .about("What the caller's open positions are worth.")
        .params(&[USER, CONDITIONS])
        .gives::<ValueEnvelope<'_>>(200)
        .run(|call| Box::pin(value_page(call))),
];

const fn read(path: &'static str, name: &'static str) -> Route {
    Route::get(path, name).gate(Gate::Facade).fails(&[Code::ValidationFailed])
}

/// What rows are sorted by.
#[derive(Clone, Copy)]
enum Order {
    Size,
    Value,
    Cost,
    Pnl,
    PnlShare,
    Price,
    Average,
    Title,
    End,
}

const ORDERS: [(&str, Order); 9] = [
    ("TOKENS", Order::Size),
    ("CURRENT", Order::Value),
    ("INITIAL", Order::Cost),
    ("CASHPNL", Order::Pnl),
    ("PERCENTPNL", Order::PnlShare),
    ("PRICE", Order::Price),
    ("AVGPRICE", Order::Average),
    ("TITLE", Order::Title),
    ("RESOLVING", Order::End),
];

/// The parameter `user`, as it was sent, if it is an address of the caller.
fn own<'a>(call: &Call, query: &'a QueryText<'_>, params: &mut Params<'_>) -> Option<&'a str> {
    let address = query.get("user").filter(|text| !text.is_empty())?;
    let digits = address.strip_prefix("0x").filter(|_| address.len() == ADDRESS_CHARS);
    if !digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        params.problems.add("query", "user", "address_parsing", "is not 0x and 40 hexadecimal digits");
        return None;
    }
    let user = call.caller.as_ref()?.user;
    let lower = address.to_ascii_lowercase();
    let signs = || call.reads().directory.by_sub(&format!("address:{lower}")) == Some(user);
    (lower == ids::address(user) || signs()).then_some(address)
}

fn checked(params: &Params<'_>) -> Result<(), Refusal> {
    if params.problems.is_empty() { Ok(()) } else { Err(Refusal::validation(&params.problems)) }
}

/// Open positions of the caller in these markets; in all markets for an empty list.
async fn held(call: &Call, conditions: &[&str]) -> Result<Vec<PositionView>, Refusal> {
    let open = Query::Positions { wallets: Wallets::Api, market: None, open: Some(true), closed_max: 0 };
    let mut rows = match call.ask(Command::Query(open)).await? {
        Answer::Positions(rows) => rows,
        other => return Err(unexpected(&other, call.now)),
    };
    if !conditions.is_empty() {
        let catalog = &call.reads().catalog;
        let condition = |row: &PositionView| Some(&catalog.of_instrument(row.position.instrument)?.listing.condition);
        rows.retain(|row| condition(row).is_some_and(|condition| conditions.contains(&condition.as_str())));
    }
    Ok(rows)
}

fn marks(call: &Call) -> Marks<'_> {
    Marks { catalog: &call.reads().catalog, books: &call.reads().books }
}

async fn positions(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let user = own(&call, &query, &mut params);
    let limit = params.integer("limit", 0..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let offset = params.offset();
    let conditions = values(&query, &mut params, "market");
    let order = params.choice("sortBy", &ORDERS).unwrap_or(Order::Size);
    let ascending = params.choice("sortDirection", &[("ASC", true), ("DESC", false)]).unwrap_or(false);
    // An ended market pays out immediately, and positions are not merged.
    let none = [params.boolean("redeemable"), params.boolean("mergeable")].contains(&Some(true));
    let threshold = threshold(&query, &mut params);
    checked(&params)?;
    let Some(user) = user.filter(|_| !none) else { return Ok(Reply::json(&Vec::<PositionRow<'_>>::new())) };
    let rows = held(&call, &conditions).await?;
    let marks = marks(&call);
    let rows = rows.iter().filter_map(|row| Held::of(row, marks));
    let mut rows: Vec<Held<'_>> = rows.filter(|row| row.size().0 >= threshold).collect();
    rows.sort_by(|one, other| {
        let order = match order {
            Order::Size => one.size().0.cmp(&other.size().0),
            Order::Value => one.value.cmp(&other.value),
            Order::Cost => one.cost.cmp(&other.cost),
            Order::Pnl => one.pnl().cmp(&other.pnl()),
            Order::PnlShare => one.pnl_percent().0.cmp(&other.pnl_percent().0),
            Order::Price => one.mark.cmp(&other.mark),
            Order::Average => one.average.cmp(&other.average),
            Order::Title => one.title().cmp(other.title()),
            Order::End => one.end().cmp(&other.end()),
        };
        if ascending { order } else { order.reverse() }
    });
    let rows: Vec<_> = rows.iter().skip(offset).take(limit).map(|row| PositionRow::new(row, user)).collect();
    Ok(Reply::json(&rows))
}

/// `sizeThreshold`: smaller holdings are left out, in 10⁻⁶ shares.
fn threshold(query: &QueryText<'_>, params: &mut Params<'_>) -> i64 {
    let Some(text) = query.get("sizeThreshold") else { return THRESHOLD_MICROS };
    let threshold = Decimal::parse(text).ok().and_then(Decimal::cash_down);
    if threshold.is_none() {
        params.problems.add("query", "sizeThreshold", "decimal_parsing", "is not a plain decimal");
    }
    threshold.map_or(THRESHOLD_MICROS, |threshold| threshold.0)
}

async fn positions_page(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let user = own(&call, &query, &mut params);
    let limit = params.integer("limit", 1..=PAGE_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let conditions = values(&query, &mut params, "condition_id");
    let open = params.choice(
        "status",
        &[("OPEN", true), ("CLOSED", false), ("REDEEMABLE", false), ("REDEEMABLE_LOST", false), ("MERGEABLE", false)],
    );
    checked(&params)?;
    let first = cursor(&query)?;
    let Some((user, first)) = user.filter(|_| open.unwrap_or(true)).zip(first) else {
        return Ok(Reply::json(&PositionPage { data: Vec::new(), pagination: Pagination::new(None) }));
    };
    let rows = held(&call, &conditions).await?;
    let marks = marks(&call);
    let mut rows: Vec<Held<'_>> = rows.iter().filter_map(|row| Held::of(row, marks)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.size().0));
    let next = Some(first.saturating_add(limit)).filter(|next| *next < rows.len());
    let data = rows.iter().skip(first).take(limit).map(|row| PositionOfPage::new(row, user)).collect();
    Ok(Reply::json(&PositionPage { data, pagination: Pagination::new(next) }))
}

/// The fills that either list of trades asks for; `market` is the name of the parameter with the market. `None` for
/// another address than the caller's, and where no rows are asked for.
async fn fills(
    call: &Call,
    query: &QueryText<'_>,
    params: &mut Params<'_>,
    market: &'static str,
    limit: usize,
    offset: usize,
) -> Result<Option<engine::view::FillPage>, Refusal> {
    let user = own(call, query, params);
    let side = params.choice("side", &[("BUY", Side::Buy), ("SELL", Side::Sell)]);
    let conditions = values(query, params, market);
    if conditions.len() > 1 {
        params.problems.add("query", market, "too_long", "names more than one market");
    }
    checked(params)?;
    if user.is_none() || limit == 0 {
        return Ok(None);
    }
    let market = conditions.first().map(|condition| match call.reads().catalog.by_condition(condition) {
        Some(market) => MarketFilter::Only(market),
        None => MarketFilter::Unknown,
    });
    let filter = FillFilter { wallets: Wallets::Api, market, side, offset, limit };
    match call.ask(Command::Query(Query::Fills(filter))).await? {
        Answer::Fills(page) => Ok(Some(page)),
        other => Err(unexpected(&other, call.now)),
    }
}

async fn trades(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 0..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let offset = params.offset();
    let user = query.get("user").unwrap_or_default();
    let page = fills(&call, &query, &mut params, "market", limit, offset).await?;
    let fills = page.iter().flat_map(|page| &page.fills);
    let rows: Vec<_> = fills.filter_map(|fill| TradeRow::new(fill, user, &call.reads().catalog)).collect();
    Ok(Reply::json(&rows))
}

async fn trades_page(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=PAGE_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let user = query.get("user").unwrap_or_default();
    let first = cursor(&query)?;
    let page = fills(&call, &query, &mut params, "condition_id", limit, first.unwrap_or_default()).await?;
    let Some((page, first)) = page.zip(first) else {
        return Ok(Reply::json(&TradePage { data: Vec::new(), pagination: Pagination::new(None) }));
    };
    let next = page.has_more.then_some(first.saturating_add(page.fills.len()));
    let rows = page.fills.iter().filter_map(|fill| TradeOfPage::new(fill, user, &call.reads().catalog));
    Ok(Reply::json(&TradePage { data: rows.collect(), pagination: Pagination::new(next) }))
}

/// What the caller's positions in these markets are worth; `None` for another address than the caller's.
async fn worth(call: &Call, market: &'static str) -> Result<Option<Cash>, Refusal> {
    let query = call.query();
    let mut params = Params::new(&query);
    let user = own(call, &query, &mut params);
    let conditions = values(&query, &mut params, market);
    checked(&params)?;
    if user.is_none() {
        return Ok(None);
    }
    let marks = marks(call);
    let rows = held(call, &conditions).await?;
    Ok(Some(Cash(rows.iter().fold(0, |sum: i64, row| sum.saturating_add(marks.value(&row.position).0)))))
}

async fn value(call: Call) -> Outcome {
    let value = worth(&call, "market").await?;
    let query = call.query();
    let user = query.get("user").unwrap_or_default();
    Ok(Reply::json(&List::<_, 0, 1>(value.map(|value| ValueRow::new(user, value)).into_iter().collect())))
}

async fn value_page(call: Call) -> Outcome {
    let value = worth(&call, "condition_id").await?.unwrap_or_default();
    let query = call.query();
    Ok(Reply::json(&ValueEnvelope::new(query.get("user").unwrap_or_default(), value)))
}

/// The offset of the page; `None` after the last one.
fn cursor(query: &QueryText<'_>) -> Result<Option<usize>, Refusal> {
    match OffsetCursor::read(query.get("cursor").unwrap_or_default()).map_err(|_| Code::InvalidCursor)? {
        OffsetCursor::At(offset) => Ok(Some(offset)),
        OffsetCursor::End => Ok(None),
    }
}
