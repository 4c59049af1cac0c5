use crate::api::testing::{Answered, Text as _, Town, listing};
use crate::http::testing::NOW;
use engine::fact;
use engine::id::{MarketId, Outcome};
use engine::market::catalog::Figures;
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Asset, Interval, Listing, MarketState, UpDown};
use engine::time::DAY;

/// The first two digits of the condition ids shown, in their order.
fn shown(answer: &Answered) -> Vec<String> {
    let json = answer.json();
    let rows = json.as_array().or(json["data"].as_array()).expect("rows").clone();
    rows.iter().map(|row| row["condition_id"].as_str().expect("an id")[2..4].to_owned()).collect()
}

fn list(town: &Town, query: &str) -> Vec<String> {
    let answer = town.send("GET", &format!("/v1/markets?{query}"), "");
    assert_eq!(answer.status, 200, "{query}: {}", answer.text());
    shown(&answer)
}

#[test]
fn lists_are_sorted_by_volume_and_filtered() {
    let town = Town::new();
    // Beside 51 (hot), 90 and 20 (no volume): a small one, and one that rolls.
    let window = UpDown { asset: Asset::Btc, interval: Interval::Hour, start: NOW, end: NOW };
    let rolling = Listing { updown: Some(window), ..listing(0x33, ["33", "34"]) };
    for (id, listing) in [(3, listing(0x44, ["44", "45"])), (4, rolling)] {
        let (market, listing) = (MarketId(id), Box::new(listing));
        town.catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
            market,
            listing,
            state: MarketState::Active,
            at: NOW,
        }));
    }
    let small = Figures { volume_total: Some(5_000_000_000), ..Figures::default() };
    town.catalog.figures(MarketId(3), small, NOW);
    town.catalog.sort();
    for (query, expected) in [
        ("", &["51", "44", "20", "90"][..]),
        ("hot_only=true", &["51"]),
        ("limit=2", &["51", "44"]),
        ("limit=2&offset=1", &["44", "20"]),
        ("offset=9223372036854775807", &[]),
        ("category=WEATH", &["51", "44"]),
        ("category=sports", &[]),
        ("q=lisbon", &["51"]),
        ("search=MARKET-68", &["44"]),
        ("q=lisbon&search=market", &["51"]),
        ("closed=true", &[]),
    ] {
        assert_eq!(list(&town, query), expected, "{query}");
    }
    let states = |state| {
        MarketMutation::MarketStateChanged(fact::MarketStateChanged {
            market: MarketId(2),
            state,
            ended: false,
            at: NOW,
        })
    };
    town.catalog.publish(&states(MarketState::Halted));
    assert_eq!(list(&town, ""), ["51", "44", "90"]);
    assert_eq!(list(&town, "active_only=false"), ["51", "44", "20", "90"]);
    assert_eq!(list(&town, "closed=false"), ["51", "44", "20", "90"]);
    town.catalog.publish(&states(MarketState::Closed));
    town.resolve(Outcome::First);
    for (query, expected) in [
        ("", &["44", "90"][..]),
        ("status=closed", &["51", "20"]),
        ("closed=true", &["51", "20"]),
        ("status=resolved", &["51"]),
        ("status=all&closed=true", &["51", "44", "20", "90"]),
        ("status=active&closed=true", &["44", "90"]),
    ] {
        assert_eq!(list(&town, query), expected, "{query}");
    }
    // A month after its resolution only a request by id shows a market.
    town.clock.set(NOW.plus(31 * DAY));
    assert_eq!(list(&town, "status=all"), ["44", "20", "90"]);
    let target = format!("/v1/markets/{}", town.condition());
    assert_eq!(town.send("GET", &target, "").json()["archived"], true);
}

#[test]
fn pages_follow_one_another_to_the_end() {
    let town = Town::new();
    let page = |query: &str| {
        let answer = town.send("GET", &format!("/v1/markets?envelope=true&limit=2{query}"), "");
        let json = answer.json();
        (shown(&answer), json["count"].as_u64(), json["next_cursor"].as_str().map(str::to_owned))
    };
    let (rows, count, next) = page("");
    assert_eq!((rows, count, next.as_deref()), (vec!["51".to_owned(), "20".to_owned()], Some(2), Some("Mg==")));
    let (rows, count, next) = page("&next_cursor=Mg==");
    assert_eq!((rows, count, next.as_deref()), (vec!["90".to_owned()], Some(1), Some("LTE=")));
    for cursor in ["&next_cursor=LTE=", "&cursor=99", "&offset=3"] {
        let (rows, count, next) = page(cursor);
        assert_eq!((rows.len(), count, next.as_deref()), (0, Some(0), Some("LTE=")), "{cursor}");
    }
    assert_eq!(town.send("GET", "/v1/markets?envelope=true&cursor=!", "").code(), (400, "INVALID_CURSOR"));
    assert_eq!(town.send("GET", "/v1/markets?limit=0", "").code(), (422, "VALIDATION_FAILED"));
}

#[test]
fn one_market_is_found_by_condition_or_slug() {
    let town = Town::new();
    let by_condition = town.send("GET", &format!("/v1/markets/{}?include_book=true", town.condition()), "");
    assert_eq!(by_condition.json()["order_book"]["mid"], "0.415");
    assert_eq!(by_condition.header("cache-control"), Some("private, no-store"));
    let by_slug = town.send("GET", "/v1/markets/by-slug/rain-in-lisbon-oct-3", "");
    assert_eq!(by_slug.json()["condition_id"], town.condition());
    assert_eq!(by_slug.header("cache-control"), Some("no-store"));
    for (target, expected) in [
        ("/v1/markets/0x00", (404, "MARKET_NOT_FOUND")),
        ("/v1/markets/by-slug/none", (404, "MARKET_NOT_FOUND")),
        ("/v1/markets/0x00?include_book=maybe", (422, "VALIDATION_FAILED")),
    ] {
        assert_eq!(town.send("GET", target, "").code(), expected, "{target}");
    }
}
