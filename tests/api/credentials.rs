//! Precedence of credentials, and validity of identity tokens (gateway/docs/wire.md §3, gateway/docs/keys.md §6).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::{int, text};
use tests::token::{SECRET, claims, encode, sign, token, unix_now};
use tests::world::World;

#[test]
fn one_header_wins() {
    let cases = Cases::of("header precedence");
    let world = World::start(2);
    let (good, other) = (world.users[0].key.as_str(), world.users[1].key.as_str());
    let bearer_good = format!("Bearer {good}");
    let bearer_other = format!("Bearer {other}");
    let bad = "svc_live_bad";
    // Headers as sent; the owner of the key.
    type Sent<'a> = &'a [(&'a str, &'a str)];
    let rows: [(Sent, Option<usize>); 17] = [
        (&[("X-API-Key", good)], Some(0)),
        (&[("x-api-key", good)], Some(0)),
        (&[("MKT_API_KEY", good)], Some(0)),
        (&[("mkt_api_key", good)], Some(0)),
        (&[("Mkt-API-Key", good)], Some(0)),
        (&[("POLY_API_KEY", good)], Some(0)),
        (&[("Authorization", &bearer_good)], Some(0)),
        (&[("Authorization", &bearer_good.replace("Bearer", "bearer"))], Some(0)),
        (&[("MKT_API_KEY", other), ("X-API-Key", good)], Some(0)),
        (&[("Mkt-API-Key", other), ("MKT_API_KEY", good)], Some(0)),
        (&[("POLY_API_KEY", other), ("Mkt-API-Key", good)], Some(0)),
        (&[("Authorization", &bearer_other), ("POLY_API_KEY", good)], Some(0)),
        (&[("X-API-Key", ""), ("MKT_API_KEY", good)], Some(0)),
        (&[("X-API-Key", bad), ("MKT_API_KEY", good)], None),
        (&[("MKT_API_KEY", bad), ("Authorization", &bearer_good)], None),
        (&[("Authorization", good)], None),
        (&[("Authorization", &format!("Basic {good}"))], None),
    ];
    for (headers, whose) in rows {
        let request = headers
            .iter()
            .fold(Request::get("/v1/account/balance"), |request, (name, value)| request.header(name, value));
        let answer = world.public().send(&request);
        match whose {
            Some(_) => {
                let me =
                    headers.iter().fold(Request::get("/v1/me"), |request, (name, value)| request.header(name, value));
                assert_eq!(int(&world.public().send(&me).expect(200), "/user_id"), world.users[0].id, "{headers:?}");
                answer.expect(200);
            }
            None => assert_eq!(answer.status, 401, "{headers:?}: {}", answer.lossy()),
        }
        cases.one();
    }
    // Key and token together: the key wins.
    let both =
        Request::get("/v1/me").header("X-API-Key", good).header("Authorization", &format!("Bearer {}", token("x")));
    assert_eq!(int(&world.public().send(&both).expect(200), "/user_id"), world.users[0].id);
    cases.one();
}

#[test]
fn keys_that_differ_by_anything_are_unknown() {
    let cases = Cases::of("near keys");
    let world = World::start(1);
    let good = &world.users[0].key;
    let near = [
        good[..72].to_string(),
        format!("{good}0"),
        good.to_uppercase(),
        good.replace("svc_live_", "svc_test_"),
        format!("svc_live_{}", good[9..].chars().rev().collect::<String>()),
        format!("svc_live_{}", "f".repeat(64)),
        "svc_live_".to_string(),
    ];
    for key in near {
        Client::with_key(world.server.address(), &key).get("/v1/me").refused(401, "INVALID_KEY");
        cases.one();
    }
}

#[test]
fn a_token_is_good_or_it_is_not() {
    let cases = Cases::of("identity tokens");
    let world = World::start(0);
    let secret = SECRET.as_bytes();
    let header = json!({"alg": "HS256", "typ": "JWT"});
    let with = |changes: Value| {
        let mut claims = claims("person");
        for (name, value) in changes.as_object().expect("an object") {
            claims[name] = value.clone();
        }
        sign(&header, &claims, secret)
    };
    let without = |name: &str| {
        let mut claims = claims("person");
        claims.as_object_mut().expect("an object").remove(name);
        sign(&header, &claims, secret)
    };
    let headed = |header: Value| sign(&header, &claims("person"), secret);
    let now = unix_now();
    let good = with(json!({}));
    let parts: Vec<&str> = good.split('.').collect();
    let other_claims = encode(&claims("another user"));
    let ok = "";
    let bad = "INVALID_TOKEN";
    let rows: Vec<(&str, String, &str)> = vec![
        ("good", good.clone(), ok),
        ("no type", headed(json!({"alg": "HS256"})), ok),
        ("audience in a list", with(json!({"aud": ["x", "authenticated"]})), ok),
        ("no role", without("role"), ok),
        ("begun", with(json!({"nbf": now - 1})), ok),
        ("issued in the future", with(json!({"iat": now + 999})), ok),
        ("longest sub", with(json!({"sub": "s".repeat(128)})), ok),
        ("unknown claims", with(json!({"app": {"x": [1]}})), ok),
        ("expired", with(json!({"exp": now - 1})), "TOKEN_EXPIRED"),
        ("expiring now", with(json!({"exp": now})), "TOKEN_EXPIRED"),
        ("expired long ago", with(json!({"exp": 1})), "TOKEN_EXPIRED"),
        ("not begun", with(json!({"nbf": now + 600})), bad),
        ("no end", without("exp"), bad),
        ("end in words", with(json!({"exp": "tomorrow"})), bad),
        ("no audience", without("aud"), bad),
        ("another audience", with(json!({"aud": "anyone"})), bad),
        ("audience is a number", with(json!({"aud": 1})), bad),
        ("no sub", without("sub"), bad),
        ("empty sub", with(json!({"sub": ""})), bad),
        ("sub is a number", with(json!({"sub": 5})), bad),
        ("long sub", with(json!({"sub": "s".repeat(129)})), bad),
        ("anon", with(json!({"role": "anon"})), bad),
        ("service", with(json!({"role": "service_role"})), bad),
        ("role is a list", with(json!({"role": ["authenticated"]})), bad),
        ("no algorithm", headed(json!({"typ": "JWT"})), bad),
        ("alg none", headed(json!({"alg": "none"})), bad),
        ("alg none unsigned", format!("{}.{}.", encode(&json!({"alg": "none"})), parts[1]), bad),
        ("alg HS384", headed(json!({"alg": "HS384"})), bad),
        ("alg RS256", headed(json!({"alg": "RS256"})), bad),
        ("alg hs256", headed(json!({"alg": "hs256"})), bad),
        ("another secret", sign(&header, &claims("person"), b"another secret that is long enough too"), bad),
        ("empty secret", sign(&header, &claims("person"), b""), bad),
        ("no signature", format!("{}.{}.", parts[0], parts[1]), bad),
        ("short signature", format!("{}.{}.{}", parts[0], parts[1], &parts[2][..40]), bad),
        ("foreign claims", format!("{}.{other_claims}.{}", parts[0], parts[2]), bad),
        ("two parts", format!("{}.{}", parts[0], parts[1]), bad),
        ("four parts", format!("{good}.x"), bad),
        ("three dots", "..".into(), bad),
        ("words", "hello".into(), bad),
        ("not base64", format!("!!.{}.{}", parts[1], parts[2]), bad),
        ("claims are a list", sign(&header, &json!([1]), secret), bad),
        ("longer than 8 KiB", with(json!({"fill": "x".repeat(9_000)})), bad),
    ];
    for (name, token, code) in rows {
        let answer = world.server.with_token(&token).get("/v1/me");
        if code.is_empty() {
            assert_eq!(answer.status, 200, "{name}: {}", answer.lossy());
        } else {
            assert_eq!((answer.status, answer.code().as_str()), (401, code), "{name}: {}", answer.lossy());
            answer.assert_envelope();
        }
        cases.one();
    }
    // Hints about keys are ignored or refused, never followed.
    for hint in [json!({"kid": "../../dev/null"}), json!({"jku": "http://127.0.0.1:1/"}), json!({"crit": ["exp"]})] {
        let mut header = header.clone();
        for (name, value) in hint.as_object().expect("an object") {
            header[name] = value.clone();
        }
        let answer = world.server.with_token(&sign(&header, &claims("person"), secret)).get("/v1/me");
        assert!(answer.status == 200 || answer.code() == bad, "{hint}: {}", answer.lossy());
        cases.one();
    }
}

#[test]
fn one_sub_is_one_user_from_first_sight() {
    let cases = Cases::of("first sight");
    let mut world = World::start(0);
    let token = token("the same person");
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let askers: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    tests::eventually("the account", || {
                        let answer = world.server.with_token(&token).get("/v1/me");
                        // The others wait until the first one is done (gateway/docs/keys.md §6).
                        if answer.status != 200 {
                            assert_eq!(answer.code(), "AUTH_STATE_INCOMPLETE");
                            assert_eq!(answer.header("Retry-After"), Some("1"));
                            return None;
                        }
                        Some(int(&answer.json(), "/user_id"))
                    })
                })
            })
            .collect();
        askers.into_iter().map(|asker| asker.join().expect("a client")).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "one user: {ids:?}");
    cases.add(ids.len());
    world.crash();
    let me = world.server.with_token(&token).get("/v1/me").expect(200);
    assert_eq!((int(&me, "/user_id"), text(&me, "/auth_user_id")), (ids[0], "the same person"));
    cases.one();
}

#[test]
fn the_token_verb_makes_tokens_the_server_takes() {
    let cases = Cases::of("papertape token");
    let world = World::start(0);
    let config = world.place.config();
    let config = config.to_str().expect("a path of ours");
    for args in [vec![], vec!["--email", "a@example.net"], vec!["--ttl", "30"]] {
        let mut all = vec!["token", "--sub", "by hand", "--config", config];
        all.extend(&args);
        let made = tests::binary::run_well(all);
        let me = world.server.with_token(made.trim()).get("/v1/me").expect(200);
        assert_eq!(text(&me, "/auth_user_id"), "by hand");
        cases.one();
    }
    // A mistyped directory gets no secret, whether it exists or not.
    let mistyped = world.place.data().with_extension("typo");
    let mut place = tests::server::ServerDir::new();
    place.unset("auth", "jwt_secret");
    let args: [std::ffi::OsString; 7] = [
        "token".into(),
        "--sub".into(),
        "by hand".into(),
        "--config".into(),
        place.config().into(),
        "--data-dir".into(),
        mistyped.clone().into(),
    ];
    for is_there in [false, true] {
        let ended = tests::binary::command().args(&args).output().expect("papertape token");
        let stderr = String::from_utf8_lossy(&ended.stderr);
        assert!(!ended.status.success() && stderr.contains("this directory has no secret of a server"), "{stderr}");
        let found = std::fs::read_dir(&mistyped).map(|files| files.count()).ok();
        assert_eq!(found, is_there.then_some(0));
        if !is_there {
            std::fs::create_dir(&mistyped).expect("it was not made");
        }
        cases.one();
    }
}
