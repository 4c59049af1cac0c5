//! Rows as canonical bytes, and the sum of their hashes: the part of a state's digest that rows make
//! (engine/docs/digest.md).
//!
//! Canonical bytes depend on the row alone: they name other rows by id, never by their place in a list, and no row by
//! the one before it. So the sum is the same wherever a row is stored and in any order of visits.
//!
//! ```text
//! kind u8 │ fields │ optional field: number u8, value │ optional field … ascending
//! ```
//!
//! A whole number takes eight bytes, little-endian, a word or flags one, a text its length as a number and its bytes. An
//! absent optional field takes none, so a row without a later field keeps its hash.

use sha2::{Digest, Sha256};

/// The first byte of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Order = 1,
    Fill = 2,
    Position = 3,
    Request = 4,
}

/// Rows of a user that are hashed between two questions whether to go on: some tenths of a millisecond.
pub(crate) const ROWS_TOGETHER: usize = 256;

/// A sum of hashes modulo 2²⁵⁶, each read as a number with its first byte the highest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sum([u64; 4]);

impl Sum {
    /// Adds one hash, or another sum.
    pub fn add(&mut self, hash: &[u8; 32]) {
        let mut carry = false;
        for (limb, bytes) in self.0.iter_mut().zip(hash.rchunks_exact(8)) {
            let number = u64::from_be_bytes(bytes.try_into().expect("eight bytes"));
            let (sum, is_over) = limb.overflowing_add(number);
            let (sum, is_over_again) = sum.overflowing_add(carry.into());
            (*limb, carry) = (sum, is_over | is_over_again);
        }
    }

    /// The sum with these bytes.
    pub fn of_bytes(bytes: &[u8; 32]) -> Sum {
        let mut sum = Sum::default();
        sum.add(bytes);
        sum
    }

    pub fn bytes(self) -> [u8; 32] {
        let mut bytes = [0; 32];
        for (place, limb) in bytes.rchunks_exact_mut(8).zip(self.0) {
            place.copy_from_slice(&limb.to_be_bytes());
        }
        bytes
    }
}

/// Adds up the hashes of rows, one after the other.
#[derive(Debug, Default)]
pub(crate) struct RowHashes {
    bytes: Vec<u8>,
    pub sum: Sum,
}

impl RowHashes {
    /// Adds a row; `put` appends its fields.
    pub fn add(&mut self, kind: Kind, put: impl FnOnce(&mut RowBytes<'_>)) {
        self.bytes.clear();
        self.bytes.push(kind as u8);
        put(&mut RowBytes(&mut self.bytes));
        self.sum.add(&Sha256::digest(&self.bytes).into());
    }
}

/// The bytes of one row.
pub(crate) struct RowBytes<'a>(&'a mut Vec<u8>);

impl RowBytes<'_> {
    pub fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn signed(&mut self, number: i64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    pub fn hash(&mut self, hash: &[u8; 32]) {
        self.0.extend_from_slice(hash);
    }

    pub fn text(&mut self, text: &[u8]) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text);
    }

    /// An optional field that is a number.
    pub fn optional(&mut self, field: u8, number: Option<u64>) {
        if let Some(number) = number {
            self.byte(field);
            self.number(number);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The bytes of one row as hex.
    pub fn hex_of(kind: Kind, put: impl FnOnce(&mut RowBytes<'_>)) -> String {
        let mut hashes = RowHashes::default();
        hashes.add(kind, put);
        let mut alone = Sum::default();
        alone.add(&Sha256::digest(&hashes.bytes).into());
        assert_eq!(hashes.sum, alone, "one row is the sum of its hash");
        hashes.bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn a_sum_is_that_of_numbers_of_256_bits() {
        let number = |low: u64, high: u64| {
            let mut bytes = [0; 32];
            bytes[..8].copy_from_slice(&high.to_be_bytes());
            bytes[24..].copy_from_slice(&low.to_be_bytes());
            bytes
        };
        let mut middle = [0; 32];
        middle[23] = 1;
        let all = [0xff; 32];
        // (numbers, their sum)
        let rows = [
            (vec![], [0; 32]),
            (vec![number(3, 0), number(4, 5)], number(7, 5)),
            (vec![number(u64::MAX, 0), number(1, 0)], middle),
            (vec![all, number(1, 0)], [0; 32]),
            (vec![all, all], {
                let mut sum = all;
                sum[31] = 0xfe;
                sum
            }),
            (vec![all, number(1, 0), number(0, 9)], number(0, 9)),
            // Carries of a carry.
            (vec![all, number(1, 0), all, number(2, 0)], number(1, 0)),
        ];
        for (numbers, expected) in &rows {
            let (mut sum, mut reversed) = (Sum::default(), Sum::default());
            numbers.iter().for_each(|number| sum.add(number));
            numbers.iter().rev().for_each(|number| reversed.add(number));
            assert_eq!((sum.bytes(), reversed), (*expected, sum), "{numbers:?}");
            assert_eq!(Sum::of_bytes(&sum.bytes()), sum);
        }
        println!("sums: {} cases", rows.len());
    }

    #[test]
    fn an_absent_field_takes_no_byte() {
        let put = |row: &mut RowBytes<'_>, seven: Option<u64>| {
            row.number(0x0102);
            row.signed(-2);
            row.text(b"ab");
            row.optional(7, seven);
        };
        let without = "02 0201000000000000 feffffffffffffff 0200000000000000 6162".replace(' ', "");
        assert_eq!(hex_of(Kind::Fill, |row| put(row, None)), without);
        assert_eq!(hex_of(Kind::Fill, |row| put(row, Some(5))), format!("{without}070500000000000000"));
    }
}
