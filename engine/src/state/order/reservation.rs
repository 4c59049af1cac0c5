//! Reservations for the unfilled rest of an order (engine/docs/execution.md §6).

use crate::amount::{Bps, Cash, Price, Qty, reservation_rounded_up};
use crate::fee::taker_fee;
use crate::order::{Side, Terms};

/// The reservation of an unfilled rest: cash of a BUY, shares of a SELL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    pub cash: Cash,
    pub qty: Qty,
}

/// Limit × rest of a BUY, rounded up; the shares of a SELL. A resting order ends as maker, so no fee is reserved unless
/// its first cycle with a live book may still make it a taker (`awaiting`).
pub fn reservation(side: Side, limit: Price, rest: Qty, fee_rate: Bps, awaiting: bool) -> Reservation {
    match side {
        Side::Buy => {
            let fee = if awaiting { taker_fee(rest, limit, fee_rate) } else { Cash::ZERO };
            Reservation { cash: reservation_rounded_up(limit, rest) + fee, qty: Qty::ZERO }
        }
        Side::Sell => Reservation { cash: Cash::ZERO, qty: rest },
    }
}

/// The reservation of a resting order with the unfilled `rest`, as maker.
pub fn as_maker(terms: &Terms, rest: Qty) -> Reservation {
    reservation(terms.side, terms.limit, rest, terms.fee_rate, false)
}
