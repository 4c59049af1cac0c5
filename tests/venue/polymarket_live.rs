//! The server against a stand-in of Polymarket: markets, books, orders, ends, and everything that goes wrong.

use crate::fake_polymarket::{Fake, Market, Mood, RestFault};
use serde_json::{Value, json};
use std::io::Read;
use std::time::Duration;
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Response};
use tests::json::{at, list, micros, micros_at, text};
use tests::server::{Place, Server};
use tests::world::changed;

/// A server beside the stand-in, and one user.
struct Scene {
    fake: Fake,
    place: Place,
    server: Server,
    client: Client,
    key: String,
}

impl Scene {
    /// `prepare` lists what the stand-in has from the start.
    fn start<T>(prepare: impl FnOnce(&Fake, &mut Place) -> T) -> (Scene, T) {
        let fake = Fake::start();
        let mut place = Place::new();
        fake.configure(&mut place);
        let prepared = prepare(&fake, &mut place);
        let user = place.seed(1, "enterprise", "10000").remove(0);
        // Without any market a server is not ready, and listens all the same.
        let server = place.spawn_with(&[], &[]).listening().unwrap_or_else(|said| panic!("{said}"));
        let client = server.with_key(&user.key);
        (Scene { fake, place, server, client, key: user.key }, prepared)
    }

    fn restart(&mut self) {
        self.server.kill();
        self.server = self.place.spawn_with(&[], &[]).listening().unwrap_or_else(|said| panic!("{said}"));
        self.client = self.server.with_key(&self.key);
    }

    /// Best bid and ask of a token and whether its book is stale; `None` without a book.
    fn top(&mut self, token: &str) -> Option<(String, String, bool)> {
        let answer = self.client.get(&format!("/v1/book?token_id={token}"));
        if answer.status != 200 {
            return None;
        }
        let book = answer.json();
        // The best level comes last.
        let best =
            |side: &str| list(&book, side).last().map_or("none".into(), |level| text(level, "/price").to_owned());
        Some((best("/bids"), best("/asks"), at(&book, "/stale") == true))
    }

    /// Waits for a book with these best prices that is not stale.
    #[track_caller]
    fn shows(&mut self, market: &Market, bid: &str, ask: &str) {
        let (token, mut last) = (market.tokens[0].clone(), None);
        let begun = std::time::Instant::now();
        while begun.elapsed() < tests::PATIENCE {
            last = self.top(&token);
            if last.as_ref().is_some_and(|(b, a, stale)| (b.as_str(), a.as_str(), *stale) == (bid, ask, false)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("no book of {bid} and {ask}, but {last:?}; the server said:\n{}", self.server.said());
    }

    fn until_stale(&mut self, market: &Market) {
        let token = market.tokens[0].clone();
        eventually("a stale book", || self.top(&token).filter(|(_, _, stale)| *stale));
    }

    fn buy(&mut self, market: &Market, price: &str, quantity: &str) -> Response {
        let order = json!({"token_id": market.tokens[0], "side": "BUY", "order_type": "market", "price": price,
                           "quantity": quantity, "time_in_force": "FAK"});
        self.client.post("/v1/orders", &order)
    }

    fn rest(&mut self, market: &Market, price: &str) -> Value {
        let order = json!({"token_id": market.tokens[0], "side": "BUY", "order_type": "limit", "price": price,
                           "quantity": "10", "time_in_force": "GTC"});
        self.client.post("/v1/orders", &order).expect(200)
    }

    /// A market as the server shows it; waits for what is wanted of it.
    fn market(&mut self, market: &Market, wanted: impl Fn(&Value) -> bool) -> Value {
        let path = format!("/v1/markets/{}", market.condition);
        eventually(&path, || Some(self.client.get(&path)).filter(|a| a.status == 200).map(|a| a.json()).filter(&wanted))
    }
}

#[test]
fn a_market_is_listed_traded_and_paid_out() {
    let cases = Cases::of("a market's life");
    let (mut scene, [won, split, disputed, early]) =
        Scene::start(|fake, _| [21, 22, 23, 24].map(|number| fake.list(number)));
    let bought = [&won, &split, &disputed, &early].map(|market| {
        scene.shows(market, "0.40", "0.60");
        let order = scene.buy(market, "0.70", "550").expect(200);
        assert_eq!((text(&order, "/status"), text(&order, "/filled_quantity")), ("FILLED", "550"), "{order}");
        // 500 at 0.60 and 50 at 0.70.
        assert_eq!(micros_at(&order, "/notional"), micros("335"), "{order}");
        cases.one();
        micros_at(&order, "/notional") + micros_at(&order, "/fee")
    });
    // Closed and not decided: nothing is paid, nothing is traded.
    scene.fake.change(&won, json!({"closed": true, "umaResolutionStatus": "proposed"}));
    scene.fake.change(
        &disputed,
        json!({"closed": true, "outcomePrices": "[\"1\", \"0\"]", "umaResolutionStatus": "disputed"}),
    );
    for market in [&won, &disputed] {
        scene.market(market, |detail| at(detail, "/closed") == true);
        let refused = scene.buy(market, "0.70", "10");
        assert!(refused.status >= 400, "{}", refused.lossy());
        cases.one();
    }
    // Decided: by the oracle, by halves, and by the order book's service where the catalogue says nothing more.
    scene.fake.change(&won, json!({"outcomePrices": "[\"1\", \"0\"]", "umaResolutionStatus": "resolved"}));
    scene.fake.change(
        &split,
        json!({"closed": true, "outcomePrices": "[\"0.5\", \"0.5\"]", "umaResolutionStatus": "settled"}),
    );
    scene.fake.clob(
        &early,
        json!({"condition_id": early.condition, "closed": true, "active": true, "accepting_orders": false, "tokens": [
            {"token_id": early.tokens[0], "outcome": "Yes", "price": 0, "winner": false},
            {"token_id": early.tokens[1], "outcome": "No", "price": 1, "winner": true}]}),
    );
    scene.fake.change(&early, json!({"closed": true, "outcomePrices": "[\"0\", \"1\"]"}));
    for (market, outcome) in [(&won, Some("Yes")), (&early, Some("No"))] {
        let detail = scene.market(market, |detail| at(detail, "/resolved_outcome").is_string());
        assert_eq!(at(&detail, "/resolved_outcome").as_str(), outcome);
        cases.one();
    }
    let spent: i64 = bought.iter().sum();
    let expected = micros("10000") - spent + micros("550") + micros("275");
    eventually("the payouts", || {
        let account = scene.client.get("/v1/account/balance").expect(200);
        (micros_at(&account, "/balance") == expected).then_some(())
    });
    // What is in dispute is neither paid nor forgotten by a restart.
    scene.restart();
    let detail = scene.market(&disputed, |detail| at(detail, "/closed") == true);
    assert_eq!(at(&detail, "/resolved_outcome"), &Value::Null, "{detail}");
    let account = scene.client.get("/v1/account/balance").expect(200);
    assert_eq!(micros_at(&account, "/balance"), expected);
    scene.fake.change(&disputed, json!({"umaResolutionStatus": "resolved"}));
    scene.market(&disputed, |detail| at(detail, "/resolved_outcome") == "Yes");
    cases.add(3);
}

/// Recorded windows, or `None` after saying why there are none.
fn recorded_windows() -> Option<Vec<Value>> {
    let root = std::env::var_os("PAPERTAPE_VENUE_DATA");
    let root = root.map_or_else(|| tests::binary::workspace().join("../shared/data/venue"), std::path::PathBuf::from);
    let path = root.join("polymarket_gamma/BTC-5m-markets-2026-07-24.jsonl.gz");
    let Ok(file) = std::fs::File::open(&path) else {
        let required = std::env::var_os("PAPERTAPE_REQUIRE_VENUE_DATA").is_some_and(|value| value != "0");
        assert!(!required, "recordings are required and not at {}", path.display());
        println!("SKIPPED: no recording at {}", path.display());
        return None;
    };
    let mut text = String::new();
    flate2::read::GzDecoder::new(file).read_to_string(&mut text).expect("a recording can be read");
    let row = |line: &str| serde_json::from_str::<Value>(line).expect("a line of JSON")["raw"].clone();
    Some(text.lines().take(40).map(row).collect())
}

#[test]
fn recorded_windows_end_as_they_did() {
    let cases = Cases::of("recorded windows");
    let Some(rows) = recorded_windows() else { return cases.one() };
    let (mut scene, ()) = Scene::start(|fake, _| {
        for row in &rows {
            let open = json!({"closed": false, "acceptingOrders": true, "outcomePrices": "[\"0.5\", \"0.5\"]",
                              "umaResolutionStatus": null, "automaticallyResolved": null});
            fake.list_row(changed(row, &open));
        }
    });
    let path = |row: &Value| format!("/v1/markets/{}", text(row, "/conditionId"));
    for row in &rows {
        eventually(text(row, "/slug"), || (scene.client.get(&path(row)).status == 200).then_some(()));
    }
    rows.iter().for_each(|row| scene.fake.list_row(row.clone()));
    for row in &rows {
        let winner = if text(row, "/outcomePrices").starts_with("[\"1\"") { "Up" } else { "Down" };
        eventually(text(row, "/slug"), || {
            let detail = scene.client.get(&path(row)).expect(200);
            (at(&detail, "/resolved_outcome") == winner).then_some(())
        });
        cases.one();
    }
}

#[test]
fn the_whole_catalogue_is_read_within_the_budget() {
    let cases = Cases::of("a crawl");
    for keyset in [true, false] {
        let (mut scene, last) = Scene::start(|fake, place| {
            fake.keyset(keyset);
            place.set("venue", "newest_every_ms", "60000");
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
        eventually("coming windows to be asked for", || {
            let asked = scene.fake.calls("/events?limit=100&slug=");
            asked.iter().any(|call| call.contains("slug=xrp-updown-15m-")).then_some(())
        });
        cases.add(6);
    }
}

#[test]
fn a_venue_that_is_gone_is_said_to_be_and_comes_back() {
    let cases = Cases::of("a venue that is gone");
    let (mut scene, market) = Scene::start(|fake, _| {
        fake.gone(true);
        fake.list(31)
    });
    let listed = scene.client.get("/v1/markets?status=all").expect(200);
    assert!(list(&listed, "").is_empty(), "nothing was heard: {listed}");
    scene.fake.gone(false);
    scene.shows(&market, "0.40", "0.60");
    assert_eq!(text(&scene.buy(&market, "0.70", "10").expect(200), "/price"), "0.60");
    cases.add(3);
    // In the middle: what is at once is refused, what can wait rests and says why.
    scene.fake.gone(true);
    eventually("an outage", || {
        Some(scene.buy(&market, "0.70", "10")).filter(|answer| answer.code() == "VENUE_UNAVAILABLE")
    })
    .refused(503, "VENUE_UNAVAILABLE");
    let resting = scene.rest(&market, "0.65");
    assert_eq!((text(&resting, "/status"), text(&resting, "/hold_reason")), ("PENDING", "venue_outage"), "{resting}");
    cases.add(2);
    // A start without the venue knows what it knew.
    scene.restart();
    scene.market(&market, |_| true);
    eventually("an outage", || {
        Some(scene.buy(&market, "0.70", "10")).filter(|answer| answer.code() == "VENUE_UNAVAILABLE")
    });
    scene.fake.gone(false);
    scene.shows(&market, "0.40", "0.60");
    eventually("the order to fill", || {
        let page = scene.client.get("/v1/orders?status=FILLED").expect(200);
        let id = at(&resting, "/order_id");
        list(&page, "/orders").iter().any(|order| at(order, "/order_id") == id).then_some(())
    });
    cases.add(3);
}

/// What goes wrong, and what the book shows then; `None`: it is stale.
type Row = (&'static str, fn(&Fake, &Market), Option<(&'static str, &'static str)>);

const RIGHT: Option<(&str, &str)> = Some(("0.40", "0.60"));

fn status(status: u16, retry_after: Option<u32>) -> RestFault {
    RestFault { status, retry_after, times: 3, ..RestFault::default() }
}

/// Rows of faults; after each the venue is well again, tells its books anew, and an order fills.
const FAULTS: &[Row] = &[
    ("nothing", |_, _| {}, RIGHT),
    (
        "frames told twice",
        |fake, market| {
            fake.twice(true);
            fake.level(market, "BUY", "0.41", "100");
            fake.level(market, "BUY", "0.42", "100");
            fake.level(market, "BUY", "0.42", "0");
        },
        Some(("0.41", "0.60")),
    ),
    (
        "a lost frame, and whole books behind it",
        |fake, market| {
            fake.lose(1);
            fake.level(market, "BUY", "0.45", "100");
            fake.tell_books(market);
        },
        Some(("0.45", "0.60")),
    ),
    (
        "a lost frame, and best prices that differ behind it",
        |fake, market| {
            fake.lose(1);
            fake.level(market, "BUY", "0.45", "100");
            ["1", "2", "3"].iter().for_each(|size| fake.level(market, "BUY", "0.20", size));
        },
        Some(("0.45", "0.60")),
    ),
    (
        "a crossed book",
        |fake, market| {
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
                r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"0.6","size":"5"}}],"asks":[{{"price":"0.4","size":"5"}}]}}"#
            ));
        },
        RIGHT,
    ),
    (
        "silence with pongs",
        |fake, _| {
            fake.mood(Mood::Silent);
            fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
        },
        None,
    ),
    (
        "a socket that neither reads nor writes",
        |fake, _| {
            fake.mood(Mood::HalfOpen);
            fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
        },
        None,
    ),
    ("closed sockets", |fake, _| fake.close(), RIGHT),
    (
        "an empty first dump",
        |fake, _| {
            fake.dumps(false);
            fake.close();
        },
        RIGHT,
    ),
    (
        "an empty book",
        |fake, market| {
            fake.book(market, &[], &[]);
            fake.tell_books(market);
        },
        Some(("none", "none")),
    ),
    (
        "one side is empty",
        |fake, market| {
            fake.book(market, &[], &[("0.60", "500")]);
            fake.tell_books(market);
        },
        Some(("none", "0.60")),
    ),
    (
        "sides under their old names",
        |fake, market| {
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":{at},"buys":[{{"price":".4","size":5}}],"sells":[{{"price":0.6,"size":"5.0"}}]}}"#
        ));
        },
        RIGHT,
    ),
    (
        "levels finer than the grid",
        |fake, market| {
            let at = fake.tick();
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":"{at}","bids":[{{"price":"0.40005","size":"5"}},{{"price":"0.4","size":"5"}}],"asks":[{{"price":"0.6","size":"5"}}]}}"#
        ));
        },
        RIGHT,
    ),
    (
        "broken JSON",
        |fake, market| {
            for text in ["{", "[{\"event_type\":\"book\"", "\u{1}", "nul", "[[[[", "\"", "PONG?", "[]", "{}", "null"] {
                fake.say(market, text);
            }
        },
        RIGHT,
    ),
    (
        "wrong types and huge numbers",
        |fake, market| {
            let token = &market.tokens[0];
            let huge = "9".repeat(400);
            for text in [
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":{huge},"size":"1","side":"BUY"}}]}}"#
                ),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"0.5","size":"{huge}","side":"BUY"}}]}}"#
                ),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"0.5","size":"-5","side":"BUY"}}]}}"#
                ),
                format!(r#"{{"event_type":"price_change","price_changes":{{"asset_id":"{token}"}}}}"#),
                format!(
                    r#"{{"event_type":"price_change","price_changes":[{{"asset_id":"{token}","price":"NaN","size":"1","side":"UP"}}]}}"#
                ),
                format!(r#"{{"event_type":"book","asset_id":["{token}"],"bids":7}}"#),
                format!(r#"{{"event_type":{{}},"asset_id":"{token}"}}"#),
                format!(r#"{{"event_type":"tick_size_change","asset_id":"{token}","new_tick_size":"-1"}}"#),
                format!(r#"{{"event_type":"last_trade_price","asset_id":"{token}","price":"","size":null}}"#),
                r#"{"event_type":"market_resolved","market":"0x1","winning_asset_id":5}"#.into(),
                r#"{"event_type":"new_market","market":{"a":1},"assets_ids":["1"]}"#.into(),
            ] {
                fake.say(market, &text);
            }
        },
        RIGHT,
    ),
    (
        "unknown events and tokens",
        |fake, market| {
            for text in [
                r#"{"event_type":"fireworks","asset_id":"1"}"#,
                r#"{"event_type":"book","asset_id":"7","timestamp":"1","bids":[],"asks":[]}"#,
                r#"{"event_type":"best_bid_ask","asset_id":"7","best_bid":"0.1","best_ask":"0.2"}"#,
            ] {
                fake.say(market, text);
            }
        },
        RIGHT,
    ),
    (
        "an old book",
        |fake, market| {
            let token = &market.tokens[0];
            fake.say(market, &format!(
            r#"{{"event_type":"book","asset_id":"{token}","timestamp":"1000","bids":[{{"price":"0.1","size":"5"}}],"asks":[]}}"#
        ));
        },
        RIGHT,
    ),
    (
        "a finer tick near the top",
        |fake, market| {
            fake.book(market, &[("0.96", "50")], &[("0.97", "50")]);
            fake.tell_books(market);
            for token in &market.tokens {
                let at = fake.tick();
                fake.say(market, &format!(
                r#"{{"event_type":"tick_size_change","asset_id":"{token}","old_tick_size":"0.01","new_tick_size":"0.001","timestamp":"{at}"}}"#
            ));
            }
            fake.level(market, "SELL", "0.965", "500");
        },
        Some(("0.96", "0.965")),
    ),
    (
        "a finer tick near the bottom",
        |fake, market| {
            fake.book(market, &[("0.03", "50")], &[("0.04", "50")]);
            fake.tell_books(market);
            fake.level(market, "BUY", "0.035", "500");
        },
        Some(("0.035", "0.04")),
    ),
    (
        "425 from everywhere",
        |fake, _| {
            fake.fault(status(425, None));
            fake.close();
        },
        RIGHT,
    ),
    (
        "429 that says when",
        |fake, _| {
            fake.fault(RestFault { path: "/events", ..status(429, Some(1)) });
            fake.dumps(false);
            fake.close();
        },
        RIGHT,
    ),
    (
        "500 from the order book's service",
        |fake, _| {
            fake.fault(RestFault { path: "/books", ..status(500, None) });
            fake.dumps(false);
            fake.close();
        },
        RIGHT,
    ),
    (
        "slow pages",
        |fake, _| {
            let slow = Duration::from_millis(700);
            fake.fault(RestFault { slow, times: 20, ..RestFault::default() });
        },
        RIGHT,
    ),
    (
        "pages that never come",
        |fake, _| {
            let slow = Duration::from_secs(30);
            fake.fault(RestFault { path: "/events", slow, times: 2, ..RestFault::default() });
        },
        RIGHT,
    ),
    (
        "pages that are no pages",
        |fake, _| {
            for body in ["", "[", "{\"events\":7}", "[null,7,[],{\"markets\":\"x\"}]", "<html>"] {
                fake.fault(RestFault { body: Some(body.into()), times: 2, ..RestFault::default() });
            }
        },
        RIGHT,
    ),
];

#[test]
fn whatever_goes_wrong_a_book_is_right_or_stale() {
    let cases = Cases::of("faults of a venue");
    let (mut scene, (market, other)) = Scene::start(|fake, place| {
        place.set("flags", "trade_quote_max_age_ms", "1000");
        // Whoever is silent is no outage here.
        place.set("venue", "outage_after_ms", "60000");
        (fake.list(41), fake.list(42))
    });
    scene.shows(&market, "0.40", "0.60");
    for (name, wrong, expected) in FAULTS {
        println!("{name}");
        wrong(&scene.fake, &market);
        match expected {
            Some((bid, ask)) => scene.shows(&market, bid, ask),
            None => {
                scene.until_stale(&market);
                let refused = || Some(scene.buy(&market, "0.70", "10")).filter(|answer| answer.status != 200);
                eventually("a refusal", refused).refused(400, "STALE_QUOTE");
            }
        }
        // All is well again.
        scene.fake.mood(Mood::Well);
        scene.fake.no_faults();
        scene.fake.dumps(true);
        scene.fake.twice(false);
        scene.fake.book(&market, &[("0.40", "500"), ("0.30", "100")], &[("0.60", "500"), ("0.70", "100")]);
        scene.fake.tell_books(&market);
        scene.shows(&market, "0.40", "0.60");
        scene.shows(&other, "0.40", "0.60");
        let order = scene.buy(&market, "0.70", "10").expect(200);
        assert_eq!((text(&order, "/status"), text(&order, "/price")), ("FILLED", "0.60"), "{name}: {order}");
        cases.one();
    }
}

#[test]
fn spot_prices_are_shown_and_prove_nothing_of_books() {
    let cases = Cases::of("spot prices");
    let (mut scene, market) = Scene::start(|fake, _| fake.list(51));
    scene.shows(&market, "0.40", "0.60");
    for (topic, symbol, value, path, price, source) in [
        ("crypto_prices", "btcusdt", "61035.86", "/v1/prices/live/BTC", "61035.86", "polymarket_rtds"),
        (
            "crypto_prices_chainlink",
            "btc/usd",
            "61040.1234567",
            "/v1/prices/live/BTC",
            "61040.123456",
            "chainlink_rtds",
        ),
        ("crypto_prices", "btcusdt", "61036", "/v1/prices/live/BTC?source=binance", "61036", "polymarket_rtds"),
        ("crypto_prices_chainlink", "xrp/usd", "0.5", "/v1/prices/live/XRP", "0.5", "chainlink_rtds"),
    ] {
        let price: Value = serde_json::from_str(price).expect("a number");
        let shown = eventually(path, || {
            scene.fake.spot(topic, symbol, value);
            let answer = scene.client.get(path);
            Some(answer)
                .filter(|answer| answer.status == 200)
                .map(|answer| answer.json())
                .filter(|shown| at(shown, "/source") == source && at(shown, "/price") == &price)
        });
        assert_eq!(at(&shown, "/stale"), false, "{shown}");
        cases.one();
    }
    // Prices go on while books are silent.
    scene.fake.mood(Mood::Silent);
    scene.fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
    eventually("a stale book", || {
        scene.fake.spot("crypto_prices", "btcusdt", "61036");
        scene.top(&market.tokens[0]).filter(|(_, _, stale)| *stale)
    });
    cases.one();
}
