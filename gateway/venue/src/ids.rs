//! Ids for venues other than the primary one (gateway/docs/live-venues.md §6): hashes of a key, in the primary venue's
//! syntax of conditions and tokens.

use sha2::{Digest, Sha256};

/// `0x` and the 64 hex digits of SHA-256(`key`).
pub fn condition(key: &str) -> String {
    let mut text = String::with_capacity(66);
    text.push_str("0x");
    for byte in Sha256::digest(key.as_bytes()).iter() {
        text.push(char::from(b"0123456789abcdef"[usize::from(byte >> 4)]));
        text.push(char::from(b"0123456789abcdef"[usize::from(byte & 15)]));
    }
    text
}

/// SHA-256(`key`), read as one big-endian integer, in decimal: at most 78 digits.
pub fn token(key: &str) -> String {
    const NINE_DIGITS: u64 = 1_000_000_000;
    let digest: [u8; 32] = Sha256::digest(key.as_bytes()).into();
    let mut limbs: Vec<u32> =
        digest.chunks_exact(4).map(|limb| limb.iter().fold(0, |value, &byte| value << 8 | u32::from(byte))).collect();
    let mut groups = Vec::with_capacity(9);
    while limbs.iter().any(|&limb| limb != 0) {
        let mut rest = 0;
        for limb in &mut limbs {
            let value = rest << 32 | u64::from(*limb);
            *limb = (value / NINE_DIGITS) as u32;
            rest = value % NINE_DIGITS;
        }
        groups.push(rest);
    }
    let mut text = groups.pop().unwrap_or(0).to_string();
    for group in groups.iter().rev() {
        text.push_str(&format!("{group:09}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_hash_in_both_notations() {
        // sha256("kalshi:abc"), computed elsewhere.
        assert_eq!(condition("abc"), "0xba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(token("abc"), "84342368487090800366523834928142263660104883695016514377462985829716817089965");
    }
}
