//! `GET /v1/account/me/entitlements`: what the caller's plan includes (gateway/docs/accounts.md §2).

use crate::api::keys::view::TierName;
use crate::api::refuse::unexpected;
use crate::http::call::Call;
use crate::http::record::record;
use crate::http::reply::{Outcome, Refusal, Reply};
use crate::http::route::{Auth, Route};
use crate::http::scalar::{self, Money, words};
use engine::command::{Answer, Command, Query};
use engine::rules::{self, Rules, backtest_caps, main_resets_max, sandboxes_max};
use engine::time::Timestamp;
use engine::user::billing::SubscriptionStatus;
use engine::user::key::entitlement;
use engine::user::{Grant, Tier, WalletKind};

pub const GET: Route = Route::get("/v1/account/me/entitlements", "get_entitlements")
    .about("What the caller's plan includes. For session tokens only.")
    .auth(Auth::Jwt)
    .gives::<Entitlements>(200)
    .run(|call| Box::pin(entitlements(call)));

words! {
    PlanSource = "default", "subscription", "grant";
}

record! {
    /// A plan and what it includes.
    struct Entitlements {
        plan: TierName = "pro".into();
        source: PlanSource = "grant".into(), "Where the plan comes from.";
        expires_at: Option<scalar::Timestamp> = Some(scalar::Timestamp::of("2026-11-01T00:00:00Z")),
            "When it ends; null: it has no end. Of a subscription, the end of the period while that runs, although the plan \
             holds 7 days longer if no event of the payment provider comes.";
        features: Features = Features::example();
    }

    /// Features of a plan by key; a null count has no bound.
    struct Features {
        #[serde(rename = "api.tier")]
        tier: TierName = "pro".into(), "Tier of the keys that are issued.";
        #[serde(rename = "api.daily_order_cap")]
        daily_order_cap: Option<u64> = None, "Accepted orders in a UTC day.";
        #[serde(rename = "api.reset_balance")]
        reset_balance: bool = true, "The API wallet can be reset.";
        #[serde(rename = "wallets.sandbox_max")]
        sandbox_max: u64 = 3, "Active SANDBOX wallets.";
        #[serde(rename = "wallets.sandbox_baseline")]
        sandbox_baseline: Option<Money> = Some(Money::of("10000")),
            "What one of them is opened with; null: there are none.";
        #[serde(rename = "wallets.main_resets_per_30d")]
        main_resets_per_30d: Option<u64> = Some(4), "Resets of the MAIN wallet.";
        #[serde(rename = "export.csv")]
        export_csv: bool = true;
        #[serde(rename = "analytics.backtesting")]
        backtesting: bool = true;
        #[serde(rename = "dataset.historical_full")]
        historical_full: bool = false;
        backtests_per_month: u64 = 100;
        backtest_max_days: u64 = 30;
        backtest_max_markets: u64 = 25;
        market_hours_monthly: u64 = 720;
        #[serde(rename = "alerts.chat")]
        alerts_chat: bool = true;
    }
}

async fn entitlements(call: Call) -> Outcome {
    let (directory, user) = (&call.reads().directory, call.caller().user);
    let stands = |grant: &Grant| grant.tier > Tier::Free && grant.expires_at.is_none_or(|end| call.now < end);
    let is_subscription = directory.plan(user).is_some() && !directory.grant(user).is_some_and(|grant| stands(&grant));
    let period_end = if is_subscription { period_end(&call).await? } else { None };
    let simulation = directory.simulation_plan(user);
    let granted = Granted { standing: call.caller().grant, is_subscription, period_end, simulation };
    Ok(Reply::json(&Entitlements::new(granted, &call.reads().rules, call.now)))
}

/// When the paid period of the caller's subscription ends.
async fn period_end(call: &Call) -> Result<Option<Timestamp>, Refusal> {
    match call.ask(Command::Query(Query::Billing)).await? {
        Answer::Billing(billing) => {
            let paid = billing.subscription(false).filter(|known| known.status() != SubscriptionStatus::PastDue);
            Ok(paid.and_then(|known| known.terms.as_ref()?.period_end.get()))
        }
        other => Err(unexpected(&other, call.now)),
    }
}

/// Where a plan comes from.
#[derive(Clone, Copy, Default)]
struct Granted {
    /// The grant or subscription in force, or one that has ended.
    standing: Option<Grant>,
    is_subscription: bool,
    period_end: Option<Timestamp>,
    /// The plan whose limits the simulation has by a subscription of its own.
    simulation: Option<Grant>,
}

impl Entitlements {
    fn new(granted: Granted, rules: &Rules, now: Timestamp) -> Entitlements {
        let tier = entitlement(granted.standing, now);
        let simulation = tier.max(entitlement(granted.simulation, now));
        let standing = granted.standing.filter(|grant| grant.expires_at.is_none_or(|end| now < end));
        Entitlements {
            plan: tier.into(),
            source: match standing {
                Some(_) if granted.is_subscription => "subscription",
                Some(_) => "grant",
                None => "default",
            }
            .into(),
            // A subscription counts a little longer than its period, until the event of the next one.
            expires_at: standing
                .and_then(|grant| granted.period_end.filter(|end| now < *end).or(grant.expires_at))
                .map(scalar::Timestamp),
            features: Features::new(tier, simulation, rules),
        }
    }
}

impl Features {
    /// `simulation`: the plan whose limits back-tests have.
    fn new(tier: Tier, simulation: Tier, rules: &Rules) -> Features {
        let paid = tier > Tier::Free;
        let backtests = backtest_caps(simulation);
        let sandboxes = sandboxes_max(tier);
        Features {
            tier: tier.into(),
            daily_order_cap: (!paid).then_some(rules.free_daily_orders.into()),
            reset_balance: paid,
            sandbox_max: sandboxes as u64,
            sandbox_baseline: (sandboxes > 0).then(|| Money(rules::baseline(WalletKind::Sandbox, tier))),
            main_resets_per_30d: main_resets_max(tier).map(|count| count as u64),
            export_csv: paid,
            backtesting: true,
            historical_full: tier >= Tier::ProPlus,
            backtests_per_month: backtests.jobs_per_month,
            backtest_max_days: backtests.days,
            backtest_max_markets: backtests.markets,
            market_hours_monthly: backtests.market_hours_per_month,
            alerts_chat: paid,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::record::Record as _;
    use engine::time::SECOND;

    fn text(grant: Option<(Tier, Option<u64>)>) -> String {
        let grant = grant.map(|(tier, end)| Grant { tier, expires_at: end.map(|end| Timestamp(end * SECOND)) });
        let granted = Granted { standing: grant, ..Granted::default() };
        let entitlements = Entitlements::new(granted, &Rules::default(), Timestamp(1_790_932_500 * SECOND));
        serde_json::to_string(&entitlements).expect("a record")
    }

    #[test]
    fn each_plan_has_its_features() {
        // 2026-11-01T00:00:00Z
        assert_eq!(
            text(Some((Tier::Pro, Some(1_793_491_200)))),
            serde_json::to_string(&Entitlements::example()).expect("a record")
        );
        let free = text(None);
        for (plan, start) in [
            (None, r#"{"plan":"free","source":"default","expires_at":null,"#),
            (Some((Tier::Pro, Some(1_790_932_500))), r#"{"plan":"free","source":"default","expires_at":null,"#),
            (Some((Tier::Enterprise, None)), r#"{"plan":"enterprise","source":"grant","expires_at":null,"#),
        ] {
            assert!(text(plan).starts_with(start), "{plan:?}: {}", text(plan));
        }
        // (a part of the features, and the plans that have it)
        let plans = [None, Some((Tier::Pro, None)), Some((Tier::ProPlus, None)), Some((Tier::Enterprise, None))];
        for (part, has) in [
            (r#""api.daily_order_cap":100,"api.reset_balance":false"#, [true, false, false, false]),
            (r#""wallets.sandbox_max":0,"wallets.sandbox_baseline":null"#, [true, false, false, false]),
            (r#""wallets.sandbox_max":10,"wallets.sandbox_baseline":"25000.00""#, [false, false, true, false]),
            (r#""wallets.sandbox_max":50,"wallets.sandbox_baseline":"25000.00""#, [false, false, false, true]),
            (r#""wallets.main_resets_per_30d":1,"#, [true, false, false, false]),
            (r#""wallets.main_resets_per_30d":null,"#, [false, false, true, true]),
            (r#""dataset.historical_full":true"#, [false, false, true, true]),
            (r#""export.csv":false"#, [true, false, false, false]),
            (r#""backtest_max_days":90"#, [false, false, true, true]),
        ] {
            assert_eq!(plans.map(|plan| text(plan).contains(part)), has, "{part}");
        }
        assert!(free.ends_with(r#""market_hours_monthly":24,"alerts.chat":false}}"#), "{free}");
    }
}
