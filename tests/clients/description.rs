//! The description that the server gives of itself, held against the server by schemathesis: for every operation it
//! sends the examples, the edges of each schema and seeded random requests, right and wrong, and looks at each answer.

use crate::programs::{Clients, here, run_well};
use serde_json::Value;
use std::env;
use tests::cases::Cases;
use tests::json::at;
use tests::world::World;

/// No answer is a server error; status, content type, headers and body are those of the description.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
                      response_headers_conformance,response_schema_conformance";
/// Random requests for each operation, beside its examples and edges: the whole document takes minutes.
const REQUESTS: &str = "20";
/// The default seed; `PAPERTAPE_SEED` names another.
const SEED: &str = "1";

#[test]
fn answers_are_those_of_the_description() {
    let cases = Cases::of("operations of the description");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let world = World::start_with(1, |place| {
        place.set("limits", "placements_per_user", "1000");
        place.set("limits.tiers.enterprise", "in_flight", "1000");
    });
    let address = format!("http://{}/v1/openapi.json", world.server.address());
    let seed = env::var("PAPERTAPE_SEED").unwrap_or_else(|_| SEED.into());
    let mut run = clients.python("schemathesis");
    run.arg("--config-file").arg(here().join("schemathesis.toml"));
    run.args(["run", &address, "--no-color", "--workers", "1", "--continue-on-failure"]);
    run.args(["--phases", "examples,coverage,fuzzing", "--checks", CHECKS]);
    run.args(["--max-examples", REQUESTS, "--seed", &seed, "--generation-database", "none"]);
    // The key may revoke itself only by its number, which nobody tells; all else on this server may go.
    run.args(["--header", &format!("X-API-Key: {}", world.users[0].key)]);
    let said = run_well(run, world.place.root());

    let document = world.public().get("/v1/openapi.json").expect(200);
    let described: usize = at(&document, "/paths").as_object().map_or(0, |paths| {
        let operations =
            |path: &Value| path.as_object().map_or(0, |path| path.keys().filter(|name| *name != "parameters").count());
        paths.values().map(operations).sum()
    });
    assert!(said.contains(&format!("Tested: {described}")), "{described} operations are described");
    cases.add(described);
}
