//! `GET /v1/account/me/entitlements`: what the caller's plan includes (account.md §2).

use crate::http::call::Call;
use crate::http::reply::{Outcome, Reply};
use crate::http::route::{Auth, Route};
use crate::http::schema::{BOOLEAN, INTEGER, MONEY_OR_NULL, Schema, Shape, TS_OR_NULL, field};
use crate::settings::TIERS;
use engine::rules::{self, Rules, main_resets_max, sandboxes_max};
use engine::time::Timestamp;
use engine::user::key::entitlement;
use engine::user::{Grant, Tier, WalletKind};
use wire::write::Object;

pub const GET: Route = Route::get("/v1/account/me/entitlements", "get_entitlements")
    .about("What the caller's plan includes. For session tokens only.")
    .auth(Auth::Jwt)
    .gives_shape(200, &ENTITLEMENTS, EXAMPLE)
    .run(|call| Box::pin(entitlements(call)));

const PLAN: Schema = Schema::Word(&["free", "pro", "pro_plus", "enterprise"]);

const ENTITLEMENTS: Schema = Schema::Object(&Shape::new(
    "Entitlements",
    "A plan and what it includes.",
    &[
        field("plan", PLAN, ""),
        field("source", Schema::Word(&["default", "subscription", "grant"]), "Where the plan comes from."),
        field("expires_at", TS_OR_NULL, "When it ends; null: it has no end."),
        field("features", FEATURES, ""),
    ],
));

const COUNT_OR_NULL: Schema = Schema::Nullable(&INTEGER);

const FEATURES: Schema = Schema::Object(&Shape::new(
    "Features",
    "Features of a plan by key; a null count has no bound.",
    &[
        field("api.tier", PLAN, "Tier of the keys that are issued."),
        field("api.daily_order_cap", COUNT_OR_NULL, "Accepted orders in a UTC day."),
        field("api.reset_balance", BOOLEAN, "The API wallet can be reset."),
        field("wallets.sandbox_max", INTEGER, "Active SANDBOX wallets."),
        field("wallets.sandbox_baseline", MONEY_OR_NULL, "What one of them is opened with; null: there are none."),
        field("wallets.main_resets_per_30d", COUNT_OR_NULL, "Resets of the MAIN wallet."),
        field("export.csv", BOOLEAN, ""),
        field("analytics.backtesting", BOOLEAN, ""),
        field("dataset.historical_full", BOOLEAN, ""),
        field("backtests_per_month", INTEGER, ""),
        field("backtest_max_days", INTEGER, ""),
        field("backtest_max_markets", INTEGER, ""),
        field("market_hours_monthly", INTEGER, ""),
        field("alerts.chat", BOOLEAN, ""),
    ],
));

const EXAMPLE: &str = r#"{"plan":"pro","source":"grant","expires_at":"2026-11-01T00:00:00Z","features":{"api.tier":"pro","api.daily_order_cap":null,"api.reset_balance":true,"wallets.sandbox_max":3,"wallets.sandbox_baseline":"10000.00","wallets.main_resets_per_30d":4,"export.csv":true,"analytics.backtesting":true,"dataset.historical_full":false,"backtests_per_month":100,"backtest_max_days":30,"backtest_max_markets":25,"market_hours_monthly":720,"alerts.chat":true}}"#;

async fn entitlements(call: Call) -> Outcome {
    let (grant, rules) = (call.caller().grant, &call.reads().rules);
    Ok(Reply::object(|o| write(o, grant, rules, call.now)))
}

fn write(o: &mut Object<'_>, grant: Option<Grant>, rules: &Rules, now: Timestamp) {
    let tier = entitlement(grant, now);
    let standing = grant.filter(|grant| grant.expires_at.is_none_or(|end| now < end));
    o.word("plan", TIERS[tier as usize].1);
    o.word("source", if standing.is_some() { "grant" } else { "default" });
    o.ts_or_null("expires_at", standing.and_then(|grant| grant.expires_at));
    o.object("features", |o| features(o, tier, rules));
}

fn features(o: &mut Object<'_>, tier: Tier, rules: &Rules) {
    let paid = tier > Tier::Free;
    // In the order of the tiers.
    let by_tier = |counts: [u64; 4]| counts[tier as usize];
    o.word("api.tier", TIERS[tier as usize].1);
    o.integer_or_null("api.daily_order_cap", (!paid).then_some(rules.free_daily_orders.into()));
    o.boolean("api.reset_balance", paid);
    o.integer("wallets.sandbox_max", sandboxes_max(tier) as u64);
    let sandboxes = sandboxes_max(tier) > 0;
    o.money_or_null("wallets.sandbox_baseline", sandboxes.then(|| rules::baseline(WalletKind::Sandbox, tier)));
    o.integer_or_null("wallets.main_resets_per_30d", main_resets_max(tier).map(|count| count as u64));
    o.boolean("export.csv", paid);
    o.boolean("analytics.backtesting", true);
    o.boolean("dataset.historical_full", tier >= Tier::ProPlus);
    o.integer("backtests_per_month", by_tier([10, 100, 9_999, 9_999]));
    o.integer("backtest_max_days", by_tier([7, 30, 90, 90]));
    o.integer("backtest_max_markets", by_tier([5, 25, 100, 100]));
    o.integer("market_hours_monthly", by_tier([24, 720, 9_999, 9_999]));
    o.boolean("alerts.chat", paid);
}

#[cfg(test)]
mod tests {
    use super::*;
    use engine::time::SECOND;
    use wire::write::object;

    fn shown(grant: Option<(Tier, Option<u64>)>) -> String {
        let grant = grant.map(|(tier, end)| Grant { tier, expires_at: end.map(|end| Timestamp(end * SECOND)) });
        let mut out = Vec::new();
        object(&mut out, |o| write(o, grant, &Rules::default(), Timestamp(1_790_932_500 * SECOND)));
        String::from_utf8(out).expect("UTF-8")
    }

    #[test]
    fn each_plan_has_its_features() {
        // 2026-11-01T00:00:00Z
        assert_eq!(shown(Some((Tier::Pro, Some(1_793_491_200)))), EXAMPLE);
        let free = shown(None);
        for (plan, start) in [
            (None, r#"{"plan":"free","source":"default","expires_at":null,"#),
            (Some((Tier::Pro, Some(1_790_932_500))), r#"{"plan":"free","source":"default","expires_at":null,"#),
            (Some((Tier::Enterprise, None)), r#"{"plan":"enterprise","source":"grant","expires_at":null,"#),
        ] {
            assert!(shown(plan).starts_with(start), "{plan:?}: {}", shown(plan));
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
            let found = plans.map(|plan| shown(plan).contains(part));
            assert_eq!(found, has, "{part}");
        }
        assert!(free.ends_with(r#""market_hours_monthly":24,"alerts.chat":false}}"#), "{free}");
    }
}
