//! An object of another user gets exactly the answer of an object that does not exist.

use crate::table::Table;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit, market};

/// Status, body without the requested id, and the headers that could reveal something.
fn shape(client: &mut Client, request: &Request, id: &str) -> (u16, String, Vec<String>) {
    let answer = client.send(request);
    let names: Vec<String> = answer.headers.iter().map(|(name, _)| name.to_lowercase()).collect();
    (answer.status, answer.lossy().replace(id, "ID"), names)
}

#[test]
fn foreign_ids_look_unknown() {
    let cases = Cases::of("foreign ids");
    let world = World::start(2);
    let rain = &world.markets.rain;
    let mut owner = world.user(0);
    let named = changed(&limit(rain, "BUY", "0.30", "10"), &json!({"client_order_id": "mine alone"}));
    let order = owner.post("/v1/orders", &named).expect(200);
    let filled = owner.post("/v1/orders", &market(rain, "BUY", "0.42", "10")).expect(200);
    let key = owner.post("/v1/keys", &json!({})).expect(201);
    let wallet = int(&order, "/wallet_id").to_string();
    let (order_id, filled_id, key_id) =
        (int(&order, "/order_id").to_string(), int(&filled, "/order_id").to_string(), int(&key, "/id").to_string());
    // Ids as large as a real one, of no object.
    let unknown = (int(&order, "/order_id") + 100_000).to_string();
    let in_wallet = |id: &str| {
        changed(&limit(rain, "BUY", "0.30", "10"), &json!({"wallet_id": id.parse::<i64>().expect("a number")}))
    };
    type Door<'a> = Box<dyn Fn(&str) -> Request + 'a>;
    let doors: Vec<(Door, &str, u16)> = vec![
        (Box::new(|id| Request::get(&format!("/v1/orders/{id}"))), &order_id, 404),
        (Box::new(|id| Request::get(&format!("/v1/orders/{id}?source=filled"))), &filled_id, 404),
        (Box::new(|id| Request::new("DELETE", &format!("/v1/orders/{id}"))), &order_id, 404),
        (Box::new(|id| Request::new("DELETE", &format!("/v1/orders/{id}"))), &filled_id, 404),
        (Box::new(|id| Request::get(&format!("/v1/orders?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/account/balance?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/account/positions?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/account/portfolio?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/account/history?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/account/equity?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/me?wallet_id={id}"))), &wallet, 404),
        (Box::new(|id| Request::get(&format!("/v1/me/wallets/{id}"))), &wallet, 404),
        (
            Box::new(|id| Request::new("PATCH", &format!("/v1/me/wallets/{id}")).json(&json!({"label": "x"}))),
            &wallet,
            404,
        ),
        (Box::new(|id| Request::new("DELETE", &format!("/v1/me/wallets/{id}"))), &wallet, 404),
        (Box::new(|id| Request::post(&format!("/v1/me/wallets/{id}/reset"))), &wallet, 404),
        (Box::new(|id| Request::post(&format!("/v1/cancel-all?confirm=true&wallet_id={id}"))), &wallet, 404),
        (Box::new(move |id| Request::post("/v1/orders").json(&in_wallet(id))), &wallet, 404),
        (Box::new(|id| Request::new("PATCH", &format!("/v1/keys/{id}")).json(&json!({"name": "x"}))), &key_id, 404),
        (Box::new(|id| Request::new("DELETE", &format!("/v1/keys/{id}"))), &key_id, 404),
        (Box::new(|id| Request::post(&format!("/v1/keys/{id}/rotate"))), &key_id, 404),
    ];
    let mut stranger = world.user(1);
    for (door, id, status) in &doors {
        let foreign = shape(&mut stranger, &door(id), id);
        let nobodys = shape(&mut stranger, &door(&unknown), &unknown);
        assert_eq!(foreign.0, *status, "{foreign:?}");
        assert_eq!(foreign, nobodys);
        cases.one();
    }
    stranger.get("/v1/orders/by-client-id/mine%20alone").refused(404, "ORDER_NOT_FOUND");
    // And the owner lost nothing by it.
    let kept = owner.get(&format!("/v1/orders/{order_id}")).expect(200);
    assert_eq!(text(&kept, "/status"), "PENDING");
    assert_eq!(list(&owner.get("/v1/keys").expect(200), "").len(), 2);
    cases.add(3);
}

/// The path to an object with that id.
type PathOf<'a> = Box<dyn Fn(&str) -> String + 'a>;

/// The same through every route of the table that names an object of a user: in its path, or by `wallet_id`.
#[test]
fn no_route_distinguishes_a_foreign_id_from_an_unknown_one() {
    let cases = Cases::of("foreign ids of the table");
    let world = World::start_with(2, |place| {
        place.set("limits.tiers.enterprise", "requests_per_second", "100000");
        place.set("limits.tiers.enterprise", "requests_per_minute", "100000");
    });
    let rain = &world.markets.rain;
    let mut owner = world.user(0);
    let named = changed(&limit(rain, "BUY", "0.30", "10"), &json!({"client_order_id": "7000001"}));
    let order = owner.post("/v1/orders", &named).expect(200);
    let key = owner.post("/v1/keys", &json!({})).expect(201);
    let (order_id, wallet_id) = (int(&order, "/order_id").to_string(), int(&order, "/wallet_id").to_string());
    let key_id = int(&key, "/id").to_string();
    let chat = owner.post("/v1/integrations/discord", &json!({"url": "https://chat.invalid/a"})).expect(201);
    let chat_id = int(&chat, "/id").to_string();
    let unknown = (int(&order, "/order_id") + 100_000).to_string();
    let mut stranger = world.user(1);
    for door in &Table::of(&world).doors {
        let path = door.route.path;
        let glue = if door.path.contains('?') { '&' } else { '?' };
        let (id, path_of): (&str, PathOf<'_>) = match () {
            () if path.contains("{client_order_id}") => {
                ("7000001", Box::new(|id: &str| path.replace("{client_order_id}", id)))
            }
            () if path.contains("{order_id}") => {
                (order_id.as_str(), Box::new(|id: &str| path.replace("{order_id}", id)))
            }
            () if path.starts_with("/v1/keys/{id}") => (key_id.as_str(), Box::new(|id: &str| path.replace("{id}", id))),
            () if path.starts_with("/v1/me/wallets/{id}") => {
                (wallet_id.as_str(), Box::new(|id: &str| path.replace("{id}", id)))
            }
            () if path.starts_with("/v1/integrations/") && path.contains("{id}") => {
                let path = path.replace("{chat}", "discord");
                (chat_id.as_str(), Box::new(move |id: &str| path.replace("{id}", id)))
            }
            () if door.route.params.iter().any(|param| param.name == "wallet_id") => {
                let confirmed = if path == "/v1/cancel-all" { "&confirm=true" } else { "" };
                (wallet_id.as_str(), Box::new(move |id: &str| format!("{}{glue}wallet_id={id}{confirmed}", door.path)))
            }
            // Facts of football are no one's.
            () if path.starts_with("/v1/football/") => continue,
            () => {
                assert!(!path.contains("{id}"), "{door}: whose id is it?");
                continue;
            }
        };
        let unknown = if path.contains("{client_order_id}") { "7000002" } else { unknown.as_str() };
        let knock = |client: &mut Client, id: &str| {
            let request = Request { path: path_of(id), ..door.example() };
            shape(client, &request, id)
        };
        let (theirs, nobodys) = (knock(&mut stranger, id), knock(&mut stranger, unknown));
        assert_eq!(theirs, nobodys, "{door}");
        assert!((400..500).contains(&theirs.0) || path.starts_with("/v1/export"), "{door}: {theirs:?}");
        cases.one();
    }
    // And the owner lost nothing by it.
    let kept = owner.get(&format!("/v1/orders/{order_id}")).expect(200);
    assert_eq!(text(&kept, "/status"), "PENDING");
    assert_eq!(list(&owner.get("/v1/keys").expect(200), "").len(), 2);
}

#[test]
fn lists_show_nothing_of_others() {
    let cases = Cases::of("lists of others");
    let world = World::start(2);
    let rain = &world.markets.rain;
    world.user(0).post("/v1/orders", &market(rain, "BUY", "0.42", "10")).expect(200);
    world.user(0).post("/v1/orders", &limit(rain, "BUY", "0.30", "10")).expect(200);
    let mut stranger = world.user(1);
    let empty = [
        ("/v1/orders?wallet_id=all", "/orders"),
        ("/v1/account/positions?wallet_id=all", ""),
        ("/v1/account/history?wallet_id=all", ""),
        ("/v1/account/portfolio?wallet_id=all", "/positions"),
    ];
    for (path, place) in empty {
        let shown: Value = stranger.get(path).expect(200);
        assert_eq!(at(&shown, place), &json!([]), "{path}");
        cases.one();
    }
    let swept = stranger.post("/v1/cancel-all?confirm=true&wallet_id=all", &json!({})).expect(200);
    assert_eq!(at(&swept, "/canceled"), &json!([]));
    // A cursor of one user gives no access to another's rows.
    let page = world.user(0).get("/v1/orders?limit=1").expect(200);
    let cursor = text(&page, "/next_cursor");
    let shown = stranger.get(&format!("/v1/orders?cursor={cursor}")).expect(200);
    assert_eq!(at(&shown, "/orders"), &json!([]));
    cases.add(2);
}
