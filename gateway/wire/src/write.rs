//! Hand-written JSON responses: fields are pushed into a byte buffer in the order of the response.
//!
//! [`Object`] and [`array()`] only write commas and brackets; every value is written by the function of its format.

use super::{decimal, instant, plain_bytes};
use engine::amount::{Cash, Price, Qty};
use engine::time::Timestamp;

/// A comma, unless the innermost object or array was just opened (or nothing has been written yet).
pub fn separate(out: &mut Vec<u8>) {
    if !matches!(out.last(), None | Some(b'{' | b'[')) {
        out.push(b',');
    }
}

/// Writes a constant piece of JSON. Always inlined: a copy of a known length is a store or two.
#[inline(always)]
pub fn as_is(out: &mut Vec<u8>, piece: &str) {
    out.extend_from_slice(piece.as_bytes());
}

/// `true` or `false`.
pub fn boolean(out: &mut Vec<u8>, yes: bool) {
    out.extend_from_slice(if yes { b"true" } else { b"false" });
}

/// A string with quotes and escapes.
pub fn string(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
    out.reserve(bytes.len() + 2);
    out.push(b'"');
    let plain = plain_bytes(bytes);
    out.extend_from_slice(&bytes[..plain]);
    if plain < bytes.len() {
        escaped(out, &bytes[plain..]);
    }
    out.push(b'"');
}

/// A text with characters to escape.
#[cold]
fn escaped(out: &mut Vec<u8>, bytes: &[u8]) {
    let mut plain = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escape: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            8 => b"\\b",
            12 => b"\\f",
            0..=0x1f => b"",
            _ => continue,
        };
        out.extend_from_slice(&bytes[plain..at]);
        if escape.is_empty() {
            let hex = |nibble: u8| b"0123456789abcdef"[usize::from(nibble)];
            out.extend_from_slice(&[b'\\', b'u', b'0', b'0', hex(byte >> 4), hex(byte & 15)]);
        } else {
            out.extend_from_slice(escape);
        }
        plain = at + 1;
    }
    out.extend_from_slice(&bytes[plain..]);
}

/// Writes one object: `{` … `}`.
pub fn object(out: &mut Vec<u8>, fields: impl FnOnce(&mut Object<'_>)) {
    out.push(b'{');
    fields(&mut Object { out });
    out.push(b'}');
}

/// Writes one array: `[` … `]`, each item by `write`.
pub fn array<T>(out: &mut Vec<u8>, items: impl IntoIterator<Item = T>, mut write: impl FnMut(&mut Vec<u8>, T)) {
    out.push(b'[');
    for item in items {
        separate(out);
        write(out, item);
    }
    out.push(b']');
}

/// An object being written. Names are constants and need no escapes.
pub struct Object<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> Object<'a> {
    /// Continues an object that is partly written; its end is written by the caller.
    pub fn going_on(out: &'a mut Vec<u8>) -> Object<'a> {
        Object { out }
    }
}

impl Object<'_> {
    /// The buffer.
    pub fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Writes the name of the next field; the caller pushes the value. Always inlined: the names are constants, and a
    /// copy of a known length is a store or two.
    #[inline(always)]
    pub fn name(&mut self, name: &str) -> &mut Vec<u8> {
        self.out.reserve(name.len() + 4);
        separate(self.out);
        self.out.push(b'"');
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        self.out
    }

    #[inline(always)]
    pub fn quoted(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) {
        let out = self.name(name);
        out.push(b'"');
        write(out);
        out.push(b'"');
    }

    #[inline(always)]
    pub fn null(&mut self, name: &str) {
        self.name(name).extend_from_slice(b"null");
    }

    /// Writes the field with `write`, or null.
    #[inline(always)]
    pub fn or_null<T>(&mut self, name: &str, value: Option<T>, write: impl FnOnce(&mut Self, &str, T)) {
        match value {
            Some(value) => write(self, name, value),
            None => self.null(name),
        }
    }

    #[inline(always)]
    pub fn text(&mut self, name: &str, text: &str) {
        string(self.name(name), text);
    }

    #[inline(always)]
    pub fn text_or_null(&mut self, name: &str, text: Option<&str>) {
        self.or_null(name, text, Self::text);
    }

    /// A text that needs no escapes: a constant word.
    #[inline(always)]
    pub fn word(&mut self, name: &str, word: &'static str) {
        self.quoted(name, |out| out.extend_from_slice(word.as_bytes()));
    }

    #[inline(always)]
    pub fn word_or_null(&mut self, name: &str, word: Option<&'static str>) {
        self.or_null(name, word, Self::word);
    }

    #[inline(always)]
    pub fn boolean(&mut self, name: &str, yes: bool) {
        boolean(self.name(name), yes);
    }

    #[inline(always)]
    pub fn integer(&mut self, name: &str, value: u64) {
        decimal::integer(self.name(name), value);
    }

    #[inline(always)]
    pub fn integer_or_null(&mut self, name: &str, value: Option<u64>) {
        self.or_null(name, value, Self::integer);
    }

    #[inline(always)]
    pub fn price(&mut self, name: &str, price: Price) {
        self.quoted(name, |out| decimal::price(out, price));
    }

    /// A price finer than 10⁻⁴ (average, midpoint), in 10⁻⁶ USD a share.
    pub fn average(&mut self, name: &str, average: Cash) {
        self.money(name, average);
    }

    #[inline(always)]
    pub fn money(&mut self, name: &str, cash: Cash) {
        self.quoted(name, |out| decimal::money(out, cash));
    }

    #[inline(always)]
    pub fn qty(&mut self, name: &str, qty: Qty) {
        self.quoted(name, |out| decimal::qty(out, qty));
    }

    /// A moment in the native form (gateway/docs/wire.md §2).
    #[inline(always)]
    pub fn ts(&mut self, name: &str, at: Timestamp) {
        self.quoted(name, |out| instant::ts(out, at));
    }

    #[inline(always)]
    pub fn ts_or_null(&mut self, name: &str, at: Option<Timestamp>) {
        self.or_null(name, at, Self::ts);
    }

    /// A field that is an object.
    pub fn object(&mut self, name: &str, fields: impl FnOnce(&mut Object<'_>)) {
        object(self.name(name), fields);
    }

    /// A field that is an array.
    pub fn array<T>(&mut self, name: &str, items: impl IntoIterator<Item = T>, write: impl FnMut(&mut Vec<u8>, T)) {
        array(self.name(name), items, write);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_as_by_serde_json() {
        for text in
            ["", "plain", "a\"b\\c", "tab\tline\nreturn\r", "\u{0}\u{8}\u{c}\u{1f}\u{7f}", "é😀\u{2028}", "</script>"]
        {
            let mut out = Vec::new();
            string(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
        }
    }

    #[test]
    fn commas_are_only_between_values() {
        let mut out = Vec::new();
        object(&mut out, |o| {
            o.integer("a", 1);
            o.null("b");
            o.object("c", |_| {});
            o.object("d", |d| d.text("x", "{["));
            o.array("e", [1u64, 2], decimal::integer);
            o.array("f", [(); 0], |_, ()| {});
            o.array("g", [(); 2], |out, ()| object(out, |g| g.word("w", "[")));
            o.price("h", Price(4_200));
            o.or_null("i", Some(Cash(-1)), Object::money);
            o.boolean("j", false);
        });
        assert_eq!(
            String::from_utf8(out).unwrap(),
            concat!(
                r#"{"a":1,"b":null,"c":{},"d":{"x":"{["},"e":[1,2],"f":[],"g":[{"w":"["},{"w":"["}],"#,
                r#""h":"0.42","i":"-0.000001","j":false}"#
            )
        );
    }
}
