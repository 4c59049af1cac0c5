//! Decides about events of the payment provider: what each changes, once (gateway/docs/billing.md §4 to §6). The caller
//! has checked the signature, and that amount and currency are those of the price list.

use crate::amount::Cash;
use crate::command::{BillingEvent, BillingNews, BillingOutcome, SubscriptionNews};
use crate::fact;
use crate::id::WalletId;
use crate::mutation::Mutation;
use crate::reject::Reject;
use crate::rules::{self, CASH_MAX, Rules};
use crate::time::Timestamp;
use crate::user::billing::{Billing, NAME_BYTES_MAX, PAST_DUE_KEPT_US, PURCHASES_MAX, Purchase, Sku};
use crate::user::{Tier, User, WalletKind};

/// Notes the provider's id of the user. One that is known stays, so of two concurrent requests the first decides; `instead_of`
/// names one that the present provider does not know.
///
/// # Errors
/// [`Reject::NoBillingStore`], [`Reject::InvalidTerms`].
pub fn note_customer(
    user: &User,
    customer: String,
    instead_of: Option<&str>,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    storable(rules, [customer.as_str()])?;
    if user.billing().and_then(|billing| billing.customer.as_deref()) == instead_of {
        facts.push(fact::CustomerNoted { customer, at: now }.into());
    }
    Ok(())
}

/// An event and its effect: facts of one record.
///
/// # Errors
/// [`Reject::NoBillingStore`]; [`Reject::InvalidTerms`] for an id that is too long; [`Reject::Busy`] when the user has
/// the maximum count of purchases.
pub fn event(
    user: &User,
    event: BillingEvent,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<BillingOutcome, Reject> {
    let BillingEvent { id, created, customer, news } = event;
    storable(rules, [id.as_str(), customer.as_deref().unwrap_or_default(), news.subject(), news.object()])?;
    let none = Billing::default();
    let billing = user.billing().unwrap_or(&none);
    if billing.knows(&id) {
        return Ok(BillingOutcome::Repeated);
    }
    // The customer is noted before anything is sold to it. What was sold to one that was replaced stays the user's.
    let is_other = customer.is_some_and(|stated| billing.customer.as_deref() != Some(&*stated));
    if is_other && !billing.has(news.subject()) {
        return Ok(BillingOutcome::OtherCustomer);
    }
    let decision = Decision { user, billing, id: &id, created, now };
    let outcome = match news {
        BillingNews::Nothing => BillingOutcome::Applied,
        BillingNews::Subscription(news) => decision.subscription(news, facts),
        BillingNews::Payment { subscription, is_paid } => {
            facts.push(fact::SubscriptionPaid { subscription, is_paid, created, at: now }.into());
            BillingOutcome::Applied
        }
        BillingNews::Purchase { payment, .. } if billing.purchase(&payment).is_some() => BillingOutcome::Repeated,
        BillingNews::Purchase { .. } if billing.purchases().len() >= PURCHASES_MAX => return Err(Reject::Busy),
        BillingNews::Purchase { payment, sku, wallet } => decision.purchase(payment, sku, wallet, facts),
        BillingNews::Refund { payment, refunded } => decision.refund(payment, None, refunded, facts),
        BillingNews::RefundFailed { payment, refund, cents } => decision.refund(payment, Some(refund), cents, facts),
    };
    // The same event is to have its effect once its price is known.
    if outcome != BillingOutcome::UnknownPrice {
        facts.insert(0, fact::BillingEventNoted { event: id, created, at: now }.into());
    }
    Ok(outcome)
}

/// An event of a user that is decided now.
struct Decision<'a> {
    user: &'a User,
    billing: &'a Billing,
    id: &'a str,
    created: Timestamp,
    now: Timestamp,
}

impl Decision<'_> {
    /// The terms of a subscription. Its end counts with any price, as of a product that is known; without one it is kept,
    /// as is a plan with an unknown price.
    fn subscription(&self, news: SubscriptionNews, facts: &mut Vec<Mutation>) -> BillingOutcome {
        let known = self.billing.terms(&news.subscription).map(|terms| (terms.product, terms.interval));
        let product = news.product.or(known.filter(|_| !news.status.is_paid()));
        let Some((product, interval)) = product else { return self.unpriced(news, facts) };
        let SubscriptionNews { subscription, status, period_end, cancel_at_period_end, trial_ends_at, .. } = news;
        // An event of a period that is over gives no plan.
        let gives = status.is_live() && period_end.is_none_or(|end| self.now < end.plus(PAST_DUE_KEPT_US));
        let noted = fact::SubscriptionNoted {
            subscription,
            product,
            interval,
            status,
            period_end,
            cancel_at_period_end,
            trial_ends_at,
            event: self.id.to_owned(),
            created: self.created,
            at: self.now,
        };
        let is_second = gives
            && self.billing.begins(&noted, self.now)
            && self.billing.lives_beside(&noted.subscription, product.is_simulation(), self.now);
        // A later end came before the product was known.
        let ended = self.billing.unpriced_after(&noted).filter(|later| !later.status.is_paid());
        let ended = ended.map(|later| fact::SubscriptionNoted {
            subscription: later.id.to_string(),
            status: later.status,
            period_end: later.period_end.get(),
            cancel_at_period_end: later.cancel_at_period_end,
            trial_ends_at: later.trial_ends_at.get(),
            event: later.event.to_string(),
            created: later.created,
            ..noted.clone()
        });
        facts.push(noted.into());
        facts.extend(ended.map(Mutation::from));
        if gives && !product.is_simulation() {
            facts.extend(self.baseline(product.tier()));
        }
        if is_second { BillingOutcome::SecondSubscription } else { BillingOutcome::Applied }
    }

    /// A better plan raises the baseline of the API wallet as a grant does; an older event may come later, so the plan of
    /// each counts, not only that of the newest.
    fn baseline(&self, tier: Tier) -> Option<Mutation> {
        let granted = self.user.grant.filter(|grant| grant.expires_at.is_none_or(|end| self.now < end));
        let granted = granted.map_or(Tier::Free, |grant| grant.tier);
        let baseline = rules::baseline(WalletKind::Api, tier);
        let wallet = self.user.wallet_of(WalletKind::Api)?;
        let raises = tier > granted && wallet.baseline < baseline;
        raises.then(|| fact::BaselineRaised { wallet: wallet.id, baseline, at: self.now }.into())
    }

    fn unpriced(&self, news: SubscriptionNews, facts: &mut Vec<Mutation>) -> BillingOutcome {
        let SubscriptionNews { subscription, price, status, period_end, cancel_at_period_end, trial_ends_at, .. } =
            news;
        let unpriced = fact::SubscriptionUnpriced {
            subscription,
            price,
            status,
            period_end,
            cancel_at_period_end,
            trial_ends_at,
            event: self.id.to_owned(),
            created: self.created,
            at: self.now,
        };
        if self.billing.is_news(&unpriced) {
            facts.push(unpriced.into());
        }
        if status.is_live() { BillingOutcome::UnknownPrice } else { BillingOutcome::Applied }
    }

    fn purchase(
        &self,
        payment: String,
        sku: Sku,
        wallet: Option<WalletId>,
        facts: &mut Vec<Mutation>,
    ) -> BillingOutcome {
        let (credit, at) = (sku.credit(), self.now);
        let wallet = wallet.filter(|_| credit > Cash::ZERO).and_then(|wallet| self.user.credited_wallet(wallet));
        let wallet = wallet.filter(|wallet| wallet.cash <= CASH_MAX - credit).map(|wallet| wallet.id);
        let credited = wallet.map_or(Cash::ZERO, |_| credit);
        facts.push(fact::PurchaseNoted { payment: payment.clone(), sku, wallet, credit: credited, at }.into());
        let refunded = self.billing.returned(&payment);
        if refunded > 0 {
            let is_whole = refunded >= sku.cents();
            let taken = if is_whole { credited } else { Cash::ZERO };
            let is_reset_taken = is_whole && sku == Sku::MainReset;
            facts.push(fact::RefundNoted { payment, refunded, taken, is_reset_taken, at }.into());
        }
        let is_credited = wallet.is_some() || credit == Cash::ZERO;
        if is_credited { BillingOutcome::Applied } else { BillingOutcome::NotCredited }
    }

    /// A statement about the refunds of a payment; of a known purchase also what follows from it.
    fn refund(&self, payment: String, failed: Option<String>, cents: u64, facts: &mut Vec<Mutation>) -> BillingOutcome {
        let (created, at) = (self.created, self.now);
        let stated = fact::RefundStated { payment, failed, cents, created, at };
        let refunded = self.billing.returned_after(&stated.payment, stated.statement());
        let purchase = self.billing.purchase(&stated.payment);
        facts.push(stated.into());
        match purchase {
            Some(purchase) if refunded > purchase.refunded => self.taken_back(purchase, refunded, facts),
            Some(purchase) if refunded < purchase.refunded => self.given_back(purchase, refunded, facts),
            _ => BillingOutcome::Applied,
        }
    }

    /// More of a purchase is returned. With its whole price, the cash that is free is taken back, or a reset that was not
    /// used.
    fn taken_back(&self, purchase: &Purchase, refunded: u64, facts: &mut Vec<Mutation>) -> BillingOutcome {
        let becomes_whole = !purchase.is_refunded() && refunded >= purchase.sku.cents();
        let (wallet, _, left) = self.billing.holding(purchase);
        let wallet = wallet.filter(|_| becomes_whole).and_then(|wallet| self.user.wallet(wallet));
        let taken =
            wallet.filter(|wallet| wallet.is_active()).map_or(Cash::ZERO, |wallet| left.min(wallet.available()));
        let is_reset_taken = becomes_whole && purchase.sku == Sku::MainReset && self.billing.main_resets_left() > 0;
        let payment = purchase.payment.to_string();
        facts.push(fact::RefundNoted { payment, refunded, taken, is_reset_taken, at: self.now }.into());
        BillingOutcome::Applied
    }

    /// Less of a purchase is returned, because a refund failed. If the whole price was returned before, what was taken
    /// back is given back, to the wallet or the one that replaced it.
    fn given_back(&self, purchase: &Purchase, refunded: u64, facts: &mut Vec<Mutation>) -> BillingOutcome {
        let was_whole = purchase.is_refunded() && refunded < purchase.sku.cents();
        let (wallet, taken, _) = self.billing.holding(purchase);
        let owed = if was_whole { taken } else { Cash::ZERO };
        let wallet = wallet.filter(|_| owed > Cash::ZERO).and_then(|wallet| self.user.credited_wallet(wallet));
        let wallet = wallet.filter(|wallet| wallet.cash <= CASH_MAX - owed).map(|wallet| wallet.id);
        let credit = wallet.map_or(Cash::ZERO, |_| owed);
        let is_reset_given = was_whole && purchase.reset_taken;
        let payment = purchase.payment.to_string();
        facts.push(fact::RefundUndone { payment, refunded, wallet, credit, is_reset_given, at: self.now }.into());
        if credit == owed { BillingOutcome::Applied } else { BillingOutcome::NotCredited }
    }
}

/// Whether facts with these ids can be journaled.
fn storable<const COUNT: usize>(rules: &Rules, names: [&str; COUNT]) -> Result<(), Reject> {
    if !rules.formats.is_newest() {
        return Err(Reject::NoBillingStore);
    }
    if names.iter().any(|name| name.len() > NAME_BYTES_MAX) { Err(Reject::InvalidTerms) } else { Ok(()) }
}
