//! The footer of a Parquet file: schema, row groups, column chunks, metadata. Every size is checked here, before
//! anything is read or allocated by it (gateway/docs/archive.md §6).

use super::source::Source;
use super::thrift::{Thrift, Type};
use crate::error::Refusal;

/// Bounds of a file.
pub(crate) const FILE_BYTES_MAX: u64 = 8 << 30;
const FOOTER_BYTES_MAX: u64 = 64 << 20;
pub(crate) const ROWS_MAX: u64 = 1_000_000_000;
/// Decoded bytes of a row group, and of a page.
const ROW_GROUP_BYTES_MAX: u64 = 1 << 30;
pub(super) const PAGE_BYTES_MAX: u64 = 64 << 20;
/// Row groups and columns: what the footer of the largest sensible file has, many times over.
const ROW_GROUPS_MAX: usize = 65_536;
const COLUMNS_MAX: usize = 1_024;

pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// What a footer states.
#[derive(Debug, Default)]
pub(crate) struct Footer {
    /// The leaves of the schema, in the order of the column chunks.
    pub(crate) columns: Vec<Column>,
    pub(crate) row_groups: Vec<RowGroup>,
    pub(crate) rows: u64,
    pub(crate) metadata: Vec<(String, String)>,
    pub(crate) created_by: Option<String>,
}

/// A leaf of the schema.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Column {
    /// Names from the root, joined by dots.
    pub(crate) name: String,
    pub(crate) physical: Physical,
    /// Bytes of a value of [`Physical::Fixed`].
    pub(crate) width: u64,
    /// Below the root, not inside a group, and not repeated.
    pub(crate) is_flat: bool,
    pub(crate) is_nullable: bool,
    pub(crate) logical: Logical,
}

/// How values are stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Physical {
    #[default]
    Other,
    Int32,
    Int64,
    Bytes,
    Fixed,
}

/// What values mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Logical {
    #[default]
    None,
    Text,
    Decimal {
        precision: i64,
        scale: i64,
    },
    Timestamp {
        is_utc: bool,
        unit: Unit,
    },
    Integer {
        bits: i64,
        is_signed: bool,
    },
    Other,
}

/// Unit of a timestamp.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Unit {
    #[default]
    Millis,
    Micros,
    Nanos,
}

#[derive(Debug, Default)]
pub(crate) struct RowGroup {
    pub(crate) rows: u64,
    /// Number of its first row.
    pub(crate) first_row: u64,
    pub(crate) chunks: Vec<Chunk>,
}

/// The pages of one column of one row group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) codec: i64,
    pub(crate) values: u64,
    /// First byte and end of the pages, the dictionary included.
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) data_page: u64,
    pub(crate) dictionary_page: Option<u64>,
    uncompressed: u64,
    compressed: u64,
    has_metadata: bool,
    has_own_file: bool,
    is_encrypted: bool,
    /// Offset and length of the offset index.
    pub(crate) offset_index: Option<(u64, u64)>,
}

/// A node of the schema before it is flattened.
#[derive(Default)]
struct Node {
    column: Column,
    children: u64,
    is_repeated: bool,
}

impl Footer {
    /// Reads and checks the footer of a file.
    pub(crate) fn read(source: &Source) -> Result<Footer, Refusal> {
        let len = source.len();
        if len > FILE_BYTES_MAX {
            return Err(Refusal::new(format!("the file has {len} bytes; at most {FILE_BYTES_MAX} are read")));
        }
        if len < 12 {
            return Err(Refusal::new(format!("the file has {len} bytes: it is truncated")));
        }
        if source.read(0, 4)?[..] != MAGIC[..] {
            return Err(Refusal::at(0, "the file does not begin with PAR1"));
        }
        let tail = source.read(len - 8, 8)?;
        if tail[4..] != MAGIC[..] {
            return Err(Refusal::at(len - 4, "the file does not end with PAR1: it is truncated"));
        }
        let footer_len = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
        if footer_len > FOOTER_BYTES_MAX || footer_len > len - 12 {
            return Err(Refusal::at(len - 8, format!("the footer has {footer_len} bytes")));
        }
        let start = len - 8 - footer_len;
        let bytes = source.read(start, footer_len)?;
        let mut footer = Footer::default();
        footer.parse(&bytes).map_err(|refusal| Refusal::at(start, format!("footer: {}", refusal.reason)))?;
        footer.check(start)?;
        Ok(footer)
    }

    fn parse(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let mut nodes: Vec<Node> = Vec::new();
        let this = self;
        Thrift::new(bytes).structure(|thrift, id, of_type| match (id, of_type) {
            (2, Type::List) => thrift.list(|thrift| {
                if nodes.len() > COLUMNS_MAX {
                    return Err(Refusal::new(format!("the schema has more than {COLUMNS_MAX} columns")));
                }
                nodes.push(node(thrift)?);
                Ok(())
            }),
            (3, Type::I64) => {
                this.rows = thrift.count()?;
                Ok(())
            }
            (4, Type::List) => thrift.list(|thrift| {
                if this.row_groups.len() >= ROW_GROUPS_MAX {
                    return Err(Refusal::new(format!("the file has more than {ROW_GROUPS_MAX} row groups")));
                }
                this.row_groups.push(row_group(thrift)?);
                Ok(())
            }),
            (5, Type::List) => thrift.list(|thrift| {
                let (mut key, mut value) = (String::new(), String::new());
                thrift.structure(|thrift, id, of_type| {
                    match (id, of_type) {
                        (1, Type::Binary) => key = thrift.text()?,
                        (2, Type::Binary) => value = thrift.text()?,
                        _ => thrift.skip(of_type)?,
                    }
                    Ok(())
                })?;
                this.metadata.push((key, value));
                Ok(())
            }),
            (6, Type::Binary) => {
                this.created_by = Some(thrift.text()?);
                Ok(())
            }
            (8, _) => Err(Refusal::new("the file is encrypted")),
            _ => thrift.skip(of_type),
        })?;
        this.columns = leaves(nodes)?;
        Ok(())
    }

    /// Checks counts and places; `end` is where the footer starts.
    fn check(&mut self, end: u64) -> Result<(), Refusal> {
        if self.rows > ROWS_MAX {
            return Err(Refusal::new(format!("the file has {} rows; at most {ROWS_MAX} are read", self.rows)));
        }
        let mut first_row = 0u64;
        for (number, group) in self.row_groups.iter_mut().enumerate() {
            let wrong = |what: String| Refusal::new(format!("row group {number}: {what}"));
            group.first_row = first_row;
            if group.rows > ROWS_MAX {
                return Err(wrong(format!("it has {} rows", group.rows)));
            }
            first_row += group.rows;
            if group.chunks.len() != self.columns.len() {
                return Err(wrong(format!("it has {} columns, not {}", group.chunks.len(), self.columns.len())));
            }
            let mut decoded = 0u64;
            for (chunk, column) in group.chunks.iter_mut().zip(&self.columns) {
                let wrong = |what: String| wrong(format!("column {}: {what}", column.name));
                if !chunk.has_metadata || chunk.is_encrypted || chunk.has_own_file {
                    return Err(wrong("its pages are encrypted or in another file".to_owned()));
                }
                decoded = decoded.saturating_add(chunk.uncompressed);
                chunk.start = chunk.dictionary_page.map_or(chunk.data_page, |at| at.min(chunk.data_page));
                chunk.end = chunk.start.saturating_add(chunk.compressed);
                if chunk.start < 4 || chunk.end > end || chunk.data_page > chunk.end {
                    return Err(wrong(format!("its pages are at {}..{}, outside of the data", chunk.start, chunk.end)));
                }
                if column.is_flat && chunk.values != group.rows {
                    return Err(wrong(format!("it has {} values for {} rows", chunk.values, group.rows)));
                }
                if let Some((at, len)) = chunk.offset_index
                    && (at.saturating_add(len) > end || len > FOOTER_BYTES_MAX)
                {
                    return Err(wrong(format!("its page index of {len} bytes is outside of the data")));
                }
            }
            if decoded > ROW_GROUP_BYTES_MAX {
                return Err(wrong(format!("it has {decoded} bytes decoded; at most {ROW_GROUP_BYTES_MAX} are read")));
            }
        }
        if first_row != self.rows {
            return Err(Refusal::new(format!("the row groups have {first_row} rows, the file states {}", self.rows)));
        }
        Ok(())
    }

    /// The value of a key of the metadata.
    pub(crate) fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

/// The leaves of a schema, whose nodes are in depth-first order.
fn leaves(nodes: Vec<Node>) -> Result<Vec<Column>, Refusal> {
    let mut nodes = nodes.into_iter();
    let root = nodes.next().ok_or_else(|| Refusal::new("the schema is empty"))?;
    // For each open group: children that are left, its path, and whether it is repeated.
    let mut open = vec![(root.children, String::new())];
    let mut columns = Vec::new();
    for mut node in nodes {
        while let Some((0, _)) = open.last() {
            open.pop();
        }
        let depth = open.len();
        let Some((left, path)) = open.last_mut() else {
            return Err(Refusal::new("the schema has nodes outside of its root"));
        };
        *left -= 1;
        let name = if path.is_empty() { node.column.name.clone() } else { format!("{path}.{}", node.column.name) };
        if node.children > 0 {
            if depth > 16 {
                return Err(Refusal::new("the schema is nested too deeply"));
            }
            open.push((node.children, name));
        } else {
            node.column.is_flat = depth == 1 && !node.is_repeated;
            node.column.name = name;
            columns.push(node.column);
        }
    }
    if open.iter().any(|(left, _)| *left > 0) {
        return Err(Refusal::new("the schema ends early"));
    }
    Ok(columns)
}

fn node(thrift: &mut Thrift<'_>) -> Result<Node, Refusal> {
    let (mut node, mut converted, mut logical) = (Node::default(), None, None);
    let (mut scale, mut precision) = (0, 0);
    thrift.structure(|thrift, id, of_type| {
        match (id, of_type) {
            (1, Type::I32) => {
                node.column.physical = match thrift.int()? {
                    1 => Physical::Int32,
                    2 => Physical::Int64,
                    6 => Physical::Bytes,
                    7 => Physical::Fixed,
                    _ => Physical::Other,
                }
            }
            (2, Type::I32) => node.column.width = thrift.count()?,
            (3, Type::I32) => {
                let repetition = thrift.int()?;
                node.column.is_nullable = repetition == 1;
                node.is_repeated = repetition == 2;
            }
            (4, Type::Binary) => node.column.name = thrift.text()?,
            (5, Type::I32) => node.children = thrift.count()?,
            (6, Type::I32) => converted = Some(thrift.int()?),
            (7, Type::I32) => scale = thrift.int()?,
            (8, Type::I32) => precision = thrift.int()?,
            (10, Type::Struct) => logical = Some(logical_type(thrift)?),
            _ => thrift.skip(of_type)?,
        }
        Ok(())
    })?;
    // The older annotation, of files that have only that.
    node.column.logical = logical.unwrap_or(match converted {
        Some(0) => Logical::Text,
        Some(5) => Logical::Decimal { precision, scale },
        Some(9) => Logical::Timestamp { is_utc: true, unit: Unit::Millis },
        Some(10) => Logical::Timestamp { is_utc: true, unit: Unit::Micros },
        Some(bits @ 11..=14) => Logical::Integer { bits: 8 << (bits - 11), is_signed: false },
        Some(bits @ 15..=18) => Logical::Integer { bits: 8 << (bits - 15), is_signed: true },
        Some(_) => Logical::Other,
        None => Logical::None,
    });
    Ok(node)
}

fn logical_type(thrift: &mut Thrift<'_>) -> Result<Logical, Refusal> {
    let mut logical = Logical::Other;
    thrift.structure(|thrift, id, of_type| {
        logical = match (id, of_type) {
            (1, Type::Struct) => {
                thrift.skip(of_type)?;
                Logical::Text
            }
            (5, Type::Struct) => {
                let (mut scale, mut precision) = (0, 0);
                thrift.structure(|thrift, id, of_type| {
                    match (id, of_type) {
                        (1, Type::I32) => scale = thrift.int()?,
                        (2, Type::I32) => precision = thrift.int()?,
                        _ => thrift.skip(of_type)?,
                    }
                    Ok(())
                })?;
                Logical::Decimal { precision, scale }
            }
            (8, Type::Struct) => {
                let (mut is_utc, mut unit) = (false, Unit::Nanos);
                thrift.structure(|thrift, id, of_type| {
                    match (id, of_type) {
                        (1, Type::True) => is_utc = true,
                        (1, Type::False) => {}
                        (2, Type::Struct) => thrift.structure(|thrift, id, of_type| {
                            unit = match id {
                                1 => Unit::Millis,
                                2 => Unit::Micros,
                                _ => Unit::Nanos,
                            };
                            thrift.skip(of_type)
                        })?,
                        _ => thrift.skip(of_type)?,
                    }
                    Ok(())
                })?;
                Logical::Timestamp { is_utc, unit }
            }
            (10, Type::Struct) => {
                let (mut bits, mut is_signed) = (0, false);
                thrift.structure(|thrift, id, of_type| {
                    match (id, of_type) {
                        (1, Type::Byte) => bits = thrift.plain_byte()?,
                        (2, Type::True) => is_signed = true,
                        (2, Type::False) => {}
                        _ => thrift.skip(of_type)?,
                    }
                    Ok(())
                })?;
                Logical::Integer { bits, is_signed }
            }
            _ => {
                thrift.skip(of_type)?;
                Logical::Other
            }
        };
        Ok(())
    })?;
    Ok(logical)
}

fn row_group(thrift: &mut Thrift<'_>) -> Result<RowGroup, Refusal> {
    let mut group = RowGroup::default();
    thrift.structure(|thrift, id, of_type| match (id, of_type) {
        (1, Type::List) => thrift.list(|thrift| {
            if group.chunks.len() > COLUMNS_MAX {
                return Err(Refusal::new(format!("a row group has more than {COLUMNS_MAX} columns")));
            }
            group.chunks.push(chunk(thrift)?);
            Ok(())
        }),
        (3, Type::I64) => {
            group.rows = thrift.count()?;
            Ok(())
        }
        _ => thrift.skip(of_type),
    })?;
    Ok(group)
}

fn chunk(thrift: &mut Thrift<'_>) -> Result<Chunk, Refusal> {
    let mut chunk = Chunk::default();
    let (mut index_at, mut index_len) = (None, None);
    thrift.structure(|thrift, id, of_type| {
        match (id, of_type) {
            (1, Type::Binary) => {
                chunk.has_own_file = true;
                thrift.skip(of_type)?;
            }
            (3, Type::Struct) => {
                chunk.has_metadata = true;
                thrift.structure(|thrift, id, of_type| {
                    match (id, of_type) {
                        (4, Type::I32) => chunk.codec = thrift.int()?,
                        (5, Type::I64) => chunk.values = thrift.count()?,
                        (6, Type::I64) => chunk.uncompressed = thrift.count()?,
                        (7, Type::I64) => chunk.compressed = thrift.count()?,
                        (9, Type::I64) => chunk.data_page = thrift.count()?,
                        // Some writers state 0 for no dictionary.
                        (11, Type::I64) => chunk.dictionary_page = Some(thrift.count()?).filter(|at| *at > 0),
                        _ => thrift.skip(of_type)?,
                    }
                    Ok(())
                })?;
            }
            (4, Type::I64) => index_at = Some(thrift.count()?),
            (5, Type::I32) => index_len = Some(thrift.count()?),
            (8 | 9, _) => {
                chunk.is_encrypted = true;
                thrift.skip(of_type)?;
            }
            _ => thrift.skip(of_type)?,
        }
        Ok(())
    })?;
    chunk.offset_index = index_at.zip(index_len);
    Ok(chunk)
}
