//! What wallets and positions are worth (engine/docs/account.md §1, §2, §3). Integers only; sums are taken wide and cut
//! to the range of an amount.

use engine::amount::Cash;
use engine::amount::nearest;
pub use engine::mark::{Marks, market_value};
use engine::user::{Position, Wallet};

/// What some wallets and their open positions have and are worth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Valuation {
    pub available: Cash,
    pub reserved: Cash,
    pub total: Cash,
    pub starting: Cash,
    /// total − starting: the whole result, realised or not, with fees.
    pub unrealized: Cash,
}

impl Valuation {
    /// Of these wallets with these open positions. A position without a mark counts at its cost.
    pub fn of<'a>(
        wallets: impl IntoIterator<Item = &'a Wallet>,
        positions: impl IntoIterator<Item = &'a Position>,
        marks: Marks<'_>,
    ) -> Valuation {
        let (mut cash_total, mut reserved, mut starting) = (0i128, 0i128, 0i128);
        for wallet in wallets {
            cash_total += i128::from(wallet.cash.0);
            reserved += i128::from(wallet.reserved.0);
            starting += i128::from(wallet.starting().0);
        }
        let held: i128 = positions.into_iter().map(|held| i128::from(marks.value(held).0)).sum();
        Valuation {
            available: nearest(cash_total - reserved),
            reserved: nearest(reserved),
            total: nearest(cash_total + held),
            starting: nearest(starting),
            unrealized: nearest(cash_total + held - starting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::amount::Qty;
    use engine::id::{InstrumentId, Outcome, PositionId, WalletId};
    use engine::time::Timestamp;
    use engine::user::WalletKind;

    fn wallet(cash: i64, reserved: i64, baseline: i64) -> Wallet {
        let mut wallet = Wallet::new(WalletId(3), WalletKind::Api, Cash(baseline), 1, Timestamp(1));
        (wallet.cash, wallet.reserved) = (Cash(cash), Cash(reserved));
        wallet
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
            is_reset: false,
        }
    }

    /// 50 shares bought at 0.42, marked at 0.415.
    #[test]
    fn a_valuation_adds_cash_and_marked_positions() {
        let town = crate::api::testing::Town::new();
        let marks = Marks { catalog: &town.catalog, books: &town.books };
        let first = town.market.instrument(Outcome::First);
        let valuation = Valuation::of([&wallet(78_391_000, 0, 100_000_000)], [&held(first, 50, 21_000_000)], marks);
        let expected = Valuation {
            available: Cash(78_391_000),
            reserved: Cash::ZERO,
            total: Cash(99_141_000),
            starting: Cash(100_000_000),
            unrealized: Cash(-859_000),
        };
        assert_eq!(valuation, expected);
        // Two wallets, some of the cash set aside, and a position that has no mark.
        let unmarked = town.unquoted.instrument(Outcome::First);
        let wallets = [wallet(10_000_000, 4_000_000, 5_000_000), wallet(1, 0, 0)];
        let valuation = Valuation::of(&wallets, [&held(unmarked, 10, 3_000_000)], marks);
        assert_eq!((valuation.available, valuation.reserved), (Cash(6_000_001), Cash(4_000_000)));
        assert_eq!((valuation.total, valuation.unrealized), (Cash(13_000_001), Cash(8_000_001)));
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
    fn sums_never_overflow() {
        let rich = [wallet(i64::MAX, 0, 0), wallet(i64::MAX, 0, 0)];
        let town = crate::api::testing::Town::new();
        let marks = Marks { catalog: &town.catalog, books: &town.books };
        assert_eq!(Valuation::of(&rich, [], marks).total, Cash(i64::MAX));
    }
}
