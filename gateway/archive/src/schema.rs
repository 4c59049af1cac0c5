//! The sixteen columns of an hour, as public archives have them (gateway/docs/archive.md §2).

use crate::error::Refusal;
use crate::parquet_file::columns::Wanted;
use crate::parquet_file::footer::{Column, Footer, Logical, Physical, Unit};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::schema::types::{Type, TypePtr};
use std::sync::Arc;

/// Number of columns.
pub const COLUMNS: usize = 16;

pub(crate) const RECEIVED: usize = 0;
pub(crate) const SOURCE: usize = 1;
pub(crate) const MARKET: usize = 2;
pub(crate) const EVENT: usize = 3;
pub(crate) const TOKEN: usize = 4;
pub(crate) const BIDS: usize = 5;
pub(crate) const ASKS: usize = 6;
pub(crate) const PRICE: usize = 7;
pub(crate) const SIZE: usize = 8;
pub(crate) const SIDE: usize = 9;
pub(crate) const BEST_BID: usize = 10;
pub(crate) const BEST_ASK: usize = 11;
pub(crate) const FEE_RATE: usize = 12;
pub(crate) const HASH: usize = 13;
pub(crate) const OLD_TICK: usize = 14;
pub(crate) const NEW_TICK: usize = 15;

/// Columns before this one are never null.
pub(crate) const REQUIRED: usize = 5;

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Time,
    /// Texts of this many bytes.
    Id(i32),
    Text,
    Decimal(i32, i32),
    Uint16,
}

const PRICES: Kind = Kind::Decimal(9, 4);

/// Names and types, in order.
pub(crate) const TABLE: [(&str, Kind); COLUMNS] = [
    ("timestamp_received", Kind::Time),
    ("timestamp", Kind::Time),
    ("market", Kind::Id(66)),
    ("event_type", Kind::Text),
    ("asset_id", Kind::Text),
    ("bids", Kind::Text),
    ("asks", Kind::Text),
    ("price", PRICES),
    ("size", Kind::Decimal(18, 6)),
    ("side", Kind::Text),
    ("best_bid", PRICES),
    ("best_ask", PRICES),
    ("fee_rate_bps", Kind::Uint16),
    ("transaction_hash", Kind::Text),
    ("old_tick_size", PRICES),
    ("new_tick_size", PRICES),
];

/// Where the columns are in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    leaves: [usize; COLUMNS],
    /// Names of further columns.
    pub(crate) extra: Vec<String>,
}

impl Kind {
    pub(crate) fn is_text(self) -> bool {
        matches!(self, Kind::Id(_) | Kind::Text)
    }

    /// Whether a column of a file has this type. Other writers store decimals as bytes and times in finer units; values
    /// that are not exact here are found as they are read.
    fn is_of(self, column: &Column) -> bool {
        match (self, column.physical, column.logical) {
            (Kind::Time, Physical::Int64, Logical::Timestamp { is_utc, .. }) => is_utc,
            (Kind::Id(width), Physical::Fixed, _) => column.width == width as u64,
            (Kind::Id(_) | Kind::Text, Physical::Bytes, logical) => matches!(logical, Logical::Text | Logical::None),
            (Kind::Decimal(precision, scale), physical, Logical::Decimal { precision: of, scale: to }) => {
                let is_stored = match physical {
                    Physical::Fixed => (1..=16).contains(&column.width),
                    other => other != Physical::Other,
                };
                is_stored && (of, to) == (i64::from(precision), i64::from(scale))
            }
            (Kind::Uint16, Physical::Int32, Logical::Integer { bits: 16, is_signed: false }) => true,
            _ => false,
        }
    }

    fn describe(self) -> String {
        match self {
            Kind::Time => "timestamp[ms, UTC]".to_owned(),
            Kind::Id(width) => format!("fixed_size_binary[{width}]"),
            Kind::Text => "string".to_owned(),
            Kind::Decimal(precision, scale) => format!("decimal({precision},{scale})"),
            Kind::Uint16 => "uint16".to_owned(),
        }
    }
}

fn describe(column: &Column) -> String {
    let stored = match column.physical {
        Physical::Int32 => "int32".to_owned(),
        Physical::Int64 => "int64".to_owned(),
        Physical::Bytes => "binary".to_owned(),
        Physical::Fixed => format!("fixed_size_binary[{}]", column.width),
        Physical::Other => "another type".to_owned(),
    };
    match column.logical {
        Logical::None => stored,
        Logical::Text => "string".to_owned(),
        Logical::Decimal { precision, scale } => format!("decimal({precision},{scale}) as {stored}"),
        Logical::Timestamp { is_utc, unit } => {
            let unit = match unit {
                Unit::Millis => "ms",
                Unit::Micros => "us",
                Unit::Nanos => "ns",
            };
            format!("timestamp[{unit}{}] as {stored}", if is_utc { ", UTC" } else { "" })
        }
        Logical::Integer { bits, is_signed } => format!("{}int{bits}", if is_signed { "" } else { "u" }),
        Logical::Other => format!("another type as {stored}"),
    }
}

impl Layout {
    /// Finds the columns of an hour in a file.
    ///
    /// # Errors
    /// All columns that are missing or have another type, by name. Files of other archives are named as such.
    pub(crate) fn of(footer: &Footer) -> Result<Layout, Refusal> {
        let columns = &footer.columns;
        let has = |name: &str| columns.iter().any(|column| column.name == name);
        if has("data") && !has("asset_id") {
            return Err(Refusal::new("layout v1 (column `data`) is not read: half of its markets are missing"));
        }
        if has("sequence") && !has("timestamp") {
            return Err(Refusal::new("layout v3 (column `sequence`) is not read"));
        }
        let (mut leaves, mut wrong) = ([0; COLUMNS], Vec::new());
        for (leaf, (name, kind)) in leaves.iter_mut().zip(TABLE) {
            let mut named = columns.iter().enumerate().filter(|(_, column)| column.name == name);
            match (named.next(), named.next()) {
                (Some((at, column)), None) if column.is_flat && kind.is_of(column) => *leaf = at,
                (Some((_, column)), None) => {
                    wrong.push(format!("`{name}` is {}, not {}", describe(column), kind.describe()));
                }
                (Some(_), Some(_)) => wrong.push(format!("`{name}` is there twice")),
                (None, _) => wrong.push(format!("`{name}` is missing")),
            }
        }
        if !wrong.is_empty() {
            return Err(Refusal::new(format!("columns differ: {}", wrong.join("; "))));
        }
        let extra = columns.iter().map(|column| &column.name).filter(|name| !TABLE.iter().any(|(of, _)| of == name));
        Ok(Layout { leaves, extra: extra.cloned().collect() })
    }

    /// These columns, for a reader of batches.
    pub(crate) fn wanted(&self, columns: &[usize]) -> Vec<Wanted> {
        let wanted = |column: &usize| Wanted {
            leaf: self.leaves[*column],
            column: *column,
            is_text: TABLE[*column].1.is_text(),
            is_required: *column < REQUIRED,
        };
        columns.iter().map(wanted).collect()
    }
}

/// The schema for the library's writer.
pub(crate) fn message() -> parquet::errors::Result<TypePtr> {
    let column = |number: usize, (name, kind): (&str, Kind)| {
        let repetition = if number < REQUIRED { Repetition::REQUIRED } else { Repetition::OPTIONAL };
        let physical = match kind {
            Kind::Time => PhysicalType::INT64,
            Kind::Id(_) => PhysicalType::FIXED_LEN_BYTE_ARRAY,
            Kind::Text => PhysicalType::BYTE_ARRAY,
            Kind::Decimal(18, _) => PhysicalType::INT64,
            Kind::Decimal(..) | Kind::Uint16 => PhysicalType::INT32,
        };
        let builder = Type::primitive_type_builder(name, physical).with_repetition(repetition);
        let builder = match kind {
            Kind::Time => {
                builder.with_logical_type(Some(LogicalType::timestamp(true, parquet::basic::TimeUnit::MILLIS)))
            }
            Kind::Id(width) => builder.with_length(width),
            Kind::Text => builder.with_logical_type(Some(LogicalType::String)),
            Kind::Decimal(precision, scale) => builder
                .with_logical_type(Some(LogicalType::decimal(scale, precision)))
                .with_precision(precision)
                .with_scale(scale),
            Kind::Uint16 => builder.with_logical_type(Some(LogicalType::integer(16, false))),
        };
        builder.build().map(Arc::new)
    };
    let fields: Result<Vec<TypePtr>, _> = TABLE.into_iter().enumerate().map(|(at, row)| column(at, row)).collect();
    Ok(Arc::new(Type::group_type_builder("schema").with_fields(fields?).build()?))
}
