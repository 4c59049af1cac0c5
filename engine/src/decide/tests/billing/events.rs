//! Events: for whom they are, their record, and the bounds of what is remembered.

use super::*;

#[test]
fn an_event_for_another_customer_changes_nothing() {
    let mut world = world();
    assert_eq!(note(&mut world, "cus_2").as_deref(), Some("cus_1"), "the first one stays");
    let owner = world.user;
    assert_eq!(world.shard().directory().by_billed_name("cus_1"), Some(owner));
    assert_eq!(world.shard().directory().by_billed_name("cus_2"), None);
    let before = (bytes(&world), world.out.records.len());
    let active = terms("sub_1", Product::Pro, SubscriptionStatus::Active);
    let other = BillingEvent { customer: Some("cus_2".to_owned()), ..event("evt_1", 1, active.clone()) };
    assert_eq!(bill(&mut world, other), Ok(OtherCustomer));
    assert_eq!((bytes(&world), world.out.records.len()), before);
    // One that the provider does not know can be replaced, by the request that has seen it.
    assert_eq!(replace(&mut world, "cus_3", Some("cus_2")).as_deref(), Some("cus_1"));
    assert_eq!(replace(&mut world, "cus_3", Some("cus_1")).as_deref(), Some("cus_3"));
    assert_eq!(replace(&mut world, "cus_1", Some("cus_3")).as_deref(), Some("cus_1"));
    // What was sold to a customer that was replaced stays the user's.
    assert_eq!(bill(&mut world, event("evt_0", 1, active.clone())), Ok(Applied));
    replace(&mut world, "cus_4", Some("cus_1"));
    let ended = terms("sub_1", Product::Pro, SubscriptionStatus::Canceled);
    assert_eq!(bill(&mut world, event("evt_3", 2, ended)), Ok(Applied));
    let unknown = terms("sub_2", Product::Pro, SubscriptionStatus::Active);
    assert_eq!(bill(&mut world, event("evt_4", 2, unknown)), Ok(OtherCustomer));
    // A user who never bought anything has no customer.
    world.user = UserId(2);
    world.make_user();
    assert_eq!(bill(&mut world, event("evt_1", 1, BillingNews::Nothing)), Ok(OtherCustomer));
    world.user = owner;
    let none = BillingEvent { customer: None, ..event("evt_2", 1, active) };
    assert_eq!(bill(&mut world, none), Ok(Applied));
    let long = event(&"e".repeat(256), 1, BillingNews::Nothing);
    assert_eq!(bill(&mut world, long), Err(Reject::InvalidTerms));
}

#[test]
fn an_event_and_its_effect_are_one_record() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    let before = world.out.records.len();
    bill(&mut world, event("evt_1", 1, purchase("pi_1", Sku::Topup500, Some(wallet)))).expect("billed");
    assert_eq!(world.out.records.len(), before + 1);
    let (_, payload) = world.out.records.last().expect("it was written");
    let facts = codec::decode::<Mutation>(codec::VERSION, payload).expect("this version");
    let names: Vec<_> = facts.map(|fact| fact.expect("just written").name()).collect();
    assert_eq!(names, ["BillingEventNoted", "PurchaseNoted"]);
    bill(&mut world, event("evt_1", 1, purchase("pi_1", Sku::Topup500, Some(wallet)))).expect("billed");
    assert_eq!(world.out.records.len(), before + 1, "a repeat has none");
}

#[test]
fn every_list_has_a_bound() {
    let mut world = world();
    for number in 0..EVENTS_KEPT as u64 + 50 {
        bill(&mut world, event(&format!("evt_{number}"), number, BillingNews::Nothing)).expect("billed");
    }
    let known = billing(&mut world);
    let oldest = (0..).find(|number| known.knows(&format!("evt_{number}")));
    assert_eq!(oldest, Some(50), "the newest stay");
    // After thirty days they are forgotten; an older one is not kept.
    world.now = START.plus(EVENTS_KEPT_US + 400 * SECOND);
    bill(&mut world, event("late", 0, BillingNews::Nothing)).expect("billed");
    assert!(!billing(&mut world).knows("late"));
    assert!((0..400).all(|number| !billing(&mut world).knows(&format!("evt_{number}"))));

    for number in 0..SUBSCRIPTIONS_KEPT as u64 + 3 {
        let news = terms(&format!("sub_{number}"), Product::Pro, SubscriptionStatus::Active);
        bill(&mut world, event(&format!("s{number}"), number, news)).expect("billed");
    }
    let known = billing(&mut world);
    assert_eq!(known.subscriptions().len(), SUBSCRIPTIONS_KEPT);
    let ids = |known: &Billing| known.subscriptions().iter().map(|known| known.id.to_string()).collect::<Vec<_>>();
    assert!(!ids(&known).contains(&"sub_2".to_owned()), "the oldest go");
    // A payment of an unknown one, and terms that give nothing, take no place of a living one.
    for (id, news) in [
        ("x1", payment("sub_0", true)),
        ("x2", terms("sub_0", Product::Pro, SubscriptionStatus::Canceled)),
        ("x3", terms("sub_1", Product::Pro, SubscriptionStatus::Incomplete)),
    ] {
        bill(&mut world, event(id, 50, news)).expect("billed");
        assert_eq!(ids(&billing(&mut world)), ids(&known), "{id}");
    }
    // One that has ended goes before living ones, however new its terms are.
    bill(&mut world, event("y1", 60, terms("sub_8", Product::Pro, SubscriptionStatus::Canceled))).expect("billed");
    bill(&mut world, event("y2", 61, terms("sub_a", Product::Pro, SubscriptionStatus::Active))).expect("billed");
    assert!(!ids(&billing(&mut world)).contains(&"sub_8".to_owned()));
    // The one that gives the plan stays, though it is the oldest.
    let BillingNews::Subscription(longest) = terms("sub_b", Product::ProPlus, SubscriptionStatus::Active) else {
        panic!("terms")
    };
    let longest = SubscriptionNews { period_end: Some(START.plus(60 * DAY)), ..longest };
    bill(&mut world, event("z", 0, BillingNews::Subscription(longest))).expect("billed");
    for number in 0..SUBSCRIPTIONS_KEPT as u64 + 3 {
        let news = terms(&format!("sub_c{number}"), Product::Pro, SubscriptionStatus::Active);
        bill(&mut world, event(&format!("c{number}"), 70 + number, news)).expect("billed");
    }
    let known = billing(&mut world);
    assert_eq!(known.subscription(false).map(|known| &*known.id), Some("sub_b"));
    let newest = format!("sub_c{}", SUBSCRIPTIONS_KEPT + 2);
    assert!(ids(&known).contains(&newest));
    for number in 0..UNPAID_KEPT as u64 + 5 {
        bill(&mut world, event(&format!("u{number}"), 100 + number, payment("sub_b", false))).expect("billed");
    }
    let known = billing(&mut world);
    let unpaid = &known.subscriptions().iter().find(|known| *known.id == *"sub_b").expect("it is there").unpaid;
    assert_eq!((unpaid.len(), unpaid[0]), (UNPAID_KEPT, START.plus(100 * SECOND)), "the earliest stay");

    for number in 0..REFUNDS_WAITING + 5 {
        world.now = world.now.plus(1);
        bill(&mut world, event(&format!("r{number}"), 1, refund(&format!("pi_{number}"), 5))).expect("billed");
    }
    let known = billing(&mut world);
    assert_eq!(known.waiting_refunds(), REFUNDS_WAITING);
    assert_eq!((known.returned("pi_4"), known.returned("pi_5")), (0, 5), "the newest stay");
    // Statements about one payment: older ones are summed up, and the sum stays right.
    for number in 0..2 * STATEMENTS_KEPT as u64 {
        let (id, refund_id, cents) = (format!("f{number}"), format!("re_{number}"), 7 + number % 3);
        let news = if number % 2 == 0 { refund("pi_60", cents) } else { failed("pi_60", &refund_id, cents) };
        bill(&mut world, event(&id, 1_000 + number, news)).expect("billed");
    }
    let known = billing(&mut world);
    assert!(known.failed_refunds("pi_60") <= STATEMENTS_KEPT / 2);
    bill(&mut world, event("f", 2_000, refund("pi_60", 250))).expect("billed");
    bill(&mut world, event("g", 2_001, failed("pi_60", "re", 50))).expect("billed");
    assert_eq!(billing(&mut world).returned("pi_60"), 200);

    for number in 0..UNPRICED_KEPT as u64 + 2 {
        let news = unpriced(&format!("sub_u{number}"), SubscriptionStatus::Active);
        assert_eq!(bill(&mut world, event(&format!("v{number}"), number, news)), Ok(UnknownPrice));
    }
    // One that has ended goes before living ones.
    let ended = unpriced("sub_u9", SubscriptionStatus::Canceled);
    assert_eq!(bill(&mut world, event("w1", 500, ended)), Ok(Applied));
    let news = unpriced("sub_v", SubscriptionStatus::Active);
    assert_eq!(bill(&mut world, event("w2", 501, news)), Ok(UnknownPrice));
    let known = billing(&mut world);
    let kept: Vec<&str> = known.unpriced().iter().map(|kept| &*kept.id).collect();
    assert_eq!(kept, ["sub_u2", "sub_u3", "sub_u4", "sub_u5", "sub_u6", "sub_u7", "sub_u8", "sub_v"]);

    for number in 0..PURCHASES_MAX {
        let bought =
            bill(&mut world, event(&format!("p{number}"), 1, purchase(&format!("p{number}"), Sku::MainReset, None)));
        assert_eq!(bought, Ok(Applied));
    }
    let before = world.out.records.len();
    let more = bill(&mut world, event("more", 1, purchase("more", Sku::MainReset, None)));
    assert_eq!((more, world.out.records.len()), (Err(Reject::Busy), before));
    world.check().expect("the records give the same state");
}

#[test]
fn the_previous_format_has_no_billing() {
    let mut world = World::of("");
    world.rules.formats = Formats::Previous;
    world.make_user();
    let refused = bill(&mut world, event("evt_1", 1, BillingNews::Nothing));
    assert_eq!(refused, Err(Reject::NoBillingStore));
    match world.ask(Command::NoteCustomer { customer: "cus_1".to_owned(), instead_of: None }, 0) {
        Answer::Refused(reject) => assert_eq!(reject, Reject::NoBillingStore),
        other => panic!("{other:?}"),
    }
    assert_eq!(billing(&mut world), Billing::default());
}
