//! Trades of the venue through the limits of resting orders.

use super::Scene;
use crate::fake_polymarket::Market;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::json::{at, micros, micros_at, text};

impl Scene {
    /// The venue reports a trade.
    fn trade(&self, market: &Market, outcome: usize, taker: &str, price: &str, size: &str) {
        let frame = json!({"event_type": "last_trade_price", "market": market.condition, "price": price, "size": size,
                           "asset_id": market.tokens[outcome], "side": taker, "fee_rate_bps": "0",
                           "timestamp": self.fake.tick().to_string()});
        self.fake.say(market, &frame.to_string());
    }

    fn order(&mut self, order: &Value) -> Value {
        self.client.get(&format!("/v1/orders/{}", at(order, "/order_id"))).expect(200)
    }

    /// Waits until this many shares of these orders together are filled; more is an error.
    fn until_filled(&mut self, orders: &[Value], shares: &str) {
        eventually(&format!("{shares} shares"), || {
            let filled: i64 = orders.iter().map(|order| micros_at(&self.order(order), "/filled_quantity")).sum();
            assert!(filled <= micros(shares), "{filled} of {shares}");
            (filled == micros(shares)).then_some(())
        });
    }
}

/// No matching cycle runs meanwhile, and the book never reaches an order.
#[test]
fn trades_through_resting_orders_fill_them() {
    let cases = Cases::of("trades through resting orders");
    let (mut scene, market) = Scene::start(|fake, place| {
        place.set("flags", "match_interval_ms", "60000");
        fake.list(61)
    });
    scene.shows(&market, "0.40", "0.60");
    let limits: Vec<String> = (0..28).map(|number| format!("0.{}", 41 + number / 2)).collect();
    let orders: Vec<Value> = limits.iter().map(|limit| scene.rest(&market, limit)).collect();
    // At the best limit, and by a buyer: neither fills. The third trade passes that limit by a tick.
    scene.trade(&market, 0, "SELL", "0.54", "1000");
    scene.trade(&market, 0, "BUY", "0.30", "1000");
    scene.trade(&market, 0, "SELL", "0.53", "5");
    scene.until_filled(&orders, "5");
    cases.add(3);
    // The same trade reported for the other token counts once.
    let told_at = scene.fake.tick().to_string();
    for (token, side, price) in [(0, "SELL", "0.40"), (1, "BUY", "0.60")] {
        let frame = json!({"event_type": "last_trade_price", "asset_id": market.tokens[token], "side": side,
                           "price": price, "size": "100", "timestamp": told_at});
        scene.fake.say(&market, &frame.to_string());
    }
    scene.trade(&market, 1, "BUY", "0.60", "1");
    scene.until_filled(&orders, "106");
    cases.add(2);
    scene.trade(&market, 0, "SELL", "0.40", "174");
    scene.until_filled(&orders, "280");
    for (order, limit) in orders.iter().zip(&limits) {
        let order = scene.order(order);
        assert_eq!((text(&order, "/status"), text(&order, "/price")), ("FILLED", limit.as_str()), "{order}");
        assert_eq!(micros_at(&order, "/fee"), 0, "{order}");
        cases.one();
    }
    let account = scene.client.get("/v1/account/balance").expect(200);
    let paid: i64 = limits.iter().map(|limit| 10 * micros(limit)).sum();
    assert_eq!(micros_at(&account, "/balance"), micros("10000") - paid, "{account}");
    // Buying one token is selling the other.
    let order = json!({"token_id": market.tokens[1], "side": "BUY", "order_type": "limit", "price": "0.45",
                       "quantity": "10", "time_in_force": "GTC"});
    let other = [scene.client.post("/v1/orders", &order).expect(200)];
    scene.trade(&market, 0, "BUY", "0.55", "100");
    scene.trade(&market, 0, "BUY", "0.56", "3");
    // A trade without a side fills no order.
    scene.trade(&market, 0, "", "0.56", "1");
    scene.trade(&market, 0, "BUY", "0.57", "2");
    scene.until_filled(&other, "5");
    cases.add(2);
    // A start applies no trade a second time.
    scene.restart();
    scene.shows(&market, "0.40", "0.60");
    scene.trade(&market, 0, "BUY", "0.56", "3");
    scene.until_filled(&other, "8");
    cases.one();
}

#[test]
fn under_touch_trades_count_for_nothing() {
    let cases = Cases::of("trades under touch");
    let (mut scene, market) = Scene::start(|fake, place| {
        place.set("flags", "match_interval_ms", "20").set("realism", "fill_model", "\"touch\"");
        fake.list(62)
    });
    scene.shows(&market, "0.40", "0.60");
    let orders = [scene.rest(&market, "0.45")];
    scene.trade(&market, 0, "SELL", "0.30", "1000");
    scene.fake.level(&market, "SELL", "0.45", "3");
    scene.until_filled(&orders, "3");
    cases.add(2);
}
