//! Decisions about cancels: one order, all, or those of a market (gateway/docs/trading.md §4). They need no venue and
//! no market data.

use crate::command::Wallets;
use crate::fact;
use crate::id::{InstrumentId, MarketId, OrderId, WalletId};
use crate::look_up::Past;
use crate::mutation::Mutation;
use crate::order::{CloseReason, Order};
use crate::reject::Reject;
use crate::time::Timestamp;
use crate::user::User;

/// The open orders of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    Everything,
    /// Both must match if both are given; with neither, nothing matches.
    Of {
        market: Option<MarketId>,
        instrument: Option<InstrumentId>,
    },
}

/// One order of the user, which must be open.
pub fn one(past: Past<'_>, order: OrderId, now: Timestamp, facts: &mut Vec<Mutation>) -> Result<(), Reject> {
    cancellable(past, order)?;
    facts.push(closed(order, CloseReason::UserCancelled, now));
    Ok(())
}

/// Whether an order of the user is open, or why it cannot be cancelled.
pub fn cancellable(past: Past<'_>, order: OrderId) -> Result<(), Reject> {
    match past.user.order(order) {
        Some(known) if known.is_open() => Ok(()),
        Some(_) => Err(Reject::OrderNotCancellable),
        None if past.has_ended(order) => Err(Reject::OrderNotCancellable),
        None => Err(Reject::OrderNotFound),
    }
}

/// The open orders that a sweep closes, in id order.
pub fn swept(user: &User, scope: Scope, wallets: Wallets) -> Vec<OrderId> {
    let chosen: Vec<WalletId> = user.wallets_in(wallets).map(|wallet| wallet.id).collect();
    let covered = |order: &&Order| scope.covers(order.terms.instrument) && chosen.contains(&order.terms.wallet);
    user.open_orders().filter(covered).map(|order| order.id).collect()
}

impl Scope {
    fn covers(self, instrument: InstrumentId) -> bool {
        match self {
            Scope::Everything => true,
            Scope::Of { market: None, instrument: None } => false,
            Scope::Of { market, instrument: only } => {
                market.is_none_or(|market| instrument.market() == market) && only.is_none_or(|only| instrument == only)
            }
        }
    }
}

/// The fact that ends an order.
pub fn closed(order: OrderId, reason: CloseReason, at: Timestamp) -> Mutation {
    Mutation::OrderClosed(fact::OrderClosed { order, reason, at })
}
