//! Fields of a JSON file with their bounds. A defect is noted with its place, and the read goes on with a value that is
//! never used: a file with a defect does not count.

use edge::http::scalar::Number;
use engine::time::Timestamp;
use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use wire::decimal::Decimal;
use wire::fields::is_longer;
use wire::instant;
use wire::value::Value;

/// Most defects of one file that are noted.
const DEFECTS_MAX: usize = 100;
/// Characters of a text in a message, at most.
const SHOWN_CHARS: usize = 40;

/// A defect of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Defect {
    /// As `[3].home.id`; empty for the whole file.
    pub place: String,
    pub problem: String,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Defect { place, problem } = self;
        if place.is_empty() { f.write_str(problem) } else { write!(f, "{place}: {problem}") }
    }
}

impl Defect {
    /// A defect of the whole file.
    pub fn of_file(problem: impl Into<String>) -> Defect {
        Defect { place: String::new(), problem: problem.into() }
    }
}

/// The defects of one file.
#[derive(Debug, Default)]
pub struct Defects(RefCell<Vec<Defect>>);

impl Defects {
    /// Notes one more, up to the bound.
    pub fn add(&self, place: Place<'_>, problem: impl Into<String>) {
        let mut all = self.0.borrow_mut();
        match all.len() {
            0..DEFECTS_MAX => all.push(Defect { place: place.to_string(), problem: problem.into() }),
            DEFECTS_MAX => all.push(Defect::of_file("has more defects than are shown")),
            _ => {}
        }
    }

    pub fn into_all(self) -> Vec<Defect> {
        self.0.into_inner()
    }
}

/// A place in a file.
#[derive(Clone, Copy)]
pub enum Place<'p> {
    Root,
    Field(&'p Place<'p>, &'p str),
    Item(&'p Place<'p>, usize),
}

impl fmt::Display for Place<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Root => Ok(()),
            Place::Field(Place::Root, name) => f.write_str(name),
            Place::Field(inside, name) => write!(f, "{inside}.{name}"),
            Place::Item(inside, index) => write!(f, "{inside}[{index}]"),
        }
    }
}

/// A value with its place.
#[derive(Clone, Copy)]
pub struct Item<'a> {
    value: &'a Value<'a>,
    place: Place<'a>,
    defects: &'a Defects,
}

/// The fields of an object with its place.
#[derive(Clone, Copy)]
pub struct Fields<'a> {
    fields: &'a [(Cow<'a, str>, Value<'a>)],
    place: Place<'a>,
    defects: &'a Defects,
}

impl<'a> Item<'a> {
    /// The whole file.
    pub fn root(value: &'a Value<'a>, defects: &'a Defects) -> Item<'a> {
        Item { value, place: Place::Root, defects }
    }

    pub fn wrong(&self, problem: impl Into<String>) {
        self.defects.add(self.place, problem);
    }

    /// The object with these fields; `optional` ones may be absent. A name of neither list is a defect.
    pub fn object<T>(&self, known: &[&str], read: impl FnOnce(Fields<'_>) -> T) -> Option<T> {
        let Value::Object(fields) = self.value else {
            self.wrong(format!("is {}, not an object", self.value.kind()));
            return None;
        };
        for (name, _) in fields {
            if !known.contains(&name.as_ref()) {
                let Item { place, defects, .. } = self;
                defects.add(Place::Field(place, shown(name)), "is not a known field");
            }
        }
        Some(read(Fields { fields, place: self.place, defects: self.defects }))
    }

    /// A list of at most `len_max` items. Items with a defect are left out.
    pub fn list<T>(&self, len_max: usize, mut read: impl FnMut(Item<'_>) -> Option<T>) -> Vec<T> {
        let Value::Array(items) = self.value else {
            self.wrong(format!("is {}, not a list", self.value.kind()));
            return Vec::new();
        };
        if items.len() > len_max {
            self.wrong(format!("has {} items, more than {len_max}", items.len()));
            return Vec::new();
        }
        let item = |(index, value)| {
            let item = Item { value, place: Place::Item(&self.place, index), defects: self.defects };
            read(item)
        };
        items.iter().enumerate().filter_map(item).collect()
    }

    /// A text of at most `chars_max` characters without control characters.
    pub fn text(&self, chars_max: usize) -> Option<&'a str> {
        let Value::Text(text) = self.value else {
            self.wrong(format!("is {}, not a text", self.value.kind()));
            return None;
        };
        if is_longer(text, chars_max) {
            self.wrong(format!("has more than {chars_max} characters"));
            return None;
        }
        if text.chars().any(char::is_control) {
            self.wrong("has a control character");
            return None;
        }
        Some(text)
    }

    /// One of these words.
    pub fn word(&self, words: &'static [&'static str]) -> Option<&'static str> {
        let text = self.text(SHOWN_CHARS)?;
        let known = words.iter().copied().find(|word| *word == text);
        if known.is_none() {
            self.wrong(format!("is {text:?}, not one of {}", words.join(", ")));
        }
        known
    }

    /// A JSON number that is whole, within these bounds.
    pub fn integer(&self, min: i64, max: i64) -> Option<i64> {
        let Value::Number(text) = self.value else {
            self.wrong(format!("is {}, not a number", self.value.kind()));
            return None;
        };
        let read = text.parse::<i64>().ok().filter(|number| (min..=max).contains(number));
        if read.is_none() {
            self.wrong(format!("is {}, not a whole number from {min} to {max}", shown(text)));
        }
        read
    }

    /// A JSON number with at most six decimals, within these bounds.
    pub fn number(&self, min: i64, max: i64) -> Option<Number> {
        let Value::Number(text) = self.value else {
            self.wrong(format!("is {}, not a number", self.value.kind()));
            return None;
        };
        let read = Decimal::parse(text).ok().and_then(Decimal::cash_exact).map(|micros| micros.0);
        let read = read.filter(|micros| (min * 1_000_000..=max * 1_000_000).contains(micros));
        if read.is_none() {
            self.wrong(format!("is {}, not a number from {min} to {max} with at most six decimals", shown(text)));
        }
        read.map(Number)
    }

    /// A moment as RFC 3339.
    pub fn moment(&self) -> Option<Timestamp> {
        let text = self.text(SHOWN_CHARS)?;
        let read = Some(text).filter(|text| text.contains('T')).and_then(instant::read);
        if read.is_none() {
            self.wrong(format!("is {text:?}, not a time like 2026-06-11T19:00:00Z"));
        }
        read
    }

    /// A day as `YYYY-MM-DD`.
    pub fn day(&self) -> Option<&'a str> {
        let text = self.text(SHOWN_CHARS)?;
        let is_day = text.len() == 10 && text.as_bytes()[4] == b'-' && instant::read(text).is_some();
        if !is_day {
            self.wrong(format!("is {text:?}, not a day like 2026-06-11"));
        }
        is_day.then_some(text)
    }

    /// An address of the web.
    pub fn address(&self) -> Option<&'a str> {
        let text = self.text(2_048)?;
        let is_address = text.starts_with("https://") || text.starts_with("http://");
        if !is_address {
            self.wrong("is not an address that begins with https:// or http://");
        }
        is_address.then_some(text)
    }

    /// Whether this is a text.
    pub fn is_text(&self) -> bool {
        matches!(self.value, Value::Text(_))
    }

    /// Whether this is null.
    pub fn is_null(&self) -> bool {
        matches!(self.value, Value::Null)
    }
}

impl<'a> Fields<'a> {
    /// A field that may be absent; null counts as absent.
    pub fn optional<T>(&self, name: &str, read: impl FnOnce(Item<'_>) -> Option<T>) -> Option<T> {
        let (_, value) = self.fields.iter().find(|(field, _)| field == name)?;
        let item = Item { value, place: Place::Field(&self.place, name), defects: self.defects };
        if item.is_null() { None } else { read(item) }
    }

    /// A field that must be there. `None` comes with a defect.
    pub fn required<T>(&self, name: &str, read: impl FnOnce(Item<'_>) -> Option<T>) -> Option<T> {
        match self.fields.iter().find(|(field, _)| field == name) {
            None => {
                self.defects.add(Place::Field(&self.place, name), "is missing");
                None
            }
            Some((_, value)) => read(Item { value, place: Place::Field(&self.place, name), defects: self.defects }),
        }
    }

    pub fn wrong(&self, problem: impl Into<String>) {
        self.defects.add(self.place, problem);
    }
}

/// The beginning of a text, for messages.
fn shown(text: &str) -> &str {
    text.char_indices().nth(SHOWN_CHARS).map_or(text, |(end, _)| &text[..end])
}
