//! Facts about the machine of the client and about the server: without them a figure means nothing.

use super::ask::Ask;
use crate::machine::Machine;
use serde_json::{Map, Value, json};

/// Processor, cores, kernel, and what this client is.
pub fn machine() -> Map<String, Value> {
    let Machine { processor, cores, kernel, build } = Machine::look();
    let facts = [
        ("client", json!(format!("papertape {}, {build} build", env!("CARGO_PKG_VERSION")))),
        ("processor", json!(processor)),
        ("cores", json!(cores)),
        ("kernel", json!(kernel)),
    ];
    facts.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What the server says of itself. What it does not say now is left as it was: a load does not fail for the want of it.
pub async fn server(ask: &mut Ask, key: &str, facts: &mut Value) {
    for (name, path) in [("version", "/v1/health/version"), ("status", "/v1/status")] {
        if let Ok(Some(said)) = ask.read_if_there::<Value>(path, key).await {
            facts[name] = said;
        }
    }
}
