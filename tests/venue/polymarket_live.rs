//! The server against a stand-in of Polymarket: markets, books, orders, ends, and faults.

mod catalogue;
mod clock;
mod faults;
mod lost;
mod prints;
mod recorded;
mod stated;
mod ticks;

use crate::fake_polymarket::{Fake, Market, Mood, RestFault};
use serde_json::{Value, json};
use std::time::Duration;
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Response};
use tests::json::{at, list, micros, micros_at, text};
use tests::server::{Server, ServerDir};

/// A server connected to the stand-in, and one user.
struct Scene {
    fake: Fake,
    place: ServerDir,
    server: Server,
    client: Client,
    key: String,
}

impl Scene {
    /// `prepare` lists the stand-in's first markets.
    fn start<T>(prepare: impl FnOnce(&Fake, &mut ServerDir) -> T) -> (Scene, T) {
        let fake = Fake::start();
        let mut place = ServerDir::new();
        fake.configure(&mut place);
        let prepared = prepare(&fake, &mut place);
        let user = place.seed(1, "enterprise", "10000").remove(0);
        // Without any market a server is not ready, but listens.
        let server = place.spawn_with(&[], &[]).listening().unwrap_or_else(|output| panic!("{output}"));
        let client = server.with_key(&user.key);
        (Scene { fake, place, server, client, key: user.key }, prepared)
    }

    fn restart(&mut self) {
        self.server.kill();
        self.server = self.place.spawn_with(&[], &[]).listening().unwrap_or_else(|output| panic!("{output}"));
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
        panic!("no book of {bid} and {ask}, but {last:?}; the server's output:\n{}", self.server.output());
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

    /// A market as the server shows it; waits until `ready` accepts it.
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
    // Decided: by the oracle, by halves, and by the order book's service if the catalogue has no result.
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
    // A dispute is neither paid nor lost in a restart.
    scene.restart();
    let detail = scene.market(&disputed, |detail| at(detail, "/closed") == true);
    assert_eq!(at(&detail, "/resolved_outcome"), &Value::Null, "{detail}");
    let account = scene.client.get("/v1/account/balance").expect(200);
    assert_eq!(micros_at(&account, "/balance"), expected);
    scene.fake.change(&disputed, json!({"umaResolutionStatus": "resolved"}));
    scene.market(&disputed, |detail| at(detail, "/resolved_outcome") == "Yes");
    cases.add(3);
}

#[test]
fn an_outage_of_the_venue_is_reported_and_ends() {
    let cases = Cases::of("a venue that is gone");
    let (mut scene, market) = Scene::start(|fake, _| {
        fake.gone(true);
        fake.list(31)
    });
    let listed = scene.client.get("/v1/markets?status=all").expect(200);
    assert!(list(&listed, "").is_empty(), "nothing was received: {listed}");
    scene.fake.gone(false);
    scene.shows(&market, "0.40", "0.60");
    assert_eq!(text(&scene.buy(&market, "0.70", "10").expect(200), "/price"), "0.60");
    cases.add(3);
    // During the outage: immediate orders are refused, others rest and report why.
    scene.fake.gone(true);
    eventually("an outage", || {
        Some(scene.buy(&market, "0.70", "10")).filter(|answer| answer.code() == "VENUE_UNAVAILABLE")
    })
    .refused(503, "VENUE_UNAVAILABLE");
    let resting = scene.rest(&market, "0.65");
    assert_eq!((text(&resting, "/status"), text(&resting, "/hold_reason")), ("PENDING", "venue_outage"), "{resting}");
    cases.add(2);
    // After a start without the venue the earlier state is known, and no book has been received: a missing book is not
    // an empty one, and no outage ends.
    scene.place.set("flags", "match_interval_ms", "20");
    scene.restart();
    scene.market(&market, |_| true);
    for _ in 0..30 {
        scene.buy(&market, "0.70", "10").refused(503, "VENUE_UNAVAILABLE");
        let order = scene.client.get(&format!("/v1/orders/{}", at(&resting, "/order_id"))).expect(200);
        assert_eq!(text(&order, "/hold_reason"), "venue_outage", "{order}");
        std::thread::sleep(Duration::from_millis(20));
    }
    scene.fake.gone(false);
    scene.shows(&market, "0.40", "0.60");
    eventually("the order to fill", || {
        let page = scene.client.get("/v1/orders?status=FILLED").expect(200);
        let id = at(&resting, "/order_id");
        list(&page, "/orders").iter().any(|order| at(order, "/order_id") == id).then_some(())
    });
    cases.add(3);
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
    // Prices continue while books are silent.
    scene.fake.mood(Mood::Silent);
    scene.fake.fault(RestFault { path: "/books", status: 500, times: usize::MAX, ..RestFault::default() });
    eventually("a stale book", || {
        scene.fake.spot("crypto_prices", "btcusdt", "61036");
        scene.top(&market.tokens[0]).filter(|(_, _, stale)| *stale)
    });
    cases.one();
}
