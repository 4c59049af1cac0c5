//! Facts as JSON, as `log export` writes them. `engine/docs/facts.md` describes every fact; a test generates that page
//! and compares.

use crate::settings::hex;
use engine::describe::Value;
use serde_json::{Map, json};

/// One fact: its name as `fact`, then its fields.
pub fn json(name: &str, fields: &Value<'_>) -> serde_json::Value {
    let mut object = Map::new();
    object.insert("fact".to_owned(), name.into());
    if let serde_json::Value::Object(fields) = of(fields) {
        object.extend(fields);
    }
    serde_json::Value::Object(object)
}

fn of(value: &Value<'_>) -> serde_json::Value {
    match value {
        Value::Nothing => serde_json::Value::Null,
        Value::Flag(flag) => json!(flag),
        Value::Number(number) => json!(number),
        Value::Signed(number) => json!(number),
        Value::Text(text) => json!(text),
        Value::Bytes(bytes) => json!(hex(bytes)),
        Value::List(values) => values.iter().map(of).collect(),
        Value::Record(fields) => {
            serde_json::Value::Object(fields.iter().map(|(name, value)| ((*name).to_owned(), of(value))).collect())
        }
    }
}

#[cfg(test)]
mod tests;
