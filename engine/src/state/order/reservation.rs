//! Reservations for the unfilled rest of an order (engine/docs/execution.md §6).

use crate::amount::{Cash, Price, Qty, reservation_rounded_up};
use crate::fee::Tariff;
use crate::order::{Side, Terms};

/// The reservation of an unfilled rest: cash of a BUY, shares of a SELL.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reservation {
    pub cash: Cash,
    pub qty: Qty,
}

/// Limit × rest of a BUY, rounded up, and its fee at the limit; the shares of a SELL. `charge`: the maker's, which is
/// mostly nothing, or the taker's if the first cycle with a live book may still make the order a taker.
pub fn reservation(side: Side, limit: Price, rest: Qty, charge: Tariff) -> Reservation {
    match side {
        Side::Buy => {
            let fee = if charge == Tariff::FREE { Cash::ZERO } else { charge.fee(rest, limit) };
            Reservation { cash: reservation_rounded_up(limit, rest) + fee, qty: Qty::ZERO }
        }
        Side::Sell => Reservation { cash: Cash::ZERO, qty: rest },
    }
}

/// The reservation of a resting order with the unfilled `rest`, as a maker without a fee.
pub fn as_maker(terms: &Terms, rest: Qty) -> Reservation {
    reservation(terms.side, terms.limit, rest, Tariff::FREE)
}
