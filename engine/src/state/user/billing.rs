//! Billing of a user (gateway/docs/billing.md §4 to §6): customer and subscriptions at the payment provider, purchases
//! with their refunds, bought resets of the MAIN wallet, and the events that were processed.
//!
//! Events come in any order, and some come twice. So a fact is not a new value but a piece of evidence: it is merged, and
//! every order of the same facts gives the same state. Terms of a subscription are those of the newest event; a list of
//! unpaid moments is cut by the newest payment; a refund of a payment that is not known waits for it.
//!
//! A processed event is remembered for [`EVENTS_KEPT_US`], and at most [`EVENTS_KEPT`] are. The provider repeats an event
//! for three days, and lets its owner repeat one for thirty. An event that comes again after that still has no second
//! effect: a payment is credited once, what a refund takes back is recorded with the payment, and older terms never
//! replace newer ones.

use super::key::{Grant, Tier};
use super::wallet::{Wallet, WalletKind};
use super::{User, ledger};
use crate::amount::Cash;
use crate::bytes::{Bytes, CodecError, leaf, put_list, row, take_list};
use crate::fact;
use crate::id::WalletId;
use crate::time::{DAY, Date, Timestamp};
use wincode::{SchemaRead, SchemaWrite};

/// How long an unpaid subscription still counts, from the first event that says so, µs.
pub const PAST_DUE_KEPT_US: u64 = 7 * DAY;
/// Processed events that are remembered: the newest, and for how long, µs.
pub const EVENTS_KEPT: usize = 256;
pub const EVENTS_KEPT_US: u64 = 30 * DAY;
/// Subscriptions of a user that are remembered; the one with the oldest terms is dropped first.
pub const SUBSCRIPTIONS_KEPT: usize = 8;
/// Unpaid moments of a subscription that are remembered; the earliest count.
pub const UNPAID_KEPT: usize = 32;
/// Refunds that wait for their payment; the oldest is dropped first.
pub const REFUNDS_WAITING: usize = 64;
/// Purchases of a user over time; all stay in memory.
pub const PURCHASES_MAX: usize = 1_000;
/// Times of bought resets that are remembered, for the points of equity.
const RESETS_KEPT: usize = 4;
/// Longest id of an event, customer, subscription or payment, in bytes.
pub const NAME_BYTES_MAX: usize = 255;

/// What a subscription is for (gateway/docs/billing.md §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Product {
    Pro,
    ProPlus,
    BacktestingStarter,
    BacktestingPro,
}

/// How often a subscription is paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum BillingInterval {
    Monthly,
    Yearly,
}

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

/// What is bought once (gateway/docs/billing.md §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, SchemaWrite, SchemaRead)]
#[cfg_attr(test, derive(bincode::Encode, bincode::Decode))]
pub enum Sku {
    Topup500,
    Topup2000,
    Topup10000,
    MainReset,
}

leaf! { Product, BillingInterval, SubscriptionStatus, Sku }

impl Product {
    pub const ALL: [Product; 4] =
        [Product::Pro, Product::ProPlus, Product::BacktestingStarter, Product::BacktestingPro];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            Product::Pro => "pro",
            Product::ProPlus => "pro_plus",
            Product::BacktestingStarter => "backtesting_starter",
            Product::BacktestingPro => "backtesting_pro",
        }
    }

    /// Whether it lifts the limits of the simulation only.
    pub fn is_simulation(self) -> bool {
        matches!(self, Product::BacktestingStarter | Product::BacktestingPro)
    }

    /// The plan whose limits it gives.
    pub fn tier(self) -> Tier {
        match self {
            Product::Pro | Product::BacktestingStarter => Tier::Pro,
            Product::ProPlus | Product::BacktestingPro => Tier::ProPlus,
        }
    }
}

impl BillingInterval {
    pub const ALL: [BillingInterval; 2] = [BillingInterval::Monthly, BillingInterval::Yearly];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            BillingInterval::Monthly => "monthly",
            BillingInterval::Yearly => "yearly",
        }
    }
}

impl Sku {
    pub const ALL: [Sku; 4] = [Sku::Topup500, Sku::Topup2000, Sku::Topup10000, Sku::MainReset];

    /// Its name on the API.
    pub fn name(self) -> &'static str {
        match self {
            Sku::Topup500 => "topup_500",
            Sku::Topup2000 => "topup_2000",
            Sku::Topup10000 => "topup_10000",
            Sku::MainReset => "topup_main_reset",
        }
    }

    /// Its price in US cents.
    pub fn cents(self) -> u64 {
        match self {
            Sku::Topup500 | Sku::MainReset => 299,
            Sku::Topup2000 => 499,
            Sku::Topup10000 => 999,
        }
    }

    /// The cash that it adds to a SANDBOX wallet; zero for what adds none.
    pub fn credit(self) -> Cash {
        Cash::from_dollars(match self {
            Sku::Topup500 => 500,
            Sku::Topup2000 => 2_000,
            Sku::Topup10000 => 10_000,
            Sku::MainReset => 0,
        })
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
    /// Newer terms have the larger one: time of the event, then end of the period, then how far the subscription is;
    /// the id decides between equal ones.
    fn age(&self) -> (Timestamp, Option<Timestamp>, SubscriptionStatus, &str) {
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

    /// Its present state: the terms, corrected by later payments.
    pub fn status(&self) -> SubscriptionStatus {
        let Some(terms) = &self.terms else { return SubscriptionStatus::Incomplete };
        match terms.status {
            settled @ (SubscriptionStatus::Incomplete | SubscriptionStatus::Canceled) => settled,
            _ if !self.unpaid.is_empty() => SubscriptionStatus::PastDue,
            SubscriptionStatus::Trialing => SubscriptionStatus::Trialing,
            SubscriptionStatus::Active | SubscriptionStatus::PastDue => SubscriptionStatus::Active,
        }
    }

    /// The plan that it gives, and until when; `None`: it gives none and never did.
    pub fn grant(&self) -> Option<Grant> {
        let terms = self.terms.as_ref()?;
        let expires_at = match self.status() {
            SubscriptionStatus::Incomplete => return None,
            SubscriptionStatus::Trialing | SubscriptionStatus::Active => None,
            SubscriptionStatus::PastDue => self.unpaid.first().map(|first| first.plus(PAST_DUE_KEPT_US)),
            SubscriptionStatus::Canceled => Some(terms.created),
        };
        Some(Grant { tier: terms.product.tier(), expires_at })
    }

    /// Whether the provider still asks for payments.
    pub fn is_live(&self) -> bool {
        matches!(self.status(), SubscriptionStatus::Trialing | SubscriptionStatus::Active | SubscriptionStatus::PastDue)
    }
}

/// Something that was bought once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Purchase {
    /// The provider's id of the payment.
    pub payment: Box<str>,
    pub sku: Sku,
    /// The credited wallet; `None`: nothing was credited, because there is no wallet for it or it is not a top-up.
    pub wallet: Option<WalletId>,
    pub credit: Cash,
    /// US cents that were returned so far.
    pub refunded: u64,
    /// What a full refund has taken back: cash that was free, a reset that was not used.
    pub taken: Cash,
    pub reset_taken: bool,
    pub at: Timestamp,
    /// When a refund took cash back.
    pub taken_at: Date,
}

row! { Purchase { payment, sku, wallet, credit, refunded, taken, reset_taken, at, taken_at } }

impl Purchase {
    /// Whether the whole price was returned.
    pub fn is_refunded(&self) -> bool {
        self.refunded >= self.sku.cents()
    }
}

/// A refund of a payment that is not known yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaitingRefund {
    pub payment: Box<str>,
    /// US cents.
    pub refunded: u64,
    pub at: Timestamp,
}

row! { WaitingRefund { payment, refunded, at } }

/// A processed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KnownEvent {
    /// When the provider made it.
    pub created: Timestamp,
    pub id: Box<str>,
}

row! { KnownEvent { created, id } }

/// Billing of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Billing {
    /// The provider's id of the user.
    pub customer: Option<Box<str>>,
    /// By id.
    subscriptions: Vec<Subscription>,
    /// By payment.
    purchases: Vec<Purchase>,
    /// Oldest first, then by payment.
    waiting: Vec<WaitingRefund>,
    /// By time, then id.
    events: Vec<KnownEvent>,
    /// Bought resets of the MAIN wallet that were used, and the newest times of it.
    resets_used: u32,
    resets: Vec<Timestamp>,
}

impl Bytes for Billing {
    fn put(&self, out: &mut Vec<u8>) {
        let Billing { customer, subscriptions, purchases, waiting, events, resets_used, resets } = self;
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
    pub fn subscriptions(&self) -> &[Subscription] {
        &self.subscriptions
    }

    pub fn purchases(&self) -> &[Purchase] {
        &self.purchases
    }

    /// Refunds whose payment is not known.
    pub fn waiting_refunds(&self) -> &[WaitingRefund] {
        &self.waiting
    }

    /// Whether an event was processed.
    pub fn knows(&self, event: &str) -> bool {
        self.events.iter().any(|known| *known.id == *event)
    }

    /// The purchase of a payment.
    pub fn purchase(&self, payment: &str) -> Option<&Purchase> {
        self.purchase_row(payment).ok().map(|row| &self.purchases[row])
    }

    /// US cents that were returned for a payment before it was known.
    pub fn refunded_before(&self, payment: &str) -> Option<u64> {
        self.waiting.iter().find(|refund| *refund.payment == *payment).map(|refund| refund.refunded)
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

    /// Bought resets of the MAIN wallet that can be used.
    pub fn main_resets_left(&self) -> u32 {
        let bought = self.purchases.iter().filter(|bought| bought.sku == Sku::MainReset && !bought.reset_taken);
        (bought.count() as u32).saturating_sub(self.resets_used)
    }

    fn purchase_row(&self, payment: &str) -> Result<usize, usize> {
        self.purchases.binary_search_by(|known| (*known.payment).cmp(payment))
    }

    /// The subscription with this id; a new one replaces the one with the oldest terms if there are too many.
    fn subscription_mut(&mut self, id: &str) -> &mut Subscription {
        let found = |known: &Subscription| (*known.id).cmp(id);
        if self.subscriptions.binary_search_by(found).is_err() && self.subscriptions.len() >= SUBSCRIPTIONS_KEPT {
            let age = |known: &Subscription| known.terms.as_ref().map(|terms| terms.created);
            let rows = 0..self.subscriptions.len();
            let oldest = rows.min_by_key(|row| age(&self.subscriptions[*row])).expect("there are some");
            self.subscriptions.remove(oldest);
        }
        let row = self.subscriptions.binary_search_by(found).unwrap_or_else(|row| {
            self.subscriptions.insert(row, Subscription::new(id));
            row
        });
        &mut self.subscriptions[row]
    }

    /// Merges the terms of a subscription.
    pub(crate) fn note_terms(&mut self, noted: &fact::SubscriptionNoted) {
        self.subscription_mut(&noted.subscription).note_terms(SubscriptionTerms {
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

    fn note_event(&mut self, event: &str, created: Timestamp, at: Timestamp) {
        let row = self.events.binary_search_by(|known| (known.created, &*known.id).cmp(&(created, event)));
        if let Err(row) = row {
            self.events.insert(row, KnownEvent { created, id: event.into() });
        }
        self.events.retain(|known| at.since(known.created) < EVENTS_KEPT_US);
        let surplus = self.events.len().saturating_sub(EVENTS_KEPT);
        self.events.drain(..surplus);
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

    /// No past time is later than `at`. Times of the provider stay.
    pub(super) fn set_back(&mut self, at: Timestamp) {
        for bought in &mut self.purchases {
            bought.at = bought.at.min(at);
            bought.taken_at = bought.taken_at.get().map(|taken_at| taken_at.min(at)).into();
        }
        self.waiting.iter_mut().for_each(|refund| refund.at = refund.at.min(at));
        self.waiting.sort_by(|one, other| (one.at, &one.payment).cmp(&(other.at, &other.payment)));
        self.resets.iter_mut().for_each(|reset_at| *reset_at = (*reset_at).min(at));
    }
}

impl User {
    /// Billing, if the user has ever used it.
    pub fn billing(&self) -> Option<&Billing> {
        self.billing.as_deref()
    }

    /// The plan of the user's subscription, and its end.
    pub fn plan(&self) -> Option<Grant> {
        self.billing()?.plan()
    }

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

    /// Whether a purchase, a refund or a bought reset has moved cash since a moment.
    pub(crate) fn billed_since(&self, moment: Timestamp) -> bool {
        self.billing().is_some_and(|billing| {
            billing.resets.last().is_some_and(|at| *at >= moment)
                || billing
                    .purchases
                    .iter()
                    .any(|bought| bought.at.max(bought.taken_at.get().unwrap_or_default()) >= moment)
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

    pub(super) fn note_customer(&mut self, noted: &fact::CustomerNoted) {
        self.billing_mut().customer = Some(noted.customer.as_str().into());
    }

    pub(super) fn note_billing_event(&mut self, noted: &fact::BillingEventNoted) {
        self.billing_mut().note_event(&noted.event, noted.created, noted.at);
    }

    pub(super) fn note_subscription(&mut self, noted: &fact::SubscriptionNoted) {
        self.billing_mut().note_terms(noted);
    }

    pub(super) fn note_subscription_paid(&mut self, noted: &fact::SubscriptionPaid) {
        self.billing_mut().subscription_mut(&noted.subscription).note_payment(noted.is_paid, noted.created);
    }

    pub(super) fn note_purchase(&mut self, noted: &fact::PurchaseNoted) {
        let fact::PurchaseNoted { payment, sku, wallet, credit, at } = noted;
        if let Some(wallet) = wallet {
            let credited = self.wallets.iter_mut().find(|known| known.id == *wallet);
            let credited = credited.expect("a top-up credits a wallet of its user");
            ledger::post(credited, &ledger::deposit(*credit));
            credited.set_deposits(credited.deposits() + *credit);
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

    pub(super) fn note_refund(&mut self, noted: &fact::RefundNoted) {
        let fact::RefundNoted { payment, refunded, taken, is_reset_taken, at } = noted;
        let billing = self.billing_mut();
        let Ok(row) = billing.purchase_row(payment) else { return billing.wait(payment, *refunded, *at) };
        billing.waiting.retain(|refund| *refund.payment != **payment);
        let purchase = &mut billing.purchases[row];
        purchase.refunded = purchase.refunded.max(*refunded);
        purchase.taken += *taken;
        purchase.reset_taken |= *is_reset_taken;
        assert!(purchase.taken <= purchase.credit, "a refund takes back what was credited: payment {payment}");
        let wallet = purchase.wallet;
        if *taken != Cash::ZERO {
            purchase.taken_at = Some(*at).into();
            let wallet = self.wallets.iter_mut().find(|known| Some(known.id) == wallet);
            let wallet = wallet.expect("a top-up that is taken back has credited a wallet");
            ledger::post(wallet, &ledger::withdrawal(*taken));
            wallet.set_deposits(wallet.deposits() - *taken);
        }
    }

    pub(super) fn note_bought_reset(&mut self, at: Timestamp) {
        let billing = self.billing_mut();
        billing.resets_used += 1;
        billing.resets.push(at);
        let surplus = billing.resets.len().saturating_sub(RESETS_KEPT);
        billing.resets.drain(..surplus);
    }

    fn billing_mut(&mut self) -> &mut Billing {
        self.billing.get_or_insert_default()
    }
}
