use super::view::{STREAM_EXAMPLE, SpotEvent};
use crate::api::testing::{Text as _, Town, listing, shows};
use crate::api::updown::view::SpotSource;
use crate::http::record::{Record as _, write_record};
use crate::http::testing::NOW;
use crate::http::testing::World;
use engine::fact;
use engine::id::MarketId;
use engine::market::mutation::MarketMutation;
use engine::market::spot::{self, Family, Spot};
use engine::market::terms::{Asset, Interval, Listing, MarketState, UpDown};
use engine::time::{HOUR, SECOND};
use serde_json::json;

#[test]
fn the_newest_price_of_a_symbol_is_read_in_every_form() {
    let town = Town::new();
    town.clock.set(NOW.plus(SECOND * 2 / 5));
    let price = |target: &str| town.send("GET", target, "");
    let whole = price("/v1/prices/live/BTC").json();
    assert_eq!(whole["source"], "chainlink");
    assert_eq!((&whole["age_seconds"], &whole["stale"]), (&json!(0.4), &json!(false)));
    assert_eq!(whole["timestamp"], "2026-10-02T09:14:05.000Z");
    assert!(whole["price"].as_f64().is_some_and(|price| (30_000.0..140_000.0).contains(&price)), "{whole}");
    let mut cases = 1;
    for target in [
        "/prices/live/BTC",
        "/v1/prices/live/btc",
        "/v1/prices/live/BTCUSDT",
        "/v1/prices/live/btc%2Fusd",
        "/v1/prices/live/BTC?source=chainlink",
        "/v1/prices/live/BTC?source=Chainlink_RTDS",
        "/v1/prices/live/BTC?source=",
    ] {
        assert_eq!(price(target).json(), whole, "{target}");
        cases += 1;
    }
    for (target, status, code) in [
        ("/v1/prices/live/DOGE", 404, "NOT_FOUND"),
        ("/v1/prices/live/SPX", 404, "NOT_FOUND"),
        ("/v1/prices/live/BTC?source=binance", 404, "NOT_FOUND"),
        ("/v1/prices/live/BTC?source=coinbase", 400, "INVALID_REQUEST"),
    ] {
        assert_eq!(price(target).code(), (status, code), "{target}");
        cases += 1;
    }
    let all = price("/v1/prices/live").json();
    assert_eq!((&all["prices"]["BTC"], &all["supported_symbols"]), (&whole, &json!(["BTC", "ETH", "SOL", "XRP"])));
    assert_eq!(all["prices"].as_object().map(|prices| prices.len()), Some(4));
    println!("live prices: {cases} cases");
}

#[test]
fn a_recording_has_no_spot_prices() {
    let town = Town::of(World::with_spot("", &crate::groups::tables(), Spot::board()));
    let all = town.send("GET", "/v1/prices/live", "").json();
    assert_eq!((&all["prices"], &all["supported_symbols"]), (&json!({}), &json!([])));
    assert_eq!(town.send("GET", "/v1/prices/live/BTC", "").code(), (404, "NOT_FOUND"));
}

/// Every label that the engine has is in the machine description.
#[test]
fn a_live_venue_names_its_sources() {
    let schema = schemars::schema_for!(SpotSource).to_value();
    let described = schema["enum"].as_array().expect("a list of words");
    let mut cases = 0;
    for (symbol, family, label) in [("BTC", "chainlink", "chainlink_rtds"), ("ETH", "binance", "polymarket_rtds")] {
        let spot = Spot::board();
        spot.tell(Asset::Btc, Family::Chainlink, 64_321_500_000, NOW);
        spot.tell(Asset::Eth, Family::Binance, 2_511_400_000, NOW);
        let town = Town::of(World::with_spot("", &crate::groups::tables(), spot));
        for query in [String::new(), format!("?source={family}")] {
            let price = town.send("GET", &format!("/v1/prices/live/{symbol}{query}"), "").json();
            assert_eq!(price["source"], label, "{symbol}{query}");
            cases += 1;
        }
        assert!(described.contains(&json!(label)), "{label} is not described: {schema}");
    }
    assert!(described.contains(&json!(spot::SOURCE)), "the label of computed prices is not described: {schema}");
    println!("labels of spot prices: {cases} cases");
}

#[test]
fn the_price_to_beat_is_known_once_the_window_is_open() {
    let town = Town::new();
    let id = MarketId(town.catalog.len() as u32);
    let start = NOW.plus(HOUR);
    let window = UpDown { asset: Asset::Eth, interval: Interval::Hour, start, end: start.plus(HOUR) };
    let market = Listing { updown: Some(window), ..listing(0x77, ["901244", "330781"]) };
    let condition = market.condition.clone();
    let (listing, state) = (Box::new(market), MarketState::Active);
    town.catalog.publish(&MarketMutation::MarketListed(fact::MarketListed { market: id, listing, state, at: NOW }));
    let price_to_beat = |id: &str| town.send("GET", &format!("/v1/prices/ptb/{id}"), "");
    assert_eq!(price_to_beat(&condition).code(), (404, "NOT_FOUND"), "nothing is known yet");
    town.catalog.strike(id, Some("2511.40"), None);
    assert_eq!(price_to_beat(&condition).code(), (404, "NOT_FOUND"), "it is known from the start of the window on");
    town.clock.set(start);
    for id in [condition.as_str(), "901244", "330781"] {
        let expected = r#"{"price":2511.4,"asset":"ETH","start_date":"2026-10-02T10:14:05Z","source":"chainlink"}"#;
        assert_eq!(price_to_beat(id).text(), expected);
    }
    for id in ["0x00", "5", town.condition(), "81140002"] {
        assert_eq!(price_to_beat(id).code(), (404, "NOT_FOUND"), "{id}");
    }
    println!("prices to beat: 9 cases");
}

#[test]
fn the_example_of_the_stream_is_its_record() {
    let mut expected = b"event: crypto_price\ndata: ".to_vec();
    write_record(&mut expected, &SpotEvent::example());
    expected.extend_from_slice(b"\n\n");
    assert_eq!(STREAM_EXAMPLE.as_bytes(), expected);
}

#[test]
fn an_empty_subscription_is_refused() {
    let town = Town::new();
    let many = vec!["0x00"; 51].join(",");
    let cases = [
        ("", "INVALID_REQUEST"),
        ("?crypto=", "INVALID_REQUEST"),
        ("?crypto=,%20,&condition_ids=,", "INVALID_REQUEST"),
        ("?crypto=BTC&crypto_source=coinbase", "INVALID_REQUEST"),
        (&format!("?condition_ids={many}"), "INVALID_REQUEST"),
    ];
    for (query, code) in cases {
        for path in ["/v1/prices/stream", "/prices/stream"] {
            assert_eq!(town.send("GET", &format!("{path}{query}"), "").code(), (400, code), "{path}{query}");
        }
    }
    let head = town.send("HEAD", "/v1/prices/stream?crypto=BTC", "");
    assert_eq!((head.status, head.header("content-type")), (200, Some("text/event-stream")));
    for (name, value) in [("cache-control", "no-cache, no-transform"), ("x-accel-buffering", "no")] {
        assert_eq!(head.header(name), Some(value));
    }
    shows(town.send("GET", "/v1/prices/live/BTC", "").text().as_bytes(), r#"{"symbol":"BTC"}"#);
    println!("refused streams: {} cases", 2 * cases.len());
}
