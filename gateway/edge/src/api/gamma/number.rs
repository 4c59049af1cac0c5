//! Numbers for names: the venue has numbers where this server has texts.

use sha2::{Digest as _, Sha256};

/// The first 53 bits of the SHA-256 of a text: a number that every client reads exactly.
pub fn of_text(text: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(text).into();
    let first = hash[..8].iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    first >> 11
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_numbers() {
        // The first bytes of the SHA-256 of "abc" are ba7816bf8f01cfea.
        assert_eq!(of_text("abc"), 0xba78_16bf_8f01_cfea >> 11);
    }
}
