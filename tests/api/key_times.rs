//! Keys over time (gateway/docs/keys.md §3–§5): rotations, the free trade date, the beta's cutoff, grants that end. The
//! test moves server time.

use engine::fact;
use engine::mutation::Mutation;
use engine::time::Timestamp;
use engine::user::Tier;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::Client;
use tests::json::{at, int, list, text};
use tests::token::{SECRET, claims, sign, unix_now};
use tests::world::{World, limit};
use wire::instant::ts_text;

const DAY: u64 = 86_400;

/// The time this many seconds from now.
fn ahead(secs: u64) -> Timestamp {
    Timestamp::from_secs(unix_now() + secs)
}

/// An identity token that is valid for the next ten days.
fn lasting(sub: &str) -> String {
    let mut claims = claims(sub);
    claims["exp"] = json!(unix_now() + 10 * DAY);
    sign(&json!({"alg": "HS256", "typ": "JWT"}), &claims, SECRET.as_bytes())
}

#[track_caller]
fn key_of(client: &mut Client, body: &Value) -> (String, Value) {
    let made = client.post("/v1/keys", body).expect(201);
    (text(&made, "/raw_key").to_string(), made)
}

#[track_caller]
fn row(owner: &mut Client, id: i64) -> Value {
    let rows = owner.get("/v1/keys").expect(200);
    list(&rows, "").iter().find(|row| int(row, "/id") == id).expect("it is listed").clone()
}

#[test]
fn the_old_half_of_a_rotation_ends_after_a_day() {
    let cases = Cases::of("end of a rotation");
    let mut world = World::start_with(1, |place| _ = place.clock_ahead(0));
    let mut owner = world.user(0);
    let (old, made) = key_of(&mut owner, &json!({}));
    let id = int(&made, "/id");
    let fresh = owner.post(&format!("/v1/keys/{id}/rotate"), &json!({})).expect(201);
    let new = text(&fresh, "/raw_key").to_string();
    for (secs, works) in [(0, true), (DAY - 600, true), (DAY, false), (3 * DAY, false)] {
        world.place.clock_ahead(secs);
        let answer = world.server.with_key(&old).get("/v1/account/balance");
        match works {
            true => _ = answer.expect(200),
            false => _ = answer.refused(401, "KEY_EXPIRED"),
        }
        // On a public route it counts as no key, and the request succeeds.
        assert_eq!(world.server.with_key(&old).get("/v1/time").status, 200);
        world.server.with_key(&new).get("/v1/account/balance").expect(200);
        assert_eq!(at(&row(&mut owner, id), "/is_active"), works);
        cases.one();
    }
    // An ended key does not count among the five.
    for _ in 0..3 {
        key_of(&mut owner, &json!({}));
    }
    owner.post("/v1/keys", &json!({})).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    owner.delete(&format!("/v1/keys/{id}")).expect(200);
    owner.post("/v1/keys", &json!({})).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    cases.add(2);
}

#[test]
fn a_free_key_from_before_the_date_stays_read_only() {
    let cases = Cases::of("free keys from before");
    let since = ts_text(ahead(DAY));
    let mut world = World::start_with(0, |place| {
        place.set("keys", "free_trade_since", &format!("{since:?}")).clock_ahead(0);
    });
    let order = limit(&world.markets.rain, "BUY", "0.30", "10");
    let person = lasting("early bird");
    let mut owner = world.server.with_token(&person);
    let made = owner.post("/v1/keys/bootstrap", &json!({"permissions": ["trade"]})).expect(201);
    assert_eq!(at(&made, "/permissions"), &json!(["read"]), "the effective list");
    let old = text(&made, "/raw_key").to_string();
    world.server.with_key(&old).post("/v1/orders", &order).refused(403, "INSUFFICIENT_PERMISSION");
    cases.one();
    world.place.clock_ahead(2 * DAY);
    let mut old = world.server.with_key(&old);
    old.get("/v1/account/balance").expect(200);
    for (path, body) in [("/v1/orders", order.clone()), ("/v1/orders/batch", json!({"orders": [order.clone()]}))] {
        old.post(path, &body).refused(403, "INSUFFICIENT_PERMISSION");
        cases.one();
    }
    old.delete("/v1/orders/1").refused(403, "INSUFFICIENT_PERMISSION");
    cases.one();
    // Rotation does not reset its age, a new key does.
    let fresh = old.post(&format!("/v1/keys/{}/rotate", int(&made, "/id")), &json!({})).expect(201);
    assert_eq!(at(&fresh, "/permissions"), &json!(["read"]));
    let mut fresh = world.server.with_key(text(&fresh, "/raw_key"));
    fresh.post("/v1/orders", &order).refused(403, "INSUFFICIENT_PERMISSION");
    let (new, made) = key_of(&mut fresh, &json!({}));
    assert_eq!(at(&made, "/permissions"), &json!(["read", "trade"]));
    world.server.with_key(&new).post("/v1/orders", &order).expect(200);
    cases.add(2);
}

#[test]
fn a_beta_key_is_downgraded_at_its_cutoff() {
    let cases = Cases::of("beta cutoff");
    let until = ahead(DAY);
    let cutoff = ts_text(until);
    let mut world = World::start_with(1, |place| {
        place.set("keys", "beta_until", &format!("{cutoff:?}")).clock_ahead(0);
    });
    let order = limit(&world.markets.rain, "BUY", "0.30", "10");
    let mut owner = world.user(0);
    let (beta, made) = key_of(&mut owner, &json!({"tier": "pro"}));
    let id = int(&made, "/id");
    let targets = ["/v1/account/balance", "/v1/orders/1", "/v1/time", "/v1/account/balance?wallet_id=x"];
    for (secs, is_over) in [(0, false), (DAY - 600, false), (DAY + 1, true), (5 * DAY, true)] {
        world.place.clock_ahead(secs);
        let mut key = world.server.with_key(&beta);
        for target in targets {
            let answer = key.get(target);
            assert_ne!(answer.code(), "KEY_EXPIRED", "{target}");
            assert_eq!(answer.header("X-API-Beta-Cutoff"), is_over.then_some(cutoff.as_str()), "{secs} s: {target}");
            assert_eq!(answer.header("X-RateLimit-Tier"), Some(if is_over { "free" } else { "pro" }), "{target}");
            cases.one();
        }
        let placed = key.post("/v1/orders", &order);
        match is_over {
            false => _ = placed.expect(200),
            true => {
                placed.refused(403, "INSUFFICIENT_PERMISSION");
                assert_eq!(placed.header("X-API-Beta-Cutoff"), Some(cutoff.as_str()));
            }
        }
        let listed = row(&mut owner, id);
        assert_eq!((text(&listed, "/expires_at"), text(&listed, "/rate_limit_tier")), (cutoff.as_str(), "pro"));
        assert_eq!(at(&listed, "/permissions"), &if is_over { json!(["read"]) } else { json!(["read", "trade"]) });
        assert_eq!(at(&listed, "/is_active"), true);
        cases.one();
    }
    // Keys from after the cutoff are not beta keys, and other users are not notified.
    let lasting = lasting("somebody");
    let answer = world.server.with_token(&lasting).get("/v1/keys");
    assert_eq!((answer.status, answer.header("X-API-Beta-Cutoff")), (200, None));
    let (late, made) = key_of(&mut owner, &json!({}));
    assert_eq!(at(&row(&mut owner, int(&made, "/id")), "/expires_at"), &Value::Null);
    let answer = world.server.with_key(&late).post("/v1/orders", &order);
    assert_eq!((answer.status, answer.header("X-API-Beta-Cutoff")), (200, None));
    cases.add(2);
}

#[test]
fn a_grant_that_ended_leaves_free_and_read_only_keys() {
    let cases = Cases::of("ended grants");
    let mut world = World::start_with(1, |place| _ = place.clock_ahead(0));
    let order = limit(&world.markets.rain, "BUY", "0.30", "10");
    let (raw, made) = key_of(&mut world.user(0), &json!({"tier": "pro_plus"}));
    let id = int(&made, "/id");
    let end = ahead(DAY);
    let grant = |tier, expires_at| Mutation::GrantSet(fact::GrantSet { tier, expires_at, at: Timestamp(1) });
    // A lower paid plan: served at it, stored unchanged.
    world.past(0, |history, _| history.happened([grant(Tier::Pro, Some(end))]));
    let mut key = world.server.with_key(&raw);
    let answer = key.post("/v1/orders", &order);
    assert_eq!((answer.status, answer.header("X-RateLimit-Tier")), (200, Some("pro")));
    assert_eq!(text(&row(&mut key, id), "/rate_limit_tier"), "pro_plus");
    key.post("/v1/keys", &json!({"tier": "pro_plus"})).refused(403, "TIER_REQUIRES_UPGRADE");
    cases.add(3);
    world.place.clock_ahead(DAY + 60);
    let answer = key.get("/v1/account/balance");
    assert_eq!((answer.status, answer.header("X-RateLimit-Tier")), (200, Some("free")));
    key.post("/v1/orders", &order).refused(403, "INSUFFICIENT_PERMISSION");
    let listed = row(&mut key, id);
    assert_eq!((text(&listed, "/rate_limit_tier"), at(&listed, "/permissions")), ("pro_plus", &json!(["read"])));
    key.get("/v1/export/trades.csv").refused(402, "UPGRADE_REQUIRED");
    cases.add(4);
    for (body, status, code, permissions) in [
        (json!({"tier": "pro"}), 403, "TIER_REQUIRES_UPGRADE", Value::Null),
        (json!({"permissions": ["trade"]}), 403, "TIER_REQUIRES_UPGRADE", Value::Null),
        (json!({"permissions": ["read", "trade"], "tier": "free"}), 403, "TIER_REQUIRES_UPGRADE", Value::Null),
        (json!({}), 201, "", json!(["read"])),
        (json!({"permissions": ["read"]}), 201, "", json!(["read"])),
    ] {
        let answer = key.post("/v1/keys", &body);
        assert_eq!((answer.status, answer.code().as_str()), (status, code), "{body}: {}", answer.lossy());
        if status == 201 {
            assert_eq!(at(&answer.json(), "/permissions"), &permissions);
            assert_eq!(text(&answer.json(), "/rate_limit_tier"), "free");
        }
        cases.one();
    }
}
