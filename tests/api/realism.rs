//! Sets of realism, and places in queues (engine/docs/execution.md §16, §17; gateway/docs/keys.md §10;
//! gateway/docs/admin.md §5).

use serde_json::{Value, json};
use std::fs;
use tests::cases::Cases;
use tests::eventually;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::world::{World, changed, limit};

fn order_when(client: &mut Client, id: i64, ready: impl Fn(&Value) -> bool) -> Value {
    eventually(&format!("order {id}"), || Some(client.get(&format!("/v1/orders/{id}")).expect(200)).filter(&ready))
}

/// A world with a short matching cycle, the admin listener, and a set of its own.
fn world() -> World {
    World::start_with(1, |place| {
        place.set("flags", "match_interval_ms", "100").set("admin", "listen", "\"127.0.0.1:0\"");
        place.set("realism.sets.mine", "base", "\"venue\"").set("realism.sets.mine", "n", "3");
    })
}

fn operator(world: &World) -> Client {
    let token = fs::read_to_string(world.place.data().join("admin_token")).expect("the server made one");
    let admin = world.server.admin().expect("there is one");
    Client::with_header(Client::new(admin), "Authorization", &format!("Bearer {token}"))
}

#[test]
fn a_key_has_a_set_and_an_order_keeps_its_model() {
    let cases = Cases::of("sets of keys");
    let mut world = world();
    let (mut client, mut control) = (world.user(0), operator(&world));
    let rain = world.markets.rain.clone();
    let key = list(&client.get("/v1/keys").expect(200), "").first().map(|key| int(key, "/id")).expect("its own");
    let (own, of_operator) = (format!("/v1/keys/{key}"), format!("/v1/admin/keys/{key}/realism"));
    let set_of = |client: &mut Client| text(&client.get("/v1/keys").expect(200), "/0/realism").to_owned();
    let model_of = |client: &mut Client, id: i64| {
        let order = client.get(&format!("/v1/orders/{id}")).expect(200);
        text(&order, "/fill_model").to_owned()
    };
    assert_eq!(set_of(&mut client), "kind");
    let far = changed(&limit(&rain, "BUY", "0.20", "10"), &json!({}));
    let mut placed = Vec::new();
    for (set, model) in [("kind", "cross"), ("venue", "queue_prob"), ("thin", "queue"), ("brutal", "through")] {
        let shown = client.patch(&own, &json!({"realism": set})).expect(200);
        assert_eq!((text(&shown, "/realism"), set_of(&mut client)), (set, set.to_owned()));
        let id = int(&client.post("/v1/orders", &far).expect(200), "/order_id");
        placed.push((id, model));
        cases.one();
    }
    let chosen = control.put(&of_operator, &json!({"set": "mine"})).expect(200);
    let settings = json!({
        "fill_model": "queue_prob", "n": 3, "cancel_share": "0.0000", "depth_share": "1.0000",
        "match_window_ms": 1000, "half_life_s": 60
    });
    assert_eq!(chosen, json!({"key_id": key, "set": "mine", "settings": settings}));
    let refusals = [
        (json!({"set": "theirs"}), 422, "VALIDATION_FAILED"),
        (json!({"set": "mine", "seed": 7}), 422, "VALIDATION_FAILED"),
        (json!({}), 422, "VALIDATION_FAILED"),
        (json!([]), 400, "INVALID_BODY"),
    ];
    for (body, status, code) in &refusals {
        control.put(&of_operator, body).refused(*status, code);
        cases.one();
    }
    control.put("/v1/admin/keys/7/realism", &json!({"set": "mine"})).refused(404, "KEY_NOT_FOUND");
    control.put("/v1/admin/keys/x/realism", &json!({"set": "mine"})).refused(404, "NOT_FOUND");
    control.post(&of_operator, &json!({"set": "mine"})).refused(405, "HTTP_405");
    let refused = client.patch(&own, &json!({"realism": "theirs"}));
    refused.refused(422, "VALIDATION_FAILED");
    // Choices and models are in the log.
    for is_restarted in [false, true] {
        if is_restarted {
            world.crash();
            client.moved_to(world.server.address());
        }
        assert_eq!(set_of(&mut client), "mine");
        for (id, model) in &placed {
            assert_eq!(model_of(&mut client, *id), *model);
            cases.one();
        }
    }
    let back = operator(&world).put(&of_operator, &json!({"set": null})).expect(200);
    assert_eq!((text(&back, "/set"), set_of(&mut client)), ("kind", "kind".to_owned()));
    cases.add(6);
}

#[test]
fn an_order_waits_in_the_queue_of_its_level() {
    let cases = Cases::of("places in queues");
    let mut world = world();
    let mut client = world.user(0);
    let rain = world.markets.rain.clone();
    let key = list(&client.get("/v1/keys").expect(200), "").first().map(|key| int(key, "/id")).expect("its own");
    client.patch(&format!("/v1/keys/{key}"), &json!({"realism": "venue"})).expect(200);
    world.tape.books(&rain, &[("0.40", "310"), ("0.41", "85")], &[("0.45", "100")]);
    let seen = |shown: &Value| text(shown, "/asks/0/price") == "0.45";
    world.until(&format!("/v1/book?token_id={}", rain.yes()), seen);
    let id = int(&client.post("/v1/orders", &limit(&rain, "BUY", "0.41", "20")).expect(200), "/order_id");
    let place = |order: &Value| {
        let of = |field: &str| at(order, field).as_str().map(str::to_owned);
        (of("/queue_ahead"), of("/queue_total"), of("/queue_confidence").is_some())
    };
    let some = |text: &str| Some(text.to_owned());
    let order = client.get(&format!("/v1/orders/{id}")).expect(200);
    assert_eq!(place(&order), (some("85"), some("85"), true));
    world.tape.trade(&rain, 0, "SELL", "0.41", "60");
    let order = order_when(&mut client, id, |order| text(order, "/queue_ahead") == "25");
    assert_eq!(text(&order, "/filled_quantity"), "0");
    // Lists have the same, those of the venue's form only if asked.
    let listed = client.get("/v1/orders?status=PENDING").expect(200);
    assert_eq!(place(&list(&listed, "/orders")[0]), (some("25"), some("85"), true));
    for (path, shows) in [("", false), ("?queue=1", true)] {
        let rows = client.get(&format!("/v1/data/orders{path}")).expect(200);
        let row = &list(&rows, "/data")[0];
        assert_eq!(row.get("fill_model").is_some(), shows, "{path}: {row}");
        if shows {
            assert_eq!(place(row), (some("25"), some("85"), true));
        }
        cases.one();
    }
    world.tape.trade(&rain, 0, "SELL", "0.41", "30");
    let order = order_when(&mut client, id, |order| text(order, "/filled_quantity") == "5");
    assert_eq!((place(&order).0, text(&order, "/liquidity")), (some("0"), "MAKER"));
    world.tape.trade(&rain, 0, "SELL", "0.40", "100");
    let order = order_when(&mut client, id, |order| text(order, "/status") == "FILLED");
    assert_eq!((text(&order, "/price"), place(&order)), ("0.41", (None, None, false)));
    cases.add(5);
}
