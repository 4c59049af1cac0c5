//! Filters over client order ids and order hashes that have left memory. Most placements bring an id that was never
//! used; a filter says so without a look-up.

use crate::id::UserId;
use crate::order::Order;
use crate::time::Timestamp;
use crate::user::Remembered;

/// What a filter says about a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum May {
    /// The name has not left memory.
    No,
    /// It may have.
    Perhaps,
    /// No filter is open that covers the asked time, so the name may have.
    Unknown,
}

/// What names an order in a filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// The id of a remembered request, also an implicit one.
    ClientOrderId = 0,
    /// The EIP-712 hash of a signed order.
    OrderHash = 1,
}

impl Kind {
    pub const ALL: [Kind; 2] = [Kind::ClientOrderId, Kind::OrderHash];
}

/// One name as filters hold it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FilterKey {
    pub user: UserId,
    pub kind: Kind,
    /// [`id_hash`] or [`order_hash`].
    pub hash: u64,
    /// Hour of the placement, server time; hours since 1970.
    pub hour: u32,
}

/// Filters over the names that have left memory. Read by shards while another thread adds names.
pub trait Filters: std::fmt::Debug + Send + Sync {
    /// Whether an order of `user` that was placed at `since` or later has left memory with a name of this hash. Takes
    /// about as long as one access to memory for each filter that covers the time.
    fn may_have(&self, user: UserId, kind: Kind, hash: u64, since: Timestamp) -> May;
}

/// The names of an order that leaves memory with its remembered request.
pub fn keys_of(user: UserId, order: &Order, request: Option<&Remembered>) -> impl Iterator<Item = FilterKey> {
    let key = move |kind, hash| FilterKey { user, kind, hash, hour: order.created_at.hour() };
    let id = request.and_then(|request| request.id(order)).map(|id| key(Kind::ClientOrderId, id_hash(id)));
    let hash = order.terms.order_hash().map(|hash| key(Kind::OrderHash, order_hash(hash)));
    id.into_iter().chain(hash)
}

/// The hash of a client order id. It is in files, so it never changes.
pub fn id_hash(id: &str) -> u64 {
    const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
    let (words, rest) = id.as_bytes().as_chunks::<8>();
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    let words = words.iter().chain([&last]).map(|word| u64::from_le_bytes(*word));
    let state = words.fold(id.len() as u64, |state, word| {
        let state = (state ^ word).wrapping_mul(MULTIPLIER);
        state ^ state >> 29
    });
    mix(state)
}

/// The hash of an order hash, which is evenly spread already.
pub fn order_hash(hash: &[u8; 32]) -> u64 {
    let (first, _) = hash.split_first_chunk().expect("8 of 32 bytes");
    u64::from_le_bytes(*first)
}

/// Spreads a number over all 64 bits, one to one.
pub fn mix(number: u64) -> u64 {
    let number = (number ^ number >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ number >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ number >> 31
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn hashes_of_names_are_golden() {
        let cases = [
            ("", 0x0000_0000_0000_0000_u64),
            ("a", 0xaca7_6507_2f26_e4a3),
            ("b", 0x9b60_f736_2305_6fa4),
            ("grid-17", 0x514a_e20e_796a_8b87),
            ("12345678", 0x20cb_8b02_6417_f73f),
            ("123456789", 0x10cc_ea44_9164_75cf),
            ("0b1f7c9e-5f0e-4a9e-8f0c-3a1d2b4c5d6e", 0x6a85_d421_7721_f9e3),
        ];
        for (id, expected) in cases {
            assert_eq!(id_hash(id), expected, "{id:?}");
        }
        let hash: [u8; 32] = std::array::from_fn(|at| at as u8);
        assert_eq!(order_hash(&hash), 0x0706_0504_0302_0100);
        println!("golden hashes: {} cases", cases.len() + 1);
    }

    /// Ids of one shape, that differ in a few digits or in their length, have hashes that differ in their high and in
    /// their low half.
    #[test]
    fn like_ids_have_unlike_hashes() {
        let (mut high, mut low, mut cases) = (HashSet::new(), HashSet::new(), 0);
        let numbered = (0..100_000).flat_map(|number| [format!("order-{number}"), format!("{number:032x}")]);
        let zeros = (0..64).map(|length| "\0".repeat(length));
        for id in numbered.chain(zeros) {
            let hash = id_hash(&id);
            high.insert((hash >> 32) as u32);
            low.insert(hash as u32);
            cases += 1;
        }
        // Of 200,064 random numbers of 32 bits some five repeat.
        assert!(cases - high.len() < 25 && cases - low.len() < 25, "{} and {} of {cases}", high.len(), low.len());
        println!("hashes of like ids: {cases} cases");
    }
}
