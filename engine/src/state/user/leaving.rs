//! Which rows may leave memory.

use super::alerts::About;
use super::trading::Trading;
use super::{User, Users};
use crate::departed::Leaving;
use crate::id::{InstrumentId, OrderId, PositionId, WalletId};
use crate::time::Timestamp;
use ahash::{AHashMap, AHashSet};

impl Users {
    /// The rows that may leave memory, user by user, ascending; users without any are left out. An order that has ended
    /// leaves if it ended before `ended_before`, or is not one of the `rows_max` orders of its user that ended last, with
    /// its fills and its remembered request. A closed position leaves by the same rule. O(rows in memory).
    ///
    /// A row stays while something may name it:
    ///
    /// - Facts name open orders and positions only: those of a matching cycle, a cancel, a sweep, a settlement, a reset.
    ///   A settlement that is made in steps has its orders and positions open until their step. A remembered request is
    ///   in the record that placed its order.
    /// - The first answer of a remembered request shows a position as it was, from the row of its episode: that one stays
    ///   as long as the request does.
    /// - An alert that is owed is sent with its order, fill or position: these stay until it is delivered.
    /// - Order facts, which streams resume from, name orders that have left; their readers ask the history store.
    /// - The available cash after an order (`User::available_at_placement`) is unknown without later rows, unless its
    ///   request is in memory.
    /// - A correction of the clock limits the times of all rows: it is refused if a row that has left has a later time
    ///   ([`crate::shard::replay::fold`]).
    pub fn leaving(&self, ended_before: Timestamp, rows_max: usize) -> Vec<Leaving> {
        let of_users = self.unordered().filter_map(|user| user.leaving(ended_before, rows_max));
        let mut leaving: Vec<Leaving> = of_users.collect();
        leaving.sort_unstable_by_key(|rows| rows.user);
        leaving
    }

    /// The earliest moment so that at most `orders_max` orders in memory ended at or after it; `Timestamp(0)` if no more
    /// have ended. Of orders that ended in the same microsecond all or none do. O(orders in memory), when there are more.
    pub fn ended_before_keeping(&self, orders_max: usize) -> Timestamp {
        let open: usize = self.unordered().map(User::open_orders_count).sum();
        let beyond = (self.orders_count() - open).saturating_sub(orders_max);
        let Some(newest_to_leave) = beyond.checked_sub(1) else { return Timestamp(0) };
        let orders = self.unordered().filter_map(|user| user.trading.as_deref()).flat_map(|trading| &trading.orders);
        let mut ends: Vec<Timestamp> = orders.filter_map(|order| order.ended_at()).collect();
        Timestamp(ends.select_nth_unstable(newest_to_leave).1.0 + 1)
    }
}

impl User {
    fn leaving(&self, ended_before: Timestamp, rows_max: usize) -> Option<Leaving> {
        let trading = self.trading.as_deref()?;
        let ended = trading.orders.range(0..trading.orders.end());
        let ended = ended.filter_map(|(row, order)| order.ended_at().map(|at| (at, row)));
        let closed = trading.positions.range(0..trading.positions.end());
        let closed = closed.filter_map(|(row, position)| position.closed_at.map(|at| (at, row)));
        let orders = oldest(ended.collect(), ended_before, rows_max);
        let positions = oldest(closed.collect(), ended_before, rows_max);
        // Owed alerts are few.
        let (mut owed_orders, mut owed_positions) = (AHashSet::new(), AHashSet::new());
        for alert in self.alerts().into_iter().flat_map(|alerts| alerts.owed()) {
            match alert.about {
                About::Order(order) | About::Fill { order, .. } => _ = owed_orders.insert(order),
                About::Position(position) => _ = owed_positions.insert(position),
                _ => {}
            }
        }
        let orders = orders.into_iter().map(|row| trading.orders[row].id);
        let orders: Vec<OrderId> = orders.filter(|id| !owed_orders.contains(id)).collect();
        let positions = positions.into_iter().map(|row| trading.positions[row].id);
        let mut positions: Vec<PositionId> = positions.filter(|id| !owed_positions.contains(id)).collect();
        if !positions.is_empty() {
            let shown = trading.shown(&orders);
            positions.retain(|id| !shown.contains(id));
        }
        let leaves = !orders.is_empty() || !positions.is_empty();
        leaves.then_some(Leaving { user: self.id, orders, positions })
    }
}

/// Of rows with the times of their ends, those that ended before a moment or are not among the `rows_max` that ended
/// last; ascending.
fn oldest(mut ended: Vec<(Timestamp, usize)>, ended_before: Timestamp, rows_max: usize) -> Vec<usize> {
    let beyond = ended.len().saturating_sub(rows_max);
    if beyond > 0 && beyond < ended.len() {
        ended.select_nth_unstable(beyond);
    }
    let leaves = |(nth, (at, _)): &(usize, (Timestamp, usize))| *nth < beyond || *at < ended_before;
    let mut rows: Vec<usize> = ended.into_iter().enumerate().filter(leaves).map(|(_, (_, row))| row).collect();
    rows.sort_unstable();
    rows
}

impl Trading {
    /// Positions that the first answers of remembered requests show, without those of the orders that leave.
    fn shown(&self, leaving: &[OrderId]) -> AHashSet<PositionId> {
        let mut episodes = AHashMap::<(WalletId, InstrumentId), Vec<(Timestamp, PositionId)>>::new();
        for position in &self.positions {
            let of = episodes.entry((position.wallet, position.instrument)).or_default();
            of.push((position.opened_at, position.id));
        }
        let mut shown = AHashSet::new();
        for request in self.requests.iter().flat_map(|requests| requests.rows.iter()) {
            if request.first.position.is_none() || leaving.binary_search(&request.order).is_ok() {
                continue;
            }
            let Some(order) = self.order_row(request.order).map(|row| &self.orders[row]) else { continue };
            // The newest that was opened by then.
            let Some(of) = episodes.get(&(order.terms.wallet, order.terms.instrument)) else { continue };
            let opened = of.partition_point(|(at, _)| *at <= order.created_at);
            shown.extend(opened.checked_sub(1).map(|newest| of[newest].1));
        }
        shown
    }
}
