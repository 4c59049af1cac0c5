//! The synthetic venue through the server: large enough, all kinds, the same world again after a start.

use serde_json::Value;
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::json::{at, list, micros, text};
use tests::server::ServerDir;

fn all_markets(client: &mut tests::http::Client) -> Vec<Value> {
    let (mut rows, mut cursor) = (Vec::new(), "MA==".to_string());
    while cursor != "LTE=" {
        let page =
            client.get(&format!("/v1/markets?status=all&envelope=true&limit=200&next_cursor={cursor}")).expect(200);
        rows.extend(list(&page, "/data").iter().cloned());
        cursor = text(&page, "/next_cursor").to_string();
    }
    rows
}

#[test]
fn the_world_has_everything_and_comes_again() {
    let cases = Cases::of("the synthetic world");
    let mut place = ServerDir::new();
    place.set("venue", "seed", "2");
    let user = place.seed(1, "enterprise", "10000").remove(0);
    let mut server = place.start();
    let mut client = server.with_key(&user.key);
    let markets = all_markets(&mut client);
    assert!(markets.len() >= 100, "the list of markets is short: {}", markets.len());
    let categories: BTreeSet<&str> = markets.iter().filter_map(|market| at(market, "/category").as_str()).collect();
    for category in
        ["sports", "finance", "politics", "mentions", "tech", "economics", "culture", "weather", "other", "geopolitics"]
    {
        assert!(categories.contains(category), "{category} is missing in {categories:?}");
        cases.one();
    }
    let (mut ticks, mut neg_risk, mut two_sided) = (BTreeSet::new(), 0, 0);
    for market in &markets {
        let token = text(market, "/clob_token_ids/0");
        let tick = client.get(&format!("/v1/tick-size?token_id={token}")).expect(200);
        ticks.insert(at(&tick, "/minimum_tick_size").to_string());
        let risk = client.get(&format!("/v1/neg-risk?token_id={token}")).expect(200);
        neg_risk += usize::from(at(&risk, "/neg_risk") == true);
        let book = client.get(&format!("/v1/book?token_id={token}"));
        if book.status != 200 {
            continue;
        }
        let book = book.json();
        assert_sound(&book);
        two_sided += usize::from(at(&book, "/mid").is_string());
        cases.one();
    }
    assert_eq!(ticks.into_iter().collect::<Vec<_>>(), ["0.0001", "0.001", "0.01", "0.1"], "all four tick sizes");
    assert!(neg_risk > 0 && two_sided * 2 > markets.len(), "{neg_risk} neg-risk, {two_sided} with both sides");

    // A restart continues in the same world.
    let ids = |markets: &[Value]| -> BTreeSet<String> {
        markets
            .iter()
            .map(|market| format!("{} {} {}", market["condition_id"], market["slug"], market["clob_token_ids"]))
            .collect()
    };
    server.kill();
    let server = place.start();
    let again = ids(&all_markets(&mut server.with_key(&user.key)));
    assert!(ids(&markets).is_subset(&again), "a market that was listed stays listed");
    cases.one();
    // And the same seed in another directory is the same world.
    let mut other = ServerDir::new();
    other.set("venue", "seed", "2");
    let user = other.seed(1, "enterprise", "1").remove(0);
    let elsewhere = ids(&all_markets(&mut other.start().with_key(&user.key)));
    let shared = ids(&markets).intersection(&elsewhere).count();
    assert!(shared * 10 >= markets.len() * 8, "{shared} of {} are the same", markets.len());
    cases.one();
}

/// Best last on both sides, on the grid, never crossed, no empty level.
fn assert_sound(book: &Value) {
    let prices =
        |side: &str| -> Vec<i64> { list(book, side).iter().map(|level| micros(text(level, "/price"))).collect() };
    let (bids, asks) = (prices("/bids"), prices("/asks"));
    assert!(bids.is_sorted() && asks.iter().rev().is_sorted(), "{book}");
    if let (Some(bid), Some(ask)) = (bids.last(), asks.last()) {
        assert!(bid < ask, "crossed: {book}");
    }
    for level in list(book, "/bids").iter().chain(list(book, "/asks")) {
        assert!(micros(text(level, "/size")) > 0, "{book}");
        assert!((1..1_000_000).contains(&micros(text(level, "/price"))), "{book}");
    }
}
