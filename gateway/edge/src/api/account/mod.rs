//! Balance, positions, portfolio, history and equity of the caller, of the wallets that `wallet_id` names, and the reset
//! of the API wallet (gateway/docs/accounts.md §3, §4).

mod analysis;
pub mod equity;
mod positions;
pub mod reset;
pub mod settlements;
pub mod valuation;
pub mod view;

use super::orders::words::SIDES;
use super::refuse::unexpected;
use super::wallets::{self, WALLET_ID};
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{self, BOOLEAN, Param, Schema};
use engine::command::{Answer, Command, FillFilter, MarketFilter, Query, Wallets};
use engine::id::MarketId;
use engine::order::Side;
use engine::view::AccountView;
use positions::positions;
use valuation::{Marks, Valuation};
use view::{Balance, Fill, HistoryPage, ListOrPage, Portfolio, Position, PositionPage};
use wire::fields::Params;
use wire::query::Query as QueryText;

const LIMIT_MAX: u64 = 200;
const LIMIT_DEFAULT: u64 = 50;
/// An id without a market: there are no positions of an unknown condition id.
const NO_MARKET: MarketId = MarketId(u32::MAX);
/// Codes of a read of the account, besides those of the checks of every route.
const READ: &[Code] = &[Code::ValidationFailed, Code::WalletNotFound];

const STATUS: Param = Param::query(
    "status",
    Schema::Word(&["OPEN", "CLOSED", "open", "closed"]),
    "CLOSED includes those that a reset closed.",
);
const MARKET_ID: Param = Param::query("market_id", Schema::Text(256), "Of this market only.");
const ENVELOPE: Param = Param::query("envelope", BOOLEAN, "An object with the rows instead of the rows.");
const SIDE: Param = Param::query("side", Schema::Word(&["BUY", "SELL", "buy", "sell"]), "");
const LIMIT: Param =
    Param::query("limit", Schema::Integer { min: 1, max: LIMIT_MAX as i64 }, "Rows of a page; 50 where absent.");
const OFFSET: Param = Param::query("offset", schema::OFFSET, "Rows to pass over.");

pub const ROUTES: &[Route] = &[
    Route::get("/v1/account/balance", "get_balance")
        .auth(Auth::Key)
        .needs(Permission::Read)
        .about("Cash and value of the wallets.")
        .params(&[WALLET_ID])
        .gives::<Balance>(200)
        .fails(READ)
        .run(|call| Box::pin(balance(call))),
    Route::get("/v1/account/positions", "list_positions")
        .shows_history()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .about("Positions: open ones first, then the newest.")
        .params(&[STATUS, WALLET_ID, MARKET_ID, ENVELOPE])
        .gives::<ListOrPage<Position<'_>, PositionPage<'_>>>(200)
        .fails(READ)
        .run(|call| Box::pin(positions(call))),
    Route::get("/v1/account/portfolio", "get_portfolio")
        .shows_history()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .about("Balance, open positions, and how the closed ones went.")
        .params(&[WALLET_ID])
        .gives::<Portfolio<'_>>(200)
        .fails(READ)
        .run(|call| Box::pin(portfolio(call))),
    Route::get("/v1/account/history", "list_fills")
        .shows_history()
        .auth(Auth::Key)
        .needs(Permission::Read)
        .about("Fills, newest first.")
        .params(&[MARKET_ID, SIDE, LIMIT, OFFSET, WALLET_ID, ENVELOPE])
        .gives::<ListOrPage<Fill<'_>, HistoryPage<'_>>>(200)
        .fails(&[Code::ValidationFailed, Code::InvalidRequest, Code::WalletNotFound])
        .run(|call| Box::pin(history(call))),
    equity::GET,
    analysis::GET,
    reset::POST,
];

async fn balance(call: Call) -> Outcome {
    let account = account(&call).await?;
    Ok(Reply::json(&Balance::from(valuation(&account, marks(&call)))))
}

async fn portfolio(call: Call) -> Outcome {
    let account = account(&call).await?;
    let marks = marks(&call);
    Ok(Reply::json(&Portfolio {
        balance: valuation(&account, marks).into(),
        positions: account.positions.iter().map(|row| Position::new(row, marks)).collect(),
        total_trades: account.fills_count,
        win_rate: view::win_rate(account.won_count, account.closed_count),
    }))
}

/// Asks the shard for the wallets that the query selects, with their open positions.
async fn account(call: &Call) -> Result<Box<AccountView>, Refusal> {
    let query = call.query();
    let mut params = Params::new(&query);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    match call.ask(Command::Query(Query::Account { wallets })).await? {
        Answer::Account(account) => Ok(account),
        other => Err(unexpected(&other, call.now)),
    }
}

fn valuation(account: &AccountView, marks: Marks<'_>) -> Valuation {
    Valuation::of(&account.wallets, account.positions.iter().map(|row| &row.position), marks)
}

fn marks(call: &Call) -> Marks<'_> {
    Marks { catalog: &call.reads().catalog, books: &call.reads().books }
}

async fn history(call: Call) -> Outcome {
    let query = call.query();
    let (filter, envelope) = history_filter(&call, &query)?;
    let offset = filter.offset;
    let page = match call.ask(Command::Query(Query::Fills(filter))).await? {
        Answer::Fills(page) => page,
        other => return Err(unexpected(&other, call.now)),
    };
    let marks = marks(&call);
    let data: Vec<_> = page.fills.iter().map(|row| Fill::new(row, marks)).collect();
    let next = page.has_more.then(|| (offset + data.len()).to_string());
    Ok(Reply::json(&match envelope {
        true => ListOrPage::Page(HistoryPage { data, next_cursor: next.unwrap_or_default() }),
        false => ListOrPage::List(data),
    }))
}

/// The requested page of the history, and whether it gets an envelope.
fn history_filter(call: &Call, query: &QueryText<'_>) -> Result<(FillFilter, bool), Refusal> {
    let mut params = Params::new(query);
    let limit = params.integer("limit", 1..=LIMIT_MAX).unwrap_or(LIMIT_DEFAULT);
    let offset = params.offset();
    let envelope = params.boolean("envelope").unwrap_or(false);
    let wallets = wallets::in_query(query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let filter = FillFilter {
        wallets,
        market: market(call, query),
        side: query.get("side").map(side).transpose()?,
        offset,
        limit: limit as usize,
    };
    Ok((filter, envelope))
}

/// Parses a side. An unknown one is `INVALID_REQUEST` on this route, not `VALIDATION_FAILED`.
fn side(text: &str) -> Result<Side, Refusal> {
    let side = SIDES.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
    side.map(|(_, side)| *side).ok_or_else(|| Refusal::new(Code::InvalidRequest, "side is neither BUY nor SELL."))
}

/// The market that `market_id` names; `None` without one.
pub(super) fn market(call: &Call, query: &QueryText<'_>) -> Option<MarketFilter> {
    let condition = query.get("market_id").filter(|condition| !condition.is_empty());
    condition.map(|condition| match call.reads().catalog.by_condition(condition) {
        Some(market) => MarketFilter::Only(market),
        None => MarketFilter::Unknown,
    })
}

#[cfg(test)]
mod tests;
