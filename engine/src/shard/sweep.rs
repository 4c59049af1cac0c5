//! Cancels, and work on orders and positions that may be larger than one turn: cancel sweeps and settlements. Each piece
//! writes records of at most [`SWEEP_ORDERS_PER_RECORD_MAX`] orders.

use super::{Outbox, Room, Shard, query};
use crate::command::{Answer, Wallets};
use crate::decide::cancel::{self, Scope, closed};
use crate::decide::settle;
use crate::id::{MarketId, OrderId, UserId};
use crate::look_up::{Findings, Past};
use crate::order::CloseReason;
use crate::reject::Reject;
use crate::rules::SWEEP_ORDERS_PER_RECORD_MAX;
use crate::view::CancelledOrders;

/// A cancel sweep in progress.
pub(super) struct Sweep<R> {
    owner: UserId,
    reason: CloseReason,
    /// The orders that were open at its start, in id order; from `done` on still to be closed.
    orders: Vec<OrderId>,
    done: usize,
    result: CancelledOrders,
    reply: R,
}

/// A market being paid out.
pub(super) struct Settling<R> {
    market: MarketId,
    /// Users with orders or positions in it, ascending; `None` before they were looked up.
    users: Option<Vec<UserId>>,
    done: usize,
    positions: u64,
    orders: u64,
    reply: R,
}

impl<R> Settling<R> {
    pub fn new(market: MarketId, reply: R) -> Settling<R> {
        Settling { market, users: None, done: 0, positions: 0, orders: 0, reply }
    }
}

impl<R> Shard<R> {
    /// Cancels one order.
    pub(super) fn cancel_one(
        &mut self,
        owner: UserId,
        order: OrderId,
        found: Option<&Findings>,
        outbox: &mut impl Outbox<R>,
    ) -> Answer {
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        if let Err(reject) = cancel::one(Past { user, found }, order, self.now, &mut self.facts) {
            return Answer::Refused(reject);
        }
        self.commit(owner, outbox);
        let Some(user) = self.users.get(owner) else { return Answer::Refused(Reject::UserNotFound) };
        match user.order(order) {
            Some(order) => Answer::Order(query::order_view(user, order)),
            None => Answer::Refused(Reject::OrderNotFound),
        }
    }

    /// Cancels all open orders in `scope`; a long list in several records over several turns.
    pub(super) fn start_sweep(
        &mut self,
        owner: UserId,
        scope: Scope,
        wallets: Wallets,
        reply: R,
        outbox: &mut impl Outbox<R>,
    ) {
        let Some(user) = self.users.get(owner) else {
            return outbox.answer(reply, Answer::Refused(Reject::UserNotFound));
        };
        if matches!(wallets, Wallets::One(_)) && user.wallets_in(wallets).next().is_none() {
            return outbox.answer(reply, Answer::Refused(Reject::WalletNotFound));
        }
        let orders = cancel::swept(user, scope, wallets);
        let reason = match scope {
            Scope::Everything => CloseReason::CancelAll,
            Scope::Of { .. } => CloseReason::CancelMarket,
        };
        let sweep = Sweep { owner, reason, orders, done: 0, result: CancelledOrders::default(), reply };
        self.sweep(sweep, outbox);
    }

    /// Cancels those of the named orders that are open.
    pub(super) fn start_cancels(
        &mut self,
        owner: UserId,
        mut named: Vec<OrderId>,
        found: Option<&Findings>,
        reply: R,
        outbox: &mut impl Outbox<R>,
    ) {
        let Some(user) = self.users.get(owner) else {
            return outbox.answer(reply, Answer::Refused(Reject::UserNotFound));
        };
        let mut result = CancelledOrders::default();
        named.sort_unstable();
        named.dedup();
        named.retain(|id| {
            let cancellable = cancel::cancellable(Past { user, found }, *id);
            match cancellable {
                Err(Reject::OrderNotFound) => result.not_found.push(*id),
                Err(_) => result.not_cancellable.push(*id),
                Ok(()) => {}
            }
            cancellable.is_ok()
        });
        let sweep = Sweep { owner, reason: CloseReason::UserCancelled, orders: named, done: 0, result, reply };
        self.sweep(sweep, outbox);
    }

    /// One piece of a sweep.
    pub(super) fn sweep(&mut self, mut sweep: Sweep<R>, outbox: &mut impl Outbox<R>) {
        let user = self.users.get(sweep.owner).expect("users are never removed");
        let piece = &sweep.orders[sweep.done..];
        let piece = &piece[..piece.len().min(SWEEP_ORDERS_PER_RECORD_MAX)];
        for id in piece {
            // Between two pieces a cycle may have filled it.
            match user.order(*id).filter(|order| order.is_open()) {
                Some(order) => {
                    self.facts.push(closed(*id, sweep.reason, self.now));
                    sweep.result.cancelled.push(*id);
                    sweep.result.released.0 += order.reserved_qty();
                    sweep.result.released.1 += order.reserved_cash();
                }
                None => sweep.result.not_cancellable.push(*id),
            }
        }
        sweep.done += piece.len();
        self.commit(sweep.owner, outbox);
        if sweep.done == sweep.orders.len() {
            outbox.answer(sweep.reply, Answer::Cancelled(sweep.result));
        } else {
            self.sweeps.push_front(sweep);
        }
    }

    /// One piece of a settlement: one user's, or a part of it (engine/docs/execution.md §12).
    pub(super) fn settle(&mut self, mut settling: Settling<R>, outbox: &mut impl Outbox<R>) {
        let market = settling.market;
        let resolution = self.catalog.market(market).and_then(|cell| cell.resolution());
        let users = settling.users.take().unwrap_or_else(|| self.users.concerned(market));
        let mut budget = SWEEP_ORDERS_PER_RECORD_MAX;
        if let Some(resolution) = resolution {
            while let Some(owner) = users.get(settling.done).copied() {
                if budget == 0 || outbox.room() == Room::None {
                    break;
                }
                self.note_early(owner, outbox);
                let user = self.users.get(owner).expect("users are never removed");
                let expired = settle::expire_orders(user, market, budget, self.now, &mut self.facts);
                budget -= expired;
                settling.orders += expired as u64;
                // Orders first: a reserved share is not paid out.
                if budget > 0 {
                    let paid = settle::pay_out_all(user, market, resolution, self.now, &mut self.facts);
                    settling.positions += paid as u64;
                    settling.done += 1;
                    budget = budget.saturating_sub(paid.max(1));
                }
                self.commit(owner, outbox);
            }
        } else {
            settling.done = users.len();
        }
        if settling.done == users.len() {
            let answer = Answer::Settled { positions: settling.positions, orders: settling.orders };
            outbox.answer(settling.reply, answer);
        } else {
            settling.users = Some(users);
            self.settlings.push_front(settling);
        }
    }
}
