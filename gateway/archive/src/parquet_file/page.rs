//! Pages of a column chunk: where they are, and their decompressed bytes.
//!
//! The library reader is not used: it allocates what a file claims (a footer that states a list of 2³¹ elements, a page
//! of 2 GiB) and asserts on damaged pages. Here each size is compared with its bound first, and dictionary indexes stay
//! indexes, so that a token's text is looked up once per dictionary instead of once per row.

use super::footer::{Chunk, Column, PAGE_BYTES_MAX};
use super::source::Source;
use super::thrift::{SHORT, Thrift, Type};
use crate::error::Refusal;
use bytes::Bytes;
use std::io::Read;

/// A header is read with this many bytes first, and with at most the second number: a header may contain the smallest
/// and the largest value of its page.
const HEADER_BYTES: u64 = 512;
const HEADER_BYTES_MAX: u64 = 4 << 20;
/// Pages of one column chunk.
const PAGES_MAX: usize = 1 << 22;

/// Where a page is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) at: u64,
    /// Number of its first row in the row group, and its rows.
    pub(crate) first_row: u64,
    pub(crate) rows: u64,
}

/// Places of the pages of a chunk.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages {
    pub(crate) dictionary: Option<u64>,
    pub(crate) places: Vec<Place>,
}

/// How the values of a page are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Dictionary,
    Delta,
    DeltaLengths,
    DeltaTexts,
}

/// A decompressed page.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    pub(crate) rows: u64,
    pub(crate) encoding: Encoding,
    /// Whether values are null, run-length encoded; `None`: no value is.
    pub(crate) levels: Option<Bytes>,
    pub(crate) values: Bytes,
}

/// A decompressed dictionary.
pub(crate) struct DictionaryPage {
    pub(crate) count: u64,
    pub(crate) values: Bytes,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Kind {
    Data,
    Dictionary,
    DataV2,
    #[default]
    Other,
}

#[derive(Debug, Default)]
struct Header {
    kind: Kind,
    compressed: u64,
    uncompressed: u64,
    checksum: Option<u32>,
    values: u64,
    encoding: i64,
    level_encoding: i64,
    level_bytes: u64,
    repetition_bytes: u64,
    is_stored: bool,
    /// Bytes of the header itself.
    len: u64,
}

/// Decompresses pages; reused, as its state is large.
#[derive(Default)]
pub(crate) struct Unpacker {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
    snappy: snap::raw::Decoder,
}

impl Pages {
    /// Finds the pages of a chunk by its page index, or by walking from header to header.
    pub(crate) fn find(source: &Source, chunk: &Chunk, rows: u64) -> Result<Pages, Refusal> {
        match chunk.offset_index {
            Some((at, len)) => Pages::of_index(source, chunk, rows, at, len),
            None => Pages::by_walking(source, chunk, rows),
        }
    }

    fn of_index(source: &Source, chunk: &Chunk, rows: u64, at: u64, len: u64) -> Result<Pages, Refusal> {
        let bytes = source.read(at, len)?;
        let mut places: Vec<Place> = Vec::new();
        let wrong = |what: String| Refusal::at(at, format!("page index: {what}"));
        Thrift::new(&bytes)
            .structure(|thrift, id, of_type| match (id, of_type) {
                (1, Type::List) => thrift.list(|thrift| {
                    let mut place = Place { at: 0, first_row: 0, rows: 0 };
                    thrift.structure(|thrift, id, of_type| {
                        match (id, of_type) {
                            (1, Type::I64) => place.at = thrift.count()?,
                            (3, Type::I64) => place.first_row = thrift.count()?,
                            _ => thrift.skip(of_type)?,
                        }
                        Ok(())
                    })?;
                    if places.len() >= PAGES_MAX {
                        return Err(Refusal::new(format!("more than {PAGES_MAX} pages")));
                    }
                    places.push(place);
                    Ok(())
                }),
                _ => thrift.skip(of_type),
            })
            .map_err(|refusal| wrong(refusal.reason))?;
        let mut next_row = rows;
        let mut next_at = chunk.end;
        for place in places.iter_mut().rev() {
            if place.first_row > next_row || place.at >= next_at || place.at < chunk.start {
                return Err(wrong(format!("a page at byte {} with row {} is out of place", place.at, place.first_row)));
            }
            place.rows = next_row - place.first_row;
            (next_row, next_at) = (place.first_row, place.at);
        }
        if next_row != 0 {
            return Err(wrong(format!("the first page begins with row {next_row}")));
        }
        let dictionary = (chunk.start < next_at).then_some(chunk.start);
        Ok(Pages { dictionary, places })
    }

    fn by_walking(source: &Source, chunk: &Chunk, rows: u64) -> Result<Pages, Refusal> {
        let (mut pages, mut at, mut row) = (Pages::default(), chunk.start, 0u64);
        while row < rows {
            let header = Header::read(source, at, chunk.end)?;
            match header.kind {
                Kind::Data | Kind::DataV2 => {
                    if header.values > rows - row || pages.places.len() >= PAGES_MAX {
                        return Err(Refusal::at(at, format!("a page with {} values does not fit", header.values)));
                    }
                    pages.places.push(Place { at, first_row: row, rows: header.values });
                    row += header.values;
                }
                Kind::Dictionary if pages.dictionary.is_none() && pages.places.is_empty() => {
                    pages.dictionary = Some(at);
                }
                Kind::Dictionary => return Err(Refusal::at(at, "a second dictionary")),
                Kind::Other => {}
            }
            at += header.len + header.compressed;
        }
        Ok(pages)
    }
}

impl Header {
    /// Reads the header at a place; header and page end before `end`.
    fn read(source: &Source, at: u64, end: u64) -> Result<Header, Refusal> {
        let mut len = HEADER_BYTES;
        loop {
            let there = end.saturating_sub(at).min(len);
            if there == 0 {
                return Err(Refusal::at(at, "the column ends before its last page"));
            }
            let bytes = source.read(at, there)?;
            match Header::parse(&bytes) {
                Ok(header) => {
                    let wrong = |what: String| Err(Refusal::at(at, what));
                    if header.uncompressed > PAGE_BYTES_MAX || header.compressed > PAGE_BYTES_MAX {
                        let bytes = header.uncompressed.max(header.compressed);
                        return wrong(format!("a page has {bytes} bytes; at most {PAGE_BYTES_MAX} are read"));
                    }
                    if header.len + header.compressed > end - at {
                        return wrong("a page goes beyond the end of its column".to_owned());
                    }
                    if header.level_bytes.saturating_add(header.repetition_bytes)
                        > header.uncompressed.min(header.compressed)
                    {
                        return wrong("the levels of a page are longer than the page".to_owned());
                    }
                    return Ok(header);
                }
                Err(refusal) if refusal.reason == SHORT && there == len && len < HEADER_BYTES_MAX => len *= 16,
                Err(refusal) => return Err(Refusal::at(at, format!("page header: {}", refusal.reason))),
            }
        }
    }

    fn parse(bytes: &[u8]) -> Result<Header, Refusal> {
        let mut header = Header::default();
        let mut thrift = Thrift::new(bytes);
        thrift.structure(|thrift, id, of_type| {
            match (id, of_type) {
                (1, Type::I32) => {
                    header.kind = match thrift.int()? {
                        0 => Kind::Data,
                        2 => Kind::Dictionary,
                        3 => Kind::DataV2,
                        _ => Kind::Other,
                    }
                }
                (2, Type::I32) => header.uncompressed = thrift.count()?,
                (3, Type::I32) => header.compressed = thrift.count()?,
                (4, Type::I32) => header.checksum = Some(thrift.int()? as u32),
                (5 | 7 | 8, Type::Struct) => header.parse_values(thrift, id == 8)?,
                _ => thrift.skip(of_type)?,
            }
            Ok(())
        })?;
        header.len = thrift.position() as u64;
        Ok(header)
    }

    /// The header of one of the three kinds of pages with values.
    fn parse_values(&mut self, thrift: &mut Thrift<'_>, is_v2: bool) -> Result<(), Refusal> {
        thrift.structure(|thrift, id, of_type| {
            match (id, of_type) {
                (1, Type::I32) => self.values = thrift.count()?,
                (2, Type::I32) if !is_v2 => self.encoding = thrift.int()?,
                (3, Type::I32) if !is_v2 => self.level_encoding = thrift.int()?,
                (4, Type::I32) if is_v2 => self.encoding = thrift.int()?,
                (5, Type::I32) if is_v2 => self.level_bytes = thrift.count()?,
                (6, Type::I32) if is_v2 => self.repetition_bytes = thrift.count()?,
                (7, Type::False) if is_v2 => self.is_stored = true,
                _ => thrift.skip(of_type)?,
            }
            Ok(())
        })
    }

    fn body(&self, source: &Source, at: u64) -> Result<Bytes, Refusal> {
        let body = source.read(at + self.len, self.compressed)?;
        if let Some(stated) = self.checksum {
            let mut computed = flate2::Crc::new();
            computed.update(&body);
            if computed.sum() != stated {
                return Err(Refusal::at(at, "the checksum of a page is wrong"));
            }
        }
        Ok(body)
    }
}

impl Page {
    /// Reads and decompresses a data page.
    pub(crate) fn read(
        source: &Source,
        chunk: &Chunk,
        column: &Column,
        place: Place,
        unpacker: &mut Unpacker,
    ) -> Result<Page, Refusal> {
        let at = place.at;
        let header = Header::read(source, at, chunk.end)?;
        if header.values != place.rows {
            return Err(Refusal::at(at, format!("a page has {} values, not {}", header.values, place.rows)));
        }
        let encoding = match header.encoding {
            0 => Encoding::Plain,
            2 | 8 => Encoding::Dictionary,
            5 => Encoding::Delta,
            6 => Encoding::DeltaLengths,
            7 => Encoding::DeltaTexts,
            other => return Err(Refusal::at(at, format!("a page has the encoding {other}, which is not read"))),
        };
        let body = header.body(source, at)?;
        let (levels, values) = match header.kind {
            Kind::Data => {
                let bytes = unpacker.unpack(chunk.codec, &body, header.uncompressed).map_err(|why| why.at_byte(at))?;
                if !column.is_nullable {
                    (None, bytes)
                } else {
                    if header.level_encoding != 3 {
                        return Err(Refusal::at(at, "the levels of a page are not run-length encoded"));
                    }
                    let len = bytes.get(..4).map(|len| u32::from_le_bytes([len[0], len[1], len[2], len[3]]) as usize);
                    match len.and_then(|len| Some((len.checked_add(4)?, bytes.len()))) {
                        Some((end, all)) if end <= all => (Some(bytes.slice(4..end)), bytes.slice(end..)),
                        _ => return Err(Refusal::at(at, "the levels of a page are longer than the page")),
                    }
                }
            }
            Kind::DataV2 => {
                let (repetition, levels) = (header.repetition_bytes as usize, header.level_bytes as usize);
                let start = repetition + levels;
                let rest = body.slice(start..);
                let len = header.uncompressed - start as u64;
                let codec = if header.is_stored || len == 0 { 0 } else { chunk.codec };
                let values = match codec {
                    0 => rest,
                    _ => unpacker.unpack(codec, &rest, len).map_err(|why| why.at_byte(at))?,
                };
                (column.is_nullable.then(|| body.slice(repetition..start)), values)
            }
            Kind::Dictionary | Kind::Other => return Err(Refusal::at(at, "not a data page")),
        };
        Ok(Page { rows: header.values, encoding, levels, values })
    }
}

impl DictionaryPage {
    /// Reads and decompresses a dictionary.
    pub(crate) fn read(
        source: &Source,
        chunk: &Chunk,
        at: u64,
        unpacker: &mut Unpacker,
    ) -> Result<DictionaryPage, Refusal> {
        let header = Header::read(source, at, chunk.end)?;
        if header.kind != Kind::Dictionary || !matches!(header.encoding, 0 | 2) {
            return Err(Refusal::at(at, "not a plain dictionary"));
        }
        let body = header.body(source, at)?;
        let values = unpacker.unpack(chunk.codec, &body, header.uncompressed).map_err(|why| why.at_byte(at))?;
        Ok(DictionaryPage { count: header.values, values })
    }
}

impl Unpacker {
    /// Decompresses to exactly `len` bytes, which is within the bound of a page.
    fn unpack(&mut self, codec: i64, body: &Bytes, len: u64) -> Result<Bytes, Refusal> {
        let len = len as usize;
        let damaged = |why: &dyn std::fmt::Display| Refusal::new(format!("a page cannot be decompressed: {why}"));
        let unpacked = match codec {
            0 if body.len() == len => return Ok(body.clone()),
            0 => return Err(Refusal::new(format!("a page has {} bytes, not {len}", body.len()))),
            1 => {
                let stated = snap::raw::decompress_len(body).map_err(|why| damaged(&why))?;
                if stated != len {
                    return Err(damaged(&format_args!("it has {stated} bytes, not {len}")));
                }
                let mut unpacked = vec![0; len];
                self.snappy.decompress(body, &mut unpacked).map_err(|why| damaged(&why))?;
                unpacked
            }
            2 => {
                let mut unpacked = Vec::with_capacity(len);
                let reader = flate2::read::MultiGzDecoder::new(&body[..]);
                reader.take(len as u64 + 1).read_to_end(&mut unpacked).map_err(|why| damaged(&why))?;
                unpacked
            }
            6 => {
                let zstd = match &mut self.zstd {
                    Some(zstd) => zstd,
                    empty => empty.insert(zstd::bulk::Decompressor::new().map_err(|why| damaged(&why))?),
                };
                zstd.decompress(body, len).map_err(|why| damaged(&why))?
            }
            other => return Err(Refusal::new(format!("pages are compressed with codec {other}, which is not read"))),
        };
        if unpacked.len() != len {
            return Err(damaged(&format_args!("it has {} bytes, not {len}", unpacked.len())));
        }
        Ok(unpacked.into())
    }
}
