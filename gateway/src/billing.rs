//! The payment provider of a configuration (gateway/docs/billing.md §7).

use crate::config::{BillingProvider, Config};
use ::billing::{Settings, Stripe, Stub};
use edge::api::billing::provider::{Desk, Provider};
use std::io;

/// What a start with the provider for development warns of.
pub const STUB_WARNING: &str =
    "billing.provider = stub: purchases are applied without a payment; this is for development only";

/// The provider, with the counts of its events; `None`: there is none.
///
/// # Errors
/// The system's, if the thread of the calls cannot be made.
pub fn desk(config: &Config) -> io::Result<Option<Desk>> {
    let settings = &config.billing;
    let provider: Box<dyn Provider> = match (settings.provider, &settings.secret_key) {
        (BillingProvider::Stub, _) => Box::new(Stub::new(config.auth.server_secret.clone())),
        // The configuration is refused without the secret key.
        (BillingProvider::Stripe, Some(secret_key)) => Box::new(Stripe::start(Settings {
            base_url: settings.stripe_base_url.clone(),
            secret_key: secret_key.clone(),
            server_secret: config.auth.server_secret.clone(),
            webhook_secrets: settings.webhook_secrets.clone(),
            prices: settings.prices.clone(),
            success_url: settings.success_url.clone(),
            cancel_url: settings.cancel_url.clone(),
            return_url: settings.return_url.clone(),
            calls_max: settings.calls_max,
        })?),
        (BillingProvider::None | BillingProvider::Stripe, _) => return Ok(None),
    };
    Ok(Some(Desk::new(provider)))
}
