//! The value of a share at a moment (engine/docs/account.md §2): one rule for answers and for points of equity.

use crate::amount::{Cash, Qty, nearest};
use crate::book::Books;
use crate::id::{InstrumentId, WalletId};
use crate::market::catalog::Catalog;
use crate::user::{Position, User};

/// The sources of marks.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    pub catalog: &'a Catalog,
    pub books: &'a Books,
}

impl Marks<'_> {
    /// The value of one share, 10⁻⁶ USD: its payout once resolved, else the mark of its book.
    pub fn mark(&self, instrument: InstrumentId) -> Option<Cash> {
        let resolution = self.catalog.of_instrument(instrument).and_then(|cell| cell.resolution());
        match resolution {
            Some(resolution) => Some(Cash(i64::from(resolution.payout(instrument.outcome()).0) * 100)),
            None => self.books.displayed(instrument),
        }
    }

    /// The value of an open position in a total; its cost if there is no mark.
    pub fn value(&self, held: &Position) -> Cash {
        self.mark(held.instrument).map_or(held.cost, |mark| market_value(mark, held.qty))
    }

    /// The total value of the open positions of one wallet.
    pub fn value_of(&self, user: &User, wallet: WalletId) -> Cash {
        let mine = user.open_positions().filter(|held| held.wallet == wallet);
        nearest(mine.map(|held| i128::from(self.value(held).0)).sum())
    }
}

/// mark × quantity, half up.
pub fn market_value(mark: Cash, qty: Qty) -> Cash {
    let exact = i128::from(mark.0) * i128::from(qty.0);
    nearest((exact + 500_000).div_euclid(1_000_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_half_up_and_never_overflow() {
        for (mark, qty, expected) in [
            (415_000, 50_000_000, 20_750_000),
            (1, 499_999, 0),
            (1, 500_000, 1),
            (333_333, 1_000_000, 333_333),
            (1_000_000, u64::MAX, i64::MAX),
        ] {
            assert_eq!(market_value(Cash(mark), Qty(qty)), Cash(expected), "{mark} × {qty}");
        }
    }
}
