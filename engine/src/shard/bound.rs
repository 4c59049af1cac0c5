//! The bound of memory for ended rows. They leave memory when they are in the history store; while that takes none, they
//! stay, and at the bound placements are refused. Cancels and queries go on, so what is open can always end.

use super::Shard;
use crate::reject::Reject;
use crossbeam::utils::CachePadded;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The part of the bound from which rows should leave soon, in quarters.
const PRESSED_QUARTERS: u64 = 3;

/// The bound, and how far it is used: one for all shards of a server. Each shard has an equal share. The numbers are plain
/// ones, not used to order memory accesses.
#[derive(Debug)]
pub struct EndedBound {
    /// Of each shard.
    bytes_max: u64,
    /// Bytes of ended rows, by shard, as of its last placement or drop of rows.
    bytes: Box<[CachePadded<AtomicU64>]>,
    refused: CachePadded<AtomicU64>,
}

impl EndedBound {
    /// A bound of `bytes_max` for all ended rows of `shards_count` shards.
    pub fn new(bytes_max: u64, shards_count: usize) -> EndedBound {
        let bytes = (0..shards_count).map(|_| CachePadded::default()).collect();
        EndedBound { bytes_max: bytes_max / shards_count.max(1) as u64, bytes, refused: CachePadded::default() }
    }

    /// The bound of all shards together.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max * self.bytes.len() as u64
    }

    /// Bytes of ended rows of all shards.
    pub fn bytes(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).sum()
    }

    /// Whether a shard refuses placements.
    pub fn is_full(&self) -> bool {
        self.fullest() >= self.bytes_max
    }

    /// Whether rows of a shard should leave soon, however recent they are: three quarters of its share are used.
    pub fn is_pressed(&self) -> bool {
        self.fullest() >= self.bytes_max / 4 * PRESSED_QUARTERS
    }

    /// Refused placements; a batch is one.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn fullest(&self) -> u64 {
        self.bytes.iter().map(|bytes| bytes.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    /// Records what the ended rows of a shard take.
    pub fn note(&self, shard: usize, bytes: u64) {
        self.bytes[shard].store(bytes, Ordering::Relaxed);
    }

    fn admit(&self, shard: usize, bytes: u64) -> Result<(), Reject> {
        self.note(shard, bytes);
        if bytes < self.bytes_max {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::Relaxed);
        Err(Reject::EndedFull)
    }
}

impl<R> Shard<R> {
    /// Refuses placements while ended rows take this shard's share of the bound.
    pub fn bound_ended(&mut self, bound: Arc<EndedBound>) {
        bound.note(self.index, self.users.ended_rows().bytes());
        self.ended_bound = Some(bound);
    }

    /// Whether memory has room for what a placement leaves when it ends.
    #[inline]
    pub(super) fn ended_room(&self) -> Result<(), Reject> {
        match &self.ended_bound {
            Some(bound) => bound.admit(self.index, self.users.ended_rows().bytes()),
            None => Ok(()),
        }
    }

    /// Rows have left memory.
    pub(super) fn note_ended_room(&self) {
        if let Some(bound) = &self.ended_bound {
            bound.note(self.index, self.users.ended_rows().bytes());
        }
    }
}
