//! Billing by commands: each event once in any order, the life of a subscription, top-ups and refunds; the records
//! replayed give the same state.

mod events;
mod purchases;
mod refunds;
mod subscriptions;

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
    Billing, BillingInterval, EVENTS_KEPT, EVENTS_KEPT_US, PURCHASES_MAX, Product, REFUNDS_WAITING, STATEMENTS_KEPT,
    SUBSCRIPTIONS_KEPT, Sku, SubscriptionStatus, UNPAID_KEPT, UNPRICED_KEPT,
};
use crate::user::sample::Dice;
use crate::user::{Tier, User, Users, WalletKind};

use BillingOutcome::{Applied, NotCredited, OtherCustomer, Repeated, SecondSubscription, UnknownPrice};

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
    terms_until(30, subscription, product, status)
}

/// Terms whose period ends this many days after the start.
fn terms_until(days: u64, subscription: &str, product: Product, status: SubscriptionStatus) -> BillingNews {
    BillingNews::Subscription(SubscriptionNews {
        subscription: subscription.to_owned(),
        product: Some((product, BillingInterval::Monthly)),
        price: None,
        status,
        period_end: Some(START.plus(days * DAY)),
        cancel_at_period_end: false,
        trial_ends_at: None,
    })
}

/// Terms with a price that is not known.
fn unpriced(subscription: &str, status: SubscriptionStatus) -> BillingNews {
    let BillingNews::Subscription(news) = terms(subscription, Product::Pro, status) else { panic!("terms") };
    BillingNews::Subscription(SubscriptionNews { product: None, price: Some("price_new".to_owned()), ..news })
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

fn failed(payment: &str, refund: &str, cents: u64) -> BillingNews {
    BillingNews::RefundFailed { payment: payment.to_owned(), refund: refund.to_owned(), cents }
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
                let outcome = bill(&mut world, events[*row].clone());
                assert!(matches!(outcome, Ok(Applied | SecondSubscription)), "{name} {order:?}: {outcome:?}");
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
            let news = match dice.below(8) {
                0 => terms(&name, dice.pick(&Product::ALL), status),
                1 => payment(&name, dice.chance(50)),
                2 | 3 => purchase(&name, dice.pick(&Sku::ALL), Some(wallet)),
                4 => refund(&name, dice.below(1_100)),
                5 => failed(&name, &format!("re_{}", dice.below(4)), dice.below(1_100)),
                6 => unpriced(&name, status),
                _ => {
                    world.ask(Command::ResetWallet { wallet: WalletId(wallet), by: None }, 0);
                    continue;
                }
            };
            bill(&mut world, event(&format!("evt_{number}"), secs, news)).expect("billed");
            events += 1;
            let (user, known) = (the_user(&world), the_user(&world).billing().expect("it has some"));
            // What is left of a purchase in a wallet that was replaced has ended with it.
            for wallet in user.wallets.iter().filter(|wallet| wallet.is_active()) {
                let held = known.purchases().iter().map(|bought| known.holding(bought));
                let deposits: Cash =
                    held.filter(|(holder, ..)| *holder == Some(wallet.id)).map(|(_, _, left)| left).sum();
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
    for (id, secs, news) in [
        ("evt_1", 5, purchase("pi_1", Sku::Topup500, Some(wallet))),
        ("evt_2", 5, refund("pi_1", 299)),
        ("evt_3", 5, refund("pi_0", 1)),
        ("evt_4", 5, terms("sub_1", Product::Pro, SubscriptionStatus::Active)),
        ("evt_5", 6, failed("pi_1", "re_1", 299)),
        ("evt_6", 7, refund("pi_1", 299)),
    ] {
        bill(&mut world, event(id, secs, news)).expect("billed");
    }
    let mut users = replayed(&world);
    let past = Timestamp(START.0 - DAY);
    users.set_back(past);
    let known = users.get(world.user).and_then(User::billing).expect("it has some");
    let bought = known.purchase("pi_1").expect("it was bought");
    assert_eq!((bought.at, bought.taken_at.get()), (past, Some(past)));
    assert_eq!((known.waiting_refunds(), known.returned("pi_1")), (1, 299));
    let user = users.get(world.user).expect("it is there");
    assert!(user.billed_since(past) && !user.billed_since(past.plus(1)), "no cash moved after that");
    assert!(known.knows("evt_1") && known.plan().is_some_and(|plan| plan.expires_at == Some(START.plus(37 * DAY))));
    users.check_all().expect("every invariant is kept");
}
