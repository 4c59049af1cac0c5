//! Billing (gateway/docs/billing.md): plans, top-ups and the events of the payment provider. While there is no provider,
//! the subscription and the refund policy can be read, and the other routes do not exist.
//!
//! | File | Holds |
//! |---|---|
//! | [`provider`] | the payment provider, as a port |
//! | `request.rs` | what the bodies ask for |
//! | `checkout.rs` | pages of the provider for plans, top-ups and changes |
//! | `events.rs` | the webhook, and links of the provider for development |

mod checkout;
mod events;
pub mod provider;
mod request;

use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::code::Code;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, BodyKind, Gate, RateClass, Route};
use crate::http::scalar::{Timestamp, words};
use engine::command::{Answer, Command, Query};
use engine::user::billing::{Billing, Subscription, SubscriptionStatus};

pub const ROUTES: &[Route] = &[
    Route::get("/v1/billing/subscription", "get_subscription")
        .about("The caller's subscription. For session tokens only.")
        .auth(Auth::Jwt)
        .gives::<SubscriptionView>(200)
        .run(|call| Box::pin(subscription(call))),
    Route::post("/v1/billing/checkout", "create_checkout")
        .about("A page of the payment provider for a plan.")
        .auth(Auth::Jwt)
        .gate(Gate::Billing)
        .takes::<request::PlanCheckout>()
        .gives::<Link<'_>>(200)
        .fails(CALL_CODES)
        .run(|call| Box::pin(checkout::plan(call))),
    Route::post("/v1/billing/topup/checkout", "create_topup_checkout")
        .about("A page of the payment provider for a top-up, or for a reset of the MAIN wallet.")
        .auth(Auth::Jwt)
        .gate(Gate::Billing)
        .takes::<request::TopupCheckout>()
        .gives::<Link<'_>>(200)
        .fails(CALL_CODES)
        .also_fails(&[Code::WalletNotFound])
        .run(|call| Box::pin(checkout::topup(call))),
    Route::post("/v1/billing/portal", "create_portal")
        .about("A page of the payment provider for changes and the end of a subscription.")
        .auth(Auth::Jwt)
        .gate(Gate::Billing)
        .body(BodyKind::Ignored)
        .gives::<Link<'_>>(200)
        .fails(&[Code::InvalidRequest, Code::UpstreamUnavailable, Code::ServerBusy])
        .run(|call| Box::pin(checkout::portal(call))),
    Route::get("/v1/billing/refund-policy", "get_refund_policy")
        .about("When purchases are refunded.")
        .gives::<RefundPolicy<'_>>(200)
        .answer(refund_policy),
    Route::post("/v1/billing/webhook", "receive_billing_event")
        .about("Takes an event of the payment provider, with its signature over the body.")
        .gate(Gate::Billing)
        .rate(RateClass::Callback)
        .no_store()
        .takes::<events::ProviderEvent<'_>>()
        .gives::<events::Received>(200)
        .fails(&[
            Code::InvalidRequest,
            Code::Http413,
            Code::ServerBusy,
            Code::PersistenceUnknown,
            Code::DeadlineOvershotButPersisted,
        ])
        .run(|call| Box::pin(events::webhook(call))),
    Route::get("/v1/billing/confirm/{token}", "confirm_purchase")
        .about("Applies a purchase of the provider `stub`, which is for development. A link works once.")
        .gate(Gate::BillingStub)
        .rate(RateClass::Callback)
        .no_store()
        .gives::<events::Received>(200)
        .fails(&[Code::InvalidRequest, Code::ServerBusy, Code::PersistenceUnknown, Code::DeadlineOvershotButPersisted])
        .run(|call| Box::pin(events::confirm(call))),
];

/// Codes of a route that calls the provider with a body.
const CALL_CODES: &[Code] = &[
    Code::InvalidBody,
    Code::ValidationFailed,
    Code::InvalidRequest,
    Code::UpstreamUnavailable,
    Code::ServerBusy,
    Code::PersistenceUnknown,
    Code::DeadlineOvershotButPersisted,
];

words! {
    PlanName = "free", "pro", "pro_plus", "backtesting_starter", "backtesting_pro";
    StatusName = "none", "trialing", "active", "past_due", "canceled";
    IntervalName = "monthly", "yearly";
}

record! {
    /// A subscription. Null: not known, or there is none.
    struct SubscriptionView {
        plan: PlanName = "pro".into(), "`free` without a subscription.";
        status: StatusName = "active".into();
        current_period_end: Option<Timestamp> = Some(Timestamp::of("2026-11-01T00:00:00Z"));
        cancel_at_period_end: bool = false, "It ends then, and is not paid again.";
        trial_ends_at: Option<Timestamp> = None;
        interval: Option<IntervalName> = Some("monthly".into()), "How often it is paid.";
    }

    /// The address of a page.
    struct Link<'a> {
        url: &'a str = "https://pay.example.net/s/7f21";
    }

    /// When purchases are refunded.
    struct RefundPolicy<'a> {
        version: &'a str = "1";
        window_days: u64 = 14, "Days after a purchase.";
        text: &'a str = "Purchases are refunded on request within 14 days.";
        conditions: Vec<&'a str> = vec!["What was bought is taken back as far as it was not used."];
    }
}

async fn subscription(call: Call) -> Outcome {
    let billing = billing(&call).await?;
    Ok(Reply::json(&SubscriptionView::new(shown(&billing), call.now)))
}

fn refund_policy(call: &Call) -> Outcome {
    let settings = &call.front().settings.billing;
    Ok(Reply::json(&RefundPolicy {
        version: "1",
        window_days: settings.refund_days,
        text: &settings.refund_text,
        conditions: settings.refund_conditions.iter().map(String::as_str).collect(),
    }))
}

/// Billing of the caller.
async fn billing(call: &Call) -> Result<Billing, Refusal> {
    match call.ask(Command::Query(Query::Billing)).await? {
        Answer::Billing(billing) => Ok(*billing),
        other => Err(unexpected(&other, call.now)),
    }
}

/// The subscription that the user sees: that of the API, else that of the simulation. One that was never paid does not count.
fn shown(billing: &Billing) -> Option<&Subscription> {
    let paid = |is_simulation| {
        billing.subscription(is_simulation).filter(|known| known.status() != SubscriptionStatus::Incomplete)
    };
    paid(false).or_else(|| paid(true))
}

impl SubscriptionView {
    fn new(shown: Option<&Subscription>, now: engine::time::Timestamp) -> SubscriptionView {
        let Some((subscription, terms)) = shown.and_then(|known| Some((known, known.terms.as_ref()?))) else {
            return SubscriptionView {
                plan: "free".into(),
                status: "none".into(),
                current_period_end: None,
                cancel_at_period_end: false,
                trial_ends_at: None,
                interval: None,
            };
        };
        SubscriptionView {
            plan: terms.product.name().into(),
            status: match subscription.status_at(now) {
                SubscriptionStatus::Incomplete => "none",
                SubscriptionStatus::Trialing => "trialing",
                SubscriptionStatus::Active => "active",
                SubscriptionStatus::PastDue => "past_due",
                SubscriptionStatus::Canceled => "canceled",
            }
            .into(),
            current_period_end: terms.period_end.get().map(Timestamp),
            cancel_at_period_end: terms.cancel_at_period_end,
            trial_ends_at: terms.trial_ends_at.get().map(Timestamp),
            interval: Some(terms.interval.name().into()),
        }
    }
}

#[cfg(test)]
mod tests;
