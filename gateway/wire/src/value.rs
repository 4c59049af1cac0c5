//! A JSON value as it was sent, and its canonical text, which is equal for all ways to write the same value
//! (gateway/docs/wire.md §10).
//!
//! It borrows from the body, and numbers keep their text: a decimal never goes through a float.

use super::write;
use std::borrow::Cow;

/// One JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    Null,
    Bool(bool),
    /// The text of the number.
    Number(&'a str),
    /// Borrowed from between its quotes if nothing is escaped. So are names of fields.
    Text(Cow<'a, str>),
    Array(Vec<Value<'a>>),
    /// In the order sent; names are unique.
    Object(Vec<(Cow<'a, str>, Value<'a>)>),
}

impl<'a> Value<'a> {
    /// The value of that field; `None` if this is not an object or has no such field.
    pub fn get(&self, name: &str) -> Option<&Value<'a>> {
        match self {
            Value::Object(fields) => fields.iter().find(|(field, _)| field == name).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The kind of this value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::Array(_) => "an array",
            Value::Object(_) => "an object",
        }
    }

    /// This value as compact JSON with the fields of every object sorted by name: equal for equal requests. Numbers
    /// keep their text. The top-level field `left_out` is omitted.
    pub fn canonical(&self, left_out: Option<&str>, out: &mut Vec<u8>) {
        match self {
            Value::Object(fields) => write_object(fields, left_out, out),
            other => write_value(other, out),
        }
    }
}

/// Objects of at most this many fields are sorted without an allocation.
const FEW: usize = 24;

fn write_object(fields: &[(Cow<'_, str>, Value<'_>)], left_out: Option<&str>, out: &mut Vec<u8>) {
    let (mut few, mut many) = ([(0, 0); FEW], Vec::new());
    let places = if fields.len() <= FEW {
        &mut few[..fields.len()]
    } else {
        many.resize(fields.len(), (0, 0));
        &mut many[..]
    };
    for (at, (place, (name, _))) in places.iter_mut().zip(fields).enumerate() {
        *place = (beginning(name), at);
    }
    // Names of the fields of orders differ in their first eight bytes: usually only numbers are compared.
    places.sort_unstable_by(|a, b| a.0.cmp(&b.0).then_with(|| fields[a.1].0.cmp(&fields[b.1].0)));
    out.push(b'{');
    for (name, value) in places.iter().map(|(_, at)| &fields[*at]) {
        if left_out == Some(name) {
            continue;
        }
        write::separate(out);
        write_text(name, out);
        out.push(b':');
        write_value(value, out);
    }
    out.push(b'}');
}

/// The first eight bytes of a name as a number: smaller for names that sort before it, equal for some that do not.
#[inline]
fn beginning(name: &str) -> u64 {
    match name.as_bytes().first_chunk::<8>() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => name.bytes().fold(0, |number, byte| number << 8 | u64::from(byte)) << (64 - 8 * name.len().max(1)),
    }
}

/// A borrowed text has nothing to escape.
#[expect(clippy::ptr_arg, reason = "only a `Cow` shows whether the text was borrowed")]
fn write_text(text: &Cow<'_, str>, out: &mut Vec<u8>) {
    match text {
        Cow::Borrowed(plain) => {
            out.reserve(plain.len() + 2);
            out.push(b'"');
            out.extend_from_slice(plain.as_bytes());
            out.push(b'"');
        }
        Cow::Owned(text) => write::string(out, text),
    }
}

fn write_value(value: &Value<'_>, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(yes) => write::boolean(out, *yes),
        Value::Number(text) => out.extend_from_slice(text.as_bytes()),
        Value::Text(text) => write_text(text, out),
        Value::Array(items) => {
            out.push(b'[');
            for item in items {
                write::separate(out);
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(fields) => write_object(fields, None, out),
    }
}

#[cfg(test)]
mod tests {
    use crate::read;

    #[test]
    fn equal_requests_have_one_canonical_form() {
        let canonical = |body: &str| {
            let mut out = Vec::new();
            read::json(body.as_bytes()).unwrap().canonical(Some("client_order_id"), &mut out);
            String::from_utf8(out).unwrap()
        };
        for (body, expected) in [
            (r#"{ "b" : 1.0, "a" : "x\u0041" }"#, r#"{"a":"xA","b":1.0}"#),
            (r#"{"client_order_id":"g-1","a":{"client_order_id":2,"A":[]}}"#, r#"{"a":{"A":[],"client_order_id":2}}"#),
            (r#"[{"b":null,"a":true}]"#, r#"[{"a":true,"b":null}]"#),
            // Equal in their first eight bytes, or shorter.
            (
                r#"{"quantity_b":1,"quantity":2,"quantity_a":3,"quant":4,"é":5,"":6,"q\u0075ant_":7,"quant\u0000":8}"#,
                r#"{"":6,"quant":4,"quant\u0000":8,"quant_":7,"quantity":2,"quantity_a":3,"quantity_b":1,"é":5}"#,
            ),
        ] {
            assert_eq!(canonical(body), expected);
        }
    }
}
