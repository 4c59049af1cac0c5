//! Subscriptions of a user (gateway/docs/billing.md §4, §5): their terms, what was paid, and those whose price is not
//! known here.
//!
//! A subscription with a price that the server does not know gives nothing. What its newest event states is kept beside
//! the known terms, for the moment at which the price becomes known.

use super::Billing;
use super::products::{BillingInterval, Product};
use crate::bytes::{Bytes, CodecError, leaf, put_list, row, take_list};
use crate::fact;
use crate::time::{DAY, Date, Timestamp};
use crate::user::{Grant, User};
use wincode::{SchemaRead, SchemaWrite};

/// How long an unpaid subscription still counts, from the first event that says so, µs.
pub const PAST_DUE_KEPT_US: u64 = 7 * DAY;
/// Subscriptions of a user that are remembered. Dropped first are those without terms, then those that have ended, oldest
/// first; one that gives the user's plan never is.
pub const SUBSCRIPTIONS_KEPT: usize = 8;
/// Those whose price is not known. Dropped first are those that have ended, then the oldest.
pub const UNPRICED_KEPT: usize = 8;
/// Unpaid moments of a subscription that are remembered; the earliest count.
pub const UNPAID_KEPT: usize = 32;

/// State of a subscription, in the order in which it goes through them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum SubscriptionStatus {
    /// Never paid: it gives nothing.
    Incomplete,
    Trialing,
    Active,
    PastDue,
    Canceled,
}

leaf! { SubscriptionStatus }

impl SubscriptionStatus {
    /// Whether the provider asks for payments in this state.
    pub fn is_live(self) -> bool {
        matches!(self, SubscriptionStatus::Trialing | SubscriptionStatus::Active | SubscriptionStatus::PastDue)
    }

    /// Whether it gives the plan without a known end.
    pub fn is_paid(self) -> bool {
        matches!(self, SubscriptionStatus::Trialing | SubscriptionStatus::Active)
    }
}

/// The terms of a subscription, as its newest event states them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionTerms {
    pub product: Product,
    pub interval: BillingInterval,
    pub status: SubscriptionStatus,
    pub period_end: Date,
    pub cancel_at_period_end: bool,
    pub trial_ends_at: Date,
    /// When the provider made the event, and its id.
    pub created: Timestamp,
    pub event: Box<str>,
}

row! { SubscriptionTerms {
    product, interval, status, period_end, cancel_at_period_end, trial_ends_at, created, event
} }

/// Newer terms have the larger one: time of the event, then end of the period, then how far the subscription is; the id
/// decides between equal ones.
type Age<'a> = (Timestamp, Option<Timestamp>, SubscriptionStatus, &'a str);

/// A subscription at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    pub id: Box<str>,
    /// `None`: only a payment is known.
    pub terms: Option<SubscriptionTerms>,
    /// Time of the newest event that says that it is paid.
    pub paid: Date,
    /// Times of later events that say that it is not, ascending.
    pub unpaid: Vec<Timestamp>,
}

impl Bytes for Subscription {
    fn put(&self, out: &mut Vec<u8>) {
        let Subscription { id, terms, paid, unpaid } = self;
        id.put(out);
        terms.put(out);
        paid.put(out);
        put_list(unpaid.len(), unpaid.iter(), out);
    }
    fn take(input: &mut &[u8]) -> Result<Self, CodecError> {
        let (id, terms, paid) = (Bytes::take(input)?, Bytes::take(input)?, Bytes::take(input)?);
        let mut read = Subscription { id, terms, paid, unpaid: Vec::new() };
        take_list(input, |at| read.unpaid.push(at))?;
        Ok(read)
    }
}

impl SubscriptionTerms {
    fn age(&self) -> Age<'_> {
        (self.created, self.period_end.get(), self.status, &self.event)
    }
}

impl Subscription {
    fn new(id: &str) -> Subscription {
        Subscription { id: id.into(), terms: None, paid: Date::NONE, unpaid: Vec::new() }
    }

    /// Records that it is paid or unpaid at a time.
    fn note_payment(&mut self, is_paid: bool, created: Timestamp) {
        if is_paid {
            self.paid = self.paid.get().max(Some(created)).into();
        } else if let Err(at) = self.unpaid.binary_search(&created) {
            self.unpaid.insert(at, created);
        }
        let paid = self.paid;
        self.unpaid.retain(|at| paid.get().is_none_or(|paid| *at > paid));
        self.unpaid.truncate(UNPAID_KEPT);
    }

    fn note_terms(&mut self, terms: SubscriptionTerms) {
        match terms.status {
            SubscriptionStatus::Trialing | SubscriptionStatus::Active => self.note_payment(true, terms.created),
            SubscriptionStatus::PastDue => self.note_payment(false, terms.created),
            SubscriptionStatus::Incomplete | SubscriptionStatus::Canceled => {}
        }
        if self.terms.as_ref().is_none_or(|known| known.age() < terms.age()) {
            self.terms = Some(terms);
        }
    }

    /// The state that its events state: the terms, corrected by later payments.
    pub fn status(&self) -> SubscriptionStatus {
        let Some(terms) = &self.terms else { return SubscriptionStatus::Incomplete };
        match terms.status {
            settled @ (SubscriptionStatus::Incomplete | SubscriptionStatus::Canceled) => settled,
            _ if self.unpaid_since().is_some() => SubscriptionStatus::PastDue,
            SubscriptionStatus::Trialing => SubscriptionStatus::Trialing,
            SubscriptionStatus::Active | SubscriptionStatus::PastDue => SubscriptionStatus::Active,
        }
    }

    /// The first unpaid moment. One of the newest terms counts also when a payment is of the same second.
    fn unpaid_since(&self) -> Option<Timestamp> {
        let stated = self.terms.as_ref().filter(|terms| {
            terms.status == SubscriptionStatus::PastDue && self.paid.get().is_none_or(|paid| paid <= terms.created)
        });
        self.unpaid.first().copied().into_iter().chain(stated.map(|terms| terms.created)).min()
    }

    /// Its state at a moment, which goes with [`Subscription::grant`]. A paid one whose period is over is past due, and has
    /// ended when its plan has, as has an unpaid one whose period is over that long: their last event was lost. One that
    /// ends later than this moment has not ended.
    pub fn status_at(&self, now: Timestamp) -> SubscriptionStatus {
        let status = self.status();
        let Some(terms) = &self.terms else { return status };
        let is_over = |end: Option<Timestamp>| end.is_some_and(|end| end <= now);
        let is_lost = status.is_live() && is_over(self.lasts(terms));
        match status {
            SubscriptionStatus::Trialing | SubscriptionStatus::Active if is_lost => SubscriptionStatus::Canceled,
            SubscriptionStatus::PastDue if is_lost && is_over(self.grant().and_then(|plan| plan.expires_at)) => {
                SubscriptionStatus::Canceled
            }
            SubscriptionStatus::Trialing | SubscriptionStatus::Active if is_over(self.period_end(terms)) => {
                SubscriptionStatus::PastDue
            }
            SubscriptionStatus::Canceled if now < terms.created => SubscriptionStatus::Active,
            settled => settled,
        }
    }

    /// The end of the paid period: the stated one. A payment after that and after the terms is for the next one, which no
    /// event has stated yet; that the terms are paid buys no more than they state.
    fn period_end(&self, terms: &SubscriptionTerms) -> Option<Timestamp> {
        let stated = terms.period_end.get()?;
        let later =
            self.paid.get().filter(|paid| *paid > stated && *paid > terms.created && !terms.cancel_at_period_end);
        Some(later.map_or(stated, |paid| paid.plus(terms.interval.longest())))
    }

    /// Until when a paid subscription counts without another event: its period, and as long again as an unpaid one, so that
    /// a late event ends nothing and a lost one does.
    fn lasts(&self, terms: &SubscriptionTerms) -> Option<Timestamp> {
        let end = self.period_end(terms)?;
        Some(if terms.cancel_at_period_end { end } else { end.plus(PAST_DUE_KEPT_US) })
    }

    /// The plan that it gives, and until when; `None`: it gives none and never did.
    pub fn grant(&self) -> Option<Grant> {
        let terms = self.terms.as_ref()?;
        let expires_at = match self.status() {
            SubscriptionStatus::Incomplete => return None,
            SubscriptionStatus::Trialing | SubscriptionStatus::Active => self.lasts(terms),
            SubscriptionStatus::PastDue => self.unpaid_since().map(|first| first.plus(PAST_DUE_KEPT_US)),
            SubscriptionStatus::Canceled => Some(terms.created),
        };
        Some(Grant { tier: terms.product.tier(), expires_at })
    }

    /// Whether the provider still asks for payments, by its events alone.
    fn is_live(&self) -> bool {
        self.status().is_live()
    }

    /// Whether it still asks for them at a moment; not for those of a subscription whose last event was lost.
    pub fn is_live_at(&self, now: Timestamp) -> bool {
        self.status_at(now).is_live()
    }
}

/// What the newest event states about a subscription whose price is not known here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnpricedSubscription {
    pub id: Box<str>,
    /// The provider's id of the price; `None`: the event names none.
    pub price: Option<Box<str>>,
    pub status: SubscriptionStatus,
    pub period_end: Date,
    pub cancel_at_period_end: bool,
    pub trial_ends_at: Date,
    /// When the provider made the event, and its id.
    pub created: Timestamp,
    pub event: Box<str>,
}

row! { UnpricedSubscription {
    id, price, status, period_end, cancel_at_period_end, trial_ends_at, created, event
} }

impl UnpricedSubscription {
    /// As that of [`SubscriptionTerms`].
    fn age(&self) -> Age<'_> {
        (self.created, self.period_end.get(), self.status, &self.event)
    }
}

/// As that of [`SubscriptionTerms`].
fn age(noted: &fact::SubscriptionNoted) -> Age<'_> {
    (noted.created, noted.period_end, noted.status, &noted.event)
}

impl Billing {
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    /// Those whose price is not known.
    pub fn unpriced(&self) -> &[UnpricedSubscription] {
        &self.unpriced
    }

    /// The terms of a subscription.
    pub(crate) fn terms(&self, subscription: &str) -> Option<&SubscriptionTerms> {
        self.subscriptions.iter().find(|known| *known.id == *subscription)?.terms.as_ref()
    }

    /// What is kept of a subscription whose price was not known, if its event is newer than these terms.
    pub(crate) fn unpriced_after(&self, terms: &fact::SubscriptionNoted) -> Option<&UnpricedSubscription> {
        let row = self.unpriced_row(&terms.subscription).ok()?;
        Some(&self.unpriced[row]).filter(|known| known.age() > age(terms))
    }

    /// Whether an event of a subscription without a known price is newer than all that is known of it.
    pub(crate) fn is_news(&self, unpriced: &fact::SubscriptionUnpriced) -> bool {
        let age = (unpriced.created, unpriced.period_end, unpriced.status, unpriced.event.as_str());
        let kept = self.unpriced_row(&unpriced.subscription).ok().map(|row| self.unpriced[row].age());
        kept.max(self.terms(&unpriced.subscription).map(SubscriptionTerms::age)).is_none_or(|known| known < age)
    }

    /// Whether these terms are news of a subscription that does not ask for payments at this moment: one that is unknown,
    /// was never paid, or has ended.
    pub(crate) fn begins(&self, terms: &fact::SubscriptionNoted, now: Timestamp) -> bool {
        let known = self.subscriptions.iter().find(|known| *known.id == *terms.subscription);
        known.is_none_or(|known| {
            !known.is_live_at(now) && known.terms.as_ref().is_none_or(|known| known.age() < age(terms))
        })
    }

    /// Another subscription of the same kind that the provider still asks payments for and that gives a plan now.
    pub(crate) fn lives_beside(&self, subscription: &str, is_simulation: bool, now: Timestamp) -> bool {
        self.subscriptions.iter().any(|known| {
            *known.id != *subscription
                && known.is_live()
                && known.terms.as_ref().is_some_and(|terms| terms.product.is_simulation() == is_simulation)
                && known.grant().is_some_and(|grant| grant.expires_at.is_none_or(|end| now < end))
        })
    }

    /// Of the plans or of the simulation: the subscription that counts longest, of equal ones that of the best plan, then
    /// the one with the newest terms.
    pub fn subscription(&self, is_simulation: bool) -> Option<&Subscription> {
        let of_kind = self
            .subscriptions
            .iter()
            .filter(|known| known.terms.as_ref().is_some_and(|terms| terms.product.is_simulation() == is_simulation));
        of_kind.max_by_key(|known| {
            let known: &Subscription = known;
            let lasts = known.grant().map(|grant| (grant.expires_at.unwrap_or(Timestamp(u64::MAX)), grant.tier));
            (lasts, known.terms.as_ref().map(SubscriptionTerms::age))
        })
    }

    /// The plan of the subscription.
    pub fn plan(&self) -> Option<Grant> {
        self.subscription(false)?.grant()
    }

    /// The plan whose limits the simulation has by a subscription of its own.
    pub fn simulation_plan(&self) -> Option<Grant> {
        self.subscription(true)?.grant()
    }

    fn unpriced_row(&self, subscription: &str) -> Result<usize, usize> {
        self.unpriced.binary_search_by(|known| (*known.id).cmp(subscription))
    }

    /// The subscription with this id. `gives`: the news give a plan. `None`: it is unknown, and there is no place for it.
    fn subscription_mut(&mut self, id: &str, gives: bool) -> Option<&mut Subscription> {
        let found = |known: &Subscription| (*known.id).cmp(id);
        if self.subscriptions.binary_search_by(found).is_err() && self.subscriptions.len() >= SUBSCRIPTIONS_KEPT {
            let kept =
                [false, true].map(|is_simulation| self.subscription(is_simulation).map(|known| known.id.clone()));
            let droppable = self.subscriptions.iter().enumerate();
            let droppable = droppable.filter(|(_, known)| gives || !known.is_live());
            let droppable = droppable.filter(|(_, known)| !kept.iter().flatten().any(|id| *id == known.id));
            let age = |known: &Subscription| (known.is_live(), known.terms.as_ref().map(|terms| terms.created));
            let (row, _) = droppable.min_by_key(|(_, known)| (known.terms.is_some(), age(known)))?;
            self.subscriptions.remove(row);
        }
        let row = self.subscriptions.binary_search_by(found).unwrap_or_else(|row| {
            self.subscriptions.insert(row, Subscription::new(id));
            row
        });
        Some(&mut self.subscriptions[row])
    }

    /// Merges that a subscription is paid or not. Of an unknown one it is noted only where there is a free place.
    fn note_payment(&mut self, noted: &fact::SubscriptionPaid) {
        let is_known = self.subscriptions.iter().any(|known| *known.id == *noted.subscription);
        if (is_known || self.subscriptions.len() < SUBSCRIPTIONS_KEPT)
            && let Some(known) = self.subscription_mut(&noted.subscription, false)
        {
            known.note_payment(noted.is_paid, noted.created);
        }
    }

    /// Merges the terms of a subscription.
    pub(crate) fn note_terms(&mut self, noted: &fact::SubscriptionNoted) {
        let gives = !matches!(noted.status, SubscriptionStatus::Incomplete | SubscriptionStatus::Canceled);
        if let Ok(row) = self.unpriced_row(&noted.subscription)
            && self.unpriced_after(noted).is_none()
        {
            self.unpriced.remove(row);
        }
        let Some(known) = self.subscription_mut(&noted.subscription, gives) else { return };
        known.note_terms(SubscriptionTerms {
            product: noted.product,
            interval: noted.interval,
            status: noted.status,
            period_end: noted.period_end.into(),
            cancel_at_period_end: noted.cancel_at_period_end,
            trial_ends_at: noted.trial_ends_at.into(),
            created: noted.created,
            event: noted.event.as_str().into(),
        });
    }

    /// Keeps the newest statement about a subscription whose price is not known.
    fn note_unpriced(&mut self, noted: &fact::SubscriptionUnpriced) {
        if !self.is_news(noted) {
            return;
        }
        let kept = UnpricedSubscription {
            id: noted.subscription.as_str().into(),
            price: noted.price.as_deref().map(Box::from),
            status: noted.status,
            period_end: noted.period_end.into(),
            cancel_at_period_end: noted.cancel_at_period_end,
            trial_ends_at: noted.trial_ends_at.into(),
            created: noted.created,
            event: noted.event.as_str().into(),
        };
        match self.unpriced_row(&noted.subscription) {
            Ok(row) => self.unpriced[row] = kept,
            Err(row) => self.unpriced.insert(row, kept),
        }
        if self.unpriced.len() > UNPRICED_KEPT {
            let rows = self.unpriced.iter().enumerate();
            let oldest = rows.min_by_key(|(_, known)| (known.status.is_live(), known.created)).map(|(row, _)| row);
            oldest.into_iter().for_each(|row| _ = self.unpriced.remove(row));
        }
    }
}

impl User {
    /// The plan of the user's subscription, and its end.
    pub fn plan(&self) -> Option<Grant> {
        self.billing()?.plan()
    }

    pub(crate) fn note_subscription(&mut self, noted: &fact::SubscriptionNoted) {
        self.billing_mut().note_terms(noted);
    }

    pub(crate) fn note_unpriced_subscription(&mut self, noted: &fact::SubscriptionUnpriced) {
        self.billing_mut().note_unpriced(noted);
    }

    pub(crate) fn note_subscription_paid(&mut self, noted: &fact::SubscriptionPaid) {
        self.billing_mut().note_payment(noted);
    }
}
