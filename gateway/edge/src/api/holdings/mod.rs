//! The venue's service of positions and trades ("Data API"), as far as its clients ask it, in both of its generations.
//! The routes exist while `[venue] facade` is on.
//!
//! The venue shows everyone's positions to anyone. Here a key sees its own account: `user` is the account's address, as
//! strict rows show it, or the address that signs for the account. Without a key, and for any other address, there are
//! no rows.

mod shape;
mod view;

use crate::api::clob::ids;
use crate::api::gamma::filter::values;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Gate, Route};
use engine::amount::Cash;
use engine::command::{Answer, Command, FillFilter, MarketFilter, Query, Wallets};
use engine::mark::Marks;
use engine::order::Side;
use engine::view::PositionView;
use view::Held;
use wire::cursor::OffsetCursor;
use wire::decimal::Decimal;
use wire::fields::Params;
use wire::query::Query as QueryText;
use wire::write::{Object, array, object};

const LIMIT_MAX: u64 = 500;
/// Rows of a page of the second generation.
const PAGE_MAX: u64 = 1_000;
const LIMIT_DEFAULT: u64 = 100;
const ROW_BYTES: usize = 1_024;
const ADDRESS_CHARS: usize = 42;
/// Holdings of a share and more, without `sizeThreshold`.
const THRESHOLD_MICROS: i64 = 1_000_000;

pub const ROUTES: &[Route] = &[
    read("/v1/data-api/positions", "list_data_positions")
        .about("Open positions of the caller, largest first.")
        .params(shape::POSITIONS_ASKED)
        .gives_shape(200, &shape::POSITIONS, shape::POSITIONS_EXAMPLE)
        .run(|call| Box::pin(positions(call))),
    read("/v1/data-api/trades", "list_data_trades")
        .about("Trades of the caller, newest first.")
        .params(shape::TRADES_ASKED)
        .gives_shape(200, &shape::TRADES, shape::TRADES_EXAMPLE)
        .run(|call| Box::pin(trades(call))),
    read("/v1/data-api/value", "get_data_value")
        .about("What the caller's open positions are worth.")
        .params(shape::VALUE_ASKED)
        .gives_shape(200, &shape::VALUE, shape::VALUE_EXAMPLE)
        .run(|call| Box::pin(value(call))),
    read("/v1/data-api/v2/positions", "list_data_positions_by_cursor")
        .about("Open positions of the caller, largest first, in pages.")
        .params(shape::PAGE_ASKED)
        .gives_shape(200, &shape::POSITIONS_PAGE, shape::PAGE_EXAMPLE)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(positions_page(call))),
    read("/v1/data-api/v2/trades", "list_data_trades_by_cursor")
        .about("Trades of the caller, newest first, in pages.")
        .params(shape::TRADES_PAGE_ASKED)
        .gives_shape(200, &shape::TRADES_PAGE, shape::PAGE_EXAMPLE)
        .fails(&[Code::ValidationFailed, Code::InvalidCursor])
        .run(|call| Box::pin(trades_page(call))),
    read("/v1/data-api/v2/value", "get_data_value_in_an_envelope")
        .about("What the caller's open positions are worth.")
        .params(shape::VALUE_PAGE_ASKED)
        .gives_shape(200, &shape::VALUE_PAGE, shape::VALUE_PAGE_EXAMPLE)
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

/// The address of the caller, when `user` asks for the caller: the address as it was asked for.
fn own<'a>(call: &Call, query: &'a QueryText<'_>, params: &mut Params<'_>) -> Option<&'a str> {
    let asked = query.get("user").filter(|text| !text.is_empty())?;
    let digits = asked.strip_prefix("0x").filter(|_| asked.len() == ADDRESS_CHARS);
    if !digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit())) {
        params.problems.add("query", "user", "address_parsing", "is not 0x and 40 hexadecimal digits");
        return None;
    }
    let user = call.caller.as_ref()?.user;
    let lower = asked.to_ascii_lowercase();
    let signs = || call.reads().directory.by_sub(&format!("address:{lower}")) == Some(user);
    (lower == ids::address(user) || signs()).then_some(asked)
}

fn checked(params: &Params<'_>) -> Result<(), Refusal> {
    if params.problems.is_empty() { Ok(()) } else { Err(Refusal::validation(&params.problems)) }
}

/// Open positions of the caller in these markets, all without any.
async fn held(call: &Call, conditions: &[&str]) -> Result<Vec<PositionView>, Refusal> {
    let asked = Query::Positions { wallets: Wallets::Api, market: None, open: Some(true) };
    let mut rows = match call.ask(Command::Query(asked)).await? {
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
    // Whatever ends here is paid out at once, and nothing is merged.
    let none = [params.boolean("redeemable"), params.boolean("mergeable")].contains(&Some(true));
    let threshold = threshold(&query, &mut params);
    checked(&params)?;
    let Some(user) = user.filter(|_| !none) else { return Ok(Reply::json(b"[]".to_vec())) };
    let rows = held(&call, &conditions).await?;
    let marks = marks(&call);
    let mut rows: Vec<Held<'_>> =
        rows.iter().map(|row| Held::of(row, marks)).filter(|row| row.size_micros() >= threshold).collect();
    rows.sort_by(|one, other| {
        let order = match order {
            Order::Size => one.size_micros().cmp(&other.size_micros()),
            Order::Value => one.value.cmp(&other.value),
            Order::Cost => one.cost.cmp(&other.cost),
            Order::Pnl => one.pnl().cmp(&other.pnl()),
            Order::PnlShare => one.pnl_percent().cmp(&other.pnl_percent()),
            Order::Price => one.mark.cmp(&other.mark),
            Order::Average => one.average.cmp(&other.average),
            Order::Title => one.title().cmp(other.title()),
            Order::End => one.end().cmp(&other.end()),
        };
        if ascending { order } else { order.reverse() }
    });
    let mut out = Vec::with_capacity(2 + ROW_BYTES * rows.len().min(limit));
    array(&mut out, rows.iter().skip(offset).take(limit), |out, row| row.write(out, user));
    Ok(Reply::json(out))
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
    let Some((user, first)) = user.filter(|_| open.unwrap_or(true)).zip(first) else { return Ok(page(b"[]", None)) };
    let rows = held(&call, &conditions).await?;
    let marks = marks(&call);
    let mut rows: Vec<Held<'_>> = rows.iter().map(|row| Held::of(row, marks)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.size_micros()));
    let mut out = Vec::new();
    array(&mut out, rows.iter().skip(first).take(limit), |out, row| row.write_second(out, user));
    let next = first.saturating_add(limit);
    Ok(page(&out, Some(next).filter(|next| *next < rows.len())))
}

/// Reads what both generations of the list of trades ask for; `market`: the name of their market.
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
    let mut out = Vec::new();
    match fills(&call, &query, &mut params, "market", limit, offset).await? {
        Some(page) => array(&mut out, &page.fills, |out, fill| view::trade(out, fill, user, marks(&call).catalog)),
        None => out.extend_from_slice(b"[]"),
    }
    Ok(Reply::json(out))
}

async fn trades_page(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let limit = params.integer("limit", 1..=PAGE_MAX).unwrap_or(LIMIT_DEFAULT) as usize;
    let user = query.get("user").unwrap_or_default();
    let place = cursor(&query)?;
    let found = fills(&call, &query, &mut params, "condition_id", limit, place.unwrap_or_default()).await?;
    let Some((found, first)) = found.zip(place) else { return Ok(page(b"[]", None)) };
    let mut out = Vec::new();
    array(&mut out, &found.fills, |out, fill| view::trade_second(out, fill, user, marks(&call).catalog));
    Ok(page(&out, found.has_more.then_some(first.saturating_add(found.fills.len()))))
}

/// What the caller's positions in these markets are worth; `None` where nothing may be told.
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
    let worth = worth(&call, "market").await?;
    let query = call.query();
    let user = query.get("user").unwrap_or_default();
    let mut out = Vec::new();
    array(&mut out, worth, |out, worth| {
        object(out, |o| {
            o.text("user", user);
            view::signed(o, "value", worth.0);
        });
    });
    Ok(Reply::json(out))
}

async fn value_page(call: Call) -> Outcome {
    let worth = worth(&call, "condition_id").await?;
    let query = call.query();
    let user = query.get("user").unwrap_or_default();
    Ok(Reply::object(|o| match worth {
        Some(worth) => o.object("data", |o| {
            o.text("proxy_wallet", user);
            view::signed(o, "value", worth.0);
        }),
        None => o.object("data", |o| {
            o.text("proxy_wallet", user);
            o.integer("value", 0);
        }),
    }))
}

/// Where the page begins; `None`: after the last one.
fn cursor(query: &QueryText<'_>) -> Result<Option<usize>, Refusal> {
    match OffsetCursor::read(query.get("cursor").unwrap_or_default()).map_err(|_| Code::InvalidCursor)? {
        OffsetCursor::At(place) => Ok(Some(place)),
        OffsetCursor::End => Ok(None),
    }
}

/// A page of the second generation.
fn page(rows: &[u8], next: Option<usize>) -> Reply {
    let mut out = Vec::with_capacity(96 + rows.len());
    object(&mut out, |o: &mut Object<'_>| {
        o.name("data").extend_from_slice(rows);
        o.object("pagination", |o| {
            o.boolean("has_more", next.is_some());
            o.text_or_null("next_cursor", next.map(OffsetCursor::write).as_deref());
        });
    });
    Reply::json(out)
}
