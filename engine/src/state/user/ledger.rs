//! Cash accounts and postings: the only arithmetic on balances.
//!
//! A posting moves an amount from one named account to another, so the postings of a fact sum to zero by construction.
//! `Available` and `Reserved` are the wallet's two parts; the others are outside of it.
//!
//! ```text
//!            Opening ──baseline──► Available ◄──reserve/release──► Reserved
//!           Payments ◄──deposit──►  │   ▲
//!       MakerRebates ───rebate───►  │   ▲
//!                                   │   ▲
//!                         fee       │   │ notional of a SELL, payout
//!              Fees ◄───────────────┤   │
//!                                   ▼   │
//!                                  Market      notional of a BUY
//! ```

use super::wallet::Wallet;
use crate::amount::Cash;
use crate::order::Side;

/// The accounts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Account {
    /// The spendable cash of the wallet.
    Available,
    /// The wallet's reservations for resting BUY orders.
    Reserved,
    /// Charged fees.
    Fees,
    /// The other side of every fill and payout.
    Market,
    /// The source of a wallet's opening cash.
    Opening,
    /// The source of bought cash, and where a refund returns it.
    Payments,
    /// The source of what makers get back of fees.
    MakerRebates,
}

/// One movement of `amount`, never negative, from `from` to `to`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    pub from: Account,
    pub to: Account,
    pub amount: Cash,
}

/// The opening cash of a wallet.
pub fn opening(baseline: Cash) -> [Posting; 1] {
    [Posting { from: Account::Opening, to: Account::Available, amount: baseline }]
}

/// A new generation: the wallet's cash returns to its source, and it receives the baseline.
pub fn restart(cash: Cash, baseline: Cash) -> [Posting; 2] {
    let [opening] = opening(baseline);
    [Posting { from: Account::Available, to: Account::Opening, amount: cash }, opening]
}

/// A purchase adds cash.
pub fn deposit(amount: Cash) -> [Posting; 1] {
    [Posting { from: Account::Payments, to: Account::Available, amount }]
}

/// A refund takes cash back.
pub fn withdrawal(amount: Cash) -> [Posting; 1] {
    [Posting { from: Account::Available, to: Account::Payments, amount }]
}

/// A maker is paid its rebates.
pub fn maker_rebate(amount: Cash) -> [Posting; 1] {
    [Posting { from: Account::MakerRebates, to: Account::Available, amount }]
}

/// The reservation of an order changes.
pub fn reservation(before: Cash, after: Cash) -> [Posting; 1] {
    let (reserved, available) = (Account::Reserved, Account::Available);
    [if after < before {
        Posting { from: reserved, to: available, amount: before - after }
    } else {
        Posting { from: available, to: reserved, amount: after - before }
    }]
}

/// A fill: its order's reservation changes, the notional moves to or from the market, the fee is charged.
pub fn fill(side: Side, reserved_before: Cash, reserved_after: Cash, notional: Cash, fee: Cash) -> [Posting; 3] {
    let [reservation] = reservation(reserved_before, reserved_after);
    let (from, to) = match side {
        Side::Buy => (Account::Available, Account::Market),
        Side::Sell => (Account::Market, Account::Available),
    };
    [
        reservation,
        Posting { from, to, amount: notional },
        Posting { from: Account::Available, to: Account::Fees, amount: fee },
    ]
}

/// A resolved market pays a position out.
pub fn payout(amount: Cash) -> [Posting; 1] {
    [Posting { from: Account::Market, to: Account::Available, amount }]
}

/// Posts the postings of one fact to its wallet.
pub(crate) fn post(wallet: &mut Wallet, postings: &[Posting]) {
    for posting in postings {
        assert!(posting.amount >= Cash::ZERO, "a posting moves a positive amount: {posting:?}");
        match posting.from {
            Account::Available => wallet.cash -= posting.amount,
            Account::Reserved => {
                wallet.cash -= posting.amount;
                wallet.reserved -= posting.amount;
            }
            Account::Fees | Account::Market | Account::Opening | Account::Payments | Account::MakerRebates => {}
        }
        match posting.to {
            Account::Available => wallet.cash += posting.amount,
            Account::Reserved => {
                wallet.cash += posting.amount;
                wallet.reserved += posting.amount;
            }
            Account::Fees | Account::Market | Account::Opening | Account::Payments | Account::MakerRebates => {}
        }
    }
    assert!(
        wallet.reserved >= Cash::ZERO,
        "reserved cash ≥ 0: {:?} in wallet {} after {postings:?}",
        wallet.reserved,
        wallet.id
    );
    assert!(
        wallet.available() >= Cash::ZERO,
        "available cash ≥ 0: {:?} in wallet {} after {postings:?}",
        wallet.available(),
        wallet.id
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::WalletId;
    use crate::time::Timestamp;
    use crate::user::WalletKind;

    fn wallet(cash: i64, reserved: i64) -> Wallet {
        let mut wallet = Wallet::new(WalletId(1), WalletKind::Api, Cash(100), 1, Timestamp(0));
        (wallet.cash, wallet.reserved) = (Cash(cash), Cash(reserved));
        wallet
    }

    #[test]
    fn postings_move_cash_between_the_parts_of_a_wallet() {
        let mut after = wallet(100, 40);
        // (postings, cash, reserved)
        for (postings, cash, reserved) in [
            (reservation(Cash(40), Cash(60)).to_vec(), 100, 60),
            (fill(Side::Buy, Cash(60), Cash(20), Cash(40), Cash(0)).to_vec(), 60, 20),
            (fill(Side::Buy, Cash(0), Cash(0), Cash(10), Cash(1)).to_vec(), 49, 20),
            (fill(Side::Sell, Cash(0), Cash(0), Cash(30), Cash(2)).to_vec(), 77, 20),
            (reservation(Cash(20), Cash(0)).to_vec(), 77, 0),
            (payout(Cash(23)).to_vec(), 100, 0),
            (deposit(Cash(50)).to_vec(), 150, 0),
            (withdrawal(Cash(50)).to_vec(), 100, 0),
            (maker_rebate(Cash(7)).to_vec(), 107, 0),
            (withdrawal(Cash(7)).to_vec(), 100, 0),
            (restart(Cash(100), Cash(70)).to_vec(), 70, 0),
        ] {
            post(&mut after, &postings);
            assert_eq!((after.cash, after.reserved), (Cash(cash), Cash(reserved)), "{postings:?}");
        }
    }

    #[test]
    #[should_panic(expected = "available cash ≥ 0")]
    fn cash_beyond_the_balance_cannot_be_spent() {
        post(&mut wallet(100, 95), &fill(Side::Buy, Cash(0), Cash(0), Cash(5), Cash(1)));
    }

    #[test]
    #[should_panic(expected = "reserved cash ≥ 0")]
    fn no_more_is_released_than_was_reserved() {
        post(&mut wallet(100, 5), &reservation(Cash(6), Cash(0)));
    }
}
