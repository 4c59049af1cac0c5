//! Cancels and heartbeats in the venue's shapes (gateway/docs/venue-clients.md §6, §8).

use crate::clob_bodies::{signed, v1};
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::eventually;
use tests::http::{Client, Request, Response};
use tests::json::{at, int, list, text};
use tests::world::{World, limit, market};

const SENTENCE: &str = "order can't be found - already canceled or matched";

fn delete(client: &mut Client, path: &str, body: &Value) -> Response {
    client.send(&Request::new("DELETE", path).json(body))
}

/// A resting order: its venue-shaped id.
fn rest(client: &mut Client, world: &World) -> String {
    let body = signed(&v1(world.markets.rain.yes(), "BUY", "100000", "10000000"), "GTC");
    text(&client.post("/v1/order", &body).expect(200), "/orderID").to_owned()
}

fn decimal(id: &str) -> String {
    u64::from_str_radix(&id[50..], 16).expect("hex").to_string()
}

fn strict(world: &World, user: usize) -> Client {
    world.public().with_header("POLY_API_KEY", &world.users[user].key)
}

#[test]
fn one_order_is_cancelled_by_either_form_of_its_id() {
    let cases = Cases::of("one cancel");
    let world = World::start(2);
    let mut client = world.user(0);
    for name in ["orderID", "orderId", "order_id", "id"] {
        for form in [str::to_owned as fn(&str) -> String, decimal] {
            for path in ["/v1/order", "/order"] {
                let id = form(&rest(&mut client, &world));
                let answer = delete(&mut client, path, &json!({name: id})).expect(200);
                assert_eq!(answer, json!({"canceled": [id], "not_canceled": {}}));
                // A second cancel finds nothing: as a code, and in the venue's sentence.
                let again = delete(&mut client, path, &json!({name: id})).expect(200);
                assert_eq!(again, json!({"canceled": [], "not_canceled": {id.clone(): "ORDER_NOT_CANCELLABLE"}}));
                let body = delete(&mut strict(&world, 0), path, &json!({name: id})).expect(200);
                assert_eq!(body, json!({"canceled": [], "not_canceled": {id: SENTENCE}}));
                cases.add(3);
            }
        }
    }
    // A number is an id too; unknown, foreign and malformed ids get the same answer.
    let id = decimal(&rest(&mut client, &world));
    let number: u64 = id.parse().expect("digits");
    assert_eq!(delete(&mut client, "/v1/order", &json!({"orderID": number})).expect(200)["canceled"], json!([id]));
    let theirs = rest(&mut world.user(1), &world);
    for id in [theirs.as_str(), &decimal(&theirs), "1", "x", "", "0x", "-1", "a\"b\\c\n"] {
        let answer = delete(&mut client, "/v1/order", &json!({"orderID": id})).expect(200);
        assert_eq!(answer, json!({"canceled": [], "not_canceled": {id: "ORDER_NOT_FOUND"}}), "{id:?}");
        cases.one();
    }
    assert_eq!(list(&world.user(1).get("/v1/data/orders").expect(200), "/data").len(), 1);
    for (body, code) in [
        (json!({}), "INVALID_REQUEST"),
        (json!({"orderID": null}), "INVALID_REQUEST"),
        (json!({"orderID": []}), "INVALID_BODY"),
        (json!({"orderID": true}), "INVALID_BODY"),
        (json!([]), "INVALID_BODY"),
        (json!("x"), "INVALID_BODY"),
    ] {
        delete(&mut client, "/v1/order", &body).refused(400, code);
        cases.one();
    }
    client.send(&Request::new("DELETE", "/v1/order")).refused(400, "INVALID_BODY");
    cases.one();
}

#[test]
fn a_list_of_orders_is_cancelled_in_one_call() {
    let cases = Cases::of("many cancels");
    let world = World::start(2);
    let mut client = world.user(0);
    let filled = client
        .post("/v1/order", &signed(&v1(world.markets.rain.yes(), "BUY", "4200000", "10000000"), "FOK"))
        .expect(200);
    let filled = text(&filled, "/orderID").to_owned();
    let ids: Vec<String> = (0..5).map(|_| rest(&mut client, &world)).collect();
    let theirs = rest(&mut world.user(1), &world);
    // Both forms, repeated, in any order, mixed with others: each order once, under its first form.
    let asked = json!([ids[1], decimal(&ids[0]), ids[0], ids[1], filled, theirs, "x", "x", ids[4], 7]);
    let answer = delete(&mut client, "/v1/orders", &asked).expect(200);
    let expected = json!({
        "canceled": [ids[1], decimal(&ids[0]), ids[4]],
        "not_canceled": {filled.clone(): "ORDER_NOT_CANCELLABLE", theirs: "ORDER_NOT_FOUND", "x": "ORDER_NOT_FOUND", "7": "ORDER_NOT_FOUND"}
    });
    assert_eq!(answer, expected);
    let body = delete(&mut strict(&world, 0), "/orders", &json!([filled, ids[2]])).expect(200);
    assert_eq!(body, json!({"canceled": [ids[2]], "not_canceled": {filled: SENTENCE}}));
    let row = client.get(&format!("/v1/orders/{}", decimal(&ids[2]))).expect(200);
    assert_eq!(text(&row, "/cancelled_reason"), "user_cancelled");
    assert_eq!(list(&client.get("/v1/data/orders").expect(200), "/data").len(), 1);
    cases.add(4);
    for client in [&mut world.user(0), &mut strict(&world, 0)] {
        let none = delete(client, "/v1/orders", &json!([])).expect(200);
        assert_eq!(none, json!({"canceled": [], "not_canceled": {}}));
        cases.one();
    }
    for body in [json!({}), json!("x"), json!([null]), json!([[]]), json!([{}]), json!(vec!["1"; 3_001])] {
        delete(&mut client, "/v1/orders", &body).refused(400, "INVALID_BODY");
        cases.one();
    }
    let unknown: Vec<String> = (0..3_000).map(|id| id.to_string()).collect();
    let answer = delete(&mut client, "/v1/orders", &json!(unknown)).expect(200);
    assert_eq!(at(&answer, "/not_canceled").as_object().map(|left| left.len()), Some(3_000));
    cases.one();
}

/// More than one record and more than one turn.
#[test]
fn three_thousand_orders_are_cancelled_in_one_call() {
    let cases = Cases::of("largest cancel");
    let mut world = World::start(1);
    let mut client = world.user(0);
    let ids: Vec<String> = (0..2_500).map(|_| rest(&mut client, &world)).collect();
    let answer = delete(&mut client, "/v1/orders", &json!(ids)).expect(200);
    assert_eq!(list(&answer, "/canceled").len(), 2_500);
    assert_eq!(at(&answer, "/not_canceled"), &json!({}));
    world.crash();
    let mut client = world.user(0);
    assert_eq!(list(&client.get("/v1/data/orders").expect(200), "/data").len(), 0);
    let balance = client.get("/v1/account/balance").expect(200);
    assert_eq!((text(&balance, "/balance"), text(&balance, "/reserved")), ("10000.00", "0.00"));
    cases.add(3);
}

#[test]
fn sweeps_answer_in_the_form_of_their_caller() {
    let cases = Cases::of("sweeps");
    let world = World::start(1);
    let rain = world.markets.rain.clone();
    let body = json!({"market": rain.condition, "asset_id": ""});
    let mut plain = world.user(0);
    let mut typed = strict(&world, 0);
    // (method, path, body, caller is strict, ids are hex)
    let rows = [
        ("DELETE", "/v1/cancel-all", None, false, false),
        ("DELETE", "/v1/cancel-all", None, true, true),
        ("DELETE", "/cancel-all", None, true, true),
        ("POST", "/v1/cancel-all?confirm=true", None, false, false),
        ("POST", "/v1/cancel-all?confirm=true", None, true, false),
        ("DELETE", "/v1/cancel-market-orders", Some(&body), false, false),
        ("DELETE", "/v1/cancel-market-orders", Some(&body), true, true),
        ("POST", "/v1/cancel-market-orders", Some(&body), true, true),
        ("DELETE", "/cancel-market-orders", Some(&body), true, true),
    ];
    for (method, path, body, is_strict, is_hex) in rows {
        let id = rest(&mut plain, &world);
        let mut request = Request::new(method, path);
        if let Some(body) = body {
            request = request.json(body);
        }
        let client = if is_strict { &mut typed } else { &mut plain };
        let answer = client.send(&request);
        let shown = if is_hex { id.clone() } else { decimal(&id) };
        assert_eq!(answer.expect(200), json!({"canceled": [shown], "not_canceled": {}}), "{method} {path} {is_strict}");
        // Only native callers get the notice that the unconfirmed sweep is deprecated.
        let deprecated = method == "DELETE" && path.ends_with("cancel-all") && !is_strict;
        assert_eq!(answer.header("Deprecation").is_some(), deprecated, "{method} {path} {is_strict}");
        cases.one();
    }
    for unknown in [json!({"market": "0x9"}), json!({"asset_id": "7"})] {
        rest(&mut plain, &world);
        let answer = delete(&mut typed, "/v1/cancel-market-orders", &unknown).expect(200);
        assert_eq!(answer, json!({"canceled": [], "not_canceled": {}}));
        cases.one();
    }
    delete(&mut typed, "/v1/cancel-market-orders", &json!({"market": "", "asset_id": ""}))
        .refused(400, "INVALID_REQUEST");
    cases.one();
}

#[test]
fn a_venue_heartbeat_goes_on_from_beat_to_beat() {
    let cases = Cases::of("venue heartbeats");
    let mut world = World::start(2);
    let mut client = world.user(0);
    let beat = |client: &mut Client, id: Value| client.post("/v1/heartbeats", &json!({"heartbeat_id": id}));
    let wrong = |answer: &Response, current: &str| {
        let refused = answer.refused(400, "INVALID_REQUEST");
        let expected = json!({
            "error": "INVALID_REQUEST", "message": "Invalid Heartbeat ID", "error_msg": "Invalid Heartbeat ID",
            "heartbeat_id": current
        });
        assert_eq!(refused, expected);
    };
    // Before the first heartbeat no id is right.
    wrong(&beat(&mut client, json!("4f0c9d2a-0011-8233-9455-66778899aabb")), "");
    let first = beat(&mut client, json!("")).expect(200);
    let first = text(&first, "/heartbeat_id").to_owned();
    let second = beat(&mut client, json!(first)).expect(200);
    let second = text(&second, "/heartbeat_id").to_owned();
    assert!(first != second && second.len() == 36, "{first} {second}");
    cases.add(3);
    for id in [json!(first), json!("x"), json!(7), json!("4f0c9d2a-0011-8233-9455-66778899aabb")] {
        wrong(&beat(&mut client, id), &second);
        cases.one();
    }
    // Another user has its own heartbeat; the doubled prefix and the root are the same route.
    wrong(&beat(&mut world.user(1), json!(second)), "");
    let third = client.post("/v1/v1/heartbeats", &json!({"heartbeat_id": second})).expect(200);
    let fourth = client.post("/heartbeats", &json!({"heartbeat_id": text(&third, "/heartbeat_id")})).expect(200);
    // A restarted client has no id, and one that reconnects after a restart of the server has the last one.
    let anew = beat(&mut client, json!(null)).expect(200);
    assert_ne!(anew, fourth);
    cases.add(4);
    world.crash();
    let mut client = world.user(0);
    let after = beat(&mut client, anew["heartbeat_id"].clone()).expect(200);
    wrong(&beat(&mut client, anew["heartbeat_id"].clone()), text(&after, "/heartbeat_id"));
    cases.add(2);
    // Ended explicitly, it is as before the first.
    client.delete("/v1/heartbeats").expect(200);
    wrong(&beat(&mut client, after["heartbeat_id"].clone()), "");
    for body in [json!({}), json!({"interval_ms": null}), json!({"interval_ms": 1, "heartbeat_id": ""})] {
        client.post("/v1/heartbeats", &body).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    // Without a body nothing is armed, and nothing armed ends.
    let mut none = world.user(1);
    for path in ["/v1/heartbeats", "/heartbeats", "/v1/v1/heartbeats"] {
        assert_eq!(none.send(&Request::post(path)).expect(200), json!({"status": "ok"}));
        cases.one();
    }
    wrong(&beat(&mut none, json!(second)), "");
    // `interval_ms` distinguishes the two.
    let native = client.post("/v1/heartbeats", &json!({"interval_ms": 60_000, "heartbeat_id": "x"})).expect(200);
    assert!(int(&native, "/expires_at_ms") > 0, "{native}");
    cases.add(2);
}

/// Ten seconds without a heartbeat, by the server's clock.
#[test]
fn a_lapsed_heartbeat_cancels_what_rests() {
    let cases = Cases::of("lapsed heartbeats");
    let mut world = World::start_with(2, |place| {
        place.clock_ahead(0);
    });
    let mut client = world.user(0);
    let ids: Vec<String> = (0..3).map(|_| rest(&mut client, &world)).collect();
    let native = client.post("/v1/orders", &limit(&world.markets.coin, "BUY", "0.40", "10")).expect(200);
    client.post("/v1/orders", &market(&world.markets.rain, "BUY", "0.42", "10")).expect(200);
    let theirs = rest(&mut world.user(1), &world);
    let beat = client.post("/v1/heartbeats", &json!({"heartbeat_id": null})).expect(200);
    assert_eq!(list(&client.get("/v1/data/orders").expect(200), "/data").len(), 4);
    world.place.clock_ahead(30);
    eventually("the heartbeat to lapse", || {
        list(&client.get("/v1/data/orders").expect(200), "/data").is_empty().then_some(())
    });
    for id in ids.iter().map(|id| decimal(id)).chain([int(&native, "/order_id").to_string()]) {
        let row = client.get(&format!("/v1/orders/{id}")).expect(200);
        assert_eq!((text(&row, "/status"), text(&row, "/cancelled_reason")), ("CANCELLED", "heartbeat_lapsed"));
        cases.one();
    }
    assert_eq!(
        text(&world.user(1).get(&format!("/v1/data/order/{theirs}")).expect(200), "/status"),
        "ORDER_STATUS_LIVE"
    );
    let gone = client.post("/v1/heartbeats", &beat).refused(400, "INVALID_REQUEST");
    assert_eq!(text(&gone, "/heartbeat_id"), "");
    // It may start again.
    rest(&mut client, &world);
    client.post("/v1/heartbeats", &json!({"heartbeat_id": text(&gone, "/heartbeat_id")})).expect(200);
    assert_eq!(list(&client.get("/v1/data/orders").expect(200), "/data").len(), 1);
    cases.add(3);
}
