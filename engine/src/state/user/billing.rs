//! Billing of a user (gateway/docs/billing.md §4 to §6): customer and subscriptions at the payment provider, purchases
//! with their refunds, bought resets of the MAIN wallet, and the events that were processed.
//!
//! | File | Holds |
//! |---|---|
//! | `products.rs` | the price list |
//! | `subscriptions.rs` | subscriptions, and those whose price is not known |
//! | `purchases.rs` | purchases: cash of wallets, bought resets |
//! | `refunds.rs` | what was returned of a payment, and what a refund that failed gives back |
//! | `events.rs` | the events that were processed |
//!
//! Events come in any order, and some come twice. So a fact is not a new value but a piece of evidence: it is merged, and
//! every order of the same facts gives the same state. Terms of a subscription are those of the newest event; a list of
//! unpaid moments is cut by the newest payment; a refund of a payment that is not known waits for it.
//!
//! A processed event is remembered for [`EVENTS_KEPT_US`], and at most [`EVENTS_KEPT`] are. The provider repeats an event
//! for three days, and lets its owner repeat one for thirty. An event that comes again after that still has no second
//! effect: a payment is credited once, what a refund takes back is recorded with the payment, and older terms never
//! replace newer ones.

mod events;
mod products;
mod purchases;
mod refunds;
mod subscriptions;

pub use events::{EVENTS_KEPT, EVENTS_KEPT_US, KnownEvent};
pub use products::{BillingInterval, Product, Sku};
pub use purchases::{PURCHASES_MAX, Purchase};
pub use refunds::{CashMove, PaymentRefunds, REFUNDS_WAITING, RefundStatement, STATEMENTS_KEPT, WaitingRefund};
pub use subscriptions::{
    PAST_DUE_KEPT_US, SUBSCRIPTIONS_KEPT, Subscription, SubscriptionStatus, SubscriptionTerms, UNPAID_KEPT,
    UNPRICED_KEPT, UnpricedSubscription,
};

use super::User;
use crate::bytes::{Bytes, CodecError, put_list, take_list};
use crate::fact;
use crate::time::Timestamp;
use purchases::RESETS_KEPT;

/// Longest id of an event, customer, subscription, price, payment or refund, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// Billing of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Billing {
    /// The provider's id of the user.
    pub customer: Option<Box<str>>,
    /// By id.
    subscriptions: Vec<Subscription>,
    /// By payment.
    purchases: Vec<Purchase>,
    /// Of builds before `refunds`. Oldest first, then by payment.
    waiting: Vec<WaitingRefund>,
    /// By time, then id.
    events: Vec<KnownEvent>,
    /// Bought resets of the MAIN wallet that were used, and the newest times of it.
    resets_used: u32,
    resets: Vec<Timestamp>,
    /// By id.
    unpriced: Vec<UnpricedSubscription>,
    /// By payment.
    refunds: Vec<PaymentRefunds>,
}

impl Bytes for Billing {
    fn put(&self, out: &mut Vec<u8>) {
        let Billing {
            customer,
            subscriptions,
            purchases,
            waiting,
            events,
            resets_used,
            resets,
            unpriced: _,
            refunds: _,
        } = self;
        customer.put(out);
        put_list(subscriptions.len(), subscriptions.iter(), out);
        put_list(purchases.len(), purchases.iter(), out);
        put_list(waiting.len(), waiting.iter(), out);
        put_list(events.len(), events.iter(), out);
        resets_used.put(out);
        put_list(resets.len(), resets.iter(), out);
    }

    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let mut read = Billing { customer: Bytes::take(input)?, ..Billing::default() };
        take_list(input, |subscription| read.subscriptions.push(subscription))?;
        take_list(input, |purchase| read.purchases.push(purchase))?;
        take_list(input, |refund| read.waiting.push(refund))?;
        take_list(input, |event| read.events.push(event))?;
        read.resets_used = Bytes::take(input)?;
        take_list(input, |at| read.resets.push(at))?;
        let ascend = read.subscriptions.is_sorted_by(|one, next| one.id < next.id)
            && read.purchases.is_sorted_by(|one, next| one.payment < next.payment)
            && read.waiting.is_sorted_by(|one, next| (one.at, &one.payment) < (next.at, &next.payment))
            && read.events.is_sorted_by(|one, next| (one.created, &one.id) < (next.created, &next.id))
            && read.subscriptions.iter().all(|known| known.unpaid.is_sorted_by(|one, next| one < next))
            && read.resets.is_sorted();
        let bounded = read.subscriptions.len() <= SUBSCRIPTIONS_KEPT
            && read.subscriptions.iter().all(|known| known.unpaid.len() <= UNPAID_KEPT)
            && read.purchases.len() <= PURCHASES_MAX
            && read.waiting.len() <= REFUNDS_WAITING
            && read.events.len() <= EVENTS_KEPT
            && read.resets.len() <= RESETS_KEPT;
        if ascend && bounded { Ok(read) } else { Err(CodecError::Reference) }
    }
}

impl Billing {
    /// Whether there is something that [`Billing::put_later`] writes.
    pub(crate) fn has_later(&self) -> bool {
        !self.unpriced.is_empty() || !self.refunds.is_empty()
    }

    /// Lists that earlier builds do not have, as a section of their own in a snapshot.
    pub(crate) fn put_later(&self, out: &mut Vec<u8>) {
        put_list(self.unpriced.len(), self.unpriced.iter(), out);
        put_list(self.refunds.len(), self.refunds.iter(), out);
    }

    pub(crate) fn take_later(&mut self, input: &mut &[u8]) -> Result<(), CodecError> {
        take_list(input, |unpriced| self.unpriced.push(unpriced))?;
        take_list(input, |refunds| self.refunds.push(refunds))?;
        let ascend = self.unpriced.is_sorted_by(|one, next| one.id < next.id)
            && self.refunds.is_sorted_by(|one, next| one.payment < next.payment)
            && self.refunds.iter().all(PaymentRefunds::is_sound);
        let bounded = self.unpriced.len() <= UNPRICED_KEPT && self.refunds.len() <= PURCHASES_MAX + REFUNDS_WAITING;
        if ascend && bounded && self.has_later() { Ok(()) } else { Err(CodecError::Reference) }
    }

    /// Whether a subscription or payment with this id is known as the user's.
    pub(crate) fn has(&self, subject: &str) -> bool {
        self.subscriptions.iter().any(|known| *known.id == *subject) || self.purchase(subject).is_some()
    }

    /// No past time is later than `at`. Times of the provider stay.
    pub(super) fn set_back(&mut self, at: Timestamp) {
        for bought in &mut self.purchases {
            bought.at = bought.at.min(at);
            bought.taken_at = bought.taken_at.get().map(|taken_at| taken_at.min(at)).into();
        }
        self.set_refunds_back(at);
        self.resets.iter_mut().for_each(|reset_at| *reset_at = (*reset_at).min(at));
    }
}

impl User {
    /// Billing, if the user has ever used it.
    pub fn billing(&self) -> Option<&Billing> {
        self.billing.as_deref()
    }

    pub(super) fn note_customer(&mut self, noted: &fact::CustomerNoted) {
        self.billing_mut().customer = Some(noted.customer.as_str().into());
    }

    pub(super) fn note_billing_event(&mut self, noted: &fact::BillingEventNoted) {
        self.billing_mut().note_event(&noted.event, noted.created, noted.at);
    }

    fn billing_mut(&mut self) -> &mut Billing {
        self.billing.get_or_insert_default()
    }
}
