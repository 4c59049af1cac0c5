//! Resting orders and positions when the market moves (engine/docs/execution.md §6, §7, §12, §13).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::tape::Levels;
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

const QUIET_BIDS: Levels = &[("0.40", "310"), ("0.41", "85")];

/// A world whose matching cycle is due ten times a second, so that tests are short.
fn brisk() -> World {
    World::start_with(1, |place| _ = place.set("flags", "match_interval_ms", "100"))
}

/// The order once `ready` accepts it.
fn order_when(client: &mut Client, id: i64, ready: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("order {id}"), || Some(client.get(&format!("/v1/orders/{id}")).expect(200)).filter(&ready))
}

fn balance(client: &mut Client) -> (String, String) {
    let shown = client.get("/v1/account/balance").expect(200);
    (text(&shown, "/balance").to_string(), text(&shown, "/reserved").to_string())
}

#[test]
fn a_resting_order_fills_at_its_own_limit_without_fee() {
    let cases = Cases::of("maker fills");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let placed = client.post("/v1/orders", &limit(&rain, "BUY", "0.37", "20")).expect(200);
    let id = int(&placed, "/order_id");
    // Twelve shares enter the limit, then more.
    world.tape.books(&rain, &[("0.30", "10")], &[("0.36", "12"), ("0.50", "100")]);
    let part = order_when(&mut client, id, |order| text(order, "/filled_quantity") == "12");
    assert_eq!((text(&part, "/status"), text(&part, "/remaining_quantity")), ("PENDING", "8"));
    assert_eq!(balance(&mut client), ("9992.60".into(), "2.96".into()));
    world.tape.books(&rain, &[("0.30", "10")], &[("0.37", "100"), ("0.50", "100")]);
    let full = order_when(&mut client, id, |order| text(order, "/status") == "FILLED");
    let expected = json!({
        "price": "0.37", "quantity": "20", "notional": "7.40", "fee": "0.00", "liquidity": "MAKER",
        "fill_source": "matching_engine", "price_source": "matching_engine", "fee_rate_bps": 0, "slippage_bps": null
    });
    for (field, expected) in expected.as_object().expect("an object") {
        assert_eq!(at(&full, &format!("/{field}")), expected, "{field} of {full}");
        cases.one();
    }
    assert_eq!(list(&full, "/fills").len(), 2);
    assert_eq!(balance(&mut client), ("9992.60".into(), "0.00".into()));
    let history = client.get("/v1/account/history").expect(200);
    assert!(list(&history, "").iter().all(|row| text(row, "/liquidity") == "MAKER" && int(row, "/fee_rate_bps") == 0));
    // A sale likewise.
    let sale = client.post("/v1/orders", &limit(&rain, "SELL", "0.45", "20")).expect(200);
    world.tape.books(&rain, &[("0.46", "500")], &[("0.50", "100")]);
    let sold = order_when(&mut client, int(&sale, "/order_id"), |order| text(order, "/status") == "FILLED");
    assert_eq!((text(&sold, "/price"), text(&sold, "/notional"), text(&sold, "/fee")), ("0.45", "9.00", "0.00"));
    assert_eq!(balance(&mut client), ("10001.60".into(), "0.00".into()));
    cases.add(3);
}

#[test]
fn a_mixed_order_is_taker_first_and_maker_then() {
    let cases = Cases::of("mixed fills");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let placed = client.post("/v1/orders", &limit(&rain, "BUY", "0.42", "100")).expect(200);
    world.tape.books(&rain, QUIET_BIDS, &[("0.42", "200")]);
    let full = order_when(&mut client, int(&placed, "/order_id"), |order| text(order, "/status") == "FILLED");
    assert_eq!(
        (text(&full, "/liquidity"), text(&full, "/fee"), text(&full, "/notional")),
        ("MIXED", "0.73689", "42.00")
    );
    let liquidity: Vec<&str> = list(&full, "/fills").iter().map(|fill| text(fill, "/liquidity")).collect();
    assert_eq!(liquidity.len(), 2);
    assert!(liquidity.contains(&"TAKER") && liquidity.contains(&"MAKER"));
    cases.add(2);
}

#[test]
fn a_date_that_is_reached_ends_an_order() {
    let cases = Cases::of("GTD");
    let world = brisk();
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    client.post("/v1/orders", &market(rain, "BUY", "0.42", "20")).expect(200);
    let before = balance(&mut client);
    let soon = unix_now() + 6;
    let mut ids = Vec::new();
    for body in [limit(rain, "BUY", "0.37", "20"), limit(rain, "SELL", "0.90", "20")] {
        for expiration in [json!(soon), json!(soon.to_string())] {
            let quantity = json!({"time_in_force": "GTD", "expiration": expiration, "quantity": "10"});
            ids.push(int(&client.post("/v1/orders", &changed(&body, &quantity)).expect(200), "/order_id"));
        }
    }
    for id in ids {
        let ended = order_when(&mut client, id, |order| text(order, "/status") != "PENDING");
        assert_eq!((text(&ended, "/status"), text(&ended, "/cancelled_reason")), ("CANCELLED", "gtd_expired"));
        cases.one();
    }
    assert!(unix_now() >= soon, "not before its time");
    assert_eq!(balance(&mut client), before);
    assert_eq!(text(&client.get("/v1/account/positions").expect(200), "/0/reserved_quantity"), "0");
}

#[test]
fn a_resolution_pays_once() {
    let cases = Cases::of("resolutions");
    for (prices, yes_payout, no_payout, result) in [
        (["1", "0"], 50_000_000, 0, json!("Yes")),
        (["0", "1"], 0, 10_000_000, json!("No")),
        (["0.5", "0.5"], 25_000_000, 5_000_000, Value::Null),
    ] {
        let mut world = brisk();
        let mut client = world.user(0);
        let rain = world.markets.rain.clone();
        client.post("/v1/orders", &market(&rain, "BUY", "0.42", "50")).expect(200);
        client.post("/v1/orders", &changed(&market(&rain, "BUY", "0.59", "10"), &json!({"outcome": "No"}))).expect(200);
        let before = tests::json::micros(&balance(&mut client).0);
        let buy = client.post("/v1/orders", &limit(&rain, "BUY", "0.30", "10")).expect(200);
        let sale = client.post("/v1/orders", &limit(&rain, "SELL", "0.90", "50")).expect(200);
        world.tape.resolve(&rain, prices);
        for placed in [&buy, &sale] {
            let id = int(placed, "/order_id");
            let ended = order_when(&mut client, id, |order| text(order, "/status") != "PENDING");
            assert_eq!((text(&ended, "/status"), text(&ended, "/cancelled_reason")), ("EXPIRED", "market_resolved"));
            client.delete(&format!("/v1/orders/{id}")).refused(400, "ORDER_NOT_CANCELLABLE");
        }
        let expected = before + yes_payout + no_payout;
        for after_crash in [false, true, true] {
            if after_crash {
                world.crash();
                client.moved_to(world.server.address());
            }
            let paid = eventually("the payout", || {
                let (shown, reserved) = balance(&mut client);
                let shown = tests::json::micros(&shown);
                assert!(shown <= expected, "paid more than once: {shown} of {expected}");
                (shown == expected && reserved == "0.00").then_some(shown)
            });
            assert_eq!(paid, expected);
            let open = client.get("/v1/account/positions?status=OPEN").expect(200);
            assert_eq!(list(&open, "").len(), 0);
            let detail = client.get(&format!("/v1/markets/{}", rain.condition)).expect(200);
            assert_eq!(at(&detail, "/resolved_outcome"), &result);
            client.post("/v1/orders", &limit(&rain, "BUY", "0.30", "10")).refused(400, "MARKET_CLOSED");
            world.public().get(&format!("/v1/book?token_id={}", rain.yes())).refused(404, "BOOK_UNAVAILABLE");
            cases.one();
        }
    }
}

#[test]
fn a_finer_tick_counts_for_new_orders_only() {
    let cases = Cases::of("tick changes");
    let mut world = brisk();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let old = client.post("/v1/orders", &limit(&rain, "BUY", "0.35", "10")).expect(200);
    let fine = changed(&limit(&rain, "BUY", "0.355", "10"), &json!({}));
    client.post("/v1/orders", &fine).refused(400, "INVALID_ORDER_MIN_TICK_SIZE");
    world.tape.tick(&rain, "0.01", "0.001");
    let path = format!("/v1/tick-size?token_id={}", rain.no());
    world.until(&path, |shown| at(shown, "/minimum_tick_size") == &json!(0.001));
    client.post("/v1/orders", &fine).expect(200);
    // The minimum follows the tick; the book is complete after it.
    client.post("/v1/orders", &limit(&rain, "BUY", "0.355", "1")).expect(200);
    let book = world.public().get(&format!("/v1/book?token_id={}", rain.yes())).expect(200);
    assert_eq!((text(&book, "/tick_size"), list(&book, "/bids").len()), ("0.001", 2));
    world.tape.tick(&rain, "0.001", "0.1");
    world.until(&path, |shown| at(shown, "/minimum_tick_size") == &json!(0.1));
    client.post("/v1/orders", &limit(&rain, "BUY", "0.35", "10")).refused(400, "INVALID_ORDER_MIN_TICK_SIZE");
    let kept = client.get(&format!("/v1/orders/{}", int(&old, "/order_id"))).expect(200);
    assert_eq!((text(&kept, "/status"), text(&kept, "/price")), ("PENDING", "0.35"));
    cases.add(6);
}

#[test]
fn orders_rest_through_a_crash_and_fill_after_it() {
    let cases = Cases::of("fills after a crash");
    let mut world = brisk();
    let rain = world.markets.rain.clone();
    let placed = world.user(0).post("/v1/orders", &limit(&rain, "BUY", "0.37", "20")).expect(200);
    for round in 0..3 {
        world.crash();
        let mut client = world.user(0);
        assert_eq!(balance(&mut client), ("9992.60".into(), "7.40".into()), "round {round}");
        let order = client.get(&format!("/v1/orders/{}", int(&placed, "/order_id"))).expect(200);
        assert_eq!(text(&order, "/status"), "PENDING");
        cases.one();
    }
    world.tape.books(&rain, &[("0.30", "10")], &[("0.37", "500")]);
    let mut client = world.user(0);
    order_when(&mut client, int(&placed, "/order_id"), |order| text(order, "/status") == "FILLED");
    assert_eq!(balance(&mut client), ("9992.60".into(), "0.00".into()));
    cases.one();
}

#[test]
fn a_broken_view_is_stale_and_heals_with_a_snapshot() {
    let cases = Cases::of("gaps");
    let mut world = World::start_with(1, |place| _ = place.set("flags", "trade_quote_max_age_ms", "2000"));
    let (rain, vote) = (world.markets.rain.clone(), world.markets.vote.clone());
    let book = format!("/v1/book?token_id={}", rain.yes());
    let price = format!("/v1/price?token_id={}&side=BUY", rain.yes());
    let mut client = world.user(0);
    world.until(&book, |book| at(book, "/stale") == &json!(false));
    world.tape.gap();
    world.until(&book, |book| at(book, "/stale") == &json!(true));
    cases.one();
    // It ages although its connection is alive and changes are added to it, until it is too old to trade on.
    let mut size = 60;
    eventually("the quote to be too old", || {
        size += 1;
        world.tape.level(&rain, 0, "SELL", "0.42", &size.to_string());
        world.tape.books(&vote, &[("0.645", "1000")], &[("0.65", "1000")]);
        (int(&client.get(&price).expect(200), "/age_ms") > 2_000).then_some(())
    });
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "10")).refused(400, "STALE_QUOTE");
    assert_eq!(at(&client.get(&book).expect(200), "/stale"), &json!(true));
    cases.add(2);
    // A market with a snapshot since then is traded on.
    for (healed, bids, asks) in
        [(&vote, [("0.645", "1000")], [("0.65", "1000")]), (&rain, [("0.41", "85")], [("0.42", "60")])]
    {
        let ask = asks[0].0;
        eventually("a fresh snapshot to be traded on", || {
            world.tape.books(healed, &bids, &asks);
            let answer = client.post("/v1/orders", &market(healed, "BUY", ask, "10"));
            (answer.status == 200).then_some(())
        });
        cases.one();
    }
    world.until(&book, |book| at(book, "/stale") == &json!(false));
    cases.one();
}

#[test]
fn bad_lines_are_skipped_and_half_lines_waited_for() {
    let cases = Cases::of("lines of a tape");
    let mut world = brisk();
    let rain = world.markets.rain.clone();
    let book = format!("/v1/book?token_id={}", rain.yes());
    for line in
        ["", "{", "null", "[]", "{\"r\":\"x\"}", "{\"r\":1,\"v\":\"nowhere\",\"m\":{}}", "\u{0}\u{1}", "{\"r\":1e99}"]
    {
        world.tape.line(line);
        cases.one();
    }
    world.tape.level(&rain, 0, "SELL", "0.42", "17");
    world.until(&book, |book| text(book, "/asks/1/size") == "17");
    // The second half of a line comes later; the first half has no effect.
    let late = json!({
        "r": unix_now() * 1_000 + 60_000, "v": "polymarket", "c": "1",
        "m": {"event_type": "price_change", "market": rain.condition, "timestamp": (unix_now() * 1_000 + 60_000).to_string(),
              "price_changes": [{"asset_id": rain.yes(), "price": "0.42", "size": "19", "side": "SELL", "hash": ""}]}
    })
    .to_string();
    let (first, second) = late.split_at(late.len() / 2);
    world.tape.unfinished(first);
    world.user(0).post("/v1/orders", &market(&rain, "BUY", "0.42", "10")).expect(200);
    world.tape.unfinished(&format!("{second}\n"));
    world.until(&book, |book| text(book, "/asks/1/size") == "19");
    cases.add(2);
}
