//! Listing, and selection of followed books.

use super::*;

#[test]
fn the_whole_catalogue_is_read_within_the_budget() {
    let cases = Cases::of("a crawl");
    for keyset in [true, false] {
        let (mut scene, last) = Scene::start(|fake, place| {
            fake.keyset(keyset);
            place.set("venue", "newest_every_ms", "60000");
            // A page that is given up is requested again a minute later; a busy machine is not an error of the venue.
            place.set("venue", "call_timeout_ms", "20000");
            place.set("venue.polymarket", "tokens_max", "1000");
            (1000..2250).for_each(|number| drop(fake.list(number)));
            Market::new(2249)
        });
        scene.market(&Market::new(1000), |_| true);
        scene.market(&last, |_| true);
        scene.market(&Market::new(1600), |_| true);
        eventually("books as far as there is room", || {
            (scene.fake.loads().iter().sum::<usize>() == 1_000).then_some(())
        });
        let mut loads = scene.fake.loads();
        loads.sort_unstable();
        assert_eq!(loads, [200, 400, 400], "both tokens of a market are on one socket");
        assert!(scene.fake.busiest("/events") <= 100, "{}", scene.fake.busiest("/events"));
        assert!(scene.fake.busiest("/markets") <= 60, "{}", scene.fake.busiest("/markets"));
        assert!(scene.fake.busiest("/book") <= 100, "{}", scene.fake.busiest("/book"));
        eventually("coming windows to be requested", || {
            let asked = scene.fake.calls("/events?limit=100&slug=");
            asked.iter().any(|call| call.contains("slug=xrp-updown-15m-")).then_some(())
        });
        cases.add(6);
    }
}

#[test]
fn where_room_is_short_stakes_and_windows_are_followed_first() {
    let cases = Cases::of("markets with too little room");
    let (mut scene, [one, two, staked]) = Scene::start(|fake, place| {
        place.set("venue.polymarket", "tokens_max", "4");
        [71, 72, 73].map(|number| fake.list(number))
    });
    let all = [&one, &two, &staked];
    let follows = |scene: &Scene, number: u64| {
        eventually(&format!("{number} tokens"), || {
            (scene.fake.loads().iter().sum::<usize>() as u64 == number).then_some(())
        });
    };
    scene.market(&staked, |_| true);
    follows(&scene, 4);
    let waits =
        all.into_iter().find(|market| scene.fake.subscriptions(market).0 == 0).expect("one has no room").clone();
    assert_eq!(scene.top(&waits.tokens[0]), None, "it has no book");
    cases.add(2);
    // A user wants to trade it: another one makes room, and is not traded on any more.
    scene.rest(&waits, "0.30");
    scene.shows(&waits, "0.40", "0.60");
    let left = all.into_iter().find(|market| scene.fake.subscriptions(market).0 == 0).expect("one was dropped").clone();
    assert_ne!(left.condition, waits.condition);
    scene.until_stale(&left);
    follows(&scene, 4);
    cases.add(3);
    // A new window makes room too, at the expense of any market but the one with a stake.
    let window = Market::new(74);
    let start = jiff::Timestamp::now().as_second();
    scene.fake.list_as(&window, &format!("btc-updown-5m-{start}"), json!({}));
    scene.fake.book(&window, &[("0.48", "10")], &[("0.52", "10")]);
    scene.shows(&window, "0.48", "0.52");
    scene.shows(&waits, "0.40", "0.60");
    follows(&scene, 4);
    cases.add(3);
    // A start follows them from the first, in any order of the log.
    scene.restart();
    for market in [&window, &waits] {
        eventually(&market.condition, || scene.top(&market.tokens[0]).filter(|(_, _, stale)| !stale));
        cases.one();
    }
    follows(&scene, 4);
}

#[test]
fn a_new_market_is_listed_by_its_own_row() {
    let cases = Cases::of("announced markets");
    let (mut scene, known) = Scene::start(|fake, place| {
        // No crawl finds it.
        place.set("venue", "newest_every_ms", "60000");
        place.set("venue", "traded_every_ms", "60000");
        fake.list(81)
    });
    scene.shows(&known, "0.40", "0.60");
    // The first crawl has ended.
    eventually("the newest", || (!scene.fake.calls("/events?limit=100&slug=").is_empty()).then_some(()));
    let new = Market::new(82);
    let message = json!({
        "event_type": "new_market", "id": "82", "question": "New?", "market": new.condition, "slug": "new-82",
        "assets_ids": new.tokens, "outcomes": ["Yes", "No"], "tags": ["chess"], "active": true,
        "order_price_min_tick_size": "0.01", "timestamp": scene.fake.tick().to_string(),
    });
    scene.fake.say(&known, &message.to_string());
    let asked = || {
        let calls = scene.fake.calls("/markets");
        calls.iter().filter(|call| call.contains(&new.condition)).count()
    };
    eventually("requests for it", || (asked() >= 3).then_some(()));
    let path = format!("/v1/markets/{}", new.condition);
    assert_eq!(scene.client.get(&path).status, 404, "neither its fee nor its kind is known");
    cases.add(2);
    scene.fake.list_as(&new, "new-82", json!({"feeType": "crypto_fees_v2", "negRisk": true}));
    scene.fake.book(&new, &[("0.40", "500")], &[("0.60", "500")]);
    let detail = scene.market(&new, |_| true);
    assert_eq!((text(&detail, "/category"), at(&detail, "/neg_risk")), ("crypto", &json!(true)), "{detail}");
    scene.shows(&new, "0.40", "0.60");
    cases.add(2);
}
