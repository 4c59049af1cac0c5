//! The order list: filters, pages, cursors (gateway/docs/trading.md §3, gateway/docs/wire.md §9).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

fn ids(page: &Value) -> Vec<i64> {
    list(page, "/orders").iter().map(|row| int(row, "/order_id")).collect()
}

/// Twelve orders with every end: 8 resting, 2 filled, 1 cancelled, 1 killed; the newest last.
fn some_orders(world: &World, client: &mut Client) -> Vec<i64> {
    let m = &world.markets;
    let mut made = Vec::new();
    let mut place = |client: &mut Client, body: &Value| {
        let answer = client.post("/v1/orders", body);
        let id = match answer.header("X-Svc-Order-Id") {
            Some(id) => id.parse().expect("an order id is a number"),
            None => int(&answer.expect(200), "/order_id"),
        };
        made.push(id);
        id
    };
    for n in 0..4 {
        place(client, &changed(&limit(&m.rain, "BUY", "0.30", "10"), &json!({"client_order_id": format!("r{n}")})));
    }
    place(client, &market(&m.rain, "BUY", "0.42", "20"));
    place(client, &market(&m.vote, "BUY", "0.65", "10"));
    for price in ["0.60", "0.61"] {
        place(client, &limit(&m.rain, "SELL", price, "5"));
    }
    let cancelled = place(client, &limit(&m.vote, "BUY", "0.5", "10"));
    client.delete(&format!("/v1/orders/{cancelled}")).expect(200);
    place(client, &changed(&limit(&m.rain, "BUY", "0.20", "10"), &json!({"time_in_force": "FOK"})));
    for _ in 0..2 {
        place(client, &limit(&m.coin, "BUY", "0.10", "10"));
    }
    made
}

#[test]
fn filters_narrow_the_list() {
    let cases = Cases::of("order filters");
    let world = World::start(1);
    let mut client = world.user(0);
    let made = some_orders(&world, &mut client);
    let condition = &world.markets.rain.condition;
    let rows = [
        (String::new(), 12),
        ("status=ALL".into(), 12),
        ("status=all".into(), 12),
        ("status=PENDING".into(), 8),
        ("status=open".into(), 8),
        ("status=LIVE".into(), 8),
        ("status=FILLED".into(), 2),
        ("status=matched".into(), 2),
        ("status=CANCELLED".into(), 2),
        ("status=CANCELED".into(), 2),
        ("status=EXPIRED".into(), 0),
        ("side=SELL".into(), 2),
        ("side=buy".into(), 10),
        (format!("market_id={condition}"), 8),
        (format!("market_id={condition}&side=SELL&status=PENDING"), 2),
        ("market_id=0xunknown".into(), 0),
        ("limit=5".into(), 5),
        ("offset=10".into(), 2),
        ("offset=100".into(), 0),
        ("wallet_id=api".into(), 12),
        ("wallet_id=ALL".into(), 12),
        ("status=FILLED&status=PENDING".into(), 8),
        ("nonsense=1".into(), 12),
        ("cursor=".into(), 12),
        ("cursor=MA==".into(), 12),
        ("cursor=LTE=".into(), 0),
        ("next_cursor=LTE%3D".into(), 0),
        ("next_cursor=LTE=&cursor=MA==".into(), 12),
    ];
    for (query, count) in rows {
        let page = client.get(&format!("/v1/orders?{query}")).expect(200);
        let shown = ids(&page);
        assert_eq!(shown.len(), count, "{query}: {page}");
        let mut newest_first: Vec<i64> = made.iter().rev().copied().filter(|id| shown.contains(id)).collect();
        newest_first.truncate(count);
        assert_eq!(shown, newest_first, "{query}");
        cases.one();
    }
    let all = client.get("/v1/orders").expect(200);
    assert_eq!(
        (text(&all, "/next_cursor"), at(&all, "/has_more"), int(&all, "/total_hint")),
        ("LTE=", &json!(false), 12)
    );
}

#[test]
fn wrong_filters_are_refused() {
    let cases = Cases::of("wrong order filters");
    let world = World::start(1);
    let rows = [
        ("status=SLEEPING", 422, "VALIDATION_FAILED"),
        ("side=HOLD", 422, "VALIDATION_FAILED"),
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=201", 422, "VALIDATION_FAILED"),
        ("limit=-1", 422, "VALIDATION_FAILED"),
        ("limit=ten", 422, "VALIDATION_FAILED"),
        ("limit=1.5", 422, "VALIDATION_FAILED"),
        ("limit=", 422, "VALIDATION_FAILED"),
        ("offset=-1", 422, "VALIDATION_FAILED"),
        ("offset=99999999999999999999", 422, "VALIDATION_FAILED"),
        ("wallet_id=mine", 422, "VALIDATION_FAILED"),
        ("wallet_id=1", 404, "WALLET_NOT_FOUND"),
        ("cursor=%21%21", 400, "INVALID_CURSOR"),
        ("cursor=bm90aGluZw", 400, "INVALID_CURSOR"),
        ("cursor=MTIzfjQ1", 400, "INVALID_CURSOR"),
        ("next_cursor=x", 400, "INVALID_CURSOR"),
    ];
    for (query, status, code) in rows {
        let answer = world.user(0).get(&format!("/v1/orders?{query}"));
        // 123~45 may also be read as a position long ago: an empty end.
        if query == "cursor=MTIzfjQ1" && answer.status == 200 {
            assert_eq!(ids(&answer.json()), Vec::<i64>::new());
        } else {
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{query}: {}", answer.lossy());
            answer.assert_envelope();
        }
        cases.one();
    }
}

#[test]
fn pages_neither_repeat_nor_lose_a_row() {
    let cases = Cases::of("pages");
    let world = World::start(1);
    let mut client = world.user(0);
    let made = some_orders(&world, &mut client);
    for size in [1, 2, 3, 5, 11, 12, 13] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = client.get(&format!("/v1/orders?limit={size}&cursor={cursor}")).expect(200);
            seen.extend(ids(&page));
            // A new order comes first and changes no page.
            if seen.len() == size && size < 12 {
                client.post("/v1/orders", &limit(&world.markets.coin, "BUY", "0.05", "5")).expect(200);
            }
            cursor = text(&page, "/next_cursor").to_string();
            let more = at(&page, "/has_more").as_bool().expect("a bool");
            assert_eq!(more, cursor != "LTE=", "{page}");
            if !more {
                break;
            }
            assert!(!cursor.contains(['+', '/', '=']), "url-safe without padding: {cursor}");
        }
        let unique: BTreeSet<i64> = seen.iter().copied().collect();
        assert_eq!(unique.len(), seen.len(), "a row came twice with pages of {size}");
        assert!(made.iter().all(|id| unique.contains(id)), "a row was lost with pages of {size}");
        assert!(seen.windows(2).all(|two| two[0] > two[1]), "newest first");
        cases.one();
    }
}

#[test]
fn a_row_shows_the_order() {
    let cases = Cases::of("order rows");
    let world = World::start(1);
    let mut client = world.user(0);
    some_orders(&world, &mut client);
    let page = client.get("/v1/orders").expect(200);
    let fields = [
        "order_id",
        "market_id",
        "side",
        "outcome",
        "order_type",
        "limit_price",
        "quantity",
        "time_in_force",
        "status",
        "client_order_id",
        "created_at",
        "filled_at",
        "fill_price",
        "cancelled_at",
        "cancelled_reason",
        "hold_reason",
        "filled_quantity",
        "token_id",
        "wallet_id",
        "expiration",
        "post_only",
    ];
    for row in list(&page, "/orders") {
        for field in fields {
            at(row, &format!("/{field}"));
        }
        let (filled, cancelled) = (text(row, "/status") == "FILLED", text(row, "/status") == "CANCELLED");
        assert_eq!(at(row, "/filled_at").is_string(), filled, "{row}");
        assert_eq!(at(row, "/fill_price").is_string(), filled, "{row}");
        assert_eq!(at(row, "/cancelled_at").is_string(), cancelled, "{row}");
        assert_eq!(at(row, "/cancelled_reason").is_string(), cancelled, "{row}");
        cases.one();
    }
    let bought = &list(&page, "/orders")[7];
    assert_eq!(
        (
            text(bought, "/order_type"),
            text(bought, "/limit_price"),
            text(bought, "/fill_price"),
            text(bought, "/quantity")
        ),
        ("market", "0.42", "0.42", "20"),
        "{bought}"
    );
}
