//! One shard: its turn, its recovery, its snapshot.
pub mod replay;
pub mod snapshot;
