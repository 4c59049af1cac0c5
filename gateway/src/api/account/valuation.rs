//! What wallets and positions are worth (account.md §3). Integers only; sums are taken wide and cut to what an amount
//! holds.

use engine::amount::{Cash, Qty};
use engine::book::registry::Books;
use engine::id::InstrumentId;
use engine::market::catalog::Catalog;
use engine::user::{Position, Wallet};

/// Where marks come from.
#[derive(Clone, Copy)]
pub struct Marks<'a> {
    pub catalog: &'a Catalog,
    pub books: &'a Books,
}

impl Marks<'_> {
    /// What one share is worth, 10⁻⁶ USD: its payout once resolved, else what the books say.
    pub fn mark(&self, instrument: InstrumentId) -> Option<Cash> {
        let resolution = self.catalog.of_instrument(instrument).and_then(|cell| cell.resolution());
        match resolution {
            Some(resolution) => Some(Cash(i64::from(resolution.payout(instrument.outcome()).0) * 100)),
            None => self.books.displayed(instrument),
        }
    }
}

/// mark × quantity, half up.
pub fn market_value(mark: Cash, qty: Qty) -> Cash {
    let exact = i128::from(mark.0) * i128::from(qty.0);
    cash((exact + 500_000).div_euclid(1_000_000))
}

/// The figures of a `BalanceResponse`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    pub available: Cash,
    pub reserved: Cash,
    pub total: Cash,
    pub starting: Cash,
    /// total − starting, whatever its name says.
    pub unrealized: Cash,
}

impl Balance {
    /// Of these wallets with these open positions. A position without a mark counts at its cost.
    pub fn of<'a>(
        wallets: impl IntoIterator<Item = &'a Wallet>,
        positions: impl IntoIterator<Item = &'a Position>,
        marks: Marks<'_>,
    ) -> Balance {
        let (mut cash_total, mut reserved, mut starting) = (0i128, 0i128, 0i128);
        for wallet in wallets {
            cash_total += i128::from(wallet.cash.0);
            reserved += i128::from(wallet.reserved.0);
            starting += i128::from(wallet.baseline.0);
        }
        let value =
            |held: &Position| marks.mark(held.instrument).map_or(held.cost, |mark| market_value(mark, held.qty));
        let held: i128 = positions.into_iter().map(|held| i128::from(value(held).0)).sum();
        Balance {
            available: cash(cash_total - reserved),
            reserved: cash(reserved),
            total: cash(cash_total + held),
            starting: cash(starting),
            unrealized: cash(cash_total + held - starting),
        }
    }
}

/// The nearest amount there is.
fn cash(micros: i128) -> Cash {
    Cash(micros.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::id::{Outcome, PositionId, WalletId};
    use engine::time::Timestamp;
    use engine::user::WalletKind;

    fn wallet(cash: i64, reserved: i64, baseline: i64) -> Wallet {
        Wallet {
            id: WalletId(3),
            kind: WalletKind::Api,
            label: None,
            baseline: Cash(baseline),
            cash: Cash(cash),
            reserved: Cash(reserved),
            generation: 1,
            parent: None,
            created_at: Timestamp(1),
            archived_at: None,
        }
    }

    fn held(instrument: InstrumentId, shares: u64, cost: i64) -> Position {
        Position {
            id: PositionId(7),
            wallet: WalletId(3),
            instrument,
            qty: Qty::from_shares(shares),
            reserved: Qty::ZERO,
            cost: Cash(cost),
            last_open: (Qty::ZERO, Cash::ZERO),
            realized: Cash::ZERO,
            opened_at: Timestamp(1),
            closed_at: None,
            settlement: None,
        }
    }

    /// The figures of account.md's examples: 50 shares bought at 0.42, marked at 0.415.
    #[test]
    fn a_balance_adds_cash_and_marked_positions() {
        let town = crate::api::testing::Town::new();
        let marks = Marks { catalog: &town.catalog, books: &town.books };
        let first = town.market.instrument(Outcome::First);
        let balance = Balance::of([&wallet(78_391_000, 0, 100_000_000)], [&held(first, 50, 21_000_000)], marks);
        let expected = Balance {
            available: Cash(78_391_000),
            reserved: Cash::ZERO,
            total: Cash(99_141_000),
            starting: Cash(100_000_000),
            unrealized: Cash(-859_000),
        };
        assert_eq!(balance, expected);
        // Two wallets, some of it set aside, and a position that has no mark.
        let unmarked = town.unquoted.instrument(Outcome::First);
        let wallets = [wallet(10_000_000, 4_000_000, 5_000_000), wallet(1, 0, 0)];
        let balance = Balance::of(&wallets, [&held(unmarked, 10, 3_000_000)], marks);
        assert_eq!((balance.available, balance.reserved), (Cash(6_000_001), Cash(4_000_000)));
        assert_eq!((balance.total, balance.unrealized), (Cash(13_000_001), Cash(8_000_001)));
    }

    #[test]
    fn a_resolved_market_is_worth_its_payout() {
        let town = crate::api::testing::Town::new();
        let marks = Marks { catalog: &town.catalog, books: &town.books };
        town.resolve(Outcome::Second);
        assert_eq!(marks.mark(town.market.instrument(Outcome::First)), Some(Cash(0)));
        assert_eq!(marks.mark(town.market.instrument(Outcome::Second)), Some(Cash(1_000_000)));
        assert_eq!(marks.mark(InstrumentId(999)), None);
    }

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
        let rich = [wallet(i64::MAX, 0, 0), wallet(i64::MAX, 0, 0)];
        let town = crate::api::testing::Town::new();
        let marks = Marks { catalog: &town.catalog, books: &town.books };
        assert_eq!(Balance::of(&rich, [], marks).total, Cash(i64::MAX));
    }
}
