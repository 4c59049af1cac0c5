//! Pages of one column of a row group, from the library's reader, with checks of what their headers and the footer
//! cannot bound: all decoded bytes, and the counts that the decoders allocate by (gateway/docs/archive.md §6).

use super::footer::PAGE_BYTES_MAX;
use super::source::Chunks;
use crate::error::Refusal;
use crate::varint::Reader;
use parquet::basic::Encoding;
use parquet::column::page::{Page, PageMetadata, PageReader};
use parquet::data_type::ByteArray;
use parquet::errors::{ParquetError, Result};
use parquet::file::serialized_reader::SerializedPageReader;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Decoded bytes of a column that its writer may have left out of the footer's sum, such as those of the dictionary.
const SLACK_BYTES: u64 = 1 << 20;
/// Most values of a dictionary: the decoder keeps a handle for each.
const DICTIONARY_VALUES_MAX: u64 = PAGE_BYTES_MAX / size_of::<ByteArray>() as u64;
/// Most lengths of texts in a page.
const LENGTHS_MAX: u64 = PAGE_BYTES_MAX / size_of::<i32>() as u64;

/// Reads pages.
pub(super) struct Pages {
    inner: SerializedPageReader<Chunks>,
    /// Decoded bytes that the footer states for the column, and those that are left of them.
    stated: u64,
    left: u64,
    is_nullable: bool,
    /// Decoded bytes of all columns that are read together.
    decoded: Arc<AtomicU64>,
}

impl Pages {
    /// The pages of a column whose decoded size the footer states.
    pub(super) fn new(
        inner: SerializedPageReader<Chunks>,
        stated: u64,
        is_nullable: bool,
        decoded: Arc<AtomicU64>,
    ) -> Pages {
        Pages { inner, stated, left: stated.saturating_add(SLACK_BYTES), is_nullable, decoded }
    }

    fn check(&mut self, page: &Page) -> std::result::Result<(), Refusal> {
        let bytes = page.buffer().len() as u64;
        let left = self.left.checked_sub(bytes);
        let stated = self.stated;
        self.left = left.ok_or_else(|| Refusal::new(format!("its pages have more than {stated} bytes decoded")))?;
        self.decoded.fetch_add(bytes, Ordering::Relaxed);
        check_counts(page, self.is_nullable)
    }
}

/// Checks the counts by which the decoder of a page allocates.
fn check_counts(page: &Page, is_nullable: bool) -> std::result::Result<(), Refusal> {
    if page.is_dictionary_page() {
        let (values, bytes) = (u64::from(page.num_values()), page.buffer().len() as u64);
        if values > bytes || values > DICTIONARY_VALUES_MAX {
            return Err(Refusal::new(format!("its dictionary of {bytes} bytes has {values} values")));
        }
        return Ok(());
    }
    match page.encoding() {
        // Each text is made from the one before it: a small page could become gigabytes.
        Encoding::DELTA_BYTE_ARRAY => Err(Refusal::new("the encoding DELTA_BYTE_ARRAY is not read")),
        Encoding::DELTA_LENGTH_BYTE_ARRAY => check_lengths(page, is_nullable),
        _ => Ok(()),
    }
}

/// All lengths of texts are decoded in one step, as many as the data states.
fn check_lengths(page: &Page, is_nullable: bool) -> std::result::Result<(), Refusal> {
    let refusal = || Refusal::new("the lengths of its texts are damaged");
    let values = values_of(page, is_nullable).ok_or_else(refusal)?;
    let mut reader = Reader::new(values);
    // The size of a block and the number of its parts are before the count.
    let _ = (reader.number(), reader.number());
    let count = reader.number().ok_or_else(refusal)?;
    if count > u64::from(page.num_values()) || count > LENGTHS_MAX {
        return Err(Refusal::new(format!("a page of {} values has {count} lengths of texts", page.num_values())));
    }
    Ok(())
}

/// The bytes after the levels of a page of a column that is not nested.
fn values_of(page: &Page, is_nullable: bool) -> Option<&[u8]> {
    let bytes = page.buffer();
    let levels = match page {
        Page::DataPageV2 { def_levels_byte_len, rep_levels_byte_len, .. } => {
            (*def_levels_byte_len as usize).checked_add(*rep_levels_byte_len as usize)?
        }
        _ if !is_nullable => 0,
        Page::DataPage { def_level_encoding: Encoding::RLE, .. } => {
            let len = u32::from_le_bytes(*bytes.first_chunk()?);
            (len as usize).checked_add(size_of::<u32>())?
        }
        // One bit each.
        _ => page.num_values().div_ceil(u8::BITS) as usize,
    };
    bytes.get(levels..)
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        let Some(page) = self.inner.get_next_page()? else { return Ok(None) };
        self.check(&page).map_err(|refusal| ParquetError::External(refusal.into()))?;
        Ok(Some(page))
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Result<bool> {
        self.inner.at_record_boundary()
    }
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Result<Page>> {
        self.get_next_page().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parquet_file::columns::Columns;
    use crate::parquet_file::source::{Headers, Source};
    use crate::row::Event;
    use crate::testing::{Chance, row};
    use crate::write::HourWriter;
    use engine::amount::{Price, Qty};

    fn data(encoding: Encoding, bytes: &[u8]) -> Page {
        data_of(3, encoding, bytes)
    }

    fn data_of(num_values: u32, encoding: Encoding, bytes: &[u8]) -> Page {
        Page::DataPage {
            buf: bytes.to_vec().into(),
            num_values,
            encoding,
            def_level_encoding: Encoding::RLE,
            rep_level_encoding: Encoding::RLE,
            statistics: None,
        }
    }

    fn dictionary(bytes: usize, num_values: u32) -> Page {
        Page::DictionaryPage {
            buf: vec![0; bytes].into(),
            num_values,
            encoding: Encoding::PLAIN_DICTIONARY,
            is_sorted: false,
        }
    }

    #[test]
    fn counts_that_pages_cannot_hold_are_refused() {
        let lengths = Encoding::DELTA_LENGTH_BYTE_ARRAY;
        let version_2 = |bytes: &[u8]| Page::DataPageV2 {
            buf: bytes.to_vec().into(),
            num_values: 3,
            encoding: lengths,
            num_nulls: 0,
            num_rows: 3,
            def_levels_byte_len: 2,
            rep_levels_byte_len: 0,
            is_compressed: true,
            statistics: None,
        };
        // Blocks of 128 values in 4 parts, then the count.
        let cases = [
            (data(lengths, &[0x80, 1, 4, 3]), false, true),
            (data(lengths, &[0x80, 1, 4, 4]), false, false),
            (data(lengths, &[0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0x0f]), false, false),
            (data(lengths, &[0x80]), false, false),
            (data_of(1 << 30, lengths, &[0x80, 1, 4, 0x80, 0x80, 0x80, 0x80, 4]), false, false),
            (data(lengths, &[2, 0, 0, 0, 6, 1, 0x80, 1, 4, 3]), true, true),
            (data(lengths, &[2, 0, 0, 0, 6, 1, 0x80, 1, 4, 4]), true, false),
            (data(lengths, &[0xff, 0xff, 0xff, 0xff]), true, false),
            (version_2(&[6, 1, 0x80, 1, 4, 3]), true, true),
            (version_2(&[6, 1, 0x80, 1, 4, 9]), true, false),
            (data(Encoding::PLAIN, &[]), true, true),
            (data(Encoding::DELTA_BYTE_ARRAY, &[0x80, 1, 4, 3]), false, false),
            (dictionary(8, 2), false, true),
            (dictionary(8, 9), false, false),
            (dictionary(5 << 20, 3 << 20), false, false),
        ];
        for (number, (page, is_nullable, is_accepted)) in cases.iter().enumerate() {
            assert_eq!(check_counts(page, *is_nullable).is_ok(), *is_accepted, "{number}");
        }
        println!("counts of pages: {} cases", cases.len());
    }

    /// The footer of a file states less than its pages become.
    #[test]
    fn pages_with_more_bytes_than_the_footer_states_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("hour.parquet");
        let mut writer = HourWriter::create(&path, None).expect("created");
        let mut row = row(&mut Chance::seeded(1), 1, 1);
        for number in 1..40 {
            let level = |price: u16| (Price(price), Qty(1_000_000_007 + number));
            row.event = Event::Book { bids: (1..9_999).map(level).collect(), asks: Vec::new() };
            writer.push(&row).expect("pushed");
        }
        writer.finish().expect("finished");
        let Columns { source, footer } = Columns::open(Source::open(&path).expect("a file")).expect("a footer");
        let whole = footer.decoded_bytes(0, crate::schema::BIDS);
        assert!(whole > 4 * SLACK_BYTES, "{whole}");
        for (stated, is_accepted) in [(whole, true), (whole / 2, false), (1, false)] {
            let pages = footer.pages(0, crate::schema::BIDS).map(<[_]>::to_vec);
            let source = Arc::new(source.chunks(Headers::InRanges));
            let chunk = footer.chunk(0, crate::schema::BIDS);
            let inner = SerializedPageReader::new(source, chunk, 39, pages).expect("a reader");
            let decoded = Arc::<AtomicU64>::default();
            let read = Pages::new(inner, stated, true, decoded.clone()).collect::<Result<Vec<Page>>>();
            assert_eq!(read.is_ok(), is_accepted, "{stated} of {whole}");
            let decoded = decoded.load(Ordering::Relaxed);
            assert!(decoded <= stated + SLACK_BYTES, "{decoded}");
        }
        println!("sizes that a footer states: 3 cases");
    }
}
