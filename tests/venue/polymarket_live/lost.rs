//! Silent losses: subscriptions, answers that cross a reconnect, markets that are dropped.

use super::*;

#[test]
fn a_lost_subscription_is_made_again() {
    let cases = Cases::of("lost subscriptions");
    let (mut scene, [lost, calm, busy]) = Scene::start(|fake, place| {
        place.set("venue", "quiet_after_ms", "600");
        [61, 62, 63].map(|number| fake.list(number))
    });
    [&lost, &calm, &busy].iter().for_each(|market| scene.shows(market, "0.40", "0.60"));
    assert_eq!(scene.fake.subscriptions(&lost), (1, 0));
    scene.fake.forget(&lost);
    scene.fake.book(&lost, &[("0.45", "500")], &[("0.55", "500")]);
    // The socket continues: there is no other sign of the loss.
    let mut size = 0;
    let mut chatter = |scene: &mut Scene| {
        size += 1;
        scene.fake.level(&busy, "BUY", "0.20", &size.to_string());
    };
    eventually("the book that the socket did not send", || {
        chatter(&mut scene);
        scene.top(&lost.tokens[0]).filter(|top| *top == ("0.45".into(), "0.55".into(), false))
    });
    eventually("its subscription", || {
        chatter(&mut scene);
        (scene.fake.subscriptions(&lost).0 == 1).then_some(())
    });
    scene.fake.level(&lost, "BUY", "0.46", "10");
    scene.shows(&lost, "0.46", "0.55");
    cases.add(3);
    // A market without changes is requested repeatedly, and keeps its subscription.
    let asked = scene.fake.calls("/books").len();
    eventually("more requests", || {
        chatter(&mut scene);
        (scene.fake.calls("/books").len() > asked + 3).then_some(())
    });
    for market in [&calm, &busy] {
        assert_eq!(scene.fake.subscriptions(market), (1, 0));
        cases.one();
    }
    assert_eq!(scene.fake.subscriptions(&lost), (1, 1), "and the lost one was subscribed again once");
    cases.one();
}

#[test]
fn an_answer_that_crosses_a_reconnect_makes_no_book_whole() {
    let cases = Cases::of("answers that cross a reconnect");
    let (mut scene, market) = Scene::start(|fake, place| {
        // No socket times out here.
        place.set("venue", "silent_after_ms", "6000");
        fake.list(64)
    });
    scene.shows(&market, "0.40", "0.60");
    scene.fake.dumps(false);
    let before = scene.fake.calls("/books").len();
    // The answer of the next book is delayed; no other follows.
    let slow = Duration::from_millis(1_500);
    scene.fake.fault(RestFault { path: "/books", slow, times: 1, ..RestFault::default() });
    scene.fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
    let (token, at) = (&market.tokens[0], scene.fake.tick());
    scene.fake.say(&market, &format!(
        r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"0.6","size":"5"}}],"asks":[{{"price":"0.4","size":"5"}}]}}"#
    ));
    eventually("the request", || (scene.fake.calls("/books").len() == before + 1).then_some(()));
    scene.fake.book(&market, &[("0.45", "500")], &[("0.55", "500")]);
    scene.fake.close();
    scene.until_stale(&market);
    // Calls are sequential: when the next one is made, the answer has arrived.
    eventually("two more requests", || (scene.fake.calls("/books").len() >= before + 3).then_some(()));
    let (_, _, stale) = scene.top(token).expect("it has had a book");
    assert!(stale, "a book from before the reconnect does not count");
    cases.one();
    scene.fake.no_faults();
    scene.fake.dumps(true);
    scene.shows(&market, "0.45", "0.55");
    cases.one();
}

#[test]
fn a_market_that_is_left_is_stale_until_it_is_followed_again() {
    let cases = Cases::of("markets that are dropped");
    let (mut scene, [market, other]) = Scene::start(|fake, _| [65, 66].map(|number| fake.list(number)));
    for _ in 0..2 {
        [&market, &other].iter().for_each(|market| scene.shows(market, "0.40", "0.60"));
        // Not open yet, by the venue.
        scene.fake.change(&market, json!({"active": false}));
        scene.until_stale(&market);
        eventually("the end of its subscription", || (scene.fake.subscriptions(&market).0 == 0).then_some(()));
        scene.shows(&other, "0.40", "0.60");
        scene.fake.change(&market, json!({"active": true}));
        scene.shows(&market, "0.40", "0.60");
        cases.add(3);
    }
}
