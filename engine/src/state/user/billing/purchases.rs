//! Purchases of a user (gateway/docs/billing.md §3): bought cash in wallets, and bought resets of the MAIN wallet.

use super::Billing;
use super::products::Sku;
use crate::amount::Cash;
use crate::bytes::row;
use crate::fact;
use crate::id::WalletId;
use crate::time::{Date, Timestamp};
use crate::user::{User, Wallet, WalletKind, ledger};

/// Purchases of a user over time; all stay in memory.
pub const PURCHASES_MAX: usize = 1_000;
/// Times of bought resets that are remembered, for the points of equity.
pub(super) const RESETS_KEPT: usize = 4;

/// Something that was bought once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// The provider's id of the payment.
    pub payment: Box<str>,
    pub sku: Sku,
    /// The credited wallet; `None`: nothing was credited, because there is no wallet for it or it is not a top-up.
    pub wallet: Option<WalletId>,
    pub credit: Cash,
    /// US cents that are returned now.
    pub refunded: u64,
    /// What a full refund has taken back: cash that was free, a reset that was not used. After a refund that failed, the
    /// cash is in [`super::CashMove`]s.
    pub taken: Cash,
    pub reset_taken: bool,
    pub at: Timestamp,
    /// When a refund took cash back.
    pub taken_at: Date,
}

row! { Purchase { payment, sku, wallet, credit, refunded, taken, reset_taken, at, taken_at } }

impl Purchase {
    /// Whether the whole price is returned.
    pub fn is_refunded(&self) -> bool {
        self.refunded >= self.sku.cents()
    }
}

impl Billing {
    pub fn purchases(&self) -> &[Purchase] {
        &self.purchases
    }

    /// The purchase of a payment.
    pub fn purchase(&self, payment: &str) -> Option<&Purchase> {
        self.purchase_row(payment).ok().map(|row| &self.purchases[row])
    }

    /// Bought resets of the MAIN wallet that can be used.
    pub fn main_resets_left(&self) -> u32 {
        let bought = self.purchases.iter().filter(|bought| bought.sku == Sku::MainReset && !bought.reset_taken);
        (bought.count() as u32).saturating_sub(self.resets_used)
    }

    pub(super) fn purchase_row(&self, payment: &str) -> Result<usize, usize> {
        self.purchases.binary_search_by(|known| (*known.payment).cmp(payment))
    }
}

impl User {
    /// Bought resets of the MAIN wallet that can be used.
    pub fn main_resets_left(&self) -> u32 {
        self.billing().map_or(0, Billing::main_resets_left)
    }

    /// Times of bought resets of a MAIN wallet: the newest.
    pub fn bought_resets(&self, wallet: WalletId) -> impl Iterator<Item = Timestamp> + '_ {
        let is_main = self.wallet(wallet).is_some_and(|wallet| wallet.kind == WalletKind::Main);
        let resets = self.billing().filter(|_| is_main).map_or(&[][..], |billing| &billing.resets);
        resets.iter().copied()
    }

    /// What purchases have paid into a wallet and refunds have taken out of it, with the moments.
    pub(crate) fn cash_moves(&self, wallet: WalletId) -> impl Iterator<Item = (Timestamp, Cash)> + '_ {
        let moves = self.billing().into_iter().flat_map(Billing::cash_moves);
        moves.filter(move |moved| moved.wallet == wallet).map(|moved| (moved.at, moved.amount))
    }

    /// Whether a purchase, a refund or a bought reset has moved cash since a moment.
    pub(crate) fn billed_since(&self, moment: Timestamp) -> bool {
        self.billing().is_some_and(|billing| {
            billing.resets.last().is_some_and(|at| *at >= moment)
                || billing.purchases.iter().any(|bought| bought.at >= moment)
                || billing.cash_moves().any(|moved| moved.at >= moment)
        })
    }

    /// The active SANDBOX wallet that a purchase for this wallet credits: itself, or the one that replaced it.
    pub fn credited_wallet(&self, wallet: WalletId) -> Option<&Wallet> {
        let mut known = self.wallet(wallet)?;
        while known.kind == WalletKind::Sandbox && !known.is_active() {
            known = self.wallets.iter().find(|next| next.parent() == Some(known.id))?;
        }
        (known.kind == WalletKind::Sandbox).then_some(known)
    }

    pub(crate) fn note_purchase(&mut self, noted: &fact::PurchaseNoted) {
        let fact::PurchaseNoted { payment, sku, wallet, credit, at } = noted;
        if let Some(wallet) = wallet {
            self.pay_in(*wallet, *credit);
        }
        let billing = self.billing_mut();
        let row = billing.purchase_row(payment).expect_err("a payment is credited once");
        let purchase = Purchase {
            payment: payment.as_str().into(),
            sku: *sku,
            wallet: *wallet,
            credit: *credit,
            refunded: 0,
            taken: Cash::ZERO,
            reset_taken: false,
            at: *at,
            taken_at: Date::NONE,
        };
        billing.purchases.insert(row, purchase);
    }

    /// Adds bought cash to a wallet.
    pub(super) fn pay_in(&mut self, wallet: WalletId, amount: Cash) {
        let credited = self.wallets.iter_mut().find(|known| known.id == wallet);
        let credited = credited.expect("a top-up credits a wallet of its user");
        ledger::post(credited, &ledger::deposit(amount));
        credited.set_deposits(credited.deposits() + amount);
    }

    /// Takes bought cash out of a wallet.
    pub(super) fn pay_out(&mut self, wallet: Option<WalletId>, amount: Cash) {
        let wallet = self.wallets.iter_mut().find(|known| Some(known.id) == wallet);
        let wallet = wallet.expect("a top-up that is taken back has credited a wallet");
        ledger::post(wallet, &ledger::withdrawal(amount));
        wallet.set_deposits(wallet.deposits() - amount);
    }

    pub(crate) fn note_bought_reset(&mut self, at: Timestamp) {
        let billing = self.billing_mut();
        // A refund may have taken the last one back while the wallet was emptied for it.
        if billing.main_resets_left() > 0 {
            billing.resets_used += 1;
        }
        billing.resets.push(at);
        let surplus = billing.resets.len().saturating_sub(RESETS_KEPT);
        billing.resets.drain(..surplus);
    }
}
