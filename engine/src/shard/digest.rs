//! The digest of a state: 32 bytes that two states share if, and only if, they are equal; but whether a row is in
//! memory or has left it does not count, nor does the time of the fill in the first answer to a request. engine/docs/digest.md is the
//! recipe for a reader outside of the program.
//!
//! ```text
//! SHA-256 of: encoding u32 │ SHA-256 of the markets │ users u64 │ user: id u64, SHA-256 of what is not a row, sum of rows │ …
//! ```
//!
//! The rows of a user (orders, fills, positions, remembered requests) add up (`canonical`), so the digest does
//! not depend on where a row is stored, on the order of visits, or on the count of shards.
//!
//! Snapshots carry another digest, over their bytes ([`super::snapshot`]): it detects damage of a file, and does not
//! change with this encoding. Digests of encoding 1, which were over those bytes, too, are in the manifests of earlier
//! backups ([`super::snapshot::first_digest`]).

use super::snapshot::{first_digest, put_account, put_lists, put_sections};
use crate::bytes::Bytes;
use crate::canonical::RowHashes;
use crate::id::UserId;
use crate::market::Markets;
use crate::user::facts::Fact;
use crate::user::{User, Users};
use sha2::{Digest, Sha256};

/// The encoding that [`digest`] uses.
pub const ENCODING: u32 = 2;
/// The encoding of digests that name none.
pub const ENCODING_FIRST: u32 = 1;

/// A part of a digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// SHA-256 of the market state.
    Markets([u8; 32]),
    User {
        user: UserId,
        /// SHA-256 of what is not a row.
        rest: [u8; 32],
        /// The sum of SHA-256 over each row, as a number with its first byte the highest.
        rows: [u8; 32],
    },
}

/// The digest of a state: equal for any partition of the users.
pub fn digest(markets: &Markets, shards: &[&Users]) -> [u8; 32] {
    digest_while(markets, shards, |_| true).expect("it is wanted")
}

/// The same, while `goes_on` returns true: it is called with each part, users in id order, and without one after each
/// 256 rows of a user. `None`: it returned false.
pub fn digest_while(
    markets: &Markets,
    shards: &[&Users],
    mut goes_on: impl FnMut(Option<Part>) -> bool,
) -> Option<[u8; 32]> {
    let mut users: Vec<&User> = shards.iter().flat_map(|users| users.unordered()).collect();
    users.sort_unstable_by_key(|user| user.id);
    let mut bytes = Vec::new();
    markets.encode(&mut bytes);
    let hashed: [u8; 32] = Sha256::digest(&bytes).into();
    if !goes_on(Some(Part::Markets(hashed))) {
        return None;
    }
    let mut all = Sha256::new();
    all.update(ENCODING.to_le_bytes());
    all.update(hashed);
    all.update((users.len() as u64).to_le_bytes());
    for user in users {
        bytes.clear();
        put_rest(user, &mut bytes);
        let rest: [u8; 32] = Sha256::digest(&bytes).into();
        let mut hashes = RowHashes::default();
        user.trading().hash_rows(&mut hashes, || goes_on(None))?;
        let rows = hashes.sum.bytes();
        all.update(user.id.0.to_le_bytes());
        all.update(rest);
        all.update(rows);
        if !goes_on(Some(Part::User { user: user.id, rest, rows })) {
            return None;
        }
    }
    Some(all.finalize().into())
}

/// The digest in an encoding that was stored; `None` if this build does not know it.
pub fn digest_in(encoding: u32, markets: &Markets, shards: &[&Users]) -> Option<[u8; 32]> {
    match encoding {
        ENCODING_FIRST => Some(first_digest(markets, shards)),
        ENCODING => Some(digest(markets, shards)),
        _ => None,
    }
}

/// Appends what is not a row, as a snapshot has it; but order facts with the ids of their orders and fills.
fn put_rest(user: &User, out: &mut Vec<u8>) {
    let trading = user.trading();
    put_account(user, out);
    put_lists(trading, out);
    (trading.facts.len() as u64).put(out);
    for fact in (0..trading.facts.len()).filter_map(|at| trading.facts.get(at)) {
        let kind = match fact {
            Fact::Placed { .. } => 0,
            Fact::Rested { .. } => 1,
            Fact::Taken { .. } => 2,
            Fact::Matched { .. } => 3,
            Fact::Closed { .. } => 4,
        };
        out.push(kind);
        user.object(fact.number()).put(out);
    }
    put_sections(user, out);
}

#[cfg(test)]
mod tests;
