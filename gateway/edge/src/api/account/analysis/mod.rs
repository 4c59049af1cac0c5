//! `GET /v1/account/profile-analysis` (account.md §4): one look at a whole history.
//!
//! The history comes in pages with turns for others between them, so figures of an account that trades meanwhile may
//! be of slightly different moments.

mod figures;
mod shapes;
mod write;

use super::valuation::{Balance, Marks, market_value};
use super::{balance_of, marks};
use crate::api::refuse::unexpected;
use crate::api::wallets;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Permission, Route};
use crate::http::schema::{Param, Schema, TEXT};
use engine::amount::Cash;
use engine::command::{Answer, Command, EpisodeSpan, Episodes, FillSpan, Query, Wallets};
use engine::id::{PositionId, TradeId};
use engine::reject::Reject;
use engine::time::{DAY, Timestamp};
use engine::user::{Wallet, WalletKind};
use engine::view::{AccountView, FillView, PositionView, UserView};
use figures::{Outcomes, Spread, TooLarge, Trades};
use wire::fields::Params;

const RECENT_MAX: u64 = 100;
const RECENT_DEFAULT: u64 = 20;
const EQUITY_DAYS_MAX: u64 = 365;
const EQUITY_DAYS_DEFAULT: u64 = 90;
/// Rows of one page of the history.
const PAGE_ROWS: usize = 512;

pub const GET: Route = Route::get("/v1/account/profile-analysis", "get_profile_analysis")
    .about("Everything about an account in one answer: balances, positions, trades, risk, equity.")
    .auth(Auth::Key)
    .needs(Permission::Read)
    .params(&[
        Param::query(
            "recent_trades",
            Schema::Integer { min: 1, max: RECENT_MAX as i64 },
            "Trades to show; 20 without it.",
        ),
        Param::query(
            "equity_days",
            Schema::Integer { min: 1, max: EQUITY_DAYS_MAX as i64 },
            "How far back the equity timeline looks; 90 days without it.",
        ),
        Param::query("wallet_id", TEXT, "`api`, `all`, or the number of a wallet; without it the API wallet."),
    ])
    .gives_shape(200, &shapes::ANALYSIS, shapes::EXAMPLE)
    .fails(&[
        Code::ValidationFailed,
        Code::WalletNotFound,
        Code::UserNotFound,
        Code::AccountNotFound,
        Code::AnalysisError,
    ])
    .run(|call| Box::pin(analysis(call)));

impl From<TooLarge> for Refusal {
    fn from(_: TooLarge) -> Refusal {
        Code::AnalysisError.into()
    }
}

/// An open position with what it is worth.
struct Held {
    view: PositionView,
    /// 10⁻⁶ USD a share; `None` without any price.
    mark: Option<Cash>,
    /// At the mark, or at cost.
    value: Cash,
}

/// What an answer is made of.
struct Inputs {
    user: Box<UserView>,
    now: Timestamp,
    /// Of the MAIN and of the API wallet.
    ui: Balance,
    api: Balance,
    /// Of the wallets asked about.
    chosen: Balance,
    held: Vec<Held>,
    trades: Trades,
    recent: Vec<FillView>,
    outcomes: Outcomes,
    spread: Spread,
    /// Total value at full hours, oldest first: of the days asked about, and all there are.
    points: Vec<(Timestamp, Cash)>,
    equity_from: Timestamp,
}

async fn analysis(call: Call) -> Outcome {
    let query = call.query();
    let mut params = Params::new(&query);
    let recent_count = params.integer("recent_trades", 1..=RECENT_MAX).unwrap_or(RECENT_DEFAULT) as usize;
    let equity_days = params.integer("equity_days", 1..=EQUITY_DAYS_MAX).unwrap_or(EQUITY_DAYS_DEFAULT);
    let wallets = wallets::in_query(&query, &mut params.problems).unwrap_or(Wallets::Api);
    if !params.problems.is_empty() {
        return Err(Refusal::validation(&params.problems));
    }
    let user = match ask(&call, Query::User).await? {
        Answer::User(user) => user,
        other => return Err(unexpected(&other, call.now)),
    };
    // Refuses a wallet that is not the caller's.
    let (account, points) = equity(&call, wallets).await?;
    let ui = balance_of_wallet(&call, &user, WalletKind::Main).await?;
    let api = balance_of_wallet(&call, &user, WalletKind::Api).await?;
    let (trades, recent) = fills(&call, wallets, recent_count).await?;
    let outcomes = episodes(&call, wallets).await?;
    let marks = marks(&call);
    let chosen = balance_of(&account, marks);
    let held = held(account.positions, marks);
    let found = Inputs {
        now: call.now,
        ui,
        api,
        chosen,
        spread: Spread::of(held.iter().map(|held| held.value)),
        held,
        trades,
        recent,
        outcomes,
        points,
        equity_from: Timestamp(call.now.0.saturating_sub(equity_days * DAY)),
        user,
    };
    Ok(Reply::json(write::answer(&found, call.caller(), marks).await?))
}

/// Asks the caller's shard; that he is not there has a code of its own here.
async fn ask(call: &Call, query: Query) -> Result<Answer, Refusal> {
    match call.ask(Command::Query(query)).await? {
        Answer::Refused(Reject::UserNotFound) => Err(Code::UserNotFound.into()),
        answer => Ok(answer),
    }
}

/// The wallets asked about, and what they were worth at full hours.
async fn equity(call: &Call, wallets: Wallets) -> Result<(Box<AccountView>, Vec<(Timestamp, Cash)>), Refusal> {
    match ask(call, Query::Equity { wallets, first: 0 }).await? {
        Answer::Equity(view) => {
            let total = |row: &engine::user::equity::EquityRow| {
                (row.at, engine::amount::nearest(i128::from(row.cash.0) + i128::from(row.value.0)))
            };
            Ok((Box::new(view.account), view.rows.iter().map(total).collect()))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// The balance of the active wallet of a kind, which everybody has.
async fn balance_of_wallet(call: &Call, user: &UserView, kind: WalletKind) -> Result<Balance, Refusal> {
    let active = |wallet: &&Wallet| wallet.kind == kind && wallet.is_active();
    let wallet = user.wallets.iter().find(active).ok_or(Code::AccountNotFound)?;
    match ask(call, Query::Account { wallets: Wallets::One(wallet.id) }).await? {
        Answer::Account(account) => Ok(balance_of(&account, marks(call))),
        other => Err(unexpected(&other, call.now)),
    }
}

async fn fills(call: &Call, wallets: Wallets, recent_count: usize) -> Result<(Trades, Vec<FillView>), Refusal> {
    let (mut trades, mut recent, mut before) = (Trades::default(), Vec::new(), None);
    loop {
        let (from, to) = (Timestamp(0), Timestamp(u64::MAX));
        let span = FillSpan { wallets, market: None, from, to, before: before.map(TradeId), limit: PAGE_ROWS };
        let page = match ask(call, Query::FillSpan(span)).await? {
            Answer::FillSpan(page) => page,
            other => return Err(unexpected(&other, call.now)),
        };
        page.rows.iter().for_each(|row| trades.add(row));
        let room = recent_count - recent.len();
        recent.extend(page.rows.into_iter().take(room));
        before = page.next;
        if before.is_none() {
            return Ok((trades, recent));
        }
        tokio::task::yield_now().await;
    }
}

async fn episodes(call: &Call, wallets: Wallets) -> Result<Outcomes, Refusal> {
    let (mut outcomes, mut before) = (Outcomes::default(), None);
    loop {
        let before_id = before.map(PositionId);
        let span = EpisodeSpan { wallets, market: None, which: Episodes::All, before: before_id, limit: PAGE_ROWS };
        let page = match ask(call, Query::EpisodeSpan(span)).await? {
            Answer::EpisodeSpan(page) => page,
            other => return Err(unexpected(&other, call.now)),
        };
        page.rows.iter().for_each(|row| outcomes.add(&row.position));
        before = page.next;
        if before.is_none() {
            return Ok(outcomes);
        }
        tokio::task::yield_now().await;
    }
}

/// Open positions with their values, the largest first.
fn held(positions: Vec<PositionView>, marks: Marks<'_>) -> Vec<Held> {
    let one = |view: PositionView| {
        let mark = marks.mark(view.position.instrument);
        let value = mark.map_or(view.position.cost, |mark| market_value(mark, view.position.qty));
        Held { view, mark, value }
    };
    let mut held: Vec<Held> = positions.into_iter().map(one).collect();
    held.sort_by_key(|held| (std::cmp::Reverse(held.value), held.view.position.id));
    held
}

#[cfg(test)]
mod tests;
