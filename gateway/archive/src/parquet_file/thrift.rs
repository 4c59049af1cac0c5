//! The compact Thrift encoding, in which Parquet writes its footer, page headers and page index. Only reading: every
//! length is checked against the bytes that are left before anything is allocated.

use crate::error::Refusal;

/// Deepest nesting of a skipped value.
const DEPTH_MAX: u8 = 24;

/// Reads values one after another.
pub(super) struct Thrift<'a> {
    bytes: &'a [u8],
    at: usize,
}

/// Type of an encoded value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    True,
    False,
    Byte,
    I16,
    I32,
    I64,
    Double,
    Binary,
    List,
    Set,
    Map,
    Struct,
    Uuid,
}

impl Type {
    fn of(number: u8) -> Result<Type, Refusal> {
        Ok(match number {
            1 => Type::True,
            2 => Type::False,
            3 => Type::Byte,
            4 => Type::I16,
            5 => Type::I32,
            6 => Type::I64,
            7 => Type::Double,
            8 => Type::Binary,
            9 => Type::List,
            10 => Type::Set,
            11 => Type::Map,
            12 => Type::Struct,
            13 => Type::Uuid,
            _ => return Err(Refusal::new(format!("a Thrift value has the unknown type {number}"))),
        })
    }
}

/// Names the end of the input as such: more bytes may help.
pub(super) const SHORT: &str = "the Thrift data ends early";

impl<'a> Thrift<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Thrift<'a> {
        Thrift { bytes, at: 0 }
    }

    /// Bytes read so far.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    fn take(&mut self, len: usize) -> Result<&'a [u8], Refusal> {
        if len > self.left() {
            return Err(Refusal::new(SHORT));
        }
        let taken = &self.bytes[self.at..self.at + len];
        self.at += len;
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

    /// A value of [`Type::Byte`].
    pub(super) fn plain_byte(&mut self) -> Result<i64, Refusal> {
        Ok(i64::from(self.byte()? as i8))
    }

    /// An integer of any other width.
    pub(super) fn int(&mut self) -> Result<i64, Refusal> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// An integer that a size or a count must be.
    pub(super) fn count(&mut self) -> Result<u64, Refusal> {
        let value = self.int()?;
        u64::try_from(value).map_err(|_| Refusal::new(format!("a size is negative: {value}")))
    }

    pub(super) fn binary(&mut self) -> Result<&'a [u8], Refusal> {
        let len = self.varint()?;
        self.take(usize::try_from(len).unwrap_or(usize::MAX))
    }

    pub(super) fn text(&mut self) -> Result<String, Refusal> {
        Ok(String::from_utf8_lossy(self.binary()?).into_owned())
    }

    /// The elements of a list; `read` gets each. An element takes at least one byte, so a list is never longer than the
    /// rest of the input.
    pub(super) fn list(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), Refusal>) -> Result<(), Refusal> {
        let (_, len) = self.list_head()?;
        for _ in 0..len {
            read(self)?;
        }
        Ok(())
    }

    fn list_head(&mut self) -> Result<(Type, usize), Refusal> {
        let head = self.byte()?;
        let len = match head >> 4 {
            15 => self.varint()?,
            len => u64::from(len),
        };
        if len > self.left() as u64 {
            return Err(Refusal::new(SHORT));
        }
        // Booleans in lists have either number.
        Ok((Type::of((head & 15).max(1))?, len as usize))
    }

    /// The fields of a structure; `field` gets the id and the type of each, and reads or skips the value.
    pub(super) fn structure(
        &mut self,
        mut field: impl FnMut(&mut Self, i16, Type) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let mut id = 0i16;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            let of_type = Type::of(head & 15)?;
            id = match head >> 4 {
                0 => i16::try_from(self.int()?).map_err(|_| Refusal::new("a Thrift field id is out of range"))?,
                step => {
                    id.checked_add(i16::from(step)).ok_or_else(|| Refusal::new("a Thrift field id is out of range"))?
                }
            };
            field(self, id, of_type)?;
        }
    }

    pub(super) fn skip(&mut self, of_type: Type) -> Result<(), Refusal> {
        self.skip_at(of_type, DEPTH_MAX, false)
    }

    fn skip_at(&mut self, of_type: Type, depth: u8, is_element: bool) -> Result<(), Refusal> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(Refusal::new("Thrift values are nested too deeply"));
        };
        match of_type {
            Type::True | Type::False if !is_element => {}
            Type::True | Type::False | Type::Byte => drop(self.byte()?),
            Type::I16 | Type::I32 | Type::I64 => drop(self.varint()?),
            Type::Double => drop(self.take(8)?),
            Type::Uuid => drop(self.take(16)?),
            Type::Binary => drop(self.binary()?),
            Type::List | Type::Set => {
                let (element, len) = self.list_head()?;
                for _ in 0..len {
                    self.skip_at(element, depth, true)?;
                }
            }
            Type::Map => {
                let len = self.varint()?;
                if len > self.left() as u64 {
                    return Err(Refusal::new(SHORT));
                }
                if len > 0 {
                    let kinds = self.byte()?;
                    let (key, value) = (Type::of((kinds >> 4).max(1))?, Type::of((kinds & 15).max(1))?);
                    for _ in 0..len {
                        self.skip_at(key, depth, true)?;
                        self.skip_at(value, depth, true)?;
                    }
                }
            }
            Type::Struct => self.structure(|this, _, of_type| this.skip_at(of_type, depth, false))?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_lengths_are_refused_before_allocation() {
        let cases: [&[u8]; 6] = [
            // A list of 2^31 structures; a text of 2^40 bytes; a map of many entries.
            &[0x19, 0xfc, 0xff, 0xff, 0xff, 0xff, 0x07],
            &[0x18, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20],
            &[0x1b, 0xff, 0xff, 0xff, 0x7f, 0x55],
            &[0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff],
            &[0x1f, 0x00],
            &[0x1c; 64],
        ];
        for bytes in cases {
            let read = Thrift::new(bytes).structure(|thrift, _, of_type| thrift.skip(of_type));
            assert!(read.is_err(), "{bytes:?}");
        }
        println!("hostile Thrift: {} cases", cases.len());
    }

    #[test]
    fn fields_of_a_structure() {
        // 1: -3 (i32), 2: true, 17 by its own id: "ab", end.
        let bytes = [0x15, 0x05, 0x11, 0x08, 0x22, 0x02, b'a', b'b', 0x00];
        let (mut thrift, mut found) = (Thrift::new(&bytes), Vec::new());
        thrift
            .structure(|thrift, id, of_type| {
                found.push(match of_type {
                    Type::I32 => format!("{id} {}", thrift.int()?),
                    Type::Binary => format!("{id} {}", thrift.text()?),
                    other => format!("{id} {other:?}"),
                });
                Ok(())
            })
            .expect("a structure");
        assert_eq!(found, ["1 -3", "2 True", "17 ab"]);
        assert_eq!(thrift.position(), bytes.len());
        println!("fields: {} cases", found.len());
    }
}
