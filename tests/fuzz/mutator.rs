//! Seeded mutations: they reach more than hand-written tables, without coverage feedback.

use tests::chance::Chance;

/// Longest generated input.
const BYTES_MAX: usize = 16 << 10;

/// Tokens that some parser recognises.
const WORDS: [&[u8]; 34] = [
    b"\"",
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"null",
    b"true",
    b"-",
    b".",
    b"0",
    b"9",
    b"1e400",
    b"NaN",
    b"\r\n",
    b"\n",
    b"\r",
    b" ",
    b"\t",
    b"%",
    b"=",
    b"&",
    b"~",
    b"\xff",
    b"\x00",
    b"\xf0\x9f\x98\x80",
    b"\\ud800",
    b"\\u0000",
    b"18446744073709551616",
    b"0.00000000000000000001",
    b"Content-Length: 5\r\n",
    b"Host: b\r\n",
];

const NUMBERS: [u64; 9] = [0, 1, 0x7f, 0xff, 0x7fff_ffff, 0xffff_ffff, 0x7fff_ffff_ffff_ffff, u64::MAX, 1 << 20];

/// Makes inputs from a corpus.
pub struct Mutator<'a> {
    corpus: &'a [Vec<u8>],
    chance: Chance,
}

impl<'a> Mutator<'a> {
    pub fn new(corpus: &'a [Vec<u8>], chance: Chance) -> Mutator<'a> {
        Mutator { corpus, chance }
    }

    /// The next input: one of the corpus, changed at one to eight positions.
    pub fn next(&mut self) -> Vec<u8> {
        let mut input = self.chance.pick(self.corpus).clone();
        for _ in 0..1 + self.chance.below(8) {
            self.change(&mut input);
        }
        input.truncate(BYTES_MAX);
        input
    }

    fn change(&mut self, input: &mut Vec<u8>) {
        let at = self.chance.below(input.len() + 1);
        match self.chance.below(9) {
            0 if at < input.len() => input[at] ^= 1 << self.chance.below(8),
            1 if at < input.len() => input[at] = self.chance.draw() as u8,
            2 => input.truncate(at),
            3 => {
                let until = (at + 1 + self.chance.below(16)).min(input.len());
                input.drain(at..until);
            }
            4 => {
                let word = *self.chance.pick(&WORDS);
                input.splice(at..at, word.iter().copied());
            }
            5 => {
                // A slice of this input or of another.
                let from = self.chance.pick(self.corpus);
                let begin = self.chance.below(from.len() + 1);
                let end = (begin + self.chance.below(64)).min(from.len());
                input.splice(at..at, from[begin..end].iter().copied());
            }
            6 => {
                let bytes = self.chance.pick(&NUMBERS).to_le_bytes();
                let count = [1, 2, 4, 8][self.chance.below(4)];
                let until = (at + count).min(input.len());
                input.splice(at..until, bytes[..count].iter().copied());
            }
            7 => {
                // One slice many times, for deep nesting and long numbers.
                let end = (at + 1 + self.chance.below(4)).min(input.len());
                let piece = input[at..end].repeat(self.chance.below(64));
                input.splice(at..at, piece);
            }
            _ => {
                let from = self.chance.pick(self.corpus).clone();
                input.truncate(at);
                input.extend_from_slice(&from[self.chance.below(from.len() + 1)..]);
            }
        }
    }
}
