//! JSON records: one type from which come a record's text, its schema and its example.
//!
//! # A record
//!
//! 1. A `struct` in `record!`, with one line for each field in the order of the text: name, type, value in the example,
//!    and a description for clients where the name is not enough: `id: u64 = 318, "What it is revoked by.";`. Options of
//!    serde and schemars stand before the line. The doc comment of the struct is its description; comments that are not
//!    for clients begin with `//`. Rows borrow: `Row<'a>`, `&'a str`.
//! 2. Types of fields: unsigned integers, `&str`, the scalars of [`scalar`](super::scalar), enums of `words!`, other
//!    records, `Vec`, slices and tuples, [`ByName`] for an object whose names are not fixed. Bounds:
//!    `#[schemars(range(min = 1, max = 200))]`, `#[schemars(length(max = 100))]`.
//! 3. Null: `Option<T>`. Absent: an `Option` whose line ends in `skip_serializing_if`. Absent or null:
//!    `Option<Option<T>>` in an answer, `Option<T>` in a request, with `#[schemars(extend("x-or-null" = true))]` before
//!    it.
//! 4. One of several records: an enum with `#[derive(Serialize, JsonSchema)]`, `#[serde(untagged)]`,
//!    `#[schemars(inline)]`, and for a route `impl Record`.
//! 5. Values of examples: `Price::of("0.42")`, `"free".into()` of words, `Row::example()` of records, `Vec::example()` of
//!    a list of one.
//! 6. Routes: `.takes::<T>()`, `.gives::<Row>(200)`, `.gives::<Vec<Row>>(200)`; for an answer with another example than
//!    its type, `.gives_with::<T>(200, Example::Of(|| value(&…)))`. Frames: `Message::of::<T>(name, about)`.
//! 7. A handler makes the record (`Row::new(…)`) and answers with `Reply::json(&record)`. A request body is a record that
//!    its reader fills with what was sent, with methods for what that means; see `api/keys/request.rs`.
//!
//! Texts of the three hottest answers (order, book, frames of the market channel) are written by hand; their types exist
//! for the description, and a test compares both.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;
use std::borrow::Cow;

/// A JSON value that a client sends or gets.
pub trait Record: Serialize + JsonSchema {
    /// One as it is sent, for the description.
    fn example() -> Self;
}

/// Declares records: each field with its type, its value in the example, and what it is.
///
/// ```ignore
/// record! {
///     /// A trade.
///     pub struct Trade<'a> {
///         price: Price = Price::of("0.42");
///         market: ConditionId<'a> = "0x0f41…".into(), "Where it was.";
///         note: Option<&'a str> = None, "Absent without one.", skip_serializing_if;
///     }
/// }
/// ```
macro_rules! record {
    ($(
        $(#[$about_type:meta])*
        $vis:vis struct $name:ident $(<$life:lifetime>)? {
            $(
                $(#[$of_field:meta])*
                $field_vis:vis $field:ident: $type:ty = $example:expr $(, $about:literal)? $(, $absent:ident)?;
            )*
        }
    )*) => {$(
        #[derive(::serde::Serialize, ::schemars::JsonSchema)]
        $(#[$about_type])*
        $vis struct $name $(<$life>)? {
            $(
                $(#[doc = $about])?
                $(#[serde($absent = "Option::is_none")])?
                $(#[$of_field])*
                $field_vis $field: $type,
            )*
        }

        impl $(<$life>)? $crate::http::record::Record for $name $(<$life>)? {
            fn example() -> Self {
                $name { $($field: $example,)* }
            }
        }
    )*};
}
pub(crate) use record;

/// Declares values that have one of several forms, as enums without a tag: each form with its type, and the example.
///
/// ```ignore
/// forms! {
///     // An id of an order, as text or number.
///     pub SentId<'a> = Text(&'a str), Number(u64); SentId::Number(7);
/// }
/// ```
macro_rules! forms {
    ($(
        $(#[$of_enum:meta])*
        $vis:vis $name:ident $(<$life:lifetime>)? = $($form:ident($(#[$of_form:meta])* $type:ty)),+; $example:expr;
    )*) => {$(
        #[derive(::serde::Serialize, ::schemars::JsonSchema)]
        #[serde(untagged)]
        #[schemars(inline)]
        $(#[$of_enum])*
        $vis enum $name $(<$life>)? {
            $($form($(#[$of_form])* $type),)+
        }

        impl $(<$life>)? $crate::http::record::Record for $name $(<$life>)? {
            fn example() -> Self {
                $example
            }
        }
    )*};
}
pub(crate) use forms;

/// Any JSON value.
impl Record for Value {
    fn example() -> Value {
        Value::Object(Default::default())
    }
}

impl<R: Record> Record for Vec<R> {
    fn example() -> Vec<R> {
        vec![R::example()]
    }
}

/// Appends the text of a record.
pub fn write_record(out: &mut Vec<u8>, record: &impl Serialize) {
    serde_json::to_writer(out, record).expect("a record has texts as names, and its fields do not fail");
}

/// A record as a description contains it.
pub fn value(record: &impl Serialize) -> Value {
    serde_json::to_value(record).expect("a record has texts as names, and its fields do not fail")
}

/// An example in a description.
#[derive(Clone, Copy, Debug)]
pub enum Example {
    /// As it is sent: JSON, or lines of CSV.
    Text(&'static str),
    /// A record; see [`value`].
    Of(fn() -> Value),
}

impl Example {
    /// That of the type.
    pub const fn of<R: Record>() -> Example {
        Example::Of(|| value(&R::example()))
    }

    /// The JSON of it.
    ///
    /// # Panics
    /// When a text is not JSON.
    pub fn value(&self) -> Value {
        match self {
            Example::Text(text) => serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}")),
            Example::Of(make) => make(),
        }
    }

    /// The text of it.
    pub fn text(&self) -> Cow<'static, str> {
        match self {
            Example::Text(text) => (*text).into(),
            Example::Of(make) => make().to_string().into(),
        }
    }
}

/// An object whose names are not fixed, such as prices by token, in the order of these entries.
#[derive(Clone, Debug)]
pub struct ByName<K, V>(pub Vec<(K, V)>);

impl<K: Serialize, V: Serialize> Serialize for ByName<K, V> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<K, V: JsonSchema> JsonSchema for ByName<K, V> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("ByName_{}", V::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "object", "additionalProperties": generator.subschema_for::<V>()})
    }
}

/// The example is empty; a route shows another one with `gives_with`.
impl<K: Serialize + JsonSchema, V: Serialize + JsonSchema> Record for ByName<K, V> {
    fn example() -> Self {
        ByName(Vec::new())
    }
}

/// An array of at least `MIN` and at most `MAX` items.
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct List<T, const MIN: usize, const MAX: usize>(pub Vec<T>);

impl<T: JsonSchema, const MIN: usize, const MAX: usize> JsonSchema for List<T, MIN, MAX> {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        format!("List_{MIN}_{MAX}_{}", T::schema_name()).into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let items = generator.subschema_for::<T>();
        json_schema!({"type": "array", "items": items, "minItems": MIN, "maxItems": MAX})
    }
}

impl<R: Record, const MIN: usize, const MAX: usize> Record for List<R, MIN, MAX> {
    fn example() -> Self {
        List(vec![R::example()])
    }
}

/// An array that is always empty.
#[derive(Clone, Copy, Debug)]
pub struct EmptyList;

impl Serialize for EmptyList {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq([(); 0])
    }
}

impl JsonSchema for EmptyList {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "EmptyList".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "array", "items": {}, "minItems": 0, "maxItems": 0})
    }
}

impl Record for EmptyList {
    fn example() -> Self {
        EmptyList
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::components::Components;
    use crate::http::scalar::{Price, TokenId};
    use crate::http::schema;
    use serde_json::json;

    #[test]
    fn objects_by_name_keep_the_order_of_their_entries() {
        let prices = ByName(vec![(TokenId::from("9"), Price::of("0.42")), (TokenId::from("1"), Price::of("0.5"))]);
        let mut out = Vec::new();
        write_record(&mut out, &prices);
        assert_eq!(String::from_utf8(out).unwrap(), r#"{"9":"0.42","1":"0.50"}"#);
        let schema = Components::default().of(&schema::Schema::of::<ByName<TokenId<'_>, Price>>());
        assert_eq!(schema, json!({"type": "object", "additionalProperties": {"$ref": "#/components/schemas/Price"}}));
    }
}
