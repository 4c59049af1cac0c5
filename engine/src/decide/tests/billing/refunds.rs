//! Refunds, and refunds that fail.

use super::*;

#[test]
fn a_top_up_is_no_profit_and_a_refund_no_loss() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    assert_eq!(bill(&mut world, event("evt_1", 1, purchase("pi_1", Sku::Topup500, Some(wallet)))), Ok(Applied));
    assert_eq!(money(&world, wallet), (10_500, 500));
    // The same payment by another event.
    assert_eq!(bill(&mut world, event("evt_2", 2, purchase("pi_1", Sku::Topup500, Some(wallet)))), Ok(Repeated));
    assert_eq!(bill(&mut world, event("evt_3", 3, purchase("pi_2", Sku::Topup10000, Some(wallet)))), Ok(Applied));
    assert_eq!(money(&world, wallet), (20_500, 10_500));
    // The points of the hours, and those of the minutes, count deposits as paid in.
    world.act("cycle");
    world.now = world.now.plus(3 * HOUR);
    world.act("cycle");
    let wallets = Wallets::One(WalletId(wallet));
    for query in [Query::Equity { wallets, first: START.hour() }, Query::EquityByMinute { wallets }] {
        let Answer::Equity(view) = world.ask(Command::Query(query), 0) else { panic!("a view") };
        let last = view.rows.last().expect("it has points");
        assert_eq!((last.cash, last.baseline), (Cash::from_dollars(20_500), Cash::from_dollars(20_500)));
    }
    // A part only is noted; the whole takes back what was given, once.
    for (id, cents, left) in [("evt_4", 298, 20_500), ("evt_5", 299, 20_000), ("evt_6", 299, 20_000)] {
        assert_eq!(bill(&mut world, event(id, 4, refund("pi_1", cents))), Ok(Applied));
        assert_eq!(money(&world, wallet), (left, left - 10_000), "{id}");
    }
    let known = billing(&mut world);
    let bought = known.purchase("pi_1").expect("it was bought");
    assert_eq!((bought.refunded, bought.taken, bought.is_refunded()), (299, Cash::from_dollars(500), true));
    // What is not free stays, and is on record.
    world.act("book Y bids 0.38x100000 asks 0.40x100000");
    world.act(&format!("buy Y 48000 limit 0.39 from={}", wallet & 0xff));
    let available = the_user(&world).wallet(WalletId(wallet)).expect("it is there").available();
    assert_eq!(available, Cash::from_dollars(20_000 - 18_720));
    assert_eq!(bill(&mut world, event("evt_7", 7, refund("pi_2", 999))), Ok(Applied));
    let known = billing(&mut world);
    assert_eq!(known.purchase("pi_2").map(|bought| bought.taken), Some(available));
    let after = the_user(&world).wallet(WalletId(wallet)).expect("it is there");
    assert_eq!((after.available(), after.deposits()), (Cash::ZERO, Cash::from_dollars(10_000) - available));
    world.check().expect("the records give the same state");
}

/// What a refund took back comes back once when it fails, in any order of the events.
#[test]
fn a_refund_that_fails_is_undone() {
    let (topup, reset) = (|| purchase("pi_1", Sku::Topup500, Some(SANDBOX)), || purchase("pi_1", Sku::MainReset, None));
    // A name, the purchase and its events with their seconds; dollars in the wallet, US cents returned, resets left.
    type Row<'a> = (&'a str, Vec<(u64, BillingNews)>, (i64, u64, u32));
    let whole = || refund("pi_1", 299);
    let rows: Vec<Row<'_>> = vec![
        ("returned", vec![(1, topup()), (2, whole()), (2, whole())], (10_000, 299, 0)),
        ("failed", vec![(1, topup()), (2, whole()), (3, failed("pi_1", "re_1", 299))], (10_500, 0, 0)),
        (
            "by two events",
            vec![(1, topup()), (2, whole()), (3, failed("pi_1", "re_1", 299)), (4, failed("pi_1", "re_1", 299))],
            (10_500, 0, 0),
        ),
        ("in one second", vec![(1, topup()), (1, whole()), (1, failed("pi_1", "re_1", 299))], (10_500, 0, 0)),
        ("before it was paid out", vec![(1, topup()), (2, failed("pi_1", "re_1", 299))], (10_500, 0, 0)),
        (
            "and made again",
            vec![(1, topup()), (2, whole()), (3, failed("pi_1", "re_1", 299)), (4, whole())],
            (10_000, 299, 0),
        ),
        (
            "twice",
            vec![
                (1, topup()),
                (2, whole()),
                (3, failed("pi_1", "re_1", 299)),
                (4, whole()),
                (5, failed("pi_1", "re_2", 299)),
            ],
            (10_500, 0, 0),
        ),
        (
            "a part of two",
            vec![(1, topup()), (2, refund("pi_1", 100)), (3, whole()), (4, failed("pi_1", "re_2", 199))],
            (10_500, 100, 0),
        ),
        (
            "a part, and another one instead",
            vec![
                (1, topup()),
                (2, refund("pi_1", 100)),
                (3, failed("pi_1", "re_1", 100)),
                (4, refund("pi_1", 100)),
                (5, whole()),
            ],
            (10_000, 299, 0),
        ),
        ("of a reset", vec![(1, reset()), (2, whole()), (3, failed("pi_1", "re_1", 299))], (10_000, 0, 1)),
        (
            "of a reset, again",
            vec![(1, reset()), (2, whole()), (3, failed("pi_1", "re_1", 299)), (4, whole())],
            (10_000, 299, 0),
        ),
        ("more than was returned", vec![(1, topup()), (2, whole()), (3, failed("pi_1", "re_1", 999))], (10_500, 0, 0)),
    ];
    let mut cases = 0;
    for (name, events, (dollars, returned, resets)) in rows {
        for order in permutations(events.len()) {
            let mut world = world();
            assert_eq!(sandbox(&mut world), SANDBOX, "{name}");
            for row in &order {
                let (secs, news) = events[*row].clone();
                let event = event(&format!("evt_{row}"), secs, news);
                assert_eq!(bill(&mut world, event.clone()), Ok(Applied), "{name} {order:?}");
                assert_eq!(bill(&mut world, event), Ok(Repeated), "{name} {order:?}");
            }
            assert_eq!(money(&world, SANDBOX), (dollars, dollars - 10_000), "{name} {order:?}");
            let known = billing(&mut world);
            let bought = known.purchase("pi_1").expect("it was bought");
            assert_eq!((bought.refunded, known.returned("pi_1")), (returned, returned), "{name} {order:?}");
            assert_eq!(bought.is_refunded(), returned == 299, "{name} {order:?}");
            assert_eq!(known.main_resets_left(), resets, "{name} {order:?}");
            world.check().expect("the records give the same state");
            cases += 1;
        }
    }
    println!("refunds that fail: {cases} orders of events");
}

#[test]
fn what_comes_back_is_what_was_taken() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    let mut number = 0;
    let mut step = |world: &mut World, news: BillingNews, outcome: BillingOutcome| {
        number += 1;
        world.now = world.now.plus(SECOND);
        assert_eq!(bill(world, event(&format!("evt_{number}"), number, news)), Ok(outcome), "step {number}");
        world.check().expect("the records give the same state");
    };
    step(&mut world, purchase("pi_1", Sku::Topup10000, Some(wallet)), Applied);
    // Only a part is free when it is returned: that part comes back.
    world.now = world.now.plus(SECOND);
    world.act("book Y bids 0.38x100000 asks 0.40x100000");
    world.act(&format!("buy Y 48000 limit 0.39 from={}", wallet & 0xff));
    let free = |world: &World| the_user(world).wallet(WalletId(wallet)).expect("it is there").available();
    let before = free(&world);
    assert_eq!(before, Cash::from_dollars(20_000 - 18_720));
    step(&mut world, refund("pi_1", 999), Applied);
    assert_eq!(free(&world), Cash::ZERO);
    // Orders are looked up across all of it.
    world.now = world.now.plus(SECOND);
    let order = |world: &World| the_user(world).trading().orders.last().expect("it was placed").clone();
    let (old, available) =
        (order(&world), |world: &World, order| the_user(world).available_at_placement(order, Timestamp(0)).known());
    step(&mut world, failed("pi_1", "re_1", 999), Applied);
    assert_eq!(free(&world), before);
    assert_eq!(available(&world, &old), Some(before));
    world.now = world.now.plus(SECOND);
    world.act(&format!("buy Y 100 limit 0.10 from={}", wallet & 0xff));
    let (new, then) = (order(&world), free(&world));
    assert_eq!(available(&world, &new), Some(then));
    // A later refund takes what is free now, from all of the credit.
    world.ask(Command::CancelAll { wallets: Wallets::One(WalletId(wallet)) }, 0);
    step(&mut world, refund("pi_1", 999), Applied);
    assert_eq!(money(&world, wallet), (10_000, 0));
    assert_eq!(available(&world, &new), Some(then));
    step(&mut world, failed("pi_1", "re_2", 999), Applied);
    assert_eq!(money(&world, wallet), (20_000, 10_000));
    // The wallet is replaced while the money is out: the next one receives it, and a refund takes it from there.
    step(&mut world, refund("pi_1", 999), Applied);
    world.ask(Command::ResetWallet { wallet: WalletId(wallet), by: None }, 0);
    let next = the_user(&world).wallets.last().expect("it was opened").id.0;
    assert_eq!(money(&world, next), (10_000, 0));
    step(&mut world, failed("pi_1", "re_3", 999), Applied);
    assert_eq!((money(&world, next), money(&world, wallet).1), ((20_000, 10_000), 0));
    step(&mut world, refund("pi_1", 999), Applied);
    assert_eq!(money(&world, next), (10_000, 0));
    // Without a wallet it is on record only.
    world.ask(Command::ArchiveWallet { wallet: WalletId(next) }, 0);
    step(&mut world, failed("pi_1", "re_4", 999), NotCredited);
    assert_eq!(money(&world, next), (10_000, 0), "an archived wallet stays as it is");
    assert_eq!(billing(&mut world).purchase("pi_1").map(|bought| bought.refunded), Some(0));
    assert_eq!(billing(&mut world).failed_refunds("pi_1"), 4);
}

/// Records of builds before statements: a refund that they noted can still fail.
#[test]
fn a_refund_of_an_earlier_build_can_fail() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    assert_eq!(bill(&mut world, event("evt_1", 1, purchase("pi_1", Sku::Topup500, Some(wallet)))), Ok(Applied));
    let mut users = replayed(&world);
    let (owner, at, rules) = (world.user, world.now, world.rules.clone());
    let noted = |payment: &str, refunded, taken| {
        Mutation::from(fact::RefundNoted { payment: payment.to_owned(), refunded, taken, is_reset_taken: false, at })
    };
    users.apply(owner, &noted("pi_1", 299, Cash::from_dollars(500)));
    users.apply(owner, &noted("pi_2", 499, Cash::ZERO));
    let balance = |users: &Users| {
        let known = users.get(owner).and_then(|user| user.wallet(WalletId(wallet))).expect("it is there");
        (known.cash, known.deposits())
    };
    let dollars = |cash, deposits| (Cash::from_dollars(cash), Cash::from_dollars(deposits));
    assert_eq!(balance(&users), dollars(10_000, 0));
    let mut number = 1;
    let mut decide = |users: &mut Users, news: BillingNews| {
        number += 1;
        let (user, mut facts) = (users.get(owner).expect("it is there"), Vec::new());
        let event = event(&format!("evt_{number}"), number, news);
        let outcome = crate::decide::billing::event(user, event, &rules, at, &mut facts);
        assert_eq!(outcome, Ok(Applied), "{number}");
        facts.iter().for_each(|fact| users.apply(owner, fact));
        users.check_all().expect("every invariant is kept");
    };
    decide(&mut users, failed("pi_1", "re_1", 299));
    assert_eq!(balance(&users), dollars(10_500, 500));
    // Of the one that waits, a part fails before its purchase is known.
    decide(&mut users, failed("pi_2", "re_2", 100));
    decide(&mut users, purchase("pi_2", Sku::Topup2000, Some(wallet)));
    assert_eq!(balance(&users), dollars(12_500, 2_500));
    let known = users.get(owner).and_then(User::billing).expect("it has some");
    let refunded = |payment: &str| known.purchase(payment).map(|bought| bought.refunded);
    assert_eq!((refunded("pi_1"), refunded("pi_2"), known.waiting_refunds()), (Some(0), Some(399), 0));
}
