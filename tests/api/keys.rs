//! Keys: lifecycle, limits, gates (gateway/docs/keys.md §1–§5, §7).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{at, int, list, text};
use tests::token::token;
use tests::world::{World, limit};

#[test]
fn a_key_lives_and_ends() {
    let cases = Cases::of("key life");
    let mut world = World::start(1);
    let mut owner = world.user(0);
    let made = owner.post("/v1/keys", &json!({"name": "grid bot"})).expect(201);
    let raw = text(&made, "/raw_key").to_string();
    assert!(raw.len() == 73 && raw.starts_with("svc_live_"), "{raw}");
    assert!(raw[9..].bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    assert_eq!(text(&made, "/key_prefix"), &raw[..16]);
    assert_eq!((text(&made, "/name"), text(&made, "/rate_limit_tier")), ("grid bot", "enterprise"));
    assert_eq!(at(&made, "/permissions"), &json!(["read", "trade"]));
    assert!(text(&made, "/created_at").ends_with('Z'));
    for absent in ["is_active", "expires_at", "last_used_at"] {
        assert!(made.get(absent).is_none(), "{absent} is for listings");
    }
    cases.one();

    let id = int(&made, "/id");
    world.server.with_key(&raw).get("/v1/me").expect(200);
    world.server.with_key(text(&made, "/venue_api_key")).get("/v1/me").expect(200);
    cases.add(2);

    let rows = owner.get("/v1/keys").expect(200);
    assert_eq!(list(&rows, "").len(), 2);
    let row = &list(&rows, "")[0];
    assert_eq!(int(row, "/id"), id, "newest first");
    assert!(row.get("raw_key").is_none() && row.get("venue_api_key").is_none(), "shown once only");
    assert_eq!((at(row, "/is_active"), at(row, "/expires_at")), (&json!(true), &Value::Null));
    cases.one();

    for (body, name) in
        [(json!({"name": "renamed"}), json!("renamed")), (json!({"name": null, "tier": "free"}), Value::Null)]
    {
        let renamed = owner.patch(&format!("/v1/keys/{id}"), &body).expect(200);
        assert_eq!((at(&renamed, "/name"), text(&renamed, "/rate_limit_tier")), (&name, "enterprise"));
        assert!(renamed.get("raw_key").is_none());
        cases.one();
    }
    owner.patch(&format!("/v1/keys/{id}"), &json!({"name": "x".repeat(101)})).refused(422, "VALIDATION_FAILED");
    owner.patch(&format!("/v1/keys/{id}"), &json!({"name": 5})).refused(422, "VALIDATION_FAILED");
    cases.add(2);

    // After the answer to its revocation a key is unknown, to itself too, and after a crash.
    let body = world.server.with_key(&raw).delete(&format!("/v1/keys/{id}")).expect(200);
    assert!(text(&body, "/message").contains(&id.to_string()));
    world.server.with_key(&raw).get("/v1/me").refused(401, "INVALID_KEY");
    world.server.with_key(text(&made, "/venue_api_key")).get("/v1/me").refused(401, "INVALID_KEY");
    owner.delete(&format!("/v1/keys/{id}")).refused(404, "KEY_NOT_FOUND");
    world.crash();
    world.server.with_key(&raw).get("/v1/me").refused(401, "INVALID_KEY");
    assert_eq!(list(&world.user(0).get("/v1/keys").expect(200), "").len(), 1, "revoked keys are not listed");
    cases.add(5);
}

#[test]
fn a_rotated_key_has_a_day_left() {
    let cases = Cases::of("rotation");
    let world = World::start(1);
    let mut owner = world.user(0);
    let made = owner.post("/v1/keys", &json!({"name": "bot", "tier": "pro", "permissions": ["read"]})).expect(201);
    let id = int(&made, "/id");
    for body in [Some("not even JSON"), None] {
        let mut request = Request::post(&format!("/v1/keys/{id}/rotate"));
        if let Some(body) = body {
            request = request.text("application/json", body);
        }
        let answer = owner.send(&request);
        if body.is_none() {
            // The old half has an end already.
            answer.refused(400, "INVALID_REQUEST");
            cases.one();
            continue;
        }
        let fresh = answer.expect(201);
        assert_eq!(int(&fresh, "/replaces_key_id"), id);
        assert_eq!((text(&fresh, "/name"), text(&fresh, "/rate_limit_tier")), ("bot", "pro"));
        assert_eq!(at(&fresh, "/permissions"), &json!(["read"]));
        let ends = text(&fresh, "/old_key_expires_at").to_string();
        for key in [text(&made, "/raw_key"), text(&fresh, "/raw_key")] {
            world.server.with_key(key).get("/v1/me").expect(200);
        }
        let rows = owner.get("/v1/keys").expect(200);
        let old = list(&rows, "").iter().find(|row| int(row, "/id") == id).expect("the old half is listed");
        assert_eq!(text(old, "/expires_at"), ends);
        cases.one();
    }
}

#[test]
fn five_keys_are_enough() {
    let cases = Cases::of("key limit");
    let world = World::start(1);
    let mut owner = world.user(0);
    let mut last = 0;
    for _ in 0..4 {
        last = int(&owner.post("/v1/keys", &json!({})).expect(201), "/id");
        cases.one();
    }
    owner.post("/v1/keys", &json!({})).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    // A rotation is never blocked, and its old half does not count.
    owner.post(&format!("/v1/keys/{last}/rotate"), &json!({})).expect(201);
    owner.post("/v1/keys", &json!({})).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    let rows = owner.get("/v1/keys").expect(200);
    assert_eq!(list(&rows, "").len(), 6);
    owner.delete(&format!("/v1/keys/{last}")).expect(200);
    owner.post("/v1/keys", &json!({})).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    let other = list(&rows, "").iter().map(|row| int(row, "/id")).find(|id| *id != last).expect("another key");
    owner.delete(&format!("/v1/keys/{other}")).expect(200);
    owner.post("/v1/keys", &json!({})).expect(201);
    cases.add(5);
}

#[test]
fn the_gates_of_issuance_have_their_codes() {
    let cases = Cases::of("issuance");
    let world = World::start(1);
    let free = token("free person");
    let mut paid = world.user(0);
    let mut person = world.server.with_token(&free);
    let rows: [(Value, u16, &str, u16, &str); 12] = [
        // Body; for the free person; for the enterprise user.
        (json!({"tier": "gold"}), 400, "VALIDATION_FAILED", 400, "VALIDATION_FAILED"),
        (json!({"tier": "FREE"}), 400, "VALIDATION_FAILED", 400, "VALIDATION_FAILED"),
        (json!({"tier": 7}), 422, "VALIDATION_FAILED", 422, "VALIDATION_FAILED"),
        (json!({"tier": "pro"}), 403, "TIER_REQUIRES_UPGRADE", 201, ""),
        (json!({"permissions": ["read", "admin"]}), 403, "TIER_REQUIRES_UPGRADE", 403, "TIER_REQUIRES_UPGRADE"),
        (json!({"permissions": ["fly"]}), 422, "VALIDATION_FAILED", 422, "VALIDATION_FAILED"),
        (json!({"permissions": "read"}), 422, "VALIDATION_FAILED", 422, "VALIDATION_FAILED"),
        (json!({"name": "x".repeat(101)}), 422, "VALIDATION_FAILED", 422, "VALIDATION_FAILED"),
        (json!({"name": ["x"]}), 422, "VALIDATION_FAILED", 422, "VALIDATION_FAILED"),
        (json!({"permissions": [], "expires_at": "2020-01-01"}), 201, "", 201, ""),
        (json!({"permissions": ["trade"], "name": null}), 201, "", 201, ""),
        (json!({"tier": "free", "name": "x".repeat(100)}), 201, "", 201, ""),
    ];
    for (body, free_status, free_code, paid_status, paid_code) in rows {
        for (client, status, code) in [(&mut person, free_status, free_code), (&mut paid, paid_status, paid_code)] {
            let answer = client.post("/v1/keys", &body);
            assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}: {}", answer.lossy());
            if status == 201 {
                let made = answer.json();
                let expected = match body.get("permissions").and_then(Value::as_array).map(Vec::len) {
                    Some(0) => json!(["read"]),
                    _ => json!(["read", "trade"]),
                };
                assert_eq!(at(&made, "/permissions"), &expected, "{body}");
                client.delete(&format!("/v1/keys/{}", int(&made, "/id"))).expect(200);
            } else {
                answer.assert_envelope();
            }
            cases.one();
        }
    }
}

#[test]
fn the_first_key_comes_by_bootstrap() {
    let cases = Cases::of("bootstrap");
    let world = World::start(0);
    let token = token("newcomer");
    let mut person = world.server.with_token(&token);
    let made = person.post("/v1/keys/bootstrap", &json!({"name": "first"})).expect(201);
    assert_eq!((text(&made, "/rate_limit_tier"), at(&made, "/permissions")), ("free", &json!(["read", "trade"])));
    let mut key = world.server.with_key(text(&made, "/raw_key"));
    let account = key.get("/v1/account/balance").expect(200);
    assert_eq!(text(&account, "/balance"), "100.00");
    key.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "10")).expect(200);
    person.post("/v1/keys/bootstrap", &json!({})).refused(400, "BOOTSTRAP_NOT_ALLOWED");
    cases.add(3);
    // Any active key forbids it; a revoked one does not.
    person.delete(&format!("/v1/keys/{}", int(&made, "/id"))).expect(200);
    let mut bodiless = Request::post("/v1/keys/bootstrap");
    bodiless.body = None;
    person.send(&bodiless).expect(201);
    person.post("/v1/keys/bootstrap", &json!({})).refused(400, "BOOTSTRAP_NOT_ALLOWED");
    let mut other = world.server.with_token(&tests::token::token("another"));
    other.post("/v1/keys/bootstrap", &json!({"tier": "pro"})).refused(403, "TIER_REQUIRES_UPGRADE");
    other.post("/v1/keys/bootstrap", &json!({"name": 1})).refused(422, "VALIDATION_FAILED");
    other.post("/v1/keys/bootstrap", &json!({"permissions": ["read"]})).expect(201);
    cases.add(5);
}

#[test]
fn an_old_free_key_may_only_read() {
    let cases = Cases::of("free trade date");
    let world = World::start_with(1, |place| _ = place.set("keys", "free_trade_since", "\"2099-01-01\""));
    let (mut client, person) = world.newcomer("early bird");
    let mut person: Client = world.server.with_token(&person);
    client.get("/v1/account/balance").expect(200);
    client.post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "10")).refused(403, "INSUFFICIENT_PERMISSION");
    let rows = person.get("/v1/keys").expect(200);
    assert_eq!(at(&rows, "/0/permissions"), &json!(["read"]), "the effective list");
    let fresh = person.post(&format!("/v1/keys/{}/rotate", int(&rows, "/0/id")), &json!({})).expect(201);
    let mut fresh = world.server.with_key(text(&fresh, "/raw_key"));
    fresh.post("/v1/orders", &json!({})).refused(403, "INSUFFICIENT_PERMISSION");
    // The date does not apply to paid tiers.
    world.user(0).post("/v1/orders", &limit(&world.markets.rain, "BUY", "0.30", "10")).expect(200);
    cases.add(4);
}

#[test]
fn closed_gates_of_the_server() {
    let cases = Cases::of("server gates");
    let rows: [(&str, &str, &str, u16, &str); 4] = [
        ("flags", "closed_beta_mode", "true", 403, "CLOSED_BETA"),
        ("access", "flagged", "[\"visitor\"]", 403, "ACCESS_RESTRICTED"),
        ("flags", "allowlist_enabled", "true", 403, "ACCESS_RESTRICTED"),
        // The seeded user is a member already.
        ("flags", "cohort_cap", "2", 409, "COHORT_FULL"),
    ];
    for (section, name, value, status, code) in rows {
        let world = World::start_with(1, |place| _ = place.set(section, name, value));
        let mut person = world.server.with_token(&token("visitor"));
        if name == "cohort_cap" {
            let (mut one, _) = world.newcomer("the one");
            // A member may have more keys.
            one.post("/v1/keys", &json!({})).expect(201);
            let verbose = Request::post("/v1/keys").json(&json!({})).header("X-Svc-Verbose", "true");
            let refused = person.send(&verbose).refused(status, code);
            assert_eq!(at(&refused, "/details"), &json!({"current_active": 2, "cap": 2, "requested": 1}));
        }
        person.post("/v1/keys/bootstrap", &json!({})).refused(status, code);
        cases.one();
    }
    let world = World::start_with(1, |place| _ = place.set("flags", "paid_keys_enabled", "false"));
    world.user(0).post("/v1/keys", &json!({})).refused(403, "API_PRO_COMING_SOON");
    cases.one();
}

/// If two gates are closed, the earlier one is reported (gateway/docs/keys.md §3).
#[test]
fn the_gates_of_issuance_have_their_order() {
    let cases = Cases::of("order of gates");
    type Settings = &'static [(&'static str, &'static str, &'static str)];
    const FLAGGED: (&str, &str, &str) = ("access", "flagged", "[\"visitor\"]");
    const CLOSED: (&str, &str, &str) = ("flags", "closed_beta_mode", "true");
    const UNPAID: (&str, &str, &str) = ("flags", "paid_keys_enabled", "false");
    const FULL: (&str, &str, &str) = ("flags", "cohort_cap", "1");
    let rows: [(Settings, Value, u16, &str); 8] = [
        (&[FLAGGED, CLOSED, UNPAID, FULL], json!({"tier": "gold"}), 403, "ACCESS_RESTRICTED"),
        (&[CLOSED, UNPAID, FULL], json!({"tier": "gold", "permissions": ["admin"]}), 400, "VALIDATION_FAILED"),
        (&[CLOSED, UNPAID, FULL], json!({"tier": "pro", "permissions": ["admin"]}), 403, "CLOSED_BETA"),
        (&[UNPAID, FULL], json!({"tier": "pro", "permissions": ["admin"]}), 403, "API_PRO_COMING_SOON"),
        (&[FULL], json!({"tier": "pro"}), 403, "TIER_REQUIRES_UPGRADE"),
        (&[FULL], json!({"permissions": ["admin"]}), 403, "TIER_REQUIRES_UPGRADE"),
        (&[FULL], json!({"tier": "free"}), 409, "COHORT_FULL"),
        (&[UNPAID], json!({"tier": "free"}), 201, ""),
    ];
    for (settings, body, status, code) in rows {
        // The seeded user fills a cohort of one.
        let world = World::start_with(1, |place| {
            settings.iter().for_each(|(section, name, value)| _ = place.set(section, name, value));
        });
        let mut visitor = world.server.with_token(&token("visitor"));
        for path in ["/v1/keys", "/v1/keys/bootstrap"] {
            let answer = visitor.post(path, &body);
            let expected = match (status, path) {
                (201, "/v1/keys/bootstrap") => (400, "BOOTSTRAP_NOT_ALLOWED"),
                _ => (status, code),
            };
            assert_eq!((answer.status, answer.code().as_str()), expected, "{settings:?} {body}: {}", answer.lossy());
            cases.one();
        }
    }
    // The gates do not apply to a rotation, nor does the limit of five.
    let world = World::start_with(1, |place| {
        place.set("flags", "closed_beta_mode", "true").set("flags", "paid_keys_enabled", "false");
    });
    let mut owner = world.user(0);
    owner.post("/v1/keys", &json!({})).refused(403, "CLOSED_BETA");
    let id = int(&owner.get("/v1/keys").expect(200), "/0/id");
    owner.post(&format!("/v1/keys/{id}/rotate"), &json!({})).expect(201);
    cases.add(2);
}

#[test]
fn keys_are_listed_in_pages_and_tiers_in_order() {
    let cases = Cases::of("key lists");
    let world = World::start(1);
    let mut owner = world.user(0);
    for _ in 0..3 {
        owner.post("/v1/keys", &json!({})).expect(201);
    }
    for (query, count) in [("", 4), ("?limit=2", 2), ("?offset=3", 1), ("?limit=200&offset=4", 0)] {
        assert_eq!(list(&owner.get(&format!("/v1/keys{query}")).expect(200), "").len(), count, "{query}");
        cases.one();
    }
    for query in ["limit=0", "limit=201", "offset=-1", "limit=x"] {
        owner.get(&format!("/v1/keys?{query}")).refused(422, "VALIDATION_FAILED");
        cases.one();
    }
    // The effective values: this server has a configuration of its own.
    let tiers = owner.get("/v1/keys/tiers").expect(200);
    let rows = [("free", 1, 1), ("pro", 3, 5), ("pro_plus", 10, 10), ("enterprise", 50, 25)];
    for (row, (tier, sockets, batch)) in list(&tiers, "").iter().zip(rows) {
        let expected = json!({
            "tier": tier, "requests_per_second": 100_000, "requests_per_minute": 1_000_000,
            "max_ws_connections": sockets, "max_batch_size": batch
        });
        assert_eq!(row, &expected);
        cases.one();
    }
    for id in ["0", "abc", "-1", "99999999999999999999"] {
        owner.patch(&format!("/v1/keys/{id}"), &json!({"name": "x"})).refused(404, "KEY_NOT_FOUND");
        owner.delete(&format!("/v1/keys/{id}")).refused(404, "KEY_NOT_FOUND");
        owner.post(&format!("/v1/keys/{id}/rotate"), &json!({})).refused(404, "KEY_NOT_FOUND");
        cases.add(3);
    }
}

#[test]
fn a_socket_token_is_minted() {
    let cases = Cases::of("ws-token");
    let world = World::start(1);
    let mut by_token = world.server.with_token(&token("somebody"));
    for client in [&mut world.user(0), &mut by_token] {
        for body in [None, Some("{}")] {
            let mut request = Request::post("/v1/keys/ws-token");
            if let Some(body) = body {
                request = request.text("application/json", body);
            }
            let made = client.send(&request).expect(200);
            assert_eq!(int(&made, "/expires_in"), 60);
            assert_eq!(text(&made, "/token").split('.').count(), 3, "a JWT");
            cases.one();
        }
    }
    world.user(0).post("/v1/keys/ws-token", &json!([])).refused(400, "INVALID_BODY");
    cases.one();
    let made = world.user(0).post("/v1/keys/ws-token", &json!({})).expect(200);
    // It is not an identity token.
    world.server.with_token(text(&made, "/token")).get("/v1/me").refused(401, "INVALID_TOKEN");
    cases.one();
}
