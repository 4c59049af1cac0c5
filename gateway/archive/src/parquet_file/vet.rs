//! Walks data in the compact Thrift encoding, in which Parquet writes its footer, page headers and page index, without
//! keeping anything. What passes has no list longer than its own bytes, so an allocation by a count is bounded.

use crate::error::Refusal;

/// Deepest nesting of values.
const DEPTH_MAX: u8 = 24;
/// Row groups of a file: the library numbers them with 16 bits.
const ROW_GROUPS_MAX: usize = 32_767;
const SCHEMA_NODES_MAX: usize = 1_024;

/// Fields of a file's metadata and of a page header, by their ids.
const SCHEMA: i16 = 2;
const ROW_GROUPS: i16 = 4;
const ENCRYPTION: i16 = 8;
const UNCOMPRESSED: i16 = 2;
const COMPRESSED: i16 = 3;

const SHORT: &str = "the Thrift data ends early";

/// Types of values, by their numbers.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const MAP: u8 = 11;
const STRUCT: u8 = 12;
const UUID: u8 = 13;

/// Checks a footer.
///
/// # Errors
/// It is damaged or encrypted, or it has too many columns or row groups.
pub(super) fn footer(bytes: &[u8]) -> Result<(), Refusal> {
    Walk::new(bytes).structure(DEPTH_MAX, &mut |walk, id, of_type| {
        let most = match id {
            SCHEMA => SCHEMA_NODES_MAX,
            ROW_GROUPS => ROW_GROUPS_MAX,
            ENCRYPTION => return Err(Refusal::new("the file is encrypted")),
            _ => return walk.skip(of_type, DEPTH_MAX, false),
        };
        let count = walk.list(of_type, DEPTH_MAX)?;
        if count > most {
            let of = if id == SCHEMA { "columns" } else { "row groups" };
            return Err(Refusal::new(format!("the file has {count} {of}; at most {most} are read")));
        }
        Ok(())
    })
}

/// Checks one structure, such as a page index.
///
/// # Errors
/// It is damaged.
pub(super) fn structure(bytes: &[u8]) -> Result<(), Refusal> {
    Walk::new(bytes).skip(STRUCT, DEPTH_MAX, false)
}

/// Checks the header of a page at the start of these bytes.
///
/// # Errors
/// The header is damaged, or one of its sizes is negative or above `page_bytes_max`.
pub(super) fn page_header(bytes: &[u8], page_bytes_max: u64) -> Result<(), Refusal> {
    Walk::new(bytes).structure(DEPTH_MAX, &mut |walk, id, of_type| {
        if !matches!(id, UNCOMPRESSED | COMPRESSED) || of_type != I32 {
            return walk.skip(of_type, DEPTH_MAX, false);
        }
        let size = walk.int()?;
        if u64::try_from(size).is_ok_and(|size| size <= page_bytes_max) {
            return Ok(());
        }
        let what = if id == UNCOMPRESSED { " decoded" } else { "" };
        Err(Refusal::new(format!("a page has {size} bytes{what}; at most {page_bytes_max} are read")))
    })
}

struct Walk<'a> {
    bytes: &'a [u8],
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8]) -> Walk<'a> {
        Walk { bytes }
    }

    fn take(&mut self, len: u64) -> Result<&'a [u8], Refusal> {
        let taken = usize::try_from(len).ok().and_then(|len| self.bytes.split_at_checked(len));
        let (taken, rest) = taken.ok_or_else(|| Refusal::new(SHORT))?;
        self.bytes = rest;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, Refusal> {
        Ok(self.take(1)?[0])
    }

    fn varint(&mut self) -> Result<u64, Refusal> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Refusal::new("a Thrift number is longer than ten bytes"))
    }

    fn int(&mut self) -> Result<i64, Refusal> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A count of values that take at least one byte each.
    fn count(&mut self, count: u64) -> Result<usize, Refusal> {
        usize::try_from(count).ok().filter(|count| *count <= self.bytes.len()).ok_or_else(|| Refusal::new(SHORT))
    }

    /// Walks a list and returns its length.
    fn list(&mut self, of_type: u8, depth: u8) -> Result<usize, Refusal> {
        if !matches!(of_type, LIST | SET) {
            return Err(Refusal::new(format!("a Thrift list has the type {of_type}")));
        }
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.varint()?,
            count => u64::from(count),
        };
        let count = self.count(count)?;
        for _ in 0..count {
            self.skip(head & 15, depth, true)?;
        }
        Ok(count)
    }

    /// Walks the fields of a structure; `field` walks the value of each.
    fn structure(
        &mut self,
        depth: u8,
        field: &mut dyn FnMut(&mut Self, i16, u8) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if depth == 0 {
            return Err(Refusal::new("Thrift values are nested too deeply"));
        }
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let next = match head >> 4 {
                0 => i16::try_from(self.int()?).ok(),
                step => id.checked_add(i16::from(step)),
            };
            id = next.ok_or_else(|| Refusal::new("a Thrift field id is out of range"))?;
            field(self, id, head & 15)?;
        }
    }

    fn skip(&mut self, of_type: u8, depth: u8, is_element: bool) -> Result<(), Refusal> {
        let Some(below) = depth.checked_sub(1) else {
            return Err(Refusal::new("Thrift values are nested too deeply"));
        };
        match of_type {
            // In a field the type itself is the value.
            TRUE | FALSE if !is_element => {}
            // Booleans in lists have either number.
            0..=BYTE => drop(self.byte()?),
            I16 | I32 | I64 => drop(self.varint()?),
            DOUBLE => drop(self.take(8)?),
            UUID => drop(self.take(16)?),
            BINARY => {
                let len = self.varint()?;
                self.take(len)?;
            }
            LIST | SET => drop(self.list(of_type, below)?),
            MAP => {
                let count = self.varint()?;
                if self.count(count)? > 0 {
                    let types = self.byte()?;
                    for _ in 0..count {
                        self.skip(types >> 4, below, true)?;
                        self.skip(types & 15, below, true)?;
                    }
                }
            }
            STRUCT => {
                self.structure(below, &mut |walk, _, of_type| walk.skip(of_type, below, false))?;
            }
            other => return Err(Refusal::new(format!("a Thrift value has the unknown type {other}"))),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_data_is_refused_without_allocation() {
        let cases: [&[u8]; 7] = [
            // A list of 2^31 structures; a text of 2^40 bytes; a map of many entries.
            &[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
            &[0x1b, 0xff, 0xff, 0xff, 0x7f, 0x55],
            // A number that does not end, an unknown type, too deep a nesting, no end.
            &[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1f, 0x00],
            &[0x1c; 64],
            &[0x15, 0x05],
        ];
        for bytes in cases {
            assert!(structure(bytes).is_err(), "{bytes:?}");
        }
        println!("hostile Thrift: {} cases", cases.len());
    }

    #[test]
    fn sizes_of_pages() {
        // 1: type 0, 2: decoded size, 3: size.
        let cases: [(&[u8], bool); 5] = [
            (&[0x15, 0x00, 0x15, 0xc8, 0x01, 0x15, 0x14, 0x00], true),
            (&[0x15, 0x00, 0x15, 0xca, 0x01, 0x15, 0x14, 0x00], false),
            (&[0x15, 0x00, 0x15, 0x14, 0x15, 0xca, 0x01, 0x00], false),
            (&[0x15, 0x00, 0x15, 0x01, 0x15, 0x14, 0x00], false),
            // The decoded size a second time, by its own id.
            (&[0x15, 0x00, 0x15, 0x14, 0x15, 0x14, 0x05, 0x04, 0xca, 0x01, 0x00], false),
        ];
        for (bytes, is_accepted) in cases {
            assert_eq!(page_header(bytes, 100).is_ok(), is_accepted, "{bytes:?}");
        }
        println!("sizes of pages: {} cases", cases.len());
    }

    #[test]
    fn footers() {
        let groups = |count: usize| {
            let mut bytes = vec![0x49, 0xfc];
            let mut left = count;
            while left >= 0x80 {
                bytes.push(left as u8 | 0x80);
                left >>= 7;
            }
            bytes.push(left as u8);
            bytes.resize(bytes.len() + count + 1, 0);
            bytes
        };
        assert!(footer(&groups(ROW_GROUPS_MAX)).is_ok());
        assert!(footer(&groups(ROW_GROUPS_MAX + 1)).is_err());
        assert!(footer(&[0x8c, 0x00, 0x00]).is_err(), "encrypted");
        println!("footers: 3 cases");
    }
}
