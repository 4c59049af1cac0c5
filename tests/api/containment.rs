//! Permissions of a read-only key over its account (gateway/docs/keys.md §2), with and without containment.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{int, text};
use tests::world::World;

/// A key made by `client`: its id and a client with it.
fn key(world: &World, client: &mut Client, body: &Value) -> (u64, Client) {
    let made = client.post("/v1/keys", body).expect(201);
    (int(&made, "/id") as u64, world.server.with_key(text(&made, "/raw_key")))
}

#[test]
fn a_contained_read_only_key_gains_nothing() {
    let cases = Cases::of("read-only keys");
    for contained in [false, true] {
        let world = World::start_with(1, |place| {
            place.set("keys", "readonly_contained", &contained.to_string());
            place.set("flags", "api_reset_cooldown_days", "0");
        });
        let mut owner = world.user(0);
        let read = json!({"permissions": ["read"], "tier": "pro"});
        let (own_id, mut reader) = key(&world, &mut owner, &read);
        let (other_id, _) = key(&world, &mut owner, &json!({}));
        let refused = |answer: tests::http::Response, status: u16, what: &str| {
            match contained {
                true => drop(answer.refused(403, "INSUFFICIENT_PERMISSION")),
                false => assert_eq!(answer.status, status, "{what}: {}", answer.lossy()),
            }
            cases.one();
        };

        refused(reader.post("/v1/keys", &json!({"permissions": ["read", "trade"], "tier": "free"})), 201, "trade");
        refused(reader.post("/v1/account/reset-api-balance", &json!({})), 200, "reset");
        refused(reader.post(&format!("/v1/keys/{other_id}/rotate"), &json!({})), 201, "rotate another");
        refused(reader.delete(&format!("/v1/keys/{other_id}")), 200, "revoke another");
        if contained {
            refused(reader.post("/v1/keys", &json!({"permissions": ["read"], "tier": "enterprise"})), 201, "tier");
            let made = reader.post("/v1/keys", &json!({"name": "second"})).expect(201);
            assert_eq!((&made["permissions"], &made["rate_limit_tier"]), (&json!(["read"]), &json!("pro")), "{made}");
            // It may replace and end itself.
            assert_eq!(
                reader.post(&format!("/v1/keys/{own_id}/rotate"), &json!({})).expect(201)["permissions"],
                json!(["read"])
            );
            cases.add(2);
        }
        assert_eq!(reader.delete(&format!("/v1/keys/{own_id}")).status, 200);
        // A trading key is not restricted.
        assert_eq!(owner.post("/v1/account/reset-api-balance", &json!({})).status, 200);
        cases.add(2);
    }
}

/// Every route from one key to another, and to its data, for a read-only key and for the old half of a rotated one.
#[test]
fn every_door_from_one_key_to_another_has_the_same_rule() {
    let cases = Cases::of("doors between keys");
    let read = json!({"permissions": ["read"], "tier": "enterprise"});
    let rename = |client: &mut Client, id: u64| client.patch(&format!("/v1/keys/{id}"), &json!({"name": "mine now"}));
    for contained in [false, true] {
        for replaced in [false, true] {
            let world = World::start_with(1, |place| {
                place.set("keys", "readonly_contained", &contained.to_string());
            });
            let mut owner = world.user(0);
            let (other, _) = key(&world, &mut owner, &json!({"name": "trades", "tier": "free"}));
            let (own, mut reader) = key(&world, &mut owner, &read);
            if replaced {
                owner.post(&format!("/v1/keys/{own}/rotate"), &json!({})).expect(201);
            }
            // Five may be active at a time.
            let mut mint = |body: &Value| {
                let made = reader.post("/v1/keys", body);
                if made.status == 201 {
                    assert_eq!(owner.delete(&format!("/v1/keys/{}", int(&made.json(), "/id"))).status, 200);
                }
                made
            };
            let (small, plain) = (mint(&json!({"permissions": ["read"], "tier": "free"})), mint(&json!({})));
            let trading = mint(&json!({"permissions": ["trade"]}));
            // The action, its answer, its status without containment, and whether a contained key may do it.
            let usage = reader.get(&format!("/v1/keys/{other}/usage"));
            let (list, token) = (reader.get("/v1/keys"), reader.post("/v1/keys/ws-token", &json!({})));
            let rows = [
                ("reads the keys", list, 200, true),
                ("reads another's usage", usage, 200, true),
                ("mints a ticket", token, 200, true),
                ("renames another", rename(&mut reader, other), 200, false),
                ("renames itself", rename(&mut reader, own), 200, true),
                ("mints a reader", small, 201, !replaced),
                ("mints without permissions", plain, 201, !replaced),
                ("mints one that trades", trading, 201, false),
                ("replaces another", reader.post(&format!("/v1/keys/{other}/rotate"), &json!({})), 201, false),
                ("revokes another", reader.delete(&format!("/v1/keys/{other}")), 200, false),
            ];
            for (what, answer, status, may) in rows {
                let what = format!("{what}, contained: {contained}, replaced: {replaced}");
                match contained && !may {
                    true => drop(answer.refused(403, "INSUFFICIENT_PERMISSION")),
                    false => assert_eq!(answer.status, status, "{what}: {}", answer.lossy()),
                }
                cases.one();
            }
            let names = owner.get("/v1/keys").expect(200);
            let other_name = names.as_array().expect("a list").iter().find(|row| int(row, "/id") as u64 == other);
            if contained {
                assert_eq!(other_name.map(|row| text(row, "/name")), Some("trades"), "{names}");
            }
            // It may end itself.
            assert_eq!(reader.delete(&format!("/v1/keys/{own}")).status, 200);
            cases.add(2);
        }
    }
}
