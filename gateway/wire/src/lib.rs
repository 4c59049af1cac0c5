//! Texts of the wire and the server's integers, in both directions. Formats only, no meanings.
//!
//! | Module | Holds |
//! |---|---|
//! | [`decimal`], [`instant`], [`cursor`], [`updown`] | numbers, times, positions in lists, names of up-or-down markets |
//! | [`read`], [`value`], [`fields`], [`query`] | JSON and query strings in |
//! | [`mod@write`] | JSON out |
//!
//! May depend on `engine`. It has no sockets, statuses, or shapes of requests and responses.

pub mod cursor;
pub mod decimal;
pub mod fields;
pub mod instant;
pub mod query;
pub mod read;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod updown;
pub mod value;
pub mod write;

/// Number of bytes before the first one that a JSON string must escape: a quote, a backslash, a control character.
/// Checks eight bytes at a time.
pub(crate) fn plain_bytes(bytes: &[u8]) -> usize {
    /// The byte, eight times.
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    // The highest bit of each byte that is zero. A byte above such a byte may be marked wrongly, one below it cannot.
    let zeros = |word: u64| word.wrapping_sub(each(1)) & !word & each(0x80);
    let mut words = bytes.chunks_exact(8);
    let mut at = 0;
    for word in words.by_ref() {
        let word = u64::from_le_bytes(word.try_into().expect("a chunk of eight"));
        let control = word.wrapping_sub(each(0x20)) & !word & each(0x80);
        let found = control | zeros(word ^ each(b'"')) | zeros(word ^ each(b'\\'));
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = words.remainder();
    at + rest.iter().position(|byte| matches!(byte, 0..0x20 | b'"' | b'\\')).unwrap_or(rest.len())
}

/// One of 64 bits for the name of a field; equal for equal names.
#[inline]
fn mark(name: &str) -> u64 {
    // No two fields of an order share a bit.
    let first = name.as_bytes().first().map_or(0, |first| usize::from(*first));
    1 << ((name.len() * 5 + first) % 64)
}

#[cfg(test)]
mod tests {
    use super::plain_bytes;
    use crate::testing::Random;

    #[test]
    fn plain_bytes_are_counted_up_to_the_first_other_byte() {
        let mut random = Random(11);
        let mut cases = 0;
        for length in 0..70 {
            for _ in 0..200 {
                // Few special bytes among many others.
                let bytes: Vec<u8> = (0..length)
                    .map(|_| match random.next() % 40 {
                        0 => b'"',
                        1 => b'\\',
                        2 => (random.next() % 0x21) as u8,
                        _ => (random.next() % 0xe0 + 0x20) as u8,
                    })
                    .collect();
                let slow = bytes.iter().position(|byte| *byte < 0x20 || *byte == b'"' || *byte == b'\\');
                assert_eq!(plain_bytes(&bytes), slow.unwrap_or(length), "{bytes:?}");
                cases += 1;
            }
        }
        println!("plain bytes: {cases} cases");
    }
}
