//! The payment provider of a configuration (gateway/docs/billing.md §7).

use crate::config::{BillingProvider, Config};
use ::billing::{Settings, Stripe, Stub};
use edge::api::billing::provider::{Desk, Provider};
use edge::app::Edge;
use engine::command::{Answer, BillingEvent, BillingNews, BillingOutcome, Command, SubscriptionNews};
use engine::id::UserId;
use engine::user::Users;
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

/// Events of plans that were kept because their price was not known, and whose price is in the settings now
/// (gateway/docs/billing.md §4).
pub fn kept_plans(config: &Config, users: &[Users]) -> Vec<(UserId, BillingEvent)> {
    let prices = match config.billing.provider {
        BillingProvider::Stripe => &config.billing.prices[..],
        BillingProvider::None | BillingProvider::Stub => &[],
    };
    let known = users.iter().flat_map(Users::iter).filter_map(|user| Some((user.id, user.billing()?)));
    let plans = known.flat_map(|(user, billing)| {
        let living = billing.unpriced().iter().filter(|kept| kept.status.is_live());
        living.filter_map(move |kept| {
            let price = prices.iter().find(|price| kept.price.as_deref() == Some(&price.id))?;
            let news = SubscriptionNews {
                subscription: kept.id.to_string(),
                product: Some((price.product, price.interval)),
                price: None,
                status: kept.status,
                period_end: kept.period_end.get(),
                cancel_at_period_end: kept.cancel_at_period_end,
                trial_ends_at: kept.trial_ends_at.get(),
            };
            let (id, news) = (kept.event.to_string(), BillingNews::Subscription(news));
            Some((user, BillingEvent { id, created: kept.created, customer: None, news }))
        })
    });
    plans.collect()
}

/// Applies them. One that fails is tried again at the next start.
pub async fn give_kept_plans(edge: &Edge, plans: Vec<(UserId, BillingEvent)>) {
    for (user, event) in plans {
        let id = event.id.clone();
        match edge.engine.ask(user, Command::Bill(Box::new(event)), edge.app.reads.clock.now()).await {
            Ok(Answer::Billed(BillingOutcome::Applied | BillingOutcome::SecondSubscription)) => {
                tracing::info!(
                    user = user.0,
                    event = id,
                    "the price of a plan that was kept is set: the plan is given"
                );
            }
            answer => tracing::warn!(user = user.0, event = id, ?answer, "a plan that was kept could not be given"),
        }
    }
}
