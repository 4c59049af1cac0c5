//! Pages of one column in memory, each with the checksum of its bytes, which the library does not write: a damaged page
//! is found when it is read.

use flate2::Crc;
use parking_lot::Mutex;
use parquet::column::page::{CompressedPage, PageWriteSpec, PageWriter};
use parquet::errors::{ParquetError, Result};
use parquet::file::writer::{SerializedPageWriter, TrackedWrite};
use std::sync::Arc;

/// Writes pages into memory.
pub(super) struct Pages {
    bytes: Arc<Mutex<Vec<u8>>>,
}

impl Pages {
    pub(super) fn new(bytes: Arc<Mutex<Vec<u8>>>) -> Pages {
        Pages { bytes }
    }
}

impl PageWriter for Pages {
    fn write_page(&mut self, page: CompressedPage) -> Result<PageWriteSpec> {
        let len = page.data().len();
        let mut checksum = Crc::new();
        checksum.update(page.data());
        let mut whole = TrackedWrite::new(Vec::with_capacity(len + 64));
        let mut spec = SerializedPageWriter::new(&mut whole).write_page(page)?;
        let whole = whole.into_inner()?;
        let (header, data) = whole.split_at(whole.len() - len);
        let header = with_checksum(header, checksum.sum())
            .ok_or_else(|| ParquetError::General("the header of a page has another form".to_owned()))?;
        let mut bytes = self.bytes.lock();
        spec.offset = bytes.len() as u64;
        bytes.extend_from_slice(&header);
        bytes.extend_from_slice(data);
        let added = header.len() + len - whole.len();
        spec.bytes_written += added as u64;
        spec.compressed_size += added;
        spec.uncompressed_size += added;
        Ok(spec)
    }

    fn close(&mut self) -> Result<()> {
        Ok(())
    }
}

/// The header of a page, which is compact Thrift, with the field 4 after its first three, all of them `i32`. `None`: it
/// does not begin with these.
fn with_checksum(header: &[u8], checksum: u32) -> Option<Vec<u8>> {
    /// Head of a field: the step from the id before, and the type `i32`.
    const NEXT_I32: u8 = 0x15;
    const STEP: u8 = 0x10;
    let mut at = 0;
    for _ in 0..3 {
        (*header.get(at)? == NEXT_I32).then_some(())?;
        at += 1;
        at += header.get(at..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
    }
    let (first, rest) = header.split_at(at);
    let (next, rest) = rest.split_first()?;
    let mut out = Vec::with_capacity(header.len() + 6);
    out.extend_from_slice(first);
    out.push(NEXT_I32);
    // The field is signed.
    let checksum = checksum as i32;
    crate::varint::put(&mut out, u64::from((checksum << 1 ^ checksum >> 31) as u32));
    // The step to the field after it is shorter by one: that field is one of 5 to 8.
    (*next >= 2 * STEP).then(|| out.push(next - STEP))?;
    out.extend_from_slice(rest);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_with_checksums() {
        // Type 0, sizes 100 and 10, then field 5, 7 or 8.
        let head = [0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x14];
        let header = |rest: &[u8]| [&head, rest].concat();
        let cases: [(Vec<u8>, u32, Option<Vec<u8>>); 6] = [
            (header(&[0x2c, 0x00, 0x00]), 0, Some(header(&[0x15, 0x00, 0x1c, 0x00, 0x00]))),
            (header(&[0x4c, 0x00, 0x00]), 1, Some(header(&[0x15, 0x02, 0x3c, 0x00, 0x00]))),
            (header(&[0x5c, 0x00, 0x00]), u32::MAX, Some(header(&[0x15, 0x01, 0x4c, 0x00, 0x00]))),
            (
                header(&[0x2c, 0x00, 0x00]),
                1 << 31,
                Some(header(&[0x15, 0xff, 0xff, 0xff, 0xff, 0x0f, 0x1c, 0x00, 0x00])),
            ),
            // It has one already; it ends early.
            (header(&[0x15, 0x00, 0x1c, 0x00, 0x00]), 1, None),
            (head[..5].to_vec(), 1, None),
        ];
        for (header, checksum, expected) in &cases {
            assert_eq!(with_checksum(header, *checksum), *expected, "{header:?}");
        }
        println!("headers of pages: {} cases", cases.len());
    }
}
