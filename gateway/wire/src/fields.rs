//! Typed reading of the fields of a body or a query. Collects the problems of fields (`VALIDATION_FAILED`).
//!
//! Every reader returns `None` both for an absent field and for an invalid one. Invalid ones are in [`Problems`], which
//! the handler checks once, before it uses anything. A JSON null counts as absent.

use super::decimal::{Decimal, NotDecimal};
use super::mark;
use super::query::Query;
use super::value::Value;
use super::write;
use std::borrow::Cow;
use std::ops::RangeInclusive;

/// The problems of a request's fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<Problem>);

/// The problem of one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    place: &'static str,
    field: String,
    /// Stable word, as in schema validators.
    kind: &'static str,
    message: String,
}

impl Problems {
    pub fn add(&mut self, place: &'static str, field: &str, kind: &'static str, message: impl Into<String>) {
        self.0.push(Problem { place, field: field.to_owned(), kind, message: message.into() });
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A message for people, about the first problem.
    pub fn message(&self) -> String {
        self.0.first().map_or_else(String::new, |first| format!("{}: {}", first.field, first.message))
    }

    /// `{"errors":[{"loc":["body","quantity"],"type":…,"msg":…}]}` (gateway/docs/wire.md §5).
    pub fn details(&self) -> Vec<u8> {
        let mut out = Vec::new();
        write::object(&mut out, |o| {
            o.array("errors", &self.0, |out, problem| {
                write::object(out, |o| {
                    o.array("loc", [problem.place, &problem.field], write::string);
                    o.word("type", problem.kind);
                    o.text("msg", &problem.message);
                });
            });
        });
        out
    }
}

/// The fields of a JSON object.
pub struct Body<'a, 'v> {
    fields: &'a [(Cow<'v, str>, Value<'v>)],
    /// The [marks](mark) of their names: most requested fields are absent, and need no search.
    marks: u64,
    pub problems: Problems,
}

impl<'a, 'v> Body<'a, 'v> {
    /// The fields of an object; another value has none.
    pub fn new(value: &'a Value<'v>) -> Self {
        let fields: &[_] = match value {
            Value::Object(fields) => fields,
            _ => &[],
        };
        let marks = fields.iter().fold(0, |marks, (name, _)| marks | mark(name));
        Body { fields, marks, problems: Problems::default() }
    }

    /// The value of a field; null counts as absent.
    #[inline]
    pub fn get(&self, name: &str) -> Option<&'a Value<'v>> {
        if self.marks & mark(name) == 0 {
            return None;
        }
        let (_, value) = self.fields.iter().find(|(field, _)| field == name)?;
        (!matches!(value, Value::Null)).then_some(value)
    }

    fn wrong(&mut self, name: &str, kind: &'static str, message: impl Into<String>) {
        self.problems.add("body", name, kind, message);
    }

    /// Adds the problem of an absent required field.
    pub fn missing(&mut self, name: &str) {
        self.wrong(name, "missing", "is required");
    }

    /// A string of at most `chars_max` characters.
    pub fn text(&mut self, name: &str, chars_max: usize) -> Option<&'a str> {
        match self.get(name)? {
            Value::Text(text) if !is_longer(text, chars_max) => Some(text),
            Value::Text(_) => {
                self.wrong(name, "string_too_long", format!("has more than {chars_max} characters"));
                None
            }
            other => {
                self.wrong(name, "string_type", format!("is {}, not a string", other.kind()));
                None
            }
        }
    }

    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        match self.get(name)? {
            Value::Bool(yes) => Some(*yes),
            other => {
                self.wrong(name, "bool_type", format!("is {}, not a boolean", other.kind()));
                None
            }
        }
    }

    /// A decimal string or number (gateway/docs/wire.md §1).
    pub fn decimal(&mut self, name: &str) -> Option<Decimal> {
        let parsed = match self.get(name)? {
            Value::Text(text) => Decimal::parse(text),
            Value::Number(text) => Decimal::parse(text),
            other => {
                self.wrong(name, "decimal_type", format!("is {}, not a decimal", other.kind()));
                return None;
            }
        };
        match parsed {
            Ok(decimal) => Some(decimal),
            Err(NotDecimal::Malformed) => {
                self.wrong(name, "decimal_parsing", "is not a plain decimal");
                None
            }
            Err(NotDecimal::TooLong) => {
                self.wrong(name, "decimal_max_digits", "has more than 18 digits before or 12 after the point");
                None
            }
        }
    }

    /// A JSON integer in a range.
    pub fn integer(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        match self.get(name)? {
            Value::Number(text) => match integer(text, &range) {
                Ok(value) => Some(value),
                Err((kind, message)) => {
                    self.wrong(name, kind, message);
                    None
                }
            },
            other => {
                self.wrong(name, "int_type", format!("is {}, not an integer", other.kind()));
                None
            }
        }
    }
}

/// Whether a text has more characters than `chars_max`.
pub fn is_longer(text: &str, chars_max: usize) -> bool {
    // A text does not have more characters than bytes.
    text.len() > chars_max && text.chars().nth(chars_max).is_some()
}

/// Most rows that a list skips.
pub const OFFSET_MAX: i64 = i64::MAX;

/// The fields of a query string.
pub struct Params<'a> {
    query: &'a Query<'a>,
    pub problems: Problems,
}

impl<'a> Params<'a> {
    pub fn new(query: &'a Query<'a>) -> Self {
        Params { query, problems: Problems::default() }
    }

    /// A text of at most `chars_max` characters.
    pub fn text(&mut self, name: &str, chars_max: usize) -> Option<&'a str> {
        let text = self.query.get(name)?;
        if is_longer(text, chars_max) {
            let message = format!("has more than {chars_max} characters");
            self.problems.add("query", name, "string_too_long", message);
            return None;
        }
        Some(text)
    }

    pub fn integer(&mut self, name: &str, range: RangeInclusive<u64>) -> Option<u64> {
        match integer(self.query.get(name)?, &range) {
            Ok(value) => Some(value),
            Err((kind, message)) => {
                self.problems.add("query", name, kind, message);
                None
            }
        }
    }

    /// `offset`: the number of rows of a list to skip, at most [`OFFSET_MAX`]; 0 if absent.
    pub fn offset(&mut self) -> usize {
        self.integer("offset", 0..=OFFSET_MAX.unsigned_abs())
            .map_or(0, |offset| usize::try_from(offset).unwrap_or(usize::MAX))
    }

    /// `true`, `false`, `1`, `0` in any case (gateway/docs/wire.md §10).
    pub fn boolean(&mut self, name: &str) -> Option<bool> {
        let text = self.query.get(name)?;
        match text {
            "1" => Some(true),
            "0" => Some(false),
            _ if text.eq_ignore_ascii_case("true") => Some(true),
            _ if text.eq_ignore_ascii_case("false") => Some(false),
            _ => {
                self.problems.add("query", name, "bool_parsing", "must be one of true, false, 1, 0");
                None
            }
        }
    }

    /// One of these words, in any case; returns its meaning.
    pub fn choice<T: Copy>(&mut self, name: &str, choices: &[(&str, T)]) -> Option<T> {
        let text = self.query.get(name)?;
        let found = choices.iter().find(|(word, _)| text.eq_ignore_ascii_case(word));
        if found.is_none() {
            let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
            self.problems.add("query", name, "literal_error", format!("must be one of {}", words.join(", ")));
        }
        found.map(|(_, meaning)| *meaning)
    }
}

/// An integer in a range, only digits. A minus is read to report that the value is too small; `-0` is not an integer.
fn integer(text: &str, range: &RangeInclusive<u64>) -> Result<u64, (&'static str, String)> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    if digits.is_empty() || digits.len() > 20 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(("int_parsing", "is not an integer".to_owned()));
    }
    match text.parse::<u64>() {
        Ok(value) if range.contains(&value) => Ok(value),
        Ok(value) if value > *range.end() => Err(("less_than_equal", format!("is above {}", range.end()))),
        Err(_) if !text.starts_with('-') => Err(("less_than_equal", format!("is above {}", range.end()))),
        Err(_) if digits.bytes().all(|b| b == b'0') => Err(("int_parsing", "is not an integer".to_owned())),
        _ => Err(("greater_than_equal", format!("is below {}", range.start()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::read;

    #[test]
    fn fields_have_exact_types() {
        let body = br#"{"t":"abc","n":12,"s":"0.5","d":0.37,"e":1e5,"b":true,"z":null,"i":-1,"f":1.0,"a":[]}"#;
        let value = read::json(body).unwrap();
        let mut body = Body::new(&value);
        assert_eq!(body.text("t", 3), Some("abc"));
        assert_eq!(body.decimal("s"), Decimal::parse("0.5").ok());
        assert_eq!(body.decimal("d"), Decimal::parse("0.37").ok());
        assert_eq!(body.decimal("n"), Decimal::parse("12").ok());
        assert_eq!(body.boolean("b"), Some(true));
        assert_eq!(body.integer("n", 1..=12), Some(12));
        assert_eq!((body.text("z", 9), body.decimal("none")), (None, None));
        // Has the same mark as `t`, which is present.
        assert_eq!((mark("oo"), body.text("oo", 9)), (mark("t"), None));
        assert!(body.problems.is_empty());

        assert_eq!(body.text("t", 2), None);
        assert_eq!(body.text("n", 9), None);
        assert_eq!(body.decimal("e"), None);
        assert_eq!(body.decimal("b"), None);
        assert_eq!(body.boolean("n"), None);
        assert_eq!(body.integer("f", 0..=9), None);
        assert_eq!(body.integer("i", 0..=9), None);
        assert_eq!(body.integer("s", 0..=9), None);
        body.missing("m");
        let kinds: Vec<_> = body.problems.0.iter().map(|problem| (problem.field.as_str(), problem.kind)).collect();
        assert_eq!(
            kinds,
            [
                ("t", "string_too_long"),
                ("n", "string_type"),
                ("e", "decimal_parsing"),
                ("b", "decimal_type"),
                ("n", "bool_type"),
                ("f", "int_parsing"),
                ("i", "greater_than_equal"),
                ("s", "int_type"),
                ("m", "missing"),
            ]
        );
        let details: serde_json::Value = serde_json::from_slice(&body.problems.details()).unwrap();
        assert_eq!(details["errors"][2]["loc"], serde_json::json!(["body", "e"]));
        assert_eq!(body.problems.message(), "t: has more than 2 characters");
    }

    #[test]
    fn query_fields_are_words_booleans_and_integers() {
        let query = Query::read("l=50&o=-0&big=18446744073709551616&neg=-5&bt=TRUE&b0=0&bx=yes&s=buy&sx=hold&e=");
        let mut params = Params::new(&query);
        assert_eq!(params.integer("l", 1..=200), Some(50));
        assert_eq!(params.boolean("bt"), Some(true));
        assert_eq!(params.boolean("b0"), Some(false));
        assert_eq!(params.choice("s", &[("BUY", 1), ("SELL", 2)]), Some(1));
        assert_eq!(params.integer("none", 0..=1), None);
        assert!(params.problems.is_empty());
        assert_eq!(params.integer("l", 1..=49), None);
        assert_eq!(params.integer("big", 1..=200), None);
        assert_eq!(params.integer("o", 0..=9), None);
        assert_eq!(params.integer("neg", 0..=200), None);
        assert_eq!(params.integer("e", 0..=200), None);
        assert_eq!(params.boolean("bx"), None);
        assert_eq!(params.choice("sx", &[("BUY", 1), ("SELL", 2)]), None);
        let kinds: Vec<_> = params.problems.0.iter().map(|problem| problem.kind).collect();
        assert_eq!(
            kinds,
            [
                "less_than_equal",
                "less_than_equal",
                "int_parsing",
                "greater_than_equal",
                "int_parsing",
                "bool_parsing",
                "literal_error"
            ]
        );
    }
}
