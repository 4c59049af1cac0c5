//! Subscriptions: their life, their end without an event, and those without a known price.

use super::*;

#[test]
fn a_subscription_lives() {
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    let mut world = world();
    // (days after the start, the event, status, plan, a paid plan has ended)
    let rows: Vec<(u64, Option<BillingNews>, SubscriptionStatus, Tier, bool)> = vec![
        (0, Some(terms("sub_1", Product::Pro, Incomplete)), Incomplete, Tier::Free, false),
        (0, Some(terms("sub_1", Product::Pro, Trialing)), Trialing, Tier::Pro, false),
        (14, Some(terms("sub_1", Product::Pro, Active)), Active, Tier::Pro, false),
        (44, Some(payment("sub_1", false)), PastDue, Tier::Pro, false),
        (45, Some(terms("sub_1", Product::Pro, PastDue)), PastDue, Tier::Pro, false),
        (50, None, PastDue, Tier::Pro, false),
        (51, None, PastDue, Tier::Free, true),
        (52, Some(payment("sub_1", true)), Active, Tier::Pro, false),
        (60, Some(terms_until(90, "sub_1", Product::ProPlus, Active)), Active, Tier::ProPlus, false),
        (90, Some(terms("sub_1", Product::ProPlus, Canceled)), Canceled, Tier::Free, true),
        (91, Some(terms_until(121, "sub_2", Product::Pro, Active)), Active, Tier::Pro, false),
        (92, Some(terms_until(122, "sub_3", Product::BacktestingPro, Active)), Active, Tier::Pro, false),
    ];
    println!("life of a subscription: {} steps", rows.len());
    for (step, (days, news, status, tier, ended)) in rows.into_iter().enumerate() {
        world.now = START.plus(days * DAY + step as u64);
        if let Some(news) = news {
            // In one second of the provider an event with a later state is the newer one.
            assert_eq!(bill(&mut world, event(&format!("evt_{step}"), days * 86_400, news)), Ok(Applied), "{step}");
        }
        let billing = billing(&mut world);
        let shown = billing.subscription(false).expect("it was noted");
        assert_eq!(shown.status(), status, "step {step}");
        let (now, user) = (world.now, world.user);
        let standing = the_user(&world).standing(now);
        assert_eq!(the_user(&world).entitlement(now), tier, "step {step}");
        assert_eq!(crate::user::key::grant_ended(standing, now), ended, "step {step}");
        // Authentication sees the same.
        let directory = world.shard().directory();
        assert_eq!(directory.standing(user, now), standing, "step {step}");
    }
    let now = world.now;
    let user = the_user(&world);
    assert_eq!(user.wallet_of(WalletKind::Api).map(|wallet| wallet.baseline), Some(Cash::from_dollars(25_000)));
    assert_eq!(user.wallet_of(WalletKind::Api).map(|wallet| wallet.cash), Some(Cash::from_dollars(100)));
    let owner = world.user;
    let simulation = world.shard().directory().simulation_plan(owner);
    // Its period, and a week until it is surely lost.
    let lasts = START.plus((122 + 7) * DAY);
    assert_eq!(simulation.map(|plan| (plan.tier, plan.expires_at)), Some((Tier::ProPlus, Some(lasts))), "{now:?}");
    world.check().expect("the records give the same state");
}

/// A plan ends by itself if the event of its end is lost.
#[test]
fn a_subscription_ends_without_its_last_event() {
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    let of = |product, status, cancel_at_period_end, period_end: Option<u64>| {
        let BillingNews::Subscription(news) = terms("sub_1", Product::Pro, status) else { panic!("terms") };
        BillingNews::Subscription(SubscriptionNews {
            product,
            cancel_at_period_end,
            period_end: period_end.map(|days| START.plus(days * DAY)),
            ..news
        })
    };
    let pro = Some((Product::Pro, BillingInterval::Monthly));
    let yearly = Some((Product::Pro, BillingInterval::Yearly));
    let day = |day: u64| Some(Some(START.plus(day * DAY)));
    // A name, events by day after the start, the end of the plan.
    type Row<'a> = (&'a str, Vec<(u64, BillingNews)>, Option<Option<Timestamp>>);
    let rows: Vec<Row<'_>> = vec![
        ("active", vec![(0, of(pro, Active, false, Some(30)))], day(37)),
        ("trialing", vec![(0, of(pro, Trialing, false, Some(14)))], day(21)),
        ("it ends with the period", vec![(0, of(pro, Active, true, Some(30)))], day(30)),
        ("paid again", vec![(0, of(pro, Active, false, Some(30))), (31, payment("sub_1", true))], day(31 + 31 + 7)),
        ("paid for a year", vec![(0, of(yearly, Active, false, Some(30))), (31, payment("sub_1", true))], day(404)),
        ("its period was over", vec![(39, of(pro, Active, false, Some(30)))], day(37)),
        ("its trial was over", vec![(400, of(pro, Trialing, false, Some(14)))], day(21)),
        ("its year was over", vec![(400, of(yearly, Active, false, Some(30)))], day(37)),
        (
            "its terms again after the period",
            vec![(0, of(pro, Active, false, Some(30))), (31, of(pro, Active, false, Some(30)))],
            day(37),
        ),
        (
            "paid, then terms of the old period",
            vec![
                (0, of(pro, Active, false, Some(30))),
                (31, payment("sub_1", true)),
                (32, of(pro, Active, false, Some(30))),
            ],
            day(37),
        ),
        (
            "paid in the second of its terms",
            vec![(31, of(pro, Active, false, Some(30))), (31, payment("sub_1", true))],
            day(37),
        ),
        (
            "unpaid in the second of its terms",
            vec![(3, of(pro, Active, false, Some(30))), (3, payment("sub_1", false))],
            day(37),
        ),
        ("no stated period", vec![(0, of(pro, Active, false, None))], Some(None)),
        ("never paid", vec![(0, of(pro, Incomplete, false, Some(30)))], None),
        (
            "paid and unpaid in one second",
            vec![(3, of(pro, Active, false, Some(30))), (3, of(pro, PastDue, false, Some(30)))],
            day(10),
        ),
        ("paid later", vec![(3, of(pro, PastDue, false, Some(30))), (4, payment("sub_1", true))], day(37)),
        // Without a known price: the product stays, and a subscription that is not known gives nothing.
        ("canceled", vec![(0, of(pro, Active, false, Some(30))), (5, of(None, Canceled, false, Some(30)))], day(5)),
        ("past due", vec![(0, of(pro, Active, false, Some(30))), (5, of(None, PastDue, false, Some(30)))], day(12)),
        ("unknown", vec![(0, of(None, Canceled, false, Some(30)))], None),
    ];
    println!("ends of plans: {} cases", rows.len());
    for (name, events, end) in rows {
        let mut world = world();
        for (number, (days, news)) in events.into_iter().enumerate() {
            let event = event(&format!("evt_{number}"), days * 86_400, news);
            assert_eq!(bill(&mut world, event), Ok(Applied), "{name}");
        }
        let plan = billing(&mut world).plan();
        assert_eq!(plan.map(|plan| plan.expires_at), end, "{name}");
        assert!(plan.is_none_or(|plan| plan.tier == Tier::Pro), "{name}");
        world.check().expect("the records give the same state");
    }
}

/// What the user sees, the plan, and whether a page for the same plan is made agree without a further event.
#[test]
fn a_subscription_is_shown_as_its_plan_is() {
    use SubscriptionStatus::{Active, Canceled, PastDue, Trialing};
    let of = |status, cancel_at_period_end, period_end: Option<u64>| {
        let BillingNews::Subscription(news) = terms("sub_1", Product::Pro, status) else { panic!("terms") };
        let period_end = period_end.map(|days| START.plus(days * DAY));
        BillingNews::Subscription(SubscriptionNews { cancel_at_period_end, period_end, ..news })
    };
    // A name, events by day after the start; by day, the status, and whether the plan holds.
    type Row<'a> = (&'a str, Vec<(u64, BillingNews)>, Vec<(u64, SubscriptionStatus, bool)>);
    let rows: Vec<Row<'_>> = vec![
        (
            "a lost end",
            vec![(0, of(Active, false, Some(30)))],
            vec![
                (29, Active, true),
                (30, PastDue, true),
                (36, PastDue, true),
                (37, Canceled, false),
                (400, Canceled, false),
            ],
        ),
        (
            "a lost end of a trial",
            vec![(0, of(Trialing, false, Some(14)))],
            vec![(13, Trialing, true), (14, PastDue, true), (21, Canceled, false)],
        ),
        ("its period was over", vec![(40, of(Active, false, Some(30)))], vec![(40, Canceled, false)]),
        (
            "it ends with the period",
            vec![(0, of(Active, true, Some(30)))],
            vec![(29, Active, true), (30, Canceled, false)],
        ),
        (
            "paid for the next period",
            vec![(0, of(Active, false, Some(30))), (31, payment("sub_1", true))],
            vec![(31, Active, true), (61, Active, true), (62, PastDue, true), (69, Canceled, false)],
        ),
        ("no stated period", vec![(0, of(Active, false, None))], vec![(4_000, Active, true)]),
        (
            "unpaid within the period",
            vec![(0, of(Active, false, Some(30))), (5, of(PastDue, false, Some(30)))],
            vec![(11, PastDue, true), (12, PastDue, false), (36, PastDue, false), (37, Canceled, false)],
        ),
        (
            "unpaid after the period",
            vec![(0, of(Active, false, Some(30))), (36, payment("sub_1", false))],
            vec![(36, PastDue, true), (42, PastDue, true), (43, Canceled, false)],
        ),
        ("unpaid without a period", vec![(0, of(PastDue, false, None))], vec![(6, PastDue, true), (7, PastDue, false)]),
        (
            "an end that is ahead of this clock",
            vec![(0, of(Active, false, Some(30))), (5, of(Canceled, false, Some(30)))],
            vec![(4, Active, true), (5, Canceled, false)],
        ),
    ];
    let mut cases = 0;
    for (name, events, expected) in rows {
        let mut world = world();
        for (number, (days, news)) in events.into_iter().enumerate() {
            let event = event(&format!("evt_{number}"), days * 86_400, news);
            assert_eq!(bill(&mut world, event), Ok(Applied), "{name}");
        }
        for (days, status, holds) in expected {
            let (now, billing) = (START.plus(days * DAY), billing(&mut world));
            let shown = billing.subscription(false).expect("it was noted");
            assert_eq!((shown.status_at(now), shown.is_live_at(now)), (status, status.is_live()), "{name}, day {days}");
            let plan = shown.grant().expect("it gives one or did");
            assert_eq!(plan.expires_at.is_none_or(|end| now < end), holds, "{name}, day {days}");
            cases += 1;
        }
    }
    println!("subscriptions as they are shown: {cases} cases");
}

/// An event whose period is over raises nothing, and is not taken for a second subscription.
#[test]
fn an_event_of_an_old_period_gives_nothing() {
    let mut cases = 0;
    for (day, status, raises) in [
        (29, SubscriptionStatus::Active, true),
        (36, SubscriptionStatus::Active, true),
        (37, SubscriptionStatus::Active, false),
        (400, SubscriptionStatus::Trialing, false),
    ] {
        let mut world = world();
        world.now = START.plus(day * DAY);
        let current = terms_until(500, "sub_1", Product::BacktestingPro, SubscriptionStatus::Active);
        assert_eq!(bill(&mut world, event("evt_1", day * 86_400, current)), Ok(Applied));
        assert_eq!(
            bill(&mut world, event("evt_2", day * 86_400, terms("sub_2", Product::ProPlus, status))),
            Ok(Applied)
        );
        let baseline = the_user(&world).wallet_of(WalletKind::Api).map(|wallet| wallet.baseline);
        assert_eq!(baseline == Some(Cash::from_dollars(25_000)), raises, "day {day}");
        let second = terms("sub_3", Product::BacktestingStarter, status);
        let expected = if raises { SecondSubscription } else { Applied };
        assert_eq!(bill(&mut world, event("evt_3", day * 86_400, second)), Ok(expected), "day {day}");
        cases += 2;
    }
    println!("events of an old period: {cases} cases");
}

/// A plan with an unknown price gives nothing and is kept; the order of events does not matter.
#[test]
fn a_plan_without_a_known_price_is_kept() {
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    let known = |status| terms("sub_1", Product::Pro, status);
    let unknown = |status| unpriced("sub_1", status);
    // A name, events with their seconds, the tier and status of the subscription, and what is kept.
    type Row<'a> = (&'a str, Vec<(u64, BillingNews)>, Option<(Tier, SubscriptionStatus)>, Option<SubscriptionStatus>);
    let rows: Vec<Row<'_>> = vec![
        ("alone", vec![(1, unknown(Active))], None, Some(Active)),
        ("a trial", vec![(1, unknown(Trialing)), (2, unknown(Active))], None, Some(Active)),
        ("unpaid", vec![(1, unknown(Active)), (2, unknown(PastDue))], None, Some(PastDue)),
        ("its end", vec![(1, unknown(Active)), (2, unknown(Canceled))], None, Some(Canceled)),
        ("never paid", vec![(1, unknown(Incomplete))], None, Some(Incomplete)),
        ("after a known one", vec![(1, known(Active)), (2, unknown(Active))], Some((Tier::Pro, Active)), Some(Active)),
        ("before a known one", vec![(1, unknown(Active)), (2, known(Active))], Some((Tier::Pro, Active)), None),
        ("an end after it", vec![(1, known(Active)), (2, unknown(Canceled))], Some((Tier::Pro, Canceled)), None),
        ("unpaid after it", vec![(1, known(Active)), (2, unknown(PastDue))], Some((Tier::Pro, PastDue)), None),
        (
            "a change, and its end",
            vec![(1, known(Active)), (2, unknown(Active)), (3, unknown(Canceled))],
            Some((Tier::Pro, Canceled)),
            None,
        ),
        (
            "a change that was taken back",
            vec![(1, known(Active)), (2, unknown(Active)), (3, known(Active)), (4, payment("sub_1", true))],
            Some((Tier::Pro, Active)),
            None,
        ),
    ];
    let mut cases = 0;
    for (name, events, expected, kept) in rows {
        for order in permutations(events.len()) {
            let mut world = world();
            for row in &order {
                let (secs, news) = events[*row].clone();
                let event = event(&format!("evt_{row}"), secs, news);
                let outcome = bill(&mut world, event.clone()).expect("billed");
                assert!(matches!(outcome, Applied | UnknownPrice), "{name} {order:?}: {outcome:?}");
                let repeated = if outcome == UnknownPrice { UnknownPrice } else { Repeated };
                let records = world.out.records.len();
                let again = bill(&mut world, event).expect("billed");
                // After its product became known, it can have an effect that it had not.
                assert!(again == repeated || (repeated, again) == (UnknownPrice, Applied), "{name} {order:?}");
                assert!(again == Applied || world.out.records.len() == records, "{name}: a repeat has no record");
            }
            let found = billing(&mut world);
            let terms = found.subscription(false).and_then(|known| Some((known.terms.as_ref()?, known.status())));
            assert_eq!(terms.map(|(terms, status)| (terms.product.tier(), status)), expected, "{name} {order:?}");
            assert_eq!(found.unpriced().first().map(|kept| kept.status), kept, "{name} {order:?}");
            world.check().expect("the records give the same state");
            cases += 1;
        }
    }
    println!("plans without a known price: {cases} orders of events");
}

#[test]
fn a_kept_plan_is_given_once_its_price_is_known() {
    let mut world = world();
    let active = SubscriptionStatus::Active;
    let kept = event("evt_1", 1, unpriced("sub_1", active));
    for _ in 0..2 {
        assert_eq!(bill(&mut world, kept.clone()), Ok(UnknownPrice));
    }
    let known = billing(&mut world);
    let row = &known.unpriced()[0];
    assert_eq!((&*row.id, row.price.as_deref(), &*row.event), ("sub_1", Some("price_new"), "evt_1"));
    assert_eq!((known.plan(), known.knows("evt_1")), (None, false));
    // The same event, with the price in the settings.
    let given = BillingEvent { news: terms("sub_1", Product::ProPlus, active), ..kept.clone() };
    assert_eq!(bill(&mut world, given.clone()), Ok(Applied));
    let known = billing(&mut world);
    assert_eq!(known.plan().map(|plan| plan.tier), Some(Tier::ProPlus));
    assert_eq!(known.unpriced(), []);
    for again in [given, kept] {
        assert_eq!(bill(&mut world, again), Ok(Repeated));
    }
    // The longest price id is kept, a longer one is not.
    let long = |len: usize| match unpriced("sub_2", active) {
        BillingNews::Subscription(news) => {
            BillingNews::Subscription(SubscriptionNews { price: Some("p".repeat(len)), ..news })
        }
        other => other,
    };
    assert_eq!(bill(&mut world, event("evt_2", 1, long(255))), Ok(UnknownPrice));
    assert_eq!(bill(&mut world, event("evt_3", 1, long(256))), Err(Reject::InvalidTerms));
    world.check().expect("the records give the same state");
}

#[test]
fn a_second_subscription_of_a_kind_is_noticed() {
    use Product::{BacktestingPro, Pro, ProPlus};
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    // The day, the day on which the provider made the event, the event, what becomes of it.
    let rows: Vec<(u64, u64, BillingNews, BillingOutcome)> = vec![
        (0, 0, terms("sub_1", Pro, Incomplete), Applied),
        (0, 0, terms("sub_1", Pro, Active), Applied),
        (1, 1, terms("sub_2", BacktestingPro, Active), Applied),
        (1, 1, terms("sub_3", ProPlus, Incomplete), Applied),
        (1, 1, terms("sub_4", ProPlus, Canceled), Applied),
        // It was known, and is paid now.
        (2, 2, terms("sub_3", ProPlus, Active), SecondSubscription),
        (2, 2, terms("sub_3", ProPlus, PastDue), Applied),
        (2, 2, terms("sub_3", ProPlus, Active), Applied),
        (2, 2, terms("sub_3", ProPlus, Canceled), Applied),
        // Older than its end.
        (2, 1, terms("sub_3", ProPlus, Active), Applied),
        (2, 0, terms("sub_4", ProPlus, Active), Applied),
        (2, 2, terms("sub_5", ProPlus, Trialing), SecondSubscription),
        (3, 3, terms("sub_5", ProPlus, Active), Applied),
        (4, 4, terms("sub_6", BacktestingPro, PastDue), SecondSubscription),
        (5, 5, terms("sub_1", Pro, Canceled), Applied),
        (6, 6, terms("sub_5", ProPlus, Canceled), Applied),
        (7, 7, terms("sub_7", Pro, Active), Applied),
        // The event of its end was lost: it has ended by itself.
        (90, 90, terms_until(120, "sub_8", Pro, Active), Applied),
        // It comes back.
        (91, 91, terms_until(121, "sub_7", Pro, Active), SecondSubscription),
    ];
    println!("second subscriptions: {} cases", rows.len());
    let mut world = world();
    for (step, (days, made, news, expected)) in rows.into_iter().enumerate() {
        world.now = START.plus(days * DAY + step as u64);
        let event = event(&format!("evt_{step}"), made * 86_400 + step as u64, news);
        assert_eq!(bill(&mut world, event), Ok(expected), "step {step}");
    }
    world.check().expect("the records give the same state");
}
