//! Lists of orders, trades and positions.

use super::elsewhere::{Around, Asked, Gone, Rest};
use super::pages::{Key, Keys, Listed, Paged, newest_first, walk};
use super::query::{Chosen, in_market, order_view, position_view};
use crate::command::{Answer, FillFilter, MarketFilter, OrderFilter, Wallets};
use crate::departed::Departed;
use crate::id::{MarketId, OrderId, TradeId};
use crate::order::{Fill, Order, Status};
use crate::time::UtcDay;
use crate::user::{Position, User};
use crate::view::{FillPage, FillView, OrderPage, OrderView, PositionView};

/// Largest count of matches that is reported; beyond it there is no hint (gateway/docs/trading.md §3).
const HINT_MAX: usize = 10_000;
/// Maximum count of rows visited for the hint, so that a long history does not block the shard.
pub(super) const HINT_ROWS_MAX: usize = 100_000;

/// A list of orders that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Orders {
    filter: OrderFilter,
    wallets: Chosen,
    page: Paged<Listed<OrderView>>,
    count: Count,
    around: Around,
}

/// The count of orders that match, for the hint.
#[derive(Clone, Debug)]
enum Count {
    Known(Option<usize>),
    /// Goes on with orders that have left memory.
    Part {
        /// Those of memory.
        so_far: usize,
        /// The ids of those among them that are not above all orders that left, newest first.
        ids: Vec<u64>,
        /// The highest id of an order that has left. Higher ones may be stored already, and are still in memory.
        gone: OrderId,
    },
}

/// A page of orders, with a hint of how many there are, if that is known without reading any that left memory or the list is
/// that of a market. `kept_from`: the first day of the history that is kept.
pub(super) fn orders(user: &User, filter: OrderFilter, kept_from: UtcDay) -> Asked {
    if filter.market == Some(MarketFilter::Unknown) {
        return Ok(Answer::Orders(OrderPage { orders: Vec::new(), has_more: false, total_hint: Some(0) }));
    }
    let wallets = Chosen::of(user, filter.wallets);
    let (fits, view) = (|order: &Order| order_fits(&filter, &wallets, order), |order: &Order| order_view(user, order));
    let keys = keys_of(&filter);
    let page = Listed::new(filter.offset, filter.limit);
    // Open orders have an index, so the length of the history does not matter.
    if filter.status == Some(Status::Pending) {
        let open = user.open_orders().rev().filter(|order| fits(order));
        let count = Count::of(open.clone(), None);
        let rows = open.filter(|order| keys.is_below(order_key(order)));
        let page = walk(page, keys, None, rows, |order| order_key(order), |_| true, view);
        return answered(user, filter, wallets, page, count);
    }
    let all = Gone::of(user);
    let rows = newest_first(user.orders(), keys, order_key);
    let page = walk(page, keys, all.order_within(keys), rows, |order| order_key(order), |order| fits(order), view);
    let count = match (user.orders().len() + all.orders_count <= HINT_ROWS_MAX, market_of(&filter)) {
        (false, _) => Count::Known(None),
        (true, Some(_)) => Count::of(user.orders().iter().rev().filter(|order| fits(order)), all.orders),
        (true, None) => {
            let here = match (filter.status, filter.side) {
                (None, None) => here_count(user, &wallets),
                _ => user.orders().iter().filter(|order| fits(order)).take(HINT_MAX + 1).count(),
            };
            let left = left_count(user, &filter, &wallets, kept_from);
            Count::Known(left.map(|left| here + left).filter(|count| *count <= HINT_MAX))
        }
    };
    answered(user, filter, wallets, page, count)
}

/// The count of orders in memory in these wallets, which the totals of each wallet have. O(wallets).
fn here_count(user: &User, wallets: &Chosen) -> usize {
    let Chosen::Listed(ids) = wallets else { return user.orders().len() };
    let placed: usize = ids.iter().map(|id| user.trading().tally(*id).orders as usize).sum();
    let is_chosen = |wallet| wallets.contains(wallet);
    placed - user.departed().map_or(0, |departed| departed.ended_orders(None, None, is_chosen))
}

/// The count of orders that have left memory, fit the filter and are kept, without reading them. `None`: only some of them
/// are kept; they are counted by wallet, end and side, and not by day.
fn left_count(user: &User, filter: &OrderFilter, wallets: &Chosen, kept_from: UtcDay) -> Option<usize> {
    let Some(departed) = user.departed() else { return Some(0) };
    match (departed.has_ended_before(kept_from), departed.newest() < kept_from.start()) {
        (false, _) => Some(departed.ended_orders(filter.status, filter.side, |wallet| wallets.contains(wallet))),
        (true, true) => Some(0),
        (true, false) => None,
    }
}

fn answered(user: &User, filter: OrderFilter, wallets: Chosen, page: Paged<Listed<OrderView>>, count: Count) -> Asked {
    match (page, count) {
        (Paged::Whole(page), Count::Known(total_hint)) => {
            Ok(Answer::Orders(OrderPage { orders: page.rows, has_more: page.has_more, total_hint }))
        }
        (page, count) => {
            let market = market_of(&filter);
            let around = Around::of(user, |held| {
                market.is_none_or(|market| held.instrument.market() == market) && wallets.contains(held.wallet)
            });
            Err(Rest::Orders(Orders { filter, wallets, page, count, around }).into())
        }
    }
}

impl Orders {
    /// Passes each row of memory to `change`.
    pub fn each_order(&mut self, change: impl FnMut(&mut OrderView)) {
        self.page.rows_mut().for_each(change);
    }

    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Orders { filter, wallets, page, count, around } = self;
        let below = |before| departed.orders(market_of(&filter), before);
        let fits = |order: &Order| order_fits(&filter, &wallets, order);
        let page = page.complete(
            |before| below(Some(OrderId(before))),
            |row| order_key(&row.order),
            |row| fits(&row.order),
            |row| around.view(row),
        )?;
        let gone = below(count.end()).map(|row| row.map(|row| row.order));
        let total_hint = count.complete(gone, fits)?;
        Ok(Answer::Orders(OrderPage { orders: page.rows, has_more: page.has_more, total_hint }))
    }
}

impl Count {
    /// Counts these orders of memory, newest first. `gone`: the highest id of an order that has left.
    fn of<'a>(rows: impl Iterator<Item = &'a Order>, gone: Option<OrderId>) -> Count {
        let (mut so_far, mut ids) = (0, Vec::new());
        for order in rows.take(HINT_MAX + 1) {
            so_far += 1;
            if gone.is_some_and(|gone| order.id <= gone) {
                ids.push(order.id.0);
            }
        }
        match gone.filter(|_| so_far <= HINT_MAX) {
            None => Count::Known(Some(so_far).filter(|count| *count <= HINT_MAX)),
            Some(gone) => Count::Part { so_far, ids, gone },
        }
    }

    /// The id below which it goes on.
    fn end(&self) -> Option<OrderId> {
        match self {
            Count::Known(_) => None,
            Count::Part { gone, .. } => Some(OrderId(gone.0 + 1)),
        }
    }

    /// With the orders that have left memory, newest first.
    fn complete<E>(
        self,
        departed: impl Iterator<Item = Result<Order, E>>,
        fits: impl Fn(&Order) -> bool,
    ) -> Result<Option<usize>, E> {
        let (mut count, ids) = match self {
            Count::Known(count) => return Ok(count),
            Count::Part { so_far, ids, .. } => (so_far, ids),
        };
        let mut ids = ids.into_iter().peekable();
        for order in departed {
            let order = order?;
            while ids.next_if(|id| *id > order.id.0).is_some() {}
            if fits(&order) && ids.peek() != Some(&order.id.0) {
                count += 1;
                if count > HINT_MAX {
                    return Ok(None);
                }
            }
        }
        Ok(Some(count))
    }
}

fn keys_of(filter: &OrderFilter) -> Keys {
    Keys::ALL.below(filter.after.map(|(at, id)| (at, id.0)))
}

fn market_of(filter: &OrderFilter) -> Option<MarketId> {
    match filter.market {
        Some(MarketFilter::Only(market)) => Some(market),
        Some(MarketFilter::Unknown) | None => None,
    }
}

fn order_fits(filter: &OrderFilter, wallets: &Chosen, order: &Order) -> bool {
    let terms = &order.terms;
    filter.status.is_none_or(|status| order.status() == status)
        && filter.side.is_none_or(|side| terms.side == side)
        && in_market(filter.market, terms.instrument)
        && wallets.contains(terms.wallet)
}

/// A list of trades that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Fills {
    filter: FillFilter,
    wallets: Chosen,
    page: Paged<Listed<FillView>>,
}

/// A page of trades.
pub(super) fn fills(user: &User, filter: FillFilter) -> Asked {
    if filter.market == Some(MarketFilter::Unknown) {
        return Ok(Answer::Fills(FillPage { fills: Vec::new(), has_more: false }));
    }
    let wallets = Chosen::of(user, filter.wallets);
    let (gone, rows) = (Gone::of(user).fill_within(Keys::ALL), fills_within(user, Keys::ALL));
    let fits = |order: &Order| fill_fits(&filter, &wallets, order);
    let page = Listed::new(filter.offset, filter.limit);
    let page = walk(page, Keys::ALL, gone, rows, |row| fill_key(row.0), |row| fits(row.1), fill_view);
    match page.whole() {
        Ok(page) => Ok(Answer::Fills(FillPage { fills: page.rows, has_more: page.has_more })),
        Err(page) => Err(Rest::Fills(Fills { filter, wallets, page }).into()),
    }
}

impl Fills {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Fills { filter, wallets, page } = self;
        let page = page.complete(
            |before| departed.fills(Some(TradeId(before))),
            |row| fill_key(&row.0),
            |row| fill_fits(&filter, &wallets, &row.1),
            |(fill, order)| FillView { fill, order },
        )?;
        Ok(Answer::Fills(FillPage { fills: page.rows, has_more: page.has_more }))
    }
}

fn fill_fits(filter: &FillFilter, wallets: &Chosen, order: &Order) -> bool {
    filter.side.is_none_or(|side| order.terms.side == side)
        && in_market(filter.market, order.terms.instrument)
        && wallets.contains(order.terms.wallet)
}

/// A list of positions that goes on with those that have left memory.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    wallets: Chosen,
    market: Option<MarketId>,
    open: Vec<PositionView>,
    closed: Paged<Listed<PositionView>>,
}

/// Open ones first, then by id, newest first (gateway/docs/accounts.md §3); of the closed ones `closed_max` at most.
pub(super) fn positions(
    user: &User,
    wallets: Wallets,
    market: Option<MarketId>,
    open: Option<bool>,
    closed_max: usize,
) -> Asked {
    let wallets = Chosen::of(user, wallets);
    let fits = |position: &Position| position_fits(&wallets, market, position);
    let mut rows: Vec<&Position> = Vec::new();
    if open != Some(false) {
        rows.extend(user.open_positions().filter(|position| fits(position)));
        rows.sort_unstable_by_key(|position| std::cmp::Reverse(position.id));
    }
    let held: Vec<PositionView> = rows.into_iter().map(position_view).collect();
    if open == Some(true) {
        return Ok(Answer::Positions(held));
    }
    let (gone, closed) = (Gone::of(user).position_within(Keys::ALL), user.positions().iter().rev());
    let closed = closed.filter(|position| !position.is_open());
    let page = Listed::new(0, closed_max);
    let key = |position: &&Position| (position.opened_at, position.id.0);
    let closed = walk(page, Keys::ALL, gone, closed, key, |position| fits(position), position_view);
    match closed.whole() {
        Ok(closed) => Ok(Answer::Positions(all_of(held, closed))),
        Err(closed) => Err(Rest::Positions(Positions { wallets, market, open: held, closed }).into()),
    }
}

impl Positions {
    pub fn complete<D: Departed>(self, departed: &D) -> Result<Answer, D::Error> {
        let Positions { wallets, market, open, closed } = self;
        let closed = closed.complete(
            |before| departed.positions(Some(crate::id::PositionId(before))),
            |position| (position.opened_at, position.id.0),
            |position| position_fits(&wallets, market, position),
            |position| position_view(&position),
        )?;
        Ok(Answer::Positions(all_of(open, closed)))
    }
}

fn all_of(mut open: Vec<PositionView>, closed: Listed<PositionView>) -> Vec<PositionView> {
    match open.is_empty() {
        true => closed.rows,
        false => {
            open.extend(closed.rows);
            open
        }
    }
}

fn position_fits(wallets: &Chosen, market: Option<MarketId>, position: &Position) -> bool {
    wallets.contains(position.wallet) && market.is_none_or(|market| position.instrument.market() == market)
}

pub(super) fn order_key(order: &Order) -> Key {
    (order.created_at, order.id.0)
}

pub(super) fn fill_key(fill: &Fill) -> Key {
    (fill.at, fill.id.0)
}

/// Fills of memory within these keys with their orders, newest first.
pub(super) fn fills_within(user: &User, keys: Keys) -> impl Iterator<Item = (&Fill, &Order)> {
    newest_first(user.fills(), keys, fill_key).filter_map(|fill| Some((fill, user.order(fill.order)?)))
}

pub(super) fn fill_view((fill, order): (&Fill, &Order)) -> FillView {
    FillView { fill: fill.clone(), order: order.clone() }
}
