//! The shapes of JSON on the wire, as constants: what a route says of its parameters, bodies and answers.
//!
//! Bodies and answers that are records have their shapes from their types ([`super::record`]); parameters, and folders
//! that have not moved to records, declare them beside their routes. [`super::openapi`] makes the machine description of
//! both, and the tests hold every answer they see against it. Nothing here runs while a request is answered.

use super::record::Example;
use super::scalar;
use schemars::{JsonSchema, SchemaGenerator};
use wire::fields::OFFSET_MAX;

/// The shape of one JSON value.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    Boolean,
    /// An integer within these bounds.
    Integer {
        min: i64,
        max: i64,
    },
    /// A JSON number with a fraction.
    Number,
    /// A text of at most so many characters (`u32::MAX`: no bound is promised).
    Text(u32),
    /// One of these texts, exactly as written here.
    Word(&'static [&'static str]),
    /// A text of a format that has a name and a pattern.
    Format(&'static Format),
    Array(&'static Schema),
    /// An array with so many items.
    List {
        of: &'static Schema,
        min: u32,
        max: u32,
    },
    /// Exactly these values in this order.
    Tuple(&'static [Schema]),
    /// An object whose names are not fixed, such as a map by token.
    Map(&'static Schema),
    Object(&'static Shape),
    /// The value or null.
    Nullable(&'static Schema),
    /// Any one of these.
    OneOf(&'static [Schema]),
    Null,
    /// Any JSON value: what is accepted and ignored.
    Any,
    /// That of a type; see [`Schema::of`].
    Type(fn(&mut SchemaGenerator) -> schemars::Schema),
}

impl Schema {
    /// The schema of a type.
    pub const fn of<T: JsonSchema>() -> Schema {
        Schema::Type(SchemaGenerator::subschema_for::<T>)
    }
}

/// A text with a syntax of its own (wire.md §1, §2).
#[derive(Debug)]
pub struct Format {
    pub name: &'static str,
    pub about: &'static str,
    /// An anchored pattern, ECMA 262.
    pub pattern: &'static str,
}

/// The fields of an object.
#[derive(Debug)]
pub struct Shape {
    /// Unique in the description.
    pub name: &'static str,
    pub about: &'static str,
    pub fields: &'static [Field],
}

/// One field of an object.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    pub name: &'static str,
    pub schema: Schema,
    pub about: &'static str,
    /// The field is always there (it may be null where the schema says so).
    pub required: bool,
}

/// A parameter of the query string, or a request header.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub schema: Schema,
    pub about: &'static str,
    pub place: Place,
    pub required: bool,
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Query,
    Header,
}

/// What a route takes as its body.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    pub schema: Schema,
    pub example: Example,
}

/// One answer of a route that is no refusal.
#[derive(Clone, Copy, Debug)]
pub struct Gives {
    pub status: u16,
    pub kind: Kind,
    pub example: Example,
}

/// The kind of an answer's body.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Json(Schema),
    Csv,
    /// Server-sent events.
    Events,
}

/// A field that is always there.
pub const fn field(name: &'static str, schema: Schema, about: &'static str) -> Field {
    Field { name, schema, about, required: true }
}

/// A field that may be left out.
pub const fn optional(name: &'static str, schema: Schema, about: &'static str) -> Field {
    Field { name, schema, about, required: false }
}

impl Shape {
    pub const fn new(name: &'static str, about: &'static str, fields: &'static [Field]) -> Shape {
        Shape { name, about, fields }
    }
}

impl Param {
    /// An optional parameter of the query string.
    pub const fn query(name: &'static str, schema: Schema, about: &'static str) -> Param {
        Param { name, schema, about, place: Place::Query, required: false }
    }

    /// An optional request header.
    pub const fn header(name: &'static str, schema: Schema, about: &'static str) -> Param {
        Param { name, schema, about, place: Place::Header, required: false }
    }

    pub const fn required(mut self) -> Param {
        self.required = true;
        self
    }
}

/// Largest integer that every client reads exactly (2⁵³ − 1).
pub(super) const INTEGER_MAX: i64 = (1 << 53) - 1;

/// An id or a count.
pub const INTEGER: Schema = Schema::Integer { min: 0, max: INTEGER_MAX };
/// Rows that are passed over.
pub const OFFSET: Schema = Schema::Integer { min: 0, max: OFFSET_MAX };
pub const TEXT: Schema = Schema::Text(u32::MAX);
pub const TEXT_OR_NULL: Schema = Schema::Nullable(&TEXT);
/// A query parameter's `true`, `false`, `1`, `0` in any case is described as a boolean.
pub const BOOLEAN: Schema = Schema::Boolean;

/// Declares schemas of scalars: the constant is the schema of such a text, and `…_OR_NULL` the same or null.
macro_rules! of_scalars {
    ($($constant:ident / $or_null:ident = $scalar:ty;)*) => {$(
        pub const $constant: Schema = Schema::of::<$scalar>();
        pub const $or_null: Schema = Schema::Nullable(&$constant);
    )*};
}

of_scalars! {
    MONEY / MONEY_OR_NULL = scalar::Money;
    PRICE / PRICE_OR_NULL = scalar::Price;
    QTY / QTY_OR_NULL = scalar::Quantity;
    VOL / VOL_OR_NULL = scalar::Volume;
    RATE / RATE_OR_NULL = scalar::Rate<'static>;
    PCT / PCT_OR_NULL = scalar::Percentage<'static>;
    DECIMAL / DECIMAL_OR_NULL = scalar::Decimal<'static>;
    TS / TS_OR_NULL = scalar::Timestamp;
    MILLIS / MILLIS_OR_NULL = scalar::Milliseconds;
    TOKEN_ID / TOKEN_ID_OR_NULL = scalar::TokenId<'static>;
    CONDITION_ID / CONDITION_ID_OR_NULL = scalar::ConditionId<'static>;
    ORDER_HEX / ORDER_HEX_OR_NULL = scalar::OrderHexId<'static>;
    UUID / UUID_OR_NULL = scalar::Uuid<'static>;
}

/// What the `venue_time` of a fill is.
pub const VENUE_TIME: &str =
    "Time of the recording that the fill was made against; null where the venue's time is server time.";
