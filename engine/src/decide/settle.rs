//! The settlement of a resolved market for one user (engine/docs/execution.md §12): open orders expire, then positions
//! are paid out. Settled positions are closed, so a second run finds nothing.

use crate::amount::{exact_notional, notional_half_up};
use crate::decide::cancel::closed;
use crate::fact;
use crate::id::MarketId;
use crate::market::terms::Resolution;
use crate::mutation::Mutation;
use crate::order::{CloseReason, Order};
use crate::time::Timestamp;
use crate::user::{Position, User};

/// Expires at most `orders_max` open orders of the market; returns the count.
pub fn expire_orders(
    user: &User,
    market: MarketId,
    orders_max: usize,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> usize {
    let before = facts.len();
    let of_market = |order: &&Order| order.terms.instrument.market() == market;
    let orders = user.open_orders().filter(of_market).take(orders_max);
    facts.extend(orders.map(|order| closed(order.id, CloseReason::MarketResolved, now)));
    facts.len() - before
}

/// Pays out one open position.
pub fn pay_out(position: &Position, resolution: Resolution, now: Timestamp) -> Mutation {
    let payout_per_share = resolution.payout(position.instrument.outcome());
    Mutation::PositionSettled(fact::PositionSettled {
        position: position.id,
        payout_per_share,
        payout: notional_half_up(exact_notional(payout_per_share, position.qty)),
        at: now,
    })
}

/// Pays out every open position of the user in the market; returns the count.
pub fn pay_out_all(
    user: &User,
    market: MarketId,
    resolution: Resolution,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> usize {
    let before = facts.len();
    let held = user.open_positions().filter(|position| position.instrument.market() == market);
    facts.extend(held.map(|position| pay_out(position, resolution, now)));
    facts.len() - before
}
