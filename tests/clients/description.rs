//! The OpenAPI document against the server, by schemathesis: for every operation it sends the examples, the edges of
//! each schema and seeded random requests, valid and invalid, and checks each answer.

use crate::programs::{Clients, run_well};
use serde_json::{Value, json};
use std::env;
use std::fs;
use tests::binary::workspace;
use tests::cases::Cases;
use tests::json::{at, int};
use tests::server::ServerDir;
use tests::token::token;
use tests::world::{World, limit, market};

/// No answer is a server error; status, content type, headers and body match the document.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";
/// Random requests for each operation, besides its examples and edges: the whole document takes a minute or two.
const REQUESTS: &str = "20";
/// The default seed; `PAPERTAPE_SEED` names another.
const SEED: &str = "1";

/// A world for one run: its requests may close and cancel everything in it. The routes behind a setting exist, too, and
/// `more` may give it what they read.
fn world(more: impl FnOnce(&mut ServerDir)) -> World {
    World::start_with(1, |place| {
        place.set("limits", "placements_per_user", "1000");
        place.set("limits.tiers.enterprise", "in_flight", "1000");
        place.set("flags", "feature_simulation_api_enabled", "true");
        let exports = place.root().join("exports");
        place.set("simulation", "export_dir", &format!("{exports:?}"));
        more(place);
    })
}

/// The facts of football that the fuzz tests begin with: one file of each kind.
fn with_football(place: &mut ServerDir) {
    let facts = workspace().join("tests/fuzz/corpus/football");
    place.set("football", "provider", &format!("{:?}", format!("file:{}", facts.display())));
}

/// Ids of existing objects, so that requests get past the check for existence.
fn known(world: &World) -> String {
    let rain = &world.markets.rain;
    let mut user = world.user(0);
    let bought = user.post("/v1/orders", &market(rain, "BUY", "0.99", "20")).expect(200);
    assert_eq!(bought["status"], "FILLED");
    let mut resting = limit(rain, "BUY", "0.05", "10");
    resting["client_order_id"] = json!("known");
    let order = int(&user.post("/v1/orders", &resting).expect(200), "/order_id");
    let key = int(&user.post("/v1/keys", &json!({"name": "known"})).expect(201), "/id");
    let wallet = int(&user.post("/v1/me/wallets", &json!({"kind": "SANDBOX", "label": "known"})).expect(201), "/id");
    let hook = json!({"url": "https://chat.invalid/k9Qz", "label": "known"});
    let chat = int(&user.post("/v1/integrations/discord", &hook).expect(201), "/id");
    format!(
        r#"
[parameters]
"path.condition_id" = "{condition}"
"path.token_id" = "{token}"
"query.token_id" = "{token}"
"path.slug" = "{slug}"
"path.order_id" = "{order}"
"path.client_order_id" = "known"

[[operations]]
include-path-regex = "^/v1/prices-history"
parameters = {{ "query.market" = "{token}" }}

[[operations]]
include-path-regex = "^/v1/football/"
parameters = {{ "path.id" = "1", "query.fixture" = "1", "query.home" = "27", "query.away" = "31" }}

[[operations]]
include-path-regex = "^/v1/football/teams/"
parameters = {{ "path.id" = "27" }}

[[operations]]
include-path-regex = "^/v1/keys/"
parameters = {{ "path.id" = "{key}" }}

[[operations]]
include-path-regex = "^/v1/me/wallets/"
parameters = {{ "path.id" = "{wallet}" }}

[[operations]]
include-path-regex = "^/v1/integrations/"
parameters = {{ "path.id" = "{chat}", "path.chat" = "discord" }}
"#,
        condition = rain.condition,
        token = rain.yes(),
        slug = rain.slug,
    )
}

/// A stream of events has no end, so a client that reads whole answers cannot request it; `tests/api/ws_sse.rs` does. A
/// test of a chat is 502 while the chat is away; `tests/api/integrations.rs` has one.
const NOT_HERE: &str = r#"
[[operations]]
include-path-regex = "^/v1/integrations/.*/test$"
enabled = false

[[operations]]
include-path = "/v1/prices/stream"
enabled = false
"#;

/// One run over the whole document with that configuration; returns the number of tested operations.
fn run(clients: &Clients, world: &World, config: &str) -> usize {
    let file = world.place.root().join("schemathesis.toml");
    fs::write(&file, format!("{config}{NOT_HERE}")).expect("a configuration can be written");
    let document = format!("http://{}/v1/openapi.json", world.server.address());
    let seed = env::var("PAPERTAPE_SEED").unwrap_or_else(|_| SEED.into());
    let mut run = clients.python("schemathesis");
    run.arg("--config-file").arg(&file);
    run.args(["run", &document, "--no-color", "--workers", "1", "--continue-on-failure"]);
    run.args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS]);
    run.args(["--max-examples", REQUESTS, "--seed", &seed, "--generation-database", "none"]);
    // Both kinds of credential: each route takes its own.
    run.args(["--header", &format!("X-API-Key: {}", world.users[0].key)]);
    run.args(["--header", &format!("Authorization: Bearer {}", token("schemathesis"))]);
    let output = run_well(run, world.place.root());

    // The document's own route is left out: the run depends on it.
    let document = world.public().get("/v1/openapi.json").expect(200);
    let described = operations(&document) - 1;
    let met = described - left_out(&document);
    assert!(
        output.contains(&format!("Selected: {met}/{described}")),
        "{met} of {described} operations are tested: {output}"
    );
    // The server still runs.
    world.user(0).get("/v1/me").expect(200);
    met
}

/// The count of operations that `NOT_HERE` names: each of their paths has one.
fn left_out(document: &Value) -> usize {
    let is_left_out = |path: &&String| {
        path.as_str() == "/v1/prices/stream" || path.starts_with("/v1/integrations/") && path.ends_with("/test")
    };
    at(document, "/paths").as_object().map_or(0, |paths| paths.keys().filter(is_left_out).count())
}

fn operations(document: &Value) -> usize {
    let of = |path: &Value| path.as_object().map_or(0, |path| path.keys().filter(|name| *name != "parameters").count());
    at(document, "/paths").as_object().map_or(0, |paths| paths.values().map(of).sum())
}

#[test]
fn answers_are_those_of_the_description() {
    let cases = Cases::of("operations of the description");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let world = world(|_| {});
    assert_eq!(world.public().get("/v1/football/fixtures").expect(200), json!([]), "there is no provider");
    cases.add(run(&clients, &world, ""));
}

#[test]
fn answers_about_what_exists_are_those_of_the_description() {
    let cases = Cases::of("operations of the description, known ids");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let world = world(with_football);
    let facts = world.public().get("/v1/football/matches/1").expect(200);
    assert_eq!(facts["venue"], "Azteca", "there is a provider");
    let config = known(&world);
    cases.add(run(&clients, &world, &config));
}
