//! Purchases: which wallet is credited, and bought resets.

use super::*;

/// The answer to an order can be computed later, though money came and went since.
#[test]
fn a_placement_is_looked_up_across_deposits() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    world.now = world.now.plus(SECOND);
    world.act("book Y bids 0.38x100000 asks 0.40x100000");
    world.act(&format!("buy Y 1000 limit 0.30 from={}", wallet & 0xff));
    let order = the_user(&world).trading().orders.last().expect("it was placed").clone();
    let available = |world: &World| the_user(world).available_at_placement(&order, Timestamp(0)).known();
    let then = Some(Cash::from_dollars(10_000 - 300));
    assert_eq!(available(&world), then);
    for (secs, news) in [
        (0, purchase("pi_1", Sku::Topup500, Some(wallet))),
        (0, purchase("pi_2", Sku::Topup2000, Some(wallet))),
        (0, refund("pi_1", 299)),
        (0, purchase("pi_3", Sku::MainReset, None)),
    ] {
        world.now = world.now.plus(SECOND);
        let id = format!("evt_{}", world.now.0);
        assert_eq!(bill(&mut world, event(&id, secs, news)), Ok(Applied));
        assert_eq!(available(&world), then);
    }
    // One of the same moment may have come first.
    world.act(&format!("buy Y 1000 limit 0.30 from={}", wallet & 0xff));
    let order = the_user(&world).trading().orders.last().expect("it was placed").clone();
    world.now = order.created_at;
    assert_eq!(bill(&mut world, event("last", 0, purchase("pi_4", Sku::Topup500, Some(wallet)))), Ok(Applied));
    assert_eq!(the_user(&world).available_at_placement(&order, Timestamp(0)).known(), None);
}

#[test]
fn a_top_up_follows_its_wallet_and_goes_nowhere_else() {
    let mut world = world();
    let (wallet, user) = (sandbox(&mut world), world.user);
    let (main, api) = (user.object(1), user.object(2));
    // The wallet is reset between checkout and payment: its successor is credited.
    world.ask(Command::ResetWallet { wallet: WalletId(wallet), by: None }, 0);
    let next = user.object(4);
    let rows = [
        ("pi_1", Some(wallet), Applied, Some(next)),
        ("pi_2", Some(next), Applied, Some(next)),
        ("pi_3", Some(main), NotCredited, None),
        ("pi_4", Some(api), NotCredited, None),
        ("pi_5", Some(77), NotCredited, None),
        ("pi_6", None, NotCredited, None),
    ];
    println!("wallets of top-ups: {} cases", rows.len());
    for (name, named, outcome, credited) in rows {
        assert_eq!(bill(&mut world, event(name, 1, purchase(name, Sku::Topup500, named))), Ok(outcome), "{name}");
        let known = billing(&mut world);
        let bought = known.purchase(name).expect("it is on record");
        let credit = if credited.is_some() { Sku::Topup500.credit() } else { Cash::ZERO };
        assert_eq!((bought.wallet.map(|wallet| wallet.0), bought.credit), (credited, credit), "{name}");
    }
    assert_eq!(money(&world, next), (11_000, 1_000));
    world.ask(Command::ArchiveWallet { wallet: WalletId(next) }, 0);
    assert_eq!(bill(&mut world, event("e", 1, purchase("pi_7", Sku::Topup500, Some(wallet)))), Ok(NotCredited));
    // Nothing is taken out of an archived wallet, and nothing for what was not credited.
    for name in ["pi_1", "pi_7"] {
        assert_eq!(bill(&mut world, event(&format!("r{name}"), 2, refund(name, 299))), Ok(Applied));
        assert_eq!(billing(&mut world).purchase(name).map(|bought| bought.taken), Some(Cash::ZERO));
    }
    // The next generation begins without deposits.
    let other = sandbox(&mut world);
    bill(&mut world, event("x", 3, purchase("pi_8", Sku::Topup2000, Some(other)))).expect("billed");
    world.ask(Command::ResetWallet { wallet: WalletId(other), by: None }, 0);
    assert_eq!(money(&world, other + 1), (10_000, 0));
    world.check().expect("the records give the same state");
}

#[test]
fn a_bought_reset_is_used_after_those_of_the_plan() {
    let mut world = world();
    let main = WalletId(world.user.object(1));
    let reset = |world: &mut World| match world.ask(Command::ResetWallet { wallet: main, by: None }, 0) {
        Answer::Emptied(view) => Ok(view.wallet.generation),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    };
    assert_eq!(bill(&mut world, event("evt_1", 1, purchase("pi_1", Sku::MainReset, None))), Ok(Applied));
    assert_eq!(bill(&mut world, event("evt_2", 1, purchase("pi_2", Sku::MainReset, None))), Ok(Applied));
    assert_eq!((reset(&mut world), the_user(&world).main_resets_left()), (Ok(2), 2));
    world.now = world.now.plus(10 * DAY);
    assert_eq!((reset(&mut world), the_user(&world).main_resets_left()), (Ok(3), 1));
    // A refund takes back the one that is left.
    assert_eq!(bill(&mut world, event("evt_3", 2, refund("pi_1", 299))), Ok(Applied));
    assert_eq!(reset(&mut world), Err(Reject::MainResetsSpent));
    assert_eq!(bill(&mut world, event("evt_4", 2, refund("pi_2", 299))), Ok(Applied));
    let known = billing(&mut world);
    let taken = ["pi_1", "pi_2"].map(|payment| known.purchase(payment).is_some_and(|bought| bought.reset_taken));
    assert_eq!(taken, [true, false], "the other one was used");
    // The bought one does not count among those of the plan.
    world.now = world.now.plus(20 * DAY);
    assert_eq!(reset(&mut world), Ok(4));
    world.check().expect("the records give the same state");
    // One is returned while the wallet is emptied for it: the next one is not used up by that.
    assert_eq!(bill(&mut world, event("evt_5", 3, purchase("pi_3", Sku::MainReset, None))), Ok(Applied));
    assert_eq!(bill(&mut world, event("evt_6", 3, refund("pi_3", 299))), Ok(Applied));
    let mut users = replayed(&world);
    let at = world.now;
    let baseline = the_user(&world).wallet(main).expect("it is there").baseline;
    users.apply(world.user, &fact::BoughtResetUsed { wallet: main, baseline, at }.into());
    let payment = "pi_4".to_owned();
    let next = fact::PurchaseNoted { payment, sku: Sku::MainReset, wallet: None, credit: Cash::ZERO, at };
    users.apply(world.user, &next.into());
    assert_eq!(users.get(world.user).map(User::main_resets_left), Some(1));
}

#[test]
fn a_competition_wallet_is_of_an_administrator() {
    let mut world = world();
    let (label, balance) = (Some("cup".to_owned()), Cash::from_dollars(5_000));
    let Answer::Wallet(wallet) = world.ask(Command::OpenCompetition { label, balance }, 0) else { panic!("a wallet") };
    assert_eq!((wallet.kind, wallet.cash, wallet.label()), (WalletKind::Competition, balance, Some("cup")));
    match world.ask(Command::ResetWallet { wallet: wallet.id, by: None }, 0) {
        Answer::Refused(reject) => assert_eq!(reject, Reject::WrongWalletKind),
        other => panic!("{other:?}"),
    }
    world.check().expect("the records give the same state");
}
