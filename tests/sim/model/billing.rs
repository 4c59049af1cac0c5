//! Top-ups and their refunds in the model (gateway/docs/billing.md §3, §6).

use super::{Expected, Model, User};
use engine::command::{BillingEvent, BillingNews, BillingOutcome};
use engine::reject::Reject;
use engine::user::WalletKind;
use engine::user::billing::Sku;

/// A purchase.
#[derive(Clone, Debug)]
pub struct Bought {
    pub payment: String,
    cents: u64,
    /// The wallet with its cash, and what of it was not taken back.
    wallet: Option<u64>,
    left: i128,
    /// US cents that are returned now, and what that took.
    refunded: u64,
    taken: i128,
    /// When it, or its refund, last moved cash.
    pub at: u64,
}

/// gateway/docs/billing.md §3: price in cents, credit in whole dollars.
fn listed(sku: Sku) -> (u64, i128) {
    match sku {
        Sku::Topup500 => (299, 500),
        Sku::Topup2000 => (499, 2_000),
        Sku::Topup10000 => (999, 10_000),
        Sku::MainReset => (299, 0),
    }
}

impl User {
    /// The active SANDBOX wallet that stands for this one now.
    fn standing_for(&self, wallet: u64) -> Option<u64> {
        let known = self.wallets.iter().find(|known| known.id == wallet && known.kind == WalletKind::Sandbox)?;
        match known.archived_at {
            None => Some(known.id),
            Some(_) => {
                let next = self.wallets.iter().find(|next| next.parent == Some(wallet))?;
                self.standing_for(next.id)
            }
        }
    }

    fn pay_in(&mut self, wallet: u64, amount: i128, now: u64) {
        let known = self.wallets.iter_mut().find(|known| known.id == wallet).expect("found just now");
        known.cash += amount;
        known.deposits += amount;
        known.paid_in_at.extend((amount != 0).then_some(now));
    }
}

impl User {
    /// More or less of a payment is returned: what a whole return takes, its failure gives back.
    fn returned(&mut self, payment: &str, now: u64, change: impl FnOnce(u64) -> u64) -> BillingOutcome {
        let Some(at) = self.purchases.iter().position(|bought| bought.payment == payment) else {
            return BillingOutcome::Applied;
        };
        let bought = &mut self.purchases[at];
        let was_whole = bought.refunded >= bought.cents;
        bought.refunded = change(bought.refunded);
        let is_whole = bought.refunded >= bought.cents;
        let Bought { wallet, left, taken, .. } = bought.clone();
        if is_whole && !was_whole {
            let is_active = |id: &u64| self.wallets.iter().any(|known| known.id == *id && known.archived_at.is_none());
            let wallet = wallet.filter(is_active);
            let taken = wallet.map_or(0, |wallet| left.min(self.available(wallet)));
            self.purchases[at].taken = taken;
            if let Some(wallet) = wallet.filter(|_| taken != 0) {
                self.pay_in(wallet, -taken, now);
                self.purchases[at].left -= taken;
                self.purchases[at].at = now;
            }
        } else if was_whole && !is_whole && taken != 0 {
            let next = wallet.and_then(|wallet| self.standing_for(wallet));
            let bought = &mut self.purchases[at];
            (bought.taken, bought.at) = (0, now);
            let Some(next) = next else { return BillingOutcome::NotCredited };
            bought.left = if wallet == Some(next) { left + taken } else { taken };
            bought.wallet = Some(next);
            self.pay_in(next, taken, now);
        }
        BillingOutcome::Applied
    }
}

impl Model {
    /// An event of the payment provider. False: nothing changed.
    pub(super) fn bill(&mut self, owner: u64, event: &BillingEvent, now: u64) -> Result<(Expected, bool), Reject> {
        if !self.writes_newest {
            return Err(Reject::NoBillingStore);
        }
        let user = self.users.get_mut(&owner).expect("checked by the caller");
        if user.billed.contains(&event.id) {
            return Ok((Expected::Billed(BillingOutcome::Repeated), false));
        }
        user.billed.push(event.id.clone());
        let outcome = match &event.news {
            BillingNews::Purchase { payment, sku, wallet } => {
                let (cents, dollars) = listed(*sku);
                let wallet = wallet.filter(|_| dollars > 0).and_then(|wallet| user.standing_for(wallet.0));
                let credit = wallet.map_or(0, |_| dollars * 1_000_000);
                if let Some(wallet) = wallet {
                    user.pay_in(wallet, credit, now);
                }
                let payment = payment.clone();
                user.purchases.push(Bought { payment, cents, wallet, left: credit, refunded: 0, taken: 0, at: now });
                if wallet.is_some() || dollars == 0 { BillingOutcome::Applied } else { BillingOutcome::NotCredited }
            }
            BillingNews::Refund { payment, refunded } => user.returned(payment, now, |before| before.max(*refunded)),
            BillingNews::RefundFailed { payment, cents, .. } => {
                user.returned(payment, now, |before| before.saturating_sub(*cents))
            }
            other => unreachable!("{other:?} is not part of the workload"),
        };
        Ok((Expected::Billed(outcome), true))
    }
}
