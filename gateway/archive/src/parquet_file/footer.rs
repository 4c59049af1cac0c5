//! The metadata of a Parquet file. Every size is checked here, before anything is read or allocated by it
//! (gateway/docs/archive.md §6).

use super::source::{Headers, Source};
use super::vet;
use crate::error::Refusal;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, PageIndexPolicy, ParquetMetaData, ParquetMetaDataReader};
use parquet::file::page_index::offset_index::PageLocation;
use parquet::schema::types::ColumnDescPtr;

/// Bounds of a file.
/// Largest file.
pub const FILE_BYTES_MAX: u64 = 8 << 30;
const FOOTER_BYTES_MAX: u64 = 64 << 20;
pub(crate) const ROWS_MAX: u64 = 1_000_000_000;
/// Decoded bytes of a row group, and of a page.
const ROW_GROUP_BYTES_MAX: u64 = 1 << 30;
pub(super) const PAGE_BYTES_MAX: u64 = 64 << 20;

pub(crate) const MAGIC: &[u8; 4] = b"PAR1";

/// The metadata of a file, with its bounds checked.
#[derive(Debug)]
pub(crate) struct Footer {
    metadata: ParquetMetaData,
    /// The leaves of the schema, in the order of the column chunks.
    pub(crate) columns: Vec<ColumnDescPtr>,
    pub(crate) row_groups: Vec<RowGroup>,
    pub(crate) rows: u64,
}

/// The rows of a row group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowGroup {
    pub(crate) rows: u64,
    /// Number of its first row.
    pub(crate) first_row: u64,
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
        let named = |reason: String| Refusal::at(start, format!("footer: {reason}"));
        vet::footer(&bytes).map_err(|refusal| named(refusal.reason))?;
        let metadata = ParquetMetaDataReader::decode_metadata(&bytes).map_err(|error| named(error.to_string()))?;
        let row_groups = row_groups(&metadata, start)?;
        let columns = metadata.file_metadata().schema_descr().columns().to_vec();
        let rows = row_groups.last().map_or(0, |last| last.first_row + last.rows);
        let metadata = with_page_index(metadata, source, start)?;
        Ok(Footer { metadata, columns, row_groups, rows })
    }

    /// The value of a key of the metadata.
    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        let pairs = self.metadata.file_metadata().key_value_metadata()?;
        pairs.iter().find(|pair| pair.key == key)?.value.as_deref()
    }

    pub(crate) fn created_by(&self) -> Option<&str> {
        self.metadata.file_metadata().created_by()
    }

    /// The pages of one column of one row group.
    pub(super) fn chunk(&self, group: usize, leaf: usize) -> &ColumnChunkMetaData {
        self.metadata.row_group(group).column(leaf)
    }

    /// Bytes of these pages decoded, as the footer states them.
    pub(super) fn decoded_bytes(&self, group: usize, leaf: usize) -> u64 {
        u64::try_from(self.chunk(group, leaf).uncompressed_size()).unwrap_or(0)
    }

    /// Bytes that it takes in memory.
    pub(crate) fn memory(&self) -> usize {
        self.metadata.memory_size() + self.row_groups.capacity() * size_of::<RowGroup>() + size_of::<Footer>()
    }

    /// A failure of the library in these pages.
    pub(super) fn failed(&self, group: usize, leaf: usize, error: ParquetError) -> Refusal {
        let (offset, column) = (self.offset(group, leaf), self.columns[leaf].name());
        let (offset, reason) = match error {
            // One of ours, with its position if it is from the source.
            ParquetError::External(error) => match error.downcast::<Refusal>() {
                Ok(refusal) => (refusal.offset.or(offset), refusal.reason),
                Err(error) => (None, error.to_string()),
            },
            error => (offset, error.to_string()),
        };
        let reason = format!("row group {group}, column {column}: {reason}");
        Refusal::new(reason).at_byte_of(offset)
    }

    /// First byte of these pages.
    pub(crate) fn offset(&self, group: usize, leaf: usize) -> Option<u64> {
        Some(self.chunk(group, leaf).byte_range().0)
    }

    /// Where these pages are, if the file has a page index.
    pub(crate) fn pages(&self, group: usize, leaf: usize) -> Option<&[PageLocation]> {
        let locations = self.metadata.offset_index()?.get(group)?.get(leaf)?.page_locations();
        (!locations.is_empty()).then_some(&locations[..])
    }
}

/// Checks counts and places of all row groups; `end` is where the footer starts.
fn row_groups(metadata: &ParquetMetaData, end: u64) -> Result<Vec<RowGroup>, Refusal> {
    let stated = metadata.file_metadata().num_rows();
    // Some writers give such a file a row group without pages. It is not damaged.
    if stated == 0 && metadata.num_row_groups() > 0 && metadata.row_groups().iter().all(|group| group.num_rows() == 0) {
        return Err(Refusal::new("the file has no rows"));
    }
    let (mut found, mut first_row) = (Vec::with_capacity(metadata.num_row_groups()), 0u64);
    for (number, group) in metadata.row_groups().iter().enumerate() {
        let wrong = |what: String| Refusal::new(format!("row group {number}: {what}"));
        let rows = u64::try_from(group.num_rows()).ok().filter(|rows| *rows <= ROWS_MAX);
        let rows = rows.ok_or_else(|| wrong(format!("it has {} rows", group.num_rows())))?;
        let mut decoded = 0u64;
        for chunk in group.columns() {
            check_chunk(chunk, rows, end)
                .map_err(|what| wrong(format!("column {}: {what}", chunk.column_path().string())))?;
            decoded = decoded.saturating_add(u64::try_from(chunk.uncompressed_size()).unwrap_or(u64::MAX));
        }
        if decoded > ROW_GROUP_BYTES_MAX {
            return Err(wrong(format!("it has {decoded} bytes decoded; at most {ROW_GROUP_BYTES_MAX} are read")));
        }
        found.push(RowGroup { rows, first_row });
        first_row += rows;
        if first_row > ROWS_MAX {
            return Err(wrong(format!("with it, the file has {first_row} rows; at most {ROWS_MAX} are read")));
        }
    }
    if i64::try_from(first_row) != Ok(stated) {
        return Err(Refusal::new(format!("the row groups have {first_row} rows, the file states {stated}")));
    }
    Ok(found)
}

fn check_chunk(chunk: &ColumnChunkMetaData, rows: u64, end: u64) -> Result<(), String> {
    if chunk.file_path().is_some_and(|path| !path.is_empty()) {
        return Err("its pages are in another file".to_owned());
    }
    // The library unpacks GZIP and Brotli without a bound: a page of 64 KiB may become gigabytes.
    if !matches!(chunk.compression(), Compression::UNCOMPRESSED | Compression::ZSTD(_) | Compression::SNAPPY) {
        return Err(format!("the compression {} is not read", chunk.compression()));
    }
    let data = chunk.data_page_offset();
    let start = chunk.dictionary_page_offset().map_or(data, |dictionary| dictionary.min(data));
    let last = start.checked_add(chunk.compressed_size());
    let is_inside = start >= 4
        && chunk.compressed_size() >= 0
        && last.is_some_and(|last| last >= data && u64::try_from(last).is_ok_and(|last| last <= end));
    if !is_inside {
        let len = chunk.compressed_size();
        return Err(format!("its pages, {len} bytes at {start}, are outside of the data"));
    }
    let is_flat = chunk.column_descr().max_rep_level() == 0;
    if is_flat && u64::try_from(chunk.num_values()) != Ok(rows) {
        return Err(format!("it has {} values for {rows} rows", chunk.num_values()));
    }
    Ok(())
}

/// Reads the page index, of which the bounds are checked first. Without one, or with a damaged one, pages are found by
/// their headers.
fn with_page_index(metadata: ParquetMetaData, source: &Source, end: u64) -> Result<ParquetMetaData, Refusal> {
    let mut bytes = 0u64;
    for chunk in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let (Some(at), Some(len)) = (chunk.offset_index_offset(), chunk.offset_index_length()) else {
            return Ok(metadata);
        };
        let place = u64::try_from(at).ok().zip(u64::try_from(len).ok());
        let place = place.filter(|(at, len)| at.checked_add(*len).is_some_and(|last| last <= end));
        let Some((at, len)) = place.filter(|(_, len)| bytes + len <= FOOTER_BYTES_MAX) else {
            return Err(Refusal::new(format!("the page index of {len} bytes at {at} is outside of its bounds")));
        };
        bytes += len;
        vet::structure(&source.read(at, len)?).map_err(|refusal| refusal.at_byte(at))?;
    }
    let mut reader = ParquetMetaDataReader::new_with_metadata(metadata)
        .with_column_index_policy(PageIndexPolicy::Skip)
        .with_offset_index_policy(PageIndexPolicy::Optional);
    let failed = |error: ParquetError| Refusal::new(format!("page index: {error}"));
    reader.read_page_indexes(&source.chunks(Headers::Nowhere)).map_err(failed)?;
    let metadata = reader.finish().map_err(failed)?;
    check_pages(&metadata)?;
    Ok(metadata)
}

/// Checks that the pages of the index follow each other within their chunks.
fn check_pages(metadata: &ParquetMetaData) -> Result<(), Refusal> {
    let Some(index) = metadata.offset_index() else { return Ok(()) };
    for (group, pages) in metadata.row_groups().iter().zip(index) {
        for (chunk, pages) in group.columns().iter().zip(pages) {
            let (start, len) = chunk.byte_range();
            let (mut at, mut row) = (start as i64, 0);
            for (number, page) in pages.page_locations().iter().enumerate() {
                // What is before the first page is the dictionary.
                let before = page.offset.saturating_sub(at);
                let is_next = (0..=PAGE_BYTES_MAX as i64).contains(&before) && page.compressed_page_size >= 0;
                let is_row = if number == 0 { page.first_row_index == 0 } else { page.first_row_index > row };
                at = page.offset.saturating_add(i64::from(page.compressed_page_size));
                row = page.first_row_index;
                if !is_next || !is_row || at as u64 > start + len || row >= group.num_rows().max(1) {
                    let name = chunk.column_path().string();
                    return Err(Refusal::new(format!("column {name}: page {number} of the page index is misplaced")));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Chance, row};
    use crate::write::HourWriter;
    use parquet::basic::{BrotliLevel, GzipLevel, ZstdLevel};

    /// Compressions of other writers are read if the library bounds what a page becomes.
    #[test]
    fn compressions() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hour.parquet");
        let mut writer = HourWriter::create(&path, None).expect("created");
        writer.push(&row(&mut Chance::seeded(1), 1, 1)).expect("pushed");
        writer.finish().expect("finished");
        let source = Source::open(&path).expect("a file");
        let (footer, len) = (Footer::read(&source).expect("a footer"), source.len());
        let cases = [
            (Compression::UNCOMPRESSED, None),
            (Compression::SNAPPY, None),
            (Compression::ZSTD(ZstdLevel::default()), None),
            (Compression::GZIP(GzipLevel::default()), Some("GZIP")),
            (Compression::BROTLI(BrotliLevel::default()), Some("BROTLI")),
            (Compression::LZ4, Some("LZ4")),
            (Compression::LZ4_RAW, Some("LZ4_RAW")),
            (Compression::LZO, Some("LZO")),
        ];
        for (compression, refused) in cases {
            let chunk =
                footer.chunk(0, 0).clone().into_builder().set_compression(compression).build().expect("a chunk");
            match (check_chunk(&chunk, 1, len), refused) {
                (Ok(()), None) => {}
                (Err(error), Some(name)) => assert!(error.contains(name), "{error}"),
                (found, _) => panic!("{compression}: {found:?}"),
            }
        }
        println!("compressions: {} cases", cases.len());
    }
}
