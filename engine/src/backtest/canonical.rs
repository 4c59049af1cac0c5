//! Canonical JSON: one text for one value, so that a hash of it is a hash of the value. Names are sorted, there is no
//! space, and numbers are integers.

use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;

/// A JSON value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Canonical {
    Null,
    Boolean(bool),
    Integer(i128),
    Text(String),
    List(Vec<Canonical>),
    Object(BTreeMap<String, Canonical>),
}

impl Canonical {
    pub fn text(text: &str) -> Canonical {
        Canonical::Text(text.to_owned())
    }

    /// An object of these fields, in any order; the names differ.
    pub fn object<'a>(fields: impl IntoIterator<Item = (&'a str, Canonical)>) -> Canonical {
        Canonical::Object(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }

    /// Bytes as lower-case hex digits.
    pub fn hex(bytes: &[u8]) -> Canonical {
        Canonical::Text(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
    }

    /// SHA-256 of the text.
    pub fn sha256(&self) -> [u8; 32] {
        let mut text = String::new();
        self.write(&mut text);
        Sha256::digest(text.as_bytes()).into()
    }

    fn write(&self, out: &mut String) {
        match self {
            Canonical::Null => out.push_str("null"),
            Canonical::Boolean(yes) => out.push_str(if *yes { "true" } else { "false" }),
            Canonical::Integer(integer) => out.push_str(&integer.to_string()),
            Canonical::Text(text) => write_text(text, out),
            Canonical::List(values) => {
                out.push('[');
                for (at, value) in values.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    value.write(out);
                }
                out.push(']');
            }
            Canonical::Object(fields) => {
                out.push('{');
                for (at, (name, value)) in fields.iter().enumerate() {
                    if at > 0 {
                        out.push(',');
                    }
                    write_text(name, out);
                    out.push(':');
                    value.write(out);
                }
                out.push('}');
            }
        }
    }
}

/// Only what JSON forbids is escaped.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            c if c < ' ' => out.push_str(&format!("\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use Canonical::{Boolean, Integer, List, Null};

    #[test]
    fn a_value_has_one_text() {
        let one = Canonical::object([("b", Integer(-5)), ("a", List(vec![Null, Boolean(true), Boolean(false)]))]);
        let two = Canonical::object([("a", List(vec![Null, Boolean(true), Boolean(false)])), ("b", Integer(-5))]);
        let mut text = String::new();
        one.write(&mut text);
        assert_eq!(text, r#"{"a":[null,true,false],"b":-5}"#);
        assert_eq!(one.sha256(), two.sha256());
        for (text, written) in [
            ("", r#""""#),
            ("é😀", r#""é😀""#),
            ("\"\\/", r#""\"\\/""#),
            ("\n\r\t\u{8}\u{c}\u{0}\u{1f}\u{7f}", "\"\\n\\r\\t\\b\\f\\u0000\\u001f\u{7f}\""),
        ] {
            let mut out = String::new();
            Canonical::text(text).write(&mut out);
            assert_eq!(out, written);
        }
        let mut empty = String::new();
        List(vec![List(Vec::new()), Canonical::Object(BTreeMap::new())]).write(&mut empty);
        assert_eq!(empty, "[[],{}]");
        // SHA-256 of `null`.
        let hash = Canonical::hex(&Null.sha256());
        assert_eq!(hash, Canonical::text("74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b"));
    }
}
