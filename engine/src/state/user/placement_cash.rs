//! The available cash in the first answer to an order (gateway/docs/trading.md §2, `account_balance`), for later
//! lookups of the order.
//!
//! It is stored with a request that has an id, for its replay, as long as the id counts. For other orders it is computed
//! from the wallet's present cash and the later order facts, fills, payouts, deposits and refunds.

use super::facts::Fact;
use super::trading::Trading;
use super::{DepartedRows, FactRow, User};
use crate::amount::{Cash, Qty};
use crate::order::reservation::as_maker;
use crate::order::{CloseReason, Order, Side};
use crate::time::Timestamp;
use ahash::AHashMap;

/// Maximum count of order facts and positions that are read: the shard, and so all its users, wait meanwhile.
const FACTS_MAX: usize = 4_096;
const POSITIONS_MAX: usize = 4_096;

/// Later changes of another order's reservation.
#[derive(Clone, Copy, Debug, Default)]
struct Since {
    /// It was placed later.
    is_newer: bool,
    /// Filled later, after it had rested.
    filled: Qty,
}

impl User {
    /// Available cash of the order's wallet right after its placement. Ids of orders that were placed at `ids_since` or
    /// later count, whether or not older requests are still in memory.
    ///
    /// `None` if it cannot be computed: the order has no client order id that counts, and 4,096 order facts of the user are newer
    /// than its placement, or the user has had more than 4,096 positions, its wallet was reset since, or a
    /// deposit or a refund is of the same moment, or a row that has left memory may have moved cash since. Two amounts
    /// are missing from the rows and count as available: the taker fee that a BUY without a live book reserved until
    /// its first book made it a maker, and a payout that the shard made in the same turn as the placement.
    pub fn available_at_placement(&self, order: &Order, ids_since: Timestamp) -> Option<Cash> {
        let trading = self.trading();
        let requests = trading.requests.as_deref().filter(|_| order.created_at >= ids_since);
        if let Some(known) = requests.and_then(|requests| requests.of_order(order.id)) {
            return Some(known.1.first.available);
        }
        let wallet = self.wallet(order.terms.wallet)?;
        if self.resets(wallet.id).any(|at| at >= order.created_at) {
            return None;
        }
        let deposited = self.deposited_after(wallet.id, order.created_at)?;
        let has_moved = |departed: &DepartedRows| {
            let paid_at = departed.moved_at().is_some_and(|at| at > order.created_at);
            paid_at || departed.newest_position().is_some_and(|position| position.0 > order.id.0)
        };
        if trading.positions.end() > POSITIONS_MAX || self.departed().is_some_and(has_moved) {
            return None;
        }
        let (mut available, since) = self.undone(trading, order)?;
        for (row, since) in since {
            let other = &trading.orders[row];
            let rest = other.terms.quantity.0.saturating_sub(other.filled.0.saturating_sub(since.filled.0));
            let then = if since.is_newer { Cash::ZERO } else { as_maker(&other.terms, Qty(rest)).cash };
            available += other.reserved_cash() - then;
        }
        let of_wallet = trading.positions.iter().filter(|position| position.wallet == wallet.id);
        let paid: Cash = of_wallet
            .filter_map(|position| Some((position.id.0 > order.id.0, position.settlement.as_deref()?)))
            .filter(|(is_newer, paid)| *is_newer || paid.at > order.created_at)
            .map(|(_, paid)| paid.payout)
            .sum();
        Some(available - paid - deposited)
    }

    /// The wallet's available cash without the fills after a placement, and the BUY orders of the wallet whose
    /// reservations changed since, by row. `None`: the placement is not among the newest facts.
    fn undone(&self, trading: &Trading, order: &Order) -> Option<(Cash, AHashMap<usize, Since>)> {
        let wallet = order.terms.wallet;
        let mut available = self.wallet(wallet)?.available();
        let mut since = AHashMap::<usize, Since>::new();
        let own = trading.order_row(order.id)?;
        for at in (0..trading.facts.len()).rev().take(FACTS_MAX) {
            let fact = trading.facts.get(at)?;
            let (of, fill) = match self.row_of(fact) {
                FactRow::Order(_, order) => (order, None),
                FactRow::Fill(_, fill, order) => (order, Some(fill)),
                FactRow::Departed => return None,
            };
            let row = trading.order_row(of.id)?;
            let is_placement = row == own
                && match fact {
                    Fact::Placed { .. } | Fact::Rested { .. } => return Some((available, since)),
                    Fact::Taken { .. } => true,
                    Fact::Matched { .. } => false,
                    Fact::Closed { .. } => of.closed().is_some_and(|(reason, _)| ends_a_placement(reason)),
                };
            if of.terms.wallet != wallet || is_placement {
                continue;
            }
            let mut filled = Qty::ZERO;
            if let Some(fill) = fill {
                filled = fill.qty;
                available += match of.terms.side {
                    Side::Buy => fill.notional + fill.fee,
                    Side::Sell => fill.fee - fill.notional,
                };
            }
            if of.terms.side == Side::Buy {
                let entry = since.entry(row).or_default();
                match fact {
                    Fact::Placed { .. } | Fact::Rested { .. } => entry.is_newer = true,
                    Fact::Matched { .. } => entry.filled += filled,
                    Fact::Taken { .. } | Fact::Closed { .. } => {}
                }
            }
        }
        None
    }
}

/// Whether the reason ends an order in the record that placed it.
fn ends_a_placement(reason: CloseReason) -> bool {
    matches!(reason, CloseReason::FakRest | CloseReason::FakNoFill | CloseReason::FokNotFilled)
}
