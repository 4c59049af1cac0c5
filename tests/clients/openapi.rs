//! The checked-in `gateway/openapi.json` with third-party tools: a linter reports nothing, and a client generated from
//! it trades.

use crate::programs::{Clients, counted, here, run_well};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};
use tests::binary::workspace;
use tests::cases::Cases;
use tests::json::int;
use tests::server::ServerDir;
use tests::world::World;

fn document() -> PathBuf {
    workspace().join("gateway/openapi.json")
}

/// The linter's output about the document, without network access.
fn linted(clients: &Clients, options: &[&str], at: &ServerDir) -> Value {
    let mut lint: Command = clients.python("node");
    lint.arg(clients.package_file("@redocly/cli/bin/cli.js")).arg("lint").arg(document());
    lint.args(["--format", "json"]).args(options).current_dir(at.root());
    lint.env("REDOCLY_TELEMETRY", "off").env("REDOCLY_SUPPRESS_UPDATE_NOTICE", "true");
    let Output { stdout, stderr, .. } = lint.output().expect("node can be started");
    serde_json::from_slice(&stdout)
        .unwrap_or_else(|error| panic!("{lint:?}: {error}\n{}", String::from_utf8_lossy(&stderr)))
}

#[test]
fn a_linter_finds_nothing_in_the_document() {
    let cases = Cases::of("lints of the document");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let at = ServerDir::new();
    let ours = here().join("redocly.yaml");
    let ours = ours.to_str().expect("a path of ours");
    // (options, whether warnings are allowed): with the recommended rules alone only those that the project's file
    // disables.
    for (options, warnings) in [(["--config", ours], false), (["--extends", "recommended"], true)] {
        let report = linted(&clients, &options, &at);
        assert_eq!(int(&report, "/totals/errors"), 0, "{options:?}: {report:#}");
        assert!(warnings || int(&report, "/totals/warnings") == 0, "{options:?}: {report:#}");
        cases.one();
    }
}

#[test]
fn a_generated_client_trades() {
    let cases = Cases::of("generated client");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let world = World::start(1);
    let root = world.place.root();
    let mut generate = clients.python("openapi-python-client");
    generate
        .args(["generate", "--fail-on-warning", "--meta", "none", "--output-path"])
        .arg(root.join("papertape_client"));
    generate.arg("--config").arg(here().join("generator.yaml"));
    generate.arg("--path").arg(document()).env("PATH", clients.path());
    run_well(generate, root);

    let rain = &world.markets.rain;
    let facts = json!({
        "host": format!("http://{}", world.server.address()), "key": world.users[0].key,
        "condition": rain.condition, "token": rain.yes(),
    });
    let file = root.join("facts.json");
    fs::write(&file, facts.to_string()).expect("facts can be written");
    let mut program = clients.script("generated.py");
    program.arg(file).env("PYTHONPATH", root);
    cases.add(counted(&run_well(program, root)));
}
