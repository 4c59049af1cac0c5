//! Events of the provider as events of the engine (gateway/docs/billing.md §4). The shapes are those that the provider
//! publishes; only the fields that an effect needs are read, in the older and the newer place of those that moved.

use edge::api::billing::provider::{NotGenuine, Notice, Reading, Unheeded};
use engine::command::{BillingEvent, BillingNews, SubscriptionNews};
use engine::id::{UserId, WalletId};
use engine::time::Timestamp;
use engine::user::billing::{BillingInterval, NAME_BYTES_MAX, Product, Sku, SubscriptionStatus};
use serde_json::Value;

/// The one currency of the price list.
const CURRENCY: &str = "usd";
/// Names of our metadata.
pub const USER: &str = "user_id";
pub const SKU: &str = "sku";
pub const WALLET: &str = "wallet_id";
/// The plan of a page.
pub const PLAN: &str = "plan";
/// The purchase of a refund, where it is known by another id than its payment.
pub const PURCHASE: &str = "purchase";

/// A price of a plan at the provider. Of several of one plan the first is sold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    pub id: String,
    pub product: Product,
    pub interval: BillingInterval,
}

/// Reads a body whose signature was checked.
///
/// # Errors
/// [`NotGenuine`] if it is not an event.
pub fn read(body: &[u8], prices: &[Price]) -> Result<Reading, NotGenuine> {
    let event: Value = serde_json::from_slice(body).map_err(|_| NotGenuine)?;
    let id = name(&event["id"]).ok_or(NotGenuine)?;
    let kind = event["type"].as_str().ok_or(NotGenuine)?;
    let created = moment(&event["created"]).ok_or(NotGenuine)?;
    let object = Object(&event["data"]["object"]);
    if !object.0.is_object() {
        return Err(NotGenuine);
    }
    let read = match kind {
        "checkout.session.completed" | "checkout.session.async_payment_succeeded" => session(object),
        "customer.subscription.created"
        | "customer.subscription.updated"
        | "customer.subscription.deleted"
        | "customer.subscription.paused"
        | "customer.subscription.resumed" => subscription(object, kind, prices),
        "invoice.paid" | "invoice.payment_succeeded" => invoice(object, true),
        "invoice.payment_failed" => invoice(object, false),
        "charge.refunded" => charge(object),
        // The last two are the same event, of newer and older versions.
        "refund.created" | "refund.updated" | "refund.failed" | "charge.refund.updated" => refund(object),
        _ => Err(Unheeded::Type),
    };
    Ok(match read {
        Err(why) => Reading::Nothing { why, event: id.to_owned(), kind: kind.to_owned() },
        Ok(Read { user, subject, news }) => {
            let customer = object.reference("customer").map(str::to_owned);
            let name = subject.or_else(|| customer.clone());
            let event = BillingEvent { id: id.to_owned(), created, customer, news };
            Reading::Notice(Box::new(Notice { user, name, kind: kind.to_owned(), event }))
        }
    })
}

/// The part of an event that depends on its type.
struct Read {
    user: Option<UserId>,
    /// The payment by which the user is found, if the object names no customer.
    subject: Option<String>,
    news: BillingNews,
}

#[derive(Clone, Copy)]
struct Object<'a>(&'a Value);

impl<'a> Object<'a> {
    /// An id, or that of an object in its place.
    fn reference(self, field: &str) -> Option<&'a str> {
        let value = &self.0[field];
        name(value).or_else(|| name(&value["id"]))
    }

    /// A text of our metadata.
    fn ours(self, field: &str) -> Option<&'a str> {
        self.0["metadata"][field].as_str()
    }

    /// The user that our metadata names.
    fn user(self) -> Option<UserId> {
        user(self.ours(USER)?)
    }

    fn is_of_the_currency(self) -> bool {
        self.0["currency"].as_str().is_some_and(|currency| currency.eq_ignore_ascii_case(CURRENCY))
    }

    /// The payment of a charge, refund or session: its intent, else the object that has none.
    fn payment(self, otherwise: &str) -> Option<&'a str> {
        self.reference("payment_intent").or_else(|| self.reference(otherwise))
    }
}

fn session(object: Object<'_>) -> Result<Read, Unheeded> {
    let named = object.ours(USER).or_else(|| object.0["client_reference_id"].as_str());
    let user = named.map(|text| user(text).ok_or(Unheeded::Fields)).transpose()?;
    let nothing = Read { user, subject: None, news: BillingNews::Nothing };
    match object.0["mode"].as_str() {
        Some("subscription") => return Ok(nothing),
        Some("payment") => {}
        _ => return Err(Unheeded::Type),
    }
    // Of a slow payment a later event says that it is paid.
    if object.0["payment_status"].as_str() != Some("paid") {
        return Err(Unheeded::Type);
    }
    let named = object.ours(SKU).ok_or(Unheeded::Price)?;
    let sku = Sku::ALL.into_iter().find(|sku| sku.name() == named).ok_or(Unheeded::Price)?;
    if object.0["amount_total"].as_u64() != Some(sku.cents()) || !object.is_of_the_currency() {
        return Err(Unheeded::Amount);
    }
    let wallet = match object.ours(WALLET) {
        None | Some("") => None,
        Some(text) => Some(WalletId(number(text).ok_or(Unheeded::Fields)?)),
    };
    let payment = object.payment("id").ok_or(Unheeded::Fields)?.to_owned();
    Ok(Read { news: BillingNews::Purchase { payment, sku, wallet }, ..nothing })
}

fn subscription(object: Object<'_>, kind: &str, prices: &[Price]) -> Result<Read, Unheeded> {
    let id = name(&object.0["id"]).ok_or(Unheeded::Fields)?;
    let items = object.0["items"]["data"].as_array().ok_or(Unheeded::Fields)?;
    let priced = items.iter().find_map(|item| price_of(item, prices).map(|price| (item, price)));
    let status = match (kind, object.0["status"].as_str()) {
        ("customer.subscription.deleted", _) | (_, Some("canceled" | "paused")) => SubscriptionStatus::Canceled,
        (_, Some("trialing")) => SubscriptionStatus::Trialing,
        (_, Some("active")) => SubscriptionStatus::Active,
        (_, Some("past_due" | "unpaid")) => SubscriptionStatus::PastDue,
        (_, Some("incomplete" | "incomplete_expired")) => SubscriptionStatus::Incomplete,
        _ => return Err(Unheeded::Fields),
    };
    let item = priced.map(|(item, _)| item).or(items.first()).unwrap_or(&Value::Null);
    let price = price_id(item).filter(|_| priced.is_none()).map(str::to_owned);
    // A plan needs a price, at least one that may become known; its end counts without one.
    if priced.is_none() && price.is_none() && status.is_paid() {
        return Err(Unheeded::Price);
    }
    let period_end = moment(&object.0["current_period_end"]).or_else(|| moment(&item["current_period_end"]));
    let news = BillingNews::Subscription(SubscriptionNews {
        subscription: id.to_owned(),
        product: priced.map(|(_, price)| (price.product, price.interval)),
        price,
        status,
        period_end,
        // Newer versions state the moment instead.
        cancel_at_period_end: object.0["cancel_at_period_end"].as_bool() == Some(true)
            || (period_end.is_some() && moment(&object.0["cancel_at"]) == period_end),
        trial_ends_at: moment(&object.0["trial_end"]),
    });
    Ok(Read { user: object.user(), subject: None, news })
}

/// The payment of a checkout session.
pub(crate) fn payment_of(session: &Value) -> Option<&str> {
    Object(session).reference("payment_intent")
}

/// The price of an item of a subscription, if a plan has it.
pub(crate) fn price_of<'a>(item: &Value, prices: &'a [Price]) -> Option<&'a Price> {
    let id = price_id(item)?;
    prices.iter().find(|price| price.id == id)
}

fn price_id(item: &Value) -> Option<&str> {
    name(&item["price"]["id"]).or_else(|| name(&item["plan"]["id"]))
}

fn invoice(object: Object<'_>, is_paid: bool) -> Result<Read, Unheeded> {
    let details = Object(&object.0["parent"]["subscription_details"]);
    let subscription = object.reference("subscription").or_else(|| details.reference("subscription"));
    // An invoice of something else.
    let subscription = subscription.ok_or(Unheeded::Type)?.to_owned();
    let user = Object(&object.0["subscription_details"]).user().or_else(|| details.user());
    Ok(Read { user, subject: None, news: BillingNews::Payment { subscription, is_paid } })
}

/// A charge with all that was returned of it. One of an invoice pays a subscription, which ends by itself.
fn charge(object: Object<'_>) -> Result<Read, Unheeded> {
    if object.reference("invoice").is_some() {
        return Err(Unheeded::Type);
    }
    let refunded = object.0["amount_refunded"].as_u64().ok_or(Unheeded::Fields)?;
    let is_within = object.0["amount"].as_u64().is_some_and(|amount| refunded <= amount);
    if !is_within || !object.is_of_the_currency() {
        return Err(Unheeded::Amount);
    }
    let payment = object.payment("id").ok_or(Unheeded::Fields)?.to_owned();
    Ok(Read { user: object.user(), subject: None, news: BillingNews::Refund { payment, refunded } })
}

/// One refund of a payment. It names no customer. Of one that succeeded, all that was returned is at least this; of one
/// that failed, or was cancelled before it was paid out, this was not returned.
fn refund(object: Object<'_>) -> Result<Read, Unheeded> {
    let failed = match object.0["status"].as_str() {
        Some("succeeded") => None,
        Some("failed" | "canceled") => Some(name(&object.0["id"]).ok_or(Unheeded::Fields)?.to_owned()),
        _ => return Err(Unheeded::Type),
    };
    let cents = object.0["amount"].as_u64().ok_or(Unheeded::Fields)?;
    if !object.is_of_the_currency() {
        return Err(Unheeded::Amount);
    }
    let purchase = name(&object.0["metadata"][PURCHASE]).or_else(|| object.payment("charge"));
    let payment = purchase.ok_or(Unheeded::Fields)?.to_owned();
    let subject = Some(payment.clone());
    let news = match failed {
        None => BillingNews::Refund { payment, refunded: cents },
        Some(refund) => BillingNews::RefundFailed { payment, refund, cents },
    };
    Ok(Read { user: object.user(), subject, news })
}

/// A text that can be an id.
pub(crate) fn name(value: &Value) -> Option<&str> {
    let text = value.as_str()?;
    (!text.is_empty() && text.len() <= NAME_BYTES_MAX && text.bytes().all(|b| b.is_ascii_graphic())).then_some(text)
}

/// Unix seconds after the beginning of 1970.
fn moment(value: &Value) -> Option<Timestamp> {
    value.as_u64().filter(|secs| (1..1 << 40).contains(secs)).map(Timestamp::from_secs)
}

fn user(text: &str) -> Option<UserId> {
    number(text).filter(|id| *id > 0).map(UserId)
}

fn number(text: &str) -> Option<u64> {
    let is_plain = !text.is_empty() && text.len() <= 19 && text.bytes().all(|byte| byte.is_ascii_digit());
    is_plain.then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests;
