use crate::api::testing::{Town, listing};
use crate::http::testing::NOW;
use engine::amount::{Price, Qty};
use engine::fact;
use engine::id::{MarketId, Outcome};
use engine::market::mutation::MarketMutation;
use engine::market::terms::{Asset, EventTerms, Interval, Listing, MarketState, UpDown};
use engine::time::{HOUR, SECOND, Timestamp};
use serde_json::{Value, json};

const MINUTE: u64 = 60 * SECOND;
const OPEN: &str = concat!(
    "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n",
    "[flags]\nhigh_freq_updown_enabled = true\n"
);

fn at(minutes: i64) -> Timestamp {
    Timestamp((NOW.0 as i64 + minutes * MINUTE as i64) as u64)
}

/// A window that starts and ends this many minutes from now.
fn add(town: &Town, (asset, interval): (Asset, Interval), start: i64, end: i64) -> MarketId {
    let id = town.catalog.len() as u32;
    let (market, number) = (MarketId(id), id as u8);
    let listing = Listing {
        updown: Some(UpDown { asset, interval, start: at(start), end: at(end) }),
        outcomes: ["Up".into(), "Down".into()],
        slug: format!("{}-{}-{start}", asset.name(), interval.name()),
        ..listing(number, [&format!("{id}1"), &format!("{id}2")])
    };
    let listing = Box::new(listing);
    town.catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
        market,
        listing,
        state: MarketState::Active,
        at: NOW,
    }));
    market
}

fn slugs(page: &Value) -> Vec<&str> {
    page["markets"].as_array().expect("an array").iter().map(|row| row["slug"].as_str().expect("a text")).collect()
}

/// Windows at every edge, those that are not shown among them.
fn windows(town: &Town) {
    use {Asset::*, Interval::*};
    for (kind, start, end) in [
        ((Btc, Hour), -121, -60),
        ((Btc, Hour), -119, -59),
        ((Eth, FiveMinutes), -3, 2),
        ((Btc, FifteenMinutes), 120, 135),
        ((Btc, FifteenMinutes), 121, 136),
        ((Sol, FourHours), 26 * 60, 30 * 60),
        ((Sol, FourHours), 26 * 60 + 1, 30 * 60 + 1),
        ((Spx, Daily), 26 * 60, 51 * 60),
        ((Spx, Daily), -600, 840),
    ] {
        add(town, kind, start, end);
    }
    town.catalog.sort();
}

#[test]
fn the_window_has_exact_edges() {
    let town = Town::with(OPEN);
    windows(&town);
    let all = ["BTC-1H--119", "ETH-5M--3", "BTC-15M-120", "SPX-daily--600", "SOL-4H-1560", "SPX-daily-1560"];
    let cases: [(&str, Vec<&str>, u64); 13] = [
        ("", all.to_vec(), 6),
        ("limit=500", all.to_vec(), 6),
        ("limit=2", all[..2].to_vec(), 6),
        ("limit=1&asset=spx", vec![all[3]], 2),
        ("asset=BTC", vec![all[0], all[2]], 2),
        ("asset=btc&interval=1h", vec![all[0]], 1),
        ("interval=DAILY", vec![all[3], all[5]], 2),
        ("interval=5m", vec![all[1]], 1),
        ("interval=15M", vec![all[2]], 1),
        ("interval=4H", vec![all[4]], 1),
        ("asset=xrp", vec![], 0),
        ("asset=ndx&interval=5M", vec![], 0),
        ("unknown=1&asset=sol", vec![all[4]], 1),
    ];
    for (query, expected, total) in &cases {
        let page = town.send("GET", &format!("/v1/markets/updown?{query}"), "").json();
        assert_eq!((&slugs(&page), &page["total"]), (expected, &json!(total)), "{query}");
        // Of the window, whether the list shows them or not.
        let counts = json!({"5M": 1, "15M": 1, "1H": 1, "4H": 1, "daily": 2});
        assert_eq!(page["interval_counts"], counts, "{query}");
        assert_eq!(page["asset_counts"], json!({"BTC": 2, "ETH": 1, "SOL": 1, "SPX": 2}), "{query}");
        assert_eq!(page["available_intervals"], json!(["5M", "15M", "1H", "4H", "daily"]));
        assert_eq!(page["available_assets"], json!(["BTC", "ETH", "SOL", "SPX"]));
        let spots: Vec<&String> = page["crypto_prices"].as_object().expect("an object").keys().collect();
        assert_eq!(
            (spots.as_slice(), &page["cache_hit"]),
            (&["BTC", "ETH", "SOL", "XRP"].map(String::from).each_ref()[..], &json!(true))
        );
        let spot = &page["crypto_prices"]["BTC"];
        assert_eq!(
            (&spot["symbol"], &spot["source"], &spot["change_24h"]),
            (&json!("BTC"), &json!("chainlink"), &Value::Null)
        );
        assert!(spot["price"].is_string(), "{spot}");
        assert_eq!(page["timestamp"], "2026-10-02T09:14:05Z");
    }
    println!("up-or-down windows: {} cases", cases.len());
}

#[test]
fn short_intervals_need_their_flag() {
    let town = Town::new();
    windows(&town);
    let page = town.send("GET", "/v1/markets/updown", "").json();
    assert_eq!(slugs(&page), ["BTC-1H--119", "SPX-daily--600", "SOL-4H-1560", "SPX-daily-1560"]);
    assert_eq!(page["interval_counts"], json!({"1H": 1, "4H": 1, "daily": 2}));
    for interval in ["5M", "15m"] {
        let page = town.send("GET", &format!("/v1/markets/updown?interval={interval}"), "").json();
        assert_eq!((slugs(&page), &page["total"]), (vec![], &json!(0)));
    }
    let listed = town.send("GET", "/v1/markets?status=all&limit=200", "").json();
    assert_eq!(listed.as_array().expect("an array").len(), 3, "no window is in the list of markets");
}

#[test]
fn intervals_are_counted() {
    let town = Town::with(OPEN);
    windows(&town);
    let cases = [
        (
            "asset=btc",
            json!({"asset": "BTC", "intervals": [
                {"interval": "15M", "count": 1}, {"interval": "1H", "count": 1}
            ]}),
        ),
        ("asset=NDX", json!({"asset": "NDX", "intervals": []})),
        (
            "",
            json!({"asset": null, "intervals": [
                {"interval": "5M", "count": 1}, {"interval": "15M", "count": 1}, {"interval": "1H", "count": 1},
                {"interval": "4H", "count": 1}, {"interval": "daily", "count": 2}
            ]}),
        ),
    ];
    for (query, expected) in &cases {
        let answer = town.send("GET", &format!("/v1/markets/updown/intervals?{query}"), "");
        assert_eq!(&answer.json(), expected, "{query}");
    }
    println!("up-or-down intervals: {} cases", cases.len());
}

#[test]
fn what_there_is_not_is_not_found_and_bounds_are_kept() {
    let town = Town::new();
    let cases = [
        ("/v1/markets/updown?asset=DOGE", 404, "MARKET_NOT_FOUND"),
        ("/v1/markets/updown?asset=", 404, "MARKET_NOT_FOUND"),
        ("/v1/markets/updown?interval=2H", 404, "MARKET_NOT_FOUND"),
        ("/v1/markets/updown?interval=", 404, "MARKET_NOT_FOUND"),
        ("/v1/markets/updown?limit=0", 422, "VALIDATION_FAILED"),
        ("/v1/markets/updown?limit=501", 422, "VALIDATION_FAILED"),
        ("/v1/markets/updown?limit=-1", 422, "VALIDATION_FAILED"),
        ("/v1/markets/updown?limit=", 422, "VALIDATION_FAILED"),
        ("/v1/markets/updown?limit=x&asset=DOGE", 422, "VALIDATION_FAILED"),
        ("/v1/markets/updown/intervals?asset=DOGE", 404, "MARKET_NOT_FOUND"),
    ];
    for (target, status, code) in cases {
        assert_eq!(town.send("GET", target, "").code(), (status, code), "{target}");
    }
    println!("up-or-down refusals: {} cases", cases.len());
}

#[test]
fn a_row_shows_the_market() {
    let town = Town::new();
    let (asset, interval) = (Asset::Eth, Interval::Hour);
    let id = MarketId(town.catalog.len() as u32);
    // 10:00 to 11:00 UTC on 2 October is 6 to 7 in New York.
    let start = Timestamp::from_secs(1_790_935_200);
    let market = Listing {
        venue_market_id: "55871".into(),
        updown: Some(UpDown { asset, interval, start, end: start.plus(HOUR) }),
        outcomes: ["Up".into(), "Down".into()],
        slug: "eth-updown-1h-1790935200".into(),
        question: "ETH up or down?".into(),
        tags: vec!["up-or-down".into(), "ethereum".into()],
        event: Some(EventTerms {
            id: "e-9001".into(),
            slug: "eth".into(),
            title: "ETH up or down, 6–7 AM ET".into(),
            image: None,
            end: None,
        }),
        ..listing(0x77, ["901244", "330781"])
    };
    let listing = Box::new(market);
    town.catalog.publish(&MarketMutation::MarketListed(fact::MarketListed {
        market: id,
        listing,
        state: MarketState::Active,
        at: NOW,
    }));
    town.catalog.strike(id, Some("2511.40"), Some("2511.4"));
    town.catalog.sort();
    let row = || town.send("GET", "/v1/markets/updown?asset=ETH", "").json()["markets"][0].clone();
    let shown = row();
    assert_eq!((&shown["live_price"], &shown["markets"][0]["outcome_prices"]), (&Value::Null, &json!("[]")));
    // The window is not open yet.
    assert_eq!((&shown["group_item_threshold"], &shown["event_metadata_ptb"]), (&Value::Null, &Value::Null));
    let level = |price, size| (Price(price), Qty(size));
    town.writer.borrow_mut().frame(0, NOW, |frame| {
        let (bids, asks) = ([level(5_200, 1_000_000)], [level(5_400, 1_000_000)]);
        frame.snapshot(id.instrument(Outcome::First), &bids, &asks, NOW, None);
    });
    town.clock.set(start.plus(12 * MINUTE));
    let expected = json!({
        "event_id": "e-9001", "condition_id": format!("0x{}", "77".repeat(32)), "slug": "eth-updown-1h-1790935200",
        "title": "ETH up or down, 6–7 AM ET", "description": null, "asset": "ETH", "interval": "1H",
        "time_range": "6:00 AM-7:00 AM ET", "date_display": "October 2", "start_date": "2026-10-02T10:00:00Z",
        "end_date": "2026-10-02T11:00:00Z", "active": true, "closed": false, "resolved": false,
        "tags": ["up-or-down", "ethereum"],
        "markets": [{
            "id": "55871", "condition_id": format!("0x{}", "77".repeat(32)), "question": "ETH up or down?",
            "outcomes": "[\"Up\",\"Down\"]", "outcome_prices": "[\"0.53\",\"0.47\"]",
            "token_ids": "[\"901244\",\"330781\"]"
        }],
        "live_price": {"buy": 0.52, "sell": 0.54, "updated_at": "2026-10-02T09:14:05Z"},
        "group_item_threshold": "2511.40", "event_metadata_ptb": "2511.4", "image": null, "icon": null
    });
    assert_eq!(row(), expected);
}
