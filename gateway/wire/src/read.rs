//! A strict JSON reader for request bodies (gateway/docs/wire.md §10).
//!
//! One pass, borrowing from the body. Numbers keep their text, so a decimal never goes through a float. Refused:
//! anything but one value of UTF-8 JSON (RFC 8259), nesting deeper than [`DEPTH_MAX`], more than [`VALUES_MAX`] values,
//! and a field that occurs twice in one object. Values are not interpreted here.

use super::plain_bytes;
use super::value::Value;
use std::borrow::Cow;

/// Deepest nesting of arrays and objects.
pub const DEPTH_MAX: usize = 32;
/// Most values in one body: bounds the memory that a body of the permitted size can use.
pub const VALUES_MAX: usize = 100_000;

/// Why a text is not a JSON body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotJson {
    Empty,
    NotUtf8,
    /// At this byte.
    Syntax(usize),
    TooDeep,
    TooManyValues,
    DuplicateField(String),
}

impl std::fmt::Display for NotJson {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotJson::Empty => f.write_str("The body is empty."),
            NotJson::NotUtf8 => f.write_str("The body is not UTF-8."),
            NotJson::Syntax(at) => write!(f, "The body is not valid JSON (at byte {at})."),
            NotJson::TooDeep => write!(f, "The body is nested deeper than {DEPTH_MAX} levels."),
            NotJson::TooManyValues => write!(f, "The body has more than {VALUES_MAX} values."),
            NotJson::DuplicateField(name) => write!(f, "The body has the field {name:?} twice."),
        }
    }
}

/// Reads a whole body.
pub fn json(body: &[u8]) -> Result<Value<'_>, NotJson> {
    let text = std::str::from_utf8(body).map_err(|_| NotJson::NotUtf8)?;
    json_within(text, VALUES_MAX)
}

/// Reads a whole text with another bound of values than that of a body: for files of the operator.
///
/// # Errors
/// Those of [`json`].
pub fn json_within(text: &str, values_max: usize) -> Result<Value<'_>, NotJson> {
    Reader { text, at: 0, depth: 0, depth_max: DEPTH_MAX, values: 0, values_max, inner: None, keeps: true }.whole()
}

/// Reads a frame whose field `name` is a body: returns the frame and the text of that body. The body may be nested as
/// deeply as one that is sent alone. Its syntax is checked here; its contents and repeated fields only when it is read,
/// so an array or object is empty in the frame.
pub fn framed<'a>(text: &'a str, name: &'static str) -> Result<(Value<'a>, Option<&'a str>), NotJson> {
    let inner = Some(Inner { name, place: 0..0 });
    let mut reader = Reader {
        text,
        at: 0,
        depth: 0,
        depth_max: DEPTH_MAX + 1,
        values: 0,
        values_max: VALUES_MAX,
        inner,
        keeps: true,
    };
    let frame = reader.whole()?;
    let body = reader.inner.map(|inner| &text[inner.place]).filter(|body| !body.is_empty());
    Ok((frame, body))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    depth_max: usize,
    values: usize,
    values_max: usize,
    inner: Option<Inner>,
    /// Values are kept, not only checked.
    keeps: bool,
}

/// A field of the outermost object, and the range of its value.
struct Inner {
    name: &'static str,
    place: std::ops::Range<usize>,
}

impl<'a> Reader<'a> {
    fn whole(&mut self) -> Result<Value<'a>, NotJson> {
        self.blanks();
        if self.at == self.text.len() {
            return Err(NotJson::Empty);
        }
        let value = self.value()?;
        self.blanks();
        if self.at < self.text.len() { Err(NotJson::Syntax(self.at)) } else { Ok(value) }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            self.at += 1;
        }
    }

    fn wrong<T>(&self) -> Result<T, NotJson> {
        Err(NotJson::Syntax(self.at))
    }

    fn value(&mut self) -> Result<Value<'a>, NotJson> {
        self.values += 1;
        if self.values > self.values_max {
            return Err(NotJson::TooManyValues);
        }
        match self.peek() {
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            _ => self.wrong(),
        }
    }

    fn word(&mut self, word: &str, value: Value<'a>) -> Result<Value<'a>, NotJson> {
        if !self.text[self.at..].starts_with(word) {
            return self.wrong();
        }
        self.at += word.len();
        Ok(value)
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value<'a>, NotJson>) -> Result<Value<'a>, NotJson> {
        self.depth += 1;
        if self.depth > self.depth_max {
            return Err(NotJson::TooDeep);
        }
        self.at += 1;
        let value = read(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn array(&mut self) -> Result<Value<'a>, NotJson> {
        let mut items = Vec::new();
        self.blanks();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            self.blanks();
            let item = self.value()?;
            if self.keeps {
                items.push(item);
            }
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => break,
                _ => return self.wrong(),
            }
        }
        self.at += 1;
        Ok(Value::Array(items))
    }

    fn object(&mut self) -> Result<Value<'a>, NotJson> {
        // Most bodies are one order: one allocation for its fields.
        let mut fields = Vec::with_capacity(match self.depth {
            _ if !self.keeps => 0,
            1 => 12,
            _ => 4,
        });
        self.blanks();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(fields));
        }
        loop {
            self.blanks();
            if self.peek() != Some(b'"') {
                return self.wrong();
            }
            let name = self.string()?;
            self.blanks();
            if self.peek() != Some(b':') {
                return self.wrong();
            }
            self.at += 1;
            self.blanks();
            let start = self.at;
            let is_inner = self.depth == 1 && self.inner.as_ref().is_some_and(|inner| inner.name == name);
            self.keeps &= !is_inner;
            let value = self.value()?;
            if let Some(inner) = self.inner.as_mut().filter(|_| is_inner) {
                (inner.place, self.keeps) = (start..self.at, true);
            }
            if self.keeps {
                fields.push((name, value));
            }
            self.blanks();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => break,
                _ => return self.wrong(),
            }
        }
        self.at += 1;
        match duplicate(&fields) {
            Some(name) => Err(NotJson::DuplicateField(name)),
            None => Ok(Value::Object(fields)),
        }
    }

    fn number(&mut self) -> Result<Value<'a>, NotJson> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return self.wrong(),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Value::Number(&self.text[start..self.at]))
    }

    fn digits(&mut self) -> Result<(), NotJson> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { self.wrong() } else { Ok(()) }
    }

    fn string(&mut self) -> Result<Cow<'a, str>, NotJson> {
        self.at += 1;
        let start = self.at;
        self.at += plain_bytes(&self.text.as_bytes()[start..]);
        match self.peek() {
            Some(b'"') => {
                let text = &self.text[start..self.at];
                self.at += 1;
                Ok(Cow::Borrowed(text))
            }
            Some(b'\\') => self.escaped(start).map(Cow::Owned),
            _ => self.wrong(),
        }
    }

    /// The string from `start` on, at its first escape.
    fn escaped(&mut self, start: usize) -> Result<String, NotJson> {
        let mut text = self.text[start..self.at].to_owned();
        let mut plain = self.at;
        loop {
            match self.peek() {
                Some(b'"') => {
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => {
                    text.push_str(&self.text[plain..self.at]);
                    self.at += 1;
                    text.push(self.escape()?);
                    plain = self.at;
                }
                Some(0..=0x1f) | None => return self.wrong(),
                Some(_) => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Result<char, NotJson> {
        let Some(letter) = self.peek() else { return self.wrong() };
        let plain = match letter {
            b'"' | b'\\' | b'/' => letter as char,
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code_point();
            }
            _ => return self.wrong(),
        };
        self.at += 1;
        Ok(plain)
    }

    fn code_point(&mut self) -> Result<char, NotJson> {
        let high = self.hex4()?;
        let code = match high {
            0xd800..=0xdbff => {
                if !self.text[self.at..].starts_with("\\u") {
                    return self.wrong();
                }
                self.at += 2;
                let low = self.hex4()?;
                if !(0xdc00..=0xdfff).contains(&low) {
                    return self.wrong();
                }
                0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00)
            }
            code => code,
        };
        // A lone low surrogate is not a character.
        char::from_u32(code).map_or_else(|| self.wrong(), Ok)
    }

    fn hex4(&mut self) -> Result<u32, NotJson> {
        let digits = self.text.as_bytes().get(self.at..self.at + 4);
        let Some(digits) = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit)) else {
            return self.wrong();
        };
        let value = digits
            .iter()
            .fold(0, |value, digit| value * 16 + (*digit as char).to_digit(16).expect("checked to be a hex digit"));
        self.at += 4;
        Ok(value)
    }
}

/// Fields of objects up to this size are compared with each other, those of larger ones by hash.
const COMPARED_MAX: usize = 24;

/// The first name that occurs twice.
fn duplicate(fields: &[(Cow<'_, str>, Value<'_>)]) -> Option<String> {
    // Names with different marks are different, and in most bodies all marks differ.
    let mut marks = 0u64;
    for (name, _) in fields {
        marks |= super::mark(name);
    }
    if marks.count_ones() as usize == fields.len() {
        return None;
    }
    if fields.len() <= COMPARED_MAX {
        return fields
            .iter()
            .enumerate()
            .find(|(i, (name, _))| fields[..*i].iter().any(|(earlier, _)| earlier == name))
            .map(|(_, (name, _))| name.to_string());
    }
    let mut seen = ahash::AHashSet::with_capacity(fields.len());
    fields.iter().find(|(name, _)| !seen.insert(name.as_ref())).map(|(name, _)| name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object<'a>(fields: &[(&'a str, Value<'a>)]) -> Value<'a> {
        Value::Object(fields.iter().map(|(name, value)| (Cow::Borrowed(*name), value.clone())).collect())
    }

    #[test]
    fn values_are_read_as_written() {
        for (body, expected) in [
            ("null", Value::Null),
            (" true\n", Value::Bool(true)),
            ("-0.50", Value::Number("-0.50")),
            ("1e400", Value::Number("1e400")),
            (r#""a\u00e9\n\ud83d\ude00b""#, Value::Text("aé\n😀b".into())),
            ("[]", Value::Array(vec![])),
            ("[1, [2]]", Value::Array(vec![Value::Number("1"), Value::Array(vec![Value::Number("2")])])),
            ("{}", object(&[])),
            // Two names with the same mark.
            (r#"{"f":1,"aa":2}"#, object(&[("f", Value::Number("1")), ("aa", Value::Number("2"))])),
            (
                r#"{"price":"0.37","quantity":20,"x":null}"#,
                object(&[("price", Value::Text("0.37".into())), ("quantity", Value::Number("20")), ("x", Value::Null)]),
            ),
        ] {
            assert_eq!(json(body.as_bytes()), Ok(expected), "{body}");
        }
    }

    #[test]
    fn anything_but_strict_json_is_refused() {
        let deep = |levels: usize| [vec!['['; levels], vec![']'; levels]].concat().iter().collect::<String>();
        assert!(json(deep(32).as_bytes()).is_ok());
        assert_eq!(json(deep(33).as_bytes()), Err(NotJson::TooDeep));
        assert_eq!(json(deep(400_000).as_bytes()), Err(NotJson::TooDeep));
        let many = format!("[{}0]", "0,".repeat(VALUES_MAX));
        assert_eq!(json(many.as_bytes()), Err(NotJson::TooManyValues));
        assert_eq!(json(b"\xff"), Err(NotJson::NotUtf8));
        assert_eq!(json(b""), Err(NotJson::Empty));
        assert_eq!(json(b" \r\n"), Err(NotJson::Empty));
        assert_eq!(json(br#"{"a":1,"b":2,"\u0061":3}"#), Err(NotJson::DuplicateField("a".to_owned())));
        assert_eq!(json(br#"{"f":1,"aa":2,"f":3}"#), Err(NotJson::DuplicateField("f".to_owned())));
        let wide = format!("{{{}\"f7\":0}}", (0..100).map(|i| format!("\"f{i}\":0,")).collect::<String>());
        assert_eq!(json(wide.as_bytes()), Err(NotJson::DuplicateField("f7".to_owned())));
        for body in [
            "{",
            "}",
            "[1,]",
            "[,1]",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{'a':1}",
            "nul",
            "True",
            "01",
            "1.",
            ".5",
            "+1",
            "-",
            "1e",
            "1e+",
            "0x10",
            "NaN",
            "Infinity",
            "\"",
            "\"\\x\"",
            "\"\\u12g4\"",
            "\"\\ud800\"",
            "\"\\ud800\\u0041\"",
            "\"\\udc00\"",
            "\"a\nb\"",
            "\"a\u{0}\"",
            "1 2",
            "{} x",
            "\u{feff}{}",
            "/*c*/1",
            "[1 2]",
            "\u{a0}1",
        ] {
            assert!(matches!(json(body.as_bytes()), Err(NotJson::Syntax(_))), "{body:?}");
        }
    }

    /// Agrees with serde_json on acceptance and value for mutated bodies (duplicates and depth aside).
    #[test]
    fn agrees_with_another_reader() {
        let seeds: [&[u8]; 4] = [
            br#"{"market_id":"0x51c0","side":"BUY","price":0.37,"quantity":"20","post_only":false,"x":null}"#,
            br#"[{"token_id":"12\u0041\\","depth":[1,2.5e-3,-0]},"\ud83d\ude00",true]"#,
            br#"{"a":{"b":{"c":[[],{}]}},"d":"caf\u00e9 \n"}"#,
            b"  [ -12.50 , 1E+2,\"\\/\" ]\t",
        ];
        let alphabet = b"{}[]\",:\\u0123eE+-. tfn\x00\xc3\xa9/";
        let mut random = crate::testing::Random(3);
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..60_000 {
            let mut body = seeds[(random.next() % 4) as usize].to_vec();
            for _ in 0..random.next() % 3 {
                let at = (random.next() % body.len() as u64) as usize;
                match random.next() % 3 {
                    0 => body[at] = alphabet[(random.next() % alphabet.len() as u64) as usize],
                    1 => body.insert(at, alphabet[(random.next() % alphabet.len() as u64) as usize]),
                    _ => drop(body.remove(at)),
                }
            }
            // Numbers of serde_json are floats: an exponent that overflows is an error there and accepted here.
            let theirs = serde_json::from_slice::<serde_json::Value>(&body);
            match (json(&body), theirs) {
                (Ok(ours), Ok(theirs)) => {
                    accepted += 1;
                    let mut out = Vec::new();
                    ours.canonical(None, &mut out);
                    let again: serde_json::Value = serde_json::from_slice(&out).expect("canonical text is JSON");
                    assert_eq!(again, theirs, "{:?}", String::from_utf8_lossy(&body));
                }
                (Err(_), Err(_)) => refused += 1,
                (Err(NotJson::DuplicateField(_)), Ok(_)) => refused += 1,
                (Ok(_), Err(error)) if error.to_string().contains("out of range") => accepted += 1,
                (ours, theirs) => panic!("{:?}: {ours:?} against {theirs:?}", String::from_utf8_lossy(&body)),
            }
        }
        assert!(accepted > 5_000 && refused > 5_000, "{accepted} accepted, {refused} refused");
    }
}
