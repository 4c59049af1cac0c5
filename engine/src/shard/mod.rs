//! One shard: its turn, its recovery, its snapshot.
pub mod replay;
pub mod snapshot;

use crate::id::UserId;

/// The shard that a user belongs to, of `count`. Ids come from one counter, so this spreads them evenly.
pub fn shard_of(owner: UserId, count: usize) -> usize {
    (owner.0 % count.max(1) as u64) as usize
}
