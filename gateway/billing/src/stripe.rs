//! The provider `stripe`: form-encoded calls, JSON answers (gateway/docs/billing.md §7).

use crate::calls::{Calls, Request};
use crate::{event, signature};
use edge::api::billing::provider::{Calling, Checkout, Failed, NotGenuine, Notice, Portal, Provider, Reading, Wanted};
use engine::id::UserId;
use engine::time::Timestamp;
use engine::user::billing::{BillingInterval, Product};
use form_urlencoded::Serializer;
use host::secret::Secret;
use reqwest::Method;
use serde_json::Value;
use std::io;

/// Longest address of a page.
const URL_BYTES_MAX: usize = 8_192;

/// The price of a plan at the provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    pub id: String,
    pub product: Product,
    pub interval: BillingInterval,
}

/// Settings of the provider.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Without a slash at its end.
    pub base_url: String,
    pub secret_key: Secret,
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
        let calls = Calls::start(settings.calls_max)?;
        Ok(Stripe { settings, calls })
    }

    /// Returns a whole payment. The provider then sends an event, which has the effect.
    ///
    /// # Errors
    /// [`Failed`].
    pub async fn refund(&self, payment: &str) -> Result<String, Failed> {
        let field = if payment.starts_with("ch_") { "charge" } else { "payment_intent" };
        let made = self.post("refund", "/v1/refunds", &[(field, payment.to_owned())]).await?;
        text(&made, "id")
    }

    async fn post(&self, what: &'static str, path: &str, fields: &[(&str, String)]) -> Result<Value, Failed> {
        let mut form = Serializer::new(String::new());
        form.extend_pairs(fields);
        let idempotency_key = Some(random().ok_or(Failed::Away)?);
        self.call(Method::POST, what, path, form.finish(), idempotency_key).await
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

    /// The page that changes a living subscription to another plan.
    async fn change(&self, customer: String, subscription: &str, price: String) -> Result<String, Failed> {
        // Ids are of letters, digits and underscores; anything else would be another path.
        if !subscription.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(Failed::Away);
        }
        let path = format!("/v1/subscriptions/{subscription}");
        let known = self.call(Method::GET, "subscription", &path, String::new(), None).await?;
        let item = text(&known["items"]["data"][0], "id")?;
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

    fn customer<'a>(&'a self, user: UserId, email: Option<&'a str>) -> Calling<'a, String> {
        Box::pin(async move {
            let mut fields = vec![("metadata[user_id]", user.to_string())];
            fields.extend(email.map(|email| ("email", email.to_owned())));
            text(&self.post("customer", "/v1/customers", &fields).await?, "id")
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
                    fields.push(("mode", "subscription".to_owned()));
                    fields.push(("line_items[0][price]", price));
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

/// The address in a session.
fn page(session: &Value) -> Result<String, Failed> {
    let url = text(session, "url")?;
    let is_sound = url.starts_with("https://") || url.starts_with("http://");
    if is_sound && url.len() <= URL_BYTES_MAX { Ok(url) } else { Err(Failed::Away) }
}

fn text(object: &Value, field: &str) -> Result<String, Failed> {
    let found = object[field].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    found.ok_or_else(|| {
        tracing::warn!(field, "an answer of the payment provider lacks a field");
        Failed::Away
    })
}

/// 32 random hex digits.
pub(crate) fn random() -> Option<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}
