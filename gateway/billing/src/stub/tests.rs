use super::*;
use engine::time::Date;
use engine::user::billing::{Subscription, SubscriptionTerms};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

const NOW: Timestamp = Timestamp(1_790_932_500_000_000);

fn stub(secret: &str) -> Stub {
    Stub::new(Secret::new(secret.to_owned()))
}

/// The result of a future that waits for nothing.
fn at_once<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("the stub calls no one"),
    }
}

fn token(stub: &Stub, wanted: Wanted) -> String {
    let checkout = Checkout {
        user: UserId(7),
        customer: "cus_stub_7".to_owned(),
        base: "http://paper.example/api".to_owned(),
        wanted,
        now: NOW,
    };
    let url = at_once(stub.checkout(checkout)).expect("a link");
    url.strip_prefix("http://paper.example/api/v1/billing/confirm/").expect("the address of this server").to_owned()
}

fn topup() -> Wanted {
    Wanted::Purchase { sku: Sku::Topup500, wallet: Some(WalletId(101)) }
}

#[test]
fn a_link_is_what_was_asked_for() {
    let stub = stub("secret");
    let Notice { user, name, kind: _, event } = stub.confirm(&token(&stub, topup()), NOW).expect("its own link");
    assert_eq!((user, name.as_deref(), event.created), (Some(UserId(7)), Some("cus_stub_7"), NOW));
    assert_eq!(event.customer.as_deref(), Some("cus_stub_7"));
    match event.news {
        BillingNews::Purchase { payment, sku: Sku::Topup500, wallet: Some(WalletId(101)) } => {
            assert!(payment.starts_with("pi_stub_"), "{payment}");
        }
        other => panic!("{other:?}"),
    }
    let mut cases = 1;
    for product in Product::ALL {
        for interval in BillingInterval::ALL {
            for instead_of in [None, Some("sub_0".to_owned())] {
                let wanted = Wanted::Plan { product, interval, instead_of: instead_of.clone() };
                let event = stub.confirm(&token(&stub, wanted), NOW).expect("its own link").event;
                let BillingNews::Subscription(news) = event.news else { panic!("a subscription") };
                let expected = (Some((product, interval)), SubscriptionStatus::Active);
                assert_eq!((news.product, news.status), expected);
                assert!(news.period_end.is_some_and(|end| end > NOW));
                match instead_of {
                    Some(known) => assert_eq!(news.subscription, known, "it replaces the known one"),
                    // Two links change the same one.
                    None if product.is_simulation() => assert_eq!(news.subscription, "sub_stub_simulation_7"),
                    None => assert_eq!(news.subscription, "sub_stub_plan_7"),
                }
                cases += 1;
            }
        }
    }
    println!("links: {cases} cases");
}

#[test]
fn a_link_is_signed_and_ends() {
    let (own, other) = (stub("secret"), stub("another"));
    let token = token(&own, topup());
    let at = |secs| Timestamp(NOW.0 + secs * 1_000_000);
    assert!(own.confirm(&token, at(LINK_SECS - 1)).is_ok());
    assert_eq!(own.confirm(&token, at(LINK_SECS)), Err(NotGenuine));
    assert_eq!(other.confirm(&token, NOW), Err(NotGenuine), "signed by another server");
    let mut cases = 3;
    for (at, _) in token.char_indices() {
        let mut changed = token.clone().into_bytes();
        changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
        let changed = String::from_utf8(changed).expect("ASCII");
        assert_eq!(own.confirm(&changed, NOW), Err(NotGenuine), "{at}");
        assert_eq!(own.confirm(&token[..at], NOW), Err(NotGenuine), "{at}");
        cases += 2;
    }
    for text in ["", "x", "é", &"A".repeat(3_000), &format!("{token}A")] {
        assert_eq!(own.confirm(text, NOW), Err(NotGenuine), "{text:.30}");
        cases += 1;
    }
    println!("links that are not valid: {cases} cases");
}

#[test]
fn the_portal_ends_a_subscription_and_events_are_never_taken() {
    let stub = stub("secret");
    let terms = SubscriptionTerms {
        product: Product::Pro,
        interval: BillingInterval::Yearly,
        status: SubscriptionStatus::Active,
        period_end: Date::NONE,
        cancel_at_period_end: false,
        trial_ends_at: Date::NONE,
        created: NOW,
        event: "evt_1".into(),
    };
    let known = Subscription { id: "sub_stub_1".into(), terms: Some(terms), paid: Date::NONE, unpaid: Vec::new() };
    let news = [Some(&known), None].map(|subscription| {
        let (user, base) = (UserId(7), "http://paper.example".to_owned());
        let url = at_once(stub.portal(Portal { user, customer: "cus_stub_7", base, subscription, now: NOW }));
        let token = url.expect("a link").rsplit('/').next().expect("a path").to_owned();
        stub.confirm(&token, NOW).expect("its own link").event.news
    });
    match &news[0] {
        BillingNews::Subscription(ended) => {
            assert_eq!((&*ended.subscription, ended.status), ("sub_stub_1", SubscriptionStatus::Canceled));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(news[1], BillingNews::Nothing, "without a subscription there is nothing to end");
    assert_eq!(stub.read(b"{}", Some(b"t=1,v1=0"), NOW), Err(NotGenuine));
}
