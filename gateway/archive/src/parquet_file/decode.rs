//! Encodings of values: run lengths with bit packing, and deltas. Decoders keep their position, so that a page is
//! decoded in steps into buffers of the caller; no count stated by a file is allocated.

use crate::error::Refusal;
use bytes::Bytes;

/// Run-length encoded or bit-packed numbers: dictionary indexes and levels.
pub(crate) struct Hybrid {
    bytes: Bytes,
    at: usize,
    width: u32,
    run: Run,
}

enum Run {
    /// The same value.
    Repeat { left: u64, value: u32 },
    /// The position of the next value, in bits from the start of the bytes.
    Packed { left: u64, bit: usize },
}

/// Integers as differences: DELTA_BINARY_PACKED.
pub(crate) struct Delta {
    bytes: Bytes,
    at: usize,
    /// Values left, the first one included.
    left: u64,
    value: i64,
    is_first: bool,
    per_miniblock: usize,
    widths: Vec<u8>,
    /// The miniblock to read next, and what is left of the current one.
    miniblock: usize,
    in_miniblock: usize,
    width: u32,
    bit: usize,
    least: i64,
}

impl Hybrid {
    pub(crate) fn new(bytes: Bytes, width: u8) -> Result<Hybrid, Refusal> {
        if width > 32 {
            return Err(Refusal::new(format!("numbers have {width} bits")));
        }
        Ok(Hybrid { bytes, at: 0, width: u32::from(width), run: Run::Repeat { left: 0, value: 0 } })
    }

    /// Appends the next `count` numbers.
    pub(crate) fn read(&mut self, count: usize, out: &mut Vec<u32>) -> Result<(), Refusal> {
        let mut wanted = count as u64;
        while wanted > 0 {
            match &mut self.run {
                Run::Repeat { left: 0, .. } | Run::Packed { left: 0, .. } => self.next_run()?,
                Run::Repeat { left, value } => {
                    let taken = wanted.min(*left);
                    out.resize(out.len() + taken as usize, *value);
                    *left -= taken;
                    wanted -= taken;
                }
                Run::Packed { left, bit } => {
                    let taken = wanted.min(*left) as usize;
                    unpack(&self.bytes, bit, self.width, taken, |value| out.push(value as u32));
                    *left -= taken as u64;
                    wanted -= taken as u64;
                }
            }
        }
        Ok(())
    }

    fn next_run(&mut self) -> Result<(), Refusal> {
        let head = varint(&self.bytes, &mut self.at)?;
        let rest = self.bytes.len() - self.at;
        if head & 1 == 0 {
            let len = self.width.div_ceil(8) as usize;
            if len > rest || head < 2 {
                return Err(Refusal::new("a run of values ends early"));
            }
            let mut value = [0; 4];
            value[..len].copy_from_slice(&self.bytes[self.at..self.at + len]);
            self.at += len;
            self.run = Run::Repeat { left: head >> 1, value: u32::from_le_bytes(value) };
        } else {
            let bit = self.at * 8;
            let stated = usize::try_from(head >> 1).unwrap_or(usize::MAX).saturating_mul(self.width as usize);
            // The last run of a page may be cut after its last value.
            let len = stated.min(rest);
            let left = match self.width {
                0 => (head >> 1).saturating_mul(8),
                width => (len * 8 / width as usize) as u64,
            };
            if left == 0 {
                return Err(Refusal::new("a run of values ends early"));
            }
            self.at += len;
            self.run = Run::Packed { left, bit };
        }
        Ok(())
    }
}

/// Reads `count` numbers of `width` bits from a position in bits, which moves on. They are within the bytes.
#[inline]
fn unpack(bytes: &[u8], bit: &mut usize, width: u32, count: usize, mut each: impl FnMut(u64)) {
    let mask = if width == 64 { u64::MAX } else { (1 << width) - 1 };
    let mut at = *bit;
    for _ in 0..count {
        let (byte, shift) = (at / 8, at % 8);
        let value = if width <= 56 && byte + 8 <= bytes.len() {
            let word: [u8; 8] = bytes[byte..byte + 8].try_into().unwrap_or_default();
            u64::from_le_bytes(word) >> shift
        } else {
            let mut word = [0; 16];
            let there = bytes.len().saturating_sub(byte).min(16);
            word[..there].copy_from_slice(&bytes[byte..byte + there]);
            (u128::from_le_bytes(word) >> shift) as u64
        };
        each(value & mask);
        at += width as usize;
    }
    *bit = at;
}

impl Delta {
    pub(crate) fn new(bytes: Bytes) -> Result<Delta, Refusal> {
        let mut at = 0;
        let block = varint(&bytes, &mut at)?;
        let miniblocks = varint(&bytes, &mut at)?;
        let left = varint(&bytes, &mut at)?;
        let first = varint(&bytes, &mut at)?;
        let is_sane =
            block <= 1 << 16 && (1..=512).contains(&miniblocks) && block.is_multiple_of(miniblocks * 8) && block > 0;
        if !is_sane {
            return Err(Refusal::new(format!("deltas are in blocks of {block} with {miniblocks} parts")));
        }
        Ok(Delta {
            bytes,
            at,
            left,
            value: unzigzag(first),
            is_first: true,
            per_miniblock: (block / miniblocks) as usize,
            widths: vec![0; miniblocks as usize],
            miniblock: miniblocks as usize,
            in_miniblock: 0,
            width: 0,
            bit: 0,
            least: 0,
        })
    }

    /// Values that were not read yet.
    pub(crate) fn left(&self) -> u64 {
        self.left
    }

    /// Hands the next `count` values to `each`.
    pub(crate) fn read(&mut self, count: usize, mut each: impl FnMut(i64)) -> Result<(), Refusal> {
        if count as u64 > self.left {
            return Err(Refusal::new("deltas end early"));
        }
        let mut wanted = count;
        self.left -= count as u64;
        if self.is_first && wanted > 0 {
            self.is_first = false;
            each(self.value);
            wanted -= 1;
        }
        while wanted > 0 {
            if self.in_miniblock == 0 {
                self.next_miniblock()?;
            }
            let taken = wanted.min(self.in_miniblock);
            let (least, mut value) = (self.least, self.value);
            unpack(&self.bytes, &mut self.bit, self.width, taken, |delta| {
                value = value.wrapping_add(least).wrapping_add(delta as i64);
                each(value);
            });
            self.value = value;
            self.in_miniblock -= taken;
            wanted -= taken;
        }
        Ok(())
    }

    /// The position after the last miniblock, which is there in full. All values have been read.
    pub(crate) fn end(&self) -> usize {
        self.at
    }

    fn next_miniblock(&mut self) -> Result<(), Refusal> {
        if self.miniblock == self.widths.len() {
            self.least = unzigzag(varint(&self.bytes, &mut self.at)?);
            let end = self.at + self.widths.len();
            let widths = self.bytes.get(self.at..end).ok_or_else(|| Refusal::new("deltas end early"))?;
            self.widths.copy_from_slice(widths);
            self.at = end;
            self.miniblock = 0;
        }
        self.width = u32::from(self.widths[self.miniblock]);
        let len = self.per_miniblock / 8 * self.width as usize;
        if self.width > 64 {
            return Err(Refusal::new(format!("deltas have {} bits", self.width)));
        }
        self.bit = self.at * 8;
        self.in_miniblock = self.per_miniblock;
        if len > self.bytes.len() - self.at {
            // Some writers cut the last miniblock after its last value.
            let there = (self.bytes.len() - self.at) * 8 / self.width.max(1) as usize;
            if there == 0 {
                return Err(Refusal::new("deltas end early"));
            }
            self.in_miniblock = there;
            self.at = self.bytes.len();
        } else {
            self.at += len;
        }
        self.miniblock += 1;
        Ok(())
    }
}

fn varint(bytes: &[u8], at: &mut usize) -> Result<u64, Refusal> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.get(*at).ok_or_else(|| Refusal::new("a page ends early"))?;
        *at += 1;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(Refusal::new("a number is longer than ten bytes"))
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_both_kinds() {
        // Four times 5, then eight packed numbers 0..=7, both with 3 bits.
        let bytes = Bytes::from_static(&[8, 5, 3, 0b1000_1000, 0b1100_0110, 0b1111_1010]);
        let mut hybrid = Hybrid::new(bytes, 3).expect("a width");
        let mut found = Vec::new();
        for step in [1, 4, 7] {
            hybrid.read(step, &mut found).expect("numbers");
        }
        assert_eq!(found, [5, 5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7]);
        assert!(hybrid.read(1, &mut found).is_err());
        println!("runs: {} values", found.len());
    }

    #[test]
    fn damaged_runs_are_refused() {
        let cases: [&[u8]; 5] = [&[], &[8], &[0, 1], &[3], &[0xff; 12]];
        for bytes in cases {
            let read = Hybrid::new(Bytes::from_static(bytes), 9).and_then(|mut it| it.read(100, &mut Vec::new()));
            assert!(read.is_err(), "{bytes:?}");
        }
        println!("damaged runs: {} cases", cases.len());
    }

    #[test]
    fn damaged_deltas_are_refused() {
        let cases: [&[u8]; 6] = [
            &[],
            &[0x80, 0x01, 0x04],
            &[0x80, 0x01, 0x00, 0x05, 0x02],
            &[0x80, 0x01, 0x04, 0x05, 0x02],
            &[0x80, 0x01, 0x04, 0x05, 0x02, 0x00, 65, 0, 0, 0],
            &[0xff, 0xff, 0xff, 0xff, 0x7f, 0x04, 0x05, 0x02],
        ];
        for bytes in cases {
            let read = Delta::new(Bytes::from_static(bytes)).and_then(|mut it| it.read(5, |_| {}));
            assert!(read.is_err(), "{bytes:?}");
        }
        println!("damaged deltas: {} cases", cases.len());
    }
}
