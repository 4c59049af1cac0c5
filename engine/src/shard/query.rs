//! Queries: one user's state, copied into views. Filters and pages are applied here, so that an answer is no larger
//! than requested.

use super::minutes::Minutes;
use super::{alerts, backtests, billing, facts, venue};
use crate::amount::Qty;
use crate::command::{Answer, BatchEntry, FillFilter, MarketFilter, OrderFilter, Query, Wallets};
use crate::decide::enter::refusal;
use crate::id::{InstrumentId, KeyId, MarketId, OrderId, WalletId};
use crate::order::{CloseReason, Order, Side, Status};
use crate::reject::Reject;
use crate::rules::Rules;
use crate::shard::history;
use crate::time::Timestamp;
use crate::user::{ApiKey, FirstAnswer, Position, User};
use crate::view::{AccountView, EquityView, FillPage, FillView, KeyView, OrderPage, OrderView, PositionView, UserView};

/// Largest count of matches that is reported; beyond it there is no hint (gateway/docs/trading.md §3).
const HINT_MAX: usize = 10_000;
/// Maximum count of rows visited for the hint, so that a long history does not block the shard.
const HINT_ROWS_MAX: usize = 100_000;

/// Maximum count of full hours of one answer: a year and a day, for analyses.
const EQUITY_HOURS_MAX: u32 = 366 * 24;

/// Answers one query about `user`.
pub(super) fn answer(user: &User, query: Query, minutes: &Minutes, rules: &Rules, now: Timestamp) -> Answer {
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
        return Answer::Refused(Reject::WalletNotFound);
    }
    let found = |order: Option<OrderView>| match order {
        Some(view) => Answer::Order(view),
        None => Answer::Refused(Reject::OrderNotFound),
    };
    match query {
        Query::User => Answer::User(Box::new(whole(user))),
        Query::Keys => Answer::Keys(user.keys.iter().rev().filter(|key| listed(key)).map(key_view).collect()),
        Query::Order(id) => found(order(user, id, ids_since)),
        Query::OrderByClientId(id) => {
            found(user.remembered(&id, ids_since).and_then(|known| order(user, known.order, ids_since)))
        }
        Query::SignedOrders(hashes) => {
            let found = hashes.iter().map(|hash| user.signed_order(hash).map(|order| order.id));
            Answer::SignedOrders(found.collect())
        }
        Query::OrderHashes(orders) => {
            let hashes = orders.iter().map(|id| user.order(*id)?.terms.order_hash().copied());
            Answer::OrderHashes(hashes.collect())
        }
        Query::Orders(filter) => Answer::Orders(orders(user, &filter)),
        Query::Account { wallets } => Answer::Account(Box::new(account(user, wallets))),
        Query::Positions { wallets, market, open } => Answer::Positions(positions(user, wallets, market, open)),
        Query::Fills(filter) => Answer::Fills(fills(user, &filter)),
        Query::Equity { wallets, first } => Answer::Equity(Box::new(EquityView {
            rows: user.equity_rows(user.wallets_in(wallets), first.max(earliest(now)), now.hour()),
            account: account(user, wallets),
        })),
        Query::EquityByMinute { wallets } => Answer::Equity(Box::new(EquityView {
            rows: minutes.rows(user, user.wallets_in(wallets), now),
            account: account(user, wallets),
        })),
        Query::FillSpan(span) => Answer::FillSpan(history::fills(user, &span)),
        Query::EpisodeSpan(span) => Answer::EpisodeSpan(history::episodes(user, &span)),
        Query::VenueOrders(filter) => Answer::VenueOrders(venue::orders(user, &filter)),
        Query::VenueTrades(filter) => Answer::VenueTrades(venue::trades(user, &filter)),
        Query::Facts { after, limit } => Answer::Facts(facts::page(user, after, limit)),
        Query::Backtest(job) => backtests::one(user, job, now),
        Query::BacktestByRequest(request) => backtests::by_request(user, &request, now),
        Query::Backtests { before, limit } => backtests::page(user, before, limit, now),
        Query::BacktestMeter(month) => Answer::BacktestMeter(user.backtest_meter(month)),
        Query::Billing => billing::view(user),
        Query::Alerts => alerts::all(user),
        Query::OwedAlert(target) => alerts::owed(user, target),
    }
}

/// The first hour of an answer about equity.
fn earliest(now: Timestamp) -> u32 {
    now.hour().saturating_sub(EQUITY_HOURS_MAX)
}

/// An order with the available cash of its first answer, if that is known.
fn order(user: &User, id: OrderId, ids_since: Timestamp) -> Option<OrderView> {
    let order = user.order(id)?;
    let mut view = order_view(user, order);
    view.available = user.available_at_placement(order, ids_since).unwrap_or(view.available);
    Some(view)
}

/// The first answer to a remembered request (gateway/docs/wire.md §11).
pub fn replayed(user: &User, client_order_id: &str, ids_since: Timestamp) -> BatchEntry {
    let known = user.remembered(client_order_id, ids_since).and_then(|known| Some((known, user.order(known.order)?)));
    let Some((known, now)) = known else {
        return BatchEntry::Refused(Reject::OrderNotFound);
    };
    let then = known.order_then(now);
    let mut filled = Qty::ZERO;
    let fills = user.fills_of(now);
    let in_time = fills.iter().take_while(|fill| {
        let in_time = filled < then.filled;
        filled += fill.qty;
        in_time
    });
    let fills = in_time.cloned().collect();
    let position = known.first.position.map(|_| position_then(user, now, &known.first));
    let (reason, requested) = (known.first.closed, (now.terms.quantity, now.terms.limit));
    let fillable = now.terms.quality().fillable.unwrap_or(Qty::ZERO);
    let view = OrderView { order: then, fills, available: known.first.available, position, is_replay: true };
    match reason {
        Some(reason @ (CloseReason::FokNotFilled | CloseReason::FakNoFill)) => {
            BatchEntry::Killed { reject: refusal(now.id, reason, fillable, requested.0, requested.1), order: view }
        }
        _ => BatchEntry::Placed(view),
    }
}

/// A key that is listed.
pub fn key(user: &User, id: KeyId) -> Option<KeyView> {
    user.keys.iter().find(|key| key.id == id && listed(key)).map(key_view)
}

fn listed(key: &ApiKey) -> bool {
    key.revoked_at.is_none()
}

pub(super) fn key_view(key: &ApiKey) -> KeyView {
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
    }
}

/// The position as in the first answer: its quantity and cost, the rest from the episode.
fn position_then(user: &User, order: &Order, first: &FirstAnswer) -> Position {
    let (wallet, instrument) = (order.terms.wallet, order.terms.instrument);
    let mut episodes = user.positions().iter().rev();
    let same = |position: &&Position| {
        position.wallet == wallet && position.instrument == instrument && position.opened_at <= order.created_at
    };
    let episode = episodes.find(same).expect("the episode stays in memory as long as the request");
    let (qty, cost) = first.position.unwrap_or_default();
    Position { qty, cost, closed_at: None, settlement: None, is_reset: false, ..episode.clone() }
}

fn orders(user: &User, filter: &OrderFilter) -> OrderPage {
    if filter.market == Some(MarketFilter::Unknown) {
        return OrderPage { orders: Vec::new(), has_more: false, total_hint: Some(0) };
    }
    let wallets = Chosen::of(user, filter.wallets);
    let fits = |order: &&Order| {
        let terms = &order.terms;
        filter.status.is_none_or(|status| order.status() == status)
            && filter.side.is_none_or(|side| terms.side == side)
            && in_market(filter.market, terms.instrument)
            && wallets.contains(terms.wallet)
    };
    // Ids and times of a user's orders ascend together, so id order is keyset order.
    let before = |order: &&Order| filter.after.is_none_or(|key| (order.created_at, order.id) < key);
    let page = |rows: &mut dyn Iterator<Item = &Order>| {
        let mut rows = rows.filter(before).skip(filter.offset);
        let orders = rows.by_ref().take(filter.limit).map(|order| order_view(user, order)).collect();
        (orders, rows.next().is_some())
    };
    let count = |rows: &mut dyn Iterator<Item = &Order>| rows.take(HINT_MAX + 1).count();
    // Open orders have an index, so the length of the history does not matter.
    let ((orders, has_more), count) = if filter.status == Some(Status::Pending) {
        let open = || user.open_orders().rev().filter(fits);
        (page(&mut open()), Some(count(&mut open())))
    } else {
        let all = || user.orders().iter().rev();
        let short = user.orders().len() <= HINT_ROWS_MAX;
        (page(&mut all().filter(fits)), short.then(|| count(&mut all().filter(fits))))
    };
    OrderPage { orders, has_more, total_hint: count.filter(|count| *count <= HINT_MAX) }
}

fn fills(user: &User, filter: &FillFilter) -> FillPage {
    if filter.market == Some(MarketFilter::Unknown) {
        return FillPage { fills: Vec::new(), has_more: false };
    }
    let wallets = Chosen::of(user, filter.wallets);
    let mut rows = user
        .fills()
        .iter()
        .rev()
        .filter_map(|fill| Some((fill, user.order(fill.order)?)))
        .filter(|(_, order)| {
            filter.side.is_none_or(|side: Side| order.terms.side == side)
                && in_market(filter.market, order.terms.instrument)
                && wallets.contains(order.terms.wallet)
        })
        .skip(filter.offset);
    let view = |(fill, order): (&_, &Order)| FillView { fill: Clone::clone(fill), order: order.clone() };
    let fills = rows.by_ref().take(filter.limit).map(view).collect();
    FillPage { fills, has_more: rows.next().is_some() }
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

/// Open ones first, then by id, newest first (gateway/docs/accounts.md §3).
fn positions(user: &User, wallets: Wallets, market: Option<MarketId>, open: Option<bool>) -> Vec<PositionView> {
    let chosen = Chosen::of(user, wallets);
    let fits = |position: &&Position| {
        chosen.contains(position.wallet) && market.is_none_or(|market| position.instrument.market() == market)
    };
    let mut rows: Vec<&Position> = Vec::new();
    if open != Some(false) {
        rows.extend(user.open_positions().filter(fits));
        rows.sort_unstable_by_key(|position| std::cmp::Reverse(position.id));
    }
    if open != Some(true) {
        rows.extend(user.positions().iter().rev().filter(|position| !position.is_open()).filter(fits));
    }
    rows.into_iter().map(position_view).collect()
}

pub(super) fn position_view(position: &Position) -> PositionView {
    PositionView { position: position.clone(), average: position.average() }
}

/// The wallets of a query. All wallets ever are not listed, because there may be many.
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
