//! Orders and trades in the venue's shapes (gateway/docs/venue-clients.md §0.2, §7; gateway/docs/wire.md §9).

use crate::clob_bodies::{signed, v1};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::token::unix_now;
use tests::world::{World, limit, market};

/// A client like the venue's own: its rows are strict.
fn strict(world: &World, user: usize) -> Client {
    world.public().with_header("POLY_API_KEY", &world.users[user].key).with_header("POLY_ADDRESS", "0xA1")
}

fn is_hex(text: &str, digits: usize) -> bool {
    text.strip_prefix("0x")
        .is_some_and(|hex| hex.len() == digits && hex.bytes().all(|b| b"0123456789abcdef".contains(&b)))
}

fn is_uuid(text: &str) -> bool {
    text.len() == 36 && text.bytes().enumerate().all(|(at, b)| matches!(at, 8 | 13 | 18 | 23) == (b == b'-'))
}

#[test]
fn order_rows_have_the_types_of_their_dialect() {
    let cases = Cases::of("order rows");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let expiration = unix_now() + 600;
    let mut gtd = signed(&v1(rain.yes(), "BUY", "3700000", "10000000"), "GTD");
    gtd["order"]["expiration"] = json!(expiration.to_string());
    let resting = text(&client.post("/v1/order", &gtd).expect(200), "/orderID").to_owned();
    let part = client.post("/v1/order", &signed(&v1(rain.yes(), "BUY", "42000000", "100000000"), "GTC")).expect(200);
    let part = text(&part, "/orderID").to_owned();
    let taken = client.post("/v1/order", &signed(&v1(rain.yes(), "BUY", "4400000", "10000000"), "FAK")).expect(200);
    let taken = text(&taken, "/orderID").to_owned();
    // A resting BUY of the other outcome.
    let no = client.post("/v1/order", &signed(&v1(rain.no(), "BUY", "100000", "10000000"), "GTC")).expect(200);
    let no = text(&no, "/orderID").to_owned();
    client.send(&Request::new("DELETE", "/v1/order").json(&json!({"orderID": no}))).expect(200);
    let trades = client.get("/v1/data/trades").expect(200);
    let trades_of = |order: &str| -> Vec<&str> {
        let rows = list(&trades, "/data").iter().rev();
        rows.filter(|row| text(row, "/taker_order_id") == order).map(|row| text(row, "/id")).collect()
    };
    assert_eq!((trades_of(&part).len(), trades_of(&taken).len()), (1, 1));
    // Id → status, outcome, token, price, size, matched, order type, expiration.
    let rows = [
        (&resting, "LIVE", "Yes", rain.yes(), "0.37", "10", "0", "GTD", expiration),
        (&part, "LIVE", "Yes", rain.yes(), "0.42", "100", "60.5", "GTC", 0),
        (&taken, "MATCHED", "Yes", rain.yes(), "0.44", "10.6024", "10", "FAK", 0),
        (&no, "CANCELED", "No", rain.no(), "0.01", "10", "0", "GTC", 0),
    ];
    for (id, status, outcome, token, price, size, matched, kind, expires) in rows {
        let trades = trades_of(id);
        for path in ["/v1/data/order/", "/v1/order/", "/data/order/", "/order/"] {
            let row = client.get(&format!("{path}{id}")).expect(200);
            let created = int(&row, "/created_at");
            assert!((unix_now() as i64 - created).abs() < 600, "{row}");
            let expected = json!({
                "id": id, "status": format!("ORDER_STATUS_{status}"), "market": rain.condition, "asset_id": token,
                "side": "BUY", "original_size": size, "size_matched": matched, "price": price, "outcome": outcome,
                "order_type": kind, "owner": null, "maker_address": null, "expiration": expires,
                "created_at": created, "associate_trades": trades, "maker_orders": null, "transaction_hash": null,
                "trader_side": null, "fee_rate_bps": null
            });
            assert_eq!(row, expected, "{path}");
            let row = strict(&world, 0).get(&format!("{path}{id}")).expect(200);
            let (owner, address) = (text(&row, "/owner").to_owned(), text(&row, "/maker_address").to_owned());
            assert!(is_uuid(&owner) && is_hex(&address, 40), "{row}");
            let expected = json!({
                "id": id, "status": status, "market": rain.condition, "asset_id": token, "side": "BUY",
                "original_size": size, "size_matched": matched, "price": price, "outcome": outcome,
                "order_type": kind, "owner": owner, "maker_address": address, "expiration": expires.to_string(),
                "created_at": created, "associate_trades": trades
            });
            assert_eq!(row, expected, "{path}");
            cases.add(2);
        }
        // The decimal form finds the same row.
        let decimal = u64::from_str_radix(&id[50..], 16).expect("hex");
        assert_eq!(text(&client.get(&format!("/v1/data/order/{decimal}")).expect(200), "/id"), id);
        cases.one();
    }
}

#[test]
fn trade_rows_have_the_types_of_their_dialect() {
    let cases = Cases::of("trade rows");
    let mut world = World::start(1);
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let resting = client.post("/v1/order", &signed(&v1(rain.yes(), "BUY", "2050000", "5000000"), "GTC")).expect(200);
    let resting = text(&resting, "/orderID").to_owned();
    let taken = client.post("/v1/order", &signed(&v1(rain.yes(), "BUY", "44000000", "100000000"), "GTC")).expect(200);
    let taken = text(&taken, "/orderID").to_owned();
    // The price falls to the resting order, which is then a maker.
    world.tape.books(&rain, &[("0.39", "85")], &[("0.41", "60.5")]);
    world.until("/v1/data/trades", |page| list(page, "/data").len() == 2);
    let page = client.get("/v1/data/trades").expect(200);
    assert_eq!((int(&page, "/limit"), int(&page, "/count"), text(&page, "/next_cursor")), (100, 2, "LTE="));
    // Newest first. 60.5 at 0.42 and 39.5 at 0.44 are one walk.
    let rows = [(&resting, "5", "0.41", 0, "MAKER", "0.00"), (&taken, "100", "0.4279", 500, "TAKER", "1.22353")];
    for (row, (order, size, price, rate, side, fee)) in list(&page, "/data").iter().zip(rows) {
        let (id, at_secs) = (text(row, "/id").to_owned(), int(row, "/match_time"));
        assert!(id.parse::<u64>().is_ok() && (unix_now() as i64 - at_secs).abs() < 600, "{row}");
        let expected = json!({
            "id": id, "taker_order_id": order, "market": rain.condition, "asset_id": rain.yes(), "side": "BUY",
            "size": size, "fee_rate_bps": rate, "price": price, "status": "MATCHED", "match_time": at_secs,
            "last_update": at_secs, "outcome": "Yes", "bucket_index": 0, "owner": null, "maker_address": null,
            "transaction_hash": null, "trader_side": null, "maker_orders": [], "fee": fee, "venue_time": at(row, "/venue_time"),
            "fee_source": if rate == 0 { "none" } else { "category_table" }
        });
        assert_eq!(row, &expected);
        let found = strict(&world, 0).get(&format!("/v1/data/trades?id={id}")).expect(200);
        let (owner, address) =
            (text(&found, "/data/0/owner").to_owned(), text(&found, "/data/0/maker_address").to_owned());
        let hash = text(&found, "/data/0/transaction_hash");
        assert!(is_hex(hash, 64), "{found}");
        let own = json!({"order_id": order, "owner": owner, "maker_address": address, "matched_amount": size,
            "price": price, "fee_rate_bps": "0", "asset_id": rain.yes(), "outcome": "Yes", "side": "BUY"});
        let makers = if side == "MAKER" { vec![own] } else { Vec::new() };
        let expected = json!({
            "id": id, "taker_order_id": order, "market": rain.condition, "asset_id": rain.yes(),
            // For a maker's trade the venue shows the taker's side.
            "side": if side == "MAKER" { "SELL" } else { "BUY" },
            "size": size, "fee_rate_bps": rate.to_string(), "price": price, "status": "MATCHED",
            "match_time": at_secs.to_string(), "last_update": at_secs.to_string(), "outcome": "Yes",
            "bucket_index": 0, "owner": owner, "maker_address": address, "transaction_hash": hash,
            "trader_side": side, "maker_orders": makers, "fee": fee, "venue_time": at(row, "/venue_time"),
            "fee_source": if rate == 0 { "none" } else { "category_table" }
        });
        assert_eq!(list(&found, "/data"), [expected]);
        cases.add(2);
    }
}

/// gateway/docs/venue-clients.md §0.2: the caller selects the dialect, and the query overrides it.
#[test]
fn the_dialect_is_chosen_by_the_request() {
    let cases = Cases::of("dialects");
    let world = World::start_with(1, |place| {
        place.set("venue", "confirmed_trades", "true");
    });
    let mut client = world.user(0);
    client.post("/v1/order", &signed(&v1(world.markets.rain.yes(), "BUY", "4200000", "10000000"), "FOK")).expect(200);
    let key = world.users[0].key.as_str();
    let rows = [
        (vec![("X-API-Key", key)], "", false),
        (vec![("POLY_API_KEY", key)], "", true),
        (vec![("X-API-Key", key), ("POLY_ADDRESS", "0xA1")], "", true),
        (vec![("X-API-Key", key), ("User-Agent", "py_clob_client")], "", true),
        (vec![("X-API-Key", key), ("User-Agent", "@polymarket/clob-client")], "", true),
        (vec![("X-API-Key", key), ("User-Agent", "curl/8")], "", false),
        (vec![("X-API-Key", key)], "?dialect=strict", true),
        (vec![("POLY_API_KEY", key)], "?dialect=plain", false),
    ];
    for (headers, query, is_strict) in rows {
        let mut request = Request::get(&format!("/v1/data/trades{query}"));
        for (name, value) in &headers {
            request = request.header(name, value);
        }
        let page = world.public().send(&request).expect(200);
        assert_eq!(at(&page, "/data/0/match_time").is_string(), is_strict, "{headers:?} {query}");
        assert_eq!(text(&page, "/data/0/status"), if is_strict { "CONFIRMED" } else { "MATCHED" });
        cases.one();
    }
    // To a caller that uses a key's UUID, that key is the owner; other callers see the account's.
    let made = client.post("/v1/keys", &json!({"name": "rust"})).expect(201);
    let alias = text(&made, "/venue_api_key");
    let mut typed = world.public().with_header("POLY_API_KEY", alias);
    let page = typed.get("/v1/data/trades").expect(200);
    assert_eq!(text(&page, "/data/0/owner"), alias);
    let account = text(&strict(&world, 0).get("/v1/data/trades").expect(200), "/data/0/owner").to_owned();
    assert!(account != alias && &account[14..15] == "5", "{account}");
    cases.add(2);
}

#[test]
fn pages_hold_every_order_once_while_new_ones_come() {
    let cases = Cases::of("pages of orders");
    let world = World::start(1);
    let mut client = world.user(0);
    let rain = &world.markets.rain;
    let place = |client: &mut Client| {
        let body = signed(&v1(rain.yes(), "BUY", "100000", "10000000"), "GTC");
        text(&client.post("/v1/order", &body).expect(200), "/orderID").to_owned()
    };
    let placed: Vec<String> = (0..23).map(|_| place(&mut client)).collect();
    for cursor_name in ["next_cursor", "cursor"] {
        for page_size in [1, 5, 22, 23, 24] {
            let (mut seen, mut cursor, mut pages) = (Vec::new(), "MA==".to_owned(), 0);
            while cursor != "LTE=" {
                let path = format!("/v1/data/orders?limit={page_size}&{cursor_name}={}", cursor.replace('=', "%3D"));
                let page = client.get(&path).expect(200);
                let rows = list(&page, "/data");
                assert_eq!((int(&page, "/limit"), int(&page, "/count")), (page_size, rows.len() as i64));
                assert!(rows.len() as i64 <= page_size);
                seen.extend(rows.iter().map(|row| text(row, "/id").to_owned()));
                cursor = text(&page, "/next_cursor").to_owned();
                pages += 1;
                // A new order comes before the first page.
                if pages == 2 {
                    let id = place(&mut client);
                    client.send(&Request::new("DELETE", "/v1/order").json(&json!({"orderID": id}))).expect(200);
                }
            }
            let expected: Vec<String> = placed.iter().rev().cloned().collect();
            assert_eq!(seen, expected, "{page_size}");
            assert_eq!(pages, (22 + page_size) / page_size, "{page_size}");
            cases.one();
        }
    }
    // `cursor` overrides; after the last page comes an empty one.
    let first = client.get("/v1/data/orders?limit=5").expect(200);
    let next = text(&first, "/next_cursor");
    let second = client.get(&format!("/v1/data/orders?limit=5&cursor={next}&next_cursor=LTE=")).expect(200);
    assert_eq!(list(&second, "/data").len(), 5);
    let empty = json!({"limit": 100, "count": 0, "next_cursor": "LTE=", "data": []});
    assert_eq!(client.get("/v1/data/orders?next_cursor=LTE=").expect(200), empty);
    cases.add(2);
}

#[test]
fn trades_are_paged_too() {
    let cases = Cases::of("pages of trades");
    let world = World::start(1);
    let mut client = world.user(0);
    for _ in 0..7 {
        let body = signed(&v1(world.markets.coin.yes(), "BUY", "5000000", "10000000"), "FOK");
        assert_eq!(text(&client.post("/v1/order", &body).expect(200), "/status"), "matched");
    }
    for page_size in [1, 2, 3, 7, 500] {
        let (mut seen, mut cursor, mut pages) = (BTreeSet::new(), String::new(), 0);
        while cursor != "LTE=" {
            let page = client.get(&format!("/v1/data/trades?limit={page_size}&next_cursor={cursor}")).expect(200);
            for row in list(&page, "/data") {
                assert!(seen.insert(text(row, "/id").to_owned()), "{row} came twice");
            }
            cursor = text(&page, "/next_cursor").to_owned();
            pages += 1;
        }
        assert_eq!((seen.len(), pages), (7, 7_usize.div_ceil(page_size)), "{page_size}");
        cases.one();
    }
}

#[test]
fn filters_narrow_the_lists() {
    let cases = Cases::of("filters");
    let world = World::start(2);
    let mut client = world.user(0);
    let (rain, coin) = (&world.markets.rain, &world.markets.coin);
    let mut place = |token: &str, maker: &str, kind: &str| {
        let body = signed(&v1(token, "BUY", maker, "10000000"), kind);
        let answer = client.post("/v1/order", &body);
        answer.json().get("orderID").and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let resting = place(rain.yes(), "3700000", "GTC");
    let other_outcome = place(rain.no(), "3700000", "GTC");
    let other_market = place(coin.yes(), "4000000", "GTC");
    let filled = place(rain.yes(), "4200000", "FOK");
    place(rain.yes(), "3000000", "FOK");
    let native = client.post("/v1/orders", &limit(rain, "BUY", "0.36", "10")).expect(200);
    client.delete(&format!("/v1/orders/{}", int(&native, "/order_id"))).expect(200);
    let (market, token) = (&rain.condition, rain.yes());
    let created = int(&client.get(&format!("/v1/data/order/{resting}")).expect(200), "/created_at");
    let unknown = format!("0x{}", "9".repeat(64));
    let foreign = world.user(1).post("/v1/order", &signed(&v1(token, "BUY", "3700000", "10000000"), "GTC")).expect(200);
    let foreign = text(&foreign, "/orderID");
    let iso = "2026-01-01T00:00:00Z";
    let rows: Vec<(String, usize)> = vec![
        (String::new(), 3),
        ("status=ALL".into(), 6),
        ("status=all".into(), 6),
        ("status=LIVE".into(), 3),
        ("status=ORDER_STATUS_LIVE".into(), 3),
        ("status=pending".into(), 3),
        ("status=MATCHED".into(), 1),
        ("status=FILLED".into(), 1),
        ("status=ORDER_STATUS_CANCELED".into(), 2),
        ("status=canceled".into(), 2),
        ("status=CANCELLED".into(), 2),
        ("status=EXPIRED".into(), 0),
        ("status=INVALID".into(), 0),
        ("status=REJECTED".into(), 0),
        (format!("market={market}"), 2),
        (format!("market={market}&status=ALL"), 5),
        (format!("market={unknown}"), 0),
        ("market=".into(), 3),
        (format!("asset_id={token}"), 1),
        (format!("asset_id={}", rain.no()), 1),
        ("asset_id=7".into(), 0),
        ("asset_id=x".into(), 0),
        (format!("asset_id={token}&market={market}"), 1),
        (format!("asset_id={token}&market={}", coin.condition), 0),
        (format!("id={resting}"), 1),
        (format!("id={filled}"), 0),
        (format!("id={filled}&status=ALL"), 1),
        (format!("id={foreign}&status=ALL"), 0),
        ("id=7&status=ALL".into(), 0),
        ("id=nonsense".into(), 0),
        (format!("after={}", created - 60), 3),
        (format!("after={}", created + 3_600), 0),
        (format!("before={}", created - 60), 0),
        (format!("before={}", created + 3_600), 3),
        (format!("after={iso}"), 3),
        (format!("before={iso}"), 0),
        ("before=2026-01-01".into(), 0),
        ("wallet_id=all".into(), 3),
        ("wallet_id=API".into(), 3),
        ("limit=500".into(), 3),
        ("maker_address=0xA1&unknown=1".into(), 3),
    ];
    for (query, expected) in &rows {
        let page = client.get(&format!("/v1/data/orders?{query}")).expect(200);
        assert_eq!(list(&page, "/data").len(), *expected, "{query}: {page}");
        assert_eq!((text(&page, "/next_cursor"), int(&page, "/count")), ("LTE=", *expected as i64), "{query}");
        cases.one();
    }
    let _ = (other_outcome, other_market);
    let trade = text(&client.get("/v1/data/trades").expect(200), "/data/0/id").to_owned();
    for (query, expected) in [
        (String::new(), 1),
        (format!("market={market}&asset_id={token}"), 1),
        (format!("asset_id={}", rain.no()), 0),
        (format!("market={unknown}"), 0),
        (format!("id={trade}"), 1),
        ("id=1".into(), 0),
        (format!("id={filled}"), 0),
        (format!("after={}", created - 60), 1),
        (format!("before={}", created - 60), 0),
        ("maker_address=0xA1&maker=x&taker=y".into(), 1),
    ] {
        let page = client.get(&format!("/v1/data/trades?{query}")).expect(200);
        assert_eq!(list(&page, "/data").len(), expected, "{query}: {page}");
        cases.one();
    }
    // Invalid parameters, on both lists; the statuses are those of orders only.
    for (query, status, code) in [
        ("limit=0", 422, "VALIDATION_FAILED"),
        ("limit=501", 422, "VALIDATION_FAILED"),
        ("limit=x", 422, "VALIDATION_FAILED"),
        ("wallet_id=x", 422, "VALIDATION_FAILED"),
        ("wallet_id=1", 404, "WALLET_NOT_FOUND"),
        ("before=soon", 400, "INVALID_TIME_FILTER"),
        ("after=-1", 400, "INVALID_TIME_FILTER"),
        ("after=1790932445000000", 400, "INVALID_TIME_FILTER"),
        ("before=1e9", 400, "INVALID_TIME_FILTER"),
        ("next_cursor=x", 400, "INVALID_CURSOR"),
        ("cursor=NTA=", 400, "INVALID_CURSOR"),
    ] {
        for list in ["orders", "trades"] {
            client.get(&format!("/v1/data/{list}?{query}")).refused(status, code);
            cases.one();
        }
    }
    for status in ["status=OPENED", "status=7"] {
        client.get(&format!("/v1/data/orders?{status}")).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    let absent = [foreign.to_owned(), "7".into(), "x".into(), "0x1".into(), unknown, "%00".into(), "-1".into()];
    for id in &absent {
        for path in ["/v1/data/order/", "/v1/order/"] {
            let refused = client.get(&format!("{path}{id}")).refused(404, "ORDER_NOT_FOUND");
            assert_eq!(refused, client.get("/v1/data/order/1").refused(404, "ORDER_NOT_FOUND"), "{id}");
            cases.one();
        }
    }
}

#[test]
fn what_there_is_none_of_is_an_empty_page() {
    let cases = Cases::of("empty pages");
    let world = World::start(1);
    let empty = json!({"limit": 100, "count": 0, "next_cursor": "LTE=", "data": []});
    for path in [
        "/v1/builder/trades",
        "/builder/trades",
        "/v1/data/pre-migration-orders?next_cursor=MA==",
        "/data/orders",
        "/data/trades",
    ] {
        assert_eq!(world.user(0).get(path).expect(200), empty, "{path}");
        let bare = world.public().get(path);
        // Clients request a builder's trades with the builder's headers alone (gateway/docs/venue-clients.md §8).
        match path.contains("/builder/") {
            true => assert_eq!(bare.expect(200), empty, "{path}"),
            false => _ = bare.refused(401, "MISSING_API_KEY"),
        }
        cases.one();
    }
}

/// In the strict dialect, orders of a resolved market end with a status of their own.
#[test]
fn a_resolution_differs_from_a_cancel() {
    let cases = Cases::of("resolutions");
    let mut world = World::start(1);
    let rain = world.markets.rain.clone();
    let mut client = world.user(0);
    client.post("/v1/orders", &market(&rain, "BUY", "0.42", "10")).expect(200);
    let placed = client.post("/v1/order", &signed(&v1(rain.yes(), "BUY", "3700000", "10000000"), "GTC")).expect(200);
    let path = format!("/v1/data/order/{}", text(&placed, "/orderID"));
    world.tape.resolve(&rain, ["1", "0"]);
    world.until(&path, |row| text(row, "/status") != "ORDER_STATUS_LIVE");
    assert_eq!(text(&client.get(&path).expect(200), "/status"), "ORDER_STATUS_CANCELED");
    assert_eq!(text(&strict(&world, 0).get(&path).expect(200), "/status"), "CANCELED_MARKET_RESOLVED");
    let page = client.get("/v1/data/orders?status=CANCELED").expect(200);
    assert_eq!(list(&page, "/data").len(), 1);
    assert_eq!(list(&client.get("/v1/data/orders?status=EXPIRED").expect(200), "/data").len(), 1);
    cases.add(4);
}
