//! The payment provider as the routes see it: a port. Calls run on a thread of their own; what the provider says comes
//! back as an event of the engine.

use engine::command::BillingEvent;
use engine::id::{UserId, WalletId};
use engine::time::Timestamp;
use engine::user::billing::{BillingInterval, Product, Sku, Subscription};
use std::collections::BTreeSet;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A call to the provider. Its future stays on the thread that began it.
pub type Calling<'a, T> = Pin<Box<dyn Future<Output = Result<T, Failed>> + 'a>>;

/// Why a call has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failed {
    /// The provider does not answer in time, or refuses.
    Away,
    /// As many calls as allowed are in flight.
    Busy,
    /// The provider does not have the customer any more.
    NoCustomer,
}

/// The page of the provider on which a user pays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkout {
    pub user: UserId,
    pub customer: String,
    /// How clients reach this server, without a slash at its end.
    pub base: String,
    pub wanted: Wanted,
    pub now: Timestamp,
}

/// What is paid for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// `instead_of`: the living subscription that it replaces.
    Plan {
        product: Product,
        interval: BillingInterval,
        instead_of: Option<String>,
    },
    Purchase {
        sku: Sku,
        wallet: Option<WalletId>,
    },
}

impl Wanted {
    /// The same for a customer without subscriptions.
    pub(super) fn of_a_new_customer(self) -> Wanted {
        match self {
            Wanted::Plan { product, interval, .. } => Wanted::Plan { product, interval, instead_of: None },
            purchase @ Wanted::Purchase { .. } => purchase,
        }
    }
}

/// The page of the provider on which a user changes and ends subscriptions.
#[derive(Clone, Debug)]
pub struct Portal<'a> {
    pub user: UserId,
    pub customer: &'a str,
    /// As in [`Checkout`].
    pub base: String,
    /// The living subscription that the user sees.
    pub subscription: Option<&'a Subscription>,
    pub now: Timestamp,
}

/// An event with the user that it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The user that it names itself.
    pub user: Option<UserId>,
    /// Its customer or payment, of which the user is known.
    pub name: Option<String>,
    /// Its type at the provider, for the log.
    pub kind: String,
    pub event: BillingEvent,
}

/// What an event of the provider comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reading {
    Notice(Box<Notice>),
    /// It is genuine and changes nothing. With its id and type, for the log.
    Nothing {
        why: Unheeded,
        event: String,
        kind: String,
    },
}

/// Why a genuine event changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unheeded {
    /// Events of its type have no effect, or it is not paid yet.
    Type,
    /// Amount or currency are not those of the price list.
    Amount,
    /// Its product is unknown, or it names no price.
    Price,
    /// A field that its effect needs is missing or has another type.
    Fields,
}

/// The signature is wrong or too old, or the body is not an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotGenuine;

/// A payment provider.
pub trait Provider: Send + Sync {
    /// The header with the signature of an event, in lower case.
    fn signature_header(&self) -> &'static str;

    /// Whether a plan has a price.
    fn sells(&self, product: Product, interval: BillingInterval) -> bool;

    /// Whether an id can be one of this provider; one of a provider that the server had before is not.
    fn knows(&self, id: &str) -> bool;

    /// A new customer; its id. Another attempt for the same user soon after `now` makes no second one. `instead_of`: the
    /// one that it replaces.
    fn customer<'a>(
        &'a self,
        user: UserId,
        email: Option<&'a str>,
        instead_of: Option<&'a str>,
        now: Timestamp,
    ) -> Calling<'a, String>;

    /// The address of a page for this. A page for a plan ends the open ones of the user for plans of the same kind.
    fn checkout(&self, checkout: Checkout) -> Calling<'_, String>;

    /// The address of a page for this.
    fn portal<'a>(&'a self, portal: Portal<'a>) -> Calling<'a, String>;

    /// The payment of a page for a purchase; `None`: this is not a page, or it has no payment.
    fn payment_of<'a>(&'a self, page: &'a str) -> Calling<'a, Option<String>>;

    /// Returns a whole payment; the id of the refund, `None` if this provider cannot return it. Another attempt soon
    /// after `now` has the same answer, unless more refunds have `failed` meanwhile. What it takes back comes with an
    /// event.
    fn refund<'a>(&'a self, payment: &'a str, failed: usize, now: Timestamp) -> Calling<'a, Option<String>>;

    /// Reads the event in a body.
    ///
    /// # Errors
    /// [`NotGenuine`].
    fn read(&self, body: &[u8], signature: Option<&[u8]>, wall_now: Timestamp) -> Result<Reading, NotGenuine>;

    /// The event of a link that this server made itself.
    ///
    /// # Errors
    /// [`NotGenuine`]; always, for a provider that pays for real.
    fn confirm(&self, token: &str, now: Timestamp) -> Result<Notice, NotGenuine>;
}

/// What became of an event, for the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    Applied,
    Repeated,
    Ignored,
    WrongAmount,
    UnknownPrice,
    WrongFields,
    UnknownUser,
    OtherCustomer,
    NotCredited,
    SecondSubscription,
    NotGenuine,
    Unavailable,
}

impl Counted {
    pub const ALL: [Counted; 12] = [
        Counted::Applied,
        Counted::Repeated,
        Counted::Ignored,
        Counted::WrongAmount,
        Counted::UnknownPrice,
        Counted::WrongFields,
        Counted::UnknownUser,
        Counted::OtherCustomer,
        Counted::NotCredited,
        Counted::SecondSubscription,
        Counted::NotGenuine,
        Counted::Unavailable,
    ];

    /// Its label.
    pub fn name(self) -> &'static str {
        match self {
            Counted::Applied => "applied",
            Counted::Repeated => "repeated",
            Counted::Ignored => "ignored",
            Counted::WrongAmount => "wrong_amount",
            Counted::UnknownPrice => "unknown_price",
            Counted::WrongFields => "wrong_fields",
            Counted::UnknownUser => "unknown_user",
            Counted::OtherCustomer => "other_customer",
            Counted::NotCredited => "not_credited",
            Counted::SecondSubscription => "second_subscription",
            Counted::NotGenuine => "not_genuine",
            Counted::Unavailable => "unavailable",
        }
    }
}

impl From<Unheeded> for Counted {
    fn from(why: Unheeded) -> Counted {
        match why {
            Unheeded::Type => Counted::Ignored,
            Unheeded::Amount => Counted::WrongAmount,
            Unheeded::Price => Counted::UnknownPrice,
            Unheeded::Fields => Counted::WrongFields,
        }
    }
}

/// The provider of this server, with the counts of its events.
pub struct Desk {
    pub provider: Box<dyn Provider>,
    counts: [AtomicU64; Counted::ALL.len()],
    /// Users for whom a page is being made.
    served: Mutex<BTreeSet<UserId>>,
}

/// The one page that is made for a user at a time.
pub(super) struct Turn<'a> {
    desk: &'a Desk,
    user: UserId,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.desk.served().remove(&self.user);
    }
}

impl Desk {
    pub fn new(provider: Box<dyn Provider>) -> Desk {
        Desk { provider, counts: Default::default(), served: Mutex::default() }
    }

    fn served(&self) -> MutexGuard<'_, BTreeSet<UserId>> {
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The turn of a user; `None` while another request of the user has it.
    pub(super) fn turn(&self, user: UserId) -> Option<Turn<'_>> {
        let is_free = self.served().insert(user);
        // Made only if it is free: its end gives the turn back.
        is_free.then(|| Turn { desk: self, user })
    }

    pub(super) fn count(&self, what: Counted) {
        self.counts[what as usize].fetch_add(1, Relaxed);
    }

    /// The counts by label.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        Counted::ALL.iter().map(|what| (what.name(), self.counts[*what as usize].load(Relaxed)))
    }
}
