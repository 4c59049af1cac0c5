//! Queries: one user's state, copied into views. Filters and pages are applied here, so that an answer is no larger
//! than requested.

use super::elsewhere::Asked;
use super::minutes::Minutes;
use super::{alerts, backtests, billing, facts, history, lists, lookups, venue};
use crate::command::{Answer, MarketFilter, Query, Wallets};
use crate::id::{InstrumentId, KeyId, WalletId};
use crate::order::Order;
use crate::reject::Reject;
use crate::rules::Rules;
use crate::time::{Timestamp, UtcDay};
use crate::user::{ApiKey, Position, User};
use crate::view::{AccountView, EquityView, KeyView, OrderView, PositionView, UserView};

/// Maximum count of full hours of one answer: a year and a day, for analyses.
const EQUITY_HOURS_MAX: u32 = 366 * 24;

/// Answers one query about `user`, or says what of it is with the rows that have left memory, which are kept from a day on.
pub(super) fn answer(
    user: &User,
    query: Query,
    minutes: &Minutes,
    rules: &Rules,
    (now, kept_from): (Timestamp, UtcDay),
) -> Asked {
    let ids_since = rules.ids_since(now);
    let wallets = match &query {
        Query::Orders(filter) => Some(filter.wallets),
        Query::Fills(filter) => Some(filter.wallets),
        Query::FillSpan(span) => Some(span.wallets),
        Query::EpisodeSpan(span) => Some(span.wallets),
        Query::VenueOrders(filter) | Query::VenueTrades(filter) => Some(filter.wallets),
        Query::Account { wallets }
        | Query::Equity { wallets, .. }
        | Query::EquityByMinute { wallets }
        | Query::Positions { wallets, .. } => Some(*wallets),
        Query::User
        | Query::Keys
        | Query::Billing
        | Query::Order(_)
        | Query::OrderByClientId(_)
        | Query::SignedOrders(_)
        | Query::OrderHashes(_)
        | Query::Facts { .. }
        | Query::Backtest(_)
        | Query::BacktestByRequest(_)
        | Query::Backtests { .. }
        | Query::BacktestMeter(_)
        | Query::Alerts
        | Query::OwedAlert(_) => None,
    };
    if let Some(one @ Wallets::One(_)) = wallets
        && user.wallets_in(one).next().is_none()
    {
        return Ok(Answer::Refused(Reject::WalletNotFound));
    }
    Ok(match query {
        Query::User => Answer::User(Box::new(whole(user))),
        Query::Keys => {
            Answer::Keys(user.keys.iter().rev().filter(|key| listed(key)).map(|key| key_view(user, key)).collect())
        }
        Query::Order(id) => return lookups::order(user, id, ids_since),
        Query::OrderByClientId(id) => return lookups::by_client_id(user, id, ids_since),
        Query::SignedOrders(hashes) => return lookups::signed(user, hashes),
        Query::OrderHashes(orders) => return lookups::hashes(user, orders),
        Query::Orders(filter) => return lists::orders(user, filter, kept_from),
        Query::Account { wallets } => Answer::Account(Box::new(account(user, wallets))),
        Query::Positions { wallets, market, open, closed_max } => {
            return lists::positions(user, wallets, market, open, closed_max);
        }
        Query::Fills(filter) => return lists::fills(user, filter),
        Query::Equity { wallets, first } => Answer::Equity(Box::new(EquityView {
            rows: user.equity_rows(user.wallets_in(wallets), first.max(earliest(now)), now.hour()),
            account: account(user, wallets),
        })),
        Query::EquityByMinute { wallets } => Answer::Equity(Box::new(EquityView {
            rows: minutes.rows(user, user.wallets_in(wallets), now),
            account: account(user, wallets),
        })),
        Query::FillSpan(span) => return history::fills(user, span),
        Query::EpisodeSpan(span) => return history::episodes(user, span),
        Query::VenueOrders(filter) => return venue::orders(user, filter),
        Query::VenueTrades(filter) => return venue::trades(user, filter),
        Query::Facts { after, limit } => return facts::answer(user, after, limit),
        Query::Backtest(job) => backtests::one(user, job, now),
        Query::BacktestByRequest(request) => backtests::by_request(user, &request, now),
        Query::Backtests { before, limit } => backtests::page(user, before, limit, now),
        Query::BacktestMeter(month) => Answer::BacktestMeter(user.backtest_meter(month)),
        Query::Billing => billing::view(user),
        Query::Alerts => alerts::all(user),
        Query::OwedAlert(target) => return alerts::owed(user, target),
    })
}

/// The first hour of an answer about equity.
fn earliest(now: Timestamp) -> u32 {
    now.hour().saturating_sub(EQUITY_HOURS_MAX)
}

/// A key that is listed.
pub fn key(user: &User, id: KeyId) -> Option<KeyView> {
    user.keys.iter().find(|key| key.id == id && listed(key)).map(|key| key_view(user, key))
}

fn listed(key: &ApiKey) -> bool {
    key.revoked_at.is_none()
}

pub(super) fn key_view(user: &User, key: &ApiKey) -> KeyView {
    KeyView {
        id: key.id,
        prefix: key.prefix.as_str().into(),
        name: key.name.clone(),
        tier: key.tier,
        permissions: key.permissions,
        created_at: key.created_at,
        expires_at: key.expires_at.get(),
        beta_until: key.beta_until.get(),
        last_used_at: key.last_used_at.get(),
        realism: user.realism_of(key.id).map(Box::from),
    }
}

fn whole(user: &User) -> UserView {
    UserView {
        id: user.id,
        sub: user.sub().map(Box::from),
        email: user.email().map(Box::from),
        created_at: user.created_at,
        grant: user.grant,
        active_keys: user.active_keys_count(),
        wallets: user.wallets.clone(),
    }
}

pub(super) fn order_view(user: &User, order: &Order) -> OrderView {
    let (wallet, instrument) = (order.terms.wallet, order.terms.instrument);
    OrderView {
        order: order.clone(),
        fills: user.fills_of(order),
        available: user.wallet(wallet).map(|wallet| wallet.available()).unwrap_or_default(),
        position: user.open_position(wallet, instrument).cloned(),
        is_replay: false,
        queue: None,
    }
}

fn account(user: &User, wallets: Wallets) -> AccountView {
    let chosen = Chosen::of(user, wallets);
    let open = user.open_positions().filter(|position| chosen.contains(position.wallet));
    let mut view = AccountView {
        wallets: user.wallets_in(wallets).cloned().collect(),
        positions: open.map(position_view).collect(),
        fills_count: 0,
        closed_count: 0,
        won_count: 0,
    };
    for tally in user.wallets_in(wallets).map(|wallet| user.trading().tally(wallet.id)) {
        view.fills_count += u64::from(tally.fills);
        view.closed_count += u64::from(tally.closed);
        view.won_count += u64::from(tally.won);
    }
    view
}

pub(super) fn position_view(position: &Position) -> PositionView {
    PositionView { position: position.clone(), average: position.average() }
}

/// The wallets of a query. All wallets ever are not listed, because there may be many.
#[derive(Clone, Debug)]
pub(super) enum Chosen {
    Any,
    /// In id order.
    Listed(Vec<WalletId>),
}

impl Chosen {
    pub fn of(user: &User, wallets: Wallets) -> Chosen {
        match wallets {
            Wallets::Any => Chosen::Any,
            _ => Chosen::Listed(user.wallets_in(wallets).map(|wallet| wallet.id).collect()),
        }
    }

    pub fn contains(&self, wallet: WalletId) -> bool {
        match self {
            Chosen::Any => true,
            Chosen::Listed(ids) => ids.binary_search(&wallet).is_ok(),
        }
    }
}

pub(super) fn in_market(filter: Option<MarketFilter>, instrument: InstrumentId) -> bool {
    match filter {
        None => true,
        Some(MarketFilter::Only(market)) => instrument.market() == market,
        Some(MarketFilter::Unknown) => false,
    }
}
