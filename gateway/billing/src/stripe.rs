//! The provider `stripe`: form-encoded calls, JSON answers (gateway/docs/billing.md §7).

use crate::calls::{Calls, Request};
use crate::event::Price;
use crate::hex::{KEY_BYTES, hex, random};
use crate::{event, signature, stub};
use edge::api::billing::provider::{Calling, Checkout, Failed, NotGenuine, Notice, Portal, Provider, Reading, Wanted};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::billing::{BillingInterval, Product};
use form_urlencoded::Serializer;
use hmac::{Hmac, KeyInit as _, Mac as _};
use host::secret::Secret;
use reqwest::Method;
use serde_json::Value;
use sha2::Sha256;
use std::future::ready;
use std::io;

/// Longest address of a page.
const URL_BYTES_MAX: usize = 8_192;
/// Open pages of a customer that are read.
const PAGES_MAX: &str = "100";
/// How long attempts of one call have the same idempotency key, seconds. The provider keeps an error with the key as
/// well, so a key that lasts would make it final.
const ATTEMPTS_SECS: u64 = 3_600;

/// Settings of the provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Without a slash at its end.
    pub base_url: String,
    pub secret_key: Secret,
    /// The server's own, of which the idempotency keys of calls that may be repeated are made.
    pub server_secret: Secret,
    /// All verify.
    pub webhook_secrets: Vec<Secret>,
    pub prices: Vec<Price>,
    /// Where a user goes after a page: paid, left, or from the portal.
    pub success_url: String,
    pub cancel_url: String,
    pub return_url: String,
    /// Calls in flight at most.
    pub calls_max: usize,
}

/// The provider.
pub struct Stripe {
    settings: Settings,
    calls: Calls,
}

impl Stripe {
    /// # Errors
    /// The system's, if the thread of the calls cannot be made.
    pub fn start(settings: Settings) -> io::Result<Stripe> {
        let calls = Calls::start(settings.calls_max, settings.base_url.starts_with("http://"))?;
        Ok(Stripe { settings, calls })
    }

    /// A call that makes a new object each time.
    async fn post(&self, what: &'static str, path: &str, fields: &[(&str, String)]) -> Result<Value, Failed> {
        let idempotency_key = Some(random().ok_or(Failed::Away)?);
        self.call(Method::POST, what, path, form(fields), idempotency_key).await
    }

    /// A call of which another attempt has the same answer and no second effect: of concurrent ones, and of one whose
    /// answer was lost. `attempts`: earlier ones that had an effect which was undone.
    async fn post_once(
        &self,
        what: &'static str,
        path: &str,
        fields: &[(&str, String)],
        attempts: usize,
        now: Timestamp,
    ) -> Result<Value, Failed> {
        let form = form(fields);
        let idempotency_key = Some(attempts_key(&self.settings.server_secret, path, &form, attempts, now));
        self.call(Method::POST, what, path, form, idempotency_key).await
    }

    async fn call(
        &self,
        method: Method,
        what: &'static str,
        path: &str,
        form: String,
        idempotency_key: Option<String>,
    ) -> Result<Value, Failed> {
        let url = format!("{}{path}", self.settings.base_url);
        let secret = self.settings.secret_key.clone();
        self.calls.send(Request { method, url, secret, form, idempotency_key, what }).await
    }

    async fn get(&self, what: &'static str, path: &str) -> Result<Value, Failed> {
        self.call(Method::GET, what, path, String::new(), None).await
    }

    /// Ends the open pages on which a user could pay for another plan of this kind, so that two pages do not sell two
    /// subscriptions. A page that is paid at this moment cannot be ended, which fails.
    async fn end_pages(&self, user: &str, customer: &str, product: Product) -> Result<(), Failed> {
        let fields =
            [("customer", customer.to_owned()), ("status", "open".to_owned()), ("limit", PAGES_MAX.to_owned())];
        let open = self.get("open pages", &format!("/v1/checkout/sessions?{}", form(&fields))).await?;
        for session in open["data"].as_array().map_or(&[][..], Vec::as_slice) {
            if sells_instead(session, user, product) {
                let path = format!("/v1/checkout/sessions/{}/expire", path_id(&text(session, "id")?)?);
                self.post("end of a page", &path, &[]).await?;
            }
        }
        Ok(())
    }

    /// The page that changes a living subscription to another plan.
    async fn change(&self, customer: String, subscription: &str, price: String) -> Result<String, Failed> {
        let known = self.get("subscription", &format!("/v1/subscriptions/{}", path_id(subscription)?)).await?;
        let items = known["items"]["data"].as_array().map_or(&[][..], Vec::as_slice);
        let item = changed(items, &self.settings.prices).ok_or_else(|| {
            tracing::warn!(subscription, items = items.len(), "no item of a subscription has a price of the settings");
            Failed::Away
        })?;
        let item = id(item)?;
        let confirm = |field: &str| format!("flow_data[subscription_update_confirm]{field}");
        let fields = [
            ("customer", customer),
            ("return_url", self.settings.return_url.clone()),
            ("flow_data[type]", "subscription_update_confirm".to_owned()),
            (&confirm("[subscription]"), subscription.to_owned()),
            (&confirm("[items][0][id]"), item),
            (&confirm("[items][0][price]"), price),
            (&confirm("[items][0][quantity]"), "1".to_owned()),
        ];
        page(&self.post("portal session", "/v1/billing_portal/sessions", &fields).await?)
    }

    fn price(&self, product: Product, interval: BillingInterval) -> Option<&Price> {
        self.settings.prices.iter().find(|price| (price.product, price.interval) == (product, interval))
    }
}

impl Provider for Stripe {
    fn signature_header(&self) -> &'static str {
        "stripe-signature"
    }

    fn sells(&self, product: Product, interval: BillingInterval) -> bool {
        self.price(product, interval).is_some()
    }

    fn knows(&self, id: &str) -> bool {
        !stub::is_of_it(id)
    }

    fn customer<'a>(
        &'a self,
        user: UserId,
        email: Option<&'a str>,
        instead_of: Option<&'a str>,
        now: Timestamp,
    ) -> Calling<'a, String> {
        Box::pin(async move {
            let mut fields = vec![("metadata[user_id]", user.to_string())];
            fields.extend(email.map(|email| ("email", email.to_owned())));
            // The idempotency key contains it: else the provider would answer with the deleted customer.
            fields.extend(instead_of.map(|customer| ("metadata[replaces]", customer.to_owned())));
            id(&self.post_once("customer", "/v1/customers", &fields, 0, now).await?)
        })
    }

    fn checkout(&self, checkout: Checkout) -> Calling<'_, String> {
        Box::pin(async move {
            let Checkout { user, customer, base: _, wanted, now: _ } = checkout;
            let user = user.to_string();
            let mut fields = vec![
                ("client_reference_id", user.clone()),
                ("metadata[user_id]", user.clone()),
                ("success_url", self.settings.success_url.clone()),
                ("cancel_url", self.settings.cancel_url.clone()),
                ("line_items[0][quantity]", "1".to_owned()),
            ];
            match wanted {
                Wanted::Plan { product, interval, instead_of } => {
                    let price = self.price(product, interval).ok_or(Failed::Away)?.id.clone();
                    if let Some(subscription) = instead_of {
                        return self.change(customer, &subscription, price).await;
                    }
                    self.end_pages(&user, &customer, product).await?;
                    fields.push(("mode", "subscription".to_owned()));
                    fields.push(("line_items[0][price]", price));
                    fields.push(("metadata[plan]", product.name().to_owned()));
                    fields.push(("subscription_data[metadata][user_id]", user));
                }
                Wanted::Purchase { sku, wallet } => {
                    let (name, wallet) = (sku.name().to_owned(), wallet.map(|wallet| wallet.to_string()));
                    fields.push(("mode", "payment".to_owned()));
                    fields.push(("line_items[0][price_data][currency]", "usd".to_owned()));
                    fields.push(("line_items[0][price_data][unit_amount]", sku.cents().to_string()));
                    fields.push(("line_items[0][price_data][product_data][name]", name.clone()));
                    fields.push(("metadata[sku]", name));
                    fields.extend(wallet.map(|wallet| ("metadata[wallet_id]", wallet)));
                    fields.push(("payment_intent_data[metadata][user_id]", user));
                }
            }
            fields.push(("customer", customer));
            page(&self.post("checkout session", "/v1/checkout/sessions", &fields).await?)
        })
    }

    fn portal<'a>(&'a self, portal: Portal<'a>) -> Calling<'a, String> {
        Box::pin(async move {
            let fields = [("customer", portal.customer.to_owned()), ("return_url", self.settings.return_url.clone())];
            page(&self.post("portal session", "/v1/billing_portal/sessions", &fields).await?)
        })
    }

    fn payment_of<'a>(&'a self, page: &'a str) -> Calling<'a, Option<String>> {
        Box::pin(async move {
            if !page.starts_with("cs_") {
                return Ok(None);
            }
            let session = self.get("checkout session", &format!("/v1/checkout/sessions/{}", path_id(page)?)).await?;
            Ok(event::payment_of(&session).map(str::to_owned))
        })
    }

    fn refund<'a>(&'a self, payment: &'a str, failed: usize, now: Timestamp) -> Calling<'a, Option<String>> {
        if !self.knows(payment) {
            return Box::pin(ready(Ok(None)));
        }
        Box::pin(async move {
            let mut fields = Vec::new();
            if payment.starts_with("ch_") {
                fields.push(("charge", payment.to_owned()));
            } else if payment.starts_with("cs_") {
                let Some(intent) = self.payment_of(payment).await? else { return Ok(None) };
                fields.push(("payment_intent", intent));
                // Its events name the payment only, and the purchase is known by its page.
                fields.push(("metadata[purchase]", payment.to_owned()));
            } else {
                fields.push(("payment_intent", payment.to_owned()));
            }
            id(&self.post_once("refund", "/v1/refunds", &fields, failed, now).await?).map(Some)
        })
    }

    fn read(&self, body: &[u8], header: Option<&[u8]>, wall_now: Timestamp) -> Result<Reading, NotGenuine> {
        let header = header.ok_or(NotGenuine)?;
        if !signature::is_genuine(header, body, &self.settings.webhook_secrets, wall_now.secs()) {
            return Err(NotGenuine);
        }
        event::read(body, &self.settings.prices)
    }

    fn confirm(&self, _: &str, _: Timestamp) -> Result<Notice, NotGenuine> {
        Err(NotGenuine)
    }
}

/// The item of a subscription that a change of its plan is about: the one with a price of ours, or the only one.
fn changed<'a>(items: &'a [Value], prices: &[Price]) -> Option<&'a Value> {
    let is_ours = |item: &&Value| event::price_of(item, prices).is_some();
    items.iter().find(is_ours).or(items.first().filter(|_| items.len() == 1))
}

/// Whether an open page sells this user a plan of the same kind. One of an earlier build does not name its plan.
fn sells_instead(session: &Value, user: &str, product: Product) -> bool {
    let plan = session["metadata"][event::PLAN].as_str();
    let plan = plan.and_then(|plan| Product::ALL.into_iter().find(|known| known.name() == plan));
    session["mode"] == "subscription"
        && session["metadata"][event::USER] == user
        && plan.is_none_or(|plan| plan.is_simulation() == product.is_simulation())
}

/// An id as a part of a path. Ids are of letters, digits and underscores; anything else would be another path.
fn path_id(id: &str) -> Result<&str, Failed> {
    let is_sound = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_sound { Ok(id) } else { Err(Failed::Away) }
}

fn form(fields: &[(&str, String)]) -> String {
    let mut form = Serializer::new(String::new());
    form.extend_pairs(fields);
    form.finish()
}

/// The idempotency key of a call: the same for the same form and count within an hour.
fn attempts_key(secret: &Secret, path: &str, form: &str, attempts: usize, now: Timestamp) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()).expect("HMAC takes keys of any length");
    mac.update(format!("billing-call:{}:{attempts}:{path}:{form}", now.secs() / ATTEMPTS_SECS).as_bytes());
    hex(&mac.finalize().into_bytes()[..KEY_BYTES])
}

/// The address in a session.
fn page(session: &Value) -> Result<String, Failed> {
    let url = text(session, "url")?;
    let is_sound = url.starts_with("https://") || url.starts_with("http://");
    if is_sound && url.len() <= URL_BYTES_MAX { Ok(url) } else { Err(Failed::Away) }
}

fn text(object: &Value, field: &'static str) -> Result<String, Failed> {
    let found = object[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    found.ok_or_else(|| without(field))
}

/// The id of an object, which events name in the same form.
fn id(object: &Value) -> Result<String, Failed> {
    event::name(&object["id"]).map(str::to_owned).ok_or_else(|| without("id"))
}

fn without(field: &'static str) -> Failed {
    tracing::warn!(field, "an answer of the payment provider lacks a field");
    Failed::Away
}

#[cfg(test)]
mod tests;
