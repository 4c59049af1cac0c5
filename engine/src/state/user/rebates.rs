//! What makers earn back of fees (engine/docs/execution.md §5). A wallet earns with each of its maker fills, and is paid
//! when a UTC day begins, from one dollar on; less waits for a later day.
//!
//! What a day has earned is kept apart from what the days before it have. So a payment that is late, after a start for
//! example, has the amount that it would have had at midnight, and the state alone shows whether it is due.

use super::indexes::Indexes;
use super::{User, Wallet, ledger};
use crate::amount::Cash;
use crate::bytes::row;
use crate::fact;
use crate::id::{UserId, WalletId};
use crate::rules::REBATE_MIN;
use crate::time::{Timestamp, UtcDay};

/// The rebates of a wallet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rebates {
    /// The day of the newest one.
    day: UtcDay,
    /// Earned on that day, and on days before it; not paid yet.
    today: Cash,
    before: Cash,
    /// Paid so far, and when the last time.
    pub paid: Cash,
    pub paid_at: Timestamp,
}

row!(Rebates { day, today, before, paid, paid_at });

impl Rebates {
    /// Earned and not paid yet.
    pub fn accrued(&self) -> Cash {
        self.today + self.before
    }

    /// What is to be paid on a day; 0: nothing.
    pub fn due_on(&self, day: UtcDay) -> Cash {
        let earned = if day > self.day { self.accrued() } else { self.before };
        if earned >= REBATE_MIN { earned } else { Cash::ZERO }
    }

    /// The day on which there is something to pay.
    fn due_day(&self) -> Option<UtcDay> {
        match () {
            () if self.before >= REBATE_MIN => Some(self.day),
            () if self.accrued() >= REBATE_MIN => Some(UtcDay(self.day.0 + 1)),
            () => None,
        }
    }

    fn earn(&mut self, amount: Cash, day: UtcDay) {
        self.reach(day);
        self.today += amount;
    }

    fn pay(&mut self, amount: Cash, at: Timestamp) {
        self.reach(at.day());
        assert!(amount <= self.before, "no more is paid than was earned: {amount:?} of {self:?}");
        self.before -= amount;
        self.paid += amount;
        self.paid_at = at;
    }

    fn reach(&mut self, day: UtcDay) {
        if day > self.day {
            self.before += std::mem::take(&mut self.today);
            self.day = day;
        }
    }

    /// Limits its times to at most `at`. What a later day has earned belongs to the day of `at`.
    pub(super) fn set_back(&mut self, at: Timestamp) {
        self.day = self.day.min(at.day());
        self.paid_at = self.paid_at.min(at);
    }
}

impl User {
    /// What each wallet is to be paid on a day.
    pub(crate) fn rebates_due(&self, day: UtcDay) -> impl Iterator<Item = (WalletId, Cash)> + '_ {
        let due = self.wallets.iter().map(move |wallet| (wallet.id, wallet.rebates().due_on(day)));
        due.filter(|(_, amount)| *amount > Cash::ZERO)
    }

    /// The first day on which a wallet is to be paid.
    pub(crate) fn rebates_due_day(&self) -> Option<UtcDay> {
        self.wallets.iter().filter_map(|wallet| wallet.rebates().due_day()).min()
    }

    /// Whether a wallet was paid rebates at a moment or later.
    pub(crate) fn paid_rebates_since(&self, moment: Timestamp) -> bool {
        self.wallets.iter().any(|wallet| wallet.rebates().paid_at >= moment)
    }

    pub(super) fn earn_rebate(&mut self, accrued: &fact::RebateAccrued, indexes: &mut Indexes) {
        let fact::RebateAccrued { trade: _, wallet, amount, at } = accrued;
        self.change_rebates(*wallet, indexes, |rebates| rebates.earn(*amount, at.day()));
    }

    pub(super) fn pay_rebate(&mut self, paid: &fact::RebatePaid, indexes: &mut Indexes) {
        let fact::RebatePaid { wallet, amount, at } = paid;
        ledger::post(self.rebated(*wallet), &ledger::maker_rebate(*amount));
        self.change_rebates(*wallet, indexes, |rebates| rebates.pay(*amount, *at));
    }

    /// A wallet that is reset or archived earns nothing more for what it did before.
    pub(super) fn drop_rebates(&mut self, wallet: WalletId, indexes: &mut Indexes) {
        if self.rebated(wallet).rebates() != Rebates::default() {
            self.change_rebates(wallet, indexes, |rebates| *rebates = Rebates::default());
        }
    }

    fn change_rebates(&mut self, wallet: WalletId, indexes: &mut Indexes, change: impl FnOnce(&mut Rebates)) {
        let before = self.rebates_due_day();
        let known = self.rebated(wallet);
        let mut rebates = known.rebates();
        change(&mut rebates);
        known.set_rebates(rebates);
        indexes.rebates_due(self.id, before, self.rebates_due_day());
    }

    fn rebated(&mut self, wallet: WalletId) -> &mut Wallet {
        self.wallets.iter_mut().find(|known| known.id == wallet).expect("a maker's wallet was opened")
    }
}

impl Indexes {
    /// The first day on which a user is to be paid has changed.
    fn rebates_due(&mut self, owner: UserId, before: Option<UtcDay>, after: Option<UtcDay>) {
        if before != after {
            if let Some(day) = before {
                self.rebates.remove(&(day, owner));
            }
            self.rebates.extend(after.map(|day| (day, owner)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::DAY;

    /// An amount is due from the midnight after its day on, if there is a dollar by then; never twice.
    #[test]
    fn what_a_day_has_earned_is_due_when_it_is_over() {
        enum Step {
            Earn(i64),
            Pay(i64),
        }
        use Step::{Earn, Pay};
        let steps = [
            // day, what happens, then: due on that day, due on the next, accrued, paid
            (10, Earn(600_000), 0, 0, 600_000, 0),
            (10, Earn(400_000), 0, 1_000_000, 1_000_000, 0),
            (10, Earn(1), 0, 1_000_001, 1_000_001, 0),
            // Late: what the new day earns is not paid with it.
            (11, Earn(5), 1_000_001, 1_000_006, 1_000_006, 0),
            (11, Pay(1_000_001), 0, 0, 5, 1_000_001),
            (11, Earn(999_994), 0, 0, 999_999, 1_000_001),
            (15, Earn(1), 0, 1_000_000, 1_000_000, 1_000_001),
            (16, Pay(1_000_000), 0, 0, 0, 2_000_001),
        ];
        let mut rebates = Rebates::default();
        for (number, (day, step, due, due_next, accrued, paid)) in steps.iter().enumerate() {
            let at = Timestamp(day * DAY + 7);
            match step {
                Earn(amount) => rebates.earn(Cash(*amount), at.day()),
                Pay(amount) => rebates.pay(Cash(*amount), at),
            }
            let next = UtcDay(at.day().0 + 1);
            let found = (rebates.due_on(at.day()), rebates.due_on(next), rebates.accrued(), rebates.paid);
            assert_eq!(found, (Cash(*due), Cash(*due_next), Cash(*accrued), Cash(*paid)), "step {number}");
            let first = match (*due > 0, *due_next > 0) {
                (true, _) => Some(at.day()),
                (false, true) => Some(next),
                (false, false) => None,
            };
            assert_eq!(rebates.due_day(), first, "step {number}");
        }
        println!("days of rebates: {} cases", steps.len());
    }

    #[test]
    #[should_panic(expected = "no more is paid than was earned")]
    fn nothing_is_paid_of_the_present_day() {
        let mut rebates = Rebates::default();
        rebates.earn(Cash(5_000_000), UtcDay(3));
        rebates.pay(Cash(5_000_000), Timestamp(3 * DAY));
    }

    #[test]
    fn a_clock_that_is_set_back_keeps_the_sums() {
        let mut rebates = Rebates::default();
        rebates.earn(Cash(2_000_000), UtcDay(8));
        rebates.pay(Cash(2_000_000), Timestamp(9 * DAY));
        rebates.earn(Cash(3_000_000), UtcDay(9));
        let at = Timestamp(5 * DAY + 1);
        rebates.set_back(at);
        assert_eq!((rebates.accrued(), rebates.paid, rebates.paid_at), (Cash(3_000_000), Cash(2_000_000), at));
        assert_eq!((rebates.due_on(UtcDay(5)), rebates.due_day()), (Cash::ZERO, Some(UtcDay(6))));
    }
}
