//! Notices to subscribers after release: order facts of one user, numbered.

use crate::amount::Qty;
use crate::fee::FeeSource;
use crate::id::{InstrumentId, OrderId, TradeId, UserId};
use crate::time::Timestamp;

/// One order fact (gateway/docs/streams.md §1.6). Subscribers look up the order and format it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub user: UserId,
    /// From 1 for each user, in log order, the same after a restart.
    pub user_seq: u64,
    pub order: OrderId,
    pub what: OrderFact,
    pub at: Timestamp,
}

/// What happened to the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderFact {
    Placed,
    Filled {
        trade: TradeId,
        resting: bool,
        instrument: InstrumentId,
        qty: Qty,
        /// What decided its fee.
        fee: FeeSource,
    },
    Closed,
}
