//! Decides about events of the payment provider: what each changes, once (gateway/docs/billing.md §4 to §6). The caller
//! has checked the signature, and that amount and currency are those of the price list.

use crate::amount::Cash;
use crate::command::{BillingEvent, BillingNews, BillingOutcome, SubscriptionNews};
use crate::fact;
use crate::mutation::Mutation;
use crate::reject::Reject;
use crate::rules::{self, CASH_MAX, Rules};
use crate::time::Timestamp;
use crate::user::billing::{Billing, NAME_BYTES_MAX, PURCHASES_MAX, Sku, SubscriptionStatus};
use crate::user::{Tier, User, WalletKind};

/// Notes the provider's id of the user. One that is known stays: of two concurrent requests the first decides.
///
/// # Errors
/// [`Reject::NoBillingStore`], [`Reject::InvalidTerms`].
pub fn note_customer(
    user: &User,
    customer: String,
    rules: &Rules,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) -> Result<(), Reject> {
    storable(rules, [customer.as_str()])?;
    if user.billing().is_none_or(|billing| billing.customer.is_none()) {
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
    storable(rules, [id.as_str(), customer.as_deref().unwrap_or_default(), news.subject()])?;
    let none = Billing::default();
    let billing = user.billing().unwrap_or(&none);
    if billing.knows(&id) {
        return Ok(BillingOutcome::Repeated);
    }
    // The customer is noted before anything is sold to it.
    if customer.is_some_and(|stated| billing.customer.as_deref() != Some(&*stated)) {
        return Ok(BillingOutcome::OtherCustomer);
    }
    facts.push(fact::BillingEventNoted { event: id.clone(), created, at: now }.into());
    match news {
        BillingNews::Nothing => Ok(BillingOutcome::Applied),
        BillingNews::Subscription(news) => {
            subscription(user, news, id, created, now, facts);
            Ok(BillingOutcome::Applied)
        }
        BillingNews::Payment { subscription, is_paid } => {
            facts.push(fact::SubscriptionPaid { subscription, is_paid, created, at: now }.into());
            Ok(BillingOutcome::Applied)
        }
        BillingNews::Purchase { payment, sku, wallet } => {
            if billing.purchase(&payment).is_some() {
                return Ok(BillingOutcome::Repeated);
            }
            if billing.purchases().len() >= PURCHASES_MAX {
                facts.clear();
                return Err(Reject::Busy);
            }
            let credit = sku.credit();
            let wallet = wallet.filter(|_| credit > Cash::ZERO).and_then(|wallet| user.credited_wallet(wallet));
            let wallet = wallet.filter(|wallet| wallet.cash <= CASH_MAX - credit).map(|wallet| wallet.id);
            let credited = wallet.map_or(Cash::ZERO, |_| credit);
            let purchase = fact::PurchaseNoted { payment: payment.clone(), sku, wallet, credit: credited, at: now };
            facts.push(purchase.into());
            if let Some(refunded) = billing.refunded_before(&payment) {
                let is_whole = refunded >= sku.cents();
                let taken = if is_whole { credited } else { Cash::ZERO };
                let is_reset_taken = is_whole && sku == Sku::MainReset;
                facts.push(fact::RefundNoted { payment, refunded, taken, is_reset_taken, at: now }.into());
            }
            let is_credited = wallet.is_some() || credit == Cash::ZERO;
            Ok(if is_credited { BillingOutcome::Applied } else { BillingOutcome::NotCredited })
        }
        BillingNews::Refund { payment, refunded } => {
            let (taken, is_reset_taken) = taken_back(user, billing, &payment, refunded);
            facts.push(fact::RefundNoted { payment, refunded, taken, is_reset_taken, at: now }.into());
            Ok(BillingOutcome::Applied)
        }
    }
}

/// The terms of a subscription. A better plan raises the baseline of the API wallet as a grant does; an older event may
/// come later, so the plan of each counts, not only that of the newest.
fn subscription(
    user: &User,
    news: SubscriptionNews,
    event: String,
    created: Timestamp,
    now: Timestamp,
    facts: &mut Vec<Mutation>,
) {
    let SubscriptionNews { subscription, product, interval, status, period_end, cancel_at_period_end, trial_ends_at } =
        news;
    facts.push(Mutation::SubscriptionNoted(fact::SubscriptionNoted {
        subscription,
        product,
        interval,
        status,
        period_end,
        cancel_at_period_end,
        trial_ends_at,
        event,
        created,
        at: now,
    }));
    let gives = !matches!(status, SubscriptionStatus::Incomplete | SubscriptionStatus::Canceled);
    if !gives || product.is_simulation() {
        return;
    }
    let granted = user.grant.filter(|grant| grant.expires_at.is_none_or(|end| now < end));
    let (tier, granted) = (product.tier(), granted.map_or(Tier::Free, |grant| grant.tier));
    let baseline = rules::baseline(WalletKind::Api, tier);
    if let Some(wallet) = user.wallet_of(WalletKind::Api)
        && tier > granted
        && wallet.baseline < baseline
    {
        facts.push(fact::BaselineRaised { wallet: wallet.id, baseline, at: now }.into());
    }
}

/// What a refund takes back: with the whole price returned, the cash that is free, or a reset that was not used. Once.
fn taken_back(user: &User, billing: &Billing, payment: &str, refunded: u64) -> (Cash, bool) {
    let Some(purchase) = billing.purchase(payment) else { return (Cash::ZERO, false) };
    if purchase.is_refunded() || refunded < purchase.sku.cents() {
        return (Cash::ZERO, false);
    }
    let wallet = purchase.wallet.and_then(|wallet| user.wallet(wallet)).filter(|wallet| wallet.is_active());
    let taken = wallet.map_or(Cash::ZERO, |wallet| purchase.credit.min(wallet.available()));
    (taken, purchase.sku == Sku::MainReset && billing.main_resets_left() > 0)
}

/// Whether facts with these ids can be journaled.
fn storable<const COUNT: usize>(rules: &Rules, names: [&str; COUNT]) -> Result<(), Reject> {
    if !rules.formats.is_newest() {
        return Err(Reject::NoBillingStore);
    }
    if names.iter().any(|name| name.len() > NAME_BYTES_MAX) { Err(Reject::InvalidTerms) } else { Ok(()) }
}
