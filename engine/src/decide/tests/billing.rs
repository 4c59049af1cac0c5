//! Billing by commands: each event once in any order, the life of a subscription, top-ups and refunds; the records
//! replayed give the same state.

use super::world::{START, World};
use crate::amount::Cash;
use crate::command::{Answer, BillingEvent, BillingNews, BillingOutcome, Command, Query, SubscriptionNews, Wallets};
use crate::fact;
use crate::format::Formats;
use crate::id::{OBJECT_BITS, UserId, WalletId};
use crate::mutation::{Mutation, codec};
use crate::reject::Reject;
use crate::shard::snapshot::put_user;
use crate::time::{DAY, HOUR, SECOND, Timestamp};
use crate::user::billing::{
    Billing, BillingInterval, EVENTS_KEPT, EVENTS_KEPT_US, PURCHASES_MAX, Product, REFUNDS_WAITING, SUBSCRIPTIONS_KEPT,
    Sku, SubscriptionStatus, UNPAID_KEPT,
};
use crate::user::sample::Dice;
use crate::user::{Tier, User, Users, WalletKind};

use BillingOutcome::{Applied, NotCredited, OtherCustomer, Repeated};

/// The first SANDBOX wallet of user 1, after MAIN and API.
const SANDBOX: u64 = (1 << OBJECT_BITS) + 3;

fn world() -> World {
    let mut world = World::of("");
    world.make_user();
    note(&mut world, "cus_1");
    world
}

/// Notes a customer; the one that the user has.
fn note(world: &mut World, customer: &str) -> Option<String> {
    replace(world, customer, None)
}

/// The same, where another one may be replaced.
fn replace(world: &mut World, customer: &str, instead_of: Option<&str>) -> Option<String> {
    let (customer, instead_of) = (customer.to_owned(), instead_of.map(str::to_owned));
    match world.ask(Command::NoteCustomer { customer, instead_of }, 0) {
        Answer::Billing(billing) => billing.customer.map(String::from),
        other => panic!("{other:?}"),
    }
}

/// An event that the provider made this many seconds after the start.
fn event(id: &str, secs: u64, news: BillingNews) -> BillingEvent {
    BillingEvent { id: id.to_owned(), created: START.plus(secs * SECOND), customer: Some("cus_1".to_owned()), news }
}

fn terms(subscription: &str, product: Product, status: SubscriptionStatus) -> BillingNews {
    BillingNews::Subscription(SubscriptionNews {
        subscription: subscription.to_owned(),
        product: Some((product, BillingInterval::Monthly)),
        status,
        period_end: Some(START.plus(30 * DAY)),
        cancel_at_period_end: false,
        trial_ends_at: None,
    })
}

fn payment(subscription: &str, is_paid: bool) -> BillingNews {
    BillingNews::Payment { subscription: subscription.to_owned(), is_paid }
}

fn purchase(payment: &str, sku: Sku, wallet: Option<u64>) -> BillingNews {
    BillingNews::Purchase { payment: payment.to_owned(), sku, wallet: wallet.map(WalletId) }
}

fn refund(payment: &str, refunded: u64) -> BillingNews {
    BillingNews::Refund { payment: payment.to_owned(), refunded }
}

fn bill(world: &mut World, event: BillingEvent) -> Result<BillingOutcome, Reject> {
    match world.ask(Command::Bill(Box::new(event)), 0) {
        Answer::Billed(outcome) => Ok(outcome),
        Answer::Refused(reject) => Err(reject),
        other => panic!("{other:?}"),
    }
}

fn billing(world: &mut World) -> Billing {
    match world.ask(Command::Query(Query::Billing), 0) {
        Answer::Billing(billing) => *billing,
        other => panic!("{other:?}"),
    }
}

fn the_user(world: &World) -> &User {
    world.users().get(world.user).expect("it was made")
}

/// A SANDBOX wallet of a user with a grant.
fn sandbox(world: &mut World) -> u64 {
    world.ask(Command::SetGrant { tier: Tier::Pro, expires_at: None }, 0);
    match world.ask(Command::OpenWallet { label: None, by: None }, 0) {
        Answer::Wallet(wallet) => wallet.id.0,
        other => panic!("{other:?}"),
    }
}

/// Cash and deposits in dollars.
fn money(world: &World, wallet: u64) -> (i64, i64) {
    let wallet = the_user(world).wallet(WalletId(wallet)).expect("it is there");
    (wallet.cash.0 / 1_000_000, wallet.deposits().0 / 1_000_000)
}

fn bytes(world: &World) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_user(the_user(world), &mut bytes);
    bytes
}

/// All orders of some rows.
fn permutations(count: usize) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for row in 0..count {
        all = all
            .iter()
            .flat_map(|order| {
                (0..=order.len()).map(move |at| {
                    let mut next = order.clone();
                    next.insert(at, row);
                    next
                })
            })
            .collect();
    }
    all
}

#[test]
fn events_in_any_order_give_one_state() {
    use Product::{BacktestingStarter, Pro, ProPlus};
    use SubscriptionStatus::{Active, Canceled, Incomplete, PastDue, Trialing};
    let histories: Vec<(&str, Vec<BillingEvent>)> = vec![
        (
            "from trial to the end",
            vec![
                event("evt_1", 1, terms("sub_1", Pro, Trialing)),
                event("evt_2", 2, terms("sub_1", Pro, Active)),
                event("evt_3", 3, terms("sub_1", Pro, PastDue)),
                event("evt_4", 4, payment("sub_1", false)),
                event("evt_5", 5, terms("sub_1", Pro, Active)),
                event("evt_6", 6, terms("sub_1", Pro, Canceled)),
            ],
        ),
        (
            "two unpaid times, one paid between",
            vec![
                event("evt_1", 1, terms("sub_1", ProPlus, Active)),
                event("evt_2", 2, payment("sub_1", false)),
                event("evt_3", 3, payment("sub_1", true)),
                event("evt_4", 4, payment("sub_1", false)),
                event("evt_5", 5, payment("sub_1", false)),
                event("evt_6", 5, terms("sub_1", ProPlus, PastDue)),
            ],
        ),
        (
            "one second",
            vec![
                event("evt_1", 1, terms("sub_1", Pro, Incomplete)),
                event("evt_2", 1, terms("sub_1", Pro, Active)),
                event("evt_3", 1, payment("sub_1", true)),
                event("evt_4", 1, terms("sub_1", ProPlus, Active)),
                event("evt_5", 1, payment("sub_1", false)),
            ],
        ),
        (
            "one second, unpaid",
            vec![
                event("evt_1", 1, terms("sub_1", Pro, Active)),
                event("evt_2", 1, terms("sub_1", Pro, PastDue)),
                event("evt_3", 1, payment("sub_1", true)),
                event("evt_4", 2, payment("sub_1", false)),
                event("evt_5", 3, terms("sub_1", Pro, PastDue)),
            ],
        ),
        (
            "two subscriptions and a simulation",
            vec![
                event("evt_1", 1, terms("sub_1", ProPlus, Active)),
                event("evt_2", 2, terms("sub_2", Pro, Active)),
                event("evt_3", 3, terms("sub_1", ProPlus, Canceled)),
                event("evt_4", 4, terms("sub_3", BacktestingStarter, Active)),
                event("evt_5", 5, terms("sub_2", Pro, PastDue)),
            ],
        ),
        (
            "purchases and refunds",
            vec![
                event("evt_1", 1, purchase("pi_1", Sku::Topup500, Some(SANDBOX))),
                event("evt_2", 2, purchase("pi_2", Sku::Topup2000, Some(SANDBOX))),
                event("evt_3", 3, refund("pi_1", 100)),
                event("evt_4", 4, refund("pi_1", 299)),
                event("evt_5", 5, purchase("pi_3", Sku::MainReset, None)),
                event("evt_6", 6, refund("pi_3", 299)),
            ],
        ),
    ];
    let mut orders = 0;
    for (name, events) in histories {
        let mut expected = None;
        for order in permutations(events.len()) {
            let mut world = world();
            assert_eq!(sandbox(&mut world), SANDBOX, "{name}");
            world.ask(Command::SetGrant { tier: Tier::Free, expires_at: None }, 0);
            for row in &order {
                assert_eq!(bill(&mut world, events[*row].clone()), Ok(Applied), "{name} {order:?}");
                assert_eq!(bill(&mut world, events[*row].clone()), Ok(Repeated), "{name} {order:?}");
            }
            let state = bytes(&world);
            assert_eq!(*expected.get_or_insert(state.clone()), state, "{name} {order:?}");
            if orders % 40 == 0 {
                world.check().expect("the records give the same state");
            }
            orders += 1;
        }
    }
    println!("orders of events: {orders}");
    assert!(orders > 2_000);
}

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
        (60, Some(terms("sub_1", Product::ProPlus, Active)), Active, Tier::ProPlus, false),
        (90, Some(terms("sub_1", Product::ProPlus, Canceled)), Canceled, Tier::Free, true),
        (91, Some(terms("sub_2", Product::Pro, Active)), Active, Tier::Pro, false),
        (92, Some(terms("sub_3", Product::BacktestingPro, Active)), Active, Tier::Pro, false),
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
    // Paid on day 92, after the stated period: for a month, and a week until it is surely lost.
    let lasts = START.plus((92 + 31 + 7) * DAY);
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
        ("unknown", vec![(0, of(None, PastDue, false, Some(30)))], None),
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

/// The answer to an order can be computed later, though money came and went since.
#[test]
fn a_placement_is_looked_up_across_deposits() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    world.now = world.now.plus(SECOND);
    world.act("book Y bids 0.38x100000 asks 0.40x100000");
    world.act(&format!("buy Y 1000 limit 0.30 from={}", wallet & 0xff));
    let order = the_user(&world).trading().orders.last().expect("it was placed").clone();
    let available = |world: &World| the_user(world).available_at_placement(&order, Timestamp(0));
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
    assert_eq!(the_user(&world).available_at_placement(&order, Timestamp(0)), None);
}

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

/// The users by the records.
fn replayed(world: &World) -> Users {
    let mut users = Users::default();
    for (owner, payload) in &world.out.records {
        for fact in codec::decode::<Mutation>(codec::VERSION, payload).expect("this version") {
            users.apply(*owner, &fact.expect("just written"));
        }
    }
    users
}

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
    assert_eq!(known.waiting_refunds().len(), REFUNDS_WAITING);
    assert_eq!((known.refunded_before("pi_4"), known.refunded_before("pi_5")), (None, Some(5)));

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

/// Random events of a few names, with grants, resets and time between: the records give the same state, and no money
/// appears or is lost.
#[test]
fn random_events_keep_the_money() {
    let mut events = 0;
    for seed in 0..40 {
        let (mut world, mut dice) = (world(), Dice(seed));
        sandbox(&mut world);
        for number in 0..60 {
            world.now = world.now.plus(dice.below(DAY));
            let secs = dice.below(60 * 86_400);
            let name = format!("n{}", dice.below(6));
            let wallet = world.user.object(1 + dice.below(6) as u32);
            let status = dice.pick(&[
                SubscriptionStatus::Incomplete,
                SubscriptionStatus::Trialing,
                SubscriptionStatus::Active,
                SubscriptionStatus::PastDue,
                SubscriptionStatus::Canceled,
            ]);
            let news = match dice.below(6) {
                0 => terms(&name, dice.pick(&Product::ALL), status),
                1 => payment(&name, dice.chance(50)),
                2 | 3 => purchase(&name, dice.pick(&Sku::ALL), Some(wallet)),
                4 => refund(&name, dice.below(1_100)),
                _ => {
                    world.ask(Command::ResetWallet { wallet: WalletId(wallet), by: None }, 0);
                    continue;
                }
            };
            bill(&mut world, event(&format!("evt_{number}"), secs, news)).expect("billed");
            events += 1;
            let (user, known) = (the_user(&world), the_user(&world).billing().expect("it has some"));
            for wallet in &user.wallets {
                let bought = known.purchases().iter().filter(|bought| bought.wallet == Some(wallet.id));
                let deposits: Cash = bought.map(|bought| bought.credit - bought.taken).sum();
                assert_eq!(wallet.deposits(), deposits, "seed {seed}");
                // A better plan raises the baseline of the API wallet without cash.
                let expected = if wallet.kind == WalletKind::Api { Cash::from_dollars(100) } else { wallet.starting() };
                assert_eq!(wallet.cash, expected, "nothing was traded: seed {seed}");
            }
        }
        world.check().expect("the records give the same state");
    }
    println!("random events: {events}");
    assert!(events > 1_500);
}

/// A correction of the clock moves the server's times and no one's money.
#[test]
fn a_correction_of_the_clock_leaves_the_provider_alone() {
    let mut world = world();
    let wallet = sandbox(&mut world);
    for (id, news) in [
        ("evt_1", purchase("pi_1", Sku::Topup500, Some(wallet))),
        ("evt_2", refund("pi_1", 299)),
        ("evt_3", refund("pi_0", 1)),
        ("evt_4", terms("sub_1", Product::Pro, SubscriptionStatus::Active)),
    ] {
        bill(&mut world, event(id, 5, news)).expect("billed");
    }
    let mut users = replayed(&world);
    let past = Timestamp(START.0 - DAY);
    users.set_back(past);
    let known = users.get(world.user).and_then(User::billing).expect("it has some");
    let bought = known.purchase("pi_1").expect("it was bought");
    assert_eq!((bought.at, bought.taken_at.get()), (past, Some(past)));
    assert_eq!(known.waiting_refunds()[0].at, past);
    assert!(known.knows("evt_1") && known.plan().is_some_and(|plan| plan.expires_at == Some(START.plus(37 * DAY))));
    users.check_all().expect("every invariant is kept");
}
