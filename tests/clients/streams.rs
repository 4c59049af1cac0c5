//! The streams with third-party libraries: `websockets` (Python) and `ws` (Node) against a market that moves when the
//! program requests it.

use crate::programs::{Clients, counted};
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use tests::cases::Cases;
use tests::json::text;
use tests::world::World;

/// The level that the first move changes; each run another size.
const LEVEL: &str = "0.39";
const MIRRORED: &str = "0.61";

/// A user's fill is sent after a tenth of a second, not after a whole one, and free market sockets are not counted by
/// address.
fn world() -> World {
    World::start_with(1, |place| _ = place.set("flags", "match_interval_ms", "100"))
}

/// Runs a program to its end, moving the market on request; returns the count of its cases.
fn run(mut program: Command, world: &mut World, number: usize) -> usize {
    let rain = world.markets.rain.clone();
    world.tape.books(&rain, &[("0.40", "310"), ("0.41", "85")], &[("0.44", "120"), ("0.42", "60.5")]);
    let size = (70 + number).to_string();
    world.until(&format!("/v1/book?token_id={}", rain.yes()), |book| {
        book["bids"].as_array().is_some_and(|bids| bids.len() == 2) && text(book, "/asks/1/size") == "60.5"
    });
    let made = world.user(0).post("/v1/keys", &json!({"name": format!("bot-{number}")})).expect(201);
    let facts = json!({
        "host": format!("http://{}", world.server.address()),
        "key": text(&made, "/raw_key"),
        "uuid": text(&made, "/venue_api_key"),
        "market": {"condition": rain.condition, "yes": rain.yes(), "no": rain.no()},
        "other": {"yes": world.markets.vote.yes()},
        "name": format!("bot-{number}"),
        "level": [LEVEL, size],
    });
    let file = world.place.root().join("streams.json");
    fs::write(&file, facts.to_string()).expect("facts can be written");
    program
        .arg(&file)
        .current_dir(world.place.root())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut running = program.spawn().expect("the program can be started");
    let mut output = String::new();
    for line in BufReader::new(running.stdout.take().expect("a pipe was requested")).lines() {
        let line = line.expect("text");
        match line.strip_prefix("MOVE ") {
            Some("level") => {
                world.tape.level(&rain, 0, "BUY", LEVEL, &size);
                world.tape.level(&rain, 1, "SELL", MIRRORED, &size);
            }
            // A seller takes the limit.
            Some("fill") => world.tape.books(&rain, &[("0.30", "10")], &[("0.37", "100"), ("0.50", "100")]),
            Some(other) => panic!("an unknown move: {other}"),
            None => println!("{line}"),
        }
        output.push_str(&line);
        output.push('\n');
    }
    let ended = running.wait_with_output().expect("it ends");
    assert!(ended.status.success(), "{}\n{}", ended.status, String::from_utf8_lossy(&ended.stderr));
    counted(&output)
}

#[test]
fn bots_listen_and_trade_with_the_libraries_they_have() {
    let cases = Cases::of("streams with other libraries");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let mut world = world();
    for (number, program) in [clients.script("streams.py"), clients.node("streams.mjs")].into_iter().enumerate() {
        cases.add(run(program, &mut world, number));
    }
}

/// The JSON schema of AsyncAPI documents, from its authors.
#[test]
fn the_description_of_the_streams_is_an_asyncapi_document() {
    let cases = Cases::of("descriptions of the streams");
    let Some(clients) = Clients::fetched() else { return cases.one() };
    let schema = clients.package_file("@asyncapi/specs/schemas/3.0.0-without-$id.json");
    let schema: Value = serde_json::from_slice(&fs::read(schema).expect("it was fetched")).expect("JSON");
    let validator = jsonschema::draft7::new(&schema).expect("a valid schema");
    let world = World::start(0);
    let mut document = world.public().get("/v1/asyncapi.json").expect(200);
    let wrong: Vec<_> = validator.iter_errors(&document).map(|e| format!("{e} at {}", e.instance_path())).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("; "));
    // The schema detects errors.
    document["operations"]["trade.takes"]["action"] = json!("takes");
    assert!(!validator.is_valid(&document));
    cases.add(2);
}
