//! The provider `stub`, for development: a page is a link to this server that applies its purchase immediately
//! (gateway/docs/billing.md §7). A link is signed with the server's secret, works for half an hour, and once: its event
//! is remembered like every other one.

use crate::hex::random;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use edge::api::billing::provider::{Calling, Checkout, Failed, NotGenuine, Notice, Portal, Provider, Reading, Wanted};
use engine::command::{BillingEvent, BillingNews, SubscriptionNews};
use engine::id::{UserId, WalletId};
use engine::time::{DAY, Timestamp};
use engine::user::billing::{BillingInterval, Product, Sku, SubscriptionStatus};
use hmac::{Hmac, KeyInit as _, Mac as _};
use host::secret::Secret;
use serde_json::{Value, json};
use sha2::Sha256;
use std::future::ready;

/// How long a link works, seconds.
pub const LINK_SECS: u64 = 1_800;
/// Bytes of the signature of a link.
const SIGNATURE_BYTES: usize = 32;
/// Longest token that is read.
const TOKEN_BYTES_MAX: usize = 2_048;
/// The type of its events.
const KIND: &str = "stub.confirmed";

/// Whether an object is of this provider, by its id.
pub(crate) fn is_of_it(id: &str) -> bool {
    ["cus_stub_", "sub_stub_", "pi_stub_"].iter().any(|start| id.starts_with(start))
}

/// The provider.
pub struct Stub {
    secret: Secret,
}

impl Stub {
    /// `secret`: the server's own.
    pub fn new(secret: Secret) -> Stub {
        Stub { secret }
    }

    fn mac(&self, payload: &[u8]) -> Hmac<Sha256> {
        let secret = self.secret.expose().as_bytes();
        let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("HMAC takes keys of any length");
        mac.update(b"billing-stub:");
        mac.update(payload);
        mac
    }

    /// A link for an event: who, for which customer, until when, and what.
    fn link(&self, base: &str, user: UserId, customer: &str, now: Timestamp, what: &Value) -> Result<String, Failed> {
        let event = format!("evt_stub_{}", random().ok_or(Failed::Away)?);
        let ends = now.secs() + LINK_SECS;
        let payload = json!({"user": user.0, "customer": customer, "event": event, "ends": ends, "what": what});
        let mut token = payload.to_string().into_bytes();
        let signature = self.mac(&token).finalize().into_bytes();
        token.extend_from_slice(&signature);
        Ok(format!("{base}/v1/billing/confirm/{}", URL_SAFE_NO_PAD.encode(token)))
    }

    /// The payload of a token that this server signed.
    fn opened(&self, token: &str) -> Option<Value> {
        let bytes = URL_SAFE_NO_PAD.decode(Some(token).filter(|token| token.len() <= TOKEN_BYTES_MAX)?).ok()?;
        let (payload, signature) = bytes.split_at_checked(bytes.len().checked_sub(SIGNATURE_BYTES)?)?;
        self.mac(payload).verify_slice(signature).ok()?;
        serde_json::from_slice(payload).ok()
    }
}

impl Provider for Stub {
    fn signature_header(&self) -> &'static str {
        "stub-signature"
    }

    fn sells(&self, _: Product, _: BillingInterval) -> bool {
        true
    }

    fn knows(&self, _: &str) -> bool {
        true
    }

    fn customer<'a>(
        &'a self,
        user: UserId,
        _: Option<&'a str>,
        _: Option<&'a str>,
        _: Timestamp,
    ) -> Calling<'a, String> {
        Box::pin(ready(Ok(format!("cus_stub_{user}"))))
    }

    fn checkout(&self, checkout: Checkout) -> Calling<'_, String> {
        let Checkout { user, customer, base, wanted, now } = checkout;
        let what = match wanted {
            Wanted::Plan { product, interval, instead_of } => {
                let kind = if product.is_simulation() { "simulation" } else { "plan" };
                // One of each kind for a user: two links that are opened change the same one.
                let subscription = instead_of.unwrap_or_else(|| format!("sub_stub_{kind}_{user}"));
                plan(&subscription, product, interval, SubscriptionStatus::Active)
            }
            Wanted::Purchase { sku, wallet } => {
                let Some(digits) = random() else { return Box::pin(ready(Err(Failed::Away))) };
                json!({"sku": sku.name(), "wallet": wallet.map(|wallet| wallet.0), "payment": format!("pi_stub_{digits}")})
            }
        };
        Box::pin(ready(self.link(&base, user, &customer, now, &what)))
    }

    /// A link that ends the living subscription; without one it changes nothing.
    fn portal<'a>(&'a self, portal: Portal<'a>) -> Calling<'a, String> {
        let Portal { user, customer, base, subscription, now } = portal;
        let known = subscription.and_then(|known| Some((known, known.terms.as_ref()?)));
        let what = match known {
            Some((known, terms)) => plan(&known.id, terms.product, terms.interval, SubscriptionStatus::Canceled),
            None => json!({}),
        };
        Box::pin(ready(self.link(&base, user, customer, now, &what)))
    }

    fn payment_of<'a>(&'a self, _: &'a str) -> Calling<'a, Option<String>> {
        Box::pin(ready(Ok(None)))
    }

    /// Nothing was paid.
    fn refund<'a>(&'a self, _: &'a str, _: usize, _: Timestamp) -> Calling<'a, Option<String>> {
        Box::pin(ready(Ok(None)))
    }

    /// It sends no events.
    fn read(&self, _: &[u8], _: Option<&[u8]>, _: Timestamp) -> Result<Reading, NotGenuine> {
        Err(NotGenuine)
    }

    fn confirm(&self, token: &str, now: Timestamp) -> Result<Notice, NotGenuine> {
        let payload = self.opened(token).ok_or(NotGenuine)?;
        if payload["ends"].as_u64().is_none_or(|ends| ends <= now.secs()) {
            return Err(NotGenuine);
        }
        notice(&payload, now).ok_or(NotGenuine)
    }
}

/// What a link for a plan does.
fn plan(subscription: &str, product: Product, interval: BillingInterval, status: SubscriptionStatus) -> Value {
    let is_canceled = status == SubscriptionStatus::Canceled;
    json!({
        "subscription": subscription, "product": product.name(), "interval": interval.name(), "is_canceled": is_canceled,
    })
}

/// The event of a payload, which this server made.
fn notice(payload: &Value, now: Timestamp) -> Option<Notice> {
    let what = &payload["what"];
    let news = if let Some(subscription) = what["subscription"].as_str() {
        let product = Product::ALL.into_iter().find(|product| what["product"] == product.name())?;
        let interval = BillingInterval::ALL.into_iter().find(|interval| what["interval"] == interval.name())?;
        let days = match interval {
            BillingInterval::Monthly => 30,
            BillingInterval::Yearly => 365,
        };
        let is_canceled = what["is_canceled"].as_bool()?;
        BillingNews::Subscription(SubscriptionNews {
            subscription: subscription.to_owned(),
            product: Some((product, interval)),
            price: None,
            status: if is_canceled { SubscriptionStatus::Canceled } else { SubscriptionStatus::Active },
            period_end: Some(now.plus(days * DAY)),
            cancel_at_period_end: false,
            trial_ends_at: None,
        })
    } else if let Some(name) = what["sku"].as_str() {
        BillingNews::Purchase {
            payment: what["payment"].as_str()?.to_owned(),
            sku: Sku::ALL.into_iter().find(|sku| sku.name() == name)?,
            wallet: what["wallet"].as_u64().map(WalletId),
        }
    } else {
        BillingNews::Nothing
    };
    let customer = payload["customer"].as_str()?.to_owned();
    let id = payload["event"].as_str()?.to_owned();
    let event = BillingEvent { id, created: now, customer: Some(customer.clone()), news };
    Some(Notice { user: payload["user"].as_u64().map(UserId), name: Some(customer), kind: KIND.to_owned(), event })
}

#[cfg(test)]
mod tests;
