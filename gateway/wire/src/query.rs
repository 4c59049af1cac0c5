//! Query strings and path segments: percent-decoding, and the last value of a repeated field.

use std::borrow::Cow;

/// Fields of a query string, decoded. Routes ignore unknown ones (gateway/docs/wire.md §10).
#[derive(Debug, Default)]
pub struct Query<'a> {
    /// The first fields; most requests have no more, and need no allocation.
    few: [Option<Field<'a>>; FEW],
    more: Vec<Field<'a>>,
}

const FEW: usize = 3;

/// Name and value.
type Field<'a> = (Cow<'a, str>, Cow<'a, str>);

impl<'a> Query<'a> {
    /// Reads the part after the `?`. Cannot fail: a stray `%` is kept, and bytes that are not UTF-8 become U+FFFD,
    /// which no identifier and no number of the server contains.
    pub fn read(text: &'a str) -> Query<'a> {
        let pairs = text.split('&').filter(|pair| !pair.is_empty());
        Query::collect(pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        }))
    }

    /// The query of these fields, decoded.
    pub fn of(fields: impl IntoIterator<Item = (&'a str, Cow<'a, str>)>) -> Query<'a> {
        Query::collect(fields.into_iter().map(|(name, value)| (Cow::Borrowed(name), value)))
    }

    fn collect(mut fields: impl Iterator<Item = Field<'a>>) -> Query<'a> {
        let mut few = [const { None }; FEW];
        few.iter_mut().zip(fields.by_ref()).for_each(|(place, field)| *place = Some(field));
        Query { few, more: fields.collect() }
    }

    /// The value of a field; the last one if it is repeated.
    pub fn get(&self, name: &str) -> Option<&str> {
        let fields = self.more.iter().rev().chain(self.few.iter().rev().flatten());
        fields.into_iter().find(|(field, _)| field == name).map(|(_, value)| value.as_ref())
    }

    /// All values of a repeated field, in order.
    pub fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        let fields = self.few.iter().flatten().chain(&self.more);
        fields.filter(move |(field, _)| field == name).map(|(_, value)| value.as_ref())
    }

    /// The value of the first of these names that is present.
    pub fn first_of(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.get(name))
    }
}

/// `text` with its percent escapes decoded; in a query string `+` is a space.
pub fn decoded(text: &str, plus_is_blank: bool) -> Cow<'_, str> {
    // Checks all bytes, which the compiler vectorizes.
    let is_escaped = text.bytes().fold(false, |found, b| found | (b == b'%') | (b == b'+'));
    if !is_escaped {
        return Cow::Borrowed(text);
    }
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = bytes.get(at + 1..at + 3).and_then(|digits| {
            let hex = |digit: u8| (digit as char).to_digit(16);
            Some((hex(digits[0])? * 16 + hex(digits[1])?) as u8)
        });
        match (bytes[at], escape) {
            (b'%', Some(byte)) => {
                out.push(byte);
                at += 3;
                continue;
            }
            (b'+', _) if plus_is_blank => out.push(b' '),
            (byte, _) => out.push(byte),
        }
        at += 1;
    }
    match String::from_utf8(out) {
        Ok(text) => Cow::Owned(text),
        Err(error) => Cow::Owned(String::from_utf8_lossy(error.as_bytes()).into_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Percent-encodes all bytes that are not `plain`.
    fn encode(out: &mut String, text: &str, plain: fn(u8) -> bool) {
        for byte in text.bytes() {
            match plain(byte) {
                true => out.push(byte.into()),
                false => out.push_str(&format!("%{byte:02X}")),
            }
        }
    }

    #[test]
    fn fields_are_decoded_and_the_last_one_counts() {
        let query = Query::read("a=1&b=x%20y+z&a=2&c&%64=%e2%82%ac&&e=%&f=%4&g=%zz&h=%ff&=i");
        for (name, expected) in [
            ("a", Some("2")),
            ("b", Some("x y z")),
            ("c", Some("")),
            ("d", Some("€")),
            ("e", Some("%")),
            ("f", Some("%4")),
            ("g", Some("%zz")),
            ("h", Some("\u{fffd}")),
            ("", Some("i")),
            ("A", None),
        ] {
            assert_eq!(query.get(name), expected, "{name}");
        }
        assert_eq!(query.first_of(&["x", "b", "a"]), Some("x y z"));
        for (text, expected) in
            [("a=1&a=2", "2"), ("a=1&b=2&c=3&a=4", "4"), ("a=1&b=2&c=3&d=4&d=5", "1"), ("&&a=1", "1")]
        {
            assert_eq!(Query::read(text).get("a"), Some(expected), "{text}");
        }
        assert_eq!(Query::read("").get("a"), None);
        assert_eq!(decoded("a+b%2Fc", false), "a+b/c");
    }

    #[test]
    fn encoded_texts_decode_to_themselves() {
        for text in ["", "g-17", "a b+c/d?e&f=g%h", "€", "\u{1f600}", "..", "7"] {
            for plain in [|byte: u8| byte.is_ascii_alphanumeric(), |byte: u8| byte.is_ascii_digit()] {
                let mut encoded = String::new();
                encode(&mut encoded, text, plain);
                assert!(encoded.bytes().all(|byte| plain(byte) || byte == b'%' || byte.is_ascii_hexdigit()));
                assert_eq!((decoded(&encoded, true), decoded(&encoded, false)), (text.into(), text.into()));
            }
        }
    }
}
