use super::*;
use crate::engine_client::AskError;
use crate::http::jwt;
use crate::http::limit::Payer;
use crate::http::route::{Gate, Permission, RateClass, VenueShape};
use crate::http::testing::{Answered, NOW, SECRET, World, run};
use engine::command::{Answer, Command, CreateUser};
use engine::fact;
use engine::id::{KeyId, UserId};
use engine::mutation::Mutation;
use engine::time::UtcDay;
use engine::user::{Permissions, Tier};
use host::secret::Secret;
use http_body_util::Full;
use hyper::Version;
use std::cell::RefCell;
use std::pin::Pin;
use std::task::Poll;

/// Returns what the handler received.
fn echo(call: Call) -> super::super::route::Running {
    Box::pin(async move {
        let json = match call.route.body {
            BodyKind::Ignored => None,
            _ => call.json()?,
        };
        let caller = call.caller.map(|caller| (caller.user, caller.key.is_some(), caller.tier, caller.permissions));
        Ok(Reply::object(|o| {
            o.text("caller", &format!("{caller:?}"));
            o.text("body", &format!("{json:?}"));
        }))
    })
}

fn panics(_: Call) -> super::super::route::Running {
    Box::pin(async { panic!("a handler that panics") })
}

fn never_ends(_: Call) -> super::super::route::Running {
    Box::pin(std::future::pending())
}

/// Cuts the history of the caller, as it may happen while an answer is made.
fn cuts(call: Call) -> super::super::route::Running {
    Box::pin(async move {
        let (user, ended) = (call.caller().user, &call.edge.app.reads.ended);
        ended.history_from().expect("a world has one").set(UtcDay(20_000), [user]);
        Ok(Reply::object(|_| {}))
    })
}

const TABLE: &[Route] = &[
    Route::get("/v1/cuts", "cuts").shows_history().auth(Auth::Key).needs(Permission::Read).run(cuts),
    Route::get("/v1/cuts-alone", "cuts_alone").auth(Auth::Key).needs(Permission::Read).run(cuts),
    Route::get("/v1/lists", "lists").shows_history().auth(Auth::Key).needs(Permission::Read).run(echo),
    Route::get("/v1/public", "public").run(echo),
    Route::get("/v1/book", "book").no_store().run(echo),
    Route::get("/v1/health", "health").rate(RateClass::Exempt).no_store().run(echo),
    Route::get("/v1/read", "read").auth(Auth::Key).needs(Permission::Read).run(echo),
    Route::post("/v1/place", "place").auth(Auth::Key).needs(Permission::Trade).rate(RateClass::Placement).run(echo),
    Route::post("/v1/manage", "manage").auth(Auth::KeyOrJwt).body(BodyKind::Optional).run(echo),
    Route::post("/v1/boot", "boot").auth(Auth::Jwt).rate(RateClass::Bootstrap).body(BodyKind::Optional).run(echo),
    Route::get("/v1/two", "two").at_root().auth(Auth::KeyUnless(VenueShape::StrictOrPage)).run(echo),
    Route::post("/v1/login", "login").auth(Auth::KeyOrAddress).body(BodyKind::Ignored).run(echo),
    Route::get("/v1/gated", "gated").gate(Gate::SimulationApi).run(echo),
    Route::get("/v1/broken", "broken").run(panics),
    Route::get("/v1/stuck", "stuck").run(never_ends),
];

fn world() -> World {
    World::new("", &[TABLE])
}

fn token(sub: &str) -> String {
    format!("Bearer {}", jwt::sign(&Secret::new(SECRET.to_owned()), sub, None, NOW, 60))
}

/// Answers the creation of users, and panics on any other command.
fn creates_users(world: &World) {
    let edge = Rc::clone(&world.edge);
    world.shard(move |user, command| {
        let Command::CreateUser(CreateUser { sub, email, .. }) = command else { panic!("{command:?}") };
        edge.app.reads.directory.observe(user, &Mutation::UserCreated(fact::UserCreated { sub, email, at: NOW }));
        Ok(Answer::Created(user))
    });
}

fn bare(answer: &Answered) -> bool {
    answer.header("x-ratelimit-limit").is_none()
}

#[test]
fn every_answer_has_a_request_id_and_every_refusal_a_code() {
    let world = world();
    for (sent, kept) in [("r-1.A_b:9", true), ("", false), ("a b", false), ("é", false), (&"x".repeat(129), false)] {
        let answer = world.send("GET", "/v1/nothing", &[("x-request-id", sent)], "");
        assert_eq!(answer.code(), (404, "NOT_FOUND"));
        let id = answer.header("x-request-id").unwrap();
        assert_eq!(id == sent, kept, "{sent:?} {id}");
        assert!(kept || id.len() == 36);
    }
    let answer = world.send("GET", "/v1/nothing", &[("x-svc-verbose", "Yes"), ("x-request-id", "r-1")], "");
    assert_eq!(
        answer.json(),
        serde_json::json!({"error":"NOT_FOUND","message":"No such route or resource.","details":null,"request_id":"r-1"})
    );
    let answer = world.send("GET", "/v1/nothing", &[("x-svc-verbose", "on")], "");
    assert_eq!(answer.json().as_object().unwrap().len(), 2);
}

/// The head says from when on history is shown, also if it was cut while the answer was made.
#[test]
fn a_cut_while_an_answer_is_made_is_said() {
    let day = UtcDay(20_000).text();
    let mut cases = 0;
    // (targets in turn, and what the head of the last one says)
    for (targets, is_said) in [
        (&["/v1/lists"][..], false),
        (&["/v1/cuts"], true),
        (&["/v1/cuts-alone"], false),
        (&["/v1/cuts-alone", "/v1/lists"], true),
        (&["/v1/cuts", "/v1/read"], false),
    ] {
        let world = world();
        let (key, other) = (world.key(Tier::Free, Permissions::Read), world.key(Tier::Free, Permissions::Read));
        let answers: Vec<Answered> =
            targets.iter().map(|target| world.send("GET", target, &[("x-api-key", &key)], "")).collect();
        let last = answers.last().expect("one");
        assert_eq!((last.status, last.header("x-svc-history-from")), (200, is_said.then_some(&*day)), "{targets:?}");
        let of_other = world.send("GET", "/v1/lists", &[("x-api-key", &other)], "");
        assert_eq!((of_other.status, of_other.header("x-svc-history-from")), (200, None), "{targets:?}");
        cases += 2;
    }
    println!("cuts while an answer is made: {cases} cases");
}

#[test]
fn paths_methods_gates_and_preflights() {
    let world = world();
    let get = |target| world.send("GET", target, &[], "");
    assert_eq!(get("/v1/public").status, 200);
    assert_eq!(get("/v1/public/").code(), (404, "NOT_FOUND"));
    assert_eq!(get("/v1/gated").code(), (404, "NOT_FOUND"));
    let gate = World::new("[flags]\nfeature_simulation_api_enabled = true", &[TABLE]);
    assert_eq!(gate.send("GET", "/v1/gated", &[], "").status, 200);
    let wrong = world.send("PUT", "/v1/place", &[], "");
    assert_eq!((wrong.code(), wrong.header("allow")), ((405, "HTTP_405"), Some("POST, OPTIONS")));
    let head = world.send("HEAD", "/v1/health", &[], "");
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some(get("/v1/health").body.len().to_string().as_str()));

    let from_browser = [("origin", "https://a.example"), ("access-control-request-method", "POST")];
    for target in ["/v1/place", "/v1/nothing"] {
        let preflight = world.send("OPTIONS", target, &from_browser, "");
        assert_eq!((preflight.status, preflight.header("access-control-allow-origin")), (204, Some("*")));
        assert_eq!(preflight.header("access-control-max-age"), Some("600"));
        assert_eq!(preflight.header("access-control-allow-methods"), Some("GET, POST, PATCH, DELETE, OPTIONS"));
        assert!(preflight.header("access-control-allow-headers").unwrap().contains("POLY_API_KEY, Authorization"));
        assert!(preflight.header("x-request-id").is_some() && preflight.header("content-type").is_none());
    }
    assert_eq!(world.send("OPTIONS", "/v1/place", &[], "").header("allow"), Some("POST, OPTIONS"));
    assert_eq!(world.send("OPTIONS", "/v1/nothing", &[], "").status, 404);

    let listed = World::new("[http]\ncors_origins = [\"https://a.example\"]", &[TABLE]);
    let read = listed.send("GET", "/v1/health", &[("origin", "https://a.example")], "");
    assert_eq!(read.header("access-control-allow-origin"), Some("https://a.example"));
    assert!(read.header("access-control-expose-headers").unwrap().contains("x-ratelimit-limit"));
    let read = listed.send("GET", "/v1/health", &[("origin", "https://b.example")], "");
    assert_eq!(read.header("access-control-allow-origin"), None);
}

#[test]
fn heads_that_break_http_end_the_connection() {
    let world = world();
    let long = format!("/v1/health?{}", "x".repeat(8_192));
    for (target, headers) in [
        (long.as_str(), &[][..]),
        ("/v1/health", &[("host", "again")]),
        ("/v1/health", &[("x-api-key", "a"), ("x-api-key", "a")]),
        ("/v1/health", &[("authorization", "Bearer a"), ("authorization", "Bearer b")]),
        ("/v1/health", &[("content-type", "application/json"), ("content-type", "text/plain")]),
        ("/v1/health", &[("idempotency-key", "a"), ("idempotency-key", "b")]),
        ("/v1/health", &[("transfer-encoding", "gzip, chunked")]),
        ("/v1/health", &[("transfer-encoding", "chunked"), ("transfer-encoding", "chunked")]),
        ("/v1/health", &[("transfer-encoding", "chunked"), ("content-length", "5")]),
    ] {
        let answer = world.send("GET", target, headers, "");
        assert_eq!(answer.code(), (400, "HTTP_400"), "{headers:?}");
        assert_eq!(answer.header("connection"), Some("close"));
    }
    let hostless = Request::builder().uri("/v1/health").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(world.respond(hostless).status, 400);
    let old = Request::builder().version(Version::HTTP_10).uri("/v1/health").body(Full::<Bytes>::default()).unwrap();
    assert_eq!(world.respond(old).status, 200);
}

/// The credentials that each kind of route accepts, and the code of every other case.
#[test]
fn credentials_open_the_routes_that_take_them() {
    let world = world();
    creates_users(&world);
    let (reads, trades) = (world.key(Tier::Pro, Permissions::Read), world.key(Tier::Pro, Permissions::ReadTrade));
    let unknown = format!("svc_live_{}", "f".repeat(64));
    let jwt = token("u-1");
    let key = |text: &str| vec![("x-api-key", text.to_owned())];
    let bearer = |text: &str| vec![("authorization", text.to_owned())];
    let both = |k: &str, j: &str| vec![("x-api-key", k.to_owned()), ("authorization", j.to_owned())];
    for (credential, public, read, place, manage, boot) in [
        (vec![], "200", "MISSING_API_KEY", "MISSING_API_KEY", "MISSING_AUTH", "MISSING_AUTH"),
        (key(&reads), "200", "200", "INSUFFICIENT_PERMISSION", "200", "MISSING_AUTH"),
        (key(&trades), "200", "200", "200", "200", "MISSING_AUTH"),
        (bearer(&format!("Bearer {trades}")), "200", "200", "200", "200", "MISSING_AUTH"),
        (key(&unknown), "200", "INVALID_KEY", "INVALID_KEY", "INVALID_KEY", "MISSING_AUTH"),
        (key("svc_live_short"), "200", "INVALID_KEY", "INVALID_KEY", "INVALID_KEY", "MISSING_AUTH"),
        (bearer(&jwt), "200", "MISSING_API_KEY", "MISSING_API_KEY", "200", "200"),
        (bearer("Bearer x.y.z"), "200", "MISSING_API_KEY", "MISSING_API_KEY", "INVALID_TOKEN", "INVALID_TOKEN"),
        (both(&trades, &jwt), "200", "200", "200", "200", "200"),
        (both(&unknown, &jwt), "200", "INVALID_KEY", "INVALID_KEY", "INVALID_KEY", "200"),
        (both(&trades, "Bearer x.y.z"), "200", "200", "200", "200", "INVALID_TOKEN"),
    ] {
        let headers: Vec<_> = credential.iter().map(|(name, value)| (*name, value.as_str())).collect();
        for (method, target, expected) in [
            ("GET", "/v1/public", public),
            ("GET", "/v1/read", read),
            ("POST", "/v1/place", place),
            ("POST", "/v1/manage", manage),
            ("POST", "/v1/boot", boot),
        ] {
            // A new minute, so that limits do not matter here.
            world.clock.set(world.clock.now().plus(1_000_000));
            let answer = world.send(method, target, &headers, if method == "POST" { "{}" } else { "" });
            let shown = if answer.status == 200 { "200" } else { answer.code().1 };
            let bootstraps = target == "/v1/boot" && shown == "RATE_LIMIT_EXCEEDED";
            assert!(shown == expected || (bootstraps && expected == "200"), "{target} {headers:?}: {answer:?}");
        }
    }
}

#[test]
fn ended_keys_have_the_code_of_their_end() {
    let world = World::new(&format!("[access]\ndisabled_keys = [{}]", UserId(2).object(1_001)), &[TABLE]);
    let expiring = world.key(Tier::Pro, Permissions::ReadTrade);
    let disabled = world.key(Tier::Pro, Permissions::ReadTrade);
    let revoked = world.key(Tier::Pro, Permissions::ReadTrade);
    let key_of = |user: u64, number: u32| KeyId(UserId(user).object(1_000 + number));
    let end = NOW.plus(3_000_000);
    let expiry = Mutation::KeyExpiring(fact::KeyExpiring {
        key: key_of(1, 0),
        expires_at: end,
        replaced_by: key_of(1, 9),
        at: NOW,
    });
    world.note(UserId(1), expiry);
    world.note(UserId(3), Mutation::KeyRevoked(fact::KeyRevoked { key: key_of(3, 2), at: NOW }));
    let send = |key: &str| world.send("GET", "/v1/read", &[("x-api-key", key)], "");
    assert_eq!(send(&expiring).status, 200);
    assert_eq!(send(&disabled).code(), (401, "KEY_DEACTIVATED"));
    assert!(!bare(&send(&disabled)), "a recognised key shows its windows");
    assert_eq!(send(&revoked).code(), (401, "INVALID_KEY"));
    assert!(bare(&send(&revoked)));
    world.clock.set(end);
    let expired = send(&expiring);
    assert_eq!(expired.code(), (401, "KEY_EXPIRED"));
    // Only the first request counted.
    assert_eq!(expired.header("x-ratelimit-remaining"), Some("599"));
    // On a public route such a key counts as absent.
    let public = world.send("GET", "/v1/public", &[("x-api-key", &expiring)], "");
    assert!(public.status == 200 && bare(&public));
    assert_eq!(public.header("cache-control"), Some("public, max-age=5"));
}

#[test]
fn restricted_accounts_are_refused() {
    let flagged = World::new("[access]\nflagged = [\"1\", \"u-9\"]", &[TABLE]);
    creates_users(&flagged);
    let (bad, good) =
        (flagged.key(Tier::Free, Permissions::ReadTrade), flagged.key(Tier::Free, Permissions::ReadTrade));
    let read = |world: &World, key: &str| world.send("GET", "/v1/read", &[("x-api-key", key)], "");
    assert_eq!(read(&flagged, &bad).code(), (403, "ACCESS_RESTRICTED"));
    assert_eq!(read(&flagged, &good).status, 200);
    let by_token = flagged.send("POST", "/v1/manage", &[("authorization", &token("u-9"))], "");
    assert_eq!(by_token.code(), (403, "ACCESS_RESTRICTED"));
    let listed = World::new("[flags]\nallowlist_enabled = true\n[access]\nallowlist = [\"2\"]", &[TABLE]);
    let (out, inside) = (listed.key(Tier::Free, Permissions::Read), listed.key(Tier::Free, Permissions::Read));
    assert_eq!(read(&listed, &out).code(), (403, "ACCESS_RESTRICTED"));
    assert_eq!(read(&listed, &inside).status, 200);
}

#[test]
fn a_beta_key_is_downgraded_at_its_cutoff_which_a_header_shows() {
    let world = world();
    let key = world.key(Tier::Pro, Permissions::ReadTrade);
    let text = format!("svc_live_{}", "b".repeat(64));
    let cutoff = NOW.plus(1_000_000);
    world.note(
        UserId(1),
        Mutation::KeyIssued(fact::KeyIssued {
            key: KeyId(UserId(1).object(5)),
            hash: crate::http::auth::key_hash(text.as_bytes(), "svc").unwrap(),
            alias_hash: [7; 32],
            prefix: text[..16].to_owned(),
            name: None,
            tier: Tier::Pro,
            permissions: Permissions::ReadTrade,
            beta_until: Some(cutoff),
            at: NOW,
        }),
    );
    let place = |key: &str| world.send("POST", "/v1/place", &[("x-api-key", key)], "{}");
    let before = place(&text);
    assert_eq!((before.status, before.header("x-api-beta-cutoff")), (200, None));
    world.clock.set(cutoff);
    let after = place(&text);
    assert_eq!(after.code(), (403, "INSUFFICIENT_PERMISSION"));
    assert_eq!(after.header("x-api-beta-cutoff"), Some("2026-10-02T09:14:06Z"));
    assert_eq!(after.header("x-ratelimit-tier"), Some("free"));
    assert_eq!(place(&key).header("x-api-beta-cutoff"), None);
}

#[test]
fn limits_count_once_and_are_in_the_headers() {
    let world = world();
    let key = world.key(Tier::Free, Permissions::ReadTrade);
    let read = || world.send("GET", "/v1/read", &[("x-api-key", &key)], "");
    let first = read();
    for (name, value) in [
        ("limit", "120"),
        ("remaining", "119"),
        ("reset", "1790932500"),
        ("limit-per-second", "2"),
        ("remaining-per-second", "1"),
        ("tier", "free"),
    ] {
        assert_eq!(first.header(&format!("x-ratelimit-{name}")), Some(value), "{name}");
        assert_eq!(first.header(&format!("x-svc-ratelimit-{name}")), Some(value), "{name}");
    }
    assert_eq!(first.header("cache-control"), Some("private, no-store"));
    assert_eq!(read().status, 200);
    let third = read();
    assert_eq!((third.code(), third.header("retry-after")), ((429, "RATE_LIMIT_EXCEEDED"), Some("1")));
    assert_eq!((third.header("x-ratelimit-remaining"), third.header("x-ratelimit-tier")), (Some("118"), Some("free")));
    // The same key on a public route has its own windows, and a 429 without rate headers.
    let public = world.send("GET", "/v1/public", &[("x-api-key", &key)], "");
    assert!(public.status == 429 && bare(&public) && public.header("retry-after") == Some("1"));
    // A request without a key counts in the address's windows.
    let anonymous = || world.send("GET", "/v1/public", &[], "");
    assert!(anonymous().status == 200 && anonymous().status == 200);
    let refused = anonymous();
    assert!(refused.status == 429 && bare(&refused));
    // A refusal by a limit does not count; one by permission does.
    world.clock.set(NOW.plus(1_000_000));
    assert_eq!(read().header("x-ratelimit-remaining"), Some("117"));
    let verbose = world.send("GET", "/v1/public", &[("x-svc-verbose", "1")], "");
    assert_eq!(verbose.status, 200);
    for _ in 0..20 {
        let health = world.send("GET", "/v1/health", &[("x-api-key", &key)], "");
        assert!(health.status == 200 && bare(&health));
    }
}

#[test]
fn a_first_token_creates_its_user_once() {
    let world = world();
    creates_users(&world);
    let manage = |sub: &str| world.send("POST", "/v1/manage", &[("authorization", &token(sub))], "");
    let first = manage("u-1");
    assert!(first.json()["caller"].as_str().unwrap().contains("UserId(1), false, Free, ReadTrade"), "{first:?}");
    world.shard(|_, command| panic!("known by now: {command:?}"));
    assert_eq!(manage("u-1").header("x-ratelimit-remaining"), Some("118"));
    // While another request creates the user, the account is incomplete. If that fails, the next request tries again.
    world.shard(|_, _| Err(AskError::Busy));
    assert_eq!(manage("u-2").code(), (503, "SERVER_BUSY"));
    creates_users(&world);
    world.clock.set(NOW.plus(1_000_000));
    assert_eq!(manage("u-2").status, 200);
    world.shard(|_, _| Err(AskError::Unknown));
    assert_eq!(manage("u-3").code(), (401, "AUTH_STATE_INCOMPLETE"));
    let again = manage("u-3");
    assert_eq!((again.code(), again.header("retry-after")), ((401, "AUTH_STATE_INCOMPLETE"), Some("1")));
}

#[test]
fn bootstrap_is_counted_by_address_only_when_the_token_is_good() {
    let world = world();
    creates_users(&world);
    let boot = |bearer: &str| world.send("POST", "/v1/boot", &[("authorization", bearer)], "");
    for _ in 0..9 {
        assert_eq!(boot("Bearer x.y.z").code(), (401, "INVALID_TOKEN"));
    }
    assert_eq!(boot(&token("u-1")).status, 200);
    let second = boot(&token("u-2"));
    assert_eq!((second.code(), second.header("retry-after")), ((429, "RATE_LIMIT_EXCEEDED"), Some("55")));
}

#[test]
fn bodies_are_json_within_their_bounds() {
    let world = World::new("[http]\nbody_bytes_max = 1024\nbody_timeout_ms = 50", &[TABLE]);
    let key = world.key(Tier::Enterprise, Permissions::ReadTrade);
    let send = |content_type: Option<&str>, body: &str| {
        let mut headers = vec![("x-api-key", key.as_str())];
        headers.extend(content_type.map(|value| ("content-type", value)));
        world.send("POST", "/v1/manage", &headers, body)
    };
    for content_type in ["application/json", "Application/JSON; charset=UTF-8", "application/json;charset=\"utf-8\""] {
        assert_eq!(send(Some(content_type), "{}").status, 200, "{content_type}");
    }
    for content_type in ["text/plain", "application/json; charset=latin1", "application/jsonp", "application/xml"] {
        assert_eq!(send(Some(content_type), "{}").code(), (415, "HTTP_415"), "{content_type}");
    }
    assert_eq!(send(None, "{}").status, 200);
    assert_eq!(send(None, "a=b").code(), (415, "HTTP_415"));
    assert_eq!(send(Some("application/json"), "a=b").code(), (400, "INVALID_BODY"));
    assert_eq!(send(Some("application/json"), "{\"a\":1,\"a\":2}").code(), (400, "INVALID_BODY"));
    assert_eq!(send(None, "").status, 200);

    let long = " ".repeat(1_023);
    assert_eq!(send(None, &format!("{long}1")).status, 200);
    assert_eq!(send(None, &format!("{long}11")).code(), (413, "HTTP_413"));
    // A body declared too large is refused before the credential is read, and the connection ends.
    let declared = world.send("POST", "/v1/manage", &[("content-length", "1025")], "");
    assert_eq!((declared.code(), declared.header("connection")), ((413, "HTTP_413"), Some("close")));
    // Several frames without a declared length.
    let pieces = |count: usize| {
        let frames = (0..count)
            .map(|_| Ok::<_, std::convert::Infallible>(hyper::body::Frame::data(Bytes::from_static(&[b' '; 100]))));
        let body = Pieces(frames.chain([Ok(hyper::body::Frame::data(Bytes::from_static(b"{}")))]).collect());
        let request = Request::builder().method("POST").uri("/v1/manage").header("host", "x").header("x-api-key", &key);
        world.respond(request.body(body).unwrap())
    };
    assert_eq!(pieces(3).status, 200);
    assert_eq!(pieces(11).code(), (413, "HTTP_413"));
    // A body that never arrives.
    let request = Request::builder().method("POST").uri("/v1/manage").header("host", "x").header("x-api-key", &key);
    let never = world.respond(request.body(Never).unwrap());
    assert_eq!((never.code(), never.header("connection")), ((400, "HTTP_400"), Some("close")));
}

#[test]
fn a_handler_that_panics_is_an_internal_error_and_frees_its_slot() {
    let world = world();
    let key = world.key(Tier::Free, Permissions::ReadTrade);
    for second in 0..20 {
        world.clock.set(NOW.plus(second * 1_000_000));
        let answer = world.send("GET", "/v1/broken", &[("x-api-key", &key)], "");
        assert_eq!(answer.code(), (500, "INTERNAL_ERROR"));
        assert_eq!(answer.json()["error"], "INTERNAL_ERROR");
        assert!(answer.header("x-request-id").is_some());
    }
    assert_eq!(world.edge.app.front.limits.in_flight(Payer::Key(0)), 0);
}

#[test]
fn a_request_that_never_ends_times_out() {
    let world = World::new("[http]\nrequest_timeout_ms = 100", &[TABLE]);
    let key = world.key(Tier::Free, Permissions::ReadTrade);
    let answer = world.send("GET", "/v1/stuck", &[("x-api-key", &key)], "");
    assert_eq!((answer.code(), answer.header("connection")), ((500, "INTERNAL_ERROR"), Some("close")));
    assert_eq!(world.edge.app.front.limits.in_flight(Payer::Key(0)), 0);
}

/// A body of several frames.
struct Pieces(std::collections::VecDeque<Result<hyper::body::Frame<Bytes>, std::convert::Infallible>>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        Poll::Ready(self.0.pop_front())
    }
}

/// A body whose sender is silent.
struct Never;

impl Body for Never {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, Self::Error>>> {
        Poll::Pending
    }
}

#[test]
fn a_key_is_needed_unless_the_request_is_in_the_venues_shape() {
    let world = world();
    let key = world.key(Tier::Free, Permissions::Read);
    let (key, unknown) = (("x-api-key", key.as_str()), ("x-api-key", "svc_live_no"));
    let strict = ("poly_address", "0xA1");
    // (target, headers, status, code, rate headers)
    let cases = [
        ("/v1/two", &[][..], (401, "MISSING_API_KEY"), false),
        ("/two", &[], (401, "MISSING_API_KEY"), false),
        ("/v1/v1/two", &[], (401, "MISSING_API_KEY"), false),
        ("/v1/two?next_cursor=MA==&envelope=true", &[], (401, "MISSING_API_KEY"), false),
        ("/v1/two?next_cursor=MA==", &[], (200, ""), false),
        ("/two?dialect=strict", &[], (200, ""), false),
        ("/two", &[unknown], (401, "INVALID_KEY"), false),
        ("/two", &[unknown, strict], (429, "RATE_LIMIT_EXCEEDED"), false),
        ("/two", &[key], (200, ""), true),
        ("/two", &[key, strict], (200, ""), true),
    ];
    for (target, headers, code, metered) in cases {
        let answer = world.send("GET", target, headers, "");
        assert_eq!(answer.code(), code, "{target} {headers:?}");
        assert_eq!(answer.header("x-ratelimit-limit").is_some(), metered, "{target} {headers:?}");
        assert!(answer.header("cache-control").unwrap_or_default().ends_with("no-store"), "{target} {headers:?}");
    }
    println!("{} cases", cases.len());
}

#[test]
fn an_address_login_needs_no_key() {
    for (toml, expected) in [
        ("", (200, "")),
        ("[server]\nlisten = \"0.0.0.0:8080\"\n", (401, "MISSING_API_KEY")),
        ("[http]\ntrusted_proxies = [\"10.0.0.1\"]\n", (401, "MISSING_API_KEY")),
        ("[venue]\naddress_login = false\n", (401, "MISSING_API_KEY")),
        ("[server]\nlisten = \"0.0.0.0:8080\"\n[venue]\naddress_login = true\n", (200, "")),
    ] {
        let world = World::new(toml, &[TABLE]);
        assert_eq!(world.send("POST", "/v1/login", &[], "").code(), expected, "{toml}");
        let unknown = world.send("POST", "/v1/login", &[("x-api-key", "svc_live_no")], "");
        assert_eq!(unknown.code(), (401, "INVALID_KEY"), "a key that is shown is looked at");
    }
}

/// An account without an address gets that of a later token; another one is not even asked about. No response waits for
/// it, a user has one attempt at a time, and a request that is refused brings nothing.
#[test]
fn a_later_token_brings_the_address() {
    let open = "[limits.tiers.free]\nrequests_per_second = 1000000\nrequests_per_minute = 1000000\n";
    let limited = "[limits.tiers.free]\nrequests_per_second = 1\nrequests_per_minute = 1\n";
    let flagged = format!("{open}[access]\nflagged = [\"ada\"]\n");
    // (settings; of each step: the sub, the address of the token, how many requests; their status, how often the shard
    // is asked to note it)
    type Step = (&'static str, Option<&'static str>, usize, u16, usize);
    let rows: [(&str, &[Step]); 3] = [
        (
            open,
            &[
                ("ada", None, 1, 200, 0),
                ("ada", None, 1, 200, 0),
                ("ada", Some("busy@example.net"), 3, 200, 1),
                ("ada", Some("busy@example.net"), 1, 200, 1),
                ("ada", Some("ada@example.net"), 2, 200, 1),
                ("ada", Some("ada@example.net"), 1, 200, 0),
                ("ada", Some("other@example.net"), 1, 200, 0),
                ("eve", Some("eve@example.net"), 1, 200, 0),
                ("eve", Some("other@example.net"), 1, 200, 0),
            ],
        ),
        (limited, &[("ada", None, 1, 200, 0), ("ada", Some("ada@example.net"), 2, 429, 0)]),
        (&flagged, &[("ada", None, 1, 403, 0), ("ada", Some("ada@example.net"), 2, 403, 0)]),
    ];
    let mut cases = 0;
    for (toml, steps) in rows {
        let world = World::new(toml, &[TABLE]);
        let asked = Rc::new(RefCell::new(Vec::new()));
        let (noted, edge) = (Rc::clone(&asked), Rc::clone(&world.edge));
        world.shard(move |user, command| {
            let directory = &edge.app.reads.directory;
            match command {
                Command::CreateUser(CreateUser { sub, email, .. }) => {
                    directory.observe(user, &Mutation::UserCreated(fact::UserCreated { sub, email, at: NOW }));
                    Ok(Answer::Created(user))
                }
                Command::NoteEmail { email } => {
                    noted.borrow_mut().push(email.clone());
                    if email.starts_with("busy") {
                        return Err(AskError::Busy);
                    }
                    directory.observe(user, &Mutation::EmailNoted(fact::EmailNoted { email, at: NOW }));
                    Ok(Answer::Done)
                }
                other => panic!("{other:?}"),
            }
        });
        for (step, (sub, email, count, status, expected)) in steps.iter().enumerate() {
            let token = format!("Bearer {}", jwt::sign(&Secret::new(SECRET.to_owned()), sub, *email, NOW, 60));
            run(async {
                for _ in 0..*count {
                    let request = Request::post("/v1/manage").header("host", "test").header("authorization", &token);
                    let request = request.body(Full::new(Bytes::new())).expect("a sound request");
                    let peer = IpAddr::from([1, 2, 3, 4]);
                    let found = respond(Rc::clone(&world.edge), peer, request, None).await.status().as_u16();
                    assert_eq!(found, *status, "{toml} step {step}");
                }
                assert!(asked.borrow().is_empty(), "{toml} step {step}: the responses come first");
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
            });
            let asked = std::mem::take(&mut *asked.borrow_mut());
            assert_eq!(asked, vec![email.unwrap_or_default(); *expected], "{toml} step {step}");
            cases += 1;
        }
    }
    println!("addresses of tokens: {cases} cases");
}
