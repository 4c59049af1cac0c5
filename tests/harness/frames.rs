//! Compares frames with the AsyncAPI document: a text of a channel must be one of the messages that the document
//! describes for it, to the last field.

use edge::description::of_the_streams;
use jsonschema::Validator;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static CHECKED: AtomicUsize = AtomicUsize::new(0);
static CHANNELS: LazyLock<HashMap<String, Channel>> = LazyLock::new(channels);

/// The messages of a channel.
struct Channel {
    /// By the name of the message.
    json: Vec<(String, Validator)>,
    texts: Vec<String>,
}

/// Number of frames that were checked.
pub fn checked() -> usize {
    CHECKED.load(Ordering::Relaxed)
}

/// Checks one text frame of the server; returns the name of its message. `target` is that of the handshake.
///
/// # Panics
/// When the channel, or such a message of it, is not described.
#[track_caller]
pub fn check(target: &str, frame: &str) -> &'static str {
    let path = target.split('?').next().unwrap_or_default();
    let channel = CHANNELS.get(path).or_else(|| CHANNELS.get(&format!("/v1{path}")));
    let channel = channel.unwrap_or_else(|| panic!("no channel is described at {path}"));
    CHECKED.fetch_add(1, Ordering::Relaxed);
    if let Some(text) = channel.texts.iter().find(|text| *text == frame) {
        return text;
    }
    let value: Value = serde_json::from_str(frame).unwrap_or_else(|error| panic!("{path}: {error}: {frame}"));
    match channel.json.iter().find(|(_, validator)| validator.is_valid(&value)) {
        Some((name, _)) => name,
        None => panic!("{path}: not as described: {}\n{frame}", nearest(channel, &value)),
    }
}

/// The error of the closest message.
fn nearest(channel: &Channel, value: &Value) -> String {
    let wrong = |(name, validator): &(String, Validator)| {
        let errors: Vec<_> = validator.iter_errors(value).map(|e| format!("{e} at {}", e.instance_path())).collect();
        (errors.len(), format!("{name}: {}", errors.into_iter().take(3).collect::<Vec<_>>().join("; ")))
    };
    channel.json.iter().map(wrong).min().map(|(_, message)| message).unwrap_or_default()
}

fn channels() -> HashMap<String, Channel> {
    let document: Value = serde_json::from_slice(&of_the_streams()).expect("the description is JSON");
    let mut components = document["components"].clone();
    for shape in components["schemas"].as_object_mut().expect("schemas").values_mut() {
        if shape.get("properties").is_some() {
            shape["additionalProperties"] = json!(false);
        }
    }
    let described = document["channels"].as_object().expect("channels").values();
    described
        .map(|channel| (channel["address"].as_str().expect("a path").to_owned(), read(channel, &components)))
        .collect()
}

fn read(channel: &Value, components: &Value) -> Channel {
    let (mut json, mut texts) = (Vec::new(), Vec::new());
    for (key, message) in channel["messages"].as_object().expect("messages") {
        let Some(name) = key.strip_prefix("sends-") else { continue };
        if message["contentType"] == "text/plain" {
            texts.push(name.to_owned());
            continue;
        }
        let root = json!({"allOf": [message["payload"]], "components": components});
        let validator = jsonschema::draft7::new(&root).unwrap_or_else(|error| panic!("{name}: {error}"));
        for example in message["examples"].as_array().expect("examples") {
            assert!(validator.is_valid(&example["payload"]), "the example of {name} is not as described");
        }
        json.push((name.to_owned(), validator));
    }
    Channel { json, texts }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_distinguished() {
        let mut cases = 0;
        for (target, frame, expected) in [
            ("/v1/ws/market", "PONG", Some("PONG")),
            ("/ws/market?errors=1", "[]", Some("books")),
            ("/v1/ws/trade", r#"{"type":"pong","ts":1,"timestamp":"2026-11-05T09:33:22Z"}"#, Some("pong")),
            ("/v1/ws/trade", r#"{"type":"pong","ts":1,"timestamp":"2026-11-05T09:33:22Z","more":1}"#, None),
            ("/v1/ws/trade", r#"{"type":"pong"}"#, None),
            ("/v1/ws/trade", "[]", None),
            ("/v1/ws/trade", "PING", None),
            ("/v1/ws/nothing", "PONG", None),
        ] {
            let verdict = std::panic::catch_unwind(|| check(target, frame)).ok();
            assert_eq!(verdict, expected, "{target} {frame}");
            cases += 1;
        }
        for channel in CHANNELS.values() {
            assert!(channel.json.len() > 1 && channel.texts == ["PONG"]);
            cases += 1;
        }
        println!("frames: {cases} cases");
    }
}
