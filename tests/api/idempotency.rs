//! Repeated requests (gateway/docs/wire.md §11).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

fn place(client: &mut Client, body: &Value, header: Option<&str>) -> Response {
    let mut request = Request::post("/v1/orders").json(body);
    if let Some(key) = header {
        request = request.header("Idempotency-Key", key);
    }
    client.send(&request)
}

#[test]
fn a_repeat_gives_the_first_answer_and_does_nothing() {
    let cases = Cases::of("replays");
    let mut world = World::start(8);
    let m = world.markets.rain.clone();
    let named = |body: Value| changed(&body, &json!({"client_order_id": "n"}));
    let fok = changed(&limit(&m, "BUY", "0.42", "100"), &json!({"time_in_force": "FOK"}));
    let fak = changed(&limit(&m, "BUY", "0.40", "10"), &json!({"time_in_force": "FAK"}));
    // Body, header of the first, header of the second.
    let rows: [(Value, Option<&str>, Option<&str>); 8] = [
        (named(limit(&m, "BUY", "0.37", "20")), None, None),
        (named(market(&m, "BUY", "0.42", "20")), None, None),
        (limit(&m, "BUY", "0.37", "20"), Some("h"), Some("h")),
        (named(limit(&m, "BUY", "0.37", "20")), Some("n"), Some("n")),
        (named(limit(&m, "BUY", "0.37", "20")), Some("n"), None),
        (named(limit(&m, "BUY", "0.37", "20")), None, Some("n")),
        (named(fok), None, None),
        (named(fak), None, None),
    ];
    let mut firsts = Vec::new();
    for (user, (body, first, second)) in rows.iter().enumerate() {
        let mut client = world.user(user);
        let one = place(&mut client, body, *first);
        let two = place(&mut client, body, *second);
        assert_replay(&one, &two, body);
        firsts.push(one);
        cases.one();
    }
    // The remembered answer survives a crash: it is part of the order's own record.
    world.crash();
    for (user, (body, first, _)) in rows.iter().enumerate() {
        let mut client = world.user(user);
        let again = place(&mut client, body, *first);
        assert_replay(&firsts[user], &again, body);
        assert_eq!(list(&client.get("/v1/orders").expect(200), "/orders").len(), 1, "one order: {body}");
        cases.one();
    }
}

fn assert_replay(one: &Response, two: &Response, body: &Value) {
    assert_eq!(one.status, two.status, "{body}: {}", two.lossy());
    assert_eq!(one.header("X-Svc-Order-Id"), two.header("X-Svc-Order-Id"), "{body}");
    if one.status != 200 {
        assert_eq!(one.code(), two.code(), "{body}");
        return;
    }
    let (one, two) = (one.json(), two.json());
    assert_eq!(at(&two, "/is_replay"), &json!(true), "{body}");
    for (field, first) in one.as_object().expect("an object") {
        let again = at(&two, &format!("/{field}"));
        match field.as_str() {
            "is_replay" => continue,
            // Figures of the walk are not kept (gateway/docs/wire.md §11).
            "spread_bps" | "impact_bps" | "book_walk_levels" => assert_eq!(again, &Value::Null, "{field}"),
            _ => assert_eq!(again, first, "{field} of {two}"),
        }
    }
}

#[test]
fn the_order_of_fields_and_their_spelling_are_no_difference() {
    let cases = Cases::of("canonical bodies");
    let world = World::start(1);
    let condition = &world.markets.rain.condition;
    let first = format!(
        r#"{{"market_id":"{condition}","outcome":"Yes","side":"BUY","order_type":"limit","price":"0.37","quantity":"20","client_order_id":"c"}}"#
    );
    let turned = format!(
        r#"{{ "client_order_id" : "c", "quantity":"20","price":"0.37", "order_type":"limit","side":"BUY","outcome":"Yes","market_id":"\u0030{}" }}"#,
        &condition[1..]
    );
    let mut client = world.user(0);
    let send =
        |client: &mut Client, text: &str| client.send(&Request::post("/v1/orders").text("application/json", text));
    let one = send(&mut client, &first).expect(200);
    let two = send(&mut client, &turned).expect(200);
    assert_eq!(int(&one, "/order_id"), int(&two, "/order_id"));
    cases.add(2);
}

#[test]
fn the_same_id_for_another_request_is_a_conflict() {
    let cases = Cases::of("conflicts");
    let world = World::start(1);
    let rain = &world.markets.rain;
    let first = changed(&limit(rain, "BUY", "0.37", "20"), &json!({"client_order_id": "id"}));
    let mut client = world.user(0);
    let placed = place(&mut client, &first, None).expect(200);
    let by_header = changed(&first, &json!({"client_order_id": null}));
    let other = |changes: Value| changed(&first, &changes);
    let rows = [
        (other(json!({"quantity": "21"})), None, "DUPLICATE_CLIENT_ORDER_ID"),
        (other(json!({"price": "0.36"})), None, "DUPLICATE_CLIENT_ORDER_ID"),
        (other(json!({"unknown": 1})), None, "DUPLICATE_CLIENT_ORDER_ID"),
        (changed(&by_header, &json!({"quantity": "21"})), Some("id"), "IDEMPOTENCY_KEY_REUSE"),
        (other(json!({"quantity": "21"})), Some("id"), "IDEMPOTENCY_KEY_REUSE"),
        // An invalid body under a known id is first of all another body (gateway/docs/wire.md §7: 13 before 15).
        (other(json!({"side": "HOLD"})), None, "DUPLICATE_CLIENT_ORDER_ID"),
    ];
    for (body, header, code) in rows {
        place(&mut client, &body, header).refused(409, code);
        cases.one();
    }
    let different = place(&mut client, &first, Some("another id"));
    different.refused(422, "VALIDATION_FAILED");
    // The id belongs to the user, for all endpoints.
    let entry = client.post("/v1/orders/batch", &json!([other(json!({"quantity": "21"}))])).expect(200);
    assert_eq!(text(&entry, "/results/0/error"), "DUPLICATE_CLIENT_ORDER_ID");
    let orders = client.get("/v1/orders").expect(200);
    assert_eq!(list(&orders, "/orders").len(), 1);
    assert_eq!(int(&orders, "/orders/0/order_id"), int(&placed, "/order_id"));
    cases.add(2);
}

#[test]
fn a_refusal_without_a_row_is_forgotten() {
    let cases = Cases::of("forgotten");
    let world = World::start(2);
    let rain = &world.markets.rain;
    let bad = changed(&limit(rain, "BUY", "0.375", "20"), &json!({"client_order_id": "again"}));
    let good = changed(&bad, &json!({"price": "0.37"}));
    let mut client = world.user(0);
    place(&mut client, &bad, None).refused(400, "INVALID_ORDER_MIN_TICK_SIZE");
    place(&mut client, &good, None).expect(200);
    cases.one();
    // An empty id counts as absent.
    for _ in 0..2 {
        let answer = place(&mut client, &changed(&good, &json!({"client_order_id": ""})), Some("")).expect(200);
        assert_eq!((at(&answer, "/is_replay"), at(&answer, "/client_order_id")), (&json!(false), &Value::Null));
        cases.one();
    }
    // Another user's id is another id.
    let answer = place(&mut world.user(1), &good, None).expect(200);
    assert_eq!(at(&answer, "/is_replay"), &json!(false));
    cases.one();
}

#[test]
fn many_at_once_under_one_id_are_one_order() {
    let cases = Cases::of("races");
    let world = World::start(1);
    let body = changed(&limit(&world.markets.rain, "BUY", "0.37", "20"), &json!({"client_order_id": "race"}));
    let ids: Vec<Option<i64>> = std::thread::scope(|scope| {
        let racers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let answer = place(&mut world.user(0), &body, None);
                    match answer.status {
                        200 => Some(int(&answer.json(), "/order_id")),
                        // Still running, or too many of one user at the same time: both are reported, and nothing
                        // happened.
                        _ => {
                            assert!(
                                ["IDEMPOTENCY_CONFLICT_PENDING", "RATE_LIMITED"].contains(&answer.code().as_str()),
                                "{}",
                                answer.lossy()
                            );
                            None
                        }
                    }
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().expect("a racer")).collect()
    });
    let mut known: Vec<i64> = ids.into_iter().flatten().collect();
    cases.add(known.len());
    known.dedup();
    assert_eq!(known.len(), 1);
    assert_eq!(list(&world.user(0).get("/v1/orders").expect(200), "/orders").len(), 1);
}
