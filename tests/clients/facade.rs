//! Clients that use the venue's catalogue service before they trade, against a server with `venue.facade`.

use crate::programs::{Clients, counted, run_well};
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::process::Command;
use tests::cases::Cases;
use tests::json::{list, text};
use tests::server::ServerDir;
use tests::world::World;

/// A private key, and its address.
const PRIVATE_KEY: &str = "0x1111111111111111111111111111111111111111111111111111111111111111";
const ADDRESS: &str = "0x19e7e376e7c213b7e7e7e46cc70a5dd086daff2a";

fn world() -> World {
    World::start_with(1, |place| {
        place.set("venue", "facade", "true");
    })
}

/// Facts for both programs.
fn facts_for_clients(world: &World) -> Value {
    let host = world.server.address();
    // The form of a key that clients of the venue have: their sockets receive order events for it.
    let key = world.user(0).post("/v1/keys", &json!({"name": "facade"})).expect(201);
    json!({
        "host": format!("http://{host}/v1"),
        "socket": format!("ws://{host}/v1"),
        "private_key": PRIVATE_KEY,
        "address": ADDRESS,
        "key": text(&key, "/venue_api_key"),
    })
}

fn run(mut program: Command, place: &ServerDir, facts: &Value) -> usize {
    let root = place.root();
    let file = root.join("facts.json");
    fs::write(&file, facts.to_string()).expect("facts can be written");
    program.arg(file);
    counted(&run_well(program, root))
}

#[test]
fn the_unified_sdk_reads_the_facade() {
    let cases = Cases::of("unified SDK, facade");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let world = world();
    let rain = &world.markets.rain;
    let open = world.public().get("/v1/gamma/markets?limit=500").expect(200);
    let mut facts = facts_for_clients(&world);
    facts["market"] = json!({"condition": rain.condition, "yes": rain.yes(), "no": rain.no(), "slug": rain.slug});
    facts["open"] = list(&open, "").iter().map(|row| Value::from(text(row, "/conditionId"))).collect();
    let program = || clients.script_in("unified", "unified.py").expect("an environment of the fetched clients");
    cases.add(run(program(), &world.place, &facts));

    // Events and tags are those of the synthetic world: the recorded markets have none.
    let mut place = ServerDir::new();
    place.set("venue", "facade", "true");
    let server = place.start();
    let facts = json!({"host": format!("http://{}/v1", server.address()), "address": ADDRESS});
    cases.add(run(program(), &place, &facts));
}

/// Installed by `tests/clients/nautilus-install`, and skipped without it: `PAPERTAPE_REQUIRE_NAUTILUS=1` makes it a
/// failure.
#[test]
fn nautilus_rests_an_order_and_takes_it_back() {
    let cases = Cases::of("nautilus_trader");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let Some(program) = clients.script_in("nautilus", "nautilus.py") else {
        let required = env::var_os("PAPERTAPE_REQUIRE_NAUTILUS").is_some_and(|value| !value.is_empty() && value != "0");
        assert!(!required, "nautilus_trader is required and not fetched");
        println!("SKIPPED: no nautilus_trader; tests/clients/nautilus-install fetches it");
        return cases.one();
    };
    let world = world();
    let (rain, vote) = (&world.markets.rain, &world.markets.vote);
    let mut facts = facts_for_clients(&world);
    facts["price"] = json!("0.05");
    facts["tokens"] = json!([
        {"condition": rain.condition, "id": rain.yes(), "bid": "0.41", "ask": "0.42"},
        {"condition": vote.condition, "id": vote.yes(), "bid": "0.645", "ask": "0.650"},
    ]);
    cases.add(run(program, &world.place, &facts));
}
