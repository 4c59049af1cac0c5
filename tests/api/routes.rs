//! Every route of the table against what is wrong with a request before its content is looked at (wire.md §7, 2–10).

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request};
use tests::json::text;
use tests::token::token;
use tests::world::World;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Auth {
    Public,
    Read,
    Trade,
    KeyOrJwt,
    Jwt,
}

use Auth::{Jwt, KeyOrJwt, Public, Read, Trade};

/// The routes of the core; `{c}` is a condition, `{t}` a token.
const ROUTES: [(&str, &str, Auth); 41] = [
    ("POST", "/v1/orders", Trade),
    ("GET", "/v1/orders", Read),
    ("GET", "/v1/orders/1", Read),
    ("GET", "/v1/orders/by-client-id/none", Read),
    ("DELETE", "/v1/orders/1", Trade),
    ("POST", "/v1/cancel-all", Trade),
    ("POST", "/v1/orders/batch", Trade),
    ("GET", "/v1/account/balance", Read),
    ("GET", "/v1/account/positions", Read),
    ("GET", "/v1/account/portfolio", Read),
    ("GET", "/v1/account/history", Read),
    ("POST", "/v1/keys/bootstrap", Jwt),
    ("POST", "/v1/keys", KeyOrJwt),
    ("GET", "/v1/keys", KeyOrJwt),
    ("PATCH", "/v1/keys/1", KeyOrJwt),
    ("DELETE", "/v1/keys/1", KeyOrJwt),
    ("POST", "/v1/keys/1/rotate", KeyOrJwt),
    ("GET", "/v1/keys/tiers", KeyOrJwt),
    ("POST", "/v1/keys/ws-token", KeyOrJwt),
    ("GET", "/v1/me", KeyOrJwt),
    ("GET", "/v1/markets", Read),
    ("GET", "/v1/markets/{c}", Read),
    ("GET", "/v1/markets/by-slug/rain", Read),
    ("GET", "/v1/markets/{c}/book", Public),
    ("GET", "/v1/book?token_id={t}", Public),
    ("GET", "/v1/clob/book/{t}", Public),
    ("POST", "/v1/books", Public),
    ("GET", "/v1/price?token_id={t}&side=BUY", Public),
    ("GET", "/v1/midpoint?token_id={t}", Public),
    ("GET", "/v1/spread?token_id={t}", Public),
    ("GET", "/v1/tick-size?token_id={t}", Public),
    ("GET", "/v1/tick-size/{t}", Public),
    ("GET", "/v1/neg-risk?token_id={t}", Public),
    ("GET", "/v1/neg-risk/{t}", Public),
    ("GET", "/v1/fee-rate?token_id={t}", Public),
    ("GET", "/v1/fee-rate/{t}", Public),
    ("GET", "/v1/markets-by-token/{t}", Public),
    ("GET", "/v1/health", Public),
    ("GET", "/v1/health/live", Public),
    ("GET", "/v1/health/ready", Public),
    ("GET", "/v1/status", Public),
];

fn path_of(world: &World, path: &str) -> String {
    path.replace("{c}", &world.markets.rain.condition).replace("{t}", world.markets.rain.yes())
}

fn ask(client: &mut Client, world: &World, method: &str, path: &str) -> tests::http::Response {
    client.send(&Request::new(method, &path_of(world, path)))
}

#[test]
fn a_credential_is_asked_for_where_the_contract_says() {
    let cases = Cases::of("no credential");
    let world = World::start(0);
    for (method, path, auth) in ROUTES {
        for empty in [false, true] {
            let mut client = world.public();
            if empty {
                // An empty header counts as absent (wire.md §3).
                client = client.with_header("X-API-Key", "").with_header("MKT_API_KEY", "");
            }
            let answer = ask(&mut client, &world, method, path);
            match auth {
                Public => assert!(answer.status != 401, "{method} {path}: {}", answer.lossy()),
                Read | Trade => _ = answer.refused(401, "MISSING_API_KEY"),
                KeyOrJwt | Jwt => _ = answer.refused(401, "MISSING_AUTH"),
            }
            cases.one();
        }
    }
}

#[test]
fn an_unknown_key_is_refused_or_passed_over() {
    let cases = Cases::of("unknown key");
    let world = World::start(0);
    let unknown = format!("svc_live_{}", "0".repeat(64));
    for key in [unknown.as_str(), "svc_live_short", "nothing like a key"] {
        for (method, path, auth) in ROUTES {
            let answer = ask(&mut world.server.with_key(key), &world, method, path);
            match auth {
                Public => assert!(answer.status != 401, "{method} {path}: {}", answer.lossy()),
                Read | Trade | KeyOrJwt => _ = answer.refused(401, "INVALID_KEY"),
                Jwt => _ = answer.refused(401, "MISSING_AUTH"),
            }
            cases.one();
        }
    }
}

#[test]
fn the_wrong_kind_of_credential_is_no_credential() {
    let cases = Cases::of("wrong kind");
    let world = World::start(1);
    let token = token("somebody");
    for (method, path, auth) in ROUTES {
        match auth {
            // A JWT opens no key-only route (keys.md §6).
            Read | Trade => {
                ask(&mut world.server.with_token(&token), &world, method, path).refused(401, "MISSING_API_KEY");
            }
            // A key opens no JWT-only route (wire.md §6.1).
            Jwt => _ = ask(&mut world.user(0), &world, method, path).refused(401, "MISSING_AUTH"),
            Public | KeyOrJwt => continue,
        }
        cases.one();
    }
}

#[test]
fn a_read_only_key_may_not_trade() {
    let cases = Cases::of("read only");
    let world = World::start(1);
    let made = world.user(0).post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let mut reader = world.server.with_key(text(&made, "/raw_key"));
    for (method, path, auth) in ROUTES {
        let answer = ask(&mut reader, &world, method, path);
        match auth {
            // Before the body is looked at: there is none.
            Trade => _ = answer.refused(403, "INSUFFICIENT_PERMISSION"),
            Jwt => continue,
            _ => assert!(answer.status != 403 && answer.status != 401, "{method} {path}: {}", answer.lossy()),
        }
        cases.one();
    }
}

#[test]
fn methods_and_paths_are_known_exactly() {
    let cases = Cases::of("methods and paths");
    let world = World::start(0);
    for (_, path, _) in ROUTES {
        let bare = path.split('?').next().expect("a path");
        for method in ["PUT", "TRACE", "BREW"] {
            // 405 before any credential is looked for (wire.md §7).
            let answer = ask(&mut world.public(), &world, method, path);
            answer.refused(405, "HTTP_405");
            let allow = answer.header("Allow").unwrap_or_else(|| panic!("no Allow on {method} {path}")).to_string();
            for (known, _, _) in ROUTES.iter().filter(|(_, other, _)| other.split('?').next() == Some(bare)) {
                assert!(allow.contains(known), "{path}: {known} is missing in Allow: {allow}");
            }
            cases.one();
        }
        ask(&mut world.public(), &world, "GET", &format!("{bare}/")).refused(404, "NOT_FOUND");
        cases.one();
    }
    for path in
        ["/", "/v1", "/v2/orders", "/V1/orders", "/v1/Orders", "/v1//orders", "/v1/orders/1/2", "/v1/%6frders", "/x"]
    {
        for method in ["GET", "POST", "DELETE"] {
            let answer = ask(&mut world.public(), &world, method, path);
            assert!(answer.status == 404, "{method} {path}: {} {}", answer.status, answer.lossy());
            answer.assert_envelope();
            cases.one();
        }
    }
}

#[test]
fn head_answers_like_get_without_a_body() {
    let cases = Cases::of("head");
    let world = World::start(1);
    for (method, path, auth) in ROUTES.into_iter().filter(|(method, ..)| *method == "GET") {
        let mut client = if auth == Public { world.public() } else { world.user(0) };
        let get = ask(&mut client, &world, method, path);
        let head = ask(&mut client, &world, "HEAD", path);
        assert_eq!(head.status, get.status, "{path}");
        assert_eq!(head.header("Content-Type"), get.header("Content-Type"), "{path}");
        assert!(head.body.is_empty());
        head.assert_request_id();
        // The connection is still in step.
        client.get("/v1/health").expect(200);
        cases.one();
    }
}

#[test]
fn every_answer_is_json_with_a_request_id() {
    let cases = Cases::of("forms");
    let world = World::start(1);
    for (method, path, _) in ROUTES {
        let answer = ask(&mut world.user(0), &world, method, path);
        assert!(answer.status < 500, "{method} {path}: {} {}", answer.status, answer.lossy());
        let kind = answer.header("Content-Type").unwrap_or_default().to_string();
        assert!(kind.starts_with("application/json"), "{method} {path}: {kind}");
        let _: Value = answer.json();
        answer.assert_request_id();
        assert_eq!(answer.header("Location"), None, "none is ever sent");
        cases.one();
    }
}
