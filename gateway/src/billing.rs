//! The payment provider of a configuration (gateway/docs/billing.md §7).

use crate::config::{BillingProvider, Config};
use ::billing::{Settings, Stripe, Stub};
use edge::api::billing::provider::{Desk, Provider};
use edge::engine_client::EngineClient;
use engine::command::{Answer, BillingEvent, BillingNews, BillingOutcome, Command, SubscriptionNews};
use engine::id::UserId;
use engine::user::Users;
use host::clock::Clock;
use std::io;
use tokio::task::JoinSet;

/// Plans that were kept and are given at a time: few, so that requests find room in the queues of the shards, and more
/// than one, so that they share a sync of the log.
const GIVEN_AT_A_TIME: usize = 8;

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

/// Applies them, beside the requests of a server that listens. One that fails is tried again at the next start.
pub async fn give_kept_plans(engine: EngineClient, clock: Clock, plans: Vec<(UserId, BillingEvent)>) {
    let mut giving = JoinSet::new();
    for (user, event) in plans {
        if giving.len() >= GIVEN_AT_A_TIME {
            giving.join_next().await;
        }
        let (engine, now) = (engine.clone(), clock.now());
        giving.spawn_local(async move {
            let id = event.id.clone();
            match engine.ask(user, Command::Bill(Box::new(event)), now).await {
                Ok(Answer::Billed(BillingOutcome::Applied | BillingOutcome::SecondSubscription)) => {
                    tracing::info!(
                        user = user.0,
                        event = id,
                        "the price of a plan that was kept is set: the plan is given"
                    );
                }
                answer => tracing::warn!(user = user.0, event = id, ?answer, "a plan that was kept could not be given"),
            }
        });
    }
    while giving.join_next().await.is_some() {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::ring::Ring;
    use engine::time::Timestamp;
    use std::sync::Arc;

    /// Thousands of them neither fill the queue of a shard nor wait for each other's sync.
    #[test]
    fn kept_plans_are_given_a_few_at_a_time() {
        let counts = [0, 1, GIVEN_AT_A_TIME - 1, GIVEN_AT_A_TIME, GIVEN_AT_A_TIME + 1, 100];
        let runtime = host::runtime::runtime().expect("a runtime");
        for count in counts {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, async {
                let (clock, inbox) = (Clock::fake(Timestamp::from_secs(1_790_932_500)), Arc::new(Ring::new(256)));
                let engine = EngineClient::threaded(Arc::new([inbox.clone()]), clock.clone());
                let plan = |number: usize| {
                    let (id, news) = (format!("evt_{number}"), BillingNews::Nothing);
                    (UserId(1), BillingEvent { id, created: clock.now(), customer: None, news })
                };
                let giving = give_kept_plans(engine, clock.clone(), (0..count).map(plan).collect());
                let giving = tokio::task::spawn_local(giving);
                let mut given = 0;
                while given < count {
                    for _ in 0..4 * GIVEN_AT_A_TIME {
                        tokio::task::yield_now().await;
                    }
                    assert_eq!(inbox.len(), GIVEN_AT_A_TIME.min(count - given), "{given} of {count} are given");
                    while let Some(asked) = inbox.pop() {
                        let Command::Bill(event) = asked.command else { panic!("{:?}", asked.command) };
                        assert_eq!(event.id, format!("evt_{given}"));
                        // One that is refused keeps no other one from being given.
                        let answer = match given % 3 {
                            0 => Answer::Refused(engine::reject::Reject::Busy),
                            _ => Answer::Billed(BillingOutcome::Applied),
                        };
                        asked.reply.fill(answer);
                        given += 1;
                    }
                }
                giving.await.expect("no panic");
                assert!(inbox.is_empty());
            });
        }
        println!("counts of kept plans: {} cases", counts.len());
    }
}
