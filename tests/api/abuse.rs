//! Values that break parsers, in every parameter, every field and every path variable of every route in the server's
//! own table. The answer is never a 5xx, and always one that the description names.

use crate::numbers::{QUOTED, RAW};
use crate::table::{Door, Table};
use edge::http::route::Auth;
use edge::http::schema::ParamIn;
use serde_json::{Value, json};
use tests::cases::Cases;
use tests::http::{Client, Request, Response};
use tests::token::token;
use tests::world::World;

/// A world whose limits are not reached.
fn world() -> World {
    World::start_with(1, |place| {
        for setting in ["requests_per_second", "requests_per_minute", "in_flight"] {
            place.set("limits.tiers.enterprise", setting, "1000000");
            place.set("limits.tiers.free", setting, "1000000");
        }
    })
}

fn client(world: &World, door: &Door) -> Client {
    match door.route.auth {
        Auth::Jwt => world.server.with_token(&token("abuser")),
        _ => world.user(0),
    }
}

/// Percent-encodes `text`.
fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

/// Values sent to every route besides numbers.
fn texts() -> Vec<String> {
    let quoted = QUOTED.iter().map(|text| serde_json::from_str::<String>(&format!("\"{text}\"")).expect("a text"));
    let more = ["%", "\u{0}", "../../etc/passwd", "' OR 1=1 --", "<script>", "\u{202e}", "null", "undefined", "0x"];
    let long = [65, 300, 4_000].map(|count| "9".repeat(count));
    quoted.chain(more.map(str::to_string)).chain(long).collect()
}

#[track_caller]
fn sound(answer: &Response, what: &str) {
    assert!(answer.status < 500, "{what}: {} {}", answer.status, answer.lossy());
    if answer.status >= 400 {
        answer.assert_envelope();
    }
}

#[test]
fn no_parameter_breaks_a_route() {
    let cases = Cases::of("abused parameters");
    let world = world();
    let texts = texts();
    for door in &Table::of(&world).doors {
        let mut client = client(&world, door);
        for param in door.route.params {
            for text in &texts {
                let request = match param.place {
                    ParamIn::Query => {
                        let glue = if door.path.contains('?') { '&' } else { '?' };
                        let path = format!("{}{glue}{}={}", door.path, param.name, encoded(text));
                        Request { path, ..door.example() }
                    }
                    ParamIn::Header if text.bytes().all(|byte| (0x20..0x7f).contains(&byte)) => {
                        door.example().header(param.name, text)
                    }
                    ParamIn::Header => continue,
                };
                sound(&client.send(&request), &format!("{door} {}={text:?}", param.name));
                cases.one();
            }
        }
    }
}

#[test]
fn no_path_breaks_a_route() {
    let cases = Cases::of("abused paths");
    let world = world();
    let texts = texts();
    for door in Table::of(&world).doors.iter().filter(|door| door.route.path.contains('{')) {
        let mut client = client(&world, door);
        for text in texts.iter().filter(|text| !text.is_empty()) {
            // One variable at a time: two long ones are more than a head may have.
            let segments = door.route.path.split('/').map(|part| if part == "{chat}" { "discord" } else { part });
            let path: Vec<_> =
                segments.map(|part| if part.starts_with('{') { encoded(text) } else { part.to_string() }).collect();
            let answer = client.send(&Request { path: path.join("/"), ..door.example() });
            sound(&answer, &format!("{door} with {text:?}"));
            cases.one();
        }
    }
}

/// JSON pointers of all values in a body.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_string());
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| places(value, &format!("{at}/{name}"), out)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| places(value, &format!("{at}/{index}"), out));
        }
        _ => {}
    }
}

#[test]
fn no_field_breaks_a_route() {
    let cases = Cases::of("abused fields");
    let world = world();
    let long = format!("\"{}\"", "x".repeat(100_000));
    let deep = format!("{}1{}", "[".repeat(30), "]".repeat(30));
    let wide = format!("[{}0]", "0,".repeat(5_000));
    let more = ["null", "-1", "0", "{\"\":null}", "[[]]", long.as_str(), deep.as_str(), wide.as_str()];
    let quoted: Vec<String> = QUOTED.iter().map(|text| format!("\"{text}\"")).collect();
    for door in &Table::of(&world).doors {
        let Some(example) = &door.example else { continue };
        let mut client = client(&world, door);
        let body: Value = serde_json::from_str(example).expect("an example is JSON");
        let mut all = Vec::new();
        places(&body, "", &mut all);
        for place in &all {
            let mut marked = body.clone();
            *marked.pointer_mut(place).expect("a value of the body") = json!("@");
            let marked = marked.to_string();
            for raw in RAW.iter().copied().chain(quoted.iter().map(String::as_str)).chain(more) {
                let text = marked.replace("\"@\"", raw);
                let answer = client.send(&door.request().text("application/json", &text));
                let shown: String = raw.chars().take(40).collect();
                sound(&answer, &format!("{door} {place} = {shown}"));
                cases.one();
            }
        }
    }
}

#[test]
fn the_examples_of_the_description_work() {
    let cases = Cases::of("examples");
    let world = world();
    for door in Table::of(&world).doors.iter().filter(|door| door.example.is_some()) {
        let answer = client(&world, door).send(&door.example());
        // The example may be refused for a missing object or missing money, but never for its form.
        let form = ["INVALID_BODY", "VALIDATION_FAILED", "INVALID_ORDER_PAYLOAD"].contains(&&*answer.code());
        assert!(answer.status < 500 && !form, "{door}: {} {}", answer.status, answer.lossy());
        cases.one();
    }
}
