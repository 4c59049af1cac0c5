//! The named schemas of a description, each written once.

use super::schema::{INTEGER_MAX, Schema};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Named schemas and refusals, collected while a description is made.
pub(crate) struct Components {
    generator: SchemaGenerator,
    written: BTreeMap<String, Value>,
    pub(super) refused: BTreeMap<String, Value>,
}

impl Default for Components {
    fn default() -> Components {
        let settings = SchemaSettings::draft2020_12().for_serialize().with_transform(settle);
        let settings = settings.with(|settings| settings.definitions_path = "/components/schemas".into());
        Components { generator: settings.into_generator(), written: BTreeMap::new(), refused: BTreeMap::new() }
    }
}

impl Components {
    /// Names a refusal; returns a reference to it.
    pub(super) fn refused(&mut self, name: String, written: Value) -> Value {
        let at = format!("#/components/responses/{name}");
        self.refused.insert(name, written);
        json!({"$ref": at})
    }

    /// The schema as JSON. A schema with a name is written once, and this is a reference to it.
    pub(crate) fn of(&mut self, schema: &Schema) -> Value {
        match schema {
            Schema::Boolean => json!({"type": "boolean"}),
            Schema::Integer { min, max } => json!({"type": "integer", "minimum": min, "maximum": max}),
            Schema::Text(u32::MAX) => json!({"type": "string"}),
            Schema::Text(max) => json!({"type": "string", "maxLength": max}),
            Schema::Word(words) => {
                let mut written = json!({"type": "string", "enum": words});
                if let Some(names) = constants(words) {
                    written["x-enum-varnames"] = names.into();
                }
                written
            }
            Schema::Type(of) => {
                let mut schema = of(&mut self.generator);
                settle(&mut schema);
                schema.to_value()
            }
        }
    }

    /// Every named schema.
    ///
    /// # Panics
    /// When two different schemas have one name.
    pub(crate) fn schemas(&mut self) -> BTreeMap<String, Value> {
        let derived = self.generator.take_definitions(true);
        for name in derived.keys() {
            // The generator numbers the second type of a name.
            let earlier = name.strip_suffix('2').filter(|earlier| derived.contains_key(*earlier));
            assert_eq!(earlier, None, "two types have this name");
        }
        for (name, written) in derived {
            self.named(&name, written);
        }
        std::mem::take(&mut self.written)
    }

    fn named(&mut self, name: &str, written: Value) -> Value {
        let earlier = self.written.entry(name.to_owned()).or_insert_with(|| written.clone());
        assert_eq!(*earlier, written, "two different schemas are called {name}");
        json!({"$ref": format!("#/components/schemas/{name}")})
    }
}

/// Mark of a property that may be null as well as absent.
const OR_NULL: &str = "x-or-null";

/// Brings a derived schema into the form of this description: integers within what every client reads exactly, null as
/// an alternative, paragraphs of a doc comment as one line each.
fn settle(schema: &mut schemars::Schema) {
    drop_nulls(schema.ensure_object());
    transform_subschemas(&mut settle, schema);
    let schema = schema.ensure_object();
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let paragraphs: Vec<_> = text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect();
        *text = paragraphs.join("\n\n");
    }
    // Only numbers have a format: the width of the Rust type, which says nothing about the value.
    if let Some(Value::String(format)) = schema.shift_remove("format") {
        let of_width = match &*format {
            "uint8" => Some(u64::from(u8::MAX)),
            "uint16" => Some(u64::from(u16::MAX)),
            _ => None,
        };
        if format.starts_with("uint") && schema.get("maximum").and_then(Value::as_u64) == of_width {
            schema.insert("maximum".to_owned(), INTEGER_MAX.into());
        }
    }
    let is_object = schema.get("type").is_some_and(|kind| kind == "object");
    if is_object && !schema.contains_key("properties") && !schema.contains_key("additionalProperties") {
        schema.insert("properties".to_owned(), json!({}));
    }
    if let Some(Value::Array(words)) = schema.get_mut("enum") {
        words.retain(|word| !word.is_null());
        let words: Option<Vec<_>> = words.iter().map(Value::as_str).collect();
        if let Some(names) = words.as_deref().and_then(constants) {
            schema.insert("x-enum-varnames".to_owned(), names.into());
        }
    }
    if let Some(Value::Array(kinds)) = schema.get("type") {
        let kind = kinds[0].clone();
        let description = schema.shift_remove("description");
        let mut other = std::mem::take(schema);
        other["type"] = kind;
        schema.insert("anyOf".to_owned(), json!([other, {"type": "null"}]));
        schema.extend(description.map(|text| ("description".to_owned(), text)));
    }
    // The order in which people read them.
    let is_named = schema.contains_key("properties") || schema.contains_key("pattern");
    let last: &[_] = if is_named { &["description", "pattern", "required", "properties"] } else { &["description"] };
    for key in last {
        if let Some(value) = schema.shift_remove(*key) {
            schema.insert((*key).to_owned(), value);
        }
    }
}

/// A property that may be absent is not null where it is present, unless it has the mark [`OR_NULL`].
fn drop_nulls(schema: &mut Map<String, Value>) {
    let required = schema.get("required").cloned().unwrap_or_default();
    let is_required = |name: &String| required.as_array().is_some_and(|names| names.iter().any(|one| one == name));
    let Some(Value::Object(properties)) = schema.get_mut("properties") else { return };
    for (name, property) in properties {
        let Value::Object(property) = property else { continue };
        if property.shift_remove(OR_NULL).is_some() || is_required(name) {
            continue;
        }
        if let Some(Value::Array(kinds)) = property.get_mut("type") {
            property["type"] = kinds.swap_remove(0);
        }
        let alternatives = property.get_mut("anyOf").and_then(Value::as_array_mut);
        let null = json!({"type": "null"});
        if let Some([Value::Object(other), end]) = alternatives.map(Vec::as_mut_slice)
            && *end == null
        {
            let mut other = std::mem::take(other);
            other.extend(property.shift_remove("description").map(|text| ("description".to_owned(), text)));
            *property = other;
        }
    }
}

/// Names of constants for words that differ in case alone, where generators would make one name of two words: `BUY` and
/// `BUY_LOWER`. `None` where no two of them do.
fn constants(words: &[&str]) -> Option<Vec<String>> {
    let twice =
        |word: &str| word.bytes().any(|byte| byte.is_ascii_lowercase()) && words.contains(&&*word.to_uppercase());
    let name = |word: &&str| format!("{}{}", word.to_uppercase(), if twice(word) { "_LOWER" } else { "" });
    words.iter().any(|word| twice(word)).then(|| words.iter().map(name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::scalar::{self, words};
    use schemars::JsonSchema;
    use serde::Serialize;

    words! {
        Side = "BUY", "buy";
    }

    /// One of each kind.
    ///
    /// A second paragraph,
    /// in two lines.
    #[derive(Serialize, JsonSchema)]
    struct Kinds {
        count: u16,
        #[schemars(range(min = 1, max = 200))]
        rows: u32,
        /// Which way.
        side: Option<Side>,
        #[schemars(length(max = 100))]
        name: Option<&'static str>,
        at: Option<scalar::Timestamp>,
        /// Never null.
        #[serde(skip_serializing_if = "Option::is_none")]
        best_bid: Option<scalar::Price>,
        #[serde(skip_serializing_if = "Option::is_none")]
        way: Option<Side>,
        #[serde(skip_serializing_if = "Option::is_none")]
        #[schemars(extend("x-or-null" = true))]
        label: Option<&'static str>,
        nothing: Nothing,
    }

    #[derive(Serialize, JsonSchema)]
    struct Nothing {}

    #[test]
    fn derived_schemas_have_the_form_of_the_constants() {
        let mut components = Components::default();
        let kinds = components.of(&Schema::of::<Vec<Kinds>>());
        assert_eq!(kinds, json!({"type": "array", "items": {"$ref": "#/components/schemas/Kinds"}}));
        let schemas = components.schemas();
        let expected = json!({
            "type": "object",
            "description": "One of each kind.\n\nA second paragraph, in two lines.",
            "required": ["count", "rows", "side", "name", "at", "nothing"],
            "properties": {
                "count": {"type": "integer", "minimum": 0, "maximum": INTEGER_MAX},
                "rows": {"type": "integer", "minimum": 1, "maximum": 200},
                "side": {
                    "anyOf": [
                        {"type": "string", "enum": ["BUY", "buy"], "x-enum-varnames": ["BUY", "BUY_LOWER"]},
                        {"type": "null"},
                    ],
                    "description": "Which way.",
                },
                "name": {"anyOf": [{"type": "string", "maxLength": 100}, {"type": "null"}]},
                "at": {"anyOf": [{"$ref": "#/components/schemas/Timestamp"}, {"type": "null"}]},
                "best_bid": {"$ref": "#/components/schemas/Price", "description": "Never null."},
                "way": {"type": "string", "enum": ["BUY", "buy"], "x-enum-varnames": ["BUY", "BUY_LOWER"]},
                "label": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                "nothing": {"$ref": "#/components/schemas/Nothing"},
            },
        });
        assert_eq!(schemas["Kinds"].to_string(), expected.to_string());
        assert_eq!(schemas["Nothing"], json!({"type": "object", "properties": {}}));
        let mut names: Vec<_> = schemas.keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(names, ["Kinds", "Nothing", "Price", "Timestamp"]);
    }

    #[test]
    #[should_panic(expected = "two types have this name")]
    fn two_types_of_one_name_are_a_mistake() {
        mod other {
            #[derive(serde::Serialize, schemars::JsonSchema)]
            pub struct Nothing {}
        }
        let mut components = Components::default();
        components.of(&Schema::of::<(Nothing, other::Nothing)>());
        components.schemas();
    }
}
