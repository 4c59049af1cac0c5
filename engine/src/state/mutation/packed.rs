//! Rows of a snapshot in few bytes: common properties are bits, numbers take seven bits a byte, and fields that change
//! little from row to row are differences to the previous row. An order takes some forty bytes instead of 180: hashing,
//! writing, syncing and reading take that much less.
//!
//! Lossless: every value of every field is restored. A row has one encoding, so bytes that no build wrote are detected
//! by encoding them again ([`crate::shard::snapshot`]).

use crate::bytes::CodecError;
use crate::describe::Words;
use crate::order::{EntryRoute, Liquidity, OrderType, Side, Status, TimeInForce};
use crate::user::rows::Rows;

/// Maximum count of bytes of the numbers of one row, with the padding of the last; texts follow them.
const ROW_BYTES_MAX: usize = 264;
/// Bytes that are collected before they are appended.
const GATHERED_BYTES: usize = 1_024;

/// A row of a list.
pub(crate) trait Packed: Sized {
    /// The space for fields that rows of a list share with their copies; empty for most types.
    type Shared: Default;
    /// Appends the row; `before` is the previous one in its list.
    fn pack(&self, before: Option<&Self>, packer: &mut Packer);
    /// Reads from the front what [`Packed::pack`] wrote after the same row.
    fn unpack(before: Option<&Self>, shared: &mut Self::Shared, input: &mut &[u8]) -> Result<Self, CodecError>;
}

/// Collects encoded numbers and appends many at a time. [`Packer::end`] appends the last.
pub(crate) struct Packer<'a> {
    out: &'a mut Vec<u8>,
    bytes: [u8; GATHERED_BYTES],
    len: usize,
}

/// The highest bit of each byte.
const MORE: u64 = 0x8080_8080_8080_8080;
/// Numbers below it take at most eight bytes.
const WIDE: u64 = 1 << 56;

impl<'a> Packer<'a> {
    pub fn onto(out: &'a mut Vec<u8>) -> Packer<'a> {
        Packer { out, bytes: [0; GATHERED_BYTES], len: 0 }
    }

    /// Makes space for one more row.
    #[inline]
    fn begin_row(&mut self) {
        if self.len > GATHERED_BYTES - ROW_BYTES_MAX {
            self.append();
        }
    }

    fn append(&mut self) {
        self.out.extend_from_slice(&self.bytes[..self.len]);
        self.len = 0;
    }

    /// The output, for bytes that are not numbers.
    pub fn output(&mut self) -> &mut Vec<u8> {
        self.append();
        self.out
    }

    #[inline]
    pub fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Seven bits a byte, the lowest first; the highest bit means that more follow.
    #[inline]
    pub fn number(&mut self, number: u64) {
        if number >= WIDE {
            return self.wide(number);
        }
        let len = (u64::BITS - (number | 1).leading_zeros()).div_ceil(7) as usize;
        let more = MORE & ((1 << (8 * (len - 1))) - 1);
        // The bytes after its length are overwritten by the next number.
        self.bytes[self.len..self.len + 8].copy_from_slice(&(spread(number) | more).to_le_bytes());
        self.len += len;
    }

    #[cold]
    fn wide(&mut self, mut number: u64) {
        while number > 0x7f {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }

    /// The bytes of a text, after their count.
    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.output().extend_from_slice(text);
    }

    /// A signed number; small ones are short.
    #[inline]
    pub fn signed(&mut self, number: i64) {
        self.number((number << 1) as u64 ^ (number >> 63) as u64);
    }

    /// The difference of two numbers, wrapping around if that is shorter.
    #[inline]
    pub fn step(&mut self, from: u64, to: u64) {
        self.signed(to.wrapping_sub(from) as i64);
    }

    /// A small figure whose largest value means none.
    #[inline]
    pub fn figure(&mut self, figure: u32) {
        self.number(figure.wrapping_add(1).into());
    }

    pub fn end(mut self) {
        self.append();
    }
}

/// 56 bits in groups of seven, each in one byte.
#[inline]
fn spread(number: u64) -> u64 {
    let halves = number & 0x0fff_ffff | (number & 0x00ff_ffff_f000_0000) << 4;
    let quarters = halves & 0x0000_3fff_0000_3fff | (halves & 0x0fff_c000_0fff_c000) << 2;
    quarters & 0x007f_007f_007f_007f | (quarters & 0x3f80_3f80_3f80_3f80) << 1
}

/// The inverse of [`spread`].
#[inline]
fn gather(bytes: u64) -> u64 {
    let quarters = bytes & 0x007f_007f_007f_007f | (bytes & 0x7f00_7f00_7f00_7f00) >> 1;
    let halves = quarters & 0x0000_3fff_0000_3fff | (quarters & 0x3fff_0000_3fff_0000) >> 2;
    halves & 0x0fff_ffff | (halves & 0x0fff_ffff_0000_0000) >> 4
}

#[inline]
pub(crate) fn take_byte(input: &mut &[u8]) -> Result<u8, CodecError> {
    let (byte, rest) = input.split_first().ok_or(CodecError::Length)?;
    *input = rest;
    Ok(*byte)
}

/// Reads what [`Packer::number`] wrote.
#[inline]
pub(crate) fn take_number(input: &mut &[u8]) -> Result<u64, CodecError> {
    if let Some(bytes) = input.first_chunk() {
        let bytes = u64::from_le_bytes(*bytes);
        let len = (!bytes & MORE).trailing_zeros() / 8 + 1;
        if len <= 8 {
            *input = &input[len as usize..];
            return Ok(gather(bytes & u64::MAX >> (64 - 8 * len)));
        }
    }
    let byte = take_byte(input)?;
    if byte < 0x80 { Ok(byte.into()) } else { take_more(byte, input) }
}

/// The rest of a number near the end of the input, or of one with nine or ten bytes.
#[cold]
fn take_more(first: u8, input: &mut &[u8]) -> Result<u64, CodecError> {
    let mut number = u64::from(first & 0x7f);
    for shift in (7..u64::BITS).step_by(7) {
        let byte = take_byte(input)?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(number);
        }
    }
    Err(CodecError::Length)
}

/// The same for a number of fewer bits.
#[inline]
pub(crate) fn take_small<T: TryFrom<u64>>(input: &mut &[u8]) -> Result<T, CodecError> {
    T::try_from(take_number(input)?).map_err(|_| CodecError::Variant)
}

/// Reads what [`Packer::signed`] wrote.
#[inline]
pub(crate) fn take_signed(input: &mut &[u8]) -> Result<i64, CodecError> {
    let number = take_number(input)?;
    Ok((number >> 1) as i64 ^ -((number & 1) as i64))
}

/// Reads what [`Packer::step`] wrote.
#[inline]
pub(crate) fn take_step(from: u64, input: &mut &[u8]) -> Result<u64, CodecError> {
    Ok(from.wrapping_add(take_signed(input)? as u64))
}

/// Reads what [`Packer::figure`] wrote.
#[inline]
pub(crate) fn take_figure(input: &mut &[u8]) -> Result<u32, CodecError> {
    Ok(take_small::<u32>(input)?.wrapping_sub(1))
}

/// A fixed count of bytes.
pub(crate) fn take_bytes<const COUNT: usize>(input: &mut &[u8]) -> Result<[u8; COUNT], CodecError> {
    let (bytes, rest) = input.split_first_chunk().ok_or(CodecError::Length)?;
    *input = rest;
    Ok(*bytes)
}

pub(crate) fn take_text<'a>(input: &mut &'a [u8]) -> Result<&'a str, CodecError> {
    let len = take_small(input)?;
    let (text, rest) = input.split_at_checked(len).ok_or(CodecError::Length)?;
    *input = rest;
    std::str::from_utf8(text).map_err(|_| CodecError::Text)
}

/// Appends a list: its length, then its rows.
pub(crate) fn put_rows<'a, T: Packed + 'a>(len: usize, rows: impl Iterator<Item = &'a T>, packer: &mut Packer) {
    packer.begin_row();
    packer.number(len as u64);
    let mut before = None;
    for row in rows {
        packer.begin_row();
        row.pack(before, packer);
        before = Some(row);
    }
}

/// Appends a list of numbers: its length, then each.
pub(crate) fn put_numbers(numbers: impl ExactSizeIterator<Item = u64>, packer: &mut Packer) {
    packer.begin_row();
    packer.number(numbers.len() as u64);
    for number in numbers {
        packer.begin_row();
        packer.number(number);
    }
}

/// Reads what [`put_numbers`] wrote.
pub(crate) fn take_numbers(input: &mut &[u8]) -> Result<Vec<u64>, CodecError> {
    let count = take_small::<usize>(input)?;
    if count > input.len() {
        return Err(CodecError::Length);
    }
    (0..count).map(|_| take_number(input)).collect()
}

/// Reads a list; space is reserved for at most one row per byte of the input.
pub(crate) fn take_rows<T: Packed>(shared: &mut T::Shared, input: &mut &[u8]) -> Result<Rows<T>, CodecError> {
    let count = take_small::<usize>(input)?;
    if count > input.len() {
        return Err(CodecError::Length);
    }
    let mut rows = Rows::new();
    for row in 0..count {
        let unpacked = T::unpack(rows.last(), shared, input)?;
        rows.push_first_of(count - row, unpacked);
    }
    Ok(rows)
}

/// A word as its position in its list.
pub(crate) trait Numbered: Words {
    fn of_number(number: u8) -> Result<Self, CodecError> {
        Self::ALL.get(usize::from(number)).copied().ok_or(CodecError::Variant)
    }
}

impl<T: Words> Numbered for T {}

// The words that share a byte: orders have these four in eight bits, fills these two, requests a status in two.
const _: () = assert!(count::<Side>() <= 2 && count::<OrderType>() <= 2 && count::<TimeInForce>() <= 8);
const _: () = assert!(count::<EntryRoute>() <= 8 && count::<Liquidity>() <= 2 && count::<Status>() <= 4);

const fn count<T: Words>() -> usize {
    T::ALL.len()
}

/// The bits of a byte, the first flag the lowest.
#[inline]
pub(crate) fn bits<const N: usize>(flags: [bool; N]) -> u8 {
    const { assert!(N <= 8) }
    flags.iter().enumerate().fold(0, |bits, (at, flag)| bits | u8::from(*flag) << at)
}

/// Whether a bit is set.
#[inline]
pub(crate) fn has(bits: u8, at: u32) -> bool {
    bits >> at & 1 != 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_restored() {
        let mut cases = 0;
        let near = (0..64).flat_map(|bit| [-1, 0, 1].map(|off| (1_u64 << bit).wrapping_add_signed(off)));
        for number in near.chain([0, u64::MAX]) {
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            packer.number(number);
            packer.signed(number as i64);
            packer.step(7, number);
            packer.figure(number as u32);
            packer.end();
            let input = &mut &bytes[..];
            assert_eq!(take_number(input), Ok(number));
            assert_eq!(take_signed(input), Ok(number as i64));
            assert_eq!(take_step(7, input), Ok(number));
            assert_eq!(take_figure(input), Ok(number as u32));
            assert!(input.is_empty());
            for end in 0..bytes.len() {
                let input = &mut &bytes[..end];
                let read = take_number(input).and_then(|_| take_signed(input)).and_then(|_| take_step(7, input));
                assert!(read.and_then(|_| take_figure(input)).is_err(), "{number} cut at {end}");
            }
            cases += 1;
        }
        println!("numbers: {cases} cases");
    }

    #[test]
    fn bytes_are_golden() {
        // (number, its bytes)
        for (number, expected) in [(0, &[0][..]), (127, &[127]), (128, &[128, 1]), (300, &[172, 2])] {
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            packer.number(number);
            packer.end();
            assert_eq!(bytes, expected, "{number}");
        }
        for (number, expected) in [(0, 0), (-1, 1), (1, 2), (-2, 3), (63, 126)] {
            let mut bytes = Vec::new();
            let mut packer = Packer::onto(&mut bytes);
            packer.signed(number);
            packer.end();
            assert_eq!(bytes, [expected], "{number}");
        }
        assert!(take_number(&mut &[0x80; 11][..]).is_err(), "a number has fewer bits");
        assert!(take_small::<u16>(&mut &[0x80, 0x80, 4][..]).is_err(), "65,536 does not fit");
        assert_eq!(take_text(&mut &[3, b'a', b'b'][..]), Err(CodecError::Length));
        assert_eq!(take_text(&mut &[1, 0xff][..]), Err(CodecError::Text));
    }

    #[test]
    fn a_number_beyond_the_words_is_an_error() {
        assert_eq!((Side::of_number(1), Side::of_number(2)), (Ok(Side::Sell), Err(CodecError::Variant)));
    }
}
