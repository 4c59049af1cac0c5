//! Subscriptions: their life, plans without a known price, and pages for them.

use super::*;

#[test]
fn a_subscription_from_checkout_to_its_end_and_back() {
    let cases = Cases::of("life of a subscription");
    let (mut world, payments) = paying(|place| _ = place.clock_ahead(0));
    let mut payer = Payer::new(&world, &payments, "ada");
    let (user, customer) = (payer.user, payer.customer.clone());
    let made = payer.session.post("/v1/keys/bootstrap", &json!({})).expect(201);
    let mut key = world.server.with_key(text(&made, "/raw_key"));
    assert_eq!(text(&key.get("/v1/me").expect(200), "/tier"), "free");
    let (begin, rain) = (unix_now(), world.markets.rain.clone());
    let period_end = begin + 400 * DAY;
    let invoice = json!({"id": "in_1", "customer": customer, "subscription": "sub_1"});
    let state = |status: &str| subscription("sub_1", &customer, user, "pro_monthly", status, period_end);
    let updated = "customer.subscription.updated";
    // Days, the event; status of the subscription, plan, where it comes from, tier of a key that may trade.
    type Row<'a> = (u64, Option<(&'a str, Value)>, &'a str, &'a str, &'a str, bool);
    let rows: Vec<Row<'_>> = vec![
        (0, Some(("customer.subscription.created", state("incomplete"))), "none", "free", "default", true),
        (0, Some((updated, state("trialing"))), "trialing", "pro", "subscription", true),
        (14, Some((updated, state("active"))), "active", "pro", "subscription", true),
        (44, Some(("invoice.payment_failed", invoice.clone())), "past_due", "pro", "subscription", true),
        (45, Some((updated, state("past_due"))), "past_due", "pro", "subscription", true),
        (50, None, "past_due", "pro", "subscription", true),
        (51, None, "past_due", "free", "default", false),
        (52, Some(("invoice.paid", invoice)), "active", "pro", "subscription", true),
        (60, Some(("customer.subscription.deleted", state("canceled"))), "canceled", "free", "default", false),
        (61, Some((updated, state("trialing"))), "trialing", "pro", "subscription", true),
    ];
    for (step, (days, news, status, plan, source, trades)) in rows.into_iter().enumerate() {
        let ahead = days * DAY + step as u64;
        world.place.clock_ahead(ahead);
        if let Some((kind, object)) = news {
            let event = event(&format!("evt_{step}"), kind, begin + ahead, &object);
            assert_eq!(deliver(&world.server, &event, ahead).expect(200), json!({"received": true}));
            deliver(&world.server, &event, ahead).expect(200);
        }
        let shown = payer.session.get("/v1/billing/subscription").expect(200);
        assert_eq!(text(&shown, "/status"), status, "step {step}: {shown}");
        assert_eq!(text(&shown, "/plan"), if status == "none" { "free" } else { "pro" }, "step {step}");
        let entitled = payer.session.get("/v1/account/me/entitlements").expect(200);
        assert_eq!((text(&entitled, "/plan"), text(&entitled, "/source")), (plan, source), "step {step}: {entitled}");
        assert_eq!(at(&entitled, "/features/export.csv"), &json!(plan == "pro"), "step {step}");
        // The keys follow.
        let me = key.get("/v1/me").expect(200);
        assert_eq!(text(&me, "/tier"), "free", "a free key stays one: step {step}");
        let placed = key.post("/v1/orders", &limit(&rain, "BUY", "0.01", "10"));
        match trades {
            true => _ = placed.expect(200),
            false => _ = placed.refused(403, "INSUFFICIENT_PERMISSION"),
        }
        cases.add(5);
    }
    // The API wallet has the baseline of the plan, and its cash comes with a reset.
    let wallets = payer.session.get("/v1/me/wallets").expect(200);
    assert_eq!(text(&list(&wallets, "/wallets")[1], "/baseline"), "10000.00");
    let reset = key.post("/v1/account/reset-api-balance", &json!({})).expect(200);
    assert_eq!(text(&reset, "/new_api_balance"), "10000.00");
    // All of it survives a kill.
    let before = payer.session.get("/v1/billing/subscription").expect(200);
    world.crash();
    payer.session.moved_to(world.server.address());
    assert_eq!(payer.session.get("/v1/billing/subscription").expect(200), before);
    cases.add(3);
}

#[test]
fn a_subscription_of_the_simulation_lifts_its_limits_only() {
    let cases = Cases::of("limits of the simulation");
    let (world, payments) = paying(|place| _ = place.set("flags", "feature_simulation_api_enabled", "true"));
    let mut payer = Payer::new(&world, &payments, "ada");
    let made = payer.session.post("/v1/keys/bootstrap", &json!({})).expect(201);
    let mut key = world.server.with_key(text(&made, "/raw_key"));
    for (number, (plan, jobs, hours)) in
        [("", 10, 24), ("backtesting_starter_monthly", 100, 720), ("backtesting_pro_yearly", 9_999, 9_999)]
            .into_iter()
            .enumerate()
    {
        if !plan.is_empty() {
            payer.subscribe(&world, &format!("evt_{number}"), plan, unix_now() + number as u64);
        }
        let quota = key.get("/v1/simulation/quota").expect(200);
        assert_eq!((at(&quota, "/backtests_limit"), at(&quota, "/market_hours_limit")), (&json!(jobs), &json!(hours)));
        let entitled = payer.session.get("/v1/account/me/entitlements").expect(200);
        assert_eq!((text(&entitled, "/plan"), text(&entitled, "/features/api.tier")), ("free", "free"));
        assert_eq!(at(&entitled, "/features/backtests_per_month"), &json!(jobs));
        cases.add(3);
    }
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/plan"), "backtesting_pro");
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/interval"), "yearly");
    cases.add(2);
}

/// A plan whose price the settings do not have is kept, and is given by the start that has it.
#[test]
fn a_plan_with_an_unknown_price_waits_for_it() {
    let cases = Cases::of("plans with an unknown price");
    let (mut world, payments) = paying(|_| {});
    let admin = world.server.admin().expect("there is one");
    let mut payer = Payer::new(&world, &payments, "ada");
    let object = |plan: &str| subscription("sub_1", &payer.customer, payer.user, plan, "active", unix_now() + 30 * DAY);
    let (created, updated) = ("customer.subscription.created", "customer.subscription.updated");
    let kept = event("evt_1", created, unix_now() - 10, &object("new_monthly"));
    let before = counted(admin, "unknown_price");
    // It comes again by the pages of the provider.
    for count in 1..=2 {
        assert_eq!(deliver(&world.server, &kept, 0).expect(200), json!({"received": true}));
        assert_eq!(counted(admin, "unknown_price"), before + count);
        assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/plan"), "free");
        cases.one();
    }
    let words = ["unknown_price", "evt_1", "sub_1", "price_new_monthly"];
    let is_it = |line: &str| words.iter().all(|word| line.contains(word));
    tests::eventually("a line of the log", || world.server.output().lines().any(is_it).then_some(()));
    // A start without the price changes nothing, also from the log alone.
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    world.server = world.place.start();
    payer.session.moved_to(world.server.address());
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/status"), "none");
    // The price comes into the settings.
    world.place.set("billing", "price_pro_monthly", "\"price_pro_monthly,price_new_monthly\"");
    world.crash();
    payer.session.moved_to(world.server.address());
    // It is given while the server listens.
    let given = || {
        let shown = payer.session.get("/v1/billing/subscription").expect(200);
        (text(&shown, "/plan") != "free").then_some(shown)
    };
    let shown = tests::eventually("the plan is given", given);
    assert_eq!((text(&shown, "/plan"), text(&shown, "/status")), ("pro", "active"));
    assert_eq!(text(&payer.session.get("/v1/account/me/entitlements").expect(200), "/plan"), "pro");
    let admin = world.server.admin().expect("there is one");
    deliver(&world.server, &kept, 0).expect(200);
    assert_eq!(counted(admin, "repeated"), 1, "it was given by the start");
    // A change to a price that is not known leaves the plan as it is; its end counts.
    let change = event("evt_2", updated, unix_now() - 5, &object("other_monthly"));
    deliver(&world.server, &change, 0).expect(200);
    assert_eq!((counted(admin, "unknown_price"), counted(admin, "applied")), (1, 0));
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/plan"), "pro");
    let end = event("evt_3", "customer.subscription.deleted", unix_now(), &object("other_monthly"));
    deliver(&world.server, &end, 0).expect(200);
    assert_eq!(text(&payer.session.get("/v1/billing/subscription").expect(200), "/status"), "canceled");
    world.server.kill();
    assert_eq!(world.place.digest(), world.place.digest_from_nothing());
    cases.add(7);
}

/// A user has one open page for a plan: a new one ends the one before it.
#[test]
fn a_second_page_for_a_plan_ends_the_first() {
    let cases = Cases::of("pages for plans");
    let (world, payments) = paying(|_| {});
    let admin = world.server.admin().expect("there is one");
    let mut payer = Payer::new(&world, &payments, "ada");
    let other = Payer::new(&world, &payments, "bob");
    assert_eq!(payments.open_pages(), ["pro", "pro"]);
    let reset = json!({"sku": "topup_main_reset", "consent_acknowledged": true});
    payer.session.post("/v1/billing/topup/checkout", &reset).expect(200);
    for (wanted, open) in [
        ("pro_plus", vec!["pro", "topup_main_reset", "pro_plus"]),
        ("backtesting_pro", vec!["pro", "topup_main_reset", "pro_plus", "backtesting_pro"]),
        ("pro", vec!["pro", "topup_main_reset", "backtesting_pro", "pro"]),
        ("backtesting_starter", vec!["pro", "topup_main_reset", "pro", "backtesting_starter"]),
    ] {
        payer.session.post("/v1/billing/checkout", &plan(wanted, "monthly")).expect(200);
        assert_eq!(payments.open_pages(), open, "{wanted}");
        cases.one();
    }
    // One that is paid at this moment cannot be ended: there is not a second one until its event has come.
    payments.fail(Some(Fault::At("/expire", 400)));
    let refused = payer.session.post("/v1/billing/checkout", &plan("pro_plus", "monthly"));
    refused.refused(502, "UPSTREAM_UNAVAILABLE");
    assert_eq!(payments.open_pages().len(), 4);
    payments.fail(None);
    payments.take_calls();
    // Both were paid all the same: the better one counts, and the second is counted and named.
    for (id, plan) in [("sub_1", "pro_monthly"), ("sub_2", "pro_plus_monthly")] {
        let object = subscription(id, &other.customer, other.user, plan, "active", unix_now() + 30 * DAY);
        let event = event(&format!("evt_{id}"), "customer.subscription.created", unix_now(), &object);
        deliver(&world.server, &event, 0).expect(200);
    }
    assert_eq!((counted(admin, "applied"), counted(admin, "second_subscription")), (1, 1));
    let words = ["second_subscription", "evt_sub_2", "sub_2"];
    let is_it = |line: &str| words.iter().all(|word| line.contains(word));
    tests::eventually("a line of the log", || world.server.output().lines().any(is_it).then_some(()));
    let mut session = other.session;
    assert_eq!(text(&session.get("/v1/billing/subscription").expect(200), "/plan"), "pro_plus");
    cases.add(4);
}
