//! Values of pages in any encoding that files have, as numbers and texts.

use super::decode::{Delta, Hybrid};
use super::footer::{Column, PAGE_BYTES_MAX, Physical};
use super::page::Encoding;
use crate::error::Refusal;
use bytes::Bytes;
use std::ops::Range;

/// A null in a column of numbers.
pub(crate) const NULL: i64 = i64::MIN;
/// A number that is not exact in the unit of its column, or does not fit.
pub(crate) const BAD: i64 = i64::MIN + 1;
/// A null in a column of texts.
pub(crate) const NO_TEXT: u32 = u32::MAX;
/// Texts of a column.
#[derive(Debug, Default)]
pub(crate) struct Texts {
    /// One for each row of the batch.
    pub(crate) ids: Vec<u32>,
    /// Changes when ids below `lasting` get other texts.
    pub(crate) generation: u32,
    /// Ids of the dictionary are below this number; the others are of this batch only.
    pub(crate) lasting: u32,
    spans: Vec<Span>,
    buffers: Vec<Bytes>,
    lasting_buffers: usize,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    buffer: u32,
    start: u32,
    len: u32,
}

/// Values of a page that were not read yet.
pub(super) enum Decoder {
    Empty,
    Plain { bytes: Bytes, at: usize },
    Dictionary(Hybrid),
    Delta(Delta),
    Lengths { lengths: Delta, bytes: Bytes, at: usize },
}

impl Texts {
    /// The text of an id.
    pub(crate) fn get(&self, id: u32) -> &[u8] {
        let Span { buffer, start, len } = self.spans[id as usize];
        &self.buffers[buffer as usize][start as usize..(start + len) as usize]
    }

    /// The text of a row; `None` for a null.
    pub(crate) fn of(&self, row: usize) -> Option<&[u8]> {
        let id = self.ids[row];
        (id != NO_TEXT).then(|| self.get(id))
    }

    pub(super) fn buffer(&mut self, bytes: Bytes) -> u32 {
        self.buffers.push(bytes);
        (self.buffers.len() - 1) as u32
    }

    fn push(&mut self, buffer: u32, start: usize, len: usize) -> u32 {
        self.spans.push(Span { buffer, start: start as u32, len: len as u32 });
        (self.spans.len() - 1) as u32
    }

    /// The texts so far are those of the dictionary.
    pub(super) fn keep(&mut self) {
        self.lasting = self.spans.len() as u32;
        self.lasting_buffers = self.buffers.len();
    }

    /// Forgets the texts of the last batch, or all of them.
    pub(super) fn clear(&mut self, with_lasting: bool) {
        self.ids.clear();
        if with_lasting {
            self.lasting = 0;
            self.lasting_buffers = 0;
            self.generation += 1;
        }
        self.spans.truncate(self.lasting as usize);
        self.buffers.truncate(self.lasting_buffers);
    }
}

impl Decoder {
    /// The values of a page of a column.
    pub(super) fn new(column: &Column, encoding: Encoding, bytes: Bytes) -> Result<Decoder, Refusal> {
        let is_number = matches!(column.physical, Physical::Int32 | Physical::Int64);
        Ok(match encoding {
            _ if bytes.is_empty() => Decoder::Empty,
            Encoding::Plain => Decoder::Plain { bytes, at: 0 },
            Encoding::Dictionary => Decoder::Dictionary(Hybrid::new(bytes.slice(1..), bytes[0])?),
            Encoding::Delta if is_number => Decoder::Delta(Delta::new(bytes)?),
            Encoding::DeltaLengths if !is_number => lengths(bytes)?,
            Encoding::DeltaTexts if !is_number => prefixed(column, bytes)?,
            other => return Err(Refusal::new(format!("the encoding {other:?} does not fit the column"))),
        })
    }

    /// Appends the next numbers, of which none is null.
    pub(super) fn numbers(
        &mut self,
        column: &Column,
        count: usize,
        dictionary: &[i64],
        out: &mut Vec<i64>,
        ids: &mut Vec<u32>,
    ) -> Result<(), Refusal> {
        match self {
            _ if count == 0 => Ok(()),
            Decoder::Empty => Err(early()),
            Decoder::Dictionary(hybrid) => {
                ids.clear();
                hybrid.read(count, ids)?;
                for id in ids.iter() {
                    out.push(*dictionary.get(*id as usize).ok_or_else(|| not_in_dictionary(*id))?);
                }
                Ok(())
            }
            Decoder::Delta(delta) => {
                let is_narrow = column.physical == Physical::Int32;
                delta.read(count, |value| out.push(if is_narrow { i64::from(value as i32) } else { value }))
            }
            Decoder::Plain { bytes, at } => match column.physical {
                Physical::Int32 => {
                    let values = taken(bytes, at, count, 4)?;
                    out.extend(values.as_chunks::<4>().0.iter().map(|four| i64::from(i32::from_le_bytes(*four))));
                    Ok(())
                }
                Physical::Int64 => {
                    let values = taken(bytes, at, count, 8)?;
                    out.extend(values.as_chunks::<8>().0.iter().map(|eight| i64::from_le_bytes(*eight)));
                    Ok(())
                }
                _ => plain_texts(column, bytes, at, count, |start, len| out.push(decimal(&bytes[start..start + len]))),
            },
            Decoder::Lengths { lengths, bytes, at } => {
                length_texts(lengths, bytes, at, count, |start, len| out.push(decimal(&bytes[start..start + len])))
            }
        }
    }

    /// Appends the next texts, of which none is null.
    pub(super) fn texts(&mut self, column: &Column, count: usize, out: &mut Texts) -> Result<(), Refusal> {
        match self {
            _ if count == 0 => Ok(()),
            Decoder::Empty | Decoder::Delta(_) => Err(early()),
            Decoder::Dictionary(hybrid) => {
                let first = out.ids.len();
                hybrid.read(count, &mut out.ids)?;
                match out.ids[first..].iter().max() {
                    Some(most) if *most >= out.lasting => Err(not_in_dictionary(*most)),
                    _ => Ok(()),
                }
            }
            Decoder::Plain { bytes, at } => {
                let buffer = out.buffer(bytes.clone());
                plain_texts(column, bytes, at, count, |start, len| {
                    let id = out.push(buffer, start, len);
                    out.ids.push(id);
                })
            }
            Decoder::Lengths { lengths, bytes, at } => {
                let buffer = out.buffer(bytes.clone());
                length_texts(lengths, bytes, at, count, |start, len| {
                    let id = out.push(buffer, start, len);
                    out.ids.push(id);
                })
            }
        }
    }
}

fn early() -> Refusal {
    Refusal::new("a page ends before its last value")
}

fn not_in_dictionary(id: u32) -> Refusal {
    Refusal::new(format!("value {id} is not in the dictionary"))
}

/// The next `count` values of `width` bytes.
fn taken<'a>(bytes: &'a [u8], at: &mut usize, count: usize, width: usize) -> Result<&'a [u8], Refusal> {
    let end = count.checked_mul(width).and_then(|len| at.checked_add(len)).filter(|end| *end <= bytes.len());
    let end = end.ok_or_else(early)?;
    let values = &bytes[*at..end];
    *at = end;
    Ok(values)
}

/// Positions of the next plain texts.
fn plain_texts(
    column: &Column,
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    mut each: impl FnMut(usize, usize),
) -> Result<(), Refusal> {
    if column.physical == Physical::Fixed {
        let (width, first) = (column.width as usize, *at);
        taken(bytes, at, count, width)?;
        (0..count).for_each(|number| each(first + number * width, width));
        return Ok(());
    }
    for _ in 0..count {
        let head = taken(bytes, at, 1, 4)?;
        let (start, len) = (*at, u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize);
        taken(bytes, at, len, 1)?;
        each(start, len);
    }
    Ok(())
}

/// Positions of the next texts, whose lengths are apart.
fn length_texts(
    lengths: &mut Delta,
    bytes: &[u8],
    at: &mut usize,
    count: usize,
    mut each: impl FnMut(usize, usize),
) -> Result<(), Refusal> {
    let mut is_within = true;
    lengths.read(count, |len| {
        let end = usize::try_from(len as i32).ok().and_then(|len| at.checked_add(len));
        match end.filter(|end| is_within && *end <= bytes.len()) {
            Some(end) => {
                each(*at, end - *at);
                *at = end;
            }
            None => is_within = false,
        }
    })?;
    if is_within { Ok(()) } else { Err(early()) }
}

/// Texts after their lengths.
fn lengths(bytes: Bytes) -> Result<Decoder, Refusal> {
    let mut passed = Delta::new(bytes.clone())?;
    pass(&mut passed)?;
    let at = passed.end();
    Ok(Decoder::Lengths { lengths: Delta::new(bytes.clone())?, bytes, at })
}

/// Reads all values to find the end. Each takes at least a byte later, so there are not more than a page has bytes.
fn pass(delta: &mut Delta) -> Result<(), Refusal> {
    if delta.left() > PAGE_BYTES_MAX {
        return Err(early());
    }
    delta.read(delta.left() as usize, |_| {})
}

/// Texts that share a prefix with the one before; they are put together here, within the bound of a page.
fn prefixed(column: &Column, bytes: Bytes) -> Result<Decoder, Refusal> {
    let mut prefixes = Delta::new(bytes.clone())?;
    pass(&mut prefixes)?;
    let suffixes_at = prefixes.end();
    let mut prefixes = Delta::new(bytes.clone())?;
    let rest = bytes.slice(suffixes_at..);
    let mut suffixes = Delta::new(rest.clone())?;
    pass(&mut suffixes)?;
    let mut at = suffixes.end();
    let mut suffixes = Delta::new(rest.clone())?;
    // As in plain pages: the length first, unless all have the same.
    let is_fixed = column.physical == Physical::Fixed;
    let (mut whole, mut last): (Vec<u8>, Range<usize>) = (Vec::new(), 0..0);
    for _ in 0..prefixes.left() {
        let (mut prefix, mut suffix) = (0, 0);
        prefixes.read(1, |len| prefix = len)?;
        suffixes.read(1, |len| suffix = len)?;
        let (Ok(prefix), Ok(suffix)) = (usize::try_from(prefix), usize::try_from(suffix)) else { return Err(early()) };
        if prefix > last.len() || suffix > rest.len() - at {
            return Err(early());
        }
        let len = prefix + suffix;
        if whole.len() + 4 + len > PAGE_BYTES_MAX as usize {
            return Err(Refusal::new(format!("a page has more than {PAGE_BYTES_MAX} bytes decoded")));
        }
        match is_fixed {
            true if len as u64 != column.width => return Err(Refusal::new(format!("a value has {len} bytes"))),
            true => {}
            false => whole.extend_from_slice(&(len as u32).to_le_bytes()),
        }
        let start = whole.len();
        whole.extend_from_within(last.start..last.start + prefix);
        whole.extend_from_slice(&rest[at..at + suffix]);
        at += suffix;
        last = start..whole.len();
    }
    Ok(Decoder::Plain { bytes: whole.into(), at: 0 })
}

/// The values of a dictionary. Its count is bounded by its bytes as the values are read.
pub(super) fn number_dictionary(column: &Column, bytes: Bytes, count: u64) -> Result<Vec<i64>, Refusal> {
    let mut values = Vec::new();
    let count = usize::try_from(count).map_err(|_| early())?;
    Decoder::Plain { bytes, at: 0 }.numbers(column, count, &[], &mut values, &mut Vec::new())?;
    Ok(values)
}

/// Puts the texts of a dictionary into a table: they get the next ids.
pub(super) fn text_dictionary(column: &Column, bytes: Bytes, count: u64, out: &mut Texts) -> Result<(), Refusal> {
    let count = usize::try_from(count).ok().filter(|count| *count <= bytes.len()).ok_or_else(early)?;
    let buffer = out.buffer(bytes.clone());
    plain_texts(column, &bytes, &mut 0, count, |start, len| {
        out.push(buffer, start, len);
    })
}

/// A decimal as big-endian bytes.
fn decimal(bytes: &[u8]) -> i64 {
    let Some(first) = bytes.first() else { return BAD };
    let fill = if first & 0x80 == 0 { 0 } else { 0xff };
    let (front, back) = bytes.split_at(bytes.len().saturating_sub(8));
    let mut word = [fill; 8];
    word[8 - back.len()..].copy_from_slice(back);
    let fits = front.iter().all(|byte| *byte == fill) && (front.is_empty() || back[0] & 0x80 == fill & 0x80);
    if fits { i64::from_be_bytes(word) } else { BAD }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_any_width() {
        let cases: [(&[u8], i64); 9] = [
            (&[], BAD),
            (&[1], 1),
            (&[0xff], -1),
            (&[0x27, 0x10], 10_000),
            (&[0, 0, 0, 0x27, 0x10], 10_000),
            (&[0xff, 0xff, 0xff, 0xfe], -2),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0], 256),
            (&[1, 0, 0, 0, 0, 0, 0, 0, 0], BAD),
            (&[0, 0x80, 0, 0, 0, 0, 0, 0, 0], BAD),
        ];
        for (bytes, expected) in cases {
            assert_eq!(decimal(bytes), expected, "{bytes:?}");
        }
        println!("decimals: {} cases", cases.len());
    }
}
