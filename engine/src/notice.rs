//! What subscribers are told after release: order facts of one user, numbered.

use crate::amount::Qty;
use crate::id::{InstrumentId, OrderId, TradeId, UserId};
use crate::time::Timestamp;

/// One order fact (streams.md §1.6). The texts are made from the order itself, looked up by whoever listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub user: UserId,
    /// From 1 per user, in log order, the same after a restart.
    pub user_seq: u64,
    pub order: OrderId,
    pub what: OrderFact,
    pub at: Timestamp,
}

/// What happened to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderFact {
    Placed,
    Filled { trade: TradeId, resting: bool, instrument: InstrumentId, qty: Qty },
    Closed,
}
