//! The simulation routes (gateway/docs/simulation.md) of a server without an archive; `api/simulation/tests.rs` of the
//! edge has those with one.

use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Response};
use tests::json::text;
use tests::token::token;
use tests::world::{World, changed};

const FILL: &str = "/v1/simulation/fill";

fn all(client: &mut Client, world: &World) -> Vec<Response> {
    let condition = &world.markets.rain.condition;
    let body = json!({"condition_id": condition, "shares": "40", "at": "2026-01-30T17:30:00Z"});
    vec![
        client.post(FILL, &body),
        client.get(&format!("/v1/simulation/coverage?condition_id={condition}")),
        client.get(&format!("/v1/simulation/book?condition_id={condition}&at=2026-01-30T17:30:00Z")),
        client.get("/v1/simulation/quota"),
        client.get("/v1/simulation/fill-models"),
    ]
}

#[test]
fn with_the_flag_off_every_path_is_unknown_after_the_credential() {
    let cases = Cases::of("closed simulation");
    let world = World::start(1);
    for answer in all(&mut world.public(), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    for answer in all(&mut world.server.with_token(&token("somebody")), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    for answer in all(&mut world.server.with_key("svc_live_unknown"), &world) {
        answer.refused(401, "INVALID_KEY");
        cases.one();
    }
    for answer in all(&mut world.user(0), &world) {
        answer.refused(404, "NOT_FOUND");
        cases.one();
    }
    // Paths that no server has.
    for path in ["/v1/simulation", "/v1/simulation/", "/v1/simulation/fills"] {
        world.user(0).get(path).refused(404, "NOT_FOUND");
        cases.one();
    }
}

#[test]
fn without_an_archive_reads_are_unavailable_after_their_checks() {
    let cases = Cases::of("simulation without an archive");
    let world = World::start_with(1, |place| {
        place.set("flags", "feature_simulation_api_enabled", "true");
        // A folder that cannot be made.
        place.set("archive", "dir", "\"/dev/null/archive\"");
    });
    let made = world.user(0).post("/v1/keys", &json!({"permissions": ["read"]})).expect(201);
    let mut reader = world.server.with_key(text(&made, "/raw_key"));
    let mut answers = all(&mut reader, &world);
    let models = answers.pop().expect("five answers").expect(200);
    assert_eq!(models["models"].as_array().map(Vec::len), Some(4));
    let quota = answers.pop().expect("four answers").expect(200);
    assert_eq!((&quota["backtests_used"], &quota["market_hours_used"]), (&json!(0), &json!("0.000")));
    for answer in answers {
        answer.refused(503, "ARCHIVE_UNAVAILABLE");
        assert_eq!(answer.header("Retry-After"), Some("30"));
        cases.one();
    }
    for answer in all(&mut world.public(), &world) {
        answer.refused(401, "MISSING_API_KEY");
        cases.one();
    }
    let body = json!({"condition_id": "0x1", "shares": "40", "at": "2026-01-30T17:30:00Z"});
    for (changes, status, code) in [
        (json!({"shares": "0"}), 422, "VALIDATION_FAILED"),
        (json!({"shares": Value::Null}), 422, "VALIDATION_FAILED"),
        (json!({"at": "never"}), 400, "INVALID_WINDOW"),
        (json!({"at": "2999-01-01T00:00:00Z"}), 400, "INVALID_WINDOW"),
        // An enterprise plan has every model.
        (json!({"fill_model": "depth_walk_depletion"}), 503, "ARCHIVE_UNAVAILABLE"),
    ] {
        world.user(0).post(FILL, &changed(&body, &changes)).refused(status, code);
        cases.one();
    }
    let backtests = "/v1/simulation/backtests";
    assert_eq!(world.user(0).get(backtests).expect(200), json!({"data": [], "next_cursor": null}));
    for path in ["/1", "/1/trades", "/1/equity", "/0d0b7a1e-5f0e-4c55-9a51-2f1f6f2c9d11"] {
        world.user(0).get(&format!("{backtests}{path}")).refused(404, "NOT_FOUND");
        cases.one();
    }
    let job = json!({"condition_ids": ["0x1"], "start": "2026-01-30T17:00:00Z", "end": "2026-01-30T19:00:00Z",
        "strategy": {"size": "25"}});
    world.user(0).post(backtests, &job).refused(503, "ARCHIVE_UNAVAILABLE");
    world.user(0).post(backtests, &changed(&job, &json!({"strategy": {}}))).refused(422, "VALIDATION_FAILED");
    world
        .user(0)
        .post(backtests, &changed(&job, &json!({"end": "2026-05-30T19:00:00Z"})))
        .refused(403, "BACKTEST_WINDOW_CAP");
    cases.add(3);
    let (mut newcomer, _) = world.newcomer("free");
    newcomer
        .post(FILL, &changed(&body, &json!({"fill_model": "depth_walk_depletion"})))
        .refused(402, "UPGRADE_REQUIRED");
    cases.one();
}
