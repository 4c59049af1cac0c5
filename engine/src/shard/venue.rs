//! The venue-shaped lists: orders and trades of one user, newest first, from any position in a long history.
//!
//! A page is found by its key, not by counting, and one query visits at most [`ROWS_PER_QUERY_MAX`] rows: for a page of
//! rare rows the caller queries again from where this one stopped.

use super::query::{Chosen, order_view};
use crate::command::{Statuses, VenueFilter};
use crate::id::{InstrumentId, WalletId};
use crate::order::{Fill, Order};
use crate::time::Timestamp;
use crate::user::User;
use crate::user::rows::Rows;
use crate::view::{FillView, OrderView, VenuePage};

/// Maximum count of rows that one query visits: some 0.1 ms.
const ROWS_PER_QUERY_MAX: usize = 10_000;

/// The sort key of a row.
type Key = (Timestamp, u64);

/// A page of orders.
pub fn orders(user: &User, filter: &VenueFilter) -> VenuePage<OrderView> {
    let wallets = Chosen::of(user, filter.wallets);
    let rows = user.orders();
    let key = |order: &Order| (order.created_at, order.id.0);
    let view = |order: &Order| {
        let fits = filter.statuses.contains(order.status())
            && covers(filter, order.id.0, order.terms.instrument, order.terms.wallet, &wallets);
        fits.then(|| order_view(user, order))
    };
    let (begin, end) = bounds(filter, rows, key);
    // Open orders have an index, so the length of the history does not matter.
    if filter.statuses == Statuses::OPEN {
        let open = user.open_rows().rev().skip_while(|row| *row >= end).take_while(|row| *row >= begin);
        page(open.map(|row| &rows[row]), filter.limit, key, view)
    } else {
        page(rows.range(begin..end).rev().map(|(_, row)| row), filter.limit, key, view)
    }
}

/// A page of trades.
pub fn trades(user: &User, filter: &VenueFilter) -> VenuePage<FillView> {
    let wallets = Chosen::of(user, filter.wallets);
    let rows = user.fills();
    let key = |fill: &Fill| (fill.at, fill.id.0);
    let view = |fill: &Fill| {
        let order = user.order(fill.order)?;
        let fits = covers(filter, fill.id.0, order.terms.instrument, order.terms.wallet, &wallets);
        fits.then(|| FillView { fill: fill.clone(), order: order.clone() })
    };
    let (begin, end) = bounds(filter, rows, key);
    page(rows.range(begin..end).rev().map(|(_, row)| row), filter.limit, key, view)
}

/// The row numbers within the filter's times and after its cursor. Ids and times of a user ascend together, so each bound is
/// found by binary search.
fn bounds<R>(filter: &VenueFilter, rows: &Rows<R>, key: impl Fn(&R) -> Key) -> (usize, usize) {
    let first_where = |is_reached: &dyn Fn(Key) -> bool| rows.partition_point(|row| !is_reached(key(row)));
    let mut begin = filter.since.map_or(0, |since| first_where(&|key| key >= (since, 0)));
    let mut end = filter.until.map_or(rows.end(), |until| first_where(&|key| key >= (until, 0)));
    if let Some(after) = filter.after {
        end = end.min(first_where(&|key| key >= after));
    }
    if let Some(only) = filter.only {
        let at = first_where(&|(_, id)| id >= only);
        (begin, end) = (begin.max(at), end.min(at + 1));
    }
    (begin, end.max(begin))
}

fn covers(filter: &VenueFilter, id: u64, instrument: InstrumentId, wallet: WalletId, wallets: &Chosen) -> bool {
    filter.only.is_none_or(|only| only == id)
        && filter.market.is_none_or(|market| market == instrument.market())
        && filter.instrument.is_none_or(|only| only == instrument)
        && wallets.contains(wallet)
}

fn page<'a, R: 'a, T>(
    rows: impl Iterator<Item = &'a R>,
    limit: usize,
    key: impl Fn(&R) -> Key,
    view: impl Fn(&R) -> Option<T>,
) -> VenuePage<T> {
    let mut found = Vec::with_capacity(limit.min(128));
    let mut last = None;
    for (looked_at, row) in rows.enumerate() {
        // One row more than the page: it shows that the list continues.
        if looked_at == ROWS_PER_QUERY_MAX {
            return VenuePage { rows: found, more_after: last };
        }
        if let Some(view) = view(row) {
            if found.len() == limit {
                return VenuePage { rows: found, more_after: last };
            }
            found.push(view);
        }
        last = Some(key(row));
    }
    VenuePage { rows: found, more_after: None }
}
