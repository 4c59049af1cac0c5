//! Schemas of what a route takes and gives.
//!
//! Bodies and answers are records, whose schemas come from their types ([`super::record`]); parameters declare theirs
//! beside their routes. [`super::openapi`] makes the machine description of both, and the tests check every answer that
//! they see against it. Nothing here runs while a request is answered.

use super::record::Example;
use super::scalar;
use schemars::{JsonSchema, SchemaGenerator};
use wire::fields::OFFSET_MAX;

/// The schema of a parameter, or that of a type.
#[derive(Clone, Copy, Debug)]
pub enum Schema {
    Boolean,
    /// An integer within these bounds.
    Integer {
        min: i64,
        max: i64,
    },
    /// A text of at most this number of characters (`u32::MAX`: no bound is promised).
    Text(u32),
    /// One of these texts, exactly as written here.
    Word(&'static [&'static str]),
    /// See [`Schema::of`].
    Type(fn(&mut SchemaGenerator) -> schemars::Schema),
}

impl Schema {
    /// The schema of a type.
    pub const fn of<T: JsonSchema>() -> Schema {
        Schema::Type(SchemaGenerator::subschema_for::<T>)
    }
}

/// A parameter of the query string, or a request header.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    pub name: &'static str,
    pub schema: Schema,
    pub about: &'static str,
    pub place: ParamIn,
    pub required: bool,
}

/// The part of a request that has a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParamIn {
    Query,
    Header,
}

/// What a route takes as its body.
#[derive(Clone, Copy, Debug)]
pub struct Takes {
    pub schema: Schema,
    pub example: Example,
}

/// One answer of a route that is not a refusal.
#[derive(Clone, Copy, Debug)]
pub struct Gives {
    pub status: u16,
    pub kind: Kind,
    pub example: Example,
}

/// The media type of Parquet files.
pub const PARQUET: &str = "application/vnd.apache.parquet";

/// The media type of pages.
pub const HTML: &str = "text/html; charset=utf-8";

/// The kind of an answer's body.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Json(Schema),
    Csv,
    /// Server-sent events.
    Events,
    /// A Parquet file.
    Parquet,
    /// A page.
    Html,
    /// No body.
    Nothing,
}

impl Param {
    /// An optional parameter of the query string.
    pub const fn query(name: &'static str, schema: Schema, about: &'static str) -> Param {
        Param { name, schema, about, place: ParamIn::Query, required: false }
    }

    /// An optional request header.
    pub const fn header(name: &'static str, schema: Schema, about: &'static str) -> Param {
        Param { name, schema, about, place: ParamIn::Header, required: false }
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
/// A query parameter's `true`, `false`, `1`, `0` in any case is described as a boolean.
pub const BOOLEAN: Schema = Schema::Boolean;

pub const TOKEN_ID: Schema = Schema::of::<scalar::TokenId<'static>>();
pub const VOL: Schema = Schema::of::<scalar::Volume>();
