//! Events of the payment provider as commands (gateway/docs/billing.md §4).

use crate::id::WalletId;
use crate::time::Timestamp;
use crate::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};

/// An event of the payment provider about a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BillingEvent {
    pub id: String,
    /// When the provider made it.
    pub created: Timestamp,
    /// Its customer, which must be that of the user; `None`: it names none.
    pub customer: Option<String>,
    pub news: BillingNews,
}

/// What an event says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BillingNews {
    /// Nothing but the customer.
    Nothing,
    Subscription(SubscriptionNews),
    /// A subscription was paid, or a payment of it failed.
    Payment {
        subscription: String,
        is_paid: bool,
    },
    /// A purchase was paid at its listed price. `wallet`: the one that a top-up is for.
    Purchase {
        payment: String,
        sku: Sku,
        wallet: Option<WalletId>,
    },
    /// US cents of a payment that were returned: all so far, or those of one refund.
    Refund {
        payment: String,
        refunded: u64,
    },
    /// A refund failed after it was stated: these US cents were not returned.
    RefundFailed {
        payment: String,
        refund: String,
        cents: u64,
    },
}

impl BillingNews {
    /// The id of the subscription or payment.
    pub(crate) fn subject(&self) -> &str {
        match self {
            BillingNews::Nothing => "",
            BillingNews::Subscription(news) => &news.subscription,
            BillingNews::Payment { subscription, .. } => subscription,
            BillingNews::Purchase { payment, .. }
            | BillingNews::Refund { payment, .. }
            | BillingNews::RefundFailed { payment, .. } => payment,
        }
    }

    /// Another id that is stored: of a price or refund.
    pub(crate) fn object(&self) -> &str {
        match self {
            BillingNews::Subscription(news) => news.price.as_deref().unwrap_or_default(),
            BillingNews::RefundFailed { refund, .. } => refund,
            _ => "",
        }
    }
}

/// The state of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionNews {
    pub subscription: String,
    /// `None`: its price is unknown here. Then it may say what became of a known subscription, whose product stays.
    pub product: Option<(Product, BillingInterval)>,
    /// The price that is unknown, by the provider's id; `None` with a product, and if the event names none.
    pub price: Option<String>,
    pub status: SubscriptionStatus,
    pub period_end: Option<Timestamp>,
    pub cancel_at_period_end: bool,
    pub trial_ends_at: Option<Timestamp>,
}

/// What became of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BillingOutcome {
    Applied,
    /// It, or its payment, is known: nothing changed.
    Repeated,
    /// Its customer is not that of the user: nothing changed.
    OtherCustomer,
    /// The purchase, or the refund that failed, is noted, but the wallet and those that replaced it are archived, or it
    /// is full.
    NotCredited,
    /// It is kept until its price is known, and gives nothing.
    UnknownPrice,
    /// Applied: the user now pays for a second subscription of the same kind.
    SecondSubscription,
}
