//! Encoded bytes of many small fields, collected in place and appended together: a list checks its capacity and calls a
//! copy for each field, which takes longer than the encoding.

use wincode::io::{WriteResult, Writer};

/// The facts of most commands.
const GATHERED_BYTES: usize = 256;

/// Collects bytes for a list. [`Gathered::end`] appends the last.
pub(crate) struct Gathered<'a> {
    out: &'a mut Vec<u8>,
    bytes: [u8; GATHERED_BYTES],
    len: usize,
}

impl<'a> Gathered<'a> {
    pub fn onto(out: &'a mut Vec<u8>) -> Gathered<'a> {
        Gathered { out, bytes: [0; GATHERED_BYTES], len: 0 }
    }

    pub fn end(mut self) {
        self.append();
    }

    fn append(&mut self) {
        self.out.extend_from_slice(&self.bytes[..self.len]);
        self.len = 0;
    }

    #[cold]
    fn overflow(&mut self, bytes: &[u8]) {
        self.append();
        self.out.extend_from_slice(bytes);
    }
}

impl Writer for Gathered<'_> {
    #[inline(always)]
    fn write(&mut self, bytes: &[u8]) -> WriteResult<()> {
        let end = self.len + bytes.len();
        match self.bytes.get_mut(self.len..end) {
            Some(place) => {
                place.copy_from_slice(bytes);
                self.len = end;
            }
            None => self.overflow(bytes),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_appended_in_their_order() {
        // Lengths of the fields, among them those that just fit and those that do not.
        let most = GATHERED_BYTES;
        let cases: [&[usize]; 8] =
            [&[], &[0], &[1, 8, 2], &[most], &[most + 1], &[most - 1, 1, 1], &[most - 1, 2, 3], &[7, 3 * most, 9]];
        for lengths in cases {
            let (mut out, mut expected) = (vec![9], vec![9]);
            let mut gathered = Gathered::onto(&mut out);
            for (number, length) in lengths.iter().enumerate() {
                let field: Vec<u8> = (0..*length).map(|at| (at + number) as u8).collect();
                gathered.write(&field).expect("it is in memory");
                expected.extend(field);
            }
            gathered.end();
            assert!(out == expected, "{lengths:?}");
        }
        println!("gathered bytes: {} cases", cases.len());
    }
}
