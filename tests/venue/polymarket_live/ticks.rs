//! Markets whose tick is 0.005 or 0.0025 are traded as any other.

use super::*;

#[test]
fn ticks_of_a_half_and_a_quarter_of_a_cent_are_traded() {
    /// Market, tick of the catalogue as number and text, the tick of a later frame, prices that fit the later tick and
    /// prices that do not.
    type Row = (u64, f64, &'static str, &'static str, &'static [&'static str], &'static [&'static str]);
    const ROWS: [Row; 2] = [
        (41, 0.01, "0.01", "0.005", &["0.305", "0.31", "0.005", "0.995"], &["0.3025", "0.001", "0.301"]),
        (42, 0.005, "0.005", "0.0025", &["0.3025", "0.305", "0.0025", "0.9975"], &["0.301", "0.3024", "0.001"]),
    ];
    let cases = Cases::of("ticks of half and quarter cents");
    let (mut scene, markets) = Scene::start(|fake, _| {
        ROWS.map(|(number, tick, ..)| {
            let market = fake.list(number);
            fake.change(&market, json!({"orderPriceMinTickSize": tick}));
            market
        })
    });
    for ((_, number, first, next, taken, refused), market) in ROWS.into_iter().zip(&markets) {
        scene.shows(market, "0.40", "0.60");
        let token = &market.tokens[0];
        let tick = |scene: &mut Scene| {
            // A JSON number in its shortest text: clients look it up in a table.
            scene.client.get(&format!("/v1/tick-size?token_id={token}")).lossy()
        };
        assert!(tick(&mut scene).contains(&format!("{{\"minimum_tick_size\":{number}}}")), "{first}");
        let change = json!({"event_type": "tick_size_change", "asset_id": token, "market": market.condition,
                            "old_tick_size": first, "new_tick_size": next, "timestamp": scene.fake.tick().to_string()});
        scene.fake.say(market, &change.to_string());
        let wanted = format!("{{\"minimum_tick_size\":{next}}}");
        eventually("the new tick", || tick(&mut scene).contains(&wanted).then_some(()));
        let detail = scene.market(market, |detail| at(detail, "/accepting_orders") == true);
        assert_eq!((text(&detail, "/tick_size"), at(&detail, "/active")), (next, &json!(true)), "{detail}");
        scene.fake.level(market, "BUY", taken[0], "77");
        eventually("a level on the new grid", || {
            let book = scene.client.get(&format!("/v1/book?token_id={token}")).expect(200);
            list(&book, "/bids").iter().any(|level| micros_at(level, "/price") == micros(taken[0])).then_some(())
        });
        for price in taken {
            let order = json!({"token_id": token, "side": "SELL", "order_type": "limit", "price": price,
                               "quantity": "5", "time_in_force": "GTC"});
            // No user holds a share: an order on the grid is refused only for that.
            let answer = scene.client.post("/v1/orders", &order);
            assert_eq!(answer.code(), "INSUFFICIENT_POSITION", "{price}: {}", answer.lossy());
            cases.one();
        }
        for price in refused {
            let order = json!({"token_id": token, "side": "BUY", "order_type": "limit", "price": price,
                               "quantity": "5", "time_in_force": "GTC"});
            let answer = scene.client.post("/v1/orders", &order);
            assert_eq!(answer.code(), "INVALID_ORDER_MIN_TICK_SIZE", "{price}: {}", answer.lossy());
            cases.one();
        }
        // At least five shares, as on every grid above 0.001; and a limit on the grid rests at its own price.
        let order = |quantity: &str| {
            json!({"token_id": token, "side": "BUY", "order_type": "limit", "price": taken[0], "quantity": quantity,
                   "time_in_force": "GTC"})
        };
        let small = scene.client.post("/v1/orders", &order("4"));
        assert_eq!(small.code(), "INVALID_ORDER_MIN_SIZE", "{}", small.lossy());
        let rests = scene.client.post("/v1/orders", &order("5")).expect(200);
        assert_eq!((text(&rests, "/status"), text(&rests, "/price")), ("PENDING", taken[0]), "{rests}");
        let bought = scene.buy(market, "0.70", "10").expect(200);
        assert_eq!((text(&bought, "/status"), micros_at(&bought, "/notional")), ("FILLED", micros("6")), "{bought}");
        cases.add(3);
    }
}
