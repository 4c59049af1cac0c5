//! Every route of the server's own table with requests that are wrong before their content matters
//! (gateway/docs/wire.md §7, 2–12). A new route is tested without a new line here.

use crate::table::{Door, Table};
use edge::http::code::{Code, Effect, Retry};
use edge::http::route::{Auth, BodyKind, Gate, Method, Permission};
use gateway::config::Config;
use serde_json::{Value, json};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::json::text;
use tests::token::token;
use tests::world::World;

fn ask(client: &mut Client, door: &Door) -> Response {
    client.send(&door.request())
}

#[test]
fn credentials_are_required_by_the_contract() {
    let cases = Cases::of("no credential");
    let world = World::start(0);
    for door in &Table::of(&world).doors {
        for empty in [false, true] {
            let mut client = world.public();
            if empty {
                // An empty header counts as absent (gateway/docs/wire.md §3).
                client = client.with_header("X-API-Key", "").with_header("MKT_API_KEY", "");
            }
            let answer = ask(&mut client, door);
            match door.route.auth {
                Auth::Public => assert!(answer.status != 401, "{door}: {}", answer.lossy()),
                Auth::Key | Auth::KeyUnless(_) => _ = answer.refused(401, "MISSING_API_KEY"),
                // Without a key an address must sign, and this request has no signature.
                Auth::KeyOrAddress => assert_eq!(answer.status, 401, "{door}: {}", answer.lossy()),
                Auth::KeyOrJwt | Auth::Jwt => _ = answer.refused(401, "MISSING_AUTH"),
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
        for door in &Table::of(&world).doors {
            let answer = ask(&mut world.server.with_key(key), door);
            match door.route.auth {
                Auth::Public => assert!(answer.status != 401, "{door}: {}", answer.lossy()),
                Auth::Jwt => _ = answer.refused(401, "MISSING_AUTH"),
                _ => _ = answer.refused(401, "INVALID_KEY"),
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
    for door in &Table::of(&world).doors {
        match door.route.auth {
            // A JWT opens no key-only route (gateway/docs/keys.md §6).
            Auth::Key | Auth::KeyUnless(_) => {
                ask(&mut world.server.with_token(&token), door).refused(401, "MISSING_API_KEY");
            }
            Auth::KeyOrAddress => assert_eq!(ask(&mut world.server.with_token(&token), door).status, 401, "{door}"),
            // A key opens no JWT-only route (gateway/docs/keys.md §6).
            Auth::Jwt => _ = ask(&mut world.user(0), door).refused(401, "MISSING_AUTH"),
            Auth::Public | Auth::KeyOrJwt => continue,
        }
        cases.one();
    }
}

#[test]
fn a_read_only_key_may_not_trade() {
    let cases = Cases::of("read only");
    let world = World::start(1);
    let table = Table::of(&world);
    let made = world.user(0).post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let raw = text(&made, "/raw_key");
    for door in &table.doors {
        // Revoking and rotating would change the caller's key.
        if door.route.auth == Auth::Jwt || door.route.path.starts_with("/v1/keys/{id}") {
            continue;
        }
        let answer = ask(&mut world.server.with_key(raw), door);
        match door.route.permission {
            // Checked before the body, which is absent.
            Some(Permission::Trade) => _ = answer.refused(403, "INSUFFICIENT_PERMISSION"),
            _ => assert!(answer.status != 403 && answer.status != 401, "{door}: {}", answer.lossy()),
        }
        cases.one();
    }
}

#[test]
fn methods_and_paths_are_known_exactly() {
    let cases = Cases::of("methods and paths");
    let world = World::start(0);
    let table = Table::of(&world);
    for door in &table.doors {
        let bare = door.path.split('?').next().expect("a path");
        for method in ["PUT", "TRACE", "BREW"] {
            // 405 before any credential is checked (gateway/docs/wire.md §7).
            let answer = world.public().send(&Request::new(method, bare));
            answer.refused(405, "HTTP_405");
            let allow = answer.header("Allow").unwrap_or_else(|| panic!("no Allow on {method} {bare}")).to_string();
            for other in table.doors.iter().filter(|other| other.route.path == door.route.path) {
                let known = other.route.method.text();
                assert!(allow.contains(known), "{bare}: {known} is missing in Allow: {allow}");
            }
            cases.one();
        }
        if !bare.ends_with('/') && bare != "/v1" {
            world.public().send(&Request::get(&format!("{bare}/"))).refused(404, "NOT_FOUND");
            cases.one();
        }
    }
    for path in ["/v1", "/v2/orders", "/V1/orders", "/v1/Orders", "/v1//orders", "/v1/orders/1/2", "/v1/%6frders", "/x"]
    {
        for method in ["GET", "POST", "DELETE"] {
            let answer = world.public().send(&Request::new(method, path));
            assert!(answer.status == 404, "{method} {path}: {} {}", answer.status, answer.lossy());
            answer.assert_envelope();
            cases.one();
        }
    }
}

#[test]
fn a_closed_gate_is_no_route() {
    let cases = Cases::of("closed gates");
    let closed = World::start(1);
    for door in &Table::split(&closed, &Config::defaults().edge()).1.doors {
        let Some(gate) = door.route.gate else { continue };
        let anonymous = ask(&mut closed.public(), door);
        // A route of links takes no credential at all.
        if gate.asks_first() && door.route.auth != Auth::Public {
            anonymous.refused(401, "MISSING_API_KEY");
            ask(&mut closed.server.with_token(&token("somebody")), door).refused(401, "MISSING_API_KEY");
            // Other methods of the path do not exist either.
            closed.user(0).send(&Request::new("PUT", &door.path)).refused(404, "NOT_FOUND");
        } else {
            anonymous.refused(404, "NOT_FOUND");
        }
        ask(&mut closed.user(0), door).refused(404, "NOT_FOUND");
        cases.add(2);
    }
}

/// If a gate became open by default, the other tests of this file would cover its routes.
#[test]
fn a_route_behind_an_open_gate_is_in_the_table() {
    let cases = Cases::of("routes by gate");
    let world = World::start(0);
    let defaults = Config::defaults().edge();
    let has = |table: &Table, gate: Gate| table.doors.iter().any(|door| door.route.gate == Some(gate));
    let mut facade = defaults.clone();
    facade.compat.facade = true;
    let mut archive = defaults.clone();
    archive.flags.chart_archive_read_enabled = true;
    for (settings, gate, is_open) in [
        (&defaults, Gate::Facade, false),
        (&defaults, Gate::ChartArchive, false),
        (&facade, Gate::Facade, true),
        (&facade, Gate::ChartArchive, false),
        (&archive, Gate::Facade, false),
        (&archive, Gate::ChartArchive, true),
    ] {
        let (open, closed) = Table::split(&world, settings);
        assert_eq!((has(&open, gate), has(&closed, gate)), (is_open, !is_open), "{gate:?}");
        let all = edge::groups::GROUPS.iter().map(|group| group.routes.len()).sum::<usize>();
        assert_eq!(open.doors.len() + closed.doors.len(), all);
        cases.one();
    }
}

#[test]
fn head_answers_like_get_without_a_body() {
    let cases = Cases::of("head");
    let world = World::start(1);
    for door in Table::of(&world).doors.iter().filter(|door| door.route.method == Method::Get) {
        let mut client = if door.route.auth == Auth::Public { world.public() } else { world.user(0) };
        let get = ask(&mut client, door);
        let head = client.send(&Request { method: "HEAD".into(), ..door.request() });
        assert_eq!(head.status, get.status, "{door}");
        assert_eq!(head.header("Content-Type"), get.header("Content-Type"), "{door}");
        assert!(head.body.is_empty());
        head.assert_request_id();
        // The connection is still in step.
        client.get("/v1/health").expect(200);
        cases.one();
    }
}

#[test]
fn every_answer_is_of_its_kind_with_a_request_id() {
    let cases = Cases::of("forms");
    let world = World::start(1);
    for door in &Table::of(&world).doors {
        let answer = ask(&mut world.user(0), door);
        assert!(answer.status < 500, "{door}: {} {}", answer.status, answer.lossy());
        let kind = answer.header("Content-Type").unwrap_or_default().to_string();
        if kind.starts_with("application/json") {
            let _: Value = answer.json();
        } else {
            assert!(kind.starts_with("text/csv") && door.path.contains(".csv"), "{door}: {kind}");
        }
        answer.assert_request_id();
        assert_eq!(answer.header("Location"), None, "the body is never sent");
        cases.one();
    }
}

#[test]
fn too_large_a_body_is_refused_everywhere() {
    let cases = Cases::of("oversize bodies");
    let world = World::start(1);
    for door in &Table::of(&world).doors {
        // The declared length is enough: no byte of it is sent.
        let request = door.request().header("Content-Length", "1048577");
        let answer = world.user(0).send(&Request { body: None, ..request });
        answer.refused(413, "HTTP_413");
        cases.one();
    }
}

#[test]
fn what_is_no_json_is_refused_where_a_body_is_read() {
    let cases = Cases::of("malformed bodies");
    let world = World::start(1);
    let identity = token("malformed");
    let bodies = ["{", "{\"a\":}", "[1,]", "nul", "\"", "{'a':1}", "\u{feff}{}", "{\"a\":1}}", "{\"a\":\u{1}}"];
    let deep = format!("{}{}", "[".repeat(40), "]".repeat(40));
    for door in Table::of(&world).doors.iter().filter(|door| door.route.body != BodyKind::Ignored) {
        let fresh = || match door.route.auth {
            Auth::Jwt => world.server.with_token(&identity),
            _ => world.user(0),
        };
        for body in bodies.into_iter().chain([deep.as_str()]) {
            let answer = fresh().send(&door.request().text("application/json", body));
            // A signed order that cannot be parsed is a bad payload (gateway/docs/venue-clients.md §5.1).
            assert_eq!(answer.status, 400, "{door} {body:?}: {}", answer.lossy());
            assert!(["INVALID_BODY", "INVALID_ORDER_PAYLOAD"].contains(&&*answer.code()), "{door}: {}", answer.lossy());
            answer.assert_envelope();
            cases.one();
        }
        let mut bytes = door.request().text("application/json", "");
        bytes.body = Some(b"{\"a\":\"\xff\xfe\"}".to_vec());
        let answer = fresh().send(&bytes);
        assert_eq!(answer.status, 400, "{door}: no UTF-8: {}", answer.lossy());
        fresh().send(&door.request().text("text/plain", "{}")).refused(415, "HTTP_415");
        cases.add(2);
    }
}

#[test]
fn every_route_has_a_summary_and_its_answers() {
    let cases = Cases::of("declarations");
    for group in edge::groups::GROUPS {
        assert!(!group.about.is_empty(), "{}", group.name);
        for route in group.routes {
            assert!(!route.about.is_empty(), "{route:?} has no summary");
            match route.gives[0] {
                Some(usual) => assert!((200..300).contains(&usual.status), "{route:?}: the usual answer comes first"),
                // Routes of the venue without an implementation: the only answer is a refusal.
                None => assert_eq!(route.fails, [Code::InvalidRequest], "{route:?} does not describe its answer"),
            }
            assert_eq!(route.takes.is_some(), route.body != BodyKind::Ignored, "{route:?}: a body has a shape");
            cases.one();
        }
    }
}

/// `gateway/docs/errors.md` has each code once, with the facts of the table.
#[test]
fn the_reference_of_errors_is_the_table() {
    let cases = Cases::of("codes in the reference");
    let reference = std::fs::read_to_string(workspace().join("gateway/docs/errors.md")).expect("the reference exists");
    for code in Code::ALL {
        let header = match code.header() {
            header if header == code.text() => String::new(),
            header => format!(" (header `{header}`)"),
        };
        let again = match code.retry() {
            Retry::No => "no".to_owned(),
            Retry::Yes => "later".to_owned(),
            Retry::After(seconds) => format!("after {seconds} s (`Retry-After`)"),
            Retry::WindowEnd => "when the window ends (`Retry-After`)".to_owned(),
            Retry::AfterLookup => "look the order up first".to_owned(),
        };
        let effect = match code.effect() {
            Effect::Nothing => "none",
            Effect::Unknown => "not known",
            Effect::Done => "done",
        };
        let (text, status) = (code.text(), code.status().as_u16());
        let row = format!("| `{text}`{header} | {status} | {again} | {effect} | {} |", code.message());
        assert_eq!(reference.lines().filter(|line| *line == row).count(), 1, "errors.md lacks the row\n{row}");
        cases.one();
    }
    // A row has five cells; the table of meanings at the end has two.
    let rows = reference.lines().filter(|line| line.starts_with("| `") && line.matches(" | ").count() >= 4).count();
    assert_eq!(rows, Code::ALL.len(), "errors.md has rows for unknown codes");
}
