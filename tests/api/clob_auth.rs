//! Credentials of venue clients (gateway/docs/venue-clients.md §0.1, §8): by key, and by an address that signs for
//! itself.

use serde_json::{Value, json};
use tests::address::{Account, Signed};
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::{list, text};
use tests::token::unix_now;
use tests::world::World;

const CREATE: (&str, &str) = ("POST", "/v1/auth/api-key");
const DERIVE: (&str, &str) = ("GET", "/v1/auth/derive-api-key");

fn ask(client: &mut Client, (method, path): (&str, &str), headers: &[(&str, &str)]) -> Response {
    let request = headers.iter().fold(Request::new(method, path), |request, (name, value)| request.header(name, value));
    client.send(&request)
}

fn log_in(world: &World, signed: &Signed) -> Value {
    ask(&mut world.public(), CREATE, &signed.headers()).expect(200)
}

/// Headers of a venue client's signed request with that key.
fn as_client(world: &World, key: &str) -> Client {
    let client = world.public().with_header("POLY_API_KEY", key).with_header("POLY_ADDRESS", "0xA1");
    client
        .with_header("POLY_SIGNATURE", "c2lnbmVk")
        .with_header("POLY_PASSPHRASE", "any")
        .with_header("POLY_TIMESTAMP", "1")
}

#[test]
fn a_key_gets_itself_back() {
    let cases = Cases::of("credentials of a key");
    let world = World::start(1);
    let made = world.user(0).post("/v1/keys", &json!({})).expect(201);
    for key in [text(&made, "/raw_key"), text(&made, "/venue_api_key")] {
        for route in [CREATE, DERIVE, ("POST", "/auth/api-key"), ("GET", "/v1/v1/auth/derive-api-key")] {
            for header in ["X-API-Key", "MKT_API_KEY", "POLY_API_KEY"] {
                let answer = ask(&mut world.public(), route, &[(header, key)]);
                assert_eq!(answer.expect(200), json!({"apiKey": key, "secret": "c3Zj", "passphrase": "svc"}));
                assert!(answer.header("Cache-Control").is_some_and(|cache| cache.contains("no-store")));
                cases.one();
            }
        }
        // Signing headers are never verified.
        as_client(&world, key).get("/v1/account/balance").expect(200);
        let unknown = "00000000-0000-8000-8000-000000000000";
        ask(&mut world.public(), CREATE, &[("POLY_API_KEY", unknown)]).refused(401, "INVALID_KEY");
    }
    // The UUID stands for the key, wherever a key is accepted.
    let alias = text(&made, "/venue_api_key");
    world.public().with_header("Authorization", "Bearer x").with_header("X-API-Key", alias).get("/v1/me").expect(200);
}

#[test]
fn an_address_is_an_account() {
    let cases = Cases::of("accounts of addresses");
    let mut world = World::start(0);
    let (one, other) = (Account::new(1), Account::new(2));
    let now = unix_now();
    let made = log_in(&world, &one.sign(137, now, 0));
    let key = text(&made, "/apiKey").to_owned();
    assert_eq!((key.len(), &key[14..15]), (36, "8"));
    let secret = text(&made, "/secret");
    assert!(base64::Engine::decode(&base64::engine::general_purpose::URL_SAFE, secret).is_ok_and(|s| s.len() == 32));
    assert!(!text(&made, "/passphrase").is_empty());
    // The same request gets the same answer; another nonce or address, another key.
    for (case, same) in [
        (ask(&mut world.public(), DERIVE, &one.sign(137, now, 0).headers()).expect(200), true),
        (ask(&mut world.public(), CREATE, &one.sign(80_002, now, 0).headers()).expect(200), true),
        (
            ask(&mut world.public(), ("GET", "/auth/derive-api-key"), &one.sign(137, now + 1, 0).headers()).expect(200),
            true,
        ),
        (ask(&mut world.public(), DERIVE, &one.sign(137, now, 1).headers()).expect(200), false),
        (ask(&mut world.public(), CREATE, &other.sign(137, now, 0).headers()).expect(200), false),
    ] {
        for field in ["/apiKey", "/secret", "/passphrase"] {
            assert_eq!(text(&case, field) == text(&made, field), same, "{case}");
        }
        cases.one();
    }
    let mut client = as_client(&world, &key);
    let me = client.get("/v1/me").expect(200);
    assert_eq!(text(&me, "/auth_user_id"), format!("address:{}", one.address()));
    assert_eq!((text(&me, "/tier"), text(&me, "/balance")), ("enterprise", "25000.00"));
    assert_eq!(client.get("/v1/auth/api-keys").expect(200), json!({"apiKeys": [key]}));
    // It trades.
    let order = json!({"token_id": world.markets.rain.yes(), "side": "BUY", "order_type": "limit", "price": "0.41",
        "quantity": "10", "time_in_force": "GTC"});
    client.post("/v1/orders", &order).expect(200);
    // The directory contains no credential in the clear.
    world.crash();
    let again = log_in(&world, &one.sign(137, unix_now(), 0));
    assert_eq!(again, made, "the same after a restart");
    let mut client = as_client(&world, &key);
    assert_eq!(list(&client.get("/v1/orders").expect(200), "/orders").len(), 1);
    // A revoked key stays revoked.
    let keys = client.get("/v1/keys").expect(200);
    let id = list(&keys, "").iter().map(|key| key["id"].clone()).min_by_key(|id| id.as_u64()).expect("two keys");
    client.delete(&format!("/v1/keys/{id}")).expect(200);
    ask(&mut world.public(), DERIVE, &one.sign(137, unix_now(), 0).headers()).refused(401, "INVALID_KEY");
    cases.one();
    // Five active keys are the maximum.
    for nonce in 2..6 {
        log_in(&world, &one.sign(137, unix_now(), nonce));
    }
    ask(&mut world.public(), CREATE, &one.sign(137, unix_now(), 6).headers()).refused(400, "TIER_KEY_LIMIT_EXCEEDED");
    cases.one();
}

/// `[local]` applies only to a server that only its own machine reaches.
#[test]
fn the_account_of_an_address_has_the_plan_of_local() {
    let cases = Cases::of("plans of addresses");
    /// Settings, tier, balance.
    type Row<'a> = (&'a [(&'a str, &'a str, &'a str)], &'a str, &'a str);
    let table: [Row<'_>; 6] = [
        (&[], "enterprise", "25000.00"),
        (&[("local", "tier", "\"pro\"")], "pro", "25000.00"),
        (&[("local", "tier", "\"free\""), ("local", "balance", "\"100\"")], "free", "100.00"),
        (&[("local", "balance", "\"0.5\"")], "enterprise", "0.50"),
        (&[("flags", "paid_keys_enabled", "false")], "free", "100.00"),
        // A proxy gives other machines access.
        (&[("http", "trusted_proxies", "[\"10.0.0.1\"]"), ("venue", "address_login", "true")], "free", "100.00"),
    ];
    for (settings, tier, balance) in table {
        let world = World::start_with(0, |place| {
            settings.iter().for_each(|(section, name, value)| _ = place.set(section, name, value));
        });
        let made = log_in(&world, &Account::new(1).sign(137, unix_now(), 0));
        let me = as_client(&world, text(&made, "/apiKey")).get("/v1/me").expect(200);
        assert_eq!((text(&me, "/tier"), text(&me, "/balance")), (tier, balance), "{settings:?}");
        cases.one();
    }
    // The same client with default settings: many concurrent requests, a batch, the CSV.
    let mut world = World::start(0);
    let account = Account::new(2);
    let key = text(&log_in(&world, &account.sign(137, unix_now(), 0)), "/apiKey").to_owned();
    let mut client = as_client(&world, &key);
    for _ in 0..40 {
        client.get("/v1/data/orders").expect(200);
        cases.one();
    }
    assert_eq!(client.get("/v1/export/trades.csv").status, 200, "the CSV of an account's trades");
    // An account keeps the plan that it was created with.
    world.place.set("local", "tier", "\"pro\"");
    world.crash();
    let me = as_client(&world, &key).get("/v1/me").expect(200);
    assert_eq!((text(&me, "/tier"), text(&me, "/balance")), ("enterprise", "25000.00"));
    cases.add(2);
}

#[test]
fn what_no_address_signed_is_refused() {
    let cases = Cases::of("wrong signatures");
    let world = World::start(0);
    let account = Account::new(7);
    let now = unix_now();
    let good = account.sign(137, now, 3);
    let long = "9".repeat(4_000);
    let with = |change: fn(&mut Signed)| {
        let mut signed = good.clone();
        change(&mut signed);
        signed
    };
    let table: Vec<(Signed, &str)> = vec![
        (account.sign(1, now, 3), "INVALID_TOKEN"),
        (account.sign(138, now, 3), "INVALID_TOKEN"),
        (good.with_high_s(), "INVALID_TOKEN"),
        (with(|s| s.address = Account::new(8).address()), "INVALID_TOKEN"),
        (with(|s| s.nonce = "4".into()), "INVALID_TOKEN"),
        (with(|s| s.timestamp = format!("0{}", s.timestamp)), "INVALID_TOKEN"),
        (with(|s| s.signature.replace_range(130.., "1d")), "INVALID_TOKEN"),
        (with(|s| s.signature = format!("0x{}", "0".repeat(130))), "INVALID_TOKEN"),
        (with(|s| s.signature = format!("0x{}", "f".repeat(130))), "INVALID_TOKEN"),
        (with(|s| s.signature.truncate(130)), "INVALID_TOKEN"),
        (with(|s| s.signature.push_str("00")), "INVALID_TOKEN"),
        (with(|s| s.signature = s.signature[2..].to_owned()), "INVALID_TOKEN"),
        (with(|s| s.signature.clear()), "INVALID_TOKEN"),
        (with(|s| s.address.clear()), "INVALID_TOKEN"),
        (with(|s| s.address.truncate(41)), "INVALID_TOKEN"),
        (with(|s| s.address = "0xzz5f4552091a69125d5dfcb7b8c2659029395bdf".into()), "INVALID_TOKEN"),
        (with(|s| s.nonce.clear()), "INVALID_TOKEN"),
        (with(|s| s.nonce = "-1".into()), "INVALID_TOKEN"),
        (with(|s| s.nonce = "3.0".into()), "INVALID_TOKEN"),
        (with(|s| s.timestamp = "now".into()), "INVALID_TOKEN"),
        (with(|s| s.timestamp = "-5".into()), "INVALID_TOKEN"),
        (Signed { address: long.clone(), ..good.clone() }, "INVALID_TOKEN"),
        (Signed { signature: long.clone(), ..good.clone() }, "INVALID_TOKEN"),
        (Signed { timestamp: long.clone(), ..good.clone() }, "INVALID_TOKEN"),
        (Signed { nonce: long, ..good.clone() }, "INVALID_TOKEN"),
        // Replayed, or with a wrong timestamp: also with a valid signature.
        (account.sign(137, now - 3_600, 3), "TOKEN_EXPIRED"),
        (account.sign(137, now + 3_600, 3), "TOKEN_EXPIRED"),
        (account.sign(137, 0, 3), "TOKEN_EXPIRED"),
        (account.sign(137, 999_999_999_999, 3), "TOKEN_EXPIRED"),
    ];
    for (signed, code) in &table {
        for route in [CREATE, DERIVE] {
            let answer = ask(&mut world.public(), route, &signed.headers());
            answer.refused(401, code);
            answer.assert_envelope();
            cases.one();
        }
    }
    for (left_out, (name, _)) in good.headers().iter().enumerate() {
        let mut headers = good.headers().to_vec();
        headers.remove(left_out);
        let refused = ask(&mut world.public(), CREATE, &headers).refused(401, "INVALID_TOKEN");
        assert!(text(&refused, "/message").contains(name), "{refused}");
        cases.one();
    }
    ask(&mut world.public(), CREATE, &[]).refused(401, "MISSING_API_KEY");
    ask(&mut world.public(), CREATE, &[("Authorization", "Bearer eyJ")]).refused(401, "MISSING_API_KEY");
    // None of it created an account; the valid one does.
    let mut first = ask(&mut world.public(), CREATE, &good.headers()).expect(200);
    assert_eq!(text(&first["apiKey"].take(), "").len(), 36);
}

#[test]
fn addresses_stay_out_where_others_can_ask() {
    let cases = Cases::of("login switched off");
    for (section, name, value) in [("venue", "address_login", "false"), ("http", "trusted_proxies", "[\"192.0.2.1\"]")]
    {
        let world = World::start_with(0, |place| _ = place.set(section, name, value));
        for route in [CREATE, DERIVE] {
            ask(&mut world.public(), route, &Account::new(1).sign(137, unix_now(), 0).headers())
                .refused(401, "MISSING_API_KEY");
            cases.one();
        }
    }
    // Gates of keys apply to addresses too (gateway/docs/keys.md §3).
    for (section, name, value, code) in [
        ("flags", "closed_beta_mode", "true", "CLOSED_BETA"),
        ("flags", "allowlist_enabled", "true", "ACCESS_RESTRICTED"),
    ] {
        let world = World::start_with(0, |place| _ = place.set(section, name, value));
        ask(&mut world.public(), CREATE, &Account::new(1).sign(137, unix_now(), 0).headers()).refused(403, code);
        cases.one();
    }
}

#[test]
fn calls_around_keys_are_answered() {
    let cases = Cases::of("calls around keys");
    let world = World::start(1);
    let made = world.user(0).post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let (raw, alias) = (text(&made, "/raw_key"), text(&made, "/venue_api_key"));
    // Strict: the key of the caller, in the form that it used. Plain: prefixes, newest first.
    for key in [raw, alias] {
        assert_eq!(as_client(&world, key).get("/v1/auth/api-keys").expect(200), json!({"apiKeys": [key]}));
    }
    let plain = world.server.with_key(raw).get("/v1/auth/api-keys").expect(200);
    assert_eq!(list(&plain, "/apiKeys").len(), 2);
    assert_eq!(plain["apiKeys"][0], made["key_prefix"]);
    let table = [
        ("DELETE", "/v1/auth/api-key", json!("OK"), true),
        ("GET", "/v1/auth/ban-status/closed-only", json!({"closed_only": false}), true),
        ("GET", "/v1/auth/readonly-api-keys", json!({"readonlyApiKeys": []}), true),
        ("GET", "/v1/auth/readonly-api-key", json!([]), true),
        ("DELETE", "/v1/auth/readonly-api-key", json!("OK"), true),
        ("GET", "/v1/auth/validate-readonly-api-key?address=0xA1&key=k", json!({"valid": false}), false),
        ("GET", "/v1/auth/readonly-api-key/validate", json!({"valid": false}), false),
        ("GET", "/v1/auth/builder-api-key", json!([]), true),
        ("DELETE", "/v1/auth/builder-api-key", json!("OK"), false),
    ];
    for (method, path, expected, keyed) in table {
        for path in [path, &path[3..]] {
            assert_eq!(world.user(0).send(&Request::new(method, path)).expect(200), expected, "{path}");
            let bare = world.public().send(&Request::new(method, path));
            match keyed {
                true => _ = bare.refused(401, "MISSING_API_KEY"),
                false => assert_eq!(bare.expect(200), expected),
            }
            cases.one();
        }
    }
    let closed = world.server.with_key(raw).get("/v1/auth/ban-status/closed-only").expect(200);
    assert_eq!(closed, json!({"closed_only": true}));
    for path in ["/v1/auth/readonly-api-key", "/v1/auth/builder-api-key"] {
        world.user(0).post(path, &json!({})).refused(400, "INVALID_REQUEST");
        cases.one();
    }
    // None of that revoked a key.
    world.user(0).get("/v1/account/balance").expect(200);
}

/// An account is permanent: fresh addresses pass the windows of first keys, and the gates, before an account is
/// created.
#[test]
fn fresh_addresses_are_metered_and_gated_before_they_are_accounts() {
    let cases = Cases::of("fresh addresses");
    let now = unix_now();
    let accounts = |world: &World| {
        let output = world.place.log("inspect");
        String::from_utf8_lossy(&output.stdout).matches("UserCreated").count()
    };
    let metered = World::start_with(0, |place| {
        place.set("limits", "meter_loopback", "true");
        place.set("limits", "public_ip_per_second", "1000");
        place.set("limits", "public_ip_per_minute", "1000");
    });
    let (one, other) = (Account::new(11), Account::new(12));
    log_in(&metered, &one.sign(137, now, 0));
    let before = accounts(&metered);
    let answer = ask(&mut metered.public(), CREATE, &other.sign(137, now, 0).headers());
    answer.refused(429, "RATE_LIMIT_EXCEEDED");
    // An address with an account is not fresh.
    log_in(&metered, &one.sign(137, now, 1));
    assert_eq!(accounts(&metered), before);
    cases.add(3);
    for (section, key, value, status, code) in [
        ("flags", "closed_beta_mode", "true", 403, "CLOSED_BETA"),
        ("flags", "allowlist_enabled", "true", 403, "ACCESS_RESTRICTED"),
    ] {
        let gated = World::start_with(0, |place| _ = place.set(section, key, value));
        let before = accounts(&gated);
        ask(&mut gated.public(), CREATE, &one.sign(137, now, 0).headers()).refused(status, code);
        assert_eq!(accounts(&gated), before, "{key}");
        cases.one();
    }
    // A caller behind an unconfigured proxy may be on any machine.
    let world = World::start(0);
    for header in ["X-Forwarded-For", "Forwarded"] {
        let signed = one.sign(137, now, 0);
        let mut headers = signed.headers().to_vec();
        headers.push((header, "203.0.113.9"));
        ask(&mut world.public(), CREATE, &headers).refused(401, "MISSING_API_KEY");
        cases.one();
    }
}
