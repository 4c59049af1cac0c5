//! `GET /v1/account/profile-analysis`: figures of a whole history (engine/docs/account.md §6).
//!
//! The history is read in pages, and the task yields between them, so figures of an account that trades meanwhile may be
//! of slightly different moments. The deadline of the request, 10 s, is that of all pages together: a history of more
//! rows than can be read by then is `SERVER_BUSY`.

mod figures;
mod view;

use super::valuation::{Marks, Valuation, market_value};
use super::{marks, valuation};
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
use view::ProfileAnalysis;
use wire::fields::Params;

const RECENT_MAX: u64 = 100;
const RECENT_DEFAULT: u64 = 20;
const EQUITY_DAYS_MAX: u64 = 365;
const EQUITY_DAYS_DEFAULT: u64 = 90;
/// Rows of one page of the history; the second where some of them have left memory.
const PAGE_ROWS: usize = 512;
const PAGE_ROWS_ELSEWHERE: usize = 2_030;

pub const GET: Route = Route::get("/v1/account/profile-analysis", "get_profile_analysis")
    .shows_history()
    .about("Everything about an account in one answer: balances, positions, trades, risk, equity.")
    .auth(Auth::Key)
    .needs(Permission::Read)
    .params(&[
        Param::query(
            "recent_trades",
            Schema::Integer { min: 1, max: RECENT_MAX as i64 },
            "Trades to show; default: 20.",
        ),
        Param::query(
            "equity_days",
            Schema::Integer { min: 1, max: EQUITY_DAYS_MAX as i64 },
            "How far back the equity timeline looks; default: 90 days.",
        ),
        Param::query("wallet_id", TEXT, "`api`, `all`, or the number of a wallet; without it the API wallet."),
    ])
    .gives::<ProfileAnalysis<'_>>(200)
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

/// An open position and its value.
struct OpenPosition {
    view: PositionView,
    /// 10⁻⁶ USD a share; `None` without any price.
    mark: Option<Cash>,
    /// At the mark, or at cost.
    value: Cash,
}

/// Everything that the analysis is computed from.
struct Inputs {
    user: Box<UserView>,
    now: Timestamp,
    /// The MAIN and the API wallet.
    ui: Valuation,
    api: Valuation,
    /// The wallets asked about.
    chosen: Valuation,
    /// The largest first.
    open: Vec<OpenPosition>,
    trades: Trades,
    recent: Vec<FillView>,
    outcomes: Outcomes,
    spread: Spread,
    /// Total value at all full hours, oldest first.
    points: Vec<(Timestamp, Cash)>,
    /// The beginning of the days asked about.
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
    let ui = valuation_of_wallet(&call, &user, WalletKind::Main).await?;
    let api = valuation_of_wallet(&call, &user, WalletKind::Api).await?;
    let (trades, recent) = fills(&call, wallets, recent_count).await?;
    let outcomes = episodes(&call, wallets).await?;
    let marks = marks(&call);
    let chosen = valuation(&account, marks);
    let open = open_positions(account.positions, marks);
    let inputs = Inputs {
        now: call.now,
        ui,
        api,
        chosen,
        spread: Spread::of(open.iter().map(|open| open.value)),
        open,
        trades,
        recent,
        outcomes,
        points,
        equity_from: Timestamp(call.now.0.saturating_sub(equity_days * DAY)),
        user,
    };
    Ok(Reply::json(&ProfileAnalysis::new(&inputs, call.caller(), marks).await?))
}

/// Asks the caller's shard. An unknown user has a code of its own here.
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
            let mut points: Vec<_> = view.rows.iter().map(total).collect();
            if view.account.wallets.iter().any(|wallet| wallet.kind == WalletKind::Sandbox) {
                figures::level(&mut points, deposits(call, &view.account).await?);
            }
            Ok((Box::new(view.account), points))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// When cash was bought for these wallets, when a refund took some back, and when it came back (gateway/docs/billing.md §3).
async fn deposits(call: &Call, account: &AccountView) -> Result<Vec<(Timestamp, Cash)>, Refusal> {
    match ask(call, Query::Billing).await? {
        Answer::Billing(billing) => {
            let is_theirs = |id| account.wallets.iter().any(|wallet| wallet.id == id);
            let theirs = billing.cash_moves().filter(|moved| is_theirs(moved.wallet));
            Ok(theirs.map(|moved| (moved.at, moved.amount)).collect())
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// The figures of the active wallet of a kind that every user has.
async fn valuation_of_wallet(call: &Call, user: &UserView, kind: WalletKind) -> Result<Valuation, Refusal> {
    let active = |wallet: &&Wallet| wallet.kind == kind && wallet.is_active();
    let wallet = user.wallets.iter().find(active).ok_or(Code::AccountNotFound)?;
    match ask(call, Query::Account { wallets: Wallets::One(wallet.id) }).await? {
        Answer::Account(account) => Ok(valuation(&account, marks(call))),
        other => Err(unexpected(&other, call.now)),
    }
}

async fn fills(call: &Call, wallets: Wallets, recent_count: usize) -> Result<(Trades, Vec<FillView>), Refusal> {
    let (mut trades, mut recent, mut before) = (Trades::default(), Vec::new(), None);
    loop {
        let (from, to) = (Timestamp(0), Timestamp(u64::MAX));
        let (limit, limit_elsewhere) = (PAGE_ROWS, PAGE_ROWS_ELSEWHERE);
        let before_id = before.map(TradeId);
        let span = FillSpan { wallets, market: None, from, to, before: before_id, limit, limit_elsewhere };
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
        let (which, limit, limit_elsewhere) = (Episodes::All, PAGE_ROWS, PAGE_ROWS_ELSEWHERE);
        let span = EpisodeSpan { wallets, market: None, which, before: before_id, limit, limit_elsewhere };
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
fn open_positions(positions: Vec<PositionView>, marks: Marks<'_>) -> Vec<OpenPosition> {
    let one = |view: PositionView| {
        let mark = marks.mark(view.position.instrument);
        let value = mark.map_or(view.position.cost, |mark| market_value(mark, view.position.qty));
        OpenPosition { view, mark, value }
    };
    let mut open: Vec<OpenPosition> = positions.into_iter().map(one).collect();
    open.sort_by_key(|open| (std::cmp::Reverse(open.value), open.view.position.id));
    open
}

#[cfg(test)]
mod tests;
