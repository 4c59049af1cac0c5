use super::view::EventsWarming;
use crate::api::testing::{Text as _, Town, listing, shows};
use crate::http::record::Record as _;
use crate::http::testing::{NOW, World};
use engine::fact;
use engine::id::{MarketId, Outcome};
use engine::market::catalog::Figures;
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Category, EventTerms, Listing, MarketState, Resolution, UpDown, Venue};
use engine::user::{Permissions, Tier};

fn terms(id: &str, title: &str) -> Option<EventTerms> {
    Some(EventTerms { id: id.into(), slug: id.into(), title: title.into(), image: None, end: None })
}

/// The town with further events. Lisbon (one market, 9310) is there already.
fn town() -> Town {
    let town = Town::new();
    let window = UpDown {
        asset: engine::market::terms::Asset::Btc,
        interval: engine::market::terms::Interval::Hour,
        start: NOW,
        end: NOW.plus(1),
    };
    let rows = [
        (Listing { category: Category::Sports, event: terms("cup", "The Cup"), ..listing(1, ["11", "12"]) }, 4_000),
        (Listing { sports: true, event: terms("cup", "The Cup"), ..listing(2, ["21", "22"]) }, 6_000),
        (Listing { event: terms("cup", "The Cup"), ..listing(3, ["31", "32"]) }, 500),
        (
            Listing {
                venue: Venue::Kalshi,
                category: Category::Politics,
                question: "Who wins Übersee?".into(),
                event: terms("vote", "The \"vote\""),
                ..listing(4, ["41", "42"])
            },
            5_000,
        ),
        (Listing { event: terms("over", "All over"), ..listing(5, ["51", "52"]) }, 90_000),
        (Listing { updown: Some(window), event: terms("btc", "Bitcoin"), ..listing(6, ["61", "62"]) }, 99_000),
    ];
    for (id, (listing, volume)) in (town.catalog.len() as u32..).zip(rows) {
        let (market, listing) = (MarketId(id), Box::new(listing));
        town.catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing,
            state: MarketState::Active,
            at: NOW,
        }));
        let figures = Figures { volume_total: Some(volume * 1_000_000), ..Figures::default() };
        town.catalog.figures(market, figures, NOW);
    }
    let over = town.catalog.by_slug("market-5").expect("listed");
    let resolution = Resolution::Winner(Outcome::First);
    town.catalog.publish(&MarketMutation::MarketResolved(fact::MarketResolved { market: over, resolution, at: NOW }));
    town.catalog.sort();
    town
}

#[test]
fn filters_narrow_the_list_and_the_total() {
    let town = town();
    // By summed volume: cup 10 500, lisbon 9 310, vote 5 000. `over` has no open market.
    let cases: [(&str, &[&str], u64, Option<bool>); 22] = [
        ("", &["cup", "e-771", "vote"], 3, None),
        ("limit=2", &["cup", "e-771"], 3, None),
        ("limit=2&offset=2", &["vote"], 3, None),
        ("offset=3", &[], 3, None),
        ("offset=9223372036854775807", &[], 3, None),
        ("hot_only=true", &["cup", "e-771"], 2, None),
        ("include_sports=false", &["e-771", "vote"], 2, Some(true)),
        ("include_sports=false&limit=1", &["e-771"], 2, Some(true)),
        ("include_sports=false&category=politics", &["vote"], 1, Some(false)),
        ("include_sports=1", &["cup", "e-771", "vote"], 3, None),
        ("category=POLIT", &["vote"], 1, None),
        ("category=%22politics%22", &["vote"], 1, None),
        ("category=%27politics%27", &["vote"], 1, None),
        ("category=", &["cup", "e-771", "vote"], 3, None),
        ("search=the%20", &["cup", "vote"], 2, None),
        ("search=%C3%BCBERSEE", &["vote"], 1, None),
        ("search=market%202", &["cup"], 1, None),
        ("search=bitcoin", &[], 0, None),
        ("venue=kalshi", &["vote"], 1, None),
        ("venue=polymarket", &[], 0, None),
        ("venue=all", &["cup", "e-771", "vote"], 3, None),
        ("unknown=1", &["cup", "e-771", "vote"], 3, None),
    ];
    for (query, ids, total, has_sports) in cases {
        let answer = town.send("GET", &format!("/v1/events?{query}"), "");
        assert_eq!(answer.status, 200, "{query}");
        let page = answer.json();
        let shown: Vec<&str> =
            page["events"].as_array().expect("an array").iter().map(|event| event["id"].as_str().unwrap()).collect();
        assert_eq!((shown.as_slice(), &page["total"]), (ids, &total.into()), "{query}");
        assert_eq!(page["has_sports"], serde_json::json!(has_sports), "{query}");
        assert!(page.get("message").is_none(), "{query}");
    }
    println!("event filters: {} cases", cases.len());
}

#[test]
fn an_event_shows_itself_and_its_open_markets() {
    let town = town();
    let expected = format!(
        concat!(
            r#"{{"events":[{{"id":"e-771","slug":"lisbon-weather","title":"Lisbon weather","image":null,"#,
            r#""end_date":null,"is_hot":true,"category":"weather","markets":[{{"condition_id":"{}","#,
            r#""slug":"rain-in-lisbon-oct-3","question":"Rain in Lisbon on 3 October?","outcomes":["Yes","No"],"#,
            r#""live_price":{{"buy":"0.41","sell":"0.42"}},"clob_token_ids":["81140002","55200077"],"#,
            r#""display_label":null,"volume_24h":"1822.5","volume_total":"9310","id":81}}]}}],"#,
            r#""total":1,"limit":50,"offset":0,"cache_source":"memory","has_sports":null}}"#
        ),
        town.condition()
    );
    assert_eq!(town.send("GET", "/v1/events?search=lisbon", "").text(), expected);
    let cup = |query: &str| {
        let page = town.send("GET", &format!("/v1/events?search=cup{query}"), "").json();
        let markets = page["events"][0]["markets"].as_array().expect("an array").clone();
        markets.iter().map(|market| market["slug"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(cup(""), ["market-2", "market-1", "market-3"], "by volume");
    assert_eq!(cup("&markets_per_event=2"), ["market-2", "market-1"]);
    let second = town.catalog.by_slug("market-2").expect("listed");
    let closed = MarketMutation::MarketStateChanged(fact::MarketStateChanged {
        market: second,
        state: MarketState::Closed,
        ended: true,
        at: NOW,
    });
    town.catalog.publish(&closed);
    assert_eq!(cup("&markets_per_event=2"), ["market-1", "market-3"], "closed ones are not shown");
}

#[test]
fn before_the_first_listing_it_warms_up() {
    let world = World::new("[limits.tiers.free]\nrequests_per_second = 1000\n", &crate::groups::tables());
    let key = world.key(Tier::Free, Permissions::ReadTrade);
    let answer = world.send("GET", "/v1/events?limit=7&offset=2", &[("x-api-key", &key)], "");
    assert_eq!(answer.code(), (503, "HTTP_503"));
    assert_eq!(answer.header("retry-after"), Some("5"));
    let expected = concat!(
        r#"{"error":"HTTP_503","message":"The market list is still being loaded.","events":[],"total":0,"limit":7,"#,
        r#""offset":2,"cache_source":"warming","has_sports":null}"#
    );
    assert_eq!(answer.text(), expected);
    let record = EventsWarming { limit: 7, offset: 2, ..EventsWarming::example() };
    assert_eq!(answer.body, serde_json::to_vec(&record).expect("JSON"), "the refusal is its record");
    let verbose = world.send("GET", "/v1/events", &[("x-api-key", &key), ("x-svc-verbose", "true")], "");
    shows(&verbose.body, r#"{"error":"HTTP_503","events":[],"details":null}"#);
    // An invalid parameter is refused before the first listing too.
    assert_eq!(world.send("GET", "/v1/events?limit=x", &[("x-api-key", &key)], "").code().0, 422);
    // No event, but a first listing.
    let (market, listing) = (MarketId(0), Box::new(listing(1, ["1", "2"])));
    let catalog = &world.edge.app.reads.catalog;
    catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
        market,
        listing,
        state: MarketState::Active,
        at: NOW,
    }));
    assert_eq!(world.send("GET", "/v1/events", &[("x-api-key", &key)], "").code().0, 503, "not sorted yet");
    catalog.sort();
    let answer = world.send("GET", "/v1/events", &[("x-api-key", &key)], "");
    shows(&answer.body, r#"{"events":[],"total":0,"cache_source":"memory","has_sports":null}"#);
}
