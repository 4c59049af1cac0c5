//! Numbers of what the venue numbers and other venues name: markets and tags.

use engine::market::terms::Listing;
use sha2::{Digest as _, Sha256};

/// Largest number that every client reads exactly.
const NUMBER_MAX: u64 = (1 << 53) - 1;

/// The market's number: the venue's own where it has one, else 53 bits of the SHA-256 of the condition id.
pub fn of_market(listing: &Listing) -> u64 {
    own(&listing.venue_market_id).unwrap_or_else(|| of_text(&listing.condition))
}

/// The first 53 bits of the SHA-256 of a text.
pub fn of_text(text: &str) -> u64 {
    let hash: [u8; 32] = Sha256::digest(text).into();
    let first = hash[..8].iter().fold(0, |number: u64, byte| number << 8 | u64::from(*byte));
    first >> 11
}

/// A decimal number without leading zeros.
fn own(text: &str) -> Option<u64> {
    let plain = !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| plain && *number <= NUMBER_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_venue_stay_and_names_become_numbers() {
        let cases = [
            ("1557558", Some(1_557_558)),
            ("9007199254740991", Some(NUMBER_MAX)),
            ("9007199254740992", None),
            ("0", None),
            ("017", None),
            ("+7", None),
            ("", None),
            ("KXGOLD15M-26AUG101800", None),
        ];
        for (text, expected) in cases {
            assert_eq!(own(text), expected, "{text}");
        }
        // The first bytes of the SHA-256 of "abc" are ba7816bf8f01cfea.
        assert_eq!(of_text("abc"), 0xba78_16bf_8f01_cfea >> 11);
        println!("numbers of markets: {} cases", cases.len());
    }
}
