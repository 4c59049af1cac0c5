//! Accepted placements, to the last digit (gateway/docs/trading.md §1, §2, engine/docs/execution.md §4–§6).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::json::{at, int, text};
use tests::token::unix_now;
use tests::world::{World, changed, limit, market};

/// One user, some orders, and the answer to the last one.
struct Row {
    name: &'static str,
    orders: Vec<Value>,
    shows: Value,
}

fn rows(world: &World) -> Vec<Row> {
    let m = &world.markets;
    let soon = unix_now() + 3_600;
    let row = |name, orders: &[Value], shows| Row { name, orders: orders.to_vec(), shows };
    vec![
        // The example of the documentation (gateway/docs/trading.md §2), with 10 000 instead of 100 USD.
        row(
            "market buy inside one level",
            &[market(&m.rain, "BUY", "0.42", "50")],
            json!({
                "status": "FILLED", "order_type": "market", "side": "BUY", "outcome": "Yes", "price": "0.42",
                "quantity": "50", "notional": "21.00", "fee": "0.609", "cancelled_reason": null,
                "fill_source": "synchronous", "price_source": "book_walk", "slippage_bps": 120, "spread_bps": 241,
                "impact_bps": 0, "book_walk_levels": 1, "account_balance": "9978.391",
                "position": {
                    "market_id": m.rain.condition, "outcome": "Yes", "quantity": "50", "avg_entry_price": "0.42",
                    "status": "OPEN"
                },
                "client_order_id": null, "error": null, "error_message": null, "amount_interpreted_as": null,
                "is_replay": false, "warnings": [], "requested_quantity": "50", "filled_quantity": "50",
                "remaining_quantity": "0", "token_id": m.rain.yes(), "market_id": m.rain.condition,
                "time_in_force": "FOK", "hold_reason": null, "fee_rate_bps": 500, "liquidity": "TAKER"
            }),
        ),
        row(
            "market buy through two levels",
            &[market(&m.rain, "BUY", "0.44", "100")],
            json!({
                "status": "FILLED", "price": "0.4279", "quantity": "100", "notional": "42.79", "fee": "1.22353",
                "slippage_bps": 311, "impact_bps": 188, "book_walk_levels": 2, "account_balance": "9955.98647"
            }),
        ),
        row(
            "resting buy",
            &[limit(&m.rain, "BUY", "0.37", "20")],
            json!({
                "status": "PENDING", "order_type": "limit", "price": "0.37", "quantity": "20", "notional": "7.40",
                "fee": "0.00", "filled_at": null, "fill_source": null, "price_source": null, "slippage_bps": null,
                "quote_age_ms": null, "spread_bps": null, "impact_bps": null, "book_walk_levels": null,
                "account_balance": "9992.60", "position": null, "time_in_force": "GTC", "filled_quantity": "0",
                "remaining_quantity": "20", "liquidity": null, "warnings": []
            }),
        ),
        row(
            "FAK takes what is there",
            &[changed(&limit(&m.rain, "BUY", "0.42", "100"), &json!({"time_in_force": "FAK"}))],
            json!({
                "status": "FILLED", "price": "0.42", "quantity": "60.5", "notional": "25.41", "fee": "0.73689",
                "warnings": ["partial_fill:filled=60.5,requested=100"], "requested_quantity": "100",
                "filled_quantity": "60.5", "time_in_force": "IOC", "slippage_bps": null
            }),
        ),
        row(
            "marketable GTC books its slice and rests",
            &[limit(&m.rain, "BUY", "0.42", "100")],
            json!({
                "status": "PENDING", "price": "0.42", "quantity": "60.5", "notional": "25.41", "fee": "0.73689",
                "warnings": ["partial_fill:filled=60.5,requested=100"], "filled_quantity": "60.5",
                "remaining_quantity": "39.5", "account_balance": "9957.26311", "liquidity": "TAKER",
                "fill_source": "synchronous"
            }),
        ),
        row(
            "a limit above the ask fills at the walked price",
            &[limit(&m.rain, "BUY", "0.50", "10")],
            json!({"status": "FILLED", "price": "0.42", "notional": "4.20", "fee": "0.1218"}),
        ),
        row(
            "an amount is a budget",
            &[changed(&market(&m.rain, "BUY", "0.44", "1"), &json!({"quantity": null, "amount": "21"}))],
            json!({
                "status": "FILLED", "quantity": "50", "notional": "21.00", "fee": "0.609",
                "requested_quantity": "50.6024", "amount_interpreted_as": "usd", "time_in_force": "FOK"
            }),
        ),
        row(
            "selling all closes the position",
            &[market(&m.rain, "BUY", "0.42", "50"), market(&m.rain, "SELL", "0.41", "50")],
            json!({
                "status": "FILLED", "side": "SELL", "price": "0.41", "notional": "20.50", "fee": "0.60475",
                "account_balance": "9998.28625", "position": null
            }),
        ),
        row(
            "selling a part leaves the average",
            &[market(&m.rain, "BUY", "0.42", "50"), market(&m.rain, "SELL", "0.40", "20")],
            json!({
                "status": "FILLED", "notional": "8.20", "fee": "0.2419", "account_balance": "9986.3491",
                "position": {
                    "market_id": m.rain.condition, "outcome": "Yes", "quantity": "30", "avg_entry_price": "0.42",
                    "status": "OPEN"
                }
            }),
        ),
        row(
            "the other outcome is the mirror",
            &[changed(&market(&m.rain, "BUY", "0.60", "10"), &json!({"outcome": "no"}))],
            json!({
                "status": "FILLED", "outcome": "No", "price": "0.59", "notional": "5.90", "fee": "0.12095",
                "token_id": m.rain.no()
            }),
        ),
        row(
            "own depletion is taken off, other users do not see it",
            &[market(&m.rain, "BUY", "0.42", "60.5"), market(&m.rain, "BUY", "0.44", "10")],
            json!({"status": "FILLED", "price": "0.44", "notional": "4.40", "book_walk_levels": 1}),
        ),
        row(
            "politics at 0.65",
            &[market(&m.vote, "BUY", "0.65", "10")],
            json!({"status": "FILLED", "notional": "6.50", "fee": "0.091", "fee_rate_bps": 400}),
        ),
        row(
            "crypto at 0.50",
            &[market(&m.coin, "BUY", "0.50", "13")],
            json!({"status": "FILLED", "notional": "6.50", "fee": "0.2275", "fee_rate_bps": 700}),
        ),
        row(
            "geopolitics is free",
            &[market(&m.treaty, "BUY", "0.1234", "1")],
            json!({"status": "FILLED", "notional": "0.1234", "fee": "0.00", "fee_rate_bps": 0, "price": "0.1234"}),
        ),
        row(
            "a coarse tick",
            &[limit(&m.game, "BUY", "0.5", "5")],
            json!({"status": "FILLED", "price": "0.50", "notional": "2.50", "fee": "0.0375"}),
        ),
        row(
            "one share where the tick is fine",
            &[limit(&m.vote, "BUY", "0.601", "1")],
            json!({"status": "PENDING", "price": "0.601", "notional": "0.601"}),
        ),
        row(
            "post-only beside the book",
            &[changed(&limit(&m.rain, "BUY", "0.41", "5"), &json!({"post_only": true}))],
            json!({"status": "PENDING"}),
        ),
        row(
            "good till a date",
            &[changed(&limit(&m.rain, "BUY", "0.30", "5"), &json!({"time_in_force": "gtd", "expiration": soon}))],
            json!({"status": "PENDING", "time_in_force": "GTD"}),
        ),
        row(
            "an expiration is ignored without GTD",
            &[changed(&limit(&m.rain, "BUY", "0.30", "5"), &json!({"expiration": 1}))],
            json!({"status": "PENDING", "time_in_force": "GTC"}),
        ),
        row(
            "a token names market and outcome",
            &[changed(
                &limit(&m.rain, "BUY", "0.37", "20"),
                &json!({"market_id": null, "outcome": null, "token_id": m.rain.no()}),
            )],
            json!({"status": "PENDING", "outcome": "No", "market_id": m.rain.condition}),
        ),
        row(
            "words in any case, numbers as numbers",
            &[json!({
                "market_id": m.rain.condition, "outcome": "YES", "side": "buy", "order_type": "LIMIT",
                "price": 0.37, "quantity": 20, "time_in_force": "gtc", "unknown_field": {"is": ["ignored"]}
            })],
            json!({"status": "PENDING", "side": "BUY", "outcome": "Yes", "price": "0.37", "quantity": "20"}),
        ),
        row(
            "the default is a market order",
            &[changed(&market(&m.rain, "BUY", "0.42", "5"), &json!({"order_type": null}))],
            json!({"status": "FILLED", "order_type": "market", "time_in_force": "FOK"}),
        ),
        row(
            "market GTC is a FOK",
            &[changed(&market(&m.rain, "BUY", "0.42", "5"), &json!({"time_in_force": "GTC"}))],
            json!({"status": "FILLED", "time_in_force": "FOK"}),
        ),
        row(
            "quantity is rounded down, and reported",
            &[limit(&m.rain, "BUY", "0.37", "10.00009")],
            json!({
                "status": "PENDING", "quantity": "10", "warnings": ["quantity_rounded:requested=10.00009,used=10"]
            }),
        ),
        row(
            "a fine cap is tightened, a buyer's down",
            &[market(&m.rain, "BUY", "0.42009", "10")],
            json!({"status": "FILLED", "price": "0.42"}),
        ),
        row("a cap of one", &[market(&m.rain, "BUY", "1", "10")], json!({"status": "FILLED", "price": "0.42"})),
        row(
            "a level's edge is inside",
            &[changed(&limit(&m.rain, "BUY", "0.44", "180.5"), &json!({"time_in_force": "FOK"}))],
            json!({"status": "FILLED", "quantity": "180.5", "notional": "78.21"}),
        ),
    ]
}

#[test]
fn accepted_orders_show_every_amount() {
    let cases = Cases::of("placements");
    let world = World::start(32);
    for (user, row) in rows(&world).into_iter().enumerate() {
        let mut client = world.user(user);
        let mut last = Value::Null;
        let mut answers = Vec::new();
        for order in &row.orders {
            last = client.post("/v1/orders", order).expect(200);
            answers.push(last.clone());
        }
        for (field, expected) in row.shows.as_object().expect("expectations are an object") {
            let shown = at(&last, &format!("/{field}"));
            assert_eq!(shown, expected, "{}: {field} of {last}", row.name);
            cases.one();
        }
        assert!(int(&last, "/order_id") > 0);
        assert!(text(&last, "/created_at").ends_with('Z'));
        // The balance of the answer is the balance of the account.
        let account = client.get("/v1/account/balance").expect(200);
        assert_eq!(at(&account, "/balance"), at(&last, "/account_balance"), "{}", row.name);
        // A lookup of an order shows the balance of its own answer, without later changes.
        client.send(&tests::http::Request::post("/v1/cancel-all?confirm=true"));
        for answer in &answers {
            let found = client.get(&format!("/v1/orders/{}", int(answer, "/order_id"))).expect(200);
            assert_eq!(at(&found, "/account_balance"), at(answer, "/account_balance"), "{}: {found}", row.name);
            cases.one();
        }
    }
}

#[test]
fn every_field_of_the_answer_is_there() {
    let cases = Cases::of("fields of OrderResponse");
    let world = World::start(1);
    let rain = &world.markets.rain;
    let fields = [
        "order_id",
        "status",
        "order_type",
        "side",
        "outcome",
        "price",
        "quantity",
        "notional",
        "fee",
        "filled_at",
        "cancelled_reason",
        "fill_source",
        "price_source",
        "slippage_bps",
        "quote_age_ms",
        "spread_bps",
        "impact_bps",
        "book_walk_levels",
        "account_balance",
        "position",
        "client_order_id",
        "error",
        "error_message",
        "amount_interpreted_as",
        "is_replay",
        "warnings",
        "requested_quantity",
        "filled_quantity",
        "remaining_quantity",
        "token_id",
        "market_id",
        "time_in_force",
        "wallet_id",
        "created_at",
        "hold_reason",
        "fee_rate_bps",
        "liquidity",
    ];
    for order in [market(rain, "BUY", "0.42", "10"), limit(rain, "BUY", "0.37", "10")] {
        let answer = world.user(0).post("/v1/orders", &order).expect(200);
        for field in fields {
            at(&answer, &format!("/{field}"));
            cases.one();
        }
    }
}

#[test]
fn simulated_fills_move_no_book() {
    let cases = Cases::of("books after fills");
    let world = World::start(2);
    let path = format!("/v1/book?token_id={}", world.markets.rain.yes());
    let before = world.public().get(&path).expect(200);
    for order in [market(&world.markets.rain, "BUY", "0.44", "180.5"), limit(&world.markets.rain, "BUY", "0.41", "50")]
    {
        world.user(0).post("/v1/orders", &order).expect(200);
        assert_eq!(at(&world.public().get(&path).expect(200), "/asks"), at(&before, "/asks"));
        assert_eq!(at(&world.public().get(&path).expect(200), "/bids"), at(&before, "/bids"));
        cases.one();
    }
    // Users never compete for a level.
    let other = world.user(1).post("/v1/orders", &market(&world.markets.rain, "BUY", "0.42", "60.5")).expect(200);
    assert_eq!(text(&other, "/status"), "FILLED");
    cases.one();
}

#[test]
fn a_new_snapshot_gives_back_what_was_taken() {
    let cases = Cases::of("depletion");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let take = changed(&limit(&rain, "BUY", "0.42", "60.5"), &json!({"time_in_force": "FOK"}));
    world.user(0).post("/v1/orders", &take).expect(200);
    world.user(0).post("/v1/orders", &take).refused(400, "FOK_ORDER_NOT_FILLED_ERROR");
    world.tape.books(&rain, &[("0.40", "310"), ("0.41", "85")], &[("0.44", "120"), ("0.42", "60.6")]);
    let book = format!("/v1/book?token_id={}", rain.yes());
    world.until(&book, |book| text(book, "/asks/1/size") == "60.6");
    world.user(0).post("/v1/orders", &take).expect(200);
    cases.add(3);
}
