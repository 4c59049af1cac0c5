//! Refunds of payments (gateway/docs/billing.md §6): what the provider has stated about each payment, in any order, and
//! what follows from it.
//!
//! The provider states how much of a payment was returned so far, and later perhaps that one refund failed. Statements
//! are kept by the time at which the provider made them. In that order they give what is returned now: each return
//! raises it to the stated amount, each failure lowers it by its own. A statement made after a failure does not contain
//! it. Before a purchase is known, its statements wait.
//!
//! What a refund took back comes back when it fails, perhaps to another wallet, because the first one was replaced. From
//! then on each [`CashMove`] is kept.

use super::{Billing, Purchase};
use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, put_list, row, take_list};
use crate::fact;
use crate::id::WalletId;
use crate::time::Timestamp;
use crate::user::User;

/// Payments that are not known yet, with statements that wait for them; the oldest is dropped first.
pub const REFUNDS_WAITING: usize = 64;
/// Statements about one payment that are kept; older ones are summed up.
pub const STATEMENTS_KEPT: usize = 32;
/// Moves of the cash of one purchase from which on those of one wallet are summed up, the oldest first.
const MOVES_KEPT: usize = 32;

/// A refund of a payment that was not known, as builds before statements noted it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRefund {
    pub payment: Box<str>,
    /// US cents.
    pub refunded: u64,
    pub at: Timestamp,
}

row! { WaitingRefund { payment, refunded, at } }

/// What an event states about the refunds of a payment. The order is that of time; of one second, a failure is last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RefundStatement {
    /// When the provider made the event.
    pub created: Timestamp,
    /// The refund that failed; `None`: cents were returned.
    pub failed: Option<Box<str>>,
    /// US cents: all that was returned so far, or those of the refund that failed.
    pub cents: u64,
}

row! { RefundStatement { created, failed, cents } }

/// Bought cash that came into a wallet or went out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CashMove {
    pub wallet: WalletId,
    pub at: Timestamp,
    /// Negative: a refund took it. Zero: what a refund took could not come back.
    pub amount: Cash,
}

row! { CashMove { wallet, at, amount } }

/// Refunds of one payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentRefunds {
    pub payment: Box<str>,
    /// US cents that were returned before the kept statements.
    before: u64,
    /// Ascending.
    statements: Vec<RefundStatement>,
    /// Of the cash of the purchase since a refund failed for the first time, in their order.
    moves: Vec<CashMove>,
    /// When the first statement arrived.
    pub at: Timestamp,
}

impl Bytes for PaymentRefunds {
    fn put(&self, out: &mut Vec<u8>) {
        let PaymentRefunds { payment, before, statements, moves, at } = self;
        payment.put(out);
        before.put(out);
        put_list(statements.len(), statements.iter(), out);
        put_list(moves.len(), moves.iter(), out);
        at.put(out);
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut read = PaymentRefunds::new("", 0, Timestamp::default());
        read.payment = Bytes::take(input)?;
        read.before = Bytes::take(input)?;
        take_list(input, |statement| read.statements.push(statement))?;
        take_list(input, |moved| read.moves.push(moved))?;
        read.at = Bytes::take(input)?;
        Ok(read)
    }
}

impl PaymentRefunds {
    fn new(payment: &str, before: u64, at: Timestamp) -> PaymentRefunds {
        PaymentRefunds { payment: payment.into(), before, statements: Vec::new(), moves: Vec::new(), at }
    }

    /// Merges a statement. A refund fails once, at the earliest time at which an event says so.
    fn note(&mut self, statement: RefundStatement) {
        let of_refund = |known: &RefundStatement| known.failed.is_some() && known.failed == statement.failed;
        if let Some(row) = self.statements.iter().position(of_refund) {
            if self.statements[row].created <= statement.created {
                return;
            }
            self.statements.remove(row);
        }
        if let Err(row) = self.statements.binary_search(&statement) {
            self.statements.insert(row, statement);
        }
        let surplus = self.statements.len().saturating_sub(STATEMENTS_KEPT);
        self.before = self.statements.drain(..surplus).fold(self.before, sum);
    }

    /// US cents that are returned now.
    fn returned(&self) -> u64 {
        self.statements.iter().cloned().fold(self.before, sum)
    }

    fn note_move(&mut self, moved: CashMove) {
        self.moves.push(moved);
        if self.moves.len() > MOVES_KEPT
            && let [first, second, ..] = &mut self.moves[..]
            && first.wallet == second.wallet
        {
            second.amount += first.amount;
            self.moves.remove(0);
        }
    }

    /// Whether its statements are in order and no more than are kept.
    pub(super) fn is_sound(&self) -> bool {
        self.statements.len() <= STATEMENTS_KEPT && self.statements.is_sorted_by(|one, next| one < next)
    }
}

/// What is returned after one more statement.
fn sum(returned: u64, statement: RefundStatement) -> u64 {
    match statement.failed {
        None => returned.max(statement.cents),
        Some(_) => returned.saturating_sub(statement.cents),
    }
}

impl Billing {
    /// Refunds that wait for their payment.
    pub fn waiting_refunds(&self) -> usize {
        self.waiting.len() + self.refunds.iter().filter(|known| self.purchase(&known.payment).is_none()).count()
    }

    /// US cents of a payment that are returned now, whether or not the payment is known.
    pub fn returned(&self, payment: &str) -> u64 {
        match self.refunds_row(payment) {
            Ok(row) => self.refunds[row].returned(),
            Err(_) => self.returned_earlier(payment),
        }
    }

    /// The same after one more statement.
    pub(crate) fn returned_after(&self, payment: &str, statement: RefundStatement) -> u64 {
        let known = self.refunds_row(payment).ok().map(|row| self.refunds[row].clone());
        let mut known =
            known.unwrap_or_else(|| PaymentRefunds::new(payment, self.returned_earlier(payment), Timestamp::default()));
        known.note(statement);
        known.returned()
    }

    /// How many refunds of a payment have failed.
    pub fn failed_refunds(&self, payment: &str) -> usize {
        let known = self.refunds_row(payment).map_or(&[][..], |row| &self.refunds[row].statements);
        known.iter().filter(|statement| statement.failed.is_some()).count()
    }

    /// The wallet with the cash of a purchase, what the last refund took out of it, and what is left there.
    pub(crate) fn holding(&self, purchase: &Purchase) -> (Option<WalletId>, Cash, Cash) {
        let left = purchase.credit - purchase.taken;
        let moves = self.refunds_row(&purchase.payment).map_or(&[][..], |row| &self.refunds[row].moves);
        let Some(last) = moves.last() else { return (purchase.wallet, purchase.taken, left) };
        let first = if purchase.wallet == Some(last.wallet) { left } else { Cash::ZERO };
        let since: Cash = moves.iter().filter(|moved| moved.wallet == last.wallet).map(|moved| moved.amount).sum();
        (Some(last.wallet), (Cash::ZERO - last.amount).max(Cash::ZERO), first + since)
    }

    /// Every move of bought cash.
    pub fn cash_moves(&self) -> impl Iterator<Item = CashMove> + '_ {
        let bought = self.purchases.iter().filter_map(|bought| Some((bought, bought.wallet?)));
        let bought = bought.flat_map(|(bought, wallet)| {
            let credited = CashMove { wallet, at: bought.at, amount: bought.credit };
            let taken = bought.taken_at.get().map(|at| CashMove { wallet, at, amount: Cash::ZERO - bought.taken });
            [Some(credited), taken].into_iter().flatten()
        });
        bought.chain(self.refunds.iter().flat_map(|known| known.moves.iter().copied()))
    }

    pub(super) fn refunds_row(&self, payment: &str) -> Result<usize, usize> {
        self.refunds.binary_search_by(|known| (*known.payment).cmp(payment))
    }

    /// What builds before statements noted about a payment.
    fn returned_earlier(&self, payment: &str) -> u64 {
        let waiting = self.waiting.iter().find(|refund| *refund.payment == *payment).map(|refund| refund.refunded);
        waiting.or(self.purchase(payment).map(|known| known.refunded)).unwrap_or(0)
    }

    fn note_refund_stated(&mut self, noted: &fact::RefundStated) {
        let row = self.refunds_row(&noted.payment).unwrap_or_else(|row| {
            let before = self.returned_earlier(&noted.payment);
            self.waiting.retain(|refund| *refund.payment != *noted.payment);
            self.refunds.insert(row, PaymentRefunds::new(&noted.payment, before, noted.at));
            row
        });
        self.refunds[row].note(noted.statement());
        let waits = |known: &&PaymentRefunds| self.purchase(&known.payment).is_none();
        if self.refunds.iter().filter(waits).count() > REFUNDS_WAITING {
            let rows = self.refunds.iter().enumerate().filter(|(_, known)| waits(known));
            let oldest = rows.min_by_key(|(_, known)| known.at).map(|(row, _)| row);
            oldest.into_iter().for_each(|row| _ = self.refunds.remove(row));
        }
    }

    /// The refunds of a payment whose cash has moved since one failed.
    fn moves_of(&mut self, payment: &str) -> Option<&mut PaymentRefunds> {
        let row = self.refunds_row(payment).ok()?;
        Some(&mut self.refunds[row]).filter(|known| !known.moves.is_empty())
    }

    fn wait(&mut self, payment: &str, refunded: u64, at: Timestamp) {
        match self.waiting.iter_mut().find(|refund| *refund.payment == *payment) {
            Some(known) => known.refunded = known.refunded.max(refunded),
            None => {
                let row = self.waiting.partition_point(|known| (known.at, &*known.payment) < (at, payment));
                self.waiting.insert(row, WaitingRefund { payment: payment.into(), refunded, at });
            }
        }
        let surplus = self.waiting.len().saturating_sub(REFUNDS_WAITING);
        self.waiting.drain(..surplus);
    }

    /// As [`Billing::set_back`].
    pub(super) fn set_refunds_back(&mut self, at: Timestamp) {
        self.waiting.iter_mut().for_each(|refund| refund.at = refund.at.min(at));
        self.waiting.sort_by(|one, other| (one.at, &one.payment).cmp(&(other.at, &other.payment)));
        for known in &mut self.refunds {
            known.at = known.at.min(at);
            known.moves.iter_mut().for_each(|moved| moved.at = moved.at.min(at));
        }
    }
}

impl fact::RefundStated {
    pub(crate) fn statement(&self) -> RefundStatement {
        let failed = self.failed.as_deref().map(Box::from);
        RefundStatement { created: self.created, failed, cents: self.cents }
    }
}

impl User {
    pub(crate) fn note_refund_stated(&mut self, noted: &fact::RefundStated) {
        self.billing_mut().note_refund_stated(noted);
    }

    pub(crate) fn note_refund(&mut self, noted: &fact::RefundNoted) {
        let fact::RefundNoted { payment, refunded, taken, is_reset_taken, at } = noted;
        let billing = self.billing_mut();
        let Ok(row) = billing.purchase_row(payment) else { return billing.wait(payment, *refunded, *at) };
        billing.waiting.retain(|refund| *refund.payment != **payment);
        let purchase = &mut billing.purchases[row];
        purchase.refunded = purchase.refunded.max(*refunded);
        purchase.reset_taken |= *is_reset_taken;
        assert!(*taken <= billing.holding(&billing.purchases[row]).2, "a refund takes back what is left: {payment}");
        let (wallet, ..) = billing.holding(&billing.purchases[row]);
        if *taken == Cash::ZERO {
            return;
        }
        match billing.moves_of(payment) {
            Some(known) => {
                let wallet = wallet.expect("it has moved");
                known.note_move(CashMove { wallet, at: *at, amount: Cash::ZERO - *taken });
            }
            None => {
                let purchase = &mut billing.purchases[row];
                purchase.taken += *taken;
                purchase.taken_at = Some(*at).into();
            }
        }
        self.pay_out(wallet, *taken);
    }

    pub(crate) fn undo_refund(&mut self, undone: &fact::RefundUndone) {
        let fact::RefundUndone { payment, refunded, wallet, credit, is_reset_given, at } = undone;
        let billing = self.billing_mut();
        let row = billing.purchase_row(payment).expect("a refund that is undone is of a purchase");
        let (before, taken, _) = billing.holding(&billing.purchases[row]);
        let purchase = &mut billing.purchases[row];
        let gives = purchase.is_refunded() && *refunded < purchase.sku.cents() && taken > Cash::ZERO;
        purchase.refunded = *refunded;
        purchase.reset_taken &= !*is_reset_given;
        if gives && let Some(wallet) = wallet.or(before) {
            let row = billing.refunds_row(payment).expect("its failure is in the same record");
            billing.refunds[row].note_move(CashMove { wallet, at: *at, amount: *credit });
        }
        if let Some(wallet) = wallet {
            self.pay_in(*wallet, *credit);
        }
    }
}
